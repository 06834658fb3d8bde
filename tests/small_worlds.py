"""Small worlds to test with: a base scenario of round numbers, of which a test changes what it is about.

One journey in the base scenario takes 19 s, alone: 1 s over the wire, 4 s over the air, 5 s of work, 8 s over the air,
1 s over the wire.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from simpy import Environment

from fedsim.experiment.simulate import simulate
from fedsim.kernel.streams import Streams
from fedsim.kernel.trace import Trace
from fedsim.learning.learner import Learner, NoLearner
from fedsim.network.disciplines.channel import Channel
from fedsim.network.disciplines.serial import SerialChannel
from fedsim.network.hop import Hop, Link, Medium
from fedsim.network.network import Network
from fedsim.network.packets import Loss, Transport
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.world import World
from fedsim.scenario.build import build_world, gather_materials
from fedsim.scenario.schema import Scenario

MODEL_BYTES = 1_000.0
NO_LOSS, ONE_PACKET = Loss(), Transport()

BASE: dict[str, Any] = {
    "name": "small",
    "learn": False,
    "stop": {"rounds": 1},
    "topology": {"name": "star", "devices": 2},
    "network": {
        "cell": {
            "radio": {"name": "fixed", "uplink_bps": 1_000, "downlink_bps": 2_000},
            "duplex": "full",
            "discipline": {"name": "serial"},
        },
        "link": {"rate_bps": 8_000},
    },
    "devices": {"classes": {"sensor": {"compute": {"name": "per_sample", "seconds_per_sample": 0.5}}}},
    "data": {"name": "declared", "samples_per_client": 10, "sample_bytes": 100},
    "model": {"name": "declared", "parameters": MODEL_BYTES / 4},
    "training": {"learning_rate": 0.1, "batch_size": 5},
    "protocols": [{"name": "fedavg", "fraction": 1.0}],
}

NO_CONTENTION = {"network.cell.discipline": {"name": "dedicated"}, "network.link.rate_bps": math.inf}
"""Everybody at the same time at full rate, and wires of no length: a journey takes 4 + 5 + 8 = 17 s."""

NO_TIME = {
    "network.cell.radio": {"name": "fixed", "uplink_bps": math.inf, "downlink_bps": math.inf},
    "network.link.rate_bps": math.inf,
    "devices.classes.sensor.compute": {"name": "flops", "flops_per_s": math.inf},
    "model.training_flops_per_sample": 1.0,
}
"""Nothing takes any time."""

NO_REMARK = {
    "network.cell.radio": {"name": "fixed", "uplink_bps": 100_000, "downlink_bps": 200_000},
    "network.link.rate_bps": 800_000,
}
"""A hundred times as fast: no rate is below those of all technologies, so nothing is said of any."""

EVERYTHING_HAPPENS: dict[str, Any] = {
    "stop": {"rounds": 8},
    "topology": {"name": "factory_park", "factories": 2, "devices_per_factory": 4, "stations_per_factory": 2},
    "network.cell.duplex": "shared",
    "network.cell.delay_s": 0.25,
    "network.cell.loss": {"probability": 0.25, "attempts": 2},
    "network.link": {"rate_bps": 8_000, "delay_s": 0.125, "loss": {"probability": 0.1}},
    "network.transport": {"payload_bytes": 300, "header_bytes": 40},
    "devices.classes.sensor.compute": {
        "name": "distribution",
        "law": "lognormal",
        "mean_seconds_per_sample": 0.5,
        "variation": 1.0,
        "per": "training",
    },
    "devices.aggregation_s": 0.5,
    "protocols": [{"name": "fedavg", "clients": 3, "deadline_s": 40.0, "over_selection": 1.5}],
}
"""Several hops, headers, losses, random speeds, deadlines, too many asked: rounds with lost and late updates."""

RING: dict[str, Any] = {
    "name": "explicit",
    "nodes": {
        "cloud": {"kind": "cloud"},
        "east": {"kind": "edge"},
        "west": {"kind": "edge"},
        "east-station": {"kind": "base_station"},
        "west-station": {"kind": "base_station"},
        "east-1": {"kind": "sensor", "attach": "east-station"},
        "east-2": {"kind": "sensor", "attach": "east-station"},
        "west-1": {"kind": "sensor", "attach": "west-station"},
        "west-2": {"kind": "sensor", "attach": "west-station"},
    },
    "links": [
        {"between": ["cloud", "east"]},
        {"between": ["cloud", "west"]},
        {"between": ["east", "east-station"]},
        {"between": ["west", "west-station"]},
        {"between": ["east-station", "west-station"]},
    ],
}
"""Two base stations, each two wires from the cloud, and joined: each can be reached over the other, by three wires."""


def hall(**stations: str) -> dict[str, Any]:
    """Sensors, each attached to a station; the stations share an edge server."""
    names = dict.fromkeys(stations.values())
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "edge": {"kind": "edge"}}
    nodes |= {name: {"kind": "base_station"} for name in names}
    nodes |= {sensor: {"kind": "sensor", "attach": station} for sensor, station in stations.items()}
    links = [{"between": ["cloud", "edge"]}, *({"between": ["edge", name]} for name in names)]
    return {"topology": {"name": "explicit", "nodes": nodes, "links": links}}


def scenario(changes: Mapping[str, Any] | None = None) -> Scenario:
    """The base scenario with other values for some keys, named by their dotted paths."""
    data = copy.deepcopy(BASE)
    for path, value in (changes or {}).items():
        *way, last = path.split(".")
        place = data
        for key in way:
            place = place.setdefault(key, {})
        place[last] = copy.deepcopy(value)
    return Scenario.model_validate(data)


def prepared(
    changes: Mapping[str, Any] | None = None,
    *,
    seed: int = 1,
    learner: Callable[..., Learner] = lambda *_: NoLearner(),
) -> tuple[World, Protocol]:
    """A world at time zero, and the first protocol of its scenario."""
    settings = scenario(changes)
    protocol = settings.protocols[0]
    return build_world(settings, protocol, gather_materials(settings, seed), learner), protocol


def simulated(
    changes: Mapping[str, Any] | None = None,
    *,
    seed: int = 1,
    learner: Callable[..., Learner] = lambda *_: NoLearner(),
) -> World:
    """A world whose first protocol has run to its end."""
    world, protocol = prepared(changes, seed=seed, learner=learner)
    simulate(world, protocol, protocol.stop or scenario(changes).stop)
    return world


class Line:
    """A network without a scenario: one hop after the other, all of them up, each on a channel of its own."""

    def __init__(
        self,
        rates_bps: tuple[float, ...],
        *,
        delays_s: tuple[float, ...] = (),
        channel: Callable[[Environment, float], Channel] = SerialChannel,
        loss: Loss = NO_LOSS,
        transport: Transport = ONE_PACKET,
        seed: int = 1,
    ) -> None:
        self.env, self.trace = Environment(), Trace()
        channels = [channel(self.env, delay_s) for delay_s in delays_s or (0.0,) * len(rates_bps)]
        media = [Medium(partial(tuple, [one]), loss=loss) for one in channels]
        links = [Link(i, (f"link {i}",), access=i == 0, medium=medium) for i, medium in enumerate(media)]
        self.route = tuple(Hop(link, True, rate_bps) for link, rate_bps in zip(links, rates_bps, strict=True))
        self.network = Network(self.env, self.trace, Streams(seed), links, transport)
