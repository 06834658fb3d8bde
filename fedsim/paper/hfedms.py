"""Tables of HFedMS (Zeng et al., *HFedMS: heterogeneous federated learning with memorable data semantics in industrial
metaverse*, IEEE Transactions on Cloud Computing 2023).
"""

from __future__ import annotations

import pandas as pd

from fedsim.experiment.results import Results
from fedsim.paper.published import beside_published

__all__ = ["table3", "table4"]


def table3(results: Results) -> pd.DataFrame:
    """HFedMS Table III, its half for streams: accuracy and loss on streaming FEMNIST after 500 rounds.

    Its half for static data is FedGSP's Table 1. HFedMS-S is not in the half for streams.
    """
    return beside_published("hfedms_table3", results)


def table4(results: Results) -> pd.DataFrame:
    """HFedMS Table IV: rounds, traffic and runtime to reach 70 % accuracy on streaming FEMNIST.

    The paper prints 2^40 bytes as "TB". Its numbers are its Eqs. 19 and 20 with kappa K = 110.4 clients in a round; an
    event has whole clients, some of whom find no place in groups of equal size, so that it comes out a little lower.
    """
    return beside_published("hfedms_table4", results)
