"""Results show themselves: printed, and in a notebook."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.text import Text
from tiny_results import rounds_of, summary_of, write_results

import fedsim
from fedsim.experiment.figures import save_figures
from fedsim.experiment.results import Results
from fedsim.viz.save import save_figure
from fedsim.viz.style import RC
from fedsim.viz.tables import WIDTH


def with_remarks(results: Results, *remarks: str) -> Results:
    results.manifest["remarks"] = list(remarks)
    return results


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Results:
    monkeypatch.chdir(tmp_path)
    runs = [rounds_of(protocol, seed, [0.5, 0.75]) for protocol in ("fedavg", "<b>mine</b>") for seed in (1, 2)]
    return with_remarks(write_results(Path("run"), runs, name="study"), "<b>a</b> is worse")


def test_text_has_name_folder_table_and_remarks(results: Results) -> None:
    assert repr(results).splitlines() == [
        "study, in run",
        "            seeds accuracy   loss simulated time   uplink downlink rounds",
        "fedavg          2    0.750  0.250           20 s  1.33 MB   667 kB      2",
        "<b>mine</b>     2    0.750  0.250           20 s  1.33 MB   667 kB      2",
        "Remark: <b>a</b> is worse",
    ]
    assert str(results) == repr(results)


def test_text_of_many_columns_is_no_wider_than_a_terminal(tmp_path: Path) -> None:
    runs = [rounds_of("a_protocol_of_a_long_name", seed, [0.5, 0.7 + seed / 10]) for seed in (1, 2)]
    more = {"energy_j": 3e6, "time_to_target_s": 12.0, "bytes_to_target": 2e6, "final_accuracy_clients": 0.123}
    summary = [summary_of(run, **{key: value * (1 + i) for key, value in more.items()}) for i, run in enumerate(runs)]
    text = repr(with_remarks(write_results(tmp_path / "run", runs, summary=summary), "word " * 50))
    first, *lines = text.splitlines()
    assert max(map(len, lines)) <= WIDTH and first.startswith("tiny, in ")
    for title in ("accuracy, clients", "energy", "bytes to target"):
        assert title in text


class Cells(HTMLParser):
    """The texts of a page, tags left out."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.tags: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts += [data.strip()] if data.strip() else []


def test_html_has_the_same_and_escapes_names(results: Results) -> None:
    page = results._repr_html_()
    assert page is not None
    shown = Cells(page)
    assert shown.texts[:3] == ["study", ", in", "run"]
    row = ["<b>mine</b>", "2", "0.750", "0.250", "20 s", "1.33 MB", "667 kB", "2"]
    assert shown.texts[-len(row) - 1 :] == [*row, "Remark: <b>a</b> is worse"]
    assert "b" not in shown.tags


def test_a_long_name_is_not_cut_in_html(tmp_path: Path) -> None:
    name = "x" * 80
    assert name in (write_results(tmp_path / "run", [rounds_of(name, 1, [0.5])])._repr_html_() or "")


def test_results_that_are_spoilt_can_still_be_looked_at(results: Results) -> None:
    (results.folder / "summary.csv").write_text("nothing")
    spoilt = Results(results.folder)
    assert repr(spoilt).startswith("Results that cannot be read: run/summary.csv is no table of a run")
    assert spoilt._repr_html_() is None


# -- figures -----------------------------------------------------------------------------------------------------------


def test_the_plot_is_the_overview_that_is_saved_and_shows_itself(results: Results) -> None:
    figure = results.plot()
    saved = next(path for path in save_figures([results], Path("figures")) if path.stem == "overview")
    with mpl.rc_context(RC):
        assert save_figure(figure, Path("shown.png")).read_bytes() == saved.read_bytes()
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_several_runs_are_one_plot(results: Results, tmp_path: Path) -> None:
    other = write_results(tmp_path / "other", [rounds_of("fedavg", 1, [0.25, 0.5])], name="second")
    figure = fedsim.plot([results, other.folder])
    words = {text.get_text() for ax in figure.axes for text in ax.findobj(Text)}
    words |= {text.get_text() for legend in figure.legends for text in legend.get_texts()}
    assert any("study" in word for word in words) and any("second" in word for word in words)


def test_a_plot_leaves_pyplot_alone() -> None:
    code = "import sys, fedsim.viz.overview; assert 'matplotlib.pyplot' not in sys.modules"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
