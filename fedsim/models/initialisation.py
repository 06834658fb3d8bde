"""The numbers that training starts from, drawn by numpy in the order of the table.

So they are the same on every platform, whatever torch's own generators do. Fans count a weight's inputs and outputs,
each once for every cell of a convolution's kernel.

``xavier_uniform``
    Weights uniform in +-sqrt(6 / (fan_in + fan_out)), biases zero (Glorot and Bengio, AISTATS 2010). Each gate of a
    recurrent layer has its own matrices; a token table has fan_in *dimension* and fan_out *tokens + 1*.
``kaiming_normal``
    Weights normal with variance 2 / fan_in, biases zero (He et al., ICCV 2015, Eq. 10: what a rectifier halves, the
    gain of sqrt(2) restores). A token table is drawn with variance 1: one of its rows is taken, none are summed up.
``torch_default``
    What PyTorch's own layers do: weights and biases uniform in +-1 / sqrt(fan_in), which is He's uniform start with
    a = sqrt(5); those of a recurrent layer in +-1 / sqrt(hidden); a token table normal with variance 1.

Under all three, normalisation starts with scale 1 and offset 0 (running means with 0, running variances with 1), and
row 0 of a token table, the gates of a fusion and what gated units add for a client are zero. Leaves out: gains for
other activations than the rectifier, and a forget gate of an LSTM that starts open, with a bias of 1 (Jozefowicz et
al., ICML 2015): its biases start as all others do.
"""

from __future__ import annotations

from math import prod, sqrt

import numpy as np
from numpy.typing import NDArray

from fedsim.models.layers import ChannelNorm, Embedding, Gated, Layer, Recurrent, Shape
from fedsim.models.table import Initialisation

__all__ = ["start"]


def start(initialisation: Initialisation, layer: Layer, kind: str, rng: np.random.Generator) -> NDArray[np.float32]:
    """The float32 start of ``layer.state_shapes[kind]``; *layer* is a leaf."""
    shape = layer.state_shapes[kind]
    if isinstance(layer, ChannelNorm):
        return np.full(shape, 1.0 if kind in ("weight", "running_var") else 0.0, dtype=np.float32)
    if kind == "gate" or (isinstance(layer, Gated) and kind.startswith("client")):
        return np.zeros(shape, dtype=np.float32)
    if isinstance(layer, Embedding):
        return _table_of_tokens(initialisation, shape, rng)
    fan_in, fan_out = _fans(layer, kind)
    if initialisation == "torch_default":
        return _uniform(rng, shape, bound=1.0 / sqrt(layer.hidden if isinstance(layer, Recurrent) else fan_in))
    if kind.startswith("bias"):
        return np.zeros(shape, dtype=np.float32)
    if initialisation == "kaiming_normal":
        return _normal(rng, shape, deviation=sqrt(2.0 / fan_in))
    return _uniform(rng, shape, bound=sqrt(6.0 / (fan_in + fan_out)))


def _fans(layer: Layer, kind: str) -> tuple[int, int]:
    weight = layer.parameter_shapes[kind.replace("bias", "weight")]  # (out, in), or (out, in, a kernel's axes)
    if isinstance(layer, Recurrent):
        return weight[1], weight[0] // layer.gates
    return prod(weight[1:]), weight[0] * prod(weight[2:])


def _table_of_tokens(initialisation: Initialisation, shape: Shape, rng: np.random.Generator) -> NDArray[np.float32]:
    if initialisation == "xavier_uniform":
        table = _uniform(rng, shape, bound=sqrt(6.0 / sum(shape)))
    else:
        table = _normal(rng, shape, deviation=1.0)
    table[0] = 0.0
    return table


def _uniform(rng: np.random.Generator, shape: Shape, *, bound: float) -> NDArray[np.float32]:
    # 2u - 1 is exact, so one product rounds once; Generator.uniform may fuse it with a sum, and does not everywhere
    draws = 2.0 * rng.random(shape) - 1.0
    return (bound * draws).astype(np.float32)


def _normal(rng: np.random.Generator, shape: Shape, *, deviation: float) -> NDArray[np.float32]:
    return (deviation * rng.standard_normal(shape)).astype(np.float32)
