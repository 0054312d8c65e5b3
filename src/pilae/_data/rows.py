"""Any source of rows as restartable blocks.

A pass over the data is a loop over `Rows.blocks()`. Blocks of a dense array are views; blocks of a CSR matrix are
made dense one at a time. Only the blocks are ever held, so memory does not depend on the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import scipy.sparse

from .._arrays import NUMPY, Array, Space, float_name, space_of, take_rows, times_powers, to_numpy
from .._arrays.threads import in_parts, sharing
from .._base.progress import Progress
from .._engine.scaling import Extent
from .blocks import Block
from .check import check_answer
from .intake import Intake, IntakeSums
from .sources import Column, at

ANSWER_BYTES = 8 * 2**20
"""The widest array of a block in NumPy that is asked something: what is made of it step by step stays in a cache, and
in memory that was used before."""

BLOCK_BYTES = 128 * 2**20
"""Memory budget of the widest array of one block. A quarter of it is aimed at, which a processor's last cache holds,
unless that is fewer than BLOCK_ROWS: every block ends with an addition to the whole sum."""

BLOCK_ROWS = 8192

MANY_BLOCKS = 8
"""Blocks from which several threads answer whole ones, each its own, instead of sharing each."""

LARGE = 1e12
"""Numbers up to it can be squared and added up in float32."""

WHOLE_BYTES = 2**28
"""Most that is held at once of data with fewer rows than columns (see `Rows.dual`)."""


class Additive(Protocol):
    """A sum over rows: what two parts of the rows give can be merged."""

    def merge(self, other: Self) -> None: ...


Total = TypeVar("Total", bound=Additive)
Make = Callable[[], Total]
Add = Callable[[Total, Block], None]

Choice = tuple[np.ndarray, ...]
"""Rows to take: their numbers, and where others are wanted their weights and units."""

ROW_COLUMNS = ("codes", "targets", "weight", "unit", "group")
"""What `Rows` has of every row besides X."""


@dataclass(eq=False)
class Rows:
    """The rows of X with their targets and weights.

    Parameters
    ----------
    X : array or CSR matrix, n x d
    space : Space
        Where the blocks are wanted.
    codes : integer array, optional
        Class numbers; blocks carry them as one 0/1 column per class (`n_classes` of them).
    targets : float array n x m, optional
        Real targets, or a 0/1 matrix of labels.
    weight : float array, optional
    unit : float array, optional
        The weight that leaving one row out takes away (see `loo`).
    block_rows : int or "auto"
        "auto" keeps the widest array of a block within 128 MiB.
    dtype : {"float32", "float64"}, optional
        Dtype of the blocks; by default float32 stays float32 and everything else becomes float64.
    gauge : integer array, optional
        Exponents of two, one a column: blocks hold the columns times these powers (see `scaling.gauge_for`).
    intake : Intake, optional
        What becomes of the columns first: blocks hold what it makes of them.
    numbers : integer array, optional
        Of a sample: which rows it was taken from.
    group : uint64 array, optional
        The key of the group that each row belongs to (see `groups`).
    passes : int
        How often the rows were read.
    """

    X: Any
    space: Space
    codes: Column = None
    n_classes: int = 0
    targets: Column = None
    weight: Column = None
    unit: Column = None
    block_rows: int | str = "auto"
    dtype: str = ""
    progress: Progress = field(default_factory=partial(Progress, 0))
    gauge: np.ndarray | None = None
    intake: Intake | None = None
    numbers: Column = None
    group: Column = None
    passes: int = 0

    in_memory = True
    """Whether a pass costs no reading."""

    def __post_init__(self) -> None:
        self.dtype = self.dtype or float_name(self.X)
        self.take_in(self.intake)

    def take_in(self, intake: Intake | None) -> None:
        """Read the rows like that from now on."""
        self.intake = intake
        self.n, self.d = self._shape()
        self.d = self.d if intake is None else intake.width
        self._moved: Array = None
        """X where the blocks are wanted, if it is dense, comes from elsewhere and fits there."""
        self._classes: Array = None
        """Class numbers where the blocks are wanted, if that is not in NumPy."""

    def learn_intake(self, categorical: tuple[int, ...] = ()) -> None:
        """Find out, in one pass, what to do with gaps and categories in the columns of these rows, and do so."""
        self.take_in(None)
        make = partial(IntakeSums, self.d, categorical)
        dtype, self.dtype = self.dtype, "float64"  # float32 may not hold the numbers, before they have a gauge
        try:
            found = self.total(make, IntakeSums.add, "looking at the columns").found()
        finally:
            self.dtype = dtype
        self.take_in(found)

    def _shape(self) -> tuple[int, int]:
        """Of the rows as they come."""
        return int(self.X.shape[0]), int(self.X.shape[1])

    @property
    def total_weight(self) -> float:
        return float(self.n) if self.weight is None else float(self.weight.sum())

    @property
    def n_targets(self) -> int:
        if self.codes is not None:
            return self.n_classes
        return 0 if self.targets is None else int(self.targets.shape[1])

    def rows_per_block(self, width: int = 0, bytes_: int = BLOCK_BYTES) -> int:
        """Rows in a block when the widest array made from it has `width` columns and may take so much."""
        if self.block_rows != "auto":
            return int(self.block_rows)
        row = (4 if self.dtype == "float32" else 8) * max(self.d, width, self.n_targets)
        most = self.space.budget(bytes_) // row
        return max(256, min(most, max(most // 4, BLOCK_ROWS)))

    @property
    def dual(self) -> bool:
        """Whether to use n x n matrices instead of d x d ones: fewer rows than columns, and few enough to hold.

        Rows that the caller wants in blocks are never held whole.
        """
        if self.n >= self.d:
            return False
        return 8 * self.n * self.d <= WHOLE_BYTES if self.block_rows == "auto" else self.n <= int(self.block_rows)

    def whole(self) -> Block:
        """All rows as one block, where `dual` allows it."""
        self.passes += 1
        return self.block(0, self.n)

    def blocks(self, label: str = "", width: int = 0, bytes_: int = BLOCK_BYTES) -> Iterator[Block]:
        """One pass over the data. `label` names it in the progress display."""
        self.passes += 1
        step = self.rows_per_block(width, bytes_)
        for start in range(0, self.n, step):
            self.progress.update(label, start, self.n)
            yield self.block(start, min(start + step, self.n))
        self.progress.update(label, self.n, self.n)

    def total(self, make: Make[Total], add: Add[Total], label: str, width: int = 0) -> Total:
        """One pass over the data: an empty sum from `make`, to which `add` adds every block."""
        total = make()
        for block in self.blocks(label, width):
            add(total, block)
        return total

    def extent(self, label: str = "") -> Extent:
        """The lowest and the highest number of each column."""
        return self.total(partial(Extent, self.d), _widen, label)

    def with_gauge(self, gauge: np.ndarray | None, dtype: str) -> Rows:
        """The same rows under another gauge, and in another dtype."""
        return replace(self, gauge=gauge, dtype=dtype)

    def map(self, f: Callable[[Array], Array], width: int, *, at_once: bool = False) -> Array:
        """f of every block, one below the other, in the library and on the device of X (text stays in NumPy).
        `at_once`: f may be asked of several blocks at the same time."""

        def answer(X: Array) -> Array:
            work = X.shape[0] * X.shape[1] * width
            # what overflows is refused in one sentence instead
            with np.errstate(over="ignore", invalid="ignore"), sharing(X, work=work):
                part = f(X)
                check_answer(part)
            return part

        home = space_of(self.X)
        if home == NUMPY:  # written in place: no second copy of the result
            out = None
            for block in self.blocks(width=width, bytes_=ANSWER_BYTES):
                part = to_numpy(answer(block.X))
                if out is None:
                    out = np.empty((self.n, *part.shape[1:]), dtype=part.dtype)
                    many = self.in_memory and self.n > MANY_BLOCKS * len(part)
                    if many and at_once and part.dtype.kind in "biuf":
                        out[: len(part)] = part
                        self._answer_rest(answer, out, len(part), width)
                        break
                elif part.dtype != out.dtype:  # strings of another length
                    out = out.astype(np.promote_types(part.dtype, out.dtype))
                out[block.start : block.start + len(part)] = part
            return out
        parts = [answer(block.X) for block in self.blocks(width=width)]
        if isinstance(parts[0], np.ndarray) and parts[0].dtype.kind not in "biuf":
            return np.concatenate(parts)
        return home.xp.concat([home.asarray(part) for part in parts], axis=0)

    def _answer_rest(self, answer: Callable[[Array], Array], out: np.ndarray, step: int, width: int) -> None:
        """The answers to all blocks of `step` rows but the first into `out`, by several threads."""
        starts = range(step, self.n, step)

        def some(part: slice) -> None:
            for start in starts[part]:
                rows = slice(start, min(start + step, self.n))
                out[rows] = to_numpy(answer(self.block(rows.start, rows.stop).X))

        work = 2.0 * self.n * self.d * width
        with sharing(self.X, work=work):
            in_parts(some, len(starts), work)

    def mapped(self, f: Callable[[Array], Array]) -> Rows:
        """The same rows with f(X) for X, held whole: for samples."""
        X = self.space.xp.concat([f(block.X) for block in self.blocks()], axis=0)
        return replace(self, X=X, gauge=None, intake=None)

    def first(self, count: int) -> Rows:
        """The first rows of a sample with weights, as views."""
        if count >= self.n:
            return self
        columns: dict[str, Any] = {name: at(getattr(self, name), slice(count)) for name in (*ROW_COLUMNS, "numbers")}
        return replace(self, X=self.X[:count, :], **columns)

    def take(self, rows: np.ndarray, weight: Column = None, unit: Column = None) -> Rows:
        """These rows with other weights, as a source of their own (copied: they are few)."""
        return replace(
            self,
            X=take_rows(self.X, rows),
            codes=at(self.codes, rows),
            targets=at(self.targets, rows),
            weight=weight,
            unit=unit,
            group=at(self.group, rows),
            numbers=rows,
            passes=0,
        )

    def subset(self, rows: np.ndarray) -> Rows:
        """These rows as they are, weights and all."""
        taken = self.take(rows, at(self.weight, rows), at(self.unit, rows))
        return taken if self.numbers is None else replace(taken, numbers=self.numbers[rows])

    def samples(self, choices: list[Choice]) -> list[Rows]:
        """What `take` gives for each choice."""
        return [self.take(*choice) for choice in choices]

    def dense(self) -> Array:
        """All rows of a sample as one dense array."""
        return self._dense(self.X)

    def block(self, start: int, stop: int) -> Block:
        """The rows from `start` to `stop`."""
        part = slice(start, stop)
        if self._moved is None and isinstance(self.X, np.ndarray) and self.space.holds(2 * self.X.nbytes):
            self._moved = self._dense(self.X)  # copied once, not in every pass
        X = self._dense(self.X[part, :]) if self._moved is None else self._moved[part, :]
        if self.codes is not None and self._classes is None and self.space != NUMPY:
            self._classes = self.space.asarray(self.codes.astype(np.int64))
        codes, *columns = (at(getattr(self, name), part) for name in ROW_COLUMNS)
        Z = None if self._classes is None else self._indicators(self._classes[part])
        return self._with_columns(X, start, codes, *columns, Z=Z)

    def _indicators(self, codes: Array) -> Array:
        return indicators(codes, self.n_classes, self.space, self.dtype)

    def _with_columns(
        self,
        X: Array,
        start: int,
        codes: Column,
        targets: Column,
        weight: Column,
        unit: Column,
        group: Column = None,
        *,
        Z: Array = None,
    ) -> Block:
        """A block of rows that are where they are wanted, and of what belongs to them; Z is made of codes or targets
        where it is not there already."""
        if Z is None and codes is not None:
            Z = self._indicators(codes)
        elif Z is None and targets is not None:
            Z = self.space.asarray(targets, self.dtype)
        w = None if weight is None else self.space.asarray(weight, "float64")
        if weight is not None and not (weight > 0).all():
            X = without_weightless(X, w)
        return Block(X, Z, w, start, codes, unit, group)

    def _dense(self, X: Array) -> Array:
        if scipy.sparse.issparse(X):
            X = X.toarray()
        with np.errstate(over="ignore"):  # what float32 does not hold shows in what is made of it
            if self.gauge is not None:
                X = X if self.intake is None else self.intake(X)
                return self.space.asarray(times_powers(X, self.gauge), self.dtype)
            X = self.space.asarray(X, self.dtype)
            return X if self.intake is None else self.intake(X)


def times_factor(factor: Column, codes: Column, w: Column, unit: Column) -> tuple[Column, Column]:
    """Weights and units of rows with the weight of each one's class."""
    if factor is None or codes is None:
        return w, unit
    c = factor[codes]
    return (c if w is None else w * c), (c if unit is None else unit * c)


