"""FedGSP's cost model (Zeng et al., *Heterogeneous federated learning via grouped sequential-to-parallel training*,
DASFAA 2022, Eqs. 15 to 17), for FedAvg: f(r) = K, every client a group of its own.

Ignores the traffic between groups and the cloud, control messages, and any overlap of computing with sending.
"""

from __future__ import annotations

from typing import Literal

from fedsim.metrics.cost_models.settings import Cost, CostModelSettings, RunFacts
from fedsim.settings import Count, Positive
from fedsim.units import bits

__all__ = ["FedGSPCost"]


class FedGSPCost(CostModelSettings):
    """FedGSP Eqs. 15 to 17 with f(r) = K: serial transfers, one training and an aggregation in each round."""

    name: Literal["fedgsp"] = "fedgsp"
    inbound_bps: Positive = 567.0e6
    """R_in: rate into the cloud."""
    outbound_bps: Positive = 567.0e6
    """R_out: rate out of the cloud."""
    flops_per_s: Positive = 567.0e9
    """T_F: operations per second, of a device and of the cloud."""
    training_flops_per_sample: Positive = 96.0e6
    """N_calc: operations to train on one sample."""
    aggregation_flops: Positive = 6.3e6
    """N_aggr: operations to add one model to the aggregate."""
    samples: Count = 226
    """n: samples of a client in a round."""
    epochs: Count = 1
    """e: passes over them."""

    def cost(self, facts: RunFacts) -> Cost:
        """Eq. 15 (computation), Eq. 16 (communication) and Eq. 17 (traffic) over all rounds.

        >>> fedavg = RunFacts(clients=368, cohort=0.3 * 368, rounds=470, model_bytes=25.2e6)
        >>> cost = FedGSPCost().cost(fedavg)
        >>> round(cost.communication_s, 1), round(cost.computation_s, 2)
        (36898.1, 18.56)
        >>> round((cost.uplink_bytes + cost.downlink_bytes) / 2**40, 3)
        2.378
        """
        training_s = self.training_flops_per_sample / self.flops_per_s * self.samples * self.epochs
        aggregation_s = self.aggregation_flops / self.flops_per_s * (facts.cohort - 1)
        one_way_bytes = facts.cohort * facts.model_bytes * facts.rounds
        return Cost(
            communication_s=bits(one_way_bytes) * (1 / self.inbound_bps + 1 / self.outbound_bps),
            computation_s=facts.rounds * (training_s + aggregation_s),
            uplink_bytes=one_way_bytes,
            downlink_bytes=one_way_bytes,
        )
