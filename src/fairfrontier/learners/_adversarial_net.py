"""The batched network of adversarial debiasing: v predictors and their adversaries in the same tensor operations.

Derivatives are written out: the network is small, and a recorded graph would cost more than its arithmetic.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier.learners._fair_learner import balance

Tensor = Any
_BETAS, _EPSILON = (0.9, 0.999), 1e-8
# First |c| of the adversaries. At 1, as published, they compare mean scores, and decisions stay apart when those agree.
_SHARPNESS = 3.0


@dataclass(frozen=True)
class NetSettings:
    """Settings that all v networks share; see `AdversarialDebiasing`."""

    hidden_units: int
    epochs: int
    batch_size: int
    learning_rate: float
    adversary_learning_rate: float
    weight_decay: float
    projection: bool


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
        self, torch: Any, data: NetData, values: NDArray[np.float64], settings: NetSettings, rng: np.random.Generator
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
    settings: NetSettings,
    seed: np.random.SeedSequence,
    epochs: Iterable[int],
) -> tuple[NDArray[np.float32], ...]:
    """Return the predictors' parameters with the network as first axis, for the adversary weights `values` (v,).

    Returns
    -------
    tuple of arrays of shapes (v, d, h), (v, h), (v, h) and (v,)
    """
    torch = require("torch", extra="adversarial", purpose="AdversarialDebiasing")
    rng = np.random.default_rng(seed)
    training = AdversarialTraining(torch, data, values, settings, rng)
    n = len(data.X)
    size = min(settings.batch_size, n)
    steps = settings.epochs * (n // size)
    done = 0
    for _ in epochs:
        # The rows left over by the last full batch differ from epoch to epoch.
        order = torch.from_numpy(rng.permutation(n)[: n // size * size])
        for rows in order.split(size):
            # With rates that fall to zero, predictors and adversaries settle instead of moving in circles.
            training.step(rows, fade=0.5 * (1.0 + np.cos(np.pi * done / steps)))
            done += 1
    inner, inner_bias, outer, outer_bias = (t.numpy() for t in training.predictors.tensors)
    v, h = outer.shape
    return inner.reshape(-1, v, h).transpose(1, 0, 2), inner_bias.reshape(v, h), outer, outer_bias
