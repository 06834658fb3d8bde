"""The plain loop: one node after the other, one resident model, one thread. Every executor must meet it.

Local training is `torch.optim.SGD` on the mean cross-entropy of each mini-batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.learning.batches import batches, training_samples
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
        self._x = torch.tensor(dataset.x, dtype=self._dtype)
        self._y = torch.tensor(dataset.y)

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
        start = {name: weight.detach().clone() for name, weight in weights.items()}
        optimiser = torch.optim.SGD(
            weights.values(),
            lr=settings["learning_rate"],
            momentum=settings["momentum"],
            weight_decay=settings["weight_decay"],
            foreach=False,
        )
        state = _inputs(node, "state")
        samples = training_samples(self._dataset, node.parameters["client"])
        rng = node.stream.generator()
        for ids in batches(samples, batch_size=settings["batch_size"], epochs=settings["epochs"], rng=rng):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(self._module(self._x[ids]), self._y[ids]).backward()  # type: ignore[no-untyped-call]
            with torch.no_grad():
                gradients = {name: weight.grad for name, weight in weights.items()}
                objective.add_gradient(gradients, weights, start, state)
            optimiser.step()
        with torch.no_grad():
            remembered = objective.remember(state, weights, start)
        return self._trained() | {f"state.{name}": value for name, value in remembered.items()}

    def _evaluate(self, node: Node) -> dict[str, Value]:
        """Accuracy and mean cross-entropy (infinite when no number), on the global test set or on the clients'."""
        self._load(node)
        if node.parameters["on"] == "global":
            return {"metrics": self._score(self._dataset.test_ids)}
        scores = [self._score(ids) for ids in self._dataset.client_test_ids if len(ids)]
        return {"metrics": spread(scores)}

    def _score(self, sample_ids: npt.NDArray[np.int64]) -> dict[str, float]:
        correct, loss = 0, 0.0
        with torch.no_grad():
            for first in range(0, len(sample_ids), EVALUATION_BATCH):
                ids = torch.tensor(sample_ids[first : first + EVALUATION_BATCH])
                logits = self._module(self._x[ids])
                correct += int((logits.argmax(dim=1) == self._y[ids]).sum())
                loss += float(torch.nn.functional.cross_entropy(logits, self._y[ids], reduction="sum"))
        samples = len(sample_ids)
        mean_loss = loss / samples if math.isfinite(loss) else math.inf  # not a number, once training has diverged
        return {"accuracy": correct / samples, "loss": mean_loss, "samples": samples}

    def _load(self, node: Node) -> Part:
        """Copy a node's model into the resident module; returns the module's own parameters by their full names."""
        parts = _inputs(node, "model")
        assert parts.keys() == self._module.parts.keys(), "the resident module would keep another model's part"
        for part, tensors in parts.items():
            self._module.parts[part].load_state_dict(tensors)
        return dict(self._module.parts.named_parameters())

    def _trained(self) -> dict[str, Value]:
        """A copy of the resident module's parts."""
        return {
            part: {name: weight.detach().clone() for name, weight in layers.named_parameters()}
            for part, layers in self._module.parts.items()
        }


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
