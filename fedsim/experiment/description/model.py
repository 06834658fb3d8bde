"""What a scenario's model is like, in numbers: its parts, its work, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fedsim.errors import UserError
from fedsim.experiment.training_memory import activation_bytes
from fedsim.learning.executors.choice import AUTO, ByProtocol, choose
from fedsim.learning.training import TrainingSettings
from fedsim.models.table import ModelTable

__all__ = ["model_facts"]


def model_facts(
    name: str,
    table: ModelTable,
    training: TrainingSettings,
    tables: Sequence[ModelTable] = (),
    protocols: Mapping[str, ByProtocol] | None = None,
) -> dict[str, Any]:
    """The model's parts and work, and the least memory that training takes; None where it is not declared.

    ``training_memory_bytes`` holds weights, gradients and momentum, and what every layer gives for each sample of a
    mini-batch, as far as layers are known; all as float32. Left out: what a deep-learning library needs beside them.
    ``executor`` is what ``--executor auto`` stands for on a CPU, and why, where all *tables* are trained; its
    ``remark`` is about what *protocols* train, by title.
    """
    parameters = table.parameters()
    parts = [
        {
            "part": part,
            "parameters": table.parameters(part),
            "bytes": table.bytes(part),
            "share": table.bytes(part) / table.bytes(),
        }
        for part in table.parts
    ]
    forward: float | None
    step: float | None
    try:
        forward, step = table.forward_flops_per_sample, table.training_flops_per_sample
    except UserError:  # only declared, and not needed
        forward = step = None
    activations = activation_bytes(table, training.batch_size)
    choice = choose(AUTO, tables or [table], "cpu", protocols) if table.trainable else None
    copies = 3 if training.momentum else 2
    return {
        "name": name,
        "parameters": parameters,
        "bytes": table.bytes(),
        "parts": parts,
        "outputs": getattr(table, "outputs", None),
        "initialisation": getattr(table, "initialisation", None),
        "forward_flops_per_sample": forward,
        "training_flops_per_sample": step,
        "activation_bytes": activations,
        "training_memory_bytes": copies * table.bytes() + (activations or 0.0) if table.trainable else None,
        "executor": choice and choice._asdict(),
    }
