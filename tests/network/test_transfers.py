"""Messages over several hops: when each bit crosses, what a loss costs, and what giving up leaves behind."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest
from simpy import Event, Process
from small_worlds import Line

from fedsim.kernel.gather import Lost
from fedsim.kernel.trace import Outcome
from fedsim.network.disciplines.dedicated import DedicatedChannel
from fedsim.network.hop import Direction
from fedsim.network.network import Abandoned, TransferLost
from fedsim.network.packets import Loss, Transport

SOME_LOSS = Loss(probability=0.5, attempts=2)


def send(line: Line, client: int = 0, size_bytes: float = 1_000.0, after_s: float = 0.0) -> Process:
    """A process that carries a message and returns when it was there, or why it was not."""

    def carry() -> Generator[Event, Any, float | Lost]:
        try:
            if after_s:
                yield line.env.timeout(after_s)
            yield from line.network.carry(client, line.route, size_bytes)
        except Lost as lost:
            return lost
        return line.env.now

    return line.env.process(carry())


def test_a_message_without_a_way_is_there_at_once() -> None:
    line = Line((1_000.0,))
    line.route = ()
    assert line.env.run(until=send(line)) == 0.0


def test_half_a_bit_a_second_is_a_rate() -> None:
    line = Line((0.5,))
    transfer = line.network.send(0, line.route, 1.0)
    line.env.run(until=4.0)
    transfer.repeat()
    line.env.run()
    assert line.env.now == 4.0 + 8 / 0.5
    assert transfer.repeated_bytes == 0.25


def test_a_message_is_stored_and_forwarded() -> None:
    line = Line((1_000.0, 4_000.0, 2_000.0), delays_s=(0.5, 0.25, 0.0))
    there = line.env.run(until=send(line))
    assert there == (8_000 / 1_000 + 0.5) + (8_000 / 4_000 + 0.25) + 8_000 / 2_000
    hops = line.trace.hops.array()
    assert hops["start_s"].tolist() == [0.0, 8.5, 10.75]
    assert hops["end_s"].tolist() == [8.5, 10.75, 14.75]
    assert hops["airtime_s"].tolist() == [8.0, 2.0, 4.0]
    assert hops["queued_s"].tolist() == [0.0, 0.0, 0.0]
    assert hops["transfer"].tolist() == [0, 0, 0]
    assert hops["link"].tolist() == [0, 1, 2]
    assert hops["access"].tolist() == [True, False, False]
    assert hops["bytes"].tolist() == [1_000.0] * 3


def test_two_messages_follow_each_other_through_the_bottleneck() -> None:
    #          hop 0: 2 s each    hop 1: 8 s each    hop 2: 4 s each
    # first    0 - 2              2 - 10             10 - 14
    # second   2 - 4              (4) 10 - 18        18 - 22
    line = Line((4_000.0, 1_000.0, 2_000.0))
    first, second = send(line), send(line, client=1)
    line.env.run()
    assert (first.value, second.value) == (14.0, 22.0)
    hops = line.trace.hops.array()
    waits = {(row["transfer"], row["link"]): row["queued_s"] for row in hops}
    assert waits == {(0, 0): 0, (0, 1): 0, (0, 2): 0, (1, 0): 2, (1, 1): 6, (1, 2): 0}


def test_the_delay_does_not_occupy_the_link() -> None:
    line = Line((1_000.0,), delays_s=(100.0,))
    first, second = send(line), send(line, client=1)
    line.env.run()
    assert (first.value, second.value) == (108.0, 116.0)


def test_on_a_dedicated_link_nobody_waits() -> None:
    line = Line((1_000.0,), channel=DedicatedChannel)
    journeys = [send(line, client) for client in range(5)]
    line.env.run()
    assert [journey.value for journey in journeys] == [8.0] * 5
    assert line.trace.hops.array()["queued_s"].tolist() == [0.0] * 5


def test_an_infinite_rate_takes_no_time_and_counts_its_bytes() -> None:
    line = Line((float("inf"),) * 2)
    assert line.env.run(until=send(line)) == 0.0
    assert line.trace.hops.array()["bytes"].tolist() == [1_000.0] * 2


def test_headers_and_retransmissions_take_airtime() -> None:
    line = Line(
        (1_000.0,), loss=Loss(probability=0.5, attempts=50), transport=Transport(payload_bytes=100, header_bytes=25)
    )
    there = line.env.run(until=send(line))
    (row,) = line.trace.hops.array()
    assert row["retransmitted_bytes"] > 0
    assert row["bytes"] == 10 * 125 + row["retransmitted_bytes"]
    assert there == row["airtime_s"] == row["bytes"] * 8 / 1_000


def lost_on_the_first_hop(line: Line) -> list[int]:
    """The transfers of which hop 0 was the last."""
    hops = line.trace.hops.array()
    return hops["transfer"][(hops["link"] == 0) & (hops["outcome"] == Outcome.LOST)].tolist()


def test_a_lost_message_goes_no_further_and_its_bytes_count() -> None:
    line = Line((1_000.0, 1_000.0), loss=SOME_LOSS)
    journeys = [send(line, client, after_s=1_000.0 * client) for client in range(30)]
    line.env.run()
    hops = line.trace.hops.array()
    lost = lost_on_the_first_hop(line)
    assert lost and len(lost) < 30
    assert not set(lost) & set(hops["transfer"][hops["link"] == 1])
    on_first = hops[hops["link"] == 0]
    assert (on_first["bytes"][on_first["outcome"] == Outcome.LOST] == 2_000.0).all()  # both tries
    assert isinstance(journeys[lost[0]].value, TransferLost)
    assert journeys[lost[0]].value.args == (lost[0], lost[0], "cell link 0")


def test_a_loss_is_known_when_the_last_try_would_have_arrived() -> None:
    line = Line((1_000.0,), delays_s=(0.5,), loss=SOME_LOSS)
    journeys = [send(line, client, after_s=100.0 * client) for client in range(30)]
    line.env.run()
    lost = line.trace.hops.array()[lost_on_the_first_hop(line)]
    assert len(lost)
    assert (lost["end_s"] - lost["start_s"] == 16.0 + 0.5).all()
    assert all(isinstance(journeys[client].value, TransferLost) for client in lost["client"])


@pytest.mark.parametrize(
    ("at_s", "sent_bytes", "queued_s", "airtime_s", "second_there_s"),
    [
        (2.0, 250.0, 0.0, 2.0, 2.0 + 8.0 + 0.5),  # being sent: the link is free at once
        (8.25, 1_000.0, 0.0, 8.0, 8.0 + 8.0 + 0.5),  # all sent, not yet received: the link was free already
    ],
    ids=["while it is sent", "while it propagates"],
)
def test_giving_up_frees_the_link(
    at_s: float, sent_bytes: float, queued_s: float, airtime_s: float, second_there_s: float
) -> None:
    line = Line((1_000.0,), delays_s=(0.5,))
    first, second = send(line), send(line, client=1)
    line.env.run(until=at_s)
    first.interrupt("its round is over")
    line.env.run()
    assert isinstance(first.value, Abandoned)
    assert first.value.args == ("its round is over",)
    assert second.value == second_there_s
    given_up = line.trace.hops.array()[0]
    assert given_up["outcome"] == Outcome.CANCELLED
    assert given_up["end_s"] == at_s
    assert (given_up["bytes"], given_up["withdrawn_bytes"]) == (sent_bytes, 1_000.0 - sent_bytes)
    assert (given_up["queued_s"], given_up["airtime_s"]) == (queued_s, airtime_s)


def test_giving_up_in_the_queue_sends_nothing_and_moves_up_those_behind() -> None:
    line = Line((1_000.0,))
    first, second, third = (send(line, client) for client in range(3))
    line.env.run(until=3.0)
    second.interrupt()
    line.env.run()
    assert (first.value, third.value) == (8.0, 16.0)
    given_up = line.trace.hops.array()[0]
    assert (given_up["client"], given_up["outcome"], given_up["end_s"]) == (1, Outcome.CANCELLED, 3.0)
    assert (given_up["queued_s"], given_up["airtime_s"]) == (3.0, 0.0)
    assert (given_up["bytes"], given_up["withdrawn_bytes"]) == (0.0, 1_000.0)


def test_retransmissions_of_what_was_given_up_count_in_proportion() -> None:
    line = Line((1_000.0,), loss=Loss(probability=0.9, attempts=1_000), transport=Transport(payload_bytes=100))
    whole = line.env.run(until=send(line))
    complete = line.trace.hops.array()[0]

    again = Line((1_000.0,), loss=Loss(probability=0.9, attempts=1_000), transport=Transport(payload_bytes=100))
    journey = send(again)
    again.env.run(until=whole / 4)
    journey.interrupt()
    again.env.run()
    (given_up,) = again.trace.hops.array()
    assert complete["retransmitted_bytes"] > 1_000
    for count in ("bytes", "retransmitted_bytes"):
        assert given_up[count] == pytest.approx(complete[count] / 4, rel=1e-12)


def test_access_bytes_count_the_clients_own_hop_every_attempt_and_what_was_given_up() -> None:
    line = Line((1_000.0, 1_000.0), loss=SOME_LOSS)
    journeys = [send(line, client, after_s=10.0 * client) for client in range(10)]
    line.env.run(until=95.0)
    journeys[9].interrupt()
    line.env.run()
    hops = line.trace.hops.array()
    assert {Outcome.ARRIVED, Outcome.LOST, Outcome.CANCELLED} <= set(hops["outcome"])
    assert line.network.access_bytes[Direction.UPLINK] == hops["bytes"][hops["access"]].sum()
    assert line.network.access_bytes[Direction.DOWNLINK] == 0.0


def test_losses_on_one_link_do_not_depend_on_the_other_links() -> None:
    alone, busy = (Line((1_000.0, 1_000.0), loss=SOME_LOSS) for _ in range(2))
    for client in range(20):
        send(alone, client, after_s=100.0 * client)
        send(busy, client, after_s=100.0 * client)
    other = Line((1_000.0,), loss=SOME_LOSS)
    for client in range(20):
        send(other, client, after_s=100.0 * client)
    for line in (alone, busy, other):
        line.env.run()
    assert lost_on_the_first_hop(alone) == lost_on_the_first_hop(busy) == lost_on_the_first_hop(other) != []
