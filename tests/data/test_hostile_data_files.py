"""Files that are broken, or made to harm: one plain message with the path; nothing is run, written or kept."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import pickle
import struct
import tarfile
import time
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fedsim.data.arrays import Arrays
from fedsim.data.cache import cached
from fedsim.data.cifar10 import Cifar10, Cinic10
from fedsim.data.encoding import Affine, Ids
from fedsim.data.femnist import Femnist
from fedsim.data.images import ImageFolders
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.data.reading import archive
from fedsim.data.reading.archive import read_blob, tar_files
from fedsim.data.reading.npz import Wanted, read_npz
from fedsim.data.target import Target
from fedsim.errors import UserError

MEGABYTE = 1_000_000


class Trap:
    """Leaves a file behind when its pickle is opened."""

    def __init__(self, sprung: Path):
        self.sprung = sprung

    def __reduce__(self):
        return (open, (str(self.sprung), "w"))


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=True)
    return content.getvalue()


def header(descr: str, shape: str, version: bytes = b"\x01\x00") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text


def zipped(method: int = zipfile.ZIP_DEFLATED, **members: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", method) as made:
        for name, member in members.items():
            made.writestr(f"{name}.npy", member)
    return content.getvalue()


def tarred(*members: tuple[str, bytes, dict], mode: str = "w") -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode=mode) as made:
        for name, data, changes in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in changes.items():
                setattr(info, key, value)
            made.addfile(info, io.BytesIO(data))
    return content.getvalue()


def giant() -> bytes:
    """An archive that says that it has an image of 10 TB."""
    info = tarfile.TarInfo("a/good/1.png")
    info.size = 10**13
    return info.tobuf(tarfile.GNU_FORMAT)


def png(width: int = 4, height: int = 4) -> bytes:
    content = io.BytesIO()
    Image.new("RGB", (width, height)).save(content, "PNG")
    return content.getvalue()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_that_says(width: int, height: int) -> bytes:
    facts = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", facts) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


X, Y = npy(np.zeros((4, 2), np.float32)), npy(np.array([0, 1, 0, 1]))
SOUND = zipped(x=X, y=Y)
TREE = (("a/good/1.png", png(), {}), ("a/bad/1.png", png(), {}))


def refused(make, path: Path, cache_folder: Path, match: str) -> None:
    """*make* raises one message of one line that begins with *path*, and leaves nothing behind."""
    before = sorted(path.parent.parent.rglob("*"))
    began = time.perf_counter()
    with pytest.raises(UserError, match=match) as caught:
        make()
    assert time.perf_counter() - began < 5
    message = str(caught.value)
    assert message.startswith(str(path))
    assert len(message.splitlines()) == 1
    assert len(message) < 700
    assert list(cache_folder.iterdir()) == []
    assert sorted(path.parent.parent.rglob("*")) == before


@pytest.fixture
def refuse(tmp_path, streams, cache_folder):
    """A data set of *kind* refuses a file with *content*."""

    def check(kind, content: bytes, match: str, **options) -> None:
        place = tmp_path / "given"
        place.mkdir()
        path = place / "data.bin"
        path.write_bytes(content)
        refused(lambda: kind(path=str(path), **options).load(Clients(2), streams(1)), path, cache_folder, match)

    return check


def lying() -> bytes:
    """An archive whose directory says that member x has 4 GB, and so does the array's own header."""
    x = header("'<f4'", "(1000000000, 1)")
    content = bytearray(zipped(x=x, y=Y))
    entry = content.index(b"PK\x01\x02")
    content[entry + 24 : entry + 28] = struct.pack("<I", len(x) + 4_000_000_000)
    return bytes(content)


