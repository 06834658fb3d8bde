"""Memory that this process and its workers share: blocks, each of which holds one part of some model.

This process alone hands out blocks, and says to the workers which ones to read and to fill. A block is taken for as
long as anybody in this process holds one of its tensors; the one given back last is handed out first, and memory of
large free blocks goes back to the machine before another large one uses more. So of large parts only as much is ever
used as was needed at one time, whichever models need it.

Holds what lies exactly as a model's table says; everything else has to travel otherwise. Does not lock: whoever fills
a block has to be done before another reads it.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import weakref
from collections.abc import KeysView, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from fedsim.errors import UserError
from fedsim.learning.executors.trainer import TensorDict
from fedsim.models.layers import Shape

__all__ = ["Block", "BlockAddress", "SharedTensors"]

_LARGE = 2**24
"""Bytes of a block from which on its memory goes back to the machine when another large part needs some."""
_ALIGNMENT = 64  # bytes: as PyTorch's own memory, so the same instructions do the arithmetic


class BlockAddress(NamedTuple):
    """Where a block is: the same in this process and in its workers."""

    part: str
    number: int


class Block:
    """A block that is taken. It is given back once this object and all of its tensors are gone."""

    __slots__ = ("__weakref__", "address", "tensors")

    def __init__(self, address: BlockAddress, tensors: TensorDict) -> None:
        self.address = address
        self.tensors = tensors


@dataclass(frozen=True)
class _Tensor:
    shape: Shape
    start: int
    """Bytes from the start of its block."""


@dataclass(frozen=True)
class _Layout:
    tensors: Mapping[str, _Tensor]
    largest: str
    start: int
    """Bytes from the start of the memory to the first block."""
    block: int
    """Bytes from one block to the next."""

    def start_of(self, number: int) -> int:
        """Bytes from the start of the memory to a block."""
        return self.start + number * self.block


class SharedTensors:
    """A number of blocks for each part: *shapes* holds part -> name -> shape of the tensors, all of one type.

    Parts without a number in them have no blocks. Raises `UserError` when the machine has no room for it.
    """

    def __init__(self, shapes: Mapping[str, Mapping[str, Shape]], dtype: torch.dtype, blocks: int) -> None:
        self._dtype = dtype
        self._layouts: dict[str, _Layout] = {}
        end = 0
        for part, tensors in shapes.items():
            if any(map(prod, tensors.values())):
                self._layouts[part] = layout = _laid_out(tensors, dtype, start=end)
                end += blocks * layout.block
        self._blocks = blocks
        self._free = {part: list(reversed(range(blocks))) for part in self._layouts}
        self._used: dict[BlockAddress, None] = {}
        """Large free blocks whose memory the machine has not got back, those that are free for longest first."""
        self._mapping = _mapped(max(end, mmap.PAGESIZE))
        self._start = np.frombuffer(self._mapping, np.uint8).ctypes.data

    @property
    def parts(self) -> KeysView[str]:
        """The parts that have blocks."""
        return self._layouts.keys()

    def fits(self, part: str, value: TensorDict) -> bool:
        """Whether *value* can be kept in a block of *part*: it has the same tensors, in any order."""
        layout = self._layouts.get(part)
        return (
            layout is not None
            and value.keys() == layout.tensors.keys()
            and all(
                tensor.dtype == self._dtype and tensor.shape == layout.tensors[name].shape and tensor.is_cpu
                for name, tensor in value.items()
            )
        )

    def part_of(self, value: TensorDict) -> str | None:
        """The first part in whose blocks *value* can be kept."""
        return next((part for part in self._layouts if self.fits(part, value)), None)

    def locate(self, value: TensorDict) -> BlockAddress | None:
        """The block that *value* is; None when it is not exactly all of one."""
        fitting = (part for part in self._layouts if self.fits(part, value))
        return next((address for part in fitting if (address := self._located(part, value))), None)

    def _located(self, part: str, value: TensorDict) -> BlockAddress | None:
        layout = self._layouts[part]
        first = self._start + layout.start + layout.tensors[layout.largest].start
        number, besides = divmod(value[layout.largest].data_ptr() - first, layout.block)
        if besides or not 0 <= number < self._blocks:
            return None
        here = self._start + layout.start_of(number)
        whole = all(
            tensor.is_contiguous() and (tensor.data_ptr() == here + layout.tensors[name].start or not tensor.numel())
            for name, tensor in value.items()
        )
        return BlockAddress(part, number) if whole else None

    def free(self, part: str) -> int:
        """How many blocks of *part* nobody has taken."""
        return len(self._free.get(part, ()))

    def take(self, part: str) -> Block | None:
        """A block with anything in it; None when there is none left. For the process that made the memory alone."""
        if not self._free.get(part):
            return None
        address, free, layout = BlockAddress(part, self._free[part].pop()), self._free[part], self._layouts[part]
        is_large = layout.block >= _LARGE
        if address in self._used:
            del self._used[address]
        elif is_large:
            self._make_room(layout.block)
        memory = self._memory(address)
        # Tensors hold on to `memory`, so it goes when the last of them goes: only then is the block free again.
        gone = weakref.finalize(memory, _give_back, address, free, self._used if is_large else None)
        gone.atexit = False
        return Block(address, self._tensors(address, memory))

    def _make_room(self, needed: int) -> None:
        """Give so many bytes back to the machine, as far as free blocks have them."""
        for address in tuple(self._used):  # a copy: a block may be given back meanwhile
            if needed <= 0:
                return
            del self._used[address]
            layout = self._layouts[address.part]
            with contextlib.suppress(OSError):  # where it cannot be given back, it stays for the next model
                self._mapping.madvise(mmap.MADV_REMOVE, layout.start_of(address.number), layout.block)
            needed -= layout.block

    def tensors(self, address: BlockAddress) -> TensorDict:
        """What a block holds, in the table's order. They do not keep the block taken."""
        return self._tensors(address, self._memory(address))

    def fill(self, address: BlockAddress, value: TensorDict) -> None:
        """Copy *value*, which fits, into a block."""
        with torch.no_grad():
            for name, tensor in self.tensors(address).items():
                tensor.copy_(value[name])

    def _memory(self, address: BlockAddress) -> npt.NDArray[np.uint8]:
        layout = self._layouts[address.part]
        return np.frombuffer(self._mapping, np.uint8, layout.block, layout.start_of(address.number))

    def _tensors(self, address: BlockAddress, memory: npt.NDArray[np.uint8]) -> TensorDict:
        """Each with a storage of its own, as if it had been made by PyTorch."""
        return {
            name: torch.from_numpy(memory[tensor.start : tensor.start + prod(tensor.shape) * self._dtype.itemsize])
            .view(self._dtype)
            .view(tensor.shape)
            for name, tensor in self._layouts[address.part].tensors.items()
        }


