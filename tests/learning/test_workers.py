"""Workers: the bytes of one process, in any number of them, whatever happens to one of them."""

from __future__ import annotations

import gc
import math
import os
import pickle
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_learner import CLASSES, CLIENTS, SAMPLES, SHAPE, TRAINING, data, small, table, tensors
from test_objectives import Drifting, drifting
from tiers import FULL, mostly_long

from fedsim.errors import Misfit, RunFailedError, UserError
from fedsim.kernel.streams import Stream, Streams
from fedsim.learning.executors.arena import Arena
from fedsim.learning.executors.crew import Crew, ScoreJob, TrainJob
from fedsim.learning.executors.executor import Executor
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.trainer import Part, Score, Trainer
from fedsim.learning.executors.wave import Made, Training, Wave, WeightedSum
from fedsim.learning.executors.workers import Workers
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.learner import Contribution, Model
from fedsim.learning.objectives import Objective, Plain, Proximal
from fedsim.learning.store import Store
from fedsim.models.layers import BatchNorm2d, Conv2d, Dropout, Flatten, Linear, ReLU
from fedsim.models.table import LayerTable

__all__ = ["drifting"]  # the fixture

LAYERS = LayerTable(
    input_shape=SHAPE,
    extractor=(Conv2d("conv", 1, 3, kernel=1), BatchNorm2d("bn", 3), ReLU("relu"), Flatten("flatten")),
    classifier=(Linear("fc1", 12, 20), Dropout("dropout", 0.5), Linear("fc2", 20, CLASSES)),
)
DATA = replace(data(), unseen_test_ids=(data().test_ids[:4], data().test_ids[4:]))

# ------------------------------------------------------------------------------------- the same as in one process


def outcome(folder: Path, executor: Executor, objective: Objective) -> dict[str, Any]:
    """Of two rounds with waves, chains, models that are held, memories and all test sets."""
    store = Store(folder, "run", executor, label="protocol/1")
    graph = Graph("one family, to compare")
    forcer = Forcer(graph, executor, store, checkpoint_interval_s=math.inf)
    learner = GraphLearner(
        graph=graph,
        forcer=forcer,
        store=store,
        table=LAYERS,
        dataset=DATA,
        training=TRAINING,
        streams=Streams(1),
        tags={},
    )
    found: dict[str, Any] = {}
    model = learner.initial_model()
    memories: list[Model] = [{}] * CLIENTS
    for round_number in (1, 2):
        held, contributions = [], []
        for number in range(12):
            client, use = number % CLIENTS, 10 * round_number + number // CLIENTS
            step = {"objective": objective, "round_number": round_number}
            trained = learner.train(model, client, use=2 * use, state=memories[client], **step)
            memories[client] = trained.state
            if number % 4 == 1:  # two in sequence
                trained = learner.train(trained.model, client, use=2 * use + 1, state=trained.state, **step)
            if number % 4 == 2:  # and one who sends its classifier only, and changes no more
                trained = learner.train({"classifier": model["classifier"]} | trained.model, client, use=99, **step)
            if number % 5 == 0:
                held.append(trained.model)
            contributions.append(Contribution(client, trained.model, SAMPLES + number))
        model = learner.mean(model, contributions, round_number=round_number)
        for on in ("global", "clients", "unseen"):
            found[f"{round_number} {on}"] = learner.evaluate(model, on, round_number=round_number)
        for name, parts in {"model": model, **{str(n): one for n, one in enumerate(held)}}.items():
            for handle in parts.values():
                forcer.force(handle)
            found |= {f"{round_number} {name}.{key}": tensor for key, tensor in tensors(parts).items()}
    for client, memory in enumerate(memories):
        for handle in memory.values():
            forcer.force(handle)
        found |= {f"{client}.{name}": tensor for name, tensor in tensors(memory).items()}
    store.close()
    executor.close()
    return found


ALL_MEMORIES, MU = ("float32", Drifting(0.5)), ("float64", Proximal(0.1))


