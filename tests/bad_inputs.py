"""Bad input of the functions that value models, draw curves and measure areas."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import fairfrontier as ff
from fairfrontier.exceptions import FairFrontierError, GroupError, InvalidInputError


@dataclass(frozen=True)
class Bad:
    """A call that must fail with `error` and a message that matches `says`, which names the parameter."""

    name: str
    call: Callable[[], Any]
    says: str
    error: type[FairFrontierError] = InvalidInputError

    def message(self, tmp_path, capsys):
        """Return what the error says."""
        with pytest.raises(FairFrontierError) as caught:
            self.call()
        assert type(caught.value) is self.error
        return str(caught.value)


Y = np.array([0, 1, 0, 1, 1, 0])
GROUP = np.array(["a", "a", "a", "b", "b", "b"])
SCORES = np.array([0.1, 0.9, 0.4, 0.6, 0.7, 0.3])
NAN, INF = float("nan"), float("inf")


def points(y=Y, scores=SCORES, group=GROUP, **options):
    return lambda: ff.tradeoff_points(y, scores, sensitive_features=group, **options)


def changed(values, row, value, dtype=None):
    result = np.array(values, dtype=dtype)
    result[row] = value
    return result


SCORE_CASES = [
    Bad(
        "NaN", points(scores=changed(SCORES, 2, NAN)), r"y_preds must be finite; got nan in 'model_0' at row 2 \(1 such"
    ),
    Bad("infinite", points(scores={"m": changed(SCORES, 3, INF)}), r"y_preds must be finite; got inf in 'm' at row 3"),
    Bad("minus infinite", points(scores=changed(SCORES, 0, -INF)), r"y_preds must be finite; got -inf .* at row 0"),
    Bad("both infinities", points(scores=[INF, -INF, 0, 0, 0, 0]), r"y_preds must be finite; got inf .*2 such values"),
    Bad(
        "NaN in half precision", points(scores=changed(SCORES, 2, NAN, np.float16)), r"y_preds must be finite; got nan"
    ),
    Bad(
        "None", points(scores=[0.1, None, 0.3, 0.4, 0.5, 0.6]), r"y_preds must be finite; got nan in 'model_0' at row 1"
    ),
    Bad(
        "missing in pandas",
        points(scores=pd.DataFrame({"m": pd.array([0.1, None, 0.3, 0.4, 0.5, 0.6], dtype="Float64")})),
        r"y_preds must be finite; got nan in 'm' at row 1",
    ),
    Bad(
        "missing in polars",
        points(scores=pl.DataFrame({"m": [0.1, None, 0.3, 0.4, 0.5, 0.6]})),
        r"y_preds must be finite; got nan in 'm' at row 1",
    ),
    Bad(
        "NaN with a function as fairness",
        points(scores=changed(SCORES, 2, NAN), fairness=lambda y, p, *, sensitive_features: 0.0),
        r"y_preds must be finite",
    ),
    Bad("NaN and no threshold", points(scores=changed(SCORES, 2, NAN), threshold=None), r"y_preds must be finite"),
    Bad("masked", points(scores=np.ma.array(SCORES, mask=SCORES > 0.8)), r"y_preds must have no masked value"),
    Bad("text", points(scores={"m": list("yynnyn")}), r"y_preds\['m'\] must be numbers; got 'y': convert"),
    Bad("text of numbers", points(scores=SCORES.astype(str)), r"y_preds must be numbers; got .*'0.1'"),
    Bad("complex", points(scores=SCORES.astype(complex)), r"y_preds must be numbers"),
    Bad("dates", points(scores=np.array(["2020-01-01"] * 6, dtype="M8[D]")), r"y_preds must be numbers"),
    Bad(
        "three axes",
        points(scores=np.zeros((6, 2, 2))),
        r"y_preds must be a dict, .* got an array of shape \(6, 2, 2\)",
    ),
    Bad("nothing", points(scores=None), r"y_preds must be a dict, a dataframe or a 2-D array; got None"),
    Bad("a generator", points(scores=(row for row in SCORES)), r"y_preds must be a dict, .* got one generator"),
    Bad("a number", points(scores=0.5), r"y_preds must be a dict, .*; got 0.5: give one column per model"),
    Bad(
        "a sparse matrix with NaN",
        points(scores=sparse.csr_array(changed(SCORES, 1, NAN)[:, None])),
        r"y_preds must be finite",
    ),
    Bad(
        "too large to add up",
        points(y=SCORES, scores=changed(SCORES, slice(None), 1.7e308), accuracy="exp_mse"),
        r"y_preds must be small enough to be added up; got values up to 1.7e\+308",
    ),
    Bad("ragged", points(scores=[[1, 2], [3]]), r"y_preds must be .* rows of different lengths"),
    Bad("no model in a dict", points(scores={}), r"y_preds must hold at least one model; got none"),
    Bad("no model in an array", points(scores=np.empty((6, 0))), r"y_preds must hold at least one model; got none"),
    Bad("no model in a list", points(scores=[]), r"y_preds must hold at least one model; got none"),
    Bad("no model in a frame", points(scores=pd.DataFrame(index=range(6))), r"y_preds must hold at least one model"),
    Bad("fewer rows", points(scores=SCORES[:5]), r"y_preds must have as many rows as y_true, 6; got 5"),
    Bad(
        "columns of different lengths",
        points(scores={"a": SCORES, "b": SCORES[:4]}),
        r"y_preds must have equally long columns; got 6 rows in 'a' and 4 in 'b'",
    ),
    Bad("a name twice", points(scores={1: SCORES, "1": SCORES}), r"y_preds must have distinct names; got '1' twice"),
    Bad(
        "a name twice in a frame",
        points(scores=pd.DataFrame(np.ones((6, 2)), columns=["m", "m"])),
        r"y_preds must have distinct names; got 'm' twice",
    ),
    Bad("a model named constant", points(scores={"constant": SCORES}), r"y_preds must not name a model 'constant'"),
    Bad(
        "out of [0, 1] for brier",
        points(scores={"good": SCORES, "odd": SCORES * 3}, accuracy="brier"),
        r"y_preds must be in \[0, 1\] with accuracy='brier'.* got values from 0.3 to 2.7 in 'odd'",
    ),
    Bad(
        "out of [0, 1] without a threshold",
        points(scores=SCORES - 0.5, threshold=None),
        r"y_preds must be in \[0, 1\] with threshold=None.* got values from -0.4",
    ),
]

LABEL_CASES = [
    Bad("one class", points(y=np.ones(6)), r"y_true must have two classes; got 1 \(1.0\): both classes must occur"),
    Bad(
        "three classes",
        points(y=[0, 1, 2, 0, 1, 2]),
        r"y_true must have two classes; got 3 \(0, 1, 2\): for regression",
    ),
    Bad("many classes", points(y=np.arange(6)), r"y_true must have two classes; got 6 \(0, 1, 2, 3, 4, …\)"),
    Bad("NaN", points(y=[0, 1, NAN, 1, 0, 1]), r"y_true must have no missing value; got NaN at row 2"),
    Bad("None", points(y=["n", "y", None, "y", "n", "y"]), r"y_true must have no missing value; got None"),
    Bad("NaN among text", points(y=["n", "y", NAN, "y", "n", "y"]), r"y_true must have no missing value; got NaN"),
    Bad(
        "missing in pandas",
        points(y=pd.Series([True, False, None, True, False, True], dtype="boolean")),
        r"y_true must have no missing value",
    ),
    Bad("no row", points(y=[], scores=np.empty((0, 1)), group=[]), r"y_true must have at least one row; got none"),
    Bad("nothing", points(y=None), r"y_true must be given: one label per row; got None"),
    Bad("two axes", points(y=np.zeros((6, 2))), r"y_true must be 1-D; got an array of shape \(6, 2\)"),
    Bad("two columns", points(y=pd.DataFrame({"a": Y, "b": Y})), r"y_true must be one column; got a dataframe with 2"),
    Bad("not hashable", points(y=[{}, {}, {}, {}, {}, {}]), r"y_true must hold hashable values"),
    Bad(
        "NaN in regression", points(y=[1.0, 2.0, NAN, 1.0, 2.0, 3.0], accuracy="r2"), r"y_true must be finite; got nan"
    ),
    Bad("text in regression", points(y=list("abcdef"), accuracy="r2"), r"y_true must be numbers; got .*'a'"),
    Bad(
        "too large to square",
        points(y=SCORES * 1e200, accuracy="r2"),
        r"y_true must have deviations that can be squared",
    ),
    Bad(
        "too small to square",
        points(y=SCORES * 1e-200, accuracy="r2"),
        r"y_true must have deviations that can be squared",
    ),
    Bad("an iterator", points(y=iter(Y)), r"y_true must be 1-D; got one "),
    Bad("a constant target", points(y=[0.1] * 6, accuracy="r2"), r"accuracy='r2' is undefined: y_true has one value"),
]

GROUP_CASES = [
    Bad("nothing", points(group=None), r"sensitive_features must be given: one value per row"),
    Bad("no attribute", points(group={}), r"sensitive_features must hold at least one attribute; got none"),
    Bad("an empty table", points(group=np.empty((6, 0))), r"sensitive_features must hold at least one attribute"),
    Bad(
        "one group only",
        points(group={"sex": ["a"] * 6}),
        r"sensitive_features\['sex'\] must have at least two groups; got only 'a'",
        GroupError,
    ),
    Bad(
        "NaN",
        points(group={"sex": [1.0, 0.0, NAN, 1.0, 0.0, 1.0]}),
        r"sensitive_features\['sex'\] must have no missing value; got NaN at row 2: drop these rows, or make 'unknown'",
        GroupError,
    ),
    Bad(
        "None",
        points(group=["a", "b", None, "a", "b", "a"]),
        r"sensitive_features\['sensitive_feature'\] must have no missing value; got None at row 2",
        GroupError,
    ),
    Bad(
        "NaN in a list of text",
        points(group=["a", "b", NAN, "a", "b", "a"]),
        r"sensitive_features.* must have no missing value; got NaN at row 2",
        GroupError,
    ),
    Bad(
        "NaN in a table of text",
        points(group=[["a", 1], ["b", 2], [NAN, 1], ["a", 2], ["b", 1], ["a", 1]]),
        r"sensitive_features\['sensitive_feature_0'\] must have no missing value; got NaN at row 2",
        GroupError,
    ),
    Bad(
        "NaT",
        points(group=np.array(["2020", "2021", "NaT", "2020", "2020", "2020"], dtype="M8[Y]")),
        r"sensitive_features.* must have no missing value",
        GroupError,
    ),
    Bad(
        "missing in pandas",
        points(group=pd.Series(["a", None, "b", "a", "b", "a"], dtype="string", name="sex")),
        r"sensitive_features\['sex'\] must have no missing value.* at row 1",
        GroupError,
    ),
    Bad(
        "missing category",
        points(group=pd.Series(pd.Categorical(["a", None, "b", "a", "b", "a"]), name="sex")),
        r"sensitive_features\['sex'\] must have no missing value.* at row 1",
        GroupError,
    ),
    Bad(
        "missing number in pandas",
        points(group=pd.Series([1, None, 2, 1, 2, 1], dtype="Int64", name="sex")),
        r"sensitive_features\['sex'\] must have no missing value.* at row 1",
        GroupError,
    ),
    Bad(
        "missing in polars",
        points(group=pl.Series("sex", ["a", None, "b", "a", "b", "a"])),
        r"sensitive_features\['sex'\] must have no missing value; got None at row 1",
        GroupError,
    ),
    Bad(
        "an empty group among the positives",
        points(group=["a", "a", "c", "b", "b", "b"], fairness="equal_opportunity"),
        r"sensitive_features must leave no group empty; the row set 'sensitive_feature=c \| y=1'",
        GroupError,
    ),
    Bad(
        "an empty group among the negatives",
        points(group=["a", "c", "a", "b", "b", "b"], fairness="predictive_equality"),
        r"sensitive_features must leave no group empty; the row set 'sensitive_feature=c \| y=0'",
        GroupError,
    ),
    Bad(
        "a group without weight",
        points(sample_weight=[1, 1, 1, 0, 0, 0]),
        r"sensitive_features must leave no group empty; the row set 'sensitive_feature=b' has total weight 0",
        GroupError,
    ),
    Bad(
        "fewer rows",
        points(group={"sex": GROUP[:4]}),
        r"sensitive_features\['sex'\] must have as many rows as y_true, 6; got 4",
    ),
    Bad(
        "not hashable", points(group=[{1}, {2}, {1}, {2}, {1}, {2}]), r"sensitive_features.* must hold hashable values"
    ),
    Bad(
        "an attribute twice",
        points(group={1: GROUP, "1": GROUP}),
        r"sensitive_features must have distinct names; got '1' twice",
    ),
]

OPTION_CASES = [
    Bad(
        "unknown fairness",
        points(fairness="demografic_parity"),
        r"fairness must be one of 'demographic_parity', .*; got 'demografic_parity'; did you mean 'demographic_p",
    ),
    Bad(
        "unknown accuracy",
        points(accuracy="balanced_acuracy"),
        r"accuracy must be one of .*; got 'balanced_acuracy'; did you mean 'balanced_accuracy'\?",
    ),
    Bad("accuracy of nothing", points(accuracy=None), r"accuracy must be one of .*; got None"),
    Bad(
        "unknown mode",
        points(sensitive_mode="intersection"),
        r"sensitive_mode must be one of .*; got 'intersection'; did you mean 'intersectional'\?",
    ),
    Bad(
        "unknown mode with a function",
        points(sensitive_mode="both", fairness=lambda y, p, *, sensitive_features: 0.0),
        r"sensitive_mode must be one of",
    ),
    Bad("threshold above 1", points(threshold=1.5), r"threshold must be in \[0, 1\]; got 1.5"),
    Bad("threshold below 0", points(threshold=-0.1), r"threshold must be in \[0, 1\]; got -0.1"),
    Bad("threshold NaN", points(threshold=NAN), r"threshold must be in \[0, 1\]; got nan"),
    Bad("threshold as text", points(threshold="0.5"), r"threshold must be a number; got '0.5'"),
    Bad("threshold as a list", points(threshold=[0.5, 0.6]), r"threshold must be a number; got \[0.5, 0.6\]"),
    Bad("no measure", points(fairness=None), r"fairness must be a measure's name, a callable, or a list of pairs"),
    Bad("no masks", points(fairness=[]), r"fairness must be a measure's name, .*; got \[\]"),
    Bad(
        "a mask alone", points(fairness=[GROUP == "a"]), r"fairness must be .* got ndarray as fairness\[0\], not a pair"
    ),
    Bad("three masks", points(fairness=[(Y == 1,) * 3]), r"fairness must be .* got tuple as fairness\[0\], not a pair"),
    Bad(
        "masks of numbers",
        points(fairness=[(Y, 1 - Y)]),
        r"fairness\[0\]\[0\] must be booleans, one per row; got dtype",
    ),
    Bad(
        "short masks",
        points(fairness=[(Y == 1, Y[:3] == 0)], group=None),
        r"fairness\[0\]\[1\] must have one boolean per row, 6; got 3",
    ),
    Bad(
        "short masks in regression",
        points(fairness=[(Y[:3] == 1, Y[:3] == 0)], group=None, accuracy="r2"),
        r"fairness\[0\]\[0\] must have one boolean per row, 6; got 3",
    ),
    Bad(
        "an empty mask",
        points(fairness=[(Y == 1, Y == 7)]),
        r"fairness\[0\]\[1\] must select at least one row",
        GroupError,
    ),
    Bad(
        "a label's measure in regression",
        points(y=SCORES, accuracy="r2", fairness="equalized_odds"),
        r"fairness='equalized_odds' conditions on a two-class label.* use 'demographic_parity'",
    ),
    Bad(
        "a function of fairness that is NaN",
        points(fairness=lambda y, p, *, sensitive_features: NAN),
        r"fairness must return a finite bias, 0 for a fair model; got nan for 'model_0'",
    ),
    Bad("an accuracy above 1", points(accuracy=lambda y, p: 7.0), r"accuracy must return values in \[0, 1\].* got 7"),
    Bad(
        "weights for a function that takes none",
        points(accuracy=lambda y, p: 1.0, sample_weight=np.ones(6)),
        r"sample_weight must be None with the function <lambda>",
    ),
    Bad(
        "weights below zero",
        points(sample_weight=[1, 1, -1, 1, 1, 1]),
        r"sample_weight must be non-negative; got -1 at row 2",
    ),
    Bad(
        "weights all zero", points(sample_weight=np.zeros(6)), r"sample_weight must have a positive sum; got only zeros"
    ),
    Bad("NaN weights", points(sample_weight=[1, 1, NAN, 1, 1, 1]), r"sample_weight must be finite; got nan at row 2"),
    Bad(
        "weights that overflow",
        points(sample_weight=np.full(6, 1.7e308)),
        r"sample_weight must sum to 1e-100 at least and 1e\+100 at most; got inf: divide",
    ),
    Bad(
        "weights that underflow", points(sample_weight=np.full(6, 5e-324)), r"sample_weight must sum to 1e-100 at least"
    ),
    Bad("fewer weights", points(sample_weight=[1, 1]), r"sample_weight must have as many rows as y_true, 6; got 2"),
    Bad("weights of text", points(sample_weight=list("abcdef")), r"sample_weight must be numbers; got .*'a'"),
    Bad(
        "a class without weight",
        points(accuracy="balanced_accuracy", sample_weight=Y),
        r"accuracy='balanced_accuracy' is undefined: sample_weight, or a resample, leaves one of the two",
    ),
]

GOOD = ff.tradeoff_points(Y, {"first": SCORES, "second": 1 - SCORES}, sensitive_features=GROUP)
CURVE = GOOD.frontier()

FRONTIER_CASES = [
    Bad("no model", lambda: ff.taf_curve([], []), r"fairness must hold at least one model; got none"),
    Bad(
        "different lengths",
        lambda: ff.taf_curve([0.5, 0.6], [0.5]),
        r"fairness and accuracy must be equally long; got 2",
    ),
    Bad(
        "fairness above 1",
        lambda: ff.taf_curve([1.2], [0.5]),
        r"fairness must be in \[0, 1\]; got values from 1.2 to 1.2",
    ),
    Bad("accuracy below 0", lambda: ff.taf_curve([0.5], [-0.5]), r"accuracy must be in \[0, 1\]; got values from -0.5"),
    Bad("NaN fairness", lambda: ff.taf_curve([0.5, NAN], [0.5, 0.6]), r"fairness must be finite; got nan at row 1"),
    Bad("NaN accuracy", lambda: ff.taf_curve([0.5, 0.6], [NAN, 0.6]), r"accuracy must be finite; got nan at row 0"),
    Bad("text", lambda: ff.taf_curve(["fair"], [0.5]), r"fairness must be numbers; got .*'fair'"),
    Bad(
        "two axes", lambda: ff.taf_curve(np.ones((2, 2)), [1]), r"fairness must be 1-D; got an array of shape \(2, 2\)"
    ),
    Bad(
        "signed without biases",
        lambda: ff.taf_curve([1], [1], interpolate="signed"),
        r"interpolate must be False or True",
    ),
    Bad("curve 2", lambda: ff.taf_curve([1], [1], interpolate=2), r"interpolate must be False or True; got 2"),
    Bad("curve 1", lambda: ff.taf_curve([1], [1], interpolate=1), r"interpolate must be False or True; got 1"),
    Bad("frontier 2", lambda: GOOD.frontier(2), r"interpolate must be False, True or 'signed'; got 2"),
    Bad("display 2", lambda: ff.TAFDisplay.from_points(GOOD, interpolate=2), r"interpolate must be False, True or"),
    Bad("unknown curve", lambda: GOOD.frontier("sign"), r"interpolate must be False, True or 'signed'; got 'sign'"),
    Bad("curve of nothing", lambda: GOOD.frontier(None), r"interpolate must be False, True or 'signed'; got None"),
    Bad("value at NaN", lambda: CURVE([0.5, NAN]), r"fairness must have no NaN"),
    Bad("value at text", lambda: CURVE("high"), r"fairness must be numbers; got 'high'"),
    Bad(
        "unknown model",
        lambda: GOOD.select(["frist"]),
        r"models must be one of .*; got 'frist'; did you mean 'first'\?",
    ),
    Bad("no model chosen", lambda: GOOD.select([]), r"models must select at least one model; got none"),
    Bad("index too large", lambda: GOOD.select([7]), r"models must be .*; got \[7\]"),
    Bad("display of nothing", lambda: ff.TAFDisplay.from_curves({}), r"curves must be a non-empty dict"),
    Bad("display of a list", lambda: ff.TAFDisplay.from_curves([CURVE]), r"curves must be a non-empty dict"),
    Bad(
        "display of no curve",
        lambda: ff.TAFDisplay.from_curves({"a": [0.5, 0.6]}),
        r"curves\['a'\] must be a TAFCurve; got list",
    ),
    Bad(
        "display of no points",
        lambda: ff.TAFDisplay.from_points({}),
        r"points must be TradeoffPoints or a non-empty dict",
    ),
    Bad(
        "unknown response",
        lambda: ff.TAFDisplay.from_estimators([], None, Y, sensitive_features=GROUP, response_method="predict_probas"),
        r"response_method must be one of .*; got 'predict_probas'; did you mean 'predict_proba'\?",
    ),
    Bad(
        "families of unknown models",
        lambda: ff.TAFDisplay.from_predictions(Y, SCORES, sensitive_features=GROUP, families={"f": ["nobody"]}),
        r"families\['f'\] must be one of 'constant', 'model_0'; got 'nobody'",
    ),
    Bad(
        "scores of an unknown family",
        lambda: ff.TAFDisplay.from_curves({"forest": CURVE}, scores={"forrest": 0.5}),
        r"scores must be one of 'forest'; got 'forrest'; did you mean 'forest'\?",
    ),
    Bad(
        "left end",
        lambda: ff.TAFDisplay.from_points(GOOD).plot(min_fairness=1.0),
        r"min_fairness must be below 1; got 1.0",
    ),
]

AREA_CASES = [
    Bad("no curve", lambda: ff.fauc(GOOD), r"curve must be a TAFCurve; got TradeoffPoints: make one"),
    Bad(
        "weight of text",
        lambda: ff.fauc(CURVE, "step:0.8"),
        r"weight must be None, a Weight or a function .* got 'step",
    ),
    Bad("weight of a number", lambda: ff.fauc(CURVE, 0.8), r"weight must be None, a Weight or a function .* got 0.8"),
    Bad(
        "a class of weights",
        lambda: ff.fauc(CURVE, ff.StepWeight),
        r"weight must be None, a Weight or a function",
    ),
    Bad(
        "a negative function",
        lambda: ff.fauc(CURVE, lambda x: x - 0.5),
        r"weight must be non-negative and finite .* got -",
    ),
    Bad(
        "a function that is NaN",
        lambda: ff.fauc(CURVE, lambda x: NAN),
        r"weight must be non-negative and finite .* got nan",
    ),
    Bad(
        "a function that is zero", lambda: ff.fauc(CURVE, lambda x: 0), r"weight must have a positive integral .* got 0"
    ),
    Bad(
        "a function of text",
        lambda: ff.fauc(CURVE, lambda x: "a"),
        r"weight must be non-negative and finite .* got 'a' at",
    ),
    Bad(
        "step at 1",
        lambda: ff.StepWeight(1.0),
        r"minimum must be below 1; got 1.0: at 1 the weight integrates to zero",
    ),
    Bad("step below 0", lambda: ff.StepWeight(-0.1), r"minimum must be in \[0, 1\]; got -0.1"),
    Bad("step NaN", lambda: ff.StepWeight(NAN), r"minimum must be in \[0, 1\]; got nan"),
    Bad("step of text", lambda: ff.StepWeight("0.8"), r"minimum must be a number; got '0.8'"),
    Bad("beta at 1", lambda: ff.PowerWeight(1, 1.0), r"beta must be below 1; got 1.0"),
    Bad(
        "alpha at -1",
        lambda: ff.PowerWeight(-1),
        r"alpha must be in \(-1, inf\); got -1: the weight must be integrable",
    ),
    Bad("alpha infinite", lambda: ff.PowerWeight(INF), r"alpha must be in \(-1, inf\); got inf"),
    Bad("point above 1", lambda: ff.PointWeight(1.5), r"fairness must be in \[0, 1\]; got 1.5"),
    Bad("a table below zero", lambda: ff.TabulatedWeight([0, 1], [1, -2]), r"values must be non-negative; got -2"),
    Bad("a table of zeros", lambda: ff.TabulatedWeight([0, 1], [0, 0]), r"values must not be all zero"),
    Bad("a table with NaN", lambda: ff.TabulatedWeight([0, 1], [1, NAN]), r"values must be finite; got nan"),
    Bad("a table of text", lambda: ff.TabulatedWeight([0, 1], ["a", "b"]), r"values must be numbers; got .*'a'"),
    Bad(
        "knots that descend", lambda: ff.TabulatedWeight([1, 0], [1, 2]), r"knots must be at least two ascending levels"
    ),
    Bad(
        "knots out of range",
        lambda: ff.TabulatedWeight([0, 2], [1, 2]),
        r"knots must be at least two ascending levels in",
    ),
    Bad("one knot", lambda: ff.TabulatedWeight([0.5], [1]), r"knots must be at least two ascending levels"),
    Bad(
        "values to spare",
        lambda: ff.TabulatedWeight([0, 1], [1, 2, 3]),
        r"values must have as many entries as knots, 2",
    ),
    Bad(
        "composite with too few weights",
        lambda: ff.composite_fauc(np.ones((2, 2)), [1, 1], weights=[None]),
        r"weights must be one weight or one for each of the 2 attributes; got 1",
    ),
    Bad("composite of no attribute", lambda: ff.composite_fauc({}, [1]), r"fairness must have at least one attribute"),
    Bad(
        "composite of no column", lambda: ff.composite_fauc(np.ones((2, 0)), [1, 1]), r"fairness must have at least one"
    ),
    Bad(
        "composite of three axes",
        lambda: ff.composite_fauc(np.ones((1, 1, 1)), [1]),
        r"fairness must be 2-D, one column",
    ),
    Bad(
        "composite out of range",
        lambda: ff.composite_fauc({"a": [2.0]}, [1]),
        r"fairness\['a'\] must be in \[0, 1\]; got",
    ),
    Bad(
        "composite of two lengths",
        lambda: ff.composite_fauc([[1.0]], [1, 1]),
        r"fairness.* must be equally long; got 1",
    ),
    Bad(
        "composite of a zero weight",
        lambda: ff.composite_fauc([[1.0]], [1], weights=lambda x: 0.0),
        r"weight must have a positive integral",
    ),
]
