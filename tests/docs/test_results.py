"""The figures of README and of the page of results are those of the files in `results/`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from paper_page import REGION, fill, render, table  # noqa: E402
from paper_results import COLUMNS, RESULTS, Key, Row, add_run, read_runs, read_tables  # noqa: E402

ADVICE = "run: python examples/paper_page.py"


def test_readme_shows_what_was_measured() -> None:
    page = REPOSITORY / "README.md"
    text = page.read_text(encoding="utf-8")
    assert len(REGION.findall(text)) == 1
    assert text == fill(page), ADVICE


def test_the_page_of_results() -> None:
    assert (REPOSITORY / "docs" / "results.md").read_text(encoding="utf-8") == render(), ADVICE


def test_no_cell_has_more_than_two_numbers() -> None:
    for line in (REPOSITORY / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and "(" in line and "**" in line:
            assert line.count("|") <= 7, line


def test_every_run_names_its_seed_commit_and_command() -> None:
    runs = [run for found in read_runs().values() for run in found]
    assert len(runs) >= 80
    for run in runs:
        assert tuple(run) == COLUMNS
        assert run["seed"].isdigit()
        assert run["commit"]
        assert run["command"].startswith("python examples/")


def test_rows_of_the_paper() -> None:
    rows = read_tables()
    assert {row.table for row in rows} == set(range(2, 9))
    found = {row.key: row.paper for row in rows if row.table == 2}
    assert found[Key("Wikidata12k", "DE", "FT")] == {"C@10": 31.9, "DF@10": 12.5, "RRD": -4.16, "A@10": 36.05}


def run_of(cell: str, seed: int, current: float, deleted: float) -> dict[str, object]:
    figures = {"C@10": current, "DF@10": deleted, "RRD": -2, "A@10": 3}
    return {"dataset": "Some", "model": "DE", "cell": cell, "seed": seed, "batches": "uniform", **figures}


def test_table(tmp_path: Path) -> None:
    for run in (run_of("FT", 0, 12.25, 1), run_of("FT", 1, 12.75, 1), run_of("TR", 0, 10, 0.5), run_of("FB", 0, 99, 9)):
        add_run(run, tmp_path)
    keys = [Key("Some", "DE", cell) for cell in ("FT", "TR", "FB", "not run")]
    paper = {keys[0]: Row(2, keys[0], {"C@10": 11.0, "DF@10": 1.5}, {"C@10": 0.1, "DF@10": 0.3})}
    rows = table(keys, read_runs(tmp_path), paper).replace("\N{NO-BREAK SPACE}", " ").splitlines()[2:]
    assert rows == [
        # 1.5 is more than two deviations, 2 * sqrt(0.35² + 0.1²) = 0.73; 0.5 is less than 2 * 0.3.
        "| Some, DE | FT | **12.50** ± 0.35 (11.00) ≠ | 1.00 ± 0.00 (1.50) | **−2.00** ± 0.00 | **3.00** ± 0.00 | 2 |",
        "| Some, DE | TR | 10.00 | **0.50** | **−2.00** | **3.00** | 1 |",
        "| Some, DE | FB | 99.00 | 9.00 | −2.00 | 3.00 | 1 |",
    ]


def test_runs_with_grouped_batches_give_way(tmp_path: Path) -> None:
    for seed, batches in enumerate(["grouped", "grouped", "uniform"]):
        add_run({**run_of("FT", seed, seed, 1), "batches": batches}, tmp_path)
    add_run({**run_of("TR", 0, 10, 1), "batches": "grouped"}, tmp_path)
    keys = [Key("Some", "DE", cell) for cell in ("FT", "TR")]
    assert table(keys, read_runs(tmp_path), {}).splitlines()[2:] == [
        "| Some, DE | FT | 2.00 | **1.00** | **−2.00** | **3.00** | 1 |",
        "| Some, DE | TR\N{NO-BREAK SPACE}† | **10.00** | **1.00** | **−2.00** | **3.00** | 1 |",
    ]


def test_figures_in_the_notes(tmp_path: Path) -> None:
    (tmp_path / "tables.csv").write_text((RESULTS / "tables.csv").read_text())
    add_run(run_of("FT", 0, 12.25, 1), tmp_path)
    (tmp_path / "notes.md").write_text("FT has {Some/DE/FT, RRD}.")
    assert render(tmp_path).endswith("FT has −2.00.")
    (tmp_path / "notes.md").write_text("{Some/DE/TR, RRD}")
    with pytest.raises(SystemExit, match="was not measured: {Some/DE/TR, RRD}"):
        render(tmp_path)
