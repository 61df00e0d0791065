"""From parameters and rows to a fitted path: what the estimators share behind their interface.

The parameters say which ridges to try, the ridge scales, and the columns for the sensitive attributes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._groups import GROUP
from fairfrontier._rows import Rows
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.chunks import Chunks
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._points import TradeoffPoints
from fairfrontier.metrics._evaluation import sum_rows
from fairfrontier.optimize._cross_validation import CrossValidation, StackRows
from fairfrontier.optimize._folds import train_test
from fairfrontier.optimize._losses import LOSSES, ConstrainedProblem, LogisticSolver, ProgramSolver, ResidualLoss
from fairfrontier.optimize._ridge_path import (
    LARGEST,
    FairPath,
    RidgeFactor,
    RidgeSolution,
    paper_penalties,
    signed_targets,
)
from fairfrontier.optimize._statistics import ROUNDING, StackStatistics, contrast_matrix
from fairfrontier.optimize._tuning import (
    FREE,
    Sweep,
    Tuning,
    Walker,
    displaced,
    largest_bias,
    movement,
    target_variance,
    tune,
)
from fairfrontier.quantify._fauc import fauc
from fairfrontier.quantify._weights import Weight

# A group's values in each attribute, in the order of the columns.
Groups = Sequence[tuple[str, tuple[Any, ...]]]


# The family of columns of X that enter a stack beside its models.
FEATURES = "features"
# Root mean square of centred probabilities, about: for these the scale of free columns is FREE itself.
_USUAL_SPREAD = 0.2


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
        return cls(square, float(np.sqrt(one)), FREE * _USUAL_SPREAD / float(np.sqrt(mean_square)))


def ridges(alpha: Any, alphas: Any, *, loss: str, regression: bool, unit: float = 1.0) -> FloatArray:
    """Return the ridges to try, ascending: one if `alpha` is a number; where none are given, in `unit`."""
    if not isinstance(alpha, str):
        return np.array([validate.number(alpha, parameter="alpha", low=0.0, high=LARGEST)])
    validate.one_of(alpha, ("cv",), parameter="alpha")
    if alphas is not None:
        grid = np.sort(np.asarray(validate.column(alphas, parameter="alphas"), dtype=np.float64))
        if len(grid) == 0 or not np.all(np.isfinite(grid)) or grid[0] < 0 or grid[-1] > LARGEST:
            raise InvalidInputError(
                f"alphas must be at least one number, none negative or above {LARGEST:g}; got {alphas!r}"
            )
        return grid
    if loss != "squared":  # every ridge costs a path of solutions in every fold
        return unit * np.logspace(-2.0, 2.0, 5)
    return unit * (np.logspace(-1.5, 3.5, 20) if regression else np.logspace(-2.0, 5.0, 22))


def family_names(names: Sequence[str]) -> list[str]:
    """Return the family of each model: its name up to the first slash; models without one are together, in ''."""
    return [name.partition("/")[0] if "/" in name else "" for name in names]


def families(names: Sequence[str], n_free: int = 0) -> IntArray:
    """Return the number of each model's family, and −1 for `n_free` further columns.

    Examples
    --------
    >>> families(["forest/1", "forest/2", "logistic", "svm"], n_free=1)
    array([ 0,  0,  1,  1, -1])
    """
    keys = family_names(names)
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([index[key] for key in keys] + [-1] * n_free, dtype=np.intp)


def group_columns(names: Sequence[str], n_free: int = 0) -> IntArray | None:
    """Return the number of what each model of the attribute predicts, −1 for every other model; None: there are none.

    A model of the attribute is named ``group/what/learner``; learners of the same thing have the same number. With
    `n_free` further columns, which hold the attribute itself, its models have nothing to add: None as well.

    Examples
    --------
    >>> group_columns(["forest/1", "group/sex=m/logistic", "group/sex=m/trees", "group/age=old/trees"])
    array([-1,  0,  0,  1])
    """
    keys = [name.rpartition("/")[0] if name.count("/") > 1 else name for name in names]
    index: dict[str, int] = {}
    for key, family in zip(keys, family_names(names), strict=True):
        if family == GROUP:
            index.setdefault(key, len(index))
    if not index or n_free:
        return None
    return np.array([index.get(key, -1) for key in keys], dtype=np.intp)


def ridge_scales(family_scales: Any, names: Sequence[str], n_free: int, *, tuned: bool, free: float = FREE) -> Any:
    """Return D for the models and, `free`, of `n_free` columns hardly shrunk; "cv" where it is to be tuned."""
    k = len(names)
    if isinstance(family_scales, str):
        validate.one_of(family_scales, ("cv",), parameter="family_scales")
        if tuned:
            return "cv"
    expected = f"'cv', None, a dict of family to scale, or {k} positive numbers"
    if isinstance(family_scales, dict):
        keys = family_names(names)
        for family in family_scales:
            validate.one_of(family, set(keys), parameter="family_scales")
        given = np.array([family_scales.get(key, 1.0) for key in keys], dtype=np.float64)
    elif family_scales is None or isinstance(family_scales, str):
        given = np.ones(k)
    else:
        given = np.asarray(family_scales, dtype=np.float64)
    if given.shape != (k,) or not np.all((given > 0) & np.isfinite(given)):
        raise InvalidInputError(f"family_scales must be {expected}; got {family_scales!r}")
    return np.concatenate([given, np.full(n_free, free)])


def check_groups_given(sensitive_features: Any) -> dict[str, NDArray[Any]]:
    """Return the attributes at prediction, which an attribute-aware stack cannot do without."""
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given at prediction: attribute_aware=True made it a part of the stack"
        )
    return validate.attribute_columns(sensitive_features)


def indicator_names(groups: Groups) -> list[str]:
    """Return a name for each column of `indicators`."""
    return [f"{name}={value}" for name, values in groups for value in values[1:]]


def indicators(columns: Mapping[str, NDArray[Any]], groups: Groups, n_rows: int) -> FloatArray:
    """Return indicator columns of the attributes, all groups but the first of each, shape (n_rows, Σ(g − 1)).

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        The attributes of rows to predict.
    groups : sequence of (name, groups)
        The attributes at fit.
    n_rows : int
        Rows to predict.
    """
    if len(groups) == 1 and len(columns) == 1:  # one attribute needs no name
        columns = {groups[0][0]: next(iter(columns.values()))}
    if set(columns) != {name for name, _ in groups}:
        raise InvalidInputError(
            f"sensitive_features must be {[name for name, _ in groups]}, as in fit; got {list(columns)}"
        )
    result = []
    for name, values in groups:
        validate.same_length(n_rows, **{f"sensitive_features[{name!r}]": len(columns[name])})
        codes = {group: code for code, group in enumerate(values)}
        code_of = np.array([codes.get(value, -1) for value in columns[name].tolist()], dtype=np.intp)
        if np.any(code_of < 0):
            unknown = columns[name][np.flatnonzero(code_of < 0)[0]]
            raise InvalidInputError(
                f"sensitive_features[{name!r}] must be one of {list(values)}, as in fit; got {unknown!s}: "
                "an attribute-aware stack knows no other group"
            )
        result += [(code_of == code).astype(np.float64) for code in range(1, len(values))]
    return np.stack(result, axis=1)


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
        D; infinite for models that are left out.
    points : TradeoffPoints
        Value of the stacks, out of fold where cross-validation took place, the constant model last.
    cross_validated : bool
        Whether `points` is out of fold.
    tried : dict
        Cross-validated FAUC of each choice of family scales.
    sweep : Sweep
        What is known of the path between its ends.
    at_tau : FairPath or None
        The stack at the tau that was asked for, where there is no closed form.
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
    at_tau: FairPath | None = None
    residual: ResidualLoss | None = None


def fit_squared(
    data: StackRows,
    *,
    alphas: FloatArray,
    family_of: IntArray,
    family_scales: Any,
    kind: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
    group: IntArray | None = None,
    units: RidgeUnits | None = None,
) -> FittedPath:
    """Fit the closed-form path; where the rows have no folds, at ``alphas[0]`` and given scales.

    `group` (k,) says what each model of the attribute predicts (−1: every other model); the directions of the signed
    path are shrunk towards these models.
    """
    tuning: Tuning | None = None
    units = units or RidgeUnits()
    penalties = units.penalty * paper_penalties(n_points)
    validation = None if data.folds is None else CrossValidation(data)
    if validation is not None:
        tuning = tune(
            validation,
            alphas=alphas,
            family_of=family_of,
            family_scales=family_scales,
            path=kind,
            penalties=penalties,
            weight=weight,
            threshold=data.threshold,
            group=group,
            free=units.free,
        )
    scale = tuning.scale if tuning is not None else np.asarray(family_scales, dtype=np.float64)
    alpha = tuning.alpha if tuning is not None else float(alphas[0])
    used = np.flatnonzero(np.isfinite(scale))
    statistics = tuning.statistics if tuning is not None else data.statistics()
    debias = None if tuning is None or tuning.debias is None else tuning.debias[used]
    if validation is not None and kind == "signed":
        # Losses are sums over rows: what was good without a fold must grow with the rows to mean the same stack.
        growth = statistics.weight / float(np.mean([train.weight for train in validation.train]))
        alpha, debias = growth * alpha, None if debias is None else growth * debias
    of_group = None if group is None or kind == "paper" else group[used]
    factor = RidgeFactor(statistics.take(used), scale[used], debias, of_group)
    solution = factor.at(alpha)
    full = _widen_solution(solution, used, len(scale))
    targets = solution.target_for_lambda(penalties) if kind == "paper" else signed_targets(solution.b0, n_points)
    variance = target_variance(statistics, data.threshold)

    along = data.along([full.line()], folds=False)

    def refitted(multipliers: FloatArray) -> TradeoffPoints:
        return along([full.multipliers(displaced(multipliers)(full))])

    walker = None if tuning is None else tuning.walker
    if tuning is None and kind == "signed" and len(solution.b0) > 1:
        # Without folds the decisions on the rows fitted to are all there is to correct each contrast by.
        reach = movement(statistics.take(used), solution, data.threshold)
        walker = Walker(refitted, reach, statistics.set_rows, variance, largest_bias(weight))
    if walker is not None:
        walk = walker.walk(refitted)
        placed = walk.placed(n_points)
        targets, points = displaced(placed)(full), walker.evaluate(placed)
        sweep = Sweep(displaced(walk.multipliers)(full), walk.points, None if tuning is None else walk.refitted)
    else:
        own = data.evaluate(*full.stacks(targets))
        points = own if tuning is None else tuning.points
        sweep = Sweep(targets, points, None if tuning is None else own)
    sweep = replace(
        sweep,
        changed=data.decided_otherwise(*full.stacks(sweep.target)),
        variance=variance,
        signal=1.0 if tuning is None else tuning.signal,
    )
    path = _widen(factor.path(solution, targets), used, len(scale))
    tried = {} if tuning is None else tuning.tried
    return FittedPath(path, _shares(targets, solution.b0), full, alpha, scale, points, tuning is not None, tried, sweep)


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

    The parameters are those of the estimators.
    """
    n_free, tuned = len(data.names) - len(names), isinstance(alpha, str)
    units = RidgeUnits.of(data.statistics(), len(names)) if tuned and alphas is None else RidgeUnits()
    return fit_squared(
        data,
        alphas=ridges(alpha, alphas, loss="squared", regression=data.regression, unit=units.ridge),
        family_of=families(names, n_free),
        family_scales=ridge_scales(family_scales, names, n_free, tuned=tuned, free=units.free),
        kind=path,
        n_points=n_points,
        weight=weight,
        group=group_columns(names, n_free),
        units=units,
    )


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
        """Return the step for rows whose first `n_models` columns are models."""
        options: dict[str, Any] = {"accuracy": "r2", "threshold": None, "sensitive_mode": sensitive_mode}
        found = sum_rows(chunks.map(_without_scores, ("none",)), fairness=fairness, **options)
        found.measure.value(found.sums, found.contrasts.label)  # R² of a target of one value is undefined, and says so
        without_unit = np.array([name.startswith((f"{GROUP}/", f"{FEATURES}/")) for name in chunks.names])
        return cls(found.unit, (np.arange(len(chunks.names)) < n_models) & ~without_unit)

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
        return replace(fitted, path=path, at_tau=at_tau, solution=solution, residual=residual)


