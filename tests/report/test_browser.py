"""The page in a real browser: it opens without complaint, sorts, filters, takes decisions and gives them back."""

from __future__ import annotations

import csv
import shutil
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_runs import PATIENCE
from report_pages import made_up
from typer.testing import CliRunner

import mipl
from mipl.cli import app
from mipl.io.decisions import apply_decisions, read_decisions
from mipl.io.tables import is_formula

webdriver = pytest.importorskip("selenium.webdriver", reason="the browser tests need selenium")
By = pytest.importorskip("selenium.webdriver.common.by").By
if not (shutil.which("chromium") and shutil.which("chromedriver")):
    pytest.skip("the browser tests need chromium and chromedriver (Debian: chromium-driver)", allow_module_level=True)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--window-size=1280,1000",
)
HOSTILE = [
    "</script><script>document.title='hacked'</script>",
    "=1+1",
    " -x",
    "none of these",
    "a,\"b\";'c'",
    "＝日本 🦉",
]


class Browser:
    """One page at a time, in a driver that keeps what the page stores."""

    def __init__(self, driver: Any, downloads: Path) -> None:
        self.driver, self.downloads = driver, downloads

    def open(self, page: Path) -> None:
        self.driver.get(page.as_uri())

    def all(self, selector: str) -> list[Any]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def shown(self) -> list[str]:
        """The bags of this page of the list."""
        return self.driver.execute_script(
            "return [...document.querySelectorAll('.bag h3 bdi')].map(x => x.textContent)"
        )

    def choose(self, tool: str, value: str) -> None:
        self.one(f"[data-tool={tool}] option[value='{value}']").click()

    def press(self, keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(keys)

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def exported(self) -> Path:
        """The file that the export button downloads."""
        target = self.downloads / "decisions.csv"
        target.unlink(missing_ok=True)
        self.one("[data-action=export]").click()
        self.wait_for(lambda: target.exists() and target.stat().st_size)
        return target

    def wait_for(self, condition: Callable[[], object]) -> None:
        limit = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < limit
            time.sleep(0.05)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    downloads = tmp_path_factory.mktemp("downloads")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield Browser(driver, downloads)
    finally:
        driver.quit()


def test_a_page_of_digits_sorts_and_filters_and_its_decisions_find_their_way_back(browser, tmp_path, monkeypatch):
    data = mipl.load("digits", r=2, seed=0)
    found = mipl.resolve(data, mipl.make("PL-kNN"))
    browser.open(found.report(tmp_path / "page.html"))
    ids = found.bag_ids.astype(str)
    assert browser.shown() == ids[np.argsort(found.margin, kind="stable")[:20]].tolist()
    drawn = (
        "return [...document.querySelectorAll('canvas')].every(c =>"
        " new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size > 3)"
    )
    browser.wait_for(lambda: browser.driver.execute_script(drawn))

    browser.choose("order", "id")
    assert browser.shown() == sorted(ids.tolist(), key=int)[:20]
    browser.choose("order", "size")
    sizes = found.bags.sizes[[ids.tolist().index(bag) for bag in browser.shown()]]
    assert sizes.tolist() == sorted(found.bags.sizes.tolist(), reverse=True)[:20]

    wrong = np.array([a != b for a, b in zip(found.labels, found.truth, strict=True)])
    browser.choose("state", "wrong")
    assert f"of {wrong.sum()}. 0 decided." in browser.one("[data-out=status]").text
    assert set(browser.shown()) <= set(ids[wrong])
    browser.one("[data-action=reset]").click()
    browser.one("[data-tool=text]").send_keys("13")
    assert set(browser.shown()) == {bag for bag in ids if "13" in bag}
    browser.one("[data-action=reset]").click()
    browser.one("[data-action=next]").click()
    assert browser.shown() == ids[np.argsort(found.margin, kind="stable")[20:40]].tolist()
    browser.one("[data-action=open][data-row='3']").click()
    assert browser.driver.switch_to.active_element.get_attribute("data-row") == "3"
    browser.press("2")
    assert browser.complaints() == []

    browser.exported().replace(tmp_path / "d.csv")
    data.save(tmp_path / "digits.parquet")
    words = ["resolve", "digits.parquet", "-m", "PL-kNN", "--decisions", "d.csv", "--out", "labels.csv"]
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, words).exit_code == 0
    with (tmp_path / "labels.csv").open(newline="", encoding="utf-8") as file:
        rows = {row["bag_id"]: row for row in csv.DictReader(file)}
    bag = np.argsort(found.margin, kind="stable")[3]
    answer = rows[ids[bag]]
    assert (answer["label"], answer["probability"]) == (found.second_label[bag], "1.0")
    assert answer["candidates"] == found.second_label[bag]


