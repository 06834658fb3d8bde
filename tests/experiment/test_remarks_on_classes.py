"""Batch normalisation that meets clients of one or two classes is named before anything runs, with the way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import numpy as np
import pytest

from fedsim.experiment.remarks_before import remarks_before
from fedsim.experiment.validate import validate

Changes = dict[str, Any]

OWN_NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self, norm):
        layers = {"batch": nn.BatchNorm2d(2), "group": nn.GroupNorm(1, 2)}
        super().__init__(nn.Conv2d(1, 2, 3), layers[norm], nn.Flatten(), nn.Linear(72, 10))
"""
BY_BATCHES, BY_GROUPS = {"name": "resnet"}, {"name": "resnet", "normalisation": "group"}
WRITE = "write normalisation: group"


def few_classes(few: int, clients: int, way_out: str = WRITE) -> str:
    return (
        f"{few} of {clients} clients have training samples of at most 2 of 4 classes: the means and variances that "
        "batch normalisation takes from their mini-batches, and that are then averaged, fit no client (Hsieh et al., "
        f"ICML 2020); {way_out}, which treats each sample by itself"
    )


def held(folder: Path, *classes: int, of: int = 4) -> Changes:
    """Clients that have images of so many classes each, to train on and to test on; the second half are cameras."""
    y = [np.arange(own).repeat(3) for own in classes]
    client, labels = np.repeat(np.arange(len(classes)), [len(own) for own in y]), np.concatenate(y)
    np.savez(
        folder / "held.npz",
        x=np.zeros((len(labels), 1, 8, 8), np.float32),
        y=labels,
        client=client,
        test=np.arange(len(labels)) % 3 == 0,
    )
    nodes: Changes = {"cloud": {"kind": "cloud"}, "station": {"kind": "base_station"}}
    for number in range(len(classes)):
        device = "sensor" if number < len(classes) / 2 else "camera"
        nodes[f"device-{number}"] = {"kind": "sensor", "attach": "station", "device": device}
    natural = {"name": "arrays", "path": str(folder / "held.npz"), "partition": {"name": "natural"}}
    return {
        "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "station"]}]},
        "devices.classes.camera": digit_runs.INSTANT,
        "data": natural | {"classes": of},
        "protocols": [{"name": "fedavg", "clients": 1}],
        "model": BY_BATCHES,
    }


def said_of_classes(changes: Changes) -> list[str]:
    scenario, remarks = digit_runs.scenario(changes), list[str]()
    validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
    return remarks


@pytest.mark.parametrize(
    ("classes", "few"),
    [((1, 1, 1), 3), ((2, 1, 2), 3), ((1, 2, 3, 4), 2), ((3, 2, 1, 3), 2), ((2, 3, 4), None), ((4, 4), None)],
)
def test_batch_normalisation_of_few_classes_at_half_of_the_clients_is_named(
    classes: tuple[int, ...], few: int | None, tmp_path: Path
) -> None:
    said = [] if few is None else [f"model.normalisation: {few_classes(few, len(classes))}"]
    assert said_of_classes(held(tmp_path, *classes)) == said


@pytest.mark.parametrize(
    "changes",
    [
        {"model": BY_GROUPS},
        {"model": {"name": "resnet", "normalisation": "none"}},
        {"model": {"name": "mlp"}},
        {"learn": False},
        {"protocols": [{"name": "centralised"}]},
        {"data.target": "value", "data.classes": None},
    ],
)
def test_without_batch_normalisation_of_clients_that_learn_classes_nothing_is_said(
    changes: Changes, tmp_path: Path
) -> None:
    common = held(tmp_path, 1, 1, 1)
    assert said_of_classes(common | changes) == []
    assert len(said_of_classes(common)) == 1


def test_images_that_are_drawn_later_need_not_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their labels are enough: each camera has 20 images of 62 characters."""
    monkeypatch.setattr("fedsim.experiment.remarks_on_classes.FEW", 20)
    changes = {"topology.devices": 4, "data": {"name": "glyphs", "images_per_device": 20}, "model": BY_BATCHES}
    scenario, remarks = digit_runs.scenario(changes | {"protocols": [{"name": "fedavg", "clients": 1}]}), list[str]()
    materials = validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
    assert len(remarks) == 1 and "4 of 4 clients have training samples of at most 20 of 62 classes" in remarks[0]
    assert "x" not in vars(materials.dataset)


def test_where_there_are_two_classes_each_client_may_have_all(tmp_path: Path) -> None:
    assert said_of_classes(held(tmp_path, 2, 1, 2, of=2)) == []


@pytest.mark.parametrize(
    ("sensors", "cameras", "said"),
    [
        (BY_BATCHES, {"name": "resnet", "depth": 32}, ["camera"]),
        (BY_GROUPS, {"name": "resnet", "depth": 32}, ["camera"]),
        (BY_BATCHES, {"name": "resnet", "depth": 32, "normalisation": "group"}, []),
        (BY_BATCHES, None, ["model"]),
    ],
)
def test_each_model_is_looked_at_with_the_clients_that_train_it(
    sensors: Changes, cameras: Changes | None, said: list[str], tmp_path: Path
) -> None:
    """Two sensors with samples of all classes, and two cameras with samples of one."""
    changes = held(tmp_path, 4, 4, 1, 1) | {"model": sensors}
    if cameras:
        changes |= {"protocols": [{"name": "flexifed", "clients": 2}], "evaluate": {"on": ["own"]}}
        changes["devices.classes.camera"] = digit_runs.INSTANT | {"model": cameras}
    expected = {
        "camera": f"devices.classes.camera.model.normalisation: {few_classes(2, 2)}",
        "model": f"model.normalisation: {few_classes(2, 4)}",
    }
    assert said_of_classes(changes) == [expected[name] for name in said]


@pytest.mark.parametrize("norm", ["batch", "group"])
def test_of_a_module_of_the_users_own_the_torch_layer_is_named(norm: str, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(OWN_NET, encoding="utf-8")
    own = {"name": "torch_module", "path": f"{tmp_path / 'net.py'}:Net", "options": {"norm": norm}}
    said = few_classes(3, 3, "put torch.nn.GroupNorm in its place")
    assert said_of_classes(held(tmp_path, 1, 1, 1) | {"model": own}) == ([f"model: {said}"] if norm == "batch" else [])
