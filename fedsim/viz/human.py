"""Numbers as people read them: three digits and a unit that fits. 1 MB is 1e6 bytes; hours end the units of time."""

from __future__ import annotations

import math

__all__ = ["clock", "duration", "energy", "number", "scale", "size", "with_half_width"]

_SCALES: dict[str, tuple[tuple[float, float, str], ...]] = {  # quantity -> (from which value on, one unit, its name)
    "bytes": ((1e12, 1e12, "TB"), (1e9, 1e9, "GB"), (1e6, 1e6, "MB"), (1e3, 1e3, "kB"), (0, 1, "B")),
    "seconds": ((7200, 3600, "h"), (120, 60, "min"), (1, 1, "s"), (1e-3, 1e-3, "ms"), (1e-6, 1e-6, "µs"), (0, 1, "s")),
    "joules": ((1e9, 1e9, "GJ"), (1e6, 1e6, "MJ"), (1e3, 1e3, "kJ"), (0, 1, "J")),
}
_DIGITS = 3
_HUGE = 1e15
_ROUNDING = 1e-13
"""What the rounding of sums may make of a mean, as a share of it: an interval that narrow says nothing."""


def scale(quantity: str, largest: float) -> tuple[float, str]:
    """The unit for values up to *largest*, as its size and name; *quantity* is bytes, seconds or joules.

    >>> scale("bytes", 26_720_000), scale("seconds", 7200)
    ((1000000.0, 'MB'), (3600, 'h'))
    """
    known = 0.0 if math.isnan(largest) else abs(largest)
    return next((unit, name) for start, unit, name in _SCALES[quantity] if known >= start)


def number(value: float, *, digits: int = _DIGITS) -> str:
    """*value* to at least so many digits; in powers of ten below 1e-6 and from 1e15 on; a whole number as it is.

    >>> number(0.91234), number(12.345), number(1257.3), number(490.0), number(2.6292, digits=5), number(3e-9)
    ('0.912', '12.3', '1257', '490', '2.6292', '3.00e-09')
    >>> number(2.5e41), number(math.inf)
    ('2.50e+41', 'inf')
    """
    if 0 < abs(value) < 1e-6 or _HUGE <= abs(value) < math.inf:
        return f"{value:.{digits - 1}e}"
    return f"{value:.0f}" if float(value).is_integer() else f"{value:.{_decimals(value, digits)}f}"


def with_half_width(mean: float, half_width: float) -> str:
    """A mean with its interval; just the mean where there is no interval (NaN), or none wider than rounding makes it.

    >>> with_half_width(12.41, 0.3), with_half_width(0.912, 0.0004), with_half_width(490, 0)
    ('12.4 ± 0.3', '0.9120 ± 0.0004', '490')
    >>> with_half_width(127.80096, 2e-13)
    '128'
    """
    if math.isnan(half_width) or half_width <= _ROUNDING * abs(mean):
        return number(mean)
    if _HUGE <= max(abs(mean), half_width) < math.inf:
        return f"{mean:.{_DIGITS - 1}e} ± {half_width:.0e}"
    decimals = max(_decimals(mean, _DIGITS), _decimals(half_width, 1))
    return f"{mean:.{decimals}f} ± {half_width:.{decimals}f}"


def size(size_bytes: float) -> str:
    """Bytes for people.

    >>> size(26_720_000), size(999), size(2.89e12)
    ('26.7 MB', '999 B', '2.89 TB')
    """
    return _scaled("bytes", size_bytes)


def duration(seconds: float) -> str:
    """A length of time for people.

    >>> duration(44_640), duration(90), duration(0.0123), duration(0.000152), duration(0)
    ('12.4 h', '90 s', '12.3 ms', '152 µs', '0 s')
    """
    return _scaled("seconds", seconds)


def energy(joules: float) -> str:
    """Energy for people.

    >>> energy(1500)
    '1.50 kJ'
    """
    return _scaled("joules", joules)


def clock(seconds: float) -> str:
    """The reading of a clock that began at zero.

    >>> clock(200), clock(274_327), clock(12.3)
    ('0:03:20', '3 d 04:12:07', '12.3 s')
    """
    if seconds < 60:
        return duration(seconds)
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"{days} d {hour:02}:{minute:02}:{second:02}" if days else f"{hour}:{minute:02}:{second:02}"


def _scaled(quantity: str, value: float) -> str:
    unit, name = scale(quantity, value)
    return f"{number(value / unit)} {name}"


def _decimals(value: float, digits: int) -> int:
    if value == 0 or not math.isfinite(value):
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))
