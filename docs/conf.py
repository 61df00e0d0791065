"""Configuration of the documentation. It needs no network, neither to build nor to read."""

import os
import re
import sys
import warnings
from pathlib import Path

# The examples are small: threads that wait for each other on a busy machine cost more than they bring.
os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from fairfrontier import __version__

project = "fairfrontier"
author = "The fairfrontier developers"
copyright = "The fairfrontier developers"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "included_results",
]
exclude_patterns = ["_build", "_ext", "**/*.ipynb", "**/*.py", "**/*.codeobj.json"]
templates_path = ["_templates"]
default_role = "py:obj"
# A link that is written as one must lead somewhere; words in backquotes of docstrings may be parameters.
nitpicky = True
nitpick_ignore_regex = [("py:obj", ".*"), ("py:.*", r"(?!fairfrontier).*")]

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = "fairfrontier"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/mark.svg"
html_copy_source = False
html_show_sourcelink = False
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "logo": {"text": "fairfrontier", "image_light": "_static/mark.svg", "image_dark": "_static/mark.svg"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navbar_end": ["theme-switcher"],
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "default",
    "pygments_dark_style": "github-dark",
    "back_to_top_button": True,
}
html_sidebars = {"index": [], "results": ["sidebar-nav-bs"]}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"^(?!plot_)|/(?!plot_)[^/]*\.py$",
    "within_subsection_order": "gallery_order.story",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "only_warn_on_example_error": False,
    "abort_on_example_error": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1e9,
    "reference_url": {"fairfrontier": None},
    "image_srcset": ["2x"],
    "thumbnail_size": (640, 420),
}

# Examples are run as users run them, but a picture that is only shown in a window has none here.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# Files of results/ keep their own levels of headings.
suppress_warnings = ["myst.header"]


def keep_bars(app, what, name, obj, options, lines):
    """Let |x| in a docstring be an absolute value, not a substitution of reStructuredText."""
    for i, line in enumerate(lines):
        if "``" not in line and not line.lstrip().startswith((">>>", "...")):
            lines[i] = re.sub(r"\|(?=[^|\s][^|]*\|)|(?<=\S)\|", r"\|", line)


def skip_routing(app, what, name, obj, skip, options):
    """Leave out the methods that scikit-learn gives to every estimator."""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return skip or routing or str(getattr(obj, "__module__", "")).startswith("sklearn.")


def setup(app):
    """Connect what the extensions do not do."""
    app.connect("autodoc-skip-member", skip_routing)
    app.connect("autodoc-process-docstring", keep_bars, priority=900)
