r"""Ranks, pseudoinverse rows, ridge solves: every decomposition of the library.

Two forms of one object, the *spectrum* of a weighted data matrix X (rows are samples):

    primal   from G = X'wX, d x d, summed over blocks        -> `PrimalGram`
    dual     from K = (sqrt(w) X)(sqrt(w) X)', n x n, n < d  -> `DualGram`

Both answer the same questions (rank, trace, w'Gw, rows of the pseudoinverse), so callers do not care which ran;
`route` says which did. Systems are solved by factors, not by inverses.
"""

import functools
import math
from typing import Self

import numpy as np

from .._arrays import Array, namespace, space_of, to_numpy
from .._arrays.kernels import cholesky, diagonal, gram, matmul, plus_diagonal, solve_triangular


def rank_cutoff(size: int, *, gram: bool, product: str = "float64") -> float:
    """Singular values below this fraction of the largest count as zero: the library's one rank cut-off.

    From a Gram matrix a singular value s is only known through s**2, to eps relative to the largest: nothing
    below sqrt(size * eps) can be told from rounding. Read off the data itself it is size * eps. eps is that of the
    products: where something depends on the rank, Grams are formed with float64 products.
    """
    eps = float(np.finfo(product).eps)
    return math.sqrt(size * eps) if gram else size * eps


WELL_CONDITIONED = 1e-5
"""A singular value this far below the largest is still known to six digits from a Gram (its square to ten)."""

LEAST_SIZE = 1e-300
"""Added to the size of a solution that steps are compared with, which may be zero."""


class _Spectrum:
    """Right singular vectors V (d x r) and singular values s (r) of the weighted rows, largest first."""

    V: Array
    s: Array
    trace: float
    size: int
    weight: float
    """Total weight of the rows: quadratic(W) / weight is a mean square."""
    route: str
    """How the last question was answered."""
    spectral: str
    """The route of answers from V and s."""

    @property
    def rank(self) -> int:
        """Number of nonzero singular values, eq (17)."""
        return int(self.squares.shape[0])

    def truncated(self, width: int) -> Array:
        """The top `width` directions over their singular values: U_p S_p^-1 of eq (21), d x width.

        Each column's sign makes its largest entry positive, so that the result does not depend on the solver.
        """
        xp = namespace(self.V)
        V = self.V[:, :width]
        top = xp.max(V, axis=0) >= -xp.min(V, axis=0)
        return V * (xp.where(top, xp.ones_like(self.s[:width]), -xp.ones_like(self.s[:width])) / self.s[:width])

    def degrees_of_freedom(self, ridge: float) -> float:
        """Of the encoder (X'wX + eps I)^-1: the trace of the projector that the ridge has shrunk."""
        if math.isinf(ridge):
            return 0.0
        squares = self.squares
        return float(namespace(squares).sum(squares / (squares + ridge * self.trace / self.size)))

    @property
    def squares(self) -> Array:
        """Squared singular values above the rank cut-off."""
        return self.s**2

    def well_conditioned(self, width: int | None = None) -> bool:
        """Whether the spectrum down to direction `width` (default: all d) is known to six digits or more."""
        last = self.size if width is None else width
        return self.rank >= last and float(self.s[last - 1]) >= WELL_CONDITIONED * float(self.s[0])

    def pinv_rows(self, A: Array, ridge: float) -> Array:
        """(X'wX + ridge * mean(diag X'wX) I)^+ A', d x p: the columns of X^+ that belong to the rows A.

        ridge 0 is the pseudoinverse itself (20), infinity gives A' (plain prototypes).
        """
        if math.isinf(ridge):
            self.route = "prototypes"
            return A.mT + 0.0
        return self.solve(A.mT, ridge * self.trace / self.size)

    def solve(self, C: Array, ridge: float) -> Array:
        """(X'wX + ridge I)^+ C within the row space of X."""
        self.route = self.spectral
        return matmul(self.V, matmul(self.V.mT, C) / (self.s**2 + ridge)[:, None])


class PrimalGram(_Spectrum):
    """Questions answered from G = X'wX. The eigendecomposition is made only if one is asked that needs it."""

    spectral = "eigh"

    def __init__(self, G: Array, weight: float = 1.0, product: str = "float64") -> None:
        self.G, self.weight, self.product = G, weight, product
        self.size = int(G.shape[0])
        self.trace = float(namespace(G).sum(diagonal(G)))
        self.route = "cholesky"

    @functools.cached_property
    def _eigen(self) -> tuple[Array, Array]:
        known = vars(self).get("squares")  # two solvers may see a value at the cut-off on either side of it
        return kept_eigen(self.G, self.product, None if known is None else int(known.shape[0]))

    @property
    def V(self) -> Array:
        return self._eigen[0]

    @property
    def s(self) -> Array:
        return self._eigen[1]

    @functools.cached_property
    def squares(self) -> Array:
        if "_eigen" in vars(self):
            return self.s**2
        values = namespace(self.G).linalg.eigvalsh(self.G)  # several times cheaper than vectors
        return values[self.size - _count_kept(values, self.product) :]

    def quadratic(self, W: Array) -> Array:
        """w'Gw for each column w of W: the weighted sum of squares of X w, without touching X."""
        return namespace(W).sum(W * matmul(self.G, W), axis=0)

    def solve(self, C: Array, ridge: float) -> Array:
        L = ridge_factor(self.G, ridge, self.trace)
        if L is None:
            return super().solve(C, ridge)
        self.route = "cholesky"
        return cholesky_solve(L, C)


