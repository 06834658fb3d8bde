"""What the nodes and links of a drawn graph are in a network: names, kinds and places; wires, with rate and delay.

Leaves out wires that are faster in one direction than in the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from fedsim.errors import Misfit, UserError, nearest
from fedsim.settings import LARGEST, SMALLEST
from fedsim.topology.files.drawn import Drawn, DrawnLink, DrawnNode, number, shown, wrong_name
from fedsim.topology.graph import NodeKind

__all__ = [
    "Direction",
    "Parallel",
    "Wire",
    "delay_s",
    "joined",
    "node_coordinates",
    "node_kinds",
    "node_names",
    "rate_bps",
    "require_attribute",
    "value_text",
]

KINDS = {str(kind): kind for kind in NodeKind}
MOST_LISTED, LONGEST_LISTED = 10, 30
Parallel = Literal["refuse", "fastest", "sum"]
Direction = Literal["refuse", "merge"]


def require_attribute(what: str, attribute: str, known: Collection[str], *key: str) -> None:
    """Raise a `Misfit` of *key* unless *attribute* is among the *known* ones of a *what* (node or link)."""
    if attribute in known:
        return
    tidy = [name for name in known if wrong_name(name) is None]
    listed = ", ".join(name[:LONGEST_LISTED] for name in tidy[:MOST_LISTED]) or "none"
    more = f" and {len(tidy) - MOST_LISTED} more" if len(tidy) > MOST_LISTED else ""
    hand = nearest(attribute, tidy)
    raise Misfit(f"no {what} has an attribute {shown(attribute)}{hand} (attributes: {listed}{more})", *key)


def value_text(value: object) -> str | None:
    """A value as the text that stands for it in a scenario; None when it is neither text nor a number.

    >>> value_text("core"), value_text(3), value_text(True), value_text([])
    ('core', '3', 'true', None)
    """
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, (str, int, float)) else None


def node_names(drawn: Drawn, attribute: str | None) -> dict[str, str]:
    """The nodes' ids and their names, which are the values of *attribute* or, without one, the ids themselves.

    Raises `UserError` when a node has no name, one that cannot be one, or that of another node.
    """
    if attribute is None:
        return {name: name for name in drawn.nodes}
    require_attribute("node", attribute, drawn.node_attributes, "name_attribute")
    ids: dict[str, str] = {}
    for node in drawn.nodes.values():
        name = value_text(node.attributes.get(attribute))
        if name is None:
            raise _unnamed(drawn, node, f" has no {attribute!r}")
        if problem := wrong_name(name):
            raise _unnamed(drawn, node, f": {attribute}={shown(name)} is no name, because it {problem}")
        if name in ids:
            raise _unnamed(drawn, node, f": {attribute}={name!r} is also that of node {ids[name]!r}")
        ids[name] = node.name
    return {node: name for name, node in ids.items()}


def _unnamed(drawn: Drawn, node: DrawnNode, problem: str) -> Misfit:
    way_out = "correct the file, or leave name_attribute out to call the nodes by their ids"
    return Misfit(f"{drawn.error(f'{node}{problem}; {way_out}', node.place)}", "name_attribute")


def node_kinds(
    drawn: Drawn,
    called: Mapping[str, str],
    *,
    clouds: Sequence[str],
    attribute: str | None,
    meanings: Mapping[str, NodeKind],
    leaf: NodeKind,
    other: NodeKind,
) -> dict[str, NodeKind]:
    """The kind of every node, by name: named among the *clouds*, said by *attribute*, or else a *leaf* or *other*.

    *called* are the nodes' ids and names; *meanings* the attribute's values, which without any are kinds themselves.
    """
    leaves = _leaves(drawn)
    found = {name: leaf if node in leaves else other for node, name in called.items()}
    if attribute is not None:
        require_attribute("node", attribute, drawn.node_attributes, "kind_attribute")
        for node in drawn.nodes.values():
            value = node.attributes.get(attribute)
            if value is not None:
                found[called[node.name]] = _meaning(drawn, node, attribute, value, meanings or KINDS)
    for position, cloud in enumerate(clouds):
        if cloud not in found:
            raise Misfit(f"{drawn.path} has no node {shown(cloud)}{nearest(cloud, found)}", "clouds", position)
        if cloud in clouds[:position]:
            raise Misfit(f"{shown(cloud)} stands twice; name each cloud once", "clouds", position)
        found[cloud] = NodeKind.CLOUD
    return found


def _leaves(drawn: Drawn) -> set[str]:
    """The nodes that are linked to one other node."""
    neighbours: dict[str, set[str]] = {}
    for link in drawn.links:
        neighbours.setdefault(link.source, set()).add(link.target)
        neighbours.setdefault(link.target, set()).add(link.source)
    return {node for node, others in neighbours.items() if len(others) == 1}


def _meaning(
    drawn: Drawn, node: DrawnNode, attribute: str, value: object, meanings: Mapping[str, NodeKind]
) -> NodeKind:
    text = value_text(value)
    if text is not None and text in meanings:
        return meanings[text]
    known = ", ".join(meanings)
    problem = f"{node}: {attribute}={shown(value)} is none of {known}; say in kinds what it means"
    raise Misfit(str(drawn.error(f"{problem}{nearest(text or '', meanings)}", node.place)), "kinds")


def node_coordinates(
    drawn: Drawn, called: Mapping[str, str], attributes: tuple[str, str], most: tuple[float, float]
) -> dict[str, tuple[float, float]]:
    """The two *attributes* of each node that has both, by name, none of them beyond plus or minus *most*.

    Raises `UserError` when a node has only one of them, or one that is no such number.
    """
    for attribute in attributes:
        require_attribute("node", attribute, drawn.node_attributes, "position")
    found = {}
    for node in drawn.nodes.values():
        values = [node.attributes.get(attribute) for attribute in attributes]
        if values == [None, None]:
            continue
        one, other = (
            _coordinate(drawn, node, attribute, value, limit)
            for attribute, value, limit in zip(attributes, values, most, strict=True)
        )
        found[called[node.name]] = one, other
    return found


def _coordinate(drawn: Drawn, node: DrawnNode, attribute: str, value: Any, most: float) -> float:
    if value is None:
        raise _misplaced(drawn, node, f" has no {attribute!r}, and a position needs both; add it")
    coordinate = number(value)
    if coordinate is None or abs(coordinate) > most:
        raise _misplaced(drawn, node, f": {attribute}={shown(value)} must be a number from {-most:g} to {most:g}")
    return coordinate


def _misplaced(drawn: Drawn, node: DrawnNode, problem: str) -> UserError:
    return Misfit(str(drawn.error(f"{node}{problem}", node.place)), "position")


class Wire(NamedTuple):
    """Rate and delay; None where the scenario's default holds."""

    rate_bps: float | None
    delay_s: float | None


