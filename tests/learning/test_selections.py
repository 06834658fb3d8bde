"""Which filters are chosen, what they weigh on the wire, and what the server has of a client that sends only these."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from fedsim.errors import Misfit
from fedsim.learning.executors.selecting import decoded, pruned
from fedsim.learning.selections.at_random import Random
from fedsim.learning.selections.by_norm import L2Global, Uniform
from fedsim.learning.selections.gnn_ppo import AGENT, GnnPpo
from fedsim.learning.selections.selection import Asked, NoSelection, Selection, bytes_kept
from fedsim.models.convolutions import Skeleton, left_of, skeleton_of
from fedsim.models.leaf_cnn import LeafCnn
from fedsim.models.resnet import ResNet
from fedsim.models.table import EXTRACTOR, LayerTable
from fedsim.models.vgg import Vgg

TABLE = ResNet(depth=20).table((3, 32, 32), 10)
BONES = skeleton_of(TABLE)
CHOICES: dict[str, Selection] = {
    "none": NoSelection(),
    "uniform": Uniform(keep=0.6),
    "l2_global": L2Global(keep=0.6),
    "random": Random(keep=0.6),
    "gnn_ppo": GnnPpo(episodes=4, pretrained=False),
}
EVERY = pytest.mark.parametrize("name", CHOICES)


def weights_of(table: LayerTable = TABLE, seed: int = 1) -> dict[str, torch.Tensor]:
    drawn = torch.Generator().manual_seed(seed)
    return {name: torch.randn(shape, generator=drawn) for name, shape in table.state_shapes(EXTRACTOR).items()}


def asked(
    weights: dict[str, torch.Tensor] | None = None,
    *,
    skeleton: Skeleton = BONES,
    accuracy: Callable[[Any], float] = lambda masks: 50.0,
    **more: Any,
) -> Asked:
    given = {"state": {}, "learns": True, "seed": 1, "generator": np.random.default_rng(1)} | more
    return Asked(skeleton, weights or weights_of(), accuracy=accuracy, **given)


def data_of(*, regression: bool) -> Any:
    """What a selection looks at in a data set."""
    return SimpleNamespace(regression=regression)


# -- which ones --------------------------------------------------------------------------------------------------------


@EVERY
def test_each_convolution_keeps_one_filter_at_least_and_nothing_is_changed(name: str) -> None:
    weights = weights_of()
    before = {key: tensor.clone() for key, tensor in weights.items()}
    chosen = CHOICES[name].choose(asked(weights))
    assert [len(mask) for mask in chosen.masks] == [one.filters for one in BONES.convolutions]
    assert all(mask.any() for mask in chosen.masks)
    assert all(tensor.equal(before[key]) for key, tensor in weights.items())


@EVERY
def test_the_same_stream_gives_the_same_choice(name: str) -> None:
    once, again = (CHOICES[name].choose(asked()) for _ in range(2))
    assert all(np.array_equal(one, other) for one, other in zip(once.masks, again.masks, strict=True))
    assert once.facts == again.facts


@pytest.mark.parametrize(("keep", "left"), [(1.0, 64), (0.7, 45), (0.5, 32), (0.004, 1)])
def test_uniform_keeps_as_many_of_each_as_the_authors_pruning_leaves(keep: float, left: int) -> None:
    """torch's ln_structured drops round((1 - keep) C) of C: 0, 19, 32 and 64 of 64, of which one stays."""
    masks = Uniform(keep=keep).choose(asked()).masks
    assert int(masks[-1].sum()) == left == left_of(64, keep)
    assert all(int(mask.sum()) == left_of(len(mask), keep) for mask in masks)


def test_uniform_keeps_the_strongest_and_of_equal_ones_the_first() -> None:
    weights = weights_of()
    layer = weights["conv1.weight"] = torch.ones_like(weights["conv1.weight"])
    layer[3] *= 2.0
    layer[5] = -layer[5]  # as strong as the others
    layer[15] *= 0.5
    mask = Uniform(keep=0.3).choose(asked(weights)).masks[0]  # 16 - round(11.2)
    assert np.flatnonzero(mask).tolist() == [0, 1, 2, 3, 4]


