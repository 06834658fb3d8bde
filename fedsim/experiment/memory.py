"""The memory that a run takes, known before anything is trained: what does not fit is refused before it runs.

A client's state may be as large as the model, and there may be hundreds of clients. What training takes besides is
known of the plain loop. Left out: the semantics of SCC, which are rows and not models.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fedsim.errors import UserError
from fedsim.experiment.training_memory import samples_bytes, training_bytes
from fedsim.learning.executors.batched.support import why_not
from fedsim.learning.executors.schedule import WAITING, side_by_side
from fedsim.learning.rules.changes import partial_sums
from fedsim.models.segmented import whole
from fedsim.models.table import ModelTable
from fedsim.protocols.combination import Combination
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials
from fedsim.scenario.schema import Scenario
from fedsim.units import si

__all__ = ["Kept", "Peak", "check_memory", "free_bytes", "kept_by", "peak_of"]

CGROUP = Path("/sys/fs/cgroup")
MEMINFO = Path("/proc/meminfo")
UNEVEN = 2
"""Times as many samples as the client with the fewest has the one with the most, from which on models wait longer."""
PROGRAM_BYTES = 310e6
"""Python with all libraries, torch among them."""
WORKER_BYTES = 90e6
"""A worker's own, beside what it shares with the process that it was forked from."""


class Kept(NamedTuple):
    """Bytes in float32, of one protocol."""

    client: float
    """That each client keeps from one training to the next, in the mean."""
    clients: int
    """How many clients do, at most: those that there are, or that the run's rounds ask."""
    server: float
    """That the server keeps beside the model; where it has means of layers, all of these."""
    update: float
    """Of each update, until all of a round are there."""
    updates: int
    """In a round, at most."""

    @property
    def total(self) -> float:
        """All of that."""
        return self.client * self.clients + self.server + self.update * self.updates


class Peak(NamedTuple):
    """Bytes of a run with some workers when it takes most, roughly; what processes share counts once."""

    workers: int
    program: float
    """Of the program in all processes, and of the samples."""
    kept: float
    """Of models, and of what clients and the server keep beside them."""
    waves: float
    """Of sums of updates, of models that are yet to be added up, and of clients' new ones beside their old ones."""
    training: float
    """Of all processes that train: their modules, gradients, momentum and activations."""

    @property
    def total(self) -> float:
        """All of that."""
        return self.program + self.learning

    @property
    def learning(self) -> float:
        """All but the program."""
        return self.kept + self.waves + self.training


class _Kind(NamedTuple):
    """Clients with the same model."""

    table: ModelTable
    clients: int
    in_round: int
    """Of them, in the mean, rounded up."""
    private: float
    """Bytes that each keeps to itself: of the model, and of what its objective remembers."""
    shared: float
    """Bytes of the model that are averaged."""


class _Stage(NamedTuple):
    """What a protocol trains, of one of the models that follow each other."""

    kinds: list[_Kind]
    in_round: int
    """Clients in a round, in the mean, rounded up."""
    means: float
    """Bytes of all means of layers."""

    @property
    def largest(self) -> ModelTable:
        """The largest of its models."""
        return max((kind.table for kind in self.kinds), key=lambda table: table.bytes())


def _stages(protocol: Combination, materials: Materials) -> list[_Stage]:
    cohort, exchange, objective, *_ = protocol.parts
    number = len(materials.topology.sensors)
    in_round = min(number, math.ceil(cohort.mean_size(number)))
    if exchange.several_models:
        adapted = {table.digest: materials.table_for(protocol, table) for table in materials.tables}
        every = [[adapted[table.digest] for table in materials.client_tables]]
    else:
        every = [[table] * number for table in materials.models_for(protocol, materials.table)]

    def kind(table: ModelTable, members: int, clients: Sequence[ModelTable]) -> _Kind:
        own = exchange.kept_bytes(table, clients)
        some = math.ceil(members * in_round / number)
        remembered = objective.kept_bytes(table) + exchange.remembered_bytes(table)
        return _Kind(table, members, some, own + remembered, table.bytes() - own)

    stages = []
    for clients in every:
        tables, numbers = {table.digest: table for table in clients}, Counter(table.digest for table in clients)
        kinds = [kind(tables[digest], members, clients) for digest, members in numbers.items()]
        stages.append(_Stage(kinds, in_round, exchange.means_bytes(clients, in_round)))
    return stages


