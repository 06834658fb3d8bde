"""A plain PyTorch loop of SPATL, written from the equations of its paper, in double precision.

Equation 10 divides by the learning rate and the weight that gradients have in a change, and equation 12 moves towards
the clients, by a mean over all of a round. Filters are counted one by one. The loop shares with fedsim the documented
streams (``model/init``, ``selection``, ``batches``, ``batches/selection``), and no arithmetic.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from asked import Asked
from plain_loop import DEVICES
from torch import nn
from torch.nn.functional import cross_entropy, pad

from fedsim.kernel.streams import Stream
from fedsim.scenario.build import gather_materials
from fedsim.scenario.schema import Scenario

Weights = dict[str, torch.Tensor]

CHANNELS, HIDDEN, CLASSES = (12, 16), 12, 10
MODELS: dict[str, dict[str, Any]] = {
    "small_cnn": {"name": "small_cnn", "channels": list(CHANNELS), "hidden": HIDDEN},
    "resnet": {"name": "resnet", "depth": 20},
}
"""Convolutions with bias, and convolutions with batch normalisation."""
AUTHORS_SCALE = 0.01


class Net(nn.Module):
    """An encoder and a predictor."""

    def __init__(self, extractor: nn.Module, classifier: nn.Module) -> None:
        super().__init__()
        self.extractor, self.classifier = extractor, classifier

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.classifier(self.extractor(x))


class Residual(nn.Module):
    """Two convolutions, and around them every *stride*-th pixel with zeros for the new channels."""

    def __init__(self, before: int, channels: int) -> None:
        super().__init__()
        self.stride, self.more = (1 if before == channels else 2), channels - before
        self.body = nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(before, channels, 3, stride=self.stride, padding=1, bias=False),
                bn1=nn.BatchNorm2d(channels),
                relu1=nn.ReLU(),
                conv2=nn.Conv2d(channels, channels, 3, padding=1, bias=False),
                bn2=nn.BatchNorm2d(channels),
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x) + pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, self.more))


def small_cnn() -> Net:
    extractor = OrderedDict[str, nn.Module](
        conv1=nn.Conv2d(1, CHANNELS[0], 5, padding=2),
        relu1=nn.ReLU(),
        pool1=nn.MaxPool2d(2),
        conv2=nn.Conv2d(CHANNELS[0], CHANNELS[1], 5, padding=2),
        relu2=nn.ReLU(),
        pool2=nn.MaxPool2d(2),
        flatten=nn.Flatten(),
        fc1=nn.Linear(4 * CHANNELS[1], HIDDEN),
        relu3=nn.ReLU(),
    )
    return Net(nn.Sequential(extractor), nn.Sequential(OrderedDict(fc2=nn.Linear(HIDDEN, CLASSES))))


def resnet() -> Net:
    extractor = OrderedDict[str, nn.Module](
        conv1=nn.Conv2d(1, 16, 3, padding=1, bias=False), bn1=nn.BatchNorm2d(16), relu1=nn.ReLU()
    )
    widths = [16, *[16] * 3, *[32] * 3, *[64] * 3]
    for number in range(1, 10):
        extractor[f"block{number}"] = Residual(widths[number - 1], widths[number])
        extractor[f"relu{number + 1}"] = nn.ReLU()
    extractor["pool"] = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Net(nn.Sequential(extractor), nn.Sequential(OrderedDict(fc=nn.Linear(64, CLASSES))))


def started(net: Net, *, he: bool) -> Net:
    """Weights by He's normal or by Glorot's uniform scheme, layer by layer; biases are zero."""
    draw = Stream(1, "model/init").generator()
    with torch.no_grad():
        for layer in net.modules():
            if isinstance(layer, nn.Conv2d | nn.Linear):
                shape = tuple(layer.weight.shape)
                fan_in, fan_out = (int(np.prod(shape)) // shape[axis] for axis in (0, 1))
                if he:
                    drawn = np.sqrt(2 / fan_in) * draw.standard_normal(shape)
                else:
                    drawn = np.sqrt(6 / (fan_in + fan_out)) * (2 * draw.random(shape) - 1)
                layer.weight.copy_(torch.tensor(drawn.astype(np.float32)))
                if layer.bias is not None:
                    layer.bias.zero_()
    return net.double()


def filters_of(net: Net) -> dict[str, list[str]]:
    """For the weight of each convolution, whatever has an entry for each of its filters, itself included."""
    found: dict[str, list[str]] = {}
    for name, layer in net.named_modules():
        own = [f"{name}.{key}" for key, tensor in layer.state_dict().items() if tensor.dim()]
        if isinstance(layer, nn.Conv2d):
            found[last := f"{name}.weight"] = own
        elif isinstance(layer, nn.BatchNorm2d):
            found[last] += own
    return found


@dataclass
class Upload:
    """What one client has made."""

    weights: Weights
    control_change: Weights
    kept: dict[str, frozenset[int]]
    """By tensor that has filters: those that are sent."""
    samples: int

    def sends(self, name: str, row: int) -> bool:
        return name not in self.kept or row in self.kept[name]


class SpatlLoop:
    """A server and its clients, with the keys of a *protocol* as scenarios have them."""

    def __init__(self, scenario: Scenario, protocol: Mapping[str, Any], model: str = "small_cnn") -> None:
        self.training, self.data = scenario.training, gather_materials(scenario, seed=1).dataset
        self.x, self.y = torch.tensor(self.data.x).double(), torch.tensor(self.data.y)
        self.net = started({"small_cnn": small_cnn, "resnet": resnet}[model](), he=model == "resnet")
        self.filters = filters_of(self.net)
        self.w: Weights = {name: tensor.clone() for name, tensor in self.net.state_dict().items() if tensor.dim()}
        self.statistics = {name for name, _ in self.net.named_buffers()} & self.w.keys()
        self.private = protocol["name"] != "spatl_shared_predictor"
        self.selection: Mapping[str, Any] = protocol.get("selection", {"name": "none"})
        self.control: Mapping[str, Any] = protocol.get("control", {})
        self.authors = self.control.get("parity") == "authors"
        self.server: Mapping[str, Any] = protocol.get("server", {})
        self.by_samples = protocol.get("weighting") == "samples"
        controlled = protocol["name"] != "spatl_no_control"
        trained = [name for name in self.w if name.startswith("extractor.") and name not in self.statistics]
        self.c = {name: torch.zeros_like(self.w[name]) for name in trained if controlled}
        self.own: dict[int, Weights] = {}
        """c_l, of those who have trained."""
        self.predictors: dict[int, Weights] = {}
        self.uses = dict.fromkeys(range(DEVICES), 0)
        self.steps_seen: set[int] = set()
        self.disputed = 0
        """Filters of a round that some have sent and some have not."""

    def run(self, rounds: Sequence[Sequence[Asked]], *, score: bool = True) -> list[list[float]]:
        """The accuracy of each client's own model on its own tests after each round, if somebody wants the *score*."""
        accuracies = []
        for asked in rounds:
            uploads = [(self.trained_by(client), arrives) for client, arrives in sorted(asked)]
            if arrived := [upload for upload, arrives in uploads if arrives]:
                self.w, self.c = self.averaged(arrived), self.corrected(arrived)
                self.disputed += sum(
                    0 < sum(one.sends(conv, row) for one in arrived) < len(arrived)
                    for conv in self.filters
                    for row in range(len(self.w[conv]))
                )
            accuracies.append([self.accuracy_of(client) for client in range(DEVICES if score else 0)])
        return accuracies

    def trained_by(self, client: int) -> Upload:
        """Equations 3, 9 and 10: what is lost on its way has still changed c_l and the predictor."""
        received = self.w | self.predictors.get(client, {})
        ids, use = self.data.train_ids[client], self.uses[client]
        self.uses[client] += 1
        own = self.own.get(client) or {name: torch.zeros_like(c) for name, c in self.c.items()}
        steps = self.sgd(received, ids, Stream(1, "batches", client, use).generator(), own)
        end = {name: tensor.clone() for name, tensor in self.net.state_dict().items() if name in self.w}
        eta, rho = self.training.learning_rate, self.training.momentum
        weight = steps if self.authors else sum(sum(rho**age for age in range(steps - step)) for step in range(steps))
        change = {name: -c + (received[name] - end[name]) / (weight * eta) for name, c in self.c.items()}
        self.own[client] = {name: own[name] + change[name] for name in self.c}
        if self.private:
            self.predictors[client] = {name: end[name] for name in end if name.startswith("classifier.")}
        self.steps_seen.add(steps)
        chance = Stream(1, "batches/selection", client, use).generator()
        return Upload(end, change, self.chosen(end, chance), len(ids))

    def sgd(self, start: Weights, ids: np.ndarray, order: np.random.Generator, own: Weights) -> int:
        """Local steps from *start* in the net; how many."""
        self.net.load_state_dict(start, strict=False)
        self.net.train()
        parameters, settings = dict(self.net.named_parameters()), self.training
        eta, scale = settings.learning_rate, self.control.get("cv_scale", AUTHORS_SCALE)
        optimiser = torch.optim.SGD(
            parameters.values(), lr=eta, momentum=settings.momentum, weight_decay=settings.weight_decay
        )
        steps = 0
        for _ in range(settings.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(settings.batch_size, len(ids), settings.batch_size)):
                optimiser.zero_grad()
                cross_entropy(self.net(self.x[batch]), self.y[batch]).backward()
                if not self.authors:
                    for name, c in self.c.items():
                        parameters[name].grad += c - own[name]
                optimiser.step()
                if self.authors:
                    with torch.no_grad():
                        for name, c in self.c.items():
                            parameters[name] -= eta * scale * (c - own[name])
                steps += 1
        return steps

    def chosen(self, trained: Weights, chance: np.random.Generator) -> dict[str, frozenset[int]]:
        """Which filters are sent, by each tensor that has them."""
        kind = self.selection["name"]
        if kind == "none":
            return {}
        keep = self.selection["keep"]
        norms = {conv: [float(row.norm()) for row in trained[conv]] for conv in self.filters}
        ranked = {conv: sorted(range(len(own)), key=lambda at: (-own[at], at)) for conv, own in norms.items()}
        if kind == "random":
            ranked = {conv: chance.permutation(len(own)).tolist() for conv, own in norms.items()}
        if kind == "l2_global":
            every = sorted(
                (-norm, place, at) for place, own in enumerate(norms.values()) for at, norm in enumerate(own)
            )
            sent = {(place, at) for _, place, at in every[: left(len(every), keep)]}
            kept = {
                conv: frozenset([best[0], *(at for at in best if (place, at) in sent)])
                for place, (conv, best) in enumerate(ranked.items())
            }
        else:
            kept = {conv: frozenset(best[: left(len(best), keep)]) for conv, best in ranked.items()}
        return {name: kept[conv] for conv, names in self.filters.items() for name in names}

    def averaged(self, uploads: Sequence[Upload]) -> Weights:
        """Equation 12, filter by filter; running statistics are averaged, whatever the server's step is."""
        counts = [upload.samples if self.by_samples else 1 for upload in uploads]
        made = dict(self.w)
        for name, w in self.w.items():
            if self.private and name.startswith("classifier."):
                continue
            step = 1.0 if name in self.statistics else self.server.get("learning_rate", 1.0)
            rows = []
            for row, before in enumerate(w):
                sent = [
                    (p, one.weights[name][row]) for p, one in zip(counts, uploads, strict=True) if one.sends(name, row)
                ]
                over = sum(p for p, _ in sent) if self.server.get("denominator") == "count" else sum(counts)
                rows.append(before + step * sum((p / over * (w_k - before) for p, w_k in sent), torch.zeros(())))
            made[name] = torch.stack(rows)
        return made

    def corrected(self, uploads: Sequence[Upload]) -> Weights:
        """Equation 11: N is all clients, and the server can rebuild the change of those filters that are sent."""
        everything = self.control.get("change") == "sent"
        made = {}
        for name, c in self.c.items():
            rows = []
            for row, before in enumerate(c):
                sent = [one.control_change[name][row] for one in uploads if everything or one.sends(name, row)]
                rows.append(before + sum(sent, torch.zeros(())) / DEVICES)
            made[name] = torch.stack(rows)
        return made

    def accuracy_of(self, client: int) -> float:
        """Of the server's encoder with the client's own predictor."""
        self.net.load_state_dict(self.w | self.predictors.get(client, {}), strict=False)
        self.net.eval()
        ids = torch.tensor(self.data.client_test_ids[client])
        with torch.no_grad():
            return (self.net(self.x[ids]).argmax(1) == self.y[ids]).double().mean().item()


def left(filters: int, keep: float) -> int:
    return max(filters - round((1 - keep) * filters), 1)
