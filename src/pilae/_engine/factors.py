"""Factors of G + lambda I for many ridges lambda, from one Gram."""

import copy
from typing import Self

import numpy as np

from .._arrays import Array, diagonal, namespace, solve_triangular, space_of
from .linalg import eigen_nonnegative, ridge_factor

EIGEN_WIDTH = 400
"""Up to this width one eigendecomposition serves all ridges; above it one Cholesky factor each is cheaper."""


KEPT_NUMBERS = 40_000_000
"""Factors of several ridges are kept up to so many numbers: of very wide layers two would be too much to hold."""


class Factor:
    """(G + lambda I) factorised for one ridge: q = L^-1 f for rows, and the solution."""

    def __init__(self, c: Array, *, L: Array = None, V: Array = None, root: Array = None) -> None:
        self.c, self.L, self.V, self.root = c, L, V, root
        self._like: tuple[Array, Array] = L, c

    def like(self, F: Array) -> tuple[Array, Array]:
        """(L, c) in the dtype of F: rows that came in float32 are scored in float32."""
        if self._like[0].dtype != F.dtype:
            xp = namespace(F)
            self._like = xp.astype(self.L, F.dtype), xp.astype(self.c, F.dtype)
        return self._like

    def leading(self, p: int) -> "Factor":
        """The factor of the first p features."""
        return Factor(self.c[:p, :], L=self.L[:p, :p])

    def whiten(self, F: Array) -> Array:
        """Rows q_i = L^-1 f_i of a Cholesky factor."""
        return solve_triangular(self.like(F)[0], F.mT).mT

    def coefficients(self) -> Array:
        if self.V is None:
            return solve_triangular(self.L, self.c, transposed=True)
        return self.V @ (self.c / self.root[:, None])


class RidgeFactors:
    """Factors of G + ridge * W * I for any number of ridges.

    `route` records how the last one was found: "eigh" for narrow layers, "cholesky" for wide ones, and "eigh
    (not positive definite)" where the ridge does not lift G above its rounding, so that there is no Cholesky factor.
    """

    def __init__(self, G: Array, C: Array, weight: float, *, nested: bool = False) -> None:
        self.G, self.C, self.weight = G, C, weight
        self._eigen: tuple[Array, Array, Array, float] | None = None
        self.route = "cholesky"
        self._kept: dict[float, Factor] = {}
        """The last factors, as many as KEPT_NUMBERS allow: one at least."""
        self._trace: float | None = None
        self._indefinite = 0.0 if nested or G.shape[0] > EIGEN_WIDTH else np.inf
        """The largest ridge that is known to have no Cholesky factor; larger ones may have."""
        if G.shape[0] <= EIGEN_WIDTH and not nested:
            self._decompose("eigh")

    @classmethod
    def of_independent(cls, values: Array, C: Array, weight: float) -> Self:
        """Of features whose Gram is diagonal."""
        xp = namespace(values)
        made = cls(
            xp.eye(int(values.shape[0]), dtype=values.dtype, device=space_of(values).device), C, weight, nested=True
        )
        made._eigen, made._indefinite, made.route = (values, made.G, C, 0.0), np.inf, "eigh (rows x rows)"
        made.G = made.G * values
        return made

    def leading(self, p: int) -> Self:
        """Of the first p features alone: leading blocks, where the factors are nested."""
        if p == self.G.shape[0]:
            return self
        new = copy.copy(self)
        new.G, new.C, new._trace, new._eigen, new._indefinite = self.G[:p, :p], self.C[:p, :], None, None, 0.0
        new._kept = {ridge: factor.leading(p) for ridge, factor in self._kept.items()}
        return new

    def _decompose(self, route: str) -> None:
        values, V, floor = eigen_nonnegative(self.G)
        self._eigen, self.route = (values, V, V.mT @ self.C, floor), route

    def at(self, ridge: float) -> Factor:
        lam = ridge * self.weight
        if self._eigen is None or ridge > self._indefinite:
            if ridge in self._kept:
                self.route = "cholesky"
                return self._kept[ridge]
            while self._kept and (len(self._kept) + 1) * self.G.shape[0] ** 2 > KEPT_NUMBERS:
                del self._kept[next(iter(self._kept))]
            if self._trace is None:
                self._trace = float(namespace(self.G).sum(diagonal(self.G)))
            L = ridge_factor(self.G, lam, self._trace)
            if L is not None:
                self._kept[ridge], self.route = Factor(solve_triangular(L, self.C), L=L), "cholesky"
                return self._kept[ridge]
            self._indefinite = ridge
            if self._eigen is None:
                self._decompose("eigh (not positive definite)")
        return self._of_eigen([lam])[0]

    def at_each(self, ridges: list[float]) -> list[Factor]:
        """The same for several."""
        if self._eigen is None or max(ridges) > self._indefinite:
            return [self.at(ridge) for ridge in ridges]
        return self._of_eigen([ridge * self.weight for ridge in ridges])

    def _of_eigen(self, lams: list[float]) -> list[Factor]:
        assert self._eigen is not None
        values, V, rotated, floor = self._eigen
        xp, space = namespace(values), space_of(values)
        lifted = values[:, None] + space.asarray(np.array(lams), "float64")[None, :]
        # a ridge of zero, or one below rounding, leaves directions without variance alone instead of dividing by noise
        roots = xp.where(lifted > floor, xp.sqrt(lifted), xp.full_like(lifted, np.inf))
        c = rotated[:, None, :] / roots[:, :, None]
        return [Factor(c[:, k, :], V=V, root=roots[:, k]) for k in range(len(lams))]
