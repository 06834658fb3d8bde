"""Commands that are to answer in seconds refuse, by its number, what takes longer to read; a run reads it."""

from __future__ import annotations

import json
import tarfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from peak_memory import peak_bytes
from PIL import Image
from scipy.io import savemat
from small_worlds import scenario

from fedsim import quick
from fedsim.data import cache
from fedsim.data.arrays import Arrays
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.data.glyphs import dataset as glyphs
from fedsim.data.glyphs.dataset import Glyphs
from fedsim.data.raw_dataset import Clients, Later, RawDataset
from fedsim.errors import UserError
from fedsim.quick import in_seconds
from fedsim.registry import load as load_class
from fedsim.scenario.load import written_out
from fedsim.topology.imported import read_topology_data

EQUAL = {"images_per_device": 10.0, "images_spread": 0.0}
WAY_OUT = "give --all-data to look at everything, or start the run, which always does"


def test_a_reader_is_told_off_only_where_an_answer_is_wanted_in_seconds() -> None:
    quick.check_samples(quick.MOST_SAMPLES + 1, "here")
    with in_seconds():
        quick.check_samples(quick.MOST_SAMPLES, "here")
        with pytest.raises(UserError, match=rf"^here: has 1,500,001 samples, and at most 1,500,000 .*; {WAY_OUT}$"):
            quick.check_samples(quick.MOST_SAMPLES + 1, "here")
        with in_seconds(answer=False):
            quick.check_samples(quick.MOST_SAMPLES + 1, "here")
    quick.check_bytes(quick.MOST_BYTES + 1e6, "here")
    with in_seconds(), pytest.raises(UserError, match="has 201 MB of samples, and at most 200 are looked at"):
        quick.check_bytes(quick.MOST_BYTES + 1e6, "here")


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    np.savez(tmp_path / "plant.npz", x=np.zeros((50, 40), np.uint8), y=np.arange(50) % 2)
    return tmp_path / "plant.npz"


@pytest.mark.parametrize(
    ("limit", "most", "refused"),
    [
        ("MOST_BYTES", 2_000, "plant.npz: has 1 MB of samples, and at most 0 are"),
        ("MOST_SAMPLES", 49, "plant.npz: has 50 samples, and at most 49 are"),
    ],
)
def test_arrays_are_refused_by_what_they_declare(
    archive: Path, limit: str, most: int, refused: str, monkeypatch: pytest.MonkeyPatch, streams
) -> None:
    monkeypatch.setattr(quick, limit, most)
    data = Arrays(path=str(archive))
    assert data.load(Clients(2), streams(1)).clients == 2
    with in_seconds(), pytest.raises(UserError, match=refused):
        data.load(Clients(2), streams(1))


def test_what_the_cache_keeps_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    def made() -> RawDataset:
        return RawDataset(x=np.zeros((9, 100), np.uint8), y=np.zeros(9, np.int64), classes=2, sample_bytes=1.0)

    def kept() -> RawDataset:
        return cache.cached("few", 1, [archive], {}, made)

    kept()
    monkeypatch.setattr(cache, "_read", lambda _: pytest.fail("it was read"))
    monkeypatch.setattr(quick, "MOST_BYTES", 900)
    with in_seconds(), pytest.raises(UserError, match=r"plant\.npz: has 1 MB of samples"):
        kept()


def pictures(folder: Path) -> Path:
    """Four images of 5 x 4 pixels, in two classes of one client, and a file that is none."""
    for number in range(4):
        place = folder / "hall" / f"class-{number % 2}"
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (5, 4), (number, 0, 0)).save(place / f"{number}.png")
    (folder / "hall" / "class-0" / "notes.txt").write_text("sharp", encoding="utf-8")
    return folder


def packed_pictures(folder: Path) -> Path:
    with tarfile.open(folder / "pictures.tar", "w") as archive:
        archive.add(pictures(folder / "pictures"), "pictures")
    return folder / "pictures.tar"


def words(folder: Path) -> Path:
    """Three clips of a second, of three speakers, in two words."""
    for number, word in enumerate(("on", "off", "on")):
        (folder / word).mkdir(parents=True, exist_ok=True)
        with wave.open(str(folder / word / f"speaker{number}_nohash_0.wav"), "wb") as file:
            file.setparams((1, 2, 16_000, 0, "NONE", ""))
            file.writeframes(bytes(32_000))
    return folder


def recordings(folder: Path) -> Path:
    """Two recordings of 3,000 measurements."""
    numbers = {"mat_file": np.array(["97", "105"]), "fault": np.array(["normal", "IR"])}
    sizes = {"size_mil": np.array([0, 7]), "load_hp": np.array([0, 0])}
    signal = {"de": np.arange(6_000, dtype=np.int16), "de_off": np.array([0, 3_000, 6_000]), "de_scale": np.ones(2)}
    np.savez(folder / "cwru.npz", **numbers, **sizes, **signal)
    return folder / "cwru.npz"


def mat_files(folder: Path) -> Path:
    for number in (97, 105):
        savemat(folder / f"{number}.mat", {f"X{number:03d}_DE_time": np.zeros((3_000, 1))})
    return folder


