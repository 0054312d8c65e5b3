"""Two halves of the rows: what labels shape comes from one, and is judged on the other.

A row's half is that of its key, so it is the same in any order, any blocks and any partition, equal rows are in one
half whatever their targets are, and the anchors (the rows of smallest key) are in the half that shapes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._arrays import Array
from .._base.saveable import saveable
from .keys import row_keys
from .rows import Rows

FEW_ROWS = 1000
"""Fewer distinct rows are split class by class, and judged both ways round: chance would leave a class to one half."""

MIDDLE = np.uint64(2**63)

LEAST_OF_A_CLASS = 4
"""A class of fewer rows, which has not two for each half, shapes nothing."""

LEAST_OF_A_HALF = 10


@saveable
@dataclass(frozen=True, eq=False)
class Halves:
    """Which rows shape; the others judge."""

    seed: int
    chosen: np.ndarray | None = None
    """Keys of the rows that shape, ascending; None: all below the middle."""
    others: np.ndarray | None = None
    """Keys of the rest, where they are chosen by name."""

    def shapes(self, X: Array) -> np.ndarray:
        """Whether each of these rows, as they come in blocks, is in the half that shapes."""
        return self.has(row_keys(X, self.seed))

    def has(self, keys: np.ndarray) -> np.ndarray:
        return keys < MIDDLE if self.chosen is None else np.isin(keys, self.chosen)

    def check(self) -> None:
        """An error where the parts of one that was read do not fit together."""
        for keys in (self.chosen, self.others):
            if keys is not None and (keys.ndim != 1 or keys.dtype != np.uint64):
                raise TypeError("keys are 64-bit numbers")
        if type(self.seed) is not int or not 0 <= self.seed < 2**64:
            raise TypeError("a seed is a number")

    def swapped(self) -> Halves:
        """The other way round, where rows are chosen by name."""
        return Halves(self.seed, self.others, self.chosen)


def judging_rows(scored: Rows, halves: Halves) -> Rows:
    """Of scored rows, those that did not shape."""
    return scored.subset(np.flatnonzero(~halves.shapes(scored.whole().X)))


def halves_of(sample: Rows, distinct: int, seed: int) -> Halves | None:
    """Of many rows by the middle of all keys; of few, whose `sample` is all of them, by rank within each class. None
    where either half would have next to nothing to say."""
    if distinct >= FEW_ROWS:
        return Halves(seed)
    keys = row_keys(sample.whole().X, seed)
    codes = np.zeros(len(keys), np.int64) if sample.codes is None else sample.codes
    shaping: set[int] = set()
    for c in np.unique(codes):
        members = np.unique(keys[codes == c])
        if len(members) >= LEAST_OF_A_CLASS:
            shaping.update(members[: (len(members) + 1) // 2].tolist())
    chosen = np.array(sorted(shaping), np.uint64)
    others = np.setdiff1d(keys, chosen)
    return Halves(seed, chosen, others) if min(len(chosen), len(others)) >= LEAST_OF_A_HALF else None
