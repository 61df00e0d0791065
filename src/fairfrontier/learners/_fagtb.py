"""Fair adversarial gradient tree boosting (Grari et al., 2019) on histogram trees."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from numpy.typing import NDArray

from fairfrontier._extras import require
from fairfrontier._validation import number
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners._fair_learner import FairLearner, FairProblem, balance
from fairfrontier.learners._family import Matrix, check_counts, seed_sequence, track

Vector = NDArray[np.float32]
_PURPOSE = "FAGTB"
# Above this share of zeros, zeros are handled as absent: XGBoost then visits only the other entries.
_SPARSE_SHARE = 0.5
# The sum of the steps of all rounds with adversary_step="auto", and the longest step that is stable.
_SUM_OF_STEPS, _LONGEST_STEP = 9.0, 3.0


def _sigmoid(x: Vector) -> Vector:
    with np.errstate(over="ignore"):  # exp overflows to inf, and 1/inf is the right limit
        return np.asarray(np.float32(1.0) / (np.float32(1.0) + np.exp(-x)))


class _Adversaries:
    """Logistic adversaries of one model: one for each condition and indicator column.

    Each predicts an indicator s from the current score p = σ(F) as σ(a·p + b) and descends its *mean* loss once
    per round, so that neither its step nor the weight depends on the number of rows.
    """

    def __init__(self, problem: FairProblem, step: float) -> None:
        indicators = problem.indicators()
        # A slice takes all rows without copying them.
        n_rows = len(problem.y)
        self._rows: list[Any] = []
        self._target: list[Vector] = []
        for condition in problem.conditions:
            rows = slice(None) if len(condition) == n_rows else condition
            for column in indicators.T:
                self._rows.append(rows)
                self._target.append(np.ascontiguousarray(column[rows]))
        self._slope = [np.float32(0.0)] * len(self._rows)
        shares = [np.mean(target, dtype=np.float64) for target in self._target]
        self._intercept = [np.float32(np.log(share / (1.0 - share))) for share in shares]
        # The derivative by the slope is var(s) times the bias. Divided by var(s), a weight means the same for groups of
        # any size.
        self._step = [np.float32(min(step / balance(share), _LONGEST_STEP)) for share in shares]

    def gradient_and_update(self, p: Vector, curvature: Vector) -> Vector:
        """Return the summed ∂(loss of the adversaries)/∂F row by row, then move each adversary one step.

        Each derivative is divided by the share of the `curvature` on the adversary's rows: a leaf's step is a sum of
        derivatives over a sum of curvatures of *all* its rows, so that a weight means the same for every measure.
        """
        gradient = np.zeros_like(p)
        slope_of_p = p * (np.float32(1.0) - p)
        for j, (rows, target) in enumerate(zip(self._rows, self._target, strict=True)):
            seen = p[rows]
            error = _sigmoid(self._slope[j] * seen + self._intercept[j]) - target
            share = curvature[rows].sum() / curvature.sum()
            gradient[rows] += self._slope[j] / share * error * slope_of_p[rows]
            self._slope[j] -= self._step[j] * np.mean(error * seen)
            self._intercept[j] -= self._step[j] * np.mean(error)
        return gradient


@dataclass(frozen=True)
class BoosterCore:
    """k boosted models in several XGBoost boosters, one output per model.

    `index` (k, 2) tells the booster and the output of every model; `missing` is the value that the trees take as
    absent.
    """

    boosters: tuple[Any, ...]
    index: tuple[tuple[int, int], ...]
    intercept: float
    missing: float

    def scores(self, X: NDArray[Any]) -> Matrix:
        """Return σ(F) (n, k)."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        needed = {b for b, _ in self.index}
        margins = {b: self._margin(self.boosters[b], rows) for b in needed}
        matrix = np.empty((len(rows), len(self.index)), dtype=np.float32, order="F")
        for j, (b, output) in enumerate(self.index):
            matrix[:, j] = _sigmoid(margins[b][:, output] + np.float32(self.intercept))
        return matrix

    def _margin(self, booster: Any, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        margin = booster.inplace_predict(rows, predict_type="margin", missing=self.missing)
        return np.asarray(margin, dtype=np.float32).reshape(len(rows), -1)

    def take(self, index: int) -> "BoosterCore":
        """Return one model alone; it keeps the trees of its booster."""
        booster, output = self.index[index]
        return BoosterCore((self.boosters[booster],), ((0, output),), self.intercept, self.missing)


class FAGTB(FairLearner):
    """Boost trees against an adversary that predicts the sensitive attribute from the score.

    Parameters
    ----------
    adversary_weight : float, default=4.0
        The knob, the parameter that trades accuracy for fairness, λ: 0 is plain boosting, larger is fairer.
    fairness : str, default="demographic_parity"
        Or "equal_opportunity", "predictive_equality", "equalized_odds": the adversary then sees the rows of one
        label, or there is one adversary per label.
    n_estimators : int, default=300
        Rounds of boosting.
    learning_rate : float, default=0.1
        Shrinkage of each tree.
    max_depth : int, default=3
        Depth of the trees.
    min_child_weight : float, default=1.0
        Smallest sum of second derivatives in a leaf.
    adversary_step : float or "auto", default="auto"
        Step of the adversary on its mean loss, once per round, between two groups of equal size; "auto":
        9 / n_estimators, which is 0.03 for 300 rounds. See Notes.
    max_bin : int, default=256
        Bins of a feature's histogram.
    n_jobs : int, default=None
        Threads, each with some of the values of a grid; the result is the same to the last bit with any number.
    random_state : ignored
        The method draws nothing at random; the parameter is there so that all learners can be set alike.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The two classes.
    core_ : BoosterCore
        The fitted model.

    Notes
    -----
    With y the label, p = σ(F) the score and an adversary σ(a·p + b) of the attribute s, a round fits a tree to

        ∂/∂F [ logloss(y, p) − λ · logloss(s, σ(a·p + b)) ]

    with the second derivatives p(1 − p) of the first term, adds it to F, and moves (a, b) one gradient step on the
    adversary's *mean* loss. The publication's code sums that loss, so its λ in [0, 0.2] belongs to its n. Here a λ
    means about the same for any number of rows, any group and any measure: the step is divided by 4·π(1 − π), with π
    the share of the group (and is at most 3), and the adversary's term by the share of p(1 − p) on the rows that it
    sees.

    The step is small on purpose: the slope a is then in effect the sum of the biases of all rounds, and the trees
    follow it. "auto" holds the steps of all rounds together fixed, so that a λ hardly depends on their number.
    Fairness rises with λ up to about 20, where the bias is 0; beyond that it changes its sign and comes back a
    little. On Adult, steps of 0.1 and 1 gave FAUCs 0.004 and 0.009 lower on rows that were held out of training, and
    with a step of 3 and λ = 26 the model came to predict the attribute itself; Newton steps diverge.

    An attribute of more than two groups has one adversary per group, several attributes have their own; the losses
    add. `fit_grid` grows the trees of all values on one binned matrix; where most entries of X are zero (indicator
    columns) zeros are handled as absent entries, which gives the same splits on indicators in a fraction of the time.

    References
    ----------
    Grari, Ruf, Lamprier, Detyniecki. Fair adversarial gradient tree boosting. ICDM 2019.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(2, size=500)
    >>> X = np.column_stack([rng.normal(size=500) + sex, rng.normal(size=500)])
    >>> y = (X.sum(axis=1) + rng.normal(size=500) > 0.5).astype(int)
    >>> learner = FAGTB(n_estimators=50)
    >>> grid = learner.fit_grid(X, y, sensitive_features=sex, values=[0, 8])
    >>> decisions = grid.predict_matrix(X) > 0.5
    >>> gap = decisions[sex == 1].mean(axis=0) - decisions[sex == 0].mean(axis=0)
    >>> bool(gap[1] < gap[0])
    True
    """

    family: ClassVar[str] = "fagtb"
    knob: ClassVar[str] = "adversary_weight"
    paper_range: ClassVar[tuple[float, float] | None] = (0.0, 0.2)

    def __init__(
        self,
        adversary_weight: float = 4.0,
        *,
        fairness: str = "demographic_parity",
        n_estimators: int = 300,
        learning_rate: float = 0.1,
        max_depth: int = 3,
        min_child_weight: float = 1.0,
        adversary_step: float | str = "auto",
        max_bin: int = 256,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.adversary_weight = adversary_weight
        self.fairness = fairness
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.min_child_weight = min_child_weight
        self.adversary_step = adversary_step
        self.max_bin = max_bin
        self.n_jobs = n_jobs
        self.random_state = random_state

    @classmethod
    def default_values(cls, count: int = 20) -> NDArray[np.float64]:
        """Return 0 and `count` − 1 values spaced evenly in the logarithm from 0.5 to 20."""
        return np.concatenate([[0.0], np.geomspace(0.5, 20.0, count - 1)])

    def _fit_values(self, problem: FairProblem, values: NDArray[np.float64]) -> BoosterCore:
        xgb = require("xgboost", extra="learners", purpose=_PURPOSE)
        check_counts(self, "n_estimators")
        step = self._step()
        seed_sequence(self.random_state)
        missing = 0.0 if np.mean(problem.X == 0.0) > _SPARSE_SHARE else np.nan
        data = xgb.QuantileDMatrix(problem.X, max_bin=self.max_bin, missing=missing, nthread=1)
        chunks = np.array_split(np.arange(len(values)), min(effective_n_jobs(self.n_jobs), len(values)))
        threads = Parallel(n_jobs=len(chunks), prefer="threads", require="sharedmem")
        boosters = threads(delayed(self._boost)(xgb, data, problem, values[c], step, c[0] == 0) for c in chunks)
        index = tuple((b, output) for b, chunk in enumerate(chunks) for output in range(len(chunk)))
        return BoosterCore(tuple(boosters), index, _prior(problem.y), missing)

    def _boost(
        self, xgb: Any, data: Any, problem: FairProblem, values: NDArray[np.float64], step: float, show: bool
    ) -> Any:
        """Grow the trees of some values; XGBoost sees one model with an output for each."""
        booster = xgb.Booster(self._parameters(len(values)), [data])
        adversaries = [_Adversaries(problem, step) for _ in values]
        y, prior = problem.y.astype(np.float32), np.float32(_prior(problem.y))
        gradient = np.empty((len(y), len(values)), dtype=np.float32, order="F")
        hessian = np.empty_like(gradient)
        rounds: Any = range(self.n_estimators)
        for t in track(rounds, total=self.n_estimators, description="Boosting") if show else rounds:
            margin = booster.predict(data, output_margin=True, training=True).reshape(len(y), -1)
            for j, (value, opponent) in enumerate(zip(values, adversaries, strict=True)):
                p = _sigmoid(margin[:, j] + prior)
                # Where p is 0 or 1 the second derivative is 0, and a leaf would divide by it.
                np.maximum(p * (np.float32(1.0) - p), np.float32(1e-3), out=hessian[:, j])
                gradient[:, j] = p - y - np.float32(value) * opponent.gradient_and_update(p, hessian[:, j])
            booster.boost(data, t, grad=gradient, hess=hessian)
        return booster

    def _step(self) -> float:
        if isinstance(self.adversary_step, str):
            if self.adversary_step != "auto":
                raise InvalidInputError(f"adversary_step must be a number or 'auto'; got {self.adversary_step!r}")
            return _SUM_OF_STEPS / self.n_estimators
        return number(self.adversary_step, parameter="adversary_step", low=0.0)

    def _parameters(self, outputs: int) -> dict[str, Any]:
        return {
            "objective": "reg:squarederror",  # not used: every round gives its own derivatives
            "base_score": 0.0,
            "num_target": outputs,
            "tree_method": "hist",
            "max_bin": self.max_bin,
            "max_depth": self.max_depth,
            "eta": self.learning_rate,
            "min_child_weight": self.min_child_weight,
            "reg_lambda": 1.0,
            "nthread": 1,
            "verbosity": 0,
        }


def _prior(y: NDArray[np.float64]) -> float:
    share = y.mean()
    return float(np.log(share / (1.0 - share)))
