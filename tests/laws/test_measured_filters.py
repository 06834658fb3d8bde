"""A measured update of chosen filters is as large as what is kept, on every hop, and the summary says what that was."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from asked import with_worlds

from fedsim.learning.executors.plain import PlainTrainer
from fedsim.models.convolutions import skeleton_of
from fedsim.models.table import EXTRACTOR, LayerTable

AGENT: dict[str, Any] = {"name": "gnn_ppo", "episodes": 4, "update_steps": 4, "finetune_rounds": 1, "pretrained": False}
LEARNS: dict[str, Any] = {
    "topology.devices": 3,
    "network.link.rate_bps": 8e6,
    "network.cell.radio": {"name": "fixed", "uplink_bps": 1e6, "downlink_bps": 1e6},
    "data": {"name": "digits", "partition": {"name": "iid"}, "client_test_fraction": 0.2},
    "model": {"name": "small_cnn"},
    "evaluate": {"on": ["own"]},
    "stop.rounds": 2,
    "devices.classes.sensor": {"compute": {"name": "flops", "flops_per_s": 1e9}},
}


@pytest.mark.parametrize("selection", [AGENT, {"name": "l2_global", "keep": 0.4}], ids=["gnn_ppo", "l2_global"])
def test_a_measured_update_has_the_bytes_of_what_is_kept_on_every_hop(
    tmp_path: Path, selection: dict[str, Any]
) -> None:
    protocols = [{"name": "spatl", "fraction": 1.0, "selection": selection}]
    results, worlds = with_worlds(digit_runs.scenario(LEARNS | {"protocols": protocols}), tmp_path)
    world = worlds["spatl"]
    skeleton = skeleton_of(world.model)
    hops = world.trace.hops.array()
    last = hops[hops["start_s"] >= world.trace.rounds.array()["start_s"][-1]]
    for client in world.clients:
        facts = world.learner.facts(client.kept["selected"])
        kept = [int(facts[f"filters.{one.name}"]) for one in skeleton.convolutions]
        rest = world.model.bytes(EXTRACTOR) - 4 * sum(one.filters * one.filter_numbers for one in skeleton.convolutions)
        numbers = sum(number * one.filter_numbers for number, one in zip(kept, skeleton.convolutions, strict=True))
        size = rest + 4 * numbers + 4 * sum(kept)
        assert facts["bytes"] == size and facts["filters_share"] == sum(kept) / skeleton.filters
        own = last[(last["client"] == client.index) & last["uplink"]]
        assert own["bytes"].tolist() == [size, size]
    (row,) = results.summary.to_dict("records")
    facts = [world.learner.facts(client.kept["selected"]) for client in world.clients]
    for name in ("filters_share", "flops_share", "present_share", "kept_accuracy"):
        assert row[name] == pytest.approx(sum(one[name] for one in facts) / 3) and 0 < row[name] < 1
    macs = sum(one.macs for one in skeleton.convolutions)
    table, share = world.model, row["present_share"]
    assert isinstance(table, LayerTable) and row["inference_s"] == pytest.approx(table.forward_flops_per_sample / 1e9)
    rest = table.forward_macs() - macs
    assert row["kept_inference_s"] == pytest.approx(2 * (rest + share * macs) / 1e9)


def test_an_agent_is_rated_on_what_is_held_back_and_its_choice_told_of_tests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scored: Counter[int] = Counter()
    own = PlainTrainer.score

    def noted(trainer: PlainTrainer, model: Any, batches: Any, *clients: Any) -> Any:
        scored.update(int(sample) for batch in batches for sample in batch)
        return own(trainer, model, batches, *clients)

    monkeypatch.setattr(PlainTrainer, "score", noted)
    protocols = [{"name": "spatl", "fraction": 1.0, "selection": AGENT}]
    _, worlds = with_worlds(digit_runs.scenario(LEARNS | {"protocols": protocols}), tmp_path)
    data = worlds["spatl"].dataset
    rated = [scored[sample] for ids in data.held_back_ids for sample in ids.tolist()]
    tested = [scored[sample] for ids in data.client_test_ids for sample in ids.tolist()]
    assert rated and min(rated) >= 1 and max(rated) <= AGENT["episodes"] * AGENT["finetune_rounds"]
    evaluations = 2
    assert set(tested) == {evaluations + 2}, "once more for each choice"
    assert not any(scored[sample] for ids in data.train_ids for sample in ids.tolist())
