"""Sweeps: one scenario with many values of some keys, each point a run, all of them trained into one store."""
