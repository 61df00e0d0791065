"""Methods that compare two groups by one multiplier: plug-in rules, and cost-sensitive classification.

A plug-in rule thresholds E[y | x] − t·E[c | x], with both expectations replaced by models of them.
Among all decisions with a bias of at most a tolerance, the most accurate one accepts where the gain in accuracy,
2·P(y = 1 | x) − 1, exceeds t·d(x). For demographic parity d(x) = P(second group | x)/P(second group) −
P(first group | x)/P(first group), for equal opportunity the same with "and y = 1" in every probability. The multiplier
t is the smallest in size that meets the tolerance. Cost-sensitive classification weights the rows instead, so that the
unconstrained optimum is the fair one.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from fairfrontier._attribute_models import class_probabilities, fit_classifier
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._fair_learner import FairLearner, FairProblem
from fairfrontier.learners._family import Matrix, seed_sequence
from fairfrontier.metrics._contrasts import named_measure

# Halvings of the interval that holds the multiplier, and doublings until one holds it.
_HALVINGS, _DOUBLINGS = 60, 40
_MEASURES = ("demographic_parity", "equal_opportunity", "true_positive_rate_parity")


@dataclass(frozen=True, eq=False)
class PlugInRule:
    """A threshold on the gain minus a multiple of the direction, or a random choice between two of them."""

    multipliers: tuple[float, float]  # the multiples t of the direction: equal, or the two ends of a jump of the bias
    share: float  # probability of the first

    def probability(self, gain: FloatArray, direction: FloatArray) -> FloatArray:
        """Return the probability (n,) of decision 1."""
        first, second = (gain - t * direction > 0.0 for t in self.multipliers)
        return self.share * first + (1.0 - self.share) * second


def plug_in_rule(gain: FloatArray, direction: FloatArray, contrast: FloatArray, tolerance: float) -> PlugInRule:
    """Return the rule whose bias on given rows is at most the tolerance.

    Notes
    -----
    Where many rows have the same features the bias jumps as t grows; the rule then randomises between both sides.

    Examples
    --------
    >>> group = np.array([0, 0, 1, 1])
    >>> contrast = np.array([-0.5, -0.5, 0.5, 0.5])
    >>> gain = np.array([-0.4, 0.1, 0.3, 0.6])
    >>> rule = plug_in_rule(gain, 4 * contrast, contrast, 0.0)
    >>> rule.probability(gain, 4 * contrast).round(2)
    array([0., 1., 0., 1.])
    """

    def bias(t: float) -> float:
        return float(contrast @ (gain - t * direction > 0.0))

    start = bias(0.0)
    if abs(start) <= tolerance:
        return PlugInRule((0.0, 0.0), 1.0)
    sign = float(np.sign(start))
    low, high = 0.0, 1e-3
    for _ in range(_DOUBLINGS):
        if sign * bias(sign * high) <= tolerance:
            break
        low, high = high, 2.0 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if sign * bias(sign * middle) > tolerance else (low, middle)
    before, after = sign * bias(sign * low), sign * bias(sign * high)
    # Where the far side is beyond −tolerance, randomising between both sides still meets +tolerance exactly.
    share = 0.0 if after > tolerance or before <= after else (tolerance - after) / (before - after)
    return PlugInRule((sign * low, sign * high), float(np.clip(share, 0.0, 1.0)))


def direction_of(first: FloatArray, second: FloatArray, shares: tuple[float, float]) -> FloatArray:
    """Return d(x) from the probabilities (n,) of both groups (and y = 1), and their shares of the rows."""
    return second / shares[1] - first / shares[0]


@dataclass(frozen=True, eq=False)
class RuleCore:
    """Models of the label and of the group, and a rule for each tolerance."""

    label_model: Any
    group_model: Any
    shares: tuple[float, float]
    rules: tuple[PlugInRule, ...]
    with_label: bool

    def gain_and_direction(self, X: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Return 2·P(y = 1 | x) − 1 and d(x) of rows, each (n,)."""
        score = np.asarray(self.label_model.predict_proba(X), dtype=np.float64)[:, 1]
        found = class_probabilities(self.group_model, X, 2 if self.with_label else 1)
        first, second = (found[:, 0], found[:, 1]) if self.with_label else (1.0 - found[:, 0], found[:, 0])
        return 2.0 * score - 1.0, direction_of(first, second, self.shares)

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return the probabilities (n, k) of decision 1."""
        gain, direction = self.gain_and_direction(X)
        return np.asfortranarray(np.column_stack([rule.probability(gain, direction) for rule in self.rules]))

    def take(self, index: int) -> "RuleCore":
        """Return one rule alone."""
        return RuleCore(self.label_model, self.group_model, self.shares, (self.rules[index],), self.with_label)


class LinearPost(FairLearner):
    """Post-process a model of the label with a model of the group (Xian and Zhao, 2024).

    Half of the rows train a model of the label and a model of the group; on the other half the multiplier is found
    with which the bias, *as the model of the group predicts it*, is at most the tolerance. The attribute is not needed
    at prediction; where X holds it, the model of the group knows it, and the rule is the attribute-aware one.

    Parameters
    ----------
    tolerance : float, default=0.05
        The knob: the largest allowed difference between the groups' rates.
    fairness : {"demographic_parity", "equal_opportunity"}
        The measure; one attribute with two groups.
    estimator : classifier, default=None
        Model of the label and, cloned, of the group, with `predict_proba`; None: boosted trees.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the halves and of boosted trees.

    Notes
    -----
    The published method solves a linear program for any number of classes and groups. With two classes and two groups
    its solution is a threshold on one line, found here by bisection; a test compares it with the linear program.

    References
    ----------
    Xian, Zhao. A unified post-processing framework for group fairness in classification. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=2000)
    >>> X = np.column_stack([rng.normal(size=2000) + sex, rng.normal(size=2000)])
    >>> y = (X.sum(axis=1) + rng.normal(size=2000) > 0.5).astype(int)
    >>> grid = LinearPost(random_state=0).fit_grid(X, y, sensitive_features=sex, values=[0.2, 0.0])
    >>> chance = grid.predict_matrix(X)
    >>> gap = chance[sex == 1].mean(axis=0) - chance[sex == 0].mean(axis=0)
    >>> bool(abs(gap[1]) < 0.05 < gap[0])
    True
    """

    family: ClassVar[str] = "linear_post"
    knob: ClassVar[str] = "tolerance"
    is_randomized: ClassVar[bool] = True
    dtype: ClassVar[type] = np.float64

    def __init__(
        self,
        tolerance: float = 0.05,
        *,
        fairness: str = "demographic_parity",
        estimator: Any = None,
        random_state: Any = None,
    ) -> None:
        self.tolerance = tolerance
        self.fairness = fairness
        self.estimator = estimator
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return `count` tolerances spaced evenly from 0.2 down to 0."""
        return np.linspace(0.2, 0.0, count)

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> RuleCore:
        codes, compared = two_groups(problem, self.fairness)
        with_label = named_measure(self.fairness).needs_labels
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        y = problem.y.astype(np.intp)
        # Every second row of each group and label.
        order = np.lexsort((np.random.default_rng(seed).random(len(y)), 2 * codes + y))
        training, held_out = np.sort(order[::2]), np.sort(order[1::2])
        learner = HistGradientBoostingClassifier(random_state=seed) if self.estimator is None else self.estimator
        # With a label: class 0 is every row with y = 0, classes 1 and 2 are the groups of the others.
        of_group = np.where(y == 1, 1 + codes, 0) if with_label else codes
        label_model = clone(learner).fit(problem.X[training], y[training])
        group_model = fit_classifier(learner, problem.X[training], of_group[training])
        shares = (float(compared[0].mean()), float(compared[1].mean()))
        core = RuleCore(label_model, group_model, shares, (), with_label)
        gain, direction = core.gain_and_direction(problem.X[held_out])
        contrast = self._contrast(direction, [rows[held_out] for rows in compared])
        rules = tuple(plug_in_rule(gain, direction, contrast, float(value)) for value in values)
        return RuleCore(label_model, group_model, shares, rules, with_label)

    def _contrast(self, direction: FloatArray, members: list[NDArray[np.bool_]]) -> FloatArray:
        """Return the vector whose product with decisions is the bias that the rule is held to."""
        return direction / len(direction)


