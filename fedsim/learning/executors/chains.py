"""A wave whose trainings gain nothing by being together, as a job for each of its chains.

So workers end at the same time, however different the clients are. Models are added up where the jobs come from, each
as soon as it is its turn: every sum is made in the same order as by the trainer of the whole wave, so to the same bits.
Chains that take next to no time stay together, a few in a job, where there are jobs enough: to give a job to a worker
takes about a millisecond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from fedsim.learning.executors.summing import summing
from fedsim.learning.executors.trainer import TensorDict
from fedsim.learning.executors.wave import Change, Made, Source, Training, Wave
from fedsim.learning.executors.worker_pool import TrainJob

__all__ = ["ChainJob", "Gathering", "chain_jobs"]

LEAST_FLOPS = 2e9
"""Of a job, where its wave has more than enough: some hundredths of a second."""
JOBS_EACH = 2
"""Jobs of a wave, for each worker, that are enough."""


@dataclass(frozen=True)
class ChainJob:
    """Some chains of a wave, as a job."""

    job: TrainJob
    flops: float
    chains: int


def chain_jobs(job: TrainJob, *, flops: float, workers: int) -> list[ChainJob]:
    """The chains of a wave as jobs for so many *workers*, where a sample takes so many *flops*.

    They make what is wanted, and what sums take of each chain's last model.
    """
    trainings, changes = job.wave.trainings, _changes(job.wave)
    work = [flops * sum(trainings[at].about.sizes.total for at in chain) for chain in job.wave.chains]
    ends = {chain[-1] for chain in job.wave.chains}
    return [
        ChainJob(
            _part(job, range(chains[0].start, chains[-1].stop), ends, changes),
            sum(work[at] for at in some),
            len(some),
        )
        for some in _together(work, least=min(LEAST_FLOPS, sum(work) / (JOBS_EACH * workers)))
        if (chains := [job.wave.chains[at] for at in some])
    ]


def _together(work: Sequence[float], *, least: float) -> list[list[int]]:
    """Neighbours together until they take that much *work* at *least*.

    >>> _together([9, 2, 1, 1, 1, 1], least=3)
    [[0], [1, 2], [3, 4, 5]]
    """
    found: list[list[int]] = []
    so_far = least
    for number, some in enumerate(work):
        if so_far >= least:
            found.append([])
            so_far = 0.0
        found[-1].append(number)
        so_far += some
    return found


def _changes(wave: Wave) -> dict[tuple[int, str], Change]:
    """What is handed over as a change: parts of each chain's last model that one sum takes, and nobody else."""
    takers = Counter(part for total in wave.sums for part in total.parts)
    return {
        (number, part): Change(weight, total.base.get(part))
        for total in wave.sums
        for number, weight in zip(total.trainings, total.weights, strict=True)
        for part in total.parts
        if takers[part] == 1 and part not in wave.trainings[number].wanted
    }


def _part(job: TrainJob, some: range, ends: Container[int], changes: Mapping[tuple[int, str], Change]) -> TrainJob:
    """*some* trainings, those at *ends* of chains with all that sums take, as *changes* where they can be."""
    summed = dict.fromkeys(part for total in job.wave.sums for part in total.parts)
    trainings = [
        replace(training, wanted=tuple(dict.fromkeys((*training.wanted, *summed)))) if number in ends else training
        for number in some
        for training in [job.wave.trainings[number]]
    ]
    own = {place: change for place, change in changes.items() if place[0] in some}
    taken = {source for training in trainings for source in training.inputs.values() if isinstance(source, int)}
    taken |= {change.base for change in own.values() if change.base is not None}
    positions = {source: at for at, source in enumerate(sorted(taken))}
    moved = tuple(_moved(training, positions, some.start) for training in trainings)
    handed = {
        (number - some.start, part): change._replace(base=None if change.base is None else positions[change.base])
        for (number, part), change in own.items()
    }
    return TrainJob(Wave(moved), [job.values[source] for source in positions], handed)


def _moved(training: Training, positions: Mapping[int, int], first: int) -> Training:
    """The same where values are at other *positions*, and training *first* is number 0."""

    def moved(source: Source) -> Source:
        return Made(source.training - first, source.output) if isinstance(source, Made) else positions[source]

    return replace(training, inputs={slot: moved(source) for slot, source in training.inputs.items()})


class Gathering:
    """Makes the result of a whole wave's *job* of those of its parts, which it takes in their order."""

    def __init__(self, job: TrainJob) -> None:
        self._totals = [summing(total, job.values) for total in job.wave.sums]
        self._changes = _changes(job.wave)
        self._wanted = [training.wanted for training in job.wave.trainings]
        self._ends = {chain[-1] for chain in job.wave.chains}
        self._made: list[dict[str, TensorDict]] = []

    def take(self, made: Sequence[Mapping[str, TensorDict]]) -> None:
        """Add up the last model of each chain, and keep only what is wanted."""
        for outputs in made:
            number = len(self._made)
            if number in self._ends:
                changes = {part for part in outputs if (number, part) in self._changes}
                for total in self._totals:
                    total.add(outputs, changes)
            self._made.append({name: outputs[name] for name in self._wanted[number]})

    def result(self) -> list[dict[str, TensorDict]]:
        """As of the job."""
        return [*self._made, *(total.result() for total in self._totals)]
