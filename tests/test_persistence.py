"""Saving and loading: what comes back is the same, and nothing of a file is ever run."""

import ast
import importlib
import importlib.util
import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn
import skops.io
from sklearn.base import is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import SVC

import fairfrontier as ff
import fairfrontier.learners
from fairfrontier import _persistence
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.learners import (
    FAGTB,
    FCSC,
    FPIR,
    AdversarialDebiasing,
    KernelFair,
    MinipatchTrees,
    MinipatchTreesRegressor,
    Reductions,
    classifier_zoo,
    fit_models,
    forest_trees,
    kitchen_sink,
    regressor_zoo,
)

# Written by earlier versions.
SAVED = Path(__file__).parent / "saved"
# Their base models are scikit-learn's own, which an older scikit-learn cannot use.
WRITTEN_WITH_A_NEWER_SCIKIT_LEARN = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 8), reason="the files hold models of scikit-learn 1.9"
)


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    sex = np.array(["f", "m"])[rng.integers(0, 2, 300)]
    X = rng.normal(size=(300, 4)) + (sex == "m")[:, None] * 0.5
    y = np.where(X[:, 0] + rng.normal(size=300) > 0.3, "yes", "no")
    models = [
        ("linear/lr", LogisticRegression()),
        ("trees/forest", RandomForestClassifier(4, random_state=0)),
        ("trees/hist", HistGradientBoostingClassifier(max_iter=4, random_state=0)),
    ]
    return ff.FairStacksClassifier(models, random_state=0, cv=3).fit(X, y, sensitive_features=sex), X


def test_a_stack_comes_back_the_same(fitted, tmp_path):
    model, X = fitted
    path = ff.save(model, tmp_path / "stack.skops")
    same = ff.load(path)
    np.testing.assert_array_equal(same.predict_path(X), model.predict_path(X))
    np.testing.assert_array_equal(same.at(tau=0.01).predict(X), model.at(tau=0.01).predict(X))
    np.testing.assert_array_equal(same.points_.bias, model.points_.bias)
    assert [p.name for p in tmp_path.iterdir()] == ["stack.skops"]


def write(model, path):
    """Write a file without the checks of `save`, as somebody else might."""
    skops.io.dump(model, path)
    return path


def test_an_unknown_type_is_refused_by_name(tmp_path):
    path = write(FunctionTransformer(func=pickle.loads), tmp_path / "evil.skops")
    with pytest.raises(InvalidInputError, match=r"_pickle\.loads.*not trusted.*nothing was loaded"):
        ff.load(path)


def test_what_load_would_refuse_is_refused_at_save_with_all_its_types(tmp_path):
    model = make_pipeline(FunctionTransformer(func=np.fft.fft, inverse_func=np.sinc), LogisticRegression())
    with pytest.raises(InvalidInputError, match=r"'numpy.*fft', 'numpy.*sinc': nothing was saved.*trusted=\["):
        ff.save(model, tmp_path / "model.skops")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InvalidInputError, match=r"types 'numpy.*fft', 'numpy.*sinc', which are not trusted"):
        ff.load(write(model, tmp_path / "model.skops"))


def test_a_trusted_type_is_let_in(tmp_path):
    model = FunctionTransformer(func=np.fft.fft)
    with pytest.raises(InvalidInputError, match="types that load trusts") as caught:
        ff.save(model, tmp_path / "known.skops")
    names = ast.literal_eval(str(caught.value).split("trusted=")[1].split(" to save")[0])
    path = ff.save(model, tmp_path / "known.skops", trusted=names)
    assert ff.load(path, trusted=names).func is np.fft.fft


def test_what_cannot_be_found_by_name_is_refused_at_save(tmp_path):
    with pytest.raises(InvalidInputError, match="importable by name"):
        ff.save(FunctionTransformer(func=lambda X: X), tmp_path / "model.skops", trusted=[f"{__name__}.<lambda>"])
    assert not list(tmp_path.iterdir())


def test_a_torch_model_gets_a_clear_word(tmp_path):
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidInputError, match=r"PyTorch model cannot be loaded without running code.*precomputed"):
        ff.save({"net": torch.nn.Linear(2, 1)}, tmp_path / "net.skops")


