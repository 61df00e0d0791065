"""Adversarial debiasing (Zhang et al., 2018): all adversary weights of a grid in one batched network."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._validation import number, whole_number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._adversarial_net import NetData, NetSettings, train
from fairfrontier.learners._fair_learner import FairLearner, FairProblem
from fairfrontier.learners._family import Matrix
from fairfrontier.learners._inputs import check_counts, seed_sequence
from fairfrontier.learners._progress import track

# Networks per tensor operation. It does not depend on n_jobs: that would change sums in their last bits.
_NETS_PER_TASK = 10
_ROWS_AT_ONCE = 4096
_MANY_ROWS = 10_000


@dataclass(frozen=True, eq=False)
class NetCore:
    """k trained networks as plain arrays, which can be pickled and predict without PyTorch.

    `inner` (k, d, h), `inner_bias` (k, h), `outer` (k, h), `outer_bias` (k,); `centre` and `scale` (d,)
    standardise the features.
    """

    inner: NDArray[np.float64]
    inner_bias: NDArray[np.float64]
    outer: NDArray[np.float64]
    outer_bias: NDArray[np.float64]
    centre: NDArray[np.float64]
    scale: NDArray[np.float64]

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return the networks' scores (n, k), float64."""
        matrix = np.empty((len(X), len(self.outer)), order="F")
        for start in range(0, len(X), _ROWS_AT_ONCE):
            rows = (X[start : start + _ROWS_AT_ONCE] - self.centre) / self.scale
            hidden = np.maximum(np.matmul(rows, self.inner) + self.inner_bias[:, None, :], 0.0)
            logit = np.matmul(hidden, self.outer[:, :, None])[:, :, 0] + self.outer_bias[:, None]
            matrix[start : start + len(rows)] = (0.5 * (1.0 + np.tanh(0.5 * logit))).T
        return matrix

    def take(self, index: int) -> "NetCore":
        """Return one network alone."""
        one = slice(index, index + 1)
        return NetCore(
            self.inner[one], self.inner_bias[one], self.outer[one], self.outer_bias[one], self.centre, self.scale
        )


