"""A randomised model whose every draw can be replayed.

A point of TAFI, or of the signed hull, is a random choice between models. Here the choice is keyed: which model decides
on a record follows from the record's id and a secret. The same record always meets the same model, nobody without the
secret can foresee or choose the outcome, and an auditor who has the secret can replay any single decision: the numbers
in [0, 1) follow from secret and id by HMAC-SHA256.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._columns import as_array, column, numeric
from fairfrontier._scores import check_own_classes, classes_of, named_models, positive_labels, positive_scores
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import CONSTANT, TradeoffPoints, points_from_rates, tradeoff_points

MINIMUM_SECRET = 16
_BLOCK = 64  # bytes of a block of SHA-256


@dataclass(frozen=True)
class Draw:
    """Which model decides on a record, and why.

    Attributes
    ----------
    id : object
        The record's id.
    number : float
        The keyed number of the id, in [0, 1).
    model : str
        The model that decides.
    interval : tuple of float
        The model's part [low, high) of [0, 1), in which the number lies.
    """

    id: Any
    number: float
    model: str
    interval: tuple[float, float]


class Key:
    """HMAC-SHA256 with a fixed key, many messages.

    Notes
    -----
    HMAC(key, m) = SHA256(key ⊕ opad ‖ SHA256(key ⊕ ipad ‖ m)). The two padded keys are hashed once and the state copied
    for each message, which is several times faster than a new HMAC object each time.

    Examples
    --------
    >>> import hmac
    >>> first = int.from_bytes(hmac.digest(b"k" * 16, b"i:7", "sha256")[:8], "big")
    >>> Key(b"k" * 16).numbers([b"i:7"])[0] == (first >> 11) / 2**53
    np.True_
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        key = hashlib.sha256(secret).digest() if len(secret) > _BLOCK else secret
        key = key.ljust(_BLOCK, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in key))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in key))

    def __reduce__(self) -> tuple[type["Key"], tuple[bytes]]:
        return Key, (self._secret,)  # the state of a hash cannot be pickled

    def numbers(self, messages: Sequence[bytes]) -> FloatArray:
        """Return a number in [0, 1) for each message: the first 53 bits of its HMAC."""
        digests = bytearray()
        for message in messages:
            inner, outer = self._inner.copy(), self._outer.copy()
            inner.update(message)
            outer.update(inner.digest())
            digests += outer.digest()[:8]
        return (np.frombuffer(bytes(digests), dtype=">u8") >> np.uint64(11)).astype(np.float64) / 2.0**53


def encode_id(id: Any) -> bytes:
    """Return the canonical bytes of an id: its type's letter, a colon, and its text, digits or bytes.

    Examples
    --------
    >>> encode_id("7"), encode_id(7), encode_id(b"7")
    (b's:7', b'i:7', b'b:7')
    """
    if isinstance(id, str):
        return b"s:" + id.encode(errors="surrogatepass")
    if isinstance(id, (int, np.integer)) and not isinstance(id, (bool, np.bool_)):
        return b"i:%d" % int(id)
    if isinstance(id, (bytes, bytearray)):
        return b"b:" + bytes(id)
    raise InvalidInputError(
        f"ids must be str, int or bytes; got {id!r} of type {type(id).__name__}: use the record's key in its database"
    )


def _encoded(ids: Any) -> list[bytes]:
    """Return the canonical bytes of each id, from any iterable or a series of any dataframe library."""
    if hasattr(ids, "__array__"):  # not lists: an array of bytes would lose zeros at their ends
        ids = column(ids, parameter="ids")
    if not isinstance(ids, Iterable):
        raise InvalidInputError(f"ids must hold one id per row; got {ids!r}: give the records' keys")
    return [encode_id(one) for one in ids]


def secret_bytes(secret: Any) -> bytes:
    """Return the bytes of a secret after checking that it is long enough."""
    if not isinstance(secret, (bytes, str)):
        raise InvalidInputError(f"secret must be bytes or str; got {type(secret).__name__}")
    raw = secret.encode() if isinstance(secret, str) else secret
    if len(raw) < MINIMUM_SECRET:
        raise InvalidInputError(
            f"secret must have at least {MINIMUM_SECRET} bytes; got {len(raw)}: make one with secrets.token_bytes(32)"
        )
    return raw