def learners():
    """Return every learner of the zoos, families of all kinds, and models of other libraries, unfitted."""
    known = [*classifier_zoo(), *regressor_zoo(), ("minipatches", MinipatchTrees(5, random_state=0))]
    known += [("minipatches of numbers", MinipatchTreesRegressor(5, random_state=0)), ("svm", SVC())]
    known += [("sgd", MLPClassifier((3,), solver="sgd", max_iter=3)), ("calibrated", CalibratedClassifierCV(cv=2))]
    known += [("search", GridSearchCV(LogisticRegression(), {"C": [1.0, 2.0]}, cv=StratifiedKFold(2)))]
    known += [("nearest", KNeighborsClassifier(algorithm="kd_tree"))]
    if importlib.util.find_spec("lightgbm"):
        known += [("lightgbm", importlib.import_module("lightgbm").LGBMClassifier(n_estimators=3, verbose=-1))]
    return [pytest.param(model, id=name) for name, model in known]


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 4))
    return X, (X[:, 0] + rng.normal(size=240) > 0.3).astype(int), rng.choice(["f", "m"], 240)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("learner", learners())
def test_every_learner_comes_back_the_same_by_skops_and_by_pickle(learner, rows, tmp_path):
    X, y, _ = rows
    # Ten trees are as good a test as the hundreds of the zoo.
    few = {name: 10 for name in ("n_estimators", "model__n_estimators", "max_iter") if name in learner.get_params()}
    model = learner.set_params(**few).fit(X, X[:, 1] if is_regressor(learner) else y)
    for same in (ff.load(ff.save(model, tmp_path / "model.skops")), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(same.predict(X), model.predict(X))
        if hasattr(model, "predict_matrix"):
            np.testing.assert_array_equal(same.predict_matrix(X), model.predict_matrix(X))


def test_families_come_back_the_same(rows, tmp_path):
    pytest.importorskip("torch")
    X, y, sex = rows
    forest = forest_trees(RandomForestClassifier(3, random_state=0).fit(X, y))
    models = fit_models(classifier_zoo(xgboost=False)[:2], X, y)
    grids = [
        Reductions().fit_grid(X, y, sensitive_features=sex, values=[0.1, 0.2]),
        FAGTB(n_estimators=3).fit_grid(X, y, sensitive_features=sex, values=[0.1, 0.2]),
        AdversarialDebiasing(epochs=1).fit_grid(X, y, sensitive_features=sex, values=[0.1, 0.2]),
    ]
    grids += [make().fit_grid(X, y, sensitive_features=sex, values=[0.1, 0.2]) for make in (FCSC, FPIR, KernelFair)]
    sink = kitchen_sink(forest, models, *grids, group_models=True, X=X, sensitive_features=sex)
    for same in (ff.load(ff.save(sink, tmp_path / "sink.skops")), pickle.loads(pickle.dumps(sink))):
        assert same.names == sink.names
        np.testing.assert_array_equal(same.predict_matrix(X), sink.predict_matrix(X))


def test_a_selector_of_columns_comes_back_the_same(tmp_path):
    frame = pd.DataFrame({"age": [20.0, 30.0, 40.0], "job": ["a", "b", "a"]})
    model = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)),
        (OneHotEncoder(), make_column_selector(dtype_exclude=np.number)),
    ).fit(frame)
    same = ff.load(ff.save(model, tmp_path / "columns.skops"))
    np.testing.assert_array_equal(same.transform(frame), model.transform(frame))


@pytest.mark.parametrize("content", [b"", b"not a zip file", pickle.dumps([1, 2])])
def test_a_file_of_another_kind_is_refused(content, tmp_path):
    path = tmp_path / "other.skops"
    path.write_bytes(content)
    with pytest.raises(InvalidInputError, match="path must be a file written by save"):
        ff.load(path)


def test_a_zip_without_a_model_is_refused(tmp_path):
    path = tmp_path / "empty.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "nothing here")
    with pytest.raises(InvalidInputError, match="path must be a file written by save"):
        ff.load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="path must be a file written by save"):
        ff.load(tmp_path / "absent.skops")
    with pytest.raises(InvalidInputError, match="path must be a file in an existing folder"):
        ff.save([1], tmp_path)
    with pytest.raises(InvalidInputError, match="path must be a file in an existing folder"):
        ff.save([1], tmp_path / "no" / "such.skops")


