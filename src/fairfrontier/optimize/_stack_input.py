"""What goes into a stack: its parameters, the rows, and the columns of scores, checked.

Functions that are given `stack` read the parameters of a FairStacks estimator; only they load scikit-learn, which an
audit does without.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import is_frame
from fairfrontier._groups import GROUP, ProbableGroups
from fairfrontier._rows import NO_SCORES, Rows
from fairfrontier._scores import named_models
from fairfrontier._validation import FloatArray, IntArray, check_finite
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._accuracy import AccuracyMeasure
from fairfrontier.metrics._contrasts import Contrasts, attributes_of, build_contrasts, row_masks
from fairfrontier.metrics._sums import named_accuracy
from fairfrontier.optimize._losses import LOSSES
from fairfrontier.optimize._ridge_path import LARGEST, TAU_ADVICE
from fairfrontier.optimize._statistics import RowWeights
from fairfrontier.optimize._tuning import FREE
from fairfrontier.quantify._fauc import as_weight

PRECOMPUTED = "precomputed"
PREFIT = "prefit"
# The family of columns of X that enter a stack beside its models.
FEATURES = "features"
AUTO = "auto"
# More stacks than this are no path but a mistake, and would not fit into memory.
_MOST_POINTS = 10_000
# A group's values in each attribute, in the order of the columns.
Groups = Sequence[tuple[str, tuple[Any, ...]]]


# --------------------------------------------------------------------------------------------------- parameters


def check_parameters(stack: Any) -> None:
    """Raise if a parameter of a stack is none that it may have."""
    loss, _ = named_loss(stack.loss, regression=stack._regression)
    validate.one_of(stack.path, ("signed", "paper"), parameter="path")
    if callable(stack._measure):
        raise InvalidInputError(
            "fairness must be a measure's name or pairs of masks, which are linear in the scores; got a function, "
            "which can evaluate a stack (points, tradeoff_points) but not constrain it"
        )
    accuracy_of(stack)
    validate.number(stack.threshold, parameter="threshold", low=0.0, high=1.0)
    if validate.number(stack.n_points, parameter="n_points", low=1, high=_MOST_POINTS) != int(stack.n_points):
        raise InvalidInputError(f"n_points must be a whole number; got {stack.n_points!r}")
    if stack.tau is not None:
        validate.number(stack.tau, parameter="tau", low=0.0, advice=TAU_ADVICE)
    ridges(stack.alpha, stack.alphas, loss=loss, regression=stack._regression)
    as_weight(stack.weight)
    if stack.min_fairness is None and (stack.confidence is not None or stack.randomize):
        raise InvalidInputError("min_fairness must be given with confidence or randomize, which are about it")
    if stack.min_fairness is not None and stack.tau is not None:
        raise InvalidInputError("give one of tau and min_fairness: both choose the operating point")


def check_chunkable(stack: Any) -> None:
    """Raise if a stack cannot be fitted to rows that come in chunks."""
    if not is_precomputed(stack):
        raise InvalidInputError(
            "estimators must be 'precomputed' (or names, with cv='precomputed') where rows come in chunks: a "
            "chunk holds the predictions of models that are fitted elsewhere"
        )
    if stack.loss != "squared":
        raise InvalidInputError(
            f"loss must be 'squared' where rows come in chunks; got {stack.loss!r}, which needs all rows at once"
        )
    if stack.attribute_aware:
        raise InvalidInputError(
            "attribute_aware must be False where rows come in chunks; add the attribute's indicators to the scores"
        )


def is_precomputed(stack: Any) -> bool:
    """Tell whether X is the matrix of the predictions."""
    return any(isinstance(given, str) and given == PRECOMPUTED for given in (stack.estimators, stack.cv))


def accuracy_of(stack: Any) -> AccuracyMeasure:
    """Return the accuracy by which a stack is tuned and selected: one that sums over cells of rows have."""
    usual = "r2" if stack._regression else "accuracy"
    accuracy = usual if stack.accuracy is None else stack.accuracy
    if callable(accuracy):
        raise InvalidInputError(
            "accuracy must be a measure's name or a payoff for a stack; got a function, which can evaluate it "
            "(points) but not tune it"
        )
    measure = named_accuracy(accuracy)
    if measure.of_rows is not None or (measure.name != usual and (stack._regression or measure.squared_error)):
        allowed = "'r2'" if stack._regression else "'accuracy', 'balanced_accuracy', 'f1' or expected_payoff(...)"
        raise InvalidInputError(
            f"accuracy must be {allowed}, by which a path can be tuned; got {measure.name!r}: points(…, accuracy=…) "
            "evaluates a fitted stack by it"
        )
    return measure


def named_loss(loss: Any, *, regression: bool) -> tuple[str, float | None]:
    """Return the name of a loss and, if it has one, its parameter.

    Parameters
    ----------
    loss : str or (str, float)
        The stack's parameter.
    regression : bool
        Whether the target is a number.

    Examples
    --------
    >>> named_loss("huber", regression=True), named_loss(("quantile", 0.9), regression=True)
    (('huber', 1.0), ('quantile', 0.9))
    """
    name, parameter = loss if isinstance(loss, tuple | list) and len(loss) == 2 else (loss, None)
    known = [key for key, one in LOSSES.items() if regression in one.targets]
    validate.one_of(name, known, parameter="loss")
    usual = LOSSES[name].parameter
    if usual is None:
        if parameter is not None:
            raise InvalidInputError(f"loss={name!r} has no parameter; got {loss!r}")
        return name, None
    if parameter is None:
        return name, usual
    high = 1.0 if name == "quantile" else LARGEST
    options: dict[str, Any] = {"parameter": f"the parameter of loss={name!r}", "low": 0.0, "high": high}
    return name, validate.number(parameter, strict=True, **options)


def ridges(alpha: Any, alphas: Any, *, loss: str, regression: bool, unit: float = 1.0) -> FloatArray:
    """Return the ridges to try, ascending: one if `alpha` is a number; where none are given, in `unit`."""
    if not isinstance(alpha, str):
        return np.array([validate.number(alpha, parameter="alpha", low=0.0, high=LARGEST)])
    validate.one_of(alpha, ("cv",), parameter="alpha")
    if alphas is not None:
        grid = np.sort(np.asarray(validate.column(alphas, parameter="alphas"), dtype=np.float64))
        if len(grid) == 0 or not np.all(np.isfinite(grid)) or grid[0] < 0 or grid[-1] > LARGEST:
            raise InvalidInputError(
                f"alphas must be at least one number, none negative or above {LARGEST:g}; got {alphas!r}"
            )
        return grid
    if loss != "squared":  # every ridge costs a path of solutions in every fold
        return unit * np.logspace(-2.0, 2.0, 5)
    return unit * (np.logspace(-1.5, 3.5, 20) if regression else np.logspace(-2.0, 5.0, 22))


def family_names(names: Sequence[str]) -> list[str]:
    """Return the family of each model: its name up to the first slash; models without one are together, in ''."""
    return [name.partition("/")[0] if "/" in name else "" for name in names]


def families(names: Sequence[str], n_free: int = 0) -> IntArray:
    """Return the number of each model's family, and −1 for `n_free` further columns.

    Examples
    --------
    >>> families(["forest/1", "forest/2", "logistic", "svm"], n_free=1)
    array([ 0,  0,  1,  1, -1])
    """
    keys = family_names(names)
    index = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    return np.array([index[key] for key in keys] + [-1] * n_free, dtype=np.intp)


def group_columns(names: Sequence[str], n_free: int = 0) -> IntArray | None:
    """Return the number of what each model of the attribute predicts, −1 for every other model; None: there are none.

    A model of the attribute is named ``group/what/learner``; learners of the same thing have the same number. With
    `n_free` further columns, which hold the attribute itself, its models have nothing to add: None as well.

    Examples
    --------
    >>> group_columns(["forest/1", "group/sex=m/logistic", "group/sex=m/trees", "group/age=old/trees"])
    array([-1,  0,  0,  1])
    """
    keys = [name.rpartition("/")[0] if name.count("/") > 1 else name for name in names]
    index: dict[str, int] = {}
    for key, family in zip(keys, family_names(names), strict=True):
        if family == GROUP:
            index.setdefault(key, len(index))
    if not index or n_free:
        return None
    return np.array([index.get(key, -1) for key in keys], dtype=np.intp)


def ridge_scales(family_scales: Any, names: Sequence[str], n_free: int, *, tuned: bool, free: float = FREE) -> Any:
    """Return D for the models and, `free`, of `n_free` columns hardly shrunk; "cv" where it is to be tuned."""
    k = len(names)
    if isinstance(family_scales, str):
        validate.one_of(family_scales, ("cv",), parameter="family_scales")
        if tuned:
            return "cv"
    expected = f"'cv', None, a dict of family to scale, or {k} positive numbers"
    if isinstance(family_scales, dict):
        keys = family_names(names)
        for family in family_scales:
            validate.one_of(family, set(keys), parameter="family_scales")
        given = np.array([family_scales.get(key, 1.0) for key in keys], dtype=np.float64)
    elif family_scales is None or isinstance(family_scales, str):
        given = np.ones(k)
    else:
        given = np.asarray(family_scales, dtype=np.float64)
    if given.shape != (k,) or not np.all((given > 0) & np.isfinite(given)):
        raise InvalidInputError(f"family_scales must be {expected}; got {family_scales!r}")
    return np.concatenate([given, np.full(n_free, free)])


def check_estimators(estimators: Any, *, fitted: bool = False) -> list[tuple[str, Any]]:
    """Return the (name, estimator) pairs of a stack after checking them.

    Parameters
    ----------
    estimators : list of (str, estimator), or a fitted family
        An estimator may itself be a list of such pairs, as `classifier_zoo` gives them, or ``"drop"``.
    fitted : bool
        Whether the estimators must be fitted already.
    """
    expected = "a non-empty list of (name, estimator) pairs, or 'precomputed'"
    if isinstance(estimators, Mapping):
        raise InvalidInputError(f"estimators must be {expected}; got a dict: pass list(estimators.items())")
    if is_family(estimators):
        estimators = [("family", estimators)]
    pairs = [one for pair in named_models(estimators, expected=expected) for one in _unpacked(*pair)]
    models = named_models(pairs, expected=expected)
    for name, model in models:
        if isinstance(model, type):
            raise InvalidInputError(f"estimators must be models, not classes; {name!r} is {model.__name__}: add ()")
        if not (hasattr(model, "predict") or is_family(model)):
            raise InvalidInputError(f"estimators must have predict; {name!r} is {model!r}")
        if not fitted and not hasattr(model, "fit"):
            raise InvalidInputError(
                f"estimators must be unfitted, so that they can be fitted in folds; {name!r} is a fitted "
                f"{type(model).__name__}: pass cv='prefit' and rows that it was not fitted to"
            )
    return models


def check_estimator_names(models: Sequence[tuple[str, Any]], stack: Any) -> None:
    """Raise if the name of an estimator would be taken for a parameter of the stack."""
    own = stack.get_params(deep=False)
    for name, _ in models:
        if name in own or "__" in name:
            raise InvalidInputError(
                f"estimators must have names without '__' and other than the parameters of {type(stack).__name__}; "
                f"got {name!r}: rename it"
            )


def _unpacked(name: str, model: Any) -> list[tuple[str, Any]]:
    """Return an entry of the estimators as pairs: a list of pairs is a family, named after the entry."""
    if isinstance(model, str) and model == "drop":
        return []
    if not isinstance(model, list):
        return [(name, model)]
    pairs = named_models(model, expected="(name, estimator) pairs, or lists of them by name")
    return [(f"{name}/{inner.rpartition('/')[2]}", one) for inner, one in pairs]


def is_family(model: Any) -> bool:
    """Tell whether a model is a family: many models whose predictions are one matrix."""
    return hasattr(type(model), "predict_matrix")


# --------------------------------------------------------------------------------------------------------- rows


def fit_rows(stack: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any) -> Rows:
    """Return the validated rows of a fit, without scores."""
    from sklearn.exceptions import DataConversionWarning
    from sklearn.utils.validation import _num_samples as number_of_rows

    if y is None:
        raise InvalidInputError(f"{type(stack).__name__} requires y to be passed, but the target y is None")
    if getattr(y, "ndim", 1) == 2:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected: its only column is taken",
            DataConversionWarning,
            stacklevel=3,
        )
    n_rows = number_of_rows(next(iter(X.values()), []) if validate.by_name(X) else X)
    if n_rows == 1:
        raise InvalidInputError("X must have at least 2 rows; got n_samples=1: one row is of one group")
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    if sensitive_features is None and (isinstance(stack._measure, str) or stack.attribute_aware):
        raise InvalidInputError(
            "sensitive_features must be given, one value per row: fit(X, y, sensitive_features=data['sex']); "
            "with sklearn.set_config(enable_metadata_routing=True) a Pipeline or a search passes it on"
        )
    options: dict[str, Any] = {"sample_weight": sample_weight, "whole": True, "needs_attributes": False}
    rows = Rows.validated(y, NO_SCORES, sensitive_features, target="y", **options)
    validate.same_length(len(rows), "y", X=n_rows)
    return replace(rows, y=stack._fit_target(np.asarray(rows.y)))


def probable_groups(sensitive_features: Any, loss: str, given: Any, weight: FloatArray | None) -> ProbableGroups | None:
    """Return groups that are only probable as a stack with a loss, as `given`, takes them; None: they are certain."""
    if not isinstance(sensitive_features, ProbableGroups):
        return None
    if loss in ("squared", "log"):
        return sensitive_features.for_stack(weight)
    if sensitive_features.independent_given == "group":
        raise InvalidInputError(
            f"loss={given!r} takes no negative weights, which independent_given='group' makes: use "
            "loss='squared', or independent_given='probabilities'"
        )
    return sensitive_features


def wants_group_models(stack: Any, names: Sequence[str]) -> bool:
    """Tell whether a stack of unfitted estimators with some names adds models of the attribute.

    "auto" adds them where they steer the debiasing directions: squared loss, signed path, a measure by name, and no
    model of the attribute among the estimators. A stack that is given the attribute needs none.
    """
    if stack.attribute_aware:
        return False
    group_models, fairness = stack.group_models, stack._measure
    if group_models is None or group_models is False:
        return False
    if group_models is not True and not (isinstance(group_models, str) and group_models == AUTO):
        raise InvalidInputError(f"group_models must be 'auto', True, False or None; got {group_models!r}")
    if not isinstance(fairness, str):
        if group_models is True:
            raise InvalidInputError(
                "group_models=True needs fairness to be the name of a measure; got custom masks: pass 'auto' or False"
            )
        return False
    given = any(name.startswith(f"{GROUP}/") for name in names)
    return group_models is True or (stack._loss_name == "squared" and stack.path == "signed" and not given)


def groups_of(rows: Rows) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the groups of each attribute of rows, the largest first."""
    cells = rows.cells(labelled=False)
    found = attributes_of(cells.keys, cells.attributes)
    of_rows = [replace(attribute, codes=attribute.codes[cells.codes]).by_size() for attribute in found]
    return [(attribute.name, attribute.values) for attribute in of_rows]


