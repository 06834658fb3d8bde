"""The plain loop: one node after the other, one resident model, one thread. Every executor must meet it.

Local training is `torch.optim.SGD` on the mean loss of each mini-batch: the cross-entropy of classes, the squared error
of numbers. Running statistics belong to a model as its parameters do: they are received, changed by training, averaged
and sent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.kernel.streams import Stream
from fedsim.learning.batches import mini_batches
from fedsim.learning.executors.executor import Executor, Fold
from fedsim.learning.graph import Node, Value
from fedsim.learning.objectives import objective_from
from fedsim.learning.spread import spread
from fedsim.models.table import ModelTable
from fedsim.models.torch_module import build, initial_parameters

__all__ = ["Serial"]

EVALUATION_BATCH = 500
"""Samples evaluated together; a change may move the loss by a rounding error, so it would be a new version."""

Part = dict[str, torch.Tensor]


class Serial(Executor):
    """Plain PyTorch training of one client after the other on one CPU thread."""

    torch_devices: ClassVar[tuple[str, ...]] = ("cpu",)

    @classmethod
    def numeric_family(cls, torch_device: str, precision: str = "float32") -> str:
        """Plain arithmetic of this torch in this precision."""
        return f"plain/{precision}/torch{torch.__version__}/{torch_device}"

    def __init__(
        self,
        table: ModelTable,
        dataset: FederatedDataset,
        torch_device: str = "cpu",
        *,
        precision: Literal["float32", "float64"] = "float32",
    ) -> None:
        assert dataset.x is not None and dataset.y is not None
        torch.set_num_threads(1)
        self.family = self.numeric_family(torch_device, precision)
        self._dtype = getattr(torch, precision)
        self._table = table
        self._dataset = dataset
        self._module = build(table).to(self._dtype)

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        """One node after the other."""
        operations = {"init": self._init, "train": self._train, "add": _add, "mean": _mean, "evaluate": self._evaluate}
        return [operations[node.operation.name](node) for node in chunk]

    def fold(self, node: Node) -> Fold:
        """A partial sum."""
        return _PartialSum(_inputs(node, "base"), node.parameters["weights"])

    def dump(self, value: Value) -> bytes:
        """Contiguous tensors by name, no metadata: equal parts, equal bytes."""
        content: bytes = save({name: tensor.contiguous() for name, tensor in value.items()})
        return content

    def load(self, path: Path) -> Value:
        """Tensors by name."""
        try:
            return load_file(path)
        except SafetensorError as error:
            raise UserError(f"{path}: not readable as safetensors ({error}); delete it to train again") from None

    def _init(self, node: Node) -> dict[str, Value]:
        assert node.stream is not None
        parts = initial_parameters(self._table, node.stream.generator())
        return {
            part: {name: tensor.to(self._dtype) for name, tensor in tensors.items()} for part, tensors in parts.items()
        }

    def _train(self, node: Node) -> dict[str, Value]:
        """Local SGD: for each mini-batch its loss, the gradient, the objective's own term, a step."""
        assert node.stream is not None
        settings, objective = node.parameters["training"], objective_from(node.parameters["objective"])
        weights = self._load(node)
        self._module.train()
        start = {name: weight.detach().clone() for name, weight in weights.items()} if objective.reads_start else {}
        optimiser = torch.optim.SGD(
            weights.values(),
            lr=settings["learning_rate"],
            momentum=settings["momentum"],
            weight_decay=settings["weight_decay"],
            foreach=False,
        )
        state = _inputs(node, "state")
        with _torch_draws(node.stream):
            for x, y in mini_batches(self._dataset, node.parameters, node.stream):
                optimiser.zero_grad()
                self._loss(self._module(self._tensor(x)), self._tensor(y), "mean").backward()  # type: ignore[no-untyped-call]
                with torch.no_grad():
                    gradients = {name: weight.grad for name, weight in weights.items()}
                    objective.add_gradient(gradients, weights, start, state)
                optimiser.step()
        with torch.no_grad():
            remembered = objective.remember(state, weights, start)
        return self._trained() | {f"state.{name}": value for name, value in remembered.items()}

    def _evaluate(self, node: Node) -> dict[str, Value]:
        """Score and mean loss on the global test set, on the clients' own, or on those of unseen clients."""
        self._load(node)
        self._module.eval()
        if node.parameters["on"] == "global":
            return {"metrics": self._score(self._dataset.test_ids)}
        unseen = node.parameters["on"] == "unseen"
        held = self._dataset.unseen_test_ids if unseen else self._dataset.client_test_ids
        return {"metrics": spread([self._score(ids) for ids in held if len(ids)])}

    def _score(self, sample_ids: npt.NDArray[np.int64]) -> dict[str, float]:
        """Accuracy (the root mean squared error for numbers) and mean loss, infinite when that is no number."""
        assert self._dataset.y is not None
        correct, loss = 0, 0.0
        with torch.no_grad():
            for first in range(0, len(sample_ids), EVALUATION_BATCH):
                ids = sample_ids[first : first + EVALUATION_BATCH]
                scores = self._module(self._tensor(self._dataset.samples(ids)))
                y = self._tensor(self._dataset.y[ids])
                loss += float(self._loss(scores, y, "sum"))
                if not self._dataset.regression:
                    correct += int((scores.argmax(dim=1) == y).sum())
        samples = len(sample_ids)
        mean_loss = loss / samples if math.isfinite(loss) else math.inf  # not a number, once training has diverged
        if self._dataset.regression:
            return {"loss": mean_loss, "rmse": math.sqrt(mean_loss), "samples": samples}
        return {"accuracy": correct / samples, "loss": mean_loss, "samples": samples}

    def _loss(self, scores: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
        """Cross-entropy of classes, squared error of numbers."""
        if self._dataset.regression:
            return torch.nn.functional.mse_loss(scores.squeeze(1), y, reduction=reduction)
        return torch.nn.functional.cross_entropy(scores, y, reduction=reduction)

    def _tensor(self, values: npt.NDArray[Any]) -> torch.Tensor:
        """Floating-point numbers in the executor's precision; whole ones as they are."""
        tensor = torch.from_numpy(np.ascontiguousarray(values))
        return tensor.to(self._dtype) if tensor.is_floating_point() else tensor

    def _load(self, node: Node) -> dict[str, torch.nn.Parameter]:
        """Copy a node's model into the resident module; returns the module's own parameters by their full names."""
        parts = _inputs(node, "model")
        assert parts.keys() == set(self._table.parts), "the resident module would keep another model's part"
        for part, tensors in parts.items():
            self._module.load(part, tensors)
        return {
            f"{part}.{name}": parameter
            for part in self._table.parts
            for name, parameter in self._module.part_parameters(part).items()
        }

    def _trained(self) -> dict[str, Value]:
        """A copy of the resident module's parts, running statistics included."""
        return {
            part: {name: value.detach().clone() for name, value in self._module.part_state(part).items()}
            for part in self._table.parts
        }


@contextmanager
def _torch_draws(stream: Stream) -> Iterator[None]:
    """Within, torch's own random numbers (for dropout) are of a random stream beside *stream*; outside they go on."""
    seed = replace(stream, purpose=f"{stream.purpose}/torch").generator().integers(2**63)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(int(seed))
        yield


class _PartialSum(Fold):
    """``sum of w_i (model_i - base)``, added up in the order of the contributions."""

    def __init__(self, base: Mapping[str, Part], weights: Sequence[float]) -> None:
        self._base = base
        self._weights = iter(weights)
        self._sum: dict[str, Part] = {}

    def add(self, value: Mapping[str, Value]) -> None:
        weight = next(self._weights)
        deltas = {part: _combine(torch.sub, value[part], self._base[part]) for part in value}
        for part, delta in deltas.items():
            for name, change in delta.items():
                change.mul_(weight)
                if self._sum:
                    self._sum[part][name] += change
        self._sum = self._sum or deltas

    def result(self) -> dict[str, Value]:
        return self._sum


def _add(node: Node) -> dict[str, Value]:
    """One partial sum on top of those before it."""
    total, some = _inputs(node, "total"), _inputs(node, "some")
    return {part: _combine(torch.add, total[part], some[part]) for part in total}


def _mean(node: Node) -> dict[str, Value]:
    """The base and the sum of all weighted deltas."""
    base, total = _inputs(node, "base"), _inputs(node, "total")
    return {part: _combine(torch.add, base[part], total[part]) for part in base}


def _combine(operation: Callable[[torch.Tensor, torch.Tensor], torch.Tensor], left: Part, right: Part) -> Part:
    return {name: operation(left[name], right[name]) for name in left}


def _inputs(node: Node, group: str) -> dict[str, Value]:
    """The values of a node's inputs ``group.part``, by part."""
    return {
        name.removeprefix(f"{group}."): handle.value
        for name, handle in node.inputs.items()
        if name.startswith(f"{group}.")
    }
