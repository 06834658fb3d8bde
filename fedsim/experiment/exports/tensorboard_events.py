"""Event files of TensorBoard, written record by record: what is in them, and their names, follow from the run alone.

The only module that imports tensorboard, which need not be installed. Neither TensorFlow nor torch is loaded.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from fedsim.errors import UserError
from fedsim.experiment.exports.exported_run import ExportedRun, OneSeed, Settings, numbers_of
from fedsim.experiment.exports.safe_names import file_names

__all__ = ["EVENTS", "tensorboard"]

EVENTS = "events.out.tfevents.0.fedsim"
"""TensorBoard reads a file that has tfevents in its name."""
_VERSION = "brain.Event:2"


def tensorboard(runs: Sequence[ExportedRun], folder: Path, place: Path) -> None:
    """Event files of TensorBoard, one for each protocol and seed: the rounds as scalars, the settings as hparams.

    A run of TensorBoard is called as its folder is, ``<run>/<protocol>/seed <n>``; a scalar is called as its column of
    ``rounds.csv``. Its step is the round, and its wall time is the simulated time: seconds since 1970. Scalars are
    float32. Raises `UserError` without the library tensorboard.
    """
    try:
        import tensorboard as _  # noqa: F401
    except ImportError:
        raise UserError(
            "--to tensorboard needs the library tensorboard; install it: pip install 'tensorboard>=2.20'"
        ) from None
    run_folders = file_names(run.name for run in runs)
    for run in runs:
        seeds = list(run.seeds())
        protocol_folders = file_names(dict.fromkeys(one.protocol for one in seeds))
        for one in seeds:
            path = folder / run_folders[run.name] / protocol_folders[one.protocol] / f"seed {one.seed}" / EVENTS
            path.parent.mkdir(parents=True)
            _write(path, one)


def _write(path: Path, one: OneSeed) -> None:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary.writer.record_writer import RecordWriter

    events = [Event(wall_time=0.0, file_version=_VERSION), Event(wall_time=0.0, summary=_hparams(one))]
    for row in one.tables["rounds"].to_dict("records"):
        values = [Summary.Value(tag=column, simple_value=value) for column, value in numbers_of(row)]
        events.append(Event(wall_time=row["sim_time_s"], step=row["round"], summary=Summary(value=values)))
    with path.open("wb") as file:
        writer = RecordWriter(file)
        for event in events:
            writer.write(event.SerializeToString(deterministic=True))


def _hparams(one: OneSeed) -> object:
    """What TensorBoard's HParams page shows: a trial is a protocol of a run, with a session for each seed."""
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb

    summary = hparams_pb(_finite(one.settings), trial_id=f"{one.run}/{one.protocol}", start_time_secs=0.0)
    plugin = summary.value[0].metadata.plugin_data
    plugin.content = HParamsPluginData.FromString(plugin.content).SerializeToString(deterministic=True)
    return summary


def _finite(settings: Settings) -> Settings:
    """Without infinite numbers, which TensorBoard cannot show: they become text."""
    return {
        key: str(value) if isinstance(value, float) and not math.isfinite(value) else value
        for key, value in settings.items()
    }
