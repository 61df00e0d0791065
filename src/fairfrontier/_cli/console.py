"""What the terminal shows: a compact table, and the findings in sentences."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairfrontier._cli.output import printable
from fairfrontier.report._dossier import choice_sentence, doubts, verdict_sentence
from fairfrontier.report._summarise import best_at
from fairfrontier.report._words import Piece, accuracy, fairness_words, level, unit_words

_ROWS = 10
_LEVELS = (0.8, 0.85, 0.9, 0.95, 0.98)
_STYLES = {"text": "", "name": "bold", "figure": "bold cyan"}


def make_console() -> Console:
    """Return a console for results; where the output is no terminal, it has a fixed width."""
    console = Console(highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = 110
    return console


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    return Progress(*columns, TimeElapsedColumn(), console=console, transient=True)


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Callable[[float], None] | None]:
    """Show on the terminal how far each pass over a file has come; give the function to report it to."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    with _bar(console) as bar:
        task, state = bar.add_task("pass 1", total=1.0), {"pass": 1, "done": 0.0}

        def report(done: float) -> None:
            if done < state["done"]:
                state["pass"] += 1
            state["done"] = done
            bar.update(task, completed=done, description=f"pass {state['pass']:.0f}")

        yield report


@contextmanager
def step_bar() -> Iterator[Callable[[str, float], None]]:
    """Show what a search is doing; where the output is no terminal, one line per step."""
    console = Console(stderr=True, highlight=False, markup=False)
    try:
        with _steps_shown(console) as report:
            yield report
    except KeyboardInterrupt:
        console.print("Interrupted: the same command goes on with the step that the search was at.")
        raise


@contextmanager
def _steps_shown(console: Console) -> Iterator[Callable[[str, float], None]]:
    """Show steps on a console."""
    if not console.is_terminal:
        yield lambda what, share: print(f"{100 * share:3.0f} %  {what}", file=console.file, flush=True)
        return
    with _bar(console) as bar:
        task = bar.add_task("reading", total=1.0)

        def report(what: str, share: float) -> None:
            if what.startswith("up to "):  # how long it will take: that stays
                bar.console.print(printable(what))
            bar.update(task, completed=share, description=printable(what))

        yield report


def sentence(pieces: list[Piece]) -> Text:
    """Return pieces as text with styles; names are never read as markup."""
    line = Text()
    for piece in pieces:
        line.append(printable(piece["text"], 400), style=_STYLES[piece["kind"]])
    return line


# A row of a table: its cells, and their style.
_Row = tuple[list[str], str]


def make_table(title: str, columns: Mapping[str, str], rows: Iterable[_Row]) -> Table:
    """Return a table.

    Parameters
    ----------
    title : str
        What stands above it; empty: nothing.
    columns : mapping of str to str
        For each header "name" (a long text may take several lines), "text" or "number".
    rows : iterable of (list of str, str)
        Cells and their style; cells are never read as markup.
    """
    layout: dict[str, Any] = {"box": None, "pad_edge": False, "padding": (0, 2, 0, 0)}
    table = Table(title=title or None, title_justify="left", title_style="bold", **layout)
    for header, kind in columns.items():
        justify: Literal["left", "right"] = "right" if kind == "number" else "left"
        table.add_column(header, justify=justify, overflow="fold" if kind == "name" else "ellipsis")
    for cells, style in rows:
        table.add_row(*map(Text, cells), style=style)
    return table


def _print_notes(console: Console, notes: Iterable[str]) -> None:
    for note in notes:
        console.print(Text(f"Note: {printable(note, 400)}", style="dim"))


def models_table(summary: dict[str, Any]) -> Table:
    """Return the submitted models; of many, some of those that no other one beats, the fairest last."""
    models, constant, words = summary["models"], summary["constant"], summary["words"]
    optimal = [i for i in summary["frontier"]["base"] if i != constant]
    chosen, title = optimal, f"Pareto-optimal: {len(optimal)} of {summary['n_models']:,}"
    if summary["n_models"] <= _ROWS:
        chosen, title = sorted(range(summary["n_models"]), key=lambda i: models["fairness"][i]), "Submitted models"
    spread = np.unique(np.linspace(0, len(chosen) - 1, min(_ROWS, len(chosen))).round().astype(int))
    title = title if len(spread) == len(chosen) else f"{title} ({len(spread)} shown)"
    columns = {"model": "name", "fairness": "number", words["accuracy"]: "number"}
    if not summary["regression"]:
        columns |= {"lowest ÷ highest rate": "number", "four fifths": "text"}
    rows = []
    for i in (chosen[position] for position in spread):
        cells = [printable(models["names"][i]), level(models["fairness"][i]), accuracy(models["accuracy"][i])]
        cells += [] if summary["regression"] else _ratio(summary, i)
        rows.append((cells, "bold" if i == summary["subject"] else ""))
    same = [f"(the same {words['decision']} for everyone)", level(1.0), accuracy(models["accuracy"][constant])]
    return make_table(title, columns, [*rows, (same, "dim")])


