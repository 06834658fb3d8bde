"""FedLab: its standalone pipeline with the FedAvg server and its serial FedAvg trainer, one process, all cores.

FedLab imports torchvision for data sets that are not used here; an empty module of that name stands in for it, so that
no build of torchvision has to fit the torch. Mini-batches are slices of tensors, which is faster than its data loaders.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import torch

from benchmarks.peers.work import CLIENTS, COHORT, RATE, Batch, Record, Work, test_loss

for name in ("torchvision", "torchvision.datasets", "torchvision.transforms"):
    sys.modules[name] = ModuleType(name)
for name in ("datasets", "transforms"):
    setattr(sys.modules["torchvision"], name, sys.modules[f"torchvision.{name}"])

import fedlab  # noqa: E402
from fedlab.contrib.algorithm.fedavg import FedAvgSerialClientTrainer, FedAvgServerHandler  # noqa: E402
from fedlab.contrib.dataset.basic_dataset import FedDataset  # noqa: E402
from fedlab.core.standalone import StandalonePipeline  # noqa: E402


class Clients(FedDataset):
    """The mini-batches of the round under way."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self.num = CLIENTS
        self.round_index = 0
        self._work = work

    def get_dataloader(self, id: int, batch_size: int, type: str = "train") -> Iterator[Batch]:
        position = self._work.cohorts[self.round_index].tolist().index(id)
        return self._work.batches(self.round_index, position)


class Server(FedAvgServerHandler):
    """Asks the clients that the work names."""

    def __init__(self, work: Work) -> None:
        super().__init__(work.module(), work.rounds, COHORT / CLIENTS)
        self._work = work

    def sample_clients(self) -> list[int]:
        return sorted(self._work.cohorts[self.round].tolist())


class Pipeline(StandalonePipeline):
    """Scores the model after every round."""

    def __init__(self, server: Server, trainer: FedAvgSerialClientTrainer, work: Work, record: Record) -> None:
        super().__init__(server, trainer)
        self._work, self._record = work, record

    def evaluate(self) -> None:
        model = self.handler.model
        self._record.round_done(test_loss(model, self._work.test), model.parameters())
        self.trainer.dataset.round_index = self.handler.round


def run(work: Work, record: Record) -> None:
    torch.set_num_threads(work.cores)
    record.versions = {"fedlab": fedlab.__version__, "torch": torch.__version__}
    server, trainer = Server(work), FedAvgSerialClientTrainer(work.module(), CLIENTS)
    trainer.setup_dataset(Clients(work))
    trainer.setup_optim(epochs=1, batch_size=work.batch, lr=RATE)
    Pipeline(server, trainer, work, record).main()
