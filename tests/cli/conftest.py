"""A tiny graph of one's own, and runs on it that several tests read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tkg_incremental.cli import main

COUNTRIES = ["Aland", "Borduria", "Cascadia", "Freedonia", "Genovia"]


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty facts: six leaders of each of five countries, one after the other, from 2000 to 2023."""
    lines = [
        f"leader {number} of {country}\tleads\t{country}\t{start}\t{start + 3}\n"
        for country in COUNTRIES
        for number, start in enumerate(range(2000, 2024, 4))
    ]
    path = tmp_path_factory.mktemp("facts") / "my facts.tsv"
    path.write_text("".join(lines))
    return path


@pytest.fixture(scope="session")
def quick(facts: Path) -> list[str]:
    """Flags of a run of a second."""
    small = ["--model", "DE", "--epochs", "2", "--hidden-channels", "8", "--negatives", "5"]
    return ["train", "--facts", str(facts), "--holdout", "0.1", *small]


@pytest.fixture(scope="session")
def runs(quick: list[str], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """TIE with two seeds, and FT; to be read, not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    flags = {"tie-0": [], "tie-1": ["--seed", "1"], "ft-0": ["--strategy", "ft"]}
    for name, more in flags.items():
        assert main([*quick, *more, "--run-dir", str(folder / name)]) == 0
    return {name: folder / name for name in flags}


@pytest.fixture
def fails(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command that must fail with a code; what it says, which is never a traceback."""

    def run(code: int, *arguments: str | Path) -> str:
        capsys.readouterr()
        try:
            found = main([str(argument) for argument in arguments])
        except SystemExit as exit_:
            found = int(exit_.code or 0)
        said = capsys.readouterr()
        assert (found, said.out) == (code, "")
        assert "Traceback" not in said.err
        return said.err

    return run
