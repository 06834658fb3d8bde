"""What the author of a scenario may not have meant, though it is no mistake: said before anything runs."""

from __future__ import annotations

import math
from itertools import islice

from fedsim.errors import some
from fedsim.experiment.remarks_on_air import Said, remarks_on_air, too_slow
from fedsim.experiment.remarks_on_classes import normalised_over_few_classes
from fedsim.protocols.combination import Combination
from fedsim.radio.snr import FromLinkBudget
from fedsim.scenario.build import Materials
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario

__all__ = ["remarks_before", "remarks_on_data"]


MOST = 3
"""Cells of which the same is said one by one."""


def remarks_before(scenario: Scenario, materials: Materials) -> list[str]:
    """A sentence for each key whose value is unusual, on the seed of *materials*: with the key and where it stands."""
    places: dict[tuple[KeyPath, str], list[KeyPath]] = {}
    for where, key, text in remarks_on_air(scenario, materials):
        places.setdefault((key, text), []).append(("network", *where, *key))
    said = []
    for (_, text), paths in places.items():
        said += [scenario.written.remark(text, path) for path in paths[:MOST]]
        if len(paths) > MOST:
            said[-1] += f" (the same holds for {len(paths) - MOST:,} more under network.cells)"
    others = (
        *_slow_wires(scenario, materials),
        *_classifiers_that_nobody_scores(scenario),
        *_phases_that_never_begin(scenario),
        *_sizes_that_are_declared(scenario),
        *_places_that_no_radio_asks_for(scenario),
        *normalised_over_few_classes(scenario, materials),
    )
    return said + [scenario.written.remark(text, path) for path, text in others]


def remarks_on_data(scenario: Scenario, materials: Materials) -> list[str]:
    """What the data set says of itself: what was left out, and what is tested."""
    return [scenario.written.remark(text, ("data",)) for text in materials.dataset.remarks]


def _places_that_no_radio_asks_for(scenario: Scenario) -> Said:
    """Where a class says how high and how deep its devices stand, and no rate follows from that."""
    radios = [scenario.network.cell.radio, *(cell.radio for cell in scenario.network.cells.values())]
    if any(isinstance(getattr(radio, "snr", None), FromLinkBudget) for radio in radios):
        return
    for name, kind in scenario.devices.classes.items():
        if kind.place is not None:
            yield (
                ("devices", "classes", name, "place"),
                "changes nothing: no radio of this scenario has a link budget (snr: {name: link_budget, ...})",
            )


def _slow_wires(scenario: Scenario, materials: Materials) -> Said:
    """The same of wires: the default, and the slowest one of the topology."""
    link = scenario.network.link
    if link is not None and (text := too_slow(link.rate_bps, materials.table)):
        yield ("network", "link", "rate_bps"), text
    neighbours = materials.topology.infrastructure.adjacency()  # `edges` would remember each node that it has seen
    wires = (wire for _, of_node in neighbours for wire in of_node.values())
    slowest_bps = min((wire["rate_bps"] for wire in wires if wire["rate_bps"] is not None), default=math.inf)
    if text := too_slow(slowest_bps, materials.table):
        keys = (key for key, value in scenario.topology if key.endswith("rate_bps") and value == slowest_bps)
        yield ("topology", *islice(keys, 1)), text


def _classifiers_that_nobody_scores(scenario: Scenario) -> Said:
    """Where clients keep a part of the model to themselves, and the first test set is not for their own models."""
    first, *others = scenario.evaluate.on
    if not scenario.learn or first == "own":
        return
    on = ", ".join(("own", first, *(one for one in others if one != "own")) if "own" in others else ("own",))
    combinations = (protocol for protocol in scenario.protocols if isinstance(protocol, Combination))
    if titles := [protocol.title for protocol in combinations if protocol.parts.exchange.keeps_parts]:
        yield (
            ("evaluate", "on"),
            f"with {some(titles)}, clients keep parts of the model to themselves, and accuracy is of a model that "
            "has these parts as they were at the start; for each client's own model, write "
            f"evaluate: {{on: [{on}]}}",
        )


def _phases_that_never_begin(scenario: Scenario) -> Said:
    """Where a protocol trains several models one after the other, and its run ends before the last one's turn."""
    for protocol in scenario.protocols:
        rounds = (protocol.stop or scenario.stop).rounds
        first = protocol.last_model_from
        if rounds is not None and rounds < first:
            yield (
                scenario.place_of(protocol),
                f"{protocol.title!r} trains its last model from round {first} on, and its run has {rounds}: it ends "
                "with an earlier model",
            )


def _sizes_that_are_declared(scenario: Scenario) -> Said:
    """Where a run that learns could measure the sizes of updates, and is told them."""
    for protocol in scenario.protocols:
        if scenario.learn and isinstance(protocol, Combination) and (key := protocol.declared_size):
            yield (
                (*scenario.place_of(protocol), *key),
                "sizes of updates, and so bytes and seconds, are as declared here, and not those of what is learned; "
                "leave it out to measure them",
            )
