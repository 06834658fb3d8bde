"""The store: what a kill may cut off, what may be deleted, who may share it, and that nothing in it executes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiers import FULL
from whole_numbers import Bench, Killed, computed, tensors

from fedsim.learning import store as store_module

OpenBench = Callable[..., Bench]


def index(folder: Path, run: str = "run") -> dict[str, dict[str, object]]:
    content: dict[str, dict[str, object]] = json.loads((folder / "index" / f"{run}.json").read_bytes())
    return content


def reachable(folder: Path) -> set[str]:
    """What the indices of all runs name."""
    names: set[str] = set()
    for path in (folder / "index").glob("*.json"):
        content = json.loads(path.read_bytes())
        names.update(*content["frontiers"].values(), *(parts.values() for parts in content["finals"].values()))
    return names


# -- what a kill may cut off ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["metrics", "ledger"])
@pytest.mark.parametrize("cut", [1, 10])
def test_a_last_line_that_was_cut_off_is_ignored_and_removed(
    open_bench: OpenBench, tmp_path: Path, kind: str, cut: int
) -> None:
    whole = open_bench().rounds(3, 2)
    path = tmp_path / kind / "run.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    assert open_bench().rounds(3, 2) == whole
    lines = path.read_bytes().splitlines(keepends=True)
    assert all(line.endswith(b"\n") and json.loads(line) for line in lines)
    kept = content[: content[:-cut].rfind(b"\n") + 1]
    assert path.read_bytes().startswith(kept)
    if kind == "metrics":
        assert len(lines) == 3, "the one that was lost was evaluated again"


def test_metrics_are_on_disk_as_soon_as_they_are_known(open_bench: OpenBench) -> None:
    bench = open_bench()
    metrics = bench.evaluate(computed(bench, 1))
    bench.value(metrics)
    other = open_bench(run="another run")
    assert bench.store is not other.store
    assert other.value(other.evaluate(other.train(other.init(), 0))) == metrics.value["v"]
    assert other.computed == []


def test_a_kill_between_tensors_and_index_leaves_the_old_frontier_whole(
    open_bench: OpenBench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = open_bench()
    first = computed(bench, 1)
    bench.store.checkpoint(bench.graph.live())
    before = index(tmp_path)
    second = bench.train(first, 0, 1)
    bench.value(second)
    write = store_module.write_atomically

    def killed(path: Path, *pieces: bytes | memoryview) -> None:
        if path.suffix == ".json":
            raise Killed
        write(path, *pieces)

    monkeypatch.setattr(store_module, "write_atomically", killed)
    with pytest.raises(Killed):
        bench.store.checkpoint(bench.graph.live())
    monkeypatch.undo()
    assert index(tmp_path) == before
    assert reachable(tmp_path) < tensors(tmp_path)

    resumed = open_bench()
    assert computed(resumed, 2).value == second.value
    assert resumed.computed == [], "the tensors of the frontier that was not finished are good as well"
    resumed.store.checkpoint(resumed.graph.live())
    assert tensors(tmp_path) == reachable(tmp_path)


def test_what_a_kill_left_half_written_goes_at_the_next_checkpoint(open_bench: OpenBench, tmp_path: Path) -> None:
    bench = open_bench()
    held = computed(bench, 1)
    (tmp_path / "tensors" / f".{'0' * 32}-{'0' * 8}-v.safetensors.99999.tmp").write_bytes(b"half a mod")
    bench.store.checkpoint(bench.graph.live())
    assert tensors(tmp_path) == reachable(tmp_path)
    assert held.computed


# -- what may be deleted -------------------------------------------------------------------------------------------


def test_a_checkpoint_keeps_what_is_live_and_nothing_else(open_bench: OpenBench, tmp_path: Path) -> None:
    bench = open_bench()
    model = computed(bench, 3)
    bench.store.checkpoint(bench.graph.live())
    first = tensors(tmp_path)
    assert len(first) == 1
    model = bench.train(model, 0, 3)
    bench.value(model)
    bench.store.checkpoint(bench.graph.live())
    assert len(tensors(tmp_path)) == 1
    assert tensors(tmp_path) != first


def test_a_tensor_on_disk_that_a_resumed_run_has_not_asked_for_yet_is_kept(
    open_bench: OpenBench, tmp_path: Path
) -> None:
    bench = open_bench()
    late = computed(bench, 1)
    bench.value(bench.evaluate(late))
    bench.store.checkpoint(bench.graph.live())

    resumed = open_bench()
    late = resumed.train(resumed.init(), 0)
    resumed.value(resumed.evaluate(late))  # the metrics are found, so that the model is planned and not read
    assert not late.computed
    other = resumed.init(use=1)
    resumed.value(other)
    resumed.store.checkpoint(resumed.graph.live())
    assert len(tensors(tmp_path)) == 2
    resumed.value(late)
    assert resumed.computed == ["init"], "the other one"


def test_two_runs_share_a_store_and_neither_deletes_what_the_other_needs(open_bench: OpenBench, tmp_path: Path) -> None:
    one, two = open_bench(run="one"), open_bench(run="two")
    held = computed(one, 2)
    one.store.checkpoint(one.graph.live())
    of_one = tensors(tmp_path)
    another = computed(two, 3)
    assert two.computed == ["train 0"], "two goes on from the tensors of one"
    two.store.checkpoint(two.graph.live())
    assert of_one < tensors(tmp_path)

    one.store.keep_final({"v": held})
    two.store.keep_final({"v": another})
    assert len(tensors(tmp_path)) == 2
    assert tensors(tmp_path) == reachable(tmp_path)

    (tmp_path / "index" / "one.json").unlink()  # whoever deletes a run deletes its index
    two.store.checkpoint(two.graph.live())
    assert not of_one & tensors(tmp_path)


def test_a_label_that_ends_keeps_the_frontier_of_the_one_that_was_killed(open_bench: OpenBench, tmp_path: Path) -> None:
    """A run goes on from its first protocol, which is finished, to the one in which it was killed."""
    second = open_bench(label="second/1")
    model = computed(second, 4)
    second.store.checkpoint(second.graph.live())
    del model

    first = open_bench(label="first/1")
    first.store.keep_final({"v": computed(first, 1)})
    resumed = open_bench(label="second/1")
    final = computed(resumed, 4)
    assert resumed.computed == []
    resumed.store.keep_final({"v": final})
    assert index(tmp_path)["frontiers"] == {}
    assert set(index(tmp_path)["finals"]) == {"first/1", "second/1"}
    assert len(tensors(tmp_path)) == 2


def test_final_models_are_kept_for_ever(open_bench: OpenBench, tmp_path: Path) -> None:
    paths = []
    for number in range(3):
        bench = open_bench(label=f"protocol/{number}")
        paths += list(bench.store.keep_final({"v": computed(bench, number + 1)}).values())
    bench.store.checkpoint([])
    assert len(set(paths)) == 3
    assert all((tmp_path / path).is_file() for path in paths)


# -- who may share it ----------------------------------------------------------------------------------------------


@pytest.mark.drawn
def test_processes_that_hammer_one_store_do_not_disturb_each_other(tmp_path: Path) -> None:
    script, repeats = Path(__file__).with_name("hammer.py"), 40 if FULL else 8
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", str(script), str(tmp_path / "shared"), run, str(repeats)],
            stderr=subprocess.PIPE,
            text=True,
        )
        for run in ("left", "right")
    ]
    errors = [process.communicate(timeout=300)[1] for process in processes]
    assert errors == ["", ""]
    folder = tmp_path / "shared"
    assert len(list((folder / "index").glob("*.json"))) == 2 * repeats
    assert reachable(folder) == tensors(folder)
    assert len(reachable(folder)) == repeats, "each time, both came to the same model"
