"""Formats of files: delimiters, JSON lines, Parquet, data frames."""

import json
import sys
from pathlib import Path

import pytest

from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.readers import read_json_lines, read_records, sniff
from tkg_incremental.datasets.table import load_table


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", ","])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
def test_delimiters(tmp_path: Path, delimiter: str, suffix: str) -> None:
    path = tmp_path / f"facts{suffix}"
    rows = [["a", "r", "b", "2000"], ["c, d; e", "r", "f | g", "2001"]]
    quote = "" if delimiter == "\t" else '"'
    path.write_text("".join(delimiter.join(f"{quote}{field}{quote}" for field in row) + "\n" for row in rows))
    assert read_records(path)[1] == rows


def test_a_header_decides_about_the_delimiter() -> None:
    text = "head;rel;tail;time\n" + "a, b, c, d;r;e, f;2000\n" * 3
    assert sniff(Path("f.csv"), text) == ";"
    assert sniff(Path("f.csv"), "x") == ","
    assert sniff(Path("f.tsv"), "") == "\t"


def test_lines_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_bytes('\ufeffhead,rel,tail,time\r\n"a\r\nb",r,c,2000\r\n\r\nd,r,e,2001\r\n'.encode())
    header, rows, lines = read_records(path)
    assert header is None
    assert rows[0] == ["head", "rel", "tail", "time"]
    assert lines == [1, 2, 5]


def test_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "facts.jsonl"
    facts = [{"head": "a", "rel": "r", "tail": 3, "time": 2000}, {"head": "ü", "rel": "r", "tail": "b", "end": None}]
    path.write_text("\n\n".join(map(json.dumps, facts)) + "\n")
    header, rows, lines = read_records(path)
    assert header == ["head", "rel", "tail", "time", "end"]
    assert rows == [["a", "r", 3, 2000, None], ["ü", "r", "b", None, None]]
    assert lines == [1, 3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"head": "a"}\n{"head"\n', "line 2: expected one JSON object per line"),
        ("[1]\n", r"line 1: expected one JSON object per line \(got '\[1\]'\)"),
        ('{"head": ["a"]}\n', r"line 1: expected text or a number for 'head' \(got \"\['a'\]\"\)"),
    ],
)
def test_bad_json_lines(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "facts.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_records(path)


def test_parquet_without_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'tkg-incremental\[parquet\]'"):
        read_records(tmp_path / "facts.parquet")


def test_parquet(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "facts.parquet"
    parquet.write_table(arrow.table({"head": ["a", None], "time": [1, 2]}), path)
    assert read_records(path) == (["head", "time"], [("a", 1), (None, 2)], None)
    path.write_bytes(b"nothing")
    with pytest.raises(DataError, match="expected a Parquet file"):
        read_records(path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_empty_files(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"facts{suffix}"
    path.write_text("\n \n")
    assert read_records(path)[1:] == ([], [])
    with pytest.raises(DataError, match=r"expected at least one line \(the file is empty\)"):
        load_table(path)


def test_a_carriage_return_ends_a_line() -> None:
    assert sniff(Path("f.csv"), "head;rel;tail;time\ra, b, c, d;r;e, f;2000\r") == ";"


def test_half_characters(tmp_path: Path) -> None:
    """JSON can write them, UTF-8 cannot: no store and no file could keep them."""
    path = tmp_path / "facts.jsonl"
    path.write_text('{"head": "a", "rel": "r", "tail": "\\ud800", "start": 1}\n')
    with pytest.raises(DataError, match=r"line 1: expected Unicode text for 'tail' \(got '.+ud800'\)"):
        read_json_lines(path)
    path.write_text('{"head": "\\ud83d\\ude00", "rel": "r", "tail": "é", "start": 1}\n')
    assert read_json_lines(path)[1][0][0] == "😀"
