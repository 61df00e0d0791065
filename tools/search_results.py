"""Search each embedded data set for an alternative to a logistic regression in use, and print a table.

    python tools/search_results.py FOLDER [adult-gender compas-race default-gender bank-age] [--min-ratio 0.8]

The model in use is a logistic regression without the attribute; its scores are out-of-fold, so that it is honest on
every row. The table is written as CSV and searched by the command line, as a user would.
"""

import argparse
import json
from pathlib import Path

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from fairfrontier import datasets
from fairfrontier.cli import main as command

TASKS = ("adult-gender", "compas-race", "default-gender", "bank-age")


def write_table(task: str, path: Path) -> None:
    """Write a data set without the columns of the attribute, with the attribute, the label and the model in use."""
    name, attribute = task.split("-")
    bunch = getattr(datasets, f"load_{name}")(as_frame=True)
    matrix = datasets.design_matrix(bunch, drop_sensitive=attribute).values
    in_use = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)  # shuffled: the rows of Bank are in the order of time
    scores = cross_val_predict(in_use, matrix, bunch.target, cv=folds, method="predict_proba")[:, 1]
    held = [column for column in bunch.sensitive_sources[attribute] if column in bunch.data.columns]
    frame = bunch.data.drop(columns=held)
    frame[attribute] = bunch.sensitive_features[attribute].to_numpy()
    frame["outcome"], frame["score_now"] = bunch.target.to_numpy(), scores.round(6)
    frame.to_csv(path, index=False)


def row(task: str, required: str, summary: dict) -> str:
    """Return the line of the table about one search."""
    base, chosen = summary["baseline"], summary["delivered"]
    figures = [f"{one['fairness']:.3f} | {one['ratio']:.3f} | {one['accuracy']:.4f}" for one in (base, chosen)]
    alternatives = sum(one["verdict"] == "alternative" for one in summary["candidates"])
    promised = "–" if not summary["promised"] else "yes"
    return (
        f"| {task} | {required} | {summary['verdict']} | {figures[0]} | {figures[1]} | {promised} | "
        f"{alternatives} of {summary['n_candidates']} | {summary['seconds']:.0f} |"
    )


def main() -> None:
    """Search, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("tasks", nargs="*", default=list(TASKS))
    parser.add_argument("--min-ratio", default=None)
    parser.add_argument("--jobs", default="2")
    options = parser.parse_args()
    required = [] if options.min_ratio is None else ["--min-ratio", options.min_ratio]
    for task in options.tasks:
        out = options.folder / f"{task}-{options.min_ratio or 'free'}"
        file = options.folder / f"{task}.csv"
        out.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            write_table(task, file)
        named = ["--label", "outcome", "--sensitive", task.split("-")[1], "--baseline", "score_now"]
        named += ["--jobs", options.jobs]
        if not (out / "summary.json").exists() and command(["search", str(file), *named, *required, "--out", str(out)]):
            raise SystemExit(f"{task}: the search failed")
        print(
            row(
                task,
                "–" if not required else f"ratio ≥ {options.min_ratio}",
                json.loads((out / "summary.json").read_text()),
            )
        )


if __name__ == "__main__":
    main()
