"""Numbers in [0, 1) that follow from a secret and an id, by HMAC-SHA256."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairfrontier._validation import FloatArray
from fairfrontier.exceptions import InvalidInputError

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
        return b"s:" + id.encode()
    if isinstance(id, (int, np.integer)) and not isinstance(id, (bool, np.bool_)):
        return b"i:%d" % int(id)
    if isinstance(id, (bytes, bytearray)):
        return b"b:" + bytes(id)
    raise InvalidInputError(
        f"ids must be str, int or bytes; got {id!r} of type {type(id).__name__}: use the record's key in its database"
    )


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
        messages = row_ids(H) if ids is None else [encode_id(one) for one in ids]
        if len(messages) != len(H):
            raise InvalidInputError(f"ids must hold one id per row, {len(H)}; got {len(messages)}")
        first, second = (H @ self.weights.T + self.intercept > threshold).T
        return np.asarray(np.where(self.key.numbers(messages) < self.share, first, second))


def row_ids(H: NDArray[np.floating[Any]]) -> list[bytes]:
    """Return an id for each row of numbers: their digits, so that rounding in the last ones does not matter."""
    digits = np.ascontiguousarray(np.round(np.asarray(H, dtype=np.float64), 9) + 0.0)  # + 0.0: no negative zero
    return [b"b:" + row.tobytes() for row in digits]
