"""Faults in grouping: clusters, groups, what is left over, growth, and how alike groups are."""

from __future__ import annotations

from mutants.fault import Fault

ASSIGNMENT = "fedsim/grouping/equal_clusters.py"
CLUSTERS = "fedsim/grouping/equal_clusters.py"
ICG = "fedsim/grouping/icg.py"
QUALITY = "fedsim/grouping/quality.py"
SETTINGS = "fedsim/grouping/settings.py"
TEST_ASSIGNMENT = "tests/grouping/test_assignment.py"
TEST_CLUSTERS = "tests/grouping/test_equal_clusters.py"
TEST_GROUPS = "tests/grouping/test_groups.py"
TEST_GROWTHS = "tests/grouping/test_growths.py"
TEST_ICG = "tests/grouping/test_icg.py"
TEST_QUALITY = "tests/grouping/test_quality.py"

FAULTS = (
    Fault(
        "costs in a thousand steps",
        ASSIGNMENT,
        "most = 2**60 / ((points + clusters + 1) * (clusters + 1))",
        "most = 1000",
        (TEST_ASSIGNMENT,),
    ),
    Fault(
        "the dearest clusters",
        CLUSTERS,
        "return -(points @ sums.T)",
        "return points @ sums.T",
        (TEST_ASSIGNMENT,),
    ),
    Fault(
        "seeds by plain distance",
        CLUSTERS,
        "np.square(points - points[chosen[-1]]).sum(axis=1)",
        "np.abs(points - points[chosen[-1]]).sum(axis=1)",
        (TEST_CLUSTERS,),
    ),
    Fault(
        "the tolerance forgets that centres are kept as sums",
        CLUSTERS,
        "points.var(axis=0).mean() * size**2",
        "points.var(axis=0).mean()",
        (TEST_CLUSTERS,),
    ),
    Fault(
        "groups are made within clusters",
        ICG,
        "rng.permuted(clusters, axis=1)[:, :number].T",
        "rng.permuted(clusters, axis=1)[:, :number].reshape(number, length)",
        (TEST_ICG,),
    ),
    Fault(
        "the same members of a cluster are always left over",
        ICG,
        "sampled = rng.permutation(len(counts))[: length * size]",
        "sampled = np.arange(len(counts))[: length * size]",
        (TEST_GROUPS,),
    ),
    Fault(
        "clusters are as many as groups",
        ICG,
        "length = len(counts) // number",
        "length = number",
        (TEST_GROUPS,),
    ),
    Fault("members train in the order of clusters", SETTINGS, "[rng.permutation(np.", "[np.array(np.", (TEST_ICG,)),
    Fault("the first of those left over get in", SETTINGS, "dealt[m : m + 1]", "dealt[m : m + 2]", (TEST_GROUPS,)),
    Fault(
        "the mean distance is over all ordered pairs",
        QUALITY,
        "CPD_SCALE * z / len(pairs)",
        "CPD_SCALE * z / (2 * len(pairs))",
        (TEST_QUALITY,),
    ),
    Fault(
        "groups are added in the first block already",
        "fedsim/grouping/growth.py",
        'block - 1 if self.form == "paper"',
        'block if self.form == "paper"',
        (TEST_GROWTHS,),
    ),
    Fault(
        "logarithms of base 2",
        "fedsim/grouping/growth.py",
        "math.log(block)",
        "math.log2(block)",
        (TEST_GROWTHS,),
    ),
    Fault(
        "alpha is the factor of growth",
        "fedsim/grouping/growth.py",
        "(1 + self.alpha, block - 1)",
        "(self.alpha, block - 1)",
        (TEST_GROWTHS,),
    ),
)
