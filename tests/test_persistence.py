"""Saving and loading: what comes back is the same, and nothing of a file is ever run."""

import json
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError

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


def test_an_unknown_type_is_refused_by_name(tmp_path):
    path = ff.save(FunctionTransformer(func=pickle.loads), tmp_path / "evil.skops")
    with pytest.raises(InvalidInputError, match=r"_pickle\.loads.*not trusted.*nothing was loaded"):
        ff.load(path)


def test_a_trusted_type_is_let_in(tmp_path):
    path = ff.save(FunctionTransformer(func=np.fft.fft), tmp_path / "known.skops")
    with pytest.raises(InvalidInputError, match="not trusted") as caught:
        ff.load(path)
    name = str(caught.value).split("type '")[1].split("'")[0]
    assert ff.load(path, trusted=[name]).func is np.fft.fft


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
    with pytest.raises(Exception, match="generator"):
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
