"""Changes are read from all formats, and what does not fit is listed with its reason."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from graphs import FACTS, import_rows, quick, small_store, state_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tkg_incremental.datasets.lines import DataError
from tkg_incremental.live import OPEN, Change, ChangeSet, FactStore, Rejection, Release

EXPECTED = [
    Change("add", "Zoë, the 1st", "leads", "R&D", 11),
    Change("end", "Ann", "leads", "R&D", 12),
    Change("retract", "Cid", "works in", "R&D"),
    Change("add", "Eve", "works in", "R&D", 3, 6),
]


def test_formats(tmp_path: Path) -> None:
    rows = [
        ("ADD", "Zoë, the 1st", "leads", "R&D", "11", ""),
        ("-", "Ann", "leads", "R&D", "", ""),
        ("retract", "Cid", "works in", "R&D", "", ""),
        ("+", "Eve", "works in", "R&D", "3", "5"),
    ]
    names = ("op", "head", "rel", "tail", "at", "end")
    (tmp_path / "a.csv").write_text(
        '\ufeffop,head,relation,tail,start,end\r\nADD,"Zoë, the 1st",leads,R&D,11,\r\n-,Ann,leads,R&D,,\r\n\r\n'
        "retract,Cid,works in,R&D\r\n+,Eve,works in,R&D,3,5\r\n",
        encoding="utf-8",
    )
    (tmp_path / "a.tsv").write_text("\n".join("\t".join(row) for row in rows), encoding="utf-8")
    (tmp_path / "a.jsonl").write_text("\n".join(json.dumps(dict(zip(names, row, strict=True))) for row in rows))
    for source in (tmp_path / "a.csv", str(tmp_path / "a.tsv"), tmp_path / "a.jsonl", rows):
        found = ChangeSet.read(source, int, at=12)
        assert found.changes == EXPECTED
        assert found.rejected == []
    assert [change.line for change in ChangeSet.read(tmp_path / "a.csv", int, at=12)] == [2, 3, 5, 6]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "op": ["add", "end"],
            "head": ["x", "y"],
            "rel": ["r", "r"],
            "tail": ["z", "z"],
            "at": [float("nan"), "7"],
            "note": [1, 2],
        }
    )
    assert ChangeSet.read(frame, int, at=5).changes == [
        Change("add", "x", "r", "z", 5),
        Change("end", "y", "r", "z", 7),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("head,rel,tail,at\na,r,b,1\n", "expected a column op"),
        ("op,head,rel,tail,at,at\nadd,a,r,b,1,1\n", "expected one column 'at'"),
        ("op,change,head,rel,tail,at\nadd,add,a,r,b,1\n", "expected one column 'op'"),
        ('op,head,rel,tail,at\nadd,"a,r,b,1\n', "unexpected end of data"),
        ("op,head\nadd,a\n", "expected a column rel and tail"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        ChangeSet.read(tmp_path / "a.csv", int)


def test_other_sources_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"op,head\xff")
    (tmp_path / "a.jsonl").write_text('{"op": "add"}\n{oops\n')
    cases: list[tuple[object, type[Exception], str]] = [
        (tmp_path / "a.csv", DataError, "expected UTF-8 text"),
        (tmp_path / "a.jsonl", DataError, "line 2: expected one JSON object per line"),
        (tmp_path / "none.csv", OSError, "No such file"),
        (5, TypeError, "must be a path"),
        ([5], DataError, "expected a mapping"),
    ]
    for source, error, message in cases:
        with pytest.raises(error, match=message):
            ChangeSet.read(source, int)


def test_lines_that_are_no_changes() -> None:
    rows = [
        ("delete", "a", "r", "b", 1),
        ("add", "", "r", None, 1),
        ("add", "a", "r", "b", "soon"),
        ("add", "a", "r", "b", 5, 3),
        ("end", "a", "r", "b", 5, 6),
        ("add", "a", "r", "b"),
        ("add", "a", "r", "b", 10**30),
    ]
    found = ChangeSet.read(rows, int)
    assert len(found) == 0
    for rejection, reason in zip(
        found.rejected,
        [
            "op must be one of add, end, retract, + and - (got 'delete')",
            "head and tail missing",
            "at 'soon' is no time",
            "the end is before its beginning",
            "only an addition has an end column",
            "it has no time",
            "out of range",
        ],
        strict=True,
    ):
        assert reason in rejection.reason
    assert found.rejected[0] == Rejection(1, "delete, a, r, b, 1", found.rejected[0].reason)


def test_validation(tmp_path: Path) -> None:
    changes = [
        Change("add", "Ann", "leads", "R&D", 11, line=1),
        Change("end", "Bob", "leads", "Sales", 11, line=2),
        Change("end", "Cid", "works in", "R&D", 2, line=3),
        Change("end", "Cid", "works in", "R&D", 3, line=4),
        Change("end", "Nobody", "leads", "R&D", 11, line=5),
        Change("retract", "Ann", "owns", "R&D", line=6),
        Change("retract", "Bob", "leads", "R&D", line=7),
        Change("add", "Ann", "works in", "R&D", 4, line=8),
        Change("end", "Ann", "leads", "Sales", 11, line=9),
        Change("retract", "Bob", "leads", "Sales", 12, line=10),
        Change("end", "Eve", "leads", "IT", 14, line=11),
        Change("add", "Eve", "leads", "IT", 12, line=12),
        Change("add", "Eve", "leads", "IT", 12, line=13),
        Change("end", "Cid", "works in", "R&D", 7, line=14),
    ]
    with small_store(tmp_path) as store:
        before = state_of(store)
        found = ChangeSet(changes).validate(store, lambda at: f"day {at}")
        assert [rejection.line for rejection in found.rejected] == [*range(1, 11)]
        reasons = [rejection.reason for rejection in found.rejected]
        assert reasons == [
            "it holds already, since day 1",
            "it does not hold at day 11",
            "the end is before its beginning at day 3",
            "it begins at day 3, and an end must be later (retract what was never true)",
            "the entity 'Nobody' is unknown",
            "the relation 'owns' is unknown",
            "it is unknown",
            "it holds again from day 6 on, and an addition before that needs an end",
            "it never held",
            "it does not hold at day 12",
        ]
        assert [change.line for change in found.changes] == [14, 12, 11]
        assert found.notes == ["line 13 repeats line 12"]
        assert state_of(store) == before
        assert store.entities.find("Eve") is None
        with pytest.raises(ValueError, match="needs a time"):
            ChangeSet([Change("add", "a", "r", "b")])
        with pytest.raises(ValueError, match="op must be one of"):
            ChangeSet([Change("drop", "a", "r", "b", 1)])


def test_the_hash_is_of_the_content() -> None:
    changes = ChangeSet(EXPECTED)
    assert changes.content_hash == ChangeSet(EXPECTED[::-1] + EXPECTED).content_hash
    assert changes.content_hash != ChangeSet(EXPECTED[1:]).content_hash
    assert repr(changes) == "ChangeSet(2 added, 1 ended, 1 retracted)"


EXPORTS = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.just("r"), st.sampled_from("cd")),
    st.lists(st.tuples(st.integers(0, 3), st.one_of(st.none(), st.integers(1, 3))), max_size=1),
)


@settings(max_examples=30)
@given(EXPORTS, EXPORTS)
def test_a_full_export_is_reached(tmp_path_factory: pytest.TempPathFactory, old: dict, new: dict) -> None:  # type: ignore[type-arg]
    def rows(export: dict) -> list:  # type: ignore[type-arg]
        return [
            (*triple, start, None if length is None else start + length)
            for triple, pairs in export.items()
            for start, length in pairs
        ]

    def spans(export: dict) -> dict:  # type: ignore[type-arg]
        return {row[:3]: (row[3], OPEN if row[4] is None else row[4]) for row in rows(export)}

    expected = {triple: [span] for triple, span in spans(new).items()}
    for triple, (start, stop) in spans(old).items():
        other = spans(new).get(triple, (OPEN, OPEN))
        if stop <= other[0] or other[1] <= start:  # the export lacks it: it ends now, unless it has ended before
            expected[triple] = sorted([*expected.get(triple, []), (start, min(stop, 9))])
    with quick(FactStore.create(tmp_path_factory.mktemp("full") / "facts.db", "day")) as store:
        import_rows(store, rows(old), clock=9)
        changes = ChangeSet.from_full_export(store, rows(new), at=9)
        checked = changes.validate(store)
        assert checked.rejected == []
        update = store.record(checked.changes, 9, changes.content_hash)
        store.sync([Release(0, None, 0, 9, (update,))])
        assert state_of(store) == expected
        assert len(ChangeSet.from_full_export(store, rows(new), at=9)) == 0


def test_an_export_of_the_present(tmp_path: Path) -> None:
    with small_store(tmp_path) as store:
        earlier = [*FACTS[1:], ("Ann", "leads", "R&D", 0, None)]
        found = ChangeSet.from_full_export(store, earlier, at=11)  # type: ignore[arg-type]
        assert [change.op for change in found] == ["retract", "add"]
        assert found.validate(store).rejected == []
        export = [fact for fact in FACTS if fact[4] is None and fact[0] != "Cid"]
        assert ChangeSet.from_full_export(store, export, at=11).changes == [Change("end", "Cid", "works in", "R&D", 11)]
