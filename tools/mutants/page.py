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
        "| part | mutants | killed | share | survivors that change nothing |",
        "|---|---|---|---|---|",
    ]
    total = []
    for part in parts:
        mine = [one for one in records if one["part"] == part]
        total += mine
        if mine:
            lines.append(_row(part, mine, same))
    lines += [_row("**all**", total, same)] if total else []
    lines += [
        "",
        "The share is of all mutants, also of those that change nothing anybody could see.",
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
    killed = sum(one["killed"] for one in mine)
    nothing = sum(not one["killed"] and one["key"] in same for one in mine)
    return f"| {part} | {len(mine)} | {killed} | {killed / len(mine):.1%} | {nothing} |"
