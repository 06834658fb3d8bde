"""What every registered protocol owes: the same trace again, a clock that learning does not touch, no client twice."""

from __future__ import annotations

from typing import Any

import pytest
from plain_learner import PlainLearner
from small_worlds import EVERYTHING_HAPPENS, simulated

from fedsim import registry
from fedsim.data.dataset import POOL
from fedsim.protocols.protocol import Protocol

AVERAGING = {"fraction": 0.5, "deadline_s": 40.0, "over_selection": 1.5}
KEYS: dict[str, dict[str, Any]] = {
    "fedavg": AVERAGING,
    "fedprox": {**AVERAGING, "mu": 0.1},
    "fedper": AVERAGING,
    "spatl": {**AVERAGING, "selection": {"name": "gnn_ppo", "declared_keep": 0.5}},
    "spatl_no_selection": {**AVERAGING, "control": {"change": "sent"}, "server": {"denominator": "count"}},
    "spatl_no_control": {**AVERAGING, "selection": {"name": "random", "keep": 0.5}, "interval": 3},
    "spatl_shared_predictor": {**AVERAGING, "selection": {"name": "uniform", "keep": 0.5}, "busy": "abort"},
    "flexifed": AVERAGING,
    "clustered_fl": AVERAGING,
    "standalone": {"fraction": 0.5, "deadline_s": 40.0},
    "cgau": {**AVERAGING, "pretraining_rounds": 3, "units": 4},
    "fedmmd": {**AVERAGING, "coefficient": 0.2, "floor": 1e-4},
    "fedfusion_conv": AVERAGING,
    "fedfusion_multi": {"fraction": 0.5, "deadline_s": 40.0, "server": {"name": "gate_average", "share": 0.2}},
    "fedfusion_single": {"fraction": 1.0, "busy": "abort"},
    "fedavgm": AVERAGING,
    "fedadagrad": AVERAGING,
    "fedadam": {**AVERAGING, "server": {"bias_correction": True}},
    "fedyogi": {**AVERAGING, "interval": 3, "exchange": {"name": "lasp"}},
    "fednova": {**AVERAGING, "interval": 3, "exchange": {"name": "lasp", "scc": None}},
    "scaffold": AVERAGING,
    "ida": AVERAGING,
    "ida_intrac": AVERAGING,
    "ida_fedavg": {**AVERAGING, "exchange": {"name": "extractor"}},
    "stp": {"grouping": {"name": "random", "once": False}, "growth": {"name": "linear", "beta": 2, "alpha": 1.0}}
    | {"sampling_rate": 0.5, "interval": 2, "turn_s": 40.0, "deadline_s": 90.0},
    "fedgsp": {"growth": {"name": "constant", "beta": 2}, "sampling_rate": 1.0, "deadline_s": 90.0},
    "naive_gsp": {"groups": 4, "sampling_rate": 0.5, "deadline_s": 90.0},
    "naive_gsp_icg": {"groups": 3, "sampling_rate": 1.0, "on_loss": "abandon", "grouping": {"leftover": "spread"}},
    "hfedms_s": {"growth": {"name": "constant", "beta": 3}, "interval": 2, "sampling_rate": 1.0},
    "hfedms_d": {"growth": {"name": "constant", "beta": 4}, "interval": 3, "sampling_rate": 1.0, "deadline_s": 90.0},
    "hierarchical": {"fraction": 0.5, "edge_rounds": 2, "deadline_s": 150.0, "iteration_deadline_s": 40.0}
    | {"move_share": 0.3, "weighting": "uniform"},
    "fedgs": {"devices": 2, "presampled": 1, "iterations": 3, "deadline_s": 150.0, "iteration_deadline_s": 40.0}
    | {"move_share": 0.3, "selection_s": 0.1},
    "fedgs_random": {"devices": 3, "presampled": 0, "iterations": 2, "label_reports": "singly", "fused": False},
    "composed": {"cohort": {"name": "grouped", "sampling_rate": 1.0}, "schedule": {"name": "rounds", "interval": 2}}
    | {"exchange": {"name": "lasp"}, "objective": {"name": "proximal", "mu": 0.1}, "codec": {"name": "float32"}},
    "centralised": {},
}
"""The least that each protocol must be told, and some that makes it hard; a new one is entered here."""

LABELLED = {
    "data": {"name": "digits", "partition": {"name": "shards", "shards_per_client": 3}},
    "model": {"name": "mlp", "hidden": [3]},
}
"""Some protocols go by classes, some by parts of a model."""

OF_FILTERS = {
    "model": {"name": "small_cnn"},
    "network.cell.radio": {"name": "fixed", "uplink_bps": 100_000, "downlink_bps": 200_000},
    "network.link.rate_bps": 1e6,
    "network.transport": {"payload_bytes": 100_000, "header_bytes": 40},
}
"""A model with convolutions is a hundred times as large as what others send here: so are packets, and rates."""

PARTS = ("extractor", "classifier")

AT_STATIONS = ("hierarchical", "fedgs", "fedgs_random")
"""In a round there are many means: of each station in each iteration, and of the stations."""
CENTRAL = "centralised"

EVERY_PROTOCOL = pytest.mark.parametrize("name", registry.names("protocols"))


def changes(name: str) -> dict[str, Any]:
    cloud = {"devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.01}}}
    stream = {} if name == "centralised" else {"data.stream": {"samples": 10}}
    filters = OF_FILTERS if "selection" in KEYS[name] else {}
    return EVERYTHING_HAPPENS | LABELLED | filters | stream | cloud | {"protocols": [{"name": name, **KEYS[name]}]}


@EVERY_PROTOCOL
def test_it_is_a_protocol_and_its_name_is_its_registered_one(name: str) -> None:
    loaded = registry.load("protocols", name)
    assert issubclass(loaded, Protocol)
    assert loaded(**KEYS[name]).title == name


@EVERY_PROTOCOL
def test_the_same_seed_gives_the_same_trace_and_another_seed_another(name: str) -> None:
    once, again, other = (simulated(changes(name), seed=seed).trace.digest() for seed in (1, 1, 2))
    assert once == again != other


@EVERY_PROTOCOL
def test_learning_does_not_touch_the_clock(name: str) -> None:
    if registry.load("protocols", name).reads_learning:
        pytest.skip("it decides on learned values")
    with_learning = simulated(changes(name), learner=lambda *_: PlainLearner(parts=PARTS))
    assert with_learning.trace.digest() == simulated(changes(name)).trace.digest()


@EVERY_PROTOCOL
def test_no_client_is_averaged_twice_and_each_training_is_its_next_one(name: str) -> None:
    learner = PlainLearner(parts=PARTS)
    simulated(changes(name), learner=lambda *_: learner)
    assert learner.trainings
    for contributions in learner.means.values():
        clients = [one.client for one in contributions]
        assert len(clients) == len(set(clients)) or name in AT_STATIONS
    for client in {training.client for training in learner.trainings if training.client != POOL or name == CENTRAL}:
        assert learner.uses(client) == list(range(len(learner.uses(client))))


@EVERY_PROTOCOL
def test_every_round_is_evaluated_with_the_model_at_its_end(name: str) -> None:
    learner = PlainLearner(parts=PARTS)
    world = simulated(changes(name), learner=lambda *_: learner)
    assert [number for number, _, _ in learner.evaluations] == list(range(1, len(world.loop.rounds_done) + 1))
