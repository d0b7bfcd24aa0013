import json
import math
from pathlib import Path

import pytest

from tkg_incremental.training import Result
from tkg_incremental.training.result import SUMMARY


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
    result.link_prediction, result.calibration, result.known_ranked_first = {"MRR": 12.0}, {"error": 0.5}, 0.25
    result.time_prediction, result.before = {"aeIOU": 20.0}, {2: 8.0, 3: math.nan}
    result.exclude_ended = True
    result.save(tmp_path / "metrics.json")
    written = json.loads((tmp_path / "metrics.json").read_text())
    assert written["steps"][1]["MRR"] is None
    assert written["alpha"]["3"] == {"0": 20.0, "2": 14.0, "3": None}
    assert "NaN" not in (tmp_path / "metrics.json").read_text()
    loaded = Result.load(tmp_path / "metrics.json")
    assert repr(loaded) == repr(result)
    assert repr(Result.from_dict(result.to_dict())) == repr(result)


def test_transfer(result: Result) -> None:
    result.before = {2: 8.0, 3: 10.0}
    assert result.transfer == {"BWT": 4, "FWT": 9, "omega_new": 0.1, "omega_old": pytest.approx((0.3 + 0.17) / 2)}
    assert result.to_dict()["transfer"] == result.transfer


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
    result.exclude_ended = True
    assert str(result).splitlines()[0] == "FT · DE · Data · seed 3 · 2 steps · ended facts excluded"
    result.link_prediction = {"MRR": 12.0, "Hits@1": 5.0}
    assert str(result).splitlines()[1].split() == ["MRR", "Hits@1"]


def test_results_of_earlier_versions(result: Result) -> None:
    state = result.to_dict()
    del state["calibration"], state["known_ranked_first"], state["time_prediction"], state["before"], state["transfer"]
    del state["exclude_ended"]
    assert repr(Result.from_dict(state)) == repr(result)


def test_notebooks_show_a_table() -> None:
    page = Result("Some <data>", "DE", "FT", 3, 4, link_prediction={"MRR": 12.5})._repr_html_()
    assert "FT · DE · Some &lt;data&gt; · seed 3" in page
    assert "<th>MRR</th>" in page
    assert "<td>12.50</td>" in page
