"""Weighted sums of models, in one order: by whoever trains, or by the process that others hand their models to."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

import torch

from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Wave, WeightedSum

__all__ = ["Summing", "summed_behind", "summing"]


class Summing:
    """``sum of w_i (model_i - base)`` of some *parts*, in the order of the contributions; an empty base is zero."""

    def __init__(self, base: Mapping[str, TensorDict], weights: Sequence[float], parts: Iterable[str]) -> None:
        self._base = base
        self._parts = tuple(parts)
        self._weights = iter(weights)
        self._sum: dict[str, TensorDict] = {}

    def add(self, model: Mapping[str, TensorDict], given_up: Container[str] = ()) -> None:
        """Take the next model; those of its parts that are *given_up* are written over, as nobody else has them."""
        weight = next(self._weights)
        for part in self._parts:
            so_far = self._sum.setdefault(part, {})
            for name, tensor in model[part].items():
                change = tensor if part in given_up else torch.empty_like(tensor, memory_format=torch.contiguous_format)
                if self._base:
                    torch.sub(tensor, self._base[part][name], out=change).mul_(weight)
                else:
                    torch.mul(tensor, weight, out=change)
                so_far[name] = so_far[name].add_(change) if name in so_far else change

    def result(self) -> dict[str, TensorDict]:
        """The sum, by part."""
        return self._sum


def summing(total: WeightedSum, values: Sequence[TensorDict]) -> Summing:
    """A wave's sum, of which nothing has been added yet."""
    return Summing({part: values[at] for part, at in total.base.items()}, total.weights, total.parts)


def summed_behind(
    train: Callable[[Wave, Sequence[TensorDict]], list[dict[str, TensorDict]]],
    wave: Wave,
    values: Sequence[TensorDict],
) -> list[dict[str, TensorDict]]:
    """What *train* makes of the trainings of *wave*, and then all sums of it: every model is there at a time."""
    last = set(wave.sums[0].trainings)
    parts = {part for total in wave.sums for part in total.parts}
    trainings = [
        replace(training, wanted=(*training.wanted, *sorted(parts.difference(training.wanted))))
        if at in last
        else training
        for at, training in enumerate(wave.trainings)
    ]
    outputs = train(Wave(tuple(trainings)), values)
    sums = []
    for total in wave.sums:
        adding = summing(total, values)
        for number in total.trainings:
            adding.add(outputs[number])
        sums.append(adding.result())
    wanted = [
        {name: made[name] for name in training.wanted} for made, training in zip(outputs, wave.trainings, strict=True)
    ]
    return [*wanted, *sums]
