"""Killed or interrupted at any moment, a run goes on where it was and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from run_server import INTERRUPTED, REFUSED, RunServer, last_message

from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.learning.learner import PARTIAL_SUM
from fedsim.scenario.schema import Scenario

KILLS, FOLDERS = 20, 4
CHECKPOINT_INTERVAL_S, CHECKPOINTS = 0.2, 20
PATIENCE_S, POLL_S = 300.0, 0.01
COMPUTED = re.compile(rb'"event":"computed","key":"(\w+)"')

LONG = digit_runs.data(  # a few seconds of real training
    {
        "protocols": [
            {"name": "fedavg", "clients": 12},
            {"name": "fedprox", "clients": 9, "mu": 0.1},
            {
                "name": "centralised",
                "stop": {"rounds": 2},
            },  # one long training each: a kill in it is in no round of many
        ],
        "stop.rounds": 4,
        "model.hidden": [128],
        "training.epochs": 6,
        "training.batch_size": 8,
    }
)
STREAMED = digit_runs.data(
    {
        "data.stream": {
            "samples": 20,
            "refresh_rounds": 2,
            "augmentation": {},
            "arrival": {"samples_per_s": 10.0, "buffer_samples": 30, "buffered_at_start": 5},
            "drift": {"name": "gradual", "begin": 2, "end": 6, "strength": 0.8},
        },
        "stop.rounds": 8,
        "training.epochs": 4,
        "training.batch_size": 4,
    }
)
REMEMBERED = digit_runs.data(
    {
        "protocols": [
            {
                "name": "hfedms_d",
                "interval": 3,
                "growth": {"name": "constant", "beta": 4},
                "sampling_rate": 0.5,
                "scc": {"capacity": 30, "first_extractor": "local"},
            }
        ],
        "data.stream": {"samples": 20},
        "stop.rounds": 12,
        "model.hidden": [128],
        "training.batch_size": 2,
    }
)
SHORT = digit_runs.data()

Rows = list[dict[str, Any]]


@dataclass
class Whole:
    """What a run comes to that nobody disturbs."""

    outcome: dict[str, bytes]
    progress: list[tuple[float, int]]
    """(seconds since it began to compute, expressions computed by then), ascending in both."""

    @property
    def checkpoint_interval_s(self) -> float:
        """A small part of the run's time, so that kills come after checkpoints however fast it is today."""
        return self.progress[-1][0] / CHECKPOINTS


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


