"""The last rows of a stream: those that leave the window are taken out of the sums, exactly.

The rows in the window are kept, because only with them can they be taken out again. Sums from which rows are taken keep
the rounding of all that was ever in them; where that could be felt they are made anew from the rows that are kept.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np

from .._arrays import Array, Space, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .._base.scalars import is_integer
from .._data.rows import Rows
from .._data.targets import Targets
from .._engine.moments import Moments
from .._network.neurons import HiddenLayer
from .._network.output import has_lost_columns, scaling_of

DRIFT = {"float64": 1e-10, "float32": 1e-4}
"""Share of a feature's variance that rounding may be before the sums are made again, by dtype of the products."""

LIGHT = 1e-6
"""Of the weight that was in: where no more stays, sums are made again instead."""


@saveable
class Kept(NamedTuple):
    """Rows as the network takes them; class numbers or columns of targets; weights."""

    X: Array
    y: np.ndarray
    w: np.ndarray

    @property
    def n(self) -> int:
        return len(self.w)

    def part(self, rows: slice | np.ndarray) -> Kept:
        """Some of them, as arrays of their own: what leaves is not held by what stays."""
        space = space_of(self.X)
        at = np.arange(self.n)[rows]
        return Kept(space.xp.take(self.X, space.asarray(at), axis=0), self.y[rows].copy(), self.w[rows].copy())

    def keys(self) -> list[bytes]:
        """What tells a row from others: its numbers, its target, its weight."""
        X = np.ascontiguousarray(to_numpy(self.X))
        y = self.y.astype(np.float64).reshape(self.n, -1)
        return [x.tobytes() + t.tobytes() + w.tobytes() for x, t, w in zip(X, y, self.w, strict=True)]


@saveable
@dataclass(frozen=True, eq=False)
class Window:
    """The last `size` rows, oldest first, in chunks that grow with age: one row more moves few others."""

    size: int
    chunks: tuple[Kept, ...] = ()
    steps: int = 0
    """Updates since the sums were made from the rows that are kept."""

    @classmethod
    def checked(cls, size: object) -> int | None:
        if size is None:
            return None
        if not is_integer(size) or size < 1:
            raise ValueError(f"'window' must be a number of rows, at least 1. Got {size!r} instead.")
        return int(size)

    @property
    def count(self) -> int:
        return sum(chunk.n for chunk in self.chunks)

    def joined(self, chunk: Kept) -> Self:
        """With newer rows."""
        chunks = list(self.chunks)
        while chunks and chunks[-1].n <= chunk.n:
            chunk = _together(chunks.pop(), chunk)
        return replace(self, chunks=(*chunks, chunk), steps=self.steps + 1)

    def split(self) -> tuple[list[Kept], Self]:
        """The oldest rows that are too many, and the window without them."""
        extra, gone, chunks = self.count - self.size, [], list(self.chunks)
        while extra > 0:
            oldest = chunks.pop(0)
            if oldest.n > extra:
                chunks.insert(0, oldest.part(slice(extra, None)))
                oldest = oldest.part(slice(extra))
            gone.append(oldest)
            extra -= oldest.n
        return gone, replace(self, chunks=tuple(chunks))

    def without(self, rows: Kept) -> Self:
        """Without these rows, wherever they are."""
        wanted = Counter(rows.keys())
        chunks = []
        for chunk in self.chunks:
            stays = np.ones(chunk.n, bool)
            for k, key in enumerate(chunk.keys()):
                if wanted.get(key, 0):
                    wanted[key] -= 1
                    stays[k] = False
            chunks.append(chunk if stays.all() else chunk.part(stays))
        if wanted.total():
            raise ValueError(
                f"Cannot forget these rows: {wanted.total()} of them are not in the window, or no longer. Give rows "
                "that are, with the targets and the weights they had."
            )
        return replace(self, chunks=tuple(chunk for chunk in chunks if chunk.n), steps=self.steps + 1)

    def renumbered(self, columns: list[int | None]) -> Self:
        """After classes came: for each class there is now the number it had."""
        numbers = np.zeros(1 + max((k for k in columns if k is not None), default=0), np.int64)
        for new, old in enumerate(columns):
            if old is not None:
                numbers[old] = new
        return replace(self, chunks=tuple(chunk._replace(y=numbers[chunk.y]) for chunk in self.chunks))

    def drifts(self, moments: Moments, hidden: HiddenLayer | None) -> bool:
        """Whether rounding of these sums, from which rows were taken, could be felt."""
        scaling, eps = scaling_of(moments, hidden), float(np.finfo(moments.product).eps)
        held = float(moments.space.xp.max(moments.largest * scaling.inverse**2)) / moments.weight
        return eps * max(1, self.steps) ** 0.5 * held > DRIFT[moments.product] or has_lost_columns(moments, scaling)

    def check(self, columns: int) -> None:
        """An error where a file says something else."""
        if type(self.size) is not int or type(self.steps) is not int or self.steps < 0 or self.count > self.size:
            raise ValueError("a window holds no more rows than its size")
        for chunk in self.chunks:
            if not isinstance(chunk, Kept):
                raise TypeError("a window is made of rows")
            check_shape(chunk.X, chunk.n, columns)
            if chunk.y.shape[0] != chunk.n or chunk.w.ndim != 1:
                raise ValueError("rows of a window have one target and one weight each")


def _together(one: Kept, other: Kept) -> Kept:
    xp = space_of(one.X).xp
    return Kept(xp.concat([one.X, other.X], axis=0), np.concatenate([one.y, other.y]), np.concatenate([one.w, other.w]))


def kept(rows: Rows, most: int) -> Kept | None:
    """The last of some rows, copied; None where there are none."""
    chunks = []
    for block in rows.blocks("keeping the rows"):
        n = int(block.X.shape[0])
        if block.start + n > rows.n - most:
            y = block.codes if block.codes is not None else to_numpy(block.Z)
            w = np.ones(n) if block.w is None else to_numpy(block.w)
            y = np.asarray(y).astype(np.int64 if block.codes is not None else np.float64)
            chunks.append(Kept(block.X, y, w).part(slice(max(0, rows.n - most - block.start), None)))
    while len(chunks) > 1:
        last = chunks.pop()
        chunks[-1] = _together(chunks[-1], last)
    return chunks[0] if chunks else None


def as_rows(chunks: list[Kept], targets: Targets, space: Space, dtype: str) -> list[Rows]:
    """Rows that are kept, to be added up."""
    found = []
    for chunk in chunks:
        of = {"codes": chunk.y, "n_classes": targets.n_classes} if targets.n_classes else {"targets": chunk.y}
        found.append(Rows(chunk.X, space, weight=chunk.w, dtype=dtype, **of))
    return found
