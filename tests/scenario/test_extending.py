"""``extends``: a scenario with some keys of its own, and all others from a file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from small_worlds import BASE

from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.scenario.load import load, written_out


def write(folder: Path, name: str, content: dict[str, Any]) -> Path:
    path = folder / name
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return write(tmp_path, "base.yaml", BASE)


def refused(path: Path) -> str:
    with pytest.raises(UserError) as refusal:
        load(path)
    return str(refusal.value)


def test_keys_of_its_own_are_laid_over_the_others(base: Path) -> None:
    path = write(base.parent, "other.yaml", {"extends": "base.yaml", "name": "other", "training": {"batch_size": 7}})
    found, below = load(path), load(base)
    assert (found.name, found.training.batch_size) == ("other", 7)
    assert found.training.learning_rate == below.training.learning_rate
    assert found.model_copy(update={"name": below.name, "training": below.training}) == below


def test_lists_are_replaced_and_not_joined(base: Path) -> None:
    path = write(base.parent, "other.yaml", {"extends": "base.yaml", "protocols": [{"name": "fedavg", "clients": 1}]})
    assert [protocol.name for protocol in load(path).protocols] == ["fedavg"]
    assert load(path).protocols[0].clients == 1  # type: ignore[attr-defined]


def test_another_thing_begins_anew(base: Path) -> None:
    """Declared data have keys that digits do not know."""
    own = {"extends": "base.yaml", "data": {"name": "digits"}, "model": {"parameters": 500}}
    found = load(write(base.parent, "other.yaml", own))
    assert found.data.name == "digits"
    assert found.model.parameters == 500  # type: ignore[attr-defined]


def test_files_may_stand_behind_each_other(base: Path) -> None:
    write(base.parent, "middle.yaml", {"extends": "base.yaml", "name": "middle", "training": {"batch_size": 7}})
    found = load(write(base.parent, "top.yaml", {"extends": "middle.yaml", "training": {"epochs": 3}}))
    assert (found.name, found.training.batch_size, found.training.epochs) == ("middle", 7, 3)


def test_what_is_written_out_stands_alone(base: Path, tmp_path: Path) -> None:
    found = load(write(base.parent, "other.yaml", {"extends": "base.yaml", "seeds": [4]}))
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "scenario.yaml").write_text(written_out(found))
    assert load(alone / "scenario.yaml") == found


def test_a_fault_is_told_with_the_file_that_it_stands_in(base: Path) -> None:
    write(base.parent, "middle.yaml", {"extends": "base.yaml", "training": {"batch_size": 0, "epochs": 1}})
    own = write(base.parent, "top.yaml", {"extends": "middle.yaml", "training": {"epochs": 2}})
    assert refused(own) == f"{base.parent}/middle.yaml:3: training.batch_size: 0 must be at least 1"
    own.write_text("extends: base.yaml\ntraining: {batch_size: 0}\n")
    assert refused(own) == f"{own}:2: training.batch_size: 0 must be at least 1"
    base.write_text(base.read_text().replace("batch_size: 5", "batch_size: -5"))
    own.write_text("extends: base.yaml\nseeds: [2]\n")
    line = base.read_text().splitlines().index("  batch_size: -5") + 1
    assert refused(own) == f"{base}:{line}: training.batch_size: -5 must be at least 1"


def test_an_override_comes_last(base: Path) -> None:
    path = write(base.parent, "other.yaml", {"extends": "base.yaml", "training": {"batch_size": 7}})
    assert load(path, overrides=["training.batch_size=9"]).training.batch_size == 9


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("bsae.yaml", "extends: 'bsae.yaml' is no file beside it; did you mean 'base.yaml'?"),
        ("../base.yaml", "extends: '../base.yaml' must be the name of a file in the same folder, without a way to it"),
        ("", "extends: '' must be the name of a file in the same folder, without a way to it"),
        (["base.yaml"], "extends: a list (['base.yaml']) is no file name"),
        ("own.yaml", "extends: 'own.yaml' is the scenario itself, or extends it"),
        ("round.yaml", "extends: 'own.yaml' is the scenario itself, or extends it"),
    ],
)
def test_what_cannot_be_extended_is_refused(base: Path, name: Any, problem: str) -> None:
    write(base.parent, "round.yaml", {"extends": "own.yaml"})
    own = write(base.parent, "own.yaml", {"extends": name})
    where = base.parent / "round.yaml" if name == "round.yaml" else own
    assert refused(own) == f"{where}:1: {problem}"


def test_a_name_that_no_file_can_have_is_no_file(base: Path) -> None:
    for name in ("x" * 300, ".."):
        assert "beside it" in refused(write(base.parent, "own.yaml", {"extends": name}))


def test_the_command_line_says_so_in_one_line(base: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = write(base.parent, "own.yaml", {"extends": "own.yaml"})
    assert main(["validate", str(own)]) == 2
    assert capsys.readouterr().err == f"fedsim: {own}:1: extends: 'own.yaml' is the scenario itself, or extends it\n"
