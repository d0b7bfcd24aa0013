import math

import pytest
import torch
from learning import stir

from tkg_incremental.models.calendar_de import CalendarDE, calendar_of

# Years since the first, months and days.
DATES = [[0, 12, 28], [0, 12, 29], [0, 12, 30], [0, 12, 31], [1, 1, 1], [1, 1, 2], [1, 1, 3]]


@pytest.mark.parametrize("share", [0.25, 0.5, 0.75])
def test_formula(share: float) -> None:
    model = CalendarDE(5, 2, 7, 8, temporal_share=share, first_date="2014-12-28").double()
    stir(model, seed=1)
    assert model.calendar.tolist() == DATES
    tables = {name: table.tolist() for name, table in model.tables().items()}
    moving, still = round(4 * share), 4 - round(4 * share)
    found = model.entity(torch.tensor([0, 4]), torch.tensor([3, 6])).tolist()
    for row, i, t in zip(found, [0, 4], [3, 6], strict=True):
        temporal = [
            sum(
                tables[f"{part}_amplitude"][i][n]
                * math.sin(tables[f"{part}_frequency"][i][n] * when + tables[f"{part}_phase"][i][n])
                for part, when in zip(("year", "month", "day"), DATES[t], strict=True)
            )
            for n in range(2 * moving)
        ]
        static = tables["entity_vectors"][i]
        expected = temporal[:moving] + static[:still] + temporal[moving:] + static[still:]
        assert row == pytest.approx(expected)


def test_the_calendar_grows() -> None:
    model = CalendarDE(5, 2, 7, 8, first_date="2014-12-28")
    model.expand(num_steps=9)
    assert model.calendar[7:].tolist() == [[1, 1, 4], [1, 1, 5]]


def test_calendars() -> None:
    assert calendar_of("2011-11-01", 3, "month").tolist() == [[2011, 11, 1], [2011, 12, 1], [2012, 1, 1]]
    assert calendar_of("2011-01-01", 2, "year").tolist() == [[2011, 1, 1], [2012, 1, 1]]
    assert calendar_of("2005-01-01", 4017)[-1].tolist() == [2015, 12, 31]
    with pytest.raises(ValueError, match=r"first_date must be a date YYYY-MM-DD \(got '2014'\)"):
        calendar_of("2014", 3)
    with pytest.raises(ValueError, match=r"unit must be one of day, month, year \(got 'hour'\)"):
        calendar_of("2014-01-01", 3, "hour")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"hidden_channels": 7, "decoder": "distmult"}, r"hidden_channels must be even \(got 7\)"),
        ({"temporal_share": 0.001}, r"temporal_share must leave some of 200 channels .* \(got 0.001\)"),
        ({"temporal_share": 1.0}, r"temporal_share must leave .* \(got 1.0\)"),
        ({"max_frequency": 4.0}, r"max_frequency must lie in \(0, π\] \(got 4.0\)"),
    ],
)
def test_options(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CalendarDE(2, 2, 2, **options)  # type: ignore[arg-type]
