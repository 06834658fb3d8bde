"""Memory of a run that trains: after five hundred rounds what it was after fifty, and none for clients never asked.

`make test` counts the tensors that are alive after each round, which is exact. `make test-long` measures peaks of whole
processes, so a few megabytes are left to the allocator, to garbage that is not collected yet, and to the trace, which
remembers every round. Left out: large models, of which a few in the wrong place show after a few
rounds (``test_host_resources.py``).
"""

from __future__ import annotations

import gc
import json
import math
import warnings
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import digit_runs
import numpy as np
import pytest
import torch
from run_server import RunServer, last_message, peaks
from tiers import mostly_long

from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run

PIXELS = 64
SOFTMAX: dict[str, Any] = {"model": {"name": "softmax"}, "save_transfers": False}
SAMPLES = 40_000
SMALL_BYTES = 5e6
BYTES_A_JOURNEY = 1e3
"""Garbage that the collector leaves for a while because so many clients could be under way, and all that is alike."""
WHO_TRAINS = pytest.mark.parametrize(("executor", "workers"), [("serial", 1), ("batched", 1), ("batched", 2)])


class Peaks(NamedTuple):
    """The most bytes resident at one time."""

    run: int
    """Of the run's process, by the end of the last round."""
    worker: int
    """Of its largest worker; 0 without workers."""


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


