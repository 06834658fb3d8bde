"""An update as the server reads it: what a training has made, written by its codec and read again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import torch

from fedsim.learning.executors.tensor_dict import TensorDict, by_full_name
from fedsim.learning.executors.wave import Training
from fedsim.learning.objectives.objective import State
from fedsim.learning.operations.train import BYTES, state_as

__all__ = ["coded"]


def coded(
    training: Training,
    received: Mapping[str, TensorDict],
    trained: Mapping[str, TensorDict],
    state: State,
    *,
    names: Iterable[str],
) -> dict[str, TensorDict]:
    """The model as it is read, what the codec keeps, and the bytes.

    *names* are those of the trained parameters, whose change is coded; the rest of the model is handed on as it is.
    """
    codec, stream = training.about.codec, training.stream
    begin, end = by_full_name(received), by_full_name(trained)
    change = {name: end[name] - begin[name] for name in names}
    chance = replace(stream, purpose=f"{stream.purpose}/codec").generator()
    read, kept, size = codec.coded(change, {name: state[name] for name in codec.remembers if name in state}, chance)
    made = {
        part: {
            name: begin[full] + read[full] if (full := f"{part}.{name}") in change else tensor
            for name, tensor in tensors.items()
        }
        for part, tensors in trained.items()
    }
    made |= {state_as(name): dict(value) for name, value in kept.items()}
    return made | {BYTES: {BYTES: torch.tensor(size, dtype=torch.int64)}}
