"""A user's CSV file: what it means, and one clear sentence for whatever is wrong in it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tiers import drawn

from fedsim.data import table
from fedsim.data.raw_dataset import Clients
from fedsim.data.reading import csv_columns
from fedsim.data.table import Table
from fedsim.data.target import Target
from fedsim.errors import UserError

TEXT = """speed,state,machine,load,set
1.5,ok,press,10,train
2.5,worn,press,20,test
3.5,ok,lathe,30,train
4.5,broken,lathe,40,train
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(TEXT)
    return path


@pytest.fixture
def write(tmp_path):
    def table_of(text):
        path = tmp_path / "own.csv"
        path.write_bytes(text.encode())
        return path

    return table_of


def raw(path, **options):
    options = {"target": "state", "client": "machine", "test": "set", **options}
    return Table(path=str(path), **options).raw(Clients(2), np.random.default_rng)


def test_columns_become_samples_classes_clients_and_tests(file):
    made = raw(file)
    assert made.x.tolist() == [[1.5, 10], [2.5, 20], [3.5, 30], [4.5, 40]]
    assert (made.x.dtype, made.class_names, made.classes) == (np.float32, ("broken", "ok", "worn"), 3)
    assert made.y.tolist() == [1, 2, 1, 0]
    assert (made.owner.tolist(), made.owner_names) == ([1, 1, 0, 0], ("lathe", "press"))
    assert made.test.tolist() == [False, True, False, False]
    assert made.sample_bytes == 4 * 3


def test_regression_learns_a_number(file):
    made = raw(file, task="regression", target="load", features=["speed"])
    assert (made.y.tolist(), made.y.dtype, made.classes) == ([10, 20, 30, 40], np.float32, None)
    assert made.x.tolist() == [[1.5], [2.5], [3.5], [4.5]]
    assert made.target is None
    assert raw(file, task="regression", target="load", features=["speed"], unit="mm").target == Target("mm", 1.0)


def test_features_stand_in_the_order_in_which_they_are_named(file):
    assert raw(file, features=["load", "speed"]).x[0].tolist() == [10, 1.5]
    assert raw(file, features=["speed", "load"]).x[0].tolist() == [1.5, 10]


def test_without_client_and_test_nothing_is_said_about_them(file):
    made = raw(file, client=None, test=None, features=["speed"])
    assert (made.owner, made.test, made.owner_names) == (None, None, ())


def test_classes_that_are_whole_numbers_are_sorted_by_value(file):
    assert raw(file, target="load", features=["speed"]).class_names == ("10", "20", "30", "40")
    file.write_text(TEXT.replace(",10,", ",9,"))
    assert raw(file, target="load", features=["speed"]).class_names == ("9", "20", "30", "40")


def test_standardised_features_have_mean_0_and_deviation_1_over_training_rows(file):
    made = raw(file, standardise=True)
    train = made.x[~made.test].astype(np.float64)
    assert train.mean(axis=0) == pytest.approx(0, abs=1e-6)
    assert train.std(axis=0) == pytest.approx(1, rel=1e-6)
    scale = np.std([1.5, 3.5, 4.5])
    assert made.x[1, 0] == pytest.approx((2.5 - np.mean([1.5, 3.5, 4.5])) / scale, rel=1e-6)


def test_a_feature_that_never_changes_becomes_0(file):
    file.write_text("a,b,y\n7,1,x\n7,2,z\n")
    made = raw(file, target="y", client=None, test=None, standardise=True)
    assert made.x.tolist() == [[0, -1], [0, 1]]


def test_clients_of_the_table_are_clients(file, streams):
    options = {"path": str(file), "target": "state", "client": "machine", "features": ["speed"]}
    data = Table.model_validate(options | {"partition": {"name": "natural"}}).load(Clients(2), streams(1))
    assert data.y[data.train_ids[0]].tolist() in ([1], [0], [1, 0])