class AdversarialDebiasing(FairLearner):
    """Train a network against an adversary that predicts the sensitive attribute from its output.

    Parameters
    ----------
    adversary_weight : float, default=1.0
        The knob, the parameter that trades accuracy for fairness: 0 is a plain network, larger is fairer.
    fairness : str, default="demographic_parity"
        The adversary sees the score alone. "equal_opportunity" and "predictive_equality": the same, on the rows of
        one label. "equalized_odds": it sees the score and the label.
    projection : bool, default=False
        True: the published update, which also removes from the predictor's gradient its part along the adversary's;
        False: plain gradient reversal. See Notes.
    hidden_units : int, default=32
        Units of the hidden layer.
    epochs : int, default=30
        Passes over the rows.
    batch_size : int or "auto", default="auto"
        Rows per step. "auto": a fortieth of the rows, or an eightieth if they are fewer than 10,000, between 32 and
        512. With too few steps the training does not settle.
    learning_rate : float, default=0.003
        First rate of Adam for the predictor; it falls to zero along a cosine.
    adversary_learning_rate : float, default=0.003
        The same for the adversary.
    weight_decay : float, default=0.0003
        Ridge penalty on the first layer.
    n_jobs : int, default=None
        Threads, ten values of a grid each; the result is the same to the last bit with any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the first weights and of the batches. All values of a grid share both.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes.
    core_ : NetCore
        The trained network.

    Notes
    -----
    The predictor has one hidden layer of rectified units on standardised features. The adversary is the published
    one, w·(s, s·y, s·(1 − y)) + b with s = σ((1 + abs(c))·logit), without the two label inputs where it must not
    know the label, and with an offset b for each label where it knows it (with a single offset, equal rates are
    not the equilibrium). With L_P and L_A the two mean losses and α the knob, each tensor of the predictor moves
    along

        ∇L_P − α·∇L_A                              projection=False
        ∇L_P − proj(∇L_P on ∇L_A) − α·∇L_A         projection=True

    where the part of a group in ∇L_A is divided by 4·π(1 − π), π its share: fairness to small groups carries over less
    well to new rows. On Adult, where 15 % of the people are not white, this division raised the FAUC by 0.004.

    The sharpness c starts at 3 and not at 1: σ(4·logit) is close to the decision, so the adversary compares decisions
    and not mean scores. On rows held out of training this raised the FAUC by 0.004 on Adult, by 0.006 on COMPAS,
    and there by 0.010 for equal opportunity. Fairness rises with the weight up to about 3.5 on Adult, and up to about 1
    on COMPAS, where the bias is then 0 up to noise.

    The projection takes out whatever part of the step would help the adversary. Together with an adversary of
    demographic parity it is unstable: on the COMPAS data the fairness for race fell to about 0.4 at every weight
    above 0.5, because the networks came to predict the attribute itself, and on Adult it jumped between
    0.3 and 1. Gradient reversal gave paths that are monotone up to noise on both, and is therefore the default.

    References
    ----------
    Zhang, Lemoine, Mitchell. Mitigating unwanted biases with adversarial learning. AIES 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=600)
    >>> X = np.column_stack([rng.normal(size=600) + 2 * sex, rng.normal(size=600)])
    >>> y = (X.sum(axis=1) + rng.normal(size=600) > 1).astype(int)
    >>> learner = AdversarialDebiasing(epochs=15, random_state=0)
    >>> grid = learner.fit_grid(X, y, sensitive_features=sex, values=[0, 3])
    >>> decisions = grid.predict_matrix(X) > 0.5
    >>> gap = decisions[sex == 1].mean(axis=0) - decisions[sex == 0].mean(axis=0)
    >>> bool(gap[1] < gap[0])
    True
    """

    family: ClassVar[str] = "adversarial"
    knob: ClassVar[str] = "adversary_weight"
    paper_range: ClassVar[tuple[float, float] | None] = (0.0, 1.0)
    dtype: ClassVar[type] = np.float64

    def __init__(
        self,
        adversary_weight: float = 1.0,
        *,
        fairness: str = "demographic_parity",
        projection: bool = False,
        hidden_units: int = 32,
        epochs: int = 30,
        batch_size: int | str = "auto",
        learning_rate: float = 0.003,
        adversary_learning_rate: float = 0.003,
        weight_decay: float = 0.0003,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.adversary_weight = adversary_weight
        self.fairness = fairness
        self.projection = projection
        self.hidden_units = hidden_units
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.adversary_learning_rate = adversary_learning_rate
        self.weight_decay = weight_decay
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return `count` values from 0 to 3.5, closer together near 0, where a change of the weight has most effect."""
        return 3.5 * np.linspace(0.0, 1.0, count) ** 2

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> NetCore:
        torch = require("torch", extra="adversarial", purpose="AdversarialDebiasing")
        settings = self._settings(len(problem.y))
        X, centre, scale = standardise(problem.X)
        data = _net_data(problem, X)
        root = seed_sequence(self.random_state)
        tasks = [values[i : i + _NETS_PER_TASK] for i in range(0, len(values), _NETS_PER_TASK)]
        workers = min(effective_n_jobs(self.n_jobs), len(tasks))
        with _one_thread(torch):
            trained = Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(
                delayed(train)(data, task, settings, root, self._epochs(show=i == 0)) for i, task in enumerate(tasks)
            )
        joined = (np.concatenate(tensors, axis=0, dtype=np.float64) for tensors in zip(*trained, strict=True))
        inner, inner_bias, outer, outer_bias = joined
        return NetCore(inner, inner_bias, outer, outer_bias, centre, scale)

    def _epochs(self, show: bool) -> Any:
        return track(range(self.epochs), total=self.epochs, description="Training") if show else range(self.epochs)

    def _settings(self, n_rows: int) -> NetSettings:
        check_counts(self, "hidden_units", "epochs")
        size = self.batch_size
        if isinstance(size, str):
            if size != "auto":
                raise InvalidInputError(f"batch_size must be an int or 'auto'; got {size!r}")
            size = int(np.clip(n_rows // (40 if n_rows >= _MANY_ROWS else 80), 32, 512))
        return NetSettings(
            hidden_units=self.hidden_units,
            epochs=self.epochs,
            batch_size=whole_number(size, parameter="batch_size", low=1),
            learning_rate=number(self.learning_rate, parameter="learning_rate", low=0.0),
            adversary_learning_rate=number(self.adversary_learning_rate, parameter="adversary_learning_rate", low=0.0),
            weight_decay=number(self.weight_decay, parameter="weight_decay", low=0.0),
            projection=bool(self.projection),
        )


def standardise(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return features (n, d) with mean 0 and variance 1, and the centre and scale (d,) that make them so."""
    centre, scale = X.mean(axis=0), X.std(axis=0)
    # A constant column is found by its range: the standard deviation of a constant 0.1 is 1e-15, not 0.
    scale[np.ptp(X, axis=0) == 0.0] = 1.0
    return (X - centre) / scale, centre, scale


def _net_data(problem: FairProblem, X: NDArray[np.float64]) -> NetData:
    y = problem.y.astype(np.float32)[:, None]
    ones = np.ones_like(y)
    knows_label = len(problem.conditions) > 1
    seen = np.zeros_like(y)
    for rows in problem.conditions:
        seen[rows] = 1.0
    label_inputs = np.concatenate([ones, y, 1.0 - y], axis=1) if knows_label else ones
    return NetData(X.astype(np.float32), y, problem.indicators(), seen, label_inputs)


@contextmanager
def _one_thread(torch: Any) -> Iterator[None]:
    """Let PyTorch use one thread per task: sums then have one order, and the tasks share the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
