"""Faults in what device classes have of their own: models, their bytes and times, and their tests."""

from __future__ import annotations

from mutants.fault import Fault

WORLD = "fedsim/protocols/world.py"
BUILD = "fedsim/scenario/build.py"
TEST = ("tests/outside/test_two_models.py",)

FAULTS = (
    Fault(
        "a device computes as if it had the scenario's model",
        WORLD,
        "            lambda: client.model.training_flops_per_sample,\n",
        "            lambda: self.model.training_flops_per_sample,\n",
        TEST,
    ),
    Fault(
        "a client is scored without what it keeps to itself",
        WORLD,
        '{**begun[name], **client.kept.get("private", {})}',
        "{**begun[name]}",
        TEST,
    ),
    Fault(
        "a class that has learned together is scored as it began",
        WORLD,
        "together = {self.model.digest: self.loop.model, **self.loop.further}",
        "together = {self.model.digest: self.loop.model}",
        TEST,
    ),
    Fault(
        "a site of another model sends as many bytes as the scenario's has",
        "fedsim/protocols/site.py",
        "        self.table = table or world.model\n",
        "        self.table = world.model\n",
        TEST,
    ),
    Fault(
        "a class with a model that is there already has one of its own",
        BUILD,
        "class_tables[name] = by_digest.setdefault(own.digest, own)",
        "class_tables[name] = by_digest[own.digest] = own",
        TEST,
    ),
    Fault(
        "the mean over clients weighs them by their samples",
        "fedsim/learning/spread.py",
        "math.fsum(score[name] for score in scores) / len(scores)",
        "whole[name]",
        TEST,
    ),
)
