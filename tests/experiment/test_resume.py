"""Killed or interrupted at any moment, a run goes on where it was and ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from killed_runs import killed_again_and_again
from run_server import INTERRUPTED, REFUSED, RunServer, last_message
from signals import At, computed
from tiers import FULL, mostly_long

from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.run import run
from fedsim.learning.rules.changes import PARTIAL_SUM
from fedsim.scenario.scalars import show
from fedsim.scenario.schema import Scenario

KILLS, FOLDERS = (20, 4) if FULL else (4, 1)
CHUNKS, MOMENTS = 3, 12
"""A checkpoint every so many chunks; between two chunks, and at a checkpoint, are fewer moments than that."""

LONG = digit_runs.data(
    {
        "protocols": [
            {"name": "fedavg", "clients": 12},
            {"name": "fedprox", "clients": 9, "mu": 0.1},
            {"name": "centralised", "stop": {"rounds": 2}},
        ],
        "stop.rounds": 4,
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
        "stop.rounds": 5,
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
        "stop.rounds": 9,
    }
)
OWN = digit_runs.data(
    {
        "protocols": [{"name": "fedper", "clients": 6}],
        "data.client_test_fraction": 0.3,
        "evaluate": {"on": ["own"], "finetune_epochs": 1},
        "stop.rounds": 4,
    }
)
TWO_PROTOCOLS = digit_runs.data({"protocols": [{"name": "fedavg", "clients": 8}, {"name": "centralised"}]})

UNEVEN = digit_runs.data(
    {
        "protocols": [{"name": "scaffold", "clients": 18}],
        "data.partition": {"name": "dirichlet", "alpha": 0.1},
        "stop.rounds": 3,
    }
)

Rows = list[dict[str, Any]]


@dataclass
class Whole:
    """What a run comes to that nobody disturbs."""

    outcome: dict[str, bytes]
    expressions: int
    """That were computed."""


@pytest.fixture(scope="module")
def server() -> Iterator[RunServer]:
    with RunServer() as running:
        yield running


@pytest.fixture(scope="module")
def whole(server: RunServer, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The long run, undisturbed."""
    out = tmp_path_factory.mktemp("whole") / "run"
    assert server.run(LONG, out, workers=1) == 0
    return Whole(digit_runs.outcome(out), len(computed(out)))


def rows(out: Path) -> Rows:
    """The ledger so far; empty before there is one."""
    return digit_runs.ledger(out / "store") if list((out / "store" / "ledger").glob("*.jsonl")) else []


def trained(ledger: Rows) -> list[str]:
    """The keys of all trainings that were finished, one for each time."""
    return [row["key"] for row in ledger if row["event"] == "computed" and row["operation"] == "train"]


def since_checkpoint(ledger: Rows) -> Rows:
    """The rows after the last checkpoint; all of them, if there was none."""
    positions = [position for position, row in enumerate(ledger) if row["event"] == "checkpoint"]
    return ledger[positions[-1] + 1 :] if positions else ledger


# -- killed --------------------------------------------------------------------------------------------------------


def moments(expressions: int, rng: random.Random) -> list[At]:
    """Random moments, one in each equal part of a run."""
    left = expressions - 10  # so that something is left to compute
    return [At(int(left * rng.uniform(part, part + 1) / KILLS), rng.randrange(MOMENTS)) for part in range(KILLS)]


def killed_and_resumed(server: RunServer, out: Path, kills: list[At]) -> list[int]:
    """Run and kill, again and again, then let it finish; the length of the ledger at each kill."""
    options: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": CHUNKS, "workers": 1}
    lengths = []
    for kill in kills:
        assert server.run(LONG, out, at=kill, **options) == -signal.SIGKILL
        lengths.append(len(rows(out)))
    assert server.run(LONG, out, **options) == 0
    return lengths


