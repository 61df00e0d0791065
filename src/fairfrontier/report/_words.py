"""The findings in sentences: pieces of text and names, so that a page can set a name apart and a terminal too."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairfrontier._validation import number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.metrics._sums import named_accuracy

if TYPE_CHECKING:  # an audit that has no such curve does without the learners behind them
    from fairfrontier.limit import AchievableFrontier

Piece = dict[str, str]
# The lowest level of fairness, or of a ratio, that people ask for.
_ASKED_FOR = 0.8


def text(value: str) -> Piece:
    """Return a piece of plain text."""
    return {"kind": "text", "text": value}


def name(value: str) -> Piece:
    """Return a piece that holds a name from the data, which may be any text."""
    return {"kind": "name", "text": value}


def figure(value: str) -> Piece:
    """Return a piece that holds a number."""
    return {"kind": "figure", "text": value}


def plain(pieces: list[Piece]) -> str:
    """Join pieces to one string.

    Examples
    --------
    >>> plain([text("the best is "), name("forest")])
    'the best is forest'
    """
    return "".join(piece["text"] for piece in pieces)


def accuracy(value: float) -> str:
    """Write an accuracy with three decimals."""
    return f"{value:.3f}"


def level(value: float) -> str:
    """Write a level with three decimals, and with more where rounding would lift it to a level that people ask for.

    Examples
    --------
    >>> level(0.94999), level(0.95), level(0.26397), level(0.79996), level(1.0997)
    ('0.94999', '0.950', '0.264', '0.79996', '1.100')
    """
    rounded = round(value, 3)
    if rounded > value + 1e-9 and _ASKED_FOR <= rounded <= 1 and abs(rounded * 20 - round(rounded * 20)) < 1e-9:
        return f"{math.floor(value * 1e5 + 1e-9) / 1e5:.5f}"
    return f"{rounded:.3f}"


def percent(value: float) -> str:
    """Write a share as per cent with one decimal."""
    return f"{100 * value:.1f} %"


_NOBODY = "nobody selected"
VERDICTS = {
    "below": "below",
    "above": "above",
    "cannot tell": "cannot tell",
    _NOBODY: "selects nobody",
}


def p_value(value: float | None) -> str:
    """Write a p-value without false precision.

    Examples
    --------
    >>> p_value(0.03421), p_value(1e-9), p_value(None)
    ('0.034', '< 0.001', '–')
    """
    if value is None:
        return "–"
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


# Measures of accuracy whose name in the library is not what people call them.
_MEASURES = {
    "auc": "AUC",
    "brier": "1 − Brier score",
    "exp_mse": "exp(−MSE)",
    "f1": "F1",
    "ks": "Kolmogorov-Smirnov distance",
    "r2": "R²",
}


def words(accuracy: str) -> dict[str, str]:
    """Return what people call the quality of a model and what it gives a person, which depends on the measure."""
    measure, (kind, _, numbers) = _MEASURES.get(accuracy), accuracy.partition(":")
    if numbers:
        measure = f"recall at {float(numbers):.4g} selected" if kind == "recall_at" else "share of the possible payoff"
    regression = named_accuracy(accuracy).regression
    return {
        "accuracy": measure or accuracy.replace("_", " "),
        "decision": "prediction" if regression else "decision",
    }


# What a measure compares, by the labels on which it conditions, and an example of a difference.
_COMPARED = {
    (None,): (
        "the share of people who get a yes",
        "If 30 % of one group and 24 % of another get a yes, fairness is 0.94.",
    ),
    (True,): (
        "the share who get a yes among those who deserved one",
        "If 80 % of these people in one group and 74 % in another get it, fairness is 0.94.",
    ),
    (False,): (
        "the share who get a yes among those who should not get one",
        "If 10 % of these people in one group and 16 % in another get it, fairness is 0.94.",
    ),
    (True, False): (
        "the share who get a yes, among those who deserved one and among those who did not",
        "The worse of the two counts.",
    ),
}


def fairness_words(fairness: str) -> str:
    """Say what a measure of fairness of decisions is.

    Examples
    --------
    >>> fairness_words("impact_ratio against White")[:68]
    'is the ratio of two groups, the lower divided by the higher, in the '
    """
    measure = named_measure(fairness)
    what, example = _COMPARED[measure.conditions]
    how = {
        "difference": "is 1 minus the largest difference between two groups in",
        "ratio": "is the ratio of two groups, the lower divided by the higher, in",
        "odds": "is the ratio of the odds of two groups, the lower divided by the higher, in",
    }[measure.comparison]
    against = f", against {', '.join(measure.against)}" if measure.against else ", where they differ the most"
    within = "" if measure.within is None else f", among people with the same {measure.within}"
    kind = fairness.partition(" ")[0].replace("_", " ")
    if measure.comparison == "difference":
        return f"{how} {what} ({kind}){against if measure.against else ''}{within}. {example}"
    return f"{how} {what} ({kind}){against}{within}."


def unit_words(summary: dict[str, Any]) -> str:
    """Say in what unit the fairness of predicted numbers is."""
    if summary["settings"]["fairness"] == "mean_difference":
        return "Fairness is 1 minus the largest difference of two groups' mean predictions, in the units of the label."
    return (
        "Fairness is 1 minus the largest difference of two groups' mean predictions, in standard deviations of the "
        f"label ({summary['settings']['unit']:.4g})."
    )


def recommendation(summary: dict[str, Any]) -> list[Piece]:
    """Say which submitted model is best at the asked level of fairness, and what a fair stack would reach there."""
    return best_model(summary) + _stack_sentence(summary)


def best_model(summary: dict[str, Any]) -> list[Piece]:
    """Say which of the submitted models is best at the asked level of fairness, and what the constant would reach."""
    best, models, n_models = summary["best"], summary["models"], summary["n_models"]
    asked, word = figure(f"{summary['settings']['min_fairness']:g}"), summary["words"]
    constant = models["accuracy"][summary["constant"]]
    many = f"{n_models:,} models" if n_models > 1 else "model"
    if best is None:
        fairest = max(range(n_models), key=lambda i: (models["fairness"][i], models["accuracy"][i], -i))
        pieces = [
            text(f"None of the {many} reaches fairness " if n_models > 1 else "The model does not reach fairness ")
        ]
        pieces += [asked, text(". The fairest is " if n_models > 1 else ". It is "), name(models["names"][fairest])]
        pieces += [text(": fairness "), figure(level(models["fairness"][fairest])), text(f", {word['accuracy']} ")]
        pieces += [figure(accuracy(models["accuracy"][fairest])), text(".")]
        return [
            *pieces,
            text(f" The same {word['decision']} for everyone would have {word['accuracy']} "),
            figure(accuracy(constant)),
            text("."),
        ]
    pieces = [
        text("Where fairness must be at least "),
        asked,
        text(", the best"),
        text("" if n_models == 1 else f" of {many}"),
    ]
    pieces += [text(" is "), name(best["name"]), text(f": {word['accuracy']} "), figure(accuracy(best["accuracy"]))]
    pieces += [text(" at fairness "), figure(level(best["fairness"])), text(".")]
    if constant >= best["accuracy"]:
        plainly = word["accuracy"] == "accuracy"
        lower = "It is no more accurate than" if plainly else f"Its {word['accuracy']} is not above that of"
        pieces += [
            text(f" {lower} the same {word['decision']} for everyone ("),
            figure(accuracy(constant)),
            text(")."),
        ]
    return pieces


def _stack_sentence(summary: dict[str, Any]) -> list[Piece]:
    stack, best, measure = summary["best_stack"], summary["best"], summary["words"]["accuracy"]
    if summary["stack_fauc"] is None:
        return []
    if stack is None:
        return [text(" A fair stack of these models does not reach that level on rows that it has not seen.")]
    reached = [figure(accuracy(stack["accuracy"])), text(" at fairness "), figure(level(stack["fairness"])), text(".")]
    constant = summary["models"]["accuracy"][summary["constant"]]
    if stack["accuracy"] <= max(constant, best["accuracy"] if best is not None else constant):
        return [text(f" A fair stack of these models does not do better: {measure} "), *reached]
    return [text(f" A fair stack of these models would reach {measure} "), *reached]


def _group(attribute: str, group: str) -> list[Piece]:
    # Two names: characters in one that turn the direction of writing must not reach the other.
    return [name(attribute), text("="), name(group)]


_VERDICTS = {"below": "below", "above": "above", "cannot tell": "uncertain", _NOBODY: "select nobody"}


def overview(summary: dict[str, Any]) -> list[Piece]:
    """Say how many of the submitted models are below four fifths, above, or uncertain, for each attribute."""
    if summary["regression"]:
        return []
    count = summary["n_models"]
    pieces = [text(f"Four-fifths rule, {count:,} submitted model{'' if count == 1 else 's'}: ")]
    for position, attribute in enumerate(summary["attributes"]):
        verdicts = attribute["worst"]["verdict"]
        counts = {key: verdicts.count(key) for key in _VERDICTS if key in verdicts}
        parts = [f"{n:,} {VERDICTS[key] if n == 1 and key == _NOBODY else _VERDICTS[key]}" for key, n in counts.items()]
        pieces += [text("; " if position else ""), name(attribute["name"]), text(f" {', '.join(parts)}")]
    return [*pieces, text(".")]


def rule_sentence(summary: dict[str, Any]) -> list[Piece]:
    """Say whom the model that the findings are about selects, and what the four-fifths rule says to it."""
    pieces: list[Piece] = []
    who = name(summary["models"]["names"][summary["subject"]])
    in_use, most_accurate = summary["settings"]["baseline"] is not None, summary["best"] is None
    measure = summary["words"]["accuracy"]
    top = "The most accurate model, " if measure == "accuracy" else f"The model with the highest {measure}, "
    which = "The model in use, " if in_use else top if most_accurate else ""
    for rule in summary["four_fifths"]:
        pieces += (
            [text(" Also, it selects ")] if pieces else [text(which), who, text(", selects " if which else " selects ")]
        )
        pieces += _rule(rule, summary["settings"]["confidence"])
    return pieces


def _rule(rule: dict[str, Any], confidence: float) -> list[Piece]:
    low, high = rule["low"], rule["high"]
    if rule["ratio"] is None:
        return [text("nobody: the four-fifths rule says nothing about "), name(rule["attribute"]), text(".")]
    if low["rate"] == high["rate"]:
        same = [text("the same share of every group of "), name(rule["attribute"]), text(", ")]
        return [*same, figure(percent(low["rate"])), text(".")]
    pieces = [figure(percent(low["rate"])), text(" of "), *_group(rule["attribute"], low["group"]), text(" and ")]
    pieces += [figure(percent(high["rate"])), text(" of "), *_group(rule["attribute"], high["group"])]
    pieces += [text(": the ratio "), figure(level(rule["ratio"]))]
    ends = f" ({confidence * 100:g} % interval {level(rule['interval'][0])} to {level(rule['interval'][1])})"
    here = "below" if rule["ratio"] < 0.8 else "not below"
    said = {
        "above": " meets the four-fifths rule.",
        "below": " is below four fifths.",
        "cannot tell": f" is {here} four fifths in these rows, which are too few to be sure.",
    }
    return [*pieces, text(ends), text(said[rule["verdict"]])]


# What a report is given: one curve, or one for each track.
Achievable: TypeAlias = "AchievableFrontier | Mapping[str, AchievableFrontier]"


def achievable_summary(achievable: Achievable, have: float, min_fairness: float, *, fairness: str) -> dict[str, Any]:
    """Return curves with their bands, and the sentence about them, as JSON values.

    Examples
    --------
    >>> from fairfrontier import achievable_frontier
    >>> group, x = np.repeat([0, 1], 500), np.tile([0, 0, 0, 1], 250)
    >>> y = (x + np.arange(1000) % 3 > 1).astype(int)
    >>> known = np.where(x == 1, 2 / 3, 1 / 3), np.full((1000, 2), 0.5)
    >>> best = achievable_frontier(None, y, sensitive_features=group, probabilities=known)
    >>> achievable_summary(best, 0.6, 0.95, fairness="demographic_parity")["sentence"]
    'At fairness 0.95 you have 0.600; 0.666 (0.636 to 0.696) is attainable with these features.'
    """
    curves = {one.track: one for one in ([achievable] if not isinstance(achievable, Mapping) else achievable.values())}
    for curve in curves.values():
        if curve.fairness != fairness:
            raise InvalidInputError(
                f"achievable must be of the measure {fairness!r}; got a curve of {curve.fairness!r}: make it with "
                f"achievable_frontier(fairness={fairness!r})"
            )
    level = number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
    return {
        "min_fairness": level,
        "have": have,
        "curves": [_plain(curves[track]) for track in ("blind", "aware") if track in curves],
        "sentence": _sentence(curves, have, level),
    }


def _plain(curve: "AchievableFrontier") -> dict[str, Any]:
    arrays = {part: getattr(curve, part).tolist() for part in ("grid", "accuracy", "low", "high")}
    return {"track": curve.track, "confidence": curve.confidence, "n_rows": curve.n_rows, **arrays}


def _sentence(curves: "Mapping[str, AchievableFrontier]", have: float, level: float) -> str:
    """Say what there is, what is attainable, and what knowing the attribute would add."""
    blind, aware = curves.get("blind"), curves.get("aware")
    said = f"At fairness {level:g} you have {have:.3f}; "
    first = blind or aware
    assert first is not None  # there is a curve, and it has one of the two tracks
    low, high = (float(np.interp(level, first.grid, end)) for end in (first.low, first.high))
    said += f"{first(level):.3f} ({low:.3f} to {high:.3f}) is attainable with these features"
    if blind is None:
        return said + " and the attribute."
    if aware is None:
        return said + "."
    return said + f"; knowing the attribute would add {max(0.0, aware(level) - blind(level)):.3f}."