def test_a_failed_save_leaves_the_old_file(fitted, tmp_path):
    model = fitted[0]
    path = ff.save(model, tmp_path / "stack.skops")
    before = path.read_bytes()
    with pytest.raises(InvalidInputError, match=r"model must be made of types that a file can hold.*generator"):
        ff.save((i for i in range(3)), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["stack.skops"]


def test_a_mixture_comes_back_the_same_and_is_private(tmp_path):
    mixture = ff.RandomizedMixture(
        [("no", None), ("yes", None)], [0.3, 0.7], secret=b"s" * 32, constants={"no": 0, "yes": 1}
    )
    path = ff.save(mixture, tmp_path / "mixture.skops")
    assert path.stat().st_mode & 0o077 == 0
    ids = [f"person {i}" for i in range(200)]
    np.testing.assert_array_equal(ff.load(path).draw(ids), mixture.draw(ids))


@pytest.mark.parametrize(
    "schema",
    [
        "[" * 100_000 + "]" * 100_000,
        '{"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "content": {}, "protocol": 2}',
    ],
)
def test_a_crafted_schema_is_refused(schema, tmp_path):
    path = tmp_path / "crafted.skops"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", schema)
    with pytest.raises(InvalidInputError, match="path must be a file written by save"):
        ff.load(path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.InconsistentVersionWarning")
class TestFilesOfOtherVersions:
    """Files name types by the package alone; those of 0.1.0, which name its modules, are still read."""

    def rows(self):
        rng = np.random.default_rng(0)
        sex = rng.integers(0, 2, 200)
        X = rng.normal(0, 1, (200, 3)) + sex[:, None] * [0.5, 0, 0]
        return X, (X[:, 0] + X[:, 1] + rng.normal(0, 1, 200) > 0).astype(int), sex

    @WRITTEN_WITH_A_NEWER_SCIKIT_LEARN
    def test_a_stack_of_the_first_version(self):
        X, y, sex = self.rows()
        model = ff.load(SAVED / "stack-0.1.0.skops")
        assert model.predict(X[:10]).tolist() == [0, 1, 0, 0, 0, 1, 1, 1, 0, 0]
        np.testing.assert_allclose(model.weights_, [0.0817976, 0.06148445], atol=1e-8)
        assert "FairStacksClassifier" in repr(model)
        assert len(model.points(X, y, sensitive_features=sex)) == 6

    @WRITTEN_WITH_A_NEWER_SCIKIT_LEARN
    def test_a_mixture_of_the_first_version(self):
        X, _, _ = self.rows()
        mixture = ff.load(SAVED / "mixture-0.1.0.skops")
        assert mixture.predict(X[:10], ids=range(10)).tolist() == [1, 1, 1, 0, 0, 1, 1, 1, 1, 0]

    def test_files_name_no_module_of_ours(self, tmp_path):
        X, y, sex = self.rows()
        model = ff.FairStacksClassifier(alpha=1.0).fit(X, y, sensitive_features=sex)
        path = ff.save(model, tmp_path / "stack.skops")
        with zipfile.ZipFile(path) as file:
            schema = file.read("schema.json").decode()
            assert json.loads(file.read("fairfrontier.json")) == {"version": ff.__version__}
        assert "fairfrontier." not in schema
        np.testing.assert_array_equal(ff.load(path).path_.weights, model.path_.weights)

    def test_a_file_that_would_unpack_to_far_more_than_its_size_is_refused(self, tmp_path):
        path = tmp_path / "bomb.skops"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
            file.writestr("schema.json", b" " * 200_000_000)
        assert path.stat().st_size < 300_000
        with pytest.raises(InvalidInputError, match="would unpack to 200,000,000 bytes"):
            ff.load(path)


def test_every_public_learner_can_be_in_a_file():
    """Loading trusts types by their names, so that a new learner must be added to the table."""
    public = {name for name in fairfrontier.learners.__all__ if isinstance(getattr(fairfrontier.learners, name), type)}
    assert public - {"ModelFamily"} <= set(_persistence._MODULES)
    for name, module in _persistence._MODULES.items():
        assert hasattr(importlib.import_module(f"fairfrontier.{module}"), name), name
