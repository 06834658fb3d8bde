"""``fedsim run`` and ``fedsim validate``, from a scenario's file to what is printed."""

from __future__ import annotations

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from scenario_texts import THREE_DEVICES, write_scenario

import fedsim
from fedsim.cli import main
from fedsim.experiment.run_folder import RunFolder

Capture = pytest.CaptureFixture[str]


def run(folder: Path, *words: str, more: str = "") -> int:
    return main(["run", str(write_scenario(folder, more=more)), "--out", str(folder / "out"), *words])


def test_tables_are_on_standard_output_and_all_else_is_not(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path) == 0
    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("| protocol     | accuracy |")
    assert lines[2].startswith("| fedavg       |")
    assert lines[3].startswith("| prox, strong |")
    assert len(lines) == 4
    assert "fedavg seed 1: begins with 3 clients" in printed.err
    assert "prox, strong seed 1: round 2/2, simulated" in printed.err
    folder = shlex.quote(str(tmp_path / "out"))
    assert printed.err.endswith(f"Results: {folder}\nDraw figures: fedsim plot {folder}\n")


def test_what_trains_is_told_before_anything_begins(tmp_path: Path, capsys: Capture) -> None:
    words = ["--executor", "processes", "--workers", "1", "--precision", "float64"]
    assert run(tmp_path, "--only", "fedavg", *words) == 0
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first == "Executor: processes, 1 worker, float64 on cpu, as it was asked for"
    assert second == "fedavg seed 1: begins with 3 clients"
    facts = fedsim.load_results(tmp_path / "out").manifest["executor"]
    assert (facts["name"], facts["workers"], facts["precision"]) == ("processes", 1, "float64")


@pytest.mark.parametrize("words", [["--no-training"], ["--executor", "serial"]])
def test_quiet_leaves_only_tables(tmp_path: Path, capsys: Capture, words: list[str]) -> None:
    assert run(tmp_path, "--quiet", *words) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert printed.out.startswith("| protocol")


