"""Classes that do not come with fedsim, as text of a file; and a scenario that names one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import small_worlds

from fedsim.cli import main

PARTS = '''
from typing import Annotated, Literal

import numpy as np

from fedsim.grouping.settings import GroupingSettings
from fedsim.network.disciplines.serial import Serial
from fedsim.protocols.fedavg import FedAvg
from fedsim.protocols.stp import STP
from fedsim.radio.fixed import Fixed
from fedsim.settings import Count, OneOf


class Mine(FedAvg):
    """FedAvg with one client by default."""

    clients: Count | None = 1
    my_key: Count = 3


class Chosen(FedAvg):
    """FedAvg, by a name of its own."""

    name: Literal["my own"] = "my own"


class InOrder(GroupingSettings):
    """Clients in groups, as they are numbered."""

    needs_counts = False
    once: bool = True

    def equal_groups(self, counts, number, rng):
        size = len(counts) // number
        return np.arange(number * size).reshape(number, size)


class Chains(STP):
    """STP whose groups are formed by the class above, unless somebody says otherwise."""

    name: Literal["chains"] = "chains"
    grouping: Annotated[GroupingSettings, OneOf("groupings")] = InOrder()


class Steady(Fixed):
    """Fixed rates."""


class Queue(Serial):
    """One after the other."""


NOTHING = 3
nothing = "no class"


class Other:
    """Something else."""


class Unfinished(GroupingSettings):
    """Forms no groups."""

    needs_counts = False


class Fedprox(FedAvg):
    name: Literal["fedprox"] = "fedprox"


class Placed(FedAvg):
    path: str = "there"


class Choosy(FedAvg):
    def model_post_init(self, context):
        raise KeyError("whatever")


class Vague(FedAvg):
    mine: "Nowhere" = 3


def made():
    class Inner(FedAvg):
        pass

    return Inner


Hidden = made()
Alias = Mine
'''


TRAINER = """
from fedsim.learning.executors.serial import Serial

class Mine(Serial):
    pass
"""


def plant(**changes: Any) -> Path:
    """A scenario in the folder, as JSON, which is YAML too."""
    data = {**small_worlds.BASE, "protocols": [{"path": "mine.py:Mine", "my_key": 4}], **changes}
    path = Path("plant.yaml")
    path.write_text(json.dumps(data))
    return path


def refusal(*words: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command says that exits with 2."""
    capsys.readouterr()
    assert main(list(words)) == 2
    return capsys.readouterr().err