def _without_scores(rows: Rows) -> Rows:
    """Return the rows of a table whose target alone matters: one column of zeros is all that is summed."""
    return rows.with_scores(np.zeros((len(rows), 1)), ("none",))


def _shares(targets: FloatArray, b0: FloatArray) -> FloatArray:
    """Return the part of b₀ that each target (p, m) keeps; NaN where there is none, or targets are not on its ray."""
    square = float(b0 @ b0)
    shares = np.asarray(targets @ b0 / square) if square > 0 else np.full(len(targets), np.nan)
    off = np.abs(shares[:, None] * b0 - targets).max(initial=0.0) > 1e-8 * max(float(np.abs(b0).max()), 1e-300)
    return np.full(len(targets), np.nan) if off else shares


def fit_iterative(
    data: StackRows,
    rows: Rows,
    *,
    loss: str,
    alphas: FloatArray,
    scale: FloatArray,
    kind: str,
    n_points: int,
    weight: Weight | Callable[[float], float] | None,
    tau: float | None = None,
    parameter: float | None = None,
) -> FittedPath:
    """Fit a path with a solver, and the stack at `tau`; without folds at ``alphas[0]``.

    Parameters
    ----------
    data : StackRows
        The rows, with folds if the ridge is to be tuned.
    rows : Rows
        The same rows in memory.
    loss, parameter
        As `named_loss` gives them.
    """
    residual = None if parameter is None else ResidualLoss.of_rows(loss, parameter, rows.numbers(), rows.weight)
    positions = np.linspace(1.0, -1.0 if kind == "signed" else 0.0, n_points)
    alpha, points = float(alphas[0]), None
    tried: dict[str, float] = {}
    solver = partial(_solve_path, data, loss=loss if residual is None else residual, scale=scale, positions=positions)

    def evaluated_by_loss(scores: FloatArray) -> TradeoffPoints:
        found = data.points_of(rows, scores)
        return found if residual is None else explained_by(residual, found, rows.numbers(), scores, rows.weight)

    if rows.fold is not None and data.folds is not None:
        evaluated = [evaluated_by_loss(_out_of_fold(rows, partial(solver, alpha=a), loss)) for a in alphas]
        values = [fauc(of_alpha.frontier(), weight) for of_alpha in evaluated]
        best = int(np.argmax(np.round(values, 12)))
        alpha, points, tried = float(alphas[best]), evaluated[best], {"common": float(values[best])}
    path, at_tau = solver(rows, alpha=alpha, tau=tau)
    scores = LOSSES[loss].link(rows.scores @ path.weights.T + path.intercept)
    own = evaluated_by_loss(scores)
    points, tuned = own if points is None else points, points is not None
    targets = path.target.reshape(n_points, -1)
    sweep = Sweep(targets, points, own if tuned else None, data.changed_decisions(rows, scores))
    sweep = replace(sweep, variance=target_variance(data.statistics(), data.threshold))
    return FittedPath(path, positions, None, alpha, scale, points, tuned, tried, sweep, at_tau, residual)


