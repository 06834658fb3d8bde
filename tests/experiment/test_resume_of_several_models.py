"""A run of four architectures that is killed again and again ends with the bytes of one that nobody disturbs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from killed_runs import killed_again_and_again
from run_server import RunServer

HIDDEN = {"a": [16], "b": [16, 12], "c": [16, 12, 8], "d": [16, 12, 8, 8]}
KINDS = "abcdabcdabcc"


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


@pytest.mark.long
@pytest.mark.parametrize(
    ("strategy", "executor", "workers"), [("max", "serial", 1), ("max", "batched", 2), ("basic", "batched", 1)]
)
def test_a_killed_run_goes_on_byte_for_byte(
    server: RunServer, tmp_path: Path, strategy: str, executor: str, workers: int
) -> None:
    content = scenario({"name": "flexifed", "strategy": strategy})
    killed_again_and_again(server, content, tmp_path, kills=10, executor=executor, workers=workers)
