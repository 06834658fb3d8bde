"""From topology and settings to hops: whose air is shared with whom, which way is up, which rate holds."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from sending import failing, send
from simpy import Environment
from small_worlds import BASE, RING, scenario, simulated

from fedsim.errors import Misfit, UserError
from fedsim.kernel.streams import Streams
from fedsim.metrics.tables import transfers_table
from fedsim.network.attachment import Attachment
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.hop import Direction
from fedsim.network.wires import Wires

PARK = {"name": "factory_park", "factories": 2, "devices_per_factory": 4, "stations_per_factory": 2}
QUICK_WORK = {"devices.classes.sensor.compute": {"name": "per_sample", "seconds_per_sample": 0.05}}


def wires(changes: dict[str, Any]) -> Wires:
    settings = scenario(changes)
    return Wires(Environment(), settings.topology.build(), settings.network, Streams(1))


def attached(found: Wires, sensor: str) -> Attachment:
    (attachment,) = (one for one in found.attachments if one.sensor == sensor)
    return attachment


def test_up_and_down_are_the_same_links_in_opposite_order() -> None:
    found = wires({"topology": PARK})
    up, down = attached(found, "factory-1/sensor-1").uplink, attached(found, "factory-1/sensor-1").downlink
    labels = ["cell factory-1/station-1", "factory-1/edge -- factory-1/station-1", "cloud -- factory-1/edge"]
    assert [hop.link.label for hop in up] == labels
    assert [hop.link for hop in down] == [hop.link for hop in reversed(up)]
    assert {hop.direction for hop in up} == {Direction.UPLINK}
    assert {hop.direction for hop in down} == {Direction.DOWNLINK}
    assert [hop.link.access for hop in up] == [True, False, False]


def test_on_a_level_the_way_up_is_as_the_topology_lists_it() -> None:
    found = wires({"topology": RING})
    stations = ("east-station", "west-station")
    [there], [back] = found.path(*stations), found.path(*reversed(stations))
    assert (there.direction, back.direction) == (Direction.UPLINK, Direction.DOWNLINK)
    assert there.link is back.link and there.channel is not back.channel


def test_links_are_numbered_cells_first() -> None:
    links = wires({"topology": PARK}).links
    assert [link.index for link in links] == list(range(10))
    assert [link.access for link in links] == [True] * 4 + [False] * 6
    assert len({link.label for link in links}) == 10


def test_sensors_of_one_station_share_its_air_and_its_wires() -> None:
    found = wires({"topology": PARK})
    one, two, three = (attached(found, f"factory-1/sensor-{number}").uplink for number in (1, 2, 3))
    assert [a.channel is b.channel for a, b in zip(one, two, strict=True)] == [True, True, True]
    assert [a.channel is b.channel for a, b in zip(one, three, strict=True)] == [False, False, True]


@pytest.mark.parametrize(("duplex", "shared"), [("full", False), ("shared", True)])
def test_only_a_shared_cell_has_one_channel_for_both_ways(duplex: str, shared: bool) -> None:
    found = wires({"network.cell.duplex": duplex})
    up, down = attached(found, "sensor-1").uplink, attached(found, "sensor-1").downlink
    assert (up[0].channel is down[1].channel) is shared
    assert up[1].channel is not down[0].channel  # a wire is full duplex


@pytest.mark.parametrize(
    ("duplex", "first_up", "second_up"),
    [
        # down: 1 - 5 and 5 - 9; work of 0.5 s; up: 8 s each
        ("full", (5.5, 5.5, 13.5), (9.5, 13.5, 21.5)),
        ("shared", (5.5, 9.0, 17.0), (9.5, 17.0, 25.0)),
    ],
)
def test_in_a_shared_cell_an_upload_waits_for_downloads(
    duplex: str, first_up: tuple[float, ...], second_up: tuple[float, ...]
) -> None:
    hops = simulated({"network.cell.duplex": duplex, **QUICK_WORK}).trace.hops.array()
    up = hops[hops["access"] & hops["uplink"]]
    begun_s = up["start_s"] + up["queued_s"]
    assert [*zip(up["start_s"], begun_s, up["end_s"], strict=True)] == [first_up, second_up]


def test_a_rate_in_the_topology_goes_before_the_default() -> None:
    star = {"name": "star", "devices": 1, "backhaul_rate_bps": 5e6, "backhaul_delay_s": 0.02}
    _, wire = attached(wires({"topology": star}), "sensor-1").uplink
    assert (wire.rate_bps, wire.channel.delay_s) == (5e6, 0.02)
    _, wire = attached(wires({}), "sensor-1").uplink
    assert (wire.rate_bps, wire.channel.delay_s) == (8_000, 0.0)


def test_no_default_is_needed_when_every_wire_has_a_rate() -> None:
    star = {"name": "star", "devices": 1, "backhaul_rate_bps": math.inf}
    _, wire = attached(wires({"topology": star, "network.link": None}), "sensor-1").uplink
    assert (wire.rate_bps, wire.channel.delay_s, wire.loss.probability) == (math.inf, 0.0, 0.0)


def test_a_wire_without_any_rate_is_refused() -> None:
    with pytest.raises(UserError, match=r"cloud -- station has no rate; give it rate_bps .* network.link.rate_bps"):
        wires({"network.link": None})


def test_a_network_whose_air_reaches_nobody_is_refused(tmp_path: Path) -> None:
    (tmp_path / "hall.csv").write_text("time_s,uplink_bps,downlink_bps\n0,0,2000\n", encoding="utf-8")
    radio = {"name": "trace", "path": str(tmp_path / "hall.csv"), "out_of_coverage": "exclude"}
    with pytest.raises(UserError, match="reaches none of the sensors.*; bring at least one of them into coverage"):
        simulated({"network.cell.radio": radio})


def test_a_cell_of_its_own_goes_before_the_common_one() -> None:
    slow = {"radio": {"name": "fixed", "profile": "nb_iot_nb1"}, "delay_s": 0.3, "loss": {"probability": 0.1}}
    found = wires({"topology": PARK, "network.cells": {"factory-2/station-1": slow}})
    ours, others = attached(found, "factory-2/sensor-1").uplink[0], attached(found, "factory-1/sensor-1").uplink[0]
    assert (ours.rate_bps, ours.channel.delay_s, ours.loss.probability) == (62_500, 0.3, 0.1)
    assert (others.rate_bps, others.channel.delay_s, others.loss.probability) == (1_000, 0.0, 0.0)


def test_a_cell_of_a_station_that_does_not_exist_is_refused() -> None:
    radio = {"radio": {"name": "fixed", "profile": "nb_iot_nb1"}}
    with pytest.raises(UserError, match="'statoin', which is no base station with sensors; did you mean 'station'"):
        wires({"network.cells": {"statoin": radio}})


@pytest.mark.parametrize("station", [None, "factory-2/station-1"])
@pytest.mark.parametrize(
    ("row", "key", "problem"),
    [
        ("0,nobody,1000,2000\n0,*,1000,2000", ["path"], "has no sensor 'nobody'"),
        ("0,*,0,2000", [], "no coverage in the uplink"),
        ("5,*,1000,2000", ["path"], "must be at 0"),
    ],
    ids=["no such sensor", "no coverage", "nothing from 0 s on"],
)
def test_a_message_names_the_radio_that_it_is_about(
    tmp_path: Path, row: str, key: list[str], problem: str, station: str | None
) -> None:
    (tmp_path / "hall.csv").write_text(f"time_s,device,uplink_bps,downlink_bps\n{row}\n", encoding="utf-8")
    radio = {"name": "trace", "path": str(tmp_path / "hall.csv")}
    where = {"network.cell.radio": radio} if station is None else {"network.cells": {station: {"radio": radio}}}
    with pytest.raises(Misfit, match=problem) as refused:
        wires({"topology": PARK, **where})
    assert [*refused.value.key] == [*(["cell"] if station is None else ["cells", station]), "radio", *key]


def test_a_sensor_whose_rates_cannot_be_known_is_told_why() -> None:
    budget = {
        "name": "link_budget",
        **{"carrier_hz": 1e9, "device_power_dbm": 20.0, "station_power_dbm": 30.0},
        **{"device_noise_figure_db": 5.0, "station_noise_figure_db": 3.0, "path_loss": {"name": "free_space"}},
    }
    radio = {"name": "shannon", "profile": "pure", "bandwidth_hz": 1e6, "snr": budget}
    with pytest.raises(Misfit, match="the distance of sensor 'west-1' to its base station is unknown") as refused:
        wires({"topology": RING, "network.cells": {"west-station": {"radio": radio}}})
    assert [*refused.value.key] == ["cells", "west-station", "radio", "snr"]


def test_weights_are_by_device_class_and_for_the_air_only() -> None:
    nodes = {"cloud": {"kind": "cloud"}, "bs": {"kind": "base_station"}} | {
        name: {"kind": "sensor", "attach": "bs", "device": name} for name in ("light", "heavy")
    }
    found = wires(
        {
            "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "bs"]}]},
            "network.cell.discipline": {"name": "fair", "weights": {"heavy": 3.0}},
            "network.link.discipline": {"name": "fair"},
            "devices.classes": {name: BASE["devices"]["classes"]["sensor"] for name in ("light", "heavy")},
        }
    )
    for name, weight in (("light", 1.0), ("heavy", 3.0)):
        attachment = attached(found, name)
        assert [hop.weight for hop in attachment.uplink] == [weight, 1.0]
        assert [hop.weight for hop in attachment.downlink] == [1.0, weight]


@pytest.mark.parametrize(
    ("late_transfers", "queued_s", "there_s"), [("finish", 1.0, 9.0), ("cancel", 0.0, 8.0)], ids=["finish", "cancel"]
)
def test_whether_a_late_transfer_keeps_the_air_busy_is_the_scenarios_choice(
    late_transfers: str, queued_s: float, there_s: float
) -> None:
    # Round 1: over the wire 0 - 1, over the air from 1 to 5, but the round is over at 3.
    # Round 2: over the wire 3 - 4, over the air from 4 when it is free.
    changes = {
        "network.late_transfers": late_transfers,
        "protocols": [{"name": "fedavg", "clients": 1, "deadline_s": 3.0}],
        "stop.rounds": 3,
    }
    hops = simulated(changes).trace.hops.array()
    over_the_air = hops[hops["access"]]
    (second,) = over_the_air[over_the_air["start_s"] == 4.0]
    assert second["queued_s"] == queued_s
    if late_transfers == "finish":
        assert over_the_air["end_s"].tolist()[:2] == [5.0, there_s]
    else:
        assert over_the_air["end_s"].tolist()[:2] == [3.0, 6.0]  # each is cut at the end of its round
        assert over_the_air["withdrawn_bytes"].tolist()[:2] == [500.0, 500.0]


def test_bytes_are_counted_by_link_direction_and_client_wasted_ones_included() -> None:
    # Over the air: client 0 down 1 - 5, client 1 down 5 - 9; the deadline at 7 cuts the second in the middle of 1000 B.
    changes = {
        "network.late_transfers": "cancel",
        "protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 7.0}],
    }
    world = simulated(changes)
    table = transfers_table(world.trace, list(world.network.in_flight), world.network.links, ["a", "b"])
    counted = table.groupby(["link", "direction", "client"], observed=True)["bytes"].sum().to_dict()
    assert counted == {
        ("cloud -- station", "downlink", "a"): 1_000.0,
        ("cloud -- station", "downlink", "b"): 1_000.0,
        ("cell station", "downlink", "a"): 1_000.0,
        ("cell station", "downlink", "b"): 500.0,
    }
    cut = table[table["outcome"] == "cancelled"]
    assert (cut["bytes"].tolist(), cut["withdrawn_bytes"].tolist()) == ([500.0], [500.0])


def test_a_wire_with_a_rate_of_its_own_has_the_default_delay() -> None:
    world = failing(
        topology={"name": "star", "devices": 2, "backhaul_rate_bps": 4_000.0},
        network__link={"rate_bps": 8_000.0, "delay_s": 3.0},
    )
    assert world.env.run(until=send(world)) == 8.0 + 2.0 + 3.0


def test_no_way_to_the_server_is_kept_before_somebody_sends_over_it(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[str, ...]] = []
    path = Wires.path
    monkeypatch.setattr(Wires, "path", lambda self, *nodes: [made.append(nodes), path(self, *nodes)][1])
    found = wires({"topology": {"name": "ring", "factories": 200, "devices_per_factory": 1}})
    assert all(attachment.reachable for attachment in found.attachments)
    assert len(found.used()) == 400  # from each station and from each edge server one step towards the cloud
    assert max(found.steps()) == 102  # half way round, the LAN, and the backhaul
    assert made == []
    assert len(found.attachments[100].backbone.uplink) == 102
    assert len(made) == 2


@pytest.mark.parametrize(
    ("server", "near"), [("cluod", "; did you mean 'cloud'?"), ("east-1", "; did you mean 'east'?")]
)
def test_a_server_is_a_node_of_the_topology_and_no_sensor(server: str, near: str) -> None:
    with pytest.raises(
        Misfit, match=f"'{server}' must be a cloud, an edge server or a base station of the topology{re.escape(near)}"
    ):
        wires({"topology": RING, "network.server": server})


def test_wires_have_the_discipline_that_the_network_says() -> None:
    found = wires({"network.link": {"rate_bps": 8_000.0, "discipline": {"name": "dedicated"}}})
    assert isinstance(found.path("station", "cloud")[0].channel, DedicatedChannel)
