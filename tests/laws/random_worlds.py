"""Networks, faults and rates of random worlds, for hypothesis: small numbers that meet in the same instants."""

from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

from hypothesis import strategies as st
from small_worlds import RING

from fedsim.network.coverage import Coverage
from fedsim.protocols.world import World
from fedsim.radio.settings import Rates

__all__ = ["CROWDED_RING", "STARS", "change_rates", "faults", "networks", "times_s"]

STARS = [{"name": "star", "devices": 3}, {"name": "factory_park", "factories": 2, "devices_per_factory": 2}]

IN_THE_EAST = {"kind": "sensor", "attach": "east-station"}
CROWDED_RING = RING | {"nodes": RING["nodes"] | {"east-2": IN_THE_EAST | {"device": "heavy"}, "west-1": IN_THE_EAST}}
"""Three of four sensors in one cell, and one of them may weigh more than the others."""

networks = {
    "network.cell.duplex": st.sampled_from(["full", "shared"]),
    "network.cell.discipline": st.sampled_from(
        [{"name": "serial"}, {"name": "dedicated"}, {"name": "fair"}, {"name": "fair", "weights": {"heavy": 3.0}}]
    ),
    "network.cell.delay_s": st.sampled_from([0.0, 0.25]),
    "network.cell.loss": st.sampled_from([{}, {"probability": 0.3, "attempts": 2}]),
    "network.link": st.fixed_dictionaries(
        {
            "rate_bps": st.sampled_from([3_000.0, 8_000.0]),
            "delay_s": st.sampled_from([0.0, 0.5]),
            "loss": st.sampled_from([{}, {"probability": 0.2}]),
            "discipline": st.sampled_from([{"name": "serial"}, {"name": "fair"}]),
        }
    ),
    "network.transport": st.sampled_from([{}, {"payload_bytes": 300, "header_bytes": 40}]),
    "devices.classes.sensor.duplex": st.sampled_from(["full", "half", None]),
    "devices.classes.heavy": st.builds(
        lambda duplex: {"compute": {"name": "per_sample", "seconds_per_sample": 1.0}, "duplex": duplex},
        st.sampled_from(["full", "half"]),
    ),
    "devices.default": st.just("sensor"),
}

times_s = st.integers(0, 120).map(lambda quarters: quarters / 4)


@st.composite
def one_outage(draw: st.DrawFn) -> dict[str, Any]:
    """Of anything in the ring: at a time that is a whole number of quarter seconds, like much else there."""
    what = draw(
        st.sampled_from(
            [{"node": name} for name in RING["nodes"]] + [{"link": link["between"]} for link in RING["links"]]
        )
    )
    how_long = draw(st.sampled_from([None, 0.25, 1.0, 4.0, 10.0]))
    fault = what | {"at_s": draw(times_s)}
    if how_long is None:
        return fault
    again = draw(st.sampled_from([None, how_long + 0.25, 2 * how_long]))
    return fault | {"for_s": how_long} | ({} if again is None else {"every_s": again})


faults = st.fixed_dictionaries(
    {
        "scheduled": st.lists(one_outage(), max_size=5),
        "random": st.lists(
            st.builds(
                lambda of, up_s, down_s: {"of": of, "mean_up_s": up_s, "mean_down_s": down_s},
                st.sampled_from(["sensors", "base_stations", "edges", "clouds", "wires"]),
                st.sampled_from([5.0, 30.0]),
                st.sampled_from([1.0, 10.0, math.inf]),
            ),
            max_size=2,
        ),
        "messages": st.sampled_from(["wait", "restart", "lose"]),
        "routing": st.sampled_from(["fixed", "around_outages"]),
        "device_memory": st.sampled_from(["kept", "lost"]),
    }
)


def change_rates(world: World, client: int, changes: list[tuple[float, Rates]]) -> None:
    """The client's air becomes another: so many seconds from now, and so many after that, and so on."""
    times_s = accumulate((gap_s for gap_s, _ in changes), initial=world.env.now)
    when = [(at_s, then) for at_s, (_, then) in zip(list(times_s)[1:], changes, strict=True)]
    Coverage(world.env, world.network, world.outages.tell).follow(world.clients[client].attachment, iter(when))
