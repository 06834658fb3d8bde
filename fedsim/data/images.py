"""Your own images: one folder for each client, in it one folder for each class.

Left out: images of which each has several labels, or places in it that have some.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from annotated_types import Interval

from fedsim.data.cache import cached
from fedsim.data.encoding import Affine
from fedsim.data.partition.natural import Natural
from fedsim.data.raw_dataset import Clients, Generators, RawDataset, numbered
from fedsim.data.reading.images import read_images
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.data.source import SourcePath, locate
from fedsim.errors import Misfit, UserError
from fedsim.files import shown
from fedsim.settings import key_rule

__all__ = ["ImageFolders"]

VERSION = 1
BYTE = 256
LEVELS = {"client_class": ("client", "class"), "class": ("class",)}


class ImageFolders(SampledDataset):
    """Your own images, in a folder for each client with a folder for each class, or in a folder for each class."""

    name: Literal["images"] = "images"
    path: SourcePath
    """The folder of folders, or an archive of it (.tar, .tar.gz, .tar.xz); beside the scenario, or in the folder
    FEDSIM_DATA names."""
    layout: Literal["client_class", "class"] = "client_class"
    """Where an image is: <client>/<class>/<image>, or <class>/<image>, and then another partition must be given."""
    partition: PartitionField = Natural()
    """How the samples are spread over the clients; natural: each folder of the top level is one."""
    pixels: Annotated[int, Interval(ge=1, le=1024)] | None = None
    """Pixels per side to which each image is squeezed or stretched; left out, all images must have one size."""
    grey: bool = False
    """Whether colours become grey."""

    @key_rule
    def _clients_need_folders(self) -> None:
        if self.layout == "class" and self.partition.natural:
            raise Misfit(
                "layout class says nothing of clients, which natural needs; give another partition", "partition"
            )

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (3, height, width), or (1, height, width) when grey, in [0, 1]; on the wire a byte for each
        pixel and colour, and the label."""
        path = locate(self.path, what=f"{self._what} are needed")
        options = {"layout": self.layout, "pixels": self.pixels, "grey": self.grey}
        return cached(self.name, VERSION, [path], options, lambda: self._read(path))

    @property
    def _what(self) -> str:
        return f"images in folders <{'>/<'.join(LEVELS[self.layout])}>"

    def _read(self, path: Path) -> RawDataset:
        found = read_images(path, LEVELS[self.layout], what=self._what, grey=self.grey, pixels=self.pixels)
        y, class_names = numbered(found.folders[-1])
        if len(class_names) < 2:
            raise UserError(f"{shown(path)}: all images are of class {class_names[0]!r}; at least 2 are needed")
        owner, owner_names = numbered(found.folders[0]) if self.layout == "client_class" else (None, ())
        passed_over = f"{found.passed_over} files that are no images were passed over"
        return RawDataset(
            x=found.x,
            y=y,
            classes=len(class_names),
            class_names=class_names,
            sample_bytes=float(found.x[0].size + (1 if len(class_names) <= BYTE else 2)),
            encoding=Affine(1 / 255),
            owner=owner,
            owner_names=owner_names,
            remarks=(passed_over,) if found.passed_over else (),
        )