HOSTILE_NPZ = {
    "empty": (b"", "is empty"),
    "text": (b"x,y\n1,2\n", "is no .npz file"),
    "one array": (X, "is a single array"),
    "gzip": (gzip.compress(SOUND), "compressed with gzip; unpack"),
    "cut short": (SOUND[: len(SOUND) // 2], "cut short or damaged"),
    "a flipped bit": (
        zipped(zipfile.ZIP_STORED, x=X, y=Y).replace(X[-8:], b"\1" * 8, 1),
        "'x' is .*cut short or damaged",
    ),
    "lies about its size": (lying(), "'x' says it has shape .*, and has another number"),
    "names that go up": (
        zipped(**{"../../x": X, "/etc/y": Y}),
        "no array is called 'x'.* there are '../../x', '/etc/y'",
    ),
    "no array": (zipped(x=b"hello", y=Y), "'x' is no NumPy array"),
    "more than it says": (zipped(x=X + b"more", y=Y), "has another number of numbers"),
    "a header that is code": (zipped(x=header("__import__('os').getcwd()", "(4, 2)"), y=Y), "'x' is no NumPy array"),
    "records": (zipped(x=npy(np.zeros((4, 2), [("a", "f4")])), y=Y), "'x' holds void.*must hold"),
}


@pytest.mark.parametrize("name", HOSTILE_NPZ)
def test_hostile_archives_of_arrays(refuse, name):
    content, match = HOSTILE_NPZ[name]
    refuse(Arrays, content, match)


@pytest.mark.parametrize("member", ["x", "client"])
def test_a_pickle_among_the_arrays_is_not_opened(refuse, tmp_path, member):
    trap = np.empty((4, 1), object)
    trap[:] = Trap(tmp_path / "sprung")
    members = {"x": X, "y": Y, member: npy(trap)}
    refuse(Arrays, zipped(**members), f"'{member}' holds Python objects, which are never opened: it would execute code")
    assert not (tmp_path / "sprung").exists()


def test_a_bare_pickle_is_not_opened(refuse, tmp_path):
    refuse(Arrays, pickle.dumps(Trap(tmp_path / "sprung")), "looks like a pickle, which is never opened")
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("says", "match"),
    [
        (16 * MEGABYTE, "'x' has 64 MB, and all together may have 10"),
        (MEGABYTE, "'x' says .* another number of numbers"),
    ],
)
def test_a_zip_bomb_is_left_packed(tmp_path, says, match):
    """64 MB of zeros in 64 kB, whether the header says so or not: little more than the bound is ever in memory."""
    path = tmp_path / "bomb.npz"
    path.write_bytes(zipped(x=header("'<f4'", f"({says}, 1)") + bytes(64 * MEGABYTE)))
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match=f"bomb.npz: the array {match}"):
            read_npz(path, {"x": Wanted("f4", 2)}, what="arrays", most_bytes=10 * MEGABYTE)
        assert tracemalloc.get_traced_memory()[1] < 12 * MEGABYTE
    finally:
        tracemalloc.stop()


def test_what_an_archive_only_claims_to_hold_takes_no_memory(tmp_path):
    path = tmp_path / "lying.npz"
    path.write_bytes(lying())
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="another number of numbers"):
            read_npz(path, {"x": Wanted("f4", 2)}, what="arrays")
        assert tracemalloc.get_traced_memory()[1] < MEGABYTE
    finally:
        tracemalloc.stop()


def test_all_arrays_together_are_bounded(tmp_path):
    path = tmp_path / "two.npz"
    path.write_bytes(zipped(x=X, y=Y))
    wanted = {"x": Wanted("f4"), "y": Wanted("i")}
    assert len(read_npz(path, wanted, what="arrays", most_bytes=32 + 32)) == 2
    with pytest.raises(UserError, match="the array 'y' has"):
        read_npz(path, wanted, what="arrays", most_bytes=32 + 31)


def test_other_members_are_not_even_looked_at(tmp_path, streams):
    path = tmp_path / "own.npz"
    path.write_bytes(zipped(x=X, y=Y, notes=npy(np.array([Trap(tmp_path / "sprung")], object)), junk=b"?"))
    assert len(Arrays(path=str(path)).raw(Clients(2), streams(1)).y) == 4
    assert not (tmp_path / "sprung").exists()


