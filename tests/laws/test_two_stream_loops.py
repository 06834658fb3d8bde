"""Laws of two streams: on a network that takes no time, FedMMD and FedFusion are the plain loops of their papers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from asked import LATE, MISSING, asked_in, selected, with_worlds
from plain_loop import differences
from two_stream_loop import CHANNELS, MODEL, TwoStreams

from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.models.fusion import fused
from fedsim.scenario.build import gather_materials

COHORT = 6
PROTOCOLS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fedmmd": ({}, {"strength": 0.1}),
    "floored": ({"name": "fedmmd", "coefficient": 0.2, "floor": 2.0}, {"strength": 0.2, "floor": 2.0}),
    "fedfusion_conv": ({}, {"operator": "conv"}),
    "fedfusion_multi": ({}, {"operator": "multi"}),
    "fedfusion_single": ({}, {"operator": "single"}),
}
"""Label -> its keys, and those of the loop."""
BASE = {
    "model": MODEL,
    "training": {"learning_rate": 0.1, "batch_size": 32, "epochs": 2},  # larger steps of FedMMD amplify rounding
    "protocols": [{"name": label, "label": label, "clients": COHORT, **keys} for label, (keys, _) in PROTOCOLS.items()],
}
EXACT = {"rtol": 1e-11, "atol": 1e-12}
DISTILLED = {"name": "distilled", "coefficient": 0.1}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, torch.Tensor]]:
    """The final model of each protocol after 3 rounds."""
    results = run(digit_runs.scenario(BASE), out=tmp_path_factory.mktemp("run"), executor="serial", precision="float64")
    return {label: digit_runs.weights(results, label) for label in PROTOCOLS}


@pytest.mark.parametrize("label", PROTOCOLS)
def test_without_delays_it_is_its_plain_loop(label: str, trained: dict[str, dict[str, torch.Tensor]]) -> None:
    expected = TwoStreams(digit_runs.scenario(BASE), **PROTOCOLS[label][1]).run(selected(3, COHORT))
    assert trained[label].keys() == expected.keys()
    for name, tensor in expected.items():
        torch.testing.assert_close(trained[label][name], tensor, **EXACT)
    if "extractor.fusion.gate" in expected:
        assert expected["extractor.fusion.gate"].abs().max() > 1e-4, "or the gates have not moved"


def test_each_of_them_is_another(trained: dict[str, dict[str, torch.Tensor]]) -> None:
    one = "classifier.fc2.weight"
    assert len({tuple(weights[one].flatten().tolist()) for weights in trained.values()}) == len(PROTOCOLS)


SOME = BASE | {"protocols": [BASE["protocols"][number] for number in (0, 2, 3)], "stop.rounds": 2}
EXECUTORS: dict[str, dict[str, Any]] = {
    "processes": {"executor": "processes", "workers": 2},
    "batched": {"executor": "batched", "workers": 1},
    "batched in two": {"executor": "batched", "workers": 2},
}


def test_every_executor_comes_to_the_bits_of_the_plain_loop(tmp_path: Path) -> None:
    serial = run(digit_runs.scenario(SOME), out=tmp_path / "serial", executor="serial")
    for name, options in EXECUTORS.items():
        other = run(digit_runs.scenario(SOME), out=tmp_path / name, **options)
        for protocol in SOME["protocols"]:
            found = (digit_runs.weights(results, protocol["label"]) for results in (serial, other))
            assert differences(*found) == {}, (name, protocol["label"])


class Killed(Observer):
    """Ends a run after the second round of one protocol."""

    def round_done(self, protocol: Any, seed: int, done: Any) -> None:
        if (protocol.title, done.number) == ("fedfusion_multi", 2):
            raise KeyboardInterrupt


def test_a_run_that_was_interrupted_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    scenario = digit_runs.scenario(SOME | {"stop.rounds": 3})
    options: dict[str, Any] = {"executor": "serial", "checkpoint_interval_s": 1e-9}
    run(scenario, out=tmp_path / "whole", **options)
    with pytest.raises(KeyboardInterrupt):
        run(scenario, out=tmp_path / "run", observer=Killed(), **options)
    run(scenario, out=tmp_path / "run", resume=True, **options)
    assert digit_runs.outcome(tmp_path / "run") == digit_runs.outcome(tmp_path / "whole")
    assert any(row["event"] == "loaded" for row in digit_runs.ledger(tmp_path / "run" / "store"))


def test_with_nothing_to_pull_fedmmd_is_fedavg(tmp_path: Path) -> None:
    protocols = [{"name": "fedavg", "clients": COHORT}, {"name": "fedmmd", "clients": COHORT, "coefficient": 0.0}]
    results = run(digit_runs.scenario(BASE | {"protocols": protocols}), out=tmp_path, executor="serial")
    fedavg, fedmmd = (digit_runs.weights(results, name) for name in ("fedavg", "fedmmd"))
    assert differences(fedavg, fedmmd) == {}


FUSION_BYTES = {"fedavg": 0, "fedmmd": 0, "fedfusion_conv": 4 * 2 * CHANNELS[1] ** 2}
FUSION_BYTES |= {"fedfusion_multi": 4 * CHANNELS[1], "fedfusion_single": 4}


def test_a_fusion_layer_travels_in_both_directions_and_features_need_no_bytes(tmp_path: Path) -> None:
    protocols = [{"name": name, "clients": COHORT} for name in FUSION_BYTES]
    results = run(digit_runs.scenario(BASE | {"protocols": protocols, "learn": False}), out=tmp_path)
    for way in ("uplink_bytes", "downlink_bytes"):
        sent = results.summary.set_index("protocol")[way]
        assert {name: sent[name] - sent["fedavg"] for name in FUSION_BYTES} == {
            name: 3 * COHORT * more for name, more in FUSION_BYTES.items()
        }


def test_the_global_streams_forward_pass_takes_time(tmp_path: Path) -> None:
    """Training is three passes, and this is one more, or the share of one that stands before the fusion layer."""
    slow = {"compute": {"name": "flops", "flops_per_s": 1e6}}
    labels = ["fedavg", "fedmmd", "fedfusion_single", "fedfusion_conv"]
    protocols = [{"name": label, "clients": 1} for label in labels]
    protocols += [{"name": "fedavg", "label": "distilled", "clients": 1, "objective": DISTILLED}]
    changes = {"model": MODEL, "protocols": protocols, "devices.classes": {"sensor": slow}, "learn": False}
    scenario = digit_runs.scenario({**changes, "stop.rounds": 1})
    seconds = run(scenario, out=tmp_path).summary.set_index("protocol")["sim_time_s"]
    table = gather_materials(scenario, 1).table
    fusing = {operator: fused(table, operator) for operator in ("single", "conv")}
    assert seconds["fedmmd"] == pytest.approx(seconds["fedavg"] * 4 / 3)
    assert seconds["distilled"] == pytest.approx(seconds["fedavg"] * 4 / 3)
    first, second = CHANNELS
    pixels = 8
    before = 25 * (pixels**2 * first + (pixels // 2) ** 2 * first * second)  # 5 x 5 kernels, pooling in between
    for operator, model in fusing.items():
        passes = (3 * model.forward_macs() + before) / (3 * table.forward_macs())
        assert seconds[f"fedfusion_{operator}"] == pytest.approx(seconds["fedavg"] * passes)


@pytest.fixture(scope="module", params=["finish", "cancel"])
def missed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A scenario in which updates are lost and late, its results and its worlds."""
    protocols = [{**one, **LATE} for one in BASE["protocols"]]
    changes = {**BASE, **MISSING, "network.late_transfers": request.param, "protocols": protocols}
    changes["training.learning_rate"] = 0.03  # at 0.1, a start that differs by 1e-15 ends FedMMD's loop elsewhere
    scenario = digit_runs.scenario(changes)
    return scenario, *with_worlds(scenario, tmp_path_factory.mktemp("missed") / "run")


@pytest.mark.parametrize("label", PROTOCOLS)
def test_who_is_missing_counts_nowhere(label: str, missed: Any) -> None:
    scenario, results, worlds = missed
    rounds, answers = results.rounds[results.rounds["protocol"] == label], asked_in(worlds[label])
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    expected = TwoStreams(scenario, **PROTOCOLS[label][1]).run(answers)
    for name, tensor in digit_runs.weights(results, label).items():
        torch.testing.assert_close(tensor, expected[name], **EXACT)
