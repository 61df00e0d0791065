"""The files of an audit: the self-contained page, the tables, a workbook, a PDF and a model card."""

import base64
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from statistics import NormalDist
from typing import Any

from fairfrontier._extras import require
from fairfrontier._writing import to_csv
from fairfrontier.exceptions import InvalidInputError
from fairfrontier.metrics._contrasts import named_measure
from fairfrontier.report._tables import (
    all_tables,
    groups_csv,
    groups_table,
    model_rows,
)
from fairfrontier.report._words import (
    VERDICTS,
    accuracy,
    fairness_words,
    findings,
    level,
    p_value,
    percent,
    plain,
    unit_words,
)

# Control characters, which may steer the terminal that shows a text file, and those that change its direction.
_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
# The order matters: each file uses what stands in those before it.
_SCRIPTS = ("maths.js", "state.js", "chart.js", "groups.js", "weights.js", "tables.js", "models.js", "main.js")
# A table of more models than this is read by a machine.
_MOST_MODELS = 1000
_FOLDER = resources.files("fairfrontier.report")
# What the programs are called that can print a page.
_BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
# Models whose groups a page without labels shows.
_MOST_SHOWN = 20
# A line of a sheet that Excel cannot hold.
_MOST_LINES = 1_048_575
_SECONDS = 120
# A page holds the table of groups up to this many rows; the file has it whatever its length.
_MOST_GROUP_ROWS = 10_000


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
    said, settings = summary["words"], summary["settings"]
    library = (_FOLDER / "vendor" / "d3.min.js").read_text(encoding="utf-8")
    script = "\n".join(_template(name) for name in _SCRIPTS)
    n_lines = summary["n_models"] * sum(len(attribute["groups"]) for attribute in summary["attributes"])
    groups = groups_csv(summary) if n_lines <= _MOST_GROUP_ROWS else None
    markup = _environment()[1]
    return render_page(
        "report.html",
        scripts=(library, script),
        summary=summary,
        has_groups=groups is not None,
        library=markup(library),
        script=markup(script),
        data=markup(embedded_json({**summary, "groups_csv": groups})),
        z=NormalDist().inv_cdf(0.5 + settings["confidence"] / 2),
        verdicts=VERDICTS,
        words={key: word[:1].upper() + word[1:] if key == "accuracy" else word for key, word in said.items()},
        unit=unit_words(summary) if summary["regression"] else "",
        fairness="" if summary["regression"] else fairness_words(settings["fairness"]),
        compares_ratios=named_measure(settings["fairness"]).comparison != "difference",
        shown_models=_most_accurate(summary),
        impact=_groups_of(summary, summary["subject"]),
        licence=(_FOLDER / "vendor" / "LICENSE-d3.txt").read_text(encoding="utf-8"),
    )


def render_rates(summary: dict[str, Any]) -> str:
    """Render a summary without labels as a page without scripts, with the groups of some models."""
    chosen = list(dict.fromkeys([summary["subject"], *range(summary["n_models"])]))[:_MOST_SHOWN]
    tables = [{"name": summary["models"]["names"][i], "rows": _groups_of(summary, i)} for i in chosen]
    return render_page("rates.html", summary=summary, verdicts=VERDICTS, impact_of=tables)


def render_page(
    template: str, *, styles: Sequence[str] = ("report.css",), scripts: Sequence[str] = (), **values: Any
) -> str:
    """Render a template as one self-contained page, which may run these scripts and no other."""
    environment, markup = _environment()
    style = "".join(map(_template, styles))
    page: str = environment.get_template(template).render(policy=_policy(scripts, style), style=markup(style), **values)
    return page


def _groups_of(summary: dict[str, Any], model: int) -> list[dict[str, Any]]:
    """Return the table of groups of one model, as records."""
    header, rows = groups_table(summary, [model])
    return [dict(zip(header, row, strict=True)) for row in rows]


@cache
def _environment() -> tuple[Any, Any]:
    """Return the templates' environment, which keeps what it has compiled, and what marks text as markup."""
    jinja2 = require("jinja2", extra="report", purpose="report.html")
    markup = require("markupsafe", extra="report", purpose="report.html").Markup
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_template),
        autoescape=lambda name: name != "model_card.md",
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(accuracy=accuracy, level=level, percent=percent, p_value=p_value, md=_md)
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


def _policy(scripts: Sequence[str], style: str) -> str:
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


def output_names(
    *,
    labelled: bool = True,
    differences: bool = False,
    strata: bool = False,
    xlsx: bool = False,
    pdf: bool = False,
    ll144: bool = False,
) -> tuple[str, ...]:
    """Return the files that an audit writes."""
    tables = ("points.csv", "frontier.csv", "groups.csv") if labelled else ("groups.csv",)
    asked = {"differences.csv": differences, "strata.csv": strata, "ll144.csv": ll144}
    asked |= {"audit.xlsx": xlsx, "report.pdf": pdf}
    return ("report.html", *tables, "summary.json", "model_card.md", *(name for name, yes in asked.items() if yes))


def left_over(folder: Path, written: Iterable[str], *, source: Path | None = None) -> list[str]:
    """Return the files of a folder that `audit`, `stack` or `demo` has written and that will not be written now."""
    tables = output_names(differences=True, strata=True, xlsx=True, pdf=True, ll144=True)
    ours = (*tables, "weights.csv", "model.skops", "taf.png")
    old = [folder / name for name in ours if name not in set(written)]
    present = [path for path in old if path.is_symlink() or path.is_file()]
    return [path.name for path in present if source is None or not path.exists() or not path.samefile(source)]


