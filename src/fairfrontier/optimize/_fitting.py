"""From parameters and rows to a fitted path, and to the stack of the path that decides.

Moving along a fitted path, to another operating point, needs no other fit.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._groups import GROUP
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray
from fairfrontier.chunks import Chunks, whole
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._sums import sum_rows
from fairfrontier.optimize._cross_validation import CrossValidation, StackRows, train_test
from fairfrontier.optimize._losses import LOSSES, USUAL_SPREAD, ConstrainedProblem, ResidualLoss, Solver, solver_of
from fairfrontier.optimize._mixture import Key, TwoStacks
from fairfrontier.optimize._ridge_path import (
    TAU_ADVICE,
    FairPath,
    RidgeFactor,
    RidgeSolution,
    checked_target,
    paper_penalties,
    signed_targets,
)
from fairfrontier.optimize._stack_input import FEATURES, families, group_columns, named_loss, ridge_scales, ridges
from fairfrontier.optimize._statistics import ROUNDING, StackStatistics, contrast_matrix
from fairfrontier.optimize._tuning import (
    FREE,
    Sweep,
    Tuning,
    interpolate,
    largest_bias,
    movement,
    target_variance,
    tune,
    walk,
)
from fairfrontier.quantify._fauc import Weight, as_weight, fauc

if TYPE_CHECKING:
    from fairfrontier.optimize._selection import Selection


@dataclass(frozen=True)
class RidgeUnits:
    """What ridges and penalties that nobody gave are measured in, so that the units of the data do not matter.

    Attributes
    ----------
    ridge : float
        Total weight times the mean square of the centred predictions.
    penalty : float
        Of λ on the paper's path: the root of the weight of one row.
    free : float
        Ridge scale of columns that are hardly shrunk and have units of their own.
    """

    ridge: float = 1.0
    penalty: float = 1.0
    free: float = FREE

    @classmethod
    def of(cls, statistics: StackStatistics, n_models: int) -> "RidgeUnits":
        """Return the units of data whose first `n_models` columns are predictions."""
        square = float(np.diag(statistics.gram)[:n_models].mean())
        mean_square = square / statistics.weight
        if mean_square <= float(np.square(ROUNDING * statistics.mean_h[:n_models]).mean()):  # constant models
            return cls(penalty=float(np.sqrt(statistics.row_weights.of_one_row)))
        one = statistics.row_weights.of_one_row
        return cls(square, float(np.sqrt(one)), FREE * USUAL_SPREAD / float(np.sqrt(mean_square)))


# From tau to the stack that solves Eq. 3.
Within = Callable[[float], FairPath]


@dataclass(frozen=True, eq=False)
class FittedPath:
    """A path, how it was found, and what it is worth.

    Attributes
    ----------
    path : FairPath
        The stacks.
    positions : ndarray of shape (p,)
        The part s of the unconstrained score bias that each target keeps (NaN where targets are not on that ray).
    solution : RidgeSolution or None
        The closed form, for the squared loss.
    alpha : float
        The ridge.
    scale : ndarray of shape (k,)
        D.
    points : TradeoffPoints
        Value of the stacks, out of fold where cross-validation took place, the constant model last.
    cross_validated : bool
        Whether `points` is out of fold.
    tried : dict
        Cross-validated FAUC of each choice of family scales.
    sweep : Sweep
        What is known of the path between its ends.
    tau : float or None
        The tau that was asked for.
    at_tau : FairPath or None
        The stack at that tau, where there is no closed form.
    within : callable or None
        From tau to the stack with all score biases in [−τ, τ], where there is no closed form: it needs the rows.
    residual : ResidualLoss or None
        The loss of the residuals of a regression, where it is not their square.
    """

    path: FairPath
    positions: FloatArray
    solution: RidgeSolution | None
    alpha: float
    scale: FloatArray
    points: TradeoffPoints
    cross_validated: bool
    tried: dict[str, float]
    sweep: Sweep
    tau: float | None = None
    at_tau: FairPath | None = None
    residual: ResidualLoss | None = None
    within: Within | None = None


def fit_path(stack: Any, data: StackRows, rows: Rows | None) -> FittedPath:
    """Fit the path that the parameters of a stack ask for.

    Parameters
    ----------
    stack : BaseFairStacks
        The estimator, which knows the names of its base models.
    data : StackRows
        The rows; their further columns hold the attribute.
    rows : Rows or None
        The same rows, if they are in memory.
    """
    if rows is not None and stack._loss_name != "squared":
        return _fit_iterative(stack, data, rows)
    options = {name: getattr(stack, name) for name in ("alpha", "alphas", "family_scales", "path", "weight")}
    return fit_stacks(data, stack.names_, n_points=int(stack.n_points), **options)


def fit_stacks(
    data: StackRows,
    names: Sequence[str],
    *,
    alpha: Any = "cv",
    alphas: Any = None,
    family_scales: Any = "cv",
    path: str = "signed",
    n_points: int = 20,
    weight: Weight | Callable[[float], float] | None = None,
) -> FittedPath:
    """Fit the closed-form path to models of these names; further columns of the rows are hardly shrunk.

    The parameters are those of the estimators. Where the rows have no folds, `alpha` is a number.
    """
    n_free, tuned, signed = len(data.names) - len(names), isinstance(alpha, str), path == "signed"
    units = RidgeUnits.of(data.statistics(), len(names)) if tuned and alphas is None else RidgeUnits()
    grid = ridges(alpha, alphas, loss="squared", regression=data.regression, unit=units.ridge)
    scales = ridge_scales(family_scales, names, n_free, tuned=tuned, free=units.free)
    # The directions of the signed path are shrunk towards the models of the attribute.
    group = group_columns(names, n_free) if signed else None
    penalties, of_all_rows = units.penalty * paper_penalties(n_points), tuned and alphas is not None
    if data.folds is None:
        tuning, growth = Tuning(float(grid[0]), scales, None, data.statistics()), 1.0
    else:
        validation = CrossValidation(data)
        # Losses are sums over rows: what was good without a fold must grow with the rows to mean the same stack.
        growth = validation.growth if signed else 1.0
        options: dict[str, Any] = {"path": path, "weight": weight, "threshold": data.threshold, "free": units.free}
        options |= {"family_of": families(names, n_free), "family_scales": scales, "group": group}
        tuning = tune(validation, alphas=grid / growth if of_all_rows else grid, penalties=penalties, **options)
    alpha, debias = growth * tuning.alpha, None if tuning.debias is None else growth * tuning.debias
    if of_all_rows:  # one of the given ridges to the last digit
        alpha = next((float(one) for one in grid if np.isclose(one, alpha, rtol=1e-12, atol=0.0)), alpha)
    factor = RidgeFactor(tuning.statistics, tuning.scale, debias, group)
    solution = factor.at(alpha)
    targets = signed_targets(solution.b0, n_points) if signed else solution.target_for_lambda(penalties)
    # Without folds one contrast needs no correction by the decisions.
    if signed and (tuned or len(solution.b0) > 1):
        targets, points, sweep = _walked(data, tuning, solution, weight, n_points)
    else:
        own = data.evaluate(data.stacked(*solution.stacks(targets)))
        points = tuning.points or own
        sweep = Sweep(targets, points, own if tuned else None)
    stacks, variance = solution.stacks(sweep.target), target_variance(tuning.statistics, data.threshold)
    sweep = replace(
        sweep,
        n_changed=data.decided_otherwise(data.stacked(*stacks)),
        variance=None if variance is None else np.append(tuning.statistics.variance(stacks[0]), 0.0),
        signal=tuning.signal,
    )
    found, positions = factor.path(solution, targets), _shares(targets, solution.b0)
    return FittedPath(found, positions, solution, alpha, tuning.scale, points, tuned, tuning.tried, sweep)


def _walked(
    data: StackRows, tuning: Tuning, solution: RidgeSolution, weight: Any, n_points: int
) -> tuple[FloatArray, TradeoffPoints, Sweep]:
    """Return targets along the signed path, their points, and what is known of the path between them."""
    refitted = data.along([solution], folds=False)
    # Without folds the decisions on the rows fitted to are all there is to correct each contrast by.
    evaluate, reach, full = tuning.evaluate or refitted, tuning.reach, tuning.statistics
    if reach is None:
        reach = movement(full, solution, data.threshold)
    variance = target_variance(full, data.threshold)
    options: dict[str, Any] = {"variance": variance, "largest": largest_bias(weight), "n_points": n_points}
    found = walk(evaluate, refitted, reach, full.set_rows, **options)
    sweep = Sweep(solution.displaced(found.multipliers), found.points, found.refitted if tuning.points else None)
    return solution.displaced(found.placed), evaluate(found.placed), sweep


@dataclass(frozen=True, eq=False)
class InUnits:
    """The step that puts the target of a regression, and its predictions, into the unit of fairness.

    Attributes
    ----------
    unit : float
        The unit, in the units of the target.
    target_like : ndarray of shape (k,)
        The columns that predict the target; models of the attribute and its indicators have no unit.
    """

    unit: float
    target_like: NDArray[np.bool_]

    @classmethod
    def of(cls, chunks: Chunks, n_models: int, *, fairness: Any, sensitive_mode: str) -> "InUnits":
        """Return the step for rows whose first `n_models` columns are those of the base models."""
        options: dict[str, Any] = {"accuracy": "r2", "threshold": None, "sensitive_mode": sensitive_mode}
        found = sum_rows(chunks.map(_without_scores, ("none",)), fairness=fairness, **options)
        found.measure.value(found.sums, found.contrasts.label)  # R² of a target of one value is undefined, and says so
        is_model = np.arange(len(chunks.names)) < n_models
        without_unit = np.array([name.startswith((f"{GROUP}/", f"{FEATURES}/")) for name in chunks.names])
        return cls(found.unit, is_model & ~without_unit)

    @property
    def of_column(self) -> FloatArray:
        """Return the unit of each column, shape (k,)."""
        return np.where(self.target_like, self.unit, 1.0)

    def __call__(self, rows: Rows) -> Rows:
        return replace(rows, scores=rows.scores / self.of_column, y=rows.numbers() / self.unit)

    def undo(self, fitted: FittedPath) -> FittedPath:
        """Return stacks of columns in the units of the target; targets and biases stay in the unit of fairness."""
        factor, solution, residual = self.unit / self.of_column, fitted.solution, fitted.residual

        def in_target(path: FairPath) -> FairPath:
            return replace(path, weights=path.weights * factor, intercept=path.intercept * self.unit)

        path, at_tau = in_target(fitted.path), None if fitted.at_tau is None else in_target(fitted.at_tau)
        within = None if fitted.within is None else _composed(in_target, fitted.within)
        if residual is not None:
            scale = self.unit if residual.name == "huber" else 1.0
            residual = replace(residual, parameter=residual.parameter * scale, constant=residual.constant * self.unit)
        if solution is not None:
            solution = replace(
                solution,
                w0=solution.w0 * factor,
                U=solution.U * factor[:, None],
                mean_h=solution.mean_h * self.of_column,
                mean_y=solution.mean_y * self.unit,
            )
        return replace(fitted, path=path, at_tau=at_tau, within=within, solution=solution, residual=residual)


def _composed(outer: Callable[[FairPath], FairPath], inner: Within) -> Within:
    return lambda tau: outer(inner(tau))


def _without_scores(rows: Rows) -> Rows:
    """Return the rows of a table whose target alone matters: one column of zeros is all that is summed."""
    return rows.with_scores(np.zeros((len(rows), 1)), ("none",))


def _shares(targets: FloatArray, b0: FloatArray) -> FloatArray:
    """Return the part of b₀ that each target (p, m) keeps; NaN where there is none, or targets are not on its ray."""
    square = float(b0 @ b0)
    shares = np.asarray(targets @ b0 / square) if square > 0 else np.full(len(targets), np.nan)
    off = np.abs(shares[:, None] * b0 - targets).max(initial=0.0) > 1e-8 * max(float(np.abs(b0).max()), 1e-300)
    return np.full(len(targets), np.nan) if off else shares


def _fit_iterative(stack: Any, data: StackRows, rows: Rows) -> FittedPath:
    """Fit a path with a solver, and the stack at `tau`; without folds at one ridge."""
    loss, parameter = named_loss(stack.loss, regression=stack._regression)
    n_models, by_default = len(stack.names_), isinstance(stack.alpha, str) and stack.alphas is None
    units = RidgeUnits.of(data.statistics(), n_models) if by_default else RidgeUnits()
    alphas = ridges(stack.alpha, stack.alphas, loss=loss, regression=stack._regression, unit=units.ridge)
    n_free = len(data.names) - n_models
    scale = ridge_scales(stack.family_scales, stack.names_, n_free, tuned=False, free=units.free)
    residual = None if parameter is None else ResidualLoss.of_rows(loss, parameter, rows.numbers(), rows.weight)
    positions = np.linspace(1.0, -1.0 if stack.path == "signed" else 0.0, int(stack.n_points))
    alpha, points = float(alphas[0]), None
    tried: dict[str, float] = {}

    def solver_at(a: float, fitted_to: Rows = rows) -> Solver:
        y, contrasts = data.label(fitted_to) if residual is None else fitted_to.numbers(), data.contrasts
        B = contrast_matrix(fitted_to, contrasts)
        problem = ConstrainedProblem(fitted_to.scores, y, fitted_to.weight, B, alpha=a, scale=scale)
        return solver_of(residual or loss, problem)

    def evaluated_by_loss(scores: FloatArray) -> TradeoffPoints:
        found = data.evaluate(_scored(rows, scores))
        return found if residual is None else explained_by(residual, found, rows.numbers(), scores, rows.weight)

    if rows.fold is not None and data.folds is not None:
        evaluated = [
            evaluated_by_loss(_out_of_fold(data, rows, partial(solver_at, a), positions, loss)) for a in alphas
        ]
        values = [fauc(of_alpha.frontier(), stack.weight) for of_alpha in evaluated]
        best = int(np.argmax(np.round(values, 12)))
        alpha, points, tried = float(alphas[best]), evaluated[best], {"common": float(values[best])}
    solver = solver_at(alpha)
    path = _at_positions(solver, positions)
    scores = LOSSES[loss].link(rows.scores @ path.weights.T + path.intercept)
    own = evaluated_by_loss(scores)
    points, tuned = own if points is None else points, points is not None
    targets = path.target.reshape(len(positions), -1)
    sweep = Sweep(targets, points, own if tuned else None, data.decided_otherwise(_scored(rows, scores)))
    if data.threshold is None:
        sweep = replace(sweep, variance=np.append(np.var(scores, axis=0), 0.0))
    tau, within = stack.tau, solver.within
    at_tau = None if tau is None else within(tau)
    return FittedPath(path, positions, None, alpha, scale, points, tuned, tried, sweep, tau, at_tau, residual, within)


def explained_by(
    loss: ResidualLoss, points: TradeoffPoints, y: FloatArray, scores: FloatArray, weight: FloatArray | None
) -> TradeoffPoints:
    """Return points whose accuracy is the share of the best constant's loss that predictions (n, p) avoid."""
    return replace(points, accuracy=np.append(loss.explained(y, scores, weight), 0.0))


