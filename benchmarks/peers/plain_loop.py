"""The loop that everybody writes first: `torch.optim.SGD`, one client after the other, one process, all cores."""

from __future__ import annotations

import torch
from torch.nn.functional import cross_entropy

from benchmarks.peers.work import COHORT, RATE, Record, Work, test_loss


def as_usual(work: Work, record: Record) -> None:
    torch.set_num_threads(work.cores)
    record.versions = {"torch": torch.__version__}
    module = work.module()
    for round_index in range(work.rounds):
        base = [parameter.detach().clone() for parameter in module.parameters()]
        total = [torch.zeros_like(value) for value in base]
        for position in range(COHORT):
            with torch.no_grad():
                for parameter, value in zip(module.parameters(), base, strict=True):
                    parameter.copy_(value)
            optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
            for x, y in work.batches(round_index, position):
                optimiser.zero_grad()
                cross_entropy(module(x), y).backward()
                optimiser.step()
            for sum_of_models, parameter in zip(total, module.parameters(), strict=True):
                sum_of_models += parameter.detach()
        with torch.no_grad():
            for parameter, sum_of_models in zip(module.parameters(), total, strict=True):
                parameter.copy_(sum_of_models / COHORT)
        record.round_done(test_loss(module, work.test), module.parameters())