def levels_table(summary: dict[str, Any]) -> Table:
    """Return what each level of fairness costs: with the best single model, and with the fair stack."""
    n_base, rows = summary["constant"] + 1, []
    for minimum in _LEVELS:
        best = best_at(summary["models"], range(n_base - 1), minimum)
        stack = best_at(summary["models"], range(n_base, len(summary["models"]["names"])), minimum)
        cells = [f"{minimum:g}", *(accuracy(one["accuracy"]) if one else "–" for one in (best, stack))]
        rows.append(([*cells, printable(best["name"]) if best else "–"], ""))
    columns = {"fairness at least": "number", summary["words"]["accuracy"]: "number", "fair stack": "number"}
    return make_table("What each level of fairness costs", columns | {"best model": "name"}, rows)


def _ratio(summary: dict[str, Any], model: int) -> list[str]:
    """Return the worst ratio of selection rates over the attributes, and the verdict about it."""
    worst = [attribute["worst"] for attribute in summary["attributes"]]
    if any(one["ratio"][model] is None for one in worst):
        return ["–", "selects nobody"]
    lowest = min(worst, key=lambda one: one["ratio"][model])
    ends = f"{level(lowest['ratio'][model])} ({level(lowest['low'][model])} to {level(lowest['high'][model])})"
    verdicts = {one["verdict"][model] for one in worst}
    return [ends, next(word for word in ("below", "cannot tell", "above") if word in verdicts)]


def print_summary(console: Console, summary: dict[str, Any]) -> None:
    """Print the table, FAUC, the recommendation and the four-fifths rule."""
    settings = summary["settings"]
    console.print()
    console.print(models_table(summary))
    if summary["stack_fauc"] is not None:
        console.print()
        console.print(levels_table(summary))
    console.print()
    console.print(_fauc_line(summary))
    console.print()
    console.print(sentence(summary["recommendation"]))
    if not summary["regression"]:
        positive = printable(settings["positive"])
        console.print(Text(f"The positive label is {positive}; {printable(settings['rule'], 200)} selects."))
    else:
        console.print(Text(unit_words(summary)))
    if summary["rule"]:
        console.print()
        console.print(sentence(summary["overview"]))
        console.print(sentence(summary["rule"]))
        rule = "The four-fifths (80 %) rule is a ratio of selection rates; fairness "
        console.print(Text(rule + fairness_words(settings["fairness"]), style="dim"))
    _print_notes(console, summary["notes"])


def _fauc_line(summary: dict[str, Any]) -> Text:
    score, settings = summary["fauc"], summary["settings"]
    line = Text(f"FAUC (weight {settings['weight']['text']}) ")
    line.append(f"{score['estimate']:.4f}", style="bold cyan")
    if score["low"] is not None:
        line.append(f", {settings['confidence'] * 100:g} % interval {score['low']:.4f} to {score['high']:.4f}")
    if summary["stack_fauc"] is not None:
        line.append("; with a fair stack ")
        line.append(f"{summary['stack_fauc']:.4f}", style="bold cyan")
    line.append(".")
    return line


def print_files(console: Console, folder: Path, names: Sequence[str], removed: Sequence[str] = ()) -> None:
    """Say where the results are, and which of an earlier run are no longer there."""
    console.print()
    if removed:
        console.print(Text(f"Removed, of an earlier run: {', '.join(removed)}."))
    console.print(Text(f"Written to {printable(str(folder), 400)}: {', '.join(names)}."))


def print_rates(console: Console, summary: dict[str, Any]) -> None:
    """Print whom the models of a file without labels select."""
    models = summary["models"]
    rows = [
        ([printable(models["names"][i]), level(models["fairness"][i]), *_ratio(summary, i)], "")
        for i in range(min(summary["n_models"], 2 * _ROWS))
    ]
    columns = {"model": "name", "fairness": "number", "lowest ÷ highest rate": "number", "four fifths": "text"}
    console.print(make_table("Submitted models", columns, rows))
    console.print()
    console.print(sentence(summary["overview"]))
    console.print(Text(f"Selected: {printable(summary['settings']['rule'], 400)}."))
    _print_notes(console, summary["notes"])


