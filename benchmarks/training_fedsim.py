"""fedsim in this process, through its public path: scenario file, `fedsim.run`, an observer that notes round ends.

    python -m benchmarks.training_fedsim FOLDER MODEL BATCH ROUNDS EXECUTOR [KEY=VALUE ...]

Nothing is left out of a round: clock, network, graph, training, evaluation, trace and store. An observer sees no model,
so the model after the first round comes from a run of one round.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from safetensors.torch import load_file

import fedsim
from benchmarks.peers.work import Record
from benchmarks.training_work import SEED, table, write_scenario
from fedsim.experiment.observer import Observer
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round


class Watch(Observer):
    """Notes when rounds end."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        self._record.round_done(done.metrics["global"]["loss"], ())


def main(folder: str, model: str, batch: str, rounds: str, executor: str, *options: str) -> None:
    record, place = Record(), Path(folder)
    keywords: dict[str, Any] = {
        key: yaml.safe_load(value) for key, _, value in (text.partition("=") for text in options)
    }
    scenario = fedsim.load(write_scenario(place, model, int(batch), int(rounds)))
    with tempfile.TemporaryDirectory(dir=place) as out:
        results = fedsim.run(scenario, out=Path(out) / "run", executor=executor, observer=Watch(record), **keywords)
        record.versions = {"family": str(results.manifest["numeric_family"])}
        if scenario.stop.rounds == 1:
            final = {part: load_file(path) for part, path in results.final_weights("fedavg", SEED).items()}
            layers = table(model)
            record.keep(final[part][name] for part in layers.parts for name in layers.state_shapes(part))
    record.save(place)


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except fedsim.errors.UserError as error:
        sys.exit(str(error))
