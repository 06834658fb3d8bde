"""Faults in sites, in codecs, in operations of one's own and in keys: what code from outside of fedsim relies on."""

from __future__ import annotations

from mutants.fault import EXECUTORS, Fault

SITE = "fedsim/protocols/site.py"
TASK = "fedsim/protocols/task.py"
KEYED = "fedsim/learning/keyed.py"
TEST_SITE = "tests/protocols/test_site.py"
TEST_STEPS = "tests/outside/test_compound_steps.py"
TEST_SEAMS = "tests/outside/test_seams.py"
TEST_CODECS = "tests/learning/test_codecs.py"
TEST_KEYED = "tests/learning/test_keyed.py"
TEST_OPEN = "tests/learning/test_open_operations.py"
TEST_ASYNCHRONOUS = "tests/outside/test_asynchronous.py"

FAULTS = (
    Fault(
        "a report counts the clients of earlier rounds too",
        SITE,
        "        self._begin(version)\n",
        "        self._base, self._base_version = model, version\n",
        (TEST_STEPS, TEST_SITE),
    ),
    Fault(
        "a report says that the site's own last model was its base",
        SITE,
        "self._steps, self._base_version, transfer.size_bytes)",
        "self._steps, self.version, transfer.size_bytes)",
        (TEST_STEPS,),
    ),
    Fault(
        "a site's model comes up for nothing",
        SITE,
        "        yield transfer\n",
        "        yield self.world.env.timeout(0)\n",
        (TEST_STEPS,),
    ),
    Fault(
        "a site goes on from its own model, not from the one that it has received",
        SITE,
        '        self.state = {**self.state, "model": model}\n',
        "",
        (TEST_STEPS, TEST_SITE),
    ),
    Fault(
        "an update says that it was made of the first model",
        SITE,
        "return kind(number, self.version, down",
        "return kind(number, 0, down",
        (TEST_ASYNCHRONOUS,),
    ),
    Fault(
        "a client forgets what its codec has left out",
        TASK,
        "for keeper in KEEPERS for name",
        'for keeper in ("objective",) for name',
        (TEST_SEAMS,),
    ),
    Fault(
        "what waits of a part that is not sent now is forgotten",
        "fedsim/learning/codecs/codec.py",
        "{**stays.get(name, {}), **made.state.get(name, {})}",
        "made.state.get(name, {})",
        (TEST_CODECS,),
    ),
    Fault(
        "a device asks its codec alone",
        EXECUTORS + "coded.py",
        "codec.coded(",
        "codec.code(",
        (TEST_CODECS,),
    ),
    Fault(
        "a base station asks its codec alone",
        "fedsim/learning/operations/code.py",
        "self.codec.coded(",
        "self.codec.code(",
        (TEST_CODECS,),
    ),
    Fault(
        "a measured size is not sent",
        "fedsim/protocols/world.py",
        "            size += self.learner.value(message.measured)\n",
        "            self.learner.value(message.measured)\n",
        (TEST_SEAMS,),
    ),
    Fault(
        "the sizes of one round are asked for one by one",
        "fedsim/learning/graph_learner.py",
        "        self._forcer.force(handle, *pending)\n",
        "        self._forcer.force(handle)\n",
        (TEST_CODECS, TEST_OPEN),
    ),
    Fault(
        "a codec draws what the batches have drawn",
        EXECUTORS + "coded.py",
        'replace(stream, purpose=f"{stream.purpose}/codec")',
        "replace(stream)",
        (TEST_CODECS,),
    ),
    Fault(
        "batched training leaves codecs out",
        EXECUTORS + "batched/trainer.py",
        "one.objective.trains_alone or not one.codec.exact",
        "one.objective.trains_alone",
        (TEST_CODECS,),
    ),
    Fault(
        "an operation hands out the memory of its input",
        EXECUTORS + "applied.py",
        "tensor.clone() if place in taken else tensor",
        "tensor",
        (TEST_OPEN,),
    ),
    Fault(
        "an operation may make half a model",
        EXECUTORS + "torch_executor.py",
        "if any(handle.output in table.parts for table in self._tables.values()):",
        "if handle.output not in made:",
        (TEST_OPEN,),
    ),
    Fault(
        "a number may be no number",
        EXECUTORS + "applied.py",
        "type(number) in (int, float) and math.isfinite(number)",
        "type(number) in (int, float)",
        (TEST_OPEN,),
    ),
    Fault(
        "a key leaves out the version of an objective's part",
        KEYED,
        " | parts\n",
        "\n",
        (TEST_KEYED,),
    ),
    Fault(
        "a key leaves out versions",
        KEYED,
        'for name in ("name", "version")}',
        'for name in ("name",)}',
        (TEST_KEYED,),
    ),
)
