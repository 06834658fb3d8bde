"""A round of local training on a stream of images, against the bare PyTorch loop on samples that lie ready.

Both train the same number of clients from the same start on as many samples in as many mini-batches. Left out: what
comes before and after (the mean, evaluations), and the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

from fedsim.data.captures import Capture, capture_samples
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.data.stream.settings import Augmentation, StreamSettings
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import Seen, mini_batches
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings
from fedsim.models.hfedms_cnn import HfedmsCnn
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.settings import ModelSettings
from fedsim.models.torch_module import build

CLIENTS, HELD, FRESH, BATCH, SHAPE, CLASSES = 10, 160, 50, 5, (1, 28, 28), 62
RATE = 0.01
SGD = TrainingSettings(learning_rate=RATE, batch_size=BATCH)
MODELS: list[type[ModelSettings]] = [LeafCnn, HfedmsCnn]
GROUP = f"{CLIENTS} clients train on {FRESH} fresh images each"


class Round:
    """What a round of one model needs, made before it is measured."""

    def __init__(self, model: ModelSettings) -> None:
        rng, samples = np.random.default_rng(1), CLIENTS * HELD
        self.data = FederatedDataset(
            name="stream",
            classes=CLASSES,
            sample_shape=SHAPE,
            sample_bytes=785.0,
            client_samples=np.full(CLIENTS, HELD, np.int64),
            stored=rng.integers(0, 256, (samples, *SHAPE)).astype(np.uint8),
            y=rng.integers(0, CLASSES, samples),
            encoding=Affine(1 / 255),
            train_ids=tuple(np.arange(samples).reshape(CLIENTS, HELD)),
            client_test_ids=(np.empty(0, np.int64),) * CLIENTS,
            stream=StreamSettings(samples=FRESH, augmentation=Augmentation()),
        )
        self.table = model.table(SHAPE, CLASSES)
        self.executor = Serial(self.table, self.data)
        self.graph = Graph("benchmark")
        node = self.graph.node(Init(self.table.digest), {}, stream=Stream(1, "model/init"))
        self.start: dict[str, Handle] = {}
        for part, value in self.executor.compute([node])[0].items():
            self.start[part] = node.output(part)
            self.start[part].value = value

    def training(self, client: int) -> Node:
        inputs = {Slot("model", part=part): handle for part, handle in self.start.items()}
        return self.graph.node(self.work(client), inputs, stream=Stream(1, "batches", client))

    def work(self, client: int) -> Train:
        seen = Seen.of(self.data, client, Capture(0, FRESH))
        return Train(self.table.digest, SGD, Plain(), Float32(), seen)

    def by_fedsim(self) -> int:
        return sum(len(self.executor.compute([self.training(client)])) for client in range(CLIENTS))

    def data_alone(self) -> int:
        """Captured, augmented, and handed out in mini-batches; on none is trained."""
        works = [(self.work(client).seen, Stream(1, "batches", client)) for client in range(CLIENTS)]
        return sum(len(y) for seen, stream in works for _, y in mini_batches(self.data, seen, SGD, stream)) // FRESH

    def bare(self) -> Callable[[], int]:
        module = build(self.table)
        captures = (capture_samples(self.data, client, Capture(0, FRESH), Streams(1)) for client in range(CLIENTS))
        ready = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in captures]

        def trained() -> int:
            models = []
            for x, y in ready:
                for part, handle in self.start.items():
                    module.load(part, handle.value)
                optimiser = torch.optim.SGD(module.parameters(), lr=RATE, foreach=False)
                order = torch.randperm(FRESH)
                for first in range(0, FRESH, BATCH):
                    rows = order[first : first + BATCH]
                    optimiser.zero_grad()
                    loss = torch.nn.functional.cross_entropy(module(x[rows]), y[rows])
                    loss.backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
                models.append({name: value.clone() for name, value in module.state_dict().items()})
            return len(models)

        return trained


@pytest.fixture(params=MODELS, ids=[model.__name__ for model in MODELS])
def one_round(request: pytest.FixtureRequest) -> Iterator[Round]:
    before = torch.get_num_threads()
    yield Round(request.param())
    torch.set_num_threads(before)


@pytest.mark.benchmark(group=GROUP)
def test_by_fedsim(benchmark: BenchmarkFixture, one_round: Round) -> None:
    assert benchmark(one_round.by_fedsim) == CLIENTS


@pytest.mark.benchmark(group=GROUP)
def test_bare_loop(benchmark: BenchmarkFixture, one_round: Round) -> None:
    assert benchmark(one_round.bare()) == CLIENTS


@pytest.mark.benchmark(group=GROUP)
def test_data_alone(benchmark: BenchmarkFixture, one_round: Round) -> None:
    assert benchmark(one_round.data_alone) == CLIENTS
