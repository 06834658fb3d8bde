"""A cost model turns a few facts of a run into seconds and bytes, by a published formula."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

from fedsim.settings import Component

__all__ = ["Cost", "CostModelSettings", "RunFacts"]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a formula may use."""

    clients: int
    """K"""
    cohort: float
    """Clients per round before rounding: kappa K."""
    rounds: int
    """R"""
    model_bytes: float
    """Bytes of the whole model."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a formula yields."""

    communication_s: float
    computation_s: float
    uplink_bytes: float
    downlink_bytes: float


class CostModelSettings(Component):
    """What is registered under "cost_models"."""

    @abstractmethod
    def cost(self, facts: RunFacts) -> Cost:
        """Seconds and bytes of a whole run of parallel rounds (FedAvg and the like)."""
