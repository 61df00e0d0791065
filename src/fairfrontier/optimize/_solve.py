"""One FairStacks problem with squared loss, from the moments of the data alone."""

import numpy as np

from fairfrontier._validation import FloatArray, number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._ridge_path import FairPath, RidgeFactor
from fairfrontier.optimize._statistics import StackStatistics

# Largest ridge and penalty: their squares are still finite.
LARGEST = 1e100


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
    >>> from fairfrontier._validation import attributes
    >>> from fairfrontier.metrics._contrasts import build_contrasts
    >>> y, sex = np.array([1.0, 0.0, 1.0, 0.0]), np.array(["f", "f", "m", "m"])
    >>> contrasts = build_contrasts("demographic_parity", label=y > 0, attributes=attributes(sex, 4))
    >>> H = np.array([[0.9, 0.7], [0.4, 0.1], [0.6, 0.8], [0.1, 0.4]])
    >>> path = solve_stack(StackStatistics.from_arrays(H, y, contrasts), alpha=0.1, tau=0.01)
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
        t = np.asarray(target, dtype=np.float64).reshape(1, -1)
        if t.shape[1] != len(solution.b0) or not np.all(np.isfinite(t)):
            raise InvalidInputError(
                f"target must be {len(solution.b0)} finite number(s), one a contrast; got {target!r}"
            )
        solution.check_feasible(t)
    return factor.path(solution, t)


def _checked_scale(scale: FloatArray | None, n_models: int) -> FloatArray:
    values = np.ones(n_models) if scale is None else np.asarray(scale, dtype=np.float64)
    if values.shape != (n_models,) or not np.all((values > 0) & np.isfinite(values)):
        raise InvalidInputError(f"scale must be {n_models} positive numbers, one a model; got {scale!r}")
    return values
