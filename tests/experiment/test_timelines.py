"""Timelines for Perfetto, read back by its own classes: slices nest, times are the trace's, counters end at zero."""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from small_worlds import EVERYTHING_HAPPENS, NO_REMARK, scenario

from fedsim.cli import main
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.experiment.timelines import simulated_again, write_timelines
from fedsim.kernel.trace import Outcome
from fedsim.protocols.fedavg import FedAvg

proto: Any = pytest.importorskip("perfetto.protos.perfetto.trace.perfetto_trace_pb2")

Slice = tuple[str, int, int, tuple[int, ...], int]
"""Name, from, until, flows, depth."""


class Timeline:
    """A file's tracks, slices and counters. Raises where slices do not nest."""

    def __init__(self, path: Path) -> None:
        self.names: dict[int, str] = {}
        self.parents: dict[int, int] = {}
        self.slices: defaultdict[int, list[Slice]] = defaultdict(list)
        self.counters: defaultdict[int, list[int]] = defaultdict(list)
        trace, words = proto.Trace(), dict[int, str]()
        trace.ParseFromString(path.read_bytes())
        clocks, stacks = defaultdict[int, int](int), defaultdict[int, list[Any]](list)
        for packet in trace.packet:
            words |= {name.iid: name.name for name in packet.interned_data.event_names}
            if packet.HasField("track_descriptor"):
                track = packet.track_descriptor
                self.names[track.uuid], self.parents[track.uuid] = track.name, track.parent_uuid
                continue
            event, track = packet.track_event, packet.track_event.track_uuid
            assert track in self.names and packet.timestamp >= clocks[track]
            clocks[track] = packet.timestamp
            if event.type == proto.TrackEvent.TYPE_SLICE_BEGIN:
                stacks[track].append((words[event.name_iid], packet.timestamp, tuple(event.flow_ids)))
            elif event.type == proto.TrackEvent.TYPE_SLICE_END:
                name, begin, flows = stacks[track].pop()
                self.slices[track].append((name, begin, packet.timestamp, flows, len(stacks[track])))
            else:
                self.counters[track].append(event.counter_value)
        assert not any(stacks.values())

    def of(self, name: str) -> list[Slice]:
        (track,) = (number for number, other in self.names.items() if other == name)
        return self.slices[track]


def folder_of(folder: Path, changes: dict[str, Any]) -> Results:
    return run(scenario(changes), out=folder)


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return folder_of(tmp_path_factory.mktemp("busy") / "run", EVERYTHING_HAPPENS)


def test_every_slice_has_the_times_of_its_row_in_the_trace(busy: Results) -> None:
    (path,) = write_timelines(busy, busy.folder / "traces")
    timeline, ((_, world),) = Timeline(path), list(simulated_again(busy))
    hops, work, rounds = world.trace.hops.array(), world.trace.work.array(), world.trace.rounds.array()
    assert set(hops["outcome"]) == {Outcome.ARRIVED, Outcome.LOST}
    slices = [one for of_track in timeline.slices.values() for one in of_track]
    inside = sorted((begin, end, *flows) for _, begin, end, flows, _ in slices if flows)
    in_flight = [(transfer.start_s, world.env.now, transfer.number) for transfer in world.network.in_flight]
    expected = [*zip(hops["start_s"], hops["end_s"], hops["transfer"], strict=True), *in_flight]
    assert inside == sorted((round(1e9 * begin), round(1e9 * end), number + 1) for begin, end, number in expected)
    trained = sorted((begin, end) for name, begin, end, _, _ in slices if name.startswith("training"))
    assert trained == sorted((round(1e9 * row["start_s"]), round(1e9 * row["end_s"])) for row in work)
    assert [(begin, end) for _, begin, end, _, _ in timeline.of("rounds")] == [
        (round(1e9 * row["start_s"]), round(1e9 * row["end_s"])) for row in rounds
    ]


def test_what_a_device_does_is_on_one_track(busy: Results) -> None:
    (path,) = write_timelines(busy, busy.folder / "traces")
    names = list(Timeline(path).names.values())
    clients = set(busy.transfers["client"].dropna())
    assert all(names.count(client) == 1 for client in clients)


def test_counters_of_links_end_at_zero_and_are_never_below(busy: Results) -> None:
    (path,) = write_timelines(busy, busy.folder / "traces")
    timeline = Timeline(path)
    kinds = {timeline.names[track].rsplit(": ", 1)[1] for track in timeline.counters}
    assert kinds == {"waiting", "being sent", "rate"}
    for values in timeline.counters.values():
        assert min(values) >= 0 and values[-1] == 0 < max(values)


