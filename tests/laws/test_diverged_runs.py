"""A diverged run ends at the evaluation that finds it; its trace is a prefix of the one without learning."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_worlds import EVERYTHING_HAPPENS, scenario, simulated
from tiers import mostly_long

from fedsim import registry
from fedsim.experiment.host import HostOptions, Learners, host_for
from fedsim.experiment.simulate import simulate
from fedsim.learning.divergence import diverged, why_it_ended
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials

ROUNDS = 12
TINY = EVERYTHING_HAPPENS | {
    "stop": {"rounds": ROUNDS, "target_accuracy": 0.09},
    "data": {"name": "digits", "partition": {"name": "shards", "shards_per_client": 3}},
    "data.stream": {"samples": 10},
    "model": {"name": "mlp", "hidden": [3]},
    "training": {"learning_rate": 1e18, "weight_decay": 1.0, "batch_size": 8},
    "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}},
}
KEYS: dict[str, dict[str, Any]] = {
    "fedavg": {"fraction": 0.5},
    "fedprox": {"fraction": 0.5, "mu": 0.1},
    **{name: {"fraction": 0.5} for name in ("fedavgm", "fednova", "scaffold", "ida", "ida_intrac", "ida_fedavg")},
    **{f"fed{rule}": {"fraction": 0.5, "server": {"learning_rate": 1e18}} for rule in ("adagrad", "adam", "yogi")},
    **{name: {"fraction": 0.5} for name in ("fedper", "fedmmd", "flexifed", "clustered_fl", "standalone")},
    **{name: {"fraction": 0.5, "selection": {"name": "none"}} for name in ("spatl", "spatl_no_control")},
    **{"spatl_shared_predictor": {"fraction": 0.5, "selection": {"name": "none"}}},
    **{"spatl_no_selection": {"fraction": 0.5}},
    **{f"fedfusion_{operator}": {"fraction": 0.5} for operator in ("conv", "multi", "single")},
    "cgau": {"fraction": 0.5, "pretraining_rounds": 2},
    "stp": {"grouping": {"name": "random"}, "growth": {"name": "constant", "beta": 2}, "sampling_rate": 0.5},
    "fedgsp": {"growth": {"name": "constant", "beta": 2}, "sampling_rate": 1.0},
    "naive_gsp": {"groups": 4, "sampling_rate": 0.5},
    "naive_gsp_icg": {"groups": 3, "sampling_rate": 1.0, "grouping": {"leftover": "spread"}},
    "hfedms_s": {"growth": {"name": "constant", "beta": 3}, "interval": 2, "sampling_rate": 1.0},
    "hfedms_d": {"growth": {"name": "constant", "beta": 4}, "interval": 3, "sampling_rate": 1.0},
    "hierarchical": {"fraction": 0.5},
    "fedgs": {"iterations": 2},
    "fedgs_random": {"iterations": 2},
    "composed": {
        "cohort": {"name": "random", "fraction": 0.5},
        "exchange": {"name": "lasp"},
        "schedule": {"name": "rounds", "interval": 2},
    },
    "centralised": {},
}
"""The least that each protocol must be told; a new one is entered here."""


def test_no_protocol_is_left_out() -> None:
    assert set(KEYS) == set(registry.names("protocols"))


def changes(protocol: str) -> dict[str, Any]:
    given = TINY | {"protocols": [{"name": protocol, **KEYS[protocol]}]}
    if protocol == "centralised":
        del given["data.stream"]
    if protocol == "standalone":
        given |= {"data.client_test_fraction": 0.3, "evaluate": {"on": ["own"]}}
    return given


def learned(given: dict[str, Any], folder: Path, executor: str) -> World:
    settings = scenario(given | {"learn": True})
    materials = gather_materials(settings, 1)
    options = HostOptions(executor=executor, workers=1, checkpoint_interval_s=math.inf)
    (protocol,) = settings.protocols
    with Learners(host_for(options, materials.tables, learn=True), folder, "run", print) as learners:
        world = build_world(settings, protocol, materials, learners.make)
        simulate(world, protocol, settings.stop)
    return world


@pytest.mark.parametrize(
    ("protocol", "executor"),
    mostly_long(
        itertools.product(registry.names("protocols"), ["serial", "batched"]),
        now=[("fedavg", "serial"), ("hfedms_d", "batched"), ("centralised", "serial")],
    ),
)
def test_a_run_ends_at_the_evaluation_that_finds_its_model_diverged(
    tmp_path: Path, protocol: str, executor: str
) -> None:
    short, long = learned(changes(protocol), tmp_path, executor), simulated(changes(protocol))
    ended = short.loop.rounds_done
    assert [any(map(diverged, done.metrics.values())) for done in ended] == [False] * (len(ended) - 1) + [True]
    assert short.loop.cut_short == why_it_ended(len(ended), scenario(changes(protocol)).protocols[0].learning_rates)
    assert short.loop.target_round is None and len(ended) < ROUNDS
    for name, table in short.trace.tables.items():
        rows = table.array()
        assert np.array_equal(rows, long.trace.tables[name].array()[: len(rows)]), name


@pytest.mark.parametrize("evaluate", [1, 2])
def test_a_target_as_the_only_stop_does_not_keep_a_diverged_run_going(tmp_path: Path, evaluate: int) -> None:
    only = changes("fedavg") | {"stop": {"target_accuracy": 0.09}, "evaluate": {"every": evaluate}}
    ended = learned(only, tmp_path, "serial").loop.rounds_done
    assert len(ended) % evaluate == 0
    assert ended[-1].metrics["global"]["accuracy"] is None


def test_every_score_counts_whatever_the_loss() -> None:
    from fedsim.learning.executors.trainer import infinite_unless_finite

    for odd in (math.inf, -math.inf, math.nan):
        scores = torch.tensor([[1.0, 2.0], [0.0, odd]])
        assert infinite_unless_finite(torch.tensor(0.5), scores) == math.inf
    assert infinite_unless_finite(torch.tensor(0.5), torch.tensor([[3e38, 3e38]])) == 0.5
