"""FlexiFed's Table 1: accuracy by data set, model and strategy.

Wang et al., *FlexiFed: personalized federated learning for edge clients with heterogeneous model architectures*, WWW
2023.
"""

from __future__ import annotations

import math

import pandas as pd

from fedsim.experiment.compare_device_classes import device_rounds
from fedsim.experiment.results import Results
from fedsim.models.settings import ModelSettings
from fedsim.paper.published import COLUMNS, published
from fedsim.protocols.protocol import Protocol
from fedsim.scenario.load import load

__all__ = ["STRATEGIES", "flexifed_gains", "flexifed_table1"]

TABLE = "flexifed_table1"
STRATEGIES = {
    "standalone": "Standalone",
    "clustered_fl": "Clustered-FL",
    "basic": "Basic-Common",
    "clustered": "Clustered-Common",
    "max": "Max-Common",
}
"""A protocol, or the strategy of ``flexifed`` -> what the paper calls it."""
_DATA = {"cifar10": "CIFAR-10", "cinic10": "CINIC-10", "speech_commands": "Speech Commands", "ag_news": "AG NEWS"}
_MODELS = {"vgg": "VGG", "resnet": "ResNet", "char_cnn": "CharCNN", "vdcnn": "VDCNN"}


def flexifed_table1(results: Results) -> pd.DataFrame:
    """FlexiFed Table 1: accuracy of clients' own models, by strategy, data set and model.

    A row needs the paper's data set, one of its models in a device class of the run, and ``own`` in ``evaluate.on``.
    Accuracy is the last one of the class, on all own test samples together; several seeds count by their mean.
    """
    scenario = load(results.folder / "scenario.yaml")
    printed = published(TABLE).set_index("system")["value"].astype(float)
    rows = device_rounds(results)
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    last = rows.dropna(subset=["loss"]).groupby(["protocol", "device_class", "seed"], sort=False).last()
    ours = last["accuracy"].groupby(level=[0, 1], sort=False).mean()
    found = []
    for protocol in scenario.protocols:
        for kind, device in scenario.devices.classes.items():
            of_class = f"{_DATA.get(scenario.data.name)} {_version(device.model or scenario.model)}"
            system = f"{_strategy(protocol)}, {of_class}"
            if system in printed and (protocol.title, kind) in ours:
                event = 100 * ours[protocol.title, kind]
                found.append((system, "accuracy", "%", printed[system], math.nan, event))
    return pd.DataFrame(found, columns=COLUMNS)


def flexifed_gains() -> pd.Series[float]:
    """Points by which Max-Common is more accurate than Clustered-FL in the printed table, by data set and model."""
    cells = published(TABLE)
    strategy = cells["system"].str.partition(", ")
    table = cells.assign(strategy=strategy[0], cell=strategy[2], value=cells["value"].astype(float))
    accuracy = table.pivot(index="cell", columns="strategy", values="value")
    return (accuracy["Max-Common"] - accuracy["Clustered-FL"]).round(1)


def _strategy(protocol: Protocol) -> str | None:
    return STRATEGIES.get(str(getattr(protocol, "strategy", protocol.name)))


def _version(model: ModelSettings) -> str:
    return f"{_MODELS.get(model.name)}-{getattr(model, 'depth', '')}"
