"""Semantic compression and compensation by each executor, on each kind of model."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned import mean_of, train, update
from tiers import mostly_long

from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import AS_IT_IS, Ids
from fedsim.errors import UserError
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.batches import Seen
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.executors.wave import Extraction, Wave
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph, Handle
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.learner import Model, Rows
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.extract import FEATURES, LABELS, SAMPLES, SEMANTICS, Extract
from fedsim.learning.operations.keep import Keep
from fedsim.learning.operations.operation import Operation
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.char_cnn import CharCnn
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.models.hfedms_cnn import HfedmsCnn
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.mlp import Mlp
from fedsim.models.resnet import ResNet
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.table import LayerTable, ModelTable
from fedsim.models.torch_module import build, initial_parameters
from fedsim.models.user_module import TorchModule

# -- on each kind of model ---------------------------------------------------------------------------------------------

EXACT = 1e-9
CLIENTS, SAMPLES_EACH, CLASSES = 6, (5, 3, 6, 4, 1, 5), 4
OWN_NET = Path(__file__).parents[1] / "models" / "own_net.py"
MODELS: dict[str, Callable[[], ModelTable]] = {
    "mlp": lambda: Mlp(hidden=(32, 16)).table((1, 8, 8), CLASSES),
    "small_cnn": lambda: SmallCnn(channels=(4, 8), hidden=16).table((1, 8, 8), CLASSES),
    "leaf_cnn": lambda: LeafCnn().table((1, 28, 28), CLASSES),
    "hfedms_cnn": lambda: HfedmsCnn().table((1, 28, 28), CLASSES),
    "fedgs_cnn": lambda: FedgsCnn().table((1, 28, 28), CLASSES),
    "resnet": lambda: ResNet(depth=20).table((3, 16, 16), CLASSES),
    "char_cnn": lambda: CharCnn(depth=3).table((80,), CLASSES),
    "users": lambda: TorchModule(path=f"{OWN_NET}:Net").table((1, 28, 28), 10),
}
BATCHED = ("mlp", "small_cnn", "leaf_cnn", "hfedms_cnn", "fedgs_cnn")
"""Models that the batched trainer has arithmetic for."""


def data(table: ModelTable) -> FederatedDataset:
    """A few random samples for each client."""
    rng = np.random.default_rng(3)
    count = sum(SAMPLES_EACH) + 1
    shape = (count, *table.input_shape)
    takes_ids = isinstance(table, LayerTable) and table.takes_ids
    x = rng.integers(70, size=shape, dtype=np.int16) if takes_ids else rng.standard_normal(shape, dtype=np.float32)
    return FederatedDataset(
        name="random",
        classes=CLASSES,
        sample_shape=table.input_shape,
        sample_bytes=1.0,
        client_samples=np.array(SAMPLES_EACH),
        stored=x,
        y=rng.integers(CLASSES, size=count),
        train_ids=tuple(np.split(np.arange(count - 1), np.cumsum(SAMPLES_EACH)[:-1])),
        test_ids=np.arange(count - 1, count),
        client_test_ids=tuple(np.arange(0) for _ in SAMPLES_EACH),
        encoding=Ids(70) if takes_ids else AS_IT_IS,
    )


def extractions(*, with_samples: bool = False) -> list[Extraction]:
    return [extraction(client, with_samples) for client in range(CLIENTS)]


def extraction(client: int, with_samples: bool, remembered: TensorDict | None = None) -> Extraction:
    operation = Extract("model", Seen("data", client, SAMPLES_EACH[client]), with_samples)
    return Extraction(operation, Stream(1, "semantics"), remembered)


@pytest.mark.parametrize(
    ("precision", "model"),
    mostly_long(
        product(["float64", "float32"], MODELS),
        now=[*product(["float64"], ["small_cnn", "resnet", "char_cnn", "users"]), ("float32", "small_cnn")],
    ),
)
def test_features_are_what_the_classifier_takes_in_a_test(model: str, precision: str) -> None:
    """In `float32` each trainer is as near to the truth as rounding lets it."""
    table = MODELS[model]()
    dataset = data(table)
    parts = initial_parameters(table, np.random.default_rng(1))
    module = build(table).double()
    for part, tensors in parts.items():
        module.load(part, {name: tensor.double() for name, tensor in tensors.items()})
    module.eval()
    dtype = torch.float64 if precision == "float64" else torch.float32
    given = {"extractor": {name: tensor.to(dtype) for name, tensor in parts["extractor"].items()}}
    for trainer in [PlainTrainer] + [BatchedTrainer] * (model in BATCHED):
        made = trainer(table, dataset, "cpu", precision).extract(given, extractions(with_samples=True))
        for client, some in enumerate(made):
            ids = dataset.train_ids[client]
            assert some[FEATURES].dtype == dtype
            assert some[LABELS].tolist() == dataset.y[ids].tolist()
            assert torch.equal(some[SAMPLES].double(), torch.from_numpy(dataset.samples(ids)).double())
            x = torch.from_numpy(dataset.samples(ids))
            with torch.no_grad():
                scores = module(x.double() if x.is_floating_point() else x)
                found = module.classify(some[FEATURES].double())
            error = float((found - scores).norm() / scores.norm())
            assert error < (1e-12 if precision == "float64" else 1e-6), f"client {client} by {trainer.__name__}"


def test_raw_samples_that_are_remembered_are_extracted_anew() -> None:
    table = MODELS["small_cnn"]()
    parts = initial_parameters(table, np.random.default_rng(1))
    for trainer in (
        PlainTrainer(table, data(table), "cpu", "float32"),
        BatchedTrainer(table, data(table), "cpu", "float32"),
    ):
        made = trainer.extract({"extractor": parts["extractor"]}, extractions(with_samples=True))
        again = [extraction(0, True, some) for some in made]
        for before, after in zip(made, trainer.extract({"extractor": parts["extractor"]}, again), strict=True):
            assert before.keys() == after.keys() == {FEATURES, LABELS, SAMPLES}
            assert all(torch.equal(before[name], after[name]) for name in before)
        assert SAMPLES not in trainer.extract({"extractor": parts["extractor"]}, extractions())[0]


TRAINING = TrainingSettings(learning_rate=0.02, batch_size=3, epochs=1)
CHAINS = ((0, 1), (2, 3, 4), (5,))


def made(learner: GraphLearner, operation: Operation, client: int, **inputs: Any) -> Model:
    """Rows of semantics."""
    stream = Streams(1)("semantics", client) if isinstance(operation, Extract) else None
    return learner.apply(operation, inputs, [SEMANTICS], round_number=1, client=client, stream=stream)


def extracted(
    learner: GraphLearner, extractor: Model, client: int, *, with_samples: bool = False, **inputs: Model
) -> Model:
    operation = Extract(learner._table.digest, Seen.of(learner._dataset, client), with_samples)
    return made(learner, operation, client, model=extractor, **inputs)


def calibrated(executor: TorchExecutor, table: ModelTable, folder: Path) -> dict[str, TensorDict]:
    """Two extractors, a memory for everybody but client 1, and two rounds of chains that calibrate the classifier."""
    store, graph = Store(folder, "run", executor, label="protocol/1"), Graph(executor.family)
    forcer = Forcer(graph, executor, store, checkpoint_interval_s=math.inf)
    parts = {"table": table, "dataset": data(table), "training": TRAINING, "streams": Streams(1), "tags": {}}
    learner = GraphLearner(graph=graph, forcer=forcer, store=store, **parts)
    old = learner.initial_model()
    new = mean_of(learner, old, [update(client, train(learner, old, client, Plain()).model, 1) for client in (4, 1)])
    extractors = [{"extractor": model["extractor"]} for model in (old, new)]
    before, now = ([extracted(learner, extractor, client) for client in range(CLIENTS)] for extractor in extractors)

    def memory(client: int) -> list[tuple[Model, int]]:
        if client == 1:
            return []
        held = made(learner, Keep(4), client, rows=[before[client], before[1]])
        about = {"now": now[client], "before": before[client]}
        moved = made(learner, Compensate("per_class", "mean"), client, remembered=held, **about)
        return [(moved, 4)]

    sets = []
    for client in range(CLIENTS):
        some = [(now[client], SAMPLES_EACH[client]), *memory(client)]
        sets.append(Rows(tuple(model for model, _ in some), sum(number for _, number in some), epochs=2))
    classifier = {"classifier": new["classifier"]}
    for number in (2, 3):
        ends = []
        for chain in CHAINS:
            model = classifier
            for client in chain:
                model = train(learner, model, client, Plain(), use=number, rows=sets[client]).model
            ends.append(update(chain[-1], model, len(chain)))
        del model
        classifier = mean_of(learner, classifier, ends)
        del ends
    held = {
        **{f"moved {client}": sets[client].rows[-1][SEMANTICS] for client in (0, 1, 5)},
        **new,
        "calibrated": classifier["classifier"],
    }
    for handle in held.values():
        forcer.force(handle)
    values = {name: {key: tensor.clone() for key, tensor in handle.value.items()} for name, handle in held.items()}
    store.close()
    executor.close()
    return values


@pytest.mark.parametrize("model", mostly_long(MODELS, now=["small_cnn", "char_cnn", "users"]))
def test_chains_calibrate_alike_in_every_executor(model: str, tmp_path: Path) -> None:
    table = MODELS[model]()
    made = [
        calibrated(kind(table, data(table), precision="float64"), table, tmp_path / kind.__name__)
        for kind in (Serial, Batched)
    ]
    true, found = made
    assert true.keys() == found.keys() == {"moved 0", "moved 1", "moved 5", "extractor", "classifier", "calibrated"}
    for name, tensors in true.items():
        for key, tensor in tensors.items():
            error = float((found[name][key].double() - tensor.double()).norm())
            assert error <= EXACT * max(float(tensor.double().norm()), 1.0), f"{name} {key}"
    moved = [float((true["calibrated"][key] - tensor).norm()) for key, tensor in true["classifier"].items()]
    assert min(moved) > 1e-4, "or nothing was calibrated"


def test_chains_of_calibrations_are_one_wave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of one for each partial sum, in which clients of different groups take their steps together."""
    sizes = []

    def train(self: BatchedTrainer, wave: Wave, *others: Any) -> list[dict[str, TensorDict]]:
        sizes.append([len(training.rows) for training in wave.trainings])
        return trained(self, wave, *others)

    trained = BatchedTrainer.train
    monkeypatch.setattr(BatchedTrainer, "train", train)
    table = MODELS["mlp"]()
    calibrated(Batched(table, data(table)), table, tmp_path)
    assert sizes == [[0], [0], *[[2, 1, 2, 2, 2], [2]] * 2], "trainings, by how many tables of rows they take"


