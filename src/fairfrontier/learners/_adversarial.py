"""Adversarial debiasing (Zhang et al., 2018): all adversary weights of a grid in one batched network.

The v predictors and their adversaries share the same tensor operations. Derivatives are written out: the network is
small, and a recorded graph would cost more than its arithmetic.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import clone

from fairfrontier._extras import require
from fairfrontier._validation import number, whole_number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._fair_learner import FairLearner, FairProblem, balance
from fairfrontier.learners._family import Matrix, check_counts, seed_sequence, track

# Networks per tensor operation. It does not depend on n_jobs: that would change sums in their last bits.
_NETS_PER_TASK = 10
_ROWS_AT_ONCE = 4096
_MANY_ROWS = 10_000


# First |c| of the adversaries. At 1, as published, they compare mean scores, and decisions stay apart when those agree.
_SHARPNESS = 3.0


Tensor = Any
# Inner weights (v, d, h) and offsets (v, h), outer weights (v, h) and offsets (v,) of v networks.
Parameters = tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class NetData:
    """Training tensors: `X` (n, d), `y` (n, 1), `indicators` (n, q), `seen` (n, 1), `label_inputs` (n, r).

    `seen` is 1 on the rows that the adversary is trained on. `label_inputs` multiply the score to make the
    adversary's inputs: (1) for parity, (1, y, 1 − y) where it knows the label.
    """

    X: NDArray[np.float32]
    y: NDArray[np.float32]
    indicators: NDArray[np.float32]
    seen: NDArray[np.float32]
    label_inputs: NDArray[np.float32]


class Adam:
    """Adam on a list of tensors, elementwise, so that stacked networks stay independent."""

    def __init__(self, torch: Any, tensors: list[Tensor]) -> None:
        self._torch = torch
        self.tensors = tensors
        self._mean = [torch.zeros_like(t) for t in tensors]
        self._square = [torch.zeros_like(t) for t in tensors]
        self._step = 0

    def step(self, gradients: list[Tensor], rate: float) -> None:
        """Move every tensor against its gradient."""
        self._step += 1
        first, second = (1.0 - beta**self._step for beta in _BETAS)
        for tensor, gradient, mean, square in zip(self.tensors, gradients, self._mean, self._square, strict=True):
            mean.lerp_(gradient, 1.0 - _BETAS[0])
            square.mul_(_BETAS[1]).addcmul_(gradient, gradient, value=1.0 - _BETAS[1])
            scale = square.sqrt().mul_(1.0 / np.sqrt(second)).add_(_EPSILON)
            tensor.addcdiv_(mean, scale, value=-rate / first)


class Predictors:
    """v networks with one hidden layer of h rectified units that read the same rows."""

    def __init__(self, torch: Any, n_features: int, v: int, h: int, rng: np.random.Generator) -> None:
        self._torch = torch
        self._v, self._h = v, h
        # All networks have the same first parameters and see the same batches: only their adversary weights differ.
        inner = rng.uniform(-1.0, 1.0, size=(n_features, 1, h)) / np.sqrt(n_features)
        outer = rng.uniform(-1.0, 1.0, size=(1, h)) / np.sqrt(h)
        self.inner = self._tensor(np.broadcast_to(inner, (n_features, v, h)).reshape(n_features, v * h))
        self.inner_bias = torch.zeros(v * h)
        self.outer = self._tensor(np.broadcast_to(outer, (v, h)))
        self.outer_bias = torch.zeros(v)

    def _tensor(self, values: NDArray[np.float64]) -> Tensor:
        return self._torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))

    @property
    def tensors(self) -> list[Tensor]:
        """Return the parameters, in the order of `backward`."""
        return [self.inner, self.inner_bias, self.outer, self.outer_bias]

    def by_network(self) -> "Parameters":
        """Return the parameters as arrays with the network as first axis."""
        inner, inner_bias, outer, outer_bias = (tensor.numpy().astype(np.float64) for tensor in self.tensors)
        shape = self._v, self._h
        return inner.reshape(-1, *shape).transpose(1, 0, 2), inner_bias.reshape(shape), outer, outer_bias

    def forward(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits (b, v) and the hidden units (b, v·h)."""
        hidden = self._torch.addmm(self.inner_bias, X, self.inner).relu_()
        stacked = hidden.view(len(X), self._v, self._h).transpose(0, 1)
        logits = self._torch.bmm(stacked, self.outer.unsqueeze(2)).squeeze(2).t().contiguous()
        return logits.add_(self.outer_bias), hidden

    def backward(self, X: Tensor, hidden: Tensor, slope: Tensor) -> list[Tensor]:
        """Return the derivatives of a loss with ∂loss/∂logits = `slope` (b, v)."""
        stacked = hidden.view(len(X), self._v, self._h).transpose(0, 1)
        by_net = slope.t().contiguous()
        outer = self._torch.bmm(by_net.unsqueeze(1), stacked).squeeze(1)
        inner_slope = (slope.unsqueeze(2) * self.outer).view_as(hidden)
        inner_slope.mul_(hidden > 0)
        return [X.t() @ inner_slope, inner_slope.sum(0), outer, by_net.sum(1)]

    def project_out(self, gradients: list[Tensor], directions: list[Tensor]) -> list[Tensor]:
        """Return each gradient minus its part along its direction, network by network (Frobenius inner product)."""
        projected = []
        # In memory every parameter is (leading, network, rest).
        for gradient, direction, leading in zip(gradients, directions, (len(self.inner), 1, 1, 1), strict=True):
            g, d = (t.reshape(leading, self._v, -1) for t in (gradient, direction))
            along = (g * d).sum((0, 2)) / (d * d).sum((0, 2)).clamp_min(1e-30)
            projected.append((g - along[:, None] * d).view_as(gradient))
        return projected


