"""Run error-parity in an environment of its own: rows and a request in one file, decisions in another."""

import sys

import numpy as np
from error_parity import RelaxedThresholdOptimizer

# Its decisions are drawn; the mean of many draws is close to their probabilities.
_DRAWS = 20


def answer(given: str, decided: str) -> None:
    """Fit to the rows of one file and write the decisions on its new rows to another."""
    with np.load(given) as file:
        data = {name: file[name] for name in file}
    model = RelaxedThresholdOptimizer(
        predictor=lambda X: X[:, 0],
        constraint="demographic_parity" if data["parity"] else "true_positive_rate_parity",
        tolerance=1.0 - float(data["asked"]),
    )
    model.fit(data["score"][:, None], data["y"], group=data["group"])
    new, group = data["new_score"][:, None], data["new_group"]
    np.save(decided, np.mean([model(new, group=group) for _ in range(_DRAWS)], axis=0))


def main() -> None:
    """Answer one request per line of the standard input: the names of the two files, with a tab between."""
    for line in sys.stdin:
        try:
            answer(*line.rstrip("\n").split("\t"))
            said = "done"
        except Exception as error:  # whatever it is, the study records it and goes on
            said = f"{type(error).__name__}: {error}".replace("\n", " ")
        sys.stdout.write(f"answer: {said}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
