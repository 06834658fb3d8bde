"""Published numbers of radio links beside what fedsim works out: the points of docs/validation.csv.

Each has an ``id``, the published value with its unit and source, a tolerance in per cent, and a kind: *predicted* by
fedsim from tables, formulas and simulation; *calibrated*, where a constant was chosen so that it comes out; *identity*,
which only guards a table, a formula of the source itself, or a unit.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, cast

import numpy as np

from fedsim.experiment.simulate import simulate
from fedsim.kernel.clock import Clock
from fedsim.kernel.streams import Streams
from fedsim.learning.learner import NoLearner
from fedsim.network.disciplines.channel import Flow
from fedsim.network.disciplines.fair import FairChannel
from fedsim.radio.budget import noise_dbm
from fedsim.radio.efficiency import efficiencies
from fedsim.radio.lte.radio import Lte
from fedsim.radio.lte_m.radio import LteM
from fedsim.radio.nb_iot.radio import NbIot
from fedsim.radio.nr.radio import Nr
from fedsim.radio.nr.redcap import RedCap
from fedsim.radio.settings import RadioPath, Rates, UpDown
from fedsim.radio.snr import FromLinkBudget
from fedsim.radio.table_radio import TableRadio
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.schema import Scenario
from writers.markdown import ROOT, table

FILE = ROOT / "docs/validation.csv"
UNITS = {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "ms": 1e-3}
GOOD = {"name": "given", "uplink_db": 60.0, "downlink_db": 60.0}
DDDSU = {"slots": "DDDSU", "special_downlink_symbols": 10}


@dataclass(frozen=True)
class Point:
    """One published number."""

    id: str
    what: str
    published: float
    unit: str
    tolerance_percent: float
    kind: Literal["predicted", "calibrated", "identity"]
    source: str

    @property
    def simulated(self) -> float:
        """What fedsim works out, in the same unit."""
        return WORKED_OUT[self.id]() / UNITS.get(self.unit, 1.0)

    def deviation_percent(self, simulated: float) -> float:
        """How far *simulated* is from what is published."""
        return 100 * (simulated / self.published - 1)


@cache
def points() -> tuple[Point, ...]:
    """All of them, in the order of the file."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return tuple(
            Point(
                row["id"],
                row["what"],
                float(row["published"]),
                row["unit"],
                float(row["tolerance_percent"]),
                cast(Literal["predicted", "calibrated", "identity"], row["kind"]),
                row["source"],
            )
            for row in csv.DictReader(file)
        )


def point_table() -> str:
    """Published against simulated, as a table of Markdown."""
    rows = []
    for point in points():
        value = point.simulated
        deviation = f"{point.deviation_percent(value):+.2f} %".replace("-0.00", "+0.00")
        shown = f"{point.published:g} {point.unit}", f"{value:.6g}", deviation, f"{point.tolerance_percent:g} %"
        rows.append([point.id, point.what, *shown, point.kind, point.source])
    titles = ["point", "what", "published", "simulated", "deviation", "tolerance", "kind", "source"]
    return table(titles, rows)


# -- how each is worked out --------------------------------------------------------------------------------------------


def radio(kind: type[TableRadio], **keys: Any) -> Any:
    """A radio that nothing holds back: no block error, the best ratios."""
    return kind.model_validate({"snr": GOOD, "block_errors": "none", **keys})


def at(of: TableRadio, uplink_db: float, downlink_db: float) -> Rates:
    """The rates at these ratios."""
    [rates] = of.rates_at_all(UpDown(np.array([uplink_db]), np.array([downlink_db])))
    return rates


def best(kind: type[TableRadio], **keys: Any) -> Rates:
    """The rates of the best coverage."""
    return at(radio(kind, **keys), 60.0, 60.0)


def nb_iot(**keys: Any) -> Rates:
    """NB-IoT in the best coverage, not on an anchor, without random access."""
    return best(NbIot, **{"anchor": False, "random_access": [], **keys})


