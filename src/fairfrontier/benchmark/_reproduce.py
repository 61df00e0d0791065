"""Reproduce the paper's tables and figures in one folder, continuing where an earlier run stopped."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairfrontier._validation import number, one_of
from fairfrontier._writing import remove_abandoned, write_atomically
from fairfrontier.benchmark._averages import DELIVERED, FIGURES, TableSummary, cpu_seconds, summarise_table
from fairfrontier.benchmark._families import FULL, SETTINGS
from fairfrontier.benchmark._methods import CHAMPIONS, METHODS, own_methods
from fairfrontier.benchmark._paper_tables import (
    comparison_markdown,
    delivered_page,
    latex,
    markdown,
    notes,
    save_figures,
    table_csv,
    table_title,
)
from fairfrontier.benchmark._records import IN_X, TRACKS, Cell, Record, RecordStore
from fairfrontier.benchmark._run import Listener, plan_cells, run
from fairfrontier.benchmark._task_data import Method
from fairfrontier.benchmark._tasks import TASKS, UserTable, prepare_table
from fairfrontier.exceptions import InvalidInputError

TABLES = tuple(METHODS)
# What a folder with the results of a user's table is about.
DATA_FILE = "data.json"
_MORE_FIGURES = (
    DELIVERED,
    "fauc_honest",
    "fauc_single",
    "fauci",
    "fauc_signed",
    "accuracy_95",
    "accuracy_99",
    "max_accuracy",
    "fauc_exp_mse",
)


@dataclass(frozen=True)
class Reproduction:
    """What to reproduce.

    Attributes
    ----------
    out : Path
        Folder of the results: tables, figures, ``records.jsonl.gz``.
    tables : tuple of str
        "dp" (Table 1), "eo" (Table A1), "multi" (Table A2).
    tasks, methods : tuple of str
        Names of the only ones to run; empty: all.
    splits : tuple of int
        Numbers of the splits.
    jobs : int
        Processes.
    settings : str
        "full", "paper-grids" (the fair learners' parameters as in the paper), "quick" (small families, fewer rows) or
        "tiny".
    cache : Path or None
        Folder of the single records and of base learners' predictions; None: ``.cache`` in `out`.
    redo : bool
        Run all cells, also those that have a record.
    tracks : tuple of str
        "in-x" (the attribute among the features, the paper's protocol) and "blind" (its columns removed).
    data : UserTable or None
        A user's table instead of the paper's tasks.
    own : tuple of str
        Learners beside the methods of the tables, ``module:Class``; see `own_methods`.
    """

    out: Path
    tables: tuple[str, ...] = TABLES
    tasks: tuple[str, ...] = ()
    methods: tuple[str, ...] = ()
    splits: tuple[int, ...] = tuple(range(10))
    jobs: int = 1
    settings: str = FULL.name
    cache: Path | None = None
    redo: bool = False
    tracks: tuple[str, ...] = (IN_X,)
    data: UserTable | None = None
    own: tuple[str, ...] = ()

    @property
    def folders(self) -> tuple[Path, Path]:
        """Return where single records and base learners' predictions are kept."""
        cache = self.out / ".cache" if self.cache is None else self.cache
        return cache / "cells", cache / "predictions"

    def store(self) -> RecordStore:
        """Return the records."""
        return RecordStore(self.folders[0], self.out / "records.jsonl.gz", self.settings)

    def cells(self) -> list[Cell]:
        """Return the cells in the order of work.

        Raises
        ------
        InvalidInputError
            If a table, task, method, split or the number of jobs is not one that exists, or the folder has the results
            of other settings.
        """
        for table in self.tables:
            one_of(table, TABLES, parameter="tables")
        for track in self.tracks:
            one_of(track, tuple(TRACKS), parameter="tracks")
        if self.data is not None and self.tasks:
            raise InvalidInputError(f"tasks must not be given with data, which is the only task; got {self.tasks!r}")
        for task in self.tasks:
            one_of(task, tuple(TASKS), parameter="tasks")
        own = own_methods(self.own)
        known = dict.fromkeys([*(key for table in self.tables for key in METHODS[table]), *own])
        for method in self.methods:
            one_of(method, tuple(known), parameter="methods")
        one_of(self.settings, tuple(SETTINGS), parameter="settings")
        number(self.jobs, parameter="jobs", low=1)
        if not self.splits or min(self.splits) < 0:
            raise InvalidInputError(f"splits must be one or more numbers from 0 on; got {self.splits!r}")
        tasks = self.tasks or None
        if self.data is not None:
            prepare_table(self.data)  # errors of the file come before any work
            tasks = (self.data.task.name,)
        cells = plan_cells(self.tables, self.splits, tasks, self.methods or None, tracks=self.tracks, own=tuple(own))
        if not cells:
            raise InvalidInputError(
                f"tasks and methods must leave something to do; no table of {self.tables!r} has tasks {self.tasks!r} "
                f"and methods {self.methods!r}"
            )
        self._check_folder()
        return cells

    def _check_folder(self) -> None:
        """Refuse a folder whose tables and figures, of other settings, this run would replace."""
        store = self.store()
        others = store.others()
        if others:
            raise InvalidInputError(
                f"out must be a folder without results of other settings; {str(self.out)!r} has those of "
                f"{', '.join(others)}, and this run is {self.settings}: choose another folder"
            )
        mark = self.out / DATA_FILE
        kept = json.loads(mark.read_text(encoding="utf-8")) if mark.is_file() else None
        has_records = store.collection.is_file()
        if (has_records or kept) and kept != (None if self.data is None else self.data.identity()):
            raise InvalidInputError(
                f"out must be a folder without results of other data; {str(self.out)!r} has those of "
                f"{'the data sets of the package' if kept is None else kept.get('file')}, or of another version of the "
                "file: choose another folder"
            )


def reproduce(reproduction: Reproduction, listener: Listener | None = None) -> list[Path]:
    """Run what has no record yet, and write records, tables and figures.

    Parameters
    ----------
    reproduction : Reproduction
        What to reproduce, and into which folder.
    listener : Listener, optional
        Called with each new record.

    Returns
    -------
    list of Path
        The files that were written.
    """
    cells = reproduction.cells()
    for folder in (reproduction.out, *reproduction.folders):
        remove_abandoned(folder, everywhere=True)
    if reproduction.data is not None:
        about = reproduction.data.identity()
        write_atomically(reproduction.out / DATA_FILE, (json.dumps(about, indent=1) + "\n").encode())
    try:
        run(cells, reproduction, listener)
    finally:
        # Also after an interruption, so that the tables show what is finished.
        written = write_results(reproduction)
    return written


def write_results(reproduction: Reproduction) -> list[Path]:
    """Write the collection of records, the tables and the figures from the records on disk."""
    store = reproduction.store()
    records = list(store.load().values())
    if not records:
        return []
    store.collect()
    summaries = summarise_all(records, own_methods(reproduction.own))
    texts: dict[str, str] = {}
    for summary in summaries:
        texts[f"tables/{summary.name}.md"] = _page(summary, records)
        texts[f"tables/{summary.name}.csv"] = table_csv(summary)
        texts[f"tables/{summary.name}.tex"] = latex(summary)
    texts |= {"tables/delivered.md": delivered_page(summaries), "run.md": _facts(records)}
    for name, text in texts.items():
        write_atomically(reproduction.out / name, text.encode())
    written = [store.collection, *(reproduction.out / name for name in texts)]
    return written + save_figures(summaries, reproduction.out / "figures")


def summarise_all(records: Sequence[Record], own: Mapping[str, Method] | None = None) -> list[TableSummary]:
    """Return the summaries of the tables and tracks that have records: blind first, which is the harder question."""
    found = [summarise_table(records, table, track, own) for table in TABLES for track in reversed(TRACKS)]
    return [summary for summary in found if summary.tasks]


def _origin(records: Sequence[Record]) -> str:
    """Return, in words, which settings records are of, and how many splits."""
    of_task: dict[str, set[int]] = {}
    for record in records:
        of_task.setdefault(record.task, set()).add(record.split)
    fewest, most = (best(map(len, of_task.values())) for best in (min, max))
    number = f"{fewest}" if fewest == most else f"{fewest} to {most}"
    return f"Settings: {records[0].settings}, {number} split{'s' if most > 1 else ''}."


def _page(summary: TableSummary, records: Sequence[Record]) -> str:
    """Return a table with its notes, comparisons and further figures as one Markdown page."""
    of_table = [one for one in records if one.table == summary.table and one.track == summary.track]
    origin = _origin(of_table)
    parts = [f"# {table_title(summary)}\n", f"{origin}\n", markdown(summary), notes(summary)]
    paired = comparison_markdown(summary)
    if paired:
        parts += [
            f"## {METHODS[summary.table][CHAMPIONS[summary.table]].title} minus each rival\n",
            paired,
            "Difference of FAUC, paired over splits (standard error); wins of the first / number of splits.\n",
        ]
    for figure in _MORE_FIGURES:
        if any(entry.estimate(figure) is not None for entry in summary.entries.values()):
            parts += [f"## {FIGURES[figure]}\n", markdown(summary, figure)]
    return "\n".join(parts)


def _facts(records: Sequence[Record]) -> str:
    """Return a page on the run: settings, times, versions."""
    training, rest = cpu_seconds(records)
    counts = {status: sum(record.status == status for record in records) for status in ("done", "failed")}
    splits = sorted({record.split for record in records})
    lines = [
        "# The run\n",
        f"- {_origin(records)}",
        f"- Records: {counts['done']} done, {counts['failed']} failed, of splits {splits[0]} to {splits[-1]}.",
        f"- CPU hours: {training / 3600:.2f} to train base learners, each once; {rest / 3600:.2f} for everything else.",
    ]
    for table in TABLES:
        own = [record for record in records if record.table == table]
        lines.append(f"- CPU time of the table {table!r} alone: {sum(cpu_seconds(own)) / 3600:.2f} h.")
    lines.append("- Seeds: every seed is a hash of data set, split and family; nothing else is random.")
    used = {name: dict.fromkeys(record.versions.get(name, "") for record in records) for name in records[0].versions}
    lines += [f"- {name}: {', '.join(sorted(values))}" for name, values in used.items()]
    return "\n".join(lines) + "\n"
