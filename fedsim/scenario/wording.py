"""The sentence for each kind of error that pydantic can find in a scenario, without its place."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from pydantic_core import ErrorDetails

from fedsim import registry
from fedsim.errors import Misfit, UserError
from fedsim.scenario.document import KeyPath, dotted
from fedsim.scenario.locate import Spot
from fedsim.scenario.name_hints import LONGEST_WORD, fixed_part_hint, hand, nearest_key
from fedsim.scenario.scalars import kind_of, number, show
from fedsim.scenario.unit_hints import in_unit_of, unit_of

__all__ = ["WRONG_TYPE", "Sentence", "blamed", "sentence", "wrong_type"]

WRONG_TYPE: dict[str, str] = {  # pydantic's error type -> what is needed instead
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "none_required": "null",
    "literal_error": "",  # one of the words in its ctx
    "enum": "",
}

_RULES = {  # pydantic's error type -> the rule, filled from its ctx
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "string_too_short": "must have a length of at least {min_length}",
    "string_too_long": "must have a length of at most {max_length}",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have a length of at least {min_length}",
    "too_long": "must have a length of at most {max_length}",
    "huge_but_finite": "must be at most {le}, or .inf for no limit",
}

_ITEMS = re.compile(r"[A-Za-z0-9_.]+( *, *[A-Za-z0-9_.]+)*")
_TRUTHS = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_IN_YAML = {"True": "true", "False": "false"}
_INFINITIES = {"inf", "infinity", "infinite", "unlimited"}


class Sentence(NamedTuple):
    """What is wrong, and the path of the value or key that it is about; of a *missing* key, that of its mapping."""

    path: KeyPath
    text: str
    missing: str | None = None
    way: str = ""
    """What is added, for one missing key or for several of one mapping."""


def sentence(details: ErrorDetails, spot: Spot) -> Sentence:
    """The sentence for one error of pydantic."""
    path, value, context = spot.path, details["input"], details.get("ctx", {})
    match details["type"]:
        case "extra_forbidden":
            return Sentence(path, f"unknown key{nearest_key(spot)}")
        case "missing" | "too_long" if spot.items is not None and isinstance(value, list | tuple):
            items = "1 item" if len(value) == 1 else f"{len(value)} items"
            return Sentence(path, f"{show(value)} has {items}, and {spot.items} are needed")
        case "missing":
            key = str(path[-1])
            return Sentence(path[:-1], f"needs the key {key!r}", missing=key, way=_way_of_missing(path[:-1]))
        case "union_tag_invalid" | "union_tag_not_found":
            return _tag(details, spot)
        case "finite_number" | "nan":
            return Sentence(path, f"{show(value)} {'is not a number' if _is_nan(value) else 'must be finite'}")
        case "value_error" | "assertion_error":
            return blamed(context.get("error", details["msg"]), path)
        case wrong if wrong in WRONG_TYPE:
            return wrong_type([details], spot)
        case known if known in _RULES:
            numbers = {name: _short(item) for name, item in context.items()}
            rule = _RULES[known].format(**numbers) + _percent_hint(value, context)
        case _:
            rule = re.sub(r"^(Input|Value) should ", "must ", details["msg"])
    return Sentence(path, f"the key {str(path[-1])!r} {rule}" if spot.is_key and path else f"{show(value)} {rule}")


def blamed(error: UserError | ValueError | str, path: KeyPath) -> Sentence:
    """The sentence for what settings at *path* found wrong with themselves, or with a key of theirs (a `Misfit`)."""
    text = " ".join(str(error).split())
    if not isinstance(error, Misfit) or not error.key:
        return Sentence(path, text)
    text = text.removeprefix(f"{dotted(error.key)}: ").removeprefix(f"{error.key[-1]}=")  # the path says it already
    return Sentence((*path, *error.key), text)


def _way_of_missing(path: KeyPath) -> str:
    """The way out where only those keys of a protocol's training are written that differ from the scenario's."""
    is_training = path[:1] == ("protocols",) and path[2:] == ("training",)
    return "; a protocol's training replaces the scenario's: write all its keys" if is_training else ""


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _percent_hint(value: object, context: Mapping[str, Any]) -> str:
    """The way out where a share of 1 at most was given in percent; what is 2 or less was not."""
    if not isinstance(value, int | float) or not 2 < value <= 100:
        return ""
    fits = context.get("le") == 1 or (context.get("lt") == 1 and value < 100)
    return f"; did you mean {value / 100:g}?" if fits else ""


def _short(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def _tag(details: ErrorDetails, spot: Spot) -> Sentence:
    context, value = details.get("ctx", {}), details["input"]
    key = str(context.get("discriminator", "'name'")).strip("'")
    known = registry.all_names(spot.kind) if spot.kind else _quoted(str(context.get("expected_tags", "")))
    listed = f" (known: {', '.join(known) or 'none'})"
    tag = value.get(key) if isinstance(value, dict) else None
    if details["type"] == "union_tag_not_found" and (not isinstance(value, dict) or key not in value):
        return Sentence(spot.path, f"needs the key {key!r}{listed}", missing=key)
    thing = _singular(spot.kind) if spot.kind else "choice"
    if not isinstance(tag, str):
        return Sentence((*spot.path, key), f"{show(tag)} is {kind_of(tag)}; the {thing}'s {key} is needed{listed}")
    near = registry.hint(spot.kind, tag[:LONGEST_WORD], known) if spot.kind else hand(tag, known)
    return Sentence((*spot.path, key), f"no {thing} is called {show(tag)}{near}{listed}")


def _singular(kind: str) -> str:
    ending = {"ies": "y", "sses": "ss"}
    for plural, singular in ending.items():
        if kind.endswith(plural):
            return (kind.removesuffix(plural) + singular).replace("_", " ")
    return kind.removesuffix("s").replace("_", " ")


def _quoted(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"'([^']*)'", text))


def wrong_type(errors: Sequence[ErrorDetails], spot: Spot) -> Sentence:
    """The sentence for a value that is none of the kinds which *errors*, one per branch of a union, ask for."""
    value = errors[0]["input"]
    needs = list(dict.fromkeys(WRONG_TYPE[details["type"]] or _word(details) for details in errors))
    if needs == ["a list"] and spot.items is not None:
        needs = [f"a list of {spot.items} items"]
    literals = [details["ctx"]["expected"] for details in errors if not WRONG_TYPE[details["type"]]]
    near = hand(value, _quoted(" ".join(literals))) if isinstance(value, str) else ""
    if isinstance(value, str) and len(literals) == len(errors):
        return Sentence(spot.path, f"{show(value)} is not {' or '.join(needs)}{near or fixed_part_hint(value, spot)}")
    kind = kind_of(value)
    if isinstance(value, float) and "a whole number" in needs and "a number" not in needs:
        kind = "not whole" if not value.is_integer() else "written with a point or an exponent"
    if spot.kind and "a mapping" in needs:
        hint = _component_hint(value, registry.all_names(spot.kind))
    elif needs == ["a mapping"] and spot.keys and len(errors) == 1 and value is not None:
        hint = f" (keys: {', '.join(spot.keys)})"
    else:
        hint = _text_hint(value, needs, spot) if isinstance(value, str) else _hint(value, needs, spot)
    if hint.startswith("; write the number"):
        return Sentence(spot.path, f"{show(value)} is {kind}{hint}")
    return Sentence(spot.path, f"{show(value)} is {kind}; {' or '.join(needs)} is needed{hint}{near}")


def _word(details: ErrorDetails) -> str:
    """The words of a literal, as they are written in a scenario."""
    expected: str = details["ctx"]["expected"]
    return _IN_YAML.get(expected, expected)


def _component_hint(value: object, names: Sequence[str]) -> str:
    if isinstance(value, str) and value in names:
        return f": write {{name: {value}}}"
    return f", such as {{name: {names[0]}}} (known: {', '.join(names)})" if names else ""


def _text_hint(text: str, needs: Sequence[str], spot: Spot) -> str:
    """The way out where text stands instead of something else."""
    if needs == ["a list"]:
        return f": write [{text}]" if len(text) <= LONGEST_WORD and _ITEMS.fullmatch(text) else ""
    if "true or false" in needs and text.lower() in (*_TRUTHS, "true", "false"):
        return f": write {_TRUTHS.get(text.lower(), text.lower())}"
    if not {"a number", "a whole number"} & set(needs):
        return ""
    whole = "a number" not in needs
    plain = number(text.strip())
    if plain is not None and isinstance(plain, int if whole else int | float):
        return " (remove the quotes)"
    if hint := _separator_hint(text, whole):
        return hint
    if text.strip().lower().lstrip("+-") in _INFINITIES:
        return ": write .inf" if not whole else ""
    return _unit_hint(text, whole, spot)


def _separator_hint(text: str, whole: bool) -> str:
    """Thousands that are set apart, and decimals after a comma."""
    decimal = text.replace(",", ".") if not whole and re.fullmatch(r"[-+]?[0-9]{1,20},[0-9]{1,20}", text) else ""
    if re.fullmatch(r"[-+]?[1-9][0-9]{0,2}([_,. '])[0-9]{3}(\1[0-9]{3}){0,8}", text):
        either = f", or {decimal} if the comma is a decimal one" if decimal else ""
        return f": write {re.sub('[^-0-9]', '', text)}{either}"
    return f": write {decimal}, with a point" if decimal else ""


def _unit_hint(text: str, whole: bool, spot: Spot) -> str:
    key = next((step for step in reversed(spot.path) if isinstance(step, str)), "")
    unit, value = unit_of(key), in_unit_of(key, text)
    percent = re.fullmatch(r"\s*([0-9.]{1,20})\s*%\s*", text)
    if percent and not whole and number(percent[1]) is not None:
        return f": write {float(percent[1]) / 100!r}"
    if value is None or (whole and not value.is_integer()):
        return f", in {unit}" if unit else ""
    return f"; write the number in {unit}: {int(value) if whole else value}"


def _hint(value: object, needs: Sequence[str], spot: Spot) -> str:
    """The way out where something else stands instead of what is needed."""
    if value is None:
        return " (leave the key out for its default)" if spot.has_default else ""
    if "a list" in needs and not isinstance(value, list):
        return " (start each item with '- ')" if isinstance(value, dict) else f": write [{show(value)}]"
    if needs == ["text"] and isinstance(value, bool | int | float):
        return " (put it into quotes)"
    if needs == ["a whole number"] and isinstance(value, float) and value.is_integer():
        return f": write {int(value)}"
    return ""
