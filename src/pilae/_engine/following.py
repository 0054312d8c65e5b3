r"""A ridge solution that follows its rows one by one, in O(p^2) each.

With centred sums G, C of weight W, L L' = A = G + lambda I and coefficients V = A^-1 C, a row x of weight w (centred by
the mean before it, divided by the scales) changes them to

    G + d x x',   C + d x z',   d = W w / (W + w),     V + b d (z - x V)' / (1 + d x.b),   b = A^-1 x

and where all weights fade by f first, A becomes f A: V stays, lambda fades with the rest. What the rows since the last
whole solve have changed is kept as the vectors g of P = f A^-1 = (L L')^-1 - sum g g'.

Scales are those of the last whole solve, and so is lambda where nothing fades: that is made again when the sum of
weights has moved by 1%, so that lambda is never further than that from `ridge` times it. Where rows fade the sum of
weights W may stay, and lambda has faded to f lambda when (1 + u) f lambda = ridge W is wanted. With Q = P V beside,

    V - lambda u / (1 + u) Q

is the solution with the lambda that is wanted, but for a factor of 1 + u^2 / (1 + u) (t - t^2) in the eigendirection of
A whose eigenvalue is f lambda / t: exact where the ridge is nothing (t = 0) or all there is (t = 1). It is all solved
anew when a fifth of the lambda that is wanted is missing, so that no direction is off by more than 1.25%.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from .._arrays.kernels import solve_row, solve_triangular

MOST_ROWS = 128
"""Rows followed before the factor is made again: each makes the next a little slower."""

MOVED = 0.01
"""Share by which the sum of weights may move."""

FADED = 0.8
"""Of the lambda that is wanted, what may be left of it where rows fade."""

ABSURD = 1e8
"""A row that has more leverage than this leaves the others no digit."""


@dataclass(frozen=True, eq=False)
class Following:
    """Where it stands."""

    L: np.ndarray
    inverse: np.ndarray
    """1 / scale of each feature."""
    mean_a: np.ndarray
    mean_b: np.ndarray
    coef: np.ndarray
    """V, on standardised features."""
    weight: float
    first: float
    """The sum of weights when L was made."""
    ridge: float
    faded: float = 1.0
    vectors: np.ndarray | None = None
    """g, as rows."""
    solved: np.ndarray | None = None
    """Q, where rows fade."""

    def after(self, f: np.ndarray, z: np.ndarray, w: float, kept: float) -> Self | None:
        """With one row more, after the others have faded to a share of `kept`; None where it is time to solve anew."""
        faded, before = self.faded * kept, self.weight * kept
        weight = before + w
        count = 0 if self.vectors is None else len(self.vectors)
        Q = self.solved
        if faded < 1 and Q is None:
            if count:  # none faded when these came
                return None
            Q = solve_triangular(self.L, solve_triangular(self.L, self.coef), transposed=True)
        if count >= MOST_ROWS or not faded * self.first >= (1 - MOVED if Q is None else FADED) * weight:
            return None
        x = (f - self.mean_a) * self.inverse
        b = self._applied(x)
        c, leverage = before * w / weight / faded, float(x @ b)
        if not c * leverage < ABSURD:
            return None
        shrunk = c / (1.0 + c * leverage)
        vectors = np.empty((count + 1, len(x)))
        if self.vectors is not None:
            vectors[:count] = self.vectors
        vectors[count] = np.sqrt(shrunk) * b
        error, step = z - self.mean_b - x @ self.coef, shrunk * b
        if Q is not None:
            both = b @ self.coef + (step @ b) * error
            Q = Q + np.stack([shrunk * self._applied(b), -step], axis=1) @ np.stack([error, both])
        share = w / weight
        return replace(
            self,
            mean_a=self.mean_a + share * (f - self.mean_a),
            mean_b=self.mean_b + share * (z - self.mean_b),
            coef=self.coef + step[:, None] * error,
            weight=weight,
            faded=faded,
            vectors=vectors,
            solved=Q,
        )

    def _applied(self, x: np.ndarray) -> np.ndarray:
        """P x."""
        b = solve_row(self.L, solve_row(self.L, x), transposed=True)
        return b if self.vectors is None else b - (self.vectors @ x) @ self.vectors

    def solution(self) -> tuple[np.ndarray, np.ndarray]:
        """(coefficients, intercept) on features as they come."""
        coef = self.coef
        if self.solved is not None:  # lambda u / (1 + u), written without u
            coef = coef - self.ridge * self.first * (1 - self.faded * self.first / self.weight) * self.solved
        coef = coef * self.inverse[:, None]
        return coef, self.mean_b - self.mean_a @ coef
