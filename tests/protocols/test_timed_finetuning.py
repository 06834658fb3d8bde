"""Fine-tuning that takes time, before an evaluation: what it sends, how long it takes, and what it leaves alone.

Where nobody waits for anybody, a round takes 4 s down, 5 s of work and 8 s up. Fine-tuning for E epochs: 4 s and 5 E s.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml
from chains import ended, over_the_air, work
from plain_learner import PlainLearner
from simpy import Event
from small_worlds import BASE, EVERYTHING_HAPPENS, NO_CONTENTION, scenario, simulated

from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.protocols.schedules.schedule import Parts, Schedule
from fedsim.protocols.world import World
from fedsim.scenario.load import load

ONE_OF_TWO: dict[str, Any] = NO_CONTENTION | {"protocols": [{"name": "fedavg", "clients": 1}], "stop.rounds": 3}


def evaluate(epochs: int = 2, every: int = 1, *, timed: bool = True) -> dict[str, Any]:
    keys = {"on": ["own"], "every": every, "finetune_epochs": epochs, "finetune_timed": timed}
    return {"evaluate": keys}


def ends(world: World) -> list[float]:
    return [end_s for end_s, *_ in ended(world)]


def test_without_it_the_clock_is_as_it_was() -> None:
    for changes in (ONE_OF_TWO, EVERYTHING_HAPPENS):
        before = simulated(changes).trace.digest()
        assert simulated(changes | evaluate(timed=False)).trace.digest() == before
        assert simulated(changes | evaluate()).trace.digest() != before


def test_evaluations_that_are_due_and_the_last_one_are_preceded_by_it() -> None:
    """Rounds 2 and 3: both devices get 1000 B in 4 s, and work 10 s."""
    world = simulated(ONE_OF_TWO | evaluate(every=2))
    assert ends(world) == [17.0, 34.0 + 14.0, 51.0 + 28.0]
    assert over_the_air(world) == {"uplink": 3_000.0, "downlink": 3_000.0 + 2 * 2_000.0}
    done = world.loop.rounds_done
    assert [(one.uplink_bytes, one.downlink_bytes) for one in done] == [(1e3, 1e3), (2e3, 4e3), (3e3, 7e3)]
    tuning = [row for row in work(world) if row[2] - row[1] == 10.0]
    assert tuning == [(c, begin_s, begin_s + 10.0, "arrived") for begin_s in (38.0, 69.0) for c in (0, 1)]


def test_only_what_clients_have_in_common_is_sent() -> None:
    parts = {"model.classifier_parameters": 50, "protocols": [{"name": "fedper", "clients": 1}]}
    world = simulated(ONE_OF_TWO | parts | evaluate(epochs=1))
    assert over_the_air(world) == {"uplink": 3 * 800.0, "downlink": 3 * 3 * 800.0}
    assert ends(world) == pytest.approx([count * (14.6 + 3.2 + 5.0) for count in (1, 2, 3)])


@pytest.mark.parametrize("late", ["finish", "cancel"])
def test_it_ends_at_the_deadline_of_the_schedule(late: str) -> None:
    protocol = {"protocols": [{"name": "fedavg", "clients": 1, "deadline_s": 18.0}], "network.late_transfers": late}
    world = simulated(ONE_OF_TWO | protocol | evaluate(epochs=4) | {"stop.rounds": 1})
    assert ends(world) == [17.0 + 18.0]
    cancelled = [(client, 21.0, 35.0, "cancelled") for client in (0, 1)]
    assert work(world)[1:] == (cancelled if late == "cancel" else [])


def test_who_is_late_and_goes_on_is_not_asked() -> None:
    late = {"protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 16.0}]}
    world = simulated(ONE_OF_TWO | late | evaluate() | {"stop.rounds": 1})
    assert ends(world) == [16.0] and over_the_air(world)["downlink"] == 2_000.0


def failing(at_s: float, for_s: float | None, node: str = "sensor-1") -> dict[str, Any]:
    return {"faults": {"scheduled": [{"node": node, "at_s": at_s, "for_s": for_s}]}}


def test_who_cannot_be_reached_is_not_asked() -> None:
    alone = {"protocols": [{"name": "fedavg", "fraction": 1.0}], "stop.rounds": 1}
    world = simulated(ONE_OF_TWO | alone | evaluate() | failing(1.0, None))
    assert over_the_air(world)["downlink"] == 250.0 + 1_000.0 + 1_000.0  # a quarter of 4 s, lost; and two messages
    assert [row[0] for row in work(world)] == [1, 1]


def test_who_fails_meanwhile_gives_it_up() -> None:
    alone = {"topology.devices": 1, "stop.rounds": 2}
    world = simulated(ONE_OF_TWO | alone | evaluate() | failing(25.0, 0.5))
    assert work(world)[1] == (0, 21.0, 25.0, "cancelled")
    assert ends(world)[0] == 25.0
    assert ended(world)[1][1:] == (1, 1, 0, 0), "the next round has the device again"


def test_it_is_no_training_and_uses_no_samples_up() -> None:
    data = {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2}
    stream = {"data": data | {"stream": {"samples": 4}}}
    learners = {timed: PlainLearner() for timed in (False, True)}
    for timed, learner in learners.items():
        changes = ONE_OF_TWO | stream | evaluate(timed=timed)
        world = simulated(changes, learner=lambda *_, made=learner: made)
        assert sum(client.trainings for client in world.clients) == 3
    assert learners[True].captures == learners[False].captures
    assert learners[True].trainings == learners[False].trainings


def test_trainings_take_as_long_as_without_it() -> None:
    """Where each training draws its own time, fine-tuning draws from a stream of its own."""
    compute = {"name": "distribution", "law": "lognormal", "mean_seconds_per_sample": 0.5, "variation": 1.0}
    slow = {"devices.classes.sensor.compute": compute | {"per": "training"}, "stop.rounds": 6}
    rows = [simulated(ONE_OF_TWO | slow | evaluate(timed=timed)).trace.work.array() for timed in (False, True)]
    once, with_tuning = ((of["end_s"] - of["start_s"])[of["samples"] == 10] for of in rows)
    assert once == pytest.approx(with_tuning, rel=1e-9)
    tuned = (rows[1]["end_s"] - rows[1]["start_s"])[rows[1]["samples"] == 20] / 2
    assert not {*tuned.round(6)} & {*once.round(6)}


def test_the_estimate_of_a_run_counts_it() -> None:
    changes = ONE_OF_TWO | evaluate(every=2) | {"stop.rounds": 7}
    facts, _ = describe(scenario(changes))
    [protocol] = facts["protocols"]
    world = simulated(changes)
    assert protocol["run"]["seconds"] == ends(world)[-1]
    assert protocol["run"]["downlink_bytes"] == over_the_air(world)["downlink"]


BESIDE = {"name": "fedavg", "clients": 1}
OTHER_SCHEDULE = {
    "cohort": {"name": "random", "clients": 1},
    "schedule": {"path": f"{__file__}:OnceInAWhile"},
}
REFUSED = {
    "own models are not scored": (
        {"evaluate": {"finetune_epochs": 1}},
        "evaluate.finetune_epochs: 1 is for clients' own models, and evaluate.on does not name them; write on: [own], "
        "or leave it out",
    ),
    "nothing takes time": (
        {"evaluate": {"on": ["own"], "finetune_timed": True}},
        "evaluate.finetune_timed: true needs finetune_epochs of at least 1",
    ),
    "no client gets the model": (
        evaluate() | {"protocols": [{"name": "centralised"}]},
        "evaluate.finetune_timed: true, and protocol 'centralised' has no rounds in which clients get its model to "
        "fine-tune it; use protocols that go in rounds, or leave it out",
    ),
    "another schedule": (
        evaluate() | {"protocols": [BESIDE, {"name": "composed", **OTHER_SCHEDULE}]},
        "evaluate.finetune_timed: true, and protocol 'composed' has no rounds in which clients get its model to "
        "fine-tune it; use protocols that go in rounds, or leave it out",
    ),
}


class OnceInAWhile(Schedule):
    """Another schedule than rounds."""

    name: Literal["once_in_a_while"] = "once_in_a_while"

    def run(self, world: World, parts: Parts) -> Generator[Event, Any, None]:
        yield world.env.timeout(1.0)


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together_is_refused_with_its_key(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    path = tmp_path / "small.yaml"
    path.write_text(yaml.safe_dump(BASE | changes))
    with pytest.raises(UserError) as refused:
        load(path)
    assert str(refused.value).partition(": ")[2] == message
