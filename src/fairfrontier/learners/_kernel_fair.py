"""Training with the smoothed bias of decisions as a penalty (Cho, Hwang and Suh, 2020)."""

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._validation import number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._adversarial import Adam, NetCore, Predictors, Tensor, _one_thread, batches, standardise
from fairfrontier.learners._fair_learner import FairLearner, FairProblem
from fairfrontier.learners._family import check_counts, seed_sequence


class KernelFair(FairLearner):
    """Penalise the bias of *decisions*, made smooth by a kernel, while a network is trained (Cho et al., 2020).

    The rate of decisions in a group is estimated by a Gaussian kernel of the scores around the threshold, whose
    derivative is known; the loss is (1 − λ)·cross-entropy + λ·Σ (rate of the group − rate of all)²/2.

    Parameters
    ----------
    penalty : float, default=0.5
        The knob λ, from 0 to below 1. Larger is fairer.
    fairness : str, default="demographic_parity"
        Or "equal_opportunity", "predictive_equality", "equalized_odds".
    bandwidth : float, default=0.1
        Of the kernel, on the scale of scores in [0, 1].
    hidden_units, epochs, batch_size : int, default=32, 30, 512
        The network has one hidden layer of rectified units.
    learning_rate : float, default=0.003
        Of Adam; it falls to zero along a cosine.
    random_state : int, RandomState, Generator or None, default=None
        Seed of first parameters and batches.

    References
    ----------
    Cho, Hwang, Suh. A fair classifier using kernel density estimation. NeurIPS 2020.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=600)
    >>> X = np.column_stack([rng.normal(size=600) + 2 * sex, rng.normal(size=600)])
    >>> y = (X.sum(axis=1) + rng.normal(size=600) > 1).astype(int)
    >>> learner = KernelFair(epochs=15, batch_size=100, random_state=0)
    >>> grid = learner.fit_grid(X, y, sensitive_features=sex, values=[0, 0.9])
    >>> decisions = grid.predict_matrix(X) > 0.5
    >>> gap = decisions[sex == 1].mean(axis=0) - decisions[sex == 0].mean(axis=0)
    >>> bool(gap[1] < gap[0] - 0.1)
    True
    """

    family: ClassVar[str] = "kernel_fair"
    knob: ClassVar[str] = "penalty"
    dtype: ClassVar[type] = np.float64

    def __init__(
        self,
        penalty: float = 0.5,
        *,
        fairness: str = "demographic_parity",
        bandwidth: float = 0.1,
        hidden_units: int = 32,
        epochs: int = 30,
        batch_size: int = 512,
        learning_rate: float = 0.003,
        random_state: Any = None,
    ) -> None:
        self.penalty = penalty
        self.fairness = fairness
        self.bandwidth = bandwidth
        self.hidden_units = hidden_units
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return `count` penalties from 0 to 0.98, closer together near 1, where the bias has most weight."""
        return 0.98 * (1.0 - (1.0 - np.linspace(0.0, 1.0, count)) ** 1.5)

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> NetCore:
        if values.max() >= 1.0:
            raise InvalidInputError(f"penalty must be below 1, or labels do not count; got {values.max():g}")
        check_counts(self, "hidden_units", "epochs", "batch_size")
        width = number(self.bandwidth, parameter="bandwidth", low=0.0)
        if width == 0.0:
            raise InvalidInputError("bandwidth must be positive; got 0")
        torch = require("torch", extra="adversarial", purpose="KernelFair")
        X, centre, scale = standardise(problem.X)
        # Training does not depend on the number of threads: sums have one order.
        with _one_thread(torch):
            predictors = self._train(torch, X, problem, values, width)
        return NetCore(*predictors.by_network(), centre, scale)

    def _train(
        self, torch: Any, X: NDArray[np.float64], problem: FairProblem, values: NDArray[np.float64], width: float
    ) -> Predictors:
        rng = np.random.default_rng(seed_sequence(self.random_state))
        predictors = Predictors(torch, X.shape[1], len(values), self.hidden_units, rng)
        adam = Adam(torch, predictors.tensors)
        rows_of = torch.from_numpy(_memberships(problem))
        X32, y = torch.from_numpy(X.astype(np.float32)), torch.from_numpy(problem.y.astype(np.float32)[:, None])
        share = torch.from_numpy(values.astype(np.float32))
        for rows, fade in batches(torch, rng, len(X), self.batch_size, self.epochs, range(self.epochs)):
            logits, hidden = predictors.forward(X32[rows])
            score = logits.sigmoid()
            bias_slope = _smoothed_bias_slope(torch, score, rows_of[rows], width) * score * (1.0 - score)
            slope = (1.0 - share) * (score - y[rows]) / len(rows) + share * bias_slope
            adam.step(predictors.backward(X32[rows], hidden, slope), self.learning_rate * fade)
        return predictors


def _memberships(problem: FairProblem) -> NDArray[np.float32]:
    """Return indicators (n, conditions, 1 + groups): the rows that are compared, and each group among them."""
    codes = [attribute.codes == code for attribute in problem.attributes for code in range(len(attribute.values))]
    member = np.zeros((len(problem.y), len(problem.conditions), 1 + len(codes)), dtype=np.float32)
    for j, rows in enumerate(problem.conditions):
        member[rows, j, 0] = 1.0
        for k, is_member in enumerate(codes, start=1):
            member[rows, j, k] = is_member[rows]
    return member


def _smoothed_bias_slope(torch: Any, score: Tensor, member: Tensor, width: float) -> Tensor:
    """Return the derivative (b, v) of Σ (rate of the group − rate of all)²/2 by the scores."""
    distance = (score - 0.5) / width
    accepted = 0.5 * (1.0 + torch.erf(distance / 2.0**0.5))
    density = torch.exp(-0.5 * distance**2) / (width * (2.0 * np.pi) ** 0.5)
    average = member / member.sum(0).clamp_min(1.0)
    # A group without rows in the batch is compared with nothing.
    present = (member.sum(0) > 0)[:, 1:].to(average.dtype)
    contrast = (average[:, :, 1:] - average[:, :, :1]) * present
    difference = torch.einsum("bcg,bv->cgv", contrast, accepted)
    return torch.einsum("bcg,cgv->bv", contrast, difference) * density
