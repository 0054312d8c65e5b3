"""Centring and scaling of columns."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._arrays import Array, space_of, to_numpy
from .._arrays.buffers import empty
from .._arrays.kernels import column_range
from .._arrays.threads import TOUCHED, in_parts
from .._base.saveable import check_shape, saveable

MILD = 3.0
"""Means up to so many standard deviations are mild."""

RANGE = {"float64": 200, "float32": 40}
"""Columns of a size between 2**-200 and 2**200 are taken as they come: fits make fourth powers of it. Of float32 blocks
squares are added up in float32."""


class Extent:
    """The lowest and the highest number in each column."""

    def __init__(self, d: int) -> None:
        self.low, self.high = np.full(d, np.inf), np.full(d, -np.inf)

    @property
    def size(self) -> np.ndarray:
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def add(self, X: Array) -> None:
        if not X.shape[0]:
            return
        low, high = column_range(X)
        self.low, self.high = np.minimum(self.low, low), np.maximum(self.high, high)

    def merge(self, other: Self) -> None:
        self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)


def both(one: Extent | None, other: Extent | None) -> Extent | None:
    """The two as one, where there are two."""
    if one is not None and other is not None:
        one.merge(other)
    return one or other


def gauge_for(extent: Extent, dtype: str, input_scaling: str) -> np.ndarray:
    """Exponents of two that bring columns of absurd size to about 1, so that no square overflows or vanishes.

    Powers of two are exact. Where columns are standardised each can have its own and the model is the same; otherwise
    all get the same one, unless the columns are too far apart for that.
    """
    size, varies = extent.size, extent.high > extent.low
    exponents = np.where(size > 0, np.frexp(size)[1], 0)
    if input_scaling not in ("standard", "asinh") and varies.any():
        top = int(exponents[size > 0].max())
        if top - int(exponents[varies].min()) <= RANGE[dtype]:
            return np.full(len(size), -top)
        if input_scaling == "none":
            raise ValueError(
                f"The columns of X are as small as {size[varies].min():.0e} and as large as {size.max():.0e}, too far "
                f"apart for {dtype} with input_scaling='none': use input_scaling='standard', or bring the columns to "
                "one scale."
            )
    return -exponents


def own_gauge(extent: Extent) -> np.ndarray | None:
    """The gauge of standardised columns in float64; None where they need none."""
    limit, size = 2.0 ** RANGE["float64"], extent.size
    absurd = (size > limit) | ((size > 0) & (size < 1 / limit))
    return gauge_for(extent, "float64", "standard") if absurd.any() else None


@saveable
@dataclass
class Scaling:
    """(x - mean) / scale per column; columns that do not vary become zero."""

    mean: Array
    inverse: Array
    """1 / scale, or 0 for a constant column."""

    @classmethod
    def standard(cls, mean: Array, variance: Array, least: Array | None = None) -> Self:
        """To unit variance; no column is stretched by more than 1 / `least` (one number a column)."""
        xp = space_of(mean).xp
        if least is not None:
            variance = xp.where(variance > 0, xp.maximum(variance, least**2), variance)
        return cls(mean, reciprocal(xp.sqrt(variance)))

    @classmethod
    def centring(cls, mean: Array) -> "Centring":
        return Centring(mean, space_of(mean).xp.ones_like(mean))

    @property
    def width(self) -> int:
        """Columns that it makes."""
        return int(self.mean.shape[0])

    def leading(self, p: int) -> Self:
        """Of the first p columns."""
        return replace(self, mean=self.mean[:p], inverse=self.inverse[:p])

    def check_shapes(self, columns: int) -> None:
        check_shape(self.mean, columns)
        check_shape(self.inverse, columns)

    def is_mild(self) -> bool:
        """Whether means are of the size of the spread, so that taking them off after a product loses no digits."""
        xp = space_of(self.mean).xp
        return float(xp.max(xp.abs(self.mean) * self.inverse)) < MILD

    def __call__(self, X: Array) -> Array:
        mean, inverse = self.mean, self.inverse
        if X.dtype != mean.dtype:
            xp = space_of(X).xp
            mean, inverse = (xp.astype(part, X.dtype, copy=False) for part in (mean, inverse))
        if not isinstance(X, np.ndarray):
            return (X - mean) * inverse
        scaled = empty(X.shape, np.result_type(X, mean))

        def rows(part: slice) -> None:
            np.subtract(X[part], mean, out=scaled[part])
            scaled[part] *= inverse

        in_parts(rows, len(scaled), TOUCHED * scaled.size)
        return scaled

    def gradient(self, X: np.ndarray, G: np.ndarray) -> np.ndarray:
        """From the gradient in what it makes of rows to that in the rows."""
        return G * to_numpy(self.inverse)

    def undo(self, X: Array) -> Array:
        xp = space_of(X).xp
        return X * xp.astype(reciprocal(self.inverse), X.dtype) + xp.astype(self.mean, X.dtype)


@saveable
@dataclass
class Centring(Scaling):
    """x - mean."""

    def is_mild(self) -> bool:
        return False  # it does not know the spread


@saveable
@dataclass
class Squash(Scaling):
    """asinh((x - mean) / scale): linear for ordinary values, logarithmic for the far ones of heavy-tailed columns."""

    def is_mild(self) -> bool:
        return False

    def __call__(self, X: Array) -> Array:
        return space_of(X).xp.asinh(super().__call__(X))

    def gradient(self, X: np.ndarray, G: np.ndarray) -> np.ndarray:
        z = (X - to_numpy(self.mean)) * to_numpy(self.inverse)
        return super().gradient(X, G) / np.sqrt(1.0 + z**2)

    def undo(self, X: Array) -> Array:
        return super().undo(space_of(X).xp.sinh(X))


def reciprocal(x: Array) -> Array:
    """1 / x, and 0 where x is 0."""
    xp = space_of(x).xp
    positive = x > 0
    return xp.where(positive, 1.0 / xp.where(positive, x, xp.ones_like(x)), xp.zeros_like(x))
