"""Gated recurrent units on series such as a turbofan's sensors (Cho et al., EMNLP 2014): the last state is classified.

Leaves out what `fedsim.models.recurrent` does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.models.layers import Gru, Recurrent
from fedsim.models.recurrent import RecurrentModelSettings

__all__ = ["GruModel"]


class GruModel(RecurrentModelSettings):
    """Gated recurrent units on series (channels, time); one linear layer reads the last hidden state.

    >>> table = GruModel(hidden=64).table((14, 30), 1)
    >>> table.parameters()  # 3 * 64 * (14 + 64) + 6 * 64, and 64 + 1
    15425
    """

    UNIT: ClassVar[type[Recurrent]] = Gru

    name: Literal["gru"] = "gru"
