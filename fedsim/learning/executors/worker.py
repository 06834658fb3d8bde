"""A worker: a process forked from this one, which does jobs one after the other until nobody can ask for more.

It shares the data set, the models' tables and all else that this process has made, and gets nothing but orders. What
lies in shared memory is read and filled there; every other tensor travels with the order or the answer, slowly.

Needs Linux: elsewhere, a fork of a process with libraries like these is not safe. Where there is a GPU, PyTorch lets a
worker compute gradients only if this process has computed none before.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import pickle
import queue
import signal
import sys
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import torch

from fedsim.errors import UserError
from fedsim.learning.executors.handing_over import done
from fedsim.learning.executors.packed import Packed
from fedsim.learning.executors.shared_tensors import BlockAddress, SharedTensors
from fedsim.learning.executors.trainer import Trainer
from fedsim.learning.executors.worker_pool import Job

__all__ = ["Answer", "Failure", "Order", "Worker", "uninterrupted"]


@dataclass(frozen=True)
class Order:
    """A job for a worker."""

    job: Job
    """Without its values."""
    values: Sequence[BlockAddress | Packed]
    outputs: Sequence[Mapping[str, BlockAddress]]
    """Where to put outputs, for each training and then for the sum; the others are sent."""


@dataclass(frozen=True)
class Failure:
    """What doing a job raised, in a form that can be sent."""

    pickled: bytes | None
    message: str
    way: str
    """The traceback, as text."""
    users: bool
    """Whether it is a `UserError`."""

    @classmethod
    def of(cls, error: BaseException) -> Failure:
        """Tell of *error*."""
        try:
            pickled = pickle.dumps(error)
        except Exception:
            pickled = None
        users = isinstance(error, UserError)
        message = str(error) if users else f"{type(error).__name__}: {error}"
        return cls(pickled, message, "".join(traceback.format_exception(error)), users)

    def error(self) -> BaseException:
        """It again, as far as it can be made here; with the way to where it was raised, unless it is the user's."""
        error: BaseException | None = None
        if self.pickled is not None:
            with contextlib.suppress(Exception):
                error = pickle.loads(self.pickled)
        error = error or (UserError if self.users else RuntimeError)(self.message)
        if not self.users:
            error.add_note(f"In a worker process:\n{self.way}")
        return error


@dataclass(frozen=True)
class Answer:
    """What came of an order."""

    result: Any
    """That of the job, with a `BlockAddress` or a `Packed` for each part."""
    failure: Failure | None


_ALIVE: weakref.WeakSet[Worker] = weakref.WeakSet()


class Worker:
    """This process's side of a worker, which begins at once. In it, *hire* makes the trainer of a table's digest.

    A worker ends when `kill` is called, and on its own as soon as this process has ended, however it did.
    """

    def __init__(self, hire: Callable[[str], Trainer], shared: SharedTensors) -> None:
        self.connection, theirs = Pipe()
        self._owner = os.getpid()
        _ALIVE.add(self)
        for stream in (sys.stdout, sys.stderr):  # or what waits to be printed would be printed twice
            stream.flush()
        with uninterrupted(), _no_warning_of_threads():
            self._pid: int | None = _forked()
            if self._pid == 0:
                _work_and_leave(hire, shared, theirs, [worker.connection for worker in _ALIVE])
        theirs.close()

    def send(self, order: bytes) -> None:
        """Give it an `Order`, pickled; it may be at work on another. Raises `OSError` when it has died."""
        self.connection.send_bytes(order)

    def receive(self) -> Answer:
        """Its next answer; waits for it. Raises `EOFError` or `OSError` when it has died."""
        answer: Answer = pickle.loads(self.connection.recv_bytes())
        return answer

    def kill(self) -> int | None:
        """End it now, and wait for that. Returns the signal that ended it; None if it left by itself."""
        if self._pid is None or os.getpid() != self._owner:
            return None
        pid, self._pid = self._pid, None
        self.connection.close()
        os.kill(pid, signal.SIGKILL)
        status = os.waitpid(pid, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else None


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Ctrl-C comes after this, so that no process is made, or half ended, that nobody knows of.

    Only the main thread is ever interrupted by it, whichever thread gets the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if came:
            signal.raise_signal(signal.SIGINT)


@contextlib.contextmanager
def _no_warning_of_threads() -> Iterator[None]:
    """Python 3.12 and later warn when a process with threads forks: what another thread had locked stays locked.

    A worker takes no lock that another thread of this process may hold: it computes, on a pipe, memory and streams of
    its own, and PyTorch has started no threads of its own here, for executors set their number to one.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process .* is multi-threaded, use of fork", DeprecationWarning)
        yield


def _forked() -> int:
    try:
        return os.fork()
    except OSError as error:
        problem = f"no worker process can be started ({error.strerror})"
        raise UserError(f"{problem}; ask for fewer --workers") from None


def _work_and_leave(
    hire: Callable[[str], Trainer], shared: SharedTensors, connection: Connection, others: Sequence[Connection]
) -> NoReturn:
    """All that a worker does. It must never come back to where it was forked, whatever happens."""
    try:
        gc.freeze()  # else looking for garbage would copy the pages that it shares
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that forked it decides
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        # Streams of its own, for another thread may have locked those that were here.
        sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
        for other in others:  # else a worker would keep the pipe of another one open after their master's end
            other.close()
        torch.set_num_threads(1)
        _keep_freed_memory()
        _work(hire, shared, connection)
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody is left to be told
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


def _keep_freed_memory() -> None:
    """Let freed memory stay with this process, where the C library is glibc; elsewhere, or if refused, time is lost.

    At every step of a training the same few megabytes are freed and asked for again. By default they go back to the
    kernel in between, which clears them, page by page.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        for threshold in (-1, -3):  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
            mallopt(threshold, 2**30)


def _work(hire: Callable[[str], Trainer], shared: SharedTensors, connection: Connection) -> NoReturn:
    orders: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(connection, orders), daemon=True).start()
    trainer_of = cache(hire)
    while True:
        order: Order = pickle.loads(orders.get())
        result, failure = None, None
        try:
            result = done(order.job, order.values, order.outputs, trainer_of(order.job.model), shared)
        except BaseException as error:
            failure = Failure.of(_threads_missed(error) or error)
        connection.send_bytes(pickle.dumps(Answer(result, failure)))


def _threads_missed(error: BaseException) -> UserError | None:
    """What to tell of PyTorch's refusal to compute gradients in a worker; None: *error* is another one.

    Where there is a GPU, PyTorch starts threads with the first gradients in a process, and no fork has them.
    """
    if "autograd's threading in combination with fork" not in str(error):
        return None
    return UserError(
        "this process has trained before, on a machine with a GPU, and PyTorch trains in no worker process after that; "
        "begin a new process, or train in this one: --workers 1"
    )


def _receive(connection: Connection, orders: queue.SimpleQueue[bytes]) -> None:
    """Take orders while the worker works, so that neither side ever waits for the other one to read.

    Without a master the work is for nobody: the process ends, in the middle of it.
    """
    try:
        while True:
            orders.put(connection.recv_bytes())
    except (EOFError, OSError):
        os._exit(0)
