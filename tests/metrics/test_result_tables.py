"""From a trace to tables: hand-made rows, and what must come of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal
from small_worlds import NO_CONTENTION, Line, simulated

from fedsim.kernel.gather import at_the_end_of
from fedsim.kernel.trace import AT_DEADLINE, Outcome, Trace
from fedsim.metrics.chosen import ChosenMetrics
from fedsim.metrics.cost_models.settings import Cost
from fedsim.metrics.summary import event_row, formula_row
from fedsim.metrics.tables import (
    device_classes_table,
    links_table,
    rounds_table,
    transfers_table,
)
from fedsim.network.hop import Link, Medium

NOTHING = Medium(tuple)
LINKS = [Link(0, ("bs",), access=True, medium=NOTHING), Link(1, ("bs", "cloud"), access=False, medium=NOTHING)]
CLIENTS = ["camera", "drill"]
NAN = math.nan


@pytest.fixture
def trace() -> Trace:
    """Two rounds of two clients; the second client's download is lost in round 1, its upload given up in round 2."""
    trace = Trace()
    for row in (
        # transfer, client, link, uplink, access, start, end, queued, airtime, bytes, again, withdrawn, outcome
        (0, 0, 1, False, False, 0.0, 1.0, 0.0, 1.0, 100.0, 0.0, 0.0, Outcome.ARRIVED),
        (0, 0, 0, False, True, 1.0, 3.0, 0.0, 2.0, 100.0, 0.0, 0.0, Outcome.ARRIVED),
        (1, 1, 0, False, True, 1.0, 9.0, 2.0, 6.0, 300.0, 200.0, 0.0, Outcome.LOST),
        (2, 0, 0, True, True, 4.0, 6.0, 0.0, 2.0, 100.0, 0.0, 0.0, Outcome.ARRIVED),
        # round 1 ends at 9
        (3, 1, 0, True, True, 12.0, 16.0, 3.0, 1.0, 50.0, 10.0, 50.0, Outcome.CANCELLED),
        (4, 0, 0, True, True, 12.0, 15.0, 1.0, 2.0, 100.0, 0.0, 0.0, Outcome.ARRIVED),
        # round 2 ends at 16
        (5, 0, 1, True, False, 15.0, 18.0, 0.0, 3.0, 100.0, 0.0, 0.0, Outcome.ARRIVED),
    ):
        trace.hops.append(row)
    trace.rounds.append((1, 0.0, 9.0, 2, 1, 1, 0, 4, 1))
    trace.rounds.append((2, 9.0, 16.0, 2, 1, 0, 1, 6, AT_DEADLINE))
    return trace


EVALUATIONS = {
    2: {
        "global": {"accuracy": 0.75, "loss": 0.5},
        "clients": {"accuracy": 0.5, "loss": 1.5, "accuracy_std": 0.25, "accuracy_min": 0.125, "accuracy_max": 1.0},
    }
}


def test_rounds_count_time_and_bytes_from_the_start_of_the_run(trace: Trace) -> None:
    assert_frame_equal(
        rounds_table(trace, EVALUATIONS, on=("global",), clients=CLIENTS),
        pd.DataFrame(
            {
                "round": [1, 2],
                "sim_time_s": [9.0, 16.0],
                "uplink_bytes": [100.0, 250.0],
                "downlink_bytes": [400.0, 400.0],
                "transfer_bytes": [500.0, 650.0],
                "backbone_bytes": [100.0, 100.0],
                "network_bytes": [600.0, 750.0],
                "energy_j": [NAN, NAN],
                "participants": [1, 1],
                "selected": [2, 2],
                "lost": [1, 0],
                "late": [0, 1],
                "closed_by": ["drill", "deadline"],
                "closed_by_index": [1, AT_DEADLINE],
                "accuracy": [NAN, 0.75],
                "loss": [NAN, 0.5],
            }
        ),
        check_dtype=False,
    )


def test_the_first_test_set_has_plain_names_and_clients_have_a_spread(trace: Trace) -> None:
    of_both = rounds_table(trace, EVALUATIONS, on=("global", "clients"), clients=CLIENTS).iloc[1]
    assert (of_both["accuracy"], of_both["loss"]) == (0.75, 0.5)
    assert (of_both["accuracy_clients"], of_both["loss_clients"], of_both["accuracy_min_clients"]) == (0.5, 1.5, 0.125)
    turned = rounds_table(trace, EVALUATIONS, on=("clients", "global"), clients=CLIENTS).iloc[1]
    assert (turned["accuracy"], turned["accuracy_std"], turned["accuracy_max"]) == (0.5, 0.25, 1.0)
    assert (turned["accuracy_global"], turned["loss_global"]) == (0.75, 0.5)
    assert "accuracy_std_global" not in turned


