"""Write formulas as MathML, which browsers draw themselves: no script, no font, no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LOGGER = getLogger(__name__)


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in the text."""
    self.body.append(_convert(node, "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula of its own line, with its number where it has one."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(_convert(node, "block"))
    if node["number"]:
        number = get_node_equation_number(self, node)
        self.body.append(f'<span class="eqno">({number})</span>')
        self.add_permalink_ref(node, "Link to this equation")
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _convert(node: nodes.math | nodes.math_block, display: str) -> str:
    """Return a formula as MathML; a command that the converter does not know would be shown as it is, so say so."""
    mathml: str = convert(node.astext(), display=display)
    if unknown := re.findall(r"\\[a-zA-Z]+", mathml):
        LOGGER.warning("the formula %r has unknown commands: %s", node.astext(), unknown, location=node)
    return mathml


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the renderer under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
