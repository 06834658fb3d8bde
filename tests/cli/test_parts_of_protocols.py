"""The keys of a protocol's parts: each protocol that has one checks it, and says where it stands."""

from __future__ import annotations

import pytest
from refusals import DATA, FEDAVG, FEDPROX, MODEL, PLANT, Refusals, edited, lay_out

from fedsim import registry
from fedsim.cli import main

NEEDED = {
    "fedavg": "fraction: 0.5",
    "fedprox": "fraction: 0.5, mu: 0.1",
    "fedper": "fraction: 0.5",
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
    if key in registry.load("protocols", name).model_fields
]
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
ONLY_FITS_PARTS = {"hfedms_d": "lasp sends the classifier alone", "fedper": "extractor sends the extractor alone"}
"""What those say of a softmax, which has its classifier not apart."""
CSV = "a,b,y\n" + "".join(f"{number},{number % 3},{number / 7}\n" for number in range(40))


def protocol(name: str, keys: str) -> dict[str, str]:
    """The plant with this protocol alone."""
    needed = None if keys.startswith("cohort") else NEEDED.get(name)
    return {FEDAVG: f"  - {{name: {', '.join(filter(None, (name, needed, keys)))}}}\n", FEDPROX: ""}


def test_who_has_which_part() -> None:
    every = set(registry.names("protocols")) - {"centralised"}
    having = {key: {name for name, of_it in PARTS if of_it == key} for key in MISSPELT}
    assert having["server"] == having["codec"] == every
    assert having["objective"] == every - {"fedprox"}
    assert having["cohort"] == having["schedule"] == {"composed"}
    assert having["exchange"] == {"fedavg", "fedprox", "stp", "composed"}


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
    lay_out({"plant.yaml": edited(PLANT, protocol(name, f"{key}: {{name: {PLAIN[key]}}}"))}, refused.folder)
    status = main(["validate", "plant.yaml"])
    only_fits_parts = ONLY_FITS_PARTS.get(name)
    said = capsys.readouterr().err
    assert (status, only_fits_parts is not None and only_fits_parts in said) == (
        (2, True) if only_fits_parts else (0, False)
    )
