"""Operations of somebody's own: what goes in by role, what comes out, and how long it is kept, in every executor."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from learned import train
from small_learner import CLIENTS, Small, data, small, table, tensors

from fedsim.errors import UserError
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.executor import Executor
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Handle
from fedsim.learning.learner import Learner, Model, NoLearner
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.extract import FEATURES, LABELS, SEMANTICS
from fedsim.learning.operations.operation import Inputs, Operation, Slot

EXECUTORS: dict[str, Callable[[], Executor]] = {
    "serial": lambda: Serial(table(), data()),
    "processes": lambda: Processes(table(), data(), workers=2),
    "batched": lambda: Batched(table(), data()),
    "batched in two": lambda: Batched(table(), data(), workers=2),
}


@pytest.fixture(params=EXECUTORS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


Open = Callable[..., Small]


@pytest.fixture
def opened(kind: str, tmp_path: Path) -> Iterator[Open]:
    """Learners one after the other on one store, as runs are that go on with each other."""
    made: list[Small] = []

    def close() -> None:
        for run in made:
            run.store.close()
            run.executor.close()
        made.clear()

    def start(**options: Any) -> Small:
        close()
        made.append(small(tmp_path, executor=EXECUTORS[kind](), **options))
        return made[0]

    yield start
    close()


def force(run: Small, *models: Model) -> None:
    for handle in [handle for model in models for handle in model.values()]:
        run.learner._forcer.force(handle)


def trained(run: Small, *, client: int = 0, use: int = 0) -> Model:
    return train(run.learner, run.learner.initial_model(), client, Plain(), use=use).model


def computed(folder: Path) -> list[str]:
    """All that any run on the store has computed so far."""
    rows = [json.loads(line) for line in (folder / "ledger" / "run.jsonl").read_bytes().splitlines()]
    return [row["operation"] for row in rows if row["event"] == "computed"]


# -- inputs ----------------------------------------------------------------------------------------------------------


def test_inputs_are_found_by_role_number_and_part() -> None:
    slots = {
        Slot("model", part="a"): 1,
        Slot("model", part="b"): 2,
        **{Slot("term", number, "a"): 100 + number for number in (10, 2, 0)},
        Slot("term", 2, "b"): 202,
        Slot("rows", 1, "semantics"): 31,
        Slot("rows", 0, "semantics"): 30,
        Slot("now", part="semantics"): 40,
    }
    inputs = Inputs(slots)
    assert inputs.model("model") == {"a": 1, "b": 2}
    assert inputs.model("term", 2) == {"a": 102, "b": 202}
    assert inputs.model("nothing") == inputs.model("model", 1) == {}
    assert inputs.models("term") == [{"a": 100}, {"a": 102, "b": 202}, {"a": 110}], "by number, not by text"
    assert (inputs.each("rows"), inputs.one("now"), inputs.each("nothing")) == ([30, 31], 40, [])
    assert ("now" in inputs, "nothing" in inputs) == (True, False)
    assert list(inputs) == list(slots)


def test_the_only_value_in_a_role_is_one() -> None:
    for roles in ([], [Slot("now"), Slot("now", 1)], [Slot("now", part="a"), Slot("now", part="b")]):
        with pytest.raises(ValueError, match="values to unpack"):
            Inputs(dict.fromkeys(roles, 1)).one("now")


def test_no_two_slots_have_one_text() -> None:
    slots = [Slot(role, number, part) for role in ("a", "b") for number in (0, 1, 11) for part in ("", "a", "1")]
    assert len({slot.text for slot in slots}) == len(slots)


# -- tensors ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Blend(Operation):
    """``share first + (1 - share) second``."""

    name: ClassVar[str] = "blend"
    share: float

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        first, second = inputs.models("model")
        assert generator is None
        return {
            part: {name: self.share * one + (1 - self.share) * second[part][name] for name, one in own.items()}
            for part, own in first.items()
        }


def test_an_operation_on_models_that_were_trained(opened: Open) -> None:
    run = opened()
    learner, models = run.learner, [trained(run, client=client) for client in range(2)]
    blend = learner.apply(Blend(0.25), {"model": models}, models[0], round_number=1)
    assert not blend["classifier"].computed, "nothing is computed when a protocol asks for it"
    learner.evaluate(blend, "global", round_number=1)
    force(run, blend, *models)
    first, second = map(tensors, models)
    for name, tensor in tensors(blend).items():
        assert torch.equal(tensor, 0.25 * first[name] + 0.75 * second[name])
        assert not tensor.requires_grad
    again = learner.apply(Blend(0.25), {"model": models}, models[0], round_number=7, client=2)
    others = [
        learner.apply(Blend(0.5), {"model": models}, models[0], round_number=1),
        learner.apply(Blend(0.25), {"model": models[::-1]}, models[0], round_number=1),
    ]
    assert again["classifier"].node.key == blend["classifier"].node.key
    assert blend["classifier"].node.key not in {other["classifier"].node.key for other in others}


@dataclass(frozen=True)
class Sly(Operation):
    """Hands out its input, a view of it, and one tensor twice."""

    name: ClassVar[str] = "sly"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        given = inputs.model("model")["classifier"]
        weight = given["fc.weight"]
        new = weight + 1
        return {
            "classifier": given,
            "views": {"row": weight[0], "turned": weight.t(), "flat": weight.view(-1)},
            "twice": {"one": new, "two": new, "view": new[1:]},
            "once more": {"new": new},
        }


def test_tensors_are_in_new_memory_even_if_the_operation_hands_out_its_input(opened: Open) -> None:
    run = opened()
    start = trained(run)
    outputs = ("classifier", "views", "twice", "once more")
    made = run.learner.apply(Sly(), {"model": start}, outputs, round_number=1)
    force(run, start, made)
    everything = [*tensors(start).values(), *tensors(made).values()]
    places = [tensor.untyped_storage().data_ptr() for tensor in tensors(made).values()]
    assert len(set(places)) == len(places)
    assert not set(places) & {tensor.untyped_storage().data_ptr() for tensor in tensors(start).values()}
    expected = [tensor.clone() for tensor in everything]
    weight = tensors(start)["classifier.fc.weight"]
    for name, value in (
        ("classifier.fc.weight", weight),
        ("views.row", weight[0]),
        ("views.turned", weight.t()),
        ("views.flat", weight.view(-1)),
        ("twice.view", weight[1:] + 1),
    ):
        assert torch.equal(tensors(made)[name], value)
    for number, tensor in enumerate(everything):
        tensor.fill_(7.0 + number)
        assert all(torch.equal(one, expected[at]) for at, one in enumerate(everything) if at > number)


@dataclass(frozen=True)
class Noise(Operation):
    """Adds what it draws."""

    name: ClassVar[str] = "noise"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        assert generator is not None
        return {
            part: {name: one + drawn(generator, one) for name, one in own.items()}
            for part, own in inputs.model("model").items()
        }


def drawn(rng: np.random.Generator, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(rng.random(tuple(like.shape))).to(like)


def test_what_is_drawn_is_of_the_stream_from_its_beginning(opened: Open) -> None:
    run = opened()
    start, stream = run.learner.initial_model(), Stream(1, "noise", 2, 3)
    given = {"model": start}
    for _ in range(2):
        made = run.learner.apply(Noise(), given, start, round_number=1, stream=stream)
        other = run.learner.apply(Noise(), given, start, round_number=1, stream=Stream(1, "noise", 2, 4))
        force(run, start, made, other)
        rng = stream.generator()
        for name, tensor in tensors(start).items():
            expected = tensor + drawn(rng, tensor)
            assert torch.equal(tensors(made)[name], expected)
            assert not torch.equal(tensors(other)[name], expected)


def test_tensors_come_back_from_the_store_as_they_were(opened: Open, tmp_path: Path) -> None:
    """Views too, whose bytes do not lie side by side."""
    outputs = ("views", "twice")

    def made() -> dict[str, torch.Tensor]:
        run = opened(checkpoint_every_s=0)
        found = run.learner.apply(Sly(), {"model": trained(run)}, outputs, round_number=1)
        force(run, found)
        run.store.checkpoint(found.values())
        return {name: tensor.clone() for name, tensor in tensors(found).items()}

    first = made()
    before = computed(tmp_path)
    second = made()
    assert computed(tmp_path) == before, "nothing was made again"
    assert first.keys() == second.keys()
    assert all(torch.equal(second[name], tensor) for name, tensor in first.items())


@dataclass(frozen=True)
class OwnRows(Operation):
    """Rows of semantics of a form of their own."""

    name: ClassVar[str] = "own_rows"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        weight = inputs.model("model")["classifier"]["fc.weight"]
        return {SEMANTICS: {FEATURES: 2 * weight, LABELS: torch.arange(len(weight)), "more": weight.sum()}}


def test_rows_of_semantics_of_ones_own_are_taken_from_the_store(opened: Open, tmp_path: Path) -> None:
    for _ in range(2):
        run = opened(checkpoint_every_s=0)
        made = run.learner.apply(OwnRows(), {"model": run.learner.initial_model()}, [SEMANTICS], round_number=1)
        force(run, made)
        run.store.checkpoint(made.values())
        assert computed(tmp_path).count("own_rows") == 1
    assert made[SEMANTICS].value.keys() == {FEATURES, LABELS, "more"}


@dataclass(frozen=True)
class Large(Operation):
    """Something that nobody else holds."""

    name: ClassVar[str] = "large"

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        return {"sum": {"v": inputs.model("model")["classifier"]["fc.bias"] + 1}}


@pytest.mark.parametrize("soon", [True, False])
def test_what_is_wanted_soon_is_computed_with_the_next_evaluation(opened: Open, soon: bool) -> None:
    run = opened()
    start = run.learner.initial_model()
    made = run.learner.apply(Large(), {"model": trained(run)}, ["sum"], round_number=1, soon=soon)
    run.learner.evaluate(start, "global", round_number=1)
    assert made["sum"].computed == soon


# -- numbers ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Measure(Operation):
    """How large a model's numbers are, how many they are, and both; and the model."""

    name: ClassVar[str] = "measure"
    scalars: ClassVar[frozenset[str]] = frozenset({"largest", "count", "both"})

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        given = inputs.model("model")
        numbers = torch.cat([tensor.flatten() for own in given.values() for tensor in own.values()])
        largest, count = numbers.abs().max(), len(numbers)
        return {"largest": largest, "count": count, "both": {"largest": largest.item(), "count": count}, **given}