@drawn(50)
@given(numbers=st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=2, max_size=20))
def test_every_number_of_32_bits_is_read_as_it_is(tmp_path_factory, numbers):
    path = tmp_path_factory.mktemp("numbers") / "table.csv"
    path.write_text("a,y\n" + "".join(f"{number!r},{place % 2}\n" for place, number in enumerate(numbers)))
    assert raw(path, target="y", client=None, test=None).x[:, 0].tolist() == numbers


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (TEXT.replace("3.5", "nan"), r"table\.csv:4: 'nan' in the column 'speed' must be a number"),
        (
            TEXT.replace("3.5", "1e39"),
            r"table\.csv:4: '1e39' in the column 'speed' must be a number, at most 3\.4e\+38",
        ),
        (TEXT.replace("3.5", ""), r"table\.csv:4: the cell in the column 'speed' is empty; fill it"),
        (TEXT.replace("30,train", "30"), r"table\.csv:4: 4 columns, and the first line names 5"),
        (TEXT.replace("30,train", "30,maybe"), r"table\.csv:4: 'maybe' in the column 'set' must be one of 0, false"),
        (TEXT.replace("worn", " "), r"table\.csv:3: nothing in the column 'state'; write a word"),
        (TEXT.replace("worn", "w" * 201), r"table\.csv:3: 201 characters in the column 'state'"),
        (TEXT.replace("worn", '"w'), r"table\.csv:5: unexpected end of data; is this a CSV file\?"),
        (TEXT.replace("state", "stat", 1), r"table\.csv:1: no column is called 'state'; did you mean 'stat'\?"),
        (TEXT.replace(",", ";"), r"table\.csv:1: columns are separated by commas"),
        (TEXT.replace("speed", "state"), r"table\.csv:1: two columns are called 'state'"),
        (TEXT.splitlines()[0], r"table\.csv:1: there are no rows below the names"),
        ("", r"table\.csv:1: must name the columns, and is empty"),
        (TEXT.replace("load,", ","), r"table\.csv:1: column 4 of 5 has no name; give it one"),
        ("state,machine,set\nok,press,0\n", r"table\.csv:1: there are no columns of features"),
        (TEXT.replace("train", "test"), "the column 'set' sets all rows aside for tests"),
        (TEXT.replace("worn", "ok").replace("broken", "ok"), "the column 'state' has only the class 'ok'"),
    ],
)
def test_a_table_that_is_not_as_it_should_be_is_refused(file, text, message):
    file.write_text(text)
    with pytest.raises(UserError, match=message) as caught:
        raw(file)
    assert str(caught.value).startswith(str(file))


def test_many_classes_are_probably_numbers(file):
    file.write_text("a,y\n" + "".join(f"1,{number / 7}\n" for number in range(1001)))
    with pytest.raises(UserError, match="has 1001 different classes, .* if it holds numbers, set task to regression"):
        raw(file, target="y", client=None, test=None)


def test_a_target_of_regression_must_be_a_number(file):
    with pytest.raises(UserError, match=r":2: 'ok' in the column 'state' must be a number"):
        raw(file, task="regression")


def test_numbers_too_far_apart_to_be_standardised_are_refused(file):
    file.write_text("a,y,set\n1e-30,x,0\n2e-30,z,0\n1e30,z,1\n")
    with pytest.raises(UserError, match="a column has numbers so far apart"):
        raw(file, target="y", client=None, standardise=True)


def test_binary_files_are_refused(file):
    file.write_bytes(b"PK\x03\x04\xff\xff")
    with pytest.raises(UserError, match=r"is compressed .zip."):
        raw(file)
    with pytest.raises(UserError, match="is not there; a CSV file with your samples"):
        raw(file.with_name("none.csv"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"client": "state"}, "client='state' is the column of target too"),
        ({"features": ["speed", "state"]}, "'state' is the column of target; leave it out"),
        ({"features": ["speed", "speed"]}, "'speed' is named twice; leave it out"),
        ({"features": []}, "at least 1"),
        ({"task": "ranking"}, "classification"),
        ({"unit": "mm"}, "unit='mm' is of numbers to predict, and here are classes; leave it out"),
        ({"unit": "own", "task": "regression"}, "unit='own' must be a word of at most 20 small letters"),
    ],
)
def test_a_key_outside_its_range_is_refused(options, message):
    with pytest.raises(ValidationError, match=message):
        Table.model_validate({"path": "a.csv", "target": "state", **options})


