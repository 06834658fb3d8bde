"""Channels of several carriers, by names of their own."""

from __future__ import annotations

from simpy import Environment

from fedsim.network.disciplines.fair import FairChannel
from fedsim.network.disciplines.multi_server import MultiServerChannel

__all__ = ["FairOnThree", "FairOnTwo", "SerialOnThree", "SerialOnTwo"]


class SerialOnTwo(MultiServerChannel):
    def __init__(self, env: Environment, delay_s: float = 0.0) -> None:
        super().__init__(env, delay_s, 2)


class SerialOnThree(MultiServerChannel):
    def __init__(self, env: Environment, delay_s: float = 0.0) -> None:
        super().__init__(env, delay_s, 3)


class FairOnTwo(FairChannel):
    def __init__(self, env: Environment, delay_s: float = 0.0) -> None:
        super().__init__(env, delay_s, 2)


class FairOnThree(FairChannel):
    def __init__(self, env: Environment, delay_s: float = 0.0) -> None:
        super().__init__(env, delay_s, 3)
