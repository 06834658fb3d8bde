"""Classifiers that stay on the clients: what travels, with what each training begins, and what a device may lose.

The model has 1000 B, its classifier 200 B. Where nobody waits for anybody, a journey of the extractor takes 3.2 s down,
5 s of work and 6.4 s up, so a round ends after 14.6 s.
"""

from __future__ import annotations

from typing import Any

import digit_runs
import pytest
from chains import ended, over_the_air
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, NO_CONTENTION, simulated

from fedsim.errors import UserError
from fedsim.experiment.validate import validate

WHOLE, CLASSIFIER = 1_000.0, 200.0
EXTRACTOR = WHOLE - CLASSIFIER
PARTED: dict[str, Any] = NO_CONTENTION | {"model.classifier_parameters": CLASSIFIER / 4}
PARTS = ("extractor", "classifier")
STP = {"name": "stp", "grouping": {"name": "random"}, "growth": {"name": "constant", "beta": 1}, "sampling_rate": 1.0}
IN_SEQUENCE = STP | {"exchange": {"name": "extractor"}}


def fedper(**keys: Any) -> dict[str, Any]:
    return PARTED | {"protocols": [{"name": "fedper", "fraction": 1.0, **keys}]}


def starts(changes: dict[str, Any], client: int = 0) -> list[str]:
    """How the model came about with which each training of a client begins: its extractor, then its classifier."""
    learner = PlainLearner(parts=PARTS)
    simulated(changes, learner=lambda *_: learner)
    return [training.start for training in learner.trainings if training.client == client]


# -- what travels ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval", [1, 2])
def test_only_the_extractor_goes_down_and_up(interval: int) -> None:
    world = simulated(fedper(interval=interval) | {"stop.rounds": 3, "topology.devices": 4})
    assert over_the_air(world) == {"uplink": 3 * 4 * EXTRACTOR, "downlink": 3 * 4 * EXTRACTOR}
    assert [end_s for end_s, *_ in ended(world)] == pytest.approx([14.6, 29.2, 43.8])


def test_a_group_in_sequence_hands_on_the_extractor_alone() -> None:
    world = simulated(PARTED | {"protocols": [IN_SEQUENCE], "topology.devices": 3})
    assert over_the_air(world) == {"uplink": 3 * EXTRACTOR, "downlink": 3 * EXTRACTOR}
    learner = PlainLearner(parts=PARTS)
    simulated(PARTED | {"protocols": [IN_SEQUENCE], "topology.devices": 3}, learner=lambda *_: learner)
    first, second, third = learner.trainings
    assert first.start == "initial"
    assert second.start == f"initial trained by {first.client} & initial"
    assert third.start == f"initial trained by {first.client} & initial trained by {second.client} & initial"


def test_of_a_stream_the_same_samples_are_taken_as_in_fedavg() -> None:
    stream = {"data": {"name": "digits", "partition": {"name": "iid"}, "stream": {"samples": 4}}, "stop.rounds": 3}
    captures = []
    for protocol in ({"name": "fedper", "fraction": 1.0}, {"name": "fedavg", "fraction": 1.0}):
        learner = PlainLearner(parts=PARTS)
        simulated(PARTED | stream | {"protocols": [protocol]}, learner=lambda *_, made=learner: made)
        captures.append(learner.captures)
    assert captures[0] == captures[1] and len(captures[0]) == 6


# -- what a client begins with -----------------------------------------------------------------------------------------


def away(at_s: float, for_s: float) -> dict[str, Any]:
    return {"scheduled": [{"node": "sensor-1", "at_s": at_s, "for_s": for_s}]}


def test_each_client_goes_on_with_its_own_classifier() -> None:
    for client in (0, 1):
        first = f"initial trained by {client}"
        assert starts(fedper() | {"stop.rounds": 3}, client) == [
            "initial",
            f"mean of round 1 & {first}",
            f"mean of round 2 & mean of round 1 & {first} trained by {client}",
        ]