class Adversaries:
    """v adversaries û = s·(w·m) + b·m for each of q indicators, with s = σ((1 + |c|)·logit) and label inputs m.

    The publication has one offset for both labels. Then w must also say how common the attribute is at each label,
    and equal rates are not its equilibrium; with one offset per label, w depends on the score only.
    """

    def __init__(self, torch: Any, v: int, q: int, r: int, share: NDArray[np.float32]) -> None:
        self._torch = torch
        self.sharpness = torch.full((v, q), _SHARPNESS)
        self.weights = torch.zeros(v, q, r)
        self.offset = torch.zeros(v, q, r)
        self.offset[:, :, 0] = torch.from_numpy(np.log(share / (1.0 - share)))
        self._inverse_balance = torch.from_numpy(1.0 / balance(share))

    @property
    def tensors(self) -> list[Tensor]:
        """Return the parameters, in the order of `gradients`."""
        return [self.sharpness, self.weights, self.offset]

    def gradients(
        self, logits: Tensor, indicators: Tensor, seen: Tensor, label_inputs: Tensor
    ) -> tuple[list[Tensor], Tensor]:
        """Return the derivatives of the mean loss by the parameters, and by the logits (b, v).

        The latter are divided by the variance of the indicator: fairness to a small group carries over less well to
        new rows, so its part in the gradient must be larger.
        """
        scale = 1.0 + self.sharpness.abs()
        wide = logits.unsqueeze(2)
        s = (wide * scale).sigmoid_()
        pull, offset = (self._torch.einsum("br,vqr->bvq", label_inputs, w) for w in (self.weights, self.offset))
        error = (s * pull + offset).sigmoid_() - indicators.unsqueeze(1)
        error *= (seen / seen.sum().clamp_min(1.0)).unsqueeze(1)
        inner = error * pull * s * (1.0 - s)
        weights, offsets = (self._torch.einsum("bvq,br->vqr", e, label_inputs) for e in (error * s, error))
        sharpness = (inner * wide).sum(0) * self.sharpness.sign()
        return [sharpness, weights, offsets], (inner * scale * self._inverse_balance).sum(2)


class AdversarialTraining:
    """v predictors, their adversaries, and the step that moves both."""

    def __init__(
        self,
        torch: Any,
        data: NetData,
        values: NDArray[np.float64],
        settings: "AdversarialDebiasing",
        rng: np.random.Generator,
    ) -> None:
        arrays = (data.X, data.y, data.indicators, data.seen, data.label_inputs)
        self._data = [torch.from_numpy(np.ascontiguousarray(a)) for a in arrays]
        self._adversary_weight = torch.from_numpy(values.astype(np.float32))
        self._settings = settings
        share = np.clip((data.indicators * data.seen).sum(0) / data.seen.sum(), 1e-6, 1.0 - 1e-6).astype(np.float32)
        self.predictors = Predictors(torch, data.X.shape[1], len(values), settings.hidden_units, rng)
        adversaries = Adversaries(torch, len(values), len(share), data.label_inputs.shape[1], share)
        self._adversaries = adversaries
        self._predictor_adam = Adam(torch, self.predictors.tensors)
        self._adversary_adam = Adam(torch, adversaries.tensors)

    def step(self, rows: Tensor, fade: float) -> None:
        """Move predictors and adversaries once, on the batch `rows`, with both rates times `fade`."""
        X, y, *adversary_data = (tensor[rows] for tensor in self._data)
        logits, hidden = self.predictors.forward(X)
        slope = (logits.sigmoid() - y) / len(X)
        own, against = self._adversaries.gradients(logits, *adversary_data)
        gradients = self._combine(X, hidden, slope, against)
        gradients[0].add_(self.predictors.inner, alpha=self._settings.weight_decay)
        self._predictor_adam.step(gradients, self._settings.learning_rate * fade)
        self._adversary_adam.step(own, self._settings.adversary_learning_rate * fade)

    def _combine(self, X: Tensor, hidden: Tensor, slope: Tensor, against: Tensor) -> list[Tensor]:
        if not self._settings.projection:
            return self.predictors.backward(X, hidden, slope - self._adversary_weight * against)
        wanted = self.predictors.backward(X, hidden, slope)
        hostile = self.predictors.backward(X, hidden, against)
        pulled = self.predictors.backward(X, hidden, self._adversary_weight * against)
        free = self.predictors.project_out(wanted, hostile)
        return [gradient - pull for gradient, pull in zip(free, pulled, strict=True)]


