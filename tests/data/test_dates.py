import datetime
from typing import Any

import pytest

from tkg_incremental.data.dates import parse_instant, parse_period, start_of
from tkg_incremental.data.units import UNITS, Period, convert, format_instant


def hours(text: str) -> int:
    moment = datetime.datetime.fromisoformat(text)
    return moment.toordinal() * 24 + moment.hour


@pytest.mark.parametrize(
    ("text", "unit", "label"),
    [
        ("2024-01-05T08:30:00", "hour", "2024-01-05 08:00"),
        ("2024-01-05T08:30", "hour", "2024-01-05 08:00"),
        ("2024-01-05 08:30:00.1234567", "hour", "2024-01-05 08:00"),
        ("2024-01-05T08:30:00Z", "hour", "2024-01-05 08:00"),
        ("2024-01-05 08:30:00 UTC", "hour", "2024-01-05 08:00"),
        ("2024-01-05T01:30:00+02:00", "hour", "2024-01-04 23:00"),
        ("2024-01-05T01:30:00+02:00", "day", "2024-01-04"),
        ("2024-01-05 00:00:00", "day", "2024-01-05"),
        ("2024-01-05", "day", "2024-01-05"),
        ("2024/01/05", "day", "2024-01-05"),
        ("2024-01-15", "week", "2024-W03"),
        ("2024-W03", "week", "2024-W03"),
        ("2021-01-03", "week", "2020-W53"),
        ("2024-05", "month", "2024-05"),
        ("2024-05-31", "month", "2024-05"),
        ("2024-Q2", "quarter", "2024-Q2"),
        ("2024Q2", "quarter", "2024-Q2"),
        ("2024-06", "quarter", "2024-Q2"),
        ("2024-Q2", "year", "2024"),
        ("2024-W03", "year", "2024"),
        ("1704441600", "day", "2024-01-05"),
        ("1704441600", "hour", "2024-01-05 08:00"),
        ("-44", "year", "-44"),
        ("-431-##-##", "year", "-431"),
        ("1990-05-##", "month", "1990-05"),
        ("17", "index", "17"),
    ],
)
def test_dates_as_they_come(text: str, unit: str, label: str) -> None:
    assert format_instant(parse_instant(text, unit), unit) == label


