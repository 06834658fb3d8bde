"""Device classes side by side: bytes of one device, and what the models of a class have reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tiny_results import rounds_of, write_results

import fedsim
from fedsim import Results
from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.compare_device_classes import device_rounds
from fedsim.experiment.figures import save_figures
from fedsim.viz.tables import comparison_cells

KINDS = {"sensor": (4, [0.2, 0.4, 0.6, 0.6, 0.6, 0.6]), "camera": (2, [0.1, 0.2, 0.3, 0.4, 0.6, 0.6])}
"""Class -> devices, and accuracies by round."""


def of_classes(protocol: str, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """All devices of a class send as much; cameras twice as much as sensors."""
    tables = []
    for place, (kind, (devices, accuracies)) in enumerate(KINDS.items(), 1):
        rounds = rounds_of(protocol, seed, [one + shift for one in accuracies], round_bytes=devices * place * 3e6)
        columns = ["protocol", "seed", "round", "sim_time_s", "uplink_bytes", "downlink_bytes", "accuracy", "loss"]
        tables.append(rounds[columns].assign(device_class=kind, clients=devices, compute_s=rounds["round"] * 5.0))
    return pd.concat(tables, ignore_index=True)


@pytest.fixture
def results(tmp_path: Path) -> Results:
    runs = {("max", seed): 0.02 * (seed - 1) for seed in (1, 2)} | {("alone", 1): -0.1, ("alone", 2): -0.1}
    rounds = [
        rounds_of(protocol, seed, [0.3 + shift] * 6, round_bytes=24e6) for (protocol, seed), shift in runs.items()
    ]
    made = write_results(tmp_path / "run", rounds)
    table = pd.concat(of_classes(*run, shift) for run, shift in runs.items())
    table.to_csv(tmp_path / "run/device_classes.csv", index=False)
    return made


def test_bytes_are_of_one_device_and_accuracies_of_its_class(results: Results) -> None:
    table = fedsim.compare_device_classes([results]).set_index(["protocol", "device_class"])
    assert [*table.index] == [("max", "sensor"), ("max", "camera"), ("alone", "sensor"), ("alone", "camera")]
    assert table.loc[("max", "sensor"), "uplink_bytes_mean"] == pytest.approx(6 * 2e6)
    assert table.loc[("max", "camera"), "downlink_bytes_mean"] == pytest.approx(6 * 2e6)
    assert table.loc[("max", "camera"), "transfer_bytes_mean"] == pytest.approx(6 * 6e6)
    assert table["final_accuracy_mean"].to_list() == pytest.approx([0.61, 0.61, 0.5, 0.5])
    assert (table["n"] == 2).all()


def test_each_class_reaches_a_target_by_itself(results: Results) -> None:
    table = fedsim.compare_device_classes([results], target=0.59).set_index(["protocol", "device_class"])
    assert table.loc[("max", "sensor"), "rounds_to_target_mean"] == 3
    assert table.loc[("max", "sensor"), "bytes_to_target_mean"] == pytest.approx(3 * 3e6)
    assert table.loc[("max", "sensor"), "time_to_target_s_mean"] == 30
    assert table.loc[("max", "camera"), "rounds_to_target_n"] == 0, "nothing comes after it to confirm it"
    assert table.loc["alone", "rounds_to_target_n"].to_list() == [0, 0]


def test_a_budget_is_the_runs(results: Results) -> None:
    table = fedsim.compare_device_classes([results], at=("transfer_bytes", 24e6 * 3.5))
    assert (table["rounds_mean"] == 3).all()
    assert table["final_accuracy_mean"].to_list() == pytest.approx([0.61, 0.31, 0.5, 0.2])


def test_what_has_nothing_within_a_budget_has_a_row_without_numbers(results: Results) -> None:
    table = fedsim.compare_device_classes([results], at=("sim_time_s", 9.0))
    assert table["device_class"].to_list() == ["sensor", "camera"] * 2
    assert (table["rounds_mean"] == 0).all()
    assert table["final_accuracy_mean"].isna().all()
    assert table["uplink_bytes_mean"].isna().all()


def test_there_is_nothing_without_classes_or_without_scores(results: Results, tmp_path: Path) -> None:
    plain = write_results(tmp_path / "plain", [rounds_of("max", 1, [0.5])])
    assert fedsim.compare_device_classes([plain]).empty
    unscored = write_results(tmp_path / "unscored", [rounds_of("max", 1, [0.5] * 6)])
    of_classes("max", 1).assign(accuracy=float("nan")).to_csv(tmp_path / "unscored/device_classes.csv", index=False)
    assert device_rounds(unscored).empty
    both = fedsim.compare_device_classes([plain, results])
    assert len(both) == 4


def test_compare_prints_it_below(results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(results.folder), "--target", "0.59"]) == 0
    above, below = capsys.readouterr().out.split("By device class: own models, and bytes of one device\n\n")
    assert "device class" not in above
    (row,) = [line for line in below.splitlines() if line.startswith("| max      | sensor")]
    assert "12 MB" in row and "0.610" in row and "30 s" in row and "9 MB" in row
    assert "rounds" in above and "rounds" not in below
    cells = comparison_cells(fedsim.compare_device_classes([results]))
    assert [*cells][:3] == ["protocol", "device class", "seeds"]
    write_results(tmp_path / "plain", [rounds_of("max", 1, [0.5])])
    assert main(["compare", str(tmp_path / "plain")]) == 0
    assert "device class" not in capsys.readouterr().out


def test_a_panel_for_each_class_is_drawn(results: Results, tmp_path: Path) -> None:
    names = {path.name for path in save_figures([results], tmp_path / "figures")}
    assert {"class_accuracy_over_time.png", "class_accuracy_over_bytes.png"} <= names


@pytest.mark.long
def test_each_run_with_classes_has_panels_of_its_own(results: Results, tmp_path: Path) -> None:
    plain = write_results(tmp_path / "plain", [rounds_of("max", 1, [0.5, 0.6])], name="plain")
    again = write_results(tmp_path / "again", [rounds_of("max", 1, [0.5] * 6)], name="again")
    of_classes("max", 1).to_csv(tmp_path / "again/device_classes.csv", index=False)
    paths = save_figures([plain, results, again], tmp_path / "three")
    assert len(set(paths)) == len(paths), "each run has files of its own"
    for figure in ("class_accuracy_over_time", "class_accuracy_over_bytes"):
        found = {path.name for path in paths if path.name.startswith(figure)}
        assert found == {f"{figure}-2.png", f"{figure}-3.png"}, "a run without classes has none"


DAMAGE = {
    "a protocol that the run lacks": lambda table: table.replace({"protocol": {"alone": "other"}}),
    "rows that are missing": lambda table: table.drop(index=table.index[3]),
    "rows that stand twice": lambda table: pd.concat([table, table.iloc[:1]]),
    "a header alone": lambda table: table.iloc[:0],
    "a class of no clients": lambda table: table.assign(clients=0),
    "a round that the run lacks": lambda table: table.replace({"round": {6: 7}}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_does_not_fit_the_rounds_is_refused_before_anything_is_printed(
    results: Results, tmp_path: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = results.folder / "device_classes.csv"
    DAMAGE[damage](pd.read_csv(path)).to_csv(path, index=False)
    for command in (["compare"], ["plot", "--out", str(tmp_path / "figures")]):
        assert main([command[0], str(results.folder), *command[1:]]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert "device_classes.csv is no table of a run (not each round of rounds.parquet" in said.err


def test_the_loss_of_a_class_may_be_infinite(results: Results) -> None:
    """As when the models of one class have diverged."""
    path = results.folder / "device_classes.csv"
    table = pd.read_csv(path)
    lost = (table["device_class"] == "camera") & (table["round"] == 6) & (table["protocol"] == "max")
    table.loc[lost, ["accuracy", "loss"]] = [float("nan"), float("inf")]
    table.to_csv(path, index=False)
    found = fedsim.compare_device_classes([results]).set_index(["protocol", "device_class"])
    assert found.loc[("max", "camera"), "loss_mean"] == float("inf")
    assert found.loc[("max", "sensor"), "loss_mean"] < 1


@pytest.mark.parametrize("compared", [fedsim.compare, fedsim.compare_device_classes])
@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"at": "round=2"}, r"at='round=2' must be a column and an amount"),
        ({"at": ("round",)}, "must be a column and an amount"),
        ({"at": 5}, "at=5 must be a column"),
        ({"at": (None, 2)}, "must be a column and an amount"),
        ({"at": ("round", "2")}, "round='2' must be a finite number above 0"),
        ({"at": ("round", True)}, "must be a finite number above 0"),
        ({"target": "0.5"}, "target='0.5' must be an accuracy between 0 and 1"),
        ({"target": [0.5]}, "must be an accuracy between 0 and 1"),
    ],
)
def test_bad_arguments_are_the_users(results: Results, compared: Any, keys: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        compared([results], **keys)
    with pytest.raises(UserError, match="a run is its results or its folder, and not"):
        compared([None])
