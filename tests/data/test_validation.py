"""Training samples in place of tests: nobody's tests are seen, and no measurement is trained on and tested on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_worlds import scenario
from tiers import drawn

from fedsim.data import validation
from fedsim.data.dataset import FederatedDataset
from fedsim.data.digits import Digits
from fedsim.data.raw_dataset import Clients
from fedsim.errors import UserError
from fedsim.experiment.validate import validate

CUT_OPTIONS = {
    "iid": {"partition": {"name": "iid"}, "client_test_fraction": 0.25, "unseen_clients": 2},
    "dirichlet": {"partition": {"name": "dirichlet"}, "test_fraction": 0.4},
    "natural": {"partition": {"name": "natural"}, "unseen_clients": 1, "test_fraction": 0.3},
}


class Written(Digits):
    """Digits by eight people, in turn."""

    def raw(self, clients, generator):
        return replace(super().raw(clients, generator), owner=np.arange(1797) % 8)


class Records(Digits):
    """Digits as windows of six records, in turn; each window shares measurements with the next two of its record."""

    def raw(self, clients, generator):
        record = np.arange(1797) % 6
        return replace(super().raw(clients, generator), owner=record, series=record, overlap=2)


class Lives(Records):
    """Records of which the last one is a test, and which are set aside as a whole; the first three are a fleet."""

    def raw(self, clients, generator):
        raw = super().raw(clients, generator)
        return replace(raw, whole_series=True, test=raw.owner == 5, fleets=("a", "a", "a", "b", "b", "b"))


@pytest.fixture
def load(streams):
    def loaded(kind: type[Digits], clients: int = 4, **options) -> FederatedDataset:
        return kind.model_validate(options).load(Clients(clients), streams(1))

    return loaded


@pytest.mark.parametrize("options", CUT_OPTIONS.values(), ids=CUT_OPTIONS)
def test_a_share_of_what_each_client_would_train_on_is_tested_and_no_test_is_seen(load, options):
    last, choosing = load(Written, **options), load(Written, **options, validation_fraction=0.2)
    assert choosing.y is not None and np.array_equal(choosing.y, last.y)
    for would, trains, tests in zip(last.train_ids, choosing.train_ids, choosing.client_test_ids, strict=True):
        assert len(tests) == round(0.2 * len(would))
        assert np.array_equal(np.sort(np.concatenate([trains, tests])), would)
    assert np.array_equal(choosing.test_ids, np.sort(np.concatenate(choosing.client_test_ids)))
    seen = np.concatenate([*choosing.train_ids, choosing.test_ids])
    tests = np.concatenate([last.test_ids, *last.client_test_ids, *last.unseen_test_ids])
    assert not set(seen) & set(tests)
    assert choosing.unseen_test_ids == ()
    assert choosing.remarks[-1].startswith(
        f"validation_fraction=0.2: tests are {len(choosing.test_ids):,} training sam"
    )


def test_what_is_set_aside_is_drawn_and_the_seed_alone_decides(load, streams):
    first, again = (load(Written, validation_fraction=0.2) for _ in range(2))
    other = Written(validation_fraction=0.2).load(Clients(4), streams(2))
    assert first.digest == again.digest != other.digest
    assert np.diff(first.client_test_ids[0]).max() > 1


def test_without_it_nothing_is_set_aside_and_nothing_is_said(load):
    assert load(Written).remarks == ()
    assert load(Written).digest == load(Written, validation_fraction=None).digest


@pytest.mark.parametrize("partition", ["iid", "natural"])
def test_of_each_record_the_end_of_what_is_trained_on_is_tested(load, partition):
    """Of a record of 299 or 300 windows some are tests; the last fifth of the others is tested, whoever has it."""
    options = {"partition": {"name": partition}, "test_fraction": 0.2}
    last, choosing = load(Records, **options), load(Records, **options, validation_fraction=0.2)
    trained, tested = np.concatenate(choosing.train_ids), choosing.test_ids
    would = np.concatenate(last.train_ids)
    for record in np.unique(would % 6):
        of_it = np.sort(would[would % 6 == record])
        first = of_it[-round(0.2 * len(of_it))]
        assert np.array_equal(tested[tested % 6 == record], of_it[of_it >= first])
        assert np.array_equal(np.sort(trained[trained % 6 == record]), of_it[of_it < first - 2 * 6])


@drawn(30)
@given(
    lengths=st.lists(st.integers(0, 90), min_size=1, max_size=4),
    window=st.integers(1, 12),
    stride=st.integers(1, 12),
    fraction=st.floats(0.01, 0.99),
    tests=st.floats(0, 0.5),
    seed=st.integers(0, 99),
)
def test_no_measurement_is_trained_on_and_tested_on(lengths, window, stride, fraction, tests, seed):
    """Windows as they are cut from records, told by their measurements; no window is left out without a reason."""
    begins = [list(range(0, length - window + 1, stride)) for length in lengths]
    series = np.repeat(np.arange(len(lengths)), list(map(len, begins)))
    cut = [{(record, at) for at in range(b, b + window)} for record, of_it in enumerate(begins) for b in of_it]
    training = np.flatnonzero(np.random.default_rng(seed).random(len(cut)) >= tests)
    use = validation._uses(series, (window - 1) // stride, training, fraction)
    trained, tested = ([cut[at] for at in np.flatnonzero(use == how)] for how in (0, 1))
    measured = set().union(*tested)
    assert not measured & set().union(*trained)
    for at in training:
        if use[at] == validation.NEITHER:
            assert cut[at] & measured
    for record in range(len(lengths)):
        of_it = training[series[training] == record]
        expected = min(round(fraction * len(of_it)), max(len(of_it) - 1, 0))
        assert np.count_nonzero(use[of_it] == validation.TESTED) == expected
    assert (np.delete(use, training) == validation.NEITHER).all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("partition", ["iid", "natural"])
def test_records_that_are_lives_are_set_aside_as_a_whole_and_some_of_each_fleet(streams, partition, seed):
    """Of three records of fleet a and two of b that are no tests, a third is one each; record 5 is a test."""
    settings = Lives.model_validate({"partition": {"name": partition}, "validation_fraction": 0.34})
    data = settings.load(Clients(3), streams(seed))
    tested, trained = (set((ids % 6).tolist()) for ids in (data.test_ids, np.concatenate(data.train_ids)))
    assert (len(tested & {0, 1, 2}), len(tested & {3, 4}), 5 in tested | trained) == (1, 1, False)
    assert trained == {0, 1, 2, 3, 4} - tested
    assert len(data.test_ids) + data.client_samples.sum() == np.count_nonzero(np.arange(1797) % 6 < 5)
    assert not any(map(len, data.client_test_ids))


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            Digits,
            {"validation_fraction": 0.0001},
            r"validation_fraction=0\.0001 sets no sample aside to test on; raise",
        ),
        (
            Lives,
            {"validation_fraction": 0.3, "unseen_clients": 1},
            "unseen_clients=1 may be those that own them; leave",
        ),
        (
            Lives,
            {"validation_fraction": 0.3, "partition": {"name": "natural"}, "clients": 4},
            r"validation_fraction=0\.3 leaves 3 owners of samples, and 4 clients are wanted; use fewer clients",
        ),
        (Records, {"validation_fraction": 0.99, "clients": 80}, r"leaves client \d+ no sample to train on; lower it"),
    ],
)
def test_what_leaves_nobody_a_sample_is_refused(load, kind, options, message):
    with pytest.raises(UserError, match=message):
        load(kind, **options)


def test_a_client_that_is_left_without_samples_is_called_by_its_name(streams):
    names = tuple(f"press-{number}" for number in range(80))
    with pytest.raises(UserError, match=r"leaves press-\d+ no sample"):
        Records(validation_fraction=0.99).load(Clients(80, names=names), streams(1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "test_fraction"),
        ({"client_test_fraction": 0.2}, "test_fraction and client_test_fraction"),
        ({"unseen_clients": 1}, "test_fraction and unseen_clients"),
        ({"unseen_clients": 1, "partition": {"name": "natural"}}, "test_fraction"),
    ],
)
def test_tests_that_are_drawn_among_overlapping_windows_are_remarked(load, options, said):
    (remark,) = load(Records, **options).remarks
    assert remark.startswith(f"windows overlap, and {said} draws tests among them: tests share measurements with tr")


def test_tests_of_the_source_share_no_measurement_and_nothing_is_said(load):
    assert load(Lives).remarks == ()


@pytest.mark.parametrize("on", ["unseen", "clients"])
def test_a_test_set_that_is_kept_for_the_last_run_is_refused(on, tmp_path):
    engine = np.repeat(np.arange(4), 5)
    np.savez(tmp_path / "own.npz", x=np.zeros((20, 3), np.float32), y=np.arange(20) % 2, client=engine)
    data = {"name": "arrays", "path": str(tmp_path / "own.npz"), "unseen_clients": 2, "validation_fraction": 0.25}
    changes = {"data": data, "model": {"name": "mlp", "hidden": [2]}, "evaluate": {"on": [on]}}
    if on == "clients":
        validate(scenario(changes))
        return
    with pytest.raises(UserError, match=r"with validation_fraction=0\.25 it has no samples; name global, or leave dat"):
        validate(scenario(changes))
