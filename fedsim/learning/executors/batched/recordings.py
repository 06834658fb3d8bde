"""Groups that come again with the same sizes: recorded once, then played as a whole.

On a GPU a local training is thousands of operations, each of which takes less time than to start it; a CUDA graph
starts all of them at once. It repeats the same operations on the same places in memory. What differs from one group to
the next of its kind, the model to begin with and the ids of everybody's samples, is therefore copied to places of the
recording's own, and what it makes is copied from there. A kind of group is known by all else that its operations depend
on: the recipe, the sizes of all mini-batches, which training is which of the wave's, what restarts and is wanted in
each, and the parts and weights of the sum.

A kind is recorded when it comes for the second time. Trained operation by operation are, beside the first ones,
objectives whose term is not linear, that push or that make something, as that is code of their own; data sets whose
samples do not lie on the device, or are augmented; groups of more than `MOST_STEPS` steps; and everything once
something could not be recorded.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.batches import BatchSizes
from fedsim.learning.executors.batched.course import Draw, Stage
from fedsim.learning.executors.batched.group import Change, Group, recipe_of
from fedsim.learning.executors.batched.lockstep import Lockstep
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.samples import XY, ResidentSamples
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.wave import Source
from fedsim.learning.joint_steps import JointSizes

__all__ = ["MOST", "MOST_SEEN", "MOST_STEPS", "STALE", "Recorder", "Recordings"]

MOST = 16
"""Recordings that are kept: each holds a model to begin with, and all that it makes."""

STALE = 4 * MOST
"""A recording makes room for another one when so many groups have come since it was played last."""

MOST_SEEN = 1024
"""Kinds that are remembered."""

MOST_STEPS = 512
"""Steps of a group that is recorded: a step is about a hundred operations, and a graph keeps a place for each."""

_Made = TypeVar("_Made")
Sizes = Mapping[int, BatchSizes | JointSizes]
"""How many samples are in each mini-batch of each training, by its number."""


class Recorder(Protocol):
    """Records what is computed on a torch device."""

    def record(self, work: Callable[[], _Made]) -> tuple[_Made, Callable[[], None]]:
        """Do *work*, perhaps more than once.

        Returns what it has made the last time, and what does the same again, in the same places of memory. Raises
        `RuntimeError` when something in it cannot be recorded.
        """


class Recordings:
    """The kinds of groups seen so far, and recordings of those that have come again."""

    def __init__(
        self,
        dataset: FederatedDataset,
        samples: ResidentSamples,
        recorder: Recorder,
        lockstep: Callable[[Group, Draw], Lockstep],
    ) -> None:
        """*lockstep* gets ready to train a group."""
        self._dataset = dataset
        self._samples = samples
        self._recorder: Recorder | None = recorder
        self._lockstep = lockstep
        self._groups = 0
        self._seen: OrderedDict[Hashable, None] = OrderedDict()
        self._recordings: OrderedDict[Hashable, _Recording] = OrderedDict()

    def trained(self, group: Group, finished: Callable[[int, dict[str, TensorDict]], None]) -> Change | None:
        """As `Lockstep.run`, by a recording; None if there is none: then nothing has happened."""
        recipe = Recipe.of(group.about)
        recorded = recipe.linear and not (recipe.pushes or group.about.objective.makes)
        if self._recorder is None or not self._samples.all_there or not recorded:
            return None
        sizes = {stage.number: stage.training.about.sizes for stage in group.stages}
        kind = kind_of(group, sizes)
        self._groups += 1
        if not self._seen_before(kind) or not (kind in self._recordings or self._has_room(group, sizes)):
            return None
        ids = self._ids(group)
        recording = None if ids is None else self._recording(kind, group, sizes, self._recorder)
        if ids is None or recording is None:
            return None
        recording.played_at = self._groups
        return recording.played(group.base, ids, finished)

    def _seen_before(self, kind: Hashable) -> bool:
        before = kind in self._seen
        self._seen[kind] = None
        self._seen.move_to_end(kind)
        if len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        return before

    def _has_room(self, group: Group, sizes: Sizes) -> bool:
        """Whether one more may be recorded; the one that was not played for the longest time may have to go for it."""
        if max(sum(sizes[stage.number].steps for stage in chain) for chain in group.chains) > MOST_STEPS:
            return False
        if len(self._recordings) < MOST:
            return True
        oldest = next(iter(self._recordings))
        if self._groups - self._recordings[oldest].played_at <= STALE:
            return False
        del self._recordings[oldest]
        return True

    def _recording(self, kind: Hashable, group: Group, sizes: Sizes, recorder: Recorder) -> _Recording | None:
        """The one of that kind, perhaps a new one; None if nothing can be recorded."""
        if kind in self._recordings:
            self._recordings.move_to_end(kind)
            return self._recordings[kind]
        try:
            recording = self._recordings[kind] = _Recording(group, sizes, self._samples, recorder, self._lockstep)
        except RuntimeError as error:
            self._recorder = None
            self._recordings.clear()
            cause = error.__context__ or error  # what ends a recording that has failed says only that it has
            reason = str(cause).partition("\n")[0]
            warnings.warn(f"clients train operation by operation, not as a CUDA graph: {reason}", stacklevel=2)
            return None
        return recording

    def _ids(self, group: Group) -> npt.NDArray[np.int64] | None:
        """The samples that the group's trainings see, one after the other; None where ids do not say all of it."""
        found: list[npt.NDArray[np.int64]] = []
        for stage in group.stages:
            about = stage.training.about
            feed = self._samples.ids(about.seen, about.training, stage.training.stream)
            if feed is None:
                return None
            found += feed
        return np.concatenate(found)


