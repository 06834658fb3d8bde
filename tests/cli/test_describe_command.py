"""``fedsim describe``: its numbers are those of a run, and worked out by hand; nothing is trained."""

from __future__ import annotations

import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import digit_runs
import pytest
from rich.console import Console
from scenario_texts import write_scenario
from small_worlds import NO_CONTENTION, NO_TIME, scenario, simulated

from fedsim.cli import main
from fedsim.cli.tables import show_cells
from fedsim.experiment.describe import MOST_HOPS, describe, plain
from fedsim.network.hop import Direction
from fedsim.protocols.fedavg import FedAvg
from fedsim.scenario.load import load
from fedsim.viz.data_figures import save_data_figures
from fedsim.viz.describe_tables import description_tables
from fedsim.viz.tables import WIDTH

ROOT = Path(__file__).parents[2]
Capture = pytest.CaptureFixture[str]

CENTRALISED = {
    "devices.cloud": {"compute": {"name": "per_sample", "seconds_per_sample": 0.25}},
    "protocols": [{"name": "centralised"}],
}


def protocol(changes: Mapping[str, Any]) -> dict[str, Any]:
    """What is said of the first protocol of a small world."""
    facts: dict[str, Any] = describe(scenario(changes))[0]["protocols"][0]
    return facts


# -- a round ----------------------------------------------------------------------------------------------------------


def test_a_round_alone_is_its_download_its_work_and_its_upload() -> None:
    facts = protocol({**NO_CONTENTION, "stop.rounds": 10})
    assert [one["seconds"] for one in facts["rounds"]] == [17.0, 17.0]
    for part, seconds in {"download_s": 4.0, "compute_s": 5.0, "upload_s": 8.0}.items():
        assert facts["parts"][part] == {"min": seconds, "median": seconds, "mean": seconds, "max": seconds}
    assert facts["run"] == {
        "ends_by": "rounds",
        "rounds": 10,
        "seconds": 170.0,
        "uplink_bytes": 20_000.0,
        "downlink_bytes": 20_000.0,
        "may_end_earlier": False,
    }


def test_who_waits_for_the_air_is_seen_in_the_parts() -> None:
    """The first model is sent for 4 s from 1 s on; the second is there at 2 s and waits for 3 s. Both uploads take 8 s;
    the first begins at 10 s, when 5 s of work are done, and the second waits from 14 s to 18 s."""
    parts = protocol({})["parts"]
    assert parts["download_airtime_s"]["max"] == parts["download_airtime_s"]["min"] == 4.0
    assert (parts["download_air_queue_s"]["min"], parts["download_air_queue_s"]["max"]) == (0.0, 3.0)
    assert (parts["upload_air_queue_s"]["min"], parts["upload_air_queue_s"]["max"]) == (0.0, 4.0)
    assert (parts["download_s"]["min"], parts["download_s"]["max"]) == (5.0, 9.0)


def test_who_waits_for_samples_is_seen_too() -> None:
    """Ten samples have come after 10 s, 6 s after the model; when the second model is there, at 27 s, ten more have."""
    stream = {"samples": 10, "arrival": {"samples_per_s": 1.0, "buffer_samples": 100}}
    facts = protocol({**NO_CONTENTION, "stop.rounds": 2, "data.stream": stream})
    assert [one["seconds"] for one in facts["rounds"]] == [23.0, 17.0]
    assert facts["parts"]["wait_for_samples_s"] == {"min": 0.0, "median": 3.0, "mean": 3.0, "max": 6.0}
    assert facts["parts"]["compute_s"]["max"] == 5.0


def test_bytes_of_a_client_are_those_of_a_client_that_takes_part() -> None:
    (first,) = protocol({"topology.devices": 4, "protocols": [{"name": "fedavg", "clients": 3}]})["rounds"]
    assert (first["selected"], first["downlink_bytes_per_client"], first["uplink_bytes_per_client"]) == (3, 1e3, 1e3)
    assert (first["downlink_bytes"], first["uplink_bytes"]) == (3e3, 3e3)


