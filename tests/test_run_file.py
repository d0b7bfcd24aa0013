"""``run.json``."""

from pathlib import Path

import pytest

from tkg_incremental import __version__
from tkg_incremental.run_file import RUN_FILE, read_run_file, write_run_file


def test_a_resumed_run_keeps_its_beginning(tmp_path: Path) -> None:
    assert read_run_file(tmp_path) == {}
    write_run_file(tmp_path, {"facts": "caf\udce9.csv"}, "tkg-incremental train")
    first = read_run_file(tmp_path)
    assert (first["version"], first["command"]) == (__version__, "tkg-incremental train")
    assert first["options"] == {"facts": "caf\udce9.csv"}  # a file name that is not UTF-8
    write_run_file(tmp_path, {"epochs": 3}, "tkg-incremental train --resume")
    assert read_run_file(tmp_path) == {**first, "options": {"epochs": 3}}


@pytest.mark.parametrize("text", ["", "{", "[1]", "7", '{"options": 7}', "[" * 99_999])
def test_damaged(tmp_path: Path, text: str) -> None:
    (tmp_path / RUN_FILE).write_text(text)
    with pytest.raises(ValueError, match=r"run.json' is damaged or of another version"):
        read_run_file(tmp_path)
