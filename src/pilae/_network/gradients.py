r"""A metric that the labels have shaped: average gradient outer products.

Of a fitted network with outputs f(x) the columns that matter are those its gradient moves along:

    M = E[J J'],    J the Jacobian of the outputs, columns x outputs.

For neurons of a direction, f(x) = V' s(W'x + b) + U'x, it is J = W diag(s') V + U, so

    M = W ((V V') o E[s' s'^T]) W' + W diag(E s') V U' + (the same, transposed) + U U'

with o the elementwise product: E[s' s'^T] is one more Gram of a hidden layer. For neurons of a distance under R R',
with t = x R and anchors t_i, the gradient in t is -sum_i v_i g_i (t - t_i), g = k / (L r) (Laplace; nothing where r is
0) or 2 k / L^2 (Gauss), and J is R times it.

Both are sums over rows: they add, merge, and may be taken of a part of the rows. The next network measures by
S = (M / its largest eigenvalue)^p plus a trace of I in place of (X'X + eps I)^-1.

Labels come in here, so leave-one-out of what is built on S means nothing on rows that shaped it: see `Halves`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Protocol, Self

import numpy as np

from .._arrays import Array, Space, matmul, namespace, space_of
from .._data.keys import row_keys, row_signs
from .._data.rows import Block, Rows
from .._engine.activations import SLOPES
from .._engine.moments import Moments
from .neurons import Hidden, HiddenLayer
from .output import ridge_factors, solution
from .radial import Radial, squared_distances, under

MOST_OUTPUTS = 4
"""Of more outputs so many combinations with random signs are followed, others for each row: the mean of their outer
products is that of all outputs, and the signs come from the row itself, so that sums do not depend on blocks."""

WORK = 2e10
"""Operations that an M of distances may take: of more, fewer rows."""

FEWEST_ROWS = 500


def learn(rows: Rows, hidden: HiddenLayer, ridge: float, keys: np.ndarray, *, full: bool) -> Array:
    """M, or its diagonal, of this hidden layer fitted to these rows alone, whose X is what the neurons see; `keys` are
    those of the rows as they came."""
    moments = rows.total(partial(Moments, rows.space), partial(_add, hidden), "metric: output layer", hidden.columns)
    scaling, factors = ridge_factors(moments, hidden)
    coef, _ = solution(factors, ridge, scaling, moments, "float64")
    xp = rows.space.xp
    spread = xp.sqrt(moments.variance_b())  # targets in different units, rare classes: each output counts the same
    V = coef / xp.where(spread > 0, spread, xp.ones_like(spread))
    U, V = V[: hidden.links, :], V[hidden.links :, :]
    if isinstance(hidden, Radial):
        work = 2.0 * hidden.width * int(hidden.anchors.shape[1]) * min(int(V.shape[1]), MOST_OUTPUTS)
        rows = rows.first(max(FEWEST_ROWS, int(WORK / work)))
        make: Callable[[], Gradients] = partial(RadialGradients, hidden, V, rows.space, full=full)
    else:
        make = partial(DirectedGradients, hidden, V, rows.space, full=full)
    return rows.total(make, partial(_add_gradients, keys), "metric", hidden.columns).outer(U)


def _add(hidden: HiddenLayer, moments: Moments, block: Block) -> None:
    moments.add(hidden(block.X), block.Z, block.w, scratch=True)


class Gradients(Protocol):
    """E[J J'] of the rows so far, or its diagonal."""

    def add(self, X: Array, weight: Array = None, keys: np.ndarray | None = None) -> None: ...

    def merge(self, other: Self) -> None: ...

    def outer(self, U: Array) -> Array:
        """M, or its diagonal; U are the links past the neurons."""


def _add_gradients(keys: np.ndarray, total: Gradients, block: Block) -> None:
    total.add(block.X, block.w, keys[block.start : block.start + int(block.X.shape[0])])


class DirectedGradients(Gradients):
    """E[J J'] of neurons of a direction: moments of their slopes."""

    def __init__(self, hidden: Hidden, V: Array, space: Space, *, full: bool = True) -> None:
        self.hidden, self.V, self.full = hidden, V, full
        self.slopes = Moments(space, shifted=False)

    def add(self, X: Array, weight: Array = None, keys: np.ndarray | None = None) -> None:
        hidden = self.hidden
        before = matmul(X, hidden.weights) + hidden.bias
        self.slopes.add(SLOPES[hidden.activation](before), None, weight, scratch=True)

    def merge(self, other: Self) -> None:
        self.slopes.merge(other.slopes)

    def outer(self, U: Array) -> Array:
        xp, V, slopes = namespace(self.V), self.V, self.slopes
        W = xp.astype(self.hidden.weights, xp.float64, copy=False)
        B = matmul(W, matmul(V, V.mT) * (slopes.gram() / slopes.weight))
        mean = matmul(W, slopes.mean_a[:, None] * V) if U.shape[0] else None
        return with_links(matmul(B, W.mT) if self.full else xp.sum(B * W, axis=1), mean, U)


class RadialGradients(Gradients):
    """E[J J'] of neurons of a distance, summed row by row in the coordinates of the distance. Its diagonal alone is for
    distances whose coordinates are the columns."""

    def __init__(self, hidden: Radial, V: Array, space: Space, *, full: bool = True) -> None:
        self.hidden, self.V, self.full, self.weight = hidden, V, full, 0.0
        xp, device = space
        k, m = int(hidden.anchors.shape[1]), int(V.shape[1])
        self.outer_products = xp.zeros((k, k) if full else (k,), dtype=xp.float64, device=device)
        self.gradients = xp.zeros((k, m), dtype=xp.float64, device=device)

    def add(self, X: Array, weight: Array = None, keys: np.ndarray | None = None) -> None:
        hidden, xp = self.hidden, namespace(X)
        T = under(xp.astype(X, xp.float64, copy=False), hidden.root)
        g = hidden.pulls(squared_distances(T, hidden.anchors))
        n = int(X.shape[0])
        w = xp.ones_like(T[:, 0]) if weight is None else xp.astype(weight, xp.float64, copy=False)
        m = int(self.V.shape[1])
        for k in range(min(m, MOST_OUTPUTS)):
            if m <= MOST_OUTPUTS:
                signs, pull = None, g * self.V[:, k]
            else:
                drawn = row_signs(row_keys(X, 0) if keys is None else keys, m, k)
                signs = space_of(X).asarray(drawn, "float64") / MOST_OUTPUTS**0.5
                pull = g * matmul(signs, self.V.mT)
            J = matmul(pull, hidden.anchors) - xp.sum(pull, axis=1, keepdims=True) * T
            weighted = w[:, None] * J
            self.outer_products += matmul(weighted.mT, J) if self.full else xp.sum(weighted * J, axis=0)
            if signs is None:
                self.gradients[:, k] = self.gradients[:, k] + xp.sum(weighted, axis=0)
            else:
                self.gradients = self.gradients + matmul(weighted.mT, signs)
        self.weight += float(n) if weight is None else float(xp.sum(w))

    def merge(self, other: Self) -> None:
        self.outer_products = self.outer_products + other.outer_products
        self.gradients = self.gradients + other.gradients
        self.weight += other.weight

    def outer(self, U: Array) -> Array:
        root, N = self.hidden.root, self.outer_products / self.weight
        mean = _back(self.gradients / self.weight, root) if U.shape[0] else None
        if self.full:
            return with_links(_back(_back(N, root).mT, root), mean, U)
        assert root is None or root.ndim == 1
        return with_links(N if root is None else root**2 * N, mean, U)


def with_links(M: Array, mean: Array | None, U: Array) -> Array:
    """M of neurons, or its diagonal, and of links U past them; `mean` is that of the neurons' J."""
    if mean is None:
        return M
    xp = namespace(M)
    if M.ndim == 1:
        return M + 2.0 * xp.sum(mean * U, axis=1) + xp.sum(U**2, axis=1)
    cross = matmul(mean, U.mT)
    return M + cross + cross.mT + matmul(U, U.mT)


def _back(N: Array, root: Array | None) -> Array:
    """R N: from the coordinates of the distance to the columns."""
    if root is None:
        return N
    return root[:, None] * N if root.ndim == 1 else matmul(root, N)
