"""Fair classification by reductions (Agarwal et al., 2018) on Fairlearn's exponentiated gradient."""

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from fairfrontier._extras import require
from fairfrontier._validation import one_of
from fairfrontier.learners._fair_learner import FairLearner, FairProblem
from fairfrontier.learners._family import Matrix, check_counts, features, seed_sequence, track
from fairfrontier.metrics._contrasts import named_measure

# Fairlearn's constraint for the labels on which a measure conditions.
_MOMENTS = {
    (None,): "DemographicParity",
    (True,): "TruePositiveRateParity",
    (False,): "FalsePositiveRateParity",
    (True, False): "EqualizedOdds",
}


@dataclass(frozen=True, eq=False)
class Mixture:
    """A randomised classifier: `predictors` that decide 0 or 1, chosen with probabilities `weights`.

    `iterations` and `gap` tell how many steps of the exponentiated gradient it took and the duality gap it left.
    """

    predictors: tuple[Any, ...]
    weights: NDArray[np.float64]
    iterations: int
    gap: float

    def expected_decision(self, X: NDArray[Any]) -> NDArray[np.float64]:
        """Return the probability (n,) that the decision is 1."""
        total = np.zeros(len(X))
        for predictor, probability in zip(self.predictors, self.weights, strict=True):
            total += probability * predictor.predict(X)
        return np.clip(total, 0.0, 1.0)


@dataclass(frozen=True)
class MixtureCore:
    """k randomised classifiers on the same, possibly scaled, features."""

    mixtures: tuple[Mixture, ...]
    scaler: Any

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return the expected decisions (n, k)."""
        # Single precision as in training, where a scaler belongs to the default classifier.
        rows = X if self.scaler is None else self.scaler.transform(X).astype(np.float32)
        return np.asfortranarray(np.column_stack([m.expected_decision(rows) for m in self.mixtures]))

    def take(self, index: int) -> "MixtureCore":
        """Return one randomised classifier alone."""
        return MixtureCore((self.mixtures[index],), self.scaler)


class Reductions(FairLearner):
    """Reduce fair classification to a sequence of weighted problems (exponentiated gradient).

    Parameters
    ----------
    bound : float, default=0.05
        The knob, the parameter that trades accuracy for fairness: the largest allowed difference between a group's
        rate and the rate of all. Smaller is fairer.
    fairness : str, default="demographic_parity"
        Or "equal_opportunity", "predictive_equality", "equalized_odds"; with a ratio such as "impact_ratio" it is the
        difference of the same rates that is bounded.
    estimator : classifier, default=None
        Any classifier whose `fit` takes `sample_weight`; None: that of `base`.
    base : {"logistic", "boosted"}, default="logistic"
        Where no estimator is given: logistic regression on standardised features, or boosted trees, which are more
        accurate on large tables and take longer.
    max_iter : int, default=50
        Most iterations of the exponentiated gradient.
    n_jobs : int, default=None
        Processes, for `fit_grid`; the result is the same to the last bit with any number.
    random_state : int, RandomState, Generator or None, default=None
        Seed of `estimator`, and of `sample_decisions`.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes.
    core_ : MixtureCore
        The randomised classifier: `predictors` and their `weights`.
    n_iter_ : int
        Iterations of the exponentiated gradient.

    Notes
    -----
    The solution is a *randomised* classifier, a distribution over classifiers; its guarantee holds for its
    expected decisions. `predict_proba[:, 1]` is therefore the exact probability of decision 1, and the expected
    accuracy and bias follow from it exactly, both being linear in the decisions:
    ``tradeoff_points(y, grid.predict_matrix(X), sensitive_features=s, threshold=None)``. `predict` is the more
    probable decision, which is another, deterministic classifier without the guarantee; `sample_decisions`
    draws from the randomised one.

    References
    ----------
    Agarwal, Beygelzimer, Dudík, Langford, Wallach. A reductions approach to fair classification. ICML 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=400)
    >>> X = np.column_stack([rng.normal(size=400) + sex, rng.normal(size=400)])
    >>> y = (X.sum(axis=1) + rng.normal(size=400) > 0.5).astype(int)
    >>> grid = Reductions().fit_grid(X, y, sensitive_features=sex, values=[0.2, 0.01])
    >>> expected = grid.predict_matrix(X)
    >>> gap = expected[sex == 1].mean(axis=0) - expected[sex == 0].mean(axis=0)
    >>> bool(gap[1] < gap[0])
    True
    """

    family: ClassVar[str] = "reductions"
    knob: ClassVar[str] = "bound"
    paper_range: ClassVar[tuple[float, float] | None] = (1.0, 0.0)
    is_randomized: ClassVar[bool] = True
    dtype: ClassVar[type] = np.float64

    def __init__(
        self,
        bound: float = 0.05,
        *,
        fairness: str = "demographic_parity",
        estimator: Any = None,
        base: str = "logistic",
        max_iter: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.bound = bound
        self.fairness = fairness
        self.estimator = estimator
        self.base = base
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return `count` bounds spaced evenly from 0.15 down to 0.001."""
        return np.linspace(0.15, 0.001, count)

    @property
    def n_iter_(self) -> int:
        """Return the number of iterations of the exponentiated gradient."""
        check_is_fitted(self, "core_")
        return cast(MixtureCore, self.core_).mixtures[0].iterations

    def sample_decisions(self, X: Any, *, random_state: Any = None) -> NDArray[Any]:
        """Draw one decision per row (n,) from the randomised classifier.

        Parameters
        ----------
        X : array-like or dataframe of shape (n, d)
            Rows to decide.
        random_state : int, RandomState, Generator or None, default=None
            Seed of the draws; None: the estimator's `random_state`.
        """
        check_is_fitted(self, "core_")
        rng = np.random.default_rng(seed_sequence(self.random_state if random_state is None else random_state))
        chance = self.core_.scores(features(self, X, dtype=self.dtype))[:, 0]
        classes: NDArray[Any] = self.classes_
        return classes[(rng.random(len(chance)) < chance).astype(np.intp)]

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> MixtureCore:
        reductions = require("fairlearn.reductions", extra="learners", purpose="Reductions")
        check_counts(self, "max_iter")
        one_of(self.base, ("logistic", "boosted"), parameter="base")
        scaler, X, oracle = None, problem.X, self.estimator
        if oracle is None and self.base == "boosted":
            # Each of the many fits is a best response to costs: small ones do, and their mixture is large.
            oracle = HistGradientBoostingClassifier(learning_rate=0.15, max_iter=40, max_leaf_nodes=15)
        elif oracle is None:
            # Scaling once is the same as scaling inside every one of the hundreds of fits.
            scaler = StandardScaler().fit(X)
            X = scaler.transform(X).astype(np.float32)
            # Single precision and a loose tolerance: the method needs an approximate best response only.
            oracle = LogisticRegression(tol=1e-3, max_iter=1000)
        oracle = _seeded(oracle, self.random_state)
        moment = getattr(reductions, _MOMENTS[named_measure(self.fairness).conditions])
        group = _crossed(problem)
        jobs = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(_solve)(reductions.ExponentiatedGradient, moment, oracle, bound, self.max_iter, X, problem.y, group)
            for bound in values
        )
        return MixtureCore(tuple(track(jobs, total=len(values), description="Reducing")), scaler)


