"""A data set that a function of one's own makes. What it returns is checked before anything is done with it.

The function is called as ``function(clients, rng, **options)``: how many clients there are, a
`numpy.random.Generator` that is the only source of chance it may use, and the scenario's options. It returns a
`RawDataset`, or a mapping with ``x``, ``y`` and any other of `KEYS`. Nothing is kept in the cache: only the function
knows what its result depends on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue

from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import ENCODINGS
from fedsim.data.raw_dataset import Clients, Generators, RawDataset, numbered
from fedsim.data.sampled import SampledDataset
from fedsim.data.target import Target, target_in
from fedsim.errors import Flaw, Misfit, UserError, in_short, nearest
from fedsim.imports import ImportPath, load_function, reason

__all__ = ["UserCode"]

WHAT = "a function that makes a data set"
KEYS = ("x", "y", "classes", "class_names", "unit", "client", "test", "sample_bytes")
STORED = (np.uint8, np.int16, np.float32)
FLOAT_BYTES = 4
LABEL_BYTES = 1
MOST_CLASSES = 10**6


class UserCode(SampledDataset):
    """Your own data: what a Python function of yours returns."""

    name: Literal["python"] = "python"
    path: ImportPath
    """The function: ``my_data.py:function``, relative to the scenario, or ``package.module:function``."""
    options: dict[str, JsonValue] = Field(default_factory=dict)
    """What the function is called with, beside the number of clients and a generator."""

    def load(self, clients: Clients, generator: Generators) -> FederatedDataset:
        """What the function returns, spread over *clients*; raises `UserError` where parts of it do not fit."""
        try:
            return super().load(clients, generator)
        except UserError:
            raise
        except ValueError as error:
            raise UserError(f"{self.path}: {error}") from error

    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """What the function returns for all clients, unseen ones included; it draws from ``data/source``."""
        function, sha256 = load_function(self.path, what=WHAT)
        made = self._called(function, clients.total, generator("data/source"))
        try:
            raw = made if isinstance(made, RawDataset) else _raw(made)
            _check(raw)
        except Flaw as error:
            raise UserError(f"{self.path}: {error}") from error
        return replace(raw, remarks=(*raw.remarks, f"made by {self.path}, SHA-256 {sha256}"))

    def _called(self, function: Callable[..., Any], clients: int, rng: np.random.Generator) -> object:
        before = _global_generators()
        try:
            made = function(clients, rng, **self.options)
        except UserError:
            raise
        except (Exception, SystemExit) as error:
            code = getattr(function, "__code__", None)
            where = code.co_filename if code is not None else None
            problem = reason(error, where or self.path)
            raise UserError(f"{problem}; {self.path} was called for {clients} clients and failed") from error
        for name, state in _global_generators().items():
            if state != before[name]:
                raise UserError(
                    f"{self.path}: draws from the generator of {name}, so no run could be repeated; draw from the "
                    "generator that it is called with (its second argument)"
                )
        return made


def _global_generators() -> dict[str, object]:
    """Where the generators stand that a whole process shares."""
    _, numbers, *rest = np.random.get_state()
    return {"numpy.random": (np.asarray(numbers).tobytes(), *rest), "the module random": random.getstate()}


def _raw(made: object) -> RawDataset:
    """The raw data set that a mapping describes."""
    if not isinstance(made, Mapping):
        raise Flaw(f"returned {type(made).__name__}, and must return a mapping with x and y, or a RawDataset")
    for key in made:
        if key not in KEYS:
            raise Flaw(
                f"returned a mapping with {key!r}, which is not known{nearest(str(key), KEYS)} ({', '.join(KEYS)})"
            )
    for key in ("x", "y"):
        if key not in made:
            raise Flaw(f"returned a mapping without {key!r}; x and y are needed")
    x, y = _stored(_array(made, "x")), _targets(_array(made, "y"))
    regression = y.dtype == np.float32
    owner, names = _owners(made) if made.get("client") is not None else (None, ())
    test = made.get("test")
    each_bytes = int(np.prod(x.shape[1:])) * x.itemsize + (FLOAT_BYTES if regression else LABEL_BYTES)
    return RawDataset(
        x=x,
        y=y,
        classes=_classes(made, y),
        class_names=_names(made.get("class_names")),
        target=_target(made.get("unit"), regression),
        sample_bytes=_bytes(made.get("sample_bytes", each_bytes)),
        owner=owner,
        owner_names=names,
        test=None if test is None else _array(made, "test"),
    )


def _owners(made: Mapping[str, Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(whose each sample is, their names)."""
    client = _array(made, "client")
    if client.dtype.kind not in "iuU":
        raise Flaw(f"client is {client.dtype}, and must be whole numbers or words")
    owner, names = numbered(client)
    return owner.reshape(client.shape), names


def _array(made: Mapping[str, Any], key: str) -> NDArray[Any]:
    try:
        array = np.array(made[key])
    except ValueError as error:
        raise Flaw(f"{key} becomes no array ({in_short(error)}); are its rows equally long?") from error
    if array.dtype == object:
        raise Flaw(f"{key} is no array of numbers; are its rows equally long?")
    return array


