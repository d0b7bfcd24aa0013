"""A file of changes is read as the file of facts that it was made of: same fields, names and dates."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest

from tkg_incremental import LiveGraph
from tkg_incremental.cli import main
from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live import Change, ChangeSet
from tkg_incremental.live.importing import read_named_facts
from tkg_incremental.live.reading import date_parser

Row = Sequence[str]
Table = Sequence[Row]

HEADER = ("head", "rel", "tail", "start", "end")
ROWS = [
    ("Lee; Bo, PhD, MD, MBA, LLM", "leads", "R&D | IT, EU", "2024-01-05", "2024-02-06"),
    ('The "A" Team', "works in", "R&D", "2024-01-06", ""),
    ("Zoë", "works in", "R&D", "2024-01-07", ""),
]
PLAIN = [HEADER, *ROWS[::2]]
DATABASE = ("PERSON", "ROLE", "TEAM", "VALID_FROM", "VALID_TO")
COLUMNS = dict(zip(HEADER, DATABASE, strict=True))


def quoted(table: Table, delimiter: str, newline: str = "\n") -> str:
    lines = [[f'"{field.replace(chr(34), chr(34) * 2)}"' for field in row] for row in table]
    return "".join(delimiter.join(line) + newline for line in lines)


def plain(table: Table) -> str:
    return "".join("\t".join(row) + "\n" for row in table)


def records(table: Table) -> str:
    return "".join(json.dumps(dict(zip(table[0], row, strict=True))) + "\n\n" for row in table[1:])


def with_ends(*ends: str) -> Table:
    return [HEADER, *[(*row[:4], end) for row, end in zip(ROWS, ends, strict=True)]]


def with_column(header: Row, name: str, value: str) -> Table:
    return [(*header, name), *[(*row, value) for row in ROWS]]


class File(NamedTuple):
    """A table, how it is written and how it is read."""

    write: Callable[[Table], str]
    table: Table = (HEADER, *ROWS)
    read: ReadOptions = ReadOptions()
    suffix: str = ".csv"
    has_header: bool = True


WRITE = {delimiter: partial(quoted, delimiter=delimiter) for delimiter in ",;|:"}
FILES = {
    "commas": File(WRITE[","]),
    "semicolons": File(WRITE[";"]),
    "bars": File(WRITE["|"], suffix=".txt"),
    "tabs": File(plain, PLAIN, suffix=".tsv"),
    "tabs in a .csv": File(plain, PLAIN),
    "commas in a .tsv": File(WRITE[","], suffix=".tsv"),
    "commas in a name of a column": File(WRITE[";"], with_column(HEADER, "a, b, c, d, e, f, g, h", "1")),
    "tabs, no header": File(plain, PLAIN[1:], suffix=".tsv", has_header=False),
    "semicolons, no header": File(WRITE[";"], ROWS, has_header=False),
    "a byte order mark": File(lambda table: "\ufeff" + WRITE[";"](table)),
    "CRLF": File(partial(quoted, delimiter=";", newline="\r\n")),
    "CR": File(partial(quoted, delimiter=";", newline="\r")),
    "a blank line first": File(lambda table: "\n" + WRITE[";"](table)),
    "NULL": File(WRITE[","], with_ends("2024-02-06", "NULL", r"\N")),
    "open ends": File(WRITE[","], with_ends("infinity", "9999-12-31", "present")),
    "upper case": File(WRITE[","], [[name.upper() for name in HEADER], *ROWS]),
    "usual names": File(WRITE[","], [("Subject", "Predicate", "Object", "Valid From", "Valid To"), *ROWS]),
    "names of their own": File(WRITE[";"], [DATABASE, *ROWS], ReadOptions(COLUMNS)),
    "a date that is not the start": File(WRITE[","], with_column(DATABASE, "date", "2025-01-01"), ReadOptions(COLUMNS)),
    "names that differ in case": File(WRITE[","], with_column(DATABASE, "Person", "x"), ReadOptions(COLUMNS)),
    "a delimiter": File(WRITE[":"], read=ReadOptions(delimiter=":")),
    "JSON lines": File(records, suffix=".jsonl"),
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("changes")
    (folder / "facts.csv").write_text(
        "head,rel,tail,start,end\nKim,leads,Sales,2024-01-01,\nBo,leads,R&D,2024-01-09,\n"
    )
    small = ["--unit", "day", "--epochs", "1", "--hidden-channels", "8"]
    assert main(["create", str(folder / "graph"), "--facts", str(folder / "facts.csv"), *small]) == 0
    return folder / "graph"


@pytest.mark.parametrize("is_last", [False, True], ids=["op first", "op last"])
@pytest.mark.parametrize("name", FILES)
def test_changes_are_read_as_facts(tmp_path: Path, graph: Path, name: str, is_last: bool) -> None:
    file = FILES[name]
    facts, changes = tmp_path / f"facts{file.suffix}", tmp_path / f"changes{file.suffix}"
    ops = ["OP" if file.has_header else "add", *["add"] * (len(file.table) - 1)]
    with_op = [
        (*row, op) if is_last and file.has_header else (op, *row) for op, row in zip(ops, file.table, strict=True)
    ]
    facts.write_bytes(file.write(file.table).encode())
    changes.write_bytes(file.write(with_op).encode())
    found = ChangeSet.read(changes, date_parser("day", file.read), 0, file.read)
    assert found.rejected == []
    assert sorted(map(written, found)) == sorted(read_named_facts(facts, "day", file.read).rows())
    with LiveGraph(graph) as live:
        report = live.update(changes, read=file.read, dry_run=True)
        assert (report.exit_code, report.added) == (0, len(found))


def written(change: Change) -> tuple[str, str, str, int | None, int | None]:
    return change.head, change.rel, change.tail, change.at, change.until


def changes_of(folder: Path, text: str, read: ReadOptions | None = None, suffix: str = ".csv") -> ChangeSet:
    path = folder / f"changes{suffix}"
    path.write_text(text)
    return ChangeSet.read(path, date_parser("day", read or ReadOptions()), 0, read)


@pytest.mark.parametrize("names", [("A, B, C, D, E, F", "a; b; c"), ("x | y | z", "A, B; C, D")], ids="/".join)
@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("num_lines", [1, 3])
def test_the_delimiter_stands_after_the_op(
    tmp_path: Path, names: tuple[str, str], delimiter: str, num_lines: int
) -> None:
    """Lines without a header, the first one longer than the others."""
    table = [("add", names[0], "leads", names[1], "2024-01-01"), *[("retract", *names[::-1], "leads")] * 2][:num_lines]
    text = plain(table) if delimiter == "\t" else quoted(table, delimiter)
    for suffix in (".csv", ".tsv"):
        found = changes_of(tmp_path, text, suffix=suffix)
        assert [(change.op, change.head) for change in found] == [(op, head) for op, head, *_ in table]


def test_a_file_without_the_delimiter_of_the_first_one(tmp_path: Path) -> None:
    found = changes_of(tmp_path, "op,head,rel,tail\nretract,a:b,r,c\n", ReadOptions(delimiter=":"))
    assert found.changes == [Change("retract", "a:b", "r", "c")]


def test_columns_of_several_dates(tmp_path: Path) -> None:
    """The additions of an export have a start, the other changes the time at which they happen."""
    lines = ["add,a,r,b,2024-01-01,NULL,", "end,c,r,d,,,2024-01-02", "add,e,r,f,2024-01-01,,2024-01-01T00:00:00"]
    header = "op,head,rel,tail,start,end,at"
    found = changes_of(tmp_path, "\n".join([header, *lines, "add,g,r,h,2024-01-01,,2024-01-02\n"]))
    first = date(2024, 1, 1).toordinal()
    assert [change.at for change in found] == [first, first + 1, first]
    (rejection,) = found.rejected
    assert rejection.line == 5
    assert rejection.reason.startswith("it has two times, at 2024-01-02 and start 2024-01-01; choose a column with")
    rows = [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]
    objects = [json.dumps({name: text for name, text in row.items() if text}) for row in rows]
    assert changes_of(tmp_path, "\n".join(objects), suffix=".jsonl").changes == found.changes


@pytest.mark.parametrize("at", ["-infinity", "infinity", "9999-12-31"])
def test_a_change_has_a_time(tmp_path: Path, at: str) -> None:
    """Nothing that stands for an open start or end is taken for a missing date."""
    found = changes_of(tmp_path, f"op,head,rel,tail,at\nadd,a,r,b,{at}\nend,a,r,b,NULL\n")
    assert [rejection.line for rejection in found.rejected] == [2]
    assert [change.at for change in found] == [0]


def test_an_end_before_all_times_is_none(tmp_path: Path) -> None:
    found = changes_of(tmp_path, "op,head,rel,tail,at,end\nadd,a,r,b,2024-01-01,-infinity\n")
    assert [rejection.reason[:27] for rejection in found.rejected] == ["end '-infinity' is no time "]


def test_numbers_as_names() -> None:
    """A column of integers with gaps is one of floats."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {"op": ["add", "retract"], "head": [7, 8], "rel": "r", "tail": [1.0, None], "at": [3, None]}
    )
    found = ChangeSet.read(frame, int)
    assert found.changes == [Change("add", "7", "r", "1", 3)]
    assert found.rejected[0].reason == "tail missing"


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_day_without_changes(tmp_path: Path, suffix: str) -> None:
    for text in ("", "\n", "\ufeff\r\n"):
        assert len(changes_of(tmp_path, text, suffix=suffix)) == 0
    assert len(changes_of(tmp_path, "op,head,rel,tail\n")) == 0
    assert len(ChangeSet.read([], int)) == 0


