"""Changes of models: written piece by piece, to the bits of one operation after the other."""

from __future__ import annotations

import pytest
import torch

from fedsim.learning.executors.summing import PIECE, Summing, changed, write_change


@pytest.mark.parametrize("based", [True, False])
@pytest.mark.parametrize("size", [0, 1, PIECE, PIECE + 1, 3 * PIECE - 1])
def test_pieces_make_the_bits_of_the_whole(size: int, based: bool) -> None:
    draw = torch.Generator().manual_seed(size)
    tensor, base = torch.randn(2, size, generator=draw)
    expected = (tensor - base) * 0.3 if based else tensor * 0.3
    out = torch.full_like(tensor, torch.nan)
    write_change(out, tensor, base if based else None, 0.3)
    assert torch.equal(out, expected)


def test_it_does_not_matter_how_numbers_lie() -> None:
    shape = (64, 48, 6, 6)
    tensor, base = torch.randn(2, *shape, generator=torch.Generator().manual_seed(1))
    found = changed(
        {"weight": tensor.contiguous(memory_format=torch.channels_last)},
        {"weight": base},
        0.7,
    )
    assert torch.equal(found["weight"], (tensor - base) * 0.7)
    assert found["weight"].is_contiguous()


def test_changes_are_added_as_they_are_and_models_are_weighed() -> None:
    base = {"classifier": {"w": torch.tensor([1.0, 2.0])}}
    models = [{"classifier": {"w": torch.tensor([3.0, 5.0])}}, {"classifier": {"w": torch.tensor([-1.0, 0.5])}}]
    apart, together = (Summing(base, (0.25, 0.75), ("classifier",)) for _ in range(2))
    for model, weight in zip(models, (0.25, 0.75), strict=True):
        together.add(model)
        apart.add({"classifier": changed(model["classifier"], base["classifier"], weight)}, {"classifier"})
    assert torch.equal(apart.result()["classifier"]["w"], together.result()["classifier"]["w"])
    assert torch.equal(together.result()["classifier"]["w"], torch.tensor([-1.0, -0.375]))
    assert torch.equal(models[0]["classifier"]["w"], torch.tensor([3.0, 5.0])), "they are not written over"
