"""Data: opening a source, spreading it over clients, drawing it, and handing out mini-batches.

Each against what one would write otherwise, in the same group, so that the table shows ratios. What needs files of data
is skipped unless FEDSIM_DATA names their folder.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from pytest_benchmark.fixture import BenchmarkFixture

from fedsim.data import cache, source
from fedsim.data.bearings.dataset import Bearings
from fedsim.data.captures import augmented
from fedsim.data.cifar10 import Cifar10
from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import Affine
from fedsim.data.femnist import Femnist
from fedsim.data.glyphs.style import PIXELS, device_style, draw
from fedsim.data.glyphs.typefaces import CHARACTERS, font_file, template
from fedsim.data.partition.dirichlet import Dirichlet
from fedsim.data.partition.natural import Natural
from fedsim.data.partition.settings import Labels, PartitionSettings
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.sampled import SampledDataset
from fedsim.data.stream.settings import Augmentation
from fedsim.kernel.streams import Streams
from fedsim.learning.batches import batches

WRITERS = 368
LEAF_WRITERS, LEAF_IMAGES, SIDE = 8, 160, 28
GLYPHS = 640
WINDOWS = 1000
CAPTURE = 50
LABELS, HOLDERS, ALPHA = 60_000, 1_000, 0.5
LOCAL, BATCH = 160, 5

needs_files = pytest.mark.skipif(source.VARIABLE not in os.environ, reason=f"{source.VARIABLE} names no folder of data")


def _streams(purpose: str) -> np.random.Generator:
    return Streams(1)(purpose).generator()


@pytest.fixture
def cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


# FEMNIST from one file of arrays


@needs_files
@pytest.mark.benchmark(group=f"FEMNIST for {WRITERS} clients, from an .npz file")
def test_femnist(benchmark: BenchmarkFixture) -> None:
    data = Femnist(path="femnist/femnist_writers.npz")
    assert benchmark(lambda: data.load(Clients(WRITERS), _streams)).clients == WRITERS


@needs_files
@pytest.mark.benchmark(group=f"FEMNIST for {WRITERS} clients, from an .npz file")
def test_writer_by_writer_with_numpy(benchmark: BenchmarkFixture) -> None:
    """Without duplicates left out, without any check, and four times as large in memory."""

    def load() -> list[tuple[torch.Tensor, torch.Tensor]]:
        with np.load(Path(os.environ[source.VARIABLE]) / "femnist" / "femnist_writers.npz") as file:
            images, labels, writer, split = (file[name] for name in ("images", "labels", "writer", "split"))
        held = []
        for number in np.argsort(-np.bincount(writer), kind="stable")[:WRITERS]:
            for part in (0, 1):
                mine = (writer == number) & (split == part)
                x = torch.from_numpy(1 - images[mine][:, None].astype(np.float32) / 255)
                held.append((x, torch.from_numpy(labels[mine].astype(np.int64))))
        return held

    assert len(benchmark(load)) == 2 * WRITERS


# FEMNIST from LEAF's JSON files


@pytest.fixture
def leaf_folder(tmp_path: Path) -> Path:
    rng, content = np.random.default_rng(1), {}
    for writer in range(LEAF_WRITERS):
        ink = rng.integers(0, 256, (LEAF_IMAGES, SIDE, SIDE)) / 255
        ink[:, [0, -1]] = ink[:, :, [0, -1]] = 1.0  # nobody writes on the border
        content[f"f{writer:04}"] = {
            "x": ink.reshape(LEAF_IMAGES, -1).tolist(),
            "y": [label % 62 for label in range(LEAF_IMAGES)],
        }
    for part in ("train", "test"):
        folder = tmp_path / "leaf" / part
        folder.mkdir(parents=True)
        some = dict(list(content.items())[:: 1 if part == "train" else LEAF_WRITERS])
        (folder / "all_data_0.json").write_text(json.dumps({"user_data": some}))
    return tmp_path / "leaf"


@pytest.mark.benchmark(group=f"{LEAF_WRITERS * LEAF_IMAGES} images of LEAF's JSON files")
@pytest.mark.parametrize("time", ["first", "second"])
def test_leaf(benchmark: BenchmarkFixture, leaf_folder: Path, cache_folder: Path, time: str) -> None:
    data = Femnist(path=str(leaf_folder))

    def forget() -> None:
        if time == "first":
            shutil.rmtree(cache_folder, ignore_errors=True)

    data.load(Clients(LEAF_WRITERS), _streams)
    loaded = benchmark.pedantic(lambda: data.load(Clients(LEAF_WRITERS), _streams), setup=forget, rounds=5)  # type: ignore[no-untyped-call]
    assert loaded.clients == LEAF_WRITERS


@pytest.mark.benchmark(group=f"{LEAF_WRITERS * LEAF_IMAGES} images of LEAF's JSON files")
def test_json_load(benchmark: BenchmarkFixture, leaf_folder: Path) -> None:
    def load() -> dict[str, NDArray[np.float32]]:
        held = {}
        for file in sorted(leaf_folder.glob("*/*.json")):
            for writer, samples in json.loads(file.read_bytes())["user_data"].items():
                held[f"{file.parent.name}/{writer}"] = np.array(samples["x"], np.float32)
        return held

    assert len(benchmark.pedantic(load, rounds=5)) == LEAF_WRITERS + 1  # type: ignore[no-untyped-call]


# What the cache is good for


@needs_files
@pytest.mark.benchmark(group="60,000 images of CIFAR-10 in an archive of JPEG files")
@pytest.mark.parametrize("time", ["first", "second"])
def test_cifar10(benchmark: BenchmarkFixture, cache_folder: Path, time: str) -> None:
    data = Cifar10(path="cifar10/cifar10_jpeg_full.tar.xz")
    if time == "second":
        data.raw(Clients(1), _streams)
    raw = benchmark.pedantic(lambda: data.raw(Clients(1), _streams), rounds=1 if time == "first" else 5)  # type: ignore[no-untyped-call]
    assert len(raw.y) == 60_000


# Generated characters


@pytest.mark.benchmark(group=f"{GLYPHS} generated characters of one camera")
def test_glyphs(benchmark: BenchmarkFixture) -> None:
    rng = np.random.default_rng(1)
    style, labels = device_style(rng), rng.integers(0, len(CHARACTERS), GLYPHS)
    distances = template(style.typeface)
    assert benchmark(lambda: draw(distances, labels, style, rng)).shape == (GLYPHS, PIXELS, PIXELS)


@pytest.mark.benchmark(group=f"{GLYPHS} generated characters of one camera")
def test_pillow_character_by_character(benchmark: BenchmarkFixture) -> None:
    """Turned, slanted, with noise; without boldness, blur, dirt and glare."""
    rng = np.random.default_rng(1)
    font = ImageFont.truetype(font_file("DejaVuSans"), 22)
    labels = rng.integers(0, len(CHARACTERS), GLYPHS)

    def character(label: int) -> NDArray[np.uint8]:
        image = Image.new("L", (PIXELS, PIXELS))
        ImageDraw.Draw(image).text((PIXELS / 2, PIXELS / 2), CHARACTERS[label], fill=200, font=font, anchor="mm")
        slant, right, down = rng.normal(0, 0.1), *rng.normal(0, 0.6, 2)
        matrix = (1.0, slant, right, 0.0, 1.0, down)
        turned = image.transform(image.size, Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR)
        noisy = np.asarray(turned, np.float32) + 25 * rng.standard_normal((PIXELS, PIXELS), np.float32)
        grey: NDArray[np.uint8] = np.clip(noisy, 0, 255).astype(np.uint8)
        return grey

    assert benchmark(lambda: np.stack([character(label) for label in labels])).shape == (GLYPHS, PIXELS, PIXELS)


# Generated vibration


@pytest.mark.benchmark(group=f"{WINDOWS} generated windows of vibration, 2048 measurements each, of 10 machines")
def test_bearings(benchmark: BenchmarkFixture) -> None:
    data = Bearings(windows_per_machine=WINDOWS / 10, windows_spread=0.0)

    def made() -> tuple[int, ...]:
        return np.asarray(data.raw(Clients(10), _streams).x).shape

    assert benchmark(made) == (WINDOWS, 1, 2048)


# Augmentation


@pytest.fixture
def images() -> NDArray[np.float32]:
    return np.random.default_rng(1).random((CAPTURE, 1, SIDE, SIDE), np.float32)


@pytest.fixture
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.benchmark(group=f"{CAPTURE} images cropped, enlarged and brightened")
def test_augmented(benchmark: BenchmarkFixture, images: NDArray[np.float32]) -> None:
    rng = np.random.default_rng(1)
    assert benchmark(lambda: augmented(images, Augmentation(), rng)).shape == images.shape


@pytest.mark.benchmark(group=f"{CAPTURE} images cropped, enlarged and brightened")
@pytest.mark.parametrize("way", ["grid_sample", "crop_and_interpolate"])
def test_torch_image_by_image(
    benchmark: BenchmarkFixture, images: NDArray[np.float32], one_thread: None, way: str
) -> None:
    """What torchvision's RandomResizedCrop and ColorJitter do to one image (whole pixels), or a sampling grid."""
    tensors = torch.from_numpy(images)

    def change(image: torch.Tensor) -> torch.Tensor:
        area, aspect = float(torch.empty(1).uniform_(0.8, 1)), math.exp(float(torch.empty(1).uniform_(-0.2, 0.2)))
        width, height = min(math.sqrt(area * aspect), 1.0), min(math.sqrt(area / aspect), 1.0)
        left, top = (float(torch.rand(1)) * (1 - extent) for extent in (width, height))
        if way == "grid_sample":
            theta = torch.tensor([[[width, 0, 2 * left + width - 1], [0, height, 2 * top + height - 1]]])
            grid = torch.nn.functional.affine_grid(theta, [1, 1, SIDE, SIDE], align_corners=False)
            crop = torch.nn.functional.grid_sample(image[None], grid, padding_mode="border", align_corners=False)
        else:
            rows, columns = round(height * SIDE), round(width * SIDE)
            x, y = round(left * SIDE), round(top * SIDE)
            part = image[None, :, y : y + rows, x : x + columns]
            crop = torch.nn.functional.interpolate(part, (SIDE, SIDE), mode="bilinear")
        return (crop[0] * float(torch.empty(1).uniform_(0.9, 1.1))).clamp(0, 1)

    assert benchmark(lambda: torch.stack([change(image) for image in tensors])).shape == images.shape


