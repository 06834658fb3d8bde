"""The block in which a shipped scenario says what it ends with: what it means, and what is said of a wrong one."""

from __future__ import annotations

import pytest
from pages import ROOT, fenced
from writers.expected import Row, column, in_header, misses

from fedsim.errors import UserError

BOTH = "# Expected on seeds 1 to 3, and by hand:"
ROW = "#   fedavg  accuracy 0.9 to 0.95  time 12.4 min"


def rows(*lines: str) -> dict[str, Row]:
    return in_header("\n".join(["# A plant.", "#", *lines, "name: plant"]), "plant.yaml")


def refusal(*lines: str) -> str:
    with pytest.raises(UserError) as refused:
        rows(*lines)
    return str(refused.value)


def test_a_block_has_ranges_and_what_was_worked_out_by_hand() -> None:
    assert rows(
        BOTH,
        '#   "fedavg, twice"    accuracy 0.9 to 0.95    macro_f1 0.8 to 0.9    time 2 h    traffic 1,423.5 MB',
        "#  'no \"SCC\"'  rmse_cycles 15 to 20  traffic 22 kB",
        "#   T=5  loss -1 to 0",
        "#",
        "# Prose:",
        "#   fedavg  is not read any more",
    ) == {
        "fedavg, twice": Row(
            {"accuracy": (0.9, 0.95), "macro_f1": (0.8, 0.9)}, {"time": 7200, "traffic": 1_423_500_000}
        ),
        'no "SCC"': Row({"rmse_cycles": (15, 20)}, {"traffic": 22_000}),
        "T=5": Row({"loss": (-1, 0)}),
    }


@pytest.mark.parametrize(
    ("written", "seconds"), [("63 ms", 0.063), ("90 s", 90), ("1.5 min", 90), ("8 h", 28_800), ("1,200 s", 1200)]
)
def test_time_has_a_unit(written: str, seconds: float) -> None:
    assert rows("# Expected by hand:", f"#   fedavg  time {written}")["fedavg"].by_hand == {
        "time": pytest.approx(seconds)
    }


@pytest.mark.parametrize(
    ("written", "size_bytes"), [("7 B", 7), ("93.5 kB", 93_500), ("1 MB", 1e6), ("200 GB", 2e11), ("0.2 TB", 2e11)]
)
def test_traffic_has_a_unit(written: str, size_bytes: float) -> None:
    assert rows("# Expected by hand:", f"#   fedavg  traffic {written}")["fedavg"].by_hand == {"traffic": size_bytes}


def test_the_block_may_end_with_the_comment_and_stands_in_the_comment_at_the_beginning() -> None:
    assert list(rows(BOTH, ROW)) == ["fedavg"]
    assert in_header(f"name: plant\n{BOTH}\n{ROW}\n", "plant.yaml") == {}
    assert rows("# Here 97 % are expected:", "# nothing else.") == {}