@dataclass(frozen=True, eq=False)
class TwoStacks:
    """Two stacks, one of which decides on each record, drawn by its id and a secret.

    Attributes
    ----------
    weights : ndarray of shape (2, k)
        Weight of each base model.
    intercept : ndarray of shape (2,)
        The constants.
    share : float
        Probability of the first.
    key : Key
        The secret.
    """

    weights: FloatArray
    intercept: FloatArray
    share: float
    key: Key

    def accepted(self, H: NDArray[np.floating[Any]], threshold: float) -> FloatArray:
        """Return the probability of decision 1 on rows (n, k); the threshold is that of the linear predictor."""
        first, second = (H @ self.weights.T + self.intercept > threshold).T
        return np.asarray(self.share * first + (1.0 - self.share) * second)

    def decide(self, H: NDArray[np.floating[Any]], threshold: float, ids: Iterable[Any] | None) -> NDArray[np.bool_]:
        """Return the decisions on rows (n, k) by ids, without them by a hash of each row."""
        messages = row_ids(H) if ids is None else _encoded(ids)
        if len(messages) != len(H):
            raise InvalidInputError(f"ids must hold one id per row, {len(H)}; got {len(messages)}")
        first, second = (H @ self.weights.T + self.intercept > threshold).T
        return np.asarray(np.where(self.key.numbers(messages) < self.share, first, second))


def row_ids(H: NDArray[np.floating[Any]]) -> list[bytes]:
    """Return an id for each row of numbers: their digits, so that rounding in the last ones does not matter."""
    digits = np.ascontiguousarray(np.round(np.asarray(H, dtype=np.float64), 9) + 0.0)  # + 0.0: no negative zero
    return [b"b:" + row.tobytes() for row in digits]


@dataclass(frozen=True, eq=False)
class MixtureReport:
    """What a mixture promises and what its draws came to on given rows.

    Attributes
    ----------
    expected_accuracy, expected_fairness : float
        The average over all possible draws on these rows: what the mixture promises.
    realised_accuracy, realised_fairness : float
        What the draws of these ids under this secret gave.
    probability : ndarray of shape (k,)
        The probability of each model.
    share : ndarray of shape (k,)
        The share of the rows that each model decided.
    names : tuple of str, length k
        The models.
    """

    expected_accuracy: float
    expected_fairness: float
    realised_accuracy: float
    realised_fairness: float
    probability: FloatArray
    share: FloatArray
    names: tuple[str, ...]