@pytest.mark.drawn
@pytest.mark.parametrize(("precision", "objective"), mostly_long([ALL_MEMORIES, MU], now=[ALL_MEMORIES]))
def test_any_number_of_workers_gives_the_bytes_of_the_serial_executor(
    tmp_path: Path, drifting: Drifting, precision: str, objective: Objective
) -> None:
    expected = outcome(tmp_path / "serial", Serial(LAYERS, DATA, precision=precision), objective)
    assert len(expected) > 50
    for workers in (1, 2, 3) if FULL else (2,):
        found = outcome(
            tmp_path / str(workers), Processes(LAYERS, DATA, precision=precision, workers=workers), objective
        )
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            if isinstance(value, torch.Tensor):
                assert value.dtype == found[name].dtype == getattr(torch, precision)
                assert torch.equal(found[name], value), name
            else:
                assert found[name] == value, name


def test_no_output_shares_memory_with_an_input_and_no_input_changes(tmp_path: Path) -> None:
    executor = Processes(table(), data(), workers=2)
    run = small(tmp_path, executor=executor)
    learner, force = run.learner, run.learner._forcer.force
    model = learner.initial_model()
    trained = [
        learner.train(model, client, objective=Plain(), use=0, round_number=1).model for client in range(CLIENTS)
    ]
    mean = learner.mean(model, [Contribution(c, m, SAMPLES) for c, m in enumerate(trained)], round_number=1)
    again = learner.train(mean, 0, objective=Plain(), use=1, round_number=2).model
    force(model["classifier"])
    before = {name: tensor.clone() for name, tensor in tensors(model).items()}
    for one in trained:
        force(one["classifier"])
    copies = [{name: tensor.clone() for name, tensor in tensors(one).items()} for one in trained]
    force(again["classifier"])
    learner.evaluate(again, "global", round_number=2)
    run.store.close()
    executor.close()
    pointers = [tensor.data_ptr() for one in (model, *trained, again) for tensor in tensors(one).values()]
    assert len(set(pointers)) == len(pointers)
    for one, copy in zip([model, *trained], [before, *copies], strict=True):
        assert all(torch.equal(tensors(one)[name], tensor) for name, tensor in copy.items())


# ------------------------------------------------------------------------------------------------- a trainer to order


class NotSent(Exception):
    """Cannot be pickled."""

    def __init__(self) -> None:
        super().__init__("a", "b")