def test_what_is_printed_is_what_the_folder_holds(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--quiet", "--only", "fedavg") == 0
    summary = fedsim.load_results(tmp_path / "out").summary
    assert f" {summary['final_accuracy'].iloc[0]:.3f} |" in capsys.readouterr().out


def test_a_finished_run_is_printed_again_and_not_run_again(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training") == 0
    first = capsys.readouterr()
    assert run(tmp_path, "--no-training") == 0
    second = capsys.readouterr()
    assert second.out == first.out
    assert "nothing was run" in second.err
    assert "begins" not in second.err


def test_another_scenario_is_refused_in_the_same_folder(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training") == 0
    assert run(tmp_path, "--no-training", "--seeds", "2") == 2
    assert "different scenario" in capsys.readouterr().err


def test_without_out_results_are_under_the_scenarios_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", str(write_scenario(tmp_path)), "--no-training", "--quiet"]) == 0
    assert (tmp_path / "runs/three-devices/summary.csv").is_file()


@pytest.mark.parametrize(
    ("words", "ran"),
    [
        ([], ["fedavg", "prox, strong"]),
        (["--only", "fedavg"], ["fedavg"]),
        (["--only", "prox, strong"], ["prox, strong"]),
        (["--only", "fedprox"], ["prox, strong"]),
        (["--only", "fedprox,fedavg"], ["fedavg", "prox, strong"]),
        (["--only", "fedprox", "--only", "fedavg"], ["fedavg", "prox, strong"]),
    ],
)
def test_only_the_named_protocols_run_in_the_scenarios_order(tmp_path: Path, words: list[str], ran: list[str]) -> None:
    assert run(tmp_path, "--no-training", "--quiet", *words) == 0
    assert fedsim.load_results(tmp_path / "out").summary["protocol"].to_list() == ran


def test_a_title_goes_before_a_name(tmp_path: Path) -> None:
    text = THREE_DEVICES.replace("name: fedprox, clients: 2, mu: 0.1, label", "name: fedavg, clients: 3, label")
    path = write_scenario(tmp_path, text)
    assert main(["run", str(path), "--out", str(tmp_path / "out"), "--no-training", "--quiet", "--only", "fedavg"]) == 0
    assert fedsim.load_results(tmp_path / "out").summary["protocol"].to_list() == ["fedavg"]


def test_an_unknown_protocol_gets_a_hand(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--only", "fedvag") == 2
    assert capsys.readouterr().err == (
        "fedsim: --only: the scenario has no protocol 'fedvag'; did you mean 'fedavg'? "
        "(protocols: 'fedavg', 'prox, strong')\n"
    )


def test_seeds_and_settings_come_from_the_command_line(tmp_path: Path) -> None:
    words = ["--seeds", "3,1", "--set", "stop.rounds=1", "--set", "protocols.fedavg.clients=3"]
    assert run(tmp_path, "--no-training", "--quiet", "--only", "fedavg", *words) == 0
    rounds = fedsim.load_results(tmp_path / "out").rounds
    assert rounds[["seed", "round", "participants"]].to_numpy().tolist() == [[3, 1, 3], [1, 1, 3]]


def test_a_wrong_setting_is_told_with_its_place(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--set", "stop.round=1") == 2
    assert capsys.readouterr().err.startswith("fedsim: --set stop.round=1: stop.round: unknown key")


@pytest.mark.slow
def test_a_network_study_never_loads_torch(tmp_path: Path) -> None:
    words = ["run", str(write_scenario(tmp_path)), "--out", str(tmp_path / "out"), "--no-training"]
    code = f"""
import sys
from fedsim.cli import main
assert main({words!r}) == 0 and "torch" not in sys.modules
print("and described")
assert main(["describe", {words[1]!r}]) == 0 and "torch" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "accuracy" not in done.stdout.partition("and described")[0]


def test_without_training_a_target_accuracy_cannot_be_the_only_end(tmp_path: Path, capsys: Capture) -> None:
    words = ["--no-training", "--set", "stop={target_accuracy: 0.9}"]
    assert run(tmp_path, *words) == 2
    assert "cannot end at a target_accuracy" in capsys.readouterr().err


def test_a_published_table_follows_the_comparison(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training", "--quiet", more="paper_table: hfedms_table4\n") == 0
    comparison, _, costs, title, table = capsys.readouterr().out.split("\n\n")
    assert comparison.startswith("| protocol")
    assert costs.startswith("| protocol ") and "busiest down" in costs
    assert title.startswith("HFedMS Table IV: ")
    assert table.startswith("| system | quantity | unit | published |")
    assert "| FedAvg | traffic  | TiB  |     2.629 |" in table


def test_a_run_without_the_tables_systems_says_so(tmp_path: Path, capsys: Capture) -> None:
    more = "paper_table: hfedms_table4\n"
    assert run(tmp_path, "--no-training", "--quiet", "--only", "fedprox", more=more) == 0
    assert capsys.readouterr().out.endswith("\n\nNothing of this run is in it.\n")


@pytest.mark.parametrize("command", ["run", "validate"])
def test_a_wrong_published_table_is_told_before_anything_runs(tmp_path: Path, capsys: Capture, command: str) -> None:
    path = write_scenario(tmp_path, more="paper_table: hfedms_table5\n")
    assert main([command, str(path)]) == 2
    assert "'hfedms_table5'; did you mean 'hfedms_table4'?" in capsys.readouterr().err
    assert sorted(inside.name for inside in tmp_path.iterdir()) == ["scenario.yaml"]


def test_an_interrupted_run_says_how_to_go_on(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("fedsim.experiment.run.run_with", interrupted)
    path = write_scenario(tmp_path)
    words = ["run", str(path), "--only", "prox, strong"]
    assert main(words) == 130
    expected = shlex.join(["fedsim", *words, "--resume"])
    assert capsys.readouterr().err == f"fedsim: interrupted; go on with: {expected}\n"
    assert main([*words, "--resume"]) == 130
    assert capsys.readouterr().err == f"fedsim: interrupted; go on with: {expected}\n"


def test_a_bug_is_no_users_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("fedsim.experiment.run.run_with", broken)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run(tmp_path)


def test_validate_says_what_a_scenario_holds(tmp_path: Path, capsys: Capture) -> None:
    path = write_scenario(tmp_path)
    assert main(["validate", str(path)]) == 0
    assert (
        capsys.readouterr().out
        == f"{path} is fine: 3 clients, 2 protocols, 1 seed, a model of 650 parameters (2,600 bytes)\n"
    )
    assert main(["validate", str(path), "--set", f"seeds={list(range(40))}"]) == 0
    assert ", 40 seeds (the first 30 were tried; a run tries all), a model" in capsys.readouterr().out
    assert main(["validate", str(path), "--set", "seeds=[1, 2]", "--set", "topology.devices=1"]) == 2
    assert "clients" in capsys.readouterr().err  # two of one cannot be chosen
    assert sorted(inside.name for inside in tmp_path.iterdir()) == ["scenario.yaml"]


def test_what_compare_writes_is_what_it_computes(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training", "--quiet", "--seeds", "1,2") == 0
    printed_by_run = capsys.readouterr().out
    path = tmp_path / "comparison.csv"
    assert main(["compare", str(tmp_path / "out"), "--csv", str(path)]) == 0
    assert capsys.readouterr().out == printed_by_run
    written = pd.read_csv(path)
    expected = fedsim.compare([fedsim.load_results(tmp_path / "out")])
    pd.testing.assert_frame_equal(written, expected, check_dtype=False, check_exact=True)


def test_a_csv_that_cannot_be_written_is_wrong_input(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training", "--quiet") == 0
    assert main(["compare", str(tmp_path / "out"), "--csv", str(tmp_path / "no/such/folder.csv")]) == 2
    assert "--csv: cannot write" in capsys.readouterr().err


def test_a_comparison_replaces_a_comparison_and_no_other_file(tmp_path: Path, capsys: Capture) -> None:
    assert run(tmp_path, "--no-training", "--quiet") == 0
    path, inside, notes, link = (tmp_path / name for name in ("numbers.csv", "out/new.csv", "notes.csv", "link.csv"))
    command = ["compare", str(tmp_path / "out"), "--csv"]
    assert main([*command, str(path)]) == 0
    first = path.read_bytes()
    assert main([*command, str(path), "--at", "round=1"]) == 0
    assert path.read_bytes() != first
    notes.write_text("run,protocol,seed\nmine,1,2\n")
    link.symlink_to(path)
    rounds, before = tmp_path / "out/rounds.csv", path.read_bytes()
    for place, why in {
        rounds: f"it is inside the run folder {tmp_path}/out",
        inside: f"it is inside the run folder {tmp_path}/out",
        notes: "it is there, and is no comparison of fedsim",
        link: "it is a link",
    }.items():
        kept = place.read_bytes() if place.exists() else None
        capsys.readouterr()
        assert main([*command, str(place)]) == 2
        said = capsys.readouterr()
        assert f"fedsim: --csv: cannot write {place}: {why}" in said.err and said.err.count("\n") == 1
        assert said.out == "" and (place.read_bytes() if place.exists() else None) == kept
    assert path.read_bytes() == before and not list(tmp_path.glob(".*.tmp"))


def test_a_full_disk_fails_a_run_that_can_go_on(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "save_table", full_disk)
        assert run(tmp_path, "--no-training", "--quiet") == 1
    said = capsys.readouterr().err
    assert said.startswith(
        f"fedsim: the run failed (No space left on device: {tmp_path}/a.csv); go on with: fedsim run "
    )
    assert said.endswith(" --resume\n") and said.count("\n") == 1
    assert run(tmp_path, "--no-training", "--quiet") == 2
    assert run(tmp_path, "--no-training", "--quiet", "--resume") == 0


def full_disk(folder: RunFolder, name: str, table: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(folder.path.parent / "a.csv"))
