"""Interference between cells: margins by hand, loads that agree with the rates that they cause, and when they change.

Distances are in metres on a line; the loss is 40 dB at 1 m and 30 dB more with each tenfold, on 1 MHz of Shannon's
bound unless a test says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from pydantic import ValidationError
from radio_sites import BUDGET, shannon, site
from scipy.optimize import brentq
from small_worlds import prepared, scenario

from fedsim.errors import UserError
from fedsim.experiment.description.air import Air
from fedsim.kernel.streams import Streams
from fedsim.network.radio_paths import paths_of, surroundings_of
from fedsim.radio.budget import noise_dbm
from fedsim.radio.lte.radio import Lte
from fedsim.radio.nb_iot.radio import NbIot
from fedsim.radio.settings import ANYWHERE, RadioPath, RadioSettings, UpDown
from fedsim.radio.shannon import Shannon
from fedsim.radio.snr_radio import SnrRadio, _in_step
from fedsim.scenario.build import gather_materials
from fedsim.topology.graph import Topology

Where = tuple[float, float] | None
LOSS = {"name": "log_distance", "exponent": 3.0, "reference_loss_db": 40.0}
SMALL_LTE: dict[str, Any] = {"bandwidth_mhz": 5.0, "category": "cat1bis"}
GIVEN_LOADS = {"uplink_load": 0.3, "downlink_load": 0.5}
PAIR = {"north": (0.0, 0.0), "south": (1000.0, 0.0)}
TWO = {"a": ("north", (100.0, 0.0)), "b": ("south", (800.0, 0.0))}
MIRRORED = {"a": ("north", (400.0, 0.0)), "b": ("south", (600.0, 0.0))}


def loss_db(distance_m: float) -> float:
    return 40 + 30 * math.log10(distance_m)


def linear(decibels: float) -> float:
    return 10 ** (decibels / 10)


def snr(interference: object, **keys: Any) -> Any:
    return {**BUDGET, "path_loss": LOSS, "interference": interference, **keys}


def offered(uplink_bps: float, downlink_bps: float, from_s: float = 0.0) -> dict[str, float]:
    return {"from_s": from_s, "uplink_bps": uplink_bps, "downlink_bps": downlink_bps}


def radio(*loads: dict[str, float], also: dict[str, Any] | None = None, **keys: Any) -> Shannon:
    """Where devices of all cells offer these *loads*; *also* are more keys of the interference."""
    return shannon(snr({"loads": loads, **(also or {})}), **{"profile": "pure", **keys})


def network(stations: Mapping[str, Where], devices: Mapping[str, tuple[str, Where]]) -> Topology:
    graph: nx.Graph[str] = nx.Graph()
    graph.add_node("cloud", kind="cloud")
    for name, position_m in stations.items():
        graph.add_node(name, kind="base_station", position_m=position_m)
        graph.add_edge("cloud", name)
    for name, (station, position_m) in devices.items():
        graph.add_node(name, kind="sensor", position_m=position_m)
        graph.add_edge(name, station)
    return Topology(graph)


def paths(topology: Topology, own: RadioSettings, others: Mapping[str, RadioSettings] | None = None) -> list[RadioPath]:
    """Of all devices; *others* are radios by sensor, all other sensors' is *own*."""
    radios = others or {}
    around = surroundings_of(topology, Streams(1), lambda _: ANYWHERE, lambda sensor: radios.get(sensor, own))
    return list(paths_of(topology, Streams(1), around=around))


def margins_db(own: SnrRadio, asked: list[RadioPath], entry: int = 0) -> list[tuple[float, float]]:
    """Up and down, of each of the paths."""
    _, both = list(own.margins_db(asked))[entry]
    return list(zip(both.uplink.tolist(), both.downlink.tolist(), strict=True))


