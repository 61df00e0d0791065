"""The tables behind a report, as CSV that a spreadsheet shows and never runs."""

from typing import Any

from fairfrontier._csv import to_csv


def points_csv(summary: dict[str, Any]) -> str:
    """Return one line a model: family, fairness, accuracy, whether it is Pareto-optimal, and its group rates."""
    models, attributes = summary["models"], summary["attributes"]
    optimal = set(summary["frontier"]["step"])
    header = ["model", "family", "fairness", "accuracy", "pareto_optimal"]
    header += [f"fairness[{a['name']}]" for a in attributes]
    for attribute in attributes:
        for group in attribute["groups"]:
            header += [f"{rate}[{attribute['name']}={group['name']}]" for rate in _rate_names(summary)]
    rows = []
    for i, name in enumerate(models["names"]):
        family = summary["families"][models["family"][i]]["name"]
        row: list[Any] = [name, family, models["fairness"][i], models["accuracy"][i], i in optimal]
        row += [attribute["fairness"][i] for attribute in attributes]
        for attribute in attributes:
            row += _rates(summary, attribute, i)
        rows.append(row)
    return to_csv(header, rows)


def frontier_csv(summary: dict[str, Any]) -> str:
    """Return the knots of the TAF curve ("step") and of its concave hull ("hull"), in ascending fairness."""
    models = summary["models"]
    rows = [
        [
            curve,
            models["fairness"][i],
            models["accuracy"][i],
            models["names"][i],
            summary["families"][models["family"][i]]["name"],
        ]
        for curve in ("step", "hull")
        for i in summary["frontier"][curve]
    ]
    return to_csv(["curve", "fairness", "accuracy", "model", "family"], rows)


def _rate_names(summary: dict[str, Any]) -> tuple[str, ...]:
    if summary["regression"]:
        return ("mean_score",)
    return ("selection_rate", "true_positive_rate", "false_positive_rate")


def _rates(summary: dict[str, Any], attribute: dict[str, Any], model: int) -> list[float | None]:
    width = len(attribute["groups"])
    rates: list[float | None] = []
    for g, group in enumerate(attribute["groups"]):
        true_selected = attribute["true_selected"][model * width + g]
        false_selected = attribute["false_selected"][model * width + g]
        rates.append((true_selected + false_selected) / group["rows"])
        if not summary["regression"]:
            negatives = group["rows"] - group["positives"]
            rates.append(true_selected / group["positives"] if group["positives"] else None)
            rates.append(false_selected / negatives if negatives else None)
    return rates
