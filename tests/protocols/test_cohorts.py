"""Who takes part in a round: how many, drawn how, and waiting for whom."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_worlds import NO_CONTENTION, NO_TIME, prepared, scenario, simulated

from fedsim.protocols.block import BlockRound
from fedsim.protocols.cohorts.random import CohortSettings, RandomCohort
from fedsim.settings import SMALLEST

# -- sizes -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "of", "size"),
    [
        ({"fraction": 0.3}, 368, 110),  # HFedMS: kappa K = 110.4
        ({"fraction": 0.5}, 5, 2),  # rounded down
        ({"fraction": 0.3}, 10, 3),
        ({"fraction": 0.29}, 100, 29),  # 0.29 * 100 = 28.999999999999996
        ({"fraction": 0.01}, 10, 1),  # at least one
        ({"fraction": 1.0}, 7, 7),
        ({"clients": 7}, 10, 7),
    ],
)
def test_a_cohorts_size_is_rounded_down_and_at_least_one(keys: dict[str, Any], of: int, size: int) -> None:
    assert CohortSettings(**keys).size(of) == size


@given(st.integers(1, 5_000).flatmap(lambda of: st.tuples(st.integers(1, of), st.just(of))))
def test_a_fraction_that_means_a_whole_number_gives_it(numbers: tuple[int, int]) -> None:
    size, of = numbers
    assert CohortSettings(fraction=size / of).size(of) == size


@given(fraction=st.floats(SMALLEST, 1), of=st.integers(1, 10_000), over=st.floats(1, 3))
def test_never_more_are_asked_than_there_are_and_never_fewer_than_are_wanted(
    fraction: float, of: int, over: float
) -> None:
    cohort = CohortSettings(fraction=fraction, over_selection=over)
    assert 1 <= cohort.size(of) <= cohort.asked(of) <= of
    assert abs(cohort.size(of) - max(1.0, fraction * of)) < 1


@pytest.mark.parametrize(("over", "asked"), [(1.0, 10), (1.3, 13), (1.01, 11), (2.0, 20), (50.0, 100)])
def test_too_many_are_asked_rounded_up(over: float, asked: int) -> None:
    assert CohortSettings(clients=10, over_selection=over).asked(100) == asked


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "either fraction or clients, one of them and not both"),
        ({"fraction": 0.3, "clients": 110}, "either fraction or clients, one of them and not both"),
        ({"fraction": 0.0}, "greater than 0"),
        ({"fraction": 1.1}, "less than or equal to 1"),
        ({"clients": 0}, "greater than or equal to 1"),
        ({"clients": 2.5}, "valid integer"),
        ({"clients": 2, "over_selection": 0.9}, "over_selection=0.9 must be at least 1"),
        ({"clients": 2, "busy": "wait"}, "'skip' or 'abort'"),
        ({"clients": 2, "deadline_s": 0.0}, "greater than 0"),
        ({"clients": 2, "deadline_s": math.inf}, "finite number"),
    ],
)
def test_a_cohort_that_makes_no_sense_is_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        scenario({"protocols": [{"name": "fedavg"} | keys]})


def test_more_clients_than_there_are_means_everybody() -> None:
    world = simulated({"protocols": [{"name": "fedavg", "clients": 99}]})
    assert world.trace.rounds.array()[["selected", "participants"]].tolist() == [(2, 2)]


# -- the draw ----------------------------------------------------------------------------------------------------------

TEN = {"topology": {"name": "star", "devices": 10}}


def cohorts(rounds: int, *, seed: int = 1, **keys: Any) -> list[list[int]]:
    """The cohorts of so many rounds among ten clients that are always free."""
    world, _ = prepared(TEN, seed=seed)
    cohort, chosen = RandomCohort(**keys).begin(None), []

    def draw() -> Any:
        for round_number in range(1, rounds + 1):
            groups = yield from cohort.groups(world, BlockRound.of(round_number, interval=1))
            chosen.append([client.index for (client,) in groups])

    world.env.run(until=world.env.process(draw()))
    return chosen


def test_a_cohort_has_no_client_twice() -> None:
    for chosen in cohorts(200, clients=4):
        assert len(chosen) == len(set(chosen)) == 4


def test_everybody_is_equally_likely_to_be_asked_first() -> None:
    # 3,000 rounds of 10 clients, 3 chosen: each is the first with probability 0.1 (standard error of the count 16.4).
    # In the order of indices the last two would never be; one of ten lies 4.5 errors away with probability 7e-5.
    rounds = 3_000
    first = np.bincount([chosen[0] for chosen in cohorts(rounds, clients=3)], minlength=10)
    assert np.abs(first - rounds / 10).max() < 4.5 * math.sqrt(rounds * 0.1 * 0.9)


def test_everybody_is_equally_likely_and_pairs_are_too() -> None:
    # 12,000 rounds. A client is chosen with probability 0.3 (standard error of the count 50; one of ten lies 4.5 of
    # them away with probability 7e-5), a pair with probability 3/10 * 2/9 (error 27; one of 45: 3e-4). A client that is
    # chosen 10 % too often lies 7 errors away; neighbours that are drawn together half again as often, 15.
    rounds = 12_000
    chosen = np.zeros((rounds, 10), dtype=int)
    for number, cohort in enumerate(cohorts(rounds, clients=3)):
        chosen[number, cohort] = 1
    together = chosen.T @ chosen
    for share, counts in ((0.3, together.diagonal()), (3 / 10 * 2 / 9, together[np.triu_indices(10, 1)])):
        assert np.abs(counts - rounds * share).max() < 4.5 * math.sqrt(rounds * share * (1 - share))


def test_protocols_on_one_seed_choose_alike_and_seeds_differ() -> None:
    changes = TEN | NO_TIME | {"stop.rounds": 5}

    def worked(protocol: dict[str, Any], seed: int = 1) -> list[int]:
        return simulated(changes | {"protocols": [protocol]}, seed=seed).trace.work.array()["client"].tolist()

    assert worked({"name": "fedavg", "clients": 3}) == worked({"name": "fedprox", "fraction": 0.3, "mu": 0.1})
    assert worked({"name": "fedavg", "clients": 3}) != worked({"name": "fedavg", "clients": 3}, seed=2)


# -- who is busy -------------------------------------------------------------------------------------------------------

FOUR = {"topology": {"name": "star", "devices": 4}}


def test_when_nobody_is_free_the_round_waits_for_the_first_who_is() -> None:
    # Journeys take 17 s each, the deadline comes after 10: round 2 begins at 10 and can choose at 17.
    changes = {"stop.rounds": 2, "protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 10.0}]}
    world = simulated(NO_CONTENTION | changes)
    rounds = world.trace.rounds.array()
    assert rounds[["start_s", "end_s"]].tolist() == [(0.0, 10.0), (10.0, 27.0)]
    hops = world.trace.hops.array()
    assert sorted(set(hops["start_s"][~hops["uplink"]])) == [0.0, 17.0]


def test_all_who_become_free_in_one_instant_can_be_chosen() -> None:
    changes = {"stop.rounds": 2, "protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 10.0}]}
    world = simulated(NO_CONTENTION | FOUR | changes)
    assert world.trace.rounds.array()["selected"].tolist() == [4, 4]  # all four come home at 17 s


def test_a_device_that_was_stopped_at_the_end_of_a_round_is_free_for_the_next() -> None:
    changes = {
        "stop.rounds": 20,
        "network.late_transfers": "cancel",
        "protocols": [{"name": "fedavg", "clients": 3, "deadline_s": 1.0}],  # too short for anybody
    }
    world = simulated(NO_CONTENTION | FOUR | changes)
    assert world.trace.rounds.array()["selected"].tolist() == [3] * 20
    assert world.env.now == 20.0
