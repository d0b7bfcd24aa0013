import math
import xml.etree.ElementTree as ET

import pytest

from tkg_incremental.report.figures import round_range
from tkg_incremental.report.svg import Frame, log_ticks, short, sparse, svg, ticks


def test_ticks_are_round_and_inside() -> None:
    assert ticks(-6, 2) == [-6, -4, -2, 0, 2]
    assert ticks(0, 0.5) == [0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert ticks(3, 3) == [3]
    assert log_ticks(1, 400) == [1, 3, 10, 30, 100, 300]
    assert log_ticks(1, 9000) == [1, 10, 100, 1000]


@pytest.mark.parametrize("values", [[0.0, 43.2], [-3.9, 13.5], [0.0, 0.0], [0.0, 1e-4], [0.0, 4_705_750.0]])
def test_a_range_covers_its_values(values: list[float]) -> None:
    low, high = round_range(values)
    assert low <= min(values)
    assert high >= max(values)
    assert low < high


@pytest.mark.parametrize(("count", "name"), [(23, "2002"), (78, "1998"), (365, "2014-01-01"), (1, "0"), (0, "")])
def test_labels_that_are_shown_fit_side_by_side(count: int, name: str) -> None:
    shown = sparse([name] * count, 400)
    assert len(shown) * len(name) * 9 < 400 or len(shown) <= 2
    assert count == 0 or len(shown) >= 1


def test_numbers_in_a_few_letters() -> None:
    assert [short(v) for v in (0, 12.5, 1000, 9999, 10_000, 1e6, -0.5)] == [
        "0",
        "12.5",
        "1,000",
        "9,999",
        "10k",
        "1M",
        "−0.5",
    ]


def test_values_stand_where_their_ticks_are() -> None:
    frame = Frame(4, 0, 10)
    assert frame.y(0) == frame.height - frame.bottom
    assert frame.y(10) == frame.top
    ranks = Frame(4, 1, 100, log=True, down=True)
    assert ranks.y(1) == ranks.top
    assert ranks.y(10) == pytest.approx((ranks.y(1) + ranks.y(100)) / 2)


def test_a_line_breaks_where_there_is_no_value() -> None:
    frame = Frame(5, 0, 1)
    drawing = ET.fromstring(svg(480, 250, "a & b", frame.line([0.1, 0.2, None, math.nan, 0.5], "s0", list("abcde"))))
    assert drawing.get("aria-label") == "a & b"
    assert [len(line.get("points").split()) for line in drawing.findall("polyline")] == [2, 1]
    assert [dot.find("title").text for dot in drawing.findall("circle")] == ["a", "b", "e"]


def test_bars_reach_from_one_value_to_the_other() -> None:
    frame = Frame(2, -10, 10)
    bar = ET.fromstring(frame.bar(1, 0, -5, "deleted", "5 < 6"))
    assert float(bar.get("y")) == pytest.approx(frame.y(0), abs=0.1)
    assert float(bar.get("height")) == pytest.approx(frame.y(-5) - frame.y(0), abs=0.1)
    assert bar.find("title").text == "5 < 6"


def test_a_band_is_interrupted_where_steps_are_missing() -> None:
    frame = Frame(5, 0, 10)
    drawing = ET.fromstring(f"<g>{frame.band([[1, 2], [2, 4], [0, 1]], 'c0', [0, 1, 3])}</g>")
    assert [len(band.get("points").split()) for band in drawing.findall("polygon")] == [4, 2]
