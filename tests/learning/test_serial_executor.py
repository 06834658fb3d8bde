"""The plain loop: what goes in is left alone, what comes out is new, and its files are safetensors."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from learned import mean_of, train, update
from nodes import slots, training_of
from small_learner import CLASSES, CLIENTS, SAMPLES, SHAPE, data, small, table

from fedsim.data.dataset import FederatedDataset
from fedsim.data.target import Target
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import batches
from fedsim.learning.executors import torch_executor
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.graph import Graph, Handle
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.evaluate import Evaluate, EvaluateOwn
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.partial_sum import PartialSum
from fedsim.learning.spread import spread
from fedsim.learning.training import TrainingSettings
from fedsim.models.layers import BatchNorm2d, Conv2d, Dropout, Flatten, Linear, ReLU
from fedsim.models.softmax import Softmax
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build


def test_no_output_shares_memory_with_an_input_and_no_input_changes(tmp_path: Path) -> None:
    run = small(tmp_path)
    learner, force = run.learner, run.learner._forcer.force
    model = learner.initial_model()
    trained = [train(learner, model, client, Proximal(mu=0.1)).model for client in range(CLIENTS)]
    mean = mean_of(learner, model, [update(c, m, SAMPLES) for c, m in enumerate(trained)])
    models = [model, *trained]
    for handle in (handle for parts in models for handle in parts.values()):
        force(handle)
    before = [{name: tensor.clone() for name, tensor in parts["classifier"].value.items()} for parts in models]
    force(mean["classifier"])
    learner.evaluate(mean, "global", round_number=1)
    run.store.close()

    memory = [tensor.data_ptr() for parts in [*models, mean] for tensor in parts["classifier"].value.values()]
    assert len(set(memory)) == len(memory)
    for parts, copy in zip(models, before, strict=True):
        assert all(torch.equal(parts["classifier"].value[name], tensor) for name, tensor in copy.items())


def test_two_test_sets_are_scored_as_by_hand(tmp_path: Path) -> None:
    run = small(tmp_path)
    model = run.learner.initial_model()
    overall = run.learner.evaluate(model, "global", round_number=0)
    clients = run.learner.evaluate(model, "clients", round_number=0)
    run.learner._forcer.force(model["classifier"])
    run.store.close()
    weight, bias = model["classifier"].value.values()
    dataset = data()

    def score(ids: np.ndarray) -> dict[str, float]:
        logits = dataset.x[ids].reshape(len(ids), -1) @ weight.numpy().T + bias.numpy()
        logits = logits.astype(np.float64)
        log_sums = np.log(np.exp(logits).sum(axis=1))
        labels = dataset.y[ids]
        loss = (log_sums - logits[np.arange(len(ids)), labels]).mean()
        predicted = logits.argmax(axis=1)
        pairs = sorted(Counter(zip(labels.tolist(), predicted.tolist(), strict=True)).items())
        counts = [number for pair, samples in pairs for number in (*pair, samples)]
        accuracy = float((predicted == labels).mean())
        return {"accuracy": accuracy, "loss": loss, "samples": len(ids), "confusion": counts}

    expected = score(dataset.test_ids)
    assert overall.pop("confusion") == expected.pop("confusion")
    assert overall == pytest.approx(expected, rel=1e-5)
    expected = spread([score(ids) for ids in dataset.client_test_ids])
    assert clients.pop("confusion") == expected.pop("confusion")
    assert clients == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("kind", [Serial, Batched])
def test_what_clients_count_is_what_all_of_their_samples_come_to(kind: type[TorchExecutor]) -> None:
    """The same samples as everybody's own, as one global set, and as one client's after another's."""
    dataset = replace(data(), test_ids=np.sort(np.concatenate(data().client_test_ids)))
    bench = Bench(table(), dataset, kind=kind)
    of_all = bench.evaluate(bench.base)
    of_clients = bench.evaluate(bench.base, "clients")
    assert of_all["confusion"] == of_clients["confusion"] and of_all["accuracy"] == pytest.approx(
        of_clients["accuracy"]
    )
    own = [EvaluateOwn(bench.layers.digest, "data", "own", client) for client in range(CLIENTS)]
    nodes = [bench.graph.node(operation, slots(model=bench.base)) for operation in own]
    each = [bench.executor.compute([node])[0]["metrics"] for node in nodes]
    assert spread(each)["confusion"] == of_all["confusion"]
    assert bench.evaluate(bench.base)["confusion"] == Bench(table(), dataset).evaluate(bench.base)["confusion"]