def explained_by(
    loss: ResidualLoss, points: TradeoffPoints, y: FloatArray, scores: FloatArray, weight: FloatArray | None
) -> TradeoffPoints:
    """Return points whose accuracy is the share of the best constant's loss that predictions (n, p) avoid."""
    return replace(points, accuracy=np.append(loss.explained(y, scores, weight), 0.0))


def _solve_path(
    data: StackRows,
    rows: Rows,
    *,
    loss: str | ResidualLoss,
    alpha: float,
    scale: FloatArray,
    positions: FloatArray,
    tau: float | None = None,
) -> tuple[FairPath, FairPath | None]:
    """Return the stacks with score bias s·b₀ for each position s and, if asked for, that with all in [−τ, τ]."""
    # With weights of mean 1, scores of about the usual spread, and the ridge in proportion, it is the same problem, in
    # which tolerances mean what they say. A power of two changes no digit.
    one = 1.0 if rows.weight is None else float(rows.weight.mean())
    spread = float(rows.scores.std(axis=0).mean())
    unit = 2.0 ** round(float(np.log2(spread / _USUAL_SPREAD))) if spread > 0 else 1.0
    problem = ConstrainedProblem(
        rows.scores / unit,
        data.label(rows) if isinstance(loss, str) else rows.numbers(),
        None if rows.weight is None else rows.weight / one,
        contrast_matrix(rows, data.contrasts) / unit,
        alpha=alpha / (one * unit**2),
        scale=scale,
    )
    if loss == "log":
        newton = LogisticSolver(problem)
        start = newton.unconstrained()
        path = newton.path(positions[:, None] * problem.bias(start.beta), start)
        at_tau = None if tau is None else newton.within(tau, start)
    else:
        program = ProgramSolver(problem, loss)
        path = program.path(positions[:, None] * problem.bias(program.unconstrained()))
        at_tau = None if tau is None else program.within(tau)
    if at_tau is not None:
        at_tau = replace(at_tau, weights=at_tau.weights / unit)
    return replace(path, weights=path.weights / unit), at_tau


