r"""The output layer solved where the rows are: from what any two of them have in common, K, rows x rows.

With K centred, K_ij = f_i' f_j of features about their means, however many these are, the ridge solution is W = F' a
with

    a = (K + lambda I)^-1 (Z - mean Z),

and one Cholesky factor gives it and the exact leave-one-out error of every row, the mean of the targets learnt anew
without it: with C = (K + lambda I)^-1

    z_i - out_i = a_i / (C_ii - 1/(lambda n)).

Of rows that are copies of one another, and leave together, it is the solution of a small system, with the block of
C - 1/(lambda n) in place of its diagonal and all their a.

A constant c is added to K before it is factorised. The elements of a add up to zero, so it changes nothing but C, by
the same in every C_ij; without it K has nothing but rounding in the direction of ones, which grows with the rows and is
soon larger than lambda.
"""

from dataclasses import dataclass

import numpy as np

from .._arrays import (
    Array,
    cholesky,
    diagonal,
    dtype_name,
    matmul,
    namespace,
    plus_diagonal,
    solve_triangular,
    space_of,
    to_numpy,
)
from .scores import Scored

ALIKE = {"float32": 1e-3, "float64": 1e-8}
"""Rows whose features vary by less than this share of their squares are all the same, by dtype of K: a ridge relative
to less would be lost in its rounding."""

TIE = 1e-4
"""Errors of two ridges that differ by no more than this share are the same but for rounding: the larger is taken."""

SOLVED, INVERTED_AT_ONCE = 2048, 8192
"""Rows and columns of the inverse of a factor made at once."""

LEAST_LEFT = 1e-12
"""Added to the small systems of rows that leave, relative to their trace."""

LARGER, LEAST_RIDGE = (10.0, 100.0), 1e-3
"""Where rounding leaves no factor at any of the ridges, so many times the largest are tried, or this one."""

HELD_TWICE = 20_000
"""Up to so many rows NumPy keeps K beside its last factor."""


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


def solve_dual(K: Array, Z: np.ndarray, ridges: list[float], scale: np.ndarray, copies: int = 1) -> Dual:
    """The best of the ridges by squared leave-one-out error for targets Z (rows x outputs), tried from the smallest on
    as long as that helps. K may be written over.

    With `copies` K has so many rows, one after another, for each row of Z. They leave together, and what is said of the
    first of them counts.
    """
    space = space_of(K)
    xp, n = space.xp, int(K.shape[0])
    kind = dtype_name(K)
    nothing = ALIKE[kind] * float(xp.mean(diagonal(K)))
    K, mean = centred(K)
    own = max(float(xp.mean(diagonal(K))), nothing, np.finfo(float).tiny)
    K += own
    targets = space.asarray(np.repeat(np.asarray(Z, np.float64), copies, axis=0))
    middle = xp.mean(targets, axis=0)
    best: Dual | None = None
    largest = max(*ridges, LEAST_RIDGE)
    last = max(ridges) if isinstance(K, np.ndarray) and n > HELD_TWICE else largest * LARGER[-1]
    added = 0.0
    for ridge in [*sorted(ridges), *(times * largest for times in LARGER)]:
        if (ridge > max(ridges) and best is not None) or ridge > last:
            break
        if isinstance(K, np.ndarray):  # whose factor takes its place
            L = cholesky(plus_diagonal(K, ridge * own, overwrite=ridge == last))
        else:
            K, added = plus_diagonal(K, (ridge - added) * own, overwrite=True), ridge
            L = cholesky(K)
        if L is None:  # rounding: larger ridges come
            continue
        a = solve_triangular(L, solve_triangular(L, targets - middle), transposed=True)
        left = to_numpy(inverse_blocks(L, copies)) - 1.0 / (own * n * (ridge + n))  # c is own
        # of a row without which there are none nothing is said
        errors = _first_left_out(left, to_numpy(a)) if len(Z) > 1 else np.asarray(Z, np.float64)
        ones = np.ones(len(Z))
        found = Dual(a, middle - mean @ a, ridge, Scored(Z - errors, np.asarray(Z, np.float64), ones, ones, ones))
        if best is not None and found.loo.squared_error(scale) >= (1 + TIE) * best.loo.squared_error(scale):
            break
        best = found
    if best is None:
        raise ValueError(
            f"The rows are too much alike to be told apart in {kind}, at any of the ridges tried: give float64, a "
            "larger ridge, or rows that differ more."
        )
    return best


def inverse_blocks(L: Array, size: int) -> Array:
    """Blocks of (L L')^-1 along its diagonal, blocks x size x size: products of columns of L^-1, which takes the place
    of L."""
    xp, n, parts = namespace(L), int(L.shape[0]), []
    _invert(L)
    for start in range(0, n, step := SOLVED // size * size):
        one = [L[start:, start + k : min(start + step, n) : size] for k in range(size)]
        rows = [xp.stack([xp.sum(a * b, axis=0) for b in one], axis=1) for a in one]
        parts.append(xp.stack(rows, axis=1))
    return xp.concat(parts)


def _invert(L: Array) -> None:
    """L^-1 in the place of L: rows of blocks from above, each a product of L with what is inverted already."""
    xp, device = space_of(L)
    n = int(L.shape[0])
    for start in range(0, n, SOLVED):
        rows = slice(start, min(start + SOLVED, n))
        D = solve_triangular(L[rows, rows], xp.eye(rows.stop - start, dtype=L.dtype, device=device))
        for first in range(0, start, INVERTED_AT_ONCE):  # whose rows above the first are zero
            columns = slice(first, min(first + INVERTED_AT_ONCE, start))
            L[rows, columns] = -matmul(D, matmul(L[rows, first:start], L[first:start, columns]))
        L[rows, rows] = D


def _first_left_out(left: np.ndarray, a: np.ndarray) -> np.ndarray:
    """The errors of the first of each block of rows, without all of them."""
    size = left.shape[1]
    floor = LEAST_LEFT * np.trace(left, axis1=1, axis2=2)[:, None, None]
    return np.linalg.solve(left + floor * np.eye(size), a.reshape(len(left), size, -1))[:, 0, :]
