"""Each crossing of a hop has luck of its own."""

from __future__ import annotations

from sending import crossed, failing, send

from fedsim.network.packets import Loss, Transport, put_on_link


def test_up_and_down_and_every_hop_have_luck_of_their_own() -> None:
    lossy = {"probability": 0.5, "attempts": 50}
    world = failing(
        network__cell__loss=lossy,
        network__link={"rate_bps": 8_000.0, "loss": lossy},
        network__transport={"payload_bytes": 1.0},
    )
    send(world), send(world, up=False)
    world.env.run()
    assert len({row.bytes for row in crossed(world)}) == 4  # some thousand attempts each: equal by a chance of 1 %


def test_every_message_between_servers_has_luck_of_its_own() -> None:
    lossy = {"rate_bps": 8_000.0, "loss": {"probability": 0.5, "attempts": 50}}
    world = failing(network__link=lossy, network__transport={"payload_bytes": 1.0})
    up = world.clients[0].attachment.backbone.uplink
    for _ in range(3):
        world.network.send(-1, up, 1_000.0)
    world.env.run()
    assert len({row.bytes for row in crossed(world)}) > 1


def test_the_nth_message_of_a_client_over_a_hop_has_the_nth_stream() -> None:
    lossy, small = {"probability": 0.5, "attempts": 50}, {"payload_bytes": 1.0}
    world = failing(network__cell__loss=lossy, network__transport=small)
    for at_s in (0.0, 100.0, 200.0):
        send(world, client=1, at_s=at_s, up=False)
    world.env.run()
    hop = world.clients[1].attachment.air_downlink
    name = f"network/loss/{hop.link.index}/{hop.direction.value}"
    expected = [
        put_on_link(1_000.0, Transport(**small), Loss(**lossy), world.streams(name, 1, use).generator()).bytes
        for use in range(3)
    ]
    assert [row.bytes for row in crossed(world) if row.link == hop.link.label] == expected
