"""Devices that send or receive, one of both at a time: all times by hand, and by a plain queue for each device.

In the base world 1000 B, which are 8000 bits, take 8 s up over the air and 4 s down; here wires take no time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sending import crossed, failing, send
from simpy import Event
from tiers import drawn

from fedsim.kernel.trace import Outcome
from fedsim.kernel.trip import Abandoned
from fedsim.network.coverage import Coverage
from fedsim.network.half_duplex import HalfDuplex
from fedsim.network.network import TransferLost
from fedsim.network.transfer import Transfer
from fedsim.protocols.world import World
from fedsim.radio.settings import Rates

EVERY_DISCIPLINE = pytest.mark.parametrize("discipline", ["serial", "dedicated", "fair"])
EVERY_CELL = pytest.mark.parametrize("cell", ["full", "shared"])


def devices(duplex: str = "half", *faults: dict[str, Any], **changes: Any) -> World:
    """Two such devices; nobody waits for the other one unless *changes* say so."""
    usual = {"network__cell__discipline": {"name": "dedicated"}, "network__link__rate_bps": math.inf}
    return failing(*faults, **(usual | {"devices__classes__sensor__duplex": duplex} | changes))


def with_rates(world: World, *changes: tuple[float, float, float]) -> World:
    """From these times on the first device has these rates, up and down."""
    coverage = Coverage(world.env, world.network, world.outages.tell)
    coverage.follow(world.clients[0].attachment, iter([(at_s, Rates(up, down)) for at_s, up, down in changes]))
    return world


def over_the_air(world: World) -> list[tuple[float, float]]:
    """When each began to be sent over the air, and when it was through, in the order of the latter."""
    return [
        (row.start_s + row.queued_s, row.end_s)
        for row in crossed(world)
        if row.link == "cell station" and row.outcome == "arrived"
    ]


# -- one device --------------------------------------------------------------------------------------------------------


@EVERY_CELL
@EVERY_DISCIPLINE
def test_a_download_waits_for_an_upload_under_way(discipline: str, cell: str) -> None:
    world = devices(network__cell__discipline={"name": discipline}, network__cell__duplex=cell)
    send(world)
    send(world, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (8.0, 12.0)]
    assert [row.airtime_s for row in crossed(world) if row.link == "cell station"] == [8.0, 4.0]


@EVERY_CELL
@EVERY_DISCIPLINE
def test_an_upload_waits_for_a_download_under_way(discipline: str, cell: str) -> None:
    world = devices(network__cell__discipline={"name": discipline}, network__cell__duplex=cell)
    send(world, up=False)
    send(world, at_s=1.0)
    world.env.run()
    assert over_the_air(world) == [(0.0, 4.0), (4.0, 12.0)]


@EVERY_DISCIPLINE
def test_a_full_duplex_device_does_both_at_once(discipline: str) -> None:
    world = devices("full", network__cell__discipline={"name": discipline})
    send(world)
    send(world, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(2.0, 6.0), (0.0, 8.0)]


@EVERY_DISCIPLINE
def test_another_device_is_no_reason_to_wait(discipline: str) -> None:
    world = devices(network__cell__discipline={"name": discipline})
    send(world)
    send(world, client=1, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(2.0, 6.0), (0.0, 8.0)]


def test_what_goes_the_same_way_is_on_the_air_together() -> None:
    world = devices()
    for up, at_s in ((True, 0.0), (True, 2.0), (False, 3.0), (False, 4.0)):
        send(world, up=up, at_s=at_s)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (2.0, 10.0), (10.0, 14.0), (10.0, 14.0)]


def test_nobody_overtakes_who_waits_for_the_device() -> None:
    # The second upload could go beside the first one, but came after the download.
    world = devices()
    for up, at_s in ((True, 0.0), (False, 1.0), (True, 2.0), (False, 3.0), (False, 9.0)):
        send(world, up=up, at_s=at_s)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (8.0, 12.0), (12.0, 20.0), (20.0, 24.0), (20.0, 24.0)]


@EVERY_DISCIPLINE
def test_it_is_busy_until_the_last_bit_has_been_received(discipline: str) -> None:
    world = devices(network__cell__discipline={"name": discipline}, network__cell__delay_s=1.5)
    send(world)
    send(world, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(0.0, 9.5), (9.5, 15.0)]


def test_it_is_busy_while_its_upload_waits_for_others_in_a_queue_of_the_cell() -> None:
    world = devices(network__cell__discipline={"name": "serial"})
    send(world, client=1)
    send(world)
    send(world, up=False, at_s=1.0)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (8.0, 16.0), (16.0, 20.0)]


def test_it_is_free_while_its_message_is_on_a_wire() -> None:
    world = devices(network__link__rate_bps=1_000.0)
    send(world)  # on the wire from 8 to 16
    send(world, up=False)  # the same, from 0 to 8
    send(world, at_s=10.0)  # waits for the download
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (8.0, 12.0), (12.0, 20.0)]


def test_messages_without_length_follow_each_other_in_an_instant() -> None:
    world = devices()
    for number in range(6):
        send(world, up=number % 2 == 0, at_s=3.0, size_bytes=0.0)
    world.env.run()
    assert over_the_air(world) == [(3.0, 3.0)] * 6


# -- given up, failed, out of coverage ---------------------------------------------------------------------------------


@EVERY_DISCIPLINE
@pytest.mark.parametrize("given_up_s", [3.0, 8.5], ids=["being sent", "on its way"])
def test_when_the_first_is_given_up_the_second_goes_at_once(discipline: str, given_up_s: float) -> None:
    world = devices(network__cell__discipline={"name": discipline}, network__cell__delay_s=1.0)
    first = send(world)
    send(world, up=False, at_s=2.0)
    world.env.run(until=given_up_s)
    first.interrupt()
    world.env.run()
    assert isinstance(first.value, Abandoned)
    assert over_the_air(world) == [(given_up_s, given_up_s + 5.0)]


def test_when_one_that_waits_is_given_up_those_behind_it_move_up() -> None:
    world = devices()
    send(world)
    waiting = send(world, up=False, at_s=1.0)
    send(world, at_s=2.0)
    world.env.run(until=5.0)
    waiting.interrupt()
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (5.0, 13.0)]
    (given_up,) = (row for row in crossed(world) if row.outcome == "cancelled")
    assert given_up[2:] == (1.0, 5.0, "cancelled", 0.0, 0.0, 1_000.0, 4.0, 0.0)


@EVERY_DISCIPLINE
def test_the_failure_of_the_device_loses_both_and_nothing_is_left_of_them(discipline: str) -> None:
    dies = {"node": "sensor-1", "at_s": 3.0, "for_s": 1.0}
    world = devices("half", dies, network__cell__discipline={"name": discipline})
    lost = send(world), send(world, up=False, at_s=2.0), send(world, at_s=2.5)
    send(world, up=False, at_s=5.0)
    send(world, at_s=6.0)
    world.env.run()
    assert all(isinstance(process.value, TransferLost) for process in lost)
    ends = [(row.end_s, row.bytes) for row in crossed(world) if row.outcome == "lost"]
    assert ends == [(3.0, 375.0), (3.0, 0.0), (3.0, 0.0)]
    assert over_the_air(world) == [(5.0, 9.0), (9.0, 17.0)]


@pytest.mark.parametrize(
    ("rule", "through"),
    [
        ("wait", [(0.0, 11.0), (11.0, 15.0)]),
        ("restart", [(0.0, 13.0), (13.0, 17.0)]),
        ("lose", [(7.0, 11.0)]),
    ],
)
@EVERY_DISCIPLINE
def test_an_outage_of_the_cell_meets_whoever_has_the_device(
    discipline: str, rule: str, through: list[tuple[float, float]]
) -> None:
    away = {"node": "station", "at_s": 2.0, "for_s": 3.0}
    world = devices("half", away, network__cell__discipline={"name": discipline}, faults={"messages": rule})
    journeys = [send(world), send(world, up=False, at_s=1.0)]
    if rule == "lose":
        send(world, up=False, at_s=7.0)
    world.env.run()
    assert over_the_air(world) == through
    assert [isinstance(journey.value, TransferLost) for journey in journeys] == [rule == "lose"] * 2


@EVERY_DISCIPLINE
def test_a_message_out_of_coverage_keeps_nobody_waiting(discipline: str) -> None:
    # The upload has sent 2000 bits until 2, and sends the other 6000 when it is covered again and the device is free.
    for back_s, through_s in ((10.0, 16.0), (4.0, 12.0)):
        world = devices(network__cell__discipline={"name": discipline})
        with_rates(world, (2.0, 0.0, 2_000.0), (back_s, 1_000.0, 2_000.0))
        send(world)
        send(world, up=False, at_s=1.0)
        world.env.run()
        assert over_the_air(world) == [(2.0, 6.0), (0.0, through_s)]


def test_who_waits_for_the_device_and_loses_coverage_lets_those_behind_pass() -> None:
    world = with_rates(devices(), (3.0, 1_000.0, 0.0), (5.0, 1_000.0, 2_000.0))
    for up, at_s in ((True, 0.0), (False, 1.0), (True, 2.0)):
        send(world, up=up, at_s=at_s)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (3.0, 11.0), (11.0, 15.0)]


def test_who_is_out_of_coverage_before_its_turn_waits_for_both() -> None:
    world = with_rates(devices(), (0.0, 1_000.0, 0.0), (3.0, 1_000.0, 2_000.0), (9.0, 1_000.0, 1_000.0))
    send(world, at_s=1.0)
    send(world, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(1.0, 9.0), (9.0, 17.0)]


def test_who_waits_for_the_device_is_sent_at_the_rate_of_then() -> None:
    world = with_rates(devices(), (3.0, 1_000.0, 4_000.0))
    send(world)
    send(world, up=False, at_s=2.0)
    world.env.run()
    assert over_the_air(world) == [(0.0, 8.0), (8.0, 10.0)]


def test_when_both_ways_lose_coverage_in_an_instant_each_goes_on_when_it_is_back() -> None:
    for first_back, through in (
        ((1_000.0, 0.0), [(0.0, 12.0), (12.0, 16.0)]),
        ((0.0, 2_000.0), [(6.0, 10.0), (0.0, 16.0)]),
    ):
        world = with_rates(devices(), (2.0, 0.0, 0.0), (6.0, *first_back), (7.0, 1_000.0, 2_000.0))
        send(world)
        send(world, up=False, at_s=1.0)
        world.env.run()
        assert over_the_air(world) == through


# -- beside a plain queue ----------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Message:
    """As a plain simulation of one device sees it, on air that is nobody else's."""

    up: bool
    left_s: float
    sent_from_s: float = math.nan
    begun_s: float = math.nan
    end_s: float = math.nan
    given_up: bool = False


