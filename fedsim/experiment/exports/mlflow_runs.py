"""Runs of MLflow: in a database of their own, or added to a tracking server.

The only module that imports mlflow, which need not be installed. Its telemetry is switched off: nothing is sent to
anybody but the tracking server that was asked for.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import unquote, urlsplit

from fedsim.errors import UserError
from fedsim.experiment.exports.exported_run import ExportedRun, OneSeed, numbers_of
from fedsim.scenario.scalars import message_line

if TYPE_CHECKING:
    from mlflow.entities import Metric, Run
    from mlflow.tracking import MlflowClient

__all__ = ["ARTIFACTS", "DATABASE", "log_to", "mlflow"]

DATABASE = "mlflow.db"
ARTIFACTS = "artifacts"
_RUN = "fedsim.run"
"""The tag by which an export finds what an earlier one of the same run has left."""
_MOST_METRICS, _MOST_PARAMS, _LONGEST_KEY, _LONGEST_NAME = 1000, 100, 250, 500  # limits of MLflow
_Keep: TypeAlias = Callable[["Run", Path], None]


def mlflow(runs: Sequence[ExportedRun], folder: Path, place: Path) -> None:
    """A database of MLflow, and artifacts: an experiment for each scenario, a run for each protocol and seed.

    A metric is called as its column of ``rounds.csv``, with the round as its step; ``summary/...`` and ``formula/...``
    are rows of ``summary.csv``. Times count from when the run folder was finished: a timestamp is that and the
    simulated time, so that MLflow's duration is simulated. Raises `UserError` without the library mlflow.
    """
    place = Path(os.path.realpath(place))

    def keep(run: Run, files: Path) -> None:
        """Where the database says that they are, once the folder is in its place."""
        path = Path(unquote(urlsplit(run.info.artifact_uri).path))
        shutil.copytree(files, folder / path.relative_to(place))

    _find_libraries("SQLAlchemy", "alembic")
    with tempfile.TemporaryDirectory() as scratch, _said_of(str(place)):
        client = _client(f"sqlite:///{scratch}/{DATABASE}")
        for number, name in enumerate(dict.fromkeys(_name(run.results.name) for run in runs), start=1):
            client.create_experiment(name, (place / ARTIFACTS / str(number)).as_uri())
        for run in runs:
            _log(client, run, keep)
        with (
            closing(sqlite3.connect(f"{scratch}/{DATABASE}")) as full,
            closing(sqlite3.connect(folder / DATABASE)) as kept,
        ):
            full.backup(kept)


def log_to(uri: str, runs: Sequence[ExportedRun]) -> str:
    """Add the *runs* to a tracking server or a database; returns how that may be shown.

    A run that is there from an earlier export is deleted, in MLflow's sense, once the new one is complete; of an export
    that fails nothing stays. Raises `UserError` without the library mlflow, and with what MLflow says when it refuses.
    """
    _find_libraries(*(() if uri.startswith(("http://", "https://")) else ("SQLAlchemy", "alembic")))
    with _said_of(uri):
        client = _client(uri)
        for run in runs:
            _log(client, run, lambda logged, files: client.log_artifacts(logged.info.run_id, str(files)))
    return _without_password(uri)


def _find_libraries(*of_databases: str) -> None:
    """Raise `UserError` unless mlflow is installed, and what it needs for a database. It is to send nothing itself."""
    for library in ("mlflow", *of_databases):
        if find_spec(library.lower()) is None:
            words = " ".join(("'mlflow-skinny>=3.10'", *of_databases))
            raise UserError(f"--to mlflow needs the library {library}; install it: pip install {words}")
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # it is read when mlflow is imported
    os.environ.setdefault("MLFLOW_SUPPRESS_PRINTING_URL_TO_STDOUT", "true")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "2")  # with more, a wrong address takes minutes


def _client(uri: str) -> MlflowClient:
    from mlflow.tracking import MlflowClient

    for logger in ("mlflow", "alembic"):
        logging.getLogger(logger).setLevel(logging.WARNING)
    return MlflowClient(tracking_uri=uri)


@contextmanager
def _said_of(place: str) -> Iterator[None]:
    """A block in which MLflow's refusals become `UserError`."""
    from mlflow.exceptions import MlflowException

    try:
        yield
    except MlflowException as error:
        shown = _without_password(place)
        said = " ".join(str(error).replace(place.rstrip("/"), shown.rstrip("/")).split())
        raise UserError(message_line(f"MLflow cannot write to {shown}: {said}")) from None


# -- one run folder ---------------------------------------------------------------------------------------------------


def _log(client: MlflowClient, run: ExportedRun, keep: _Keep) -> None:
    experiment = _experiment(client, _name(run.results.name))
    before = list(_earlier(client, experiment, run.results.manifest.get("run")))
    logged: list[str] = []
    try:
        for one in run.seeds():
            _log_one(client, experiment, run, one, keep, logged)
    except BaseException:
        for run_id in logged:
            client.delete_run(run_id)
        raise
    for run_id in before:
        client.delete_run(run_id)