def _scored(rows: Rows, scores: FloatArray) -> Chunks:
    """Return rows in memory with the scores (n, p) of stacks."""
    return whole(rows.with_scores(scores, tuple(f"stack_{j}" for j in range(scores.shape[1]))))


def _at_positions(solver: Solver, positions: FloatArray) -> FairPath:
    """Return the stacks with score bias s·b₀ for each position s."""
    return solver.path(positions[:, None] * solver.problem.bias(solver.unconstrained.beta))


def _out_of_fold(
    data: StackRows, rows: Rows, solver: Callable[[Rows], Solver], positions: FloatArray, loss: str
) -> FloatArray:
    """Return the scores (n, p) of stacks that have not seen the row."""
    result = np.empty((len(rows), len(positions)))
    for fold, (train, test) in enumerate(train_test(np.asarray(rows.fold))):
        seen = data.without(fold, rows)
        path = _at_positions(solver(seen.take(train)), positions)
        result[test] = LOSSES[loss].link(seen.scores[test] @ path.weights.T + path.intercept)
    return result


@dataclass(frozen=True, eq=False)
class OperatingPoint:
    """The stack that decides.

    Attributes
    ----------
    weights : ndarray of shape (k,)
        Weight of each base model.
    intercept : float
        The constant.
    target : float or ndarray of shape (m,)
        Its score bias.
    mixture : TwoStacks or None
        Two stacks, one of which decides on each record; None: the stack alone does.
    selection : Selection or None
        What was asked for and what it gives; None: it was not selected.
    """

    weights: FloatArray
    intercept: float
    target: Any
    mixture: TwoStacks | None = None
    selection: "Selection | None" = None