@pytest.mark.slow
@pytest.mark.drawn
def test_a_kill_at_any_moment_changes_nothing_and_costs_little(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    rng = random.Random(20)
    planned = moments(whole.expressions, rng)
    after_a_checkpoint = in_a_round = 0
    for folder in range(FOLDERS):
        out = tmp_path / f"{folder}"
        while_it_gets_ready = At(0, rng.randrange(MOMENTS))
        lengths = killed_and_resumed(server, out, [*planned[folder::FOLDERS], while_it_gets_ready])
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


@pytest.mark.long
def test_a_run_that_was_killed_goes_on_where_its_streams_were(server: RunServer, tmp_path: Path) -> None:
    """What has arrived, been taken or been missed is not kept: it follows from the clock, which begins anew."""
    assert server.run(STREAMED, tmp_path / "whole") == 0
    out = tmp_path / "run"
    for expressions in (15, 35):
        at = At(expressions)
        options: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": 2}
        assert server.run(STREAMED, out, at=at, **options) == -signal.SIGKILL
    killed_at = len(rows(out))
    assert server.run(STREAMED, out, resume=True) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(tmp_path / "whole")
    assert any(row["event"] == "loaded" for row in rows(out)[killed_at:])


@pytest.mark.long
@pytest.mark.parametrize("executor", ["serial", "batched"])
def test_a_run_that_was_killed_remembers_what_its_clients_did(server: RunServer, tmp_path: Path, executor: str) -> None:
    """Semantics, and the extractors that they fit, are values of the store like every other."""
    killed_at = killed_again_and_again(server, REMEMBERED, tmp_path, kills=3, executor=executor)
    out = tmp_path / "run"
    operation = {row["key"]: row["operation"] for row in rows(out) if row["event"] == "computed"}
    loaded = {operation[row["key"]] for row in rows(out) if row["event"] == "loaded"}
    assert loaded >= {"add", "extract", "compensate"}
    assert any(row["event"] == "loaded" for row in rows(out)[killed_at:])


@pytest.mark.long
def test_a_run_that_was_killed_has_the_classifiers_that_its_clients_kept(server: RunServer, tmp_path: Path) -> None:
    """Also those that nobody was asked for since, and those that were fine-tuned to be scored."""
    whole, out = tmp_path / "whole", tmp_path / "run"
    assert server.run(OWN, whole) == 0
    expressions = len(computed(whole))
    for share in (0.3, 0.7):
        options: dict[str, Any] = {"resume": True, "looks": True, "checkpoint_interval_s": 2}
        assert server.run(OWN, out, at=At(int(share * expressions)), **options) == -signal.SIGKILL
    killed_at = len(rows(out))
    assert server.run(OWN, out, resume=True) == 0
    assert digit_runs.outcome(out) == digit_runs.outcome(whole)
    assert any(row["event"] == "loaded" for row in rows(out)[killed_at:])


@pytest.mark.slow
def test_ctrl_c_leaves_a_run_that_goes_on(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "run"
    at = At(whole.expressions // 2, signal=signal.SIGINT)
    assert server.run(LONG, out, at=at, workers=1, looks=True, checkpoint_interval_s=CHUNKS) == INTERRUPTED
    interrupted = rows(out)
    assert server.run(LONG, out) == REFUSED
    assert "go on with --resume" in last_message(out)
    assert rows(out) == interrupted

    assert server.run(LONG, out, resume=True, workers=1) == 0
    assert digit_runs.outcome(out) == whole.outcome
    after = rows(out)[len(interrupted) :]
    assert any(row["event"] == "loaded" for row in after)
    assert len(set(trained(interrupted)) & set(trained(after))) <= len(trained(since_checkpoint(interrupted)))


@pytest.mark.slow
def test_a_folder_takes_one_run_at_a_time(server: RunServer, whole: Whole, tmp_path: Path) -> None:
    out = tmp_path / "run"
    process = server.start(LONG, out, at=At(1, signal=signal.SIGSTOP), workers=1)
    assert server.wait(process) == -signal.SIGSTOP
    for resume in (True, False):
        assert server.run(LONG, out, resume=resume) == REFUSED
        assert "another run is at work" in last_message(out) or not resume
    os.kill(process, signal.SIGCONT)
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
    mostly_long(
        [
            ({"executor": "serial", "precision": "float64"}, "--executor serial --precision float64"),
            ({"executor": "processes", "workers": 1}, "--executor processes"),
        ],
        now=[({"executor": "serial", "precision": "float64"}, "--executor serial --precision float64")],
    ),
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
    here = family.replace("plain-5", "batched-5").replace("float64", "float32")
    assert str(refusal.value) == (
        f"the run in {tmp_path / 'run'} was begun with the arithmetic {show(family)} and would go on with {here!r}; "
        f"numbers would differ, so go on with {options}, or choose another folder with --out"
    )
    run(digit_runs.scenario(), out=tmp_path / "run", resume=True, **begun)


def test_a_run_of_an_older_fedsim_cannot_go_on(tmp_path: Path) -> None:
    interrupted(tmp_path)
    path = tmp_path / "manifest.json"
    manifest = json.loads(path.read_bytes())
    family = manifest["numeric_family"]
    manifest["numeric_family"] = family.replace("/even-work", "/even-sums")
    del manifest["executor"], manifest["worker_peak_memory_bytes"]
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError) as refusal:
        run(digit_runs.scenario(), out=tmp_path, resume=True)
    assert str(refusal.value) == (
        f"the run in {tmp_path} was begun with the arithmetic {show(manifest['numeric_family'])} and would go on with "
        f"{family!r}; numbers would differ, so choose another folder with --out"
    )


@pytest.mark.parametrize("executor", ["batched", "processes"])
def test_a_run_of_very_different_clients_that_was_killed_goes_on(
    server: RunServer, tmp_path: Path, executor: str
) -> None:
    """Where each client is a job, it is killed while some models are added up, and others wait for their turn."""
    killed_again_and_again(server, UNEVEN, tmp_path, kills=3, executor=executor, workers=3)
    run(Scenario.model_validate(UNEVEN), out=tmp_path / "alone", executor=executor, workers=1)
    assert digit_runs.outcome(tmp_path / "run") == digit_runs.outcome(tmp_path / "alone")


@pytest.mark.drawn
def test_a_run_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    """From one process to two, and back, in another executor: the arithmetic is the same, so are the bytes."""
    one: dict[str, Any] = {"executor": "serial"}
    two: dict[str, Any] = {"executor": "processes", "workers": 2}
    outcomes = []
    for first, second in ((one, one), (one, two), (two, one)) if FULL else ((one, two), (two, one)):
        out = tmp_path / f"{len(outcomes)}"
        with pytest.raises(KeyboardInterrupt):
            run(digit_runs.scenario(), out=out, observer=Impatient(), checkpoint_interval_s=1e-9, **first)
        results = run(digit_runs.scenario(), out=out, resume=True, **second)
        assert results.manifest["executor"]["workers"] == second.get("workers", 1)
        assert {row["event"] for row in rows(out)} >= {"computed", "loaded"}
        outcomes.append(digit_runs.outcome(out))
    assert all(outcome == outcomes[0] for outcome in outcomes)


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
    mostly_long([TWO_PROTOCOLS, REMEMBERED], now=[REMEMBERED]),
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
            assert (
                found.startswith(b"process ") if path.parent.name == "claims" else (path.name, found) == ("lock", b"")
            )
    assert kinds == {".safetensors", ".json", ".jsonl", ".lock", ""}
