"""Tables with columns of categories, text, truth values, dates and durations as arrays of numbers.

Categories become codes, which `Intake` makes columns of 0 and 1 of; dates become numbers; gaps stay gaps (NaN). What a
column is, is learnt once from the training rows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .._base.saveable import saveable
from .._base.sentences import listed
from .categories import MOST_CATEGORIES
from .frames import Frame, Kind, column_at, dates, durations, factorized, is_frame, kinds_of, numbers

CODED = ("categories", "numbered categories", "text")
"""Kinds of columns that become codes."""

AS_NUMBERS = ("numbers", "truth values", "objects")
"""Kinds of columns that are read as an array is; of objects some are numbers, and others an error."""

WORDS = ("categories", "numbered categories", "text", "numbers", "truth values")

DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?)?")
"""A date, and a time of day where there is one. Numbers alone, which NumPy reads as years, are none."""

TAKEN: dict[str, tuple[str, ...]] = {
    "numbers": ("numbers", "truth values", "objects"),
    "truth values": ("numbers", "truth values", "objects"),
    "categories": WORDS,
    "numbered categories": WORDS,
    "text": WORDS,
    "dates": ("dates",),
    "dates written out": ("dates", "text", "categories"),
    "durations": ("durations",),
}
"""What later rows may hold in a column, by what it held in `fit`."""


@saveable
@dataclass(frozen=True, eq=False)
class TableColumn:
    """A column: what it holds, of categories their values, of dates whether they have a time of day."""

    name: Any
    kind: str
    values: np.ndarray | None = None
    timed: bool = False

    @classmethod
    def learnt(cls, name: Any, column: Any, kind: Kind) -> Self:
        if kind == "objects":
            raise ValueError(
                f"Column {name!r} of X holds objects that are neither numbers, text, truth values nor dates: leave it "
                "out, or turn it into one of these."
            )
        if kind == "dates":
            return cls(name, kind, timed=_timed(dates(column)))
        if kind not in CODED:
            return cls(name, kind)
        codes, values = factorized(column)
        if kind == "text" and values:
            written = _written_dates(values)
            if written is not None:
                return cls(name, "dates written out", timed=_timed(written))
            if _is_free(codes, len(values)):
                raise _free_text(name, len(values), int((codes >= 0).sum()))
        in_order = sorted(values, key=lambda value: (isinstance(value, str), value))
        return cls(name, kind, _objects(in_order))

    @property
    def width(self) -> int:
        return (4 + self.timed) if self.kind.startswith("dates") else 1

    def __call__(self, column: Any, kind: Kind) -> np.ndarray:
        """Its numbers: rows x width."""
        if kind == "numbers" and np.isnan(numbers(column)).all():  # no value, no kind
            return np.full((len(column), self.width), np.nan)
        if kind not in TAKEN[self.kind]:
            raise ValueError(f"Column {self.name!r} of X held {self.kind} in fit, and now holds {kind}.")
        if self.kind == "dates written out" and kind != "dates":
            codes, values = factorized(column)
            times = np.append(_dates_where_they_are(values), np.datetime64("NaT"))[codes]
            return _date_numbers(times, self.timed)
        if self.kind.startswith("dates"):
            return _date_numbers(dates(column), self.timed)
        if self.kind == "durations":
            return durations(column)[:, None]
        if self.values is None:
            return numbers(column)[:, None]
        codes, values = factorized(column)
        place = {value: code for code, value in enumerate(self.values.tolist())}
        known = np.array([*(place.get(value, -1.0) for value in values), np.nan])  # the last is for gaps, code -1
        return known[codes][:, None]


@saveable
@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table, in order."""

    columns: list[TableColumn]

    @classmethod
    def learnt(cls, frame: Frame) -> Self:
        each = enumerate(zip(frame.columns, kinds_of(frame), strict=True))
        return cls([TableColumn.learnt(_plain_name(name), column_at(frame, j), kind) for j, (name, kind) in each])

    @property
    def sources(self) -> np.ndarray:
        """For each column of numbers that it makes, the one that it is made of."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns of the numbers that it makes which are codes of categories."""
        coded = [number for number, column in enumerate(self.columns) if column.values is not None]
        return tuple(np.flatnonzero(np.isin(self.sources, coded)).tolist())

    def __call__(self, frame: Frame) -> np.ndarray:
        each = enumerate(zip(self.columns, kinds_of(frame), strict=True))
        return np.concatenate([column(column_at(frame, j), kind) for j, (column, kind) in each], axis=1)

    def like(self) -> Frame:
        """A row without a value, for those who want to know what is said of one."""
        import pandas

        return pandas.DataFrame([[np.nan] * len(self.columns)], columns=[column.name for column in self.columns])

    def check(self, count: int) -> None:
        """An error where what was read from a file is no table of so many columns."""
        if len(self.columns) != count:
            raise ValueError("a table of other columns")
        for column in self.columns:
            if not isinstance(column, TableColumn) or column.kind not in TAKEN or type(column.timed) is not bool:
                raise TypeError("columns are not what they are called")


