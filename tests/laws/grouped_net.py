"""WDCNN and ResNet-20 with group normalisation as one writes them in PyTorch: no layer of fedsim is used.

Names are those of the paper's layers, in the order in which a sample passes them, so that tensors can be told apart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad, relu


class Wdcnn(nn.Module):
    """Five convolutions of series, the first of 8 values; 100 hidden units."""

    def __init__(self, channels: int, length: int, outputs: int) -> None:
        super().__init__()
        layers: OrderedDict[str, nn.Module] = OrderedDict()
        before, left = channels, length - 1  # 8 values less 3 on each side, one step at a time
        for number, width in enumerate((16, 32, 64, 64, 64), start=1):
            kernel, padding = (8, 3) if number == 1 else (3, 0 if number == 5 else 1)
            layers[f"conv{number}"] = nn.Conv1d(before, width, kernel, padding=padding)
            layers[f"gn{number}"] = nn.GroupNorm(2, width)
            layers[f"relu{number}"] = nn.ReLU()
            layers[f"pool{number}"] = nn.MaxPool1d(2)
            before, left = width, (left - (2 if number == 5 else 0)) // 2
        self.convolutions = nn.Sequential(layers)
        self.fc1, self.fc2 = nn.Linear(64 * left, 100), nn.Linear(100, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(relu(self.fc1(self.convolutions(x).flatten(1))))


class Block(nn.Module):
    """Two convolutions, and what they were given; where channels double, zeros for the new ones."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.more = width - before
        stride = 2 if self.more else 1
        self.body = nn.Sequential(
            OrderedDict(
                conv1=nn.Conv2d(before, width, 3, stride=stride, padding=1, bias=False),
                gn1=nn.GroupNorm(2, width),
                relu1=nn.ReLU(),
                conv2=nn.Conv2d(width, width, 3, padding=1, bias=False),
                gn2=nn.GroupNorm(2, width),
            )
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shortcut = pad(x[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.more)) if self.more else x
        return relu(self.body(x) + shortcut)


class ResNet20(nn.Module):
    """For grey images."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.conv1, self.gn1 = nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.GroupNorm(2, 16)
        widths = [16, 16, 16, 16, 32, 32, 32, 64, 64, 64]
        self.blocks = nn.Sequential(
            OrderedDict((f"block{number}", Block(*widths[number - 1 : number + 1])) for number in range(1, 10))
        )
        self.fc = nn.Linear(64, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        images = self.blocks(relu(self.gn1(self.conv1(x))))
        return self.fc(images.flatten(2).mean(dim=2))


def start(net: nn.Module, draw: np.random.Generator, *, normal: bool) -> None:
    """Weights as documented: He's *normal* ones or Glorot's uniform ones; scales are 1 and all biases 0."""
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.GroupNorm):
                assert bool((module.weight == 1).all()) and not module.bias.any(), "as PyTorch starts them"
            elif isinstance(module, nn.Conv1d | nn.Conv2d | nn.Linear):
                shape = tuple(module.weight.shape)
                cells, fan_in = np.prod(shape[2:], dtype=int), np.prod(shape[1:])
                if normal:
                    drawn = np.sqrt(2 / fan_in) * draw.standard_normal(shape)
                else:
                    drawn = np.sqrt(6 / (fan_in + shape[0] * cells)) * (2 * draw.random(shape) - 1)
                module.weight.copy_(torch.tensor(drawn.astype(np.float32)))
                if module.bias is not None:
                    module.bias.zero_()


def by_fedsims_names(state: Mapping[str, torch.Tensor], last: str) -> dict[str, torch.Tensor]:
    """All tensors of a module whose *last* layer is the classifier."""
    named = {}
    for name, tensor in state.items():
        layer = name.removeprefix("convolutions.").removeprefix("blocks.")
        named[f"{'classifier' if layer.startswith(f'{last}.') else 'extractor'}.{layer}"] = tensor
    return named
