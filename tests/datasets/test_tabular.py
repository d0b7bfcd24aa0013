"""A user's own files: what they may look like, and what is said when they are wrong."""

from __future__ import annotations

import datetime
import gc
from pathlib import Path
from typing import Any

import pytest
import torch
from oracles import rows_of

from tkg_incremental.data import TimeAxis
from tkg_incremental.datasets import DataError, TabularTKG
from tkg_incremental.datasets.options import Holdout, ReadOptions

LEADERS = [
    ("Trump", "president of", "US", "2017", "2020"),
    ("Biden", "president of", "US", "2021", ""),
    ("Washington, D.C.", "capital of", "US", "", ""),
]


def write(path: Path, lines: list[tuple[str, ...]], delimiter: str = "\t") -> Path:
    path.write_text("".join(delimiter.join(line) + "\n" for line in lines))
    return path


def named_rows(dataset: TabularTKG, split: str = "train") -> set[tuple[str, str, str, str]]:
    entities, relations, labels = dataset.entity_names, dataset.relation_names, dataset.timeline.labels
    return {
        (entities[head], relations[rel], entities[tail], labels[time])
        for head, rel, tail, time in dataset.timeline.split(split).quads().tolist()
    }


EXPECTED = (
    {("Trump", "president of", "US", str(year)) for year in range(2017, 2021)}
    | {("Biden", "president of", "US", "2021")}
    | {("Washington, D.C.", "capital of", "US", str(year)) for year in range(2017, 2022)}
)


# What files may look like ------------------------------------------------------------------------------


def test_intervals(tmp_path: Path) -> None:
    dataset = TabularTKG(write(tmp_path / "facts.tsv", LEADERS))
    assert str(dataset) == "TabularTKG(5 steps 2017 … 2021, 4 entities, 2 relations, 10 / 0 / 0 rows, 3 / 0 / 0 facts)"
    assert named_rows(dataset) == EXPECTED


@pytest.mark.parametrize("mark", ["", "-", "?", "####-##-##", "None", "NaN", "null"])
def test_open_ends(tmp_path: Path, mark: str) -> None:
    lines = [tuple(field or mark for field in line) for line in LEADERS]
    assert named_rows(TabularTKG(write(tmp_path / "facts.tsv", lines))) == EXPECTED


def test_open_ends_of_postgresql(tmp_path: Path) -> None:
    lines = [(*names, start or "-infinity", end or "infinity") for *names, start, end in LEADERS]
    assert named_rows(TabularTKG(write(tmp_path / "facts.tsv", lines))) == EXPECTED
    with pytest.raises(DataError, match=r"line 1: expected a date such as .* \(got 'infinity'\)"):
        TabularTKG(write(tmp_path / "facts.tsv", [("a", "r", "b", "infinity", "2020")]))
    with pytest.raises(DataError, match=r"line 1: expected a date such as .* \(got '-infinity'\)"):
        TabularTKG(write(tmp_path / "facts.tsv", [("a", "r", "b", "2020", "-infinity")]))


def test_header_in_another_order(tmp_path: Path) -> None:
    lines = [("Until", "note", "Object", "relation", "since", "subject")]
    lines += [(end, "x", tail, rel, start, head) for head, rel, tail, start, end in LEADERS]
    assert named_rows(TabularTKG(write(tmp_path / "facts.tsv", lines))) == EXPECTED


def test_named_columns(tmp_path: Path) -> None:
    lines = [(start, "x", head, rel, tail, end) for head, rel, tail, start, end in LEADERS]
    columns = ["start", "-", "head", "rel", "tail", "end"]
    assert named_rows(TabularTKG(write(tmp_path / "facts.tsv", lines), read=ReadOptions(columns=columns))) == EXPECTED
    with pytest.raises(ValueError, match="columns must name all of"):
        TabularTKG(tmp_path / "facts.tsv", read=ReadOptions(columns=["head", "rel", "tail"]))


