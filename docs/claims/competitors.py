"""Papers' tables with all of their competitors: learning rates from grids, and what each reached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from judging import Claim, reached

from fedsim.paper.published import published
from fedsim.scenario.schema import Scenario

__all__ = ["CONTESTS", "FEDGS", "STATIC", "TUNED_STREAMS", "Contest", "beside_all", "ends_of", "grids", "rates"]

TUNED_STREAMS, STATIC = ("femnist, tuned", "glyphs, tuned"), ("femnist, static", "glyphs, static")
"""Streams, and data that stay, where each system has the best learning rates of its own grid."""
FEDGS = ("writers", "three classes")
"""Where FedGS is compared."""
ENDINGS = {"writers": "femnist", "three classes": "skew"}
"""The same -> how the names of their scenarios of rates end."""
SECOND_BEST = {"fedmmd": "fedmmd, 0.1", "fedyogi": "fedyogi, 0.01"}
"""Systems whose best rate fails on other seeds, one on FEMNIST and one on static glyphs -> their second best."""
EIGHT = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "fedmmd": "FedMMD",
    "fedfusion": "FedFusion",
    "ida": "IDA",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
}
"""The competitors of HFedMS's Table III and FedGSP's Table 1: protocol -> its name there."""
BOTH_RATES = {name: EIGHT[one] for one in EIGHT for name in (one, SECOND_BEST.get(one)) if name}
"""The same with the second rate of two of them, which have rows of their own."""
FOURTEEN = {
    "fedavg": "FedAvg",
    "fedprox": "FedProx",
    "ida": "IDA",
    "ida_intrac": "IDA+INTRAC",
    "ida_fedavg": "IDA+FedAvg",
    "cgau": "CGAU",
    "fedmmd": "FedMMD",
    "fedfusion_conv": "FedFusion+Conv",
    "fedfusion_multi": "FedFusion+Multi",
    "fedfusion_single": "FedFusion+Single",
    "fedavgm": "FedAvgM",
    "fedadagrad": "FedAdagrad",
    "fedadam": "FedAdam",
    "fedyogi": "FedYogi",
}
"""The competitors of FedGS's Table II."""
ONCE = ("cgau", "fedmmd", "fedfusion_conv", "fedfusion_multi", "fedfusion_single")
"""Those whose steps take longer: where devices differ in their classes they have one seed, and so no verdict."""