def test_the_keyboard_decides_and_a_decision_survives_a_reload(browser, tmp_path):
    found = made_up()
    page = found.report(tmp_path / "page.html")
    browser.open(page)
    browser.press(webdriver.Keys.TAB)
    assert browser.driver.switch_to.active_element.get_attribute("class") == "skip"
    browser.driver.execute_script("document.querySelector('.bag').focus()")
    first, second, third, fourth = browser.shown()[:4]
    for key in "cj2jnjcu":
        browser.press(key)
    label = dict(zip(found.bag_ids.tolist(), found.labels.tolist(), strict=True))
    other = dict(zip(found.bag_ids.tolist(), found.second_label.tolist(), strict=True))
    wanted = {first: label[first], second: other[second], third: None}
    assert read_decisions(browser.exported()) == wanted

    def reopened() -> bool:
        browser.open(page)
        return "3 decided" in browser.one("[data-out=status]").text

    browser.wait_for(reopened)  # Chromium hands what a page stored to the next one a moment later
    browser.choose("state", "decided")
    assert browser.shown() == [first, second, third]
    browser.choose("state", "open")
    assert browser.shown()[0] == fourth
    browser.choose("state", "decided")
    browser.one("[data-action=undo]").click()
    assert read_decisions(browser.exported()) == {second: other[second], third: None}
    assert browser.complaints() == []


def test_hostile_names_are_text_and_come_back_through_the_exported_file(browser, tmp_path):
    ids = np.array([*HOSTILE, *(f"bag {i}" for i in range(14))])
    data = mipl.MIPLDataset([np.full((1, 2), i) for i in range(20)], [HOSTILE] * 20, bag_ids=ids)
    posterior = np.random.default_rng(0).dirichlet(np.ones(6), 20)
    found = made_up(20, q=6, bags=data.bags, classes=data.classes, bag_ids=data.bag_ids, posterior=posterior,
                    candidates=data.candidates, instance_probabilities=None)  # fmt: skip
    browser.open(found.report(tmp_path / "page.html", title=HOSTILE[0], decisions={"bag 13": None}))
    assert browser.driver.title.endswith("· mipl")
    wanted: dict[str, str | None] = {"bag 13": None}
    for i, bag in enumerate(browser.shown()):
        if bag in HOSTILE:
            label = HOSTILE[HOSTILE.index(bag) - 1]
            wanted[bag] = label
            buttons = browser.driver.execute_script(
                "return [...document.querySelectorAll('.bag')[arguments[0]].querySelectorAll('.choice')]", i
            )
            next(
                b for b in buttons if b.find_element(By.CSS_SELECTOR, "bdi").get_attribute("textContent") == label
            ).click()
    file = browser.exported()
    assert read_decisions(file) == wanted
    cells = [cell for row in csv.reader(file.read_text(encoding="utf-8-sig").splitlines()) for cell in row]
    assert not any(map(is_formula, cells))
    decided = apply_decisions(data, read_decisions(file))
    assert {
        bag: sets
        for bag, sets in zip(decided.bag_ids.tolist(), decided.candidate_sets(), strict=True)
        if len(sets) == 1
    } == {bag: [label] for bag, label in wanted.items() if label is not None}
    assert browser.complaints() == []


def test_of_twenty_thousand_bags_twenty_are_shown_and_they_fit_a_phone(browser, tmp_path):
    page = made_up(20_000, q=30, size=3, shape=(28, 28), candidates=None).report(tmp_path / "page.html")
    browser.open(page)
    browser.choose("order", "id")
    assert browser.shown() == [f"bag-{i}" for i in range(20)]
    menu = browser.one(".bag select")
    menu.click()
    n_bars = len(browser.one(".bag").find_elements(By.CSS_SELECTOR, ".choice"))
    assert len(menu.find_elements(By.TAG_NAME, "option")) == 1 + 30 - n_bars
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        assert browser.driver.execute_script("return document.documentElement.scrollWidth") <= 390
        right = "return [...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().right)"
        (end,) = browser.driver.execute_script(right, ".levels")
        assert max(browser.driver.execute_script(right, ".levels span")) <= end + 1  # the last number is not cut off
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert browser.complaints() == []


def test_inside_another_page_without_storage_it_works_and_says_so(browser, tmp_path):
    html = made_up(8).report(tmp_path / "page.html").read_text(encoding="utf-8")
    outer = tmp_path / "notebook.html"
    quoted = html.replace("&", "&amp;").replace('"', "&quot;")
    outer.write_text(f'<iframe sandbox="allow-scripts" width="900" height="700" srcdoc="{quoted}"></iframe>')
    browser.open(outer)
    browser.driver.switch_to.frame(0)
    browser.one("[data-action=confirm]").click()
    assert "1 decided, not kept by this browser" in browser.one("[data-out=status]").text
    for colour in ("light", "dark", ""):
        browser.one("[data-action=theme]").click()
        assert browser.one(".mipl-page").get_attribute("data-theme") == colour
    assert browser.complaints() == []


def test_the_columns_of_the_histogram_are_as_high_as_their_counts(browser, tmp_path):
    browser.open(made_up(400, q=3).report(tmp_path / "page.html"))
    columns = browser.driver.execute_script(
        "return [...document.querySelectorAll('.column')].map(column => ["
        "Number(column.querySelector('.number').textContent), column.querySelector('.fill').clientHeight])"
    )
    counts, heights = np.array(columns).T
    assert counts.sum() == 400
    assert heights.max() > 80
    assert np.abs(heights - counts / counts.max() * heights.max()).max() <= 1.5


