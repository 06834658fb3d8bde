"""From Python, a run is shown as its surroundings allow: in a notebook, on a terminal, or not at all."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
from nbclient import NotebookClient
from notebook_cells import Screen, ZMQInteractiveShell
from small_worlds import NO_REMARK, scenario

from fedsim.experiment.progress import notebook
from fedsim.experiment.progress.bars import Bars
from fedsim.experiment.progress.display import Display
from fedsim.experiment.progress.lines import Lines
from fedsim.experiment.progress.notebook import NotebookBars
from fedsim.experiment.progress.surroundings import display_for, in_notebook
from fedsim.experiment.run import run
from fedsim.protocols.fedavg import FedAvg
from fedsim.protocols.run_loop import Round, Stop
from fedsim.scenario.load import written_out

FEDAVG = FedAvg(clients=2, label="<b>mine</b>")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def kernel(monkeypatch: pytest.MonkeyPatch, shell: object) -> None:
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("terminal", "progress", "shown"),
    [
        (True, None, Bars),
        (True, True, Bars),
        (True, False, Display),
        (False, None, Display),
        (False, True, Lines),
        (False, False, Display),
    ],
)
def test_without_a_notebook_a_terminal_decides(
    terminal: bool, progress: bool | None, shown: type[Display], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal() if terminal else io.StringIO())
    kernel(monkeypatch, None)
    with display_for(progress) as display:
        assert type(display) is shown


@pytest.mark.parametrize(("progress", "shown"), [(None, NotebookBars), (True, NotebookBars), (False, Display)])
def test_in_a_notebook_there_are_its_bars(
    progress: bool | None, shown: type[Display], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shell(ZMQInteractiveShell):
        """As some services have it."""

    kernel(monkeypatch, Shell())
    with display_for(progress) as display:
        assert type(display) is shown


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, object())
    assert not in_notebook()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not in_notebook()
    assert "IPython" not in sys.modules


def test_a_notebooks_bar_moves_and_ends_as_a_line(screen: Screen) -> None:
    now_s = [100.0]
    bars = NotebookBars(lambda: now_s[0])
    with bars.shown():
        bars.tell("Executor: serial")
        bars.begin(FEDAVG, 1, Stop(rounds=4), clients=2)
        assert 'value="0.000"' in screen.content["text/html"]
        now_s[0] += 1
        bars.round_done(FEDAVG, 1, Round(1, 10.0, 2e6, 1e6, 2))
        assert 'value="0.250"></progress> &lt;b&gt;mine&lt;/b&gt; seed 1: round 1/4' in screen.content["text/html"]
        bars.end(FEDAVG, 1)
    assert "<progress" not in screen.content["text/html"]
    assert screen.content["text/plain"].splitlines() == [
        "Executor: serial",
        "<b>mine</b> seed 1: round 1/4, simulated 10 s, 3 MB, real 1 s",
    ]


def test_a_notebooks_bar_of_a_target_has_no_end(screen: Screen) -> None:
    bars = NotebookBars(lambda: 100.0)
    bars.begin(FEDAVG, 1, Stop(target_accuracy=0.9), clients=2)
    bars.round_done(FEDAVG, 1, Round(1, 10.0, 2e6, 1e6, 2))
    assert "value=" not in screen.content["text/html"] and "<progress" in screen.content["text/html"]


def test_a_thousand_rounds_are_drawn_a_few_times(screen: Screen) -> None:
    now_s = [100.0]
    bars = NotebookBars(lambda: now_s[0])
    bars.begin(FEDAVG, 1, Stop(rounds=1000), clients=2)
    for number in range(1, 1001):
        now_s[0] += 0.001
        bars.round_done(FEDAVG, 1, Round(number, 10.0 * number, 2e6, 1e6, 2))
    bars.end(FEDAVG, 1)
    assert screen.sent <= 2 + 1 / notebook.REDRAW_INTERVAL_S + 1


def test_an_interrupted_run_leaves_no_bar_in_a_notebook(screen: Screen) -> None:
    bars = NotebookBars(lambda: 100.0)
    with pytest.raises(KeyboardInterrupt), bars.shown():
        bars.begin(FEDAVG, 1, Stop(rounds=4), clients=2)
        bars.round_done(FEDAVG, 1, Round(3, 30.0, 2e6, 1e6, 2))
        raise KeyboardInterrupt
    assert "<progress" not in screen.content["text/html"]
    assert screen.content["text/plain"] == "<b>mine</b> seed 1: round 3/4, simulated 30 s, 3 MB, stopped"


@pytest.mark.parametrize(("progress", "lines"), [(None, 0), (False, 0), (True, 3)])
def test_a_pipe_has_lines_when_they_are_asked_for(
    progress: bool | None, lines: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(scenario({"stop": {"rounds": 2}}), out=tmp_path / "run", progress=progress)
    printed = capsys.readouterr()
    assert (printed.out, len(printed.err.splitlines())) == ("", lines)


def test_a_finished_run_shows_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        run(scenario(), out=tmp_path / "run")
    run(scenario(), out=tmp_path / "run", progress=True)
    assert capsys.readouterr() == ("", "")


CELLS = ("import fedsim", 'results = fedsim.run(fedsim.load("scenario.yaml"), out="run")', "results", "results.plot()")


@pytest.mark.long
def test_in_a_real_notebook_one_output_stays_and_results_show_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = scenario({**NO_REMARK, "seeds": [1, 2], "stop": {"rounds": 2}})
    (tmp_path / "scenario.yaml").write_text(written_out(small))
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, CELLS)))
    NotebookClient(notebook, resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, (output,), (table,), (figure,) = (cell.outputs for cell in notebook.cells)
    assert output.output_type == "display_data"
    assert [line.partition(", real")[0] for line in output.data["text/plain"].splitlines()] == [
        f"fedavg seed {seed}: round 2/2, simulated 10.4 s, 8 kB" for seed in (1, 2)
    ]
    assert output.data["text/html"].count("<div>fedavg seed") == 2 and "<progress" not in output.data["text/html"]
    assert "<table" in table.data["text/html"] and table.data["text/plain"].startswith("small, in run")
    assert "image/png" in figure.data
