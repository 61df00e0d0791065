"""The tables behind a report, as CSV that a spreadsheet shows and never runs; intervals and tests of group rates.

Those of ratios of selection rates hold for small counts, and give the verdict of the four-fifths rule.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtr, ndtri

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier._writing import FRONTIER_COLUMNS, POINT_COLUMNS, to_csv

FOUR_FIFTHS = 0.8


# Below this expected count the normal approximation of a test is not good enough.
_FEW = 10.0


# Chances of two tables that differ by less than this part are equal.
_TIED = 1e-9


# Halvings of the logarithm of a ratio: more than enough for double precision.
_HALVINGS = 60


# No ratio of counts in memory is farther from 1 than this.
_FARTHEST = np.log(1e12)


# Pairs of groups that are looked at closely, of those that an approximation puts first.
_PAIRS = 6


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
    # Without labels nobody knows who is positive.
    positives = np.array([group["positives"] if summary["labelled"] else np.nan for group in groups])
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
                    group["positives"] if summary["labelled"] else None,
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


def strata_table(found: list[dict[str, Any]]) -> Table:
    """Return one line per model and group: its selection against the reference group's, pooled over strata."""
    return Table(list(found[0]), [list(one.values()) for one in found])


def all_tables(summary: dict[str, Any]) -> dict[str, Table]:
    """Return every table of an audit by the name of its file or sheet."""
    tables = {"models": models_table(summary), "groups": groups_table(summary)}
    if not summary["labelled"]:
        return tables | {"ll144": Table(LL144_COLUMNS, summary["ll144"])} if summary["ll144"] else tables
    tables |= {"points": points_table(summary), "frontier": frontier_table(summary)}
    if summary["differences"] is not None:
        tables["differences"] = differences_table(summary["differences"])
    if summary["strata"]:
        tables["strata"] = strata_table(summary["strata"])
    return tables


BELOW, ABOVE, CANNOT_TELL, NO_RATIO = "below", "above", "cannot tell", "nobody selected"


def wilson(hits: Any, n: Any, confidence: float) -> tuple[FloatArray, FloatArray]:
    """Return Wilson's score interval of shares; NaN where there are no rows.

    Examples
    --------
    >>> [float(end.round(4)) for end in wilson(8, 10, 0.95)]
    [0.4902, 0.9433]
    """
    hits, n = np.broadcast_arrays(np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64))
    square = float(ndtri(0.5 + confidence / 2.0)) ** 2
    with np.errstate(invalid="ignore", divide="ignore"):
        share = hits / n
        centre = (share + square / (2 * n)) / (1 + square / n)
        half = np.sqrt(square * share * (1 - share) / n + (square / (2 * n)) ** 2) / (1 + square / n)
    return np.clip(centre - half, 0.0, 1.0), np.clip(centre + half, 0.0, 1.0)


def ratio_interval(hits: Any, n: Any, other_hits: Any, other_n: Any, confidence: Any) -> tuple[FloatArray, FloatArray]:
    """Return Koopman's score interval for the ratio of two shares, (hits ÷ n) ÷ (other_hits ÷ other_n).

    Notes
    -----
    The interval holds the ratios θ that the score test does not reject: with p₂ the most likely share of the second
    group under p₁ = θ·p₂, (x₁ − n₁p₁)² / (n₁p₁(1 − p₁)) + (x₂ − n₂p₂)² / (n₂p₂(1 − p₂)) is at most the quantile of χ².
    It needs no large counts, and is defined where a count is 0.

    Examples
    --------
    >>> [float(end.round(2)) for end in ratio_interval(36, 40, 16, 80, 0.95)]
    [2.94, 7.15]
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (hits, n, other_hits, other_n, confidence)))
    x1, n1, x2, n2, level = (np.ravel(array) for array in arrays)
    limit = 2.0 * gammaincinv(0.5, level)  # the quantile of χ² with one degree of freedom
    with np.errstate(divide="ignore", invalid="ignore"):
        start = np.log(x1 / n1) - np.log(x2 / n2)
    start = np.clip(np.where(np.isnan(start), 0.0, start), -_FARTHEST, _FARTHEST)
    ends = []
    for sign in (-1.0, 1.0):
        inside, outside = start.copy(), np.full_like(start, sign * _FARTHEST)
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            accepted = _score(np.exp(middle), x1, n1, x2, n2) <= limit
            inside, outside = np.where(accepted, middle, inside), np.where(accepted, outside, middle)
        ends.append(np.exp((inside + outside) / 2))
    undefined = ((x1 == 0) & (x2 == 0)) | (n1 == 0) | (n2 == 0)
    low = np.where(undefined, np.nan, np.where(x1 == 0, 0.0, ends[0]))
    high = np.where(undefined, np.nan, np.where(x2 == 0, np.inf, ends[1]))
    return low.reshape(arrays[0].shape), high.reshape(arrays[0].shape)


def _score(ratio: FloatArray, x1: FloatArray, n1: FloatArray, x2: FloatArray, n2: FloatArray) -> FloatArray:
    """Return the score statistic of a ratio; it is 0 at the observed one and grows away from it."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        total = n1 + n2
        b = ratio * (n1 + x2) + x1 + n2
        # The smaller root, without the cancellation of b − √…
        p1 = 2 * ratio * (x1 + x2) / (b + np.sqrt(np.maximum(b * b - 4 * ratio * total * (x1 + x2), 0.0)))
        p2 = p1 / ratio
        terms = [(x - n * p) ** 2 / (n * p * (1 - p)) for x, n, p in ((x1, n1, p1), (x2, n2, p2))]
    # 0/0 where a share is 0 or 1 and so is its estimate: it fits without any error.
    return sum((np.where(np.isnan(term), 0.0, term) for term in terms), np.zeros_like(x1))


