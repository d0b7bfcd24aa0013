"""Every way a line can be wrong, in the plain reader and in the format of the published benchmarks."""

import pickle
from pathlib import Path

import pytest

from tkg_incremental.datasets.atise import read_facts
from tkg_incremental.datasets.lines import DataError, parse_id, read_fields, read_names


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "facts.txt"


def test_fields_with_line_numbers(file: Path) -> None:
    file.write_bytes("\ufeffa\tb\r\n\n c\tÜ \n".encode())
    assert list(read_fields(file, (2,))) == [(1, ["a", "b"]), (3, [" c", "Ü "])]


def test_quoted_fields(file: Path) -> None:
    file.write_text('"Washington, D.C.",capital of,"the ""US"""\n')
    assert list(read_fields(file, (3,), ",")) == [(1, ["Washington, D.C.", "capital of", 'the "US"'])]
    file.write_text('"a\tb\n')  # a quote is a character like any other where tabs separate
    assert list(read_fields(file, (2,))) == [(1, ['"a', "b"])]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        (b"", None, "expected at least one line (the file is empty)"),
        (b"\n \n\t\n", None, "expected at least one line (the file is empty)"),
        (b"a\tb\nc\n", 2, "expected 2 columns (got 1: 'c')"),
        (b"a\tb\tc\n", 1, "expected 2 columns (got 3: 'a | b | c')"),
        (b"a\tb\n\nM\xfcnchen\tb\n", 3, "expected UTF-8 text (invalid start byte at byte 1)"),
        ("a\tb\n".encode("utf-16"), 1, "expected UTF-8 text (invalid start byte at byte 0)"),
    ],
)
def test_bad_files(file: Path, content: bytes, line: int | None, problem: str) -> None:
    file.write_bytes(content)
    with pytest.raises(DataError) as error:
        list(read_fields(file, (2,)))
    where = f"{file}, line {line}" if line else str(file)
    assert str(error.value) == f"{where}: {problem}"
    assert (error.value.path, error.value.line, error.value.problem) == (file, line, problem)


@pytest.mark.parametrize("text", ['a,b\n"c,d\ne,f\n', 'a,b\n"c"x,d\n'])
def test_a_quote_that_is_not_closed(file: Path, text: str) -> None:
    file.write_text(text)
    with pytest.raises(DataError, match="line 2: expected fields that are quoted as in CSV files"):
        list(read_fields(file, (2,), ","))


def test_quoted_fields_that_span_lines(file: Path) -> None:
    file.write_text('a,"b\nc\n\nd"\n\n,\ne,f\ng\n')
    fields = read_fields(file, (2,), ",")
    assert [next(fields), next(fields)] == [(1, ["a", "b\nc\n\nd"]), (7, ["e", "f"])]
    with pytest.raises(DataError, match="line 8: expected 2 columns"):
        next(fields)


def test_errors_survive_a_process_boundary() -> None:
    error = pickle.loads(pickle.dumps(DataError("f", 3, "expected more", "row")))
    assert str(error) == "f, row 3: expected more"


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", " 1", "٣", "1e3"])
def test_ids_that_are_no_numbers(text: str) -> None:
    with pytest.raises(DataError, match="f, line 7: expected a head as a number"):
        parse_id("f", 7, text, "a head", 10)


@pytest.mark.parametrize("text", ["10", "11", "9" * 5000])
def test_ids_that_are_too_large(text: str) -> None:
    with pytest.raises(DataError, match="f, line 7: expected a head below 10"):
        parse_id("f", 7, text, "a head", 10)


def test_ids() -> None:
    assert [parse_id("f", 1, text, "a head", 10) for text in ("0", "9", "007", "0" * 30 + "3")] == [
        0,
        9,
        7,
        3,
    ]


def test_names(file: Path) -> None:
    file.write_text("b\t1\na\t0\t17\n")
    assert read_names(file) == ["a", "b"]


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("a\t0\nb\t0\n", 2, "expected every id once (got 0 again)"),
        ("a\t0\nb\t2\n", 2, "expected an id below 2 (got 2)"),
        ("a\tx\n", 1, "expected an id as a number (got 'x')"),
        ("a\n", 1, "expected 2 or 3 or 4 columns (got 1: 'a')"),
    ],
)
def test_bad_names(file: Path, content: str, line: int, problem: str) -> None:
    file.write_text(content)
    with pytest.raises(DataError) as error:
        read_names(file)
    assert (error.value.line, error.value.problem) == (line, problem)


def test_published_facts(file: Path) -> None:
    file.write_text(
        "0\t1\t2\t1990-##-##\t####-##-##\n2\t0\t0\t-431-##-##\t19##-##-##\n1\t1\t1\t2001-02-03\t2001-05-00\n"
    )
    assert read_facts(file, 3, 2) == [(0, 1, 2, 1990, None), (2, 0, 0, -1, -1), (1, 1, 1, 2001, 2001)]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("0\t0\t1\t1990-##-##", "expected 5 columns (got 4: '0 | 0 | 1 | 1990-##-##')"),
        ("0\t0\t1\t1990-##-##\t1991-##-##\t5", "expected 5 columns (got 6"),
        ("Q1\t0\t1\t1990-##-##\t1991-##-##", "expected a head as a number (got 'Q1')"),
        ("0\tP1\t1\t1990-##-##\t1991-##-##", "expected a relation as a number (got 'P1')"),
        ("0\t0\t\t1990-##-##\t1991-##-##", "expected a tail as a number (got '')"),
        ("3\t0\t1\t1990-##-##\t1991-##-##", "expected a head below 3 (got 3)"),
        ("0\t2\t1\t1990-##-##\t1991-##-##", "expected a relation below 2 (got 2)"),
        ("0\t0\t9\t1990-##-##\t1991-##-##", "expected a tail below 3 (got 9)"),
        ("0\t0\t1\tsoon\t1991-##-##", "expected a date YYYY-MM-DD with # for unknown digits (got 'soon')"),
        ("0\t0\t1\t1990-##-##\t", "expected a date YYYY-MM-DD with # for unknown digits (got '')"),
        ("0\t0\t1\t1990-##-##\t1991", "expected a date YYYY-MM-DD with # for unknown digits (got '1991')"),
    ],
)
def test_bad_published_facts(file: Path, line: str, problem: str) -> None:
    file.write_text(f"0\t0\t1\t1990-##-##\t1991-##-##\n{line}\n")
    with pytest.raises(DataError) as error:
        read_facts(file, 3, 2)
    assert str(error.value).startswith(f"{file}, line 2: {problem}")
