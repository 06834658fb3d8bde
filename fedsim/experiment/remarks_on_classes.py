"""Where batch normalisation meets clients of one or two classes, which is said before anything runs.

The means and variances of a client's mini-batches are then those of its classes; averaged with those of other classes,
they fit nobody's samples (Hsieh et al., *The Non-IID Data Quagmire of Decentralized Machine Learning*, ICML 2020). Left
out: drift, which shows a client other classes at other times.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fedsim.data.class_counts import classes_held
from fedsim.models.settings import ModelSettings
from fedsim.models.table import ModelTable
from fedsim.protocols.centralised import Centralised
from fedsim.scenario.build import Materials
from fedsim.scenario.document import KeyPath
from fedsim.scenario.schema import Scenario

__all__ = ["normalised_over_few_classes"]

FEW = 2
"""Classes of a client whose mini-batches are not like those of others."""
KEY = "normalisation"
STATISTIC = "running_mean"
"""What batch normalisation remembers, as PyTorch calls it."""


def normalised_over_few_classes(scenario: Scenario, materials: Materials) -> Iterator[tuple[KeyPath, str]]:
    """Each model whose batch normalisation sees few classes at half of its clients or more: its key, and what to say.

    Looked at are runs in which clients learn to tell more than two classes apart.
    """
    if not scenario.learn or all(isinstance(protocol, Centralised) for protocol in scenario.protocols):
        return  # nobody trains, or the cloud does, which has samples of all classes
    models = [
        (where, model, names) for where, model, table, names in _models(scenario, materials) if _remembers_means(table)
    ]
    if not models or (data := materials.dataset).classes is None or data.classes <= FEW:
        return
    held = zip(materials.device_classes, classes_held(data).tolist(), strict=True)
    clients, few = Counter(materials.device_classes), Counter(name for name, classes in held if classes <= FEW)
    for where, model, names in models:
        all_of_them, few_of_them = (sum(number[name] for name in names) for number in (clients, few))
        if 2 * few_of_them >= all_of_them > 0:
            has_key = KEY in type(model).model_fields
            way_out = f"write {KEY}: group" if has_key else "put torch.nn.GroupNorm in its place"
            yield (
                (*where, KEY) if has_key else where,
                f"{few_of_them:,} of {all_of_them:,} clients have training samples of at most {FEW} of "
                f"{data.classes} classes: the means and variances that batch normalisation takes from their "
                "mini-batches, and that are then averaged, fit no client (Hsieh et al., ICML 2020); "
                f"{way_out}, which treats each sample by itself",
            )


def _models(scenario: Scenario, materials: Materials) -> Iterator[tuple[KeyPath, ModelSettings, ModelTable, list[str]]]:
    """Where each model stands, and the device classes whose clients train it."""
    classes = scenario.devices.classes
    common = [name for name in classes if name not in materials.class_tables]
    yield ("model",), scenario.model, materials.table, common
    for name, table in materials.class_tables.items():
        model = classes[name].model
        assert model is not None, "its table is of it"
        yield ("devices", "classes", name, "model"), model, table, [name]


def _remembers_means(table: ModelTable) -> bool:
    """Whether running means travel with the model; of a module of the user's own, nothing else is known."""
    names = (name for part in table.parts for name in table.statistics_names(part))
    return any(name.rpartition(".")[2] == STATISTIC for name in names)
