"""The page of results."""

import platform
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
from tools.promise_study.constant import sentences
from tools.promise_study.level import table
from tools.promise_study.stacks import CALIBRATION_SHARE, CONFIDENCE, LEAST_RATIO, RATIO, SELDOM

PACKAGES = ("fairfrontier", "fairlearn", "oxonfair", "scikit-learn", "numpy", "scipy")
# The level of a promise, and what may be missed by chance: two standard errors.
_ERRORS = 2.0
# With fewer draws the share of misses in one setting says nothing.
_DRAWS_OF_A_SETTING = 20
_TITLE = (
    "| method | answers | miss | mean miss | worst miss | median − asked | accuracy − hindsight | without an answer |"
)
_RATIO_TITLE = (
    "| asked | method | answers | miss | mean miss | worst miss | median − asked | accuracy − hindsight | "
    "without an answer | mean miss ÷ error |"
)
_SETTING = ("name", "track", "measure", "rows", "draw", "constant", "unconstrained", "fairest")
_INTRODUCTION = """\
# The point you ask for is the point you get

{records:,} draws ({each} of each setting) from {names};
the attribute among the features or not,
demographic parity and equal opportunity (Adult's race and one simulated population have five groups). A quarter of each
data set trained a fixed set of base models; the other three quarters are the *population*. Rows are drawn from it with
replacement, and what is delivered is computed on all of it: the population is the distribution itself, so that a miss
is a miss and not the noise of a test set. A method *misses* if the fairness of its decisions (of their probabilities,
where it randomises) is below what was asked.

*Guaranteed*: {fit:.0%} of the rows fit the path and {calibration:.0%} show that it is fair, with confidence
{confidence:g}; *cross-fitted* shows it on out-of-fold decisions of all rows, and is approximate. A promise that
cannot be made is no answer, and no miss: a method that seldom answers seldom misses, so that both shares stand side
by side, and accuracies are over a method's own answers. *Hindsight* is the most accurate place of the path of all
rows, or the constant model, that is fair enough in the population. The rivals get all rows: ThresholdOptimizer,
OxonFair and error-parity post-process the unconstrained stack and see the group at prediction; ExponentiatedGradient
fits logistic regressions to the base models' scores, and half of the allowed difference is its bound, which is on the
distance to all rows.

The rivals were asked in the first draw of each setting, of the same rows but of the unconstrained stack of an earlier
state of version 0.2; the randomised promises and, with 1,000 rows,
ExponentiatedGradient, which takes longer than all others together, in one draw of each data set without the attribute
and for demographic parity; OxonFair and ExponentiatedGradient with two groups only, because of their time. {refused}
draws lacked a group and were refused.
"""
_LEVEL = """\
Simulated: models that favour one group, and a request that binds. A promise on rows of its own is exact: it is broken
in 5 % of the draws at most. One on out-of-fold decisions is an approximation, and this is how often it is broken. Both
shares are of all draws, also of those without a promise.
"""
_RATIO = """\
The request `min_ratio={ratio:g}` beside levels of fairness: {records:,} draws ({each} of each setting) from
{names};
demographic parity, the attribute among the features or not, without rivals; every request is made of the same draws
and the same stacks. What is delivered to it is the lowest rate of positive decisions divided by the highest, and 1
where all rates are 0. *Error* is the standard error with which a sample of as many rows as were drawn would show what
the decisions deliver: a ratio and a difference are on different scales, and misses in units of their errors are not.
The populations of COMPAS are too small for 5,000 rows.

Where few are selected, a ratio of {ratio:g} is a small difference, and as hard to promise as the fairness that goes
with it. The median fairness (1 − the difference of rates) that plain selections for the ratio deliver:
{fairness}.
"""
_BINDS = """\
Plain selections where the request binds: the unconstrained stack is below it, and some place of the path is not. By
design half of these miss. *Off* is what is delivered minus what is asked, divided by the error; selections without an
error (a rate is 0) are left out of it. An estimate from as many rows would be within two errors of the truth in 95 % of
the draws.
"""
Answer = dict[str, Any]


