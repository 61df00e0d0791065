"""Run the benchmarks: ``python -m benchmarks [--only NAME] [--json FILE] [--markdown FILE]``."""

import argparse
import importlib
import json
import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ._common import Row

HERE = Path(__file__).parent
INTRODUCTION = (
    "`make bench`: every rival in the same run, in turn with ours, medians after a warm-up. A figure with the target",
    '"faster" is their time over ours; one with "≤" is ours over theirs. Absolute times mean little.',
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and write what the command line asks for; return 1 if a target is missed."""
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=names, help="run this module only; may be repeated")
    parser.add_argument("--json", type=Path, help="write the rows and the environment to this file")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    options = parser.parse_args(arguments)
    console = Console()
    rows: list[Row] = []
    for name in options.only or names:
        for row in importlib.import_module(f"benchmarks.bench_{name}").rows():
            console.print(f"[dim]{name}:[/] {row.work} / {row.against}: {figure(row)} ({row.detail})", highlight=False)
            rows.append(row)
    console.print(as_table(rows))
    if options.json:
        document = {"environment": environment(), "rows": [asdict(row) for row in rows]}
        options.json.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.markdown:
        options.markdown.write_text(as_markdown(rows), encoding="utf-8")
    return 0 if all(row.met for row in rows) else 1


def figure(row: Row) -> str:
    """Return the figure with as many digits as it deserves."""
    return f"{row.ratio:,.0f}" if row.ratio >= 100 else f"{row.ratio:.3g}"


def environment() -> dict[str, str]:
    """Return what the figures depend on."""
    packages = ("fairfrontier", "numpy", "scipy", "scikit-learn")
    return {
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": str(os.cpu_count()),
        "load before": ", ".join(f"{load:.2f}" for load in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown",
    } | {package: version(package) for package in packages}


def as_table(rows: Sequence[Row]) -> Table:
    """Return the table for a terminal."""
    table = Table("work", "against", "figure", "target", "met", "measured")
    for row in rows:
        table.add_row(
            row.work,
            row.against,
            figure(row),
            row.target,
            "[green]yes[/]" if row.met else "[red]no[/]",
            row.detail,
        )
    return table


def as_markdown(rows: Sequence[Row]) -> str:
    """Return the page: how it was measured, the table, and the measurements behind it."""
    facts = ", ".join(f"{name} {value}" for name, value in environment().items())
    lines = ["# Speed against rivals", "", *INTRODUCTION, "", f"Measured with {facts}.", ""]
    lines += ["| work | against | figure | target | met |", "|---|---|---:|---|---|"]
    lines += [
        f"| {row.work} | {row.against} | {figure(row)} | {row.target} | {'yes' if row.met else '**no**'} |"
        for row in rows
    ]
    lines += ["", "## What was measured", ""]
    lines += [f"- {row.work}, against {row.against}: {row.detail}." for row in rows]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
