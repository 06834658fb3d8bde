"""A report in a browser without any network: all charts are drawn, nothing complains, nothing asks for anything."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pages_read import Page
from small_studies import HOSTILE, PROTOCOLS, small_study
from tiny_results import write_sweep

from fedsim.experiment.several_results import load_several
from fedsim.report.page import write_report

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed; `make test-long` does it")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium; on Debian: apt-get install chromium"),
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


class Visit:
    """A page that is open, and what has happened on it."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, **options: Any) -> None:
        self.happened: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        self.page = context.new_page()
        self.page.route("**/*", self._route)
        self.page.on("console", lambda message: self.happened.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.happened.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.happened.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        self._own = path.resolve().as_uri()
        self.page.goto(self._own)

    def _route(self, route: Any) -> None:
        if route.request.url == self._own:
            route.continue_()
        else:
            self.happened.append(f"asked for {route.request.url}")
            route.abort()

    def drawn(self) -> int:
        """How many charts there are when all are done."""
        self.page.wait_for_function("document.documentElement.dataset.charts !== undefined")
        return int(self.page.evaluate("Number(document.documentElement.dataset.charts)"))

    def marks(self, key: str, kind: str = "path") -> int:
        return int(self.page.locator(f"#{key} .chart .mark-{kind} path").count())


@pytest.fixture
def visit(browser: Any, written: Path) -> Iterator[Visit]:
    visit = Visit(browser, written)
    yield visit
    visit.page.context.close()


def test_all_charts_are_drawn_and_nothing_is_asked_for(visit: Visit, page: Page) -> None:
    assert visit.drawn() == len(page.specs) == visit.page.locator(".chart svg").count()
    assert visit.happened == []
    for key in page.specs:
        shapes = visit.page.locator(f"#{key} .chart svg [class*=mark-] path, #{key} .chart svg [class*=mark-] line")
        assert shapes.count() > 1, key
    assert visit.page.locator("#map .drawing svg path").count() > 10
    assert not visit.page.locator(".instead").count()


def test_the_pointer_shows_the_value_of_a_point(visit: Visit, page: Page) -> None:
    visit.drawn()
    chart = visit.page.locator("#score-over-rounds .chart")
    chart.scroll_into_view_if_needed()
    visit.page.locator("#score-over-rounds .chart .mark-symbol path").first.hover(force=True)
    tooltip = visit.page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    shown = dict(row.split("\t") for row in tooltip.inner_text().strip().split("\n"))
    first = page.specs["score-over-rounds"]["datasets"]["points"][0]
    assert shown["protocol"] == first["name"] and shown["round"] == str(first["round"])
    assert float(shown["test accuracy"]) == pytest.approx(first["mean"], rel=1e-3)
    assert shown["95 % interval"] == first["half"]
    assert visit.happened == []


def test_a_name_above_a_chart_hides_its_line_in_all_charts_also_by_key(visit: Visit) -> None:
    visit.drawn()
    charts = ("score-over-time", "loss-over-rounds", "front-of-time")
    before = {key: visit.marks(key, "symbol") for key in charts}
    buttons = visit.page.locator('button[data-line="0"]')
    buttons.first.focus()
    visit.page.keyboard.press("Enter")
    visit.page.wait_for_function("document.querySelectorAll('#score-over-time .mark-symbol path').length === 8")
    assert {buttons.nth(at).get_attribute("aria-pressed") for at in range(buttons.count())} == {"false"}
    assert {key: visit.marks(key, "symbol") for key in charts} == {key: count / 2 for key, count in before.items()}
    buttons.last.click()
    visit.page.wait_for_function("document.querySelectorAll('#score-over-time .mark-symbol path').length === 16")
    assert visit.happened == []


def on_a_phone(browser: Any, report: Path) -> Visit:
    """With all that folds opened; the page is not wider than the phone."""
    visit = Visit(browser, report, width=390)
    visit.drawn()
    visit.page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= 390
    return visit


def test_a_phone_scrolls_tables_and_not_the_page(browser: Any, written: Path) -> None:
    visit = on_a_phone(browser, written)
    inside = "[...document.querySelectorAll('caption')].filter((one) => one.getBoundingClientRect().right > 390).length"
    assert visit.page.evaluate(inside) == 0  # a caption folds where its table scrolls
    assert visit.page.evaluate("document.querySelector('#map svg').clientWidth") >= 900  # its letters are read
    wide = "[...document.querySelectorAll('.chart svg')].filter((one) => one.clientWidth > 390).length"
    assert visit.page.evaluate(wide) == 0
    assert visit.happened == []
    visit.page.context.close()


def test_long_names_fold_in_tables_on_a_phone(browser: Any, hostile_report: Path) -> None:
    visit = on_a_phone(browser, hostile_report)
    widest = "Math.max(...[...document.querySelectorAll('th span')].map((one) => one.getBoundingClientRect().width))"
    assert visit.page.evaluate(widest) <= 144
    visit.page.context.close()


def test_a_run_of_one_seed_and_one_protocol_is_drawn_without_complaint(browser: Any, tmp_path: Path) -> None:
    write_report([small_study(tmp_path / "run", ["fedavg"], seeds=1)], tmp_path / "one.html")
    visit = Visit(browser, tmp_path / "one.html")
    assert visit.drawn() == visit.page.locator("[data-chart]").count()
    assert visit.happened == []
    visit.page.context.close()


def test_a_sweep_over_hostile_texts_is_drawn_without_complaint(browser: Any, tmp_path: Path) -> None:
    sweep = write_sweep(tmp_path / "sweep", ["training.text", "training.number"], [[text, 1] for text in HOSTILE])
    for number, point in enumerate(sorted((sweep / "points").iterdir())):
        shutil.rmtree(point)
        small_study(point, ["fedavg"], seeds=1 + number % 2)  # without an interval at every second point
    write_report(load_several([sweep]), tmp_path / "sweep.html")
    visit = on_a_phone(browser, tmp_path / "sweep.html")
    assert visit.drawn() == visit.page.locator("[data-chart]").count()
    assert visit.marks("varied-time-1", "symbol") == len(HOSTILE)
    visit.page.locator("#varied-time-1 button").click()
    visit.page.wait_for_function("document.querySelectorAll('#varied-time-1 .mark-symbol path').length === 0")
    assert visit.marks("time-by-protocol", "rect") == len(HOSTILE)
    assert visit.happened == []
    visit.page.context.close()


def test_without_javascript_each_chart_says_so_and_has_its_numbers(browser: Any, written: Path, page: Page) -> None:
    visit = Visit(browser, written, java_script_enabled=False)
    assert visit.page.locator(".instead").count() == len(page.specs)
    assert visit.page.locator("#score-over-time .instead").is_visible()
    visit.page.locator("#score-over-time summary").click()
    assert visit.page.locator("#score-over-time td").first.is_visible()
    visit.page.context.close()


def test_hostile_names_run_nothing(browser: Any, hostile_report: Path) -> None:
    visit = Visit(browser, hostile_report)
    assert visit.drawn() == visit.page.locator("[data-chart]").count()
    assert visit.happened == []
    visit.page.locator("#score-over-rounds .chart").scroll_into_view_if_needed()
    visit.page.locator("#score-over-rounds .chart .mark-symbol path").first.hover(force=True)
    tooltip = visit.page.locator("#vg-tooltip-element.visible")
    tooltip.wait_for()
    assert "<script>alert(1)</script>" in tooltip.inner_text()
    assert visit.page.locator("script").count() == 2 + visit.page.locator('script[type="application/json"]').count()
    assert visit.page.evaluate("document.scrollingElement.scrollWidth") <= 1280
    assert visit.happened == []
    visit.page.context.close()


def test_the_policy_lets_no_script_run_and_nothing_load_that_was_put_in(visit: Visit) -> None:
    """Were something of the above ever wrong, this is what would still hold."""
    visit.drawn()
    visit.page.evaluate(
        """() => {
            const script = document.createElement("script");
            script.textContent = "document.title = 'run'";
            document.body.append(script);
            const picture = new Image();
            picture.src = "https://example.org/x.png";
            document.body.append(picture);
        }"""
    )
    visit.page.wait_for_timeout(200)
    assert visit.page.title() != "run"
    assert len(visit.happened) >= 2 and all("Content Security Policy" in one for one in visit.happened)
    tried = "(done) => setTimeout(() => { try { done(eval('1')); } catch { done('refused'); } })"
    assert visit.page.evaluate(f"() => new Promise({tried})") == "refused"


def test_protocols_are_told_apart_in_the_legend(visit: Visit) -> None:
    names = visit.page.locator("#score-over-time .legend button").all_inner_texts()
    assert names == list(PROTOCOLS)
