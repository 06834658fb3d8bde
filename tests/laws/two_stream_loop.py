"""Plain PyTorch loops of FedMMD and FedFusion, in double precision: their own network, averaging and SGD.

They share with fedsim the documented streams (``model/init``, ``selection``, ``batches``) and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from asked import Asked
from torch.nn.functional import conv2d, cross_entropy, linear, max_pool2d, relu

from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

CHANNELS, HIDDEN = (3, 4), 8
MODEL = {"name": "small_cnn", "channels": list(CHANNELS), "hidden": HIDDEN}
WIDTHS = [10.0**power for power in range(-6, 0)] + [1, 5, 10, 15, 20, 25, 30, 35, 100, 1e3, 1e4, 1e5, 1e6]

Net = dict[str, torch.Tensor]
"""fedsim's name -> tensor."""


@dataclass
class TwoStreams:
    """FedMMD with *strength*, or FedFusion with *operator*: one of them is given."""

    scenario: Scenario
    operator: str | None = None
    strength: float | None = None
    floor: float = 0.0
    uses: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.data = gather_materials(self.scenario, seed=1).dataset
        self.x, self.y = torch.tensor(self.data.x).double(), torch.tensor(self.data.y)

    def start(self) -> Net:
        """Uniform weights by fans, zero biases and gates, drawn layer by layer."""
        draw, (first, second) = Stream(1, "model/init").generator(), CHANNELS
        shapes = {"extractor.conv1": (first, 1, 5, 5), "extractor.conv2": (second, first, 5, 5)}
        if self.operator == "conv":
            shapes["extractor.fusion"] = (second, 2 * second)
        shapes |= {"extractor.fc1": (HIDDEN, second * 2 * 2), "classifier.fc2": (10, HIDDEN)}
        net: Net = {}
        for name, shape in shapes.items():
            cells = int(np.prod(shape[2:]))
            bound = np.sqrt(6 / (shape[1] * cells + shape[0] * cells))
            net[f"{name}.weight"] = torch.tensor((bound * (2 * draw.random(shape) - 1)).astype(np.float32)).double()
            if not name.endswith("fusion"):
                net[f"{name}.bias"] = torch.zeros(shape[0]).double()
        if self.operator in ("multi", "single"):
            net["extractor.fusion.gate"] = torch.zeros(second if self.operator == "multi" else 1).double()
        return net

    def maps(self, net: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        """What the convolutions make of images."""
        for name in ("extractor.conv1", "extractor.conv2"):
            x = max_pool2d(relu(conv2d(x, net[f"{name}.weight"], net[f"{name}.bias"], padding=2)), 2)
        return x

    def fuse(self, net: Mapping[str, torch.Tensor], own: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        if self.operator is None:
            return own
        if self.operator == "conv":
            return conv2d(torch.cat([others, own], dim=1), net["extractor.fusion.weight"][:, :, None, None])
        gate = net["extractor.fusion.gate"].reshape(1, -1, 1, 1)
        return gate * others + (1 - gate) * own

    def hidden(self, net: Mapping[str, torch.Tensor], maps: torch.Tensor) -> torch.Tensor:
        return relu(linear(maps.flatten(1), net["extractor.fc1.weight"], net["extractor.fc1.bias"]))

    def loss(self, net: Net, received: Net, ids: np.ndarray) -> torch.Tensor:
        x, y = self.x[ids], self.y[ids]
        with torch.no_grad():
            others = self.maps(received, x)
            told = self.hidden(received, others)
        features = self.hidden(net, self.fuse(net, self.maps(net, x), others))
        loss = cross_entropy(linear(features, net["classifier.fc2.weight"], net["classifier.fc2.bias"]), y)
        if self.strength is None:
            return loss
        return loss + self.strength * torch.clamp(self.discrepancy(told, features), min=self.floor)

    def discrepancy(self, told: torch.Tensor, own: torch.Tensor) -> torch.Tensor:
        """One kernel matrix of all rows: its quarters."""
        rows, half = torch.cat([told, own]), len(told)
        distances = torch.stack([((rows - row) ** 2).sum(1) for row in rows])
        kernel = torch.stack([torch.exp(-distances / (2 * width)) for width in WIDTHS]).sum(0)
        quarters = kernel[:half, :half].mean() + kernel[half:, half:].mean()
        return quarters - kernel[:half, half:].mean() - kernel[half:, :half].mean()

    def train(self, received: Net, client: int) -> Net:
        settings, ids = self.scenario.training, self.data.train_ids[client]
        net = {name: tensor.clone().requires_grad_() for name, tensor in received.items()}
        order = Stream(1, "batches", client, self.uses.get(client, 0)).generator()
        self.uses[client] = self.uses.get(client, 0) + 1
        for _ in range(settings.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(settings.batch_size, len(ids), settings.batch_size)):
                gradients = torch.autograd.grad(self.loss(net, received, batch), list(net.values()))
                with torch.no_grad():
                    for tensor, gradient in zip(net.values(), gradients, strict=True):
                        tensor -= settings.learning_rate * gradient
        return {name: tensor.detach() for name, tensor in net.items()}

    def run(self, rounds: Sequence[Sequence[Asked]]) -> Net:
        """The model after *rounds*; gates go a tenth of the way to their mean."""
        net = self.start()
        for asked in rounds:
            models = {client: self.train(net, client) for client, _ in asked}
            samples = {client: len(self.data.train_ids[client]) for client, arrives in asked if arrives}
            if samples:
                mean = {
                    name: sum(count * models[client][name] for client, count in samples.items()) / sum(samples.values())
                    for name in net
                }
                gate = "extractor.fusion.gate"
                if gate in net:
                    mean[gate] = 0.1 * mean[gate] + 0.9 * net[gate]
                net = mean
        return net
