"""C-MAPSS, in NASA's layout: windows, lives and what is refused."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from pydantic import ValidationError
from small_worlds import NO_CONTENTION, scenario, simulated

from fedsim.data.class_counts import class_counts
from fedsim.data.cmapss import Cmapss
from fedsim.data.raw_dataset import Clients
from fedsim.data.target import Target
from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.viz.describe_tables import description_tables

MIXED = "factory 1 of 2 has owners of FD001 and FD003; for one fleet in each factory, set partition.factories to fleets"
TRAIN, TEST, LIVES = (6, 4, 9), (5, 3), (130, 7)


def rows(cycles, seed):
    """One line for each cycle; sensor 1 is constant."""
    rng = np.random.default_rng(seed)
    lines = []
    for unit, number in enumerate(cycles, start=1):
        for cycle in range(1, number + 1):
            values = rng.normal(100, 3, 24).round(2)
            values[3] = 518.67
            lines.append(" ".join([str(unit), str(cycle), *map(str, values)]) + "  ")
    return lines


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "cmapss"
    place.mkdir()
    for seed, name in enumerate(("FD001", "FD003")):
        write(place / f"train_{name}.txt", rows(TRAIN, seed))
        (place / f"test_{name}.txt.gz").write_bytes(gzip.compress("\n".join(rows(TEST, seed + 7)).encode()))
        write(place / f"RUL_{name}.txt", map(str, LIVES))
    return place


def write(path, lines):
    path.write_text("\n".join(lines) + "\n")


def raw(folder, **options):
    return Cmapss(path=str(folder), **{"window": 4, **options}).raw(Clients(2), np.random.default_rng)


def test_windows_of_an_engine_end_at_each_cycle_from_the_windows_length_on(folder):
    """Engines of 6, 4 and 9 cycles have 3, 1 and 6 windows of 4; in the last one 0 cycles are left."""
    made = raw(folder, target="value", cap=5.0)
    assert (made.x.shape, made.x.dtype, made.y.dtype, made.classes) == ((11, 14, 4), np.float32, np.float32, None)
    assert made.owner[:10].tolist() == [0] * 3 + [1] + [2] * 6
    assert (made.y[:10] * 5).round().tolist() == [2, 1, 0, 0, 5, 4, 3, 2, 1, 0]


def test_longer_lives_are_set_to_the_cap(folder):
    """Which is what a value of 1 means."""
    made = raw(folder, target="value", cap=4.0)
    assert (made.target, made.sound_class, raw(folder).target) == (Target("cycles", 4.0), None, None)
    assert (made.y * 4).tolist() == [2, 1, 0, 0, 4, 4, 3, 2, 1, 0, 4]


def test_a_stride_leaves_windows_out(folder):
    made = raw(folder, target="value", cap=10.0, stride=2)
    assert (made.y[:6] * 10).round().tolist() == [2, 0, 0, 5, 3, 1]


def test_the_last_window_of_a_test_engine_is_a_test(folder):
    """The second test engine has 3 cycles and is left out; the first one runs 130 cycles more."""
    made = raw(folder)
    assert made.test.tolist() == [False] * 10 + [True]
    assert made.owner_names[made.owner[-1]] == "FD001 test 1"
    assert made.y.tolist() == [0] * 10 + [2]
    assert made.class_names == ("below 50 cycles", "50 to 125 cycles", "125 cycles or more")
    assert made.remarks == ("1 engines have fewer than 4 cycles and were left out",)


def test_the_last_window_ends_with_the_last_cycle_and_its_life_is_its_own_engines(folder):
    """A test engine of 3 cycles, which is left out, and one of 5, which runs 7 cycles more."""
    (folder / "test_FD001.txt.gz").write_bytes(gzip.compress("\n".join(rows((3, 5), 7)).encode()))
    made = raw(folder, target="value", cap=100.0)
    assert made.y[-1] == np.float32(0.07)
    assert np.array_equal(made.x[-1, :, -1:], raw(folder, window=1).x[-1])


def test_a_class_begins_at_its_bound(folder):
    made = raw(folder, bounds=(1.0, 3.0, 5.0))
    assert made.y[:10].tolist() == [1, 1, 0, 0, 3, 2, 2, 1, 1, 0]
    assert (made.classes, made.class_names[1], made.levels) == (4, "1 to 3 cycles", ())


@pytest.mark.parametrize("cap", [5.0, 7.0, 125.0])
def test_values_are_counted_as_the_classes_of_their_lives(folder, cap):
    options = {"bounds": (1.0, 3.0, 5.0)}
    classes = Cmapss(path=str(folder), window=4, **options).load(Clients(3), lambda _: np.random.default_rng(0))
    values = Cmapss(path=str(folder), window=4, target="value", cap=cap, **options)
    loaded = values.load(Clients(3), lambda _: np.random.default_rng(0))
    assert loaded.levels == (1 / cap, 3 / cap, 5 / cap)
    assert loaded.class_or_level.tolist() == classes.y.tolist()
    assert class_counts(loaded).tolist() == class_counts(classes).tolist()


def test_what_devices_hold_is_described_by_levels(folder):
    data = {"name": "cmapss", "path": str(folder), "window": 4, "bounds": [1.0, 3.0, 5.0]}

    def described(target):
        changes = {"topology.devices": 3, "model": {"name": "mlp", "hidden": [4]}, "data": data | {"target": target}}
        return describe(scenario(changes))[0]

    of_values, of_classes = described("value"), described("classes")
    assert of_values["data"]["levels"] == [bound / 125 for bound in data["bounds"]]
    assert of_values["data"]["skew"] == of_classes["data"]["skew"]
    assert of_values["data"]["skew"]["earth_movers"]["max"] > 0
    data_table, *_ = description_tables(of_values)
    assert ["labels", "numbers (regression), counted as 4 classes"] in data_table.cells.to_numpy().tolist()


def test_what_is_above_the_cap_counts_as_the_cap(folder):
    loaded = Cmapss(path=str(folder), window=4, target="value", cap=4.0, bounds=(4.0, 5.0))
    kinds = loaded.load(Clients(3), lambda _: np.random.default_rng(0)).class_or_level
    assert kinds[:10].tolist() == [0, 0, 0, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "stp", "growth": {"name": "constant", "beta": 2}},
        {"name": "hfedms_d", "scc": None, "growth": {"name": "constant", "beta": 2}},
        {"name": "fedgs", "devices": 3, "presampled": 1},
    ],
    ids=lambda protocol: protocol["name"],
)
@pytest.mark.parametrize("stream", [None, {"samples": 3}], ids=["all", "stream"])
def test_protocols_that_count_classes_take_values_for_their_levels(folder, protocol, stream):
    """A device reports four bytes for each of four levels, as it does for classes; the same groups are formed."""
    write(folder / "train_FD001.txt", rows((5, 6, 7, 8, 9, 10, 14, 20), 0))

    def world(**target):
        bounds = {"bounds": [1.0, 3.0, 5.0]}
        data = {"name": "cmapss", "path": str(folder), "window": 4, "stream": stream, **bounds, **target}
        changes = {"topology.devices": 8, "data": data, "protocols": [protocol], "stop.rounds": 4}
        return simulated(NO_CONTENTION | changes | {"model": {"name": "mlp", "hidden": [4]}})

    of_values, of_classes = world(target="value", cap=5.0), world(target="classes")
    counts = class_counts(of_classes.dataset)
    assert len(np.unique(counts / counts.sum(axis=1, keepdims=True), axis=0)) > 4, "devices differ in their classes"
    assert class_counts(of_values.dataset).tolist() == counts.tolist()
    hops = of_values.trace.hops.array()
    assert (hops["bytes"][hops["access"]] == 16.0).sum() >= 8
    assert of_values.trace.groups.array().tolist() == of_classes.trace.groups.array().tolist()
    assert hops["client"].tolist() == of_classes.trace.hops.array()["client"].tolist()


def test_samples_hold_the_sensors_in_the_order_of_the_file(folder):
    """With windows of one cycle the training samples are the rows; min-max keeps their order within a channel."""
    made = raw(folder, window=1, channels="all", normalise="minmax")
    table = np.loadtxt(folder / "train_FD001.txt")[:, 2:]
    train = made.x[~made.test, :, 0]
    span = np.ptp(table, axis=0)
    changes = span > 0
    expected = (table - table.min(axis=0))[:, changes] / span[changes]
    assert train[:, changes] == pytest.approx(expected, abs=1e-6)
    assert np.flatnonzero(~changes).tolist() == [3]
    assert (train[:, 3] == 0).all()
    informative = raw(folder, window=1, normalise="minmax").x
    chosen = np.array([2, 3, 4, 7, 8, 9, 11, 12, 13, 14, 15, 17, 20, 21]) + 2
    assert np.array_equal(informative, made.x[:, chosen])


def test_channels_are_standardised_by_the_training_engines_alone(folder):
    made = raw(folder, window=1)
    train = made.x[~made.test, :, 0].astype(np.float64)
    assert train.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert train.std(axis=0) == pytest.approx(1, abs=1e-6)
    write(folder / "train_FD001.txt", rows(TRAIN, 0))
    (folder / "test_FD001.txt.gz").write_bytes(gzip.compress("\n".join(rows((5, 8), 99)).encode()))
    assert np.array_equal(raw(folder, window=1).x[:19], made.x[:19])


def test_every_engine_is_a_client_and_test_engines_are_nobodys(folder, streams):
    data = Cmapss(path=str(folder), window=4, subsets=["FD001", "FD003"]).load(Clients(6), streams(1))
    assert data.client_samples.tolist() == [3, 1, 6] * 2
    assert len(data.test_ids) == 2
    assert all(len(ids) == 0 for ids in data.client_test_ids)
    assert data.sample_bytes == 14 * 4 * 4 + 1


def test_another_fleet_may_be_tested(folder):
    """Channels are standardised by the engines that are trained on; the second test engine of each fleet is short."""
    own, other, both = (
        raw(folder, **more) for more in ({}, {"test_subsets": ["FD003"]}, {"subsets": ["FD001", "FD003"]})
    )
    assert [made.owner_names[made.owner[-1]] for made in (own, other, both)] == ["FD001 test 1", *["FD003 test 1"] * 2]
    assert (other.fleets, other.test.tolist()) == (("FD001",) * 3 + ("FD003",) * 2, [False] * 10 + [True])
    assert np.array_equal(other.x[:10], own.x[:10])
    assert not np.allclose(other.x[10], both.x[-1])
    of_both = raw(folder, subsets=["FD001", "FD003"], test_subsets=["FD003"])
    assert np.array_equal(of_both.x[-1], both.x[-1])
    assert np.count_nonzero(of_both.test) == 1


def test_each_factory_may_have_the_engines_of_one_fleet(folder, streams):
    """FD003's engines are of 9, 9, 4 and 9 cycles here, FD001's of 6, 4 and 9: the longest of all are FD003's."""
    write(folder / "train_FD003.txt", rows((9, 9, 4, 9), 1))
    settings = {"path": str(folder), "window": 4, "subsets": ["FD001", "FD003"]}
    for factories, expected, remarked in (("any", [6, 6, 6, 6], True), ("fleets", [3, 6, 6, 6], False)):
        partition = {"name": "natural", "factories": factories}
        data = Cmapss.model_validate({**settings, "partition": partition}).load(
            Clients(4, np.repeat([0, 1], 2)), streams(1)
        )
        assert data.client_samples.tolist() == expected
        assert data.remarks[1:] == ((MIXED,) if remarked else ())


