"""A model as the network and the devices see it: parts, parameters, bytes and FLOPs per sample, and no tensor.

A *part* is what a protocol may send alone: the *extractor* (features) and the *classifier* (what makes scores of
them: the last layer, or all fully connected ones, as each model says). A multiply-accumulate is 2 FLOPs; adding biases,
activations, normalisation and pooling are not counted. Training on a sample costs 3 forward passes: one forward, and
one each for the gradients of the activations and of the weights.

Leaves out: the memory of activations, and what an optimiser keeps or computes.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import ClassVar, Literal, NamedTuple, TypeAlias

from fedsim.errors import UserError, nearest
from fedsim.imports import source_digest
from fedsim.models.layers import ChannelNorm, Layer, Shape

__all__ = [
    "BYTES_PER_PARAMETER",
    "CLASSIFIER",
    "EXTRACTOR",
    "FLOPS_PER_MAC",
    "FORWARDS_PER_TRAINING_STEP",
    "Initialisation",
    "LayerTable",
    "ModelTable",
    "SignedLayer",
]

BYTES_PER_PARAMETER = 4  # float32
FLOPS_PER_MAC = 2
FORWARDS_PER_TRAINING_STEP = 3
EXTRACTOR, CLASSIFIER = "extractor", "classifier"
"""What the parts of most models are called. Who needs these two says so; all others take the parts that a table has."""

Initialisation: TypeAlias = Literal["xavier_uniform", "kaiming_normal", "torch_default"]
"""How weights start: Glorot's or He's way with zero biases, or PyTorch's own (see `fedsim.models.initialisation`)."""


class SignedLayer(NamedTuple):
    """A layer with parameters, as models are compared layer by layer."""

    name: str
    """Dotted name: ``"conv1"``, or ``"block1.body.conv1"`` inside a residual block."""
    signature: str
    """The layer's signature, and that of the normalisation behind it."""
    part: str
    """Where the layer is."""
    states: tuple[str, ...]
    """Names, in its part's state, of its own parameters and of its normalisation's parameters and statistics."""


class ModelTable(ABC):
    """What is known of a model without opening it."""

    trainable: ClassVar[bool]
    """Whether tensors can be made of it; False for sizes that are only declared."""

    @property
    @abstractmethod
    def parts(self) -> tuple[str, ...]:
        """The parts, in the order in which a sample passes them."""

    @property
    @abstractmethod
    def text(self) -> str:
        """Canonical text: equal tables, equal text; it changes with anything that could change sizes or numbers."""

    @cached_property
    def digest(self) -> str:
        """A 128-bit hash of the text, and of the source of a table that does not come with fedsim."""
        return hashlib.blake2b(f"{self.text}{source_digest(type(self)) or ''}".encode(), digest_size=16).hexdigest()

    def statistics_bytes(self, part: str | None = None) -> float:
        """The bytes of running statistics among those of *part*, or of the whole model."""
        return 0.0

    def statistics_names(self, part: str) -> tuple[str, ...]:
        """The names of the running statistics in *part*'s state: what no gradient changes."""
        return ()

    @property
    @abstractmethod
    def forward_flops_per_sample(self) -> float:
        """FLOPs of one sample's forward pass through the whole model."""

    @property
    @abstractmethod
    def training_flops_per_sample(self) -> float:
        """FLOPs of one sample in one training step of the whole model: 3 forward passes."""

    @abstractmethod
    def part_flops(self, part: str) -> float:
        """FLOPs of one sample's forward pass through *part*; raises `UserError` when they are not known."""

    @abstractmethod
    def feature_shape(self) -> Shape | None:
        """The shape of what the extractor makes of a sample; None when that is not known."""

    def feature_numbers(self) -> int | None:
        """How many numbers the extractor makes of a sample; None when that is not known."""
        shape = self.feature_shape()
        return None if shape is None else prod(shape)

    def check_that_parts_run_alone(self) -> None:
        """Raise `UserError` when the classifier cannot be trained on features, apart from the extractor."""
        return

    @abstractmethod
    def parameters(self, part: str | None = None) -> int | float:
        """The number of parameters of *part*, or of the whole model; raises `UserError` when there is no such part."""

    def bytes(self, part: str | None = None) -> float:
        """The bytes of *part* (or of the whole model) on the wire, without headers: 4 per number that is sent."""
        return float(BYTES_PER_PARAMETER * self.parameters(part))

    def checked_part(self, part: str) -> str:
        """Return *part* when the model has it; raise `UserError` otherwise."""
        if part not in self.parts:
            known = ", ".join(self.parts)
            raise UserError(f"the model has no part {part!r}{nearest(part, self.parts)} (parts: {known})")
        return part


