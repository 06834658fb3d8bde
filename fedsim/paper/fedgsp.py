"""Tables of FedGSP (Zeng et al., *Heterogeneous federated learning via grouped sequential-to-parallel training*,
DASFAA 2022).
"""

from __future__ import annotations

import pandas as pd

from fedsim.experiment.results import Results
from fedsim.paper.published import WORKED_OUT, beside_published

__all__ = ["cost", "table1"]


def table1(results: Results) -> pd.DataFrame:
    """FedGSP Table 1, and HFedMS Table III on static data: accuracy and loss on FEMNIST after 500 rounds.

    The two papers print the same numbers; HFedMS calls FedGSP HFedMS-S.
    """
    return beside_published("fedgsp_table1", results)


def cost(results: Results) -> pd.DataFrame:
    """FedGSP Fig. 6: time and traffic to reach 80 % accuracy on FEMNIST, worked out from Eqs. 15 to 17.

    The paper prints bars without numbers; "worked out" is what its equations give with its own constants and its rounds
    (Table 1). A simulated run has one clock: it does not tell communication and computation apart.
    """
    return beside_published("fedgsp_cost", results).rename(columns={"published": WORKED_OUT})
