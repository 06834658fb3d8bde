"""Which metrics a scenario shows of its models, as far as they fit its data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fedsim.data.dataset import FederatedDataset
from fedsim.data.target import CYCLES
from fedsim.errors import Misfit, nearest, some
from fedsim.learning.operations.evaluate import MOST_CLASSES_COUNTED
from fedsim.metrics.chosen import RECALL, ChosenMetrics
from fedsim.protocols.evaluate_settings import OF_FAULTS, EvaluateSettings
from fedsim.scenario.scalars import printable

__all__ = ["chosen_metrics", "counted_classes"]

OF_CLASSES = (RECALL, "macro_f1", *OF_FAULTS)


def chosen_metrics(evaluate: EvaluateSettings, dataset: FederatedDataset) -> ChosenMetrics:
    """The metrics that *evaluate* asks for, and what they need to know of the *dataset*; none of one that is declared.

    Where nothing is asked for, the error in the unit of what is predicted, if the data set says that. Raises `Misfit`
    for a metric that the data set does not allow.
    """
    if dataset.stored is None:
        return ChosenMetrics()
    if evaluate.metrics is None:
        return ChosenMetrics((dataset.target.rmse,) if dataset.target else ())
    for name in evaluate.metrics:
        for problem in _problems(name, evaluate, dataset):
            raise Misfit(problem, "evaluate", "metrics")
    names = counted_classes(dataset)
    chosen = ChosenMetrics(evaluate.metrics, names, _sound_class(evaluate, dataset, names))
    endings = ("", *(f"_{test_set}" for test_set in evaluate.on[1:]))
    columns = Counter(f"{column}{ending}" for column in chosen.columns for ending in endings)
    twice = [column for column, number in columns.items() if number > 1]
    if twice:
        raise Misfit(
            f"several columns would be called {twice[0]!r:.99}; give classes other names", "evaluate", "metrics"
        )
    return chosen


def counted_classes(dataset: FederatedDataset) -> tuple[str, ...]:
    """What classes are called where it is counted which is taken for which: by number where they have no names.

    None where there are no classes, or too many to be counted.
    """
    if dataset.classes is None or dataset.classes > MOST_CLASSES_COUNTED:
        return ()
    names = dataset.class_names or [""] * dataset.classes
    return tuple(printable(name) or str(number) for number, name in enumerate(names))


def _problems(name: str, evaluate: EvaluateSettings, dataset: FederatedDataset) -> Iterator[str]:
    """Why the metric cannot be had, and the way out."""
    where, target = f"data set {dataset.name!r}", dataset.target
    if dataset.classes is None:
        offered = "" if target is None else f"choose {target.rmse}{' or phm08' if target.unit == CYCLES else ''}, or "
        if name in OF_CLASSES:
            yield f"{name!r} is of classes, and {where} has numbers to predict; {offered}leave it out"
        elif target is None:
            yield (
                f"{name!r} needs the unit of what is predicted, and {where} says none; give data.unit where your own "
                "samples have one, or leave the metric out"
            )
        elif name not in (target.rmse, "phm08") or (name == "phm08" and target.unit != CYCLES):
            yield f"{name!r} does not fit the unit of {where}, which is {target.unit}; {offered}leave it out"
    elif name not in OF_CLASSES:
        offered = ", ".join(OF_CLASSES)
        yield f"{name!r} is of numbers to predict, and {where} has classes; choose from {offered}, or leave it out"
    elif dataset.classes > MOST_CLASSES_COUNTED:
        yield (
            f"{name!r} needs counts of what is taken for what, which are kept of at most {MOST_CLASSES_COUNTED} "
            f"classes, and {where} has {dataset.classes}; leave it out"
        )
    elif name in OF_FAULTS and dataset.sound_class is None and evaluate.sound_class is None:
        names = some(counted_classes(dataset))
        yield (
            f"{name!r} needs the class of what has no fault, and {where} says none; name it with evaluate.sound_class, "
            f"if it is one of its classes ({names}), or leave the metric out"
        )


def _sound_class(evaluate: EvaluateSettings, dataset: FederatedDataset, names: tuple[str, ...]) -> int | None:
    """The number of the class that the scenario names, or else of the data set's own. Raises `Misfit` for none."""
    if (name := evaluate.sound_class) is None:
        return dataset.sound_class
    if name not in names:
        problem = (
            f"{name!r:.99} is no class of data set {dataset.name!r}{nearest(name, names)} ({some(names, most=10)})"
        )
        raise Misfit(problem, "evaluate", "sound_class")
    return names.index(name)
