"""Every code block of README and the documentation runs."""

from __future__ import annotations

import csv
import doctest
import re
import shutil
from pathlib import Path

import pytest
from pages import PAGES, Block, blocks_of, check_command, commands_of, run_page

from tkg_incremental.cli import main
from tkg_incremental.datasets import WorldLeaders

COUNTRIES = ("United States", "Germany")


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a small run in `runs/demo`, and a small graph in place of the one that `make demo` makes: the
    leaders of two countries since 2009."""
    folder = tmp_path_factory.mktemp("demo")
    leaders, names = folder / "leaders.csv", WorldLeaders()
    facts = [(names.entities[h], names.relations[r], names.entities[t], a, b) for h, r, t, a, b in named(names)]
    people = {head for head, _, tail, *_ in facts if tail in COUNTRIES}
    rows = [fact for fact in facts if fact[0] in people and fact[4] >= 2009]
    with leaders.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["head", "rel", "tail", "start", "end"])
        writer.writerows((*fact[:3], max(fact[3], 2009), "" if fact[4] == 2024 else fact[4]) for fact in rows)
    small = ["--facts", str(leaders), "--hidden-channels", "16", "--epochs", "1"]
    run = ["train", "--run-dir", str(folder / "runs" / "demo"), "--base-epochs", "2", "--holdout", "0.2"]
    assert main([*run, *small]) == 0
    (folder / "aliases.csv").write_text("alias,name\nUSA,United States\n", encoding="utf-8")
    create = ["create", str(folder / "graphs" / "demo"), "--aliases", str(folder / "aliases.csv")]
    assert main([*create, *small]) == 0
    return folder


def named(dataset: WorldLeaders) -> list[list[int]]:
    """Train facts with the first and the last year."""
    first = dataset.timeline.axis.first[0]
    return [[*ids, first + begin, first + end] for *ids, begin, end in dataset.timeline.observed.facts.tolist()]


@pytest.mark.parametrize("page", [page for page in PAGES if blocks_of(page)], ids=lambda page: page.stem)
def test_page(page: Path, demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(demo, tmp_path, dirs_exist_ok=True)
    run_page(page, tmp_path, monkeypatch)


def test_recipes_are_short() -> None:
    """A strategy, a model and a dataset take at most 10, 30 and 30 lines."""
    (page,) = [page for page in PAGES if page.stem == "recipes"]
    recipes = [block for block in blocks_of(page) if block.note.startswith("recipe: ")]
    limits = [int(block.note.split()[3]) for block in recipes]
    assert limits == [10, 30, 30]
    for block, limit in zip(recipes, limits, strict=True):
        assert len(block.text.splitlines()) <= limit, f"line {block.line}"


def test_readme_is_short() -> None:
    """An example of twelve lines with its output, and tables of at most six columns."""
    readme = PAGES[0]
    (example,) = [block for block in blocks_of(readme) if block.language == "python"]
    assert len(list(filter(None, example.text.splitlines()))) <= 12
    assert sum(block.note == "output" for block in blocks_of(readme)) == 1
    columns = [
        line.count(" | ") + 1 for line in readme.read_text(encoding="utf-8").splitlines() if line.startswith("| ")
    ]
    assert max(columns) <= 6


@pytest.mark.parametrize("page", [PAGES[0], *PAGES[0].parent.glob("C*.md")], ids=lambda page: page.stem)
def test_links_of_pages_outside_of_the_documentation(page: Path) -> None:
    """Sphinx checks those of the others."""
    for link in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


def test_a_broken_block_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nvalue = 1\n```\n\n```python\nassert value == 2\n```\n")
    with pytest.raises(AssertionError) as error:
        run_page(page, tmp_path, monkeypatch)
    assert error.traceback[-1].lineno + 1 == 8


def test_a_wrong_doctest_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("```{doctest}\n>>> value = 1\n```\n\n```{doctest}\n>>> value\n2\n```\n")
    with pytest.raises(doctest.DocTestFailure):
        run_page(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("shown", ["1\n", "2\n"])
def test_output_is_what_the_block_prints(shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"```python\nprint(1)\n```\n\n<!-- output -->\n```text\n{shown}```\n")
    if shown == "1\n":
        run_page(page, tmp_path, monkeypatch)
    else:
        with pytest.raises(AssertionError, match="the block before prints\n1"):
            run_page(page, tmp_path, monkeypatch)


PAGE = """
<!-- file: a.csv -->
```text
a,b
```

```{doctest}
>>> 1
```

```console
$ make x \\
 y   # why
what it says
```
"""


def test_blocks_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    table, example, command = blocks_of(page)
    assert example == Block("{doctest}", ">>> 1\n", 7, "")
    assert table == Block("text", "a,b\n", 3, "file: a.csv")
    assert commands_of(command) == [["make", "x", "y"]]


@pytest.mark.parametrize(
    "words",
    [
        ["make", "nothing"],
        ["pip", "install", ".[nothing]"],
        ["python", "examples/tie_de.py", "--nothing"],
        ["nothing"],
        ["torchrun", "-m", "nothing", "train"],
    ],
)
def test_a_wrong_command_fails(words: list[str]) -> None:
    with pytest.raises(AssertionError):
        check_command(words, run=False)


def test_wrong_flags_fail() -> None:
    with pytest.raises(SystemExit):
        check_command(["tkg-incremental", "train", "--nothing"], run=False)
