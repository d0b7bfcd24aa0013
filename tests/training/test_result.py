import json
import math
from pathlib import Path

import pytest

from tkg_incremental.training import Result
from tkg_incremental.training.result import SUMMARY, format_table, show_number


@pytest.fixture
def result() -> Result:
    result = Result("Data", "DE", "FT", seed=3, num_steps=4)
    result.add(2, "two", {"C@10": 10.0, "A@10": 20.0}, {0: 30.0, 2: 10.0}, data_size=5, epochs=1)
    result.add(3, "three", {"A@10": 30.0, "MRR": math.nan}, {0: 20.0, 2: 14.0, 3: math.nan}, data_size=7, epochs=2)
    result.history += [{"time": 2, "CE": 1.5, "val C@10": math.nan}]
    return result


def test_summary(result: Result) -> None:
    assert tuple(result.summary) == SUMMARY
    assert result.summary["C@10"] == 10  # of the steps that have it
    assert result.summary["A@10"] == 25
    assert result.summary["data_size"] == 6
    assert math.isnan(result.summary["MRR"])
    assert math.isnan(result.steps[0]["F@10"])  # nothing can have been forgotten yet
    assert math.isfinite(result.steps[1]["F@10"])


def test_round_trip(result: Result, tmp_path: Path) -> None:
    result.link_prediction = {"MRR": 12.0}
    result.save(tmp_path / "metrics.json")
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert written["steps"][1]["MRR"] is None
    assert written["alpha"]["3"] == {"0": 20.0, "2": 14.0, "3": None}
    assert "NaN" not in (tmp_path / "metrics.json").read_text()
    loaded = Result.load(tmp_path / "metrics.json")
    assert repr(loaded) == repr(result)
    assert repr(Result.from_dict(result.to_dict())) == repr(result)


def test_a_failed_write_leaves_the_old_file(result: Result, tmp_path: Path) -> None:
    result.save(tmp_path / "metrics.json")
    before = (tmp_path / "metrics.json").read_bytes()
    result.steps[0]["C@10"] = object()
    with pytest.raises(TypeError):
        result.save(tmp_path / "metrics.json")
    assert (tmp_path / "metrics.json").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.json"]


def test_str(result: Result) -> None:
    title, header, line, values = str(result).splitlines()
    assert title == "FT · DE · Data · seed 3 · 2 steps"
    assert header.split() == list(SUMMARY)
    assert len(values.split()) == len(line.split()) == len(SUMMARY)


def test_numbers() -> None:
    shown = {12345.6: "12,346", 12.345: "12.35", 0.0123: "0.0123", 0.0: "0.00", 7: "7", -0.02: "-0.02"}
    assert {value: show_number(value) for value in shown} == shown
    assert show_number(math.nan) == "–"


def test_tables() -> None:
    lines = [" a   long", "──  ─────", " x   1.00", "yy  22.50"]
    assert format_table(["a", "long"], [["x", 1.0], ["yy", 22.5]]).splitlines() == lines
