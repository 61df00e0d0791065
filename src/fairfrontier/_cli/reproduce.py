"""The command `reproduce`: the paper's tables and figures, with a display that fills in while it runs."""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fairfrontier._cli import console as terminal
from fairfrontier._cli.output import check_output
from fairfrontier.exceptions import InvalidInputError

if TYPE_CHECKING:
    from fairfrontier.benchmark import Record, Reproduction

_PARTS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("cells"))


def run_reproduce(
    out: Path,
    table: Sequence[str] | None,
    tasks: Sequence[str] | None,
    methods: Sequence[str] | None,
    *,
    splits: int | None,
    jobs: int,
    quick: bool,
    cache: Path | None,
    redo: bool,
) -> None:
    """Run what was asked, show how it goes, and print the tables."""
    from fairfrontier.benchmark import Reproduction
    from fairfrontier.benchmark._reproduce import TABLES

    check_output(out, (), force=True)
    count = (2 if quick else 10) if splits is None else splits
    if count < 1:
        raise InvalidInputError(f"--splits must be at least 1; got {count}")
    reproduction = Reproduction(
        out=out,
        tables=_words(table) or TABLES,
        tasks=_words(tasks),
        methods=_words(methods),
        splits=tuple(range(count)),
        jobs=jobs,
        settings="quick" if quick else "full",
        cache=cache,
        redo=redo,
    )
    console = terminal.make_console()
    files = run_shown(reproduction, console)
    records = reproduction.folders.store().load()
    for name in reproduction.tables:
        console.print(fauc_table(records.values(), name))
    terminal.print_files(console, out, [str(file.relative_to(out)) for file in files])


def _words(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of repeated options and of lists with commas, each once."""
    return tuple(dict.fromkeys(word.strip() for text in given or () for word in text.split(",") if word.strip()))


def run_shown(reproduction: "Reproduction", console: Console) -> list[Path]:
    """Run a reproduction and show how it goes: a live display on a terminal, one line per cell elsewhere."""
    from fairfrontier.benchmark import Listener, reproduce
    from fairfrontier.benchmark._runner import unfinished

    cells = reproduction.cells()
    left = cells if reproduction.redo else unfinished(cells, reproduction.folders)
    if not console.is_terminal:
        console.print(Text(f"{len(cells)} cells, {len(left)} to do"))
        lines = _Lines(console, len(left))
        return reproduce(reproduction, Listener(lines.on_record))
    progress = Progress(*_PARTS, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
    bar = progress.add_task("Reproducing", total=len(left))
    known = reproduction.folders.store().load()
    with Live(progress, console=console, refresh_per_second=2) as live:

        def on_record(record: "Record") -> None:
            progress.advance(bar)
            known[record.cell] = record
            live.update(Group(fauc_table(known.values(), record.table), progress))

        def on_step(text: str) -> None:
            progress.update(bar, description=text)

        return reproduce(reproduction, Listener(on_record, on_step))


class _Lines:
    """One line a record, for logs."""

    def __init__(self, console: Console, total: int) -> None:
        self._console, self._total, self._done, self._start = console, total, 0, time.monotonic()

    def on_record(self, record: "Record") -> None:
        self._done += 1
        passed = time.monotonic() - self._start
        left = passed / self._done * (self._total - self._done)
        figure = record.status if record.fauc is None else f"FAUC {record.fauc:.4f}"
        what = f"{record.table} {record.task} split {record.split} {record.method}: {figure}"
        line = f"{self._done}/{self._total}  {passed:.0f} s, about {left:.0f} s left  {what}  {record.reason}"
        self._console.print(Text(line.rstrip()), soft_wrap=True)


def fauc_table(records: Iterable["Record"], name: str) -> Table:
    """Return the table of FAUC so far: means over the splits that are done."""
    from fairfrontier.benchmark._paper_tables import AWARE, TITLES, column_title, short
    from fairfrontier.benchmark._summary import summarise_table

    summary = summarise_table(records, name)
    table = Table(title=f"FAUC so far: {TITLES[name]}", title_justify="left", title_style="bold", box=None)
    table.add_column("method")
    for task in summary.tasks:
        table.add_column(column_title(task), justify="right")
    for method in summary.methods:
        cells = [Text(method.title + (f" {AWARE}" if method.aware else ""))]
        for task in summary.tasks:
            entry = summary.entry(method, task)
            found = entry.estimate()
            missing = "failed" if entry.failed else "–" if not entry.applies else ""
            best = summary.best(task, aware=method.aware) == method.key
            cells.append(Text(missing if found is None else short(found.mean), style="bold" if best else ""))
        table.add_row(*cells)
    return table
