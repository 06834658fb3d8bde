"""Make the graph networks that come with fedsim: ``python -m fedsim.learning.pretraining OUT``.

An agent learns to prune a ResNet-56 that was trained on the handwritten digits of scikit-learn: it has to leave out
half of its FLOPs. What it has learned of graphs is kept; the layers behind belong to that model.

The authors pre-train on CIFAR-10, in 15,000 episodes. Here it is as many as 20 minutes on two cores allow.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save

from fedsim.data.dataset import FederatedDataset
from fedsim.data.digits import Digits
from fedsim.data.held_back import holding_back
from fedsim.data.raw_dataset import Clients
from fedsim.files import write_atomically
from fedsim.kernel.streams import Streams
from fedsim.learning.agent.network import ACTOR, CRITIC, Agent, Tensors, drawn_agent, graph_network_shapes, head_shapes
from fedsim.learning.agent.search import Budget, Search
from fedsim.learning.agent.state import NodeFeatures, Viewer
from fedsim.learning.batches import Seen
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.executors.plain import PlainTrainer
from fedsim.learning.executors.selecting import pruned
from fedsim.learning.executors.tensor_dict import TensorDict
from fedsim.learning.executors.wave import Training, Wave
from fedsim.learning.objectives.plain import Plain
from fedsim.learning.operations.operation import Slot
from fedsim.learning.operations.train import Train
from fedsim.learning.training import TrainingSettings
from fedsim.models.convolutions import Skeleton, skeleton_of, strongest
from fedsim.models.resnet import ResNet
from fedsim.models.table import EXTRACTOR, LayerTable
from fedsim.models.torch_module import initial_parameters

__all__ = ["Task", "pretrain"]

HELD_BACK = 256
"""Samples that rate what is kept."""
BUDGET = Budget(target=0.5, steps=5, least=0.1, update_steps=100, update_epochs=10)
TOLD_EVERY = 100


class Task:
    """A model that is trained, and how good it is with some of its filters."""

    def __init__(self, table: LayerTable, seed: int, training: TrainingSettings) -> None:
        """Train the model of *table* on one client's digits."""
        streams = Streams(seed)
        self._data: FederatedDataset = Digits().load(Clients(1), lambda purpose: streams(purpose).generator())
        self._trainer = PlainTrainer(table, self._data, "cpu", "float32")
        self.skeleton: Skeleton = skeleton_of(table)
        held = holding_back(self._data, HELD_BACK, seed)
        self._ids, seen = held.held_back_ids[0], Seen.of(held, 0)
        begun = initial_parameters(table, streams("model/init").generator())
        about = Train(table.digest, training, Plain(), Float32(), seen)
        inputs = {Slot("model", part=part): place for place, part in enumerate(table.parts)}
        wave = Wave((Training(about, streams("batches"), inputs, table.parts),))
        (self.model,) = self._trainer.train(wave, [begun[part] for part in table.parts])
        weights: TensorDict = self.model[EXTRACTOR]
        self.norms = [
            weights[f"{one.name}.weight"].double().flatten(1).norm(dim=1).numpy() for one in self.skeleton.convolutions
        ]

    def accuracy(self, kept: Sequence[int]) -> float:
        """In percent, with so many filters of each convolution, those of the largest norm."""
        masks = [strongest(norms, number) for norms, number in zip(self.norms, kept, strict=True)]
        model = {**self.model, EXTRACTOR: pruned(self.model[EXTRACTOR], self.skeleton, masks)}
        (score,) = self._trainer.score(model, [self._ids])
        return 100.0 * score.correct / len(self._ids)


def pretrain(
    task: Task,
    *,
    episodes: int,
    seed: int,
    node_features: NodeFeatures = "sizes",
    budget: Budget = BUDGET,
    told: Callable[[int, float], None] = lambda *_: None,
) -> Tensors:
    """The graph networks of an agent that has learned from *task* in so many *episodes*.

    *told* hears, from time to time, how many there have been, and the mean reward of those since the last time.
    """
    generator = np.random.default_rng(seed)
    graphs = graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC)
    parameters = drawn_agent(graphs | head_shapes(len(task.skeleton.convolutions)), generator)
    search = Search(
        Agent(task.skeleton, parameters),
        task.skeleton,
        Viewer(task.skeleton, task.norms, budget.target, node_features, generator),
        budget,
        task.accuracy,
        generator,
        list(parameters.values()),
        graphs_too=True,
    )
    rewards: list[float] = []
    for number in range(1, episodes + 1):
        rewards.append(search.explore().reward)
        if number % TOLD_EVERY == 0:
            told(number, float(np.mean(rewards[-TOLD_EVERY:])))
    return {name: parameters[name] for name in graphs}


def main() -> None:
    """Pre-train as for the file that comes with fedsim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path, help="where the safetensors file goes")
    parser.add_argument("--episodes", type=int, default=6000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    training = TrainingSettings(learning_rate=0.05, batch_size=32, epochs=15, momentum=0.9)
    task = Task(ResNet(depth=56).table((1, 8, 8), 10), asked.seed, training)
    everything = task.accuracy([one.filters for one in task.skeleton.convolutions])
    _tell(f"ResNet-56 on digits: {everything:.1f} % of the samples that were held back")
    made = pretrain(
        task,
        episodes=asked.episodes,
        seed=asked.seed,
        told=lambda number, reward: _tell(f"{number} episodes, mean reward {reward:.2f}"),
    )
    write_atomically(asked.out, save(made))


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
