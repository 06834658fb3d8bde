"""Faults in choosing devices: starts, swaps, the best of all choices, and what is tried at random."""

from __future__ import annotations

from mutants.fault import Fault

PACKAGE = "fedsim/grouping/subset"
TEST_ALL = "tests/grouping/test_subsets.py"
TEST_BEST = "tests/grouping/test_subsets_best.py"
TEST_DRAWN = "tests/grouping/test_subsets_drawn.py"
TEST_GBP_CS = "tests/grouping/test_subsets_gbp_cs.py"

FAULTS = (
    Fault(
        "a swap out of the smallest gradient",
        f"{PACKAGE}/gbp_cs.py",
        "old = int(np.where(taken, gradient, -np.inf).argmax())",
        "old = int(np.where(taken, gradient, np.inf).argmin())",
        (TEST_GBP_CS,),
    ),
    Fault(
        "normal equations of any matrix",
        f"{PACKAGE}/gbp_cs.py",
        "CLEARLY_REGULAR = 1e-3",
        "CLEARLY_REGULAR = 0.0",
        (TEST_GBP_CS,),
    ),
    Fault(
        "a block that 32 bits think no better",
        f"{PACKAGE}/exact.py",
        "if least_of_each.min() < least + off:",
        "if least_of_each.min() < least - off:",
        (TEST_BEST,),
    ),
    Fault(
        "32 bits that are never off",
        f"{PACKAGE}/exact.py",
        "off, of_first = self.off(), self.of_first.astype(np.float32)",
        "off, of_first = 0.0, self.of_first.astype(np.float32)",
        (f"{TEST_BEST}::test_whatever_32_bits_say_what_is_better_by_a_little_is_found",),
    ),
    Fault(
        "halves without the choices of one of them alone",
        f"{PACKAGE}/exact.py",
        "for j in range(max(0, size + 1 - len(seconds)), len(firsts)):",
        "for j in range(max(1, size + 1 - len(seconds)), len(firsts)):",
        (f"{TEST_BEST}::test_all_choices_are_among_the_pairs_and_their_values_are_right",),
    ),
    Fault(
        "best swaps from the first devices",
        f"{PACKAGE}/pair_swap.py",
        "masks[0, gbp_cs(rows, target, size).chosen] = True",
        "masks[0, :size] = True",
        (f"{TEST_BEST}::test_best_swaps_go_on_where_gbp_cs_ends",),
    ),
    Fault(
        "kicks whose worse end counts",
        f"{PACKAGE}/pair_swap.py",
        "better = found < values",
        "better = found > values",
        (TEST_BEST,),
    ),
    Fault(
        "a solver that knows whole targets only",
        f"{PACKAGE}/cp_sat.py",
        "FINEST = 30",
        "FINEST = 0",
        (TEST_BEST,),
    ),
    Fault(
        "children of any stretch",
        f"{PACKAGE}/genetic_operators.py",
        "np.flatnonzero(ahead == ahead[cut])",
        "np.flatnonzero(ahead >= ahead[cut])",
        (TEST_DRAWN,),
    ),
    Fault(
        "the first of all draws",
        f"{PACKAGE}/monte_carlo.py",
        "found = int(values.argmin())",
        "found = 0",
        (TEST_DRAWN,),
    ),
    Fault(
        "first places that are chosen more often",
        f"{PACKAGE}/selector.py",
        "rng.random((number, candidates)).argpartition(",
        "(rng.random((number, candidates)) * np.arange(1, candidates + 1)).argpartition(",
        (f"{TEST_ALL}::test_every_choice_is_as_likely_as_any_other",),
    ),
)
