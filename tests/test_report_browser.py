"""The report in a real browser: what a reader sees, moves and downloads."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright import sync_api as playwright
from scipy.stats import binomtest

import fairfrontier as ff
from fairfrontier.cli import main
from fairfrontier.report import Settings, audit, evaluate, frontier_csv, groups_csv, points_csv, render_html, summarise

pytestmark = pytest.mark.browser

ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
)
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "x" * 300,
    "نموذج عربي",
    "🦊🧮",
    "=1+1",
    "a;=1+1",
)


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        instance = driver.chromium.launch(executable_path="/usr/bin/chromium", args=list(ARGUMENTS))
        yield instance
        instance.close()


def data(n: int = 900, seed: int = 3):
    rng = np.random.default_rng(seed)
    sex, race = rng.choice(["Female", "Male"], n), rng.choice(["A", "B", "C"], n)
    merit = rng.normal(size=n) + 0.8 * (sex == "Male")
    y = (merit + rng.normal(size=n) > 0.4).astype(int)
    scores = {}
    for j in range(9):
        shift = rng.uniform(0, 1.4)
        margin = merit - shift * (sex == "Male") + rng.normal(scale=0.3 + shift / 2, size=n) - 0.4 + shift / 2
        scores[f"{('linear', 'trees', 'nets')[j % 3]}/{j}"] = 1 / (1 + np.exp(-margin))
    return y, scores, {"sex": sex, "race": race}


class Report:
    """A report open in a page, and everything that the page complained about or asked for."""

    def __init__(self, browser, path: Path, **options) -> None:
        self.context = browser.new_context(**options)
        self.page = self.context.new_page()
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: self.problems.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html.ready", state="attached")

    def set(self, selector: str, value: float) -> None:
        """Move a slider, or type into a field, as a user's input does."""
        script = "(e, v) => { e.value = v; e.dispatchEvent(new Event('input', { bubbles: true })); }"
        self.page.locator(selector).evaluate(script, str(value))

    def text(self, selector: str) -> str:
        return self.page.locator(selector).inner_text()

    def download(self, name: str) -> str:
        with self.page.expect_download() as download:
            self.page.click(f"button[data-download='{name}']")
        assert download.value.suggested_filename == name
        return Path(download.value.path()).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def summary():
    y, scores, sensitive = data()
    base = evaluate(y, scores, sensitive_features=sensitive)
    mean, lift = np.mean(list(scores.values()), axis=0), (sensitive["sex"] == "Female") - 0.5
    stack = {f"fair stack/{t:.1f}": np.clip(mean + t * lift, 0, 1) for t in (0, 0.1, 0.2)}
    stacked = evaluate(y, stack, sensitive_features=sensitive, include_constant=False)
    return summarise(base, Settings(source="p.csv", weight=ff.StepWeight(0.6), min_fairness=0.85), stack=stacked)