def page(
    records: list[dict[str, Any]],
    level: Sequence[dict[str, Any]] = (),
    constant: Sequence[dict[str, Any]] = (),
    ratio: Sequence[dict[str, Any]] = (),
) -> str:
    """Return the results as Markdown: the records of draws, the simulation of the level, and the random problems.

    Draws that were asked for a ratio have a section of their own; `ratio` are more of them.
    """
    answers = [answer for record in records for answer in _answers(record) if answer["request"] != RATIO]
    if not answers:
        return "# The point you ask for is the point you get\n\nThere are no records yet.\n"
    lines = [*_introduction(records), *_claims(answers), ""]
    for rows in sorted({answer["rows"] for answer in answers}):
        for asked in sorted({answer["asked"] for answer in answers}):
            some = [answer for answer in answers if answer["rows"] == rows and answer["asked"] == asked]
            lines += [f"## {rows:,} rows, asked {asked:g}", "", *_table(some), ""]
    lines += ["## Every setting", "", "Miss (share), and accuracy − hindsight, of the guaranteed selection:", ""]
    lines += [*_settings(answers), "", *_failures(answers)]
    lines += _ratio_section([*records, *ratio])
    if level:
        lines += ["## The level without rows of its own", "", _LEVEL, *table(list(level)), ""]
    if constant:
        lines += ["## Never below the constant model", "", *sentences(list(constant))]
    lines += _versions()
    return "\n".join(lines)


def _answers(record: dict[str, Any]) -> Iterable[Answer]:
    """Yield each result of a record with the setting that it belongs to."""
    for result in record["results"]:
        setting = {name: record[name] for name in _SETTING}
        if result["asked"] == RATIO:  # a ratio is a fairness too, on a scale of its own
            setting |= record["ratio"]
            result = result | {"asked": LEAST_RATIO} | ({"fairness": result["ratio"]} if "ratio" in result else {})
            request = RATIO
        else:
            request = f"{result['asked']:g}"
        yield setting | result | {"request": request, "hindsight": record["hindsight"][request]}


def _introduction(records: list[dict[str, Any]]) -> list[str]:
    said = _INTRODUCTION.format(
        **_counts(records),
        fit=1 - CALIBRATION_SHARE,
        calibration=CALIBRATION_SHARE,
        confidence=CONFIDENCE,
        refused=sum("refused" in record for record in records),
    )
    return [said]


