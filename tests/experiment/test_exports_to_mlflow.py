"""What MLflow's client reads back of an export is what the run has, and nothing is sent to anybody else."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from exported import HOSTILE, all_files, finished_run

from fedsim.errors import UserError
from fedsim.experiment.exports.export import export
from fedsim.experiment.results import Results

LIBRARIES = ("mlflow", "sqlalchemy", "alembic")
MISSING = [name for name in LIBRARIES if find_spec(name) is None]  # mlflow is not imported before an export does it
pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(MISSING), reason=f"no {MISSING}: CONTRIBUTING.md says how to run these tests"),
    pytest.mark.filterwarnings("ignore"),  # mlflow uses what SQLAlchemy has deprecated
]

LARGEST = sys.float_info.max
"""What a database of MLflow has for infinity."""


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Whom a test has called, which must be nobody; and no server from outside."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    called: list[Any] = []
    monkeypatch.setattr(socket.socket, "connect", lambda _, address: called.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: called.append(address))
    yield called
    assert called == []


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> tuple[Results, Path]:
    folder = tmp_path_factory.mktemp("50 % #1?")  # a path that no URI has as it is
    results = finished_run(folder / "run", HOSTILE)
    rounds = results.rounds.assign(**{"recall_<b>/..": 0.5})
    rounds.to_parquet(results.folder / "rounds.parquet", index=False)
    results = Results(results.folder)
    return results, Path(export([results], "mlflow", out=folder / "out"))


def client(uri: str) -> Any:
    from mlflow.tracking import MlflowClient

    return MlflowClient(tracking_uri=uri)


def opened(place: Path, tmp_path: Path) -> Any:
    """The database of an export, under a path that a URI can have."""
    (tmp_path / "copy.db").write_bytes((place / "mlflow.db").read_bytes())
    return client(f"sqlite:///{tmp_path}/copy.db")


def runs_in(store: Any, experiment: str = "tiny") -> dict[tuple[str, int], Any]:
    found = store.search_runs([store.get_experiment_by_name(experiment).experiment_id])
    runs = {(run.data.tags["fedsim.protocol"], int(run.data.tags["fedsim.seed"])): run for run in found}
    assert len(runs) == len(found)
    return runs


def rows_of(table: pd.DataFrame, protocol: str, seed: int) -> pd.DataFrame:
    return table[(table["protocol"] == protocol) & (table["seed"] == seed)]


def test_metrics_of_every_protocol_and_seed_are_those_of_the_tables(
    exported: tuple[Results, Path], tmp_path: Path
) -> None:
    results, place = exported
    store = opened(place, tmp_path)
    runs = runs_in(store)
    assert set(runs) == {(protocol, seed) for protocol in HOSTILE for seed in (1, 2)}
    for (protocol, seed), run in runs.items():
        rounds = rows_of(results.rounds, protocol, seed).replace(float("inf"), LARGEST)
        expected = {}
        for column in [name for name in rounds if name not in {"protocol", "seed", "round"}]:
            key = column.replace("<b>/", ":3Cb:3E:2F")
            known = rounds[rounds[column].notna()]
            times = (1000 * known["sim_time_s"]).round().astype(int) + run.info.start_time
            expected[key] = list(zip(known["round"], times, known[column], strict=True))
        summary = rows_of(results.summary, protocol, seed).iloc[0]
        assert run.data.metrics["summary/best_accuracy"] == summary["best_accuracy"]
        read_back = {
            key: [(each.step, each.timestamp, each.value) for each in store.get_metric_history(run.info.run_id, key)]
            for key in run.data.metrics
            if "/" not in key
        }
        assert {key: sorted(rows) for key, rows in read_back.items()} == {k: v for k, v in expected.items() if v}
        assert run.info.end_time - run.info.start_time == 1000  # three rounds of a third of a second
        assert (run.info.status, run.info.run_name) == ("FINISHED", f"{protocol}, seed {seed}")


def test_a_run_knows_its_settings_and_where_it_comes_from(exported: tuple[Results, Path], tmp_path: Path) -> None:
    results, place = exported
    run = runs_in(opened(place, tmp_path))["FedAvg", 2]
    assert run.data.params == {
        "evaluate.on": '["global", "own"]',
        "training.learning_rate": "0.1",
        "training.batch_size": "8",
        "network.rate_bps": "inf",
        "network.late": "True",
        "devices.classes.:22a.b :3Ci:3E:22.flops_per_s": "1000000000.0",
        "topology.nodes": "40 entries",
        "protocol.name": "fedavg",
        "protocol.label": "FedAvg",
        "protocol.mu": "0.5",
    }
    tags = {key: value for key, value in run.data.tags.items() if key.startswith("fedsim.")}
    assert tags == {
        "fedsim.run": "0123456789abcdef" * 2,
        "fedsim.version": "9.8.7",
        "fedsim.protocol": "FedAvg",
        "fedsim.seed": "2",
        "fedsim.numeric_family": "serial-1/float32",
        "fedsim.trace_hash": f"{2:032x}",
    }
    assert run.info.start_time == int((results.folder / "manifest.json").stat().st_mtime * 1000)


def test_artifacts_are_the_scenario_the_manifest_and_the_rows_of_the_run(
    exported: tuple[Results, Path], tmp_path: Path
) -> None:
    results, place = exported
    store = opened(place, tmp_path)
    for (protocol, seed), run in runs_in(store).items():
        run_id = run.info.run_id
        assert {each.path for each in store.list_artifacts(run_id)} == {
            "scenario.yaml", "manifest.json", "rounds.csv", "summary.csv",
        }  # fmt: skip
        rounds = pd.read_csv(store.download_artifacts(run_id, "rounds.csv"), dtype={"protocol": str})
        expected = rows_of(results.rounds, protocol, seed).reset_index(drop=True)
        pd.testing.assert_frame_equal(rounds, expected, check_exact=True)
        scenario = Path(store.download_artifacts(run_id, "scenario.yaml")).read_text("utf-8")
        assert scenario == (results.folder / "scenario.yaml").read_text("utf-8")


def test_an_export_is_replaced_and_scenarios_are_experiments(tmp_path: Path) -> None:
    runs = [finished_run(tmp_path / name, ["fedavg"], name=name) for name in ("lte-m", "nb-iot")]
    export(runs, "mlflow", out=tmp_path / "out")
    place = Path(export(runs, "mlflow", out=tmp_path / "out"))
    store = opened(place, tmp_path)
    assert {each.name for each in store.search_experiments()} == {"Default", "lte-m", "nb-iot"}
    assert len(runs_in(store, "lte-m")) == len(runs_in(store, "nb-iot")) == 2
    artifacts = [path for path in all_files(place) if path.endswith("rounds.csv")]
    assert len(artifacts) == 4


def test_runs_are_added_to_a_database_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/ours.db"
    one, other = (finished_run(tmp_path / name, ["fedavg"]) for name in ("one", "other"))
    manifest = other.folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace("0123456789abcdef" * 2, "f" * 32))
    assert export([one], "mlflow", tracking_uri=uri) == uri
    assert export([one], "mlflow", tracking_uri=uri) == uri
    store = client(uri)
    assert len(runs_in(store)) == 2
    monkeypatch.setenv("MLFLOW_TRACKING_URI", uri)
    assert export([other.folder], "mlflow") == uri
    found = store.search_runs([store.get_experiment_by_name("tiny").experiment_id])
    assert sorted(run.data.tags["fedsim.run"][:1] for run in found) == ["0", "0", "f", "f"]
    assert export([other.folder], "mlflow", out=tmp_path / "out") == tmp_path / "out"  # a folder that is asked for


def test_of_an_interrupted_export_a_database_keeps_only_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mlflow.tracking import MlflowClient

    monkeypatch.chdir(tmp_path)
    uri = f"sqlite:///{tmp_path}/ours.db"
    run = finished_run(tmp_path / "run", ["fedavg"])
    export([run], "mlflow", tracking_uri=uri)
    before = {each.info.run_id for each in runs_in(client(uri)).values()}
    log_artifacts, done = MlflowClient.log_artifacts, []

    def interrupted(self: Any, *words: Any) -> None:
        if done:
            raise KeyboardInterrupt
        done.append(words)
        log_artifacts(self, *words)

    monkeypatch.setattr(MlflowClient, "log_artifacts", interrupted)
    with pytest.raises(KeyboardInterrupt):
        export([run], "mlflow", tracking_uri=uri)
    assert {each.info.run_id for each in runs_in(client(uri)).values()} == before


def test_what_mlflow_refuses_is_one_message(tmp_path: Path) -> None:
    run = finished_run(tmp_path / "run", ["fedavg"])
    with pytest.raises(UserError, match="MLflow cannot write to https://plant.example:x/: ") as refusal:
        export([run], "mlflow", tracking_uri="https://me:secret@plant.example:x/")
    assert "secret" not in str(refusal.value)
    with pytest.raises(UserError, match="MLflow cannot write to nothing://there: "):
        export([run], "mlflow", tracking_uri="nothing://there")
    store = f"sqlite:///{tmp_path}/ours.db"
    client(store).delete_experiment(client(store).create_experiment("tiny"))
    with pytest.raises(UserError, match="the experiment 'tiny' is deleted there; restore it, or delete it for good"):
        export([run], "mlflow", tracking_uri=store)


def test_telemetry_is_off(exported: tuple[Results, Path]) -> None:
    from mlflow.telemetry.client import get_telemetry_client
    from mlflow.telemetry.utils import is_telemetry_disabled

    assert os.environ["MLFLOW_DISABLE_TELEMETRY"] == "true"
    assert is_telemetry_disabled() and get_telemetry_client() is None
