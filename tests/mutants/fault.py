"""What a planted fault is, and the places and tests that several kinds of them are for."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    *("BATCHED", "CHANNELS", "CORNERS", "EXECUTORS", "FAIR", "KERNELS", "LOW_RANK", "TRAINER"),
    *("Fault", "exact", "exact_of_several", "theory"),
]

CHANNELS = "tests/network/test_channels.py"
FAIR = "tests/network/test_fair_channel.py"
CORNERS = "tests/learning/test_batched_corners.py"
EXECUTORS = "fedsim/learning/executors/"
BATCHED = EXECUTORS + "batched/"
KERNELS = "fedsim/learning/kernels/"
LOW_RANK = BATCHED + "low_rank.py"
TRAINER = BATCHED + "trainer.py"


def theory(*tests: str) -> tuple[str, ...]:
    """Those tests of queueing theory."""
    return tuple(f"tests/laws/test_queueing_theory.py::{test}" for test in tests)


def exact(discipline: str) -> str:
    """The comparison of its channel with exact arithmetic."""
    test = "test_a_channel_agrees_with_its_exact_twin_in_few_events_and_looking_changes_nothing"
    return f"tests/network/test_exact_channels.py::{test}[{discipline}-0.0]"


def exact_of_several(discipline: str) -> str:
    """The same with several carriers."""
    return f"tests/network/test_exact_channels.py::test_so_does_a_channel_of_several_carriers[{discipline}-0.0]"


@dataclass(frozen=True)
class Fault:
    """A change of one place in the source."""

    name: str
    """What is wrong then."""
    path: str
    text: str
    """Where it is: occurs once in the file."""
    instead: str
    tests: tuple[str, ...]
    """Those that should see it."""
    by_each: bool = False
    """Whether each of the tests must see it; otherwise one is enough."""

    def planted_in(self, sound: str) -> str:
        """The file with the fault. Raises `ValueError` when the place is not found, or more than one is."""
        if (found := sound.count(self.text)) != 1:
            raise ValueError(f"{self.name}: {self.text!r} occurs {found} times in {self.path}, not once")
        return sound.replace(self.text, self.instead)
