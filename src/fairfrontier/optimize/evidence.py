"""Family scales by empirical Bayes: how much each family of models should be shrunk.

A larger collection must not lose to its parts, and with one common ridge a dozen good classifiers are diluted by a
thousand weak trees. Here each family f has its own Gaussian prior w_f ~ N(0, σ²/λ_f), and the λ_f maximise the evidence
(the marginal likelihood of y), which needs no folds and so adds no noise.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.optimize.statistics import StackStatistics

_ITERATIONS = 15
_TOLERANCE = 0.03
# Bounds of a penalty: below, collinear models would make the system singular; above, a family is out anyway.
_LEAST, _LARGEST = 1e-8, 1e7


@dataclass(frozen=True, eq=False)
class EvidenceScales:
    """The scales D (k,) with geometric mean 1 over the families, and the ridge α that goes with them."""

    scale: FloatArray
    alpha: float


def evidence_scales(statistics: StackStatistics, family_of: IntArray) -> EvidenceScales:
    """Return the ridge scale of each family that maximises the evidence.

    Parameters
    ----------
    statistics : StackStatistics
        The moments of the data.
    family_of : ndarray of shape (k,)
        The family of each model, numbered from 0.

    Notes
    -----
    MacKay's fixed point: with M = (HᵀH + Λ)⁻¹, w = M·Hᵀy and γ_f = k_f − λ_f·tr(M_ff), the number of well-determined
    directions, λ_f ← σ²·γ_f / ‖w_f‖² and σ² ← ‖y − Hw‖² / (n − Σγ).
    """
    gram, cross = statistics.gram, statistics.cross
    sizes = np.bincount(family_of)
    # Penalties are measured against the mean square of the predictions: their units are the user's.
    typical = max(float(np.trace(gram)) / len(gram), 1e-300)
    # Of a perfect fit only rounding is left, and rounding is no evidence.
    least_variance = 1e-6 * statistics.y_square / statistics.weight
    variance = 0.7 * statistics.y_square / statistics.weight
    spread = np.bincount(family_of, np.diag(gram))
    penalty = np.maximum(variance * spread / max(0.1 * statistics.y_square, 1e-300), _LEAST * typical)
    for _ in range(_ITERATIONS):
        factor = cho_factor(gram + np.diag(penalty[family_of]), overwrite_a=True, check_finite=False)
        inverse = cho_solve(factor, np.eye(len(family_of)), overwrite_b=True, check_finite=False)
        w = inverse @ cross
        determined = sizes - penalty * np.bincount(family_of, np.diag(inverse))
        residual = statistics.y_square - 2.0 * w @ cross + w @ gram @ w
        variance = max(residual / max(statistics.weight - determined.sum(), 1.0), least_variance)
        size = np.maximum(np.bincount(family_of, w * w), 1e-300)
        update = np.clip(variance * np.maximum(determined, 1e-6) / size, _LEAST * typical, _LARGEST * typical)
        moved = np.abs(np.log(update / penalty)).max()
        penalty = update
        if moved < _TOLERANCE:
            break
    centre = float(np.exp(np.log(penalty).mean()))
    # The penalty is (α/2)·D², so α = 2·centre.
    return EvidenceScales(np.sqrt(penalty / centre)[family_of], 2.0 * centre)
