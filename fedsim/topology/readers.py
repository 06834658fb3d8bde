"""Networks drawn elsewhere, whose nodes say what they are: node-link JSON and GraphML become the `explicit` topology.

Of the attributes, nodes' ``kind`` (required), ``device``, ``position_m`` or ``x`` and ``y`` (metres) and links'
``rate_bps`` and ``delay_s`` are read; what else a tool stores (labels, colours) is passed over. A graph without kinds
is read by `imported`. Leaves out directions: a link goes both ways.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedsim.errors import UserError
from fedsim.settings import LONGEST_NAME
from fedsim.topology.explicit import explicit_form
from fedsim.topology.files.drawn import (
    MOST_BYTES,
    Attributes,
    Drawn,
    DrawnLink,
    DrawnNode,
    near,
    number,
    shown,
)
from fedsim.topology.files.graphml import read_graphml
from fedsim.topology.files.json_graphs import read_json
from fedsim.topology.graph import NodeKind

__all__ = ["MOST_BYTES", "check_suffix", "read_drawn", "read_topology_data"]

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
        hand = near(kind, KINDS) if isinstance(kind, str) else ""
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