def table(folder: Path) -> Path:
    (folder / "table.csv").write_text("a,b,y\n" + "1,2,x\n3,4,z\n" * 3, encoding="utf-8")
    return folder / "table.csv"


def news(folder: Path) -> Path:
    (folder / "train.csv").write_text('"1","Title","Text"\n"2","Title","Text"\n' * 3, encoding="utf-8")
    return folder / "train.csv"


MANY = [
    (pictures, "images", "reading.images.MOST_IMAGES_IN_SECONDS", 3, {}, "has 4 images to read for the first time"),
    (pictures, "images", "reading.images.MOST_PIXELS_IN_SECONDS", 79, {}, "has 80 pixels to read for the first time"),
    (pictures, "images", "cache.MOST_FILES_IN_SECONDS", 3, {}, "has 4 files"),
    (packed_pictures, "images", "reading.archive.MOST_FILES_IN_SECONDS", 7, {}, "has 8 files to look at for the first"),
    (packed_pictures, "images", "reading.archive.MOST_BYTES_IN_SECONDS", 2_000, {}, "has 1 MB, unpacked"),
    (words, "speech_commands", "sound.MOST_FRAMES", 293, {"words": "all"}, "has 294 frames of sound"),
    (words, "speech_commands", "sound.MOST_BYTES_IN_SECONDS", 95_000, {"words": "all"}, "has 1 MB of sound to read"),
    (words, "speech_commands", "quick.MOST_BYTES", 3 * 98 * 40 * 4 - 1, {"words": "all"}, "has 1 MB of samples"),
    (recordings, "cwru", "quick.MOST_BYTES", 23_999, {"clients": "recording"}, r"cwru\.npz: has 1 MB of samples"),
    (recordings, "cwru", "quick.MOST_BYTES", 30_000, {"stride": 100, "clients": "recording"}, "stride=100: has 1 MB"),
    (mat_files, "cwru", "quick.MOST_BYTES", 23_999, {"clients": "recording"}, "has 1 MB of samples"),
    (table, "csv", "reading.csv_columns.MOST_NUMBERS_IN_SECONDS", 11, {"target": "y"}, "has 12 numbers"),
    (news, "ag_news", "ag_news.MOST_BYTES_IN_SECONDS", 100, {}, "has 1 MB of text"),
    (news, "ag_news", "quick.MOST_BYTES", 6 * 1014 - 1, {}, "has 1 MB of samples"),
]


@pytest.mark.parametrize(
    ("make", "name", "limit", "most", "options", "refused"), MANY, ids=[f"{row[0].__name__}-{row[2]}" for row in MANY]
)
def test_sources_are_refused_by_what_they_hold(
    make, name: str, limit: str, most: int, options: dict, refused: str, tmp_path: Path, streams, monkeypatch
) -> None:
    kind = load_class("datasets", name)
    data = kind.model_validate({"path": str(make(tmp_path)), "partition": {"name": "iid"}, **options})
    place = f"fedsim.{limit}" if limit.startswith("quick") else f"fedsim.data.{limit}"
    with monkeypatch.context() as lower:
        lower.setattr(place, most)
        with in_seconds(), pytest.raises(UserError, match=f"{refused}.*, and at most .* are looked at"):
            data.load(Clients(1), streams(1))
    with in_seconds():
        assert data.load(Clients(1), streams(1)).clients == 1


def test_many_small_samples_are_refused_for_what_each_takes_beside(
    archive: Path, monkeypatch: pytest.MonkeyPatch, streams
) -> None:
    monkeypatch.setattr("fedsim.data.sampled.MOST_BYTES_IN_SECONDS", 50 * (40 + 80) - 1)
    assert Arrays(path=str(archive)).load(Clients(2), streams(1)).clients == 2
    refused = "data set 'arrays': has 1 MB of samples, with 80 bytes more for each of 50, and at most 0 are looked at"
    with in_seconds(), pytest.raises(UserError, match=refused):
        Arrays(path=str(archive)).load(Clients(2), streams(1))


def test_skews_of_many_numbers_are_refused(archive: Path, monkeypatch: pytest.MonkeyPatch, streams) -> None:
    data = Arrays.model_validate({"path": str(archive), "feature_skew": {"name": "noise"}})
    monkeypatch.setattr("fedsim.data.sampled.MOST_SKEWED_IN_SECONDS", 1_999)
    assert data.load(Clients(2), streams(1)).clients == 2
    with in_seconds(), pytest.raises(UserError, match="data set 'arrays': has 2,000 numbers to skew"):
        data.load(Clients(2), streams(1))


