"""Draws docs/images/data_NAME.png: samples of the data sets, as models get them.

``FEDSIM_DATA=... python docs/pictures/data.py [NAME ...]``

Without names, all are drawn; only `digits` and `glyphs` need no files.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np

from fedsim import registry
from fedsim.data.raw_dataset import Clients
from fedsim.kernel.streams import Streams
from fedsim.viz.sample_sheet import sample_sheet
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC

IMAGES = Path(__file__).resolve().parents[1] / "images"


@dataclass(frozen=True)
class Picture:
    """What is drawn of a data set."""

    clients: int
    options: dict[str, Any] = field(default_factory=dict)
    sheet: dict[str, Any] = field(default_factory=dict)


PICTURES = {
    "digits": Picture(1, sheet={"per_row": 16}),
    "glyphs": Picture(12, sheet={"rows": "client", "per_row": 16}),
    "femnist": Picture(12, {"path": "femnist/femnist_writers.npz"}, {"rows": "client", "per_row": 16}),
    "cifar10": Picture(10, {"path": "cifar10/cifar10_jpeg_full.tar.xz"}),
    "ag_news": Picture(1, {"path": "ag_news", "train": "train_subset.csv"}),
    "spoken_digits": Picture(6, {"path": "spoken_digits/fsdd.npz"}, {"kind": "spectrogram", "per_row": 4}),
    "cmapss": Picture(100, {"path": "cmapss"}),
    "cwru": Picture(4, {"path": "cwru/cwru_12k_de.npz"}),
}


def draw(name: str) -> Path:
    picture = PICTURES[name]
    settings = registry.load("datasets", name).model_validate(picture.options)
    clients = Clients(picture.clients, np.arange(picture.clients) * 4 // picture.clients)
    data = settings.load(clients, lambda purpose: Streams(1)(purpose).generator())
    with mpl.rc_context({**RC, "figure.dpi": 72, "savefig.dpi": 72}):
        return save_figure(sample_sheet(data, decode=settings.text, **picture.sheet), IMAGES / f"data_{name}.png")


if __name__ == "__main__":
    for wanted in sys.argv[1:] or PICTURES:
        print(draw(wanted))
