"""Law 3 on the clock: the same scenario and seed give the same trace, in any process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
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
SCENARIOS = pytest.mark.parametrize("scenario", [SCENARIO, IN_GROUPS], ids=["parallel", "in groups"])

RUN = """
import json, sys
from small_worlds import scenario
from fedsim.experiment.run import run
results = run(scenario(json.loads(sys.argv[1])), out=sys.argv[2])
assert "torch" not in sys.modules, "a network study loaded torch"
print(json.dumps([row["trace_hash"] for row in results.manifest["runs"]]))
"""


@pytest.mark.slow
@SCENARIOS
def test_the_trace_is_the_same_in_two_processes_whatever_the_hash_seed(
    scenario: dict[str, Any], tmp_path: Path
) -> None:
    here = Path(__file__).parents[1]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RUN, json.dumps(scenario), str(tmp_path / hash_seed)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": f"{here}{os.pathsep}{here.parent}"},
            stdout=subprocess.PIPE,
            text=True,
        )
        for hash_seed in ("1", "2")
    ]
    outputs = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    one, other = (json.loads(output) for output in outputs)
    assert one == other
    assert len(set(one)) == len(scenario["protocols"]) * 2  # they do not agree by being empty
    ours = [
        simulated(scenario | {"protocols": [protocol]}, seed=seed).trace.digest()
        for seed in (1, 2)
        for protocol in scenario["protocols"]
    ]
    assert one == ours
    tables = [(tmp_path / hash_seed / "rounds.csv").read_bytes() for hash_seed in ("1", "2")]
    assert tables[0] == tables[1]


@SCENARIOS
def test_a_protocols_trace_does_not_depend_on_who_ran_before(scenario: dict[str, Any]) -> None:
    runs = [scenario | {"protocols": [protocol]} for protocol in scenario["protocols"]]
    forwards = [simulated(run).trace.digest() for run in runs]
    assert [simulated(run).trace.digest() for run in reversed(runs)] == forwards[::-1]


def test_another_seed_gives_another_trace() -> None:
    assert len({simulated(EVERYTHING_HAPPENS, seed=seed).trace.digest() for seed in range(5)}) == 5
