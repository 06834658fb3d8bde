"""Scenarios on data sets that do not come with fedsim run as they stand, but for their length and their tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiers import mostly_long

from fedsim.data import cache
from fedsim.experiment.run import run
from fedsim.scenario.load import load

ROOT = Path(__file__).parents[2]
SCENARIOS = {
    path.stem: path for path in sorted((ROOT / "scenarios").glob("*.yaml")) if "FEDSIM_DATA" in path.read_text("utf-8")
}
FEWER_TESTS = ["evaluate.on=[clients]", "data.client_test_fraction=0.01"]
LESS: dict[str, list[str]] = {
    "ag_news": ["protocols.fedavg.clients=1", *FEWER_TESTS],
    "cifar10": ["protocols.fedavg.clients=1", *FEWER_TESTS],
    "cmapss": ["protocols.fedavg.fraction=0.02"],
    "cwru": ["protocols.fedavg.fraction=0.05"],
    "femnist_368": ["protocols.fedavg.fraction=0.003", "model={name: leaf_cnn}"],
    "spoken_digits": ["protocols.fedavg.fraction=0.4", "evaluate.on=[global]"],
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
@pytest.mark.parametrize("name", mostly_long(LESS, now=["cmapss", "cwru", "femnist_368"]))
def test_a_scenario_on_real_data_runs(name: str, tmp_path: Path) -> None:
    overrides = ["stop={rounds: 1}", "evaluate.every=1", *LESS[name]]
    results = run(load(SCENARIOS[name], overrides=overrides), out=tmp_path)
    (row,) = results.rounds.to_dict("records")
    assert row["participants"] >= 1
    assert row["uplink_bytes"] > 0
    assert 0 <= row["accuracy"] <= 1
    assert row["loss"] > 0
    assert len(results.manifest["runs"][0]["data_digest"]) == 64


@pytest.mark.data
@pytest.mark.slow
def test_remaining_life_in_numbers_has_an_error_instead_of_an_accuracy(tmp_path: Path) -> None:
    overrides = ["stop={rounds: 2}", "evaluate.every=1", "protocols.fedavg.fraction=0.05", "data.target=value"]
    results = run(load(SCENARIOS["cmapss"], overrides=overrides), out=tmp_path)
    assert results.rounds["accuracy"].isna().all()
    assert (results.rounds["rmse"] ** 2).tolist() == pytest.approx(results.rounds["loss"].tolist())
    assert results.summary["rmse"].tolist() == results.rounds["rmse"].tolist()[-1:]
