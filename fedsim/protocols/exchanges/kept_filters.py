"""What a run's summary says of the filters that clients have kept last, and of the model that these make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fedsim.models.convolutions import skeleton_of
from fedsim.models.table import FLOPS_PER_MAC, FORWARDS_PER_TRAINING_STEP
from fedsim.protocols.world import Client, World

__all__ = ["kept_columns"]

TOLD = ("filters_share", "flops_share", "present_share", "kept_accuracy", "inference_s", "kept_inference_s")


def kept_columns(world: World, tells: Sequence[str]) -> dict[str, float]:
    """Means over the clients of *world*, each counted once, of what every one tells: `TOLD`, and what a selection
    *tells* besides.

    ``kept_accuracy`` is known where clients have tests of their own. Who has lost its memory since tells nothing.
    """
    told = []
    for client in world.clients:
        if "selected" in client.kept:
            facts = world.learner.facts(client.kept["selected"])
            told.append({**facts, **_inference_seconds(world, client, facts)})
    names = [name for name in (*TOLD, *tells) if told and all(name in each for each in told)]
    return {name: sum(each[name] for each in told) / len(told) for name in names}


def _inference_seconds(world: World, client: Client, facts: Mapping[str, float]) -> dict[str, float]:
    """Of one sample, on the device of *client*: through its model, and through what a selection keeps of it.

    Training on a sample takes three times as long. Left out: what a smaller layer loses in a processor's efficiency.
    """
    table = world.model
    whole = world.compute_seconds(client, 1 / FORWARDS_PER_TRAINING_STEP, world.streams("inference", client.index))
    convolutions = sum(one.macs for one in skeleton_of(table).convolutions) * FLOPS_PER_MAC
    left = 1 - convolutions * (1 - facts["present_share"]) / table.forward_flops_per_sample
    return {"inference_s": whole, "kept_inference_s": whole * left}
