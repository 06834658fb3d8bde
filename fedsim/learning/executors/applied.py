"""Operations that bring their own arithmetic, in the process that asks: they are small beside trainings."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch

from fedsim.errors import UserError
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.graph import Node
from fedsim.learning.operations.operation import Operation, Value

__all__ = ["applied"]


@torch.no_grad()
def applied(node: Node) -> dict[str, Value]:
    """The outputs of *node* that are held: tensors in memory of their own, numbers as Python's.

    Raises `UserError` when one that is asked for is missing, or is neither.
    """
    operation, stream = node.operation, node.stream
    made = operation.apply(node.values, None if stream is None else stream.generator())
    taken = {
        tensor.untyped_storage().data_ptr()
        for slot in node.inputs.values()
        if isinstance(slot.value, Mapping)
        for tensor in slot.value.values()
        if isinstance(tensor, torch.Tensor)
    }
    outputs = {}
    for name in {handle.output for handle in node.held_outputs()}:
        if name not in made:
            raise UserError(
                f"operation {operation.name!r} makes {', '.join(map(repr, made)) or 'nothing'}, and no {name!r}"
            )
        of_its_kind = _scalar if name in operation.scalars else _tensors
        outputs[name] = of_its_kind(operation, name, made[name], taken)
    return outputs


def _scalar(operation: Operation, name: str, value: Any, _: set[int]) -> float | dict[str, float]:
    value = value.item() if isinstance(value, torch.Tensor) and value.numel() == 1 else value
    numbers = value.values() if isinstance(value, dict) else [value]
    if all(type(number) in (int, float) and math.isfinite(number) for number in numbers):
        return value  # type: ignore[no-any-return]
    raise UserError(f"{name!r} of operation {operation.name!r} must be a finite number, and is {value!r}")


def _tensors(operation: Operation, name: str, value: Any, taken: set[int]) -> TensorDict:
    if not isinstance(value, Mapping) or not all(isinstance(tensor, torch.Tensor) for tensor in value.values()):
        raise UserError(
            f"{name!r} of operation {operation.name!r} must be tensors by name, and is of type {type(value).__name__}"
        )
    made = {}
    for key, tensor in value.items():
        place = tensor.untyped_storage().data_ptr()
        made[key] = tensor.clone() if place in taken else tensor  # nobody else's memory, not even an input's
        taken.add(made[key].untyped_storage().data_ptr())
    return made