def measured(learner: Learner, model: Model, name: str = "largest") -> Handle:
    return learner.apply(Measure(), {"model": model}, [name], round_number=1)[name]


def test_a_number_is_pythons_own(opened: Open) -> None:
    run = opened()
    model = trained(run)
    found = {name: run.learner.value(measured(run.learner, model, name)) for name in ("largest", "count", "both")}
    force(run, model)
    largest = max(float(tensor.abs().max()) for tensor in tensors(model).values())
    assert found == {"largest": largest, "count": 15, "both": {"largest": largest, "count": 15}}
    assert [type(found[name]) for name in ("largest", "count")] == [float, int]


def test_a_number_is_kept_for_ever_and_read_without_any_training(opened: Open, tmp_path: Path) -> None:
    run = opened()
    first = [run.learner.value(measured(run.learner, trained(run), name)) for name in ("largest", "count", "both")]
    before = computed(tmp_path)
    assert before.count("train") >= 1 and before.count("measure") >= 1
    run.store.checkpoint([])  # no tensor is needed any more
    run = opened()
    second = [run.learner.value(measured(run.learner, trained(run), name)) for name in ("largest", "count", "both")]
    assert repr(second) == repr(first)
    assert computed(tmp_path) == before, "not even a training"
    assert not list((tmp_path / "tensors").iterdir())


