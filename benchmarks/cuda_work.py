"""The work of the checklist for CUDA devices: random clients, waves of them as a trainer gets them, and seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Training, Wave, WeightedSum
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters

SEED = 1


@dataclass(frozen=True)
class Asked:
    """What the checklist is asked for."""

    folder: Path
    """For its files."""
    torch_device: str
    batch: int
    rounds: int
    """After the warm-up."""


def random_clients(shape: tuple[int, ...], classes: int, sizes: Sequence[int]) -> FederatedDataset:
    """Clients with so many random samples each."""
    rng, total = np.random.default_rng(SEED), sum(sizes)
    ids = np.split(np.arange(total), np.cumsum(sizes)[:-1])
    return FederatedDataset(
        name="random",
        classes=classes,
        sample_shape=shape,
        sample_bytes=1.0,
        client_samples=np.array(sizes, np.int64),
        stored=rng.standard_normal((total + 1, *shape), dtype=np.float32),
        y=rng.integers(classes, size=total + 1),
        train_ids=tuple(ids),
        test_ids=np.arange(total, total + 1),
        client_test_ids=tuple(own[:0] for own in ids),
    )


def wave_of(table: LayerTable, dataset: FederatedDataset, clients: int, training: TrainingSettings) -> Wave:
    """An epoch of each client from the same model, whose parts are the values given, and the mean of what they make."""
    model = {Slot("model", 0, part): place for place, part in enumerate(table.parts)}
    trainings = tuple(
        Training(
            Train(table.digest, training, Plain(), Float32(), Seen.of(dataset, client)),
            Stream(SEED, "batches", client, 0),
            model,
            (),
        )
        for client in range(clients)
    )
    base = {part: place for place, part in enumerate(table.parts)}
    return Wave(trainings, (WeightedSum((1 / clients,) * clients, table.parts, base, tuple(range(clients))),))


def start_of(table: LayerTable, torch_device: str) -> list[TensorDict]:
    """The values given: what training starts from, part by part."""
    parts = initial_parameters(table, np.random.default_rng(SEED))
    return [{name: tensor.to(torch_device) for name, tensor in parts[part].items()} for part in table.parts]


def flat(table: LayerTable, parts: Mapping[str, TensorDict]) -> NDArray[np.float64]:
    """All parameters of a model one after the other, without running statistics."""
    values = [parts[part][name].double().reshape(-1) for part in table.parts for name in table.parameter_shapes(part)]
    return torch.cat(values).cpu().numpy()


def error(found: NDArray[np.float64], true: NDArray[np.float64], start: NDArray[np.float64]) -> float:
    """How far *found* is from what is *true*, relative to the update that is."""
    return float(np.linalg.norm(found - true) / np.linalg.norm(true - start))


def seconds(work: Callable[[], object], torch_device: str, times: int) -> float:
    """The median of so many *times*, each from an idle device until all is done there."""
    taken = []
    for _ in range(times):
        began = time.monotonic()
        work()
        if torch_device == "cuda":
            torch.cuda.synchronize()
        taken.append(time.monotonic() - began)
    return median(taken)
