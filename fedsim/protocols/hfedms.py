"""HFedMS (Zeng et al., *HFedMS: heterogeneous federated learning with memorable data semantics in industrial
metaverse*, IEEE Transactions on Cloud Computing 2023, algorithm 1).

HFedMS-S, for data that stay as they are, is STP with ICG: FedGSP under another name. HFedMS-D, for streams, adds LASP
and SCC; with T = 1 it has no calibration round and is HFedMS-S.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from fedsim.protocols.combination import picked
from fedsim.protocols.exchanges.exchange import Exchange
from fedsim.protocols.exchanges.lasp import LASP
from fedsim.protocols.exchanges.scc import SCC
from fedsim.protocols.grouped_training import DynamicGroups
from fedsim.settings import Count

__all__ = ["HFedMSD", "HFedMSS"]


class HFedMSS(DynamicGroups):
    """HFedMS for static data: STP with ICG, which is FedGSP."""

    name: Literal["hfedms_s"] = "hfedms_s"


class HFedMSD(DynamicGroups):
    """HFedMS for streams: STP with ICG, LASP and SCC."""

    name: Literal["hfedms_d"] = "hfedms_d"
    interval: Count = 5
    """T: rounds in a block, the first of which synchronises the whole model, and the others its classifier."""
    calibration_epochs: Count = 1
    """Passes over a calibration set in a round; the authors' public code makes 3 where the paper has 1."""
    scc: SCC | None = Field(default_factory=SCC)
    """Semantic compression and compensation, by its keys; `null` to calibrate on new samples only."""

    def exchanged(self) -> Exchange:
        """The whole model and its classifier in turns."""
        return picked(LASP, self)
