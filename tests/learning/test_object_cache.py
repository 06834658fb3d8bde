"""What was compiled is kept for the next process: only for the same code, only where nobody else can write."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from llvmlite import ir

from fedsim.data.cache import VARIABLE
from fedsim.learning.kernels import object_cache, program
from fedsim.learning.kernels.machine_code import host_machine
from fedsim.learning.kernels.object_cache import OFF, kept
from fedsim.learning.kernels.products import emit_times, emit_times_transposed
from fedsim.learning.kernels.program import Part, Program
from fedsim.learning.kernels.shapes import MatrixShape

KEY, OTHER_KEY = "a" * 64, "b" * 64
SHAPE = MatrixShape(inputs=16, outputs=32)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache that is empty."""
    monkeypatch.setenv(VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache" / "machine_code"


def made_for(key: str, content: bytes = b"made") -> bool:
    """Whether what is kept for *key* has to be made; it is *content* in either case."""
    calls: list[int] = []

    def make() -> bytes:
        calls.append(1)
        return content

    assert kept(key, make) == content
    return bool(calls)


def test_what_was_made_is_kept_for_its_key_alone(home: Path) -> None:
    assert made_for(KEY)
    assert not made_for(KEY)
    assert made_for(OTHER_KEY, b"other")
    assert {path.name for path in home.iterdir()} == {f"{KEY}.code", f"{OTHER_KEY}.code"}


def test_folder_and_entries_are_the_users_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        made_for(KEY)
    finally:
        os.umask(before)
    assert home.stat().st_mode & 0o777 == 0o700
    assert (home / f"{KEY}.code").stat().st_mode & 0o777 == 0o600


# -- what is not executed ---------------------------------------------------------------------------------------------


def flip_a_bit(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def empty(path: Path) -> None:
    path.write_bytes(b"")


def name_as_another(path: Path) -> None:
    made_for(OTHER_KEY, b"other")
    (path.parent / f"{OTHER_KEY}.code").replace(path)


def make_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def let_others_write(path: Path) -> None:
    path.chmod(0o620)


def lead_elsewhere(path: Path) -> None:
    path.symlink_to(path.rename(path.parent.parent / "elsewhere"))


def make_it_huge(path: Path) -> None:
    os.truncate(path, object_cache.LARGEST_ENTRY + 1)


@pytest.mark.parametrize(
    "harm",
    [flip_a_bit, cut, empty, name_as_another, make_a_pipe, let_others_write, lead_elsewhere, make_it_huge],
)
def test_an_entry_that_is_not_what_was_written_is_made_anew(home: Path, harm: Callable[[Path], None]) -> None:
    made_for(KEY)
    harm(home / f"{KEY}.code")
    assert made_for(KEY)
    assert not made_for(KEY), "it has been mended"


def test_a_folder_into_which_others_can_write_is_not_used(home: Path) -> None:
    made_for(KEY)
    for mode in (0o720, 0o702):
        home.chmod(mode)
        assert made_for(KEY)
        assert made_for(OTHER_KEY)
        assert len(list(home.iterdir())) == 1


def test_a_folder_of_somebody_else_is_not_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_for(KEY)
    monkeypatch.setattr(os, "geteuid", lambda: home.stat().st_uid + 1)
    assert made_for(KEY)
    assert made_for(OTHER_KEY)
    assert len(list(home.iterdir())) == 1


def test_a_link_is_no_folder(home: Path) -> None:
    (home.parent.parent / "elsewhere").mkdir()
    home.parent.mkdir()
    home.symlink_to(home.parent.parent / "elsewhere")
    assert made_for(KEY)
    assert made_for(KEY)
    assert not list(home.iterdir())


# -- where none is kept -----------------------------------------------------------------------------------------------


def test_without_a_home_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where the system knows one of this user, as in a service."""
    for name in (VARIABLE, "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    assert made_for(KEY)
    assert made_for(KEY)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv("HOME", str(tmp_path))
    assert made_for(KEY)
    assert not made_for(KEY)
    assert (tmp_path / ".cache" / "fedsim" / "machine_code" / f"{KEY}.code").exists()


def test_it_can_be_switched_off(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_for(KEY)
    monkeypatch.setenv(OFF, "1")
    assert made_for(KEY)
    assert made_for(OTHER_KEY)
    assert len(list(home.iterdir())) == 1


def test_where_nothing_can_be_written_it_is_made_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    for folder in (tmp_path / "file", tmp_path / "file" / "below", Path("/proc/fedsim")):
        monkeypatch.setenv(VARIABLE, str(folder))
        assert made_for(KEY)
        assert made_for(KEY)


def test_no_code_is_taken_from_where_somebody_happens_to_be(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that came from somebody else could have a cache in it."""
    made_for(KEY)
    monkeypatch.chdir(home.parent.parent)
    monkeypatch.setenv(VARIABLE, "cache")
    assert made_for(KEY)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", ".")
    assert made_for(KEY)


def test_what_can_only_be_read_is_used(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object, **__: object) -> None:
        raise OSError("Read-only file system")

    made_for(KEY)
    monkeypatch.setattr(os, "utime", read_only)
    assert not made_for(KEY)


def test_on_a_full_disk_it_is_made_each_time(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert made_for(KEY)
    assert made_for(KEY)
    assert not list(home.iterdir()), "what was begun is removed"


# -- how much is kept -------------------------------------------------------------------------------------------------


@pytest.fixture
def small(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a cache of 1000 bytes."""
    monkeypatch.setattr(object_cache, "MOST_BYTES", 1000)
    return home


def key_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def test_what_was_used_longest_ago_makes_room(small: Path) -> None:
    for number in range(4):
        made_for(key_of(number), bytes(150))
        os.utime(small / f"{key_of(number)}.code", (number, number))
    assert not made_for(key_of(0), bytes(150)), "from now on it is the last one that was used"
    made_for(key_of(4), bytes(150))
    there = {path.name for path in small.iterdir()}
    assert there == {f"{key_of(number)}.code" for number in (0, 4)}


def test_nothing_is_removed_that_is_not_ours(small: Path) -> None:
    made_for(key_of(0), bytes(150))
    notes, disguised = small / "notes.txt", small / f"{key_of(1)}.code"
    for foreign in (notes, disguised):
        foreign.write_bytes(bytes(2000))
        os.utime(foreign, (0, 0))
    (small / f"{key_of(2)}.code").symlink_to(notes)
    made_for(key_of(3), bytes(150))
    assert notes.exists() and disguised.exists()
    assert (small / f"{key_of(2)}.code").is_symlink()
    assert not made_for(key_of(3), bytes(150))


def test_what_is_larger_than_an_entry_may_be_is_not_kept(home: Path) -> None:
    assert made_for(KEY, bytes(object_cache.LARGEST_ENTRY))
    assert made_for(KEY, bytes(object_cache.LARGEST_ENTRY))


def test_several_may_write_one_entry_at_once(home: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: kept(KEY, lambda: b"made"), range(100))) == {b"made"}
    assert [path.name for path in home.iterdir()] == [f"{KEY}.code"]


# -- programs ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def emitted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[ir.Module]]:
    """The modules that were compiled."""
    seen: list[ir.Module] = []
    compiled = program._object_code

    def watched(module: ir.Module) -> bytes:
        seen.append(module)
        return compiled(module)

    monkeypatch.setattr(program, "_object_code", watched)
    yield seen


def parts(shape: MatrixShape = SHAPE) -> tuple[Part, ...]:
    machine = host_machine(torch.float32)
    return Part(emit_times_transposed, shape, machine), Part(emit_times, shape, machine)


def products_of(made: Program) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    h, weights = torch.randn(3, 16, generator=generator), torch.randn(32, 16, generator=generator)
    y = torch.zeros(3, 32)
    made.kernel("times_transposed")(3, h.data_ptr(), weights.data_ptr(), y.data_ptr())
    assert torch.allclose(y, h @ weights.T, atol=1e-4)
    return y


@pytest.mark.usefixtures("home")
def test_a_program_is_written_and_compiled_once(emitted: list[ir.Module]) -> None:
    """And the machine code that was kept is the same, to the bit."""
    first, second = Program(*parts()), Program(*parts())
    assert len(emitted) == 1
    assert first._object == second._object
    assert torch.equal(products_of(first), products_of(second))
    Program(*parts(MatrixShape(inputs=16, outputs=16)))
    assert len(emitted) == 2


@pytest.mark.usefixtures("home")
def test_a_module_is_told_by_its_text(emitted: list[ir.Module]) -> None:
    for outputs in (32, 32, 16):
        module = ir.Module()
        emit_times(module, MatrixShape(inputs=16, outputs=outputs), host_machine(torch.float32))
        Program(module).kernel("times")
    assert len(emitted) == 2


def test_without_a_cache_it_is_the_same_code(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OFF, "1")
    alone = Program(*parts())
    monkeypatch.delenv(OFF)
    Program(*parts())
    assert Program(*parts())._object == alone._object
    assert torch.equal(products_of(Program(*parts())), products_of(alone))


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("what", ["get_host_cpu_name", "get_default_triple", "get_host_cpu_features", "sources"])
def test_another_processor_or_other_sources_have_code_of_their_own(
    what: str, emitted: list[ir.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = program._key("same")
    if what == "sources":
        monkeypatch.setattr(program, "_origin", lambda: "other")
    elif what == "get_host_cpu_features":
        features = program.llvm.get_host_cpu_features()
        features["fedsim"] = True
        monkeypatch.setattr(program.llvm, what, lambda: features)
    else:
        monkeypatch.setattr(program.llvm, what, lambda: "other")
    assert program._key("same") != before


def test_every_source_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "inside").mkdir()
    source = tmp_path / "inside" / "emitter.py"
    origin = program._origin.__wrapped__
    monkeypatch.setattr(program, "SOURCES", tmp_path)
    found = [origin()]
    for text in ("a = 1", "a = 2"):
        source.write_text(text, encoding="utf-8")
        found.append(origin())
    assert len(set(found)) == 3
    assert Path(program.__file__).parent.name == program.PACKAGE.rpartition(".")[2]


def test_without_sources_nothing_is_kept(home: Path, emitted: list[ir.Module], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "__file__", "/archive.zip/program.py")
    monkeypatch.setattr(program, "_origin", program._origin.__wrapped__)
    products_of(Program(*parts()))
    products_of(Program(*parts()))
    assert len(emitted) == 2 and not home.exists()


def test_what_is_imported_says_which_sources_were() -> None:
    """So what is written into them while a run goes on makes no entry under the new sources' name."""
    code = "from fedsim.learning.kernels import program\nprint(program._origin.cache_info().currsize)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "1\n"


# -- what tells a part from another -----------------------------------------------------------------------------------


class Pair(NamedTuple):
    a: int
    b: int


@dataclass(frozen=True)
class Two:
    a: int
    b: int


def test_parts_differ_with_all_that_is_given() -> None:
    alike: tuple[object, ...] = (1, "1", 1.0, True, None, (1, 2), Pair(1, 2), Two(1, 2), Two(2, 1))
    given: list[Part] = [
        *(Part(emit_times, thing) for thing in alike),
        Part(emit_times, 1, 2),
        Part(emit_times, 1, 2, 3),
        Part(emit_times, (1, 2), 3),
        Part(emit_times, (1, (2, 3))),
        Part(emit_times, a=1),
        Part(emit_times, b=1),
        Part(emit_times_transposed, 1, 1),
    ]
    assert len({part.identity for part in given}) == len(given)
    assert Part(emit_times, a=1, b=2).identity == Part(emit_times, b=2, a=1).identity


def test_what_cannot_be_told_is_refused() -> None:
    for thing in ([1], {1: 2}, torch.zeros(1), lambda: 1, Two):
        with pytest.raises(TypeError, match="is no plain value"):
            _ = Part(emit_times, thing).identity
    for emitter in (lambda module: None, pytest.raises, Two):
        with pytest.raises(TypeError, match="nobody could tell when it has changed"):
            _ = Part(emitter).identity


def test_emitters_compute_with_nothing_from_elsewhere() -> None:
    """Whose change the sources' digest would not see; what describes layers comes in as an argument."""
    folder = program.SOURCES
    known = f"{program.PACKAGE}.", "fedsim.models.layers"
    for file in folder.rglob("*.py"):
        text = file.read_text("utf-8")
        if "def emit_" in text:
            lines = [line.split()[1] for line in text.splitlines() if line.startswith(("from fedsim", "import fedsim"))]
            assert all(module.startswith(known) for module in lines), file
