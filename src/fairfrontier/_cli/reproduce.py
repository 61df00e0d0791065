"""The command `reproduce`: the tables and figures, of the paper's tasks or of a user's table."""

import time
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fairfrontier._cli import console as terminal
from fairfrontier._validation import one_of
from fairfrontier.exceptions import InvalidInputError

if TYPE_CHECKING:
    from fairfrontier.benchmark import Record, Reproduction, TableSummary, UserTable

_PARTS = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("cells"))


def run_reproduce(reproduction: "Reproduction") -> None:
    """Run what was asked, show how it goes, and print the tables."""
    from fairfrontier.benchmark import own_methods
    from fairfrontier.benchmark._reproduce import summarise_all
    from fairfrontier.benchmark._tasks import prepare_table

    console = terminal.make_console()
    if reproduction.data is not None:
        for note in prepare_table(reproduction.data).notes:
            console.print(Text(note), soft_wrap=True)
    files = run_shown(reproduction, console)
    records = list(reproduction.store().load().values())
    for summary in summarise_all(records, own_methods(reproduction.own)):
        if summary.table in reproduction.tables and summary.track in reproduction.tracks:
            console.print(summary_table(summary))
    out = reproduction.out
    terminal.print_files(console, out, [str(file.relative_to(out)) for file in files])


def check_splits(splits: int | None, *, quick: bool) -> int:
    """Return the number of splits of a run."""
    number = (2 if quick else 10) if splits is None else splits
    if number < 1:
        raise InvalidInputError(f"--splits must be at least 1; got {number}")
    return number


def user_table(
    data: Path | None,
    label: str | None,
    sensitive: str | None,
    positive: str | None,
    drop: Sequence[str] | None,
    keep: Sequence[str] | None,
) -> "UserTable | None":
    """Return the user's table of the options; None: the paper's tasks are meant."""
    if data is None:
        about = {"--label": label, "--sensitive": sensitive, "--positive": positive, "--drop": drop, "--keep": keep}
        for option, value in about.items():
            if value:
                raise InvalidInputError(f"{option} needs --data, the file that it is about; got none")
        return None
    from fairfrontier._cli.table import positive_label
    from fairfrontier.benchmark import UserTable
    from fairfrontier.benchmark._tasks import label_values

    for option, value in (("--label", label), ("--sensitive", sensitive)):
        if value is None:
            raise InvalidInputError(f"{option} must be given with --data: the column of the file; got none")
    found = label_values(data, label or "")
    if positive is None and len(found) == 2:
        (_, positive), guess = positive_label({text: text for text in found}, label or "", None)
        if guess:
            terminal.make_console().print(Text(guess), soft_wrap=True)
    return UserTable(data, label or "", sensitive or "", positive, tuple(drop or ()), tuple(keep or ()))


def settings_of(quick: bool, grid: str) -> str:
    """Return the name of the sizes of a run."""
    one_of(grid, ("ours", "paper"), parameter="--grid")
    if quick and grid == "paper":
        raise InvalidInputError("--grid paper must be run in full; got --quick as well: leave one of them out")
    return "quick" if quick else "paper-grids" if grid == "paper" else "full"


def listed(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of repeated options and of lists with commas, each once."""
    return tuple(dict.fromkeys(word.strip() for text in given or () for word in text.split(",") if word.strip()))


def run_shown(reproduction: "Reproduction", console: Console) -> list[Path]:
    """Run a reproduction and show how it goes: a live display on a terminal, one line per cell elsewhere."""
    from fairfrontier.benchmark import Listener, own_methods, reproduce, summarise_table
    from fairfrontier.benchmark._run import unfinished

    cells = reproduction.cells()
    left = cells if reproduction.redo else unfinished(cells, reproduction)
    if not console.is_terminal:
        console.print(Text(f"{len(cells)} cells, {len(left)} to do"))
        return reproduce(reproduction, Listener(_line_printer(console, len(left))))
    progress = Progress(*_PARTS, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
    bar = progress.add_task("Reproducing", total=len(left))
    known, own = reproduction.store().load(), own_methods(reproduction.own)
    with Live(progress, console=console, refresh_per_second=2) as live:

        def on_record(record: "Record") -> None:
            progress.advance(bar)
            known[record.cell] = record
            summary = summarise_table(known.values(), record.table, record.track, own)
            live.update(Group(summary_table(summary), progress))

        def on_step(text: str) -> None:
            progress.update(bar, description=text)

        return reproduce(reproduction, Listener(on_record, on_step))


def _line_printer(console: Console, total: int) -> "Callable[[Record], None]":
    """Return the function that prints one line per record, for logs."""
    done, start = count(1), time.monotonic()

    def on_record(record: "Record") -> None:
        number, passed = next(done), time.monotonic() - start
        left = passed / number * (total - number)
        figure = record.status if record.fauc is None else f"FAUC {record.fauc:.4f}"
        what = f"{record.table} {record.track} {record.task} split {record.split} {record.method}: {figure}"
        line = f"{number}/{total}  {passed:.0f} s, about {left:.0f} s left  {what}  {record.reason}"
        console.print(Text(line.rstrip()), soft_wrap=True)

    return on_record


def summary_table(summary: "TableSummary") -> Table:
    """Return the table of delivered FAUC so far: of means over the splits that are done."""
    from fairfrontier.benchmark._averages import DELIVERED
    from fairfrontier.benchmark._paper_tables import AWARE, column_title, short, table_title

    # The table of several attributes evaluates stacks for attributes that they were not chosen for.
    figure = "fauc" if summary.table == "multi" else DELIVERED
    name = "FAUC" if figure == "fauc" else "Delivered FAUC"
    table = Table(title=f"{name} so far: {table_title(summary)}", title_justify="left", title_style="bold", box=None)
    table.add_column("method")
    for task in summary.tasks:
        table.add_column(column_title(task), justify="right")
    for method in summary.methods:
        cells = [Text(method.title + (f" {AWARE}" if method.aware else ""))]
        for task in summary.tasks:
            entry = summary.entry(method, task)
            found = entry.estimate(figure)
            missing = "failed" if entry.failed else "–" if not entry.applies else ""
            best = summary.best(task, aware=method.aware, figure=figure) == method.key
            cells.append(Text(missing if found is None else short(found.mean), style="bold" if best else ""))
        table.add_row(*cells)
    return table
