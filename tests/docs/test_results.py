"""No figure of README, of the results or of the page about strategies is typed: they are what the files of the runs
say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from paper_page import EXCERPTS, REGION, excerpt, fill_excerpts, render  # noqa: E402

RESULTS = REPOSITORY / "docs" / "results"
PAGES = {"README.md": ["main"], "docs/strategies.md": ["ingredients"]}


@pytest.mark.parametrize("name", PAGES)
def test_pages_show_what_was_measured(name: str) -> None:
    page = REPOSITORY / name
    text = page.read_text(encoding="utf-8")
    assert [found["name"] for found in REGION.finditer(text)] == PAGES[name]
    assert text == fill_excerpts(page, RESULTS), "run: python examples/paper_tables.py --render"


def test_the_page_of_results(tmp_path: Path) -> None:
    render(RESULTS, tmp_path / "results.md")
    page = (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8")
    assert page == (tmp_path / "results.md").read_text(encoding="utf-8"), (
        "run: python examples/paper_tables.py --render"
    )


def test_figures_in_the_notes(tmp_path: Path) -> None:
    for seed, value in enumerate([12.25, 12.75]):
        figures = {"C@10": value, "DF@10": 1, "RRD": -2, "A@10 incremental": 3, "data_size": 4, "epoch_seconds": 5}
        run = {"summary": figures, "seed": seed, "commit": "c", "minutes": 1, "command": "make it"}
        (tmp_path / f"Wikidata12k-DE-FT-{seed}.json").write_text(json.dumps(run))
    notes = "All: {Wikidata12k-DE-FT}. One: {Wikidata12k-DE-FT, RRD}. Theirs: {paper: Wikidata12k-DE-FT, A@10}."
    (tmp_path / "notes.md").write_text(notes)
    render(tmp_path, tmp_path / "results.md")
    written = "All: 12.50 / 1.00 / −2.00 / 3.00. One: −2.00. Theirs: 36.05."
    assert written in (tmp_path / "results.md").read_text()
    (tmp_path / "notes.md").write_text("{YAGO11k-DE-FT}")
    with pytest.raises(SystemExit, match="has not been run: YAGO11k-DE-FT"):
        render(tmp_path, tmp_path / "results.md")


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
