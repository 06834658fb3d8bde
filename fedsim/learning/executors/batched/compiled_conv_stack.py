"""The convolutions of a group of clients in machine code of our own, one client after the other.

All memory is made once for a group: images with the zeros around them, the gradients of all clients' weights. Images of
one client stay in the cache from one convolution to the next.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.conv_stack import ConvStack
from fedsim.learning.executors.batched.convolution import Convolution
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.kernels.machine_code import convolution_kernels
from fedsim.learning.kernels.shapes import LANES, Geometry

__all__ = ["CompiledConvStack", "CompiledConvolution", "check_tensors", "filled"]


class CompiledConvolution(Convolution):
    """A convolution with pooling and rectifier of each client, between images that lie as `Geometry` says."""

    def __init__(
        self,
        recipe: Recipe,
        block: ConvolutionBlock,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        clients: int,
        *,
        geometry: Geometry,
        samples: int,
    ) -> None:
        """*weight* is (outputs, inputs, kernel, kernel); a client has at most so many *samples* in a step."""
        self._geometry = geometry
        super().__init__(recipe, block, weight, bias, clients)
        check_tensors(block, weight.dtype, weight, bias)
        self._kernels = convolution_kernels(geometry, weight.dtype, recipe.products)
        if self.bias is not None and len(weight) == geometry.outputs:
            self._biases = self.bias.value
        else:
            self._biases = weight.new_zeros(clients, geometry.outputs)
        self.x = weight.new_zeros(clients, samples, *geometry.taken)
        """What goes in; its padding stays zero."""
        self._where = weight.new_empty(
            (clients, samples, geometry.rows, geometry.columns, geometry.outputs), dtype=torch.int8
        )
        self._by_weight = weight.new_empty(clients, *geometry.weights)
        self._by_bias = weight.new_empty(clients, geometry.outputs)
        self._before = None if geometry.first else weight.new_empty(samples, *geometry.taken)
        self._arranged = torch.empty(self._kernels.arranged_bytes, dtype=torch.uint8)
        self._forward_room = torch.empty(self._kernels.room_bytes, dtype=torch.uint8)
        self._offsets = weight.new_empty(geometry.rows * geometry.columns, dtype=torch.int32)
        room = LANES * geometry.weights_per_output if geometry.first else geometry.rows * geometry.columns
        self._room = weight.new_empty(room)
        self._weights_at, self._biases_at = _addresses(self._weights.value), _addresses(self._biases)
        self._x_at, self._where_at = _addresses(self.x), _addresses(self._where)
        self._by_weight_at, self._by_bias_at = _addresses(self._by_weight), _addresses(self._by_bias)

    def _held(self, weight: torch.Tensor) -> torch.Tensor:
        return filled(weight, self._geometry)

    def shown(self, held: torch.Tensor) -> torch.Tensor:
        """With channels where they are sent, those that the layer has."""
        outputs, inputs, *_ = self._base_weight.shape
        return held[:outputs, :, :, :inputs].permute(0, 3, 1, 2)

    def take_biases(self) -> None:
        """Read them where kernels want more than the layer has."""
        if self.bias is not None and self._biases is not self.bias.value:
            self._biases[:, : len(self._base_weight)].copy_(self.bias.value)

    def forward(self, client: int, samples: int, y: int) -> None:
        """From `x` to the address *y*, of the client's first samples."""
        x, where, biases = self._x_at[client], self._where_at[client], self._biases_at[client]
        arranged, room = self._arranged.data_ptr(), self._forward_room.data_ptr()
        self._kernels.arrange(samples, self._weights_at[client], arranged)
        self._kernels.forward(samples, x, arranged, biases, y, where, room)

    def backward(self, client: int, samples: int, y: int, d: int) -> int:
        """Add up the gradients of one client's weights, given the addresses of its *y* and of the gradient of that.

        Returns the address of the gradient of what went in; 0 where nobody asks for it.
        """
        x, where, room = self._x_at[client], self._where_at[client], self._room.data_ptr()
        sums = self._by_weight_at[client], self._by_bias_at[client]
        if self._before is None:
            self._kernels.backward(samples, x, y, d, where, *sums, room)
            return 0
        self._before.zero_()
        before, weights = self._before.data_ptr(), self._weights_at[client]
        self._kernels.backward(samples, x, weights, y, d, where, before, *sums, self._offsets.data_ptr(), room)
        return before

    def begin_step(self, active: int) -> None:
        """Forget the gradients of the first *active* clients."""
        self._by_weight[:active].zero_()
        self._by_bias[:active].zero_()

    def end_step(self, active: int) -> None:
        """Step along them."""
        self._weights.take(slice(active), self._by_weight[:active])
        if self.bias is not None:
            self.bias.take(slice(active), self._by_bias[:active, : len(self._base_weight)])


