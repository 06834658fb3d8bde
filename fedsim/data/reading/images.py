"""Images in a tree of folders, or in an archive of one, decoded to bytes of grey or of red, green and blue.

Left out: more than 8 bits a colour, transparency, animations, colour profiles, and the orientation that cameras note
beside the pixels.
"""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsim.data.reading.archive import MOST_FILES, Parts, tar_files
from fedsim.data.source import Missing
from fedsim.errors import Flaw, UserError, in_short
from fedsim.files import open_file, shown
from fedsim.quick import check_work

__all__ = ["MOST_PIXELS", "SUFFIXES", "Images", "read_images"]

SUFFIXES = {
    ".png": "PNG",
    ".jpg": "JPEG",
    ".jpeg": "JPEG",
    ".bmp": "BMP",
    ".gif": "GIF",
    ".ppm": "PPM",
    ".pgm": "PPM",
    ".tif": "TIFF",
    ".tiff": "TIFF",
}
"""Files whose names end so are images; only these formats are ever opened."""
FORMATS = tuple(sorted(set(SUFFIXES.values())))
MOST_PIXELS = 64_000_000
"""In one image."""
MOST_BYTES = 256_000_000
MOST_DECODED_BYTES = 8_000_000_000
MOST_IMAGES_IN_SECONDS = 30_000
MOST_PIXELS_IN_SECONDS = 50_000_000
DEEP = ("I", "F")  # modes of Pillow
HIDDEN = (".", "__MACOSX")
Found = Iterator[tuple[Parts, Callable[[], bytes]]]


@dataclass(frozen=True, eq=False)
class Images:
    """What a tree holds, in the order of its names."""

    x: NDArray[np.uint8]
    """(images, channels, height, width): one channel, grey, or three, red, green and blue."""
    folders: tuple[NDArray[np.str_], ...]
    """For each level of folders, from the top: (images,) the name of the folder in which each image lies."""
    passed_over: int
    """Files that are no images by their names; hidden ones are not counted."""


@dataclass
class _Looked:
    """How many images were looked at, and how large they were before they were squeezed."""

    where: str
    images: int = 0
    pixels: int = 0

    def at(self, pixels: int) -> None:
        """One more, of so many pixels."""
        self.images += 1
        self.pixels += pixels
        check_work(self.images, MOST_IMAGES_IN_SECONDS, "images to read for the first time", self.where)
        check_work(self.pixels, MOST_PIXELS_IN_SECONDS, "pixels to read for the first time", self.where)


def read_images(
    source: Path,
    levels: Sequence[str],
    *,
    what: str,
    grey: bool,
    pixels: int | None = None,
    wanted: Callable[[Parts], bool] = lambda folders: True,
) -> Images:
    """The images of *source*, a folder or a tar archive, which messages call *what*.

    They lie as many folders deep as *levels* has names (``("client", "class")``), in a tree that may have one more
    folder around it. With *grey*, colours become grey (ITU-R BT.601 luma); without, grey becomes red, green and blue.
    *pixels* squeezes each image into a square of so many pixels per side; None: all must have one size. Only images in
    folders that are *wanted* are opened. Raises `UserError` that begins with the path of the source, and names the
    image.
    """
    from PIL import Image  # takes a while, and few need it

    found = _in_folder(source, len(levels) + 1) if source.is_dir() else tar_files(source, what=what)
    decoded: dict[Parts, NDArray[np.uint8]] = {}
    looked = _Looked(shown(source))
    passed_over = size = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        for parts, read in found:
            if any(part.startswith(HIDDEN) for part in parts):
                continue
            if os.path.splitext(parts[-1])[1].lower() not in SUFFIXES:
                passed_over += 1
                continue
            try:
                _check_place(parts, levels, decoded)
                if wanted(parts[-len(levels) - 1 : -1]):
                    decoded[parts] = image = _decoded(read(), grey, pixels, looked)
                    size += image.nbytes
                    if size > MOST_DECODED_BYTES:
                        raise Flaw(f"there are more than {MOST_DECODED_BYTES / 1e9:g} GB of pixels; set pixels")
            except Flaw as error:
                raise UserError(f"{shown(source)}: {'/'.join(parts)[:200]!r}: {error}") from error
    if not decoded:
        raise Missing(f"{shown(source)}: no images in folders {_pattern(levels)}; {what} is needed")
    order = sorted(decoded)
    return Images(
        _stacked(source, [decoded[parts] for parts in order], order),
        tuple(np.array([parts[level - len(levels) - 1] for parts in order]) for level in range(len(levels))),
        passed_over,
    )


