"""Faults in how clients train together: their factors and layers, in lockstep, and along chains."""

from __future__ import annotations

from mutants.fault import BATCHED, CORNERS, LOW_RANK, TRAINER, Fault

COEFFICIENTS = BATCHED + "coefficients.py"
DENSE = BATCHED + "dense.py"
CLIENT_TENSORS = BATCHED + "client_tensors.py"
LOCKSTEP = BATCHED + "lockstep.py"
COURSE = BATCHED + "course.py"
CLIENT_CONVOLUTION = BATCHED + "client_convolution.py"
RECIPE = BATCHED + "recipe.py"
GROUP = BATCHED + "group.py"
SUPPORT = BATCHED + "support.py"
SCORING = BATCHED + "scoring.py"
TEST_SAMPLES = "tests/learning/test_resident_samples.py"
AGREE = "tests/laws/test_executors_agree.py"

FAULTS = (
    Fault(
        "factors of a part that begins anew go on with their coefficients",
        LOW_RANK,
        "        for coefficients in (self._scale, self._c, self._p):\n            coefficients.restart(client)\n"
        "        if not self._recipe.plain:\n            self._coefficients[client].zero_()\n"
        "        self._outputs[client].zero_()\n",
        "        self._scale.restart(client)\n",
        (CORNERS,),
    ),
    Fault(
        "a part that begins anew keeps its scale",
        LOW_RANK,
        "        for coefficients in (self._scale, self._c, self._p):\n            coefficients.restart(client)\n",
        "        self._c.restart(client)\n",
        (CORNERS,),
    ),
    Fault(
        "momentum in factors is handed on to the next training",
        COEFFICIENTS,
        "        self.momentum[client].zero_()\n",
        "",
        (CORNERS,),
    ),
    Fault(
        "the pull is to the base and not to where a training started",
        COEFFICIENTS,
        "        self.start[client] = self.value[client]\n",
        "",
        (CORNERS,),
    ),
    Fault(
        "weights that decay are not smaller in the sum",
        LOW_RANK,
        "return self._grown(total, _weighted(self._scale.value - 1, weights).sum())",
        "return total",
        (CORNERS,),
    ),
    Fault(
        "momentum is lost when factors become matrices",
        DENSE,
        "            tensors.momentum = torch.stack([factors.momentum(client) for client in everybody])\n",
        "            pass\n",
        (CORNERS,),
    ),
    Fault(
        "where a training started is lost when factors become matrices",
        DENSE,
        "            tensors.start = torch.stack([factors.start(client) for client in everybody])\n",
        "            pass\n",
        (CORNERS,),
    ),
    Fault(
        "factors become matrices one mini-batch too late",
        DENSE,
        "self._factors.rows + h.shape[1] > self._factors.capacity",
        "self._factors.rows > self._factors.capacity",
        (CORNERS,),
    ),
    Fault(
        "the gradient of a layer's inputs is that of its new weights",
        DENSE,
        "            before = None if first else self._factors.times(d)\n            self._factors.step(d, h)\n",
        "            self._factors.step(d, h)\n            before = None if first else self._factors.times(d)\n",
        (CORNERS,),
    ),
    Fault(
        "momentum of small layers is handed on to the next training",
        CLIENT_TENSORS,
        "            self.momentum[client].zero_()",
        "            pass",
        (CORNERS,),
    ),
    Fault(
        "weights do not decay where they are no factors",
        CLIENT_TENSORS,
        "        if recipe.weight_decay:\n",
        "        if recipe.weight_decay and recipe.pull:\n",
        (CORNERS,),
    ),
    Fault(
        "a client's loss is the mean over the largest mini-batch",
        LOCKSTEP,
        "own = [like.new_full((number, 1), 1 / number) for number in samples]",
        "own = [like.new_full((number, 1), 1 / max(samples)) for number in samples]",
        (CORNERS,),
    ),
    Fault(
        "rows that stand for no sample hold what was in memory",
        LOCKSTEP,
        "                h[client, number:].zero_()",
        "                h[client, number:].fill_(float('nan'))",
        (CORNERS,),
    ),
    Fault(
        "a training of a chain is not told that it begins",
        LOCKSTEP,
        "                layer.begin(client)\n",
        "                pass\n",
        (CORNERS,),
    ),
    Fault(
        "every training of a chain is as long as its first one",
        COURSE,
        "stage.training.about.sizes for stage in chain]",
        "chain[0].training.about.sizes for stage in chain]",
        (CORNERS,),
    ),
    Fault(
        "shorter trainings come first",
        COURSE,
        "key=lambda number: (-steps[number], number)",
        "key=lambda number: (steps[number], number)",
        (CORNERS,),
    ),
    Fault(
        "a convolution's bias takes no step",
        CLIENT_CONVOLUTION,
        "            self.bias.take(client, d.sum(dim=(0, 2, 3)))",
        "            pass",
        (CORNERS,),
    ),
    Fault(
        "without a kernel the coefficients are left out",
        LOW_RANK,
        "            small *= self._coefficients[:clients, None, : self.rows]",
        "            pass",
        (CORNERS,),
    ),
    Fault(
        "plain SGD has no coefficients",
        LOW_RANK,
        "-recipe.learning_rate if recipe.plain else 0.0",
        "0.0",
        (CORNERS,),
    ),
    Fault(
        "the machine code for what clients add is not prepared",
        LOW_RANK,
        "        correction_kernel(inputs, outputs, dtype)",
        "        pass",
        (CORNERS,),
    ),
    Fault(
        "the last mini-batches that are decoded together are left out",
        BATCHED + "samples.py",
        "    if some:\n        yield some",
        "    if False:\n        yield some",
        (TEST_SAMPLES,),
    ),
    Fault(
        "augmented samples are taken as they are stored",
        BATCHED + "samples.py",
        "        if dataset.stream is not None and dataset.stream.augmentation is not None:\n            return None\n",
        "",
        (TEST_SAMPLES,),
    ),
    Fault(
        "products do not see how weight decay and momentum rescale a change",
        LOW_RANK,
        "        self._coefficients[active] = self._c.value[active].to(self._coefficients.dtype)",
        "        self._coefficients[active] = -recipe.learning_rate",
        (AGREE,),
    ),
    Fault(
        "all chains of a wave follow the first one's recipe",
        GROUP,
        'frozenset(first.sources.model("model").items()), recipe_of(first.about)',
        'frozenset(first.sources.model("model").items()), ""',
        (CORNERS,),
    ),
    Fault(
        "all chains of a wave start from the first one's model",
        GROUP,
        'frozenset(first.sources.model("model").items()), recipe_of(first.about)',
        "frozenset(), recipe_of(first.about)",
        (f"{AGREE}::test_every_recipe_is_followed_along_every_kind_of_chain",),
    ),
    Fault(
        "changes are summed up from where trainings started, and not from the sum's own base",
        TRAINER,
        "                elif base[part] is not sum_base:\n",
        "                elif base is None:\n",
        (CORNERS,),
    ),
    Fault(
        "what a training of the same wave remembers is not made",
        GROUP,
        'if isinstance(source, Made) and slot.role != "model":',
        'if isinstance(source, Made) and slot.role == "memory":',
        (f"{AGREE}::test_every_recipe_is_followed_along_every_kind_of_chain",),
    ),
    Fault(
        "pooling twice is taken for pooling once",
        SUPPORT,
        "            pool = follower.kernel\n",
        "            pool = min(follower.kernel, 2)\n",
        (CORNERS,),
    ),
    Fault(
        "a rectifier before pooling is overlooked",
        SUPPORT,
        "for follower in behind)\n    return",
        "for follower in behind[-1:])\n    return",
        (CORNERS,),
    ),
    Fault(
        "a test's biases are left out",
        SCORING,
        "    bias = None if bias is None else bias.to(dtype)\n",
        "    bias = None\n",
        (f"{CORNERS}::test_scores_are_the_plain_loops",),
    ),
    Fault(
        "a push is forgotten in products",
        LOW_RANK,
        "        if push is not None:\n            y.baddbmm_(",
        "        if False:\n            y.baddbmm_(",
        (CORNERS,),
    ),
    Fault(
        "a push is forgotten in the sum",
        LOW_RANK,
        "                _plus(total, number, push)\n",
        "                pass\n",
        (CORNERS,),
    ),
    Fault(
        "a push is forgotten where weights are no factors",
        CLIENT_TENSORS,
        "            gradient.add_(self.push[clients])\n",
        "            pass\n",
        (CORNERS,),
    ),
    Fault(
        "a client's next training is pushed by the push of the one before",
        DENSE,
        "        if self._factors is not None and self._recipe.pushes:\n            self._unfold(self._factors)\n",
        "",
        (CORNERS,),
    ),
    Fault(
        "a step with a push counts as plain",
        RECIPE,
        " or self.pull or self.pushes)",
        " or self.pull)",
        (CORNERS,),
    ),
    Fault(
        "a pull to the start rescales nothing",
        RECIPE,
        "bool(self.weight_decay or self.pull)",
        "bool(self.weight_decay)",
        (AGREE,),
    ),
)
