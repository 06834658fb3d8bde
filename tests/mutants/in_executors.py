"""Faults in training: clients together, waves, workers and their memory, and what is computed when."""

from __future__ import annotations

from mutants.fault import Fault

EXECUTORS = "fedsim/learning/executors/"
BATCHED = EXECUTORS + "batched/"
LOW_RANK = BATCHED + "low_rank.py"
DENSE = BATCHED + "dense.py"
STACK = BATCHED + "stack.py"
LOCKSTEP = BATCHED + "lockstep.py"
COURSE = BATCHED + "course.py"
CLIENT_CONVOLUTION = BATCHED + "client_convolution.py"
COMPILED = BATCHED + "compiled/"
COMPILED_FRONT = BATCHED + "compiled_front.py"
RECORDINGS = BATCHED + "recordings.py"
CUDA_GRAPHS = BATCHED + "cuda_graphs.py"
RECIPE = BATCHED + "recipe.py"
GROUP = BATCHED + "group.py"
TRAINER = BATCHED + "trainer.py"
SUPPORT = BATCHED + "support.py"
SCORING = BATCHED + "scoring.py"
WAVE = EXECUTORS + "wave.py"
WAVES = EXECUTORS + "waves.py"
WORKERS = EXECUTORS + "workers.py"
WORKER = EXECUTORS + "worker.py"
ARENA = EXECUTORS + "arena.py"
TORCH = EXECUTORS + "torch_executor.py"
CHOICE = EXECUTORS + "choice.py"
FORCING = "fedsim/learning/forcing.py"
GRAPH = "fedsim/learning/graph.py"
HOST = "fedsim/experiment/host.py"
TEST_COMPILED = "tests/learning/test_compiled_front.py"
TEST_PRODUCTS = "tests/learning/test_compiled_products.py"
TEST_CORRECTIONS = "tests/learning/test_corrections.py"
TEST_SAMPLES = "tests/learning/test_resident_samples.py"
TEST_TILES = "tests/learning/test_tiles.py"
CORNERS = "tests/learning/test_batched_corners.py"
RECORDED = "tests/laws/test_recorded_training.py"
TEST_CUDA_GRAPHS = "tests/learning/test_cuda_graphs.py"
AGREE = "tests/laws/test_executors_agree.py"
TEST_WAVES = "tests/learning/test_waves.py"
TEST_WORKERS = "tests/learning/test_workers.py"
TEST_ARENA = "tests/learning/test_arena.py"
TEST_FORCING = "tests/learning/test_forcing.py"
WHICH = "tests/experiment/test_which_executor_trains.py"

