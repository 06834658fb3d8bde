"""FlexiFed, Clustered-FL and Standalone are the plain PyTorch loop of FlexiFed's algorithms, whoever trains.

The loop (``layer_loop.py``) finds common layers by the paper's recursion. What is compared is each client's accuracy on
its own tests, in every round, and every tensor of every client's last model.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from asked import DEVICES, LATE, MISSING, asked_in, selected, with_worlds
from layer_loop import CLASSES, PIXELS, LayerLoop, Widths
from safetensors.torch import load_file
from tiers import mostly_long

from fedsim.errors import UserError
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.learning.executors.wave import Wave
from fedsim.learning.executors.worker_pool import TrainJob
from fedsim.scenario.build import gather_materials

HIDDEN = {"a": (16,), "b": (16, 12), "c": (16, 12, 8), "d": (14, 12)}
"""b and c have two layers in common, a has one with both, and d has none with anybody but its own kind."""
KINDS = [*"abcabcdcab", *"bcadbacbac"]
NODES: dict[str, Any] = {
    "cloud": {"kind": "cloud"},
    "station": {"kind": "base_station"},
    **{f"s{at}": {"kind": "sensor", "attach": "station", "device": kind} for at, kind in enumerate(KINDS)},
}


def changes(kinds: str = "abcd", **more: Any) -> dict[str, Any]:
    """Devices of these *kinds* only; the others' are of the first."""
    nodes = {
        name: node | ({"device": node["device"] if node["device"] in kinds else kinds[0]} if "device" in node else {})
        for name, node in NODES.items()
    }
    return {
        "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "station"]}]},
        "devices.classes": {
            kind: digit_runs.INSTANT | {"model": {"name": "mlp", "hidden": list(HIDDEN[kind])}} for kind in HIDDEN
        },
        "data.client_test_fraction": 0.3,
        "evaluate": {"on": ["own"]},
        "training.momentum": 0.5,
        **more,
    }


def widths_of(kinds: str = "abcd") -> list[Widths]:
    return [(PIXELS, *HIDDEN[kind if kind in kinds else kinds[0]], CLASSES) for kind in KINDS]


def scored(results: Results) -> np.ndarray:
    return results.rounds[["accuracy_mean", "accuracy_std", "accuracy_min", "accuracy_max"]].to_numpy()


def by_hand(accuracies: Sequence[Sequence[float]]) -> np.ndarray:
    own = np.array(accuracies)
    return np.stack([own.mean(1), own.std(1), own.min(1), own.max(1)], axis=1)


def check_models(results: Results, title: str, loop: LayerLoop, tolerance: float) -> None:
    """Every client's last model, whose tensors are called by layer and place."""
    files = results.final_weights(title, 1)
    for client, layers in enumerate(loop.has):
        found = {
            name: tensor
            for place, path in files.items()
            if place.startswith(f"s{client}/")
            for name, tensor in load_file(path).items()
        }
        if set(found) <= {f"fc{at}.{kind}" for at in (1, 2, 3, 4) for kind in ("weight", "bias")}:
            found = {  # a model that has nothing in common with another one is not cut
                f"{number}.{at}": found[f"fc{number}.{kind}"]
                for number in range(1, len(layers) + 1)
                for at, kind in enumerate(("weight", "bias"))
            }
        assert len(found) == 2 * len(layers)
        for number, layer in enumerate(layers, start=1):
            for at, expected in enumerate(layer):
                assert (found[f"{number}.{at}"].double() - expected).abs().max() < tolerance, (client, number, at)


CASES: dict[str, tuple[dict[str, Any], str, dict[str, bool]]] = {
    "max": ({"name": "flexifed"}, "max", {}),
    "clustered": ({"name": "flexifed", "strategy": "clustered"}, "clustered", {}),
    "basic": ({"name": "flexifed", "strategy": "basic"}, "basic", {}),
    "clustered_fl": ({"name": "clustered_fl"}, "clustered_fl", {}),
    "standalone": ({"name": "standalone"}, "standalone", {}),
    "by round": ({"name": "flexifed", "common": "round"}, "max", {"by_round": True}),
    "basic by round": ({"name": "flexifed", "common": "round", "strategy": "basic"}, "basic", {"by_round": True}),
    "uploads what is common": ({"name": "flexifed", "upload": "common"}, "max", {}),
    "all layers are fully connected": ({"name": "flexifed", "share_fc": False}, "standalone", {}),
    "one layer": ({"name": "flexifed", "layers": 1}, "max", {}),
    "two layers of those who are alike": ({"name": "flexifed", "strategy": "clustered", "layers": 2}, "clustered", {}),
    "own starts": ({"name": "flexifed", "init": "own"}, "max", {"server": False}),
}


