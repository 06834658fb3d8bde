"""A scenario: everything that decides a run's results, as a user writes it. The classes' own fields are the keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Annotated, Any, Literal

from annotated_types import Interval, MaxLen, MinLen
from pydantic import AfterValidator, ConfigDict, Field, PrivateAttr

from fedsim import registry
from fedsim.data.digits import Digits
from fedsim.data.settings import DatasetSettings
from fedsim.devices.settings import DevicesSettings
from fedsim.errors import Misfit, UserError, nearest, within
from fedsim.learning.training import TrainingSettings
from fedsim.metrics.cost_models.settings import CostModelSettings
from fedsim.models.settings import ModelSettings
from fedsim.network.faults.settings import FaultsSettings
from fedsim.network.settings import NetworkSettings
from fedsim.protocols.evaluate_settings import EvaluateSettings
from fedsim.protocols.newcomers import NewcomersSettings
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Stop
from fedsim.scenario.closed_forms import closed_form
from fedsim.scenario.document import Document, KeyPath, dotted
from fedsim.scenario.scalars import message_line
from fedsim.scenario.scenario_name import NAME, check_name
from fedsim.scenario.sweep_settings import SweepSettings
from fedsim.scenario.wording import blamed
from fedsim.settings import OneOf, Settings, Several, key_rule
from fedsim.topology.imported import self_contained
from fedsim.topology.settings import TopologySettings

__all__ = ["Scenario", "Written", "WrittenNetwork"]


class _Refusal(UserError):
    """Says already which key it is about."""


class Written:
    """The document that a scenario was read from, if there was one.

    It is no part of what the scenario is: all are equal, and a copy for another process goes without.
    """

    def __init__(self, document: Document | None = None, titles: Iterable[str] = ()) -> None:
        self._document = document
        self._positions = {title: position for position, title in enumerate(titles)}
        """Of protocols in the document: only some of them may be run, and others may have been added since."""

    @contextmanager
    def about(self, path: KeyPath) -> Iterator[None]:
        """What is found wrong inside this block is wrong with the key at *path*: the message names it and its place."""
        try:
            yield
        except _Refusal:
            raise
        except UserError as error:
            said = blamed(error, path)
            raise self.refusal(said.text, said.path) from error

    def refusal(self, problem: str, path: KeyPath) -> UserError:
        """The error that says *problem* of the key at *path*, and where that key was written."""
        place = f"{self._document.where(path)}: " if self._document else ""
        key = f"{dotted(path)}: " if path else ""
        return _Refusal(message_line(f"{place}{key}{problem}"))

    def remark(self, problem: str, path: KeyPath) -> str:
        """What is to be said of the key at *path*, with key and place, as errors have them."""
        return str(self.refusal(problem, path))

    def word(self, path: KeyPath) -> object:
        """What was written at *path*; None where nothing was, or there is no document."""
        value: object = self._document.data if self._document else None
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        return value

    def path_of(self, title: str, protocols: Iterable[str]) -> KeyPath:
        """The path of the one of *protocols* that results call *title*: in the document, if that has it."""
        positions = self._positions or {other: position for position, other in enumerate(protocols)}
        return ("protocols", positions[title]) if title in positions else ("protocols",)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Written)

    def __hash__(self) -> int:
        return hash(Written)

    def __reduce__(self) -> tuple[type[Written], tuple[()]]:
        return Written, ()


MOST_SEEDS = 10_000
MOST_PROTOCOLS = 1_000
"""Both are gone through before a run begins."""

Seed = Annotated[int, Interval(ge=0, lt=2**63)]
"""Any whole number that a table can hold."""


class WrittenNetwork(Settings):
    """What of a scenario says which network it is on, as a run folder keeps it: the rest is passed over."""

    model_config = ConfigDict(extra="ignore")

    name: str
    topology: Annotated[TopologySettings, OneOf("topologies"), AfterValidator(self_contained)]
    network: NetworkSettings
    faults: FaultsSettings
    devices: DevicesSettings


class WrittenModels(Settings):
    """What of a scenario says which models it trains, as a run folder keeps it: the rest is passed over."""

    model_config = ConfigDict(extra="ignore")

    devices: DevicesSettings
    model: Annotated[ModelSettings, OneOf("models")]


class WrittenProtocols(Settings):
    """What of a scenario says by which protocols it trains, as a run folder keeps it: the rest is passed over."""

    model_config = ConfigDict(extra="ignore")

    protocols: Several[Annotated[Protocol, OneOf("protocols")]]


class Scenario(Settings):
    """Everything that decides a run's results."""

    name: Annotated[str, AfterValidator(check_name)] = Field(json_schema_extra={"pattern": NAME})
    """Letters, digits, dots, dashes and underscores; results go to ``runs/<name>`` by default."""
    description: str = ""
    """What the scenario is about, for people."""
    seeds: Annotated[Several[Seed], MinLen(1), MaxLen(MOST_SEEDS)] = (1,)
    """One replication of every protocol for each seed."""
    learn: bool = True
    """false: a network study; nothing is trained and torch is never loaded (the same as ``--no-training``)."""
    stop: Stop
    """When a run ends: whichever comes first."""
    evaluate: EvaluateSettings = EvaluateSettings()
    """When and on what models are evaluated."""
    newcomers: NewcomersSettings | None = None
    """What clients that never took part do when the rounds are over; left out, nothing."""
    topology: Annotated[TopologySettings, OneOf("topologies"), AfterValidator(self_contained)]
    """The network's nodes and wires: one of the topologies, or a path to a file (.yaml, .json, .graphml)."""
    network: NetworkSettings
    """What the air and the wires are like."""
    faults: FaultsSettings = FaultsSettings()
    """What fails, when, and what that means; nothing fails when left out."""
    devices: DevicesSettings
    """How fast devices compute."""
    data: Annotated[DatasetSettings, OneOf("datasets")] = Digits()
    """The samples, and who holds them; real handwritten digits, shared out evenly, when left out."""
    model: Annotated[ModelSettings, OneOf("models")]
    """What is trained."""
    training: TrainingSettings
    """How a client trains on its own samples."""
    protocols: Annotated[Several[Annotated[Protocol, OneOf("protocols")]], MinLen(1), MaxLen(MOST_PROTOCOLS)]
    """The protocols to compare, each run from the start on every seed."""
    accounting: Annotated[Several[Literal["event", "formula"]], MinLen(1)] = ("event",)
    """Costs as simulated, and beside them as a paper's closed form gives them."""
    formula: Annotated[CostModelSettings, OneOf("cost_models")] | None = None
    """The closed form for ``accounting: [event, formula]``."""
    paper_table: str | None = None
    """A published table to print the results beside (``fedsim list paper_tables``)."""
    save_transfers: bool = True
    """Whether to write ``transfers.parquet``: a row for each hop of each transfer."""
    sweep: SweepSettings | None = None
    """Which keys ``fedsim sweep`` varies; all other commands leave it out."""

    _written: Written = PrivateAttr(default_factory=Written)

    def model_post_init(self, context: Any) -> None:
        """Remember the document that was given as the context of the validation."""
        if isinstance(context, Document):
            self._written = Written(context, (protocol.title for protocol in self.protocols))

    def about(self, *path: str | int) -> AbstractContextManager[None]:
        """A block in which every `UserError` is one about the key at *path*: the message begins with key and place."""
        return self._written.about(path)

    @property
    def written(self) -> Written:
        """The document that it was read from."""
        return self._written

    def place_of(self, protocol: Protocol) -> KeyPath:
        """The path of one of the protocols; also of one that is left of more, by ``--only``."""
        return self._written.path_of(protocol.title, (other.title for other in self.protocols))

    @key_rule
    def _distinct(self) -> None:
        first: dict[str, int] = {}
        for position, protocol in enumerate(self.protocols):
            title = protocol.title
            if (other := first.setdefault(title, position)) != position:
                problem = f"is called {title!r} in results, as protocols[{other}] is; give it a label"
                raise Misfit(problem, "protocols", position)
        if len(set(self.seeds)) < len(self.seeds):
            raise Misfit(f"{list(self.seeds)} must differ from each other", "seeds")

    @key_rule
    def _formula_when_asked(self) -> None:
        if len(set(self.accounting)) < len(self.accounting):
            raise Misfit(f"{list(self.accounting)} must differ from each other", "accounting")
        if "formula" in self.accounting and self.formula is None:
            known = ", ".join(registry.names("cost_models"))
            raise Misfit(f"'formula' needs the key formula, which says which one (known: {known})", "accounting")
        if self.formula is None:
            return
        if "formula" not in self.accounting:
            raise Misfit("needs 'formula' in the key accounting: write accounting: [event, formula]", "formula")
        for position, protocol in enumerate(self.protocols):
            form = closed_form(protocol)
            if form is None:
                problem = f"no closed form is known for protocol {protocol.title!r}; leave it or formula out"
                raise Misfit(problem, "protocols", position)
            if form.at_stations:
                with within("formula"):
                    self.formula.check_stations(protocol.title)

    @key_rule
    def _known_paper_table(self) -> None:
        table, kind = self.paper_table, "paper_tables"
        if table is not None and table not in registry.names(kind) and table not in (known := registry.all_names(kind)):
            near = nearest(table, known)
            raise Misfit(f"no table is called {table!r}{near} (known: {', '.join(known)})", "paper_table")

    @key_rule
    def _can_time_finetuning(self) -> None:
        if not self.evaluate.finetune_timed:
            return
        for protocol in self.protocols:
            if not protocol.times_finetuning:
                raise Misfit(
                    f"true, and protocol {protocol.title!r} has no rounds in which clients get its model to fine-tune "
                    "it; use protocols that go in rounds, or leave it out",
                    *("evaluate", "finetune_timed"),
                )

    @key_rule
    def _newcomers_come_after_the_last_round(self) -> None:
        if self.newcomers is None:
            return
        for position, stop in enumerate([self.stop, *(protocol.stop for protocol in self.protocols)]):
            if stop is not None and stop.sim_time_s is not None:
                path: KeyPath = ("protocols", position - 1, "stop") if position else ("stop",)
                problem = "newcomers come when the last round is over, and at a simulated time a round is under way"
                raise Misfit(f"{problem}; end the run by rounds or transfer_bytes", *path, "sim_time_s")

    @key_rule
    def _can_end_without_learning(self) -> None:
        if self.learn:
            return
        for position, protocol in enumerate(self.protocols):
            if protocol.reads_learning:
                raise Misfit(
                    f"protocol {protocol.title!r} decides on learned values, so it cannot run with learn: false "
                    "(--no-training)",
                    "protocols",
                    position,
                )
            if protocol.needs_learning:
                *key, declared = protocol.measured_size
                where: KeyPath = ("protocols", position, *key)
                raise Misfit(
                    f"the size of its updates is measured on what was learned; give {declared} to run with learn: "
                    "false (--no-training)",
                    *where,
                )
            stop = protocol.stop or self.stop
            if stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None:
                path: KeyPath = ("protocols", position, "stop") if protocol.stop else ("stop",)
                raise Misfit(
                    "with learn: false (--no-training) a run cannot end at a target_accuracy; "
                    "give rounds, sim_time_s or transfer_bytes too",
                    *path,
                )
