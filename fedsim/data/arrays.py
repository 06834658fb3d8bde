"""Your own numbers: one ``.npz`` file with samples, what is to be learned of them, and whose they are.

Left out: pickles and arrays of Python objects, which would run code; samples of different lengths.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from annotated_types import Interval
from numpy.typing import NDArray

from fedsim.data.encoding import Affine
from fedsim.data.partition.iid import Iid
from fedsim.data.raw_dataset import Clients, Generators, RawDataset, numbered
from fedsim.data.reading.npz import Wanted, read_npz, same_length
from fedsim.data.sampled import PartitionField, SampledDataset
from fedsim.data.source import SourcePath, locate
from fedsim.data.target import target_in
from fedsim.errors import Misfit, UserError
from fedsim.files import shown
from fedsim.settings import Name, Real, key_rule

__all__ = ["MOST_CLASSES", "Arrays"]

MOST_CLASSES = 1_000_000
BYTE = 256
VALUE_BYTES = 4
LARGEST = float(np.finfo(np.float32).max)
WHAT = "an .npz file with x, y and, if known, client and test"
COUNTED = "labels count from 0, so the classes below it have no samples; subtract it, if that is a mistake"
WANTED = {"x": Wanted("b u1 i2 f4 f8"), "y": Wanted("iuf", 1)}
OPTIONAL = {"client": Wanted("iuU", 1), "test": Wanted("biu", 1)}


class Arrays(SampledDataset):
    """Your own samples in an .npz file: x, y and, if you know them, client and test."""

    name: Literal["arrays"] = "arrays"
    path: SourcePath
    """The .npz file; beside the scenario, or in the folder FEDSIM_DATA names. It has x (samples, ...) of uint8, int16,
    float32, float64 or bool, channels first; y (samples,); and, if there are, client (samples,), numbers or names, and
    test (samples,), true for what nobody trains on."""
    partition: PartitionField = Iid()
    """How the samples are spread over the clients; natural: by client in the file."""
    target: Literal["class", "value"] = "class"
    """What y is: whole numbers that are classes, from 0 on, or numbers to predict (regression)."""
    unit: Name | None = None
    """The unit of numbers to predict, in small letters, such as cycles or mm; results then have the error in it."""
    classes: Annotated[int, Interval(ge=2, le=MOST_CLASSES)] | None = None
    """How many classes there are; left out, as many as the largest label says."""
    scale: Real = 1.0
    """What x is multiplied by on the way to the model: 0.00392156862745098 for bytes that are grey levels."""
    offset: Real = 0.0
    """What is added after that."""

    @key_rule
    def _values_have_no_classes(self) -> None:
        if self.target == "value" and self.classes is not None:
            raise Misfit(f"classes={self.classes} must be left out with target value: there are none", "classes")
        target_in(self.unit, of_values=self.target == "value")

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """Samples of the shape of x, without its first dimension; on the wire, what one row of x and y takes."""
        path = locate(self.path, what=f"{WHAT}, is needed")
        arrays = read_npz(path, WANTED, what=WHAT, optional=OPTIONAL)
        same_length(path, arrays, "x", "y", "client", "test")
        x = _samples(path, arrays["x"])
        self._check_scale(path, x)
        y, classes = self._targets(path, arrays["y"])
        owner, owner_names = numbered(arrays["client"]) if "client" in arrays else (None, ())
        label_bytes = VALUE_BYTES if classes is None else 1 if classes <= BYTE else 2
        return RawDataset(
            x=x,
            y=y,
            classes=classes,
            target=target_in(self.unit, of_values=classes is None),
            sample_bytes=float(x[0].nbytes + label_bytes),
            encoding=Affine(self.scale, self.offset),
            owner=owner,
            owner_names=owner_names,
            test=_set_aside(path, arrays["test"]) if "test" in arrays else None,
            remarks=() if classes is None or not y.min() else (f"the smallest label is {y.min()}: {COUNTED}",),
        )

    def _check_scale(self, path: Path, x: NDArray[Any]) -> None:
        far = max(abs(float(x.min())), abs(float(x.max())))
        if far * abs(self.scale) + abs(self.offset) > LARGEST:
            problem = f"x goes up to {far:g}, and scale={self.scale:g} and offset={self.offset:g} make it"
            raise UserError(f"{shown(path)}: {problem} larger than {LARGEST:.3g} (float32)")

    def _targets(self, path: Path, y: NDArray[Any]) -> tuple[NDArray[Any], int | None]:
        if self.target == "value":
            return _float32(path, "y", y), None
        if y.dtype.kind == "f":
            raise UserError(
                f"{shown(path)}: y holds {y.dtype.name}, and classes are whole numbers; save it as integers, or set "
                "target: value to learn to predict it"
            )
        most = self.classes or MOST_CLASSES
        wrong = np.flatnonzero((y < 0) | (y >= most))
        if wrong.size:
            at = int(wrong[0])
            raise UserError(f"{shown(path)}: y[{at}]={y[at]}, and labels must be from 0 to {most - 1}")
        classes = self.classes or int(y.max()) + 1
        if classes < 2:
            raise UserError(f"{shown(path)}: all of y is 0; at least 2 classes are needed")
        return y.astype(np.int64), classes


def _samples(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    if x.ndim < 2 or not x[0].size:
        raise UserError(
            f"{shown(path)}: x has shape {x.shape}; it must be (samples, ...), with a number in each sample"
        )
    if x.dtype.kind == "f":
        return _float32(path, "x", x)
    return x.view(np.uint8) if x.dtype.kind == "b" else x


def _float32(path: Path, name: str, values: NDArray[Any]) -> NDArray[np.float32]:
    """Raises `UserError` with the place of what is not finite, or too large for it."""
    if values.size and not (values.min() >= -LARGEST and values.max() <= LARGEST):  # so with what is no number
        place = tuple(np.argwhere(~(np.abs(values) <= LARGEST))[0].tolist())
        where = f"{name}[{', '.join(map(str, place))}]={values[place]}"
        raise UserError(f"{shown(path)}: {where} must be a finite number of at most {LARGEST:.3g} (float32)")
    return values.astype(np.float32, copy=False)


def _set_aside(path: Path, test: NDArray[Any]) -> NDArray[np.bool_]:
    wrong = np.flatnonzero((test != 0) & (test != 1))
    if wrong.size:
        raise UserError(f"{shown(path)}: test[{wrong[0]}]={test[wrong[0]]} must be 0 (train) or 1 (test)")
    if test.all() or not test.any():
        raise UserError(f"{shown(path)}: all of test is {test[0]}; some samples must be 0 (train) and some 1 (test)")
    return test.astype(np.bool_)
