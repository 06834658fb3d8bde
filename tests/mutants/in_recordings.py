"""Faults in what is recorded once and played again, and in CUDA graphs."""

from __future__ import annotations

from mutants.fault import BATCHED, EXECUTORS, LOW_RANK, TRAINER, Fault

RECORDINGS = BATCHED + "recordings.py"
CUDA_GRAPHS = BATCHED + "cuda_graphs.py"
CUDA_ARITHMETIC = EXECUTORS + "cuda_arithmetic.py"
PLAIN = EXECUTORS + "plain.py"
RECORDED = "tests/laws/test_recorded_training.py"
TEST_CUDA_GRAPHS = "tests/learning/test_cuda_graphs.py"
TEST_CUDA_ARITHMETIC = "tests/learning/test_cuda_arithmetic.py"
STEPS = "tests/learning/test_steps_of_the_plain_loop.py"

FAULTS = (
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
        "recorded = recipe.linear and not (recipe.pushes or group.about.objective.makes)",
        "recorded = True",
        (f"{RECORDED}::test_what_is_played_has_the_bits_of_what_is_done_operation_by_operation",),
    ),
    Fault(
        "a device is asked how far weights have grown",
        LOW_RANK,
        "    if change.is_cpu:\n",
        "    if True:\n",
        (f"{RECORDED}::test_a_graph_can_record_every_wave_of_a_linear_objective",),
    ),
    Fault(
        "on a device weights do not grow",
        LOW_RANK,
        "return change.addcmul_(matrix, number.to(change.dtype))",
        "return change",
        (f"{RECORDED}::test_weights_grow_the_same_where_a_device_is_not_asked_by_how_much",),
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
        "return recipe_of(group.about), chains",
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
    Fault(
        "on cuda all new memory is filled",
        CUDA_ARITHMETIC,
        "    memory.fill_uninitialized_memory = False\n",
        "",
        (f"{TEST_CUDA_ARITHMETIC}::test_memory_is_not_filled_where_algorithms_are_deterministic",),
    ),
    Fault(
        "after the plain loop new memory is filled no more",
        CUDA_ARITHMETIC,
        "        memory.fill_uninitialized_memory = filled\n",
        "",
        (f"{TEST_CUDA_ARITHMETIC}::test_memory_is_not_filled_where_algorithms_are_deterministic",),
    ),
    Fault(
        "the first product decides how much memory cuBLAS has before it is said",
        CUDA_ARITHMETIC,
        "    _fix_workspace()\n    matmul",
        "    matmul",
        (f"{TEST_CUDA_ARITHMETIC}::test_the_workspace_of_products_is_said_before_the_first_one",),
    ),
    Fault(
        "on a device the plain loop steps weight by weight",
        PLAIN,
        "foreach=not all(weight.is_cpu for weight in weights.values())",
        "foreach=False",
        (f"{STEPS}::test_on_a_device_a_step_is_one_operation_for_all_weights",),
    ),
)
