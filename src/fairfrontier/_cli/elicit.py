"""The `elicit` command: questions about pairs of curves, and the weight that the answers imply."""

import json
from pathlib import Path

import numpy as np
import typer
from rich.table import Table

from fairfrontier._cli import console as terminal
from fairfrontier._cli.output import check_output, writing
from fairfrontier._validation import number
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.quantify._elicitation import Elicitation, Question, Questionnaire

LEVELS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)
OUTPUTS = ("weight.json",)
_ANSWERS = {"1": True, "2": False}


def run_elicit(questions: int, out: Path | None, *, force: bool, seed: int) -> None:
    """Ask, show the weight, and write it if there is a folder for it."""
    number(questions, parameter="--questions", low=1)
    if out is not None:
        check_output(out, OUTPUTS, force=force)
    console = terminal.make_console()
    questionnaire = Questionnaire(random_state=seed)
    console.print("Each question shows two ways to trade accuracy for fairness. Answer 1 or 2; s skips, q stops.")
    for index in range(questions):
        question = questionnaire.next_question()
        if question is None:
            break
        console.print(_shown(question, index + 1))
        reply = _reply()
        if reply == "q":
            break
        if reply == "s":
            questionnaire.skip(question)
        else:
            questionnaire.answer(question, prefers_first=_ANSWERS[reply])
    if not questionnaire.answers:
        console.print("Without answers there is no weight.")
        return
    found = questionnaire.fit()
    console.print(_weight_table(found))
    if out is not None:
        with writing(out, force=force) as folder:
            content = {"knots": found.weight.knots.tolist(), "values": found.weight.values.tolist()}
            (folder / OUTPUTS[0]).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        terminal.print_files(console, out, OUTPUTS)


def _reply() -> str:
    while True:
        text = typer.prompt("Which do you prefer", default="s").strip().lower()
        if text in (*_ANSWERS, "s", "q"):
            return str(text)
        typer.echo("Please answer 1, 2, s (skip) or q (stop).")


def _shown(question: Question, index: int) -> Table:
    table = Table(title=f"Question {index}", title_justify="left", box=None, pad_edge=False)
    table.add_column("where fairness must be at least", justify="right")
    for name in ("1: accuracy", "2: accuracy"):
        table.add_column(name, justify="right")
    for level in LEVELS:
        table.add_row(f"{level:g}", *(_cell(curve, level) for curve in (question.first, question.second)))
    return table


def _cell(curve: TAFCurve, level: float) -> str:
    value = float(curve(level))
    return f"{value:.2f}" if value > 0 else "no model"


def _weight_table(found: Elicitation) -> Table:
    kept = min(found.consistency.values())
    title = f"What your answers say; the weight reproduces {kept:.0%} of them"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    table.add_column("fairness", justify="right")
    table.add_column("share of your weight", justify="right")
    ends = np.array([0.0, *LEVELS, 1.0])
    shares = np.diff(found.weight.normalized(ends))
    for low, high, share in zip(ends[:-1], ends[1:], shares, strict=True):
        table.add_row(f"{low:g} to {high:g}", f"{share:.0%}")
    return table
