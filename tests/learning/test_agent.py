"""SPATL's agent: its sizes, its graphs against their definition, and one step of PPO worked out by hand."""

from __future__ import annotations

import math
from math import prod

import networkx as nx
import numpy as np
import pytest
import torch

from fedsim.learning.agent.network import (
    ACTOR,
    CRITIC,
    Agent,
    Tensors,
    drawn_agent,
    graph_network_shapes,
    head_shapes,
)
from fedsim.learning.agent.ppo import Adam, Step, entropy, log_probability, loss, normalised_returns
from fedsim.learning.agent.search import MISSED, Budget, Search
from fedsim.learning.agent.state import FEATURES, NodeFeatures, State, Viewer, stacked
from fedsim.learning.selections.gnn_ppo import HEADS
from fedsim.models.convolutions import SAMPLES, Skeleton, left_of, skeleton_of
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.resnet import ResNet
from fedsim.models.vgg import Vgg

RESNET = skeleton_of(ResNet(depth=20).table((3, 32, 32), 10))
SMALL = skeleton_of(LeafCnn().table(None, None))
MODELS = {
    "resnet": RESNET,
    "projected": skeleton_of(ResNet(depth=20, shortcut="projection").table((3, 16, 16), 10)),
    "vgg": skeleton_of(Vgg(head="narrow").table((3, 32, 32), 10)),
    "leaf_cnn": SMALL,
}


def numbers(shapes: dict[str, tuple[int, ...]]) -> int:
    return sum(map(prod, shapes.values()))


def agent_for(skeleton: Skeleton, seed: int = 1) -> Agent:
    shapes = graph_network_shapes(ACTOR) | graph_network_shapes(CRITIC) | head_shapes(len(skeleton.convolutions))
    return Agent(skeleton, drawn_agent(shapes, np.random.default_rng(seed)))


def viewer_for(skeleton: Skeleton, node_features: NodeFeatures = "sizes", target: float = 0.2) -> Viewer:
    norms = [np.linspace(1.0, 2.0, one.filters) for one in skeleton.convolutions]
    return Viewer(skeleton, norms, target, node_features, np.random.default_rng(2))


def everything(skeleton: Skeleton) -> list[int]:
    return [one.filters for one in skeleton.convolutions]


# -- sizes -------------------------------------------------------------------------------------------------------------


def test_the_graph_network_and_the_actors_layers_have_as_many_parameters_as_in_the_paper() -> None:
    """22.7 KB, where the paper says 26; for the 19 convolutions of ResNet-20."""
    head = {name: shape for name, shape in head_shapes(19).items() if name.startswith("actor")}
    assert numbers(graph_network_shapes(ACTOR)) == numbers(graph_network_shapes(CRITIC)) == 5_670
    assert numbers(head) == 14_019
    assert numbers(graph_network_shapes(ACTOR)) + numbers(head) == 19_689
    assert len(RESNET.convolutions) == 19


# -- graphs ------------------------------------------------------------------------------------------------------------


def convolved(graph: nx.DiGraph, x: dict[object, torch.Tensor], gates: dict[tuple[object, object], torch.Tensor]):
    """A graph convolution by its definition (Kipf and Welling, Eq. 2), before its weights: with loops, along edges."""
    with_loops = graph.copy()
    with_loops.add_edges_from((node, node) for node in graph)
    degree = {node: with_loops.in_degree(node) for node in graph}
    return {
        node: sum(
            x[other] * gates.get((other, node), torch.ones(FEATURES)) / math.sqrt(degree[other] * degree[node])
            for other in with_loops.predecessors(node)
        )
        for node in graph
    }


def layer(agent: Agent, name: str, x: torch.Tensor) -> torch.Tensor:
    return torch.tanh(agent.parameters[f"{name}.weight"] @ x + agent.parameters[f"{name}.bias"])


