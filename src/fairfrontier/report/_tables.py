"""The tables behind a report, as CSV that a spreadsheet shows and never runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from fairfrontier._csv import to_csv
from fairfrontier.report._ratios import proportion_test, ratio_interval, wilson


def points_csv(summary: dict[str, Any]) -> str:
    """Return one line per model: family, fairness, accuracy, whether it is Pareto-optimal, and its group rates."""
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


def model_rows(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one record per submitted model: accuracy, fairness, and for each attribute ratio, interval and verdict."""
    models = summary["models"]
    optimal = set(summary["frontier"]["base"])
    return [
        {
            "model": models["names"][i],
            "family": summary["families"][models["family"][i]]["name"],
            "accuracy": models["accuracy"][i],
            "fairness": models["fairness"][i],
            "pareto_optimal": i in optimal,
            "ratios": {
                attribute["name"]: {key: attribute["worst"][key][i] for key in ("ratio", "low", "high", "verdict")}
                for attribute in summary["attributes"]
                if attribute["worst"] is not None
            },
        }
        for i in range(summary["n_models"])
    ]


GROUP_COLUMNS = (
    "model",
    "attribute",
    "group",
    "rows",
    "positives",
    "selected",
    "selection_rate",
    "selection_rate_low",
    "selection_rate_high",
    "true_positive_rate",
    "false_positive_rate",
    "judged",
    "compared_with",
    "impact_ratio",
    "impact_ratio_low",
    "impact_ratio_high",
    "p_value",
    "shortfall",
)


def group_rows(summary: dict[str, Any], models: Sequence[int]) -> list[list[Any]]:
    """Return one line per model and group, in the order of `GROUP_COLUMNS`.

    Each group is compared with the reference group, or else with the judged group that has the highest rate. The
    shortfall is the number of persons who would be selected besides, if the group had the rate of that group.
    """
    parts = [_attribute_rows(summary, attribute, list(models)) for attribute in summary["attributes"]]
    return [row for of_model in zip(*parts, strict=True) for rows in of_model for row in rows]


def _attribute_rows(summary: dict[str, Any], attribute: dict[str, Any], models: list[int]) -> list[list[list[Any]]]:
    """Return the lines of one attribute, for each model those of its groups."""
    groups, confidence = attribute["groups"], summary["settings"]["confidence"]
    shape = -1, len(groups)
    hits = np.array(attribute["true_selected"], dtype=np.float64).reshape(shape)[models]
    alarms = np.array(attribute["false_selected"], dtype=np.float64).reshape(shape)[models]
    rows = np.array([group["rows"] for group in groups], dtype=np.float64)
    positives = np.array([group["positives"] for group in groups], dtype=np.float64)
    selected = hits + alarms
    rates = selected / rows
    other = _compared_with(summary, attribute, rates)
    index = np.arange(len(models))
    counts = selected, rows, selected[index, other][:, None], rows[other][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = rates / rates[index, other][:, None]
        columns = [
            _whole(selected),
            rates,
            *wilson(selected, rows, confidence),
            hits / positives,
            alarms / (rows - positives),
        ]
    compared = [ratio, *ratio_interval(*counts, confidence), proportion_test(*counts)]
    shortfall = np.maximum(0.0, rows * rates[index, other][:, None] - selected)
    itself = np.arange(len(groups)) == other[:, None]
    for values in compared[1:]:
        values[itself | (rates[index, other] == 0)[:, None]] = np.nan
    before = [_cells(values) for values in columns]
    after = [_cells(values) for values in (*compared, shortfall)]
    names = [group["name"] for group in groups]
    result = []
    for i, model in enumerate(models):
        start = [summary["models"]["names"][model], attribute["name"]]
        result.append(
            [
                [
                    *start,
                    names[g],
                    group["rows"],
                    group["positives"],
                    *(values[i][g] for values in before),
                    group["judged"],
                    names[other[i]],
                    *(values[i][g] for values in after),
                ]
                for g, group in enumerate(groups)
            ]
        )
    return result


def _cells(values: Any) -> list[list[Any]]:
    """Return numbers as nested lists, None where one is not finite."""
    found = np.asarray(values).astype(object)
    found[~np.isfinite(np.asarray(values, dtype=np.float64))] = None
    nested: list[list[Any]] = found.tolist()
    return nested


def _compared_with(summary: dict[str, Any], attribute: dict[str, Any], rates: Any) -> Any:
    """Return, for each model, the group that the others of an attribute are compared with."""
    names = [group["name"] for group in attribute["groups"]]
    reference = summary["settings"]["reference"].get(attribute["name"])
    if reference is not None:
        return np.full(len(rates), names.index(reference))
    judged = np.array([group["judged"] for group in attribute["groups"]])
    return np.argmax(np.where(judged | ~judged.any(), rates, -1.0), axis=1)


def _whole(values: Any) -> Any:
    """Return integers where all values are whole."""
    rounded = np.rint(values)
    return rounded.astype(np.int64) if np.array_equal(rounded, values) else values


def groups_csv(summary: dict[str, Any]) -> str:
    """Return one line per submitted model and group: counts, rates, impact ratio, intervals, test and shortfall."""
    if summary["regression"]:
        header = ["model", "attribute", "group", "rows", "mean_score"]
        rows = []
        for i in range(summary["n_models"]):
            for attribute in summary["attributes"]:
                for group, rate in zip(attribute["groups"], _rates(summary, attribute, i), strict=True):
                    rows.append([summary["models"]["names"][i], attribute["name"], group["name"], group["rows"], rate])
        return to_csv(header, rows)
    return to_csv(GROUP_COLUMNS, group_rows(summary, range(summary["n_models"])))
