"""The findings in sentences: pieces of text and names, so that a page can set a name apart and a terminal too."""

import math
from typing import Any

Piece = dict[str, str]


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
    """Write a level of fairness with three decimals, rounded down: a level is never overstated.

    Examples
    --------
    >>> level(0.94999), level(0.95), level(0.29)
    ('0.949', '0.950', '0.290')
    """
    return f"{math.floor(value * 1000 + 1e-9) / 1000:.3f}"


def percent(value: float) -> str:
    """Write a share as per cent with one decimal."""
    return f"{100 * value:.1f} %"


def recommendation(summary: dict[str, Any]) -> list[Piece]:
    """Say which model is best at the asked level of fairness, and what a fair stack would reach there."""
    return best_model(summary) + _stack_sentence(summary)


def best_model(summary: dict[str, Any]) -> list[Piece]:
    """Say which model is best at the asked level of fairness."""
    best, settings = summary["best"], summary["settings"]
    pieces = [text("Where fairness must be at least "), figure(f"{settings['min_fairness']:g}"), text(", ")]
    if best["model"] == summary["constant"]:
        pieces += [
            text(f"no model of {summary['n_models']:,} does better than the same decision for everyone: accuracy "),
            figure(accuracy(best["accuracy"])),
            text("."),
        ]
    else:
        count = "" if summary["n_models"] == 1 else f" of {summary['n_models']:,} models"
        pieces += [
            text(f"the best{count} is "),
            name(best["name"]),
            text(": accuracy "),
            figure(accuracy(best["accuracy"])),
        ]
        pieces += [text(" at fairness "), figure(level(best["fairness"])), text(".")]
    return pieces


def _stack_sentence(summary: dict[str, Any]) -> list[Piece]:
    stack = summary["best_stack"]
    if summary["stack_fauc"] is None:
        return []
    if stack is None:
        return [text(" A fair stack of these models does not reach that level on rows that it has not seen.")]
    if stack["accuracy"] <= summary["best"]["accuracy"]:
        return [
            text(" A fair stack of these models does not do better: accuracy "),
            figure(accuracy(stack["accuracy"])),
            text("."),
        ]
    return [
        text(" A fair stack of these models would reach accuracy "),
        figure(accuracy(stack["accuracy"])),
        text(" at fairness "),
        figure(level(stack["fairness"])),
        text("."),
    ]


def _group(attribute: str, group: str) -> list[Piece]:
    # Two names: characters in one that turn the direction of writing must not reach the other.
    return [name(attribute), text("="), name(group)]


def rule_sentence(summary: dict[str, Any]) -> list[Piece]:
    """Say whether a model (the recommended one, or the most accurate) meets the four-fifths rule."""
    pieces: list[Piece] = []
    if summary["rule_model"] == summary["constant"]:
        return [text("The same decision for everyone is all there is, and the four-fifths rule says nothing about it.")]
    who = name(summary["models"]["names"][summary["rule_model"]])
    most_accurate = summary["best"]["model"] == summary["constant"] and summary["rule_model"] < summary["constant"]
    which = "The most accurate model, " if most_accurate else ""
    for rule in summary["four_fifths"]:
        low, high = rule["low"], rule["high"]
        pieces += (
            [text(" Also, it selects ")] if pieces else [text(which), who, text(", selects " if which else " selects ")]
        )
        if rule["ratio"] is None:
            pieces += [text("nobody, so that the four-fifths rule says nothing about "), name(rule["attribute"])]
            pieces.append(text("."))
            continue
        pieces += [figure(percent(low["rate"])), text(" of "), *_group(rule["attribute"], low["group"]), text(" and ")]
        pieces += [figure(percent(high["rate"])), text(" of "), *_group(rule["attribute"], high["group"])]
        pieces += [text(": the ratio "), figure(level(rule["ratio"]))]
        pieces.append(text(" meets the four-fifths rule." if rule["passes"] else " is below four fifths."))
    return pieces