def embedded_by_definition(agent: Agent, skeleton: Skeleton, state: State) -> torch.Tensor:
    """One node after the other, on graphs of networkx."""
    gates: dict[tuple[object, object], torch.Tensor] = {}
    names = [SAMPLES, *(one.name for one in skeleton.convolutions)]
    for place, one in enumerate(skeleton.convolutions):
        graph, x = nx.DiGraph(), {"source": state.sources[place], "sink": state.sinks[place]}
        alike = [int(number) for number in state.alike[place]]
        channels = [at for at, number in enumerate(alike) for _ in range(number)]
        for channel, at in enumerate(channels):
            nx.add_path(graph, ["source", ("in", channel), ("out", channel), "sink"])
            x |= {("in", channel): state.channels[place, at], ("out", channel): state.outputs[place, at]}
        made = convolved(graph, x, {})
        pooled = torch.stack([layer(agent, "actor.channels", each) for each in made.values()]).mean(dim=0)
        source = SAMPLES if one.source is None else skeleton.convolutions[one.source].name
        gates[source, one.name] = layer(agent, "actor.embedding", pooled)
    maps = convolved(skeleton.graph(), dict(zip(names, state.maps, strict=True)), gates)
    mean = torch.stack([layer(agent, "actor.maps", each) for each in maps.values()]).mean(dim=0)
    return layer(agent, "actor.graph", mean)


