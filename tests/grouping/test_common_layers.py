"""Common layers: the trie is the recursion of FlexiFed's algorithms, and the published families have what they have."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiers import drawn

from fedsim.grouping.common_layers import RULES, averaged_with, partners
from fedsim.models.char_cnn import CharCnn
from fedsim.models.resnet import ResNet
from fedsim.models.settings import ModelSettings
from fedsim.models.signatures import Signatures, common_start, signatures
from fedsim.models.vdcnn import Vdcnn
from fedsim.models.vgg import Vgg

Whom = list[list[set[int]]]


def by_recursion(strategy: str, models: Sequence[Signatures]) -> Whom:
    """Algorithms 1, 2 and 3 as the paper has them: what is common to all, then group by group."""
    whom: Whom = [[{client} for _ in model] for client, model in enumerate(models)]

    def basic_common(clients: list[int], begin: int) -> int:
        at = begin
        while all(at < len(models[one]) and models[one][at] == models[clients[0]][at] for one in clients):
            for one in clients:
                whom[one][at] = set(clients)
            at += 1
        return at

    def max_common(clients: list[int], begin: int) -> None:
        end = basic_common(clients, begin)
        remaining = [one for one in clients if len(models[one]) > end]
        for layer in {models[one][end] for one in remaining}:
            group = [one for one in remaining if models[one][end] == layer]
            if len(group) > 1:
                max_common(group, end)

    everybody = list(range(len(models)))
    if strategy == "max":
        max_common(everybody, 0)
    elif strategy in ("basic", "clustered"):
        end = basic_common(everybody, 0)
        for model in set(models) if strategy == "clustered" else ():
            basic_common([one for one in everybody if models[one] == model], end)
    elif strategy == "identical":
        for model in set(models):
            basic_common([one for one in everybody if models[one] == model], 0)
    return whom


layers = st.sampled_from("abc")
models = st.lists(st.lists(layers, min_size=1, max_size=6).map(tuple), min_size=1, max_size=8)


@drawn(2_000)
@given(models=models)
def test_the_trie_is_the_recursion(models: Sequence[Signatures]) -> None:
    for strategy, rule in RULES.items():
        found = averaged_with(rule, models)
        assert [[set(some) for some in own] for own in found] == by_recursion(strategy, models)


@given(models=models)
def test_who_is_averaged_with_me_has_me_too(models: Sequence[Signatures]) -> None:
    for rule in RULES.values():
        found = averaged_with(rule, models)
        for client, own in enumerate(found):
            assert len(own) == len(models[client])
            for at, some in enumerate(own):
                assert client in some and list(some) == sorted(some)
                assert all(found[one][at] == some for one in some)


def of(kind: ModelSettings) -> Signatures:
    return signatures(kind.table(None, None))


VGGS = [of(Vgg(depth=depth)) for depth in (11, 13, 16, 19)]
RESNETS = [of(ResNet(depth=depth, shortcut="projection")) for depth in (20, 32, 44, 56)]


@pytest.mark.parametrize(
    ("family", "counts"),
    [
        (VGGS, {(0, 1): 1, (0, 2): 1, (0, 3): 1, (1, 2): 6, (1, 3): 6, (2, 3): 7}),
        (RESNETS, {(0, 1): 7, (0, 3): 7, (1, 2): 11, (1, 3): 11, (2, 3): 15}),
        (
            [of(CharCnn(depth=depth)) for depth in (3, 4, 5, 6)],
            {(0, 1): 2, (0, 2): 2, (0, 3): 2, (1, 2): 3, (1, 3): 3, (2, 3): 4},
        ),
    ],
    ids=["vgg", "resnet", "char_cnn"],
)
def test_published_families_have_so_many_layers_in_common(
    family: Sequence[Signatures], counts: dict[tuple[int, int], int]
) -> None:
    assert {pair: common_start([family[one] for one in pair]) for pair in counts} == counts


def test_vdcnns_have_their_stem_and_first_blocks_in_common() -> None:
    """Behind the embedding and the first convolution, blocks of two convolutions each."""
    nine, seventeen, twenty_nine, forty_nine = (of(Vdcnn(depth=depth)) for depth in (9, 17, 29, 49))
    assert common_start([nine, seventeen]) == common_start([nine, forty_nine]) == 2 + 2
    assert common_start([seventeen, twenty_nine]) == common_start([seventeen, forty_nine]) == 2 + 2 * 2
    assert common_start([twenty_nine, forty_nine]) == 2 + 2 * 5


def test_four_vggs_one_each() -> None:
    """By hand: layer 1 over all, 2 to 6 over three, 7 over two, and the rest is everybody's own."""
    most = averaged_with(RULES["max"], VGGS)
    assert most[0] == [(0, 1, 2, 3)] + [(0,)] * 10
    assert most[1] == [(0, 1, 2, 3)] + [(1, 2, 3)] * 5 + [(1,)] * 7
    assert most[2] == [(0, 1, 2, 3)] + [(1, 2, 3)] * 5 + [(2, 3)] + [(2,)] * 9
    assert most[3] == [(0, 1, 2, 3)] + [(1, 2, 3)] * 5 + [(2, 3)] + [(3,)] * 12
    for strategy in ("basic", "clustered"):
        for client, own in enumerate(averaged_with(RULES[strategy], VGGS)):
            assert own == [(0, 1, 2, 3)] + [(client,)] * (len(VGGS[client]) - 1)


def test_four_vggs_in_pairs() -> None:
    """Clustered adds everything behind within pairs, max the pairs' own layers too."""
    pairs = [one for one in VGGS for _ in range(2)]
    clustered, most = (averaged_with(RULES[strategy], pairs) for strategy in ("clustered", "max"))
    for client, model in enumerate(pairs):
        pair = (client // 2 * 2, client // 2 * 2 + 1)
        assert clustered[client] == [tuple(range(8))] + [pair] * (len(model) - 1)
    assert most[4] == [tuple(range(8))] + [tuple(range(2, 8))] * 5 + [tuple(range(4, 8))] + [(4, 5)] * 9
    assert averaged_with(RULES["identical"], pairs)[4] == [(4, 5)] * 16


def test_equal_layers_behind_a_difference_are_not_common() -> None:
    """The last convolution of CharCNN-3 has the shape of CharCNN-4's third, and stands behind no pooling."""
    models: list[Signatures] = [("a", "b", "c"), ("a", "x", "c")]
    assert averaged_with(RULES["max"], models) == [[(0, 1), (0,), (0,)], [(0, 1), (1,), (1,)]]
    assert averaged_with(RULES["max"], []) == []


def test_a_model_that_is_the_beginning_of_another_one() -> None:
    models: list[Signatures] = [("a", "b"), ("a", "b", "c")]
    assert averaged_with(RULES["max"], models) == [[(0, 1)] * 2, [(0, 1), (0, 1), (1,)]]
    assert partners(RULES["nobody"], models) == {model: (frozenset(),) * len(model) for model in models}
