"""What becomes of the columns of rows before anything else: gaps are filled and flagged, categories are columns of 0
and 1. It is learnt from sums over the training rows, and rows that come later are taken in the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .._arrays import Array, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .blocks import Block
from .categories import Categories, CategorySums
from .gaps import GapSums


@saveable
@dataclass(frozen=True, eq=False)
class Intake:
    """Numbers for gaps, one a column; the columns that are given a second time as 0 and 1, which say where they had
    gaps; and the columns of categories.

    It makes the columns that are no categories, then the categories of one column after another, then the flags.
    """

    fill: np.ndarray
    flagged: np.ndarray
    categories: tuple[Categories, ...] = ()
    whole: np.ndarray | None = None
    """Which columns had no gap in any row; None in files of earlier versions, which do not say."""

    @classmethod
    def without_gaps(cls, means: np.ndarray) -> Self:
        """Of columns without gaps and categories; rows that come later may have gaps."""
        return cls(means, np.empty(0, np.int64), whole=np.ones(len(means), bool))

    @property
    def numeric(self) -> np.ndarray:
        """Columns that are no categories."""
        return np.setdiff1d(np.arange(len(self.fill)), [each.column for each in self.categories]).astype(np.int64)

    @property
    def sources(self) -> np.ndarray:
        """For each column that it makes, the one that it is made of."""
        kinds = [np.full(each.width, each.column) for each in self.categories]
        return np.concatenate([self.numeric, *kinds, self.flagged]).astype(np.int64)

    @property
    def width(self) -> int:
        numeric = len(self.fill) - len(self.categories)
        return numeric + sum(each.width for each in self.categories) + len(self.flagged)

    @property
    def is_plain(self) -> bool:
        """Whether rows without gaps stay as they are."""
        return not len(self.flagged) and not self.categories

    def check_shapes(self, columns: int) -> None:
        check_shape(self.fill, columns)
        check_shape(self.flagged, len(self.flagged))
        if self.flagged.dtype.kind not in "iu" or not np.isfinite(self.fill).all():
            raise TypeError("gaps are filled with numbers, and flagged by the number of their column")
        if self.whole is not None:
            check_shape(self.whole, columns)
            if self.whole.dtype != bool:
                raise TypeError("a column had gaps or had none")
        for each in self.categories:
            each.check_shapes()
        used = [*self.flagged.tolist(), *(each.column for each in self.categories)]
        if used and not 0 <= min(used) <= max(used) < columns:
            raise ValueError("columns that are not there")

    def __call__(self, X: Array) -> Array:
        space = space_of(X)
        xp = space.xp
        if not xp.isdtype(X.dtype, "real floating"):
            X = xp.astype(X, xp.float64)
        missing = xp.isnan(X)
        filled = X
        if bool(xp.any(missing)):
            filled = xp.where(missing, xp.astype(space.asarray(self.fill), X.dtype), X)
        if self.is_plain:
            return filled
        parts = [xp.take(filled, space.asarray(self.numeric), axis=1)] if self.categories else [filled]
        parts += [each(X[:, each.column]) for each in self.categories]
        flags = xp.take(missing, space.asarray(self.flagged), axis=1)
        return xp.concat([*parts, xp.astype(flags, X.dtype)], axis=1)

    def unknown(self, X: Array) -> dict[int, int]:
        """Columns with values that are none of their categories, and in how many rows."""
        found = {each.column: each.unknown(_host(X, each.column)) for each in self.categories}
        return {column: rows for column, rows in found.items() if rows}

    def new_gaps(self, X: Array) -> dict[int, int]:
        """Columns that have gaps and had none, and in how many rows."""
        if self.whole is None:
            return {}
        if hasattr(X, "toarray"):
            rows = np.bincount(X.indices[np.isnan(X.data)], minlength=len(self.fill))
        else:
            xp = space_of(X).xp
            rows = to_numpy(xp.sum(xp.astype(xp.isnan(X), xp.int64), axis=0))
        return {column: int(rows[column]) for column in np.flatnonzero((rows > 0) & self.whole).tolist()}


def _host(X: Array, column: int) -> np.ndarray:
    values = X[:, [column]].toarray()[:, 0] if hasattr(X, "toarray") else to_numpy(X[:, column])
    return values.astype(np.float64)


class IntakeSums:
    """What an intake is learnt from."""

    def __init__(self, columns: int, categorical: tuple[int, ...]) -> None:
        self.gaps, self.categories = GapSums(columns), CategorySums(categorical)

    def add(self, block: Block) -> None:
        self.gaps.add(block)
        self.categories.add(block)

    def merge(self, other: Self) -> None:
        self.gaps.merge(other.gaps)
        self.categories.merge(other.categories)

    def found(self) -> Intake:
        fill, flagged = self.gaps.found()
        return Intake(fill, flagged, self.categories.found(), self.gaps.rows == 0)
