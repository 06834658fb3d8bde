"""The trace: rows in order, cheap by the million, and a digest that every row changes."""

from __future__ import annotations

import itertools
import tracemalloc
from hashlib import blake2b

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsim.kernel.trace import Outcome, Pause, Table, Trace

HOP = (0, 3, 1, True, True, 0.5, 2.0, 0.25, 1.25, 1000.0, 0.0, 0.0, Outcome.ARRIVED)
WORK = (3, 1.5, 2.0, 7.0, 10, Outcome.CANCELLED)
ROUND = (1, 0.0, 19.0, 2, 1, 0, 1, 4, 3)
PAUSE = (2, Pause.DEADLINE, 7.0, 9.0)
MESSAGE = (0, 1)


class SmallBlocks(Table):
    BLOCK_ROWS = 4


def trace_of(hops: int = 1, work: int = 1, rounds: int = 1, pauses: int = 1, station_messages: int = 1) -> Trace:
    trace = Trace()
    for _ in range(hops):
        trace.hops.append(HOP)
    for _ in range(work):
        trace.work.append(WORK)
    for _ in range(rounds):
        trace.rounds.append(ROUND)
    for _ in range(pauses):
        trace.pauses.append(PAUSE)
    for _ in range(station_messages):
        trace.station_messages.append(MESSAGE)
    return trace


@given(
    rows=st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.floats(allow_nan=False))),
    looks=st.sets(st.integers(0, 30)),
)
def test_rows_come_out_as_they_went_in_whenever_somebody_looks(rows: list[tuple[int, float]], looks: set[int]) -> None:
    table = SmallBlocks([("number", "i4"), ("value", "f8")])
    for position, row in enumerate(rows):
        if position in looks:
            assert table.array().tolist() == rows[:position]
        table.append(row)
        assert len(table) == position + 1
    assert table.array().tolist() == rows
    assert table.array().dtype.names == ("number", "value")


@pytest.mark.parametrize("count", [0, 1, Table.BLOCK_ROWS - 1, Table.BLOCK_ROWS, Table.BLOCK_ROWS + 1])
def test_no_row_is_lost_where_blocks_meet(count: int) -> None:
    table = Table([("number", "i8")])
    for number in range(count):
        table.append((number,))
    assert len(table) == count
    assert np.array_equal(table.array()["number"], np.arange(count))


def test_a_million_rows_take_little_more_memory_than_their_numbers() -> None:
    # Measured on the ninth block after eight: what a further row costs, packed, with no block of rows waiting.
    def grow(table: Table, blocks: int) -> None:
        for number in range(blocks * Table.BLOCK_ROWS):
            table.append(
                (number, number % 368, 1, True, True, number * 0.5, number * 0.75, 0.0, 0.25, 26.72e6, 0.0, 0.0, 0)
            )

    trace = Trace()
    tracemalloc.start()
    try:
        grow(trace.hops, 1)
        before, _ = tracemalloc.get_traced_memory()
        grow(trace.hops, 2)
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    itemsize = trace.hops.array().dtype.itemsize
    assert itemsize <= 80
    assert (after - before) / (2 * Table.BLOCK_ROWS) < 1.05 * itemsize


def test_equal_traces_have_equal_digests() -> None:
    assert trace_of().digest() == trace_of().digest()
    assert Trace().digest() == blake2b(b"hopsstation_messagesworkroundspausesgroups", digest_size=16).hexdigest(), (
        "names of tables count"
    )


def test_the_digest_does_not_depend_on_when_somebody_looked() -> None:
    looked_at = trace_of(hops=1)
    looked_at.digest()
    looked_at.hops.append(HOP)
    assert looked_at.digest() == trace_of(hops=2).digest() != trace_of(hops=1).digest()


def test_one_row_more_in_any_table_changes_the_digest() -> None:
    counts = itertools.product((2, 3), repeat=5)
    assert len({trace_of(*count).digest() for count in counts}) == 32


@pytest.mark.parametrize(
    ("table", "row"),
    [("hops", HOP), ("station_messages", MESSAGE), ("work", WORK), ("rounds", ROUND), ("pauses", PAUSE)],
)
def test_any_number_in_a_row_changes_the_digest(table: str, row: tuple[float, ...]) -> None:
    digests = [trace_of().digest()]
    for column, number in enumerate(row):
        trace = trace_of(**{table: 0})
        other = not number if isinstance(number, bool) else number + 1
        trace.tables[table].append((*row[:column], other, *row[column + 1 :]))
        digests.append(trace.digest())
    assert len(set(digests)) == len(row) + 1


def test_the_order_of_rows_changes_the_digest() -> None:
    one, other = Trace(), Trace()
    later = (*WORK[:2], 8.0, 9.0, *WORK[4:])
    for trace, rows in ((one, (WORK, later)), (other, (later, WORK))):
        for row in rows:
            trace.work.append(row)
    assert one.digest() != other.digest()


def test_the_trace_holds_indices_never_labels() -> None:
    kinds = {
        trace_type.kind for table in Trace().tables.values() for trace_type, *_ in table.array().dtype.fields.values()
    }
    assert kinds <= set("iufb")
