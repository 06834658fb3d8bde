"""What a server rule is told of an update: who made it, of what, with how many samples, steps and bytes.

A client has 10 samples in mini-batches of 5, and the model 1000 B; with LASP 4 samples, and a classifier of 200 B.
"""

from __future__ import annotations

from typing import Any

import pytest
from chains import relayed
from noting import Noting
from plain_learner import PlainLearner, text
from small_worlds import NO_CONTENTION, prepared
from test_lasp_on_the_clock import CLASSIFIER, WHOLE, fedavg

from fedsim.learning.rules.update import Update

PARTS = ("extractor", "classifier")


def noted(changes: dict[str, Any], parts: tuple[str, ...] = ("model",)) -> Noting:
    """What the rule of the first protocol has seen by the end of a run."""
    rule = Noting()
    world, protocol = prepared(changes, learner=lambda *_: PlainLearner(parts=parts))
    protocol = protocol.model_copy(update={"server": rule})
    world.env.run(until=world.env.process(protocol.run(world)))
    return rule


def numbers(update: Update) -> tuple[int, int, int, int, float]:
    """Sender, clients, samples, steps and weight."""
    return update.sender, update.clients, update.samples, update.steps, update.weight


@pytest.mark.parametrize(("weighting", "weight"), [("samples", 10.0), ("uniform", 1.0)])
def test_in_fedavg_an_update_is_of_its_client_and_of_the_rounds_model(weighting: str, weight: float) -> None:
    protocol = {"name": "fedavg", "fraction": 1.0, "weighting": weighting}
    rule = noted(NO_CONTENTION | {"protocols": [protocol], "training.epochs": 3, "stop.rounds": 2})
    for number, base in ((1, "initial"), (2, "mean of round 1")):
        updates = rule.seen(number)
        assert [numbers(update) for update in updates] == [(client, 1, 10, 3 * 2, weight) for client in (0, 1)]
        assert {update.version for update in updates} == {number - 1}
        assert {text(update.base) for update in updates} == {base}
        assert [text(update.model) for update in updates] == [f"{base} trained by {client}" for client in (0, 1)]
        assert {update.bytes for update in updates} == {1_000.0}


def test_a_last_mini_batch_that_is_not_full_is_a_step_too() -> None:
    rule = noted(NO_CONTENTION | {"data.samples_per_client": 11, "training.epochs": 2})
    assert [numbers(update) for update in rule.seen(1)] == [(client, 1, 11, 2 * 3, 11.0) for client in (0, 1)]


def test_a_round_in_which_nothing_arrived_makes_no_version() -> None:
    # Each update takes 17 s. It is given up at 10 s in the first round, and has time in the second one.
    changes = {"topology.devices": 1, "stop.rounds": 2, "network.late_transfers": "cancel"}
    faults = {"scheduled": [{"node": "sensor-1", "at_s": 1.0, "for_s": 1.0}], "messages": "lose"}
    rule = noted(NO_CONTENTION | changes | {"faults": faults})
    assert list(rule._rounds) == [2]
    assert [(update.version, text(update.base)) for update in rule.seen(2)] == [(0, "initial")]


@pytest.mark.parametrize(("weighting", "weights"), [("samples", [20.0, 30.0]), ("uniform", [1.0, 1.0])])
def test_the_samples_and_steps_of_a_chain_add_up(weighting: Any, weights: list[float]) -> None:
    rule = Noting()
    changes = NO_CONTENTION | {"topology.devices": 5, "training.epochs": 2}
    relayed(changes, (0, 1), (2, 3, 4), weighting=weighting, learner=PlainLearner(), rule=rule)
    one, other = rule.seen(1)
    assert numbers(one) == (1, 2, 20, 2 * 2 * 2, weights[0])
    assert numbers(other) == (4, 3, 30, 3 * 2 * 2, weights[1])
    assert (text(one.base), text(other.base)) == ("initial", "initial")
    assert (one.version, other.version) == (0, 0)


def test_who_is_lost_does_not_count_in_its_chain() -> None:
    # Without wires the second one works from 21 to 26 s: it fails then.
    rule = Noting()
    faults = {"faults": {"scheduled": [{"node": "sensor-2", "at_s": 22.0, "for_s": 1.0}], "messages": "lose"}}
    changes = NO_CONTENTION | {"topology.devices": 3} | faults
    relayed(changes, (0, 1, 2), weighting="samples", learner=PlainLearner(), rule=rule)
    (update,) = rule.seen(1)
    assert numbers(update) == (2, 2, 20, 4, 20.0)
    assert text(update.model) == "initial trained by 0 trained by 2"


def test_of_a_calibration_the_classifier_comes_home_and_was_made_from_the_classifier() -> None:
    rule = noted(fedavg(3), PARTS)
    for number in range(1, 7):
        parts = list(PARTS) if number in (1, 4) else ["classifier"]
        for update in rule.seen(number):
            assert list(update.models) == ["model"]
            assert (sorted(update.model), sorted(update.base)) == (sorted(parts), sorted(parts))
            assert update.bytes == (WHOLE if number in (1, 4) else CLASSIFIER)
            assert (update.samples, update.version) == (4, number - 1)


@pytest.mark.parametrize(
    ("exchange", "steps"),
    [
        # Four new samples are one mini-batch; in the second block twelve remembered rows make them four.
        ({"scc": {}}, [1, 1, 1, 1, 4, 4]),
        ({"scc": {}, "calibration_epochs": 3}, [1, 3, 3, 1, 12, 12]),
        ({"scc": None}, [1, 1, 1, 1, 1, 1]),
        ({"scc": {"without_history": "skip"}}, [1, 0, 0, 1, 4, 4]),
    ],
)
def test_a_calibration_takes_a_step_for_each_mini_batch_of_its_rows(exchange: dict[str, Any], steps: list[int]) -> None:
    rule = noted(fedavg(3, exchange={"name": "lasp", **exchange}), PARTS)
    assert [{update.steps for update in rule.seen(number)} for number in range(1, 7)] == [{some} for some in steps]
