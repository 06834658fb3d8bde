"""Links to files of the repository: the site shows a text file, or what is in a folder, on a page of its own.

Pages link files, and what the site describes from docstrings links its source. Any other file, and a text of more than
`LONGEST_BYTES`, stays what Sphinx makes of it: a file to download. These pages have no navigation, which would take
longer than all else together.
"""

from __future__ import annotations

import importlib
import inspect
import os
import posixpath
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import Any

from docutils import nodes
from pygments.lexers import get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.builders.html import StandaloneHTMLBuilder
from sphinx.util.typing import ExtensionMetadata

LONGEST_BYTES = 200_000
ANCHOR = "line"


def link_files(app: Sphinx, doctree: nodes.document) -> None:
    """Let each link of a page to a file or a folder that can be shown lead to that page."""
    here = app.env.docname
    for node in [*doctree.findall(addnodes.download_reference), *doctree.findall(addnodes.pending_xref)]:
        if node.get("reftype") != "myst" or node.get("refdomain") is not None:
            continue
        path = Path(os.path.normpath(app.srcdir / Path(here).parent / node["reftarget"]))
        if path.is_relative_to(app.srcdir) and can_be_shown(path):
            node.replace_self(nodes.reference("", "", *node.children, refuri=uri(app, path), internal=True))


def link_sources(app: Sphinx, doctree: nodes.document) -> None:
    """Add a link to where the source of each class, function and method stands."""
    for node in doctree.findall(addnodes.desc_signature):
        if place := source_of(node.get("module") or "", node.get("fullname") or ""):
            path, line = place
            text = nodes.inline("", "[source]", classes=["viewcode-link"])
            address = f"{uri(app, path)}#{ANCHOR}-{line}"
            node += addnodes.only("", nodes.reference("", "", text, refuri=address, internal=True), expr="html")


def source_of(module: str, name: str) -> tuple[Path, int] | None:
    """The file and the line where an object begins; None where it has no source of its own, as data has."""
    try:
        found: Any = reduce(getattr, name.split("."), importlib.import_module(module))
        found = inspect.unwrap(getattr(found, "fget", None) or getattr(found, "func", None) or found)
        return Path(inspect.getsourcefile(found) or ""), inspect.getsourcelines(found)[1]
    except (AttributeError, OSError, TypeError, ValueError):
        return None


def uri(app: Sphinx, path: Path) -> str:
    """The address of the page of a file or a folder, from the page that is read now; the page will be written."""
    linked(app).add(path)
    return app.builder.get_relative_uri(app.env.docname, page_of(path, app.srcdir))


def linked(app: Sphinx) -> set[Path]:
    """All that has such an address; kept with the pages that have been read."""
    paths: set[Path] = app.env.__dict__.setdefault("file_pages", set())
    return paths


def can_be_shown(path: Path) -> bool:
    """Whether it is a folder, or a text that is not too long."""
    if path.is_dir():
        return True
    if not path.is_file() or path.stat().st_size > LONGEST_BYTES:
        return False
    try:
        path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True


def page_of(path: Path, root: Path) -> str:
    """The name of its page."""
    name = path.relative_to(root).as_posix()
    return f"{name}/index" if path.is_dir() else name


def write_file_pages(app: Sphinx) -> Iterable[tuple[str, dict[str, Any], str]]:
    """Write the page of each file and folder that is linked, and of what is in these folders."""
    assert isinstance(app.builder, StandaloneHTMLBuilder)
    waiting, done = linked(app).copy(), set()
    while waiting:
        path = waiting.pop()
        done.add(path)
        inside = sorted(filter(can_be_shown, path.glob("[!._]*"))) if path.is_dir() else []
        waiting |= set(inside) - done
        page = page_of(path, app.srcdir)
        context = {
            "path": path.relative_to(app.srcdir).as_posix(),
            "root": posixpath.relpath(".", posixpath.dirname(page)),
            "inside": [(page_of(child, path), child.name + "/" * child.is_dir()) for child in inside],
            "code": "" if path.is_dir() else highlighted(app.builder, path),
        }
        target = app.builder.outdir / f"{page}.html"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(app.builder.templates.render("file_page.html", context), encoding="utf-8")
    return ()  # more pages, with navigation


def highlighted(builder: StandaloneHTMLBuilder, path: Path) -> str:
    """The text of a file as HTML, with the colours of its language."""
    try:
        language = get_lexer_for_filename(path.name).aliases[0]
    except ClassNotFound:
        language = "text"
    text = path.read_text(encoding="utf-8")
    return builder.highlighter.highlight_block(text, language, linenos="inline", lineanchors=ANCHOR)


def setup(app: Sphinx) -> ExtensionMetadata:
    """Called by Sphinx."""
    app.connect("doctree-read", link_files, priority=400)  # before Sphinx collects what is to be downloaded
    app.connect("doctree-read", link_sources)
    app.connect("html-collect-pages", write_file_pages)
    return {"parallel_read_safe": False}
