"""Which keys of a scenario `fedsim sweep` varies, and which values it gives them."""

from __future__ import annotations

from typing import Annotated

from annotated_types import MaxLen, MinLen
from pydantic import Field, JsonValue

from fedsim.errors import Misfit
from fedsim.scenario.scalars import show
from fedsim.settings import Settings, Several, key_rule

__all__ = ["MOST_POINTS", "SweepSettings"]

MOST_POINTS = 10_000
"""Each is a run with a folder of its own."""

Values = Annotated[Several[JsonValue], MinLen(1), MaxLen(MOST_POINTS)]

Row = Annotated[dict[str, JsonValue], MinLen(1)]


class SweepSettings(Settings):
    """The points of a sweep: each combination of one value for every key of `grid`, one row of `zip`, one of `list`.

    A key is a path as ``--set`` has it: ``network.cell.radio.profile``, ``protocols.fedavg.fraction``.
    """

    grid: dict[str, Values] = Field(default_factory=dict)
    """Values of each key, of which all combinations are points."""
    zip: dict[str, Values] = Field(default_factory=dict)
    """Values of several keys, all equally many: the first ones belong together, then the second ones, and so on."""
    list: Annotated[Several[Row], MaxLen(MOST_POINTS)] = ()
    """Rows of values that belong together, each with the same keys."""

    @key_rule
    def _fits(self) -> None:
        if len({len(values) for values in self.zip.values()}) > 1:
            counts = ", ".join(f"{key} has {len(values)}" for key, values in self.zip.items())
            raise Misfit(f"needs equally many values of each key ({counts})", "zip")
        for position, row in enumerate(self.list):
            if row.keys() != self.list[0].keys():
                raise Misfit(f"has the keys {show(list(row))} and list[0] {show(list(self.list[0]))}", "list", position)
        named = [*self.grid, *self.zip, *(self.list[0] if self.list else ())]
        if twice := [key for key in named if named.count(key) > 1]:
            raise Misfit(f"has the key {show(twice[0])} in two of grid, zip and list; leave it in one")
