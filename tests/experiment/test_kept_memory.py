"""What clients and the server keep beside the model: told before a run, and refused where there is no room for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import digit_runs
import pytest

import fedsim
from fedsim.errors import UserError
from fedsim.experiment import memory
from fedsim.experiment.describe import describe
from fedsim.experiment.memory import Kept, free_bytes
from fedsim.viz.describe_tables import description_tables


def scenario(*protocols: dict[str, Any], **changes: Any) -> Any:
    return digit_runs.scenario({"protocols": list(protocols), **changes})


def kept(*protocols: dict[str, Any], **changes: Any) -> list[dict[str, float] | None]:
    facts, _ = describe(scenario(*protocols, **changes))
    return [protocol["kept"] for protocol in facts["protocols"]]


def test_what_is_kept_is_counted_by_client_server_and_update() -> None:
    about = scenario({"name": "fedavg", "clients": 4})
    clients = len(about.topology.build().sensors)
    model = describe(about)[0]["model"]["bytes"]  # it has no running statistics
    found = kept(
        {"name": "fedavg", "clients": 4},
        {"name": "fedadam", "clients": 4},
        {"name": "scaffold", "clients": 4},
        {"name": "ida", "clients": 4},
        {"name": "scaffold", "label": "few", "clients": 2, "stop": {"rounds": 3}},
        {"name": "scaffold", "label": "all", "clients": 2, "stop": {"sim_time_s": 1e4}},
    )
    expected = [
        None,
        Kept(0.0, min(12, clients), 2 * model, 0.0, 4),
        Kept(model, min(12, clients), model, model, 4),
        Kept(0.0, min(12, clients), 0.0, model, 4),
        Kept(model, 6, model, model, 2),
        Kept(model, clients, model, model, 2),
    ]
    assert found == [None if one is None else {**one._asdict(), "total": one.total} for one in expected]


def test_the_number_of_steps_of_a_corrected_adam_is_not_counted_as_a_model() -> None:
    plain, corrected = (
        {
            "name": "fedadam",
            "label": str(corrected),
            "clients": 4,
            "server": {"name": "adam", "bias_correction": corrected},
        }
        for corrected in (False, True)
    )
    of_plain, of_corrected = kept(plain, corrected)
    assert of_plain == of_corrected is not None


def test_it_is_of_the_largest_model_that_a_protocol_trains() -> None:
    cgau = {"name": "cgau", "clients": 4, "pretraining_rounds": 1, "units": 64, "server": {"name": "adam"}}
    (of_it,) = kept(cgau)
    assert of_it is not None
    classifier = 2 * 64 * (16 + 20) + 64 * 10 + 10  # of 16 features and 20 clients, to 10 classes
    assert of_it["server"] == 2 * 4 * (64 * 16 + 16 + classifier)


def test_it_is_in_a_table_of_those_that_keep_something() -> None:
    facts, _ = describe(scenario({"name": "fedavg", "clients": 4}, {"name": "scaffold", "clients": 4}))
    (table,) = [one.cells for one in description_tables(facts) if "memory beside the model" in one.cells]
    assert table["protocol"].tolist() == ["scaffold"]
    facts, _ = describe(scenario({"name": "fedavg", "clients": 4}))
    assert not [one for one in description_tables(facts) if "memory beside the model" in one.cells]


def test_what_does_not_fit_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    protocols = {"name": "fedavg", "clients": 4}, {"name": "scaffold", "clients": 4}
    (of_it,) = [one for one in kept(*protocols) if one is not None]
    monkeypatch.setattr(memory, "free_bytes", lambda: of_it["total"] - 1)
    with pytest.raises(UserError, match=r"'scaffold' takes .* 12 clients keep .* each, the server keeps .*, 4 updates"):
        fedsim.run(scenario(*protocols), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    monkeypatch.setattr(memory, "free_bytes", lambda: of_it["total"])
    fedsim.run(scenario(*protocols), out=tmp_path / "run")
    with pytest.raises(UserError, match="'scaffold' takes"):  # numbers are twice as long
        fedsim.run(scenario(*protocols), out=tmp_path / "long", precision="float64")
    fedsim.run(scenario(*protocols, learn=False), out=tmp_path / "clock", precision="float64")


def test_the_memory_that_is_free_is_the_machines_or_the_containers(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    assert free_bytes(meminfo, cgroup) is None
    meminfo.write_text("MemTotal:  900 kB\nMemAvailable:  700 kB\n")
    assert free_bytes(meminfo, cgroup) == 700 * 1024
    cgroup.mkdir()
    (cgroup / "memory.current").write_text("1000\n")
    for most, expected in (("max", 700 * 1024), ("5000", 4000), ("500", 0)):
        (cgroup / "memory.max").write_text(f"{most}\n")
        assert free_bytes(meminfo, cgroup) == expected
    here = free_bytes()
    assert here is None or here > 1e6
