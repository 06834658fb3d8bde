"""What tables and figures call the keys that a sweep varies."""

from __future__ import annotations

from collections.abc import Sequence

from fedsim.scenario.overrides import segments_of

__all__ = ["column_of", "short_keys"]

TAKEN = ("accounting", "newcomers", "seeds")
"""Keys of a scenario that are also columns of results, or of what is printed."""


def column_of(key: str) -> str:
    """The column of a key in tables; results have columns of their own.

    >>> column_of("training.epochs"), column_of("seeds")
    ('training.epochs', 'seeds (varied)')
    """
    return f"{key} (varied)" if key in TAKEN else key


def short_keys(keys: Sequence[str]) -> list[str]:
    """Of each key its last two segments, or as many as tell it apart from all others: what tables and figures show.

    >>> short_keys(("network.cell.radio.profile", "protocols.0.a.mu", "protocols.1.a.mu", "seeds"))
    ['radio.profile', '0.a.mu', '1.a.mu', 'seeds (varied)']
    """
    spelt = [segments_of(key) for key in keys]

    def short(segments: list[str]) -> str:
        for count in range(2, len(segments)):
            if sum(other[-count:] == segments[-count:] for other in spelt) == 1:
                return ".".join(segments[-count:])
        return ".".join(segments)

    return [column_of(short(segments)) for segments in spelt]
