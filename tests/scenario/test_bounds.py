"""Numbers have bounds, and between them arithmetic needs none: whatever they are, a round takes a finite time."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tiers import drawn

from fedsim.errors import UserError
from fedsim.experiment.simulate import simulate
from fedsim.learning.learner import NoLearner
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario
from fedsim.settings import (
    LARGEST,
    LONGEST_NAME,
    MOST,
    MOST_DEVICES,
    SMALLEST,
    Count,
    DeviceCount,
    Fraction,
    Name,
    NonNegative,
    NonNegativeInt,
    Positive,
    PositiveOrInfinite,
    Probability,
    Real,
)


def below(number: float) -> float:
    return math.nextafter(number, -math.inf)


def above(number: float) -> float:
    return math.nextafter(number, math.inf)


BOUNDS: dict[str, tuple[Any, list[Any], list[Any]]] = {  # the type, what it takes, what it refuses
    "Real": (Real, [-LARGEST, 0.0, LARGEST], [below(-LARGEST), above(LARGEST), math.nan]),
    "Positive": (Positive, [SMALLEST, 1, LARGEST], [0.0, -1.0, below(SMALLEST), above(LARGEST), math.inf, math.nan]),
    "PositiveOrInfinite": (
        PositiveOrInfinite,
        [SMALLEST, 1, LARGEST, math.inf],
        [0.0, -math.inf, below(SMALLEST), above(LARGEST), math.nan],
    ),
    "NonNegative": (NonNegative, [0, -0.0, 5e-324, LARGEST], [-5e-324, above(LARGEST), math.inf, math.nan]),
    "Fraction": (Fraction, [SMALLEST, 1], [0, below(SMALLEST), above(1.0)]),
    "Probability": (Probability, [0, below(1.0)], [-5e-324, 1]),
    "Count": (Count, [1, MOST], [0, MOST + 1]),
    "NonNegativeInt": (NonNegativeInt, [0, MOST], [-1, MOST + 1]),
    "DeviceCount": (DeviceCount, [1, MOST_DEVICES], [0, MOST_DEVICES + 1]),
    "Name": (Name, ["x", "x" * LONGEST_NAME], ["", "x" * (LONGEST_NAME + 1)]),
}


@pytest.mark.parametrize(("kind", "taken", "refused"), BOUNDS.values(), ids=BOUNDS)
def test_a_type_takes_what_is_at_its_bounds_and_nothing_beyond(kind: Any, taken: list[Any], refused: list[Any]) -> None:
    adapter = TypeAdapter(kind)
    for value in taken:
        assert adapter.validate_python(value) == value
    for value in refused:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)


def test_editors_are_told_the_bounds() -> None:
    for kind, (lower, smallest, upper) in {
        Positive: ("exclusiveMinimum", 0, LARGEST),
        NonNegative: ("minimum", 0, LARGEST),
        Count: ("minimum", 1, MOST),
    }.items():
        schema = TypeAdapter(kind).json_schema()
        assert (schema[lower], schema["maximum"]) == (smallest, upper)
    assert TypeAdapter(PositiveOrInfinite).json_schema() == {"type": "number", "exclusiveMinimum": 0}


def test_two_counts_make_a_whole_number_of_64_bits_and_a_dozen_numbers_a_finite_one() -> None:
    assert MOST * MOST < 2**63
    assert math.isfinite(LARGEST**12) and SMALLEST**12 > 0


# -- a round, with numbers from one end of what is allowed to the other ----------------------------------------------

PLANT: dict[str, Any] = {
    "name": "plant",
    "learn": False,
    "stop": {"rounds": 2, "transfer_bytes": 1e18},
    "topology": {"name": "star", "devices": 3, "radius_m": 50.0, "backhaul_rate_bps": 1e9, "backhaul_delay_s": 0.01},
    "network": {
        "cell": {
            "radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6, "uplink_share": 0.5},
            "discipline": {"name": "fair", "weights": {"camera": 2.0}},
            "delay_s": 0.01,
        },
        "transport": {"payload_bytes": 1e3, "header_bytes": 40.0},
    },
    "devices": {
        "classes": {
            "camera": {
                "compute": {
                    "name": "distribution",
                    "law": "lognormal",
                    "mean_seconds_per_sample": 0.1,
                    "variation": 1.0,
                }
            }
        },
        "cloud": {"compute": {"name": "flops", "flops_per_s": 1e12}},
        "aggregation_s": 0.1,
    },
    "data": {"name": "declared", "samples_per_client": 10, "sample_bytes": 100.0},
    "model": {
        "name": "declared",
        "parameters": 1e4,
        "training_flops_per_sample": 1e6,
        "bytes_per_parameter": 4.0,
    },
    "training": {"learning_rate": 0.1, "batch_size": 8, "epochs": 2},
    "protocols": [
        {"name": "fedavg", "fraction": 0.5, "over_selection": 1.5, "deadline_s": 100.0},
        {"name": "centralised"},
    ],
}
LEFT_AS_THEY_ARE = {"rounds", "devices"}
WHOLE = [1, 7, MOST]
DECIMAL = [0.0, SMALLEST, 1e-3, 0.5, 1.0, 1e3, 1e9, 1e15, LARGEST]


def numbers(value: Any, path: KeyPath = ()) -> dict[KeyPath, float]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {} if path[-1] in LEFT_AS_THEY_ARE else {path: value}
    found: dict[KeyPath, float] = {}
    for step, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found |= numbers(item, (*path, step))
    return found


def with_numbers(changes: dict[KeyPath, float]) -> dict[str, Any]:
    plant = copy.deepcopy(PLANT)
    for path, number in changes.items():
        parent: Any = plant
        for step in path[:-1]:
            parent = parent[step]
        parent[path[-1]] = number
    return plant


NUMBERS = numbers(PLANT)
CHANGES = st.dictionaries(st.sampled_from(list(NUMBERS)), st.sampled_from(range(len(DECIMAL))), max_size=4).map(
    lambda chosen: {
        path: WHOLE[choice % len(WHOLE)] if isinstance(NUMBERS[path], int) else DECIMAL[choice]
        for path, choice in chosen.items()
    }
)
DISCIPLINES = st.sampled_from([{"name": "serial"}, {"name": "dedicated"}, None])


@drawn(150, derandomize=True, database=None)
@given(changes=CHANGES, discipline=DISCIPLINES)
def test_between_the_bounds_every_round_takes_a_finite_time(
    changes: dict[KeyPath, float], discipline: dict[str, str] | None
) -> None:
    plant = with_numbers(changes)
    if discipline is not None:
        plant["network"]["cell"]["discipline"] = discipline
    try:
        scenario = Scenario.model_validate(plant)
    except ValidationError:
        return
    for protocol in scenario.protocols:
        try:
            world = build_world(scenario, protocol, gather_materials(scenario, 1), lambda *_: NoLearner())
        except UserError:
            continue
        try:
            simulate(world, protocol, scenario.stop)
        except UserError as error:
            assert "the clock resolves transfers up to 1e+12 s" in str(error) and world.env.now > 1e12
            continue
        assert math.isfinite(world.env.now) and world.loop.rounds_done
