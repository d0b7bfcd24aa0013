"""No figure of README or of the page about strategies is typed: both are what the files of the runs say."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from paper_page import EXCERPTS, REGION, excerpt, fill_excerpts  # noqa: E402

RESULTS = REPOSITORY / "docs" / "results"
PAGES = {"README.md": ["main"], "docs/strategies.md": ["ingredients"]}


@pytest.mark.parametrize("name", PAGES)
def test_pages_show_what_was_measured(name: str) -> None:
    page = REPOSITORY / name
    text = page.read_text(encoding="utf-8")
    assert [found["name"] for found in REGION.finditer(text)] == PAGES[name]
    assert text == fill_excerpts(page, RESULTS), "run: python examples/paper_tables.py --render"


@pytest.mark.parametrize("name", EXCERPTS)
def test_a_run_shows(name: str, tmp_path: Path) -> None:
    empty = excerpt(name, tmp_path)
    figures = '"C@10": 12.25, "DF@10": 1, "RRD": null, "A@10 incremental": 2, "data_size": 2e6, "epoch_seconds": 0.5'
    summary = f"{{{figures}}}"
    (tmp_path / "Wikidata12k-DE-FT-0.json").write_text(f'{{"summary": {summary}}}')
    filled = excerpt(name, tmp_path)
    assert "**12.25**" in filled
    assert "12.25" not in empty
    assert filled.count("**") == 3 * 2  # C, DF and A
    assert filled.count("run*") == empty.count("run*") - 1
