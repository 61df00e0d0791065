"""The tables behind a report: headers and rows, and CSV that a spreadsheet shows and never runs."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier._writing import FRONTIER_COLUMNS, POINT_COLUMNS, to_csv
from fairfrontier.report._intervals import proportion_test, ratio_interval, wilson


class Table(NamedTuple):
    """A table: its header, and one list of cells for each line."""

    header: Sequence[str]
    rows: list[list[Any]]


def points_csv(summary: dict[str, Any]) -> str:
    """Return one line per model: family, fairness, accuracy, whether it is Pareto-optimal, and its group rates."""
    return to_csv(*points_table(summary))


def frontier_csv(summary: dict[str, Any]) -> str:
    """Return the knots of the TAF curve ("step") and of its concave hull ("hull"), in ascending fairness."""
    return to_csv(*frontier_table(summary))


def groups_csv(summary: dict[str, Any]) -> str:
    """Return one line per submitted model and group: counts, rates, impact ratio, intervals, test and shortfall."""
    return to_csv(*groups_table(summary))


def points_table(summary: dict[str, Any]) -> Table:
    """Return the table of `points_csv`.

    Submitted models and the constant are Pareto-optimal among themselves; a fair stack, which nobody submitted, among
    all.
    """
    models, attributes = summary["models"], summary["attributes"]
    submitted = summary["constant"] + 1
    optimal = {*summary["frontier"]["base"], *(i for i in summary["frontier"]["step"] if i >= submitted)}
    header = [*POINT_COLUMNS]
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
    return Table(header, rows)


def frontier_table(summary: dict[str, Any]) -> Table:
    """Return the table of `frontier_csv`."""
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
    return Table(FRONTIER_COLUMNS, rows)


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
    models, rows = summary["models"], []
    for i in range(summary["n_models"]):
        row: dict[str, Any] = {"model": models["names"][i]}
        if summary["labelled"]:
            row |= {"family": summary["families"][models["family"][i]]["name"], "accuracy": models["accuracy"][i]}
        row["fairness"] = models["fairness"][i]
        if summary["labelled"]:
            row["pareto_optimal"] = i in summary["frontier"]["base"]
        row["ratios"] = {
            attribute["name"]: {key: attribute["worst"][key][i] for key in ("ratio", "low", "high", "verdict")}
            for attribute in summary["attributes"]
            if attribute["worst"] is not None
        }
        rows.append(row)
    return rows


GROUP_COLUMNS = (
    "model",
    "attribute",
    "group",
    "rows",
    "weight",
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
    "ratio_to_highest",
)


# The columns that New York City's Local Law 144 asks for, and what else must be known of a category.
LL144_COLUMNS = ("model", "categories", "category", "applicants", "selected", "rate", "impact_ratio", "remark")


def group_rows(summary: dict[str, Any], models: Sequence[int]) -> list[list[Any]]:
    """Return one line per model and group, in the order of `GROUP_COLUMNS`.

    Each group is compared with the reference group, or else with the judged group that has the highest rate. The
    shortfall is the number of persons who would be selected besides, if the group had the rate of that group. With
    sample weights `rows` counts rows, and all other counts are sums of weights.
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
    selected, scale = hits + alarms, np.array([group["scale"] for group in groups])
    rates = selected / rows
    highest = _highest(attribute, rates)
    other = _compared_with(summary, attribute, highest)
    index = np.arange(len(models))
    worth, n = selected * scale, rows * scale
    counts = worth, n, worth[index, other][:, None], n[other][:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio, to_highest = (rates / rates[index, g][:, None] for g in (other, highest))
        columns = [
            _whole(selected),
            rates,
            *wilson(worth, n, confidence),
            np.minimum(hits / positives, 1.0),  # sums of weights round
            np.minimum(alarms / (rows - positives), 1.0),
        ]
    compared = [ratio, *ratio_interval(*counts, confidence), proportion_test(*counts)]
    shortfall = np.maximum(0.0, rows * rates[index, other][:, None] - selected)
    itself = np.arange(len(groups)) == other[:, None]
    shortfall[itself] = 0.0  # and not what is left of rounding
    for values in compared[1:]:
        values[itself | (rates[index, other] == 0)[:, None]] = np.nan
    before = [_cells(values) for values in columns]
    after = [_cells(values) for values in (*compared, shortfall, to_highest)]
    names = [group["name"] for group in groups]
    result = []
    for i, model in enumerate(models):
        start = [summary["models"]["names"][model], attribute["name"]]
        result.append(
            [
                [
                    *start,
                    names[g],
                    group["count"],
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


def _highest(attribute: dict[str, Any], rates: FloatArray) -> IntArray:
    """Return, for each model, the judged group that has the highest rate."""
    judged = np.array([group["judged"] for group in attribute["groups"]])
    return np.asarray(np.argmax(np.where(judged | ~judged.any(), rates, -1.0), axis=1))


def _compared_with(summary: dict[str, Any], attribute: dict[str, Any], highest: IntArray) -> IntArray:
    """Return, for each model, the group that the others of an attribute are compared with."""
    names = [group["name"] for group in attribute["groups"]]
    reference = summary["settings"]["reference"].get(attribute["name"])
    return highest if reference is None else np.full(len(highest), names.index(reference))


def _whole(values: Any) -> Any:
    """Return integers where all values are whole."""
    rounded = np.rint(values)
    return rounded.astype(np.int64) if np.array_equal(rounded, values) else values


def groups_table(summary: dict[str, Any], models: Sequence[int] | None = None) -> Table:
    """Return the table of `groups_csv`, of some models or of all; of predicted numbers, the mean of each group."""
    models = range(summary["n_models"]) if models is None else models
    if not summary["regression"]:
        return Table(GROUP_COLUMNS, group_rows(summary, models))
    rows = [
        [summary["models"]["names"][i], attribute["name"], group["name"], group["count"], rate]
        for i in models
        for attribute in summary["attributes"]
        for group, rate in zip(attribute["groups"], _rates(summary, attribute, i), strict=True)
    ]
    return Table(["model", "attribute", "group", "rows", "mean_score"], rows)


def models_table(summary: dict[str, Any]) -> Table:
    """Return one line per submitted model, as `model_rows`, with ratio, interval and verdict of each attribute."""
    rows = []
    for row in model_rows(summary):
        ratios = row.pop("ratios")
        rows.append(row | {f"{key}[{name}]": value for name, of in ratios.items() for key, value in of.items()})
    return Table(list(rows[0]), [list(row.values()) for row in rows])


def differences_table(found: list[dict[str, Any]]) -> Table:
    """Return one line per model: differences to the one in use with intervals, and who is decided otherwise."""
    groups = list(found[0]["groups"]) if found else []
    header = ["model", "accuracy_difference", "accuracy_low", "accuracy_high"]
    header += ["fairness_difference", "fairness_low", "fairness_high", "to_yes", "to_no"]
    header += [f"{way}[{group}]" for group in groups for way in ("to_yes", "to_no")]
    rows = []
    for one in found:
        ends = one["fairness_interval"] or (None, None)
        row = [one["model"], one["accuracy"], *one["accuracy_interval"], one["fairness"], *ends]
        rows.append([*row, one["to_yes"], one["to_no"], *(n for group in groups for n in one["groups"][group])])
    return Table(header, rows)


def all_tables(summary: dict[str, Any]) -> dict[str, Table]:
    """Return every table of an audit by the name of its file or sheet."""
    tables = {"models": models_table(summary), "groups": groups_table(summary)}
    if not summary["labelled"]:
        return tables | {"ll144": Table(LL144_COLUMNS, summary["ll144"])} if summary["ll144"] else tables
    tables |= {"points": points_table(summary), "frontier": frontier_table(summary)}
    if summary["differences"] is not None:
        tables["differences"] = differences_table(summary["differences"])
    return tables
