"""In each scenario of the repository the parts of a round add up to it, and nothing is unexplained."""

from __future__ import annotations

from pathlib import Path

import pytest
from critical_path_laws import parts_of
from tiers import mostly_long

import fedsim
from fedsim.experiment.simulate import simulate
from fedsim.learning.learner import NoLearner
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.spatl import Spatl, SpatlWithoutControl, SpatlWithSharedPredictor
from fedsim.scenario.build import build_world, gather_materials

SCENARIOS = Path(__file__).parents[2] / "scenarios"
ALL = {path.relative_to(SCENARIOS).as_posix(): path.read_text("utf-8") for path in sorted(SCENARIOS.rglob("*.yaml"))}
WITH_DATA = [name for name, text in ALL.items() if "FEDSIM_DATA" in text]
WITHOUT = [name for name in ALL if name not in WITH_DATA]
NOW = [f"{name}.yaml" for name in ("agv_with_faults", "late_devices_lte_m", "night_shift_nb_iot", "quickstart", "wear")]


def without_learning(protocol: Protocol) -> Protocol:
    """The protocol, with the size of its updates declared if it measures them on what was learned."""
    if not protocol.needs_learning:
        return protocol
    assert isinstance(protocol, Spatl | SpatlWithoutControl | SpatlWithSharedPredictor)
    selection = protocol.selection.model_copy(update={"declared_keep": 0.8})
    return protocol.model_copy(update={"selection": selection})


def explained(name: str) -> None:
    """Three rounds of each protocol, without training."""
    scenario = fedsim.load(SCENARIOS / name)
    materials = gather_materials(scenario, scenario.seeds[0])
    for protocol in map(without_learning, scenario.protocols):
        short = protocol.model_copy(update={"stop": scenario.stop.model_copy(update={"rounds": 3})})
        world = build_world(scenario, short, materials, lambda *_: NoLearner())
        simulate(world, short, short.stop)
        parts = parts_of(world.trace)
        assert parts and not any("idle" in of_round for of_round in parts), protocol.title


@pytest.mark.parametrize("name", mostly_long(WITHOUT, now=NOW))
def test_the_parts_of_a_round_add_up(name: str) -> None:
    explained(name)


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", WITH_DATA)
def test_they_add_up_where_data_come_from_files(name: str) -> None:
    explained(name)
