"""Operations that the array API standard lacks, or that a library has a faster way for: one function each."""

import functools
from collections.abc import Iterator
from itertools import pairwise

import array_api_compat as compat
import numpy as np
import scipy.special
from scipy.linalg.blas import dtrsv

from .buffers import empty
from .cuda import full_products
from .space import Array, is_foreign, namespace, space_of, to_numpy
from .threads import PARTS, TOUCHED, in_parts, threads

SOLVED, INVERTED = 256, 64
"""Triangles are solved by blocks of so many columns, and within these by inverses of blocks of so many."""

GRAM_COLUMNS = 256
"""Columns of a symmetric product made at once where the library has no symmetric product."""

SQUARED_ROWS = 128
"""Rows whose squares are added in their own dtype before they join a float64 sum."""

ADDED_HALVES = 2048
"""Products of halves that a GPU adds up at once."""

LONG_ROW = 2**12
"""Numbers in a row along which NumPy goes at the speed of the memory."""

CACHED_NUMBERS = 2**16
"""Numbers worked on at once where several steps follow one another: they stay in the processor's cache."""


def plus_diagonal(G: Array, value: float, *, overwrite: bool = False) -> Array:
    """G + value * I, as a new array, or in the place of G where the library can."""
    if isinstance(G, np.ndarray):
        A = G if overwrite else empty(G.shape, G.dtype)
        if not overwrite:
            A[...] = G
        A.flat[:: A.shape[0] + 1] += value
        return A
    if compat.is_torch_array(G):
        T = G if overwrite else G.clone()
        T.diagonal().add_(value)
        return T
    xp, device = space_of(G)
    return G + value * xp.eye(G.shape[0], dtype=G.dtype, device=device)


def diagonal(G: Array) -> Array:
    """A copy of the diagonal of G."""
    return namespace(G).linalg.diagonal(G) + 0.0


def cholesky(A: Array) -> Array | None:
    """Lower factor L of A = L L', or None when A is not positive definite. A may be overwritten."""
    xp = namespace(A)
    if compat.is_torch_array(A):
        L, info = xp.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    wide = isinstance(A, np.ndarray) and A.shape[0] > 2 * SOLVED
    try:
        L = _factorise(A) if wide else xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    return L if isinstance(A, np.ndarray) or bool(xp.all(xp.isfinite(diagonal(L)))) else None


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Solve L Y = B, or L' Y = B, for a lower triangular L."""
    if isinstance(L, np.ndarray):
        return _substitute(L, B, transposed)
    xp = namespace(L)
    if compat.is_torch_array(L):
        return xp.linalg.solve_triangular(L.mT if transposed else L, B, upper=transposed)
    if compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(L, B, lower=True, trans=int(transposed), check_finite=False)
    return xp.linalg.solve(L.mT if transposed else L, B)


def solve_row(L: np.ndarray, b: np.ndarray, *, transposed: bool = False) -> np.ndarray:
    """Solve L y = b, or L' y = b, for one row: nothing to cut into parts, and blocks would only cost."""
    return dtrsv(L.T, b, lower=0, trans=0 if transposed else 1)  # as it stores arrays, L.T is L without a copy


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

        def below(part: slice, a: int = a, b: int = b, inverses: dict[int, np.ndarray] = inverses) -> None:
            rows = A[b + part.start : b + part.stop]
            rows[:, a:b] -= rows[:, :a] @ A[a:b, :a].T
            _solve(A, rows, a, b, INVERTED, inverses, False)

        in_parts(below, p - b, 2.0 * (p - b) * (b - a) * b)
    return A


def _substitute(L: np.ndarray, B: np.ndarray, transposed: bool) -> np.ndarray:
    """Substitution by blocks of columns: matrix products, and small inverses within the blocks."""
    p, inverses = L.shape[0], _inverses(L, 0, L.shape[0])
    rows = np.array(B.T, order="C")  # y_i as rows, overwritten block by block
    in_parts(lambda part: _solve(L, rows[part], 0, p, SOLVED, inverses, transposed), len(rows), 1.0 * p * p * len(rows))
    return rows.T


def _inverses(L: np.ndarray, a: int, b: int) -> dict[int, np.ndarray]:
    """Of the diagonal blocks of L from column a to b, by where they begin."""
    return {k: np.linalg.inv(L[k : min(k + INVERTED, b), k : min(k + INVERTED, b)]) for k in range(a, b, INVERTED)}


def _solve(
    L: np.ndarray, rows: np.ndarray, a: int, b: int, step: int, inverses: dict[int, np.ndarray], transposed: bool
) -> None:
    """Solve the columns a to b of the rows, `step` at a time, from which those outside a to b have been taken."""
    starts = range(a, b, step)
    for start in reversed(starts) if transposed else starts:
        block = slice(start, min(start + step, b))
        solved = slice(block.stop, b) if transposed else slice(a, start)
        if solved.start < solved.stop:
            rows[:, block] -= rows[:, solved] @ (L[solved, block] if transposed else L[block, solved].T)
        if step == INVERTED:
            rows[:, block] = rows[:, block] @ (inverses[start] if transposed else inverses[start].T)
        else:
            _solve(L, rows, start, block.stop, INVERTED, inverses, transposed)


