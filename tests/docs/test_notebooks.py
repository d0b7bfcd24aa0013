"""The notebooks of the examples run from the first to the last cell, twice, and are committed with their output."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))


@pytest.mark.slow
@pytest.mark.skipif(not os.environ.get("TKG_INCREMENTAL_MIRROR"), reason="needs TKG_INCREMENTAL_MIRROR")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    training = next(cell for cell in code if "trainer.fit" in cell.source)
    notebook.cells.insert(notebook.cells.index(training), nbformat.from_dict(training))  # the cell is run twice
    nbclient.NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    kinds = {kind for cell in notebook.cells if cell.cell_type == "code" for out in cell.outputs for kind in data(out)}
    assert {"text/html", "image/png"} <= kinds


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_output_is_committed(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(output.output_type != "error" for cell in code for output in cell.outputs)
    assert "image/png" in data(code[-1].outputs[-1])


def data(output: dict[str, dict[str, object]]) -> set[str]:
    return set(output.get("data", {}))
