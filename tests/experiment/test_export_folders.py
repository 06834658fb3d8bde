"""An export is there as a whole or not at all, and nothing that is not an export's is ever replaced or deleted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from exported import all_files, finished_run

from fedsim.errors import UserError
from fedsim.experiment.exports import parquet_tables
from fedsim.experiment.exports.export import export
from fedsim.experiment.exports.export_folder import filled_folder
from fedsim.experiment.exports.safe_names import file_names


def fill(place: Path, content: str = "new") -> None:
    with filled_folder(place, {}) as folder:
        (folder / "inside").mkdir()
        (folder / "inside/file").write_text(content)


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError, UserError])
@pytest.mark.parametrize("before", [False, True])
def test_an_interrupted_export_leaves_what_was_there(tmp_path: Path, error: type[BaseException], before: bool) -> None:
    if before:
        fill(tmp_path / "out", "old")
    left = all_files(tmp_path)
    with pytest.raises(error), filled_folder(tmp_path / "out", {}) as folder:
        (folder / "half").write_text("")
        raise error
    assert all_files(tmp_path) == left
    assert names(tmp_path) == (["out"] if before else [])


def test_an_export_that_is_interrupted_between_its_files_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    results = finished_run(tmp_path / "run")
    written = []

    def once(*words: object) -> object:
        if written:
            raise KeyboardInterrupt
        written.append(words)
        return unify(*words)  # type: ignore[arg-type]

    unify = parquet_tables._unified
    monkeypatch.setattr(parquet_tables, "_unified", once)
    with pytest.raises(KeyboardInterrupt):
        export([results], "parquet", out=tmp_path / "out")
    assert names(tmp_path) == ["run"]


def test_what_cannot_get_its_name_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(tmp_path / "out", "old")
    left = all_files(tmp_path)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name.endswith(f"{os.getpid()}.tmp"):
            raise OSError(28, "No space left on device")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OSError, match="No space"):
        fill(tmp_path / "out")
    assert all_files(tmp_path) == left
    assert names(tmp_path) == ["out"]


def test_what_killed_exports_have_left_goes_and_the_one_that_was_there_before_comes_back(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    (tmp_path / "out").rename(tmp_path / ".out.4711.old.tmp")
    (tmp_path / ".out.4711.tmp").mkdir()
    (tmp_path / ".out.4711.tmp/half").write_text("")
    (tmp_path / ".outer.4711.tmp").mkdir()  # of somebody else
    with pytest.raises(KeyboardInterrupt), filled_folder(tmp_path / "out", {}):
        raise KeyboardInterrupt
    assert names(tmp_path) == [".outer.4711.tmp", "out"]
    assert (tmp_path / "out/inside/file").read_text() == "old"


def test_an_export_at_work_is_left_alone(tmp_path: Path) -> None:
    with filled_folder(tmp_path / "out", {}) as folder:
        (folder / "file").write_text("first")
        at_work = folder.rename(tmp_path / ".out.1.tmp")  # as if another process did it
        fill(tmp_path / "out", "second")
        assert (at_work / "file").read_text() == "first"
        (at_work / "file").unlink()
        at_work.rename(folder)


def refused(place: Path, message: str) -> None:
    left = all_files(place)
    with pytest.raises(UserError, match=message):
        fill(place)
    assert all_files(place) == left
    assert names(place.parent) == [place.name]


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()
    fill(place)  # empty: nothing can be lost
    (place / "notes.txt").write_text("mine")
    refused(place, r"has a file that the export has not written: notes.txt; choose another folder with --out")
    (place / "notes.txt").unlink()
    (place / "inside/file").write_text("edited")
    refused(place, "has a file that has changed since the export: inside/file")
    (place / "inside/file").unlink()
    (place / "inside/file").symlink_to("/etc/passwd")
    refused(place, "has a file that has changed since the export: inside/file")
    (place / "fedsim_export.json").write_text("[]")
    refused(place, "is not empty and is no export")


def test_a_place_that_cannot_be_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file/out", tmp_path / ("x" * 300)):
        with pytest.raises(UserError, match="is not a folder|is no name of a folder"):
            fill(place)


def test_a_link_to_a_folder_stays_one(tmp_path: Path) -> None:
    (tmp_path / "disk/export").mkdir(parents=True)
    (tmp_path / "out").symlink_to("disk/export")
    fill(tmp_path / "out")
    assert (tmp_path / "out").is_symlink()
    assert (tmp_path / "disk/export/inside/file").read_text() == "new"


def test_names_of_files_are_safe_and_apart_also_without_capitals() -> None:
    labels = ["", ".", "..", " ", ".x", "x.", "a/b", "a~b", "a%2Fb", "a=b", "A", "a", "ß", "ss", "con\ttrol", "-"]
    labels += ["x" * 500, "x" * 501, "車間" * 99, "\ud800"]
    found = file_names(labels)
    assert list(found) == labels
    assert len({name.casefold() for name in found.values()}) == len(labels)
    for name in found.values():
        assert 0 < len(name.encode()) <= 120 and not set(name) & set('/\\:*?"<>|') and name.isprintable()
        assert not name.startswith(".") and not name.endswith((".", " "))
