"""The dossier of a search: its summary as a page without scripts, which prints."""

from typing import Any

from fairfrontier.report._outputs import _environment, _policy, _template
from fairfrontier.report._words import Piece, accuracy, figure, level, name, percent, text

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 640.0, 320.0, 56.0, 36.0


def render_dossier(summary: dict[str, Any]) -> str:
    """Render the summary of `summarise_search` as one self-contained page."""
    environment, markup = _environment()
    style = _template("report.css") + _template("dossier.css")
    page: str = environment.get_template("dossier.html").render(
        summary=summary,
        policy=_policy([], style),
        style=markup(style),
        lead=verdict_sentence(summary),
        why=reasons(summary),
        limits=limits(summary),
        chart=_chart(summary),
        chosen=chosen_of(summary),
    )
    return page


def chosen_of(summary: dict[str, Any]) -> dict[str, Any]:
    """Return the chosen candidate's row."""
    found: dict[str, Any] = next(one for one in summary["candidates"] if one["name"] == summary["chosen"])
    return found


def verdict_sentence(summary: dict[str, Any]) -> list[Piece]:
    """Say whether an alternative was found."""
    chosen, sure = chosen_of(summary), f"{100 * summary['settings']['confidence']:g} %"
    margin = f"{summary['settings']['margin']:g}"
    if summary["verdict"] == "alternative":
        return [
            text("Yes: "),
            name(summary["chosen"]),
            text(f" is a less discriminatory alternative. With {sure} confidence its accuracy is lower than the "),
            text(f"baseline's by less than {margin} and its disparity is smaller: fairness "),
            figure(f"{level(summary['baseline']['fairness'])} → {level(chosen['fairness'])}"),
            text(", accuracy "),
            figure(f"{accuracy(summary['baseline']['accuracy'])} → {accuracy(chosen['accuracy'])}"),
            text("."),
        ]
    if summary["verdict"] == "none":
        asked = required_words(summary["requirement"])
        if not asked:
            none = "no candidate of this search is both less disparate than the baseline and less accurate by less than"
            return [text(f"None was found: with {sure} confidence {none} {margin}.")]
        return [
            text(f"None was found: with {sure} confidence the candidate that should have {asked}, "),
            name(summary["chosen"]),
            text(f", is not both less disparate than the baseline and less accurate by less than {margin}. "),
            text("The verdict is about this candidate alone; after it no other one was tested."),
        ]
    needed = chosen["rows_needed"]
    more = (
        f"It would take about {float(f'{needed:.1e}'):,.0f} rows in all to tell."
        if needed
        else "As the figures stand, no number of rows would show it."
    )
    return [
        text("It cannot be told whether "),
        name(summary["chosen"]),
        text(f" is a less discriminatory alternative, with {sure} confidence and a margin of {margin}. "),
        text(_sentence(summary["requirement"]["problem"] or more)),
    ]


def reasons(summary: dict[str, Any]) -> list[str]:
    """Say how the choice was made and what the verdict rests on."""
    requirement, rows = summary["requirement"], summary["rows"]
    found = []
    asked = required_words(requirement)
    if asked:
        sure = f"What is required is promised with confidence {requirement['confidence']:g}"
        known = _sentence((requirement["problem"] or sure).rstrip("."))
        found.append(
            f"The choice is, by the {rows['calibrate']:,} calibration rows, the likeliest to be shown to have {asked} "
            "and to be an alternative; where none is likely to be both, the most accurate of those that will more "
            f"likely than not be shown to have it. {known}."
        )
    else:
        found.append(
            "No level of fairness was required: the choice is the candidate with the largest gain in fairness among "
            f"those that, by the {rows['calibrate']:,} calibration rows, would probably be shown to be alternatives; "
            "where none would, the likeliest."
        )
    seen = (
        "each decided by a model that had not seen it,"
        if summary["settings"]["cross_fit"]
        else "which no model had seen,"
    )
    found.append(
        f"{summary['n_candidates']} candidates were looked at. The order of the tests was fixed on the calibration "
        f"rows; on the {rows['report']:,} report rows, {seen} they were tested one after the other "
        f"until one failed. So the probability of any false certificate is at most about "
        f"{1 - summary['settings']['confidence']:.3g}, however many candidates there were."
    )
    if summary["settings"]["cross_fit"]:
        found.append(
            "Every candidate is two models: each learned from one half of the rows and was tested on the other. The "
            "model that is handed over uses one of the two for each person, by a hash of the features, so that people "
            "with equal features get the same decision and each of the two decides about half of them, as in the test."
        )
    return found


def required_words(requirement: dict[str, Any]) -> str:
    """Return what was required in words; empty where nothing was."""
    words = {"min_fairness": "fairness", "min_ratio": "a ratio of rates"}
    wanted = {word: requirement[name] for name, word in words.items() if requirement[name] is not None}
    return " and ".join(f"{word} of at least {least:g}" for word, least in wanted.items())


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


def limits(summary: dict[str, Any]) -> list[str]:
    """Say what the search does not show."""
    found = [
        "The verdict is about people like those in the table and about this measure of fairness.",
        "The label is taken for the truth: nothing is said about labels that are themselves unjust.",
        "That no alternative was found is a statement about the candidates of this search.",
        "The tests are approximations for many rows; their measured error rates are in the documentation.",
    ]
    if summary["settings"]["cross_fit"]:
        found.append(
            "The search was cross-fitted: the errors of its two models, each on the rows of the other, are taken to be "
            "independent, which is an approximation."
        )
    if summary["baseline_name"] == "baseline":
        found += doubts(summary)
        found.append(
            "If the baseline was fitted to rows of this table, its accuracy here is too high, and the comparison is "
            "harder for the candidates than it should be."
        )
    else:
        found.append(f"No model in use was given: the baseline is {summary['baseline_name']}, the most accurate stack.")
    return found


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
