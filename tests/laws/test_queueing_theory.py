"""Law 5: a serial link is a queue, and behaves as queueing theory says; a dedicated one never makes anybody wait.

Poisson arrivals at half the capacity. 25 replications of 1,500 messages each, the first 150 discarded (the link starts
empty); the standard error is that of the replications' means, and an estimate may be off by four of them. The power is
stated in each test: what a link would give that counted 7 bits to the byte (a fault of an eighth), or that made nobody
wait, lies far outside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator
from functools import cache

import numpy as np
import pytest
from meters import Books
from simpy import Event
from small_worlds import EVERYTHING_HAPPENS, Line, prepared

from fedsim.kernel.streams import Streams
from fedsim.metrics.tables import links_table, transfers_table
from fedsim.network.disciplines.channel import Channel
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Direction

SERVICE_S = 1.0
MEAN_BYTES = 1_000.0
RATE_BPS = 8 * MEAN_BYTES / SERVICE_S
LOAD = 0.5
REPLICATIONS, MESSAGES, WARM_UP = 25, 1_500, 150
SIGMAS = 4.0


def exponential(rng: np.random.Generator) -> list[float]:
    return rng.exponential(MEAN_BYTES, MESSAGES).tolist()


def constant(rng: np.random.Generator) -> list[float]:
    return [MEAN_BYTES] * MESSAGES


Sizes = Callable[[np.random.Generator], list[float]]


def mm1_sojourn_s(load: float, service_s: float) -> float:
    """Mean time in an M/M/1 queue: S / (1 - load)."""
    return service_s / (1 - load)


def md1_sojourn_s(load: float, service_s: float) -> float:
    """Mean time in an M/D/1 queue (Pollaczek and Khinchine): S (1 + load / (2 (1 - load)))."""
    return service_s * (1 + load / (2 * (1 - load)))


@cache
def sojourns_s(sizes: Sizes, channel: type[Channel]) -> np.ndarray:
    """(replications,) mean time of a message on a single hop under Poisson arrivals."""
    return np.array([mean_sojourn_s(sizes, channel, replication) for replication in range(REPLICATIONS)])


def mean_sojourn_s(sizes: Sizes, channel: type[Channel], replication: int) -> float:
    line = Line((RATE_BPS,), channel=channel)
    gaps_s = Streams(1)("test/arrivals", replication).generator().exponential(SERVICE_S / LOAD, MESSAGES).tolist()
    sizes_bytes = sizes(Streams(1)("test/sizes", replication).generator())

    def arrivals() -> Generator[Event, None, None]:
        for gap_s, size_bytes in zip(gaps_s, sizes_bytes, strict=True):
            yield line.env.timeout(gap_s)
            line.env.process(line.network.carry(0, line.route, size_bytes))

    line.env.process(arrivals())
    line.env.run()
    hops = line.trace.hops.array()
    hops = hops[np.argsort(hops["start_s"])][WARM_UP:]
    return float(np.mean(hops["end_s"] - hops["start_s"]))


def standard_error_s(means_s: np.ndarray) -> float:
    return float(np.std(means_s, ddof=1) / math.sqrt(len(means_s)))


@pytest.mark.parametrize(
    ("sizes", "theory_s"), [(exponential, mm1_sojourn_s), (constant, md1_sojourn_s)], ids=["M/M/1", "M/D/1"]
)
def test_the_mean_sojourn_on_a_serial_link_is_the_queues(
    sizes: Sizes, theory_s: Callable[[float, float], float]
) -> None:
    means_s = sojourns_s(sizes, SerialChannel)
    expected_s, error_s = theory_s(LOAD, SERVICE_S), standard_error_s(means_s)
    assert abs(means_s.mean() - expected_s) < SIGMAS * error_s

    def seen(faulty_s: float) -> bool:
        return abs(faulty_s - expected_s) > 2 * SIGMAS * error_s

    assert seen(theory_s(LOAD * 7 / 8, SERVICE_S * 7 / 8))  # seven bits to the byte
    assert seen(SERVICE_S)  # no queue
    assert error_s < 0.02 * expected_s


def test_on_a_dedicated_link_the_sojourn_is_the_airtime_whatever_the_load() -> None:
    assert sojourns_s(constant, DedicatedChannel) == pytest.approx(SERVICE_S, rel=1e-9)
    mean_airtimes_s = [
        np.mean(exponential(Streams(1)("test/sizes", replication).generator())[WARM_UP:]) * 8 / RATE_BPS
        for replication in range(REPLICATIONS)
    ]
    assert sojourns_s(exponential, DedicatedChannel) == pytest.approx(mean_airtimes_s, rel=1e-9)


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_littles_law_holds_on_every_channel_of_a_whole_scenario(duplex: str, late_transfers: str) -> None:
    # The mean number of messages on a channel, watched event by event, is what the table of links makes of the waits
    # and airtimes of single messages (L = lambda W), messages still in flight included.
    changes = EVERYTHING_HAPPENS | {"network.cell.duplex": duplex, "network.late_transfers": late_transfers}
    world, protocol = prepared(changes)
    books = Books.on(world)
    for _ in books.steps_until(world.env.process(protocol.run(world))):
        pass
    transfers = transfers_table(
        world.trace, list(world.network.in_flight), world.network.links, [client.name for client in world.clients]
    )
    table = links_table(transfers, world.network.links, duration_s=world.env.now).set_index(["link", "direction"])
    in_mean = {
        (link.index, direction): table.loc[(link.label, direction.value), ["utilisation", "mean_queue"]].sum()
        for link in world.network.links
        for direction in Direction
    }
    assert len(books.channels) == (4 * (1 if duplex == "half" else 2) + 2 * 6)
    assert max(books.present_s.values()) > 0
    for channel, ways in books.channels.items():
        watched = books.present_s[channel] / world.env.now
        assert sum(in_mean[way] for way in ways) == pytest.approx(watched, rel=1e-9)