def kept_by(protocol: Protocol, scenario: Scenario, materials: Materials) -> Kept | None:
    """What *protocol* keeps, of the largest of the models that it trains; None where nothing is kept, or not known."""
    if not isinstance(protocol, Combination):
        return None
    kept = max((_kept(protocol, one, scenario, materials) for one in _stages(protocol, materials)), key=_total)
    return kept if kept.total else None


def _total(kept: Kept) -> float:
    return kept.total


def _kept(protocol: Combination, one: _Stage, scenario: Scenario, materials: Materials) -> Kept:
    server, rounds = protocol.server, (protocol.stop or scenario.stop).rounds
    topology = materials.topology
    number = len(topology.sensors)
    asked = number if rounds is None else min(number, rounds * one.in_round)
    has_own = protocol.parts.exchange.several_models  # each client has a model from the beginning
    at_stations = protocol.when().at_stations
    waits = max(kind.shared for kind in one.kinds) if protocol.measured_size else 0.0  # its size is asked for before
    updates = len({topology.cell_of(sensor) for sensor in topology.sensors}) if at_stations else one.in_round
    return Kept(
        client=sum(kind.private * kind.clients for kind in one.kinds) / number,
        clients=number if has_own else asked,
        server=server.kept_bytes(one.largest) + one.means,
        update=server.held_bytes(one.largest) + waits,
        updates=updates,
    )


def peak_of(
    protocol: Protocol, scenario: Scenario, materials: Materials, *, executor: str, workers: int
) -> Peak | None:
    """What *protocol* takes when an *executor* trains in so many *workers*; None where that is not known.

    It is known where the executor of that name trains in the plain loop.
    """
    if not isinstance(protocol, Combination) or not _in_the_plain_loop(protocol, materials, executor):
        return None
    _, exchange, objective, *_ = protocol.parts
    settings, dataset = protocol.training or scenario.training, materials.dataset
    apart, samples = workers if workers > 1 else 0, dataset.client_samples
    uneven = bool(samples.max() > UNEVEN * max(1, samples.min()))
    peaks = []
    for one in _stages(protocol, materials):
        shared = max(kind.shared for kind in one.kinds)
        waiting = _waiting(one.kinds, workers, uneven=uneven)
        waves = _sums(one.kinds) + waiting + _made_anew(one.kinds, workers)
        tables = [kind.table for kind in one.kinds]
        each = training_bytes(tables, objective, settings, dataset, hands_over=workers > 1)
        peaks.append(
            Peak(
                workers,
                program=PROGRAM_BYTES + samples_bytes(dataset) + WORKER_BYTES * apart,
                kept=_kept(protocol, one, scenario, materials).total + (0.0 if exchange.several_models else shared),
                waves=waves,
                training=each * workers,
            )
        )
    return max(peaks, key=lambda peak: peak.total)


def _in_the_plain_loop(protocol: Protocol, materials: Materials, executor: str) -> bool:
    (of_it,) = materials.by_protocol([protocol]).values()
    return executor != "batched" or of_it.trains_alone or all(why_not(whole(table)) for table in of_it.models)


def _sums(kinds: Sequence[_Kind]) -> float:
    """All partial sums of a round, which wait for the last one."""
    return sum(len(_sizes(kind)) * kind.shared for kind in kinds)


def _sizes(kind: _Kind) -> list[int]:
    """How many updates are in each partial sum of a round, where each took as much work."""
    return [*map(len, partial_sums([1] * kind.in_round))]


