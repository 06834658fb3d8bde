"""What a selection of filters costs on the machine that runs fedsim, and whether workers choose side by side.

``python -m benchmarks.selections`` trains rounds of ten clients of ResNet-20 on digits of 16 x 16 pixels by SPATL: with
every filter sent, with half of them by norm, and with the agent's choice while it learns; by one worker and by two, in
turn, several times. Printed are seconds for a round, by the medians, and the ratio of two workers to one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import fedsim
from fedsim.experiment.observer import Observer
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round
from fedsim.scenario.schema import Scenario

CLIENTS, ROUNDS = 10, 3
SELECTIONS: dict[str, dict[str, Any]] = {
    "none": {"name": "none"},
    "uniform": {"name": "uniform", "keep": 0.5},
    "gnn_ppo": {"name": "gnn_ppo"},
}


class Clock(Observer):
    """When each round has ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        self.ends.append(time.perf_counter())


def scenario(selection: dict[str, Any]) -> Scenario:
    """All clients hold as many samples."""
    return Scenario.model_validate(
        {
            "name": "selections",
            "stop": {"rounds": ROUNDS},
            "evaluate": {"every": 1, "on": ["own"]},
            "topology": {"name": "star", "devices": CLIENTS},
            "network": {
                "cell": {"radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9}},
                "link": {"rate_bps": 1e9},
            },
            "devices": {"classes": {"camera": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}},
            "data": {"name": "digits", "pixels": 16, "partition": {"name": "iid"}, "client_test_fraction": 0.1},
            "model": {"name": "resnet"},
            "training": {"learning_rate": 0.01, "momentum": 0.9, "batch_size": 32, "epochs": 2},
            "protocols": [{"name": "spatl", "fraction": 1.0, "selection": selection, "hold_back": 128}],
        }
    )


def seconds(content: Scenario, workers: int) -> float:
    """What the rounds but the first take, each."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        fedsim.run(content, out=Path(folder) / "run", executor="processes", workers=workers, observer=clock)
    return (clock.ends[-1] - clock.ends[0]) / (ROUNDS - 1)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=3)
    times = parser.parse_args().times
    found: dict[tuple[str, int], list[float]] = {}
    for _ in range(times):
        for name, selection in SELECTIONS.items():
            for workers in (1, 2):
                found.setdefault((name, workers), []).append(seconds(scenario(selection), workers))
    print(f"{'selection':10} {'1 worker':>9} {'2 workers':>9} {'ratio':>6}")
    for name in SELECTIONS:
        one, two = (statistics.median(found[name, workers]) for workers in (1, 2))
        print(f"{name:10} {one:8.2f}s {two:8.2f}s {two / one:6.2f}")


if __name__ == "__main__":
    main()