class DualGram(_Spectrum):
    """The same questions answered from K = XX' where rows are fewer than columns; X is held (n x d, n < d)."""

    spectral = route = "dual"

    def __init__(self, X: Array, weight: Array = None) -> None:
        xp = namespace(X)
        self.weight = float(X.shape[0]) if weight is None else float(xp.sum(weight))
        self.X = X = _weighted(X, weight)
        self.size = int(X.shape[1])
        self.trace = float(xp.sum(X**2))
        U, self.s = kept_eigen(gram(X.mT))
        self.V = matmul(X.mT, U / self.s)

    def quadratic(self, W: Array) -> Array:
        return namespace(W).sum(matmul(self.X, W) ** 2, axis=0)


class Triangle(_Spectrum):
    """The same questions answered from the triangle R of X = QR, without squaring the condition number.

    For the exact pseudoinverse (ridge 0) of ill-conditioned data: R is found block by block, so that no more than
    a block and d x d numbers are held.
    """

    spectral = route = "qr"

    def __init__(self, R: Array, weight: float = 1.0) -> None:
        xp = namespace(R)
        self.R, self.size, self.weight = R, int(R.shape[1]), weight
        self.trace = float(xp.sum(R**2))
        _, s, Vt = xp.linalg.svd(R, full_matrices=False)
        r = _count(s > rank_cutoff(self.size, gram=False) * float(s[0]))
        self.V, self.s = Vt[:r, :].mT, s[:r]

    def quadratic(self, W: Array) -> Array:
        return namespace(W).sum((self.R @ W) ** 2, axis=0)


Gram = PrimalGram | DualGram | Triangle
"""Whatever answers the questions about a layer's input."""


class TriangleSum:
    """The triangle R of rows seen so far, R'R = X'wX, by QR of one block after another (float64)."""

    def __init__(self) -> None:
        self.R: Array | None = None

    def add(self, X: Array, weight: Array = None) -> None:
        self._fold(_weighted(X, weight))

    def merge(self, other: Self) -> None:
        if other.R is not None:
            self._fold(other.R)

    def _fold(self, X: Array) -> None:
        xp = namespace(X)
        self.R = xp.linalg.qr(X if self.R is None else xp.concat([self.R, X], axis=0), mode="reduced")[1]


def pseudoinverse(X: Array) -> tuple[Array, int]:
    """(X^+, rank) of a matrix held whole, eq (20), with singular values cut where a Gram would lose them.

    The coarser cut-off keeps the condition number below 1e8, so that X X^+ is a projector to eight digits.
    """
    xp = namespace(X)
    U, s, Vt = xp.linalg.svd(X, full_matrices=False)
    r = _count(s > rank_cutoff(max(X.shape), gram=True) * s[0])
    return (Vt[:r, :].mT / s[:r]) @ U[:, :r].mT, r


def cholesky_solve(L: Array, B: Array) -> Array:
    """Solve L L' Y = B."""
    return solve_triangular(L, solve_triangular(L, B), transposed=True)


def ridge_factor(G: Array, ridge: float, trace: float) -> Array | None:
    """Lower factor of G + ridge I, or None where that is not positive definite, or only by the luck of rounding. The
    trace of G is known to whoever asks, and asking a GPU for a number makes it wait.

    A ridge below the cut-off does not lift a direction that is zero above the rounding of G: whether a factor exists
    and what it says about that direction is noise then.
    """
    size = int(G.shape[0])
    if ridge < rank_cutoff(size, gram=True) ** 2 * trace / size or ridge == 0:
        return None
    return cholesky(plus_diagonal(G, ridge))


def ridge_solve(G: Array, C: Array, ridge: float) -> tuple[Array, str]:
    """Minimise ||H W - X||^2 + ridge ||W||^2 from G = H'H and C = H'X: eqs (12), (27), (28).

    By Cholesky; where the ridge does not make G positive definite beyond rounding, by an eigendecomposition that drops
    the directions below the rank cut-off. The second value says which: "cholesky" or "eigh".
    """
    spectrum = PrimalGram(G)
    return spectrum.solve(C, ridge), spectrum.route


