"""Shadows of 100,000 devices of 100 stations that are drawn again in one instant, up to the rates on their hops."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from pytest_benchmark.fixture import BenchmarkFixture
from simpy import Environment

from fedsim.kernel.clock import Clock
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.network.attachment import Attachment, Backbone, Cuts
from fedsim.network.coverage import Coverage
from fedsim.network.disciplines.fair import FairChannel
from fedsim.network.hop import Hop, Link, Medium
from fedsim.network.network import Network
from fedsim.network.packets import Loss, Transport
from fedsim.radio.settings import RadioPath
from fedsim.radio.shannon import Shannon

DEVICES, STATIONS = 100_000, 100
RADIO = {
    "bandwidth_hz": 1.08e6,
    "snr": {
        "name": "link_budget",
        "carrier_hz": 0.9e9,
        "device_power_dbm": 23.0,
        "station_power_dbm": 43.0,
        "device_noise_figure_db": 9.0,
        "station_noise_figure_db": 5.0,
        "path_loss": {"name": "log_distance", "exponent": 3.3},
        "shadowing": {"sigma_db": 6.8, "redraw_every_s": 1.0, "correlation_s": 30.0},
    },
}
TOWN = RADIO | {
    "snr": RADIO["snr"]
    | {
        "path_loss": {"name": "uma"},
        "shadowing": {"redraw_every_s": 1.0, "correlation_s": 30.0, "correlation_m": "model"},
    }
}
RADIOS = {
    "pure": Shannon(profile="pure", **RADIO),
    "lte_36942": Shannon(profile="lte_36942", **RADIO),
    "lte_36942, lte_m_m1": Shannon(profile="lte_36942", category="lte_m_m1", **RADIO),
    "pure, shared shadows of a town": Shannon(profile="pure", **TOWN),
}
SITES = [
    RadioPath("cam", index, station, station, 50.0 + index % 1_000, Streams(1), (float(index % 1_000), float(station)))
    for index, station in ((index, index % STATIONS) for index in range(DEVICES))
]


def attachments(env: Environment, medium: Medium) -> tuple[list[Link], list[Attachment]]:
    links = [Link(index, (f"station {index}",), True, medium) for index in range(STATIONS)]
    behind = Backbone(lambda *_: ((), ()), "station", {}, Cuts())
    return links, [
        Attachment(
            "cam",
            index,
            Hop(links[index % STATIONS], True, 1.0),
            Hop(links[index % STATIONS], False, 1.0),
            behind,
        )
        for index in range(DEVICES)
    ]


def next_instant(radio: Shannon) -> Callable[[], None]:
    """What lets all of them have new shadows, and the rates that these leave."""
    env = Clock()
    medium = Medium(lambda: (FairChannel(env), FairChannel(env)), True, math.inf, (0.0, 0.0), Loss())
    links, own = attachments(env, medium)
    coverage = Coverage(env, Network(env, Trace(), Streams(1), links, Transport()), lambda: None)
    coverage.follow_together(own, radio.changes_together(SITES))
    return lambda: env.run(until=env.now + 1.0)


@pytest.mark.parametrize("radio", RADIOS)
def test_new_shadows(benchmark: BenchmarkFixture, radio: str) -> None:
    benchmark.group = f"{DEVICES} devices get new shadows in one instant"
    benchmark.pedantic(next_instant(RADIOS[radio]), rounds=20, warmup_rounds=2)


@pytest.mark.parametrize("radio", ["pure", "pure, shared shadows of a town"])
def test_rates_at_time_zero(benchmark: BenchmarkFixture, radio: str) -> None:
    benchmark.group = f"{DEVICES} link budgets at time zero"
    rates = benchmark.pedantic(RADIOS[radio].rates_of, (SITES,), rounds=3)
    assert len(rates.uplink_bps) == DEVICES