HOSTILE_TAR = {
    "empty": (b"", "is empty"),
    "text": (b"hello" * 1000, "is no .tar archive"),
    "zip": (SOUND, "is a zip archive; unpack it"),
    "cut": (tarred(*TREE)[:1400], "is cut short or damaged"),
    "cut between members": (tarred(*TREE)[:1024], "is cut short or damaged"),
    "cut gzip": (gzip.compress(tarred(*TREE))[:-30], "is cut short or damaged"),
    "cut xz": (lzma.compress(tarred(*TREE))[:-30], "is cut short or damaged"),
    "symlink": (tarred(("a/good/1.png", b"", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})), "is a link"),
    "a giant": (giant(), "has a part of 1e.*07 MB, and each may have"),
    "unprintable": (tarred(("a/go\nod/1.png", png(), {})), "cannot be printed"),
    "shallow": (tarred(("1.png", png(), {})), "images must lie at <client>/<class>/<image>"),
    "two roots": (tarred(("p/a/b/1.png", png(), {}), ("q/a/b/1.png", png(), {})), "at most one folder around"),
    "no images": (tarred(("a/good/1.txt", b"?", {})), "no images in folders <client>/<class>/<image>"),
    "no image": (tarred(*TREE, ("a/good/2.png", b"hello", {})), "'a/good/2.png': is no image that can be read"),
    "a cut image": (tarred(*TREE, ("a/good/2.png", png(64, 64)[:-40], {})), "'a/good/2.png': is damaged"),
    "a huge image": (
        tarred(*TREE, ("a/good/2.png", png_that_says(9000, 9000), {})),
        "9000 x 9000 pixels, and an image",
    ),
}


@pytest.mark.parametrize("name", HOSTILE_TAR)
def test_hostile_archives_of_images(refuse, name):
    content, match = HOSTILE_TAR[name]
    refuse(ImageFolders, content, match)


@pytest.mark.parametrize("kind", [Cifar10, Cinic10])
@pytest.mark.parametrize("name", ["text", "cut gzip", "symlink"])
def test_other_data_sets_read_archives_as_warily(refuse, kind, name):
    content, match = HOSTILE_TAR[name]
    refuse(kind, content, match)


def test_an_archive_with_a_giant_header_is_not_unpacked(tmp_path, monkeypatch):
    """A header of the pax format may have any size; 50 MB of it are 50 kB of gzip."""
    monkeypatch.setattr(archive, "MOST_AT_ONCE", 10 * MEGABYTE)
    info = tarfile.TarInfo("a/good/1.png")
    info.pax_headers = {"comment": "x" * (50 * MEGABYTE)}
    path = tmp_path / "images.tar.gz"
    path.write_bytes(gzip.compress(info.tobuf(tarfile.PAX_FORMAT) + bytes(1024), 1))
    with pytest.raises(UserError, match="images.tar.gz: has a part of .* MB, and each may have 10 MB"):
        list(tar_files(path, what="images"))


def test_an_archive_without_end_is_given_up(tmp_path, monkeypatch):
    """50 MB of zeros under a name that is passed over, in 50 kB of gzip."""
    monkeypatch.setattr(archive, "MOST_BYTES", 10 * MEGABYTE)
    path = tmp_path / "images.tar.gz"
    path.write_bytes(tarred(("zeros.txt", bytes(50 * MEGABYTE), {}), mode="w:gz"))
    with pytest.raises(UserError, match="images.tar.gz: is too large: unpacked, at most 0.01 GB are read"):
        list(tar_files(path, what="images"))


FUZZED = {
    "npz": (Arrays, SOUND),
    "tar": (ImageFolders, tarred(*TREE)),
    "gzip": (ImageFolders, gzip.compress(tarred(*TREE))),
    "xz": (ImageFolders, lzma.compress(tarred(*TREE))),
}


