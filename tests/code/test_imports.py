"""A user's own code: where it is looked for, and one sentence for whatever is wrong with it."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from types import SimpleNamespace

import pytest
from pydantic import TypeAdapter, ValidationError

from fedsim.errors import UserError
from fedsim.imports import ImportPath, load_function

WHAT = "a function that counts"
SOURCE = """from dataclasses import dataclass

@dataclass
class Point:
    x: 'int' = 3

def count(): return 7

age = 5
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(SOURCE)
    return path


def load(path):
    return load_function(str(path), what=WHAT)


def test_a_function_of_a_file_is_found_with_the_digest_of_its_source(file):
    function, sha256 = load(f"{file}:count")
    assert function() == 7
    assert sha256 == hashlib.sha256(SOURCE.encode()).hexdigest()
    assert load(f"{file}:Point")[0]().x == 3


def test_a_file_is_run_once_for_each_content(file):
    first = load(f"{file}:count")[0]
    assert load(f"{file}:count")[0] is first
    file.write_text(SOURCE.replace("7", "8"))  # as long, within the same second
    assert load(f"{file}:count")[0]() == 8


def test_nothing_is_written_beside_the_file(file):
    load(f"{file}:count")
    assert [found.name for found in file.parent.iterdir()] == ["mine.py"]


def test_a_function_of_a_package_is_found(tmp_path, monkeypatch):
    (tmp_path / "parcel").mkdir()
    (tmp_path / "parcel" / "__init__.py").write_text("")
    (tmp_path / "parcel" / "inner.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    function, sha256 = load("parcel.inner:count")
    assert (function(), sha256) == (7, hashlib.sha256(SOURCE.encode()).hexdigest())


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def count(:\n", r"mine\.py:1: SyntaxError: .*; a function that counts could not be imported"),
        ("a = 1\n\n1 / 0\n", r"mine\.py:3: ZeroDivisionError: division by zero; a function"),
        ("import json\njson.loads('{')\n", r"mine\.py:2: JSONDecodeError: Expecting property name"),
        ("import no_such_module_at_all\n", r"mine\.py:1: ModuleNotFoundError: .*; files beside it are not found"),
        ("raise SystemExit\n", r"mine\.py:1: SystemExit; a function"),
        ("a = '\0'\n", r"mine\.py.*null bytes"),
    ],
)
def test_code_that_fails_is_refused_with_its_reason_and_line(file, source, message):
    file.write_text(source)
    before = set(sys.modules)
    with pytest.raises(UserError, match=message) as caught:
        load(f"{file}:count")
    assert "\n" not in str(caught.value)
    assert not {name for name in set(sys.modules) - before if name.startswith("fedsim_user")}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("cuont", r"there is no 'cuont'; did you mean 'count'\?; a function that counts is needed"),
        ("age", "'age' is of type int and cannot be called"),
    ],
)
def test_a_name_that_is_no_function_is_refused(file, name, message):
    with pytest.raises(UserError, match=message):
        load(f"{file}:{name}")


@pytest.mark.parametrize("path", ["mine.py", "mine.py:", ":count", ".py:count", "a-b:count", "mine.py:two words", ""])
def test_what_is_no_file_and_name_is_refused(path):
    with pytest.raises(UserError, match="must be a file and a name, as in my_code.py:name, or package.module:name"):
        load(path)


def test_files_and_modules_that_are_not_there_are_refused(file):
    with pytest.raises(UserError, match=r"there is no such file; did you mean 'mine\.py'\?"):
        load(f"{file.with_name('mime.py')}:count")
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        load(f"{file}:count")
    with pytest.raises(UserError, match=r"no module is called 'no_such'.* or name a file: no_such/thing\.py:name"):
        load("no_such.thing:count")
    with pytest.raises(UserError, match="the module 'sys' stands in no file"):
        load("sys:exit")


def test_a_path_is_relative_to_the_scenario(file):
    adapter = TypeAdapter(ImportPath)
    document = SimpleNamespace(source=str(file.parent / "scenario.yaml"))
    assert adapter.validate_python("mine.py:count", context=document) == f"{file}:count"
    assert (
        adapter.validate_python("../a/mine.py:count", context=document)
        == f"{file.parent.parent / 'a' / 'mine.py'}:count"
    )
    assert adapter.validate_python(f"{file}:count") == f"{file}:count"
    assert adapter.validate_python("package.module:name", context=document) == "package.module:name"
    with pytest.raises(ValidationError, match="must be a file and a name"):
        adapter.validate_python("mine.py")


def test_importing_this_loads_no_heavy_library():
    program = "import sys, fedsim.imports; print([name for name in ('torch', 'numpy', 'scipy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_a_package_takes_from_another_file_is_digested_with_it(tmp_path, monkeypatch):
    """``package:Net``, re-exported from ``package/nets.py``: a change there is a change."""
    package = tmp_path / "crate"
    package.mkdir()
    (package / "__init__.py").write_text("from crate.nets import Net\n")
    (package / "nets.py").write_text("class Net:\n    size = 3\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    before = load("crate:Net")[1]
    (package / "nets.py").write_text("class Net:\n    size = 4\n")
    after = load("crate:Net")[1]
    assert before != after
    assert load("crate.nets:Net")[1] == hashlib.sha256((package / "nets.py").read_bytes()).hexdigest()