def _out_of_fold(rows: Rows, solver: Callable[[Rows], tuple[FairPath, FairPath | None]], loss: str) -> FloatArray:
    """Return the scores (n, p) of stacks that have not seen the row."""
    scores = []
    for train, test in train_test(np.asarray(rows.fold)):
        path, _ = solver(rows.take(train))
        scores.append((test, LOSSES[loss].link(rows.scores[test] @ path.weights.T + path.intercept)))
    result = np.empty((len(rows), scores[0][1].shape[1]))
    for test, of_fold in scores:
        result[test] = of_fold
    return result


def _widen(path: FairPath, used: IntArray, k: int) -> FairPath:
    """Return the path with zero weights for models that were left out."""
    weights = np.zeros((len(path), k))
    weights[:, used] = path.weights
    return replace(path, weights=weights)


def _widen_solution(solution: RidgeSolution, used: IntArray, k: int) -> RidgeSolution:
    w0, U, mean_h, debias = np.zeros(k), np.zeros((k, solution.U.shape[1])), np.zeros(k), np.full(k, np.inf)
    w0[used], U[used], mean_h[used], debias[used] = solution.w0, solution.U, solution.mean_h, solution.debias
    return replace(solution, w0=w0, U=U, mean_h=mean_h, debias=debias)
