"""The plain loop as somebody writes it who wants it fast, still one client after the other.

What it does beyond the usual loop: images channels last, pooling before the rectifier (they commute), dense layers
whose backward pass updates the weights in place (no gradient of 26 MB is written and read again), one flat buffer for
all parameters, sums of models in that buffer, one thread per process with clients handed out as workers become free.
Left out: anything that trains clients together.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.multiprocessing as multiprocessing
from torch.nn.functional import conv2d, cross_entropy, max_pool2d, relu_

from benchmarks.peers.work import COHORT, MODELS, RATE, TESTS, Record, Work

TEST_CHUNK = 100
PATIENCE_S = 120.0
"""A worker that has not come by then is dead, and so is the run."""


class UpdatingLinear(torch.autograd.Function):
    """A dense layer that takes its step of SGD while it hands the gradient back."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        context.save_for_backward(x, weight, bias)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(context: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        x, weight, bias = context.saved_tensors
        (gradient,) = gradients
        handed_back = gradient @ weight
        weight.addmm_(gradient.t(), x, alpha=-RATE)
        bias.sub_(gradient.sum(0), alpha=RATE)
        return handed_back, None, None


class Trainer:
    """A resident model in one flat buffer."""

    def __init__(self, work: Work) -> None:
        self._work = work
        _, _, self._widths = MODELS[work.model]
        start = work.start()
        self.flat = torch.empty(sum(value.numel() for value in start))
        self._views: list[torch.Tensor] = []
        place = 0
        for value in start:
            piece = self.flat[place : place + value.numel()]
            place += value.numel()
            if value.dim() == 4:
                outputs, inputs, height, width = value.shape
                view = piece.view(outputs, height, width, inputs).permute(0, 3, 1, 2)  # channels last
            else:
                view = piece.view(value.shape)
            self._views.append(view.copy_(value).data)  # data: each counts its own changes, for autograd's checks
        self._convolutions = [view.requires_grad_() for view in self._views[:4]]

    def load(self, base: torch.Tensor) -> None:
        self.flat.copy_(base)

    def parameters(self) -> list[torch.Tensor]:
        """In the shapes and the order of the work's start."""
        return [view.detach() for view in self._views]

    def train(self, round_index: int, position: int) -> None:
        for x, y in self._work.batches(round_index, position):
            loss = cross_entropy(self._scores(x), y)
            loss.backward()
            with torch.no_grad():
                for weight in self._convolutions:
                    assert weight.grad is not None
                    weight.sub_(weight.grad, alpha=RATE)
                    weight.grad = None

    def test_loss(self, first: int, last: int) -> float:
        """The sum of the losses of some test samples."""
        x, y = self._work.test
        with torch.no_grad():
            return sum(
                float(cross_entropy(self._scores(some), labels, reduction="sum"))
                for some, labels in zip(x[first:last].split(TEST_CHUNK), y[first:last].split(TEST_CHUNK), strict=True)
            )

    def _scores(self, x: torch.Tensor) -> torch.Tensor:
        first, first_bias, second, second_bias = self._convolutions
        h = x.contiguous(memory_format=torch.channels_last)
        h = relu_(max_pool2d(conv2d(h, first, first_bias, padding=2), 2))
        h = relu_(max_pool2d(conv2d(h, second, second_bias, padding=2), 2)).flatten(1)
        dense = self._views[4:]
        for number, (weight, bias) in enumerate(zip(dense[::2], dense[1::2], strict=True)):
            h = UpdatingLinear.apply(h, weight, bias)
            if number < len(dense) // 2 - 1:
                h = relu_(h)
        return h


def one_process(work: Work, record: Record) -> None:
    torch.set_num_threads(work.cores)
    record.versions = {"torch": torch.__version__}
    trainer = Trainer(work)
    base = trainer.flat.clone()
    for round_index in range(work.rounds):
        total = torch.zeros_like(base)
        for position in range(COHORT):
            trainer.load(base)
            trainer.train(round_index, position)
            total += trainer.flat
        torch.div(total, COHORT, out=base)
        trainer.load(base)
        record.round_done(trainer.test_loss(0, TESTS) / TESTS, trainer.parameters())


def process_per_core(work: Work, record: Record) -> None:
    record.versions = {"torch": torch.__version__}
    context = multiprocessing.get_context("spawn")
    size = sum(value.numel() for value in work.start())
    base, sums = torch.empty(size).share_memory_(), torch.zeros(work.cores, size).share_memory_()
    losses = torch.zeros(work.cores, dtype=torch.float64).share_memory_()
    barrier, next_position = context.Barrier(work.cores + 1, timeout=PATIENCE_S), context.Value("i", 0)
    arguments = (work, base, sums, losses, barrier, next_position)
    workers = [context.Process(target=_work_on, args=(rank, *arguments), daemon=True) for rank in range(work.cores)]
    trainer = Trainer(work)
    base.copy_(trainer.flat)
    for worker in workers:
        worker.start()
    for _ in range(work.rounds):
        next_position.value = 0
        barrier.wait()  # the round begins
        barrier.wait()  # everybody has trained
        torch.div(sums.sum(0), COHORT, out=base)
        barrier.wait()  # the mean is there
        barrier.wait()  # everybody has tested
        trainer.load(base)
        record.round_done(float(losses.sum()) / TESTS, trainer.parameters())
    for worker in workers:
        worker.join()


def _work_on(
    rank: int, work: Work, base: torch.Tensor, sums: torch.Tensor, losses: torch.Tensor, barrier: Any, counter: Any
) -> None:
    torch.set_num_threads(1)
    trainer = Trainer(work)
    tests = [TESTS * number // work.cores for number in (rank, rank + 1)]
    for round_index in range(work.rounds):
        barrier.wait()
        sums[rank].zero_()
        while (position := _next(counter)) < COHORT:
            trainer.load(base)
            trainer.train(round_index, position)
            sums[rank] += trainer.flat
        barrier.wait()
        barrier.wait()
        trainer.load(base)
        losses[rank] = trainer.test_loss(*tests)
        barrier.wait()


def _next(counter: Any) -> int:
    with counter.get_lock():
        counter.value += 1
        return int(counter.value) - 1
