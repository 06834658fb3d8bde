"""The tuned loop of the models benchmark: a process of one thread for each core, which waits while nobody asks.

Clients are dealt out evenly and trained one after the other by plain SGD (no optimiser: one call updates all weights);
each process adds its models up, makes its piece of the mean, and scores its share of the test samples. In bfloat16 the
forward pass is under `torch.autocast`. Which layout of a convolution's numbers is the faster one, each model is tried
for once.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
import torch.multiprocessing as multiprocessing
from torch.nn.functional import cross_entropy

from benchmarks.models_tuned import Layout, Tuned, layouts
from benchmarks.models_work import CLIENTS, TESTS, TensorDict, Work, samples_of

TRIES, TRIED_BATCHES = 3, 4


class LoopFailed(Exception):
    """Why the loop could not go on."""


class Loop:
    """The processes, and what they have to do."""

    def __init__(self, processes: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._size = processes
        self._pipes, self._processes = [], []
        for rank in range(processes):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, rank, processes), daemon=True)
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    def begin(self, work: Work, precision: str) -> None:
        """Take up other work, from its start."""
        count = sum(value.numel() for state in work.start().values() for value in state.values())
        base, sums = torch.zeros(count), torch.zeros(self._size, count)
        for shared in (base, sums):
            shared.share_memory_()  # type: ignore[no-untyped-call]
        self.layout: Layout = self._ask("fastest_layout", work, precision, only_first=True)[0]
        self._ask("begin", work, precision, self.layout, base, sums)

    def another(self) -> None:
        """A round; returns when it is done."""
        for phase in ("train", "average", "test"):
            self._ask(phase)

    def model(self) -> dict[str, TensorDict]:
        """What the last round has made."""
        state: dict[str, TensorDict] = self._ask("model", only_first=True)[0]
        return state

    def __enter__(self) -> Loop:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.join()

    def _ask(self, method: str, *arguments: Any, only_first: bool = False) -> list[Any]:
        pipes = self._pipes[:1] if only_first else self._pipes
        for pipe in pipes:
            pipe.send((method, arguments))
        answers = [pipe.recv() for pipe in pipes]
        for answer in answers:
            if isinstance(answer, LoopFailed):
                raise answer
        return answers


def _serve(pipe: Any, rank: int, processes: int) -> None:
    """Do what is asked for until nobody is there to ask."""
    torch.set_num_threads(1)
    worker = _Worker(rank, processes)
    while True:
        try:
            method, arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(getattr(worker, method)(*arguments))
        except Exception as error:
            pipe.send(LoopFailed(f"{type(error).__name__}: {error}"))


class _Worker:
    """One of the processes."""

    def __init__(self, rank: int, processes: int) -> None:
        self._rank, self._processes = rank, processes

    def fastest_layout(self, work: Work, precision: str) -> Layout:
        """By the fastest of some short trainings, each layout in turn."""
        trainers = {layout: Trainer(work, precision, layout, [0]) for layout in layouts(work.table())}
        seconds = dict.fromkeys(trainers, float("inf"))
        for _ in range(TRIES if len(trainers) > 1 else 0):
            for layout, trainer in trainers.items():
                begin_s = time.perf_counter()
                trainer.train(0, most=TRIED_BATCHES)
                seconds[layout] = min(seconds[layout], time.perf_counter() - begin_s)
        return min(seconds, key=lambda layout: seconds[layout])

    def begin(self, work: Work, precision: str, layout: Layout, base: torch.Tensor, sums: torch.Tensor) -> None:
        self._trainer = Trainer(work, precision, layout, self._share(CLIENTS))
        self._base, self._sums = base, sums
        if self._rank == 0:
            base.copy_(self._trainer.flat)

    def train(self) -> None:
        total = self._sums[self._rank]
        total.zero_()
        for client in self._share(CLIENTS):
            self._trainer.load(self._base)
            self._trainer.train(client)
            total += self._trainer.flat

    def average(self) -> None:
        piece = self._share(self._base.numel())
        own = slice(piece.start, piece.stop)
        torch.sum(self._sums[:, own], dim=0, out=self._base[own])
        self._base[own].div_(CLIENTS)

    def test(self) -> float:
        self._trainer.load(self._base)
        return self._trainer.test_loss(self._share(TESTS))

    def model(self) -> dict[str, TensorDict]:
        return self._trainer.tuned.state()

    def _share(self, count: int) -> range:
        return range(*(count * number // self._processes for number in (self._rank, self._rank + 1)))


class Trainer:
    """A resident model, and the samples of some clients."""

    def __init__(self, work: Work, precision: str, layout: Layout, clients: range | list[int]) -> None:
        self._work, self._rate, self._rounds = work, work.model.rate, dict.fromkeys(clients, 0)
        self.tuned = Tuned(work.table(), work.start(), layout, work.model.rate)
        self.flat = self.tuned.flat
        self._bfloat16 = precision == "bfloat16"
        x, y = (torch.from_numpy(array) for array in samples_of(work.model, work.samples))
        self._tests = self.tuned.input(x[:TESTS]), y[:TESTS]
        places = {client: TESTS + client * work.samples for client in clients}
        self._samples = {
            client: (self.tuned.input(x[at : at + work.samples]), y[at : at + work.samples])
            for client, at in places.items()
        }

    def load(self, base: torch.Tensor) -> None:
        self.flat.copy_(base)

    def train(self, client: int, most: int | None = None) -> None:
        """An epoch of the client's samples, or of its first mini-batches."""
        self.tuned.module.train()
        x, y = self._samples[client]
        order = self._work.order(client, self._rounds[client])[: most and most * self._work.batch]
        self._rounds[client] += 1
        shuffled = torch.index_select(x, 0, order, out=torch.empty_like(x[: len(order)]))  # which keeps the layout
        batches = (torch.split(tensor, self._work.batch) for tensor in (shuffled, y[order]))
        for samples, labels in zip(*batches, strict=True):
            with self._precise():
                loss = cross_entropy(self.tuned.module(samples), labels)
            gradients = torch.autograd.grad(loss, self.tuned.stepped)
            with torch.no_grad():
                torch._foreach_add_(self.tuned.stepped, gradients, alpha=-self._rate)

    def test_loss(self, which: range) -> float:
        x, y = (tensor[which.start : which.stop] for tensor in self._tests)
        self.tuned.module.eval()
        with torch.no_grad(), self._precise():
            return float(cross_entropy(self.tuned.module(x), y, reduction="sum"))

    def _precise(self) -> AbstractContextManager[Any]:
        return torch.autocast("cpu", torch.bfloat16) if self._bfloat16 else nullcontext()
