r"""Leave-one-out of the output layer, exactly and without refitting.

With weights w, W = sum(w), standardised features F and targets Z centred by their weighted means,

    G = F'wF,  C = F'wZ,  L L' = G + lambda I,  q_i = L^-1 f_i,  c = L^-1 C,

the fit of row i is zbar + q_i . c, the leverage of one unit of weight is h_i = |q_i|^2 + 1/W, and with u_i units
of row i taken out the residual becomes

    (z_i - zbar - q_i . c) / (1 - u_i h_i).

**All widths at once.** The leading p x p block of L is the factor for the first p features, so partial sums over j of
q_ij^2 and q_ij c_j give the leave-one-out residual of every width for the price of one.

Anchors, feature scales and lambda are held; means are re-estimated. u_i is one unit of weight where a row has at
least that (a weight of 3 means three equal rows, and one of them is left out) and the whole row where it has less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .._arrays import Array, dtype_name, full_products, matmul, namespace, solve_triangular, space_of, to_numpy
from .._arrays.threads import in_parts
from .._base.saveable import saveable
from .linalg import eigen_nonnegative, ridge_factor

EIGEN_WIDTH = 700
"""Up to this width one eigendecomposition serves all ridges; above it one Cholesky factor each is cheaper."""


TIE = 0.01
"""Two candidates are a tie within this fraction of the paired standard error of their difference."""

COLUMNS_AN_OUTPUT = 200
"""A running sum for one output costs about as much as a product with this many columns."""

PATH_COLUMNS = 128
"""Columns of a triangle multiplied at once, at least."""

CACHED_BYTES = 2**20
"""Running sums are taken of pieces this large, which stay in the processor's cache."""

FEW_ROWS = 1000
"""With fewer scored rows than this a reported accuracy is over all of them."""

LEAST_LEFT = {"float64": 1e-7, "float32": 1e-4}
"""Below this 1 - leverage a row alone holds some direction of the features: the others say nothing about it. By dtype
of the features: leverages are as exact as these."""


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
        self._last: tuple[float, Factor] | None = None
        if G.shape[0] <= EIGEN_WIDTH and not nested:
            self._decompose("eigh")

    def _decompose(self, route: str) -> None:
        values, V, floor = eigen_nonnegative(self.G)
        self._eigen, self.route = (values, V, V.mT @ self.C, floor), route

    def at(self, ridge: float) -> Factor:
        lam = ridge * self.weight
        if self._eigen is None:
            if self._last is not None and self._last[0] == ridge:
                return self._last[1]
            self._last = None  # two at once would be too much to hold
            L = ridge_factor(self.G, lam)
            if L is not None:
                self._last = ridge, Factor(solve_triangular(L, self.C), L=L)
                return self._last[1]
            self._decompose("eigh (not positive definite)")
        assert self._eigen is not None
        xp = namespace(self.G)
        values, V, rotated, floor = self._eigen
        lifted = values + lam
        # a ridge of zero, or one below rounding, leaves directions without variance alone instead of dividing by noise
        root = xp.where(lifted > floor, xp.sqrt(lifted), xp.full_like(lifted, np.inf))
        return Factor(rotated / root[:, None], V=V, root=root)


@saveable
class Scored(NamedTuple):
    """Leave-one-out results on the scored rows, in NumPy."""

    outputs: np.ndarray
    targets: np.ndarray
    weight: np.ndarray
    unit: np.ndarray
    chooser: np.ndarray
    """Weights of the rows that choices are made on: those that are not neurons themselves, where there are enough."""

    @property
    def judges(self) -> np.ndarray:
        """Weights of the rows that an accuracy is reported on. Few rows have made all the choices together, and hardly
        any of them is wrong then; rows that are neurons are the harder ones: there all count."""
        return self.weight if len(self.weight) < FEW_ROWS else self.chooser

    def row_errors(self, scale: np.ndarray) -> np.ndarray:
        """sum_k ((z - out)_k / scale_k)^2 of each row."""
        return np.sum(((self.targets - self.outputs) / scale) ** 2, axis=1)

    def squared_error(self, scale: np.ndarray) -> float:
        return float(np.average(self.row_errors(scale), weights=self.chooser))

    def standard_error(self, errors: np.ndarray) -> float:
        """Of the mean of these errors of the rows."""
        mean = np.average(errors, weights=self.chooser)
        return float((np.average((errors - mean) ** 2, weights=self.chooser) / max(self.n_choosers, 1.0)) ** 0.5)

    @property
    def n_choosers(self) -> float:
        """How many rows the chooser stands for: a row of weight 3 is three rows, a row of weight 0.3 is one."""
        return float(np.sum(self.chooser / np.where(self.unit > 0, self.unit, 1.0)))

    def lower(self, errors: np.ndarray, others: np.ndarray) -> bool:
        """Whether these errors of the rows are lower than the others by more than a tie."""
        return clearly_lower(errors, others, self.chooser, self.n_choosers)


