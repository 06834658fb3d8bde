"""The same federated training by hand-written loops and by other frameworks, each in a process of its own.

Nothing here imports fedsim: a peer's environment has torch, numpy and the peer. `benchmarks.training` writes the folder
of work and reads what comes of it.
"""
