"""Models with group normalisation learn like those of PyTorch, whoever trains them.

In float64 bit for bit. In float32 layers of fedsim's own round otherwise: the model is as near to that of float64 as
the one that a loop of PyTorch's own modules ends with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest
import torch
from distances import distance
from grouped_net import ResNet20, Wdcnn, by_fedsims_names, start
from plain_loop import DEVICES, Loop, differences

from fedsim.errors import UserError
from fedsim.experiment.run import run
from fedsim.experiment.validate import validate
from fedsim.kernel.streams import Stream
from fedsim.scenario.schema import Scenario

ROUNDS, COHORT, CHANNELS, LENGTH, CLASSES = 2, 3, 2, 80, 4
MOST = 3.0
"""Times PyTorch's error."""
LAST = {"conv1d": "fc2", "resnet": "fc"}
MODELS: dict[str, dict[str, Any]] = {
    "conv1d": {"name": "conv1d", "kernel": 8, "stride": 1},
    "resnet": {"name": "resnet", "depth": 20, "normalisation": "group"},
}


@dataclass
class GroupedLoop(Loop):
    """Federated averaging of a net from `grouped_net`."""

    model: str = "conv1d"
    dtype: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        super().__post_init__()
        made = Wdcnn(CHANNELS, LENGTH, CLASSES) if self.model == "conv1d" else ResNet20(10)
        start(made, Stream(1, "model/init").generator(), normal=self.model == "resnet")
        self.net, self.x = made.to(self.dtype), self.x.to(self.dtype)

    def named(self) -> dict[str, torch.Tensor]:
        return by_fedsims_names(self.net.state_dict(), LAST[self.model])


def scenario(model: str, folder: Path) -> Scenario:
    """Real digits; series are noise around a tone for each class."""
    changes: dict[str, Any] = {
        "model": MODELS[model],
        "stop.rounds": ROUNDS,
        "training": {"learning_rate": 0.05, "momentum": 0.9, "batch_size": 16},
        "protocols": [{"name": "fedavg", "clients": COHORT}],
    }
    if model == "conv1d":
        rng, samples = np.random.default_rng(4), 30 * DEVICES
        y = np.arange(samples) % CLASSES
        tones = np.sin(np.arange(LENGTH) * (y[:, None] + 1) / 4)[:, None]
        x = (tones + rng.standard_normal((samples, CHANNELS, LENGTH))).astype(np.float32)
        np.savez(folder / "series.npz", x=x, y=y)
        skew = {"name": "quantity_skew", "alpha": 2.0}
        changes["data"] = {"name": "arrays", "path": str(folder / "series.npz"), "partition": skew}
    return digit_runs.scenario(changes)


@pytest.mark.parametrize("model", MODELS)
def test_fedavg_is_the_plain_loop(model: str, tmp_path: Path) -> None:
    whole = scenario(model, tmp_path)
    results = run(whole, out=tmp_path / "double", executor="serial", precision="float64")
    loop = GroupedLoop(whole, model=model)
    begun = {name: tensor.clone() for name, tensor in loop.named().items()}
    expected, accuracies = loop.averaging(COHORT, "samples")
    assert differences(digit_runs.weights(results, "fedavg"), expected) == {}
    assert results.rounds["accuracy"].tolist() == accuracies
    assert all(not torch.equal(begun[name], tensor) for name, tensor in expected.items()), "all of it is trained"

    single = run(whole, out=tmp_path / "serial", executor="serial")
    by_pytorch, _ = GroupedLoop(whole, model=model, dtype=torch.float32).averaging(COHORT, "samples")
    assert distance(digit_runs.weights(single, "fedavg"), expected) <= MOST * distance(by_pytorch, expected)
    if model == "conv1d":
        run(whole, out=tmp_path / "two", executor="processes", workers=2)
        assert digit_runs.outcome(tmp_path / "two") == digit_runs.outcome(tmp_path / "serial")


def test_steps_of_single_devices_add_up_where_samples_are_normalised_alone(tmp_path: Path) -> None:
    """A station's steps are one training with group normalisation, and are refused with batch normalisation."""
    keys = {"name": "fedgs", "iterations": 3, "devices": 3, "presampled": 1}
    changes: dict[str, Any] = {
        "topology": {"name": "factory_park", "factories": 2, "devices_per_factory": 4},
        "training": {"learning_rate": 0.05, "batch_size": 4},
        "protocols": [keys | {"label": str(fused), "fused": fused} for fused in (True, False)],
        "model": MODELS["resnet"],
        "stop.rounds": 1,
    }
    results = run(digit_runs.scenario(changes), out=tmp_path / "run", executor="serial", precision="float64")
    together, apart = (digit_runs.weights(results, label) for label in ("True", "False"))
    assert max(abs(gap) for gap in differences(together, apart).values()) < 1e-12
    by_batches = digit_runs.scenario(changes | {"model": {"name": "resnet", "normalisation": "batch"}})
    with pytest.raises(UserError, match=r"layer bn1 \(batch_norm2d\(channels=16\)\) makes of a sample depends on more"):
        validate(by_batches)