def test_all_numbers_that_may_be_asked_for_are_made_with_the_first_one(opened: Open, tmp_path: Path) -> None:
    """So the trainings of one instant run side by side."""
    run = opened()
    numbers = [measured(run.learner, trained(run, client=client)) for client in range(CLIENTS)]
    dropped = measured(run.learner, trained(run, client=0, use=1))
    del dropped
    assert run.learner.value(numbers[1]) == numbers[1].value
    assert all(number.computed for number in numbers)
    assert computed(tmp_path).count("train") == CLIENTS, "and none that nobody can ask for"
    later = measured(run.learner, trained(run, client=2, use=5))
    assert not later.computed
    assert [run.learner.value(number) for number in numbers] == [number.value for number in numbers]


def test_executors_come_to_the_same_number_of_the_same_model(tmp_path: Path) -> None:
    found = set()
    for kind, make in EXECUTORS.items():
        run = small(tmp_path / kind, executor=make())
        found.add(run.learner.value(measured(run.learner, run.learner.initial_model())))
        run.store.close()
        run.executor.close()
    assert len(found) == 1


# -- what is refused -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Wrong(Operation):
    """Makes what it is told."""

    name: ClassVar[str] = "wrong"
    scalars: ClassVar[frozenset[str]] = frozenset({"number"})
    what: str

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        return {
            "nothing": {},
            "list": {"model": [1.0]},
            "numbers": {"model": {"a": 1.0}},
            "array": {"model": {"a": np.ones(2)}},
            "bare tensor": {"model": torch.ones(2)},
            "nan": {"number": math.nan},
            "infinite": {"number": torch.tensor(math.inf)},
            "infinite among others": {"number": {"a": 1.0, "b": -math.inf}},
            "text": {"number": "7"},
            "truth": {"number": True},
            "none": {"number": None},
            "several": {"number": torch.ones(2)},
            "tensors by name": {"number": {"a": torch.ones(1)}},
        }[self.what]


