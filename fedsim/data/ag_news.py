"""News in four topics, as characters (X. Zhang, J. Zhao, Y. LeCun, *Character-level Convolutional Networks for Text
Classification*, NIPS 2015; the texts are of A. Gulli's AG corpus).

Nothing is cleaned: a backslash stands where the corpus had a line break, and remains of HTML (``#39;``) stay. Left out:
words, and the paper's augmentation by a thesaurus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.cache import cached
from fedsim.data.encoding import Encoding, HashedNgrams, Ids, OneHot
from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.sampled import SampledDataset
from fedsim.data.source import Missing, SourcePath, locate, matching
from fedsim.errors import Flaw, Misfit, UserError, nearest, some
from fedsim.files import shown
from fedsim.lines import open_csv
from fedsim.quick import check_bytes, check_samples, check_work
from fedsim.settings import Name, key_rule

__all__ = ["ALPHABET", "CLASS_NAMES", "AgNews", "character_ids"]

VERSION = 1  # of what is kept in the cache
WHAT = "the folder ag_news_csv with train.csv and test.csv is needed"
MOST_BYTES = 200_000_000
MOST_BYTES_IN_SECONDS = 60_000_000
"""Twice as much as the source has."""
LONGEST_ROW = 1_000_000
"""Characters: each column has at most 131,072, by `csv`."""
LABEL_BYTES = 1
CLASS_NAMES = ("World", "Sports", "Business", "Sci/Tech")
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789-,;.!?:'\"/\\|_@#$%^&*~`+-=<>()[]{}\n"
"""The 70 characters of the paper (section 2.2). The hyphen stands in it twice; as in the authors' code, its second
place counts, so that id 37 is never used."""
UNKNOWN = 0  # and blanks, and what follows the end
PLACES = {character: place for place, character in enumerate(ALPHABET, start=1)}
IDS = Ids(len(ALPHABET) + 1)
CODES = 128  # of ASCII; all others are unknown


class AgNews(SampledDataset):
    """News texts in four topics, read character by character (AG News).

    The files are not part of fedsim; see docs/data/ag_news.md.
    """

    origin: ClassVar[str | None] = "the authors of https://arxiv.org/abs/1509.01626, who publish it as ag_news_csv"
    name: Literal["ag_news"] = "ag_news"
    path: SourcePath = "ag_news"
    """The folder with both files, or one file from which tests are drawn too."""
    train: Name = "train.csv"
    """The file in the folder with the training texts."""
    test: Name = "test.csv"
    """The file in the folder with the test texts."""
    encoding: Literal["ids", "one_hot", "ngrams"] = "ids"
    """What a model takes: (length,) ids from 0 to 70, for models of characters (char_cnn, vdcnn); (70, length) rows of
    zeros and ones, one for each character of the alphabet, for models of series; or (buckets,) zeros and ones that say
    which n-grams the text has, for softmax and mlp."""
    ngram: Annotated[int, Interval(ge=1, le=8)] = 3
    """Characters in a row that are one n-gram. For encoding ngrams."""
    buckets: Annotated[int, Interval(ge=2, le=1_000_000)] = 4096
    """Numbers of a sample: n-grams are hashed into so many. For encoding ngrams."""
    length: Annotated[int, Interval(ge=16, le=16_384)] = 1014
    """Characters of a sample: what is longer loses its end, what is shorter is filled with blanks."""
    reverse: bool = True
    """Whether characters stand in backward order, the last one first, as in the paper."""

    @key_rule
    def _ngrams_only(self) -> None:
        for key in ("ngram", "buckets"):
            value = getattr(self, key)
            if self.encoding != "ngrams" and value != type(self).model_fields[key].default:  # a run folder has all keys
                problem = f"{key}={value} is of encoding ngrams, and here it is {self.encoding}"
                raise Misfit(f"{problem}; leave it out, or set encoding to ngrams", key)

    def text(self, stored: NDArray[Any]) -> str:
        """The characters of a stored sample, in reading order."""
        ids = stored[::-1] if self.reverse else stored
        return "".join(ALPHABET[place - 1] if place else " " for place in ids).strip()

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of *length* characters, one byte each; on the wire as many bytes, and one for the label."""
        path = locate(self.path, what=WHAT)
        files = [path] if not path.is_dir() else [_inside(path, name) for name in (self.train, self.test)]
        options = {"length": self.length, "reverse": self.reverse}
        return replace(cached(self.name, VERSION, files, options, lambda: self._read(files)), encoding=self._encoding)

    @property
    def _encoding(self) -> Encoding:
        if self.encoding == "ngrams":
            return HashedNgrams(len(ALPHABET), self.ngram, self.buckets)
        return OneHot(len(ALPHABET)) if self.encoding == "one_hot" else IDS

    def _read(self, files: Sequence[Path]) -> RawDataset:
        parts = [_read_texts(file) for file in files]
        texts = [text for part in parts for _, text in part]
        check_bytes(len(texts) * self.length, shown(files[0]))
        longer = sum(len(text) > self.length for text in texts)
        return RawDataset(
            x=character_ids(texts, self.length, reverse=self.reverse),
            y=np.array([label for part in parts for label, _ in part], np.int64),
            classes=len(CLASS_NAMES),
            class_names=CLASS_NAMES,
            sample_bytes=float(self.length + LABEL_BYTES),
            encoding=IDS,
            test=np.repeat([False, True], [len(part) for part in parts]) if len(parts) == 2 else None,
            remarks=(f"of {len(texts)} texts, {longer} are longer than {self.length} characters and lost their end",)
            if longer
            else (),
        )


