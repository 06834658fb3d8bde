"""The folder of work for the training benchmark: samples, plan and starts, and the scenario that makes fedsim do it.

Cohorts, mini-batches and starts are those that fedsim draws from its named streams, so that everybody trains the same
clients on the same mini-batches from the same numbers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml

from benchmarks.peers.work import CLASSES, CLIENTS, COHORT, MODELS, RATE, SAMPLES, TESTS
from fedsim import registry
from fedsim.kernel.streams import Streams
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import initial_parameters

SEED = 1
NAMES = {"A": "small_cnn", "B": "hfedms_cnn"}


def table(model: str) -> LayerTable:
    """The layers of model A or B."""
    layers: LayerTable = registry.load("models", NAMES[model])().table((1, 28, 28), CLASSES)
    return layers


def write_work(folder: Path, rounds: int) -> None:
    """Write everything but the scenario for runs of at most *rounds* rounds."""
    rng, samples = np.random.default_rng(SEED), CLIENTS * SAMPLES
    np.savez(
        folder / "samples.npz",
        x=rng.random((samples + TESTS, 1, 28, 28), dtype=np.float32),
        y=rng.integers(0, CLASSES, samples + TESTS),
        client=np.concatenate([np.repeat(np.arange(CLIENTS), SAMPLES), np.arange(TESTS) % CLIENTS]),
        test=np.arange(samples + TESTS) >= samples,
    )
    streams, trainings = Streams(SEED), np.zeros(CLIENTS, np.int64)
    cohorts, orders = np.empty((rounds, COHORT), np.int64), np.empty((rounds, COHORT, SAMPLES), np.int64)
    for number in range(rounds):
        cohorts[number] = streams("selection", 0, number + 1).generator().permutation(CLIENTS)[:COHORT]
        for position, client in enumerate(cohorts[number].tolist()):
            shuffler = streams("batches", client, int(trainings[client])).generator()
            orders[number, position] = shuffler.permutation(SAMPLES)
        trainings[cohorts[number]] += 1
    np.savez(folder / "plan.npz", cohorts=cohorts, orders=orders)
    for model in MODELS:
        parts = initial_parameters(table(model), streams("model/init").generator())
        values = [value.numpy() for part in parts.values() for value in part.values()]
        np.savez(folder / f"start_{model}.npz", **{str(number): value for number, value in enumerate(values)})


def write_scenario(folder: Path, model: str, batch: int, rounds: int) -> Path:
    """One cell of 100 sensors, FedAvg with 30 of them in each round, evaluated in every round."""
    scenario = {
        "name": "training-benchmark",
        "seeds": [SEED],
        "stop": {"rounds": rounds},
        "evaluate": {"every": 1},
        "topology": {"name": "star", "devices": CLIENTS},
        "network": {
            "cell": {
                "radio": {"name": "fixed", "uplink_bps": 10e6, "downlink_bps": 20e6},
                "discipline": {"name": "fair"},
            },
            "link": {"rate_bps": 1e9, "delay_s": 0.005},
        },
        "devices": {"classes": {"sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.2}}}},
        "data": {"name": "arrays", "path": str(folder / "samples.npz"), "partition": {"name": "natural"}},
        "model": {"name": NAMES[model]},
        "training": {"learning_rate": RATE, "batch_size": batch},
        "protocols": [{"name": "fedavg", "clients": COHORT}],
    }
    path = folder / f"scenario_{model}_{batch}.yaml"
    path.write_text(yaml.safe_dump(scenario))
    return path
