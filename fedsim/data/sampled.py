"""What all data sets with samples share: who gets which, and what is set aside for tests.

Three kinds of test samples: a *global* set that no client holds, each *client's own* that it keeps back, and those of
*unseen* clients that never take part. For choosing settings, training samples take the place of all three.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, ClassVar, TypeAlias

import numpy as np
from annotated_types import Interval

from fedsim.data.dataset import FederatedDataset
from fedsim.data.feature_skew import FeatureSkewSettings
from fedsim.data.partition.iid import Iid
from fedsim.data.partition.natural import told
from fedsim.data.partition.settings import Labels, PartitionSettings
from fedsim.data.raw_dataset import Clients, Generators, Later, RawDataset
from fedsim.data.settings import DatasetSettings
from fedsim.data.shares import Ids, hold_out, stratified_sample
from fedsim.data.source import Missing
from fedsim.data.validation import in_place_of_tests, whole_records
from fedsim.errors import Misfit
from fedsim.quick import check_samples, check_work
from fedsim.settings import OneOf, Probability

__all__ = ["PartitionField", "SampledDataset"]

DEFAULT_TEST_FRACTION = 0.2
MOST_SKEWED_IN_SECONDS = 100_000_000
MOST_BYTES_IN_SECONDS = 220_000_000
MORE_BYTES = 80
"""A sample has a label, an owner, and a place among somebody's samples."""
PartitionField: TypeAlias = Annotated[PartitionSettings, OneOf("partitions")]