def test_transfers_say_what_became_of_each_hop_in_words(trace: Trace) -> None:
    table = transfers_table(trace, [], LINKS, CLIENTS)
    assert len(table) == 7
    assert table["client"].tolist() == ["camera", "camera", "drill", "camera", "drill", "camera", "camera"]
    assert table["client_index"].tolist() == [0, 0, 1, 0, 1, 0, 0]
    assert table["link"].tolist() == ["bs -- cloud", *["cell bs"] * 5, "bs -- cloud"]
    assert table["direction"].tolist() == ["downlink"] * 3 + ["uplink"] * 4
    assert table["outcome"].tolist() == ["arrived", "arrived", "lost", "arrived", "cancelled", "arrived", "arrived"]
    assert table.loc[4, ["bytes", "retransmitted_bytes", "withdrawn_bytes", "queued_s", "airtime_s"]].tolist() == [
        50.0,
        10.0,
        50.0,
        3.0,
        1.0,
    ]


@pytest.mark.parametrize("until_s", [0.0, 2.0, 8.0, 10.0], ids=["nothing sent", "sending", "one there", "the other"])
def test_what_is_in_flight_stands_last_with_what_is_known_of_it(until_s: float) -> None:
    line = Line((1_000.0,))
    for client in range(2):
        line.env.process(line.network.carry(client, line.route, 1_000.0))
    line.env.run(until=at_the_end_of(line.env, until_s))
    table = transfers_table(line.trace, list(line.network.in_flight), line.network.links, CLIENTS)
    arrived = 1 if until_s >= 8 else 0
    assert table["outcome"].tolist() == ["arrived"] * arrived + ["in_flight"] * (2 - arrived)
    assert table["end_s"].isna().tolist() == [outcome == "in_flight" for outcome in table["outcome"]]
    assert (table["bytes"] + table["withdrawn_bytes"]).tolist() == [1_000.0, 1_000.0]
    assert table["bytes"].sum() == 125 * until_s
    assert table.index.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("until_s", "sent"),
    [
        # Bytes, again, withdrawn, queued, airtime, at 2000 bit/s: 500 B until the outage, from 5 on all of it again.
        (1.5, (375.0, 0.0, 625.0, 0.0, 1.5)),
        (4.0, (500.0, 500.0, 1_000.0, 0.0, 2.0)),
        (6.0, (750.0, 500.0, 750.0, 0.0, 3.0)),
    ],
)
def test_of_what_is_in_flight_a_part_may_have_been_in_vain(until_s: float, sent: tuple[float, ...]) -> None:
    away = {"node": "station", "at_s": 2.0, "for_s": 3.0}
    faults = {"faults": {"scheduled": [away], "messages": "restart"}, "topology.devices": 1}
    world = simulated(NO_CONTENTION | faults | {"stop": {"sim_time_s": until_s}})
    table = transfers_table(world.trace, list(world.network.in_flight), world.network.links, CLIENTS)
    names = ["bytes", "retransmitted_bytes", "withdrawn_bytes", "queued_s", "airtime_s"]
    (row,) = table[table["outcome"] == "in_flight"][names].itertuples(index=False)
    assert tuple(row) == sent


def test_links_add_up_what_crossed_them_in_each_direction(trace: Trace) -> None:
    table = links_table(trace, [], LINKS, duration_s=20.0)
    by_way = table.set_index(["link", "direction"])
    assert len(by_way) == 4
    assert by_way.loc[("cell bs", "downlink")].tolist() == [True, 2, 400.0, 200.0, 0.0, 8 / 20, 2 / 20]
    assert by_way.loc[("cell bs", "uplink")].tolist() == [True, 3, 250.0, 10.0, 50.0, 5 / 20, 4 / 20]
    assert by_way.loc[("bs -- cloud", "downlink")].tolist() == [False, 1, 100.0, 0.0, 0.0, 1 / 20, 0.0]
    assert by_way.loc[("bs -- cloud", "uplink")].tolist() == [False, 1, 100.0, 0.0, 0.0, 3 / 20, 0.0]


