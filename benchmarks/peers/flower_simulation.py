"""Flower's simulation runtime on Ray: the `FedAvg` strategy, scored by the server.

Messages go to any thirty of the hundred virtual nodes and say which client to be, as node ids are drawn anew in each
run. Actors keep the data from one message to the next. *as_usual* is Flower as it comes: two cores for a client, which
is its default, and threads as torch and Ray choose them; trained as in its quickstart for PyTorch, where each message
makes a module, and a `DataLoader` for the client's samples. But samples are tensors in memory, in the order that the
work says, and clients score nothing. *resident* is tuned, so that no time is spent on what a user
could save: an actor with one thread for each core, which keeps the module, and mini-batches that are slices of tensors.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import astuple
from functools import cache
from pathlib import Path
from typing import Any

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "RAY_USAGE_STATS_ENABLED": "0"}

import flwr
import ray
import torch
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.peers.work import CLIENTS, COHORT, RATE, SAMPLES, Batch, Record, Work, test_loss


@cache
def resident_work(folder: str, *numbers: Any) -> Work:
    """The work, once in each actor."""
    return Work(Path(folder), *numbers)


@cache
def resident_module(work: Work) -> nn.Sequential:
    """A module, once in each actor, which has one thread from then on."""
    torch.set_num_threads(1)
    return work.untrained()


def train_as_usual(message: Message, context: Context) -> Message:
    work, round_index, position = assignment(message)
    module = work.untrained()
    module.load_state_dict(message.content["arrays"].to_torch_state_dict())
    samples = DataLoader(TensorDataset(*work.shuffled(round_index, position)), batch_size=work.batch)
    return trained(message, module, samples)


def train_resident(message: Message, context: Context) -> Message:
    work, round_index, position = assignment(message)
    module = resident_module(work)
    module.load_state_dict(message.content["arrays"].to_torch_state_dict())
    return trained(message, module, work.batches(round_index, position))


def assignment(message: Message) -> tuple[Work, int, int]:
    """The work, which round it is, and the position in its cohort."""
    config = message.content["config"]
    work = resident_work(*(config[f"work-{number}"] for number in range(5)))
    return work, config["server-round"] - 1, config["position"]


def trained(message: Message, module: nn.Module, batches: Iterable[Batch]) -> Message:
    """One epoch, and the answer."""
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    for x, y in batches:
        optimiser.zero_grad()
        cross_entropy(module(x), y).backward()
        optimiser.step()
    content = {"arrays": ArrayRecord(module.state_dict()), "metrics": MetricRecord({"num-examples": SAMPLES})}
    return Message(content=RecordDict(content), reply_to=message)


class Cohorts(FedAvg):
    """Tells thirty nodes whom to be."""

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        nodes = list(grid.get_node_ids())[:COHORT]
        for position, node in enumerate(nodes):
            own = ConfigRecord({**config, "server-round": server_round, "position": position})
            content = RecordDict({"arrays": arrays, "config": own})
            yield Message(content=content, message_type="train", dst_node_id=node)


def as_usual(work: Work, record: Record) -> None:
    run(work, record, train_as_usual, {})


def resident(work: Work, record: Record) -> None:
    run(work, record, train_resident, {"client_resources": {"num_cpus": 1, "num_gpus": 0.0}})


def run(
    work: Work, record: Record, train: Callable[[Message, Context], Message], resources: dict[str, dict[str, float]]
) -> None:
    """*resources* are what Flower's backend gives a client, where that is not its default."""
    torch.set_num_threads(work.cores)
    record.versions = {"flwr": flwr.__version__, "ray": ray.__version__, "torch": torch.__version__}
    module, server_app, client_app = work.module(), ServerApp(), ClientApp()
    client_app.train()(train)
    facts = astuple(work)
    config = ConfigRecord({f"work-{number}": fact if number else str(fact) for number, fact in enumerate(facts)})

    def score(server_round: int, arrays: ArrayRecord) -> MetricRecord:
        module.load_state_dict(arrays.to_torch_state_dict())
        loss = test_loss(module, work.test)
        if server_round:
            record.round_done(loss, module.parameters())
        return MetricRecord({"loss": loss})

    @server_app.main()
    def serve(grid: Grid, context: Context) -> None:
        Cohorts(fraction_train=COHORT / CLIENTS, fraction_evaluate=0.0, min_available_nodes=CLIENTS).start(
            grid=grid,
            initial_arrays=ArrayRecord(module.state_dict()),
            num_rounds=work.rounds,
            train_config=config,
            evaluate_fn=score,
        )

    run_simulation(
        server_app,
        client_app,
        num_supernodes=CLIENTS,
        backend_config={
            "init_args": {"num_cpus": work.cores, "_temp_dir": str(work.folder / "ray")},  # and not left behind
            **resources,
        },
    )
