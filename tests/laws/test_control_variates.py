"""SCAFFOLD on toys whose optimum is known: by hand on one number, and with momentum on strongly convex quadratics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from learned import aggregation, update
from small_learner import Small, small

from fedsim.learning.graph import Graph
from fedsim.learning.learner import Model
from fedsim.learning.objectives.control_variates import CONTROL, CONTROL_CHANGE, OWN, ControlVariates
from fedsim.learning.objectives.objective import Given
from fedsim.learning.operations.init import Init
from fedsim.learning.rules.rule import State
from fedsim.learning.rules.scaffold import ControlledMean
from fedsim.learning.training import TrainingSettings


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Small]:
    made = small(tmp_path)
    yield made
    made.store.close()


def model(number: float) -> Model:
    handle = Graph("given").node(Init(str(number)), {}).output("given")
    handle.value = {"w": torch.tensor([number], dtype=torch.float64)}
    return {"given": handle}


def number(run: Small, handles: Model) -> float:
    (handle,) = handles.values()
    run.learner._forcer.force(handle)
    (tensor,) = handle.value.values()
    return float(tensor)


class Local(NamedTuple):
    """What a client ends with."""

    weight: float
    own: float
    change: float


def trained(start: float, control: float, own: float | None, slope: float, zero: float, steps: int) -> Local:
    """SGD on a parabola whose gradient is ``slope (y - zero)``, with the objective's own correction."""
    training = TrainingSettings(learning_rate=0.1, batch_size=1)
    y, begin, c = (torch.tensor([value], dtype=torch.float64) for value in (start, start, control))
    state = {} if own is None else {OWN: {"w": torch.tensor([own], dtype=torch.float64)}}
    has = Given({"w": begin}, state, {CONTROL: {"w": c}}, training, steps)
    for _ in range(steps):
        gradients = {"w": slope * (y - zero)}
        ControlVariates().add_gradient(gradients, {"w": y}, has)
        y -= 0.1 * gradients["w"]
    made = ControlVariates().remember({"w": y}, has)
    return Local(float(y), float(made[OWN]["w"]), float(made[CONTROL_CHANGE]["w"]))


def test_two_rounds_by_hand(run: Small) -> None:
    """Gradients y - 1 and 3 (y + 1), two steps of 0.1 from zero; both clients take part."""
    state: State = {"model": model(0.0), CONTROL: model(0.0)}
    own: list[float | None] = [None, None]
    for x, c, c_i in ((-0.16, 0.8, (-0.95, 2.55)), (-0.2815, 0.6075, (-1.1895, 2.4045))):
        start, control = number(run, state["model"]), number(run, state[CONTROL])
        ends = [trained(start, control, own[n], slope, zero, 2) for n, (slope, zero) in enumerate(((1, 1), (3, -1)))]
        own = [end.own for end in ends]
        updates = [
            update(n, model(end.weight), 1.0)._replace(
                models={"model": model(end.weight), CONTROL_CHANGE: model(end.change)}
            )
            for n, end in enumerate(ends)
        ]
        state = ControlledMean().apply(run.learner, state, updates, aggregation(clients=2))
        assert number(run, state["model"]) == pytest.approx(x, abs=1e-12)
        assert number(run, state[CONTROL]) == pytest.approx(c, abs=1e-12)
        assert own == pytest.approx(c_i, abs=1e-12)
        assert number(run, state[CONTROL]) == pytest.approx(sum(c_i) / 2, abs=1e-12)


def test_the_servers_control_moves_by_the_share_of_those_who_took_part(run: Small) -> None:
    """With N = 10 and two in a round, c moves by a tenth of their sum."""
    sent = [
        update(n, model(0.0), 1.0)._replace(models={"model": model(0.0), CONTROL_CHANGE: model(2.0 + n)})
        for n in (3, 7)
    ]
    state: State = {"model": model(0.0), CONTROL: model(0.25)}
    state = ControlledMean().apply(run.learner, state, sent, aggregation(clients=10))
    assert number(run, state[CONTROL]) == pytest.approx(0.25 + (5.0 + 9.0) / 10, abs=1e-12)


# -- momentum ---------------------------------------------------------------------------------------------------------

CLIENTS, SIZE, STEPS, RATE = 30, 5, 20, 0.01


class Quadratics:
    """``1/2 (y - b)' A (y - b)`` for each client, the eigenvalues of A from 1 to 4."""

    def __init__(self) -> None:
        drawn = torch.Generator().manual_seed(1)
        turned = torch.linalg.qr(torch.randn(CLIENTS, SIZE, SIZE, generator=drawn, dtype=torch.float64)).Q
        values = 1 + 3 * torch.rand(CLIENTS, SIZE, generator=drawn, dtype=torch.float64)
        self.a = turned @ torch.diag_embed(values) @ turned.transpose(1, 2)
        self.b = torch.randn(CLIENTS, SIZE, generator=drawn, dtype=torch.float64)
        self.optimum = torch.linalg.solve(self.a.sum(0), (self.a @ self.b[..., None]).sum(0)).squeeze(1)

    def gradient(self, y: torch.Tensor) -> torch.Tensor:
        return (self.a @ (y - self.b)[..., None]).squeeze(2)

    def distance(self, *, rounds: int, momentum: float, through: bool) -> float:
        """To the optimum: all clients train at once, each in a row, with the objective's own arithmetic.

        The correction goes *through* the momentum buffer, as it does in fedsim, or is added beside it.
        """
        training = TrainingSettings(learning_rate=RATE, batch_size=1, momentum=momentum)
        x, control = (torch.zeros(SIZE, dtype=torch.float64) for _ in range(2))
        own = torch.zeros(CLIENTS, SIZE, dtype=torch.float64)
        for _ in range(rounds):
            start = x.expand(CLIENTS, SIZE).clone()
            has = Given({"w": start}, {OWN: {"w": own}}, {CONTROL: {"w": control}}, training, STEPS)
            y, buffer = start.clone(), torch.zeros_like(start)
            for _ in range(STEPS):
                gradients, push = {"w": self.gradient(y)}, {"w": torch.zeros_like(y)}
                ControlVariates().add_gradient(gradients if through else push, {"w": y}, has)
                buffer = momentum * buffer + gradients["w"]
                y = y - RATE * (buffer + push["w"])
            made = ControlVariates().remember({"w": y}, has)
            own, control, x = made[OWN]["w"], control + made[CONTROL_CHANGE]["w"].mean(0), y.mean(0)
            if not float(x.norm()) < 1e6:
                return float("inf")
        return float((x - self.optimum).norm())


def plain_divisor(settings: TrainingSettings, steps: int, pull: float = 0.0) -> float:
    """The planted fault: the number of steps, whatever the momentum."""
    return float(steps)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_through_the_momentum_buffer_and_by_the_weight_of_gradients_it_reaches_the_optimum(momentum: float) -> None:
    assert Quadratics().distance(rounds=800, momentum=momentum, through=True) < 1e-6


def test_with_momentum_a_plain_divisor_diverges(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrainingSettings, "gradient_weight", plain_divisor)
    assert Quadratics().distance(rounds=25, momentum=0.9, through=True) == float("inf")


@pytest.mark.parametrize("planted", [False, True])
def test_beside_the_momentum_buffer_it_stalls_by_either_divisor(planted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted:
        monkeypatch.setattr(TrainingSettings, "gradient_weight", plain_divisor)
    assert 0.1 < Quadratics().distance(rounds=800, momentum=0.9, through=False) < 1.0
