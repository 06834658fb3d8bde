"""The keys of a protocol's parts: each protocol that has one checks it, and says where it stands."""

from __future__ import annotations

import pytest
from refusals import DATA, FEDAVG, FEDPROX, MODEL, PLANT, Refusals, edited, lay_out

from fedsim import registry
from fedsim.cli import main
from fedsim.settings import OneOf

OWN_RULE = ("fedavgm", "fedadagrad", "fedadam", "fedyogi", "fednova", "scaffold", "ida", "ida_intrac", "ida_fedavg")
"""FedAvg with one server rule, whose keys may be others; scaffold and ida_intrac have one objective too."""
NEEDED = dict.fromkeys(OWN_RULE, "fraction: 0.5") | {
    "fedavg": "fraction: 0.5",
    "fedprox": "fraction: 0.5, mu: 0.1",
    "fedper": "fraction: 0.5",
    "spatl": "fraction: 0.5",
    "spatl_no_selection": "fraction: 0.5",
    "spatl_no_control": "fraction: 0.5",
    "spatl_shared_predictor": "fraction: 0.5",
    "flexifed": "fraction: 0.5",
    "clustered_fl": "fraction: 0.5",
    "standalone": "fraction: 0.5",
    "cgau": "fraction: 0.5, pretraining_rounds: 1",
    "fedmmd": "fraction: 0.5",
    "fedfusion_conv": "fraction: 0.5",
    "fedfusion_multi": "fraction: 0.5",
    "fedfusion_single": "fraction: 0.5",
    "hierarchical": "fraction: 0.5",
    "fedgs": "selector: {name: random}, fused: false",
    "fedgs_random": "fused: false",
    "composed": "cohort: {name: random, fraction: 0.5}",
}
"""The keys that a protocol cannot do without."""
MISSPELT = {
    "server": ("rule", "meen", "mean"),
    "exchange": ("exchange", "hole", "whole"),
    "objective": ("objective", "proximl", "proximal"),
    "codec": ("codec", "float23", "float32"),
    "cohort": ("cohort", "randem", "random"),
    "schedule": ("schedule", "round", "rounds"),
}
"""Key -> what it names, a wrong name, and the nearest one."""
PARTS = [
    (name, key)
    for name in registry.names("protocols")
    for key in MISSPELT
    if key in (fields := registry.load("protocols", name).model_fields)
    if any(isinstance(mark, OneOf) for mark in fields[key].metadata)
]
SPATL = tuple(name for name in NEEDED if name.startswith("spatl"))
"""They have a rule and an exchange of their own, and say what is minimised."""
AT_STATIONS = ("hierarchical", "fedgs", "fedgs_random")
"""They say who waits for whom, and leave the rest open."""
OF_TWO_PARTS = ("cgau",)
"""They give a model another classifier, which softmax does not have apart; what is minimised is theirs to say."""
OF_FEATURES = {name for name in NEEDED if name.startswith(("fedmmd", "fedfusion"))}
"""They look at features, which softmax does not have."""
NUMBERS = {
    DATA: "data: {name: csv, path: pump.csv, target: y, task: regression, partition: {name: iid}}",
    MODEL: "model: {name: mlp}",
}
PLAIN = {
    "server": "mean",
    "exchange": "whole",
    "objective": "plain",
    "codec": "float32",
    "cohort": "random, fraction: 0.5",
    "schedule": "rounds",
}
"""What each can be without more ado."""
ONLY_FITS_PARTS = {"hfedms_d": "exchange 'lasp' needs a model of", "fedper": "exchange 'extractor' needs a model of"}
ONLY_FITS_PARTS |= dict.fromkeys(
    [name for name in NEEDED if name.startswith("spatl")], "exchange 'salient_filters' needs a model of"
)
ONLY_FITS_PARTS["standalone"] = "clients have models of their own"
"""What those say of a softmax, which has its classifier not apart."""
NET = """
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.scores = nn.Linear(64, 10), nn.Linear(64, 10)

    def forward(self, x):
        return self.hidden(x.flatten(1)) * self.scores(x.flatten(1))
"""
CSV = "a,b,y\n" + "".join(f"{number},{number % 3},{number / 7}\n" for number in range(40))


def protocol(name: str, keys: str) -> dict[str, str]:
    """The plant with this protocol alone."""
    needed = None if keys.startswith("cohort") else NEEDED.get(name)
    return {FEDAVG: f"  - {{name: {', '.join(filter(None, (name, needed, keys)))}}}\n", FEDPROX: ""}


def test_who_has_which_part() -> None:
    every = set(registry.names("protocols")) - {"centralised"}
    having = {key: {name for name, of_it in PARTS if of_it == key} for key in MISSPELT}
    assert having["codec"] == every
    assert having["server"] == every - set(OWN_RULE) - set(SPATL)
    assert having["objective"] == every - {"fedprox", "scaffold", "ida_intrac", *OF_TWO_PARTS, *SPATL} - OF_FEATURES
    assert having["cohort"] == having["schedule"] == {"composed"}
    assert having["exchange"] == {"fedavg", "fedprox", "stp", "composed", *OWN_RULE, *AT_STATIONS} | OF_FEATURES


