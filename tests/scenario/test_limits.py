"""The limits that the tests of hostile input put on time and memory hold."""

from __future__ import annotations

import os
import resource
import signal
import sys

import limits
import pytest
from limits import TooSlow, limited


def test_a_block_that_computes_for_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(limits.ALARMS, signal.SIGPROF, (signal.ITIMER_PROF, 0.05))
    with pytest.raises(TooSlow), limited():
        while True:
            pass


def test_a_block_that_waits_for_ever_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(limits.ALARMS, signal.SIGALRM, (signal.ITIMER_REAL, 0.05))
    read, write = os.pipe()
    with pytest.raises(TooSlow), limited():
        os.read(read, 1)
    os.close(read)
    os.close(write)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells how much memory there is")
def test_a_block_that_takes_too_much_memory_is_ended() -> None:
    with pytest.raises(MemoryError), limited():
        bytearray(2 * limits.MEMORY_BYTES)
    assert bytes(2 * limits.MEMORY_BYTES)  # which asks for it, and writes nothing there


def test_afterwards_all_is_as_it_was() -> None:
    before = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGPROF), resource.getrlimit(resource.RLIMIT_AS)
    with limited():
        assert signal.getsignal(signal.SIGPROF) != before[1]
    assert signal.getitimer(signal.ITIMER_REAL) == signal.getitimer(signal.ITIMER_PROF) == (0.0, 0.0)
    after = signal.getsignal(signal.SIGALRM), signal.getsignal(signal.SIGPROF), resource.getrlimit(resource.RLIMIT_AS)
    assert after == before
