"""The report's numbers, words and page, without a browser."""

import base64
import datetime
import hashlib
import html.parser
import json
import re
from importlib import resources

import numpy as np
import pytest

import fairfrontier as ff
from fairfrontier._columns import plain_number
from fairfrontier._writing import to_csv
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.report import Settings, evaluate, frontier_csv, groups_csv, points_csv, render_html, summarise
from fairfrontier.report._words import plain

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "x" * 300,
    "نموذج",
    "🦊",
    "]]>",
    "{{7*7}}",
)


def rows(n: int = 200, seed: int = 0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m"], n)
    y = rng.integers(0, 2, n)
    scores = {f"a/{j}": np.clip(0.6 * y + 0.2 * j * (sex == "m") + rng.random(n) * 0.5 - 0.1, 0, 1) for j in range(3)}
    return y, scores, sex


def summary_of(scores=None, sensitive=None, **settings):
    y, default, sex = rows()
    base = evaluate(y, scores or default, sensitive_features=sensitive if sensitive is not None else {"sex": sex})
    return summarise(base, Settings(source="file.csv", **settings))


class Collector(html.parser.HTMLParser):
    """Collect the elements of a page and the content of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text: list[str] = []
        self.open: str | None = None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.open = tag if tag in self.raw else None
        if self.open:
            self.raw[tag].append("")

    def handle_endtag(self, tag):
        self.open = None

    def handle_data(self, data):
        if self.open:
            self.raw[self.open][-1] += data
        else:
            self.text.append(data)


def test_counts_against_the_rows():
    y, scores, sex = rows()
    evaluation = evaluate(y, scores, sensitive_features={"sex": sex})
    (counts,) = evaluation.groups
    decided = np.stack([scores[name] > 0.5 for name in scores])
    for g, group in enumerate(counts.groups):
        inside = sex == group
        assert counts.rows[g] == inside.sum()
        assert counts.positives[g] == (inside & (y == 1)).sum()
        assert counts.true_selected[:3, g].tolist() == (decided & inside & (y == 1)).sum(axis=1).tolist()
        assert counts.false_selected[:3, g].tolist() == (decided & inside & (y == 0)).sum(axis=1).tolist()
    constant = evaluation.points.rates[-1, 0]
    assert counts.selection_rates()[-1].tolist() == [constant, constant]


def test_counts_of_two_attributes_do_not_depend_on_their_order():
    y, scores, sex = rows()
    race = np.random.default_rng(5).choice(["a", "b", "c"], len(y))
    one = evaluate(y, scores, sensitive_features={"sex": sex, "race": race})
    two = evaluate(y, scores, sensitive_features={"race": race, "sex": sex})
    assert np.array_equal(one.groups[0].true_selected, two.groups[1].true_selected)
    assert np.array_equal(one.groups[1].false_selected, two.groups[0].false_selected)


def test_four_fifths_is_a_ratio_and_fairness_a_difference():
    y = np.tile([1, 0], 100)
    sex = np.repeat(["f", "m"], 100)
    decided = np.zeros(200)
    decided[:2], decided[100:104] = 1, 1  # 2 % against 4 %
    summary = summarise(evaluate(y, {"rare": decided}, sensitive_features=sex), Settings(source="x", min_fairness=0.5))
    assert summary["models"]["fairness"][0] == pytest.approx(0.98)
    (rule,) = summary["four_fifths"]
    assert rule["ratio"] == 0.5
    assert rule["verdict"] == "cannot tell"  # 2 persons against 4
    assert plain(summary["rule"]).endswith(" is below four fifths in these rows, which are too few to be sure.")
    assert rule["model"] == "rare"


def test_a_model_that_selects_nobody_has_no_ratio():
    y, sex = np.tile([1, 0, 0, 0], 50), np.repeat(["f", "m"], 100)
    scores = {"nobody": np.zeros(200)}
    summary = summarise(evaluate(y, scores, sensitive_features=sex), Settings(source="x"))
    assert summary["four_fifths"][0]["ratio"] is None
    assert "nobody" in plain(summary["rule"])
    assert plain(summary["overview"]).endswith(" 1 selects nobody.")
    json.dumps(summary, allow_nan=False)


def test_stack_joins_the_frontier_and_the_sentence():
    y, scores, sex = rows()
    scores = {name: 1 - values for name, values in scores.items()}
    base = evaluate(y, scores, sensitive_features=sex)
    perfect = evaluate(y, {"stack/0": y.astype(float)}, sensitive_features=sex, include_constant=False)
    summary = summarise(base, Settings(source="x", min_fairness=0.8), stack=perfect)
    assert summary["models"]["names"][-1] == "stack/0"
    assert summary["families"][-1] == {"name": "fair stack", "kind": "stack"}
    assert summary["best_stack"]["accuracy"] == 1.0
    assert "A fair stack of these models would reach accuracy 1.000" in plain(summary["recommendation"])
    joined = ff.taf_curve(summary["models"]["fairness"], summary["models"]["accuracy"])
    assert summary["stack_fauc"] == ff.fauc(joined)
    assert summary["fauc"]["estimate"] == ff.fauc(base.points.frontier())


def test_many_families_are_put_together():
    y, _, sex = rows()
    scores = {f"family{j}/m": np.full(len(y), 0.4) for j in range(30)}
    scores.update({f"large/{j}": np.full(len(y), 0.4) for j in range(5)})
    summary = summary_of(scores, {"sex": sex})
    names = [family["name"] for family in summary["families"]]
    assert len(names) == 11
    assert "large" in names
    assert "other families" in names


def test_base_must_have_the_constant_model():
    y, scores, sex = rows()
    with pytest.raises(InvalidInputError, match="constant"):
        summarise(evaluate(y, scores, sensitive_features=sex, include_constant=False), Settings(source="x"))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-5, 1.5e-7, 0.0, 1.0, 123456.0, 5e-324, 2**-13, 1e-6])
def test_plain_numbers_give_the_number_back(value):
    assert float(plain_number(value)) == value


def test_csv_quotes_what_needs_it():
    assert to_csv(["a,b", 'c"d'], [["x\ny", 1.5], [None, True]]) == '"a,b","c""d"\n"x\ny",1.5\n,true\n'


def test_points_and_frontier_have_one_line_a_model():
    summary = summary_of()
    assert len(points_csv(summary).splitlines()) == 1 + 4
    expected = 1 + len(summary["frontier"]["step"]) + len(summary["frontier"]["hull"])
    assert len(frontier_csv(summary).splitlines()) == expected


def test_page_has_its_own_two_scripts_and_nothing_from_elsewhere():
    page = Collector(render_html(summary_of()))
    kinds = [attributes.get("type") for tag, attributes in page.tags if tag == "script"]
    assert kinds == ["application/json", None, None]
    policy = next(a["content"] for t, a in page.tags if t == "meta" and a.get("http-equiv"))
    for source in (*page.raw["script"][1:], *page.raw["style"]):
        digest = base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert "default-src 'none'" in policy
    for tag, attributes in page.tags:
        assert "style" not in attributes, tag
        assert not any(name.startswith("on") for name in attributes), tag
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith("data:"), tag


def test_page_holds_the_summary_as_data():
    summary = summary_of()
    page = Collector(render_html(summary))
    assert json.loads(page.raw["script"][0]) == {**summary, "groups_csv": groups_csv(summary)}


def test_hostile_names_are_text_on_the_page():
    y, _, sex = rows()
    rng = np.random.default_rng(1)
    scores = {name: rng.random(len(y)) for name in HOSTILE}
    groups = np.where(sex == "f", HOSTILE[0], HOSTILE[1])
    base = evaluate(y, scores, sensitive_features={HOSTILE[1]: groups})
    text = render_html(
        summarise(base, Settings(source=HOSTILE[0], title=HOSTILE[1], label=HOSTILE[0], min_fairness=0.1))
    )
    page = Collector(text)
    plain_page = Collector(render_html(summary_of()))
    assert {tag for tag, _ in page.tags} == {tag for tag, _ in plain_page.tags}
    assert sum(tag == "script" for tag, _ in page.tags) == 3
    assert json.loads(page.raw["script"][0])["models"]["names"][:-1] == list(HOSTILE)
    assert HOSTILE[1] in "".join(page.text)


def test_date_is_the_one_given():
    y, scores, sex = rows()
    base = evaluate(y, scores, sensitive_features=sex)
    when = datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC)
    assert summarise(base, Settings(source="x"), created=when)["created"] == "2024-02-29"


def test_every_fairness_measure_has_its_explanation():
    y, scores, sex = rows()
    pages = set()
    measures = ("demographic_parity", "equal_opportunity", "predictive_equality", "equalized_odds", "impact_ratio")
    for measure in (*measures, "odds_ratio", "impact_ratio against f"):
        base = evaluate(y, scores, sensitive_features=sex, fairness=measure)
        text = render_html(summarise(base, Settings(source="x", fairness=measure)))
        pages.add(re.search(r"<em>Fairness</em>.*?</p>", text, re.S).group())
        # A ratio is no average over random choices between models: no line between two of them is offered.
        assert ('value="hull"' in text) == ("<em>Hull</em>" in text) == ("ratio" not in measure)
    assert len(pages) == 7


def test_vendored_library_is_the_published_file():
    vendor = resources.files("fairfrontier.report") / "vendor"
    digest = hashlib.sha256((vendor / "d3.min.js").read_bytes()).hexdigest()
    assert digest in (vendor / "NOTICE.md").read_text()
    assert (vendor / "LICENSE-d3.txt").read_text() in Collector(render_html(summary_of())).text


def test_achievable_curve_is_behind_the_models():
    """With known posteriors: the sentence, the curves for the script, and the words without it."""
    rng = np.random.default_rng(0)
    n = 4000
    sex, x = rng.integers(0, 2, n), rng.random(n)
    y = (rng.random(n) < x).astype(int)
    known = x, np.full((n, 2), 0.5)
    curves = {
        track: ff.achievable_frontier(None, y, sensitive_features=sex, probabilities=known, track=track)
        for track in ("aware", "blind")
    }
    scores = {"noisy": np.clip(x + rng.normal(0, 0.5, n), 0, 1)}
    options = {"sensitive_features": sex, "stack": False, "min_fairness": 0.9}
    result = ff.audit(y, scores, achievable=curves, **options)
    limit = result.summary["achievable"]
    have = ((scores["noisy"] > 0.5) == y).mean()
    assert limit["have"] == pytest.approx(have)
    assert [curve["track"] for curve in limit["curves"]] == ["blind", "aware"]
    added = max(0.0, curves["aware"](0.9) - curves["blind"](0.9))
    said = f"At fairness 0.9 you have {have:.3f}; {curves['blind'](0.9):.3f} ("
    assert result.findings[-1].startswith(said)
    assert result.findings[-1].endswith(f"knowing the attribute would add {added:.3f}.")
    page = result.to_html()
    assert result.findings[-1] in page
    assert "what any rule could reach with these features" in page
    assert "what any rule could reach" not in ff.audit(y, scores, **options).to_html().split("<script")[0]
    with pytest.raises(ValueError, match="equal_opportunity"):
        ff.audit(y, scores, achievable=curves["blind"], fairness="equal_opportunity", **options)
    with pytest.raises(ValueError, match="achievable"):
        ff.audit(y, scores, achievable=curves["blind"], accuracy="f1", **options)