class RandomizedMixture:
    """Decide each record with one of several models, drawn by its id and a secret.

    Parameters
    ----------
    estimators : list of (name, fitted estimator), or dict of them by name
        The models. An estimator may be None for a constant model: then `constants` has its decision.
    probabilities : array-like of shape (k,)
        The probability of each model; they sum to 1.
    secret : bytes or str
        The key, at least 16 bytes (text counts in UTF-8). Whoever has it can foresee every draw. It is not shown in
        `repr`, and a pickled or saved mixture contains it: store it like a password.
    constants : dict of str to int, optional
        The decision of each model that is None in `estimators`: 1 for the second of the two classes, 0 for the first.
    threshold : float
        A score above it is decision 1, for models with `predict_proba`. A model without it decides by its `predict`.
    classes : array-like of length 2, optional
        The two classes in sorted order. None: those of the models; 0 and 1 if no model names its own.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The classes in which `predict` answers.

    Notes
    -----
    The draw of id i is the first 8 bytes, big-endian, of HMAC-SHA256(secret, encoding of i), shifted to 53 bits and
    divided by 2⁵³: a number u in [0, 1). Model j decides if p₁ + … + pⱼ₋₁ ≤ u < p₁ + … + pⱼ. An id is a str, int or
    bytes, encoded as its type's letter (``s``, ``i``, ``b``), a colon, and its UTF-8 text, its decimal digits, or the
    bytes themselves; so 7 and "7" are different ids.

    Draws of one id are the same for ever; draws of different ids, or under another secret, are independent. Two rows
    with one id (a person who applies twice) meet the same model.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.dummy import DummyClassifier
    >>> X, y = np.zeros((4, 1)), np.array([0, 0, 1, 1])
    >>> no, yes = (DummyClassifier(strategy="constant", constant=c).fit(X, y) for c in (0, 1))
    >>> mixture = RandomizedMixture([("no", no), ("yes", yes)], [0.5, 0.5], secret="correct horse battery")
    >>> mixture.predict(X, ids=["ann", "bob", "dan", "eve"])
    array([0, 0, 1, 1])
    >>> mixture.explain("bob").model
    'no'
    """

    def __init__(
        self,
        estimators: Sequence[tuple[str, Any]] | Mapping[str, Any],
        probabilities: Any,
        *,
        secret: bytes | str,
        constants: dict[str, int] | None = None,
        threshold: float = 0.5,
        classes: Any = None,
    ) -> None:
        # No scikit-learn base class: its representations show every parameter, and one of these is a secret.
        self.estimators = named_models(estimators, expected="a non-empty list of (name, fitted estimator) pairs")
        self.names = tuple(name for name, _ in self.estimators)
        self.probabilities = _probabilities(probabilities, len(self.names))
        self.constants = _constants(self.estimators, constants)
        self.threshold = validate.number(threshold, parameter="threshold")
        self.classes = None if classes is None else _two_classes(classes)
        self._ends = np.cumsum(self.probabilities)
        self._ends[-1] = 1.0
        self._key = Key(secret_bytes(secret))
        self._check_models()

    @property
    def classes_(self) -> NDArray[Any]:
        """The two classes in sorted order; the second is decision 1."""
        given = vars(self).get("classes")  # absent in a mixture that an earlier version saved
        return _common_classes(self.estimators) if given is None else np.asarray(given)

    def _check_models(self) -> None:
        for name, model in self.estimators:
            if model is not None and not hasattr(model, "predict"):
                raise InvalidInputError(f"estimators must have predict, or be None; {name!r} is {model!r}")
            if getattr(model, "mixture_", None) is not None:
                raise InvalidInputError(
                    f"estimators must decide without drawing; {name!r} is a stack that randomises itself: use it "
                    "alone, or mix its stacks (at(target=...))"
                )
            own = model.threshold if hasattr(model, "path_") and hasattr(model, "threshold") else self.threshold
            if own != self.threshold:
                raise InvalidInputError(
                    f"threshold must be that of the stacks; got {self.threshold:g}, and {name!r} decides at {own:g}: "
                    f"pass threshold={own:g}"
                )
            check_own_classes(model, self.classes_, name)

    @classmethod
    def from_points(
        cls,
        points: TradeoffPoints,
        estimators: Sequence[tuple[str, Any]] | Mapping[str, Any],
        *,
        min_fairness: float,
        secret: bytes | str,
        interpolate: bool | Literal["signed"] = "signed",
        constants: dict[str, int] | None = None,
        threshold: float = 0.5,
    ) -> "RandomizedMixture":
        """Return the best mixture of given fairness from the points of the models.

        Parameters
        ----------
        points : TradeoffPoints
            Accuracy and fairness of the models.
        estimators : list of (name, fitted estimator), or dict of them by name
            The models of the points, found by their names. The constant model need not be given: the points say what it
            decides.
        min_fairness : float
            The fairness that the mixture must have in expectation, in [0, 1].
        secret, threshold
            As in the class.
        interpolate : {"signed", True, False}
            Which curve: the signed hull, TAFI, or the step curve, on which the mixture is a single model.
        constants : dict of str to int, optional
            As in the class. Needed only where the points do not say what the constant model decides: with a function as
            the measure of fairness.

        Examples
        --------
        >>> import numpy as np
        >>> from fairfrontier import tradeoff_points
        >>> from sklearn.tree import DecisionTreeClassifier
        >>> X, sex = np.array([[0.0], [1.0], [0.0], [1.0], [1.0], [1.0]]), ["f", "f", "f", "m", "m", "m"]
        >>> y = np.array(["no", "yes", "no", "yes", "yes", "yes"])
        >>> model = DecisionTreeClassifier().fit(X, y)
        >>> points = tradeoff_points(y, {"tree": model.predict_proba(X)[:, 1]}, sensitive_features=sex)
        >>> mixture = RandomizedMixture.from_points(
        ...     points, {"tree": model}, min_fairness=0.5, secret="correct horse battery"
        ... )
        >>> mixture
        RandomizedMixture({'tree': 0.75, 'constant': 0.25}, secret=<hidden>)
        >>> mixture.predict([[0.0], [0.0]], ids=["ann", "eve"])
        array(['no', 'yes'], dtype='<U3')
        """
        models = dict(named_models(estimators, expected="a non-empty list of (name, fitted estimator) pairs"))
        decided = {**_constant_decision(points), **(constants or {})}
        ordered = [(name, models.get(name)) for name in points.names]
        chosen, chance = _at_level(points.frontier(interpolate), ordered, min_fairness)
        for name, _ in chosen:
            if name not in models and name != CONSTANT:
                raise InvalidInputError(f"estimators must hold the model {name!r} of the points; got {list(models)}")
        # Of all given models: those that are chosen may be the constant alone, which has no classes.
        classes = _common_classes(list(models.items()))
        return cls(chosen, chance, secret=secret, constants=decided, threshold=threshold, classes=classes)

    @classmethod
    def from_curve(
        cls,
        curve: TAFCurve,
        estimators: Sequence[tuple[str, Any]],
        *,
        min_fairness: float,
        secret: bytes | str,
        constants: dict[str, int] | None = None,
        threshold: float = 0.5,
    ) -> "RandomizedMixture":
        """Return the mixture at a point of a curve; `from_points` is simpler where the points are at hand.

        Parameters
        ----------
        curve : TAFCurve
            ``points.frontier(interpolate=True)`` or ``points.frontier(interpolate="signed")``; on a step curve the
            mixture is a single model.
        estimators : list of (name, fitted estimator)
            All models of the points, in their order; for the constant model ``("constant", None)``.
        min_fairness : float
            The fairness that the mixture must have in expectation, in [0, 1].
        secret, constants, threshold
            As in the class. A curve does not say what the constant model decides, so `constants` must, wherever a model
            that is None has a part in the mixture.
        """
        models = named_models(estimators, expected="a non-empty list of (name, fitted estimator) pairs")
        chosen, chance = _at_level(curve, models, min_fairness)
        classes = _common_classes(models)
        return cls(chosen, chance, secret=secret, constants=constants, threshold=threshold, classes=classes)

    def __repr__(self) -> str:
        parts = zip(self.names, self.probabilities.tolist(), strict=True)
        shown = ", ".join(f"{name!r}: {chance:.4g}" for name, chance in parts)
        return f"RandomizedMixture({{{shown}}}, secret=<hidden>)"

    def draw(self, ids: Iterable[Any]) -> IntArray:
        """Return the index of the model that decides on each id, shape (n,)."""
        return self._models(self._key.numbers(_encoded(ids)))

    def explain(self, id: Any) -> Draw:
        """Replay the draw of one id."""
        number = self._key.numbers([encode_id(id)])
        model = int(self._models(number)[0])
        ends = np.concatenate([[0.0], self._ends])
        return Draw(id, float(number[0]), self.names[model], (float(ends[model]), float(ends[model + 1])))

    def predict(self, X: Any, *, ids: Iterable[Any]) -> NDArray[Any]:
        """Return the predicted classes, each decided by the model that the row's id draws."""
        model = self.draw(ids)
        decisions = self._decisions(X, len(model), np.unique(model))
        return np.asarray(self.classes_[decisions[np.arange(len(model)), model]])

    def report(self, X: Any, y: Any, *, ids: Iterable[Any], sensitive_features: Any, **options: Any) -> MixtureReport:
        """Return expected and realised accuracy and fairness on given rows.

        Parameters
        ----------
        X : array-like of shape (n, p)
            Features.
        y : array-like of shape (n,)
            Labels.
        ids : iterable of n ids
            The records' ids.
        sensitive_features, **options
            As in `tradeoff_points`.
        """
        model = self.draw(ids)
        decisions = self._decisions(X, len(model), np.arange(len(self.names)))
        realised = decisions[np.arange(len(model)), model]
        columns = {f"model {j}": decisions[:, j] for j in range(decisions.shape[1])} | {"realised": realised}
        options = {"include_constant": False, **options}
        label = positive_labels(y, self.classes_, whose="of the models")
        points = tradeoff_points(label, columns, sensitive_features=sensitive_features, **options)
        chance = np.append(self.probabilities, np.zeros(len(points) - len(self.probabilities)))
        expected = _expected(points, chance)
        return MixtureReport(
            float(expected.accuracy[0]),
            float(expected.fairness[0]),
            float(points.accuracy[len(self.names)]),
            float(points.fairness[len(self.names)]),
            self.probabilities,
            np.bincount(model, minlength=len(self.names)) / len(model),
            self.names,
        )

    def _decisions(self, X: Any, n_rows: int, wanted: IntArray) -> NDArray[np.intp]:
        """Return the decisions of the wanted models in their columns, shape (n, k)."""
        result = np.zeros((n_rows, len(self.estimators)), dtype=np.intp)
        for j in wanted:
            name, model = self.estimators[j]
            if model is None:
                result[:, j] = self.constants[name]
                continue
            scores = positive_scores(model, X, classes=self.classes_, name=name)
            validate.same_length(n_rows, **{f"predictions of {name!r}": len(scores)})
            result[:, j] = scores > self.threshold
        return result

    def _models(self, numbers: FloatArray) -> IntArray:
        """Return the model whose part of [0, 1) each number lies in."""
        return np.searchsorted(self._ends, numbers, side="right")


