"""The site: ``make docs`` builds it, with every warning as an error.

The folder that Sphinx reads is the repository's own, so links between pages are the same here
and where the repository is shown.
"""

from __future__ import annotations

from enum import EnumType
from inspect import Signature, signature
from typing import Any, get_overloads

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, NumpyDocstring
from sphinx.util import logging
from sphinx.util.inspect import stringify_signature
from sphinx.util.rst import escape

import trident
from tests.packaging.public_names import public_names

project = "trident-spark"
author = "the authors of trident-spark"
version = release = trident.__version__

extensions = [
    *("myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"),
]
root_doc = "docs/index"
include_patterns = ["docs/**", "examples/*.md", "examples/*/*.md", "tests/kept/*.md", "*.md"]
exclude_patterns = [
    *(".*", "build", "dist", "*.egg-info", "trident", "states", "backends", "benchmarks", "setup"),
    "**/__pycache__",
]
nitpicky = True

# Markdown: links to headings as the repository's home makes them
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]

# docstrings: the types in NumPy's style are prose, which names no class
NUMPY_STYLE = Config(
    napoleon_use_param=False,
    napoleon_use_rtype=False,
    napoleon_custom_sections=[("Attributes", "params_style")],
)
autodoc_default_options = {"members": True, "member-order": "bysource"}
autodoc_typehints = "none"  # show_signature has them
default_role = "py:obj"
maximum_signature_line_length = 96
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_title = f"trident-spark {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_additional_pages = {"index": "to_docs.html"}
html_show_copyright = False
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True


def read_docstring(
    app: Sphinx, what: str, name: str, found: Any, options: Any, lines: list[str]
) -> None:
    """What napoleon does as an extension, except that it would take what stands before a colon in
    the docstring of a property for a type."""
    what = "method" if what in ("attribute", "data", "property") else what
    lines[:] = NumpyDocstring(lines, NUMPY_STYLE, app, what, name, found, options).lines()
    if text := getattr(found, "_template", ""):  # of an error, which somebody searches for
        lines += ["", f"It reads: *{escape(text)}*"]


def show_signature(
    app: Sphinx, what: str, name: str, found: Any, options: Any, shown: str | None, returns: Any
) -> tuple[str, None] | None:
    """A call as the code has it: each of its overloads, also of a base class, with types by their
    names. A line each, of which autodoc puts the name before the first."""
    if shown in (None, "", "()") or what not in ("class", "function", "method"):
        return None
    if isinstance(found, EnumType):
        return "", None
    call = getattr(found, "__func__", found)
    lines = []
    for each in get_overloads(call) or [found]:
        given = signature(each)
        parameters = [one for one in given.parameters.values() if one.name != "self"]
        returned = Signature.empty if what == "class" else given.return_annotation
        lines.append(stringify_signature(Signature(parameters, return_annotation=returned)))
    called = ".".join(name.split(".")[-2 if what == "method" else -1 :])
    return f"\n{' ' * 20}{called}".join(lines), None


def find_by_last_name(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.Element
) -> nodes.Element | None:
    """What `PlanError` in a docstring refers to, if one documented name ends so.

    A word in small letters and single backticks is a parameter, more often than not.
    """
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or (node["reftype"] == "obj" and target.islower()):
        return None
    domain = env.domains.python_domain
    found = [
        name
        for name, at in domain.objects.items()
        if name.endswith(f".{target}") and not at.aliased
    ]
    if len(found) != 1:
        return None
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", found[0], node, shown)


def is_no_reference(app: Sphinx, domain: Any, node: pending_xref) -> bool | None:
    """An annotation names internal classes too, and a word in single backticks may be a parameter.

    Neither has to have a place on the site; what is written as ``:class:`…``` has.
    """
    return node.get("reftype") == "obj" or "refexplicit" not in node or None


def check_reference(app: Sphinx, env: BuildEnvironment) -> None:
    """Every public name is on a page of the reference."""
    documented = env.domains.python_domain.objects
    for name, _ in public_names():
        if name not in documented:
            logging.getLogger(__name__).warning("%s is on no page below docs/api", name)


def setup(app: Sphinx) -> None:
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", show_signature)
    app.connect("missing-reference", find_by_last_name)
    app.connect("warn-missing-reference", is_no_reference)
    app.connect("env-check-consistency", check_reference)