def _laid_out(shapes: Mapping[str, Shape], dtype: torch.dtype, *, start: int) -> _Layout:
    tensors: dict[str, _Tensor] = {}
    end = 0
    for name, shape in shapes.items():
        tensors[name] = _Tensor(tuple(shape), end)
        end = _rounded_up(end + prod(shape) * dtype.itemsize, _ALIGNMENT)
    largest = max(shapes, key=lambda name: prod(shapes[name]))
    return _Layout(tensors, largest, start, _rounded_up(end, mmap.PAGESIZE))


def _rounded_up(size: int, unit: int) -> int:
    return -(-size // unit) * unit


def _give_back(address: BlockAddress, free: list[int], used: dict[BlockAddress, None] | None) -> None:
    """The block is free; it is a large one if *used* is given."""
    if used is not None:
        used[address] = None
    free.append(address.number)


def _mapped(size: int) -> Any:
    """Memory that a process has in common with those it forks; none of it is used, or set aside, before it is touched.

    An anonymous mapping of the same size would be set aside as a whole, which a small machine refuses.
    """
    try:
        file = os.memfd_create("fedsim")
        try:
            os.ftruncate(file, size)
            return mmap.mmap(file, size)
        finally:
            os.close(file)
    except OSError as error:
        raise UserError(
            f"workers need {size / 1e6:,.0f} MB of memory in common, which this machine does not give "
            f"({error.strerror}); ask for fewer, or for none: --workers 1"
        ) from None
