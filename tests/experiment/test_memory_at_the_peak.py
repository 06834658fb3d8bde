"""The memory of a run at its peak: told before it, and refused where there is no room for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest
from peak_memory import peak_bytes_of_all
from tiers import mostly_long

import fedsim
from fedsim.errors import UserError
from fedsim.experiment import memory
from fedsim.experiment.describe import describe
from fedsim.experiment.description import rounds
from fedsim.experiment.memory import PROGRAM_BYTES, WORKER_BYTES, peak_of
from fedsim.scenario.build import gather_materials
from fedsim.scenario.load import written_out
from fedsim.viz.describe_tables import description_tables

DEPTHS = (11, 13, 16, 19)
CLIENTS = 12
INSTANT = {"compute": {"name": "per_sample", "seconds_per_sample": 0.0}}


def four_vggs(**protocol: Any) -> Any:
    """Wide ones, three clients each, on a few samples; their hidden layers have 4,096 units."""
    nodes: dict[str, Any] = {"cloud": {"kind": "cloud"}, "station": {"kind": "base_station"}}
    for number in range(CLIENTS):
        nodes[f"s{number}"] = {"kind": "sensor", "attach": "station", "device": f"d{DEPTHS[number % 4]}"}
    changes = {
        "topology": {"name": "explicit", "nodes": nodes, "links": [{"between": ["cloud", "station"]}]},
        "devices": {"classes": {f"d{depth}": INSTANT | {"model": {"name": "vgg", "depth": depth}} for depth in DEPTHS}},
        "devices.default": "d11",
        "model": {"name": "vgg", "depth": 11},
        "data": {"name": "digits", "pixels": 32, "client_test_fraction": 0.02, "stream": {"samples": 4}},
        "training": {"learning_rate": 0.01, "momentum": 0.9, "batch_size": 4},
        "evaluate": {"every": 1, "on": ["own"]},
        "stop": {"rounds": 2},
        "protocols": [{"fraction": 1.0, **protocol}],
    }
    return digit_runs.scenario(changes)


def peak(scenario: Any, *, executor: str = "processes", workers: int = 1) -> memory.Peak | None:
    return peak_of(scenario.protocols[0], scenario, gather_materials(scenario, 1), executor=executor, workers=workers)


@pytest.mark.long
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "protocol",
    [{"name": "flexifed", "strategy": "max"}, {"name": "flexifed", "strategy": "basic"}, {"name": "standalone"}],
    ids=["max", "basic", "standalone"],
)
def test_the_estimate_is_within_a_tenth_of_the_peak(tmp_path: Path, protocol: dict[str, Any], workers: int) -> None:
    """Of the run's process and its workers: nothing, a layer or all is averaged of models of 113 to 156 MB."""
    scenario = four_vggs(**protocol)
    (tmp_path / "vggs.yaml").write_text(written_out(scenario))
    estimate = peak(scenario, workers=workers)
    assert estimate is not None
    found = peak_bytes_of_all("run", tmp_path / "vggs.yaml", "--out", tmp_path / "run", "--workers", workers)
    assert estimate.total == pytest.approx(found, rel=0.1)


def test_it_is_the_sum_of_its_parts() -> None:
    """By hand: three clients of each model are two sums, of two and of one."""
    sizes = {11: 112_598_056, 13: 113_337_640, 16: 134_586_664, 19: 155_835_688}
    tables = gather_materials(four_vggs(name="standalone"), 1).tables
    assert {depth: table.bytes() for depth, table in zip(DEPTHS, tables, strict=True)} == pytest.approx(sizes, rel=1e-3)
    all_four, largest = sum(table.bytes() for table in tables), tables[-1].bytes()
    alone, two = peak(four_vggs(name="standalone")), peak(four_vggs(name="standalone"), workers=2)
    assert alone is not None and two is not None
    assert alone.kept == two.kept == 3 * all_four
    assert (alone.waves, two.waves) == (largest, 3 * largest + tables[-2].bytes())
    activations = alone.training - all_four - 2 * largest  # a module of each; gradients, momentum
    assert 0 < activations < largest / 4
    assert two.training == 2 * (alone.training + largest), "and what each worker hands over"
    assert two.program - alone.program == 2 * WORKER_BYTES and alone.program > PROGRAM_BYTES
    clustered = peak(four_vggs(name="clustered_fl"), workers=2)
    assert clustered is not None
    assert clustered.kept == all_four
    assert clustered.waves == 2 * all_four + largest, "one model waits while another one is added up"
    assert clustered.training == two.training
    clustered = peak(four_vggs(name="clustered_fl"))
    assert clustered is not None
    assert clustered.waves == 2 * all_four, "one process adds up what it has made at once"


def test_it_is_larger_with_an_objective_that_needs_more_models() -> None:
    plain, fedprox, fedmmd = (
        peak(digit_runs.scenario({"protocols": [{"clients": 8, **protocol}]}))
        for protocol in ({"name": "fedavg"}, {"name": "fedprox", "mu": 0.1}, {"name": "fedmmd"})
    )
    assert plain is not None and fedprox is not None and fedmmd is not None
    model = plain.kept
    assert fedprox.training - plain.training == model, "where it started"
    assert fedmmd.training - plain.training == model, "a module of the global model"


def test_it_is_not_known_where_clients_train_side_by_side() -> None:
    dense = digit_runs.scenario()
    assert peak(dense, executor="batched") is None
    assert peak(dense, executor="serial") is not None
    assert peak(four_vggs(name="standalone"), executor="batched") is not None, "that is the plain loop too"


def test_describe_tells_it_for_one_worker_and_for_one_on_each_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "cores", lambda: 3)
    facts, _ = describe(four_vggs(name="standalone"))
    told = facts["protocols"][0]["peak_memory"]
    assert [each["workers"] for each in told] == [1, 3]
    (table,) = [one.cells for one in description_tables(facts) if "memory of the run" in one.cells]
    assert [*table] == ["protocol", "memory of the run", "1 worker", "3 workers"]
    assert table["1 worker"].item().endswith("GB")
    facts, _ = describe(digit_runs.scenario())
    assert facts["protocols"][0]["peak_memory"] == []
    assert not [one for one in description_tables(facts) if "memory of the run" in one.cells]


@pytest.mark.parametrize("workers", mostly_long([1, 2], now=[2]))
def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    scenario = four_vggs(name="standalone")
    of_it = peak(scenario, workers=workers)
    assert of_it is not None
    monkeypatch.setattr(memory, "free_bytes", lambda: of_it.learning - 1)
    who = "2 workers take" if workers == 2 else "training takes"
    with pytest.raises(UserError, match=rf"takes .* 12 clients keep .* each, {who} .*, new models and sums take"):
        fedsim.run(scenario, out=tmp_path / "run", workers=workers)
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(memory, "free_bytes", lambda: of_it.learning)
    memory.check_memory(
        scenario, gather_materials(scenario, 1), executor="processes", workers=workers, precision="float32"
    )
