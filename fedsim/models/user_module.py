"""A model that somebody has written in PyTorch, known by its sizes like every other: they are measured.

It is made and called on two samples of zeros, once for each content of its file, its options and the shape of samples;
that is when torch is loaded. Counted are the FLOPs of products (matrices, convolutions, attention), 2 per
multiply-accumulate, as for the models that come with fedsim. Left out: comparison with other models layer by layer, and
other starts than the module's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Annotated, ClassVar, Literal, NamedTuple, Self

from annotated_types import MinLen
from pydantic import Field, JsonValue, model_validator

from fedsim.errors import Misfit, UserError
from fedsim.files import read_text_file
from fedsim.imports import ImportPath
from fedsim.models.layers import Shape
from fedsim.models.settings import ModelSettings
from fedsim.models.table import BYTES_PER_PARAMETER, FORWARDS_PER_TRAINING_STEP, ModelTable
from fedsim.settings import Count, Name, Several

__all__ = ["Head", "Recipe", "State", "TorchModule", "UserTable"]


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
        return tuple(part for part in ("extractor", "classifier") if any(state.part == part for state in self.states))

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
        return own if self.checked_part(part) == "classifier" else whole - own

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


class TorchModule(ModelSettings):
    """Your own PyTorch module, from a Python file beside the scenario or an installed package."""

    name: Literal["torch_module"] = "torch_module"
    path: ImportPath
    """The module's class, or a function that returns one: `my_net.py:make_net`, relative to the scenario, or
    `package.module:Net`. It is run as it is, with all rights: use only code that you trust."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What it is called with, by keyword: numbers, text, true or false, null, lists and mappings of these."""
    classifier: Annotated[Several[Name], MinLen(1)] | None = None
    """Modules or parameters that are the classifier, by their names in the module, such as `head` or `layers.4`; the
    rest is the extractor. Left out, the last of the module's own children that has parameters."""
    tokens: Count | None = None
    """For modules that read tokens: these are int64 from 0 to below this number; left out, samples are float32."""
    sha256: str | None = None
    """Digest of the file; left out, it is filled in (not for packages), so that a run is never repeated with another
    file unnoticed."""

    @model_validator(mode="after")
    def _know_the_file(self) -> Self:
        if self.sha256 is None and self._file is not None:
            object.__setattr__(self, "sha256", _digest(self._file))
        return self

    @property
    def _file(self) -> Path | None:
        where = self.path.rpartition(":")[0]
        return Path(where) if where.endswith(".py") else None

    @property
    def vocabulary(self) -> int | None:  # type: ignore[override]
        """*tokens*."""
        return self.tokens

    def table(self, sample_shape: Shape | None, classes: int | None) -> UserTable:
        """The module as measured on the data set's samples; torch is loaded.

        Raises `UserError` when the data set declares sizes only, when the user's code fails (with its file and line),
        and when what it makes cannot be trained, sent or averaged.
        """
        if sample_shape is None or classes is None:
            raise UserError(
                "model 'torch_module' is measured on a sample, but this data set declares sizes only; choose a data "
                "set with samples, or the model declared"
            )
        if self._file is not None and self.sha256 is not None:
            self._check_digest(_digest(self._file))  # before it is run
        from fedsim.models.user_torch import measured

        table = measured(
            Recipe(
                path=self.path,
                options=json.dumps(self.options, sort_keys=True),
                classifier=self.classifier,
                input_shape=tuple(sample_shape),
                outputs=classes,
                tokens=self.tokens,
            )
        )
        self._check_digest(table.source_sha256)
        return table

    def _check_digest(self, sha256: str) -> None:
        if self.sha256 is not None and self.sha256.lower() != sha256:
            raise Misfit(
                f"{self.path.rpartition(':')[0]} is another file than this scenario was made with: its digest is "
                f"{sha256}; bring the old one back, or leave sha256 out to use this one",
                "sha256",
            )


def _digest(file: Path) -> str:
    """As `fedsim.imports.load_function` tells it; the file is not run."""
    try:
        return hashlib.sha256(read_text_file(file, what="a Python file").encode()).hexdigest()
    except UserError as error:
        raise Misfit(str(error), "path") from error