@pytest.fixture(scope="module")
def file(summary, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(render_html(summary), encoding="utf-8")
    return path


@pytest.fixture
def report(browser, file):
    opened = Report(browser, file)
    yield opened
    assert opened.problems == []
    assert [url for url in opened.requests if not url.startswith(("file:", "blob:", "data:"))] == []
    opened.context.close()


def arrays(summary):
    return np.array(summary["models"]["fairness"]), np.array(summary["models"]["accuracy"])


def members(summary, hidden=()):
    families = [family["name"] for family in summary["families"]]
    return [i for i, f in enumerate(summary["models"]["family"]) if families[f] not in hidden]


def test_loads_without_complaint_and_without_network(report):
    assert report.requests == [report.page.url]
    assert report.text("h1") == "Fairness and accuracy"
    assert report.page.locator("#chart .knots circle").count() > 3


def test_weight_sliders_give_the_value_of_the_library(report, summary):
    for shape in ("step", "hull"):
        report.page.check(f"input[name=shape][value={shape}]", force=True)
        curve = ff.taf_curve(*arrays(summary), interpolate=shape == "hull")
        for alpha, beta in ((0, 0), (0, 0.8), (2.5, 0.6), (10, 0.99), (-0.5, 0.1)):
            report.set("#alpha-field" if alpha < 0 else "#alpha-slider", alpha)
            report.set("#beta-slider", beta)
            expected = ff.fauc(curve, ff.PowerWeight(alpha, beta))
            assert float(report.text("#fauc-value")) == pytest.approx(expected, abs=1e-6)


def test_slider_moves_with_the_keyboard(report, summary):
    before = report.text("#fauc-value")
    report.page.focus("#alpha-slider")
    for _ in range(3):
        report.page.keyboard.press("ArrowRight")
    expected = ff.fauc(ff.taf_curve(*arrays(summary)), ff.PowerWeight(0.3, 0.6))
    assert report.text("#fauc-value") != before
    assert float(report.text("#fauc-value")) == pytest.approx(expected, abs=1e-6)


def test_ranking_follows_the_weight(report, summary):
    fairness, accuracy = arrays(summary)
    constant = summary["constant"]
    for alpha, beta in ((0.0, 0.0), (8.0, 0.9)):
        report.set("#alpha-slider", alpha)
        report.set("#beta-slider", beta)
        weight = ff.PowerWeight(alpha, beta)
        single = [[i, constant] for i in range(len(fairness)) if i != constant]
        values = {
            summary["models"]["names"][pair[0]]: ff.fauc(ff.taf_curve(fairness[pair], accuracy[pair]), weight)
            for pair in single
        }
        rows = [row.inner_text().split("\t") for row in report.page.locator("#model-ranking tr").all()]
        assert [row[1] for row in rows] == sorted(values, key=lambda name: -values[name])[:10]
        assert [float(row[2]) for row in rows] == pytest.approx(sorted(values.values(), reverse=True)[:10], abs=1e-6)
        families = [row.inner_text().split("\t") for row in report.page.locator("#family-ranking tr").all()]
        for _, name, value in families:
            index = [i for i in range(len(fairness)) if i == constant or _family(summary, i) == name]
            expected = ff.fauc(ff.taf_curve(fairness[index], accuracy[index]), weight)
            assert float(value) == pytest.approx(expected, abs=1e-6)


def _family(summary, model: int) -> str:
    return summary["families"][summary["models"]["family"][model]]["name"]


def test_minimum_fairness_names_the_best_model(report, summary):
    fairness, accuracy = arrays(summary)
    names = summary["models"]["names"]
    named = set()
    for control in ("#min-fairness", "#min-fairness-field"):
        for minimum in (0.5, 0.8, 0.87, 0.93, 0.999):
            report.set(control, minimum)
            fair = [i for i in range(len(fairness)) if fairness[i] >= minimum]
            best = max(fair, key=lambda i: (accuracy[i], fairness[i]))
            assert report.page.locator("#answer").get_attribute("data-model") == names[best]
            assert report.text("#chosen-name") == names[best]
            expected = "the same decision" if best == summary["constant"] else f"the best is {names[best]}"
            assert expected in report.text("#answer").replace("\n", "")
            named.add(best)
    assert len(named) > 2


def test_families_switch_off_and_on(report, summary):
    fairness, accuracy = arrays(summary)
    whole = report.text("#fauc-value")
    report.page.locator(".chip", has_text="fair stack").click()
    index = members(summary, hidden=("fair stack",))
    expected = ff.fauc(ff.taf_curve(fairness[index], accuracy[index]), ff.StepWeight(0.6))
    assert float(report.text("#fauc-value")) == pytest.approx(expected, abs=1e-6)
    assert expected == pytest.approx(summary["fauc"]["estimate"], abs=1e-12)
    assert report.page.locator(".chip", has_text="fair stack").get_attribute("aria-pressed") == "false"
    report.page.locator(".chip", has_text="fair stack").click()
    assert report.text("#fauc-value") == whole


def test_hover_shows_the_model_and_its_group_rates(report, summary):
    i = summary["frontier"]["step"][0]
    report.page.locator("#chart").scroll_into_view_if_needed()
    box = report.page.locator("#chart").bounding_box()
    report.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    position = report.page.evaluate(
        "i => { const svg = document.getElementById('chart'); const p = svg.createSVGPoint();"
        "const k = [...document.querySelectorAll('#chart .knots circle')].find(c => c.__data__ === i);"
        "p.x = +k.getAttribute('cx'); p.y = +k.getAttribute('cy');"
        "const q = p.matrixTransform(svg.getScreenCTM()); return [q.x, q.y]; }",
        i,
    )
    report.page.mouse.move(*position)
    shown = report.text("#tooltip")
    assert summary["models"]["names"][i] in shown
    assert f"{summary['models']['accuracy'][i]:.3f}" in shown
    attribute = summary["attributes"][0]
    group = attribute["groups"][0]
    rate = (attribute["true_selected"][2 * i] + attribute["false_selected"][2 * i]) / group["rows"]
    assert f"{100 * rate:.1f} %" in shown


def test_arrow_keys_walk_along_the_frontier(report, summary):
    optimal = [summary["models"]["names"][i] for i in summary["frontier"]["step"]]
    report.set("#min-fairness", 0)
    assert report.text("#chosen-name") == optimal[0]
    report.page.focus("#chart")
    report.page.keyboard.press("ArrowRight")
    assert report.text("#chosen-name") == optimal[1]
    report.page.keyboard.press("ArrowRight")
    report.page.keyboard.press("ArrowLeft")
    assert report.text("#chosen-name") == optimal[1]


def test_bars_have_wilson_intervals(report, summary):
    name = "trees/1"
    report.page.fill("#picker", name)
    report.page.locator("#picker").dispatch_event("change")
    assert report.text("#chosen-name") == name
    i = summary["models"]["names"].index(name)
    attribute = summary["attributes"][0]
    first = report.page.locator(".attribute").first
    panels = first.locator(".bars")
    for g, group in enumerate(attribute["groups"]):
        hit, alarm = attribute["true_selected"][2 * i + g], attribute["false_selected"][2 * i + g]
        misses, negatives = group["positives"] - hit, group["rows"] - group["positives"]
        expected = [
            (hit + alarm, group["rows"]),
            (misses, group["positives"]),
            (alarm, negatives),
            (misses + alarm, group["rows"]),
        ]
        for panel, (hits, n) in enumerate(expected):
            interval = binomtest(hits, n).proportion_ci(method="wilson")
            shown = panels.nth(panel).locator(".bar-value").nth(g).inner_text()
            assert shown == f"{100 * hits / n:.1f} %{100 * interval.low:.1f}–{100 * interval.high:.1f}"
    selected = [attribute["true_selected"][2 * i + g] + attribute["false_selected"][2 * i + g] for g in (0, 1)]
    rates = [count / group["rows"] for count, group in zip(selected, attribute["groups"], strict=True)]
    ratio = float(first.locator(".verdict").get_attribute("data-ratio"))
    assert ratio == pytest.approx(min(rates) / max(rates), abs=1e-12)


def test_downloads_are_the_files_of_the_command_line(report, summary):
    assert report.download("points.csv") == points_csv(summary)
    assert report.download("frontier.csv") == frontier_csv(summary)
    assert report.download("groups.csv") == groups_csv(summary)
    assert len(groups_csv(summary).splitlines()) == 1 + summary["n_models"] * 5


def test_page_opens_with_a_submitted_model_and_judges_no_other(report, summary):
    assert report.text("#chosen-name") == summary["models"]["names"][summary["subject"]]
    assert summary["subject"] < summary["n_models"]
    report.set("#min-fairness", 0.999)  # only the constant is that fair
    assert report.text("#chosen-name") == "constant"
    badges = report.page.locator("#groups .badge").all_inner_texts()
    assert set(badges) == {"not submitted"}
    assert report.page.locator("#groups .badge.good").count() == 0


def test_table_of_models_sorts_and_searches(report, summary):
    rows = report.page.locator("#models tbody tr")
    assert rows.count() == summary["n_models"]
    names = [row.locator("th .name").inner_text() for row in rows.all()]
    accuracy = dict(zip(summary["models"]["names"], summary["models"]["accuracy"], strict=True))
    assert names == sorted(names, key=lambda name: -accuracy[name])
    report.page.locator("#models thead th button").nth(2).click()
    fairness = dict(zip(summary["models"]["names"], summary["models"]["fairness"], strict=True))
    names = [row.locator("th .name").inner_text() for row in rows.all()]
    assert names == sorted(names, key=lambda name: fairness[name])
    report.page.fill("#model-search", "trees")
    shown = [row.locator("th .name").inner_text() for row in rows.all() if row.is_visible()]
    assert shown
    assert all("trees" in name for name in shown)


def test_models_outside_the_picture_are_counted(browser, tmp_path):
    rng = np.random.default_rng(0)
    n, k = 500, 100
    y, sex = rng.integers(0, 2, n), rng.choice(["f", "m"], n)
    scores = {f"m{j}": np.clip(0.3 * y + 0.6 * rng.random(n), 0, 1) for j in range(k - 1)} | {"far": 1.0 - y}
    path = tmp_path / "report.html"
    base = evaluate(y, scores, sensitive_features=sex)
    path.write_text(render_html(summarise(base, Settings(source="x"))), encoding="utf-8")
    report = Report(browser, path)
    assert "of 100 models lie outside the picture" in report.text("#outside")
    few = {name: scores[name] for name in ("m0", "m1", "far")}
    path.write_text(render_html(summarise(evaluate(y, few, sensitive_features=sex), Settings(source="x"))))
    report.page.reload()
    report.page.wait_for_selector("html.ready", state="attached")
    assert report.page.locator("#outside").is_hidden()
    assert report.problems == []
    report.context.close()


@pytest.mark.parametrize("width", [390, 1200])
def test_sixty_groups_and_long_names_fit(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    n = 6000
    group = np.array([f"a rather long name of a group, number {g}" for g in range(60)])[rng.integers(0, 60, n)]
    y = rng.integers(0, 2, n)
    scores = {f"m{j}": np.clip(0.3 * y + 0.6 * rng.random(n), 0, 1) for j in range(4)}
    path = tmp_path / "report.html"
    base = evaluate(y, scores, sensitive_features={"tribe": group}, min_group=30)
    path.write_text(render_html(summarise(base, Settings(source="x"))), encoding="utf-8")
    report = Report(browser, path, viewport={"width": width, "height": 800})
    assert report.page.evaluate("document.documentElement.scrollWidth") <= width
    assert report.page.locator(".impact tbody tr").count() == 60
    assert report.problems == []
    report.context.close()


def test_hostile_names_are_shown_and_run_nothing(browser, tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    groups = np.where(rng.random(n) < 0.5, HOSTILE[0], HOSTILE[1])
    scores = {name: rng.random(n) for name in HOSTILE}
    base = evaluate(rng.integers(0, 2, n), scores, sensitive_features={HOSTILE[1]: groups, "‮x": groups})
    summary = summarise(base, Settings(source=HOSTILE[0], title=HOSTILE[1], min_fairness=0.2))
    path = tmp_path / "report.html"
    path.write_text(render_html(summary), encoding="utf-8")
    report = Report(browser, path, viewport={"width": 390, "height": 844})
    for name in HOSTILE:
        report.page.fill("#picker", name)
        report.page.locator("#picker").dispatch_event("change")
        assert report.text("#chosen-name") == name
    assert report.text("h1") == HOSTILE[1]
    assert report.page.locator("img").count() == 0
    assert report.page.locator("script").count() == 3
    assert report.page.evaluate("document.documentElement.scrollWidth") <= 390
    report.page.locator("#chart").hover()
    assert report.download("points.csv") == points_csv(summary)
    assert report.problems == []
    report.context.close()


def test_policy_stops_what_is_not_the_reports_own(browser, file):
    report = Report(browser, file)
    attempts = (
        "() => { document.body.innerHTML = '<b>x</b>'; }",
        "() => { document.body.setAttribute('onclick', 'window.ran = 1'); }",
        "() => { const s = document.createElement('script'); s.text = 'window.ran = 1'; }",
    )
    for script in attempts:
        with pytest.raises(playwright.Error, match="Trusted"):
            report.page.evaluate(script)
    loaded = (
        "() => new Promise(done => { const i = new Image(); i.onload = () => done(true);"
        "i.onerror = () => done(false); i.src = 'https://example.org/x.png'; })"
    )
    assert report.page.evaluate(loaded) is False
    assert any("Content Security Policy" in problem for problem in report.problems)
    report.context.close()


def test_fits_every_width(browser, file):
    report = Report(browser, file)
    for width in (320, 390, 768, 1400):
        report.page.set_viewport_size({"width": width, "height": 800})
        report.page.wait_for_function("w => document.getElementById('chart').viewBox.baseVal.width <= w", arg=width)
        assert report.page.evaluate("document.documentElement.scrollWidth") <= width
    assert report.problems == []
    report.context.close()


def test_dark_is_dark_and_print_is_light(browser, file, tmp_path):
    report = Report(browser, file, color_scheme="dark")
    luminance = "() => getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).map(Number)"
    assert max(report.page.evaluate(luminance)) < 60
    report.page.emulate_media(media="print", color_scheme="dark")
    assert min(report.page.evaluate(luminance)) > 240
    assert report.page.locator(".downloads").is_hidden()
    # Names of families and headings of columns are buttons, too, and stay: they are text on paper.
    assert [box for box in report.page.locator("input").all() if box.is_visible()] == []
    assert report.page.locator("#models").is_visible()
    assert report.page.locator(".impact").first.is_visible()
    assert report.page.pdf(format="A4", print_background=True).startswith(b"%PDF")
    report.context.close()


@pytest.mark.parametrize(("media", "width"), [("screen", 390), ("screen", 1280), ("print", 1000)])
def test_every_bar_says_how_many_rows_it_is_of_whatever_the_name_of_the_group(media, width, browser, tmp_path):
    y, scores, sensitive = data()
    long = np.where(
        sensitive["race"] == "A", "Adult education and other services to the whole public", sensitive["race"]
    )
    file = tmp_path / "report.html"
    file.write_text(audit(y, scores, sensitive_features={"work": long}, stack=False).to_html(), encoding="utf-8")
    report = Report(browser, file, viewport={"width": width, "height": 900})
    report.page.emulate_media(media=media)
    script = """labels => labels.map(label => {
        const [all, n] = [label, label.querySelector("small")].map(part => part.getBoundingClientRect());
        const cell = label.closest(".bar-row").getBoundingClientRect();
        return n.height > 0 && n.bottom <= Math.max(all.bottom, cell.bottom) + 1 && n.right <= cell.right;
    })"""
    inside = report.page.locator(".bar-label").evaluate_all(script)
    assert len(inside) == 12
    assert all(inside)
    cut = "labels => labels.some(name => name.scrollHeight > name.clientHeight + 1 && name.clientHeight > 0)"
    assert media == "screen" or not report.page.locator(".bar-label .name").evaluate_all(cut)
    report.context.close()


@pytest.mark.parametrize(("media", "width"), [("screen", 768), ("print", 688)])  # 688: A4 without its margins
def test_the_tables_of_three_attributes_are_never_cut(media, width, browser, tmp_path):
    y, scores, sensitive = data()
    third = {"age": np.where(np.arange(len(y)) % 2, "under 40", "40 or more")}
    file = tmp_path / "report.html"
    file.write_text(audit(y, scores, sensitive_features=sensitive | third).to_html(), encoding="utf-8")
    report = Report(browser, file, viewport={"width": width, "height": 900})
    report.page.emulate_media(media=media)
    tables = report.page.locator(".scroll")
    assert tables.count() >= 4
    assert all(tables.evaluate_all("all => all.map(table => table.scrollWidth <= table.clientWidth + 1)"))
    if media == "print":  # and a wider one would be printed smaller
        assert set(tables.evaluate_all("all => all.map(table => getComputedStyle(table).overflowX)")) == {"visible"}
    report.context.close()


def test_an_interval_beside_the_figure_says_why_it_is_there(browser, tmp_path):
    y, scores, sensitive = data()
    found = summarise(evaluate(y, scores, sensitive_features=sensitive), Settings(source="p.csv"), interval=(0.1, 0.2))
    file = tmp_path / "report.html"
    file.write_text(render_html(found), encoding="utf-8")
    report = Report(browser, file)
    assert "takes into account that the best of many is partly chance" in report.text(".keys")
    report.context.close()


def test_screenshots_differ_between_light_and_dark(browser, file, tmp_path):
    shots = []
    for scheme in ("light", "dark"):
        report = Report(browser, file, color_scheme=scheme)
        shots.append(report.page.screenshot(path=tmp_path / f"{scheme}.png", full_page=True))
        report.context.close()
    assert len(shots[0]) > 50_000
    assert shots[0] != shots[1]


def test_readable_without_scripts(browser, file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#chart").is_hidden()
    assert page.locator("noscript").inner_text()
    assert page.locator(".lead").is_visible()
    assert page.locator("#table-title").is_visible()
    assert page.locator("#models tbody tr").count() == 9
    assert page.locator(".impact").first.is_visible()
    assert page.locator("#model-search").is_hidden()
    context.close()


def test_page_without_labels_fits_with_300_models_and_60_groups(browser, tmp_path):
    """The page has no script at all, so that it is the same with and without JavaScript."""
    rng = np.random.default_rng(0)
    group = np.array([f"a rather long name of a group, number {g}" for g in range(60)])[rng.integers(0, 60, 4000)]
    scores = {f"family {j % 7}/a long name of a model, number {j}": rng.random(4000) for j in range(300)}
    path = tmp_path / "report.html"
    path.write_text(audit(None, scores, sensitive_features={"tribe": group}).to_html(), encoding="utf-8")
    for width, scheme in ((390, "dark"), (800, "light"), (1280, "light")):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        page = context.new_page()
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("script").count() == 0
        assert page.locator("#models tbody tr").count() == 300
        assert page.locator(".impact").first.locator("tbody tr").count() == 60
        # A long name takes a few lines, and not one for each syllable.
        assert page.locator("#models tbody tr").first.bounding_box()["height"] < 130
        page.emulate_media(media="print")
        assert page.locator("#models tbody tr").last.is_visible()
        context.close()


def test_a_thousand_models_stay_small_and_quick(browser, tmp_path):
    rng = np.random.default_rng(0)
    n, k = 2000, 1000
    sex = rng.choice(["f", "m"], n)
    y = rng.integers(0, 2, n)
    scores = np.clip(y[:, None] * 0.3 + rng.random((n, k)) * rng.uniform(0.5, 0.9, k) - 0.05, 0, 1)
    base = evaluate(y, scores, sensitive_features=sex, names=[f"family{j % 5}/{j}" for j in range(k)])
    page = render_html(summarise(base, Settings(source="x")))
    assert len(page.encode()) < 8_000_000
    path = tmp_path / "report.html"
    path.write_text(page, encoding="utf-8")
    report = Report(browser, path)
    assert report.page.locator("#chart .dots").count() == 5  # one path a family, not one element a model
    assert report.page.locator("#chart *").count() < 700
    for beta in (0.1, 0.5, 0.9):
        report.set("#beta-slider", beta)
        expected = ff.fauc(base.points.frontier(), ff.PowerWeight(0, beta))
        assert float(report.text("#fauc-value")) == pytest.approx(expected, abs=1e-6)
    assert report.problems == []
    report.context.close()


def test_many_models_do_not_push_the_chart_out_of_reach(browser, tmp_path):
    y, scores, sensitive = data()
    rng = np.random.default_rng(0)
    many = {f"m_{j}": rng.random(len(y)) for j in range(60)}
    few, tall = tmp_path / "few.html", tmp_path / "tall.html"
    few.write_text(render_html(summarise(evaluate(y, scores, sensitive_features=sensitive), Settings(source="x"))))
    tall.write_text(render_html(summarise(evaluate(y, many, sensitive_features=sensitive), Settings(source="x"))))
    tops = []
    for file in (few, tall):
        report = Report(browser, file, viewport={"width": 1024, "height": 800})
        tops.append(report.page.locator("#chart").evaluate("e => e.getBoundingClientRect().top"))
        if file is tall:
            table = report.page.locator(".tall")
            table.focus()
            report.page.keyboard.press("End")
            report.page.wait_for_timeout(500)
            assert table.evaluate("e => e.scrollTop") > 100
            report.page.emulate_media(media="print")
            heights = table.evaluate("e => [e.scrollHeight, e.clientHeight]")
            assert heights[0] == heights[1]
        report.context.close()
    assert tops[1] < tops[0] + 600


def test_regression_report(browser, tmp_path):
    _, scores, sensitive = data()
    target = scores["linear/0"] * 0.9
    base = evaluate(target, scores, sensitive_features=sensitive, accuracy="r2")
    summary = summarise(base, Settings(source="x", accuracy="r2", min_fairness=0.5))
    path = tmp_path / "report.html"
    path.write_text(render_html(summary), encoding="utf-8")
    report = Report(browser, path)
    assert "Mean prediction" in report.text("#groups")
    assert "four-fifths" not in report.text("body")
    assert report.download("points.csv") == points_csv(summary)
    assert report.problems == []
    report.context.close()


def test_report_of_the_command_line_opens(browser, tmp_path):
    y, scores, sensitive = data(300)
    pd.DataFrame({"y": y, **sensitive, **scores}).to_csv(tmp_path / "p.csv", index=False)
    options = ["--label", "y", "--sensitive", "sex", "--out", str(tmp_path / "out"), "--no-stack"]
    assert main(["audit", str(tmp_path / "p.csv"), *options]) == 0
    report = Report(browser, tmp_path / "out" / "report.html")
    assert report.download("points.csv") == (tmp_path / "out" / "points.csv").read_text()
    assert report.download("frontier.csv") == (tmp_path / "out" / "frontier.csv").read_text()
    expected = json.loads((tmp_path / "out" / "summary.json").read_text())["fauc"]["estimate"]
    assert float(report.text("#fauc-value")) == pytest.approx(expected, abs=1e-6)
    assert report.problems == []
    report.context.close()
