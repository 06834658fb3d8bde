"""What protocols ask of learning: expressions whose keys hold all that decides their numbers, and nothing else."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from learned import mean_of, train, update
from small_learner import SAMPLES, Small, data, small, table, tensors

from fedsim.kernel.streams import Streams
from fedsim.learning.executors.batched.executor import Batched
from fedsim.learning.executors.serial import Serial
from fedsim.learning.learner import Learner, NoLearner
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.partial_sum import TERM
from fedsim.learning.rules.changes import PARTIAL_SUM, partial_sums
from fedsim.learning.rules.update import Update

TRAIN: dict[str, Any] = {"client": 1, "objective": Plain(), "use": 0, "round_number": 1}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Small]:
    made = small(tmp_path_factory.mktemp("learner"))
    yield made
    made.store.close()


@pytest.fixture
def learner(run: Small) -> Learner:
    return run.learner


def trained_key(learner: Learner, **changes: Any) -> str:
    handle = train(learner, learner.initial_model(), **TRAIN | changes).model["classifier"]
    return handle.node.key


def updates(learner: Learner, number: int, weights: list[float]) -> list[Update]:
    """So many trainings, as if each were another client's."""
    model = learner.initial_model()
    trained = [train(learner, model, **TRAIN | {"use": use}).model for use in range(number)]
    return [update(client, trained[client], weights[client]) for client in range(number)]


@pytest.mark.parametrize("change", [{"client": 2}, {"use": 1}, {"objective": Proximal(mu=0.0)}], ids=str)
def test_what_decides_a_training_is_in_its_key(learner: Learner, change: dict[str, Any]) -> None:
    assert trained_key(learner, **change) != trained_key(learner)


def test_the_objectives_numbers_are_in_the_key(learner: Learner) -> None:
    keys = {trained_key(learner, objective=Proximal(mu=mu)) for mu in (0.0, 0.1, 0.1, math.nextafter(0.1, 1))}
    assert len(keys) == 3


def test_what_a_client_remembers_is_in_the_key_of_its_next_training(learner: Learner) -> None:
    remembered = train(learner, learner.initial_model(), **TRAIN).model
    assert trained_key(learner, state={"memory": remembered["classifier"]}) != trained_key(learner)


@pytest.mark.parametrize(
    ("name", "value"),
    [("learning_rate", 0.2), ("batch_size", 3), ("epochs", 3), ("momentum", 0.1), ("weight_decay", 0.1)],
)
def test_every_training_setting_is_in_the_key(
    learner: Learner, monkeypatch: pytest.MonkeyPatch, name: str, value: float
) -> None:
    before = trained_key(learner)
    monkeypatch.setattr(learner, "_training", learner._training.model_copy(update={name: value}))
    assert trained_key(learner) != before


