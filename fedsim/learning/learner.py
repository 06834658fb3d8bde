"""What a protocol may ask of learning. Nothing is computed when it asks: it gets handles, and the clock runs on.

A model is a mapping part -> handle (``{"extractor": …, "classifier": …}``), so a protocol can send or train one part.
Whatever else is learned is such a mapping too, and an empty one where nothing is learned. Learning never sees the
simulated clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fedsim.data.captures import Capture
from fedsim.kernel.streams import Stream
from fedsim.learning.codecs.codec import Codec
from fedsim.learning.codecs.float32 import Float32
from fedsim.learning.graph import Handle
from fedsim.learning.joint_steps import JointStep
from fedsim.learning.objectives.objective import Objective
from fedsim.learning.operations.operation import Operation
from fedsim.learning.selections.selection import Selecting
from fedsim.models.table import ModelTable

__all__ = ["NOTHING", "Learner", "LocalTraining", "Model", "NoLearner", "OwnModel", "Rows", "Trained"]

Model = Mapping[str, Handle]
FLOAT32 = Float32()


class Rows(NamedTuple):
    """What a classifier is trained on in place of samples: rows of features with their labels."""

    rows: tuple[Model, ...]
    """One after the other."""
    number: int
    """In all of them."""
    epochs: int
    """Passes over them."""


class LocalTraining(NamedTuple):
    """What a client is asked to learn."""

    round_number: int
    client: int
    """Or `fedsim.learning.batches.POOL`."""
    use: int
    """Counts the client's trainings so far."""
    objective: Objective
    codec: Codec = FLOAT32
    """How the update is written, and read again."""
    capture: Capture | None = None
    """Which samples of its stream it sees; None: all of its own."""
    rows: Rows | None = None
    """What its classifier alone is trained on; None: samples."""
    table: str | None = None
    """The digest of the model's table; None: that of the scenario's model."""
    epochs: int | None = None
    """Passes over samples; None: as many as the run's options of training say."""
    stream: str = "batches"
    """What its batches are drawn for."""
    steps: tuple[JointStep, ...] | None = None
    """The mini-batches that several clients make together, in place of one client's samples."""
    written: tuple[str, ...] | None = None
    """The parts that the codec writes, where the others stay with the client; None: all."""
    selecting: Selecting | None = None
    """Which filters are sent; None: all."""


class OwnModel(NamedTuple):
    """The model that one client has."""

    client: int
    table: str
    """Its table's digest."""
    model: Model


class Trained(NamedTuple):
    """What local training yields: a model, and what the client remembers."""

    model: Model
    state: Model
    bytes: Handle | None = None
    """How large the update is on the wire, where its codec, or a selection, measures that."""
    beside: Mapping[str, Model] = {}
    """What goes up beside the model, by name."""
    selected: Handle | None = None
    """What a selection tells of itself, in numbers."""


NOTHING = Trained({}, {})
"""What comes of training when nothing is learned."""


class Learner(ABC):
    """Initial model, local training, any operation on what was learned, evaluation."""

    @abstractmethod
    def initial_model(self, table: ModelTable | None = None, client: int = 0) -> Model:
        """The model of *table* that everybody starts from (or *client*, if all start apart); None: the scenario's."""

    def change_model(self, table: ModelTable) -> None:  # noqa: B027 - without learning there is no model
        """From now on the model that all train and that is evaluated is that of *table*."""

    @abstractmethod
    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        """Local training, starting from *model*.

        *state* is what the client remembers of its trainings so far, for its objective and its codec. *further* are
        the models that its objective ``receives``, by their names.
        """

    @abstractmethod
    def apply(
        self,
        operation: Operation,
        inputs: Mapping[str, Model | Sequence[Model]],
        outputs: Iterable[str],
        *,
        round_number: int,
        client: int | None = None,
        stream: Stream | None = None,
        soon: bool = False,
    ) -> Model:
        """The *outputs*, by name, of an *operation* on what was learned; the *inputs* are models by role.

        *stream* is where its random numbers come from. With *soon* it is computed with the next evaluation, whoever
        needs it: it alone holds something large. Empty when nothing is learned.
        """

    def compute_soon(self, model: Model) -> None:  # noqa: B027 - without learning there is nothing to compute
        """Compute *model* with the next evaluation: until then, whoever keeps it keeps all that it is made of.

        What a client remembers of a training (`Trained.state`) is computed so by itself.
        """

    @abstractmethod
    def value(self, handle: Handle) -> float:
        """The number that *handle* stands for: this forces it, and all numbers that may be asked for next."""

    def facts(self, handle: Handle) -> Mapping[str, float]:
        """The numbers, by name, that *handle* stands for: this forces it. Without learning there are none."""
        raise AssertionError(f"{handle!r} tells nothing")

    @abstractmethod
    def evaluate(self, model: Model, on: str, *, round_number: int) -> dict[str, Any] | None:
        """Metrics of *model* now: this forces the graph. None when nothing is learned."""

    @abstractmethod
    def evaluate_own(self, models: Sequence[OwnModel], *, round_number: int) -> dict[int, dict[str, Any]] | None:
        """Metrics of clients' own *models* on their own test samples now, by client, as far as they have any.

        This forces the graph. None when nothing is learned.
        """

    def keep_for_later(self) -> None:  # noqa: B027 - without learning there is nothing to keep
        """The run is left now, and goes on at another time: keep whatever it would have to learn again."""

    @abstractmethod
    def keep_final(self, model: Model) -> dict[str, str]:
        """Keep the model at the end of a run for ever; returns part -> file."""


class NoLearner(Learner):
    """For network studies: nothing is learned, and evaluations yield nothing."""

    def initial_model(self, table: ModelTable | None = None, client: int = 0) -> Model:
        """An empty model."""
        return {}

    def train(self, task: LocalTraining, model: Model, *, state: Model, further: Mapping[str, Model]) -> Trained:
        """Nothing."""
        return NOTHING

    def apply(self, *_: Any, **__: Any) -> Model:
        """Nothing."""
        return {}

    def value(self, handle: Handle) -> float:
        """There is none: whoever needs one cannot run without learning, and was refused before."""
        raise AssertionError(f"{handle!r} without learning")

    def evaluate(self, model: Model, on: str, *, round_number: int) -> None:
        """Nothing to evaluate."""

    def evaluate_own(self, models: Sequence[OwnModel], *, round_number: int) -> None:
        """Nothing to evaluate."""

    def keep_final(self, model: Model) -> dict[str, str]:
        """Nothing to keep."""
        return {}
