"""The stack command: fit on one part of a file, value on the rest, write weights and model."""

from pathlib import Path
from typing import Any

from fairfrontier._cli.audit import OUTPUTS, write_results
from fairfrontier._cli.interval import fauc_bounds
from fairfrontier._cli.request import Request, read, settings_of
from fairfrontier._cli.stacking import FittedStack, Operating, family_name, fit_stack
from fairfrontier._csv import to_csv
from fairfrontier._persistence import save
from fairfrontier._validation import number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._weights import Weight
from fairfrontier.report import summarise
from fairfrontier.report._words import Piece, accuracy, best_model, figure, level, text

STACK_OUTPUTS = (*OUTPUTS, "weights.csv", "model.skops")


def run_stack(
    request: Request, operating: Operating, *, test_size: float = 0.5, seed: int = 0
) -> tuple[dict[str, Any], FittedStack]:
    """Return the summary of a stack on rows that it has not seen, and the stack.

    Parameters
    ----------
    request : Request
        What to read and how to value it.
    operating : Operating
        Which point of the path to choose.
    test_size : float
        Share of the rows that is held out.
    seed : int
        Of the split.
    """
    weight = check_stack(request, operating, test_size)
    fitted = fit_stack(request, read(request), weight, operating, test_size=test_size, seed=seed)
    bounds = fauc_bounds(
        fitted.held_out, fitted.base, weight=weight, confidence=request.confidence, measures=request.measures()
    )
    return stack_summary(request, operating, fitted, weight, bounds), fitted


def check_stack(request: Request, operating: Operating, test_size: float) -> Weight:
    """Return the weight; raise for a value that no option may have, before the file is read."""
    weight = request.checked()
    number(test_size, parameter="--test-size", low=0.0, high=1.0, strict=True)
    if operating.tau is not None:
        number(operating.tau, parameter="--tau", low=0.0)
        if operating.min_fairness is not None:
            raise InvalidInputError("--tau and --min-fairness both choose the operating point: give one of them")
    return weight


def stack_summary(
    request: Request,
    operating: Operating,
    fitted: FittedStack,
    weight: Weight,
    bounds: tuple[float, float] | None,
    notes: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the summary of a stack on rows that it has not seen."""
    note = (
        f"The stack was fitted on {fitted.n_fit:,} rows; all figures are for the other {fitted.base.n_rows:,}. "
        f"Its operating point was chosen without them: {_choice(operating)}."
    )
    summary = summarise(
        fitted.base,
        settings_of(request, fitted.held_out, weight, (note, *notes)),
        stack=fitted.stack,
        stack_family=family_name(fitted.held_out.names),
        interval=bounds,
        rule_model=len(fitted.base.points),
    )
    summary["operating"] = _operating(summary, fitted)
    summary["recommendation"] = [*_stack_words(summary), *best_model(summary)]
    return summary


def _choice(operating: Operating) -> str:
    if operating.tau is not None:
        return f"largest score bias {operating.tau:g}"
    if operating.min_fairness is not None:
        return f"least fairness {operating.min_fairness:g} in cross-validation"
    return "the best FAUC in cross-validation"


def _operating(summary: dict[str, Any], fitted: FittedStack) -> dict[str, Any]:
    i = len(fitted.base.points)
    return {
        "name": summary["models"]["names"][i],
        "fairness": summary["models"]["fairness"][i],
        "accuracy": summary["models"]["accuracy"][i],
        "alpha": float(fitted.model.alpha_),
        "rows_fitted": fitted.n_fit,
    }


def _stack_words(summary: dict[str, Any]) -> list[Piece]:
    operating = summary["operating"]
    return [
        text("The fair stack has accuracy "),
        figure(accuracy(operating["accuracy"])),
        text(" at fairness "),
        figure(level(operating["fairness"])),
        text(f" on {summary['n_rows']:,} rows that it has not seen. "),
    ]


def write_stack(summary: dict[str, Any], fitted: FittedStack, folder: Path) -> None:
    """Write the report, the tables, the weights and the model."""
    write_results(summary, folder)
    rows = [["(constant)", fitted.model.intercept_], *zip(fitted.model.names_, fitted.model.weights_, strict=True)]
    (folder / "weights.csv").write_text(
        to_csv(["model", "weight"], rows), encoding="utf-8", errors="replace", newline=""
    )
    save(fitted.model, folder / "model.skops")
