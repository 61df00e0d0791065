"""The findings in sentences: pieces of text and names, so that a page can set a name apart and a terminal too."""

import math
from collections.abc import Mapping
from string import Formatter
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


def said(template: str, **parts: str | Piece) -> list[Piece]:
    """Return a sentence as pieces, from a template whose fields are pieces or plain text.

    Examples
    --------
    >>> plain(said("{which} {model} is the best", which="Of two models", model=name("forest")))
    'Of two models forest is the best'
    """
    pieces: list[Piece] = []
    for before, key, _, _ in Formatter().parse(template):
        part = text("") if key is None else parts[key]
        for piece in (text(before), text(part) if isinstance(part, str) else part):
            if pieces and pieces[-1]["kind"] == piece["kind"] == "text":
                pieces[-1] = text(pieces[-1]["text"] + piece["text"])
            elif piece["text"]:
                pieces.append(piece)
    return pieces


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
VERDICTS = {"below": "below", "above": "above", "cannot tell": "cannot tell", _NOBODY: "selects nobody"}


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
    constant = models["accuracy"][summary["constant"]]
    known: dict[str, Any] = {
        "asked": figure(f"{summary['settings']['min_fairness']:g}"),
        "measure": summary["words"]["accuracy"],
        "decision": summary["words"]["decision"],
        "constant": figure(accuracy(constant)),
        "n_models": f"{n_models:,}",
    }
    if best is None:
        first = (
            "None of the {n_models} models reaches fairness {asked}. The fairest is "
            if n_models > 1
            else "The model does not reach fairness {asked}. It is "
        )
        fairest = max(range(n_models), key=lambda i: (models["fairness"][i], models["accuracy"][i], -i))
        return said(
            first + "{model}: fairness {fairness}, {measure} {accuracy}. The same {decision} for everyone would have "
            "{measure} {constant}.",
            **known,
            **_figures({key: models[key][fairest] for key in ("fairness", "accuracy")}),
            model=name(models["names"][fairest]),
        )
    among = " of {n_models} models" if n_models > 1 else ""
    pieces = said(
        "Where fairness must be at least {asked}, the best" + among + " is {model}: {measure} {accuracy} at fairness "
        "{fairness}.",
        **known,
        **_figures(best),
        model=name(best["name"]),
    )
    if constant < best["accuracy"]:
        return pieces
    plainly = known["measure"] == "accuracy"
    lower = "It is no more accurate than" if plainly else "Its {measure} is not above that of"
    return pieces + said(f" {lower} the same {{decision}} for everyone ({{constant}}).", **known)


def findings(summary: dict[str, Any]) -> list[str]:
    """Return the findings of a report as text."""
    return [plain(pieces) for key in ("recommendation", "overview", "rule") if (pieces := summary.get(key))]


def _figures(model: dict[str, Any]) -> dict[str, Piece]:
    return {"fairness": figure(level(model["fairness"])), "accuracy": figure(accuracy(model["accuracy"]))}


def _stack_sentence(summary: dict[str, Any]) -> list[Piece]:
    stack, best, measure = summary["best_stack"], summary["best"], summary["words"]["accuracy"]
    if summary["stack_fauc"] is None:
        return []
    if stack is None:
        return said(" A fair stack of these models does not reach that level on rows that it has not seen.")
    constant = summary["models"]["accuracy"][summary["constant"]]
    is_better = stack["accuracy"] > max(constant, best["accuracy"] if best is not None else constant)
    would = "would reach {measure}" if is_better else "does not do better: {measure}"
    sentence = f" A fair stack of these models {would} {{accuracy}} at fairness {{fairness}}."
    return said(sentence, measure=measure, **_figures(stack))


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
    measure = summary["words"]["accuracy"]
    which = ""
    if summary["settings"]["baseline"] is not None:
        which = "The model in use, "
    elif summary["best"] is None:
        which = "The most accurate model, " if measure == "accuracy" else f"The model with the highest {measure}, "
    who = name(summary["models"]["names"][summary["subject"]])
    for rule in summary["four_fifths"]:
        first = " Also, it selects " if pieces else which + ("{who}, selects " if which else "{who} selects ")
        pieces += said(first, who=who) + _rule(rule, summary["settings"]["confidence"])
    return pieces


def _rule(rule: dict[str, Any], confidence: float) -> list[Piece]:
    low, high, attribute = rule["low"], rule["high"], name(rule["attribute"])
    if rule["ratio"] is None:
        return said("nobody: the four-fifths rule says nothing about {attribute}.", attribute=attribute)
    lowest, highest = figure(percent(low["rate"])), figure(percent(high["rate"]))
    if low["rate"] == high["rate"]:
        return said("the same share of every group of {attribute}, {rate}.", attribute=attribute, rate=lowest)
    here = "below" if rule["ratio"] < 0.8 else "not below"
    verdict = {
        "above": "meets the four-fifths rule.",
        "below": "is below four fifths.",
        "cannot tell": f"is {here} four fifths in these rows, which are too few to be sure.",
    }[rule["verdict"]]
    ends = f"{confidence * 100:g} % interval {level(rule['interval'][0])} to {level(rule['interval'][1])}"
    # Attribute and group are two names: characters in one that turn the direction of writing must not reach the other.
    return said(
        "{lowest} of {attribute}={low} and {highest} of {attribute}={high}: the ratio {ratio} ({ends}) {verdict}",
        attribute=attribute,
        lowest=lowest,
        low=name(low["group"]),
        highest=highest,
        high=name(high["group"]),
        ratio=figure(level(rule["ratio"])),
        ends=ends,
        verdict=verdict,
    )


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