def is_mixed(X: object) -> bool:
    """Whether X is a DataFrame with columns that are more than numbers."""
    return is_frame(X) and any(kind not in AS_NUMBERS for kind in kinds_of(X))


def _plain_name(name: Any) -> Any:
    return name if isinstance(name, (str, int)) else str(name)


def _objects(values: list) -> np.ndarray:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _is_free(codes: np.ndarray, distinct: int) -> bool:
    """Whether text has so many different values that the most common ones are less than half of it."""
    if distinct <= MOST_CATEGORIES:
        return False
    counts = np.sort(np.bincount(codes[codes >= 0]))[::-1]
    return bool(2 * counts[:MOST_CATEGORIES].sum() < counts.sum())


def _free_text(name: Any, distinct: int, rows: int) -> ValueError:
    return ValueError(
        f"Column {name!r} of X holds free text ({distinct:,} different values in {rows:,} rows), which estimators do "
        "not read: leave it out, make numbers of it first (skrub.TableVectorizer in a Pipeline, .astype(float) where "
        "these are numbers written out), or use the command line (pilae fit), which reads text."
    )


def _written_dates(values: list) -> np.ndarray | None:
    """Text as dates, as ISO 8601 writes them, if all of it is."""
    if not all(isinstance(value, str) and DATE.fullmatch(value) for value in values):
        return None
    try:
        return np.array(values, dtype="datetime64[us]")
    except ValueError:  # the 31st of February
        return None


def _dates_where_they_are(values: list) -> np.ndarray:
    """The same, with a gap for what is no date."""
    whole = _written_dates(values)
    if whole is not None:
        return whole
    each = [_written_dates([value]) for value in values]
    return np.array([np.datetime64("NaT", "us") if one is None else one[0] for one in each], dtype="datetime64[us]")


def _timed(times: np.ndarray) -> bool:
    there = times[~np.isnat(times)]
    return bool((there != there.astype("datetime64[D]")).any())


def _date_numbers(times: np.ndarray, timed: bool) -> np.ndarray:
    """Seconds since 1970, year, month, day of the week (Monday is 0) and, where there is one, the hour of the day."""
    times = times.astype("datetime64[us]")
    seconds = times.astype(np.int64) / 1e6
    days, months = (times.astype(f"datetime64[{unit}]").astype(np.int64) for unit in "DM")
    parts = [seconds, months // 12 + 1970, months % 12 + 1, (days + 3) % 7]
    parts += [(seconds - 86400.0 * days) / 3600.0] if timed else []
    return np.where(np.isnat(times)[:, None], np.nan, np.stack(parts, axis=1).astype(np.float64))


def named_columns(features: Any, names: Any, count: int, table: Table | None) -> tuple[int, ...]:
    """The columns of numbers that `categorical_features` says are categories, and those that a table has."""
    own = () if table is None else table.categorical
    if features is None or (isinstance(features, str) and features == "from_dtype"):
        return own
    asked = np.asarray(features)
    if asked.dtype == bool:
        if asked.shape != (count,):
            raise ValueError(f"'categorical_features' is a mask of shape {asked.shape}, but X has {count} columns.")
        asked = np.flatnonzero(asked)
    elif asked.dtype.kind in "UO":
        known = [] if names is None else list(names)
        strange = [name for name in asked.tolist() if name not in known]
        if strange:
            raise ValueError(f"'categorical_features' names {listed(strange)}, and X has no such column.")
        asked = np.array([known.index(name) for name in asked.tolist()])
    elif asked.size and not (asked.min() >= 0 and asked.max() < count):
        raise ValueError(f"'categorical_features' holds {asked.max()}, but X has {count} columns, from 0.")
    if table is None:
        return tuple(np.unique(asked).astype(int).tolist())
    for number in asked.tolist():
        if table.columns[number].kind.startswith(("dates", "durations")):
            name, kind = table.columns[number].name, table.columns[number].kind
            raise ValueError(f"'categorical_features' names {name!r}, which holds {kind} and no categories.")
    return tuple(sorted({*own, *np.flatnonzero(np.isin(table.sources, asked)).tolist()}))
