"""Operations that the array API standard lacks, or that a library has a faster way for: one function each."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import pairwise

import array_api_compat as compat
import numpy as np
import scipy.special

from .space import Array, is_foreign, namespace, space_of, to_numpy
from .threads import PARTS, in_parts, threads

SOLVED, INVERTED = 256, 64
"""Triangles are solved by blocks of so many columns, and within these by inverses of blocks of so many."""

GRAM_COLUMNS = 256
"""Columns of a symmetric product made at once where the library has no symmetric product."""

SQUARED_ROWS = 128
"""Rows whose squares are added in their own dtype before they join a float64 sum."""

CACHED_NUMBERS = 2**16
"""Numbers worked on at once where several steps follow one another: they stay in the processor's cache."""


def plus_diagonal(G: Array, value: float) -> Array:
    """G + value * I as a new array."""
    if isinstance(G, np.ndarray):
        A = G.copy()
        A.flat[:: A.shape[0] + 1] += value
        return A
    if compat.is_torch_array(G):
        T = G.clone()
        T.diagonal().add_(value)
        return T
    xp, device = space_of(G)
    return G + value * xp.eye(G.shape[0], dtype=G.dtype, device=device)


def diagonal(G: Array) -> Array:
    """A copy of the diagonal of G."""
    return namespace(G).linalg.diagonal(G) + 0.0


def cholesky(A: Array) -> Array | None:
    """Lower factor L of A = L L', or None when A is not positive definite. A may be overwritten."""
    if isinstance(A, np.ndarray):
        try:
            return np.linalg.cholesky(A) if A.shape[0] <= 2 * SOLVED else _factorise(A)
        except np.linalg.LinAlgError:
            return None
    xp = namespace(A)
    if compat.is_torch_array(A):
        L, info = xp.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    try:
        L = xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    return L if bool(xp.all(xp.isfinite(diagonal(L)))) else None


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Solve L Y = B, or L' Y = B, for a lower triangular L."""
    if isinstance(L, np.ndarray):
        return _substitute(L, B, transposed)
    xp = namespace(L)
    if compat.is_torch_array(L):
        A = L.mT if transposed else L
        return xp.linalg.solve_triangular(A, B, upper=transposed)
    if compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(L, B, lower=True, trans=int(transposed), check_finite=False)
    return xp.linalg.solve(L.mT if transposed else L, B)


def _factorise(A: np.ndarray) -> np.ndarray:
    """The lower factor in the place of A, by blocks of columns: products, and rows that are solved in parts.

    SciPy's would bring a second BLAS, and with it a second pool of threads.
    """
    p = A.shape[0]
    for a in range(0, p, SOLVED):
        b, left = min(a + SOLVED, p), A[a : a + SOLVED, :a]
        A[a:b, a:b] = np.linalg.cholesky(A[a:b, a:b] - left @ left.T)
        A[a:b, b:] = 0.0
        inverses = _inverses(A, a, b)

        def below(part: slice, a: int = a, b: int = b, inverses: list = inverses) -> None:
            rows = A[b + part.start : b + part.stop]
            rows[:, a:b] -= rows[:, :a] @ A[a:b, :a].T
            _solve_block(A, rows, a, b, inverses, False)

        in_parts(below, p - b, 2.0 * (p - b) * (b - a) * b)
    return A


def _substitute(L: np.ndarray, B: np.ndarray, transposed: bool) -> np.ndarray:
    """Substitution by blocks of columns: matrix products, and small inverses within the blocks."""
    p = L.shape[0]
    rows = np.array(B.T, order="C")  # y_i as rows, overwritten block by block
    starts = range(0, p, SOLVED)
    inverses = [_inverses(L, a, min(a + SOLVED, p)) for a in starts]

    def solve(part: slice) -> None:
        mine = rows[part]
        for k in reversed(range(len(starts))) if transposed else range(len(starts)):
            a, b = starts[k], min(starts[k] + SOLVED, p)
            if transposed and b < p:
                mine[:, a:b] -= mine[:, b:] @ L[b:, a:b]
            elif not transposed and a:
                mine[:, a:b] -= mine[:, :a] @ L[a:b, :a].T
            _solve_block(L, mine, a, b, inverses[k], transposed)

    in_parts(solve, len(rows), 1.0 * p * p * len(rows))
    return rows.T


def _inverses(L: np.ndarray, a: int, b: int) -> list[np.ndarray]:
    """Of the diagonal blocks of L from column a to b."""
    return [np.linalg.inv(L[k : min(k + INVERTED, b), k : min(k + INVERTED, b)]) for k in range(a, b, INVERTED)]


def _solve_block(L: np.ndarray, rows: np.ndarray, a: int, b: int, inverses: list[np.ndarray], transposed: bool) -> None:
    """Solve the columns a to b of the rows, from which the columns solved before have been taken."""
    starts = range(a, b, INVERTED)
    for k in reversed(range(len(starts))) if transposed else range(len(starts)):
        part = slice(starts[k], min(starts[k] + INVERTED, b))
        if transposed:
            rows[:, part] = (rows[:, part] - rows[:, part.stop : b] @ L[part.stop : b, part]) @ inverses[k]
        else:
            rows[:, part] = (rows[:, part] - rows[:, a : part.start] @ L[part, a : part.start].T) @ inverses[k].T