def nb1_at(coupling_loss_db: float) -> Rates:
    """NB1 on an anchor of 43 dBm, a device of 23 dBm, with a tenth of block errors."""
    down_db, up_db = (power - coupling_loss_db - noise_dbm(180e3) - figure for power, figure in ((43, 5), (23, 3)))
    return at(radio(NbIot, block_errors="mean", random_access=[]), up_db, down_db)


def lte_m_at_164_db() -> Rates:
    """With TR 45.820's powers and noise figures: 46 dBm over 50 resource blocks, of which 6; 23 dBm."""
    noise = noise_dbm(1.08e6)
    return at(radio(LteM, block_errors="mean"), 23.0 - 164.0 - noise - 3.0, 36.8 - 164.0 - noise - 5.0)


def lte_first_block_s(scheduling_request_ms: int) -> float:
    """From a request to the end of the first block, a subframe later."""
    waits_s: float = radio(Lte, bandwidth_mhz=20.0, scheduling_request_ms=scheduling_request_ms).access_delays_s.uplink
    return waits_s + 1e-3


def nr(**keys: Any) -> Rates:
    """5G on 100 MHz, in the best coverage."""
    return best(Nr, **{"bandwidth_mhz": 100.0, **keys})


def budget(path_loss: dict[str, Any], **keys: Any) -> FromLinkBudget:
    """A link of NB-IoT."""
    return FromLinkBudget.model_validate(
        {
            "carrier_hz": 0.9e9,
            "device_power_dbm": 23.0,
            "station_power_dbm": 43.0,
            "device_noise_figure_db": 5.0,
            "station_noise_figure_db": 3.0,
            "path_loss": path_loss,
            **keys,
        }
    )


def snr_db(direction: str, bandwidth_hz: float, **keys: Any) -> float:
    """At 164 dB of coupling loss."""
    path = RadioPath("device", 0, 0, 0, 100.0, Streams(1))
    link = budget({"name": "given", "loss_db": 164.0}, **keys)
    return float(getattr(link.medians_db([path], UpDown(bandwidth_hz, bandwidth_hz)), direction)[0])


def rural_loss_db() -> float:
    """By RMa, in view of the station."""
    country = {"name": "rma", "in_view": "always", "building_height_m": 7.0}
    link = budget(country, carrier_hz=3.5e9, station_height_m=30.0, device_height_m=1.5)
    path = RadioPath("device", 0, 0, 0, 1414.2, Streams(1))
    [power] = link.powers([path], UpDown(1e6, 1e6))
    assert power is not None
    return power.uplink.path_loss_db


def upload_s(cell: dict[str, Any], size_bytes: float, devices: int = 1) -> float:
    """When the last of *devices* has sent so many bytes, simulated: all begin at once."""
    scenario = Scenario.model_validate(
        {
            "name": "upload",
            "learn": False,
            "stop": {"rounds": 1},
            "topology": {"name": "star", "devices": devices},
            "network": {"cell": cell, "link": {"rate_bps": math.inf}},
            "devices": {"classes": {"device": {"compute": {"name": "flops", "flops_per_s": math.inf}}}},
            "data": {"name": "declared", "samples_per_client": 1},
            "model": {"name": "declared", "parameters": round(size_bytes / 4), "training_flops_per_sample": 1.0},
            "training": {"learning_rate": 0.1, "batch_size": 1},
            "protocols": [{"name": "fedavg", "fraction": 1.0}],
        }
    )
    protocol = scenario.protocols[0]
    world = build_world(scenario, protocol, gather_materials(scenario, 1), lambda *_: NoLearner())
    simulate(world, protocol, scenario.stop)
    hops = world.trace.hops.array()
    up = hops[hops["access"] & hops["uplink"]]
    return float(up["end_s"].max() - up["start_s"].min())


def plain(uplink_bps: float) -> dict[str, Any]:
    """A cell of one rate."""
    return {"radio": {"name": "fixed", "uplink_bps": uplink_bps, "downlink_bps": math.inf}}


def nb1_cell() -> dict[str, Any]:
    """A carrier of NB1 in the best coverage."""
    keys = {"name": "nb_iot", "anchor": False, "random_access": [], "block_errors": "none", "snr": GOOD}
    return {"radio": keys}


