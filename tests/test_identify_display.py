"""TAFDisplay: what is drawn, named and said in the legend."""

from functools import partial

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression

import fairfrontier as ff
from fairfrontier.identify._display import Name, _offsets, emptiest_corner, write_names

mpl.use("Agg")
from matplotlib import pyplot as plt  # the backend must be chosen first

RNG = np.random.default_rng(0)
N = 400
SEX = RNG.integers(0, 2, N)
X = RNG.standard_normal((N, 2)) + 0.5 * SEX[:, None]
Y = (X[:, 0] + RNG.standard_normal(N) > 0.3).astype(int)
SCORES = {
    f"{family}/{family} {j}": 1 / (1 + np.exp(-(X[:, 0] - 0.2 * j * SEX + noise * RNG.standard_normal(N))))
    for family, noise in (("forest", 0.3), ("linear", 0.9))
    for j in range(6)
}


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def display():
    return ff.TAFDisplay.from_predictions(Y, SCORES, sensitive_features=SEX, scores=ff.fauc)


def curve_lines(display):
    return [line for line in display.ax_.get_lines() if line.get_label()[0] != "_"]


def legend_texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


class TestMaking:
    def test_families_come_from_the_names(self, display):
        assert list(display.curves) == ["forest", "linear"]
        assert display.points["forest"].names == (*(f"forest/forest {j}" for j in range(6)), "constant")

    def test_families_may_be_given(self):
        families = {"a": ["forest/forest 0", "linear/linear 0"], "b": ["linear/linear 1"]}
        display = ff.TAFDisplay.from_predictions(Y, SCORES, sensitive_features=SEX, families=families)
        assert display.points["b"].names == ("linear/linear 1", "constant")
        assert display.points["a"].names == (*families["a"], "constant")

    def test_names_without_a_family_are_together(self):
        display = ff.TAFDisplay.from_predictions(Y, {"a": Y, "b": 1 - Y}, sensitive_features=SEX)
        assert list(display.curves) == ["models"]

    def test_options_reach_the_points(self):
        display = ff.TAFDisplay.from_predictions(
            Y, SCORES, sensitive_features=SEX, fairness="equalized_odds", include_constant=False, interpolate=True
        )
        points = ff.tradeoff_points(Y, SCORES, sensitive_features=SEX, fairness="equalized_odds")
        np.testing.assert_array_equal(display.points["forest"].fairness, points.fairness[:6])
        assert display.curves["forest"].linear

    @pytest.mark.parametrize("interpolate", [False, True, "signed"])
    def test_curves_are_those_of_the_points(self, interpolate):
        display = ff.TAFDisplay.from_predictions(Y, SCORES, sensitive_features=SEX, interpolate=interpolate)
        for family, points in display.points.items():
            expected = points.frontier(interpolate)
            np.testing.assert_array_equal(display.curves[family].accuracy, expected.accuracy)

    def test_from_estimators(self):
        fitted = [("linear/logistic", LogisticRegression().fit(X, Y)), ("dummy", DummyClassifier().fit(X, Y))]
        display = ff.TAFDisplay.from_estimators(fitted, X, Y, sensitive_features=SEX, scores=ff.fauc)
        scores = {name: model.predict_proba(X)[:, 1] for name, model in fitted}
        expected = ff.tradeoff_points(Y, scores, sensitive_features=SEX)
        assert display.points["linear"].accuracy[0] == expected.accuracy[0]
        assert set(display.scores) == {"linear", "models"}
        decided = ff.TAFDisplay.from_estimators(fitted, X, Y, sensitive_features=SEX, response_method="predict")
        np.testing.assert_array_equal(decided.points["linear"].accuracy, display.points["linear"].accuracy)

    def test_from_regressors(self):
        fitted = [("linear", LinearRegression().fit(X, X[:, 0]))]
        display = ff.TAFDisplay.from_estimators(fitted, X, X[:, 0], sensitive_features=SEX, accuracy="r2")
        assert display.points["models"].accuracy[0] == pytest.approx(1.0)
        display.plot()

    def test_a_classifier_against_numbers_is_measured_by_its_probabilities(self):
        fitted = [("logistic", LogisticRegression().fit(X, Y))]
        options = {"sensitive_features": SEX, "accuracy": "exp_mse", "fairness": "mean_difference"}
        for method, scores in (("auto", fitted[0][1].predict_proba(X)[:, 1]), ("predict", fitted[0][1].predict(X))):
            display = ff.TAFDisplay.from_estimators(fitted, X, Y + 0.0, response_method=method, **options)
            expected = ff.tradeoff_points(Y + 0.0, scores, **options)
            np.testing.assert_allclose(display.points["models"].accuracy, expected.accuracy)

    def test_scores_by_family_or_by_function(self, display):
        values = {family: ff.fauc(curve) for family, curve in display.curves.items()}
        assert display.scores == values
        assert ff.TAFDisplay.from_points(display.points, scores=values).scores == values
        step = partial(ff.fauc, weight=ff.StepWeight(0.8))
        assert ff.TAFDisplay.from_curves(display.curves, scores=step).scores["forest"] < values["forest"]


