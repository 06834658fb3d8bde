"""What the marks of a network's drawing mean: the entries of its legend, and its caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from matplotlib.artist import Artist
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from fedsim.topology.graph import NodeKind
from fedsim.viz.names import shortened
from fedsim.viz.topology_map.detail import (
    CASING,
    DARK,
    FAILING,
    IDLE,
    LOST,
    MARKERS,
    NO_AIR,
    OWN_CHANNELS,
    PLAIN_DISC,
    PLAIN_WIRE,
    Colour,
    Detail,
    Scale,
    class_look,
)
from fedsim.viz.topology_map.hues import UNCOVERED, UNKNOWN, Hues
from fedsim.viz.topology_map.names import sensors
from fedsim.viz.topology_map.places import Net, Places

__all__ = ["caption", "handles"]

_SIZE = 7.0
LONGEST_CLASS = 24  # letters
_NOUNS = {NodeKind.CLOUD: "cloud", NodeKind.EDGE: "edge server", NodeKind.BASE_STATION: "base station"}


def handles(net: Net, places: Places, scale: Scale | None, hues: Hues | None = None) -> Iterator[Artist]:
    """A mark and what it means, with the number of those there are."""
    detail = Detail.of(places)
    for kind, noun in _NOUNS.items():
        count = len(net.of_kind(kind))
        if count and (kind != NodeKind.BASE_STATION or detail.station is not None):
            yield _marker(kind, f"{count:,} {noun}{'' if count == 1 else 's'}")
    counts = sorted(map(len, net.cells.values()))
    cells = f"{len(counts):,} cell{'' if len(counts) == 1 else 's'}"
    several_classes = len(net.class_sizes) > 1
    if detail.sensor is not None:
        if not several_classes:
            yield _marker(NodeKind.SENSOR, sensors(sum(counts)))
        yield _disc(PLAIN_DISC, cells)
    else:
        each = sensors(counts[0]) if counts[0] == counts[-1] else f"{counts[0]:,} to {sensors(counts[-1])}"
        if detail.station is None and len(counts) > 1:
            cells = f"{len(counts):,} base stations, each a cell"
        yield _disc(PLAIN_DISC, f"{cells} of {each}")
    if several_classes:
        yield from _classes(net, as_markers=detail.sensor is not None, coloured=scale is None and hues is None)
    if hues is not None:
        yield from _hues(hues, as_markers=detail.sensor is not None)
    if wires := net.wires.number_of_edges():
        yield _wire(f"{wires:,} wire{'' if wires == 1 else 's'}")
    if net.failing:
        yield _wire(f"{len(net.failing):,} with planned outages", failing=True)
    if scale is not None:
        if None in scale.measured.every():
            yield _disc(IDLE, "nothing sent")
        if scale.measured.has_unshared():
            yield Patch(facecolor=IDLE, edgecolor=CASING, hatch=OWN_CHANNELS, label="a channel for each sender")


def caption(net: Net, places: Places, scale: Scale | None, seeds: int, hues: Hues | None = None) -> Iterator[str]:
    """Sentences about the colours and the places."""
    if scale is not None:
        mean = f", mean over {seeds} seeds" if seeds > 1 else ""
        if scale.measured.quantity == "utilisation":
            yield f"Colour: utilisation, the part of a channel's time that was used{mean}."
        else:
            yield f"Colour: bytes put on a channel in the whole run{mean}."
        yield "Each half of a wire has the colour of what the node at its end sends."
        yield from _about_discs(scale)
        if scale.measured.has_unshared():
            yield "Where each sender has a channel of its own (hatched, or a grey wire) nothing can be full."
    elif hues is not None:
        yield f"Colour: {hues.words} at time zero of seed {hues.seed}."
        if Detail.of(places).sensor is None:
            yield "Each cell is divided as its devices are among the colours."
    elif Detail.of(places).sensor is None and len(net.class_sizes) > 1:
        yield "Each cell is divided as its devices are among the classes."
    if not places.in_metres:
        why = (
            "Where they are, nodes would hide each other or wires" if places.crowded else "The nodes have no positions"
        )
        yield f"{why}: each one stands below the next on its way to the cloud."
    if places.divider is not None:
        yield "What is above the dotted line has no position."
    if places.enlarged:
        yield "Small cells are drawn larger than they are."
    if places.moved:
        moved = "1 node is" if places.moved == 1 else f"{places.moved:,} nodes are"
        yield f"{moved} drawn beside the position, where another one stands."


def _about_discs(scale: Scale) -> Iterator[str]:
    channels = {len(loads) for every in scale.measured.by_protocol.values() for loads in every.air.values()}
    if channels == {1}:
        yield "A disc is the air of a cell, both directions together, as they share a channel."
    elif channels == {2}:
        yield "A disc is the air of a cell: uplink in its left half, downlink in its right half."
    else:
        yield "A disc is the air of a cell: both directions together, or uplink (left half) and downlink (right half)."


def _classes(net: Net, *, as_markers: bool, coloured: bool) -> Iterator[Artist]:
    """The classes of devices, where there are several; where neither shape nor colour shows them, their numbers."""
    for number, (device_class, count) in enumerate(net.class_sizes.items()):
        marker, colour = class_look(number, coloured=coloured)
        label = f"{count:,} of class {shortened(device_class, LONGEST_CLASS)}"
        if as_markers:
            handle = _marker(NodeKind.SENSOR, label)
            handle.set(marker=marker, markersize=5.0, markerfacecolor=colour)
            yield handle
        else:
            yield Patch(facecolor=colour if coloured else "none", edgecolor=CASING if coloured else "none", label=label)


def _hues(hues: Hues, *, as_markers: bool) -> Iterator[Artist]:
    """The coverage classes, and what has no colour."""
    counts = Counter(hues.steps.values())
    for step, name in (*hues.classes(), (UNKNOWN, f"without {hues.words}"), (UNCOVERED, "out of coverage")):
        if counts[step]:
            label, colour = f"{counts[step]:,} {'of ' * (step >= 0)}{name}", hues.colour(step)
            if not as_markers:
                yield Patch(facecolor=colour, edgecolor=CASING, hatch=NO_AIR * (step == UNCOVERED), label=label)
                continue
            handle = _marker(NodeKind.SENSOR, label)
            handle.set(markersize=5.0, markerfacecolor=colour)
            if step == UNCOVERED:
                handle.set(marker="x", markeredgecolor=LOST, markeredgewidth=1.4)
            yield handle


def _marker(kind: NodeKind, label: str) -> Line2D:
    is_sensor, is_cloud = kind == NodeKind.SENSOR, kind == NodeKind.CLOUD
    return Line2D(
        [],
        [],
        linestyle="",
        marker=MARKERS[kind],
        markersize=12.0 if is_cloud else 4.0 if is_sensor else _SIZE,
        markerfacecolor="white" if is_sensor else DARK,
        markeredgecolor=DARK if is_sensor else "white",
        markeredgewidth=0.6,
        label=label,
    )


def _wire(label: str, *, failing: bool = False) -> Line2D:
    return Line2D([], [], color=PLAIN_WIRE, linewidth=2.0, linestyle=FAILING if failing else "solid", label=label)


def _disc(colour: Colour, label: str) -> Line2D:
    return Line2D(
        [],
        [],
        linestyle="",
        marker="o",
        markersize=10.0,
        markerfacecolor=colour,
        markeredgecolor=CASING,
        markeredgewidth=0.6,
        label=label,
    )
