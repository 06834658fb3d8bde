"""A run of four architectures that is killed again and again ends with the bytes of one that nobody disturbs."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from run_server import RunServer
from signals import At, computed
from tiers import mostly_long

from fedsim.experiment.results import Results

HIDDEN = {"a": [16], "b": [16, 12], "c": [16, 12, 8], "d": [16, 12, 8, 8]}
KINDS = "abcdabcdabcc"
OPTIONS: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": 2}


def scenario(protocol: dict[str, Any]) -> dict[str, Any]:
    """Twelve devices, three of each kind but one; some take part in a round."""
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "station": {"kind": "base_station"}}
    sensors = {f"s{at}": {"kind": "sensor", "attach": "station", "device": kind} for at, kind in enumerate(KINDS)}
    links = [{"between": ["cloud", "station"]}]
    changes = {
        "topology": {"name": "explicit", "nodes": nodes | sensors, "links": links},
        "devices.classes": {
            kind: digit_runs.INSTANT | {"model": {"name": "mlp", "hidden": hidden}} for kind, hidden in HIDDEN.items()
        },
        "data.client_test_fraction": 0.3,
        "evaluate": {"on": ["own"], "every": 2},
        "stop.rounds": 6,
        "protocols": [{"clients": 8, **protocol}],
    }
    return digit_runs.data(changes)


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


@pytest.mark.slow
@pytest.mark.parametrize(
    ("strategy", "executor", "workers", "kills"),
    mostly_long(
        [("max", "batched", 1, 3), ("max", "serial", 1, 10), ("max", "batched", 2, 10), ("basic", "batched", 1, 10)],
        now=[("max", "batched", 1, 3)],
    ),
)
def test_a_killed_run_goes_on_byte_for_byte(
    server: RunServer, tmp_path: Path, strategy: str, executor: str, workers: int, kills: int
) -> None:
    content, how = scenario({"name": "flexifed", "strategy": strategy}), {"executor": executor, "workers": workers}
    whole, out, rng = tmp_path / "whole", tmp_path / "run", random.Random(7)
    assert server.run(content, whole, **how) == 0
    expressions = len(computed(whole))
    for part in range(kills):
        at = At(int(expressions * rng.uniform(part, part + 0.9) / kills), rng.randrange(6))
        assert server.run(content, out, at=at, **how, **OPTIONS) == -signal.SIGKILL
    assert server.run(content, out, resume=True, **how) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(whole)
    assert Results(out).rounds.equals(Results(whole).rounds)