@pytest.mark.parametrize("changes", [{}, CENTRALISED], ids=["fedavg", "centralised"])
@pytest.mark.parametrize("rounds", [1, 2, 7])
def test_where_all_later_rounds_are_alike_the_estimate_is_what_the_run_takes(
    changes: Mapping[str, Any], rounds: int
) -> None:
    changes = {**changes, "stop.rounds": rounds}
    run, world = protocol(changes)["run"], simulated(changes)
    assert run["seconds"] == pytest.approx(world.env.now, rel=1e-12)
    assert run["uplink_bytes"] == world.network.access_bytes[Direction.UPLINK]
    assert run["downlink_bytes"] == world.network.access_bytes[Direction.DOWNLINK]


def in_turns(stop: Mapping[str, float]) -> dict[str, Any]:
    """Rounds of the whole model and of its classifier in turns, on devices that compute in no time."""
    lasp = {"name": "fedavg", "clients": 1, "interval": 2, "exchange": {"name": "lasp", "scc": None}}
    model = {"name": "declared", "parameters": 250, "classifier_parameters": 50}
    free = {"name": "per_sample", "seconds_per_sample": 0.0}
    changes = {"model": model, "devices.classes.sensor.compute": free, "protocols": [lasp], "stop": dict(stop)}
    return {**NO_CONTENTION, **changes}


@pytest.mark.parametrize(
    ("stop", "ends_by", "rounds"),
    [
        ({"rounds": 5}, "rounds", 5),
        ({"sim_time_s": 40.0}, "sim_time_s", 4),
        ({"sim_time_s": 3.0, "rounds": 5}, "sim_time_s", 0),
        ({"transfer_bytes": 3_300.0}, "transfer_bytes", 2),
    ],
)
def test_where_rounds_are_not_alike_the_whole_run_is_simulated(
    stop: Mapping[str, float], ends_by: str, rounds: int
) -> None:
    """A full round takes 4 + 8 + 4 s and 3,000 bytes, a calibration round a fifth of 4 + 8 s, and of 2,000 bytes."""
    run = protocol(in_turns(stop))["run"]
    assert (run["ends_by"], run["rounds"]) == (ends_by, rounds)
    full, calibration = math.ceil(rounds / 2), rounds // 2
    assert run["seconds"] == pytest.approx(stop.get("sim_time_s", full * 16.0 + calibration * 2.4), rel=1e-12)
    assert run["uplink_bytes"] == full * 1_000.0 + calibration * 200.0
    assert run["downlink_bytes"] == full * 2_000.0 + calibration * 200.0


def test_who_only_reports_is_no_client_of_a_round() -> None:
    """Two of eight clients take part; the others send 40 bytes of class counts."""
    digits = {"data": {"name": "digits", "partition": {"name": "iid"}}, "topology.devices": 8, "stop.rounds": 2}
    grouped = {"protocols": [{"name": "fedgsp", "sampling_rate": 0.25, "growth": {"name": "constant", "beta": 8}}]}
    first = protocol({**NO_CONTENTION, **digits, **grouped})["rounds"][0]
    assert (first["selected"], first["uplink_bytes"]) == (2, 2 * 1_000.0 + 8 * 40.0)
    assert (first["uplink_bytes_per_client"], first["downlink_bytes_per_client"]) == (1_040.0, 1_000.0)


def test_a_run_without_an_end_that_can_be_seen_is_not_simulated_for_ever() -> None:
    assert protocol({**in_turns({"sim_time_s": 10.0}), **NO_TIME})["run"] is None


@pytest.mark.parametrize(
    ("stop", "ends_by", "rounds", "seconds"),
    [
        ({"sim_time_s": 50.0}, "sim_time_s", 2, 50.0),
        ({"sim_time_s": 51.0}, "sim_time_s", 3, 51.0),
        ({"sim_time_s": 16.0}, "sim_time_s", 0, 16.0),
        ({"sim_time_s": 50.0, "rounds": 1}, "rounds", 1, 17.0),
        ({"transfer_bytes": 4_000.0}, "transfer_bytes", 1, 17.0),
        ({"transfer_bytes": 8_001.0}, "transfer_bytes", 3, 51.0),
    ],
)
def test_the_run_ends_at_whatever_comes_first(
    stop: Mapping[str, float], ends_by: str, rounds: int, seconds: float
) -> None:
    run = protocol({**NO_CONTENTION, "stop": stop})["run"]
    assert (run["ends_by"], run["rounds"], run["seconds"]) == (ends_by, rounds, seconds)


