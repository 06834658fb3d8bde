"""A run is shown while it goes on: not too often, and always to its end."""

from __future__ import annotations

import io
import itertools

import pytest
from rich.console import Console

from fedsim.cli.progress import progress
from fedsim.experiment.progress.bars import Bars
from fedsim.experiment.progress.display import Display, done_share
from fedsim.experiment.progress.lines import LINE_INTERVAL_S, Lines
from fedsim.protocols.fedavg import FedAvg
from fedsim.protocols.run_loop import Round, Stop

FEDAVG = FedAvg(clients=2)


def round_number(number: int, accuracy: float | None = None) -> Round:
    metrics = (
        {}
        if accuracy is None
        else {"global": {"accuracy": accuracy, "loss": 1.0}, "clients": {"accuracy": 0.0, "loss": 1.0}}
    )
    return Round(number, number * 10.0, number * 2e6, number * 1e6, 2, metrics)


class Clock:
    """Real time, as the test has it."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def test_a_line_tells_round_clock_accuracy_and_bytes() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Clock())
    lines.begin(FEDAVG, 1, Stop(rounds=40), clients=80)
    lines.round_done(FEDAVG, 1, round_number(20, accuracy=0.871))
    assert stream.getvalue().splitlines() == [
        "fedavg seed 1: begins with 80 clients",
        "fedavg seed 1: round 20/40, simulated 0:03:20, accuracy 0.871, 60 MB",
    ]


def test_what_is_told_of_the_whole_run_is_a_line_before_all_others() -> None:
    stream, terminal = io.StringIO(), io.StringIO()
    lines, bars = Lines(stream, Clock()), Bars(Console(file=terminal, force_terminal=True, width=120), Clock())
    for display in (lines, bars):
        display.tell("Executor: serial, 1 worker, [bold]")
        assert not display.saw_a_run
        display.begin(FEDAVG, 1, Stop(rounds=40), clients=80)
    assert stream.getvalue().splitlines()[0] == "Executor: serial, 1 worker, [bold]"
    assert terminal.getvalue().startswith("Executor: serial, 1 worker, [bold]")


def test_lines_keep_their_distance_and_the_last_round_is_always_told() -> None:
    stream, clock = io.StringIO(), Clock()
    lines = Lines(stream, clock)
    lines.begin(FEDAVG, 1, Stop(rounds=100), clients=80)
    for number in range(1, 101):
        clock.now_s += 0.1
        lines.round_done(FEDAVG, 1, round_number(number))
    lines.end(FEDAVG, 1)
    told = [int(line.split("round ")[1].split("/")[0]) for line in stream.getvalue().splitlines()[1:]]
    apart = round(LINE_INTERVAL_S / 0.1)
    assert told[-1] == 100
    assert 3 <= len(told) <= 2 + 100 / apart
    assert all(later - earlier >= apart for earlier, later in itertools.pairwise(told[:-1]))


def test_the_last_round_is_told_once() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Clock())
    lines.begin(FEDAVG, 1, Stop(rounds=1), clients=80)
    lines.round_done(FEDAVG, 1, round_number(1))
    lines.end(FEDAVG, 1)
    assert len(stream.getvalue().splitlines()) == 2


def test_an_accuracy_that_came_after_the_last_round_is_told_at_the_end() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Clock())
    lines.begin(FEDAVG, 1, Stop(sim_time_s=15.0), clients=80)
    last = round_number(1)
    lines.round_done(FEDAVG, 1, last)
    last.metrics["global"] = {"accuracy": 0.5, "loss": 1.0}
    lines.end(FEDAVG, 1)
    assert stream.getvalue().splitlines()[-1] == "fedavg seed 1: round 1, simulated 10 s, accuracy 0.500, 3 MB"


def test_an_accuracy_stays_until_the_next_evaluation() -> None:
    stream, clock = io.StringIO(), Clock()
    lines = Lines(stream, clock)
    lines.begin(FEDAVG, 1, Stop(rounds=3), clients=80)
    lines.round_done(FEDAVG, 1, round_number(1, accuracy=0.25))
    clock.now_s += LINE_INTERVAL_S
    lines.round_done(FEDAVG, 1, round_number(2))
    assert "round 2/3" in stream.getvalue()
    assert stream.getvalue().count("accuracy 0.250") == 2


@pytest.mark.parametrize(
    ("stop", "share"),
    [
        (Stop(rounds=40), 0.25),
        (Stop(sim_time_s=200.0), 0.5),
        (Stop(transfer_bytes=40e6), 0.75),
        (Stop(rounds=40, sim_time_s=200.0, transfer_bytes=40e6), 0.75),
        (Stop(rounds=5), 1.0),
        (Stop(rounds=40, target_accuracy=0.9), 0.25),
        (Stop(target_accuracy=0.9), None),
    ],
)
def test_the_nearest_limit_tells_how_much_is_done(stop: Stop, share: float | None) -> None:
    assert done_share(stop, round_number(10)) == share


def test_a_bar_ends_as_a_line_that_names_its_protocol_as_it_is() -> None:
    terminal = io.StringIO()
    bars = Bars(Console(file=terminal, force_terminal=True, width=120), Clock())
    protocol = FedAvg(clients=2, label="[bold]mine")
    with bars.shown():
        for seed in (1, 2):
            bars.begin(protocol, seed, Stop(target_accuracy=0.9), clients=80)
            bars.round_done(protocol, seed, round_number(3, accuracy=0.5))
            bars.end(protocol, seed)
    for seed in (1, 2):
        assert f"[bold]mine seed {seed}: round 3, simulated 30 s, accuracy 0.500, 9 MB, real 0 s" in terminal.getvalue()


def test_quiet_shows_nothing_but_knows_that_something_ran(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=True) as display:
        assert type(display) is Display
        assert not display.saw_a_run
        display.tell("Executor: serial")
        display.begin(FEDAVG, 1, Stop(rounds=2), clients=80)
        display.round_done(FEDAVG, 1, round_number(1))
        display.end(FEDAVG, 1)
        assert display.saw_a_run
    assert capsys.readouterr() == ("", "")


def test_on_a_pipe_there_are_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with progress(quiet=False) as display:
        display.begin(FEDAVG, 1, Stop(rounds=2), clients=80)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == "fedavg seed 1: begins with 80 clients\n"


def test_a_line_says_that_the_model_diverged() -> None:
    stream = io.StringIO()
    lines = Lines(stream, Clock())
    lines.begin(FEDAVG, 1, Stop(rounds=40), clients=80)
    lines.round_done(FEDAVG, 1, Round(3, 30.0, 2e6, 1e6, 2, {"global": {"accuracy": None, "loss": float("inf")}}))
    assert stream.getvalue().splitlines()[-1] == ("fedavg seed 1: round 3/40, simulated 30 s, the model diverged, 3 MB")
