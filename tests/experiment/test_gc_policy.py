"""Who looks for garbage, and where: a run gives back what it has set aside, and nothing of its caller's."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from fedsim.experiment import gc_policy
from fedsim.experiment.gc_policy import rare_collections, set_aside, set_aside_for_good


@pytest.fixture
def nothing_set_aside(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(gc_policy, "_set_aside", [])
    gc.unfreeze()
    yield
    gc.freeze()  # as all other tests have it


@pytest.mark.usefixtures("nothing_set_aside")
def test_what_a_run_sets_aside_it_gives_back() -> None:
    with set_aside(journeys=1):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_set_aside")
def test_what_is_set_aside_for_good_stays_so() -> None:
    set_aside_for_good()
    with set_aside(journeys=1):
        later = [[] for _ in range(1_000)]
    assert gc.get_freeze_count() > 1_000
    assert any(found is later for found in gc.get_objects()), "what came later is looked at"


@pytest.mark.usefixtures("nothing_set_aside")
def test_inside_of_another_block_nothing_is_given_back_before_its_end() -> None:
    with set_aside():
        outside = gc.get_freeze_count()
        with set_aside(journeys=1):
            assert gc.get_freeze_count() == outside
        assert gc.get_freeze_count() == outside > 0
    assert gc.get_freeze_count() == 0


@pytest.mark.usefixtures("nothing_set_aside")
def test_what_a_caller_has_set_aside_stays_so() -> None:
    gc.freeze()
    with set_aside():
        pass
    assert gc.get_freeze_count() > 0


@pytest.mark.usefixtures("nothing_set_aside")
def test_what_is_set_aside_for_good_inside_of_a_block_stays_so() -> None:
    with set_aside():
        set_aside_for_good()
    assert gc.get_freeze_count() > 0


def test_thresholds_are_what_they_were() -> None:
    before = gc.get_threshold()
    with set_aside(journeys=5):
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_inside_of_another_block_the_collector_runs_no_more_often() -> None:
    with rare_collections(journeys=1_000):
        outside = gc.get_threshold()
        with rare_collections():
            assert gc.get_threshold() == outside
        with rare_collections(journeys=2_000):
            assert gc.get_threshold()[0] > outside[0]
        assert gc.get_threshold() == outside
