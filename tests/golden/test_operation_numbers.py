"""The numbers of each operation are yesterday's, or its version is a new one.

Those of ``operation_numbers.json``, in float64, at a relative 1e-9. ``FEDSIM_GOLDEN=accept`` writes the file again;
numbers that changed are accepted only with a changed version.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
import torch
from workshop import RELATIVE, Entry, Workshop, changed, compare, complaints

from fedsim.data.dataset import FederatedDataset
from fedsim.kernel.streams import Stream
from fedsim.learning import operations
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.codec import Codec, Coded
from fedsim.learning.graph import Handle
from fedsim.learning.objectives.objective import State, Tensors
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.code import Code
from fedsim.learning.operations.compensate import Compensate
from fedsim.learning.operations.evaluate import Evaluate, EvaluateOwn
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.keep import Keep
from fedsim.learning.operations.move_gates import MoveGates
from fedsim.learning.operations.operation import Operation
from fedsim.learning.operations.weigh import Weigh
from fedsim.learning.rules.adaptive import Adagrad, Adam, Yogi
from fedsim.learning.rules.fednova import Normalised
from fedsim.learning.rules.momentum import Momentum
from fedsim.learning.rules.optimiser import Step
from fedsim.models.mlp import Mlp

GOLDEN = Path(__file__).with_name("operation_numbers.json")
CLIENTS, SAMPLES, SHAPE, CLASSES = 3, 5, (1, 2, 2), 3
STATISTICS = ("extractor.fc1.bias",)
"""What is taken for running statistics, or for gates."""


class Halved(Codec):
    """What is read is half of what was written, but for a little chance."""

    name: Literal["halved"] = "halved"

    def code(self, change: Tensors, state: State, generator: np.random.Generator) -> Coded:
        part = 0.5 + 0.01 * generator.random()
        return Coded({name: value * part for name, value in change.items()}, {}, 7)


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
        stored=(numbers / 16).astype(np.float32).reshape(count, *SHAPE),
        y=np.arange(count) * 5 % 7 % CLASSES,
        train_ids=tuple(ids[:, :SAMPLES]),
        test_ids=np.arange(ids.size, count),
        client_test_ids=tuple(ids[:, SAMPLES:]),
    )


@pytest.fixture(scope="module")
def made() -> dict[str, Entry]:
    """Every operation, once, on a model of 27 parameters."""
    workshop = Workshop(Mlp(hidden=(3,)).table(SHAPE, CLASSES), data())
    base = workshop.make("init", Init(workshop.digest), stream=Stream(1, "model/init"))
    models = [
        workshop.train("train plain", base, 0, Plain()),
        workshop.train("train proximal", base, 1, Proximal(mu=0.3)),
        workshop.train("train with momentum and weight decay", base, 2, Plain(), momentum=0.9, weight_decay=0.01),
    ]
    some = workshop.fold("partial_sum of two", base, models[:2], [0.2, 0.5])
    rest = workshop.fold("partial_sum of one", base, models[2:], [0.3])
    total = workshop.make("add", Add(), base=some, change=rest)
    mean = workshop.make("mean", Add(), base=base, change=total)
    workshop.make("move gates", MoveGates(STATISTICS, 0.1), asked=[*base], base=base, change=total)
    weigh = Weigh((3.0, 1.0, 2.0), "l2", 1e-8, 0.2, STATISTICS)
    workshop.make("weigh", weigh, asked=[*base], base=base, mean=total, model=models)
    workshop.make("normalise", Normalised(STATISTICS), asked=[*base], base=base, change=total, mean=some)
    for rule in (Momentum(learning_rate=0.3), Adagrad(), Adam(), Yogi()):
        outputs = [*base, *(f"{name}.{part}" for name in rule.moments for part in base)]
        workshop.make(f"step of {rule.name}", Step(rule, STATISTICS), asked=outputs, base=base, change=total)
    for on in ("global", "clients"):
        workshop.make(f"evaluate on {on}", Evaluate(workshop.digest, "data", on), model=mean)
    workshop.make("evaluate own", EvaluateOwn(workshop.digest, "data", "own", 1), model=mean)
    halves = Code(Halved(), STATISTICS)
    workshop.make("code", halves, stream=Stream(1, "codec"), asked=[*base], base=base, model=mean)
    _calibrate(workshop, base, mean)
    return workshop.entries


def _calibrate(workshop: Workshop, base: dict[str, Handle], mean: dict[str, Handle]) -> None:
    """Semantics are extracted, kept, compensated, and what a classifier is trained on."""
    old, new = (
        workshop.make(
            f"extract by the {title}",
            Extract(workshop.digest, Seen.of(data(), 1), title == "base"),
            stream=Stream(1, "semantics", 1),
            model={"extractor": model["extractor"]},
        )
        for title, model in (("base", base), ("mean", mean))
    )
    choices = {"the nearest": (3, None, False), "by quotas": (4, (3, 0, 1), False), "any": (3, None, True)}
    for title, (rows, quotas, at_random) in choices.items():
        stream = Stream(1, "semantics/kept", 1, 1) if at_random else None
        held = workshop.make(f"keep {title}", Keep(rows, quotas), stream=stream, rows=[old])
    for by in ("per_class", "mean"):
        moved = workshop.make(f"compensate {by}", Compensate(by, "mean"), remembered=held, now=new, before=old)
    classifier = {"classifier": mean["classifier"]}
    workshop.train("train on rows", classifier, 1, Plain(), rows=[new, moved], number=SAMPLES + 3)


def test_numbers_are_yesterdays_or_versions_are_new(made: dict[str, Entry]) -> None:
    compare(GOLDEN, made)


def every_operation() -> set[str]:
    """The names of all that there are."""
    modules = pkgutil.iter_modules(operations.__path__, f"{operations.__name__}.")
    kinds = [kind for found in modules for kind in vars(importlib.import_module(found.name)).values()]
    return {kind.name for kind in kinds if isinstance(kind, type) and Operation in kind.__mro__[1:]}


def test_every_operation_has_its_numbers(made: dict[str, Entry]) -> None:
    assert {operation for entry in made.values() for operation in entry["versions"]} >= every_operation()
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
