"""Dates, also those that are written out, as numbers: days since 1970, and those parts of a date that vary."""

from __future__ import annotations

import contextlib
import importlib.util
import re
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from .._base.saveable import saveable
from .._base.sentences import shortened
from .._base.warn import warn
from .frames import Column, Kind, dates, factorized

ISO = "ISO8601"

DATE_FORMATS = (
    *(ISO, "%d.%m.%Y", "%d.%m.%y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%m/%d/%Y", "%d/%m/%Y", "%m/%d/%y"),
    *("%d/%m/%y", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p"),
    *("%m/%d/%Y %I:%M:%S %p", "%m-%d-%Y", "%d-%m-%Y", "%b-%Y", "%b %Y", "%B %Y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y"),
    *("%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %d %Y", "%H:%M", "%H:%M:%S"),
)
"""How dates are written, in the order in which they are tried: months before days where both could be meant."""

ORDERS = {"%m/": "month", "%m-": "month", "%d/": "day", "%d-": "day"}
"""How formats begin that people read in two ways, and what comes first."""

DATE_LIKE = re.compile(r"(?=.*\d).{1,14}[-/.:, ].{1,25}")
"""What may be a date, before it is tried: a year alone is a number."""

PLAIN = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
"""Dates of ISO 8601 that NumPy reads, without pandas. Numbers alone, which it reads as years, are none."""

TRIED_DATES = 20
"""Values that a format must fit before all are tried."""

DATE_PARTS = ("days", "year", "month", "day", "weekday", "hour")


@saveable
@dataclass(frozen=True, eq=False)
class DateColumn:
    """Days since 1970, and those of year, month, day, weekday and hour that vary; years alone say what days say."""

    name: Any
    written: str | None
    """How they are written; None for a column that holds dates already."""
    parts: list[str]

    taken: ClassVar[tuple[Kind, ...]] = ("dates", "text", "categories")
    """What later rows may hold."""

    @classmethod
    def learnt(cls, name: Any, written: str | None, times: np.ndarray) -> Self:
        known = times[~np.isnat(times)]
        values = date_parts(known)
        varying = [part for part in DATE_PARTS[1:] if np.unique(values[part]).size > 1]
        if "day" not in varying and "weekday" in varying:
            varying.remove("weekday")  # months or years alone were written down
        return cls(name, written, ["days", *([] if varying == ["year"] else varying)])

    @property
    def kind(self) -> str:
        return "dates" if self.written is None else "dates written out"

    @property
    def width(self) -> int:
        return len(self.parts)

    @property
    def words(self) -> str:
        first = ORDERS.get((self.written or "")[:3])
        return f"dates{'' if first is None else f', {first} first'}: {', '.join(self.parts)}"

    def times(self, column: Column, kind: Kind) -> np.ndarray:
        if kind == "dates":
            return dates(column)
        codes, values = factorized(column)
        return np.append(parsed_dates(values, self.written or ISO), np.datetime64("NaT", "us"))[codes]

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        values = date_parts(self.times(column, kind))
        return np.stack([values[part] for part in self.parts], axis=1)

    def check(self) -> None:
        if self.written not in (None, *DATE_FORMATS) or not self.parts or not {*self.parts} <= {*DATE_PARTS}:
            raise ValueError("no such format or part of a date")


def date_format(values: list[str]) -> str | None:
    """How these different values are written, if they are dates: the first format that fits every one."""
    if not values or not all(map(DATE_LIKE.fullmatch, values)):
        return None
    for written in DATE_FORMATS if _has_pandas() else (ISO,):
        few, rest = values[:TRIED_DATES], values[TRIED_DATES:]
        if not np.isnat(parsed_dates(few, written)).any() and not np.isnat(parsed_dates(rest, written)).any():
            return written
    return None


def check_order(name: Any, values: list[str], written: str) -> None:
    """A warning where other dates would be meant if these began with the day, and nothing says that they do not."""
    if ORDERS.get(written[:3]) != "month":
        return
    other = parsed_dates(values, f"%d{written[2:].replace('%d', '%m', 1)}")
    differ = np.flatnonzero(other != parsed_dates(values, written))
    if differ.size and not np.isnat(other).any():
        example = shortened(values[differ[0]])
        warn(
            f"Dates in column {shortened(name)} are read with the month first, but the day could be meant in each "
            f"({example}): write them as 2020-01-31 to be sure."
        )


def parsed_dates(values: list[str], written: str) -> np.ndarray:
    """Dates and times without their zone, as they are in Greenwich; what is none is a gap."""
    if written == ISO and all(map(PLAIN.fullmatch, values)):
        with contextlib.suppress(ValueError):  # the 31st of February
            return np.array(values, dtype="datetime64[us]")
    if not _has_pandas():
        return np.array([_date_or_gap(value) for value in values], dtype="datetime64[us]")
    import pandas

    found = pandas.to_datetime(pandas.Series(values, dtype=object), format=written, utc=True, errors="coerce")
    return found.dt.tz_localize(None).to_numpy(dtype="datetime64[us]")


def _has_pandas() -> bool:
    return importlib.util.find_spec("pandas") is not None


def _date_or_gap(value: str) -> np.datetime64:
    try:
        return np.datetime64(value if PLAIN.fullmatch(value) else "NaT", "us")
    except ValueError:
        return np.datetime64("NaT", "us")


def date_parts(times: np.ndarray) -> dict[str, np.ndarray]:
    """Numbers, NaN where there is no date: days since 1970, year, month, day, weekday (Monday is 0) and hour."""
    gaps = np.isnat(times)
    times = np.where(gaps, np.datetime64(0, "us"), times.astype("datetime64[us]"))
    seconds = times.astype(np.int64) / 1e6
    days, months = (times.astype(f"datetime64[{unit}]") for unit in "DM")
    day, month = days.astype(np.int64), months.astype(np.int64)
    parts = {"days": seconds / 86_400, "year": month // 12 + 1970, "month": month % 12 + 1}
    parts |= {"day": (days - months.astype("datetime64[D]")).astype(np.int64) + 1, "weekday": (day + 3) % 7}
    parts["hour"] = np.floor((seconds - 86_400.0 * day) / 60) / 60
    return {name: np.where(gaps, np.nan, values.astype(np.float64)) for name, values in parts.items()}