@pytest.fixture(scope="module")
def whole(server: RunServer, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The long run, undisturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    process = server.start(LONG, out, checkpoint_interval_s=CHECKPOINT_INTERVAL_S)
    until_computed(out, 1)
    began_s, progress = time.monotonic(), [(0.0, 1)]
    while not is_finished(out):
        if (so_far := computed(out)) > progress[-1][1]:
            progress.append((time.monotonic() - began_s, so_far))
        time.sleep(POLL_S)
        assert time.monotonic() < began_s + PATIENCE_S
    assert server.wait(process) == 0
    return Whole(digit_runs.outcome(out), progress)


def rows(out: Path) -> Rows:
    """The ledger so far; empty before there is one."""
    return digit_runs.ledger(out / "store") if list((out / "store" / "ledger").glob("*.jsonl")) else []


def computed(out: Path) -> int:
    """How many expressions have been computed so far, each counted once; quick enough to be asked all the time."""
    found: set[bytes] = set()
    for path in (out / "store" / "ledger").glob("*.jsonl"):
        found.update(COMPUTED.findall(path.read_bytes()))
    return len(found)


def trained(ledger: Rows) -> list[str]:
    """The keys of all trainings that were finished, one for each time."""
    return [row["key"] for row in ledger if row["event"] == "computed" and row["operation"] == "train"]


def is_finished(out: Path) -> bool:
    return json.loads((out / "manifest.json").read_bytes())["status"] == "finished"


def until_computed(out: Path, number: int) -> None:
    """Wait until the runs in a folder have computed so many expressions."""
    _until(lambda: computed(out) >= number)


def until_checkpoint(out: Path) -> None:
    """Wait until the runs in a folder have written a checkpoint."""
    _until(lambda: any(row["event"] == "checkpoint" for row in rows(out)))


def _until(condition: Callable[[], bool]) -> None:
    give_up_s = time.monotonic() + PATIENCE_S
    while not condition():
        time.sleep(POLL_S)
        assert time.monotonic() < give_up_s


def since_checkpoint(ledger: Rows) -> Rows:
    """The rows after the last checkpoint; all of them, if there was none."""
    positions = [position for position, row in enumerate(ledger) if row["event"] == "checkpoint"]
    return ledger[positions[-1] + 1 :] if positions else ledger


# -- killed --------------------------------------------------------------------------------------------------------


def moments(progress: list[tuple[float, int]], rng: random.Random) -> list[tuple[int, float]]:
    """Random moments, one in each equal part of a run's time: (expressions computed before, seconds after them).

    They are counted in expressions, so that they are spread over the run however fast it is today.
    """
    end_s = progress[-3][0]  # so that something is left to compute
    found = []
    for part in range(KILLS):
        moment_s = end_s * rng.uniform(part, part + 1) / KILLS
        time_s, so_far = max(step for step in progress if step[0] <= moment_s)
        found.append((so_far, moment_s - time_s))
    return found


def killed_and_resumed(
    server: RunServer, out: Path, interval_s: float, kills: list[tuple[int, float]], rng: random.Random
) -> list[int]:
    """Run and kill, again and again, then let it finish; the length of the ledger at each kill."""
    lengths = []
    for expressions, seconds in kills:
        process = server.start(LONG, out, resume=True, checkpoint_interval_s=interval_s)
        until_computed(out, expressions)
        time.sleep(seconds)
        os.kill(process, signal.SIGKILL)
        assert server.wait(process) == -signal.SIGKILL
        lengths.append(len(rows(out)))
    process = server.start(LONG, out, resume=True, checkpoint_interval_s=interval_s)
    time.sleep(rng.uniform(0.0, 0.4))  # one more, while it gets ready
    os.kill(process, signal.SIGKILL)
    assert server.wait(process) == -signal.SIGKILL
    lengths.append(len(rows(out)))
    assert server.run(LONG, out, resume=True, checkpoint_interval_s=interval_s) == 0
    return lengths


@pytest.mark.slow
def test_a_kill_at_any_moment_changes_nothing_and_costs_little(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    rng = random.Random(20)
    planned = moments(whole.progress, rng)
    after_a_checkpoint = in_a_round = 0
    for folder in range(FOLDERS):
        out = tmp_path / f"{folder}"
        lengths = killed_and_resumed(server, out, whole.checkpoint_interval_s, planned[folder::FOLDERS], rng)
        assert digit_runs.outcome(out) == whole.outcome

        ledger = rows(out)
        for number, (length, end) in enumerate(pairwise([*lengths, len(ledger)]), start=1):
            before, after = ledger[:length], ledger[length:end]
            at_random = number < len(lengths)
            in_a_round += at_random and before[-1].get("operation") != "evaluate"
            known = set(trained(before))
            again = [key for key in trained(after) if key in known]
            assert len(again) <= len(set(trained(since_checkpoint(before)))) + PARTIAL_SUM
            if any(row["event"] == "checkpoint" for row in before):
                after_a_checkpoint += at_random
                first = next((at for at, row in enumerate(after) if row["event"] == "computed"), len(after))
                assert first == len(after) or any(row["event"] == "loaded" for row in after[:first])
    assert len(planned) == KILLS
    assert after_a_checkpoint >= KILLS // 3  # two thirds on average
    assert in_a_round >= KILLS // 3  # three quarters on average


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_where_its_streams_were(server: RunServer, tmp_path: Path) -> None:
    """What has arrived, been taken or been missed is not kept: it follows from the clock, which begins anew."""
    assert server.run(STREAMED, tmp_path / "whole") == 0
    out = tmp_path / "run"
    for expressions in (15, 45):
        process = server.start(STREAMED, out, resume=True, checkpoint_interval_s=0.02)
        until_computed(out, expressions)
        os.kill(process, signal.SIGKILL)
        assert server.wait(process) == -signal.SIGKILL
    killed_at = len(rows(out))
    assert server.run(STREAMED, out, resume=True) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(tmp_path / "whole")
    assert any(row["event"] == "loaded" for row in rows(out)[killed_at:])


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_a_run_that_was_killed_remembers_what_its_clients_did(server: RunServer, tmp_path: Path, executor: str) -> None:
    """Semantics, and the extractors that they fit, are values of the store like every other."""
    whole, rng = tmp_path / "whole", random.Random(7)
    assert server.run(REMEMBERED, whole, executor=executor) == 0
    expressions, out = computed(whole), tmp_path / "run"
    for part in range(6):
        process = server.start(REMEMBERED, out, resume=True, executor=executor, checkpoint_interval_s=0.02)
        until_computed(out, int(expressions * rng.uniform(part, part + 0.9) / 6))
        os.kill(process, signal.SIGKILL)
        assert server.wait(process) == -signal.SIGKILL
    killed_at = len(rows(out))
    assert server.run(REMEMBERED, out, resume=True, executor=executor) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(whole)
    operation = {row["key"]: row["operation"] for row in rows(out) if row["event"] == "computed"}
    loaded = {operation[row["key"]] for row in rows(out) if row["event"] == "loaded"}
    assert loaded >= {"mean", "extract", "compensate"}
    assert any(row["event"] == "loaded" for row in rows(out)[killed_at:])


def press_ctrl_c(process: int) -> None:
    """Until the process has ended: Python loses an interrupt that comes in the callback of a weak reference."""
    state = Path(f"/proc/{process}/stat")
    for attempt in range(200):
        if state.read_text().rpartition(")")[2].split()[0] == "Z":
            return
        if attempt % 20 == 0:
            os.kill(process, signal.SIGINT)
        time.sleep(0.1)


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_goes_on(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = server.start(LONG, out, checkpoint_interval_s=whole.checkpoint_interval_s)
    until_checkpoint(out)
    press_ctrl_c(process)
    assert server.wait(process) == INTERRUPTED
    interrupted = rows(out)
    assert server.run(LONG, out) == REFUSED
    assert "go on with --resume" in last_message(out)
    assert rows(out) == interrupted

    assert server.run(LONG, out, resume=True) == 0
    assert digit_runs.outcome(out) == whole.outcome
    after = rows(out)[len(interrupted) :]
    assert any(row["event"] == "loaded" for row in after)
    assert len(set(trained(interrupted)) & set(trained(after))) <= len(trained(since_checkpoint(interrupted)))


@pytest.mark.slow
def test_a_folder_takes_one_run_at_a_time(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = server.start(LONG, out)
    until_computed(out, 1)
    for resume in (True, False):
        assert server.run(LONG, out, resume=resume) == REFUSED
        assert "another run is at work" in last_message(out) or not resume
    assert server.wait(process) == 0
    assert digit_runs.outcome(out) == whole.outcome


# -- interrupted, finished, or somebody else's ---------------------------------------------------------------------


class Impatient(Observer):
    """Interrupts a run after its second round."""

    def round_done(self, protocol: object, seed: int, done: Any) -> None:
        if done.number == 2:
            raise KeyboardInterrupt


def interrupted(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(digit_runs.scenario(), out=out, observer=Impatient())


def content(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file's time of change and bytes."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_a_finished_run_is_not_touched_again(tmp_path: Path) -> None:
    results = run(digit_runs.scenario(), out=tmp_path)
    before = content(tmp_path)
    again = run(digit_runs.scenario(), out=tmp_path)
    run(digit_runs.scenario(), out=tmp_path, resume=True)
    assert content(tmp_path) == before
    assert again.rounds.equals(results.rounds)


def test_an_unfinished_run_asks_for_resume(tmp_path: Path) -> None:
    interrupted(tmp_path / "run")
    before = content(tmp_path)
    with pytest.raises(UserError, match=r"is not finished; go on with --resume"):
        run(digit_runs.scenario(), out=tmp_path / "run")
    assert content(tmp_path) == before
    whole = run(digit_runs.scenario(), out=tmp_path / "whole")
    resumed = run(digit_runs.scenario(), out=tmp_path / "run", resume=True)
    assert digit_runs.outcome(resumed.folder) == digit_runs.outcome(whole.folder)


@pytest.mark.parametrize("finished", [True, False])
def test_a_folder_keeps_its_scenario(tmp_path: Path, finished: bool) -> None:
    if finished:
        run(digit_runs.scenario(), out=tmp_path)
    else:
        interrupted(tmp_path)
    before = content(tmp_path)
    for resume in (True, False):
        with pytest.raises(UserError, match="holds the run of a different scenario"):
            run(digit_runs.scenario({"training.learning_rate": 0.2}), out=tmp_path, resume=resume)
    assert content(tmp_path) == before


def test_a_run_does_not_go_on_with_another_arithmetic(tmp_path: Path) -> None:
    interrupted(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    manifest["numeric_family"] = manifest["numeric_family"].replace("/torch", "/torch0.")
    path.write_text(json.dumps(manifest))
    before = content(tmp_path)
    with pytest.raises(UserError, match=r"torch0\..*numbers would differ"):
        run(digit_runs.scenario(), out=tmp_path, resume=True)
    assert content(tmp_path) == before


@pytest.mark.parametrize(
    ("begun", "options"),
    [
        ({"executor": "serial", "precision": "float64"}, "--executor serial --precision float64"),
        ({"executor": "processes", "workers": 1}, "--executor processes"),
    ],
)
def test_with_other_options_a_run_says_which_ones_it_was_begun_with(
    tmp_path: Path, begun: dict[str, Any], options: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(digit_runs.scenario(), out=tmp_path / "run", observer=Impatient(), **begun)
    family = json.loads((tmp_path / "run/manifest.json").read_bytes())["numeric_family"]
    other = {"executor": "batched"}
    before = content(tmp_path)
    with pytest.raises(UserError) as refusal:
        run(digit_runs.scenario(), out=tmp_path / "run", resume=True, **other)
    assert content(tmp_path) == before
    here = family.replace("plain", "batched-3").replace("float64", "float32")
    assert str(refusal.value) == (
        f"the run in {tmp_path / 'run'} was begun with the arithmetic {family!r} and would go on with {here!r}; "
        f"numbers would differ, so go on with {options}, or choose another folder with --out"
    )
    run(digit_runs.scenario(), out=tmp_path / "run", resume=True, **begun)


def test_a_run_of_an_older_fedsim_cannot_go_on(tmp_path: Path) -> None:
    interrupted(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    family = manifest["numeric_family"]
    manifest["numeric_family"] = family.replace("/even-sums", "/sum")
    del manifest["executor"], manifest["worker_peak_memory_bytes"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError) as refusal:
        run(digit_runs.scenario(), out=tmp_path, resume=True)
    assert str(refusal.value) == (
        f"the run in {tmp_path} was begun with the arithmetic {manifest['numeric_family']!r} and would go on with "
        f"{family!r}; numbers would differ, so choose another folder with --out"
    )


def test_a_run_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    """From one process to two, and back, in another executor: the arithmetic is the same, so are the bytes."""
    one: dict[str, Any] = {"executor": "serial"}
    two: dict[str, Any] = {"executor": "processes", "workers": 2}
    outcomes = []
    for first, second in ((one, one), (one, two), (two, one)):
        out = tmp_path / f"{len(outcomes)}"
        with pytest.raises(KeyboardInterrupt):
            run(digit_runs.scenario(), out=out, observer=Impatient(), checkpoint_interval_s=1e-9, **first)
        results = run(digit_runs.scenario(), out=out, resume=True, **second)
        assert results.manifest["executor"]["workers"] == second.get("workers", 1)
        assert {row["event"] for row in rows(out)} >= {"computed", "loaded"}
        outcomes.append(digit_runs.outcome(out))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_a_strangers_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("chapter one")
    before = content(tmp_path)
    for resume in (True, False):
        with pytest.raises(UserError, match=r"not empty and is no run folder \(it has thesis\.txt\)"):
            run(digit_runs.scenario(), out=tmp_path, resume=resume)
    with pytest.raises(UserError, match="is not a folder"):
        run(digit_runs.scenario(), out=tmp_path / "thesis.txt")
    assert content(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(
    "scenario",
    [digit_runs.data({"protocols": [{"name": "fedavg", "clients": 8}, {"name": "centralised"}]}), REMEMBERED],
    ids=["models", "semantics"],
)
def test_the_second_of_two_runs_that_share_a_store_trains_nothing(tmp_path: Path, scenario: dict[str, Any]) -> None:
    for name in ("one", "two"):
        run(Scenario.model_validate(scenario), out=tmp_path / name, store=tmp_path / "store")
    assert digit_runs.outcome(tmp_path / "one") == digit_runs.outcome(tmp_path / "two")
    events = []
    for name in ("one", "two"):
        manifest = json.loads((tmp_path / name / "manifest.json").read_bytes())
        lines = (tmp_path / "store" / "ledger" / f"{manifest['run']}.jsonl").read_text("utf-8").splitlines()
        events.append({json.loads(line)["event"] for line in lines})
    assert events == [{"computed"}, {"loaded"}]


def test_a_store_holds_json_and_safetensors_and_nothing_that_executes(tmp_path: Path) -> None:
    interrupted(tmp_path)
    run(digit_runs.scenario(), out=tmp_path, resume=True, checkpoint_interval_s=1e-9)
    kinds = set()
    for path in (path for path in (tmp_path / "store").rglob("*") if path.is_file()):
        found = path.read_bytes()
        kinds.add(path.suffix)
        if path.suffix == ".safetensors":
            header = json.loads(found[8 : 8 + int.from_bytes(found[:8], "little")])
            assert all(entry["dtype"] == "F32" for entry in header.values() if "dtype" in entry)
            assert list(header["__metadata__"]) == ["digest"]
        elif path.suffix in (".json", ".jsonl"):
            assert all(json.loads(line) for line in (found.splitlines() if path.suffix == ".jsonl" else [found]))
        else:
            assert (path.name, found) == ("lock", b"")
    assert kinds == {".safetensors", ".json", ".jsonl", ""}
