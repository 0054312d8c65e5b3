r"""The output layer solved where the rows are: from what any two of them have in common, K, rows x rows.

With K centred, K_ij = f_i' f_j of features about their means, however many these are, the ridge solution is W = F' a
with

    a = (K + lambda I)^-1 (Z - mean Z),

and one Cholesky factor gives it and the exact leave-one-out error of every row, the mean of the targets learnt anew
without it: with C = (K + lambda I)^-1

    z_i - out_i = lambda a_i / (lambda C_ii - 1/n).

A constant c is added to K before it is factorised. The elements of a add up to zero, so it changes nothing but C, by
the same in every C_ii; without it K has nothing but rounding in the direction of ones, which grows with the rows and is
soon larger than lambda.
"""

from dataclasses import dataclass

import numpy as np

from .._arrays import Array, cholesky, diagonal, namespace, plus_diagonal, solve_triangular, space_of, to_numpy
from .scores import Scored

ALIKE = 1e4
"""Rows whose features vary by less than so many roundings are all the same."""

SOLVED = 2048
"""Columns of the inverse of a factor made at once."""


@dataclass(frozen=True)
class Dual:
    """A solution: outputs of a row are k a + b, with k what it has in common with each row of training, not centred."""

    a: Array
    b: Array
    ridge: float
    """Relative to the mean of the diagonal of the centred K."""
    loo: Scored


def centred(K: Array) -> tuple[Array, Array]:
    """K of features about their means, in float64 and in the place of K if that is float64; and its column means."""
    xp = namespace(K)
    K = xp.astype(K, xp.float64, copy=False)
    mean = xp.mean(K, axis=0)
    K -= mean[None, :]
    K -= (mean - xp.mean(mean))[:, None]
    return K, mean


def solve_dual(K: Array, Z: np.ndarray, ridges: list[float], scale: np.ndarray) -> Dual:
    """The best of the ridges by squared leave-one-out error for targets Z (rows x outputs). K may be written over."""
    space = space_of(K)
    xp, n = space.xp, len(Z)
    nothing = ALIKE * float(xp.finfo(K.dtype).eps) * float(xp.mean(diagonal(K)))
    K, mean = centred(K)
    own = max(float(xp.mean(diagonal(K))), nothing, np.finfo(float).tiny)
    K += own
    targets = space.asarray(np.asarray(Z, np.float64))
    middle = xp.mean(targets, axis=0)
    best: Dual | None = None
    for ridge in ridges:
        L = cholesky(plus_diagonal(K, ridge * own, overwrite=ridge == ridges[-1]))
        if L is None:  # rounding: larger ridges come
            continue
        a = solve_triangular(L, solve_triangular(L, targets - middle), transposed=True)
        left = ridge * own * inverse_diagonal(L) - ridge / (n * (ridge + n))  # c is the mean of the diagonal
        errors = to_numpy(ridge * own * a / xp.clip(left, min=1e-12)[:, None])
        ones = np.ones(n)
        found = Dual(a, middle - mean @ a, ridge, Scored(Z - errors, np.asarray(Z, np.float64), ones, ones, ones))
        if best is None or found.loo.squared_error(scale) < best.loo.squared_error(scale):
            best = found
    if best is None:
        raise ValueError("What rows have in common is no positive definite matrix at any ridge: rescale the numbers.")
    return best


def inverse_diagonal(L: Array) -> Array:
    """The diagonal of (L L')^-1: squared lengths of the columns of L^-1, some at a time, never held whole."""
    space = space_of(L)
    xp, n, parts = space.xp, int(L.shape[0]), []
    for start in range(0, n, SOLVED):
        count = min(SOLVED, n - start)
        E = xp.zeros((n - start, count), dtype=L.dtype, device=space.device)
        E[:count, :] = xp.eye(count, dtype=L.dtype, device=space.device)
        Y = solve_triangular(L[start:, start:], E)  # above its diagonal L^-1 is zero
        parts.append(xp.sum(Y * Y, axis=0))
    return xp.concat(parts)
