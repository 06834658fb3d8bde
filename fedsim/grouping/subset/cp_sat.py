"""The best choice by constraint programming: OR-Tools' CP-SAT, which stops when it has proven it, or after its time.

|A x - y|^2 is the sum over the classes f of s_f^2 - 2 y_f s_f + y_f^2, where s_f is the number of samples. As s_f is
whole, its square is the smallest q_f with q_f >= (2 v + 1) s_f - v (v + 1) for all whole v: the chords between the points
of the parabola. So all is linear. y is rounded to multiples of 2^-10 at most.

Time is OR-Tools' deterministic time, which counts work, in units that are about seconds. There is one worker, and its
seed is fixed. So the result depends on the problem and on the version of OR-Tools, not on the machine or its load.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fedsim.grouping.subset.gbp_cs import gbp_cs
from fedsim.grouping.subset.pair_swap import descended
from fedsim.grouping.subset.selector import Chosen, Matrix, Quadratic, SubsetSelector
from fedsim.settings import Positive

__all__ = ["CPSAT", "Solved", "solved"]