@pytest.mark.parametrize(
    ("kind", "model"),
    mostly_long(
        product([Batched, Processes], ["mlp", "small_cnn", "resnet", "users"]),
        now=[(Batched, "small_cnn"), (Processes, "users")],
    ),
)
def test_any_number_of_workers_calibrates_to_the_same_bytes(
    kind: type[TorchExecutor], model: str, tmp_path: Path
) -> None:
    table = MODELS[model]()
    one, two = (
        calibrated(kind(table, data(table), workers=workers), table, tmp_path / str(workers)) for workers in (1, 2)
    )
    assert one.keys() == two.keys()
    assert all(torch.equal(two[name][key], tensor) for name in one for key, tensor in one[name].items())


OVERWRITES = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(64, 16)
        self.head = nn.Sequential(nn.ELU(inplace=True), nn.Linear(16, 10))

    def forward(self, x):
        return self.head(self.body(x.flatten(1)))

class Doubled(Net):
    def forward(self, x):
        return super().forward(x).mul_(2)

class WithSamples(Net):
    def forward(self, x):
        return super().forward(x) + x.flatten(1)[:, :10]

class Last(nn.Linear):
    def forward(self, steps):
        return super().forward(steps[-1])

class TimeFirst(Net):
    def __init__(self):
        super().__init__()
        self.head = Last(4, 10)

    def forward(self, x):
        return self.head(self.body(x.flatten(1)).reshape(len(x), 4, 4).transpose(0, 1))
