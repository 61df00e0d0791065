"""What the terminal shows: a compact table, and the findings in sentences."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from fairfrontier._cli.output import printable
from fairfrontier.report._dossier import reasons, verdict_sentence
from fairfrontier.report._summarise import best_at
from fairfrontier.report._words import Piece, accuracy, fairness_words, level, unit_words

_ROWS = 10
_LEVELS = (0.8, 0.85, 0.9, 0.95, 0.98)
_STYLES = {"text": "", "name": "bold", "figure": "bold cyan"}


def make_console() -> Console:
    """Return a console for results; where the output is no terminal, it has a fixed width."""
    console = Console(highlight=False, markup=False, emoji=False)
    return console if console.is_terminal else Console(highlight=False, markup=False, emoji=False, width=110)


@contextmanager
def progress_bar(*, shown: bool) -> Iterator[Callable[[float], None] | None]:
    """Show on the terminal how far each pass over a file has come; give the function to report it to."""
    console = Console(stderr=True)
    if not shown or not console.is_terminal:
        yield None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as bar:
        task, state = bar.add_task("pass 1", total=1.0), {"pass": 1, "done": 0.0}

        def report(done: float) -> None:
            if done < state["done"]:
                state["pass"] += 1
            state["done"] = done
            bar.update(task, completed=done, description=f"pass {state['pass']:.0f}")

        yield report


def sentence(pieces: list[Piece]) -> Text:
    """Return pieces as text with styles; names are never read as markup."""
    line = Text()
    for piece in pieces:
        line.append(printable(piece["text"], 400), style=_STYLES[piece["kind"]])
    return line


def models_table(summary: dict[str, Any]) -> Table:
    """Return the submitted models; of many, some of those that no other one beats, the fairest last."""
    models, constant = summary["models"], summary["constant"]
    optimal = [i for i in summary["frontier"]["base"] if i != constant]
    chosen, title = optimal, f"Pareto-optimal: {len(optimal)} of {summary['n_models']:,}"
    if summary["n_models"] <= _ROWS:
        chosen, title = sorted(range(summary["n_models"]), key=lambda i: models["fairness"][i]), "Submitted models"
    spread = np.unique(np.linspace(0, len(chosen) - 1, min(_ROWS, len(chosen))).round().astype(int))
    table = _table(title if len(spread) == len(chosen) else f"{title} ({len(spread)} shown)")
    table.add_column("model", overflow="fold")
    for column in ("fairness", summary["words"]["accuracy"]):
        table.add_column(column, justify="right")
    if not summary["regression"]:
        table.add_column("lowest ÷ highest rate", justify="right")
        table.add_column("four fifths")
    for i in (chosen[position] for position in spread):
        cells = [printable(models["names"][i]), level(models["fairness"][i]), accuracy(models["accuracy"][i])]
        if not summary["regression"]:
            cells += _ratio(summary, i)
        table.add_row(*(Text(cell) for cell in cells), style="bold" if i == summary["subject"] else "")
    cells = [
        f"(the same {summary['words']['decision']} for everyone)",
        level(1.0),
        accuracy(models["accuracy"][constant]),
    ]
    table.add_row(*(Text(cell) for cell in cells), style="dim")
    return table


def levels_table(summary: dict[str, Any]) -> Table:
    """Return what each level of fairness costs: with the best single model, and with the fair stack."""
    table = _table("What each level of fairness costs")
    table.add_column("fairness at least", justify="right")
    table.add_column(summary["words"]["accuracy"], justify="right")
    table.add_column("fair stack", justify="right")
    table.add_column("best model", overflow="fold")
    n_base = summary["constant"] + 1
    for minimum in _LEVELS:
        best = best_at(summary["models"], range(n_base - 1), minimum)
        stack = best_at(summary["models"], range(n_base, len(summary["models"]["names"])), minimum)
        cells = [f"{minimum:g}", accuracy(best["accuracy"]) if best else "–"]
        cells += [accuracy(stack["accuracy"]) if stack else "–", printable(best["name"]) if best else "–"]
        table.add_row(*(Text(cell) for cell in cells))
    return table


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))


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
    for note in summary["notes"]:
        console.print(Text(f"Note: {printable(note, 400)}", style="dim"))


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
    table = _table("Submitted models")
    table.add_column("model", overflow="fold")
    for column in ("fairness", "lowest ÷ highest rate"):
        table.add_column(column, justify="right")
    table.add_column("four fifths")
    for i in range(min(summary["n_models"], 2 * _ROWS)):
        cells = [printable(summary["models"]["names"][i]), level(summary["models"]["fairness"][i]), *_ratio(summary, i)]
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
    console.print()
    console.print(sentence(summary["overview"]))
    console.print(Text(f"Selected: {printable(summary['settings']['rule'], 400)}."))
    for note in summary["notes"]:
        console.print(Text(f"Note: {printable(note, 400)}", style="dim"))


def print_applied(console: Console, applied: Any, out: Path) -> None:
    """Say how many rows were scored, whom they select, and what has moved since the stack was fitted."""
    for name, groups in applied.rates.counts.items():
        table = _table(printable(name))
        table.add_column("group", overflow="fold")
        for column in ("rows", "mean prediction") if applied.regression else ("rows", "selected", "rate"):
            table.add_column(column, justify="right")
        for group, (selected, rows) in sorted(groups.items()):
            decided = [f"{selected:,.0f}", f"{100 * selected / rows:.1f} %"]
            cells = [f"{selected / rows:.4g}"] if applied.regression else decided
            table.add_row(Text(printable(group)), f"{rows:,}", *cells)
        console.print(table)
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

    table = _table(
        f"Candidates: {summary['n_candidates']}, on {summary['rows']['report']:,} rows that no model has seen"
    )
    table.add_column("candidate", overflow="fold")
    table.add_column("verdict")
    for column in ("fairness", "ratio", "accuracy", "accuracy − baseline", "smaller gap"):
        table.add_column(column, justify="right")
    base = summary["baseline"]
    table.add_row("(baseline)", "", level(base["fairness"]), level(base["ratio"]), accuracy(base["accuracy"]), "", "")
    ranked = sorted(summary["candidates"], key=lambda one: one["order"])
    rows = [one for one in ranked if one["name"] == summary["chosen"]]
    rows += [one for one in ranked if one["name"] != summary["chosen"]][: _ROWS - 1]
    for one in rows:
        cells = [printable(one["name"]), one["verdict"], level(one["fairness"]), level(one["ratio"])]
        cells += [accuracy(one["accuracy"]), f"{one['accuracy_difference']:+.4f}", f"{one['gain']:+.3f}"]
        table.add_row(*(Text(cell) for cell in cells), style="bold" if one["name"] == summary["chosen"] else "")
    console.print(table)
    console.print()
    console.print(sentence(verdict_sentence(summary)))
    for line in reasons(summary)[:1]:
        console.print(Text(line))
    left_out = [one for one in summary["columns"] if not one["used"]]
    if left_out:
        listed = "; ".join(f"{printable(one['name'])}: {one['reason']}" for one in left_out[:_ROWS])
        console.print(Text(f"Columns that are no features: {listed}.", style="dim"))
    doubtful = [one for one in summary["columns"] if one["used"] and one["reason"].startswith(DOUBTS)]
    if doubtful:
        listed = "; ".join(f"{printable(one['name'])}: {printable(one['reason'], 200)}" for one in doubtful[:_ROWS])
        console.print(Text(f"Features to look at: {listed}."))
    many = [one for one in summary["columns"] if one["used"] and one["reason"].endswith(RARE)]
    if many:
        listed = "; ".join(f"{printable(one['name'])}: {one['reason']}" for one in many[:_ROWS])
        console.print(Text(f"Features with many categories: {listed}.", style="dim"))
    console.print(Text(_given_away(summary["proxies"]), style="dim"))
    for note in (*summary["notes"], f"The search ended because: {summary['stopped']}; {summary['seconds']:g} seconds."):
        console.print(Text(f"Note: {printable(note, 400)}", style="dim"))


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

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task")
    for column in ("rows", "features", "base rate"):
        table.add_column(column, justify="right")
    table.add_column("base rate of each group")
    table.add_column("gap", justify="right")
    for task in describe_all():
        groups = ", ".join(f"{group.name} {group.base_rate:.3f} ({group.rows:,})" for group in task.groups)
        cells = (task.task, f"{task.rows:,}", f"{task.features}", f"{task.base_rate:.3f}", groups, f"{task.gap:.3f}")
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table)
