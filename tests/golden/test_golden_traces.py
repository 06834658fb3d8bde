"""Four tiny scenarios, event by event, as yesterday; each opens with its derivation by hand, computed here.

`make golden-accept` writes today's traces over yesterday's.
"""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from small_worlds import simulated
from timeline import timeline

from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Outcome
from fedsim.protocols.world import World

Golden = Callable[[str, str], None]


class ByHand:
    """A derivation: each step says what it computes, how, and what comes out."""

    def __init__(self, story: str) -> None:
        self._story = textwrap.wrap(story, 110)
        self._steps: list[tuple[str, str]] = []

    def __call__(self, what: str, how: str, result: float) -> float:
        self._steps.append((what, f"{how} = {result!r}"))
        return result

    def opening(self, world: World) -> str:
        """The derivation, and then the trace."""
        width = max(len(what) for what, _ in self._steps) + 2
        steps = [f"  {what:<{width}}{how}" for what, how in self._steps]
        return "\n".join([*self._story, "", "By hand", *steps, "", timeline(world)])


def received_s(world: World, client: int, direction: str) -> list[float]:
    """When the client (down) or the cloud (up) had received each message of a client in full."""
    hops = world.trace.hops.array()
    last = hops["access"] if direction == "down" else ~hops["access"]
    mine = (hops["client"] == client) & (hops["uplink"] == (direction == "up")) & last
    return hops["end_s"][mine & (hops["outcome"] == Outcome.ARRIVED)].tolist()


def test_one_round_of_two_sensors(golden: Golden) -> None:
    world = simulated(
        {
            "network.cell.duplex": "shared",
            "network.link": {"rate_bps": 8_000, "delay_s": 0.25},
            "devices.aggregation_s": 0.5,
        }
    )
    hand = ByHand(
        "One round of FedAvg with two sensors. Their air carries one message at a time, up or down (one channel for "
        "both, serial); the wire to the cloud carries one in each direction, and each bit takes 0.25 s on it."
    )
    wire_s = hand("a model over the wire, s", "8 x 1000 B / 8000 bit/s", 8 * 1_000 / 8_000)
    down_s = hand("down over the air, s", "8 x 1000 B / 2000 bit/s", 8 * 1_000 / 2_000)
    up_s = hand("up over the air, s", "8 x 1000 B / 1000 bit/s", 8 * 1_000 / 1_000)
    work_s = hand("local work, s", "10 samples x 0.5 s", 10 * 0.5)
    one_s = hand("sensor-1 has the model at", f"{wire_s} + 0.25 + {down_s}", wire_s + 0.25 + down_s)
    other_s = hand("sensor-2, one message later, at", f"{one_s} + {down_s}", one_s + down_s)
    assert received_s(world, 0, "down") == [one_s]
    assert received_s(world, 1, "down") == [other_s]
    one_up_s = hand("sensor-1's update is in the air until", f"{one_s} + {work_s} + {up_s}", one_s + work_s + up_s)
    other_up_s = hand("sensor-2's waits for it, until", f"{one_up_s} + {up_s}", one_up_s + up_s)
    assert other_s + work_s < one_up_s
    one_there_s = hand("the cloud has sensor-1's at", f"{one_up_s} + {wire_s} + 0.25", one_up_s + wire_s + 0.25)
    all_there_s = hand("and sensor-2's at", f"{other_up_s} + {wire_s} + 0.25", other_up_s + wire_s + 0.25)
    assert received_s(world, 0, "up") == [one_there_s]
    assert received_s(world, 1, "up") == [all_there_s]
    end_s = hand("aggregation ends the round at", f"{all_there_s} + 0.5", all_there_s + 0.5)
    assert world.trace.rounds.array()["end_s"].tolist() == [end_s] == [world.env.now]
    golden("one_round_of_two_sensors", hand.opening(world))