"""


def test_features_are_what_a_users_classifier_is_given_even_if_it_overwrites_them(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(OVERWRITES)
    table = TorchModule(path=f"{tmp_path / 'net.py'}:Net").table((1, 8, 8), 10)
    module = build(table)
    for part, tensors in initial_parameters(table, np.random.default_rng(1)).items():
        module.load(part, tensors)
    x = 5 * torch.randn(5, 1, 8, 8, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.equal(module.classify(module.features(x)), module(x))
        assert module.features(x).min() < -1  # an ELU leaves nothing there


@pytest.mark.parametrize("name", ["Doubled", "WithSamples", "TimeFirst"])
def test_a_child_whose_scores_are_changed_or_that_takes_no_rows_of_samples_is_no_classifier(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "net.py").write_text(OVERWRITES)
    tables = [TorchModule(path=f"{tmp_path / 'net.py'}:{own}", classifier=("head",)) for own in (name, "Net")]
    changed, table = (settings.table((1, 8, 8), 10) for settings in tables)
    with pytest.raises(UserError, match="cannot be trained apart"):
        changed.check_that_parts_run_alone()
    table.check_that_parts_run_alone()


# -- stored rows ------------------------------------------------------------------------------------------------------


def stored(executor: TorchExecutor, table: ModelTable, folder: Path) -> dict[str, Handle]:
    """New rows, those kept of them, and those moved, from the store if they are there."""
    store, graph = Store(folder, "run", executor, label="protocol/1"), Graph(executor.family)
    forcer = Forcer(graph, executor, store, checkpoint_interval_s=math.inf)
    parts = {"table": table, "dataset": data(table), "training": TRAINING, "streams": Streams(1), "tags": {}}
    learner = GraphLearner(graph=graph, forcer=forcer, store=store, **parts)
    extractor = {"extractor": learner.initial_model()["extractor"]}
    new = extracted(learner, extractor, 2, with_samples=True)
    kept_rows = made(learner, Keep(4), 2, rows=[new])
    moved = made(learner, Compensate("mean", "stays"), 2, remembered=kept_rows, now=new, before=new)
    again = extracted(learner, extractor, 2, with_samples=True, remembered=moved)
    models = {"again": again, "moved": moved, "kept": kept_rows, "new": new}
    handles = {name: model[SEMANTICS] for name, model in models.items()}
    try:
        for handle in handles.values():
            forcer.force(handle)
        store.checkpoint(graph.live())
    finally:
        store.close()
    return handles


@pytest.mark.parametrize("kind", [Serial, Batched])
@pytest.mark.parametrize("model", ["mlp", "resnet", "char_cnn", "users"])
def test_stored_rows_come_back_as_they_were(model: str, kind: type[TorchExecutor], tmp_path: Path) -> None:
    table = MODELS[model]()
    first, second = (stored(kind(table, data(table)), table, tmp_path) for _ in range(2))
    events = [json.loads(line)["event"] for line in (tmp_path / "ledger" / "run.jsonl").read_text().splitlines()]
    assert events[-6:] == ["checkpoint", *["loaded"] * 4, "checkpoint"]
    for name, handle in first.items():
        assert all(torch.equal(handle.value[key], values) for key, values in second[name].value.items())
