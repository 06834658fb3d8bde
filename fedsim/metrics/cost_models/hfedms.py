"""HFedMS's accounting (Zeng et al., *HFedMS*, IEEE TCC 2023, Eqs. 19 and 20, section IV-B): one shared serial channel.

Uploads and downloads follow each other on one channel without overlap. Ignores computation, headers, and the reports
that clients are grouped by. The paper counts parameters of 4 bytes, and prints 2^40 bytes as "TB".
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.metrics.cost_models.settings import Cost, CostModelSettings, RunFacts
from fedsim.settings import Positive
from fedsim.units import bits

__all__ = ["HFedMSCost", "alternating_bytes", "whole_model_bytes"]


def whole_model_bytes(facts: RunFacts) -> tuple[float, float]:
    """Bytes up and down by Eq. 19, when every round sends the whole model: 2 kappa K M R together.

    The paper prints 0.172 for HFedMS-S and 2.629 for FedAvg; how many groups there are does not matter.

    >>> static = RunFacts(clients=368, cohort=0.3 * 368, groups=(10,) * 32, model_bytes=4 * 6.68e6)
    >>> fedavg = RunFacts(clients=368, cohort=0.3 * 368, groups=(368,) * 490, model_bytes=4 * 6.68e6)
    >>> [round(sum(whole_model_bytes(facts)) / 2**40, 4) for facts in (static, fedavg)]
    [0.1717, 2.6292]
    """
    one_way_bytes = facts.cohort * facts.model_bytes * facts.rounds
    return one_way_bytes, one_way_bytes


def alternating_bytes(facts: RunFacts) -> tuple[float, float]:
    """Bytes up and down by Eq. 20, when one of T rounds sends the whole model: kappa K (3 M F_r + 2 Mc (R - F_r)).

    In each of the F_r full rounds a client is sent the model, sends it, and is sent the mean: up M, down 2 M. In the
    others the part of Mc bytes goes down and up. With T = 1 there is nothing to scatter, and Eq. 19 holds, not this.

    >>> facts = RunFacts(368, 0.3 * 368, (10,) * 34, model_bytes=4 * 6.68e6, interval=5, calibration_bytes=4 * 6.3e3)
    >>> up, down = alternating_bytes(facts)
    >>> round((up + down) / 2**40, 5), round(down / up, 3)
    (0.05648, 1.996)
    """
    full_bytes = facts.model_bytes * facts.full_rounds
    part_bytes = facts.calibration_bytes * (facts.rounds - facts.full_rounds)
    return facts.cohort * (full_bytes + part_bytes), facts.cohort * (2 * full_bytes + part_bytes)


class HFedMSCost(CostModelSettings):
    """HFedMS Eqs. 19 and 20: every model up and down one shared serial channel, computation ignored."""

    knows_calibration: ClassVar[bool] = True

    name: Literal["hfedms"] = "hfedms"
    uplink_bps: Positive = 4.0e6
    """Rate from a client (the paper: LTE Cat M2, 4 Mbit/s)."""
    downlink_bps: Positive = 7.0e6
    """Rate to a client (the paper: 7 Mbit/s)."""

    def cost(self, facts: RunFacts) -> Cost:
        """Eq. 20 when rounds alternate (T > 1), else Eq. 19; each way at its own rate, one after the other.

        >>> facts = RunFacts(368, 0.3 * 368, (10,) * 34, 4 * 6.68e6, interval=5, calibration_bytes=4 * 6.3e3)
        >>> round(HFedMSCost().cost(facts).communication_s / 3600, 2)
        24.65
        """
        uplink_bytes, downlink_bytes = (alternating_bytes if facts.interval > 1 else whole_model_bytes)(facts)
        seconds = bits(uplink_bytes) / self.uplink_bps + bits(downlink_bytes) / self.downlink_bps
        return Cost(seconds, 0.0, uplink_bytes, downlink_bytes)
