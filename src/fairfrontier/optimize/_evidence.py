"""Ridges by empirical Bayes: how much each family of models should be shrunk.

A larger collection must not lose to its parts, and with one common ridge a dozen good classifiers are diluted by a
thousand weak trees. Here each family f has its own Gaussian prior w_f ~ N(0, σ²/λ_f), and the λ_f maximise the evidence
(the marginal likelihood of what is predicted), which needs no folds and so adds no noise. What is predicted is y for
the stack itself, and the contrasts for the directions in which it is debiased. Models of the attribute predict the
contrasts by themselves; the prior of the directions is then centred at what they say.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.optimize._statistics import StackStatistics

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
    """The scales D (k,) with geometric mean 1 over the families, and the ridge α that goes with them."""

    scale: FloatArray
    alpha: float


def evidence_scales(statistics: StackStatistics, family_of: IntArray) -> EvidenceScales:
    """Return the ridge scale of each family that maximises the evidence of y.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    family_of : ndarray of shape (k,)
        The family of each model, numbered from 0.
    """
    square = np.array([statistics.y_square])
    penalty = _penalties(statistics, statistics.cross[:, None], square, family_of, _LEAST)
    centre = float(np.exp(np.log(penalty).mean()))
    # The penalty is (α/2)·D², so α = 2·centre.
    return EvidenceScales(np.sqrt(penalty / centre)[family_of], 2.0 * centre)


def evidence_of_directions(
    statistics: StackStatistics, family_of: IntArray, group: IntArray | None = None
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
    """
    cross, square = statistics.contrast_matrix(), _squares_of_contrasts(statistics)
    plug_in, factor = plug_in_directions(statistics, group), 1.0
    if plug_in is not None:
        factor = _CAUTION
        fitted = statistics.gram @ plug_in
        left = square - 2.0 * np.sum(plug_in * cross, axis=0) + np.sum(plug_in * fitted, axis=0)
        # Where the attribute is a feature its models leave nothing, and rounding is no evidence.
        cross, square = cross - fitted, np.maximum(left, _PERFECT * square)
    # In units of its own size each contrast counts alike.
    size = np.sqrt(square)
    penalty = _penalties(statistics, cross / size, np.ones(len(square)), family_of, _LEAST_OF_DIRECTIONS)
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
    return np.asarray(average @ cho_solve(factor, part.contrast_matrix(), check_finite=False))


def _combined(statistics: StackStatistics, weights: FloatArray) -> StackStatistics:
    """Return the statistics of weighted sums (k, q) of the models."""
    return replace(
        statistics,
        mean_h=statistics.mean_h @ weights,
        gram=weights.T @ statistics.gram @ weights,
        cross=statistics.cross @ weights,
        set_h=statistics.set_h @ weights,
    )


def _squares_of_contrasts(statistics: StackStatistics) -> FloatArray:
    """Return the weighted sum of squares (m,) of each contrast: it is 1/W₁ on one row set and −1/W₂ on the other."""
    first, second = statistics.sets.pairs().T
    return np.asarray(1.0 / statistics.set_weight[first] + 1.0 / statistics.set_weight[second])


def _penalties(
    statistics: StackStatistics, cross: FloatArray, square: FloatArray, family_of: IntArray, least: float
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
    typical = max(float(np.trace(gram)) / len(gram), 1e-300)
    # Of a perfect fit only rounding is left, and rounding is no evidence.
    least_variance = 1e-6 * total / (n_targets * statistics.weight)
    variance = 0.7 * total / (n_targets * statistics.weight)
    spread = np.bincount(family_of, np.diag(gram))
    penalty = np.maximum(variance * n_targets * spread / max(0.1 * total, 1e-300), least * typical)
    for _ in range(_ITERATIONS):
        inverse = _inverse(gram, penalty[family_of])
        W = inverse @ cross
        determined = sizes - penalty * np.bincount(family_of, np.diag(inverse))
        residual = total - 2.0 * np.sum(W * cross) + np.sum(W * (gram @ W))
        freedom = n_targets * max(statistics.weight - determined.sum(), 1.0)
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