@pytest.mark.parametrize("width", [390, 1280])
def test_shares_before_and_after_have_one_scale_and_none_is_cut_off(browser, tmp_path, width):
    found = made_up(60, q=13, truth=np.array([f"class {i % 13}" for i in range(60)], dtype=object))
    browser.open(found.report(tmp_path / "page.html"))
    browser.driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        tracks = browser.driver.execute_script(
            "return [...document.querySelectorAll('.shares .bar')].filter(bar => bar.checkVisibility())"
            ".map(bar => bar.getBoundingClientRect().width)"
        )
        assert len(tracks) == 24
        assert min(tracks) > 15
        assert max(tracks) - min(tracks) <= 1
        cut_off = (
            "return [...document.querySelectorAll('.card')].flatMap(card => [card, ...card.querySelectorAll('*')])"
            ".filter(e => e.checkVisibility() && e.clientHeight && !e.matches('.aside, .aside *, svg *, .fill')"
            " && (e.scrollHeight > e.clientHeight + 6 || e.scrollWidth > e.clientWidth + 6)).map(e => e.outerHTML)"
        )
        assert browser.driver.execute_script(cut_off) == []
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_candidate_shows_that_it_can_be_chosen_and_that_it_was(browser, tmp_path):
    browser.open(made_up(8).report(tmp_path / "page.html"))
    mark = "return getComputedStyle(document.querySelector('.choice .name'), '::before').borderTopWidth"
    free = browser.driver.execute_script(mark)
    assert float(free.removesuffix("px")) >= 1
    browser.one(".choice").click()
    assert browser.driver.execute_script(mark) != free


def test_long_names_do_not_stretch_the_cards(browser, tmp_path):
    names = np.array([f"class {c} " + "a" * 300 for c in range(6)])
    ids = np.array([f"bag {i} " + "b" * 300 for i in range(60)])
    cards = "return [...document.querySelectorAll('.card')].map(card => card.getBoundingClientRect().height)"
    heights = []
    for changes in ({}, {"classes": names, "bag_ids": ids}):
        browser.open(made_up(60, q=6, **changes).report(tmp_path / "page.html"))
        heights.append(browser.driver.execute_script(cards))
    assert max(heights[1]) < 2000


def test_counts_above_the_columns_of_the_histogram_have_room(browser, tmp_path):
    found = made_up(20_000, q=12, size=1, shape=(1,), candidates=None, instance_probabilities=None)
    browser.open(found.report(tmp_path / "page.html"))
    boxes = browser.driver.execute_script(
        "return [...document.querySelectorAll('.column .number')].filter(e => e.textContent).map(e => {"
        " const range = document.createRange(); range.selectNodeContents(e); const box = range.getBoundingClientRect();"
        " return [box.left, box.right, box.top, box.height]; })"
    )
    top = browser.driver.execute_script(
        "return document.querySelector('#mipl-certainty').getBoundingClientRect().bottom"
    )
    boxes.sort()
    assert all(first[1] <= second[0] for first, second in pairwise(boxes))
    assert all(box[2] >= top and box[3] < 20 for box in boxes)
    ticks = "return [...document.querySelectorAll('.tick, .end-tick')].map(e => e.getBoundingClientRect().height)"
    assert max(browser.driver.execute_script(ticks)) < 25  # one line each


def test_a_histogram_of_few_columns_fits_screens_of_any_width(browser, tmp_path):
    sure = np.linspace(0.96, 1, 40)
    found = made_up(40, q=2, posterior=np.stack([sure, 1 - sure], axis=1), candidates=np.ones((40, 2), dtype=bool))
    browser.open(found.report(tmp_path / "page.html"))
    try:
        for width in range(320, 1300, 70):
            size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 500}
            browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
            page = "return document.documentElement."
            needed, given = (browser.driver.execute_script(page + side) for side in ("scrollWidth", "clientWidth"))
            assert needed <= given <= width
            edges = "return [...document.querySelectorAll(arguments[0])].pop().getBoundingClientRect()"
            column, end = (browser.driver.execute_script(edges, name) for name in (".column", ".end-tick"))
            assert (end["left"] + end["right"]) / 2 == pytest.approx(column["right"], abs=2)
    finally:
        browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_no_instance_is_framed_for_the_background_class(browser, tmp_path):
    found = made_up(q=3, background="class 1")
    browser.open(found.report(tmp_path / "page.html"))
    labels = dict(zip(found.bag_ids.tolist(), found.labels.tolist(), strict=True))
    framed, said = (
        browser.driver.execute_script(
            f"return [...document.querySelectorAll('.bag')].map(b => b.querySelectorAll('{what}').length)"
        )
        for what in (".instance.best", ".unframed")
    )
    silent = [labels[bag] == "class 1" for bag in browser.shown()]
    assert True in silent
    assert framed == [0 if each else 1 for each in silent]
    assert said == [1 if each else 0 for each in silent]
    assert "No instance shows class 1, the background class" in browser.one(".unframed").text
    assert browser.complaints() == []
