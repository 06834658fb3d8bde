"""The search by itself: who goes on, how far, and who is left for which reason; by formulas, without training."""

from __future__ import annotations

from collections.abc import Sequence

from trials import QUESTION, Curve, Formula, candidate

from fedsim.experiment.advise.search import Trial, search


def slope(each: float) -> Curve:
    """An accuracy that grows by so much in a round."""
    return lambda seed, number: min(0.9, each * number)


def searched(runs: Formula, seeds: Sequence[int] = (1,), *, every: int = 1, foreseen: bool = True) -> dict[str, Trial]:
    candidates = [candidate(name, every=every, foreseen=foreseen) for name in runs.curves]
    return {trial.candidate.key: trial for trial in search(candidates, QUESTION, seeds, runs)}  # type: ignore[arg-type]


def equal_rounds(names: Sequence[str], seconds: float = 1.0) -> dict[str, float]:
    return dict.fromkeys(names, seconds)


def test_the_better_half_goes_on_from_rung_to_rung() -> None:
    curves = {name: slope(0.001 * (1 + rank)) for rank, name in enumerate("abcdefgh")}
    runs = Formula(curves, equal_rounds("abcdefgh"))
    found = searched(runs)
    assert [name for name, _, until in runs.trained if until == 25] == list("abcdefgh")
    assert sorted(name for name, _, until in runs.trained if until == 50) == list("efgh")
    assert sorted(name for name, _, until in runs.trained if until == 100) == list("gh")
    said = {name: trial.left.said for name, trial in found.items() if trial.left}
    assert said["a"] == "dropped at 25 %"
    assert said["e"] == "dropped at 50 %"
    assert said["g"] == "misses it"
    assert said["h"] == "too late to hold it"  # 0.8 in its last round


def test_two_go_on_wherever_there_are_two() -> None:
    runs = Formula({"a": slope(0.002), "b": slope(0.001)}, equal_rounds("ab"))
    searched(runs)
    assert sorted(runs.trained) == [(name, 1, until) for name in "ab" for until in (25, 50, 100)]


def test_what_learns_the_same_stays_together_and_counts_once() -> None:
    curves = {"fast": slope(0.002), "slow": slope(0.002), "c": slope(0.0015), "d": slope(0.001)}
    runs = Formula(curves, equal_rounds(curves) | {"slow": 10.0}, alike=("fast", "slow"))
    found = searched(runs)
    assert found["slow"].left and found["slow"].left.kind == "missed"  # it went to its end, as fast has
    assert found["d"].left and found["d"].left.said == "dropped at 25 %"
    assert found["c"].left and found["c"].left.kind == "missed"


def test_who_goes_furthest_begins() -> None:
    runs = Formula({"slow": slope(0.002), "fast": slope(0.002)}, {"slow": 10.0, "fast": 1.0}, alike=("fast", "slow"))
    searched(runs)
    assert runs.trained[:2] == [("fast", 1, 25), ("slow", 1, 3)]


def test_pauses_are_at_evaluations_and_the_last_one_within_the_budget_ends_it() -> None:
    runs = Formula({"a": slope(0.001)}, {"a": 4.0})  # 25 rounds within the budget
    found = searched(runs, every=4)
    assert runs.trained == [("a", 1, 8), ("a", 1, 12), ("a", 1, 24)]
    assert found["a"].affords == {1: 24}


def test_what_affords_no_evaluation_is_never_trained_and_says_what_one_takes() -> None:
    runs = Formula({"a": slope(0.01), "b": slope(0.01)}, {"a": 30.0, "b": 1.0})
    found = searched(runs, every=4)
    assert "a" not in {name for name, *_ in runs.trained}
    assert found["a"].left and found["a"].left.said == "first evaluation takes 2 min"
    assert found["b"].left is None


def test_what_decides_on_learned_values_is_trained_without_a_clock_and_pauses_by_what_it_spends() -> None:
    runs = Formula({"a": slope(0.001)}, {"a": 1.0})
    searched(runs, foreseen=False)
    assert all(job.learn for job in runs.asked)
    assert [dict(job.pause) for job in runs.asked] == [
        {"sim_time_s": 25.0, "transfer_bytes": 2.5e5, "round": 250},
        {"sim_time_s": 50.0, "transfer_bytes": 5e5, "round": 500},
        {"sim_time_s": 100.0, "transfer_bytes": 1e6, "round": 1000},
    ]


def test_rounds_that_cost_nothing_are_not_without_end() -> None:
    runs = Formula({"a": slope(0.0)}, {"a": 1e-9})
    assert searched(runs)["a"].affords == {1: 1000}
    assert runs.trained == [("a", 1, 250), ("a", 1, 500), ("a", 1, 1000)]


def test_what_is_spent_beyond_the_budget_does_not_count() -> None:
    runs = Formula({"a": slope(0.008)}, {"a": 1.03})  # 0.8 in round 100, which ends at 103 s
    found = searched(runs, foreseen=False)
    assert not found["a"].reached(1)
    assert found["a"].progress[1].rounds["sim_time_s"].max() <= 100


def test_only_the_cheaper_half_of_those_that_reach_the_target_trains_on_further_seeds() -> None:
    curves = {name: slope(each) for name, each in zip("abcde", (0.05, 0.04, 0.035, 0.034, 0.001), strict=True)}
    runs = Formula(curves, equal_rounds("abcde"))
    found = searched(runs, seeds=(1, 2, 3))
    assert {name for name, seed, _ in runs.trained if seed > 1} == {"a", "b"}
    assert {seed for _, seed, _ in runs.trained} == {1, 2, 3}
    kinds = {name: trial.left and trial.left.kind for name, trial in found.items()}
    assert kinds == {"a": None, "b": None, "c": "dearer", "d": "dropped", "e": "dropped"}


def test_who_has_reached_the_target_trains_no_further_on_that_seed() -> None:
    class Ends(Formula):
        def run(self, jobs, said):  # type: ignore[no-untyped-def]
            found = super().run(jobs, said)
            return [type(one)(one.rounds, True) if one.rounds["accuracy"].max() > 0.8 else one for one in found]

    runs = Ends({"a": slope(0.1), "b": slope(0.001)}, equal_rounds("ab"))
    searched(runs)
    assert [until for name, _, until in runs.trained if name == "a"] == [25]


def test_a_seed_on_which_nothing_is_affordable_is_one_that_misses() -> None:
    class SlowOnSeedTwo(Formula):
        def _clock(self, job):  # type: ignore[no-untyped-def]
            found = super()._clock(job)
            return type(found)(found.rounds.head(0), True) if job.seed == 2 else found

    runs = SlowOnSeedTwo({"a": slope(0.05)}, {"a": 1.0})
    found = searched(runs, seeds=(1, 2, 3))["a"]
    assert [found.reached(seed) for seed in (1, 2, 3)] == [True, False, True]
    assert 2 not in {seed for _, seed, _ in runs.trained}
