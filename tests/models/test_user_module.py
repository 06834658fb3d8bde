"""A user's own torch module: measured like the models that come with fedsim, and trained like them."""

from __future__ import annotations

import copy
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from learned import mean_of, train, update
from user_nets import CLASSES, HEAD, NET, SHAPE, module

from fedsim.data.dataset import FederatedDataset
from fedsim.errors import UserError
from fedsim.kernel.streams import Streams
from fedsim.learning.executors.serial import Serial
from fedsim.learning.forcing import Forcer
from fedsim.learning.graph import Graph
from fedsim.learning.graph_learner import GraphLearner
from fedsim.learning.objectives.proximal import Proximal
from fedsim.learning.store import Store
from fedsim.learning.training import TrainingSettings
from fedsim.models.small_cnn import SmallCnn
from fedsim.models.table import LayerTable
from fedsim.models.torch_module import build, initial_parameters
from fedsim.models.user_module import TorchModule
from fedsim.models.user_table import UserTable
from fedsim.scenario.yaml_reader import parse_yaml


def test_sizes_are_those_of_its_parameters_and_float_buffers(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    assert table.parts == ("extractor", "classifier")
    assert table.parameters("extractor") == 4 * 9 + 2 * 4
    assert table.parameters("classifier") == 256 * 10 + 10
    assert table.bytes("extractor") == 4 * (4 * 9 + 2 * 4 + 2 * 4)  # with running means and variances
    assert table.bytes() == 4 * (4 * 9 + 2 * 4 + 2 * 4 + 256 * 10 + 10)
    assert list(table.state_shapes("extractor")) == [
        "conv.weight",
        *(f"norm.{name}" for name in ("weight", "bias", "running_mean", "running_var")),
    ]
    assert table.outputs == CLASSES


def test_work_is_what_the_products_take(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    assert table.forward_flops_per_sample == 2 * (64 * 4 * 9 + 256 * 10)
    assert table.training_flops_per_sample == 3 * table.forward_flops_per_sample


@pytest.mark.parametrize(
    ("layer", "macs"),
    [
        ("nn.LSTM(8, 5, batch_first=True)", 8 * 4 * 5 * (8 + 5)),
        ("nn.GRU(8, 5, batch_first=True)", 8 * 3 * 5 * (8 + 5)),
        ("nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)", 8 * (4 * 8 * 8 + 2 * 8 * 16 + 2 * 8 * 8)),
    ],
    ids=["lstm", "gru", "transformer"],
)
def test_fused_kernels_hide_no_work(tmp_path: Path, layer: str, macs: int) -> None:
    """8 steps of 8 values. LSTM and GRU: 4 and 3 gates of hidden x (inputs + hidden) products a step. Transformer
    (Vaswani et al., NIPS 2017): four projections, two feed-forward layers, scores and weighted sums over 8 steps."""
    width = 8 if "Transformer" in layer else 5
    text = f"""
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = {layer}
                self.head = nn.Linear({width}, 10)

            def forward(self, x):
                states = self.layer(x.squeeze(1))
                return self.head((states[0] if isinstance(states, tuple) else states)[:, -1])
    """
    table = module(tmp_path, text).table(SHAPE, CLASSES)
    assert table.forward_flops_per_sample == 2 * (macs + width * 10)


def test_the_same_layers_are_worth_the_same_as_a_model_that_comes_with_fedsim(tmp_path: Path) -> None:
    layers = SmallCnn().table(SHAPE, CLASSES)
    assert isinstance(layers, LayerTable)
    text = """
        from fedsim.models.small_cnn import SmallCnn
        from fedsim.models.torch_module import build, initial_parameters
        from numpy.random import default_rng

        def net():
            table = SmallCnn().table((1, 8, 8), 10)
            module = build(table)
            for part, tensors in initial_parameters(table, default_rng(0)).items():
                module.load(part, tensors)
            return module
    """
    table = module(tmp_path, text, of="net", classifier=["parts.classifier"]).table(SHAPE, CLASSES)
    for part in layers.parts:
        assert table.parameters(part) == layers.parameters(part)
        assert table.bytes(part) == layers.bytes(part)
    assert table.forward_flops_per_sample == layers.forward_flops_per_sample


def test_options_reach_the_module_and_the_digest(tmp_path: Path) -> None:
    narrow, wide = (module(tmp_path, options={"width": width}).table(SHAPE, CLASSES) for width in (2, 6))
    assert (narrow.parameters("classifier"), wide.parameters("classifier")) == (128 * 10 + 10, 384 * 10 + 10)
    same_shapes = [module(tmp_path, options={"dropout": rate}).table(SHAPE, CLASSES).digest for rate in (0.1, 0.2)]
    assert len({narrow.digest, wide.digest, *same_shapes}) == 4


def test_another_source_is_another_model_and_another_place_is_not(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    changed = module(tmp_path, NET.replace("torch.relu", "torch.tanh")).table(SHAPE, CLASSES)
    assert changed.digest != table.digest
    (tmp_path / "elsewhere").mkdir()
    assert module(tmp_path / "elsewhere").table(SHAPE, CLASSES).digest == table.digest


def test_the_classifier_is_what_is_named(tmp_path: Path) -> None:
    table = module(tmp_path, classifier=["norm", "head.weight"]).table(SHAPE, CLASSES)
    assert list(table.state_shapes("extractor")) == ["conv.weight", "head.bias"]
    with pytest.raises(UserError, match=r"'haed' is no module .*; did you mean 'head'\? \(.* conv, norm"):
        module(tmp_path, classifier=["haed"]).table(SHAPE, CLASSES)


def test_a_name_that_only_begins_alike_is_another_one(tmp_path: Path) -> None:
    text = """
        from torch import nn

        def net():
            names = nn.ModuleDict({"fc": nn.Linear(64, 10), "fc2": nn.Linear(10, 10)})
            return nn.Sequential(nn.Flatten(), *names.values())

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.fc, self.fc2 = nn.Linear(64, 10), nn.Linear(10, 10)

            def forward(self, x):
                return self.fc2(self.fc(x.flatten(1)))
    """
    assert list(module(tmp_path, text, classifier=["fc"]).table(SHAPE, CLASSES).state_shapes("extractor")) == [
        "fc2.weight",
        "fc2.bias",
    ]


def test_without_an_extractor_there_is_one_part(tmp_path: Path) -> None:
    text = """
        from torch import nn

        def net():
            return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    """
    assert module(tmp_path, text, of="net").table(SHAPE, CLASSES).parts == ("classifier",)


def test_the_module_holds_the_tables_states_and_starts_as_its_constructor_says(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    built, start = build(table), initial_parameters(table, np.random.default_rng(3))
    assert list(start) == list(table.parts)
    for part in table.parts:
        shapes = table.state_shapes(part)
        assert list({name: tuple(value.shape) for name, value in built.part_state(part).items()}.items()) == list(
            shapes.items()
        )
        assert not any(value.any() for value in built.part_state(part).values())
        assert {name: tuple(value.shape) for name, value in start[part].items()} == shapes
        assert list(built.part_parameters(part)) == list(table.parameter_shapes(part))
        built.load(part, start[part])
    torch.manual_seed(int(np.random.default_rng(3).integers(2**63)))
    own = torch.nn.Conv2d(1, 4, 3, padding=1, bias=False)
    assert torch.equal(start["extractor"]["conv.weight"], own.weight)
    assert torch.equal(start["extractor"]["norm.running_var"], torch.ones(4))
    assert built(torch.zeros(3, *SHAPE)).shape == (3, CLASSES)


def test_drawing_the_start_leaves_torchs_own_generator_alone(tmp_path: Path) -> None:
    settings = module(tmp_path, options={"dropout": 0.5})
    before = torch.random.get_rng_state()
    table = settings.table(SHAPE, CLASSES)
    one, other = (initial_parameters(table, np.random.default_rng(3)) for _ in range(2))
    build(table)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert all(torch.equal(one[part][name], other[part][name]) for part in one for name in one[part])


def test_tokens_come_as_whole_numbers(tmp_path: Path) -> None:
    text = """
        from torch import nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rows = nn.EmbeddingBag(30, 4)
                self.head = nn.Linear(4, 10)

            def forward(self, x):
                return self.head(self.rows(x))
    """
    settings = module(tmp_path, text, tokens=30)
    assert settings.vocabulary == 30
    assert settings.table((12,), CLASSES).takes_ids
    with pytest.raises(UserError, match=r"net\.py:11: "):
        module(tmp_path, text).table((12,), CLASSES)


def test_a_table_goes_to_another_process_and_can_be_built_there(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    sent: UserTable = pickle.loads(pickle.dumps(table))
    assert sent == table
    assert build(sent).part_state("classifier").keys() == table.state_shapes("classifier").keys()


def test_a_file_that_changed_meanwhile_is_not_trained(tmp_path: Path) -> None:
    table = module(tmp_path).table(SHAPE, CLASSES)
    module(tmp_path, NET + "\n")
    with pytest.raises(UserError, match=r"net\.py has changed since this run began"):
        build(table)


def test_a_scenario_remembers_the_file_that_it_was_made_with(tmp_path: Path) -> None:
    kept = module(tmp_path)
    assert kept.sha256 == kept.table(SHAPE, CLASSES).source_sha256
    again = TorchModule.model_validate(kept.model_dump())
    assert again.table(SHAPE, CLASSES) == kept.table(SHAPE, CLASSES)
    (tmp_path / "net.py").write_text("raise SystemExit('it was run')\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"net\.py is another file than this scenario was made with: its digest is"):
        again.table(SHAPE, CLASSES)


def test_a_file_that_is_not_there_is_missed_before_anything_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nett\.py: there is no such file; did you mean 'net\.py'"):
        module(tmp_path)
        TorchModule(path=f"{tmp_path / 'nett.py'}:Net")


def test_a_declared_data_set_has_nothing_to_measure_it_on(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="this data set declares sizes only"):
        module(tmp_path).table(None, None)


# -- one round through the executor -----------------------------------------------------------------------------------


def data() -> FederatedDataset:
    """Three clients with 8 samples each, whose classes are seen at a glance."""
    rng = np.random.default_rng(0)
    y = np.arange(30) % CLASSES
    x = rng.normal(0.0, 0.1, (30, *SHAPE)).astype(np.float32)
    x[np.arange(30), 0, 0, y % 8] += 2.0 + y // 8
    return FederatedDataset(
        name="glance",
        classes=CLASSES,
        sample_shape=SHAPE,
        sample_bytes=65.0,
        client_samples=np.full(3, 8, np.int64),
        stored=x,
        y=y,
        train_ids=tuple(np.arange(8 * client, 8 * client + 8) for client in range(3)),
        test_ids=np.arange(24, 30),
        client_test_ids=(np.empty(0, np.int64),) * 3,
    )


def one_round(folder: Path, table: UserTable) -> dict[str, dict[str, torch.Tensor]]:
    """The model after a round of three clients."""
    dataset = data()
    executor = Serial(table, dataset)
    graph, store = Graph("test"), Store(folder, "r", executor, label="l")
    learner = GraphLearner(
        graph=graph,
        forcer=Forcer(graph, executor, store, checkpoint_interval_s=1e6),
        store=store,
        table=table,
        dataset=dataset,
        training=TrainingSettings(learning_rate=0.1, batch_size=4, epochs=2),
        streams=Streams(1),
        tags={},
    )
    model = learner.initial_model()
    objective = Proximal(mu=0.1)
    updates = [update(client, train(learner, model, client, objective).model, 1.0) for client in range(3)]
    mean = mean_of(learner, model, updates)
    assert 0 <= learner.evaluate(mean, "global", round_number=1)["accuracy"] <= 1
    for handle in mean.values():
        learner._forcer.force(handle)
    values = {part: copy.deepcopy(dict(handle.value)) for part, handle in mean.items()}
    store.close()
    return values


def test_a_round_trains_parameters_and_moves_running_statistics_the_same_every_time(tmp_path: Path) -> None:
    table = module(tmp_path, options={"dropout": 0.5}).table(SHAPE, CLASSES)
    once, again = (one_round(tmp_path / name, table) for name in ("once", "again"))
    start = initial_parameters(table, Streams(1)("model/init").generator())
    for part in table.parts:
        assert list(once[part]) == list(table.state_shapes(part))
        for name, value in once[part].items():
            assert torch.equal(value, again[part][name]), name
            assert not torch.equal(value, start[part][name]), name


def test_a_constant_that_is_not_sent_is_welcome(tmp_path: Path) -> None:
    text = HEAD.format(
        made="self.register_buffer('mask', torch.arange(64), persistent=False); self.scale = torch.tensor(2.0)",
        called="x = self.scale * x.flatten(1) * (self.mask > 3)",
        scores="self.head(x)",
    )
    table = module(tmp_path, text).table(SHAPE, CLASSES)
    assert table.bytes() == 4 * 650
    start = initial_parameters(table, np.random.default_rng(0))
    assert list(start["classifier"]) == ["head.weight", "head.bias"]


def test_the_page_shows_a_module_and_a_scenario_that_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (Path(__file__).parents[2] / "docs/own_model.md").read_text("utf-8")
    code, keys = (
        re.search(f"^```{language}\n(.*?)^```", page, re.DOTALL | re.MULTILINE) for language in ("python", "text")
    )
    assert code is not None and keys is not None
    (tmp_path / "my_net.py").write_text(code[1], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    table = TorchModule.model_validate(read(keys[1])["model"]).table(SHAPE, CLASSES)
    assert table.parameters("classifier") == 16 * 64 * 10 + 10
    assert table.parameters("extractor") == 16 * 9 + 2 * 16


def read(text: str) -> dict[str, Any]:
    """A YAML text as plain data."""
    return parse_yaml(text, "the page").data


def test_an_installed_package_has_modules_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "nets_of_a_plant"
    package.mkdir()
    (package / "__init__.py").write_text("", encoding="utf-8")
    module(package)
    monkeypatch.syspath_prepend(tmp_path)
    settings = TorchModule(path="nets_of_a_plant.net:Net")
    assert settings.sha256 is None
    assert settings.table(SHAPE, CLASSES).digest == module(package).table(SHAPE, CLASSES).digest
    with pytest.raises(UserError, match=r"nets_of_a_plant/net\.py:8: TypeError"):
        TorchModule(path="nets_of_a_plant.net:Net", options={"width": "wide"}).table(SHAPE, CLASSES)