class Obedient(Trainer):
    """Does what a training's parameters say; its model is the one it was given, plus a number."""

    def __init__(self) -> None:
        """It needs neither table nor data."""

    def train(self, wave: Wave, values: Sequence[Part]) -> list[dict[str, Part]]:
        outputs: list[dict[str, Part]] = []
        for training in wave.trainings:
            for what in training.parameters.get("do", ()):
                getattr(self, what)()
            made: dict[str, Part] = {}
            for name in training.wanted:
                source = training.inputs[name if name.startswith("state.") else f"model.{name}"]
                given = outputs[source.training][source.output] if isinstance(source, Made) else values[source]
                made[name] = {key: tensor + training.parameters.get("plus", 1) for key, tensor in given.items()}
            outputs.append(made)
        if wave.sum:
            outputs.append({part: dict(values[at]) for part, at in wave.sum.base.items()})
        return outputs

    def features(self, *_: Any) -> list[torch.Tensor]:
        raise NotImplementedError

    def score(self, model: Mapping[str, Part], batches: Sequence[np.ndarray]) -> list[Score]:
        return [Score(float(sum(part["fc.bias"].sum() for part in model.values())), len(ids)) for ids in batches]

    def die(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def leave(self) -> None:
        os._exit(3)

    def sleep(self) -> None:
        time.sleep(60)

    def doze(self) -> None:
        time.sleep(0.05)

    def misfit(self) -> None:
        raise Misfit("rate=3 must be less", "training", 2, "rate")

    def divide(self) -> None:
        assert 1 / 0

    def say(self) -> None:
        sys.stdout.write("said by a worker\n")

    def not_sent(self) -> None:
        raise NotSent


def crew_of(workers: int, hire: Callable[[], Trainer] = Obedient) -> Workers:
    return Workers(hire, workers, table(), torch.float32)


@pytest.fixture
def crew() -> Iterator[Workers]:
    made = crew_of(2)
    yield made
    made.close()


def part(number: float = 0.0) -> Part:
    return {name: torch.full(shape, float(number)) for name, shape in table().state_shapes("classifier").items()}


def job(*values: Part, do: Sequence[str] = (), wanted: tuple[str, ...] = ("classifier",), **inputs: int) -> TrainJob:
    """One training for each value."""
    trainings = [
        Training({"do": do}, Stream(1, "batches"), {"model.classifier": at} | inputs, wanted)
        for at in range(len(values))
    ]
    return TrainJob(Wave(tuple(trainings), None), values)


def done(crew: Crew, *jobs: TrainJob) -> list[list[dict[str, Part]]]:
    return [crew.finish(ticket) for ticket in [crew.begin(job) for job in jobs]]


def is_all(value: Part, number: float) -> bool:
    return value.keys() == part().keys() and all((tensor == number).all() for tensor in value.values())


def free(crew: Workers) -> int:
    return crew._arena.free("classifier")


def children() -> set[int]:
    """Processes that this one has started and not waited for."""
    found = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            _, parent = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            found.add(int(folder.name))
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


# ---------------------------------------------------------------------------------------------- beginning and ending


def test_a_crew_is_not_started_until_a_job_comes() -> None:
    before = children()
    crew = crew_of(3)
    assert crew.new_part("classifier") is not None
    assert children() == before
    done(crew, job(part()))
    assert len(children() - before) == 3
    crew.close()
    assert children() == before
    ((made,),) = done(crew, job(part(1)))
    assert is_all(made["classifier"], 2)
    crew.close()
    assert children() == before


def held_by_this_process() -> tuple[set[int], int, int]:
    gc.collect()
    mapped = Path("/proc/self/maps").read_text().count("/dev/zero")
    return children(), len(os.listdir("/proc/self/fd")), mapped


@pytest.mark.parametrize("how", ["closed", "collected", "killed"])
def test_an_ended_crew_leaves_no_process_no_file_and_no_memory(how: str) -> None:
    before = held_by_this_process()
    crew = crew_of(2)
    first, second = done(crew, job(part()), job(part()))
    assert held_by_this_process() != before
    if how == "closed":
        crew.close()
    elif how == "killed":
        for process in children() - before[0]:
            os.kill(process, signal.SIGKILL)
        with pytest.raises(RunFailedError):
            done(crew, job(part()))
    del crew
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
    crews = [crew_of(2), crew_of(1)]
    tickets = [crew.begin(job(part(), do=["sleep"])) for crew in crews]
    try:
        os.write(pipe, (" ".join(map(str, children())) + "\n").encode())
        crews[0].finish(tickets[0])
    except KeyboardInterrupt:
        for crew in crews:
            crew.forget()
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
    before, fork, crew = children(), os.fork, crew_of(2)

    def interrupted_fork() -> int:
        signal.raise_signal(signal.SIGINT)
        process = fork()
        if process:
            signal.raise_signal(signal.SIGINT)
        return process

    monkeypatch.setattr(os, "fork", interrupted_fork)
    with pytest.raises(KeyboardInterrupt):
        crew.begin(job(part()))
    assert len(children() - before) == 2
    crew.close()
    assert children() == before


def test_what_a_worker_prints_is_seen_once(crew: Workers, capfd: pytest.CaptureFixture[str]) -> None:
    sys.stdout.write("said before\n")
    done(crew, job(part(), do=["say"]), job(part()))
    crew.close()
    assert capfd.readouterr().out == "said before\nsaid by a worker\n"


def test_elsewhere_than_on_linux_the_user_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UserError, match="2 worker processes .* need Linux; .* --workers 1"):
        crew_of(2)


# ------------------------------------------------------------------------------------------------------------ failures


def test_a_users_mistake_is_raised_as_it_is_and_other_jobs_go_on(crew: Workers) -> None:
    tickets = [crew.begin(job(part(number), do=["misfit"] if number == 1 else ())) for number in range(4)]
    processes = children()
    for number, ticket in enumerate(tickets):
        if number == 1:
            with pytest.raises(Misfit, match="^rate=3 must be less$") as raised:
                crew.finish(ticket)
            assert raised.value.key == ("training", 2, "rate")
            assert not hasattr(raised.value, "__notes__")
        else:
            assert is_all(crew.finish(ticket)[0]["classifier"], number + 1)
    assert children() == processes


@pytest.mark.parametrize(
    ("what", "kind", "message"),
    [("divide", ZeroDivisionError, "division by zero"), ("not_sent", RuntimeError, "NotSent: ")],
)
def test_any_other_error_is_raised_with_the_way_to_it(
    crew: Workers, what: str, kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message) as raised:
        done(crew, job(part(), do=[what]))
    (note,) = raised.value.__notes__
    assert "In a worker process" in note
    assert f"in {what}" in note
    assert is_all(done(crew, job(part()))[0][0]["classifier"], 1)