@pytest.mark.parametrize(("name", "key"), PARTS)
def test_a_misspelt_part_gets_the_nearest_name(name: str, key: str, refused: Refusals) -> None:
    kind, wrong, right = MISSPELT[key]
    lay_out({"plant.yaml": edited(PLANT, protocol(name, f"{key}: {{name: {wrong}}}"))}, refused.folder)
    message = f"plant.yaml:20: protocols[0].{key}.name: no {kind} is called '{wrong}'; did you mean '{right}'? ..."
    refused.check("run", "plant.yaml", message=message)


@pytest.mark.parametrize("name", [name for name, key in PARTS if key == "objective"])
def test_distillation_of_numbers_is_refused_where_it_was_written(name: str, refused: Refusals) -> None:
    random = ", grouping: {name: random}" if name == "stp" else ""  # others would need classes first
    changes = NUMBERS | protocol(name, f"objective: {{name: distilled, coefficient: 0.1}}{random}")
    lay_out({"plant.yaml": edited(PLANT, changes), "pump.csv": CSV}, refused.folder)
    if "grouping" in registry.load("protocols", name).model_fields and not random:
        message = "plant.yaml:20: protocols[0].grouping: grouping 'icg' goes by the classes of samples, and ..."
    else:
        message = (
            "plant.yaml:20: protocols[0].objective: distillation compares scores of classes, and data set 'csv' has "
            "numbers to predict; choose another objective"
        )
    refused.check("run", "plant.yaml", message=message)


@pytest.mark.parametrize(("name", "key"), PARTS)
def test_a_part_by_its_own_name_is_fine(
    name: str, key: str, refused: Refusals, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = protocol(name, f"{key}: {{name: {PLAIN[key]}}}")
    if name in OF_FEATURES or name in OF_TWO_PARTS:
        changes[MODEL] = "model: {name: mlp}"
    lay_out({"plant.yaml": edited(PLANT, changes)}, refused.folder)
    status = main(["validate", "plant.yaml"])
    only_fits_parts = ONLY_FITS_PARTS.get(name)
    said = capsys.readouterr().err
    assert (status, only_fits_parts is not None and only_fits_parts in said) == (
        (2, True) if only_fits_parts else (0, False)
    )


DECLARED = {
    DATA: "data: {name: declared, samples_per_client: 9}",
    MODEL: "model: {name: declared, parameters: 1000, training_flops_per_sample: 9}",
}
LAYERS = "; choose a model of layers, such as small_cnn or mlp"
WITHOUT_FEATURES = {
    "fusion, softmax": (
        "fedfusion_multi",
        {},
        "protocols[0]: model 'softmax': the model has no features to fuse, as it is one layer; choose another, such as "
        "mlp",
    ),
    "fusion, declared": (
        "fedfusion_conv",
        DECLARED,
        f"protocols[0]: model 'declared': no fusion layer can be put into a model of declared sizes{LAYERS}",
    ),
    "fusion, own": (
        "fedfusion_single",
        {MODEL: "model: {name: torch_module, path: net.py:Net}"},
        f"protocols[0]: model 'torch_module': no fusion layer can be put into a PyTorch module of one's own{LAYERS}",
    ),
    "fusion by its objective": (
        "composed, cohort: {name: random, clients: 2}, objective: {name: fusion, operator: multi}",
        {},
        "protocols[0].objective: model 'softmax': the model has no features to fuse, as it is one layer; choose "
        "another, such as mlp",
    ),
    "features, softmax": (
        "fedmmd",
        {},
        "protocols[0]: features are compared, and the model's only layer takes the samples themselves; choose a model "
        "with more layers, such as mlp",
    ),
    "features, own": (
        "fedmmd",
        {MODEL: "model: {name: torch_module, path: net.py:Net, classifier: [scores]}"},
        "protocols[0]: the classifier of '...net.py:Net' cannot be trained apart: it must be one of the ...",
    ),
}


@pytest.mark.parametrize("case", WITHOUT_FEATURES)
def test_a_model_without_features_is_refused_by_who_looks_at_them(case: str, refused: Refusals) -> None:
    named, changes, message = WITHOUT_FEATURES[case]
    name, _, keys = named.partition(", ")
    files = {"plant.yaml": edited(PLANT, protocol(name, keys) | changes), "net.py": NET}
    lay_out(files, refused.folder)
    for command in (["run", "plant.yaml"], ["run", "plant.yaml", "--no-training"])[case == "fusion, declared" :]:
        refused.check(*command, message=f"plant.yaml:20: {message}")


def test_features_of_a_model_of_declared_sizes_need_no_bytes(
    refused: Refusals, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without training nobody looks at them."""
    lay_out({"plant.yaml": edited(PLANT, protocol("fedmmd", "coefficient: 0.1") | DECLARED)}, refused.folder)
    assert main(["validate", "plant.yaml", "--set", "learn=false"]) == 0, capsys.readouterr().err