def rate_bps(
    drawn: Drawn, link: DrawnLink, *, attribute: str, unit_bps: float, meanings: Mapping[str, float]
) -> float | None:
    """The rate that the link's *attribute* gives, in bit/s, or None where it has none.

    *meanings* are the rates of values that are no numbers; numbers count in units of *unit_bps*. Raises `UserError`.
    """
    value = link.attributes.get(attribute)
    if value is None:
        return None
    text = value_text(value)
    if text is not None and text in meanings:
        return meanings[text]
    count = number(value)
    if count is None:
        problem = f"{link}: {attribute}={shown(value)} must be a number; say in rates what else it means, in bit/s"
        raise Misfit(str(drawn.error(problem, link.place)), "rates")
    rate = count * unit_bps
    if not (SMALLEST <= rate <= LARGEST or math.isinf(count)):
        problem = f"{link}: {attribute}={shown(value)} is {rate:g} bit/s, and must be from {SMALLEST:g} to {LARGEST:g}"
        raise Misfit(str(drawn.error(f"{problem}; correct the file, or rate_unit_bps", link.place)), "rate_attribute")
    return rate


def delay_s(drawn: Drawn, link: DrawnLink, *, attribute: str, unit_s: float) -> float | None:
    """The delay that the link's *attribute* gives, in seconds, or None where it has none. Raises `UserError`."""
    value = link.attributes.get(attribute)
    if value is None:
        return None
    count = number(value)
    if count is None or not 0 <= count * unit_s <= LARGEST:
        problem = f"{link}: {attribute}={shown(value)} must be a number of at least 0, and at most {LARGEST:g} s"
        raise Misfit(str(drawn.error(f"{problem}; correct the file, or delay_unit_s", link.place)), "delay_attribute")
    return count * unit_s