class SampledDataset(DatasetSettings):
    """Base of data sets that have samples: a subclass only says where its `RawDataset` comes from."""

    origin: ClassVar[str | None] = None
    """Where people get the files, for messages; None when there are none to get."""

    partition: PartitionField = Iid()
    """How the samples are spread over the clients."""
    feature_skew: Annotated[FeatureSkewSettings, OneOf("feature_skews")] | None = None
    """How what clients measure differs between them, beside who holds which samples; left out, it does not."""
    test_fraction: Annotated[float, Interval(gt=0, lt=1)] | None = None
    """Share of each class that nobody trains on: the global test set, the same for every partition. With partition
    natural, share of each client's samples. Left out, what the source sets aside for tests, or else 0.2."""
    client_test_fraction: Probability = 0.0
    """Share of its own samples that each client keeps back for tests; one is always left for training. With partition
    natural the clients' own tests are their parts of the global test set, and this must be left out."""
    unseen_clients: Annotated[int, Interval(ge=0, le=10**6)] = 0
    """Clients beside those of the topology that never take part and only test what the others have learned."""
    validation_fraction: Annotated[float, Interval(gt=0, lt=1)] | None = None
    """For choosing settings, such as the learning rate: share of the training samples that is tested on in place of all
    tests, which nobody sees then. It is drawn from each client's samples; of samples that are cut from records, it is
    the end of each recording, or whole engines. Leave it out to report results."""

    @property
    def for_own_tests(self) -> str:
        """What gives clients tests of their own, for messages."""
        return "set data.test_fraction" if self.partition.natural else "set data.client_test_fraction"

    @abstractmethod
    def raw(self, clients: Clients, generator: Generators) -> RawDataset:
        """All samples of the source. Raises `UserError` with file, value, rule and way out when it is not as it should
        be."""

    def load(self, clients: Clients, generator: Generators) -> FederatedDataset:
        """The source's samples, spread over *clients*.

        Draws from ``data/test_split``, ``data/partition``, ``data/client_test``, ``data/validation`` and
        ``data/feature_skew``, each for itself. Raises `UserError` for a source that is not as it should be, and for too
        many clients.
        """
        clients = replace(clients, unseen=self.unseen_clients)
        raw = self._found(clients, generator)
        split = self._natural if self.partition.natural else self._dealt
        fraction = self.validation_fraction
        aside = whole_records(raw, clients, fraction, generator) if fraction else np.empty(0, np.int64)
        train, own_tests, test_ids = split(raw, clients, generator, aside)
        remarks = [*raw.remarks, *self._about_owners(raw, clients, train), *self._about_tests(raw)]
        if fraction:
            aside = np.setdiff1d(aside, np.concatenate([test_ids, *own_tests]))
            train, own_tests, test_ids = in_place_of_tests(raw, clients, train, aside, fraction, generator)
            remarks.append(
                f"validation_fraction={fraction:g}: tests are {len(test_ids):,} training samples, for choosing "
                "settings; the tests themselves are not used"
            )
        if self.feature_skew is not None:
            check_work(math.prod(raw.x.shape), MOST_SKEWED_IN_SECONDS, "numbers to skew", f"data set {self.name!r}")
            raw = replace(raw, x=np.asarray(raw.x))
            held = list(map(_both, train, own_tests))
            raw = replace(raw, x=self.feature_skew.apply(raw, clients, held, generator("data/feature_skew")))
        seen, unseen = slice(clients.count), range(clients.count, clients.count if fraction else clients.total)
        return FederatedDataset(
            name=self.name,
            classes=raw.classes,
            class_names=raw.class_names,
            sound_class=raw.sound_class,
            target=raw.target,
            levels=raw.levels,
            sample_shape=raw.encoding.sample_shape(raw.x.shape[1:]),
            encoding=raw.encoding,
            sample_bytes=raw.sample_bytes,
            client_samples=np.array([len(ids) for ids in train[seen]], np.int64),
            stored=raw.x,
            y=raw.y,
            train_ids=tuple(train[seen]),
            test_ids=test_ids,
            client_test_ids=tuple(own_tests[seen]),
            unseen_test_ids=tuple(_both(train[client], own_tests[client]) for client in unseen),
            stream=self.stream,
            remarks=tuple(remarks),
        )

    def _found(self, clients: Clients, generator: Generators) -> RawDataset:
        try:
            raw = self.raw(clients, generator)
        except Missing as missing:
            if self.origin is None:
                raise
            raise Missing(f"{missing}; get it from {self.origin} (docs/data/{self.name}.md)") from missing
        self._check_size(raw)
        return raw

    def _check_size(self, raw: RawDataset) -> None:
        where = f"data set {self.name!r}"
        check_samples(len(raw.y), where)
        size = MORE_BYTES * len(raw.y) + (0 if isinstance(raw.x, Later) else raw.x.nbytes)
        unit = f"MB of samples, with {MORE_BYTES} bytes more for each of {len(raw.y):,}"
        check_work(size / 1e6, MOST_BYTES_IN_SECONDS / 1e6, unit, where)

    def _dealt(
        self, raw: RawDataset, clients: Clients, generator: Generators, aside: Ids
    ) -> tuple[list[Ids], list[Ids], Ids]:
        """The test set first, the rest dealt out, but for what is set *aside*."""
        test_ids = self._global_test(raw, generator)
        training = np.delete(np.arange(len(raw.y)), np.concatenate([test_ids, aside]))
        labels = Labels(raw.y[training], None if raw.owner is None else raw.owner[training])
        shares = self.partition.split(labels, clients, generator("data/partition"))
        rng = generator("data/client_test")
        held = [hold_out(training[share], self.client_test_fraction, rng) for share in shares]
        return [kept for kept, _ in held], [out for _, out in held], test_ids

    def _global_test(self, raw: RawDataset, generator: Generators) -> Ids:
        if self.test_fraction is None and raw.test is not None:
            return np.flatnonzero(raw.test)
        fraction = self.test_fraction or DEFAULT_TEST_FRACTION
        strata = raw.y if raw.classes is not None else np.zeros(len(raw.y), np.int64)
        return stratified_sample(strata, fraction, generator("data/test_split"))

    def _natural(
        self, raw: RawDataset, clients: Clients, generator: Generators, aside: Ids
    ) -> tuple[list[Ids], list[Ids], Ids]:
        """Everybody's own samples first, some of them for tests.

        Owners all of whose samples the source sets aside for tests are nobody's clients: they test everybody. So are
        those whose samples are all *aside*.
        """
        if self.client_test_fraction:
            raise Misfit(
                f"client_test_fraction={self.client_test_fraction:g} must be left out with partition natural: the "
                "clients' own tests are their parts of the global test set; set test_fraction",
                "client_test_fraction",
            )
        owner, test = told(raw.owner), raw.test if self.test_fraction is None else None
        testers: Ids = np.empty(0, np.int64)
        if test is not None:
            trains = np.bincount(owner[~test], minlength=int(owner.max()) + 1) > 0
            testers = np.flatnonzero(~trains[owner])
        members = np.delete(np.arange(len(raw.y)), np.concatenate([testers, aside]))
        left = len(np.unique(owner[members]))
        if len(aside) and left < clients.total:
            raise Misfit(
                f"validation_fraction={self.validation_fraction:g} leaves {left} owners of samples, and "
                f"{clients.count} clients are wanted; use fewer clients, or another partition",
                "validation_fraction",
            )
        labels = Labels(raw.y[members], owner[members], raw.owners_are_clients, raw.owner_names, raw.fleets)
        shares = self.partition.split(labels, clients, generator("data/partition"))
        shares = [members[share] for share in shares]
        if test is not None:
            held = [(share[~test[share]], share[test[share]]) for share in shares]
        else:
            fraction, rng = self.test_fraction or DEFAULT_TEST_FRACTION, generator("data/test_split")
            held = [hold_out(share, fraction, rng) for share in shares]
        own_tests = [out for _, out in held]
        test_ids = np.sort(np.concatenate([testers, *own_tests[: clients.count]]))
        return [kept for kept, _ in held], own_tests, test_ids

    def _about_tests(self, raw: RawDataset) -> Iterator[str]:
        """Where tests share measurements with training samples."""
        drawn = {
            "test_fraction": self.test_fraction or (raw.test is None and DEFAULT_TEST_FRACTION),
            "client_test_fraction": self.client_test_fraction,
            "unseen_clients": self.unseen_clients and not self.partition.natural,
        }
        if raw.overlap and (keys := [key for key, share in drawn.items() if share]):
            yield (
                f"windows overlap, and {' and '.join(keys)} draws tests among them: tests share measurements with "
                "training samples, and scores are too good; leave it out, or use a larger stride"
            )

    def _about_owners(self, raw: RawDataset, clients: Clients, train: Sequence[Ids]) -> Iterator[str]:
        """What may surprise: which sensor has whose samples, who has none, and which fleets are in one factory."""
        owners = raw.owner_names
        if self.partition.natural and raw.fleets and raw.owner is not None:
            yield from _about_fleets(raw.fleets, [int(raw.owner[ids[0]]) for ids in train[: clients.count]], clients)
        if not self.partition.natural or raw.owners_are_clients or not owners or self.origin is not None:
            return
        if len(owners) > clients.total:
            yield f"{len(owners) - clients.total} of {len(owners)} owners of samples have no client, and are left out"
        alike = set(owners) & set(clients.names)
        if alike and len(alike) < clients.count:
            stranger = next(name for name in clients.names if name not in alike)
            yield (
                f"{len(alike)} of {clients.count} sensors are called as owners of samples, but {stranger!r} is not, so "
                "owners and sensors are matched in their orders; call all sensors as owners to match them by name"
            )


def _about_fleets(fleets: Sequence[str], owners: Sequence[int], clients: Clients) -> Iterator[str]:
    """Where there are as many factories as fleets, and one has owners of several; *owners* are the clients'."""
    of_factory: list[set[str]] = [set() for _ in range(int(clients.factory.max()) + 1)]
    for factory, owner in zip(clients.factory, owners, strict=True):
        of_factory[factory].add(fleets[owner])
    mixed = next((factory for factory, names in enumerate(of_factory) if len(names) > 1), None)
    if mixed is not None and len(of_factory) == len(set().union(*of_factory)):
        yield (
            f"factory {mixed + 1} of {len(of_factory)} has owners of {' and '.join(sorted(of_factory[mixed]))}; for "
            "one fleet in each factory, set partition.factories to fleets"
        )


def _both(kept: Ids, out: Ids) -> Ids:
    """Together, ascending; none is in both."""
    return np.sort(np.concatenate([kept, out]))
