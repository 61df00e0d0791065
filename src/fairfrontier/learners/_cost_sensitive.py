"""Fair cost-sensitive classification: weights that make the unconstrained optimum the fair one."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier

from fairfrontier._attribute_models import fit_classifier
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._fair_learner import FairLearner, FairProblem
from fairfrontier.learners._family import Matrix
from fairfrontier.learners._inputs import seed_sequence
from fairfrontier.learners._plug_in import true_contrast, two_groups
from fairfrontier.metrics._contrasts import named_measure


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
