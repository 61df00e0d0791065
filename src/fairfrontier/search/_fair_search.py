"""`FairSearch`: from a table to a model that is shown to be a less discriminatory alternative, or to none."""

import time as clock
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Bunch
from sklearn.utils.validation import _num_samples as number_of_rows
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from fairfrontier import _validation as validate
from fairfrontier._extras import require
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.search._candidates import Conclusion, SearchRequirement, conclude_runs, model_of, stability
from fairfrontier.search._evidence import Candidate
from fairfrontier.search._plan import CROSS_FIT_BELOW, prepare, strata_of, write_plan
from fairfrontier.search._screening import PROXY_ROWS, joint_auc, screen, spread
from fairfrontier.search._table import seen_in
from fairfrontier.search._training import LEAST_STEPS, Progress, sufficiency, train_runs

# Fewer rows are trained on with one thread.
_ROWS_FOR_THREADS = 20_000


class FairSearch(ClassifierMixin, BaseEstimator):
    """Search for a model that is as accurate as a baseline and less disparate, and say whether it was found.

    Parameters
    ----------
    fairness : str, default="demographic_parity"
        The measure, of differences or of ratios of rates; see `tradeoff_points`.
    min_fairness, min_ratio : float, optional
        What the model must reach: fairness, or the ratio of the lowest to the highest rate. Neither: the fairest
        candidate that is likely to be shown an alternative.
    margin : float, default=0.005
        How much lower than the baseline's the accuracy may be.
    confidence : float, default=0.95
        Of the verdict, and of the promise of what is required.
    time : float, optional
        Seconds that the search may take, about. None: no limit but `max_steps`.
    max_steps : int, default=13
        Steps of training. The result depends on the seed and the number of steps alone.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes.
    use_sensitive : bool, default=False
        Whether columns of X that are the attribute may be features.
    drop, keep : sequence of str
        Columns of X that are no features; columns that are features though they look like the label or an identifier.
    threshold : float, default=0.5
        A score above it is the positive class.
    cross_fit : bool or "auto", default="auto"
        Whether two models are made, each from half of the rows, and tested on the other half: nearly all rows then
        count in the verdict, whose level is approximate. "auto": with fewer than 80,000 rows.
    n_jobs : int, optional
        Threads of training; None: one.
    random_state : int, default=0
        Seed of everything.
    folder : path-like, optional
        Where the plan, each step and the evidence are written; a killed search goes on from there.
    progress : callable, optional
        Called with what is done and the share that is done.

    Attributes
    ----------
    model_ : SearchModel
        The chosen model; it takes raw rows and needs no attribute.
    verdict_ : {"alternative", "none", "cannot tell"}
        Whether `model_` is an alternative to the baseline.
    candidates_ : tuple of Candidate
        Every candidate with its figures on rows that nothing has seen, and its verdict.
    delivered_ : Bunch
        `fairness`, `ratio` and `accuracy` of `model_` on those rows.
    promised_ : dict or None
        What was promised, with `confidence`; None: nothing was asked for, or it could not be promised.
    columns_ : tuple of ColumnReport
        What each column of X is.
    proxies_ : dict of str to float
        How well all features together predict each attribute (AUC on other rows).
    checkpoints_, sufficiency_ : tuple of Checkpoint, Sufficiency or None
        How the frontier grew, and what more search could gain.
    plan_ : Plan
        What was fixed before anything was looked at.
    evidence_ : Evidence
        The decisions that all verdicts rest on.
    stopped_ : str
        Why the search stopped.
    classes_ : ndarray of shape (2,)
        The two labels.

    Notes
    -----
    Rows are split into four parts: models are trained on one, stacked on the second, chosen on the third and tested on
    the fourth. See `fairfrontier.search._verdict` for the tests.

    With `cross_fit` 15 % of the rows are for the choice, and the rest are two halves. What is tested is the rule that
    decides half of all rows by each of the two models; so does `model_`, by a hash of a row's features. That errors on
    the two halves may be taken as independent is an approximation for stable learners (Bayle, Bayle, Janson and Mackey
    2020); results/search.md says how far it was checked by simulation.

    Examples
    --------
    >>> import numpy as np
    >>> from fairfrontier import FairSearch
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.choice(["f", "m"], 1200)
    >>> skill, luck = rng.normal(size=(2, 1200))
    >>> height = 2.0 * (sex == "m") + rng.normal(size=1200)
    >>> y = skill + 0.2 * luck > 0
    >>> in_use = 1 / (1 + np.exp(-skill - height + 1))
    >>> search = FairSearch(max_steps=3).fit(
    ...     {"skill": skill, "height": height}, y, sensitive_features={"sex": sex}, baseline=in_use
    ... )
    >>> search.verdict_, bool(search.delivered_.accuracy > np.mean((in_use > 0.5) == y))
    ('alternative', True)
    """

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"sensitive_features": True, "baseline": False}

    def __init__(
        self,
        *,
        fairness: str = "demographic_parity",
        min_fairness: float | None = None,
        min_ratio: float | None = None,
        margin: float = 0.005,
        confidence: float = 0.95,
        time: float | None = None,
        max_steps: int = 13,
        sensitive_mode: str = "separate",
        use_sensitive: bool = False,
        drop: Sequence[str] = (),
        keep: Sequence[str] = (),
        threshold: float = 0.5,
        cross_fit: bool | str = "auto",
        n_jobs: int | None = None,
        random_state: int = 0,
        folder: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self.fairness = fairness
        self.min_fairness = min_fairness
        self.min_ratio = min_ratio
        self.margin = margin
        self.confidence = confidence
        self.time = time
        self.max_steps = max_steps
        self.sensitive_mode = sensitive_mode
        self.use_sensitive = use_sensitive
        self.drop = drop
        self.keep = keep
        self.threshold = threshold
        self.cross_fit = cross_fit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.folder = folder
        self.progress = progress

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        return tags

    def fit(self, X: Any, y: Any, *, sensitive_features: Any = None, baseline: Any = None) -> Self:
        """Search.

        Parameters
        ----------
        X : dataframe, dict of columns, or array-like of shape (n, p)
            Raw features: numbers, categories, dates, with missing values.
        y : array-like of shape (n,)
            The label, with two values; the second in sorted order is positive.
        sensitive_features : array-like of shape (n,) or (n, a), dict or dataframe
            The sensitive attributes. Columns of X with their names are no features unless `use_sensitive`.
        baseline : array-like of shape (n,), optional
            The model in use: scores in [0, 1], or decisions in the words of `y`. None: the most accurate stack of the
            search itself.

        Returns
        -------
        self
        """
        settings = checked_settings(self.get_params(), number_of_rows(y))
        # With few rows, or on a busy machine, threads that wait for each other cost more than they bring.
        threads = effective_n_jobs(self.n_jobs) if number_of_rows(y) >= _ROWS_FOR_THREADS else 1
        with threadpool_limits(limits=threads):
            self._search(X, y, sensitive_features, baseline, settings)
        return self

    def _search(self, X: Any, y: Any, sensitive_features: Any, baseline: Any, settings: dict[str, Any]) -> None:
        """Search, and keep what was found."""
        started, seed = clock.monotonic(), int(self.random_state)
        problem = prepare(X, y, sensitive_features, baseline, settings, threshold=self.threshold)
        self.plan_, self.classes_ = problem.plan, np.array(problem.classes)
        folder = None if self.folder is None else Path(self.folder)
        begins = folder is not None and not (folder / "plan.json").exists()
        if folder is not None:
            write_plan(problem.plan, folder / "plan.json")
        say = self.progress or (lambda what, share: None)
        say("looking at the columns", 0.0)
        try:
            self.columns_ = screen(
                problem.columns,
                problem.y,
                problem.attributes,
                problem.rows("train"),
                drop=self.drop,
                keep=self.keep,
                use_sensitive=self.use_sensitive,
            )
        except InvalidInputError:
            if begins and folder is not None:  # nothing was trained: the answer to the question is another plan
                (folder / "plan.json").unlink()
            raise
        used = {report.name: problem.columns[report.name] for report in self.columns_ if report.used}
        stacking = {
            "fairness": self.fairness,
            "sensitive_mode": self.sensitive_mode,
            "threshold": self.threshold,
            "random_state": seed,
        }
        runs = train_runs(
            problem,
            used,
            stacking,
            n_steps=int(self.max_steps),
            seconds=None if self.time is None else self.time - (clock.monotonic() - started),
            n_jobs=self.n_jobs,
            folder=folder,
            say=say,
        )
        trained, training = runs[0].trained, runs[0].features.training
        self.checkpoints_, self.sufficiency_ = trained.checkpoints, sufficiency(trained.checkpoints)
        self.stopped_ = trained.stopped
        self.steps_ = tuple((step.name, run.store.seconds(step)) for run in runs for step in run.trained.done)
        say("testing on rows that no model has seen", 1.0)
        asked = SearchRequirement(self.min_fairness, self.min_ratio, float(self.confidence))
        found = conclude_runs(runs, asked, stacking, margin=float(self.margin))
        self._keep(found)
        level = found.combinations.expected[found.combinations.names.index(self.chosen_.name), 0]
        self.stability_ = stability(trained, float(level), stacking)
        rows = spread(strata_of(problem.y, problem.attributes)[problem.rows("train")], PROXY_ROWS)
        self.proxies_ = {
            name: joint_auc(
                training.matrix[rows], validate.attributes({name: values[rows]}, len(rows))[0], random_state=seed
            )
            for name, values in training.sensitive.items()
        }
        self.model_ = model_of(runs, found, self.chosen_.name)
        self.model_._seen = seen_in(used)

    def _keep(self, found: Conclusion) -> None:
        """Keep what a search found."""
        judged = found.evidence.verdict()
        self.evidence_, self.requirement_ = found.evidence, found.requirement
        self.baseline_name_ = found.baseline_name
        self.candidates_: tuple[Candidate, ...] = judged.candidates
        self.verdict_, self.chosen_ = judged.verdict, judged.candidates[judged.chosen]
        self.delivered_ = Bunch(**{name: getattr(self.chosen_, name) for name in ("fairness", "ratio", "accuracy")})
        self.promised_ = judged.promised
        if found.requirement.asked and judged.promised is None and not found.requirement.problem:
            problem = f"what is required cannot be promised: {found.evidence.n_report:,} report rows do not show it."
            self.requirement_ = replace(found.requirement, problem=problem)

    def scores(self, X: Any) -> FloatArray:
        """Return the score (n,) of each raw row."""
        check_is_fitted(self, "model_")
        return self.model_.scores(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the decisions (n,) of the chosen model for raw rows."""
        check_is_fitted(self, "model_")
        return self.model_.predict(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the clipped scores (n, 2) of the chosen model for raw rows."""
        check_is_fitted(self, "model_")
        return self.model_.predict_proba(X)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the score of the chosen model minus the threshold, shape (n,)."""
        check_is_fitted(self, "model_")
        return self.model_.decision_function(X)

    def to_frame(self) -> Any:
        """Return the candidates as a pandas dataframe, one row per candidate."""
        check_is_fitted(self, "model_")
        pandas = require("pandas", extra="pandas", purpose="to_frame")
        return pandas.DataFrame([asdict(one) for one in self.candidates_])


def checked_settings(params: dict[str, Any], n_rows: int) -> dict[str, Any]:
    """Return what the plan says about a search."""
    if named_measure(params["fairness"]).comparison not in ("difference", "ratio"):
        raise InvalidInputError(f"fairness must compare rates by differences or ratios; got {params['fairness']!r}")
    validate.one_of(params["sensitive_mode"], ("separate", "intersectional"), parameter="sensitive_mode")
    validate.number(params["margin"], parameter="margin", low=0.0, high=1.0)
    validate.number(params["confidence"], parameter="confidence", low=0.5, high=1.0, strict=True)
    validate.number(params["threshold"], parameter="threshold", low=0.0, high=1.0)
    validate.whole_number(params["max_steps"], parameter="max_steps", low=LEAST_STEPS, high=1000)
    validate.whole_number(params["random_state"], parameter="random_state", low=0, high=2**32 - 1)
    if not isinstance(params["cross_fit"], bool):
        validate.one_of(params["cross_fit"], ("auto",), parameter="cross_fit")
    for name in ("min_fairness", "min_ratio"):
        if params[name] is not None:
            validate.number(params[name], parameter=name, low=0.0, high=1.0)
    if params["min_ratio"] is not None and params["fairness"] not in ("demographic_parity", "impact_ratio"):
        raise InvalidInputError(f"min_ratio is for fairness='demographic_parity'; got {params['fairness']!r}")
    both = [name for name in params["drop"] if name in params["keep"]]
    if both:
        raise InvalidInputError(f"drop and keep must name different columns; got {both[0]!r} in both")
    if params["time"] is not None:
        validate.number(params["time"], parameter="time", low=0.0, strict=True)
    names = ("fairness", "min_fairness", "min_ratio", "margin", "confidence", "max_steps", "time")
    return {
        **{name: params[name] for name in (*names, "sensitive_mode", "use_sensitive", "threshold")},
        "cross_fit": bool(n_rows < CROSS_FIT_BELOW if params["cross_fit"] == "auto" else params["cross_fit"]),
        "drop": list(params["drop"]),
        "keep": list(params["keep"]),
        "seed": int(params["random_state"]),
    }
