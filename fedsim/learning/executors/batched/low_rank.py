"""A large weight matrix that a group of clients shares, and each client's exact change of it in factors.

A step of SGD on a mini-batch changes a weight matrix W (outputs x inputs) by a product of thin matrices: the gradient
is ``D^T H``, with a row of D (gradients of the layer's outputs) and of H (its inputs) for each sample. From a base W0
that all clients share, after any number of steps ::

    W = scale W0 + p P + D^T diag(c) H

with one row for each sample seen so far. P is a push, a constant that the objective adds to each gradient of a client;
most objectives have none. Plain SGD only appends rows, ``c = -learning_rate``; weight decay, momentum and a pull to the
start change ``p`` and ``c``, weight decay ``scale`` too. All is linear, so the recursion runs on a number per sample. A
product with W is one large product with W0 for all clients together, two small ones for each, and one with P, which is
read once. To step with P itself, each client's W would be read and written too, and its gradient. In exact arithmetic
this is the plain loop; in float32 it is closer to it in float64 than the plain loop is, as small changes are not
rounded into large weights.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from fedsim.learning.executors.batched.coefficients import Coefficients
from fedsim.learning.executors.batched.recipe import Recipe
from fedsim.learning.executors.matrix import LARGE, Matrix, kernels_for
from fedsim.learning.kernels.machine_code import correction_kernel

__all__ = ["LowRank", "prepare_factors", "rows_that_pay"]


def rows_that_pay(outputs: int, inputs: int) -> int:
    """How many rows of factors take as much memory as the weights: beyond that, plain weights are better."""
    return outputs * inputs // (outputs + inputs)


def prepare_factors(
    outputs: int, inputs: int, dtype: torch.dtype, products: torch.dtype | None, *, first: bool
) -> None:
    """Make the machine code for a matrix of that size on a CPU, if it is large; *first*: nothing is before it."""
    if outputs * inputs >= LARGE:
        kernels_for((outputs, inputs), dtype, products)
        correction_kernel(inputs, outputs, dtype)
        if not first:
            correction_kernel(outputs, inputs, dtype)


class LowRank:
    """The weights of a group of clients, (outputs, inputs) each, in factors."""

    def __init__(self, recipe: Recipe, shared: Matrix, clients: int, rows: int) -> None:
        """*rows* is how many samples, at most, each client will see."""
        outputs, inputs = shared.weight.shape
        self._recipe = recipe
        self._shared = shared
        self.rows = 0
        self.capacity = rows
        self._inputs = shared.weight.new_zeros(clients, rows, inputs)
        self._outputs = shared.weight.new_zeros(clients, rows, outputs)
        self._scale = Coefficients(recipe, shared.weight, clients, 1, base=1.0)
        self._c = Coefficients(recipe, shared.weight, clients, rows, base=0.0)
        self._p = Coefficients(recipe, shared.weight, clients, 1, base=0.0)
        self._started_elsewhere: set[int] = set()
        self.push = shared.weight.new_empty(clients, outputs, inputs) if recipe.pushes else None
        """What is added to each gradient of a client, (clients, outputs, inputs); to be set before its first step."""
        # What `c` is in products; plain SGD gives every row the same.
        self._coefficients = shared.weight.new_full((clients, rows), -recipe.learning_rate if recipe.plain else 0.0)

    def begin(self, client: int) -> None:
        """A new training of *client* begins: no momentum yet, and this is where it starts. It has the same push."""
        self._started_elsewhere.add(client)
        for coefficients in (self._scale, self._c, self._p):
            coefficients.begin(client)

    def restart(self, client: int) -> None:
        """Give *client* the base again."""
        for coefficients in (self._scale, self._c, self._p):
            coefficients.restart(client)
        if not self._recipe.plain:
            self._coefficients[client].zero_()
        self._outputs[client].zero_()

    def times_transposed(self, h: torch.Tensor) -> torch.Tensor:
        """``h W^T`` for each of the first clients: (clients, samples, inputs) to (clients, samples, outputs)."""
        push = None if self.push is None else self.push.transpose(1, 2)
        return self._times(h, self._shared.times_transposed(h), self._inputs, self._outputs, push)

    def times(self, d: torch.Tensor) -> torch.Tensor:
        """``d W`` for each of the first clients: (clients, samples, outputs) to (clients, samples, inputs)."""
        return self._times(d, self._shared.times(d), self._outputs, self._inputs, self.push)

    def _times(
        self,
        x: torch.Tensor,
        y: torch.Tensor,
        left: torch.Tensor,
        right: torch.Tensor,
        push: torch.Tensor | None,
    ) -> torch.Tensor:
        clients, samples, taken = x.shape
        if self._recipe.rescales:
            y *= self._scale.value[:clients, :, None].to(y.dtype)
        if not self.rows:
            return y
        if push is not None:
            y.baddbmm_(x * self._p.value[:clients, :, None].to(x.dtype), push[:clients])
        kernel = correction_kernel(taken, y.shape[2], y.dtype) if y.is_cpu else None
        if kernel is None:
            small = torch.bmm(x, left[:clients, : self.rows].transpose(1, 2))
            small *= self._coefficients[:clients, None, : self.rows]
            return y.baddbmm_(small, right[:clients, : self.rows])
        if not x.dtype == left.dtype == y.dtype or not y.is_contiguous():
            raise ValueError(f"{x.dtype} rows and {left.dtype} factors for {y.dtype} products")
        x, room = x.contiguous(), y.new_empty(samples * self.rows)
        tensors = (x, left, right, self._coefficients, y, room)
        kernel(clients, samples, self.rows, self.capacity, *(tensor.data_ptr() for tensor in tensors))
        return y

    def step(self, d: torch.Tensor, h: torch.Tensor) -> None:
        """One step of the first clients, whose gradient is ``d^T h``."""
        clients, samples = d.shape[:2]
        new = slice(self.rows, self.rows + samples)
        self._inputs[:clients, new] = h
        self._outputs[:clients, new] = d
        self.rows = new.stop
        recipe, active = self._recipe, slice(clients)
        if recipe.plain:
            self._c.value[active, new].fill_(-recipe.learning_rate)
            return
        self._scale.step(clients)
        self._c.step(clients, new)
        if recipe.pushes:
            self._p.step(clients, slice(1))
        self._coefficients[active] = self._c.value[active].to(self._coefficients.dtype)

    def weights(self, client: int) -> torch.Tensor:
        """One client's weights, in new memory."""
        return self._moved(self._scale.value, self._c.value, self._p.value, client)

    def start(self, client: int) -> torch.Tensor:
        """Where its training started."""
        if client not in self._started_elsewhere:
            return self._shared.weight
        return self._moved(self._scale.start, self._c.start, self._p.start, client)

    def momentum(self, client: int) -> torch.Tensor:
        """Its momentum, in new memory."""
        momentum = self._change(self._c.momentum, self._p.momentum, client)
        return self._grown(momentum, self._scale.momentum[client])

    def _moved(self, scale: torch.Tensor, c: torch.Tensor, p: torch.Tensor, client: int) -> torch.Tensor:
        """``scale W0 + p P + D^T diag(c) H``: small terms first, so that only the last sum rounds at weights' size."""
        change = self._change(c, p, client)
        if self._recipe.rescales:
            change += (scale[client] - 1).to(change.dtype) * self._shared.weight
        change += self._shared.weight
        return change

    def _grown(self, change: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
        """``change + scale W0``, in place."""
        return _plus(change, scale, self._shared.weight) if self._recipe.rescales else change

    def _change(self, c: torch.Tensor, p: torch.Tensor, client: int) -> torch.Tensor:
        """``p P + D^T diag(c) H``."""
        scaled = self._outputs[client, : self.rows] * c[client, : self.rows, None].to(self._outputs.dtype)
        change = scaled.t() @ self._inputs[client, : self.rows]
        return change if self.push is None else _plus(change, p[client], self.push[client])

    def weighted_change(self, weights: Sequence[float]) -> torch.Tensor:
        """``sum of weights[c] (W_c - W0)`` as one product over all rows of all clients."""
        coefficients = _weighted(self._c.value[:, : self.rows], weights).to(self._outputs.dtype)
        scaled = self._outputs[:, : self.rows] * coefficients[:, :, None]
        total = self._shared.sum_of_products(scaled, self._inputs[:, : self.rows])
        if self.push is not None:
            for number, push in zip(_weighted(self._p.value, weights), self.push, strict=True):
                _plus(total, number, push)
        return self._grown(total, _weighted(self._scale.value - 1, weights).sum())


def _plus(change: torch.Tensor, number: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
    """``change + number matrix``, in place; a device is not asked for the number, which would hold everything up."""
    if change.is_cpu:
        return change.add_(matrix, alpha=float(number))
    return change.addcmul_(matrix, number.to(change.dtype))


def _weighted(rows: torch.Tensor, weights: Sequence[float]) -> torch.Tensor:
    """Each row times its weight."""
    return torch.stack([row * weight for row, weight in zip(rows, weights, strict=True)])
