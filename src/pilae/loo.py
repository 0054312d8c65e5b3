r"""Leave-one-out of the output layer, exactly and without refitting.

With weights w, W = sum(w), standardised features F and targets Z centred by their weighted means,

    G = F'wF,  C = F'wZ,  L L' = G + lambda I,  q_i = L^-1 f_i,  c = L^-1 C,

the fit of row i is zbar + q_i . c, the leverage of one unit of weight is h_i = |q_i|^2 + 1/W, and with u_i units
of row i taken out the residual becomes

    (z_i - zbar - q_i . c) / (1 - u_i h_i).

Anchors, feature scales and lambda are held; means are re-estimated. u_i is one unit of weight where a row has at
least that (a weight of 3 means three equal rows, and one of them is left out) and the whole row where it has less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from ._arrays import Array, cholesky, namespace, plus_diagonal, solve_triangular, to_numpy
from .linalg import eigen_nonnegative

EIGEN_WIDTH = 400
"""Up to this width one eigendecomposition serves all ridges; above it one Cholesky factor each is cheaper."""


TIE = 0.01
"""Two candidates are a tie within this fraction of the paired standard error of their difference."""

LEAST_LEFT = 1e-7
"""Below this 1 - leverage a row alone holds some direction of the features: the others say nothing about it."""


class Factor:
    """(G + lambda I) factorised for one ridge: q = L^-1 f for rows, and the solution."""

    def __init__(self, C: Array, *, L: Array = None, V: Array = None, root: Array = None) -> None:
        self.L, self.V, self.root = L, V, root
        self.c = solve_triangular(L, C) if V is None else (V.mT @ C) / root[:, None]

    def whiten(self, F: Array) -> Array:
        """Rows q_i; F must have been through `RidgeFactors.rotate`."""
        return solve_triangular(self.L, F.mT).mT if self.V is None else F / self.root

    def coefficients(self) -> Array:
        if self.V is None:
            return solve_triangular(self.L, self.c, transposed=True)
        return self.V @ (self.c / self.root[:, None])


class RidgeFactors:
    """Factors of G + ridge * W * I for any number of ridges.

    `route` records how the last one was found: "eigh" for narrow layers, "cholesky" for wide ones, and "eigh
    (not positive definite)" where rounding made a Cholesky factor impossible.
    """

    def __init__(self, G: Array, C: Array, weight: float) -> None:
        self.G, self.C, self.weight = G, C, weight
        self._eigen: tuple[Array, Array] | None = None
        self.route = "cholesky"
        if G.shape[0] <= EIGEN_WIDTH:
            self._decompose("eigh")

    def _decompose(self, route: str) -> None:
        self._eigen, self.route = eigen_nonnegative(self.G), route

    def rotate(self, F: Array) -> Array:
        """What is common to all ridges of the map from features to q."""
        return F if self._eigen is None else F @ self._eigen[1]

    def at(self, ridge: float) -> Factor:
        lam = ridge * self.weight
        if self._eigen is None:
            L = cholesky(plus_diagonal(self.G, lam))
            if L is not None:
                return Factor(self.C, L=L)
            self._decompose("eigh (not positive definite)")
        assert self._eigen is not None
        xp = namespace(self.G)
        values, V = self._eigen
        root = xp.sqrt(values + lam)
        # a ridge of zero leaves directions without variance alone instead of dividing by zero
        root = xp.where(root > 0, root, xp.full_like(root, np.inf))
        return Factor(self.C, V=V, root=root)


class Scored(NamedTuple):
    """Leave-one-out results on the scored rows, in NumPy: outputs, targets, weights, units left out."""

    outputs: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    unit: np.ndarray

    def row_errors(self, scale: np.ndarray) -> np.ndarray:
        """sum_k ((z - out)_k / scale_k)^2 of each row."""
        return np.sum(((self.targets - self.outputs) / scale) ** 2, axis=1)

    def squared_error(self, scale: np.ndarray) -> float:
        return float(np.average(self.row_errors(scale), weights=self.weight))

    def beats(self, other: Scored, scale: np.ndarray) -> bool:
        """Lower error than `other` by more than 1% of the paired standard error; closer than that is a tie."""
        gain = other.row_errors(scale) - self.row_errors(scale)
        mean = float(np.average(gain, weights=self.weight))
        variance = float(np.average((gain - mean) ** 2, weights=self.weight))
        # a row of weight 3 is three rows, a row of weight 0.3 is one
        count = float(np.sum(self.weight / np.where(self.unit > 0, self.unit, 1.0)))
        return mean > TIE * (variance / max(count, 1.0)) ** 0.5


Batches = Callable[[], Iterator[tuple[Array, Array, np.ndarray, np.ndarray]]]
"""Yields (standardised features, targets, weights, units to leave out) of the scored rows, block by block."""


def leave_one_out(factors: RidgeFactors, ridges: list[float], zbar: Array, batches: Batches) -> list[Scored]:
    """Leave-one-out outputs of the scored rows for each ridge, in one go over them."""
    chosen = [factors.at(r) for r in ridges]
    outputs: list[list[np.ndarray]] = [[] for _ in ridges]
    mean = to_numpy(zbar)
    targets, weights, units = [], [], []
    for F, Z, w, unit in batches():
        R = factors.rotate(F)
        z = to_numpy(Z)
        for out, factor in zip(outputs, chosen, strict=True):
            q = factor.whiten(R)
            fit = to_numpy(zbar + q @ factor.c)
            h = to_numpy(namespace(q).sum(q**2, axis=1)) + 1.0 / factors.weight
            left = (1.0 - unit * h)[:, None]
            known = left > LEAST_LEFT
            out.append(np.where(known, z - (z - fit) / np.where(known, left, 1.0), mean))
        targets.append(z)
        weights.append(w)
        units.append(unit)
    rest = np.concatenate(targets), np.concatenate(weights), np.concatenate(units)
    return [Scored(np.concatenate(out), *rest) for out in outputs]


def ridge_grid(smallest: float) -> list[float]:
    """Half decades from `smallest` to 10, per unit of weight on standardised features."""
    low = round(2 * np.log10(smallest))
    return [float(10.0 ** (k / 2)) for k in range(low, 3)]


def best_ridge(
    factors: RidgeFactors, zbar: Array, scale: np.ndarray, batches: Batches, smallest: float
) -> tuple[float, Scored, dict[float, float]]:
    """The ridge of lowest squared leave-one-out error: (ridge, its scores, error of every ridge tried).

    Of ridges that tie the largest is taken. Narrow layers evaluate the whole grid; wide ones, where each ridge
    costs a factorisation, walk in decades from 1e-4, up as long as it does not hurt and down as long as it helps.
    """
    tried: dict[float, Scored] = {}

    def scores(ridge: float) -> Scored:
        if ridge not in tried:
            [tried[ridge]] = leave_one_out(factors, [ridge], zbar, batches)
        return tried[ridge]

    if factors.route.startswith("eigh"):
        grid = ridge_grid(smallest)
        tried = dict(zip(grid, leave_one_out(factors, grid, zbar, batches), strict=True))
        best = min(grid, key=lambda r: tried[r].squared_error(scale))
        chosen = max(r for r in grid if not tried[best].beats(tried[r], scale))
    else:
        grid = ridge_grid(smallest)[::2]
        k = min(range(len(grid)), key=lambda i: abs(np.log10(grid[i]) + 4))
        while k + 1 < len(grid) and not scores(grid[k]).beats(scores(grid[k + 1]), scale):
            k += 1
        while k > 0 and scores(grid[k - 1]).beats(scores(grid[k]), scale):
            k -= 1
        chosen = grid[k]
    return chosen, scores(chosen), {r: tried[r].squared_error(scale) for r in sorted(tried)}
