"""Which devices train together in one step, so that what their mini-batches hold in sum is what it should be.

One class and one line per way to choose them.
"""

REGISTRY = {
    "gbp_cs": "fedsim.grouping.subset.gbp_cs:GBPCS",
    "random": "fedsim.grouping.subset.random:RandomSubset",
    "monte_carlo": "fedsim.grouping.subset.monte_carlo:MonteCarlo",
    "exact": "fedsim.grouping.subset.exact:Exact",
    "pair_swap": "fedsim.grouping.subset.pair_swap:PairSwap",
    "genetic": "fedsim.grouping.subset.genetic:Genetic",
    "bayesian": "fedsim.grouping.subset.bayesian:Bayesian",
    "cp_sat": "fedsim.grouping.subset.cp_sat:CPSAT",
}
