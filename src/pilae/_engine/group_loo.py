r"""Leave-group-out of the output layer: the rows of a group leave together, exactly and without refitting.

With what `loo` has, let Q hold a column 1/sqrt(W), for the mean, and the rows q_i of one group, r their residuals, u
the weight that leaves with each (all of it) and S = sqrt(u). The residuals without the group are

    S r_without = B^-1 S r,    B = I - S Q Q' S,

one k x k solve for a group of k rows. A group of more rows than columns takes the Gram without it instead: that is
G - F'uF + lambda I = L M L' with M = I - Q'uQ, and

    r_without = r + Q M^-1 Q'u r.

**All widths at once.** A column more is a step of rank one of B, so its inverse P and e = P S r follow from those of
the width before:

    t = P S q_p,  d = 1 - q_p'S t,  r <- r - q_p c_p,  P <- P + t t'/d,  e <- e + t ((t'S r)/d - c_p).

Of large groups L L_M, with L_M L_M' = M, is the factor without the group: its leading blocks are those of the narrower
layers, so partial sums of L_M^-1 Q' and L_M^-1 (c - Q'u z) give what is predicted at every width.

Where the other rows know nothing about some direction of a group, its rows are said to be the mean. All in float64.
"""

from collections.abc import Callable, Iterator

import numpy as np

from .._arrays import (
    Array,
    cholesky,
    diagonal,
    gram,
    namespace,
    plus_diagonal,
    solve_triangular,
    space_of,
    take_rows,
    to_numpy,
)
from .factors import Factor
from .scores import LEAST_LEFT, Batch

LEAST = LEAST_LEFT["float64"]

STACKED = 32
"""Groups of up to so many rows are solved side by side."""

LANES = 2**13
"""So many rows, times ridges, at once: what they need stays in the processor's cache."""

STEPPED = 256
"""Of groups of up to so many rows widths are found by steps of rank one: a larger inverse would take longer than the
factor without the group."""

Squares = Callable[[Array, Array, Array, float], Array]
"""From whitened rows, centred targets, units left out and 1/W to squared errors at every width."""

Pieces = Callable[[], Iterator[Array]]
"""Rows of Q, some at a time."""

Stacks = list[tuple[np.ndarray, np.ndarray]]
"""Groups of about the same size together: row numbers, groups x rows, and which of them are there."""


def left_out(chosen: list[Factor], batch: Batch, mean: np.ndarray, weight: float) -> np.ndarray:
    """What the output layer without its group says of each row: rows x factors x outputs."""
    z, s = to_numpy(batch.Z) - mean, np.sqrt(batch.unit)
    if batch.pieces is not None:
        large = [_of_large(_pieces(factor, batch.pieces, weight), factor.c, z, s) for factor in chosen]
        return mean + z[:, None, :] - np.stack(large, axis=1)
    stacks, F = list(stacked(batch.group)), _exact(batch.F)
    if chosen[0].V is not None and len(chosen) > 1:  # one rotation serves all: q = R / root
        roots, c = (np.stack([to_numpy(getattr(f, name)) for f in chosen], axis=1) for name in ("root", "c"))
        residuals = _without(F @ chosen[0].V, 1.0 / roots, c, z, s, weight, stacks)
    else:
        one = np.ones((int(chosen[0].c.shape[0]), 1))
        each = [_without(_whitened(f, F), one, to_numpy(f.c)[:, None, :], z, s, weight, stacks) for f in chosen]
        residuals = np.concatenate(each, axis=1)
    return mean + z[:, None, :] - residuals


