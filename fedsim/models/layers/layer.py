"""What every layer says of itself: its sizes, its signature, its parameters, its running statistics and its work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import ClassVar, TypeAlias

__all__ = ["Layer", "Shape"]

Shape: TypeAlias = tuple[int, ...]


@dataclass(frozen=True)
class Layer(ABC):
    """One layer: a name, unique in its model, and whole numbers that fix its shapes.

    Raises `ValueError` for a name that is empty or holds a dot, and for a size below one (padding: below zero).
    """

    kind: ClassVar[str]
    name: str

    def __post_init__(self) -> None:
        """Check the name and the sizes."""
        if not self.name or "." in self.name:
            raise ValueError(f"a layer's name must not be empty or hold a dot, it is {self.name!r}")
        for key, size in self.sizes.items():
            least = 0 if key == "padding" else 1
            if size < least:
                raise ValueError(f"{key}={size} of layer {self.name!r} must be at least {least}")

    @property
    def sizes(self) -> dict[str, int]:
        """Every whole number among the shape-bearing hyper-parameters, in order."""
        return {key: value for key, value in self._hyper_parameters.items() if not isinstance(value, bool)}

    @property
    def _hyper_parameters(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "name"}

    @property
    def signature(self) -> str:
        """Type and every shape-bearing hyper-parameter, without the name: layers that may be averaged have equal ones.

        A bias is the rule, so only its absence is told.

        >>> from fedsim.models.layers import Linear
        >>> Linear("fc", inputs=100, outputs=62).signature
        'linear(inputs=100, outputs=62)'
        >>> Linear("fc", inputs=100, outputs=62, bias=False).signature
        'linear(inputs=100, outputs=62, bias=False)'
        """
        hyper_parameters = self._hyper_parameters
        if hyper_parameters.get("bias") is True:
            del hyper_parameters["bias"]
        return f"{self.kind}({', '.join(f'{key}={value}' for key, value in hyper_parameters.items())})"

    @property
    def text(self) -> str:
        """The name and the signature; two models whose layers have equal ones are equal."""
        return f"{self.name}={self.signature}"

    @property
    def alone(self) -> bool:
        """Whether what it makes of a sample in training depends on that sample only.

        That is, not on chance, not on the others of its mini-batch, and not on whose it is.
        """
        return True

    @property
    def parameter_shapes(self) -> dict[str, Shape]:
        """Kind (such as ``"weight"``) -> shape of what is trained, as PyTorch orders it; empty without parameters."""
        return {}

    @property
    def buffer_shapes(self) -> dict[str, Shape]:
        """Kind -> shape of the numbers that training changes without a gradient; empty but for normalisation."""
        return {}

    @property
    def state_shapes(self) -> dict[str, Shape]:
        """Parameters, then buffers: all that makes a copy of the layer behave like it."""
        return self.parameter_shapes | self.buffer_shapes

    @abstractmethod
    def output_shape(self, input_shape: Shape) -> Shape:
        """The shape of what comes out of one sample; raises `ValueError` when the input does not fit."""

    def macs(self, input_shape: Shape) -> int:
        """Multiply-accumulates of one sample's forward pass; 0 for activations and pooling, and biases are not counted.

        Raises `ValueError` when the input does not fit.
        """
        self.output_shape(input_shape)
        return 0

    def leaves(self) -> Iterator[tuple[str, Layer]]:
        """The layers that this one is made of, with their dotted names, in state order: itself, but for composites."""
        yield self.name, self

    def units(self) -> Iterator[tuple[str, Layer]]:
        """As `leaves`, but layers that count as one when two models are compared stay together."""
        yield from self.leaves()

    def _misfit(self, input_shape: Shape, rule: str) -> ValueError:
        return ValueError(f"layer {self.name!r} ({self.signature}) takes {rule}, the input's shape is {input_shape}")
