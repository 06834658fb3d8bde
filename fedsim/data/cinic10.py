"""The classes of CIFAR-10 with 4.5 times the images (L. Darlow et al., *CINIC-10 is not ImageNet or CIFAR-10*, 2018).

Left out: which of the images are CIFAR-10's and which ImageNet's.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal

from fedsim.data.cache import cached
from fedsim.data.cifar10 import CLASSES, COLOURS, LABEL_BYTES, SIDE, labels_of, only
from fedsim.data.encoding import Affine
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.reading.images import read_images
from fedsim.data.sampled import SampledDataset
from fedsim.data.source import SourcePath, locate

__all__ = ["Cinic10"]

VALIDATION, TEST = "valid", "test"
PARTS = ("train", VALIDATION, TEST)
PUBLISHED = 90_000
"""Images in each of the three parts."""
VERSION = 1
WHAT = "CINIC-10 (images in train/<class>, valid/<class> and test/<class>)"


class Cinic10(SampledDataset):
    """270,000 colour images of 32 x 32 pixels in the 10 classes of CIFAR-10, from files that you have."""

    origin: ClassVar[str | None] = "https://doi.org/10.7488/ds/2448"
    name: Literal["cinic10"] = "cinic10"
    path: SourcePath
    """The folder with train, valid and test, or an archive of it (.tar, .tar.gz, .tar.xz); beside the scenario, or in
    the folder FEDSIM_DATA names."""
    validation: Literal["train", "test", "drop"] = "train"
    """What becomes of the 90,000 images in valid: clients get them too, they are for tests, or they are left out."""

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of shape (3, 32, 32) in [0, 1]; on the wire one byte for each pixel and colour, and the label."""
        path = locate(self.path, what=f"{WHAT} is needed")
        return cached(self.name, VERSION, [path], {"validation": self.validation}, lambda: self._read(path))

    def _read(self, path: Path) -> RawDataset:
        left_out = VALIDATION if self.validation == "drop" else ""
        found = read_images(
            path, ("part", "class"), what=WHAT, grey=False, wanted=lambda folders: folders[0] != left_out
        )
        part, kind = found.folders
        needed = tuple(name for name in PARTS if name != left_out)
        only(path, part, needed, each=True)
        expected = PUBLISHED * len(needed)
        remarks = []
        if len(found.x) != expected:
            remarks.append(f"{len(found.x)} images, and CINIC-10 has {expected} here")
        if found.passed_over:
            remarks.append(f"{found.passed_over} files that are no images were passed over")
        return RawDataset(
            x=found.x,
            y=labels_of(path, found, kind),
            classes=len(CLASSES),
            class_names=CLASSES,
            sample_bytes=float(COLOURS * SIDE**2 + LABEL_BYTES),
            encoding=Affine(1 / 255),
            test=(part == TEST) | ((part == VALIDATION) & (self.validation == "test")),
            remarks=tuple(remarks),
        )
