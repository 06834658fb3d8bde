"""What a search says: of runs whose numbers are known, so that each sentence can be checked by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pandas as pd
import pytest
from trials import QUESTION, candidate, reaching, rounds, trial

from fedsim.experiment.advise.answer import Answer
from fedsim.experiment.advise.question import Question
from fedsim.experiment.advise.search import Left, Trial

SEEDS = (1, 2, 3)


def answer(*trials: Trial, seeds: tuple[int, ...] = SEEDS, question: Question = QUESTION) -> Answer:
    return Answer(question, trials, seeds, ["rate"])


def by_seed(*at: int, **more: float) -> dict[int, pd.DataFrame]:
    return {seed: reaching(number, **more) for seed, number in enumerate(at, start=1)}


def missing(best: float, rounds_: int = 10) -> pd.DataFrame:
    return rounds({number: best * number / rounds_ for number in range(1, rounds_ + 1)})


def test_a_difference_that_is_clear_on_the_same_seeds_makes_a_winner() -> None:
    found = answer(trial("b", by_seed(20, 31, 40)), trial("a", by_seed(10, 20, 30)))
    assert found.best and found.best.candidate.key == "a"
    said = " ".join(found.verdict)
    # a takes 20 s on average, t(0.975, 2) 10 / sqrt(3) = 24.8; b 10, 11 and 10 s more: 10.33 +/- 4.30 x 0.577 / 1.73
    assert said.startswith("a reaches 0.8 on 3 of 3 seeds, in 20.0 ± 24.8 s and 20.0 ± 24.8 kB.")
    assert "It takes less simulated time, seed by seed: 10.3 ± 1.4 s less than b." in said


def test_a_difference_whose_interval_holds_zero_is_no_decision() -> None:
    found = answer(trial("a", by_seed(10, 20, 30)), trial("b", by_seed(12, 19, 33)))
    said = " ".join(found.verdict)
    assert said.startswith("Undecided between a; b: all of them reach 0.8 on every seed.")
    assert "b takes 1.33 ± 5.17 s more simulated time" in said and "more seeds would tell" in said


def test_one_seed_decides_nothing() -> None:
    found = answer(trial("a", by_seed(10)), trial("b", by_seed(50)), seeds=(1,))
    said = " ".join(found.verdict)
    assert said.startswith("Undecided between a; b") and "One seed tells nothing about others" in said


def test_equal_costs_are_called_equal() -> None:
    said = " ".join(answer(trial("a", by_seed(10, 20, 30)), trial("b", by_seed(10, 20, 30))).verdict)
    assert "b takes the same simulated time on every seed." in said


def test_the_cost_that_decides_can_be_another_one() -> None:
    slow = {seed: reaching(at, round_s=3.0) for seed, at in ((1, 10), (2, 12), (3, 14))}
    trials = [trial("few bytes", slow, by_bytes()), trial("fast", by_seed(20, 22, 24), by_bytes())]
    found = answer(*trials, question=by_bytes())
    assert found.best and found.best.candidate.key == "few bytes"
    assert "It takes less traffic, seed by seed: 10 kB less than fast." in " ".join(found.verdict)
    assert found.table["front"].tolist() == [True, True]


def by_bytes() -> Question:
    return Question(0.8, QUESTION.within, "transfer_bytes")


def test_who_reaches_it_on_every_seed_comes_before_who_is_cheaper_on_some() -> None:
    sometimes = {1: reaching(2), 2: reaching(3), 3: missing(0.7)}
    found = answer(trial("sometimes", sometimes), trial("always", by_seed(50, 51, 52)))
    assert found.best and found.best.candidate.key == "always"
    assert "sometimes reaches it on 2 of 3." in found.verdict
    assert found.table["reached"].tolist() == [3, 2]
    assert found.table["time_to_target_s_n"].tolist() == [3, 2]
    assert math.isnan(found.table["time_to_target_s_mean"][1])  # a mean would be one of the fast seeds
    assert found.table["time_to_target_s_median"][1] == 3.0
    assert found.table["front"].tolist() == [True, False]


def test_who_reaches_it_on_some_seeds_only_is_not_said_to_reach_it() -> None:
    said = " ".join(answer(trial("a", {1: reaching(2), 2: missing(0.7), 3: missing(0.7)})).verdict)
    assert "a reaches 0.8 on 1 of 3 seeds" in said and "None of the candidates" in said


def test_what_nothing_reaches_is_said_with_the_nearest_and_by_how_much_it_misses() -> None:
    near, far = trial("near", {1: missing(0.71)}), trial("far", {1: missing(0.3)})
    near.left, far.left = Left("missed", "misses it"), Left("dropped", "dropped at 25 %")
    found = answer(far, near)
    assert found.best is None
    assert found.verdict[0] == "No candidate was found to reach 0.8 within 100 s and 1 MB."
    assert found.verdict[1] == "The nearest is near, with a best accuracy of 0.710 on seed 1: 0.0900 short."
    assert found.verdict[2].startswith("1 candidate was dropped before the budgets were spent")


def test_the_nearest_may_be_one_that_was_dropped_and_that_is_said() -> None:
    near = trial("near", {1: missing(0.71)})
    near.left = Left("dropped", "dropped at 50 %")
    assert "on seed 1, dropped at 50 %: 0.0900 short." in answer(near).verdict[1]


def test_touching_the_target_is_not_holding_it() -> None:
    spike = trial("spike", {1: rounds({1: 0.3, 2: 0.85, 3: 0.3, 4: 0.3, 5: 0.3})})
    spike.left = Left("missed", "too late to hold it")
    said = answer(spike).verdict[1]
    assert said.endswith("with a best accuracy of 0.850 on seed 1: no three more evaluations confirm it by then.")


def test_without_any_evaluation_there_is_no_nearest() -> None:
    none = Trial(candidate("a"), QUESTION, {1: trial("a", {1: rounds({})}).progress[1]}, {1: 0})
    none.left = Left("unaffordable", "first round takes 9.1 h")
    found = answer(none)
    assert found.verdict[0] == "No candidate reaches 0.8 within 100 s and 1 MB: not one has an evaluation by then."
    assert found.table["n"].tolist() == [0] and found.table["left"].tolist() == ["first round takes 9.1 h"]


def test_those_left_with_the_target_reached_are_named() -> None:
    dearer = trial("dear", {1: reaching(40)})
    dearer.left = Left("dearer", "dearer on seed 1")
    said = " ".join(answer(trial("a", by_seed(10, 11, 12)), dearer).verdict)
    assert "On seed 1 alone it was reached too, at more simulated time, by dear." in said


def test_what_could_afford_more_rounds_than_any_is_given_is_named() -> None:
    many = trial("many", {1: rounds({999: 0.5, 1000: 0.5}, round_s=0.01)})
    few = trial("few", {1: missing(0.5)})
    for one in (many, few):
        one.left = Left("missed", "misses it")
    said = " ".join(answer(many, few).verdict)
    assert "more than 1,000 rounds; --within round=... changes that, and many could afford more." in said
    with_rounds = Question(0.8, {"round": 1000.0}, "round")
    assert "could afford" not in " ".join(answer(many, few, question=with_rounds).verdict)


def test_keys_that_do_not_concern_a_protocol_are_empty() -> None:
    found = trial("a", by_seed(1, 2, 3))
    found.candidate = replace(found.candidate, concerned=(False,))
    assert answer(found).table["rate"].tolist() == [""]


@pytest.mark.parametrize("column", ["time_to_target_s", "bytes_to_target", "rounds_to_target"])
def test_a_candidate_that_was_dropped_is_censored_at_what_it_had_spent(column: str) -> None:
    dropped = trial("a", {1: missing(0.5, rounds_=7)})
    spent = {"time_to_target_s": 7.0, "bytes_to_target": 7000.0, "rounds_to_target": 7.0}
    assert answer(dropped).table[f"{column}_above"].tolist() == [spent[column]]
