"""Server rules on two numbers: w = (1, -2), clients of 3 and 1 samples, and what papers' formulas make of that."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import torch
from learned import aggregation, update
from momentum import Momentum as MomentumFromOutside
from small_learner import Small, small

from fedsim.learning.graph import Graph, Handle
from fedsim.learning.learner import Model
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Inputs, Slot
from fedsim.learning.rules.adaptive import Adagrad, Adam, Yogi
from fedsim.learning.rules.fednova import NormalisedMean
from fedsim.learning.rules.inverse_distance import InverseDistance
from fedsim.learning.rules.mean import Mean
from fedsim.learning.rules.momentum import Momentum
from fedsim.learning.rules.optimiser import Optimiser
from fedsim.learning.rules.rule import ServerRule, State
from fedsim.learning.rules.salient_mean import PerUpload, SalientMean
from fedsim.learning.rules.scaffold import ControlledMean
from fedsim.learning.rules.update import Update
from fedsim.learning.training import TrainingSettings
from fedsim.models.layers import BatchNorm1d, Conv1d, Flatten, Linear
from fedsim.models.table import LayerTable, ModelTable

EXACT = 1e-8
W = (1.0, -2.0)
CHANGES = ((0.2, -0.4), (-0.2, 1.0))
"""Of the two clients: their mean, of 3 and 1 samples, is (0.1, -0.05)."""
ADAPTIVE = {"learning_rate": 0.1, "tau": 1e-3}
KEPT = ("model", "first", "second")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Small]:
    made = small(tmp_path)
    yield made
    made.store.close()


def model(*numbers: float, name: str = "w", part: str = "given") -> Model:
    """Numbers that nobody has to compute, in double precision."""
    handle = Graph("given").node(Init(str(numbers)), {}).output(part)
    handle.value = {name: torch.tensor(numbers, dtype=torch.float64)}
    return {part: handle}


def numbers(run: Small, handles: Model) -> list[float]:
    """What is learned, as numbers."""
    (handle,) = handles.values()
    assert isinstance(handle, Handle)
    run.learner._forcer.force(handle)
    return [number for tensor in handle.value.values() for number in tensor.tolist()]


def moved(start: Sequence[float], changes: Sequence[Sequence[float]] = CHANGES) -> list[Update]:
    """What clients send who are 3 and 1 samples large, and move from *start* by *changes*."""
    ends = [[old + new for old, new in zip(start, change, strict=True)] for change in changes]
    return [update(sender, model(*end), (3.0, 1.0, 2.0)[sender]) for sender, end in enumerate(ends)]


@pytest.mark.parametrize(
    ("rule", "first", "second"),
    [
        (Momentum(beta=0.9), (1.1, -2.05), (1.29, -2.145)),
        (MomentumFromOutside(), (1.1, -2.05), (1.29, -2.145)),
        (Adagrad(**ADAPTIVE, v0=0.0), (1.099009901, -2.098039216), (1.169224090, -2.167763839)),
        (Adagrad(**ADAPTIVE), (1.099005000, -2.098019998), (1.169217446, -2.167737747)),
        (Adam(**ADAPTIVE, v0=0.0), (1.090909091, -2.083333333), (1.216680800, -2.201296402)),
        (Adam(**ADAPTIVE), (1.090502831, -2.081993574), (1.215986339, -2.198952544)),
        (Yogi(**ADAPTIVE, v0=0.0), (1.090909091, -2.083333333), (1.216386768, -2.201037709)),
        (Yogi(**ADAPTIVE), (1.090498756, -2.081980390), (1.215684502, -2.198667530)),
    ],
)
def test_optimisers_take_two_steps_by_their_papers_formulas(
    rule: ServerRule, first: tuple[float, float], second: tuple[float, float], run: Small
) -> None:
    state: State = {"model": model(*W)}
    for number, wanted in enumerate((first, second), start=1):
        updates = moved(numbers(run, state["model"]))
        state = rule.apply(run.learner, state, updates, aggregation(round_number=number))
        assert numbers(run, state["model"]) == pytest.approx(wanted, abs=EXACT)


@pytest.mark.parametrize("kind", [Adam, Yogi])
def test_bias_correction_makes_the_first_step_one_of_the_change_alone(kind: type[Adam | Yogi], run: Small) -> None:
    """Corrected, m is D and v, from zero, D^2."""
    rule = kind(**ADAPTIVE, v0=0.0, bias_correction=True)
    state = rule.apply(run.learner, {"model": model(*W)}, moved(W), aggregation())
    expected = [1 + 0.1 * 0.1 / (0.1 + 1e-3), -2 - 0.1 * 0.05 / (0.05 + 1e-3)]
    assert numbers(run, state["model"]) == pytest.approx(expected, abs=EXACT)
    state = rule.apply(run.learner, state, moved(expected), aggregation(round_number=2))
    by_adam = torch.tensor(W, dtype=torch.float64).requires_grad_()  # the same change twice, as a gradient of -D
    adam = torch.optim.Adam([by_adam], lr=0.1, betas=(0.9, 0.99), eps=1e-3)
    for _ in range(2):
        by_adam.grad = torch.tensor([-0.1, 0.05], dtype=torch.float64)
        adam.step()
    if kind is Adam:
        assert numbers(run, state["model"]) == pytest.approx(by_adam.tolist(), abs=EXACT)
    assert kind().second(torch.tensor(4.0), torch.tensor(4.0)).item() == 4.0, "what is as large as it was stays"


@pytest.mark.parametrize("rule", [Momentum(beta=0.0), ControlledMean()], ids=["momentum", "scaffold"])
def test_without_memory_and_with_a_rate_of_one_an_optimiser_takes_the_mean(rule: Optimiser, run: Small) -> None:
    updates = [one._replace(models={**one.models, "control_change": model(0.0, 0.0)}) for one in moved(W)]
    state: State = {"model": model(*W), "control": model(0.0, 0.0)}
    made, mean = (each.apply(run.learner, state, updates, aggregation()) for each in (rule, Mean()))
    assert numbers(run, made["model"]) == numbers(run, mean["model"])


def test_a_step_is_of_the_parts_of_the_round_and_moments_are_kept_by_part(run: Small) -> None:
    rule = Adam(**ADAPTIVE)
    whole: Model = {**model(*W, part="other"), **model(*W)}
    state: State = {"model": whole}
    both = [one._replace(models={"model": {**model(1.2, -2.4, part="other"), **one.model}}) for one in moved(W)]
    state = rule.apply(run.learner, state, both, aggregation())
    assert [(name, set(kept)) for name, kept in state.items()] == [(name, {"given", "other"}) for name in KEPT]
    given = {"given": state["model"]["given"]}
    after = rule.apply(run.learner, state, moved(numbers(run, given)), aggregation(round_number=2))
    for name in KEPT:
        assert after[name]["other"] is state[name]["other"]
        assert after[name]["given"] is not state[name]["given"]
    assert numbers(run, {"given": after["model"]["given"]}) == pytest.approx((1.215986339, -2.198952544), abs=EXACT)


def test_statistics_are_averaged_and_not_stepped(run: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelTable, "statistics_names", lambda table, part: ("running_var",))
    start = model(*W, name="running_var")
    ends = [
        update(number, model(*end, name="running_var"), weight)._replace(gradient_weight=2.0 + number)
        for number, (end, weight) in enumerate([((1.2, -2.4), 3.0), ((0.8, -1.0), 1.0)])
    ]
    for rule in (Adam(), Momentum(learning_rate=0.1), NormalisedMean()):
        made = rule.apply(run.learner, {"model": start}, ends, aggregation())
        assert numbers(run, made["model"]) == pytest.approx([1.1, -2.05], abs=EXACT), rule.name


def test_a_table_names_the_statistics_of_its_parts() -> None:
    layers = (Conv1d("conv", in_channels=1, out_channels=2, kernel=3, padding=1), BatchNorm1d("bn", 2))
    table = LayerTable(input_shape=(1, 4), extractor=(*layers, Flatten("flat")), classifier=(Linear("fc", 8, 2),))
    assert aggregation(table=table).statistics(table.parts) == ("extractor.bn.running_mean", "extractor.bn.running_var")


def test_what_rules_need_beside_the_model() -> None:
    """24 trained numbers, 6 of them in the extractor, and 2 running statistics, of four bytes each."""
    layers = (Conv1d("conv", in_channels=1, out_channels=1, kernel=3, padding=1), BatchNorm1d("bn", 1), Flatten("flat"))
    plain, with_statistics = (
        LayerTable(input_shape=(1, 8), extractor=(layers[0], *some), classifier=(Linear("fc", 8, 2),))
        for some in ([layers[2]], layers[1:])
    )
    for rule, kept, held in (
        (Mean(), 0, 0),
        (Momentum(), 96, 0),
        (Adagrad(), 192, 0),
        (Adam(bias_correction=True), 192, 0),
        (ControlledMean(), 96, 96),
        (SalientMean(), 24, 24),
        (InverseDistance(), 0, 104),
        (NormalisedMean(), 0, 104),
    ):
        found = rule.kept_bytes(with_statistics), rule.held_bytes(with_statistics)
        assert found == (kept, held), rule.name
    assert NormalisedMean().held_bytes(plain) == 0.0
    assert NormalisedMean().bytes_beside(plain) == (0.0, 4.0)
    assert NormalisedMean(accounting="paper").bytes_beside(plain, "classifier") == (72.0, 72.0)


def test_a_filter_moves_by_those_who_have_sent_it() -> None:
    operation = PerUpload((0.75, 0.25), (("conv", ("conv.weight", "conv.bias")),))
    change = {"conv.weight": torch.tensor([[3.0, 1.5], [3.0, 1.5], [0.0, 0.0]]), "conv.bias": torch.tensor([1.0, 3, 0])}
    masks = [{"conv": torch.tensor(some)} for some in ([True, True, False], [True, False, False])]
    given = {Slot("change", part="extractor"): change} | {Slot("kept", at): mask for at, mask in enumerate(masks)}
    made = operation.apply(Inputs(given), None)["extractor"]
    assert made["conv.weight"].tolist() == [[3, 1.5], [4, 2], [0, 0]]
    assert made["conv.bias"].tolist() == [1, 4, 0]


# -- FedNova ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("momentum", "weights", "expected"),
    [(0.0, (4.0, 2.0), (1.04375, -1.825)), (0.9, (9.049, 2.9), (0.99500497, -1.60147115))],
)
def test_fednova_normalises_by_the_weights_of_gradients(
    momentum: float, weights: tuple[float, float], expected: tuple[float, float], run: Small
) -> None:
    training = TrainingSettings(learning_rate=0.1, batch_size=4, momentum=momentum)
    found = [training.gradient_weight(steps) for steps in (4, 2)]
    assert found == pytest.approx(weights, abs=EXACT)
    updates = [one._replace(gradient_weight=weight) for one, weight in zip(moved(W), found, strict=True)]
    state = NormalisedMean().apply(run.learner, {"model": model(*W)}, updates, aggregation())
    assert numbers(run, state["model"]) == pytest.approx(expected, abs=EXACT)


def test_fednova_with_equal_steps_is_fedavg_to_the_last_bit(run: Small) -> None:
    updates = [one._replace(gradient_weight=3.3) for one in moved(W)]
    made, mean = (
        rule.apply(run.learner, {"model": model(*W)}, updates, aggregation()) for rule in (NormalisedMean(), Mean())
    )
    assert numbers(run, made["model"]) == numbers(run, mean["model"])


def test_fednova_gives_no_weight_to_who_has_taken_no_step(run: Small) -> None:
    updates = moved(W, (CHANGES[0], (0.0, 0.0)))
    updates = [one._replace(gradient_weight=4.0 * (one.sender == 0)) for one in updates]
    state = NormalisedMean().apply(run.learner, {"model": model(*W)}, updates, aggregation())
    assert numbers(run, state["model"]) == pytest.approx([1 + 0.75 * 0.75 * 0.2, -2 - 0.75 * 0.75 * 0.4], abs=EXACT)


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("pull", [0.0, 0.7])
def test_a_gradient_weight_is_how_far_gradients_of_one_lead(momentum: float, pull: float) -> None:
    """By PyTorch's own SGD, in learning rates."""
    settings = TrainingSettings(learning_rate=0.1, batch_size=4, momentum=momentum)
    weight = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    sgd = torch.optim.SGD([weight], lr=0.1, momentum=momentum)
    for steps in range(1, 12):
        weight.grad = 1 + pull * weight.detach()
        sgd.step()
        assert settings.gradient_weight(steps, pull) == pytest.approx(-weight.item() / 0.1, abs=1e-12)


