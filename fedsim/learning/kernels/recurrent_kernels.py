"""All steps of a recurrent layer in one call, forward and backward.

A step's products with the recurrent weights go straight into the gates, and no step is a call of its own. What does not
depend on the step before, the gradients of weights, is left to a library, for all steps at once; so are the products
with the inputs where factors are not rounded. Arrays are (steps, samples, vectors of the state's width), row by row.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.cells import CELLS, Cell
from fedsim.learning.kernels.emitter import Array, Emitter
from fedsim.learning.kernels.factors import Factors, RoundedFactors
from fedsim.learning.kernels.loops import in_tiles
from fedsim.learning.kernels.shapes import LANES, Machine, vectors_together

__all__ = ["emit_rounded_steps", "emit_rounded_steps_backward", "emit_steps", "emit_steps_backward"]


def emit_steps(module: ir.Module, kind: str, hidden: int, machine: Machine) -> None:
    """``steps(steps, samples, given, weights, bias, states, memory, kept)``.

    *given* is the inputs' share of the gates, (steps, samples, gates hidden); *weights*, (hidden, gates hidden), and
    *bias* are the recurrent ones. *states* is (steps + 1, samples, hidden), of which the first are there; *memory*,
    (samples, hidden), is there and changes, if the cell has one. *kept* is for `emit_steps_backward`.
    """
    pointers = ("given", "weights", "bias", "states", "memory", "kept")
    e = Emitter(module, "steps", pointers, machine, ("steps", "samples"))
    cell = CELLS[kind]
    _Forward(e, cell, hidden, Factors(e), "states", hidden, cell.gates * hidden).emit()


def emit_rounded_steps(module: ir.Module, kind: str, hidden: int, width: int, machine: Machine) -> None:
    """``rounded_steps(steps, samples, rows, given, weights, bias, states, memory, kept)``, for a cell that adds shares.

    As `emit_steps`, but recurrent weights and those of inputs are multiplied together. *rows*, (steps + 1, samples,
    width) of bfloat16, have the states before a step, of which the first are there, and behind them its inputs;
    *weights*, (width / 2, gates hidden, 2) of bfloat16, have both sorts in the same order. *given* is the inputs' bias,
    (gates hidden), for all samples.
    """
    pointers = ("rows", "given", "weights", "bias", "states", "memory", "kept")
    e = Emitter(module, "rounded_steps", pointers, machine, ("steps", "samples"))
    _Forward(e, CELLS[kind], hidden, RoundedFactors(e), "rows", width, 0).emit()


@dataclass(frozen=True)
class _Forward:
    """A kernel, and where it finds what goes into a step."""

    e: Emitter
    cell: Cell
    hidden: int
    factors: Factors
    left: str
    """The array whose rows are multiplied with the weights."""
    width: int
    """Numbers of such a row; the states come first."""
    given: int
    """Numbers of a row of the inputs' share; 0: all samples have the same."""

    def emit(self) -> None:
        e = self.e
        with e.loop(e.count("steps")) as step:
            first = e.build.mul(step, e.samples)

            def tile(begin: Value, size: int, first: Value = first) -> None:
                rows = [e.index_sum((begin, 1), (i, 1)) for i in range(size)]
                with e.loop(self.hidden // LANES) as vector:
                    self._new_states(first, rows, e.index_sum((vector, LANES)))

            in_tiles(e, e.samples, self.cell.gates, tile)
        e.finish()

    def _new_states(self, first: Value, rows: list[Value], at: Value) -> None:
        """A vector of the new states of some samples of a step, whose rows start at *first*."""
        e, cell, hidden = self.e, self.cell, self.hidden
        then = e.index_sum((first, 1), (e.samples, 1))
        before, after = (_rows(e, "states", hidden, 1, row) for row in (first, then))
        given = e.array("given", (self.given,)).at(first, strides=(self.given, hidden, 1))
        kept = _rows(e, "kept", hidden, cell.kept, first)
        memory = _rows(e, "memory", hidden, 1, e.index(0)) if cell.has_memory else None
        for row, recurrent in zip(rows, self._recurrent(first, rows, at), strict=True):
            new = cell.step(
                e,
                [given.load_vector(row, gate, at) for gate in range(cell.gates)],
                recurrent,
                before.load_vector(row, 0, at),
                memory and memory.load_vector(row, 0, at),
            )
            after.store(new.state, row, 0, at)
            if self.factors.rounds:  # for the next step, beside its inputs
                left = self.factors.array(self.left, (self.width, self.width, 1))
                left.store(self.factors.made_of(new.state), then, row, at)
            if memory is not None:
                memory.store(new.memory, row, 0, at)
            for kind, value in enumerate(new.kept):
                kept.store(value, row, kind, at)

    def _recurrent(self, first: Value, rows: list[Value], at: Value) -> list[list[Value]]:
        """A vector of the weights' share of each gate, for each of the *rows*."""
        e, gates, units = self.e, self.cell.gates, self.width // self.factors.numbers
        left = self.factors.array(self.left, (units,), of_units=True).at(first, strides=(units, 1))
        weights = self.factors.array("weights", (gates * self.hidden, self.hidden, 1), of_units=True)
        bias = e.array("bias", (self.hidden, 1))
        sums = [[e.variable(bias.load_vector(gate, at)) for gate in range(gates)] for _ in rows]
        with e.loop(units) as unit:
            columns = [weights.load_vector(unit, gate, at) for gate in range(gates)]
            factors = (e.broadcast(left.load(row, unit)) for row in rows)
            e.add_products(sums, factors, columns, self.factors.multiply_add)
        return [[total.value for total in of_row] for of_row in sums]


def emit_steps_backward(module: ir.Module, kind: str, hidden: int, last: bool, machine: Machine) -> None:
    """``steps_backward(steps, samples, d_states, weights, states, kept, d_given, d_gates, d_state, d_memory)``.

    *d_states* is (steps, samples, hidden), *weights* (gates hidden, hidden). *d_given* and *d_gates* are made, (steps,
    samples, gates hidden): of the inputs' and of the recurrent share of the gates, or the latter alone if the cell adds
    them. *d_state* and *d_memory*, (samples, hidden), are zeros before, and belong to the first states then. If only
    the *last* states have a gradient, it is in *d_state*, and there are no *d_states*.
    """
    pointers = ("d_states", "weights", "states", "kept", "d_given", "d_gates", "d_state", "d_memory")[last:]
    e = Emitter(module, "steps_backward", pointers, machine, ("steps", "samples"))
    _Backward(e, CELLS[kind], hidden, Factors(e), last).emit()


def emit_rounded_steps_backward(module: ir.Module, kind: str, hidden: int, last: bool, machine: Machine) -> None:
    """``rounded_steps_backward(steps, samples, d_states, weights, states, kept, d_gates, d_bias, d_state, d_memory)``.

    As `emit_steps_backward`, for a cell that adds shares, but *d_gates* are of bfloat16, and *weights* too, (gates
    hidden / 2, hidden, 2). What *d_gates* add up to before they are rounded is added to *d_bias*, (gates hidden).
    """
    pointers = ("d_states", "weights", "states", "kept", "d_gates", "d_bias", "d_state", "d_memory")[last:]
    e = Emitter(module, "rounded_steps_backward", pointers, machine, ("steps", "samples"))
    _Backward(e, CELLS[kind], hidden, RoundedFactors(e), last).emit()


@dataclass(frozen=True)
class _Backward:
    """A kernel, and what it is about."""

    e: Emitter
    cell: Cell
    hidden: int
    factors: Factors
    last: bool
    """Whether only the last states have a gradient."""

    def emit(self) -> None:
        e = self.e
        with e.loop(e.count("steps")) as done:
            step = e.index_sum((e.count("steps"), 1), (done, -1), (-1, 1))
            first = e.build.mul(step, e.samples)
            with e.loop(e.samples) as row, e.loop(self.hidden // LANES) as vector:
                self._gate_gradients(first, row, e.index_sum((vector, LANES)))
            self._carry_back(first)
        e.finish()

    def _gate_gradients(self, first: Value, row: Value, at: Value) -> None:
        """Of one vector of a sample's state."""
        e, cell, hidden = self.e, self.cell, self.hidden
        d_state, d_memory = (_rows(e, name, hidden, 1, e.index(0)) for name in ("d_state", "d_memory"))
        d = d_state.load_vector(row, 0, at)
        if not self.last:
            d = e.build.fadd(d, _rows(e, "d_states", hidden, 1, first).load_vector(row, 0, at))
        kept = _rows(e, "kept", hidden, cell.kept, first)
        found = cell.gradients(
            e,
            [kept.load_vector(row, kind, at) for kind in range(cell.kept)],
            _rows(e, "states", hidden, 1, first).load_vector(row, 0, at),
            d,
            d_memory.load_vector(row, 0, at) if cell.has_memory else None,
        )
        width = cell.gates * hidden
        d_gates = self.factors.array("d_gates", (width,)).at(first, strides=(width, hidden, 1))
        for gate, value in enumerate(found.gates):
            d_gates.store(self.factors.made_of(value), row, gate, at)
        if not cell.adds_shares:
            d_given = _rows(e, "d_given", hidden, cell.gates, first)
            for gate, value in enumerate(found.given):
                d_given.store(value, row, gate, at)
        if self.factors.rounds:
            d_bias = e.array("d_bias", (hidden, 1))
            for gate, value in enumerate(found.gates):
                d_bias.add(value, gate, at)
        d_state.store(e.zeros if found.state is None else found.state, row, 0, at)
        if cell.has_memory:
            d_memory.store(found.memory, row, 0, at)

    def _carry_back(self, first: Value) -> None:
        """``d_state = d_state + d_gates weights``, gate by gate: shorter sums have smaller rounding errors."""
        e, factors, hidden, gates = self.e, self.factors, self.hidden, self.cell.gates
        together, units = vectors_together(hidden), hidden // factors.numbers
        weights = factors.array("weights", (units * hidden, hidden, 1), of_units=True)
        strides = (gates * units, units, 1)
        d_gates = factors.array("d_gates", strides[:1], of_units=True).at(first, strides=strides)
        d_state = _rows(e, "d_state", hidden, 1, e.index(0))

        def tile(begin: Value, size: int) -> None:
            rows = [e.index_sum((begin, 1), (i, 1)) for i in range(size)]
            with e.loop(hidden // (together * LANES)) as block:
                places = [e.index_sum((block, together * LANES), (v, LANES)) for v in range(together)]
                with e.loop(gates) as gate:
                    sums = e.sums(size, together)
                    with e.loop(units) as unit:
                        columns = [weights.load_vector(gate, unit, at) for at in places]
                        ds = (e.broadcast(d_gates.load(row, gate, unit)) for row in rows)
                        e.add_products(sums, ds, columns, factors.multiply_add)
                    for row, of_row in zip(rows, sums, strict=True):
                        for at, total in zip(places, of_row, strict=True):
                            d_state.add(total.value, row, 0, at)

        in_tiles(e, e.samples, together, tile)


def _rows(e: Emitter, name: str, hidden: int, vectors: int, first: Value) -> Array:
    """(samples, vectors, hidden) from a row on."""
    width = vectors * hidden
    return e.array(name, (width,)).at(first, strides=(width, hidden, 1))