def test_a_slow_device_misses_its_deadline(golden: Golden) -> None:
    nodes = {
        "cloud": {"kind": "cloud"},
        "station": {"kind": "base_station"},
        "fast": {"kind": "sensor", "attach": "station"},
        "slow": {"kind": "sensor", "attach": "station", "device": "slow"},
    }
    world = simulated(
        {
            "stop.rounds": 3,
            "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "station"]}]},
            "network.link.rate_bps": float("inf"),
            "devices": {
                "classes": {
                    "fast": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}},
                    "slow": {"compute": {"name": "per_sample", "seconds_per_sample": 1.8}},
                },
                "default": "fast",
            },
            "protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 22.0}],
        },
        seed=5,
    )
    assert all(Streams(5)("selection", 0, number).generator().permutation(2)[0] == 0 for number in (1, 3))
    hand = ByHand(
        "Three rounds of FedAvg with a deadline of 22 s that a slow device misses. Its late update goes on and keeps "
        "the air busy; the next round does without it, and the fast device's update waits until the late one has "
        "crossed. The wire takes no time; uplink and downlink are apart, and serial. On this seed the fast one is "
        "always drawn, and so asked, first."
    )
    down_s = hand("a model down, s", "8 x 1000 B / 2000 bit/s", 8 * 1_000 / 2_000)
    up_s = hand("up, s", "8 x 1000 B / 1000 bit/s", 8 * 1_000 / 1_000)
    fast_s, slow_s = (
        hand(f"{which} work, s", f"10 samples x {s} s", 10 * s) for which, s in (("fast", 0.5), ("slow", 1.8))
    )
    first_s = hand("the fast one's first update is there at", f"{down_s} + {fast_s} + {up_s}", down_s + fast_s + up_s)
    hand("the first round ends at its deadline", "0.0 + 22.0", 22.0)
    late_from_s = hand("the slow one sends from", f"2 x {down_s} + {slow_s}", 2 * down_s + slow_s)
    late_s = hand("its late update is there at", f"{late_from_s} + {up_s}", late_from_s + up_s)
    ready_s = hand("the fast one is ready again at", f"22.0 + {down_s} + {fast_s}", 22 + down_s + fast_s)
    assert late_from_s < ready_s < late_s
    second_s = hand("and waits: the second round ends at", f"{late_s} + {up_s}", late_s + up_s)
    third_s = hand("the third is like the first, until", f"{second_s} + 22.0", second_s + 22)
    assert received_s(world, 0, "up") == [first_s, second_s, second_s + first_s]
    assert received_s(world, 1, "up") == [late_s]
    rounds = world.trace.rounds.array()
    assert rounds["end_s"].tolist() == [22.0, second_s, third_s]
    assert rounds[["selected", "participants", "late"]].tolist() == [(2, 1, 1), (1, 1, 0), (2, 1, 1)]
    golden("a_slow_device_misses_its_deadline", hand.opening(world))


def test_raw_samples_over_lossy_air(golden: Golden) -> None:
    world = simulated(
        {
            "stop.rounds": 2,
            "network.cell.loss": {"probability": 0.5, "attempts": 2},
            "network.link.rate_bps": float("inf"),
            "network.transport": {"payload_bytes": 400, "header_bytes": 25},
            "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.05}},
            "protocols": [{"name": "centralised"}],
        }
    )
    hand = ByHand(
        "Centralised training: each sensor sends its 10 samples of 100 B, in packets of at most 400 B with a header "
        "of 25 B. Half of the packets are lost over the air; each is tried twice, then the whole message is lost, and "
        "sent again from the start. How many are lost is drawn for the full packets, then for the last one, from a "
        "stream for each try: 1/network/loss/0/uplink/CLIENT/TRY. The air is serial and the wire takes no time."
    )
    queue, now_s, there, tries = [0, 1], 0.0, {}, Counter[int]()

    def drawn_for(client: int) -> tuple[float, bool]:
        lost = Streams(1)("network/loss/0/uplink", client, tries[client]).generator().binomial
        tries[client] += 1
        return _message(hand, client, lost)

    drawn = [drawn_for(client) for client in queue]
    while queue:
        client, (sent_bytes, delivered) = queue.pop(0), drawn.pop(0)
        now_s = hand(
            f"  {'arrived' if delivered else 'lost'} at",
            f"{now_s} + 8 x {sent_bytes} B / 1000 bit/s",
            now_s + 8 * sent_bytes / 1_000,
        )
        if delivered:
            there[client] = now_s
        else:
            queue.append(client)
            drawn.append(drawn_for(client))
    assert {client: received_s(world, client, "up") for client in (0, 1)} == {c: [s] for c, s in there.items()}
    training_s = hand("a round of training, s", "20 samples x 0.05 s", 20 * 0.05)
    first_s = hand("the first round ends at", f"{now_s} + {training_s}", now_s + training_s)
    second_s = hand("the second at", f"{first_s} + {training_s}", first_s + training_s)
    assert world.trace.rounds.array()["end_s"].tolist() == [first_s, second_s]
    golden("raw_samples_over_lossy_air", hand.opening(world))