def test_an_entry_that_cannot_be_looked_at_is_made_anew(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    def made() -> RawDataset:
        return RawDataset(x=np.zeros((9, 100), np.uint8), y=np.zeros(9, np.int64), classes=2, sample_bytes=1.0)

    cache.cached("few", 1, [archive], {}, made)
    stat = Path.stat

    def forbidden(path: Path, **keys: Any) -> Any:
        if path.suffix == ".npy":
            raise PermissionError(13, "Permission denied")
        return stat(path, **keys)

    monkeypatch.setattr(Path, "stat", forbidden)
    assert len(cache.cached("few", 1, [archive], {}, made).y) == 9


def test_a_topology_of_many_nodes_and_links_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [{"id": "cloud", "kind": "cloud"}, {"id": "hall", "kind": "base_station"}, {"id": "one", "kind": "sensor"}]
    links = [{"source": "cloud", "target": "hall"}, {"source": "hall", "target": "one"}]
    path = tmp_path / "town.json"
    path.write_text(json.dumps({"nodes": nodes, "links": links}), encoding="utf-8")
    monkeypatch.setattr("fedsim.topology.files.drawn.MOST_ITEMS_IN_SECONDS", 4)
    assert read_topology_data(path, path.read_text())
    with in_seconds(), pytest.raises(UserError, match=r"town\.json: has 5 nodes and links, and at most 4 are"):
        read_topology_data(path, path.read_text())


def test_glyphs_are_refused_by_their_number_before_any_is_drawn(monkeypatch: pytest.MonkeyPatch, streams) -> None:
    monkeypatch.setattr(quick, "MOST_SAMPLES", 39)
    assert len(Glyphs(**EQUAL).raw(Clients(4), streams(1)).y) == 40
    with in_seconds(), pytest.raises(UserError, match="glyphs of 4 cameras: has 40 samples, and at most 39 are"):
        Glyphs(**EQUAL).raw(Clients(4), streams(1))


def test_a_hundred_thousand_cameras_are_not_too_many() -> None:
    """The least that each of them has: ten images."""
    assert quick.MOST_SAMPLES >= 100_000 * 10


def test_glyphs_that_must_be_drawn_are_refused_where_they_are_many(monkeypatch: pytest.MonkeyPatch, streams) -> None:
    monkeypatch.setattr(glyphs, "MOST_DRAWN", 39)
    turned = Glyphs.model_validate({**EQUAL, "feature_skew": {"name": "rotation", "degrees": [90]}})
    assert turned.load(Clients(4), streams(1)).clients == 4
    with in_seconds(), pytest.raises(UserError, match="glyphs: has 40 images to draw, and at most 39 are looked at"):
        turned.load(Clients(4), streams(1))
    with in_seconds():
        assert Glyphs(**EQUAL).load(Clients(4), streams(1)).clients == 4  # nobody looks at them


def test_some_samples_are_drawn_alone_and_are_the_same(streams) -> None:
    some, whole = (Glyphs(**EQUAL).load(Clients(4), streams(1)) for _ in range(2))
    ids = np.array([31, 2, 9, 10, 2])
    assert "x" not in vars(some)
    rows = some.rows(ids)
    assert "x" not in vars(some)
    assert whole.x is not None
    assert np.array_equal(rows, whole.x[ids])
    assert np.array_equal(whole.rows(ids), rows)
    assert np.array_equal(some.samples(ids), Affine(1 / 255).decode(rows))
    assert some.digest == whole.digest


def test_samples_that_are_made_later_must_be_what_was_promised() -> None:
    made = Later((3, 2), np.dtype(np.uint8), lambda: np.zeros((3, 3), np.uint8), lambda ids: np.zeros((len(ids), 2)))
    data = FederatedDataset(
        name="late",
        classes=2,
        sample_shape=(2,),
        sample_bytes=1.0,
        client_samples=np.array([2]),
        stored=made,
        y=np.zeros(3, np.int64),
        train_ids=(np.array([0, 1]),),
        client_test_ids=(np.array([], np.int64),),
    )
    with pytest.raises(ValueError, match=r"uint8 \(3, 3\) was made, not uint8 \(3, 2\)"):
        _ = data.x


ROWS = 1_200_000


def large(folder: Path, kind: str) -> dict[str, Any]:
    """Data close to a limit, in *folder*."""
    if kind == "cameras":
        return {"name": "glyphs", "images_per_device": 10}
    if kind == "floats":
        np.savez(folder / "large.npz", x=np.zeros((49_000, 1_000), np.float32), y=np.arange(49_000) % 10)
    else:
        x, y = np.zeros((ROWS, 100), np.uint8), (np.arange(ROWS) % 10).astype(np.uint8)
        np.savez(folder / "large.npz", x=x, y=y, client=np.arange(ROWS) % 100_000)
    partition = {"name": "iid" if kind == "floats" else "natural"}
    return {"name": "arrays", "path": "large.npz", "partition": partition}


@pytest.mark.long
@pytest.mark.parametrize("command", ["validate", "describe"])
@pytest.mark.parametrize("kind", ["cameras", "floats", "bytes"])
def test_data_close_to_a_limit_take_at_most_500_mb(command: str, kind: str, tmp_path: Path) -> None:
    """For 100,000 devices."""
    devices = {"topology": {"name": "star", "devices": 20_000 if kind == "floats" else 100_000}}
    mlp = {"model": {"name": "mlp", "hidden": [10]}, "data": large(tmp_path, kind)}
    (tmp_path / "large.yaml").write_text(written_out(scenario({**devices, **mlp})), encoding="utf-8")
    assert peak_bytes(command, tmp_path / "large.yaml") <= 500_000_000
