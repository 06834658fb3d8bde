"""What the clock knows of a stream: the same as a buffer that is filled, emptied and overwritten sample by sample."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from fedsim.data.stream.settings import StreamSettings
from fedsim.devices.stream_buffer import MiniBatchBuffer, StreamBuffer


def buffer(**options: object) -> StreamBuffer:
    return StreamBuffer(StreamSettings.model_validate({"samples": 5, **options}))


def test_batches_follow_each_other_when_they_are_consumed() -> None:
    device = buffer()
    for number in range(3):
        capture = device.capture(now_s=100.0 * number, round_number=number + 1)
        assert (capture.first, capture.samples, capture.mixture) == (5 * number, 5, None)
        assert device.wait_s(capture, 0.0) == 0.0
        device.consume(capture, number + 1)
    assert (device.consumed, device.missed) == (15, 0)


def test_a_batch_that_is_not_consumed_is_there_again() -> None:
    device = buffer()
    assert device.capture(0.0, 1) == device.capture(9.0, 2) == device.capture(9.0, 7)


def test_a_batch_serves_all_trainings_of_a_block() -> None:
    device = buffer(refresh_rounds=3)
    seen = []
    for round_number in (1, 2, 3, 4, 6, 8):
        capture = device.capture(0.0, round_number)
        device.consume(capture, round_number)
        seen.append(capture.first)
    assert seen == [0, 0, 0, 5, 5, 10]
    assert device.consumed == 15


def test_a_drift_is_looked_up_by_rounds_finished_or_by_the_clock() -> None:
    by_rounds = buffer(drift={"name": "sudden", "at": [2]})
    by_time = buffer(drift={"name": "sudden", "at": [2], "by": "sim_time_s"})
    assert [by_rounds.capture(99.0, number).mixture for number in (2, 3)] == [(1.0, 0.0), (0.0, 1.0)]
    assert [by_time.capture(now_s, 99).mixture for now_s in (1.9, 2.0)] == [(1.0, 0.0), (0.0, 1.0)]


def test_waiting_ends_with_the_arrival_of_the_last_sample() -> None:
    device = buffer(arrival={"samples_per_s": 2.0, "buffer_samples": 8, "buffered_at_start": 1})
    capture = device.capture(0.0, 1)
    assert device.wait_s(capture, 0.0) == 2.0  # one is there, four more come, two in a second
    assert device.wait_s(capture, 1.5) == 0.5
    assert device.wait_s(capture, 3.0) == 0.0


def test_what_nobody_took_is_overwritten() -> None:
    device = buffer(arrival={"samples_per_s": 2.0, "buffer_samples": 8})
    capture = device.capture(10.0, 1)  # 20 have arrived, the last 8 are there
    assert capture.first == 12
    device.consume(capture, 1)
    assert (device.missed, device.consumed) == (12, 5)
    assert device.capture(10.0, 2).first == 17


def test_an_arrival_in_this_very_instant_counts() -> None:
    """100 times 0.29 is a little less than 29 in binary numbers."""
    assert 100 * 0.29 < 29
    assert buffer(arrival={"samples_per_s": 100.0, "buffer_samples": 8}).capture(0.29, 1).first == 29 - 8


@settings(max_examples=200, deadline=None)
@given(
    room=st.integers(5, 12),
    at_start=st.integers(0, 5),
    pauses=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    given_up=st.sets(st.integers(0, 11)),
)
def test_positions_are_those_of_a_real_queue(room: int, at_start: int, pauses: list[int], given_up: set[int]) -> None:
    """One sample a second into a queue of bounded length; a training takes the oldest five, and what has to come."""
    device = buffer(arrival={"samples_per_s": 1.0, "buffer_samples": room, "buffered_at_start": at_start})
    queue: deque[int] = deque(range(at_start), maxlen=room)
    measured, now = at_start, 0

    def second() -> None:
        nonlocal measured, now
        now += 1
        queue.append(measured)
        measured += 1

    for number, pause in enumerate(pauses):
        for _ in range(pause):
            second()
        capture = device.capture(float(now), number + 1)
        wait = device.wait_s(capture, float(now))
        expected = max(5 - len(queue), 0)
        assert wait == expected
        for _ in range(expected):
            second()
        oldest = list(queue)[:5]
        assert oldest == list(range(capture.first, capture.first + 5))
        if number not in given_up:
            device.consume(capture, number + 1)
            for _ in oldest:
                queue.popleft()


@pytest.mark.parametrize(
    ("arrival", "rule"),
    [({"buffer_samples": 4}, "samples=5"), ({"buffer_samples": 6, "buffered_at_start": 7}, "buffered_at_start=7")],
)
def test_a_buffer_that_is_too_small_is_refused(arrival: dict, rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        buffer(arrival={"samples_per_s": 1.0, **arrival})


def test_a_device_that_forgets_loses_its_buffer_and_the_batch_of_its_block() -> None:
    device = buffer(refresh_rounds=10, arrival={"samples_per_s": 2.0, "buffer_samples": 8})
    device.consume(device.capture(4.0, 1), 1)  # 0 to 4 of the 8 that have arrived
    assert device.capture(4.0, 2).first == 0
    device.forget(6.0)  # 12 have arrived
    capture = device.capture(6.0, 3)
    assert (capture.first, device.wait_s(capture, 6.0)) == (12, 2.5)
    device.consume(capture, 3)
    assert (device.consumed, device.missed) == (10, 12 - 5)


def test_without_arrival_only_the_batch_of_a_block_can_be_forgotten() -> None:
    device = buffer(refresh_rounds=10)
    device.consume(device.capture(0.0, 1), 1)
    device.forget(3.0)
    assert device.capture(9.0, 2).first == 5


def test_a_mini_batch_is_offered_again_until_it_is_used() -> None:
    """Whatever the clock says meanwhile, and as often as there is a training in a round."""
    drift = {"name": "gradual", "begin": 0.0, "end": 9.0, "by": "sim_time_s"}
    device = MiniBatchBuffer(StreamSettings.model_validate({"samples": 5, "drift": drift}))
    first = device.capture(0.0, 1)
    assert device.capture(4.5, 2) is first and first.mixture == (1.0, 0.0)
    device.consume(first, 2)
    second = device.capture(4.5, 2)
    assert (second.first, second.mixture) == (5, (0.5, 0.5))
    device.consume(second, 2)
    assert (device.capture(9.0, 2).first, device.consumed, device.missed) == (10, 10, 0)


def test_a_device_that_forgets_loses_its_next_mini_batch() -> None:
    settings = {"samples": 5, "arrival": {"samples_per_s": 2.0, "buffer_samples": 8}}
    device = MiniBatchBuffer(StreamSettings.model_validate(settings))
    assert device.capture(4.0, 1).first == 0
    device.forget(4.0)
    assert device.capture(4.0, 1).first == 8
