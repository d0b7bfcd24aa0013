"""Facts of files for a live graph."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

import pytest
from graphs import import_rows, quick, state_of
from hypothesis import given, settings
from hypothesis import strategies as st

from tkg_incremental.datasets.lines import DataError
from tkg_incremental.datasets.options import ReadOptions
from tkg_incremental.live import OPEN, FactStore, GraphFolderError, read_named_facts

TEXT = 'head,rel,tail,start,end\n"Ann, Dr.",leads,R&D,2026-01-05,\nBob,leads,Sales,,2026-01-09\n'


def test_intervals_are_half_open(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text(TEXT)
    found = read_named_facts(path, "day")
    assert (found.unit, found.entities, found.relations) == ("day", ["Ann, Dr.", "R&D", "Bob", "Sales"], ["leads"])
    start = int(found.facts[3, 0])
    # Without a start, a fact holds from the first instant that occurs; its last day is included.
    assert found.facts[3].tolist() == [start, start]
    assert found.facts[4].tolist() == [OPEN, start + 5]
    assert found.rows() == [("Ann, Dr.", "leads", "R&D", start, None), ("Bob", "leads", "Sales", start, start + 5)]


def test_numbers_that_are_no_years(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("head,rel,tail,start\na,r,b,1\nb,r,c,2\n")
    found = read_named_facts(path)
    assert (found.unit, found.facts[3].tolist()) == ("index", [1, 2])


def test_options(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("Employee;Role;Team;From\nAnn;leads;R&D;03/04/2024\n")
    columns = {"head": "Employee", "rel": "Role", "tail": "Team", "start": "From"}
    found = read_named_facts(path, "day", ReadOptions(columns=columns, delimiter=";", dayfirst=True))
    plain = tmp_path / "plain.csv"
    plain.write_text("head,rel,tail,start\nAnn,leads,R&D,2024-04-03\n")
    assert found.facts[3].tolist() == read_named_facts(plain, "day").facts[3].tolist()


@settings(max_examples=30)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.just("r"), st.sampled_from("ab"), st.integers(0, 12), st.integers(1, 4)),
        max_size=12,
    )
)
def test_import_covers_the_same_steps(rows: list[tuple[str, str, str, int, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, quick(FactStore.create(Path(folder) / "facts.db", "day")) as store:
        import_rows(store, [(head, rel, tail, start, start + length) for head, rel, tail, start, length in rows])
        covered = {((h, r, t), step) for h, r, t, start, length in rows for step in range(start, start + length)}
        found = [
            (triple, step)
            for triple, pairs in state_of(store).items()
            for low, high in pairs
            for step in range(low, high)
        ]
        assert len(found) == len(set(found))
        assert set(found) == covered
        assert all(a[1] < b[0] for pairs in state_of(store).values() for a, b in itertools.pairwise(pairs))


def test_a_fact_without_a_start_that_ended_before_the_first_step(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("head,rel,tail,start,end\na,r,b,,1995\nc,r,b,,2003\nd,r,b,2001,\n")
    assert read_named_facts(path, "year").facts[3:].T.tolist() == [[1995, 1996], [1995, 2004], [2001, OPEN]]
    assert read_named_facts(path, "year", first=2000).facts[3:].T.tolist() == [[1995, 1996], [2000, 2004], [2001, OPEN]]


def test_facts_without_any_date(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    path.write_text("head,rel,tail,start,end\na,r,b,,\n")
    for unit in ("auto", "year"):
        with pytest.raises(DataError, match=r"facts\.csv: expected a fact with a start or an end"):
            read_named_facts(path, unit)


def test_import_merges(tmp_path: Path) -> None:
    with FactStore.create(tmp_path / "facts.db", "day") as store:
        facts: list[tuple[str, str, str, int, int | None]]
        facts = [("a", "r", "b", 5, 9), ("c", "r", "b", 1, 2), ("a", "r", "b", 1, 6), ("a", "r", "b", 11, None)]
        assert import_rows(store, facts) == 3
        assert state_of(store)["a", "r", "b"] == [(1, 9), (11, 2**63 - 1)]
        with pytest.raises(GraphFolderError, match=r"into an empty store only"):
            import_rows(store, facts)
    with FactStore.create(tmp_path / "other.db", "day") as store:
        with pytest.raises(ValueError, match=r"fact 0 ends at 1, which is not after its beginning at 3"):
            import_rows(store, [("a", "r", "b", 3, 1)])
        assert store.num_entities == 0