def kind_of(group: Group, sizes: Sizes) -> Hashable:
    """The same for groups whose operations are the same."""
    chains = tuple(
        tuple((stage.number, sizes[stage.number], stage.restarts, stage.needed) for stage in chain)
        for chain in group.chains
    )
    weights = None if group.weights is None else tuple(group.weights[chain[-1].number] for chain in group.chains)
    return recipe_of(group.about), chains, group.summed, weights


class _Recording:
    """A group's whole training, on places in memory of its own."""

    def __init__(
        self,
        group: Group,
        sizes: Sizes,
        samples: ResidentSamples,
        recorder: Recorder,
        lockstep: Callable[[Group, Draw], Lockstep],
    ) -> None:
        self.played_at = 0
        self._group = replace(group, base=_copied(group.base))
        self._samples, self._lockstep, self._sizes = samples, lockstep, sizes
        numbers = [own.total for own in sizes.values()]
        self._ids = samples.placed(np.zeros(sum(numbers), np.int64))
        self._ids_of = dict(zip(sizes, torch.split(self._ids, numbers), strict=True))
        (self._change, self._outputs), self._play = recorder.record(self._train)

    def played(
        self,
        base: Mapping[str, TensorDict],
        ids: npt.NDArray[np.int64],
        finished: Callable[[int, dict[str, TensorDict]], None],
    ) -> Change:
        """As `Lockstep.run`, from another base, and on other samples."""
        for part, tensors in self._group.base.items():
            for name, tensor in tensors.items():
                tensor.copy_(base[part][name])
        self._ids.copy_(torch.from_numpy(ids))
        self._play()
        for number, outputs in self._outputs.items():
            finished(number, _copied(outputs))
        return Change(_copied(self._change.parts), self._change.weight)

    def _train(self) -> tuple[Change, dict[int, dict[str, TensorDict]]]:
        outputs: dict[int, dict[str, TensorDict]] = {}
        change = self._lockstep(self._group, self._draw).run(_nothing, outputs.__setitem__)
        return change, outputs

    def _draw(self, stage: Stage) -> Iterator[XY]:
        return self._samples.at(self._ids_of[stage.number], list(self._sizes[stage.number]))


def _nothing(source: Source) -> TensorDict:
    raise AssertionError(f"a linear objective remembers nothing, yet asks for {source}")


def _copied(parts: Mapping[str, TensorDict]) -> dict[str, TensorDict]:
    return {part: {name: tensor.clone() for name, tensor in tensors.items()} for part, tensors in parts.items()}
