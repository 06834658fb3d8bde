"""A round of four architectures against four rounds of one each: does it cost more to train them side by side?

``python -m benchmarks.architectures [--workers N]`` trains two clients of each of ResNet-20, 32, 44 and 56, on digits
of 16 x 16 pixels: once all eight by ``flexifed``, and once each pair by ``fedavg`` with a single model. They are run in
turn, each several times, and the ratio is of the times for all rounds but the first, by the medians.
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

DEPTHS = (20, 32, 44, 56)
ROUNDS, TIMES = 4, 3
INSTANT = {"compute": {"name": "per_sample", "seconds_per_sample": 0.0}}


class Clock(Observer):
    """When each round has ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        self.ends.append(time.perf_counter())


def scenario(depths: tuple[int, ...], protocol: dict[str, Any]) -> Scenario:
    """Two clients of each of the *depths*; each holds as many samples, however many there are."""
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "station": {"kind": "base_station"}}
    for depth in depths:
        for name in "ab":
            nodes[f"{depth}-{name}"] = {"kind": "sensor", "attach": "station", "device": f"d{depth}"}
    models = {depth: {"name": "resnet", "depth": depth, "shortcut": "projection"} for depth in depths}
    return Scenario.model_validate(
        {
            "name": "architectures",
            "stop": {"rounds": ROUNDS},
            "evaluate": {"every": 1, "on": ["own"]},
            "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "station"]}]},
            "network": {
                "cell": {"radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9}},
                "link": {"rate_bps": 1e9},
            },
            "devices": {"classes": {f"d{depth}": INSTANT | {"model": models[depth]} for depth in depths}},
            "data": {
                "name": "digits",
                "pixels": 16,
                "partition": {"name": "iid"},
                "client_test_fraction": 0.1,
                "test_fraction": 0.2 if len(depths) > 1 else 0.8,
            },
            "model": models[depths[0]],
            "training": {"learning_rate": 0.01, "momentum": 0.9, "batch_size": 32},
            "protocols": [{"fraction": 1.0, **protocol}],
        }
    )


def seconds(content: Scenario, workers: int) -> float:
    """What the rounds but the first take together."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        fedsim.run(content, out=Path(folder) / "run", executor="processes", workers=workers, observer=clock)
    return clock.ends[-1] - clock.ends[0]


def main() -> None:
    """Print the ratio."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=1)
    workers = parser.parse_args().workers
    together: list[float] = []
    alone: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for _ in range(TIMES):
        together.append(seconds(scenario(DEPTHS, {"name": "flexifed"}), workers))
        for depth in DEPTHS:
            alone[depth].append(seconds(scenario((depth,), {"name": "fedavg", "weighting": "uniform"}), workers))
    apart = sum(map(statistics.median, alone.values()))
    rounds = ROUNDS - 1
    print(f"a round of all four: {statistics.median(together) / rounds:.2f} s, of each in turn: {apart / rounds:.2f} s")
    print(f"ratio {statistics.median(together) / apart:.2f} with {workers} workers, medians of {TIMES}")


if __name__ == "__main__":
    main()
