"""Machine code is made once, before workers are forked."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch
from batched_cases import CLASSES, RECIPES, Link, dataset, linear, model, outputs, wave

from fedsim.learning.executors.batched.trainer import BatchedTrainer
from fedsim.learning.executors.worker_pool import TrainJob
from fedsim.learning.executors.workers import Workers
from fedsim.learning.kernels import machine_code
from fedsim.models.small_cnn import SmallCnn


def test_what_is_prepared_is_all_that_training_and_scoring_need() -> None:
    """So workers, which are forked behind it, make no machine code of their own."""
    table = SmallCnn(hidden=512).table((1, 12, 12), CLASSES)
    data = dataset(table, [9, 4])
    caches = machine_code.convolution_kernels, machine_code.product_kernels, machine_code.correction_kernel
    for cache in caches:
        cache.cache_clear()
    BatchedTrainer.prepare(table, "cpu", "float32")
    made = [cache.cache_info().misses for cache in caches]
    assert made == [2, 1, 2]
    arguments = table, data, [[Link(0)], [Link(1)]], [RECIPES["plain"]]
    _, _, total = outputs(BatchedTrainer, *arguments, precision="float32")
    BatchedTrainer(table, data, "cpu", "float32").score(total, [np.arange(3)])
    assert [cache.cache_info().misses for cache in caches] == made


def test_workers_are_forked_behind_what_is_prepared() -> None:
    """Once, whatever there is to do."""
    table = linear()
    data, prepared = dataset(table, [9]), []
    pool = Workers(
        lambda _: BatchedTrainer(table, data, "cpu", "float32"), 2, [table], torch.float32, partial(prepared.append, 1)
    )
    assert not prepared
    values = list(model(table, "float32", seed=1).values()) * 2
    job = TrainJob(wave(data, table.parts, [[Link(0)]], [RECIPES["plain"]], table.parts), values)
    for _ in range(2):
        pool.finish(pool.begin(job))
    pool.close()
    assert prepared == [1]