def _pattern(levels: Sequence[str]) -> str:
    return "/".join(f"<{level}>" for level in (*levels, "image"))


def _in_folder(source: Path, depth: int) -> Found:
    """Files down to one folder deeper than *depth*."""
    number = 0
    waiting: list[tuple[Path, Parts]] = [(source, ())]
    while waiting:
        folder, above = waiting.pop()
        try:
            entries = sorted((entry.name, entry.is_dir()) for entry in os.scandir(folder))
        except OSError as error:
            raise UserError(f"{shown(folder)}: cannot be read ({error.strerror})") from error
        number += len(entries)
        if number > MOST_FILES:
            raise UserError(f"{shown(source)}: holds more than {MOST_FILES} files; is this the right folder?")
        for name, is_folder in entries:
            parts = (*above, name)
            if name.startswith(HIDDEN):
                continue
            if is_folder and len(parts) > depth:
                raise UserError(f"{shown(folder / name)}: folders are nested too deep; images are {depth} levels below")
            if is_folder:
                waiting.append((folder / name, parts))
            else:
                yield parts, _reader(folder / name)


def _reader(path: Path) -> Callable[[], bytes]:
    def read() -> bytes:
        with open_file(path, what="an image") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise Flaw(f"has more than {MOST_BYTES / 1e6:g} MB")
        return content

    return read


def _check_place(parts: Parts, levels: Sequence[str], others: dict[Parts, NDArray[np.uint8]]) -> None:
    usual = len(next(iter(others), parts))
    if not 0 <= len(parts) - len(levels) - 1 <= 1 or len(parts) != usual:
        raise Flaw(f"images must lie at {_pattern(levels)}; move it, or give the path of the right folder")
    if len(parts) == len(levels) + 2 and others and parts[0] != next(iter(others))[0]:
        raise Flaw(f"images must lie at {_pattern(levels)}, with at most one folder around all of them")
    if not all(part.isprintable() for part in parts):
        raise Flaw("its name, or that of its folder, has characters that cannot be printed; rename it")


def _decoded(content: bytes, grey: bool, pixels: int | None, looked: _Looked) -> NDArray[np.uint8]:
    """(channels, height, width)."""
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
            if width * height > MOST_PIXELS:
                raise Flaw(f"has {width} x {height} pixels, and an image may have {MOST_PIXELS / 1e6:g} million")
            looked.at(width * height)
            if image.mode.startswith(DEEP) or any(";16" in str(tile) for tile in image.tile):
                raise Flaw(f"has more than 8 bits a pixel and colour (Pillow's mode {image.mode}); save it with 8")
            if getattr(image, "n_frames", 1) > 1:
                raise Flaw("is animated or has several pages; save one image in a file")
            if image.has_transparency_data and np.asarray(image.convert("RGBA"))[..., 3].min() < 255:
                raise Flaw("has transparent pixels; save it on a background")
            mode = "L" if grey else "RGB"
            plain: Image.Image = image if image.mode == mode else image.convert(mode)  # a large image is not copied
            plain.load()
        if pixels is not None and plain.size != (pixels, pixels):
            plain = plain.resize((pixels, pixels), Image.Resampling.BILINEAR, reducing_gap=None)
        values: NDArray[np.uint8] = np.asarray(plain)
    except UnidentifiedImageError as error:
        problem = "is empty" if not content else f"is no image that can be read ({', '.join(FORMATS)})"
        raise Flaw(problem) from error
    except (Flaw, UserError):
        raise
    except Exception as error:  # whatever Pillow does with what is damaged or hostile
        raise Flaw(f"is damaged, or larger than images may be ({in_short(error)})") from error
    return values[None] if grey else values.transpose(2, 0, 1)


def _stacked(source: Path, images: list[NDArray[np.uint8]], names: list[Parts]) -> NDArray[np.uint8]:
    for image, name in zip(images, names, strict=True):
        if image.shape != images[0].shape:
            (one, other), (here, there) = (
                [f"{picture.shape[2]} x {picture.shape[1]}" for picture in (images[0], image)],
                ["/".join(place)[:100] for place in (names[0], name)],
            )
            raise UserError(
                f"{shown(source)}: {here!r} has {one} pixels and {there!r} has {other}; set pixels, the number of "
                "pixels per side that all are to have"
            )
    x = np.empty((len(images), *images[0].shape), np.uint8)
    for row, image in zip(x, images, strict=True):
        row[:] = image
    return x
