"""Training a model that is sent and averaged in segments: between segments and parts, tensors only change their names.

What trains sees the model whole, by parts; what comes in and goes out is by segment. Nothing is copied for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fedsim.kernel.streams import Stream
from fedsim.learning.executors.summing import summing
from fedsim.learning.executors.trainer import Deliver, Score, TensorDict, Trainer, as_made
from fedsim.learning.executors.wave import Training, Wave
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import TrainPartly
from fedsim.models.initialisation import start
from fedsim.models.segmented import SegmentedTable

__all__ = ["SegmentedTrainer", "started"]


class SegmentedTrainer(Trainer):
    """Gives the models of *table*, whole, to *inner*."""

    def __init__(self, table: SegmentedTable, inner: Trainer) -> None:
        self.table = self._segments = table
        self._inner = inner
        self.dataset, self.torch_device, self.dtype = inner.dataset, inner.torch_device, inner.dtype

    def train(
        self, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
    ) -> list[dict[str, TensorDict]]:
        """As *inner* does, all together if that is how it trains; the sums take each model as soon as it is made."""
        totals = [summing(total, values) for total in wave.sums]
        last = set(wave.sums[0].trainings) if wave.sums else set()
        trainings = list(enumerate(wave.trainings))
        outputs: list[dict[str, TensorDict]] = []
        for some in [trainings] if self._inner.together else [[one] for one in trainings]:
            given = list(values)
            joined = tuple(self._joined(training, given) for _, training in some)
            for (number, training), made in zip(some, self._inner.train(Wave(joined), given), strict=True):
                pieces = self._cut(made)
                if number in last:
                    for total in totals:
                        total.add(pieces)
                outputs.append({name: deliver(number, name, pieces[name]) for name in training.wanted})
        return [*outputs, *(total.result() for total in totals)]

    def _joined(self, training: Training, values: list[TensorDict]) -> Training:
        """The same by parts; their tensors are appended to *values*, once for each model."""
        found = training.sources.model("model")
        assert all(isinstance(source, int) for source in found.values()), "nobody hands a model in segments on"
        model = self._segments.joined(
            {name: values[source] for name, source in found.items() if isinstance(source, int)}
        )
        inputs = {slot: source for slot, source in training.inputs.items() if slot.role != "model"}
        for part, tensors in model.items():
            at = next((at for at, value in enumerate(values) if _same(value, tensors)), len(values))
            if at == len(values):
                values.append(tensors)
            inputs[Slot("model", part=part)] = at
        others = [name for name in training.wanted if name not in self._segments.segments]
        about = replace(training.about, model=self._segments.whole.digest)
        if isinstance(about, TrainPartly):
            segments = [segment for name, segment in self._segments.segments.items() if about.writes(name)]
            written = tuple(f"{segment.part}.{state}" for segment in segments for state in segment.names.values())
            about = replace(about, written=written)
        return replace(training, about=about, inputs=inputs, wanted=(*model, *others))

    def _cut(self, made: Mapping[str, TensorDict]) -> dict[str, TensorDict]:
        """A model by segment, and whatever else was made."""
        parts = self._segments.whole.parts
        return {name: value for name, value in made.items() if name not in parts} | self._segments.pieces(made)

    def features(self, extractor: Mapping[str, TensorDict], samples: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Nobody asks for them: an extractor alone is no segment."""
        raise NotImplementedError

    def score(
        self,
        model: Mapping[str, TensorDict],
        batches: Sequence[npt.NDArray[np.int64]],
        clients: Sequence[int | None] | None = None,
    ) -> list[Score]:
        """The whole model's."""
        return self._inner.score(self._segments.joined(model), batches, clients)


def _same(value: TensorDict, other: TensorDict) -> bool:
    """Whether two parts are the same tensors."""
    return value.keys() == other.keys() and all(value[name] is tensor for name, tensor in other.items())


def started(table: SegmentedTable, stream: Stream) -> dict[str, TensorDict]:
    """What training starts from, by segment: each layer is drawn from a stream that its `path` names."""
    layers = {path: leaf for some in table.whole.layers.values() for layer in some for path, leaf in layer.leaves()}
    made: dict[str, TensorDict] = {}
    number = 0
    for name, segment in table.segments.items():
        made[name] = {}
        begun: tuple[int, np.random.Generator] | None = None
        for own, state in segment.names.items():
            number = int(own.partition(".")[0])
            if begun is None or begun[0] != number:
                begun = number, replace(stream, purpose=f"{stream.purpose}/{table.path(number)}").generator()
            leaf, _, kind = state.rpartition(".")
            made[name][own] = torch.from_numpy(start(table.whole.initialisation, layers[leaf], kind, begun[1]))
    return made