def test_what_natural_needs_of_a_table_is_a_column_of_clients():
    with pytest.raises(ValidationError, match="natural needs the column that says whose a sample is; set client, or"):
        Table(path="table.csv", target="state", partition={"name": "natural"})
    assert Table(path="table.csv", target="state", client="machine", partition={"name": "natural"}).client == "machine"


def test_a_table_may_have_a_hundred_thousand_columns(write):
    """Nobody would wait for it if each column were looked for among all others."""
    columns = 100_000
    names = ",".join(f"c{number}" for number in range(columns))
    row = ",".join(["1"] * columns)
    made = raw(write(f"{names},label\n{row},a\n{row},b\n"), target="label", client=None, test=None)
    assert made.x.shape == (2, columns)


@pytest.mark.parametrize(
    "text", ["x" * 61, 'a,label\n"1\n' + "1\n" * 60, "a,label\n" + "1," * 30], ids=lambda text: text[:12]
)
def test_a_row_without_an_end_is_not_read(write, monkeypatch, text):
    """Neither a long line nor one that goes on and on in quotes."""
    monkeypatch.setattr(csv_columns, "LONGEST_ROW", 40)
    with pytest.raises(UserError, match="a row has more than 40 characters"):
        raw(write(text), target="label", client=None, test=None)


def test_many_rows_may_have_more_characters_than_one(write, monkeypatch):
    monkeypatch.setattr(csv_columns, "LONGEST_ROW", 40)
    text = "a,label\r\n" + "1,x\r2,y\n" * 100
    assert raw(write(text), target="label", client=None, test=None).x.shape == (200, 1)


def test_clients_with_names_of_any_length_are_numbered_in_their_order(write):
    long = "z" * 200
    made = raw(write(f"a,label,who\n1,x,{long}\n2,y,b\n3,x,a\n4,y,b\n"), target="label", client="who", test=None)
    assert made.owner.tolist() == [2, 1, 0, 1]
    assert made.owner_names == ("a", "b", long)


@pytest.mark.parametrize(("key", "most"), [("MOST_ROWS", 4), ("MOST_NUMBERS", 8)])
def test_a_table_has_at_most_so_many_rows_and_numbers(write, monkeypatch, key, most):
    monkeypatch.setattr(csv_columns, key, most)
    monkeypatch.setattr(csv_columns, "CELLS_AT_ONCE", 3)
    row = "1,2,x\n3,4,y\n"
    assert raw(write("a,b,label\n" + row * 2), target="label", client=None, test=None).x.shape == (4, 2)
    with pytest.raises(
        UserError, match=r"csv:6: there are more rows of 2 features .* rows and .* numbers are the most"
    ):
        raw(write("a,b,label\n" + row * 2 + "5,6,x\n"), target="label", client=None, test=None)


@pytest.mark.parametrize("at_once", [1, 7, 1000])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({3: "1,?,x", 4: "1"}, r"csv:3: '\?' in the column 'b' must be a number"),
        ({3: "1", 4: "1,?,x"}, r"csv:3: 1 columns, and the first line names 3"),
        ({3: "1,1_0,x", 4: '"1'}, r"csv:3: '1_0' in the column 'b' must be a number"),
        ({3: "1,1, ", 4: "inf,1,x"}, r"csv:4: 'inf' in the column 'a'|csv:3: nothing in the column 'label'"),
        ({3: "1,1e39,x"}, r"csv:3: '1e39' in the column 'b' must be a number"),
    ],
)
def test_the_line_that_is_wrong_is_named_however_many_are_read_at_once(write, monkeypatch, at_once, wrong, message):
    monkeypatch.setattr(csv_columns, "CELLS_AT_ONCE", at_once)
    lines = ["a,b,label", *["1,2,x", "3,4,y"] * 4]
    for number, line in wrong.items():
        lines[number - 1] = line
    with pytest.raises(UserError, match=message):
        raw(write("\n".join(lines)), target="label", client=None, test=None)