def measured(server: RunServer, out: Path, changes: dict[str, Any], **options: Any) -> Peaks:
    assert server.run(digit_runs.data(SOFTMAX | changes), out, **options) == 0, last_message(out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    return Peaks(peaks(out)[-1], manifest["worker_peak_memory_bytes"] or 0)


@pytest.mark.long
@WHO_TRAINS
def test_five_hundred_rounds_need_no_more_memory_than_fifty(
    server: RunServer, tmp_path: Path, executor: str, workers: int
) -> None:
    """450 models that nobody let go of, one of each round, would be 74 MB; 450 kB of each round, 200 MB."""
    protocol = {"name": "fedavg", "clients": 4}
    changes = {"data.pixels": PIXELS, "protocols": [protocol]}
    few, many = (
        measured(server, tmp_path / str(rounds), changes | {"stop.rounds": rounds}, executor=executor, workers=workers)
        for rounds in (50, 500)
    )
    assert many.run - few.run < SMALL_BYTES
    assert many.worker - few.worker < SMALL_BYTES
    assert (few.worker > 0) == (workers > 1)


GROUPS: dict[str, Any] = {
    "name": "hfedms_d",
    "interval": 4,
    "growth": {"name": "constant", "beta": 4},
    "sampling_rate": 1.0,
    "scc": {"capacity": 30},
}
PERCEPTRON: dict[str, Any] = {
    "data.pixels": PIXELS,
    "data.stream": {"samples": 20},
    "model": {"name": "mlp", "hidden": [16]},
}


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_what_clients_remember_does_not_grow(server: RunServer, tmp_path: Path, executor: str) -> None:
    """An extractor is 786 kB, so 150 more blocks whose extractor nobody let go of would be 118 MB.

    Peaks of two equal runs differ by 23 MB at times.
    """
    wide = {"name": "mlp", "hidden": [48]}
    changes = PERCEPTRON | {"protocols": [GROUPS], "evaluate.every": 2, "model": wide}
    few, many = (
        measured(server, tmp_path / str(rounds), changes | {"stop.rounds": rounds}, executor=executor, workers=1)
        for rounds in (40, 640)
    )
    assert many.run - few.run < 118e6 / 2


class Alive(Observer):
    """Counts the bytes of all tensors that are alive after each round."""

    def __init__(self) -> None:
        self.tensor_bytes: list[int] = []

    def round_done(self, *_: object) -> None:
        gc.collect()
        with warnings.catch_warnings():  # some objects that are asked for their class warn that they are outdated
            warnings.simplefilter("ignore")
            found = [one for one in gc.get_objects() if isinstance(one, torch.Tensor)]
        memory = {one.untyped_storage()._cdata: one.untyped_storage().nbytes() for one in found}
        self.tensor_bytes.append(sum(memory.values()))


COHORT = {"name": "fedavg", "clients": 4}
ONE_GROUP = GROUPS | {"growth": {"name": "constant", "beta": 1}}


@pytest.mark.parametrize(
    ("executor", "protocol"),
    mostly_long(product(["serial", "batched"], [COHORT, ONE_GROUP]), now=[("serial", COHORT), ("batched", ONE_GROUP)]),
)
def test_after_a_round_no_more_tensors_are_alive_than_after_an_earlier_one(
    tmp_path: Path, executor: str, protocol: dict[str, Any]
) -> None:
    """Everybody takes part in each block, so that what clients remember is all there after the second one."""
    alive = Alive()
    changes = PERCEPTRON | {"data.pixels": 8, "protocols": [protocol], "stop.rounds": 16}
    run(digit_runs.scenario(changes), out=tmp_path, executor=executor, workers=1, observer=alive)
    assert len(alive.tensor_bytes) == 16
    blocks = alive.tensor_bytes[3::4]
    assert max(blocks[2:]) == blocks[1] > 0, blocks


LATE: dict[str, Any] = {
    "devices.classes": {"sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 1e-3}}},
    "network.cell.radio": {"name": "fixed", "uplink_bps": 4e5, "downlink_bps": math.inf},
    "network.late_transfers": "cancel",
}
"""Who has many samples trains to the end, but its update is always late."""


@pytest.mark.parametrize(("protocol", "deadline_s"), [("scaffold", 0.2), ("fedper", 0.13)])
def test_what_a_client_keeps_that_is_always_late_does_not_hold_the_models_of_all_rounds(
    tmp_path: Path, protocol: str, deadline_s: float
) -> None:
    alive = Alive()
    changes = LATE | {"protocols": [{"name": protocol, "clients": 20, "deadline_s": deadline_s}], "stop.rounds": 8}
    results = run(digit_runs.scenario(changes), out=tmp_path, executor="serial", observer=alive)
    assert results.rounds["late"].between(1, 19).all()
    assert max(alive.tensor_bytes[4:]) == alive.tensor_bytes[3] > 0, alive.tensor_bytes


NODES: dict[str, Any] = {"cloud": {"kind": "cloud"}, "east": {"kind": "base_station"}, "west": {"kind": "base_station"}}
SLOW_WIRE: dict[str, Any] = {
    "name": "explicit",
    "nodes": NODES | {f"s{n}": {"kind": "sensor", "attach": "east" if n < 3 else "west"} for n in range(6)},
    "links": [{"between": ["cloud", "east"]}, {"between": ["cloud", "west"], "rate_bps": 1e3}],
}


def test_a_station_that_is_always_late_does_not_hold_the_models_of_all_rounds(tmp_path: Path) -> None:
    """What its codec has left out is made of the model of each round, though nobody ever gets that."""
    alive, sparse = Alive(), Path(__file__).parents[1] / "outside" / "sparse.py"
    codec = {"path": f"{sparse}:Sparse", "declared_bytes": 1_000.0}
    protocol = {"name": "hierarchical", "fraction": 1.0, "edge_rounds": 1, "codec": codec, "deadline_s": 42.0}
    changes = {"topology": SLOW_WIRE, "data.partition": {"name": "iid"}, "protocols": [protocol], "stop.rounds": 12}
    results = run(digit_runs.scenario(changes), out=tmp_path, executor="serial", observer=alive)
    assert (results.rounds["late"] == 3).all() and (results.rounds["participants"] == 3).all()
    assert max(alive.tensor_bytes[6:]) == alive.tensor_bytes[5] > 0, alive.tensor_bytes


@pytest.mark.parametrize("executor", mostly_long(["serial", "batched"], now=["batched"]))
def test_clients_that_are_never_selected_have_no_tensors(tmp_path: Path, executor: str) -> None:
    most = []
    for clients in (20, 60):
        alive = Alive()
        changes = {"topology.devices": clients, "data.partition": {"name": "iid"}, "stop.rounds": 2}
        options: dict[str, Any] = {"executor": executor, "workers": 1, "observer": alive}
        run(digit_runs.scenario(changes), out=tmp_path / str(clients), **options)
        most.append(max(alive.tensor_bytes))
    assert most[0] == most[1] > 0


def extractors_in_store(tmp_path: Path, scc: dict[str, Any] | None) -> list[int]:
    """Tensors as large as an extractor, after each of the 18 rounds of six blocks."""
    protocol = GROUPS | {"sampling_rate": 0.5, "interval": 3, "scc": scc}
    large = []

    class Counting(Observer):
        def round_done(self, protocol: object, seed: int, done: Any) -> None:
            sizes = [path.stat().st_size for path in (tmp_path / "store" / "tensors").iterdir()]
            large.append(sum(size > 16**2 * 16 * 4 for size in sizes))

    changes = PERCEPTRON | {"data.pixels": 16, "protocols": [protocol], "stop.rounds": 18}
    scenario = digit_runs.scenario(changes)
    run(scenario, out=tmp_path, executor="serial", observer=Counting(), checkpoint_interval_s=1e-9)
    assert len(large) == 18
    return large


@pytest.mark.parametrize("first_extractor", mostly_long(["scattered", "local"], now=["local"]))
def test_extractors_that_are_kept_are_versions_and_not_copies(tmp_path: Path, first_extractor: str) -> None:
    """For each block with a client that has not come again since, one; the store holds what memory holds."""
    large = extractors_in_store(tmp_path, {"first_extractor": first_extractor})
    assert max(large[2::3]) <= 7, "the initial one, and those of six blocks"


def test_without_semantics_nobody_keeps_an_extractor_after_its_block(tmp_path: Path) -> None:
    assert extractors_in_store(tmp_path, None)[2::3] == [1] * 6


@pytest.mark.long
@WHO_TRAINS
def test_clients_that_are_never_selected_need_no_memory_for_training(
    server: RunServer, tmp_path: Path, executor: str, workers: int
) -> None:
    """The same samples on 100 clients and on 10,000; what clock and data need is what a run without training needs.

    The model alone is 2.6 kB, so one for each client would be 26 MB.
    """
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 256, (SAMPLES, 1, 8, 8), dtype=np.uint8), rng.integers(0, 10, SAMPLES)
    np.savez(tmp_path / "samples.npz", x=x, y=y)
    changes = {
        "data": {"name": "arrays", "path": str(tmp_path / "samples.npz"), "scale": 1 / 255},
        "protocols": [{"name": "fedavg", "clients": 10}],
        "stop.rounds": 20,
    }
    here: dict[str, Any] = {"executor": executor, "workers": workers}
    for_training = []
    for clients in (100, 10_000):
        with_it, without = (
            measured(server, tmp_path / f"{clients} {learn}", changes | here_too, **here)
            for learn in (True, False)
            for here_too in [{"topology.devices": clients, "learn": learn}]
        )
        worker = with_it.worker - without.run if workers > 1 else 0
        for_training.append(Peaks(with_it.run - without.run, worker))
    few, many = for_training
    assert few.run > 0
    assert many.run - few.run < 10_000 * BYTES_A_JOURNEY
    assert many.worker - few.worker < 10_000 * BYTES_A_JOURNEY
