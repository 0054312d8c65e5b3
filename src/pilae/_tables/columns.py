"""What a column of a table becomes: numbers without gaps, a column for each category, the parts of a date.

Nothing here looks at the target, and what is kept are plain values and arrays. pandas is imported where it is needed.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np

from .._base.saveable import check_shape, saveable
from .frames import DATE_FORMATS, Column, Frame, date_format, parsed_dates
from .text import TextColumn

MOST_CATEGORIES = 40
"""A column of words with more than so many is text."""

LEAST_ROWS = 3
"""Rows that a category must have been met in: rarer ones would be learnt from a row or two."""

MARKED_GAPS = 10
"""Numbers missing in at least so many rows: whether one is missing becomes a column of its own."""

DATE_PARTS = ("days", "year", "month", "day", "weekday", "hour")


class Kind(Protocol):
    """What is known about one column."""

    name: str

    @property
    def outputs(self) -> list[str]: ...

    @property
    def words(self) -> str: ...

    def transform(self, column: Column) -> np.ndarray: ...

    def _check_loaded(self) -> None: ...


@saveable
@dataclass(repr=False, eq=False)
class NumberColumns:
    """All columns of numbers at once: gaps become the median, and where there were many also a column of 0 and 1."""

    names: list[str] = field(default_factory=list)
    medians: np.ndarray = field(default_factory=lambda: np.zeros(0))
    marked: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    @classmethod
    def fitted(cls, names: list[str], frame: Frame) -> Self:
        values = frame[names].to_numpy(np.float64)
        missing = np.isnan(values)
        empty = missing.all(axis=0)
        medians = np.zeros(len(names))
        medians[~empty] = np.nanmedian(values[:, ~empty], axis=0)
        return cls(names, medians, (missing.sum(axis=0) >= MARKED_GAPS) & ~empty)

    @property
    def outputs(self) -> list[str]:
        return [
            *self.names,
            *(f"{name}: missing" for name, marked in zip(self.names, self.marked, strict=True) if marked),
        ]

    def transform(self, frame: Frame) -> np.ndarray:
        values = frame[self.names].to_numpy(np.float64)
        missing = np.isnan(values)
        return np.hstack([np.where(missing, self.medians, values), missing[:, self.marked]])

    def _check_loaded(self) -> None:
        if not isinstance(self.names, list) or not all(isinstance(name, str) for name in self.names):
            raise TypeError("names of columns are text")
        check_shape(self.medians, len(self.names))
        check_shape(self.marked, len(self.names))
        if self.medians.dtype != np.float64 or self.marked.dtype != bool:
            raise TypeError("no columns of numbers")


@saveable
@dataclass(repr=False, eq=False)
class CategoryColumn:
    """Few different words: a column of 0 and 1 for each, and one for gaps. Two of them share one."""

    name: str
    values: list[str]
    gaps: bool

    @classmethod
    def fitted(cls, column: Column) -> Self:
        counts = column.value_counts()
        values = sorted(str(value) for value in counts.index[counts >= LEAST_ROWS])
        return cls(str(column.name), values, bool(column.isna().any()))

    @property
    def outputs(self) -> list[str]:
        names = [f"{self.name}: {value}" for value in self.values] + [f"{self.name}: missing"] * self.gaps
        return names if len(names) > 2 else names[1:]

    @property
    def words(self) -> str:
        return f"{len(self.values)} categories" if len(self.values) > 1 else "one category"

    def transform(self, column: Column) -> np.ndarray:
        import pandas as pd

        codes = pd.Index(self.values, dtype="object").get_indexer(column)
        met = codes[:, None] == np.arange(len(self.values))
        met = np.hstack([met, column.isna().to_numpy()[:, None]] if self.gaps else [met]).astype(np.float64)
        if met.shape[1] > 2:
            return met
        return met[:, 1:] + (1 - met.sum(axis=1, keepdims=True)) / 2 if met.shape[1] == 2 else met[:, 1:]  # or neither

    def _check_loaded(self) -> None:
        if not all(isinstance(value, str) for value in [self.name, *self.values]) or not isinstance(self.gaps, bool):
            raise TypeError("no column of categories")
        if len({*self.values}) < len(self.values):
            raise ValueError("a category is there twice")


@saveable
@dataclass(repr=False, eq=False)
class DateColumn:
    """Days since 1970, and those of year, month, day, weekday and hour that vary; years alone say what days say."""

    name: str
    format: str | None
    """How they are written; None for a column that holds dates already."""
    parts: list[str]
    medians: np.ndarray
    gaps: bool

    @classmethod
    def fitted(cls, column: Column, written: str | None) -> Self:
        found = parsed_dates(column, written)
        known = found.dropna()
        values = _date_parts(known)
        varying = [name for name in DATE_PARTS[1:] if np.unique(values[name]).size > 1]
        if "day" not in varying and "weekday" in varying:
            varying.remove("weekday")  # months or years alone were written down
        parts = ["days", *([] if varying == ["year"] else varying)]
        medians = np.array([np.median(values[name]) for name in parts])
        return cls(str(column.name), written, parts, medians, bool(len(known) < len(column)))

    @property
    def outputs(self) -> list[str]:
        return [f"{self.name}: {part}" for part in self.parts] + [f"{self.name}: missing"] * self.gaps

    @property
    def words(self) -> str:
        return f"dates: {', '.join(self.parts)}"

    def transform(self, column: Column) -> np.ndarray:
        found = parsed_dates(column, self.format)
        missing = found.isna().to_numpy()
        values = _date_parts(found)
        filled = [np.where(missing, m, values[name]) for name, m in zip(self.parts, self.medians, strict=True)]
        return np.column_stack([*filled, missing] if self.gaps else filled).astype(np.float64)

    def _check_loaded(self) -> None:
        if not isinstance(self.name, str) or not isinstance(self.gaps, bool):
            raise TypeError("no column of dates")
        if (
            self.format not in (None, *DATE_FORMATS)
            or not {*self.parts} <= {*DATE_PARTS}
            or self.medians.dtype != np.float64
        ):
            raise ValueError("no such part of a date")
        check_shape(self.medians, len(self.parts))


def _date_parts(dates: Column) -> dict[str, np.ndarray]:
    days = dates.to_numpy().astype("datetime64[s]").astype(np.int64) / 86_400  # finer units do not reach far enough
    time = dates.dt
    parts = {"days": days, "weekday": time.day_of_week, "hour": time.hour + time.minute / 60}
    parts |= {name: getattr(time, name) for name in ("year", "month", "day")}
    return {name: np.asarray(values, dtype=np.float64) for name, values in parts.items()}


def kind_of(column: Column) -> Any:
    """What a column that holds no numbers is, from the rows that it is fitted on; None if no row has a value."""
    if not column.notna().any():
        return None
    is_date, written = date_format(column)
    if is_date:
        return DateColumn.fitted(column, written)
    return (CategoryColumn if column.nunique() <= MOST_CATEGORIES else TextColumn).fitted(column)
