"""A scenario in numbers before anything is trained: its data, its network, its model, and what a round will take.

Left out: accuracy, which only training shows, and the real time that a run takes on this machine.
"""

from __future__ import annotations

import gc
import math
from typing import Any

from fedsim.experiment.description.data import data_facts
from fedsim.experiment.description.model import model_facts
from fedsim.experiment.description.network import network_facts
from fedsim.experiment.description.rounds import protocol_facts
from fedsim.experiment.description.simulations import MOST_HOPS
from fedsim.experiment.gc_policy import set_aside
from fedsim.experiment.remarks_before import remarks_before
from fedsim.experiment.validate import validate
from fedsim.models.table import EXTRACTOR
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials
from fedsim.scenario.schema import Scenario

__all__ = ["MOST_HOPS", "describe", "plain"]


def describe(scenario: Scenario, *, most_hops: int = MOST_HOPS) -> tuple[dict[str, Any], Materials]:
    """The facts about *scenario* on its first seed, section by section, and the materials that they are about.

    Sections are ``scenario``, ``seed``, ``data``, ``network``, ``model``, ``class_models`` (by device class),
    ``newcomers`` (None without any) and ``protocols``; a fact that is not known is None. Messages are simulated over at
    most *most_hops* hops, for all protocols together.

    Raises `UserError` for everything that a run would refuse on that seed.
    """
    scenario = scenario.model_copy(update={"seeds": scenario.seeds[:1]})
    network: dict[str, Any] = {}
    fresh: list[World] = []

    def look(materials: Materials, world: World) -> None:
        network.update(network_facts(materials.topology, world.wires))
        network["remarks"] = remarks_before(scenario, materials)
        fresh.append(world)

    with set_aside():
        materials = validate(scenario, look)
        about_training = scenario.training, materials.tables, materials.by_protocol(scenario.protocols)
        facts = {
            "scenario": scenario.name,
            "description": scenario.description,
            "seed": materials.seed,
            "data": data_facts(materials.dataset),
            "network": network,
            "model": model_facts(scenario.model.name, materials.table, *about_training),
            "class_models": {
                name: model_facts(kind.model.name, materials.class_tables[name], *about_training)
                for name, kind in scenario.devices.classes.items()
                if kind.model is not None and name in materials.class_tables
            },
            "newcomers": _newcomers(scenario, materials),
            "protocols": protocol_facts(scenario, materials, network["wires_to_server"]["mean"], most_hops, fresh),
        }
        if fresh:
            fresh.clear()
            gc.collect()  # nothing was simulated in it, and tables need room too
    return facts, materials


def _newcomers(scenario: Scenario, materials: Materials) -> dict[str, Any] | None:
    """Of those who are kept for the end; who else comes is known only then."""
    newcomers = scenario.newcomers
    if newcomers is None:
        return None
    return {**newcomers.model_dump(), "downlink_bytes": newcomers.clients * materials.table.bytes(EXTRACTOR)}


def plain(facts: Any) -> Any:
    """*facts* as JSON can hold them: what is infinite becomes the text ``inf``.

    >>> plain({"rate_bps": math.inf, "samples": [1, None]})
    {'rate_bps': 'inf', 'samples': [1, None]}
    """
    if isinstance(facts, dict):
        return {key: plain(value) for key, value in facts.items()}
    if isinstance(facts, list | tuple):
        return [plain(value) for value in facts]
    return "inf" if facts == math.inf else facts
