"""FedGSP's cost model (Zeng et al., *Heterogeneous federated learning via grouped sequential-to-parallel training*,
DASFAA 2022, Eqs. 15 to 17). FedAvg is f(r) = K, every client a group of its own.

Ignores the traffic between groups and the cloud, control messages, and any overlap of computing with sending.
"""

from __future__ import annotations

import math
from typing import Literal

from fedsim.metrics.cost_models.settings import Cost, CostModelSettings, RunFacts
from fedsim.settings import Count, Positive
from fedsim.units import bits

__all__ = ["FedGSPCost"]


class FedGSPCost(CostModelSettings):
    """FedGSP Eqs. 15 to 17: serial transfers; in each round, a group's trainings in sequence and an aggregation."""

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

    def computation_s(self, facts: RunFacts) -> float:
        """Eq. 15: over all rounds, the trainings of one group, and the aggregation of kappa f(r) models.

        T_comp(R) = sum_r [N_calc / T_F n e K / min(K, f(r)) + N_aggr / T_F (kappa f(r) - 1)].

        >>> fedavg = RunFacts(clients=368, cohort=0.3 * 368, groups=(368,) * 470, model_bytes=25.2e6)
        >>> round(FedGSPCost().computation_s(fedavg), 3)
        18.556
        """
        training_s = self.training_flops_per_sample / self.flops_per_s * self.samples * self.epochs
        aggregation_s = self.aggregation_flops / self.flops_per_s
        sampling_rate = facts.cohort / facts.clients
        return math.fsum(
            training_s * facts.clients / min(facts.clients, groups) + aggregation_s * (sampling_rate * groups - 1)
            for groups in facts.groups
        )

    def communication_s(self, facts: RunFacts) -> float:
        """Eq. 16: every model into the cloud and out of it, one after the other.

        T_comm(R) = 8 kappa K M R (1 / R_in + 1 / R_out).

        >>> fedavg = RunFacts(clients=368, cohort=0.3 * 368, groups=(368,) * 470, model_bytes=25.2e6)
        >>> round(FedGSPCost().communication_s(fedavg), 2)
        36898.13
        """
        one_way_bytes = facts.cohort * facts.model_bytes * facts.rounds
        return bits(one_way_bytes) * (1 / self.inbound_bps + 1 / self.outbound_bps)

    def cost(self, facts: RunFacts) -> Cost:
        """Eqs. 15 and 16, and Eq. 17, the traffic: D_comm = 2 kappa K M R.

        FedGSP's 34 rounds with the logarithmic growth:

        >>> groups = tuple(10 * math.floor(2 * math.log(number) + 1) for number in range(1, 35))
        >>> cost = FedGSPCost().cost(RunFacts(clients=368, cohort=0.3 * 368, groups=groups, model_bytes=25.2e6))
        >>> round(cost.communication_s, 2), round(cost.computation_s, 3)
        (2669.23, 10.19)
        >>> round((cost.uplink_bytes + cost.downlink_bytes) / 1e12, 4)
        0.1892
        """
        one_way_bytes = facts.cohort * facts.model_bytes * facts.rounds
        return Cost(
            communication_s=self.communication_s(facts),
            computation_s=self.computation_s(facts),
            uplink_bytes=one_way_bytes,
            downlink_bytes=one_way_bytes,
        )
