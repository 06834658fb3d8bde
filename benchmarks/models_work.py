"""The work of the models benchmark: which models, and a round of eight clients for both sides.

A client has enough samples for several mini-batches, and so many that a round takes between some hundredths of a second
and some seconds. Samples and labels are random, and the same for both sides, as starts and mini-batches are: they come
from the streams that fedsim draws from. Left out: models of the user's own (`torch_module`), and `declared`, which has
no layers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsim import registry
from fedsim.data.encoding import AS_IT_IS, Ids
from fedsim.data.raw_dataset import RawDataset
from fedsim.kernel.streams import Streams
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters
from fedsim.scenario.schema import Scenario

CLIENTS, TESTS, SEED = 8, 500, 1
MOST_TEXTS = 32
"""In a mini-batch."""
WITHOUT_ROWS = ("declared", "torch_module")
"""Registered models that have no layers of their own."""
TensorDict = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Model:
    """A registered model with some of its keys, and what its samples look like."""

    label: str
    keys: dict[str, Any]
    shape: tuple[int, ...]
    classes: int
    samples: int
    """Of each client, about; at least two mini-batches."""
    rate: float = 0.01

    @property
    def of_texts(self) -> bool:
        return len(self.shape) == 1

    @property
    def vocabulary(self) -> int:
        ids = registry.load("models", self.keys["name"]).vocabulary
        assert isinstance(ids, int)
        return ids


_GREY_8, _GREY_28, _RGB_32, _VIBRATION, _SERIES = (1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 1024), (14, 30)
MODELS = (
    Model("softmax", {"name": "softmax"}, _GREY_8, 10, 6400),
    Model("mlp", {"name": "mlp"}, _GREY_8, 10, 6400),
    Model("small_cnn", {"name": "small_cnn"}, _GREY_8, 10, 1920),
    Model("hfedms_cnn", {"name": "hfedms_cnn"}, _GREY_28, 62, 50),
    Model("fedgs_cnn", {"name": "fedgs_cnn"}, _GREY_28, 62, 50),
    Model("leaf_cnn", {"name": "leaf_cnn"}, _GREY_28, 62, 640),
    Model("vgg-11-narrow", {"name": "vgg", "depth": 11, "head": "narrow"}, _RGB_32, 10, 100),
    Model("vgg-11-wide", {"name": "vgg", "depth": 11, "head": "wide"}, _RGB_32, 10, 100),
    Model("vgg-16-wide", {"name": "vgg", "depth": 16, "head": "wide"}, _RGB_32, 10, 60),
    Model("resnet-20", {"name": "resnet", "depth": 20}, _RGB_32, 10, 200),
    Model("resnet-20-projection", {"name": "resnet", "depth": 20, "shortcut": "projection"}, _RGB_32, 10, 200),
    Model("resnet-20-group", {"name": "resnet", "depth": 20, "normalisation": "group"}, _RGB_32, 10, 200),
    Model("resnet-20-none", {"name": "resnet", "depth": 20, "normalisation": "none"}, _RGB_32, 10, 200, 1e-6),
    Model("resnet-56", {"name": "resnet", "depth": 56, "shortcut": "projection"}, _RGB_32, 10, 100),
    Model("char_cnn-3", {"name": "char_cnn", "depth": 3}, (1014,), 4, 60),
    Model("vdcnn-9", {"name": "vdcnn", "depth": 9}, (1024,), 4, 60),
    Model("conv1d", {"name": "conv1d"}, _VIBRATION, 4, 1280),
    Model("conv1d-batch", {"name": "conv1d", "normalisation": "batch"}, _VIBRATION, 4, 1280),
    Model("gru", {"name": "gru"}, _SERIES, 3, 1280),
    Model("lstm", {"name": "lstm"}, _SERIES, 3, 1280),
    Model("lstm-2", {"name": "lstm", "layers": 2}, _SERIES, 3, 1280),
)


def chosen(names: Iterable[str]) -> list[Model]:
    """The models with such labels, or whose label begins with such words: ``resnet-20`` has four, ``resnet`` five."""
    return [model for model in MODELS if any(f"{model.label}-".startswith(f"{name}-") for name in names)]


@dataclass(frozen=True)
class Work:
    """A model and the size of a mini-batch."""

    model: Model
    batch: int

    @property
    def samples(self) -> int:
        """Of each client: whole mini-batches."""
        return self.batch * max(2, self.model.samples // self.batch)

    def without_dropout(self) -> Work:
        """The same without what chance does to its numbers, but for the order of samples."""
        if "dropout" not in registry.load("models", self.model.keys["name"]).model_fields:
            return self
        return replace(self, model=replace(self.model, keys=self.model.keys | {"dropout": 0.0}))

    def table(self) -> LayerTable:
        keys = self.model.keys
        layers: LayerTable = registry.load("models", keys["name"])(**keys).table(self.model.shape, self.model.classes)
        return layers

    def start(self) -> dict[str, TensorDict]:
        """What training starts from: part -> name -> tensor."""
        return initial_parameters(self.table(), Streams(SEED)("model/init").generator())

    def order(self, client: int, round_index: int) -> torch.Tensor:
        """The client's samples in the order of its mini-batches."""
        shuffler = Streams(SEED)("batches", client, round_index).generator()
        return torch.from_numpy(shuffler.permutation(self.samples))

    def flat(self, parts: dict[str, TensorDict]) -> NDArray[np.float32]:
        """All parameters of a model one after the other, without running statistics."""
        table = self.table()
        return np.concatenate(
            [
                parts[part][name].numpy().ravel()
                for part in table.parts
                for name in table.state_shapes(part)
                if name not in table.statistics_names(part)
            ]
        )

    def scenario(self, rounds: int) -> Scenario:
        """FedAvg with all clients in each round, on a star of quick links."""
        return Scenario.model_validate(
            {
                "name": "models-benchmark",
                "seeds": [SEED],
                "stop": {"rounds": rounds},
                "topology": {"name": "star", "devices": CLIENTS},
                "network": {
                    "cell": {"radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9}},
                    "link": {"rate_bps": 1e9},
                },
                "devices": {"classes": {"machine": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}},
                "data": {
                    "name": "python",
                    "path": "benchmarks.models_work:made_for_fedsim",
                    "options": {"label": self.model.label, "samples": self.samples},
                    "partition": {"name": "natural"},
                },
                "model": self.model.keys,
                "training": {"learning_rate": self.model.rate, "batch_size": self.batch},
                "protocols": [{"name": "fedavg", "fraction": 1.0}],
            }
        )


def samples_of(model: Model, samples: int) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Samples and labels: those to test on, then those of each client."""
    rng, count = np.random.default_rng(SEED), TESTS + CLIENTS * samples
    if model.of_texts:
        x: NDArray[Any] = rng.integers(0, model.vocabulary, (count, *model.shape), dtype=np.uint8)
    else:
        x = rng.standard_normal((count, *model.shape), dtype=np.float32)
    return x, rng.integers(0, model.classes, count)


def made_for_fedsim(clients: int, rng: np.random.Generator, *, label: str, samples: int) -> RawDataset:
    """The same as a data set of the user's own; *rng* is left alone, as the other side has to have the same samples."""
    model = next(model for model in MODELS if model.label == label)
    x, y = samples_of(model, samples)
    owner = np.concatenate([np.arange(TESTS) % clients, np.repeat(np.arange(clients), samples)])
    return RawDataset(
        x=x,
        y=y,
        classes=model.classes,
        sample_bytes=float(x[0].nbytes + 1),
        encoding=Ids(model.vocabulary) if model.of_texts else AS_IT_IS,
        owner=owner,
        owners_are_clients=True,
        test=np.arange(len(y)) < TESTS,
    )
