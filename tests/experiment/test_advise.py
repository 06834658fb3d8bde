"""A search that really trains: on a synthetic plant whose best point is known, by the ledgers of its store.

Of the learning rates one is clearly the best, and of the radios only the fast one leaves time for it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweeps import RADIO, Here, computed, scenario_file
from tiers import mostly_long

import fedsim
from fedsim.cli import main
from fedsim.experiment.advise import advise as module
from fedsim.experiment.advise.advise import Advice, advise
from fedsim.experiment.results import load_results

RATES, RADIOS = [0.003, 0.01, 0.03, 0.3], ["nb_iot_nb1", "lte_m_m2"]
VARY: dict[str, list[Any]] = {"training.learning_rate": RATES, RADIO: RADIOS}
WITHIN = {"sim_time_s": 2.4, "transfer_bytes": 1e7}
CHANGES: dict[str, Any] = {
    "seeds": [1, 2, 3],
    "evaluate.every": 2,
    "stop": {"sim_time_s": 2.4},
    "protocols": [{"name": "fedavg", "clients": 4}],
}
Search = Callable[..., tuple[Here, Advice]]


class Stopped(Here):
    """Is interrupted when so many runs have been started."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.after = after

    def start(self, task: Any) -> None:
        if len(self.tasks) == self.after:
            raise KeyboardInterrupt
        super().start(task)


@pytest.fixture
def searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Search:
    """Searches over the plant, in this process; returns what the pool has done, and the advice."""
    return lambda *given, **options: search_in(tmp_path, monkeypatch, *given, **options)


def search_in(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    pool: Here | None = None,
    changes: dict[str, Any] | None = None,
    **options: Any,
) -> tuple[Here, Advice]:
    pool = pool or Here()
    monkeypatch.setattr(module, "pool_for", lambda *_: (lambda: pool, pool.size))
    path = scenario_file(folder, CHANGES | (changes or {}))
    given = {"target": 0.85, "within": WITHIN, "vary": VARY, "out": folder / "found", "executor": "serial"} | options
    return pool, advise(path, **given)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Advice:
    with pytest.MonkeyPatch.context() as monkeypatch:
        return search_in(tmp_path_factory.mktemp("plant"), monkeypatch)[1]


# -- the answer -------------------------------------------------------------------------------------------------------


def test_it_finds_the_point_that_is_known_to_be_the_best(found: Advice) -> None:
    best = found.table.iloc[0]
    assert (best["training.learning_rate"], best["radio.profile"], best["reached"]) == (0.3, "lte_m_m2", 3)
    assert found.verdict.startswith(
        "fedavg with training.learning_rate=0.3, radio.profile=lte_m_m2 reaches 0.85 on 3 of 3 seeds, in "
    )


def test_no_candidate_is_silently_gone(found: Advice) -> None:
    assert len(found.table) == len(RATES) * len(RADIOS)
    assert (found.table["left"].ne("") | found.table["n"].eq(3)).all()
    slow = found.table[found.table["radio.profile"] == "nb_iot_nb1"]
    assert (slow["n"] == 0).all() and slow["left"].str.match("first evaluation takes .* s").all()


def test_each_training_is_computed_once_by_all_rungs_together(found: Advice) -> None:
    assert set(computed(found.folder / "store").values()) == {1}


def test_it_takes_a_third_of_the_trainings_of_the_whole_grid_at_most(found: Advice) -> None:
    # the same training on all radios: that of a sweep is one run of each learning rate on each seed by the fast radio
    clocks = [load_results(path.parent) for path in found.folder.glob("points/*/manifest.json") if _is_clock(path)]
    rounds = max(len(results.rounds) for results in clocks)
    assert rounds > 30
    assert sum(computed(found.folder / "store").values()) <= len(RATES) * 3 * rounds * 4 / 3


def _is_clock(manifest: Path) -> bool:
    return json.loads(manifest.read_text())["numeric_family"] is None


@pytest.mark.long
def test_it_takes_a_third_of_the_trainings_of_a_sweep_at_most(found: Advice, tmp_path: Path) -> None:
    whole = fedsim.sweep(scenario_file(tmp_path, CHANGES), vary=VARY, out=tmp_path / "sweep", executor="serial")
    by_candidate = whole.compare(target=0.85).sort_values("time_to_target_s_mean")
    assert by_candidate.iloc[0]["training.learning_rate"] == 0.3
    assert by_candidate.iloc[0]["radio.profile"] == "lte_m_m2"
    assert by_candidate["rounds_to_target_n"].tolist()[:2] == [3, 0]  # nothing else reaches it on any seed
    assert sum(computed(found.folder / "store").values()) <= len(computed(tmp_path / "sweep" / "store")) / 3