def _probabilities(probabilities: Any, n_models: int) -> FloatArray:
    chance = numeric(as_array(probabilities, parameter="probabilities"), parameter="probabilities").astype(np.float64)
    if chance.shape != (n_models,) or n_models == 0:
        raise InvalidInputError(
            f"probabilities must hold one number for each of the {n_models} estimators; got shape {chance.shape}"
        )
    validate.finite(chance, parameter="probabilities")
    if chance.min() < 0 or abs(chance.sum() - 1.0) > 1e-6:
        raise InvalidInputError(f"probabilities must be non-negative and sum to 1; got {chance.tolist()}")
    return np.asarray(chance / chance.sum())


def _two_classes(classes: Any) -> NDArray[Any]:
    values = validate.column(classes, parameter="classes")
    if len(values) != 2 or not values[0] < values[1]:
        raise InvalidInputError(f"classes must be two classes in sorted order; got {values.tolist()}")
    return values


def _constants(estimators: Sequence[tuple[str, Any]], constants: dict[str, int] | None) -> dict[str, int]:
    given = dict(constants or {})
    for name, model in estimators:
        if model is None and given.get(name) not in (0, 1):
            raise InvalidInputError(
                f"constants[{name!r}] must be 0 or 1, the decision of the model that is None; got {given.get(name)!r}: "
                "RandomizedMixture.from_points reads it from the points"
            )
    return given