def test_a_job_that_cannot_be_sent_fails_alone(crew: Workers) -> None:
    unsendable = replace(job(part()).wave.trainings[0], parameters={"what": lambda: None})
    tickets = [crew.begin(job(part(number), do=["doze"])) for number in range(5)]
    ticket = crew.begin(TrainJob(Wave((unsendable,), None), (part(),)))
    last = crew.begin(job(part(5)))
    with pytest.raises((AttributeError, pickle.PicklingError)):
        crew.finish(ticket)
    assert all(is_all(crew.finish(one)[0]["classifier"], number + 1) for number, one in enumerate([*tickets, last]))


@pytest.mark.parametrize(
    ("what", "message"),
    [("die", "^a worker process was killed, .* fewer --workers$"), ("leave", "^a worker process left by itself; ")],
)
def test_a_worker_that_dies_is_reported_and_the_crew_goes_on(crew: Workers, what: str, message: str) -> None:
    before = children()
    tickets = [crew.begin(job(part(number), do=[what] if number == 2 else ["doze"])) for number in range(8)]
    with pytest.raises(RunFailedError, match=message):
        crew.finish(tickets[2])
    with pytest.raises(RunFailedError, match=message):
        crew.finish(tickets[7])
    assert children() == before, "none is left, nor waits to be waited for"
    del tickets
    results = done(crew, *(job(part(number)) for number in range(8)))
    assert all(is_all(made["classifier"], number + 1) for number, (made,) in enumerate(results))


def test_workers_killed_while_they_are_idle_are_noticed(crew: Workers) -> None:
    before = children()
    done(crew, job(part()))
    for process in children() - before:
        os.kill(process, signal.SIGKILL)
    with pytest.raises(RunFailedError, match="was killed"):
        done(crew, job(part()))
    assert is_all(done(crew, job(part()))[0][0]["classifier"], 1)


def test_what_a_trainer_says_when_it_is_made_is_raised() -> None:
    def hire() -> Trainer:
        raise UserError("no such model")

    crew = crew_of(2, hire)
    with pytest.raises(UserError, match="^no such model$"):
        done(crew, job(part()))
    crew.close()


def test_jobs_that_are_forgotten_are_dropped_at_once(crew: Workers) -> None:
    done(crew, job(part()))
    processes, blocks = children(), free(crew)
    crew.forget()
    assert children() == processes, "with nothing to drop the workers stay"
    tickets = [crew.begin(job(part(), do=["sleep"])) for _ in range(6)]
    crew.forget()
    assert free(crew) == blocks
    for ticket in tickets:
        with pytest.raises(RuntimeError, match="dropped"):
            crew.finish(ticket)
    assert is_all(done(crew, job(part()))[0][0]["classifier"], 1)


# -------------------------------------------------------------------------------------------------------------- memory


def test_all_workers_have_work_though_a_part_has_no_numbers() -> None:
    layers = LayerTable(input_shape=SHAPE, extractor=(Flatten("flatten"),), classifier=(Linear("fc", 4, CLASSES),))
    crew = Workers(Obedient, 3, layers, torch.float32)
    wanted = {"wanted": ("extractor", "classifier"), "model.extractor": 1}
    tickets = [crew.begin(TrainJob(job(part(), do=["doze"], **wanted).wave, (part(), {}))) for _ in range(3)]
    assert [len(tasks) for tasks in crew._hands.values()] == [1, 1, 1]
    assert all(crew.finish(ticket)[0]["extractor"] == {} for ticket in tickets)
    crew.close()


def test_blocks_are_free_again_once_nobody_holds_what_was_in_them(crew: Workers) -> None:
    value, blocks = part(), free(crew)
    for number in range(200):
        (first,), (second,) = done(crew, job(value), job(value))
        assert is_all(first["classifier"], number + 1) and is_all(second["classifier"], number + 1)
        value = first["classifier"]
        assert crew._arena.locate(value).number >= 0
    used = crew._arena.locate(value).number
    assert used < 8, "few are in turn, so little memory is in use"
    assert free(crew) == blocks - 2
    del first, second, value
    assert free(crew) == blocks