def proportion_test(hits: Any, n: Any, other_hits: Any, other_n: Any) -> FloatArray:
    """Return two-sided p-values of equal shares: Fisher's exact test where counts are small, else the pooled z-test.

    Examples
    --------
    >>> proportion_test([3, 300], [10, 1000], [7, 350], [10, 1000]).round(4).tolist()
    [0.1789, 0.017]
    """
    arrays = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (hits, n, other_hits, other_n)))
    x1, n1, x2, n2 = (np.ravel(array) for array in arrays)
    with np.errstate(divide="ignore", invalid="ignore"):
        pooled = (x1 + x2) / (n1 + n2)
        error = np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
        p = 2 * ndtr(-np.abs(x1 / n1 - x2 / n2) / error)
        expected = np.minimum(n1, n2) * np.minimum(pooled, 1 - pooled)
    p = np.where(error > 0, p, 1.0)
    for i in np.flatnonzero((expected < _FEW) & (n1 > 0) & (n2 > 0)):
        p[i] = _fisher(*np.rint([x1[i], n1[i], x2[i], n2[i]]).astype(int).tolist())
    return np.where((n1 > 0) & (n2 > 0), p, np.nan).reshape(arrays[0].shape)


def _fisher(x1: int, n1: int, x2: int, n2: int) -> float:
    """Return the p-value of Fisher's exact test: the tables with these margins that are not more likely than this."""
    hits, first = x1 + x2, max(0, x1 + x2 - n2)
    x = np.arange(first, min(n1, hits) + 1, dtype=np.float64)
    steps = (n1 - x[:-1]) * (hits - x[:-1]) / ((x[:-1] + 1) * (n2 - hits + x[:-1] + 1))
    log_chance = np.cumsum(np.log(np.concatenate([[1.0], steps])))
    chance = np.exp(log_chance - log_chance.max())
    return float(chance[chance <= chance[x1 - first] * (1 + _TIED)].sum() / chance.sum())


@dataclass(frozen=True, eq=False)
class WorstRatios:
    """The ratio of the lowest to the highest selection rate of `k` models over the groups of one attribute."""

    # lowest, highest (k,): the groups
    lowest: IntArray
    highest: IntArray
    ratio: FloatArray  # (k,): naN for a model that selects nobody
    # low, high (k,): the confidence interval
    low: FloatArray
    high: FloatArray
    verdict: list[str]  # "below" or "above" four fifths where the interval says so, else "cannot tell"


def worst_ratios(selected: FloatArray, rows: FloatArray, judged: NDArray[np.bool_], confidence: float) -> WorstRatios:
    """Compare the lowest selection rate with the highest, for every model.

    Notes
    -----
    The groups with the lowest and the highest rate are themselves found from the data, so the interval of their ratio
    alone would be too short. Every pair of groups has an interval. The worst true ratio is not below all lower ends,
    so the least of them is a lower end for it; for the upper end the pairs share the error between them (Bonferroni).
    """
    where = np.flatnonzero(judged) if judged.sum() >= 2 else np.arange(len(rows))
    rates = selected[:, where] / rows[where]
    lowest, highest = where[np.argmin(rates, axis=1)], where[np.argmax(rates, axis=1)]
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = rates.min(axis=1) / rates.max(axis=1)
    n_pairs = len(where) * (len(where) - 1) // 2
    first, second = _closest_pairs(selected, rows, where)
    model = np.arange(len(selected))[:, None]
    counts = selected[model, first], rows[first], selected[model, second], rows[second]
    low = ratio_interval(*counts, confidence)[0].min(axis=1)
    high = ratio_interval(*counts, 1 - (1 - confidence) / n_pairs)[1].min(axis=1)
    high = np.minimum(high, 1.0)
    nobody = np.isnan(ratio)
    low, high = np.where(nobody, np.nan, low), np.where(nobody, np.nan, high)
    can_judge = judged.sum() >= 2
    verdicts = [_verdict(*ends, can_judge) for ends in zip(low, high, strict=True)]
    return WorstRatios(lowest, highest, ratio, low, high, verdicts)


def _verdict(low: float, high: float, can_judge: bool) -> str:
    if np.isnan(low):
        return NO_RATIO
    if can_judge and high < FOUR_FIFTHS:
        return BELOW
    return ABOVE if can_judge and low >= FOUR_FIFTHS else CANNOT_TELL


def _closest_pairs(selected: FloatArray, rows: FloatArray, where: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for each model, the ordered pairs of groups that decide its interval, by an approximation."""
    first, second = (index.ravel() for index in np.meshgrid(where, where, indexing="ij"))
    first, second = first[(different := first != second)], second[different]
    if len(first) <= 2 * _PAIRS:
        shape = len(selected), len(first)
        return np.broadcast_to(first, shape), np.broadcast_to(second, shape)
    x, n = selected + 0.5, rows + 1.0
    log_rate, variance = np.log(x / n), 1 / x - 1 / n
    ratio = log_rate[:, first] - log_rate[:, second]
    error = 2 * np.sqrt(variance[:, first] + variance[:, second])
    best = [np.argpartition(end, _PAIRS, axis=1)[:, :_PAIRS] for end in (ratio - error, ratio + error)]
    chosen = np.concatenate(best, axis=1)
    return first[chosen], second[chosen]
