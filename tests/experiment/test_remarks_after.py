"""Results that could be misread come with a remark, and others do not."""

from __future__ import annotations

from math import inf, nan
from pathlib import Path

import pandas as pd
import pytest
from said import assert_said
from small_worlds import scenario
from tiny_results import counted, rounds_of, summary_of, write_results

from fedsim import cli
from fedsim.experiment.remarks_after import remarks
from fedsim.experiment.results import load_results
from fedsim.experiment.run import run
from fedsim.scenario.load import written_out


def test_an_ordinary_run_needs_no_remark(tmp_path: Path) -> None:
    assert remarks(run(scenario({"stop": {"rounds": 2}}), out=tmp_path / "run")) == []


def test_no_round_ended(tmp_path: Path) -> None:
    results = run(scenario({"stop": {"sim_time_s": 1.0}}), out=tmp_path / "run")
    assert remarks(results) == ["fedavg on seed 1: no round ended before the run did, so there is nothing to compare"]


def test_no_update_arrived(tmp_path: Path) -> None:
    protocol = {"name": "fedavg", "fraction": 1.0, "deadline_s": 2.0}
    results = run(scenario({"stop": {"rounds": 3}, "protocols": [protocol]}), out=tmp_path / "run")
    assert remarks(results) == [
        "fedavg on seed 1: no update arrived in time in any of 3 rounds, so the model was never trained"
    ]


@pytest.mark.parametrize(("in_vain", "told"), [(0, False), (1, False), (2, True), (19, True)])
def test_no_update_arrived_in_some_rounds(tmp_path: Path, in_vain: int, told: bool) -> None:
    rounds = rounds_of("fedavg", 1, [0.1 + number / 100 for number in range(20)])
    results = write_results(tmp_path / "run", [rounds.assign(participants=[0] * in_vain + [3] * (20 - in_vain))])
    remark = f"fedavg on seed 1: no update arrived in time in {in_vain} of 20 rounds, which changed nothing"
    assert remarks(results) == [remark] * told


@pytest.mark.parametrize(
    ("accuracies", "losses", "worse"),
    [
        ([0.3, nan, 0.1], [2.3, nan, 140.0], True),
        ([0.1, 0.1], [2.3, 2.4], True),
        ([0.1, 0.1], [2.3, 2.3004], True),
        ([0.3, 0.4], [2.3, 2.4], False),  # surer of its errors, but it makes fewer
        ([0.3, 0.2], [2.3, 2.2], False),
        ([0.1, nan], [2.3, nan], False),
        ([nan, nan], [nan, nan], False),
    ],
)
def test_the_model_got_worse(tmp_path: Path, accuracies: list[float], losses: list[float], worse: bool) -> None:
    rounds = rounds_of("fedavg", 1, accuracies).assign(loss=losses)
    remark = (
        f"fedavg on seed 1: the model got worse with training (loss 2.3 -> {losses[-1]:g}); try a smaller "
        "training.learning_rate"
    )
    results = write_results(tmp_path / "run", [rounds.assign(participants=3)])
    assert remarks(results) == ([remark] if worse else [])


def test_filters_that_nobody_has_sent_yet_may_be_why(tmp_path: Path) -> None:
    for losses, said in (
        ([1.0, 1.5], "(loss 1 -> 1.5); filters that nobody has sent yet are as they started, so go on for more rounds"),
        ([1.0, 171.0], "gives; filters that nobody has sent yet are as they started, so go on for more rounds, or try"),
    ):
        rounds = rounds_of("spatl", 1, [0.3, 0.1]).assign(loss=losses, participants=3)
        for share, told in ((0.7, True), (1.0, False)):
            rows = [summary_of(rounds, filters_share=share)]
            results = write_results(tmp_path / f"{losses[1]}-{share}", [rounds], summary=rows, classes=10)
            (remark,) = remarks(results)
            assert (said in remark) == told and "training.learning_rate" in remark


ONE_CLASS = [[0, 30, 0], [0, 50, 0], [0, 20, 0]]


