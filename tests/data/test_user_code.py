"""A user's own function makes the data: what it may return, and one sentence for whatever goes wrong in it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from fedsim.data.encoding import OneHot
from fedsim.data.raw_dataset import Clients, RawDataset
from fedsim.data.user_code import UserCode
from fedsim.errors import UserError

PAGES = Path(__file__).parents[2] / "docs" / "data"


@pytest.fixture
def written(tmp_path):
    """A function that writes my_data.py with the *body* of a function, and says its path."""

    def write(body: str, signature: str = "clients, rng, **options") -> str:
        head = "import numpy as np\nfrom fedsim.data.raw_dataset import RawDataset\n\n\n"
        source = f"{head}def make({signature}):\n{textwrap.indent(textwrap.dedent(body), '    ')}\n"
        (tmp_path / "my_data.py").write_text(source)
        return f"{tmp_path / 'my_data.py'}:make"

    return write


@pytest.fixture
def make(written, streams):
    def made(body, clients=2, **options):
        return UserCode(path=written(body), options=options).raw(Clients(clients, unseen=1), streams(1))

    return made


def test_a_mapping_of_arrays_is_a_data_set(make):
    made = make(
        """
        return {
            "x": np.zeros((6, 2, 3)), "y": [0, 1, 2, 0, 1, 1], "client": ["b", "a", "a", "b", "b", "a"],
            "test": [True] + [False] * 5, "class_names": ["no", "maybe", "yes"],
        }
        """
    )
    assert (made.x.shape, made.x.dtype, made.y.dtype) == ((6, 2, 3), np.float32, np.int64)
    assert (made.classes, made.class_names) == (3, ("no", "maybe", "yes"))
    assert (made.owner.tolist(), made.owner_names) == ([1, 0, 0, 1, 1, 0], ("a", "b"))
    assert made.test.tolist() == [True] + [False] * 5
    assert made.sample_bytes == 6 * 4 + 1
    assert made.remarks[0].startswith("made by ")


def test_values_may_have_a_unit(make):
    assert make('return {"x": np.ones((2, 1)), "y": [0.5, 1], "unit": "mm"}').target.rmse == "rmse_mm"


def test_it_is_told_the_clients_the_options_and_where_chance_comes_from(make, streams):
    made = make(
        """
        assert clients == 3, "two that take part, and an unseen one"
        return {"x": rng.normal(size=(clients, options["width"])), "y": np.arange(clients)}
        """,
        width=4,
    )
    assert np.array_equal(made.x, streams(1)("data/source").normal(size=(3, 4)).astype(np.float32))


def test_floating_point_targets_are_values(make):
    made = make('return {"x": np.zeros((3, 2), np.uint8), "y": [0.5, 1.5, 2.5], "sample_bytes": 7}')
    assert (made.classes, made.y.dtype, made.x.dtype, made.sample_bytes) == (None, np.float32, np.uint8, 7.0)


def test_a_raw_dataset_is_taken_as_it_is(make):
    made = make(
        """
        from fedsim.data.encoding import OneHot
        x, y = np.ones((2, 5), np.uint8), np.array([0, 1])
        return RawDataset(x, y, classes=2, sample_bytes=6.0, encoding=OneHot(3))
        """
    )
    assert made.encoding == OneHot(3)
    assert isinstance(made, RawDataset)


def test_an_encoding_of_ones_own_is_refused_because_the_datas_address_would_not_know_it(make):
    with pytest.raises(UserError, match=r"encoding is of type Own, and must be one of fedsim\.data\.encoding \(Affine"):
        make(
            """
            from fedsim.data.encoding import Affine
            class Own(Affine):
                def decode(self, stored):
                    return 2 * super().decode(stored)
            x, y = np.ones((2, 5), np.uint8), np.array([0, 1])
            return RawDataset(x, y, classes=2, sample_bytes=6.0, encoding=Own())
            """
        )


def test_owners_may_be_the_clients_in_any_order_of_samples(make):
    made = make(
        """
        x, y, owner = np.ones((4, 5), np.uint8), np.zeros(4, np.int64), np.array([2, 0, 1, 0])
        return RawDataset(x=x, y=y, classes=1, sample_bytes=6.0, owner=owner, owners_are_clients=True)
        """
    )
    assert made.owners_are_clients


def test_it_becomes_a_federated_data_set(written, streams):
    path = written('return {"x": np.ones((20, 3)), "y": np.arange(20) % 2, "client": np.arange(20) // 5}')
    settings = UserCode.model_validate({"path": path, "partition": {"name": "natural"}})
    assert settings.load(Clients(4), streams(1)).client_samples.tolist() == [4] * 4


@pytest.mark.parametrize(
    ("drawn", "name"),
    [("np.random.random((4, 1))", r"numpy\.random"), ("[[__import__('random').random()]] * 4", "the module random")],
)
def test_chance_from_elsewhere_is_refused(make, drawn, name):
    with pytest.raises(UserError, match=f"draws from the generator of {name}, so no run could be repeated; draw from"):
        make(f'return {{"x": {drawn}, "y": [0, 1, 0, 1]}}')


def test_the_function_on_the_page_makes_a_data_set(tmp_path, streams):
    [source] = re.findall(r"```python\n(.*?)```", (PAGES / "python.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_data.py").write_text(source)
    settings = UserCode(path=f"{tmp_path / 'my_data.py'}:bearings", options={"classes": 3, "spread": 0.5})
    data = settings.load(Clients(4), streams(1))
    assert (data.x.shape, data.classes) == ((200, 16), 3)


def test_a_function_of_an_installed_package_is_called(streams):
    with pytest.raises(UserError, match=r"fedsim\.data\.encoding:Ids was called for 2 clients and failed"):
        UserCode(path="fedsim.data.encoding:Ids", options={"a": 1}).raw(Clients(2), streams(1))


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("None", "returned NoneType, and must return a mapping with x and y, or a RawDataset"),
        ('{"x": np.ones((2, 1))}', "returned a mapping without 'y'"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "clas": 2}', "with 'clas', which is not known; did you mean 'class"),
        ('{"x": np.ones(2), "y": [0, 1]}', r"x is float32 of shape \(2,\), and must be"),
        ('{"x": [[1.0], [1.0, 2.0]], "y": [0, 1]}', r"x becomes no array \(.*\); are its rows"),
        ('{"x": np.array([[{}]]), "y": [0]}', "x is no array of numbers"),
        ('{"x": np.array([[1.0], [1e300]]), "y": [0, 1]}', r"x\[1, 0\]=inf must be a finite number \(of 32 bits\)"),
        ('{"x": np.ones((2, 1)), "y": [0, 1, 2]}', r"y is int64 of shape \(3,\), and must be int64 of shape \(2,\)"),
        ('{"x": np.ones((2, 1)), "y": ["a", "b"]}', "y is <U1, and must be whole numbers"),
        ('{"x": np.ones((2, 1)), "y": [0.5, np.nan]}', r"y\[1\]=nan must be a finite number"),
        ('{"x": np.ones((2, 1)), "y": [0, -1]}', r"y\[1\]=-1 must be a label from 0 to 0"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "classes": "2"}', "classes='2' must be a whole number"),
        ('{"x": np.ones((2, 1)), "y": [0.5, 1], "classes": 2}', "classes=2, but y holds floating-point numbers"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "unit": "mm"}', "unit='mm' is of numbers to predict, and here are class"),
        ('{"x": np.ones((2, 1)), "y": [0.5, 1], "unit": "Grad C"}', "unit='Grad C' must be a word of at most 20"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "class_names": "ab"}', "class_names must be a list of words"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "client": [0]}', r"client is int64 of shape \(1,\), and must be int64"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "client": [0.5, 1]}', "client is float64, and must be whole numbers or"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "test": [0, 1]}', "test is int64 .* must be bool"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "test": [True, True]}', "test sets all samples aside"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "sample_bytes": 0}', r"sample_bytes=0\.0 must be a number above 0"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "classes": 0}', "classes=0 must be from 1 to 1000000"),
        ('{"x": np.ones((2, 1)), "y": [0, 1], "sample_bytes": "1"}', "sample_bytes='1' must be a number"),
        ("RawDataset(x=None, y=None, classes=None, sample_bytes=1.0)", "x is of type NoneType"),
        (
            "RawDataset(x=np.ones((2, 1)), y=np.array([0, 1]), classes=2, sample_bytes=1.0)",
            r"x is float64 of shape \(2, 1\), and must be",
        ),
        (
            "RawDataset(np.ones((2, 1), np.uint8), np.array([0, 1]), 2, 1.0, series=np.zeros(3, np.int64))",
            r"series is int64 of shape \(3,\), and must be int64 of shape \(2,\), one per sample",
        ),
        (
            "RawDataset(np.ones((2, 1), np.uint8), np.array([0, 1]), 2, 1.0, owner=np.array([0, -1]))",
            "client=-1 must be at least 0",
        ),
    ],
)
def test_a_result_that_is_no_data_set_is_refused(make, result, message):
    with pytest.raises(UserError, match=message):
        make(f"return {result}")


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ('{"x": np.ones((9, 1)), "y": np.arange(9) % 2, "classes": 2, "class_names": ["a"]}', "1 names for 2 classes"),
        ('{"x": np.ones((9, 1)), "y": np.arange(9.0), "class_names": ["a"]}', "there are 1 names for no classes"),
        ("RawDataset(np.ones((9, 1), np.uint8), np.arange(9) % 2, 2, 1.0, sound_class=2)", "sound_class=2 is none"),
    ],
)
def test_a_result_whose_parts_do_not_fit_is_refused(written, streams, result, message):
    with pytest.raises(UserError, match=rf"my_data\.py:make: data set 'python': .*{message}"):
        UserCode(path=written(f"return {result}")).load(Clients(2), streams(1))


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('return {}["age"]', r"my_data\.py:6: KeyError: 'age'; .*my_data\.py:make was called for 3 clients and failed"),
        ("np.ones((2, 3)) @ np.ones(2)", r"my_data\.py:6: ValueError: matmul"),
        ("import sys\nsys.exit(3)", r"my_data\.py:7: SystemExit: 3"),
        ("raise RuntimeError('a\\nb' * 500)", r"my_data\.py:6: RuntimeError: a ba ba .*\.\.\.; "),
    ],
)
def test_the_users_own_line_is_shown_when_the_function_fails(make, body, message):
    with pytest.raises(UserError, match=message) as caught:
        make(body)
    assert "\n" not in str(caught.value)


def test_options_that_the_function_does_not_know_are_refused(written, streams):
    path = written("return None", signature="clients, rng")
    with pytest.raises(UserError, match=r"my_data\.py: TypeError: make\(\) got an unexpected keyword argument 'width'"):
        UserCode(path=path, options={"width": 3}).raw(Clients(2), streams(1))


@pytest.mark.parametrize("options", [{"path": "my_data.py"}, {"path": "a.py:b", "options": {1: 2}}, {}])
def test_a_key_outside_its_range_is_refused(options):
    with pytest.raises(ValidationError):
        UserCode.model_validate(options)
