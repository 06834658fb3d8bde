"""Faults in classifiers that stay on the clients, and in fine-tuning before an evaluation."""

from __future__ import annotations

from mutants.fault import Fault

EXTRACTOR = "fedsim/protocols/exchanges/extractor.py"
FINETUNING = "fedsim/protocols/finetuning.py"
RUN_LOOP = "fedsim/protocols/run_loop.py"
WORLD = "fedsim/protocols/world.py"
ON_THE_CLOCK = ("tests/protocols/test_own_classifiers_on_the_clock.py",)
LEARNED = ("tests/laws/test_own_models_learn_like_plain_loops.py",)
TIMED = ("tests/protocols/test_timed_finetuning.py",)

ALWAYS_LATE = (
    "tests/experiment/test_memory_over_rounds.py"
    "::test_what_a_client_keeps_that_is_always_late_does_not_hold_the_models_of_all_rounds",
)
CHANGED = ("tests/experiment/test_changing_models.py",)

FAULTS = (
    Fault(
        "what a late client remembers waits for its next arrival",
        "fedsim/learning/graph_learner.py",
        "        self.compute_soon(remembered)",
        "        pass",
        ALWAYS_LATE,
    ),
    Fault(
        "a late client's own classifier waits for its next arrival",
        EXTRACTOR,
        "        world.learner.compute_soon(own)\n",
        "",
        ALWAYS_LATE,
    ),
    Fault(
        "who is on the way when the model changes goes on",
        WORLD,
        '        give_up([client.journey for client in self.clients], "the model has changed")\n',
        "",
        CHANGED,
    ),
    Fault(
        "the last model before a change is not evaluated",
        WORLD,
        "        self.loop.conclude()  # while the learner still knows that model\n",
        "",
        CHANGED,
    ),
    Fault(
        "a run has the model of the round that it does not finish",
        WORLD,
        "return self.model if len(self.loop.rounds_done) > rounds else before",
        "return self.model",
        CHANGED,
    ),
    Fault(
        "a client that trains again begins with the initial classifier",
        EXTRACTOR,
        '**client.kept.get("private", {}), **self.model}',
        "**self.model}",
        ON_THE_CLOCK,
    ),
    Fault(
        "an own classifier is sent with the extractor",
        EXTRACTOR,
        "trained.items() if part == EXTRACTOR}",
        "trained.items()}",
        ON_THE_CLOCK,
    ),
    Fault(
        "an extractor takes as many bytes as the whole model",
        EXTRACTOR,
        "codec, part=EXTRACTOR, kind=",
        "codec, kind=",
        ON_THE_CLOCK,
    ),
    Fault(
        "fine-tuning has the batches of the first training",
        RUN_LOOP,
        'epochs=epochs, stream="finetune"',
        "epochs=epochs",
        LEARNED,
    ),
    Fault(
        "models are tuned anew in each round",
        RUN_LOOP,
        "LocalTraining(number, one.client, 0, Plain(), table",
        "LocalTraining(number, one.client, number, Plain(), table",
        LEARNED,
    ),
    Fault(
        "fine-tuning sends the whole model",
        "fedsim/protocols/exchanges/exchange.py",
        "site.table.bytes(self.shared)",
        "site.table.bytes()",
        TIMED,
    ),
    Fault(
        "who is busy fine-tunes beside",
        FINETUNING,
        "if client.attachment.reachable and not client.busy",
        "if client.attachment.reachable",
        TIMED,
    ),
    Fault(
        "fine-tuning takes the time that the next training draws",
        FINETUNING,
        'stream = world.streams("finetune/compute", client.index, round_number)',
        "stream = world.streams('training/compute', client.index, client.attempts)",
        TIMED,
    ),
    Fault(
        "the last evaluation is not fine-tuned for on the clock",
        RUN_LOOP,
        "number % self._evaluate.every == 0 or number == self.stop.rounds\n        return",
        "number % self._evaluate.every == 0\n        return",
        TIMED,
    ),
    Fault(
        "who fails while it fine-tunes goes on",
        "fedsim/protocols/outside_rounds.py",
        "    client.work = passes  # so that a device that fails meanwhile gives it up\n",
        "",
        TIMED,
    ),
)
