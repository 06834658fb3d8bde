"""Why a run cannot be re-timed so: the first training or evaluation that it has not made, told from the ledgers."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

from fedsim import registry
from fedsim.data.dataset import POOL, FederatedDataset
from fedsim.errors import UserError, nearest
from fedsim.experiment.differences import first_difference
from fedsim.experiment.read_results import AGAIN
from fedsim.experiment.results import Results
from fedsim.files import shown
from fedsim.learning.graph import Handle, Node
from fedsim.learning.operations.evaluate import Evaluate
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.train import Train
from fedsim.learning.planning import ancestry
from fedsim.learning.read_only_store import Computed, ReadOnlyStore
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.build import Materials
from fedsim.scenario.load import load
from fedsim.scenario.scalars import printable
from fedsim.scenario.schema import Scenario

__all__ = ["Refusals", "why_not_at_all"]

TRAINED = ("data", "model", "training")
"""Keys of a scenario that say what is trained."""
LEARNED = (*TRAINED, "evaluate", "protocols")
"""Keys that may be the reason; some of those of protocols only say who sends what."""


def why_not_at_all(original: Results, scenario: Scenario, overrides: Sequence[str], out: Path) -> str | None:
    """Why nothing of *scenario* can be read from what the *original* has learned, whatever the clock does.

    *scenario* is what *overrides* make of the original's, and *out* the folder that was asked for.
    """
    where, manifest = shown(original.folder), original.manifest
    run = _full_run(original.folder, overrides, out)
    executor = manifest.get("executor")
    if executor is None or manifest.get("numeric_family") is None:
        return f"nothing was learned in {where} (learn: false), so there is nothing to re-time; just run it: {run}"
    if not scenario.learn:
        return f"nothing is learned with learn: false, so there is nothing to re-time; just run it: {run}"
    known = registry.all_names("executors")
    if (name := executor["name"]) not in known:
        return (
            f"{where} was trained by executor {name!r}, which is not installed here, and it knows what was computed "
            f"together{nearest(name, known)} (known: {', '.join(known)})"
        )
    trained = [(row["protocol"], row["seed"]) for row in manifest["runs"]]
    for seed in scenario.seeds:
        for protocol in scenario.protocols:
            if (protocol.title, seed) not in trained:
                there = ", ".join(f"{title} on seed {seed}" for title, seed in trained)
                return (
                    f"{where} has not trained {protocol.title!r} on seed {seed} (it has {there}); train it with: {run}"
                )
    return None


class Refusals:
    """Of re-timing the run *original* as *scenario*, which *overrides* have made of its own; *out* was asked for."""

    def __init__(
        self, original: Results, scenario: Scenario, overrides: Sequence[str], store: ReadOnlyStore, out: Path
    ) -> None:
        self._original = original
        self._scenario = scenario
        self._overrides = overrides
        self._store = store
        self._out = out

    def of(self, handle: Handle, protocol: Protocol, materials: Materials) -> UserError:
        """What to say when the value of *handle* is not in the store."""
        seed = materials.seed
        nodes = ancestry([handle])
        missing = self._store.missing([node.key for node in nodes])
        new = [node for node in nodes if node.key in missing and missing.isdisjoint(node.input_keys)]
        first = min(new, key=_round_and_kind, default=None)
        where = f"{shown(self._original.folder)} cannot be re-timed like this: {protocol.title}, seed {seed}"
        if first is None:
            return UserError(f"{where}, round {handle.node.tags['round']}: {self._lost(handle)}; {AGAIN}")
        row = next(
            row for row in self._original.manifest["runs"] if (row["protocol"], row["seed"]) == (protocol.title, seed)
        )
        there = _There(self._store.computed(), protocol.title, seed, int(row.get("rounds", 0)))
        what = there.difference(first, nodes, materials.topology.sensors, materials.data_for(protocol))
        why = self._changed_key()
        if why is None and row.get("data_digest") not in (None, materials.dataset.digest):
            why = "the data are not those that it was trained on"
        because = f" ({why})" if why else ""
        return UserError(
            f"{where}: {what}{because}; train it with: {_full_run(self._original.folder, self._overrides, self._out)}"
        )

    def _lost(self, handle: Handle) -> str:
        if self._store.has_other_plans(handle):
            return "the same was computed there together with other trainings, which may change a bit"
        return f"what was computed there is not in its store any more ({shown(self._store.folder)})"

    def _changed_key(self) -> str | None:
        """The first change to a key that says what is learned."""
        there = load(self._original.folder / "scenario.yaml").model_dump(mode="json", include=set(LEARNED))
        here = self._scenario.model_dump(mode="json", include=set(LEARNED))
        for key in LEARNED:
            if difference := first_difference(there.get(key), here.get(key), key):
                return f"{difference}, which changes what is trained" if key in TRAINED else difference
        return None


class _There:
    """What one protocol has computed on one seed in so many *rounds*, by the *rows* of all ledgers."""

    def __init__(self, rows: Iterable[Computed], protocol: str, seed: int, rounds: int) -> None:
        self._client_of: dict[str, int] = {}
        """By key, as protocols may have trainings in common."""
        self._own: dict[str, Computed] = {}
        for row in rows:
            if row.client is not None:
                self._client_of[row.key] = row.client
            if (row.protocol, row.seed) == (protocol, seed):
                self._own.setdefault(row.key, row)
        self._rounds = rounds

    def difference(self, node: Node, nodes: Sequence[Node], names: Sequence[str], dataset: FederatedDataset) -> str:
        """What *node* of the *nodes* here does, which was not done there; all that it needs was.

        *names* are those of the clients.
        """
        number = node.tags.get("round")
        if isinstance(node.operation, Init):
            return "it begins with another model"
        if number is not None and number > self._rounds:
            return f"round {number} was never trained there: the run ended after round {self._rounds}"
        place = f"in round {number}"
        if isinstance(node.operation, Evaluate):
            return f"{place} {self._of_evaluation(node)}"
        if isinstance(node.operation, Train):
            return f"{place} {self._of_training(node, names, dataset)}"
        return f"{place} {self._of_others(node, nodes, names)}"

    def _of_evaluation(self, node: Node) -> str:
        alike = self._alike(node)
        if not alike:
            return "a model is evaluated here, and none was there"
        if all(row.inputs != node.input_keys for row in alike):
            return "another model is evaluated here than there, which other updates have made, or none"
        return "the model is evaluated otherwise than there"

    def _of_training(self, node: Node, names: Sequence[str], dataset: FederatedDataset) -> str:
        client = _name(node.tags["client"], names)
        same = [row for row in self._alike(node) if row.client == node.tags["client"]]
        if not same:
            return f"what {client} trains counts here, and did not there"
        if all(row.inputs != node.input_keys for row in same):
            return f"{client} starts from another model than there"
        if _goes_by_the_clock(dataset):
            return f"{client} trains on other samples than there, as its stream goes by the clock"
        return f"{client} trains otherwise than there"

    def _of_others(self, node: Node, nodes: Sequence[Node], names: Sequence[str]) -> str:
        """Sums, and whatever else is made of updates: told by all of the round, as they may be of some updates each."""
        kind, number = node.operation.name, node.tags.get("round")
        alike = [each for each in nodes if (each.operation.name, each.tags.get("round")) == (kind, number)]
        makers = (source.node for each in alike for source in each.inputs.values())
        here = {maker.tags["client"] for maker in makers if "client" in maker.tags}
        keys = (key for row in self._alike(node) for key in row.inputs)
        there = {self._client_of[key] for key in keys if key in self._client_of}
        if new := sorted(here - there):
            return f"the update of {_name(new[0], names)} counts here, and did not there"
        if gone := sorted(there - here):
            return f"the update of {_name(gone[0], names)} counted there, and does not here"
        return "updates have other weights than there, or arrive in another order"

    def _alike(self, node: Node) -> list[Computed]:
        """What the same operation has made in the same round."""
        kind = node.operation.name, node.tags.get("round")
        return [row for row in self._own.values() if (row.operation, row.round_number) == kind]


def _round_and_kind(node: Node) -> tuple[int, bool]:
    """Of what is new, the earliest round tells most, and in it a training."""
    return node.tags.get("round", 0), not isinstance(node.operation, Train)


def _goes_by_the_clock(dataset: FederatedDataset) -> bool:
    stream = dataset.stream
    return stream is not None and (
        stream.arrival is not None or (stream.drift is not None and stream.drift.by == "sim_time_s")
    )


def _name(client: int, names: Sequence[str]) -> str:
    if client == POOL:
        return "whoever has everybody's samples"
    return repr(names[client]) if client < len(names) else f"client {client}"


def _full_run(folder: Path, overrides: Sequence[str], out: Path) -> str:
    """The command that trains what the overrides ask for."""
    words = ["fedsim", "run", str(folder / "scenario.yaml")]
    words += [word for override in overrides for word in ("--set", override)]
    return printable(shlex.join([*words, "--out", str(out)]))
