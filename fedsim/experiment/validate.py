"""Everything about a scenario that can be known to be wrong before it runs."""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Callable

from fedsim.data.raw_dataset import Later
from fedsim.errors import Misfit, UserError
from fedsim.learning.learner import NoLearner
from fedsim.metrics.cost_models.settings import CostModelSettings
from fedsim.models.table import ModelTable
from fedsim.protocols.combination import Combination
from fedsim.protocols.newcomers import NewcomersSettings
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import RunLoop
from fedsim.protocols.world import World
from fedsim.scenario.build import Materials, build_world, check_protocol, gather_materials
from fedsim.scenario.closed_forms import closed_form
from fedsim.scenario.load import written_out
from fedsim.scenario.schema import Scenario

__all__ = ["seeds_tried", "seen_by", "validate"]

MOST_SEEDS = 30
MOST_CLIENTS = 200_000
MOST_DRAWN_CLIENTS = 60_000
"""Whose samples are drawn anew for each seed."""
MOST_BYTES = 50_000_000
"""Of all seeds that are tried in seconds: of samples that are made anew for each."""

Look = Callable[[Materials, World], None]


def validate(scenario: Scenario, look: Look = lambda *_: None, *, every_seed: bool = True) -> Materials:
    """Build the world of every seed, and let every protocol look at it, without running any of them.

    Without *every_seed*, only the first `seeds_tried` are built, which takes seconds however many there are. *look* is
    shown the world of the first seed as well. Returns what the protocols share on that seed.

    The last world that was built is full of cycles. Who builds another one next should call `gc.collect` before.

    Raises `UserError`, with the key and where it was written, when parts of the scenario do not fit each other, or
    cannot be kept in a run folder.
    """
    written_out(scenario)
    first, *others = scenario.seeds
    materials = gather_materials(scenario, first)
    for protocol in scenario.protocols:
        with scenario.about(*scenario.place_of(protocol)):
            _check_cohort(protocol, len(materials.topology.sensors), scenario.newcomers)
    _check_world(scenario, materials, look)
    for protocol in scenario.protocols:
        with scenario.about(*scenario.place_of(protocol)):
            _check_formula(protocol, scenario.formula, materials.table)
    tried = len(others) if every_seed else seeds_tried(scenario, materials) - 1
    for seed in others[:tried]:  # one seed may leave somebody without samples, or out of coverage, and another not
        gc.collect()  # the world before is full of cycles
        _check_world(scenario, gather_materials(scenario, seed))
    return materials


def seeds_tried(scenario: Scenario, materials: Materials) -> int:
    """How many of the scenario's seeds can be tried in seconds, by the *materials* of the first one; one at least."""
    samples, clients = materials.dataset.stored, len(materials.topology.sensors)
    by_clients = (MOST_DRAWN_CLIENTS if isinstance(samples, Later) else MOST_CLIENTS) // clients
    made_bytes = 0 if samples is None or isinstance(samples, Later) else samples.nbytes
    by_samples = MOST_BYTES // max(made_bytes, 1)
    return min(max(min(MOST_SEEDS, by_clients, by_samples), 1), len(scenario.seeds))


def _check_cohort(protocol: Protocol, clients: int, newcomers: NewcomersSettings | None) -> None:
    if not isinstance(protocol, Combination):
        return
    key, size = (*protocol.cohort_key, "clients"), protocol.who().mean_size(clients)
    if size > clients:
        raise Misfit(f"{size:g} must be at most {clients}, as there are no more sensors", *key)
    left = clients - newcomers.clients if newcomers else clients  # where none is left, the check of newcomers says so
    if size > left > 0 and getattr(protocol.who(), "clients", None) is not None:  # a fraction is of all
        raise Misfit(f"{size:g} must be at most {left}, as {clients - left} of {clients} clients are newcomers", *key)


def _check_formula(protocol: Protocol, formula: CostModelSettings | None, table: ModelTable) -> None:
    if formula is None:
        return
    form = closed_form(protocol)
    if form is not None and (exchange := form.protocol.parts.exchange).shared is not None:
        raise UserError(
            f"formula {formula.name!r} has no closed form for exchange {exchange.name!r}, which sends one part of the "
            "model in every round; leave this protocol or the formula out"
        )
    if formula.knows_calibration:
        return
    if form is not None and form.alternation(table).interval > 1:
        raise UserError(
            f"formula {formula.name!r} has no closed form for rounds that send a part of the model; choose formula "
            "'hfedms', or leave this protocol or the formula out"
        )


def _check_world(scenario: Scenario, materials: Materials, look: Look = lambda *_: None) -> None:
    """The world of one seed is built once: for the first protocol, which checks it, and then for the others.

    A protocol whose clients train another model, or hold samples back, has a world of its own.
    """
    first, *others = scenario.protocols
    world = build_world(scenario, first, materials, lambda *_: NoLearner())
    for protocol in others:
        with scenario.about(*scenario.place_of(protocol)):
            dataset = materials.data_for(protocol)
        if materials.table_for(protocol, materials.table) is world.model and dataset is world.dataset:
            check_protocol(scenario, protocol, seen_by(protocol, world, scenario))
        else:
            build_world(scenario, protocol, materials, lambda *_: NoLearner())
            gc.collect()  # that world is full of cycles
    look(materials, world)


def seen_by(protocol: Protocol, world: World, scenario: Scenario) -> World:
    """The *world* of another protocol that trains the same model on the same data, as it would be of *protocol*."""
    loop = RunLoop(
        world.env,
        world.trace,
        world.network,
        world.learner,
        stop=protocol.stop or scenario.stop,
        evaluate=scenario.evaluate,
        learning_rates=protocol.learning_rates,
    )
    return dataclasses.replace(world, training=protocol.training or scenario.training, loop=loop)
