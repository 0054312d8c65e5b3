"""Any source of rows as restartable blocks.

A pass over the data is a loop over `Rows.blocks()`. Blocks of a dense array are views; blocks of a CSR matrix are
made dense one at a time. Only the blocks are ever held, so memory does not depend on the number of rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import scipy.sparse

from .._arrays import NUMPY, Array, Space, float_name, space_of, take_rows, times_powers, to_numpy
from .._arrays.threads import sharing
from .._base.progress import Progress
from .._engine.scaling import Extent
from .check import check_answer

BLOCK_BYTES = 128 * 2**20
"""Memory budget of the widest array of one block. A quarter of it is aimed at, which a processor's last cache holds,
unless that is fewer than BLOCK_ROWS: every block ends with an addition to the whole sum."""

BLOCK_ROWS = 8192


LARGE = 1e12
"""Numbers up to it can be squared and added up in float32."""

WHOLE_BYTES = 2**28
"""Most that is held at once of data with fewer rows than columns (see `Rows.dual`)."""


class Block(NamedTuple):
    """One block: its rows, their 0/1 or real targets, their weights (None: all 1) and the first row's number.

    `codes` are class numbers and `unit` the weight that leaving one row out takes away, in NumPy, where there are any.
    """

    X: Array
    Z: Array
    w: Array
    start: int
    codes: np.ndarray | None = None
    unit: np.ndarray | None = None


class Additive(Protocol):
    """A sum over rows: what two parts of the rows give can be merged."""

    def merge(self, other: Any) -> None: ...


Total = TypeVar("Total", bound=Additive)


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
    """

    in_memory = True
    """Whether a pass costs no reading."""

    def __init__(
        self,
        X: Any,
        space: Space,
        *,
        codes: np.ndarray | None = None,
        n_classes: int = 0,
        targets: np.ndarray | None = None,
        weight: np.ndarray | None = None,
        unit: np.ndarray | None = None,
        block_rows: int | str = "auto",
        dtype: str | None = None,
        progress: Progress | None = None,
        gauge: np.ndarray | None = None,
    ) -> None:
        self.X, self.space, self.gauge = X, space, gauge
        self.codes, self.n_classes, self.targets = codes, n_classes, targets
        self.weight, self.unit = weight, unit
        self.block_rows = block_rows
        self.dtype = dtype or float_name(X)
        self.progress = progress or Progress(0)
        self.n, self.d = int(X.shape[0]), int(X.shape[1])
        self.passes = 0
        self.numbers: np.ndarray | None = None
        """Of a sample: which rows it was taken from."""
        self._there: Array = None
        """X where the blocks are wanted, if it is dense, comes from elsewhere and fits there."""

    @property
    def total_weight(self) -> float:
        return float(self.n) if self.weight is None else float(self.weight.sum())

    @property
    def n_targets(self) -> int:
        if self.codes is not None:
            return self.n_classes
        return 0 if self.targets is None else int(self.targets.shape[1])

    def rows_per_block(self, width: int = 0) -> int:
        """Rows in a block when the widest array made from it has `width` columns."""
        if self.block_rows != "auto":
            return int(self.block_rows)
        row = (4 if self.dtype == "float32" else 8) * max(self.d, width, self.n_targets)
        most = self.space.budget(BLOCK_BYTES) // row
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
        return self._block(slice(0, self.n), 0)

    def blocks(self, label: str = "", width: int = 0) -> Iterator[Block]:
        """One pass over the data. `label` names it in the progress display."""
        self.passes += 1
        step = self.rows_per_block(width)
        for start in range(0, self.n, step):
            self.progress.update(label, start, self.n)
            yield self._block(slice(start, min(start + step, self.n)), start)
        self.progress.update(label, self.n, self.n)

    def total(
        self, make: Callable[[], Total], add: Callable[[Total, Block], None], label: str, width: int = 0
    ) -> Total:
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
        new = copy.copy(self)
        new.gauge, new.dtype, new._there = gauge, dtype, None
        return new

    def map(self, f: Callable[[Array], Array], width: int) -> Array:
        """f of every block, one below the other, in the library and on the device of X (text stays in NumPy)."""

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
            for block in self.blocks(width=width):
                part = to_numpy(answer(block.X))
                if out is None:
                    out = np.empty((self.n, *part.shape[1:]), dtype=part.dtype)
                elif part.dtype != out.dtype:  # strings of another length
                    out = out.astype(np.promote_types(part.dtype, out.dtype))
                out[block.start : block.start + len(part)] = part
            return out
        parts = [answer(block.X) for block in self.blocks(width=width)]
        if isinstance(parts[0], np.ndarray) and parts[0].dtype.kind not in "biuf":
            return np.concatenate(parts)
        return home.xp.concat([home.asarray(part) for part in parts], axis=0)

    def mapped(self, f: Callable[[Array], Array]) -> Rows:
        """The same rows with f(X) for X, held whole: for samples."""
        new = copy.copy(self)
        new._there = new.gauge = None
        new.X = self.space.xp.concat([f(block.X) for block in self.blocks()], axis=0)
        new.d = int(new.X.shape[1])
        return new

    def first(self, count: int) -> Rows:
        """The first rows of a sample with weights, as views."""
        if count >= self.n:
            return self
        new = copy.copy(self)
        new.X, new.n, new._there = self.X[:count, :], count, None
        for name in ("codes", "targets", "weight", "unit", "numbers"):
            value = getattr(self, name)
            setattr(new, name, None if value is None else value[:count])
        return new

    def take(self, rows: np.ndarray, weight: np.ndarray | None = None, unit: np.ndarray | None = None) -> Rows:
        """The chosen rows with other weights, as a source of their own (copied: they are few)."""
        new = Rows(
            take_rows(self.X, rows),
            self.space,
            codes=None if self.codes is None else self.codes[rows],
            n_classes=self.n_classes,
            targets=None if self.targets is None else self.targets[rows],
            weight=weight,
            unit=unit,
            block_rows=self.block_rows,
            dtype=self.dtype,
            progress=self.progress,
            gauge=self.gauge,
        )
        new.numbers = rows
        return new

    def samples(self, chosen: list[tuple[np.ndarray, ...]]) -> list[Rows]:
        """For each (row numbers, their weights, their units) what `take` gives."""
        return [self.take(*which) for which in chosen]

    def dense(self) -> Array:
        """All rows of a sample as one dense array."""
        return self._dense(self.X)

    def _block(self, part: slice, start: int) -> Block:
        w = None if self.weight is None else self.space.asarray(self.weight[part], "float64")
        codes = None if self.codes is None else self.codes[part]
        unit = None if self.unit is None else self.unit[part]
        if self._there is None and isinstance(self.X, np.ndarray) and self.space.holds(2 * self.X.nbytes):
            self._there = self._dense(self.X)  # copied once, not in every pass
        X = self._dense(self.X[part, :]) if self._there is None else self._there[part, :]
        X = without_weightless(X, w)
        return Block(X, self._targets(part), w, start, codes, unit)

    def _dense(self, X: Any) -> Array:
        if scipy.sparse.issparse(X):
            X = X.toarray()
        with np.errstate(over="ignore"):  # what float32 does not hold shows in what is made of it
            return self.space.asarray(X if self.gauge is None else times_powers(X, self.gauge), self.dtype)

    def _targets(self, part: slice) -> Array:
        if self.codes is not None:
            return indicators(self.codes[part], self.n_classes, self.space, self.dtype)
        return None if self.targets is None else self.space.asarray(self.targets[part], self.dtype)


