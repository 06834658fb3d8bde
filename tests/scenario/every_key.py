"""Every key that a scenario can have, found in the settings classes, each with a scenario around it that is right."""

from __future__ import annotations

import json
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import MinLen
from pydantic import JsonValue, ValidationError

from fedsim import registry
from fedsim.scenario.document import KeyPath
from fedsim.scenario.locate import keys_of
from fedsim.scenario.messages import explain
from fedsim.scenario.schema import Scenario
from fedsim.scenario.yaml_reader import parse_yaml
from fedsim.settings import Component, OneOf, Settings

RIGHT: dict[str, Any] = {
    "name": "plant",
    "stop": {"rounds": 2},
    "topology": {"name": "star", "devices": 4},
    "network": {"cell": {"radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6}}},
    "devices": {"classes": {"camera": {"compute": {"name": "flops", "flops_per_s": 1e9}}}},
    "model": {"name": "softmax"},
    "training": {"learning_rate": 0.1, "batch_size": 8},
    "protocols": [{"name": "fedavg", "fraction": 0.5}],
}


@dataclass(frozen=True)
class Spot:
    """A place where a value may stand."""

    path: KeyPath
    """The way there from the top of the scenario."""
    around: Callable[[Any], Any]
    """The scenario in which a value stands there."""
    what: Any
    """The annotation of the value, without null."""
    kind: str | None
    """What the registry calls what stands there."""
    may_be_null: bool
    least: int = 1
    """Items of a list."""

    @property
    def owner(self) -> str:
        return ".".join(step for step in self.path if isinstance(step, str))


def spots() -> Iterator[Spot]:
    """The places of all keys, items and values; those inside one settings class once, wherever it is used first."""
    seen: set[type[Settings]] = set()
    yield from _inside(Scenario, RIGHT, (), lambda value: value, seen)


def _spots(annotation: Any, path: KeyPath, around: Callable[[Any], Any], seen: set[type[Settings]]) -> Iterator[Spot]:
    spot = _spot(annotation, path, around)
    yield spot
    if spot.kind is not None:
        for name in registry.names(spot.kind):
            yield from _component(registry.load(spot.kind, name), path, around, seen)
    elif isinstance(spot.what, type) and issubclass(spot.what, Settings):
        yield from _component(spot.what, path, around, seen)
    elif get_origin(spot.what) is tuple:
        items = get_args(spot.what)
        count = 1 if items[-1] is Ellipsis else len(items)
        for index in range(count):
            others = sample(annotation)
            yield from _spots(
                items[index],
                (*path, index),
                lambda value, index=index, others=others: around([*others[:index], value, *others[index + 1 :]]),
                seen,
            )
    elif get_origin(spot.what) is dict:
        item = get_args(spot.what)[1]
        yield from _spots(item, (*path, "x"), lambda value: around({"x": value}), seen)


def _component(
    settings: type[Settings], path: KeyPath, around: Callable[[Any], Any], seen: set[type[Settings]]
) -> Iterator[Spot]:
    if settings not in seen:
        seen.add(settings)
        yield from _inside(settings, _mapping(settings), path, around, seen)


def _inside(
    settings: type[Settings],
    base: dict[str, Any],
    path: KeyPath,
    around: Callable[[Any], Any],
    seen: set[type[Settings]],
) -> Iterator[Spot]:
    for key, field in keys_of(settings).items():
        if key == "name" and issubclass(settings, Component):
            continue  # says which settings these are
        annotation = Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation
        yield from _spots(annotation, (*path, key), lambda value, key=key: around({**base, key: value}), seen)


def _spot(annotation: Any, path: KeyPath, around: Callable[[Any], Any]) -> Spot:
    kind, may_be_null, least = None, False, 1
    while True:
        if get_origin(annotation) is Annotated:
            annotation, *metadata = get_args(annotation)
            kind = next((item.kind for item in metadata if isinstance(item, OneOf)), kind)
            least = next((item.min_length for item in metadata if isinstance(item, MinLen)), least)
        elif get_origin(annotation) in (Union, types.UnionType):
            members = get_args(annotation)
            may_be_null = may_be_null or type(None) in members
            others = [member for member in members if member is not type(None)]
            if len(others) > 1:
                return Spot(path, around, annotation, kind, may_be_null, least)
            [annotation] = others
        else:
            return Spot(path, around, annotation, kind, may_be_null, least)


def sample(annotation: Any) -> Any:
    """A value of the right type."""
    spot = _spot(annotation, (), lambda value: value)
    what = spot.what
    if spot.kind == "radios":
        return RIGHT["network"]["cell"]["radio"]  # its keys depend on each other
    if spot.kind == "cohorts":
        return {"name": "random", "fraction": 0.5}  # so do these
    if spot.kind is not None:
        return _mapping(registry.load(spot.kind, registry.names(spot.kind)[0]))
    if isinstance(what, type) and issubclass(what, Settings):
        return _mapping(what)
    if get_origin(what) is Literal:
        return get_args(what)[0]
    if get_origin(what) is tuple:
        first, *others = get_args(what)
        if others == [...]:
            return [sample(first) for _ in range(spot.least)]
        return [sample(item) for item in (first, *others)]
    if get_origin(what) is dict:
        return {"x": sample(get_args(what)[1])}
    if isinstance(what, type) and issubclass(what, Enum):
        return next(iter(what)).value
    if what is JsonValue:
        return "anything"
    return {str: "x:x", int: 5, float: 1.0, bool: True}[what]  # which is also the name of a function in a module


def _mapping(settings: type[Settings]) -> dict[str, Any]:
    name = {"name": keys_of(settings)["name"].default} if issubclass(settings, Component) else {}
    return name | {
        key: sample(Annotated[field.annotation, *field.metadata] if field.metadata else field.annotation)
        for key, field in keys_of(settings).items()
        if field.is_required()
    }


def kinds(spot: Spot) -> set[str]:
    """The kinds of values that may stand there: text, number, truth, null, list, mapping."""
    if spot.what is JsonValue:
        return {"text", "number", "truth", "null", "list", "mapping"}
    found = {"null"} if spot.may_be_null else set()
    members = get_args(spot.what) if get_origin(spot.what) in (Union, types.UnionType) else [spot.what]
    for member in members:
        bare = _spot(member, (), lambda value: value)
        what, origin = bare.what, get_origin(bare.what)
        if bare.kind or spot.kind or origin is dict or (isinstance(what, type) and issubclass(what, Settings)):
            found.add("mapping")
        elif origin is tuple:
            found.add("list")
        elif what in (int, float):
            found.add("number")
        elif what is bool or True in get_args(what):
            found.add("truth")
        elif what is str:
            found.add("text")  # of words or an enumeration, no other text is right
    return found


def said_of(scenario: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The lines of what is said of *scenario*, written with a line for each key, and these keys in their order."""
    text = "".join(f"{key}: {json.dumps(value)}\n" for key, value in scenario.items()).replace("NaN", ".nan")
    document = parse_yaml(text, "s.yaml")
    try:
        Scenario.model_validate(document.data, context=document)
    except ValidationError as error:
        return str(explain(error, document, Scenario)).splitlines(), list(scenario)
    return [], list(scenario)