class TestDrawing:
    def test_without_axes_it_makes_a_figure(self, display):
        assert display.plot() is display
        assert display.figure_ is display.ax_.figure

    def test_on_given_axes(self, display):
        figure, axes = plt.subplots(1, 2)
        display.plot(axes[1])
        assert display.ax_ is axes[1]
        assert display.figure_ is figure
        assert not axes[0].get_lines()

    def test_on_a_part_of_a_figure(self, display):
        left, _ = plt.figure(layout="constrained").subfigures(1, 2)
        display.plot(left.subplots(), name_models=True)
        assert display.figure_ is left

    @pytest.mark.parametrize("interpolate", [False, True, "signed"])
    def test_lines_follow_the_curves(self, interpolate):
        display = ff.TAFDisplay.from_predictions(Y, SCORES, sensitive_features=SEX, interpolate=interpolate).plot()
        for line, curve in zip(curve_lines(display), display.curves.values(), strict=True):
            x, y = line.get_data()
            assert x[0] == min(display.ax_.get_xlim()[0], curve.fairness[0])
            for f in np.linspace(x[0], curve.fairness[-1], 50)[1:-1]:
                # Straight lines between corners; at a jump the line is vertical, and the upper end is the value.
                at = np.flatnonzero((x[:-1] <= f) & (f <= x[1:]) & (x[:-1] < x[1:]))[0]
                share = (f - x[at]) / (x[at + 1] - x[at])
                assert (1 - share) * y[at] + share * y[at + 1] == pytest.approx(curve(f), abs=1e-12)

    def test_the_legend_has_families_and_their_fauc(self, display):
        assert legend_texts(display.plot()) == [
            f"{family}  (FAUC {value:.3f})" for family, value in display.scores.items()
        ]

    def test_models_are_dots_and_the_best_are_larger(self, display):
        everyone, best = display.plot().ax_.collections[:2]
        assert len(everyone.get_offsets()) == 7
        assert len(best.get_offsets()) == len(display.curves["forest"].support)
        assert best.get_sizes()[0] > everyone.get_sizes()[0]
        assert not display.plot(show_models=False).ax_.collections

    def test_the_80_percent_line(self, display):
        def marked(**options):
            lines = display.plot(**options).ax_.get_lines()
            return any(list(line.get_xdata()) == [0.8, 0.8] for line in lines)

        assert marked(min_fairness=0.5)
        assert not marked(min_fairness=0.5, rule_of_80=False)
        assert not marked(min_fairness=0.85)

    def test_axes_and_title(self, display):
        ax = display.plot(title="Loans in $", min_fairness=0.6).ax_
        assert ax.get_xlim()[0] == 0.6
        assert 1.0 < ax.get_xlim()[1] < 1.05
        assert "Fairness" in ax.get_xlabel()
        assert ax.get_ylabel() == "Accuracy"
        assert ax.get_title(loc="left") == r"Loans in \$"

    def test_the_left_end_is_a_twentieth_below_the_curves_and_nearly_all_models(self, display):
        left = display.plot().ax_.get_xlim()[0]
        ends = [curve.fairness[0] for curve in display.curves.values()]
        ends += [np.quantile(points.fairness, 0.02) for points in display.points.values()]
        assert left == pytest.approx(round(20 * left) / 20)
        assert 0.02 <= min(ends) - left < 0.07

    def test_everything_on_the_curves_is_inside_the_axes(self, display):
        ax = display.plot().ax_
        for curve in display.curves.values():
            assert ax.get_ylim()[0] < curve.accuracy.min()
            assert curve.accuracy.max() < ax.get_ylim()[1]

    def test_a_curve_that_is_highest_at_the_left_end_is_inside_there(self, display):
        low = 0.5
        ax = display.plot(min_fairness=low).ax_
        assert all(curve(low) < ax.get_ylim()[1] for curve in display.curves.values())
        assert ax.get_xlim()[1] == pytest.approx(1.0 + 0.012 * (1.0 - low))


