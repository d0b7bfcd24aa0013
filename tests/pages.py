"""The code blocks of README and the documentation, and what it takes to run them."""

from __future__ import annotations

import configparser
import doctest
import re
import shlex
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from torch.distributed.run import get_args_parser

from tkg_incremental.cli import main, make_parser

REPOSITORY = Path(__file__).parents[1]
# The pages of the API, in a folder of their own, have no code blocks.
PAGES = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]

FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*) -->\n)?^(?P<fence>`{3,})(?P<info>[^\n`]*)\n(?P<text>.*?)^(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """A fenced block.

    Args:
        language: The word after the fence.
        text: The content.
        line: The line of the page it begins at.
        note: A comment just before it: ``file: NAME`` is a file to write, ``part of: NAME`` lines of a file that the
            page has made, ``parse only`` a command not to run, ``output`` what the Python block before it prints.
    """

    language: str
    text: str
    line: int
    note: str


def blocks_of(page: Path) -> list[Block]:
    """All fenced blocks in order, without the directives of Sphinx other than doctests."""
    text = page.read_text(encoding="utf-8")
    found = [
        Block(match["info"].strip(), match["text"], text.count("\n", 0, match.start("text")), match["note"] or "")
        for match in FENCE.finditer(text)
    ]
    return [block for block in found if block.language == "{doctest}" or not block.language.startswith("{")]


def run_page(page: Path, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Runs all blocks of a page in order, in one namespace and with ``folder`` as working directory."""
    patch.chdir(folder)
    module = ModuleType("page")
    patch.setitem(sys.modules, "page", module)  # where dataclasses look their names up
    printed = ""
    for block in blocks_of(page):
        if block.note == "output":
            assert printed == block.text, f"{page.name}, line {block.line}: the block before prints\n{printed}"
        elif block.note.startswith("file: "):
            Path(block.note.removeprefix("file: ")).write_text(block.text, encoding="utf-8")
        elif block.note.startswith("part of: "):
            whole = Path(block.note.removeprefix("part of: ")).read_text(encoding="utf-8")
            assert block.text in whole, f"{page.name}, line {block.line}: the file has other lines\n{whole}"
        elif block.language == "python":
            # With empty lines above it, so that a traceback points at the page.
            with redirect_stdout(StringIO()) as out:
                exec(compile("\n" * block.line + block.text, str(page), "exec"), module.__dict__)
            printed = out.getvalue()
        elif block.language == "{doctest}":
            test = doctest.DocTestParser().get_doctest(block.text, module.__dict__, page.name, str(page), block.line)
            doctest.DebugRunner().run(test, clear_globs=False)
            module.__dict__.update(test.globs)
        elif block.language == "console":
            for command in commands_of(block):
                check_command(command, run="parse only" not in block.note)
        else:
            raise AssertionError(f"{page.name}, line {block.line}: blocks of {block.language!r} cannot be run")


def commands_of(block: Block) -> list[list[str]]:
    """The commands after a ``$``; a backslash at the end of a line continues it."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.split(line[2:], comments=True) for line in lines if line.startswith("$ ")]


def check_command(words: list[str], run: bool) -> None:
    """Runs ``tkg-incremental``; checks for other commands that the targets, scripts and flags they name exist."""
    while "=" in words[0]:  # variables of the environment
        words = words[1:]
    match words:
        case ["tkg-incremental" | ".venv/bin/tkg-incremental", *rest] | ["python", "-m", "tkg_incremental", *rest]:
            if run:
                assert main(rest) == 0, f"{shlex.join(words)} failed"
            else:
                make_parser().parse_args(rest)
        case ["torchrun", *rest]:
            started = get_args_parser().parse_args(rest)
            assert (started.module, started.training_script) == (True, "tkg_incremental")
            make_parser().parse_args(started.training_script_args)
        case ["sbatch", *_, script]:
            lines = Path(script).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
            (line,) = [line for line in lines if line.startswith("srun ")]
            # Variables of the job have no value here; those that stand alone may be empty.
            check_command([word for word in shlex.split(line)[1:] if not word.startswith("$resume")], run=False)
        case ["make", target, *_]:
            assert re.search(rf"^{target}:", (REPOSITORY / "Makefile").read_text(), re.MULTILINE), target
        case ["python", script, *rest]:
            path = REPOSITORY / ("benchmarks/__main__.py" if script == "-m" else script)
            for flag in [word for word in rest if word.startswith("--")]:
                assert f'"{flag}"' in path.read_text(), f"{script} has no {flag}"
        case ["pip", "install", *what]:
            for extra in re.findall(r"\[([\w,]+)\]", " ".join(what)):
                assert set(extra.split(",")) <= extras(), f"there is no extra {extra}"
        case ["git", "clone", *_] | ["cd", _] | ["export", _]:
            pass
        case _:
            raise AssertionError(f"commands like {shlex.join(words)!r} cannot be checked")


def extras() -> set[str]:
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg", encoding="utf-8")
    return set(setup["options.extras_require"])