def test_samples_that_arrive_by_the_clock(golden: Golden) -> None:
    arrival = {"samples_per_s": 0.5, "buffer_samples": 6, "buffered_at_start": 1}
    world = simulated(
        {
            "stop.rounds": 3,
            "topology.devices": 1,
            "network.link.rate_bps": float("inf"),
            "data.stream": {"samples": 4, "arrival": arrival},
        }
    )
    hand = ByHand(
        "Three rounds of FedAvg with one sensor that measures a sample every 2 s, into a buffer of 6 that holds one at "
        "the start. A training takes the oldest 4, of samples numbered from 0. In the first round it has to wait for "
        "the last of them; before each of the others the buffer has run over. The wire takes no time."
    )
    down_s = hand("a model down, s", "8 x 1000 B / 2000 bit/s", 8 * 1_000 / 2_000)
    up_s = hand("up, s", "8 x 1000 B / 1000 bit/s", 8 * 1_000 / 1_000)
    work_s = hand("local work, s", "4 samples x 0.5 s", 4 * 0.5)
    fourth_s = hand("sample 3, the third to arrive, is there at", "3 / 0.5 Hz", 3 / 0.5)
    assert fourth_s > down_s
    first_s = hand("the first round ends at", f"{fourth_s} + {work_s} + {up_s}", fourth_s + work_s + up_s)
    end_s, taken, missed, ends_s = first_s, 4, 0, [first_s]
    for which in ("second", "third"):
        begin_s = hand(f"the {which} training begins at", f"{end_s} + {down_s}", end_s + down_s)
        arrived = int(hand("  samples that have arrived by then", f"1 + 0.5 Hz x {begin_s} s", 1 + 0.5 * begin_s))
        oldest = int(hand("  the oldest of the last 6 is", f"{arrived} - 6", arrived - 6))
        missed = int(hand("  missed so far", f"{missed} + {oldest} - {taken}", missed + oldest - taken))
        taken = oldest + 4
        end_s = hand(f"  the {which} round ends at", f"{begin_s} + {work_s} + {up_s}", begin_s + work_s + up_s)
        ends_s.append(end_s)
    assert world.trace.rounds.array()["end_s"].tolist() == ends_s
    stream = world.clients[0].stream
    assert (stream.consumed, stream.missed) == (12, missed) == (12, 4)
    golden("samples_that_arrive_by_the_clock", hand.opening(world))


def _message(hand: ByHand, client: int, lost: Callable[[int, float], int]) -> tuple[float, bool]:
    """Bytes of a message of 1000 B with all tries, and whether it arrived; draws what is lost."""
    full, last = int(lost(2, 0.5)), 0
    full_again = int(lost(full, 0.5)) if full else 0
    last = int(lost(1, 0.5))
    last_again = int(lost(last, 0.5)) if last else 0
    sent_bytes = hand(
        f"sensor-{client + 1} sends, B",
        f"(2 + {full}) x 425 + (1 + {last}) x 225",
        (2 + full) * 425.0 + (1 + last) * 225.0,
    )
    return sent_bytes, not (full_again or last_again)


@pytest.mark.parametrize("path", sorted(Path(__file__).parent.glob("*.trace")), ids=lambda path: path.stem)
def test_every_trace_here_belongs_to_a_test(path: Path) -> None:
    assert f'golden("{path.stem}"' in Path(__file__).read_text(encoding="utf-8")
