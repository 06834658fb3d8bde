"""What TensorBoard reads back of an export is what the run has: scalars, steps, simulated time, settings."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from exported import HOSTILE, all_files, finished_run

from fedsim.errors import UserError
from fedsim.experiment.exports.export import export
from fedsim.experiment.exports.safe_names import file_names
from fedsim.experiment.results import Results

pytest.importorskip("tensorboard")

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

NO_SCALARS = {"protocol", "seed", "round"}


def read(folder: Path) -> EventAccumulator:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    return events


def scalars(folder: Path) -> dict[str, list[tuple[int, float, float]]]:
    """By tag: step, wall time, value."""
    events = read(folder)
    return {
        tag: [(each.step, each.wall_time, each.value) for each in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def expected(rounds: pd.DataFrame) -> dict[str, list[tuple[int, float, float]]]:
    """What a table of rounds has, as float32, without what is empty."""
    found = {}
    for column in [name for name in rounds if name not in NO_SCALARS]:
        known = rounds[rounds[column].notna()]
        if len(known):
            found[column] = list(
                zip(known["round"], known["sim_time_s"], map(float, np.float32(known[column])), strict=True)
            )
    return found


def rows_of(results: Results, protocol: str, seed: int) -> pd.DataFrame:
    rounds = results.rounds
    return rounds[(rounds["protocol"] == protocol) & (rounds["seed"] == seed)]


def test_scalars_of_every_protocol_and_seed_are_those_of_the_rounds(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run", HOSTILE)
    place = export([results], "tensorboard", out=tmp_path / "out")
    assert isinstance(place, Path)
    folders = file_names(HOSTILE)
    for protocol in HOSTILE:
        for seed in (1, 2):
            read_back = scalars(place / "tiny" / folders[protocol] / f"seed {seed}")
            assert read_back == expected(rows_of(results, protocol, seed))
            assert "energy_j" not in read_back  # empty in every round
            assert [step for step, *_ in read_back["accuracy"]] == [1, 3]  # not evaluated in the second
            assert read_back["loss"][-1][2] == math.inf
    files = [path for path in all_files(place) if "tfevents" in path]
    assert len(files) == 2 * len(HOSTILE) == len({path.casefold() for path in files})


def test_settings_are_hparams_and_seeds_are_sessions_of_one_trial(tmp_path: Path) -> None:
    place = Path(export([finished_run(tmp_path / "run")], "tensorboard"))
    assert place == tmp_path / "run/exports/tensorboard"
    groups = set()
    for seed in (1, 2):
        events = read(place / "tiny/fedprox" / f"seed {seed}")
        content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
        start = HParamsPluginData.FromString(content).session_start_info
        groups.add(start.group_name)
        told = {key: getattr(value, value.WhichOneof("kind")) for key, value in start.hparams.items()}
        assert told == {
            "evaluate.on": '["global", "own"]',
            "training.learning_rate": 0.1,
            "training.batch_size": 8,
            "network.rate_bps": "inf",
            "network.late": True,
            'devices.classes."a.b <i>".flops_per_s': 1e9,
            "topology.nodes": "40 entries",
            "protocol.name": "fedavg",
            "protocol.label": "fedprox",
            "protocol.mu": 0.1,
        }
    assert groups == {"tiny/fedprox"}


def test_the_same_run_gives_the_same_bytes_and_replaces_what_is_there(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    first = all_files(Path(export([results], "tensorboard", out=tmp_path / "out")))
    assert all_files(Path(export([results.folder], "tensorboard", out=tmp_path / "out"))) == first
    assert all_files(Path(export([results], "tensorboard", out=tmp_path / "other"))) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other", "out", "run"]


def test_several_runs_stand_beside_each_other_under_the_names_that_a_comparison_has(tmp_path: Path) -> None:
    runs = [finished_run(tmp_path / name, ["fedavg"], name=name) for name in ("lte-m", "nb-iot")]
    place = Path(export(runs, "tensorboard", out=tmp_path / "out"))
    assert sorted(path.name for path in place.iterdir()) == ["fedsim_export.json", "lte-m", "nb-iot"]
    with pytest.raises(UserError, match="is named twice, and its seeds would count twice: name it once"):
        export([runs[0], runs[0].folder], "tensorboard", out=tmp_path / "again")


def test_a_round_without_a_time_is_damage(tmp_path: Path) -> None:
    results = finished_run(tmp_path / "run")
    rounds = results.rounds.copy()
    rounds.loc[1, "sim_time_s"] = math.nan
    rounds.to_parquet(results.folder / "rounds.parquet", index=False)
    with pytest.raises(UserError, match=r"is no table of a run \(a round has no sim_time_s\)"):
        export([results.folder], "tensorboard", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
