"""What a run's table of links says about each channel."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from drawn_networks import cell, links_table, network, plant, ring_of_edges, settings, used

from fedsim.errors import UserError
from fedsim.viz.topology_map.loads import Loads, Measured, measured
from fedsim.viz.topology_map.places import Net


def loads(table: pd.DataFrame | None = None, server: str = "cloud", **of_cells: str) -> Loads:
    table = links_table(plant(), used) if table is None else table
    return measured(table, Net(plant()), settings(**of_cells), server).by_protocol["fedavg"]


def test_a_cell_that_both_directions_share_has_one_channel_with_the_load_of_both() -> None:
    assert loads(duplex="shared").air == {"bs-1": (pytest.approx(0.7),), "bs-2": (pytest.approx(0.1),)}


def test_another_cell_has_a_channel_each_way() -> None:
    assert loads(duplex="full").air == {"bs-1": (0.3, 0.4), "bs-2": (0.1, None)}


def test_nothing_sent_is_not_a_load_of_zero() -> None:
    assert loads(duplex="full").air["bs-2"][1] is None
    instant = links_table(plant(), used).assign(utilisation=0.0)  # wires without a limit take no time
    assert loads(instant).wires["edge", "cloud"] == 0.0


def test_uplink_is_what_the_end_farther_from_the_server_sends() -> None:
    assert loads().wires["edge", "cloud"] == 0.02
    assert loads().wires["cloud", "edge"] == 0.05
    assert loads(server="edge").wires["cloud", "edge"] == 0.02


def test_in_a_ring_uplink_is_the_shorter_way_round() -> None:
    topology = ring_of_edges(5)
    table = links_table(topology, lambda _, direction: {"uplink": 0.2, "downlink": 0.1}[direction])
    wires = measured(table, Net(topology), settings(), "cloud-0").by_protocol["fedavg"].wires
    assert wires["edge-1", "edge-0"] == wires["edge-2", "edge-1"] == wires["edge-4", "edge-0"] == 0.2
    assert wires["edge-0", "edge-1"] == wires["edge-0", "edge-4"] == 0.1
    assert {wires["edge-2", "edge-3"], wires["edge-3", "edge-2"]} == {0.1, 0.2}  # equally far


def test_several_seeds_are_their_mean() -> None:
    tables = [links_table(plant(), lambda *_, value=value: value, seeds=[seed]) for seed, value in ((1, 0.1), (2, 0.3))]
    assert loads(pd.concat(tables), duplex="full").air["bs-1"] == (pytest.approx(0.2), pytest.approx(0.2))


def test_each_protocol_has_its_own_loads_on_one_scale() -> None:
    tables = [links_table(plant(), used, ["fedavg"]), links_table(plant(), lambda *_: 0.002, ["fedprox"])]
    both = measured(pd.concat(tables), Net(plant()), settings("full"), "cloud")
    assert list(both.by_protocol) == ["fedavg", "fedprox"]
    assert both.by_protocol["fedprox"].air["bs-1"] == (0.002, 0.002)
    assert both.scale.get_clim()[1] == 0.5


def test_where_every_sender_has_a_channel_of_its_own_loads_are_bytes() -> None:
    both = measured(links_table(plant(), used), Net(plant()), settings(discipline="dedicated"), "cloud")
    assert both.quantity == "bytes"
    assert both.by_protocol["fedavg"].air["bs-1"] == (pytest.approx(70e6),)
    assert not both.has_unshared


def test_one_cell_without_sharing_among_others_has_no_utilisation() -> None:
    one_dedicated = settings(cells={"bs-2": cell(discipline="dedicated")})
    both = measured(links_table(plant(), used), Net(plant()), one_dedicated, "cloud")
    assert both.quantity == "utilisation"
    assert both.has_unshared
    air = both.by_protocol["fedavg"].air
    assert air["bs-1"] == (pytest.approx(0.7),)
    assert [math.isnan(load) for load in air["bs-2"] if load is not None] == [True]


def test_wires_that_nobody_shares_have_no_utilisation() -> None:
    own_wires = settings(link={"rate_bps": 1e9, "discipline": {"name": "dedicated"}})
    both = measured(links_table(plant(), used), Net(plant()), own_wires, "cloud").by_protocol["fedavg"]
    assert all(load is not None and math.isnan(load) for load in both.wires.values())
    assert both.air["bs-1"] == (pytest.approx(0.7),)


def test_a_run_that_took_no_time_has_bytes_only() -> None:
    table = links_table(plant(), used)
    in_bytes = measured(table.assign(utilisation=math.nan), Net(plant()), settings(), "cloud")
    assert in_bytes.quantity == "bytes"
    assert in_bytes.by_protocol["fedavg"].wires["cloud", "edge"] == pytest.approx(5e6)


def test_the_links_of_another_network_are_refused() -> None:
    table = links_table(plant(), used)
    with pytest.raises(UserError, match="the run used 'cell hall', which this topology does not have"):
        loads(table.replace({"link": {"cell bs-1": "cell hall"}}))
    with pytest.raises(UserError, match="the run did not have 'cell bs-2', which is in this topology"):
        loads(table[table["link"] != "cell bs-2"])


@pytest.mark.parametrize("name", ["a -- b", "cell a", " -- "])
def test_names_like_labels_do_no_harm(name: str) -> None:
    topology = network({"c": "cloud", name: "base_station", "s": "sensor"}, [("c", name), (name, "s")])
    table = links_table(topology, lambda *_: 0.5)
    wires = measured(table, Net(topology), settings(), "c").by_protocol["fedavg"].wires
    assert wires == {("c", name): 0.5, (name, "c"): 0.5}


@pytest.mark.parametrize(
    ("largest", "ceiling"), [(0.0007, 0.001), (0.011, 0.02), (0.2, 0.2), (0.21, 0.5), (0.51, 1.0), (3.4e6, 5e6)]
)
def test_a_scale_ends_at_one_two_or_five(largest: float, ceiling: float) -> None:
    both = Measured("bytes", {"fedavg": Loads({"bs": (largest, None, math.nan)}, {("a", "b"): largest / 2})})
    assert both.scale.get_clim()[1] == pytest.approx(ceiling)


def test_the_busiest_are_named() -> None:
    both = measured(links_table(plant(), used), Net(plant()), settings(), "cloud")
    assert both.busiest("fedavg", 30).split("\n") == ["busiest cell: bs-1, 70 %", "busiest wire: cloud to edge, 5 %"]


def test_where_nothing_was_sent_nothing_is_the_busiest() -> None:
    both = measured(links_table(plant(), lambda *_: 0.0), Net(plant()), settings(), "cloud")
    assert both.busiest("fedavg", 30) == ""
    assert both.scale.get_clim()[1] == 1.0
