"""A small scenario file to sweep over, a pool in this process, and what a store says of a sweep."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import digit_runs

from fedsim.experiment.sweep.points import PointTask
from fedsim.experiment.sweep.pools.pool import Event, Pool, run_point

RADIO = "network.cell.radio.profile"
NETWORK: dict[str, Any] = {
    "seeds": [1, 2],
    "stop.rounds": 2,
    "network.cell.radio": {"name": "fixed", "profile": "lte_m_m2"},
    "network.cell.discipline": {"name": "fair"},
    "network.link.rate_bps": 1e8,
    "devices.classes.sensor": {"compute": {"name": "flops", "flops_per_s": 1e9}},
    "protocols": [{"name": "fedavg", "clients": 4}, {"name": "fedprox", "clients": 4, "mu": 0.1}],
}
"""Over cells, so that a radio makes a difference to time and none to what is learned."""


def scenario_file(folder: Path, changes: Mapping[str, Any] | None = None) -> Path:
    """The scenario as a file, which is JSON, as YAML may be."""
    path = folder / "plant.yaml"
    path.write_text(json.dumps(digit_runs.data({**NETWORK, **(changes or {})})).replace("Infinity", ".inf"))
    return path


class Here(Pool):
    """Runs points in this process, one after the other, and remembers which, and how each time has ended."""

    def __init__(self, size: int = 1, ends: Mapping[str, list[str]] | None = None) -> None:
        self.size = size
        self.tasks: list[PointTask] = []
        self.ended: list[tuple[str, str]] = []
        self.closed = False
        self._ends = {key: deque(kinds) for key, kinds in (ends or {}).items()}
        """By point: what it ends with first, in place of being run."""
        self._started: deque[PointTask] = deque()

    def start(self, task: PointTask) -> None:
        assert len(self._started) < self.size
        self.tasks.append(task)
        self._started.append(task)

    def events(self) -> list[Event]:
        task = self._started.popleft()
        told: list[Event] = []
        if ends := self._ends.get(task.key):
            told.append(Event(task.key, ends.popleft(), "as the test has it"))  # type: ignore[arg-type]
        else:
            told.append(run_point(task, told.append))
        self.ended.append((task.key, told[-1].kind))
        return told

    def close(self) -> None:
        self.closed = True


def computed(store: Path, operation: str = "train") -> Counter[str]:
    """How often each node of that kind was computed, by all runs together."""
    return Counter(row["key"] for row in rows(store) if row["event"] == "computed" and row["operation"] == operation)


def rows(store: Path) -> list[dict[str, Any]]:
    """What the ledgers of all runs say, those of one run together; whole lines only."""
    lines = [line for path in (store / "ledger").glob("*.jsonl") for line in path.read_bytes().split(b"\n")[:-1]]
    return [json.loads(line) for line in lines]
