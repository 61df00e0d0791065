"""The whole fairness path of a squared-loss stack from one factorisation.

With A = HᵀH + (α/2)·D², w₀ = A⁻¹Hᵀy, U = A⁻¹B, S = BᵀU and b₀ = Bᵀw₀ (all centred, so that the constant model is in
the stack and carries no penalty), the best stack with score bias exactly t is

    w(t) = w₀ + U·S⁻¹·(t − b₀).

U is the ridge regression of the contrasts on the models: with a ridge of its own (`debias`) w₀ predicts y as well as it
can, and U the contrasts as well as it can. The most accurate fair decisions without the attribute are those of
E[y | x] + λ·E[c | x], so each of the two deserves the ridge that suits it.

Where some models are models of the attribute (`group`), the ridge Λ of the directions shrinks towards the regression P
of the contrasts on those models alone, not towards zero: V = A⁻¹(B + Λ·P). With few rows V is P, and the stacks are the
plug-in rule; with many it is what all models say of the contrasts. The moves w − w₀ are then combinations of V's
columns, and the cheapest of them in the metric A that has score bias t is, with U the projection of A⁻¹B on V in that
metric, again the formula above.

Everything else is a choice of t: the constrained form takes the point of the box [−τ, τ]ᵐ nearest to b₀ in the metric
S⁻¹, the penalised form takes (I + λ²S)⁻¹·b₀, and the signed path takes s·b₀ for s from 1 through 0 to −κ.

How much each family of models is shrunk is found by empirical Bayes. A larger collection must not lose to its parts,
and with one common ridge a dozen good classifiers are diluted by a thousand weak trees. Here each family f has its own
Gaussian prior w_f ~ N(0, σ²/λ_f), and the λ_f maximise the evidence (the marginal likelihood of what is predicted),
which needs no folds and so adds no noise. What is predicted is y for the stack itself, and the contrasts for the
directions in which it is debiased. Models of the attribute predict the contrasts by themselves; the prior of the
directions is then centred at what they say.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array

from fairfrontier._columns import to_frame
from fairfrontier._validation import FloatArray, IntArray, number
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.metrics._contrasts import RowSets
from fairfrontier.optimize._statistics import ROUNDING, StackStatistics

_ITERATIONS = 15
_TOLERANCE = 0.03
# Bounds of a penalty, relative to the mean square of the predictions: below, collinear models would make the system
# singular; above, a family is out anyway. The contrasts may be predicted without error (where the attribute is a
# feature), and then ask for no ridge at all: theirs stays where rounding does not matter.
_LEAST, _LEAST_OF_DIRECTIONS, _LARGEST = 1e-8, 1e-3, 1e7
# Part of a contrast below which what is left of it counts as nothing.
_PERFECT = 1e-6
# The penalty of what models of the label add to those of the attribute, relative to that of the largest evidence: of a
# contrast, as of a label, the evidence asks for rather too small a ridge. By cross-validated delivered FAUC on the
# ensemble rows of COMPAS 3 was better than 1 for race, and for gender better or worse as the learners of the group were
# chosen; the differences are about as large as their noise, and no other data set was looked at.
_CAUTION = 3.0


@dataclass(frozen=True, eq=False)
class EvidenceScales:
    """The scales D (k,) with geometric mean 1 over the families that count, and the ridge α that goes with them."""

    scale: FloatArray
    alpha: float


def evidence_scales(statistics: StackStatistics, family_of: IntArray, n_families: int | None = None) -> EvidenceScales:
    """Return the ridge scale of each family that maximises the evidence of y.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    family_of : ndarray of shape (k,)
        The family of each model, numbered from 0.
    n_families : int, optional
        The families whose scales have geometric mean 1, the first ones; None: all.
    """
    square = np.array([statistics.y_square])
    penalty = _penalties(statistics, statistics.cross[:, None], square, family_of, _LEAST, n_families)
    centre = float(np.exp(np.log(penalty[:n_families]).mean()))
    # The penalty is (α/2)·D², so α = 2·centre.
    return EvidenceScales(np.sqrt(penalty / centre)[family_of], 2.0 * centre)


def evidence_of_directions(
    statistics: StackStatistics, family_of: IntArray, group: IntArray | None = None, n_families: int | None = None
) -> FloatArray:
    """Return the penalty (k,) of each model that maximises the evidence of the contrasts.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    family_of : ndarray of shape (k,)
        The family of each model, numbered from 0.
    group : ndarray of shape (k,), optional
        What each model of the attribute predicts, see `plug_in_directions`: the evidence is then that of what these
        models leave of the contrasts, because the directions are shrunk towards theirs.
    n_families : int, optional
        Families of models, the first ones; the columns of others have units of their own. None: all.
    """
    cross, (first, second) = statistics.direction_matrix(), statistics.sets.pairs().T
    # The weighted sum of squares of each pair's contrast: it is 1/W₁ on one row set and −1/W₂ on the other.
    square = np.asarray(1.0 / statistics.set_weight[first] + 1.0 / statistics.set_weight[second])
    pairs = statistics.sets.pairs_of_basis()
    plug_in, factor = plug_in_directions(statistics, group), 1.0
    if plug_in is not None:
        factor = _CAUTION
        fitted = statistics.gram @ plug_in
        # What is left of the square of each pair's contrast, from the products of coordinates.
        left = square + np.sum((pairs @ (plug_in.T @ (fitted - 2.0 * cross))) * pairs.toarray(), axis=1)
        # Where the attribute is a feature its models leave nothing, and rounding is no evidence.
        cross, square = cross - fitted, np.maximum(left, _PERFECT * square)
    # In units of its own size each contrast counts alike. Fewer columns have the same products as all pairs.
    alike = (pairs.T @ (pairs / square[:, None])).toarray()
    values, vectors = np.linalg.eigh(alike)
    cross = cross @ (vectors * np.sqrt(np.maximum(values, 0.0)))
    penalty = _penalties(statistics, cross, np.ones(len(square)), family_of, _LEAST_OF_DIRECTIONS, n_families)
    return np.asarray(factor * penalty[family_of])


def plug_in_directions(statistics: StackStatistics, group: IntArray | None) -> FloatArray | None:
    """Return the weights (k, m) with which the models of the attribute predict the contrasts, zero for all others.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    group : ndarray of shape (k,) or None
        The number of what a model of the attribute predicts, from 0: models with the same number are learners of the
        same thing. −1 for every other model.

    Returns
    -------
    ndarray of shape (k, m) or None
        None where there is no model of the attribute.

    Notes
    -----
    A ridge regression of the contrasts on the averages of learners of the same thing. Learners of a group say much the
    same, so that weights for each of them would be fitted to noise where rows are few; an average has none to fit.
    """
    if group is None or group.max(initial=-1) < 0:
        return None
    numbers, code = np.unique(group[group >= 0], return_inverse=True)
    average = np.zeros((len(group), len(numbers)))
    average[np.flatnonzero(group >= 0), code] = 1.0 / np.bincount(code)[code]
    part = _combined(statistics, average)
    penalty = evidence_of_directions(part, np.zeros(len(numbers), dtype=np.intp))
    factor = cho_factor(part.gram + np.diag(penalty), check_finite=False)
    return np.asarray(average @ cho_solve(factor, part.direction_matrix(), check_finite=False))


def _combined(statistics: StackStatistics, weights: FloatArray) -> StackStatistics:
    """Return the statistics of weighted sums (k, q) of the models."""
    return replace(
        statistics,
        mean_h=statistics.mean_h @ weights,
        gram=weights.T @ statistics.gram @ weights,
        cross=statistics.cross @ weights,
        set_h=statistics.set_h @ weights,
    )


def _penalties(
    statistics: StackStatistics,
    cross: FloatArray,
    square: FloatArray,
    family_of: IntArray,
    least: float,
    n_families: int | None,
) -> FloatArray:
    """Return λ of each family for the ridge regressions of targets with cross products (k, m) and squares (m,).

    Notes
    -----
    MacKay's fixed point: with M = (HᵀH + Λ)⁻¹, W = M·HᵀY and γ_f = k_f − λ_f·tr(M_ff), the number of well-determined
    directions, λ_f ← σ²·m·γ_f / ‖W_f‖² and σ² ← ‖Y − HW‖² / (m·(n − Σγ)).
    """
    gram, n_targets, total = statistics.gram, len(square), float(square.sum())
    sizes = np.bincount(family_of)
    # Penalties are measured against the mean square of the predictions: their units are the user's.
    spread = np.bincount(family_of, np.diag(gram))
    typical = spread / sizes
    typical[:n_families] = spread[:n_families].sum() / sizes[:n_families].sum()
    typical = np.maximum(typical, 1e-300)
    # Of a perfect fit only rounding is left, and rounding is no evidence.
    least_variance = 1e-6 * total / (n_targets * statistics.n_rows)
    variance = 0.7 * total / (n_targets * statistics.n_rows)
    penalty = np.maximum(variance * n_targets * spread / max(0.1 * total, 1e-300), least * typical)
    for _ in range(_ITERATIONS):
        inverse = _inverse(gram, penalty[family_of])
        W = inverse @ cross
        determined = sizes - penalty * np.bincount(family_of, np.diag(inverse))
        residual = total - 2.0 * np.sum(W * cross) + np.sum(W * (gram @ W))
        freedom = n_targets * max(statistics.n_rows - determined.sum(), 1.0)
        variance = max(residual / freedom, least_variance)
        size = np.maximum(np.bincount(family_of, np.square(W).sum(axis=1)), 1e-300)
        update = variance * n_targets * np.maximum(determined, 1e-6) / size
        update = np.clip(update, least * typical, _LARGEST * typical)
        moved = np.abs(np.log(update / penalty)).max()
        penalty = update
        if moved < _TOLERANCE:
            break
    return np.asarray(penalty)


def _inverse(gram: FloatArray, penalty: FloatArray) -> FloatArray:
    """Return (gram + diag(penalty))⁻¹ from a Cholesky factor, at half the price of solving for the identity."""
    matrix = gram.copy()
    matrix[np.diag_indices_from(matrix)] += penalty
    factor, failed = dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    lower, failed_too = dpotri(factor, lower=1, overwrite_c=1)
    if failed or failed_too:
        raise np.linalg.LinAlgError("the Gram matrix of the predictions is not positive definite, even with its ridge")
    return np.asarray(lower + np.tril(lower, -1).T)


TAU_ADVICE = "; the smallest feasible tau is 0, a score without bias"
# Largest ridge and penalty: their squares are still finite.
LARGEST = 1e100
# Relative size below which an eigenvalue is rounding: the models are collinear in that direction.
_RANK = 1e-11


@dataclass(frozen=True, eq=False)
class FairPath:
    """Stacks along a path of score biases.

    Attributes
    ----------
    target : ndarray of shape (p,), or (p, m) with several contrasts
        The score bias t that was asked for.
    tau : ndarray of shape (p,)
        The largest absolute score bias, max |t|.
    score_bias : ndarray of the shape of `target`
        The score bias of each stack on the data it was fitted to.
    weights : ndarray of shape (p, k)
        Weight of each base model.
    intercept : ndarray of shape (p,)
        The constant.
    kkt : ndarray of shape (p,)
        Residual of the optimality conditions, relative to the size of the gradients in them.
    names : tuple of str
        The base models.
    library : str
        The dataframe library of `to_frame`.
    """

    target: FloatArray
    tau: FloatArray
    score_bias: FloatArray
    weights: FloatArray
    intercept: FloatArray
    kkt: FloatArray
    names: tuple[str, ...] = ()
    library: str = "pandas"

    @classmethod
    def of(
        cls, target: FloatArray, bias: FloatArray, weights: FloatArray, intercept: FloatArray, kkt: FloatArray
    ) -> "FairPath":
        """Return a path from targets and score biases (p, m); with one contrast they lose their second axis."""
        shape = (len(target),) if target.shape[1] == 1 else target.shape
        return cls(target.reshape(shape), np.abs(target).max(axis=1), bias.reshape(shape), weights, intercept, kkt)

    def to_frame(self) -> Any:
        """Return the stacks as a dataframe: one row per stack, with the weight of each base model."""
        columns: dict[str, Any] = {"tau": self.tau}
        for title, values in (("target", self.target), ("score_bias", self.score_bias)):
            wide = {f"{title}[{j}]": column for j, column in enumerate(values.T)} if values.ndim == 2 else {}
            columns |= wide or {title: values}
        columns |= {"intercept": self.intercept, "kkt": self.kkt}
        names = self.names or [str(j) for j in range(self.weights.shape[1])]
        columns |= {f"weight[{name}]": column for name, column in zip(names, self.weights.T, strict=True)}
        return to_frame(columns, self.library)

    def __len__(self) -> int:
        return len(self.tau)


class RidgeFactor:
    """One symmetric eigendecomposition of the Gram matrix, which serves every α.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    scale : ndarray of shape (k,)
        D, the relative ridge scale of each base model.
    debias : ndarray of shape (k,), optional
        The penalty of each model in the directions U, positive; None: that of w₀, (α/2)·D².
    group : ndarray of shape (k,), optional
        What each model of the attribute predicts, −1 for every other model: the directions are shrunk towards the
        contrasts of the former (`plug_in_directions`). None: there are none.
    """

    def __init__(
        self,
        statistics: StackStatistics,
        scale: FloatArray,
        debias: FloatArray | None = None,
        group: IntArray | None = None,
    ) -> None:
        self.statistics = statistics
        self.scale = scale
        self.debias = debias
        self.plug_in = plug_in_directions(statistics, group)
        scaled = statistics.gram / np.outer(scale, scale)
        # LAPACK's divide and conquer, as scipy before 1.13 calls it, refuses a matrix of one number.
        driver = "evd" if len(scale) > 1 else "ev"
        self.values, self.vectors = eigh(scaled, driver=driver, overwrite_a=True, check_finite=False)
        self.values = np.maximum(self.values, 0.0)
        # What centring leaves of models that are constant.
        self._rounding = statistics.weight * float(np.square(ROUNDING * statistics.mean_h / scale).sum())
        self.contrasts = statistics.direction_matrix()
        self._cross = self.vectors.T @ (statistics.cross / scale)
        self._contrasts = self.vectors.T @ (self.contrasts / scale[:, None])

    def inverse_values(self, alpha: float) -> FloatArray:
        """Return the eigenvalues of (Gram + α/2)⁻¹; directions without any curvature stay unused."""
        curvature = self.values + alpha / 2.0
        tiny = max(_RANK * max(float(self.values[-1]), alpha / 2.0), self._rounding)
        return np.asarray(np.divide(1.0, curvature, out=np.zeros_like(curvature), where=curvature > tiny))

    def at(self, alpha: float) -> "RidgeSolution":
        """Return the stack at `alpha` and the direction in which it is debiased.

        Parameters
        ----------
        alpha : float
            The ridge, in the paper's scale: the penalty is (α/2)·‖Dw‖² beside a sum over rows.
        """
        return self.at_each(np.array([alpha]))[0]

    def at_each(self, alphas: FloatArray) -> list["RidgeSolution"]:
        """Return the solution at each of `alphas`, all from one matrix product."""
        m, n_alphas = self._contrasts.shape[1], len(alphas)
        inverse = np.stack([self.inverse_values(float(alpha)) for alpha in alphas], axis=1)
        rotated = inverse[:, :, None] * np.column_stack([self._cross, self._contrasts])[:, None, :]
        flat = rotated.reshape(len(self.values), -1)
        solved = (self.vectors @ flat / self.scale[:, None]).reshape(rotated.shape)
        biases = (self._contrasts.T @ flat).reshape(m, n_alphas, 1 + m)
        # A direction that moves no score moves no bias. Rotating leaves noise of it, and S below that is rounding; but
        # a direction that is hardly curved, such as a constant model's, must not hide what the others do.
        noise = 4e-16 * float(np.linalg.norm(self._contrasts))
        negligible = noise * (np.linalg.norm(self._contrasts, axis=1) + noise) @ inverse
        own = self._own_directions()
        solutions = []
        for i, alpha in enumerate(alphas):
            common = _Directions(alpha / 2.0 * self.scale**2, solved[:, i, 1:], biases[:, i, 1:], float(negligible[i]))
            directions = own if own is not None else self._shrunk(common, float(alpha))
            solutions.append(
                RidgeSolution(
                    alpha=float(alpha),
                    debias=directions.debias,
                    w0=solved[:, i, 0],
                    U=directions.U,
                    S=directions.S,
                    b0=biases[:, i, 0],
                    mean_h=self.statistics.mean_h,
                    mean_y=self.statistics.mean_y,
                    negligible=directions.negligible,
                    weight=self.statistics.weight,
                    sets=self.statistics.sets,
                )
            )
        return solutions

    def _own_directions(self) -> "_Directions | None":
        """Return U with its own ridge, which is the same at every α; None where it has that of w₀."""
        if self.debias is None:
            return None
        factor = cho_factor(self.statistics.gram + np.diag(self.debias), overwrite_a=True, check_finite=False)
        U = cho_solve(factor, self.contrasts, check_finite=False)
        negligible = 1e-16 * float(np.square(self.contrasts).sum() / self.debias.min(initial=np.inf))
        plain = _Directions(self.debias, U, self.contrasts.T @ U, negligible)
        if self.plug_in is None:
            return plain
        return self._projected(plain, U + cho_solve(factor, self.debias[:, None] * self.plug_in, check_finite=False))

    def _shrunk(self, plain: "_Directions", alpha: float) -> "_Directions":
        """Return the directions at α, shrunk towards those of the models of the attribute, if there are any."""
        if self.plug_in is None:
            return plain
        # A⁻¹·Λ·P from the eigendecomposition, where Λ = (α/2)·D².
        rotated = alpha / 2.0 * self.vectors.T @ (self.scale[:, None] * self.plug_in)
        moved = self.vectors @ (self.inverse_values(alpha)[:, None] * rotated) / self.scale[:, None]
        return self._projected(plain, plain.U + moved)

    def _projected(self, plain: "_Directions", V: FloatArray) -> "_Directions":
        """Return the projection of A⁻¹B on the columns of V in the metric A, which keeps S = BᵀU symmetric.

        Notes
        -----
        With T = VᵀAV and Q = BᵀV it is U = V·T⁻¹·Qᵀ, and S = Q·T⁻¹·Qᵀ. Stacks w₀ + V·z that have score bias t are then
        those of the formula with U and S: U·S⁻¹ = V·Q⁻¹. Contrasts may depend on each other, so T may have no inverse.
        """
        inverse = np.linalg.pinv(V.T @ self._pull(plain.debias), rcond=1e-12, hermitian=True)
        U = V @ (inverse @ (V.T @ self.contrasts))
        S = self.contrasts.T @ U
        return _Directions(plain.debias, U, (S + S.T) / 2.0, plain.negligible)

    def _pull(self, debias: FloatArray) -> FloatArray:
        """Return A·V = B + Λ·P, shape (k, m)."""
        return self.contrasts if self.plug_in is None else self.contrasts + debias[:, None] * self.plug_in

    def path(self, solution: "RidgeSolution", target: FloatArray) -> FairPath:
        """Return the stacks of a solution at targets (p, q), with their optimality certificates."""
        weights, intercept = solution.stacks(target)
        wanted, bias = solution.of_pairs(target), solution.of_pairs(weights @ self.contrasts)
        return FairPath.of(wanted, bias, weights, intercept, self.kkt(solution, weights, target))

    def kkt(self, solution: "RidgeSolution", weights: FloatArray, target: FloatArray) -> FloatArray:
        """Return the KKT residual of stacks (p, k) at targets (p, m).

        Notes
        -----
        w(t) minimises ½(w − w₀)ᵀA(w − w₀) subject to Bᵀw = t, where A has the ridge of the direction: the gradient
        A·(w − w₀) must be a combination of the columns of B. What is left of it, relative to the larger of that
        gradient and Hᵀy, and the distance of Bᵀw from t, is the residual; so is what w₀ leaves of its own normal
        equations. With models of the attribute w − w₀ must moreover be a combination of the columns of V (see the top
        of this module): then the gradient is one of the columns of A·V = B + Λ·P.
        """
        gram, cross = self.statistics.gram, self.statistics.cross
        move = weights - solution.w0
        gradient = move @ gram + move * solution.debias
        if self.plug_in is None:
            explained = solution.multipliers(target) @ self.contrasts.T
        else:
            pull = self._pull(solution.debias)
            explained = gradient @ np.linalg.pinv(pull.T) @ pull.T
        rest = np.abs(gradient - explained).max(axis=1)
        start = np.abs(solution.w0 @ gram + solution.alpha / 2.0 * self.scale**2 * solution.w0 - cross).max()
        size = np.maximum(np.abs(gradient).max(axis=1), max(float(np.abs(cross).max()), 1e-300))
        primal = np.abs(weights @ self.contrasts - target).max(axis=1)
        # Of constant models centring leaves rounding, which no weight could remove.
        level = float(np.abs(self.statistics.mean_h).max(initial=0.0))
        rounding = ROUNDING * level * np.sqrt(self.statistics.weight * self.statistics.y_square)
        dual = np.maximum(rest, start)
        return np.asarray(np.maximum(np.where(dual > rounding, dual, 0.0) / size, primal))


@dataclass(frozen=True, eq=False)
class _Directions:
    """Directions U with a ridge of their own, S = BᵀU, and the size below which S is rounding."""

    debias: FloatArray
    U: FloatArray
    S: FloatArray
    negligible: float


@dataclass(frozen=True, eq=False)
class RidgeSolution:
    """The unconstrained stack w₀, its score bias b₀, the direction U and S = BᵀU at one α.

    Attributes
    ----------
    alpha : float
        The ridge of w₀.
    debias : ndarray of shape (k,)
        The penalty of each model in U.
    w0 : ndarray of shape (k,)
    U : ndarray of shape (k, q)
    S : ndarray of shape (q, q)
    b0 : ndarray of shape (q,)
    mean_h : ndarray of shape (k,)
        Mean prediction of each base model, which with `mean_y` gives the constant.
    mean_y : float
        Mean target.
    negligible : float
        Eigenvalues of S up to this are rounding.
    weight : float
        Total weight of the rows.
    sets : RowSets or None
        The row sets, in whose `basis` the q directions are; None, in files of earlier versions: in pairs.
    """

    alpha: float
    debias: FloatArray
    w0: FloatArray
    U: FloatArray
    S: FloatArray
    b0: FloatArray
    mean_h: FloatArray
    mean_y: float
    negligible: float
    weight: float
    sets: RowSets | None = None

    @property
    def _pairs(self) -> csr_array:
        """Return the matrix (m, q) from coordinates to differences of pairs."""
        return csr_array(np.eye(len(self.b0))) if self.sets is None else self.sets.pairs_of_basis()

    def of_pairs(self, target: FloatArray) -> FloatArray:
        """Return coordinates (p, q) as differences of pairs (p, m)."""
        return np.asarray(target @ self._pairs.T)

    def coordinates(self, wanted: FloatArray) -> FloatArray:
        """Return differences of pairs (p, m) as coordinates (p, q); raise if no stack can have them."""
        target = np.asarray(wanted @ self._pairs)
        root, inverse = self._root
        reached = self.of_pairs(self.b0 + (target - self.b0) @ inverse.T @ root.T)
        gap = np.abs(reached - wanted).max()
        if gap > 1e-8 * max(1.0, np.abs(wanted).max()):
            raise InfeasibleError(
                f"target must be a score bias that some stack of these models has; the nearest to {wanted.tolist()} is "
                f"{reached.tolist()}: all base models have the same score bias on some contrast, or the contrasts "
                "depend on each other"
            )
        return target

    @cached_property
    def _root(self) -> tuple[FloatArray, FloatArray]:
        """Return (R, R⁺) with S = R·Rᵀ, R of full column rank: contrasts may be collinear, or all zero."""
        values, vectors = np.linalg.eigh((self.S + self.S.T) / 2.0)
        keep = values > max(1e-12 * max(float(values[-1]), 0.0), self.negligible, 1e-300)
        root = vectors[:, keep] * np.sqrt(values[keep])
        return root, (vectors[:, keep] / np.sqrt(values[keep])).T

    def stacks(self, target: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return w(t) for targets (p, m) as weights (p, k) and constants (p,)."""
        weights = self.w0 + self.multipliers(target) @ self.U.T
        return weights, self.mean_y - weights @ self.mean_h

    def line(self) -> tuple[FloatArray, FloatArray]:
        """Return (W, c) such that H·W + c are the start and the directions, shapes (k, 1 + m) and (1 + m,)."""
        weights = np.column_stack([self.w0, self.U])
        constants = -self.mean_h @ weights
        constants[0] += self.mean_y
        return weights, constants

    def multipliers(self, target: FloatArray) -> FloatArray:
        """Return S⁻¹(t − b₀) for targets (p, m), shape (p, m)."""
        _, inverse = self._root
        return np.asarray((target - self.b0) @ inverse.T @ inverse)

    def displaced(self, multipliers: FloatArray) -> FloatArray:
        """Return the targets (p, m) at multipliers (p, m) per unit of row weight."""
        return np.asarray(self.b0 + self.weight * multipliers @ self.S)

    def target_for_tau(self, tau: float) -> FloatArray:
        """Return the score bias (q,) of the constrained form: that in [−τ, τ]ᵐ nearest to b₀ in the metric S⁻¹.

        Notes
        -----
        For one contrast it is a clip. For several, with S = R·Rᵀ and t = b₀ + R·z, it is the least-distance problem
        min ‖z‖ subject to |b₀ + R·z| ≤ τ, which Lawson and Hanson turn into one non-negative least-squares problem.
        """
        tau = number(tau, parameter="tau", low=0.0, advice=TAU_ADVICE)
        root, inverse = self._root
        bias = self.of_pairs(self.b0)
        if np.abs(bias).max() <= tau:
            return self.b0
        if len(bias) == 1 or tau == 0 or root.shape[1] == 0:
            return np.asarray(np.clip(bias, -tau, tau) @ self._pairs)
        # Contrasts that depend on each other have biases that do; rounding must not break that, or no t is in the box.
        b0 = root @ (inverse @ self.b0)
        # In units of the way to no bias at all the solution is at most 1 long, whatever the units of y and H.
        moves, unit = self._pairs @ root, float(np.linalg.norm(inverse @ b0))
        reached = self.of_pairs(b0)
        z = np.zeros(root.shape[1]) if np.abs(reached).max() <= tau else _into_box(moves, reached, tau, unit)
        return np.asarray(np.clip(reached + moves @ z, -tau, tau) @ self._pairs)

    def target_for_lambda(self, penalty: FloatArray) -> FloatArray:
        """Return the score bias (I + λ²S)⁻¹·b₀ of the penalised form for each λ, shape (p, q)."""
        values, vectors = np.linalg.eigh((self.S + self.S.T) / 2.0)
        shrink = 1.0 / (1.0 + np.square(penalty)[:, None] * np.maximum(values, 0.0))
        return np.asarray((shrink * (self.b0 @ vectors)) @ vectors.T)


