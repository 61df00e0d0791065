"""Write the results as Markdown."""

from collections.abc import Iterable, Mapping
from typing import Any


def page(records: list[dict[str, Any]], parts: Iterable[str], same: Mapping[str, str], *, each: int, seed: int) -> str:
    """Return the table of killed mutants and the list of survivors; `same` says why some of them change nothing."""
    lines = [
        "# Small faults that the tests notice",
        "",
        "A mutant is the library with one small fault: a comparison that takes or leaves its limit, + for −, × for ÷,",
        "`and` for `or`, a lost `not` or sign, a number that is one larger, a condition turned round, a result that is",
        "lost. Words, types and the looks of drawings (widths of lines, sizes) are left alone. A mutant is killed when",
        "a test fails; of the tests that reach its statement the quickest are run, up to 40 seconds of them.",
        "",
        "| part | run | killed at first | survivors that change nothing | others: killed at first | killed now |",
        "|---|---|---|---|---|---|",
    ]
    total = []
    for part in parts:
        mine = [one for one in records if one["part"] == part]
        total += mine
        if mine:
            lines.append(_row(part, mine, same))
    lines += [
        "",
        "Tests were written for survivors of the first run: *killed at first* says how good the tests were before,",
        "*killed now* that nothing which was looked at is left.",
        "",
        f"    python -m tools.mutants --each {each} --seed {seed} --records results/mutants.jsonl",
        "",
        "## Survivors",
        "",
    ]
    for one in total:
        if not one["killed"]:
            why = same.get(one["key"], "a difference that no test sees")
            lines.append(f"- `{one['path'].removeprefix('src/fairfrontier/')}:{one['line']}` {one['change']}: {why}")
    return "\n".join([*lines, ""])


def _row(part: str, mine: list[dict[str, Any]], same: Mapping[str, str]) -> str:
    first, now = sum(one["first"] for one in mine), sum(one["killed"] for one in mine)
    nothing = sum(not one["killed"] and one["key"] in same for one in mine)
    others = len(mine) - nothing
    shares = " | ".join(f"{one} ({one / others:.1%})" if others else "–" for one in (first, now))
    return f"| {part} | {len(mine)} | {first} ({first / len(mine):.1%}) | {nothing} | {shares} |"
