"""How docstrings are shown: names link what the site describes, and are plain code where it describes nothing.

Single backticks are this project's role for names in docstrings (`default_role`). What a name means is asked of the
module that says it, and so are types in signatures; otherwise a class is found by its name alone, if there is one only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import reduce
from typing import Any

from docutils import nodes
from pydantic import BaseModel
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.domains.python import ObjectEntry, PyXRefRole
from sphinx.environment import BuildEnvironment
from sphinx.util.typing import ExtensionMetadata

ROLE = "code_name"
SAID_IN = "said_in"


class CodeName(PyXRefRole):
    """The role of single backticks."""

    def process_link(
        self, env: BuildEnvironment, refnode: nodes.Element, has_explicit_title: bool, title: str, target: str
    ) -> tuple[str, str]:
        """As any object of Python, which need not be described anywhere."""
        refnode["refdomain"], refnode["reftype"], refnode[ROLE] = "py", "obj", True
        return super().process_link(env, refnode, has_explicit_title, title, target)


def note_modules(app: Sphinx, doctree: nodes.document) -> None:
    """Let types in signatures mean no attribute that has the same name by chance: they do not belong to a class."""
    for node in doctree.findall(addnodes.pending_xref):
        if node.get("refdomain") == "py":
            node[SAID_IN] = node.get("py:module")
            if ROLE not in node:
                for hint in ("refspecific", "py:class", "py:module"):
                    node.attributes.pop(hint, None)


def resolve(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, contnode: nodes.TextElement
) -> nodes.Node | None:
    """A link to what a name means, where that is described; else the name as it stands."""
    if SAID_IN not in node:
        return None
    domain = env.domains.python_domain
    target = full_name(node[SAID_IN], node["reftarget"])
    if target not in domain.objects:
        target = only_class(domain.objects, node["reftarget"])
    return domain.resolve_xref(env, node["refdoc"], app.builder, "obj", target, node, contnode) or contnode


def only_class(described: Mapping[str, ObjectEntry], name: str) -> str:
    """The full name of the one described class that is called *name*; empty where there is none, or several."""
    alike = {entry.node_id: full for full, entry in described.items() if full.rpartition(".")[2] == name}
    return next(iter(alike.values())) if len(alike) == 1 and name[0].isupper() else ""


def full_name(module: str | None, name: str) -> str:
    """The full name of the object that *name* is in *module*; empty where it is none."""
    try:
        found = reduce(getattr, name.split("."), sys.modules[module or ""])
    except (KeyError, AttributeError):
        return ""
    return f"{getattr(found, '__module__', '')}.{getattr(found, '__qualname__', '')}"


def shorten_signature(app: Sphinx, what: str, name: str, found: object, *_: Any) -> tuple[str, None] | None:
    """None for settings, whose keys are described one by one."""
    return ("", None) if isinstance(found, type) and issubclass(found, BaseModel) else None


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.add_role(ROLE, CodeName())
    app.connect("doctree-read", note_modules)
    app.connect("missing-reference", resolve)
    app.connect("autodoc-process-signature", shorten_signature)
    return {"parallel_read_safe": True}