def relative_ridge_solve(G: Array, C: Array, ridge: float) -> tuple[Array, str]:
    """The same with a ridge in units of the mean of the diagonal of G."""
    spectrum = PrimalGram(G)
    return spectrum.solve(C, ridge * spectrum.trace / spectrum.size), spectrum.route


def lasso_solve(G: Array, C: Array, l1: Array, ridge: float, tolerance: float = 1e-4, most: int = 1000) -> Array:
    """Minimise ||H W - X||^2 / 2 + sum_j l1_j |W_j|_1 + ridge ||W||^2 / 2 from G = H'H and C = H'X alone; exact zeros.

    One penalty for each column of W. By the alternating direction method of multipliers: one Cholesky factor serves all
    columns and all steps, and each step is two triangular solves. There are `most` of them at most; one that changes
    the solution by less than `tolerance` times its size is the last.
    """
    xp, p = namespace(G), int(G.shape[0])
    largest = xp.max(xp.abs(C), axis=0, keepdims=True)
    unit = xp.where(largest > 0, largest, xp.ones_like(largest))
    C, l1 = C / unit, xp.minimum(l1, unit) / unit  # columns of one size, done together; from 1 on all is zero
    rho = float(xp.sum(diagonal(G))) / p
    Z, U = xp.zeros_like(C), xp.zeros_like(C)
    if rho <= 0:
        return Z
    L = cholesky(plus_diagonal(G, ridge + rho))
    for step in range(1, most + 1):
        if L is None:  # rounding: a little more of the ridge that the splitting adds anyway
            rho, U = 10 * rho, U / 10
            L = cholesky(plus_diagonal(G, ridge + rho))
            continue
        W = cholesky_solve(L, C + rho * (Z - U))
        before, V = Z, 1.6 * W - 0.6 * Z + U  # relaxed: the usual step of this method
        Z = xp.sign(V) * xp.maximum(xp.abs(V) - l1 / rho, xp.zeros_like(V))
        U = V - Z
        if step % 10:
            continue
        size = xp.sqrt(xp.max(xp.sum(W * W, axis=0))) + LEAST_SIZE
        primal = float(xp.max(xp.sqrt(xp.sum((W - Z) ** 2, axis=0))) / size)
        dual = float(xp.max(xp.sqrt(xp.sum((Z - before) ** 2, axis=0))) / size)
        if max(primal, dual) < tolerance:
            break
        if max(primal, dual) > 10 * min(primal, dual):  # the two should fall together
            factor = 4.0 if primal > dual else 0.25
            rho, U = factor * rho, U / factor
            L = cholesky(plus_diagonal(G, ridge + rho))
    return xp.where(l1 < 1.0, Z * unit, xp.zeros_like(Z))


def solve_on_support(G: Array, C: Array, Z: Array, ridge: float) -> Array:
    """Ridge solutions of every column that are zero where Z is: small systems, one a column, solved in NumPy."""
    space = space_of(G)
    g, c, support = to_numpy(G), to_numpy(C), to_numpy(Z) != 0
    W = np.zeros_like(c)
    for j in range(c.shape[1]):
        at = np.flatnonzero(support[:, j])
        if len(at):
            W[at, j : j + 1], _ = ridge_solve(g[np.ix_(at, at)], c[at, j : j + 1], ridge)
    return space.asarray(W)


def eigen_nonnegative(G: Array) -> tuple[Array, Array, float]:
    """Eigenvalues (ascending, those below the rank cut-off set to zero) and vectors of a Gram, and the cut-off."""
    xp = namespace(G)
    values, V = xp.linalg.eigh(G)
    floor = rank_cutoff(int(G.shape[0]), gram=True) ** 2 * max(float(values[-1]), 0.0)
    return xp.where(values > floor, values, xp.zeros_like(values)), V, floor


def _weighted(X: Array, weight: Array | None) -> Array:
    """sqrt(w) X in float64."""
    xp = namespace(X)
    X = xp.astype(X, xp.float64, copy=False)
    return X if weight is None else X * xp.sqrt(weight)[:, None]


def _count(mask: Array) -> int:
    xp = namespace(mask)
    return int(xp.sum(xp.astype(mask, xp.int64)))


def _count_kept(values: Array, product: str) -> int:
    """How many eigenvalues (ascending) of a Gram lie above the rank cut-off."""
    size = int(values.shape[0])
    largest = float(values[-1]) if size else 0.0
    return _count(values > rank_cutoff(size, gram=True, product=product) ** 2 * largest) if largest > 0 else 0


def kept_eigen(G: Array, product: str = "float64", count: int | None = None) -> tuple[Array, Array]:
    """Eigenvectors of a Gram, and roots of its eigenvalues, above the rank cut-off or so many, largest first."""
    xp, size = namespace(G), int(G.shape[0])
    values, V = xp.linalg.eigh(G)
    keep = slice(size - (_count_kept(values, product) if count is None else count), size)
    return xp.flip(V[:, keep], axis=1), xp.flip(xp.sqrt(values[keep]), axis=0)
