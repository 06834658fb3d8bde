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

from fedsim.data.captures import Capture, capture_samples
from fedsim.devices.stream_buffer import StreamBuffer
from fedsim.experiment.run import run
from fedsim.kernel.streams import Streams
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
    learned: list[Capture] = []
    consume = StreamBuffer.consume

    def noted(own: StreamBuffer, capture: Capture, round_number: int) -> None:
        if round_number == 3:
            learned.append(capture)
        consume(own, capture, round_number)

    whole = scenario(CHANGES)
    for protocol in whole.protocols:
        learned.clear()
        with monkeypatch.context() as patch:
            patch.setattr(StreamBuffer, "consume", noted)
            run(whole.model_copy(update={"protocols": (protocol,)}), out=tmp_path / protocol.name)
        monkeypatch.setattr(forgetting, "PASSED", 3)  # the last
        materials = gather_materials(whole, 1)
        x, y = forgetting.passed_batches(whole, protocol, materials)
        assert len(x) == len(y) == 20 * len(learned) > 0
        streams, data = Streams(1), materials.dataset
        of_all = [capture_samples(data, client, capture, streams)[0] for client in range(8) for capture in set(learned)]
        assert {one.tobytes() for one in x} <= {one.tobytes() for one in np.concatenate(of_all)}


def test_accuracy_is_that_of_the_model_at_the_end(forgetting: ModuleType, tmp_path: Path) -> None:
    whole = scenario(CHANGES)
    results = run(whole, out=tmp_path / "run")
    data = gather_materials(whole, 1).dataset
    assert data.y is not None
    batches = data.samples(data.test_ids), data.y[data.test_ids]
    for row in results.summary.to_dict("records"):
        assert forgetting.accuracy(results, row["protocol"], 1, batches) == pytest.approx(row["final_accuracy"])
