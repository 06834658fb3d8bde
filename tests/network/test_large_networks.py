"""A large network costs what is used of it: counted in objects, not in seconds."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from peak_memory import peak_bytes
from small_worlds import scenario, simulated
from tiers import mostly_long

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.experiment.description import simulations
from fedsim.experiment.validate import validate
from fedsim.kernel.clock import Clock
from fedsim.kernel.streams import Streams
from fedsim.network import network as network_module
from fedsim.network.attachment import Cuts
from fedsim.network.wires import Wires
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.load import written_out
from fedsim.topology.factories import Ring
from fedsim.viz.describe_tables import description_tables

FAULT = {"link": ["factory-0001/edge", "factory-1000/edge"], "at_s": 0.0}


def ring(factories: int, **changes: Any) -> dict[str, Any]:
    return {"topology": {"name": "ring", "factories": factories, "devices_per_factory": 1}, **changes}


def test_channels_and_hops_of_wires_are_made_when_something_is_sent_there() -> None:
    settings = scenario(ring(30))
    wires = Wires(Clock(), settings.topology.build(), settings.network, Streams(1))
    assert not any(link.channels_used for link in wires.links)
    way = wires.attachments[1].uplink
    assert not any(link.channels_used for link in wires.links)
    assert way[0].channel is way[0].link.channels[0] and way[1] is wires.attachments[1].backbone.uplink[0]
    assert sum(bool(link.channels_used) for link in wires.links) == 1
    assert len({id(link.medium) for link in wires.links}) == 2  # of the air, and of the wires


def test_links_alike_and_infrastructure_are_kept_once() -> None:
    topology = Ring(factories=50, devices_per_factory=1).build()
    links = {id(link) for _, _, link in topology.graph.edges(data=True)}
    assert len(links) == 1
    for node in topology.infrastructure:
        assert topology.infrastructure.nodes[node] is topology.graph.nodes[node]
    copy = topology.graph.copy()  # is the caller's own
    copy["cloud"]["factory-01/edge"]["rate_bps"] = 1.0
    assert topology.graph["cloud"]["factory-01/edge"]["rate_bps"] is None


@pytest.mark.parametrize("routing", ["fixed", "around_outages"])
def test_an_outage_in_a_ring_lists_nobodys_way(routing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = scenario(ring(1000, faults={"scheduled": [FAULT], "routing": routing}))
    world = build_world(settings, settings.protocols[0], gather_materials(settings, 1), lambda *_: None)  # type: ignore[arg-type,return-value]
    listed: list[object] = []
    monkeypatch.setattr(Wires, "path", lambda *nodes: listed.append(nodes) or ())
    world.env.run(until=0.5)
    reachable = sum(client.attachment.reachable for client in world.clients)
    lost = sum(world.outages.fate(client.attachment) is not None for client in world.clients)
    assert (reachable, lost) == ((501, 499) if routing == "fixed" else (1000, 0))
    assert not listed


def test_a_node_behind_a_cut_is_found_for_all_nodes_at_once() -> None:
    settings = scenario(ring(5))
    wires = Wires(Clock(), settings.topology.build(), settings.network, Streams(1))
    towards = {"factory-1/edge": "cloud", "factory-2/edge": "factory-1/edge", "factory-5/edge": "factory-1/edge"}
    cuts = Cuts()
    one, other = (wires.wire("factory-1/edge", f"factory-{number}/edge") for number in (2, 5))
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, False, False]
    cuts.add(one)
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, True, False]
    cuts.add(other)
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, True, True]
    cuts.discard(one)
    assert [cuts.on_the_way(node, towards) for node in towards] == [False, False, True]


def test_describe_leaves_out_rounds_that_would_take_too_long_and_says_so() -> None:
    protocols = [{"name": "fedavg", "fraction": 1.0, "label": "all"}, {"name": "fedavg", "clients": 2, "label": "few"}]
    facts, _ = describe(scenario(ring(1_200, stop={"rounds": 2}, protocols=protocols)))
    everybody, few = facts["protocols"]
    assert re.match(r"the messages of a round lead over about 72\d,\d00 hops, and desc", everybody["not_simulated"])
    assert "describe simulates at most 500,000 for all protocols together" in everybody["not_simulated"]
    assert (everybody["rounds"], everybody["run"]) == ([], None)
    assert few["not_simulated"] is None and few["run"]["rounds"] == 2
    shown = "\n".join(table.cells.to_string() for table in description_tables(facts))
    assert "none: too many hops to simulate here" in shown and "more with --most-hops" in shown


@pytest.mark.parametrize(
    ("most_hops", "rounds"), [(128, [2, 2]), (127, [2, 1]), (123, [2, 0]), (8, [2, 0]), (4, [1, 0]), (3, [0, 0])]
)
def test_what_has_been_simulated_leaves_less_for_the_next_protocol(most_hops: int, rounds: list[int]) -> None:
    """Each message goes over the air and one wire, down and up: four hops a round. The second protocol's network of
    four nodes counts as 112 more."""
    alike = [{"name": "fedavg", "clients": 1, "label": label} for label in ("one", "another")]
    facts, _ = describe(scenario({"stop": {"rounds": 2}, "protocols": alike}), most_hops=most_hops)
    assert [len(one["rounds"]) for one in facts["protocols"]] == rounds
    for one in facts["protocols"]:  # what the whole run takes is known from two rounds, not from one
        known = len(one["rounds"]) == 2
        assert (one["run"] is not None, one["not_simulated"] is None) == (known, known)


@pytest.mark.parametrize(("most_hops", "rounds"), [(12, 2), (11, 1), (7, 0)])
def test_nodes_beyond_a_number_leave_less_to_simulate(
    most_hops: int, rounds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Four nodes, of which two count as two hops each; a round of one client has four."""
    monkeypatch.setattr(simulations, "LARGE_NODES", 2)
    settings = scenario({"stop": {"rounds": 2}, "protocols": [{"name": "fedavg", "clients": 1}]})
    facts, _ = describe(settings, most_hops=most_hops)
    (told,) = facts["protocols"]
    assert len(told["rounds"]) == rounds
    assert rounds == 2 or "over about 4 hops, so large a network counts as 4, and" in told["not_simulated"]


