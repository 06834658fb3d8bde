"""What a station reports to the cloud at the end of a round: its model, as its codec writes it."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from fedsim.kernel.trip import Lost
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.learner import Model
from fedsim.learning.operations.code import Code
from fedsim.learning.operations.train import BYTES, state_as
from fedsim.learning.rules.update import Update
from fedsim.protocols.site import Site
from fedsim.protocols.world import World

__all__ = ["StationReports"]


class StationReports:
    """The reports of all stations; it remembers what their codec keeps from one to the next."""

    def __init__(self, world: World, codec: Codec) -> None:
        self._world, self._codec = world, codec
        self._kept: dict[int, Model] = {}

    def sent(self, site: Site, station: int, round_number: int, samples: int | None) -> Generator[Any, Any, Update]:
        """The model of *site*, which is *station*, goes up, and counts as made from so many *samples*.

        Raises `Lost` when there is nothing to report, or when it is lost.
        """
        if not site.has_trained:
            raise Lost("no client of the station has trained")
        measured = None
        if not self._codec.exact and site.state["model"]:
            made = self._coded(site, station, round_number)
            site.state = {**site.state, "model": {part: made[part] for part in site.state["model"]}}
            measured = made[BYTES] if self._codec.reads_learning else None
        return (yield from site.report_up(up_bytes=self._codec.size(site.table), measured=measured, samples=samples))

    def _coded(self, site: Site, station: int, round_number: int) -> Model:
        """The model as it is read from the wire, with the bytes of its change."""
        model, table, names = site.state["model"], site.table, self._codec.remembers
        statistics = tuple(f"{part}.{name}" for part in model for name in table.statistics_names(part))
        made = self._world.learner.apply(
            Code(self._codec, statistics),
            {"base": site.base, "model": model, "state": self._kept.get(station, {})},
            [*model, BYTES, *map(state_as, names)],
            round_number=round_number,
            stream=self._world.streams(f"codec/station/{station}", 0, round_number),
        )
        self._kept[station] = kept = {name: made[state_as(name)] for name in names}
        self._world.learner.compute_soon(kept)  # or a station that is always late would keep all its models alive
        return made
