"""What docs/recipes.md promises: each file on the page, in a folder of its own, is a part that runs, and does that."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
import yaml
from pages import ROOT, files_on

import fedsim
from fedsim.cli import main
from fedsim.experiment.results import Results

PAGE = (ROOT / "docs/recipes.md").read_text(encoding="utf-8")
SECTIONS = {text.split("\n")[0]: text for text in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]}
FILES = files_on(ROOT / "docs/recipes.md")
KEYS = {title: yaml.safe_load(re.findall(r"```yaml\n(.*?)```", text, re.S)[0]) for title, text in SECTIONS.items()}
MOST_LINES = 40

Run = Callable[..., Results]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("recipes")
    for name, content in FILES.items():
        (place / name).write_text(content, encoding="utf-8")
    return place


@pytest.fixture
def run(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the scenario of a section, with other values for some keys."""
    monkeypatch.chdir(folder)

    def ran(title: str, name: str = "run", *, executor: str = "auto", **keys: Any) -> Results:
        return fedsim.run(scenario(title, **keys), out=tmp_path / name, executor=executor)

    return ran


def data(title: str, **keys: Any) -> dict[str, Any]:
    base = {
        "topology.devices": 8,
        "data.client_test_fraction": 0.3,
        "network.cell.radio": {"name": "fixed", "uplink_bps": 1e5, "downlink_bps": 1e5},
    }
    return digit_runs.data(base | KEYS[title] | {name.replace("__", "."): value for name, value in keys.items()})


def scenario(title: str, **keys: Any) -> Any:
    return digit_runs.Scenario.model_validate(data(title, **keys))


def final(results: Results) -> dict[str, torch.Tensor]:
    (row,) = results.manifest["runs"]
    return digit_runs.weights(results, row["protocol"])


def start_of(run: Run, title: str) -> dict[str, torch.Tensor]:
    """The initial model: what a training makes whose steps are too small to be seen."""
    still = {"protocols": protocol(title, clients=1, server=None), "training__learning_rate": 1e-18}
    return final(run(title, "start", executor="serial", stop={"rounds": 1}, **still))


def protocol(title: str, **changes: Any) -> list[dict[str, Any]]:
    """The section's protocol with other values for some keys; None: without the key."""
    (keys,) = KEYS[title]["protocols"]
    return [{key: value for key, value in (keys | changes).items() if value is not None}]


def test_there_are_five() -> None:
    assert list(SECTIONS) == ["A server rule", "An exchange", "An operation", "A codec", "A schedule"]
    assert len(FILES) == 5