def test_rounds_that_take_no_time_fill_no_day() -> None:
    assert protocol({**NO_TIME, "stop": {"sim_time_s": 10.0}})["run"] is None


def test_when_an_accuracy_is_reached_is_not_guessed(tmp_path: Path, capsys: Capture) -> None:
    path = str(write_scenario(tmp_path))
    assert main(["describe", path, "--set", "stop={target_accuracy: 0.9}"]) == 0
    assert "none: it ends at an accuracy" in capsys.readouterr().out
    assert main(["describe", path, "--set", "stop={target_accuracy: 0.9, rounds: 50}"]) == 0
    assert "50 rounds at most" in capsys.readouterr().out


def test_an_end_that_is_too_far_away_is_no_accuracy(tmp_path: Path, capsys: Capture) -> None:
    path, growing = str(write_scenario(tmp_path)), "protocols=[{name: stp, grouping: {name: random}}]"
    for stop in ("stop={rounds: 1001}", "stop={transfer_bytes: 1e15}", "stop={sim_time_s: 1e9, target_accuracy: 0.9}"):
        assert main(["describe", path, "--set", growing, "--set", stop]) == 0
        shown = capsys.readouterr().out
        assert "none: the end is too many rounds away" in shown and "accuracy" not in shown


class Curious(FedAvg):
    reads_learning = True


def test_a_protocol_that_reads_what_was_learned_is_said_to_be_unknown() -> None:
    world = scenario()
    asking = world.model_copy(update={"learn": True, "protocols": (Curious(clients=2),)})
    facts, _ = describe(world)
    from fedsim.experiment.description.rounds import protocol_facts

    (told,) = facts["protocols"] = protocol_facts(asking, describe(world)[1], 0.0)
    assert (told["rounds"], told["run"], told["mean_cohort"]) == ([], None, 2.0)
    shown = printed(facts)
    assert "none: it decides on what is learned" in shown
    assert "2 of 2" in shown


def test_sizes_that_are_measured_are_unknown_unless_they_are_given() -> None:
    spatl = {"name": "spatl", "clients": 2, "selection": {"name": "l2_global", "keep": 0.5}}
    changes = {"protocols": [spatl], "model": {"name": "small_cnn"}, "data.client_test_fraction": 0.3}
    facts, _ = describe(digit_runs.scenario(changes | {"evaluate": {"on": ["own"]}}))
    assert (facts["protocols"][0]["measured_size"], facts["newcomers"]) == ("selection.declared_keep", None)
    assert "none: sizes are measured; selection.declared_keep gives them" in printed(facts)


@pytest.mark.parametrize("kept_out", [0, 2])
def test_newcomers_are_told_of_as_far_as_they_are_known(kept_out: int) -> None:
    newcomers = {"clients": kept_out, "epochs": 3}
    changes = {"newcomers": newcomers, "protocols": [{"name": "fedper", "clients": 2}], "model": {"name": "small_cnn"}}
    own = {"evaluate": {"on": ["own"]}, "data.client_test_fraction": 0.3}
    facts, materials = describe(digit_runs.scenario(changes | own | {"stop.rounds": 2}))
    extractor = materials.table.bytes("extractor")
    assert facts["newcomers"] == {**newcomers, "trains": "classifier", "downlink_bytes": kept_out * extractor}
    shown = printed(facts)
    assert "classifier, for 3 epochs after the last round" in shown
    assert ("2 of 20 clients, and whoever was never asked" in shown) == ("2 are sent" in shown) == bool(kept_out)


def test_a_run_that_nobody_is_left_for_says_so() -> None:
    broken = [{"node": f"sensor-{number}", "at_s": 3.0} for number in (1, 2)]
    facts, _ = describe(scenario({"faults.scheduled": broken, "stop.rounds": 5}))
    assert facts["protocols"][0]["cut_short"].startswith("no device can ever be reached again")
    assert facts["protocols"][0]["run"] is None
    assert "it ends early: nobody is left to take part" in printed(facts)


