"""A cost model turns a few facts of a run into seconds and bytes, by a published formula."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from fedsim.errors import Misfit
from fedsim.settings import Component

__all__ = ["Cost", "CostModelSettings", "RunFacts", "StationFacts"]


@dataclass(frozen=True, slots=True)
class StationFacts:
    """Rounds in which base stations synchronise their devices again and again."""

    stations: int
    """M: base stations that have devices."""
    devices: int
    """L: devices of a station that take part in an iteration; those of the largest, where stations differ."""
    iterations: int
    """T: internal synchronisations in a round."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a formula may use."""

    clients: int
    """K"""
    cohort: float
    """Clients per round before rounding: kappa K."""
    groups: tuple[int, ...]
    """f(r): groups in each round, those that are not sampled included; in FedAvg every client is one."""
    model_bytes: float
    """Bytes of the whole model."""
    interval: int = 1
    """T: of so many rounds the first sends the whole model and scatters the mean; 1: all send the whole model."""
    calibration_bytes: float = 0.0
    """Bytes of what the other rounds send."""
    at_stations: StationFacts | None = None
    """What goes on at base stations; None: clients answer to the cloud."""

    @property
    def rounds(self) -> int:
        """R."""
        return len(self.groups)

    @property
    def full_rounds(self) -> int:
        """F_r = ceil(R / T): rounds that send the whole model.

        >>> RunFacts(clients=368, cohort=110.4, groups=(10,) * 34, model_bytes=1.0, interval=5).full_rounds
        7
        """
        return math.ceil(self.rounds / self.interval)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a formula yields."""

    communication_s: float
    computation_s: float
    uplink_bytes: float
    downlink_bytes: float


class CostModelSettings(Component):
    """What is registered under "cost_models"."""

    knows_calibration: ClassVar[bool] = False
    """Whether it has a closed form for rounds that send a part of the model."""

    def check_stations(self, protocol: str) -> None:
        """Raise `Misfit` when it cannot tell what *protocol* costs, whose devices answer to base stations."""
        raise Misfit(
            f"{self.name!r} has no closed form for iterations at base stations, which protocol {protocol!r} has; "
            "choose formula 'fedgs', or leave this protocol or the formula out"
        )

    @abstractmethod
    def cost(self, facts: RunFacts) -> Cost:
        """Seconds and bytes of a whole run."""
