"""Messages of one cell as one: as long, and with as much airtime, as the messages have together."""

from __future__ import annotations

from functools import partial

import pytest
from simpy import Environment

from fedsim.network.bundle import bundled, may_be_bundled
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Hop, Link, Medium
from fedsim.network.packets import Loss
from fedsim.radio.settings import TransportFormat

RATES_BPS, SHARES, BITS = (100.0, 400.0, 200.0), (1.0, 0.25, 0.5), 800.0


def hops(channel: type, *, lost: float = 0.0, carriers: int = 1) -> list[Hop]:
    medium = Medium(partial(tuple, [channel(Environment(), 0.0)]), carriers=carriers, loss=Loss(probability=lost))
    link = Link(0, ("station",), access=True, medium=medium)
    return [Hop(link, True, rate_bps, share=share) for rate_bps, share in zip(RATES_BPS, SHARES, strict=True)]


def test_on_air_that_is_shared_they_take_their_airtime_one_after_the_other() -> None:
    airtime_s = sum(share * BITS / rate_bps for rate_bps, share in zip(RATES_BPS, SHARES, strict=True))
    one = bundled(hops(SerialChannel))
    assert 3 * BITS / one.rate_bps == pytest.approx(airtime_s, rel=1e-12)
    assert one.share == pytest.approx(1.0, rel=1e-12)


def test_on_dedicated_air_they_take_as_long_as_the_slowest_and_all_their_airtime() -> None:
    airtime_s = sum(share * BITS / rate_bps for rate_bps, share in zip(RATES_BPS, SHARES, strict=True))
    one = bundled(hops(DedicatedChannel))
    seconds = 3 * BITS / one.rate_bps
    assert seconds == pytest.approx(BITS / min(RATES_BPS), rel=1e-12)
    assert seconds * one.share == pytest.approx(airtime_s, rel=1e-12)


def test_what_can_be_lost_is_sent_in_blocks_or_has_several_carriers_is_not_bundled() -> None:
    assert may_be_bundled(hops(SerialChannel))
    assert not may_be_bundled(hops(SerialChannel, lost=0.1))
    in_blocks = hops(SerialChannel)
    in_blocks[1].set_rate(100.0, 1.0, TransportFormat(block_bits=1_000.0))
    assert not may_be_bundled(in_blocks)
    assert not may_be_bundled(hops(SerialChannel, carriers=2))