def _waiting(kinds: Sequence[_Kind], workers: int, *, uneven: bool) -> float:
    """Models that were made before it was their turn to be added up: as a rule, one of each worker but one.

    Where clients have very different numbers of samples, as many may wait as the schedule allows.
    """
    later = [kind.shared for kind in kinds for _ in range(kind.in_round - len(_sizes(kind)))]
    most = WAITING * workers if uneven and workers > 1 else workers - 1
    return sum(sorted(later, reverse=True)[:most])


def _made_anew(kinds: Sequence[_Kind], workers: int) -> float:
    """What clients keep is there twice while a wave is under way: of the waves that are at the same time.

    Where nothing is summed, a wave is one training, and the result of another one may wait for it. Of several waves the
    last model is still in training.
    """
    waves: list[float] = []
    for kind in kinds:
        waves += [size * kind.private for size in (_sizes(kind) if kind.shared else [1] * kind.in_round)]
    if workers == 1:
        return max(waves)
    if not any(kind.shared for kind in kinds):
        return sum(sorted(waves)[-2 * workers :])
    together = max(sum(waves[at : at + side_by_side(workers)]) for at in range(len(waves)))
    return together - max(kind.private for kind in kinds)


def check_memory(scenario: Scenario, materials: Materials, *, executor: str, workers: int, precision: str) -> None:
    """Raise `UserError` when a protocol takes more than the memory that is free here.

    That is what it keeps, and what training takes where that is known, when an *executor* trains in so many *workers*.
    """
    free = free_bytes()
    if free is None:
        return
    larger = 2 if precision == "float64" else 1
    for protocol in scenario.protocols:
        kept = kept_by(protocol, scenario, materials)
        peak = peak_of(protocol, scenario, materials, executor=executor, workers=workers)
        needed = larger * max(kept.total if kept else 0.0, peak.learning if peak else 0.0)
        if needed <= free:
            continue
        told = [*_told_of_kept(kept, larger), *(_told_of_peak(peak, larger) if peak else ())]
        way_out = "fewer --workers, a smaller model" if peak and workers > 1 else "a smaller model"
        with scenario.about(*scenario.place_of(protocol)):
            raise UserError(
                f"{protocol.title!r} takes {si(needed, 'B')} of memory: {', '.join(told)}; {si(free, 'B')} are free "
                f"here, so choose {way_out}, fewer devices or rounds, or a larger machine"
            )


def _told_of_kept(kept: Kept | None, larger: int) -> list[str]:
    if kept is None:
        return []
    client, server, update = (si(some * larger, "B") for some in (kept.client, kept.server, kept.update))
    told = (
        (f"{kept.clients:,} clients keep {client} each", kept.client),
        (f"the server keeps {server}", kept.server),
        (f"{kept.updates:,} updates of {update} wait for each other", kept.update),
    )
    return [text for text, some in told if some]


def _told_of_peak(peak: Peak, larger: int) -> list[str]:
    waves, training = (si(some * larger, "B") for some in (peak.waves, peak.training))
    who = "training takes" if peak.workers == 1 else f"{peak.workers} workers take"
    return [f"{who} {training}", f"new models and sums take {waves}"]


def free_bytes(meminfo: Path = MEMINFO, cgroup: Path = CGROUP) -> float | None:
    """The memory that this process may still take, of its machine or its container; None where that is not known."""
    known = []
    try:
        lines = dict(line.split(":", 1) for line in meminfo.read_text(encoding="ascii").splitlines())
        known.append(1024.0 * float(lines["MemAvailable"].split()[0]))
        most = (cgroup / "memory.max").read_text(encoding="ascii").strip()
        if most != "max":
            known.append(float(most) - float((cgroup / "memory.current").read_text(encoding="ascii")))
    except (OSError, KeyError, ValueError):  # not Linux, or no such container
        pass
    return max(min(known), 0.0) if known else None
