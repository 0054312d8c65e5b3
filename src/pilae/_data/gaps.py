r"""Gaps in columns of numbers (NaN): the column's mean in their place, and beside it a column that says where they are.

Means and everything else here are sums over rows, the same for any blocks, any order and any partition.

Whether gaps of a column say something is decided by leave-one-out. Two ways to predict the targets z are compared:
their mean, and one mean for rows with a gap and another for those without. Left out of a group of weight W, the
residual of a row with weight w, of which u is taken away, is (z - mean) W / (W - u), so the squared error of a group is

    sum_i w_i (z_i - mean)^2  (W / (W - u))^2,    u = sum_i w_i u_i / W,

each target in units of its own variance. Where two means are better the network gets the column; how much it counts
there is for the ridge, and the search, to say. Columns whose gaps are in the same rows share one.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from .._arrays import namespace, space_of, to_numpy
from .blocks import Block, unit_of
from .keys import row_keys

FEWEST_GAPS = 3
"""Fewer rows than that say nothing."""

FILL_BITS = 30
"""Means keep so many bits of what the numbers of a column are in the mean: the last ones depend on the order of the
rows, and a row's key on every bit of it."""

SMALL = 2.0**-32
"""Numbers are added up times this, so that no sum overflows."""


class GapsFound(Exception):
    """A pass over rows met gaps, and how to fill them is not known yet."""


class GapSums:
    """What is known of the gaps in rows: a sum over them."""

    def __init__(self, d: int) -> None:
        self.weight, self.sums, self.sizes = (np.zeros(d) for _ in range(3))
        """Of the numbers that are there: what they weigh, their sum and that of their sizes."""
        self.rows, self.pattern = np.zeros(d, np.int64), np.zeros(d, np.uint64)
        """Rows with a gap: how many, and the sum of their keys, which says which ones."""
        self.gaps, self.all = Spread(d), Spread(1)
        """Targets of rows with a gap, and of all."""

    def add(self, block: Block) -> None:
        X, xp = block.X, namespace(block.X)
        n = int(X.shape[0])
        w = np.ones(n) if block.w is None else to_numpy(block.w)
        missing = xp.isnan(X)
        there = xp.where(missing, xp.zeros_like(X), X)
        weights, present = space_of(X).asarray(w), xp.astype(~missing, xp.float64)
        there64 = xp.astype(there, xp.float64) * SMALL
        self.weight += to_numpy(weights @ present)
        self.sums += to_numpy(weights @ there64)
        self.sizes += to_numpy(weights @ xp.abs(there64))
        mask = to_numpy(missing)
        columns = np.flatnonzero(mask.any(axis=0))
        mask = mask[:, columns] & (w > 0)[:, None]
        self.rows[columns] += mask.sum(axis=0)
        keys = row_keys(xp.concat([there, xp.astype(missing, X.dtype)], axis=1), 0)
        self.pattern[columns] += np.where(mask, keys[:, None], np.uint64(0)).sum(axis=0, dtype=np.uint64)
        if block.Z is not None:
            Z, unit = to_numpy(block.Z).astype(np.float64), unit_of(w) if block.unit is None else block.unit
            self.gaps.add(mask.astype(np.float64), columns, Z, w, unit)
            self.all.add(np.ones((n, 1)), np.zeros(1, np.int64), Z, w, unit)

    def merge(self, other: Self) -> None:
        for name in ("weight", "sums", "sizes", "rows", "pattern"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.gaps.merge(other.gaps)
        self.all.merge(other.all)

    def found(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers for gaps, one a column, and the columns whose gaps tell."""
        weight = np.where(self.weight > 0, self.weight, 1.0)
        fill = rounded(self.sums / weight, self.sizes / weight) / SMALL
        flagged: dict[int, int] = {}
        for column in np.flatnonzero(self._telling() & (self.rows >= FEWEST_GAPS)).tolist():
            flagged.setdefault(int(self.pattern[column]), column)
        return fill, np.array(list(flagged.values()), np.int64)

    def _telling(self) -> np.ndarray:
        """The columns whose gaps say something of the targets."""
        if self.all.weight[0] == 0:
            return self.rows > 0
        rest = self.all.without(self.gaps)
        scale = np.where(self.all.squares > 0, self.all.squares, 1.0)
        split = self.gaps.left_out() + rest.left_out()
        one = np.broadcast_to(self.all.left_out(), split.shape)
        return ((one - split) / scale).sum(axis=1) > 0


class Spread:
    """Of groups of rows: what each weighs, the mean of its targets and the squares about it."""

    def __init__(self, groups: int) -> None:
        self.weight, self.unit = np.zeros(groups), np.zeros(groups)
        self.mean = self.squares = np.zeros((groups, 1))

    def add(self, mask: np.ndarray, groups: np.ndarray, Z: np.ndarray, w: np.ndarray, unit: np.ndarray) -> None:
        """Rows of these groups, one a column of the mask."""
        other = Spread(len(self.weight))
        centre = w @ Z / max(w.sum(), np.finfo(float).tiny)  # about it nothing is lost by squaring
        other.mean, other.squares = np.zeros((len(self.weight), Z.shape[1])), np.zeros((len(self.weight), Z.shape[1]))
        weight = mask.T @ w
        safe = np.where(weight > 0, weight, 1.0)[:, None]
        first, second = mask.T @ (w[:, None] * (Z - centre)), mask.T @ (w[:, None] * (Z - centre) ** 2)
        other.weight[groups], other.unit[groups] = weight, mask.T @ (w * unit)
        other.mean[groups], other.squares[groups] = centre + first / safe, np.maximum(second - first**2 / safe, 0.0)
        self.merge(other)

    def merge(self, other: Self) -> None:
        total = self.weight + other.weight
        share = (other.weight / np.where(total > 0, total, 1.0))[:, None]
        step = other.mean - self.mean
        self.squares = self.squares + other.squares + self.weight[:, None] * share * step**2
        self.mean = self.mean + share * step
        self.weight, self.unit = total, self.unit + other.unit

    def without(self, part: Spread) -> Spread:
        """The other rows, for each group of a part."""
        rest = Spread(len(part.weight))
        rest.weight, rest.unit = np.maximum(self.weight - part.weight, 0.0), self.unit - part.unit
        safe = np.where(rest.weight > 0, rest.weight, 1.0)[:, None]
        rest.mean = (self.mean * self.weight[:, None] - part.mean * part.weight[:, None]) / safe
        between = part.weight[:, None] * rest.weight[:, None] / np.where(self.weight > 0, self.weight, 1.0)
        rest.squares = np.maximum(self.squares - part.squares - between * (part.mean - rest.mean) ** 2, 0.0)
        return rest

    def left_out(self) -> np.ndarray:
        """The squared error of each group when every row is predicted by the others in it."""
        safe = np.where(self.weight > 0, self.weight, 1.0)
        left = self.weight - self.unit / safe
        factor = np.where(left > 0, self.weight / np.where(left > 0, left, 1.0), 1.0)
        return self.squares * factor[:, None] ** 2


def rounded(means: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """Means of columns to FILL_BITS of the mean size of their numbers."""
    step = np.maximum(np.ldexp(1.0, np.frexp(sizes)[1] - FILL_BITS), np.finfo(float).tiny)
    return np.round(means / step) * step
