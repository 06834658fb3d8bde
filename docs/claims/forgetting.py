"""Writes forgetting.csv: accuracy on batches that have passed, as in HFedMS's Fig. 9a, with and without SCC.

And images_again.csv: which share of their images was learned before, and comes again in later batches.

``FEDSIM_DATA=... python docs/claims/forgetting.py [FOLDER]`` runs scenarios/paper/forgetting_femnist.yaml to each of
some rounds, with one store for all, into the folder (runs/forgetting). A run that is there is not made again.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from forgotten import LATER, PASSED
from tables import HERE, scenario_of, write

import fedsim
from fedsim.data.captures import Capture, capture_samples, captured_ids
from fedsim.experiment.results import Results
from fedsim.experiment.simulate import simulate
from fedsim.kernel.streams import Streams
from fedsim.learning.learner import NoLearner
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.protocols.world import Client
from fedsim.scenario.build import Materials, build_world, gather_materials
from fedsim.scenario.schema import Scenario

ROUNDS = (20, *range(21, 31), 35, 40, 50, 60, 80, 100)
BATCH = 1024
"""Samples that a model is asked about at once."""
Batches = tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]


def clients_after(rounds: int, scenario: Scenario, protocol: Protocol, materials: Materials) -> list[Client]:
    """All clients after so many rounds, without training. Each goes on with its stream where it stopped."""
    world = build_world(scenario, protocol, materials, lambda *_: NoLearner())
    world.loop.stop = Stop(rounds=rounds)
    simulate(world, protocol, world.loop.stop)
    return list(world.clients)


def passed_captures(scenario: Scenario, protocol: Protocol, materials: Materials) -> dict[int, Capture]:
    """What each client that trains in the round learns then, by the client.

    Who has trained in the round still keeps its capture, so the time at which we ask does not matter.
    """
    before, after = (clients_after(rounds, scenario, protocol, materials) for rounds in (PASSED - 1, PASSED))
    found: dict[int, Capture] = {}
    for client, earlier in zip(after, before, strict=True):
        if client.trainings > earlier.trainings and client.stream is not None:
            capture = found[client.index] = client.stream.capture(math.nan, PASSED)
            assert capture.first + capture.samples == client.stream.consumed, "what it learned, and not what comes next"
    return found


def passed_batches(scenario: Scenario, protocol: Protocol, materials: Materials) -> Batches:
    """Samples and labels of all batches that a protocol's clients learn in the round."""
    captures, streams = passed_captures(scenario, protocol, materials), Streams(materials.seed)
    found = [capture_samples(materials.dataset, client, capture, streams) for client, capture in captures.items()]
    x, y = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return x, y


def images_again(scenario: Scenario, protocol: Protocol, materials: Materials) -> dict[str, float]:
    """Shares of the images in these batches: those that were learned before, and those that come again by some rounds.

    A stream goes through its client's images pass after pass, augmented anew.
    """
    captures, streams = passed_captures(scenario, protocol, materials), Streams(materials.seed)

    def share(of: dict[int, tuple[int, int]]) -> float:
        """Of the images that stand in these parts of the streams too, from one position to another."""
        again = 0
        for client, capture in captures.items():
            assert capture.mixture is None, "passes, and no draws"
            first, end = of[client]
            there = Capture(first, end - first)
            ids = captured_ids(materials.dataset, client, there, streams) if end > first else ()
            again += int(np.isin(captured_ids(materials.dataset, client, capture, streams), ids).sum())
        return again / sum(capture.samples for capture in captures.values())

    shares = {"before": share({client: (0, capture.first) for client, capture in captures.items()})}
    for number in LATER:
        ends = {
            one.index: one.stream.consumed for one in clients_after(number, scenario, protocol, materials) if one.stream
        }
        shares[f"by round {number}"] = share(
            {client: (capture.first + capture.samples, ends[client]) for client, capture in captures.items()}
        )
    return shares


def accuracy(results: Results, protocol: str, seed: int, batches: Batches) -> float:
    """Of the model at the end of a run, on samples."""
    model, (x, y) = results.load_model(protocol, seed), batches
    with torch.no_grad():
        guesses = [model(torch.from_numpy(x[at : at + BATCH])).argmax(1) for at in range(0, len(x), BATCH)]
    return float((torch.cat(guesses).numpy() == y).mean())


def all_images_again() -> pd.DataFrame:
    """`images_again` of each system and seed."""
    whole = scenario_of("forgetting-femnist")
    return pd.DataFrame(
        {"protocol": protocol.title, "seed": seed, **images_again(whole, protocol, materials)}
        for seed in whole.seeds
        for materials in [gather_materials(whole, seed)]
        for protocol in whole.protocols
    ).round(4)


def remembered(folder: Path) -> pd.DataFrame:
    """A row for each system, seed and round: accuracy on the batches that have passed, and on the pooled tests."""
    whole = scenario_of("forgetting-femnist")
    batches = {
        (protocol.title, seed): passed_batches(whole, protocol, materials)
        for seed in whole.seeds
        for materials in [gather_materials(whole, seed)]
        for protocol in whole.protocols
    }
    rows: list[dict[str, Any]] = []
    for number in ROUNDS:
        out = folder / f"{number}"
        scenario = whole.model_copy(update={"stop": Stop(rounds=number)})
        resume = (out / "manifest.json").exists()
        results = fedsim.run(scenario, out=out, store=folder / "store", resume=resume)
        for run in results.summary.to_dict("records"):
            protocol, seed = str(run["protocol"]), int(run["seed"])
            passed, pooled = accuracy(results, protocol, seed, batches[protocol, seed]), run["final_accuracy"]
            row = {"protocol": protocol, "seed": seed, "round": number}
            rows.append(row | {"passed": round(passed, 6), "pooled": round(pooled, 6)})
    return pd.DataFrame(rows)


if __name__ == "__main__":
    to = Path(sys.argv[1]) if sys.argv[1:] else HERE.parents[1] / "runs/forgetting"
    write("forgetting.csv", remembered(to))
    write("images_again.csv", all_images_again())
