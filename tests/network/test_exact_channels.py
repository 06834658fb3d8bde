"""Every channel does what plain exact arithmetic says, whatever happens to it, in whatever order, however late."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from exact_channels import RULES
from hypothesis import given
from hypothesis import strategies as st
from scripts import LATE_S, SideBySide, Step, scripts, starts

from fedsim import registry

each_discipline = pytest.mark.parametrize("discipline", RULES)


def test_every_discipline_has_an_exact_twin() -> None:
    assert set(RULES) == set(registry.names("disciplines"))


@pytest.mark.parametrize("start_s", [0.0, LATE_S])
@each_discipline
def test_a_channel_agrees_with_its_exact_twin_in_few_events_and_looking_changes_nothing(
    discipline: str, start_s: float
) -> None:
    @given(scripts, st.sampled_from([0.0, 0.0, 1.0, 0.3]))
    def agrees(script: list[Step], delay_s: float) -> None:
        both = SideBySide(discipline, start_s, delay_s=delay_s)
        both.run(script)
        assert not both.channel.flows and not both.exact.on
        assert {flow for flow in both.flows if math.isnan(flow.arrived_s)} == both.stopped
        unseen = SideBySide(discipline, start_s, delay_s=delay_s, compare=False)
        unseen.run(script)
        assert [repr(flow.arrived_s) for flow in unseen.flows] == [repr(flow.arrived_s) for flow in both.flows]

    agrees()


@each_discipline
def test_all_times_times_a_power_of_two_is_every_arrival_times_it_to_the_last_bit(discipline: str) -> None:
    @given(scripts, st.sampled_from([2.0**-20, 0.5, 2.0, 2.0**20]))
    def scales(script: list[Step], factor: float) -> None:
        one, other = SideBySide(discipline, compare=False), SideBySide(discipline, compare=False)
        one.run(script)
        other.run([replace(step, gap_s=step.gap_s * factor, need_s=step.need_s * factor) for step in script])
        assert [repr(flow.arrived_s * factor) for flow in one.flows] == [repr(flow.arrived_s) for flow in other.flows]
        assert [flow.spent_s * factor for flow in one.flows] == [flow.spent_s for flow in other.flows]

    scales()


@each_discipline
def test_nobody_is_sent_earlier_than_alone(discipline: str) -> None:
    @given(st.lists(starts, max_size=30))
    def not_earlier(script: list[Step]) -> None:
        run = SideBySide(discipline, compare=False)
        run.run(script)
        for flow, step in zip(run.flows, script, strict=True):
            assert flow.arrived_s >= flow.offered_s + step.need_s - run.tolerance_s

    not_earlier()
