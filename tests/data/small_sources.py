"""A small source for each data set that reads files: written into a folder, and the options that read it."""

from __future__ import annotations

import wave
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from fedsim.data.cifar10 import BATCHES, CLASSES
from fedsim.data.speech_commands import COMMANDS

Options = dict[str, Any]


def random() -> np.random.Generator:
    return np.random.default_rng(1)


def write_wav(path: Path, sound: np.ndarray, rate_hz: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(sound.astype("<i2").tobytes())


def femnist(folder: Path) -> Options:
    np.savez(
        folder / "femnist.npz",
        images=random().integers(0, 256, (40, 28, 28)).astype(np.uint8),
        labels=(np.arange(40) % 62).astype(np.uint8),
        writer=(np.arange(40) % 4).astype(np.int16),
        split=(np.arange(40) >= 32).astype(np.uint8),
        writer_ids=np.array([f"f000{writer}_10" for writer in range(4)]),
    )
    return {"path": str(folder / "femnist.npz")}


def cifar10(folder: Path) -> Options:
    for batch in BATCHES:
        records = random().integers(0, 256, (10, 3073)).astype(np.uint8)
        records[:, 0] = np.arange(10)
        (folder / f"{batch}.bin").write_bytes(records.tobytes())
    return {"path": str(folder)}


def cinic10(folder: Path) -> Options:
    for part in ("train", "valid", "test"):
        for kind in CLASSES:
            (folder / part / kind).mkdir(parents=True)
            image = random().integers(0, 256, (32, 32, 3)).astype(np.uint8)
            Image.fromarray(image).save(folder / part / kind / "n01.png")
    return {"path": str(folder)}


def ag_news(folder: Path) -> Options:
    (folder / "train.csv").write_text("".join(f'"{number % 4 + 1}","Title {number}","Text"\n' for number in range(16)))
    (folder / "test.csv").write_text('"4","Robot","It walks"\n"1","Vote","They vote"\n')
    return {"path": str(folder)}


def speech_commands(folder: Path) -> Options:
    speakers = ("0a7c2a8d", "1b2c3d4e", "9f00aa11")
    for word in COMMANDS:
        (folder / word).mkdir()
        for speaker in speakers:
            write_wav(folder / word / f"{speaker}_nohash_0.wav", random().integers(-999, 999, 16_000), 16_000)
    (folder / "testing_list.txt").write_text("".join(f"{word}/{speakers[2]}_nohash_0.wav\n" for word in COMMANDS))
    (folder / "validation_list.txt").write_text("")
    return {"path": str(folder)}


def spoken_digits(folder: Path) -> Options:
    for digit in range(10):
        for speaker in ("jackson", "theo"):
            for index in (0, 7):
                sound = random().integers(-999, 999, 1200)
                write_wav(folder / f"{digit}_{speaker}_{index}.wav", sound, 8000)
    return {"path": str(folder)}


def cmapss(folder: Path) -> Options:
    def lines(cycles: int) -> str:
        rows = [(unit, cycle) for unit in (1, 2, 3) for cycle in range(1, cycles + 1)]
        values = random().normal(100, 3, (len(rows), 24)).round(2)
        return "".join(" ".join(map(str, [*row, *value])) + "\n" for row, value in zip(rows, values, strict=True))

    (folder / "train_FD001.txt").write_text(lines(9))
    (folder / "test_FD001.txt").write_text(lines(6))
    (folder / "RUL_FD001.txt").write_text("100\n20\n60\n")
    return {"path": str(folder), "window": 4}


def cwru(folder: Path) -> Options:
    """Four loads of each of a sound bearing and one with a damaged inner race."""
    clips = [random().integers(-999, 999, 900).astype(np.int16) for _ in range(8)]
    ends = np.cumsum([0, *map(len, clips)])
    np.savez(
        folder / "cwru.npz",
        mat_file=np.array([f"12k_{number}.mat" for number in (97, 98, 99, 100, 105, 106, 107, 108)]),
        fault=np.repeat(["normal", "IR"], 4),
        size_mil=np.repeat([0, 7], 4).astype(np.int16),
        load_hp=np.tile(np.arange(4, dtype=np.int8), 2),
        **{f"{end}": np.concatenate(clips) for end in ("de", "fe")},
        **{f"{end}_off": ends for end in ("de", "fe")},
        **{f"{end}_scale": np.full(8, 2.0**-12) for end in ("de", "fe")},
    )
    return {"path": str(folder / "cwru.npz"), "window": 64, "stride": 64}


def arrays(folder: Path) -> Options:
    np.savez(folder / "own.npz", x=random().random((40, 3, 4)).astype(np.float32), y=np.arange(40) % 5)
    return {"path": str(folder / "own.npz")}


def images(folder: Path) -> Options:
    for line in ("line-a", "line-b"):
        for kind in ("bad", "good"):
            (folder / line / kind).mkdir(parents=True)
            for number in range(5):
                image = random().integers(0, 256, (4, 6, 3)).astype(np.uint8)
                Image.fromarray(image).save(folder / line / kind / f"{number}.png")
    return {"path": str(folder)}


def csv(folder: Path) -> Options:
    rows = "".join(f"{number}.5,{'ok' if number % 2 else 'worn'}\n" for number in range(40))
    (folder / "table.csv").write_text(f"speed,state\n{rows}")
    return {"path": str(folder / "table.csv"), "target": "state"}


def python(folder: Path) -> Options:
    (folder / "my_data.py").write_text(
        "import numpy as np\n\n\ndef make(clients, rng):\n"
        "    return {'x': rng.random((40, 3), dtype=np.float32), 'y': np.arange(40) % 4}\n"
    )
    return {"path": f"{folder / 'my_data.py'}:make"}


SOURCES: dict[str, Callable[[Path], Options]] = {
    each.__name__: each
    for each in (
        femnist,
        cifar10,
        cinic10,
        ag_news,
        speech_commands,
        spoken_digits,
        cmapss,
        cwru,
        arrays,
        images,
        csv,
        python,
    )
}
"""By the registered name: writes the source into an empty folder, and returns the options that name it."""
