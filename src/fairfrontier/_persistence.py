"""Save and load fitted models with skops: loading never runs code from the file."""

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from fairfrontier._extras import require
from fairfrontier._version import __version__
from fairfrontier._writing import remove_abandoned, write_atomically
from fairfrontier.exceptions import InvalidInputError

# The types of ours that files hold, and the module of each today. In files they stand under the name of the package
# alone, so that a module may move; files of 0.1.0, which name its modules, are read by the same table. They are plain
# classes whose loading cannot run anything but their own code.
_MODULES = {
    "AccuracyMeasure": "metrics._accuracy",
    "AdversarialDebiasing": "learners._adversarial",
    "AnyTwoLabels": "learners._zoo",
    "BoosterCore": "learners._fagtb",
    "Candidate": "search._evidence",
    "Checkpoint": "search._training",
    "ColumnCode": "search._table",
    "ColumnReport": "search._screening",
    "Components": "learners._zoo",
    "Evidence": "search._evidence",
    "FAGTB": "learners._fagtb",
    "FCSC": "learners._plug_in",
    "FPIR": "learners._plug_in",
    "FairGrid": "learners._fair_learner",
    "FairPath": "optimize._ridge_path",
    "FairSearch": "search._fair_search",
    "FairStacksClassifier": "optimize._fairstacks",
    "FairStacksRegressor": "optimize._fairstacks",
    "FamilyUnion": "learners._family",
    "FeatureColumns": "optimize._base_models",
    "FittedModels": "learners._zoo",
    "FittedPath": "optimize._fitting",
    "FoldModels": "optimize._base_models",
    "GroupModels": "learners._group_models",
    "GroupProbability": "_attribute_models",
    "KernelFair": "learners._kernel_fair",
    "Key": "optimize._mixture",
    "LinearPost": "learners._plug_in",
    "MinipatchTrees": "learners._trees",
    "MinipatchTreesRegressor": "learners._trees",
    "Mixture": "learners._reductions",
    "MixtureCore": "learners._reductions",
    "ModelsCore": "learners._plug_in",
    "NeighborsClassifier": "learners._zoo",
    "NeighborsRegressor": "learners._zoo",
    "NetCore": "learners._adversarial",
    "PatchTree": "learners._trees",
    "Plan": "search._plan",
    "PlugInRule": "learners._plug_in",
    "PointWeight": "quantify._fauc",
    "PowerWeight": "quantify._fauc",
    "RandomizedMixture": "optimize._mixture",
    "Reductions": "learners._reductions",
    "ResidualLoss": "optimize._losses",
    "RidgeSolution": "optimize._ridge_path",
    "RowSets": "metrics._contrasts",
    "RuleCore": "learners._plug_in",
    "SearchModel": "search._model",
    "SearchRequirement": "search._candidates",
    "Selection": "optimize._selection",
    "StepWeight": "quantify._fauc",
    "Sufficiency": "search._training",
    "Sweep": "optimize._tuning",
    "TAFCurve": "identify._frontier",
    "TableEncoder": "_attribute_models",
    "TableEncoding": "search._table",
    "TabulatedWeight": "quantify._fauc",
    "TradeoffPoints": "identify._points",
    "TreeClassifier": "learners._trees",
    "TreeFamily": "learners._trees",
    "TreeRegressor": "learners._trees",
    "TwoStacks": "optimize._mixture",
    "UniformWeight": "quantify._fauc",
}
# What fitted models of other libraries hold beside the estimators that skops knows. Each is a class of data or a pure
# function of arrays. A prefix such as "numpy." or "sklearn." would not do: it lets in functions that a hostile file
# could have called.
_OTHERS = {
    "builtins": "object",
    "collections": "OrderedDict",
    "fairlearn.metrics._fairness_metrics": "demographic_parity_difference demographic_parity_ratio "
    "equal_opportunity_difference equal_opportunity_ratio equalized_odds_difference equalized_odds_ratio",
    "lightgbm.basic": "Booster",
    "lightgbm.sklearn": "LGBMClassifier LGBMRegressor",
    "numpy": "dtype mean floating inexact integer number signedinteger unsignedinteger",
    "scipy._lib.array_api_compat.numpy._aliases": "asarray",
    "scipy.interpolate._bsplines": "BSpline",
    "scipy.sparse._csr": "csr_array csr_matrix",
    "sklearn._loss.loss": "HalfTweedieLossIdentity",
    "sklearn.calibration": "_CalibratedClassifier _SigmoidCalibration",
    "sklearn.cluster._bisect_k_means": "_BisectingTree",
    "sklearn.cluster._kmeans": "_kmeans_single_elkan _kmeans_single_lloyd",
    "sklearn.compose._column_transformer": "_RemainderColsList make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor": "TreePredictor",
    "sklearn.feature_selection._univariate_selection": "chi2 f_classif f_regression r_regression",
    "sklearn.feature_selection._mutual_info": "mutual_info_classif mutual_info_regression",
    "sklearn.gaussian_process._gpc": "_BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels": "CompoundKernel ConstantKernel DotProduct ExpSineSquared Exponentiation Matern "
    "Product RBF RationalQuadratic Sum WhiteKernel",
    "sklearn.metrics._classification": "accuracy_score balanced_accuracy_score f1_score",
    "sklearn.metrics._dist_metrics": "EuclideanDistance64 ManhattanDistance64 MinkowskiDistance64",
    "sklearn.metrics._scorer": "_CurveScorer _PassthroughScorer _Scorer",
    "sklearn.model_selection._split": "GroupKFold KFold RepeatedStratifiedKFold ShuffleSplit StratifiedGroupKFold "
    "StratifiedKFold StratifiedShuffleSplit",
    "sklearn.neighbors._ball_tree": "BallTree",
    "sklearn.neighbors._kd_tree": "KDTree",
    "sklearn.neural_network._stochastic_optimizers": "AdamOptimizer SGDOptimizer",
    "sklearn.tree._tree": "Tree",
    "sklearn.utils._bunch": "Bunch",
    "sklearn.utils._metadata_requests": "MetadataRequest MethodMetadataRequest",
    "xgboost.core": "Booster",
    "xgboost.sklearn": "XGBClassifier XGBRFClassifier XGBRFRegressor XGBRegressor",
}
_TRUSTED = frozenset(
    {
        *(f"fairfrontier.{module}.{name}" for name, module in _MODULES.items()),
        *(f"{module}.{name}" for module, names in _OTHERS.items() for name in names.split()),
    }
)
_SCHEMA, _ABOUT = "schema.json", "fairfrontier.json"
# What a file may unpack to, beside a multiple of its own size: `save` does not compress.
_LARGEST_RATIO, _SMALL = 50, 2**22
# Levels of lists and dicts in a schema; a stack of pipelines in stacks has some dozens.
_DEEPEST = 300
# Types that hold the secret of random draws.
_SECRET = {"fairfrontier.Key", "fairfrontier.RandomizedMixture"}


