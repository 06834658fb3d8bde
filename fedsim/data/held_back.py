"""Training samples that clients hold back: for choices that must not be rated on what was trained on, nor on tests."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.kernel.streams import Stream

__all__ = ["holding_back"]

LEAST_FOR_ONE = 5
"""Of so many training samples one may be held back."""


def holding_back(dataset: FederatedDataset, most: int, seed: int) -> FederatedDataset:
    """The same samples where each client holds some of its training samples back; *dataset* itself for 0.

    These are *most* of them, but no more than a fifth, drawn from the stream ``data/held_back``. All views of one data
    set share its arrays. Raises `UserError` when a client has fewer than 5 training samples.
    """
    if most == 0:
        return dataset
    views: dict[tuple[int, int], FederatedDataset] = vars(dataset).setdefault("_views", {})
    if (most, seed) not in views:
        views[most, seed] = _view(dataset, most, seed)
    return views[most, seed]


def _view(dataset: FederatedDataset, most: int, seed: int) -> FederatedDataset:
    numbers = np.minimum(most, dataset.client_samples // LEAST_FOR_ONE)
    if not numbers.all():
        client = int(numbers.argmin())
        raise UserError(
            f"client {client} has {dataset.client_samples[client]} training samples, and at most one in "
            f"{LEAST_FOR_ONE} is held back; give every client {LEAST_FOR_ONE} at least"
        )
    own_ids = dataset.train_ids
    held = tuple(
        np.sort(Stream(seed, "data/held_back", client).generator().choice(own, number, replace=False))
        for client, (own, number) in enumerate(zip(own_ids, numbers, strict=bool(own_ids)))
    )
    return replace(
        dataset,
        whole=dataset,
        told_apart_by=f"without {most} by {seed}",
        client_samples=dataset.client_samples - numbers,
        train_ids=tuple(np.setdiff1d(own, some) for own, some in zip(own_ids, held, strict=True)),
        held_back=most,
        held_back_samples=numbers,
        held_back_ids=held,
    )
