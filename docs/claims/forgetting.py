"""Writes forgetting.csv: accuracy on batches that have passed, as in HFedMS's Fig. 9a, with and without SCC.

``FEDSIM_DATA=... python docs/claims/forgetting.py [FOLDER]`` runs three systems of scenarios/paper/claims_*.yaml to
each of some rounds, with one store for all, into the folder (runs/forgetting). A run that is there is not made again.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from tables import HERE, SCENARIO_OF, SCENARIOS, STREAMS, write

import fedsim
from fedsim.data.captures import Capture, capture_samples
from fedsim.experiment.results import Results
from fedsim.experiment.simulate import simulate
from fedsim.kernel.streams import Streams
from fedsim.learning.learner import LocalTraining, Model, NoLearner, Trained
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.schema import Scenario

PASSED = 21
"""The round of the batches: the first of a block of T = 5, so a full one."""
ROUNDS = (20, *range(21, 31), 35, 40, 45, 50)
SYSTEMS = "[{name: hfedms_s}, {name: hfedms_d}, {name: hfedms_d, label: no SCC, scc: null}]"
PAIRS = [("hfedms_d", "no SCC"), ("hfedms_d", "hfedms_s")]
BATCH = 1024
Batches = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


class Noting(NoLearner):
    """Learns nothing, and notes what each client sees in the round of the batches."""

    def __init__(self) -> None:
        self.seen: dict[int, Capture] = {}

    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        """Nothing."""
        if task.round_number == PASSED and task.capture is not None:
            self.seen[task.client] = task.capture
        return super().train(task, model, state=state, further=further)


def passed_batches(scenario: Scenario, protocol: Protocol, materials: Materials) -> Batches:
    """Samples and labels of all batches that a protocol's clients learn in the round."""
    noting = Noting()
    world = build_world(scenario, protocol, materials, lambda *_: noting)
    world.loop.stop = Stop(rounds=PASSED)
    simulate(world, protocol, world.loop.stop)
    streams = Streams(materials.seed)
    found = [capture_samples(materials.dataset, client, seen, streams) for client, seen in sorted(noting.seen.items())]
    x, y = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return x, y


def accuracy(results: Results, protocol: str, seed: int, batches: Batches) -> float:
    """Of the model at the end of a run, on samples."""
    model, (x, y) = results.load_model(protocol, seed), batches
    with torch.no_grad():
        guesses = [model(torch.from_numpy(x[at : at + BATCH])).argmax(1) for at in range(0, len(x), BATCH)]
    return float((torch.cat(guesses).numpy() == y).mean())


def remembered(data: str, folder: Path) -> pd.DataFrame:
    """A row for each system, seed and round: accuracy on the batches that have passed, and on the pooled tests."""
    name = f"{SCENARIO_OF[data].replace('-', '_')}.yaml"
    whole = fedsim.load(SCENARIOS / name, overrides=[f"protocols={SYSTEMS}", "evaluate.every=1000"])
    batches = {
        (protocol.title, seed): passed_batches(whole, protocol, materials)
        for seed in whole.seeds
        for materials in [gather_materials(whole, seed)]
        for protocol in whole.protocols
    }
    rows: list[dict[str, Any]] = []
    for number in ROUNDS:
        out = folder / f"{data}-{number}"
        scenario = whole.model_copy(update={"stop": Stop(rounds=number)})
        resume = (out / "manifest.json").exists()
        results = fedsim.run(scenario, out=out, store=folder / "store", resume=resume)
        for run in results.summary.itertuples():
            row = {"data": data, "protocol": run.protocol, "seed": run.seed, "round": number}
            passed = accuracy(results, run.protocol, run.seed, batches[run.protocol, run.seed])
            rows.append(row | {"passed": round(passed, 6), "pooled": round(run.final_accuracy, 6)})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    to = Path(sys.argv[1]) if sys.argv[1:] else HERE.parents[1] / "runs/forgetting"
    write("forgetting.csv", pd.concat([remembered(data, to) for data in STREAMS]))
