"""What is unusual in a scenario is said before anything runs: with its key and its place, and nothing else is said."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import digit_runs
import pytest

from fedsim.cli import main
from fedsim.experiment.describe import describe
from fedsim.experiment.observer import Observer
from fedsim.experiment.remarks_before import remarks_before
from fedsim.experiment.run import run
from fedsim.experiment.validate import validate
from fedsim.models.declared import Declared
from fedsim.scenario.load import load, written_out

ROOT = Path(__file__).resolve().parents[2]
Capture = pytest.CaptureFixture[str]

HALL = """\
name: hall
stop: {rounds: 1}
topology: {name: factory_park, factories: 1, devices_per_factory: 2, stations_per_factory: 2}
network:
  cell:
    radio: RADIO
    discipline: {name: fair}
  cells:
    factory-1/station-2:
      radio: {name: fixed, uplink_bps: 4.0e+6, downlink_bps: 4.0e+6}
      delay_s: 0.0
  link: {rate_bps: .inf}
devices:
  default: sensor
  classes:
    sensor: {compute: {name: per_sample, seconds_per_sample: 0.001}}
data: {name: declared, samples_per_client: 10, sample_bytes: 100}
model: {name: declared, parameters: 10}
learn: false
training: {learning_rate: 0.1, batch_size: 5}
protocols: [{name: fedavg, clients: 2}]
"""
ONE_AFTER_THE_OTHER = {"{name: fair}": "{name: serial}"}
BOTH_WAYS = {"0.001}}": "0.001}, duplex: full}"}
OLD_WORD = (
    "'half' is read as 'shared', one channel for both directions, which it meant before; write shared, or leave it "
    "out: NB-IoT and LTE-M have a channel each way, and devices that are half-duplex"
)
IN_TURN = (
    "serial gives one device at a time a whole carrier, of which it can use 0.375 up and 0.3 down; a base station "
    "serves several such devices at once: {name: fair}"
)
NOT_BOTH_WAYS = "is for half-duplex devices, and those of class 'sensor' are said to be full-duplex"


def hall(folder: Path, *changes: dict[str, str], profile: str = "lte_m_m1") -> Path:
    """A file with two cells: one of a profile, and one of plain rates."""
    text = HALL.replace("RADIO", f"{{name: fixed, profile: {profile}}}")
    for old, new in (change for each in changes for change in each.items()):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = folder / "hall.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def said_of(path: Path, *overrides: str) -> list[str]:
    """The remarks, without the folder."""
    scenario = load(path, overrides=overrides)
    remarks: list[str] = []
    validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
    return [remark.removeprefix(f"{path.parent}/") for remark in remarks]


# -- what is said ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "changes"),
    [
        ("lte_m_m1", {}),
        ("nb_iot_nb2", {"    discipline: {name: fair}\n": ""}),
        ("lte_m_m1", {"{name: fair}": "{name: dedicated}"}),
        ("lte_m_m1", {"0.001}}": "0.001}, duplex: half}"}),
        ("lte_m_m1", {"delay_s: 0.0": "duplex: shared"}),
        ("lte_cat4", ONE_AFTER_THE_OTHER),
        ("lte_cat4", BOTH_WAYS),
        ("nr_100mhz_private", BOTH_WAYS),
        ("lte_m_m2_hfedms", {"{name: fair}": "{name: serial}\n    duplex: shared"}),
    ],
)
def test_of_what_is_usual_nothing_is_said(tmp_path: Path, profile: str, changes: dict[str, str]) -> None:
    assert said_of(hall(tmp_path, changes, profile=profile)) == []


def test_the_old_word_is_named_where_it_stands(tmp_path: Path) -> None:
    path = hall(tmp_path, {"    discipline": "    duplex: half\n    discipline", "delay_s: 0.0": "duplex: half"})
    assert said_of(path) == [
        f"hall.yaml:7: network.cell.duplex: {OLD_WORD}",
        f'hall.yaml:12: network.cells."factory-1/station-2".duplex: {OLD_WORD}',
    ]
    assert said_of(path, "network.cell.duplex=full") == [
        f'hall.yaml:12: network.cells."factory-1/station-2".duplex: {OLD_WORD}'
    ]
    assert said_of(hall(tmp_path), "network.cell.duplex=half") == [
        f"--set network.cell.duplex=half: network.cell.duplex: {OLD_WORD}"
    ]


def test_the_old_word_is_named_in_the_file_that_a_scenario_extends(tmp_path: Path) -> None:
    hall(tmp_path, {"    discipline": "    duplex: half\n    discipline"})
    (tmp_path / "night.yaml").write_text("extends: hall.yaml\nname: night\n", encoding="utf-8")
    assert said_of(tmp_path / "night.yaml") == [f"hall.yaml:7: network.cell.duplex: {OLD_WORD}"]


def test_devices_that_wait_for_a_carrier_which_nobody_can_fill_are_named(tmp_path: Path) -> None:
    assert said_of(hall(tmp_path, ONE_AFTER_THE_OTHER)) == [f"hall.yaml:7: network.cell.discipline: {IN_TURN}"]
    shares = {"downlink_bps: 4.0e+6": "downlink_bps: 4.0e+6, uplink_share: 0.5"}
    (remark,) = said_of(hall(tmp_path, shares))
    assert remark.startswith('hall.yaml:9: network.cells."factory-1/station-2".discipline: serial gives one device')
    assert "of which it can use 0.5 up and 1 down" in remark


def test_a_class_that_is_beyond_the_technology_is_named(tmp_path: Path) -> None:
    assert said_of(hall(tmp_path, BOTH_WAYS)) == [f"hall.yaml:6: network.cell.radio: {NOT_BOTH_WAYS}"]


def test_directions_that_wait_for_each_other_though_each_has_a_frequency_are_named(tmp_path: Path) -> None:
    path = hall(tmp_path, {"    discipline": "    duplex: shared\n    discipline"})
    (remark,) = said_of(path)
    assert remark.startswith(
        "hall.yaml:7: network.cell.duplex: with shared, uploads and downloads of different devices wait"
    )


def test_devices_that_their_category_holds_back_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At 0 dB a megahertz carries 1 Mbit/s each way by Shannon's bound, of which Cat M1 has 3/8 up and 3/10 down."""
    ratios = "snr: {name: given, uplink_db: 0.001, downlink_db: 0.001}"
    radio = f"{{name: shannon, profile: pure, bandwidth_hz: 1.0e+6, category: lte_m_m1, {ratios}}}"
    path = hall(tmp_path, {"{name: fixed, profile: lte_m_m1}": radio})
    assert said_of(path) == [
        "hall.yaml:6: network.cell.radio.category: 1 of 1 devices have ratios for more than lte_m_m1 does; they are "
        "held at its 375 kbit/s up and 300 kbit/s down"
    ]
    assert said_of(path, "network.cell.radio.bandwidth_hz=0.99e+6") == []
    assert len(said_of(path, "network.cell.radio.snr.uplink_db=-1.0")) == 1  # down only
    assert said_of(path, "network.cell.radio.category=null") == []
    for at_once in (1, 2, 4_096):
        monkeypatch.setattr("fedsim.experiment.description.air.MANY", at_once)
        (said,) = said_of(path, "topology.devices_per_factory=6")
        assert ": 3 of 3 devices have ratios for more" in said