@pytest.mark.parametrize("kinds", ["abcd", "abc"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("executor", mostly_long(["serial", "batched"], now=["batched"]))
def test_it_is_its_plain_loop(tmp_path: Path, case: str, kinds: str, executor: str) -> None:
    keys, strategy, how = CASES[case]
    scenario = digit_runs.scenario(changes(kinds, protocols=[{**keys, "clients": 6}]))
    results = run(scenario, out=tmp_path, executor=executor, workers=1, precision="float64")
    loop = LayerLoop(scenario, widths_of(kinds), own_start=keys.get("init") == "own", layers=keys.get("layers"))
    accuracies = loop.run(strategy, selected(3, 6), **how)
    assert scored(results) == pytest.approx(by_hand(accuracies), abs=1e-12)
    check_models(results, keys["name"], loop, 1e-10)


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_who_is_missing_keeps_its_own_layers_and_its_common_ones(tmp_path: Path, late_transfers: str) -> None:
    missing = MISSING | {"network.late_transfers": late_transfers, "protocols": [{"name": "flexifed", **LATE}]}
    compute = missing.pop("devices.classes.sensor.compute")
    mixed = changes("abc") | missing
    mixed["devices.classes"] = {kind: keys | {"compute": compute} for kind, keys in mixed["devices.classes"].items()}
    scenario = digit_runs.scenario(mixed)
    results, worlds = with_worlds(scenario, tmp_path / "run")
    rounds, answers = results.rounds, asked_in(worlds["flexifed"])
    assert [sum(one.arrives for one in asked) for asked in answers] == rounds["participants"].tolist()
    assert rounds["lost"].sum() > 2 and rounds["late"].sum() > 1
    loop = LayerLoop(scenario, widths_of("abc"))
    accuracies = loop.run("max", answers)
    assert scored(results) == pytest.approx(by_hand(accuracies), abs=1e-12)
    check_models(results, "flexifed", loop, 1e-10)


def test_all_alike_is_fedavg_with_uniform_weights_bit_for_bit(tmp_path: Path) -> None:
    protocols: list[dict[str, Any]] = [{"name": "fedavg", "clients": 6, "weighting": "uniform"}]
    protocols += [
        {"name": "flexifed", "clients": 6, "strategy": strategy, "label": strategy}
        for strategy in ("max", "clustered", "basic")
    ]
    protocols += [{"name": "clustered_fl", "clients": 6}]
    assert len(KINDS) == DEVICES
    results = run(digit_runs.scenario({"protocols": protocols}), out=tmp_path, executor="batched")
    first, *others = results.manifest["runs"]
    for row in others:
        assert (row["trace_hash"], row["final_weights"]) == (first["trace_hash"], first["final_weights"])
        ours, fedavg = (
            results.rounds[results.rounds["protocol"] == name].drop(columns="protocol").reset_index(drop=True)
            for name in (row["protocol"], "fedavg")
        )
        assert ours.equals(fedavg)
    trained = [one for one in digit_runs.ledger(tmp_path / "store") if one.get("operation") == "train"]
    assert {one["protocol"] for one in trained if one["event"] == "computed"} == {"fedavg"}, "all have its keys"


def test_who_shares_no_first_layer_is_standalone_with_the_same_keys(tmp_path: Path) -> None:
    """The files of a model are called by the keys of what has made them."""
    kinds = changes()
    nodes = dict(kinds["topology"]["nodes"])
    nodes["s13"] = nodes["s13"] | {"device": "a"}
    kinds["topology"] = kinds["topology"] | {"nodes": nodes}
    protocols = [{"name": name, "fraction": 1.0} for name in ("standalone", "flexifed")]
    results = run(digit_runs.scenario(kinds | {"protocols": protocols}), out=tmp_path, executor="serial")
    own = [
        {place: path for place, path in results.final_weights(name, 1).items() if place.startswith("s6/")}
        for name in ("standalone", "flexifed")
    ]
    assert own[0] == own[1] and len(own[0]) == 2
    trained = [one for one in digit_runs.ledger(tmp_path / "store") if one.get("operation") == "train"]
    keys: dict[str, set[str]] = {"standalone": set(), "flexifed": set()}
    for one in trained:
        if one["client"] == 6:
            keys[one["protocol"]].add(one["key"])
    assert keys["flexifed"] <= keys["standalone"] and len(keys["standalone"]) == 3


def test_the_model_of_each_client_is_loaded_by_its_name(tmp_path: Path) -> None:
    scenario = digit_runs.scenario(changes(protocols=[{"name": "flexifed", "fraction": 1.0}]) | {"stop.rounds": 1})
    results = run(scenario, out=tmp_path, executor="batched")
    data = gather_materials(scenario, 1).dataset
    assert data.x is not None and data.y is not None
    right = []
    for client, ids in enumerate(data.client_test_ids):
        scores = results.load_model("flexifed", 1, client=f"s{client}")(torch.from_numpy(data.x[ids]).float())
        right.append((scores.argmax(1).numpy() == data.y[ids]).mean())
    assert results.rounds["accuracy_mean"].iloc[-1] == pytest.approx(np.mean(right), abs=1e-12)
    for more, message in (
        ({}, "each client of 'flexifed' has its own model, and say which one is meant, as in client='s0'"),
        ({"client": "s99"}, "there is no client 's99'; did you mean 's9'"),
        ({"client": "s1", "device_class": "a"}, "give either client or device_class"),
    ):
        with pytest.raises(UserError, match=message):
            results.load_model("flexifed", 1, **more)


def test_device_classes_have_a_table_that_adds_up_to_the_rounds(tmp_path: Path) -> None:
    rates = {"radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 2e6}, "discipline": {"name": "dedicated"}}
    more = {"network.cell": rates, "protocols": [{"name": "flexifed", "clients": 6}]}
    mixed = changes(**more)
    slow = {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}
    mixed["devices.classes"] = {kind: keys | slow for kind, keys in mixed["devices.classes"].items()}
    scenario = digit_runs.scenario(mixed)
    results, worlds = with_worlds(scenario, tmp_path / "run")
    table, rounds, world = results.device_classes, results.rounds, worlds["flexifed"]
    assert table.groupby("round")["clients"].sum().tolist() == [DEVICES] * 3
    for name in ("uplink_bytes", "downlink_bytes"):
        assert table.groupby("round")[name].sum().tolist() == rounds[name].tolist()
    work = world.trace.work.array()
    assert table[table["round"] == 3]["compute_s"].sum() == pytest.approx((work["end_s"] - work["start_s"]).sum())
    loop = LayerLoop(scenario, widths_of())
    accuracies = np.array(loop.run("max", selected(3, 6)))
    kinds = np.array(KINDS)
    for _, row in table.iterrows():
        own = accuracies[row["round"] - 1][kinds == row["device_class"]]
        assert row["accuracy_mean"] == pytest.approx(own.mean(), abs=1e-12)
        assert (row["accuracy_min"], row["accuracy_max"]) == pytest.approx((own.min(), own.max()), abs=1e-12)


def test_one_device_class_has_no_table(tmp_path: Path) -> None:
    results = run(digit_runs.scenario({"stop.rounds": 1}), out=tmp_path, executor="batched")
    with pytest.raises(
        UserError, match=r"device_classes.csv was not written: all devices of this run are of one class"
    ):
        _ = results.device_classes


def test_no_client_with_a_twin_hands_its_model_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All layers of kinds a, b and c are averaged with somebody's: what leaves a wave is sums, one for each segment."""
    waves: list[Wave] = []

    class Noted(TrainJob):
        def __init__(self, wave: Wave, values: Sequence[Any]) -> None:
            waves.append(wave)
            super().__init__(wave, values)

    monkeypatch.setattr("fedsim.learning.executors.torch_executor.TrainJob", Noted)
    protocols = [{"name": "flexifed", "fraction": 1.0}]
    run(digit_runs.scenario(changes("abc", protocols=protocols)), out=tmp_path, executor="batched", workers=1)
    assert sum(len(wave.trainings) for wave in waves) == 3 * DEVICES
    assert {one.wanted for wave in waves for one in wave.trainings} == {()}
    for wave in waves:
        segments = [part for total in wave.sums for part in total.parts]
        assert len(segments) == len(set(segments)) == len(wave.trainings[0].sources.model("model"))
    assert max(len(wave.trainings) for wave in waves) > 3, "clients of one model train together"
