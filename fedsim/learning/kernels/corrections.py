"""What each client's own change adds to a product with the matrix that all share: two thin products, one for each.

For a client with rows *x*, factors *left* and *right*, and a coefficient for each row of these ::

    y = y + (x left^T) diag(coefficients) right

A library is called for each of the two, for all clients; its products of five rows with twenty take several times as
long as their arithmetic.
"""

from __future__ import annotations

from llvmlite import ir

from fedsim.learning.kernels.arithmetic import Value
from fedsim.learning.kernels.emitter import Emitter
from fedsim.learning.kernels.loops import in_parts, in_tiles, width_of
from fedsim.learning.kernels.shapes import LANES, MOST_TOGETHER, Machine

__all__ = ["emit_add_correction"]


def emit_add_correction(module: ir.Module, taken: int, made: int, machine: Machine) -> None:
    """``add_correction(clients, samples, rows, capacity, x, left, right, coefficients, y, room)``.

    *x* is (clients, samples, taken), *left* (clients, capacity, taken), *right* (clients, capacity, made),
    *coefficients* (clients, capacity) and *y* (clients, samples, made). The first *rows* of factors are used, and
    *room* is for so many numbers for each sample.
    """
    counts, pointers = ("clients", "samples", "rows", "capacity"), ("x", "left", "right", "coefficients", "y", "room")
    e = Emitter(module, "add_correction", pointers, machine, counts)
    with e.loop(e.count("clients")) as client:
        _emit_thin(e, client, taken)
        _emit_sum(e, client, made)
    e.finish()


def _emit_thin(e: Emitter, client: Value, taken: int) -> None:
    """``room = x left^T diag(coefficients)``: sums by lane and then over lanes."""
    rows, width = e.count("rows"), width_of(e.machine, MOST_TOGETHER)
    first_row = e.build.mul(client, e.count("capacity"))
    x = e.array("x", (taken,)).at(e.build.mul(client, e.samples), strides=(taken, LANES))
    left = e.array("left", (taken,)).at(first_row, strides=(taken, LANES))
    coefficients, room = e.array("coefficients", (1,)).at(first_row), e.array("room", (1,))
    whole, rest = divmod(taken, LANES)

    def some_rows_with(first: Value, samples: int, row: Value, together: int) -> None:
        sums = e.sums(samples, together)
        own, others = x.at(first, strides=(taken, LANES)), left.at(row, strides=(taken, LANES))

        def multiply(column: Value, lanes: Value | None = None) -> None:
            of_rows = [others.load_some(lanes, j, column) for j in range(together)]
            e.add_products(sums, (own.load_some(lanes, i, column) for i in range(samples)), of_rows)

        with e.loop(whole) as column:
            multiply(column)
        if rest:
            multiply(e.index(whole), e.first_lanes(e.index(rest)))
        scales = coefficients.load_vector(row, lanes=together)
        for i, of_sample in enumerate(sums):
            at = e.build.add(e.build.mul(e.index_sum((first, 1), (i, 1)), rows), row)
            room.store(e.build.fmul(e.sums_of_lanes([total.value for total in of_sample]), scales), at)

    def tile(first: Value, size: int) -> None:
        in_parts(e, rows, (width, 1), lambda row, together: some_rows_with(first, size, row, together))

    in_tiles(e, e.samples, width, tile)


def _emit_sum(e: Emitter, client: Value, made: int) -> None:
    """``y = y + room right``, terms in the order of rows."""
    rows, whole, rest = e.count("rows"), made // LANES, made % LANES
    width = width_of(e.machine, whole)
    right = e.array("right", (made,)).at(e.build.mul(client, e.count("capacity")), strides=(made, LANES))
    y = e.array("y", (made,)).at(e.build.mul(client, e.samples), strides=(made, LANES))
    room = e.array("room", (1,))

    def tile(first: Value, size: int) -> None:
        begins = [e.build.mul(e.index_sum((first, 1), (i, 1)), rows) for i in range(size)]

        def add(column: Value, together: int, lanes: Value | None = None) -> None:
            place, of_rows = y.at(first, column, strides=(made, LANES)), right.at(0, column, strides=(made, LANES))
            sums = [[e.variable(place.load_some(lanes, i, j)) for j in range(together)] for i in range(size)]
            with e.loop(rows) as row:
                some = [of_rows.load_some(lanes, row, j) for j in range(together)]
                factors = (e.broadcast(room.load(e.build.add(begin, row))) for begin in begins)
                e.add_products(sums, factors, some)
            for i, of_sample in enumerate(sums):
                for j, total in enumerate(of_sample):
                    place.store_some(lanes, total.value, i, j)

        with e.loop(whole // width) as block:
            add(e.index_sum((block, width)), width)
        if rest:
            add(e.index(whole), 1, e.first_lanes(e.index(rest)))

    in_tiles(e, e.samples, width, tile)