SCENARIOS = [
    pytest.param(path, marks=[pytest.mark.long] * (path.stem == "hundred_thousand_sensors"))
    for path in sorted((ROOT / "scenarios").rglob("*.yaml"))
]
SLOWEST = "the slowest technology, nb_iot_nb1, has 26.15 kbit/s (docs/network.md#rates)"


@pytest.mark.parametrize(
    ("rate", "said"),
    [
        ("10", f"10 bit/s: a model of 19.2 kB takes 4.27 h; {SLOWEST}; for 10 Mbit/s write 10.0e+6"),
        ("0.5", f"0.5 bit/s: a model of 19.2 kB takes 85.3 h; {SLOWEST}; for 0.5 Mbit/s write 0.5e+6"),
        ("5470", f"5470 bit/s: a model of 19.2 kB takes 28.1 s; {SLOWEST}; for 5470 kbit/s write 5470.0e+3"),
    ],
)
def test_a_rate_that_no_technology_is_as_slow_as_is_named_with_what_it_takes(
    tmp_path: Path, rate: str, said: str
) -> None:
    path = hall(tmp_path, {"uplink_bps: 4.0e+6": f"uplink_bps: {rate}"})
    large = "model.parameters=4800"  # of four bytes each
    assert said_of(path, large) == [f'hall.yaml:10: network.cells."factory-1/station-2".radio.uplink_bps: {said}']
    (remark,) = said_of(hall(tmp_path), large, f"network.link.rate_bps={rate}")
    assert remark == f"--set network.link.rate_bps={rate}: network.link.rate_bps: {said}"
    (remark,) = said_of(hall(tmp_path), large, f"topology.lan_rate_bps={rate}")
    assert remark == f"--set topology.lan_rate_bps={rate}: topology.lan_rate_bps: {said}"