class CompiledConvStack(ConvStack[CompiledConvolution]):
    """Convolutions that hand images to each other where they lie."""

    def __init__(self, convolutions: Sequence[CompiledConvolution], geometry: Geometry) -> None:
        """*geometry* is that of the last one."""
        super().__init__(convolutions)
        first = convolutions[0]
        clients, samples, *_ = first.x.shape
        self._y = first.x.new_empty(clients, samples, *geometry.made)
        self._d = torch.zeros_like(self._y)
        self._made_at = [_addresses(convolution.x) for convolution in convolutions[1:]] + [_addresses(self._y)]
        self._d_at = _addresses(self._d)
        edge = first.block.layer.padding
        _, height, width = first.block.input_shape
        self._inside = first.x[:, :, edge : edge + height, edge : edge + width]

    def forward(self, xs: Sequence[torch.Tensor], features: torch.Tensor) -> None:
        """Client by client."""
        samples = [x.shape[0] for x in xs]
        for convolution in self.convolutions:
            convolution.take_biases()
        for client, (x, number) in enumerate(zip(xs, samples, strict=True)):
            self._inside[client, :number].copy_(x.permute(0, 2, 3, 1))
            for convolution, y in zip(self.convolutions, self._made_at, strict=True):
                convolution.forward(client, number, y[client])
        width = features.shape[1]
        images = features.view(len(samples), width, *self.convolutions[-1].output_shape)
        made = self._y[..., : images.shape[2]].permute(0, 1, 4, 2, 3)
        if all(number == width for number in samples):
            images.copy_(made[: len(samples), :width])
            return
        for client, number in enumerate(samples):
            images[client, :number].copy_(made[client, :number])

    def backward(self, d: torch.Tensor, samples: Sequence[int]) -> None:
        """Gradients client by client, then a step of all."""
        active, width, _ = d.shape
        images = d.view(active, width, *self.convolutions[-1].output_shape)
        self._d[:active, :width, ..., : images.shape[2]].copy_(images.permute(0, 1, 3, 4, 2))
        for convolution in self.convolutions:
            convolution.begin_step(active)
        for client in reversed(range(active)):  # what was made last is in the cache still
            gradient = self._d_at[client]
            for convolution, y in zip(reversed(self.convolutions), reversed(self._made_at), strict=True):
                gradient = convolution.backward(client, samples[client], y[client], gradient)
        for convolution in self.convolutions:
            convolution.end_step(active)


def filled(weight: torch.Tensor, geometry: Geometry) -> torch.Tensor:
    """A *weight*, (outputs, inputs, kernel, kernel), as kernels take it: channels last, and more of them, of zeros."""
    outputs, inputs, *_ = weight.shape
    last = weight.permute(0, 2, 3, 1)
    more = (0, geometry.inputs - inputs, 0, 0, 0, 0, 0, geometry.outputs - outputs)
    return torch.nn.functional.pad(last, more) if any(more) else last


def check_tensors(block: ConvolutionBlock, dtype: torch.dtype, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
    """A kernel would read whatever lies there: so raise `ValueError` where PyTorch's convolution would."""
    shapes = block.layer.parameter_shapes
    for kind, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and (tensor.dtype != dtype or tensor.shape != shapes[kind]):
            raise ValueError(f"{block.layer.name}.{kind} is {tensor.dtype} {tuple(tensor.shape)}")


def _addresses(stacked: torch.Tensor) -> list[int]:
    """Where each client's numbers begin, for as long as the tensor is there: nothing is ever put in its place."""
    assert stacked.is_contiguous()
    size = stacked.stride(0) * stacked.element_size()
    return [stacked.data_ptr() + client * size for client in range(len(stacked))]
