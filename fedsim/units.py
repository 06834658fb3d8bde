"""Conversions have one home: everything inside fedsim is SI and linear (seconds, bytes, bit/s, joules, metres).

1 Mbps is 1e6 bit/s and 1 MB is 1e6 bytes; TiB exists only because some papers print it.
"""

from __future__ import annotations

__all__ = ["BITS_PER_BYTE", "HOUR_S", "TIB_BYTES", "bits", "si"]

BITS_PER_BYTE = 8
HOUR_S = 3600.0
TIB_BYTES = 2.0**40


def bits(size_bytes: float) -> float:
    """Bits in *size_bytes* bytes.

    >>> bits(1_000)
    8000
    """
    return BITS_PER_BYTE * size_bytes


def si(value: float, unit: str) -> str:
    """*value* with a decimal prefix and three or four digits, as tables show it.

    >>> si(26_720_000, "B"), si(999.0, "B"), si(0, "B")
    ('26.72 MB', '999 B', '0 B')
    """
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"
