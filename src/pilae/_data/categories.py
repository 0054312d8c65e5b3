"""Columns of codes as categories: one column of 0 and 1 for each, rare ones together; two share one column."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Self

import numpy as np

from .._arrays import Array, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .blocks import Block
from .gaps import rounded

MOST_CATEGORIES = 64
"""Categories of a column that have a column of their own, at most."""

FEWEST_ROWS = 4
"""A category of fewer rows has none: what a few rows are like is not what others like them are."""

RARE_SHARE = 1e-3
"""The same for the share of all rows."""

MOST_VALUES = 100_000


@saveable
@dataclass(frozen=True, eq=False)
class Categories:
    """The categories of one column: its values, ascending, and the number of the 0/1 column that each has (-1: none).

    Rare ones share the last. A value that is not among them, like a gap, has 0 in all. Of two columns, which say the
    same, there is the second alone.
    """

    column: int
    values: np.ndarray
    numbers: np.ndarray
    share: float | None = None
    """Of two categories: what the second one weighs among the training rows, which other values have instead of 0."""

    @property
    def width(self) -> int:
        return 1 if self.share is not None else int(self.numbers.max(initial=-1)) + 1

    @property
    def words(self) -> str:
        """How many there are, for people."""
        together = np.bincount(self.numbers[self.numbers >= 0], minlength=1)
        alone, rare = int((together == 1).sum()), int(together[together > 1].sum())
        words = "one category" if alone == 1 else f"{alone:,} categories"
        return f"{words}, {rare:,} rare ones together" if rare else words

    def check_shapes(self) -> None:
        check_shape(self.values, len(self.values))
        check_shape(self.numbers, len(self.values))
        if self.values.dtype != np.float64 or self.numbers.dtype.kind != "i" or type(self.column) is not int:
            raise TypeError("categories have values and numbers")
        if len(self.values) and not (-1 <= self.numbers.min() <= self.numbers.max() < len(self.values)):
            raise ValueError("columns of categories that are not there")
        if not (np.diff(self.values) > 0).all():
            raise ValueError("categories out of order")
        if self.share is not None and not (type(self.share) is float and 0 <= self.share <= 1):
            raise ValueError("no share of two categories")

    def __call__(self, x: Array) -> Array:
        """The 0/1 columns of a column of rows."""
        xp = space_of(x).xp
        if not self.width:
            return xp.zeros_like(x)[:, None][:, :0]
        number = self._number(x)
        if self.share is not None:
            second = xp.astype(number == 1, x.dtype)
            return xp.where(number < 0, self.share * xp.ones_like(second), second)[:, None]
        return xp.astype(number[:, None] == space_of(x).asarray(np.arange(self.width))[None, :], x.dtype)

    def unknown(self, x: np.ndarray) -> int:
        """How many rows hold a value that is not among the categories."""
        return int((~np.isin(x, self.values) & ~np.isnan(x)).sum())

    def _number(self, x: Array) -> Array:
        space = space_of(x)
        xp, values = space.xp, space.asarray(self.values)
        x = xp.astype(x, xp.float64)
        at = xp.searchsorted(values, xp.where(xp.isnan(x), xp.zeros_like(x), x))
        at = xp.astype(xp.clip(at, 0, len(self.values) - 1), xp.int64)
        number = xp.take(space.asarray(self.numbers.astype(np.int64)), at, axis=0)
        return xp.where(xp.take(values, at, axis=0) == x, number, -xp.ones_like(number))


def too_many(column: object) -> ValueError:
    return ValueError(
        f"Column {column} has more than {MOST_VALUES:,} categories: leave it out, or give it as numbers "
        "(categorical_features names the columns of categories)."
    )


class CategorySums:
    """What the rows of each value of some columns weigh: a sum over rows."""

    def __init__(self, columns: tuple[int, ...]) -> None:
        self.masses: dict[int, dict[float, float]] = {column: defaultdict(float) for column in columns}
        self.weight = 0.0

    def add(self, block: Block) -> None:
        n = int(block.X.shape[0])
        w = np.ones(n) if block.w is None else to_numpy(block.w)
        self.weight += float(w.sum())
        for column, masses in self.masses.items():
            x = to_numpy(block.X[:, column]).astype(np.float64)
            counts = ~np.isnan(x) & (w > 0)
            values, which = np.unique(x[counts], return_inverse=True)
            for value, mass in zip(values.tolist(), np.bincount(which, weights=w[counts]).tolist(), strict=True):
                masses[value] += mass
            if len(masses) > MOST_VALUES:
                raise too_many(column)

    def merge(self, other: Self) -> None:
        self.weight += other.weight
        for column, masses in other.masses.items():
            for value, mass in masses.items():
                self.masses[column][value] += mass

    def found(self) -> tuple[Categories, ...]:
        return tuple(self._numbered(column, masses) for column, masses in self.masses.items())

    def _numbered(self, column: int, masses: dict[float, float]) -> Categories:
        values = np.array(sorted(masses), dtype=np.float64)
        mass = np.array([masses[value] for value in values.tolist()])
        common = mass >= max(FEWEST_ROWS, RARE_SHARE * self.weight)
        common[np.argsort(-mass, kind="stable")[MOST_CATEGORIES:]] = False
        numbers = np.where(common, np.cumsum(common) - 1, -1)
        if mass[~common].sum() >= FEWEST_ROWS:
            numbers[~common] = common.sum()
        share = None
        if numbers.max(initial=-1) == 1:
            share = float(rounded(mass[numbers == 1].sum() / mass[numbers >= 0].sum(), np.ones(1))[0])
        return Categories(column, values, numbers.astype(np.int64), share)
