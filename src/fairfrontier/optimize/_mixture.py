"""A randomised model whose every draw can be replayed.

A point of TAFI, or of the signed hull, is a lottery over models. Here the lottery is keyed: which model decides on a
record follows from the record's id and a secret, so that the same record always meets the same model, nobody without
the secret can foresee or choose the outcome, and an auditor who has it can replay any single decision.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier import _validation as validate
from fairfrontier._validation import FloatArray, IntArray
from fairfrontier.exceptions import InfeasibleError, InvalidInputError
from fairfrontier.identify._frontier import TAFCurve
from fairfrontier.identify._points import TradeoffPoints, points_from_rates, tradeoff_points
from fairfrontier.optimize._draws import Key, encode_id

MINIMUM_SECRET = 16


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


@dataclass(frozen=True, eq=False)
class MixtureReport:
    """What a mixture promises and what its draws came to on given rows.

    Attributes
    ----------
    expected_accuracy, expected_fairness : float
        Averages over all possible draws on these rows: those of the lottery itself.
    realised_accuracy, realised_fairness : float
        Those of the draws that these ids and this secret gave.
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
    estimators : list of (name, fitted estimator)
        The models. An estimator may be None for a constant model: then `constants` has its decision.
    probabilities : array-like of shape (k,)
        The probability of each model; they sum to 1.
    secret : bytes or str
        The key, at least 16 bytes (text counts in UTF-8). Whoever has it can foresee every draw. It is not shown in
        `repr`, and a pickled or saved mixture contains it: store it like a password.
    constants : dict of str to int, optional
        The decision of each model that is None in `estimators`.
    threshold : float
        A score above it is decision 1, for models with `predict_proba`.

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
        estimators: Sequence[tuple[str, Any]],
        probabilities: Any,
        *,
        secret: bytes | str,
        constants: dict[str, int] | None = None,
        threshold: float = 0.5,
    ) -> None:
        # No scikit-learn base class: its representations show every parameter, and one of these is a secret.
        self.estimators = [(str(name), model) for name, model in estimators]
        self.names = tuple(name for name, _ in self.estimators)
        self.probabilities = _probabilities(probabilities, len(self.names))
        self.constants = _constants(self.estimators, constants)
        self.threshold = validate.number(threshold, parameter="threshold")
        self._ends = np.cumsum(self.probabilities)
        self._ends[-1] = 1.0
        self._key = Key(checked_secret(secret))

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
        """Return the mixture at a point of a curve.

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
            As in the class. Without `constants` a model that is None decides 0.
        """
        level = validate.number(min_fairness, parameter="min_fairness", low=0.0, high=1.0)
        if level > curve.fairness[-1]:
            raise InfeasibleError(
                f"min_fairness={level:g} is above the fairness of the fairest mixture, {curve.fairness[-1]:g}; ask for "
                "at most that, or add the constant model"
            )
        models, chance = _at(curve, level)
        if models.max() >= len(estimators):
            raise InvalidInputError(
                f"estimators must hold every model of the points, at least {models.max() + 1}; got {len(estimators)}: "
                "the constant model is ('constant', None)"
            )
        chosen = [tuple(estimators[i]) for i in models]
        absent = {name: 0 for name, model in chosen if model is None}
        return cls(chosen, chance, secret=secret, constants={**absent, **(constants or {})}, threshold=threshold)

    def __repr__(self) -> str:
        parts = zip(self.names, self.probabilities.tolist(), strict=True)
        shown = ", ".join(f"{name!r}: {chance:.4g}" for name, chance in parts)
        return f"RandomizedMixture({{{shown}}}, secret=<hidden>)"

    def draw(self, ids: Iterable[Any]) -> IntArray:
        """Return the index of the model that decides on each id, shape (n,)."""
        return self._models(self._key.numbers([encode_id(one) for one in ids]))

    def explain(self, id: Any) -> Draw:
        """Replay the draw of one id."""
        number = self._key.numbers([encode_id(id)])
        model = int(self._models(number)[0])
        ends = np.concatenate([[0.0], self._ends])
        return Draw(id, float(number[0]), self.names[model], (float(ends[model]), float(ends[model + 1])))

    def predict(self, X: Any, *, ids: Iterable[Any]) -> NDArray[np.intp]:
        """Return 0/1 decisions, each by the model that its id draws."""
        model = self.draw(ids)
        decisions = self._decisions(X, len(model), np.unique(model))
        return decisions[np.arange(len(model)), model]

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
        points = tradeoff_points(y, columns, sensitive_features=sensitive_features, **options)
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
            values = np.full(n_rows, self.constants[name]) if model is None else self._decide(model, X)
            validate.same_length(n_rows, **{f"predictions of {name!r}": len(values)})
            result[:, j] = values
        return result

    def _decide(self, model: Any, X: Any) -> NDArray[np.intp]:
        if hasattr(model, "predict_proba"):
            return np.asarray(model.predict_proba(X)[:, 1] > self.threshold, dtype=np.intp)
        return np.asarray(np.asarray(model.predict(X)) > self.threshold, dtype=np.intp)

    def _models(self, numbers: FloatArray) -> IntArray:
        """Return the model whose part of [0, 1) each number lies in."""
        return np.searchsorted(self._ends, numbers, side="right")


def _probabilities(probabilities: Any, n_models: int) -> FloatArray:
    chance = np.asarray(probabilities, dtype=np.float64)
    if chance.shape != (n_models,) or n_models == 0:
        raise InvalidInputError(
            f"probabilities must hold one number for each of the {n_models} estimators; got shape {chance.shape}"
        )
    validate.finite(chance, parameter="probabilities")
    if chance.min() < 0 or abs(chance.sum() - 1.0) > 1e-6:
        raise InvalidInputError(f"probabilities must be non-negative and sum to 1; got {chance.tolist()}")
    return np.asarray(chance / chance.sum())


def _constants(estimators: Sequence[tuple[str, Any]], constants: dict[str, int] | None) -> dict[str, int]:
    given = dict(constants or {})
    for name, model in estimators:
        if model is None and given.get(name) not in (0, 1):
            raise InvalidInputError(
                f"constants[{name!r}] must be 0 or 1, the decision of the model that is None; got {given.get(name)!r}"
            )
    return given


def checked_secret(secret: Any) -> bytes:
    if not isinstance(secret, (bytes, str)):
        raise InvalidInputError(f"secret must be bytes or str; got {type(secret).__name__}")
    raw = secret.encode() if isinstance(secret, str) else secret
    if len(raw) < MINIMUM_SECRET:
        raise InvalidInputError(
            f"secret must have at least {MINIMUM_SECRET} bytes; got {len(raw)}: make one with secrets.token_bytes(32)"
        )
    return raw


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
    """Return the lottery as a point: rates and accuracies that are averages over rows are averages over draws."""
    return points_from_rates((chance @ points.rates)[None], points.sets, np.array([chance @ points.accuracy]), ("",))
