"""A model that is loaded from a run folder gives what the run's own evaluation has found."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from safetensors.torch import load_file
from tiny_results import rounds_of, write_results

import fedsim
from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.models.torch_module import LayerModule
from fedsim.scenario.build import gather_materials

FEW = {"stop.rounds": 2, "protocols": [{"name": "fedavg", "clients": 2}]}
OWN_NET = Path(__file__).parents[1] / "models" / "own_net.py"
MODELS: dict[str, dict[str, Any]] = {
    "a classifier alone": {"model": {"name": "softmax"}},
    "dense layers": {"model": {"name": "mlp", "hidden": [16]}},
    "convolutions": {"model": {"name": "small_cnn"}, "data.pixels": 16},
    "batch normalisation and shortcuts": {"model": {"name": "resnet"}, "stop.rounds": 1},
    "a module of the user's": {"model": {"name": "torch_module", "path": f"{OWN_NET}:Net"}, "data.pixels": 28},
}


@pytest.mark.parametrize("which", MODELS)
def test_its_accuracy_on_the_test_set_is_that_of_the_run(which: str, tmp_path: Path) -> None:
    scenario = digit_runs.scenario(FEW | MODELS[which])
    results = fedsim.run(scenario, out=tmp_path / "run", observer=Observer())
    model = fedsim.load_results(tmp_path / "run").load_model("fedavg", 1)
    data = gather_materials(scenario, 1).dataset
    assert data.y is not None
    with torch.no_grad():
        found = model(torch.from_numpy(data.samples(data.test_ids))).argmax(1).numpy()
    assert (found == data.y[data.test_ids]).mean() == results.summary["final_accuracy"].item()
    assert not any(module.training for module in model.modules())


FUSED = [{"name": f"fedfusion_{operator}", "clients": 2} for operator in ("conv", "multi", "single")]


def test_a_model_that_a_protocol_has_adapted_comes_back_as_it_was_trained(tmp_path: Path) -> None:
    scenario = digit_runs.scenario(FEW | {"protocols": [*FEW["protocols"], *FUSED]})
    results = fedsim.run(scenario, out=tmp_path / "run", observer=Observer(), executor="serial")
    data = gather_materials(scenario, 1).dataset
    assert data.y is not None
    parameters = results.manifest["model"]["parameters"]
    for row, more in zip(results.manifest["runs"], (None, 2 * 16**2, 16, 1), strict=True):
        model = results.load_model(row["protocol"], 1)
        assert sum(parameter.numel() for parameter in model.parameters()) == parameters + (more or 0)
        assert row.get("model") == (more and {"parameters": parameters + more, "bytes": 4.0 * (parameters + more)})
        found = model(torch.from_numpy(data.samples(data.test_ids))).argmax(1).numpy()
        summary = results.summary.set_index("protocol")["final_accuracy"]
        assert (found == data.y[data.test_ids]).mean() == summary[row["protocol"]]


OWN_OBJECTIVE = """
from fedsim.learning.objectives.fusion import FeatureFusion

class Mine(FeatureFusion):
    \"\"\"As fedsim's own.\"\"\"
