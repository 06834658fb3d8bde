"""Chosen filters: a known size is not trained for again, and a killed run ends with the same bytes."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from killed_runs import killed_again_and_again
from run_server import RunServer
from signals import At
from tiers import mostly_long

import fedsim

CLIENTS, ROUNDS = 4, 3
TAKES_TIME: dict[str, Any] = {
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6},
    "devices.classes.sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.001}},
}
AGENT: dict[str, Any] = {"name": "gnn_ppo", "episodes": 4, "update_steps": 4, "finetune_rounds": 2}
CHANGES: dict[str, Any] = TAKES_TIME | {
    "topology.devices": 6,
    "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2},
    "model": {"name": "small_cnn"},
    "evaluate": {"on": ["own"]},
    "stop.rounds": ROUNDS,
    "training.momentum": 0.9,
    "protocols": [{"name": "spatl", "clients": CLIENTS, "selection": AGENT}],
}
SIZES = CLIENTS * ROUNDS


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


def computed(store: Path, run: int = 0) -> list[str]:
    """The operations that the so manyth run on a store has computed."""
    ledgers = sorted((store / "ledger").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    rows = [line for line in ledgers[run].read_text().splitlines() if '"computed"' in line]
    return [row.partition('"operation":')[2].split('"')[1] for row in rows]


def test_a_warm_store_gives_the_cold_runs_trace_and_trains_nothing(tmp_path: Path) -> None:
    scenario, store = digit_runs.scenario(CHANGES), tmp_path / "store"
    runs = [fedsim.run(scenario, out=tmp_path / name, store=store) for name in ("cold", "warm")]
    hashes = {results.manifest["runs"][0]["trace_hash"] for results in runs}
    assert len(hashes) == 1
    assert computed(store).count("train") == SIZES and "train" not in computed(store, 1)
    assert runs[0].rounds.equals(runs[1].rounds)


def test_another_network_is_timed_without_a_training_step(tmp_path: Path) -> None:
    store = tmp_path / "store"
    slower = CHANGES | {"network.cell.radio": {"name": "fixed", "uplink_bps": 1e5, "downlink_bps": 1e5}}
    fast, slow = (
        fedsim.run(digit_runs.scenario(changes), out=tmp_path / name, store=store)
        for name, changes in (("fast", CHANGES), ("slow", slower))
    )
    assert "train" not in computed(store, 1)
    assert slow.rounds["sim_time_s"].iloc[-1] > 2 * fast.rounds["sim_time_s"].iloc[-1]
    assert slow.rounds["accuracy"].tolist() == fast.rounds["accuracy"].tolist()
    assert slow.rounds["uplink_bytes"].tolist() == fast.rounds["uplink_bytes"].tolist()


def test_another_graph_network_is_another_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fedsim.learning.selections import gnn_ppo

    store, content = tmp_path / "store", bytearray(gnn_ppo._pretrained())
    scenario = digit_runs.scenario(CHANGES | {"stop.rounds": 1})
    fedsim.run(scenario, out=tmp_path / "one", store=store)
    content[-1] ^= 1  # the last bit but seven of the last number
    monkeypatch.setattr(gnn_ppo, "_pretrained", lambda: bytes(content))
    fedsim.run(scenario, out=tmp_path / "other", store=store)
    assert computed(store, 1).count("train") == CLIENTS


@pytest.mark.slow
@pytest.mark.parametrize("executor", mostly_long(["serial", "batched", "processes"], now=["serial"]))
def test_killed_between_a_selection_and_its_upload(server: RunServer, tmp_path: Path, executor: str) -> None:
    scenario, whole, out = digit_runs.data(CHANGES), tmp_path / "whole", tmp_path / "run"
    assert server.run(scenario, whole, executor=executor) == 0
    often: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": 2, "executor": executor}
    for sizes in (6,) if executor == "serial" else (1, 2, 3, 4, 5, 6, 8, 9, 11, SIZES):
        assert server.run(scenario, out, at=At(0, sizes=sizes), **often) == -signal.SIGKILL
        assert not (out / "rounds.csv").exists()
    assert server.run(scenario, out, resume=True, executor=executor) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(whole)


@pytest.mark.long
@pytest.mark.parametrize("how", [{"executor": "serial"}, {"executor": "processes", "workers": 2}], ids=str)
def test_killed_at_any_moment(server: RunServer, tmp_path: Path, how: dict[str, Any]) -> None:
    killed_again_and_again(server, digit_runs.data(CHANGES), tmp_path, kills=10, **how)
