"""What `auto` chooses for the digits learns as the reference does: means over seeds agree within their spread.

The rounds are fewer than the scenario's own, at which both have learned, so that this takes half a minute; the data,
the devices, the model, the protocols and the seeds are its own. Left out: single runs, which rounding makes differ
(``tests/laws/test_executors_agree.py`` measures by how much, step by step).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsim.experiment.compare import compare
from fedsim.experiment.run import run
from fedsim.scenario.load import load

DIGITS = Path(__file__).parents[2] / "scenarios/digits.yaml"
FEWER_ROUNDS = ["stop.rounds=15", "protocols.centralised.stop.rounds=2"]
LEARNED = 0.5
"""An accuracy that chance, 0.1, is far from."""


@pytest.mark.long
def test_the_mean_of_auto_is_within_the_seeds_interval_of_serial(tmp_path: Path) -> None:
    scenario = load(DIGITS, overrides=FEWER_ROUNDS)
    assert scenario.seeds == (1, 2, 3)
    serial, auto = (run(scenario, out=tmp_path / name, executor=name) for name in ("serial", "auto"))
    assert serial.manifest["executor"]["name"] == "serial"
    assert auto.manifest["executor"]["name"] == "batched"

    expected, found = (compare([results]).set_index("protocol") for results in (serial, auto))
    assert sorted(expected.index) == sorted(found.index) == ["centralised", "fedavg", "fedprox"]
    for protocol in expected.index:
        reference, mean = expected.loc[protocol], found.loc[protocol]
        assert reference["final_accuracy_n"] == mean["final_accuracy_n"] == 3
        assert reference["final_accuracy_mean"] > LEARNED
        for metric in ("final_accuracy", "loss"):
            off = abs(mean[f"{metric}_mean"] - reference[f"{metric}_mean"])
            assert off < reference[f"{metric}_half_width"], f"{protocol}, {metric}"
        # The clock knows nothing of it.
        assert mean["sim_time_s_mean"] == reference["sim_time_s_mean"]
