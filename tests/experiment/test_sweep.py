"""Sweeps: what runs, what is trained, what is left, whatever has happened on the way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from sweeps import RADIO, Here, computed, scenario_file

from fedsim.errors import RunFailedError, UserError
from fedsim.experiment.results import load_results
from fedsim.experiment.run import run
from fedsim.experiment.sweep import sweep as module
from fedsim.experiment.sweep.pools.pool import Event
from fedsim.experiment.sweep.results import SweepResults, load_sweep
from fedsim.experiment.sweep.sweep import sweep
from fedsim.scenario.load import load

RADIOS = ["nb_iot_nb1", "lte_m_m1", "lte_m_m2"]
Sweep = Callable[..., tuple[Here, SweepResults | Exception]]


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sweep:
    """Sweeps over a small scenario, in this process; returns what the pool has done, and the results or the error."""

    def run(pool: Here | None = None, changes: dict[str, Any] | None = None, **options: Any) -> Any:
        pool = pool or Here()
        monkeypatch.setattr(module, "pool_for", lambda *_: (lambda: pool, pool.size))
        given = {"vary": {RADIO: RADIOS[:2]}, "out": tmp_path / "sweep", "executor": "serial"} | options
        try:
            return pool, sweep(scenario_file(tmp_path, changes), **given)
        except (UserError, RunFailedError, RuntimeError) as error:
            return pool, error

    return run


def results_of(found: tuple[Here, SweepResults | Exception]) -> SweepResults:
    assert isinstance(found[1], SweepResults), found[1]
    return found[1]


def keys_of(pool: Here) -> list[str]:
    return [task.key for task in pool.tasks]


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_the_table_has_a_row_for_each_point_protocol_and_seed(swept: Sweep) -> None:
    results = results_of(swept(vary={RADIO: RADIOS[:2], "protocols.fedprox.mu": [0.1, 1]}))
    table = results.table
    assert list(table.columns[:5]) == [RADIO, "protocols.fedprox.mu", "point", "protocol", "seed"]
    assert len(table) == 2 * 2 * 2 * 2
    assert list(table[RADIO].drop_duplicates()) == RADIOS[:2]
    written = pd.read_csv(results.folder / "sweep.csv")
    pd.testing.assert_frame_equal(written, table, check_dtype=False)


def test_a_point_is_a_run_like_any_other(swept: Sweep) -> None:
    results = results_of(swept())
    for values, result in results.points:
        again = load_results(result.folder)
        rows = results.table[results.table[RADIO] == values[RADIO]].drop(columns=[RADIO, "point"])
        pd.testing.assert_frame_equal(rows.reset_index(drop=True), again.summary)
    assert json.loads((results.folder / "sweep.json").read_text())["status"] == "finished"


def test_means_have_the_varied_keys_before_them_as_briefly_as_that_is_clear(swept: Sweep) -> None:
    compared = results_of(swept(vary={RADIO: RADIOS[:2], "protocols.fedprox.mu": [0.1]})).compare()
    assert list(compared.columns[:2]) == ["radio.profile", "fedprox.mu"]
    assert list(compared["radio.profile"]) == [RADIOS[0]] * 2 + [RADIOS[1]] * 2
    assert (compared["n"] == 2).all()


def test_a_figure_is_asked_for_by_its_name(swept: Sweep) -> None:
    results = results_of(swept(vary={RADIO: RADIOS[:2], "protocols.fedprox.mu": [0.1, 1]}))
    assert results.plot().get_suptitle() == "Accuracy at the end over fedprox.mu"
    assert results.plot("heatmap-time").get_suptitle() == "Simulated time"
    with pytest.raises(UserError, match=r"there is no figure 'heatmap-tim'; did you mean 'heatmap-time'\?"):
        results.plot("heatmap-tim")


def test_a_sweep_can_be_opened_again(swept: Sweep) -> None:
    results = results_of(swept())
    pd.testing.assert_frame_equal(load_sweep(results.folder).table, results.table)


def test_a_key_that_is_also_a_column_of_results_has_a_column_of_its_own(swept: Sweep) -> None:
    results = results_of(swept(vary={"seeds": [[1], [2]]}))
    assert list(results.table["seeds (varied)"]) == ["[1]", "[1]", "[2]", "[2]"]
    assert list(results.compare()["seeds (varied)"]) == ["[1]", "[1]", "[2]", "[2]"]
    assert list(results.table["seed"]) == [1, 1, 2, 2]


def test_a_run_puts_together_seeds_that_were_points_of_a_sweep_and_trains_nothing(swept: Sweep, tmp_path: Path) -> None:
    folder = results_of(swept(vary={"seeds": [[1], [2]]})).folder
    before = computed(folder / "store")
    both = run(load(scenario_file(tmp_path)), out=tmp_path / "both", store=folder / "store", executor="serial")
    assert computed(folder / "store") == before and len(before) == 2 * 2 * 2 * 4
    rows, of_points = (table.sort_values(["protocol", "seed"]) for table in (both.summary, load_sweep(folder).table))
    assert rows["final_accuracy"].tolist() == of_points["final_accuracy"].tolist()


def test_one_table_has_one_arithmetic(swept: Sweep) -> None:
    assert results_of(swept(vary={RADIO: RADIOS[:1]})).remarks == []
    for options, said in (
        (
            {"precision": "float64"},
            "--precision float64: the point radio.profile='nb_iot_nb1' is there already, trained",
        ),
        ({"executor": "batched"}, "--executor batched: the point radio.profile='nb_iot_nb1' is there already, trained"),
    ):
        pool, error = swept(**options)
        assert said in str(error) and pool.tasks == []
    results = results_of(swept(executor="auto"))
    (remark,) = results.remarks
    assert "1 point with plain" in remark and "1 point with batched" in remark


def test_two_spellings_of_one_key_are_not_varied_together(swept: Sweep) -> None:
    vary = {"protocols.fedavg.clients": [4, 5], "protocols[0].clients": [6]}
    _, error = swept(vary=vary)
    assert "is, or lies in, what vary protocols.fedavg.clients=4 changes; vary one of both" in str(error)


def test_a_point_that_is_lost_is_told_with_the_way_out(swept: Sweep, tmp_path: Path) -> None:
    folder = results_of(swept()).folder
    point = next((folder / "points").iterdir())
    (point / "summary.csv").unlink()
    (point / "manifest.json").unlink()
    with pytest.raises(UserError, match=rf"a point of the sweep is lost: .*; delete {point} and start the sweep again"):
        load_sweep(folder).table  # noqa: B018


@pytest.mark.parametrize("name", ["manifest.json", "summary.csv"])
def test_a_point_that_is_damaged_is_told_with_one_way_out(swept: Sweep, name: str) -> None:
    folder = results_of(swept()).folder
    point = next((folder / "points").iterdir())
    (point / name).write_text("{")
    with pytest.raises(UserError) as error:
        load_sweep(folder).points  # noqa: B018
    said, _, way_out = str(error.value).partition("; ")
    assert said.startswith(f"a point of the sweep is lost: {point / name} is no")
    assert way_out == f"delete {point} and start the sweep again: only this point is run"


def test_a_table_of_another_sweep_does_not_stay_where_no_point_has_ended(swept: Sweep, tmp_path: Path) -> None:
    swept(vary={RADIO: RADIOS[:1]})
    (key,) = keys_of(swept(vary={RADIO: RADIOS[2:]}, out=tmp_path / "to-see-the-key")[0])
    swept(Here(ends={key: ["failed"]}), vary={RADIO: RADIOS[2:]})
    assert not (tmp_path / "sweep" / "sweep.csv").exists()


def test_values_that_are_no_plain_ones_are_json_in_the_table(swept: Sweep) -> None:
    results = results_of(swept(vary={"model.hidden": [[8], [8, 8]], "stop.sim_time_s": [None]}))
    assert list(results.table["model.hidden"].drop_duplicates()) == ["[8]", "[8, 8]"]
    assert set(results.table["stop.sim_time_s"]) == {"null"}


def test_the_section_of_the_scenario_is_what_is_varied_if_nothing_else_is_given(swept: Sweep) -> None:
    section = {"zip": {RADIO: RADIOS[:2], "training.learning_rate": [0.1, 0.2]}}
    results = results_of(swept(vary=None, changes={"sweep": section}))
    assert [values for values, _ in results.points] == [
        {RADIO: RADIOS[0], "training.learning_rate": 0.1},
        {RADIO: RADIOS[1], "training.learning_rate": 0.2},
    ]
    scenarios = [(result.folder / "scenario.yaml").read_text() for _, result in results.points]
    assert all("sweep: null" in text for text in scenarios)


# -- what is trained --------------------------------------------------------------------------------------------------


def test_a_sweep_over_radios_trains_once(swept: Sweep, tmp_path: Path) -> None:
    swept(vary={RADIO: RADIOS})
    trained = computed(tmp_path / "sweep" / "store")
    assert len(trained) == 2 * 2 * 2 * 4  # protocols, seeds, rounds, clients
    assert set(trained.values()) == {1}


def test_a_sweep_that_is_extended_runs_only_what_is_new(swept: Sweep, tmp_path: Path) -> None:
    before, _ = swept(vary={RADIO: RADIOS[:1]})
    after, results = swept(vary={RADIO: RADIOS[:2], "protocols.fedprox.mu": [0.1, 1]})
    assert not set(keys_of(after)) & set(keys_of(before))
    assert len(after.tasks) == 4 - 1
    assert set(computed(tmp_path / "sweep" / "store").values()) == {1}
    assert len(results_of((after, results)).points) == 4


def test_the_same_sweep_again_runs_nothing(swept: Sweep, tmp_path: Path) -> None:
    swept()
    table = (tmp_path / "sweep" / "sweep.csv").read_bytes()
    again, results = swept()
    assert again.tasks == [] and isinstance(results, SweepResults)
    assert (tmp_path / "sweep" / "sweep.csv").read_bytes() == table


def test_another_store_is_shared_with_other_sweeps(swept: Sweep, tmp_path: Path) -> None:
    swept(vary={RADIO: RADIOS[:1]}, store=tmp_path / "store")
    swept(vary={RADIO: RADIOS[1:]}, store=tmp_path / "store", out=tmp_path / "another")
    assert set(computed(tmp_path / "store").values()) == {1}
    assert not (tmp_path / "another" / "store").exists()


def test_the_cost_does_not_depend_on_the_pool(swept: Sweep, tmp_path: Path) -> None:
    swept(Here(size=1), out=tmp_path / "one")
    swept(Here(size=2), out=tmp_path / "two")
    assert (tmp_path / "one" / "sweep.csv").read_bytes() == (tmp_path / "two" / "sweep.csv").read_bytes()


# -- points that are put off, killed, wrong ---------------------------------------------------------------------------


class Idle(Here):
    """Runs nothing: each point fails at once."""

    def events(self) -> list[Event]:
        return [Event(self._started.popleft().key, "failed", "not run")]


def first_keys(swept: Sweep, tmp_path: Path) -> list[str]:
    """The keys of the points, in order."""
    pool, _ = swept(Idle(), out=tmp_path / "to-see-the-keys")
    return keys_of(pool)


def test_a_point_that_is_put_off_comes_when_another_one_has_ended(swept: Sweep, tmp_path: Path) -> None:
    one, two = first_keys(swept, tmp_path)
    pool, results = swept(Here(ends={one: ["put off"]}))
    assert pool.ended == [(one, "put off"), (two, "done"), (one, "done")]
    assert [task.patient for task in pool.tasks] == [False, False, False]
    assert len(results_of((pool, results)).points) == 2


def test_a_point_waits_when_there_is_nothing_else_to_run(swept: Sweep, tmp_path: Path) -> None:
    """Whoever trains what is left of it is no point of this sweep."""
    one, two = first_keys(swept, tmp_path)
    pool, _ = swept(Here(ends={one: ["put off", "put off"], two: ["put off"]}))
    assert pool.ended == [(one, "put off"), (two, "put off"), (one, "put off"), (two, "done"), (one, "done")]
    assert [task.patient for task in pool.tasks] == [False, False, True, False, False]


def test_a_point_whose_process_was_killed_is_run_again_once(swept: Sweep, tmp_path: Path) -> None:
    one, _ = first_keys(swept, tmp_path)
    pool, results = swept(Here(ends={one: ["killed"]}))
    assert [kind for key, kind in pool.ended if key == one] == ["killed", "done"]
    assert isinstance(results, SweepResults)


@pytest.mark.parametrize(
    ("ends", "kind", "status"),
    [
        (["killed", "killed"], RunFailedError, 1),
        (["failed"], RunFailedError, 1),
        (["wrong"], UserError, 2),
        (["crashed"], RuntimeError, None),
    ],
)
def test_one_point_without_a_result_does_not_stop_the_others(
    swept: Sweep, tmp_path: Path, ends: list[str], kind: type[Exception], status: int | None
) -> None:
    one, two = first_keys(swept, tmp_path)
    pool, error = swept(Here(ends={one: ends}))
    assert type(error) is kind
    assert "radio.profile='nb_iot_nb1'" in str(error) and "as the test has it" in str(error)
    assert (two, "done") in pool.ended and pool.closed
    table = pd.read_csv(tmp_path / "sweep" / "sweep.csv")
    assert list(table["point"].drop_duplicates()) == [two]
    with pytest.raises(UserError, match="is not finished; start it again to go on"):
        load_sweep(tmp_path / "sweep")
    again, results = swept()
    assert keys_of(again) == [one] and isinstance(results, SweepResults)


def test_a_scenario_that_changes_while_a_sweep_runs_is_refused(swept: Sweep, tmp_path: Path) -> None:
    class Edited(Here):
        def start(self, task: Any) -> None:
            scenario_file(tmp_path, {"training.learning_rate": 0.3})
            super().start(task)

    _, error = swept(Edited())
    assert "plant.yaml: has changed since the sweep began; start it again" in str(error)


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"vary": {RADIO: ["lte_m_m1", "lte_m_m7"]}}, f"vary {RADIO}='lte_m_m7': network.cell.radio.profile: "),
        ({"vary": {"protocols.fedavg.clients": [4, 900]}}, "protocols[0].clients"),
        ({"vary": {"protocols.fedavgg.clients": [4]}}, "did you mean 'fedavg'?"),
        (
            {"vary": {"training.learning_rate": [1, 1.0]}},
            "=1 and training.learning_rate=1.0 are the same scenario",
        ),
        ({"vary": {"sweep": [None]}}, "the section sweep cannot be varied"),
        ({"vary": None}, "has no section sweep; give --vary key.path=value,value, or write one"),
        ({"overrides": ["stop.round=3"]}, "--set stop.round=3: stop.round: unknown key"),
        ({"executor": "fast"}, "no executor is called 'fast'"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_written(
    swept: Sweep, tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    pool, error = swept(**options)
    assert isinstance(error, UserError) and said in str(error)
    assert pool.tasks == [] and not (tmp_path / "sweep").exists()


def test_a_folder_that_is_something_else_is_left_alone(swept: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "thesis.txt").write_text("mine")
    _, error = swept()
    assert "is not empty and is no sweep's (it has thesis.txt); choose another with --out" in str(error)
    assert [path.name for path in (tmp_path / "sweep").iterdir()] == ["thesis.txt"]


def test_a_file_that_is_called_as_a_sweeps_is_not_overwritten(swept: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweep").mkdir()
    (tmp_path / "sweep" / "sweep.json").write_text('{"mine": "precious"}')
    (tmp_path / "sweep" / "sweep.csv").write_text("mine too")
    _, error = swept()
    assert "sweep.json is no manifest of a sweep" in str(error)
    assert str(error).endswith("choose another folder with --out")
    assert (tmp_path / "sweep" / "sweep.csv").read_text() == "mine too"
    (tmp_path / "sweep" / "store").mkdir()  # as of a sweep whose manifest is damaged
    _, error = swept()
    assert f"another folder with --out and --store {tmp_path}/sweep/store: what is in this" in str(error)


@pytest.mark.parametrize("name", ["points", "sweep.csv"])
def test_a_link_is_not_followed(swept: Sweep, tmp_path: Path, name: str) -> None:
    folder = results_of(swept()).folder
    target = tmp_path / "elsewhere"
    (folder / name).rename(target)
    (folder / name).symlink_to(target)
    _, error = swept(vary={RADIO: RADIOS})
    assert f"{name}: is a link, and a sweep keeps a f" in str(error)


def test_what_a_sweep_has_left_that_was_killed_at_once_is_a_beginning(swept: Sweep, tmp_path: Path) -> None:
    (tmp_path / "sweep" / "points").mkdir(parents=True)
    (tmp_path / "sweep" / ".sweep.json.4711.tmp").write_text('{"for')
    results_of(swept())
    assert not (tmp_path / "sweep" / ".sweep.json.4711.tmp").exists()


def test_two_sweeps_do_not_work_in_one_folder(swept: Sweep) -> None:
    errors = []

    class Meanwhile(Here):
        def start(self, task: Any) -> None:
            errors.append(swept()[1])
            super().start(task)

    swept(Meanwhile())
    assert all("another sweep is at work in" in str(error) for error in errors) and len(errors) == 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is no manifest of a sweep"),
        ('{"format": "fedsim-sweep-1"}', "its key 'scenario'"),
        ("[]", "is no manifest of a sweep"),
    ],
)
def test_a_manifest_that_is_none_is_said_to_be_so(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "sweep.json").write_text(content)
    with pytest.raises(UserError) as error:
        load_sweep(tmp_path)
    assert said in str(error.value) and str(tmp_path / "sweep.json") in str(error.value)


def test_keys_in_a_manifest_lead_nowhere_else(swept: Sweep) -> None:
    results = results_of(swept())
    manifest = json.loads((results.folder / "sweep.json").read_text())
    manifest["points"][0]["key"] = "../../secret"
    (results.folder / "sweep.json").write_text(json.dumps(manifest))
    with pytest.raises(UserError, match=r"is no manifest of a sweep \(its key 'points.0.key'\)"):
        load_sweep(results.folder)
