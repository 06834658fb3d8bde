"""Clients that come when the rounds are over: who they are, what they are sent, how long it takes, what they learn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest
import torch
from pydantic import ValidationError
from small_worlds import NO_CONTENTION, scenario, simulated

import fedsim
from fedsim.errors import UserError
from fedsim.experiment.simulate import join
from fedsim.experiment.validate import validate
from fedsim.kernel.streams import Stream
from fedsim.protocols.newcomers import NewcomersSettings
from fedsim.scenario.build import gather_materials

CLASSIFIER = 200.0
EXTRACTOR = 1_000.0 - CLASSIFIER
PARTED: dict[str, Any] = NO_CONTENTION | {"model.classifier_parameters": CLASSIFIER / 4, "topology.devices": 5}


def test_who_is_kept_out_is_asked_in_no_round_and_comes_in_the_end() -> None:
    """A fraction is still of all: three of five, of whom four may be asked."""
    changes = PARTED | {"newcomers": {"clients": 1, "epochs": 3, "trains": "all"}, "stop.rounds": 6}
    world = simulated(changes | {"protocols": [{"name": "fedavg", "fraction": 0.6}]})
    assert world.trace.rounds.column("selected").tolist() == [3] * 6
    assert world.clients[4].attempts == 0 and all(client.attempts for client in world.clients[:4])
    end_s, hops = world.env.now, len(world.trace.hops)
    columns = join(world, scenario(changes).newcomers)  # type: ignore[arg-type]
    assert columns == {"newcomers": 1, "newcomers_s": pytest.approx(3.2 + 3 * 5.0), "newcomers_bytes": EXTRACTOR}
    sent = world.trace.hops.array()[hops:]
    assert {row["client"] for row in sent} == {4} and not sent["uplink"].any()
    assert sent["bytes"].tolist() == [EXTRACTOR] * len(sent)
    last = world.trace.work.array()[-1]
    assert (last["client"], last["end_s"] - end_s) == (4, pytest.approx(18.2))


def test_whoever_was_never_drawn_is_a_newcomer_too() -> None:
    changes = PARTED | {"stop.rounds": 1, "protocols": [{"name": "fedper", "clients": 2}]}
    world = simulated(changes)
    columns = join(world, NewcomersSettings(epochs=1, trains="all"))
    assert columns["newcomers"] == 3 and columns["newcomers_bytes"] == 3 * EXTRACTOR
    assert columns["newcomers_s"] == pytest.approx(3.2 + 5.0), "all at the same time"


def test_a_device_that_is_still_at_work_joins_nobody() -> None:
    """A round ends at 2 s, when all are still receiving; then they are late, and no newcomers."""
    changes = PARTED | {"protocols": [{"name": "fedavg", "fraction": 1.0, "deadline_s": 2.0}]}
    world = simulated(changes | {"network.late_transfers": "finish"})
    assert join(world, NewcomersSettings(epochs=1, trains="all"))["newcomers"] == 0


def test_nobody_joins_where_no_round_was_finished() -> None:
    world = simulated(PARTED | {"faults": {"scheduled": [{"node": "station", "at_s": 0.0}]}})
    assert not world.loop.rounds_done
    columns = join(world, NewcomersSettings(epochs=1, trains="all"))
    assert columns == {"newcomers": 0, "newcomers_s": 0.0, "newcomers_bytes": 0.0}


def test_groups_that_are_formed_once_have_no_newcomers_either() -> None:
    naive = {"name": "naive_gsp", "groups": 2, "sampling_rate": 1.0}
    world = simulated(
        PARTED | {"newcomers": {"clients": 1, "epochs": 1, "trains": "all"}, "stop.rounds": 2, "protocols": [naive]}
    )
    assert [client.attempts for client in world.clients] == [2, 2, 2, 2, 0]


def test_own_models_are_those_of_clients_that_rounds_may_ask(tmp_path: Path) -> None:
    """With an untrained classifier, newcomers would lower the mean; N of SCAFFOLD's server is without them, too."""
    data = {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.3}
    changes = {"topology.devices": 4, "data": data, "evaluate": {"on": ["own"]}, "stop.rounds": 3}
    changes |= {"protocols": [{"name": "fedper", "fraction": 1.0}], "newcomers": {"clients": 2, "epochs": 1}}
    results = fedsim.run(digit_runs.scenario(changes), out=tmp_path / "run", executor="serial")
    computed = [row["operation"] for row in digit_runs.ledger(tmp_path / "run/store") if row["event"] == "computed"]
    assert computed.count("evaluate_own") == 3 * 2 + 2
    assert results.rounds["participants"].tolist() == [2] * 3