def train(
    data: NetData,
    values: NDArray[np.float64],
    settings: "AdversarialDebiasing",
    seed: np.random.SeedSequence,
    epochs: Iterable[int],
) -> "Parameters":
    """Return the predictors' parameters with the network as first axis, for the adversary weights `values` (v,)."""
    torch = require("torch", extra="adversarial", purpose="AdversarialDebiasing")
    rng = np.random.default_rng(seed)
    training = AdversarialTraining(torch, data, values, settings, rng)
    for rows, fade in batches(torch, rng, len(data.X), int(settings.batch_size), settings.epochs, epochs):
        training.step(rows, fade)
    return training.predictors.by_network()


def batches(
    torch: Any, rng: np.random.Generator, n: int, batch_size: int, n_epochs: int, epochs: Iterable[int]
) -> Iterator[tuple[Tensor, float]]:
    """Yield the rows of each batch, and what to multiply rates with: they fall to zero along a cosine.

    With such rates, predictors and adversaries settle instead of moving in circles. The rows left over by the last full
    batch differ from epoch to epoch.
    """
    size = min(batch_size, n)
    steps, done = n_epochs * (n // size), 0
    for _ in epochs:
        for rows in torch.from_numpy(rng.permutation(n)[: n // size * size]).split(size):
            yield rows, 0.5 * (1.0 + np.cos(np.pi * done / steps))
            done += 1


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
        inner, inner_bias = self.inner[one], self.inner_bias[one]
        return NetCore(inner, inner_bias, self.outer[one], self.outer_bias[one], self.centre, self.scale)


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
        settings = self._checked(len(problem.y))
        X, centre, scale = standardise(problem.X)
        data = _net_data(problem, X)
        root = seed_sequence(self.random_state)
        tasks = [values[i : i + _NETS_PER_TASK] for i in range(0, len(values), _NETS_PER_TASK)]
        workers = min(effective_n_jobs(self.n_jobs), len(tasks))
        with _one_thread(torch):
            trained = Parallel(n_jobs=workers, prefer="threads", require="sharedmem")(
                delayed(train)(data, task, settings, root, self._epochs(show=i == 0)) for i, task in enumerate(tasks)
            )
        joined = (np.concatenate(tensors, axis=0) for tensors in zip(*trained, strict=True))
        inner, inner_bias, outer, outer_bias = joined
        return NetCore(inner, inner_bias, outer, outer_bias, centre, scale)

    def _epochs(self, show: bool) -> Any:
        return track(range(self.epochs), total=self.epochs, description="Training") if show else range(self.epochs)

    def _checked(self, n_rows: int) -> "AdversarialDebiasing":
        """Return a copy whose parameters are checked, and whose batch size is a number."""
        check_counts(self, "hidden_units", "epochs")
        size = self.batch_size
        if isinstance(size, str):
            if size != "auto":
                raise InvalidInputError(f"batch_size must be an int or 'auto'; got {size!r}")
            size = int(np.clip(n_rows // (40 if n_rows >= _MANY_ROWS else 80), 32, 512))
        for name in ("learning_rate", "adversary_learning_rate", "weight_decay"):
            number(getattr(self, name), parameter=name, low=0.0)
        checked: AdversarialDebiasing = clone(self)
        checked.batch_size = whole_number(size, parameter="batch_size", low=1)
        return checked


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


_BETAS, _EPSILON = (0.9, 0.999), 1e-8
