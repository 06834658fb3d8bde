"""Forcing: what is computed, in which order, what survives a kill, and how little is alive at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from whole_numbers import Bench, Killed

from fedsim.learning.graph import Handle

OpenBench = Callable[..., Bench]

ROUNDS, CLIENTS = 2, 5
STEPS = 1 + ROUNDS * (CLIENTS + CLIENTS + 1 + 1 + 1)  # init; trainings, contributions, the fold's end, mean, evaluation


def test_what_nobody_needs_is_never_computed(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    unasked = [bench.train(model, client) for client in (1, 2)]
    wanted = bench.train(model, 3)
    bench.value(bench.evaluate(wanted))
    assert bench.computed == ["init", "train 3", "evaluate"]
    assert not any(handle.computed for handle in unasked)


def test_nothing_is_computed_twice(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    trained = bench.train(model, 1)
    assert bench.value(trained) == bench.value(trained)
    bench.value(bench.evaluate(trained))
    bench.value(bench.train(trained, 2))
    assert bench.computed == ["init", "train 1", "evaluate", "train 2"]


def test_inputs_come_first_and_in_their_order(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    second, first = bench.train(model, 2), bench.train(model, 1)  # made in another order than they are folded in
    bench.value(bench.add(model, bench.fold(model, [first, second])))
    assert bench.computed == ["init", "train 1", "train 2", "partial_sum", "add"]


def test_an_expression_that_is_asked_for_late_is_computed_from_what_is_still_held(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    late = bench.train(model, 1)
    for use in range(3):
        model = bench.add(model, bench.fold(model, [bench.train(model, 2, use)]))
        bench.value(bench.evaluate(model))
    before = len(bench.computed)
    bench.value(late)
    assert bench.computed[before:] == ["train 1"]


def test_a_fold_takes_its_inputs_in_their_order_whatever_order_they_were_made_in(open_bench: OpenBench) -> None:
    def forced(first: Iterable[int]) -> int:
        bench = open_bench()
        model = bench.init()
        contributions = [bench.train(model, client) for client in range(4)]
        for client in first:
            bench.value(contributions[client])
        return bench.value(bench.fold(model, contributions))

    assert forced([]) == forced([3]) == forced([2, 0]) == forced([3, 2, 1, 0])


def test_a_fold_lets_go_of_each_input_as_soon_as_it_has_it(open_bench: OpenBench) -> None:
    bench = open_bench()
    bench.rounds(ROUNDS, clients=50)
    assert max(bench.executor.alive) == 1


@pytest.mark.parametrize("group", [3, 8])
def test_no_more_contributions_are_alive_than_one_chunk_makes(open_bench: OpenBench, group: int) -> None:
    bench = open_bench(group=group)
    bench.rounds(ROUNDS, clients=50)
    assert max(bench.executor.alive) == group


def test_a_contribution_that_somebody_else_holds_outlives_the_fold(open_bench: OpenBench) -> None:
    bench = open_bench()
    model = bench.init()
    kept = bench.train(model, 1)
    bench.value(bench.fold(model, [kept, bench.train(model, 2)]))
    before = len(bench.computed)
    bench.value(kept)
    assert bench.computed[before:] == []


def test_a_kill_at_any_step_changes_nothing(open_bench: OpenBench, tmp_path: Path) -> None:
    whole = open_bench(tmp_path / "whole")
    expected = whole.rounds(ROUNDS, CLIENTS)
    assert whole.executor.steps == STEPS
    for kill_at in range(1, STEPS + 1):
        folder = tmp_path / f"{kill_at}"
        with pytest.raises(Killed):
            open_bench(folder, checkpoint_every=2, kill_at=kill_at).rounds(ROUNDS, CLIENTS)
        assert open_bench(folder, checkpoint_every=2).rounds(ROUNDS, CLIENTS) == expected


@pytest.mark.parametrize("group", [2, 3, 8])
def test_the_plan_is_a_function_of_the_graph_as_if_the_store_were_empty(
    open_bench: OpenBench, tmp_path: Path, group: int
) -> None:
    """Numbers that depend on who is computed together: a resumed run groups what is left as the whole run did."""
    options = {"group": group, "composition": True, "checkpoint_every": 1}
    whole = open_bench(tmp_path / "whole", **options)
    expected = whole.rounds(ROUNDS, CLIENTS)
    assert expected != open_bench(tmp_path / "alone", composition=True).rounds(ROUNDS, CLIENTS)
    redone = []
    for kill_at in range(1, whole.executor.steps + 1):
        folder = tmp_path / f"{kill_at}"
        with pytest.raises(Killed):
            open_bench(folder, kill_at=kill_at, **options).rounds(ROUNDS, CLIENTS)
        resumed = open_bench(folder, **options)
        assert resumed.rounds(ROUNDS, CLIENTS) == expected
        redone.append(resumed.executor.steps)
    assert redone[-1] < redone[0] == whole.executor.steps, "later kills cost less, because checkpoints are used"


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_was_not(open_bench: OpenBench, tmp_path: Path) -> None:
    expected = open_bench(tmp_path / "whole").rounds(ROUNDS, CLIENTS)
    for _ in range(3):  # in the first mean, at the end of the second fold, in the last evaluation
        with pytest.raises(Killed):
            open_bench(tmp_path / "killed", checkpoint_every=1, kill_at=2 * CLIENTS + 3).rounds(ROUNDS, CLIENTS)
    assert open_bench(tmp_path / "killed", kill_at=2 * CLIENTS + 3).rounds(ROUNDS, CLIENTS) == expected


def test_a_stored_value_of_another_plan_counts_as_absent(open_bench: OpenBench, tmp_path: Path) -> None:
    def rounds(folder: str, group: int) -> tuple[list[int], Bench]:
        bench = open_bench(tmp_path / folder, group=group, composition=True, checkpoint_every=1)
        return bench.rounds(ROUNDS, CLIENTS), bench

    rounds("shared", 2)
    apart, _ = rounds("apart", 3)
    after_another_plan, bench = rounds("shared", 3)
    assert after_another_plan == apart
    assert [row for row in bench.rows() if row["event"] == "loaded"] == []


def test_a_chunk_that_only_begins_alike_is_another_plan(open_bench: OpenBench, tmp_path: Path) -> None:
    def trained(folder: str, group: int) -> list[int]:
        bench = open_bench(tmp_path / folder, group=group, composition=True)
        model = bench.init()
        handles = [bench.train(model, client) for client in range(3)]
        bench.value(bench.fold(model, [*handles, handles[0]]))  # what is folded last is looked for first
        bench.store.checkpoint(bench.graph.live())
        return [handle.value["v"] for handle in handles]

    in_twos = trained("shared", 2)
    in_threes = trained("apart", 3)
    assert in_twos[0] != in_threes[0]
    assert trained("shared", 3) == in_threes
    assert trained("shared", 2) == in_twos


def test_a_checkpoint_never_falls_into_a_fold(open_bench: OpenBench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = open_bench(checkpoint_every=1)  # due after each chunk
    open_folds: list[int] = []
    write = bench.store.checkpoint

    def checkpoint(live: Iterable[Handle]) -> None:
        open_folds.append(bench.executor.open_folds)
        write(live)

    monkeypatch.setattr(bench.store, "checkpoint", checkpoint)
    bench.rounds(ROUNDS, CLIENTS)
    assert open_folds == [0] * len(open_folds)
    assert len(open_folds) == 1 + 3 * ROUNDS  # after init, and after each fold, mean and evaluation


def test_checkpoints_keep_their_interval(open_bench: OpenBench) -> None:
    bench = open_bench(checkpoint_every=150)
    bench.rounds(40, clients=1)
    assert 150 <= bench.executor.steps < 300
    assert sum(row["event"] == "checkpoint" for row in bench.rows()) == 1


def test_checkpoints_take_a_fifth_of_the_time_at_most(open_bench: OpenBench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each takes ten seconds, as with models of many gigabytes, where the interval is one."""
    bench = open_bench(checkpoint_every=1)
    write, begun = bench.store.checkpoint, []

    def checkpoint(live: Iterable[Handle]) -> None:
        begun.append(bench.waited_s + bench.executor.steps)
        bench.waited_s += 10
        write(live)

    monkeypatch.setattr(bench.store, "checkpoint", checkpoint)
    bench.rounds(40, clients=1)
    assert len(begun) == 1 + (bench.executor.steps - 1) // 40
    assert {int(after - before) for before, after in pairwise(begun)} == {50}


def test_after_a_kill_no_more_is_computed_again_than_since_the_last_checkpoint(
    open_bench: OpenBench, tmp_path: Path
) -> None:
    for kill_at in range(2, STEPS + 1):
        folder = tmp_path / f"{kill_at}"
        killed = open_bench(folder, checkpoint_every=1, kill_at=kill_at)
        with pytest.raises(Killed):
            killed.rounds(ROUNDS, CLIENTS)
        rows = killed.rows()
        lost = len(rows) - max((at + 1 for at, row in enumerate(rows) if row["event"] == "checkpoint"), default=0)
        before = [row["key"] for row in rows if row["event"] == "computed"]
        resumed = open_bench(folder, checkpoint_every=1)
        resumed.rounds(ROUNDS, CLIENTS)
        again = [node.key for node in resumed.executor.computed if node.key in before]
        assert len(again) <= lost
        assert (lost == len(rows)) or any(row["event"] == "loaded" for row in resumed.rows()[len(rows) :])


def test_a_finished_run_computes_nothing_again(open_bench: OpenBench) -> None:
    first = open_bench().rounds(ROUNDS, CLIENTS)
    bench = open_bench()
    assert bench.rounds(ROUNDS, CLIENTS) == first
    assert bench.computed == []