def _counts(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the number of draws, in all and of a setting, and what they are from."""
    per_setting = Counter((record["name"], record["track"], record["measure"], record["rows"]) for record in records)
    return {
        "records": len(records),
        "each": " to ".join(str(count) for count in sorted({min(per_setting.values()), max(per_setting.values())})),
        "names": ", ".join(sorted({record["name"] for record in records})),
    }


def _claims(answers: list[Answer]) -> list[str]:
    """Return what was to be shown, with the figures that show it or do not."""
    lines = ["| to show | found |", "|---|---|"]
    for name in sorted({answer["method"] for answer in answers}):
        if "guaranteed" in name or "cross-fitted" in name:
            lines += _claims_of_promise(answers, name)
    for rows, limit in ((1_000, 0.01), (5_000, 0.003)):
        some = _answered(answers, "FairStacks", rows)
        for asked in sorted({answer["asked"] for answer in some}):
            off = [answer["fairness"] - asked for answer in some if answer["asked"] == asked and _binding(answer)]
            if off:
                lines.append(
                    f"| plain: median within {limit} of {asked:g} at {rows:,} rows, where the request binds | "
                    f"{np.median(off):+.4f} of {len(off)} |"
                )
    below = [
        ((answer["constant"] - answer["accuracy"]) * np.sqrt(answer["rows"]), answer)
        for answer in answers
        if _ours(answer) and answer["status"] == "ok"
    ]
    if below:
        errors, worst = max(below, key=lambda one: one[0])
        lines.append(
            f"| never below the constant model of the population beyond noise | {max(errors, 0.0):.1f} standard errors "
            f"(1/√n) at most: {worst['name']}, {worst['rows']:,} rows |"
        )
    return lines


def _claims_of_promise(answers: list[Answer], name: str) -> list[str]:
    """Return what was to be shown of a way to promise."""
    asked_so = list(_by_setting(answers, name))
    over = [_over(some) for some in asked_so]
    given = [answer for some in asked_so for answer in some if answer["status"] == "ok"]
    missed = sum(answer["fairness"] < answer["asked"] for answer in given)
    all_draws = sum(map(len, asked_so))
    draws = max(map(len, asked_so))
    settings = (
        f"{sum(value > 0 for value in over)} of {len(over)} settings above, with up to {draws} draws each"
        if draws >= _DRAWS_OF_A_SETTING
        else f"not to be told with {draws} draw(s) of each setting"
    )
    said = (
        f"| {name}: misses ≤ {1 - CONFIDENCE:.0%} + {_ERRORS:g} standard errors in every setting | {settings}; in all "
        f"{missed} missed of {len(given):,} promises made to {all_draws:,} requests, "
        f"{missed / max(len(given), 1):.1%} of the promises and {missed / all_draws:.1%} of the requests |"
    )
    lines = [said]
    for rows, limit in ((5_000, 0.005), (12_000, 0.002)):
        some, of_rows = _answered(answers, name, rows), _asked_so(answers, name, rows)
        if of_rows:
            cost = f"{-np.mean([_cost(answer) for answer in some]):.4f}" if some else "no promise"
            lines.append(
                f"| {name}: within {limit} of hindsight at {rows:,} rows | {cost}, in {len(some)} of {len(of_rows)} "
                "draws with a promise |"
            )
    return lines


def _table(answers: list[Answer]) -> list[str]:
    lines = [_TITLE, "|---|---|---|---|---|---|---|---|"]
    names = dict.fromkeys(answer["method"] for answer in answers)
    for name in names:
        lines.append(f"| {name} | {_figures([answer for answer in answers if answer['method'] == name])} |")
    return lines


def _figures(asked_so: list[Answer]) -> str:
    """Return the cells of a line of results: of all answers to one request, or to none."""
    given = [answer for answer in asked_so if answer["status"] == "ok"]
    if not given:
        return f"0 | | | | | | {len(asked_so)}"
    short = np.array([max(answer["asked"] - answer["fairness"], 0.0) for answer in given])
    off = np.median([answer["fairness"] - answer["asked"] for answer in given])
    cost = np.mean([_cost(answer) for answer in given])
    mean = short[short > 0].mean() if short.any() else 0.0
    return (
        f"{len(given)} | {np.mean(short > 0):.1%} | {mean:.4f} | {short.max():.4f} | {off:+.4f} | {cost:+.4f} | "
        f"{len(asked_so) - len(given)}"
    )


def _ratio_section(records: list[dict[str, Any]]) -> list[str]:
    """Return how a ratio is delivered, beside the levels of fairness that the same stacks were asked for."""
    known = {record["key"]: record for record in records if "ratio" in record}
    if not known:
        return []
    draws = list(known.values())
    answers = [answer for record in draws for answer in _answers(record)]
    said = _RATIO.format(ratio=LEAST_RATIO, fairness=_fairness_of_ratio(draws), **_counts(draws))
    lines = ["## A ratio of rates", "", said]
    for rows in sorted({answer["rows"] for answer in answers}):
        lines += [f"### {rows:,} rows, a ratio beside levels", "", _RATIO_TITLE, "|---" * 10 + "|"]
        of_rows = [answer for answer in answers if answer["rows"] == rows and _ours(answer)]
        of_rows = [answer for answer in of_rows if answer["method"] not in SELDOM]
        for name in dict.fromkeys(answer["method"] for answer in of_rows):
            for request in sorted({answer["request"] for answer in of_rows}):
                some = [answer for answer in of_rows if (answer["method"], answer["request"]) == (name, request)]
                lines.append(f"| {request} | {name} | {_figures(some)} | {_mean_miss_in_errors(some)} |")
        lines.append("")
    return [*lines, "### Where the request binds", "", _BINDS, *_binding_table(answers), ""]


def _fairness_of_ratio(records: list[dict[str, Any]]) -> str:
    """Return the median fairness, as a difference, of the plain selections for the ratio in each population."""
    found: dict[str, list[float]] = {}
    for record in records:
        for result in record["results"]:
            if (result["method"], result["asked"], result["status"]) == ("FairStacks", RATIO, "ok"):
                found.setdefault(record["name"], []).append(result["fairness"])
    return ", ".join(f"{name} {np.median(values):.3f}" for name, values in sorted(found.items()))


def _binding_table(answers: list[Answer]) -> list[str]:
    lines = [
        "| data | rows | asked | answers | miss | median − asked | median off | between −2 and 2 | below −2 |",
        "|---" * 9 + "|",
    ]
    plain = [answer for answer in answers if answer["method"] == "FairStacks" and _given(answer) and _binding(answer)]
    settings = sorted({(answer["name"], answer["rows"]) for answer in plain})
    everything = [("all", rows) for rows in sorted({answer["rows"] for answer in plain})]
    for name, rows in [*settings, *everything]:
        for request in sorted({answer["request"] for answer in plain}):
            some = [a for a in plain if a["rows"] == rows and a["request"] == request and name in (a["name"], "all")]
            off = np.array([answer["fairness"] - answer["asked"] for answer in some])
            # The constant model delivers exactly, and a sample would show it without an error.
            errors = np.array([one / answer["error"] for one, answer in zip(off, some, strict=True) if answer["error"]])
            if len(errors):
                lines.append(
                    f"| {name} | {rows:,} | {request} | {len(some)} | {np.mean(off < 0):.1%} | {np.median(off):+.4f} | "
                    f"{np.median(errors):+.2f} | {np.mean(np.abs(errors) <= 2):.1%} | {np.mean(errors < -2):.1%} |"
                )
    return lines


def _mean_miss_in_errors(answers: list[Answer]) -> str:
    missed = [
        answer for answer in answers if _given(answer) and answer["fairness"] < answer["asked"] and answer["error"]
    ]
    return f"{np.mean([(a['asked'] - a['fairness']) / a['error'] for a in missed]):.2f}" if missed else ""


def _settings(answers: list[Answer]) -> list[str]:
    name = "FairStacks guaranteed"
    asked = sorted({answer["asked"] for answer in answers})
    lines = [
        "| data | track | measure | rows | " + " | ".join(f"asked {a:g}" for a in asked) + " |",
        "|---" * (4 + len(asked)) + "|",
    ]
    settings = dict.fromkeys((a["name"], a["track"], a["measure"], a["rows"]) for a in answers)
    for setting in sorted(settings, key=lambda s: (s[0], s[1], s[2], s[3])):
        shown = []
        for level in asked:
            some = [a for a in answers if _setting(a) == (*setting, level) and a["method"] == name]
            given = [answer for answer in some if answer["status"] == "ok"]
            missed = sum(answer["fairness"] < level for answer in given)
            cost = f", {np.mean([_cost(answer) for answer in given]):+.4f}" if given else ""
            shown.append(f"{missed}/{len(some)} missed, {len(given)} answers{cost}" if some else "")
        lines.append(f"| {' | '.join(map(str, setting))} | {' | '.join(shown)} |")
    return lines


def _failures(answers: list[Answer]) -> list[str]:
    failed: dict[str, int] = {}
    for answer in answers:
        if answer["status"] == "failed":
            said = f"{answer['method']}: {answer['said'].splitlines()[0][:160]}"
            failed[said] = failed.get(said, 0) + 1
    if not failed:
        return []
    return ["## Failed", "", *(f"- {count} × {said}" for said, count in sorted(failed.items())), ""]


def _versions() -> list[str]:
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return [f"Python {sys.version.split()[0]} on {platform.system()} {platform.machine()}; {versions}.", ""]


def _setting(answer: Answer) -> tuple[Any, ...]:
    return tuple(answer[part] for part in ("name", "track", "measure", "rows", "asked"))


def _by_setting(answers: list[Answer], method: str) -> Iterable[list[Answer]]:
    """Yield the answers of a method in each setting and to each request, missing ones included."""
    found: dict[tuple[Any, ...], list[Answer]] = {}
    for answer in answers:
        if answer["method"] == method:
            found.setdefault(_setting(answer), []).append(answer)
    yield from found.values()


def _over(answers: list[Answer]) -> float:
    """Return how far the share of misses among all draws of a setting is above the level and its chance."""
    missed = np.mean([answer["status"] == "ok" and answer["fairness"] < answer["asked"] for answer in answers])
    level = 1.0 - CONFIDENCE
    return float(missed - level - _ERRORS * np.sqrt(level * (1.0 - level) / len(answers)))


def _answered(answers: list[Answer], method: str, rows: int) -> list[Answer]:
    return [answer for answer in _asked_so(answers, method, rows) if answer["status"] == "ok"]


def _asked_so(answers: list[Answer], method: str, rows: int) -> list[Answer]:
    return [answer for answer in answers if answer["method"] == method and answer["rows"] == rows]


def _cost(answer: Answer) -> float:
    return float(answer["accuracy"] - answer["hindsight"])


def _binding(answer: Answer) -> bool:
    """Tell whether the request lies between the unconstrained stack and the fairest of the path."""
    return bool(answer["unconstrained"] < answer["asked"] <= answer["fairest"])


def _given(answer: Answer) -> bool:
    return bool(answer["status"] == "ok")


def _ours(answer: Answer) -> bool:
    return str(answer["method"]).startswith("FairStacks")
