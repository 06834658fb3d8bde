"""The numbers of each operation are yesterday's, or its version is a new one.

Keys hold the version and not the code, so a store would hand out old numbers for an operation that makes new ones. This
compares them in float64 with ``operation_numbers.json``, at a relative 1e-9. ``FEDSIM_GOLDEN=accept`` writes the file
again; numbers that changed are accepted only with a changed version.
"""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning.executors.serial import Serial
from fedsim.learning.graph import OPERATIONS, Graph, Handle, Node
from fedsim.learning.objectives import Objective, Plain, Proximal
from fedsim.learning.training import TrainingSettings
from fedsim.models.mlp import Mlp

GOLDEN = Path(__file__).with_name("operation_numbers.json")
RELATIVE = 1e-9
CLIENTS, SAMPLES, SHAPE, CLASSES = 3, 5, (1, 2, 2), 3

Entry = dict[str, Any]
"""``versions``: of the operation and of what enters it; ``numbers``: name -> list."""


def data() -> FederatedDataset:
    """Samples in which everything can be recomputed by hand: multiples of 1/16 between -1 and 1."""
    count = CLIENTS * (SAMPLES + 2) + 4
    numbers = np.arange(count * 4) * 37 % 33 - 16
    ids = np.arange(CLIENTS * (SAMPLES + 2)).reshape(CLIENTS, -1)
    return FederatedDataset(
        name="multiples",
        classes=CLASSES,
        sample_shape=SHAPE,
        sample_bytes=5.0,
        client_samples=np.full(CLIENTS, SAMPLES, np.int64),
        x=(numbers / 16).astype(np.float32).reshape(count, *SHAPE),
        y=np.arange(count) * 5 % 7 % CLASSES,
        train_ids=tuple(ids[:, :SAMPLES]),
        test_ids=np.arange(ids.size, count),
        client_test_ids=tuple(ids[:, SAMPLES:]),
    )


class Workshop:
    """Makes every operation's numbers once, on a model of 27 parameters."""

    def __init__(self) -> None:
        table = Mlp(hidden=(3,)).table(SHAPE, CLASSES)
        self.executor = Serial(table, data(), precision="float64")
        self.graph = Graph("golden")
        self.entries: dict[str, Entry] = {}
        base = self.make("init", "init", {}, stream=Stream(1, "model/init"))
        models = [
            self.train("train plain", base, 0, Plain()),
            self.train("train proximal", base, 1, Proximal(0.3)),
            self.train("train with momentum and weight decay", base, 2, Plain(), momentum=0.9, weight_decay=0.01),
        ]
        some = self.fold("partial_sum of two", base, models[:2], [0.2, 0.5])
        rest = self.fold("partial_sum of one", base, models[2:], [0.3])
        total = self.make("add", "add", {}, **inputs(total=some, some=rest))
        mean = self.make("mean", "mean", {}, **inputs(base=base, total=total))
        for on in ("global", "clients"):
            self.make(f"evaluate on {on}", "evaluate", {"on": on}, **inputs(model=mean))

    def train(
        self, title: str, model: dict[str, Handle], client: int, objective: Objective, **settings: float
    ) -> dict[str, Handle]:
        training = TrainingSettings(learning_rate=0.5, batch_size=2, epochs=2, **settings)
        parameters = {
            "client": client,
            "training": training.model_dump(mode="json"),
            "objective": objective.parameters(),
        }
        stream = Stream(1, "batches", client)
        versions = {objective.name: type(objective).version}
        return self.make(title, "train", parameters, stream=stream, versions=versions, **inputs(model=model))

    def fold(
        self, title: str, base: dict[str, Handle], models: list[dict[str, Handle]], weights: list[float]
    ) -> dict[str, Handle]:
        contributions = inputs(**{str(number): model for number, model in enumerate(models)})
        return self.make(title, "partial_sum", {"weights": weights}, **inputs(base=base), **contributions)

    def make(
        self,
        title: str,
        operation: str,
        parameters: Mapping[str, Any],
        *,
        stream: Stream | None = None,
        versions: Mapping[str, int] | None = None,
        **sources: Handle,
    ) -> dict[str, Handle]:
        """Compute an operation and note its numbers; its outputs, with their values."""
        node = self.graph.node(operation, parameters, sources, stream=stream)
        outputs = {}
        for name, value in self.computed(node).items():
            outputs[name] = node.output(name)
            outputs[name].value = value
        self.entries[title] = {
            "versions": {operation: OPERATIONS[operation].version, **(versions or {})},
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
        for number in range(len(node.parameters["weights"])):
            prefix = f"{number}."
            parts = {
                name.removeprefix(prefix): node.inputs[name].value for name in node.inputs if name[0] == str(number)
            }
            fold.add(parts)
        return fold.result()


def inputs(**groups: dict[str, Handle]) -> dict[str, Handle]:
    """``model={"classifier": handle}`` as ``model.classifier``."""
    return {f"{group}.{part}": handle for group, parts in groups.items() for part, handle in parts.items()}


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


@pytest.fixture(scope="module")
def made() -> dict[str, Entry]:
    return Workshop().entries


def test_numbers_are_yesterdays_or_versions_are_new(made: dict[str, Entry]) -> None:
    accept = os.environ.get("FEDSIM_GOLDEN") == "accept"
    old = json.loads(GOLDEN.read_bytes()) if GOLDEN.exists() else {}
    wrong = complaints(old, made, accept=accept)
    assert not wrong, "raise the version, then FEDSIM_GOLDEN=accept:\n" + "\n".join(wrong)
    if accept:
        GOLDEN.write_text(json.dumps(made, indent=1) + "\n", encoding="utf-8")


def test_every_operation_has_its_numbers(made: dict[str, Entry]) -> None:
    assert {operation for entry in made.values() for operation in entry["versions"]} >= set(OPERATIONS)
    assert all(np.isfinite(numbers).all() for entry in made.values() for numbers in entry["numbers"].values())
    plain = made["train plain"]["numbers"]
    assert all(changed(made["init"], entry) for title, entry in made.items() if title.startswith("train"))
    assert sum(map(len, plain.values())) == 3 * 4 + 3 + 3 * 3 + 3


def test_the_smallest_change_of_a_number_needs_a_new_version(made: dict[str, Entry]) -> None:
    new = copy.deepcopy(made)
    numbers = new["train proximal"]["numbers"]["classifier.fc2.weight"]
    numbers[0] *= 1 + 0.5 * RELATIVE
    assert complaints(made, new, accept=False) == []
    numbers[0] *= 1 + 2 * RELATIVE
    for accept in (True, False):
        (complaint,) = complaints(made, new, accept=accept)
        assert complaint.startswith("train proximal: classifier.fc2.weight changed")
    new["train proximal"]["versions"]["proximal"] += 1
    assert complaints(made, new, accept=True) == []
    assert len(complaints(made, new, accept=False)) == 1


def test_the_numbers_are_those_of_float64(made: dict[str, Entry]) -> None:
    some = np.array(made["train plain"]["numbers"]["extractor.fc1.weight"])
    assert (some != some.astype(np.float32)).any()
    assert torch.get_default_dtype() == torch.float32