@pytest.mark.parametrize(
    ("counts", "told"),
    [(ONE_CLASS, True), ([[1, 29, 0], *ONE_CLASS[1:]], False), ([[0, 0, 0], [0, 50, 0]], False)],
    ids=["one class", "one and a sample", "there is one only"],
)
def test_a_model_that_predicts_one_class(tmp_path: Path, counts: list[list[int]], told: bool) -> None:
    """An accuracy of one half hides it."""
    rounds = rounds_of("fedavg", 1, [0.3, 0.5]).assign(participants=3)
    names = ("sound", "inner race", "outer race")
    others = counted("fedavg", 1, [[0, 3], [0, 1]], names, test_set="unseen")
    confusion = pd.concat([counted("fedavg", 1, counts, names), others])
    said = remarks(write_results(tmp_path / "run", [rounds], confusion=confusion))
    expected = (
        "fedavg on seed 1: the model predicts 'inner race' only, so its accuracy is the share of that class among 100 "
        "test samples, 0.5; go on for more rounds, try another training.learning_rate, or look at how the model "
        "normalises: statistics of batches with few classes do that, and normalisation: group has none"
    )
    assert said == ([expected] if told else [])


def test_a_model_that_was_never_trained_or_diverged_has_a_remark_of_its_own(tmp_path: Path) -> None:
    confusion = counted("fedavg", 1, ONE_CLASS)
    never = rounds_of("fedavg", 1, [0.3, 0.5]).assign(participants=0)
    (said,) = remarks(write_results(tmp_path / "never", [never], confusion=confusion))
    assert "never trained" in said
    diverged = rounds_of("fedavg", 1, [0.3, nan]).assign(participants=3, loss=[1.0, inf])
    (said,) = remarks(write_results(tmp_path / "diverged", [diverged], confusion=confusion))
    assert "diverged" in said


def test_a_score_that_is_too_large_for_a_number(tmp_path: Path) -> None:
    for score, told in ((inf, True), (1e300, False)):
        rounds = rounds_of("fedavg", 1, [nan, nan]).assign(participants=3, loss=[9.0, 8.0], phm08=[7.0, score])
        said = remarks(write_results(tmp_path / str(score), [rounds]))
        assert [one.startswith("fedavg on seed 1: its PHM08 score is too large for a number") for one in said] == (
            [True] * told
        )


def test_nobody_came(tmp_path: Path) -> None:
    rounds = rounds_of("fedavg", 1, [0.1, 0.3]).assign(participants=3)
    for newcomers, told in ((0, True), (1, False)):
        results = write_results(tmp_path / str(newcomers), [rounds], summary=[summary_of(rounds, newcomers=newcomers)])
        said = "fedavg: no newcomer has trained on 1 of 1 seeds; each client had been asked in a round"
        assert [remark.startswith(said) for remark in remarks(results)] == [True] * told


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([1.0, 1.5], "the model got worse with training (loss 1 -> 1.5); try a smaller {}"),
        ([1.0, 171.0], "a loss of 171 (...) ...; try a tenth of {}, and look whether ..."),
        ([1.0, inf], "the model diverged: after round 2 its scores are not finite; a smaller {} may help"),
    ],
)
@pytest.mark.parametrize(
    ("learning_rates", "named"),
    [
        (["server.learning_rate", "training.learning_rate"], "server.learning_rate or training.learning_rate"),
        (["training.learning_rate"], "training.learning_rate"),
        (None, "training.learning_rate"),  # of a run folder that does not tell
    ],
)
def test_each_learning_rate_of_the_protocol_is_named(
    tmp_path: Path, losses: list[float], said: str, learning_rates: list[str] | None, named: str
) -> None:
    rounds = rounds_of("fedadam", 1, [0.1, 0.1]).assign(loss=losses, participants=3)
    results = write_results(tmp_path / "run", [rounds], classes=10)
    row = {"protocol": "fedadam", "seed": 1} | ({"learning_rates": learning_rates} if learning_rates else {})
    results.manifest["runs"].append(row)
    (remark,) = remarks(results)
    assert_said(f"fedadam on seed 1: {said.format(named)}", remark)


def test_a_run_folder_tells_the_learning_rates_of_each_protocol(tmp_path: Path) -> None:
    protocols = [{"name": name, "fraction": 1.0} for name in ("fedavg", "fedadam", "scaffold")]
    rows = run(scenario({"protocols": protocols}), out=tmp_path / "run").manifest["runs"]
    both = ["server.learning_rate", "training.learning_rate"]
    assert [row["learning_rates"] for row in rows] == [both[1:], both, both]


FAR = "is far above ln 10 = 2.3, which guessing gives; try a tenth of training.learning_rate, and look whether labels "