def remembered(executor: Serial) -> Handle:
    """What an objective remembers: tensors of any form."""
    return Graph(executor.family).node(training_of(data()), {}).output("state.some")


def test_equal_values_are_equal_bytes_and_come_back_as_they_were() -> None:
    executor = Serial(table(), data())
    part = {"c": torch.empty(0, 3), "b": torch.randn(2, 3), "a": torch.tensor([math.inf, -0.0, 1e-42])}
    content = executor.dump(part)
    assert content == executor.dump(dict(reversed(part.items())))
    read = executor.load(content, remembered(executor))
    assert read.keys() == part.keys()
    assert all(torch.equal(read[name].view(torch.int32), part[name].view(torch.int32)) for name in part)


def test_numbers_are_learned_by_the_squared_error_and_scored_by_its_root(monkeypatch: pytest.MonkeyPatch) -> None:
    """One step of a linear model on all samples, written out; scores are added up over evaluation batches of 4.

    A predicted 1 means 50 cycles: the error is in cycles too, and late predictions cost more than early ones.
    """
    monkeypatch.setattr(torch_executor, "EVALUATION_BATCH", 4)
    values = np.linspace(-1, 1, len(data().y), dtype=np.float32)
    dataset = replace(data(), classes=None, y=values, unseen_test_ids=(data().test_ids[:5],))
    layers = Softmax().table(SHAPE, 1)
    bench = Bench(layers, dataset, TrainingSettings(learning_rate=0.1, batch_size=SAMPLES))
    weight, bias = (value.numpy().astype(np.float64) for value in numbers(bench.base).values())

    def errors(ids: np.ndarray) -> np.ndarray:
        return dataset.x[ids].reshape(len(ids), -1) @ weight[0] + bias - values[ids]

    for on, ids in (("global", dataset.test_ids), ("unseen", dataset.test_ids[:5])):
        squared = (errors(ids) ** 2).mean()
        scored = bench.evaluate(bench.base, on, Target("cycles", 50.0))
        assert (scored["loss"], scored["rmse"]) == pytest.approx((squared, squared**0.5), rel=1e-5)
        assert scored["samples"] == len(ids)
        assert scored["rmse_cycles"] == pytest.approx(50 * squared**0.5, rel=1e-5)
        costs = [math.exp(-d / 13) - 1 if d < 0 else math.exp(d / 10) - 1 for d in 50 * errors(ids)]
        assert scored["phm08"] == pytest.approx(math.fsum(costs), rel=1e-4)
        assert min(errors(ids)) < 0 < max(errors(ids)), "of both kinds"
        assert "phm08" not in bench.evaluate(bench.base, on, Target("mm", 50.0))
        assert bench.evaluate(bench.base, on).keys() == scored.keys() - {"rmse_cycles", "phm08"}
    ids = dataset.train_ids[1]
    slope = 2 * errors(ids) / len(ids)
    trained = numbers(bench.train(1, Plain()))
    expected = weight[0] - 0.1 * slope @ dataset.x[ids].reshape(len(ids), -1)
    assert trained["classifier.fc.weight"].numpy()[0] == pytest.approx(expected, rel=1e-4)
    assert trained["classifier.fc.bias"].item() == pytest.approx(bias.item() - 0.1 * slope.sum(), rel=1e-4)


@pytest.mark.parametrize("damage", ["cut off", "emptied", "another format"])
def test_a_damaged_tensor_file_is_computed_again(tmp_path: Path, damage: str) -> None:
    def trained_and_kept() -> None:
        run = small(tmp_path)
        model = run.learner.initial_model()
        try:
            run.learner.keep_final(train(run.learner, model, 0, Plain()).model)
        finally:
            run.store.close()

    trained_and_kept()
    (path,) = (tmp_path / "tensors").iterdir()
    content = path.read_bytes()
    path.write_bytes({"cut off": content[:-5], "emptied": b"", "another format": b"PK\x03\x04" + content[4:]}[damage])
    trained_and_kept()
    assert path.read_bytes() == content


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"\x80\x04K\x01."])
def test_what_is_no_safetensors_is_no_value(content: bytes) -> None:
    executor = Serial(table(), data())
    with pytest.raises(ValueError, match=r"[Hh]eader"):
        executor.load(content, remembered(executor))


