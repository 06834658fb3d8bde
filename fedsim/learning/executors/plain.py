"""The plain loop: one training after the other, one resident model. Every other trainer must meet it.

Local training is `torch.optim.SGD` on the mean loss of each mini-batch: the cross-entropy of classes, the squared error
of numbers. Running statistics belong to a model as its parameters do: they are received, changed by training, averaged
and sent.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch.optim.sgd import sgd

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.batches import POOL, mini_batches
from fedsim.learning.executors.coded import coded
from fedsim.learning.executors.cuda_arithmetic import arithmetic, repeatable
from fedsim.learning.executors.fused.dense import steps_in_passing
from fedsim.learning.executors.fused.module import fused
from fedsim.learning.executors.semantics import joined, shuffled
from fedsim.learning.executors.summing import summing
from fedsim.learning.executors.tensor_dict import by_full_name, made_by
from fedsim.learning.executors.torch_draws import torch_draws
from fedsim.learning.executors.trainer import (
    Deliver,
    Score,
    Tally,
    TensorDict,
    Trainer,
    as_made,
    infinite_unless_finite,
    number_type,
    scores_from,
)
from fedsim.learning.executors.view import View
from fedsim.learning.executors.wave import Made, Source, Training, Wave
from fedsim.learning.objectives.objective import Given, Objective
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings
from fedsim.models.parted import PartedModule
from fedsim.models.table import ModelTable
from fedsim.models.torch_module import build

__all__ = ["PlainTrainer"]


class PlainTrainer(Trainer):
    """PyTorch's modules, some layers of which are fused in float32, with its automatic gradients and SGD."""

    precisions = ("float32", "float64", "tf32", "bfloat16")

    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        assert dataset.x is not None and dataset.y is not None
        self.dtype = number_type(precision)
        self.torch_device, self._precision = torch_device, precision
        self.table = table
        self.dataset = dataset
        self._module = self._built()
        self._others: dict[str, PartedModule] = {}

    def _built(self) -> PartedModule:
        """The model; its layers are fused in float32 on a CPU, and elsewhere PyTorch's own."""
        module = build(self.table).to(self.torch_device, self.dtype)
        if self.torch_device != "cpu" or self.dtype != torch.float32:
            return module
        return fused(module, rounded=self._precision == "bfloat16")

    @contextmanager
    def _repeatable(self) -> Iterator[None]:
        with arithmetic(self.torch_device, self._precision), repeatable(self.torch_device):
            yield

    def _products(self) -> AbstractContextManager[object]:
        """Within, the factors of convolutions, dense layers and LSTMs are rounded, if that is the precision."""
        reduced = self._precision == "bfloat16"
        return torch.autocast(self.torch_device, torch.bfloat16) if reduced else nullcontext()

    def train(
        self, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
    ) -> list[dict[str, TensorDict]]:
        """One training after the other; the sums take each model as soon as it is made."""
        totals = [summing(total, values) for total in wave.sums]
        last = set(wave.sums[0].trainings) if wave.sums else set()
        outputs: list[dict[str, TensorDict]] = []
        for number, training in enumerate(wave.trainings):
            with self._repeatable():
                made = self._train(training, values, outputs)
            if number in last:
                for total in totals:
                    total.add(made)
                made = {name: made[name] for name in training.wanted}
            live = self.table.parts if training.about.codec.exact else ()
            outputs.append(
                {
                    name: _handed_over(value, partial(deliver, number, name), name in training.wanted, name in live)
                    for name, value in made.items()
                }
            )
            _forget(outputs, wave, last, done=number)
        return [*outputs, *(total.result() for total in totals)]

    def _train(
        self, training: Training, values: Sequence[TensorDict], made: Sequence[dict[str, TensorDict]]
    ) -> dict[str, TensorDict]:
        """Local SGD: for each mini-batch its loss, the gradient, the objective's own term, a step.

        Parts of the model that no codec has changed are the resident module's own, until that trains again.
        """

        def given(source: Source) -> TensorDict:
            return made[source.training][source.output] if isinstance(source, Made) else values[source]

        about, sources = training.about, training.sources
        objective, settings = about.objective, about.training
        model = {part: given(source) for part, source in sources.model("model").items()}
        further = {role: {part: given(at) for part, at in sources.model(role).items()} for role in objective.receives}
        rows = [given(source) for source in training.rows]
        view = View(objective, self._module, lambda role: self._frozen(role, further[role]), on_rows=bool(rows))
        weights = self._load(model)
        self._module.train()
        steps_in_passing(self._module, model, settings.learning_rate if _is_plain(about) else None)
        self._module.tell_client(None if about.seen.client == POOL else about.seen.client)
        has = Given(
            start={name: weight.detach().clone() for name, weight in weights.items()} if objective.reads_start else {},
            state={name: given(source) for name, source in sources.model("state").items()},
            models={role: by_full_name(parts) for role, parts in further.items()},
            training=settings,
            steps=about.sizes.steps,
        )
        momenta: dict[str, torch.Tensor | None] = dict.fromkeys(weights)
        with torch_draws(training.stream, self.torch_device):
            right, seen = torch.zeros((), dtype=torch.int64, device=self.torch_device), 0
            for x, y in self._mini_batches(training, rows):
                for weight in weights.values():
                    weight.grad = None
                with self._products():
                    scores, looks = view.of(x)
                scores = scores.to(self.dtype)
                terms, loss = view.terms(scores, looks), self._loss(scores, y, "mean")
                if objective.counts_right:
                    right, seen = right + (scores.argmax(dim=1) == y).sum(), seen + len(y)
                torch.autograd.backward(sum(terms, loss))
                with torch.no_grad():
                    gradients = {name: weight.grad for name, weight in weights.items() if weight.grad is not None}
                    objective.add_gradient(gradients, weights, has)
                    _step(weights, gradients, momenta, settings)
                    if objective.moves:
                        objective.move(weights, has)
        momenta.clear()  # as large as the model, as gradients are, and the result is yet to be copied
        for weight in weights.values():
            weight.grad = None
        with torch.no_grad():
            remembered = objective.remember(weights, has._replace(right=right, seen=seen))
            result = self._trained(model)
            if not about.codec.exact:
                result = {part: _copied(tensors) for part, tensors in result.items()}
                result |= coded(training, model, result, has.state, names=filter(about.writes, weights))
        return result | made_by(objective, remembered)

    def _frozen(self, role: str, model: Mapping[str, TensorDict]) -> PartedModule:
        """A further model, as in tests, in a module of its own."""
        if role not in self._others:
            self._others[role] = self._built().eval()
        for part, tensors in model.items():
            self._others[role].load(part, tensors)
        return self._others[role]

    def _mini_batches(
        self, training: Training, rows: Sequence[TensorDict]
    ) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        if rows:
            yield from shuffled(joined(rows), training.about.training, training.stream)
            return
        for x, y in mini_batches(self.dataset, training.about.seen, training.about.training, training.stream):
            yield self.tensor(x), self.tensor(y)

    def features(self, extractor: Mapping[str, TensorDict], samples: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Batch after batch through the resident extractor, as in tests."""
        self._load(extractor)
        self._module.eval()
        with torch.no_grad(), self._products(), self._repeatable():
            return [self._module.features(x).to(self.dtype) for x in samples]

    def score(
        self,
        model: Mapping[str, TensorDict],
        batches: Sequence[npt.NDArray[np.int64]],
        clients: Sequence[int | None] | None = None,
    ) -> list[Score]:
        """The resident model on each batch."""
        whose = clients or [None] * len(batches)
        self._load(model)
        self._module.eval()
        with torch.no_grad(), self._repeatable():
            tallies = [self._tally(ids, client) for ids, client in zip(batches, whose, strict=True)]
        return scores_from(tallies, self.labels(batches))

    def _tally(self, ids: npt.NDArray[np.int64], client: int | None) -> Tally:
        assert self.dataset.y is not None
        self._module.tell_client(client)
        with self._products():
            scores = self._module(self.tensor(self.dataset.samples(ids))).to(self.dtype)
        y = self.tensor(self.dataset.y[ids])
        loss = infinite_unless_finite(self._loss(scores, y, "sum"), scores)
        return loss, scores.squeeze(1) if self.dataset.regression else scores.argmax(dim=1)

    def _loss(self, scores: torch.Tensor, y: torch.Tensor, reduction: str) -> torch.Tensor:
        """Cross-entropy of classes, squared error of numbers."""
        if self.dataset.regression:
            return torch.nn.functional.mse_loss(scores.squeeze(1), y, reduction=reduction)
        return torch.nn.functional.cross_entropy(scores, y, reduction=reduction)

    def _load(self, model: Mapping[str, TensorDict]) -> dict[str, torch.nn.Parameter]:
        """Copy parts into the resident module; returns the module's own parameters in them, by their full names."""
        for part, tensors in model.items():
            self._module.load(part, tensors)
        return {
            f"{part}.{name}": parameter
            for part in self.table.parts
            if part in model
            for name, parameter in self._module.part_parameters(part).items()
        }

    def _trained(self, parts: Iterable[str]) -> dict[str, TensorDict]:
        """Some of the resident module's parts, running statistics included."""
        return {part: {name: value.detach() for name, value in self._module.part_state(part).items()} for part in parts}


def _is_plain(about: Train) -> bool:
    """Whether a step takes a multiple of the loss's gradient off each weight, and nobody asks for that gradient."""
    asks = type(about.objective).add_gradient is not Objective.add_gradient
    return not (asks or about.training.momentum or about.training.weight_decay)


def _step(
    weights: Mapping[str, torch.Tensor],
    gradients: Mapping[str, torch.Tensor],
    momenta: dict[str, torch.Tensor | None],
    settings: TrainingSettings,
) -> None:
    """One step of `torch.optim.SGD`, by its own function: to make the optimiser itself loads PyTorch's compiler."""
    if not gradients:  # all weights have taken their step in the backward pass
        return
    if not (settings.momentum or settings.weight_decay):  # the same numbers, by one call for all weights
        torch._foreach_add_(
            list(map(weights.__getitem__, gradients)), list(gradients.values()), alpha=-settings.learning_rate
        )
        return
    buffers = [momenta[name] for name in gradients]
    sgd(
        [weights[name] for name in gradients],
        list(gradients.values()),
        buffers,
        foreach=not all(weight.is_cpu for weight in weights.values()),  # fewer and larger operations
        fused=False,
        lr=settings.learning_rate,
        momentum=settings.momentum,
        weight_decay=settings.weight_decay,
        dampening=0.0,
        nesterov=False,
        maximize=False,
    )
    momenta.update(zip(gradients, buffers, strict=True))


def _handed_over(
    value: TensorDict, deliver: Callable[[TensorDict], TensorDict], wanted: bool, live: bool
) -> TensorDict:
    """An output where it stays: delivered if somebody wants it, in memory of its own if it is a *live* part."""
    delivered = deliver(value) if wanted else value
    return _copied(value) if live and delivered is value else delivered


def _copied(tensors: TensorDict) -> TensorDict:
    return {name: value.clone(memory_format=torch.contiguous_format) for name, value in tensors.items()}


def _forget(outputs: list[dict[str, TensorDict]], wave: Wave, last: Container[int], *, done: int) -> None:
    """Drop what nobody wants: only the next training of a chain may still ask for the last one's model."""
    for number in (done - 1, done):
        if number >= 0 and (number < done or done in last):
            wanted = wave.trainings[number].wanted
            outputs[number] = {name: value for name, value in outputs[number].items() if name in wanted}
