"""A graph that another tool wrote: without a word of what a network study needs, where the scenario says the rest; or
with the kinds of its nodes, when node-link JSON and GraphML become the `explicit` topology.

Then of its attributes, nodes' ``kind`` (required), ``device``, ``position_m`` or ``x`` and ``y`` (metres) and links'
``rate_bps`` and ``delay_s`` are read; what else a tool stores (labels, colours) is passed over. Leaves out links that
are faster in one direction than in the other, and mixes of several files.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import PrivateAttr, ValidationInfo, model_validator

from fedsim.errors import Misfit, UserError, nearest
from fedsim.files import read_text_file
from fedsim.settings import LONGEST_NAME
from fedsim.topology.explicit import Explicit, explicit_form, to_explicit
from fedsim.topology.files.drawn import MOST_BYTES, Attributes, Drawn, DrawnLink, DrawnNode, number, shown
from fedsim.topology.files.graphml import read_graphml
from fedsim.topology.files.json_graphs import read_json
from fedsim.topology.files.network import network
from fedsim.topology.files.settings import DrawnSettings
from fedsim.topology.graph import NodeKind, Topology
from fedsim.topology.layout import numbered
from fedsim.topology.settings import TopologySettings

__all__ = ["MOST_BYTES", "Imported", "check_suffix", "read_drawn", "read_topology_data", "self_contained"]
READERS: dict[str, Callable[[str, str], Drawn]] = {".json": read_json, ".graphml": read_graphml}
"""By the end of a file's name."""
KINDS = tuple(map(str, NodeKind))
NODE_ATTRIBUTES = ("kind", "device", "position_m", "x", "y")
LINK_ATTRIBUTES = ("rate_bps", "delay_s")
NUMBERS = ("x", "y", "rate_bps", "delay_s")
OTHER_WORDS = {
    **dict.fromkeys(("rate", "bandwidth", "capacity", "throughput", "bitrate", "datarate", "speed"), "rate_bps"),
    **dict.fromkeys(("delay", "latency"), "delay_s"),
}
"""How other tools begin the names of what fedsim reads."""


class Imported(DrawnSettings):
    """A graph of another tool, GraphML or JSON, with what the tool leaves unsaid.

    A node is one of `clouds`, or of the kind that `kind_attribute` says, or else of `leaf_kind` or `kind`. Links of
    sensors are air: no rate or delay is read for them. A run folder gets the network written out as `explicit`, so that
    it does not need the file.
    """

    name: Literal["imported"] = "imported"

    _topology: Topology = PrivateAttr()

    def build(self) -> Topology:
        """The network, as the file was when these settings were made."""
        return self._topology

    def written_out(self) -> dict[str, Any]:
        """What `Explicit` takes for the same network; sensors that differ in number only are one entry each station."""
        written = to_explicit(self._topology)
        nodes, count = written["nodes"], self.sensors_per_station
        stations = [name for name, node in nodes.items() if node["kind"] == NodeKind.BASE_STATION]
        if count is None or self.radius_m is not None or any(f"{station}/sensor" in nodes for station in stations):
            return written
        for station in stations:
            alike = [nodes.pop(name) for name in numbered(f"{station}/sensor", count)]
            nodes[f"{station}/sensor"] = {**alike[0], "count": count}
        return written

    @model_validator(mode="after")
    def _read(self, info: ValidationInfo) -> Self:
        path = _folder(info.context) / self.path
        try:
            check_suffix(path)
            text = read_text_file(path, what="a graph file", most_bytes=MOST_BYTES)
            self._topology = network(read_drawn(path, text), self)
        except Misfit:
            raise
        except UserError as error:
            raise Misfit(str(error), "path") from error
        return self


def self_contained(topology: TopologySettings) -> TopologySettings:
    """The same network without a file that it needs: what is `Imported` becomes `Explicit`."""
    return Explicit.model_validate(topology.written_out()) if isinstance(topology, Imported) else topology


def _folder(document: object) -> Path:
    """The folder of the file in which these settings are written, which the validation's context tells.

    The scenario's document has its *source* and, for what was read from another file, that one as its origin.
    """
    location_of, source = getattr(document, "location_of", None), getattr(document, "source", "")
    location = location_of(("topology", "path")) if callable(location_of) else None
    # Without a line, it is the command line's.
    other = location.origin if location is not None and location.line else None
    return Path(other or source).parent


