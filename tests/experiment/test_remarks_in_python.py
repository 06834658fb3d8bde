"""From Python, remarks are warnings about the caller's own line, and stay with the results."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
from small_worlds import NO_REMARK
from small_worlds import scenario as small_world

import fedsim
from fedsim.cli import main
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.scenario.load import load, written_out
from fedsim.scenario.schema import Scenario

TOO_SHORT = {"stop": {"sim_time_s": 0.01}}
NO_ROUND = "fedavg on seed 1: no round ended before the run did, so there is nothing to compare"
Caught = list[warnings.WarningMessage]


def scenario(changes: dict[str, Any] | None = None) -> Scenario:
    return small_world({**NO_REMARK, **(changes or {})})


def old_word(folder: Path, changes: dict[str, Any] | None = None) -> Path:
    """A scenario on which there is a remark: it has an old word for a way to share a channel."""
    text = written_out(scenario(changes))
    assert "duplex: full\n" in text
    path = folder / "scenario.yaml"
    path.write_text(text.replace("duplex: full\n", "duplex: half\n", 1))
    return path


def said(caught: Caught) -> list[str]:
    return [str(one.message) for one in caught if one.category is fedsim.Remark]


def test_a_remark_on_results_is_a_warning_at_the_callers_line_and_in_the_results(tmp_path: Path) -> None:
    with pytest.warns(fedsim.Remark) as caught:
        results = run(scenario(TOO_SHORT), out=tmp_path / "run")
    assert said(list(caught)) == results.remarks == results.manifest["remarks"] == [NO_ROUND]
    assert caught[0].filename == __file__


def test_a_finished_run_keeps_its_remarks_and_warns_no_more(tmp_path: Path) -> None:
    run(scenario(TOO_SHORT), out=tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = run(scenario(TOO_SHORT), out=tmp_path / "run")
        assert again.remarks == fedsim.load_results(tmp_path / "run").remarks == [NO_ROUND]


def test_a_remark_on_the_scenario_that_is_an_error_leaves_nothing_behind(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fedsim.Remark)
        with pytest.raises(fedsim.Remark, match=r"network\.cell\.duplex"):
            run(load(old_word(tmp_path)), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_remark_on_results_that_is_an_error_leaves_them_finished(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", fedsim.Remark)
        with pytest.raises(fedsim.Remark):
            run(scenario(TOO_SHORT), out=tmp_path / "run")
    assert fedsim.load_results(tmp_path / "run").remarks == [NO_ROUND]


def test_remarks_on_the_scenario_come_first_in_the_results(tmp_path: Path) -> None:
    with pytest.warns(fedsim.Remark) as caught:
        results = run(load(old_word(tmp_path, TOO_SHORT)), out=tmp_path / "run")
    assert said(list(caught)) == results.remarks
    assert "network.cell.duplex" in results.remarks[0] and results.remarks[-1] == NO_ROUND


def test_remarks_on_data_are_told_before_a_run_and_in_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each client holds 4 or 5 of 14 training samples of 18, and one of these is tested."""
    np.savez(tmp_path / "own.npz", x=np.zeros((18, 2), np.float32), y=np.arange(18) % 2)
    data = {"name": "arrays", "path": str(tmp_path / "own.npz"), "validation_fraction": 0.2}
    changes = {"data": data, "model": {"name": "mlp", "hidden": [2]}, "topology": {"name": "star", "devices": 3}}
    with pytest.warns(fedsim.Remark) as caught:
        results = run(scenario(changes), out=tmp_path / "run")
    told = (
        "data: validation_fraction=0.2: tests are 3 training samples, for choosing settings; the tests themselves are "
        "not used"
    )
    assert said(list(caught)) == results.remarks == [told]
    (tmp_path / "own.yaml").write_text(written_out(scenario(changes)))
    assert main(["validate", str(tmp_path / "own.yaml")]) == 0
    assert capsys.readouterr().out.splitlines()[1].endswith(f": {told}")
    assert main(["describe", str(tmp_path / "own.yaml")]) == 0
    assert "validation_fraction=0.2: tests are 3 training samples" in capsys.readouterr().out


def test_what_the_executor_cannot_do_is_a_remark(tmp_path: Path) -> None:
    net = Path(__file__).parents[1] / "models" / "own_net.py"
    own = {"model": {"name": "torch_module", "path": f"{net}:Net"}, "data.pixels": 28, "stop.rounds": 1}
    with pytest.warns(fedsim.Remark, match="batched cannot take the model"):
        results = run(digit_runs.scenario(own), out=tmp_path / "run", executor="batched", workers=1)
    assert results.remarks == [results.manifest["executor"]["remark"]]


def test_a_run_folder_without_remarks_has_none(tmp_path: Path) -> None:
    run(scenario(), out=tmp_path / "run")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_bytes())
    assert manifest.pop("remarks") == []
    path.write_text(json.dumps(manifest))
    assert fedsim.load_results(tmp_path / "run").remarks == []


class Listener(Observer):
    """Hears what is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def tell(self, text: str) -> None:
        self.heard.append(text)


def test_an_observer_hears_of_the_scenario_in_place_of_warnings(tmp_path: Path) -> None:
    listener = Listener()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = run(load(old_word(tmp_path)), out=tmp_path / "run", observer=listener)
    assert listener.heard == [f"Remark: {remark}" for remark in results.remarks]
    assert listener.heard


def test_an_observer_and_a_display_are_too_many(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="an observer takes the place of the display"):
        run(scenario(), out=tmp_path / "run", progress=True, observer=Observer())


def test_a_path_is_no_scenario(tmp_path: Path) -> None:
    path: Any = "plant.yaml"
    with pytest.raises(UserError, match=r"and not 'plant.yaml'; fedsim.load\(path\) reads one from a file"):
        run(path, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_line_says_each_remark_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = old_word(tmp_path, TOO_SHORT)
    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().err
    remarks = fedsim.load_results(tmp_path / "run").remarks
    assert len(remarks) == 2
    assert [line for line in printed.splitlines() if "emark" in line] == [f"Remark: {remark}" for remark in remarks]
