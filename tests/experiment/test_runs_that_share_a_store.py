"""Runs that share a store at the same time: what they have in common is trained by one of them, and they come out
as if each had been alone. The second run begins while the first one is under way, inside of it."""

from __future__ import annotations

import json
import os
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from filelock import FileLock

from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round

TWO: dict[str, Any] = {
    "seeds": [1, 2],
    "protocols": [{"name": "fedavg", "clients": 8}, {"name": "fedprox", "clients": 8, "mu": 0.1}],
}
ELSEWHERE = {"topology.devices": 20, "network.link.rate_bps": 1e6}
"""Another network, on which the same is trained."""


class StandStill(Exception):
    """The second run has nothing to do but to wait for the first one, which waits for it."""


class Second(Observer):
    """Hears the order in which the second run does its work, and ends it where it would have to wait."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.waited_for: list[str] = []

    def put_off(self, protocol: Protocol, seed: int) -> None:
        self.heard.append(f"{protocol.title}/{seed} put off")

    def end(self, protocol: Protocol, seed: int) -> None:
        self.heard.append(f"{protocol.title}/{seed}")

    def waits(self, holders: Sequence[str]) -> None:
        self.waited_for = list(holders)
        raise StandStill


class First(Observer):
    """Lets something happen when its first round is over."""

    def __init__(self, happens: Callable[[], None]) -> None:
        self._happens: Callable[[], None] | None = happens

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        happens, self._happens = self._happens, None
        if happens is not None:
            happens()


def computed(store: Path) -> Counter[str]:
    """How often each node but the initial models was computed, by all runs together."""
    lines = [line for path in (store / "ledger").glob("*.jsonl") for line in path.read_text().splitlines()]
    return Counter(
        row["key"] for row in map(json.loads, lines) if row["event"] == "computed" and row["operation"] != "init"
    )


def same_files(one: Path, other: Path) -> None:
    assert digit_runs.outcome(one) == digit_runs.outcome(other)
    for name in ("summary.csv", "links.csv", "transfers.parquet"):
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    runs = [[(row["protocol"], row["seed"]) for row in Results(folder).manifest["runs"]] for folder in (one, other)]
    assert runs[0] == runs[1]


def begun_inside(tmp_path: Path, **second: object) -> tuple[Second, Path]:
    """Two runs into one store, the second of a scenario with other values; both finished. What the second one heard."""
    store, hears = tmp_path / "store", Second()
    other = digit_runs.scenario({**TWO, **second})

    def happens() -> None:
        with pytest.raises(StandStill):
            run(other, out=tmp_path / "second", store=store, observer=hears, executor="serial")

    run(digit_runs.scenario(TWO), out=tmp_path / "first", store=store, observer=First(happens), executor="serial")
    run(other, out=tmp_path / "second", store=store, resume=True, observer=Observer(), executor="serial")
    return hears, store


def test_a_run_does_first_what_no_other_run_trains(tmp_path: Path) -> None:
    hears, _ = begun_inside(tmp_path, **ELSEWHERE)
    assert hears.heard == ["fedavg/1 put off", "fedprox/1", "fedavg/2", "fedprox/2"]
    assert hears.waited_for == [f"process {os.getpid()} on {socket.gethostname()}"]


def test_runs_at_the_same_time_train_nothing_twice(tmp_path: Path) -> None:
    _, store = begun_inside(tmp_path, **ELSEWHERE)
    assert set(computed(store).values()) == {1}


def test_what_is_put_off_leaves_the_same_bytes(tmp_path: Path) -> None:
    begun_inside(tmp_path, **ELSEWHERE)
    run(digit_runs.scenario({**TWO, **ELSEWHERE}), out=tmp_path / "alone", executor="serial", observer=Observer())
    same_files(tmp_path / "second", tmp_path / "alone")


def test_what_comes_later_stands_in_the_scenarios_order(tmp_path: Path) -> None:
    """Somebody holds the claim of the first protocol on the first seed until all others have been run."""
    begins = digit_runs.scenario({"protocols": TWO["protocols"][:1], "stop.rounds": 1})
    run(begins, out=tmp_path / "begins", store=tmp_path / "store", executor="serial", observer=Observer())
    (claim,) = (tmp_path / "store" / "claims").iterdir()
    lock, whole = FileLock(claim), digit_runs.scenario({**TWO, **ELSEWHERE})
    hears = Second()
    hears.waits = lambda _: lock.release()  # type: ignore[method-assign]
    with lock:
        run(whole, out=tmp_path / "later", store=tmp_path / "store", observer=hears, executor="serial")
    assert hears.heard == ["fedavg/1 put off", "fedprox/1", "fedavg/2", "fedprox/2", "fedavg/1"]
    run(whole, out=tmp_path / "alone", executor="serial", observer=Observer())
    same_files(tmp_path / "later", tmp_path / "alone")


@pytest.mark.parametrize("every", [2, 3])
def test_other_evaluations_have_the_same_beginning(tmp_path: Path, every: int) -> None:
    hears, _ = begun_inside(tmp_path, **ELSEWHERE, **{"evaluate.every": every})
    assert hears.heard[0] == "fedavg/1 put off"


def test_other_trainings_are_not_waited_for(tmp_path: Path) -> None:
    store, hears = tmp_path / "store", Second()
    other = digit_runs.scenario({**TWO, "training.learning_rate": 0.2})

    def happens() -> None:
        run(other, out=tmp_path / "second", store=store, observer=hears, executor="serial")

    run(digit_runs.scenario(TWO), out=tmp_path / "first", store=store, observer=First(happens), executor="serial")
    assert hears.heard == ["fedavg/1", "fedprox/1", "fedavg/2", "fedprox/2"]


@pytest.mark.parametrize("protocol", ["fedavg", "scaffold", "fedadam"])
def test_protocols_with_something_at_the_server_begin_with_their_trainings(tmp_path: Path, protocol: str) -> None:
    """What a server begins with is the same for all learning rates of clients; that is nothing to wait for."""
    scenario = {"protocols": [{"name": protocol, "clients": 8}]}
    for rate in (0.1, 0.2):
        changed = digit_runs.scenario({**scenario, "training.learning_rate": rate, "stop.rounds": 1})
        run(changed, out=tmp_path / str(rate), store=tmp_path / "store", observer=Observer(), executor="serial")
    assert len(list((tmp_path / "store" / "claims").iterdir())) == 2


def test_a_claim_ends_with_a_run_that_fails(tmp_path: Path) -> None:
    store, hears = tmp_path / "store", Second()

    def fails() -> None:
        raise UserError("stop here")

    with pytest.raises(UserError, match="stop here"):
        run(digit_runs.scenario(TWO), out=tmp_path / "first", store=store, observer=First(fails), executor="serial")
    run(digit_runs.scenario(TWO), out=tmp_path / "second", store=store, observer=hears, executor="serial")
    assert hears.heard == ["fedavg/1", "fedprox/1", "fedavg/2", "fedprox/2"]


def test_what_stands_in_the_place_of_a_claim_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store"
    scenario = digit_runs.scenario(TWO)
    run(scenario, out=tmp_path / "first", store=store, observer=Observer(), executor="serial")
    locks = list((store / "claims").iterdir())
    assert len(locks) == 4
    for lock in locks:
        lock.unlink()
        lock.symlink_to(tmp_path / "elsewhere")
    changed = digit_runs.scenario({**TWO, "stop.rounds": 4})
    with pytest.raises(UserError, match="is a link, and a store keeps the lock of a claim there"):
        run(changed, out=tmp_path / "second", store=store, observer=Observer(), executor="serial")
    assert not (tmp_path / "elsewhere").exists()
