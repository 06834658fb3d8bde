"""The units of recurrent layers: what a step makes of the gates' sums, and the gradients of that."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.functions import hyperbolic_tangent, logistic

__all__ = ["CELLS", "Cell", "GradientsBefore", "NewState"]


class NewState(NamedTuple):
    """What a step makes."""

    state: Value
    memory: Value | None
    """Beside the state, where the unit has one."""
    kept: Sequence[Value]
    """What its gradients need."""


class GradientsBefore(NamedTuple):
    """Of what a step has taken."""

    given: Sequence[Value]
    """Of the inputs' share of each gate."""
    gates: Sequence[Value]
    """Of the recurrent share of each gate."""
    state: Value | None
    """Of the state before, but for the way through the gates; None: there is no other way."""
    memory: Value | None


class Cell(ABC):
    """A unit; all values are vectors."""

    gates: int
    kept: int
    """Vectors that the gradients need."""
    has_memory: bool
    adds_shares: bool
    """Whether a gate is a function of the sum of its two shares: then the gradients of both are the same."""

    @abstractmethod
    def step(
        self, e: Emitter, given: Sequence[Value], recurrent: Sequence[Value], state: Value, memory: Value | None
    ) -> NewState:
        """From the two shares of each gate, without the gate's own function, and from what was before."""

    @abstractmethod
    def gradients(
        self, e: Emitter, kept: Sequence[Value], state: Value, d: Value, d_memory: Value | None
    ) -> GradientsBefore:
        """From those of the new state and memory; *state* is the one before."""


class _Gru(Cell):
    """Gated recurrent unit (K. Cho et al., EMNLP 2014) with gates r, z and n; r is where PyTorch has it."""

    gates, kept, has_memory, adds_shares = 3, 4, False, False

    def step(
        self, e: Emitter, given: Sequence[Value], recurrent: Sequence[Value], state: Value, memory: Value | None
    ) -> NewState:
        r, z = (logistic(e, e.build.fadd(given[gate], recurrent[gate])) for gate in (0, 1))
        n = hyperbolic_tangent(e, e.multiply_add(given[2], r, recurrent[2]))
        new = e.multiply_add(n, z, e.build.fsub(state, n))
        return NewState(new, None, (r, z, n, recurrent[2]))

    def gradients(
        self, e: Emitter, kept: Sequence[Value], state: Value, d: Value, d_memory: Value | None
    ) -> GradientsBefore:
        build, (r, z, n, with_r) = e.build, kept
        d_z = build.fmul(build.fmul(d, build.fsub(state, n)), _logistic_slope(e, z))
        d_n = build.fmul(build.fmul(d, _from_one(e, z)), _tangent_slope(e, n))
        d_r = build.fmul(build.fmul(d_n, with_r), _logistic_slope(e, r))
        return GradientsBefore((d_r, d_z, d_n), (d_r, d_z, build.fmul(d_n, r)), build.fmul(d, z), None)


class _Lstm(Cell):
    """Long short-term memory (F. Gers, J. Schmidhuber, F. Cummins, Neural Computation 2000), gates i, f, g and o."""

    gates, kept, has_memory, adds_shares = 4, 6, True, True

    def step(
        self, e: Emitter, given: Sequence[Value], recurrent: Sequence[Value], state: Value, memory: Value | None
    ) -> NewState:
        sums = [e.build.fadd(one, other) for one, other in zip(given, recurrent, strict=True)]
        i, f, o = (logistic(e, sums[gate]) for gate in (0, 1, 3))
        g = hyperbolic_tangent(e, sums[2])
        new = e.multiply_add(e.build.fmul(i, g), f, memory)
        seen = hyperbolic_tangent(e, new)
        return NewState(e.build.fmul(o, seen), new, (i, f, g, o, memory, seen))

    def gradients(
        self, e: Emitter, kept: Sequence[Value], state: Value, d: Value, d_memory: Value | None
    ) -> GradientsBefore:
        build, (i, f, g, o, memory, seen) = e.build, kept
        d_new = e.multiply_add(d_memory, build.fmul(d, o), _tangent_slope(e, seen))
        gates = (
            build.fmul(build.fmul(d_new, g), _logistic_slope(e, i)),
            build.fmul(build.fmul(d_new, memory), _logistic_slope(e, f)),
            build.fmul(build.fmul(d_new, i), _tangent_slope(e, g)),
            build.fmul(build.fmul(d, seen), _logistic_slope(e, o)),
        )
        return GradientsBefore(gates, gates, None, build.fmul(d_new, f))


CELLS: dict[str, Cell] = {"gru": _Gru(), "lstm": _Lstm()}
"""By the name of the layer's kind."""


def _from_one(e: Emitter, value: Value) -> Value:
    return e.build.fsub(e.constant(1.0), value)


def _logistic_slope(e: Emitter, value: Value) -> Value:
    """Of the function that has made *value*."""
    return e.build.fmul(value, _from_one(e, value))


def _tangent_slope(e: Emitter, value: Value) -> Value:
    return _from_one(e, e.build.fmul(value, value))
