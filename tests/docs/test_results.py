"""The figures of README and of the page of results are those of the files in `results/`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "examples"))  # the examples are scripts, not a package

from paper_cells import CELLS  # noqa: E402
from paper_judge import Judge  # noqa: E402
from paper_layout import BEYOND, TABLES  # noqa: E402
from paper_page import REGION, fill, render, table  # noqa: E402
from paper_results import COLUMNS, RESULTS, Key, Row, add_run, read_reasons, read_runs, read_tables  # noqa: E402

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


def rows_of(keys: list[Key], results: Path, paper: list[Row]) -> list[str]:
    runs = read_runs(results)
    made = table(BEYOND, keys, runs, {row.key: row for row in paper}, Judge(runs, paper))
    return made.replace("\N{NO-BREAK SPACE}", " ").splitlines()[2:]


def test_table(tmp_path: Path) -> None:
    for run in (run_of("FT", 0, 12.25, 1), run_of("FT", 1, 12.75, 1), run_of("TR", 0, 10, 0.5), run_of("FB", 0, 99, 9)):
        add_run(run, tmp_path)
    keys = [Key("Some", "DE", cell) for cell in ("FT", "TR", "FB", "not run")]
    paper = [Row(2, keys[0], {"C@10": 11.0, "DF@10": 1.5}, {"C@10": 0.1, "DF@10": 0.3})]
    assert rows_of(keys, tmp_path, paper) == [
        # 1.5 is more than two deviations, 2 * sqrt(0.35² + 0.1²) = 0.73; 0.5 is less than 2 * 0.3.
        "| Some, DE | FT | **12.50** ± 0.35 (11.00) ≠ | 1.00 ± 0.00 (1.50) | **−2.00** ± 0.00 | **3.00** ± 0.00 | 2 |",
        "|  | TR | 10.00 | **0.50** | **−2.00** | **3.00** | 1 |",
        "|  | FB | 99.00 | 9.00 | −2.00 | 3.00 | 1 |",
    ]


def test_runs_with_grouped_batches_give_way(tmp_path: Path) -> None:
    for seed, batches in enumerate(["grouped", "grouped", "uniform"]):
        add_run({**run_of("FT", seed, seed, 1), "batches": batches}, tmp_path)
    add_run({**run_of("TR", 0, 10, 1), "batches": "grouped"}, tmp_path)
    keys = [Key("Some", "DE", cell) for cell in ("FT", "TR")]
    paper = [Row(2, key, {"C@10": 5.0}, {"C@10": 0.1}) for key in keys]
    assert rows_of(keys, tmp_path, paper) == [
        "| Some, DE | FT | 2.00 (5.00) ≠ | **1.00** | **−2.00** | **3.00** | 1 |",
        "|  | TR † | **10.00** (5.00) ≠ | **1.00** | **−2.00** | **3.00** | 1 |",
    ]
    reasons = [each.reason for each in Judge(read_runs(tmp_path), paper).differences()]
    assert reasons == ["not explained", "† not run again yet"]


def test_every_row_of_the_paper_has_a_name_of_its_own_in_its_table() -> None:
    for number, layout in TABLES.items():
        names = [layout.name(row.key) for row in read_tables() if row.table == number]
        assert len(set(names)) == len(names)
        assert {len(name) for name in names} == {len(layout.columns)}


def test_every_row_of_the_paper_can_be_run() -> None:
    cells = {Key(cell.dataset, cell.model, cell.name): cell for cell in CELLS}
    assert len(cells) == len({cell.key for cell in CELLS}) == len(CELLS)
    for row in read_tables():
        assert row.table in cells[row.key].tables
        assert cells[row.key].strategy().name == row.key.cell.split()[0]
    replayed = cells[Key("Wikidata12k", "DE", "TIE frequency 25000 of 25 steps")].strategy().terms[-1].view
    assert (replayed.size, replayed.window, replayed.sampling) == (25_000, 25, "frequency")


def judged(folder: Path, current: dict[str, list[float]], published: float) -> list[str]:
    """What explains FT's difference on Wikidata12k; the published deviation is 0.3."""
    folder.mkdir()
    for cell, values in current.items():
        for seed, value in enumerate(values):
            add_run({**run_of(cell, seed, value, 1), "dataset": "Wikidata12k"}, folder)
    row = Row(2, Key("Wikidata12k", "DE", "FT"), {"C@10": published}, {"C@10": 0.3})
    return [each.reason for each in Judge(read_runs(folder), [row]).differences()]


def test_one_seed_is_judged_by_the_deviation_of_the_other_rows(tmp_path: Path) -> None:
    # TR's deviation is 0.4: the bar is 2 * 0.5.
    seeds = {"FT": [30.0], "TR": [20.0, 20.0 + 0.4 * 2**0.5]}
    assert judged(tmp_path / "inside", seeds, 30.99) == []
    assert judged(tmp_path / "outside", seeds, 31.01) == ["not explained"]


def test_the_spread_of_base_models_explains_differences(tmp_path: Path) -> None:
    # The spread is 1.2 in both base models: the bar with it is 2 * sqrt(0.3² + 0.3² + 2 * 1.2²) = 3.50.
    bases = {"FT": [30.0], "FT from base model 1": [30.0 + 1.2 * 2**0.5]}
    assert judged(tmp_path / "inside", bases, 33.4) == ["spread of base models"]
    assert judged(tmp_path / "outside", bases, 33.6) == ["not explained"]


def test_reasons_are_about_figures_that_differ() -> None:
    reasons = read_reasons()
    found = Judge(read_runs(), read_tables()).differences()
    assert set(reasons) <= {(each.key, each.metric) for each in found}


def test_figures_in_the_notes(tmp_path: Path) -> None:
    (tmp_path / "tables.csv").write_text((RESULTS / "tables.csv").read_text())
    add_run(run_of("FT", 0, 12.25, 1), tmp_path)
    (tmp_path / "notes.md").write_text("FT has {Some/DE/FT, RRD}.")
    assert "\nFT has −2.00.\n" in render(tmp_path)
    (tmp_path / "notes.md").write_text("{Some/DE/TR, RRD}")
    with pytest.raises(SystemExit, match="was not measured: {Some/DE/TR, RRD}"):
        render(tmp_path)
