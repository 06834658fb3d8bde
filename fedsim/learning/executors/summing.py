"""Weighted sums of models, in one order: by whoever trains, or by the process that others hand their models to."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import replace

import torch

from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Wave, WeightedSum

__all__ = ["Summing", "changed", "summed_behind", "summing", "write_change"]

PIECE = 2**16
"""Numbers that are worked on while they are in the cache."""


class Summing:
    """``sum of w_i (model_i - base)`` of some *parts*, in the order of the contributions; an empty base is zero."""

    def __init__(self, base: Mapping[str, TensorDict], weights: Sequence[float], parts: Iterable[str]) -> None:
        self._base = base
        self._parts = tuple(parts)
        self._weights = iter(weights)
        self._sum: dict[str, TensorDict] = {}

    def add(self, model: Mapping[str, TensorDict], changes: Container[str] = ()) -> None:
        """Take the next model; those of its parts that are *changes* are weighted already, and the sum's own now."""
        weight = next(self._weights)
        for part in self._parts:
            so_far = self._sum.setdefault(part, {})
            for name, tensor in model[part].items():
                change = tensor
                if part not in changes:
                    change = torch.empty_like(tensor, memory_format=torch.contiguous_format)
                    write_change(change, tensor, self._base[part][name] if self._base else None, weight)
                so_far[name] = so_far[name].add_(change) if name in so_far else change

    def result(self) -> dict[str, TensorDict]:
        """The sum, by part."""
        return self._sum


def changed(tensors: TensorDict, base: TensorDict | None, weight: float) -> TensorDict:
    """``weight (tensor - base)`` of each, in new memory."""
    made = {name: torch.empty_like(tensor, memory_format=torch.contiguous_format) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        write_change(made[name], tensor, None if base is None else base[name], weight)
    return made


def write_change(out: torch.Tensor, tensor: torch.Tensor, base: torch.Tensor | None, weight: float) -> None:
    """``weight (tensor - base)`` into *out*, piece by piece, so that memory is passed through once; no base is zero."""
    tensors = [out, tensor] if base is None else [out, tensor, base]
    if tensor.numel() <= PIECE or not all(one.is_contiguous() for one in tensors):
        _write_change(*tensors, weight=weight)
        return
    for pieces in zip(*(torch.split(one.view(-1), PIECE) for one in tensors), strict=True):
        _write_change(*pieces, weight=weight)


def _write_change(out: torch.Tensor, tensor: torch.Tensor, base: torch.Tensor | None = None, *, weight: float) -> None:
    if base is None:
        torch.mul(tensor, weight, out=out)
    else:
        torch.sub(tensor, base, out=out).mul_(weight)


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
