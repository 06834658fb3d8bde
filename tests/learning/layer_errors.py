"""How far a layer's numbers are from PyTorch's in float64, beside how far PyTorch's own in float32 are."""

from __future__ import annotations

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import torch
from torch import nn

MOST, MOST_OF_ONE = 1.5, 3.0
"""Times PyTorch's own error: in the median over cases, and of all numbers of one case together."""
ROUNDED = 2.0**-24
"""What rounding to float32 changes a number by, relative to it: no error is counted as less."""
ALL = "all"

Numbers = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Sides:
    """The same layer as PyTorch's own module and as a fused one, with the same parameters and statistics."""

    pytorchs: nn.Module
    fused: nn.Module

    def ratios(
        self,
        inputs: Sequence[torch.Tensor],
        d: torch.Tensor,
        kind: torch.dtype = torch.float32,
        plain: Numbers | None = None,
    ) -> dict[str, float]:
        """The fused layer's errors over PyTorch's, by what was computed, and of all of it together.

        An error is relative to the norm of what should have come out; together it is the root of the mean square.
        Inputs and gradients lie in numbers of that *kind*. *plain* has what plain sums make, one term after the other:
        where their error is larger it counts instead of PyTorch's, which adds up in several parts on some processors,
        and so rounds less. Of all of it together PyTorch's own error counts.
        """
        inputs = [one.detach().to(kind).requires_grad_(one.requires_grad) for one in inputs]
        true = numbers(copy.deepcopy(self.pytorchs).double(), inputs, d.to(kind), torch.float64)
        theirs, mine = (_errors(made, true) for made in self.numbers(inputs, d, kind))
        for name, made in (plain or {}).items():
            error = _errors({name: made}, {name: true[name]})[name]
            assert error < 1e-6, "no more than rounding"
            theirs[name] = max(theirs[name], error)
        return {name: mine[name] / error for name, error in theirs.items()}

    def numbers(
        self, inputs: Sequence[torch.Tensor], d: torch.Tensor, kind: torch.dtype = torch.float32
    ) -> tuple[Numbers, Numbers]:
        """PyTorch's, and the fused layer's."""
        theirs, mine = (numbers(layer, inputs, d, kind) for layer in (self.pytorchs, self.fused))
        assert {name: one.shape for name, one in mine.items()} == {name: one.shape for name, one in theirs.items()}
        return theirs, mine


class Rounding(nn.Module):
    """A layer under autocast, as in the plain loop: not in the backward pass."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            made: torch.Tensor = self.layer(x)
        return made.float()


def numbers(
    layer: nn.Module, inputs: Sequence[torch.Tensor], d: torch.Tensor, kind: torch.dtype = torch.float32
) -> Numbers:
    """What *layer* makes of *inputs*, all gradients for that of its output, *d*, and its statistics, by name.

    Inputs that ask for gradients get some; they and *d* are given to it in numbers of that *kind*.
    """
    given = [one.detach().to(kind).requires_grad_(one.requires_grad) for one in inputs]
    layer.zero_grad()
    made = layer(*given)
    made.backward(d.to(kind))
    found = {f"d_input{at}": one.grad for at, one in enumerate(given) if one.requires_grad}
    found |= {f"d_{_short(name)}": parameter.grad for name, parameter in layer.named_parameters()}
    found |= {_short(name): buffer.clone() for name, buffer in layer.named_buffers()}
    return {"made": made.detach()} | found


def numbers_as_they_lie(layer: nn.Module, x: torch.Tensor, d: torch.Tensor) -> list[Numbers]:
    """`numbers` of the same series, (samples, channels, length), that lie in memory in three ways."""
    lays: tuple[Callable[[torch.Tensor], torch.Tensor], ...] = (
        lambda one: one.contiguous(),
        lambda one: one.transpose(1, 2).contiguous().transpose(1, 2),
        lambda one: one.repeat_interleave(2, dim=2)[..., ::2],
    )
    return [numbers(layer, wanting(lay(x).detach()), lay(d)) for lay in lays]


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def _errors(found: Numbers, true: Numbers) -> dict[str, float]:
    assert all(one.any() or not found[name].any() for name, one in true.items()), "what should be zero is not"
    errors = {name: float((found[name].double() - one).norm() / one.norm()) for name, one in true.items() if one.any()}
    own = {name: max(error, ROUNDED) for name, error in errors.items()}
    return own | {ALL: math.sqrt(sum(error**2 for error in own.values()) / len(own))}


def broken(ratios: Iterable[Mapping[str, float]]) -> dict[str, str]:
    """What speaks against the ratios of some cases; nothing when they are as they should be."""
    by_name: dict[str, list[float]] = defaultdict(list)
    for case in ratios:
        for name, ratio in case.items():
            by_name[name].append(ratio)
    return {
        name: f"{median(some):.2f} times PyTorch's error in the median, {max(some):.2f} times in one case"
        for name, some in by_name.items()
        if not (median(some) <= MOST and (name != ALL or max(some) <= MOST_OF_ONE) and all(map(math.isfinite, some)))
    }


def seeded(seed: int) -> torch.Generator:
    """For the numbers of a case."""
    return torch.Generator().manual_seed(seed)


def draw(generator: torch.Generator, *shape: int, mean: float = 0.0, deviation: float = 1.0) -> torch.Tensor:
    """Normal numbers in float32."""
    return torch.randn(shape, generator=generator) * deviation + mean


def started(layer: nn.Module, seed: int) -> nn.Module:
    """A copy with weights of PyTorch's sizes."""
    made, generator = copy.deepcopy(layer).to_empty(device="cpu"), seeded(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.copy_(draw(generator, *parameter.shape, deviation=max(parameter[0].numel(), 4) ** -0.5))
    return made


def wanting(*tensors: torch.Tensor) -> list[torch.Tensor]:
    """Gradients."""
    return [tensor.requires_grad_() for tensor in tensors]
