"""Long short-term memories on series, as plants use them to tell how long a machine still runs.

The unit is that of Hochreiter and Schmidhuber (Neural Computation 1997), with the forget gate of Gers, Schmidhuber and
Cummins (Neural Computation 2000). S. Zheng, K. Ristovski, A. Farahat and C. Gupta (Long Short-Term Memory Network for
Remaining Useful Life Estimation, ICPHM 2017) have two layers, of 32 and 64, and two fully connected ones of 8 behind
them; here all layers have the same width.

Leaves out what `fedsim.models.recurrent` does.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from fedsim.models.layers import Lstm, Recurrent
from fedsim.models.recurrent import RecurrentModelSettings

__all__ = ["LstmModel"]


class LstmModel(RecurrentModelSettings):
    """Long short-term memories on series (channels, time); one linear layer reads the last hidden state.

    >>> table = LstmModel(hidden=64).table((14, 30), 1)
    >>> table.parameters()  # 4 * 64 * (14 + 64) + 8 * 64, and 64 + 1
    20545
    """

    UNIT: ClassVar[type[Recurrent]] = Lstm

    name: Literal["lstm"] = "lstm"
