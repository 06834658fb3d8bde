"""Models of recurrent layers learn numbers like PyTorch's own layers in a plain loop, bit for bit, whoever trains them.

Two layers, so that one reads the states of the other; the target is how fast a noisy series rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import digit_runs
import numpy as np
import pytest
import torch
from plain_loop import DEVICES, Loop, differences
from torch import nn
from torch.nn.functional import mse_loss

from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.scenario.schema import Scenario

ROUNDS, COHORT, CHANNELS, TIME, HIDDEN = 2, 3, 2, 12, 8
UNITS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM}
GATES = {"gru": 3, "lstm": 4}


class Net(nn.Module):
    """Two recurrent layers; a linear one reads what they end with."""

    def __init__(self, unit: type[nn.RNNBase]) -> None:
        super().__init__()
        self.first = unit(CHANNELS, HIDDEN, batch_first=True)
        self.second = unit(HIDDEN, HIDDEN, batch_first=True)
        self.last = nn.Linear(HIDDEN, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.second(self.first(x.transpose(1, 2))[0])
        return self.last(states[:, -1])


@dataclass
class RecurrentLoop(Loop):
    """Federated averaging on the squared error; what is noted after a round is its root on the test samples."""

    model: str = "lstm"

    def __post_init__(self) -> None:
        super().__post_init__()
        net, draw = Net(UNITS[self.model]), Stream(1, "model/init").generator()
        with torch.no_grad():
            for name, parameter in net.named_parameters():
                if "bias" in name:
                    parameter.zero_()
                    continue
                rows, columns = parameter.shape
                fan_out = rows if name.startswith("last") else rows // GATES[self.model]
                uniform = 2 * draw.random((rows, columns)) - 1
                parameter.copy_(torch.tensor((np.sqrt(6 / (columns + fan_out)) * uniform).astype(np.float32)))
        self.net = net

    def loss(self, batch: np.ndarray) -> torch.Tensor:
        return mse_loss(self.net(self.x[batch])[:, 0], self.y[batch])

    def accuracy(self) -> float:
        with torch.no_grad():
            return float(self.loss(self.data.test_ids.copy()).sqrt())

    def named(self) -> dict[str, torch.Tensor]:
        places = {"first": f"extractor.{self.model}1", "second": f"extractor.{self.model}2", "last": "classifier.fc"}
        layers = ((name.partition("."), tensor) for name, tensor in self.net.state_dict().items())
        return {f"{places[layer]}.{kind}": tensor for (layer, _, kind), tensor in layers}


def scenario(model: str, folder: Path) -> Scenario:
    rng, samples = np.random.default_rng(4), 30 * DEVICES
    slopes = rng.random(samples)
    ramps = slopes[:, None, None] * np.linspace(-1, 1, TIME)
    x = ramps + 0.1 * rng.standard_normal((samples, CHANNELS, TIME))
    np.savez(folder / "series.npz", x=x.astype(np.float32), y=slopes.astype(np.float32))
    skew = {"name": "quantity_skew", "alpha": 2.0}
    return digit_runs.scenario(
        {
            "data": {"name": "arrays", "path": str(folder / "series.npz"), "target": "value", "partition": skew},
            "model": {"name": model, "hidden": HIDDEN, "layers": 2},
            "stop.rounds": ROUNDS,
            "training": {"learning_rate": 0.05, "momentum": 0.9, "batch_size": 8},
            "protocols": [{"name": "fedavg", "clients": COHORT}],
        }
    )


@pytest.mark.parametrize("model", UNITS)
def test_fedavg_is_the_plain_loop_bit_for_bit(model: str, tmp_path: Path) -> None:
    whole = scenario(model, tmp_path)
    results = run(whole, out=tmp_path / "serial", executor="serial")
    loop = RecurrentLoop(whole, model=model)
    begun, untrained = {name: tensor.clone() for name, tensor in loop.named().items()}, loop.accuracy()
    expected, errors = loop.averaging(COHORT, "samples")
    assert differences(digit_runs.weights(results, "fedavg"), expected) == {}
    assert results.rounds["rmse"].tolist() == pytest.approx(errors, rel=1e-6)
    assert errors[-1] < 0.8 * untrained, "something is learned"
    assert all(not torch.equal(begun[name], tensor) for name, tensor in expected.items()), "all of it is trained"


def test_processes_train_recurrent_layers_as_one_does(tmp_path: Path) -> None:
    whole = scenario("lstm", tmp_path)
    run(whole, out=tmp_path / "serial", executor="serial")
    run(whole, out=tmp_path / "two", executor="processes", workers=2)
    assert digit_runs.outcome(tmp_path / "two") == digit_runs.outcome(tmp_path / "serial")
