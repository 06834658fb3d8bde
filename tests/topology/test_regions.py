"""Several clouds: each is the entry point of its region, and they are joined in a mesh or a ring."""

from __future__ import annotations

import networkx as nx
from hypothesis import given
from hypothesis import strategies as st
from some_topologies import kinds, of_kind, places

from fedsim.topology.factories import Regions
from fedsim.topology.graph import NodeKind

some_regions = st.builds(
    Regions,
    regions=st.integers(2, 11),
    factories_per_region=st.integers(1, 11),
    devices_per_factory=st.integers(1, 4),
    stations_per_factory=st.integers(1, 2),
    joined=st.sampled_from(["mesh", "ring"]),
)


@given(some_regions)
def test_regions_have_what_was_ordered(settings: Regions) -> None:
    topology = settings.build()
    factories = settings.regions * settings.factories_per_region
    assert kinds(topology) == {
        NodeKind.CLOUD: settings.regions,
        NodeKind.EDGE: factories,
        NodeKind.BASE_STATION: factories * settings.stations_per_factory,
        NodeKind.SENSOR: factories * settings.devices_per_factory,
    }
    for kind in NodeKind:
        called = of_kind(kind, topology)
        assert called == sorted(called)


@given(some_regions)
def test_clouds_are_joined_as_ordered_and_everybody_else_has_one_cloud(settings: Regions) -> None:
    topology = settings.build()
    core = nx.Graph(topology.graph.subgraph(topology.clouds))
    if settings.joined == "mesh" or settings.regions == 2:
        assert nx.is_isomorphic(core, nx.complete_graph(settings.regions))
    else:
        assert nx.is_isomorphic(core, nx.cycle_graph(settings.regions))
    for sensor in topology.sensors:
        region = sensor.partition("/")[0]
        route = topology.route(sensor, f"{region}/cloud")
        assert len(route) == 4
        assert {node.partition("/")[0] for node in route} == {region}


def test_the_clouds_of_other_regions_are_entry_points() -> None:
    settings = Regions(regions=4, factories_per_region=2, devices_per_factory=1, joined="ring", core_delay_s=0.02)
    topology = settings.build()
    assert topology.cloud == "region-1/cloud"
    assert topology.route("region-3/factory-2/edge", topology.cloud) == (
        "region-3/factory-2/edge",
        "region-3/cloud",
        "region-2/cloud",  # as far as over region 4
        "region-1/cloud",
    )
    assert topology.graph.edges["region-4/cloud", "region-1/cloud"] == {"rate_bps": None, "delay_s": 0.02}


def test_regions_lie_region_spacing_apart() -> None:
    at = places(Regions(regions=2, factories_per_region=1, devices_per_factory=1, region_spacing_m=2e3).build())
    assert [at[f"region-{number}/factory-1/edge"] for number in (1, 2)] == [(-1000.0, 0.0), (1000.0, 0.0)]
