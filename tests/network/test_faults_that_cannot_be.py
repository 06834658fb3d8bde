"""What is wrong with a scenario's faults is one message: where, what, and what would be right."""

from __future__ import annotations

from pathlib import Path

import pytest
from sending import failing
from small_worlds import RING

from fedsim.cli import main
from fedsim.errors import UserError

PLANT = """\
name: plant
stop: {rounds: 2}
topology: {name: star, devices: 4}
network:
  cell: {radio: {name: fixed, uplink_bps: 1.0e+6, downlink_bps: 2.0e+6}}
  link: {rate_bps: 1.0e+9}
devices:
  classes:
    camera: {compute: {name: flops, flops_per_s: 1.0e+9}}
model: {name: softmax}
training: {learning_rate: 0.1, batch_size: 8}
protocols:
  - {name: fedavg, fraction: 0.5}
faults:
"""
SCHEDULED, RANDOM = "  scheduled:\n    - ", "  random:\n    - "


@pytest.mark.parametrize(
    ("faults", "message"),
    [
        (
            SCHEDULED + "{node: statoin, at_s: 5}",
            "16: faults.scheduled[0].node: the topology has no node 'statoin'; did you mean 'station'?",
        ),
        (
            SCHEDULED + "{link: [clod, station], at_s: 5}",
            "16: faults.scheduled[0].link: the topology has no node 'clod'; did you mean 'cloud'?",
        ),
        (
            SCHEDULED + "{link: [station, sensor-1], at_s: 5}",
            "16: faults.scheduled[0].link: the topology has no wire between 'station' and 'sensor-1'; where "
            "there is air, name the node that fails",
        ),
        (
            SCHEDULED + "{link: [cloud, cloud], at_s: 5}",
            "16: faults.scheduled[0].link: the topology has no wire between 'cloud' and 'cloud'; 'cloud' has wires to "
            "'station'",
        ),
        (
            SCHEDULED + "{link: [station], at_s: 5}",
            "16: faults.scheduled[0].link: ['station'] has 1 item, and 2 are needed",
        ),
        (
            SCHEDULED + "{at_s: 5}",
            "16: faults.scheduled[0]: give either node or link, one of them and not both; nothing is given",
        ),
        (
            SCHEDULED + "{node: station, link: [cloud, station], at_s: 5}",
            "16: faults.scheduled[0]: give either node or link, one of them and not both; node='station' and "
            "link=['cloud', 'station'] is given",
        ),
        (
            SCHEDULED + "{node: station, at_s: 5, for_s: 10, every_s: 10}",
            "16: faults.scheduled[0]: every_s=10 must be more than the outage lasts (for_s=10)",
        ),
        (
            SCHEDULED + "{node: station, at_s: 5, every_s: 10}",
            "16: faults.scheduled[0]: every_s=10 must be more than the outage lasts (for ever); give for_s",
        ),
        (
            RANDOM + "{of: sensors, mean_up_s: 9, mean_down_s: 1, only: [sensor-1, sensor-9]}",
            "16: faults.random[0].only: the topology has no node 'sensor-9'; did you mean 'sensor-4'?",
        ),
        (
            RANDOM + "{of: sensors, mean_up_s: 9, mean_down_s: 1, only: [sensor-1, station]}",
            "16: faults.random[0].only: 'station' is of kind base_station, and these are failures of "
            "sensors; give it an entry of its own",
        ),
        (
            RANDOM + "{of: edges, mean_up_s: 9, mean_down_s: 1}",
            "16: faults.random[0].of: 'edges' means nodes of kind 'edge', and the topology has none; name one of "
            "sensors, base_stations, clouds, wires",
        ),
        (
            RANDOM + "{of: wires, mean_up_s: 9, mean_down_s: 1, only: [cloud]}",
            "16: faults.random[0]: only names nodes, and a wire has no name; leave it out",
        ),
        (
            RANDOM + "{of: sensors, mean_up_s: 0, mean_down_s: 1}",
            "16: faults.random[0].mean_up_s: 0 must be at least 0.001",
        ),
    ],
)
def test_faults_that_cannot_be(
    faults: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plant.yaml").write_text(PLANT + faults + "\n", encoding="utf-8")
    assert main(["validate", "plant.yaml"]) == 2
    assert capsys.readouterr().err == f"fedsim: plant.yaml:{message}\n"


def test_whoever_is_named_first_has_wires_to_these() -> None:
    with pytest.raises(UserError, match="between 'east' and 'west'; 'east' has wires to 'cloud', 'east-station'"):
        failing({"link": ["east", "west"], "at_s": 1.0}, topology=RING)