# -- the command ------------------------------------------------------------------------------------------------------


def printed(facts: dict[str, Any], columns: int = WIDTH) -> str:
    """What a terminal shows."""
    console = Console(file=io.StringIO(), force_terminal=True, width=columns, color_system=None)
    for table in description_tables(facts):
        show_cells(table.cells, left=table.left, console=console)
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_what_is_unlimited_is_called_so(tmp_path: Path) -> None:
    facts, _ = describe(scenario(NO_TIME))
    assert "unlimited" in printed(facts)
    assert json.loads(json.dumps(plain(facts), allow_nan=False))["network"]["uplink_bps"]["max"] == "inf"


@pytest.mark.parametrize("name", ["quickstart", "agv_with_faults", "night_shift_nb_iot"])
def test_tables_fit_a_hundred_columns(name: str) -> None:
    shown = printed(describe(load(ROOT / "scenarios" / f"{name}.yaml"))[0])
    assert max(map(len, shown.splitlines())) <= WIDTH
    for heading in ("data", "network", "model", "protocol"):
        assert any(line.startswith(heading) for line in shown.splitlines())


def test_long_names_and_remarks_fit_too() -> None:
    facts, _ = describe(scenario({"protocols": [{"name": "fedavg", "fraction": 1.0, "label": "l" * 60}]}))
    facts["data"] |= {"remarks": ["word " * 60], "classes": 20, "class_names": [f"class number {k}" for k in range(20)]}
    facts["network"] |= {"server": "s" * 200 + "\x1b[2J"}
    shown = printed(facts)
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert shown.count("word") == 60
    assert "\x1b" not in shown
    assert f"{'l' * 21}..." in shown


