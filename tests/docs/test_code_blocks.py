"""Every code block of README and the documentation runs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pages import PAGES, Block, blocks_of, check_command, commands_of, run_page

README, *OTHERS = PAGES


@pytest.fixture(scope="module")
def after_readme(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of somebody who has done what README says. Its run stands in for the demo on other pages."""
    folder = tmp_path_factory.mktemp("readme")
    with pytest.MonkeyPatch.context() as patch:
        run_page(README, folder, patch)
    shutil.copytree(folder / "runs" / "leaders", folder / "runs" / "demo")
    return folder


def test_readme(after_readme: Path) -> None:
    assert (after_readme / "runs" / "leaders" / "report.html").exists()


@pytest.mark.parametrize("page", [page for page in OTHERS if blocks_of(page)], ids=lambda page: page.stem)
def test_page(page: Path, after_readme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(after_readme, tmp_path, dirs_exist_ok=True)
    run_page(page, tmp_path, monkeypatch)


def test_a_broken_block_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nvalue = 1\n```\n\n```python\nassert value == 2\n```\n")
    with pytest.raises(AssertionError) as error:
        run_page(page, tmp_path, monkeypatch)
    assert error.traceback[-1].lineno + 1 == 8


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
    table, command = blocks_of(page)
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
