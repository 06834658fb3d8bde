"""pfl-research (Apple): `FederatedAveraging` on a `SimulatedBackend`, with central evaluation after every round.

One process, or one per core when torchrun started it; pfl then shares out the cohort and the test samples itself. Its
central evaluation leaves out the first round, which is a warm-up and not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pfl
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.callback.central_evaluation import CentralEvaluationCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.internal.ops import pytorch_ops
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import nn
from torch.nn.functional import cross_entropy

from benchmarks.peers.work import COHORT, RATE, Record, Work

TEST_BATCH = 250


class Network(nn.Module):
    """What pfl wants of a module: its loss, and what it is scored by."""

    def __init__(self, layers: nn.Sequential) -> None:
        super().__init__()
        self.layers = layers

    def loss(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        self.train()
        return cross_entropy(self.layers(x), y)

    @torch.no_grad()
    def metrics(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, Any]:
        self.eval()
        return {"loss": Weighted(cross_entropy(self.layers(x), y, reduction="sum").item(), len(y))}


class Watch(TrainingProcessCallback):
    """Notes when rounds end; it has to come after the evaluation."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        losses = [value for name, value in aggregate_metrics.to_simple_dict().items() if name.endswith("| loss")]
        self._record.round_done(losses[0] if losses else float("nan"), model.pytorch_model.parameters())
        return False, Metrics()


def users(work: Work) -> Iterator[tuple[int, int]]:
    """Round and position of who trains next."""
    for round_index in range(work.rounds):
        for position in range(COHORT):
            yield round_index, position


def run(work: Work, record: Record) -> None:
    torch.set_num_threads(work.cores // pytorch_ops.distributed.world_size)
    np.random.seed(1)
    record.versions = {"pfl": pfl.__version__, "torch": torch.__version__}
    network, order = Network(work.module()), users(work)
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), lr=1.0))
    clients = FederatedDataset(
        lambda user: Dataset(raw_data=work.shuffled(*user), user_id=str(user)), lambda: next(order)
    )
    evaluation = CentralEvaluationCallback(Dataset(raw_data=work.test), NNEvalHyperParams(local_batch_size=TEST_BATCH))
    FederatedAveraging().run(
        NNAlgorithmParams(
            central_num_iterations=work.rounds, evaluation_frequency=1, train_cohort_size=COHORT, val_cohort_size=0
        ),
        SimulatedBackend(training_data=clients, val_data=clients),
        model,
        NNTrainHyperParams(local_batch_size=work.batch, local_num_epochs=1, local_learning_rate=RATE),
        NNEvalHyperParams(local_batch_size=TEST_BATCH),
        callbacks=[evaluation, Watch(record)],
    )
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # nobody leaves while another one still listens
        torch.distributed.destroy_process_group()
