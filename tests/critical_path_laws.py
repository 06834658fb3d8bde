"""What holds for the critical path of each round, and what its parts are."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedsim.kernel.trace import Trace
from fedsim.metrics.critical_path import PARTS, critical_paths
from fedsim.metrics.where_time_goes import critical_path_table


def parts_of(trace: Trace) -> list[dict[str, float]]:
    """The seconds of each part of each round, those that took time; raises unless they tile the rounds exactly."""
    pieces, rounds = critical_paths(trace), trace.rounds.array()
    for row in rounds:
        own = [piece for piece in pieces if piece.round == row["round"]]
        if row["start_s"] == row["end_s"]:
            assert not own
            continue
        assert (own[0].start_s, own[-1].end_s) == (row["start_s"], row["end_s"])
        assert all(piece.start_s < piece.end_s for piece in own)
        assert all(before.end_s == after.start_s for before, after in pairwise(own))
    table = critical_path_table(trace, pieces)
    names = [f"{part}_s" for part in PARTS]
    error_s = np.abs(table[names].sum(axis="columns") - (rounds["end_s"] - rounds["start_s"]))
    assert (error_s <= 1e-9 + 1e-12 * rounds["end_s"]).all()
    return [
        {part: seconds for part, seconds in zip(PARTS, row, strict=True) if seconds}
        for row in table[names].to_numpy().tolist()
    ]
