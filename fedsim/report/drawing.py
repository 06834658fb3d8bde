"""Drawings of networks as SVG that may stand inside a page: only shapes, without scripts, links and styles.

Matplotlib draws them, with letters as shapes, so a user's text is in them as curves only.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from fedsim.experiment.network_drawings import draw_run
from fedsim.experiment.results import Results

__all__ = ["cleaned", "drawing_of"]

_SVG, _XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
_SHAPES = frozenset(("svg", "defs", "g", "path", "use", "clipPath", "rect", "image"))
_PROPERTIES = frozenset(
    (
        *("clip-path", "clip-rule", "d", "fill", "fill-opacity", "fill-rule", "height", "id", "opacity", "stroke"),
        *("stroke-dasharray", "stroke-dashoffset", "stroke-linecap", "stroke-linejoin", "stroke-miterlimit"),
        *("stroke-opacity", "stroke-width", "transform", "viewBox", "width", "x", "y"),
    )
)
_PLACE = re.compile(r"url\(#([\w-]+)\)")
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")


def drawing_of(results: Results, prefix: str) -> str:
    """The network of a run and its loads, a panel for each protocol; *prefix* tells its names from others in the page.

    Raises `UserError` when the run folder has lost what is to be drawn.
    """
    with TemporaryDirectory() as folder:
        text = draw_run(results, Path(folder) / "network.svg").read_text(encoding="utf-8")
    return cleaned(text, prefix)


def cleaned(svg: str, prefix: str) -> str:
    """The shapes of an *svg*, with *prefix* before each of its ids; whatever is not known to be a shape is left out.

    >>> shapes = '<script>1</script><g id="a" onload="1" style="fill: red; behavior: url(x)"/>'
    >>> print(cleaned(f'<svg xmlns="http://www.w3.org/2000/svg">{shapes}</svg>', "map").partition(">")[2])
    <g id="map-a" fill="red" /></svg>
    """
    root = ElementTree.fromstring(svg)
    _clean(root, prefix)
    for name in ("width", "height"):
        root.attrib.pop(name, None)
    root.attrib |= {"stroke-linejoin": "round", "stroke-linecap": "butt"}  # what its own style sheet said
    ElementTree.register_namespace("", _SVG[1:-1])
    ElementTree.register_namespace("xlink", _XLINK[1:-1])
    return ElementTree.tostring(root, encoding="unicode")


def _clean(element: ElementTree.Element, prefix: str) -> None:
    attributes = dict(element.attrib)
    for declaration in attributes.pop("style", "").split(";"):
        name, _, value = declaration.partition(":")
        attributes[name.strip()] = value.strip()
    element.attrib.clear()
    for name, value in attributes.items():
        if name in _PROPERTIES and (kept := _property(name, value, prefix)):
            element.set(name, kept)
        elif name in (f"{_XLINK}href", "href") and (kept := _reference(element, value, prefix)):
            element.set("href", kept)
    element.text = element.tail = None
    for child in list(element):
        if child.tag in {f"{_SVG}{shape}" for shape in _SHAPES}:
            _clean(child, prefix)
        else:
            element.remove(child)


def _property(name: str, value: str, prefix: str) -> str:
    if name == "id":
        return f"{prefix}-{value}"
    inside = _PLACE.sub("", value)
    return "" if "url" in inside.lower() or "\\" in inside else _PLACE.sub(rf"url(#{prefix}-\1)", value)


def _reference(element: ElementTree.Element, value: str, prefix: str) -> str:
    """Another shape of the same drawing, or the colours of a scale as a picture."""
    if element.tag == f"{_SVG}image":
        return "".join(value.split()) if _PICTURE.fullmatch(value) else ""
    return f"#{prefix}-{value[1:]}" if re.fullmatch(r"#[\w-]+", value) else ""