def character_ids(texts: Sequence[str], length: int, *, reverse: bool) -> NDArray[np.uint8]:
    """(texts, length) places from 1 in the `ALPHABET` of the first *length* lower-case characters of each text.

    0 is for all others, for blanks, and after the end; with *reverse* the last character stands first.

    >>> character_ids(["Ab 1", "é-"], 5, reverse=False).tolist(), character_ids(["Ab 1"], 5, reverse=True).tolist()
    ([[1, 2, 0, 28, 0], [0, 60, 0, 0, 0]], [[28, 0, 2, 1, 0]])
    """
    table = np.zeros(CODES + 1, np.uint8)
    for character, place in PLACES.items():
        table[ord(character)] = place
    ids = np.full((len(texts), length), UNKNOWN, np.uint8)
    for row, text in zip(ids, texts, strict=True):
        codes = np.frombuffer(text.lower()[:length].encode("utf-32-le", "surrogatepass"), "<u4")
        places = table[np.minimum(codes, CODES)]
        row[: len(places)] = places[::-1] if reverse else places
    return ids


def _inside(folder: Path, name: str) -> Path:
    file = folder / name
    if not file.exists():
        there = [found.name for found in matching(folder, "*.csv")]
        has = f"; its CSV files are {some(there)}" if there else ""
        raise Missing(
            f"{shown(folder)}: has no {name!r}{nearest(name, there)}{has}; {WHAT}, or other names in train and test"
        )
    return file


def _read_texts(file: Path) -> list[tuple[int, str]]:
    """(label from 0, text) of each row of *file*."""
    found: list[tuple[int, str]] = []
    with open_csv(file, what="a CSV file of news", most_bytes=MOST_BYTES, longest_row=LONGEST_ROW) as (rows, lines):
        check_work(file.stat().st_size / 1e6, MOST_BYTES_IN_SECONDS / 1e6, "MB of text", shown(file))
        for labelled in _texts(lines.rows(rows)):
            found.append(labelled)
            check_samples(len(found), shown(file))
    if not found:
        raise UserError(f"{shown(file)}: has no texts; {WHAT}")
    return found


def _texts(rows: Iterator[list[str]]) -> Iterator[tuple[int, str]]:
    """The rows of the source (class, title, description), or of a file whose first line names such columns."""
    first = next(rows, None)
    if first is None:
        return
    if "label" in first or "class" in first:
        label_at, text_at = _places([name.strip() for name in first])
    else:
        label_at, text_at = 0, [1, 2]
        yield _labelled(first, 3, label_at, text_at)
        first = ["class", "title", "description"]
    for row in rows:
        if row:
            yield _labelled(row, len(first), label_at, text_at)


def _places(names: Sequence[str]) -> tuple[int, list[int]]:
    """Where the label and the parts of the text stand."""
    label_at = names.index("label" if "label" in names else "class")
    text_at = [names.index(name) for name in ("title", "text", "description") if name in names]
    if not text_at:
        raise Flaw(f"no column is called text, title or description; the columns are {some(names, most=10)}")
    return label_at, text_at


def _labelled(row: Sequence[str], columns: int, label_at: int, text_at: Sequence[int]) -> tuple[int, str]:
    if len(row) != columns:
        raise Flaw(f"{len(row)} columns, and {columns} are needed: the class, and the text")
    label = row[label_at].strip()
    if label not in ("1", "2", "3", "4"):
        raise Flaw(f"the class {label[:30]!r} must be 1, 2, 3 or 4 ({', '.join(CLASS_NAMES)})")
    return int(label) - 1, " ".join(row[place] for place in text_at)