def test_utilisation_is_the_part_of_all_carriers_of_a_channel(trace: Trace) -> None:
    cell = Link(0, ("bs",), access=True, medium=Medium(tuple, carriers=4))
    table = links_table(trace, [], [cell, LINKS[1]], duration_s=20.0)
    assert table["utilisation"].tolist() == [5 / 20 / 4, 8 / 20 / 4, 3 / 20, 1 / 20]
    assert table["mean_queue"].tolist() == links_table(trace, [], LINKS, duration_s=20.0)["mean_queue"].tolist()


def test_a_link_that_nobody_used_was_idle_and_one_without_time_is_unknown(trace: Trace) -> None:
    links = [*LINKS, Link(2, ("spare",), access=True, medium=NOTHING)]
    table = links_table(trace, [], links, duration_s=20.0).set_index("link")
    assert table.loc["cell spare", ["transfers", "bytes", "utilisation"]].to_numpy().tolist() == [[0, 0.0, 0.0]] * 2
    at_once = links_table(trace, [], LINKS, duration_s=0.0)
    assert at_once[["utilisation", "mean_queue"]].isna().all(axis=None)


def test_an_empty_trace_gives_empty_tables(trace: Trace) -> None:
    empty = Trace()
    for table, filled in (
        (
            rounds_table(empty, {}, on=("global", "clients"), clients=CLIENTS),
            rounds_table(trace, {}, on=("global", "clients"), clients=CLIENTS),
        ),
        (transfers_table(empty, [], LINKS, CLIENTS), transfers_table(trace, [], LINKS, CLIENTS)),
    ):
        assert len(table) == 0
        assert table.dtypes.equals(filled.dtypes)
    links = links_table(empty, [], LINKS, duration_s=1.0)
    assert links["transfers"].tolist() == [0] * 4


# -- the summary -------------------------------------------------------------------------------------------------------


def rounds_with(accuracies: list[float]) -> pd.DataFrame:
    count = len(accuracies)
    numbers = np.arange(1, count + 1)
    return pd.DataFrame(
        {
            "round": numbers,
            "sim_time_s": 10.0 * numbers,
            "uplink_bytes": 100.0 * numbers,
            "downlink_bytes": 200.0 * numbers,
            "transfer_bytes": 300.0 * numbers,
            "backbone_bytes": 300.0 * numbers,
            "network_bytes": 600.0 * numbers,
            "energy_j": np.full(count, NAN),
            "accuracy": accuracies,
            "loss": [2 - 2 * accuracy for accuracy in accuracies],
        }
    )