@pytest.mark.parametrize(
    ("accuracies", "losses", "classes", "far"),
    [
        ([0.1, 0.1], [2.3, 171.0], 10, True),  # and not also that it got worse
        ([0.15], [4.7], 10, True),
        ([0.1, 0.1], [171.0, 2.2], 10, False),
        ([0.1], [4.5], 10, False),
        ([0.6], [6.9], 10, False),  # it has learned, and is too sure: alike data, learned too well
        ([0.89], [3989.0], 10, True),
        ([0.1], [171.0], None, False),  # of a run folder that does not tell, or numbers to predict
        ([nan], [171.0], None, False),
        ([nan], [nan], 10, False),
        ([nan], [inf], 10, False),
    ],
)
def test_a_loss_far_above_that_of_guessing(
    tmp_path: Path, accuracies: list[float], losses: list[float], classes: int | None, far: bool
) -> None:
    rounds = rounds_of("fedavg", 1, accuracies).assign(loss=losses, participants=3)
    said = remarks(write_results(tmp_path / "run", [rounds], classes=classes))
    if far:
        assert len(said) == 1
        assert said[0].startswith(f"fedavg on seed 1: a loss of {losses[-1]:.3g} (accuracy {accuracies[-1]:g}) {FAR}")
    else:
        assert not any("guessing" in remark for remark in said)


@pytest.mark.parametrize(("changes", "classes"), [({"learn": True}, 10), ({}, None)])
def test_a_run_folder_tells_how_many_classes_there_are(
    tmp_path: Path, changes: dict[str, object], classes: int | None
) -> None:
    learning = {"data": {"name": "digits"}, "model": {"name": "softmax"}} if changes else {}
    assert run(scenario({**learning, **changes}), out=tmp_path / "run").manifest["classes"] == classes


def test_a_run_that_diverged_is_no_failure_and_everything_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    learning = {
        "learn": True,
        "data": {"name": "digits"},
        "model": {"name": "mlp"},
        "training": {"learning_rate": 1e18, "weight_decay": 1.0, "batch_size": 32},
        "stop": {"target_accuracy": 0.09},  # as good as any class alone: a diverged run has to end by itself
        "protocols": [{"name": "fedavg", "fraction": 1.0}, {"name": "fedprox", "fraction": 1.0, "mu": 0.1}],
    }
    path, out = tmp_path / "scenario.yaml", tmp_path / "run"
    path.write_text(written_out(scenario(learning)))
    assert cli.main(["run", str(path), "--out", str(out), "--executor", "serial"]) == 0
    told = capsys.readouterr().err
    results = load_results(out)
    for protocol, row in zip(("fedavg", "fedprox"), results.manifest["runs"], strict=True):
        last = int(results.rounds.loc[results.rounds["protocol"] == protocol, "round"].max())
        reason = f"the model diverged: after round {last} its scores are not finite"
        assert row["cut_short"].startswith(reason)
        rounds = f"after {last} round{'s' * (last > 1)}"
        assert told.count(f"Remark: {protocol} on seed 1: the run ended early, {rounds}: {reason}") == 1
        assert f"{protocol} seed 1: round {last}, " in told and "the model diverged, " in told
    assert (results.summary["loss"] == inf).all()
    empty = ["final_accuracy", "time_to_target_s", "bytes_to_target", "rounds_to_target"]
    assert results.summary[empty].isna().all(axis=None)
    for arguments in ([], ["--at", "round=1"], ["--target", "0.09"]):
        assert cli.main(["compare", str(out), *arguments]) == 0
        assert "Remark: fedavg on seed 1: the run ended early" in capsys.readouterr().err
    assert cli.main(["plot", str(out)]) == 0


def test_a_model_that_diverged_in_the_last_round_did_not_end_its_run_and_is_told(tmp_path: Path) -> None:
    rounds = rounds_of("fedavg", 1, [0.5, nan]).assign(loss=[1.0, inf], participants=3)
    (remark,) = remarks(write_results(tmp_path / "run", [rounds]))
    assert remark.startswith("fedavg on seed 1: the model diverged: after round 2 its scores are not finite")


def test_seeds_that_diverged_are_counted(tmp_path: Path) -> None:
    lost = rounds_of("fedavg", 2, [0.9, nan]).assign(loss=[0.1, inf])
    runs = [rounds_of("fedavg", 1, [0.5, 0.6]), lost, rounds_of("fedavg", 3, [0.5, 0.8])]
    runs = [run.assign(participants=3) for run in runs]
    results = write_results(tmp_path / "run", runs)
    assert remarks(results)[-1] == "fedavg: 1 of 3 seeds diverged; what they do not have is left out of its means"
