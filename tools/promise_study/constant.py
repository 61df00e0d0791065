"""Random problems: is a selected model ever less accurate than the constant model, beyond noise?

Whether a stack is more accurate than the constant model is known from n rows with a standard error of √(p/n) at most, p
being the share of rows that the two decide differently. Differences are counted in units of 1/(2√n), half of its bound.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import FairStacksClassifier

ASKED = (0.90, 0.95, 0.99)
KINDS = ("fair", "unfair", "useless", "few")
_NEW_ROWS = 8_000


def problems(first: int, count: int) -> dict[str, Any]:
    """Return how far below the constant model the selections of some problems are, in accuracy on new rows."""
    result: dict[str, Any] = {"first": first, "problems": count, "selections": 0, "below": [0, 0, 0], "worst": 0.0}
    for number in range(first, first + count):
        H, y, group, kind = _drawn(number)
        n = [200, 500, 1000, 2000][number // len(KINDS) % 4]
        if len(np.unique(y[:n])) == 1:
            result["one_class"] = result.get("one_class", 0) + 1  # refused: there is nothing to learn
            continue
        model = FairStacksClassifier("precomputed", random_state=0)
        model.fit(H[:n], y[:n], sensitive_features=group[:n])
        constant = (y[n:] == (y[:n].mean() > 0.5)).mean()
        for asked in ASKED:
            short = float(constant - (model.select(asked).predict(H[n:]) == y[n:]).mean())
            result["selections"] += 1
            for errors in (1, 2, 3):
                result["below"][errors - 1] += bool(short > errors / (2.0 * np.sqrt(n)))
            if short > result["worst"]:
                result |= {"worst": round(short, 4), "of": f"problem {number}: {kind}, {n} rows, asked {asked:g}"}
    return result


def _drawn(number: int) -> tuple[NDArray, NDArray, NDArray, str]:
    """Return scores, labels and groups of a random problem, and its kind."""
    rng = np.random.default_rng([number, 17])
    kind = KINDS[number % len(KINDS)]
    n, n_groups = 2000 + _NEW_ROWS, int(rng.choice([2, 2, 3, 5]))
    share = rng.dirichlet(np.full(n_groups, 8.0))
    group = rng.choice(n_groups, n, p=share)
    # Every group is in the first rows.
    group[: 4 * n_groups] = np.tile(np.arange(n_groups), 4)
    k = 1 + int(rng.integers(0, 2)) if kind == "few" else int(rng.integers(3, 9))
    merit = rng.normal(size=n) + (rng.normal(0.0, 0.5, n_groups)[group] if kind != "fair" else 0.0)
    y = (merit + rng.normal(0.0, 0.3 + rng.random(), n) > rng.normal(0.0, 0.8)).astype(int)
    signal = 0.0 if kind == "useless" else rng.normal(0.8, 0.5, k)
    favour = 0.0 if kind == "fair" else rng.normal(0.0, 0.8, (n_groups, k))[group]
    margin = merit[:, None] * signal + favour + rng.normal(0.0, 0.2 + rng.random(k), (n, k))
    return 1.0 / (1.0 + np.exp(-margin)), y, group.astype(str), kind


def sentences(results: list[dict[str, Any]]) -> list[str]:
    """Return what came of all pieces, in Markdown."""
    found = sum(one["problems"] - one.get("one_class", 0) for one in results)
    selections = sum(one["selections"] for one in results)
    below = np.sum([one["below"] for one in results], axis=0)
    worst = max(results, key=lambda one: one["worst"])
    return [
        f"{found:,} random problems (models that are fair, unfair, useless, or one or two; 200 to 2,000 rows; 2 to 5 "
        f"groups), asked {', '.join(f'{asked:g}' for asked in ASKED)}: {selections:,} selections. Less accurate on "
        f"{_NEW_ROWS:,} new rows than the constant model by more than one, two and three times 1/(2√n): "
        f"{below[0]:,}, {below[1]:,} and {below[2]:,}. The worst is {worst['worst']:.4f} below it"
        + (f" ({worst['of']})." if "of" in worst else "."),
        "",
    ]
