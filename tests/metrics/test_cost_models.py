"""Closed forms of papers, to their printed digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment.run import run
from fedsim.experiment.validate import validate
from fedsim.metrics.cost_models.fedgsp import FedGSPCost
from fedsim.metrics.cost_models.hfedms import HFedMSCost, alternating_bytes, whole_model_bytes
from fedsim.metrics.cost_models.settings import CostModelSettings, RunFacts, StationFacts
from fedsim.models.declared import Declared
from fedsim.protocols.block import Alternation
from fedsim.scenario.closed_forms import ClosedForm, closed_form
from fedsim.units import HOUR_S, TIB_BYTES

HFEDMS_FEDAVG = RunFacts(clients=368, cohort=0.3 * 368, groups=(368,) * 490, model_bytes=4 * 6.68e6)
FEDGSP_FEDAVG = RunFacts(clients=368, cohort=0.3 * 368, groups=(368,) * 470, model_bytes=25.2e6)
FEDGSP_FEDGSP = replace(
    FEDGSP_FEDAVG, groups=tuple(10 * math.floor(2 * math.log(number) + 1) for number in range(1, 35))
)
TABLE_IV = {  # T, R: as printed, TiB and hours; as worked out, to more digits
    (1, 490): ("2.629", "1262", "2.6292", "1261.90"),
    (1, 32): ("0.172", "82", "0.1717", "82.41"),
    (3, 36): ("0.097", "42", "0.0967", "42.20"),
    (5, 34): ("0.056", "25", "0.0565", "24.65"),
    (7, 67): ("0.081", "35", "0.0808", "35.26"),
    (9, 81): ("0.073", "32", "0.0728", "31.78"),
}
each_row = pytest.mark.parametrize(("interval", "rounds"), TABLE_IV)


def in_blocks(interval: int, rounds: int) -> RunFacts:
    return RunFacts(368, 0.3 * 368, (10,) * rounds, 4 * 6.68e6, interval, 4 * 6.3e3)


@each_row
def test_hfedms_table_iv_to_every_printed_digit(interval: int, rounds: int) -> None:
    cost = HFedMSCost().cost(in_blocks(interval, rounds))
    tib, hours = (cost.uplink_bytes + cost.downlink_bytes) / TIB_BYTES, cost.communication_s / HOUR_S
    assert (f"{tib:.3f}", f"{hours:.0f}", f"{tib:.4f}", f"{hours:.2f}") == TABLE_IV[interval, rounds]
    assert cost.computation_s == 0


@each_row
def test_hfedms_equations_as_printed(interval: int, rounds: int) -> None:
    cost = HFedMSCost().cost(in_blocks(interval, rounds))
    kappa, clients, parameters, classifier, full = 0.3, 368, 6.68e6, 6.3e3, math.ceil(rounds / interval)
    eq_19 = 8 * kappa * clients * parameters * rounds
    eq_20 = 4 * kappa * clients * (3 * parameters * full + 2 * (rounds - full) * classifier)
    expected = eq_19 if interval == 1 else eq_20
    assert cost.uplink_bytes + cost.downlink_bytes == pytest.approx(expected, rel=1e-12)


def test_hfedms_eq_20_is_not_eq_19_in_blocks_of_one_round() -> None:
    facts = in_blocks(1, 32)
    assert sum(alternating_bytes(facts)) == pytest.approx(1.5 * sum(whole_model_bytes(facts)), rel=1e-12)
    assert f"{sum(alternating_bytes(facts)) / TIB_BYTES:.3f}" == "0.258"  # printed: 0.172


def test_hfedms_eq_20_is_one_up_and_two_down() -> None:
    def hours(up_bytes: float, down_bytes: float) -> str:
        return f"{8 * (up_bytes / 4e6 + down_bytes / 7e6) / HOUR_S:.1f}"

    both = [alternating_bytes(in_blocks(*row)) for row in TABLE_IV if row[0] > 1]
    assert [hours(up, down) for up, down in both] == ["42.2", "24.6", "35.3", "31.8"]
    assert [hours(down, up) for up, down in both] == ["50.6", "29.6", "42.3", "38.1"]  # two up and one down


def test_hfedms_eq_20_scatters_to_those_who_take_part_and_not_to_all() -> None:
    facts = in_blocks(5, 34)
    others = (facts.clients - facts.cohort) * facts.full_rounds * facts.model_bytes
    assert f"{(sum(alternating_bytes(facts)) + others) / TIB_BYTES:.4f}" == "0.1003"  # printed: 0.056


def test_hfedms_table_iv_is_not_in_decimal_units_nor_in_full_duplex() -> None:
    cost = HFedMSCost().cost(HFEDMS_FEDAVG)
    assert f"{(cost.uplink_bytes + cost.downlink_bytes) / 1e12:.3f}" == "2.891"
    assert f"{8 * cost.uplink_bytes / 4e6 / HOUR_S:.0f}" == "803"


def test_fedgsp_equations_15_to_17() -> None:
    fedavg, fedgsp = FedGSPCost().cost(FEDGSP_FEDAVG), FedGSPCost().cost(FEDGSP_FEDGSP)
    assert f"{fedavg.communication_s:,.2f}, {fedgsp.communication_s:,.2f}" == "36,898.13, 2,669.23"
    assert f"{fedavg.computation_s:.3f}, {fedgsp.computation_s:.3f}" == "18.556, 10.190"
    times = [cost.communication_s + cost.computation_s for cost in (fedavg, fedgsp)]
    traffic = [cost.uplink_bytes + cost.downlink_bytes for cost in (fedavg, fedgsp)]
    assert [f"{time:,.1f}" for time in times] == ["36,916.7", "2,679.4"]
    assert f"{traffic[0] / 1e12:.3f}, {traffic[1] / 1e12:.4f}" == "2.615, 0.1892"
    assert f"{traffic[0] / TIB_BYTES:.3f}, {traffic[1] / TIB_BYTES:.4f}" == "2.378, 0.1721"
    savings = [f"{100 * (1 - few / many):.2f}" for many, few in (times, traffic)]
    assert savings == ["92.74", "92.77"]  # printed: "93%"


def test_fedgsps_computation_is_training_and_aggregation() -> None:
    for facts, printed in ((FEDGSP_FEDAVG, "17.98, 0.57"), (FEDGSP_FEDGSP, "10.18, 0.006")):
        training_s = sum(96e6 / 567e9 * 226 * 368 / min(368, groups) for groups in facts.groups)
        aggregation_s = sum(6.3e6 / 567e9 * (0.3 * groups - 1) for groups in facts.groups)
        digits = len(printed.partition(", ")[2]) - 2
        assert f"{training_s:.2f}, {aggregation_s:.{digits}f}" == printed
        assert FedGSPCost().computation_s(facts) == pytest.approx(training_s + aggregation_s, rel=1e-12)


def test_more_groups_than_clients_train_no_faster() -> None:
    once, twice = (replace(FEDGSP_FEDAVG, groups=(groups,)) for groups in (368, 736))
    more_s = FedGSPCost().computation_s(twice) - FedGSPCost().computation_s(once)
    assert more_s == pytest.approx(6.3e6 / 567e9 * 0.3 * 368, rel=1e-9)  # Eq. 15 bounds f(r) in the trainings only


# -- what a run tells the formulas -------------------------------------------------------------------------------------

LASP_IN_BLOCKS = {"exchange": {"name": "lasp"}, "interval": 5}


def form(**keys: Any) -> ClosedForm:
    (only,) = scenario({"protocols": [keys]}).protocols
    found = closed_form(only)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"name": "fedavg", "fraction": 0.3}, [368] * 6),
        ({"name": "fedavg", "fraction": 0.3, **LASP_IN_BLOCKS}, [368] * 6),
        ({"name": "fedgsp"}, [10, 20, 30, 30, 40, 40]),
        ({"name": "hfedms_s"}, [10, 20, 30, 30, 40, 40]),
        ({"name": "hfedms_d", "interval": 2}, [10, 10, 20, 20, 30, 30]),
        ({"name": "hfedms_d"}, [10, 10, 10, 10, 10, 20]),
        ({"name": "naive_gsp"}, [10] * 6),
        ({"name": "naive_gsp_icg", "groups": 400}, [368] * 6),
        ({"name": "stp", "grouping": {"name": "random"}}, [10] * 6),  # formed once, whatever the growth
        ({"name": "stp", "grouping": {"name": "random", "once": False}}, [10, 20, 30, 30, 40, 40]),
        ({"name": "stp", "growth": {"name": "exponential", "alpha": 2.0}}, [10, 30, 90, 270, 368, 368]),
    ],
)
def test_how_many_groups_there_are_in_each_round(keys: dict[str, Any], expected: list[int]) -> None:
    assert form(**keys).groups(368, 6) == tuple(expected)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"name": "fedavg", "fraction": 0.3}, Alternation()),
        ({"name": "fedavg", "fraction": 0.3, "interval": 5}, Alternation()),
        ({"name": "fedavg", "fraction": 0.3, **LASP_IN_BLOCKS}, Alternation(5, 25_200)),
        ({"name": "fedprox", "fraction": 0.3, "mu": 0.1, **LASP_IN_BLOCKS}, Alternation(5, 25_200)),
        ({"name": "stp", **LASP_IN_BLOCKS}, Alternation(5, 25_200)),
        ({"name": "stp", "interval": 5}, Alternation()),
        ({"name": "fedgsp", "interval": 5}, Alternation()),
        ({"name": "hfedms_d", "interval": 7}, Alternation(7, 25_200)),
        ({"name": "hfedms_d", "interval": 1}, Alternation(1, 25_200)),
    ],
)
def test_what_rounds_send(keys: dict[str, Any], expected: Alternation) -> None:
    table = Declared(parameters=6.68e6, classifier_parameters=6.3e3).table(None, None)
    assert form(**keys).alternation(table) == expected


@pytest.mark.parametrize(("interval", "equation"), [(1, whole_model_bytes), (5, alternating_bytes)])
def test_fedavg_with_lasp_is_eq_20_where_rounds_alternate(
    interval: int, equation: Callable[[RunFacts], tuple[float, float]], tmp_path: Path
) -> None:
    changes = {
        "stop": {"rounds": 7},
        "learn": False,
        "topology.devices": 4,
        "devices.classes.sensor.compute": {"name": "per_sample", "seconds_per_sample": 0.0},
        "model": {"name": "declared", "parameters": 1_000, "classifier_parameters": 100},
        "protocols": [{"name": "fedavg", "fraction": 0.5, **LASP_IN_BLOCKS, "interval": interval}],
        "accounting": ["event", "formula"],
        "formula": {"name": "hfedms"},
    }
    summary = run(scenario(changes), out=tmp_path / "run").summary.set_index("accounting")
    expected = equation(RunFacts(4, 2.0, (4,) * 7, 4_000, interval, 400))
    for accounting in ("event", "formula"):  # half of four are whole clients, and nobody is idle
        assert tuple(summary.loc[accounting, ["uplink_bytes", "downlink_bytes"]]) == expected


def test_a_formula_without_calibration_rounds_refuses_them() -> None:
    def changes(formula: str, interval: int) -> dict[str, Any]:
        return {
            "model.classifier_parameters": 100,
            "devices.classes.sensor.compute": {"name": "per_sample", "seconds_per_sample": 0.0},
            "protocols": [
                {"name": "fedavg", "fraction": 1.0},
                {"name": "fedavg", "label": "parts", "fraction": 1.0, **LASP_IN_BLOCKS, "interval": interval},
            ],
            "accounting": ["event", "formula"],
            "formula": {"name": formula},
        }

    validate(scenario(changes("hfedms", 5)))
    validate(scenario(changes("fedgsp", 1)))
    with pytest.raises(UserError, match=r"protocols\[1\].*'fedgsp' has no closed form for rounds that send a part"):
        validate(scenario(changes("fedgsp", 5)))


# -- laws --------------------------------------------------------------------------------------------------------------

facts = st.builds(
    RunFacts,
    clients=st.integers(1, 1_000),
    cohort=st.floats(1, 1_000),
    groups=st.lists(st.integers(1, 1_000), min_size=1, max_size=100).map(tuple),
    model_bytes=st.floats(1, 1e9),
)


@given(facts=facts, model=st.sampled_from([HFedMSCost(), FedGSPCost()]))
def test_twice_the_rounds_cost_twice_as_much(facts: RunFacts, model: CostModelSettings) -> None:
    once, more = model.cost(facts), model.cost(replace(facts, groups=2 * facts.groups))
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


@pytest.mark.parametrize(
    ("devices", "members", "taking_part"), [(10, [35] * 4, 10), (40, [35] * 4, 35), (4, [3, 5], 4)]
)
def test_of_stations_the_formulas_know_how_many_devices_take_part(
    devices: int, members: list[int], taking_part: int
) -> None:
    fedgs = form(name="fedgs", devices=devices, iterations=7)
    assert fedgs.stations(members) == StationFacts(len(members), taking_part, iterations=7)
    assert form(name="fedavg", fraction=0.3).stations(members) is None


def test_iterations_at_base_stations_have_a_formula_of_their_own() -> None:
    changes = {"accounting": ["event", "formula"], "formula": {"name": "hfedms"}, "protocols": [{"name": "fedgs"}]}
    message = "'hfedms' has no closed form for iterations at base stations, which protocol 'fedgs' has; choose"
    with pytest.raises(ValidationError, match=message):
        scenario(changes)
    edge_rounds = {"protocols": [{"name": "hierarchical", "fraction": 1.0}]}
    with pytest.raises(ValidationError, match="no closed form is known for protocol 'hierarchical'"):
        scenario(changes | edge_rounds)
