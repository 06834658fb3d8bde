"""`fedsim new` writes a scenario that is valid, with each choice that its comments offer; it overwrites nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedsim.cli import main
from fedsim.cli.new import starter
from fedsim.experiment.validate import validate
from fedsim.radio.fixed import profiles
from fedsim.scenario.load import load

CHOICE = re.compile(r"^(?P<indent> *)#: (?P<line>(?P<key>- |\w+:).*)$")
CHOICES = [line for line in starter("plant.yaml", "plant").splitlines() if CHOICE.match(line)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("given", "file", "name"),
    [
        ("plant", "plant.yaml", "plant"),
        ("hall-1.yml", "hall-1.yml", "hall-1"),
        ("in/v.2.YAML", "in/v.2.YAML", "v.2"),
        ("runs/plantation/x", "runs/plantation/x.yaml", "x"),
        *((name, f"{name}.yaml", name) for name in ("123", "1e6", "0x1f", "null", "true", "1.2.3", "1e999")),
    ],
)
def test_the_file_has_the_name_and_the_scenario_too(
    given: str, file: str, name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / file).parent.mkdir(parents=True, exist_ok=True)
    assert main(["new", given]) == 0
    assert capsys.readouterr().out == f"{file}\nLook at it, then: fedsim run {file}\n"
    assert load(folder / file).name == name
    text = (folder / file).read_text()
    assert f"fedsim run {file} " in text and f"fedsim plot runs/{name} " in text
    assert main(["validate", file]) == 0


def test_it_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "plant"]) == 0
    assert main(["run", "plant.yaml", "--seeds", "1", "--set", "stop.rounds=2"]) == 0
    assert main(["describe", "plant.yaml"]) == 0
    said = capsys.readouterr()
    assert "Remark" not in said.out + said.err


def test_what_a_comment_says_of_the_radio_is_so() -> None:
    text = starter("plant.yaml", "plant")
    told = re.findall(r"profile: (\w+)\} +# ([\d.]+) kbit/s up, ([\d.]+) kbit/s down", text)
    assert len(told) == 2
    for profile, up, down in told:
        rates = profiles()[profile]
        assert (rates.uplink_bps, rates.downlink_bps) == (1e3 * float(up), 1e3 * float(down))


@pytest.mark.parametrize("choice", CHOICES)
def test_every_other_choice_is_valid_in_the_place_of_the_line_above(choice: str, folder: Path) -> None:
    match = CHOICE.match(choice)
    assert match is not None
    indent, key = match["indent"], match["key"]
    lines = starter("plant.yaml", "plant").splitlines()
    at = lines.index(choice)
    lines[at] = indent + match["line"]
    first = next((n for n in range(at) if lines[n].startswith(indent + key)), None)
    if key != "- " and first is not None:  # with all that belongs to it
        last = next(n for n in range(first + 1, at + 1) if n == at or not lines[n].startswith(f"{indent} "))
        del lines[first:last]
    (folder / "starter.yaml").write_text(starter("plant.yaml", "plant"))
    (folder / "plant.yaml").write_text("\n".join(lines))
    scenario = load(folder / "plant.yaml")
    assert scenario != load(folder / "starter.yaml")
    validate(scenario, every_seed=False)


def test_there_are_choices_and_no_line_is_long() -> None:
    assert len(CHOICES) >= 10
    assert max(map(len, starter("plant.yaml", "plant").splitlines())) <= 120


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("there", "there.yaml is there already, and stays as it is; choose another name"),
        ("dangling", "dangling.yaml is there already, and stays as it is; choose another name"),
        ("folder", "folder.yaml is there already, and stays as it is; choose another name"),
        ("no/plant", "there is no folder no to put plant.yaml into; make it first"),
        ("hall 1", "the name 'hall 1' must be letters (A to Z), digits, dots, dashes and underscores"),
        ("", "the name '' must be letters"),
        ("..", "the name '..' must be letters"),
        (".yaml", "the name '' must be letters"),
        ("a\nb", r"the name 'a\nb' must be letters"),
        ("x" * 81, "at most 80"),
    ],
)
def test_a_name_that_cannot_be_is_one_message_and_no_file(
    given: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "there.yaml").write_text("mine")
    (folder / "dangling.yaml").symlink_to(folder / "nowhere")
    (folder / "folder.yaml").mkdir()
    before = sorted(folder.rglob("*"))
    assert main(["new", given]) == 2
    error = capsys.readouterr().err
    assert error.startswith("fedsim: ") and error.count("\n") == 1 and said in error
    assert sorted(folder.rglob("*")) == before
    assert (folder / "there.yaml").read_text() == "mine"
