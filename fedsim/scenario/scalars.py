"""What a plain word means in YAML 1.2 (core schema, YAML 1.2.2 section 10.3.2), and how a value is shown in a message.

Unlike YAML 1.1, ``on`` and ``yes`` are text, ``012`` is twelve, ``0o17`` is octal, and ``1_000`` and dates are text.
Stricter than the standard: a decimal number too large or too small for a float, and a whole number of more than 300
digits, are refused instead of becoming infinite or zero. What cannot be printed is shown by its escape: no value can
forge a line of a message, or tell a terminal what to do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from itertools import islice

__all__ = ["kind_of", "message_line", "number", "printable", "scalar", "show", "show_text"]

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{sign + word: value for sign, value in (("", math.inf), ("+", math.inf), ("-", -math.inf))
       for word in (".inf", ".Inf", ".INF")},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}  # fmt: skip
_WHOLE = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NUMERIC = frozenset("0123456789+-.")  # how numbers begin
_BASES = {"0o": 8, "0x": 16}
_LONGEST_WHOLE = 300  # digits; still fits a float
_MOST_BITS = 1_000
_LONGEST_SHOWN = 60
_LONGEST_LINE = 1_500


def scalar(text: str) -> bool | int | float | str | None:
    """The value of the plain (unquoted) scalar *text*.

    Raises `ValueError` when the number is too large to be kept.

    >>> [scalar(text) for text in ("on", "~", "012", "0x1F", "1e6", ".5", "-.inf", "1_000", "2024-01-31")]
    ['on', None, 12, 31, 1000000.0, 0.5, -inf, '1_000', '2024-01-31']
    """
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC:
        return text
    if _WHOLE.fullmatch(text):
        if len(text) > _LONGEST_WHOLE:
            raise ValueError(f"{show_text(text)} has {len(text)} digits; a whole number has at most {_LONGEST_WHOLE}")
        base = _BASES.get(text[:2])
        whole = int(text[2:], base) if base else int(text)
        if whole.bit_length() > _MOST_BITS:
            raise ValueError(f"{show_text(text)} is too large for a number")
        return whole
    if _DECIMAL.fullmatch(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError(f"{show_text(text)} is too large for a number; write .inf for unlimited")
        if value == 0 and re.search("[1-9]", re.split("[eE]", text)[0]):
            raise ValueError(f"{show_text(text)} is too small for a number; write 0 for nothing")
        return value
    return text


def number(text: str) -> int | float | None:
    """The number that *text* is when it stands in a scenario without quotes, or None."""
    try:
        value = scalar(text)
    except ValueError:
        return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def kind_of(value: object) -> str:
    """What a value is, in words that a message can use.

    >>> [kind_of(value) for value in (None, True, 1.5, "x", [], {})]
    ['empty', 'a truth value', 'a number', 'text', 'a list', 'a mapping']
    """
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return "a truth value"
    kinds: tuple[tuple[type | tuple[type, ...], str], ...] = (
        ((int, float), "a number"), (str, "text"), ((list, tuple), "a list"), (dict, "a mapping"),
    )  # fmt: skip
    return next((name for types, name in kinds if isinstance(value, types)), f"a {type(value).__name__}")


def printable(text: str) -> str:
    r"""*text* with an escape for every character that cannot be printed, or that would not be seen.

    >>> printable("two\nlines, and a \u202etrick")
    'two\\nlines, and a \\u202etrick'
    """
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def show_text(text: str) -> str:
    """*text* without quotes, on one line and shortened to what fits a message."""
    return printable(_shortened(text))


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 3] + "..."


def message_line(text: str) -> str:
    """*text* as one line of a message; of a very long one, the middle is left out."""
    half = _LONGEST_LINE // 2
    return printable(text if len(text) <= _LONGEST_LINE else f"{text[:half]} ... {text[-half:]}")


def show(value: object) -> str:
    """A value as a scenario would write it, on one line and shortened to what fits a message.

    >>> show({"name": "fedavg", "mu": float("inf"), "clients": None, "on": [True]})
    "{name: 'fedavg', mu: .inf, clients: null, on: [true]}"
    """
    return _shortened(_flow(value, levels=3)) if not isinstance(value, str) else repr(_shortened(value))


def _flow(value: object, levels: int) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        inside = (f"{show_text(str(key))}: {_flow(item, levels - 1)}" for key, item in value.items())
        return "{" + _some(inside if levels else iter(["..."])) + "}"
    if isinstance(value, list | tuple):
        return "[" + _some((_flow(item, levels - 1) for item in value) if levels else iter(["..."])) + "]"
    return repr(_shortened(value)) if isinstance(value, str) else show_text(str(value))


def _some(items: Iterator[str]) -> str:
    return ", ".join(islice(items, _LONGEST_SHOWN // 2))  # what is longer is shortened anyway
