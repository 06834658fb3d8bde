"""Faults in waves, workers and their memory, and in what is computed when."""

from __future__ import annotations

from mutants.fault import CORNERS, EXECUTORS, Fault

WAVE = EXECUTORS + "wave.py"
WAVES = EXECUTORS + "waves.py"
WORKERS = EXECUTORS + "workers.py"
WORKER = EXECUTORS + "worker.py"
SHARED_TENSORS = EXECUTORS + "shared_tensors.py"
CHAINS = EXECUTORS + "chains.py"
SCHEDULE = EXECUTORS + "schedule.py"
CHANGES = "fedsim/learning/rules/changes.py"
TORCH = EXECUTORS + "torch_executor.py"
CHOICE = EXECUTORS + "choice.py"
FORCING = "fedsim/learning/forcing.py"
GRAPH = "fedsim/learning/graph.py"
HOST = "fedsim/experiment/host.py"
TEST_WAVES = "tests/learning/test_waves.py"
TEST_WAVES_AHEAD = "tests/learning/test_waves_ahead.py"
TEST_MEMORY = "tests/learning/test_memory_of_workers.py"
TEST_APART = "tests/learning/test_waves_apart.py"
TEST_SCHEDULE = "tests/learning/test_schedule.py"
TEST_LEARNER = "tests/learning/test_learner.py"
TEST_PROCESSES = "tests/learning/test_processes_executor.py"
TEST_SHARED_TENSORS = "tests/learning/test_shared_tensors.py"
TEST_FORCING = "tests/learning/test_forcing.py"
WHICH = "tests/experiment/test_which_executor_trains.py"

FAULTS = (
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
        "if node not in wave_of or node in first_sums]",
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
        "return maker if same and _recipe(maker)",
        "return maker if _recipe(maker)",
        (TEST_WAVES,),
    ),
    Fault(
        "what a worker was given may be written over before it is done",
        WORKERS,
        "        task.copies.append(block)\n",
        "",
        (f"{TEST_MEMORY}::test_what_several_jobs_take_is_copied_once_and_what_workers_made_never",),
    ),
    Fault(
        "models that are held take the blocks that jobs need",
        WORKERS,
        "        if self._shared.free(made.part) >= _RESERVE:\n",
        "        if True:\n",
        (f"{TEST_MEMORY}::test_any_number_of_models_can_be_held_and_trained_on",),
    ),
    Fault(
        "the newest job of a worker gets the oldest one's answer",
        WORKERS,
        "        task = tasks[0]\n",
        "        task = tasks[-1]\n",
        (f"{TEST_PROCESSES}::test_any_number_of_workers_gives_the_bytes_of_the_serial_executor",),
    ),
    Fault(
        "partial sums are cut by count, though clients differ",
        CHANGES,
        "    if len(set(work)) == 1:\n",
        "    if True:\n",
        (TEST_LEARNER,),
    ),
    Fault(
        "a model that somebody wants is handed over as a change",
        CHAINS,
        "if takers[part] == 1 and part not in wave.trainings[number].wanted",
        "if takers[part] == 1",
        (TEST_APART,),
    ),
    Fault(
        "a model that two sums take is handed over as the change of the last",
        CHAINS,
        "if takers[part] == 1 and part not in wave.trainings[number].wanted",
        "if part not in wave.trainings[number].wanted",
        (TEST_APART,),
    ),
    Fault(
        "any number of models may wait for their turn",
        SCHEDULE,
        "waiting + task.results <= WAITING * self.workers",
        "waiting + task.results <= 99 * self.workers",
        (TEST_SCHEDULE, TEST_APART),
    ),
    Fault(
        "a model whose turn it is may not be made while others wait",
        SCHEDULE,
        "return task.is_next or waiting",
        "return waiting",
        (TEST_SCHEDULE,),
    ),
    Fault(
        "clients of a wave begin in the order of the sum, and waves one after the other",
        SCHEDULE,
        "planned_starts([task.work for task in tasks], self.workers)",
        "range(len(tasks))",
        (TEST_SCHEDULE,),
    ),
    Fault(
        "what is free keeps its memory for ever",
        SHARED_TENSORS,
        "            self._make_room(layout.block)\n",
        "            pass\n",
        (TEST_SHARED_TENSORS,),
    ),
    Fault(
        "all that is free gives its memory back at once",
        SHARED_TENSORS,
        "            needed -= layout.block\n",
        "",
        (f"{TEST_SHARED_TENSORS}::test_as_much_memory_goes_back_as_is_needed_of_what_is_free_for_longest",),
    ),
    Fault(
        "what was used last gives its memory back first",
        SHARED_TENSORS,
        "for address in tuple(self._used):",
        "for address in reversed(tuple(self._used)):",
        (f"{TEST_SHARED_TENSORS}::test_as_much_memory_goes_back_as_is_needed_of_what_is_free_for_longest",),
    ),
    Fault(
        "a block that is taken again gives its memory back",
        SHARED_TENSORS,
        "            del self._used[address]\n        elif",
        "            pass\n        elif",
        (f"{TEST_SHARED_TENSORS}::test_large_free_blocks_keep_their_memory_until_another_part_needs_some",),
    ),
    Fault(
        "a worker uses as many threads as there are cores",
        WORKER,
        "        torch.set_num_threads(1)\n",
        "        torch.set_num_threads(3)\n",
        (f"{TEST_PROCESSES}::test_any_number_of_workers_gives_the_bytes_of_the_serial_executor",),
    ),
    Fault(
        "a block is free while somebody holds one of its tensors",
        SHARED_TENSORS,
        "weakref.finalize(memory, _give_back,",
        "weakref.finalize(self._tensors, _give_back,",
        (TEST_SHARED_TENSORS,),
    ),
    Fault(
        "a view of a block is taken for all of it",
        SHARED_TENSORS,
        "            tensor.is_contiguous() and (tensor.data_ptr()",
        "            (tensor.data_ptr()",
        (TEST_SHARED_TENSORS,),
    ),
    Fault(
        "tensors of a block are not aligned",
        SHARED_TENSORS,
        "end = _rounded_up(end + prod(shape) * dtype.itemsize, _ALIGNMENT)",
        "end = end + prod(shape) * dtype.itemsize",
        (TEST_SHARED_TENSORS,),
    ),
    Fault(
        "scores of test sets are dealt out among workers by turns",
        TORCH,
        "np.array_split(np.arange(len(batches)), self._pool.workers)",
        "[np.arange(len(batches))[n :: self._pool.workers] for n in range(self._pool.workers)]",
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
        (f"{TEST_WAVES_AHEAD}::test_what_began_is_forgotten_when_a_run_ends_in_the_middle",),
    ),
    Fault(
        "more chunks than the executor wants begin at once",
        FORCING,
        "                if ahead > self._executor.lookahead:\n                    return\n",
        "",
        (f"{TEST_WAVES_AHEAD}::test_as_many_waves_begin_ahead_of_their_turn_as_the_executor_has_use_for",),
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
)