Step = tuple[float, str, Any]
"""When, what, and to whom: a message comes, a message is given up, or the coverage of one way (up or not) changes."""


def plainly(steps: Sequence[Step], delay_s: float, *, half: bool) -> None:
    """Let it all happen to the messages of one device, the plain way."""
    line: list[Message] = []
    on_air: list[Message] = []
    covered = {True: True, False: True}
    script = list(steps)
    while script or on_air:
        ends = [(message.sent_from_s + message.left_s + delay_s, message) for message in on_air]
        at_s, first = min(ends, key=lambda end: end[0], default=(math.inf, None))
        if first is not None and (not script or at_s <= script[0][0]):
            first.end_s = at_s
            on_air.remove(first)
        else:
            at_s, what, which = script.pop(0)
            if what == "comes":
                line.append(which)
            elif what == "is given up" and math.isnan(which.end_s):
                which.end_s, which.given_up = at_s, True
                for those in (line, on_air):
                    if which in those:
                        those.remove(which)
            elif what == "turns":
                covered[which] = not covered[which]
                for message in [one for one in on_air if one.up == which and one.sent_from_s + one.left_s > at_s]:
                    on_air.remove(message)
                    message.left_s -= at_s - message.sent_from_s
                    line.append(message)
                here = [message for message in line if message.up == which]
                line = [message for message in line if message.up != which] + here
        for message in list(line):
            if not covered[message.up]:
                continue
            if half and any(other.up != message.up for other in on_air):
                break
            line.remove(message)
            on_air.append(message)
            message.sent_from_s = at_s
            if math.isnan(message.begun_s):
                message.begun_s = at_s


