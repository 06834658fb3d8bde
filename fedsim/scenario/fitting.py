"""Whether data, model and what is asked of them fit each other, as far as anything is to be learned."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsim.data.dataset import FederatedDataset
from fedsim.data.encoding import HashedNgrams, OneHot
from fedsim.data.sampled import SampledDataset
from fedsim.data.stream.drift import DriftSettings
from fedsim.errors import Misfit, nearest
from fedsim.models.declared import Declared
from fedsim.models.settings import ModelSettings
from fedsim.models.table import LayerTable, ModelTable
from fedsim.scenario.chosen_metrics import chosen_metrics
from fedsim.scenario.schema import Scenario

__all__ = ["check_samples", "check_table", "check_that_learning_fits"]

_NOTHING_TO_TRAIN = (
    "so there is nothing to train; use --no-training (or learn: false), or a model and a data set with numbers in them"
)
MOST_NAMED = 12
"""Classes, in a message."""
ROUNDING = 1e-6  # of a white pixel: 255 times 1/255, in float32


def check_samples(model: ModelSettings, dataset: FederatedDataset) -> None:
    """Raise `UserError` when the data set gives ids of a vocabulary, and the model does not take as many."""
    if isinstance(model, Declared):
        return
    takes, gives = model.vocabulary, dataset.vocabulary
    if gives is not None and (takes is None or takes < gives):
        problem = "takes numbers" if takes is None else f"takes ids below {takes}"
        raise Misfit(
            f"{model.name!r} {problem}, and data set {dataset.name!r} gives ids below {gives}, such as "
            "characters; choose a model for text (char_cnn, vdcnn), or set data.encoding to one_hot or ngrams"
        )


def check_table(model: ModelSettings, dataset: FederatedDataset, table: ModelTable, *, learn: bool) -> None:
    """Raise `UserError` when the model cannot be trained, or takes ids of a vocabulary where the data are numbers."""
    if isinstance(table, LayerTable) and table.takes_ids and dataset.stored is not None and dataset.vocabulary is None:
        problem = f"takes ids, such as characters, and data set {dataset.name!r} gives numbers"
        of_texts = ", or set data.encoding to ids" if isinstance(dataset.encoding, OneHot | HashedNgrams) else ""
        raise Misfit(f"{model.name!r} {problem}; choose softmax or mlp, or for series conv1d or gru{of_texts}")
    if learn and not table.trainable and dataset.stored is not None:
        raise Misfit(f"only sizes are declared, {_NOTHING_TO_TRAIN}")


def check_that_learning_fits(scenario: Scenario, dataset: FederatedDataset, *, tables: int) -> None:
    """Raise `UserError` unless something can be learned, tested and streamed as *scenario* asks."""
    if not scenario.learn:
        if dataset.stored is not None:
            _check_test_sets(scenario, dataset)
            chosen_metrics(scenario.evaluate, dataset)
        return
    if dataset.stored is None:
        raise Misfit(f"only sizes are declared, {_NOTHING_TO_TRAIN}", "data")
    if tables > 1 and scenario.evaluate.on != ("own",):
        problem = f"device classes have {tables} models, so there is no single one to score"
        raise Misfit(f"{problem}; set evaluate.on to [own]", "evaluate", "on")
    _check_test_sets(scenario, dataset)
    chosen_metrics(scenario.evaluate, dataset)
    _check_targets(scenario, dataset)
    _check_stream(dataset)


def _check_test_sets(scenario: Scenario, dataset: FederatedDataset) -> None:
    data = scenario.data
    for_own = data.for_own_tests if isinstance(data, SampledDataset) else "set data.client_test_fraction"
    held = {
        "global": ([dataset.test_ids], "there is no global test set", "set data.test_fraction"),
        "clients": (dataset.client_test_ids, "no client holds test samples", for_own),
        "own": (dataset.client_test_ids, "no client holds test samples", for_own),
        "unseen": (dataset.unseen_test_ids, "there are no unseen clients", "set data.unseen_clients"),
    }
    for name in scenario.evaluate.on:
        ids, problem, way_out = held[name]
        if not any(map(len, ids)):
            if isinstance(data, SampledDataset) and data.validation_fraction:
                problem = f"with validation_fraction={data.validation_fraction:g} it has no samples"
                way_out = "name global, or leave data.validation_fraction out"
            raise Misfit(f"{name!r} is named, but {problem}; {way_out}", "evaluate", "on")


def _check_targets(scenario: Scenario, dataset: FederatedDataset) -> None:
    if not dataset.regression:
        return
    for path, stop in (
        (("stop",), scenario.stop),
        *(((*scenario.place_of(protocol), "stop"), protocol.stop) for protocol in scenario.protocols),
    ):
        if stop is not None and stop.target_accuracy is not None:
            problem = f"target_accuracy={stop.target_accuracy:g} is never reached by a model that predicts numbers"
            raise Misfit(f"{problem} (regression): it has no accuracy; leave it out", *path)


def _check_stream(dataset: FederatedDataset) -> None:
    stream, shape = dataset.stream, dataset.sample_shape
    if stream is None:
        return
    if stream.augmentation is not None:
        if dataset.vocabulary is not None or shape is None or len(shape) != 3:
            problem = f"augmentation is for images (channels, height, width), and samples are {shape}; leave it out"
            raise Misfit(problem, "data", "stream", "augmentation")
        _check_that_nothing_saturates(dataset)
    if stream.drift is not None and dataset.classes is None:
        problem = "drift is between groups of classes, and this data set has none; leave it out"
        raise Misfit(problem, "data", "stream", "drift")
    elif stream.drift is not None and dataset.classes is not None:
        _check_groups(dataset, stream.drift, dataset.classes)


def _check_groups(dataset: FederatedDataset, drift: DriftSettings, classes: int) -> None:
    """There are classes for each phase; each one that is named is the data set's, and is named once in a phase."""
    if not drift.groups and drift.all_phases > classes:
        problem = f"{drift.all_phases} phases share {classes} classes, and each needs one of its own"
        raise Misfit(f"{problem}; use fewer phases", "data", "stream", "drift")
    names = dataset.labels
    for phase, group in enumerate(drift.groups):
        for name in group:
            if name not in names:
                known = ", ".join(names[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
                problem = f"the data set has no class {name!r}{nearest(name, names)} (classes: {known})"
                raise Misfit(problem, "data", "stream", "drift", "groups", phase)
        if len(set(group)) < len(group):
            raise Misfit("names a class twice", "data", "stream", "drift", "groups", phase)


def _check_that_nothing_saturates(dataset: FederatedDataset) -> None:
    """Augmented images end at 0 and 1, so they have to be from there."""
    stored = dataset.stored
    assert stored is not None
    if stored.dtype.kind in "iu":
        limits = np.iinfo(stored.dtype)
        if _is_between_0_and_1(dataset.encoding.decode(np.array([limits.min, limits.max], stored.dtype))):
            return  # whatever the samples are: they may not be drawn yet
    assert dataset.x is not None
    extremes = dataset.encoding.decode(np.array([dataset.x.min(), dataset.x.max()]))
    if not _is_between_0_and_1(extremes):
        raise Misfit(
            "augmentation is for images with values from 0 to 1, and those of this data set run from "
            f"{extremes.min():g} to {extremes.max():g}; bring them there, or leave it out",
            "data",
            "stream",
            "augmentation",
        )


def _is_between_0_and_1(values: NDArray[Any]) -> bool:
    return bool(values.min() >= -ROUNDING and values.max() <= 1 + ROUNDING)
