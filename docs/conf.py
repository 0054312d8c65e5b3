"""Sphinx's settings: `make docs`. Nothing is fetched while the pages are built, nor when they are read."""

import os
import re
import warnings
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import pilae

ROOT = Path(__file__).resolve().parents[1]

project = "pilae"
author = "pilae's authors"
copyright = "pilae's authors, BSD-3-Clause"
version = release = pilae.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_gallery.gen_gallery"]
exclude_patterns = ["_build", "examples", "**sg_execution_times.rst", "auto_examples/*.ipynb", "auto_examples/*.py"]
templates_path: list[str] = []

html_theme = "furo"
html_static_path = ["_static"]
html_title = f"pilae {release}"
html_math_renderer = "mathml"
html_copy_source = False
html_show_sourcelink = False

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# docstrings: numpydoc sections, single backticks are code
default_role = "code"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = False
napoleon_use_rtype = False
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": (),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "abort_on_example_error": True,
}
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

# --------------------------------------------------------------------------------- files of the repository as pages

PAGES = {
    "results": "studies/README.md",
    "reproduction": "studies/paper/RESULTS.md",
    "contributing": "CONTRIBUTING.md",
    "changelog": "CHANGELOG.md",
}
"""Pages that are files elsewhere in the repository, so that there is one text of each."""


def page_source(app, docname, source):
    """The text of a page: its own or that of its file, links between files of the repository made links of pages."""
    folder = ROOT / "docs"
    if docname in PAGES:
        file = ROOT / PAGES[docname]
        source[0] = file.read_text()
        app.env.note_dependency(str(file))  # or a page that changed there would not be built again
        folder = file.parent
    elif not (ROOT / "docs" / f"{docname}.md").exists():
        return
    named = {file: page for page, file in PAGES.items()}

    def link(match):
        mark, text, place, _, anchor = match.groups()
        target = Path(os.path.normpath(folder / place))
        if place and (page := named.get(str(target.relative_to(ROOT)))) is not None:
            return f"[{text}](/{page}.md{'#' + anchor if anchor else ''})"
        if not place or not target.exists() or target.is_dir():
            return match[0]
        if target.suffix == ".md" and target.parent != ROOT / "docs":
            return text  # a file that is no page
        return f"{mark}[{text}](/{os.path.relpath(target, ROOT / 'docs')}{'#' + anchor if anchor else ''})"

    source[0] = re.sub(r"(!?)\[([^\]]*)\]\((?!https?:|/)([^)\s#]*)(#([^)\s]*))?\)", link, source[0])


# ----------------------------------------------------------------------------------------------- mathematics


def mathml(block):
    """Formulas as MathML, which browsers draw themselves: no script, nothing from elsewhere."""

    def visit(self, node):
        text = tex2mathml(node.astext(), as_block=block)
        self.body.append(f'<div class="math">{text}</div>' if block else text)
        raise nodes.SkipNode

    return visit, None


def plain_docstring(app, what, name, obj, options, lines):
    """Norms in docstrings are bars, which reStructuredText would take for a substitution."""
    lines[:] = [line if line.lstrip().startswith(">>>") else line.replace("|", r"\|") for line in lines]


def setup(app):
    app.add_html_math_renderer("mathml", inline_renderers=mathml(False), block_renderers=mathml(True))
    app.connect("source-read", page_source)
    app.connect("autodoc-process-docstring", plain_docstring)
    app.add_css_file("pilae.css")
