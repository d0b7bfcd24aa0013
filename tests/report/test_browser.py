"""Opens the report of a real run in a real browser."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Page, find_browser, open_browser

from tkg_incremental.report import write_report

pytestmark = pytest.mark.skipif(
    find_browser() is None and os.environ.get("CI") != "true",
    reason="no Chromium found; with Debian: apt-get install chromium",
)

# What a reader would see of each element: its box, and whether its text goes beyond the drawing.
BOXES = """JSON.stringify([...document.querySelectorAll('figure, figure svg, figure table')].map(e => {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  return {name: e.tagName + '#' + (e.closest('figure').id || e.closest('figure').innerText.split('\\n')[0]),
          width: box.width, height: box.height, visible: style.visibility == 'visible' && style.opacity == '1'};
}))"""
CLIPPED = """JSON.stringify([...document.querySelectorAll('svg text')].filter(e => {
  const box = e.getBoundingClientRect(), frame = e.closest('svg').getBoundingClientRect();
  return box.left < frame.left - 1 || box.right > frame.right + 1 || box.top < frame.top - 1
      || box.bottom > frame.bottom + 1;
}).map(e => e.closest('figure').id + ': ' + e.textContent))"""
OVERLAPPING = """JSON.stringify([...document.querySelectorAll('svg')].flatMap(svg => {
  const boxes = [...svg.querySelectorAll('text.tx')].map(e => e.getBoundingClientRect());
  return boxes.slice(1).filter((box, i) => box.left < boxes[i].right).map(() => svg.closest('figure').id);
}))"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if find_browser() is None:
        pytest.fail("CI needs a browser: add chromium to its system packages")
    with open_browser(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_everything_is_there_to_see(page: Page, run: Any, width: int, scheme: str) -> None:
    page.complaints.clear()
    page.requests.clear()
    address = write_report(run.folder).as_uri()
    page.look(width, scheme=scheme)
    page.open(address)
    assert page.complaints == []
    assert page.requests == [address]

    boxes = json.loads(page.evaluate(BOXES))
    assert len([box for box in boxes if box["name"].startswith("svg#")]) == 17
    unseen = [box for box in boxes if not box["visible"] or box["width"] < 200 or box["height"] < 40]
    assert unseen == []
    assert json.loads(page.evaluate(CLIPPED)) == []
    assert json.loads(page.evaluate(OVERLAPPING)) == []
    # Wide tables scroll in a frame of their own; the page as a whole does not.
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_dark_and_light_differ(page: Page, run: Any) -> None:
    address = write_report(run.folder).as_uri()
    colours = []
    for scheme in ("light", "dark"):
        page.look(1280, scheme=scheme)
        page.open(address)
        style = "getComputedStyle(document.{}).{}"
        colours.append(
            (page.evaluate(style.format("body", "backgroundColor")), page.evaluate(style.format("body", "color")))
        )
    (light_page, light_ink), (dark_page, dark_ink) = colours
    assert light_page == "rgb(255, 255, 255)"
    assert sum(map(int, dark_page[4:-1].split(","))) < 150 < sum(map(int, dark_ink[4:-1].split(",")))
    assert sum(map(int, light_ink[4:-1].split(","))) < 150


@pytest.mark.parametrize("width", [1280, 390])
def test_every_chart_shows_its_values_on_touch(page: Page, run: Any, width: int) -> None:
    page.complaints.clear()
    page.look(width)
    page.open(write_report(run.folder).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    charts = json.loads(page.evaluate("JSON.stringify([...document.querySelectorAll('figure.chart')].map(f => f.id))"))
    assert len(charts) == 17
    for name in charts:
        # Beside a dot, as a finger would be.
        shown = page.evaluate(
            f"(() => {{ const figure = document.getElementById({name!r}); figure.scrollIntoView();"
            "const marks = [...figure.querySelectorAll('svg title')]; const mark = marks[marks.length - 1];"
            "const box = mark.parentElement.getBoundingClientRect();"
            "const at = {clientX: box.right + 3, clientY: box.top + box.height / 2, bubbles: true};"
            "figure.querySelector('svg').dispatchEvent(new MouseEvent('click', at));"
            "const tip = document.getElementById('tip');"
            "const texts = marks.map(each => each.textContent);"
            "return !tip.hidden && texts.includes(tip.textContent); })()"
        )
        assert shown, name
    page.evaluate("document.querySelector('h1').click()")
    assert page.evaluate("document.getElementById('tip').hidden")
    assert page.complaints == []


def test_wide_tables_show_that_they_scroll(page: Page, run: Any) -> None:
    """On a phone, what is wider than its frame has a shadow at its side; nothing is cut without one."""
    page.look(390)
    page.open(write_report(run.folder).as_uri())
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    tables = json.loads(
        page.evaluate(
            "JSON.stringify([...document.querySelectorAll('table')].filter(t => {"
            "const frame = t.parentElement; return frame.scrollWidth > frame.clientWidth + 1;"
            "}).map(t => [t.parentElement.className, getComputedStyle(t.parentElement).backgroundImage"
            ".split('linear-gradient').length - 1, t.parentElement.tabIndex]))"
        )
    )
    assert tables  # ranks of many steps
    assert all(each == ["scroll", 4, 0] for each in tables)


def test_it_prints(page: Page, run: Any, tmp_path: Path) -> None:
    page.look(1280, scheme="dark")
    page.open(write_report(run.folder).as_uri())
    page.pdf(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")
    # On paper it is light, whatever the screen is.
    page.call("Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.call("Emulation.setEmulatedMedia", media="")
    assert paper == "rgb(255, 255, 255)"