@pytest.mark.parametrize("rate", ["26150", ".inf"])
def test_a_rate_that_a_technology_has_needs_no_remark(tmp_path: Path, rate: str) -> None:
    path = hall(tmp_path, {"uplink_bps: 4.0e+6": f"uplink_bps: {rate}"})
    assert said_of(path, f"network.link.rate_bps={rate}", f"topology.lan_rate_bps={rate}") == []


def test_a_wire_of_a_topology_file_is_named_by_the_topology(tmp_path: Path) -> None:
    nodes = "nodes: {cloud: {kind: cloud}, bs: {kind: base_station}, cam: {kind: sensor}}"
    links = "links: [{between: [cloud, bs], rate_bps: 100.0}, {between: [bs, cam]}]"
    drawn = hall(tmp_path, {
        "{name: factory_park, factories: 1, devices_per_factory: 2, stations_per_factory: 2}":
        f"{{name: explicit, {nodes}, {links}}}",
        "clients: 2": "clients: 1",
        "  cells:\n    factory-1/station-2:\n": "  cells:\n    bs:\n",
    })  # fmt: skip
    (remark,) = said_of(drawn)
    assert remark.startswith("hall.yaml:3: topology: 100 bit/s: a model of 40 B takes 3.20 s; ")


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_no_scenario_of_the_repository_is_too_slow(path: Path) -> None:
    scenario = load(path)
    table = Declared(parameters=1000).table(None, None)  # instead of data, which may not be here
    materials = SimpleNamespace(seed=1, topology=scenario.topology.build(), table=table, class_tables={})
    assert [said for said in remarks_before(scenario, materials) if "slowest technology" in said] == []


LONG = (
    "a model of 40 B takes each device longer than max_transfer_s=0.0005, alone on the air, and up to 1.07 ms; others "
    "send less (LASP: hfedms_d; a smaller model; a codec), or take a faster radio"
)


def test_a_model_that_takes_longer_than_people_wait_is_named_with_what_others_do(tmp_path: Path) -> None:
    """40 bytes take 320 / 300,000 s down over Cat M1, and less in the other cell."""
    assert said_of(hall(tmp_path), "network.max_transfer_s=0.0005") == [f"hall.yaml:6: network.cell.radio: {LONG}"]
    assert said_of(hall(tmp_path), "network.max_transfer_s=0.0011") == []
    (narrow,) = said_of(hall(tmp_path, profile="nb_iot_nb1"), "network.max_transfer_s=0.01")
    assert narrow.endswith("or take a faster radio, such as lte_m")


def test_a_place_that_changes_no_rate_is_named(tmp_path: Path) -> None:
    path = hall(tmp_path, {"0.001}}": "0.001}, place: {indoor_m: 3.0}}"})
    assert said_of(path) == [
        "hall.yaml:16: devices.classes.sensor.place: changes nothing: no radio of this scenario has a link budget "
        "(snr: {name: link_budget, ...})"
    ]


def test_of_devices_at_different_ratios_those_that_take_too_long_are_counted(tmp_path: Path) -> None:
    """Two of eight stand so far away that 40 bytes take longer: the distances grow by the square root."""
    far = "name: link_budget, carrier_hz: 9.0e+8, device_power_dbm: 23.0, station_power_dbm: 43.0"
    noise = "device_noise_figure_db: 5.0, station_noise_figure_db: 3.0, path_loss: {name: log_distance, exponent: 4.0}"
    radio = f"{{name: shannon, profile: pure, bandwidth_hz: 1.0e+6, snr: {{{far}, {noise}}}}}"
    fast = {"uplink_bps: 4.0e+6, downlink_bps: 4.0e+6": "uplink_bps: 4.0e+9, downlink_bps: 4.0e+9"}
    sixteen = {"devices_per_factory: 2": "devices_per_factory: 16"}
    path = hall(tmp_path, {"{name: fixed, profile: lte_m_m1}": radio}, sixteen, fast)
    rates: list[float] = []
    validate(load(path), lambda _, world: rates.extend(one.air_uplink.rate_bps for one in world.wires.attachments[:8]))
    slowest = sorted(rates)
    (said,) = said_of(path, f"network.max_transfer_s={2 * 320 / (slowest[1] + slowest[2])}")
    assert "takes 25 % of the devices longer than max_transfer_s=" in said