def test_the_folder_gets_the_numbers_and_the_figures(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "made" / "here"
    assert main(["describe", str(write_scenario(tmp_path)), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert sorted(map(Path, said.err.splitlines())) == sorted(out.iterdir())
    figures = {"network.png", "classes.png", "samples.png", "sheet.png"}
    assert {path.name for path in out.iterdir()} == {"describe.json", *figures}
    facts = json.loads((out / "describe.json").read_text("utf-8"))
    assert facts == plain(describe(load(tmp_path / "scenario.yaml"))[0])
    assert "| data " in said.out and "describe.json" not in said.out


def test_numbers_without_samples_have_sizes_to_show_only(tmp_path: Path) -> None:
    materials = describe(scenario())[1]
    paths = save_data_figures(materials.dataset, materials.topology, tmp_path)
    assert [path.name for path in paths] == ["samples.png"]


def test_a_scenario_that_is_wrong_is_refused_as_elsewhere(tmp_path: Path, capsys: Capture) -> None:
    path = str(write_scenario(tmp_path))
    for wrong in ("protocols.fedavg.clients=30", "training.learnig_rate=1", "model={name: hfedms_cnn}"):
        refused = []
        for command in ("validate", "describe"):
            assert main([command, path, "--set", wrong]) == 2
            refused.append(capsys.readouterr().err)
        assert refused[0] == refused[1] != ""


def test_a_place_where_nothing_can_be_written_is_refused_first(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert main(["describe", str(tmp_path / "no.yaml"), "--out", str(tmp_path / "file")]) == 2
    assert f"--out: {tmp_path / 'file'} is not a folder; choose another folder" in capsys.readouterr().err


@pytest.mark.long  # test_run_command describes a smaller one beside its run
def test_torch_is_not_loaded() -> None:
    code = (
        "import sys; from fedsim.cli import main; status = main(['describe', 'scenarios/quickstart.yaml']); "
        "sys.exit(status or ('torch' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


# -- how much is simulated --------------------------------------------------------------------------------------------


def test_more_hops_are_simulated_where_they_are_asked_for(tmp_path: Path, capsys: Capture) -> None:
    path = str(write_scenario(tmp_path))
    assert main(["describe", path, "--most-hops", "1"]) == 0
    assert "none: too many hops to simulate here" in capsys.readouterr().out
    assert main(["describe", path, "--most-hops", "1000"]) == 0
    assert "too large" not in capsys.readouterr().out
    assert main(["describe", path, "--most-hops", "0"]) == 2
    assert "'0' must be a whole number of at least 1" in capsys.readouterr().err


BY_COUNTS: dict[str, Any] = {
    **NO_CONTENTION,
    "data": {"name": "digits", "partition": {"name": "iid"}},
    "topology.devices": 8,
    "stop.rounds": 2,
}
"""A round of eight clients has 32 hops, and reports of class counts 16. In two groups there are four clusters, and a
third of 32 pairs is ten hops and two thirds. A network of ten nodes counts as 130 hops."""


def by_counts(label: str = "stp", **changes: Any) -> dict[str, Any]:
    grouping = {"name": "icg", "once": changes.pop("once", False)}
    growth = {"name": "constant", "beta": 2}
    return {"name": "stp", "label": label, "sampling_rate": 1.0, "grouping": grouping, "growth": growth, **changes}


@pytest.mark.parametrize(
    ("changes", "formings"), [({}, 2), ({"once": True}, 1), ({"interval": 2}, 1), ({"interval": 2, "once": True}, 1)]
)
def test_forming_groups_by_class_counts_costs_hops_in_rounds_in_which_they_are_formed(
    changes: dict[str, Any], formings: int
) -> None:
    """So do reports. Where the first two rounds may be simulated, and nothing else, the run is not simulated again."""
    just_enough = 2 * 32 + formings * (16 + 32 / 3)
    for most_hops, rounds in [(math.ceil(just_enough), 2), (math.floor(just_enough), 1)]:
        facts, _ = describe(scenario({**BY_COUNTS, "protocols": [by_counts(**changes)]}), most_hops=most_hops)
        (told,) = facts["protocols"]
        assert (len(told["rounds"]), told["run"]) == (rounds, None)
    assert "over about 48 hops, forming its groups counts as 11, and desc" in told["not_simulated"]


@pytest.mark.parametrize("changes", [{"once": True}, {"interval": 2}])
def test_a_run_that_forms_groups_seldom_is_simulated(changes: dict[str, Any]) -> None:
    """Six rounds, and two before: 20 hops of their groups and reports could be had twice, but not eight times."""
    settings = {**BY_COUNTS, "stop.rounds": 6}
    most_hops = 8 * 32 + 130 + (2 if "once" in changes else 4) * 27
    facts, _ = describe(scenario({**settings, "protocols": [by_counts(**changes)]}), most_hops=most_hops)
    assert facts["protocols"][0]["run"]["rounds"] == 6
    facts, _ = describe(scenario({**settings, "protocols": [by_counts()]}), most_hops=most_hops)
    assert facts["protocols"][0]["run"] is None
    assert re.match(r"the run has more than [1-5] rounds, and desc", facts["protocols"][0]["not_simulated"])


def test_the_first_rounds_of_all_protocols_come_before_the_whole_run_of_one() -> None:
    settings = {**BY_COUNTS, "stop.rounds": 6, "protocols": [by_counts("one"), by_counts("other")]}
    facts, _ = describe(scenario(settings), most_hops=520)
    assert [len(one["rounds"]) for one in facts["protocols"]] == [2, 2]
    assert [one["run"] for one in facts["protocols"]] == [None, None]


def test_rounds_with_more_hops_than_were_expected_leave_nothing_for_the_next_protocol() -> None:
    """That a full round scatters its mean is not among the four that are expected of a round of one client."""
    settings = in_turns({"rounds": 1})
    both = [settings["protocols"][0] | {"label": label} for label in ("one", "another")]
    facts, _ = describe(scenario({**settings, "protocols": both}), most_hops=4 + 112 + 4)
    one, another = facts["protocols"]
    assert (len(one["rounds"]), len(another["rounds"])) == (1, 0)
    assert another["not_simulated"] is not None


def test_help_says_how_many_hops_are_simulated_otherwise(capsys: Capture) -> None:
    assert main(["describe", "--help"]) == 0
    assert f"{MOST_HOPS:,}" in capsys.readouterr().out
