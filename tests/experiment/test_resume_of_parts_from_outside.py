"""Killed at any moment, a run with parts from outside of fedsim goes on, too: none of them has code to be resumed."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pandas as pd
import pytest
from run_server import RunServer
from signals import At

OUTSIDE = Path(__file__).parents[1] / "outside"
SPARSE = {"path": f"{OUTSIDE / 'sparse.py'}:Sparse", "threshold": 0.02}
MOMENTUM = {"path": f"{OUTSIDE.parent / 'momentum.py'}:Momentum"}
MIXING = {"path": f"{OUTSIDE / 'asynchronous.py'}:Mixing"}
TAKES_TIME = {
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e5, "downlink_bps": 1e5},
    "devices.classes.sensor": {
        "compute": {
            "name": "distribution",
            "law": "exponential",
            "mean_seconds_per_sample": 0.01,
            "per": "training",
        }
    },
}
MEASURED = digit_runs.data(
    TAKES_TIME | {"protocols": [{"name": "fedavg", "clients": 6, "codec": SPARSE, "server": MOMENTUM}]}
)
SIZES = 18
"""Of six clients in three rounds."""
ASYNCHRONOUS = digit_runs.data(
    TAKES_TIME
    | {
        "protocols": [
            {"path": f"{OUTSIDE / 'asynchronous.py'}:Asynchronous", "concurrency": 6, "folded": 2, "server": MIXING}
        ],
        "stop.rounds": 10,
        "evaluate": {"every": 2},
    }
)
OFTEN: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": 2}


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


def outcome(out: Path) -> dict[str, bytes]:
    """With every transfer, byte by byte and second by second."""
    transfers = pd.read_parquet(out / "transfers.parquet")
    return digit_runs.outcome(out) | {"transfers": transfers.to_csv().encode()}


def computed(store: Path) -> list[tuple[str, str]]:
    """Operation and key of all that was computed by the runs on a store, one for each time, in the order of time."""
    ledgers = sorted((store / "ledger").glob("*.jsonl"), key=lambda path: path.stat().st_mtime_ns)
    rows = [json.loads(line) for path in ledgers for line in path.read_bytes().splitlines()]
    return [(row["operation"], row["key"]) for row in rows if row["event"] == "computed"]


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "batched", "processes"])
def test_killed_between_asking_for_a_size_and_the_end_of_its_sending(
    server: RunServer, tmp_path: Path, executor: str
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    assert server.run(MEASURED, whole, executor=executor) == 0
    for sizes in (1, 4, 6, 7, 11, SIZES):
        at = At(0, sizes=sizes)
        assert server.run(MEASURED, out, at=at, executor=executor, **OFTEN) == -signal.SIGKILL
        assert not (out / "rounds.csv").exists()
    assert server.run(MEASURED, out, resume=True, executor=executor) == 0
    assert outcome(out) == outcome(whole)
    again, once = computed(out / "store"), computed(whole / "store")
    assert set(again) == set(once), "the same, and nothing else"
    assert len([key for operation, key in once if operation == "train"]) == SIZES


@pytest.mark.long
def test_a_size_that_is_known_is_not_trained_for_again_not_even_after_a_kill(server: RunServer, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert server.run(MEASURED, tmp_path / "cold", store=str(store)) == 0
    before = computed(store)
    options: dict[str, Any] = OFTEN | {"store": str(store), "at": At(0, sizes=12)}
    assert server.run(MEASURED, tmp_path / "warm", **options) == -signal.SIGKILL
    assert server.run(MEASURED, tmp_path / "warm", store=str(store), resume=True) == 0
    assert computed(store) == before
    assert outcome(tmp_path / "warm") == outcome(tmp_path / "cold")


@pytest.mark.long
def test_a_run_without_rounds_goes_on_too(server: RunServer, tmp_path: Path) -> None:
    whole, out = tmp_path / "whole", tmp_path / "run"
    assert server.run(ASYNCHRONOUS, whole) == 0
    expressions = len(set(computed(whole / "store")))
    for part in range(4):
        at = At(1 + part * expressions // 4, moments=part)
        assert server.run(ASYNCHRONOUS, out, at=at, **OFTEN) == -signal.SIGKILL
    assert server.run(ASYNCHRONOUS, out, resume=True) == 0
    assert outcome(out) == outcome(whole)
    assert set(computed(out / "store")) == set(computed(whole / "store"))
