"""GraphML, the XML of most graph tools (http://graphml.graphdrawing.org), read in one pass.

All values are text here. Of yEd's graphics the first label of a node or edge (``NodeLabel``, ``EdgeLabel``) and the
middle of a node (``Geometry.x``, ``Geometry.y``, in points) are attributes. Leaves out all other graphics, ports, and
what is said of the whole graph. Refused are document types (entities can unfold a small file into gigabytes, and read
other files), hyperedges, nested graphs, parts in other files, and what would be lost or merged without a word.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar
from xml.parsers.expat import ErrorString, ExpatError, ParserCreate

from fedsim.errors import UserError
from fedsim.topology.files.drawn import MOST_ATTRIBUTES, MOST_VALUES, Attributes, Drawn, number, shown

__all__ = ["NAMESPACE", "read_graphml"]

NAMESPACE = "http://graphml.graphdrawing.org/xmlns"
YWORKS = "http://www.yworks.com/xml/graphml"
MOST_DEPTH = 100
LONGEST_NAMESPACE = 1_000
MOST_TAGS = 2_000_000

PARENTS = {
    "graphml": {""},
    "key": {"graphml"},
    "default": {"key"},
    "desc": {"graphml", "key", "graph", "node", "edge", "port"},
    "data": {"graphml", "graph", "node", "edge", "port"},
    "graph": {"graphml"},
    "node": {"graph"},
    "edge": {"graph"},
    "port": {"node", "port"},
}
"""Element -> the elements in which it may stand."""
REFUSED = {
    "hyperedge": "joins any number of nodes; replace it by a node with links",
    "locator": "leads to another file; put its content here",
}
OWNERS = {"graphml", "graph", "node", "edge", "port"}
"""What data may belong to."""
CLOSED = {"data", "default", "desc"}
"""Elements whose inside is not GraphML."""
LABELS = {f"{YWORKS} NodeLabel": "NodeLabel", f"{YWORKS} EdgeLabel": "EdgeLabel"}
GEOMETRY = f"{YWORKS} Geometry"

T = TypeVar("T")


def read_graphml(path: str, text: str) -> Drawn:
    """The graph in *text*, the content of the file *path*; keys' defaults count as values.

    Raises `UserError` with the line when it is none.

    >>> keys = '<key id="d0" for="node" attr.name="label" attr.type="string"/>'
    >>> node = '<node id="n0"><data key="d0">Vienna</data></node>'
    >>> drawn = read_graphml("zoo.graphml", f'<graphml xmlns="{NAMESPACE}">{keys}<graph>{node}</graph></graphml>')
    >>> drawn.nodes["n0"].attributes["label"]
    'Vienna'
    """
    drawn = Drawn(path, only_text=True)
    if "\0" in text:  # the parser would take it for UTF-16
        raise drawn.error("the file holds null characters, and must be text in UTF-8; save it as UTF-8")
    for sign, most, what in (("=", MOST_VALUES, "values"), ("<", MOST_TAGS, "tags")):  # the parser keeps some of each
        if text.count(sign) > most:
            raise drawn.error(f"there are more than {most:,} {what}, which is too many for a file")
    _Reader(drawn, text).read()
    drawn.check_ends()
    return drawn


@dataclass(slots=True)
class _Key:
    """The declaration of an attribute."""

    name: str
    domain: str


@dataclass(slots=True)
class _Owner:
    """A node, an edge or whatever else has data."""

    attributes: dict[str, str]
    place: str
    data: dict[str, str] = field(default_factory=dict)


class _Reader:
    """Takes the parser's events one by one."""

    def __init__(self, drawn: Drawn, text: str) -> None:
        self._drawn = drawn
        self._text = text
        self._parser = ParserCreate(namespace_separator=" ")
        self._open: list[str] = []
        """The elements that are open; ``-`` is what is not GraphML."""
        self._closed_from: int | None = None
        """How many elements are around the outermost one whose inside is not GraphML."""
        self._owners: list[_Owner] = []
        self._keys: dict[str, _Key] = {}
        self._key = _Key("", "")
        """The one of the data or the default that is open, or was last."""
        self._texts: dict[int, tuple[str, list[str]]] = {}
        """Depth of an open element whose own text is read -> the attribute that it becomes, and its pieces."""
        self._defaults: dict[str, Attributes] = {"node": {}, "edge": {}}
        self._graphs = 0
        self._directed = False

    def read(self) -> None:
        parser = self._parser
        parser.buffer_text = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._document_type
        parser.StartNamespaceDeclHandler = self._namespace
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        try:
            parser.Parse(self._text, True)
        except ExpatError as error:
            place = f":{error.lineno}:{error.offset + 1}"
            raise self._drawn.error(f"this is not GraphML: {ErrorString(error.code)}", place) from error
        if self._graphs != 1:
            raise self._drawn.error(f"the file holds {self._graphs} graphs, and must hold one <graph>")

    def _error(self, problem: str) -> UserError:
        return self._drawn.error(problem, self._place())

    def _place(self) -> str:
        return f":{self._parser.CurrentLineNumber}"

    # What may not be

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        """The text was read as UTF-8; where the file says another encoding, it may mean other letters."""
        if encoding and encoding.lower() not in {"utf-8", "us-ascii"} and not self._text.isascii():
            raise self._error(f"the file says encoding={shown(encoding)}, and must be in UTF-8; save it as UTF-8")

    def _document_type(self, name: str, system: str | None, public: str | None, inside: bool) -> None:
        raise self._error("a GraphML file must not contain <!DOCTYPE; remove the document type declaration")

    def _namespace(self, prefix: str | None, name: str | None) -> None:
        if name and len(name) > LONGEST_NAMESPACE:  # the parser repeats it for every element
            raise self._error(f"a namespace has more than {LONGEST_NAMESPACE:,} characters; shorten it")

    # Elements and text

    def _start(self, full_name: str, attributes: dict[str, str]) -> None:
        depth = len(self._open)
        if depth == MOST_DEPTH:
            raise self._error(f"elements are nested more than {MOST_DEPTH} deep")
        namespace, _, name = full_name.rpartition(" ")
        is_ours = not namespace or namespace.startswith(NAMESPACE)
        if depth == 0 and not (is_ours and name == "graphml"):
            raise self._error(
                f"this is not GraphML: the file begins with <{shown(name)[1:-1]}>, and must begin with "
                f'<graphml xmlns="{NAMESPACE}">'
            )
        if self._closed_from is not None or not is_ours:
            self._open.append("-")
            self._take_graphics(full_name, attributes)
        else:
            self._check_place(name)
            self._open.append(name)
            self._begin(name, attributes)
        if self._closed_from is None and self._open[-1] in CLOSED | {"-"}:
            self._closed_from = depth

    def _check_place(self, name: str) -> None:
        parent = self._open[-1] if self._open else ""
        if name in REFUSED:
            raise self._error(f"a <{name}> {REFUSED[name]}")
        if name not in PARENTS:
            raise self._error(f"<{shown(name)[1:-1]}> is no element of GraphML; correct or remove it")
        if name == "graph" and parent in {"node", "edge"}:
            what = f"{parent} {shown(self._owners[-1].attributes.get('id', ''))}"
            raise self._error(f"{what} contains a graph, and only flat ones are read; take its nodes out of it")
        if parent not in PARENTS[name]:
            homes = " or ".join(f"<{home}>" for home in sorted(PARENTS[name]) if home) or "no other element"
            raise self._error(f"<{name}> stands in <{parent}>, and must stand in {homes}")

    def _begin(self, name: str, attributes: dict[str, str]) -> None:
        if name in OWNERS:
            self._owners.append(_Owner(attributes, self._place()))
        if name == "key":
            self._declare(attributes)
        elif name == "graph":
            self._graphs += 1
            directions = {"directed": True, "undirected": False}
            self._directed = self._choice(attributes, "edgedefault", directions, default=False)
        elif name == "data":
            self._key = self._declared(attributes)
        if name in {"data", "default"}:
            self._texts[len(self._open)] = self._key.name, []

    def _characters(self, text: str) -> None:
        read = self._texts.get(len(self._open))
        if read is not None:
            read[1].append(text)
        elif self._closed_from is None and text.strip():
            raise self._error(f"the text {shown(text.strip())} stands outside of <data>; remove it")

    def _end(self, full_name: str) -> None:
        attribute, pieces = self._texts.pop(len(self._open), ("", []))
        text = "".join(pieces).strip()
        name = self._open.pop()
        if self._closed_from == len(self._open):
            self._closed_from = None
        if name == "data":
            self._store(attribute, text)
        elif name == "default":
            self._store_default(text)
        elif attribute and text:  # a label of yEd's
            self._owners[-1].data.setdefault(attribute, text)
        elif name in OWNERS:
            self._add(name, self._owners.pop())

    # Attributes

    def _declare(self, attributes: dict[str, str]) -> None:
        declared = self._required(attributes, "id", "a <key>")
        if declared in self._keys:
            raise self._error(f"two keys have the id {shown(declared)}; rename one")
        if len(self._keys) == MOST_ATTRIBUTES:
            raise self._error(f"there are more than {MOST_ATTRIBUTES:,} keys; remove some")
        name = attributes.get("attr.name") or attributes.get("yfiles.type") or declared
        self._key = self._keys[declared] = _Key(name, attributes.get("for", "all"))

    def _declared(self, attributes: dict[str, str]) -> _Key:
        wanted = self._required(attributes, "key", "a <data>")
        if wanted not in self._keys:
            raise self._error(f"there is no key {shown(wanted)} above this <data>; declare it with <key>")
        return self._keys[wanted]

    def _store(self, attribute: str, text: str) -> None:
        data = self._owners[-1].data
        if attribute in data:
            raise self._error(f"the attribute {shown(attribute)} stands twice in one place; keep one")
        data[attribute] = text

    def _store_default(self, text: str) -> None:
        for domain, defaults in self._defaults.items():
            if self._key.domain in {domain, "all"} and text:
                defaults[self._key.name] = text

    def _take_graphics(self, full_name: str, attributes: dict[str, str]) -> None:
        if full_name in LABELS and self._owners:
            self._texts[len(self._open)] = LABELS[full_name], []
        elif full_name == GEOMETRY and self._owners:
            for axis, size in (("x", "width"), ("y", "height")):
                corner, extent = number(attributes.get(axis)), number(attributes.get(size, "0"))
                if corner is not None and extent is not None:
                    self._owners[-1].data.setdefault(f"Geometry.{axis}", repr(corner + extent / 2))

    # Nodes and links

    def _add(self, name: str, owner: _Owner) -> None:
        if name == "node":
            called = self._required(owner.attributes, "id", "a <node>")
            self._drawn.add_node(called, _given(owner.data), owner.place, defaults=self._defaults[name])
        elif name == "edge":
            source, target = (self._required(owner.attributes, end, "an <edge>") for end in ("source", "target"))
            directions = {"true": True, "false": False}
            self._drawn.add_link(
                source,
                target,
                _given(owner.data),
                owner.place,
                directed=self._choice(owner.attributes, "directed", directions, default=self._directed),
                defaults=self._defaults[name],
            )

    def _required(self, attributes: dict[str, str], key: str, what: str) -> str:
        value = attributes.get(key)
        if not value:
            raise self._error(f"{what} has no {key}; add it")
        return value

    def _choice(self, attributes: dict[str, str], key: str, choices: Mapping[str, T], *, default: T) -> T:
        value = attributes.get(key)
        if value is None:
            return default
        if value not in choices:
            raise self._error(f"{key}={shown(value)} must be {' or '.join(choices)}")
        return choices[value]


def _given(data: Mapping[str, str]) -> Attributes:
    """What is empty has no value, not even the default one."""
    return {attribute: text or None for attribute, text in data.items()}