def test_a_type_that_torch_has_not_is_no_value() -> None:
    executor = Serial(table(), data())
    header = b'{"a":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[0,3]}}'
    with pytest.raises(ValueError, match="torch has no such tensors"):
        executor.load(len(header).to_bytes(8, "little") + header + bytes(3), remembered(executor))


def test_precision_is_part_of_the_numeric_family() -> None:
    families = {Serial.numeric_family("cpu"), Serial.numeric_family("cpu", "float64")}
    assert len(families) == 2
    assert Serial(table(), data(), precision="float64").family in families


NORMALISED = LayerTable(
    input_shape=SHAPE,
    extractor=(Conv2d("conv", 1, 3, kernel=1), BatchNorm2d("bn", 3), ReLU("relu"), Flatten("flatten")),
    classifier=(Linear("fc", 12, CLASSES),),
)
DROPPING = LayerTable(
    input_shape=SHAPE,
    extractor=(Flatten("flatten"), Linear("fc1", 4, 50), ReLU("relu"), Dropout("dropout", 0.5)),
    classifier=(Linear("fc2", 50, CLASSES),),
)
STRONG = TrainingSettings(learning_rate=0.1, batch_size=4, epochs=2, momentum=0.5, weight_decay=0.1)


class Bench:
    """An executor whose nodes are computed one by one, whenever they are asked for."""

    def __init__(
        self,
        layers: LayerTable,
        dataset: FederatedDataset | None = None,
        training: TrainingSettings = STRONG,
        kind: type[TorchExecutor] = Serial,
    ) -> None:
        self.layers, self.training = layers, training
        self.executor = kind(layers, dataset or data())
        self.graph = Graph("bench")
        self.base = self._made(Init(layers.digest), {}, Stream(1, "model/init"))

    def train(self, client: int, objective: Objective) -> dict[str, Handle]:
        operation = training_of(self.executor._dataset, client, self.training, objective, model=self.layers.digest)
        return self._made(operation, slots(model=self.base), Stream(1, "batches", client))

    def mean(self, models: list[dict[str, Handle]], weights: list[float]) -> dict[str, Handle]:
        operation, inputs = PartialSum(tuple(weights)), slots(base=self.base, term=models)
        fold = self.executor.fold(self.graph.node(operation, inputs))
        for model in models:
            fold.add({part: handle.value for part, handle in model.items()})
        total = self.graph.node(operation, inputs)
        totals = {}
        for part, value in fold.result().items():
            totals[part] = total.output(part)
            totals[part].value = value
        return self._made(Add(), slots(base=self.base, change=totals))

    def evaluate(self, model: dict[str, Handle], on: str = "global", target: Target | None = None) -> dict[str, float]:
        operation = Evaluate(self.layers.digest, "data", on, target=target)
        (outputs,) = self.executor.compute([self.graph.node(operation, slots(model=model))])
        return outputs["metrics"]

    def _made(self, operation, inputs, stream=None) -> dict[str, Handle]:
        node = self.graph.node(operation, inputs, stream=stream)
        (outputs,) = self.executor.compute([node])
        handles = {name: node.output(name) for name in outputs}
        for name, value in outputs.items():
            handles[name].value = value
        return handles


def numbers(model: dict[str, Handle]) -> dict[str, torch.Tensor]:
    return {f"{part}.{name}": value for part, handle in model.items() for name, value in handle.value.items()}


