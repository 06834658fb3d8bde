"""``fedsim retime``: what is printed, what is written, and what a mistake leaves behind."""

from __future__ import annotations

import json
import shlex
import shutil
from pathlib import Path

import pytest
from refusals import Refusals
from scenario_texts import THREE_DEVICES, write_scenario

import fedsim
from fedsim.cli import main
from fedsim.experiment import retime

Capture = pytest.CaptureFixture[str]
SLOWER = ["--set", "network.cell.radio.uplink_bps=1e4"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    path = write_scenario(folder, THREE_DEVICES.replace("three-devices", "plant"))
    assert main(["run", str(path), "--out", str(folder / "my plant"), "--quiet"]) == 0
    return folder / "my plant"


@pytest.fixture
def plant(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run in the folder where the test is."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(trained, "my plant")
    return "my plant"


def test_tables_are_on_standard_output_and_all_else_is_not(plant: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["retime", plant, *SLOWER]) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert (len(lines), lines[2].startswith("| fedavg       |")) == (4, True)
    assert "Nothing is trained: what was learned is read from my plant\n" in printed.err
    assert "fedavg seed 1: begins with 3 clients\n" in printed.err
    assert "prox, strong seed 1: round 2/2, simulated" in printed.err
    assert printed.err.endswith(
        "Results: runs/plant-retimed\nCompare with the run: fedsim compare 'my plant' runs/plant-retimed\n"
    )
    assert main(["compare", *shlex.split("'my plant' runs/plant-retimed")]) == 0
    times = [fedsim.load_results(folder).rounds["sim_time_s"].iloc[-1] for folder in (plant, "runs/plant-retimed")]
    assert times[1] > 8 * times[0]


def test_a_finished_one_is_printed_from_its_folder(plant: str, capsys: Capture) -> None:
    words = ["retime", plant, *SLOWER, "--out", "slow"]
    assert main([*words, "--quiet"]) == 0
    first = capsys.readouterr()
    assert (first.err, first.out.startswith("| protocol")) == ("", True)
    assert main(words) == 0
    again = capsys.readouterr()
    assert again.out == first.out
    assert again.err.startswith("Results: slow (it was there already)\n")
    assert main(["run", "slow/scenario.yaml", "--out", "slow"]) == 0
    assert capsys.readouterr().err.startswith("Results: slow (it was there already: nothing was run)\n")


def test_without_a_change_it_is_the_run_itself(plant: str) -> None:
    assert main(["retime", plant, "--quiet"]) == 0
    assert Path("runs/plant-retimed/rounds.csv").read_bytes() == Path(plant, "rounds.csv").read_bytes()


def test_an_interruption_is_one_line_and_leaves_nothing(
    plant: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    capsys.readouterr()
    monkeypatch.setattr(retime, "run_one", interrupted)
    assert main(["retime", plant, *SLOWER, "--quiet"]) == 130
    assert capsys.readouterr().err == "fedsim: interrupted; give the same command again\n"
    assert [path.name for path in Path().iterdir()] == ["my plant"]


def test_a_training_that_was_not_made_is_refused_with_the_command_that_makes_it(plant: str, refused: Refusals) -> None:
    message = (
        "my plant cannot be re-timed like this: fedavg, seed 1: round 3 was never trained there: the run ended after "
        "round 2; train it with: fedsim run 'my plant/scenario.yaml' --set stop.rounds=4 --out runs/plant-retimed"
    )
    refused.check("retime", plant, "--set", "stop.rounds=4", "--quiet", message=message)


def test_a_path_is_relative_to_the_scenario_of_the_run(plant: str, refused: Refusals) -> None:
    Path("hall.yaml").write_text("name: star\ndevices: 3\n")
    words = ["retime", plant, "--quiet", "--set"]
    message = (
        "--set topology=hall.yaml: topology: my plant/hall.yaml: there is no such file; a path is relative to the "
        "scenario: write ../hall.yaml"
    )
    refused.check(*words, "topology=hall.yaml", message=message)
    assert main([*words, "topology=../hall.yaml"]) == 0


def test_what_is_no_run_is_refused(plant: str, refused: Refusals) -> None:
    refused.check("retime", "my plnt", message="there is no run folder my plnt; did you mean 'my plant'?")
    refused.check("retime", "my plant/store", message="my plant/store is no run folder: it has no manifest.json")
    refused.check(
        "retime", plant, "--set", "network.cell.radio.uplnk_bps=1", message="--set network.cell.radio.uplnk_bps=1: ..."
    )
    refused.check(
        "retime",
        plant,
        "--out",
        plant,
        message="my plant holds the run of a different scenario (name is 'plant' there and 'plant-retimed' here); "
        "choose another folder with --out",
    )


@pytest.mark.parametrize("place", ["my plant/slow", "my plant/store", "my plant/store/slow", "runs/../my plant/a/b"])
def test_nothing_goes_into_the_run_itself(place: str, plant: str, refused: Refusals) -> None:
    message = f"{place} is inside the run my plant, or its store; choose another folder with --out"
    refused.check("retime", plant, *SLOWER, "--out", place, message=message)


def test_nothing_goes_into_a_store_that_lies_elsewhere(plant: str, refused: Refusals) -> None:
    shutil.move("my plant/store", "values")
    manifest = Path(plant, "manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "store": "../values"}))
    for place in ("values", "values/slow"):
        message = f"{place} is inside the run my plant, or its store; choose another folder with --out"
        refused.check("retime", plant, *SLOWER, "--out", place, message=message)
