"""All steps of a recurrent layer in one call, forward and backward.

A step's products with the recurrent weights go straight into the gates, and no step is a call of its own. What does not
depend on the step before, the products with the inputs and the gradients of weights, is left to a library, for all
steps at once. Arrays are (steps, samples, vectors of the state's width), row by row.
"""

from __future__ import annotations

from llvmlite import ir

from fedsim.learning.executors.compiled.arithmetic import Machine, Value
from fedsim.learning.executors.compiled.emitter import Array, Emitter
from fedsim.learning.executors.compiled.geometry import LANES, vectors_together
from fedsim.learning.executors.compiled.products import in_tiles
from fedsim.learning.executors.fused.cells import CELLS, Cell

__all__ = ["emit_steps", "emit_steps_backward"]

MOST_TOGETHER = 4
"""Vectors of a state that are carried back together."""


def emit_steps(module: ir.Module, kind: str, hidden: int, machine: Machine) -> None:
    """``steps(steps, samples, given, weights, bias, states, memory, kept)``.

    *given* is the inputs' share of the gates, (steps, samples, gates hidden); *weights*, (hidden, gates hidden), and
    *bias* are the recurrent ones. *states* is (steps + 1, samples, hidden), of which the first are there; *memory*,
    (samples, hidden), is there and changes, if the cell has one. *kept* is for `emit_steps_backward`.
    """
    cell, pointers = CELLS[kind], ("given", "weights", "bias", "states", "memory", "kept")
    e = Emitter(module, "steps", pointers, machine, ("steps", "samples"))
    with e.loop(e.count("steps")) as step:
        first = e.build.mul(step, e.samples)

        def tile(begin: Value, size: int, first: Value = first) -> None:
            with e.loop(hidden // LANES) as vector:
                _new_states(e, cell, hidden, first, begin, size, e.index_sum((vector, LANES)))

        in_tiles(e, e.samples, cell.gates, tile)
    e.finish()


def _new_states(e: Emitter, cell: Cell, hidden: int, first: Value, begin: Value, size: int, at: Value) -> None:
    """A vector of the new states of some samples of a step, whose rows start at *first*."""
    before, after = (_rows(e, "states", hidden, 1, row) for row in (first, e.index_sum((first, 1), (e.samples, 1))))
    given, kept = _rows(e, "given", hidden, cell.gates, first), _rows(e, "kept", hidden, cell.kept, first)
    memory = _rows(e, "memory", hidden, 1, e.index(0)) if cell.has_memory else None
    rows = [e.index_sum((begin, 1), (i, 1)) for i in range(size)]
    for row, recurrent in zip(rows, _recurrent(e, cell, hidden, before, rows, at), strict=True):
        new = cell.step(
            e,
            [given.load_vector(row, gate, at) for gate in range(cell.gates)],
            recurrent,
            before.load_vector(row, 0, at),
            memory and memory.load_vector(row, 0, at),
        )
        after.store(new.state, row, 0, at)
        if memory is not None:
            memory.store(new.memory, row, 0, at)
        for kind, value in enumerate(new.kept):
            kept.store(value, row, kind, at)


def _recurrent(e: Emitter, cell: Cell, hidden: int, before: Array, rows: list[Value], at: Value) -> list[list[Value]]:
    """A vector of the recurrent share of each gate, for each of the *rows*."""
    bias, weights = e.array("bias", (hidden, 1)), e.array("weights", (cell.gates * hidden, hidden, 1))
    sums = [[e.variable(bias.load_vector(gate, at)) for gate in range(cell.gates)] for _ in rows]
    with e.loop(hidden) as unit:
        columns = [weights.load_vector(unit, gate, at) for gate in range(cell.gates)]
        for row, of_row in zip(rows, sums, strict=True):
            state = e.broadcast(before.load(row, 0, unit))
            for total, column in zip(of_row, columns, strict=True):
                total.value = e.multiply_add(total.value, state, column)
    return [[total.value for total in of_row] for of_row in sums]


def emit_steps_backward(module: ir.Module, kind: str, hidden: int, machine: Machine) -> None:
    """``steps_backward(steps, samples, d_states, weights, states, kept, d_given, d_gates, d_state, d_memory)``.

    *d_states* is (steps, samples, hidden), *weights* (gates hidden, hidden). *d_given* and *d_gates* are made, (steps,
    samples, gates hidden): of the inputs' and of the recurrent share of the gates, or the latter alone if the cell adds
    them. *d_state* and *d_memory*, (samples, hidden), are zeros before, and belong to the first states then.
    """
    cell = CELLS[kind]
    pointers = ("d_states", "weights", "states", "kept", "d_given", "d_gates", "d_state", "d_memory")
    e = Emitter(module, "steps_backward", pointers, machine, ("steps", "samples"))
    with e.loop(e.count("steps")) as done:
        step = e.index_sum((e.count("steps"), 1), (done, -1), (-1, 1))
        first = e.build.mul(step, e.samples)
        with e.loop(e.samples) as row, e.loop(hidden // LANES) as vector:
            _gate_gradients(e, cell, hidden, first, row, e.index_sum((vector, LANES)))
        _carry_back(e, cell, hidden, first)
    e.finish()


def _gate_gradients(e: Emitter, cell: Cell, hidden: int, first: Value, row: Value, at: Value) -> None:
    """Of one vector of a sample's state."""
    d_state, d_memory = (_rows(e, name, hidden, 1, e.index(0)) for name in ("d_state", "d_memory"))
    kept = _rows(e, "kept", hidden, cell.kept, first)
    found = cell.gradients(
        e,
        [kept.load_vector(row, kind, at) for kind in range(cell.kept)],
        _rows(e, "states", hidden, 1, first).load_vector(row, 0, at),
        e.build.fadd(d_state.load_vector(row, 0, at), _rows(e, "d_states", hidden, 1, first).load_vector(row, 0, at)),
        d_memory.load_vector(row, 0, at) if cell.has_memory else None,
    )
    shares = {"d_gates": found.gates} if cell.adds_shares else {"d_given": found.given, "d_gates": found.gates}
    for name, values in shares.items():
        made = _rows(e, name, hidden, cell.gates, first)
        for gate, value in enumerate(values):
            made.store(value, row, gate, at)
    d_state.store(e.zeros if found.state is None else found.state, row, 0, at)
    if cell.has_memory:
        d_memory.store(found.memory, row, 0, at)


def _carry_back(e: Emitter, cell: Cell, hidden: int, first: Value) -> None:
    """``d_state = d_state + d_gates weights``, gate by gate: shorter sums have smaller rounding errors."""
    together = vectors_together(hidden, MOST_TOGETHER)
    weights, d_gates = e.array("weights", (hidden, 1)), _rows(e, "d_gates", hidden, cell.gates, first)
    d_state = _rows(e, "d_state", hidden, 1, e.index(0))

    def tile(begin: Value, size: int) -> None:
        rows = [e.index_sum((begin, 1), (i, 1)) for i in range(size)]
        with e.loop(hidden // (together * LANES)) as block:
            places = [e.index_sum((block, together * LANES), (v, LANES)) for v in range(together)]
            with e.loop(cell.gates) as gate:
                sums = [[e.variable(e.zeros) for _ in places] for _ in rows]
                with e.loop(hidden) as unit:
                    columns = [weights.load_vector(e.index_sum((gate, hidden), (unit, 1)), at) for at in places]
                    for row, of_row in zip(rows, sums, strict=True):
                        d = e.broadcast(d_gates.load(row, gate, unit))
                        for total, column in zip(of_row, columns, strict=True):
                            total.value = e.multiply_add(total.value, d, column)
                for row, of_row in zip(rows, sums, strict=True):
                    for at, total in zip(places, of_row, strict=True):
                        d_state.store(e.build.fadd(d_state.load_vector(row, 0, at), total.value), row, 0, at)

    in_tiles(e, e.samples, together, tile)


def _rows(e: Emitter, name: str, hidden: int, vectors: int, first: Value) -> Array:
    """(samples, vectors, hidden) from a row on."""
    width = vectors * hidden
    return e.array(name, (width,)).at(first, strides=(width, hidden, 1))
