"""Waves whose chains are jobs of their own: they come to what the whole wave comes to, whoever is done first."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from typing import Any

import pytest
from obedient import CLASSIFIER, children, done, free, is_all, job, part, pool_of, told

from fedsim.errors import Misfit, RunFailedError
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.chains import chain_jobs
from fedsim.learning.executors.schedule import WAITING
from fedsim.learning.executors.tickets import Ticket
from fedsim.learning.executors.wave import Made, Wave, WeightedSum
from fedsim.learning.executors.worker_pool import TrainJob
from fedsim.learning.executors.workers import Workers

STREAM = Stream(1, "batches")


def wave(*trainings: dict[str, Any], wanted: Sequence[int] = (), base: float = 0.0) -> TrainJob:
    """Trainings from models that are all 0, 1, ..., and the sum of what they come to; some models are *wanted*."""
    chains = tuple(
        told(STREAM, {CLASSIFIER: at}, ("classifier",) if at in wanted else (), **about)
        for at, about in enumerate(trainings)
    )
    count = len(chains)
    total = WeightedSum(
        tuple(2.0**-at for at in range(count)), ("classifier",), {"classifier": count}, (*range(count),)
    )
    return TrainJob(Wave(chains, (total,)), [*map(part, range(count)), part(base)])


def test_the_sum_is_made_in_its_order_whoever_is_done_first(pool: Workers) -> None:
    """In float32 the order counts: twice 1.5 beside 2**25 is seen only if the small ones come first."""
    large, one = {"plus": 2**25, "do": ["doze"], "samples": 2}, {"plus": 0, "samples": 1}
    trainings = (told(STREAM, {CLASSIFIER: 0}, (), **large), *[told(STREAM, {CLASSIFIER: 1}, (), **one)] * 2)
    for order, expected in (((0, 1, 2), 2.0**25), ((1, 2, 0), 2.0**25 + 4)):
        total = WeightedSum((1.0,) * 3, ("classifier",), {}, (0, 1, 2))
        given = TrainJob(Wave(tuple(trainings[at] for at in order), (total,)), [part(0), part(1.5)])
        ticket = pool.begin_apart(given)
        *made, found = pool.finish(ticket)
        assert made == [{}, {}, {}]
        assert is_all(found["classifier"], expected)


def test_models_that_somebody_wants_are_kept_as_they_were_made(pool: Workers) -> None:
    blocks = free(pool)
    job_of_five = wave(*[{"samples": 5 - number} for number in range(5)], wanted=(1, 3), base=1.0)
    *made, total = pool.finish(pool.begin_apart(job_of_five))
    assert [list(outputs) for outputs in made] == [[], ["classifier"], [], ["classifier"], []]
    assert is_all(made[1]["classifier"], 2) and is_all(made[3]["classifier"], 4)
    assert is_all(total["classifier"], sum(number * 2.0**-number for number in range(5)))
    del made, total
    assert free(pool) == blocks, "models that were added up are in nobody's way"


def test_two_sums_of_the_same_models_do_not_disturb_each_other(pool: Workers) -> None:
    given = wave({}, {})
    sums = (*given.wave.sums, WeightedSum((1.0, 1.0), ("classifier",), {"classifier": 0}, (0, 1)))
    *_, first, second = pool.finish(pool.begin_apart(TrainJob(Wave(given.wave.trainings, sums), given.values)))
    assert is_all(first["classifier"], 1 + 2 / 2)
    assert is_all(second["classifier"], 1 + 2)


def test_a_chain_is_one_job_and_begins_where_it_begins(pool: Workers) -> None:
    trainings = (
        told(STREAM, {CLASSIFIER: 0}, ()),
        told(STREAM, {CLASSIFIER: Made(0, "classifier")}, ("classifier",)),
        told(STREAM, {CLASSIFIER: 1}, ()),
        told(STREAM, {CLASSIFIER: Made(2, "classifier")}, ()),
    )
    total = WeightedSum((1.0, 1.0), ("classifier",), {}, (1, 3))
    given = TrainJob(Wave(trainings, (total,)), [part(10), part(20)])
    assert given.wave.chains == [range(2), range(2, 4)]
    jobs = [one.job for one in chain_jobs(given, flops=1.0, workers=3)]
    assert [(len(one.wave.trainings), len(one.values)) for one in jobs] == [(2, 1), (2, 1)], "with what each needs"
    # What the chain hands on must be wanted by the trainer of these tests; real ones keep it by themselves.
    handing_on = tuple(told(STREAM, one.inputs, ("classifier",)) for one in trainings)
    *made, found = pool.finish(pool.begin_apart(TrainJob(Wave(handing_on, (total,)), given.values)))
    assert [is_all(outputs["classifier"], number) for outputs, number in zip(made, (11, 12, 21, 22), strict=True)]
    assert is_all(found["classifier"], 12 + 22)


@pytest.mark.parametrize(
    ("flops", "workers", "expected"),
    [
        (1.0, 1, [4, 4]),
        (1.0, 2, [2, 2, 2, 2]),
        (1.0, 3, [2, 2, 2, 2]),
        (1.0, 4, [1] * 8),
        (1e9, 1, [2] * 4),
        (2e9, 1, [1] * 8),
    ],
)
def test_chains_that_take_no_time_stay_together_where_there_are_jobs_enough(
    flops: float, workers: int, expected: list[int]
) -> None:
    given = wave(*[{}] * 8)
    jobs = chain_jobs(given, flops=flops, workers=workers)
    assert [one.chains for one in jobs] == [len(one.job.wave.trainings) for one in jobs] == expected
    assert [one.flops for one in jobs] == [flops * chains for chains in expected]


def test_the_first_mistake_in_order_is_raised_and_others_go_on(pool: Workers) -> None:
    broken = wave(
        {"samples": 9}, {"do": ["doze", "doze", "misfit"], "samples": 8}, {"do": ["divide"], "samples": 7}, {}
    )
    tickets = [pool.begin_apart(some) for some in (broken, wave({}, {}))]
    with pytest.raises(Misfit, match="^rate=3 must be less$"):
        pool.finish(tickets[0])
    assert is_all(pool.finish(tickets[1])[-1]["classifier"], 2)
    assert is_all(done(pool, job(part()))[0][0]["classifier"], 1)


def test_a_worker_that_dies_ends_all_waves_and_the_pool_goes_on(pool: Workers) -> None:
    tickets = [pool.begin_apart(wave({"do": [what]}, *[{"do": ["doze"]}] * 5)) for what in ("sleep", "die")]
    for ticket in tickets:
        with pytest.raises(RunFailedError, match="was killed"):
            pool.finish(ticket)
    assert is_all(pool.finish(pool.begin_apart(wave({}, {})))[-1]["classifier"], 2)


def test_waves_that_are_forgotten_are_dropped_at_once(pool: Workers) -> None:
    done(pool, job(part()))
    blocks = free(pool)
    ticket = pool.begin_apart(wave(*[{"do": ["sleep"]}] * 6))
    pool.begin(job(part()))  # hands out
    pool.forget()
    with pytest.raises(RuntimeError, match="dropped"):
        pool.finish(ticket)
    assert free(pool) == blocks
    assert is_all(pool.finish(pool.begin_apart(wave({}, {})))[-1]["classifier"], 2)


def test_workers_killed_in_the_middle_of_a_wave_are_noticed(pool: Workers) -> None:
    before = children()
    ticket = pool.begin_apart(wave(*[{"do": ["sleep"]}] * 4))
    pool.begin(job(part(), do=["sleep"]))
    for process in children() - before:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(RunFailedError, match="was killed"):
        pool.finish(ticket)


def test_few_models_wait_for_the_one_that_is_added_up_first(monkeypatch: pytest.MonkeyPatch) -> None:
    pool, most, end = pool_of(2), 0, Ticket.end
    open_ones: list[Ticket] = []

    def noted(ticket: Ticket, *outcome: Any) -> None:
        nonlocal most
        end(ticket, *outcome)
        open_ones.append(ticket)
        waiting = [one.results for one in open_ones if one.line is not None and one.place > one.line.taken]
        most = max(most, sum(waiting))

    monkeypatch.setattr(Ticket, "end", noted)
    slow = wave({"do": ["doze"] * 10, "samples": 9}, *[{"samples": 9}] * 7)
    *_, total = pool.finish(pool.begin_apart(slow))
    pool.close()
    assert is_all(total["classifier"], sum((number + 1) * 2.0**-number for number in range(8)))
    assert 2 < most <= WAITING * 2