def _stored(x: NDArray[Any]) -> NDArray[Any]:
    """*x* as it is kept: floating-point numbers as float32, bytes and 16-bit numbers as they are."""
    if x.dtype.kind == "f" and x.dtype != np.float32:
        with np.errstate(over="ignore"):
            return x.astype(np.float32)
    return x


def _targets(y: NDArray[Any]) -> NDArray[Any]:
    """Labels as int64; floating-point numbers, as float32, are values."""
    if y.dtype.kind in "iu":
        return y.astype(np.int64)
    if y.dtype.kind == "f":
        with np.errstate(over="ignore"):
            return y.astype(np.float32)
    raise Flaw(f"y is {y.dtype}, and must be whole numbers (labels) or floating-point numbers (regression)")


def _classes(made: Mapping[str, Any], y: NDArray[Any]) -> int | None:
    """How many classes: as it is said, else by the class names, else one more than the largest label."""
    said = made.get("classes")
    if y.dtype == np.float32:
        if said is not None:
            raise Flaw(f"classes={said!r}, but y holds floating-point numbers; leave classes out, or make y int64")
        return None
    if said is None:
        names = _names(made.get("class_names"))
        return len(names) or (int(y.max()) + 1 if y.size else 1)
    if isinstance(said, bool) or not isinstance(said, (int, np.integer)):
        raise Flaw(f"classes={said!r} must be a whole number")
    return int(said)


def _names(names: object) -> tuple[str, ...]:
    if names is None:
        return ()
    if isinstance(names, str) or not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
        raise Flaw("class_names must be a list of words")
    return tuple(names)


def _target(unit: object, regression: bool) -> Target | None:
    if unit is None:
        return None
    try:
        return target_in(str(unit), of_values=regression)
    except Misfit as error:
        raise Flaw(str(error)) from None


def _bytes(number: object) -> float:
    if isinstance(number, bool) or not isinstance(number, (int, float, np.integer, np.floating)):
        raise Flaw(f"sample_bytes={number!r} must be a number")
    return float(number)


def _check(raw: RawDataset) -> None:
    """Raise unless *raw* is what its fields promise, first things first."""
    _check_samples(raw)
    _check_targets(raw)
    samples = raw.x.shape[0]
    arrays = (("client", raw.owner, np.int64), ("test", raw.test, np.bool_), ("series", raw.series, np.int64))
    for name, array, kind in arrays:
        if array is not None and (
            not isinstance(array, np.ndarray) or array.shape != (samples,) or array.dtype != kind
        ):
            raise Flaw(f"{name} is {_said(array)}, and must be {np.dtype(kind)} of shape ({samples},), one per sample")
    if raw.owner is not None and raw.owner.min() < 0:
        raise Flaw(f"client={raw.owner.min()} must be at least 0")
    if raw.test is not None and raw.test.all():
        raise Flaw("test sets all samples aside for tests; some must be left to train on")
    if not isinstance(raw.sample_bytes, float) or not 0 < raw.sample_bytes < np.inf:
        raise Flaw(f"sample_bytes={raw.sample_bytes!r} must be a number above 0")


def _check_samples(raw: RawDataset) -> None:
    x = raw.x
    if not isinstance(x, np.ndarray) or x.dtype not in STORED or x.ndim < 2 or 0 in x.shape:
        raise Flaw(
            f"x is {_said(x)}, and must be uint8, int16 or floating-point numbers of shape (samples, ...), with one "
            "sample or more"
        )
    if x.dtype == np.float32 and not np.isfinite(x).all():
        at = np.argwhere(~np.isfinite(x))[0]
        raise Flaw(f"x{at.tolist()}={x[tuple(at)]} must be a finite number (of 32 bits)")
    if type(raw.encoding) not in ENCODINGS:  # what another one does would not be part of the data's address
        known = ", ".join(kind.__name__ for kind in ENCODINGS)
        raise Flaw(f"encoding is {_said(raw.encoding)}, and must be one of fedsim.data.encoding ({known})")


def _check_targets(raw: RawDataset) -> None:
    y, classes, samples = raw.y, raw.classes, raw.x.shape[0]
    kind = np.float32 if classes is None else np.int64
    if not isinstance(y, np.ndarray) or y.dtype != kind or y.shape != (samples,):
        raise Flaw(f"y is {_said(y)}, and must be {np.dtype(kind)} of shape ({samples},), one per sample")
    if classes is None:
        if not np.isfinite(y).all():
            at = int(np.flatnonzero(~np.isfinite(y))[0])
            raise Flaw(f"y[{at}]={y[at]} must be a finite number (of 32 bits)")
        return
    if not 1 <= classes <= MOST_CLASSES:
        raise Flaw(f"classes={classes} must be from 1 to {MOST_CLASSES}")
    wrong = np.flatnonzero((y < 0) | (y >= classes))
    if wrong.size:
        raise Flaw(f"y[{wrong[0]}]={y[wrong[0]]} must be a label from 0 to {classes - 1}")


def _said(array: object) -> str:
    if isinstance(array, np.ndarray):
        return f"{array.dtype} of shape {array.shape}"
    return f"of type {type(array).__name__}"
