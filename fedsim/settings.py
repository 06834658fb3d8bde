"""Settings are what a scenario's keys become: frozen, strictly typed, and without a second schema to keep in step.

Numbers have bounds that no plant comes near, so that arithmetic needs none: products and quotients of a dozen of them
are still finite, and what counts things fits the whole numbers of a table. Left out: bounds that make sense for one key
only; these stand where the key does.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial, wraps
from typing import Annotated, Any, Literal, TypeVar

from annotated_types import Gt, Interval, Le, MaxLen, MinLen
from pydantic import (
    AfterValidator,
    AllowInfNan,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    Strict,
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, PydanticKnownError, SchemaValidator, core_schema

from fedsim import outside, registry
from fedsim.docstrings import attribute_docstrings
from fedsim.imports import is_own

__all__ = [
    "LARGEST",
    "LONGEST_NAME",
    "MOST",
    "MOST_DEVICES",
    "SMALLEST",
    "AtLeastOne",
    "Component",
    "Count",
    "DeviceCount",
    "Fraction",
    "Name",
    "NonNegative",
    "NonNegativeInt",
    "OneOf",
    "Positive",
    "PositiveOrInfinite",
    "Probability",
    "Real",
    "Settings",
    "Several",
    "descriptions",
    "early_stopping_validator",
    "key_rule",
]

SMALLEST = 1e-18
"""The smallest positive number, *atto* of any unit."""
LARGEST = 1e18
"""The largest finite number, *exa* of any unit: 1e18 s are twice the age of the universe."""
MOST = 10**9
"""Of anything that is counted: two counts multiply to a whole number of 64 bits."""
MOST_DEVICES = 10**6
"""Devices in a network: what the densest plans ask for, on a square kilometre (ITU-R M.2410, section 4.8)."""
LONGEST_NAME = 200
"""Characters in the name of a thing."""
_COLLECTIONS = ("list", "tuple", "set", "frozenset", "dict")  # of pydantic's schemas


def key_rule(rule: Callable[[Any], None]) -> Any:
    """Mark a method of settings that raises `Misfit`, or `ValueError`, where keys do not fit each other."""

    @wraps(rule)
    def checked(settings: Any) -> Any:
        rule(settings)
        return settings

    return model_validator(mode="after")(checked)


class Settings(BaseModel):
    """A frozen group of scenario keys. An unknown key is an error; no value is converted silently."""

    model_config = ConfigDict(
        defer_build=True,  # a scenario has all of them in one validator; few are asked alone
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        ser_json_inf_nan="constants",  # what is infinite stays so when it is written out
    )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        """Adds what the source says of each key. To read all sources takes longer than to check a scenario."""
        made = handler(schema)
        properties = handler.resolve_ref_schema(made).get("properties", {})
        for key, text in descriptions(cls).items():
            if key in properties:
                properties[key].setdefault("description", text)
        return made


def descriptions(settings: type[BaseModel]) -> dict[str, str]:
    """What the source of *settings*, or of what it inherits from, says of each key: the text below it."""
    said: dict[str, str] = {}
    for name, field in settings.model_fields.items():
        home = next((kind for kind in settings.__mro__ if name in inspect.get_annotations(kind)), settings)
        text = attribute_docstrings(home.__module__).get(f"{home.__qualname__}.{name}")
        if text is not None:
            said[field.alias or name] = text
    return said


class Component(Settings):
    """Settings that stand for one registered thing; ``name`` says which. Each subclass narrows it to its own name.

    One that does not come with fedsim, and does not do so, is called as its class is.
    """

    name: str

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        """Give a class from outside a name, unless it has one that it did not inherit."""
        if "name" not in cls.model_fields:
            raise TypeError(f"{cls.__name__}.name must be a field: name: Literal['mine'] = 'mine'")
        inherited = [kind.model_fields["name"].default for kind in cls.__mro__[1:] if issubclass(kind, Component)]
        if not is_own(cls) and cls.model_fields["name"].default in inherited:
            own_name: Any = Literal[cls.__name__]
            cls.model_fields["name"] = FieldInfo(annotation=own_name, default=cls.__name__)
            cls.model_rebuild(force=True, raise_errors=False)


@dataclass(frozen=True)
class Chosen:
    """Checks the keys of the component *name* of *kind*, whose class is loaded when a scenario has it, and no earlier.

    There are more than a hundred, and a scenario has a dozen of them.
    """

    kind: str
    name: str
    stops_early: bool = False
    """Whether the check of a list or mapping ends at its first wrong item."""

    def __call__(self, value: Any, info: ValidationInfo) -> Any:
        """The component, made of the mapping *value*. Raises pydantic's `ValidationError`."""
        settings = registry.load(self.kind, self.name)
        validator = early_stopping_validator(settings) if self.stops_early else settings.__pydantic_validator__
        return validator.validate_python(value, context=info.context)