def effective_sizes(stack: Any, plain: Rows, rows: Rows) -> dict[str, int]:
    """Return how many certain rows would tell as much about each row set as `rows` that count by degrees (Kish).

    `plain` are the same rows without degrees: a weight of 2 is a row that is there twice, a degree is not.
    """
    codes, contrasts = _measured(stack, rows, stack._measure)
    degree, known = np.asarray(rows.weight), RowWeights.of_rows(plain)
    square = degree**2
    if plain.weight is not None and known.are_counts:
        square = square * known.of_one_row / np.where(degree == 0.0, 1.0, plain.weight[rows.row])
    total, square = (contrasts.membership @ np.bincount(codes, one) for one in (degree, square))
    sizes = np.maximum(np.rint(total**2 / square), 1.0).astype(int)
    return dict(zip(contrasts.sets.names, sizes.tolist(), strict=True))


def _measured(stack: Any, rows: Rows, measure: Any) -> tuple[IntArray, Contrasts]:
    """Return the cell of each row and the measure on the cells."""
    cells = rows.cells(labelled=not stack._regression)
    return cells.codes, build_contrasts(measure, cells.keys, cells.attributes, sensitive_mode=stack.sensitive_mode)


def evaluation_rows(
    stack: Any, X: Any, y: Any, sensitive_features: Any, sample_weight: Any = None, fairness: Any = None
) -> tuple[Rows, IntArray, Contrasts]:
    """Return rows to evaluate a fitted stack on, with its base models' predictions, their cells and the measure."""
    measure = measure_of(stack, fairness)
    named = isinstance(measure, str)
    validate.same_order(X=X, y=y, sensitive_features=sensitive_features, sample_weight=sample_weight)
    if sensitive_features is not None:
        sensitive_features = validate.attribute_columns(sensitive_features)
    options: dict[str, Any] = {"sample_weight": sample_weight, "whole": True, "needs_attributes": named}
    rows = Rows.validated(stack._target(y), stack._matrix(X, sensitive_features), sensitive_features, **options)
    if not named:
        rows = rows.with_masks(row_masks(measure, len(rows)))
    return rows, *_measured(stack, rows, measure)


