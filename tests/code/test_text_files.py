"""Reading a text file cannot hang, fill the memory or end in a traceback, whatever its path leads to."""

from __future__ import annotations

import gzip
import os
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from fedsim.errors import UserError
from fedsim.files import read_text_file

BOM = b"\xef\xbb\xbf"


def refusal(path: Path, most_bytes: int = 1_000_000) -> str:
    """What is said of *path* after its own name."""
    with pytest.raises(UserError) as refused:
        read_text_file(path, what="a graph file", most_bytes=most_bytes)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    assert message.startswith(f"{path}:")
    return message.removeprefix(f"{path}:").lstrip()


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", ""),
        (b"a: 1\r\nb\r", "a: 1\r\nb\r"),
        ("München 工厂 \U0001f3ed".encode(), "München 工厂 \U0001f3ed"),
        (BOM + b"a: 1", "a: 1"),
        (BOM + BOM, "\ufeff"),
        (b"a\0b", "a\0b"),
    ],
    ids=["empty", "line ends stay", "beyond ASCII", "byte order mark", "one mark only", "null character"],
)
def test_utf_8_is_read_as_it_is_but_for_a_byte_order_mark(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "plant"
    path.write_bytes(content)
    assert read_text_file(path, what="a graph file") == text


def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "plant").write_text("a")
    (tmp_path / "link").symlink_to("plant")
    assert read_text_file(tmp_path / "link", what="a graph file") == "a"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\nb\nMünchen".encode("latin-1"), "3: is not UTF-8 text (byte 0xfc); save the file as UTF-8"),
        (BOM + b"\n\xff", "2: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
        ("plant".encode("utf-16"), "1: is not UTF-8 text (byte 0xff); save the file as UTF-8"),
        (b"half a character \xed\xa0\x80", "1: is not UTF-8 text (byte 0xed); save the file as UTF-8"),
        (gzip.compress(b"plant"), "is compressed (gzip), and text is needed; unpack it"),
    ],
    ids=["latin-1", "after a mark", "utf-16", "lone surrogate", "gzip"],
)
def test_other_encodings_are_refused_with_the_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "plant"
    path.write_bytes(content)
    assert refusal(path) == message


def test_a_zip_file_is_to_be_unpacked(tmp_path: Path) -> None:
    path = tmp_path / "plant.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("plant", "a" * 1000)
    assert refusal(path) == "is compressed (zip), and text is needed; unpack it"


def test_the_largest_size_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    path = tmp_path / "plant"
    path.write_bytes(b"a" * 1_500_000)
    assert len(read_text_file(path, what="a graph file", most_bytes=1_500_000)) == 1_500_000
    assert refusal(path, most_bytes=1_499_999) == "is too large: a graph file is at most 1.5 MB"


def test_a_file_of_a_terabyte_costs_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "plant"
    with path.open("wb") as file:
        file.truncate(10**12)  # a hole
    tracemalloc.start()
    try:
        assert refusal(path) == "is too large: a graph file is at most 1 MB"
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


def test_what_would_wait_or_never_end_is_not_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    rule = ", and a graph file must be a regular file; save its content in one"
    for name in ("pipe", "link"):
        assert refusal(tmp_path / name) == f"is a pipe{rule}"
    for device in ("/dev/zero", "/dev/null"):
        assert refusal(Path(device)) == f"is a device{rule}"


def test_a_folder_is_no_file_but_may_hold_the_one_that_was_meant(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "is a folder; the path of a graph file is needed"
    inside = tmp_path / "scenario.yaml"
    inside.touch()
    assert refusal(tmp_path) == f"is a folder; the path of a graph file is needed; did you mean {str(inside)!r}?"


def test_a_missing_file_is_missed_with_a_helping_hand(tmp_path: Path) -> None:
    (tmp_path / "plant.json").touch()
    (tmp_path / "lost").symlink_to("elsewhere")
    absent = "there is no such file"
    assert refusal(tmp_path / "plnat.json") == f"{absent}; did you mean 'plant.json'?"
    assert refusal(tmp_path / "zzz") == absent
    assert refusal(tmp_path / "no" / "plant") == f"{absent}, and no folder {str(tmp_path / 'no')!r}"
    assert refusal(tmp_path / "lost") == f"{absent}: the link leads to 'elsewhere', which is not there"


def test_what_the_system_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert refusal(tmp_path / "a") == "cannot be read (Too many levels of symbolic links)"
    (tmp_path / "plant").touch()
    assert refusal(tmp_path / "plant" / "x") == "cannot be read (Not a directory)"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_of_others_is_told_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "plant"
    path.touch(mode=0o000)
    assert refusal(path) == "cannot be read (Permission denied)"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nu\0ll", r"nu\x00ll: cannot be read (embedded null byte)"),
        ("two\nlines", r"two\nlines: there is no such file"),
        ("red\x1b[31m", r"red\x1b[31m: there is no such file"),
        ("half\ud800", r"half\ud800: cannot be read ("),
        ("x" * 1_000_000, "x" * 197 + "...: cannot be read (File name too long)"),
    ],
    ids=["null", "newline", "escape", "lone surrogate", "a million letters"],
)
def test_a_strange_name_is_shown_on_one_short_line(name: str, message: str) -> None:
    with pytest.raises(UserError) as refused:
        read_text_file(Path(name), what="a graph file")
    assert str(refused.value).startswith(message)
    assert len(str(refused.value)) < 300
