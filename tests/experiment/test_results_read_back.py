"""What is read from a run folder is what was written, whatever protocols are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_worlds import scenario

import fedsim
from fedsim.errors import UserError
from fedsim.experiment.run import run

NAMES = ["NA", "1", "null", "plain"]


def labelled(**more: Any) -> dict[str, Any]:
    return {"protocols": [{"name": "fedavg", "fraction": 1.0, "label": name} for name in NAMES], **more}


def test_names_stay_names(tmp_path: Path) -> None:
    results = run(scenario(labelled()), out=tmp_path / "run")
    for table in (results.summary, results.rounds, results.links, results.transfers):
        assert list(dict.fromkeys(table["protocol"])) == NAMES
    assert fedsim.compare([results])["protocol"].tolist() == NAMES


def test_transfers_of_all_runs_are_in_one_file(tmp_path: Path) -> None:
    results = run(scenario(labelled() | {"stop.rounds": 3}), out=tmp_path / "run")
    assert results.transfers.groupby("protocol").size().to_dict() == dict.fromkeys(NAMES, 3 * 2 * 2 * 2)
    assert not [path for path in results.folder.iterdir() if path.suffix == ".tmp"]


def test_a_scenario_that_says_the_same_in_other_words_is_the_same(tmp_path: Path) -> None:
    results = run(scenario(), out=tmp_path / "run")
    written = results.folder / "scenario.yaml"
    written.write_text("# a remark\n" + written.read_text())
    before = (results.folder / "manifest.json").read_bytes()
    run(scenario(), out=tmp_path / "run")
    assert (results.folder / "manifest.json").read_bytes() == before
    with pytest.raises(UserError, match=r"different scenario \(stop.rounds is 1 there and 2 here\)"):
        run(scenario({"stop": {"rounds": 2}}), out=tmp_path / "run")
