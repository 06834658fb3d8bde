"""Everything about a scenario that can be known to be wrong before it runs."""

from __future__ import annotations

from fedsim.learning.learner import NoLearner
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.schema import Scenario

__all__ = ["validate"]


def validate(scenario: Scenario) -> Materials:
    """Build every protocol's world on the first seed, without learning and without running it.

    Returns what the protocols share. Raises `UserError` when parts of the scenario do not fit each other.
    """
    materials = gather_materials(scenario, scenario.seeds[0])
    for protocol in scenario.protocols:
        build_world(scenario, protocol, materials, lambda *_: NoLearner())
    return materials
