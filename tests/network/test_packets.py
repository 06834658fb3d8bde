"""Bytes on a link: packets, headers, and what is sent again; the law of loss is the binomial one, exactly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.kernel.streams import Streams
from fedsim.network.packets import Attempted, Loss, Transport, put_on_link

TRIALS = 20_000
SIGMAS = 4.0


def test_a_message_is_one_packet_without_a_header_unless_asked_otherwise() -> None:
    assert put_on_link(1_000.0, Transport(), Loss(), None) == Attempted(1_000.0, 0.0, True)


@pytest.mark.parametrize(
    ("size_bytes", "packets"),
    [(0.0, 1), (1.0, 1), (1_459.0, 1), (1_460.0, 1), (1_461.0, 2), (2_920.0, 2), (26_720_000.0, 18_302)],
)
def test_every_packet_carries_a_header(size_bytes: float, packets: int) -> None:
    transport = Transport(payload_bytes=1_460, header_bytes=40)
    assert packets == max(1, math.ceil(size_bytes / 1_460))
    assert put_on_link(size_bytes, transport, Loss(), None).bytes == size_bytes + 40 * packets


def test_a_header_without_packets_is_sent_once() -> None:
    assert put_on_link(26_720_000.0, Transport(header_bytes=40), Loss(), None).bytes == 26_720_040.0


def test_a_message_of_nothing_but_a_header_may_be_sent_again() -> None:
    lossy = Loss(probability=0.5, attempts=50)
    found = [put_on_link(0.0, Transport(header_bytes=40), lossy, np.random.default_rng(seed)) for seed in range(20)]
    assert {attempted.bytes - attempted.retransmitted_bytes for attempted in found} == {40.0}
    assert any(attempted.retransmitted_bytes for attempted in found)


sizes = st.floats(0, 1e9) | st.integers(0, 10**6).map(float)
transports = st.builds(
    Transport,
    payload_bytes=st.none() | st.floats(1, 1e5) | st.integers(1, 2000).map(float),
    header_bytes=st.floats(0, 100),
)


@given(size_bytes=sizes, transport=transports)
def test_without_loss_nothing_is_sent_twice(size_bytes: float, transport: Transport) -> None:
    attempted = put_on_link(size_bytes, transport, Loss(), None)
    packets = 1 if transport.payload_bytes is None else max(1, math.ceil(size_bytes / transport.payload_bytes))
    assert attempted.delivered
    assert attempted.retransmitted_bytes == 0.0
    assert attempted.bytes == pytest.approx(size_bytes + packets * transport.header_bytes, rel=1e-9)


@given(
    size_bytes=sizes,
    transport=transports,
    probability=st.floats(0, 0.99),
    attempts=st.integers(1, 9),
    seed=st.integers(0, 2**32),
)
def test_what_is_sent_again_comes_on_top_and_is_bounded_by_the_attempts(
    size_bytes: float, transport: Transport, probability: float, attempts: int, seed: int
) -> None:
    loss = Loss(probability=probability, attempts=attempts)
    once = put_on_link(size_bytes, transport, Loss(), None).bytes
    attempted = put_on_link(size_bytes, transport, loss, np.random.default_rng(seed))
    assert attempted.bytes == once + attempted.retransmitted_bytes
    assert 0 <= attempted.retransmitted_bytes <= (attempts - 1) * once * (1 + 1e-12)


def trials(size_bytes: float, transport: Transport, loss: Loss) -> list[Attempted]:
    rng = Streams(1)("network/loss").generator()
    return [put_on_link(size_bytes, transport, loss, rng) for _ in range(TRIALS)]


@pytest.mark.parametrize(
    ("probability", "attempts", "full_packets"),
    [(0.3, 3, 20), (0.1, 8, 5), (0.5, 2, 0)],
    ids=["3 tries", "8", "1 packet"],
)
def test_the_mean_of_what_is_sent_again_is_the_analytic_one(
    probability: float, attempts: int, full_packets: int
) -> None:
    # 20,000 messages. A packet is sent an n-th time with probability p^(n-1). A 10 % fault lies 8 sigmas away or more.
    transport = Transport(payload_bytes=1_000, header_bytes=40)
    size_bytes = full_packets * 1_000.0 + 500.0
    again = [
        attempted.retransmitted_bytes
        for attempted in trials(size_bytes, transport, Loss(probability=probability, attempts=attempts))
    ]
    on_link_bytes = full_packets * 1_040 + 540
    expected_bytes = on_link_bytes * sum(probability**n for n in range(1, attempts))
    standard_error = np.std(again, ddof=1) / math.sqrt(TRIALS)
    assert abs(np.mean(again) - expected_bytes) < SIGMAS * standard_error
    assert 0.1 * expected_bytes > 2 * SIGMAS * standard_error


@pytest.mark.parametrize(("probability", "attempts", "packets"), [(0.3, 3, 20), (0.2, 1, 3), (0.5, 4, 1)])
def test_a_message_is_lost_when_the_last_try_of_any_packet_fails(
    probability: float, attempts: int, packets: int
) -> None:
    # 20,000 messages. P(lost) = 1 - (1 - p^attempts)^packets; one try more or fewer lies 8 sigmas away or more.
    def lost_with(tries: int) -> float:
        return 1 - (1 - probability**tries) ** packets

    transport, loss = Transport(payload_bytes=100), Loss(probability=probability, attempts=attempts)
    size_bytes = 100.0 * packets - 50.0  # the last packet is half full, and may be lost like the others
    share = np.mean([not attempted.delivered for attempted in trials(size_bytes, transport, loss)])
    standard_error = math.sqrt(lost_with(attempts) * (1 - lost_with(attempts)) / TRIALS)
    assert abs(share - lost_with(attempts)) < SIGMAS * standard_error
    assert lost_with(attempts) - lost_with(attempts + 1) > 2 * SIGMAS * standard_error


def test_most_messages_of_few_packets_need_nothing_again() -> None:
    # P(nothing is sent again) = (1 - p)^packets = 0.9^5 = 0.590; with 4 or 6 packets it would be 0.656 or 0.531.
    transport, loss = Transport(payload_bytes=100), Loss(probability=0.1)
    share = np.mean([not attempted.retransmitted_bytes for attempted in trials(500.0, transport, loss)])
    assert abs(share - 0.9**5) < SIGMAS * math.sqrt(0.9**5 * (1 - 0.9**5) / TRIALS)


def test_a_certain_loss_and_impossible_numbers_are_refused() -> None:
    with pytest.raises(ValidationError, match="less than 1"):
        Loss(probability=1.0)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Loss(attempts=0)
    with pytest.raises(ValidationError, match="greater than or equal to 1"):
        Transport(payload_bytes=0.5)
    with pytest.raises(ValidationError, match="greater than or equal to 0"):
        Transport(header_bytes=-1.0)
