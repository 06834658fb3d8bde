"""What a scenario's data are like, in numbers: who holds how many samples of which classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.class_counts import class_counts
from fedsim.data.dataset import FederatedDataset
from fedsim.data.distances import cpd, earth_movers, kl, mixtures
from fedsim.experiment.description.spread import Spread, spread_of

__all__ = ["data_facts"]

MOST_COUNTS = 10_000_000
"""Of a class at a client: 100 classes at each of a hundred thousand clients, which take seconds."""
AT_ONCE = 2**20  # counts, so that memory hardly grows
DISTANCES = {"earth_movers": earth_movers, "kl": kl, "cpd": cpd}


def data_facts(data: FederatedDataset) -> dict[str, Any]:
    """The data set and who holds what of it; None where nothing is known of something.

    ``skew`` is the distance of each client's mixture of classes from everybody's (`fedsim.data.distances`), and
    ``passes_per_training`` how many passes through a client's own samples one capture is.
    """
    stored = data.stored
    held = [len(ids) for ids in data.client_test_ids]
    unseen = [len(ids) for ids in data.unseen_test_ids]
    return {
        "name": data.name,
        "remarks": [*data.remarks, *_left_out(data)],
        "clients": data.clients,
        "classes": data.classes,
        "class_names": list(data.class_names),
        "regression": data.regression,
        "levels": list(data.levels),
        "vocabulary": data.vocabulary,
        "sample_shape": data.sample_shape and list(data.sample_shape),
        "stored_as": None if stored is None else f"{stored.dtype} {'x'.join(map(str, stored.shape[1:]))}",
        "encoding": None if stored is None else repr(data.encoding),
        "sample_bytes": data.sample_bytes,
        "memory_bytes": None if stored is None else stored.nbytes,
        "training_samples": int(data.client_samples.sum()),
        "samples_per_client": spread_of(data.client_samples),
        "test_samples": len(data.test_ids),
        "client_test_samples": spread_of(held) if any(held) else None,
        "unseen_clients": len(unseen),
        "unseen_test_samples": spread_of(unseen),
        "skew": _skew(data),
        "stream": _stream(data),
    }


def _skew(data: FederatedDataset) -> dict[str, Spread | None] | None:
    if data.counted_classes is None or _too_many_counts(data):
        return None
    everybody = mixtures(
        np.bincount(data.class_or_level[np.concatenate(data.train_ids)], minlength=data.counted_classes)
    )
    values: dict[str, list[NDArray[Any]]] = {name: [] for name in (*DISTANCES, "classes_held")}
    rows = max(AT_ONCE // data.counted_classes, 1)
    for begin in range(0, data.clients, rows):
        counts = class_counts(data, slice(begin, begin + rows))
        shares = mixtures(counts)
        for name, distance in DISTANCES.items():
            values[name].append(distance(shares, everybody))
        values["classes_held"].append((counts > 0).sum(axis=1))
    return {name: spread_of(np.concatenate(some)) for name, some in values.items()}


def _too_many_counts(data: FederatedDataset) -> bool:
    """Whether so many clients have so many classes that counting them takes more than some seconds."""
    return data.counted_classes is not None and data.clients * data.counted_classes > MOST_COUNTS


def _left_out(data: FederatedDataset) -> Iterator[str]:
    if _too_many_counts(data):
        many = f"{data.clients:,} clients and {data.counted_classes:,} classes are more than {MOST_COUNTS:,} counts"
        yield f"who has which classes is not told: {many}"


def _stream(data: FederatedDataset) -> dict[str, Any] | None:
    stream = data.stream
    if stream is None:
        return None
    arrival = stream.arrival
    return {
        "samples_per_training": stream.samples,
        "refresh_rounds": stream.refresh_rounds,
        "passes_per_training": spread_of(stream.samples / data.client_samples),
        "augmentation": stream.augmentation is not None,
        "drift": stream.drift and stream.drift.name,
        "arrival_samples_per_s": arrival and arrival.samples_per_s,
        "seconds_per_capture": arrival and stream.samples / arrival.samples_per_s,
        "buffer_samples": arrival and arrival.buffer_samples,
    }
