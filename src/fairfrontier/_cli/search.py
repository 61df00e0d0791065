"""The commands `search` and `verify`: from a file to a certified alternative, and every figure of it once more."""

import json
import math
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import datasets
from fairfrontier._cli.options import check_column, shown
from fairfrontier._cli.table import MAX_GROUPS, open_file, positive_label, sensitive_bands
from fairfrontier._extras import require
from fairfrontier._persistence import save
from fairfrontier._validation import one_of, whole_number
from fairfrontier._version import __version__
from fairfrontier._writing import to_csv, write_atomically
from fairfrontier.chunks._files import column_values, read_table
from fairfrontier.exceptions import GroupError, InvalidInputError
from fairfrontier.limit import AchievableFrontier, achievable_frontier
from fairfrontier.limit._achievable import TRACKS
from fairfrontier.report._dossier import render_dossier
from fairfrontier.report._outputs import print_page
from fairfrontier.report._prepare import as_labels, as_text, in_bands, in_known_order
from fairfrontier.report._words import achievable_summary
from fairfrontier.search import FairSearch, summarise_search, verify_search
from fairfrontier.search._summary import FILES, PDF, sealed
from fairfrontier.search._table import Columns, read_columns

SEARCH_OUTPUTS = (*FILES, "summary.json")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|sec|m|min|h)?", re.I)
_SECONDS = {"s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_DATASETS = ("adult", "bank", "compas", "default")


@dataclass(frozen=True, eq=False)
class SearchTable:
    """The table of a search: features, label, groups, the baseline, and what there is to know about it."""

    source: str  # where it comes from
    columns: Columns  # all columns that may be features
    y: NDArray[np.bool_]  # (n,): the label
    labels: tuple[str, str]  # the negative and the positive label
    sensitive: dict[str, NDArray[Any]]  # the groups
    baseline: NDArray[Any] | None  # scores or decisions of the model in use
    drop: tuple[str, ...]  # columns that hold the attribute under another name
    others: tuple[str, ...]  # columns with another purpose: the label and the model in use
    notes: tuple[str, ...]  # what was guessed, and what was left out


def parse_duration(text: str) -> float:
    """Return the seconds of a text such as ``90s``, ``10m`` or ``1.5h``.

    Examples
    --------
    >>> parse_duration("10m"), parse_duration("45")
    (600.0, 45.0)
    """
    found = _DURATION.fullmatch(text.strip())
    if found is None or float(found[1]) == 0.0:
        raise InvalidInputError(f"--time must be like 90s, 10m or 1h; got {text!r}")
    return float(found[1]) * _SECONDS[(found[2] or "s").lower()]


def search_table(
    file: Path | None, dataset: str | None, *, label: str | None, sensitive: Sequence[str], **columns: Any
) -> SearchTable:
    """Return the table of a search: that of a file, or an embedded data set."""
    if (file is None) == (dataset is None):
        raise InvalidInputError("give one of FILE and --dataset: the table to search")
    if dataset is not None:
        if label is not None or columns["baseline"] is not None:
            raise InvalidInputError("--label and --baseline name columns of FILE; a data set has its own label")
        return dataset_table(dataset, sensitive)
    if file is None or label is None or not sensitive:
        raise InvalidInputError("--label and --sensitive must name columns of FILE")
    return read_search(file, label=label, sensitive=sensitive, **columns)


def read_search(
    file: Path,
    *,
    label: str,
    sensitive: Sequence[str],
    baseline: str | None,
    positive: str | None,
    missing: str = "error",
    min_group: int = 1,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> SearchTable:
    """Read the table of a search from a file; groups with fewer rows than `min_group` are left out."""
    one_of(missing, ("error", "drop"), parameter="--missing")
    whole_number(min_group, parameter="--min-group", low=1)
    table = open_file(file, delimiter=delimiter, encoding=encoding)
    check_column(table, label, option="--label")
    bands = sensitive_bands(table, sensitive)
    if baseline is not None:
        check_column(table, baseline, option="--baseline")
    roles = [label, *bands, *([] if baseline is None else [baseline])]
    twice = next((name for name in roles if roles.count(name) > 1), None)
    if twice is not None:
        raise InvalidInputError(
            f"--label, --sensitive and --baseline must name different columns; got {twice!r} for two of them"
        )
    text_columns = [name for name in (label, *bands) if not bands.get(name)]
    native = read_table(table, text=text_columns)
    columns = read_columns(native, parameter=file.name, text=text_columns)
    written, codes = as_labels(column_values(native.column(label).combine_chunks()))
    known = codes >= 0
    groups = {name: in_bands(columns[name], limits) if limits else columns[name] for name, limits in bands.items()}
    for name, values in groups.items():
        found, of_row = as_text(values)
        if len(found) > MAX_GROUPS:
            raise GroupError(
                f"--sensitive {name!r} must be a set of groups; it has {len(found):,} values ({shown(found, 4)}): cut "
                f"numbers into bands, as in --sensitive {name}:18,40"
            )
        known &= of_row >= 0
    score = None if baseline is None else columns[baseline]
    if score is not None:
        known &= as_text(score)[1] >= 0
    notes = list(table.notes)
    if not known.all():
        if missing == "error":
            raise InvalidInputError(
                f"--label, --sensitive and --baseline must have a value in each row; row {int(np.argmin(known)) + 1} "
                f"has none ({int((~known).sum()):,} such rows): pass --missing drop"
            )
        notes.append(f"{int((~known).sum()):,} of {len(known):,} rows were left out because they lack a value.")
    labels, guess = positive_label(written, label, positive, of_numbers="make a column of two values of it")
    notes += [guess] if guess else []
    large = _of_large_groups({name: values[known] for name, values in groups.items()}, min_group, notes)
    known[known] = large
    features = {name: values[known] for name, values in columns.items() if name not in (label, baseline)}
    return SearchTable(
        file.name,
        features,
        (codes == list(written).index(labels[1]))[known],
        (written[labels[0]], written[labels[1]]),
        {name: values[known] for name, values in groups.items()},
        None if score is None else _in_words(score[known], labels, baseline or "", notes),
        (),
        (label, *([] if baseline is None else [baseline])),
        tuple(notes),
    )


def _of_large_groups(groups: dict[str, NDArray[Any]], min_group: int, notes: list[str]) -> NDArray[np.bool_]:
    """Tell which rows are in groups that are large enough, and note which groups are not."""
    large = np.ones(len(next(iter(groups.values()))), dtype=bool)
    for name, values in groups.items():
        found, of_row = as_text(values)
        rows = np.bincount(of_row, minlength=len(found))
        for group, size in zip(found, rows.tolist(), strict=True):
            if size < min_group:
                notes.append(
                    f"The {size:,} rows of {name}={group} are left out (--min-group {min_group}): the search says "
                    "nothing about how they are treated."
                )
        large &= rows[of_row] >= min_group
    return large


def _in_words(score: NDArray[Any], labels: tuple[str, str], name: str, notes: list[str]) -> NDArray[Any]:
    """Return a baseline as booleans if it is decisions in the words of the label or in known words, else as it is."""
    written, codes = as_labels(score)
    if score.dtype.kind != "O" or not written:
        return score
    order = labels if set(written) <= set(labels) else in_known_order(*written) if len(written) == 2 else None
    if order is None:
        raise InvalidInputError(
            f"--baseline {name!r} must be scores in [0, 1], or decisions in the words of the label ({labels[0]!r}, "
            f"{labels[1]!r}); got {shown(list(written), 4)}: write the decisions in these words"
        )
    if order != labels:
        notes.append(f"Decision 1 is {order[1]!r} and decision 0 {order[0]!r} in {name!r}.")
    return np.array([text == order[1] for text in written], dtype=bool)[codes]


def dataset_table(name: str, sensitive: Sequence[str]) -> SearchTable:
    """Return an embedded data set as the table of a search; without `sensitive`, with its first attribute."""
    one_of(name, _DATASETS, parameter="--dataset")
    bunch = getattr(datasets, f"load_{name}")(as_frame=False)
    columns = {
        feature: np.array(bunch.categories[feature], dtype=object)[values.astype(np.intp)]
        if feature in bunch.categories
        else np.asarray(values, dtype=np.float64)
        for feature, values in zip(bunch.feature_names, bunch.data.T, strict=True)
    }
    sources: dict[str, tuple[str, ...]] = bunch.sensitive_sources
    wanted = list(sensitive) or [next(iter(sources))]
    for attribute in wanted:
        one_of(attribute, sources, parameter="--sensitive")
    groups = {attribute: np.asarray(bunch.sensitive_features[attribute]) for attribute in wanted}
    drop = tuple(dict.fromkeys(column for attribute in wanted for column in sources[attribute] if column in columns))
    labels = tuple(str(one) for one in bunch.target_names)
    return SearchTable(name, columns, bunch.target == 1, (labels[0], labels[1]), groups, None, drop, (), ())


def run_search(
    table: SearchTable, search: FairSearch, folder: Path, *, pdf: bool = False, achievable: bool = False
) -> dict[str, Any]:
    """Search, and write everything into a folder; return the summary."""
    begun = time.monotonic()
    search.fit(table.columns, table.y, sensitive_features=table.sensitive, baseline=table.baseline)
    search.model_.classes = np.array(table.labels, dtype=object)
    search.model_.others += table.others
    search.evidence_.save(folder / "evidence.npz")
    save(search.model_, folder / "model.skops")
    summary = summarise_search(search)
    summary |= {
        "source": table.source,
        "labels": list(table.labels),
        "notes": list(table.notes),
    }
    if achievable:
        summary["achievable"] = _achievable(table, search)
    summary["seconds"] = round(time.monotonic() - begun, 1)
    header = list(summary["candidates"][0])
    rows = [[one[name] for name in header] for one in summary["candidates"]]
    (folder / "candidates.csv").write_text(to_csv(header, rows), encoding="utf-8", newline="")
    (folder / "dossier.html").write_bytes(_dossier(summary))
    if pdf:
        print_page(folder / "dossier.html", folder / PDF)
    summary = sealed(summary, folder, (*FILES, *([PDF] if pdf else [])))
    content = json.dumps(summary, indent=2, ensure_ascii=True, allow_nan=False)
    write_atomically(folder / "summary.json", f"{content}\n".encode())  # last: it says that the search is finished
    shutil.rmtree(folder / "steps", ignore_errors=True)
    return summary


def _dossier(summary: dict[str, Any]) -> bytes:
    return render_dossier(summary).encode("utf-8", errors="replace")


def run_verify(folder: Path) -> tuple[list[str], int]:
    """Return what does not agree in the folder of a finished search, its page included, and how much was compared."""
    problems, compared = verify_search(folder)
    if problems:
        return problems, compared
    summary = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    # Another version may have other words for the same figures.
    if summary["versions"]["fairfrontier"] == __version__:
        content = {name: value for name, value in summary.items() if name not in ("files", "digest")}
        if _dossier(content) != (folder / "dossier.html").read_bytes():
            problems = ["dossier.html: the page is not that of summary.json"]
    return problems, compared + 1


def _achievable(table: SearchTable, search: FairSearch) -> dict[str, Any]:
    """Return what any rule could reach with the features of a search, at the fairness that the choice delivers."""
    arrow = require("pyarrow", extra="cli", purpose="search")
    X = arrow.table({one.name: table.columns[one.name] for one in search.columns_ if one.used})
    options: dict[str, Any] = {"fairness": search.fairness, "sensitive_mode": search.sensitive_mode}
    options |= {"confidence": search.confidence, "n_jobs": search.n_jobs, "random_state": search.random_state}
    options["sensitive_features"] = table.sensitive
    curves: dict[str, AchievableFrontier] = {}
    for track in TRACKS:
        curves[track] = achievable_frontier(X, table.y, track=track, **options)
    level = math.floor(1000 * search.delivered_.fairness) / 1000
    return achievable_summary(curves, search.delivered_.accuracy, level, fairness=search.fairness)


def start_anew(folder: Path) -> None:
    """Remove what an earlier search left in a folder."""
    for name in (*SEARCH_OUTPUTS, PDF):
        (folder / name).unlink(missing_ok=True)
    shutil.rmtree(folder / "steps", ignore_errors=True)