def test_compute_times_are_checked_once_for_all_protocols(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(World, "compute_seconds", lambda world, client, samples: asked.append(client))
    many = [{"name": "fedavg", "clients": 1, "label": str(number)} for number in range(5)]
    validate(scenario({"protocols": many}))
    assert len(asked) == 2


MANY = [
    {"name": "star", "devices": 1_000_000},
    {"name": "explicit", "nodes": {"sensor": {"kind": "sensor", "count": 1_000_000, "attach": "station"}}},
]
ASKED = [("validate", MANY[1])]


@pytest.mark.parametrize(("command", "network"), mostly_long(product(["validate", "describe"], MANY), now=ASKED))
def test_a_network_beyond_the_limit_of_a_quick_command_is_refused_before_it_is_built(
    command: str, network: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "large.yaml"
    path.write_text(written_out(scenario()))
    assert main([command, str(path), "--set", f"topology={json.dumps(network)}"]) == 2
    told = capsys.readouterr().err
    assert "topology: the network has more than 301,000 nodes; allow more with --most-nodes" in told


@pytest.mark.parametrize("command", ["validate", "describe"])
def test_more_nodes_are_allowed_where_they_are_asked_for(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(written_out(scenario()))  # the cloud, a base station and two sensors
    assert main([command, str(path), "--most-nodes", "3"]) == 2
    assert "more than 3 nodes" in capsys.readouterr().err
    assert main([command, str(path), "--most-nodes", "4"]) == 0


def test_failures_for_ever_while_nothing_ends_stop_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MOST_CHANGES", 50)
    station = {"node": "station", "at_s": 0.0, "for_s": 0.001, "every_s": 0.0010000001}
    with pytest.raises(UserError, match=r"things failed 50 times while no message came to an end; let them fail less"):
        simulated({"faults": {"scheduled": [station]}})


def test_a_packet_is_tried_10_000_times_at_most() -> None:
    with pytest.raises(ValueError, match="less than or equal to 10000"):
        scenario({"network.link": {"rate_bps": 1e6, "loss": {"probability": 0.999, "attempts": 10_001}}})


LARGEST = {
    "factory_park": {"factories": 100_000, "devices_per_factory": 1},
    "ring": {"factories": 100_000, "devices_per_factory": 1},
    "star": {"devices": 300_000},
}


@pytest.mark.long
@pytest.mark.parametrize("command", ["validate", "describe"])
@pytest.mark.parametrize("topology", LARGEST)
def test_checking_the_largest_networks_takes_at_most_500_mb(command: str, topology: str, tmp_path: Path) -> None:
    written = scenario({"topology": {"name": topology, **LARGEST[topology]}})
    path = tmp_path / "large.yaml"
    path.write_text(written_out(written))
    assert peak_bytes(command, path) <= 500_000_000
