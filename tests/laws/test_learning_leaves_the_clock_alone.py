"""Law 1: learning never changes what happens on the clock, except that a run may end at its target accuracy."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from grouped_protocols import GROUPED
from small_worlds import EVERYTHING_HAPPENS, scenario, simulated

from fedsim.experiment.host import HostOptions, Learners, host_for
from fedsim.experiment.simulate import simulate
from fedsim.protocols.exchanges.memory import Memory
from fedsim.protocols.world import Client, World
from fedsim.scenario.build import build_world, gather_materials

ROUNDS, TARGET = 40, 0.6

DIGITS = EVERYTHING_HAPPENS | {
    "stop": {"rounds": ROUNDS},
    "data": {"name": "digits", "partition": {"name": "shards", "shards_per_client": 4}},
    "model": {"name": "softmax"},
    "training": {"learning_rate": 0.1, "batch_size": 32},
    "devices.classes.sensor.compute.mean_seconds_per_sample": 0.05,
    "devices.cloud": {"compute": {"name": "flops", "flops_per_s": 1e9}},
    "network.cell.radio": {"name": "fixed", "uplink_bps": 4_000, "downlink_bps": 8_000},
}

PROTOCOLS: dict[str, dict[str, Any]] = {
    "fedavg": {"name": "fedavg", "clients": 3, "deadline_s": 60.0, "over_selection": 1.5},
    "fedprox": {"name": "fedprox", "clients": 4, "deadline_s": 50.0, "mu": 0.1, "busy": "abort"},
    "centralised": {"name": "centralised"},
}
PARTED = DIGITS | {"model": {"name": "mlp", "hidden": [8]}}

STREAMS: dict[str, dict[str, Any]] = {
    "fresh": {"samples": 20},
    "arriving": {
        "samples": 20,
        "augmentation": {},
        "arrival": {"samples_per_s": 0.7, "buffer_samples": 30},
        "drift": {"name": "gradual", "begin": 40.0, "end": 300.0, "by": "sim_time_s"},
    },
}

Learned = Callable[[dict[str, Any]], World]


@pytest.fixture
def learned(tmp_path: Path) -> Learned:
    """Runs a scenario with real training."""

    def run(changes: dict[str, Any]) -> World:
        settings = scenario(changes | {"learn": True})
        materials = gather_materials(settings, 1)
        options = HostOptions(executor="serial", checkpoint_interval_s=math.inf)
        (protocol,) = settings.protocols
        with Learners(host_for(options, materials.tables, learn=True), tmp_path, "run", print) as learners:
            world = build_world(settings, protocol, materials, learners.make)
            simulate(world, protocol, settings.stop)
        return world

    return run


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("every", [1, 3])
def test_a_run_that_ends_at_its_target_is_a_prefix_of_one_without_learning(
    learned: Learned, protocol: dict[str, Any], every: int
) -> None:
    changes = DIGITS | {"protocols": [protocol], "stop.target_accuracy": TARGET, "evaluate": {"every": every}}
    short, long = learned(changes), simulated(changes)
    for name, table in short.trace.tables.items():
        rows, all_rows = table.array(), long.trace.tables[name].array()
        assert np.array_equal(rows, all_rows[: len(rows)]), name

    ended = short.loop.rounds_done
    assert len(short.trace.rounds) == len(ended) < len(long.trace.rounds) == ROUNDS
    accuracies = [done.metrics["global"]["accuracy"] for done in ended if done.metrics]
    assert len(accuracies) == len(ended) // every
    (reached, *confirming) = accuracies[-4:]
    assert reached >= TARGET and sum(confirming) / 3 >= TARGET - 0.005
    assert short.loop.target_round is ended[-1 - 3 * every]


STOPS: dict[str, dict[str, Any]] = {
    "rounds": {"rounds": 4},
    "time": {"sim_time_s": 400.0},
    "bytes": {"transfer_bytes": 100_000.0, "rounds": 20},
}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS)
def test_without_a_target_the_trace_with_learning_is_the_trace_without(
    learned: Learned, protocol: dict[str, Any], stop: dict[str, Any]
) -> None:
    changes = DIGITS | {"protocols": [protocol], "stop": stop}
    with_learning, without = learned(changes), simulated(changes)
    assert with_learning.trace.digest() == without.trace.digest()
    assert with_learning.env.now == without.env.now
    assert len(without.trace.hops) >= 8
    assert all("global" in done.metrics for done in with_learning.loop.rounds_done)
    assert not any(done.metrics for done in without.loop.rounds_done)


@pytest.mark.parametrize("device_memory", ["kept", "lost"])
@pytest.mark.parametrize("stream", [{}, *STREAMS.values()], ids=["none", *STREAMS])
@pytest.mark.parametrize("protocol", GROUPED.values(), ids=GROUPED)
def test_so_it_is_in_groups_and_in_parts(
    learned: Learned, protocol: dict[str, Any], stream: dict[str, Any], device_memory: str
) -> None:
    faults = {"random": [{"of": "sensors", "mean_up_s": 150.0, "mean_down_s": 10.0}], "device_memory": device_memory}
    changes = PARTED | {"protocols": [protocol], "stop": {"rounds": 9}, "faults": faults}
    changes |= {"data.stream": stream} if stream else {}
    with_learning, without = learned(changes), simulated(changes)
    assert with_learning.trace.digest() == without.trace.digest()
    assert without.trace.rounds.array()["participants"].any()
    memories = [[_held(client) for client in world.clients] for world in (with_learning, without)]
    assert memories[0] == memories[1]


def _held(client: Client) -> tuple[int, ...]:
    """What the clock knows of a client's memory."""
    memory = Memory.held_by(client)
    if memory is None:
        return ()
    rows = memory.database.rows if memory.database else 0
    return memory.block, memory.backup_block, rows, len(memory.seen), memory.most_rows, memory.most_extractors


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "centralised"])
@pytest.mark.parametrize("stream", STREAMS)
def test_so_it_is_where_samples_come_and_go(learned: Learned, protocol: str, stream: str) -> None:
    changes = DIGITS | {"protocols": [PROTOCOLS[protocol]], "stop": {"rounds": 6}, "data.stream": STREAMS[stream]}
    with_learning, without = learned(changes), simulated(changes)
    for name, table in with_learning.trace.tables.items():
        assert np.array_equal(table.array(), without.trace.tables[name].array()), name
    assert [client.stream for client in with_learning.clients] == [client.stream for client in without.clients]