@dataclass(frozen=True, kw_only=True)
class LayerTable(ModelTable):
    """A model of layers; everything about it follows from their shapes.

    Raises `ValueError` when a layer's name is used twice, when there is no classifier, when an activation does not fit
    the layer that takes it, or when what comes out is not a vector of scores.

    >>> from fedsim.models.layers import Flatten, Linear, ReLU
    >>> table = LayerTable(
    ...     input_shape=(1, 2, 2),
    ...     extractor=(Flatten("flatten"), Linear("fc1", 4, 3), ReLU("relu1")),
    ...     classifier=(Linear("fc2", 3, 2),),
    ... )
    >>> table.parameters(), table.parameters("classifier"), table.bytes("classifier")  # 4 * 3 + 3 and 3 * 2 + 2
    (23, 8, 32.0)
    >>> table.forward_flops_per_sample, table.training_flops_per_sample  # 2 * (12 + 6), and three times that
    (36.0, 108.0)
    """

    trainable: ClassVar[bool] = True

    input_shape: Shape
    """One sample, without the batch axis; images are (channels, height, width)."""
    extractor: tuple[Layer, ...] = ()
    """The layers before the classifier; empty when the classifier is the whole model."""
    classifier: tuple[Layer, ...]
    initialisation: Initialisation = "xavier_uniform"
    takes_ids: bool = False
    """Whether samples are tokens, whole numbers to be looked up, and not measured values."""

    def __post_init__(self) -> None:
        """Pass one sample's shape through all layers."""
        if not self.input_shape or min(self.input_shape) < 1:
            raise ValueError(f"input_shape={self.input_shape} must have at least one axis, each of at least 1")
        if not self.classifier:
            raise ValueError("a model needs a classifier of at least one layer")
        names = [layer.name for layer in (*self.extractor, *self.classifier)]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"layer names must differ, these are used twice: {', '.join(twice)}")
        scores = self.activation_shapes[names[-1]]
        if len(scores) != 1:
            raise ValueError(f"the last layer must give a vector of scores, it gives the shape {scores}")

    @cached_property
    def layers(self) -> dict[str, tuple[Layer, ...]]:
        """The layers by part."""
        parts = {EXTRACTOR: self.extractor, CLASSIFIER: self.classifier}
        return {part: layers for part, layers in parts.items() if layers}

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """``("extractor", "classifier")``, or ``("classifier",)`` when there is no extractor."""
        return tuple(self.layers)

    @cached_property
    def activation_shapes(self) -> dict[str, Shape]:
        """Layer name -> shape of what comes out of it for one sample, in order."""
        return {layer.name: layer.output_shape(shape) for layer, shape in self._layers_with_inputs()}

    @property
    def outputs(self) -> int:
        """The number of scores: the most classes that the model can tell apart."""
        return self.activation_shapes[self.classifier[-1].name][0]

    def parameter_shapes(self, part: str) -> dict[str, Shape]:
        """``"conv1.weight"`` -> shape of what is trained, in order; raises `UserError` when there is no such part."""
        layers = self.layers[self.checked_part(part)]
        return {f"{layer.name}.{kind}": shape for layer in layers for kind, shape in layer.parameter_shapes.items()}

    def state_shapes(self, part: str) -> dict[str, Shape]:
        """As `parameter_shapes`, with running statistics (``"bn1.running_mean"``): all that travels with *part*."""
        layers = self.layers[self.checked_part(part)]
        return {f"{layer.name}.{kind}": shape for layer in layers for kind, shape in layer.state_shapes.items()}

    def parameters(self, part: str | None = None) -> int:
        """The number of trained parameters of *part*, or of the whole model, running statistics not counted.

        Raises `UserError` when there is no such part.
        """
        counts = self._parameters_by_part
        return sum(counts.values()) if part is None else counts[self.checked_part(part)]

    @cached_property
    def _parameters_by_part(self) -> dict[str, int]:
        return {part: sum(map(prod, self.parameter_shapes(part).values())) for part in self.parts}

    def bytes(self, part: str | None = None) -> float:
        """The bytes of *part* (or of the whole model) on the wire, without headers: 4 per number of its state."""
        counts = self._state_by_part
        numbers = sum(counts.values()) if part is None else counts[self.checked_part(part)]
        return float(BYTES_PER_PARAMETER * numbers)

    def statistics_names(self, part: str) -> tuple[str, ...]:
        """Those of normalisation layers; raises `UserError` when there is no such part."""
        return tuple(name for name in self.state_shapes(part) if name not in self.parameter_shapes(part))

    def statistics_bytes(self, part: str | None = None) -> float:
        """4 for each number that is no trained parameter."""
        return self.bytes(part) - BYTES_PER_PARAMETER * self.parameters(part)

    @cached_property
    def _state_by_part(self) -> dict[str, int]:
        return {part: sum(map(prod, self.state_shapes(part).values())) for part in self.parts}

    def signed_layers(self) -> tuple[SignedLayer, ...]:
        """The layers with parameters, first to last: what two models have in common is the common start of these.

        Counted are convolutions, fully connected layers, embeddings and recurrent layers; a residual block is entered,
        its body before its shortcut; a block of layers that count as one is one. Normalisation belongs to the layer
        before it. What has no parameters is not compared, unless it is in such a block: neither activations,
        pooling and dropout, nor where a shortcut begins and ends.
        """
        signed: list[SignedLayer] = []
        for part, layers in self.layers.items():
            for name, unit in (item for layer in layers for item in layer.units()):
                states = tuple(f"{name}.{kind}" for kind in unit.state_shapes)
                if signed and isinstance(unit, ChannelNorm):
                    before = signed.pop()
                    signed.append(
                        before._replace(
                            signature=f"{before.signature} + {unit.signature}", states=before.states + states
                        )
                    )
                elif states:
                    signed.append(SignedLayer(name, unit.signature, part, states))
        return tuple(signed)

    def forward_macs(self, part: str | None = None) -> int:
        """Multiply-accumulates of one sample's forward pass through *part*, or through the whole model."""
        counts = self._macs_by_part
        return sum(counts.values()) if part is None else counts[self.checked_part(part)]

    @cached_property
    def _macs_by_part(self) -> dict[str, int]:
        by_name = {layer.name: layer.macs(shape) for layer, shape in self._layers_with_inputs()}
        return {part: sum(by_name[layer.name] for layer in layers) for part, layers in self.layers.items()}

    @property
    def forward_flops_per_sample(self) -> float:
        """FLOPs of one sample's forward pass: 2 per multiply-accumulate; biases and activations are not counted."""
        return float(FLOPS_PER_MAC * self.forward_macs())

    def part_flops(self, part: str) -> float:
        """FLOPs of one sample's forward pass through *part*: 2 per multiply-accumulate."""
        return float(FLOPS_PER_MAC * self.forward_macs(part))

    def feature_shape(self) -> Shape:
        """The shape of what the extractor makes of a sample; that of the sample itself where there is none."""
        return self.activation_shapes[self.extractor[-1].name] if self.extractor else self.input_shape

    @property
    def training_flops_per_sample(self) -> float:
        """FLOPs of one sample in one training step: 3 forward passes."""
        return FORWARDS_PER_TRAINING_STEP * self.forward_flops_per_sample

    @property
    def text(self) -> str:
        """Canonical text of input shape, initialisation, and each part's layers with their names."""
        tokens = " tokens" if self.takes_ids else ""
        facts = [f"input: {'x'.join(map(str, self.input_shape))}{tokens}", f"initialisation: {self.initialisation}"]
        facts += [f"{part}: " + " ".join(layer.text for layer in layers) for part, layers in self.layers.items()]
        return "; ".join(facts)

    def _layers_with_inputs(self) -> Iterator[tuple[Layer, Shape]]:
        shape = self.input_shape
        for layer in (*self.extractor, *self.classifier):
            yield layer, shape
            shape = layer.output_shape(shape)