# Partitions


@pytest.mark.benchmark(group=f"{LABELS} labels over {HOLDERS} clients, Dirichlet({ALPHA})")
def test_dirichlet(benchmark: BenchmarkFixture) -> None:
    labels, settings = Labels(np.arange(LABELS) % 10), Dirichlet(alpha=ALPHA)
    rng = np.random.default_rng(1)
    assert sum(map(len, benchmark(lambda: settings.split(labels, Clients(HOLDERS), rng)))) == LABELS


@pytest.mark.benchmark(group=f"{LABELS} labels over {HOLDERS} clients, Dirichlet({ALPHA})")
def test_lists_class_by_class(benchmark: BenchmarkFixture) -> None:
    """The loop that NIID-Bench (Li et al., ICDE 2022) has, with a minimum of 1."""
    y, rng = np.arange(LABELS) % 10, np.random.default_rng(1)

    def split() -> list[list[int]]:
        smallest = 0
        held: list[list[int]] = []
        while smallest < 1:
            held = [[] for _ in range(HOLDERS)]
            for label in range(10):
                members = np.where(y == label)[0]
                rng.shuffle(members)
                shares = rng.dirichlet(np.repeat(ALPHA, HOLDERS))
                shares = np.array([p * (len(own) < LABELS / HOLDERS) for p, own in zip(shares, held, strict=True)])
                cuts = (np.cumsum(shares / shares.sum()) * len(members)).astype(int)[:-1]
                parts = np.split(members, cuts)
                held = [own + part.tolist() for own, part in zip(held, parts, strict=True)]
            smallest = min(map(len, held))
        for own in held:
            rng.shuffle(own)
        return held

    assert sum(map(len, benchmark(split))) == LABELS