@pytest.mark.parametrize("node_features", ["sizes", "random"])
@pytest.mark.parametrize("model", ["leaf_cnn", "resnet"])
def test_a_model_is_embedded_as_the_graphs_of_networkx_say(model: str, node_features: NodeFeatures) -> None:
    skeleton = MODELS[model]
    agent, viewer = agent_for(skeleton), viewer_for(skeleton, node_features)
    kept = [max(number // (2 + place % 3), 1) for place, number in enumerate(everything(skeleton))]
    state = viewer.state(kept, 0.4)
    assert agent.embedded(ACTOR, state) == pytest.approx(embedded_by_definition(agent, skeleton, state), abs=1e-5)


@pytest.mark.parametrize("model", MODELS)
def test_states_together_are_embedded_as_each_alone(model: str) -> None:
    skeleton = MODELS[model]
    agent, viewer = agent_for(skeleton), viewer_for(skeleton)
    states = [viewer.state([max(number // some, 1) for number in everything(skeleton)], 1 / some) for some in (1, 2, 3)]
    together = agent.embedded(CRITIC, stacked(states))
    assert together.shape == (3, 50)
    for one, state in zip(together, states, strict=True):
        assert one == pytest.approx(agent.embedded(CRITIC, state), abs=1e-6)
    assert agent.means(together).shape == (3, len(skeleton.convolutions)) and agent.values(together).shape == (3,)


def test_sizes_say_what_is_kept_and_random_numbers_do_not() -> None:
    viewer = viewer_for(RESNET)
    whole, half = (viewer.state([number // some for number in everything(RESNET)], 1 / some) for some in (1, 2))
    assert all(not one.equal(other) for one, other in zip(whole[:4], half[:4], strict=True))
    assert viewer.state(everything(RESNET), 1.0).maps.equal(whole.maps)
    noise = viewer_for(RESNET, "random")
    assert not noise.state(everything(RESNET), 1.0).maps.equal(noise.state(everything(RESNET), 1.0).maps)
    assert noise.state(everything(RESNET), 1.0).alike.sum(dim=1).tolist() == [3.0, *everything(RESNET)[:-1]]


# -- PPO ---------------------------------------------------------------------------------------------------------------

MEANS_BEFORE, MEANS, ACTIONS = (0.0, 0.2, 0.0), (0.1, 0.0, 0.5), (0.5, -0.3, 0.0)
VALUES = (0.2, -0.1, 0.3)
"""An episode of three steps on one convolution, by the policy that took them and by that of now, and what the critic
expects.

    returns           60 = 60, 0.99 x 60 = 59.4, 0.99^2 x 60 = 58.806; mean 59.402, deviation 0.597 (of 2 degrees)
                      normalised: -0.998, -0.003, 1.002
    log probability   -(a - m)^2 / 0.5 - ln(0.5 sqrt(2 pi)) = ... - 0.2258
                      before: -0.7258, -0.7258, -0.2258; now: -0.5458, -0.4058, -0.7258
    ratios            e^0.18 = 1.197, e^0.32 = 1.377, e^-0.5 = 0.607
    advantages R - V  -1.198, 0.097, 0.702
    gained            min(1.197 x -1.198, 1.197 x -1.198) = -1.435
                      min(1.377 x 0.097, 1.2 x 0.097) = 0.116
                      min(0.607 x 0.702, 0.8 x 0.702) = 0.426
    0.5 (V - R)^2     0.718, 0.005, 0.246
    entropy           0.5 + 0.2258 = 0.7258
    loss              (1.435 + 0.718 - 0.116 + 0.005 - 0.426 + 0.246) / 3 - 0.01 x 0.7258 = 0.613
"""


def steps(*rewards: float) -> list[Step]:
    return [
        Step(torch.zeros(1), torch.zeros(()), reward, place == len(rewards)) for place, reward in enumerate(rewards, 1)
    ]


def column(values: tuple[float, ...]) -> torch.Tensor:
    return torch.tensor(values)[:, None]


def test_returns_are_discounted_and_normalised() -> None:
    assert normalised_returns(steps(0.0, 0.0, 60.0)).tolist() == pytest.approx([-0.998, -0.003, 1.002], abs=5e-4)


def test_no_return_goes_over_the_end_of_an_episode() -> None:
    both = normalised_returns([*steps(0.0, 50.0), *steps(MISSED)])
    by_hand = torch.tensor([49.5, 50.0, -100.0])
    assert both == pytest.approx((by_hand - by_hand.mean()) / by_hand.std(), abs=1e-6)


def test_probabilities_and_entropy_of_the_policy() -> None:
    before = log_probability(column(ACTIONS), column(MEANS_BEFORE))
    now = log_probability(column(ACTIONS), column(MEANS))
    assert before.tolist() == pytest.approx([-0.7258, -0.7258, -0.2258], abs=5e-5)
    assert now.tolist() == pytest.approx([-0.5458, -0.4058, -0.7258], abs=5e-5)
    assert (now - before).exp().tolist() == pytest.approx([1.197, 1.377, 0.607], abs=5e-4)
    normal = torch.distributions.Normal(torch.zeros(7), 0.5)
    assert entropy(7) == pytest.approx(float(normal.entropy().sum()), abs=1e-5)
    some = torch.linspace(-1, 1, 7)
    assert float(log_probability(some, torch.zeros(7))) == pytest.approx(float(normal.log_prob(some).sum()), abs=1e-5)


def test_the_loss_of_a_step_by_hand() -> None:
    before = log_probability(column(ACTIONS), column(MEANS_BEFORE))
    now = log_probability(column(ACTIONS), column(MEANS))
    returns = normalised_returns(steps(0.0, 0.0, 60.0))
    made = loss(now, before, torch.tensor(VALUES), returns, entropy(1))
    assert float(made) == pytest.approx(0.613, abs=5e-4)


def test_a_ratio_beyond_the_clip_pulls_no_more() -> None:
    """Steps two and three are clipped: of the second, the probability has grown enough; not of the third."""
    means = column(MEANS).requires_grad_(True)
    before = log_probability(column(ACTIONS), column(MEANS_BEFORE))
    returns = normalised_returns(steps(0.0, 0.0, 60.0))
    now = log_probability(column(ACTIONS), means)
    loss(now, before, torch.tensor(VALUES), returns, entropy(1)).backward()
    assert means.grad is not None
    assert (means.grad.squeeze(1) != 0).tolist() == [True, False, True]


def test_the_critic_is_not_moved_by_what_the_actor_gains() -> None:
    values = torch.tensor(VALUES, requires_grad=True)
    returns, nothing = normalised_returns(steps(0.0, 0.0, 60.0)), torch.zeros(3)
    loss(nothing, nothing, values, returns, 0.0).backward()
    assert values.grad is not None
    assert values.grad.tolist() == pytest.approx(((values.detach() - returns) / 3).tolist(), abs=1e-6)


def test_adam_steps_by_its_paper() -> None:
    """Kingma and Ba (ICLR 2015, algorithm 1), on the sum of squares; torch's own class would load its compiler."""
    given = torch.tensor([1.0, -2.0])
    adam, by_hand, mean, square = Adam([given]), np.array([1.0, -2.0]), np.zeros(2), np.zeros(2)
    for step in range(1, 6):
        adam.minimise(lambda: (given**2).sum())
        mean, square = 0.9 * mean + 0.1 * 2 * by_hand, 0.999 * square + 0.001 * (2 * by_hand) ** 2
        by_hand -= 3e-4 * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
    assert given.tolist() == pytest.approx(by_hand.tolist(), abs=1e-6) and not given.requires_grad


# -- search ------------------------------------------------------------------------------------------------------------


def search_for(
    skeleton: Skeleton, reward, *, target: float = 0.2, most: int = 10, graphs_too: bool = False, seed: int = 1
):
    agent = agent_for(skeleton, seed)
    trained: Tensors = {
        name: one for name, one in agent.parameters.items() if graphs_too or name.split(".")[1] in HEADS
    }
    budget = Budget(target, steps=most, least=0.1, update_steps=10, update_epochs=20)
    generator = np.random.default_rng(seed)
    viewer = viewer_for(skeleton, target=target)
    return Search(agent, skeleton, viewer, budget, reward, generator, list(trained.values()), graphs_too=graphs_too)


def test_an_episode_ends_when_enough_is_left_out_and_is_rewarded_only_then() -> None:
    asked = []

    def reward(kept: list[int]) -> float:
        asked.append(kept)
        return 50.0

    search = search_for(RESNET, reward)
    found = [search.explore() for _ in range(20)]
    met = [one for one in found if one.met]
    assert met and [one.kept for one in met] == asked and all(one.reward == 50.0 for one in met)
    assert all(1 - RESNET.flops_share(one.kept) >= 0.2 for one in met)
    assert all(one.reward == MISSED for one in found if not one.met)


def test_what_is_not_met_in_the_last_step_is_missed() -> None:
    search = search_for(RESNET, lambda kept: 50.0, target=0.98, most=2)
    found = [search.explore() for _ in range(3)]
    assert not any(one.met for one in found) and {one.reward for one in found} == {MISSED}


def test_every_convolution_keeps_a_tenth_at_least() -> None:
    search = search_for(RESNET, lambda kept: 50.0, target=0.985, most=50)
    found = search.explore()
    assert all(
        number >= max(round(0.1 * one.filters), 1) for number, one in zip(found.kept, RESNET.convolutions, strict=True)
    )


def test_looking_learns_and_draws_nothing() -> None:
    search = search_for(RESNET, lambda kept: pytest.fail("nothing is rated"))
    before = {name: tensor.clone() for name, tensor in search.agent.parameters.items()}
    assert search.look() == search.look()
    assert all(tensor.equal(before[name]) for name, tensor in search.agent.parameters.items())


@pytest.mark.parametrize("graphs_too", [False, True])
def test_it_learns_from_whole_episodes_what_it_is_told_to_learn(graphs_too: bool) -> None:
    search = search_for(SMALL, lambda kept: float(kept[0]), graphs_too=graphs_too)
    before = {name: tensor.clone() for name, tensor in search.agent.parameters.items()}
    while not search._adam:
        assert len(search._steps) < 10
        search.explore()
    assert not search._steps
    moved = {name for name, tensor in search.agent.parameters.items() if not tensor.equal(before[name])}
    heads = {name for name in before if name.split(".")[1] in HEADS}
    assert moved == (set(before) if graphs_too else heads)


def test_it_learns_which_convolutions_matter() -> None:
    """Only the filters of the first stage are worth anything: more of them are kept after some updates."""
    search = search_for(RESNET, lambda kept: 100.0 * sum(kept[:7]) / (7 * 16), target=0.4)
    rewards = [search.explore().reward for _ in range(300)]
    assert np.mean(rewards[-60:]) > np.mean(rewards[:60]) + 10


def test_what_is_left_out_adds_up_over_the_steps_of_an_episode() -> None:
    """Every mean action is a twentieth: shares are 0.95, 0.95^2 and 0.95^3, and the last is enough."""
    search = search_for(RESNET, lambda kept: 50.0)
    search.agent.parameters["actor.mlp2.weight"].zero_()
    search.agent.parameters["actor.mlp2.bias"].fill_(math.atanh(0.05))
    shares = [0.95**step for step in (1, 2, 3)]
    left = [[left_of(one.filters, share) for one in RESNET.convolutions] for share in shares]
    assert [RESNET.flops_share(kept) <= 0.8 for kept in left] == [False, False, True]
    assert search.look().kept == left[-1]