def measure_of(stack: Any, fairness: Any) -> Any:
    """Return the measure to evaluate by: another than that of the fit, or that of the fit if it has a name."""
    if fairness is None and not isinstance(stack._measure, str):
        raise InvalidInputError(
            "fairness must be given: the stack was fitted with masks of its own rows, which say nothing about "
            "others; pass masks of these rows, or a measure's name"
        )
    return stack._measure if fairness is None else fairness


# ------------------------------------------------------------------------------------------------------ columns


def precomputed_columns(stack: Any, X: Any, *, fitting: bool) -> NDArray[np.floating[Any]]:
    """Return precomputed predictions; where they have names, the names decide which column is which model.

    A fit keeps the names, as `names_` of the stack, and whether they were given.
    """
    from sklearn.utils.validation import validate_data

    validate.refuse_masked(X, parameter="X")
    named = validate.by_name(X) or is_frame(X)
    if named:
        preds = validate.predictions(X)
        # Where a dataframe was fitted, scikit-learn refuses another order of its columns; a dict has no order.
        by_column = is_frame(X) and (fitting or hasattr(stack, "feature_names_in_"))
        if not fitting and not by_column and stack._has_names:
            _check_names(preds.names, stack.names_)
        validate_data(stack, X if by_column else preds.matrix, skip_check_array=True, reset=fitting)
    else:
        options: dict[str, Any] = {"dtype": (np.float64, np.float32), "ensure_all_finite": False}
        matrix = validate_data(stack, X, reset=fitting, **options)
        preds = validate.Predictions(matrix, numbered(matrix.shape[1]), named=False)
    if fitting:
        stack.names_ = column_names(stack.estimators, preds.names)
        stack._has_names = named or not isinstance(stack.estimators, str)
    elif not stack._has_names:
        preds = replace(preds, named=False)
    H = preds.aligned(stack.names_).matrix
    check_finite(H, stack.names_)
    if fitting and not stack._regression and isinstance(stack.estimators, str):
        _warn_of_features(H, stack.names_)
    return np.asarray(H)