def test_csv(tmp_path: Path) -> None:
    quoted = [tuple(f'"{field}"' for field in line) for line in LEADERS]
    assert named_rows(TabularTKG(write(tmp_path / "facts.csv", quoted, ","))) == EXPECTED
    semicolons = write(tmp_path / "facts.txt", quoted, ";")
    assert named_rows(TabularTKG(semicolons)) == EXPECTED


def test_points_in_time(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.tsv", [("a", "r", "b", "2001-05-06"), ("b", "r", "a", "2003")])
    assert named_rows(TabularTKG(path)) == {("a", "r", "b", "2001"), ("b", "r", "a", "2003")}
    assert TabularTKG(path).num_steps == 3


def test_data_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    names = ["head", "rel", "tail", "start", "end"]
    frame = pandas.DataFrame(LEADERS, columns=names)
    assert named_rows(TabularTKG(frame)) == EXPECTED
    # As pandas reads it: years as numbers with gaps, or as time stamps.
    numbers = frame.assign(start=[2017.0, 2021.0, None], end=[2020.0, None, None])
    assert named_rows(TabularTKG(numbers)) == EXPECTED
    stamps = frame.assign(**{name: pandas.to_datetime(frame[name], format="%Y") for name in ("start", "end")})
    assert named_rows(TabularTKG(stamps, root=tmp_path)) == EXPECTED
    assert named_rows(TabularTKG(stamps, root=tmp_path)) == EXPECTED
    with pytest.raises(
        DataError, match="<DataFrame>, row 2: expected a date such as 2024-01-05, 2024-01 or 2024 .got 'soon'"
    ):
        TabularTKG(frame.assign(start=["2017", "soon", "2018"]))
    with pytest.raises(DataError, match="expected the 4 columns head, rel, tail, time"):
        TabularTKG(frame[["head", "rel"]])


class Frame:
    """As much of a data frame as is used, so that this is tested where pandas is not installed."""

    def __init__(self, columns: list[str], rows: list[tuple[Any, ...]]) -> None:
        self.columns, self.rows = columns, rows

    def itertuples(self, index: bool, name: None) -> list[tuple[Any, ...]]:
        return self.rows


def test_anything_like_a_data_frame() -> None:
    stamp = datetime.datetime(2021, 1, 20, 12)
    rows = [
        ("Trump", "r", "US", 2017.0, 2020),
        ("Biden", "r", "US", stamp, None),
        ("x", "r", "US", float("nan"), ""),
    ]
    dataset = TabularTKG(Frame(["head", "rel", "tail", "start", "end"], rows))
    assert {row for row in named_rows(dataset) if row[0] != "x"} == {
        (head, "r", "US", year) for head, _, _, year in EXPECTED if head in ("Trump", "Biden")
    }
    assert dataset.timeline.train.num_rows == 10


# Ids ---------------------------------------------------------------------------------------------------


def test_ids(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.tsv", [("3", "1", "0", "2001"), ("0", "0", "3", "2002")])
    dataset = TabularTKG(path, unit="year", read=ReadOptions(ids=True))
    assert (dataset.num_entities, dataset.num_relations) == (4, 2)
    assert dataset.entity_names == ["0", "1", "2", "3"]
    assert rows_of(dataset.timeline.train.quads()) == [(0, 0, 3, 1), (3, 1, 0, 0)]
    names = write(tmp_path / "entity2id.txt", [("d", "3"), ("a", "0"), ("b", "1"), ("c", "2"), ("e", "4")])
    named = TabularTKG(path, read=ReadOptions(ids=True, entities=names, relations=["is", "was"]))
    assert named_rows(named) == {("d", "was", "a", "2001"), ("a", "is", "d", "2002")}
    assert named.num_entities == 5


def test_names_that_are_given(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.tsv", LEADERS)
    names = ["US", "Biden", "Trump", "Washington, D.C.", "Obama"]
    dataset = TabularTKG(path, read=ReadOptions(entities=names))
    assert dataset.entity_names == names
    assert named_rows(dataset) == EXPECTED


# Steps -------------------------------------------------------------------------------------------------


def test_days(tmp_path: Path) -> None:
    lines = [("a", "r", "b", "2020-02-28", "2020-03-01"), ("b", "r", "a", "2020-02-29", "-")]
    dataset = TabularTKG(write(tmp_path / "facts.tsv", lines), unit="day")
    assert dataset.timeline.labels == ["2020-02-28", "2020-02-29", "2020-03-01"]
    assert dataset.timeline.train.num_rows == 5
    assert dataset.step_of("2020-02-29") == 1


def test_index(tmp_path: Path) -> None:
    dataset = TabularTKG(write(tmp_path / "f.tsv", [("a", "r", "b", "1", "3")]), unit="index")
    assert dataset.timeline.labels == ["0", "1", "2", "3"]
    assert rows_of(dataset.timeline.train.quads()) == [(0, 0, 1, 1), (0, 0, 1, 2), (0, 0, 1, 3)]


def test_count(tmp_path: Path) -> None:
    train = write(tmp_path / "train.tsv", [("a", "r", "b", year, year) for year in ("1990", "1992", "1995", "1999")])
    # Starts and ends count alike, so each year counts 2; what lies outside goes to the outermost steps.
    val = write(tmp_path / "val.tsv", [("a", "r", "b", "1980", "2005"), ("a", "r", "b", "1993", "1993")])
    dataset = TabularTKG(train, val=val, binning=3)
    assert dataset.timeline.labels == ["1980–1992", "1993–2005"]
    assert rows_of(dataset.timeline.train.quads()) == [(0, 0, 1, 0), (0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 1, 1)]
    assert rows_of(dataset.timeline.val.quads()) == [(0, 0, 1, 0), (0, 0, 1, 1), (0, 0, 1, 1)]


def test_given_steps(tmp_path: Path) -> None:
    path = write(tmp_path / "facts.tsv", LEADERS)
    dataset = TabularTKG(path, binning=[2000, "2018", 2020])
    assert dataset.timeline.labels == ["2000–2017", "2018–2019", "2020–2021"]
    assert dataset.timeline.train.num_rows == 3 + 1 + 3
    # A fact reaches as far as the steps do.
    axis = TimeAxis((2018, 2019), (2018, 2019))
    for fact in (LEADERS[0], LEADERS[2]):
        assert TabularTKG(write(path, [fact]), binning=axis).timeline.train.num_rows == 2
    days = write(tmp_path / "days.tsv", [("a", "r", "b", "2020-01-05")])
    assert TabularTKG(days, binning=["2020-01-01", "2020-01-04"]).timeline.labels == [
        "2020-01-01–2020-01-03",
        "2020-01-04–2020-01-05",
    ]


# Splits ------------------------------------------------------------------------------------------------


def test_own_splits(tmp_path: Path) -> None:
    splits = {
        name: write(tmp_path / name, [line]) for name, line in zip(("train", "val", "test"), LEADERS, strict=True)
    }
    dataset = TabularTKG(splits["train"], splits["val"], splits["test"])
    assert [dataset.timeline.split(name).num_rows for name in splits] == [4, 1, 5]
    assert named_rows(dataset, "test") == {row for row in EXPECTED if row[1] == "capital of"}


def test_seeded_split_never_divides_a_fact(tmp_path: Path) -> None:
    lines = [(f"e{i % 25}", "r", f"f{i % 20}", str(2000 + i % 7)) for i in range(400)]
    path = write(tmp_path / "facts.tsv", lines)
    one, same, other = (TabularTKG(path, holdout=Holdout(0.2, 0.3, seed)) for seed in (0, 0, 1))
    triples = {name: {row[:3] for row in named_rows(one, name)} for name in ("train", "val", "test")}
    assert {name: len(part) for name, part in triples.items()} == {"train": 50, "val": 20, "test": 30}
    assert len(triples["train"] | triples["val"] | triples["test"]) == 100
    assert torch.equal(one.timeline.test.quads(), same.timeline.test.quads())
    assert named_rows(one, "test") != named_rows(other, "test")
    assert sum(one.timeline.split(name).num_rows for name in triples) == 400


# The cache ---------------------------------------------------------------------------------------------


def test_cached_by_content_and_options(tmp_path: Path) -> None:
    path, root = write(tmp_path / "facts.tsv", LEADERS), tmp_path / "root"

    def files() -> int:
        return len(list((root / "processed").iterdir()))

    assert named_rows(TabularTKG(path, root=root)) == named_rows(TabularTKG(path, root=root)) == EXPECTED
    assert files() == 1
    TabularTKG(path, root=root, binning="count")
    TabularTKG(path, root=root, holdout=0.5)
    TabularTKG(path, root=root, holdout=Holdout(0.25, 0.25, seed=1))
    assert files() == 4
    write(path, LEADERS[:2])
    assert len(named_rows(TabularTKG(path, root=root))) == 5
    assert files() == 5
    # The same bytes elsewhere are the same dataset.
    TabularTKG(write(tmp_path / "moved.tsv", LEADERS), root=root)
    assert files() == 5


# What is said when they are wrong ----------------------------------------------------------------------

FINE = "a\tr\tb\t2000\t2001\n"


@pytest.mark.parametrize(
    ("content", "line", "problem"),
    [
        ("", None, "expected at least one line (the file is empty)"),
        ("head\trel\ttail\ttime\n", None, "expected at least one fact below the header"),
        (
            "a\tr\tb\n",
            1,
            "expected the 4 columns head, rel, tail, time, the 5 columns head, rel, tail, start, end",
        ),
        (FINE + "a\tr\tb\t2000\n", 2, "expected 5 columns (got 4: 'a | r | b | 2000')"),
        (FINE + "\n" + "a\tr\tb\t2000\t2001\t2002\n", 3, "expected 5 columns (got 6"),
        (FINE + "\tr\tb\t2000\t2001\n", 2, "expected a head (got an empty field)"),
        (FINE + "a\t \tb\t2000\t2001\n", 2, "expected a rel (got an empty field)"),
        (FINE + "a\tr\t\t2000\t2001\n", 2, "expected a tail (got an empty field)"),
        (FINE + "a\tr\tb\tsoon\t2001\n", 2, "expected a date such as 2024-01-05, 2024-01 or 2024 (got 'soon')"),
        (FINE + "a\tr\tb\t2000\t2001-02-29\n", 2, "expected a date that exists (got '2001-02-29': day "),
        (FINE + "a\tr\tb\t2002\t2001\n", 2, "expected a start that is not after the end (got 2002 … 2001)"),
        ("a\tr\tb\t2000\na\tr\tb\t\n", 2, "expected a time (got an empty field)"),
        ("a\tr\tb\t\t\n", None, "expected a fact with a start or an end"),
    ],
)
def test_bad_files(tmp_path: Path, content: str, line: int | None, problem: str) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text(content)
    with pytest.raises(DataError) as error:
        TabularTKG(path)
    where = f"{path}, line {line}" if line else str(path)
    assert str(error.value).startswith(f"{where}: {problem}")


def test_wrong_encoding(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_bytes(FINE.encode() + "München\tr\tb\t2000\t2001\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"facts\.tsv, line 2: expected UTF-8 text"):
        TabularTKG(path)


@pytest.mark.parametrize(
    ("line", "options", "problem"),
    [
        (("x", "0", "1", "2000"), {"read": ReadOptions(ids=True)}, "expected the entity's id as a number (got 'x')"),
        (
            ("0", "0.5", "1", "2000"),
            {"read": ReadOptions(ids=True)},
            "expected the relation's id as a number (got '0.5')",
        ),
        (("0", "0", "999999999", "2000"), {"read": ReadOptions(ids=True)}, "expected the entity's id below 100000000"),
        (
            ("0", "0", "2", "2000"),
            {"read": ReadOptions(ids=True, entities=["a", "b"])},
            "expected the entity's id below 2 (got 2)",
        ),
        (
            ("Grmany", "0", "0", "2000"),
            {"read": ReadOptions(entities=["0", "1", "Germany"])},
            "expected a known entity (no entity is ",
        ),
        (
            ("0", "7", "1", "2000"),
            {"read": ReadOptions(relations=["0"])},
            "expected a known relation (no relation is called '7')",
        ),
        (("0", "0", "1", "2000"), {"unit": "day"}, "expected a date YYYY-MM-DD (got '2000')"),
        (("0", "0", "1", "-2"), {"unit": "index"}, "expected a step that is not negative (got -2)"),
        (("0", "0", "1", "2000-01-01"), {"unit": "index"}, "expected an integer (got '2000-01-01')"),
        (("0", "0", "1", "2006"), {"binning": TimeAxis((2000,), (2005,))}, "expected a time in 2000–2005"),
        (
            ("0", "0", "1", "1999"),
            {"binning": [2000, 2010]},
            "expected a time in 2000–2009 … 2010 (the fact lies",
        ),
    ],
)
def test_bad_lines_for_the_options(
    tmp_path: Path, line: tuple[str, ...], options: dict[str, Any], problem: str
) -> None:
    fine = {"day": "2000-01-01", "index": "3"}.get(options.get("unit", "year"), "2000")
    path = write(tmp_path / "facts.tsv", [("0", "0", "1", fine), line])
    with pytest.raises(DataError) as error:
        TabularTKG(path, **{"unit": "auto", **options})
    assert str(error.value).startswith(f"{path}, line 2: {problem}")


def test_the_error_names_the_split_it_is_in(tmp_path: Path) -> None:
    train, val = write(tmp_path / "train.tsv", LEADERS), write(tmp_path / "val.tsv", [("a", "b", "c", "d")])
    with pytest.raises(DataError, match=r"val\.tsv, line 1: expected a date"):
        TabularTKG(train, val=val)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"binning": "month"}, ValueError, r"binning must be .*; a unit goes into unit \(got 'month'\)"),
        ({"unit": "fortnight"}, ValueError, r"unit must be one of .* \(got 'fortnight'\)"),
        ({"binning": [2000, 1990]}, ValueError, "binning must give the first instants"),
        ({"binning": -1}, ValueError, "binning must be at least 0"),
        ({"binning": []}, ValueError, "binning must give the first instants"),
        ({"binning": TimeAxis((1,), (1,)), "unit": "day"}, ValueError, "unit has no effect with a TimeAxis"),
        ({"unit": "index", "read": ReadOptions(dayfirst=True)}, ValueError, "dayfirst and date_format have no effect"),
        ({"binning": [2000], "read": ReadOptions(outliers="keep")}, ValueError, "outliers='keep' has no effect"),
        ({"holdout": 1.0}, ValueError, r"holdout must be at least 0 and less than 1 \(got 1.0\)"),
        ({"test": "f.tsv", "holdout": 0.1}, ValueError, r"holdout has no effect where val or test are given"),
        ({"facts": "none.tsv"}, FileNotFoundError, "facts must be a file"),
        ({"test": "none.tsv"}, FileNotFoundError, "test must be a file"),
    ],
)
def test_bad_options(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, Any],
    error: type[Exception],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "f.tsv", LEADERS)
    with pytest.raises(error, match=message):
        TabularTKG(**{"facts": "f.tsv", **options})


@pytest.mark.filterwarnings("error")
def test_files_are_closed(tmp_path: Path) -> None:
    path = tmp_path / "facts.tsv"
    path.write_text("a\tb\n" * 3)
    with pytest.raises(DataError):
        TabularTKG(path)
    gc.collect()
