"""Rates of many that change in the same instants: each is sent as if it were told alone, and who waits is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sending import crossed, failing, send
from small_worlds import EVERYTHING_HAPPENS, simulated

from fedsim.kernel.trace import Outcome
from fedsim.network.coverage import Coverage
from fedsim.network.network import TransferLost
from fedsim.network.transfer import Transfer
from fedsim.radio.settings import Rates, RatesOfMany
from fedsim.radio.shannon import Shannon

DEVICES = 6


SHADOWED = {
    "name": "shannon",
    "profile": "lte_36942",
    "bandwidth_hz": 900.0,
    "snr": {
        "name": "given",
        "uplink_db": 2.0,
        "downlink_db": 9.0,
        "shadowing": {"sigma_db": 8.0, "redraw_every_s": 3.0, "correlation_s": 6.0},
    },
}


def story(seed: int) -> list[tuple[float, list[Rates]]]:
    """Rates of all devices in ten instants, now and then none, and shares of the air; drawn at random."""
    rng = np.random.default_rng(seed)

    def rates() -> Rates:
        uplink_bps, downlink_bps = rng.choice([0.0, 500.0, 1_000.0, 3_000.0], 2).tolist()
        return Rates(uplink_bps, downlink_bps, *rng.choice([0.2, 0.7, 1.0], 2).tolist())

    return [(2.0 * instant, [rates() for _ in range(DEVICES)]) for instant in range(1, 11)]


def columns(rates: list[Rates]) -> RatesOfMany:
    rows = [(one.uplink_bps, one.downlink_bps, one.uplink_share, one.downlink_share) for one in rates]
    return RatesOfMany(*np.array(rows).T)


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize(
    ("first_bps", "told_s"),
    [
        ([0.0, 0.5, 2_000.0], [2.0]),  # back after one second
        ([0.5, 2_000.0, 0.5], []),
        ([0.5, 0.5, 0.0], [3.0]),  # lost for ever
        ([0.0, 0.0, 0.0], [3.0]),
        ([0.0, 0.5, 0.0], [2.0, 3.0]),
    ],
)
def test_who_waits_is_told_when_somebody_is_back_or_lost_for_ever(
    together: bool, first_bps: list[float], told_s: list[float]
) -> None:
    """The rates of one client change after each of three seconds, and the other's, too, but never to 0."""
    world, told = failing(), []
    coverage = Coverage(world.env, world.network, lambda: told.append(world.env.now))
    attachments = [client.attachment for client in world.clients[:2]]
    story = [(1.0 + n, [Rates(first, 0.5), Rates(700.0 + n, 0.5)]) for n, first in enumerate(first_bps)]
    if together:
        coverage.follow_together(attachments, iter([(at_s, columns(rates)) for at_s, rates in story]))
    else:
        for place, attachment in enumerate(attachments):
            coverage.follow(attachment, iter([(at_s, rates[place]) for at_s, rates in story]))
    world.env.run(until=10.0)
    assert told == told_s