WRONG = {
    "nothing": ("model", "operation 'wrong' makes nothing, and no 'model'"),
    "numbers": ("other", "operation 'wrong' makes 'model', and no 'other'"),
    "list": ("model", "'model' of operation 'wrong' must be tensors by name, and is of type list"),
    "array": ("model", "'model' of operation 'wrong' must be tensors by name"),
    "bare tensor": ("model", "'model' of operation 'wrong' must be tensors by name, and is of type Tensor"),
    **dict.fromkeys(
        ["nan", "infinite", "infinite among others", "text", "truth", "none", "several", "tensors by name"],
        ("number", "'number' of operation 'wrong' must be a finite number, and is "),
    ),
}


UNFIT = {
    "one tensor": (lambda own: {"fc.weight": own["fc.weight"]}, "it has 1 tensors, and 2 are needed"),
    "other names": (
        lambda own: {"weight": own["fc.weight"], "fc.bias": own["fc.bias"]},
        "it has no tensor 'fc.weight'",
    ),
    "other shape": (
        lambda own: {**own, "fc.bias": own["fc.bias"][:1]},
        "'fc.bias' is float32 (1,), and float32 (3,) is needed",
    ),
    "other type": (
        lambda own: {**own, "fc.bias": own["fc.bias"].double()},
        "'fc.bias' is float64 (3,), and float32 (3,) is needed",
    ),
}


@dataclass(frozen=True)
class Unfit(Operation):
    """Makes a part of the model, and the same by a name that is none of its parts."""

    name: ClassVar[str] = "unfit"
    how: str

    def apply(self, inputs: Inputs[Any], generator: np.random.Generator | None) -> Mapping[str, Any]:
        return dict.fromkeys(("classifier", "other"), UNFIT[self.how][0](inputs.model("model")["classifier"]))


@pytest.mark.parametrize("how", UNFIT)
def test_what_is_no_such_part_of_the_model_is_refused_where_it_was_made(how: str, opened: Open) -> None:
    run = opened()
    start = run.learner.initial_model()
    made = run.learner.apply(Unfit(how), {"model": start}, ["classifier"], round_number=1)
    with pytest.raises(UserError) as refusal:
        force(run, made)
    assert str(refusal.value) == f"'classifier' of operation 'unfit' is no such part of the model: {UNFIT[how][1]}"
    other = run.learner.apply(Unfit(how), {"model": trained(run)}, ["other"], round_number=1)
    force(run, other)
    assert other["other"].computed, "what is called otherwise may have any form"


@pytest.mark.parametrize("what", WRONG)
def test_wrong_outputs_are_refused(what: str, tmp_path: Path) -> None:
    output, message = WRONG[what]
    run = small(tmp_path)
    made = run.learner.apply(Wrong(what), {"model": run.learner.initial_model()}, [output], round_number=1)
    with pytest.raises(UserError, match=message):
        force(run, made)
    run.store.close()


def test_what_nobody_asks_for_is_not_looked_at(opened: Open) -> None:
    run = opened()
    made = run.learner.apply(Wrong("numbers"), {"model": run.learner.initial_model()}, ["model"], round_number=1)
    with pytest.raises(UserError, match="must be tensors by name"):
        force(run, made)
    sum_of = run.learner.apply(Large(), {"model": run.learner.initial_model()}, ["sum"], round_number=1)
    force(run, sum_of)
    assert sum_of["sum"].computed, "an executor goes on after a refusal"


@dataclass(frozen=True)
class Silent(Operation):
    """Has no arithmetic."""

    name: ClassVar[str] = "silent"


def test_an_operation_without_arithmetic_says_so(opened: Open) -> None:
    run = opened()
    made = run.learner.apply(Silent(), {"model": run.learner.initial_model()}, ["model"], round_number=1)
    with pytest.raises(NotImplementedError, match="operation 'silent' has no arithmetic of its own"):
        force(run, made)


def test_where_nothing_is_learned_nothing_comes_of_it() -> None:
    assert NoLearner().apply(Silent(), {"model": {}}, ["model"], round_number=1) == {}