@pytest.mark.parametrize("name", FUZZED)
def test_whatever_is_changed_there_are_samples_or_one_message(tmp_path, streams, name):
    """200 files with one to four bytes changed, put in or cut out."""
    kind, sound = FUZZED[name]
    rng = np.random.default_rng(1)
    path = tmp_path / "data.bin"
    outcomes = set()
    for _ in range(200):
        content = bytearray(sound)
        for _ in range(rng.integers(1, 5)):
            at = int(rng.integers(len(content)))
            content[at : at + int(rng.integers(0, 4))] = rng.bytes(int(rng.integers(0, 4)))
        path.write_bytes(content)
        try:
            kind(path=str(path)).raw(Clients(2), streams(1))
            outcomes.add("samples")
        except UserError as error:
            assert str(error).startswith(str(path))
            outcomes.add("message")
    assert "message" in outcomes


@pytest.mark.parametrize("kind", [Arrays, Cifar10, Cinic10, Femnist, ImageFolders])
def test_pipes_and_devices_are_not_waited_for(kind, tmp_path, streams, cache_folder):
    (tmp_path / "given").mkdir()
    pipe = tmp_path / "given" / "pipe"
    os.mkfifo(pipe)
    zero = Path("/dev/zero")
    refused(lambda: kind(path=str(pipe)).load(Clients(2), streams(1)), pipe, cache_folder, "is a pipe")
    with pytest.raises(UserError, match="^/dev/zero: is a device"):
        kind(path=str(zero)).load(Clients(2), streams(1))


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (Arrays, "is a folder"),
        (Cifar10, "no images in folders"),
        (Cinic10, "no images in folders"),
        (Femnist, "has no JSON files of LEAF"),
        (ImageFolders, "no images in folders"),
    ],
)
def test_an_empty_folder(kind, match, tmp_path, streams, cache_folder):
    folder = tmp_path / "given" / "empty"
    folder.mkdir(parents=True)
    refused(lambda: kind(path=str(folder)).load(Clients(2), streams(1)), folder, cache_folder, match)


@pytest.mark.parametrize("made", [os.mkfifo, os.mkdir, lambda path: os.symlink("/dev/zero", path)])
def test_what_is_no_file_in_a_folder_of_images(made, tmp_path, streams, cache_folder):
    folder = tmp_path / "given" / "tree"
    (folder / "a" / "good").mkdir(parents=True)
    made(folder / "a" / "good" / "1.png")
    match = "is a pipe|no images in folders|is a device"
    refused(lambda: ImageFolders(path=str(folder)).load(Clients(2), streams(1)), folder, cache_folder, match)


def test_links_in_a_circle_end(tmp_path, streams, cache_folder):
    folder = tmp_path / "given" / "tree"
    folder.mkdir(parents=True)
    (folder / "again").symlink_to(folder)
    refused(lambda: ImageFolders(path=str(folder)).load(Clients(2), streams(1)), folder, cache_folder, "folders deep")


def test_json_by_gzip_is_bounded_and_whole(tmp_path):
    path = tmp_path / "train.json.gz"
    path.write_bytes(gzip.compress(bytes(50 * MEGABYTE), 1))
    with pytest.raises(UserError, match="train.json.gz: is too large: text, unpacked, is at most 10 MB"):
        read_blob(path, what="text", most_bytes=10 * MEGABYTE)
    whole = gzip.compress(json.dumps(list(range(1000))).encode())
    for content, match in [
        (whole[:-20], "is cut short"),
        (whole[:-8] + bytes(8), "is damaged"),
        (whole + b"more", "is damaged"),
        (whole[:30] + b"?" * 30 + whole[60:], "is damaged|is cut short"),
    ]:
        path.write_bytes(content)
        with pytest.raises(UserError, match=f"train.json.gz: {match}"):
            read_blob(path, what="text")