def test_seed_data_and_model_are_in_the_key(learner: Learner, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [trained_key(learner)]
    for name in ("_dataset", "_table"):
        with monkeypatch.context() as patch:
            patch.setattr(learner, name, _WithDigest(getattr(learner, name), "another"))
            keys.append(trained_key(learner))
    monkeypatch.setattr(learner, "_streams", Streams(2))
    keys.append(trained_key(learner))
    assert len(set(keys)) == 4


class _WithDigest:
    """The same thing with another digest."""

    def __init__(self, thing: object, digest: str) -> None:
        self._thing = thing
        self.digest = digest

    def __getattr__(self, name: str) -> Any:
        return getattr(self._thing, name)


def test_the_number_of_the_round_is_not_in_the_key(learner: Learner) -> None:
    assert trained_key(learner, round_number=7) == trained_key(learner)


@given(order=st.permutations(range(11)))
def test_who_came_first_does_not_matter_to_the_mean(run: Small, order: list[int]) -> None:
    some = updates(run.learner, 11, [float(weight) for weight in range(1, 12)])
    base = run.learner.initial_model()
    means = [mean_of(run.learner, base, mixed) for mixed in (some, [some[client] for client in order])]
    assert means[0]["classifier"] is means[1]["classifier"]


def test_weights_are_shares(learner: Learner) -> None:
    base = learner.initial_model()
    means = [
        mean_of(learner, base, updates(learner, 3, [factor * SAMPLES for factor in factors]))
        for factors in ([1.0, 2.0, 5.0], [4.0, 8.0, 20.0], [1.0, 2.0, 6.0])
    ]
    assert means[0]["classifier"] is means[1]["classifier"]
    assert means[0]["classifier"] is not means[2]["classifier"]


@given(number=st.integers(1, 500), work=st.integers(0, 9))
def test_partial_sums_are_even_in_number_and_as_equal_and_as_few_as_can_be(number: int, work: int) -> None:
    sums = partial_sums([work] * number)
    assert [contribution for some in sums for contribution in some] == list(range(number))
    sizes = [len(some) for some in sums]
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= PARTIAL_SUM
    assert len(sums) % 2 == 0 or number == 1
    assert len(sums) <= 2 or number > PARTIAL_SUM * (len(sums) - 2), "with two sums less there is one too large"


@given(work=st.lists(st.integers(0, 1000), min_size=2, max_size=200).filter(lambda work: len(set(work)) > 1))
def test_partial_sums_of_different_work_share_it_and_begin_with_the_largest(work: list[int]) -> None:
    sums = partial_sums(work)
    assert sorted(contribution for some in sums for contribution in some) == list(range(len(work)))
    assert len(sums) == len(partial_sums([1] * len(work)))
    assert all(1 <= len(some) <= PARTIAL_SUM for some in sums)
    for some in sums:
        assert some == sorted(some, key=lambda one: (-work[one], one)), "the largest first, and then by sender"
    totals = [sum(work[one] for one in some) for some in sums]
    assert totals == sorted(totals, reverse=True)
    if not any(len(some) == PARTIAL_SUM for some in sums):
        for some, total in zip(sums, totals, strict=True):
            assert total - work[some[-1]] <= min(totals), "the last one went where there was least"


def test_who_trained_on_most_is_added_up_first(learner: Learner) -> None:
    base = learner.initial_model()
    sizes = [30, 10, 90, 20]
    some = [one._replace(samples=size) for one, size in zip(updates(learner, 4, [1.0] * 4), sizes, strict=True)]
    mean = mean_of(learner, base, some)
    total = mean["classifier"].node.inputs[Slot("change", part="classifier")].node
    first, second = (total.inputs[Slot(role, part="classifier")].node for role in ("base", "change"))
    assert [[term.node.stream.use for term in some.sources.each(TERM)] for some in (first, second)] == [[2], [0, 3, 1]]


@pytest.mark.parametrize(("number", "sums"), [(1, 1), (2, 2), (8, 2), (9, 2), (16, 2), (17, 4), (24, 4), (33, 6)])
def test_a_mean_is_one_chain_of_partial_sums(tmp_path: Path, number: int, sums: int) -> None:
    made = small(tmp_path)
    base = made.learner.initial_model()
    mean = mean_of(made.learner, base, updates(made.learner, number, [1.0] * number))
    operations: Counter[str] = Counter()
    waiting, seen = [mean["classifier"].node], set()
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            operations[node.operation.name] += 1
            waiting += [handle.node for handle in node.inputs.values()]
    made.store.close()
    expected = {"init": 1, "train": number, "partial_sum": sums, "add": sums}
    assert operations == Counter(expected)


def test_a_network_study_learns_nothing() -> None:
    learner = NoLearner()
    trained = train(learner, {}, **TRAIN)
    assert learner.initial_model() == trained.model == trained.state == {}
    assert learner.apply(Add(), {}, ["classifier"], round_number=1) == {}
    assert learner.evaluate({}, "global", round_number=1) is None
    assert learner.keep_final({}) == {}


def test_a_chain_whose_trainings_follow_different_recipes_is_trained_as_it_is_written(tmp_path: Path) -> None:
    """A client trains with another objective than the one whose model it takes over: no executor may mix them up."""
    models = []
    for executor in (Serial, Batched):
        bench = small(tmp_path / executor.__name__, executor=executor(table(), data(), precision="float64"))
        start = bench.learner.initial_model()
        first = train(bench.learner, start, 0, Plain()).model
        second = train(bench.learner, first, 1, Proximal(mu=5.0)).model
        mean = mean_of(bench.learner, start, [update(1, second, 1.0)])
        bench.learner.evaluate(mean, "global", round_number=1)
        models.append(tensors(mean))
        bench.store.close()
    for name, tensor in models[0].items():
        torch.testing.assert_close(models[1][name], tensor, rtol=1e-12, atol=1e-12)
