"""Parts of models as they travel with a message, where they are not in memory that processes share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedsim.learning.executors.tensor_dict import TensorDict

__all__ = ["Packed", "PackedTensor", "packed", "unpacked"]


class PackedTensor(NamedTuple):
    """A tensor of any type, as its bytes."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    content: npt.NDArray[np.uint8]


Packed = dict[str, PackedTensor]
"""A part that travels with its message."""


def packed(value: TensorDict) -> Packed:
    """Copy a part into a message."""
    return {
        name: PackedTensor(
            tensor.dtype, tuple(tensor.shape), tensor.detach().contiguous().view(-1).view(torch.uint8).numpy()
        )
        for name, tensor in value.items()
    }


def unpacked(value: Packed) -> TensorDict:
    """The part in a message."""
    return {name: torch.from_numpy(content).view(dtype).view(shape) for name, (dtype, shape, content) in value.items()}