def _into_box(moves: FloatArray, bias: FloatArray, tau: float, unit: float) -> FloatArray:
    """Return the shortest z (r,) with |bias + moves·z| ≤ τ on each of m contrasts, about `unit` long.

    Of the contrasts of many row sets few are at the edge of the box: constraints are added as they are violated.
    """
    size = float(np.abs(moves).max())
    # Both sides of the box.
    bias, moves = np.concatenate([bias, -bias]), np.vstack([moves, -moves])
    used = np.zeros(len(bias), dtype=bool)
    z = np.zeros(moves.shape[1])
    while True:
        excess = np.where(used, 0.0, bias + moves @ z - tau)
        worst = np.argsort(-excess, kind="stable")[: max(8, 2 * len(z))]
        worst = worst[excess[worst] > 1e-12 * tau]
        if len(worst) == 0:
            return z
        used[worst] = True
        z = unit * least_distance(-moves[used] / size, (bias[used] - tau) / (unit * size))


def least_distance(constraints: FloatArray, limits: FloatArray) -> FloatArray:
    """Return argmin ‖z‖ subject to constraints·z ≥ limits (Lawson and Hanson, problem LDP), which must be feasible."""
    system = np.vstack([constraints.T, limits])
    goal = np.zeros(len(system))
    goal[-1] = 1.0
    dual, _ = scipy.optimize.nnls(system, goal, maxiter=30 * system.shape[1])
    residual = system @ dual - goal
    return np.asarray(-residual[:-1] / residual[-1])


