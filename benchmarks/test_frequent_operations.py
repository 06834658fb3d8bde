"""What happens most often: a row in the trace, a named stream, a message over a link, a node of the graph.

Each against what one would write otherwise, in the same group, so that the table shows ratios.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd
import pytest
import simpy
from pytest_benchmark.fixture import BenchmarkFixture

from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Table, Trace
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.graph import Graph
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Hop, Link, Medium
from fedsim.network.network import Network
from fedsim.network.packets import Transport

ROWS = 100_000
MESSAGES = 5_000


@pytest.mark.benchmark(group=f"record {ROWS} rows of six numbers")
def test_trace_table(benchmark: BenchmarkFixture) -> None:
    def record() -> int:
        table = Table([(name, "f8") for name in "abcdef"])
        for row in range(ROWS):
            table.append((row, 1.0, 2.0, 3.0, 4.0, 5.0))
        return len(table.array())

    assert benchmark(record) == ROWS


@pytest.mark.benchmark(group=f"record {ROWS} rows of six numbers")
def test_list_of_dicts_to_pandas(benchmark: BenchmarkFixture) -> None:
    def record() -> int:
        rows = []
        for row in range(ROWS):
            rows.append({"a": row, "b": 1.0, "c": 2.0, "d": 3.0, "e": 4.0, "f": 5.0})
        return len(pd.DataFrame(rows))

    assert benchmark(record) == ROWS


def _fedsim_messages(env: simpy.Environment) -> None:
    link = Link(0, ("link",), access=True, medium=Medium(partial(tuple, [SerialChannel(env)])))
    hop = Hop(link, True, 1e6)
    network = Network(env, Trace(), Streams(1), [link], Transport())
    for client in range(MESSAGES):
        env.process(network.carry(client, (hop,), 1e4))


def _plain_simpy_messages(env: simpy.Environment) -> None:
    resource, records = simpy.Resource(env, 1), []

    def send(client: int) -> simpy.events.ProcessGenerator:
        start_s = env.now
        with resource.request() as request:
            yield request
            yield env.timeout(8e4 / 1e6)
        records.append((client, start_s, env.now))

    for client in range(MESSAGES):
        env.process(send(client))


@pytest.mark.benchmark(group=f"{MESSAGES} messages through one first-come-first-served link", disable_gc=True)
@pytest.mark.parametrize("messages", [_fedsim_messages, _plain_simpy_messages])
def test_serial_link(benchmark: BenchmarkFixture, messages: Callable[[simpy.Environment], None]) -> None:
    def simulate() -> float:
        env = simpy.Environment()
        messages(env)
        env.run()
        return float(env.now)

    assert benchmark(simulate) == pytest.approx(MESSAGES * 0.08)


@pytest.mark.benchmark(group="open a named stream")
def test_named_stream(benchmark: BenchmarkFixture) -> None:
    streams = Streams(1)
    benchmark(lambda: streams("batches", 17, 3).generator())


@pytest.mark.benchmark(group="make 1,000 keyed nodes")
def test_graph_nodes(benchmark: BenchmarkFixture) -> None:
    def build() -> int:
        graph, streams = Graph("family"), Streams(1)
        first = graph.node(Init("m"), {}, stream=streams("model/init")).output("classifier")
        training, objective, codec = TrainingSettings(learning_rate=0.1, batch_size=10), Plain(), Float32()
        nodes = [
            graph.node(
                Train("m", training, objective, codec, Seen("d", client, 20)),
                {Slot("model", part="classifier"): first},
                stream=streams("batches", client),
            )
            for client in range(1_000)
        ]
        return len(nodes)

    assert benchmark(build) == 1_000
