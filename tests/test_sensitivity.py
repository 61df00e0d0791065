"""Rankings over a grid of weights, as a table and as a picture."""

import matplotlib as mpl
import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.quantify._sensitivity import SensitivityDisplay, fauc_sensitivity

mpl.use("Agg")

CURVES = {
    "sharp": ff.taf_curve([0.6, 1.0], [0.9, 0.5]),
    "fair": ff.taf_curve([1.0], [0.7]),
    "poor": ff.taf_curve([1.0], [0.4]),
}


def test_scores_and_ranks_are_those_of_each_weight():
    result = fauc_sensitivity(CURVES)
    for i, alpha in enumerate(result.alphas):
        for j, beta in enumerate(result.betas):
            scores = [ff.fauc(curve, ff.PowerWeight(alpha, beta)) for curve in CURVES.values()]
            np.testing.assert_allclose(result.scores[i, j], scores)
            ahead = [sum(other > score + 1e-12 for other in scores) for score in scores]
            assert result.ranks[i, j].tolist() == [1 + n for n in ahead]
    assert np.all(result.ranks[:, :, 2] == 3)


def test_the_ranking_turns_where_the_curves_cross():
    result = fauc_sensitivity(CURVES, alphas=[0.0], betas=[0.0, 0.5, 0.9])
    # Above beta: sharp has 0.9 on (beta, 0.6] and 0.5 beyond, fair 0.7 throughout.
    assert [result.families[w] for w in result.winners[0]] == ["sharp", "fair", "fair"]
    np.testing.assert_allclose(result.margin[0], [0.04, 0.12, 0.2], atol=1e-12)
    assert not result.stable
    assert result.share_first == {"sharp": pytest.approx(1 / 3), "fair": pytest.approx(2 / 3), "poor": 0.0}


def test_a_dominant_family_is_stable_and_ties_share_a_rank():
    result = fauc_sensitivity({"a": CURVES["fair"], "b": CURVES["poor"], "c": CURVES["fair"]})
    assert result.stable
    assert result.ranks[0, 0].tolist() == [1, 3, 1]


def test_rows_make_a_table():
    result = fauc_sensitivity(CURVES, alphas=[0, 1], betas=[0.0])
    table = result.rows()
    assert len(table) == 6
    assert table[0] == {
        "alpha": 0.0,
        "beta": 0.0,
        "family": "sharp",
        "fauc": pytest.approx(0.74),
        "rank": 1,
    }


def test_picture_has_a_tile_for_each_weight():
    display = SensitivityDisplay.from_curves(CURVES, alphas=[0, 1], betas=[0.0, 0.5, 0.9]).plot(title="costs $5")
    assert len(display.ax_.texts) == 6
    assert display.ax_.images[0].get_array().shape == (2, 3)
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert [line.partition(" first")[0] for line in legend] == list(CURVES)
    display.figure_.canvas.draw()
    mpl.pyplot.close(display.figure_)


def test_errors_say_what_to_do():
    with pytest.raises(InvalidInputError, match="non-empty dict"):
        fauc_sensitivity({})
    with pytest.raises(InvalidInputError, match="betas must be ascending"):
        fauc_sensitivity(CURVES, betas=[0.5, 0.1])
    with pytest.raises(InvalidInputError, match="beta must be"):
        fauc_sensitivity(CURVES, betas=[1.0])
