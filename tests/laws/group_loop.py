"""The plain PyTorch loop of sequential-to-parallel training, LASP and SCC, as HFedMS and FedGSP describe them.

It is written from the papers for the tests. With fedsim it shares how groups are formed (by ICG, or at random), the
documented streams, the order of rows (new semantics before remembered ones, and those nearest to their class's mean
first), and the arithmetic: the drift of a class is the mean of its samples' drifts, and a group counts as its last
client where models are added up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from plain_loop import DEVICES, Loop, Weights
from torch.nn.functional import cross_entropy, linear

from fedsim.grouping.icg import ICG
from fedsim.grouping.settings import RandomGroups
from fedsim.kernel.streams import Stream


class Rows(NamedTuple):
    """Semantics, their labels, and the samples they were made of."""

    features: torch.Tensor
    labels: torch.Tensor
    samples: torch.Tensor

    def of(self, order: torch.Tensor) -> Rows:
        return Rows(*(values[order] for values in self))


def together(some: Sequence[Rows]) -> Rows:
    return Rows(*(torch.cat(values) for values in zip(*some, strict=True)))


@dataclass
class Memory:
    """What a client keeps from block to block, and within one."""

    extractor: Weights = field(default_factory=list)
    """As it was scattered."""
    first_ids: np.ndarray | None = None
    """The samples of the full round."""
    first_extractor: Weights = field(default_factory=list)
    """The extractor as the client itself trained it in the full round."""
    seen: list[Rows] = field(default_factory=list)
    database: Rows | None = None
    backup: Weights = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)
    """The blocks that it took part in."""


SCC = {
    "capacity": 200,
    "compensation": "per_class",
    "absent": "stays",
    "keep": "semantics",
    "storage": "nearest",
    "quota": "none",
    "first_extractor": "scattered",
    "without_history": "calibrate",
}


@dataclass
class GroupLoop(Loop):
    """STP, with the whole model in each round, or with LASP and SCC."""

    protocol: Mapping[str, Any] = field(default_factory=dict)
    memories: dict[int, Memory] = field(default_factory=dict)
    accuracies: list[float] = field(default_factory=list)
    teacher: Weights = field(default_factory=list)
    """The global model of the full round."""
    compensated: int = 0
    """How often a client has compensated what it remembers."""
    absent: int = 0
    """How often a remembered class was not among the new samples."""

    def option(self, name: str, default: Any) -> Any:
        return self.protocol.get(name, default)

    # -- groups ----------------------------------------------------------------------------------------------------

    def number_of_groups(self, block: int) -> int:
        """Block B = 1, 2, ...: beta floor(alpha ln B + 1), or beta; never more than clients."""
        growth = {"name": "logarithmic", "alpha": 2.0, "beta": 10} | dict(self.option("growth", {}))
        times = math.floor(growth["alpha"] * math.log(block) + 1) if growth["name"] == "logarithmic" else 1
        return min(DEVICES, growth["beta"] * times)

    def formed(self, block: int) -> list[list[int]]:
        """By ICG from the classes of what each client is about to train on, or at random; in training order."""
        draw = Stream(1, "grouping", 0, block).generator()
        number = self.number_of_groups(block)
        if self.option("grouping", {"name": "icg"})["name"] == "random":
            grouping = RandomGroups(once=False)
            return [group.tolist() for group in grouping.groups(np.zeros((DEVICES, 1)), number, draw)]
        counts = np.zeros((DEVICES, 10), np.int64)
        for client in range(DEVICES):
            for label in self.data.y[self.next_ids(client)]:
                counts[client, label] += 1
        return [group.tolist() for group in ICG().groups(counts, number, draw)]

    def chosen(self, formed: list[list[int]], round_number: int) -> list[list[int]]:
        """max(1, floor(kappa M)) of the groups, uniformly."""
        number = max(1, math.floor(self.option("sampling_rate", 0.3) * len(formed) + 1e-9))
        order = Stream(1, "selection", 0, round_number).generator().permutation(len(formed))
        return [formed[position] for position in order[:number]]

    def rounds(self) -> Iterator[tuple[int, int, int, list[list[int]]]]:
        """(number of the round, of its block, place in the block, groups)."""
        interval, groups = self.option("interval", 1), []
        for number in range(1, self.scenario.stop.rounds + 1):
            block, place = (number - 1) // interval + 1, (number - 1) % interval
            if place == 0:
                groups = self.chosen(self.formed(block), number)
            elif self.option("shuffle", "regroup") == "round":
                draw = Stream(1, "grouping/order", 0, number).generator()
                groups = [[group[position] for position in draw.permutation(len(group))] for group in groups]
            yield number, block, place, groups

    # -- local work ------------------------------------------------------------------------------------------------

    def next_ids(self, client: int) -> np.ndarray:
        """What the client would train on now: all of its own, or the next samples of its stream."""
        own, use = self.data.train_ids[client], self.uses.get(client, 0)
        if self.scenario.data.stream is None:
            return own
        samples = self.scenario.data.stream.samples
        passes = [
            own[Stream(1, "data/pass", client, number).generator().permutation(len(own))]
            for number in range((use + 1) * samples // len(own) + 1)
        ]
        return np.concatenate(passes)[use * samples : (use + 1) * samples]

    def train_in_sequence(self, start: Weights, group: list[int]) -> Weights:
        """Each member trains what the one before it has made."""
        for client in group:
            start = self.train(start, client, self.next_ids(client))
        return start

    def loss(self, batch: np.ndarray) -> torch.Tensor:
        """Beside the cross-entropy, KL(what the global model says || what this one says), as in the authors' code."""
        scores = self.net(self.x[batch])
        loss = cross_entropy(scores, self.y[batch])
        if weight := self.option("objective", {}).get("coefficient", 0.0):
            first, first_bias, second, second_bias = self.teacher
            hidden = torch.relu(linear(self.x[batch].flatten(1), first, first_bias))
            told = linear(hidden, second, second_bias).log_softmax(1)
            loss = loss + weight * (told.exp() * (told - scores.log_softmax(1))).sum(1).mean()
        return loss

    def extract(self, extractor: Weights, ids: np.ndarray) -> Rows:
        return self.extracted(extractor, self.x[ids], self.y[ids])

    def extracted(self, extractor: Weights, x: torch.Tensor, y: torch.Tensor) -> Rows:
        weight, bias = extractor
        return Rows(torch.relu(linear(x.flatten(1), weight, bias)), y, x)

    def calibrate(self, classifier: Weights, client: int, rows: Rows, epochs: int) -> Weights:
        """SGD on the classifier alone, from features."""
        settings = self.scenario.training
        weight, bias = (tensor.clone().requires_grad_() for tensor in classifier)
        optimiser = torch.optim.SGD(
            [weight, bias],
            lr=settings.learning_rate,
            momentum=settings.momentum,
            weight_decay=settings.weight_decay,
        )
        order = Stream(1, "batches", client, self.uses[client]).generator()
        for _ in range(epochs):
            for batch in torch.from_numpy(order.permutation(len(rows.labels))).split(settings.batch_size):
                optimiser.zero_grad()
                cross_entropy(linear(rows.features[batch], weight, bias), rows.labels[batch]).backward()
                optimiser.step()
        return [weight.detach(), bias.detach()]

    # -- the whole model in each round -----------------------------------------------------------------------------

    def average(self, base: Weights, groups: list[list[int]], models: list[Weights], samples: list[int]) -> Weights:
        """The mean over groups, in the order of their last clients."""
        order = sorted(range(len(groups)), key=lambda number: groups[number][-1])
        uniform = self.option("weighting", "uniform") == "uniform"
        weights = [1 if uniform else samples[number] for number in order]
        shares = [weight / sum(weights) for weight in weights]
        return self.mean(base, [models[number] for number in order], shares, [samples[number] for number in order])

    def samples_of(self, groups: list[list[int]]) -> list[int]:
        return [sum(len(self.next_ids(client)) for client in group) for group in groups]

    def sequential_to_parallel(self) -> Weights:
        """STP (algorithm 2 of HFedMS, algorithm 1 of FedGSP)."""
        model = self.weights
        for _, _, _, groups in self.rounds():
            samples, self.teacher = self.samples_of(groups), model
            model = self.average(model, groups, [self.train_in_sequence(model, group) for group in groups], samples)
            self.score(model)
        return model

    def score(self, model: Weights) -> None:
        self.put(model)
        self.accuracies.append(self.accuracy())

    # -- LASP and SCC ----------------------------------------------------------------------------------------------

    def layer_wise(self) -> Weights:
        """LASP, and SCC in its calibration rounds (algorithms 1 and 4 of HFedMS)."""
        interval, model = self.option("interval", 5), self.weights
        for _, block, place, groups in self.rounds():
            samples = self.samples_of(groups)
            if place == 0:
                self.teacher = model
                models = [self.full_training(model, group, block) for group in groups]
                model = self.average(model, groups, models, samples)
                for client in (client for group in groups for client in group) if interval > 1 else ():
                    self.memories[client].extractor = model[:2]
            else:
                classifiers = [self.calibration_in_sequence(model[2:], group, block, place) for group in groups]
                model = [*model[:2], *self.average(model[2:], groups, classifiers, samples)]
            self.score(model)
        return model

    def full_training(self, start: Weights, group: list[int], block: int) -> Weights:
        for client in group:
            memory, ids = self.memories.setdefault(client, Memory()), self.next_ids(client)
            start = self.train(start, client, ids)
            memory.first_ids, memory.first_extractor = ids, start[:2]
            memory.blocks.append(block)
        return start

    def calibration_in_sequence(self, classifier: Weights, group: list[int], block: int, place: int) -> Weights:
        for client in group:
            classifier = self.calibration(classifier, client, block, place)
            self.uses[client] += 1
        return classifier

    def calibration(self, classifier: Weights, client: int, block: int, place: int) -> Weights:
        """One client in one calibration round, the *place*-th of its block."""
        memory, ids = self.memories[client], self.next_ids(client)
        new, epochs = self.extract(memory.extractor, ids), self.option("calibration_epochs", 1)
        if self.option("scc", {}) is None:
            return self.calibrate(classifier, client, new, epochs)
        scc = SCC | dict(self.option("scc", {}))
        old = memory.database
        if old is not None and place == 1:
            old = memory.database = self.compensate(scc, memory, old, new)
        if old is not None:
            classifier = self.calibrate(classifier, client, together([new, old]), epochs)
        elif scc["without_history"] == "calibrate":
            classifier = self.calibrate(classifier, client, new, epochs)
        if place == 1:
            local = scc["first_extractor"] == "local"
            assert memory.first_ids is not None
            extractor = memory.first_extractor if local else memory.extractor
            memory.seen = [self.extract(extractor, memory.first_ids)]
        memory.seen.append(new)
        if place == self.option("interval", 5) - 1:
            candidates = together([*reversed(memory.seen), *([] if old is None else [old])])
            memory.database = candidates.of(self.stored(scc, candidates, client, block))
            memory.backup = memory.extractor
        return classifier

    def compensate(self, scc: Mapping[str, Any], memory: Memory, old: Rows, new: Rows) -> Rows:
        """Eqs. 12 to 15: Z(c) += mean of h(x, phi) - mean of h(x, phi_bak) over the new x of class c."""
        if scc["keep"] == "samples":
            return self.extracted(memory.extractor, old.samples, old.labels)
        if scc["compensation"] == "none":
            return old
        self.compensated += 1
        drifts = new.features - self.extracted(memory.backup, new.samples, new.labels).features
        moved = old.features.clone()
        for row, label in enumerate(old.labels):
            alike = drifts[new.labels == label]
            if scc["compensation"] == "mean":
                moved[row] += drifts.mean(0)
            elif len(alike):
                moved[row] += alike.mean(0)
            else:
                self.absent += 1
                moved[row] += drifts.mean(0) if scc["absent"] == "mean" else 0
        return old._replace(features=moved)

    def stored(self, scc: Mapping[str, Any], rows: Rows, client: int, block: int) -> torch.Tensor:
        """Eqs. 17 and 18: which rows are kept, the nearest to their class's mean first; of equal ones, the newest."""
        order = list(range(len(rows.labels)))
        if scc["storage"] == "random":
            order = Stream(1, "semantics/kept", client, block).generator().permutation(len(order)).tolist()
        else:
            exact = rows.features.double()
            means = {label: exact[rows.labels == label].mean(0) for label in set(rows.labels.tolist())}
            distances = [(row - means[label]).norm() for row, label in zip(exact, rows.labels.tolist(), strict=True)]
            order.sort(key=lambda row: round(float(distances[row]), 9))
        if scc["quota"] == "per_class":
            order = self.within_quotas(scc["capacity"], rows.labels, order)
        return torch.tensor(order[: scc["capacity"]])

    @staticmethod
    def within_quotas(capacity: int, labels: torch.Tensor, order: list[int]) -> list[int]:
        """The capacity dealt evenly among the classes there are, one row more for those that come first."""
        classes = sorted(set(labels.tolist()))
        whole, rest = divmod(capacity, len(classes))
        places = {label: whole + (number < rest) for number, label in enumerate(classes)}
        taken = []
        for row in order:
            label = int(labels[row])
            if places[label]:
                places[label] -= 1
                taken.append(row)
        return taken