def mean_sojourn(load: float, services: int = 150_000) -> float:
    """Of messages that come at random and need a second each, on a channel that all share equally."""
    rng = np.random.default_rng(24)
    clock, gone_s = Clock(), []
    channel = FairChannel(clock)

    class Message(Flow):
        def arrived(self) -> None:
            gone_s.append(clock.now - self.offered_s)

    def source() -> Any:
        for wait_s in rng.exponential(1 / load, services).tolist():
            yield clock.timeout(wait_s)
            message = Message()
            message.offer(1.0, clock.now)
            channel.start(message)

    clock.process(source())
    clock.run()
    return float(np.mean(gone_s))


WORKED_OUT: dict[str, Callable[[], float]] = {
    "V1": lambda: nb_iot().downlink_format.block_bits / 3e-3,
    "V2": lambda: nb_iot(deployment="in_band").downlink_bps,
    "V4": lambda: nb_iot().uplink_bps,
    "V5": lambda: nb_iot(category="nb2", anchor=True).downlink_bps,
    "V7": lambda: nb_iot(category="nb2", harq_processes=2).uplink_bps,
    "N1": lambda: nb_iot().uplink_bps / nb_iot().uplink_share,
    "N2": lambda: nb_iot(category="nb2", harq_processes=2).downlink_bps,
    "V25": lambda: nb1_at(164.0).uplink_bps,
    "V15": lambda: snr_db("downlink", 180e3),
    "V16": lambda: snr_db("downlink", 180e3, station_power_dbm=35.0),
    "V17": lambda: snr_db("uplink", 15e3),
    "V19": lambda: snr_db("uplink", 180e3),
    "V14": rural_loss_db,
    "V20": lambda: efficiencies()["lte_36942"].downlink.bps_per_hz(22.05),
    "V22": lambda: upload_s(plain(20e3), 2e6),
    "V23": lambda: upload_s(plain(350e3), 2e6),
    "V24": lambda: mean_sojourn(0.8),
    "V28": lambda: upload_s(nb1_cell(), 1e6, devices=10),
    "V8": lambda: best(LteM).downlink_bps,
    "V9": lambda: best(LteM).uplink_bps,
    "V10": lambda: best(LteM, harq_processes=10, bundling=True).downlink_bps,
    "V11": lambda: best(LteM, category="m2", duplex="full").uplink_bps,
    "T1": lambda: best(LteM, duplex="full").uplink_bps,
    "T2": lambda: best(LteM, duplex="full", release=13).downlink_bps,
    "T3": lambda: best(LteM, category="m2", duplex="full", harq_processes=10).downlink_bps,
    "T4": lambda: lte_m_at_164_db().downlink_bps,
    "T5": lambda: lte_m_at_164_db().uplink_bps,
    "T6": lambda: best(Lte, bandwidth_mhz=20.0).downlink_bps,
    "T7": lambda: best(Lte, bandwidth_mhz=20.0).uplink_bps,
    "T8": lambda: best(Lte, bandwidth_mhz=20.0, category="cat5").downlink_bps,
    "T9": lambda: best(Lte, bandwidth_mhz=20.0, category="cat5").uplink_bps,
    "T10": lambda: best(Lte, bandwidth_mhz=20.0, category="cat1").downlink_bps,
    "T11": lambda: best(Lte, bandwidth_mhz=20.0, category="cat1").uplink_bps,
    "T12": lambda: lte_first_block_s(5),
    "T13": lambda: lte_first_block_s(1),
    "V12": lambda: nr(downlink_layers=4).downlink_bps,
    "T14": lambda: nr(tdd=DDDSU).downlink_bps,
    "T15": lambda: nr(tdd=DDDSU).uplink_bps,
    "T16": lambda: nr(bandwidth_mhz=20.0, downlink_layers=4).downlink_bps,
    "T17": lambda: (
        nr(bandwidth_mhz=400.0, subcarrier_khz=120, frequency_range="fr2", downlink_mcs_table=1).downlink_bps
    ),
    "V26": lambda: best(RedCap).downlink_bps,
    "T18": lambda: best(RedCap, antennas=2, downlink_mcs_table=2).downlink_bps,
    "T19": lambda: best(RedCap, release=18).downlink_bps,
}
