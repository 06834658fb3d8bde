"""What the links of a drawn graph are in a network: one wire between two nodes, with its rate and its delay.

Leaves out wires that are faster in one direction than in the other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple

from fedsim.errors import Misfit
from fedsim.settings import LARGEST, SMALLEST
from fedsim.topology.files.drawn import Drawn, DrawnLink, number, shown
from fedsim.topology.files.nodes import value_text

__all__ = ["Direction", "Parallel", "Wire", "delay_s", "joined", "rate_bps"]

Parallel = Literal["refuse", "fastest", "sum"]
Direction = Literal["refuse", "merge"]


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
