"""Settings are what a scenario's keys become: frozen, strictly typed, and without a second schema to keep in step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from annotated_types import Ge, Gt, Interval
from pydantic import AfterValidator, AllowInfNan, BaseModel, ConfigDict, GetCoreSchemaHandler, Strict
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from fedsim import registry

__all__ = [
    "Component",
    "Count",
    "Fraction",
    "NonNegative",
    "NonNegativeInt",
    "OneOf",
    "Positive",
    "PositiveOrInfinite",
    "Probability",
    "Settings",
    "Several",
]


class Settings(BaseModel):
    """A frozen group of scenario keys. An unknown key is an error; no value is converted silently."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )


class Component(Settings):
    """Settings that stand for one registered thing; ``name`` says which. Each subclass narrows it to its own name."""

    name: str


@dataclass(frozen=True)
class OneOf:
    """Marks a field as one of the components registered under *kind*: ``Annotated[Model, OneOf("models")]``."""

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {name: handler.generate_schema(registry.load(self.kind, name)) for name in registry.names(self.kind)}
        return core_schema.tagged_union_schema(choices, discriminator="name")


def _number(value: float) -> float:
    if math.isnan(value):
        raise PydanticCustomError("nan", "Input should be a number, not NaN")
    return value


T = TypeVar("T")
Several = Annotated[tuple[T, ...], Strict(False)]
"""A YAML list, kept as a tuple; its items stay strict."""

Positive = Annotated[float, Gt(0)]
PositiveOrInfinite = Annotated[float, AllowInfNan(True), AfterValidator(_number), Gt(0)]
NonNegative = Annotated[float, Ge(0)]
Count = Annotated[int, Ge(1)]
NonNegativeInt = Annotated[int, Ge(0)]
Fraction = Annotated[float, Interval(gt=0, le=1)]
Probability = Annotated[float, Interval(ge=0, lt=1)]
