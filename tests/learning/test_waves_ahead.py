"""How many waves begin ahead of their turn, and that none is left over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from whole_numbers import Bench, Killed, Waving

from fedsim.learning.graph import Handle, Node


class Asked(Waving):
    """Remembers at each wave that is computed how many others had begun; and is told when to forget them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.ahead: list[int] = []

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Any]]:
        if chunk[0].operation.name == "train":
            self.ahead.append(len(self._begun.keys() - {chunk[0]}))
        return super().compute(chunk)


def several_waves(bench: Bench) -> Handle:
    """Nine that need nothing of each other."""
    model = bench.init()
    sums = [bench.fold(model, [bench.train(model, 3 * number + client) for client in range(3)]) for number in range(9)]
    return bench.fold(model, sums)


@pytest.mark.parametrize("lookahead", [0, 1, 4])
def test_as_many_waves_begin_ahead_of_their_turn_as_the_executor_has_use_for(
    lookahead: int, open_bench: Callable[..., Bench]
) -> None:
    bench = open_bench(kind=Asked, lookahead=lookahead)
    bench.value(several_waves(bench))
    assert bench.executor.ahead == [min(lookahead, 8 - number) for number in range(9)]


def test_what_began_is_forgotten_when_a_run_ends_in_the_middle(open_bench: Callable[..., Bench]) -> None:
    bench = open_bench(kind=Asked, lookahead=4, kill_at=6)
    total = several_waves(bench)
    with pytest.raises(Killed):
        bench.value(total)
    assert max(bench.executor.ahead) == 4
    assert not bench.executor._begun
