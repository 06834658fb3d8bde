"""Faults in what objectives see of a mini-batch, in fusion layers, and in models that protocols adapt."""

from __future__ import annotations

from mutants.fault import EXECUTORS, Fault

PLAIN = EXECUTORS + "plain.py"
MMD = "fedsim/learning/objectives/mmd.py"
FUSION = "fedsim/models/fusion.py"
FUSION_LAYER = "fedsim/models/layers/fusion.py"
TORCH_LAYERS = "fedsim/models/torch_layers.py"
TORCH_MODULE = "fedsim/models/torch_module.py"
PARTED = "fedsim/models/parted.py"
MOVE_GATES = "fedsim/learning/operations/move_gates.py"
BUILD = "fedsim/scenario/build.py"
HOST = "fedsim/experiment/host.py"
SIMULATIONS = "fedsim/experiment/description/simulations.py"
VALIDATE = "fedsim/experiment/validate.py"
TEST_FEATURES = "tests/learning/test_features.py"
TEST_FUSION = "tests/models/test_fusion.py"
TEST_LOOPS = "tests/laws/test_two_stream_loops.py"
TEST_RULES = "tests/learning/test_server_rules.py"
TEST_CGAU = "tests/laws/test_cgau_learns_like_a_plain_loop.py"
TEST_ADAPTED = "tests/scenario/test_adapted_models.py"

FAULTS = (
    Fault(
        "a further model is in training mode",
        PLAIN,
        "self._others[role] = self._built().eval()",
        "self._others[role] = self._built()",
        (f"{TEST_FEATURES}::test_the_other_model_is_as_in_tests_while_its_own_is_trained",),
    ),
    Fault(
        "features are compared once, not twice, with each other",
        MMD,
        "_mean_kernel(other, other) - 2 * _mean_kernel(one, other)",
        "_mean_kernel(other, other) - _mean_kernel(one, other)",
        (TEST_FEATURES,),
    ),
    Fault(
        "a Gaussian is of a distance, not of its square",
        MMD,
        ".square().sum(2)",
        ".square().sum(2).sqrt()",
        (TEST_FEATURES,),
    ),
    Fault(
        "features are what the last layer makes",
        PARTED,
        "self.last.register_forward_pre_hook(lambda _, given: taken.append(given[0].clone()))",
        "self.last.register_forward_hook(lambda _, given, made: taken.append(made.clone()))",
        (TEST_FEATURES,),
    ),
    Fault(
        "a gate of 1 is the local stream",
        TORCH_LAYERS,
        "return gate * other + (1 - gate) * x",
        "return gate * x + (1 - gate) * other",
        (TEST_FUSION,),
    ),
    Fault(
        "the local channels come first",
        TORCH_LAYERS,
        "[x if other is None else other, x]",
        "[x, x if other is None else other]",
        (TEST_FUSION,),
    ),
    Fault(
        "the other stream stays for the next batches",
        TORCH_LAYERS,
        "other, self.other = self.other, None",
        "other = self.other",
        (TEST_FUSION,),
    ),
    Fault(
        "the local extractor makes both streams",
        TORCH_MODULE,
        "                x = same(x)\n",
        "                x = layer(x)\n",
        (TEST_FUSION, TEST_LOOPS),
    ),
    Fault(
        "the fusion stands behind the first layer with channels and a space",
        FUSION,
        "extractor[: places[-1] + 1], table.extractor[places[-1] + 1 :]",
        "extractor[: places[0] + 1], table.extractor[places[0] + 1 :]",
        (TEST_FUSION,),
    ),
    Fault(
        "a convolution of two streams works on one",
        FUSION_LAYER,
        "return 2 * self.channels**2 * positions",
        "return self.channels**2 * positions",
        (TEST_FUSION,),
    ),
    Fault(
        "gates keep the share, and do not move by it",
        MOVE_GATES,
        "self.share * moved",
        "(1 - self.share) * moved",
        (TEST_RULES, TEST_LOOPS),
    ),
    Fault(
        "a world is of the scenario's model, whatever its protocol trains",
        BUILD,
        "        models=materials.models_for(protocol, materials.table),\n",
        "        model=materials.table,\n",
        (TEST_ADAPTED,),
    ),
    Fault(
        "a learner starts from the scenario's model",
        HOST,
        "            table=materials.table_for(protocol, materials.table),\n",
        "            table=materials.table,\n",
        (TEST_LOOPS,),
    ),
    Fault(
        "a protocol is described in the world of another model",
        SIMULATIONS,
        "return world.model is table and ",
        "return ",
        (TEST_ADAPTED,),
    ),
    Fault(
        "a protocol is checked in the world of another model",
        VALIDATE,
        "if materials.table_for(protocol, materials.table) is world.model and ",
        "if ",
        (TEST_ADAPTED,),
    ),
    Fault(
        "gated units are told of nobody in training",
        "fedsim/learning/executors/plain.py",
        "self._module.tell_client(None if about.seen.client == POOL else about.seen.client)",
        "self._module.tell_client(None)",
        (TEST_CGAU,),
    ),
    Fault(
        "gated units are told of nobody when clients' own samples are scored",
        "fedsim/learning/executors/torch_executor.py",
        "return [(client, ids) for client, ids in enumerate(self._dataset.client_test_ids) if len(ids)]",
        "return [(None, ids) for client, ids in enumerate(self._dataset.client_test_ids) if len(ids)]",
        (TEST_CGAU,),
    ),
    Fault(
        "pre-training goes on for a round",
        "fedsim/protocols/cgau.py",
        "return self.pretraining_rounds + 1",
        "return self.pretraining_rounds + 2",
        (TEST_CGAU,),
    ),
    Fault(
        "clients remember how long the old model took them",
        "fedsim/protocols/world.py",
        "client.model, client.known_work = table, None",
        "client.model = table",
        (TEST_CGAU,),
    ),
    Fault(
        "the global stream takes no time",
        "fedsim/protocols/task.py",
        "samples * (1 + passes / FORWARDS_PER_TRAINING_STEP) if passes else samples",
        "samples",
        ("tests/laws/test_two_stream_loops.py::test_the_global_streams_forward_pass_takes_time",),
    ),
)
