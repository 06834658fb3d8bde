"""FlexiFed on the network: bytes by device class and direction on every hop, work by class, and what is refused."""

from __future__ import annotations

from typing import Any

import digit_runs
import pytest
from small_worlds import RING, scenario, simulated

from fedsim.errors import UserError
from fedsim.experiment.describe import describe
from fedsim.experiment.validate import validate
from fedsim.models.resnet import ResNet
from fedsim.models.segmented import segmented
from fedsim.protocols.world import World

DEPTHS = {"twenty": 20, "thirty-two": 32, "forty-four": 44, "fifty-six": 56}
CLASSES = dict(zip(("east-1", "east-2", "west-1", "west-2"), DEPTHS, strict=True))
HOPS = 3
"""Of each client's way: the air, and two wires."""
ROUNDS = 3
TABLES = {name: ResNet(depth=depth, shortcut="projection").table(None, None) for name, depth in DEPTHS.items()}
SHARED = {"twenty": 58_816, "thirty-two": 58_816 + 37_888, "forty-four": 134_592, "fifty-six": 134_592}
"""Bytes under max: 1-7 all have in common, 8-11 three of them, and 12-15 two."""


def keys(protocol: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A ring with a device of each class, whose models are declared by no data set."""
    nodes = {
        name: node | ({"device": CLASSES[name]} if name in CLASSES else {}) for name, node in RING["nodes"].items()
    }
    kinds = {
        name: {
            "compute": {"name": "flops", "flops_per_s": 1e9},
            "model": {"name": "resnet", "depth": depth, "shortcut": "projection"},
        }
        for name, depth in DEPTHS.items()
    }
    return {
        "topology": RING | {"nodes": nodes},
        "devices": {"classes": kinds},
        "stop": {"rounds": ROUNDS},
        "protocols": [{"fraction": 1.0, **protocol}],
        **changes,
    }


def bytes_by_class(world: World) -> dict[str, tuple[float, float]]:
    """(down, up) of each class on one hop, which must be the same on all hops of the client's way."""
    hops, found = world.trace.hops.array(), {}
    for client in world.clients:
        own = hops[hops["client"] == client.index]
        ways = []
        for uplink in (False, True):
            some = own[own["uplink"] == uplink]
            by_hop = [float(some["bytes"][some["link"] == link].sum()) for link in sorted(set(some["link"].tolist()))]
            assert len(by_hop) in (0, HOPS) and len(set(by_hop)) <= 1
            ways.append(by_hop[0] if by_hop else 0.0)
        found[CLASSES[client.name]] = (ways[0], ways[1])
    return found


WHOLE = {name: table.bytes() for name, table in TABLES.items()}
NOTHING = dict.fromkeys(DEPTHS, 0.0)
CASES: dict[str, tuple[dict[str, Any], dict[str, float], dict[str, float]]] = {
    "max": ({"name": "flexifed"}, SHARED, WHOLE),
    "max, common only": ({"name": "flexifed", "upload": "common"}, SHARED, SHARED),
    "basic": ({"name": "flexifed", "strategy": "basic"}, dict.fromkeys(DEPTHS, 58_816.0), WHOLE),
    "clustered": ({"name": "flexifed", "strategy": "clustered"}, dict.fromkeys(DEPTHS, 58_816.0), WHOLE),
    "nobody has the same": ({"name": "clustered_fl"}, NOTHING, NOTHING),
    "standalone": ({"name": "standalone"}, NOTHING, NOTHING),
}


@pytest.mark.parametrize("case", CASES)
def test_bytes_of_each_class_on_every_hop(case: str) -> None:
    protocol, down, up = CASES[case]
    found = bytes_by_class(simulated(keys(protocol)))
    assert found == {name: (ROUNDS * down[name], ROUNDS * up[name]) for name in DEPTHS}


def test_with_own_starts_nothing_goes_down_before_the_first_mean() -> None:
    found = bytes_by_class(simulated(keys({"name": "flexifed", "init": "own"})))
    assert found == {name: ((ROUNDS - 1) * SHARED[name], ROUNDS * WHOLE[name]) for name in DEPTHS}


def test_by_round_what_was_averaged_goes_down_once() -> None:
    """Two of four in each round: what is common depends on who they are."""
    world = simulated(keys({"name": "flexifed", "common": "round", "fraction": 0.5}, **{"stop.rounds": 6}))
    hops, work = world.trace.hops.array(), world.trace.work.array()
    rounds = world.trace.rounds.array()
    tables = {name: segmented(table, TABLES.values()) for name, table in TABLES.items()}
    waiting: dict[str, set[str]] = {name: set() for name in DEPTHS}
    down = dict.fromkeys(DEPTHS, 0.0)
    for row in rounds:
        inside = (work["end_s"] > row["start_s"]) & (work["end_s"] <= row["end_s"])
        one, other = (CLASSES[world.clients[client].name] for client in work["client"][inside])
        common = [
            part for part in tables[one].parts if part in tables[other].parts and part in ("1-7", "8-11", "12-15")
        ]
        for name in (one, other):
            down[name] += sum(tables[name].bytes(part) for part in waiting[name])
            waiting[name] = common
    for client in world.clients:
        own = hops[(hops["client"] == client.index) & ~hops["uplink"] & hops["access"]]
        assert own["bytes"].sum() == down[CLASSES[client.name]]
    assert sum(down.values()) > 0


def test_each_class_works_as_long_as_its_model_takes() -> None:
    world = simulated(keys({"name": "flexifed"}))
    for client, begin_s, end_s in world.trace.work.array()[["client", "start_s", "end_s"]].tolist():
        table = TABLES[CLASSES[world.clients[client].name]]
        samples = world.clients[client].samples * world.training.epochs
        assert end_s - begin_s == pytest.approx(samples * table.training_flops_per_sample / 1e9, rel=1e-9)


def test_whoever_shares_nothing_takes_no_time_on_the_air() -> None:
    world = simulated(keys({"name": "standalone"}))
    assert len(world.trace.hops) == 0
    slowest = max(row["end_s"] - row["start_s"] for row in world.trace.work.array())
    assert world.env.now == pytest.approx(ROUNDS * slowest, rel=1e-12)


def refused(protocol: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(UserError) as error:
        validate(scenario(keys(protocol, **changes)))
    return str(error.value)


@pytest.mark.parametrize(
    ("protocol", "message"),
    [
        (
            {"name": "flexifed", "server": {"name": "adam"}, "init": "own"},
            "with init: own clients do not start from one",
        ),
        (
            {"name": "flexifed", "server": {"name": "adam"}, "common": "round"},
            "with common: round what is common differs",
        ),
        ({"name": "flexifed", "server": {"name": "inverse_distance"}}, "compares whole models"),
        ({"name": "flexifed", "objective": {"name": "distilled", "coefficient": 2.0}}, "there is none"),
        ({"name": "fedavg"}, "makes one model for all"),
    ],
)
def test_what_cannot_be_is_refused_with_the_reason(protocol: dict[str, Any], message: str) -> None:
    assert message in refused(protocol)


def test_describe_tells_what_each_class_has_in_common() -> None:
    protocols = [{"name": name, "fraction": 1.0} for name in ("flexifed", "standalone")]
    both = keys({"name": "flexifed"}) | {"protocols": protocols}
    facts, _ = describe(scenario(both))
    flexifed, standalone = (one["common_layers"] for one in facts["protocols"])
    assert [(one["device_class"], one["layers"], one["of_layers"]) for one in flexifed] == [
        ("twenty", 7, 22),
        ("thirty-two", 11, 34),
        ("forty-four", 15, 46),
        ("fifty-six", 15, 58),
    ]
    assert {one["device_class"]: one["bytes"] for one in flexifed} == SHARED
    assert {one["device_class"]: one["of_bytes"] for one in flexifed} == WHOLE
    assert [(one["clients"], one["layers"], one["bytes"]) for one in standalone] == [(1, 0, 0)] * 4
    kept = facts["protocols"][0]["kept"]["total"]
    means = 58_816 + 37_888 + 37_888
    assert kept == pytest.approx(sum(WHOLE.values()) - sum(SHARED.values()) + means), "a mean is there once"


@pytest.mark.parametrize(
    "protocol",
    [
        {"name": "standalone", "clients": 3},
        {"name": "flexifed", "clients": 3, "share_fc": False},
        {"name": "flexifed", "clients": 3, "layers": 1},
        {"name": "flexifed", "clients": 3, "common": "round"},
        {"name": "flexifed", "clients": 3, "init": "own"},
    ],
    ids=lambda keys: "-".join(map(str, keys.values())),
)
@pytest.mark.parametrize("first", [False, True])
def test_without_a_model_of_all_only_own_ones_are_scored(protocol: dict[str, Any], first: bool) -> None:
    """Whichever protocol comes first: all have one model, and yet nobody has all of it from everybody."""
    others = [{"name": "fedavg", "clients": 3}]
    protocols = [protocol, *others] if first else [*others, protocol]
    with pytest.raises(
        UserError, match=r"protocols\[\d\]: clients have models of their own.* set evaluate.on to \[own\]"
    ):
        validate(digit_runs.scenario({"protocols": protocols}))


def test_the_model_of_a_class_that_no_device_has_counts_for_nothing() -> None:
    """It is checked all the same."""
    unused = {"devices.default": "sensor", "devices.classes.camera": digit_runs.INSTANT}
    changes = {**unused, "protocols": [{"name": "flexifed", "clients": 3}], "evaluate": {"on": ["global"]}}
    validate(digit_runs.scenario({**changes, "devices.classes.camera.model": {"name": "mlp", "hidden": [16, 12]}}))
    with pytest.raises(UserError, match=r"devices.classes.camera.model: .*needs"):
        validate(digit_runs.scenario({**changes, "devices.classes.camera.model": {"name": "vgg"}}))


def test_all_alike_may_be_scored_on_any_tests() -> None:
    changes = {"protocols": [{"name": name, "clients": 3} for name in ("flexifed", "clustered_fl")]}
    validate(
        digit_runs.scenario(changes | {"evaluate": {"on": ["global", "clients"]}, "data.client_test_fraction": 0.2})
    )