def crowd(devices: int, seed: int = 5) -> Topology:
    """Four stations in a square of 1 km, and devices anywhere, each in the nearest cell."""
    stations = {f"s{n}": (250.0 + 500.0 * (n % 2), 250.0 + 500.0 * (n // 2)) for n in range(4)}
    where = np.random.default_rng(seed).uniform(0.0, 1000.0, (devices, 2)).tolist()
    return network(stations, {f"d{n}": (f"s{(x > 500) + 2 * (y > 500)}", (x, y)) for n, (x, y) in enumerate(where)})


# -- by hand ----------------------------------------------------------------------------------------------------------


def test_margins_of_two_devices_with_given_loads_by_hand() -> None:
    """N is -114 dBm and the receiver's noise figure; a is 900 m from south, b 800 m from north."""
    own = shannon(snr(GIVEN_LOADS), profile="pure")
    (a_up, a_down), (b_up, b_down) = margins_db(own, paths(network(PAIR, TWO), own))
    at_device_dbm, at_station_dbm = noise_dbm(1e6) + 5, noise_dbm(1e6) + 3
    for margin_db, load, power_dbm, distance_m, floor_dbm in (
        (a_down, 0.5, 43.0, 900.0, at_device_dbm),
        (b_down, 0.5, 43.0, 800.0, at_device_dbm),
        (a_up, 0.3, 23.0, 800.0, at_station_dbm),  # what b sends arrives at north
        (b_up, 0.3, 23.0, 900.0, at_station_dbm),
    ):
        ratio = load * linear(power_dbm - loss_db(distance_m) - floor_dbm)
        assert margin_db == pytest.approx(10 * math.log10(1 + ratio), abs=1e-9)


def test_gains_and_losses_count_on_the_way_to_other_stations_too() -> None:
    """And given margins are noise already."""
    more = {"device_antenna_gain_db": 2.0, "station_antenna_gain_db": 5.0, "extra_loss_db": 11.0}
    more |= {"uplink_interference_margin_db": 1.0, "downlink_interference_margin_db": 6.0}
    own = shannon(snr(GIVEN_LOADS, **more), profile="pure")
    (a_up, a_down), _ = margins_db(own, paths(network(PAIR, TWO), own))
    down, up = 43 - loss_db(900.0) - 4 - noise_dbm(1e6) - 5 - 6, 23 - loss_db(800.0) - 4 - noise_dbm(1e6) - 3 - 1
    assert a_down == pytest.approx(10 * math.log10(1 + 0.5 * linear(down)), abs=1e-9)
    assert a_up == pytest.approx(10 * math.log10(1 + 0.3 * linear(up)), abs=1e-9)


def test_devices_of_a_cell_send_equally_often_under_a_given_load() -> None:
    own = shannon(snr(GIVEN_LOADS), profile="pure")
    both = {**TWO, "c": ("south", (950.0, 0.0))}
    (a_up, _), *_ = margins_db(own, paths(network(PAIR, both), own))
    mean = (linear(-loss_db(800.0)) + linear(-loss_db(950.0))) / 2
    assert a_up == pytest.approx(10 * math.log10(1 + 0.3 * mean * linear(23 - noise_dbm(1e6) - 3)), abs=1e-9)


@pytest.mark.parametrize(("offered_bps", "hz"), [(1e3, 1e6), (1e5, 1e6), (1e6, 1e6), (2e6, 1e6), (1e-3, 1e-3)])
def test_a_symmetric_pair_has_the_load_that_solves_its_one_equation(offered_bps: float, hz: float) -> None:
    """x = offered / (B log2(1 + S / (1 + x g))), with S and g over the noise, for each direction."""
    own = radio(offered(offered_bps / 4, offered_bps), bandwidth_hz=hz)
    [one, other] = margins_db(own, paths(network(PAIR, MIRRORED), own))
    assert one == pytest.approx(other, abs=1e-9)
    for found_db, bps, power_dbm, figure_db in zip(one, (offered_bps / 4, offered_bps), (23, 43), (3, 5), strict=True):
        signal, noise = (linear(power_dbm - loss_db(m) - noise_dbm(hz) - figure_db) for m in (400.0, 600.0))
        load = brentq(
            lambda x, s=signal, g=noise, b=bps: x - b / (hz * math.log2(1 + s / (1 + x * g))), 0.0, 1.0, xtol=1e-15
        )
        assert found_db == pytest.approx(10 * math.log10(1 + load * noise), abs=1e-7)
        assert 0 < load < 1


def test_what_is_offered_beyond_a_full_cell_changes_nothing_more() -> None:
    topology, full = network(PAIR, MIRRORED), shannon(snr({"uplink_load": 1.0, "downlink_load": 1.0}), profile="pure")
    for bps in (1e8, 1e12):
        own = radio(offered(bps, bps))
        found = np.array(margins_db(own, paths(topology, own)))
        assert found == pytest.approx(np.array(margins_db(full, paths(topology, full))), abs=1e-9)


def test_who_loses_the_last_rate_to_interference_fills_the_cell() -> None:
    """The other station is 999 times nearer than the own one; LTE has a rate from -10 dB on."""
    keys: dict[str, Any] = {"profile": "lte_36942", "bandwidth_hz": 1e6}
    edge = {"a": ("north", (999.0, 0.0)), "b": ("south", (1.0, 0.0)), "c": ("north", (999.0, 0.0))}
    topology, full = network(PAIR, edge), shannon(snr({"uplink_load": 1.0, "downlink_load": 1.0}), **keys)
    own = radio(offered(1.0, 3e5), **keys)
    asked = paths(topology, own)
    rates = own.rates_of(asked)
    assert rates.downlink_bps.tolist() == [0.0, 0.0, 0.0]
    assert [down for _, down in margins_db(own, asked)] == [down for _, down in margins_db(full, paths(topology, full))]
    why = own.why_no_coverage(asked[0])
    assert why is not None and "over 999.0 m, interference of other cells 94.0 dB)" in why  # 23 - 40 + 114 - 3


@pytest.mark.parametrize("interference", [{"loads": [offered(1e5, 1e5)]}, GIVEN_LOADS])
@pytest.mark.parametrize(("distance_m", "station_dbm"), [(1e6, 43.0), (5e3, 43.0), (1.5e3, 10.0)])
def test_who_has_no_rate_even_alone_offers_nothing(
    interference: dict[str, Any], distance_m: float, station_dbm: float
) -> None:
    """Neither way, or none up beyond 2,929 m, or none down beyond 926 m from a weak station: LTE's -10 dB."""
    far = {**TWO, "c": ("south", (1e3 + distance_m, 0.0))}
    own = shannon(snr(interference, station_power_dbm=station_dbm), out_of_coverage="exclude")
    a, b, _ = margins_db(own, paths(network(PAIR, far), own))
    assert [a, b] == margins_db(own, paths(network(PAIR, TWO), own))


# -- many devices -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bps", [2e4, 4e5])  # cells that are 0.1 and 1 full
def test_loads_and_margins_agree_in_plain_loops(bps: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsim.radio.surroundings.AT_ONCE", 10)
    topology = crowd(24)
    own = radio(offered(bps, 2 * bps), also={"neighbours": 2})
    asked = paths(topology, own)
    rates, found = list(own.rates_of(asked)), margins_db(own, asked)
    centres = [topology.graph.nodes[f"s{n}"]["position_m"] for n in range(4)]

    def parts(wanted: list[float]) -> list[float]:
        sums = [sum(w for w, path in zip(wanted, asked, strict=True) if path.station == s) for s in range(4)]
        return [w / max(1.0, sums[path.station]) for w, path in zip(wanted, asked, strict=True)]

    up = parts([bps / rate.uplink_bps for rate in rates])
    down = parts([2 * bps / rate.downlink_bps for rate in rates])
    at_station, at_device = [0.0] * 4, [0.0] * 24
    for path in asked:
        assert path.position_m is not None
        others = sorted((math.dist(path.position_m, centres[s]), s) for s in range(4) if s != path.station)
        for distance_m, s in others[:2]:
            load = sum(part for part, one in zip(down, asked, strict=True) if one.station == s)
            at_station[s] += up[path.index] * linear(23 - loss_db(distance_m) - noise_dbm(1e6) - 3)
            at_device[path.index] += load * linear(43 - loss_db(distance_m) - noise_dbm(1e6) - 5)
    for path, (up_db, down_db) in zip(asked, found, strict=True):
        assert up_db == pytest.approx(10 * math.log10(1 + at_station[path.station]), abs=1e-6)
        assert down_db == pytest.approx(10 * math.log10(1 + at_device[path.index]), abs=1e-6)


@pytest.mark.parametrize("kind", ["shannon", "lte", "nb_iot"])
def test_margins_rise_with_what_is_offered(kind: str) -> None:
    topology, before = crowd(20), np.zeros((20, 2))
    for bps in (1e2, 3e3, 1e5, 3e6):
        own = technology(kind, {"loads": [offered(bps, bps)]})
        now = np.array(margins_db(own, paths(topology, own)))
        assert (now >= before).all() and (now > before).any()
        before = now


def technology(kind: str, interference: object) -> SnrRadio:
    keys: dict[str, Any] = {"snr": snr(interference), "out_of_coverage": "exclude"}
    if kind == "shannon":
        return shannon(**{**keys, "profile": "nr_38803"})
    return NbIot(**keys) if kind == "nb_iot" else Lte(**keys, **SMALL_LTE)


@pytest.mark.parametrize("kind", ["shannon", "lte", "nb_iot"])
def test_a_margin_depends_neither_on_who_is_asked_nor_on_order(kind: str) -> None:
    topology = crowd(20)
    own = technology(kind, {"loads": [offered(1e3, 2e3)]})
    known = margins_db(own, paths(topology, own))
    assert margins_db(own, paths(topology, own)[::-1]) == known[::-1]
    assert margins_db(own, [paths(topology, own)[7]]) == known[7:8]
    again = paths(topology, own)
    assert [margins_db(own, [path])[0] for path in again[::-1]] == known[::-1]
    assert list(own.rates_of(again)) == [own.rates(path) for path in again]


# -- who counts -------------------------------------------------------------------------------------------------------


def test_cells_on_no_common_carrier_have_no_margin() -> None:
    own, other = (radio(offered(1e5, 1e5)) for _ in range(2))
    nobody = [(0.0, 0.0)]
    assert margins_db(own, paths(network(PAIR, {"a": TWO["a"]}), own)) == nobody  # no device is in the other cell
    assert margins_db(own, paths(network(PAIR, TWO), own, {"b": other})[:1]) == nobody
    sectors = {"north": (0.0, 0.0), "south": (0.0, 0.0)}
    assert margins_db(own, paths(network(sectors, TWO), own)) == 2 * nobody
    anywhere = shannon(snr(GIVEN_LOADS, path_loss={"name": "given", "loss_db": 100.0}))
    assert margins_db(anywhere, paths(network({"north": None}, {"a": ("north", None)}), anywhere)) == nobody


def test_the_nearest_stations_count_and_none_that_is_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsim.radio.surroundings.AT_ONCE", 1)
    line = {f"s{n}": (1000.0 * n, 0.0) for n in range(4)}
    everywhere = {f"d{n}": (f"s{n}", (1000.0 * n + 100.0, 0.0)) for n in range(4)}
    topology = network(line, everywhere)

    def down_db(**keys: Any) -> float:
        own = shannon(snr({**GIVEN_LOADS, **keys}), profile="pure")
        return margins_db(own, paths(topology, own))[0][1]

    def by_hand_db(*distances_m: float) -> float:
        return 10 * math.log10(1 + 0.5 * sum(linear(43 - loss_db(m) - noise_dbm(1e6) - 5) for m in distances_m))

    assert down_db(neighbours=1) == down_db(within_m=900.0) == pytest.approx(by_hand_db(900.0), abs=1e-9)
    assert down_db(neighbours=2) == down_db(within_m=1900.0) == pytest.approx(by_hand_db(900.0, 1900.0), abs=1e-9)
    assert down_db() == pytest.approx(by_hand_db(900.0, 1900.0, 2900.0), abs=1e-9)
    assert down_db(within_m=899.0) == 0.0


def test_of_equally_near_stations_the_first_counts() -> None:
    line = {"middle": (0.0, 0.0), "west": (-500.0, 0.0), "east": (500.0, 0.0)}
    devices = {"m": ("middle", (0.0, 30.0)), "w": ("west", (-500.0, 50.0)), "e": ("east", (500.0, 10.0))}
    own = shannon(snr({**GIVEN_LOADS, "neighbours": 1}), profile="pure")
    (m_up, _), (w_up, _), (e_up, _) = margins_db(own, paths(network(line, devices), own))
    assert m_up > 0 and w_up > 0 and e_up == 0.0  # what m sends arrives in the west


# -- what follows from a margin ---------------------------------------------------------------------------------------


def test_a_budget_shows_both_margins_in_one_term() -> None:
    own = shannon(snr(GIVEN_LOADS, uplink_interference_margin_db=2.0, shadowing={"sigma_db": 3.0}))
    asked = paths(network(PAIR, TWO), own)
    for path, both, margin_db in zip(asked, own.budgets_of(asked), margins_db(own, asked), strict=True):
        rates, ratios = own.rates(path), own.snr_of([path])
        for budget, rate_bps, ratio_db, computed_db, given_db in zip(
            both, (rates.uplink_bps, rates.downlink_bps), ratios, margin_db, (2.0, 0.0), strict=True
        ):
            value = {name: number for name, number, _ in budget.rows()}
            assert value["interference margin"] == pytest.approx(given_db + computed_db)
            assert budget.rate_bps == rate_bps and budget.snr_db == ratio_db[0]
            assert budget.power is not None
            assert budget.snr_db == pytest.approx(budget.power.snr_db - budget.shadowing_db)
    one_db = replace(site(), around=lambda *_: iter([(0.0, UpDown(np.ones(1), np.ones(1)))]))
    assert [budget.power and budget.power.interference_margin_db for budget in own.budgets(one_db)] == [3.0, 1.0]


def test_coverage_classes_of_nb_iot_know_nothing_of_other_cells() -> None:
    keys: dict[str, Any] = {"control_period_ms": [4.0, 64.0, 1024.0], "out_of_coverage": "exclude"}
    far = {"a": ("north", (-5500.0, 0.0)), "b": ("south", (1200.0, 0.0))}
    calm = NbIot(snr=snr(None), **keys)
    own = NbIot(snr=snr({"uplink_load": 1.0, "downlink_load": 1.0}), **keys)
    asked = paths(network(PAIR, far), own)
    alone, rates = calm.rates(asked[0]), own.rates(asked[0])
    assert margins_db(own, asked)[0][1] > 6.0  # 152.2 dB of coupling loss, which would else be class 2 from 154 dB on
    assert rates.coverage_class == alone.coverage_class == 1
    assert rates.downlink_bps < alone.downlink_bps
    assert own.budgets(asked[0]).downlink.rate_bps == rates.downlink_bps
    assert own.budgets(asked[0]).uplink.rate_bps == rates.uplink_bps


def test_a_device_on_one_tone_of_twelve_is_twelve_times_as_dense() -> None:
    """Single tones: what is sent in a second at its rate lasts offered / rate x duty, at full power."""
    keys: dict[str, Any] = {"tones": (1,), "random_access": (), "block_errors": "none"}
    own = NbIot(snr=snr({"loads": [offered(50.0, 0.0)]}), **keys)
    asked = paths(network(PAIR, TWO), own)
    (a_up, a_down), _ = margins_db(own, asked)
    b = own.rates(asked[1])
    assert b.uplink_share == pytest.approx(b.uplink_format.duty / 12)
    sends = 50.0 / b.uplink_bps * b.uplink_format.duty
    assert a_up == pytest.approx(
        10 * math.log10(1 + sends * linear(23 - loss_db(800.0) - noise_dbm(180e3) - 3)), abs=1e-9
    )
    assert a_down == 0.0


def test_the_density_of_a_tdd_uplink_is_that_of_its_turns() -> None:
    tdd: Any = {"slots": "DDDSU", "special_downlink_symbols": 10}
    own = Lte(snr=snr(None), tdd=tdd, **SMALL_LTE)
    rates = own.rates_at_all(UpDown(np.array([-5.0, 40.0, -90.0]), np.array([40.0, 40.0, 40.0])))
    for slower in (1.0, 1e-9):
        density = own.uplink_density(replace(rates, uplink_bps=slower * rates.uplink_bps))
        assert density == pytest.approx([1 / rates.uplink_share[0], 1 / rates.uplink_share[1], 1.0])
    assert rates.uplink_share[0] < 1


# -- in time ----------------------------------------------------------------------------------------------------------

NIGHT, DAY = offered(0.0, 0.0), offered(1e5, 1e6, from_s=6.0)


def test_margins_change_when_the_loads_do_and_redraws_keep_their_own_time() -> None:
    redrawn = {"sigma_db": 4.0, "redraw_every_s": 4.0}
    keys = {"loads": [NIGHT, DAY, offered(0.0, 0.0, from_s=8.0)]}
    own, calm = shannon(snr(keys, shadowing=redrawn)), shannon(snr(None, shadowing=redrawn))
    asked = paths(network(PAIR, MIRRORED), own)
    changes, of_calm = own.changes_together(asked), calm.changes_together(asked)
    told = [next(changes) for _ in range(4)]
    assert [at_s for at_s, _ in told] == [4.0, 6.0, 8.0, 12.0]
    bps = [rates.downlink_bps.tolist() for _, rates in told]
    calm_bps = [next(of_calm)[1].downlink_bps.tolist() for _ in range(3)]
    assert [bps[0], bps[2], bps[3]] == calm_bps and bps[1] < bps[0]
    one, other = iter([(0.0, "a"), (4.0, "b"), (8.0, "c")]), iter([(0.0, 1), (6.0, 2), (8.0, 3), (9.0, 4)])
    assert list(_in_step(one, other))[1:] == [(4.0, "b", 1), (6.0, "b", 2), (8.0, "c", 3), (9.0, "c", 4)]
    assert list(own.rates_of(asked, 6.0)) == list(told[1][1]) and own.rates_of(asked).downlink_bps[0] > 0


def world_changes(own: dict[str, Any]) -> dict[str, Any]:
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}}
    nodes |= {name: {"kind": "base_station", "position_m": list(at_m)} for name, at_m in PAIR.items()}
    for name, (station, at_m) in MIRRORED.items():
        assert at_m is not None
        nodes[name] = {"kind": "sensor", "attach": station, "position_m": list(at_m)}
    links = [{"between": ["cloud", name]} for name in PAIR]
    return {
        "topology": {"name": "explicit", "nodes": nodes, "links": links},
        "network.cell.radio": {"name": "shannon", "profile": "pure", "bandwidth_hz": 1e3, "snr": own},
        "network.link.rate_bps": math.inf,
    }


def test_a_message_on_the_way_meets_the_new_load_at_its_time_and_only_then() -> None:
    changes = world_changes(snr({"loads": [offered(0.0, 0.0), offered(500.0, 500.0, from_s=0.25)]}))
    world = prepared(changes)[0]
    own = world.wires.cells["north"].settings.radio
    asked = list(world.wires.paths())
    [before], [after] = own.rates_of(asked[:1]), own.rates_of(asked[:1], 0.25)
    assert after.uplink_bps < before.uplink_bps
    left_bits = 8_000 - 0.25 * before.uplink_bps
    world.env.run(until=world.env.process(world.network.carry(0, world.clients[0].attachment.uplink, 1_000.0)))
    assert left_bits > 0 and world.env.now == pytest.approx(0.25 + left_bits / after.uplink_bps, rel=1e-9)
    assert world.clients[0].attachment.air_uplink.rate_bps == after.uplink_bps


def test_a_device_that_is_described_alone_has_the_rates_of_the_network() -> None:
    settings = scenario(world_changes(snr({"loads": [offered(500.0, 500.0)]})))
    world = prepared(world_changes(snr({"loads": [offered(500.0, 500.0)]})))[0]
    air = Air(settings, gather_materials(settings, 1).topology, 1)
    [alone] = air.paths([1])
    rates = air.radio_of("b").rates(alone)
    hops = world.clients[1].attachment.air
    assert (rates.uplink_bps, rates.downlink_bps) == (hops[0].rate_bps, hops[1].rate_bps)
    calm = prepared(world_changes(snr(None)))[0].clients[1].attachment.air
    assert hops[0].rate_bps < calm[0].rate_bps and hops[1].rate_bps < calm[1].rate_bps


def test_a_radio_without_interference_never_looks_around() -> None:
    def nobody(*_: object) -> Any:
        raise AssertionError("looked around")

    topology, own = network(PAIR, TWO), shannon(snr(None))
    quiet = surroundings_of(topology, Streams(1), nobody, nobody)
    asked = list(paths_of(topology, Streams(1), around=quiet))
    assert list(own.rates_of(asked)) == list(own.rates_of(list(paths_of(topology, Streams(1)))))
    assert list(own.changes_together(asked)) == [] and own.announces


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interference", "message"),
    [
        ({}, "needs either loads"),
        ({"uplink_load": 0.5}, "or both uplink_load and downlink_load"),
        ({**GIVEN_LOADS, "loads": [NIGHT]}, "needs either loads"),
        ({"loads": []}, "is empty, and its first entry must say what holds from 0 s on"),
        ({"loads": [DAY]}, "begins at from_s=6, and its first entry"),
        ({"loads": [NIGHT, DAY, DAY]}, "from_s=6 must be later than the entry before, from_s=6"),
        ({"uplink_load": 1.5, "downlink_load": 0.0}, "less than or equal to 1"),
        ({**GIVEN_LOADS, "neighbours": 0}, "greater than or equal to 1"),
    ],
)
def test_interference_that_makes_no_sense_is_refused(interference: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        shannon(snr(interference))


def test_a_path_without_a_network_is_refused() -> None:
    for keys in (GIVEN_LOADS, {"loads": [NIGHT]}):
        with pytest.raises(UserError, match="'cam-1' depends on all cells around it, and its path was made without"):
            shannon(snr(keys)).rates(site())


@pytest.mark.parametrize(
    ("stations", "devices", "keys", "message"),
    [
        (PAIR, {**TWO, "b": ("south", None)}, {"min_distance_m": 1.0}, "'b' to its base station is unknown"),
        ({**PAIR, "south": None}, TWO, {}, "'b' to its base station is unknown"),
        (PAIR, TWO, {"name": "given", "loss_db": 90.0}, "path_loss: given loses as much on the way to every other"),
        (PAIR, TWO, {"name": "inf_sl"}, "'a': inf_sl holds up to 600 m.*for interference: within_m leaves out"),
    ],
)
def test_a_network_in_which_it_cannot_be_known_is_refused(
    stations: dict[str, Where], devices: dict[str, tuple[str, Where]], keys: dict[str, Any], message: str
) -> None:
    path_loss = {"name": "log_distance", "exponent": 3.0, **keys} if "name" not in keys else keys
    own = shannon(snr(GIVEN_LOADS, path_loss=path_loss, carrier_hz=2e9))
    with pytest.raises(UserError, match=message):
        own.rates_of(paths(network(stations, devices), own))