def pieces(x: np.ndarray) -> Iterator[slice]:
    """Slices of the rows of x small enough to stay in the processor's cache."""
    step = max(1, CACHED_NUMBERS // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def matmul(a: Array, b: Array) -> Array:
    """a @ b of matrices; a large one in NumPy in several threads."""
    if not isinstance(a, np.ndarray):
        return a @ b
    n, work = a.shape[0], 2.0 * a.shape[0] * a.shape[1] * b.shape[1]
    if threads(work) < 2:
        return a @ b
    out = np.empty((n, b.shape[1]), np.result_type(a, b))
    in_parts(lambda part: np.matmul(a[part], b, out=out[part]), n, work)
    return out


def gram(a: Array) -> Array:
    """a'a. NumPy's product knows that it is symmetric; elsewhere, and in several threads, it is made of column blocks,
    each as far as the diagonal, and mirrored: little more than half the work."""
    n, p = (int(size) for size in a.shape)
    count = threads(1.0 * n * p * p) if isinstance(a, np.ndarray) else 1
    if p < 2 * GRAM_COLUMNS and count > 1:  # too narrow for that
        sums: dict[int, np.ndarray] = {}
        in_parts(lambda part: sums.update({part.start: a[part].T @ a[part]}), n, 1.0 * n * p * p)
        return functools.reduce(np.add, [sums[start] for start in sorted(sums)])
    if p < 2 * GRAM_COLUMNS or (isinstance(a, np.ndarray) and count < 2):
        return a.mT @ a
    xp, device = space_of(a)
    G = xp.empty((p, p), dtype=a.dtype, device=device)

    def block(start: int, stop: int) -> None:
        part = slice(start, stop)
        G[part, part] = a[:, part].mT @ a[:, part]
        G[part, : part.start] = a[:, part].mT @ a[:, : part.start]
        G[: part.start, part] = G[part, : part.start].mT

    if count < 2:
        for start in range(0, p, GRAM_COLUMNS):
            block(start, min(start + GRAM_COLUMNS, p))
        return G
    cuts = PARTS * count
    edges = [round(p * (k / cuts) ** 0.5) for k in range(cuts + 1)]  # of one area each

    def blocks(part: slice) -> None:
        for start, stop in pairwise(edges[part.start : part.stop + 1]):
            block(start, stop)

    in_parts(blocks, cuts, 1.0 * n * p * p)
    return G


def column_sums(a: Array) -> Array:
    """Sums of the columns, as a product with ones: several times faster than a sum along the rows.

    In float32 only NumPy's product adds carefully enough.
    """
    xp, device = space_of(a)
    if isinstance(a, np.ndarray) or a.dtype == xp.float64:
        return xp.ones(a.shape[0], dtype=a.dtype, device=device) @ a
    return xp.sum(a, axis=0, dtype=xp.float64)


def column_squares(a: Array) -> Array:
    """Sums of squares of the columns, in float64."""
    if isinstance(a, np.ndarray):
        total = np.zeros(a.shape[1])
        for part in range(0, a.shape[0], SQUARED_ROWS):
            total += np.einsum("ij,ij->j", a[part : part + SQUARED_ROWS], a[part : part + SQUARED_ROWS])
        return total
    xp = namespace(a)
    return xp.sum(xp.astype(a, xp.float64, copy=False) ** 2, axis=0)


def expit(x: Array) -> Array:
    """Logistic function, stable for large |x|."""
    return overwritten_by_expit(x + 0.0)


def overwritten_by_expit(x: Array) -> Array:
    """Logistic function, in place where the library can: by tanh, which NumPy has in vector instructions."""
    if compat.is_torch_array(x):
        return x.sigmoid_()
    x *= 0.5
    x = overwritten_by_tanh(x)
    x += 1.0
    x *= 0.5
    return x


def overwritten_by_tanh(x: Array) -> Array:
    """Hyperbolic tangent, in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.tanh(x, out=x)
    return x.tanh_() if compat.is_torch_array(x) else namespace(x).tanh(x)


def overwritten_by_relu(x: Array) -> Array:
    """max(x, 0), in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, 0, out=x)
    return x.clamp_(min=0) if compat.is_torch_array(x) else namespace(x).clip(x, min=0.0)


def erf(x: Array) -> Array:
    """Error function (not in the standard)."""
    if compat.is_torch_array(x):
        import torch

        return torch.erf(x)
    if compat.is_cupy_array(x):
        from cupyx.scipy.special import erf as cupy_erf

        return cupy_erf(x)
    result = scipy.special.erf(to_numpy(x))
    return result if isinstance(x, np.ndarray) else space_of(x).asarray(result)


def times_powers(X: Array, exponents: np.ndarray) -> Array:
    """X with every column multiplied by two to the power of its exponent: exact, in float64.

    By two factors, as a single one may be beyond the range of float64 where what it gives is not.
    """
    half = exponents // 2
    for part in (half, exponents - half):
        factor = np.ldexp(1.0, part)
        if is_foreign(X):
            space = space_of(X)
            X = space.xp.astype(X, space.xp.float64, copy=False) * space.asarray(factor)
        else:
            X = X * factor
    return X
