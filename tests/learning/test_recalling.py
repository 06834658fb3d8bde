"""Values that were computed are found again under the same names, and nothing is computed or written."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from pathlib import Path

import pytest
from whole_numbers import Bench, computed

from fedsim.errors import UserError
from fedsim.learning.graph import Handle
from fedsim.learning.read_only_store import ReadOnlyStore
from fedsim.learning.recalling import Recaller

OpenBench = Callable[..., Bench]
ROUNDS, CLIENTS = 5, 7


class NotThereError(Exception):
    """Has the handle."""


def recalling(bench: Bench, folder: Path) -> Bench:
    """The *bench*, with values from a store that is only read."""
    store = ReadOnlyStore(folder, "run", print)
    bench.store, bench.forcer = store, Recaller(bench.executor.chunks, store, NotThereError)
    return bench


def metrics(bench: Bench, rounds: int) -> list[int]:
    """As `Bench.rounds`, but for the model at the end."""
    model, found = bench.init(), []
    for use in range(rounds):
        total = bench.fold(model, [bench.train(model, client, use) for client in range(CLIENTS)])
        model = bench.add(model, total)
        del total
        found.append(bench.value(bench.evaluate(model)))
    return found


@pytest.mark.parametrize("group", [1, 3])
def test_numbers_of_the_same_plan_are_found_and_others_are_not(
    open_bench: OpenBench, tmp_path: Path, group: int
) -> None:
    options = {"group": group, "composition": True}
    expected = open_bench(tmp_path / "store", **options).rounds(ROUNDS, CLIENTS)
    before = {path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()}
    bench = recalling(open_bench(tmp_path / "empty", **options), tmp_path / "store")
    assert metrics(bench, ROUNDS) == expected[:-1]
    assert bench.computed == []
    other = recalling(open_bench(tmp_path / "other", **{**options, "group": group + 1}), tmp_path / "store")
    with pytest.raises(NotThereError) as refused:
        metrics(other, ROUNDS)
    assert other.store.has_other_plans(refused.value.args[0])
    assert {path: path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()} == before


def test_the_first_number_that_is_not_there_is_refused_with_what_was_not_computed(
    open_bench: OpenBench, tmp_path: Path
) -> None:
    open_bench(tmp_path / "store").rounds(ROUNDS, CLIENTS)
    bench = recalling(open_bench(tmp_path / "empty"), tmp_path / "store")
    with pytest.raises(NotThereError) as refused:
        metrics(bench, ROUNDS + 1)
    handle: Handle = refused.value.args[0]
    assert bench.store.missing([handle.node.key, bench.init().node.key]) == {handle.node.key}
    assert not bench.store.has_other_plans(handle)


def test_what_is_behind_a_number_that_was_found_is_forgotten(open_bench: OpenBench, tmp_path: Path) -> None:
    open_bench(tmp_path / "store").rounds(ROUNDS, CLIENTS)
    bench = recalling(open_bench(tmp_path / "empty"), tmp_path / "store")
    alive = []
    for rounds in (1, ROUNDS):
        metrics(bench, rounds)
        gc.collect()
        alive.append(len(list(bench.graph.live())))
    assert alive[1] <= alive[0]


def test_a_number_that_may_be_needed_also_may_be_missing(open_bench: OpenBench, tmp_path: Path) -> None:
    with_one = open_bench(tmp_path / "store")
    with_one.value(with_one.evaluate(with_one.init()))
    bench = recalling(open_bench(tmp_path / "empty"), tmp_path / "store")
    model = bench.init()
    known, new = bench.evaluate(model), bench.evaluate(bench.train(model, 0))
    bench.forcer.force(known, also=[new])
    assert (known.computed, new.computed) == (True, False)
    with pytest.raises(NotThereError):
        bench.forcer.force(new)


def test_the_model_at_the_end_is_known_by_its_name(open_bench: OpenBench, tmp_path: Path) -> None:
    trained = open_bench(tmp_path / "store")
    model = computed(trained, 3)
    kept = trained.store.keep_final({"v": model})
    bench = recalling(open_bench(tmp_path / "empty"), tmp_path / "store")
    model = bench.init()
    assert bench.forcer.force(model) is False
    assert (model.computed, bench.store.keep_final({"v": model})) == (False, {})
    for use in range(3):
        model = bench.train(model, 0, use)
        bench.forcer.force(model)
    assert bench.store.keep_final({"v": model}) == kept != {}


def test_handles_that_are_looked_up_together_are_planned_like_those_that_are_forced_together(
    open_bench: OpenBench, tmp_path: Path
) -> None:
    """Who finds a number in the store only looks up what the run before has computed behind it."""

    def names(bench: Bench, *, looked_up: bool) -> list[str]:
        model = bench.init()
        handles = [bench.train(model, client) for client in range(4)]
        (bench.forcer.look_up if looked_up else bench.forcer.force)(*handles)
        return [handle.stored_name for handle in handles]

    forced = names(open_bench(tmp_path / "forced", group=3), looked_up=False)
    assert names(open_bench(tmp_path / "looked up", group=3), looked_up=True) == forced
    recalled = recalling(open_bench(tmp_path / "recalled", group=3), tmp_path / "forced")
    assert names(recalled, looked_up=True) == forced
    assert len({name.split("-")[1] for name in forced}) == math.ceil(4 / 3)


def test_a_folder_that_is_no_store_is_not_made_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere: is not there$"):
        ReadOnlyStore(tmp_path / "nowhere", "run", print)
    with pytest.raises(UserError, match="is no store$"):
        ReadOnlyStore(tmp_path, "run", print)
    assert list(tmp_path.iterdir()) == []
