"""Workers begin when they are needed, end with who asked for them, and fail alone."""

from __future__ import annotations

import gc
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from obedient import children, done, free, is_all, job, part, pool_of

from fedsim.errors import Misfit, RunFailedError, UserError
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.wave import Wave
from fedsim.learning.executors.worker_pool import TrainJob
from fedsim.learning.executors.workers import Workers


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# ---------------------------------------------------------------------------------------------- beginning and ending


def test_a_crew_is_not_started_until_a_job_comes() -> None:
    before = children()
    pool = pool_of(3)
    assert pool.new_like(part()) is not None
    assert children() == before
    done(pool, job(part()))
    assert len(children() - before) == 3
    pool.close()
    assert children() == before
    ((made,),) = done(pool, job(part(1)))
    assert is_all(made["classifier"], 2)
    pool.close()
    assert children() == before


def held_by_this_process() -> tuple[set[int], int, int]:
    gc.collect()
    mapped = Path("/proc/self/maps").read_text().count("/dev/zero")
    return children(), len(os.listdir("/proc/self/fd")), mapped


@pytest.mark.parametrize("how", ["closed", "collected", "killed"])
def test_an_ended_crew_leaves_no_process_no_file_and_no_memory(how: str) -> None:
    before = held_by_this_process()
    pool = pool_of(2)
    first, second = done(pool, job(part()), job(part()))
    assert held_by_this_process() != before
    if how == "closed":
        pool.close()
    elif how == "killed":
        for process in children() - before[0]:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(RunFailedError):
            done(pool, job(part()))
    del pool
    assert is_all(first[0]["classifier"], 1), "what somebody holds stays"
    del first, second
    assert held_by_this_process() == before


def elsewhere(run: Callable[[int], None]) -> tuple[int, int]:
    """Run *run* in a process of its own, with a pipe to write to; its id, and the end to read from."""
    ours, theirs = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about threads of the test runner
        process = os.fork()
    if process == 0:
        try:
            os.setsid()
            run(theirs)
            os._exit(0)
        finally:
            os._exit(1)
    os.close(theirs)
    return process, ours


def two_crews_at_work(pipe: int) -> None:
    pools = [pool_of(2), pool_of(1)]
    tickets = [pool.begin(job(part(), do=["sleep"])) for pool in pools]
    try:
        os.write(pipe, (" ".join(map(str, children())) + "\n").encode())
        pools[0].finish(tickets[0])
    except KeyboardInterrupt:
        for pool in pools:
            pool.forget()
        assert not children()
    else:
        raise AssertionError("not interrupted")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda number: number.name)
def test_a_process_that_is_ended_takes_its_workers_along_in_the_middle_of_their_work(number: signal.Signals) -> None:
    process, pipe = elsewhere(two_crews_at_work)
    with open(pipe) as lines:
        workers = [int(word) for word in lines.readline().split()]
    assert len(workers) == 3
    assert all(map(alive, workers))
    if number == signal.SIGINT:
        os.killpg(process, number)  # as from a terminal
    else:
        os.kill(process, number)
    status = os.waitpid(process, 0)[1]
    assert status == (0 if number == signal.SIGINT else number)
    for _ in range(200):
        if not any(map(alive, workers)):
            return
        time.sleep(0.01)
    raise AssertionError(f"{workers} are alive")


def test_an_interrupt_while_workers_are_made_comes_once_all_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    before, fork, pool = children(), os.fork, pool_of(2)

    def interrupted_fork() -> int:
        signal.raise_signal(signal.SIGINT)
        process = fork()
        if process:
            signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(os, "fork", interrupted_fork)
    with pytest.raises(KeyboardInterrupt):
        pool.begin(job(part()))
    assert len(children() - before) == 2
    pool.close()
    assert children() == before


def test_what_a_worker_prints_is_seen_once(pool: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("said before\n")
    done(pool, job(part(), do=["say"]), job(part()))
    pool.close()
    assert capfd.readouterr().out == "said before\nsaid by a worker\n"


def test_elsewhere_than_on_linux_the_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="2 worker processes .* need Linux; .* --workers 1"):
        pool_of(2)


