"""How often things may change while no message comes to an end: so often and no oftener, and anew after each end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sending import failing
from simpy import Environment

from fedsim.errors import UserError
from fedsim.network import network as network_module
from fedsim.network.network import Patience

FACTORIES = {"name": "factory_park", "factories": 2, "devices_per_factory": 2}


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "MOST_CHANGES", 10)
    monkeypatch.setattr(network_module, "MOST_CHANGES_EACH", 2)


def test_each_thing_that_changes_may_change_a_little_more_often_and_an_end_begins_anew() -> None:
    network: Any = SimpleNamespace(hops_crossed=0)
    patience = Patience(Environment(), network, "things failed", "let them fail less often")
    patience.expect(3), patience.expect(1)
    for _ in range(10 + 4 * 2):
        patience.count_change()
    network.hops_crossed = 1
    for _ in range(10 + 4 * 2):
        patience.count_change()
    with pytest.raises(UserError, match="things failed 18 times while no message came to an end; let them fail less"):
        patience.count_change()


def test_all_that_fails_by_chance_counts() -> None:
    random = [{"of": of, "mean_up_s": 10.0, "mean_down_s": 1.0} for of in ("sensors", "base_stations")]
    world = failing(faults={"random": random}, topology=FACTORIES)
    with pytest.raises(UserError, match=f"things failed {10 + 2 * (4 + 2)} times"):
        world.env.run(until=1e4)
