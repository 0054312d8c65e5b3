"""Tables of mixed columns as arrays of numbers: what each column is, is learnt once from the training rows.

Numbers, truth values and durations are numbers, dates those of their parts that vary, and free text the directions in
which it varies. Categories become codes, which `Intake` makes columns of 0 and 1 of; gaps stay gaps (NaN), which it
fills. Estimators that are given a DataFrame and the command line come through here. No column looks at the targets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np

from .._base.saveable import saveable
from .._base.sentences import listed
from .categories import FEWEST_ROWS, MOST_CATEGORIES, MOST_VALUES, too_many
from .dates import DateColumn, check_order, date_format
from .frames import (
    Column,
    Frame,
    Kind,
    column_at,
    dates,
    durations,
    factorized,
    is_frame,
    kinds_of,
    no_values,
    numbers,
    stacked,
)
from .text import TextColumn
from .written import WrittenColumn, written_column

AS_NUMBERS = ("numbers", "truth values", "objects")
"""Kinds of columns that are read as an array is; of objects some are numbers, and others an error."""

SAMPLE_ROWS = 100_000
"""Rows that say what the columns of a file are."""

WORDS: tuple[Kind, ...] = ("categories", "numbered categories", "text", "numbers", "truth values")


TRUTH = {"true": 1.0, "false": 0.0}


class TableColumn(Protocol):
    """What is known of one column."""

    @property
    def name(self) -> Any: ...

    @property
    def kind(self) -> str: ...

    @property
    def taken(self) -> tuple[Kind, ...]:
        """What later rows may hold."""
        ...

    @property
    def width(self) -> int:
        """Columns of numbers that it becomes."""
        ...

    @property
    def words(self) -> str:
        """What it becomes, for people."""
        ...

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        """Its numbers: rows x width."""
        ...

    def check(self) -> None:
        """An error where what was read from a file is no such column."""
        ...


@saveable
@dataclass(frozen=True, eq=False)
class NumberColumn:
    """Numbers, truth values as 0 and 1 (later ones may be written out), or durations in seconds."""

    name: Any
    kind: str

    width: ClassVar = 1

    @property
    def taken(self) -> tuple[Kind, ...]:
        written: tuple[Kind, ...] = ("text", "categories") if self.kind == "truth values" else ()
        return ("durations",) if self.kind == "durations" else ("numbers", "truth values", "objects", *written)

    @property
    def words(self) -> str:
        return "durations: seconds" if self.kind == "durations" else self.kind

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        if kind in ("text", "categories"):
            codes, values = factorized(column)
            return np.array([*(TRUTH.get(value.lower(), np.nan) for value in values), np.nan])[codes][:, None]
        return (durations(column) if self.kind == "durations" else numbers(column))[:, None]

    def check(self) -> None:
        if self.kind not in ("numbers", "truth values", "durations"):
            raise ValueError("no such kind of numbers")


@saveable
@dataclass(frozen=True, eq=False)
class EmptyColumn:
    """No value in any row: nothing is learnt from it, and nothing is made of it."""

    name: Any

    kind: ClassVar = "no value"
    width: ClassVar = 0
    words: ClassVar = "nothing: no value"
    taken: ClassVar[tuple[Kind, ...]] = (*WORDS, "dates", "durations", "objects")

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        return np.zeros((len(column), 0))

    def check(self) -> None:
        """There is nothing to be wrong."""


@saveable
@dataclass(frozen=True, eq=False)
class CategoryColumn:
    """Few different values: the code of each, its place among them; -1 for one that was not there in `fit`."""

    name: Any
    kind: str
    values: np.ndarray

    taken: ClassVar[tuple[Kind, ...]] = WORDS
    width: ClassVar = 1

    @classmethod
    def learnt(cls, name: Any, kind: str, values: Iterable[str]) -> Self:
        return cls(name, kind, np.array(sorted({*values}), dtype=object))

    @property
    def words(self) -> str:
        return "one category" if len(self.values) == 1 else f"{len(self.values):,} categories"

    def __call__(self, column: Column, kind: Kind) -> np.ndarray:
        codes, values = factorized(column)
        place = {value: code for code, value in enumerate(self.values.tolist())}
        known = np.array([*(place.get(value, -1.0) for value in values), np.nan])  # the last is for gaps, code -1
        return known[codes][:, None]

    def check(self) -> None:
        values = self.values.tolist()
        if self.kind not in WORDS or not all(isinstance(value, str) for value in values):
            raise TypeError("no column of categories")
        if len({*values}) < len(values):
            raise ValueError("a category is there twice")


READ_FROM_WORDS = (NumberColumn, DateColumn, WrittenColumn)
"""Columns of numbers that words may stand for."""


def learnt_column(name: Any, column: Column, kind: Kind) -> TableColumn:
    """What a column of the training rows is."""
    if kind == "objects":
        raise no_values(name, column)
    if kind == "dates":
        times = dates(column)
        return EmptyColumn(name) if np.isnat(times).all() else DateColumn.learnt(name, None, times)
    if kind in ("numbers", "truth values", "durations"):
        found = NumberColumn(name, kind)
        return EmptyColumn(name) if np.isnan(found(column, kind)).all() else found
    codes, values = factorized(column)
    if not values:
        return EmptyColumn(name)
    if kind == "text":
        written = date_format(values)
        if written is not None:
            check_order(name, values, written)
            learnt = DateColumn(name, written, [])
            return DateColumn.learnt(name, written, learnt.times(column, kind))
        counts = np.bincount(codes[codes >= 0], minlength=len(values))
        numbers_written = written_column(name, values, counts)
        if numbers_written is not None:
            return numbers_written
        if _is_free(counts):
            return TextColumn.learnt(name, values, counts)
    return CategoryColumn.learnt(name, kind, values)


def _is_free(counts: np.ndarray) -> bool:
    """Whether text has so many different values that those with a column of their own would be less than half of it."""
    common = np.sort(counts[counts >= FEWEST_ROWS])[::-1][:MOST_CATEGORIES]
    return len(counts) > MOST_CATEGORIES and bool(2 * common.sum() < counts.sum())


Met = dict[int, set[str]]
"""The categories of columns, by their numbers."""


@saveable
@dataclass(frozen=True, eq=False)
class Table:
    """The columns of a table, in order."""

    columns: list[TableColumn]

    @classmethod
    def learnt(cls, frame: Frame) -> Self:
        each = enumerate(zip(frame.columns, kinds_of(frame), strict=True))
        table = cls([learnt_column(_plain_name(name), column_at(frame, j), kind) for j, (name, kind) in each])
        if not len(table.sources):
            raise ValueError("No column of X has a value in any row: there is nothing to learn from.")
        return table

    @classmethod
    def learnt_from(cls, frames: Iterator[Frame]) -> Self:
        """From tables one below the other: what columns are from the first SAMPLE_ROWS rows, their categories from
        all."""
        table = cls.learnt(first_rows(frames))
        met = table.categories()
        for frame in frames:
            met = more_categories(met, table.categories(frame))
        return table.widened(met)

    def categories(self, frame: Frame | None = None) -> Met:
        """Of the columns that have some: those of a table, or the known ones."""
        coded = [(j, column) for j, column in enumerate(self.columns) if isinstance(column, CategoryColumn)]
        return {
            j: {*(column.values.tolist() if frame is None else factorized(column_at(frame, j))[1])}
            for j, column in coded
        }

    def widened(self, met: Met) -> Self:
        """With these categories."""
        wide: list[TableColumn] = list(self.columns)
        for j, values in met.items():
            if len(values) > MOST_VALUES:
                raise too_many(repr(wide[j].name))
            wide[j] = CategoryColumn.learnt(wide[j].name, wide[j].kind, values)
        return type(self)(wide)

    @property
    def sources(self) -> np.ndarray:
        """For each column of numbers that it makes, the one that it is made of."""
        return np.repeat(np.arange(len(self.columns)), [column.width for column in self.columns])

    @property
    def categorical(self) -> tuple[int, ...]:
        """Columns of the numbers that it makes which are codes of categories."""
        coded = [number for number, column in enumerate(self.columns) if isinstance(column, CategoryColumn)]
        return tuple(np.flatnonzero(np.isin(self.sources, coded)).tolist())

    def __call__(self, frame: Frame) -> np.ndarray:
        each = enumerate(zip(self.columns, kinds_of(frame), strict=True))
        return np.concatenate([_numbers_of(column, column_at(frame, j), kind) for j, (column, kind) in each], axis=1)

    def coded(self, frame: Frame) -> Coded:
        """Rows to be asked about, and the words in them that are no such date or truth value as in `fit`."""
        X, unread = self(frame), Counter[Any]()
        for j, (column, kind) in enumerate(zip(self.columns, kinds_of(frame), strict=True)):
            if kind in ("text", "categories") and isinstance(column, READ_FROM_WORDS):
                codes, values = factorized(column_at(frame, j))
                nothing = column.nothing if isinstance(column, WrittenColumn) else []
                there = np.array([*(value not in nothing for value in values), False])[codes]
                unread[column.name] = int((there & np.isnan(X[:, np.searchsorted(self.sources, j)])).sum())
        return Coded(self, X, +unread)

    def like(self) -> Frame:
        """A row without a value, for those who want to know what is said of one."""
        import pandas

        return pandas.DataFrame([[np.nan] * len(self.columns)], columns=[column.name for column in self.columns])

    def check(self, count: int) -> None:
        """An error where what was read from a file is no table of so many columns."""
        if len(self.columns) != count:
            raise ValueError("a table of other columns")
        for column in self.columns:
            if not isinstance(column, COLUMNS):
                raise TypeError("columns are not what they are called")
            column.check()


def first_rows(frames: Iterator[Frame]) -> Frame:
    """As many as say what columns are."""
    first: list[Frame] = []
    for frame in frames:
        first.append(frame)
        if sum(map(len, first)) >= SAMPLE_ROWS:
            break
    if not first:
        raise ValueError("The source has no rows.")
    return stacked(first)


def more_categories(met: Met, other: Met) -> Met:
    """Those of two tables, no more than are enough to say that there are too many."""
    return {j: values if len(values) > MOST_VALUES else values | other[j] for j, values in met.items()}


COLUMNS = (NumberColumn, EmptyColumn, CategoryColumn, DateColumn, TextColumn, WrittenColumn)


class Coded(NamedTuple):
    """Rows that a table has made numbers of already, to be asked about more than once."""

    table: Table
    X: np.ndarray
    unread: Counter[Any]
    """In how many rows a column holds words that cannot be read, by its name."""


def _numbers_of(learnt: TableColumn, column: Column, kind: Kind) -> np.ndarray:
    if kind == "numbers" and np.isnan(numbers(column)).all():  # no value, no kind
        return np.full((len(column), learnt.width), np.nan)
    if kind not in learnt.taken:
        raise ValueError(f"Column {learnt.name!r} of X held {learnt.kind} in fit, and now holds {kind}.")
    return learnt(column, kind)


def is_mixed(X: object) -> bool:
    """Whether X is a DataFrame with columns that are more than numbers."""
    return is_frame(X) and any(kind not in AS_NUMBERS for kind in kinds_of(X))


def _plain_name(name: Any) -> Any:
    return name if isinstance(name, (str, int)) else str(name)


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
        if table.columns[number].kind not in WORDS:
            name, kind = table.columns[number].name, table.columns[number].kind
            raise ValueError(f"'categorical_features' names {name!r}, which holds {kind} and no categories.")
    return tuple(sorted({*own, *np.flatnonzero(np.isin(table.sources, asked)).tolist()}))
