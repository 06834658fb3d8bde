"""Flower's simulation runtime on Ray: the `FedAvg` strategy, one actor with one thread per core, scored by the server.

Messages go to any thirty of the hundred virtual nodes and say which client to be, as node ids are drawn anew in each
run. Actors keep module and data from one message to the next, so that no time is spent on what a user could save.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
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

from benchmarks.peers.work import CLIENTS, COHORT, RATE, SAMPLES, Record, Work, test_loss

client_app = ClientApp()


@cache
def resident(folder: str, *numbers: Any) -> tuple[Work, nn.Sequential]:
    """The work and a module, once in each actor."""
    torch.set_num_threads(1)
    work = Work(Path(folder), *numbers)
    return work, work.module()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    config = message.content["config"]
    work, module = resident(*(config[f"work-{number}"] for number in range(5)))
    module.load_state_dict(message.content["arrays"].to_torch_state_dict())
    optimiser = torch.optim.SGD(module.parameters(), lr=RATE)
    for x, y in work.batches(config["server-round"] - 1, config["position"]):
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


def run(work: Work, record: Record) -> None:
    torch.set_num_threads(work.cores)
    record.versions = {"flwr": flwr.__version__, "ray": ray.__version__, "torch": torch.__version__}
    module, server_app = work.module(), ServerApp()
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
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
