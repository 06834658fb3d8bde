"""People write ``10 Mbps`` where a key wants bit/s: what the number is in the key's own unit.

A key's unit is the end of its name (``_bps``, ``_s``, ``_bytes`` ...). Decimal prefixes are powers of 1000 (1 MB is
1e6 bytes), KiB, MiB and GiB powers of 1024. Left out: compound values such as ``1h 30min``.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from fedsim.scenario.scalars import number

__all__ = ["in_unit_of", "unit_of"]

_PREFIXES = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


def _scaled(**units: float) -> dict[str, float]:
    return {prefix + unit: factor * scale for unit, factor in units.items() for prefix, scale in _PREFIXES.items()}


_RATES = _scaled(bps=1, b=1, bit=1, bits=1, B=8, Bps=8, Byte=8, bytes=8)
_RATES = {name if name.endswith("ps") else f"{name}/s": factor for name, factor in _RATES.items()}
_BINARY = {"KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40}
_SIZES = {**_scaled(B=1, byte=1, bytes=1), **_BINARY, **_scaled(bit=0.125, bits=0.125, b=0.125)}
_TIMES = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0), "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9,
    **dict.fromkeys(("min", "mins", "minute", "minutes"), 60.0), **dict.fromkeys(("h", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}  # fmt: skip
_LENGTHS = {"m": 1.0, "meter": 1.0, "metre": 1.0, "mm": 1e-3, "cm": 1e-2, "km": 1e3}
_ENERGIES = {"J": 1.0, "mJ": 1e-3, "uJ": 1e-6, "kJ": 1e3, "MJ": 1e6, "Wh": 3600.0, "mWh": 3.6, "kWh": 3.6e6}
_POWERS = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "kW": 1e3, "MW": 1e6}
_WORK = {unit + end: factor for unit, factor in _scaled(FLOP=1, FLOPs=1).items() for end in ("/s", "ps")}
_WORK |= _scaled(FLOPS=1)

_UNITS: dict[str, tuple[str, dict[str, float]]] = {  # end of the key -> its unit, and what a user may write instead
    "flops_per_s": ("FLOP/s", _WORK),
    "_bps": ("bit/s", _RATES),
    "_bytes": ("bytes", _SIZES),
    "_hz": ("Hz", _scaled(Hz=1)),
    "_dbm": ("dBm", {"dBm": 1.0}),
    "_db": ("dB", {"dB": 1.0}),
    "_j": ("J", _ENERGIES),
    "_w": ("W", _POWERS),
    "_m": ("m", _LENGTHS),
    "_s": ("s", _TIMES),
}


def unit_of(key: str) -> str | None:
    """The unit at the end of *key*, or None.

    >>> unit_of("uplink_bps"), unit_of("samples_per_s"), unit_of("rounds")
    ('bit/s', None, None)
    """
    found = _unit(key)
    return found[0] if found else None


def _unit(key: str) -> tuple[str, dict[str, float]] | None:
    end = next((end for end in _UNITS if key.endswith(end)), None)
    return None if end is None or (key.endswith("_per_s") and end == "_s") else _UNITS[end]


def in_unit_of(key: str, text: str) -> float | None:
    """The number that *text* says, in the unit of *key*, or None where that cannot be derived.

    >>> in_unit_of("uplink_bps", "10 Mbps"), in_unit_of("size_bytes", "1GB"), in_unit_of("delay_s", "250us")
    (10000000.0, 1000000000.0, 0.00025)
    """
    parts = re.fullmatch(r"\s*([-+.0-9eE]{1,40}?)\s*([A-Za-zµμ/]{1,20})\s*", text)
    unit = _unit(key)
    if not parts or not unit or number(parts[1]) is None:
        return None
    spellings = unit[1]
    folded = {name.casefold(): factor for name, factor in reversed(spellings.items())}  # the first of a spelling wins
    factor = spellings.get(parts[2], folded.get(parts[2].casefold()))
    value = math.inf if factor is None else float(Decimal(parts[1]) * Decimal(repr(factor)))
    return value if math.isfinite(value) else None