def check_suffix(path: Path) -> None:
    """Raises `UserError` unless the end of the file's name is that of a known format."""
    if path.suffix.lower() not in READERS:
        raise UserError(f"{_shown(path)}: a graph file must end in {' or '.join(READERS)}; rename or convert it")


def read_drawn(path: Path, text: str) -> Drawn:
    """The graph in *text*, the content of the file *path*. Raises `UserError` when it is none."""
    check_suffix(path)
    return READERS[path.suffix.lower()](_shown(path), text)


def _shown(path: Path) -> str:
    return str(path) if str(path).isprintable() else repr(str(path))[1:-1]


def read_topology_data(path: Path, text: str) -> dict[str, Any]:
    """The content *text* of the file *path* (``.json`` or ``.graphml``) as the mapping that `Explicit` takes.

    Raises `UserError` when the text is not of the format that the suffix says, a node lacks its kind, two share a name,
    a link ends nowhere, or an attribute is nearly, but not quite, one that fedsim reads. `Explicit` checks the values.
    """
    if path.suffix.lower() not in READERS:
        raise UserError(f"{path}: a topology file must end in .yaml, {' or '.join(READERS)}; rename or convert it")
    drawn = read_drawn(path, text)
    for attributes, known in (
        (drawn.node_attributes, NODE_ATTRIBUTES),
        (drawn.link_attributes, LINK_ATTRIBUTES),
    ):
        _refuse_near_misses(drawn, attributes, known)
    nodes = {name: _node(drawn, node) for name, node in drawn.nodes.items()}
    links = [(link.source, link.target, _known(drawn, link, LINK_ATTRIBUTES)) for link in drawn.links]
    return explicit_form(nodes, links)


def _node(drawn: Drawn, node: DrawnNode) -> Attributes:
    read = _known(drawn, node, NODE_ATTRIBUTES)
    if problem := _wrong(read):
        raise drawn.error(f"{node}{problem}", node.place)
    x, y = read.pop("x", None), read.pop("y", None)
    if x is not None:
        read["position_m"] = [x, y]
    return read


def _wrong(read: Attributes) -> str | None:
    """What is wrong with the attributes of a node, if anything."""
    kind, device = read.get("kind"), read.get("device")
    if kind is None:
        return (
            f" has no kind, and must have one of {', '.join(KINDS)}; give it the attribute kind, or say what the "
            "nodes are with the topology {name: imported, path: ...}"
        )
    if kind not in KINDS:
        hand = nearest(kind, KINDS) if isinstance(kind, str) else ""
        return f": kind={shown(kind)} must be one of {', '.join(KINDS)}{hand}"
    if isinstance(device, str) and len(device) > LONGEST_NAME:
        return f": device={shown(device)} has {len(device):,} characters, and a name has at most {LONGEST_NAME}"
    if ("x" in read) != ("y" in read):
        return " has only one of x and y, and a position needs both; add the other one"
    if "x" in read and "position_m" in read:
        return " has position_m, x and y, and must have one place; remove position_m"
    return None


def _known(drawn: Drawn, owner: DrawnNode | DrawnLink, known: tuple[str, ...]) -> Attributes:
    """The *known* ones of its attributes that have a value."""
    read = {
        attribute: owner.attributes[attribute] for attribute in known if owner.attributes.get(attribute) is not None
    }
    if drawn.only_text:
        for attribute in filter(read.__contains__, NUMBERS):
            value = number(read[attribute])
            if value is None:
                raise drawn.error(f"{owner}: {attribute}={shown(read[attribute])} must be a number", owner.place)
            read[attribute] = value
    return read


def _refuse_near_misses(
    drawn: Drawn, attributes: Mapping[str, DrawnNode] | Mapping[str, DrawnLink], known: tuple[str, ...]
) -> None:
    """An attribute that is nearly one of the *known* would change results silently if it were passed over."""
    for attribute, owner in attributes.items():
        close = difflib.get_close_matches(attribute, known, n=1, cutoff=0.8) if len(attribute) <= LONGEST_NAME else []
        plain = attribute.lower().replace("_", "").replace(" ", "")
        close += [meant for word, meant in OTHER_WORDS.items() if plain.startswith(word) and meant in known]
        if close and attribute not in known:
            problem = f"{owner}: {shown(attribute)} is not read; did you mean {close[0]!r}? Rename or remove it"
            raise drawn.error(problem, owner.place)
