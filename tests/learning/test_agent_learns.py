"""SPATL's agent on models that are really trained: it learns what to keep; a script makes its graph network."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from safetensors.torch import load

from fedsim.learning.agent.network import ACTOR, CRITIC, Agent, drawn_agent, graph_network_shapes, head_shapes
from fedsim.learning.agent.search import Budget, Search
from fedsim.learning.agent.state import Viewer
from fedsim.learning.pretraining import BUDGET, Task, pretrain
from fedsim.learning.selections.gnn_ppo import HEADS, _pretrained
from fedsim.learning.training import TrainingSettings
from fedsim.models.convolutions import left_of
from fedsim.models.resnet import ResNet

UPDATES, TARGET, AFTER = 40, 0.2, 50
WITHIN = Budget(TARGET, steps=10, least=0.1, update_steps=10, update_epochs=20)


@cache
def task(epochs: int = 10) -> Task:
    """ResNet-20 on 8 x 8 digits."""
    training = TrainingSettings(learning_rate=0.05, batch_size=32, epochs=epochs, momentum=0.9)
    return Task(ResNet(depth=20).table((1, 8, 8), 10), 1, training)


def uniform(most: float) -> float:
    """The accuracy with the largest uniform share that leaves at most a share of *most* of the FLOPs."""
    skeleton = task().skeleton
    for keep in np.arange(1.0, 0.0, -0.005):
        kept = [left_of(one.filters, float(keep)) for one in skeleton.convolutions]
        if skeleton.flops_share(kept) <= most:
            return task().accuracy(kept)
    raise AssertionError


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_after_forty_updates_its_mean_reward_beats_uniform_at_equal_flops(seed: int) -> None:
    """Of 50 exploring episodes, those that miss the target among them."""
    skeleton, generator = task().skeleton, np.random.default_rng(100 + seed)
    shapes = graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC) | head_shapes(len(skeleton.convolutions))
    parameters = drawn_agent(shapes, np.random.default_rng(seed)) | load(_pretrained())
    trained = [tensor for name, tensor in parameters.items() if name.split(".")[1] in HEADS]
    viewer = Viewer(skeleton, task().norms, TARGET, "sizes", generator)
    search = Search(Agent(skeleton, parameters), skeleton, viewer, WITHIN, task().accuracy, generator, trained)
    updates = 0
    while updates < UPDATES:
        search.explore()
        updates += not search._steps
    found = [search.explore() for _ in range(AFTER)]
    assert np.mean([one.reward for one in found]) > uniform(1 - TARGET) + 2
    assert np.mean([skeleton.flops_share(one.kept) for one in found]) <= 1 - TARGET


def test_the_graph_networks_that_come_with_fedsim_are_whole_and_finite() -> None:
    found = load(_pretrained())
    shapes = graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC)
    assert {name: tuple(tensor.shape) for name, tensor in found.items()} == shapes
    assert all(tensor.dtype == torch.float32 and bool(tensor.isfinite().all()) for tensor in found.values())


def test_a_few_episodes_make_graph_networks_anew_the_same_each_time() -> None:
    """The script in small: one pass over the digits, and 12 episodes, which are enough for two updates."""
    told: list[int] = []
    budget = Budget(BUDGET.target, BUDGET.steps, BUDGET.least, update_steps=10, update_epochs=2)
    once, again = (
        pretrain(task(1), episodes=12, seed=1, budget=budget, told=lambda number, _: told.append(number))
        for _ in range(2)
    )
    begun = drawn_agent(graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC), np.random.default_rng(1))
    assert once.keys() == again.keys() == begun.keys() and told == []
    assert all(tensor.equal(again[name]) for name, tensor in once.items())
    assert not any(tensor.equal(begun[name]) for name, tensor in once.items())