@dataclass(frozen=True)
class OneOf:
    """Marks a field as one of the components registered under *kind*: ``Annotated[Model, OneOf("models")]``.

    Others are derived from the field's type: see `fedsim.outside`.
    """

    kind: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        def one_of(value: Any, ours: ValidatorFunctionWrapHandler, info: ValidationInfo) -> Any:
            made = outside.made(self.kind, source, value, info)
            return ours(value) if made is None else made

        choices: dict[Any, CoreSchema] = {
            name: core_schema.with_info_plain_validator_function(Chosen(self.kind, name))
            for name in registry.names(self.kind)
        }
        return core_schema.with_info_wrap_validator_function(
            one_of,
            core_schema.tagged_union_schema(choices, discriminator="name"),
            serialization=core_schema.wrap_serializer_function_ser_schema(
                partial(outside.written, self.kind), info_arg=True, schema=core_schema.any_schema()
            ),
        )

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        path = {"type": "string", "description": "A class of your own: my_file.py:Class, or package.module:Class."}
        own = {"type": "object", "properties": {"path": path, "name": False}, "required": ["path"]}
        offered = [name for name in registry.all_names(self.kind) if name not in registry.names(self.kind)]
        named = {"type": "object", "properties": {"name": {"enum": offered}}, "required": ["name"]}
        ours = {name: registry.load(self.kind, name) for name in registry.names(self.kind)}
        choices = {name: settings_schema(settings) for name, settings in ours.items()}
        tagged = core_schema.tagged_union_schema(choices, discriminator="name")
        return {"anyOf": [handler(tagged), own, *([named] if offered else [])]}


def settings_schema(settings: type[BaseModel]) -> CoreSchema:
    """How pydantic checks *settings*."""
    settings.model_rebuild()
    return settings.__pydantic_core_schema__


@cache
def early_stopping_validator(settings: type[BaseModel]) -> SchemaValidator:
    """The same check as that of *settings* itself, which ends at the first wrong item of a list or mapping."""
    schema = _stopping_early(settings_schema(settings))
    try:
        return SchemaValidator(schema, _use_prebuilt=False)  # of the settings inside, which do not end so early
    except TypeError:  # an older pydantic has no such option
        return SchemaValidator(schema)


def _stopping_early(schema: Any) -> Any:
    if isinstance(schema, Chosen):
        return replace(schema, stops_early=True)
    if isinstance(schema, dict):
        inner = {key: _stopping_early(part) for key, part in schema.items()}
        return {**inner, "fail_fast": True} if schema.get("type") in _COLLECTIONS else inner
    return type(schema)(map(_stopping_early, schema)) if isinstance(schema, list | tuple) else schema


def _not_nan(value: object) -> object:
    if isinstance(value, float) and math.isnan(value):
        raise PydanticCustomError("nan", "Input should be a number, not NaN")
    return value


def _not_tiny(value: float) -> float:
    if value < SMALLEST:
        raise PydanticKnownError("greater_than_equal", {"ge": SMALLEST})
    return value


def _not_huge_but_finite(value: float) -> float:
    if LARGEST < value < math.inf:
        raise PydanticCustomError("huge_but_finite", "Input should be at most {le}, or infinite", {"le": LARGEST})
    return value


T = TypeVar("T")
Several = Annotated[tuple[T, ...], Strict(False)]
"""A YAML list, kept as a tuple; its items stay strict."""

Real = Annotated[float, Interval(ge=-LARGEST, le=LARGEST)]
"""Any number up to `LARGEST`, and down to its negative."""
Positive = Annotated[float, Gt(0), Le(LARGEST), AfterValidator(_not_tiny)]
"""From `SMALLEST` to `LARGEST`."""
AtLeastOne = Annotated[float, Interval(ge=1, le=LARGEST)]
"""A number from 1 to `LARGEST`, not necessarily whole."""
PositiveOrInfinite = Annotated[
    float,
    AllowInfNan(True),
    Gt(0),
    BeforeValidator(_not_nan),
    AfterValidator(_not_tiny),
    AfterValidator(_not_huge_but_finite),
]
"""From `SMALLEST` to `LARGEST`, or ``.inf`` for no limit."""
NonNegative = Annotated[float, Interval(ge=0, le=LARGEST)]
"""From 0 to `LARGEST`."""
Fraction = Annotated[float, Interval(gt=0, le=1), AfterValidator(_not_tiny)]
"""A share of something, of all of it at most, and from `SMALLEST` on."""
Probability = Annotated[float, Interval(ge=0, lt=1)]
"""A chance that is no certainty."""
Count = Annotated[int, Interval(ge=1, le=MOST)]
"""How many, at least one and at most `MOST`."""
NonNegativeInt = Annotated[int, Interval(ge=0, le=MOST)]
"""How many, at most `MOST`."""
DeviceCount = Annotated[int, Interval(ge=1, le=MOST_DEVICES)]
"""How many devices, or nodes, or whatever a network is built of piece by piece: at most `MOST_DEVICES`."""
Name = Annotated[str, MinLen(1), MaxLen(LONGEST_NAME)]
"""The name of a thing, of at most `LONGEST_NAME` characters."""