@pytest.mark.parametrize("memory", ["kept", "lost"])
def test_a_device_that_forgets_begins_with_the_initial_classifier_again(memory: str) -> None:
    """It fails while it sends its first extractor, so its own classifier alone tells of its first training."""
    found = starts(fedper() | {"stop.rounds": 2, "faults": away(10.0, 1.0) | {"device_memory": memory}})
    kept = "initial trained by 0" if memory == "kept" else "initial"
    assert found == ["initial", f"mean of round 1 & {kept}"]


def test_who_misses_rounds_goes_on_with_the_classifier_that_it_had() -> None:
    changes = fedper() | {"stop.rounds": 4, "faults": away(15.0, 20.0)}
    assert [row[2] for row in ended(simulated(changes))] == [2, 1, 1, 2], "it misses two rounds"
    assert starts(changes) == ["initial", "mean of round 3 & initial trained by 0"]


def test_who_is_late_keeps_what_it_has_learned() -> None:
    """The work ends after 8.2 s, and its upload is given up at the deadline."""
    changes = fedper(deadline_s=10.0) | {"stop.rounds": 2}
    assert [row[4] for row in ended(simulated(changes))] == [2, 2]
    assert starts(changes) == ["initial", "initial & initial trained by 0"]


def test_with_losses_and_late_clients_nothing_of_a_classifier_is_averaged() -> None:
    learner = PlainLearner(parts=PARTS)
    protocols = {"protocols": [{"name": "fedper", "clients": 3, "deadline_s": 40.0, "over_selection": 1.5}]}
    parts = {"model.classifier_parameters": CLASSIFIER / 4}
    world = simulated(EVERYTHING_HAPPENS | parts | protocols, learner=lambda *_: learner)
    assert learner.means
    assert all(meant.model.keys() == {"extractor"} for meants in learner.means.values() for meant in meants)
    assert {row[3] > 0 for row in ended(world)} | {row[4] > 0 for row in ended(world)} == {True, False}


# -- what it does not go together with ---------------------------------------------------------------------------------


def said(changes: dict[str, Any]) -> str:
    with pytest.raises(UserError) as refused:
        validate(digit_runs.scenario(changes))
    return str(refused.value)


def test_a_model_of_one_part_is_refused() -> None:
    message = said({"model": {"name": "softmax"}, "protocols": [{"name": "fedper", "clients": 2}]})
    assert message.startswith("protocols[0]: exchange 'extractor' needs a model of an extractor and a classifier, and ")
    composed = {"name": "composed", "cohort": {"name": "random", "clients": 2}, "exchange": {"name": "extractor"}}
    assert said({"model": {"name": "softmax"}, "protocols": [composed]}).startswith(
        "protocols[0].exchange: exchange 'extractor'"
    )


def test_a_codec_that_is_not_exact_is_refused() -> None:
    sparse = {"path": f"{digit_runs.__file__.replace('digit_runs', 'outside/sparse')}:Sparse", "threshold": 0.02}
    assert said({"protocols": [{"name": "fedper", "clients": 2, "codec": sparse}]}) == (
        "protocols[0].codec: 'sparse' would write the classifier too, which stays on the client with exchange "
        "'extractor'; choose float32"
    )


def test_an_objective_that_needs_the_servers_classifier_is_refused() -> None:
    distilled = {"objective": {"name": "distilled", "coefficient": 0.1}}
    assert said({"protocols": [{"name": "fedper", "clients": 2, **distilled}]}) == (
        "protocols[0].objective: 'distilled' needs the whole global model, and with exchange 'extractor' the server "
        "has no classifier that anybody has trained; choose another objective"
    )


def test_a_formula_of_whole_models_is_refused() -> None:
    changes = {"accounting": ["event", "formula"], "formula": {"name": "hfedms"}}
    message = said({"protocols": [{"name": "fedper", "clients": 2}], **changes})
    assert message.startswith("protocols[0]: formula 'hfedms' has no closed form for exchange 'extractor', which sends")
