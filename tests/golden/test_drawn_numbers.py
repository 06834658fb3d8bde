"""Who gets which sample, and what a stream shows: the very numbers of yesterday.

A training's key holds the content of its data set, but only the positions of a capture: where the samples of a stream
change, the version of the operation ``train`` has to change too. `make golden-accept` writes today's numbers over
yesterday's ``drawn_numbers.json``.
"""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np

from fedsim.data.captures import Capture, captured_ids, phase_of_class
from fedsim.data.dataset import FederatedDataset
from fedsim.data.partition.classes_per_client import ClassesPerClient
from fedsim.data.partition.dirichlet import Dirichlet, QuantitySkew
from fedsim.data.partition.factory_preference import FactoryPreference
from fedsim.data.partition.iid import Iid, Shards
from fedsim.data.partition.natural import Natural
from fedsim.data.partition.settings import Labels
from fedsim.data.raw_dataset import Clients
from fedsim.data.shares import hold_out, stratified_sample
from fedsim.data.stream.drift import Gradual
from fedsim.data.stream.settings import StreamSettings
from fedsim.kernel.streams import Streams

GOLDEN = Path(__file__).with_name("drawn_numbers.json")
STREAMS = Streams(1)
CLASSES = 3
LABELS = np.arange(24, dtype=np.int64) * 5 % 7 % CLASSES
CLIENTS = Clients(3, np.array([0, 0, 1]), unseen=1)
PARTITIONS = (
    Iid(),
    Shards(),
    Dirichlet(alpha=0.2),
    Dirichlet(alpha=0.2, capacity_rule=False),
    QuantitySkew(alpha=2.0),
    ClassesPerClient(classes=2),
    FactoryPreference(),
    Natural(),
)


def streaming() -> FederatedDataset:
    """Two clients with 5 and 7 samples."""
    number = np.arange(12)
    return FederatedDataset(
        name="streaming",
        classes=CLASSES,
        sample_shape=(1,),
        sample_bytes=1.0,
        client_samples=np.array([5, 7]),
        stored=number.astype(np.uint8)[:, None],
        y=LABELS[:12],
        train_ids=(number[:5], number[5:]),
        client_test_ids=(number[:0], number[:0]),
        stream=StreamSettings(samples=4),
    )


def drawn() -> dict[str, list[int]]:
    """Everything that is compared, by its name."""
    labels = Labels(LABELS, np.arange(24, dtype=np.int64) ** 2 % 11)
    rng = STREAMS("data/partition").generator
    found = {f"owners: {partition!r}": partition.deal(labels, CLIENTS, rng()) for partition in PARTITIONS}
    found["tests of all"] = stratified_sample(LABELS, 0.3, STREAMS("data/test_split").generator())
    found["a client's tests"] = hold_out(np.arange(9), 0.3, STREAMS("data/client_test").generator())[1]
    plain = streaming()
    drifting = replace(plain, stream=StreamSettings(samples=4, drift=Gradual(begin=1, end=2, strength=0.8)))
    found["phases of 7 classes"] = phase_of_class(7, 3, STREAMS)
    for client in range(2):
        found[f"captured: passes of client {client}"] = captured_ids(plain, client, Capture(3, 16), STREAMS)
        capture = Capture(3, 16, (0.25, 0.75))
        found[f"captured: drift of client {client}"] = captured_ids(drifting, client, capture, STREAMS)
    return {name: numbers.tolist() for name, numbers in found.items()}


def test_what_is_drawn_is_yesterdays() -> None:
    today = drawn()
    if os.environ.get("FEDSIM_GOLDEN") == "accept":
        lines = ",\n".join(f" {json.dumps(name)}: {numbers}" for name, numbers in today.items())
        GOLDEN.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    assert GOLDEN.exists(), f"{GOLDEN} is missing; write it with: make golden-accept"
    yesterday = json.loads(GOLDEN.read_bytes())
    assert today.keys() == yesterday.keys()
    for name, numbers in today.items():
        assert numbers == yesterday[name], f"{name} changed; raise what is in the key, then make golden-accept"