def save(model: Any, path: str | os.PathLike[str], *, trusted: list[str] | None = None) -> Path:
    """Save a fitted model, if it can be loaded again.

    Parameters
    ----------
    model : object
        A fitted stack, a mixture, a family of models, a search (with the labels and groups of the rows that it was
        tested on; its `model_` has none), or any scikit-learn estimator, XGBoost and LightGBM included.
    path : path-like
        The file to write, customarily ``*.skops``. It is replaced in one step or not at all. That of a
        model that randomises has the secret in it, and can be read by its owner only.
    trusted : list of str, optional
        Full names of further types in the model, such as ``"mypackage.MyModel"``; `load` will want them too.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidInputError
        If the model could not be loaded; the message names every type in it that stands in the way.

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
    content, types = _renamed(
        _loadable(skops, model, set(trusted or ())), _stable_name, {_ABOUT: {"version": __version__}}
    )
    remove_abandoned(target.parent)
    write_atomically(target, content, private=bool(types & _SECRET))
    return target


def _loadable(skops: Any, model: Any, trusted: set[str]) -> bytes:
    """Return the model as a skops file, after it was loaded from there once."""
    try:
        content: bytes = skops.dumps(model)
    except Exception as error:
        advice = _torch_advice(str(error)) or ": save its parts, or use pickle among people who trust each other"
        raise InvalidInputError(
            f"model must be made of types that a file can hold; got {type(model).__name__}: {error}{advice}"
        ) from error
    unknown = set(skops.get_untrusted_types(data=content))
    refused = sorted(unknown - _TRUSTED - trusted)
    if refused:
        advice = _torch_advice(" ".join(refused)) or (
            f". If you know them and their authors, pass trusted={refused!r} to save and to load"
        )
        raise InvalidInputError(
            f"model must be made of types that load trusts; got {_listed(refused)}: nothing was saved{advice}"
        )
    try:
        skops.loads(content, trusted=sorted(unknown))
    except Exception as error:
        raise InvalidInputError(
            f"model must be one that can be loaded again; got {type(model).__name__}, of which loading says: {error}. "
            "Functions and classes in it must be importable by name"
        ) from error
    return content


def _torch_advice(text: str) -> str:
    """Return what to do with a model of PyTorch, if a text names one."""
    if "torch" not in text.lower() and "TensorBase" not in text:
        return ""
    return (
        ". A PyTorch model cannot be loaded without running code: save its state_dict with torch.save, and stack its "
        "predictions (estimators='precomputed'), so that the stack holds no torch object"
    )


def _listed(names: list[str]) -> str:
    return f"the type{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}"


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
        If the file is no skops file, or asks for types that are not trusted; the message names them all.
    """
    skops = require("skops.io", extra="save", purpose="load")
    source = Path(path)
    if not source.is_file():
        raise InvalidInputError(f"path must be a file written by save; {str(source)!r} is not a file")
    try:
        content, _ = _renamed(source.read_bytes(), _current_name)
        unknown = skops.get_untrusted_types(data=content)
    except Exception as error:  # of a damaged or crafted file zipfile, zlib, json and skops raise a dozen types
        raise _unreadable(source, error) from error
    refused = sorted(set(unknown) - _TRUSTED - set(trusted or ()))
    if refused:
        raise InvalidInputError(
            f"the file {str(source)!r} asks for {_listed(refused)}, which {'are' if len(refused) > 1 else 'is'} not "
            f"trusted; nothing was loaded. If you know what that is and its authors, pass trusted={refused!r}"
        )
    try:
        return skops.loads(content, trusted=unknown)
    except Exception as error:  # of a crafted file, also what the constructors of its types raise
        raise _unreadable(source, error) from error


def _stable_name(module: str, name: str) -> str:
    """Return the module under which a file names a type."""
    return "fairfrontier" if module.startswith("fairfrontier.") and name in _MODULES else module


def _current_name(module: str, name: str) -> str:
    """Return the module in which a type that a file names is today."""
    ours = module == "fairfrontier" or module.startswith("fairfrontier.")
    return f"fairfrontier.{_MODULES[name]}" if ours and name in _MODULES else module


def _renamed(
    source: bytes, rename: Callable[[str, str], str], about: Mapping[str, Any] | None = None
) -> tuple[bytes, set[str]]:
    """Return the bytes of a skops file with other modules of its types, and with further entries `about` it.

    Raises
    ------
    ValueError
        If the file would unpack to far more than its size (nothing is unpacked then), is nested too deeply, or was
        written by a later version.
    """
    result = io.BytesIO()
    types: set[str] = set()
    with ZipFile(io.BytesIO(source)) as old, ZipFile(result, "w") as new:
        unpacked = sum(entry.file_size for entry in old.infolist())
        if unpacked > max(_SMALL, _LARGEST_RATIO * len(source)):
            raise ValueError(f"it would unpack to {unpacked:,} bytes, far more than its {len(source):,}")
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