@pytest.mark.parametrize("together", [True, False])
def test_who_has_no_coverage_and_nothing_to_come_is_lost_at_once(together: bool) -> None:
    """Of two clients, one has no uplink from the beginning."""
    world, told = failing(), []
    coverage = Coverage(world.env, world.network, lambda: told.append(world.env.now))
    attachments = [client.attachment for client in world.clients[:2]]
    attachments[0].air_uplink.rate_bps = 0.0
    sent = [send(world, client=client) for client in (0, 1)]
    world.env.run(until=1.0)
    if together:
        coverage.follow_together(attachments, iter([]))
    else:
        for attachment in attachments:
            coverage.follow(attachment, iter([]))
    assert told == [1.0]
    assert [attachment.covered for attachment in attachments] == [False, True]
    assert [hop.closed for attachment in attachments for hop in attachment.air] == [True, False, False, False]
    world.env.run(until=100.0)
    assert isinstance(sent[0].value, TransferLost)
    assert sent[1].value == 9.0


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("discipline", ["serial", "dedicated", "fair"])
def test_of_many_each_is_sent_as_if_it_were_told_alone(discipline: str, seed: int) -> None:
    """All that is sent, in all of its numbers, and how often somebody is said to be back or lost; to the last bit."""

    def lived(*, together: bool) -> tuple[list[Any], int, list[bool]]:
        also = {"topology__devices": DEVICES, "network__cell__discipline": {"name": discipline}}
        world, told = failing(**also), []
        coverage = Coverage(world.env, world.network, lambda: told.append(world.env.now))
        if together:
            attachments = [client.attachment for client in world.clients]
            coverage.follow_together(attachments, ((at_s, columns(rates)) for at_s, rates in story(seed)))
        for place, client in enumerate(world.clients if not together else ()):
            coverage.follow(client.attachment, iter([(at_s, rates[place]) for at_s, rates in story(seed)]))
        for client in range(DEVICES):
            send(world, client=client, at_s=client / 2)
            send(world, client=client, up=False, at_s=3.0)
        world.env.run(until=90.0)
        return crossed(world), len(told), [client.attachment.covered for client in world.clients]

    assert lived(together=True) == lived(together=False)


def test_only_who_has_a_message_and_another_rate_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world, adapted = failing(topology__devices=4, network__cell__discipline={"name": "dedicated"}), []
    monkeypatch.setattr(Transfer, "adapt", lambda own: adapted.append((world.env.now, own.client)))
    attachments = [client.attachment for client in world.clients]
    new = [Rates(up_bps, 2_000.0) for up_bps in (1_000.0, 2_000.0, 500.0, 3_000.0)]
    again = [(3.0, columns(new)), (4.0, columns(new)), (5.0, columns(new[::-1]))]
    Coverage(world.env, world.network, world.outages.tell).follow_together(attachments, iter(again))
    for client in (0, 1, 3):
        send(world, client=client)
    world.env.run(until=7.0)
    assert adapted == [(3.0, 1), (3.0, 3), (5.0, 0), (5.0, 1), (5.0, 3)]


@pytest.mark.parametrize("discipline", ["serial", "fair"])
def test_a_share_of_many_matters_where_the_air_is_shared_at_once(discipline: str) -> None:
    world = failing(network__cell__discipline={"name": discipline})
    attachments = [client.attachment for client in world.clients]
    change = columns([Rates(1_000.0, 2_000.0, 0.25, 0.5), Rates(1_000.0, 2_000.0)])
    Coverage(world.env, world.network, world.outages.tell).follow_together(attachments, iter([(2.0, change)]))
    world.env.run(until=3.0)
    shares = [hop.share for attachment in attachments for hop in attachment.air]
    assert shares == ([0.25, 0.5, 1.0, 1.0] if discipline == "fair" else [1.0] * 4)


def test_a_run_is_the_same_whether_devices_are_asked_together_or_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four cells of which two have a radio of their own; every redraw of all is in the same instants."""
    wide = {"network.cells": {"factory-1/station-1": {"radio": SHADOWED | {"bandwidth_hz": 1_500.0}}}}
    world = EVERYTHING_HAPPENS | {"network.cell.radio": SHADOWED} | wide
    together = simulated(world).trace
    rates_of, changes_together = Shannon.rates_of, Shannon.changes_together
    each_alone = {
        "rates_of": lambda own, sites: rates_of(own, sites) if len(sites) == 1 else map(own.rates, sites),
        "changes_together": lambda own, sites: changes_together(own, sites) if len(sites) == 1 else None,
    }
    for name, instead in each_alone.items():
        monkeypatch.setattr(Shannon, name, instead)
    assert simulated(world).trace.digest() == together.digest()
    assert set(together.hops.array()["outcome"]) > {Outcome.ARRIVED}
    assert simulated(EVERYTHING_HAPPENS | {"network.cell.radio": SHADOWED}).trace.digest() != together.digest()
