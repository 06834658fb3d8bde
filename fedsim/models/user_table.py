"""The sizes of a model that somebody has written in PyTorch, as they were measured; torch is not loaded for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Literal, NamedTuple

from fedsim.errors import UserError
from fedsim.models.layers import Shape
from fedsim.models.table import BYTES_PER_PARAMETER, CLASSIFIER, EXTRACTOR, FORWARDS_PER_TRAINING_STEP, ModelTable

__all__ = ["Head", "Recipe", "State", "UserTable"]


@dataclass(frozen=True)
class Recipe:
    """All that it takes to make the module again."""

    path: str
    """An `ImportPath`."""
    options: str
    """The keyword arguments, as canonical JSON."""
    classifier: tuple[str, ...] | None
    """What the names of the classifier's parameters begin with; None for the last child that has parameters."""
    input_shape: Shape
    outputs: int
    """What the data set asks for: its classes, or 1 for numbers."""
    tokens: int | None
    """Samples are whole numbers below it; None for values."""


@dataclass(frozen=True)
class State:
    """A parameter, or a buffer that travels with its part."""

    name: str
    part: Literal["extractor", "classifier"]
    shape: Shape
    trained: bool
    """False for a buffer, such as a running mean."""


class Head(NamedTuple):
    """A child module that makes the scores of one tensor of features, and is all of the classifier."""

    name: str
    takes: Shape
    """The shape of what it takes for a sample."""
    flops: float
    """Of one sample's forward pass through it."""


@dataclass(frozen=True, kw_only=True)
class UserTable(ModelTable):
    """What was measured of a user's module."""

    trainable: ClassVar[bool] = True

    recipe: Recipe
    source_sha256: str
    """Of the file in which the module's class or function stands."""
    states: tuple[State, ...]
    """In the order of the module's own children; each module's parameters before its buffers."""
    outputs: int
    """The number of scores: at least as many as the data set has classes."""
    forward_flops: float
    """FLOPs of one sample's forward pass, as PyTorch counts them."""
    head: Head | None = None
    """The module that is the classifier; None when there is no such module."""

    @property
    def input_shape(self) -> Shape:
        """One sample, without the batch axis."""
        return self.recipe.input_shape

    @property
    def takes_ids(self) -> bool:
        """Whether samples are tokens, whole numbers to be looked up, and not measured values."""
        return self.recipe.tokens is not None

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """``("extractor", "classifier")``, or ``("classifier",)`` when all parameters are the classifier's."""
        return tuple(part for part in (EXTRACTOR, CLASSIFIER) if any(state.part == part for state in self.states))

    def parameter_shapes(self, part: str) -> dict[str, Shape]:
        """``"head.weight"`` -> shape of what is trained, in order; raises `UserError` when there is no such part."""
        self.checked_part(part)
        return {state.name: state.shape for state in self.states if state.part == part and state.trained}

    def state_shapes(self, part: str) -> dict[str, Shape]:
        """As `parameter_shapes`, with the buffers: all that travels with *part*."""
        self.checked_part(part)
        return {state.name: state.shape for state in self.states if state.part == part}

    def parameters(self, part: str | None = None) -> int:
        """The number of trained parameters of *part*, or of the whole model; buffers are not counted.

        Raises `UserError` when there is no such part.
        """
        return sum(prod(shape) for one in self._some(part) for shape in self.parameter_shapes(one).values())

    def bytes(self, part: str | None = None) -> float:
        """The bytes of *part* (or of the whole model) on the wire, without headers: 4 per number of its state.

        Raises `UserError` when there is no such part.
        """
        numbers = sum(prod(shape) for one in self._some(part) for shape in self.state_shapes(one).values())
        return float(BYTES_PER_PARAMETER * numbers)

    def statistics_names(self, part: str) -> tuple[str, ...]:
        """The buffers; raises `UserError` when there is no such part."""
        self.checked_part(part)
        return tuple(state.name for state in self.states if state.part == part and not state.trained)

    def statistics_bytes(self, part: str | None = None) -> float:
        """4 for each number that is in a buffer."""
        return self.bytes(part) - BYTES_PER_PARAMETER * self.parameters(part)

    @property
    def forward_flops_per_sample(self) -> float:
        """As measured."""
        return self.forward_flops

    @property
    def training_flops_per_sample(self) -> float:
        """3 forward passes."""
        return FORWARDS_PER_TRAINING_STEP * self.forward_flops

    def part_flops(self, part: str) -> float:
        """As measured; raises `UserError` when the parts do not run alone."""
        self.check_that_parts_run_alone()
        assert self.head is not None
        whole, own = self.forward_flops, self.head.flops
        return own if self.checked_part(part) == CLASSIFIER else whole - own

    def feature_shape(self) -> Shape | None:
        """The shape of what the extractor makes of a sample; None when the parts do not run alone."""
        return None if self.head is None else self.head.takes

    def check_that_parts_run_alone(self) -> None:
        """Raise `UserError` unless the classifier is one child module, which makes the scores of one tensor."""
        if self.head is None:
            raise UserError(
                f"the classifier of {self.recipe.path!r} cannot be trained apart: it must be one of the module's "
                "children, called once and last, with one tensor; name it in model.classifier"
            )

    @property
    def text(self) -> str:
        """Canonical text of the source, its options, the samples and what was made of them; not of where it stands."""
        recipe = self.recipe
        facts = {
            "torch_module": recipe.path.rpartition(":")[2],
            "source": self.source_sha256,
            "options": recipe.options,
            "input": f"{'x'.join(map(str, recipe.input_shape))}"
            + (f" tokens {recipe.tokens}" if recipe.tokens else ""),
            "outputs": str(self.outputs),
        }
        for part in self.parts:
            facts[part] = " ".join(f"{name}({_by(shape)})" for name, shape in self.state_shapes(part).items())
        return "; ".join(f"{key}: {value}" for key, value in facts.items())

    def _some(self, part: str | None) -> Sequence[str]:
        return self.parts if part is None else (self.checked_part(part),)


def _by(shape: Shape) -> str:
    return "x".join(map(str, shape))