# -- inverse distances ------------------------------------------------------------------------------------------------


THREE = (*CHANGES, (0.0, 0.0))


def with_accuracy(updates: Sequence[Update], accuracies: Sequence[float]) -> list[Update]:
    told = [{"accuracy": model(one, name="accuracy", part="accuracy")["accuracy"]} for one in accuracies]
    return [
        one._replace(models={**one.models, "accuracy": accuracy}) for one, accuracy in zip(updates, told, strict=True)
    ]


@pytest.mark.parametrize(
    ("rule", "samples", "weights"),
    [
        (InverseDistance(epsilon=0.0), False, (0.17241379, 0.13793103, 0.68965517)),
        (InverseDistance(epsilon=0.0), True, (0.25423729, 0.06779661, 0.67796610)),
        (InverseDistance(epsilon=0.0, accuracy=True), False, (0.18367347, 0.08163265, 0.73469388)),
        (InverseDistance(epsilon=0.0, norm="l2"), False, (0.20287092, 0.15559489, 0.64153418)),
    ],
    ids=["uniform", "samples", "intrac", "euclidean"],
)
def test_inverse_distances_weigh_updates(
    rule: InverseDistance, samples: bool, weights: tuple[float, ...], run: Small
) -> None:
    updates = with_accuracy(moved(W, THREE), (0.5, 0.9, 0.25))
    updates = [one if samples else one._replace(weight=1.0) for one in updates]
    at = aggregation()._replace(classes=2)
    state = rule.apply(run.learner, {"model": model(*W)}, updates, at)
    expected = [
        start + sum(weight * change[axis] for weight, change in zip(weights, THREE, strict=True))
        for axis, start in enumerate(W)
    ]
    assert numbers(run, state["model"]) == pytest.approx(expected, abs=EXACT)
    if rule.norm == "l1" and not samples and not rule.accuracy:
        assert expected == pytest.approx((1.00689655, -1.93103448), abs=EXACT)