def test_of_an_entry_that_no_cell_has_nothing_is_said(tmp_path: Path) -> None:
    own = "    factory-1/station-1:\n      radio: {name: fixed, profile: lte_cat4}\n    factory-1/station-2:"
    shared = {"    discipline": "    duplex: shared\n    discipline"}
    assert said_of(hall(tmp_path, shared, {"    factory-1/station-2:": own})) == []


def test_what_holds_for_many_cells_is_said_of_three(tmp_path: Path) -> None:
    entry = "    factory-1/station-{}:\n      radio: {{name: fixed, profile: lte_m_m1}}\n      duplex: half\n"
    entries = "".join(entry.format(number) for number in range(3, 8)) + "    factory-1/station-2:"
    more = {"stations_per_factory: 2": "stations_per_factory: 7", "devices_per_factory: 2": "devices_per_factory: 7"}
    said = said_of(hall(tmp_path, more, {"    factory-1/station-2:": entries}))
    assert [remark.split(":")[2].strip() for remark in said] == [
        f'network.cells."factory-1/station-{number}".duplex' for number in (3, 4, 5)
    ]
    assert said[2].endswith(" (the same holds for 2 more under network.cells)")


def test_a_cell_in_which_nobody_is_needs_no_remark_on_its_rates(tmp_path: Path) -> None:
    own = "    factory-1/station-1:\n      radio: {name: fixed, profile: lte_cat4}\n    factory-1/station-2:"
    assert said_of(hall(tmp_path, ONE_AFTER_THE_OTHER, {"    factory-1/station-2:": own})) == []


# -- where it is said --------------------------------------------------------------------------------------------------