def test_what_was_read_is_kept_and_options_count(folder, cache_folder):
    assert np.array_equal(raw(folder).x, raw(folder).x)
    raw(folder, normalise="minmax")
    assert len(list(cache_folder.iterdir())) == 2
    more = ({}, {"cap": 9.0}, {"bounds": [9.0]}, {"channels": "all"}, {"test_subsets": ["FD003"]})
    for number, options in enumerate(more, start=3):
        raw(folder, target="value", **options)
        assert len(list(cache_folder.iterdir())) == number


GOOD = rows(TRAIN, 0)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([*GOOD[:3], GOOD[3].replace("1 4 ", "1 nan ", 1)], r"txt:4: 'nan' in column 2 must be a number"),
        ([*GOOD[:3], GOOD[3].replace("518.67", "inf")], r"txt:4: 'inf' in column 6 must be a number, at most 1e\+09"),
        ([*GOOD[:3], GOOD[3].replace("518.67", "5_1")], r"txt:4: '5_1' in column 6"),
        ([*GOOD[:3], GOOD[3].replace("518.67", "x" * 10**6)], r"txt:4: 'x{30}' in column 6"),
        ([*GOOD[:3], GOOD[3] + "1.0"], r"txt:4: 27 columns, and 26 are needed"),
        ([*GOOD[:3], GOOD[3][:40]], r"txt:4: \d columns, and 26 are needed"),
        (
            [*GOOD[:3], *GOOD[4:]],
            r"txt:4: unit 1 with cycle 5 stands where unit 1 with cycle 4, or unit 2 with cycle 1",
        ),
        (GOOD[6:], r"txt:1: unit 2 with cycle 1 stands where unit 1 with cycle 1 must"),
        ([*GOOD, GOOD[0]], r"txt:20: unit 1 with cycle 1 stands where unit 3 with cycle 10, or unit 4"),
        ([], "is empty; one line for each cycle"),
    ],
)
def test_a_file_of_engines_that_is_not_as_it_should_be_is_refused(folder, cache_folder, lines, message):
    write(folder / "train_FD001.txt", lines)
    with pytest.raises(UserError, match=message) as caught:
        raw(folder)
    assert str(caught.value).startswith(str(folder / "train_FD001.txt"))
    assert not list(cache_folder.iterdir())


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["130"], "has 1 lines for the 2 engines of the test file"),
        (["130", "7", "8"], "has 3 lines for the 2 engines"),
        (["130", "-7"], "txt:2: -7 remaining cycles"),
        (["130", "7 8"], "txt:2: 2 columns, and one is needed"),
        (["130", "many"], "txt:2: 'many' in column 1 must be a number"),
    ],
)
def test_a_file_of_lives_that_is_not_as_it_should_be_is_refused(folder, lines, message):
    write(folder / "RUL_FD001.txt", lines)
    with pytest.raises(UserError, match=message):
        raw(folder)


