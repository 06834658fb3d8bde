"""What comes of an update that a codec has written: the server's model, what waits on the device, and the size."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Literal

import numpy as np
import pytest
import torch
from learned import mean_of, train, update
from small_learner import CLIENTS, SAMPLES, Small, data, small, table, tensors
from small_worlds import prepared

from fedsim.errors import UserError
from fedsim.kernel.streams import Stream
from fedsim.learning.codecs.codec import Codec, Coded
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.coded import coded
from fedsim.learning.executors.processes import Processes
from fedsim.learning.executors.serial import Serial
from fedsim.learning.executors.torch_executor import TorchExecutor
from fedsim.learning.learner import Model
from fedsim.learning.objectives.objective import Given, Objective, State, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.code import Code
from fedsim.learning.operations.operation import Inputs, Slot

EXECUTORS: dict[str, Callable[..., TorchExecutor]] = {
    "serial": Serial,
    "processes": lambda *given, **options: Processes(*given, workers=2, **options),
    "batched": Batched,
}


class TopTwo(Codec):
    """The two largest numbers of each tensor, with error feedback; of equal ones the first."""

    name: Literal["top_two"] = "top_two"
    measured: ClassVar[bool] = True
    remembers: ClassVar[tuple[str, ...]] = ("residual",)

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        left = state.get("residual", {})
        whole = {name: value + left[name] if name in left else value.clone() for name, value in change.items()}
        sent = {name: torch.zeros_like(value) for name, value in whole.items()}
        for name, value in whole.items():
            largest = value.flatten().abs().argsort(descending=True, stable=True)[:2]
            sent[name].view(-1)[largest] = value.flatten()[largest]
        return Coded(sent, {"residual": {name: whole[name] - sent[name] for name in whole}}, 16 * len(sent))


class Dithered(Codec):
    """Adds what it draws: a codec of chance."""

    name: Literal["dithered"] = "dithered"
    strength: float = 1.0

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        drawn = {name: torch.from_numpy(generator.random(tuple(value.shape))) for name, value in change.items()}
        return Coded({name: value + self.strength * drawn[name].to(value) for name, value in change.items()}, {}, 7)


def test_what_is_left_out_is_sent_when_it_has_grown() -> None:
    """The same change (3, -1, 0.5, -4) in five rounds."""
    base, change = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([3.0, -1.0, 0.5, -4.0])
    about: Any = SimpleNamespace(about=SimpleNamespace(codec=TopTwo()), stream=Stream(1, "batches"))
    state: dict[str, Any] = {}
    for sent, left in (
        ([3, 0, 0, -4], [0, -1, 0.5, 0]),
        ([3, 0, 0, -4], [0, -2, 1, 0]),
        ([3, 0, 0, -4], [0, -3, 1.5, 0]),
        ([0, -4, 0, -4], [3, 0, 2, 0]),
        ([6, 0, 0, -4], [0, -1, 2.5, 0]),
    ):
        trained = {"classifier": {"w": base + change, "mean": torch.tensor([7.0])}}
        received = {"classifier": {"w": base.clone(), "mean": torch.tensor([5.0])}}
        made = coded(about, received, trained, state, names=["classifier.w"])
        assert (made["classifier"]["w"] - base).tolist() == sent
        assert made["classifier"]["mean"].tolist() == [7.0], "running statistics are handed on as they are"
        assert made["state.residual"]["classifier.w"].tolist() == left
        assert made["bytes"]["bytes"].item() == 16
        state = {"residual": made["state.residual"]}


def by_training(change: Tensors, state: State) -> Mapping[str, Any]:
    """A change as a device codes it."""
    about: Any = SimpleNamespace(about=SimpleNamespace(codec=TopTwo()), stream=Stream(1, "batches"))
    begin, end = in_parts({name: torch.zeros_like(value) for name, value in change.items()}), in_parts(change)
    return coded(about, begin, end, state, names=list(change))


def by_station(change: Tensors, state: State) -> Mapping[str, Any]:
    """A change as a base station codes it."""
    roles = {"model": in_parts(change), "state": state}
    roles["base"] = in_parts({name: torch.zeros_like(value) for name, value in change.items()})
    slots = {Slot(role, part=part): value for role, parts in roles.items() for part, value in parts.items()}
    return Code(TopTwo()).apply(Inputs(slots), np.random.default_rng(1))


def in_parts(tensors: Tensors) -> dict[str, Tensors]:
    return {name.partition(".")[0]: {name.partition(".")[2]: value} for name, value in tensors.items()}


@pytest.mark.parametrize("code", [by_training, by_station])
def test_what_waits_of_a_part_that_is_not_sent_now_is_sent_later(
    code: Callable[[Tensors, State], Mapping[str, Any]],
) -> None:
    extractor, classifier = torch.tensor([3.0, -4.0, 1.0]), torch.tensor([5.0, 2.0, -6.0])
    whole = code({"extractor.w": extractor, "classifier.w": classifier}, {})
    part = code({"classifier.w": classifier}, {"residual": whole["state.residual"]})
    kept = part["state.residual"]
    assert {name: value.tolist() for name, value in kept.items()} == {
        "extractor.w": [0, 0, 1],
        "classifier.w": [0, 4, 0],
    }
    assert kept["extractor.w"].data_ptr() != whole["state.residual"]["extractor.w"].data_ptr()
    again = code({"extractor.w": torch.tensor([0.0, 0.5, 0.7])}, {"residual": kept})
    assert again["extractor"]["w"].tolist() == pytest.approx([0, 0.5, 1.7])
    assert again["state.residual"]["classifier.w"].tolist() == [0, 4, 0]


class OfExtractor(TopTwo):
    """Has nothing to return where no extractor is sent."""

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        made = super().code(change, state, generator)
        left = {name: value for name, value in made.state["residual"].items() if name.startswith("extractor")}
        return made._replace(state={"residual": left} if left else {})


def test_what_is_not_returned_at_all_stays_too() -> None:
    codec, generator = OfExtractor(), np.random.default_rng(1)
    assert codec.coded({"classifier.w": torch.ones(3)}, {}, generator).state == {"residual": {}}
    first = codec.coded({"extractor.w": torch.tensor([3.0, 1.0, 2.0])}, {}, generator).state
    second = codec.coded({"classifier.w": torch.ones(3)}, first, generator).state
    assert second["residual"]["extractor.w"].tolist() == [0, 1, 0]


def forced(run: Small, model: Model) -> dict[str, torch.Tensor]:
    for handle in model.values():
        run.learner._forcer.force(handle)
    return {name: tensor.clone() for name, tensor in tensors(model).items()}


def rounds_with(run: Small, codec: Codec) -> dict[str, torch.Tensor]:
    """Everybody trains and is averaged, twice: the last model, what each one keeps, and each size."""
    model, kept = run.learner.initial_model(), [{}] * CLIENTS  # type: ignore[var-annotated]
    found = {}
    for use in range(2):
        made = [
            train(run.learner, model, client, Plain(), use=use, state=kept[client], codec=codec)
            for client in range(CLIENTS)
        ]
        kept = [one.state for one in made]
        sizes = [one.bytes for one in made]
        updates = [update(client, one.model, SAMPLES) for client, one in enumerate(made)]
        model = mean_of(run.learner, model, updates, round_number=use + 1)
        for client, size in enumerate(sizes):
            assert size is not None
            found[f"size {client} {use}"] = torch.tensor(run.learner.value(size))
    found |= forced(run, model)
    return found | {
        f"{client}.{name}": tensor for client in range(CLIENTS) for name, tensor in forced(run, kept[client]).items()
    }


@pytest.mark.parametrize("codec", [TopTwo(), Dithered()], ids=lambda codec: codec.name)
def test_every_executor_comes_to_the_same_bits(codec: Codec, tmp_path: Path) -> None:
    found = {}
    for kind, make in EXECUTORS.items():
        executor = make(table(), data())
        run = small(tmp_path / kind, executor=executor)
        found[kind] = rounds_with(run, codec)
        run.store.close()
        executor.close()
    for kind, outcome in found.items():
        assert outcome.keys() == found["serial"].keys()
        assert all(torch.equal(outcome[name], tensor) for name, tensor in found["serial"].items()), kind


def test_the_servers_model_is_the_one_that_was_read_and_the_rest_is_kept(tmp_path: Path) -> None:
    """By hand, from the changes of trainings that nobody has written on any wire."""
    run = small(tmp_path, executor=Serial(table(), data(), precision="float64"))
    start = run.learner.initial_model()
    first = train(run.learner, start, 0, Plain(), codec=TopTwo())
    second = train(run.learner, first.model, 0, Plain(), use=1, codec=TopTwo(), state=first.state)
    plain = train(run.learner, start, 0, Plain()).model
    plain_again = train(run.learner, first.model, 0, Plain(), use=1).model
    generator = Stream(1, "unused").generator()
    left: dict[str, Any] = {}
    for base, trained, made in ((start, plain, first), (first.model, plain_again, second)):
        begin, end = forced(run, base), forced(run, trained)
        by_hand = TopTwo().code({name: end[name] - begin[name] for name in end}, left, generator)
        found, left = forced(run, made.model), dict(by_hand.state)
        kept = forced(run, made.state)
        for name in end:
            assert torch.equal(found[name], begin[name] + by_hand.change[name])
            assert torch.equal(kept[f"residual.{name}"], left["residual"][name])
        assert made.bytes is not None
        assert run.learner.value(made.bytes) == by_hand.bytes == 32
    run.store.close()


def test_a_codec_draws_from_a_stream_of_its_own(tmp_path: Path) -> None:
    """Without it the batches would be others: at no strength the model is that of an exact codec."""
    run = small(tmp_path, executor=Serial(table(), data(), precision="float64"))
    start = run.learner.initial_model()
    exact, still, one, other = (
        forced(run, train(run.learner, start, 0, Plain(), use=use, **codec).model)
        for use, codec in (
            (0, {}),
            (0, {"codec": Dithered(strength=0.0)}),
            (0, {"codec": Dithered()}),
            (1, {"codec": Dithered()}),
        )
    )
    draws = Stream(1, "batches/codec", 0, 0).generator()
    for name, tensor in exact.items():
        torch.testing.assert_close(still[name], tensor, rtol=0, atol=1e-15)
        torch.testing.assert_close(one[name], tensor + torch.from_numpy(draws.random(tuple(tensor.shape))))
        assert not torch.equal(one[name], other[name])
    run.store.close()


@pytest.mark.parametrize("written", [(), ("classifier",), ("classifier.fc.weight",)])
def test_a_codec_writes_what_is_sent_and_nothing_else(written: tuple[str, ...], tmp_path: Path) -> None:
    run = small(tmp_path, executor=Serial(table(), data()))
    start = run.learner.initial_model()
    exact = forced(run, train(run.learner, start, 0, Plain()).model)
    made = forced(run, train(run.learner, start, 0, Plain(), codec=Dithered(), written=written).model)
    others = {name for name in exact if not torch.equal(made[name], exact[name])}
    assert others == (set(exact) if written == ("classifier",) else set(written))
    run.store.close()


def test_a_size_that_is_asked_for_trains_all_whose_size_may_be_asked_for_next(tmp_path: Path) -> None:
    run = small(tmp_path)
    start = run.learner.initial_model()
    sizes = [train(run.learner, start, client, Plain(), codec=TopTwo()).bytes for client in range(CLIENTS)]
    exact = train(run.learner, start, 0, Plain())
    assert exact.bytes is None
    assert sizes[1] is not None and run.learner.value(sizes[1]) == 32
    assert all(size is not None and size.computed for size in sizes)
    rows = [json.loads(line) for line in (tmp_path / "ledger" / "run.jsonl").read_bytes().splitlines()]
    assert [row["operation"] for row in rows if row["event"] == "computed"].count("train") == CLIENTS
    run.store.close()


class Hoarding(Objective):
    """Keeps something by the very name that the codec has."""

    name: Literal["hoarding"] = "hoarding"
    remembers: ClassVar[tuple[str, ...]] = ("residual",)

    def remember(self, weights: Tensors, given: Given) -> dict[str, Tensors]:
        return {"residual": {}}


def test_an_objective_and_a_codec_may_not_keep_one_thing_by_the_same_name() -> None:
    parts = {
        "objective": {"path": f"{__file__}:Hoarding"},
        "codec": {"path": f"{__file__}:TopTwo", "declared_bytes": 9.0},
    }
    with pytest.raises(UserError) as refusal:
        prepared({"protocols": [{"name": "fedavg", "fraction": 1.0, **parts}]})
    assert str(refusal.value) == (
        "protocols[0].codec: objective 'hoarding' and codec 'top_two' both remember 'residual'"
    )
