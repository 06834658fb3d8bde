"""Which clients train one after the other: groups, how many there are, and how alike they are.

One class and one line per way to form groups. Ways to let their number grow are in `fedsim.grouping.growth`, ways to
choose the devices of a training step in `fedsim.grouping.subset`.
"""

REGISTRY = {
    "icg": "fedsim.grouping.icg:ICG",
    "random": "fedsim.grouping.settings:RandomGroups",
}