def test_validate_describe_and_run_say_the_same(tmp_path: Path, capsys: Capture) -> None:
    path = hall(tmp_path, ONE_AFTER_THE_OTHER, BOTH_WAYS)
    remarks = [f"{path}:7: network.cell.discipline: {IN_TURN}", f"{path}:6: network.cell.radio: {NOT_BOTH_WAYS}"]
    lines = [f"Remark: {remark}" for remark in remarks]

    assert main(["validate", str(path)]) == 0
    printed = capsys.readouterr()
    assert (printed.out.splitlines()[1:], printed.err) == (lines, "")
    assert printed.out.startswith(f"{path} is fine: 2 clients")

    facts, _ = describe(load(path))
    assert facts["network"]["remarks"] == remarks

    assert main(["run", str(path), "--out", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr()
    told = printed.err.splitlines()
    assert told[: len(lines)] == lines
    assert sum("Remark: " in line for line in told) == len(lines)
    assert "Remark" not in printed.out


def test_where_there_is_nothing_to_say_nothing_is(tmp_path: Path, capsys: Capture) -> None:
    path = hall(tmp_path)
    assert main(["validate", str(path)]) == main(["run", str(path), "--out", str(tmp_path / "run")]) == 0
    assert main(["describe", str(path)]) == 0
    printed = capsys.readouterr()
    assert "emark" not in printed.out + printed.err
    assert describe(load(path))[0]["network"]["remarks"] == []


def test_quiet_and_a_run_that_is_finished_say_nothing(tmp_path: Path, capsys: Capture) -> None:
    words = ["run", str(hall(tmp_path, BOTH_WAYS)), "--out", str(tmp_path / "run")]
    assert main([*words, "--quiet"]) == 0
    assert main(words) == 0
    assert "emark" not in capsys.readouterr().err


# -- run folders of before ---------------------------------------------------------------------------------------------


class Stopped(Observer):
    """Somebody interrupts after the first round."""

    def round_done(self, *_: object) -> None:
        raise KeyboardInterrupt


def test_a_run_that_was_begun_with_the_old_word_goes_on_with_either(tmp_path: Path) -> None:
    new, old = (digit_runs.scenario({"network.cell.duplex": word}) for word in ("shared", "half"))
    assert old == new and written_out(old) == written_out(new)
    run(new, out=tmp_path / "whole")
    for number, settings in enumerate((new, old)):
        out = tmp_path / f"{number}"
        with pytest.raises(KeyboardInterrupt):
            run(settings, out=out, observer=Stopped())
        kept = (out / "scenario.yaml").read_text(encoding="utf-8")
        assert kept.count("duplex: shared") == 1
        (out / "scenario.yaml").write_text(kept.replace("duplex: shared", "duplex: half"), encoding="utf-8")
        run(settings, out=out, resume=True)
        assert digit_runs.outcome(out) == digit_runs.outcome(tmp_path / "whole")
        run(load(out / "scenario.yaml"), out=out)  # finished: it is read, and not refused


OWN_CLASSIFIERS = (
    "clients keep parts of the model to themselves, and accuracy is of a model that has these parts as they were at "
    "the start; for each client's own model, write evaluate: {on: [own"
)


@pytest.mark.parametrize("on", [["global"], ["clients"], ["clients", "own"], ["own"], ["own", "global"]])
def test_classifiers_that_nobody_scores_are_named(on: list[str]) -> None:
    protocols = [{"name": "fedper", "clients": 2}, {"name": "fedavg", "clients": 2}]
    changes = {"protocols": protocols, "data.client_test_fraction": 0.3, "evaluate": {"on": on}}
    remarks = []
    for learn in (True, False):
        scenario = digit_runs.scenario(changes | {"learn": learn})
        validate(scenario, lambda first, _, asked=scenario: remarks.extend(remarks_before(asked, first)))
    more = ", clients" if on == ["clients", "own"] else ""
    assert remarks == ([] if on[0] == "own" else [f"evaluate.on: with 'fedper', {OWN_CLASSIFIERS}{more}]}}"])


@pytest.mark.parametrize(("rounds", "told"), [(4, True), (5, True), (6, False), (None, False)])
def test_a_phase_that_never_begins_is_named(rounds: int | None, told: bool) -> None:
    protocol = {"name": "cgau", "clients": 2, "pretraining_rounds": 5}
    stop = {"sim_time_s": 1e3} if rounds is None else {"rounds": rounds}
    scenario, remarks = digit_runs.scenario({"protocols": [protocol], "stop": stop}), list[str]()
    validate(scenario, lambda first, _: remarks.extend(remarks_before(scenario, first)))
    said = f"protocols[0]: 'cgau' trains its last model from round 6 on, and its run has {rounds}: it ends with an "
    assert remarks == ([f"{said}earlier model"] if told else [])


SPARSE = {"path": f"{ROOT / 'tests' / 'outside' / 'sparse.py'}:Sparse"}


@pytest.mark.parametrize(
    ("keys", "place"),
    [
        ({"selection": {"name": "l2_global", "keep": 0.5, "declared_keep": 0.4}}, "selection.declared_keep"),
        ({"selection": {"name": "l2_global", "keep": 0.5}}, None),
        ({"selection": {"name": "uniform", "keep": 0.5}}, None),
        ({"name": "fedavg", "codec": SPARSE | {"declared_bytes": 500.0}}, "codec.declared_bytes"),
        ({"name": "fedavg", "codec": SPARSE}, None),
        ({"name": "hierarchical", "inner_codec": SPARSE | {"declared_bytes": 500.0}}, "inner_codec.declared_bytes"),
        ({"name": "hierarchical", "inner_codec": SPARSE}, None),
        ({"name": "fedavg", "codec": {"name": "float32", "declared_bytes": 500.0}}, None),
    ],
)
def test_a_declared_size_where_it_could_be_measured_is_named(keys: dict[str, object], place: str | None) -> None:
    changes = {"protocols": [{"name": "spatl", "clients": 2, **keys}], "model": {"name": "small_cnn"}}
    changes |= {"data.client_test_fraction": 0.3, "evaluate": {"on": ["own"]}}
    remarks = list[str]()
    for learn in (True, *([False] if place else [])):
        scenario = digit_runs.scenario(changes | {"learn": learn})
        validate(scenario, lambda first, _, asked=scenario: remarks.extend(remarks_before(asked, first)))
    said = "sizes of updates, and so bytes and seconds, are as declared here, and not those of what is learned; leave"
    assert len(remarks) == (place is not None)
    assert all(remark.startswith(f"protocols[0].{place}: {said}") for remark in remarks)