def write_results(
    summary: dict[str, Any], folder: Path, *, xlsx: bool = False, pdf: bool = False, ll144: bool = False
) -> None:
    """Write the report and the tables behind it."""
    texts = {"report.html": page(summary), "model_card.md": model_card(summary)}
    texts["summary.json"] = json.dumps(machine_readable(summary), indent=2, allow_nan=False) + "\n"
    # The models are in the page and in summary.json, and the table of Local Law 144 is for those who ask for it.
    left_out = {"models"} if ll144 else {"models", "ll144"}
    texts |= {f"{name}.csv": to_csv(*rows) for name, rows in all_tables(summary).items() if name not in left_out}
    for name, content in texts.items():
        (folder / name).write_text(content, encoding="utf-8", errors="replace", newline="")
    if xlsx:
        write_workbook(summary, folder / "audit.xlsx")
    if pdf:
        print_page(folder / "report.html", folder / "report.pdf")


def page(summary: dict[str, Any]) -> str:
    """Return the report, one page that needs no other file."""
    return render_html(summary) if summary["labelled"] else render_rates(summary)


def machine_readable(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what `summary.json` holds: the findings, as text and as numbers, about the submitted models."""
    inside = ("models", "attributes", "frontier", "ll144")
    machine = {key: value for key, value in summary.items() if key not in inside}
    machine |= {key: plain(summary[key]) for key in ("recommendation", "overview", "rule") if key in summary}
    machine["subject"] = summary["models"]["names"][summary["subject"]]
    machine["models"] = model_rows(summary)
    if summary["labelled"]:
        machine["frontier"] = [
            {key: summary["models"][key][i] for key in ("names", "fairness", "accuracy")}
            for i in summary["frontier"]["step"]
        ]
    return machine


def write_workbook(summary: dict[str, Any], path: Path) -> None:
    """Write one workbook: a sheet of findings, and one for every table; text in it is never run as a formula."""
    openpyxl = require("openpyxl", extra="excel", purpose="Writing an Excel file")
    book = openpyxl.Workbook(write_only=True)
    trail = summary["trail"] or {}
    about = [["title", summary["title"]], ["source", summary["source"]], ["rows", summary["n_rows"]]]
    about += [["finding", text] for text in findings(summary)] + [["note", text] for text in summary["notes"]]
    about += [[key, json.dumps(value) if isinstance(value, dict) else value] for key, value in trail.items()]
    sheets: dict[str, list[Any]] = {"about": about}
    sheets |= {name: [table.header, *table.rows] for name, table in all_tables(summary).items()}
    for name, rows in sheets.items():
        if len(rows) > _MOST_LINES:
            raise InvalidInputError(f"a workbook must have fewer lines; {name} has {len(rows):,}: take the CSV files")
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append([_cell(openpyxl, sheet, value) for value in row])
    book.save(path)


def _cell(openpyxl: Any, sheet: Any, value: Any) -> Any:
    """Return a cell of a sheet; text is text, whatever it begins with."""
    if not isinstance(value, str):
        return value
    illegal = openpyxl.cell.cell.ILLEGAL_CHARACTERS_RE
    cell = openpyxl.cell.WriteOnlyCell(sheet, illegal.sub("\ufffd", value)[:32_000])
    cell.data_type = "s"
    return cell


def find_browser(page: str) -> str:
    """Return the Chromium that is installed; without one, say that `page` is to be printed by hand."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    if browser is None:
        raise InvalidInputError(f"a PDF needs Chromium or Chrome, and none is installed: print {page} by hand")
    return browser


def print_page(page: Path, pdf: Path) -> None:
    """Print a page of ours as PDF, with the Chromium that is installed."""
    browser = find_browser(page.name)
    # Chromium refuses its sandbox to the superuser, as in containers; the page is ours and loads nothing.
    sandbox = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
    options = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-pdf-header-footer", *sandbox]
    command = [browser, *options, f"--print-to-pdf={pdf}", page.absolute().as_uri()]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        raise InvalidInputError(f"{browser} could not print the page: {error}: print {page.name} by hand") from None
    if not pdf.exists():
        raise InvalidInputError(f"{browser} could not print the page: print {page.name} by hand")


def model_card(summary: dict[str, Any]) -> str:
    """Return a model card in Markdown of the model that the findings are about.

    The sections are those of Mitchell et al. (2019). What an audit cannot know, the card asks for.
    """
    i = summary["subject"]
    caveats = [text for text in (plain(summary["overview"]), *summary["notes"]) if text]
    values = {"model": summary["models"]["names"][i], "groups": _groups_of(summary, i), "caveats": caveats}
    card: str = _environment()[0].get_template("model_card.md").render(summary=summary, **values)
    return f"{card}\n"


def _md(text: str) -> str:
    """Return text that Markdown shows as it is, on one line."""
    shown = _UNSEEN.sub("\N{REPLACEMENT CHARACTER}", " ".join(str(text).split()))
    return "".join(f"\\{c}" if c in "\\`*_{}[]<>#|~" else c for c in shown)