def joined(
    drawn: Drawn, wire: Callable[[DrawnLink], Wire], parallel: Parallel, directed: Direction
) -> list[tuple[str, str, Wire]]:
    """One wire for each two nodes that are linked, in the order of the links; the ends are ids.

    Raises `UserError` for links from a node to itself, links that are directed or parallel unless that is allowed, and
    where what is allowed has no clear meaning.
    """
    pairs: dict[tuple[str, str], list[DrawnLink]] = {}
    for link in drawn.links:
        if link.source == link.target:
            problem = f"{link.source!r} is linked to itself, and a link must join two nodes; remove it"
            raise drawn.error(problem, link.place)
        if link.directed and directed == "refuse":
            problem = f"{link} has a direction, and a wire goes both ways; write directed: merge to drop directions"
            raise Misfit(str(drawn.error(problem, link.place)), "directed")
        back = link.target, link.source
        pairs.setdefault(back if back in pairs else (link.source, link.target), []).append(link)
    return [(*ends, _one(drawn, alike, wire, parallel)) for ends, alike in pairs.items()]


def _one(drawn: Drawn, links: Sequence[DrawnLink], wire: Callable[[DrawnLink], Wire], parallel: Parallel) -> Wire:
    """The wire that stands for all *links* between two nodes."""
    first = links[0]
    if len({link.directed for link in links}) > 1:
        problem = f"{first}: one link between these has a direction and another has none; correct the file"
        raise drawn.error(problem, links[1].place)
    there = [link for link in links if link.source == first.source or not link.directed]
    back = [link for link in links if link.source != first.source and link.directed]
    one = _together(drawn, there, [wire(link) for link in there], parallel)
    if back:
        other = _together(drawn, back, [wire(link) for link in back], parallel)
        if one != other:
            problem = f"{first} has {_said(one)}, and the way back {_said(other)}; a wire is the same both ways"
            raise Misfit(str(drawn.error(f"{problem}: correct the file", back[0].place)), "directed")
    return one


def _together(drawn: Drawn, links: Sequence[DrawnLink], wires: Sequence[Wire], parallel: Parallel) -> Wire:
    if len(links) == 1:
        return wires[0]
    what = f"{links[0]} is one of {len(links)} links between the same nodes"
    if parallel == "refuse":
        problem = f"{what}; keep one, or write parallel: fastest or parallel: sum"
        raise Misfit(str(drawn.error(problem, links[1].place)), "parallel")
    rates = [wire.rate_bps for wire in wires if wire.rate_bps is not None]
    delays = [wire.delay_s for wire in wires if wire.delay_s is not None]
    if parallel == "fastest":
        return max(wires, key=lambda wire: (wire.rate_bps or 0.0, -(wire.delay_s or 0.0)))
    if not rates:
        problem = f"{what}, and without rates there is no sum of them; set rate_attribute or rate_bps"
        raise Misfit(str(drawn.error(problem, links[1].place)), "parallel")
    total_bps = sum(rates)
    if LARGEST < total_bps < math.inf:
        raise drawn.error(f"{what}, and the sum of their rates is larger than {LARGEST:g} bit/s", links[1].place)
    return Wire(total_bps, max(delays, default=None))


def _said(wire: Wire) -> str:
    said = [
        f"{quantity}={value:g}" if value is not None else f"no {quantity}" for quantity, value in wire._asdict().items()
    ]
    return " and ".join(said)
