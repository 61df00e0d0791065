"""FairStacks: stack models under a constraint on their score bias (Definition 5)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted

from fairfrontier import _validation as validate
from fairfrontier._scores import positive_labels
from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.identify._decision_path import DecisionPath, decision_path
from fairfrontier.identify._frontier import TAFCurve, taf_curve
from fairfrontier.metrics._contrasts import Contrasts
from fairfrontier.metrics._sums import KeyedSums
from fairfrontier.optimize import _stack_input as given
from fairfrontier.optimize._fairstacks_base import BaseFairStacks
from fairfrontier.optimize._losses import LOSSES


class FairStacksClassifier(ClassifierMixin, BaseFairStacks):
    """Classify with the best linear combination of models under a bias constraint.

    The whole path, from the most accurate stack over the fairest to one that over-corrects, comes from one
    factorisation; `at` and `select` move along it without fitting again.

    Parameters
    ----------
    estimators : list of (name, estimator), or "precomputed"
        The base models. A name such as ``"forest/3"`` puts a model in a family. With "precomputed", X is the matrix of
        their predictions. Classifiers are fitted to 0 and 1, the classes in sorted order, whatever the labels are.
    fairness : str or list of (mask, mask)
        The measure; see `tradeoff_points`. Of functions, Fairlearn's are taken that are one of these measures.
    loss : {"squared", "log", "hinge"}
        The loss; only "squared" has a closed form. With "log" the score whose bias is constrained is the linear
        predictor, with "hinge" the margin.
    path : {"signed", "paper"}
        "signed" goes from the unconstrained score bias through zero to the other sign, where the fairest *decisions*
        often are. "paper" is the published method.
    tau : float, optional
        Largest absolute score bias of the operating point; None chooses the point with the best cross-validated FAUC.
    alpha : float or "cv"
        The ridge: (alpha/2)·‖Dw‖² beside a sum over rows.
    alphas : array-like, optional
        What "cv" tries with a common scale; None: 22 log-spaced values from 10⁻² to 10⁵ times the total weight times
        the mean square of the centred predictions, so that the scales of weights and scores do not matter (20 up
        to 10^3.5 for regression; 5 up to 10² for losses without a closed form, where each costs a path of solutions a
        fold).
    family_scales : "cv", None, dict of family to scale, or array-like of shape (k,)
        D. "cv" tries a common scale and, with several families, the scales of the largest evidence, and gives the
        debiasing directions of the signed path a ridge of their own; where alpha is a number or the loss is not
        squared, nothing is tried and the scale is common. None: one ridge for everything.
        A base model named ``group/what/learner`` is a model of the attribute (`learners.fit_group_models`): the
        directions of the signed path shrink towards its contrast.
    weight : Weight or callable
        Weight of the FAUC that is tuned.
    cv : int, splitter, list of (train, test), "prefit" or "precomputed"
        Folds for the base models' out-of-fold predictions and for tuning, stratified by label and group. "prefit" takes
        fitted estimators, "precomputed" predictions; both tune with 5 folds.
    n_points : int
        Stacks on the path.
    attribute_aware : bool
        Let the stack use the sensitive attribute itself, which must then be given at prediction. That is disparate
        treatment, in many places unlawful; hence opt-in.
    sensitive_mode : {"separate", "intersectional"}
        With several attributes.
    threshold : float
        A score strictly above it is the positive class.
    n_jobs : int, optional
        Jobs for fitting and predicting base models.
    random_state : int, RandomState or None
        Seed of the folds.
    min_fairness : float, optional
        The operating point is the one that `select` finds for this fairness; `selection_` says what it found.
    confidence : float, optional
        As in `select`: the fairness is promised with this confidence.
    randomize : bool
        As in `select`: the operating point may randomise between neighbours.
    group_models : "auto", bool or None
        Whether models of the attribute, fitted to it in the same folds from the same features, join unfitted estimators
        (``group/…`` in `names_`): the direction in which scores are debiased is then the better. "auto": with the
        squared loss, the signed path and a measure by name, unless there is such a model among the estimators. True
        adds them to fitted estimators too, fitted to the rows of the stack. They need no attribute at prediction.
    expand : "auto" or bool
        Whether a forest or a family (`MinipatchTrees`) among the estimators enters model by model, as ``name/i``.
        "auto": where its name has no slash; one with a slash is a model of a family already. A list of estimators, such
        as `classifier_zoo`, is a family of its own; fitted families (`kitchen_sink`) are taken with ``cv="prefit"``.
        A stack of models that leave rows out (bootstrap samples, minipatches) is fitted to what they say of these rows,
        and judged by others that were fitted without a fold.
    refit : bool
        Whether unfitted estimators are fitted again to all rows. False: the mean of the models of the folds predicts,
        the very models that the stack was fitted to, at several times the cost of a prediction.
    memory : str or joblib.Memory, optional
        Where fitted base models are cached, so that a later fit repeats nothing.
    verbose : int
        Progress of the base models, as in joblib.
    passthrough : bool
        Whether the columns of X, too, enter the stack, as in `StackingClassifier`: as ``features/column``, a family of
        its own, numbers standardised and categories as indicators.
    accuracy : str or measure, optional
        By which the path is tuned and `select` chooses: ``"accuracy"`` (None), ``"balanced_accuracy"``, ``"f1"`` or
        `expected_payoff`. `points` evaluates a fitted stack by any other. The loss stays what it is.

    Attributes
    ----------
    path_ : FairPath
        The stacks: targets, score biases, weights, constants, KKT residuals.
    weights_, intercept_, target_
        The operating point.
    alpha_ : float
        The ridge in use.
    scales_ : ndarray of shape (k,)
        D in use.
    points_ : TradeoffPoints
        Cross-validated value of each stack on the path (on the training rows if nothing was tuned).
    cv_fauc_ : dict
        Cross-validated FAUC of each choice of family scales.
    classes_ : ndarray of shape (2,)
        The classes; the second is positive.
    estimators_ : list of (name, fitted estimator)
        The base models.
    names_ : tuple of str
        Names of the base models, the columns of `weights_`: an expanded forest has one for each tree.
    group_sizes_ : dict of str to int
        Training rows in each row set of the measure; of weighted rows, and of groups that are only probable, how many
        rows of equal weight that are certain would tell as much.

    Notes
    -----
    See `fairfrontier.optimize._ridge_path` for the algebra. The constant model is in the stack and carries no penalty.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> sex = rng.integers(0, 2, 400)
    >>> y = (rng.random(400) < 0.3 + 0.3 * sex).astype(int)
    >>> H = np.clip(np.stack([0.6 * y + 0.2 * sex, 0.5 * y], axis=1) + rng.normal(0, 0.3, (400, 2)), 0, 1)
    >>> model = FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
    >>> bool(abs(model.at(tau=0.0).weights_ @ (H[sex == 0].mean(0) - H[sex == 1].mean(0))) < 1e-12)
    True
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _fit_target(self, y: NDArray[Any]) -> NDArray[Any]:
        if y.dtype.kind == "f":
            validate.finite(y, parameter="y")
        if y.dtype.kind == "O" and all(isinstance(value, (int, np.integer, bool, np.bool_)) for value in y.tolist()):
            y = y.astype(np.intp)  # numbers that lost their type in a dataframe of several
        if y.dtype.kind == "O":
            validate.known_values(y, parameter="y")
        check_classification_targets(y)
        kind = type_of_target(y, input_name="y")
        if kind == "multiclass":
            raise InvalidInputError(
                f"Only binary classification is supported. The type of the target is {kind}: merge classes, or fit one "
                "stack per class"
            )
        validate.two_classes(validate.distinct(y, parameter="y")[0], parameter="y")
        return y

    def _keep_classes(self, contrasts: Contrasts, keyed: KeyedSums) -> None:
        self.classes_ = np.array(contrasts.classes)
        for label, name in zip((False, True), self.classes_, strict=True):
            if keyed.sums.weight[contrasts.label == label].sum() == 0:
                raise InvalidInputError(
                    f"sample_weight must leave each class some weight; class {name!r} has none: give it rows that count"
                )

    def _target(self, y: Any) -> NDArray[Any]:
        """Return y as booleans, True for the second class of the fit."""
        return positive_labels(y, self.classes_)

    def _base_classes(self) -> NDArray[Any] | None:
        return np.array([0, 1]) if self._encoded else self.classes_

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the score minus the threshold, shape (n,): above 0 is the second class.

        Of a model that randomises: the probability of the second class minus one half.
        """
        if self.mixture_ is not None:
            return self.predict_proba(X, sensitive_features=sensitive_features)[:, 1] - 0.5
        return self._scores(X, sensitive_features) - self.threshold

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the score clipped to [0, 1] as the probability of the second class, shape (n, 2).

        Of a model that randomises: the exact probability with which it decides for the second class.
        """
        if self.mixture_ is not None:
            positive = self._accepted(self._matrix(X, sensitive_features))
        else:
            positive = np.clip(self._scores(X, sensitive_features), 0.0, 1.0)
        return np.stack([1.0 - positive, positive], axis=1)

    def _accepted(self, H: NDArray[Any]) -> FloatArray:
        """Return the probability with which it decides for the second class: 0 or 1 unless it randomises."""
        if self.mixture_ is None:
            return self._drawn(H).astype(np.float64)
        return self.mixture_.accepted(H, LOSSES[self._loss_name].threshold(self.threshold))

    def _drawn(self, H: NDArray[Any], ids: Any = None) -> NDArray[np.bool_]:
        """Return the decisions on rows of base predictions, those of a model that randomises by ids."""
        if self.mixture_ is None:
            return np.asarray(self._scores_of(H) > self.threshold)
        return self.mixture_.decide(H, LOSSES[self._loss_name].threshold(self.threshold), ids)

    def predict(self, X: Any, *, sensitive_features: Any = None, ids: Any = None) -> NDArray[Any]:
        """Return the predicted classes, shape (n,).

        Parameters
        ----------
        X : array-like of shape (n, p)
            Rows to predict.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        ids : iterable of n ids, optional
            The records' ids (str, int or bytes), by which a model that randomises draws; without them rows with the
            same base predictions have the same draw.
        """
        if self.mixture_ is not None:
            drawn = self._drawn(self._matrix(X, sensitive_features), ids)
            return np.asarray(self.classes_[drawn.astype(np.intp)])
        positive = self.decision_function(X, sensitive_features=sensitive_features) > 0
        return np.asarray(self.classes_[positive.astype(np.intp)])

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the accuracy at the operating point.

        Parameters
        ----------
        X, y, sample_weight
            The rows.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        """
        decided = self.predict(X, sensitive_features=sensitive_features) == self.classes_[1]
        return float(accuracy_score(self._target(y), decided, sample_weight=sample_weight))

    def decision_path(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, fairness: Any = None
    ) -> DecisionPath:
        """Return the decisions at every position of the path, not only at its points.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight
            Rows that the stack may or may not have seen.
        fairness : str or masks, optional
            Another measure than the one of the fit; needed where that was masks of other rows.

        Returns
        -------
        DecisionPath
            Positions s are shares of the unconstrained score bias: from 1 to 0 on the paper's path, and on to −1 or
            beyond on the signed one. With several contrasts the signed path is a line of its own, from the
            unconstrained stack at 1 to its end at 0; the paper's path is no line, and this is the line s·b₀.
        """
        check_is_fitted(self, "path_")
        solution = self._fitted.solution
        if solution is None:
            raise InvalidInputError(f"loss must be 'squared': scores are affine along its path only; got {self.loss!r}")
        rows, codes, contrasts = given.evaluation_rows(self, X, y, sensitive_features, sample_weight, fairness)
        shares = self._fitted.positions[np.isfinite(self._fitted.positions)]
        own = self.path == "signed" and len(solution.b0) > 1 and not len(shares)
        end = solution.coordinates(self.path_.target[-1:])[0] if own else np.zeros_like(solution.b0)
        weights, constants = solution.stacks(np.stack([end, solution.b0]))
        at_zero, at_one = (rows.scores @ weights.T + constants).T
        low = 0.0 if own or self.path == "paper" else float(shares.min(initial=-1.0))
        return decision_path(
            at_zero,
            at_one - at_zero,
            codes,
            contrasts,
            low=low,
            high=float(shares.max(initial=1.0)),
            threshold=float(self.threshold),
            sample_weight=rows.weight,
        )

    def exact_frontier(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, fairness: Any = None
    ) -> TAFCurve:
        """Return the TAF curve of the whole continuum of stacks and the constant model.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight, fairness
            As in `decision_path`.

        Returns
        -------
        TAFCurve
            `support` holds indices into the states of `decision_path`; the one past the last is the constant model.
        """
        path = self.decision_path(
            X, y, sensitive_features=sensitive_features, sample_weight=sample_weight, fairness=fairness
        )
        bias = path.sets.largest_gap(path.rates)
        return taf_curve(
            np.append(np.clip(1.0 - bias, 0.0, 1.0), 1.0),
            np.append(np.clip(path.accuracy, 0.0, 1.0), path.constant_accuracy),
        )


class FairStacksRegressor(RegressorMixin, BaseFairStacks):
    """Predict a number with the best linear combination of models under a bias constraint.

    The twin of `FairStacksClassifier`, with the same parameters and attributes; fairness is demographic parity (or
    custom masks) of the predictions, accuracy is R² clipped to [0, 1].

    `loss` may also be "huber" (robust against outliers) or "quantile" (the median, or another quantile), or these with
    their parameter: ``("huber", 1.5)``, from how many standard deviations of the target a residual counts linearly
    (1 by default), and ``("quantile", 0.9)``. Both are quadratic programs (extra `hinge`). Accuracy is then the share
    of the best constant's loss that the stack avoids, in [0, 1], as R² is for the squared loss; `score` stays R².

    Differences between groups, and so fairness, `tau` and the targets of the path, are in standard deviations of the
    target: nothing depends on its units, and predictions follow y → a·y + b. With ``fairness="mean_difference"`` they
    are in the units of the target itself, as in 0.1.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> group, y = rng.integers(0, 2, 200), rng.random(200)
    >>> H = np.stack([y + 0.2 * group, y - 0.1 * group], axis=1) + rng.normal(0, 0.1, (200, 2))
    >>> model = FairStacksRegressor("precomputed", alpha=0.1, tau=0.0).fit(H, y, sensitive_features=group)
    >>> predicted = model.predict(H)
    >>> bool(abs(predicted[group == 0].mean() - predicted[group == 1].mean()) < 1e-12)
    True
    """

    _regression = True

    def predict(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Return the predictions, shape (n,)."""
        return self._scores(X, sensitive_features)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None) -> float:
        """Return the R² at the operating point.

        Parameters
        ----------
        X, y, sample_weight
            The rows.
        sensitive_features : array-like, dict or dataframe, optional
            Needed by an attribute-aware stack only.
        """
        predicted = self.predict(X, sensitive_features=sensitive_features)
        return float(r2_score(y, predicted, sample_weight=sample_weight))
