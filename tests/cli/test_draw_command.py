"""``fedsim draw``, and the networks among the figures of ``fedsim plot``."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from scenario_texts import THREE_DEVICES, write_scenario

from fedsim.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("drawn")
    words = ["run", str(write_scenario(folder)), "--no-training", "--quiet", "--out", str(folder / "run")]
    assert main(words) == 0
    return folder / "run"


def test_a_picture_goes_into_the_current_folder_under_the_scenarios_name(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = write_scenario(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert main(["draw", str(scenario)]) == 0
    assert capsys.readouterr().out == "three-devices-topology.png\n"
    assert (tmp_path / "three-devices-topology.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("SVG", b"<?xml"), ("pdf", b"%PDF")])
def test_the_files_name_says_the_format(tmp_path: Path, suffix: str, begin: bytes) -> None:
    path = tmp_path / f"new/picture.{suffix}"
    assert main(["draw", str(write_scenario(tmp_path)), "--out", str(path)]) == 0
    assert path.read_bytes().startswith(begin)


def test_values_can_be_changed_first(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    words = ["draw", str(write_scenario(tmp_path)), "--set", "topology.devices=7", "--out", str(path)]
    assert main(words) == 0
    assert "<!-- 7 sensors -->" in path.read_text()


def test_planned_outages_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "a.svg"
    words = ["draw", str(write_scenario(tmp_path)), "--out", str(path)]
    assert main([*words, "--set", "faults.scheduled=[{link: [cloud, station], at_s: 5}]"]) == 0
    assert "<!-- 1 with planned outages -->" in path.read_text()


BUDGET = (
    "network.cell.radio={name: shannon, profile: nr_38803, bandwidth_hz: 1.0e+6, snr: {name: link_budget, "
    "carrier_hz: 0.9e+9, device_power_dbm: 23.0, station_power_dbm: 43.0, device_noise_figure_db: 5.0, "
    "station_noise_figure_db: 3.0, path_loss: {name: log_distance, exponent: 4.0}, shadowing: {sigma_db: 8.0}}}"
)


@pytest.mark.parametrize(("quantity", "bar"), [("snr", "SNR of the uplink, dB"), ("rate", "rate of the uplink, bit/s")])
def test_devices_are_coloured_by_their_uplinks_on_one_seed(tmp_path: Path, quantity: str, bar: str) -> None:
    words = ["draw", str(write_scenario(tmp_path)), "--colour", quantity, "--set", BUDGET]
    drawn = {}
    for name, more in {"first": [], "one": ["--seed", "1"], "two": ["--seed", "2"]}.items():
        assert main([*words, *more, "--out", str(tmp_path / f"{name}.svg")]) == 0
        drawn[name] = (tmp_path / f"{name}.svg").read_text()
    assert drawn["first"] == drawn["one"] != drawn["two"]
    assert f"<!-- {bar} -->" in drawn["two"] and "at time zero of seed 2." in drawn["two"]


@pytest.fixture(scope="module")
def drawing(run_folder: Path) -> str:
    path = run_folder.parent / "a.svg"
    scenario = run_folder.parent / "scenario.yaml"
    assert main(["draw", str(scenario), "--run", str(run_folder), "--out", str(path)]) == 0
    return path.read_text()


def test_with_a_run_its_loads_are_drawn_for_each_protocol(drawing: str) -> None:
    for text in ("three-devices: load of the network", "fedavg", "prox, strong", "utilisation, %"):
        assert f"<!-- {text} -->" in drawing


def test_the_same_run_is_the_same_picture(tmp_path: Path, run_folder: Path, drawing: str) -> None:
    words = ["draw", str(write_scenario(tmp_path)), "--run", str(run_folder), "--out", str(tmp_path / "b.svg")]
    assert main(words) == 0
    assert (tmp_path / "b.svg").read_text() == drawing


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--out", "a.gif"], "--out: 'a.gif' must end in one of .png, .svg, .pdf; rename it"),
        (["--out", "a"], "--out: 'a' must end in one of .png, .svg, .pdf; rename it"),
        (["--out", "/dev/null/a.png"], "--out: /dev/null is not a folder; choose another place for the picture"),
        (["--run", "no-such-folder"], "there is no run folder no-such-folder"),
        (["--rum", "x"], "`fedsim draw` takes no '--rum'; did you mean '--run'?"),
        (["--set", "topology.devices=0"], "topology.devices"),
        (["--colour", "snr"], "--colour snr: no radio here has signal-to-noise ratios (radio fixed); colour by rate"),
        (["--colour", "class"], "--colour class: no radio here has coverage classes (radio fixed)"),
        (["--colour", "rate", "--run", "x"], "--colour and --run both give colours to the picture; leave one out"),
        (["--seed", "2"], "--seed is for --colour, as the network is the same on every seed; give --colour, too"),
        (["--colour", "rate", "--seed", "-2"], "-2 must be at least 0"),
    ],
)
def test_wrong_input_is_one_message_and_status_2(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch, words: list[str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["draw", str(write_scenario(tmp_path)), *words]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert len(printed.err.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["scenario.yaml"]


def test_the_run_of_another_network_is_refused(tmp_path: Path, capsys: Capture, run_folder: Path) -> None:
    park = "{name: factory_park, factories: 1, devices_per_factory: 3}"
    park = THREE_DEVICES.replace("{name: star, devices: 3}", park)
    words = ["draw", str(write_scenario(tmp_path, park)), "--run", str(run_folder), "--out", str(tmp_path / "a.png")]
    assert main(words) == 2
    message = capsys.readouterr().err
    assert "the run used 'cell station', which this topology does not have" in message
    assert str(run_folder / "scenario.yaml") in message
    assert not (tmp_path / "a.png").exists()


def test_plot_draws_the_network_of_a_run_too(tmp_path: Path, capsys: Capture, run_folder: Path) -> None:
    assert main(["plot", str(run_folder), "--out", str(tmp_path), "--format", "svg"]) == 0
    printed = capsys.readouterr()
    assert str(tmp_path / "network.svg") in printed.out.splitlines()
    assert printed.err == ""
    assert "<!-- three-devices: load of the network -->" in (tmp_path / "network.svg").read_text()


def test_several_runs_have_a_picture_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, run_folder: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        shutil.copytree(run_folder, name)
    assert main(["plot", "a", "b", "--out", "both", "--format", "svg"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == ["both/network-1.svg", "both/network-2.svg"]
    assert "<!-- b: load of the network -->" in Path("both/network-2.svg").read_text()


@pytest.mark.parametrize(
    ("lost", "what", "figure"),
    [
        ("critical_path.csv", "what rounds are made of", "where_time_goes"),
        ("link_loads.csv", "the load of links over time", "link_loads"),
    ],
)
def test_a_lost_table_of_where_the_time_went_is_missed(
    tmp_path: Path, capsys: Capture, run_folder: Path, lost: str, what: str, figure: str
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run", ignore=shutil.ignore_patterns("figures"))
    (folder / lost).unlink()
    assert main(["plot", str(folder)]) == 0
    message = f"{what} is not drawn: {folder} has lost its {lost}; run the scenario again, into another folder"
    assert capsys.readouterr().err == f"fedsim: {message}\n"
    drawn = {path.stem for path in (folder / "figures").iterdir()}
    assert {"where_time_goes", "link_loads"} - drawn == {figure}


@pytest.mark.parametrize(
    ("lost", "remark"), [("links.csv", "has lost its links.csv"), ("scenario.yaml", "there is no such file")]
)
def test_what_a_network_needs_is_not_needed_for_other_figures(
    tmp_path: Path, capsys: Capture, run_folder: Path, lost: str, remark: str
) -> None:
    folder = shutil.copytree(run_folder, tmp_path / "run")
    (folder / lost).unlink()
    assert main(["plot", str(folder)]) == 0
    printed = capsys.readouterr()
    assert f"fedsim: the network of {folder} is not drawn: " in printed.err
    assert remark in printed.err
    assert (folder / "figures/overview.png").is_file()
    assert not (folder / "figures/network.png").exists()
