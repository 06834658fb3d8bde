"""docs/claims/forgetting.py asks a model about the batches that were learned in a round, and about no others."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from digit_runs import scenario

from fedsim.data.captures import Capture, capture_samples, captured_ids
from fedsim.experiment.run import run
from fedsim.kernel.streams import Streams
from fedsim.learning.learner import Trained
from fedsim.protocols.message import Message
from fedsim.protocols.round_trip import LocalWork
from fedsim.protocols.task import Task
from fedsim.protocols.world import Client, World
from fedsim.scenario.build import gather_materials

HFEDMS: dict[str, Any] = {"name": "hfedms_d", "interval": 2, "growth": {"name": "linear", "alpha": 1.0, "beta": 2}}
CHANGES: dict[str, Any] = {
    "topology.devices": 8,
    "data": {"name": "digits", "partition": {"name": "iid"}, "stream": {"samples": 20}},
    "protocols": [{"name": "fedavg", "fraction": 0.5}, HFEDMS],
}


@pytest.fixture(scope="module")
def forgetting() -> ModuleType:
    sys.path.append(str(Path(__file__).parents[2] / "docs/claims"))
    return importlib.import_module("forgetting")


def test_passed_batches_are_those_that_were_learned_in_the_round(
    forgetting: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[int, Capture] = {}
    learn = Task.learn

    def noted(own: Task, world: World, client: Client, capture: Capture, begun: Trained | None) -> Message:
        if own.round_number == 3:
            learned[client.index] = capture
        return learn(own, world, client, capture, begun)

    monkeypatch.setattr(Task, "learn", noted)
    monkeypatch.setattr(forgetting, "PASSED", 3)  # the last
    whole = scenario(CHANGES)
    materials = gather_materials(whole, 1)
    for protocol in whole.protocols:
        learned.clear()
        run(whole.model_copy(update={"protocols": (protocol,)}), out=tmp_path / protocol.name)
        seen = [capture_samples(materials.dataset, *one, Streams(1)) for one in sorted(learned.items())]
        assert 0 < len(seen) < 8
        for found, parts in zip(
            forgetting.passed_batches(whole, protocol, materials), zip(*seen, strict=True), strict=True
        ):
            assert np.array_equal(found, np.concatenate(parts))


@pytest.mark.parametrize("protocol", CHANGES["protocols"], ids=["fedavg", "hfedms"])
def test_images_come_again_in_what_is_learned_before_and_later(
    protocol: dict[str, Any], forgetting: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned: dict[int, dict[int, Capture]] = {}
    finish = LocalWork._finish

    def noted(own: LocalWork) -> None:
        assert own.capture is not None
        learned.setdefault(own.task.round_number, {})[own.client.index] = own.capture
        finish(own)

    monkeypatch.setattr(LocalWork, "_finish", noted)
    monkeypatch.setattr(forgetting, "PASSED", 5)
    monkeypatch.setattr(forgetting, "LATER", (6, 12))
    whole = scenario(CHANGES | {"data.stream.samples": 70, "stop.rounds": 12, "protocols": [protocol]})
    materials = gather_materials(whole, 1)
    run(whole, out=tmp_path / "run")
    images = {
        number: [
            (client, int(one))
            for client, capture in captures.items()
            for one in captured_ids(materials.dataset, client, capture, Streams(1))
        ]
        for number, captures in learned.items()
    }

    def share(*rounds: int) -> float:
        there = {image for number in rounds for image in images[number]}
        return sum(image in there for image in images[5]) / len(images[5])

    found = forgetting.images_again(whole, whole.protocols[0], materials)
    expected = {"before": share(*range(1, 5)), "by round 6": share(6), "by round 12": share(*range(6, 13))}
    assert found == pytest.approx(expected)
    assert found["by round 6"] < found["by round 12"] < 1


def test_accuracy_is_that_of_the_model_at_the_end(forgetting: ModuleType, tmp_path: Path) -> None:
    whole = scenario(CHANGES)
    results = run(whole, out=tmp_path / "run")
    data = gather_materials(whole, 1).dataset
    assert data.y is not None
    batches = data.samples(data.test_ids), data.y[data.test_ids]
    for row in results.summary.to_dict("records"):
        assert forgetting.accuracy(results, row["protocol"], 1, batches) == pytest.approx(row["final_accuracy"])
