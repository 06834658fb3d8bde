"""What is true of groups however they are formed: equal, disjoint, complete where asked, repeatable."""

from __future__ import annotations

import math

import numpy as np
import pytest
from grouping.skewed import skewed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import TypeAdapter, ValidationError
from tiers import drawn

from fedsim import registry
from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import RandomGroups

GROUPINGS = {
    "icg": ICG(),
    "icg l2": ICG(cost="l2"),
    "icg normalise": ICG(normalise=True),
    "random": RandomGroups(),
}
each_grouping = pytest.mark.parametrize("grouping", GROUPINGS.values(), ids=GROUPINGS)
spread = {"leftover": "spread"}

IDLE = {8: (10, 20, 30, 40, 60, 90, 120), 18: (50, 70), 48: (80,), 68: (100,), 38: (110,), 108: (130,)}
IDLE_OF_368 = [(number, idle) for idle, numbers in IDLE.items() for number in numbers]


def formed(grouping, counts, number, seed=1):
    return grouping.groups(counts, number, np.random.default_rng(seed))


def placed(groups):
    return np.concatenate(groups).tolist()


def test_every_registered_grouping_is_tested():
    assert {grouping.name for grouping in GROUPINGS.values()} == set(registry.names("groupings"))


@each_grouping
@pytest.mark.parametrize(("number", "idle"), IDLE_OF_368)
def test_who_is_idle_of_368_clients(grouping, number, idle):
    groups = formed(grouping, skewed(368, 10, 1), number)
    assert [len(group) for group in groups] == [368 // number] * number
    assert len(set(placed(groups))) == len(placed(groups)) == 368 - idle


@each_grouping
@pytest.mark.parametrize(("number", "idle"), IDLE_OF_368)
def test_nobody_of_368_clients_is_idle_when_they_are_spread(grouping, number, idle):
    groups = formed(grouping.model_copy(update=spread), skewed(368, 10, 1), number)
    assert sorted(placed(groups)) == list(range(368))
    assert sorted(len(group) for group in groups) == [368 // number] * (number - idle) + [368 // number + 1] * idle


tables = st.tuples(st.integers(1, 14), st.integers(1, 4)).flatmap(
    lambda shape: arrays(np.int64, shape, elements=st.integers(0, 3) | st.integers(0, 10**9))
)


@each_grouping
@pytest.mark.parametrize("leftover", ["idle", "spread"])
@given(counts=tables, data=st.data())
@drawn(40)
def test_groups_of_any_clients(grouping, leftover, counts, data):
    """Clients that are all alike, clients without samples, clients with a thousand million: it is all the same."""
    clients = len(counts)
    number = data.draw(st.integers(1, clients))
    groups = formed(grouping.model_copy(update={"leftover": leftover}), counts, number)
    assert len(groups) == number
    assert len(set(placed(groups))) == len(placed(groups))
    assert set(placed(groups)) <= set(range(clients))
    sizes = {len(group) for group in groups}
    if leftover == "idle":
        assert sizes == {clients // number}
    else:
        assert sizes <= {clients // number, math.ceil(clients / number)}
        assert len(placed(groups)) == clients


@each_grouping
def test_as_many_groups_as_clients_is_everybody_alone_and_one_is_all_together(grouping):
    counts = skewed(30, 5, 1)
    assert sorted(group.tolist() for group in formed(grouping, counts, 30)) == [[client] for client in range(30)]
    (everybody,) = formed(grouping, counts, 1)
    assert sorted(everybody.tolist()) == list(range(30))
    assert everybody.tolist() != list(range(30))


@each_grouping
def test_the_same_generator_forms_the_same_groups_and_another_others(grouping):
    counts = skewed(60, 5, 1)
    first, again, other = (formed(grouping, counts, 7, seed) for seed in (1, 1, 2))
    assert [group.tolist() for group in first] == [group.tolist() for group in again]
    assert placed(first) != placed(other)
    assert set(placed(first)) != set(placed(other))  # 4 of 60 are idle


@each_grouping
@pytest.mark.parametrize("leftover", ["idle", "spread"])
def test_everybody_is_idle_and_first_and_last_equally_often(grouping, leftover):
    """Of 9 clients, alike, in 2 groups of 4; spread, one group has 5."""
    counts, draws = np.ones((9, 2), np.int64), 900
    rng = np.random.default_rng(5)
    runs = [grouping.model_copy(update={"leftover": leftover}).groups(counts, 2, rng) for _ in range(draws)]
    four = 4 * math.sqrt(draws)
    presence = np.bincount([client for run in runs for client in placed(run)], minlength=9)
    assert np.abs(presence - draws * (8 / 9 if leftover == "idle" else 1)).max() < four
    for position in (0, -1):
        taken = np.bincount([int(group[position]) for run in runs for group in run], minlength=9)
        assert np.abs(taken - draws * 2 / 9).max() < four


@each_grouping
@pytest.mark.parametrize("number", [-1, 0, 6])
def test_impossible_numbers_of_groups_are_refused(grouping, number):
    with pytest.raises(ValueError, match=f"{number} groups of 5 clients: the number must be from 1 to 5"):
        formed(grouping, skewed(5, 3, 1), number)


def test_random_groups_look_at_no_counts():
    few, many = (formed(RandomGroups(), counts, 3) for counts in (np.empty((10, 0)), skewed(10, 4, 1)))
    assert placed(few) == placed(many)
    assert (RandomGroups.needs_counts, ICG.needs_counts) == (False, True)
    assert (RandomGroups().once, ICG().once) == (True, False)


def test_keys_are_checked():
    chosen = TypeAdapter(ICG).validate_python({"name": "icg", "cost": "l2", "leftover": "spread", "once": True})
    assert (chosen.cost, chosen.leftover, chosen.once) == ("l2", "spread", True)
    assert TypeAdapter(RandomGroups).validate_python({"name": "random"}) == RandomGroups()
    for wrong in ({"cost": "l1"}, {"leftover": "drop"}, {"tolerance": -1.0}, {"iterations": 0}, {"size": 3}):
        with pytest.raises(ValidationError):
            ICG.model_validate({"name": "icg", **wrong})
