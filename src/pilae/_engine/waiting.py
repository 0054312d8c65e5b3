"""Rows that are in and not yet in the sums.

Adding one row to a p x p sum touches all of it, and a sum that others may be reading is copied first. So a few rows
wait, which costs p numbers each, until somebody needs the sums or there are enough of them for one product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

import numpy as np

from .._arrays import dtype_name
from .moments import Moments

MOST_WAITING = 256
"""Rows that wait at most."""

TAME_SQUARES = {"float64": 1e200, "float32": 1e30}
"""Rows whose weighted squares may sum up to more are added at once: sums that overflow are refused when they come."""


class Arrived(NamedTuple):
    """Rows of features and targets, their weights, and the logarithm of what had faded away when they came."""

    F: np.ndarray
    Z: np.ndarray
    w: np.ndarray
    level: float


@dataclass(frozen=True, eq=False)
class Waiting:
    """Sums, and rows that belong to them. `level` is the logarithm of what the sums have faded to since."""

    sums: Moments
    rows: tuple[Arrived, ...] = ()
    count: int = 0
    level: float = 0.0
    _total: Moments | None = field(default=None, init=False)

    def joined(self, F: np.ndarray, Z: np.ndarray, w: np.ndarray | None, kept: float) -> Self:
        """With these rows, after those that are in have faded to a share of `kept`, more than nothing."""
        level = self.level + math.log(kept)
        # copies: what is the caller's may change
        arrived = Arrived(F.copy(), Z.copy(), np.ones(len(F)) if w is None else w.copy(), level)
        return replace(self, rows=(*self.rows, arrived), count=self.count + len(F), level=level)

    def total(self) -> Moments:
        """The sums with the rows in them, made once; whoever is given them changes nothing."""
        total = self._total
        if total is None:
            total = self.sums.copy()
            if self.level:
                total.fade(math.exp(self.level))
            w = np.concatenate([part.w * math.exp(self.level - part.level) for part in self.rows])
            total.add(np.concatenate([part.F for part in self.rows]), np.concatenate([part.Z for part in self.rows]), w)
            if self.level:
                total.follow()
            object.__setattr__(self, "_total", total)  # the same for whoever comes first
        return total


def is_tame(sums: Moments, F: np.ndarray, Z: np.ndarray, w: np.ndarray | None) -> bool:
    """Whether these rows can be added to the sums later, and nothing overflows: neither their squares about the shift,
    nor the weights themselves, whose roots have the dtype of the products."""
    heaviest = 1.0 if w is None else float(w.max())
    with np.errstate(over="ignore", invalid="ignore"):
        squares = sum(float(np.vdot(x, x)) for x in (F, Z, sums.shift_a, sums.shift_b))
        return heaviest * (1.0 + squares) < TAME_SQUARES[dtype_name(F)]  # False of NaN