def test_tables_without_changes(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    assert len(ChangeSet.read(pandas.DataFrame([]), int)) == 0
    assert len(ChangeSet.read(pandas.DataFrame([], columns=["op", "head", "rel", "tail"]), int)) == 0
    with pytest.raises(DataError, match=r"expected a column op\. .* A full export is given as full, or --full"):
        ChangeSet.read(pandas.DataFrame([], columns=["head", "rel", "tail"]), int)
    with pytest.raises(DataError, match=r"on the command line --columns rel=…"):
        ChangeSet.read(pandas.DataFrame([], columns=["op", "head", "role", "tail"]), int)


def test_a_line_with_too_many_fields(tmp_path: Path) -> None:
    (tmp_path / "changes.csv").write_text("op,head,rel,tail,at\nadd,a,r,b,1\nadd,a,r,c,1,2\n")
    (rejected,) = ChangeSet.read(tmp_path / "changes.csv", int).rejected
    assert rejected == (3, "add, a, r, c, 1, 2", "expected 5 fields (got 6)")


def test_files_in_other_encodings(tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    path.write_bytes("op,head,rel,tail\nretract,a,r,b\n".encode("utf-16"))
    for read in (read_named_facts, lambda path: ChangeSet.read(path, int)):
        with pytest.raises(DataError, match=r"changes\.csv, line 1: expected UTF-8 text"):
            read(path)


def test_parquet(
    tmp_path: Path, graph: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "changes.parquet"
    frame = pandas.DataFrame([("add", *row) for row in ROWS], columns=["op", *HEADER])
    frame.assign(start=pandas.to_datetime(frame.start), end=pandas.to_datetime(frame.end)).to_parquet(path)
    assert main(["update", str(graph), str(path), "--dry-run"]) == 0
    assert capsys.readouterr().out.startswith("3 added")
    frame[:0].to_parquet(path)
    assert len(ChangeSet.read(path, int)) == 0
    path.write_bytes(b"nothing")
    assert main(["update", str(graph), str(path), "--dry-run"]) == 3
    assert "changes.parquet: expected a Parquet file" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'tkg-incremental\[parquet\]'"):
        ChangeSet.read(path, int)
