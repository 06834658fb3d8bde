"""The graph's operations in PyTorch: what every executor here does alike, whoever trains and wherever.

Trainings and scores are jobs for a worker pool. Sums of models are made here, in one pass over memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.learning.executors.applied import applied
from fedsim.learning.executors.cuda_arithmetic import arithmetic
from fedsim.learning.executors.evaluated import Scored, metrics_of
from fedsim.learning.executors.executor import Executor, Fold
from fedsim.learning.executors.expected import Expected
from fedsim.learning.executors.segmented import SegmentedTrainer, started
from fedsim.learning.executors.summing import Summing
from fedsim.learning.executors.torch_devices import kind
from fedsim.learning.executors.trainer import TensorDict, Trainer, number_type
from fedsim.learning.executors.wave import Extraction, detached
from fedsim.learning.executors.waves import waves
from fedsim.learning.executors.worker_pool import ExtractJob, InProcess, ScoreJob, TrainJob, WorkerPool
from fedsim.learning.graph import Handle, Node
from fedsim.learning.kernels.processor import instruction_set
from fedsim.learning.operations.add import Add
from fedsim.learning.operations.evaluate import METRICS, Evaluate, EvaluateOwn
from fedsim.learning.operations.extract import Extract
from fedsim.learning.operations.init import Init
from fedsim.learning.operations.operation import Value
from fedsim.learning.operations.partial_sum import TERM, PartialSum
from fedsim.learning.operations.train import BYTES, SELECTED, Train
from fedsim.models.segmented import SegmentedTable, whole
from fedsim.models.table import ModelTable
from fedsim.models.torch_module import initial_parameters

__all__ = ["EVALUATION_BATCH", "TorchExecutor"]

EVALUATION_BATCH = 250
"""Samples scored together; a change may move the loss by a rounding error, so it would be a new version."""


class TorchExecutor(Executor):
    """A trainer of each model, and a worker pool of them. Values live on the executor's torch device; files know none.

    An operation says by the digest of its table of which model it is.
    """

    trainer: ClassVar[type[Trainer]]
    arithmetic: ClassVar[str]
    """What the trainer's arithmetic is called in the numeric family."""
    torch_devices: ClassVar[tuple[str, ...]] = ("cpu",)
    parallel: ClassVar[bool] = False
    """Whether it makes use of more than one worker."""

    @classmethod
    def numeric_family(cls, torch_device: str, precision: str = "float32") -> str:
        """The numeric family, known before anything is computed.

        It is made of arithmetic, precision, torch, the kind of torch device and the processor's instruction set.
        """
        return f"{cls.arithmetic}/{precision}/torch{torch.__version__}/{kind(torch_device)}/{instruction_set()}"

    @classmethod
    def trainer_of(cls, table: ModelTable) -> type[Trainer]:
        """What trains the model of *table*."""
        return cls.trainer

    def __init__(
        self,
        tables: ModelTable | Sequence[ModelTable],
        dataset: FederatedDataset,
        torch_device: str = "cpu",
        *,
        precision: str = "float32",
        workers: int = 1,
    ) -> None:
        torch.set_num_threads(1)
        self.family = self.numeric_family(torch_device, precision)
        self._torch_device, self._precision = torch_device, precision
        self._dtype = number_type(precision)
        tables = [tables] if isinstance(tables, ModelTable) else tables
        self._tables = {table.digest: table for table in tables}
        self._dataset = dataset
        self._expected = Expected(self._tables, self._dtype)
        self._pool = self._gather(workers)
        self.lookahead = 2 * self._pool.workers if self._pool.workers > 1 else 0
        self._tickets: dict[Node, Any] = {}

    def _gather(self, workers: int) -> WorkerPool:
        """This process alone, or workers; neither holds on to this object."""
        trainer_of, tables, dataset = self.trainer_of, self._tables, self._dataset
        where = self._torch_device, self._precision
        models = {model.digest: model for model in map(whole, tables.values())}

        @cache
        def trainer(digest: str) -> Trainer:
            return trainer_of(models[digest])(models[digest], dataset, *where)

        def hire(digest: str) -> Trainer:
            table = tables[digest]
            inner = trainer(whole(table).digest)  # of the model in all its ways to be cut into segments
            return SegmentedTrainer(table, inner) if isinstance(table, SegmentedTable) else inner

        def prepare() -> None:
            for model in models.values():
                trainer_of(model).prepare(model, *where)

        if workers == 1:
            return InProcess(hire)
        from fedsim.learning.executors.workers import Workers

        return Workers(hire, workers, tuple(tables.values()), self._dtype, prepare, dataset.clients)

    @classmethod
    def chunks(cls, nodes: Sequence[Node]) -> list[Sequence[Node]]:
        """Waves of trainings; everything else alone."""
        return waves(nodes)

    def begin(self, chunk: Sequence[Node]) -> None:
        """Give trainings and scores to the worker pool; what else there is needs no start."""
        node = chunk[0]
        if node in self._tickets:
            return
        match node.operation:
            case Train():
                self._tickets[node] = self._begin_wave(TrainJob(*detached(chunk)))
            case Evaluate() as evaluation:
                self._tickets[node] = self._begin_scores(node, evaluation)
            case Extract():
                self._tickets[node] = self._begin_extraction(chunk)

    def compute(self, chunk: Sequence[Node]) -> list[dict[str, Value]]:
        """The outputs of a wave, or of one node."""
        node = chunk[0]
        self.begin(chunk)
        match node.operation:
            case Train() | Extract():
                outputs: list[dict[str, Value]] = self._pool.finish(self._tickets.pop(node))
                for made in outputs:
                    if BYTES in made:
                        made[BYTES] = int(made[BYTES][BYTES])
                    if SELECTED in made:
                        made[SELECTED] = {name: number.item() for name, number in made[SELECTED].items()}
                return outputs
            case Evaluate() as evaluation:
                return [{METRICS: self._metrics(evaluation, self._tickets.pop(node))}]
            case Init(model=digest):
                return [self._init(node, self._tables[digest])]
            case Add():
                return [self._sum(node)]
            case _:
                with arithmetic(self._torch_device, self._precision):
                    return [self._applied(node)]

    def _applied(self, node: Node) -> dict[str, Value]:
        made = applied(node)
        for handle in node.held_outputs():
            if any(handle.output in table.parts for table in self._tables.values()):
                try:
                    self._expected.check(made[handle.output], handle)
                except ValueError as error:
                    raise UserError(
                        f"{handle.output!r} of operation {node.operation.name!r} is no such part of the model: {error}"
                    ) from None
        return made

    def fold(self, node: Node) -> Fold:
        """A partial sum of models that were made elsewhere."""
        assert isinstance(node.operation, PartialSum)
        base = {slot.part: handle.value for slot, handle in node.inputs.items() if slot.role == "base"}
        return _Fold(base, node.operation.weights, base or node.sources.model(TERM))

    def dump(self, value: Value) -> bytes:
        """Contiguous tensors by name, no metadata: equal parts, equal bytes."""
        content: bytes = save({name: tensor.cpu().contiguous() for name, tensor in value.items()})
        return content

    def load(self, content: bytes, handle: Handle) -> Value:
        """Tensors by name, on the torch device; their names, types and shapes are those that *handle* should have."""
        try:
            found = load(content)
        except SafetensorError as error:
            raise ValueError(str(error)) from None
        except (KeyError, RuntimeError):  # safetensors has types, and sizes, that torch has not
            raise ValueError("torch has no such tensors") from None
        self._expected.check(found, handle)
        return {name: tensor.to(self._torch_device, copy=True) for name, tensor in found.items()}  # aligned as others

    def forget(self) -> None:
        """Drop every chunk that has begun."""
        self._tickets.clear()
        self._pool.forget()

    def close(self) -> None:
        """End the workers, if there are any."""
        self.forget()
        self._pool.close()

    def _init(self, node: Node, table: ModelTable) -> dict[str, Value]:
        assert node.stream is not None
        if isinstance(table, SegmentedTable):
            parts = started(table, node.stream)
        else:
            parts = initial_parameters(table, node.stream.generator())
        return {
            part: {name: tensor.to(self._torch_device, self._dtype) for name, tensor in tensors.items()}
            for part, tensors in parts.items()
        }

    def _sum(self, node: Node) -> dict[str, Value]:
        base, change = node.values.model("base"), node.values.model("change")
        return {part: self._added(base[part], change[part]) for part in base}

    def _added(self, left: TensorDict, right: TensorDict) -> TensorDict:
        made = self._pool.new_like(left) or {name: torch.empty_like(tensor) for name, tensor in left.items()}
        for name, tensor in left.items():
            torch.add(tensor, right[name], out=made[name])
        return made

    def _begin_wave(self, job: TrainJob) -> Any:
        """Whole where its trainings go side by side, or where no sum is to be made; else chain by chain."""
        trainer = self.trainer_of(whole(self._tables[job.model]))
        together = trainer.side_by_side(job.wave) or not job.wave.sums
        return self._pool.begin(job) if together else self._pool.begin_apart(job)

    def _begin_extraction(self, chunk: Sequence[Node]) -> Any:
        extractor = chunk[0].values.model("model")
        extractions = []
        for node in chunk:
            assert node.stream is not None and isinstance(node.operation, Extract)
            remembered = node.values.one("remembered") if "remembered" in node.sources else None
            extractions.append(Extraction(node.operation, node.stream, remembered))
        return self._pool.begin(ExtractJob(tuple(extractor), tuple(extractor.values()), tuple(extractions)))

    def _begin_scores(self, node: Node, evaluation: Evaluate) -> list[Any]:
        digest, model = evaluation.model, node.values.model("model")
        batches = [(ids, client) for client, group in self._test_sets(evaluation) for ids in _batches(group)]
        shards = [shard for shard in np.array_split(np.arange(len(batches)), self._pool.workers) if len(shard)]
        parts = digest, tuple(model), tuple(model.values())
        return [
            self._pool.begin(ScoreJob(*parts, *zip(*(batches[at] for at in shard), strict=True))) for shard in shards
        ]

    def _metrics(self, evaluation: Evaluate, tickets: Sequence[Any]) -> dict[str, Any]:
        """Of the global test set, of the clients' own, or of those of unseen clients."""
        y, classes = self._dataset.y, self._dataset.classes
        assert y is not None
        scores = iter([score for ticket in tickets for score in self._pool.finish(ticket)])
        tests = [Scored([next(scores) for _ in _batches(ids)], y[ids]) for _, ids in self._test_sets(evaluation)]
        several = evaluation.on not in ("global", "own")
        return metrics_of(tests, classes=classes, target=evaluation.target, several=several)

    def _test_sets(self, evaluation: Evaluate) -> list[tuple[int | None, npt.NDArray[np.int64]]]:
        """Sample ids of the global test set, of the client whose model it is, or of each client that has some.

        With them, whose they are; None: nobody's who trains.
        """
        if evaluation.on == "global":
            return [(None, self._dataset.test_ids)]
        if isinstance(evaluation, EvaluateOwn):
            return [(evaluation.client, self._dataset.client_test_ids[evaluation.client])]
        if evaluation.on == "unseen":
            return [(None, ids) for ids in self._dataset.unseen_test_ids if len(ids)]
        return [(client, ids) for client, ids in enumerate(self._dataset.client_test_ids) if len(ids)]


class _Fold(Fold):
    def __init__(self, base: Mapping[str, TensorDict], weights: Sequence[float], parts: Iterable[str]) -> None:
        self._sum = Summing(base, weights, parts)

    def add(self, value: Mapping[str, Value]) -> None:
        self._sum.add(value)

    def result(self) -> dict[str, Value]:
        return self._sum.result()


def _batches(ids: npt.NDArray[np.int64]) -> list[npt.NDArray[np.int64]]:
    return [ids[first : first + EVALUATION_BATCH] for first in range(0, len(ids), EVALUATION_BATCH)]
