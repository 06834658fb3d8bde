"""What a selection is: which filters of a trained extractor's convolutions a client sends to the server.

With a filter go its bias, its entries of the normalisation behind its convolution, and their running statistics; its
input channels are not reduced. What no convolution has is sent in full. Torch-free: selections only call tensors'
methods. (SPATL: Yu et al., *SPATL: salient parameter aggregation and transfer learning for heterogeneous federated
learning*, SC 2022, section IV-B.)
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from annotated_types import Interval

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.objectives.objective import State, Tensors
from fedsim.models.convolutions import Masks, Skeleton, left_of
from fedsim.settings import Component

__all__ = ["Asked", "Chosen", "MeasuredSelection", "NoSelection", "Selecting", "Selection", "bytes_kept"]

INDEX_BYTES = 4
"""Of a filter's number in its convolution, which is sent with it."""


class Asked(NamedTuple):
    """What a selection chooses from."""

    skeleton: Skeleton
    weights: Tensors
    """The trained extractor, by the names of its state."""
    state: State
    """What the client has kept, by the names in ``remembers``; empty at first."""
    learns: bool
    """As `Selection.learns_in` has it."""
    accuracy: Callable[[Masks], float]
    """In percent, on the samples that the client holds back: that of the trained model where all other filters are zero
    with all that goes along with them."""
    seed: int
    generator: np.random.Generator
    """At the beginning of a random stream of this choice alone."""

    def finite(self) -> bool:
        """Whether every number of the part is finite: a model that has diverged has others."""
        return all(bool(tensor.isfinite().all()) for tensor in self.weights.values())

    def norms(self) -> list[npt.NDArray[np.float64]]:
        """(filters,) of each convolution: the L2 norm of each filter's weights."""
        weights = (self.weights[f"{one.name}.weight"].detach().double() for one in self.skeleton.convolutions)
        return [each.flatten(1).square().sum(dim=1).sqrt().cpu().numpy() for each in weights]


class Chosen(NamedTuple):
    """What it has chosen."""

    masks: Masks
    state: Mapping[str, Tensors] = {}
    """What the client keeps for the next choice, in new memory."""
    facts: Mapping[str, float] = {}
    """Of the choice, for people."""


class Selection(Component):
    """Registered under "selections"."""

    version: ClassVar[int] = 1
    """Belongs to the numbers that it makes."""
    remembers: ClassVar[tuple[str, ...]] = ()
    """Names of what a client keeps from one choice to the next."""

    tells: ClassVar[tuple[str, ...]] = ()
    """Names among its facts that stand in the summary of a run, as means over clients."""

    @property
    def selects(self) -> bool:
        """Whether anything may be left out."""
        return True

    @property
    def reads_learning(self) -> bool:
        """Whether the size of an update is known only once it was learned."""
        return False

    @property
    def held_back(self) -> int:
        """How many training samples a client has to hold back for it, at most."""
        return 0

    @property
    def basis(self) -> str:
        """The digest of whatever comes with fedsim and goes into its choices."""
        return ""

    def check(self, skeleton: Skeleton, dataset: FederatedDataset) -> None:
        """Raise `Misfit` when it cannot choose from such convolutions, or with such data."""
        return

    def learns_in(self, round_number: int) -> bool:
        """Whether what it remembers is trained in that round."""
        return False

    def rated(self, round_number: int, held_back: int) -> float:
        """Forward passes of a sample through the whole model that it takes, where so many samples are held back."""
        return 0.0

    def kept_bytes(self, skeleton: Skeleton) -> float:
        """Bytes that a client keeps for it."""
        return 0.0

    def size(self, skeleton: Skeleton, part_bytes: float) -> float:
        """Bytes of an update of a part of *part_bytes*, with the numbers of its filters; 0 if that is measured."""
        if self.reads_learning:
            return 0.0
        return bytes_kept(skeleton, part_bytes, [self.keeps(one.filters) for one in skeleton.convolutions])

    @abstractmethod
    def keeps(self, filters: int) -> int:
        """How many of so many *filters* of a convolution an update has, for its size; 0 where that is measured."""

    @abstractmethod
    def choose(self, asked: Asked) -> Chosen:
        """Which filters are kept, one of each convolution at least. Nothing that it is given is changed."""


class MeasuredSelection(Selection):
    """One whose number of filters depends on what was learned."""

    declared_keep: Annotated[float, Interval(gt=0, le=1)] | None = None
    """Share of each convolution's filters, from which the size of an update is worked out in place of the filters that
    are kept: a run without training needs it."""

    @property
    def reads_learning(self) -> bool:
        """Unless it is declared."""
        return self.declared_keep is None

    def keeps(self, filters: int) -> int:
        """As declared."""
        return 0 if self.declared_keep is None else left_of(filters, self.declared_keep)


class NoSelection(Selection):
    """Every filter is sent, and no numbers of filters with them."""

    name: Literal["none"] = "none"

    @property
    def selects(self) -> bool:
        """Nothing is left out."""
        return False

    def keeps(self, filters: int) -> int:
        """All."""
        return filters

    def choose(self, asked: Asked) -> Chosen:
        """All."""
        return Chosen([np.ones(one.filters, np.bool_) for one in asked.skeleton.convolutions])


class Selecting(NamedTuple):
    """A selection in one round."""

    selection: Selection
    part: str
    """The part of the model whose filters are chosen from."""
    learns: bool
    """As `Selection.learns_in` has it."""
    basis: str
    """As `Selection.basis` has it."""


def bytes_kept(skeleton: Skeleton, part_bytes: float, kept: Sequence[int]) -> float:
    """Of an update where a part of *part_bytes* has so many filters of each convolution *kept*, with their numbers."""
    left_out = sum(
        (one.filters - number) * one.filter_numbers for number, one in zip(kept, skeleton.convolutions, strict=True)
    )
    return part_bytes - 4 * left_out + INDEX_BYTES * sum(kept)
