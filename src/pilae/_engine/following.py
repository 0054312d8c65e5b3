r"""A ridge solution that follows its rows one by one, in O(p^2) each.

With centred sums G, C of weight W, L L' = A = G + lambda I and coefficients V = A^-1 C, a row x of weight w (centred by
the mean before it, divided by the scales) changes them to

    G + d x x',   C + d x z',   d = W w / (W + w),     V + b d (z - x V)' / (1 + d x.b),   b = A^-1 x

and where all weights fade by f first, A becomes f A: V stays, lambda fades with the rest. What the rows since the last
whole solve have changed is kept as the vectors g of A^-1 = ((L L')^-1 - sum g g') / f.

lambda and the scales are those of the last whole solve; that is made again when the sum of weights has moved by 1%, so
that lambda is never further than that from `ridge` times it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .._arrays.kernels import solve_row

MOST_ROWS = 128
"""Rows followed before the factor is made again: each makes the next a little slower."""

MOVED = 0.01
"""Share by which the sum of weights may move."""


@dataclass(frozen=True, eq=False)
class Following:
    """Where it stands."""

    L: np.ndarray
    inverse: np.ndarray
    """1 / scale of each feature."""
    mean_a: np.ndarray
    mean_b: np.ndarray
    coef: np.ndarray
    """On standardised features."""
    weight: float
    first: float
    """The sum of weights when L was made."""
    faded: float = 1.0
    vectors: np.ndarray | None = None
    """g, as rows."""

    def after(self, f: np.ndarray, z: np.ndarray, w: float, kept: float) -> Self | None:
        """With one row more, after the others have faded to a share of `kept`; None where it is time to solve anew."""
        faded, before = self.faded * kept, self.weight * kept
        weight = before + w
        count = 0 if self.vectors is None else len(self.vectors)
        if count >= MOST_ROWS or faded < 1 - MOVED or not abs(weight / self.first - 1) <= MOVED:
            return None
        x = (f - self.mean_a) * self.inverse
        b = solve_row(self.L, solve_row(self.L, x), transposed=True)
        vectors = np.empty((count + 1, len(x)))
        if self.vectors is not None:
            vectors[:count] = self.vectors
            b -= (self.vectors @ x) @ self.vectors
        c = before * w / weight / faded
        shrunk = c / (1.0 + c * float(x @ b))
        vectors[count] = np.sqrt(shrunk) * b
        error = z - self.mean_b - x @ self.coef
        share = w / weight
        return type(self)(
            self.L,
            self.inverse,
            self.mean_a + share * (f - self.mean_a),
            self.mean_b + share * (z - self.mean_b),
            self.coef + (shrunk * b)[:, None] * error,
            weight,
            self.first,
            faded,
            vectors,
        )

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients, intercept) on features as they come."""
        coef = self.coef * self.inverse[:, None]
        return coef, self.mean_b - self.mean_a @ coef
