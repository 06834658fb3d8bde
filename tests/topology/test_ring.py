"""A ring of factories: one broken wire cuts nobody off, and the shorter way round is taken."""

from __future__ import annotations

import itertools

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from some_topologies import kinds, of_kind

from fedsim.topology.factories import Ring
from fedsim.topology.graph import NodeKind
from fedsim.topology.routing import next_hops

rings = st.integers(3, 12).flatmap(
    lambda factories: st.builds(
        Ring,
        factories=st.just(factories),
        gateways=st.integers(1, factories),
        devices_per_factory=st.integers(1, 12),
        stations_per_factory=st.integers(1, 3),
        factory_spacing_m=st.floats(1, 1e4),
    )
)


@given(rings)
def test_a_ring_has_what_was_ordered(ring: Ring) -> None:
    topology = ring.build()
    assert kinds(topology) == {
        NodeKind.CLOUD: 1,
        NodeKind.EDGE: ring.factories,
        NodeKind.BASE_STATION: ring.factories * ring.stations_per_factory,
        NodeKind.SENSOR: ring.factories * ring.devices_per_factory,
    }
    for kind in NodeKind:
        called = of_kind(kind, topology)
        assert called == sorted(called)
    assert nx.is_isomorphic(topology.graph.subgraph(of_kind(NodeKind.EDGE, topology)), nx.cycle_graph(ring.factories))


@given(rings)
def test_a_rings_gateways_are_evenly_spread_from_the_first_factory_on(ring: Ring) -> None:
    topology = ring.build()
    servers = of_kind(NodeKind.EDGE, topology)
    gateways = [number for number, server in enumerate(servers) if topology.graph.has_edge(server, "cloud")]
    assert len(gateways) == topology.graph.degree("cloud") == ring.gateways
    assert gateways[0] == 0
    gaps = [after - before for before, after in itertools.pairwise([*gateways, ring.factories])]
    assert max(gaps) - min(gaps) <= 1


@given(rings)
def test_a_ring_goes_on_without_any_one_of_its_wires(ring: Ring) -> None:
    topology = ring.build()
    for link in topology.graph.subgraph(of_kind(NodeKind.EDGE, topology)).edges:
        connected = next_hops(topology.infrastructure, "cloud", closed_links=[link])
        assert connected.keys() == topology.towards("cloud").keys()


@given(rings)
def test_a_second_gateway_makes_up_for_a_broken_backhaul_or_server(ring: Ring) -> None:
    topology = ring.build()
    everybody, servers = set(topology.towards("cloud")), set(of_kind(NodeKind.EDGE, topology))
    for gateway in [server for server in servers if topology.graph.has_edge(server, "cloud")]:
        without_wire = set(next_hops(topology.infrastructure, "cloud", closed_links=[("cloud", gateway)]))
        without_server = set(next_hops(topology.infrastructure, "cloud", closed_nodes=[gateway]))
        assert without_wire == (everybody if ring.gateways > 1 else set())
        assert without_server & servers == (servers - {gateway} if ring.gateways > 1 else set())


def test_in_a_ring_the_shorter_way_round_is_taken() -> None:
    topology = Ring(factories=6, devices_per_factory=1).build()
    server = [f"factory-{number}/edge" for number in range(1, 7)]
    assert topology.route(server[2], "cloud") == (server[2], server[1], server[0], "cloud")
    assert topology.route(server[4], "cloud") == (server[4], server[5], server[0], "cloud")
    assert topology.route(server[3], "cloud") == (server[3], server[2], server[1], server[0], "cloud")  # as far as 5, 6


def test_the_wires_of_a_ring_are_of_three_sorts() -> None:
    topology = Ring(
        factories=3, devices_per_factory=1, ring_rate_bps=1e9, ring_delay_s=0.3, backhaul_rate_bps=1e6, lan_delay_s=0.1
    ).build()
    assert topology.graph.edges["factory-1/edge", "cloud"] == {"rate_bps": 1e6, "delay_s": None}
    assert topology.graph.edges["factory-3/edge", "factory-1/edge"] == {"rate_bps": 1e9, "delay_s": 0.3}
    assert topology.graph.edges["factory-3/edge", "factory-3/station-1"] == {"rate_bps": None, "delay_s": 0.1}


def test_a_ring_has_no_more_gateways_than_factories() -> None:
    with pytest.raises(ValidationError) as refusal:
        Ring(factories=3, devices_per_factory=1, gateways=4)
    assert refusal.value.errors()[0]["msg"] == (
        "Value error, gateways=4 must be at most the number of factories, 3; a factory has one edge server"
    )
