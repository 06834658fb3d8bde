"""Scenarios on data sets that do not come with fedsim run as they stand, but for their length and their tests."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_worlds import scenario
from tiers import mostly_long

from fedsim.data import cache
from fedsim.experiment.run import run
from fedsim.scenario.load import load

ROOT = Path(__file__).parents[2]
SCENARIOS = {
    path.stem: path for path in sorted((ROOT / "scenarios").glob("*.yaml")) if "FEDSIM_DATA" in path.read_text("utf-8")
}
FEWER_TESTS = ["evaluate.on=[clients]", "data.client_test_fraction=0.01"]
FEWER = {"client_test_fraction": 0.01}
LESS: dict[str, list[str]] = {
    "ag_news": ["protocols=[{name: fedavg, clients: 1}]", *FEWER_TESTS],
    "cifar10": ["protocols=[{name: fedavg, clients: 1}]", *FEWER_TESTS],
    "cwru": ["protocols=[{name: fedavg, fraction: 0.05}]"],
    "engines": ["protocols=[{name: fedavg, fraction: 0.02}]"],
    "femnist_368": ["protocols=[{name: fedavg, fraction: 0.003}]", "model={name: leaf_cnn}"],
    "spoken_digits": ["protocols=[{name: fedavg, fraction: 0.4}]", "evaluate.on=[global]"],
}


@pytest.fixture(scope="module", autouse=True)
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> object:
    """A cache of this module's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(cache.VARIABLE, str(tmp_path_factory.mktemp("cache")))
        yield


def test_all_of_them_are_here() -> None:
    assert set(LESS) == set(SCENARIOS)


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("name", mostly_long(LESS, now=["cwru", "engines", "femnist_368"]))
def test_a_scenario_on_real_data_runs(name: str, tmp_path: Path) -> None:
    overrides = ["stop={rounds: 1}", "evaluate.every=1", *LESS[name]]
    results = run(load(SCENARIOS[name], overrides=overrides), out=tmp_path)
    (row,) = results.rounds.to_dict("records")
    assert row["participants"] >= 1
    assert row["uplink_bytes"] > 0
    assert 0 <= row["accuracy"] <= 1 or (name == "engines" and 0 < row["rmse_cycles"] <= 125)
    assert row["loss"] > 0
    assert len(results.manifest["runs"][0]["data_digest"]) == 64


PAPERS: dict[str, dict[str, Any]] = {
    "texts as FlexiFed has them": {
        "topology.devices": 20,
        "data": {
            "name": "ag_news",
            "train": "train_subset.csv",
            "partition": {"name": "dirichlet", "alpha": 0.5},
            "stream": {"samples": 32},
        },
        "model": {"name": "char_cnn", "depth": 3},
        "training": {"learning_rate": 0.01, "batch_size": 16, "momentum": 0.9},
    },
    "photographs as SPATL has them": {
        "topology.devices": 100,
        "data": {
            "name": "cifar10",
            "path": "cifar10/cifar10_jpeg_full.tar.xz",
            "partition": {"name": "dirichlet", "alpha": 0.1, "minimum_samples": 10},
            "stream": {"samples": 100},
        },
        "model": {"name": "resnet", "depth": 20},
        "training": {"learning_rate": 0.05, "batch_size": 20, "momentum": 0.9, "weight_decay": 5.0e-4},
    },
}
"""Models of papers that take hours to learn."""


@pytest.mark.data
@pytest.mark.long
@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_model_makes_a_round_on_real_data(name: str, tmp_path: Path) -> None:
    changes = PAPERS[name] | {"learn": True, "stop": {"rounds": 1}, "evaluate.on": ["clients"]}
    changes |= {"protocols": [{"name": "fedavg", "clients": 1}], "data": changes["data"] | FEWER}
    (row,) = run(scenario(changes), out=tmp_path).rounds.to_dict("records")
    assert (row["participants"], row["uplink_bytes"] > 1e6) == (1, True)
    assert 0 <= row["accuracy"] <= 1
    assert row["loss"] > 0


@pytest.mark.data
@pytest.mark.long
def test_two_sites_are_scored_apart_as_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each site's error is what a run that tests this site alone has; together they are that of all tests."""
    page = (ROOT / "docs/data/cmapss.md").read_text("utf-8")
    (sections,) = (text for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "fleets" in text)
    (program,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    site = Path("site.yaml")
    site.write_text(f"extends: engines.yaml\n{sections}")
    shutil.copy(SCENARIOS["engines"], tmp_path)
    overrides = ["stop={rounds: 1}", "evaluate.every=1", "protocols=[{name: fedavg, fraction: 0.05}]"]
    results = run(load(site, overrides=overrides), out=Path("runs/two-sites"))
    alone = run(load(site, overrides=[*overrides, "data.test_subsets=[FD003]"]), out=Path("runs/one-site"))
    capsys.readouterr()
    exec(program, {})  # the page's own
    said = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(name, int(tests)) for name, tests, _ in said] == [("FD001", 100), ("FD003", 100)]
    scores = [float(score) for *_, score in said]
    assert (np.mean(np.square(scores))) ** 0.5 == pytest.approx(results.summary["rmse_cycles"][0])
    assert scores[1] == pytest.approx(alone.summary["rmse_cycles"][0])


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("model", ["gru", "lstm"])
def test_remaining_life_in_numbers_has_an_error_instead_of_an_accuracy(model: str, tmp_path: Path) -> None:
    overrides = ["stop={rounds: 2}", "evaluate.every=1", "protocols=[{name: fedavg, fraction: 0.02}]"]
    results = run(load(SCENARIOS["engines"], overrides=[*overrides, f"model.name={model}"]), out=tmp_path)
    assert results.rounds["accuracy"].isna().all()
    assert (results.rounds["rmse"] ** 2).tolist() == pytest.approx(results.rounds["loss"].tolist())
    assert results.summary["rmse"].tolist() == results.rounds["rmse"].tolist()[-1:]
    assert results.rounds["rmse_cycles"].tolist() == pytest.approx((125 * results.rounds["rmse"]).tolist())
