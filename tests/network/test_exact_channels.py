"""Every channel does what plain exact arithmetic says, whatever happens to it, in whatever order, however late."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from exact_channels import RULES
from hypothesis import given
from hypothesis import strategies as st
from scripts import LATE_S, SideBySide, Step, scripts, starts

from fedsim import registry
from fedsim.network.disciplines.multi_server import MultiServerChannel

each_discipline = pytest.mark.parametrize("discipline", RULES)
delays_s = st.sampled_from([0.0, 0.0, 1.0, 0.3])
far_weights = st.one_of(st.sampled_from([1e-18, 1e-9, 1.0, 1e9, 1e18]), st.floats(1e-18, 1e18))


def test_every_discipline_has_an_exact_twin() -> None:
    assert set(RULES) == set(registry.names("disciplines"))


late_or_not = pytest.mark.parametrize("start_s", [0.0, LATE_S])


def agree(script: Sequence[Step], discipline: str, start_s: float, **how: Any) -> None:
    """A channel and its exact twin do, and looking changes nothing."""
    both = SideBySide(discipline, start_s, **how)
    both.run(script)
    assert not both.channel.flows and not both.exact.on
    assert {flow for flow in both.flows if math.isnan(flow.arrived_s)} == both.stopped
    unseen = SideBySide(discipline, start_s, compare=False, **how)
    unseen.run(script)
    assert [repr(flow.arrived_s) for flow in unseen.flows] == [repr(flow.arrived_s) for flow in both.flows]


@late_or_not
@each_discipline
def test_a_channel_agrees_with_its_exact_twin_in_few_events_and_looking_changes_nothing(
    discipline: str, start_s: float
) -> None:
    @given(scripts, delays_s)
    def agrees(script: list[Step], delay_s: float) -> None:
        agree(script, discipline, start_s, delay_s=delay_s)

    agrees()


@late_or_not
@pytest.mark.parametrize("discipline", ["serial", "fair"])
def test_so_does_a_channel_of_several_carriers(discipline: str, start_s: float) -> None:
    @given(scripts, delays_s, st.sampled_from([2, 5]))
    def agrees(script: list[Step], delay_s: float, carriers: int) -> None:
        agree(script, discipline, start_s, delay_s=delay_s, carriers=carriers)

    agrees()


@late_or_not
def test_so_does_a_queue_before_several_carriers_if_it_has_one(start_s: float) -> None:
    # The same rule as on a serial channel, which plans ahead; the twin is the same too.
    @given(scripts, delays_s)
    def agrees(script: list[Step], delay_s: float) -> None:
        agree(script, "serial", start_s, delay_s=delay_s, make=MultiServerChannel)

    agrees()


@late_or_not
def test_so_does_a_fair_channel_with_weights_as_far_apart_as_settings_allow(start_s: float) -> None:
    @given(scripts, st.lists(far_weights, min_size=50, max_size=50), st.sampled_from([1, 2, 5]))
    def agrees(script: list[Step], weights: list[float], carriers: int) -> None:
        script = [replace(step, weight=weight) for step, weight in zip(script, weights, strict=False)]
        agree(script, "fair", start_s, carriers=carriers, starved=True)

    agrees()


@each_discipline
def test_all_times_times_a_power_of_two_is_every_arrival_times_it_to_the_last_bit(discipline: str) -> None:
    @given(scripts, st.sampled_from([2.0**-20, 0.5, 2.0, 2.0**20]), st.sampled_from([1, 1, 2]))
    def scales(script: list[Step], factor: float, carriers: int) -> None:
        one, other = (SideBySide(discipline, carriers=carriers, compare=False) for _ in range(2))
        one.run(script)
        other.run([replace(step, gap_s=step.gap_s * factor, need_s=step.need_s * factor) for step in script])
        assert [repr(flow.arrived_s * factor) for flow in one.flows] == [repr(flow.arrived_s) for flow in other.flows]
        assert [flow.spent_s * factor for flow in one.flows] == [flow.spent_s for flow in other.flows]

    scales()


@each_discipline
def test_nobody_is_sent_earlier_than_alone(discipline: str) -> None:
    @given(st.lists(starts, max_size=30), st.sampled_from([1, 1, 2]))
    def not_earlier(script: list[Step], carriers: int) -> None:
        run = SideBySide(discipline, carriers=carriers, compare=False)
        run.run(script)
        for flow, step in zip(run.flows, script, strict=True):
            assert flow.arrived_s >= flow.offered_s + step.need_s - run.tolerance_s

    not_earlier()
