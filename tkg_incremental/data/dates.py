"""Reading dates as they are written in files."""

from __future__ import annotations

import datetime
import re
from typing import Any

from tkg_incremental.data.units import RANK, Period, check_unit, convert, format_instant

_DATE = re.compile(r"(\d{4})[-/](\d{1,2})[-/](\d{1,2})")
_PARTIAL = re.compile(r"(-?\d{1,4})-(\d{2}|##)-(?:\d{2}|##)")  # unknown digits: 1990-##-##
_MONTH = re.compile(r"(-?\d{4})-(\d{2})")
_WEEK = re.compile(r"(\d{4})-?W(\d{2})")
_QUARTER = re.compile(r"(-?\d{4})[- ]?Q([1-4])")
_YEAR = re.compile(r"-?\d{1,6}")
_DAY_OR_MONTH_FIRST = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?:[T ](.+))?")
_UNIX = re.compile(r"\d{9,10}")
_COMPACT = re.compile(r"\d{8}")
_MILLISECONDS = re.compile(r"\d{12,13}")
_INTEGER = re.compile(r"[-+]?\d{1,18}")
_UTC = re.compile(r" ?(?:Z|UTC)$", re.IGNORECASE)
_FRACTION = re.compile(r"([T ]\d{2}:\d{2}:\d{2})[.,]\d+")
_EPOCH = datetime.date(1970, 1, 1).toordinal() * 24

_EXPECTED = {
    "hour": "a date with a time YYYY-MM-DDTHH:MM",
    "day": "a date YYYY-MM-DD",
    "week": "a week YYYY-Www or a date YYYY-MM-DD",
    "month": "a month YYYY-MM or a date YYYY-MM-DD",
    "quarter": "a quarter YYYY-Qq or a date YYYY-MM-DD",
    "year": "a year or a date YYYY-MM-DD",
    "index": "an integer",
    "auto": "a date such as 2024-01-05, 2024-01 or 2024",
}
_GRANULARITY = (("hour", "HIXcTRsp"), ("day", "djxDF"), ("week", "UWV"), ("month", "mbB"))


def parse_period(value: Any, dayfirst: bool = False, date_format: str | None = None, unit: str = "auto") -> Period:
    """Reads a date in the unit in which it is written.

    ISO 8601 dates are read as they are: ``2024-01-05T08:30:00``, ``2024-01-05``, ``2024-W03``, ``2024-01``,
    ``2024``; so are ``2024-Q2``, ``2024/01/05`` and Unix seconds of 9 or 10 digits. A time with a zone is converted
    to UTC. Minutes and seconds are dropped.

    Args:
        value: The text, or a :class:`datetime.date`, :class:`datetime.datetime` or pandas ``Timestamp``.
        dayfirst: Read ``03/04/2024`` as 3 April. Dates of this form are an error otherwise.
        date_format: A format of :meth:`datetime.datetime.strptime` that all dates have, ``"unix"`` for seconds or
            ``"unix_ms"`` for milliseconds since 1970.
        unit: The unit of the axis, for the error.

    >>> parse_period("2024-01-05")
    Period(unit='day', value=738890)
    """
    if not isinstance(value, str):
        if isinstance(value, datetime.datetime):
            return _hour(value)
        if isinstance(value, datetime.date):
            return Period("day", value.toordinal())
        if type(value).__name__ == "datetime64":  # NumPy's
            return _hour(value.astype("datetime64[s]").item())
        if isinstance(value, float) and value.is_integer():  # a column of integers with gaps is one of floats
            value = int(value)
        value = str(value)
    text = value.strip()
    period = _read(text) if date_format is None and not dayfirst else _read_as(text, dayfirst, date_format)
    if period is None:
        raise unreadable(text, unit)
    return period


def parse_instant(value: Any, unit: str, dayfirst: bool = False, date_format: str | None = None) -> int:
    """Reads a point in time as an integer of ``unit``.

    Args:
        value: A date that is not coarser than ``unit``; see :func:`parse_period`. For ``unit="index"`` an integer.
        unit: ``"hour"``, ``"day"`` (proleptic ordinal), ``"week"``, ``"month"``, ``"quarter"``, ``"year"`` or
            ``"index"``.
        dayfirst: Read ``03/04/2024`` as 3 April.
        date_format: A format of :meth:`datetime.datetime.strptime`, ``"unix"`` or ``"unix_ms"``.

    >>> parse_instant("2021-01-20", "year")
    2021
    """
    check_unit(unit)
    if unit == "index":
        return parse_index(value)
    return instant_of(parse_period(value, dayfirst, date_format, unit), unit, value)


def instant_of(period: Period, unit: str, written: Any) -> int:
    """The instant of a period that is not coarser than ``unit``; ``written`` is quoted in the error."""
    if RANK[period.unit] > RANK[unit]:
        raise unreadable(written, unit)
    return convert(period, unit)[0]


def start_of(value: Any, unit: str) -> str | None:
    """The first instant of a date that is coarser than ``unit``, as text; :obj:`None` for anything else.

    >>> start_of("2024-02", "day")
    '2024-02-01'
    """
    try:
        period = parse_period(value)
    except ValueError:  # the label of a step, or an error that the reader of instants describes
        return None
    if unit == "index" or RANK[period.unit] <= RANK[unit]:
        return None
    return format_instant(convert(period, unit)[0], unit)


