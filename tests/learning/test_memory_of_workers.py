"""What workers are given and what they make: in blocks of memory that they share with who asked, or sent."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from obedient import CLASSIFIER, Obedient, Told, done, free, is_all, job, part, told
from small_learner import CLASSES, SHAPE, table

from fedsim.kernel.streams import Stream
from fedsim.learning.executors.shared_tensors import SharedTensors
from fedsim.learning.executors.wave import Made, Wave, WeightedSum
from fedsim.learning.executors.worker_pool import ScoreJob, TrainJob
from fedsim.learning.executors.workers import Workers
from fedsim.learning.operations.operation import Slot
from fedsim.models.layers import Flatten, Linear
from fedsim.models.table import LayerTable

STATE = Slot("state", part="v")


def test_all_workers_have_work_though_a_part_has_no_numbers() -> None:
    layers = LayerTable(input_shape=SHAPE, extractor=(Flatten("flatten"),), classifier=(Linear("fc", 4, CLASSES),))
    pool = Workers(Obedient, 3, [layers], torch.float32)
    both = job(part(), do=["doze"], wanted=("extractor", "classifier"), inputs={Slot("model", part="extractor"): 1})
    tickets = [pool.begin(TrainJob(both.wave, (part(), {}))) for _ in range(3)]
    assert [len(tasks) for tasks in pool._hands.values()] == [1, 1, 1]
    assert all(pool.finish(ticket)[0]["extractor"] == {} for ticket in tickets)
    pool.close()


def test_blocks_are_free_again_once_nobody_holds_what_was_in_them(pool: Workers) -> None:
    value, blocks = part(), free(pool)
    for number in range(200):
        (first,), (second,) = done(pool, job(value), job(value))
        assert is_all(first["classifier"], number + 1) and is_all(second["classifier"], number + 1)
        value = first["classifier"]
        assert pool._shared.locate(value).number >= 0
    used = pool._shared.locate(value).number
    assert used < 8, "few are in turn, so little memory is in use"
    assert free(pool) == blocks - 2
    del first, second, value
    assert free(pool) == blocks


def test_what_several_jobs_take_is_copied_once_and_what_workers_made_never(
    pool: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[object] = []
    fill = SharedTensors.fill
    monkeypatch.setattr(SharedTensors, "fill", lambda *arguments: (copies.append(arguments[1]), fill(*arguments))[1])
    base = part(5)
    results = done(pool, *(job(base, do=["doze"]) for _ in range(4)))
    assert len(copies) == 1
    made = pool.new_like(base)
    for name, tensor in results[0][0]["classifier"].items():
        torch.add(tensor, 1, out=made[name])
    ((last, other),) = done(pool, job(made, results[1][0]["classifier"]))
    assert is_all(last["classifier"], 8) and is_all(other["classifier"], 7)
    assert len(copies) == 1


def test_any_number_of_models_can_be_held_and_trained_on(pool: Workers) -> None:
    """More than there are blocks, in jobs of their own and in one that takes and makes them all."""
    blocks = free(pool)
    many = 2 * blocks
    held = [made["classifier"] for (made,) in done(pool, *(job(part(number)) for number in range(many)))]
    located = sum(pool._shared.locate(value) is not None for value in held)
    assert 0 < located < many
    assert free(pool) == blocks - located
    more = list(iter(lambda: pool.new_like(part()), None))
    assert free(pool) == 17, "what jobs may need is not given away"
    for _ in range(2):
        again, other = done(pool, job(*held), job(*held[:20]))
        assert all(is_all(made["classifier"], number + 2) for number, made in enumerate(again))
        assert all(is_all(made["classifier"], number + 2) for number, made in enumerate(other))
    assert all(is_all(value, number + 1) for number, value in enumerate(held))
    del held, again, other, more
    assert free(pool) == blocks


def test_large_values_that_are_not_in_blocks_go_both_ways_at_once(pool: Workers) -> None:
    """Neither side waits for the other to read: these are more than fits in a pipe, by far."""
    memories = [{"way": torch.full((500_000,), float(number))} for number in range(8)]
    tickets = []
    for number, memory in enumerate(memories):
        order = job(part(number), wanted=("classifier", "state.v"), inputs={STATE: 1})
        tickets.append(pool.begin(replace(order, values=(*order.values, memory))))
    for number, ticket in enumerate(tickets):
        (made,) = pool.finish(ticket)
        assert is_all(made["classifier"], number + 1)
        assert torch.equal(made["state.v"]["way"], memories[number]["way"] + 1)


def test_values_of_any_kind_arrive_as_they_were(pool: Workers) -> None:
    memory = {
        "whole": torch.tensor([1, -(2**60)]),
        "half": torch.randn(2, 3).bfloat16(),
        "complex": torch.randn(2, dtype=torch.complex128),
        "single": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "turned": torch.randn(3, 4).t()[1:, ::2],
        "special": torch.tensor([float("inf"), -0.0, 1e-42]),
    }
    order = job(part(), wanted=("state.v",), inputs={STATE: 1})
    (training,) = order.wave.trainings
    wave = Wave((replace(training, about=Told(plus=0)),))
    ((made,),) = done(pool, TrainJob(wave, (part(), memory)))
    found = made["state.v"]
    assert list(found) == list(memory)
    for name, tensor in memory.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_chains_and_sums_of_some_parts_come_back_in_order(pool: Workers) -> None:
    stream, start, base = Stream(1, "batches"), part(1), part(7)
    trainings = (
        told(stream, {CLASSIFIER: 0}, ("classifier",)),
        told(stream, {CLASSIFIER: Made(0, "classifier")}, ()),
        told(stream, {CLASSIFIER: Made(0, "classifier")}, ("classifier",), plus=10),
    )
    wave = Wave(trainings, (WeightedSum((1.0,), ("classifier",), {"classifier": 1}, (2,)),))
    (results,) = done(pool, TrainJob(wave, (start, base)))
    first, second, third, total = results
    assert is_all(first["classifier"], 2) and not second
    assert is_all(third["classifier"], 12) and is_all(total["classifier"], 7)
    assert total["classifier"]["fc.bias"].data_ptr() != base["fc.bias"].data_ptr()


def test_scores_are_those_of_the_batches(pool: Workers) -> None:
    jobs = [
        ScoreJob(table().digest, ("classifier",), (part(number),), (np.arange(2), np.arange(number)))
        for number in range(5)
    ]
    results = done(pool, *jobs)
    found = [[(loss, right, predicted.tolist()) for loss, right, predicted in scores] for scores in results]
    assert found == [
        [(float(CLASSES * number), 2, [0, 1]), (float(CLASSES * number), number, [*range(number)])]
        for number in range(5)
    ]
