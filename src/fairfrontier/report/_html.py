"""From the summary dict to one self-contained page."""

import base64
import hashlib
import json
from importlib import resources
from statistics import NormalDist
from typing import Any

from fairfrontier._extras import require
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.report._tables import groups_table
from fairfrontier.report._words import VERDICTS, accuracy, fairness_words, level, p_value, percent, plain, unit_words

# The order matters: each file uses what stands in those before it.
_SCRIPTS = ("maths.js", "state.js", "chart.js", "groups.js", "weights.js", "tables.js", "models.js", "main.js")
# A table of more models than this is read by a machine.
_MOST_MODELS = 1000
_FOLDER = resources.files("fairfrontier.report")


def render_html(summary: dict[str, Any]) -> str:
    """Render a summary as a page that needs no network, no server and no other file.

    Parameters
    ----------
    summary : dict
        As made by `summarise`.

    Returns
    -------
    str
        HTML. Its content security policy allows its own two scripts and its own style sheet, by hash, and nothing
        else: whatever the names of models and columns are, they are shown and never run.

    Examples
    --------
    >>> from fairfrontier.report import Settings, evaluate, summarise
    >>> base = evaluate([1, 0, 1, 0], {"<b>": [0.9, 0.6, 0.8, 0.1]}, sensitive_features=["f", "f", "m", "m"])
    >>> page = render_html(summarise(base, Settings(source="example")))
    >>> page[:15], "<b>" in page
    ('<!doctype html>', False)
    """
    environment, markup = _environment()
    said, style = summary["words"], _template("report.css")
    library = (_FOLDER / "vendor" / "d3.min.js").read_text(encoding="utf-8")
    script = "\n".join(_template(name) for name in _SCRIPTS)
    header, lines = groups_table(summary, [summary["subject"]])
    impact = [dict(zip(header, row, strict=True)) for row in lines]
    page: str = environment.get_template("report.html").render(
        summary=summary,
        policy=_policy([library, script], style),
        style=markup(style),
        library=markup(library),
        script=markup(script),
        data=markup(embedded_json(summary)),
        z=NormalDist().inv_cdf(0.5 + summary["settings"]["confidence"] / 2),
        verdicts=VERDICTS,
        words={key: word[:1].upper() + word[1:] if key == "accuracy" else word for key, word in said.items()},
        unit=unit_words(summary) if summary["regression"] else "",
        fairness="" if summary["regression"] else fairness_words(summary["settings"]["fairness"]),
        compares_ratios=named_measure(summary["settings"]["fairness"]).comparison != "difference",
        shown_models=_most_accurate(summary),
        impact=impact,
        licence=(_FOLDER / "vendor" / "LICENSE-d3.txt").read_text(encoding="utf-8"),
    )
    return page


def render_rates(summary: dict[str, Any], *, most: int = 20) -> str:
    """Render a summary without labels as a page without scripts, with the groups of `most` models at the most."""
    environment, markup = _environment()
    style = _template("report.css")
    chosen = list(dict.fromkeys([summary["subject"], *range(summary["n_models"])]))[:most]
    tables = []
    for i in chosen:
        header, lines = groups_table(summary, [i])
        rows = [dict(zip(header, row, strict=True)) for row in lines]
        tables.append({"name": summary["models"]["names"][i], "rows": rows})
    page: str = environment.get_template("rates.html").render(
        summary=summary,
        policy=_policy([], style),
        style=markup(style),
        verdicts=VERDICTS,
        impact_of=tables,
    )
    return page


def _environment() -> tuple[Any, Any]:
    """Return the templates' environment, and what marks text as markup."""
    jinja2 = require("jinja2", extra="report", purpose="report.html")
    markup = require("markupsafe", extra="report", purpose="report.html").Markup
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(accuracy=accuracy, level=level, percent=percent, plain=plain, p_value=p_value)
    return environment, markup


def _most_accurate(summary: dict[str, Any]) -> list[int]:
    """Return the submitted models in the order of the table, the most accurate first."""
    value = summary["models"]["accuracy"]
    return sorted(range(summary["n_models"]), key=lambda i: -value[i])[:_MOST_MODELS]


def embedded_json(value: Any) -> str:
    """Return JSON that is safe inside a script element: no character of it can end the element.

    Examples
    --------
    >>> embedded_json("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    data = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return data.replace("&", r"\u0026").replace("<", r"\u003c").replace(">", r"\u003e")


def _policy(scripts: list[str], style: str) -> str:
    allowed = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; base-uri 'none'; "
        "form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(source: str) -> str:
    digest = base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _template(name: str) -> str:
    return (_FOLDER / "templates" / name).read_text(encoding="utf-8")
