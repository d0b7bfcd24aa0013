from __future__ import annotations

import subprocess
import sys

import pytest

CODE = """
from tkg_incremental.progress import progress_bar
bar = progress_bar(total=2, desc="steps")
bar.update(2)
bar.close()
"""


def test_a_log_has_no_bar() -> None:
    ended = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert ended.stdout + ended.stderr == ""


def test_a_notebook_has_one() -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CODE)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    said = str(notebook.cells[0].outputs)
    assert "steps: 100%" in said or "HBox" in said
    assert "Warning" not in said