def unit_of(w: np.ndarray | None) -> np.ndarray | None:
    """The weight that leaving one row out takes away: of a weight of 3, which is three equal rows, one."""
    return None if w is None else np.minimum(w, 1.0)


def _widen(extent: Extent, block: Block) -> None:
    extent.add(block.X)


def without_weightless(X: Array, w: Array) -> Array:
    """X, with zeros in the rows of weight zero where these hold large numbers: infinity times zero is no number."""
    if w is None:
        return X
    xp = space_of(X).xp
    there, none = (w > 0)[:, None], xp.zeros_like(X)
    if bool(xp.all(there)) or float(xp.max(xp.abs(xp.where(there, none, X)))) <= LARGE:
        return X
    return xp.where(there, X, none)


def indicators(codes: np.ndarray, n_classes: int, space: Space, dtype: str) -> Array:
    """One 0/1 column per class."""
    if space != NUMPY:  # made there: numbers travel, not a table of zeros
        xp, device = space
        there = space.asarray(codes.astype(np.int64))
        return xp.astype(there[:, None] == xp.arange(n_classes, device=device)[None, :], getattr(xp, dtype))
    Z = np.zeros((len(codes), n_classes), dtype=dtype)
    Z[np.arange(len(codes)), codes] = 1.0
    return Z