def apart(number: int) -> float:
    """A fraction of a second in which nothing else happens, nor later by sums of such."""
    return 0.2 * (math.sqrt(5 + 7 * number) % 1)


def steps_of(drawn_steps: Sequence[tuple[int, str, bool, float]]) -> Iterator[Step]:
    """With messages: what comes, comes at whole quarters; what else happens meets nothing."""
    messages: list[Message] = []
    turned = {True: 0, False: 0}
    for number, (quarters, what, up, part) in enumerate(drawn_steps):
        if what == "comes":
            messages.append(Message(up, round(part * 16) / 4))
            yield quarters / 4, what, messages[-1]
        elif what == "turns":
            turned[up] += 1
            yield quarters / 4 + apart(number), what, up
        elif messages:
            yield quarters / 4 + apart(number), what, messages[int(part * len(messages) * 0.999)]
    last_s = max((quarters for quarters, *_ in drawn_steps), default=0) / 4 + 1.0
    yield from ((last_s + apart(50 + up), "turns", up) for up in (False, True) if turned[up] % 2)


drawn_steps = st.lists(
    st.tuples(
        st.integers(0, 60),
        st.sampled_from(["comes", "comes", "comes", "is given up", "turns"]),
        st.booleans(),
        st.floats(0.0, 1.0),
    ),
    max_size=20,
).map(sorted)


