r"""The output layer where columns are more than rows: solved in the space that the rows span.

With A = sqrt(w) F of standardised features, A A' = U s^2 U' is rows x rows, and V = A' U / s a basis of all that a
ridge solution can be: it is V b, with b that of the features R = F V, which are as many as rows, independent and of the
sums R' w R = s^2. Their leave-one-out results are those of F. V itself, columns x rows, is never made.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from .._arrays import Array, gram, matmul
from .._data.rows import Rows
from .._engine.factors import RidgeFactors
from .._engine.linalg import kept_eigen
from .._engine.loo import Batches
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .fit_output import HeadInput, OutputFit, scored_batches
from .output import scaling_of

CHUNK = 2**23
"""Numbers of features that are standardised at a time."""

KEPT_COLUMNS = 10_000
"""Sums of more columns are not kept: they are square."""


class WideFit(OutputFit):
    """One output layer without hidden neurons on more columns than rows."""

    def _turn(self) -> None:
        head_input = self.input
        rows, scored = head_input.rows, head_input.scored
        self.inner = scaling_of(self.moments, None)
        whole, space = rows.whole(), rows.space  # less than a square of columns, wherever the rows come from
        self.F, self.Z, self.root = head_input.cache.network(whole.X), whole.Z, None
        if whole.w is not None:
            self.root = space.xp.sqrt(whole.w)[:, None]
        del whole
        n, asked = int(self.F.shape[0]), _features(head_input, scored)
        self.step = max(64, CHUNK // max(n, scored.n))  # the same columns of both, side by side
        K = space.xp.zeros((n, n), dtype=space.xp.float64, device=space.device)
        between = space.xp.zeros((scored.n, n), dtype=space.xp.float64, device=space.device)
        for a, b in zip(self._parts(self.F, self.root), self._parts(asked), strict=True):
            K += gram(a.mT)
            between += matmul(b, a.mT)
        U, self.s = kept_eigen(K)
        self.back = U / self.s
        rotated = replace(scored, X=matmul(between, self.back), gauge=None, intake=None, dtype="float64")
        self.input = replace(head_input, scored=rotated)

    def _summed(self) -> Moments:
        return self._sums(partial(Moments, self.input.rows.space, full=False))

    def _factors(self) -> tuple[Scaling, RidgeFactors]:
        xp = self.input.rows.space.xp
        Z = xp.astype(self.Z, xp.float64, copy=False) - self.moments.mean_b
        C = self.s[:, None] ** 2 * matmul(self.back.mT, Z if self.root is None else Z * self.root)
        nothing = xp.zeros_like(self.s)
        return Scaling(nothing, nothing + 1.0), RidgeFactors.of_independent(self.s**2, C, self.moments.weight)

    def _batches(self, scored: Rows, scaling: Scaling, chooser: np.ndarray, *, once: bool = False) -> Batches:
        return scored_batches(scored, lambda X: X, scaling, chooser, once=once)

    def _solution(self, factors: RidgeFactors, ridge: float, scaling: Scaling) -> tuple[Array, Array]:
        rows, xp = self.input.rows, self.input.rows.space.xp
        alpha = matmul(self.back, factors.at(ridge).coefficients())
        coef = xp.concat([matmul(a.mT, alpha) for a in self._parts(self.F, self.root)], axis=0)
        coef = coef * self.inner.inverse[:, None]
        asarray = rows.space.asarray
        return asarray(coef, rows.dtype), asarray(self.moments.mean_b - self.moments.mean_a @ coef, rows.dtype)

    def _kept_sums(self) -> Moments | None:
        if not self.spec.keep or self.input.columns > KEPT_COLUMNS:
            return None
        return super()._summed()

    def _parts(self, F: Array, root: Array = None) -> Iterator[Array]:
        """Standardised columns of F, some at a time, in float64; times the roots of the weights."""
        xp, columns = self.input.rows.space.xp, int(F.shape[1])
        for part in (slice(start, min(start + self.step, columns)) for start in range(0, columns, self.step)):
            a = xp.astype(F[:, part], xp.float64, copy=False)
            a = (a - self.inner.mean[part]) * self.inner.inverse[part]
            yield a if root is None else a * root


def _features(head_input: HeadInput, rows: Rows) -> Array:
    """What the output layer sees of all rows."""
    parts = [head_input.cache.network(block.X) for block in rows.blocks()]
    return parts[0] if len(parts) == 1 else rows.space.xp.concat(parts, axis=0)
