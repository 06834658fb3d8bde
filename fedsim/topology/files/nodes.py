"""What the nodes of a drawn graph are in a network: their names, their kinds and where they stand."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fedsim.errors import Misfit, UserError
from fedsim.topology.files.drawn import Drawn, DrawnNode, near, number, shown, wrong_name
from fedsim.topology.graph import NodeKind

__all__ = ["node_coordinates", "node_kinds", "node_names", "require_attribute", "value_text"]

KINDS = {str(kind): kind for kind in NodeKind}
MOST_LISTED, LONGEST_LISTED = 10, 30


def require_attribute(what: str, attribute: str, known: Collection[str], *key: str) -> None:
    """Raise a `Misfit` of *key* unless *attribute* is among the *known* ones of a *what* (node or link)."""
    if attribute in known:
        return
    tidy = [name for name in known if wrong_name(name) is None]
    listed = ", ".join(name[:LONGEST_LISTED] for name in tidy[:MOST_LISTED]) or "none"
    more = f" and {len(tidy) - MOST_LISTED} more" if len(tidy) > MOST_LISTED else ""
    hand = near(attribute, tidy)
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
            raise Misfit(f"{drawn.path} has no node {shown(cloud)}{near(cloud, found)}", "clouds", position)
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
    raise Misfit(str(drawn.error(f"{problem}{near(text or '', meanings)}", node.place)), "kinds")


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
