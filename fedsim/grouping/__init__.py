"""Which clients train one after the other: groups, how many there are, and how alike they are.

One class and one line per way to form groups. Ways to let their number grow are in `fedsim.grouping.growth`.
"""

REGISTRY = {
    "icg": "fedsim.grouping.icg:ICG",
    "random": "fedsim.grouping.settings:RandomGroups",
}
