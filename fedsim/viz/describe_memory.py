"""Tables of the memory that a run takes: what is kept beside the model, and all of it at its peak."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd

from fedsim.viz.human import size
from fedsim.viz.tables import DescriptionTable

__all__ = ["memory_tables"]


def memory_tables(protocols: Sequence[dict[str, Any]]) -> Iterator[DescriptionTable]:
    """Of the protocols that keep something, and of those whose peak is known; either table may be empty."""
    kept = [_kept_row(one) for one in protocols if one["kept"]]
    yield DescriptionTable(pd.DataFrame(kept), ("protocol", "memory beside the model"))
    peaks = [_peak_row(one) for one in protocols if one["peak_memory"]]
    yield DescriptionTable(pd.DataFrame(peaks), ("protocol", "memory of the run"))


def _kept_row(protocol: dict[str, Any]) -> dict[str, str]:
    kept = protocol["kept"]
    return {
        "protocol": protocol["protocol"],
        "memory beside the model": size(kept["total"]),
        "clients": f"{kept['clients']:,} x {size(kept['client'])}" if kept["client"] else "",
        "server": size(kept["server"]) if kept["server"] else "",
        "updates of a round": f"{kept['updates']:,} x {size(kept['update'])}" if kept["update"] else "",
    }


def _peak_row(protocol: dict[str, Any]) -> dict[str, str]:
    peaks = {int(peak["workers"]): peak["total"] for peak in protocol["peak_memory"]}
    return {
        "protocol": protocol["protocol"],
        "memory of the run": "at the peak, about",
        **{f"{workers} worker{'s' if workers > 1 else ''}": size(total) for workers, total in peaks.items()},
    }
