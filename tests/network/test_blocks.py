"""Transport blocks on the clock: what a message takes beyond its own bits, and block errors in the mean or drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy import stats
from small_worlds import NO_CONTENTION, Line, prepared, simulated

from fedsim.network.blocks import air_bits
from fedsim.network.coverage import Coverage
from fedsim.protocols.world import World
from fedsim.radio.settings import Rates, TransportFormat

MODEL_BYTES = 26.7e6
NB1 = {
    "name": "nb_iot",
    "anchor": False,
    "random_access": [],
    "block_errors": "none",
    "snr": {"name": "given", "uplink_db": 40.0, "downlink_db": 40.0},
}
BLOCKS = TransportFormat(block_bits=1_000.0)


def uplinks(
    radio: dict[str, Any], *, devices: int = 1, model_bytes: float = MODEL_BYTES, seed: int = 1, carriers: int = 1
) -> np.ndarray:
    """Seconds that each upload of one round is on the air, with no time for anything else."""
    world = simulated(
        {
            "topology": {"name": "star", "devices": devices},
            "network.cell": {"radio": radio, "carriers": carriers},
            "network.link.rate_bps": float("inf"),
            "model.parameters": round(model_bytes / 4),
        },
        seed=seed,
    )
    up = uploads(world)
    return up["end_s"] - up["start_s"]


def uploads(world: World) -> np.ndarray:
    """The rows of the trace for what devices sent."""
    hops = world.trace.hops.array()
    return hops[hops["access"] & hops["uplink"]]


def test_a_model_of_26_7_mb_takes_57_minutes_up_over_nb1_and_63_with_block_errors() -> None:
    """26.7 MB are 213.6 Mbit: 3,418 s at 62.5 kbit/s, and a ninth more where a tenth of the blocks fails."""
    [plain_s] = uplinks(NB1)
    [mean_s] = uplinks(NB1 | {"block_errors": "mean"})
    [drawn_s] = uplinks(NB1 | {"block_errors": "drawn"})
    assert plain_s == pytest.approx(213.6e6 / 62.5e3)
    assert round(plain_s / 60) == 57
    assert mean_s == pytest.approx(plain_s / 0.9)
    assert round(mean_s / 60) == round(drawn_s / 60) == 63
    assert drawn_s != mean_s
    assert drawn_s == pytest.approx(mean_s, rel=0.003)  # four standard deviations of 213,600 blocks: 0.29 %


def test_as_many_devices_have_their_full_rate_as_the_carrier_holds() -> None:
    """Four: each sends in 4 of 16 ms. Ten take ten times 8 Mbit at 250 kbit/s."""
    assert uplinks(NB1, devices=4, model_bytes=1e6) == pytest.approx(128.0)
    assert uplinks(NB1, devices=10, model_bytes=1e6) == pytest.approx(320.0)


@pytest.mark.parametrize(("carriers", "devices", "slower"), [(1, 3, 1.0), (1, 4, 1.1628), (2, 6, 1.0), (2, 7, 1.0174)])
def test_carriers_and_what_random_access_leaves_say_how_many_have_their_full_rate(
    carriers: int, devices: int, slower: float
) -> None:
    """A device needs a quarter of a carrier, of which 14 % are for random access: 3.44 devices on each."""
    some = {"subcarriers": 48, "repetitions": 1, "period_ms": 40}  # 5.6 of 40 ms: 14 %
    radio = NB1 | {"random_access": [some]}
    assert uplinks(radio, devices=devices, model_bytes=1e6, carriers=carriers) == pytest.approx(
        128.0 * slower, rel=1e-4
    )


def test_carrier_seconds_are_those_of_each_device_s_own_row_and_no_more_than_there_are() -> None:
    """Twenty devices of many rows: each message takes bits x share / rate, in whatever company it is sent."""
    shadowing = {"sigma_db": 12.0}
    radio = NB1 | {"snr": {"name": "given", "uplink_db": -6.0, "downlink_db": 30.0, "shadowing": shadowing}}
    world = simulated(
        {"topology": {"name": "star", "devices": 20}, "network.cell": {"radio": radio}, "model.parameters": 5_000}
    )
    up, air = uploads(world), [attachment.air_uplink for attachment in world.wires.attachments]
    own_s = [
        air_bits(160_000.0, air[client].format) * air[client].share / air[client].rate_bps for client in up["client"]
    ]
    assert len({hop.format.row for hop in air}) > 8
    assert up["airtime_s"] == pytest.approx(np.array(own_s), rel=1e-9)
    for message in up:
        before = up["airtime_s"][up["end_s"] <= message["end_s"]].sum()
        assert before <= message["end_s"] - up["start_s"].min() + 1e-6


def test_block_errors_that_are_drawn_are_those_of_the_seed_and_the_journey() -> None:
    drawn = NB1 | {"block_errors": "drawn"}
    one, again, other = (uplinks(drawn, devices=3, model_bytes=1e5, seed=seed) for seed in (1, 1, 2))
    assert one.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize(
    ("message_bits", "grant_bits", "on_air_bits"),
    [
        (1.0, 1e3, 1e3),
        (1e3, 1e3, 1e3),
        (1_001.0, 1e3, 2e3),
        (1_001.0, 4e3, 4e3),
        (1_001.0, 0.0, 2e3),
        (9_999.0, 1e3, 1e4),
        (10_000.5, 1e3, 10_000.5),
        (38_000.0, 4e3, 40e3),
        (130.0, 50.0, 150.0),
    ],
)
def test_a_short_message_takes_whole_grants(message_bits: float, grant_bits: float, on_air_bits: float) -> None:
    assert air_bits(message_bits, TransportFormat(block_bits=1e3, grant_bits=grant_bits)) == on_air_bits


@pytest.mark.parametrize("grant_bits", [1e3, 3e3])
def test_a_longer_message_never_takes_less_of_the_air(grant_bits: float) -> None:
    sizes = np.arange(100.0, 40_000.0, 100.0)
    taken = [air_bits(size, TransportFormat(block_bits=1e3, grant_bits=grant_bits)) for size in sizes.tolist()]
    assert all(bits >= size for bits, size in zip(taken, sizes, strict=True))
    assert all(later > 0.9 * earlier for earlier, later in pairwise(taken))


def test_nothing_takes_nothing_and_several_messages_are_rounded_each() -> None:
    assert air_bits(0.0, BLOCKS) == 0.0
    assert air_bits(300.0, BLOCKS, messages=7) == 7_000.0
    assert air_bits(300.0, TransportFormat(), messages=7) == 2_100.0


def test_of_several_messages_on_a_hop_each_has_its_part_of_the_bytes() -> None:
    line = Line((1_000.0,))
    [hop] = line.route
    hop.set_rate(1_000.0, 1.0, BLOCKS)
    assert line.network.air_bits(0, hop, 150.0, messages=3) == 3 * air_bits(400.0, BLOCKS)


def test_repeated_blocks_follow_the_negative_binomial_law() -> None:
    """20,000 messages of 30 blocks, compared by chi-square with the law of the failures before 30 successes."""
    rng = np.random.default_rng(5)
    half = TransportFormat(block_bits=100.0, block_errors=0.3)
    repeats = np.array([(air_bits(3_000.0, half, rng) - 3_000.0) / 100.0 for _ in range(20_000)])
    law = stats.nbinom(30, 0.7)
    edges = np.arange(2, 28)
    seen = np.histogram(repeats, [-0.5, *(edges - 0.5), np.inf])[0]
    due = np.diff([0.0, *law.cdf(edges - 1), 1.0]) * len(repeats)
    assert repeats.mean() == pytest.approx(30 * 0.3 / 0.7, rel=0.02)
    assert stats.chisquare(seen, due).pvalue > 1e-4


def test_blocks_take_airtime_and_no_bytes() -> None:
    """1,000 bytes are eight blocks of 1,000 bits, each in a cycle of 16 ms, and a quarter of the carrier."""
    up = uploads(simulated({"network.cell": {"radio": NB1}, "model.parameters": 250}))
    assert set(up["bytes"]) == {1_000.0}
    assert set(up["retransmitted_bytes"]) == {0.0}
    assert up["airtime_s"] == pytest.approx(8 * 16e-3 * 0.25)


def test_after_a_redraw_each_hop_has_the_format_of_its_new_rate() -> None:
    shadowing = {"sigma_db": 9.0, "redraw_every_s": 10.0}
    radio = NB1 | {"snr": {"name": "given", "uplink_db": -4.0, "downlink_db": 9.0, "shadowing": shadowing}}
    world, _ = prepared({"topology": {"name": "star", "devices": 6}, "network.cell": {"radio": radio}})
    told = world.wires.cells["station"].settings.radio.rates_of(list(world.wires.paths()), 25.0)
    before = [attachment.air_uplink.format for attachment in world.wires.attachments]
    world.env.run(25.0)
    for attachment, rates in zip(world.wires.attachments, told, strict=True):
        assert attachment.air_uplink.format == rates.uplink_format
        assert attachment.air_downlink.format == rates.downlink_format
        assert attachment.air_uplink.rate_bps == rates.uplink_bps
    assert before != [attachment.air_uplink.format for attachment in world.wires.attachments]


def test_a_message_that_begins_out_of_coverage_takes_what_it_would_have_taken_in_coverage() -> None:
    """Ten bytes are one block of 1,000 bits, of which half fail: it waits for its rate, and is then as others."""
    half = TransportFormat(block_bits=1_000.0, block_errors=0.5)
    alone = Rates(1_000.0, 2_000.0, uplink_format=half)
    took = []
    for first in (alone, Rates(0.0, 2_000.0)):
        world, _ = prepared({"topology.devices": 1, **NO_CONTENTION})
        air = world.wires.attachments[0].air_uplink
        air.set_rate(first.uplink_bps, 1.0, first.uplink_format)
        Coverage(world.env, world.network, world.outages.tell).follow(world.wires.attachments[0], iter([(5.0, alone)]))
        transfer = world.network.send(0, [air], 10.0)
        world.env.run(1_000.0)
        took.append(transfer.spent_s)
    assert took[0] == took[1] >= 1.0
