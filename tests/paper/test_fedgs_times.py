"""FedGS's Eqs. 19 to 25 and Proposition 4 (Li et al., IEEE Internet of Things Journal 2022, section VI-B), simulated.

The network: M base stations with L devices each, and the cloud behind a gateway. The paper lets all that goes to the
cloud share one bandwidth B_c, whatever station it comes from, so that is one wire, between gateway and cloud, with the
rate B_c log2(1 + SNR); from a station to the gateway it takes no time. A wire has one rate for both directions and all
receivers, and Eqs. 20 and 22 have three (to the cloud, to stations, to devices): there is a gateway for each.

In the paper's terms: s = 8 * model_bytes, L = devices, M = stations, T = iterations.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from simpy import Event
from small_worlds import scenario
from tiers import drawn

from fedsim.errors import UserError
from fedsim.experiment.run import run
from fedsim.kernel.clock import Clock
from fedsim.kernel.gather import gather
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.metrics.cost_models.fedgs import FedGSCost, TwoTiers
from fedsim.metrics.cost_models.settings import RunFacts, StationFacts
from fedsim.models.fedgs_cnn import FedgsCnn
from fedsim.network.hop import Hop
from fedsim.network.network import Network
from fedsim.network.wires import Wires
from fedsim.radio.efficiency import shannon_bps_per_hz
from fedsim.scenario.load import load

SCENARIO = Path(__file__).parents[2] / "scenarios" / "paper" / "fedgs_times.yaml"
Work = Generator[Event, Any, None]


def equal_bandwidths(edge_over_cloud: float = 10.0) -> TwoTiers:
    """The paper's M = L = 10 and its CNN, under Assumption 2: both directions alike. At 10 dB, B_c = 10 MHz."""
    return TwoTiers(
        stations=10,
        devices=10,
        model_bytes=FedgsCnn().table(None, None).bytes(),
        edge_uplink_hz=edge_over_cloud * 10e6,
        edge_downlink_hz=edge_over_cloud * 10e6,
        cloud_uplink_hz=10e6,
        cloud_downlink_hz=10e6,
        cloud_snr_db=10.0,
        station_snr_db=10.0,
        device_snr_db=10.0,
    )


UNEVEN = TwoTiers(
    stations=3,
    devices=7,
    model_bytes=1.25e6,
    edge_uplink_hz=20e6,
    edge_downlink_hz=90e6,
    cloud_uplink_hz=3e6,
    cloud_downlink_hz=8e6,
    cloud_snr_db=21.0,
    station_snr_db=13.0,
    device_snr_db=-2.0,
)
"""Nothing alike: every bandwidth and every ratio can be told from the others."""

each_net = pytest.mark.parametrize("net", [equal_bandwidths(), UNEVEN], ids=["equal", "uneven"])
each_discipline = pytest.mark.parametrize("discipline", ["serial", "fair"])