def parse_index(value: Any) -> int:
    """Reads an integer; integral floats are accepted."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value).strip()
    if not _INTEGER.fullmatch(text):
        raise unreadable(value, "index")
    return int(text)


def is_unix(value: Any) -> bool:
    """Whether a value without a ``date_format`` is read as Unix seconds."""
    return bool(_UNIX.fullmatch(str(value).strip()))


def unreadable(written: Any, unit: str) -> ValueError:
    """The error of a value that is no date of the unit."""
    return ValueError(f"expected {_EXPECTED[unit]} (got {str(written).strip()!r})")


def _read(text: str) -> Period | None:
    if len(text) == 4 and text.isdecimal() and text.isascii():  # the most common forms first
        return Period("year", int(text))
    if len(text) == 19 and text[10] in "T " and text[4] == text[7] == "-":
        return _date_and_time(text)
    match = _DATE.fullmatch(text)
    if match:
        return Period("day", _date(text, *map(int, match.groups())).toordinal())
    if _YEAR.fullmatch(text):
        return Period("year", int(text))
    if len(text) > 10 and text[10] in "T " and _DATE.fullmatch(text[:10]):
        return _date_and_time(text)
    if _UNIX.fullmatch(text):
        return Period("hour", _EPOCH + int(text) // 3600)
    return _read_partial(text)


def _read_partial(text: str) -> Period | None:
    """Dates coarser than a day, and the errors that tell how to have a date read; :obj:`None` for other text."""
    if match := _MONTH.fullmatch(text):
        return _month(text, int(match.group(1)), int(match.group(2)))
    if match := _PARTIAL.fullmatch(text):
        year, month = match.groups()
        return Period("year", int(year)) if month in ("##", "00") else _month(text, int(year), int(month))
    if match := _WEEK.fullmatch(text):
        try:
            monday = datetime.date.fromisocalendar(int(match.group(1)), int(match.group(2)), 1)
        except ValueError as error:
            raise _missing(text, error) from None
        return Period("week", (monday.toordinal() - 1) // 7)
    if match := _QUARTER.fullmatch(text):
        return Period("quarter", int(match.group(1)) * 4 + int(match.group(2)) - 1)
    if match := _DAY_OR_MONTH_FIRST.fullmatch(text):
        sign = match.group(2)
        form = f"%m{sign}%d{sign}%Y"
        hint = f"dayfirst=True or date_format={form!r} tell the order, on the command line --dayfirst or --date-format"
        if int(match.group(1)) > 12:
            hint = "dayfirst=True reads it, on the command line --dayfirst"
        raise ValueError(f"expected a date YYYY-MM-DD (got {text!r}); in a file, {hint}")
    for pattern, form in ((_COMPACT, "%Y%m%d"), (_MILLISECONDS, "unix_ms")):
        if pattern.fullmatch(text):
            raise ValueError(
                f"expected a date YYYY-MM-DD (got {text!r}); in a file, date_format={form!r} reads it, on the command "
                f"line --date-format {form}"
            )
    return None


def _read_as(text: str, dayfirst: bool, date_format: str | None) -> Period | None:
    if date_format in ("unix", "unix_ms"):
        try:
            return Period("hour", _EPOCH + int(float(text) // (3600 if date_format == "unix" else 3_600_000)))
        except (ValueError, OverflowError):
            raise ValueError(f"expected a number of seconds since 1970 (got {text!r})") from None
    if date_format is not None:
        try:
            return _hour(datetime.datetime.strptime(text, date_format), _granularity(date_format))
        except (ValueError, OverflowError, re.error):  # `re.error`: of a format that names a part twice
            raise ValueError(f"expected a date of the format {date_format!r} (got {text!r})") from None
    match = _DAY_OR_MONTH_FIRST.fullmatch(text)
    if not match:
        return _read(text)
    day, _, month, year, time = match.groups()
    date = _date(text, int(year), int(month), int(day))
    return Period("day", date.toordinal()) if time is None else _date_and_time(f"{date.isoformat()} {time}")


def _date_and_time(text: str) -> Period:
    iso = text
    if len(text) != 19:  # Python 3.10 reads neither other lengths of fractions nor "Z"
        iso = _UTC.sub("+00:00", _FRACTION.sub(r"\1", text)).replace(" +", "+")
    try:
        return _hour(datetime.datetime.fromisoformat(iso))
    except (ValueError, OverflowError) as error:
        raise _missing(text, error) from None


def _hour(moment: datetime.datetime, unit: str = "hour") -> Period:
    if moment.tzinfo is not None:
        moment = moment.astimezone(datetime.timezone.utc)
    hour = Period("hour", moment.toordinal() * 24 + moment.hour)
    return hour if unit == "hour" else Period(unit, convert(hour, unit)[0])


def _month(text: str, year: int, month: int) -> Period:
    if not 1 <= month <= 12:
        raise _missing(text, "month must be in 1..12")
    return Period("month", year * 12 + month - 1)


def _date(text: str, year: int, month: int, day: int) -> datetime.date:
    try:
        return datetime.date(year, month, day)
    except ValueError as error:
        raise _missing(text, error) from None


def _missing(text: str, reason: object) -> ValueError:
    return ValueError(f"expected a date that exists (got {text!r}: {reason})")


def _granularity(date_format: str) -> str:
    letters = set(re.findall(r"%[-#]?([A-Za-z])", date_format))
    return next((unit for unit, signs in _GRANULARITY if letters & set(signs)), "year")
