"""Everything about a scenario that can be known to be wrong before it runs."""

from __future__ import annotations

from fedsim.errors import Misfit
from fedsim.learning.learner import NoLearner
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.schema import Scenario

__all__ = ["validate"]


def validate(scenario: Scenario) -> Materials:
    """Build every protocol's world on the first seed, and the first one's on the others, without running any of them.

    Returns what the protocols share. Raises `UserError`, with the key and where it was written, when parts of the
    scenario do not fit each other.
    """
    first, *others = scenario.seeds
    materials = gather_materials(scenario, first)
    clients = len(materials.topology.sensors)
    for protocol in scenario.protocols:
        with scenario.about(*scenario.place_of(protocol)):
            _check_cohort(protocol, clients)
        build_world(scenario, protocol, materials, lambda *_: NoLearner())
    for seed in others:  # a draw may leave somebody without samples, or out of coverage, on one seed and not on another
        build_world(scenario, scenario.protocols[0], gather_materials(scenario, seed), lambda *_: NoLearner())
    return materials


def _check_cohort(protocol: Protocol, clients: int) -> None:
    size = protocol.cohort_size(clients)
    if size is not None and size > clients:
        raise Misfit(f"{size:g} must be at most {clients}, as there are no more sensors", "clients")
