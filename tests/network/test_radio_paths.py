"""Where sensors stand: distances, and positions that depend on nothing but what comes before in the topology."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
from small_worlds import prepared

from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.network.radio_paths import by_radio, first_rates, paths_of
from fedsim.radio.fixed import Fixed
from fedsim.radio.settings import RadioPath, RadioSettings, Rates
from fedsim.radio.shannon import Shannon
from fedsim.topology.graph import Topology

PLANT = {
    "cloud": {"kind": "cloud"},
    "edge": {"kind": "edge"},
    "north": {"kind": "base_station", "position_m": (0.0, 0.0)},
    "empty": {"kind": "base_station", "position_m": (9.0, 9.0)},
    "south": {"kind": "base_station", "position_m": (100.0, 0.0)},
    "a": {"kind": "sensor", "position_m": (103.0, 4.0)},
    "b": {"kind": "sensor", "position_m": (6.0, 8.0)},
    "c": {"kind": "sensor", "position_m": None},
}
LINKS = [
    *(("cloud", "edge"), ("edge", "north"), ("edge", "empty"), ("edge", "south")),
    *(("a", "south"), ("b", "north"), ("c", "south")),
]


def plant(*links: tuple[str, str], **more: dict[str, Any]) -> Topology:
    """With more nodes in front, in the order of their names, and with more links."""
    graph: nx.Graph[str] = nx.Graph()
    graph.add_nodes_from((more | PLANT).items())
    graph.add_edges_from([*LINKS, *links])
    return Topology(graph)


def places(topology: Topology) -> list[tuple[str, int, int, float | None]]:
    return [(site.sensor, site.index, site.station, site.distance_m) for site in paths_of(topology, Streams(1))]


def test_positions_are_among_sensors_and_among_base_stations() -> None:
    assert places(plant()) == [("a", 0, 2, 5.0), ("b", 1, 0, 10.0), ("c", 2, 2, None)]


def test_servers_change_no_position() -> None:
    more = {"roof": {"kind": "edge"}, "other": {"kind": "cloud"}}
    assert places(plant(("roof", "other"), ("roof", "cloud"), **more)) == places(plant())


def test_more_sensors_at_the_end_change_no_shadow() -> None:
    def rates(devices: int) -> list[tuple[float, float]]:
        shadowed = {
            "name": "shannon",
            "profile": "pure",
            "bandwidth_hz": 1e3,
            "snr": {"name": "given", "uplink_db": 1.0, "downlink_db": 2.0, "shadowing": {"sigma_db": 6.0}},
        }
        world = prepared({"topology.devices": devices, "network.cell.radio": shadowed})[0]
        air = [client.attachment.air for client in world.clients]
        return [(uplink.rate_bps, downlink.rate_bps) for uplink, downlink in air]

    few, many = rates(3), rates(7)
    assert many[:3] == few
    assert len(set(many)) == 7


def test_sites_are_gathered_by_radio_in_the_order_of_their_first_sensors() -> None:
    one, other = Fixed(uplink_bps=1.0, downlink_bps=2.0), Fixed(uplink_bps=3.0, downlink_bps=4.0)
    radios: dict[str, RadioSettings] = {"a": other, "b": one, "c": other}
    gathered = by_radio(paths_of(plant(), Streams(1)), radios.__getitem__)
    assert [(radio, [site.sensor for site in sites]) for radio, sites in gathered] == [
        (other, ["a", "c"]),
        (one, ["b"]),
    ]


def test_who_has_no_rate_is_left_to_be_told_why() -> None:
    budget = {
        "name": "link_budget",
        "carrier_hz": 1e9,
        "device_power_dbm": 20.0,
        "station_power_dbm": 30.0,
        "device_noise_figure_db": 5.0,
        "station_noise_figure_db": 3.0,
        "path_loss": {"name": "free_space"},
    }
    far, near = Shannon(profile="pure", bandwidth_hz=1e6, snr=budget), Fixed(uplink_bps=1.0, downlink_bps=2.0)
    sites = list(paths_of(plant(), Streams(1)))
    radios: dict[str, RadioSettings] = {"a": far, "b": near, "c": far}
    known = list(first_rates(sites, radios.__getitem__))
    assert known == list(zip(sites, [None, Rates(1.0, 2.0), None], strict=True))
    assert far.rates(sites[0]).uplink_bps > 0
    with pytest.raises(UserError, match="the distance of sensor 'c' to its base station is unknown"):
        far.rates(sites[2])


def test_a_radio_that_refuses_one_device_is_asked_for_each_of_them_again() -> None:
    class Fussy(Fixed):
        def rates(self, site: RadioPath) -> Rates:
            if site.sensor == "b":
                raise UserError("not this one")
            return super().rates(site)

    fussy = Fussy(uplink_bps=1.0, downlink_bps=2.0)
    known = first_rates(paths_of(plant(), Streams(1)), lambda _: fussy)
    assert [rates for _, rates in known] == [None, None, None]


def test_what_is_worked_out_in_pieces_is_what_is_worked_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    radio = Shannon.model_validate(
        {
            **{"profile": "pure", "bandwidth_hz": 1e6},
            "snr": {"name": "given", "uplink_db": 3.0, "downlink_db": 9.0, "shadowing": {"sigma_db": 4.0}},
        }
    )
    at_once = list(first_rates(paths_of(plant(), Streams(1)), lambda _: radio))
    monkeypatch.setattr("fedsim.network.radio_paths.MANY", 2)
    assert list(first_rates(paths_of(plant(), Streams(1)), lambda _: radio)) == at_once
    assert len(at_once) == 3
