"""Save and load fitted models with skops: loading never runs code from the file."""

import io
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from fairfrontier._extras import require
from fairfrontier._scratch import remove_abandoned, scratch_prefix
from fairfrontier._version import __version__
from fairfrontier.exceptions import InvalidInputError

# The types of ours that files hold, and the module of each today. In files they stand under the name of the package
# alone, so that a module may move; files of 0.1.0, which name its modules, are read by the same table. They are plain
# classes whose loading cannot run anything but their own code.
_MODULES = {
    "AnyTwoLabels": "learners._members",
    "FairPath": "optimize._ridge_path",
    "FairStacksClassifier": "optimize._fairstacks",
    "FairStacksRegressor": "optimize._fairstacks",
    "FittedPath": "optimize._fitting",
    "GroupProbability": "_attribute_models",
    "Key": "optimize._mixture",
    "NeighborsClassifier": "learners._members",
    "NeighborsRegressor": "learners._members",
    "PointWeight": "quantify._weights",
    "PowerWeight": "quantify._weights",
    "RandomizedMixture": "optimize._mixture",
    "RidgeSolution": "optimize._ridge_path",
    "RowSets": "metrics._contrasts",
    "Selection": "optimize._choice",
    "StepWeight": "quantify._weights",
    "Sweep": "optimize._tuning",
    "TAFCurve": "identify._frontier",
    "TableEncoder": "_attribute_models",
    "TabulatedWeight": "quantify._weights",
    "TradeoffPoints": "identify._points",
    "TwoStacks": "optimize._mixture",
    "UniformWeight": "quantify._weights",
}
# A prefix such as "numpy." or "sklearn." would not do: it lets in functions that a hostile file could have called.
_TRUSTED = frozenset(
    {
        *(f"fairfrontier.{module}.{name}" for name, module in _MODULES.items()),
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.tree._tree.Tree",
    }
)
_SCHEMA, _ABOUT = "schema.json", "fairfrontier.json"
# What a file may unpack to, beside a multiple of its own size: `save` does not compress.
_LARGEST_RATIO, _SMALL = 50, 2**22
# Levels of lists and dicts in a schema; a stack of pipelines in stacks has some dozens.
_DEEPEST = 300
# Types that hold the secret of random draws.
_SECRET = {"fairfrontier.Key", "fairfrontier.RandomizedMixture"}
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
    remove_abandoned(target.parent)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=scratch_prefix())
    os.close(handle)
    try:
        skops.dump(model, name)
        content, types = _renamed(Path(name), _stable_name, {_ABOUT: {"version": __version__}})
        nameless = next((one for one in sorted(types) if "<" in one), None)
        if nameless is not None:
            raise InvalidInputError(
                f"model must hold nothing that a file cannot name; got {nameless}: for a weight take one of "
                "fairfrontier's (StepWeight, PowerWeight, TabulatedWeight, …), or a function of a module"
            )
        Path(name).write_bytes(content)
        # mkstemp allows nobody else to read. A model file is an ordinary file, unless it has a secret in it.
        if not types & _SECRET:
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
        content, _ = _renamed(source, _current_name)
        unknown = skops.get_untrusted_types(data=content)
    except _DAMAGED as error:
        raise _unreadable(source, error) from error
    refused = sorted(set(unknown) - _TRUSTED - set(trusted or ()))
    if refused:
        raise InvalidInputError(
            f"the file {str(source)!r} asks for the type {refused[0]!r}, which is not trusted; nothing was loaded. "
            f"If you know that type and its author, pass trusted=[{refused[0]!r}]"
        )
    try:
        return skops.loads(content, trusted=unknown)
    except _DAMAGED as error:
        raise _unreadable(source, error) from error


def _stable_name(module: str, name: str) -> str:
    """Return the module under which a file names a type."""
    return "fairfrontier" if module.startswith("fairfrontier.") and name in _MODULES else module


def _current_name(module: str, name: str) -> str:
    """Return the module in which a type that a file names is today."""
    ours = module == "fairfrontier" or module.startswith("fairfrontier.")
    return f"fairfrontier.{_MODULES[name]}" if ours and name in _MODULES else module


def _renamed(
    source: Path, rename: Callable[[str, str], str], about: Mapping[str, Any] | None = None
) -> tuple[bytes, set[str]]:
    """Return the bytes of a skops file with other modules of its types, and with further entries `about` it.

    Returns
    -------
    bytes, set of str
        The file, and the names of its types.

    Raises
    ------
    ValueError
        If the file would unpack to far more than its size (nothing is unpacked then), is nested too deeply, or was
        written by a later version.
    """
    result = io.BytesIO()
    types: set[str] = set()
    with ZipFile(source) as old, ZipFile(result, "w") as new:
        unpacked = sum(entry.file_size for entry in old.infolist())
        if unpacked > max(_SMALL, _LARGEST_RATIO * source.stat().st_size):
            raise ValueError(f"it would unpack to {unpacked:,} bytes, far more than its {source.stat().st_size:,}")
        for entry in old.infolist():
            content = old.read(entry)
            if entry.filename == _SCHEMA:
                schema = json.loads(content)
                types = _rename_types(schema, rename)
                content = json.dumps(schema).encode()
            elif entry.filename == _ABOUT:
                _check_version(json.loads(content))
            new.writestr(entry.filename, content)
        for name, value in (about or {}).items():
            new.writestr(name, json.dumps(value))
    return result.getvalue(), types


def _check_version(about: Any) -> None:
    """Raise if a file was written by a later version, which may know what this one does not."""
    written = str(about["version"])
    if _release(written) > _release(__version__):
        raise ValueError(f"it was written by fairfrontier {written}, and this is {__version__}: install that version")


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:2])


def _rename_types(node: Any, rename: Callable[[str, str], str]) -> set[str]:
    """Rename the modules of all types in a schema, in place, and return the types; without recursion."""
    types: set[str] = set()
    waiting = [(node, 0)]
    while waiting:
        one, depth = waiting.pop()
        if depth > _DEEPEST:
            raise ValueError(f"it is nested more than {_DEEPEST} deep, which no model is")
        if isinstance(one, dict):
            module, name = one.get("__module__"), one.get("__class__")
            if isinstance(module, str) and isinstance(name, str):
                one["__module__"] = rename(module, name)
                types.add(f"{one['__module__']}.{name}")
            waiting.extend((value, depth + 1) for value in one.values())
        elif isinstance(one, list):
            waiting.extend((value, depth + 1) for value in one)
    return types


def _unreadable(source: Path, error: Exception) -> InvalidInputError:
    return InvalidInputError(f"path must be a file written by save; {str(source)!r} cannot be read as one: {error}")
