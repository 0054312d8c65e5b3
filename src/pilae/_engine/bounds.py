r"""Rows beyond those that were seen, brought back near them.

A column that was seen from l to h is taken as it comes from l - m to h + m, with the margin m half of h - l, and not
more than three standard deviations: where a few numbers lie far out, what a network says there it has from these few.
Beyond that a number x = b + e at the border b counts as

    b + m e / (m + |e|),

which begins with slope 1 and never goes further than one margin more: what is far away is answered like what lies at
the end of the world that the model knows, and not by straight lines to anywhere.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from .._arrays import Array, space_of
from .._base.saveable import check_shape, saveable

MARGIN = 0.5
"""Of the range that was seen, on either side."""

SPREADS = 3.0
"""Most of it, in standard deviations."""


@saveable
@dataclass(frozen=True, eq=False)
class Bounds:
    """The lowest and the highest number that was seen in each column, and what follows from them."""

    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    """From here to `upper` numbers are taken as they come."""
    upper: np.ndarray
    margin: np.ndarray
    spread: np.ndarray | None = None
    """Standard deviations; in files of earlier days there are none."""

    @classmethod
    def of(cls, low: np.ndarray, high: np.ndarray, spread: np.ndarray | None = None) -> Self:
        """A column that never varied may hold anything: it has no range, and nothing was learnt from it."""
        with np.errstate(over="ignore", invalid="ignore"):
            margin = MARGIN * (high - low)
            margin = margin if spread is None else np.minimum(margin, SPREADS * spread)
        varies = np.isfinite(margin) & (margin > 0)
        margin = np.where(varies, margin, 1.0)
        lower, upper = np.where(varies, low - margin, -np.inf), np.where(varies, high + margin, np.inf)
        return cls(low, high, lower, upper, margin, spread)

    def joined(self, low: np.ndarray, high: np.ndarray, spread: np.ndarray | None = None) -> "Bounds":
        """With what others have seen; of spreads the larger."""
        spread = self.spread if spread is None or self.spread is None else np.maximum(self.spread, spread)
        return Bounds.of(np.minimum(self.low, low), np.maximum(self.high, high), spread)

    def _like(self, X: Array) -> list[Array]:
        """(lower, upper, margin) where X is, in its dtype."""
        space, parts = space_of(X), (self.lower, self.upper, self.margin)
        return [space.xp.astype(space.asarray(part), X.dtype, copy=False) for part in parts]

    def far(self, X: Array) -> Array:
        """Whether a row has a number beyond the limits."""
        lower, upper, _ = self._like(X)
        return space_of(X).xp.any((lower > X) | (upper < X), axis=1)

    def __call__(self, X: Array) -> Array:
        if isinstance(X, np.ndarray) and (self.lower <= X).all() and (self.upper >= X).all():
            return X  # nearly always
        xp, (lower, upper, margin) = space_of(X).xp, self._like(X)
        near = xp.minimum(xp.maximum(X, lower), upper)
        beyond = X - near
        return near + margin * (beyond / (margin + xp.abs(beyond)))

    def check_shapes(self, columns: int) -> None:
        for part in (self.low, self.high, self.lower, self.upper, self.margin):
            check_shape(part, columns)
        if self.spread is not None:
            check_shape(self.spread, columns)
