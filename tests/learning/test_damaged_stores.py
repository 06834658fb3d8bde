"""A store that was damaged, or is somebody else's: no damage becomes a result, and nothing of others is touched."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save
from whole_numbers import Bench, Killed, computed, tensors

from fedsim.errors import UserError
from fedsim.learning.stored_values import metrics_line, read_metrics

OpenBench = Callable[..., Bench]


def files(folder: Path) -> dict[Path, tuple[int, int]]:
    """What is there that can be looked into, with its size and time of change."""
    found = {path: path.lstat() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
    return {path: (status.st_size, status.st_mtime_ns) for path, status in found.items()}


# -- whose folder it is -------------------------------------------------------------------------------------------

STRANGERS: dict[str, Callable[[Path], object]] = {
    "a file": lambda folder: (folder / "thesis.txt").write_text("chapter one"),
    "folders called as a store's": lambda folder: (folder / "tensors").mkdir(),
    "a mark that is none": lambda folder: (folder / "store.json").write_text("{}"),
    "a mark of another program": lambda folder: (folder / "store.json").write_text('{"format": "shop", "version": 2}'),
    "a mark that is a pipe": lambda folder: os.mkfifo(folder / "store.json"),
    "a mark that is a link": lambda folder: (folder / "store.json").symlink_to("/dev/zero"),
    "a later version": lambda folder: (folder / "store.json").write_text('{"format": "fedsim-store", "version": 99}'),
}


@pytest.mark.parametrize("make", STRANGERS.values(), ids=STRANGERS)
def test_a_folder_that_is_no_store_is_left_as_it_is(
    open_bench: OpenBench, tmp_path: Path, make: Callable[[Path], object]
) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    make(folder)
    before = sorted(folder.rglob("*"))
    with pytest.raises(UserError, match="choose another store with --store|put the file back"):
        open_bench(folder)
    assert sorted(folder.rglob("*")) == before


def test_what_a_kill_leaves_before_there_is_a_mark_is_a_beginning(open_bench: OpenBench, tmp_path: Path) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / ".store.json.4711.tmp").write_text('{"form')
    open_bench()
    made = {"store.json", "lock", "claims", "index", "metrics", "ledger", "tensors"}
    assert {path.name for path in tmp_path.iterdir()} == made


def test_a_store_keeps_what_is_not_its_own(open_bench: OpenBench, tmp_path: Path) -> None:
    """Also in its own folders, and also names that resemble its own."""
    bench = open_bench()
    held = computed(bench, 1)
    bench.store.checkpoint(bench.graph.live())
    (own,) = tensors(tmp_path)
    key = "0" * 32
    strange = ["photo.png", "model.safetensors", ".notes.txt.12.tmp", f".{own}.safetensors.x.tmp", f"{key}.safetensors"]
    for folder in ("tensors", "index", "metrics", "ledger", "."):
        for name in strange:
            (tmp_path / folder / name).write_text("mine")
    (tmp_path / "tensors" / "pictures").mkdir()
    gone = [tmp_path / "tensors" / f"{key}-{key[:8]}-v.safetensors", tmp_path / "tensors" / f".{own}.safetensors.7.tmp"]
    for path in gone:
        path.write_text("of a killed run")
    bench.store.checkpoint(bench.graph.live())
    open_bench(run="another").store.checkpoint([])
    for folder in ("tensors", "index", "metrics", "ledger", "."):
        assert all((tmp_path / folder / name).read_text() == "mine" for name in strange)
    assert (tmp_path / "tensors" / "pictures").is_dir()
    assert not any(path.exists() for path in gone)
    assert own in tensors(tmp_path) and held.computed


def test_what_killed_runs_left_half_written_goes_when_a_store_is_opened(open_bench: OpenBench, tmp_path: Path) -> None:
    open_bench()
    scratch = ["index/.r.json.1.tmp", "metrics/.r.jsonl.1.tmp", f"tensors/.{'0' * 32}-{'0' * 8}-v.safetensors.1.tmp"]
    for name in (*scratch, ".store.json.1.tmp"):
        (tmp_path / name).write_text("half")
    open_bench(run="another")
    assert list(tmp_path.rglob("*.tmp")) == []


NO_FILES: dict[str, Callable[[Path], object]] = {
    "a pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
}


@pytest.mark.parametrize("make", NO_FILES.values(), ids=NO_FILES)
@pytest.mark.parametrize("kind", ["index", "metrics", "ledger"])
def test_what_is_no_file_is_named_and_nothing_is_touched(
    open_bench: OpenBench, tmp_path: Path, kind: str, make: Callable[[Path], object]
) -> None:
    open_bench().rounds(1, 1)
    path = next((tmp_path / kind).iterdir())
    path.unlink()
    make(path)
    before = files(tmp_path)
    with pytest.raises(UserError, match=f"{path.name}: is a (pipe|folder|link), and must be a regular file"):
        open_bench()
    assert files(tmp_path) == before
    assert os.path.lexists(path)


@pytest.mark.parametrize("kind", ["tensors", "damaged"])
def test_a_folder_of_a_store_is_no_link(open_bench: OpenBench, tmp_path: Path, kind: str) -> None:
    folder, victim = tmp_path / "store", tmp_path / "victim"
    open_bench(folder).rounds(1, 1)
    if (folder / kind).exists():
        (folder / kind).rename(victim)
    (folder / kind).symlink_to(victim)
    with pytest.raises(UserError, match=f"{kind}: is a link, and a store keeps a folder there"):
        open_bench(folder)


# -- what is damaged ----------------------------------------------------------------------------------------------


FLIPS = 6  # of each kind


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("kill_at", [22, math.inf], ids=["killed", "finished"])
def test_a_flipped_bit_anywhere_changes_no_result(open_bench: OpenBench, tmp_path: Path, kill_at: float) -> None:
    """For the run that goes on, and for another one, which finds a sound store afterwards."""
    expected = open_bench(tmp_path / "whole").rounds(3, 4)
    begun = tmp_path / "begun"
    with suppress(Killed):
        open_bench(begun, checkpoint_every=1, kill_at=kill_at).rounds(3, 4)
    rng, tried = random.Random(5), set()
    for kind in ("store.json", "index", "metrics", "ledger", "tensors"):
        for number in range(FLIPS):
            folder = tmp_path / f"{kind}-{number}"
            shutil.copytree(begun, folder)
            path = rng.choice(sorted((folder / kind).iterdir())) if kind != "store.json" else folder / kind
            path.write_bytes(flipped(path.read_bytes(), rng.randrange(8 * path.stat().st_size)))
            try:
                assert open_bench(folder, run=rng.choice(["run", "another"])).rounds(3, 4) == expected
                assert open_bench(folder, run="reader").rounds(3, 4) == expected
                tried.add(f"{kind}: went on")
            except UserError:
                tried.add(f"{kind}: refused")
    assert tried == {"store.json: refused", *(f"{kind}: went on" for kind in ("index", "metrics", "ledger", "tensors"))}


TENSORS: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut off": lambda content: content[:-1],
    "cut off in its header": lambda content: content[:20],
    "a list": lambda content: (2).to_bytes(8, "little") + b"[]",
    "no digest": lambda content: save({"v": np.array([7], np.int64)}),
    "another type": lambda content: content.replace(b"I64", b"F64"),
    "another shape": lambda content: content.replace(b"[1]", b"[2]"),
    "offsets in words": lambda content: content.replace(b"[0,8]", b'"0,8"'),
}


@pytest.mark.parametrize("damage", TENSORS.values(), ids=TENSORS)
def test_a_damaged_tensor_is_put_aside_and_computed_again(
    open_bench: OpenBench, tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    bench = open_bench()
    final = bench.store.keep_final({"v": computed(bench, 2)})
    path = tmp_path / final["v"]
    content = path.read_bytes()
    for number in (1, 2):  # the second time, damaged/ has a file of that name
        path.write_bytes(damage(content))
        told: list[str] = []
        again = open_bench(tell=told.append)
        assert again.store.keep_final({"v": computed(again, 2)}) == final
        assert path.read_bytes() == content
        assert len(again.computed) == 3
        aside = tmp_path / "damaged" / f"{path.name}.{number}"
        assert aside.read_bytes() == damage(content)
        assert len(told) == 1 and told[0].startswith(f"{path}: ") and told[0].endswith(f"it is {aside} now")


def test_a_tensor_in_the_place_of_another_one_is_damaged(open_bench: OpenBench, tmp_path: Path) -> None:
    bench = open_bench()
    first, second = bench.init(0), bench.init(1)
    values = [bench.value(first), bench.value(second)]
    bench.store.checkpoint(bench.graph.live())
    one, other = (tmp_path / "tensors").iterdir()
    shutil.copy(one, other)
    again = open_bench()
    assert [again.value(again.init(0)), again.value(again.init(1))] == values
    assert again.computed == ["init"]


def test_final_weights_are_whole_though_they_were_in_memory(open_bench: OpenBench, tmp_path: Path) -> None:
    """A file that is there already is not trusted for its name alone."""
    bench = open_bench()
    model = computed(bench, 1)
    path = tmp_path / bench.store.keep_final({"v": model})["v"]
    content = path.read_bytes()
    path.write_bytes(flipped(content, 8 * len(content) - 1))
    other = open_bench(run="other")
    node = other.train(other.init(), 0)
    (tmp_path / "hidden").mkdir()
    path.rename(tmp_path / "hidden" / path.name)  # is written by somebody else, while it is computed here
    other.value(node)
    (tmp_path / "hidden" / path.name).rename(path)
    other.store.keep_final({"v": node})
    assert path.read_bytes() == content


METRICS: dict[str, bytes] = {
    "no digest": b'{"key": "a", "value": {"v": 7}}',
    "no value": b"{}",
    "a list": b"[1]",
    "zeros": bytes(100),
}


@pytest.mark.parametrize("line", METRICS.values(), ids=METRICS)
def test_a_damaged_line_of_metrics_is_put_aside(open_bench: OpenBench, tmp_path: Path, line: bytes) -> None:
    expected = open_bench().rounds(2, 1)
    path = tmp_path / "metrics" / "run.jsonl"
    content = path.read_bytes()
    path.write_bytes(line + b"\n" + content + b"cut o")
    told: list[str] = []
    other = open_bench(run="another", tell=told.append)
    assert other.rounds(2, 1) == expected
    assert path.read_bytes() == line + b"\n" + content + b"cut o", "its run may be writing to it"
    again = open_bench(tell=told.append)
    assert again.rounds(2, 1) == expected
    assert again.computed == []
    assert path.read_bytes() == content
    assert (tmp_path / "damaged" / "run.jsonl.1").read_bytes() == line + b"\n"
    assert len(told) == 2 and all(remark.startswith(f"{path}:1: ") for remark in told)


@pytest.mark.parametrize(("key", "value"), [("v", 7), ("v", math.nan), ("accuracy", 7.5), ("accuracy", math.nan)])
def test_other_metrics_are_not_taken(open_bench: OpenBench, tmp_path: Path, key: str, value: float) -> None:
    expected = open_bench().rounds(2, 1)
    path = tmp_path / "metrics" / "run.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    row = json.loads(first)
    row["value"][key] = value
    path.write_bytes(json.dumps(row).encode() + b"\n" + b"".join(others))
    again = open_bench()
    assert again.rounds(2, 1) == expected
    assert again.computed[-1] == "evaluate"


@pytest.mark.parametrize(
    "metrics",
    [
        {"loss": math.inf, "accuracy": None, "confusion": None},
        {"loss": math.inf, "rmse_std": math.nan},
        {"loss": math.inf, "rmse_cycles": math.inf, "phm08": math.inf},
    ],
)
def test_what_training_that_diverged_comes_to_is_taken(metrics: dict[str, float | None]) -> None:
    name = f"{'0' * 32}-{'0' * 8}-metrics"
    line = json.dumps(metrics_line(name, metrics)).encode()
    assert repr(read_metrics(line)) == repr((name, metrics))


INDICES = [b"", b"{", b"[]", b'{"frontiers":{}, "finals":{}}']


@pytest.mark.parametrize("content", INDICES, ids=lambda content: repr(content[:30]))
def test_while_an_index_is_damaged_nothing_is_deleted(open_bench: OpenBench, tmp_path: Path, content: bytes) -> None:
    expected = open_bench().rounds(1, 1)
    path = tmp_path / "index" / "run.json"
    whole = path.read_bytes()
    path.write_bytes(content)
    kept = tensors(tmp_path)
    told: list[str] = []
    other = open_bench(run="another", tell=told.append)
    for use in range(3):
        held = other.init(use + 1)
        other.value(held)
        other.store.checkpoint([held])
    assert kept < tensors(tmp_path) and len(tensors(tmp_path)) == len(kept) + 3
    assert path.read_bytes() == content, "another run's"
    assert len(told) == 1 and told[0].startswith(f"{path}: ") and "nothing is deleted" in told[0]

    again = open_bench(tell=told.append)
    again.store.checkpoint([])
    assert kept < tensors(tmp_path)
    assert again.rounds(1, 1) == expected
    assert path.read_bytes() == whole
    assert (tmp_path / "damaged" / "run.json.1").read_bytes() == content
    assert len(told) == 2
    other.store.close()
    open_bench(run="third").store.checkpoint([])
    assert len(tensors(tmp_path)) == len(kept) + 1, "all indices are whole again"


def test_an_index_of_another_run_is_damaged(open_bench: OpenBench, tmp_path: Path) -> None:
    open_bench(run="one").rounds(1, 1)
    open_bench(run="two").rounds(2, 1)
    shutil.copy(tmp_path / "index" / "one.json", tmp_path / "index" / "two.json")
    told: list[str] = []
    open_bench(run="two", tell=told.append)
    assert "does not fit its digest" in told[0]
