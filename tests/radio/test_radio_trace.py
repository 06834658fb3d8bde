"""Rates from a file: what holds when for whom, and one message with file and line for whatever is wrong with it."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError
from radio_sites import site
from small_worlds import prepared

from fedsim.errors import Misfit, UserError
from fedsim.quick import in_seconds
from fedsim.radio import trace_file
from fedsim.radio.settings import Rates
from fedsim.radio.trace import Trace
from fedsim.scenario.yaml_reader import parse_yaml

HALL = """\
# measured in hall 3, night shift
time_s,device,uplink_bps,downlink_bps
0,cam-1,1000,2000
0,*,500,600.5
10,cam-1,0,2000
10.5,*,7e2,600.5
25,cam-1,1000,0
"""
TO_ALL = "time_s,uplink_bps,downlink_bps\n"
Write = Callable[..., Trace]


@pytest.fixture
def trace(tmp_path: Path) -> Write:
    """A radio that follows a file with the given content."""

    def write(content: str | bytes = HALL, **keys: Any) -> Trace:
        path = tmp_path / "hall.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return Trace(path=str(path), **keys)

    return write


def story(radio: Trace, sensor: str = "cam-1", changes: int = 100) -> list[tuple[float, float, float]]:
    """(seconds, uplink, downlink) of a sensor, from the start."""
    somewhere = site(None, sensor=sensor)
    rates = [(0.0, radio.rates(somewhere)), *islice(radio.changes(somewhere), changes)]
    return [(time_s, now.uplink_bps, now.downlink_bps) for time_s, now in rates]


def refusal(radio: Trace, sensor: str = "cam-1") -> str:
    with pytest.raises(Misfit) as refused:
        radio.rates(site(None, sensor=sensor))
    return str(refused.value).replace(radio.path, "hall.csv")


# -- what holds when, for whom ----------------------------------------------------------------------------------------


def test_a_row_holds_until_the_next_of_the_same_device(trace: Write) -> None:
    assert story(trace()) == [(0, 1000, 2000), (10, 0, 2000), (25, 1000, 0)]


def test_rows_for_everybody_are_for_those_without_their_own(trace: Write) -> None:
    assert story(trace(), "cam-2") == story(trace(), "cam-3") == [(0, 500, 600.5), (10.5, 700, 600.5)]


def test_without_a_device_column_all_rows_are_for_everybody(trace: Write) -> None:
    assert story(trace(TO_ALL + "0,1,2\n5,3,4\n")) == [(0, 1, 2), (5, 3, 4)]


def test_at_a_time_the_last_row_until_then_holds(trace: Write) -> None:
    radio = trace(TO_ALL + "0,1,2\n0.5,3,4\n5,5,6\n")
    assert [radio.rates_of([site()], time_s).uplink_bps[0] for time_s in (0.0, 0.5, 4.0, 9.0)] == [1, 3, 3, 5]


def test_the_smallest_and_the_largest_values_are_accepted(trace: Write) -> None:
    assert story(trace(TO_ALL + "0,1e-18,1e18\n1,0,1e-18\n2,1e18,0\n"))[1:] == [(1, 0, 1e-18), (2, 1e18, 0)]
    ratios = trace(
        "time_s,uplink_snr_db,downlink_snr_db\n0,-300,300\n", carrier={"profile": "pure", "bandwidth_hz": 1.0}
    )
    assert story(ratios) == [pytest.approx((0, 1e-30 / math.log(2), 30 * math.log2(10)))]


def test_a_traced_device_can_use_all_of_the_carrier(trace: Write) -> None:
    assert trace().rates(site()) == Rates(1000.0, 2000.0, 1.0, 1.0)


def test_a_repeated_file_begins_anew_with_its_first_row(trace: Write) -> None:
    again = story(trace(TO_ALL + "0,1,2\n5,3,4\n", repeat_every_s=8.0), changes=5)
    assert again == [(0, 1, 2), (5, 3, 4), (8, 1, 2), (13, 3, 4), (16, 1, 2), (21, 3, 4)]


def test_devices_repeat_together_however_many_rows_they_have(trace: Write) -> None:
    assert [time_s for time_s, *_ in story(trace(repeat_every_s=30.0), changes=6)] == [0, 10, 25, 30, 40, 55, 60]
    assert [time_s for time_s, *_ in story(trace(repeat_every_s=30.0), "x", changes=4)] == [0, 10.5, 30, 40.5, 60]


def test_what_never_changes_is_not_repeated(trace: Write) -> None:
    assert story(trace(TO_ALL + "0,1,2\n", repeat_every_s=1.0)) == [(0, 1, 2)]


def test_ratios_become_rates_by_a_carrier(trace: Write) -> None:
    content = "downlink_snr_db,uplink_snr_db,time_s\n20,10,0\n-11,-10,60\n"
    radio = trace(content, carrier={"profile": "lte_36942", "bandwidth_hz": 1e6})
    ten, twenty, edge = 0.4e6 * math.log2(11), 0.6e6 * math.log2(101), 0.4e6 * math.log2(1.1)
    assert story(radio) == [pytest.approx((0, ten, twenty)), pytest.approx((60, edge, 0))]


@pytest.mark.parametrize(
    "content",
    [
        "\ufeff" + TO_ALL + "0,1,2\n5,3,4\n",  # as Excel saves UTF-8
        TO_ALL.replace("\n", "\r\n") + "0,1,2\r\n5,3,4\r\n",
        TO_ALL + "0,1,2\n\n  ,,\n # a remark, with a comma\n5,3,4",
        'time_s,"uplink_bps",downlink_bps,rsrp_dbm\n 0 , 1 ,"2",-93\n5,3,4,\n',
        "downlink_bps,time_s,uplink_bps\n2,0,1\n4,5,3\n",
    ],
)
def test_many_ways_to_write_the_same(content: str, trace: Write) -> None:
    assert story(trace(content)) == [(0, 1, 2), (5, 3, 4)]


def test_a_file_is_read_once_until_it_changes(trace: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    first = trace()
    before = story(first)
    with monkeypatch.context() as patch:
        patch.setattr(trace_file, "_parse", None)  # would fail if it were called
        assert story(first) == before
    second = trace(TO_ALL + "0,1,2\n")
    os.utime(second.path, ns=(1, 1))
    assert story(second) == [(0, 1, 2)]


# -- coverage ---------------------------------------------------------------------------------------------------------


def test_a_device_whose_rate_comes_back_is_covered(trace: Write) -> None:
    assert trace().why_no_coverage(site()) is None


@pytest.mark.parametrize(
    ("content", "keys", "why"),
    [
        (
            TO_ALL + "0,0,1\n",
            {},
            "has no coverage in the uplink: hall.csv gives it uplink_bps=0 in its only row; write a larger uplink_bps",
        ),
        (
            TO_ALL + "0,1,0\n5,1,0\n",
            {},
            "has no coverage in the downlink: hall.csv gives it downlink_bps=0 in all of its 2 rows; write a larger do",
        ),
        (
            "time_s,uplink_snr_db,downlink_snr_db\n0,-11,5\n9,-12,5\n",
            {"carrier": {"profile": "lte_36942", "bandwidth_hz": 1e6}},
            "has no coverage in the uplink: hall.csv gives it uplink_snr_db=-11 at best, and lte_36942 needs -10; wri",
        ),
    ],
)
def test_who_is_never_covered_is_told_why(content: str, keys: dict[str, Any], why: str, trace: Write) -> None:
    radio = trace(content, **keys)
    told = str(radio.why_no_coverage(site())).replace(radio.path, "hall.csv")
    assert told.startswith(f"sensor 'cam-1' {why}")
    assert told.endswith("leave such sensors out with out_of_coverage: exclude")
    assert trace(content, **keys, out_of_coverage="exclude").excludes_uncovered


# -- which sensors ----------------------------------------------------------------------------------------------------


def test_every_device_in_the_file_must_be_a_sensor(trace: Write) -> None:
    radio = trace()
    radio.check_sensors(["cam-1", "cam-2"])
    with pytest.raises(Misfit, match="the topology has no sensor 'cam-1'; did you mean 'cam-01'") as refused:
        radio.check_sensors(["cam-01", "cam-02"])
    assert str(refused.value).startswith(f"{radio.path}:3: ")
    assert refused.value.key == ("path",)


def test_every_sensor_must_have_rows(trace: Write) -> None:
    radio = trace("time_s,device,uplink_bps,downlink_bps\n0,cam-1,1,2\n")
    expected = "hall.csv has no rows for sensor 'cam-2', only for 'cam-1'; add some, or rows for the device *"
    assert refusal(radio, "cam-2") == expected


@pytest.mark.parametrize(
    ("device", "sensors", "hand"),
    [
        ("cam2", ["cam-1", "cam-2"], "; did you mean 'cam-2'?"),
        ("CAM-2", ["cam-1", "cam-2"], "; did you mean 'cam-2'?"),
        ("cam-3", ["cam-1"], ", only 'cam-1'; rename or remove its rows"),  # which has rows of its own
        ("x", ["cam-1", "b", "c", "d", "e"], ", only 'cam-1', 'b', 'c' and 2 more; rename or remove its rows"),
    ],
)
def test_the_nearest_sensor_without_rows_is_named(device: str, sensors: list[str], hand: str, trace: Write) -> None:
    radio = trace(f"{DEVICES}0,cam-1,1,2\n0,{device},1,2\n")
    with pytest.raises(Misfit) as refused:
        radio.check_sensors(sensors)
    assert str(refused.value) == f"{radio.path}:3: the topology has no sensor {device!r}{hand}"


# -- what is wrong with a file ----------------------------------------------------------------------------------------

DEVICES = "time_s,device,uplink_bps,downlink_bps\n"
SNRS = "time_s,uplink_snr_db,downlink_snr_db\n"
BROKEN: dict[str, tuple[str, str]] = {
    "empty": (
        "",
        "hall.csv:1: the file has no line with names of columns; it must begin with time_s,uplink_bps,downlink",
    ),
    "only names": (TO_ALL, "hall.csv:1: there are no rows below the names of the columns; add one for time 0"),
    "no names": (
        "0,1,2\n",
        "hall.csv:1: no column is called 'time_s'; the columns are '0', '1', '2', and time_s, uplink",
    ),
    "one name": (
        "rsrp\n-93\n",
        "hall.csv:1: no column is called 'time_s'; the columns are 'rsrp', and time_s, uplink_bps, downlink_bps (or "
        "uplink_snr_db and downlink_snr_db) are needed",
    ),
    "no downlink": (
        "time_s,uplink_bps\n0,1\n",
        "hall.csv:1: no column is called 'downlink_bps'; the columns are 'time_s', 'uplink_bps', and time_s, "
        "uplink_bps, downlink_bps are needed",
    ),
    "misspelt": (
        "time,uplink_bps,downlink_bps\n",
        "hall.csv:1: the column 'time' is not read; did you mean 'time_s'? Ren",
    ),
    "another unit": (
        "time_s,uplink_mbps,downlink_mbps\n",
        "hall.csv:1: the column 'uplink_mbps' is not read; did you mean 'uplink_bps'? Rename or remove it",
    ),
    "twice": ("time_s," + TO_ALL, "hall.csv:1: two columns are called 'time_s'; keep one"),
    "both kinds": (
        "time_s,uplink_bps,downlink_bps,uplink_snr_db,downlink_snr_db\n",
        "hall.csv:1: there are columns of rates and of signal-to-noise ratios, and one kind is needed; remove the",
    ),
    "semicolons": (
        TO_ALL.replace(",", ";") + "0;1,5;2\n",
        "hall.csv:1: columns are separated by commas, and numbers have",
    ),
    "too few": (TO_ALL + "0,1,2\n5,1\n", "hall.csv:3: 2 columns, and the first line names 3"),
    "text": (TO_ALL + "0,1,fast\n", "hall.csv:2: downlink_bps='fast' must be a finite number"),
    "NaN": (TO_ALL + "0,nan,2\n", "hall.csv:2: uplink_bps='nan' must be a finite number"),
    "too fast for anything": (
        TO_ALL + "0,1e308,1e308\n",
        "hall.csv:2: uplink_bps=1e+308 must be 0 or from 1e-18 to 1e+18",
    ),
    "negative": (TO_ALL + "0,1,2\n1,-3,2\n", "hall.csv:3: uplink_bps=-3 must be at least 0; 0 is no coverage"),
    "deafening": (
        SNRS + "0,1,301\n",
        "hall.csv:2: downlink_snr_db=301 must be from -300 to 300 dB; -300 is no coverage",
    ),
    "late start": (
        DEVICES + "0,*,1,2\n3,a,1,2\n",
        "hall.csv:3: the first row of 'a' is at time_s=3 and must be at 0; add a row with time_s=0 before it",
    ),
    "back in time": (
        DEVICES + "0,a,1,2\n9,a,1,2\n12,a,1,2\n0,b,1,2\n12,a,1,2\n",
        "hall.csv:6: time_s=12 of 'a' comes after 12, and times must increase; sort the rows",
    ),
    "nobody": (DEVICES + "0, ,1,2\n", "hall.csv:2: no device; write * for all that have no rows of their own"),
    "an open quote": (TO_ALL + '0,"1,2\n5,3,4\n', "hall.csv:3: unexpected end of data; is this a CSV file?"),
    "one endless line": (
        "x" * 200_000,
        "hall.csv:1: a row has more than 100000 characters, and each may have so many at most",
    ),
    "many columns": (
        ",".join(f"c{n}" for n in range(99)),
        "hall.csv:1: no column is called 'time_s'; the columns are 'c0',",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_file_is_refused_with_its_line(what: str, trace: Write) -> None:
    content, expected = BROKEN[what]
    said = refusal(trace(content))
    assert said.startswith(expected)
    assert "\n" not in said and len(said) < 300


def test_columns_that_nobody_asked_for_are_not_all_printed(trace: Write) -> None:
    said = refusal(trace(BROKEN["many columns"][0]))
    assert "'c9' and 89 more, and time_s" in said


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"time_s,uplink_bps,downlink_bps\n0,1,\xff\n", "hall.csv:2: is not UTF-8 text (byte 0xff)"),
        (b"\x1f\x8b\x08\x00", "hall.csv: is compressed (gzip), and text is needed; unpack it"),
    ],
)
def test_a_file_that_is_no_text_is_refused(content: bytes, expected: str, trace: Write) -> None:
    with pytest.raises(ValidationError) as refused:  # its digest is wanted first
        trace(content)
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hal.csv", "hal.csv: there is no such file; did you mean 'hall.csv'?"),
        (".", "is a folder; the path of a trace is needed"),
        ("no/hall.csv", "no such file, and no folder"),
        ("null\0.csv", "cannot be read"),
    ],
)
def test_a_file_that_is_not_there_is_refused(name: str, expected: str, trace: Write, tmp_path: Path) -> None:
    trace()
    with pytest.raises(ValidationError) as refused:
        Trace(path=str(tmp_path / name))
    assert expected in str(refused.value)


def test_a_path_that_leads_in_a_circle_is_refused(tmp_path: Path) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(ValidationError, match="cannot be looked up"):
        Trace(path=str(tmp_path / "circle" / "hall.csv"))


def test_a_long_trace_is_refused_where_an_answer_is_wanted_in_seconds(
    trace: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_file, "MOST_BYTES_IN_SECONDS", 10)
    path = Path(trace().path)
    assert trace_file.read_trace_file(path).series
    trace_file._read.cache_clear()
    with in_seconds(), pytest.raises(UserError, match=r"hall\.csv: has 1 MB of a trace, and at most 0 are looked at"):
        trace_file.read_trace_file(path)


def test_a_row_without_end_is_not_read_to_its_end(trace: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "LONGEST_ROW", 60)
    with pytest.raises(UserError, match=r"hall\.csv:2: a row has more than 60 characters"):
        trace_file.read_trace_file(Path(trace(TO_ALL + "0,1," + "2" * 60 + "\n").path))


def test_a_file_without_end_is_not_read_to_its_end(trace: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_file, "MOST_BYTES", 50)
    with pytest.raises(ValidationError, match="is too large: a trace is at most"):
        trace()


# -- what is wrong with the keys --------------------------------------------------------------------------------------


def test_ratios_need_a_carrier_and_rates_none(trace: Write) -> None:
    carrier = {"profile": "pure", "bandwidth_hz": 1e6}
    needs = "hall.csv holds signal-to-noise ratios, and they need a carrier to become rates; add carrier: {profile: "
    assert refusal(trace(SNRS + "0,1,2\n")).startswith(needs)
    assert refusal(trace(carrier=carrier)) == "hall.csv holds rates already; leave the carrier out"


def test_a_file_ends_before_it_is_repeated(trace: Write) -> None:
    expected = "repeat_every_s=25 must be later than the last row of 'cam-1' in hall.csv, at 25 s"
    assert refusal(trace(repeat_every_s=25.0)) == expected
    assert story(trace(repeat_every_s=25.0), "cam-2", changes=2)[-1] == (25, 500, 600.5)  # its last one is at 10.5 s


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"repeat_every_s": 0.0}, "greater than or equal to 0.001"),
        ({"repeat_every_s": 1e-9}, "greater than or equal to 0.001"),
        ({"repeat": True}, "Extra inputs are not permitted"),
        ({"carrier": {"profile": "pure"}}, "needs bandwidth_hz"),
    ],
)
def test_keys_that_make_no_sense_are_refused(keys: dict[str, Any], message: str, trace: Write) -> None:
    with pytest.raises(ValidationError, match=message):
        trace(**keys)


# -- the same file, wherever and whenever -----------------------------------------------------------------------------


def test_a_path_is_relative_to_the_document_that_names_it(trace: Write, tmp_path: Path) -> None:
    absolute = trace()
    document = parse_yaml("name: plant", str(tmp_path / "scenarios" / "plant.yaml"))
    beside = Trace.model_validate({"name": "trace", "path": "../hall.csv"}, context=document)
    assert story(beside) == story(absolute)
    assert Path(beside.path).is_absolute()
    assert Trace.model_validate(beside.model_dump(), context=SimpleNamespace(source="/elsewhere/x.yaml")) == beside


def test_without_a_document_a_path_is_relative_to_the_working_directory(
    trace: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absolute = trace()
    monkeypatch.chdir(tmp_path)
    assert Trace(path="hall.csv") == absolute


def test_the_file_s_digest_is_filled_in(trace: Write) -> None:
    assert trace().sha256 == hashlib.sha256(HALL.encode()).hexdigest()
    assert trace(sha256=hashlib.sha256(HALL.encode()).hexdigest().upper()).rates(site()) == trace().rates(site())


def test_another_file_under_the_same_name_is_noticed(trace: Write) -> None:
    before = trace()
    after = trace(HALL.replace("1000", "2000"))
    assert before != after
    expected = "hall.csv is another file than this scenario was made with: its digest is "
    assert refusal(before) == (f"{expected}{after.sha256}; bring the old one back, or leave sha256 out to use this one")


def test_a_scenario_with_a_digest_can_be_read_without_the_file(trace: Write) -> None:
    written = trace()
    Path(written.path).unlink()
    again = Trace.model_validate(written.model_dump())
    assert again == written
    assert "there is no such file" in refusal(again)


def test_a_device_without_coverage_in_one_direction_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("time_s,uplink_bps,downlink_bps\n0,1000,0\n")
    with pytest.raises(UserError, match="has no coverage in the downlink"):
        prepared({"network.cell.radio": {"name": "trace", "path": str(tmp_path / "one.csv")}})


def test_a_device_that_can_never_receive_and_send_at_the_same_time_is_refused(tmp_path: Path) -> None:
    # It would wait for its turn without end: nobody is asked who could not answer.
    (tmp_path / "one.csv").write_text("time_s,uplink_bps,downlink_bps\n0,1000,0\n10,0,1000\n")
    radio = {"name": "trace", "path": str(tmp_path / "one.csv"), "repeat_every_s": 20.0}
    with pytest.raises(UserError, match="is never in coverage: .* no row with both an uplink and a downlink"):
        prepared({"network.cell.radio": radio})
    (tmp_path / "one.csv").write_text("time_s,uplink_bps,downlink_bps\n0,1000,0\n10,0,1000\n15,1,1\n")
    prepared({"network.cell.radio": radio})