TWO_KINDS: dict[str, Any] = {
    "topology": {
        "name": "explicit",
        "nodes": {
            "cloud": {"kind": "cloud"},
            "station": {"kind": "base_station"},
            "half": {"kind": "sensor", "attach": "station", "device": "sensor"},
            "full": {"kind": "sensor", "attach": "station", "device": "camera"},
        },
        "links": [{"between": ["cloud", "station"]}],
    },
    "devices__classes__camera": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}, "duplex": "full"},
}


@drawn(200)
@given(
    scripts=st.tuples(drawn_steps, drawn_steps),
    cell=st.sampled_from(["full", "shared"]),
    delay_s=st.sampled_from([0.0, 0.25]),
)
def test_every_device_is_as_a_plain_queue_has_it(
    scripts: tuple[list[tuple[int, str, bool, float]], ...], cell: str, delay_s: float
) -> None:
    # On dedicated air, so nobody hinders another device. The first is half-duplex, the second is not.
    world = devices(network__cell__duplex=cell, network__cell__delay_s=delay_s, **TWO_KINDS)
    stories = [sorted(steps_of(script), key=itemgetter(0)) for script in scripts]
    sent: dict[Message, Transfer] = {}
    for client, story in enumerate(stories):
        for step in story:
            world.env.timeout(step[0]).callbacks.append(partial(happens, world, sent, client, *step[1:]))
    world.env.run()
    rows = {int(row["transfer"]): row for row in world.trace.hops.array()}
    assert len(rows) == len(world.trace.hops) == len(sent)
    for story, half in zip(stories, (True, False), strict=True):
        plainly(story, delay_s, half=half)
    for message, transfer in sent.items():
        row = rows[transfer.number]
        begun_s = message.end_s if math.isnan(message.begun_s) else message.begun_s
        assert row["end_s"] == pytest.approx(message.end_s, abs=1e-9)
        assert row["start_s"] + row["queued_s"] == pytest.approx(begun_s, abs=1e-9)
        assert row["outcome"] == (Outcome.CANCELLED if message.given_up else Outcome.ARRIVED)


def happens(world: World, sent: dict[Message, Transfer], client: int, what: str, which: Any, _: Event) -> None:
    """A step of a device's story."""
    up, down = world.clients[client].attachment.air
    if what == "comes":
        sent[which] = world.network.send(client, [up if which.up else down], which.left_s * (125 if which.up else 250))
    elif what == "is given up" and sent[which] in world.network.in_flight:
        sent[which].give_up()
    elif what == "turns":
        hop = up if which else down
        hop.set_rate(0.0 if hop.rate_bps > 0 else 1_000.0 if which else 2_000.0, 1.0)
        for transfer in world.network.on_hops([hop]):
            transfer.adapt()


def test_the_slowest_of_rates_is_a_rate() -> None:
    device, up, down = HalfDuplex(), Mock(), Mock()
    up.hop, down.hop = (SimpleNamespace(is_uplink=is_uplink, rate_bps=0.25) for is_uplink in (True, False))
    assert device.takes(up)
    assert not device.takes(down)
    device.release(up)
    down.go_on_air.assert_called_once_with()