@dataclass(frozen=True, eq=False)
class StackPath:
    """A fitted path, and how its stacks decide.

    Attributes
    ----------
    fitted : FittedPath
        The path.
    loss : str
        Its loss.
    threshold : float
        Score above which the decision is 1.
    regression : bool
        There are no decisions.
    exact : callable or None
        From tau to the stack that solves Eq. 3, where there is no closed form and the rows are at hand.
    """

    fitted: FittedPath
    loss: str
    threshold: float
    regression: bool
    exact: Within | None = None

    @property
    def predictor_threshold(self) -> float:
        """The number above which the linear predictor means decision 1."""
        return LOSSES[self.loss].threshold(self.threshold)

    def initial(self, weight: Any, tau: float | None) -> OperatingPoint:
        """Return the point of `tau` or, without one, that which alone with the constant has the largest FAUC."""
        if tau is not None:
            return self.at_tau(float(tau))
        points, path = self.fitted.points, self.fitted.path
        share = as_weight(weight).normalized(points.fairness[:-1])
        best = int(np.argmax((points.accuracy[:-1] - points.accuracy[-1]) * share))
        return OperatingPoint(path.weights[best].copy(), float(path.intercept[best]), path.target[best])

    def at(self, *, tau: Any, target: Any) -> OperatingPoint:
        """Return the point at one of a largest score bias and an exact one."""
        if (tau is None) == (target is None):
            raise InvalidInputError(f"give exactly one of tau and target; got tau={tau!r}, target={target!r}")
        if tau is not None:
            return self.at_tau(validate.number(tau, parameter="tau", low=0.0, advice=TAU_ADVICE))
        wanted = checked_target(target, self.fitted.path.target[0].size)
        solution = self.fitted.solution
        return self.at_target(wanted if solution is None else solution.coordinates(wanted[None, :])[0])

    def at_tau(self, tau: float) -> OperatingPoint:
        """Return the point with all score biases in [−τ, τ]; see `FairStacksClassifier.at` for what is exact."""
        solution, path = self.fitted.solution, self.fitted.path
        if solution is not None:
            return self.at_target(solution.target_for_tau(tau))
        found = self.fitted.at_tau if tau == self.fitted.tau else None
        if found is None and self.exact is not None:
            found = self.exact(tau)
        if found is None and np.abs(path.target[0]).max() <= tau:  # the unconstrained stack begins the path
            found = path
        if found is None:
            raise InvalidInputError(
                f"at(tau={tau:g}) with loss={self.loss!r} needs the rows of the fit, which a copied or loaded stack "
                f"does not have: fit with tau={tau:g}, or call at before the stack is copied or saved"
            )
        return OperatingPoint(found.weights[0], float(found.intercept[0]), found.target[0])

    def at_target(self, target: FloatArray) -> OperatingPoint:
        """Return the point with score bias `target`, in the coordinates of a solution."""
        weights, intercept = self._with_bias(target[None, :])
        wanted = target if self.fitted.solution is None else self.fitted.solution.of_pairs(target)
        return OperatingPoint(weights[0], float(intercept[0]), float(wanted[0]) if len(wanted) == 1 else wanted)

    def _with_bias(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights (p, k) and constants (p,) of the stacks with score biases `targets` (p, m)."""
        if self.fitted.solution is not None:
            return self.fitted.solution.stacks(targets)
        mixed = np.array([self._between_points(target) for target in targets])
        mixed = mixed.reshape(len(targets), self.fitted.path.weights.shape[1] + 1)
        return mixed[:, :-1], mixed[:, -1]

    def _between_points(self, target: FloatArray) -> FloatArray:
        """Return the mixture (k + 1,) of neighbours on the path with score bias `target`, which is linear in it."""
        path, positions = self.fitted.path, self.fitted.positions
        b0 = np.atleast_1d(path.target[0])
        position = float(target @ b0 / max(float(b0 @ b0), 1e-300))
        off = np.abs(position * b0 - target).max() > 1e-8 * max(float(np.abs(b0).max()), 1.0)
        if off or not positions[-1] - 1e-9 <= position <= positions[0] + 1e-9:
            raise InfeasibleError(
                f"target must lie on the path with loss={self.loss!r}, from {b0.tolist()} to "
                f"{(positions[-1] * b0).tolist()}; got {target.tolist()}"
            )
        # np.interp wants ascending positions.
        both = np.column_stack([path.weights, path.intercept])[::-1]
        return np.array([np.interp(position, positions[::-1], column) for column in both.T])

    def stacks(self, places: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the weights (p, k) and constants (p,) at places of the path; NaN is the constant model."""
        weights = np.zeros((len(places), self.fitted.path.weights.shape[1]))
        intercept = np.full(len(places), self._constant_predictor())
        known = np.isfinite(places)
        weights[known], intercept[known] = self._with_bias(interpolate(places[known], self.fitted.sweep.target))
        return weights, intercept

    def _constant_predictor(self) -> float:
        """Return the linear predictor of the constant model: its decision's score, or the mean of the target."""
        if self.fitted.residual is not None:
            return self.fitted.residual.constant
        if self.regression and self.fitted.solution is not None:
            return float(self.fitted.solution.mean_y)
        flat = float(self.fitted.points.rates[-1, 0])
        return LOSSES[self.loss].constant(flat)

    def at_places(self, first: float, second: float, share: float, secret: bytes | None) -> OperatingPoint:
        """Return the point at a place of the path, or a mixture of two that has the first with probability `share`."""
        places = np.array([first, second])
        weights, intercept = self.stacks(places)
        mixture = None
        if share < 1.0 and not np.array_equal(first, second, equal_nan=True):
            key = Key(secrets.token_bytes(32) if secret is None else secret)
            mixture = TwoStacks(weights, intercept, share, key)
        target = np.zeros_like(self.fitted.path.target[0])
        if np.isfinite(first):
            at_first = interpolate(places[:1], self.fitted.sweep.target)[0]
            if self.fitted.solution is not None:
                at_first = self.fitted.solution.of_pairs(at_first)
            target = at_first if np.ndim(target) else float(at_first[0])
        return OperatingPoint(weights[0], float(intercept[0]), target, mixture)
