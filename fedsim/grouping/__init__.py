"""Which clients train one after the other: groups, how many there are, and how alike they are.

One file and one line per way to form groups. Ways to let their number grow are in `fedsim.grouping.growth`.
"""

from __future__ import annotations

REGISTRY = {
    "icg": "fedsim.grouping.icg:ICG",
    "random": "fedsim.grouping.settings:RandomGroups",
}