def test_a_byte_that_is_no_text_is_named_with_its_line(tmp_path):
    path = tmp_path / "own.csv"
    path.write_bytes(b"a,label\n" + b"1,x\n" * 10_000 + b"1,\xff\n")
    with pytest.raises(UserError, match=r"own\.csv:10002: is not UTF-8 text .byte 0xff."):
        raw(path, target="label", client=None, test=None)


def test_a_table_is_read_without_its_text_in_memory(write):
    """Its numbers take four bytes each, and little besides."""
    row = ",".join(["0.123456789012345678"] * 100)
    path = write(",".join(f"c{number}" for number in range(100)) + ",label\n" + f"{row},x\n{row},y\n" * 2000)
    raw(path, target="label", client=None, test=None)  # imports
    tracemalloc.start()
    try:
        made = raw(path, target="label", client=None, test=None)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert made.x.nbytes == 1_600_000 < path.stat().st_size / 5
    assert peak < path.stat().st_size / 2


@pytest.mark.parametrize("columns", [1, 2, 3, 7])
@pytest.mark.parametrize("options", [{}, {"test": "set"}])
def test_features_are_standardised_alike_however_many_at_once(write, monkeypatch, columns, options):
    values = np.random.default_rng(1).normal(size=(50, columns))
    head = ",".join(f"c{number}" for number in range(columns)) + ",set,label\n"
    rows = "".join(",".join(map(str, row)) + f",{at % 2},{'xy'[at % 3 == 0]}\n" for at, row in enumerate(values))
    features = [f"c{number}" for number in range(columns)]
    options = {"target": "label", "client": None, "test": None, "features": features, "standardise": True, **options}
    path = write(head + rows)
    expected = raw(path, **options).x
    monkeypatch.setattr(table, "STANDARDISED_AT_ONCE", 1)
    assert np.array_equal(raw(path, **options).x, expected)


@pytest.fixture
def of_machines(tmp_path):
    def source(*machines, **keys):
        """Four samples of each machine, of which each number is the machine's place."""
        rows = [f"{place},{name},{'ok' if k % 2 else 'worn'}" for place, name in enumerate(machines) for k in range(4)]
        path = tmp_path / "machines.csv"
        path.write_text("\n".join(["level,machine,state", *rows]) + "\n")
        return Table(path=str(path), target="state", client="machine", partition={"name": "natural"}, **keys)

    return source


def places(data, ids):
    return {float(data.stored[sample][0]) for sample in ids}


def test_sensors_that_are_called_as_machines_have_their_samples(of_machines, streams):
    source = of_machines("cam-1", "vib-10", "vib-2", "spare")
    data = source.load(Clients(3, names=("vib-2", "vib-10", "cam-1")), streams(1))
    assert [places(data, ids) for ids in data.train_ids] == [{2}, {1}, {0}]
    assert data.remarks == ("1 of 4 owners of samples have no client, and are left out",)


def test_unseen_machines_are_those_that_no_sensor_is_called_as(of_machines, streams):
    data = of_machines("a", "b", "c", unseen_clients=1).load(Clients(2, names=("c", "a")), streams(1))
    assert [places(data, ids) for ids in data.train_ids] == [{2}, {0}]
    assert places(data, data.unseen_test_ids[0]) == {1}


def test_sensors_of_other_names_are_matched_in_order(of_machines, streams):
    data = of_machines("vib-1", "vib-10", "vib-2").load(Clients(3, names=("x", "y", "z")), streams(1))
    assert [places(data, ids) for ids in data.train_ids] == [{0}, {1}, {2}]
    assert data.remarks == ()


def test_names_of_which_only_some_are_alike_draw_a_remark(of_machines, streams):
    clients = Clients(3, names=("vib-01", "vib-02", "vib-10"))
    (remark,) = of_machines("vib-1", "vib-10", "vib-2").load(clients, streams(1)).remarks
    assert remark.startswith("1 of 3 sensors are called as owners of samples, but 'vib-01' is not, so ")
