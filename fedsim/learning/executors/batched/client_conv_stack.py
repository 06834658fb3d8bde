"""The convolutions of a group of clients, one client after the other. (Grouped over clients, they are slower on a CPU.)

Images are held with channels last, where oneDNN and pooling are fast.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.client_convolution import ClientConvolution
from fedsim.learning.executors.batched.conv_stack import ConvStack
from fedsim.learning.executors.batched.direct_convolution import DirectConvolution
from fedsim.learning.executors.batched.images import channels_last
from fedsim.learning.executors.batched.patch_convolution import FEW_INPUTS, PatchConvolution
from fedsim.learning.executors.batched.support import ConvolutionBlock

__all__ = ["ClientConvStack", "faster_kind"]


class ClientConvStack(ConvStack[ClientConvolution]):
    """All convolutions of a group of clients."""

    def __init__(self, convolutions: Sequence[ClientConvolution]) -> None:
        super().__init__(convolutions)
        self._passed: list[list[torch.Tensor]] = []

    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Client by client."""
        self._passed = []
        for client, x in enumerate(xs):
            passed = [x]
            for convolution in self.convolutions:
                passed.append(convolution.forward(client, passed[-1]))
            features[client, : len(x)].view(passed[-1].shape).copy_(passed[-1])
            self._passed.append(passed)

    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Client by client, each client's layers at once."""
        images = channels_last(d.view(-1, *self.convolutions[-1].output_shape))
        for client in reversed(range(len(samples))):  # what was made last is in the cache still
            passed, first = self._passed[client], client * d.shape[1]
            gradient: torch.Tensor | None = images[first : first + samples[client]]
            for convolution in reversed(self.convolutions):
                assert gradient is not None
                y = passed.pop()
                gradient = convolution.backward(client, passed[-1], y, gradient)


def faster_kind(block: ConvolutionBlock) -> type[ClientConvolution]:
    """How a convolution is computed: a function of its shape."""
    layer = block.layer
    few = layer.in_channels * layer.kernel**2 <= FEW_INPUTS
    return PatchConvolution if block.first and few else DirectConvolution