def signed_targets(b0: FloatArray, n_points: int, over: float = 1.0) -> FloatArray:
    """Return t = s·b₀ for s from 1 through 0 to −`over`, shape (n_points, m)."""
    return np.linspace(1.0, -over, n_points)[:, None] * b0


def paper_penalties(n_points: int) -> FloatArray:
    """Return the paper's grid of λ: log-spaced from 1 to 10⁶."""
    return np.logspace(0.0, 6.0, n_points)


def solve_stack(
    statistics: StackStatistics,
    *,
    alpha: float,
    tau: float | None = None,
    penalty: float | None = None,
    target: FloatArray | None = None,
    scale: FloatArray | None = None,
) -> FairPath:
    """Solve one FairStacks problem with squared loss.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    alpha : float
        The ridge: the penalty is (α/2)·‖Dw‖².
    tau : float, optional
        The constrained form: every score bias in [−τ, τ] (Eq. 3 of the paper).
    penalty : float, optional
        The penalised form: + λ²·Σ bias² with this λ (the paper's supplement).
    target : array-like of shape (m,), optional
        Score bias exactly t.
    scale : ndarray of shape (k,), optional
        D; None: ones.

    Returns
    -------
    FairPath
        Of one point. Give exactly one of `tau`, `penalty`, `target`.

    Examples
    --------
    >>> y, sex = [1, 0, 1, 0], ["f", "f", "m", "m"]
    >>> H = np.array([[0.9, 0.7], [0.4, 0.1], [0.6, 0.8], [0.1, 0.4]])
    >>> statistics = StackStatistics.from_predictions(y, H, sensitive_features=sex)
    >>> path = solve_stack(statistics, alpha=0.1, tau=0.01)
    >>> path.score_bias.round(6), path.kkt < 1e-12
    (array([0.01]), array([ True]))
    """
    given = [name for name, value in (("tau", tau), ("penalty", penalty), ("target", target)) if value is not None]
    if len(given) != 1:
        raise InvalidInputError(f"give exactly one of tau, penalty and target; got {given or 'none'}")
    number(alpha, parameter="alpha", low=0.0, high=LARGEST)
    factor = RidgeFactor(statistics, _checked_scale(scale, len(statistics.mean_h)))
    solution = factor.at(alpha)
    if tau is not None:
        t = solution.target_for_tau(tau)[None, :]
    elif penalty is not None:
        t = solution.target_for_lambda(np.array([number(penalty, parameter="penalty", low=0.0, high=LARGEST)]))
    else:
        t = checked_target(target, statistics.sets.n_contrasts)[None, :]
        t = solution.coordinates(t)
    return factor.path(solution, t)


def checked_target(target: Any, n_contrasts: int) -> FloatArray:
    """Return a score bias, shape (m,)."""
    found = np.atleast_1d(np.asarray(target, dtype=np.float64))
    if found.shape != (n_contrasts,) or not np.all(np.isfinite(found)):
        raise InvalidInputError(f"target must be {n_contrasts} finite number(s), one per contrast; got {target!r}")
    return found


def _checked_scale(scale: FloatArray | None, n_models: int) -> FloatArray:
    values = np.ones(n_models) if scale is None else np.asarray(scale, dtype=np.float64)
    if values.shape != (n_models,) or not np.all((values > 0) & np.isfinite(values)):
        raise InvalidInputError(f"scale must be {n_models} positive numbers, one per model; got {scale!r}")
    return values
