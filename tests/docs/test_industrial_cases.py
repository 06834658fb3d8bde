"""The page of industrial cases: its lines and sentences have what the scenarios and measured.csv have."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from pages import ROOT
from writers import cases, scenarios

from fedsim.metrics.intervals import half_width

PLANT = """\
# Four machines, one cell. Is it enough? It is
# small. How long does it take,
# and what does it cost? Nobody knows.
#
# By hand: is this a question?
name: plant
stop: {rounds: 2}
topology: {name: star, devices: 4}
network: {cell: {radio: {name: fixed, profile: lte_m_m1}}, link: {rate_bps: .inf}}
devices: {classes: {sensor: {compute: {name: per_sample, seconds_per_sample: 1.0e-9}}}}
data: {name: digits}
model: {name: softmax}
training: {learning_rate: 0.25, batch_size: 32, momentum: 0.9}
protocols:
  - {name: fedavg, clients: 2}
  - {name: fedavg, label: my own, clients: 2, training: {learning_rate: 0.01, batch_size: 8}}
"""
ENDS = {"fedavg": ("accuracy", [0.90, 0.92, 0.94]), "my own": ("rmse", [10.0, 12.0, 14.0])}
TIMES_S, TRAFFIC_BYTES = [10.0, 20.0, 60.0], [1000, 2000, 6000]


@pytest.fixture
def rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pd.DataFrame:
    """A scenario in a folder of its own, and what was measured of it."""
    (tmp_path / "plant.yaml").write_text(PLANT)
    monkeypatch.setattr(scenarios, "FOLDER", tmp_path)
    monkeypatch.setattr(scenarios, "MEASURED", tmp_path / "measured.csv")
    forget()
    monkeypatch.setattr(cases, "INDUSTRIAL", ("plant",))
    rows = pd.DataFrame(
        [
            {**dict.fromkeys(scenarios.COLUMNS, 0), "scenario": "plant", "protocol": protocol, "seed": seed}
            | {"metric": metric, "value": values[seed - 1], "settings": "0123e456"}
            | {"sim_time_s": TIMES_S[seed - 1], "transfer_bytes": TRAFFIC_BYTES[seed - 1]}
            for seed in (1, 2, 3)
            for protocol, (metric, values) in ENDS.items()
        ]
    )
    rows.to_csv(tmp_path / "measured.csv", index=False)
    return rows


def forget() -> None:
    scenarios.scenario_of.cache_clear()
    scenarios.network_text.cache_clear()


def test_a_line_has_the_learning_rate_and_the_interval_of_each_protocol(rows: pd.DataFrame) -> None:
    """Half widths by hand: 4.303 x 2 / sqrt(3) = 4.97, for deviations of 2 points and of 2."""
    space = scenarios.SAME
    assert cases.line("plant", rows) == [
        "[plant](/scenarios/plant.yaml)<br>How long does it take, and what does it cost?",
        f"[digits](/docs/data/digits.md)<br>`lte_m_m1`<br>4{space}devices in one cell",
        f"fedavg<br>my{space}own",
        f"0.25,{space}32,{space}momentum{space}0.9<br>0.01,{space}8",
        f"92.0{space}±{space}5.0{space}%<br>rmse{space}12.0{space}±{space}5.0",
        f"30{space}s<br>30{space}s",
        f"3{space}kB<br>3{space}kB",
    ]


def test_a_case_has_a_line_and_one_that_is_not_measured_says_so(rows: pd.DataFrame) -> None:
    _, _, line = cases.table_of("industrial").splitlines()
    assert line.startswith("| [plant](../scenarios/plant.yaml)<br>")
    assert "[digits](data/digits.md)<br>" in line
    assert cases.line("plant", rows[:0])[4:] == [f"not{scenarios.SAME}measured{scenarios.SAME}yet<br>", "", ""]


def test_a_scenario_without_a_question_is_described(rows: pd.DataFrame) -> None:
    path = scenarios.path_of("plant")
    path.write_text(path.read_text().replace("?", ".").replace("name: plant", "name: plant\ndescription: A plant"))
    forget()
    assert cases.question("plant") == "A plant"


def test_a_sentence_has_means_and_ranges_in_its_places(rows: pd.DataFrame) -> None:
    text = """{plant/fedavg/accuracy}, {plant/fedavg/accuracy/range};
    {plant/my own/rmse}, {plant/my own/rmse/range};
    {plant/my own/time}, {plant/my own/time/range} and {plant/fedavg/traffic}"""
    assert cases.ended(text) == "92.0 %, 90 to 94 %; 12, 10 to 14; 30 s, 10 to 60 s and 3 kB\n"


def test_a_sentence_without_numbers_says_so(rows: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scenarios, "MEASURED", scenarios.FOLDER / "none.csv")
    assert cases.ended("It ends at {plant/fedavg/accuracy}.") == "Its numbers are not measured yet.\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{plan/fedavg/accuracy}", "there is no scenario plan"),
        ("{plant/fedprox/accuracy}", "{plant/fedprox/accuracy}: there is no such protocol, only fedavg, my own"),
        ("{plant/fedavg/rmse}", "no such metric was measured, only accuracy"),
        ("{plant/fedavg/traffic/range}", "{plant/fedavg/traffic/range}: traffic has no range"),
        ("{plant/fedavg}", "no place is written like this: {plant/fedavg}"),
    ],
)
def test_a_place_that_leads_nowhere_is_told(rows: pd.DataFrame, text: str, said: str) -> None:
    with pytest.raises(AssertionError) as error:
        cases.ended(text)
    assert said in str(error.value)


def test_the_cases_of_the_page_are_scenarios() -> None:
    named = {*cases.INDUSTRIAL, *cases.RELATED}
    assert named <= set(scenarios.names())
    page = (ROOT / cases.PAGE).read_text("utf-8")
    assert [name for name in named if f"](../scenarios/{name}.yaml)" not in page] == []


@pytest.mark.parametrize("name", sorted({*cases.INDUSTRIAL, *cases.RELATED}))
def test_each_case_asks_a_question(name: str) -> None:
    assert cases.question(name).endswith("?")


# -- what sentences compare -------------------------------------------------------------------------------------------


def measured(scenario: str, protocol: str, what: str) -> pd.Series:
    """By seed: a metric of measured.csv, or one of its columns of costs."""
    rows = scenarios.measured()
    rows = rows[(rows["scenario"] == scenario) & (rows["protocol"] == protocol)]
    mine = rows.drop_duplicates("seed") if what in rows else rows[rows["metric"] == what]
    return mine.set_index("seed")[what if what in rows else "value"]


def bytes_of(scenario: str, protocol: str) -> pd.Series:
    return measured(scenario, protocol, "transfer_bytes")


def not_told_apart(scenario: str, what: str, one: str, other: str) -> pd.Series:
    """Whether the 95 % interval of what two protocols differ by, seed by seed, has 0 in it."""
    differences = measured(scenario, one, what) - measured(scenario, other, what)
    return pd.Series([abs(differences.mean()) < half_width(differences.tolist())])


SENTENCES = {
    "on each of the three seeds FedAvg raises fewer false alarms than FedGSP": lambda: (
        measured("bearings_night_shift", "fedavg", "false_alarms")
        < measured("bearings_night_shift", "fedgsp", "false_alarms")
    ),
    "and misses more faults": lambda: (
        measured("bearings_night_shift", "fedavg", "missed_faults")
        > measured("bearings_night_shift", "fedgsp", "missed_faults")
    ),
    "Of these, HFedMS-D needs the fewest bytes": lambda: (
        bytes_of("bearings_night_shift", "hfedms_d")
        < pd.concat([bytes_of("bearings_night_shift", other) for other in ("fedavg", "fedprox", "fedgsp")], axis=1).T
    ).all(),
    "A round takes less than a second for each protocol": lambda: (
        pd.concat([measured("cameras", name, "sim_time_s") for name in ("fedavg", "fedgsp", "hfedms_d")]) < 50
    ),
    "Three seeds do not tell FedAvg's error from that of the other two": lambda: pd.concat(
        [not_told_apart("engines", "rmse_cycles", "fedavg", other) for other in ("fedgsp", "hfedms_d")]
    ),
    "Three seeds do not tell the accuracies of the last two apart": lambda: not_told_apart(
        "cameras", "accuracy", "fedavg", "hfedms_d"
    ),
    "on each seed below HFedMS-D with it": lambda: (
        measured("wear", "no SCC", "accuracy") < measured("wear", "hfedms_d", "accuracy")
    ),
    "but by how much three seeds do not tell": lambda: not_told_apart("wear", "accuracy", "no SCC", "hfedms_d"),
    "a fifth less time than to `wait` for twenty": lambda: (
        measured("far_sensors_lte_m", "first", "sim_time_s") / measured("far_sensors_lte_m", "wait", "sim_time_s")
    ).between(0.76, 0.84),
    "and a quarter more bytes": lambda: (
        bytes_of("far_sensors_lte_m", "first") / bytes_of("far_sensors_lte_m", "wait")
    ).between(1.2, 1.3),
    "for a quarter of FedAvg's bytes": lambda: (
        bytes_of("quickstart", "hfedms_d") / bytes_of("quickstart", "fedavg")
    ).between(0.2, 0.3),
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_a_sentence_compares_was_measured_so_on_each_seed(sentence: str) -> None:
    page = " ".join((ROOT / cases.PAGE).read_text("utf-8").split())
    assert sentence in page
    assert SENTENCES[sentence]().all()