def test_the_strongest_of_all_are_kept_wherever_they_are() -> None:
    weights = weights_of()
    for one in BONES.convolutions:
        weights[f"{one.name}.weight"] *= 1e-3
    weights["block9.body.conv2.weight"] *= 1e6
    masks = L2Global(keep=64 / 688).choose(asked(weights)).masks
    assert masks[-1].all() and [int(mask.sum()) for mask in masks[:-1]] == [1] * 18


def test_any_filters_are_drawn_anew_and_every_one_in_its_turn() -> None:
    rng = np.random.default_rng(3)
    drawn = [Random(keep=0.5).choose(asked(generator=rng)).masks for _ in range(40)]
    assert all(int(mask.sum()) == len(mask) // 2 for masks in drawn for mask in masks)
    assert all(np.any([masks[place] for masks in drawn], axis=0).all() for place in range(len(BONES.convolutions)))


# -- the agent --------------------------------------------------------------------------------------------------------


def test_the_agent_takes_what_its_best_episode_ended_with() -> None:
    tried: list[tuple[float, list[int]]] = []

    def accuracy(masks: list[np.ndarray]) -> float:
        tried.append((float(len(tried) * 7 % 5), [int(mask.sum()) for mask in masks]))
        return tried[-1][0]

    chosen = GnnPpo(episodes=12, pretrained=False).choose(asked(accuracy=accuracy))
    best = max(tried, key=lambda one: one[0])
    assert [int(mask.sum()) for mask in chosen.masks] == best[1] and chosen.facts["reward"] == best[0]
    assert chosen.facts["target_met"] == 1.0 and len(tried) <= 12
    assert 1 - BONES.flops_share(best[1]) >= 0.2


def test_the_agent_goes_on_with_what_it_has_learned() -> None:
    selection = GnnPpo(episodes=12, pretrained=False)
    first = selection.choose(asked())
    assert {name.split(".")[1] for name in first.state[AGENT]} == {"mlp1", "mlp2", "value"}
    new, again = (selection.choose(asked(state=state, learns=False)) for state in ({}, first.state))
    assert again.state[AGENT].keys() == first.state[AGENT].keys()
    assert all(tensor.equal(first.state[AGENT][name]) for name, tensor in again.state[AGENT].items())
    assert any(not tensor.equal(new.state[AGENT][name]) for name, tensor in again.state[AGENT].items())


def test_after_the_rounds_in_which_it_learns_an_agent_is_asked_once_and_nothing_is_rated() -> None:
    selection = GnnPpo(pretrained=False, finetune_rounds=3)
    assert [selection.learns_in(number) for number in (1, 3, 4)] == [True, True, False]
    assert [selection.rated(number, 128) for number in (1, 4)] == [30 * 128 * 0.8, 0.0]
    chosen = selection.choose(asked(learns=False, accuracy=lambda masks: pytest.fail("nothing is rated")))
    assert "reward" not in chosen.facts


@pytest.mark.parametrize("name", ["conv1.weight", "bn1.running_var"])
@pytest.mark.parametrize("learns", [False, True])
def test_a_model_that_has_diverged_is_sent_whole_and_teaches_an_agent_nothing(learns: bool, name: str) -> None:
    selection, begun = GnnPpo(episodes=2), asked(learns=False)
    weights = weights_of()
    weights[name][0] = torch.nan

    def accuracy(masks: list[np.ndarray]) -> float:
        raise AssertionError("nothing is rated")

    chosen = selection.choose(asked(weights=weights, learns=learns, accuracy=accuracy))
    assert all(mask.all() for mask in chosen.masks) and chosen.facts == {"target_met": 0.0}
    before = selection.choose(begun).state[AGENT]
    assert all(torch.equal(tensor, before[name]) for name, tensor in chosen.state[AGENT].items())


def test_all_of_an_agent_is_trained_if_asked() -> None:
    chosen = GnnPpo(episodes=12, pretrained=False, trains="all").choose(asked())
    assert len(chosen.state[AGENT]) == 8 + 8 + 6


def test_who_cannot_meet_the_target_says_so() -> None:
    chosen = GnnPpo(episodes=3, steps=1, update_steps=3, target=0.98, pretrained=False).choose(asked())
    assert chosen.facts["target_met"] == 0.0 and chosen.facts["mean_reward"] == -100.0


# -- what goes over the wire -------------------------------------------------------------------------------------------


@EVERY
def test_bytes_are_those_of_what_is_kept_counted_one_by_one(name: str) -> None:
    for table in (TABLE, LeafCnn().table(None, None), Vgg(head="narrow").table((3, 32, 32), 10)):
        skeleton, weights = skeleton_of(table), weights_of(table)
        masks = CHOICES[name].choose(asked(weights, skeleton=skeleton)).masks
        numbers = 0
        for one, mask in zip(skeleton.convolutions, masks, strict=True):
            for state, _ in one.states:
                numbers += sum(row.numel() for row, keep in zip(weights[state], mask, strict=True) if keep)
        kept = [int(mask.sum()) for mask in masks]
        assert bytes_kept(skeleton, table.bytes(EXTRACTOR), kept) == 4 * numbers + 4 * sum(kept)


def test_a_declared_size_is_that_of_the_filters_that_will_be_kept() -> None:
    for selection in (Uniform(keep=0.6), Random(keep=0.6), NoSelection()):
        kept = [int(mask.sum()) for mask in selection.choose(asked()).masks]
        assert [selection.keeps(one.filters) for one in BONES.convolutions] == kept and not selection.reads_learning
    for selection in (L2Global(keep=0.6), GnnPpo()):
        assert selection.reads_learning
        declared = selection.model_copy(update={"declared_keep": 0.5})
        assert not declared.reads_learning and [declared.keeps(number) for number in (16, 32)] == [8, 16]


@EVERY
def test_all_that_a_kept_filter_has_goes_along_and_of_others_the_servers_stays(name: str) -> None:
    sent, received = weights_of(seed=1), weights_of(seed=2)
    masks = CHOICES[name].choose(asked(sent)).masks
    made = decoded(sent, received, BONES, masks)
    assert made.keys() == sent.keys()
    for one, mask in zip(BONES.convolutions, masks, strict=True):
        assert len(one.states) == 5  # weight; scale, offset, mean and variance of the normalisation
        for state, _ in one.states:
            for place, keep in enumerate(mask):
                assert made[state][place].equal((sent if keep else received)[state][place])


def test_what_no_convolution_has_is_sent_in_full() -> None:
    sent, received = ({"other.weight": torch.full((2,), value)} | weights_of() for value in (1.0, 2.0))
    masks = Uniform(keep=0.1).choose(asked()).masks
    assert decoded(sent, received, BONES, masks)["other.weight"].tolist() == [1.0, 1.0]
    assert pruned(sent, BONES, masks)["other.weight"].tolist() == [1.0, 1.0]


def test_numbers_to_predict_have_no_accuracy() -> None:
    with pytest.raises(Misfit, match="numbers to predict"):
        GnnPpo().check(BONES, data_of(regression=True))
    GnnPpo(finetune_rounds=0).check(BONES, data_of(regression=True))


def test_a_target_out_of_reach_is_refused() -> None:
    GnnPpo(target=0.98).check(BONES, data_of(regression=False))
    for keys in ({"target": 0.99}, {"target": 0.8, "least_keep": 0.5}, {"least_keep": 1.0}):
        with pytest.raises(Misfit, match="can be left out; write less, or a smaller least_keep"):
            GnnPpo(**keys).check(BONES, data_of(regression=False))


def test_an_agent_that_may_never_learn_is_refused() -> None:
    for keys in ({"episodes": 9}, {"update_steps": 31}):
        with pytest.raises(Misfit, match="episodes of one action each, so that an agent may never learn"):
            GnnPpo(**keys).check(BONES, data_of(regression=False))
    for keys in ({"episodes": 10}, {"episodes": 9, "update_steps": 9}, {"episodes": 1, "finetune_rounds": 0}):
        GnnPpo(**keys).check(BONES, data_of(regression=False))