def clearly_lower(errors: np.ndarray, others: np.ndarray, chooser: np.ndarray, count: float) -> bool:
    """Lower on average by more than 1% of the paired standard error; closer than that is a tie."""
    weight = chooser / chooser.sum()
    gain = others - errors
    mean = float(weight @ gain)
    return mean > TIE * (float(weight @ (gain - mean) ** 2) / max(count, 1.0)) ** 0.5


Batches = Callable[[], Iterator[tuple[Array, Array, np.ndarray, np.ndarray, np.ndarray]]]
"""Yields (standardised features, targets, weights, units to leave out, chooser) of the scored rows, by blocks."""


def leave_one_out(factors: RidgeFactors, ridges: list[float], zbar: Array, batches: Batches) -> list[Scored]:
    """Leave-one-out outputs of the scored rows for each ridge, in one go over them."""
    chosen = [factors.at(r) for r in ridges]
    outputs: list[list[np.ndarray]] = [[] for _ in ridges]
    mean = to_numpy(zbar)
    rest: list[tuple[np.ndarray, ...]] = []
    for F, Z, w, unit, chooser in batches():
        z, least = to_numpy(Z), _least_left(F)
        with full_products(F):
            found = list(_fits_and_leverages(chosen, F))
        for out, (fit, h) in zip(outputs, found, strict=True):
            left = (1.0 - unit * (h + 1.0 / factors.weight))[:, None]
            known = left > least
            out.append(np.where(known, z - (z - mean - fit) / np.where(known, left, 1.0), mean))
        rest.append((z, w, unit, chooser))
    columns = [np.concatenate(column) for column in zip(*rest, strict=True)]
    return [Scored(np.concatenate(out), *columns) for out in outputs]