def test_a_damaged_file_is_refused(folder):
    packed = (folder / "test_FD001.txt.gz").read_bytes()
    (folder / "test_FD001.txt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(UserError, match="is cut short"):
        raw(folder)
    (folder / "train_FD001.txt").write_bytes(b"1 2 \xff")
    with pytest.raises(UserError, match=r"txt:1: is not UTF-8 text \(byte 0xff\)"):
        raw(folder)


def test_files_are_found_by_their_beginning_and_must_be_one_each(folder):
    (folder / "train_FD001.txt").rename(folder / "train_FD001.from_csv.txt")
    assert len(raw(folder).y) == 11
    write(folder / "train_FD001.txt", GOOD)
    with pytest.raises(UserError, match=r"has 2 files for train_FD001 .*; keep one"):
        raw(folder)
    with pytest.raises(UserError, match=r"has no file train_FD002\.txt or train_FD002\.txt\.gz"):
        raw(folder, subsets=["FD002"])


def test_a_file_where_a_folder_should_be_is_refused(folder):
    with pytest.raises(UserError, match=r"RUL_FD001\.txt: cannot be read as a folder \(Not a directory\)"):
        raw(folder / "RUL_FD001.txt")


def test_a_window_longer_than_all_engines_is_refused(folder):
    with pytest.raises(UserError, match="window=10: no training engine has so many cycles; 9 is the most"):
        raw(folder, window=10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subsets": []}, "at least 1"),
        ({"subsets": ["FD005"]}, "FD001"),
        ({"subsets": ["FD001", "FD001"]}, "subsets=.* each one must be named once"),
        ({"test_subsets": ["FD003", "FD003"]}, "test_subsets=.* each one must be named once"),
        ({"test_subsets": []}, "at least 1"),
        ({"bounds": [50.0, 50.0]}, "must ascend"),
        ({"bounds": [0.0]}, "greater than 0"),
        ({"window": 0}, "greater than or equal to 1"),
    ],
)
def test_a_key_outside_its_range_is_refused(options, message):
    with pytest.raises(ValidationError, match=message):
        Cmapss.model_validate(options)