def print_applied(console: Console, applied: Any, out: Path) -> None:
    """Say how many rows were scored, whom they select, and what has moved since the stack was fitted."""
    figures = ("mean prediction",) if applied.regression else ("selected", "rate")
    for name, groups in applied.counts.items():
        rows = []
        for group, (selected, n_rows) in sorted(groups.items()):
            decided = [f"{selected:,.0f}", f"{100 * selected / n_rows:.1f} %"]
            cells = [f"{selected / n_rows:.4g}"] if applied.regression else decided
            rows.append(([printable(group), f"{n_rows:,}", *cells], ""))
        columns = {"group": "name", "rows": "number", **dict.fromkeys(figures, "number")}
        console.print(make_table(printable(name), columns, rows))
        console.print()
    for warning in applied.warnings:
        console.print(Text(f"Warning: {printable(warning, 400)}", style="bold"))
    console.print(
        Text(
            f"{applied.n_rows:,} row{'' if applied.n_rows == 1 else 's'} scored. Written to {printable(str(out), 400)}."
        )
    )


def print_search(console: Console, summary: dict[str, Any]) -> None:
    """Print the verdict of a search, its choice and the candidates nearest to it."""
    from fairfrontier.search._screening import DOUBTS, RARE  # not at load: an audit does without scikit-learn

    title = f"Candidates: {summary['n_candidates']}, on {summary['rows']['report']:,} rows that no model has seen"
    figures = ("fairness", "ratio", "accuracy", "accuracy − baseline", "smaller gap")
    base = summary["baseline"]
    first = ["(baseline)", "", level(base["fairness"]), level(base["ratio"]), accuracy(base["accuracy"]), "", ""]
    rows = [(first, "")]
    # The choice stands first.
    ranked = sorted(summary["candidates"], key=lambda one: (one["name"] != summary["chosen"], one["order"]))
    for one in ranked[:_ROWS]:
        cells = [printable(one["name"]), one["verdict"], level(one["fairness"]), level(one["ratio"])]
        cells += [accuracy(one["accuracy"]), f"{one['accuracy_difference']:+.4f}", f"{one['gain']:+.3f}"]
        rows.append((cells, "bold" if one["name"] == summary["chosen"] else ""))
    console.print(make_table(title, {"candidate": "name", "verdict": "text", **dict.fromkeys(figures, "number")}, rows))
    console.print()
    console.print(sentence(verdict_sentence(summary)))
    console.print(Text(choice_sentence(summary)))
    used = [one for one in summary["columns"] if one["used"]]
    for what, columns, style in (
        ("Columns that are no features", [one for one in summary["columns"] if not one["used"]], "dim"),
        ("Features to look at", [one for one in used if one["reason"].startswith(DOUBTS)], ""),
        ("Features with many categories", [one for one in used if one["reason"].endswith(RARE)], "dim"),
    ):
        listed = "; ".join(f"{printable(one['name'])}: {printable(one['reason'], 200)}" for one in columns[:_ROWS])
        if listed:
            console.print(Text(f"{what}: {listed}{'' if listed.endswith('?') else '.'}", style=style))
    console.print(Text(_given_away(summary["proxies"]), style="dim"))
    ended = f"The search ended because: {summary['stopped']}; {summary['seconds']:g} seconds."
    _print_notes(console, (*summary["notes"], *doubts(summary), ended))


def _given_away(proxies: dict[str, Any]) -> str:
    """Return how well the features predict each attribute, together and alone."""
    together = ", ".join(f"{printable(name)} with AUC {auc:.2f}" for name, auc in proxies["together"].items())
    alone = ", ".join(f"{printable(one['column'])} {one['auc']:.2f}" for one in proxies["alone"][:_ROWS])
    return f"All features together predict {together}{f'; alone: {alone}' if alone else ''}."


def print_verified(console: Console, problems: Sequence[str], compared: int) -> None:
    """Say what does not agree in a search, or that everything does."""
    for problem in problems:
        console.print(Text(printable(problem, 400)))
    if not problems:
        again = f"{compared:,} figures were computed again from the saved decisions or compared with the plan"
        console.print(Text(f"Everything agrees: {again}, and everything else is as the search wrote it."))


def print_datasets(console: Console) -> None:
    """Print the embedded data sets, one line per task."""
    from fairfrontier.datasets import describe_all

    rows = []
    for task in describe_all():
        groups = ", ".join(f"{group.name} {group.base_rate:.3f} ({group.rows:,})" for group in task.groups)
        cells = [task.task, f"{task.rows:,}", f"{task.features}", f"{task.base_rate:.3f}", groups, f"{task.gap:.3f}"]
        rows.append((cells, ""))
    columns = {"task": "text", **dict.fromkeys(("rows", "features", "base rate"), "number")}
    columns |= {"base rate of each group": "text", "gap": "number"}
    console.print(make_table("", columns, rows))
