"""A run goes on with the store that it has begun with, and measures the scenario's target for every protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_worlds import scenario

from fedsim.errors import UserError
from fedsim.experiment.observer import Observer
from fedsim.experiment.results import Results
from fedsim.experiment.run import run
from fedsim.learning.executors import torch_executor
from fedsim.learning.kernels import processor
from fedsim.protocols.protocol import Protocol
from fedsim.protocols.run_loop import Round

LEARNING: dict[str, Any] = {
    "learn": True,
    "data": {"name": "digits"},
    "model": {"name": "softmax"},
    "topology.devices": 4,
    "stop": {"rounds": 6},
}


class Interrupts(Observer):
    """Ends a run after its third round."""

    def round_done(self, protocol: Protocol, seed: int, done: Round) -> None:
        if done.number == 3:
            raise KeyboardInterrupt


def trained(changes: dict[str, Any], **options: Any) -> Results:
    """In this process alone, for other ones take longer to start than all that is trained here."""
    return run(scenario(changes), executor="batched", workers=1, **options)


def interrupted(folder: Path, **places: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        trained(LEARNING, out=folder, checkpoint_interval_s=1e-9, observer=Interrupts(), **places)


def computed(store: Path) -> int:
    (ledger,) = (store / "ledger").glob("*.jsonl")
    return ledger.read_text().count('"event":"computed"')


def test_a_store_inside_the_folder_need_not_be_named_again(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    interrupted(folder, store=folder / "values")
    trained(LEARNING, out=folder, resume=True)
    assert not (folder / "store").exists()


def test_a_store_elsewhere_is_named_again(tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "run"
    interrupted(folder, store=elsewhere)
    before = computed(elsewhere)
    with pytest.raises(
        UserError, match=r"has its store outside of its folder; .* add --store .*/run/\.\./elsewhere, or"
    ):
        trained(LEARNING, out=folder, resume=True)
    results = trained(LEARNING, out=folder, resume=True, store=elsewhere)
    assert trained(LEARNING, out=folder).folder == folder, "a finished one needs no store"
    assert not (folder / "store").exists()
    weights = results.final_weights("fedavg", 1)["classifier"]
    assert weights.parent.parent == elsewhere
    assert weights.exists()
    trained(LEARNING, out=tmp_path / "whole")
    assert computed(elsewhere) - before <= computed(tmp_path / "whole" / "store") / 2  # half of it was there


def test_another_store_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    interrupted(folder)
    with pytest.raises(UserError, match="has its store in .*leave --store out"):
        trained(LEARNING, out=folder, resume=True, store=tmp_path / "other")
    assert not (tmp_path / "other").exists()
    trained(LEARNING, out=folder, resume=True, store=folder / "store")


def on_a(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (torch_executor, processor):
        monkeypatch.setattr(module, "instruction_set", lambda: word)


def test_a_run_does_not_go_on_on_another_kind_of_processor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, folder = tmp_path / "store", tmp_path / "run"
    on_a("amd-avx2", monkeypatch)
    interrupted(folder, store=store)
    on_a("amd-avx512", monkeypatch)
    with pytest.raises(UserError) as refusal:
        trained(LEARNING, out=folder, resume=True, store=store)
    assert str(refusal.value).endswith(
        "; numbers would differ, so go on where the processor and the environment come to amd-avx2 (here: amd-avx512), "
        "or choose another folder with --out"
    )
    whole = trained(LEARNING, out=tmp_path / "there", store=store)
    assert '"event":"loaded"' not in (store / "ledger" / f"{whole.manifest['run']}.jsonl").read_text()
    on_a("amd-avx2", monkeypatch)
    assert trained(LEARNING, out=folder, resume=True, store=store).manifest["executor"]["processor"] == "amd-avx2"
    on_a("intel-avx512-amx", monkeypatch)
    assert len(trained(LEARNING, out=folder).summary) == 1, "what is finished can be read everywhere"


def test_time_is_counted_over_all_attempts(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    protocols = [{"name": "fedavg", "fraction": 1.0, "stop": {"rounds": 2}}, {"name": "centralised", "label": "later"}]
    cloud = {"devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.0}}}
    twice = LEARNING | cloud | {"protocols": protocols}
    with pytest.raises(KeyboardInterrupt):
        trained(twice, out=folder, observer=Interrupts())
    results = trained(twice, out=folder, resume=True)
    assert results.manifest["real_seconds"] > sum(row["real_seconds"] for row in results.manifest["runs"])


def test_a_protocol_with_a_stop_of_its_own_is_measured_by_the_scenarios_target(tmp_path: Path) -> None:
    protocols = [
        {"name": "fedavg", "fraction": 1.0, "label": "stops at it"},
        {"name": "fedavg", "fraction": 1.0, "label": "goes on", "stop": {"rounds": 14}},
        {"name": "fedavg", "fraction": 1.0, "label": "has another", "stop": {"rounds": 14, "target_accuracy": 0.999}},
    ]
    stop = {"rounds": 14, "target_accuracy": 0.5}
    results = trained(LEARNING | {"stop": stop, "protocols": protocols}, out=tmp_path / "run")
    summary = results.summary.set_index("protocol")
    assert summary["rounds"].tolist() == [summary.loc["stops at it", "rounds_to_target"] + 3, 14, 14]
    assert summary.loc["goes on", "rounds_to_target"] == summary.loc["stops at it", "rounds_to_target"]
    assert summary["rounds_to_target"].isna().tolist() == [False, False, True]