def test_what_classes_and_values_are_is_kept(tmp_path, cache_folder):
    source = tmp_path / "source"
    source.write_bytes(b"1")
    x = np.zeros((3, 1), np.uint8)
    labels = RawDataset(x, np.arange(3), 3, 2.0, sound_class=2)
    values = RawDataset(x, np.zeros(3, np.float32), None, 2.0, target=Target("cycles", 125.0))
    for name, raw in (("labels", labels), ("values", values)):
        for make in (lambda made=raw: made, lambda: pytest.fail("made again")):
            found = cached(name, 1, [source], {}, make)
            assert (found.sound_class, found.target) == (raw.sound_class, raw.target)


def test_a_damaged_entry_of_the_cache_is_made_anew(tmp_path, cache_folder):
    source = tmp_path / "source"
    source.write_bytes(b"1")
    made = []

    def make() -> RawDataset:
        made.append(1)
        return RawDataset(
            np.arange(6, dtype=np.uint8)[:, None], np.arange(6), 6, 2.0, ("a",) * 6, Affine(0.5), remarks=("r",)
        )

    first = cached("x", 1, [source], {}, make)
    [entry] = cache_folder.iterdir()
    for name in ("x.npy", "facts.json"):
        whole = (entry / name).read_bytes()
        another, shaped = whole[:-1] + bytes([whole[-1] ^ 1]), whole.replace(b"(6, 1)", b"(1, 6)")
        damages = (b"", whole[:-3], pickle.dumps(Trap(tmp_path / "sprung")), another)
        for damage in (*damages, shaped) if name == "x.npy" else damages:
            made.clear()
            (entry / name).write_bytes(damage)
            again = cached("x", 1, [source], {}, make)
            assert made == [1]
            assert np.array_equal(again.x, first.x)
            assert cached("x", 1, [source], {}, lambda: pytest.fail("made again")).encoding == Affine(0.5)
    assert not (tmp_path / "sprung").exists()


def test_the_cache_tells_sources_versions_and_options_apart(tmp_path):
    source, folder = tmp_path / "source", tmp_path / "folder"
    source.write_bytes(b"1")
    (folder / "deep").mkdir(parents=True)

    def raw(number: int) -> RawDataset:
        return RawDataset(np.full((1, 1), number, np.uint8), np.zeros(1, np.int64), 2, 2.0, encoding=Ids(99))

    def stored(number: int, name="x", version=1, options=None) -> int:
        return int(cached(name, version, [source, folder], options or {}, lambda: raw(number)).x[0, 0])

    assert stored(1) == stored(2) == 1
    assert [stored(3, "y"), stored(4, version=2), stored(5, options={"a": 1})] == [3, 4, 5]
    source.write_bytes(b"2")
    assert stored(6) == 6
    (folder / "deep" / "file").write_bytes(b"")
    assert stored(7) == stored(8) == 7
    (folder / "deep" / "file").write_bytes(b"x")
    os.utime(folder / "deep" / "file", ns=(1, 1))
    assert stored(9) == 9
    os.utime(folder / "deep" / "file", ns=(1, 2))
    assert stored(10) == 10
    (folder / "deep").rename(folder / "deeper")
    assert stored(11) == stored(12) == 11


def test_what_cannot_be_kept_is_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("FEDSIM_CACHE", str(tmp_path / "file" / "cache"))
    raw = RawDataset(np.zeros((1, 1), np.uint8), np.zeros(1, np.int64), 2, 2.0)
    [remark] = cached("x", 1, [tmp_path / "file"], {}, lambda: raw).remarks
    where = tmp_path / "file" / "cache"
    assert remark == f"not kept in {where}, the cache: Not a directory; FEDSIM_CACHE may name another folder"


def test_a_source_that_cannot_be_looked_at_is_refused(tmp_path):
    with pytest.raises(UserError, match="gone: cannot be read"):
        cached("x", 1, [tmp_path / "gone"], {}, lambda: pytest.fail("made"))
