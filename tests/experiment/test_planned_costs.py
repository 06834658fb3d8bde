"""What a round takes, by device class: worked out by hand, and only where nothing was learned."""

from __future__ import annotations

from pathlib import Path

import pytest
from small_worlds import NO_CONTENTION, hall, scenario

from fedsim.cli.tables import show_comparison
from fedsim.experiment.compare import run_names
from fedsim.experiment.planned_costs import planned_costs
from fedsim.experiment.run import run
from fedsim.viz.tables import COSTS, cost_cells

PARK = hall(a="station", b="station")
for name, kind in (("a", "fast"), ("b", "slow")):
    PARK["topology"]["nodes"][name]["device"] = kind
TWO_CLASSES = {
    **PARK,
    "devices": {
        "classes": {
            "fast": {"compute": {"name": "per_sample", "seconds_per_sample": 0.1}},
            "slow": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}},
        }
    },
}


def test_each_class_has_its_own_work_and_all_share_the_round(tmp_path: Path) -> None:
    """A journey takes 4 s down, 1 or 5 s of work and 8 s up, and two devices are on the air for 2 x 8 of 17 s."""
    results = run(scenario({**NO_CONTENTION, **TWO_CLASSES, "stop.rounds": 3}), out=tmp_path / "run")
    costs = planned_costs([results]).set_index("device_class")
    assert costs["devices"].tolist() == [1, 1]
    assert costs["round_s"].tolist() == pytest.approx([17.0, 17.0])
    assert costs["down_s"].tolist() == pytest.approx([4.0, 4.0])
    assert costs["work_s"].tolist() == pytest.approx([1.0, 5.0])
    assert costs["up_s"].tolist() == pytest.approx([8.0, 8.0])
    assert costs["message_bytes"].tolist() == [2_000.0, 2_000.0]
    assert costs["busy_up"].tolist() == pytest.approx([16 / 17] * 2)
    assert costs["busy_down"].tolist() == pytest.approx([8 / 17] * 2)


def test_devices_of_one_class_are_told_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = run(scenario(NO_CONTENTION), out=tmp_path / "run")
    [row] = cost_cells(planned_costs([results])).to_dict("records")
    assert row == {
        **{"protocol": "fedavg", "device class": "sensor", "devices": "2", "round": "17 s", "down": "4 s"},
        **{"work": "5 s", "up": "8 s", "both ways": "2 kB", "busiest up": "94.1 %", "busiest down": "47.1 %"},
    }
    show_comparison([results])
    assert COSTS in capsys.readouterr().out


def test_of_two_runs_each_is_named(tmp_path: Path) -> None:
    both = [run(scenario(NO_CONTENTION), out=tmp_path / name) for name in ("one", "two")]
    assert cost_cells(planned_costs(both))["run"].tolist() == run_names(both)


def test_a_run_that_ended_before_its_first_round_costs_nothing_that_is_known(tmp_path: Path) -> None:
    results = run(scenario({**NO_CONTENTION, "stop": {"sim_time_s": 1.0}}), out=tmp_path / "run")
    assert len(planned_costs([results])) <= 1