def numbered(k: int) -> tuple[str, ...]:
    """Return names for `k` models that have none."""
    return tuple(f"model_{j}" for j in range(k))


def column_names(estimators: Any, names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns of predictions: as `estimators` gives them, else their own."""
    if isinstance(estimators, str):
        return tuple(names)
    if not isinstance(estimators, Iterable):
        raise InvalidInputError(
            f"estimators must be 'precomputed' or the names of the columns of X; got {estimators!r}"
        )
    given = tuple(str(one[0] if isinstance(one, (tuple, list)) else one) for one in estimators)
    if len(given) != len(names):
        raise InvalidInputError(
            f"X must have one column for each of the {len(given)} names in estimators; got {len(names)}"
        )
    return given


def _check_names(names: Sequence[str], expected: Sequence[str]) -> None:
    """Raise if predictions are not those of the base models, by name."""
    missing = [name for name in expected if name not in set(names)]
    if missing:
        raise InvalidInputError(f"X must hold the predictions of every base model; {missing[0]!r} is missing")
    unknown = [name for name in names if name not in set(expected)]
    if unknown:
        raise InvalidInputError(f"X must hold the predictions of the base models alone; {unknown[0]!r} is none of them")


def _warn_of_features(matrix: NDArray[Any], names: Sequence[str]) -> None:
    """Warn if columns that should be scores of a classifier lie mostly outside [0, 1], as features do."""
    outside = np.mean((matrix < 0.0) | (matrix > 1.0), axis=0) > 0.5
    if outside.any():
        first = int(np.argmax(outside))
        column = matrix[:, first]
        warnings.warn(
            f"estimators='precomputed' takes the columns of X as predictions, but {int(outside.sum())} of "
            f"{matrix.shape[1]} lie mostly outside [0, 1]: {names[first]!r} goes from {column.min():g} to "
            f"{column.max():g}. If these are features, give estimators to fit: [('lr', LogisticRegression())]. If they "
            "are margins, name them: estimators=['svm', ...], cv='precomputed'",
            UserWarning,
            stacklevel=5,
        )


def check_groups_given(sensitive_features: Any) -> dict[str, NDArray[Any]]:
    """Return the attributes at prediction, which an attribute-aware stack cannot do without."""
    if sensitive_features is None:
        raise InvalidInputError(
            "sensitive_features must be given at prediction: attribute_aware=True made it a part of the stack"
        )
    return validate.attribute_columns(sensitive_features)


def indicator_names(groups: Groups) -> list[str]:
    """Return a name for each column of `indicators`."""
    return [f"{name}={value}" for name, values in groups for value in values[1:]]


def indicators(columns: Mapping[str, NDArray[Any]], groups: Groups, n_rows: int) -> FloatArray:
    """Return indicator columns of the attributes, all groups but the first of each, shape (n_rows, Σ(g − 1)).

    Parameters
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        The attributes of rows to predict.
    groups : sequence of (name, groups)
        The attributes at fit.
    n_rows : int
        Rows to predict.
    """
    if len(groups) == 1 and len(columns) == 1:  # one attribute needs no name
        columns = {groups[0][0]: next(iter(columns.values()))}
    if set(columns) != {name for name, _ in groups}:
        raise InvalidInputError(
            f"sensitive_features must be {[name for name, _ in groups]}, as in fit; got {list(columns)}"
        )
    result = []
    for name, values in groups:
        validate.same_length(n_rows, **{f"sensitive_features[{name!r}]": len(columns[name])})
        codes = {group: code for code, group in enumerate(values)}
        code_of = np.array([codes.get(value, -1) for value in columns[name].tolist()], dtype=np.intp)
        if np.any(code_of < 0):
            unknown = columns[name][np.flatnonzero(code_of < 0)[0]]
            raise InvalidInputError(
                f"sensitive_features[{name!r}] must be one of {list(values)}, as in fit; got {unknown!s}: "
                "an attribute-aware stack knows no other group"
            )
        result += [(code_of == code).astype(np.float64) for code in range(1, len(values))]
    return np.stack(result, axis=1)
