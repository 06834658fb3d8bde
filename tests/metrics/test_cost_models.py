"""Closed forms of papers, to their printed digits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_worlds import scenario

from fedsim.metrics.cost_models.fedgsp import FedGSPCost
from fedsim.metrics.cost_models.hfedms import HFedMSCost
from fedsim.metrics.cost_models.settings import CostModelSettings, RunFacts
from fedsim.units import HOUR_S, TIB_BYTES

HFEDMS_FEDAVG = RunFacts(clients=368, cohort=0.3 * 368, rounds=490, model_bytes=4 * 6.68e6)
FEDGSP_FEDAVG = RunFacts(clients=368, cohort=0.3 * 368, rounds=470, model_bytes=25.2e6)


def test_hfedms_table_iv_fedavg() -> None:
    cost = HFedMSCost().cost(HFEDMS_FEDAVG)
    total_bytes = cost.uplink_bytes + cost.downlink_bytes
    assert f"{total_bytes / TIB_BYTES:.3f}" == "2.629"  # printed: 2.629 "TB"
    assert f"{cost.communication_s / HOUR_S:.0f}" == "1262"  # printed: 1262 h
    assert cost.computation_s == 0
    assert total_bytes == pytest.approx(8 * 0.3 * 368 * 6.68e6 * 490, rel=1e-12)  # Eq. 19


def test_hfedms_table_iv_is_not_in_decimal_units_nor_in_full_duplex() -> None:
    cost = HFedMSCost().cost(HFEDMS_FEDAVG)
    assert f"{(cost.uplink_bytes + cost.downlink_bytes) / 1e12:.3f}" == "2.891"
    assert f"{8 * cost.uplink_bytes / 4e6 / HOUR_S:.0f}" == "803"


def test_fedgsp_equations_15_to_17_for_fedavg() -> None:
    cost = FedGSPCost().cost(FEDGSP_FEDAVG)
    assert f"{cost.communication_s:,.1f}" == "36,898.1"
    assert f"{cost.computation_s:.2f}" == "18.56"
    assert f"{cost.communication_s + cost.computation_s:,.1f}" == "36,916.7"
    assert f"{(cost.uplink_bytes + cost.downlink_bytes) / TIB_BYTES:.3f}" == "2.378"


def test_fedgsps_computation_is_training_and_aggregation() -> None:
    training_s = 470 * 96e6 / 567e9 * 226  # f(r) = K: every client a group of its own
    aggregation_s = 470 * 6.3e6 / 567e9 * (0.3 * 368 - 1)
    assert f"{training_s:.2f}, {aggregation_s:.2f}" == "17.98, 0.57"
    assert FedGSPCost().cost(FEDGSP_FEDAVG).computation_s == pytest.approx(training_s + aggregation_s, rel=1e-12)


facts = st.builds(
    RunFacts,
    clients=st.integers(1, 1_000),
    cohort=st.floats(1, 1_000),
    rounds=st.integers(1, 1_000),
    model_bytes=st.floats(1, 1e9),
)


@given(facts=facts, model=st.sampled_from([HFedMSCost(), FedGSPCost()]))
def test_twice_the_rounds_cost_twice_as_much(facts: RunFacts, model: CostModelSettings) -> None:
    twice = RunFacts(facts.clients, facts.cohort, 2 * facts.rounds, facts.model_bytes)
    once, more = model.cost(facts), model.cost(twice)
    for name in ("communication_s", "computation_s", "uplink_bytes", "downlink_bytes"):
        assert getattr(more, name) == pytest.approx(2 * getattr(once, name), rel=1e-12)


@given(facts=facts)
def test_rates_twice_as_fast_take_half_the_time(facts: RunFacts) -> None:
    slow, fast = HFedMSCost().cost(facts), HFedMSCost(uplink_bps=8e6, downlink_bps=14e6).cost(facts)
    assert fast.communication_s == pytest.approx(slow.communication_s / 2, rel=1e-12)
    assert fast.uplink_bytes == slow.uplink_bytes


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"accounting": ["event", "formula"]}, "needs the key formula"),
        ({"formula": {"name": "hfedms"}}, "needs 'formula' in the key accounting"),
        (
            {
                "accounting": ["formula"],
                "formula": {"name": "hfedms"},
                "protocols": [{"name": "centralised"}],
            },
            "no closed form is known for protocol 'centralised'; leave",
        ),
    ],
)
def test_a_formula_goes_with_its_accounting_and_with_protocols_that_have_one(
    changes: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        scenario(changes)
