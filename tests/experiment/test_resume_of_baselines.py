"""What a server rule or a client remembers is values of the store: killed, a run ends as if nothing had happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from killed_runs import killed_again_and_again
from run_server import RunServer
from tiers import mostly_long

from fedsim.experiment.run import run
from fedsim.scenario.schema import Scenario

PROTOCOLS = {
    "scaffold": "add",
    "fedadam": "server_step",
    "ida_intrac": "inverse_distance",
}
"""Of each, an operation that makes what the next round needs."""
OTHERS = (
    *("fedavgm", "fedadagrad", "fedyogi", "fednova", "ida", "ida_fedavg", "fedmmd"),
    *("fedfusion_conv", "fedfusion_multi", "fedfusion_single", "cgau", "fedper"),
)
KEYS: dict[str, dict[str, Any]] = {"cgau": {"pretraining_rounds": 2, "units": 8}}
"""What a protocol cannot do without."""
EXECUTORS = ("serial", "batched")


def scenario(name: str) -> dict[str, Any]:
    """Clients that come again, with momentum."""
    protocols = [{"name": name, "clients": 9, **KEYS.get(name, {})}]
    return digit_runs.data({"protocols": protocols, "stop.rounds": 4, "training.momentum": 0.9})


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


@pytest.mark.long
@pytest.mark.parametrize("name", OTHERS)
def test_every_other_baseline_goes_on_byte_for_byte(server: RunServer, tmp_path: Path, name: str) -> None:
    killed_again_and_again(server, scenario(name), tmp_path, kills=3, executor="batched", workers=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "executor"),
    mostly_long(
        [(name, executor) for name in PROTOCOLS for executor in EXECUTORS],
        now=[],
    ),
)
def test_a_killed_baseline_goes_on_byte_for_byte(server: RunServer, tmp_path: Path, name: str, executor: str) -> None:
    killed_at = killed_again_and_again(server, scenario(name), tmp_path, kills=3, executor=executor, workers=1)
    ledger = digit_runs.ledger(tmp_path / "run" / "store")
    operation = {row["key"]: row["operation"] for row in ledger if row["event"] == "computed"}
    assert any(row["event"] == "loaded" for row in ledger[killed_at:])
    assert PROTOCOLS[name] in {operation[row["key"]] for row in ledger if row["event"] == "loaded"}


@pytest.mark.slow
def test_any_number_of_workers_comes_to_the_same_bytes(tmp_path: Path) -> None:
    """With two, checkpoints are written at every occasion: while workers are busy."""
    content = Scenario.model_validate(scenario("scaffold"))
    for workers, interval_s in ((1, 30.0), (2, 1e-9)):
        folder = tmp_path / str(workers)
        run(content, out=folder, executor="batched", workers=workers, checkpoint_interval_s=interval_s)
    assert digit_runs.outcome(tmp_path / "1") == digit_runs.outcome(tmp_path / "2")
