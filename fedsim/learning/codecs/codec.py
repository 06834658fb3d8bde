"""What a codec is: how the change of a model is written on the wire, how large that is, and what is read from it.

Torch-free: codecs only call tensors' methods. Left out: running statistics, which are always written in float32.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, NamedTuple

import numpy as np

from fedsim.learning.objectives.objective import State, Tensors
from fedsim.models.table import ModelTable
from fedsim.settings import Component, Positive

__all__ = ["Codec", "Coded"]


class Coded(NamedTuple):
    """A change after it was written and read again."""

    change: Tensors
    """As it is read, in new memory."""
    state: Mapping[str, Tensors]
    """What the client keeps for the next one, in new memory: by the names in ``remembers``, then by the tensors'."""
    bytes: int
    """On the wire."""


class Codec(Component):
    """Registered under "codecs"."""

    version: ClassVar[int] = 1
    """Belongs to the numbers that it makes."""
    exact: ClassVar[bool] = False
    """Whether what is read is what was written: then nothing is coded at all."""
    measured: ClassVar[bool] = False
    """Whether its size depends on values."""
    remembers: ClassVar[tuple[str, ...]] = ()
    """Names of what a client keeps from one update to the next, such as what was left out."""

    declared_bytes: Positive | None = None
    """Bytes of an update, in place of its size by this codec; a measured size is not known without training."""

    @property
    def reads_learning(self) -> bool:
        """Whether the size of an update is known only once it was learned."""
        return self.measured and self.declared_bytes is None

    def size(self, table: ModelTable, part: str | None = None) -> float:
        """Bytes of an update of *part*, or of the whole model, as declared; running statistics in float32 with it."""
        size = self.bytes(table, part) if self.declared_bytes is None else self.declared_bytes
        return (0.0 if self.reads_learning else size) + table.statistics_bytes(part)

    def bytes(self, table: ModelTable, part: str | None) -> float:
        """The same by the codec's own formula, of what is trained; of a measured one, nothing is known."""
        return 0.0

    @abstractmethod
    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        """*change*, by the tensors' full names, is written and read again. Neither it nor *state* is changed.

        Where an exchange sends a part of the model in some rounds, *change* is sometimes of that part only. What
        *state* has of other tensors is kept by `coded`, and need not be returned. It may lack tensors of *change*.
        """

    def coded(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        """What `code` makes of it; and of tensors that are not sent now, what is kept stays."""
        made = self.code(change, state, generator)
        stays = {
            name: {full: tensor.clone() for full, tensor in tensors.items() if full not in change}
            for name, tensors in state.items()
        }
        names = dict.fromkeys([*self.remembers, *made.state])  # what is not returned is kept, too
        return made._replace(state={name: {**stays.get(name, {}), **made.state.get(name, {})} for name in names})