# ------------------------------------------------------------------------------------------------------------ failures


def test_a_users_mistake_is_raised_as_it_is_and_other_jobs_go_on(pool: Workers) -> None:
    tickets = [pool.begin(job(part(number), do=["misfit"] if number == 1 else ())) for number in range(4)]
    processes = children()
    for number, ticket in enumerate(tickets):
        if number == 1:
            with pytest.raises(Misfit, match="^rate=3 must be less$") as raised:
                pool.finish(ticket)
            assert raised.value.key == ("training", 2, "rate")
            assert not hasattr(raised.value, "__notes__")
        else:
            assert is_all(pool.finish(ticket)[0]["classifier"], number + 1)
    assert children() == processes


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [("divide", ZeroDivisionError, "division by zero"), ("not_sent", RuntimeError, "NotSent: ")],
)
def test_any_other_error_is_raised_with_the_way_to_it(
    pool: Workers, what: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as raised:
        done(pool, job(part(), do=[what]))
    (note,) = raised.value.__notes__
    assert "In a worker process" in note
    assert f"in {what}" in note
    assert is_all(done(pool, job(part()))[0][0]["classifier"], 1)


def test_pytorchs_refusal_to_train_after_a_fork_is_said_in_our_words(pool: Workers) -> None:
    """Seen on a machine with a GPU, where this process had trained before."""
    with pytest.raises(UserError, match="^this process has trained before, on a machine with a GPU, .*: --workers 1$"):
        done(pool, job(part(), do=["miss_threads"]))


def test_a_job_that_cannot_be_sent_fails_alone(pool: Workers) -> None:
    unsendable = replace(job(part()).wave.trainings[0], stream=lambda: None)
    tickets = [pool.begin(job(part(number), do=["doze"])) for number in range(5)]
    ticket = pool.begin(TrainJob(Wave((unsendable,)), (part(),)))
    last = pool.begin(job(part(5)))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pool.finish(ticket)
    assert all(is_all(pool.finish(one)[0]["classifier"], number + 1) for number, one in enumerate([*tickets, last]))


@pytest.mark.parametrize(
    ("what", "message"),
    [("die", "^a worker process was killed, .* fewer --workers$"), ("leave", "^a worker process left by itself; ")],
)
def test_a_worker_that_dies_is_reported_and_the_pool_goes_on(pool: Workers, what: str, message: str) -> None:
    before = children()
    tickets = [pool.begin(job(part(number), do=[what] if number == 2 else ["doze"])) for number in range(8)]
    with pytest.raises(RunFailedError, match=message):
        pool.finish(tickets[2])
    with pytest.raises(RunFailedError, match=message):
        pool.finish(tickets[7])
    assert children() == before, "none is left, nor waits to be waited for"
    del tickets
    results = done(pool, *(job(part(number)) for number in range(8)))
    assert all(is_all(made["classifier"], number + 1) for number, (made,) in enumerate(results))


def test_workers_killed_while_they_are_idle_are_noticed(pool: Workers) -> None:
    before = children()
    done(pool, job(part()))
    for process in children() - before:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(RunFailedError, match="was killed"):
        done(pool, job(part()))
    assert is_all(done(pool, job(part()))[0][0]["classifier"], 1)


def test_what_a_trainer_says_when_it_is_made_is_raised() -> None:
    def hire(_: str) -> Trainer:
        raise UserError("no such model")

    pool = pool_of(2, hire)
    with pytest.raises(UserError, match="^no such model$"):
        done(pool, job(part()))
    pool.close()


def test_jobs_that_are_forgotten_are_dropped_at_once(pool: Workers) -> None:
    done(pool, job(part()))
    processes, blocks = children(), free(pool)
    pool.forget()
    assert children() == processes, "with nothing to drop the workers stay"
    tickets = [pool.begin(job(part(), do=["sleep"])) for _ in range(6)]
    pool.forget()
    assert free(pool) == blocks
    for ticket in tickets:
        with pytest.raises(RuntimeError, match="dropped"):
            pool.finish(ticket)
    assert is_all(done(pool, job(part()))[0][0]["classifier"], 1)