def _solve(
    method: Any,
    moment: Any,
    oracle: Any,
    bound: float,
    max_iter: int,
    X: NDArray[Any],
    y: NDArray[np.float64],
    group: NDArray[np.intp],
) -> Mixture:
    # The order of a sum in BLAS depends on its number of threads, and with it the last bits of the model.
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        # These warnings are about Fairlearn's own use of pandas, which a caller cannot change.
        warnings.filterwarnings("ignore", message="Setting (a value on a Series via|an item of incompatible dtype)")
        model = method(clone(oracle), moment(difference_bound=float(bound)), max_iter=max_iter)
        model.fit(X, y.astype(int), sensitive_features=group)
    weights = np.asarray(model.weights_.sort_index(), dtype=np.float64)
    used = np.flatnonzero(weights > 0.0)
    predictors = tuple(model.predictors_.iloc[j] for j in used)
    return Mixture(predictors, weights[used] / weights[used].sum(), int(model.last_iter_) + 1, float(model.best_gap_))


def _crossed(problem: FairProblem) -> NDArray[np.intp]:
    """Return one group code per row; several attributes are crossed."""
    code = np.zeros(len(problem.y), dtype=np.intp)
    for attribute in problem.attributes:
        code = code * len(attribute.values) + attribute.codes
    return code


def _seeded(oracle: Any, random_state: Any) -> Any:
    """Return a clone in which `random_state` parameters that were None have a seed."""
    oracle = clone(oracle)
    seed = int(seed_sequence(random_state).generate_state(1)[0] >> 1)
    names = [name for name in oracle.get_params() if name == "random_state" or name.endswith("__random_state")]
    without_seed = {name: seed for name in names if oracle.get_params()[name] is None}
    return oracle.set_params(**without_seed)
