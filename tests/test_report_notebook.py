"""The pieces of HTML for notebooks."""

import html.parser

import numpy as np
import pytest

from fairfrontier import taf_curve
from fairfrontier._notebook import curve_html, points_html, stack_html

HOSTILE = "<img src=x onerror=alert(1)>"


class Tags(html.parser.HTMLParser):
    """Collect the elements and the text of a piece of HTML, and check that it is well formed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def models(k: int):
    rng = np.random.default_rng(0)
    return rng.uniform(0.6, 1, k), rng.uniform(0.5, 0.9, k)


@pytest.mark.parametrize("k", [1, 2, 50, 5000])
def test_points_show_a_few_pareto_optimal_models(k):
    fairness, accuracy = models(k)
    curve = taf_curve(fairness, accuracy)
    page = Tags(points_html([f"model {i}" for i in range(k)], fairness, accuracy, curve.support))
    assert f"{k:,} model{'' if k == 1 else 's'}, {len(curve)} Pareto-optimal" in page.text
    assert page.tags.count("tr") == 1 + min(8, len(curve))
    assert f"model {curve.support[0]}" in page.text
    assert f"model {curve.support[-1]}" in page.text


def test_names_are_text():
    fairness, accuracy = models(3)
    page = Tags(points_html([HOSTILE] * 3, fairness, accuracy, np.arange(3)))
    assert "img" not in page.tags
    assert HOSTILE in page.text
    stacked = Tags(stack_html(HOSTILE, [HOSTILE] * 3, fairness, fairness, accuracy, np.arange(3)))
    assert "img" not in stacked.tags


def test_curve_is_drawn_as_steps_or_lines():
    curve = taf_curve([0.7, 0.9, 1.0], [0.9, 0.8, 0.5])
    steps = curve_html(curve.fairness, curve.accuracy, linear=False)
    lines = curve_html(curve.fairness, curve.accuracy, linear=True)
    assert steps.count("V") > lines.count("V")
    assert "steps" in Tags(steps).text
    assert "linear" in Tags(lines).text


def test_stack_shows_its_largest_weights():
    weights = np.arange(20) - 10.0
    fairness, accuracy = models(4)
    page = Tags(stack_html("FairStacks", [f"m{i}" for i in range(20)], weights, fairness, accuracy, np.array([0])))
    assert "-10.000" in page.text
    assert "+0.000" not in page.text
    assert "and 12 more" in page.text
