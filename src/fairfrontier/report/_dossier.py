"""The dossier of a search: its summary as a page without scripts, which prints."""

from typing import Any

from fairfrontier.report._outputs import render_page
from fairfrontier.report._words import Piece, accuracy, figure, level, name, percent, said

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640.0, 320.0, 56.0, 36.0


def render_dossier(summary: dict[str, Any]) -> str:
    """Render the summary of `summarise_search` as one self-contained page."""
    return render_page(
        "dossier.html",
        styles=("report.css", "dossier.css"),
        summary=summary,
        lead=verdict_sentence(summary),
        choice=choice_sentence(summary),
        chart=_chart(summary),
        chosen=chosen_of(summary),
        doubts=doubts(summary),
    )


def chosen_of(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the chosen candidate's row."""
    found: dict[str, Any] = next(one for one in summary["candidates"] if one["name"] == summary["chosen"])
    return found


def verdict_sentence(summary: dict[str, Any]) -> list[Piece]:
    """Say whether an alternative was found."""
    chosen, baseline = chosen_of(summary), summary["baseline"]
    known: dict[str, Any] = {
        "chosen": name(summary["chosen"]),
        "sure": f"{100 * summary['settings']['confidence']:g} %",
        "margin": f"{summary['settings']['margin']:g}",
    }
    if summary["verdict"] == "alternative":
        return said(
            "Yes: {chosen} is a less discriminatory alternative. With {sure} confidence its accuracy is lower than the "
            "baseline's by less than {margin} and its disparity is smaller: fairness {fairness}, accuracy {accuracy}.",
            **known,
            fairness=figure(f"{level(baseline['fairness'])} → {level(chosen['fairness'])}"),
            accuracy=figure(f"{accuracy(baseline['accuracy'])} → {accuracy(chosen['accuracy'])}"),
        )
    if summary["verdict"] == "none":
        asked = required_words(summary["requirement"])
        if not asked:
            return said(
                "None was found: with {sure} confidence no candidate of this search is both less disparate than the "
                "baseline and less accurate by less than {margin}.",
                **known,
            )
        return said(
            "None was found: with {sure} confidence the candidate that should have {asked}, {chosen}, is not both less "
            "disparate than the baseline and less accurate by less than {margin}. The verdict is about this candidate "
            "alone; after it no other one was tested.",
            **known,
            asked=asked,
        )
    needed = chosen["rows_needed"]
    more = (
        f"It would take about {float(f'{needed:.1e}'):,.0f} rows in all to tell."
        if needed
        else "As the figures stand, no number of rows would show it."
    )
    problem = summary["requirement"]["problem"] or more
    return said(
        "It cannot be told whether {chosen} is a less discriminatory alternative, with {sure} confidence and a margin "
        "of {margin}. {problem}",
        **known,
        problem=problem[:1].upper() + problem[1:],
    )


def choice_sentence(summary: dict[str, Any]) -> str:
    """Say how the choice was made."""
    requirement = summary["requirement"]
    asked = required_words(requirement)
    if asked:
        sure = f"what is required is promised with confidence {requirement['confidence']:g}"
        known = (requirement["problem"] or sure).rstrip(".")
        return (
            f"The choice is, by the {summary['rows']['calibrate']:,} calibration rows, the likeliest to be shown to "
            f"have {asked} and to be an alternative; where none is likely to be both, the most accurate of those that "
            f"will more likely than not be shown to have it. {known[:1].upper()}{known[1:]}."
        )
    return (
        "No level of fairness was required: the choice is the candidate with the largest gain in fairness among those "
        f"that, by the {summary['rows']['calibrate']:,} calibration rows, would probably be shown to be alternatives; "
        "where none would, the likeliest."
    )


def required_words(requirement: dict[str, Any]) -> str:
    """Return what was required in words; empty where nothing was."""
    words = {"min_fairness": "fairness", "min_ratio": "a ratio of rates"}
    wanted = {word: requirement[name] for name, word in words.items() if requirement[name] is not None}
    return " and ".join(f"{word} of at least {least:g}" for word, least in wanted.items())


def doubts(summary: dict[str, Any]) -> list[str]:
    """Say what looks wrong with the model in use."""
    right = summary["baseline"]["accuracy"]
    if right >= 0.5:
        return []
    opposite = "so that the opposite of its decisions would be more accurate: is it about the positive label?"
    return [f"The baseline is right in {percent(right)} of the rows, {opposite}"]


def _chart(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the candidates' places in a picture of fairness (right) and accuracy (up)."""
    points = [(one["fairness"], one["accuracy"], one["verdict"], one["name"]) for one in summary["candidates"]]
    base = summary["baseline"]
    xs = [point[0] for point in points] + [base["fairness"]]
    ys = [point[1] for point in points] + [base["accuracy"]]
    behind = summary.get("achievable", {}).get("curves", [])
    low_x, low_y = min(xs) - 0.01, min(ys) - 0.005
    ys += [end for curve in behind for f, end in zip(curve["grid"], curve["high"], strict=True) if f >= low_x]
    low_y = min(low_y, *(curve["low"][-1] for curve in behind), low_y)
    high_x, high_y = 1.0, max(ys) + 0.005

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (x - low_x) / (high_x - low_x) * (_WIDTH - _LEFT - 12.0)
        up = _HEIGHT - _BOTTOM - (y - low_y) / (high_y - low_y) * (_HEIGHT - _BOTTOM - 12.0)
        return round(across, 1), round(up, 1)

    def drawn(x: list[float], y: list[float]) -> str:
        return "L".join("{},{}".format(*place(*point)) for point in zip(x, y, strict=True))

    limits = []
    for curve in behind:
        shown = [i for i, f in enumerate(curve["grid"]) if f >= low_x]
        grid, line, low, high = ([curve[part][i] for i in shown] for part in ("grid", "accuracy", "low", "high"))
        band = f"M{drawn(grid, high)}L{drawn(grid[::-1], low[::-1])}Z"
        limits.append({"track": curve["track"], "line": f"M{drawn(grid, line)}", "band": band})
    ticks_x = [low_x + (high_x - low_x) * i / 4 for i in range(5)]
    ticks_y = [low_y + (high_y - low_y) * i / 4 for i in range(5)]
    return {
        "width": _WIDTH,
        "height": _HEIGHT,
        "points": [
            {
                "at": place(x, y),
                "verdict": verdict.replace(" ", "-"),
                "name": label,
                "chosen": label == summary["chosen"],
            }
            for x, y, verdict, label in points
        ],
        "limits": limits,
        "baseline": place(base["fairness"], base["accuracy"]),
        "ticks_x": [{"at": place(x, low_y)[0], "text": f"{x:.3f}"} for x in ticks_x],
        "ticks_y": [{"at": place(low_x, y)[1], "text": f"{y:.3f}"} for y in ticks_y],
        "left": _LEFT,
        "bottom": _HEIGHT - _BOTTOM,
    }