@pytest.mark.parametrize("epsilon", [0.0, 1e-8, 1.0])
def test_models_that_are_all_the_mean_weigh_the_same(epsilon: float, run: Small) -> None:
    updates = [one._replace(weight=1.0) for one in moved(W, ((0.5, 0.25), (0.5, 0.25)))]
    state = InverseDistance(epsilon=epsilon).apply(run.learner, {"model": model(*W)}, updates, aggregation())
    assert numbers(run, state["model"]) == [1.5, -1.75]


def test_without_epsilon_a_model_at_the_mean_is_all_that_counts(run: Small) -> None:
    updates = [one._replace(weight=1.0) for one in moved(W, ((0.5, 0.5), (-0.5, -0.5), (0.0, 0.0)))]
    state = InverseDistance(epsilon=0.0).apply(run.learner, {"model": model(*W)}, updates, aggregation())
    assert numbers(run, state["model"]) == list(W)


def test_models_that_are_all_infinitely_far_from_the_mean_make_no_number(run: Small) -> None:
    """So an evaluation finds that the run has diverged."""
    far = (-1.5e308, -1.5e308)
    updates = [one._replace(weight=1.0) for one in moved((0.0, 0.0), ((1.5e308, 1.5e308), (1.4e308, 1.4e308)))]
    state = InverseDistance().apply(run.learner, {"model": model(*far)}, updates, aggregation())
    assert all(map(math.isnan, numbers(run, state["model"])))


def test_two_clients_always_tie(run: Small) -> None:
    updates = [one._replace(weight=1.0) for one in moved(W)]
    state = InverseDistance().apply(run.learner, {"model": model(*W)}, updates, aggregation())
    assert numbers(run, state["model"]) == pytest.approx([1.0, -1.7], abs=EXACT)
