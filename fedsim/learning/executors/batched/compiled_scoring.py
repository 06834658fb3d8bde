"""What a model's convolutions make of many images, in machine code of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch

from fedsim.learning.executors.batched.compiled_conv_stack import check_tensors, filled
from fedsim.learning.executors.batched.geometries import geometries
from fedsim.learning.executors.batched.layer import layer_tensors
from fedsim.learning.executors.batched.support import ConvolutionBlock
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.kernels.machine_code import convolution_kernels

__all__ = ["compiled_features"]

CHUNK = 10
"""Images that go through the convolutions together and stay in the cache; it moves no bit."""


def compiled_features(
    conv_stack: Sequence[ConvolutionBlock],
    model: Mapping[str, TensorDict],
    x: torch.Tensor,
    products: torch.dtype | None = None,
) -> torch.Tensor:
    """(samples, features) of the images *x*, (samples, channels, height, width)."""
    shapes = geometries(conv_stack)
    assert shapes is not None
    steps = [convolution_kernels(shape, x.dtype, products) for shape in shapes]
    images = [x.new_zeros(CHUNK, *shape.taken) for shape in shapes] + [x.new_empty(CHUNK, *shapes[-1].made)]
    room = torch.empty(max(step.room_bytes for step in steps), dtype=torch.uint8)
    where = x.new_empty(max(CHUNK * shape.rows * shape.columns * shape.outputs for shape in shapes), dtype=torch.int8)
    weights = []
    for block, step, shape in zip(conv_stack, steps, shapes, strict=True):
        weight, bias = layer_tensors(model, block)
        check_tensors(block, x.dtype, weight, bias)
        held, arranged = filled(weight, shape).contiguous(), torch.empty(step.arranged_bytes, dtype=torch.uint8)
        step.arrange(0, held.data_ptr(), arranged.data_ptr())
        biases = weight.new_zeros(shape.outputs)
        if bias is not None:
            biases[: len(bias)] = bias
        weights.append((arranged, biases))
    edge, (_, height, width) = conv_stack[0].layer.padding, conv_stack[0].input_shape
    inside = images[0][:, edge : edge + height, edge : edge + width]
    features = x.new_empty(len(x), *conv_stack[-1].output_shape)
    for first in range(0, len(x), CHUNK):
        some = x[first : first + CHUNK]
        inside[: len(some)].copy_(some.permute(0, 2, 3, 1))
        for step, (arranged, bias), (h, y) in zip(steps, weights, pairwise(images), strict=True):
            addresses = (tensor.data_ptr() for tensor in (h, arranged, bias, y, where, room))
            step.forward(len(some), *addresses)
        made = images[-1][: len(some), ..., : features.shape[1]]
        features[first : first + CHUNK].copy_(made.permute(0, 3, 1, 2))
    return features.flatten(1)
