"""Faults in what clients remember: semantics, their compensation and storage, and the rounds that use them."""

from __future__ import annotations

from mutants.fault import Fault

SEMANTICS = "fedsim/learning/executors/semantics.py"
CALIBRATION = "fedsim/protocols/exchanges/calibration.py"
SCC = "fedsim/protocols/exchanges/scc.py"
LASP = "fedsim/protocols/exchanges/lasp.py"
LEARNER = "fedsim/learning/graph_learner.py"
HEAD = "fedsim/models/user_head.py"
PLAIN = "fedsim/learning/executors/plain.py"
LAWS = "tests/laws/test_groups_learn_like_plain_loops.py"
TESTS = "tests/learning/test_semantics.py"
TEST_ROWS = "tests/learning/test_semantic_rows.py"

FAULTS = (
    Fault(
        "absent classes always move",
        "fedsim/learning/operations/compensate.py",
        'elif self.absent == "mean":',
        "else:",
        (TEST_ROWS,),
    ),
    Fault(
        "a class moves by the sum of its drifts",
        "fedsim/learning/operations/compensate.py",
        "features[labels == label] += seen.mean(dim=0)",
        "features[labels == label] += seen.sum(dim=0)",
        (TEST_ROWS,),
    ),
    Fault(
        "compensation changes what is stored",
        "fedsim/learning/operations/compensate.py",
        "remembered[LABELS], remembered[FEATURES].clone()",
        "remembered[LABELS], remembered[FEATURES]",
        (TEST_ROWS,),
    ),
    Fault(
        "rounding says which of two rows is nearer",
        "fedsim/learning/operations/keep.py",
        "torch.round(distances * (",
        "(distances * (",
        (TEST_ROWS,),
    ),
    Fault(
        "the last of equal rows",
        "fedsim/learning/operations/keep.py",
        "torch.argsort(_distances(candidates[FEATURES], labels), stable=True)",
        "len(labels) - 1 - torch.argsort(_distances(candidates[FEATURES], labels).flip(0), stable=True)",
        (TEST_ROWS,),
    ),
    Fault(
        "a quota too many",
        "fedsim/learning/operations/keep.py",
        "rank < quotas[labels]",
        "rank <= quotas[labels]",
        (TEST_ROWS,),
    ),
    Fault(
        "rows in their order",
        SEMANTICS,
        "chosen = torch.from_numpy(ids).to(rows[LABELS].device)",
        "chosen = torch.from_numpy(np.sort(ids)).to(rows[LABELS].device)",
        (LAWS,),
    ),
    Fault(
        "features as in training",
        PLAIN,
        """        self._load(extractor)
        self._module.eval()""",
        """        self._load(extractor)
        self._module.train()""",
        (TESTS,),
    ),
    Fault(
        "a user's features as they are after the classifier",
        HEAD,
        "given.append(taken[0].clone() if alone else None)",
        "given.append(taken[0] if alone else None)",
        (TESTS,),
    ),
    Fault(
        "remembered rows before new ones",
        CALIBRATION,
        "rows = [now] if remembered is None else [now, remembered]",
        "rows = [now] if remembered is None else [remembered, now]",
        (LAWS,),
    ),
    Fault(
        "one epoch of calibration",
        LASP,
        "epochs=self.calibration_epochs,",
        "epochs=1,",
        (LAWS,),
    ),
    Fault(
        "the first batch of a block is forgotten",
        SCC,
        "            memory.seen.append(first)",
        "            pass",
        (LAWS,),
    ),
    Fault(
        "the oldest batch comes first",
        SCC,
        "newest_first = [*reversed(memory.seen), ",
        "newest_first = [*memory.seen, ",
        (LAWS,),
    ),
    Fault(
        "the extractor of two blocks ago",
        SCC,
        "        memory.fit(database, keeps_backup=self.compensates)\n",
        "        memory.database, memory.backup_block = database, memory.block\n",
        (LAWS,),
    ),
    Fault(
        "own extractors are kept",
        LEARNER,
        "            self.compute_soon(made)",
        "            pass",
        ("tests/experiment/test_memory_over_rounds.py::test_extractors_that_are_kept_are_versions_and_not_copies",),
    ),
)
