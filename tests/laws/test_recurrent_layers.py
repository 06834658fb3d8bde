"""Models of recurrent layers learn numbers like PyTorch's own layers in a plain loop, whoever trains them.

Two layers, so that one reads the states of the other; the target is how fast a noisy series rises. In float64, and with
states that fill no vector, bit for bit. In float32 layers of fedsim's own round otherwise: the model is as near to that
of float64 as the one that a loop of PyTorch's own layers ends with.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import digit_runs
import numpy as np
import pytest
import torch
from distances import distance
from plain_loop import DEVICES, Loop, differences
from torch import nn
from torch.nn.functional import mse_loss

from fedsim.experiment.run import run
from fedsim.kernel.streams import Stream
from fedsim.scenario.schema import Scenario

ROUNDS, COHORT, CHANNELS, TIME = 2, 3, 2, 12
NARROW, WIDE = 8, 16
"""States without and with layers of fedsim's own in float32."""
MOST = 3.0
"""Times PyTorch's error."""
UNITS: dict[str, type[nn.RNNBase]] = {"gru": nn.GRU, "lstm": nn.LSTM}
GATES = {"gru": 3, "lstm": 4}


class Net(nn.Module):
    """Two recurrent layers; a linear one reads what they end with."""

    def __init__(self, unit: type[nn.RNNBase], hidden: int) -> None:
        super().__init__()
        self.first = unit(CHANNELS, hidden, batch_first=True)
        self.second = unit(hidden, hidden, batch_first=True)
        self.last = nn.Linear(hidden, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states, _ = self.second(self.first(x.transpose(1, 2))[0])
        return self.last(states[:, -1])


@dataclass
class RecurrentLoop(Loop):
    """Federated averaging on the squared error; what is noted after a round is its root on the test samples."""

    model: str = "lstm"
    hidden: int = WIDE
    dtype: torch.dtype = torch.float64

    def __post_init__(self) -> None:
        super().__post_init__()
        net, draw = Net(UNITS[self.model], self.hidden), Stream(1, "model/init").generator()
        with torch.no_grad():
            for name, parameter in net.named_parameters():
                if "bias" in name:
                    parameter.zero_()
                    continue
                rows, columns = parameter.shape
                fan_out = rows if name.startswith("last") else rows // GATES[self.model]
                uniform = 2 * draw.random((rows, columns)) - 1
                parameter.copy_(torch.tensor((np.sqrt(6 / (columns + fan_out)) * uniform).astype(np.float32)))
        self.net, self.x, self.y = net.to(self.dtype), self.x.to(self.dtype), self.y.to(self.dtype)

    def loss(self, batch: np.ndarray) -> torch.Tensor:
        return mse_loss(self.net(self.x[batch])[:, 0], self.y[batch])

    def accuracy(self) -> float:
        with torch.no_grad():
            return float(self.loss(self.data.test_ids.copy()).sqrt())

    def named(self) -> dict[str, torch.Tensor]:
        places = {"first": f"extractor.{self.model}1", "second": f"extractor.{self.model}2", "last": "classifier.fc"}
        layers = ((name.partition("."), tensor) for name, tensor in self.net.state_dict().items())
        return {f"{places[layer]}.{kind}": tensor for (layer, _, kind), tensor in layers}


def scenario(model: str, folder: Path, hidden: int = WIDE) -> Scenario:
    rng, samples = np.random.default_rng(4), 30 * DEVICES
    slopes = rng.random(samples)
    ramps = slopes[:, None, None] * np.linspace(-1, 1, TIME)
    x = ramps + 0.1 * rng.standard_normal((samples, CHANNELS, TIME))
    np.savez(folder / "series.npz", x=x.astype(np.float32), y=slopes.astype(np.float32))
    skew = {"name": "quantity_skew", "alpha": 2.0}
    return digit_runs.scenario(
        {
            "data": {"name": "arrays", "path": str(folder / "series.npz"), "target": "value", "partition": skew},
            "model": {"name": model, "hidden": hidden, "layers": 2},
            "stop.rounds": ROUNDS,
            "training": {"learning_rate": 0.05, "momentum": 0.9, "batch_size": 8},
            "protocols": [{"name": "fedavg", "clients": COHORT}],
        }
    )


@pytest.mark.parametrize("model", UNITS)
@pytest.mark.parametrize(("hidden", "precision"), [(NARROW, "float32"), (WIDE, "float64")])
def test_fedavg_is_the_plain_loop_bit_for_bit(model: str, hidden: int, precision: str, tmp_path: Path) -> None:
    whole = scenario(model, tmp_path, hidden)
    results = run(whole, out=tmp_path / "serial", executor="serial", precision=precision)
    loop = RecurrentLoop(whole, model=model, hidden=hidden, dtype=getattr(torch, precision))
    begun, untrained = {name: tensor.clone() for name, tensor in loop.named().items()}, loop.accuracy()
    expected, errors = loop.averaging(COHORT, "samples")
    assert differences(digit_runs.weights(results, "fedavg"), expected) == {}
    assert results.rounds["rmse"].tolist() == pytest.approx(errors, rel=1e-6)
    assert errors[-1] < 0.8 * untrained, "something is learned"
    assert all(not torch.equal(begun[name], tensor) for name, tensor in expected.items()), "all of it is trained"


@pytest.mark.parametrize("model", UNITS)
def test_in_float32_the_model_is_as_near_to_float64_as_that_of_the_plain_loop(model: str, tmp_path: Path) -> None:
    whole = scenario(model, tmp_path)
    results = run(whole, out=tmp_path / "serial", executor="serial")
    true, theirs = (
        RecurrentLoop(whole, model=model, dtype=dtype).averaging(COHORT, "samples")[0]
        for dtype in (torch.float64, torch.float32)
    )
    mine = digit_runs.weights(results, "fedavg")
    assert differences(mine, theirs), "layers of its own are tried"
    assert distance(mine, true) <= MOST * distance(theirs, true)


def test_processes_train_recurrent_layers_as_one_does(tmp_path: Path) -> None:
    whole = scenario("lstm", tmp_path)
    run(whole, out=tmp_path / "serial", executor="serial")
    run(whole, out=tmp_path / "two", executor="processes", workers=2)
    assert digit_runs.outcome(tmp_path / "two") == digit_runs.outcome(tmp_path / "serial")
