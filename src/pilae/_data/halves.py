"""Two halves of the rows: what labels shape comes from one, and is judged on the other.

A row's half is that of its key, so it is the same in any order, any blocks and any partition, equal rows are in one
half whatever their targets are, and the anchors (the rows of smallest key) are in the half that shapes. Rows that
belong together are in the half of their group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._arrays import Array
from .._base.saveable import saveable
from .groups import in_groups, spread
from .keys import among, row_keys
from .rows import Rows
from .sources import Column

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
    """Keys of the rows that shape, ascending; None: all below the middle, which of rows in groups are those of groups
    that shape."""
    others: np.ndarray | None = None
    """Keys of the rest, where they are chosen by name."""

    def shapes(self, X: Array, group: Column = None) -> np.ndarray:
        """Whether each of these rows, as they come in blocks, is in the half that shapes, or one of its group is."""
        keys = row_keys(X, self.seed)
        return spread(self.has(in_groups(keys, group) if self.chosen is None else keys), group)

    def has(self, keys: np.ndarray) -> np.ndarray:
        return keys < MIDDLE if self.chosen is None else among(keys, self.chosen)

    def check(self) -> None:
        """An error where the parts of one that was read do not fit together."""
        for keys in (self.chosen, self.others):
            if keys is not None and (keys.ndim != 1 or keys.dtype != np.uint64):
                raise TypeError("keys are 64-bit numbers")
        if type(self.seed) is not int or not 0 <= self.seed < 2**64:
            raise TypeError("a seed is a number")

    @property
    def both_ways(self) -> bool:
        """Whether rows are so few that each half is judged by the other."""
        return self.others is not None

    def swapped(self) -> Halves:
        """The other way round, where rows are chosen by name."""
        return Halves(self.seed, self.others, self.chosen)


@dataclass(frozen=True, eq=False)
class FewGroups(Halves):
    """Few rows in groups: each is where the key of its group says, or the other way round. Rows have no names here, as
    equal ones may be in groups of either half."""

    turned: bool = False

    def shapes(self, X: Array, group: Column = None) -> np.ndarray:
        return super().shapes(X, group) ^ self.turned

    @property
    def both_ways(self) -> bool:
        return True

    def swapped(self) -> Halves:
        return replace(self, turned=not self.turned)


def judging_rows(scored: Rows, halves: Halves) -> Rows:
    """Of scored rows, those that did not shape."""
    return scored.subset(np.flatnonzero(~halves.shapes(scored.whole().X, scored.group)))


def halves_of(sample: Rows, distinct: int, seed: int) -> Halves | None:
    """Of many rows by the middle of all keys; of few, whose `sample` is all of them, by rank within each class. None
    where either half would have next to nothing to say."""
    if sample.group is not None:
        return _halves_of_groups(sample, distinct, seed)
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


def _halves_of_groups(sample: Rows, distinct: int, seed: int) -> Halves | None:
    """The same of rows that belong together: each group is in the half that its key says."""
    halves = Halves(seed) if distinct >= FEW_ROWS else FewGroups(seed)
    shapes = halves.shapes(sample.whole().X, sample.group)
    return halves if min(shapes.sum(), (~shapes).sum()) >= LEAST_OF_A_HALF else None


def remembered(halves: Halves, read: Rows) -> Halves:
    """What a model keeps of halves: of rows that belong together the keys of those that have shaped it, as `read` has
    them; that of a group is not known any more where some of its rows come again."""
    if read.group is None:
        return halves
    X = read.whole().X
    return Halves(halves.seed, np.unique(row_keys(X, halves.seed)[halves.shapes(X, read.group)]))