# Mini-batches


@pytest.fixture
def bytes_of_one_client() -> FederatedDataset:
    rng = np.random.default_rng(1)
    return FederatedDataset(
        name="bytes",
        classes=62,
        sample_shape=(1, SIDE, SIDE),
        sample_bytes=785.0,
        client_samples=np.array([LOCAL]),
        stored=rng.integers(0, 256, (LOCAL, 1, SIDE, SIDE)).astype(np.uint8),
        y=rng.integers(0, 62, LOCAL),
        encoding=Affine(1 / 255),
        train_ids=(np.arange(LOCAL),),
        client_test_ids=(np.empty(0, np.int64),),
    )


@pytest.mark.benchmark(group=f"an epoch of {LOCAL // BATCH} mini-batches of {BATCH} images")
def test_decoded_from_bytes(benchmark: BenchmarkFixture, bytes_of_one_client: FederatedDataset) -> None:
    data, rng = bytes_of_one_client, np.random.default_rng(1)

    def epoch() -> int:
        ids = batches(data.train_ids[0], batch_size=BATCH, epochs=1, rng=rng)
        return sum(len(torch.from_numpy(data.samples(some))) for some in ids)

    assert benchmark(epoch) == LOCAL


@pytest.mark.benchmark(group=f"an epoch of {LOCAL // BATCH} mini-batches of {BATCH} images")
def test_taken_from_a_tensor_of_floats(benchmark: BenchmarkFixture, bytes_of_one_client: FederatedDataset) -> None:
    data, rng = bytes_of_one_client, np.random.default_rng(1)
    resident = torch.from_numpy(data.samples(data.train_ids[0]))

    def epoch() -> int:
        ids = batches(data.train_ids[0], batch_size=BATCH, epochs=1, rng=rng)
        return sum(len(resident[torch.from_numpy(some)]) for some in ids)

    assert benchmark(epoch) == LOCAL


# Growth


class TenEach(SampledDataset):
    """Ten samples of 2 x 2 pixels for each client."""

    name: Literal["ten_each"] = "ten_each"
    partition: PartitionSettings = Natural()

    def raw(self, clients: Clients, stream: Generators) -> RawDataset:
        number = 10 * clients.total
        facts: dict[str, Any] = {"classes": 10, "sample_bytes": 5.0, "encoding": Affine(1 / 255)}
        y, owner = np.arange(number) % 10, np.repeat(np.arange(clients.total), 10)
        return RawDataset(x=np.zeros((number, 1, 2, 2), np.uint8), y=y, owner=owner, **facts)


@pytest.mark.benchmark(group="spread ten samples each over clients")
@pytest.mark.parametrize("clients", [100, 1_000, 10_000, 100_000])
def test_load(benchmark: BenchmarkFixture, clients: int) -> None:
    data = TenEach()
    loaded = benchmark.pedantic(lambda: data.load(Clients(clients), _streams), rounds=3, warmup_rounds=1)  # type: ignore[no-untyped-call]
    assert loaded.clients == clients
