"""Centring and scaling of columns."""

from __future__ import annotations

from dataclasses import dataclass

from ._arrays import Array, space_of
from .save import saveable

MILD = 3.0
"""Means up to so many standard deviations are mild."""


@saveable
@dataclass
class Scaling:
    """(x - mean) / scale per column; columns that do not vary become zero."""

    mean: Array
    inverse: Array
    """1 / scale, or 0 for a constant column."""

    @classmethod
    def standard(cls, mean: Array, variance: Array, least: Array | None = None) -> Scaling:
        """To unit variance; no column is stretched by more than 1 / `least` (one number a column)."""
        xp = space_of(mean).xp
        if least is not None:
            variance = xp.where(variance > 0, xp.maximum(variance, least**2), variance)
        alive = variance > 0
        return cls(
            mean,
            xp.where(
                alive,
                1.0 / xp.sqrt(xp.where(alive, variance, xp.ones_like(variance))),
                xp.zeros_like(variance),
            ),
        )

    @classmethod
    def centring(cls, mean: Array) -> Scaling:
        return Centring(mean, space_of(mean).xp.ones_like(mean))

    def is_mild(self) -> bool:
        """Whether means are of the size of the spread, so that taking them off after a product loses no digits."""
        xp = space_of(self.mean).xp
        return float(xp.max(xp.abs(self.mean) * self.inverse)) < MILD

    def __call__(self, X: Array) -> Array:
        xp = space_of(X).xp
        return (X - xp.astype(self.mean, X.dtype, copy=False)) * xp.astype(self.inverse, X.dtype, copy=False)

    def undo(self, X: Array) -> Array:
        xp = space_of(X).xp
        scale = xp.where(
            self.inverse > 0,
            1.0 / xp.where(self.inverse > 0, self.inverse, xp.ones_like(self.inverse)),
            self.inverse,
        )
        return X * xp.astype(scale, X.dtype) + xp.astype(self.mean, X.dtype)


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

    def undo(self, X: Array) -> Array:
        return super().undo(space_of(X).xp.sinh(X))