class Contest(NamedTuple):
    """A paper's table of accuracies, put to the test with all of its competitors."""

    table: str
    systems: dict[str, str]
    """The paper's own: protocol -> its name in the table."""
    competitors: dict[str, str]
    """The others: protocol, or its label -> its name in the table."""
    claimed: dict[str, tuple[str, tuple[str, ...]]]
    """System -> where it is said to be more accurate than each competitor, and at equal what that is tested."""
    rates: dict[str, tuple[str, ...]]
    """Data -> the scenarios that learning rates were chosen by."""
    elsewhere: Mapping[str, tuple[str, ...]] = {}
    """Competitor -> the data on which it has verdicts, where that is not all."""

    @property
    def data(self) -> tuple[str, ...]:
        """The comparisons."""
        return tuple(self.rates)

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Each system against each competitor."""
        return tuple(
            Claim(source, system, other, at, self.elsewhere.get(other, self.data))
            for system, (source, budgets) in self.claimed.items()
            for other in self.competitors
            for at in budgets
        )


CONTESTS = {
    "stream": Contest(
        "hfedms_table3",
        {"hfedms_s": "HFedMS-S", "hfedms_d": "HFedMS-D"},
        {name: title for name, title in BOTH_RATES.items() if name != SECOND_BEST["fedyogi"]},
        {
            "hfedms_d": ("HFedMS Table III", ("rounds", "bytes", "time")),
            "hfedms_s": ("HFedMS Table IV", ("rounds",)),
        },
        {data: (f"competitors-stream-rates-{data.partition(', ')[0]}",) for data in TUNED_STREAMS},
        {"fedmmd": ("glyphs, tuned",), SECOND_BEST["fedmmd"]: ("femnist, tuned",)},
    ),
    "static": Contest(
        "fedgsp_table1",
        {"naive_gsp": "NaiveGSP", "naive_gsp_icg": "NaiveGSP+ICG", "fedgsp": "FedGSP"},
        BOTH_RATES,
        {"fedgsp": ("FedGSP Table 1", ("rounds", "time"))},
        {data: (f"competitors-static-rates-{data.partition(', ')[0]}",) for data in STATIC},
        {
            "fedmmd": (),  # on glyphs it and FedFusion, whose steps take longer, have one seed
            **dict.fromkeys((SECOND_BEST["fedmmd"], "fedfusion", "fedyogi"), ("femnist, static",)),
            SECOND_BEST["fedyogi"]: ("glyphs, static",),
        },
    ),
    "fedgs": Contest(
        "fedgs_table2",
        {"fedgs": "FedGS"},
        FOURTEEN,
        {"fedgs": ("FedGS Table II", ("rounds", "time", "bytes on air", "bytes on backhaul"))},
        {data: (f"claims-fedgs-rates-{name}", f"competitors-fedgs-rates-{name}") for data, name in ENDINGS.items()},
        dict.fromkeys(ONCE, ("writers",)),
    ),
}
"""Name of its files -> the contest."""


def rates(scenario: Scenario) -> dict[str, str]:
    """Protocol -> its learning rates, as the labels of the scenarios of rates have them."""
    found = {}
    for protocol in scenario.protocols:
        own = protocol.training or scenario.training
        server = getattr(getattr(protocol, "server", None), "learning_rate", None)
        mu = getattr(protocol, "mu", None)
        rate = f"{own.learning_rate:g}"
        if server is not None:
            rate = f"{server:g} and {rate}"
        found[protocol.title] = rate if mu is None else f"{rate}, mu {mu:g}"
    return found


def ends_of(scenario: Scenario, rounds: pd.DataFrame) -> pd.Series:
    """Accuracy in per cent at the end of each run of one seed, or "diverged"."""
    ends = rounds[rounds["round"] == scenario.stop.rounds].set_index("protocol")["accuracy"].mul(100)
    return ends.map("{:.1f}".format).reindex([protocol.title for protocol in scenario.protocols]).fillna("diverged")


def grids(ends: dict[str, pd.Series]) -> pd.DataFrame:
    """`ends_of` runs by data set; empty where a rate was not tried."""
    table = pd.DataFrame({f"{data}, %": found for data, found in ends.items()})
    order = dict.fromkeys(label for found in ends.values() for label in found.index)
    return table.reindex([*order]).fillna("").rename_axis("system and rates").reset_index()


def beside_all(contest: Contest, runs: dict[str, tuple[Sequence[Scenario], pd.DataFrame]]) -> pd.DataFrame:
    """A published table of final accuracies beside ours, with the learning rates of each row, by data set."""
    numbers = published(contest.table)
    printed = numbers[numbers["metric"] == "final_accuracy"].set_index("system")["value"].map("{:g}".format)
    systems = contest.competitors | contest.systems
    rows = [{"system": title, "paper, %": printed.get(title, "")} for title in systems.values()]
    for data, (scenarios, rounds) in runs.items():
        chosen = {protocol: rate for scenario in scenarios for protocol, rate in rates(scenario).items()}
        ours = reached(rounds, "rounds").set_index("protocol")
        for row, protocol in zip(rows, systems, strict=True):
            if protocol not in chosen:
                continue
            row[f"{data}: rates"] = chosen[protocol]
            for test in ("pooled", "unseen"):
                if f"{test}, %" in ours:
                    mean, half = ours.loc[protocol, [f"{test}, %", f"+/- {test}"]]
                    row[f"{data}: {test}, %"] = f"{mean} +/- {half}" if half else mean
    return pd.DataFrame(rows)
