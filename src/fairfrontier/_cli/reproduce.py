"""The command `reproduce`: the tables and figures, of the paper's tasks or of a user's table."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from fairfrontier._cli import console as terminal
from fairfrontier._cli.output import check_output
from fairfrontier._validation import one_of
from fairfrontier.exceptions import InvalidInputError

if TYPE_CHECKING:
    from fairfrontier.benchmark import Record, Reproduction, TableSummary, UserTable

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
    tracks: Sequence[str] | None = None,
    own: Sequence[str] | None = None,
    data: "UserTable | None" = None,
    grid: str = "ours",
) -> None:
    """Run what was asked, show how it goes, and print the tables."""
    from fairfrontier.benchmark import TRACKS, Reproduction, own_methods
    from fairfrontier.benchmark._reproduce import TABLES, summarise_all

    check_output(out, (), force=True)
    count = (2 if quick else 10) if splits is None else splits
    if count < 1:
        raise InvalidInputError(f"--splits must be at least 1; got {count}")
    reproduction = Reproduction(
        out=out,
        tables=_words(table) or (TABLES if data is None else ("dp", "eo")),
        tasks=_words(tasks),
        methods=_words(methods),
        tracks=_words(tracks) or tuple(TRACKS),
        own=_words(own),
        data=data,
        splits=tuple(range(count)),
        jobs=jobs,
        settings=_settings(quick, grid),
        cache=cache,
        redo=redo,
    )
    console = terminal.make_console()
    if data is not None:
        for note in prepared_notes(data):
            console.print(Text(note), soft_wrap=True)
    files = run_shown(reproduction, console)
    records = list(reproduction.folders.store().load().values())
    for summary in summarise_all(records, own_methods(reproduction.own)):
        if summary.table in reproduction.tables and summary.track in reproduction.tracks:
            console.print(summary_table(summary))
    terminal.print_files(console, out, [str(file.relative_to(out)) for file in files])


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


def prepared_notes(data: "UserTable") -> tuple[str, ...]:
    """Return what was left out or changed in a user's table."""
    from fairfrontier.benchmark._tasks import prepare_table

    return prepare_table(data).notes


def _settings(quick: bool, grid: str) -> str:
    """Return the name of the sizes of a run."""
    one_of(grid, ("ours", "paper"), parameter="--grid")
    if quick and grid == "paper":
        raise InvalidInputError("--grid paper must be run in full; got --quick as well: leave one of them out")
    return "quick" if quick else "paper-grids" if grid == "paper" else "full"


def _words(given: Sequence[str] | None) -> tuple[str, ...]:
    """Return the words of repeated options and of lists with commas, each once."""
    return tuple(dict.fromkeys(word.strip() for text in given or () for word in text.split(",") if word.strip()))


def run_shown(reproduction: "Reproduction", console: Console) -> list[Path]:
    """Run a reproduction and show how it goes: a live display on a terminal, one line per cell elsewhere."""
    from fairfrontier.benchmark import Listener, own_methods, reproduce, summarise_table
    from fairfrontier.benchmark._run import unfinished

    cells = reproduction.cells()
    left = cells if reproduction.redo else unfinished(cells, reproduction.folders)
    if not console.is_terminal:
        console.print(Text(f"{len(cells)} cells, {len(left)} to do"))
        lines = _Lines(console, len(left))
        return reproduce(reproduction, Listener(lines.on_record))
    progress = Progress(*_PARTS, TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(), console=console)
    bar = progress.add_task("Reproducing", total=len(left))
    known, own = reproduction.folders.store().load(), own_methods(reproduction.own)
    with Live(progress, console=console, refresh_per_second=2) as live:

        def on_record(record: "Record") -> None:
            progress.advance(bar)
            known[record.cell] = record
            summary = summarise_table(known.values(), record.table, record.track, own)
            live.update(Group(summary_table(summary), progress))

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
        what = f"{record.table} {record.track} {record.task} split {record.split} {record.method}: {figure}"
        line = f"{self._done}/{self._total}  {passed:.0f} s, about {left:.0f} s left  {what}  {record.reason}"
        self._console.print(Text(line.rstrip()), soft_wrap=True)


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