def test_a_classifier_alone_takes_its_own_operations_and_one_pass_of_the_extractor() -> None:
    """mlp on 64 pixels: an extractor of 64 x 3 and a classifier of 3 x 10 multiply-accumulates."""
    changes = PARTED | {
        "data": {"name": "digits", "partition": {"name": "iid"}},
        "model": {"name": "mlp", "hidden": [3]},
        "newcomers": {"clients": 1, "epochs": 4},
        "network.cell.radio": {"name": "fixed", "uplink_bps": 1e9, "downlink_bps": 1e9},
    }
    del changes["model.classifier_parameters"]
    world = simulated(changes)
    columns = join(world, scenario(changes).newcomers)  # type: ignore[arg-type]
    samples = world.clients[4].samples
    effort = samples * (192 + 3 * 4 * 30) / (3 * 222)
    assert columns["newcomers_s"] == pytest.approx(0.5 * effort, rel=1e-3)


@pytest.mark.parametrize("trains", ["classifier", "all"])
def test_newcomers_learn_as_a_plain_loop_does(tmp_path: Path, trains: str) -> None:
    """On the extractor of the last model, from the initial classifier, in double precision."""
    changes = {
        "topology.devices": 6,
        "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.3},
        "evaluate": {"on": ["own"]},
        "newcomers": {"clients": 2, "epochs": 3, "trains": trains},
        "protocols": [{"name": "fedavg", "fraction": 1.0}],
        "stop.rounds": 2,
    }
    written = digit_runs.scenario(changes)
    results = fedsim.run(written, out=tmp_path / "run", executor="serial", precision="float64")
    data, learned = gather_materials(written, seed=1).dataset, digit_runs.weights(results, "fedavg")
    start = digit_runs.weights(
        fedsim.run(
            digit_runs.scenario(changes | {"stop.rounds": 1, "training.learning_rate": 1e-18}),
            out=tmp_path / "start",
            executor="serial",
            precision="float64",
        ),
        "fedavg",
    )
    x, y, scores = torch.tensor(data.x).double().flatten(1), torch.tensor(data.y), []
    for client in (4, 5):
        names = ["extractor.fc1.weight", "extractor.fc1.bias", "classifier.fc2.weight", "classifier.fc2.bias"]
        w = [(start if name.startswith("classifier") else learned)[name].double().clone() for name in names]
        trained = w if trains == "all" else w[2:]
        ids, order = data.train_ids[client], Stream(1, "newcomers", client).generator()

        def scored(rows: Any, w: list[torch.Tensor] = w) -> torch.Tensor:
            hidden = (x[rows] @ w[0].T + w[1]).relu()
            return hidden @ w[2].T + w[3]

        for _ in range(3):
            shuffled = ids[order.permutation(len(ids))]
            for first in range(0, len(ids), 16):
                rows = shuffled[first : first + 16]
                for one in trained:
                    one.requires_grad_(True)
                loss = torch.nn.functional.cross_entropy(scored(rows), y[rows])
                gradients = torch.autograd.grad(loss, trained)
                for one, gradient in zip(trained, gradients, strict=True):
                    one.requires_grad_(False)
                    one.sub_(0.1 * gradient)
        tests = torch.tensor(data.client_test_ids[client])
        scores.append(float((scored(tests).argmax(1) == y[tests]).double().mean()))
    (row,) = results.summary.to_dict("records")
    assert row["newcomers"] == 2 and row["newcomers_accuracy"] == pytest.approx(sum(scores) / 2, abs=1e-9)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "nobody is left": (
        {"newcomers": {"clients": 20, "epochs": 1}},
        "newcomers.clients: 20 must be below 20, or none of the sensors",
    ),
    "a time": (
        {"newcomers": {"epochs": 1}, "stop": {"sim_time_s": 5.0}},
        "newcomers come when the last round is over, and at a simulated time a round is under way; end the run by",
    ),
    "fewer are left": (
        {"newcomers": {"clients": 18, "epochs": 1}, "protocols": [{"name": "fedavg", "clients": 3}]},
        "clients: 3 must be at most 2, as 18 of 20 clients are newcomers",
    ),
    "one part": ({"newcomers": {"epochs": 1}, "model": {"name": "softmax"}}, "this model has none"),
    "in the cloud": (
        {"newcomers": {"epochs": 1}, "protocols": [{"name": "centralised"}]},
        "centralised has no rounds after which newcomers could join",
    ),
    "at stations": (
        {"newcomers": {"clients": 1, "epochs": 1}, "protocols": [{"name": "hierarchical", "fraction": 1.0}]},
        "stations ask all clients that they have",
    ),
    "several models": (
        {
            "newcomers": {"epochs": 1},
            "protocols": [{"name": "flexifed", "fraction": 1.0}],
            "data.client_test_fraction": 0.3,
            "evaluate": {"on": ["own"]},
        },
        "newcomers get the one model that all have, and here are several",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_newcomers_cannot_be_given_is_refused(case: str) -> None:
    changes, reason = REFUSED[case]
    with pytest.raises((UserError, ValidationError)) as refused:
        validate(digit_runs.scenario(changes))
    assert reason in str(refused.value)
