"""Several runs in one table and on one page."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tkg_incremental.cli import main
from tkg_incremental.cli.plot import Curve, Point, line_plot, nice_ticks
from tkg_incremental.training import Result

Fails = Callable[..., str]


def test_seeds_share_a_line(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["compare", *map(str, runs.values())]) == 0
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["run", "seeds", "steps", "C@10", "DF@10"]
    assert len(rows) == 2
    assert rows[0].startswith("TIE · DE · TabularTKG  0, 1   8")
    assert rows[1].startswith("FT · DE · TabularTKG   0      8")
    values = [Result.load(runs[name] / "metrics.json").summary["A@10"] for name in ("tie-0", "tie-1")]
    assert f"{statistics.mean(values):.2f} ± {statistics.stdev(values):.2f}" in rows[0]
    assert "±" not in rows[1]


def test_json(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["compare", "--json", *map(str, runs.values())]) == 0
    tie, ft = json.loads(capsys.readouterr().out)
    assert (tie["seeds"], ft["seeds"]) == ([0, 1], [0])
    values = [Result.load(runs[name] / "metrics.json").summary["C@10"] for name in ("tie-0", "tie-1")]
    assert tie["mean"]["C@10"] == pytest.approx(statistics.mean(values))
    assert tie["std"]["C@10"] == pytest.approx(statistics.stdev(values))
    assert ft["std"]["C@10"] is None


def test_runs_of_the_same_name_that_differ_are_told_apart(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["tie-0"], tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "settings": "another learning rate"}))
    capsys.readouterr()
    assert main(["compare", str(runs["tie-0"]), str(tmp_path / "other"), str(runs["tie-0"])]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("  ")[0] for row in rows] == [
        f"TIE · DE · TabularTKG ({runs['tie-0']})",
        f"TIE · DE · TabularTKG ({tmp_path / 'other'})",
    ]


class Page(HTMLParser):
    """Counts what is on a page, and refuses what would have to be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.labels: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        names = dict(attrs)
        assert not {"src", "href", "srcset"} & set(names)
        assert tag not in ("script", "link", "iframe")
        if names.get("role") == "img":
            self.labels.append(str(names["aria-label"]))


def test_page(runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pages" / "comparison.html"
    assert main(["compare", *map(str, runs.values()), "--html", str(path)]) == 0
    assert f"Curves in {path}" in capsys.readouterr().out
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    assert page.labels == ["C@10", "A@10", "DF@10", "RRD", "F@10", "epoch_seconds"]
    assert page.tags.count("tr") == 3
    assert "url(" not in text
    assert "nan" not in re.sub(r"<style>.*</style>", "", text, flags=re.DOTALL).lower()
    # One circle for each group and step with a value.
    results = [Result.load(runs[name] / "metrics.json") for name in ("tie-0", "ft-0")]
    values = [step.get("A@10", math.nan) for result in results for step in result.steps]
    figure = text.split('aria-label="A@10"')[1].split("</svg>")[0]
    assert figure.count("<circle") == sum(not math.isnan(value) for value in values)
    # The two seeds span a band where they differ.
    first, second = (Result.load(runs[name] / "metrics.json").steps for name in ("tie-0", "tie-1"))
    for name in ("A@10", "C@10", "DF@10", "RRD"):
        differ = any(a.get(name) != b.get(name) for a, b in zip(first, second, strict=True) if name in a and name in b)
        assert text.split(f'aria-label="{name}"')[1].split("</svg>")[0].count('class="band"') == differ
    assert 'class="band"' in text


def test_errors(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    assert "arguments are required: RUN" in fails(2, "compare")
    assert "there is no run folder" in fails(3, "compare", runs["tie-0"], tmp_path / "none")
    assert "has no metrics.json" in fails(3, "compare", tmp_path)
    (tmp_path / "metrics.json").write_text('{"steps": ')
    assert "is damaged" in fails(3, "compare", tmp_path)


# The plot ----------------------------------------------------------------------------------------------


def test_plot_places_values_and_leaves_gaps() -> None:
    points = [Point(0, 0.0), Point(1, 10.0), Point(2, math.nan), Point(3, 5.0)]
    svg = line_plot("a < b", [Curve(0, "x & y", points)], {time: f"{2000 + time}" for time in range(4)})
    lines = re.findall(r'class="line"[^>]* d="M([^"]*)"', svg)
    assert [len(line.split("L")) for line in lines] == [2, 1]
    circles = [tuple(map(float, found)) for found in re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', svg)]
    (x0, y0), (x1, y1), (x3, y3) = circles
    assert x0 < x1 < x3
    assert x3 - x1 == pytest.approx(2 * (x1 - x0), abs=0.2)
    assert y1 < y3 < y0  # upwards on the screen is less
    assert y3 == pytest.approx((y0 + y1) / 2, abs=0.1)
    assert 'aria-label="a &lt; b"' in svg
    assert "<title>x &amp; y, 2001: 10.00</title>" in svg


def test_plot_of_one_step_of_equal_values_and_of_none() -> None:
    assert "<circle" in line_plot("one", [Curve(0, "x", [Point(5, 3.0)])], {5: "2005"})
    assert line_plot("none", [Curve(0, "x", [Point(5, math.nan)])], {5: "2005"}) == "<p>No values.</p>"


def test_spread_is_cut_at_the_bounds() -> None:
    svg = line_plot(
        "share", [Curve(0, "x", [Point(0, 90.0, 30.0), Point(1, 50.0, 5.0)])], {0: "a", 1: "b"}, (0.0, 100.0)
    )
    assert max(float(tick) for tick in re.findall(r">([\d.]+)</text>", svg)) == 100.0
    ticks = {float(label): float(y) for y, label in re.findall(r'y="([\d.]+)" text-anchor="end">([\d.]+)<', svg)}
    (band,) = re.findall(r'class="band"[^>]* d="M([^"Z]*)Z"', svg)
    # The labels of ticks stand four lower than their lines.
    assert min(float(point.split()[1]) for point in band.split("L")) == pytest.approx(ticks[100.0] - 4, abs=0.1)


@pytest.mark.parametrize(("low", "high"), [(0.0, 0.0), (-3.0, 47.0), (0.001, 0.0012), (99.0, 101.0), (-5.0, -5.0)])
def test_ticks_enclose_the_values(low: float, high: float) -> None:
    ticks = nice_ticks(low, high)
    assert ticks[0] <= low <= high <= ticks[-1]
    assert 2 <= len(ticks) <= 8
