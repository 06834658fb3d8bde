"""Training samples that take the place of tests, so that settings are chosen without a look at the tests.

Clients hold what they would hold without it; some of that is then set aside. Windows of a record that share
measurements with those set aside are neither trained on nor tested on. Left out: validation on unseen clients, and
cross-validation.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsim.data.raw_dataset import Clients, Generators, RawDataset
from fedsim.data.shares import Ids, hold_out, stratified_sample
from fedsim.errors import Misfit

__all__ = ["in_place_of_tests", "whole_records"]

KEY = "validation_fraction"
TRAINED, TESTED, NEITHER = 0, 1, 2


def whole_records(raw: RawDataset, clients: Clients, fraction: float, generator: Generators) -> Ids:
    """The samples of a random *fraction* of the records, fleet by fleet, where records are set aside as a whole.

    Records that hold tests are left alone. Nothing where records are not set aside so. Draws from ``data/validation``.
    Raises `UserError` where unseen clients could hold these records when the tests are used.
    """
    if not raw.whole_series or raw.series is None:
        return np.empty(0, np.int64)
    if clients.unseen:
        raise Misfit(
            f"{KEY}={fraction:g} sets whole records of the source aside, and unseen_clients={clients.unseen} may be "
            "those that own them; leave one of the two out",
            KEY,
        )
    tested = np.empty(0, np.int64) if raw.test is None else raw.series[raw.test]
    records, first = np.unique(raw.series, return_index=True)
    free = ~np.isin(records, tested)
    fleet = np.zeros(len(records), np.int64)
    if raw.fleets and raw.owner is not None:
        fleet = np.unique([raw.fleets[owner] for owner in raw.owner[first]], return_inverse=True)[1]
    drawn = records[free][stratified_sample(fleet[free], fraction, generator("data/validation"))]
    return np.flatnonzero(np.isin(raw.series, drawn))


def in_place_of_tests(
    raw: RawDataset,
    clients: Clients,
    train: Sequence[Ids],
    aside: Ids,
    fraction: float,
    generator: Generators,
) -> tuple[list[Ids], list[Ids], Ids]:
    """(what each client trains on, what it tests on, what is tested on in all), of what each one would *train* on.

    What is *aside* already (see `whole_records`) is nobody's own. Else it is the end of each record, or, without
    records, a random *fraction* of each client's samples, from ``data/validation``. Unseen clients test nothing. Raises
    `UserError` where a client has nothing left, or nothing is set aside.
    """
    if raw.series is not None and raw.whole_series:
        parts = [(share, share[:0]) for share in train]
    elif raw.series is not None:
        use = _uses(raw.series, raw.overlap, np.concatenate(train), fraction)
        parts = [(share[use[share] == TRAINED], share[use[share] == TESTED]) for share in train]
    else:
        rng = generator("data/validation")
        parts = [hold_out(share, fraction, rng) for share in train[: clients.count]]
    kept = [*(kept for kept, _ in parts[: clients.count]), *train[clients.count :]]
    own = [*(own for _, own in parts[: clients.count]), *(share[:0] for share in train[clients.count :])]
    empty = next((client for client, ids in enumerate(kept) if not len(ids)), None)
    if empty is not None:
        name = clients.names[empty] if clients.names else f"client {empty}"
        raise Misfit(
            f"{KEY}={fraction:g} leaves {name} no sample to train on; lower it, use fewer clients, or a larger stride",
            KEY,
        )
    tests = np.sort(np.concatenate([aside, *own]))
    if not len(tests):
        raise Misfit(f"{KEY}={fraction:g} sets no sample aside to test on; raise it", KEY)
    return kept, own, tests


def _uses(series: Ids, overlap: int, training: Ids, fraction: float) -> NDArray[np.int8]:
    """(samples,) whether each *training* sample is `TRAINED`, `TESTED`, or `NEITHER`; others are `NEITHER`.

    Of each series the last *fraction* of its training samples, rounded, is tested; one is always left. The *overlap*
    samples before the first of these share measurements with it.

    >>> _uses(np.zeros(10, np.int64), 2, np.arange(8), 0.25).tolist()
    [0, 0, 0, 0, 2, 2, 1, 1, 2, 2]
    """
    use = np.full(len(series), NEITHER, np.int8)
    order = np.argsort(series, kind="stable")
    is_trained = np.zeros(len(series), np.bool_)
    is_trained[training] = True
    for record in np.split(order, np.flatnonzero(np.diff(series[order])) + 1):
        places = np.flatnonzero(is_trained[record])
        number = min(round(fraction * len(places)), len(places) - 1)
        use[record[places]] = TRAINED
        if number > 0:
            first = places[-number]
            use[record[places[(places >= first - overlap) & (places < first)]]] = NEITHER
            use[record[places[places >= first]]] = TESTED
    return use
