"""Waves of clients that train together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.batched.compiled.geometry import geometries
from fedsim.learning.executors.batched.compiled.machine_code import convolution_kernels
from fedsim.learning.executors.batched.course import Chain, Stage
from fedsim.learning.executors.batched.fronts import front_kind
from fedsim.learning.executors.batched.lockstep import Lockstep
from fedsim.learning.executors.batched.low_rank import prepare_factors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.samples import ResidentSamples, Samples
from fedsim.learning.executors.batched.scoring import tally_of
from fedsim.learning.executors.batched.support import architecture
from fedsim.learning.executors.cuda_arithmetic import arithmetic
from fedsim.learning.executors.trainer import Part, Score, Tally, Trainer, number_type, scores_from
from fedsim.learning.executors.wave import Made, Source, Wave, WeightedSum
from fedsim.models.table import ModelTable

__all__ = ["BatchedTrainer"]


class BatchedTrainer(Trainer):
    """Clients of a wave that start from one model and train by one recipe go through their steps together."""

    precisions = ("float32", "float64", "tf32", "bfloat16")
    stacked: ClassVar[bool] = False
    """Whether to train as on ``cuda`` wherever it is: convolutions of all clients at once, samples on the device."""

    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        self._torch_device, self._precision = torch_device, precision
        self._products = _products(precision)
        self._dataset = dataset
        self._architecture = architecture(table)
        stacked, dtype = self.stacked or torch_device == "cuda", number_type(precision)
        self._front_kind = front_kind(self._architecture.front, stacked=stacked, products=self._products)
        self._samples = ResidentSamples(dataset, dtype, torch_device) if stacked else Samples(dataset, dtype)

    @classmethod
    def prepare(cls, table: ModelTable, torch_device: str, precision: str) -> None:
        """Make the machine code, for a CPU."""
        if torch_device != "cpu":
            return
        found, dtype, products = architecture(table), number_type(precision), _products(precision)
        if front_kind(found.front, stacked=cls.stacked, products=products) == "compiled":
            for shape in geometries(found.front) or ():
                convolution_kernels(shape, dtype, products)
        for number, block in enumerate(found.back):
            first = number == 0 and not found.front
            prepare_factors(block.layer.outputs, block.layer.inputs, dtype, products, first=first)

    @torch.no_grad()
    def train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        """Group after group."""
        with arithmetic(self._torch_device, self._precision):
            return self._train(wave, values)

    def _train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        outputs: list[dict[str, Part]] = [{} for _ in wave.trainings]

        def made(source: Source) -> Part:
            return outputs[source.training][source.output] if isinstance(source, Made) else values[source]

        total = None if wave.sum is None else _Total(wave.sum, values)
        for chains in _groups(wave):
            first = chains[0][0].training
            base = {part: made(source) for part, source in first.sources("model").items()}
            group = Lockstep(
                self._architecture,
                self._dataset,
                self._samples,
                base,
                Recipe.of(first.parameters, self._products),
                chains,
                self._front_kind,
            )
            group.run(made, outputs.__setitem__)
            if total is not None:
                total.add(group, base)
        return outputs if total is None else [*outputs, total.result]

    @torch.no_grad()
    def score(self, model: Mapping[str, Part], batches: Sequence[npt.NDArray[np.int64]]) -> list[Score]:
        """One product for each layer and batch."""
        with arithmetic(self._torch_device, self._precision):
            return scores_from([self._tally(model, ids) for ids in batches])

    def _tally(self, model: Mapping[str, Part], ids: npt.NDArray[np.int64]) -> Tally:
        x, y = self._samples.of(ids)
        regression = self._dataset.regression
        return tally_of(
            self._architecture,
            model,
            x,
            y,
            regression=regression,
            compiled=self._front_kind == "compiled",
            products=self._products,
        )


def _products(precision: str) -> torch.dtype | None:
    """The type in which factors of large products are rounded; None: they are taken as they are."""
    return torch.bfloat16 if precision == "bfloat16" else None


class _Total:
    """The wave's weighted sum, group by group."""

    def __init__(self, total: WeightedSum, values: Sequence[Part]) -> None:
        self._base = {part: values[at] for part, at in total.base.items()}
        self._weights = dict(zip(total.trainings, total.weights, strict=True))
        self.result: dict[str, Part] = {part: {} for part in self._base}

    def add(self, group: Lockstep, base: Mapping[str, Part]) -> None:
        weights = [self._weights[chain[-1].number] for chain in group.chains]
        change = group.weighted_change(tuple(self._base), weights)
        for part, sum_base in self._base.items():
            for name, tensor in change[part].items():
                if base[part] is not sum_base:
                    tensor.add_(base[part][name] - sum_base[name], alpha=sum(weights))
                if name in self.result[part]:
                    self.result[part][name].add_(tensor)
                else:
                    self.result[part][name] = tensor


def _groups(wave: Wave) -> Iterator[list[Chain]]:
    """The wave's chains, those together that begin with the same model and follow the same recipe."""
    groups: dict[str, list[Chain]] = {}
    for chain in _chains(wave):
        first = chain[0].training
        recipe = [first.parameters[name] for name in ("training", "objective")]
        groups.setdefault(json.dumps([first.sources("model"), recipe], sort_keys=True), []).append(chain)
    yield from groups.values()


def _chains(wave: Wave) -> list[Chain]:
    needed = [set(training.wanted) for training in wave.trainings]
    for training in wave.trainings:
        for name, source in training.inputs.items():
            if isinstance(source, Made) and name.startswith("state."):
                needed[source.training].add(source.output)
    chains: dict[int, list[Stage]] = {}
    for number, training in enumerate(wave.trainings):
        model = training.sources("model")
        before = {source.training for source in model.values() if isinstance(source, Made)}
        restarts = (
            frozenset(part for part, source in model.items() if isinstance(source, int)) if before else frozenset()
        )
        chain = chains.pop(before.pop()) if before else []
        chains[number] = [*chain, Stage(number, training, restarts, frozenset(needed[number]))]
    return [tuple(chain) for chain in chains.values()]