def test_dates_with_a_format() -> None:
    assert parse_instant("03/04/2024", "day", dayfirst=True) == datetime.date(2024, 4, 3).toordinal()
    assert parse_instant("03.04.2024 07:15", "hour", dayfirst=True) == hours("2024-04-03T07:00")
    assert parse_instant("03/04/2024", "day", date_format="%m/%d/%Y") == datetime.date(2024, 3, 4).toordinal()
    assert parse_period("5 Jan 2024", date_format="%d %b %Y") == Period("day", datetime.date(2024, 1, 5).toordinal())
    assert parse_period("Jan 2024", date_format="%b %Y") == Period("month", 2024 * 12)
    assert parse_period("20240105", date_format="%Y%m%d").unit == "day"
    assert parse_instant("0", "hour", date_format="unix") == hours("1970-01-01")
    assert parse_instant("1704441600000", "day", date_format="unix_ms") == datetime.date(2024, 1, 5).toordinal()
    # With dayfirst, ISO dates keep their order.
    assert parse_instant("2024-04-03", "day", dayfirst=True) == datetime.date(2024, 4, 3).toordinal()


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("03/04/2024", {}, "(got '03/04/2024'); in a file, dayfirst=True or date_format='%m/%d/%Y' tell"),
        ("25/12/2024", {}, "(got '25/12/2024'); in a file, dayfirst=True reads it, on the command line --dayfirst"),
        ("12/25/2024", {"dayfirst": True}, "expected a date that exists (got '12/25/2024'"),
        ("5 Jan 2024", {}, "expected a date YYYY-MM-DD (got '5 Jan 2024')"),
        ("2024-01-05", {"date_format": "%d %b %Y"}, "expected a date of the format '%d %b %Y' (got '2024-01-05')"),
        (
            "20240105",
            {},
            "(got '20240105'); in a file, date_format='%Y%m%d' reads it, on the command line --date-format",
        ),
        ("1704441600000", {}, "(got '1704441600000'); in a file, date_format='unix_ms' reads it"),
        ("2024-W54", {}, "expected a date that exists (got '2024-W54'"),
        ("2024-13", {}, "expected a date that exists (got '2024-13'"),
        ("2024-01-05T25:00", {}, "expected a date that exists (got '2024-01-05T25:00'"),
        ("0001-01-01T00:00+02:00", {}, "expected a date that exists"),
        ("x", {"date_format": "unix"}, "expected a number of seconds since 1970 (got 'x')"),
        ("inf", {"date_format": "unix"}, "expected a number of seconds since 1970 (got 'inf')"),
    ],
)
def test_dates_that_cannot_be_read(text: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as error:
        parse_instant(text, "day", **options)  # type: ignore[arg-type]
    assert message in str(error.value)


def test_objects() -> None:
    pandas = pytest.importorskip("pandas")
    day = datetime.date(2024, 1, 5).toordinal()
    stamp = pandas.Timestamp("2024-01-05 08:30")
    for value in (
        stamp,
        stamp.to_pydatetime(),
        stamp.to_numpy(),
        datetime.date(2024, 1, 5),
        pandas.Period("2024-01-05"),
    ):
        assert parse_instant(value, "day") == day
    assert parse_instant(stamp.tz_localize("Asia/Tokyo"), "day") == day - 1
    assert parse_instant(2024.0, "year") == parse_instant(2024, "year") == 2024
    assert parse_instant(17.0, "index") == 17


def test_a_coarser_date_is_no_instant_but_covers_a_period() -> None:
    with pytest.raises(ValueError, match=r"expected a month YYYY-MM or a date YYYY-MM-DD \(got '2024'\)"):
        parse_instant("2024", "month")
    assert convert(Period("year", 2024), "month") == (2024 * 12, 2024 * 12 + 11)
    assert convert(Period("quarter", -3), "month") == (-9, -7)
    first, last = convert(parse_period("2024-02"), "day")
    assert (format_instant(first, "day"), format_instant(last, "day")) == ("2024-02-01", "2024-02-29")
    assert [format_instant(hour, "hour") for hour in convert(parse_period("9999"), "hour")] == [
        "9999-01-01 00:00",
        "9999-12-31 23:00",
    ]
    with pytest.raises(ValueError, match=r"years 1 … 9999 have days \(got the year -44\)"):
        convert(Period("year", -44), "day")


@pytest.mark.parametrize(
    ("written", "unit", "begin"),
    [
        ("2024-02-01", "hour", "2024-02-01 00:00"),
        ("2024-02", "day", "2024-02-01"),
        ("2024-Q2", "month", "2024-04"),
        (2024, "week", "2024-W01"),
        ("2024-02-01", "day", None),
        ("2024-02-01 08:30", "day", None),
        ("1998–1999", "month", None),
        ("soon", "day", None),
        (7, "index", None),
    ],
)
def test_the_beginning_of_a_coarser_date(written: Any, unit: str, begin: str | None) -> None:
    assert start_of(written, unit) == begin


@pytest.mark.parametrize("unit", UNITS[:-1])
def test_labels_are_read_back(unit: str) -> None:
    start = parse_instant("1999-12-30T05:00", unit)
    for instant in range(start, start + 400):
        assert parse_instant(format_instant(instant, unit), unit) == instant


def test_bad_unit() -> None:
    with pytest.raises(ValueError, match=r"unit must be one of .*'week'.* \(got 'fortnight'\)"):
        parse_instant("2024", "fortnight")


@pytest.mark.parametrize("date_format", ["%Y%Y", "%", "%Q", "%d.%d.%Y"])
def test_formats_that_are_none(date_format: str) -> None:
    with pytest.raises(ValueError, match=r"expected a date of the format"):
        parse_instant("2020-01-01", "day", date_format=date_format)


def test_a_week_has_seven_days() -> None:
    assert convert(Period("week", 0), "day") == (1, 7)
    assert convert(Period("week", 1), "hour") == (8 * 24, 14 * 24 + 23)
