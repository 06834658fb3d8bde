"""The ground under the simulated world: the trace, named random streams and waiting for several things."""
