"""Each crossing of a hop has luck of its own."""

from __future__ import annotations

from sending import crossed, failing, send


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
