"""Save and load fitted models with skops: loading never runs code from the file."""

import os
import tempfile
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from fairfrontier._extras import require
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.optimize._mixture import RandomizedMixture

# Plain data classes whose loading cannot run anything but their own code. A prefix such as "numpy." would not do: it
# lets in functions that a hostile file could have called.
_TRUSTED = frozenset(
    {
        "fairfrontier._attribute_models.GroupProbability",
        "fairfrontier._attribute_models.TableEncoder",
        "fairfrontier.identify._frontier.TAFCurve",
        "fairfrontier.identify._points.TradeoffPoints",
        "fairfrontier.learners._members.AnyTwoLabels",
        "fairfrontier.learners._members.NeighborsClassifier",
        "fairfrontier.learners._members.NeighborsRegressor",
        "fairfrontier.metrics._contrasts.RowSets",
        "fairfrontier.optimize._choice.Selection",
        "fairfrontier.optimize._draws.Key",
        "fairfrontier.optimize._draws.TwoStacks",
        "fairfrontier.optimize._fairstacks.FairStacksClassifier",
        "fairfrontier.optimize._fairstacks.FairStacksRegressor",
        "fairfrontier.optimize._fitting.FittedPath",
        "fairfrontier.optimize._mixture.RandomizedMixture",
        "fairfrontier.optimize._placement.Sweep",
        "fairfrontier.optimize._ridge_path.FairPath",
        "fairfrontier.optimize._ridge_path.RidgeSolution",
        "fairfrontier.quantify._weights.PointWeight",
        "fairfrontier.quantify._weights.PowerWeight",
        "fairfrontier.quantify._weights.StepWeight",
        "fairfrontier.quantify._weights.TabulatedWeight",
        "fairfrontier.quantify._weights.UniformWeight",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
    }
)
# What skops and numpy raise for a file that is none of theirs, or a crafted one.
_DAMAGED = (BadZipFile, LookupError, ValueError, TypeError, AttributeError, RecursionError, ImportError, EOFError)


def save(model: Any, path: str | os.PathLike[str]) -> Path:
    """Save a fitted model.

    Parameters
    ----------
    model : object
        A fitted stack, a mixture, or any scikit-learn estimator.
    path : path-like
        The file to write, customarily ``*.skops``. It is replaced in one step or not at all. That of a
        model that randomises has the secret in it, and can be read by its owner only.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from fairfrontier import FairStacksClassifier, load, save
    >>> sex, y = np.tile([0, 1], 20), np.repeat([0, 1], 20)
    >>> H = np.stack([y * 0.8 + sex * 0.1, y * 0.5 + 0.2], axis=1)
    >>> model = FairStacksClassifier("precomputed", alpha=1.0).fit(H, y, sensitive_features=sex)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     same = load(save(model, folder + "/stack.skops"))
    >>> bool((same.predict(H) == model.predict(H)).all())
    True
    """
    skops = require("skops.io", extra="save", purpose="save")
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InvalidInputError(f"path must be a file in an existing folder; got {str(target)!r}")
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(handle)
    try:
        skops.dump(model, name)
        # mkstemp allows nobody else to read. A model file is an ordinary file, unless it has a secret in it.
        if not (isinstance(model, RandomizedMixture) or getattr(model, "mixture_", None) is not None):
            umask = os.umask(0)
            os.umask(umask)
            os.chmod(name, 0o666 & ~umask)
        os.replace(name, target)
    finally:
        Path(name).unlink(missing_ok=True)
    return target


def load(path: str | os.PathLike[str], *, trusted: list[str] | None = None) -> Any:
    """Load a model that `save` wrote.

    Parameters
    ----------
    path : path-like
        The file.
    trusted : list of str, optional
        Full names of further types, such as ``"mypackage.MyModel"``, whose code you trust.

    Returns
    -------
    object
        The model.

    Raises
    ------
    InvalidInputError
        If the file is no skops file, or asks for a type that is not trusted; the message names it.
    """
    skops = require("skops.io", extra="save", purpose="load")
    source = Path(path)
    if not source.is_file():
        raise InvalidInputError(f"path must be a file written by save; {str(source)!r} is none")
    try:
        unknown = skops.get_untrusted_types(file=source)
    except _DAMAGED as error:
        raise _unreadable(source, error) from error
    refused = sorted(set(unknown) - _TRUSTED - set(trusted or ()))
    if refused:
        raise InvalidInputError(
            f"the file {str(source)!r} asks for the type {refused[0]!r}, which is not trusted; nothing was loaded. "
            f"If you know that type and its author, pass trusted=[{refused[0]!r}]"
        )
    try:
        return skops.load(source, trusted=unknown)
    except _DAMAGED as error:
        raise _unreadable(source, error) from error


def _unreadable(source: Path, error: Exception) -> InvalidInputError:
    return InvalidInputError(f"path must be a file written by save; {str(source)!r} cannot be read as one: {error}")