def _common_classes(estimators: Sequence[tuple[str, Any]]) -> NDArray[Any]:
    """Return the classes of the first model that names its own; 0 and 1 if there is none."""
    known = (model for _, model in estimators if getattr(model, "classes_", None) is not None)
    return classes_of(next(known, None))


def _constant_decision(points: TradeoffPoints) -> dict[str, int]:
    """Return what the constant model of the points decides, by its name; nothing where they do not say it."""
    if CONSTANT not in points.names:
        return {}
    rates = points.rates[points.names.index(CONSTANT)]
    # A function of fairness gives its bias in place of rates: its one row set has the name of the function.
    of_function = points.sets.names[0] == points.sets.attributes[0]
    says = not of_function and rates[0] in (0.0, 1.0) and bool(np.all(rates == rates[0]))
    return {CONSTANT: int(rates[0])} if says else {}


def _at_level(
    curve: TAFCurve, models: Sequence[tuple[str, Any]], min_fairness: float
) -> tuple[list[tuple[str, Any]], FloatArray]:
    """Return the models that a curve mixes at a level of fairness, and their probabilities."""
    level = validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
    if level > curve.fairness[-1]:
        raise InfeasibleError(
            f"min_fairness={level:g} is above the fairness of the fairest mixture, {curve.fairness[-1]:g}; ask for "
            "at most that, or add the constant model"
        )
    used, chance = _at(curve, level)
    if used.max() >= len(models):
        raise InvalidInputError(
            f"estimators must hold every model of the points, at least {used.max() + 1}; got {len(models)}: "
            "the constant model is ('constant', None)"
        )
    return [models[i] for i in used], chance


def _at(curve: TAFCurve, level: float) -> tuple[IntArray, FloatArray]:
    """Return the models of a point of a curve and their probabilities."""
    probability = np.eye(len(curve.support)) if curve.mixture is None else curve.mixture
    right = int(np.searchsorted(curve.fairness, level, side="left"))
    chance = probability[right]
    if curve.linear and right > 0:
        width = curve.fairness[right] - curve.fairness[right - 1]
        share = (level - curve.fairness[right - 1]) / width
        chance = (1.0 - share) * probability[right - 1] + share * probability[right]
    used = np.flatnonzero(chance > 1e-12)
    return curve.support[used], chance[used] / chance[used].sum()


def _expected(points: TradeoffPoints, chance: FloatArray) -> TradeoffPoints:
    """Return the mixture as one point: its expected rates and accuracy are averages of those of the models."""
    return points_from_rates((chance @ points.rates)[None], points.sets, np.array([chance @ points.accuracy]), ("",))