def test_the_command_runs_the_best_one_from_what_the_search_has_trained(
    found: Advice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert found.command is not None
    before = computed(found.folder / "store")
    assert main(shlex.split(found.command)[1:]) == 0
    assert computed(found.folder / "store") == before
    (folder,) = found.folder.glob("run-*")
    summary = load_results(folder).summary
    assert summary["time_to_target_s"].mean() == pytest.approx(found.table["time_to_target_s_mean"][0])
    assert len(summary) == 3


def test_what_it_found_is_in_its_folder(found: Advice) -> None:
    said = json.loads((found.folder / "advice.json").read_text())
    assert (said["status"], said["verdict"], said["command"]) == ("finished", found.verdict, found.command)
    written = pd.read_csv(found.folder / "advice.csv", keep_default_na=False, na_values=[""])
    numbers = [column for column in found.table if column.endswith("_mean")]
    pd.testing.assert_frame_equal(written[numbers], found.table[numbers], check_dtype=False)


def test_the_same_search_again_trains_nothing_and_answers_the_same(
    found: Advice, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = computed(found.folder / "store")
    _, again = search_in(found.folder.parent, monkeypatch)
    assert computed(found.folder / "store") == before
    assert again.verdict == found.verdict
    pd.testing.assert_frame_equal(again.table, found.table)


# -- on the way -------------------------------------------------------------------------------------------------------

FEW: dict[str, Any] = {"vary": {"training.learning_rate": [0.003, 0.3]}}
QUICK: dict[str, Any] = {"network.cell.radio.profile": "lte_m_m2", "seeds": [1, 2], "stop": {"rounds": 12}}


@pytest.mark.parametrize("after", mostly_long([1, 4, 6], now=[4]))
def test_an_interrupted_search_goes_on_and_trains_nothing_twice(searched: Search, tmp_path: Path, after: int) -> None:
    options = FEW | {"target": 0.7, "within": {"round": 12}}
    with pytest.raises(KeyboardInterrupt):
        searched(Stopped(after), QUICK, **options)
    assert json.loads((tmp_path / "found" / "advice.json").read_text())["status"] == "running"
    _, advice = searched(None, QUICK, **options)
    assert set(computed(tmp_path / "found" / "store").values()) == {1}
    _, whole = searched(None, QUICK, **options, out=tmp_path / "whole")
    pd.testing.assert_frame_equal(advice.table, whole.table)
    assert computed(tmp_path / "found" / "store") == computed(tmp_path / "whole" / "store")


def test_what_clients_remember_survives_from_rung_to_rung(searched: Search) -> None:
    protocols = [
        {"name": "scaffold", "clients": 4},
        {"name": "hfedms_d", "growth": {"name": "logarithmic", "beta": 4}},
    ]
    changes = QUICK | {"protocols": protocols, "seeds": [1], "training.momentum": 0.9}
    _, advice = searched(None, changes, target=0.99, within={"round": 12}, vary={RADIO: ["lte_m_m1", "lte_m_m2"]})
    assert advice.table["rounds_mean"].tolist() == [12.0] * 4
    assert set(computed(advice.folder / "store").values()) == {1}


@pytest.mark.long
def test_a_larger_budget_goes_on_where_the_smaller_one_has_ended(searched: Search) -> None:
    options = FEW | {"target": 0.99}
    _, small = searched(None, QUICK | {"seeds": [1]}, within={"round": 4}, **options)
    before = computed(small.folder / "store")
    _, large = searched(None, QUICK | {"seeds": [1]}, within={"round": 12}, **options)
    after = computed(large.folder / "store")
    assert before.keys() <= after.keys() and set(after.values()) == {1}


# -- questions --------------------------------------------------------------------------------------------------------


def test_a_target_that_nothing_reaches_is_said_to_be_so(searched: Search) -> None:
    _, advice = searched(None, QUICK | {"seeds": [1]}, **FEW | {"target": 0.99, "within": {"round": 8}})
    assert advice.command is None
    assert advice.verdict.startswith(
        "No candidate was found to reach 0.99 within 8 rounds. The nearest is fedavg with "
    )
    best = advice.table["best_accuracy_mean"].max()
    assert f"a best accuracy of {best:.3f} on seed 1: {0.99 - best:.3f} short." in advice.verdict


def test_a_point_that_changes_another_protocol_only_adds_no_candidate(searched: Search) -> None:
    protocols = [{"name": "fedavg", "clients": 4}, {"name": "fedprox", "clients": 4, "mu": 0.1}]
    changes = QUICK | {"protocols": protocols, "seeds": [1]}
    vary = {"protocols.fedprox.mu": [0.1, 1]}
    _, advice = searched(None, changes, target=0.99, within={"round": 4}, vary=vary)
    assert sorted(zip(advice.table["protocol"], advice.table["fedprox.mu"], strict=True), key=str) == [
        ("fedavg", ""),
        ("fedprox", 0.1),
        ("fedprox", 1),
    ]


def test_without_budgets_the_scenarios_stop_has_them_and_without_keys_its_protocols_are_compared(
    searched: Search,
) -> None:
    changes = QUICK | {"seeds": [1], "stop": {"rounds": 8, "target_accuracy": 0.3}}
    _, advice = searched(None, changes, target=0.7, within=None, vary=None)
    assert (advice.within, advice.by) == ({"round": 8.0}, "round")
    assert advice.table["protocol"].tolist() == ["fedavg"]


def test_a_protocols_own_stop_gives_way_to_the_budgets(searched: Search) -> None:
    protocols = [{"name": "fedavg", "clients": 4, "stop": {"rounds": 1}, "label": "a b"}]
    changes = QUICK | {"protocols": protocols, "seeds": [1], "training.learning_rate": 0.3}
    _, advice = searched(None, changes, target=0.5, within={"round": 12}, vary=None)
    assert advice.table["reached"].tolist() == [1]
    assert advice.command is not None and "protocols.0.stop=null" in advice.command and "'--only=a b'" in advice.command
    before = computed(advice.folder / "store")
    assert main(shlex.split(advice.command)[1:]) == 0
    assert computed(advice.folder / "store") == before


def test_what_decides_on_learned_values_is_searched_too(searched: Search) -> None:
    protocols = [{"name": "spatl", "clients": 2, "selection": {"name": "gnn_ppo", "episodes": 2, "update_steps": 2}}]
    changes = QUICK | {
        "protocols": protocols,
        "seeds": [1],
        "topology.devices": 4,
        "model": {"name": "small_cnn"},
        "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2},
        "evaluate": {"on": ["own"]},
    }
    _, advice = searched(None, changes, target=0.99, within={"round": 3}, vary=None)
    assert advice.table["rounds_mean"].tolist() == [3.0]
    assert set(computed(advice.folder / "store").values()) == {1}
