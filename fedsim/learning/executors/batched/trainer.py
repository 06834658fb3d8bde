"""Waves of clients that train together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, conv_stack_kind
from fedsim.learning.executors.batched.course import Draw, Stage
from fedsim.learning.executors.batched.cuda_graphs import CudaRecorder
from fedsim.learning.executors.batched.geometries import geometries
from fedsim.learning.executors.batched.group import Change, Group, groups
from fedsim.learning.executors.batched.lockstep import Lockstep
from fedsim.learning.executors.batched.low_rank import prepare_factors
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.recordings import Recorder, Recordings
from fedsim.learning.executors.batched.samples import XY, ResidentSamples, Samples
from fedsim.learning.executors.batched.scoring import forward, tally_of
from fedsim.learning.executors.batched.support import Architecture, architecture
from fedsim.learning.executors.cuda_arithmetic import arithmetic
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.semantics import joined, shuffled
from fedsim.learning.executors.summing import summed_behind
from fedsim.learning.executors.trainer import (
    Deliver,
    Score,
    Tally,
    TensorDict,
    Trainer,
    as_made,
    number_type,
    scores_from,
)
from fedsim.learning.executors.wave import Made, Source, Wave, WeightedSum
from fedsim.learning.kernels.machine_code import convolution_kernels
from fedsim.models.table import CLASSIFIER, EXTRACTOR, ModelTable

__all__ = ["BatchedTrainer"]


class BatchedTrainer(Trainer):
    """Clients of a wave that start from one model and train by one recipe go through their steps together."""

    precisions = ("float32", "float64", "tf32", "bfloat16")
    together = True
    flat_features = True
    stacked: ClassVar[bool] = False
    """Whether to train as on ``cuda`` wherever it is: convolutions of all clients at once, samples on the device."""
    recorder: ClassVar[type[Recorder] | None] = None
    """What records groups that come again; None: CUDA graphs, on ``cuda``."""

    def __init__(self, table: ModelTable, dataset: FederatedDataset, torch_device: str, precision: str) -> None:
        self.table, self.torch_device, self._precision = table, torch_device, precision
        self._products = _products(precision)
        self.dataset, self.dtype = dataset, number_type(precision)
        stacked, dtype = self.stacked or torch_device == "cuda", self.dtype
        self._whole = _Layers.of(table, None, stacked)
        self._parts = {part: _Layers.of(table, part, stacked) for part in table.parts}
        # Not a method: the trainer, and all that lies on the device, is gone as soon as nobody holds it.
        self._lockstep = partial(_lockstep, self._whole, dataset, self._products)
        self._samples: Samples = Samples(dataset, dtype)
        self._recordings: Recordings | None = None
        if stacked:
            self._samples = resident = ResidentSamples(dataset, dtype, torch_device)
            recorder = self.recorder or (CudaRecorder if torch_device == "cuda" else None)
            if recorder is not None:
                self._recordings = Recordings(dataset, resident, recorder(), self._lockstep)

    @classmethod
    def prepare(cls, table: ModelTable, torch_device: str, precision: str) -> None:
        """Make the machine code, for a CPU."""
        if torch_device != "cpu":
            return
        found, dtype, products = architecture(table), number_type(precision), _products(precision)
        if conv_stack_kind(found.conv_stack, stacked=cls.stacked) == "compiled":
            for shape in geometries(found.conv_stack) or ():
                convolution_kernels(shape, dtype, products)
        for number, block in enumerate(found.dense_stack):
            first = number == 0 and not found.conv_stack
            prepare_factors(block.layer.outputs, block.layer.inputs, dtype, products, first=first)

    @classmethod
    def side_by_side(cls, wave: Wave) -> bool:
        """What an objective needs it for, or is coded, is trained in the plain loop."""
        about = [training.about for training in wave.trainings]
        return not any(one.objective.trains_alone or not one.codec.exact for one in about)

    @torch.no_grad()
    def train(
        self, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
    ) -> list[dict[str, TensorDict]]:
        """Group after group, as far as they go side by side."""
        if not self.side_by_side(wave):
            with torch.enable_grad():
                return self._plain.train(wave, values, deliver)
        with arithmetic(self.torch_device, self._precision):
            return self._train(wave, values) if len(wave.sums) < 2 else summed_behind(self._train, wave, values)

    @cached_property
    def _plain(self) -> PlainTrainer:
        return PlainTrainer(self.table, self.dataset, self.torch_device, self._precision)

    def _train(self, wave: Wave, values: Sequence[TensorDict]) -> list[dict[str, TensorDict]]:
        outputs: list[dict[str, TensorDict]] = [{} for _ in wave.trainings]

        def made(source: Source) -> TensorDict:
            return outputs[source.training][source.output] if isinstance(source, Made) else values[source]

        total = _Total(wave.sums[0], values) if wave.sums else None
        for group in groups(wave, values):
            change = None
            if self._recordings is not None and not group.on_rows:
                change = self._recordings.trained(group, outputs.__setitem__)
            if change is None:
                change = self._new_lockstep(group, made).run(made, outputs.__setitem__)
            if total is not None:
                total.add(change, group.base)
        return outputs if total is None else [*outputs, total.result]

    def _new_lockstep(self, group: Group, made: Callable[[Source], TensorDict]) -> Lockstep:
        """Of all layers on samples, or of the classifier's alone on rows of semantics."""
        if not group.on_rows:
            return self._lockstep(group, self._draw)

        def draw(stage: Stage) -> Iterator[XY]:
            rows = joined([made(source) for source in stage.training.rows])
            return shuffled(rows, stage.training.about.training, stage.training.stream)

        return _lockstep(self._parts[CLASSIFIER], self.dataset, self._products, group, draw)

    def _draw(self, stage: Stage) -> Iterator[XY]:
        about = stage.training.about
        return self._samples.mini_batches(about.seen, about.training, stage.training.stream)

    @torch.no_grad()
    def features(self, extractor: Mapping[str, TensorDict], samples: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """One product for each layer, of all samples together."""
        layers = self._parts[EXTRACTOR]
        with arithmetic(self.torch_device, self._precision):
            made = layers.forward(extractor, torch.cat(list(samples)), self._products)
        return [some.clone() for some in torch.split(made, [len(x) for x in samples])]

    @torch.no_grad()
    def score(
        self,
        model: Mapping[str, TensorDict],
        batches: Sequence[npt.NDArray[np.int64]],
        clients: Sequence[int | None] | None = None,
    ) -> list[Score]:
        """One product for each layer and batch; such models treat all clients alike."""
        with arithmetic(self.torch_device, self._precision):
            return scores_from([self._tally(model, ids) for ids in batches], self.labels(batches))

    def _tally(self, model: Mapping[str, TensorDict], ids: npt.NDArray[np.int64]) -> Tally:
        x, y = self._samples.of(ids)
        return tally_of(self._whole.forward(model, x, self._products), y, regression=self.dataset.regression)


@dataclass(frozen=True)
class _Layers:
    """The layers of a model, or of one of its parts, and how its convolutions are computed."""

    architecture: Architecture
    conv_stack_kind: ConvStackKind

    @classmethod
    def of(cls, table: ModelTable, part: str | None, stacked: bool) -> _Layers:
        found = architecture(table, part)
        return cls(found, conv_stack_kind(found.conv_stack, stacked=stacked))

    def forward(self, model: Mapping[str, TensorDict], x: torch.Tensor, products: torch.dtype | None) -> torch.Tensor:
        """What the last layer makes of the samples."""
        return forward(self.architecture, model, x, compiled=self.conv_stack_kind == "compiled", products=products)


def _products(precision: str) -> torch.dtype | None:
    """The type in which factors of large products are rounded; None: they are taken as they are."""
    return torch.bfloat16 if precision == "bfloat16" else None


def _lockstep(
    layers: _Layers, dataset: FederatedDataset, products: torch.dtype | None, group: Group, draw: Draw
) -> Lockstep:
    recipe = Recipe.of(group.about, products)
    return Lockstep(layers.architecture, dataset, draw, group, recipe, layers.conv_stack_kind)


class _Total:
    """The wave's weighted sum, group by group."""

    def __init__(self, total: WeightedSum, values: Sequence[TensorDict]) -> None:
        self._base = {part: values[at] for part, at in total.base.items()}
        self.result: dict[str, TensorDict] = {part: {} for part in total.parts}

    def add(self, change: Change, base: Mapping[str, TensorDict]) -> None:
        """*change* is the total's own from now on."""
        for part in self.result:
            sum_base = self._base.get(part)
            for name, tensor in change.parts[part].items():
                if sum_base is None:
                    tensor.add_(base[part][name], alpha=change.weight)
                elif base[part] is not sum_base:
                    tensor.add_(base[part][name] - sum_base[name], alpha=change.weight)
                if name in self.result[part]:
                    self.result[part][name].add_(tensor)
                else:
                    self.result[part][name] = tensor
