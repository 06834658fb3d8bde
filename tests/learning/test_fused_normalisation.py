"""Normalisation with what comes behind it in machine code: as near to float64 as PyTorch's own modules in float32.

Of outputs, all gradients and running statistics, each error is at most 1.5 times PyTorch's in the median over shapes
and seeds, and that of all of a case together nowhere more than 3 times. Where an output is nearly zero or two that are
pooled are nearly equal, rounding decides whom a gradient goes to; there it is zero.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import pytest
import torch
from layer_errors import Sides, broken, draw, numbers, seeded
from tiers import FULL
from torch import nn

from fedsim.learning.executors.fused.normalised import FusedNormalisation

CHANNELS = (16, 32, 48, 64, 128, 512) if FULL else (16, 48, 64)
GROUPS = {16: (2, 4, 16), 32: (2, 1), 48: (3, 6), 64: (2, 1), 128: (2, 8), 512: (2,)}
"""Of 8 channels and of fewer, which share a vector, of 16, and of several vectors."""
BEHIND = {"nothing": (False, False, False), "rectified": (False, True, False), "pooled": (False, True, True)} | {
    "added": (True, False, False),
    "added and rectified": (True, True, False),
}
IMAGES = ((1, 3, 3), (3, 5, 7), (40, 1, 1), (1, 1, 2), (9, 16, 16))
SERIES = ((1, 9), (3, 2), (7, 17), (2, 130), (20, 33))
"""Odd lengths leave a row that fills no pair."""
BATCH = {2: nn.BatchNorm1d, 3: nn.BatchNorm2d}
NEAR = 1e-3
"""Of what rounding decides."""


class Own(nn.Module):
    """A normalisation, a sum, a rectifier and pooling by two, by PyTorch."""

    def __init__(self, norm: nn.Module, rectified: bool, pooled: bool) -> None:
        super().__init__()
        self.norm, self.rectified, self.pooled = norm, rectified, pooled

    def normalised(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        y = self.norm(x)
        return y if other is None else y + other

    def forward(self, x: torch.Tensor, other: torch.Tensor | None = None) -> torch.Tensor:
        y = self.normalised(x, other)
        y = y.relu() if self.rectified else y
        return nn.functional.max_pool1d(y, 2) if self.pooled else y


@dataclass(frozen=True)
class Case:
    """Groups (None: batch normalisation), what is behind, and samples: (number, length) or (number, height, width)."""

    channels: int
    groups: int | None
    behind: str
    samples: tuple[int, ...]
    mean: float = 0.0
    deviation: float = 1.0
    seed: int = 0

    def sides(self) -> Sides:
        added, rectified, pooled = BEHIND[self.behind]
        norm = self.norm()
        behind = [*[nn.ReLU()] * rectified, *[nn.MaxPool1d(2)] * pooled]
        fused = FusedNormalisation.of(copy.deepcopy(norm), behind, added=added)
        assert fused is not None
        assert (fused.about.rectified, fused.about.pooled) == (rectified, pooled)
        return Sides(Own(norm, rectified, pooled), fused)

    def norm(self) -> nn.Module:
        """Its running statistics are of the size of values."""
        generator, channels = seeded(self.seed), self.channels
        own: nn.Module = nn.GroupNorm(self.groups, channels) if self.groups else BATCH[len(self.samples)](channels)
        with torch.no_grad():
            own.weight.copy_(draw(generator, channels, mean=1, deviation=0.3))
            own.bias.copy_(draw(generator, channels, deviation=0.3))
            if self.groups is None:
                own.running_mean.copy_(draw(generator, channels, mean=self.mean, deviation=self.deviation))
                own.running_var.copy_(draw(generator, channels, deviation=self.deviation).square())
                own.num_batches_tracked = None
        return own

    def inputs(self) -> list[torch.Tensor]:
        generator, (number, *places) = seeded(self.seed + 1), self.samples
        x = draw(generator, number, self.channels, *places, mean=self.mean, deviation=self.deviation)
        other = [draw(generator, number, self.channels, *places)] if BEHIND[self.behind][0] else []
        return [one.requires_grad_() for one in (x, *other)]

    def gradient(self, sides: Sides) -> torch.Tensor:
        """Of the output."""
        exact = copy.deepcopy(sides.pytorchs).double()
        assert isinstance(exact, Own)
        y, clear = exact.normalised(*(one.detach().double() for one in self.inputs())), None
        if exact.pooled:
            pairs = y[:, :, : y.shape[2] // 2 * 2].unflatten(2, (-1, 2))
            clear, y = (pairs[..., 0] - pairs[..., 1]).abs() > NEAR, pairs.amax(dim=3)
        d = draw(seeded(self.seed + 2), *y.shape)
        d = torch.where(y.abs() > NEAR, d, 0) if exact.rectified else d
        return d if clear is None else torch.where(clear, d, 0)


def cases(by_batch: bool, **options: float) -> Iterator[Case]:
    """Of every kind of what is behind, of many shapes."""
    for seed, (channels, behind) in enumerate(product(CHANNELS, BEHIND)):
        for groups in (None,) if by_batch else GROUPS[channels]:
            for samples in SERIES if behind == "pooled" else IMAGES:
                if groups != channels or samples[1:] != (1, 1):  # one value is normalised to 0
                    yield Case(channels, groups, behind, samples, seed=seed, **options)


@pytest.mark.drawn
@pytest.mark.parametrize("options", [{}, {"mean": 50.0, "deviation": 3.0}, {"deviation": 1e6}, {"deviation": 1e-2}])
@pytest.mark.parametrize("by_batch", [True, False], ids=["batch", "group"])
def test_errors_are_pytorchs(by_batch: bool, options: dict[str, float]) -> None:
    ratios = []
    for case in cases(by_batch, **options):
        sides = case.sides()
        ratios.append(sides.ratios(case.inputs(), case.gradient(sides)))
    assert broken(ratios) == {}


@pytest.mark.drawn
@pytest.mark.parametrize("by_batch", [True, False], ids=["batch", "group"])
def test_errors_are_pytorchs_where_values_lie_in_bfloat16(by_batch: bool) -> None:
    ratios = []
    for case in cases(by_batch):
        if case.behind != "pooled" or FULL:
            sides = case.sides()
            ratios.append(sides.ratios(case.inputs(), case.gradient(sides), torch.bfloat16))
    assert broken(ratios) == {}


@pytest.mark.parametrize("groups", [None, 2])
def test_whole_numbers_are_added_up_exactly(groups: int | None) -> None:
    """Sums of a few thousand whole numbers and of their squares: statistics and gradients of offsets have no error."""
    case = Case(32, groups, "nothing", (7, 13, 17))
    sides, generator = case.sides(), seeded(4)
    x, d = (torch.randint(-8, 9, (7, 32, 13, 17), generator=generator).float() for _ in range(2))
    theirs, mine = sides.numbers([x.requires_grad_()], d)
    assert torch.equal(mine["d_bias"], d.sum(dim=(0, 2, 3)))
    if groups is None:
        mean, variance = x.double().mean(dim=(0, 2, 3)), x.double().var(dim=(0, 2, 3))
        norm = case.norm()
        torch.testing.assert_close(mine["running_mean"].double(), 0.9 * norm.running_mean.double() + 0.1 * mean)
        torch.testing.assert_close(mine["running_var"].double(), 0.9 * norm.running_var.double() + 0.1 * variance)
        torch.testing.assert_close(mine["running_var"], theirs["running_var"], rtol=3e-7, atol=0)


@pytest.mark.parametrize("behind", BEHIND)
@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_is_no_number_goes_on(behind: str, groups: int | None, bad: float) -> None:
    """Whatever PyTorch makes not a number of it, in outputs, gradients and statistics, is no finite number here."""
    case = Case(32, groups, behind, (3, 9) if behind == "pooled" else (3, 3, 3))
    inputs = case.inputs()
    for place in range(len(inputs) + 1):
        sides = case.sides()
        given, d = [one.detach().clone() for one in inputs], case.gradient(sides).contiguous()
        (*given, d)[place].view(3, 32, -1)[1, 5, 3] = bad
        theirs, mine = sides.numbers([one.requires_grad_() for one in given], d)
        for name, one in theirs.items():
            assert not mine[name][one.isnan()].isfinite().any(), name
            assert mine[name][one.isfinite()].isfinite().all(), name


def test_of_equal_values_the_first_one_gets_the_gradient() -> None:
    case = Case(16, None, "pooled", (2, 6))
    sides, x = case.sides(), torch.arange(3.0).repeat_interleave(2).expand(2, 16, 6).contiguous()
    theirs, mine = sides.numbers([x.requires_grad_()], torch.ones(2, 16, 3))
    assert theirs["d_input0"].abs().max() > 1e-3
    torch.testing.assert_close(mine["d_input0"], theirs["d_input0"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("behind", ["rectified", "pooled", "added and rectified"])
@pytest.mark.parametrize("groups", [None, 2])
def test_tests_use_running_statistics_and_leave_them(behind: str, groups: int | None) -> None:
    case = Case(32, groups, behind, (3, 9) if behind == "pooled" else (3, 3, 3))
    sides = case.sides()
    before = {name: one.clone() for name, one in sides.fused.state_dict().items()}
    for layer in (sides.pytorchs, sides.fused):
        layer.eval()
    with torch.no_grad():
        mine, theirs = (layer(*case.inputs()) for layer in (sides.fused, sides.pytorchs))
    torch.testing.assert_close(mine, theirs)
    assert all(torch.equal(before[name], one) for name, one in sides.fused.state_dict().items())


@pytest.mark.parametrize("groups", [None, 2])
@pytest.mark.parametrize("behind", ["rectified", "added and rectified"])
def test_how_numbers_lie_in_memory_changes_no_bit(behind: str, groups: int | None) -> None:
    case, found = Case(32, groups, behind, (3, 4, 5)), []
    for lay in (
        lambda x: x.contiguous(),
        lambda x: x.contiguous(memory_format=torch.channels_last),
        lambda x: x.repeat_interleave(2, dim=3)[..., ::2],
    ):
        sides = case.sides()
        inputs = [lay(one.detach()).requires_grad_() for one in case.inputs()]
        found.append(numbers(sides.fused, inputs, lay(case.gradient(sides))))
    assert all(torch.equal(other[name], one) for other in found[1:] for name, one in found[0].items())


def test_one_value_for_each_channel_is_refused_as_pytorch_refuses_it() -> None:
    sides = Case(16, None, "rectified", (1, 1, 1)).sides()
    for layer in (sides.pytorchs, sides.fused):
        with pytest.raises(ValueError, match="value"):
            layer(torch.ones(1, 16, 1, 1))


@pytest.mark.parametrize(
    ("layer", "fits"),
    [
        (nn.BatchNorm2d(48), True),
        (nn.BatchNorm2d(24), False),
        (nn.BatchNorm1d(8), False),
        (nn.GroupNorm(2, 48), False),
        (nn.GroupNorm(3, 48), True),
        (nn.GroupNorm(2, 16), True),
        (nn.GroupNorm(16, 16), True),
        (nn.GroupNorm(1, 8), False),
        (nn.Conv2d(16, 16, 1), False),
    ],
)
def test_for_which_normalisations_there_is_machine_code(layer: nn.Module, fits: bool) -> None:
    assert (FusedNormalisation.of(layer) is not None) == fits


@pytest.mark.parametrize(
    ("behind", "added", "done"),
    [
        ([], False, (False, False)),
        ([nn.MaxPool1d(2)], False, (False, False)),
        ([nn.ReLU(), nn.MaxPool1d(2)], False, (True, True)),
        ([nn.ReLU(), nn.MaxPool1d(2)], True, (True, False)),
        ([nn.ReLU(), nn.MaxPool1d(3)], False, (True, False)),
        ([nn.ReLU(), nn.MaxPool1d(2, stride=1)], False, (True, False)),
        ([nn.ReLU(), nn.MaxPool1d(2, padding=1)], False, (True, False)),
        ([nn.ReLU(), nn.MaxPool2d(2)], False, (True, False)),
    ],
)
def test_what_behind_is_done_with_it(behind: list[nn.Module], added: bool, done: tuple[bool, bool]) -> None:
    about = FusedNormalisation.of(nn.BatchNorm1d(16), behind, added=added).about
    assert (about.rectified, about.pooled) == done