def test_the_example_in_the_guide_is_a_block() -> None:
    [example] = fenced(ROOT / "CONTRIBUTING.md", "yaml")
    assert list(in_header(example, "CONTRIBUTING.md")) == ["fedavg", "fedavg, as many steps", "centralised"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("# fedavg  accuracy 0.9 to 1", "'fedavg  accuracy 0.9 to 1' is not indented; "),
        ("#   fedavg", "nothing stands behind 'fedavg'; write: protocol  METRIC LOW to HIGH "),
        ('#   "fedavg  accuracy 0.9 to 1', "'\"fedavg  accuracy 0.9 to 1' does not begin with a protocol; "),
        ("#   fedavg, twice  accuracy 0.9 to 1", "does not begin with a protocol; put titles with a comma in quotes"),
        ("#   no SCC  accuracy 0.9 to 1", "'SCC' is no metric; "),
        ("#   fedavg  0.9 to 1", "'0.9' is no metric; "),
        ("#   fedavg  accuracy 0.9", "'accuracy 0.9' is no range; write accuracy LOW to HIGH"),
        ("#   fedavg  accuracy 0.9 - 1", "'accuracy 0.9 - 1' is no range; "),
        ("#   fedavg  accuracy 90% to 1", "'90%' is no number; write digits, such as 0.95 or 1,423"),
        ("#   fedavg  accuracy 0.9 to 14,23", "'14,23' is no number; "),
        ("#   fedavg  accuracy 0.95 to 0.9", "accuracy 0.95 to 0.9: the smaller number comes first"),
        ("#   fedavg  accuracy 0.9 to 1  accuracy 0.8 to 1", "'fedavg' has 'accuracy' twice"),
        ("#   fedavg  time 1 s  time 2 s", "'fedavg' has 'time' twice"),
        ("#   fedavg  time 12.4", "time 12.4: the unit must be one of ms, s, min, h"),
        ("#   fedavg  traffic 1 GiB", "traffic 1 GiB: the unit must be one of B, kB, MB, GB, TB"),
        ("#   fedavg  time 0 s", "time 0 s: must be above 0; "),
        ("#   fedavg  time about min", "'about' is no number; "),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(line: str, said: str) -> None:
    message = refusal(BOTH, line)
    assert message.startswith("plant.yaml:4: ")
    assert said in message


@pytest.mark.parametrize(
    ("lines", "place", "said"),
    [
        ([BOTH, "#"], 3, "no row follows; "),
        ([BOTH, ROW, ROW], 5, "'fedavg' stands twice; "),
        ([BOTH, ROW, "#", BOTH, ROW], 6, "a second block of what is expected; "),
        (
            ["# Expected on seed 1:", ROW],
            3,
            "'Expected on seed 1:' is no title of a block; write one of: 'Expected on seeds",
        ),
        (["# expected by hand:", ROW], 3, "'expected by hand:' is no title of a block; "),
        ([BOTH, "#   a  accuracy 0 to 1"], 3, "for what the rows have it must be 'Expected on seeds 1 to 3:'"),
        (["# Expected by hand:", ROW], 3, "for what the rows have it must be 'Expected on seeds 1 to 3, and by hand:'"),
        ([BOTH, "#   a  time 1 s"], 3, "for what the rows have it must be 'Expected by hand:'"),
        ([BOTH, ROW, "#   a  time 1 s"], 3, "'a' has no range of a metric, and other protocols have; add one"),
    ],
)
def test_what_is_wrong_with_a_block_is_said_with_its_line(lines: list[str], place: int, said: str) -> None:
    message = refusal(*lines)
    assert message.startswith(f"plant.yaml:{place}: ")
    assert said in message


@pytest.mark.parametrize(
    ("metrics", "sim_time_s", "transfer_bytes", "said"),
    [
        ({"accuracy": 0.9, "rmse": 20.0}, 90.0, 2.2e6, []),
        ({"accuracy": 0.95, "rmse": 15.0}, 110.0, 1.8e6, []),
        ({"accuracy": 0.8999, "rmse": 20.0}, 90.0, 2e6, ["accuracy 0.8999 is not within 0.9 to 0.95"]),
        ({"accuracy": 0.9501, "rmse": 20.0}, 90.0, 2e6, ["accuracy 0.9501 is not within 0.9 to 0.95"]),
        ({"accuracy": 0.9, "rmse": float("nan")}, 100.0, 2e6, ["rmse nan is not within 15 to 20"]),
        ({"accuracy": 0.9}, 100.0, 2e6, ["rmse nan is not within 15 to 20"]),
        ({"accuracy": 0.9, "rmse": 20.0}, 89.0, 2e6, ["time 89 s is not within 10 % of the 100 s by hand"]),
        ({"accuracy": 0.9, "rmse": 20.0}, 111.0, 2e6, ["time 111 s is not within 10 % of the 100 s by hand"]),
        ({"accuracy": 0.9, "rmse": 20.0}, 90.0, 1.7e6, ["traffic 1.70 MB is not within 10 % of the 2 MB by hand"]),
        ({"accuracy": 0.9, "rmse": 20.0}, float("nan"), 2e6, ["time nan s is not within 10 % of the 100 s by hand"]),
    ],
)
def test_a_run_is_within_its_ranges_and_a_tenth_of_what_was_worked_out(
    metrics: dict[str, float], sim_time_s: float, transfer_bytes: float, said: list[str]
) -> None:
    row = Row({"accuracy": (0.9, 0.95), "rmse": (15.0, 20.0)}, {"time": 100.0, "traffic": 2e6})
    assert list(misses(row, metrics, sim_time_s=sim_time_s, transfer_bytes=transfer_bytes)) == said


def test_what_was_not_worked_out_is_not_compared() -> None:
    assert list(misses(Row({"accuracy": (0.5, 1)}), {"accuracy": 0.5}, sim_time_s=1e9, transfer_bytes=1e9)) == []


def test_a_metric_is_a_column_of_the_summary() -> None:
    columns = ["final_accuracy", "final_accuracy_own", "rmse", "macro_f1"]
    assert [column(name, columns) for name in ("accuracy", "final_accuracy", "rmse")] == [
        "final_accuracy",
        "final_accuracy",
        "rmse",
    ]
    with pytest.raises(UserError, match=r"no column 'acuracy' or 'final_acuracy'; did you mean 'accuracy'\?"):
        column("acuracy", columns)
