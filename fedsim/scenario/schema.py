"""A scenario: everything that decides a run's results, as a user writes it. The classes' own fields are the keys."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from annotated_types import MinLen
from pydantic import Field, model_validator

from fedsim.data.settings import DatasetSettings
from fedsim.devices.settings import DevicesSettings
from fedsim.learning.training import TrainingSettings
from fedsim.metrics.cost_models.settings import CostModelSettings
from fedsim.models.settings import ModelSettings
from fedsim.network.settings import NetworkSettings
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import EvaluateSettings, Stop
from fedsim.settings import NonNegativeInt, OneOf, Settings, Several
from fedsim.topology.settings import TopologySettings

__all__ = ["Scenario"]


class Scenario(Settings):
    """Everything that decides a run's results."""

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")
    """Letters, digits, dots, dashes and underscores; results go to ``runs/<name>`` by default."""
    description: str = ""
    """What the scenario is about, for people."""
    seeds: Annotated[Several[NonNegativeInt], MinLen(1)] = (1,)
    """One replication of every protocol for each seed."""
    learn: bool = True
    """false: a network study; nothing is trained and torch is never loaded (the same as ``--no-training``)."""
    stop: Stop
    """When a run ends: whichever comes first."""
    evaluate: EvaluateSettings = EvaluateSettings()
    """When and on what models are evaluated."""
    topology: Annotated[TopologySettings, OneOf("topologies")]
    """The network's nodes and wires: one of the topologies, or a path to a file (.yaml, .json, .graphml)."""
    network: NetworkSettings
    """What the air and the wires are like."""
    devices: DevicesSettings
    """How fast devices compute."""
    data: Annotated[DatasetSettings, OneOf("datasets")]
    """The samples, and who holds them."""
    model: Annotated[ModelSettings, OneOf("models")]
    """What is trained."""
    training: TrainingSettings
    """How a client trains on its own samples."""
    protocols: Annotated[Several[Annotated[Protocol, OneOf("protocols")]], MinLen(1)]
    """The protocols to compare, each run from the start on every seed."""
    accounting: Annotated[Several[Literal["event", "formula"]], MinLen(1)] = ("event",)
    """Costs as simulated, and beside them as a paper's closed form gives them."""
    formula: Annotated[CostModelSettings, OneOf("cost_models")] | None = None
    """The closed form for ``accounting: [event, formula]``."""
    paper_table: str | None = None
    """A published table to print the results beside (``fedsim list paper_tables``)."""
    save_transfers: bool = True
    """Whether to write ``transfers.parquet``: a row for each hop of each transfer."""

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        titles = [protocol.title for protocol in self.protocols]
        if twice := sorted({title for title in titles if titles.count(title) > 1}):
            raise ValueError(f"two protocols are called {twice[0]!r} in results; give one of them a label")
        if len(set(self.seeds)) < len(self.seeds):
            raise ValueError(f"seeds {list(self.seeds)} must differ from each other")
        return self

    @model_validator(mode="after")
    def _formula_when_asked(self) -> Self:
        if ("formula" in self.accounting) != (self.formula is not None):
            raise ValueError("accounting 'formula' and the key formula belong together: give both or neither")
        if self.formula is not None:
            for protocol in self.protocols:
                if protocol.cohort_size(1) is None:
                    raise ValueError(f"no closed form is known for protocol {protocol.title!r}; leave formula out")
        return self

    @model_validator(mode="after")
    def _can_end_without_learning(self) -> Self:
        if self.learn:
            return self
        for protocol in self.protocols:
            if type(protocol).reads_learning:
                raise ValueError(
                    f"protocol {protocol.title!r} decides on learned values, so it cannot run with learn: false "
                    "(--no-training)"
                )
            stop = protocol.stop or self.stop
            if stop.rounds is None and stop.sim_time_s is None and stop.transfer_bytes is None:
                raise ValueError(
                    "with learn: false (--no-training) a run cannot end at a target_accuracy; "
                    "give stop.rounds, stop.sim_time_s or stop.transfer_bytes too"
                )
        return self
