r"""Columns in pieces: beside itself, every column as ramps between its quantiles.

With knots e_0 < ... < e_K of a column x the ramps are

    clip((x - e_k) / (e_(k+1) - e_k), 0, 1),    k = 0 ... K - 1.

A linear function of these is any function of x that is straight between the knots, so a ridge on them is an additive
model, and a neuron on them sees thresholds. Targets are not looked at.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .._arrays import Array, space_of, to_numpy
from .._arrays.kernels import pieces
from .._arrays.threads import in_parts
from .._base.saveable import check_shape, saveable
from .scaling import Scaling, reciprocal

MOST_PIECES = 12
"""Ramps for each column, where there is room for so many."""

FEWEST_PIECES = 4
"""Fewer than so many for each column are not worth having."""

FEW_VALUES = 6
"""Columns of so few distinct values stay as they are: there is nothing between them."""

MOST_COLUMNS = 600
"""Columns and ramps, at most."""

COLUMNS_A_ROW = 1.0
"""The same, for each row."""

OPERATIONS = 20.0
"""Products that take the time of one number of a ramp: several walks through a cache."""


@saveable
@dataclass
class Pieces(Scaling):
    """The standardised columns, then their ramps."""

    source: Array
    """Of each ramp, the column it belongs to."""
    start: Array
    steepness: Array
    """1 / (e_(k+1) - e_k)."""

    def is_mild(self) -> bool:
        return False

    @property
    def width(self) -> int:
        return int(self.mean.shape[0]) + int(self.source.shape[0])

    def check_shapes(self, columns: int) -> None:
        super().check_shapes(columns)
        ramps = int(self.source.shape[0])
        check_shape(self.start, ramps)
        check_shape(self.steepness, ramps)
        source = to_numpy(self.source)
        if source.dtype.kind not in "iu" or (ramps and not 0 <= source.min() <= source.max() < columns):
            raise ValueError("ramps of columns that are not there")

    def __call__(self, X: Array) -> Array:
        xp = space_of(X).xp
        start, steepness = (xp.astype(part, X.dtype, copy=False) for part in (self.start, self.steepness))
        if isinstance(X, np.ndarray):
            return self._written(X, start, steepness)
        ramps = (xp.take(X, self.source, axis=1) - start) * steepness
        return xp.concat([super().__call__(X), xp.clip(ramps, 0.0, 1.0)], axis=1)

    def _written(self, X: np.ndarray, start: np.ndarray, steepness: np.ndarray) -> np.ndarray:
        """The same, rows that stay in the cache at a time, and nothing as large beside it."""
        d = X.shape[1]
        out = np.empty((len(X), self.width), X.dtype)

        def write(rows: slice) -> None:
            for part in pieces(out[rows]):
                x, y = X[rows][part], out[rows][part]
                y[:, :d] = Scaling.__call__(self, x)
                ramps = np.take(x, self.source, axis=1)
                ramps -= start
                ramps *= steepness
                np.clip(ramps, 0.0, 1.0, out=y[:, d:])

        in_parts(write, len(X), OPERATIONS * out.size)
        return out

    def gradient(self, X: np.ndarray, G: np.ndarray) -> np.ndarray:
        d, source = X.shape[1], to_numpy(self.source)
        steepness = to_numpy(self.steepness)
        ramps = (X[:, source] - to_numpy(self.start)) * steepness
        own = super().gradient(X, G[:, :d])
        np.add.at(own.T, source, (G[:, d:] * steepness * ((ramps > 0) & (ramps < 1))).T)
        return own

    def undo(self, X: Array) -> Array:
        return super().undo(X[:, : int(self.mean.shape[0])])


def pieces_for(mean: Array, variance: Array, X: np.ndarray, weight: np.ndarray | None) -> Pieces | None:
    """Standardised columns and their ramps, by the quantiles of these rows; None where there is no room for them, or
    no column has more than a few values."""
    space = space_of(mean)
    edges = _all_edges(X, np.ones(len(X)) if weight is None else weight)
    ramps = [(column, *ramp) for column, knots in edges.items() for ramp in pairwise(knots)]
    if not ramps:
        return None
    source, low, high = (np.array(part) for part in zip(*ramps, strict=True))
    standard = Scaling.standard(mean, variance)
    start, width = space.asarray(low, "float64"), space.asarray(high - low, "float64")
    return Pieces(standard.mean, standard.inverse, space.asarray(source.astype(np.int64)), start, reciprocal(width))


def _all_edges(X: np.ndarray, weight: np.ndarray) -> dict[int, np.ndarray]:
    """Knots by column, of those columns that have some."""
    sorted_columns = {}
    for column in range(X.shape[1]):
        values, which = np.unique(X[:, column], return_inverse=True)
        if len(values) > FEW_VALUES:
            sorted_columns[column] = values.astype(np.float64), np.bincount(which, weights=weight)
    room = min(MOST_COLUMNS, COLUMNS_A_ROW * len(X)) - X.shape[1]
    count = min(MOST_PIECES, int(room // max(1, len(sorted_columns))))
    if count < FEWEST_PIECES:
        return {}
    return {column: quantiles(*each, count) for column, each in sorted_columns.items()}


def quantiles(values: np.ndarray, weight: np.ndarray, count: int) -> np.ndarray:
    """Distinct weighted quantiles of ascending values at 0, 1/count, ..., 1: those of the values repeated by their
    weights."""
    mass = np.cumsum(weight) / weight.sum()
    levels = np.arange(count + 1) / count
    # a level reached to within rounding is reached: sums of weights depend on their order
    places = np.searchsorted(mass, levels - 1e-12 * (levels > 0))
    return np.unique(values[np.minimum(places, len(values) - 1)])
