"""Operations are computed once, in float64, and their numbers compared with yesterday's, at a relative 1e-9.

Keys hold the version and not the code, so a store would hand out old numbers for an operation that makes new ones.
Numbers that changed are accepted only with a changed version.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from nodes import slots, training_of

from fedsim.data.captures import Capture
from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import Graph, Handle, Node
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.operations.extract import SEMANTICS
from fedsim.learning.operations.operation import Operation
from fedsim.learning.operations.partial_sum import PartialSum
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import LayerTable

RELATIVE = 1e-9

Entry = dict[str, Any]
"""``versions``: of the operation and of what enters it; ``numbers``: name -> list."""


class Workshop:
    """Computes operations on one model and one data set, and notes their numbers."""

    def __init__(self, table: LayerTable, data: FederatedDataset) -> None:
        self.executor = Serial(table, data, precision="float64")
        self.graph = Graph("golden")
        self.digest, self._data = table.digest, data
        self.entries: dict[str, Entry] = {}

    def train(
        self,
        title: str,
        model: dict[str, Handle],
        client: int,
        objective: Objective,
        *,
        capture: Capture | None = None,
        rows: Sequence[Mapping[str, Handle]] = (),
        number: int | None = None,
        further: Mapping[str, Mapping[str, Handle]] | None = None,
        **settings: float,
    ) -> dict[str, Handle]:
        """On a *capture* of the client's stream, or on a *number* of *rows*; else on all samples of its own.

        *further* are the models that the objective receives.
        """
        training = TrainingSettings(learning_rate=0.5, batch_size=2, epochs=2, **settings)
        about = {"model": self.digest, "capture": capture, "rows": number}
        operation = training_of(self._data, client, training, objective, **about)
        stream = Stream(1, "batches", client)
        versions = {objective.name: type(objective).version}
        return self.make(title, operation, stream=stream, versions=versions, model=model, rows=rows, **(further or {}))

    def fold(
        self, title: str, base: dict[str, Handle], models: list[dict[str, Handle]], weights: list[float]
    ) -> dict[str, Handle]:
        return self.make(title, PartialSum(tuple(weights)), base=base, term=models)

    def make(
        self,
        title: str,
        operation: Operation,
        *,
        stream: Stream | None = None,
        versions: Mapping[str, int] | None = None,
        asked: Sequence[str] = (SEMANTICS,),
        **sources: Mapping[str, Handle] | Sequence[Mapping[str, Handle]],
    ) -> dict[str, Handle]:
        """Compute an operation and note its numbers; its outputs, with their values.

        One of its own makes what is *asked* for.
        """
        node = self.graph.node(operation, slots(**sources), stream=stream)
        held = [node.output(name) for name in asked]
        outputs = {}
        for name, value in self.computed(node).items():
            outputs[name] = node.output(name)
            outputs[name].value = value
        del held
        self.entries[title] = {
            "versions": {operation.name: operation.version, **(versions or {})},
            "numbers": {
                f"{output}.{name}": np.asarray(number, np.float64).reshape(-1).tolist()
                for output, handle in outputs.items()
                for name, number in handle.value.items()
            },
        }
        return outputs

    def computed(self, node: Node) -> dict[str, Any]:
        if not node.operation.folds:
            return self.executor.compute([node])[0]
        fold = self.executor.fold(node)
        for term in node.values.models("term"):
            fold.add(term)
        return fold.result()


def changed(old: Entry, new: Entry) -> list[str]:
    """The names whose numbers differ."""
    names = sorted(old["numbers"].keys() | new["numbers"].keys())
    return [name for name in names if not _close(old["numbers"].get(name, []), new["numbers"].get(name, []))]


def _close(old: list[float], new: list[float]) -> bool:
    return len(old) == len(new) and all(
        math.isclose(left, right, rel_tol=RELATIVE, abs_tol=1e-15) for left, right in zip(old, new, strict=True)
    )


def complaints(old: dict[str, Entry], new: dict[str, Entry], *, accept: bool) -> list[str]:
    """What is wrong with *new*, line by line; with *accept*, only what no acceptance can cure."""
    found = []
    for title in sorted(old.keys() | new.keys()):
        if title not in old or title not in new:
            found += [] if accept else [f"{title}: appeared or disappeared"]
        elif old[title]["versions"] != new[title]["versions"]:
            found += [] if accept else [f"{title}: has new versions {new[title]['versions']}"]
        elif names := changed(old[title], new[title]):
            found.append(f"{title}: {', '.join(names)} changed, the versions {old[title]['versions']} did not")
    return found


def compare(path: Path, made: dict[str, Entry]) -> None:
    """With what *path* holds; ``FEDSIM_GOLDEN=accept`` writes it again."""
    accept = os.environ.get("FEDSIM_GOLDEN") == "accept"
    old = json.loads(path.read_bytes()) if path.exists() else {}
    wrong = complaints(old, made, accept=accept)
    assert not wrong, "raise the version, then FEDSIM_GOLDEN=accept:\n" + "\n".join(wrong)
    if accept:
        path.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")
