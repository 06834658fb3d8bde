"""Which filters a client sends, chosen as soon as it has trained, whoever trains; and what the server makes of them.

A choice is a step behind a training, in the same process, and no node of its own: so trainings stay together in waves,
and workers choose side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from fedsim.learning.batches import Seen
from fedsim.learning.executors.summing import summing
from fedsim.learning.executors.trainer import Deliver, TensorDict, Trainer, as_made
from fedsim.learning.executors.wave import Training, Wave
from fedsim.learning.operations.train import BYTES, KEPT, SELECTED, TrainSelecting, sent_as, state_as
from fedsim.learning.selections.selection import Asked, Chosen, Selecting, bytes_kept
from fedsim.models.convolutions import Masks, Skeleton, skeleton_of

__all__ = ["decoded", "pruned", "selects", "trained_and_selected"]

SCORED_TOGETHER = 250
"""Samples, at most."""


def selects(wave: Wave) -> bool:
    """Whether clients of the *wave* send some filters only."""
    return any(isinstance(training.about, TrainSelecting) for training in wave.trainings)


def trained_and_selected(
    trainer: Trainer, wave: Wave, values: Sequence[TensorDict], deliver: Deliver = as_made
) -> list[dict[str, TensorDict]]:
    """As `fedsim.learning.executors.trainer.Trainer.train`, where all trainings of *wave* choose filters."""
    totals = [summing(total, values) for total in wave.sums]
    summed = set(wave.sums[0].trainings) if wave.sums else set()
    trainings = list(enumerate(wave.trainings))
    outputs: list[dict[str, TensorDict]] = []
    for some in [trainings] if trainer.together else [[one] for one in trainings]:
        inner = tuple(replace(training, wanted=_needed(training)) for _, training in some)
        for (number, training), trained in zip(some, trainer.train(Wave(inner), values), strict=True):
            made = _selected(trainer, training, trained, values)
            if number in summed:
                for total in totals:
                    total.add(made)
            outputs.append({name: deliver(number, name, made[name]) for name in training.wanted})
    return [*outputs, *(total.result() for total in totals)]


def _needed(training: Training) -> tuple[str, ...]:
    """The outputs of a training before its choice: the whole model, and whatever else is wanted of it."""
    model = training.sources.model("model")
    assert all(isinstance(source, int) for source in model.values()), "nobody hands on what it has chosen from"
    made_here = {BYTES, KEPT, SELECTED, *map(state_as, _selecting(training).selection.remembers)}
    return tuple(dict.fromkeys((*model, *(name for name in training.wanted if name not in made_here))))


def _selecting(training: Training) -> Selecting:
    about = training.about
    assert isinstance(about, TrainSelecting) and about.selecting, "in a wave all choose filters, or nobody does"
    return about.selecting


def _selected(
    trainer: Trainer, training: Training, trained: dict[str, TensorDict], values: Sequence[TensorDict]
) -> dict[str, TensorDict]:
    """The outputs behind the choice."""
    about, sources = training.about, training.sources
    selection, part, learns, _ = _selecting(training)
    skeleton, stream = skeleton_of(trainer.table), training.stream
    model = {name: trained[name] for name in sources.model("model")}
    state = {name: values[at] for name, at in sources.model("state").items() if isinstance(at, int)}
    assert len(state) == len(sources.model("state")), "a client's trainings that choose filters are no chain"
    assert isinstance(about.seen, Seen), "nobody chooses from what several have trained together"
    client = about.seen.client
    held_back = about.seen.of_it(trainer.dataset, stream.seed).held_back_ids

    def accuracy(masks: Masks, ids: npt.NDArray[np.int64]) -> float:
        batches = [ids[first : first + SCORED_TOGETHER] for first in range(0, len(ids), SCORED_TOGETHER)]
        tried = {**model, part: pruned(model[part], skeleton, masks)}
        scores = trainer.score(tried, batches, [client] * len(batches))
        return 100.0 * sum(score.correct for score in scores) / len(ids)

    def rated(masks: Masks) -> float:
        return accuracy(masks, held_back[client])

    chance = replace(stream, purpose=f"{stream.purpose}/selection").generator()
    chosen = selection.choose(Asked(skeleton, model[part], state, learns, rated, stream.seed, chance))
    received = sources.model("model")[part]
    assert isinstance(received, int)
    made = {**trained, part: decoded(model[part], values[received], skeleton, chosen.masks)}
    for name in about.objective.rebuilt:
        if (sent := sent_as(name, part)) in made:
            nothing = {key: torch.zeros_like(tensor) for key, tensor in made[sent].items()}
            made[sent] = decoded(made[sent], nothing, skeleton, chosen.masks)
    tests = trainer.dataset.client_test_ids[client]
    if len(tests) and not trainer.dataset.regression:  # for people only: no choice ever depends on it
        chosen = chosen._replace(facts={**chosen.facts, "kept_accuracy": accuracy(chosen.masks, tests) / 100})
    kept = [int(mask.sum()) for mask in chosen.masks]
    size = int(bytes_kept(skeleton, trainer.table.bytes(part), kept))
    made |= {state_as(name): dict(value) for name, value in chosen.state.items()}
    return made | {
        BYTES: {BYTES: torch.tensor(size, dtype=torch.int64)},
        KEPT: {
            one.name: torch.from_numpy(mask.copy()).to(trainer.torch_device)
            for one, mask in zip(skeleton.convolutions, chosen.masks, strict=True)
        },
        SELECTED: _facts(skeleton, chosen, kept, size),
    }


def _facts(skeleton: Skeleton, chosen: Chosen, kept: Sequence[int], size: int) -> TensorDict:
    facts: dict[str, float] = {
        "bytes": size,
        "filters_share": sum(kept) / skeleton.filters,
        "flops_share": skeleton.flops_share(kept),
        "present_share": skeleton.present_share(chosen.masks),
        **chosen.facts,
        **{f"filters.{one.name}": number for one, number in zip(skeleton.convolutions, kept, strict=True)},
    }
    return {name: torch.tensor(number, dtype=torch.float64) for name, number in facts.items()}


def decoded(sent: TensorDict, received: Mapping[str, torch.Tensor], skeleton: Skeleton, masks: Masks) -> TensorDict:
    """``where(kept, sent, received)``, filter by filter, in new memory: what the server has of a client's model."""
    made = {name: tensor.clone() for name, tensor in sent.items()}
    for name, keep in _rows(sent, skeleton, masks):
        made[name] = torch.where(keep, sent[name], received[name])
    return made


def pruned(part: TensorDict, skeleton: Skeleton, masks: Masks) -> TensorDict:
    """The part without the filters that are left out: they make zeros, whatever they are given."""
    made = dict(part)
    for name, keep in _rows(part, skeleton, masks):
        if name.rpartition(".")[2] in ("weight", "bias"):  # running statistics may stay: zero times anything
            made[name] = part[name] * keep
    return made


def _rows(part: TensorDict, skeleton: Skeleton, masks: Masks) -> list[tuple[str, torch.Tensor]]:
    """The tensors that have a row for each filter, with what is kept of them, in a shape that goes with theirs."""
    found = []
    for one, mask in zip(skeleton.convolutions, masks, strict=True):
        for name, _ in one.states:
            if name in part:
                tensor = part[name]
                keep = torch.from_numpy(mask).to(tensor.device)
                found.append((name, keep.reshape(-1, *(1 for _ in tensor.shape[1:]))))
    return found
