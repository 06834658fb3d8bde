"""FedGS's time model (Li et al., *Data heterogeneity-robust federated learning via group client selection in
industrial IoT*, IEEE Internet of Things Journal 2022, doi 10.1109/JIOT.2022.3161943, section VI-B, Eqs. 19 to 25).

Devices share their base station's bandwidth B_e, and whoever talks to the cloud (the paper's top server) shares B_c.
A bandwidth carries B log2(1 + SNR) bit/s, the SNR being the receiver's, so that n models of s bits need
n s / (B log2(1 + SNR)) seconds, however it is shared out. Ignores headers, control messages and distance, the air that
FedAvg's models cross between devices and stations, and any overlap of one phase with the next. Ignores what devices
report of their classes, too, by which FedGS selects them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fedsim.errors import Misfit
from fedsim.metrics.cost_models.settings import Cost, CostModelSettings, RunFacts, StationFacts
from fedsim.radio.efficiency import shannon_bps_per_hz
from fedsim.radio.snr import Decibels
from fedsim.settings import Count, NonNegative, Positive
from fedsim.units import bits

__all__ = ["FedGSCost", "TwoTiers"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoTiers:
    """A cloud, base stations below it and devices around each, and how long one round takes on them.

    FedGS synchronises the devices of each station after every iteration, and the stations once in a round; FedAvg
    synchronises all devices with the cloud once in a round. Both compute T iterations in it.

    >>> net = TwoTiers(
    ...     stations=10,
    ...     devices=10,
    ...     model_bytes=4 * 6_603_710,
    ...     edge_uplink_hz=100e6,
    ...     edge_downlink_hz=100e6,
    ...     cloud_uplink_hz=10e6,
    ...     cloud_downlink_hz=10e6,
    ...     cloud_snr_db=0.0,
    ...     station_snr_db=0.0,
    ...     device_snr_db=0.0,
    ... )
    >>> round(net.internal_s, 3), round(net.external_s, 3), round(net.fedavg_communication_s, 3)
    (42.264, 422.637, 4226.374)
    >>> round(net.fedgs_s(50), 3), round(net.fedavg_s(50), 3), round(net.most_iterations(), 9)
    (2535.825, 4226.374, 90.0)
    """

    stations: int
    """M: base stations, one in each factory."""
    devices: int
    """L: devices of each station that take part."""
    model_bytes: float
    """s, in bytes."""
    edge_uplink_hz: float
    """B_e^u: from the devices of one station to it."""
    edge_downlink_hz: float
    """B_e^d: from a station to its devices."""
    cloud_uplink_hz: float
    """B_c^u: to the cloud."""
    cloud_downlink_hz: float
    """B_c^d: from the cloud."""
    cloud_snr_db: float
    """At the cloud."""
    station_snr_db: float
    """At the base stations."""
    device_snr_db: float
    """At the devices."""

    @property
    def internal_s(self) -> float:
        """Eq. 19, an internal synchronisation, in all cells at once.

        t_int = L s / (B_e^u log2(1 + SNR_BS)) + L s / (B_e^d log2(1 + SNR_dev)).
        """
        up_s = _seconds(self.devices, self.model_bytes, self.edge_uplink_hz, self.station_snr_db)
        return up_s + _seconds(self.devices, self.model_bytes, self.edge_downlink_hz, self.device_snr_db)

    @property
    def external_s(self) -> float:
        """Eq. 20, an external synchronisation.

        t_ext = M s / (B_c^u log2(1 + SNR_top)) + M s / (B_c^d log2(1 + SNR_BS)).
        """
        up_s = _seconds(self.stations, self.model_bytes, self.cloud_uplink_hz, self.cloud_snr_db)
        return up_s + _seconds(self.stations, self.model_bytes, self.cloud_downlink_hz, self.station_snr_db)

    def fedgs_s(self, iterations: int, *, update_s: float = 0.0, selection_s: float = 0.0) -> float:
        """Eq. 21, a round of FedGS: t_FedGS = T (t_sel + t_loc + t_int) + t_ext.

        *update_s* is t_loc, one local update, and *selection_s* is t_sel, one choice of the devices. Eq. 24 is this
        with equal bandwidths and SNRs in both directions.
        """
        return iterations * (selection_s + update_s + self.internal_s) + self.external_s

    @property
    def fedavg_communication_s(self) -> float:
        """Eq. 22, the synchronisation of all devices with the cloud.

        t_avg,comm = L M s / (B_c^u log2(1 + SNR_top)) + L M s / (B_c^d log2(1 + SNR_dev)).
        """
        clients = self.devices * self.stations
        up_s = _seconds(clients, self.model_bytes, self.cloud_uplink_hz, self.cloud_snr_db)
        return up_s + _seconds(clients, self.model_bytes, self.cloud_downlink_hz, self.device_snr_db)

    def fedavg_s(self, iterations: int, *, update_s: float = 0.0) -> float:
        """Eq. 23, a round of FedAvg: t_FedAvg = T t_loc + t_avg,comm.

        Eq. 25 is this with equal bandwidths and SNRs in both directions.
        """
        return iterations * update_s + self.fedavg_communication_s

    def most_iterations(self, *, selection_s: float = 0.0) -> float:
        """The T up to which a round of FedGS takes no longer than one of FedAvg; below 1 where it always does.

        (t_avg,comm - t_ext) / (t_sel + t_int). With equal bandwidths and SNRs in both directions (Assumption 2) and
        t_sel = 0 that is Proposition 4: T <= (B_e / B_c) M (L - 1) / L.
        """
        return (self.fedavg_communication_s - self.external_s) / (selection_s + self.internal_s)


class FedGSCost(CostModelSettings):
    """FedGS Eqs. 21 to 23: models share one bandwidth to the cloud, and those of FedGS one in each cell, too.

    A protocol with single steps at base stations costs what Eq. 21 says, any other one what Eqs. 22 and 23 say of
    FedAvg. The reports by which FedGS selects devices are not in its formula, and simulated ones take time and bytes:
    only ``fedgs_random``, which sends none, can take exactly as long. The paper gives neither bandwidths nor
    signal-to-noise ratios, and says that a 5G edge is 10 to 100 times as fast.
    """

    name: Literal["fedgs"] = "fedgs"
    uplink_hz: Positive
    """B_c^u: bandwidth to the cloud, shared by the devices of a round, or by the stations."""
    downlink_hz: Positive
    """B_c^d: bandwidth from the cloud."""
    cloud_snr_db: Decibels
    """Signal-to-noise ratio at the cloud, the paper's top server."""
    device_snr_db: Decibels
    """Signal-to-noise ratio at the devices."""
    edge_uplink_hz: Positive | None = None
    """B_e^u: bandwidth from the devices of one station to it. This and the next two are needed for FedGS, not for
    FedAvg."""
    edge_downlink_hz: Positive | None = None
    """B_e^d: bandwidth from a station to its devices."""
    station_snr_db: Decibels | None = None
    """Signal-to-noise ratio at the base stations."""
    iterations: Count = 50
    """T of FedAvg: local updates in a round. FedGS has its own: the iterations of its protocol."""
    update_s: NonNegative
    """t_loc: seconds of one local update."""
    selection_s: NonNegative = 0.0
    """t_sel: seconds in which a station selects devices for an iteration. The paper measures 0.015, and neglects it."""

    def check_stations(self, protocol: str) -> None:
        """It needs a cell's bandwidths, and the ratio at its station."""
        keys = ("edge_uplink_hz", "edge_downlink_hz", "station_snr_db")
        if lacking := [key for key in keys if getattr(self, key) is None]:
            problem = f"Eq. 21 has the bandwidths of a cell, and protocol {protocol!r} needs it"
            raise Misfit(f"{problem}; give {', '.join(lacking)}")

    def cost(self, facts: RunFacts) -> Cost:
        """Over all rounds, Eq. 22 (communication) and T t_loc of Eq. 23 (computation); L M is the cohort.

        With iterations at base stations, T t_int + t_ext of Eq. 21, and T (t_sel + t_loc). Bytes are those on the air.

        >>> facts = RunFacts(clients=100, cohort=100, groups=(100,), model_bytes=4 * 6_603_710)
        >>> model = FedGSCost(uplink_hz=10e6, downlink_hz=10e6, cloud_snr_db=0.0, device_snr_db=0.0, update_s=0.032)
        >>> cost = model.cost(facts)
        >>> round(cost.communication_s, 4), round(cost.computation_s, 4)
        (4226.3744, 1.6)

        FedGS with T = 50 and a tenfold bandwidth in the cells: 50 x 42.2637 s + 422.6374 s, and 50 x 0.032 s. On the
        air are 50 x 100 models of 26,414,840 bytes each way.

        >>> stations = StationFacts(stations=10, devices=10, iterations=50)
        >>> facts = RunFacts(clients=350, cohort=350, groups=(350,), model_bytes=4 * 6_603_710, at_stations=stations)
        >>> cells = {"edge_uplink_hz": 100e6, "edge_downlink_hz": 100e6, "station_snr_db": 0.0}
        >>> cost = model.model_copy(update=cells).cost(facts)
        >>> round(cost.communication_s, 4), round(cost.computation_s, 4), cost.uplink_bytes == 5000 * 26_414_840
        (2535.8246, 1.6, True)
        """
        if facts.at_stations is not None:
            return self._at_stations(facts, facts.at_stations)
        up_s = _seconds(facts.cohort, facts.model_bytes, self.uplink_hz, self.cloud_snr_db)
        down_s = _seconds(facts.cohort, facts.model_bytes, self.downlink_hz, self.device_snr_db)
        one_way_bytes = facts.cohort * facts.model_bytes * facts.rounds
        return Cost(
            communication_s=facts.rounds * (up_s + down_s),
            computation_s=facts.rounds * self.iterations * self.update_s,
            uplink_bytes=one_way_bytes,
            downlink_bytes=one_way_bytes,
        )

    def _at_stations(self, facts: RunFacts, here: StationFacts) -> Cost:
        """Eq. 21 in all rounds."""
        assert self.edge_uplink_hz is not None and self.edge_downlink_hz is not None and self.station_snr_db is not None
        net = TwoTiers(
            stations=here.stations,
            devices=here.devices,
            model_bytes=facts.model_bytes,
            edge_uplink_hz=self.edge_uplink_hz,
            edge_downlink_hz=self.edge_downlink_hz,
            cloud_uplink_hz=self.uplink_hz,
            cloud_downlink_hz=self.downlink_hz,
            cloud_snr_db=self.cloud_snr_db,
            station_snr_db=self.station_snr_db,
            device_snr_db=self.device_snr_db,
        )
        one_way_bytes = facts.rounds * here.iterations * here.devices * here.stations * facts.model_bytes
        return Cost(
            communication_s=facts.rounds * net.fedgs_s(here.iterations),
            computation_s=facts.rounds * here.iterations * (self.selection_s + self.update_s),
            uplink_bytes=one_way_bytes,
            downlink_bytes=one_way_bytes,
        )


def _seconds(models: float, model_bytes: float, bandwidth_hz: float, snr_db: float) -> float:
    """What so many models need on a bandwidth that they share."""
    return models * bits(model_bytes) / (bandwidth_hz * shannon_bps_per_hz(snr_db))
