"""The critical path of a round is as long as the round, in any world, and nothing on it is unexplained.

Worlds are drawn: networks with losses, parts that fail and come back, deadlines, late transfers; chains of clients, and
base stations between the cloud and its clients.
"""

from __future__ import annotations

from typing import Any

from critical_path_laws import parts_of
from hypothesis import given
from hypothesis import strategies as st
from test_groups_under_stress import run, world_of, worlds
from test_stations_under_stress import with_stations
from tiers import drawn

everywhere = drawn(100)


@everywhere
@given(changes=worlds | with_stations, seed=st.integers(0, 100))
def test_in_any_world_each_round_is_explained_to_the_last_second(changes: dict[str, Any], seed: int) -> None:
    world, protocol = world_of(changes, seed)
    run(world, protocol)
    for number, parts in enumerate(parts_of(world.trace), start=1):
        assert "idle" not in parts, (number, parts)
