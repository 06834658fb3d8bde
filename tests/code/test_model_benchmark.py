"""The benchmark of all models: its table is complete, both sides do the same work, and it runs to its end."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks import models, models_loop
from benchmarks.models import measure
from benchmarks.models_fedsim import first_model
from benchmarks.models_loop import Loop
from benchmarks.models_table import Row, Turn, table
from benchmarks.models_tuned import Tuned, layouts
from benchmarks.models_work import MODELS, TESTS, WITHOUT_ROWS, Model, Work, chosen, samples_of
from fedsim import registry
from fedsim.models.torch_module import build

ROOT = Path(__file__).parents[2]
SMALL = (
    "mlp",
    "leaf_cnn",
    "hfedms_cnn",
    "resnet-20-group",
    "conv1d",
    "conv1d-batch",
    "gru",
    "lstm-2",
)


@pytest.fixture(scope="module")
def loop() -> Iterator[Loop]:
    with Loop(2) as processes:
        yield processes


def labelled(label: str) -> Model:
    return next(model for model in MODELS if model.label == label)


def far(made: np.ndarray, wanted: np.ndarray, start: np.ndarray) -> float:
    """As a share of the update that is wanted."""
    return float(np.linalg.norm(made - wanted) / np.linalg.norm(wanted - start))


def after_one_mini_batch_of_torch(work: Work) -> np.ndarray:
    module = build(work.table())
    for part, state in work.start().items():
        module.load(part, state)
    module.double()
    x, y = (torch.from_numpy(array[TESTS:])[work.order(0, 0)[: work.batch]] for array in samples_of(work.model, 10))
    torch.nn.functional.cross_entropy(module(x.double() if x.is_floating_point() else x), y).backward()
    torch.optim.SGD(module.parameters(), lr=work.model.rate).step()
    trained = {part: dict(module.part_state(part)) for part in work.table().parts}
    return work.flat({part: {name: value.detach() for name, value in trained[part].items()} for part in trained})


def test_every_registered_model_has_rows() -> None:
    assert {model.keys["name"] for model in MODELS} == set(registry.names("models")) - set(WITHOUT_ROWS)
    assert len({model.label for model in MODELS}) == len(MODELS)


def test_names_are_labels_or_their_first_words() -> None:
    assert [model.label for model in chosen(["lstm", "vgg-11-wide"])] == ["vgg-11-wide", "lstm", "lstm-2"]
    assert chosen(["vgg-1", "resnet-20-"]) == []


@pytest.mark.parametrize(
    "label",
    [
        pytest.param(model.label, marks=[] if model.label in SMALL else pytest.mark.long)
        for model in MODELS
        if model.label != "resnet-56"  # all its layers are resnet-20-projection's, and rounding errors grow with each
    ],
)
def test_the_tuned_module_trains_as_the_usual_one_in_each_layout(
    label: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """In float64, in which all processors agree."""
    work = Work(replace(labelled(label), samples=10), 5).without_dropout()
    wanted, start = after_one_mini_batch_of_torch(work), work.flat(work.start())
    assert layouts(work.table())
    x, y = samples_of(work.model, 10)
    monkeypatch.setattr(models_loop, "samples_of", lambda *_: (x.astype(np.float64) if x.dtype == np.float32 else x, y))
    request.addfinalizer(partial(torch.set_default_dtype, torch.get_default_dtype()))
    torch.set_default_dtype(torch.float64)
    for layout in layouts(work.table()):
        trainer = models_loop.Trainer(work, "float64", layout, [0])
        trainer.train(0, most=1)
        assert far(work.flat(trainer.tuned.state()), wanted, start) < 1e-9, layout


def test_convolutions_have_channels_last_and_pooling_comes_before_the_rectifier() -> None:
    work = Work(labelled("conv1d"), 5)
    module = Tuned(work.table(), work.start(), "channels_last", work.model.rate).module
    kinds = [type(layer).__name__ for layer in module[0]]
    assert kinds[:5] == ["Conv2d", "GroupNorm", "MaxPool2d", "ReLU", "Conv2d"]
    convolutions = [layer for layer in module.modules() if isinstance(layer, torch.nn.Conv2d)]
    assert all(layer.weight.is_contiguous(memory_format=torch.channels_last) for layer in convolutions)


@pytest.mark.slow
def test_a_round_of_the_loop_makes_the_model_that_fedsim_makes(loop: Loop, tmp_path: Path) -> None:
    work = Work(replace(labelled("conv1d"), samples=10), 5)
    loop.begin(work, "float32")
    loop.another()
    first = work.flat(loop.model())
    assert far(first, work.flat(first_model(work, tmp_path / "run", "float32")), work.flat(work.start())) < 1e-3
    loop.another()
    assert not np.array_equal(work.flat(loop.model()), first)  # it goes on from there


@pytest.mark.long
def test_it_measures_both_and_writes_what_it_found(tmp_path: Path) -> None:
    words = ["--only", "mlp", "--batches", "64", "--times", "1", "--check", "1e9", "--out", str(tmp_path)]
    done = subprocess.run([sys.executable, "-m", "benchmarks.models", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # nothing is a milliard times as fast
    (row,) = csv.DictReader((tmp_path / "models_float32.csv").read_text().splitlines())
    assert (row["model"], row["batch"], row["executor"], row["reason"]) == ("mlp", "64", "batched", "")
    assert float(row["loop_s"]) / float(row["fedsim_s"]) == pytest.approx(float(row["ratio"]))
    assert float(row["fedsim_ms_per_sample"]) == pytest.approx(1e3 * float(row["fedsim_s"]) / (8 * 6400))
    content = json.loads((tmp_path / "models_float32.json").read_text())
    assert len(content["rows"][0]["turns_s"]) == 1 and content["machine"]["cores"] >= 1
    assert "mlp" in done.stdout and content["machine"]["instructions"] in done.stdout.replace("\n", " ")


@pytest.mark.slow
def test_in_bfloat16_it_tells_how_far_both_are_from_float32(loop: Loop) -> None:
    row = Row(Work(replace(labelled("mlp"), samples=64), 32), "bfloat16")
    measure(row, loop, times=1)
    assert row.reason is None
    assert 0 <= row.facts()["fedsim_update_error"] < 0.5
    assert 0 < row.facts()["loop_update_error"] < 0.5


@pytest.mark.slow
def test_what_fedsim_refuses_is_a_row_with_the_reason(loop: Loop) -> None:
    row = Row(Work(replace(labelled("mlp"), samples=10, rate=-1.0), 5), "float32")
    measure(row, loop, times=1)
    assert row.reason is not None and row.reason.startswith("fedsim: ") and "learning_rate" in row.reason
    assert row.facts()["reason"] == row.reason and not row.is_slower(1e9)


@pytest.mark.slow
def test_a_row_that_could_not_be_measured_is_told_and_is_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(models, "measure", lambda row, *others: setattr(row, "reason", "the loop: out of luck"))
    assert models.main(["--only", "mlp", "--batches", "64", "--out", str(tmp_path)]) == 1
    assert "none: mlp, batch 64: the loop: out of luck" in capsys.readouterr().out


def test_the_ratio_is_the_median_of_those_of_neighbours_and_a_small_one_is_marked() -> None:
    turns = [(Turn(2.0, 2.0), Turn(1.0, 3.0)), (Turn(1.0, 1.0), Turn(0.9, 1.5)), (Turn(1.0, 1.0), Turn(3.0, 1.5))]
    row = Row(Work(labelled("mlp"), 10), "float32", "batched", turns=turns)
    assert (row.facts()["ratio"], row.facts()["least_ratio"], row.facts()["largest_ratio"]) == (0.9, 0.5, 3.0)
    assert row.facts()["cpu_ratio"] == 1.5
    assert row.is_slower(0.97) and not row.is_slower(0.9)
    marks = list(table([row], 0.97).columns[6].cells)
    assert marks == ["slower"]