def stacked(group: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Groups, whose numbers come one after another, as `Stacks`."""
    assert group is not None
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    sizes = np.diff(np.r_[starts, len(group)])
    step = 2 ** np.maximum(np.floor(np.log2(sizes)).astype(int) - 2, 0)
    rounded = -(-sizes // step) * step
    for size in np.unique(rounded):
        of_size, place = rounded == size, np.arange(size)
        there = place < sizes[of_size, None]
        yield np.where(there, starts[of_size, None] + place, 0), there


def _whitened(factor: Factor, F: Array) -> Array:
    """q_i in float64."""
    return factor.whiten(_exact(F)) if factor.V is None else _exact(F) @ factor.V / factor.root


def _exact(x: Array) -> Array:
    xp = namespace(x)
    return xp.astype(x, xp.float64, copy=False)


def _pieces(factor: Factor, features: Pieces, weight: float) -> Pieces:
    def pieces() -> Iterator[Array]:
        for F in features():
            yield _with_mean(_whitened(factor, F), weight)

    return pieces


def _at_once(Q: Array) -> Pieces:
    return lambda: iter([Q])


def _with_mean(q: Array, weight: float) -> Array:
    """Rows of Q: the column of the mean comes first, as every width has it."""
    xp = namespace(q)
    return xp.concat([xp.full_like(q[:, :1], weight**-0.5), q], axis=1)


# ------------------------------------------------------------------------------------------------- of one width


def _without(
    R: Array, over: np.ndarray, c: np.ndarray, z: np.ndarray, s: np.ndarray, weight: float, stacks: Stacks
) -> np.ndarray:
    """Residuals without the groups, rows x ridges x outputs, for q = R * over of each ridge."""
    (p, ridges, m), asarray = c.shape, space_of(R).asarray
    fit = R @ asarray((over[:, :, None] * c).reshape(p, -1), "float64")
    r = z[:, None, :] - to_numpy(fit).reshape(-1, ridges, m)
    e = np.empty_like(r)
    for index, there in stacks:
        if index.shape[1] <= min(STACKED, p + 1):
            step = max(1, LANES // (index.shape[1] * max(ridges, p // 16)))
            for start in range(0, len(index), step):
                part = slice(start, start + step)
                rows, are, scale = index[part], there[part], s[index[part]] * there[part]
                found = _of_stack(_gathered(R, rows, scale), over, r[rows], z[rows], scale, weight)
                e[rows[are]] = found[are]
            continue
        for rows in _each(index, there):
            for k in range(ridges):
                q, of_ridge = take_rows(R, rows) * asarray(over[:, k], "float64"), asarray(c[:, k], "float64")
                e[rows, k] = _of_group(_with_mean(q, weight), of_ridge, r[rows, k], z[rows], s[rows])
    return e


def _of_stack(R: Array, over: np.ndarray, r: np.ndarray, z: np.ndarray, s: np.ndarray, weight: float) -> np.ndarray:
    """Residuals without groups of one size, groups x rows x ridges x outputs: R are S q for each ridge."""
    groups, size, ridges, m = r.shape
    B = _inner(R, over)
    B += (s[:, :, None] * s[:, None, :]).transpose(1, 2, 0)[:, :, :, None] / weight
    B = np.eye(size)[:, :, None, None] - B
    x = (s[:, :, None, None] * r).transpose(1, 3, 0, 2).copy()
    known = _solve_lanes(B.reshape(size, size, -1), x.reshape(size, m, -1)).reshape(groups, 1, ridges, 1)
    inside = np.where(s > 0, s, 1.0)[:, :, None, None]
    return np.where(known, x.transpose(2, 0, 3, 1) / inside, z[:, :, None, :])


def _inner(R: Array, over: np.ndarray) -> np.ndarray:
    """Products of the rows of each group with each other, rows x rows (below the diagonal) x groups x ridges."""
    if over.shape[1] == 1:  # of q itself
        return to_numpy(R @ R.mT).transpose(1, 2, 0)[:, :, :, None].copy()
    groups, size, _ = R.shape
    inner, squares = np.zeros((size, size, groups, over.shape[1])), space_of(R).asarray(over**2, "float64")
    for i in range(size):
        inner[i:, i] = to_numpy((R[:, i:, :] * R[:, i : i + 1, :]) @ squares).transpose(1, 0, 2)
    return inner


def _solve_lanes(B: np.ndarray, x: np.ndarray) -> np.ndarray:
    """x <- B^-1 x for many small systems side by side (the last axis), in place, by Cholesky's way; whether each can be
    told. A library's call for each would take longer than its work."""
    size, known = len(B), np.ones(B.shape[2], bool)
    for j in range(size):
        known &= B[j, j] > LEAST
        B[j, j] = np.sqrt(np.where(known, B[j, j], 1.0))
        B[j + 1 :, j] /= B[j, j]
        x[j] /= B[j, j]
        for i in range(j + 1, size):
            B[i:, i] -= B[i:, j] * B[i, j]
        x[j + 1 :] -= B[j + 1 :, j][:, None] * x[j]
    for j in reversed(range(size)):
        x[j] /= B[j, j]
        x[:j] -= B[j, :j][:, None] * x[j]
    return known


def _of_group(Q: Array, c: Array, r: np.ndarray, z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Residuals of one group without it."""
    if Q.shape[0] > Q.shape[1]:
        return _of_large(_at_once(Q), c, z, s)
    scaled = Q * space_of(Q).asarray(s[:, None], "float64")
    solved = _solved(plus_diagonal(-(scaled @ scaled.mT), 1.0), space_of(Q).asarray(s[:, None] * r, "float64"))
    return z if solved is None else to_numpy(solved) / np.where(s > 0, s, 1.0)[:, None]


def _each(index: np.ndarray, there: np.ndarray) -> Iterator[np.ndarray]:
    """Row numbers of one group after another."""
    return (rows[are] for rows, are in zip(index, there, strict=True))


def _gathered(q: Array, index: np.ndarray, scale: np.ndarray) -> Array:
    """S q of each group: groups x rows x columns."""
    rows = take_rows(q, index.ravel()) * space_of(q).asarray(scale.reshape(-1, 1), "float64")
    return namespace(q).reshape(rows, (*index.shape, int(q.shape[1])))


def _solved(A: Array, right: Array) -> Array | None:
    L = _factor(A)
    return None if L is None else solve_triangular(L, solve_triangular(L, right), transposed=True)


def _factor(A: Array) -> Array | None:
    """L of A = L L'; None where A has a direction that next to nothing is known about."""
    L = cholesky(A)
    return None if L is None or not float(namespace(L).min(diagonal(L))) ** 2 > LEAST else L


def _of_large(pieces: Pieces, c: Array, z: np.ndarray, s: np.ndarray) -> np.ndarray:
    """Residuals of a group without it, by the Gram without it."""
    inner, cross = _sums(pieces, z, s)
    xp = namespace(c)
    fit = xp.concat([0.0 * c[:1, :], c], axis=0)
    step = _solved(plus_diagonal(-inner, 1.0), cross - inner @ fit)
    if step is None:
        return z
    return z - np.concatenate([to_numpy(Q[:, 1:] @ c - Q @ step) for Q in pieces()])


def _sums(pieces: Pieces, z: np.ndarray, s: np.ndarray) -> tuple[Array, Array]:
    """Q'uQ and Q'uz of a group."""
    inner, cross, start = 0.0, 0.0, 0
    for Q in pieces():
        part, space = slice(start, start + int(Q.shape[0])), space_of(Q)
        scale, start = space.asarray(s[part, None], "float64"), part.stop
        inner, cross = inner + gram(Q * scale), cross + Q.mT @ (space.asarray(z[part], "float64") * scale**2)
    return inner, cross


# --------------------------------------------------------------------------------------------- of every width


def width_means(
    factor: Factor, batch: Batch, zbar: Array, scale: Array, weight: float, first: int, squares: Callable
) -> np.ndarray:
    """Mean squared error, by chooser, of every group (down) without it at every width first, first + 1, ... (across).

    `squares` makes, of c and a first width, what gives the squared errors of rows that nothing leaves.
    """
    z, c, s = to_numpy((batch.Z - zbar) / scale), _exact(factor.c / scale), np.sqrt(batch.unit)
    if batch.pieces is not None:
        share = batch.chooser / max(batch.chooser.sum(), np.finfo(float).tiny)
        return _by_factor(_pieces(factor, batch.pieces, weight), c, z, s, share, first, squares)[None, :]
    q = _whitened(factor, batch.F)
    assert batch.group is not None
    total = np.bincount(batch.group - batch.group[0], weights=batch.chooser)
    means = np.empty((len(total), int(q.shape[1]) - first + 1))
    for index, there in stacked(batch.group):
        at = batch.group[index[:, 0]] - batch.group[0]
        share = np.where(there, batch.chooser[index], 0.0) / np.where(total[at] > 0, total[at], 1.0)[:, None]
        if index.shape[1] <= STEPPED:
            Q = to_numpy(_gathered(q, index, s[index] * there))
            means[at] = _by_steps(Q, to_numpy(c), z[index], s[index] * there, share, weight, first)
            continue
        for k, rows, each in zip(at, _each(index, there), share, strict=True):
            alone = _with_mean(take_rows(q, rows), weight)
            means[k] = _by_factor(_at_once(alone), c, z[rows], s[rows], each[: len(rows)], first, squares)
    return means


def _by_steps(
    Q: np.ndarray, c: np.ndarray, z: np.ndarray, s: np.ndarray, share: np.ndarray, weight: float, first: int
) -> np.ndarray:
    """Groups of about the same size, one column after another: groups x widths."""
    p, r = Q.shape[2], s[:, :, None] * z
    columns = np.ascontiguousarray(Q.transpose(2, 0, 1))
    over = share / np.where(s > 0, s, 1.0) ** 2  # errors of rows from those times S
    said_mean = np.sum(over * np.sum(r**2, axis=2), axis=1)
    P = np.eye(s.shape[1]) + s[:, :, None] * s[:, None, :] / (weight - np.sum(s**2, axis=1))[:, None, None]
    e, alive = P @ r, np.ones(len(P), bool)
    means = np.empty((len(P), p - first + 1))
    for j, q in enumerate(columns):
        t = (P @ q[:, :, None])[:, :, 0]
        left = 1.0 - np.sum(q * t, axis=1)
        alive &= left > LEAST
        left[~alive], t[~alive] = 1.0, 0.0
        r -= q[:, :, None] * c[j]
        e += t[:, :, None] * ((t[:, None, :] @ r)[:, 0, :] / left[:, None] - c[j])[:, None, :]
        P += t[:, :, None] * (t / left[:, None])[:, None, :]
        alive &= np.max(np.diagonal(P, axis1=1, axis2=2), axis=1) * LEAST < 1.0
        if j + 1 >= first:
            means[:, j + 1 - first] = np.where(alive, np.sum(over * np.sum(e**2, axis=2), axis=1), said_mean)
    return means


def _by_factor(
    pieces: Pieces, c: Array, z: np.ndarray, s: np.ndarray, share: np.ndarray, first: int, squares: Callable
) -> np.ndarray:
    """One large group, by the factor without it."""
    inner, cross = _sums(pieces, z, s)
    space, L = space_of(c), _factor(plus_diagonal(-inner, 1.0))
    xp = space.xp
    if L is None:
        return np.full(int(c.shape[0]) - first + 1, share @ np.sum(z**2, axis=1))
    nested: Squares = squares(solve_triangular(L, xp.concat([0.0 * c[:1, :], c], axis=0) - cross), first + 1)
    total, start = np.zeros(int(c.shape[0]) - first + 1), 0
    for Q in pieces():
        part = slice(start, start + int(Q.shape[0]))
        q, start = solve_triangular(L, Q.mT).mT, part.stop
        nothing = xp.zeros_like(q[:, :1])
        total += share[part] @ to_numpy(nested(q, space.asarray(z[part], "float64"), nothing, 0.0))
    return total
