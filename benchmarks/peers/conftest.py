"""Modules that need a peer's own environment are none for pytest to look into."""

collect_ignore = ["__main__.py", "apple_pfl.py", "fedlab_standalone.py", "flower_simulation.py"]