class Factories:
    """FedGS's network, and what happens on it; with *air*, devices need their cells' bandwidth, else no time."""

    def __init__(self, net: TwoTiers, discipline: str = "fair", *, air: bool = True) -> None:
        self.net = net
        stations = [f"station-{number}" for number in range(net.stations)]
        to_cloud_bps = net.cloud_uplink_hz * shannon_bps_per_hz(net.cloud_snr_db)
        to_stations_bps = net.cloud_downlink_hz * shannon_bps_per_hz(net.station_snr_db)
        to_devices_bps = net.cloud_downlink_hz * shannon_bps_per_hz(net.device_snr_db)
        gateways = {"to-cloud": to_cloud_bps, "to-stations": to_stations_bps, "to-devices": to_devices_bps}
        nodes: dict[str, dict[str, Any]] = {"cloud": {"kind": "cloud"}}
        nodes |= {gateway: {"kind": "edge"} for gateway in gateways}
        nodes |= {station: {"kind": "base_station"} for station in stations}
        for station in stations:
            nodes[f"{station}/camera"] = {"kind": "sensor", "count": net.devices, "attach": station}
        shared = [{"between": ["cloud", gateway], "rate_bps": rate} for gateway, rate in gateways.items()]
        at_once = [{"between": [gateway, station]} for gateway in gateways for station in stations]
        cell = {
            "name": "shannon",
            "profile": "pure",
            "uplink_bandwidth_hz": net.edge_uplink_hz,
            "downlink_bandwidth_hz": net.edge_downlink_hz,
            "snr": {"name": "given", "uplink_db": net.station_snr_db, "downlink_db": net.device_snr_db},
        }
        no_time = {"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf}
        written = scenario(
            {
                "topology": {"name": "explicit", "nodes": nodes, "links": [*shared, *at_once]},
                "network.cell.radio": cell if air else no_time,
                "network.cell.discipline": {"name": discipline},
                "network.link": {"rate_bps": math.inf, "discipline": {"name": discipline}},
            }
        )
        self.env, self.trace = Clock(), Trace()
        self.wires = Wires(self.env, written.topology.build(), written.network, Streams(1))
        self.network = Network(self.env, self.trace, Streams(1), self.wires.links, written.network.transport)
        self.stations = stations

    def takes_s(self, work: Work) -> float:
        """The seconds that *work* takes."""
        begin_s = self.env.now
        self.env.run(self.env.process(work))
        return self.env.now - begin_s

    def internal(self) -> Work:
        """The devices' models to their stations, and when all are there, the stations' models to their devices."""
        yield from self._carry((one.client, (one.air_uplink,)) for one in self.wires.attachments)
        yield from self._carry((one.client, (one.air_downlink,)) for one in self.wires.attachments)

    def external(self) -> Work:
        """The stations' models to the cloud, and when all are there, the cloud's model to the stations."""
        yield from self._carry((-1, self.wires.path(station, "to-cloud", "cloud")) for station in self.stations)
        yield from self._carry((-1, self.wires.path("cloud", "to-stations", station)) for station in self.stations)

    def fedgs(self, iterations: int, *, update_s: float = 0.0, selection_s: float = 0.0) -> Work:
        """A round of FedGS: iterations of a choice, an update and an internal synchronisation, then an external."""
        for _ in range(iterations):
            yield self.env.timeout(selection_s)
            yield self.env.timeout(update_s)
            yield from self.internal()
        yield from self.external()

    def fedavg(self, iterations: int, *, update_s: float = 0.0) -> Work:
        """A round of FedAvg: the model to all devices, when all have it their updates, and all models to the cloud."""
        places = [(one, self.stations[one.client // self.net.devices]) for one in self.wires.attachments]
        yield from self._carry(
            (one.client, (*self.wires.path("cloud", "to-devices", station), one.air_downlink))
            for one, station in places
        )
        for _ in range(iterations):
            yield self.env.timeout(update_s)
        yield from self._carry(
            (one.client, (one.air_uplink, *self.wires.path(station, "to-cloud", "cloud"))) for one, station in places
        )

    def _carry(self, journeys: Iterable[tuple[int, tuple[Hop, ...]]]) -> Work:
        """A model on each journey, all at the same time, until the last one has arrived."""
        yield gather(
            self.env,
            [self.env.process(self.network.carry(client, route, self.net.model_bytes)) for client, route in journeys],
        )


def exactly(seconds: float) -> Any:
    return pytest.approx(seconds, rel=1e-12)


@each_discipline
@each_net
def test_an_internal_synchronisation_takes_eq_19_in_all_cells_at_once(net: TwoTiers, discipline: str) -> None:
    factories = Factories(net, discipline)
    s, up_bps, down_bps = (
        8 * net.model_bytes,
        net.edge_uplink_hz * math.log2(1 + 10 ** (net.station_snr_db / 10)),
        net.edge_downlink_hz * math.log2(1 + 10 ** (net.device_snr_db / 10)),
    )
    assert factories.takes_s(factories.internal()) == exactly(net.devices * s / up_bps + net.devices * s / down_bps)
    assert factories.env.now == exactly(net.internal_s)
    hops = factories.trace.hops.array()
    for link in factories.wires.links[: net.stations]:
        assert hops["end_s"][hops["link"] == link.index].max() == factories.env.now


@each_discipline
@each_net
def test_an_external_synchronisation_takes_eq_20(net: TwoTiers, discipline: str) -> None:
    factories = Factories(net, discipline)
    s, up_bps, down_bps = (
        8 * net.model_bytes,
        net.cloud_uplink_hz * math.log2(1 + 10 ** (net.cloud_snr_db / 10)),
        net.cloud_downlink_hz * math.log2(1 + 10 ** (net.station_snr_db / 10)),
    )
    assert factories.takes_s(factories.external()) == exactly(net.stations * s / up_bps + net.stations * s / down_bps)
    assert factories.env.now == exactly(net.external_s)


@each_discipline
@each_net
def test_a_round_of_fedgs_takes_eq_21(net: TwoTiers, discipline: str) -> None:
    factories = Factories(net, discipline)
    round_s = factories.takes_s(factories.fedgs(50, update_s=0.032, selection_s=0.015))
    assert round_s == exactly(50 * (0.015 + 0.032 + net.internal_s) + net.external_s)
    assert round_s == exactly(net.fedgs_s(50, update_s=0.032, selection_s=0.015))


@each_discipline
@each_net
def test_a_round_of_fedavg_takes_eqs_22_and_23_where_the_air_takes_no_time(net: TwoTiers, discipline: str) -> None:
    factories = Factories(net, discipline, air=False)
    s, up_bps, down_bps = (
        8 * net.model_bytes * net.devices * net.stations,
        net.cloud_uplink_hz * math.log2(1 + 10 ** (net.cloud_snr_db / 10)),
        net.cloud_downlink_hz * math.log2(1 + 10 ** (net.device_snr_db / 10)),
    )
    assert factories.takes_s(factories.fedavg(50, update_s=0.032)) == exactly(50 * 0.032 + s / up_bps + s / down_bps)
    assert factories.env.now == exactly(net.fedavg_s(50, update_s=0.032))


@each_net
def test_fairly_shared_air_costs_fedavg_one_internal_synchronisation(net: TwoTiers) -> None:
    # Store and forward: all models of a cell are on the air together, and then all on the wire, or the other way round.
    factories = Factories(net, "fair")
    assert factories.takes_s(factories.fedavg(50, update_s=0.032)) == exactly(
        net.fedavg_s(50, update_s=0.032) + net.internal_s
    )


def test_serial_air_costs_fedavg_one_model_each_way_where_the_wire_is_the_bottleneck() -> None:
    # The wire begins when the first models have come over the air, and the last one has yet to when it ends.
    net = equal_bandwidths()
    factories = Factories(net, "serial")
    one_model_s = net.internal_s / net.devices
    assert factories.takes_s(factories.fedavg(1)) == exactly(net.fedavg_communication_s + one_model_s)


bandwidths_hz = st.floats(1e6, 1e9)
small_nets = st.builds(
    TwoTiers,
    stations=st.integers(1, 4),
    devices=st.integers(1, 4),
    model_bytes=st.floats(1e3, 1e8),
    edge_uplink_hz=bandwidths_hz,
    edge_downlink_hz=bandwidths_hz,
    cloud_uplink_hz=bandwidths_hz,
    cloud_downlink_hz=bandwidths_hz,
    cloud_snr_db=st.floats(-10, 30),
    station_snr_db=st.floats(-10, 30),
    device_snr_db=st.floats(-10, 30),
)


@drawn(40)
@given(net=small_nets, discipline=st.sampled_from(["serial", "fair"]))
@example(net=replace(UNEVEN, edge_uplink_hz=1e4, edge_downlink_hz=1e4), discipline="serial")
def test_over_any_air_fedavg_takes_eq_22_and_at_most_one_internal_synchronisation(
    net: TwoTiers, discipline: Literal["serial", "fair"]
) -> None:
    # At least: the wire carries all models, one after another or all together, and the first has to reach it, the last
    # to leave it, over the air. At most: the air waits for the whole wire, and the wire for the whole air.
    factories = Factories(net, discipline)
    air_s = factories.takes_s(factories.fedavg(1)) - net.fedavg_communication_s
    rounding = 1e-9 * factories.env.now
    assert net.internal_s / net.devices - rounding <= air_s <= net.internal_s + rounding


@given(net=small_nets, iterations=st.integers(1, 1_000), update_s=st.floats(0, 100), selection_s=st.floats(0, 1))
def test_fedgs_is_no_slower_up_to_the_most_iterations(
    net: TwoTiers, iterations: int, update_s: float, selection_s: float
) -> None:
    fedgs_s = net.fedgs_s(iterations, update_s=update_s, selection_s=selection_s)
    fedavg_s = net.fedavg_s(iterations, update_s=update_s)
    most = net.most_iterations(selection_s=selection_s)
    if fedgs_s != pytest.approx(fedavg_s, rel=1e-9):
        assert (fedgs_s < fedavg_s) is (iterations < most)


@given(net=small_nets, update_s=st.floats(0, 100), selection_s=st.floats(0, 1), iterations=st.integers(1, 1_000))
def test_with_equal_bandwidths_they_are_eqs_24_and_25_and_proposition_4(
    net: TwoTiers, update_s: float, selection_s: float, iterations: int
) -> None:
    b_e, b_c, snr_db = net.edge_uplink_hz, net.cloud_uplink_hz, net.cloud_snr_db
    equal = replace(
        net, edge_downlink_hz=b_e, cloud_downlink_hz=b_c, station_snr_db=snr_db, device_snr_db=snr_db
    )  # Assumption 2
    efficiency = math.log2(1 + 10 ** (snr_db / 10))
    big_l, big_m, s, t = net.devices, net.stations, 8 * net.model_bytes, iterations
    eq_24 = t * (selection_s + update_s) + 2 * s / efficiency * (t * big_l / b_e + big_m / b_c)
    eq_25 = t * update_s + 2 * s * big_l * big_m / (b_c * efficiency)
    assert equal.fedgs_s(t, update_s=update_s, selection_s=selection_s) == exactly(eq_24)
    assert equal.fedavg_s(t, update_s=update_s) == exactly(eq_25)
    assert equal.most_iterations() == exactly(b_e / b_c * big_m * (big_l - 1) / big_l)
    most = equal.most_iterations(selection_s=selection_s)
    assert most * (big_l / b_e + selection_s * efficiency / (2 * s)) == exactly(big_m * (big_l - 1) / b_c)


def test_the_papers_50_iterations_need_an_edge_5_56_times_as_fast() -> None:
    assert f"{50 / equal_bandwidths(1.0).most_iterations():.2f}" == "5.56"
    assert [round(equal_bandwidths(ratio).most_iterations(), 6) for ratio in (10.0, 100.0)] == [90.0, 900.0]


@pytest.mark.parametrize(
    ("edge_over_cloud", "bound", "faster_at_50"),
    [
        (5.0, 45.0, False),
        (5.56, 50.04, True),
        (6.0, 54.0, True),
        (10.0, 90.0, True),
        pytest.param(100.0, 900.0, True, marks=pytest.mark.slow),
    ],
)
def test_simulated_fedgs_is_faster_exactly_when_proposition_4_says_so(
    edge_over_cloud: float, bound: float, faster_at_50: bool
) -> None:
    net = equal_bandwidths(edge_over_cloud)
    assert bound == exactly(edge_over_cloud * 10 * (10 - 1) / 10)  # (B_e / B_c) M (L - 1) / L
    fedavg, fedgs = Factories(net, air=False), Factories(net)
    fedavg_s = fedavg.takes_s(fedavg.fedavg(1))
    fedgs.takes_s(fedgs.external())  # first, so that the clock tells the time of each T
    for iterations in range(1, int(bound) + 10):
        fedgs.takes_s(fedgs.internal())
        if iterations == bound:
            assert fedgs.env.now == exactly(fedavg_s)
        else:
            assert (fedgs.env.now < fedavg_s) is (iterations < bound)
        if iterations == 50:
            assert (fedgs.env.now < fedavg_s) is faster_at_50


def test_choosing_devices_for_15_ms_is_too_long_only_at_the_very_bound() -> None:
    # The paper neglects GBP-CS's 15 ms. With 10 times the bandwidth the bound of 90 falls to 89.9.
    net = equal_bandwidths(10.0)
    assert 89 < net.most_iterations(selection_s=0.015) < 90
    fedavg = Factories(net, air=False)
    fedavg_s = fedavg.takes_s(fedavg.fedavg(1))
    for iterations, faster in {89: True, 90: False}.items():
        fedgs = Factories(net)
        assert (fedgs.takes_s(fedgs.fedgs(iterations, selection_s=0.015)) < fedavg_s) is faster


@pytest.mark.parametrize("iterations", [90, 91, 92])
def test_with_air_that_fedavg_has_to_cross_the_bound_is_one_iteration_higher(iterations: int) -> None:
    net = equal_bandwidths(10.0)  # Proposition 4: 90
    fedavg, fedgs = Factories(net), Factories(net)
    lead_s = fedavg.takes_s(fedavg.fedavg(1)) - fedgs.takes_s(fedgs.fedgs(iterations))
    assert lead_s == pytest.approx((91 - iterations) * net.internal_s, abs=1e-9)


SERIAL = [f"network.{where}.discipline={{name: serial}}" for where in ("cell", "link")]
S = 211_318_720
"""Bits of the scenario's model."""


def summary(tmp_path: Path, *overrides: str) -> dict[tuple[str, str], pd.Series[Any]]:
    """The rows of the scenario's summary, by protocol and accounting."""
    table = run(load(SCENARIO, overrides=list(overrides)), out=tmp_path / "run").summary
    return {(row["protocol"], row["accounting"]): row for _, row in table.iterrows()}


def test_the_scenarios_sums(tmp_path: Path) -> None:
    rows = summary(tmp_path)
    wire_s, air_s = 100 * S / 10e6, 10 * S / 100e6
    fedgs_s = 50 * (0.032 + 2 * air_s) + 2 * 10 * S / 10e6
    expected = {
        ("fedavg", "formula"): (2 * wire_s + 1.6, 2 * 100, "4227.9744"),
        ("fedavg", "event"): (2 * (wire_s + air_s) + 1.6, 2 * 100, "4270.2381"),
        ("fedgs_random", "formula"): (fedgs_s, 2 * 50 * 100, "2537.4246"),
        ("fedgs_random", "event"): (fedgs_s, 2 * 50 * 100, "2537.4246"),
    }
    assert rows.keys() == expected.keys()
    for which, (seconds, models, written) in expected.items():
        assert rows[which]["sim_time_s"] == exactly(seconds), which
        assert f"{rows[which]['sim_time_s']:.4f}" == written
        assert rows[which]["transfer_bytes"] == models * S / 8


def test_both_ways_at_once_take_about_half_the_time(tmp_path: Path) -> None:
    # One model after another, each device sends when it has computed, and all carry both directions: the last model has
    # come down after 100 times a model's seconds on the wire, and goes up in one more. So it is on FedGS's air, too.
    rows = summary(tmp_path, *SERIAL)
    fedavg_s, fedgs_s = (rows[name, "event"]["sim_time_s"] for name in ("fedavg", "fedgs_random"))
    assert fedavg_s == exactly((100 + 1) * S / 10e6 + 2 * S / 100e6 + 1.6)
    assert fedgs_s == exactly(50 * ((10 + 1) * S / 100e6 + 0.032) + (10 + 1) * S / 10e6)
    assert f"{fedavg_s:.4f}, {fedgs_s:.4f}" == "2140.1454, 1396.3036"


def uneven(**protocol: Any) -> list[str]:
    """Three stations with five devices each, two of which take part; both ways differ on the air."""
    return [
        "topology.branching=[1, 3]",
        "topology.devices_per_station=5",
        "network.cell.radio.bandwidth_hz=null",
        "network.cell.radio.uplink_bandwidth_hz=70.0e+6",
        "network.cell.radio.downlink_bandwidth_hz=50.0e+6",
        "network.cell.radio.snr={name: given, uplink_db: 0.0, downlink_db: -2.0}",
        "formula.edge_uplink_hz=70.0e+6",
        "formula.edge_downlink_hz=50.0e+6",
        "formula.device_snr_db=-2.0",
        "formula.selection_s=0.015",
        "stop.rounds=2",
        "model={name: declared, parameters: 250000}",
        "data={name: digits, partition: {name: iid}}",
        "training.batch_size=32",
        f"protocols=[{protocol}]",
    ]


@pytest.mark.parametrize(("devices", "taking_part"), [(2, 2), (5, 5), (9, 5)])
def test_a_protocol_that_draws_its_devices_takes_exactly_as_long_as_its_formula(
    devices: int, taking_part: int, tmp_path: Path
) -> None:
    keys = {"name": "fedgs_random", "devices": devices, "iterations": 3, "selection_s": 0.015}
    rows = summary(tmp_path, *uneven(**keys))
    event, formula = rows["fedgs_random", "event"], rows["fedgs_random", "formula"]
    assert event["sim_time_s"] == exactly(formula["sim_time_s"])
    assert event["uplink_bytes"] == formula["uplink_bytes"] == 2 * 3 * taking_part * 3 * 1e6
    assert event["downlink_bytes"] == formula["downlink_bytes"] == formula["uplink_bytes"]


def test_reports_are_what_the_formula_leaves_out(tmp_path: Path) -> None:
    # Ten counts of each of five devices in each iteration, and once those of all samples, on to the cloud.
    rows = summary(tmp_path, *uneven(name="fedgs", devices=2, presampled=1, iterations=3, selection_s=0.015))
    event, formula = rows["fedgs", "event"], rows["fedgs", "formula"]
    report_bits, up_bps = 8 * 4 * 10, 70e6
    told_s = 5 * report_bits / up_bps + 15 * report_bits / 10e6
    reports_s = 2 * 3 * 5 * report_bits / up_bps
    assert event["sim_time_s"] - formula["sim_time_s"] == pytest.approx(told_s + reports_s, rel=1e-6)
    assert event["uplink_bytes"] - formula["uplink_bytes"] == (1 + 2 * 3) * 15 * report_bits / 8
    assert event["downlink_bytes"] == formula["downlink_bytes"]


def test_without_a_cells_bandwidths_fedgs_is_refused_and_fedavg_is_not(tmp_path: Path) -> None:
    lacking = ["formula.edge_uplink_hz=null", "formula.station_snr_db=null"]
    with pytest.raises(UserError, match=r"formula.* 'fedgs_random' needs it; give edge_uplink_hz, station_snr_db$"):
        load(SCENARIO, overrides=lacking)
    load(SCENARIO, overrides=[*lacking, "protocols=[{name: fedavg, fraction: 1.0}]"])


@given(net=small_nets, rounds=st.integers(1, 1_000), update_s=st.floats(0, 100))
def test_the_cost_model_is_fedavg_on_this_network(net: TwoTiers, rounds: int, update_s: float) -> None:
    model = FedGSCost(
        uplink_hz=net.cloud_uplink_hz,
        downlink_hz=net.cloud_downlink_hz,
        cloud_snr_db=net.cloud_snr_db,
        device_snr_db=net.device_snr_db,
        update_s=update_s,
    )
    clients = net.stations * net.devices
    cost = model.cost(RunFacts(clients, cohort=clients, groups=(clients,) * rounds, model_bytes=net.model_bytes))
    assert cost.communication_s + cost.computation_s == exactly(rounds * net.fedavg_s(50, update_s=update_s))
    assert cost.uplink_bytes == cost.downlink_bytes == exactly(rounds * clients * net.model_bytes)


@given(net=small_nets, rounds=st.integers(1, 1_000), iterations=st.integers(1, 100), update_s=st.floats(0, 100))
def test_the_cost_model_is_fedgs_on_this_network(net: TwoTiers, rounds: int, iterations: int, update_s: float) -> None:
    model = FedGSCost(
        uplink_hz=net.cloud_uplink_hz,
        downlink_hz=net.cloud_downlink_hz,
        cloud_snr_db=net.cloud_snr_db,
        device_snr_db=net.device_snr_db,
        edge_uplink_hz=net.edge_uplink_hz,
        edge_downlink_hz=net.edge_downlink_hz,
        station_snr_db=net.station_snr_db,
        update_s=update_s,
        selection_s=0.015,
    )
    stations = StationFacts(net.stations, net.devices, iterations)
    facts = RunFacts(1_000, 1_000, (1_000,) * rounds, net.model_bytes, at_stations=stations)
    cost = model.cost(facts)
    round_s = net.fedgs_s(iterations, update_s=update_s, selection_s=0.015)
    assert cost.communication_s + cost.computation_s == exactly(rounds * round_s)
    models = rounds * iterations * net.devices * net.stations
    assert cost.uplink_bytes == cost.downlink_bytes == exactly(models * net.model_bytes)