"""


def test_no_code_of_a_protocol_is_run_to_load_its_model(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN_OBJECTIVE)
    objective = {"path": f"{tmp_path / 'mine.py'}:Mine", "operator": "multi"}
    scenario = digit_runs.scenario(FEW | {"protocols": [{"name": "fedavg", "clients": 2, "objective": objective}]})
    results = fedsim.run(scenario, out=tmp_path / "run", observer=Observer(), executor="serial")
    with pytest.raises(UserError, match=r"scenario.yaml:\d+: protocols: none called 'fedavg' can be read without"):
        results.load_model("fedavg", 1)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return fedsim.run(digit_runs.scenario(FEW), out=tmp_path_factory.mktemp("whole") / "run", observer=Observer())


@pytest.fixture
def results(whole: Results, tmp_path: Path) -> Results:
    """A copy to spoil."""
    return fedsim.load_results(shutil.copytree(whole.folder, tmp_path / "run"))


def rewritten(results: Results, **changes: object) -> Results:
    path = results.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_bytes()), **changes}))
    return fedsim.load_results(results.folder)


def test_it_has_the_weights_of_the_files(whole: Results) -> None:
    model = whole.load_model("fedavg", 1)
    assert isinstance(model, LayerModule)
    for part, path in whole.final_weights("fedavg", 1).items():
        state, tensors = model.part_state(part), load_file(path)
        assert state.keys() == tensors.keys()
        assert all(torch.equal(state[name], tensors[name]) for name in tensors)


def test_a_users_module_comes_back_as_what_it_is(tmp_path: Path) -> None:
    source = tmp_path / "my_net.py"
    source.write_text(OWN_NET.read_text())
    own = MODELS["a module of the user's"] | {"model": {"name": "torch_module", "path": f"{source}:Net"}}
    results = fedsim.run(digit_runs.scenario(FEW | own), out=tmp_path / "run", observer=Observer())
    model = results.load_model("fedavg", 1)
    assert type(model).__name__ == "Net" and model.head.out_features == 10
    source.write_text(OWN_NET.read_text() + "\n")
    with pytest.raises(UserError, match=r"my_net\.py is another file than this scenario was made with"):
        results.load_model("fedavg", 1)


def test_the_data_set_need_not_be_there(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fedsim.data.digits._handwritten", None)
    assert results.load_model("fedavg", 1)(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


# -- what goes wrong ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "seed", "message"),
    [
        ("fedvag", 1, " has no run of 'fedvag'; did you mean 'fedavg'? (runs: fedavg on seed 1)"),
        ("scaffold", 1, " has no run of 'scaffold' (runs: fedavg on seed 1)"),
        ("fedavg", 7, " has no run of 'fedavg' on seed 7 (its seeds: 1)"),
        ("fedavg", "1", ": seed '1' is text; a whole number is needed (remove the quotes)"),
    ],
)
def test_a_run_that_is_not_there(whole: Results, protocol: str, seed: int, message: str) -> None:
    with pytest.raises(UserError) as refused:
        whole.load_model(protocol, seed)
    assert str(refused.value) == f"{whole.folder}{message}"


def test_of_a_protocol_that_is_there_the_seeds_are_named_and_no_other_protocol(tmp_path: Path) -> None:
    results = write_results(tmp_path / "run", [rounds_of("fedavg", 1, [0.5])])
    results.manifest["runs"] += [
        {"protocol": name, "seed": seed} for name, seed in [("fedavg", 1), ("fedavgm", 1), ("fedavg", 2)]
    ]
    with pytest.raises(UserError, match=r"has no run of 'fedavg' on seed 7 \(its seeds: 1, 2\)$"):
        results.final_weights("fedavg", 7)


def test_without_training_there_is_no_model(tmp_path: Path) -> None:
    results = fedsim.run(digit_runs.scenario(FEW | {"learn": False}), out=tmp_path / "run", observer=Observer())
    with pytest.raises(UserError, match="has no model: nothing was learned"):
        results.load_model("fedavg", 1)


def test_weights_that_are_lost(results: Results) -> None:
    results.final_weights("fedavg", 1)["classifier"].unlink()
    with pytest.raises(UserError, match="is lost; run the scenario again, into another folder"):
        results.load_model("fedavg", 1)


@pytest.mark.parametrize("changed", [{"outputs": 7}, {"sample_shape": []}])
def test_a_scenario_that_describes_another_model(changed: dict[str, object], results: Results) -> None:
    with pytest.raises(UserError, match=r"its scenario\.yaml describes another model than it has trained"):
        rewritten(results, **changed).load_model("fedavg", 1)


def test_a_device_class_that_is_not_there(whole: Results) -> None:
    with pytest.raises(UserError, match=r"no device class 'sensr'; did you mean 'sensor'\? \(classes: 'sensor'\)"):
        whole.load_model("fedavg", 1, device_class="sensr")
    assert isinstance(whole.load_model("fedavg", 1, device_class="sensor"), LayerModule)
