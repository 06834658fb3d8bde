"""Compound steps at base stations: which bytes cross which hop, when, and what model comes of it.

A wire takes 1 s, the air 4 s down and 8 s up, work 5 s: a step takes 17 s. Two stations share the wire to the cloud.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import compound
import pytest
import torch
from learned import mean_of, train, update
from small_learner import Small, small, tensors
from small_worlds import NO_CONTENTION, hall, prepared

from fedsim.experiment.simulate import simulate
from fedsim.learning.learner import Model
from fedsim.learning.objectives.plain import Plain
from fedsim.protocols.world import World

STATIONS = {"a": "east", "b": "east", "c": "west"}
SAMPLES = 10


def ran(
    *,
    stations: dict[str, str] = STATIONS,
    run: Small | None = None,
    protocol: dict[str, Any] | None = None,
    changes: dict[str, Any] | None = None,
    **keys: Any,
) -> World:
    """A world in which the protocol has run to its end."""
    own = protocol or {"path": f"{compound.__file__}:CompoundSteps", **keys}
    base = NO_CONTENTION | hall(**stations) | {"network.link.rate_bps": 8_000, "protocols": [own]}
    learner = {"learner": lambda *_: run.learner} if run else {}
    world, found = prepared(base | (changes or {}), **learner)
    simulate(world, found, world.loop.stop)
    return world


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Small]:
    made = small(tmp_path)
    yield made
    made.store.close()


def crossings(world: World) -> Counter[tuple[int, str, str, float]]:
    """How often each sender has crossed each link in each direction, and with how many bytes at a time."""
    hops, links = world.trace.hops.array(), world.network.links
    ways = ["up" if uplink else "down" for uplink in hops["uplink"]]
    labels = [links[link].label for link in hops["link"]]
    return Counter(zip(hops["client"].tolist(), labels, ways, hops["bytes"].tolist(), strict=True))


def forced(run: Small, model: Model) -> dict[str, torch.Tensor]:
    for handle in model.values():
        run.learner._forcer.force(handle)
    return tensors(model)


# -- on the clock ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 5])
@pytest.mark.parametrize("rounds", [1, 3])
def test_each_step_crosses_the_air_only_and_each_round_the_wires_twice(steps: int, rounds: int) -> None:
    world = ran(steps=steps, changes={"stop.rounds": rounds})
    expected: Counter[tuple[int, str, str, float]] = Counter()
    for way in ("down", "up"):
        for index, station in enumerate(STATIONS.values()):
            expected[index, f"cell {station}", way, 1_000.0] = rounds * steps
        expected[-1, "cloud -- edge", way, 1_000.0] = 2 * rounds
        for station in ("east", "west"):
            expected[-1, f"edge -- {station}", way, 1_000.0] = rounds
    assert crossings(world) == expected


def test_a_round_takes_its_steps_and_the_way_down_and_up() -> None:
    # East has the shared wire first, both down and up.
    world = ran(steps=3, changes={"stop.rounds": 2})
    east_s = 2 + 3 * 17 + 2
    west_s = east_s + 1
    assert world.trace.rounds.array()[["end_s", "selected", "participants"]].tolist() == [
        (west_s, 3, 3),
        (2 * west_s, 3, 3),
    ]


def test_who_is_late_for_a_step_is_left_out_of_it_and_of_the_report() -> None:
    changes = {"network.late_transfers": "cancel"}
    late = ran(steps=2, deadline_s=16.0, changes=changes)
    assert late.trace.rounds.array()["participants"].tolist() == [0]
    assert not [key for key in crossings(late) if key[0] == -1 and key[2] == "up"], "there is nothing to report"
    in_time = ran(steps=2, deadline_s=17.0, changes=changes)
    assert in_time.trace.rounds.array()["participants"].tolist() == [3]


@pytest.mark.parametrize("late_transfers", ["finish", "cancel"])
def test_a_station_that_the_cloud_no_longer_waits_for_gives_up_with_its_clients(late_transfers: str) -> None:
    changes = {"network.late_transfers": late_transfers}
    world = ran(steps=2, round_deadline_s=30.0, changes=changes)
    assert world.trace.rounds.array()[["end_s", "participants"]].tolist() == [(30.0, 0)]
    assert [client.busy for client in world.clients] == [late_transfers == "finish"] * 3


# -- what comes of it --------------------------------------------------------------------------------------------------


def mean(models: list[dict[str, torch.Tensor]], weights: list[int]) -> dict[str, torch.Tensor]:
    total = sum(weights)
    return {
        name: sum(weight / total * model[name].double() for weight, model in zip(weights, models, strict=True))
        for name in models[0]
    }


def test_the_model_is_the_mean_of_the_stations_means(run: Small) -> None:
    """Of two steps each: the trainings are the learner's own, all means are by hand."""
    world = ran(run=run, steps=2)
    start = run.learner.initial_model()
    stations = []
    for members in ([0, 1], [2]):
        model = start
        for step in range(2):
            trained = [train(run.learner, model, client, Plain(), use=step).model for client in members]
            by_hand = mean([forced(run, one) for one in trained], [SAMPLES] * len(members))
            model = at_station(run, model, trained)
            for name, tensor in forced(run, model).items():
                torch.testing.assert_close(tensor.double(), by_hand[name], rtol=0, atol=1e-6)
        stations.append(by_hand)
    expected = mean(stations, [2 * SAMPLES, SAMPLES])
    found = forced(run, world.loop.model)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name].double(), tensor, rtol=0, atol=1e-6)
    assert any((found[name] != tensor).any() for name, tensor in forced(run, start).items())


def at_station(run: Small, base: Model, models: list[Model]) -> Model:
    """Where the next step begins, so that its trainings begin with the very same bits."""
    return mean_of(run.learner, base, [update(at, model, SAMPLES) for at, model in enumerate(models)])


@pytest.mark.parametrize("stations", [dict.fromkeys("abc", "east"), STATIONS], ids=["one station", "two"])
def test_one_step_a_round_is_fedavg(stations: dict[str, str], run: Small) -> None:
    """Weights are by samples at both levels; only the order of additions differs."""
    rounds = {"stop.rounds": 3}
    found = forced(run, ran(stations=stations, run=run, steps=1, changes=rounds).loop.model)
    fedavg = {"name": "fedavg", "fraction": 1.0}
    expected = forced(run, ran(stations=stations, run=run, protocol=fedavg, changes=rounds).loop.model)
    for name, tensor in expected.items():
        torch.testing.assert_close(found[name], tensor, rtol=0, atol=1e-6)


def test_a_report_says_which_of_the_clouds_models_it_was_made_from() -> None:
    seen = []

    class Listening(compound.CompoundSteps):
        def station(self, *arguments: Any) -> Any:
            update = yield from super().station(*arguments)
            seen.append(update)
            return update

    world, _ = prepared(NO_CONTENTION | hall(**STATIONS) | {"stop.rounds": 2})
    world.env.run(until=world.env.process(Listening(steps=3).run(world)))
    told = [(one.sender, one.version, one.clients, one.samples, one.steps, one.weight) for one in seen]
    first = [(0, 0, 2, 2 * SAMPLES, 3 * 2 * 2, 2 * SAMPLES), (2, 0, 1, SAMPLES, 3 * 2, SAMPLES)]
    assert told == [*first, *((sender, 1, *rest) for sender, _, *rest in first)]
