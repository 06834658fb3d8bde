"""A group of clients with one base model, trained together: every client's next mini-batch, then the next step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import torch

from fedsim.data.dataset import FederatedDataset
from fedsim.learning.executors.batched.conv_stacks import ConvStackKind, new_conv_stack
from fedsim.learning.executors.batched.course import Course, Draw, MiniBatch, Stage
from fedsim.learning.executors.batched.dense import Dense
from fedsim.learning.executors.batched.group import Change, Group
from fedsim.learning.executors.batched.layer import ClientWeights, GroupLayer, layer_tensors
from fedsim.learning.executors.batched.low_rank import rows_that_pay
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.samples import padded
from fedsim.learning.executors.batched.support import Architecture, ConvolutionBlock, DenseBlock
from fedsim.learning.executors.tensor_dict import by_full_name, made_by
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.wave import Source
from fedsim.learning.objectives.objective import Given

__all__ = ["Lockstep"]

MOST_SHARES = 64
"""Kept for steps with the same numbers of samples: clients of different lengths meet in ever new ways."""

_Kind = TypeVar("_Kind")


class Lockstep:
    """Chains of trainings that start from one model and follow one recipe."""

    def __init__(
        self,
        architecture: Architecture,
        dataset: FederatedDataset,
        draw: Draw,
        group: Group,
        recipe: Recipe,
        conv_stack_kind: ConvStackKind,
    ) -> None:
        """*conv_stack_kind* says how convolutions are computed."""
        base, chains = group.base, group.chains
        self._group = group
        self._architecture, self._recipe = architecture, recipe
        self._regression = dataset.regression
        self._course = Course(draw, chains)
        clients = len(chains)
        dense_stack = [layer_tensors(base, block) for block in architecture.dense_stack]
        rows = self._course.rows(max(rows_that_pay(*weight.shape) for weight, _ in dense_stack))
        self._conv_stack = new_conv_stack(
            conv_stack_kind, recipe, architecture.conv_stack, base, clients, self._course.widest
        )
        self._dense_stack = [Dense(recipe, *tensors, clients, rows) for tensors in dense_stack]
        blocks: list[ConvolutionBlock | DenseBlock] = [*architecture.conv_stack, *architecture.dense_stack]
        layers: list[GroupLayer] = [*self._conv_stack.convolutions, *self._dense_stack]
        self._layers = [(block.part, block.layer.name, layer) for block, layer in zip(blocks, layers, strict=True)]
        self._like = layer_tensors(base, blocks[-1])[0]
        self._states: list[Mapping[str, TensorDict]] = [{} for _ in chains]
        self._further: list[Mapping[str, TensorDict]] = [{} for _ in chains]
        self._steps = [0 for _ in chains]
        self._seen = [0 for _ in chains]
        self._right = self._like.new_zeros(clients, dtype=torch.int64)
        self._known_shares: dict[tuple[int, ...], torch.Tensor] = {}

    def run(
        self, made: Callable[[Source], TensorDict], finished: Callable[[int, dict[str, TensorDict]], None]
    ) -> Change:
        """Go through all steps; returns the group's share of the wave's sum.

        *made* gives what a client remembers from before; *finished* is told each training's outputs, as far as somebody
        needs them.
        """
        feeds = self._course.feeds()
        stages: list[Stage | None] = [None] * len(feeds)
        for active, width in self._course.steps():
            batches = [next(feed) for feed in feeds[:active]]
            for client, batch in enumerate(batches):
                if batch.stage is not stages[client]:
                    self._hand_over(client, stages[client], batch.stage, made, finished)
                    stages[client] = batch.stage
            self._step(batches, width)
        for client, stage in enumerate(stages):
            assert stage is not None
            self._finish(client, stage, finished)
        return self._change()

    def _change(self) -> Change:
        if self._group.weights is None:
            return Change({}, 0.0)
        weights = [self._group.weights[chain[-1].number] for chain in self._course.chains]
        parts: dict[str, TensorDict] = {part: {} for part in self._group.summed}
        for part, name, layer in self._layers:
            if part in parts:
                parts[part].update(_named(name, layer.weighted_change(weights)))
        return Change(parts, sum(weights))

    # -- from one training of a chain to the next ---------------------------------------------------------------------

    def _hand_over(
        self,
        client: int,
        before: Stage | None,
        stage: Stage,
        made: Callable[[Source], TensorDict],
        finished: Callable[[int, dict[str, TensorDict]], None],
    ) -> None:
        if before is not None:
            self._finish(client, before, finished)
            for part, _, layer in self._layers:
                if part in stage.restarts:
                    layer.restart(client)
                layer.begin(client)
        sources, sizes = stage.training.sources, stage.training.about.sizes
        self._states[client] = {name: made(source) for name, source in sources.model("state").items()}
        self._further[client] = {
            role: by_full_name({part: made(source) for part, source in sources.model(role).items()})
            for role in self._recipe.objective.receives
        }
        self._steps[client], self._seen[client] = sizes.steps, sizes.total
        self._right[client].zero_()  # and not "= 0": no graph can be recorded with numbers of the host
        if self._recipe.pushes:
            self._set_push(client)

    def _finish(self, client: int, stage: Stage, finished: Callable[[int, dict[str, TensorDict]], None]) -> None:
        outputs: dict[str, TensorDict] = {part: {} for part in self._group.base if part in stage.needed}
        for part, name, layer in self._layers:
            if part in outputs:
                outputs[part].update(_named(name, layer.state(client)))
        objective = self._recipe.objective
        if objective.makes and stage.needed - outputs.keys():
            has = self._given(client)._replace(right=self._right[client].clone(), seen=self._seen[client])
            outputs |= made_by(objective, objective.remember(ClientWeights(self._layers, client), has))
        finished(stage.number, outputs)

    # -- one step -----------------------------------------------------------------------------------------------------

    def _step(self, batches: Sequence[MiniBatch], width: int) -> None:
        """Forward, the loss's gradient, backward with a step of each layer as soon as its gradient is there."""
        samples = [batch.y.shape[0] for batch in batches]
        kept = [self._features(batches, samples, width)]
        for block, layer in zip(self._architecture.dense_stack, self._dense_stack, strict=True):
            h = layer.forward(kept[-1])
            kept.append(h.relu_() if block.rectified else h)
        d: torch.Tensor | None = self._loss_gradient(kept[-1], batches, samples, width)
        for number in reversed(range(len(self._dense_stack))):
            assert d is not None
            if self._architecture.dense_stack[number].rectified:
                d = torch.ops.aten.threshold_backward(d, kept[number + 1], 0)
            d = self._dense_stack[number].backward(
                d, kept[number], first=number == 0 and not self._architecture.conv_stack
            )
        if d is not None:
            self._conv_stack.backward(d, samples)
        if not self._recipe.linear:
            self._let_the_objective_see(len(batches))

    def _features(self, batches: Sequence[MiniBatch], samples: Sequence[int], width: int) -> torch.Tensor:
        """What the first fully connected layer takes, (clients, samples, features); zeros where a batch is shorter."""
        if not self._architecture.conv_stack:
            return padded([batch.x.flatten(1) for batch in batches], width)
        h = self._like.new_empty(len(batches), width, self._architecture.dense_stack[0].layer.inputs)
        for client, number in enumerate(samples):
            if number < width:
                h[client, number:].zero_()
        self._conv_stack.forward([batch.x for batch in batches], h)
        return h

    def _loss_gradient(
        self, scores: torch.Tensor, batches: Sequence[MiniBatch], samples: Sequence[int], width: int
    ) -> torch.Tensor:
        """Of each client's mean loss; exactly zero for rows that stand for no sample."""
        targets = padded([batch.y for batch in batches], width)
        shares = self._shares(tuple(samples), scores)
        if self._regression:
            return (scores - targets.to(scores.dtype).unsqueeze(2)).mul_(2 * shares)
        if self._recipe.objective.counts_right:
            right = (scores.argmax(dim=2) == targets) & (shares.squeeze(2) > 0)
            self._right[: len(batches)] += right.sum(dim=1)
        d = scores.softmax(dim=2)
        d.scatter_add_(2, targets.unsqueeze(2), d.new_full((1, 1, 1), -1).expand(*targets.shape, 1))
        return d.mul_(shares)

    def _shares(self, samples: tuple[int, ...], like: torch.Tensor) -> torch.Tensor:
        """(clients, samples, 1): each sample's share of its client's mean, kept for steps to come."""
        shares = self._known_shares.get(samples)
        if shares is None:
            own = [like.new_full((number, 1), 1 / number) for number in samples]
            shares = self._known_shares[samples] = padded(own, max(samples))
            if len(self._known_shares) > MOST_SHARES:
                del self._known_shares[next(iter(self._known_shares))]
        return shares

    # -- an objective with a term of its own --------------------------------------------------------------------------

    def _set_push(self, client: int) -> None:
        push = self._recipe.objective.push(self._given(client))
        for part, name, layer in self._layers:
            prefix = f"{part}.{name}."
            layer.set_push(client, {key.removeprefix(prefix): push[key] for key in push if key.startswith(prefix)})

    def _let_the_objective_see(self, active: int) -> None:
        held = {
            f"{part}.{name}": tensors
            for part, layer_name, layer in self._layers
            for name, tensors in _named(layer_name, layer.gradients()).items()
        }
        for client in range(active):
            self._recipe.objective.add_gradient(
                {name: tensors[client] for name, tensors in held.items()},
                ClientWeights(self._layers, client),
                self._given(client),
            )
        for _, _, layer in self._layers:
            layer.release()

    def _given(self, client: int) -> Given:
        options = self._group.about.training
        return Given(self._starts(client), self._states[client], self._further[client], options, self._steps[client])

    def _starts(self, client: int) -> dict[str, torch.Tensor]:
        if not self._recipe.objective.reads_start:
            return {}
        return {
            f"{part}.{name}": tensor
            for part, layer_name, layer in self._layers
            for name, tensor in _named(layer_name, layer.starts(client)).items()
        }


def _named(layer: str, tensors: Mapping[str, _Kind]) -> dict[str, _Kind]:
    return {f"{layer}.{kind}": tensor for kind, tensor in tensors.items()}