def _experiment(client: MlflowClient, name: str) -> str:
    """The number of the experiment of that *name*, which is made when there is none."""
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name))
    if found.lifecycle_stage != "active":
        raise UserError(f"the experiment {name!r} is deleted there; restore it, or delete it for good")
    return str(found.experiment_id)


def _earlier(client: MlflowClient, experiment: str, run: str | None) -> Iterator[str]:
    """Runs that earlier exports have left of this one."""
    token = None
    while run is not None:
        found = client.search_runs([experiment], f"tags.`{_RUN}` = '{run}'", page_token=token)
        yield from (each.info.run_id for each in found)
        if not (token := found.token):
            return


def _log_one(
    client: MlflowClient, experiment: str, run: ExportedRun, one: OneSeed, keep: _Keep, logged: list[str]
) -> None:
    from mlflow.entities import Param

    finished_ms = int((run.results.folder / "manifest.json").stat().st_mtime * 1000)
    name = f"{one.protocol}, seed {one.seed}"
    title = name if run.name == run.results.name else f"{run.name}: {name}"
    made = client.create_run(experiment, finished_ms, _tags(run, one), run_name=title)
    logged.append(made.info.run_id)
    params = [Param(_key(key), str(value)) for key, value in one.settings.items()]
    for at in range(0, len(params), _MOST_PARAMS):
        client.log_batch(made.info.run_id, params=params[at : at + _MOST_PARAMS])
    metrics = list(_metrics(one, finished_ms))
    for at in range(0, len(metrics), _MOST_METRICS):
        client.log_batch(made.info.run_id, metrics=metrics[at : at + _MOST_METRICS])
    with tempfile.TemporaryDirectory() as files:
        _write_artifacts(Path(files), run, one)
        keep(made, Path(files))
    client.set_terminated(made.info.run_id, "FINISHED", finished_ms + _ms(one.tables["summary"]["sim_time_s"].iloc[0]))


def _metrics(one: OneSeed, finished_ms: int) -> Iterator[Metric]:
    from mlflow.entities import Metric

    for row in one.tables["rounds"].to_dict("records"):
        for column, value in numbers_of(row):
            yield Metric(_key(column), value, finished_ms + _ms(row["sim_time_s"]), row["round"])
    for row in one.tables["summary"].to_dict("records"):
        kind = "summary" if row["accounting"] == "event" else "formula"
        for column, value in numbers_of(row):
            yield Metric(
                f"{kind}/{_key(column)}", value, finished_ms + _ms(row["sim_time_s"]), len(one.tables["rounds"])
            )


def _tags(run: ExportedRun, one: OneSeed) -> dict[str, str]:
    manifest = run.results.manifest
    told = {
        _RUN: manifest.get("run"),
        "fedsim.version": manifest.get("fedsim"),
        "fedsim.protocol": one.protocol,
        "fedsim.seed": one.seed,
        "fedsim.numeric_family": manifest.get("numeric_family"),
        "fedsim.trace_hash": one.facts.get("trace_hash"),
        "fedsim.data_digest": one.facts.get("data_digest"),
        "mlflow.source.name": "fedsim",
    }
    return {key: str(value) for key, value in told.items() if value is not None}


def _write_artifacts(folder: Path, run: ExportedRun, one: OneSeed) -> None:
    """The scenario, the manifest, and what tables have of this protocol and seed."""
    (folder / "scenario.yaml").write_text(run.scenario_text, "utf-8")
    shutil.copyfile(run.results.folder / "manifest.json", folder / "manifest.json")
    for name, table in one.tables.items():
        (folder / f"{name}.csv").write_text(table.to_csv(index=False, lineterminator="\n"), "utf-8", newline="")


# -- what MLflow takes ------------------------------------------------------------------------------------------------


def _key(text: str) -> str:
    """A key that MLflow takes: signs that it does not become their UTF-8 in hexadecimal, each byte behind a colon.

    >>> _key("accuracy"), _key("recall_<b>")
    ('accuracy', 'recall_:3Cb:3E')
    """
    plain = re.sub(r"[^\w\-. ]", lambda sign: "".join(f":{byte:02X}" for byte in sign[0].encode()), text)
    return _cut(plain, _LONGEST_KEY - len("summary/"))


def _name(text: str) -> str:
    return _cut(text, _LONGEST_NAME)


def _cut(text: str, longest: int) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return text if len(text) <= longest else f"{text[: longest - 17]}:{digest}"


def _ms(seconds: float) -> int:
    return round(1000 * seconds)


def _without_password(uri: str) -> str:
    """An address as it may be shown.

    >>> _without_password("https://me:secret@plant.example/mlflow"), _without_password("sqlite:////data/mlflow.db")
    ('https://plant.example/mlflow', 'sqlite:////data/mlflow.db')
    """
    parts = urlsplit(uri)
    return uri if "@" not in parts.netloc else parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
