"""What a run has learned, over time on another network: as a full run has it, without training; or refused by name."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from tiers import mostly_long

import fedsim
from fedsim.errors import Remark, UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.experiment.run_folder import RunFolder
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round, Stop

pytestmark = pytest.mark.filterwarnings("ignore::fedsim.errors.Remark")

PARK: dict[str, Any] = {
    "name": "plant",
    "stop": {"rounds": 6},
    "topology": {"name": "factory_park", "factories": 2, "devices_per_factory": 6},
    "network.cell": {"radio": {"name": "fixed", "profile": "lte_m_m1"}},
    "network.link.rate_bps": 1e8,
    "devices.classes.sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.001}},
    "protocols": [
        {"name": "fedavg", "clients": 4},
        {"name": "hfedms_d", "interval": 3, "growth": {"name": "logarithmic", "beta": 4}},
    ],
}
NETWORKS = {
    "NB-IoT": ["network.cell.radio={name: fixed, profile: nb_iot_nb1}"],
    "LTE-M": ["network.cell.radio={name: fixed, profile: lte_m_m2}"],
    "M2 of HFedMS": [
        "network.cell.radio={name: fixed, profile: lte_m_m2_hfedms}",
        "network.cell.duplex=shared",
        "network.cell.discipline={name: serial}",
    ],
    "private 5G": ["network.cell.radio={name: fixed, profile: nr_100mhz_private}"],
}
NB_IOT = NETWORKS["NB-IoT"]
OUTSIDE = Path(__file__).parents[1] / "outside"
SPARSE = {"path": f"{OUTSIDE / 'sparse.py'}:Sparse", "threshold": 0.02}
ASYNCHRONOUS = {
    **{"path": f"{OUTSIDE / 'asynchronous.py'}:Asynchronous", "concurrency": 4, "folded": 2},
    "server": {"path": f"{OUTSIDE / 'asynchronous.py'}:Mixing"},
}
KINDS: dict[str, dict[str, Any]] = {
    "a stream by rounds": {"data.stream": {"samples": 16}},
    "measured sizes of chosen filters": {
        "model": {"name": "small_cnn"},
        "data.client_test_fraction": 0.2,
        "evaluate": {"on": ["own"]},
        "stop.rounds": 2,
        "protocols": [{"name": "spatl", "clients": 3, "selection": {"name": "l2_global", "keep": 0.5}}],
    },
    "measured sizes of a codec": {
        "protocols": [
            {"name": "scaffold", "clients": 3},
            {"name": "fedavg", "clients": 3, "codec": SPARSE},
        ]
    },
    "a model for each client": {
        "data.client_test_fraction": 0.2,
        "evaluate": {"on": ["own"], "every": 2},
        "protocols": [{"name": "standalone", "clients": 4}, {"name": "fedper", "clients": 4}],
    },
    "two seeds": {"seeds": [1, 2], "evaluate.every": 4},
}


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """A run, which no test may change."""
    return trained(tmp_path_factory.mktemp("runs") / "plant")


def trained(folder: Path, changes: Mapping[str, Any] | None = None, store: Path | None = None) -> Results:
    return fedsim.run(digit_runs.scenario({**PARK, **(changes or {})}), out=folder, store=store)


def content(folder: Path) -> dict[str, bytes]:
    """All files in a folder, and when they were written."""
    return {
        str(path.relative_to(folder)): path.read_bytes() + str(path.stat().st_mtime_ns).encode()
        for path in folder.rglob("*")
        if path.is_file()
    }


def full_run(run: Results, overrides: Sequence[str], out: Path) -> Results:
    scenario = fedsim.load(run.folder / "scenario.yaml", overrides=overrides)
    return fedsim.run(scenario, out=out)


def assert_same(retimed: Results, full: Results) -> None:
    """The same tables, byte for byte, the same traces, and the same models."""
    tables = {path.name for path in full.folder.iterdir() if path.suffix in (".csv", ".parquet")}
    assert {"rounds.csv", "summary.csv", "links.csv", "transfers.parquet"} <= tables
    assert {path.name for path in retimed.folder.iterdir() if path.suffix in (".csv", ".parquet")} == tables
    for name in tables:
        assert (retimed.folder / name).read_bytes() == (full.folder / name).read_bytes(), name
    assert digit_runs.outcome(retimed.folder) == digit_runs.outcome(full.folder)


def refused(run: Results, *overrides: str, message: str, out: Path | None = None) -> None:
    """Re-timing is refused with this message, and nothing is left behind."""
    out = out or run.folder.with_name("refused")
    before = content(run.folder)
    with pytest.raises(UserError, match=message):
        fedsim.retime(run, overrides, out=out)
    assert not out.exists()
    assert content(run.folder) == before


# -- what re-times ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("network", mostly_long(NETWORKS, now=["M2 of HFedMS"]))
def test_tables_are_those_of_a_full_run_and_nothing_is_trained(plant: Results, tmp_path: Path, network: str) -> None:
    before = content(plant.folder)
    retimed = fedsim.retime(plant, NETWORKS[network], out=tmp_path / "retimed")
    assert content(plant.folder) == before
    assert not (retimed.folder / "store").exists()
    assert_same(retimed, full_run(plant, NETWORKS[network], tmp_path / "full"))
    assert not retimed.rounds["sim_time_s"].equals(plant.rounds["sim_time_s"])


@pytest.mark.parametrize("kind", mostly_long(KINDS, now=["measured sizes of chosen filters"]))
def test_whatever_is_learned_is_timed_as_by_a_full_run(tmp_path: Path, kind: str) -> None:
    run = trained(tmp_path / "run", KINDS[kind])
    assert_same(fedsim.retime(run, NB_IOT, out=tmp_path / "retimed"), full_run(run, NB_IOT, tmp_path / "full"))


def test_a_run_ends_sooner_with_the_accuracy_of_its_last_round_and_without_its_model(
    plant: Results, tmp_path: Path
) -> None:
    third = plant.rounds.query("protocol == 'fedavg' and round == 3")
    overrides = [f"stop={{sim_time_s: {third['sim_time_s'].item() + 1e-6}}}"]
    with pytest.warns(Remark, match="fedavg on seed 1: it ends with another model than the run that was trained"):
        retimed = fedsim.retime(plant, overrides, out=tmp_path / "retimed")
    rounds = retimed.rounds.query("protocol == 'fedavg'")
    assert len(rounds) == 3
    assert rounds.tail(1).equals(third)
    full = full_run(plant, overrides, tmp_path / "full")
    assert (retimed.folder / "rounds.csv").read_bytes() == (full.folder / "rounds.csv").read_bytes()
    assert retimed.final_weights("fedavg", 1) == {}
    with pytest.raises(UserError, match="has no weights of 'fedavg' on seed 1: the run that was trained has not kept"):
        retimed.load_model("fedavg", 1)


def test_the_model_at_the_end_is_that_of_the_run(plant: Results, tmp_path: Path) -> None:
    (tmp_path / "far" / "away").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "away")
    retimed = fedsim.retime(plant, NB_IOT, out=tmp_path / "link" / "retimed")
    ours, theirs = (results.load_model("hfedms_d", 1).state_dict() for results in (retimed, plant))
    assert all(torch.equal(ours[name], tensor) for name, tensor in theirs.items())


def test_another_machine_with_another_torch_re_times(
    plant: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_executor(*_: object, **__: object) -> None:
        raise AssertionError("nothing is to be computed")

    monkeypatch.setattr(TorchExecutor, "__init__", no_executor)
    monkeypatch.setattr(TorchExecutor, "numeric_family", no_executor)
    retimed = fedsim.retime(plant, NB_IOT, out=tmp_path / "retimed")
    assert retimed.manifest["numeric_family"] == plant.manifest["numeric_family"]


def test_a_run_that_has_found_all_in_a_shared_store_re_times(tmp_path: Path) -> None:
    store, two = tmp_path / "store", {"stop.rounds": 2}
    trained(tmp_path / "first", two, store)
    second = trained(tmp_path / "second", two, store)
    retimed = fedsim.retime(second, NB_IOT, out=tmp_path / "retimed")
    assert retimed.final_weights("fedavg", 1) == second.final_weights("fedavg", 1) != {}
    refused(
        second, "protocols.fedavg.clients=5", message=r"in round 1 what 'factory-.*' trains counts here, and did not"
    )


def test_a_re_timed_run_is_a_run(plant: Results, tmp_path: Path) -> None:
    retimed = fedsim.retime(plant, NB_IOT, out=tmp_path / "retimed")
    assert retimed.name == "plant-retimed"
    assert list(fedsim.compare([plant, retimed])["run"].unique()) == ["plant", "plant-retimed"]
    retimed.plot()
    come_from = retimed.manifest["retimed_from"]
    assert os.path.samefile(retimed.folder / come_from["folder"], plant.folder)
    assert come_from["run"] == plant.manifest["run"] != retimed.manifest["run"]
    hashes = {f"{row['protocol']}/{row['seed']}": row["trace_hash"] for row in plant.manifest["runs"]}
    assert come_from["trace_hashes"] == hashes
    again = fedsim.retime(retimed, ["network.cell.radio={name: fixed, profile: lte_m_m1}"], out=tmp_path / "back")
    assert again.rounds.equals(plant.rounds)
    assert again.manifest["retimed_from"]["run"] == plant.manifest["run"]


class Watching(Observer):
    """Counts runs, and may interrupt one."""

    def __init__(self, stop_at: int = 0) -> None:
        self.begun = 0
        self._stop_at = stop_at

    def begin(self, protocol: Protocol, seed: int, stop: Stop, clients: int) -> None:
        self.begun += 1

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        if done.number == self._stop_at:
            raise KeyboardInterrupt


def test_what_is_finished_is_read_from_its_folder(plant: Results, tmp_path: Path) -> None:
    first = fedsim.retime(plant, NB_IOT, out=tmp_path / "retimed")
    before, watching = content(first.folder), Watching()
    assert fedsim.retime(plant.folder, NB_IOT, out=tmp_path / "retimed", observer=watching).rounds.equals(first.rounds)
    fedsim.run(fedsim.load(first.folder / "scenario.yaml"), out=first.folder, observer=watching)
    assert (watching.begun, content(first.folder)) == (0, before)


def test_an_interrupted_re_timing_leaves_nothing_or_what_the_next_one_replaces(
    plant: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "retimed"
    with pytest.raises(KeyboardInterrupt):
        fedsim.retime(plant, NB_IOT, out=out, observer=Watching(stop_at=2))
    assert not out.exists()
    for name in ("scenario.yaml", "rounds.csv", "links.csv"):
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "save_table", failing_at(name))
            patch.setattr(RunFolder, "save_manifest", failing_at(name, RunFolder.save_manifest))
            with pytest.raises(OSError, match="the disk is full"):
                fedsim.retime(plant, NB_IOT, out=out)
        assert (out / "scenario.yaml").exists()
    retimed = fedsim.retime(plant, NB_IOT, out=out)
    assert_same(retimed, full_run(plant, NB_IOT, tmp_path / "full"))


def failing_at(name: str, otherwise: Any = RunFolder.save_table) -> Any:
    """In place of a method that writes: there is no room for the file *name*, nor for a manifest after the scenario."""

    def write(folder: RunFolder, *what: Any) -> None:
        if what[:1] == (name,) or (name == "scenario.yaml" and not what):
            raise OSError(28, "the disk is full")
        otherwise(folder, *what)

    return write


# -- what is refused --------------------------------------------------------------------------------------------------


def test_a_longer_run_is_refused_by_the_first_round_that_was_not_trained(plant: Results, tmp_path: Path) -> None:
    never = "fedavg, seed 1: round 7 was never trained there: the run ended after round 6; train it with: fedsim run "
    refused(plant, "stop.rounds=8", message=never)
    refused(plant, "stop={sim_time_s: 1.0e+6}", message=never)


def test_the_protocol_that_differs_is_named(plant: Results) -> None:
    message = "plant cannot be re-timed like this: hfedms_d, seed 1: in round 1 "
    refused(plant, "protocols.hfedms_d.growth.beta=3", message=message)


def test_a_deadline_re_times_as_long_as_nobody_misses_it(plant: Results, tmp_path: Path) -> None:
    fedsim.retime(plant, ["protocols.fedavg.deadline_s=1000"], out=tmp_path / "in_time")
    slowest = plant.rounds.query("protocol == 'fedavg'")["sim_time_s"].iloc[0]
    message = (
        r"fedavg, seed 1: in round \d the update of 'factory-\d/sensor-\d' counted there, and does not here "
        r"\(protocols\[0\].deadline_s is null there and "
    )
    refused(plant, f"protocols.fedavg.deadline_s={slowest - 0.1}", message=message)
    message = "in round 1 another model is evaluated here than there, which other updates have made, or none"
    refused(plant, "protocols.fedavg.deadline_s=0.001", message=message)


def test_an_asynchronous_run_re_times_as_long_as_updates_arrive_in_the_same_order(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", {"protocols": [ASYNCHRONOUS], "network.cell.discipline": {"name": "dedicated"}})
    slower = ["network.link.rate_bps=9.0e+7"]
    assert_same(fedsim.retime(run, slower, out=tmp_path / "slower"), full_run(run, slower, tmp_path / "full"))
    work = "devices.classes.sensor.compute.seconds_per_sample=1"
    refused(run, work, message="asynchronous, seed 1: in round 2 ")


def test_a_stream_by_the_clock_is_refused_by_the_first_client_with_other_samples(tmp_path: Path) -> None:
    arrival = {"samples": 8, "arrival": {"samples_per_s": 20.0, "buffer_samples": 8, "buffered_at_start": 8}}
    run = trained(tmp_path / "run", {"data.stream": arrival, "protocols": [{"name": "fedavg", "fraction": 1.0}]})
    message = r"in round \d '.*' trains on other samples than there, as its stream goes by the clock; "
    refused(run, *NB_IOT, message=message)
    fedsim.retime(run, ["network.cell.radio={name: fixed, profile: lte_m_m1}"], out=tmp_path / "same")


def test_an_evaluation_that_was_not_made_is_refused(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", {"evaluate.every": 4, "protocols": [{"name": "fedavg", "clients": 4}]})
    refused(run, "evaluate.every=2", message="in round 2 a model is evaluated here, and none was there")
    refused(run, "stop.rounds=5", message="in round 5 a model is evaluated here, and none was there")


CHANGES = {
    "training.learning_rate=0.2": r"trains otherwise than there \(training.learning_rate is 0.1 there and 0.2 here, "
    "which changes what is trained",
    "model.hidden=[8]": r"it begins with another model \(model.hidden.* is 16 there and 8 here, which changes what is",
    "topology.devices_per_factory=7": r"in round 1 .* \(the data are not those that it was trained on\)",
    "protocols.fedavg.clients=5": r"in round 1 what 'factory-.*' trains counts here, and did not there "
    r"\(protocols\[0\].clients is 4 there and 5 here\)",
    "seeds=[1, 3]": r"plant has not trained 'fedavg' on seed 3 \(it has fedavg on seed 1, hfedms_d on seed 1\)",
    "protocols=[{name: fedprox, mu: 0.1, clients: 4}]": "plant has not trained 'fedprox' on seed 1",
    "learn=false": "nothing is learned with learn: false, so there is nothing to re-time; just run it: fedsim run ",
    "stop.round=3": "--set stop.round=3: stop.round: ",
}


@pytest.mark.parametrize("change", CHANGES)
def test_another_training_is_refused_with_the_key_that_asks_for_it(plant: Results, change: str) -> None:
    refused(plant, change, message=CHANGES[change])


def test_a_network_study_has_nothing_to_re_time(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", {"learn": False})
    refused(run, *NB_IOT, message=r"nothing was learned in .*run \(learn: false\), so there is nothing to re-time")


def test_a_run_of_an_executor_that_is_not_installed_is_refused(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", {"stop.rounds": 1})
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["executor"]["name"] = "batchd"
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    refused(
        run, *NB_IOT, message="was trained by executor 'batchd', which is not installed here.*did you mean 'batched'"
    )


# -- what is damaged, lost or in the way ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def two_rounds(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return trained(tmp_path_factory.mktemp("runs") / "short", {"stop.rounds": 2})


@pytest.fixture
def short(two_rounds: Results, tmp_path: Path) -> Results:
    """A run that a test may damage."""
    return fedsim.load_results(shutil.copytree(two_rounds.folder, tmp_path / "short"))


def test_lost_numbers_are_refused(short: Results) -> None:
    (path,) = (short.folder / "store" / "metrics").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], lines[1].replace(b'"value"', b'"valve"'), *lines[2:]]))
    message = "fedavg, seed 1, round 2: what was computed there is not in its store any more .*; run the scenario again"
    refused(short, *NB_IOT, message=message)


def test_a_store_that_is_lost_or_none_is_refused(short: Results) -> None:
    store = short.folder / "store"
    store.rename(short.folder.with_name("moved"))
    refused(short, *NB_IOT, message="store: is not there$")
    store.mkdir()
    refused(short, *NB_IOT, message="store: is no store$")
    (store / "store.json").write_text('{"format": "fedsim-store", "version": 1}')
    refused(short, *NB_IOT, message="store.json: is not the mark of a store of this version of fedsim$")


def test_a_damaged_index_loses_the_models_only(short: Results, tmp_path: Path) -> None:
    (path,) = (short.folder / "store" / "index").iterdir()
    path.write_text("{}")
    with pytest.warns(Remark, match="does not fit its digest; finished models count as lost"):
        retimed = fedsim.retime(short, NB_IOT, out=tmp_path / "retimed")
    assert retimed.final_weights("fedavg", 1) == {}


def test_strange_lines_in_a_ledger_are_passed_over(short: Results) -> None:
    (path,) = (short.folder / "store" / "ledger").iterdir()
    strange: list[Any] = [
        3,
        {},
        {"event": "computed"},
        {"event": "computed", "key": [], "operation": 1, "inputs": [[]]},
    ]
    with path.open("a") as file:
        file.write("\n".join([*map(json.dumps, strange), "no JSON", ""]))
    refused(short, "stop.rounds=3", message="round 3 was never trained there")


def test_an_unfinished_run_is_refused(short: Results) -> None:
    path = short.folder / "manifest.json"
    path.write_text(path.read_text().replace('"finished"', '"running"'))
    refused(short, *NB_IOT, message="short is not finished; go on with: fedsim run .* --resume$")


def test_a_folder_with_something_else_is_refused(short: Results, tmp_path: Path) -> None:
    fedsim.retime(short, NB_IOT, out=tmp_path / "retimed")
    before = content(tmp_path)
    for out, overrides, message in (
        ("retimed", NETWORKS["LTE-M"], "retimed holds the run of a different scenario .*nb_iot_nb1.* there and "),
        (
            "short",
            NB_IOT,
            "short holds the run of a different scenario .name is 'plant' there and 'plant-retimed' here",
        ),
    ):
        with pytest.raises(UserError, match=message):
            fedsim.retime(short, overrides, out=tmp_path / out)
    assert content(tmp_path) == before


def test_a_run_that_trains_is_not_lost_to_a_re_timing(short: Results, tmp_path: Path) -> None:
    out = tmp_path / "full"
    full_run(short, [*NB_IOT, "name=plant-retimed"], out)
    manifest = out / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished"', '"running"'))
    before = content(out)
    with pytest.raises(UserError, match="the run in .*full is not finished, and it trains; go on with: fedsim run .*"):
        fedsim.retime(short, NB_IOT, out=out)
    assert content(out) == before