class TestNames:
    def boxes(self, display):
        display.figure_.draw_without_rendering()
        return {t.get_text(): t.get_window_extent().extents for t in display.ax_.texts if "80" not in t.get_text()}

    def test_pareto_optimal_models_are_named_without_their_family(self, display):
        named = self.boxes(display.plot(name_models=True, min_fairness=0.3))
        optimal = {
            display.points[f].names[i].removeprefix(f"{f}/")
            for f, curve in display.curves.items()
            for i in curve.support
        }
        assert named
        assert set(named) <= optimal

    def test_names_do_not_overlap(self):
        f = np.linspace(0.7, 1.0, 40)
        points = ff.tradeoff_points(Y, SCORES, sensitive_features=SEX)
        crowd = type(points)(
            f, 1 - f**3 / 2, tuple(f"model {j}" for j in range(40)), np.tile(f[:, None], 2), points.sets
        )
        boxes = list(self.boxes(ff.TAFDisplay.from_points(crowd).plot(name_models=True)).values())
        assert len(boxes) > 5
        for i, a in enumerate(boxes):
            for b in boxes[:i]:
                assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]

    def test_a_lone_name_is_next_to_its_point(self):
        _, ax = plt.subplots()
        write_names(ax, [Name("one", 0.5, 0.5, "black")], [])
        assert ax.texts[0].get_position() == pytest.approx((3.5, 3.5))

    def test_a_name_of_28_letters_is_whole_and_a_longer_one_ends_with_dots(self):
        _, ax = plt.subplots()
        letters = "abcdefghijklmnopqrstuvwxyz012"
        write_names(ax, [Name(letters[:28], 0.2, 0.5, "black"), Name(letters, 0.2, 0.1, "black")], [])
        assert [text.get_text() for text in ax.texts] == [letters[:28], letters[:27] + "…"]

    def test_places_around_a_point_are_symmetric(self):
        """A text of 30 × 10 points at an offset mirrors one at another, left and right, above and below."""
        boxes = np.array([(dx, dy, dx + 30.0, dy + 10.0) for dx, dy in _offsets(30.0, 10.0)])
        here = {tuple(box) for box in boxes.round(9)}
        assert len(here) == 24
        for mirrored in (boxes[:, [2, 1, 0, 3]] * [-1, 1, -1, 1], boxes[:, [0, 3, 2, 1]] * [1, -1, 1, -1]):
            assert {tuple(box) for box in mirrored.round(9)} == here

    @pytest.mark.parametrize("corner", ["lower left", "upper right", "lower right", "upper left"])
    def test_the_legend_is_where_the_fewest_points_are(self, corner):
        _, ax = plt.subplots()
        ax.set(xlim=(2.0, 6.0), ylim=(-1.0, 1.0))
        places = {
            "lower left": (2.4, -0.8),
            "upper right": (5.6, 0.8),
            "lower right": (5.6, -0.8),
            "upper left": (2.4, 0.8),
        }
        others = np.array([places[one] for one in places if one != corner])
        assert emptiest_corner(ax, [others], 0.3, 0.3) == corner
        # The last array counts more than all others.
        assert emptiest_corner(ax, [np.array([places[corner]] * 50), others], 0.3, 0.3) == corner
        assert emptiest_corner(ax, [others, np.array([places[corner]])], 0.3, 0.3) != corner
        # A box that is not as large does not cover them.
        assert emptiest_corner(ax, [others], 0.05, 0.05) == "lower left"

    def test_without_the_option_there_are_none(self, display):
        assert not self.boxes(display.plot())

    @pytest.mark.parametrize(
        "name", ["cost $x_1$ and $", "$", "_hidden", "Größe ≥ данные ελ", "x" * 300, "a\nb", "100 % \\alpha", "{}^_"]
    )
    @pytest.mark.parametrize("format_", ["png", "svg"])
    def test_any_name_can_be_drawn(self, name, format_, tmp_path):
        predicted = {f"{name}/{name}": SCORES["forest/forest 0"], name: SCORES["linear/linear 0"]}
        display = ff.TAFDisplay.from_predictions(Y, predicted, sensitive_features=SEX, scores=ff.fauc)
        display.plot(name_models=True, title=name).figure_.savefig(tmp_path / f"taf.{format_}")
        assert (tmp_path / f"taf.{format_}").stat().st_size > 5000
        assert len(legend_texts(display)) == len(display.curves)


class TestAchievable:
    @pytest.fixture
    def best(self):
        p = 1 / (1 + np.exp(-X[:, 0] + 0.3))
        known = p, np.full((N, 2), 0.5)
        return ff.achievable_frontier(None, Y, sensitive_features=SEX, probabilities=known, n_points=11)

    def test_the_curve_and_its_band_are_drawn_behind(self, display, best):
        display.plot(achievable=best)
        line = next(line for line in curve_lines(display) if line.get_label() == "achievable")
        np.testing.assert_array_equal(line.get_ydata(), best.accuracy)
        assert all(line.get_zorder() < other.get_zorder() for other in curve_lines(display) if other is not line)
        (band,) = (found for found in display.ax_.collections if found.get_zorder() == line.get_zorder())
        corners = band.get_paths()[0].vertices
        assert corners[:, 1].min() == pytest.approx(best.low.min())
        assert corners[:, 1].max() == pytest.approx(best.high.max())
        assert display.ax_.get_ylim()[1] > best.accuracy.max()

    def test_several_have_their_names(self, display, best):
        display.plot(achievable={"blind": best, "aware": best})
        assert legend_texts(display)[:2] == ["blind", "aware"]

    def test_another_object_is_refused(self, display):
        with pytest.raises(ff.exceptions.InvalidInputError, match="achievable must be an AchievableFrontier"):
            display.plot(achievable={"best": [0.5, 0.6]})