def test_what_several_jobs_take_is_copied_once_and_what_workers_made_never(
    crew: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies: list[object] = []
    fill = Arena.fill
    monkeypatch.setattr(Arena, "fill", lambda *arguments: (copies.append(arguments[1]), fill(*arguments))[1])
    base = part(5)
    results = done(crew, *(job(base, do=["doze"]) for _ in range(4)))
    assert len(copies) == 1
    made = crew.new_part("classifier")
    for name, tensor in results[0][0]["classifier"].items():
        torch.add(tensor, 1, out=made[name])
    ((last, other),) = done(crew, job(made, results[1][0]["classifier"]))
    assert is_all(last["classifier"], 8) and is_all(other["classifier"], 7)
    assert len(copies) == 1


def test_any_number_of_models_can_be_held_and_trained_on(crew: Workers) -> None:
    """More than there are blocks, in jobs of their own and in one that takes and makes them all."""
    blocks = free(crew)
    many = 2 * blocks
    held = [made["classifier"] for (made,) in done(crew, *(job(part(number)) for number in range(many)))]
    located = sum(crew._arena.locate(value) is not None for value in held)
    assert 0 < located < many
    assert free(crew) == blocks - located
    more = list(iter(lambda: crew.new_part("classifier"), None))
    assert free(crew) == 17, "what jobs may need is not given away"
    for _ in range(2):
        again, other = done(crew, job(*held), job(*held[:20]))
        assert all(is_all(made["classifier"], number + 2) for number, made in enumerate(again))
        assert all(is_all(made["classifier"], number + 2) for number, made in enumerate(other))
    assert all(is_all(value, number + 1) for number, value in enumerate(held))
    del held, again, other, more
    assert free(crew) == blocks


def test_large_values_that_are_not_in_blocks_go_both_ways_at_once(crew: Workers) -> None:
    """Neither side waits for the other to read: these are more than fits in a pipe, by far."""
    memories = [{"way": torch.full((500_000,), float(number))} for number in range(8)]
    tickets = []
    for number, memory in enumerate(memories):
        order = job(part(number), wanted=("classifier", "state.v"), **{"state.v": 1})
        tickets.append(crew.begin(replace(order, values=(*order.values, memory))))
    for number, ticket in enumerate(tickets):
        (made,) = crew.finish(ticket)
        assert is_all(made["classifier"], number + 1)
        assert torch.equal(made["state.v"]["way"], memories[number]["way"] + 1)


def test_values_of_any_kind_arrive_as_they_were(crew: Workers) -> None:
    memory = {
        "whole": torch.tensor([1, -(2**60)]),
        "half": torch.randn(2, 3).bfloat16(),
        "complex": torch.randn(2, dtype=torch.complex128),
        "single": torch.tensor(2.5),
        "none": torch.zeros(0, 3),
        "turned": torch.randn(3, 4).t()[1:, ::2],
        "special": torch.tensor([float("inf"), -0.0, 1e-42]),
    }
    order = job(part(), wanted=("state.v",), **{"state.v": 1})
    (training,) = order.wave.trainings
    wave = Wave((replace(training, parameters={"plus": 0}),), None)
    ((made,),) = done(crew, TrainJob(wave, (part(), memory)))
    found = made["state.v"]
    assert list(found) == list(memory)
    for name, tensor in memory.items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor)


def test_chains_and_sums_of_some_parts_come_back_in_order(crew: Workers) -> None:
    stream, start, base = Stream(1, "batches"), part(1), part(7)
    trainings = (
        Training({}, stream, {"model.classifier": 0}, ("classifier",)),
        Training({}, stream, {"model.classifier": Made(0, "classifier")}, ()),
        Training({"plus": 10}, stream, {"model.classifier": Made(0, "classifier")}, ("classifier",)),
    )
    wave = Wave(trainings, WeightedSum((1.0,), {"classifier": 1}, (2,)))
    (results,) = done(crew, TrainJob(wave, (start, base)))
    first, second, third, total = results
    assert is_all(first["classifier"], 2) and not second
    assert is_all(third["classifier"], 12) and is_all(total["classifier"], 7)
    assert total["classifier"]["fc.bias"].data_ptr() != base["fc.bias"].data_ptr()


def test_scores_are_those_of_the_batches(crew: Workers) -> None:
    jobs = [ScoreJob(("classifier",), (part(number),), (np.arange(2), np.arange(number))) for number in range(5)]
    results = done(crew, *jobs)
    assert results == [
        [Score(float(CLASSES * number), 2), Score(float(CLASSES * number), number)] for number in range(5)
    ]
