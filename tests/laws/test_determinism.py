"""Law 3 on the clock: the same scenario and seed give the same trace, whoever ran before.

That it is so in any process is shown by ``test_hash_seeds.py``.
"""

from __future__ import annotations

from typing import Any

import pytest
from grouped_protocols import GROUPED, LABELLED
from small_worlds import EVERYTHING_HAPPENS, simulated

PROTOCOLS = [
    EVERYTHING_HAPPENS["protocols"][0],
    {"name": "fedprox", "fraction": 0.4, "mu": 0.1, "busy": "abort", "deadline_s": 30.0},
    {"name": "centralised"},
]
FAULTS = {
    "scheduled": [{"link": ["cloud", "factory-2/edge"], "at_s": 9.1, "for_s": 5.3, "every_s": 31.0}],
    "random": [{"of": kind, "mean_up_s": 70.0, "mean_down_s": 6.0} for kind in ("sensors", "base_stations", "wires")],
    "routing": "around_outages",
}
SCENARIO = EVERYTHING_HAPPENS | {
    "seeds": [1, 2],
    "protocols": PROTOCOLS,
    "faults": FAULTS,
    "network.cell.discipline": {"name": "fair"},
    "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}},
}
IN_GROUPS = SCENARIO | LABELLED | {"protocols": [{"label": label} | keys for label, keys in GROUPED.items()]}
HALF_DUPLEX = SCENARIO | {"network.cell.duplex": "full", "devices.classes.sensor.duplex": "half"}
SCENARIOS = pytest.mark.parametrize(
    "scenario", [SCENARIO, HALF_DUPLEX, IN_GROUPS], ids=["parallel", "half-duplex", "in groups"]
)


@SCENARIOS
def test_a_protocols_trace_does_not_depend_on_who_ran_before(scenario: dict[str, Any]) -> None:
    runs = [scenario | {"protocols": [protocol]} for protocol in scenario["protocols"]]
    forwards = [simulated(run).trace.digest() for run in runs]
    assert [simulated(run).trace.digest() for run in reversed(runs)] == forwards[::-1]


def test_another_seed_gives_another_trace() -> None:
    assert len({simulated(EVERYTHING_HAPPENS, seed=seed).trace.digest() for seed in range(5)}) == 5
