"""HFedMS's accounting (Zeng et al., *HFedMS*, IEEE TCC 2023, Eq. 19 and section IV-B): one shared serial channel.

Uploads and downloads follow each other on one channel without overlap; computation, headers and control messages are
ignored. The paper prints 2^40 bytes as "TB". Eq. 20 (layer-wise alternation) belongs to protocols that alternate.
"""

from __future__ import annotations

from typing import Literal

from fedsim.metrics.cost_models.settings import Cost, CostModelSettings, RunFacts
from fedsim.settings import Positive
from fedsim.units import bits

__all__ = ["HFedMSCost"]


class HFedMSCost(CostModelSettings):
    """HFedMS Eq. 19: every model up and down one shared serial channel, computation ignored."""

    name: Literal["hfedms"] = "hfedms"
    uplink_bps: Positive = 4.0e6
    """Rate from a client (the paper: LTE Cat M2, 4 Mbit/s)."""
    downlink_bps: Positive = 7.0e6
    """Rate to a client (the paper: 7 Mbit/s)."""

    def cost(self, facts: RunFacts) -> Cost:
        """``bytes = 2 M kappa K R`` (M in bytes; Eq. 19 counts 4-byte parameters), each way at its own rate.

        >>> fedavg = RunFacts(clients=368, cohort=0.3 * 368, rounds=490, model_bytes=4 * 6.68e6)
        >>> cost = HFedMSCost().cost(fedavg)
        >>> round((cost.uplink_bytes + cost.downlink_bytes) / 2**40, 3), round(cost.communication_s / 3600)
        (2.629, 1262)
        """
        one_way_bytes = facts.model_bytes * facts.cohort * facts.rounds
        seconds = bits(one_way_bytes) / self.uplink_bps + bits(one_way_bytes) / self.downlink_bps
        return Cost(seconds, 0.0, one_way_bytes, one_way_bytes)