def plain(row: dict[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}


def test_a_summary_is_the_last_round_the_best_accuracy_and_the_way_to_the_target() -> None:
    row = event_row(rounds_with([0.25, NAN, 0.875, NAN, 0.75, 0.875, 0.875, 0.5]), target_accuracy=0.75)
    assert plain(row) == {
        "accounting": "event",
        "rounds": 8,
        "sim_time_s": 80.0,
        "uplink_bytes": 800.0,
        "downlink_bytes": 1_600.0,
        "transfer_bytes": 2_400.0,
        "backbone_bytes": 2_400.0,
        "network_bytes": 4_800.0,
        "energy_j": None,
        "final_accuracy": 0.5,
        "best_accuracy": 0.875,
        "loss": 1.0,
        "target_accuracy": 0.75,
        "time_to_target_s": 30.0,  # round 3: the three evaluations after it average 0.833
        "bytes_to_target": 900.0,
        "rounds_to_target": 3,
    }


@pytest.mark.parametrize("target_accuracy", [None, 0.9])
def test_a_target_that_was_not_asked_for_or_not_reached_is_empty(target_accuracy: float | None) -> None:
    row = plain(event_row(rounds_with([0.5, 0.8, 0.8, 0.8, 0.8]), target_accuracy))
    assert [row[name] for name in ("time_to_target_s", "bytes_to_target", "rounds_to_target")] == [None] * 3


def test_without_learning_accuracy_is_empty_and_without_rounds_everything_is() -> None:
    row = plain(event_row(rounds_with([NAN, NAN]), 0.8))
    assert (row["rounds"], row["sim_time_s"], row["final_accuracy"], row["best_accuracy"]) == (2, 20.0, None, None)
    row = plain(event_row(rounds_table(Trace(), {}, on=("global",), clients=CLIENTS), 0.8))
    assert row.pop("accounting") == "event"
    assert row.pop("rounds") == 0
    assert row.pop("target_accuracy") == 0.8
    assert set(row.values()) == {None}


def test_a_formulas_row_has_its_costs_and_the_same_learning() -> None:
    event = event_row(rounds_with([0.5, 0.8, 0.8, 0.8, 0.8]), 0.8)
    row = plain(
        formula_row(event, Cost(communication_s=100.0, computation_s=20.0, uplink_bytes=7.0, downlink_bytes=5.0))
    )
    assert row["accounting"] == "formula"
    assert (row["sim_time_s"], row["communication_s"], row["computation_s"]) == (120.0, 100.0, 20.0)
    assert (row["uplink_bytes"], row["downlink_bytes"], row["transfer_bytes"]) == (7.0, 5.0, 12.0)
    assert (row["rounds"], row["final_accuracy"], row["best_accuracy"]) == (5, 0.8, 0.8)
    assert [row[name] for name in ("network_bytes", "energy_j", "time_to_target_s", "target_accuracy")] == [None] * 4


COUNTED = {
    1: {"global": {"accuracy": 0.75, "loss": 0.5, "samples": 4, "confusion": [0, 0, 2, 1, 0, 1, 1, 1, 1]}},
    2: {
        "global": {"accuracy": None, "loss": math.inf, "samples": 4, "confusion": None},
        "unseen": {"accuracy": 0.5, "loss": 1.0, "samples": 2, "confusion": [0, 0, 1, 1, 0, 1]},
    },
}


def test_chosen_metrics_are_columns_of_each_test_set_and_end_the_summary(trace: Trace) -> None:
    chosen = ChosenMetrics(("recall", "false_alarms"), ("sound", "faulty"), 0)
    rounds = rounds_table(trace, COUNTED, on=("global", "unseen"), clients=CLIENTS, chosen=chosen)
    columns = ["recall_sound", "recall_faulty", "false_alarms"]
    plain = [*rounds_table(trace, COUNTED, on=("global", "unseen"), clients=CLIENTS)]
    assert [column for column in rounds if column not in plain] == [
        *columns,
        *(f"{column}_unseen" for column in columns),
    ], "beside what there is without them"
    assert rounds.loc[0, columns].tolist() == [1.0, 0.5, 0.0]
    assert rounds.loc[1, columns].isna().all(), "it diverged"
    assert rounds.loc[1, [f"{column}_unseen" for column in columns]].tolist() == [1.0, 0.0, 0.0]
    row = event_row(rounds[:1], None)
    assert [row[column] for column in columns] == [1.0, 0.5, 0.0]
    assert "recall_sound_unseen" in row and "final_recall_sound" not in row


def test_the_last_error_in_its_unit_is_in_the_summary(trace: Trace) -> None:
    found = {2: {"global": {"loss": 0.04, "rmse": 0.2, "rmse_cycles": 25.0, "phm08": 7.5}}}
    rounds = rounds_table(trace, found, on=("global",), clients=CLIENTS, chosen=ChosenMetrics(("rmse_cycles", "phm08")))
    assert rounds["rmse_cycles"].isna().tolist() == [True, False]
    row = event_row(rounds, None)
    assert (row["rmse"], row["rmse_cycles"], row["phm08"]) == (0.2, 25.0, 7.5)


def test_device_classes_have_chosen_metrics_too(trace: Trace) -> None:
    by_class = {2: {"sensor": {"accuracy": 0.5, "loss": 1.0, "confusion": [0, 0, 1, 1, 0, 1]}}}
    chosen = ChosenMetrics(("missed_faults",), ("sound", "faulty"), 0)
    table = device_classes_table(trace, by_class, ["sensor", "camera"], chosen=chosen).set_index(
        ["round", "device_class"]
    )
    assert table["missed_faults"].fillna(-1).to_dict() == {
        **{(1, "sensor"): -1, (1, "camera"): -1},
        **{(2, "sensor"): 1.0, (2, "camera"): -1},
    }


def test_the_last_score_on_each_further_test_set_is_in_the_summary() -> None:
    rounds = rounds_with([0.25, NAN, 0.75]).assign(accuracy_unseen=[0.1, NAN, 0.2], accuracy_min_unseen=[0.0, NAN, 0.1])
    row = event_row(rounds, None)
    assert (row["final_accuracy"], row["final_accuracy_unseen"]) == (0.75, 0.2)
    assert "final_accuracy_clients" not in row
    numbers = rounds.assign(accuracy=NAN, accuracy_unseen=NAN, rmse=[3.0, NAN, 2.0], rmse_unseen=[4.0, NAN, 5.0])
    assert (event_row(numbers, None)["rmse"], event_row(numbers, None)["rmse_unseen"]) == (2.0, 5.0)