@pytest.mark.data
def test_the_published_sets_have_their_published_numbers(streams):
    """FD001: 100 engines of 128 to 362 cycles, 20,631 in all; FD003: 24,720 (NASA's readme.txt, and counted)."""
    data = Cmapss(stride=1).load(Clients(100), streams(1))
    assert data.client_samples.sum() == 20_631 - 100 * 29
    assert (data.client_samples.min() + 29, data.client_samples.max() + 29) == (128, 362)
    assert len(data.test_ids) == 100
    assert data.sample_shape == (14, 30)
    both = Cmapss(subsets=("FD001", "FD003"), target="value").load(Clients(200), streams(1))
    assert both.client_samples.sum() == 20_631 + 24_720 - 200 * 29
    assert (both.y.min(), both.y.max()) == (0.0, 1.0)


@pytest.mark.data
def test_published_engines_that_validate_are_whole_and_a_fifth_of_each_fleet(streams):
    """Of 100 engines each, 20 of FD001 and 20 of FD003 are tested in all their windows, to their last cycle."""
    settings = {"subsets": ["FD001", "FD003"], "target": "value", "validation_fraction": 0.2}
    partition = {"name": "natural", "factories": "fleets"}
    data = Cmapss.model_validate({**settings, "partition": partition}).load(
        Clients(160, np.repeat([0, 1], 80)), streams(1)
    )
    assert np.count_nonzero(data.y[data.test_ids] == 0) == 40
    assert data.client_samples.sum() + len(data.test_ids) == 20_631 + 24_720 - 200 * 29
    with pytest.raises(UserError, match="leaves 160 owners of samples, and 161 clients are wanted"):
        Cmapss.model_validate(settings).load(Clients(161), streams(1))


@pytest.mark.data
def test_published_lives_are_told_by_a_straight_line(streams):
    """Least squares on the last cycle's 14 sensors misses the capped lives of FD001 by some 20 cycles, in the root
    mean square, and the mean of the training lives by half as much again or more."""
    data = Cmapss(target="value").load(Clients(100), streams(1))
    last = np.column_stack([data.x[:, :, -1], np.ones(len(data.x))]).astype(np.float64)
    trained = np.concatenate(data.train_ids)
    weights, *_ = np.linalg.lstsq(last[trained], data.y[trained], rcond=None)
    told, true = last[data.test_ids] @ weights, data.y[data.test_ids]
    missed = 125 * np.sqrt(np.mean((told - true) ** 2))
    assert 15 < missed < 25
    assert 125 * np.sqrt(np.mean((data.y[trained].mean() - true) ** 2)) > 1.5 * missed
