"""A scenario in numbers before anything is trained: its data, its network, its model, and what a round will take.

Left out: accuracy, which only training shows, and the real time that a run takes on this machine.
"""

from __future__ import annotations

import math
from typing import Any

from fedsim.experiment.collector import rare_collections
from fedsim.experiment.describe_data import data_facts, model_facts
from fedsim.experiment.describe_network import network_facts
from fedsim.experiment.describe_rounds import round_facts
from fedsim.experiment.validate import validate
from fedsim.scenario.build import Materials
from fedsim.scenario.schema import Scenario

__all__ = ["describe", "plain"]


def describe(scenario: Scenario) -> tuple[dict[str, Any], Materials]:
    """The facts about *scenario* on its first seed, section by section, and the materials that they are about.

    Sections are ``scenario``, ``seed``, ``data``, ``network``, ``model`` and ``protocols``; a fact that is not known is
    None. Raises `UserError` for everything that a run would refuse on that seed.
    """
    scenario = scenario.model_copy(update={"seeds": scenario.seeds[:1]})
    with rare_collections():
        materials = validate(scenario)
        network = network_facts(scenario, materials)
        wires_to_server = network["wires_to_server"]["mean"]
        facts = {
            "scenario": scenario.name,
            "description": scenario.description,
            "seed": materials.seed,
            "data": data_facts(materials.dataset),
            "network": network,
            "model": model_facts(scenario.model.name, materials.table, scenario.training),
            "protocols": [
                round_facts(scenario, protocol, materials, wires_to_server) for protocol in scenario.protocols
            ],
        }
    return facts, materials


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
