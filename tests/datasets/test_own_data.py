"""Files as databases and people write them, through to facts on a time axis."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from tkg_incremental.data.dates import parse_period
from tkg_incremental.data.units import Period
from tkg_incremental.datasets import DataError, TabularTKG, periods
from tkg_incremental.datasets.options import Holdout, ReadOptions


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_an_export_of_a_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    text = (
        "Id;Employee;Relation;Department;Valid From;Valid To\n"
        "1;Ann;works in;Sales;2023-01-05 00:00:00;2023-01-07 00:00:00\n"
        "2;Bob;works in;Sales;2023-01-06 00:00:00;9999-12-31 00:00:00\n"
        '3;"Cy\n(trainee)";works in;IT;2023-01-08 00:00:00;\\N\n'
    )
    columns = {"head": "Employee", "tail": "Department"}
    dataset = TabularTKG(write(tmp_path / "export.csv", text), read=ReadOptions(columns=columns))
    assert dataset.timeline.labels == ["2023-01-05", "2023-01-06", "2023-01-07", "2023-01-08"]
    assert dataset.entity_names == ["Ann", "Sales", "Bob", "Cy\n(trainee)", "IT"]
    assert dataset.timeline.train.num_rows == 3 + 3 + 1
    assert dataset.unit_reason == "day: the finest unit of the dates; 4 steps"
    assert "columns that are not read: 'Id'" in caplog.text
    assert "unit of time: day (the finest unit of the dates; 4 steps)" in caplog.text


@pytest.mark.parametrize(
    ("unit", "labels"),
    [
        ("hour", ["2024-01-05 08:00", "2024-01-05 09:00", "2024-01-05 10:00"]),
        ("day", ["2024-01-05"]),
        ("week", ["2024-W01"]),
        ("month", ["2024-01"]),
        ("quarter", ["2024-Q1"]),
        ("year", ["2024"]),
        ("auto", ["2024-01-05 08:00", "2024-01-05 09:00", "2024-01-05 10:00"]),
    ],
)
def test_units(tmp_path: Path, unit: str, labels: list[str]) -> None:
    path = write(tmp_path / "f.csv", "a,r,b,2024-01-05T08:30:00,2024-01-05T12:59:00+02:00\n")
    assert TabularTKG(path, unit=unit).timeline.labels == labels


def test_coarse_dates_of_an_interval_cover_their_period(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "a,r,b,2024-02,2024-02\nc,r,d,2024-02-10,2024-02-11\n")
    dataset = TabularTKG(path, unit="day")
    assert (dataset.num_steps, dataset.timeline.labels[-1]) == (29, "2024-02-29")
    with pytest.raises(DataError, match=r"line 1: expected a date YYYY-MM-DD \(got '2024-02'\)"):
        TabularTKG(write(path, "a,r,b,2024-02\n"), unit="day")


def test_formats_of_dates(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "f.csv", "a,r,b,03/04/2024\na,r,c,25/12/2024\n")
    with pytest.raises(DataError, match=r"line 1: .* dayfirst=True or date_format='%m/%d/%Y' .* --dayfirst"):
        TabularTKG(path)
    dataset = TabularTKG(path, unit="day", read=ReadOptions(dayfirst=True))
    assert (dataset.timeline.labels[0], dataset.timeline.labels[-1]) == ("2024-04-03", "2024-12-25")
    with pytest.raises(DataError, match=r"line 2: expected a date of the format '%m/%d/%Y' \(got '25/12/2024'\)"):
        TabularTKG(path, read=ReadOptions(date_format="%m/%d/%Y"))
    caplog.set_level(logging.INFO)
    dataset = TabularTKG(write(path, "a,r,b,1704441600\na,r,c,1704528000\n"), unit="day")
    assert dataset.timeline.labels == ["2024-01-05", "2024-01-06"]
    assert "dates such as 1704441600 are read as Unix seconds" in caplog.text


def test_a_mistyped_year_is_an_error_with_its_line(tmp_path: Path) -> None:
    lines = [f"a{i},r,b,{2000 + i},{2001 + i}\n" for i in range(20)]
    path = write(tmp_path / "f.csv", "".join([*lines[:10], "x,r,b,2012,20121\n", *lines[10:]]))
    message = r"f.csv, line 11: the date '20121' is far .* in 2000 … 2020.*outliers='keep', .* --keep-outliers"
    with pytest.raises(DataError, match=message):
        TabularTKG(path)
    assert TabularTKG(path, read=ReadOptions(outliers="keep")).num_steps == 20121 - 2000 + 1
    # Given steps are not stretched by it.
    assert TabularTKG(path, binning=[2000, 2010]).num_steps == 2


def test_changes_are_no_facts(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "op,head,rel,tail,time\nend,a,r,b,2000\n")
    with pytest.raises(DataError, match="line 1: .* apply them with `tkg-incremental update`"):
        TabularTKG(path)


def test_a_header_of_unknown_names_is_suspected(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "Kopf,Beziehung,Ziel,Zeit\na,r,b,2000\n")
    with pytest.raises(DataError, match=r"line 1: .*got 'Zeit'\); if this is a header, name its columns"):
        TabularTKG(path)


def test_json_lines(tmp_path: Path) -> None:
    facts = [{"subject": "a", "predicate": "r", "object": 7, "since": "2020", "until": None}]
    path = write(tmp_path / "f.jsonl", "\n".join(map(json.dumps, facts)))
    assert TabularTKG(path).entity_names == ["a", "7"]
    with pytest.raises(ValueError, match="delimiter has no effect without a delimited file"):
        TabularTKG(path, read=ReadOptions(delimiter=";"))


def test_missing_cells_of_a_data_frame() -> None:
    pandas = pytest.importorskip("pandas")
    names = ["head", "rel", "tail", "start", "end"]
    fine: list[Any] = ["a", "r", "b", pandas.Timestamp("2020-05-01"), pandas.Timestamp("2020-07-02")]
    for missing in (None, float("nan"), pandas.NA, pandas.NaT, ""):
        for place, role in enumerate(names[:3]):
            row = [missing if place == other else value for other, value in enumerate(fine)]
            with pytest.raises(DataError, match=f"<DataFrame>, row 2: expected a {role} "):
                TabularTKG(pandas.DataFrame([fine, row], columns=names))
        frame = pandas.DataFrame([fine, ["c", "r", "b", fine[3], missing]], columns=names, dtype=object)
        dataset = TabularTKG(frame, unit="month")
        assert dataset.timeline.labels == ["2020-05", "2020-06", "2020-07"]
        assert dataset.timeline.train.num_rows == 6


def test_date_ranges_as_steps() -> None:
    pandas = pytest.importorskip("pandas")
    months = pandas.date_range("2024-01-01", periods=3, freq="MS")
    frame = pandas.DataFrame({"head": "a", "rel": "r", "tail": ["b", "c"], "time": ["2024-01-31", "2024-03-02"]})
    dataset = TabularTKG(frame, binning=months)
    assert dataset.timeline.labels == ["2024-01", "2024-02", "2024-03"]
    assert dataset.timeline.train.quads()[:, 3].tolist() == [0, 2]
    assert TabularTKG(frame.assign(time=pandas.date_range("2024-01-05", periods=2))).timeline.labels == [
        "2024-01-05",
        "2024-01-06",
    ]


def test_everything_is_learnt_unless_asked(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path / "f.csv", "".join(f"a{i % 100},r,b,{2000 + i % 7}\n" for i in range(400)))
    assert TabularTKG(path).held_out == {"val": 0, "test": 0}
    caplog.set_level(logging.INFO)
    dataset = TabularTKG(path, holdout=0.1)
    assert dataset.held_out == {"val": 5, "test": 5}
    assert "5 triples are held out for validation, 5 for test" in caplog.text
    triples = [
        set(map(tuple, dataset.timeline.split(name).quads()[:, :3].tolist())) for name in ("train", "val", "test")
    ]
    assert sum(map(len, triples)) == len(set.union(*triples)) == 100
    assert TabularTKG(path, holdout=Holdout(0, 0.2)).held_out == {"val": 0, "test": 20}


def test_the_unit_of_a_cached_dataset(tmp_path: Path) -> None:
    path = write(tmp_path / "f.csv", "a,r,b,2020-05\n")
    assert TabularTKG(path, root=tmp_path / "root").unit_reason == "month: the finest unit of the dates; 1 step"
    again = TabularTKG(path, root=tmp_path / "root")
    assert again.unit_reason == "month: as chosen from the dates when this dataset was cached"


def test_each_date_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file has many lines and few dates."""
    read: list[str] = []

    def parse(written: str, *options: Any) -> Period:
        read.append(written)
        return parse_period(written, *options)

    monkeypatch.setattr(periods, "parse_period", parse)
    days = [f"2014-01-{day:02d}" for day in range(1, 31)]
    path = write(tmp_path / "f.csv", "".join(f"p{i},r,b{i % 7},{days[i % 30]},{days[i % 30]}\n" for i in range(900)))
    assert TabularTKG(path, unit="day").num_steps == 30
    assert sorted(set(read)) == days
    assert len(read) <= 2 * len(days)  # as a start and as an end
