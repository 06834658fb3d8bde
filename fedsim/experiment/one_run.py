"""One protocol on one seed, whatever learns: its world is built, the clock runs, and what is left is measured."""

from __future__ import annotations

import time
from typing import Any

from fedsim.experiment.manifest import model_size
from fedsim.experiment.observer import Observer, Paused
from fedsim.experiment.result_tables import ResultTables
from fedsim.experiment.simulate import join, simulate
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round
from fedsim.scenario.build import LearnerFactory, Materials, build_world
from fedsim.scenario.schema import Scenario

__all__ = ["run_one"]


def run_one(
    scenario: Scenario,
    protocol: Protocol,
    materials: Materials,
    learner_for: LearnerFactory,
    tables: ResultTables,
    position: int,
    observer: Observer,
) -> dict[str, Any]:
    """Run *protocol* on the seed of *materials*, and add it to *tables*, in its *position* among all.

    Returns its row of the manifest.

    *learner_for* makes what learns. Raises `UserError` when the protocol does not fit the scenario, and `Paused`
    where the *observer* pauses the run.
    """
    began_s = time.monotonic()
    seed, stop = materials.seed, protocol.stop or scenario.stop
    observer.begin(protocol, seed, stop, len(materials.topology.sensors))

    def on_round(done: Round) -> None:
        observer.round_done(protocol, seed, done)
        if not world.loop.over and observer.pauses(done):
            world.learner.keep_for_later()
            raise Paused

    world = build_world(scenario, protocol, materials, learner_for, on_round)
    simulate(world, protocol, stop)
    columns = protocol.columns(world)
    if scenario.newcomers:
        columns |= join(world, scenario.newcomers)
    models = dict(world.loop.model)
    for name, table in materials.class_tables.items():
        own = world.loop.further.get(materials.table_for(protocol, table).digest, {})
        models |= {f"{name}/{part}": handle for part, handle in own.items()}
    owners: dict[str, str] = {}
    if world.initial_model is not None and not models:  # each client has its own
        for one in world.loop.own_models():
            name = world.clients[one.client].name
            models |= {f"{name}/{part}": handle for part, handle in one.model.items()}
            owners |= {name: materials.device_classes[one.client]} if one.model else {}
    final = world.learner.keep_final(models)
    tables.add(position, protocol, seed, world, columns)
    observer.end(protocol, seed)
    return {
        "protocol": protocol.title,
        "seed": seed,
        "trace_hash": world.trace.digest(),
        "data_digest": materials.dataset.digest,
        "sim_time_s": world.env.now,
        "rounds": len(world.loop.rounds_done),
        "cut_short": world.loop.cut_short,
        "learning_rates": protocol.learning_rates,
        "real_seconds": time.monotonic() - began_s,
        "final_weights": final,
        **({"client_classes": owners} if owners else {}),
        **({} if world.finished_model is materials.table else {"model": model_size(world.finished_model)}),
    }