def _widen(extent: Extent, block: Block) -> None:
    extent.add(block.X)


def counting(block: Block) -> Array:
    """The rows of a block that have a weight."""
    if block.w is None:
        return block.X
    positive = to_numpy(block.w) > 0
    return block.X if positive.all() else take_rows(block.X, np.flatnonzero(positive))


def without_weightless(X: Array, w: Array) -> Array:
    """X, with zeros in the rows of weight zero where these hold large numbers: infinity times zero is no number."""
    xp = space_of(X).xp
    counts, zeros = (w > 0)[:, None], xp.zeros_like(X)
    if float(xp.max(xp.abs(xp.where(counts, zeros, X)))) <= LARGE:
        return X
    return xp.where(counts, X, zeros)


def indicators(codes: Array, n_classes: int, space: Space, dtype: str) -> Array:
    """One 0/1 column per class; class numbers are in NumPy, or where the columns are wanted."""
    if space != NUMPY:  # made there: numbers travel, not a table of zeros
        xp, device = space
        numbers = space.asarray(codes.astype(np.int64)) if isinstance(codes, np.ndarray) else codes
        return xp.astype(numbers[:, None] == xp.arange(n_classes, device=device)[None, :], getattr(xp, dtype))
    Z = np.zeros((len(codes), n_classes), dtype=dtype)
    Z[np.arange(len(codes)), codes] = 1.0
    return Z
