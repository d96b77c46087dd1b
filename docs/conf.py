"""Sphinx: `make docs` builds the site into docs/_build/html, without a network and without a warning."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import matplotlib
from docutils import nodes
from latex2mathml.converter import convert
from sphinx import addnodes
from sphinx.application import Sphinx

import mipl

sys.path.insert(0, str(Path(__file__).parent))
from see_also import section

matplotlib.use("agg")

project = "mipl"
author = "the mipl developers"
copyright = "the mipl developers"
release = mipl.__version__
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    *("_build", "_templates", "examples", "**/backreferences"),
    *("sg_execution_times.rst", "**/sg_execution_times.rst"),  # their page loads scripts from elsewhere
]
templates_path = ["_templates"]
nitpicky = True
default_role = "name"  # see `name_role`

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False

autosummary_generate = True
autodoc_typehints = "none"  # types stand in the docstrings, with shapes
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "mipl"
html_math_renderer = "mathml"  # see `render_formula`
html_static_path = ["_static"]
html_css_files = ["mipl.css"]
html_sidebars = {"index": []}
html_extra_path = ["llms.txt"]
html_show_sourcelink = False
html_theme_options = {
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}

copybutton_exclude = ".linenos, .gp, .go"

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("mipl",),
    "backreferences_dir": "generated/backreferences",
    "reference_url": {"mipl": None},
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),  # tables; not the texts that matplotlib's functions return
    "plot_gallery": "True",
    "download_all_examples": False,
    "min_reported_time": 1000,
    "show_signature": False,
}

# Addresses of other projects' pages are made from names, since their inventories would have to be downloaded.
_ELSEWHERE = {
    r"sklearn\..+": "https://scikit-learn.org/stable/modules/generated/{}.html",
    r"torch\..+": "https://docs.pytorch.org/docs/stable/generated/{}.html",
    r"pandas\..+": "https://pandas.pydata.org/docs/reference/api/{}.html",
    r"numpy\..+": "https://numpy.org/doc/stable/reference/generated/{}.html",
}


def name_role(role: str, raw: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()) -> Any:
    """`Bags` in a docstring is a link to the class; `lam`, a parameter, is just code."""
    env = inliner.document.settings.env
    wanted = {"refdomain": "py", "reftype": "obj", "reftarget": text, "refdoc": env.current_document.docname}
    context = {key: env.ref_context.get(key) for key in ("py:module", "py:class")}
    return [addnodes.pending_xref(raw, nodes.literal(text, text), may_be_missing=True, **wanted, **context)], []


def link_elsewhere(app: Sphinx, env: Any, node: Any, content: nodes.TextElement) -> nodes.Node | None:
    """Link a name of scikit-learn, torch, pandas or NumPy to its page."""
    target = node.get("reftarget", "")
    for pattern, address in _ELSEWHERE.items():
        if re.fullmatch(pattern, target):
            return nodes.reference("", "", content, internal=False, refuri=address.format(target))
    return content if node.get("may_be_missing") else None


def leave_out_inherited(app: Sphinx, what: str, name: str, member: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what classes inherit from other libraries, whose pages describe it, and the bare fields of tuples."""
    if type(member).__name__ == "_tuplegetter":  # "Alias for field number 0"; the class says what it is
        return True
    module = getattr(member, "__module__", None) or ""
    return True if module.split(".")[0] not in ("mipl", "") and not name.startswith("__") else None


def add_see_also(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Put "See Also" before the references and examples of a docstring, or at its end; numpydoc sees it afterwards."""
    later = [
        i for i, line in enumerate(lines[:-1]) if line in ("Notes", "References", "Examples") and "--" in lines[i + 1]
    ]
    at = later[0] if later else len(lines)
    lines[at:at] = section(name)


def render_formula(translator: Any, node: nodes.math | nodes.math_block) -> None:
    """Write a formula as MathML, which browsers draw themselves: no script, and no network for the reader."""
    text = node.astext()
    if "\\\\" in text and "\\begin" not in text:  # several lines
        text = rf"\begin{{split}}{text}\end{{split}}"
    display = "block" if isinstance(node, nodes.math_block) else "inline"
    translator.body.append(convert(text, display=display))
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    """Connect the functions above."""
    app.add_html_math_renderer("mathml", (render_formula, None), (render_formula, None))
    app.add_role("name", name_role)
    app.connect("missing-reference", link_elsewhere)
    app.connect("autodoc-skip-member", leave_out_inherited)
    app.connect("autodoc-process-docstring", add_see_also, priority=400)  # numpydoc's has 500
