"""Start-up: commands import what they need, and no more."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tkg_incremental.cli import main

HEAVY = ("torch", "torch_geometric", "numpy", "pandas", "jinja2")
CODE = """
import json, sys
from tkg_incremental.cli import main
try:
    code = main(sys.argv[1:])
except SystemExit as exit_:
    code = exit_.code
print(json.dumps([code or 0, sorted(sys.modules)]), file=sys.stderr)
"""


def start(*arguments: str | Path) -> tuple[int, set[str]]:
    """Exit code and imported modules of a command."""
    command = [sys.executable, "-c", CODE, *map(str, arguments)]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    code, modules = json.loads(found.stderr.splitlines()[-1])
    return code, set(modules)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--help"], 0),
        (["--version"], 0),
        (["datasets"], 0),
        (["train", "--help"], 0),
        (["trian"], 2),
        (["train", "--epoch", "3"], 2),
        (["train", "--strategy", "agem", "--negatives", "5"], 2),
        (["query", "no such run", "?", "leads", "Aland", "--at", "2021"], 3),
        (["compare"], 2),
    ],
)
def test_nothing_heavy_is_imported(arguments: list[str], expected: int) -> None:
    code, modules = start(*arguments)
    assert code == expected
    assert modules.isdisjoint(HEAVY)


def test_a_query_needs_neither_torch_geometric_nor_pandas(runs: dict[str, Path]) -> None:
    code, modules = start("query", runs["tie-0"], "?", "leads", "Aland", "--at", "2021")
    assert code == 0
    assert modules.isdisjoint(("torch_geometric", "pandas", "sympy", "torch._dynamo", "jinja2", "requests"))


def test_a_query_to_a_live_graph_needs_neither_torch_geometric_nor_pandas(tmp_path: Path) -> None:
    facts = tmp_path / "facts.csv"
    facts.write_text("head,rel,tail,start,end\nAnna,leads,Archive,2001,2006\nBruno,leads,Archive,2007,\n")
    assert main(["create", str(tmp_path / "graph"), "--facts", str(facts)]) == 0
    code, modules = start("query", tmp_path / "graph", "?", "leads", "Archive")
    assert code == 0
    assert modules.isdisjoint(("torch_geometric", "pandas", "sympy", "torch._dynamo", "jinja2"))


def test_names_of_the_package_are_imported_on_first_use() -> None:
    code = (
        "import sys, tkg_incremental\n"
        "assert 'torch' not in sys.modules\n"
        "assert 'IncrementalTrainer' in dir(tkg_incremental)\n"
        "from tkg_incremental import IncrementalTrainer, LearningSettings, Result, TrainerSettings\n"
        "from tkg_incremental.data import Snapshot\n"
        "try: tkg_incremental.Trainer\n"
        "except AttributeError as error: assert 'Trainer' in str(error)\n"
        "else: raise SystemExit('no error')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