def test_a_run_that_its_target_ended_is_cut_where_it_ended(tmp_path: Path) -> None:
    learning = {
        "learn": True,
        "data": {"name": "digits"},
        "model": {"name": "softmax"},
        "stop": {"target_accuracy": 0.3, "rounds": 60},
    }
    results = folder_of(tmp_path / "run", learning)
    assert 0 < len(results.rounds) < 60
    (path,) = write_timelines(results, tmp_path / "traces")
    assert len(Timeline(path).of("rounds")) == len(results.rounds)


@pytest.mark.parametrize("stop", [{"sim_time_s": 50.0}, {"rounds": 2}, {"transfer_bytes": 5_000.0}])
def test_other_ends_of_a_run_come_again_too(stop: dict[str, float], tmp_path: Path) -> None:
    results = folder_of(tmp_path / "run", {"stop": stop})
    assert len(list(write_timelines(results, tmp_path / "traces"))) == 1


def test_labels_of_others_are_text_and_files_have_names_of_their_own(tmp_path: Path) -> None:
    labels = ["<script>alert(1)</script>", "../../x", "A", "a", "..", "ü"]
    protocols = [{"name": "fedavg", "fraction": 1.0, "label": label} for label in labels]
    sensor = '"<img src=x>'
    nodes = {
        "cloud": {"kind": "cloud"},
        "hall": {"kind": "base_station"},
        sensor: {"kind": "sensor", "attach": "hall"},
    }
    topology = {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "hall"]}]}
    results = folder_of(tmp_path / "run", {"protocols": protocols, "topology": topology})
    paths = list(write_timelines(results, tmp_path / "traces"))
    assert sorted(path.name for path in (tmp_path / "traces").iterdir()) == sorted(path.name for path in paths)
    assert len({path.name.lower() for path in paths}) == len(labels)
    assert {path.parent for path in paths} == {tmp_path / "traces"}
    assert [(one[0], one[4]) for one in Timeline(paths[0]).of(sensor) if one[4] == 0] == [
        ("down", 0),
        ("training", 0),
        ("up", 0),
    ]


# -- what cannot be ----------------------------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["trace", *words]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1
    return said.err


def test_a_clock_that_depends_on_learning_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = {"learn": True, "data": {"name": "digits"}, "model": {"name": "softmax"}}
    results = folder_of(tmp_path / "run", NO_REMARK | learning)
    monkeypatch.setattr(FedAvg, "reads_learning", True)
    said = refused(capsys, str(results.folder))
    assert "cannot be simulated again without training: its clock depends on what was learned" in said


def test_a_run_that_comes_out_differently_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = folder_of(tmp_path / "run", {})
    written = results.folder / "scenario.yaml"
    written.write_text(written.read_text().replace("seconds_per_sample: 0.5", "seconds_per_sample: 0.25"))
    said = refused(capsys, str(results.folder))
    assert "comes out differently when it is simulated again" in said
    assert not list((results.folder / "traces").glob("*"))


def test_without_the_library_one_message_says_what_to_install(
    busy: Results, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    assert "pip install 'perfetto>=0.59'" in refused(capsys, str(busy.folder))


def test_only_names_a_protocol_of_the_run(busy: Results, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(busy.folder), "--only", "fedavgg")
    assert "no protocol 'fedavgg'; did you mean 'fedavg'?" in said


def test_the_command_says_which_files_it_has_written(busy: Results, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(busy.folder)]) == 0
    said = capsys.readouterr().out
    assert said == f"{busy.folder / 'traces' / 'fedavg-seed-1.pftrace'}\n"


def test_a_timeline_replaces_a_timeline_and_no_other_file(
    busy: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fedavg-seed-1.pftrace"
    words = [str(busy.folder), "--out", str(tmp_path)]
    assert main(["trace", *words]) == main(["trace", *words]) == 0
    written = path.read_bytes()
    (tmp_path / "elsewhere").write_bytes(written)
    capsys.readouterr()
    for spoil, why in {
        (lambda: path.write_bytes(b"mine")): "is there, and is no timeline of fedsim",
        (lambda: (path.unlink(), path.symlink_to("elsewhere"))): "is a link",
    }.items():
        spoil()
        before = path.read_bytes()
        assert f"{path} {why}; choose another folder with --out" in refused(capsys, *words)
        assert path.read_bytes() == before
    assert (tmp_path / "elsewhere").read_bytes() == written


def test_timelines_do_not_go_between_the_files_of_the_run(busy: Results, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, str(busy.folder), "--out", str(busy.folder / "traces" / ".."))
    assert "is the run folder itself" in said and not list(busy.folder.glob("*.pftrace"))
