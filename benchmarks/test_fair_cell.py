"""A fair cell against what one would write first in SimPy: re-scheduling every flow whenever one comes or goes.

As many devices as the name says send 1 MB each, at random times within a minute, over cells of 10 Mbit/s with 100
devices each.

And how much of the cost is different shares: 1,600 devices share one cell all the time, and whoever has been sent
starts again.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Generator

import pytest
import simpy
from pytest_benchmark.fixture import BenchmarkFixture

from fedsim.kernel.clock import Alarm, Clock
from fedsim.network.disciplines.channel import Flow
from fedsim.network.disciplines.fair import FairChannel

PER_CELL, AIRTIME_S, WITHIN_S = 100, 8e6 / 10e6, 60.0


def arrivals_s(devices: int) -> list[list[float]]:
    """When the devices of each cell begin to send."""
    rng = random.Random(1)
    return [[rng.uniform(0.0, WITHIN_S) for _ in range(PER_CELL)] for _ in range(devices // PER_CELL)]


class Sent(Flow):
    """A message that is counted when it has been sent."""

    __slots__ = ("channel", "ends")

    def __init__(self, ends: list[float], channel: FairChannel) -> None:
        super().__init__()
        self.ends, self.channel = ends, channel
        self.offer(AIRTIME_S, channel.env.now)
        channel.start(self)

    def arrived(self) -> None:
        self.ends.append(self.channel.env.now)


def with_virtual_clocks(cells: list[list[float]]) -> list[float]:
    clock, ends = Clock(), []
    for times in cells:
        channel = FairChannel(clock)
        for at_s in times:
            Alarm(clock, at_s, lambda _, channel=channel: Sent(ends, channel))
    clock.run()
    return ends


class NaiveCell:
    """Every flow is a process that is interrupted whenever its rate changes."""

    def __init__(self, env: simpy.Environment) -> None:
        self.env = env
        self.flows: list[simpy.Process] = []

    def changed(self) -> None:
        for flow in self.flows:
            if flow is not self.env.active_process:
                flow.interrupt()


def naive_flow(env: simpy.Environment, cell: NaiveCell, at_s: float, ends: list[float]) -> Generator:
    yield env.timeout(at_s)
    left_s = AIRTIME_S
    cell.flows.append(env.active_process)
    cell.changed()
    while True:
        begun_s, sharing = env.now, len(cell.flows)
        try:
            yield env.timeout(left_s * sharing)
            break
        except simpy.Interrupt:
            left_s = max(0.0, left_s - (env.now - begun_s) / sharing)
    cell.flows.remove(env.active_process)
    cell.changed()
    ends.append(env.now)


def re_scheduled(cells: list[list[float]]) -> list[float]:
    env, ends = simpy.Environment(), []
    for times in cells:
        cell = NaiveCell(env)
        for at_s in times:
            env.process(naive_flow(env, cell, at_s, ends))
    env.run()
    return ends


@pytest.mark.parametrize("way", [with_virtual_clocks, re_scheduled])
@pytest.mark.parametrize("devices", [1_000, 10_000])
def test_fair_cells(benchmark: BenchmarkFixture, devices: int, way: Callable[[list[list[float]]], list[float]]) -> None:
    benchmark.group = f"{devices} devices send 1 MB over fair cells of {PER_CELL}"
    cells = arrivals_s(devices)
    ends = benchmark.pedantic(way, (cells,), rounds=3 if way is with_virtual_clocks else 1)
    assert len(ends) == devices


class Restless(Flow):
    """A message that is followed by the next of the same device at once."""

    __slots__ = ("cell",)

    def __init__(self, cell: BusyCell, share: float) -> None:
        super().__init__(share=share)
        self.cell = cell
        self.begin()

    def begin(self) -> None:
        self.offer(self.cell.rng.expovariate(1.0), self.cell.clock.now)
        self.cell.channel.start(self)

    def arrived(self) -> None:
        self.cell.sent += 1
        if self.cell.sent < self.cell.messages:
            self.begin()


class BusyCell:
    """A cell of devices, of so many different shares, of which about half can use no more than their part."""

    def __init__(self, shares: int, devices: int = 1_600, messages: int = 8_000) -> None:
        self.rng, self.clock = random.Random(2), Clock()
        self.channel = FairChannel(self.clock)
        self.messages, self.sent = messages, 0
        for device in range(devices):
            Restless(self, (0.5 + 2 * (device % shares + 0.5) / shares) / devices)

    def run(self) -> None:
        while self.sent < self.messages:
            self.clock.step()


@pytest.mark.parametrize("shares", [1, 16, 100, 1_600])
def test_different_shares(benchmark: BenchmarkFixture, shares: int) -> None:
    benchmark.group = "8,000 messages of 1,600 devices over one fair cell"
    benchmark.pedantic(BusyCell.run, setup=lambda: ((BusyCell(shares),), {}), rounds=3)


def test_both_ways_agree() -> None:
    cells = arrivals_s(300)
    assert sorted(with_virtual_clocks(cells)) == pytest.approx(sorted(re_scheduled(cells)), rel=1e-9)
