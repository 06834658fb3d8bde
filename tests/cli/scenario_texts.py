"""Scenarios that run in no time."""

from __future__ import annotations

import textwrap
from pathlib import Path

THREE_DEVICES = """
    name: three-devices
    stop: {rounds: 2}
    topology: {name: star, devices: 3}
    network:
      cell: {radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 1.0e+6}}
      link: {rate_bps: .inf}
    devices: {classes: {sensor: {compute: {name: per_sample, seconds_per_sample: 0.001}}}}
    data: {name: digits}
    model: {name: softmax}
    training: {learning_rate: 0.1, batch_size: 50}
    protocols:
      - {name: fedavg, clients: 2}
      - {name: fedprox, clients: 2, mu: 0.1, label: "prox, strong"}
"""


def write_scenario(folder: Path, text: str = THREE_DEVICES, more: str = "") -> Path:
    """The scenario as a file in *folder*, with some lines *more*."""
    path = folder / "scenario.yaml"
    path.write_text(textwrap.dedent(text) + more)
    return path
