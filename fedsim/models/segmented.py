"""A model cut into the pieces that it may have in common with others: each piece can be sent and averaged alone.

Pieces are called by the numbers of their layers, ``"2-6"``, and their tensors by layer and place (``"2.0"``, ``"2.1"``)
so that equal pieces of different models are called alike, whatever their layers' names are: their position decides.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import ClassVar, NamedTuple, TypeAlias, TypeVar

from fedsim.errors import UserError
from fedsim.models.layers import Shape
from fedsim.models.signatures import common_start, first_connected, signatures
from fedsim.models.table import BYTES_PER_PARAMETER, LayerTable, ModelTable, SignedLayer
from fedsim.models.user_table import UserTable

__all__ = ["Segment", "SegmentedTable", "TrainableTable", "segmented", "whole"]


T = TypeVar("T")


class Segment(NamedTuple):
    """Some layers that follow each other, within one part of the model."""

    name: str
    part: str
    names: Mapping[str, str]
    """What its tensors are called here -> in the state of the part."""


@dataclass(frozen=True, kw_only=True)
class SegmentedTable(ModelTable):
    """The model of a table of layers, with its segments as parts.

    Its weights start layer by layer: a layer's are drawn from a stream that is named by its signature and those of all
    layers before, so what models have in common starts alike in all of them.
    """

    trainable: ClassVar[bool] = True

    whole: LayerTable
    ends: tuple[int, ...]
    """How many layers there are up to the end of each segment, in order."""

    @cached_property
    def _layers(self) -> tuple[SignedLayer, ...]:
        return self.whole.signed_layers()

    @cached_property
    def segments(self) -> dict[str, Segment]:
        """By name, first to last."""
        made = {}
        for begin, end in pairwise((0, *self.ends)):
            name = str(end) if end == begin + 1 else f"{begin + 1}-{end}"
            layers = list(enumerate(self._layers[begin:end], start=begin + 1))
            names = {f"{number}.{at}": state for number, one in layers for at, state in enumerate(one.states)}
            made[name] = Segment(name, layers[0][1].part, names)
        return made

    @property
    def parts(self) -> tuple[str, ...]:
        """The segments' names."""
        return tuple(self.segments)

    @property
    def text(self) -> str:
        """That of the whole model, and where it is cut."""
        return f"{self.whole.text}; cut behind layers {' '.join(map(str, self.ends))}"

    @property
    def input_shape(self) -> Shape:
        """One sample, without the batch axis."""
        return self.whole.input_shape

    @property
    def outputs(self) -> int:
        """The number of scores."""
        return self.whole.outputs

    def parameter_shapes(self, part: str) -> dict[str, Shape]:
        """``"2.0"`` -> shape of what is trained, in order; raises `UserError` when there is no such segment."""
        return self._shapes(part, self.whole.parameter_shapes(self._segment(part).part))

    def state_shapes(self, part: str) -> dict[str, Shape]:
        """As `parameter_shapes`, with running statistics."""
        return self._shapes(part, self.whole.state_shapes(self._segment(part).part))

    def statistics_names(self, part: str) -> tuple[str, ...]:
        """Those of normalisation layers."""
        trained = self.parameter_shapes(part)
        return tuple(name for name in self.state_shapes(part) if name not in trained)

    def statistics_bytes(self, part: str | None = None) -> float:
        """4 for each number that is no trained parameter."""
        return self.bytes(part) - BYTES_PER_PARAMETER * self.parameters(part)

    def parameters(self, part: str | None = None) -> int:
        """The number of trained parameters of a segment, or of the whole model."""
        return self.whole.parameters() if part is None else self._trained_by_segment[self.checked_part(part)]

    def bytes(self, part: str | None = None) -> float:
        """The bytes of a segment (or of the whole model) on the wire: 4 per number of its state."""
        return self.whole.bytes() if part is None else self._bytes_by_segment[self.checked_part(part)]

    @property
    def forward_flops_per_sample(self) -> float:
        """Those of the whole model."""
        return self.whole.forward_flops_per_sample

    @property
    def training_flops_per_sample(self) -> float:
        """Those of the whole model."""
        return self.whole.training_flops_per_sample

    def part_flops(self, part: str) -> float:
        """Not known: a segment may end within a block."""
        raise UserError(f"the operations of layers {part} alone are not known")

    def feature_shape(self) -> Shape:
        """That of the whole model."""
        return self.whole.feature_shape()

    def path(self, layer: int) -> str:
        """A hash of the signatures of the first *layer* layers: it names the stream that the last is drawn from."""
        text = "\n".join(one.signature for one in self._layers[:layer])
        return hashlib.blake2b(f"{self.whole.initialisation}\n{text}".encode(), digest_size=16).hexdigest()

    def joined(self, pieces: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
        """Tensors by segment, as the whole model has them: by part, and by their names there."""
        parts: dict[str, dict[str, T]] = {}
        for name, segment in self.segments.items():
            parts.setdefault(segment.part, {}).update(
                {state: pieces[name][own] for own, state in segment.names.items()}
            )
        return parts

    def pieces(self, parts: Mapping[str, Mapping[str, T]]) -> dict[str, dict[str, T]]:
        """The other way round."""
        return {
            name: {own: parts[segment.part][state] for own, state in segment.names.items()}
            for name, segment in self.segments.items()
        }

    @cached_property
    def _trained_by_segment(self) -> dict[str, int]:
        return {name: sum(map(prod, self.parameter_shapes(name).values())) for name in self.segments}

    @cached_property
    def _bytes_by_segment(self) -> dict[str, float]:
        return {
            name: float(BYTES_PER_PARAMETER * sum(map(prod, self.state_shapes(name).values())))
            for name in self.segments
        }

    def _segment(self, part: str) -> Segment:
        return self.segments[self.checked_part(part)]

    def _shapes(self, part: str, of_part: Mapping[str, Shape]) -> dict[str, Shape]:
        names = self._segment(part).names
        return {name: of_part[state] for name, state in names.items() if state in of_part}


TrainableTable: TypeAlias = LayerTable | SegmentedTable | UserTable
"""Tensors are made of these, and their shapes are known."""


def whole(table: ModelTable) -> ModelTable:
    """The model as it is trained, whether or not *table* has it in segments."""
    return table.whole if isinstance(table, SegmentedTable) else table


def segmented(
    table: ModelTable, others: Iterable[ModelTable], *, connected_apart: bool = False, layers: int | None = None
) -> ModelTable:
    """*table* cut wherever it may share what is before, and not what is behind, with the models of *others*.

    That is where the layers end that it has in common with another model, and where a part of either ends before. With
    *connected_apart* it is cut before its first fully connected layer, too, and behind so many *layers*, if any are
    given and there are more. As it is, when nothing is to be cut.
    """
    if not isinstance(table, LayerTable):
        return table
    own = signatures(table)
    parts = _part_ends(table)
    cuts = set(parts)
    shares = False
    for other in {other.digest: other for other in others}.values():
        if not isinstance(other, LayerTable) or other.digest == table.digest:
            continue
        if start := common_start((own, signatures(other))):
            shares = True
            cuts |= {start, *(end for end in _part_ends(other) if end <= start)}
    if connected_apart and (connected := first_connected(own)) is not None:
        cuts.add(connected)
    if layers is not None and layers < len(own):
        cuts.add(layers)
    cuts.discard(0)
    return SegmentedTable(whole=table, ends=tuple(sorted(cuts))) if shares or cuts != set(parts) else table


def _part_ends(table: LayerTable) -> list[int]:
    """How many layers there are up to the end of each part that has some."""
    layers = [layer.part for layer in table.signed_layers()]
    return [end for end, part in enumerate(layers, start=1) if layers[end : end + 1] != [part]]
