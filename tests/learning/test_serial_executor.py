"""The plain loop: what goes in is left alone, what comes out is new, and its files are safetensors."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from small_learner import CLIENTS, SAMPLES, data, small, table

from fedsim.errors import UserError
from fedsim.learning.executors.serial import Serial
from fedsim.learning.learner import Contribution
from fedsim.learning.objectives import Plain, Proximal
from fedsim.learning.spread import spread


def test_no_output_shares_memory_with_an_input_and_no_input_changes(tmp_path: Path) -> None:
    run = small(tmp_path)
    learner, force = run.learner, run.learner._forcer.force
    model = learner.initial_model()
    trained = [
        learner.train(model, client, objective=Proximal(0.1), use=0, round_number=1).model for client in range(CLIENTS)
    ]
    mean = learner.mean(model, [Contribution(c, m, SAMPLES) for c, m in enumerate(trained)], round_number=1)
    models = [model, *trained]
    for handle in (handle for parts in models for handle in parts.values()):
        force(handle)
    before = [{name: tensor.clone() for name, tensor in parts["classifier"].value.items()} for parts in models]
    force(mean["classifier"])
    learner.evaluate(mean, "global", round_number=1)
    run.store.close()

    memory = [tensor.data_ptr() for parts in [*models, mean] for tensor in parts["classifier"].value.values()]
    assert len(set(memory)) == len(memory)
    for parts, copy in zip(models, before, strict=True):
        assert all(torch.equal(parts["classifier"].value[name], tensor) for name, tensor in copy.items())


def test_two_test_sets_are_scored_as_by_hand(tmp_path: Path) -> None:
    run = small(tmp_path)
    model = run.learner.initial_model()
    overall = run.learner.evaluate(model, "global", round_number=0)
    clients = run.learner.evaluate(model, "clients", round_number=0)
    run.learner._forcer.force(model["classifier"])
    run.store.close()
    weight, bias = model["classifier"].value.values()
    dataset = data()

    def score(ids: np.ndarray) -> dict[str, float]:
        logits = dataset.x[ids].reshape(len(ids), -1) @ weight.numpy().T + bias.numpy()
        logits = logits.astype(np.float64)
        log_sums = np.log(np.exp(logits).sum(axis=1))
        labels = dataset.y[ids]
        loss = (log_sums - logits[np.arange(len(ids)), labels]).mean()
        return {"accuracy": float((logits.argmax(axis=1) == labels).mean()), "loss": loss, "samples": len(ids)}

    assert overall == pytest.approx(score(dataset.test_ids), rel=1e-5)
    assert clients == pytest.approx(spread([score(ids) for ids in dataset.client_test_ids]), rel=1e-5)


def test_equal_values_are_equal_bytes_and_come_back_as_they_were(tmp_path: Path) -> None:
    executor = Serial(table(), data())
    part = {"b": torch.randn(2, 3), "a": torch.tensor([math.inf, -0.0, 1e-42])}
    content = executor.dump(part)
    assert content == executor.dump(dict(reversed(part.items())))
    (tmp_path / "part.safetensors").write_bytes(content)
    read = executor.load(tmp_path / "part.safetensors")
    assert read.keys() == part.keys()
    assert all(torch.equal(read[name].view(torch.int32), part[name].view(torch.int32)) for name in part)


@pytest.mark.parametrize("damage", ["cut off", "emptied", "another format"])
def test_a_corrupt_tensor_file_is_named(tmp_path: Path, damage: str) -> None:
    def trained_and_kept() -> None:
        run = small(tmp_path)
        model = run.learner.initial_model()
        try:
            run.learner.keep_final(run.learner.train(model, 0, objective=Plain(), use=0, round_number=1).model)
        finally:
            run.store.close()

    trained_and_kept()
    (path,) = (tmp_path / "tensors").iterdir()
    content = path.read_bytes()
    path.write_bytes({"cut off": content[:-5], "emptied": b"", "another format": b"PK\x03\x04" + content[4:]}[damage])
    with pytest.raises(UserError, match=f"{path.name}: not readable as safetensors .* delete it to train again"):
        trained_and_kept()
    path.unlink()
    trained_and_kept()
    assert path.read_bytes() == content


def test_precision_is_part_of_the_numeric_family() -> None:
    families = {Serial.numeric_family("cpu"), Serial.numeric_family("cpu", "float64")}
    assert len(families) == 2
    assert Serial(table(), data(), precision="float64").family in families
