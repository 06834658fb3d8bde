"""The plain loop of the baselines: local SGD by PyTorch, in double precision, and the servers of `paper_servers`.

It shares with fedsim the documented streams (``model/init``, ``selection``, ``batches``), and no arithmetic.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from asked import Asked
from normalised_net import NormalisedNet
from paper_servers import Controlled, Local, Weights, server_of
from plain_loop import DEVICES, NAMES, Loop

from fedsim.kernel.streams import Stream
from fedsim.scenario.schema import Scenario

LARGEST_SEED = 2**63


class BaselineLoop:
    """The model, the server and the clients of one protocol."""

    def __init__(self, scenario: Scenario, protocol: Mapping[str, Any], *, normalised: bool = False) -> None:
        plain = Loop(scenario)
        self.training, self.data = scenario.training, plain.data
        self.x, self.y = plain.x.double(), plain.y
        net = _normalised() if normalised else plain.net
        self.net: torch.nn.Module = copy.deepcopy(net).double()
        self.w: Weights = {name: tensor.clone() for name, tensor in self.net.state_dict().items() if tensor.dim()}
        statistics = {name for name, _ in self.net.named_buffers()} & self.w.keys()
        self.server = server_of(protocol, statistics, clients=DEVICES, classes=10)
        self.own: dict[int, Weights] = {}
        """c_i, of those who have trained."""
        self.uses = dict.fromkeys(range(DEVICES), 0)
        self.steps_seen: set[int] = set()
        self.normalised = normalised

    def run(self, rounds: Sequence[Sequence[Asked]], *, forgets_what_is_lost: bool = False) -> Weights:
        """The model after *rounds*; a client that *forgets_what_is_lost* would go back to the c_i before it."""
        for asked in rounds:
            arrived = []
            for client, arrives in sorted(asked):
                before = self.own.get(client)
                local = self.train(client)
                if arrives:
                    arrived.append(local)
                elif forgets_what_is_lost and before is not None:
                    self.own[client] = before
                elif forgets_what_is_lost:
                    self.own.pop(client, None)
            if arrived:
                self.w = self.server.next(self.w, arrived)
        return self.named()

    def train(self, client: int) -> Local:
        """Local SGD from the server's model; with control variates, ``y = y - eta (g - c_i + c)``."""
        self.net.load_state_dict(self.w, strict=False)
        self.net.train()
        parameters = dict(self.net.named_parameters())
        rho, eta = self.training.momentum, self.training.learning_rate
        optimiser = torch.optim.SGD(parameters.values(), lr=eta, momentum=rho)
        ids = self.data.train_ids[client]
        order = Stream(1, "batches", client, self.uses[client]).generator()
        self.uses[client] += 1
        c = self.server.control(self.w) if isinstance(self.server, Controlled) else {}
        own = self.own.get(client) or {name: torch.zeros_like(tensor) for name, tensor in c.items()}
        right = steps = 0
        for _ in range(self.training.epochs):
            shuffled = ids[order.permutation(len(ids))]
            for batch in np.split(shuffled, range(self.training.batch_size, len(ids), self.training.batch_size)):
                optimiser.zero_grad()
                scores = self.net(self.x[batch])
                torch.nn.functional.cross_entropy(scores, self.y[batch]).backward()
                for name in c:
                    parameters[name].grad += c[name] - own[name]
                optimiser.step()
                right, steps = right + int((scores.argmax(1) == self.y[batch]).sum()), steps + 1
        self.steps_seen.add(steps)
        end = {name: tensor.clone() for name, tensor in self.net.state_dict().items() if name in self.w}
        a = sum(sum(rho**age for age in range(steps - step)) for step in range(steps))
        change = {name: (self.w[name] - end[name]) / (a * eta) - c[name] for name in c}
        if c:
            self.own[client] = {name: own[name] + change[name] for name in c}
        return Local(end, len(ids), steps, a, right / (len(ids) * self.training.epochs), change)

    def named(self) -> Weights:
        """The model, by fedsim's names."""
        if self.normalised:
            return {
                f"{'classifier' if name.startswith('head') else 'extractor'}.{name}": w for name, w in self.w.items()
            }
        return {name: self.w[here] for name, here in NAMES.items()}


def _normalised() -> NormalisedNet:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(int(Stream(1, "model/init").generator().integers(LARGEST_SEED)))
        return NormalisedNet()