class FPIR(LinearPost):
    """The fair plug-in rule of Zeng, Cheng and Dobriban: as `LinearPost`, held to the bias of the rows' true groups.

    The multiplier is found on held-out rows whose groups are known, not from the model of the group; the attribute is
    not needed at prediction. Parameters as in `LinearPost`.

    References
    ----------
    Zeng, Cheng, Dobriban. Bayes-optimal fair classification with linear disparity constraints. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=4000)
    >>> X = np.column_stack([rng.normal(size=4000) + sex, rng.normal(size=4000)])
    >>> y = (X.sum(axis=1) + rng.normal(size=4000) > 0.5).astype(int)
    >>> model = FPIR(0.02, random_state=0).fit(X[::2], y[::2], sensitive_features=sex[::2])
    >>> chance, new = model.predict_proba(X[1::2])[:, 1], sex[1::2]
    >>> bool(abs(chance[new == 1].mean() - chance[new == 0].mean()) < 0.06)
    True
    """

    family: ClassVar[str] = "fpir"

    def _contrast(self, direction: FloatArray, members: list[NDArray[np.bool_]]) -> FloatArray:
        return true_contrast(*members)


def true_contrast(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> FloatArray:
    """Return the vector whose product with decisions is the second group's rate minus the first's."""
    return np.asarray(second / second.sum() - first / first.sum(), dtype=np.float64)


def two_groups(problem: FairProblem, fairness: str) -> tuple[NDArray[np.intp], list[NDArray[np.bool_]]]:
    """Return the group (n,) of each row, 0 or 1, and which rows of each of the two the measure compares."""
    if fairness not in _MEASURES:
        raise InvalidInputError(f"fairness must be one of {', '.join(_MEASURES)} for plug-in rules; got {fairness!r}")
    sizes = [len(attribute.values) for attribute in problem.attributes]
    if sizes != [2]:
        raise InvalidInputError(
            f"sensitive_features must be one attribute with two groups for plug-in rules; got {len(sizes)} with "
            f"{sizes} groups: merge groups, or use FairStacksClassifier"
        )
    codes = np.asarray(problem.attributes[0].codes)
    counts = (problem.y == 1) | (not named_measure(fairness).needs_labels)
    return codes, [(codes == code) & counts for code in (0, 1)]


@dataclass(frozen=True, eq=False)
class ModelsCore:
    """k classifiers of the same features."""

    models: tuple[Any, ...]

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return the scores of class 1 (n, k)."""
        return np.asfortranarray(np.column_stack([model.predict_proba(X)[:, 1] for model in self.models]))

    def take(self, index: int) -> "ModelsCore":
        """Return one classifier alone."""
        return ModelsCore((self.models[index],))


class FCSC(FairLearner):
    """Fair cost-sensitive classification (Zeng, Cheng and Dobriban): one weighted fit for each multiplier.

    The most accurate fair decision accepts where 2·P(y = 1 | x) − 1 exceeds t·d(x) (see `LinearPost`). It is also the
    unconstrained optimum of a problem in which errors cost different amounts by group and label; so a classifier with
    those sample weights learns it, with or without the attribute among the features.

    Parameters
    ----------
    multiplier : float, default=0.5
        The knob: t relative to the largest with which no weight is negative, in the direction that lowers the bias of
        the unweighted classifier.
    fairness : {"demographic_parity", "equal_opportunity"}
        The measure; one attribute with two groups.
    estimator : classifier, default=None
        Any classifier whose `fit` takes `sample_weight`; None: boosted trees with the settings of the authors.
    random_state : int, RandomState, Generator or None, default=None
        Seed of boosted trees.

    Notes
    -----
    The authors search the multiplier for a tolerance. Here every multiplier of a grid is a model, and the tolerance is
    met by a choice among them on held-out rows.

    References
    ----------
    Zeng, Cheng, Dobriban. Bayes-optimal fair classification with linear disparity constraints. 2024.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=1000)
    >>> X = np.column_stack([rng.normal(size=1000) + sex, rng.normal(size=1000)])
    >>> y = (X.sum(axis=1) + rng.normal(size=1000) > 0.5).astype(int)
    >>> grid = FCSC(random_state=0).fit_grid(X, y, sensitive_features=sex, values=[0.0, 0.5])
    >>> decisions = grid.predict_matrix(X) > 0.5
    >>> gap = decisions[sex == 1].mean(axis=0) - decisions[sex == 0].mean(axis=0)
    >>> bool(gap[1] < gap[0])
    True
    """

    family: ClassVar[str] = "fcsc"
    knob: ClassVar[str] = "multiplier"
    dtype: ClassVar[type] = np.float64

    def __init__(
        self,
        multiplier: float = 0.5,
        *,
        fairness: str = "demographic_parity",
        estimator: Any = None,
        random_state: Any = None,
    ) -> None:
        self.multiplier = multiplier
        self.fairness = fairness
        self.estimator = estimator
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return `count` multipliers spaced evenly from 0 to 0.95."""
        return np.linspace(0.0, 0.95, count)

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> ModelsCore:
        if values.max() > 1.0:
            raise InvalidInputError(f"multiplier must be at most 1, or weights are negative; got {values.max():g}")
        codes, members = two_groups(problem, self.fairness)
        seed = int(seed_sequence(self.random_state).generate_state(1)[0] >> 1)
        learner = self.estimator
        if learner is None:
            learner = HistGradientBoostingClassifier(
                learning_rate=0.05, max_iter=300, max_depth=4, l2_regularization=1.0, random_state=seed
            )
        y = problem.y.astype(np.intp)
        with_label = named_measure(self.fairness).needs_labels
        free = fit_classifier(learner, problem.X, y)
        bias = float(true_contrast(members[0], members[1]) @ (free.predict_proba(problem.X)[:, 1] > 0.5))
        sign = 1.0 if bias >= 0.0 else -1.0
        models = [
            fit_classifier(learner, problem.X, y, cost_weights(sign * value, codes, y, with_label)) if value else free
            for value in values.tolist()
        ]
        return ModelsCore(tuple(models))


def cost_weights(multiplier: float, codes: NDArray[np.intp], y: NDArray[np.intp], with_label: bool) -> FloatArray:
    """Return the weight (n,) of each row's error: (1 − k) where y = 1 and (1 + k) where y = 0, k = ±t/P(group).

    Where the measure compares rows with y = 1 only, k is 0 for the others, and P(group) is P(group, y = 1).

    Examples
    --------
    >>> cost_weights(0.5, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), with_label=False)
    array([0.5, 1.5, 1.5, 0.5])
    """
    compared = (y == 1) | (not with_label)
    share = np.array([float((compared & (codes == code)).mean()) for code in (0, 1)])
    # The largest t: both groups have weights 1 − |k|, or, of the rows with y = 1 alone, the group whose k is positive.
    largest = (share[1] if multiplier > 0.0 else share[0]) if with_label else share.min()
    tilt = multiplier * largest * np.where(codes == 1, 1.0, -1.0) / share[codes]
    return np.where(y == 1, 1.0 - tilt, 1.0 if with_label else 1.0 + tilt)