def test_running_statistics_are_trained_averaged_and_used_like_all_state() -> None:
    bench = Bench(NORMALISED)
    models = [bench.train(client, Plain()) for client in range(2)]
    weights = [0.25, 0.75]
    mean = bench.mean(models, weights)
    base, averaged = numbers(bench.base), numbers(mean)
    assert set(averaged) == {f"{part}.{name}" for part in NORMALISED.parts for name in NORMALISED.state_shapes(part)}
    for name in ("extractor.bn.running_mean", "extractor.bn.running_var"):
        first, second = (numbers(model)[name] for model in models)
        assert not torch.equal(first, base[name]) and not torch.equal(first, second)
        torch.testing.assert_close(averaged[name], 0.25 * first + 0.75 * second)

    module = build(NORMALISED).eval()
    for part, handle in mean.items():
        module.load(part, handle.value)
    ids = data().test_ids
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(module(torch.tensor(data().x[ids])), torch.tensor(data().y[ids]))
    before = {name: value.clone() for name, value in averaged.items()}
    assert bench.evaluate(mean)["loss"] == pytest.approx(loss.item(), rel=1e-6)
    assert all(torch.equal(value, before[name]) for name, value in numbers(mean).items())


def test_objective_momentum_and_weight_decay_act_on_parameters_and_leave_running_statistics_alone() -> None:
    bench = Bench(NORMALISED)
    trained = numbers(bench.train(1, Proximal(mu=0.7)))

    module = build(NORMALISED).train()
    for part, handle in bench.base.items():
        module.load(part, handle.value)
    start = [parameter.detach().clone() for parameter in module.parameters()]
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.5, weight_decay=0.1)
    x, y = torch.tensor(data().x), torch.tensor(data().y)
    rng = Stream(1, "batches", 1).generator()
    for ids in batches(data().train_ids[1], batch_size=4, epochs=2, rng=rng):
        optimiser.zero_grad()
        drift = sum(((now - then) ** 2).sum() for now, then in zip(module.parameters(), start, strict=True))
        (torch.nn.functional.cross_entropy(module(x[ids]), y[ids]) + 0.35 * drift).backward()
        optimiser.step()
    for part in NORMALISED.parts:
        for name, value in module.part_state(part).items():
            torch.testing.assert_close(trained[f"{part}.{name}"], value.detach(), rtol=1e-4, atol=1e-6)


def test_dropout_is_a_function_of_the_nodes_stream_and_not_of_what_ran_before() -> None:
    alone, later = Bench(DROPPING), Bench(DROPPING)
    torch.manual_seed(1)
    first = numbers(alone.train(0, Plain()))
    torch.manual_seed(2)
    later.evaluate(later.train(1, Plain()))
    state = torch.random.get_rng_state()
    again = numbers(later.train(0, Plain()))
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(torch.equal(first[name], again[name]) for name in first)


def test_dropout_drops_while_training_and_another_client_drops_others() -> None:
    masks = []

    def seen(module: torch.nn.Module, inputs: tuple[torch.Tensor], output: torch.Tensor) -> None:
        masks.append((module.training, inputs[0] > 0, output > 0))

    bench = Bench(DROPPING)
    bench.executor._pool._trainer_of(DROPPING.digest)._module.parts["extractor"].dropout.register_forward_hook(seen)
    bench.train(0, Plain())
    bench.train(1, Plain())
    trainings = len(masks)
    model = bench.base
    assert bench.evaluate(model) == bench.evaluate(model)
    assert [training for training, *_ in masks] == [True] * trainings + [False] * 2
    (_, first_in, first_out), (_, other_in, other_out) = masks[0], masks[trainings // 2]
    could_be_dropped_in_both = first_in & other_in
    differently = (first_out != other_out) & could_be_dropped_in_both
    # some 50 of 4 x 50 units, each with a chance of a half
    assert 0.1 < differently.sum() / could_be_dropped_in_both.sum() < 0.9


def test_batches_are_those_of_the_stream_whatever_is_dropped() -> None:
    """One step with a rate of zero is one step without the layer."""
    without = LayerTable(input_shape=SHAPE, extractor=DROPPING.extractor[:-1], classifier=DROPPING.classifier)
    never = LayerTable(
        input_shape=SHAPE,
        extractor=(*DROPPING.extractor[:-1], Dropout("dropout", 0.0)),
        classifier=DROPPING.classifier,
    )
    plain, same = (numbers(Bench(layers).train(2, Plain())) for layers in (without, never))
    assert all(torch.equal(plain[name], same[name]) for name in plain)
