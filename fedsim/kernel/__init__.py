"""The ground under the simulated world: the trace, named random streams, journeys and waiting for several of them."""
