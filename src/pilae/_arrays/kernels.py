"""Operations that the array API standard lacks, or that a library has a faster way for: one function each."""

from __future__ import annotations

from collections.abc import Iterator

import array_api_compat as compat
import numpy as np
import scipy.linalg
import scipy.special

from .space import Array, is_foreign, namespace, space_of, to_numpy

ONE_POOL = 2000
"""Up to this size NumPy's own LAPACK is used. SciPy brings a second BLAS with a second pool of threads, and while the
threads of the first still wait for work the two get in each other's way."""

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
            if A.shape[0] <= ONE_POOL:
                return np.linalg.cholesky(A)
            # the transpose of a C-ordered symmetric matrix is Fortran-ordered: LAPACK works in place
            return scipy.linalg.cholesky(A.T, lower=False, overwrite_a=True, check_finite=False).T
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
        if L.shape[0] <= ONE_POOL:
            return _substitute(L, B, transposed)
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=int(transposed), check_finite=False)
    xp = namespace(L)
    if compat.is_torch_array(L):
        A = L.mT if transposed else L
        return xp.linalg.solve_triangular(A, B, upper=transposed)
    if compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(L, B, lower=True, trans=int(transposed), check_finite=False)
    return xp.linalg.solve(L.mT if transposed else L, B)


def _substitute(L: np.ndarray, B: np.ndarray, transposed: bool) -> np.ndarray:
    """Substitution by blocks of 64 columns: matrix products, and small inverses of the diagonal blocks."""
    p, step = L.shape[0], 64
    rows = np.array(B.T, order="C")  # y_i as rows, overwritten block by block
    starts = range(0, p, step)
    for a in reversed(starts) if transposed else starts:
        part, inverse = slice(a, min(a + step, p)), np.linalg.inv(L[a : a + step, a : a + step])
        if transposed:
            rows[:, part] = (rows[:, part] - rows[:, part.stop :] @ L[part.stop :, part]) @ inverse
        else:
            rows[:, part] = (rows[:, part] - rows[:, :a] @ L[part, :a].T) @ inverse.T
    return rows.T


def pieces(x: np.ndarray) -> Iterator[slice]:
    """Slices of the rows of x small enough to stay in the processor's cache."""
    step = max(1, CACHED_NUMBERS // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def gram(a: Array) -> Array:
    """a'a. NumPy's product knows that it is symmetric; elsewhere it is made of column blocks, each as far as the
    diagonal, and mirrored: little more than half the work."""
    p = int(a.shape[1])
    if isinstance(a, np.ndarray) or p < 2 * GRAM_COLUMNS:
        return a.mT @ a
    xp, device = space_of(a)
    G = xp.empty((p, p), dtype=a.dtype, device=device)
    for start in range(0, p, GRAM_COLUMNS):
        part = slice(start, min(start + GRAM_COLUMNS, p))
        G[part, : part.stop] = a[:, part].mT @ a[:, : part.stop]
        G[:start, part] = G[part, :start].mT
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