def pieces(x: np.ndarray, numbers: int = CACHED_NUMBERS) -> Iterator[slice]:
    """Slices of the rows of x small enough to stay in the processor's cache."""
    step = max(1, numbers // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def shifted_into(out: np.ndarray, A: np.ndarray, shift: Array, factors: np.ndarray | None) -> None:
    """(A - shift) times a factor for each row into `out`, which may be A; a large one in several threads."""

    def rows(part: slice) -> None:
        for few in pieces(out[part]):
            piece = out[part][few]
            if out is not A:
                piece[...] = A[part][few]
            piece -= shift
            if factors is not None:
                piece *= factors[part][few]

    in_parts(rows, len(out), TOUCHED * out.size)


def matmul(a: Array, b: Array) -> Array:
    """a @ b of matrices; a large one in NumPy in several threads."""
    if not isinstance(a, np.ndarray):
        return a @ b
    out = empty((a.shape[0], b.shape[1]), np.result_type(a, b))
    in_parts(lambda part: np.matmul(a[part], b, out=out[part]), len(out), 2.0 * a.shape[1] * out.size)
    return out


def affine(X: Array, W: Array, b: Array) -> Array:
    """X W + b, in one step where the library can."""
    if compat.is_torch_array(X) and X.dtype == W.dtype == b.dtype:
        return namespace(X).addmm(b, X, W)
    H = X @ W
    H += b
    return H


def inner_products(a: Array, b: Array) -> Array:
    """a b' of rows of halves in float32, sums of exact products; of other rows in their own dtype.

    A GPU cuts off what does not fit each time it adds: the fewer times, the better.
    """
    if not compat.is_torch_array(a) or a.dtype.itemsize != 2:
        return a @ b.mT
    import torch

    if not a.is_cuda:
        return a.float() @ b.float().T
    with full_products(a):
        parts = range(0, a.shape[1], ADDED_HALVES)
        products = (slice(start, start + ADDED_HALVES) for start in parts)
        total = torch.mm(a[:, (first := next(products))], b[:, first].T, out_dtype=torch.float32)
        for part in products:
            total += torch.mm(a[:, part], b[:, part].T, out_dtype=torch.float32)
        return total


def gram(a: Array) -> Array:
    """a'a. NumPy's product knows that it is symmetric; elsewhere, and in several threads, it is made of column blocks,
    each as far as the diagonal, and mirrored: little more than half the work."""
    n, p = (int(size) for size in a.shape)
    work = 1.0 * n * p * p * isinstance(a, np.ndarray)
    count = threads(work)
    if p < 2 * GRAM_COLUMNS and count > 1:  # too narrow for that
        sums: dict[int, np.ndarray] = {}
        in_parts(lambda part: sums.update({part.start: a[part].T @ a[part]}), n, work)
        return functools.reduce(np.add, [sums[start] for start in sorted(sums)])
    held = isinstance(a, np.ndarray)
    if held and count < 2:
        return np.matmul(a.T, a, out=empty((p, p), a.dtype))
    if p < 2 * GRAM_COLUMNS:
        return a.mT @ a
    xp, device = space_of(a)
    G = empty((p, p), a.dtype) if held else xp.empty((p, p), dtype=a.dtype, device=device)
    cuts = PARTS * count
    of_one_area = [round(p * (k / cuts) ** 0.5) for k in range(cuts + 1)]
    edges = of_one_area if count > 1 else [*range(0, p, GRAM_COLUMNS), p]

    def blocks(part: slice) -> None:
        for start, stop in pairwise(edges[part.start : part.stop + 1]):
            block = a[:, start:stop].mT
            for columns in (slice(start, stop), slice(start)):
                if held:
                    np.matmul(block, a[:, columns], out=G[start:stop, columns])
                else:
                    G[start:stop, columns] = block @ a[:, columns]
            G[:start, start:stop] = G[start:stop, :start].mT

    in_parts(blocks, len(edges) - 1, work)
    return G


def column_range(a: Array) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest number of each column, in NumPy.

    NumPy goes along short rows at a fraction of the memory's speed: many of them are taken as one.
    """
    xp, (n, d) = namespace(a), (int(size) for size in a.shape)
    many = LONG_ROW // d if isinstance(a, np.ndarray) and a.flags.c_contiguous and 0 < d < LONG_ROW else 1
    whole = n - n % many
    parts = [a[:whole].reshape(-1, many * d), a[whole:]] if many > 1 else [a]
    low, high = (
        np.concatenate([to_numpy(f(part, axis=0)).reshape(-1, d) for part in parts if part.shape[0]])
        for f in (xp.min, xp.max)
    )
    return low.min(axis=0), high.max(axis=0)


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


def overwritten_by_exp(x: Array) -> Array:
    """e to the power of x, in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.exp(x, out=x)
    return x.exp_() if compat.is_torch_array(x) else namespace(x).exp(x)


def overwritten_by_relu(x: Array) -> Array:
    """max(x, 0), in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, 0, out=x)
    return x.clamp_(min=0) if compat.is_torch_array(x) else namespace(x).clip(x, min=0.0)


def erf(x: Array) -> Array:
    """Error function (not in the standard)."""
    if compat.is_torch_array(x):
        return x.erf()
    if compat.is_cupy_array(x):
        from cupyx.scipy.special import erf as cupy_erf

        return cupy_erf(x)
    result = scipy.special.erf(to_numpy(x))
    return result if isinstance(x, np.ndarray) else space_of(x).asarray(result)


def times_powers(X: Array, exponents: np.ndarray) -> Array:
    """X with every column multiplied by two to the power of its exponent: exact, in float64.

    By two factors, as a single one may be beyond the range of float64 where what it gives is not.
    """
    space, half = space_of(X), exponents // 2
    if is_foreign(X):
        X = space.xp.astype(X, space.xp.float64, copy=False)
    return X * space.asarray(np.ldexp(1.0, half)) * space.asarray(np.ldexp(1.0, exponents - half))