def _fits_and_leverages(chosen: list[Factor], F: Array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(q_i . c, |q_i|^2) of a block of rows for each factor."""
    xp = namespace(F)
    if chosen[0].V is None:
        for factor in chosen:
            q = factor.whiten(F)
            yield to_numpy(matmul(q, factor.like(F)[1])), to_numpy(xp.sum(q**2, axis=1))
        return
    inverses = xp.stack([1.0 / factor.root**2 for factor in chosen], axis=1)
    slopes = xp.concat([factor.c / factor.root[:, None] for factor in chosen], axis=1)
    V, inverses, slopes = (xp.astype(x, F.dtype, copy=False) for x in (chosen[0].V, inverses, slopes))
    leverages, fits = (np.empty((F.shape[0], x.shape[1]), dtype_name(F)) for x in (inverses, slopes))

    def rows(part: slice) -> None:
        R = F[part, :] @ V  # one rotation serves all ridges: q = R / root
        leverages[part], fits[part] = to_numpy(R**2 @ inverses), to_numpy(R @ slopes)

    columns = V.shape[1] + inverses.shape[1] + slopes.shape[1]
    in_parts(rows, len(fits), 2.0 * F.shape[0] * F.shape[1] * columns * isinstance(F, np.ndarray))
    m = fits.shape[1] // len(chosen)
    for k in range(len(chosen)):
        yield fits[:, k * m : (k + 1) * m], leverages[:, k]


def _least_left(F: Array) -> float:
    return LEAST_LEFT[dtype_name(F)]


def ridge_grid(smallest: float) -> list[float]:
    """Half decades from `smallest` to 10, per unit of weight on standardised features."""
    low = round(2 * np.log10(smallest))
    return [float(10.0 ** (k / 2)) for k in range(low, 3)]


def _nearest(ridges: list[float], wanted: float) -> int:
    """The place of the ridge nearest to `wanted` on a logarithmic scale."""
    return min(range(len(ridges)), key=lambda i: abs(np.log10(ridges[i] / wanted)))


def best_ridge(
    factors: RidgeFactors, zbar: Array, scale: np.ndarray, batches: Batches, smallest: float, near: float | None = None
) -> tuple[float, Scored, dict[float, float]]:
    """The ridge of lowest squared leave-one-out error: (ridge, its scores, error of every ridge tried).

    Of ridges that tie the largest is taken. Narrow layers evaluate the whole grid; wide ones, where each ridge
    costs a factorisation, walk in decades from `near` (1e-2), up as long as it does not hurt and down as long as it
    helps.
    """
    tried: dict[float, Scored] = {}
    errors: dict[float, np.ndarray] = {}

    def evaluate(ridges: list[float]) -> None:
        for ridge, scores in zip(ridges, leave_one_out(factors, ridges, zbar, batches), strict=True):
            tried[ridge], errors[ridge] = scores, scores.row_errors(scale)

    def beats(ridge: float, other: float) -> bool:
        for r in (ridge, other):
            if r not in tried:
                evaluate([r])
        return tried[ridge].lower(errors[ridge], errors[other])

    if factors.route.startswith("eigh"):
        grid = ridge_grid(smallest)
        evaluate(grid)
        chooser = tried[grid[0]].chooser
        best = min(grid, key=lambda r: float(chooser @ errors[r]))
        chosen = next(r for r in reversed(grid) if not beats(best, r))
    else:
        grid = ridge_grid(smallest)[::2]
        k = _nearest(grid, near or 1e-2)
        while k + 1 < len(grid) and not beats(grid[k], grid[k + 1]):
            k += 1
        while k > 0 and beats(grid[k - 1], grid[k]):
            k -= 1
        chosen = grid[k]
    weight = tried[chosen].chooser / tried[chosen].chooser.sum()
    return chosen, tried[chosen], {r: float(weight @ errors[r]) for r in sorted(tried)}


Nested = Callable[[Array, Array, Array, float], Array]
"""From whitened rows, centred targets, units left out and 1/W to squared errors at every width."""


def width_errors(
    factor: Factor, zbar: Array, weight: float, scale: np.ndarray, batches: Batches, first: int
) -> np.ndarray:
    """Squared leave-one-out error of every scored row (down) at every width first, first + 1, ... (across).

    `factor` must come from a Cholesky decomposition: its leading blocks are the factors of the narrower layers.
    """
    space = space_of(factor.c)
    xp = space.xp
    per_output = space.asarray(scale, "float64")
    p, n_outputs = (int(size) for size in factor.c.shape)
    make = _by_products if n_outputs * COLUMNS_AN_OUTPUT > p else _by_outputs
    nested: Nested | None = None
    parts = []
    for F, Z, _, unit, _ in batches():
        nested = nested or make(xp.astype(factor.c / per_output, F.dtype, copy=False), first)
        q, r = factor.whiten(F), xp.astype((Z - zbar) / per_output, F.dtype, copy=False)
        units = xp.astype(space.asarray(unit, "float64"), F.dtype, copy=False)[:, None]
        with full_products(q):
            parts.append(_by_steps(nested, q, r, units, 1.0 / weight, first))
    return np.concatenate(parts)


def _by_steps(nested: Nested, q: Array, r: Array, units: Array, mean: float, first: int) -> np.ndarray:
    """The squared errors of as many rows at a time as stay in the processor's cache, one below the other."""
    n, p = (int(size) for size in q.shape)
    step = max(16, space_of(q).budget(CACHED_BYTES) // (8 * p))
    found = np.empty((n, p - first + 1), dtype_name(q))

    def stretch(part: slice) -> None:
        for start in range(part.start, part.stop, step):
            rows = slice(start, min(start + step, part.stop))
            found[rows] = to_numpy(nested(q[rows, :], r[rows, :], units[rows, :], mean))

    in_parts(stretch, n, 1.0 * n * p * min(p, COLUMNS_AN_OUTPUT * int(r.shape[1])) * isinstance(q, np.ndarray))
    return found


def _left(q: Array, unit: Array, mean: float, first: int) -> tuple[Array, Array]:
    """Whether the other rows know anything about a row at each width, and 1 / (1 - leverage) where they do."""
    xp = namespace(q)
    left = 1.0 - unit * (xp.cumulative_sum(q * q, axis=1)[:, first - 1 :] + mean)
    known = left > _least_left(q)
    return known, 1.0 / xp.where(known, left, xp.ones_like(left))


def _by_outputs(c: Array, first: int) -> Nested:
    """One running sum for each output: few outputs."""

    def squares(q: Array, r: Array, unit: Array, mean: float) -> Array:
        xp = namespace(q)
        known, factor = _left(q, unit, mean, first)
        total = xp.zeros_like(factor)
        for k in range(int(r.shape[1])):
            residual = r[:, k][:, None]
            fit = xp.cumulative_sum(q * c[:, k], axis=1)[:, first - 1 :]
            total += xp.where(known, (residual - fit) * factor, residual + xp.zeros_like(fit)) ** 2
        return total

    return squares


def _by_products(c: Array, first: int) -> Nested:
    """|r - fit|^2 over all outputs at once, with fit_p = fit_(p-1) + q_p c_p:

    |fit_p|^2 - 2 r.fit_p grows by q_p (2 fit_(p-1).c_p + q_p |c_p|^2 - 2 r.c_p), and fit_(p-1).c_p is a sum over the
    columns before p of q_j c_j.c_p: a product with the triangle of c c', whatever the number of outputs.
    """
    xp = namespace(c)
    p = int(c.shape[0])
    triangle, lengths = xp.triu(c @ c.mT, k=1), xp.sum(c * c, axis=1)
    edges = [*range(0, p, max(PATH_COLUMNS, p // 8)), p]

    def squares(q: Array, r: Array, unit: Array, mean: float) -> Array:
        known, factor = _left(q, unit, mean, first)
        # piece by piece, as far down as the triangle goes: half the work
        before = xp.concat([q[:, :b] @ triangle[:b, a:b] for a, b in pairwise(edges)], axis=1)
        growth = q * (2.0 * (before - r @ c.mT) + q * lengths)
        whole = xp.sum(r * r, axis=1)[:, None]
        total = whole + xp.cumulative_sum(growth, axis=1)[:, first - 1 :]
        total = xp.where(total > 0, total, xp.zeros_like(total))
        return xp.where(known, total * factor**2, whole + xp.zeros_like(total))

    return squares


def _mean_of(
    rows: np.ndarray, weight: np.ndarray, f: Callable[[np.ndarray], np.ndarray] = lambda part: part
) -> np.ndarray:
    """Weighted mean of f(rows) in float64, some rows at a time: they are many numbers."""
    step = max(1, CACHED_BYTES // (8 * rows.shape[1]))
    total: np.ndarray = np.zeros(())
    for start in range(0, len(rows), step):
        part = slice(start, start + step)
        total = total + weight[part] @ f(rows[part].astype(np.float64, copy=False))
    return total / weight.sum()


@saveable
class WidthPath(NamedTuple):
    """Mean squared leave-one-out error by ridge and width: errors[ridge][k] belongs to width first + k."""

    first: int
    errors: dict[float, np.ndarray]
    ridge: float
    """The one chosen."""
    standard_errors: np.ndarray | None = None
    """Of errors[ridge]."""


def best_width(
    factors: RidgeFactors,
    zbar: Array,
    scale: np.ndarray,
    batches: Batches,
    chooser: np.ndarray,
    unit: np.ndarray,
    ridges: list[float],
    first: int,
    near: float | None = None,
) -> tuple[int, float, WidthPath]:
    """Width and ridge of lowest squared leave-one-out error: (width, ridge, the whole path).

    The ridges are walked up from `near` (1e-3) as long as that does not hurt, then down as long as it helps; for the
    best one the smallest width that ties with the best is taken. `chooser` and `unit` are those of the scored rows (see
    `Scored`).
    """
    count = max(float(np.sum(chooser / np.where(unit > 0, unit, 1.0))), 1.0)
    means: dict[float, np.ndarray] = {}

    def evaluate(k: int) -> np.ndarray:
        factor = factors.at(ridges[k])
        if factor.V is not None:  # not positive definite at so small a ridge: no nested factors
            means[ridges[k]] = np.full(int(factors.G.shape[0]) - first + 1, np.inf)
            return means[ridges[k]][None, :]
        rows = width_errors(factor, zbar, factors.weight, scale, batches, first)
        means[ridges[k]] = _mean_of(rows, chooser)
        return rows

    def better(k: int, rows: np.ndarray, other: int, other_rows: np.ndarray) -> bool:
        """Whether the best width at ridge k beats that at the other one."""
        mine, theirs = means[ridges[k]], means[ridges[other]]
        if not np.isfinite(mine).all() or not np.isfinite(theirs).all():
            return bool(np.isfinite(mine).all())
        return clearly_lower(rows[:, int(np.argmin(mine))], other_rows[:, int(np.argmin(theirs))], chooser, count)

    k = start = _nearest(ridges, near or 1e-3)
    rows = evaluate(k)
    while k + 1 < len(ridges) and not better(k, rows, k + 1, up := evaluate(k + 1)):
        k, rows = k + 1, up
    while k == start and start > 0 and better(start - 1, down := evaluate(start - 1), start, rows):
        k, start, rows = k - 1, start - 1, down
    mean = means[ridges[k]]
    if not np.isfinite(mean).all():
        return int(factors.G.shape[0]), ridges[k], WidthPath(first, means, ridges[k])
    best = int(np.argmin(mean))
    lead = mean[: best + 1] - mean[best]
    spread = np.sqrt(
        _mean_of(rows, chooser, lambda part: (part[:, : best + 1] - part[:, best : best + 1] - lead) ** 2) / count
    )
    tie = np.flatnonzero(lead <= TIE * spread)
    error = np.sqrt(np.maximum(_mean_of(rows, chooser, np.square) - mean**2, 0.0) / count)
    return first + int(tie[0]), ridges[k], WidthPath(first, dict(sorted(means.items())), ridges[k], error)