@pytest.mark.parametrize("name", FILES)
def test_each_is_short_and_in_the_one_style(name: str, folder: Path) -> None:
    assert len(FILES[name].splitlines()) <= MOST_LINES
    tools = (
        ["check", "--config", "pyproject.toml", "--ignore", "D102,I002,FA102"],
        ["format", "--check", "--config", "pyproject.toml"],
    )
    for words in tools:
        command = [sys.executable, "-m", "ruff", *words, str(folder / name)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_each_is_typed_strictly(name: str, folder: Path) -> None:
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(folder / name)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("title", SECTIONS)
def test_each_is_validated_and_described_and_runs(
    title: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    place = folder / f"{title.split()[-1]}.yaml"
    place.write_text(yaml.safe_dump(data(title)), encoding="utf-8")
    for words in (["validate"], ["describe"], ["run", "--quiet", "--out", f"{place.stem} runs"]):
        assert main([*words, place.name]) == 0, capsys.readouterr().err


def test_the_rule_goes_a_part_of_the_way(run: Run) -> None:
    once = {"stop": {"rounds": 1}}
    start = start_of(run, "A server rule")
    whole = final(run("A server rule", "whole", protocols=protocol("A server rule", server=None), **once))
    half = final(run("A server rule", "half", **once))
    assert all(torch.allclose(half[name], (start[name] + whole[name]) / 2, atol=1e-7) for name in start)
    assert any(not torch.equal(half[name], start[name]) for name in start)


def test_the_exchange_sends_extractors_and_everybody_keeps_a_head(run: Run) -> None:
    results = run("An exchange", stop={"rounds": 12}, training__learning_rate=0.3, evaluate={"on": ["own", "clients"]})
    extractor = 4 * (64 * 16 + 16)
    last = results.rounds.iloc[-1]
    assert (last["uplink_bytes"], last["downlink_bytes"]) == (12 * 4 * extractor, 12 * 4 * extractor)
    assert last["accuracy_mean"] > last["accuracy_clients"] + 0.2, "the head that all began with has learned nothing"


@pytest.mark.parametrize("executor", ["serial", "processes", "batched"])
def test_the_operation_clips_what_is_too_long(run: Run, executor: str) -> None:
    once = {"stop": {"rounds": 1}, "executor": executor}
    start = start_of(run, "An operation")
    one = {"protocols": protocol("An operation", clients=1)}
    free = {"protocols": protocol("An operation", clients=1, server=None)}
    clipped = final(run("An operation", "clipped", **one, **once))
    whole = final(run("An operation", "whole", **free, **once))
    change, clip = (torch.cat([(to[name] - start[name]).flatten() for name in start]) for to in (whole, clipped))
    assert change.norm() > 0.25
    assert clip.norm().item() == pytest.approx(0.25, rel=1e-4)
    assert torch.allclose(clip, change * 0.25 / change.norm(), atol=1e-6)


def test_the_codec_sends_what_has_changed_much(run: Run) -> None:
    results = run("A codec")
    sent = results.transfers[(results.transfers["direction"] == "uplink") & results.transfers["access"]]["bytes"]
    assert (sent % 8 == 0).all() and sent.nunique() > 6
    assert sent.max() < 2 * results.manifest["model"]["bytes"]
    fine = run("A codec", "fine", protocols=protocol("A codec", codec={"path": "sparse.py:Sparse", "threshold": 1e-9}))
    assert fine.rounds["uplink_bytes"].iloc[-1] > results.rounds["uplink_bytes"].iloc[-1]
    plain = run("A codec", "plain", protocols=protocol("A codec", codec=None))
    assert fine.rounds["accuracy"].tolist() == pytest.approx(plain.rounds["accuracy"].tolist(), abs=0.02)


def test_without_training_the_codec_asks_for_a_size(run: Run) -> None:
    with pytest.raises(ValueError, match="declared_bytes"):
        scenario("A codec", learn=False)


def test_the_schedule_keeps_some_under_way_and_folds_one_at_a_time(run: Run) -> None:
    results = run("A schedule", stop={"rounds": 40}, training__learning_rate=0.3)
    rounds = results.rounds
    assert (rounds["selected"] == 1).all() and (rounds["participants"] == 1).all()
    assert (np.diff(rounds["sim_time_s"]) >= 0).all()
    model = results.manifest["model"]["bytes"]
    assert rounds["uplink_bytes"].iloc[-1] == 40 * model
    assert 40 * model <= rounds["downlink_bytes"].iloc[-1] <= 44 * model
    assert rounds["accuracy"].iloc[-1] > 0.5


def test_edited_code_never_meets_yesterdays_numbers(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operation of a user's file, in one store."""
    name, store = "clipped.py", tmp_path / "store"
    for version, content in enumerate((FILES[name], FILES[name].replace("min(1.0, ", "min(0.5, "))):
        place = tmp_path / str(version)
        place.mkdir()
        (place / name).write_text(content, encoding="utf-8")
        monkeypatch.chdir(place)
        results = fedsim.run(scenario("An operation", stop={"rounds": 1}), out=place / "run", store=store)
        (place / "weights").write_text(json.dumps({key: value.tolist() for key, value in final(results).items()}))
    assert (tmp_path / "0/weights").read_text() != (tmp_path / "1/weights").read_text()
