"""The whole model in every round, as in FedAvg (McMahan et al., AISTATS 2017)."""

from __future__ import annotations

from typing import Literal

from fedsim.learning.codecs.codec import Codec
from fedsim.learning.objectives.objective import Objective
from fedsim.protocols.block import BlockRound
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.site import Site
from fedsim.protocols.task import Task

__all__ = ["Whole"]


class Whole(Exchange):
    """The whole model is sent, trained and sent back in every round."""

    name: Literal["whole"] = "whole"

    def is_whole(self, interval: int) -> bool:
        """It is."""
        return True

    def task(self, site: Site, at: BlockRound, objective: Objective, codec: Codec) -> Task:
        """Train all of it."""
        return site.task(at.number, objective, codec)
