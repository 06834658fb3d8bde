"""Any program of expressions, killed anywhere and resumed, gives what direct evaluation gives."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st
from tiers import drawn
from whole_numbers import EVALUATE, INIT, Bench, Killed, folded, made, training, weights_of

from fedsim.kernel.streams import Stream
from fedsim.learning.graph import Handle
from fedsim.learning.operations.operation import Slot

ANY = st.integers(0, 10**6)  # which of what is held, counted round and round
STEP = st.one_of(
    st.tuples(st.just("init"), st.integers(0, 2)),
    st.tuples(st.just("train"), st.lists(ANY, min_size=1, max_size=3), st.integers(0, 3), st.sampled_from("vw")),
    st.tuples(st.just("fold"), ANY, st.lists(ANY, min_size=1, max_size=6)),
    st.tuples(st.just("evaluate"), ANY),
    st.tuples(st.just("force"), ANY),
    st.tuples(st.just("drop"), ANY),
)
PROGRAM = st.lists(STEP, min_size=3, max_size=50).map(lambda steps: [("init", 0), *steps, ("force", 0), ("force", 1)])
KILLS = st.lists(st.integers(1, 12), max_size=5)


def directly(program: list[Any]) -> list[int]:
    """The values of everything that a program forces."""
    held, values = [], []
    for kind, *choice in program:
        if kind == "init":
            held.append(made(INIT, Stream(1, "init", 0, choice[0]).text, {}, "v"))
        elif kind == "train":
            sources, client, output = choice
            inputs = {Slot("model", n, "v"): held[source % len(held)] for n, source in enumerate(sources)}
            held.append(made(training(client), Stream(1, "batches", client).text, inputs, output))
        elif kind == "fold":
            base, contributions = choice
            taken = [held[one % len(held)] for one in contributions]
            held.append(folded(held[base % len(held)], taken, weights_of(len(taken))))
        elif kind == "evaluate":
            values.append(made(EVALUATE, None, {Slot("model", part="v"): held[choice[0] % len(held)]}, "metrics"))
        elif kind == "force":
            values.append(held[choice[0] % len(held)])
        elif len(held) > 1:
            del held[choice[0] % len(held)]
    return values


def lazily(bench: Bench, program: list[Any], values: list[int], *, distinct: bool = False) -> None:
    """The same through a graph; *values* grows as far as the program gets. *distinct*: no training is repeated."""
    held: list[Handle] = []
    for position, (kind, *choice) in enumerate(program):
        if kind == "init":
            held.append(bench.init(choice[0]))
        elif kind == "train":
            sources, client, output = choice
            inputs = {Slot("model", n, "v"): held[source % len(held)] for n, source in enumerate(sources)}
            stream = Stream(1, "batches", client, position if distinct else 0)
            held.append(bench.graph.node(training(client), inputs, stream=stream).output(output))
        elif kind == "fold":
            base, contributions = choice
            held.append(bench.fold(held[base % len(held)], [held[one % len(held)] for one in contributions]))
        elif kind == "evaluate":
            values.append(bench.value(bench.evaluate(held[choice[0] % len(held)])))
        elif kind == "force":
            values.append(bench.value(held[choice[0] % len(held)]))
        elif len(held) > 1:
            del held[choice[0] % len(held)]


def killed_and_resumed(
    folder: Path, program: list[Any], kills: list[int], expected: list[int], *, distinct: bool = False, **options: Any
) -> None:
    """Run it until it is finished, dying at each of the *kills* on the way; all values must be the expected ones."""
    for kill_at in (*kills, float("inf")):
        bench = Bench(folder, kill_at=kill_at, **options)
        values: list[int] = []
        with suppress(Killed):
            lazily(bench, program, values, distinct=distinct)
        bench.store.close()
        assert values == expected[: len(values)]
        loaded = any(row["event"] == "loaded" for row in bench.rows())
        event(f"killed: {kill_at <= bench.executor.steps}, something was loaded: {loaded}")
    assert values == expected


@drawn(80)
@given(program=PROGRAM, kills=KILLS, every=st.sampled_from([1, 2, 5]), group=st.integers(1, 4))
def test_forced_values_equal_direct_evaluation_wherever_the_run_is_killed(
    program: list[Any], kills: list[int], every: int, group: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        expected = directly(program)
        killed_and_resumed(Path(folder), program, kills, expected, checkpoint_every=every, group=group)


@drawn(50)
@given(program=PROGRAM, kills=KILLS, every=st.sampled_from([1, 2, 5]), group=st.integers(2, 4))
def test_chunks_are_the_same_wherever_the_run_is_killed(
    program: list[Any], kills: list[int], every: int, group: int
) -> None:
    """Here the numbers depend on who is computed together."""
    options: dict[str, Any] = {"checkpoint_every": every, "group": group, "composition": True, "distinct": True}
    with tempfile.TemporaryDirectory() as folder:
        expected: list[int] = []
        whole = Bench(Path(folder) / "whole", group=group, composition=True)
        lazily(whole, program, expected, distinct=True)
        whole.store.close()
        killed_and_resumed(Path(folder) / "killed", program, kills, expected, **options)
