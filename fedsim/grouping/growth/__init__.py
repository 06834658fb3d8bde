"""How many groups there are in each block of rounds. One file and one line per growth."""

from __future__ import annotations

REGISTRY = {
    "constant": "fedsim.grouping.growth.constant:Constant",
    "linear": "fedsim.grouping.growth.linear:Linear",
    "logarithmic": "fedsim.grouping.growth.logarithmic:Logarithmic",
    "exponential": "fedsim.grouping.growth.exponential:Exponential",
}