FAULTS = (
    Fault(
        "factors of a part that begins anew go on with their coefficients",
        LOW_RANK,
        "        self._scale[client].fill_(1)\n        self._c[client].zero_()\n        if not self._recipe.plain:\n"
        "            self._coefficients[client].zero_()\n        self._outputs[client].zero_()\n",
        "        self._scale[client].fill_(1)\n",
        (CORNERS,),
    ),
    Fault(
        "a part that begins anew keeps its scale",
        LOW_RANK,
        "        self._scale[client].fill_(1)\n        self._c[client].zero_()\n",
        "        self._c[client].zero_()\n",
        (CORNERS,),
    ),
    Fault(
        "momentum in factors is handed on to the next training",
        LOW_RANK,
        "        self._momentum_c[client].zero_()\n",
        "",
        (CORNERS,),
    ),
    Fault(
        "the pull is to the base and not to where a training started",
        LOW_RANK,
        "        self._start_c[client] = self._c[client]\n",
        "",
        (CORNERS,),
    ),
    Fault(
        "weights that decay are not smaller in the sum",
        LOW_RANK,
        "return self._grown(total, _weighted(self._scale - 1, weights).sum())",
        "return total",
        (CORNERS,),
    ),
    Fault(
        "momentum is lost when factors become matrices",
        DENSE,
        "            stack.momentum = torch.stack([factors.momentum(client) for client in everybody])\n",
        "            pass\n",
        (CORNERS,),
    ),
    Fault(
        "where a training started is lost when factors become matrices",
        DENSE,
        "            stack.start = torch.stack([factors.start(client) for client in everybody])\n",
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
        STACK,
        "            self.momentum[client].zero_()",
        "            pass",
        (CORNERS,),
    ),
    Fault(
        "weights do not decay where they are no factors",
        STACK,
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
        "sizes_of(dataset, stage) for stage in chain]",
        "sizes_of(dataset, chain[0]) for stage in chain]",
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
        "of equal places the last one is the largest",
        COMPILED + "forward.py",
        'fcmp_ordered(">", value, best)',
        'fcmp_ordered(">=", value, best)',
        (TEST_COMPILED,),
    ),
    Fault(
        "what is no number is lost in pooling",
        COMPILED + "forward.py",
        'wins = e.build.or_(larger, e.build.fcmp_unordered("uno", value, value))',
        "wins = larger",
        (TEST_COMPILED,),
    ),
    Fault(
        "images are handed on without their margin",
        COMPILED + "geometry.py",
        "        return self.margin * (row + column)",
        "        return 0 * (row + column)",
        (TEST_COMPILED,),
    ),
    Fault(
        "where the rectifier is shut, gradients pass",
        COMPILED + "gradients.py",
        "                value = e.rectified(value, y.load(sample, r, c, channel))",
        "                pass",
        (TEST_COMPILED,),
    ),
    Fault(
        "gradients go to the mirrored place of a square",
        COMPILED + "gradients.py",
        "(down, row), (right, column))",
        "(right, row), (down, column))",
        (TEST_COMPILED,),
    ),
    Fault(
        "gradients of the step before are added once more",
        COMPILED_FRONT,
        "            convolution.begin_step(active)",
        "            pass",
        (TEST_COMPILED,),
    ),
    Fault(
        "of two as near numbers of bfloat16 the odd one is taken",
        COMPILED + "tiles.py",
        "build.add(bits, build.add(below, odd))",
        "build.add(bits, below)",
        (TEST_TILES,),
    ),
    Fault(
        "terms are cut off, so what is left out of products has a sign",
        COMPILED + "tiles.py",
        "if number == 1 else bits",
        "if number > 2 else bits",
        (TEST_TILES,),
    ),
    Fault(
        "what fills up a line may be anything",
        COMPILED + "tiled_forward.py",
        "        behind.store(e.same_bytes(0), half)",
        "        pass",
        (TEST_TILES,),
    ),
    Fault(
        "later parts of a product on tiles take the place of the first one",
        COMPILED + "tiled_products.py",
        "e.build.select(self.is_first, e.index(0), lanes)",
        "e.index(0)",
        (TEST_TILES,),
    ),
    Fault(
        "later terms take the place of the first ones",
        COMPILED + "products.py",
        "e.build.select(is_first, e.zeros, place.load_vector(i, j))",
        "e.zeros",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "later inputs take the place of the first ones",
        COMPILED + "products.py",
        "e.build.select(is_first, nothing, made.load_vector(i, lanes=width))",
        "nothing",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "a part of the inputs is always a whole one",
        COMPILED + "products.py",
        "e.smaller(e.index(INPUTS // LANES), e.index_sum((inputs // LANES, 1), (part, -(INPUTS // LANES))))",
        "e.index(INPUTS // LANES)",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "rows of the matrix that fill no block are left out",
        COMPILED + "products.py",
        "        if in_blocks < shape.outputs:",
        "        if False:",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "the last terms are left out where parts are not equal",
        COMPILED + "products.py",
        "e.build.sdiv(e.build.sub(e.build.add(terms, parts), e.index(1)), e.larger(parts, e.index(1)))",
        "e.build.sdiv(terms, e.larger(parts, e.index(1)))",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "the last block of rows of the matrix is left out",
        COMPILED + "products.py",
        "e.loop(-(-blocks // BLOCKS)) as some_blocks",
        "e.loop(blocks // BLOCKS) as some_blocks",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "numbers that fill no vector are left out of a correction",
        COMPILED + "corrections.py",
        "            multiply(e.index(whole), e.first_lanes(e.index(rest)))",
        "            pass",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "all clients' changes have the coefficients of the first one",
        COMPILED + "corrections.py",
        'e.array("coefficients", (1,)).at(first_row)',
        'e.array("coefficients", (1,))',
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "made numbers that fill no vector are not corrected",
        COMPILED + "corrections.py",
        "            add(e.index(whole), 1, e.first_lanes(e.index(rest)))",
        "            pass",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "all clients' changes are made of the first one's rows",
        COMPILED + "corrections.py",
        'e.array("right", (made,)).at(e.build.mul(client, e.count("capacity")), strides=(made, LANES))',
        'e.array("right", (made, LANES))',
        (TEST_CORRECTIONS,),
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
        "        if dataset.stream.augmentation is not None:\n            return None\n",
        "",
        (TEST_SAMPLES,),
    ),
    Fault(
        "rows that fill no block are left out of a correction",
        COMPILED + "corrections.py",
        "e.loop(e.index_sum((rows, 1), (many, -width))) as one",
        "e.loop(0) as one",
        (TEST_CORRECTIONS,),
    ),
    Fault(
        "products do not see how weight decay and momentum rescale a change",
        LOW_RANK,
        "        self._coefficients[active] = c.to(self._coefficients.dtype)",
        "        self._coefficients[active] = -recipe.learning_rate",
        (AGREE,),
    ),
    Fault(
        "the last tile of rows is left out",
        COMPILED + "products.py",
        "(16, 8, 4, 2, 1)",
        "(16, 8, 4, 2)",
        (TEST_PRODUCTS,),
    ),
    Fault(
        "all chains of a wave follow the first one's recipe",
        GROUP,
        'frozenset(first.sources("model").items()), recipe_text(first.parameters)',
        'frozenset(first.sources("model").items()), ""',
        (CORNERS,),
    ),
    Fault(
        "all chains of a wave start from the first one's model",
        GROUP,
        'frozenset(first.sources("model").items()), recipe_text(first.parameters)',
        "frozenset(), recipe_text(first.parameters)",
        (f"{AGREE}::test_every_recipe_is_followed_along_every_kind_of_chain",),
    ),
    Fault(
        "changes are summed up from where trainings started, and not from the sum's own base",
        TRAINER,
        "                if base[part] is not sum_base:\n",
        "                if base is None:\n",
        (CORNERS,),
    ),
    Fault(
        "what a training of the same wave remembers is not made",
        GROUP,
        'if isinstance(source, Made) and not name.startswith("model."):',
        'if isinstance(source, Made) and name.startswith("memory."):',
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
        "what somebody holds of a wave is not made",
        WAVE,
        "    return tuple(sorted(handle.output for handle in node.held_outputs()))",
        "    return tuple(sorted(handle.output for handle in node.held_outputs()))[:1]",
        (TEST_WAVES,),
    ),
    Fault(
        "a wave stands where its first training stood",
        WAVES,
        "if node not in wave_of or wave_of[node][-1] is node]",
        "if node not in wave_of or wave_of[node][0] is node]",
        (TEST_WAVES,),
    ),
    Fault(
        "a model that somebody needs before the sum is in its wave",
        WAVES,
        "taker is follower or self._order[taker] > self._order[total]",
        "taker is follower or self._order[taker] > self._order[node]",
        (TEST_WAVES,),
    ),
    Fault(
        "parts of several models are taken for one that was handed on",
        WAVES,
        "        return maker if same and alike else None",
        "        return maker if alike else None",
        (TEST_WAVES,),
    ),
    Fault(
        "what a worker was given may be written over before it is done",
        WORKERS,
        "        task.copies.append(block)\n",
        "",
        (f"{TEST_WORKERS}::test_what_several_jobs_take_is_copied_once_and_what_workers_made_never",),
    ),
    Fault(
        "models that are held take the blocks that jobs need",
        WORKERS,
        "        if self._arena.free(made.part) >= _RESERVE:\n",
        "        if True:\n",
        (f"{TEST_WORKERS}::test_any_number_of_models_can_be_held_and_trained_on",),
    ),
    Fault(
        "the newest job of a worker gets the oldest one's answer",
        WORKERS,
        "        task = tasks[0]\n",
        "        task = tasks[-1]\n",
        (f"{TEST_WORKERS}::test_any_number_of_workers_gives_the_bytes_of_the_serial_executor",),
    ),
    Fault(
        "a worker uses as many threads as there are cores",
        WORKER,
        "        torch.set_num_threads(1)\n",
        "        torch.set_num_threads(3)\n",
        (f"{TEST_WORKERS}::test_any_number_of_workers_gives_the_bytes_of_the_serial_executor",),
    ),
    Fault(
        "a block is free while somebody holds one of its tensors",
        ARENA,
        "weakref.finalize(memory, self._free[part].append, place.number)",
        "weakref.finalize(self._tensors, self._free[part].append, place.number)",
        (TEST_ARENA,),
    ),
    Fault(
        "a view of a block is taken for all of it",
        ARENA,
        "            tensor.is_contiguous() and (tensor.data_ptr()",
        "            (tensor.data_ptr()",
        (TEST_ARENA,),
    ),
    Fault(
        "tensors of a block are not aligned",
        ARENA,
        "end = _rounded_up(end + prod(shape) * dtype.itemsize, _ALIGNMENT)",
        "end = end + prod(shape) * dtype.itemsize",
        (TEST_ARENA,),
    ),
    Fault(
        "scores of test sets are dealt out among workers by turns",
        TORCH,
        "np.array_split(np.arange(len(batches)), self._crew.workers)",
        "[np.arange(len(batches))[n :: self._crew.workers] for n in range(self._crew.workers)]",
        (f"{CORNERS}::test_each_test_sets_scores_are_its_own_in_any_number_of_workers",),
    ),
    Fault(
        "auto takes batched for every model",
        CHOICE,
        "    if lack is None:\n        return",
        "    if asked == AUTO:\n        return",
        (WHICH,),
    ),
    Fault(
        "a checkpoint is written while a sum is half done",
        FORCING,
        " and not folding.half_done:",
        ":",
        (TEST_FORCING,),
    ),
    Fault(
        "what has begun is not dropped when a run is interrupted",
        FORCING,
        "            self._executor.forget()\n",
        "",
        (f"{CORNERS}::test_what_began_is_forgotten_when_a_run_ends_in_the_middle",),
    ),
    Fault(
        "more chunks than the executor wants begin at once",
        FORCING,
        "                if ahead > self._executor.lookahead:\n                    return\n",
        "",
        (f"{CORNERS}::test_as_many_waves_begin_ahead_of_their_turn_as_the_executor_has_use_for",),
    ),
    Fault(
        "a plan does not depend on those of its inputs",
        FORCING,
        "digest_of([[node.key for node in nodes], sorted(inputs)])",
        "digest_of([[node.key for node in nodes]])",
        (TEST_FORCING, TEST_WAVES),
    ),
    Fault(
        "a chunk begins before the values that it needs are there",
        GRAPH,
        "return not self.folds and all(",
        "return not self.folds or all(",
        (TEST_FORCING, TEST_WAVES),
    ),
    Fault(
        "precision is not in the numeric family",
        TORCH,
        "{cls.arithmetic}/{precision}/torch",
        "{cls.arithmetic}/torch",
        (WHICH,),
    ),
    Fault(
        "the number of workers is in the numeric family",
        HOST,
        "return numeric_family(self.executor, self.torch_device, self.precision)",
        'return numeric_family(self.executor, self.torch_device, self.precision) + f"/{self.workers}"',
        (WHICH, "tests/laws/test_any_number_of_workers.py"),
    ),
    Fault(
        "a recording begins with the model that it was recorded with",
        RECORDINGS,
        "                tensor.copy_(base[part][name])\n",
        "                pass\n",
        (f"{RECORDED}::test_what_is_played_has_the_bits_of_what_is_done_operation_by_operation",),
    ),
    Fault(
        "a recording trains on the samples that it was recorded with",
        RECORDINGS,
        "        self._ids.copy_(torch.from_numpy(ids))\n",
        "",
        (f"{RECORDED}::test_what_is_played_has_the_bits_of_what_is_done_operation_by_operation",),
    ),
    Fault(
        "a recording gives its own memory away as a training's outputs",
        RECORDINGS,
        "finished(number, _copied(outputs))",
        "finished(number, outputs)",
        (f"{RECORDED}::test_what_was_made_before_is_not_written_over",),
    ),
    Fault(
        "a recording gives its own memory away as the sum's share",
        RECORDINGS,
        "Change(_copied(self._change.parts), self._change.weight)",
        "self._change",
        (f"{RECORDED}::test_what_was_made_before_is_not_written_over",),
    ),
    Fault(
        "an objective with code of its own is recorded",
        RECORDINGS,
        " or not Recipe.of(group.parameters).linear",
        "",
        (f"{RECORDED}::test_what_is_played_has_the_bits_of_what_is_done_operation_by_operation",),
    ),
    Fault(
        "a device is asked how far weights have grown",
        LOW_RANK,
        "        if change.is_cpu:\n",
        "        if True:\n",
        (f"{RECORDED}::test_a_graph_can_record_every_wave_of_a_linear_objective",),
    ),
    Fault(
        "on a device weights do not grow",
        LOW_RANK,
        "return change.addcmul_(self._shared.weight, scale.to(change.dtype))",
        "return change",
        (f"{RECORDED}::test_weights_grow_the_same_where_a_device_is_not_asked_by_how_much",),
    ),
    Fault(
        "a pull to the start rescales nothing",
        RECIPE,
        "bool(self.weight_decay or self.pull)",
        "bool(self.weight_decay)",
        (AGREE,),
    ),
    Fault(
        "groups of other weights are of one kind",
        RECORDINGS,
        "chains, group.summed, weights\n",
        "chains, group.summed\n",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups of other sums are of one kind",
        RECORDINGS,
        "chains, group.summed, weights\n",
        "chains, weights\n",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups of other options are of one kind",
        RECORDINGS,
        "return recipe_text(group.parameters), chains",
        "return chains",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups of other sizes are of one kind",
        RECORDINGS,
        "(stage.number, sizes[stage.number], stage.restarts",
        "(stage.number, stage.restarts",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups of other trainings of a wave are of one kind",
        RECORDINGS,
        "(stage.number, sizes[stage.number], stage.restarts",
        "(sizes[stage.number], stage.restarts",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups with other restarts are of one kind",
        RECORDINGS,
        "stage.restarts, stage.needed)",
        "stage.needed)",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "groups of which other outputs are wanted are of one kind",
        RECORDINGS,
        "stage.restarts, stage.needed)",
        "stage.restarts)",
        (f"{RECORDED}::test_whatever_operations_depend_on_makes_another_kind",),
    ),
    Fault(
        "a kind is remembered for ever",
        RECORDINGS,
        "            self._seen.popitem(last=False)\n",
        "            pass\n",
        (f"{RECORDED}::test_a_kind_that_came_long_ago_comes_for_the_first_time",),
    ),
    Fault(
        "recordings make room before they are stale",
        RECORDINGS,
        ".played_at <= STALE",
        ".played_at < STALE",
        (f"{RECORDED}::test_a_recording_that_is_played_no_more_makes_room",),
    ),
    Fault(
        "a recording that is played counts as stale",
        RECORDINGS,
        "            self._recordings.move_to_end(kind)\n",
        "",
        (f"{RECORDED}::test_a_recording_that_is_played_no_more_makes_room",),
    ),
    Fault(
        "a training of any length is recorded",
        RECORDINGS,
        " > MOST_STEPS:",
        " > MOST_STEPS + 1:",
        (f"{RECORDED}::test_a_long_training_is_not_recorded",),
    ),
    Fault(
        "what cannot be recorded is tried again each time",
        RECORDINGS,
        "            self._recorder = None\n",
        "",
        (f"{RECORDED}::test_what_cannot_be_recorded_is_said_and_done_operation_by_operation",),
    ),
    Fault(
        "a warning says only that a recording has failed",
        RECORDINGS,
        "error.__context__ or error",
        "error",
        (f"{RECORDED}::test_what_cannot_be_recorded_is_said_and_done_operation_by_operation",),
    ),
    Fault(
        "a trainer holds itself by its recordings",
        TRAINER,
        "recorder(), self._lockstep)",
        "recorder(), lambda *given: self._lockstep(*given))",
        (f"{RECORDED}::test_a_trainer_that_nobody_holds_is_gone",),
    ),
    Fault(
        "nothing is recorded on cuda",
        TRAINER,
        '(CudaRecorder if torch_device == "cuda" else None)',
        "None",
        (f"{RECORDED}::test_on_cuda_graphs_record",),
    ),
    Fault(
        "a graph is recorded without having been run",
        CUDA_GRAPHS,
        "            with torch.cuda.stream(stream):\n                work()\n",
        "            with torch.cuda.stream(stream):\n",
        (TEST_CUDA_GRAPHS,),
    ),
    Fault(
        "what a graph needs may still be on its way when it is recorded",
        CUDA_GRAPHS,
        "        stream.wait_stream(outside)\n        try",
        "        try",
        (TEST_CUDA_GRAPHS,),
    ),
    Fault(
        "after a failed recording nobody waits for what was begun",
        CUDA_GRAPHS,
        "        finally:\n            outside.wait_stream(stream)\n",
        "        finally:\n            pass\n        outside.wait_stream(stream)\n",
        (TEST_CUDA_GRAPHS,),
    ),
)
