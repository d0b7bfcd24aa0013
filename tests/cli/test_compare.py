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
from tkg_incremental.training import Result

Fails = Callable[..., str]


def test_seeds_share_a_line(runs: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["compare", *map(str, runs.values())]) == 0
    header, _, *rows = capsys.readouterr().out.splitlines()
    assert header.split()[:5] == ["run", "seeds", "steps", "C@10", "DF@10"]
    assert len(rows) == 2
    assert rows[0].startswith("TIE · DE  0, 1   8")
    assert rows[1].startswith("FT · DE   0      8")
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
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "learning": "another learning rate"}))
    capsys.readouterr()
    assert main(["compare", str(runs["tie-0"]), str(tmp_path / "other"), str(runs["tie-0"])]) == 0
    rows = capsys.readouterr().out.splitlines()[2:]
    assert [row.split("  ")[0] for row in rows] == [
        f"TIE · DE ({runs['tie-0']})",
        f"TIE · DE ({tmp_path / 'other'})",
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
        assert {"src", "srcset"}.isdisjoint(names)
        assert names.get("href") in (None, "data:,")
        assert tag != "iframe"
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
        assert text.split(f'aria-label="{name}"')[1].split("</svg>")[0].count('class="band ') >= differ
    assert 'class="band ' in text


def test_errors(runs: dict[str, Path], tmp_path: Path, fails: Fails) -> None:
    assert "arguments are required: RUN" in fails(2, "compare")
    assert "there is no run folder" in fails(3, "compare", runs["tie-0"], tmp_path / "none")
    assert "none of the folders has results" in fails(3, "compare", tmp_path)
    (tmp_path / "metrics.json").write_text('{"steps": ')
    assert "is damaged" in fails(3, "compare", tmp_path)
    shutil.copyfile(runs["tie-0"] / "metrics.json", tmp_path / "metrics.json")
    for text in ("{", '{"options": 7}'):
        (tmp_path / "run.json").write_text(text)
        assert "run.json' is damaged" in fails(3, "compare", tmp_path)


def test_unfinished_folders_are_skipped(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["compare", str(tmp_path), str(runs["tie-0"])]) == 0
    said = capsys.readouterr()
    assert f"warning: '{tmp_path}' is skipped: it has no results yet" in said.err
    assert len(said.out.splitlines()) == 3


def test_datasets_have_tables_of_their_own(
    runs: dict[str, Path], facts: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs["tie-0"], tmp_path / "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    (tmp_path / "other" / "config.json").write_text(json.dumps({**config, "facts": "another digest"}))
    capsys.readouterr()
    flags = ["--html", str(tmp_path / "page.html")]
    assert main(["compare", str(runs["tie-0"]), str(tmp_path / "other"), *flags]) == 0
    first, second, _ = capsys.readouterr().out.split("\n\n")
    assert first.splitlines()[0] == facts.name
    assert second.splitlines()[0] == f"{facts.name} ({tmp_path / 'other'})"
    assert [len(table.splitlines()) for table in (first, second)] == [4, 4]
    assert (tmp_path / "page.html").read_text().count("<table") == 2


def test_runs_that_learnt_all_steps_at_once_are_skipped(
    runs: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = json.loads((runs["tie-0"] / "metrics.json").read_text())
    (tmp_path / "metrics.json").write_text(json.dumps({**metrics, "steps": [], "link_prediction": {"MRR": 50.0}}))
    assert main(["compare", str(runs["tie-0"]), str(tmp_path)]) == 0
    assert "is skipped: it learnt all steps at once, so that no step has results" in capsys.readouterr().err
