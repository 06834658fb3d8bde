"""Planted faults: each is a small change of the source that some test must see. `make mutants` tries them all.

A test that passes says little until one knows what would have made it fail. The table is in `faults`, the harness in
`__main__`. Leaves out what a search for mutants would find by itself: each fault here is one that somebody might make.
"""
