"""What a source of data holds, before anybody says who gets it.

What only counts samples need not wait until they are drawn: an array may be made when somebody looks into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedsim.data.encoding import AS_IT_IS, Encoding
from fedsim.data.target import Target

__all__ = ["Clients", "Generators", "Later", "RawDataset", "Stored", "numbered"]

Generators: TypeAlias = Callable[[str], np.random.Generator]
"""A fresh generator for each named purpose: ``generator("data/partition")``. Purposes are independent of each other."""


@dataclass(frozen=True, eq=False)
class Later:
    """An array of which the shape and the type are known, and the numbers are not yet made.

    >>> x = Later((2, 3), np.dtype(np.uint8), lambda: np.ones((2, 3), np.uint8), lambda ids: np.ones((len(ids), 3)))
    >>> x.nbytes, np.asarray(x).tolist()
    (6, [[1, 1, 1], [1, 1, 1]])
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    make: Callable[[], NDArray[Any]]
    """Gives the whole array, the same numbers each time."""
    make_rows: Callable[[NDArray[np.int64]], NDArray[Any]]
    """Gives only the rows of such numbers."""

    @property
    def nbytes(self) -> int:
        """What the array takes, once it is made."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """The array, made anew: see `numpy.asarray`. Raises `ValueError` unless it is as it was promised."""
        array = self.make()
        if array.shape != self.shape or array.dtype != self.dtype:
            raise ValueError(f"{array.dtype} {array.shape} was made, not {self.dtype} {self.shape}")
        return array if dtype is None else array.astype(dtype, copy=False)


Stored: TypeAlias = NDArray[Any] | Later


@dataclass(frozen=True, eq=False)
class Clients:
    """Those who hold data: how many, in which factory each one is, and how many more are kept unseen.

    >>> Clients(3).factory.tolist(), Clients(4, np.array([0, 0, 1, 1]), unseen=3).all_factories.tolist()
    ([0, 0, 0], [0, 0, 1, 1, 0, 1, 0])
    """

    count: int
    """Clients that take part."""
    factories: NDArray[np.int64] | None = None
    """(count,) the factory of each client, numbered from 0 without gaps; None: all are in one."""
    unseen: int = 0
    """Clients that never take part; their samples test what the others have learned."""
    names: tuple[str, ...] = ()
    """(count,) what those that take part are called in the topology, if that is known."""

    @property
    def total(self) -> int:
        """All that hold data, unseen ones last."""
        return self.count + self.unseen

    @property
    def factory(self) -> NDArray[np.int64]:
        """(count,) the factory of each client."""
        return np.zeros(self.count, np.int64) if self.factories is None else self.factories

    @property
    def all_factories(self) -> NDArray[np.int64]:
        """(total,) the factory of each one; unseen ones are dealt to the factories in turn."""
        return np.concatenate([self.factory, np.arange(self.unseen) % (int(self.factory.max()) + 1)])


@dataclass(frozen=True, eq=False)
class RawDataset:
    """The samples of one source and all that it says about them."""

    x: Stored
    """(samples, ...) as stored: uint8, int16 or finite float32; see ``encoding``. What is drawn may be drawn later."""
    y: NDArray[Any]
    """(samples,) int64 labels from 0 to ``classes - 1``; float32 values when ``classes`` is None (regression)."""
    classes: int | None
    """How many classes; None for regression."""
    sample_bytes: float
    """Bytes of one raw sample and its label, as a device would send them."""
    class_names: tuple[str, ...] = ()
    """One for each class, or none at all."""
    encoding: Encoding = AS_IT_IS
    """From stored to decoded samples."""
    owner: NDArray[np.int64] | None = None
    """(samples,) who made each sample (a writer, an engine, a speaker), from 0; None when the source does not say."""
    owners_are_clients: bool = False
    """Whether owner k is client k, unseen ones last: the samples were made for them, and nobody is chosen by size."""
    owner_names: tuple[str, ...] = ()
    """One for each owner."""
    fleets: tuple[str, ...] = ()
    """The fleet of each owner, such as the engines of one file; empty when the source does not put owners together."""
    test: NDArray[np.bool_] | None = None
    """(samples,) whether the source itself sets a sample aside for tests; None when it does not."""
    series: NDArray[np.int64] | None = None
    """(samples,) the record that each sample is cut from; those of one record stand in the order of time. None when
    samples are not cut from records."""
    overlap: int = 0
    """How many of those that come next in its series share a measurement with a sample."""
    whole_series: bool = False
    """Whether a series that is set aside is so as a whole, as an engine's life that ends with its failure; if not, its
    end is set aside."""
    remarks: tuple[str, ...] = ()
    """What was left out or changed on the way, in sentences for people."""
    sound_class: int | None = None
    """The class of what has no fault, where that is one class; None where classes are no faults, or nobody says so."""
    target: Target | None = None
    """What the values of ``y`` are; None for classes, and where the source does not say."""
    levels: tuple[float, ...] = ()
    """For protocols that count samples by classes: the values of ``y`` at which the next level begins, ascending;
    empty for classes, and where the source does not say."""


def numbered(names: NDArray[Any]) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """(samples,) numbers from 0 for *names*, and the different names, as text, in their order.

    Numbers may be names too, and are in the order of numbers.

    >>> numbered(np.array(["b", "a", "b"]))
    (array([1, 0, 1]), ('a', 'b'))
    >>> numbered(np.array([10, 2, 10]))
    (array([1, 0, 1]), ('2', '10'))
    """
    different, number = np.unique(names, return_inverse=True)
    return number.astype(np.int64), tuple(map(str, different.tolist()))
