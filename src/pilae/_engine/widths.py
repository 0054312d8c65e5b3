"""Leave-one-out of every width of the output layer at once (the derivation is in `loo`)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import starmap
from typing import NamedTuple

import numpy as np

from .._arrays import Array, dtype_name, full_products, namespace, space_of, to_numpy
from .._arrays.threads import in_parts
from .._base.saveable import saveable
from .factors import Factor, RidgeFactors
from .group_loo import Squares, width_means
from .scores import LEAST_LEFT, TIE, Batch, Batches, clearly_lower, rows_stood_for, walk

FEW_OUTPUTS = 2
"""Up to so many outputs one running sum for each is quicker."""

PATH_COLUMNS = 64
"""Columns between which the fit of a row is made whole."""

CACHED_BYTES = 2**20
"""Running sums are taken of pieces this large, which stay in the processor's cache."""

FIRST_RIDGE = 1e-3
"""The search for a ridge and a width begins near this one."""


def width_errors(
    factor: Factor, zbar: Array, weight: float, scale: np.ndarray, batches: Batches, first: int
) -> np.ndarray:
    """Squared leave-one-out error of every scored row (down) at every width first, first + 1, ... (across).

    `factor` must come from a Cholesky decomposition: its leading blocks are the factors of the narrower layers. Of rows
    that belong together it is the mean error of every group.
    """
    space = space_of(factor.c)
    xp = space.xp
    per_output = space.asarray(scale, "float64")
    make = _by_products if int(factor.c.shape[1]) > FEW_OUTPUTS else _by_outputs
    nested: Squares | None = None
    blocks = []
    for batch in starmap(Batch, batches()):
        if batch.group is not None:
            blocks.append(width_means(factor, batch, zbar, per_output, weight, first, make))
            continue
        F = batch.F
        nested = nested or make(xp.astype(factor.c / per_output, F.dtype, copy=False), first)
        q, r = factor.whiten(F), xp.astype((batch.Z - zbar) / per_output, F.dtype, copy=False)
        units = xp.astype(space.asarray(batch.unit, "float64"), F.dtype, copy=False)[:, None]
        with full_products(q):
            blocks.append(_by_steps(nested, q, r, units, 1.0 / weight, first))
    return np.concatenate(blocks)


def _by_steps(nested: Squares, q: Array, r: Array, units: Array, mean: float, first: int) -> np.ndarray:
    """The squared errors of as many rows at a time as stay in the processor's cache, one below the other."""
    n, p = (int(size) for size in q.shape)
    step = max(16, space_of(q).budget(CACHED_BYTES) // (8 * p))
    errors = np.empty((n, p - first + 1), dtype_name(q))

    def stretch(part: slice) -> None:
        for start in range(part.start, part.stop, step):
            rows = slice(start, min(start + step, part.stop))
            errors[rows] = to_numpy(nested(q[rows, :], r[rows, :], units[rows, :], mean))

    in_parts(stretch, n, 2.0 * n * p * (PATH_COLUMNS + 2 * int(r.shape[1])) * isinstance(q, np.ndarray))
    return errors


def _left(q: Array, unit: Array, mean: float, first: int) -> tuple[Array, Array]:
    """Whether the other rows know anything about a row at each width, and 1 / (1 - leverage) where they do."""
    xp = namespace(q)
    left = 1.0 - unit * (xp.cumulative_sum(q * q, axis=1)[:, first - 1 :] + mean)
    known = left > LEAST_LEFT[dtype_name(q)]
    return known, 1.0 / xp.where(known, left, xp.ones_like(left))


def _by_outputs(c: Array, first: int) -> Squares:
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


def _by_products(c: Array, first: int) -> Squares:
    """|r - fit|^2 over all outputs at once, with fit_p = fit_(p-1) + q_p c_p:

    |fit_p|^2 - 2 r.fit_p grows by q_p (2 fit_(p-1).c_p + q_p |c_p|^2 - 2 r.c_p), and fit_(p-1) is the fit of all blocks
    of columns before p's, with the columns before p in its own, whose part is a product with the triangle of c c'.
    """
    xp = namespace(c)
    p, lengths = int(c.shape[0]), xp.sum(c * c, axis=1)
    step = PATH_COLUMNS if isinstance(c, np.ndarray) else max(PATH_COLUMNS, p // 16)  # a GPU wants few calls
    blocks = [slice(a, min(a + step, p)) for a in range(0, p, step)]
    triangles = [xp.triu(c[block, :] @ c[block, :].mT, k=1) for block in blocks]

    def squares(q: Array, r: Array, unit: Array, mean: float) -> Array:
        known, factor = _left(q, unit, mean, first)
        left, ahead = r, []  # what the blocks before leave of the targets
        for block, triangle in zip(blocks, triangles, strict=True):
            part = q[:, block]
            ahead.append(part @ triangle - left @ c[block, :].mT)
            left = left - part @ c[block, :]
        growth = q * (2.0 * xp.concat(ahead, axis=1) + q * lengths)
        nothing = xp.sum(r * r, axis=1)[:, None]  # the error of a fit of zero
        total = nothing + xp.cumulative_sum(growth, axis=1)[:, first - 1 :]
        total = xp.where(total > 0, total, xp.zeros_like(total))
        return xp.where(known, total * factor**2, nothing + xp.zeros_like(total))

    return squares


@saveable
class WidthPath(NamedTuple):
    """Mean squared leave-one-out error by ridge and width: errors[ridge][k] belongs to width first + k.

    Of the ridge that was chosen by all rows that choose. Ridges that were only passed on the way to it were looked at
    by some of these rows, or, of a wide layer, at half of its width: what lies beyond is NaN.
    """

    first: int
    errors: dict[float, np.ndarray]
    ridge: float
    """The one chosen."""
    standard_errors: np.ndarray | None = None
    """Of errors[ridge]."""


def beside(path: WidthPath, *others: WidthPath) -> WidthPath:
    """The path with the ridges that others alone have; NaN where these end before it."""
    count, errors = len(path.errors[path.ridge]), dict(path.errors)
    for other in reversed(others):
        for ridge in other.errors.keys() - errors.keys():
            errors[ridge] = np.full(count, np.nan)
            errors[ridge][: len(other.errors[ridge])] = other.errors[ridge]
    return path._replace(errors=dict(sorted(errors.items())))


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
    `Scored`), or of groups of them.
    """

    def errors_at(ridge: float) -> np.ndarray | None:
        factor = factors.at(ridge)
        if factor.V is not None:  # not positive definite at so small a ridge: no nested factors
            return None
        return width_errors(factor, zbar, factors.weight, scale, batches, first)

    width = int(factors.G.shape[0])
    search = _Search(errors_at, ridges, width - first + 1, chooser, max(rows_stood_for(chooser, unit), 1.0))
    k = walk(ridges, near or FIRST_RIDGE, search.beats)
    chosen, ridge = search.at(k), ridges[k]
    path = WidthPath(first, dict(sorted(search.means.items())), ridge)
    if chosen is None:
        return width, ridge, path
    mean, (rows, best) = path.errors[ridge], chosen
    error = np.sqrt(np.maximum(search.mean_of(rows, np.square) - mean**2, 0.0) / search.count)
    return first + search.narrowest(rows, mean, best), ridge, path._replace(standard_errors=error)


@dataclass
class _Search:
    """Errors of the scored rows at every width, for one ridge after another."""

    errors_at: Callable[[float], np.ndarray | None]
    """From a ridge to the errors of the rows (down) at every width (across); None where it has no nested factors."""
    ridges: list[float]
    widths: int
    chooser: np.ndarray
    count: float
    """How many rows the chooser stands for."""
    means: dict[float, np.ndarray] = field(default_factory=dict)
    """Mean errors by ridge, at every width."""
    held: dict[int, tuple[np.ndarray, int] | None] = field(default_factory=dict)
    """Answers of `at` for two neighbouring ridges at most: they are many numbers."""

    def at(self, k: int) -> tuple[np.ndarray, int] | None:
        """(errors of the rows, the place of the best width) for ridge k; None where no width can be told."""
        if k not in self.held:
            self.held = {other: answer for other, answer in self.held.items() if abs(other - k) == 1}
            rows = self.errors_at(self.ridges[k])
            mean = np.full(self.widths, np.inf) if rows is None else self.mean_of(rows)
            self.means[self.ridges[k]] = mean
            self.held[k] = None if rows is None or not np.isfinite(mean).all() else (rows, int(np.argmin(mean)))
        return self.held[k]

    def beats(self, k: int, other: int) -> bool:
        """Whether the best width at ridge k beats that at the other one."""
        mine, theirs = self.at(k), self.at(other)
        if mine is None or theirs is None:
            return mine is not None
        (rows, best), (other_rows, other_best) = mine, theirs
        return bool(clearly_lower(rows[:, best], other_rows[:, other_best], self.chooser, self.count))

    def narrowest(self, rows: np.ndarray, mean: np.ndarray, best: int) -> int:
        """The place of the smallest width that ties with the best."""
        lead = mean[: best + 1] - mean[best]
        squares = self.mean_of(rows, lambda part: (part[:, : best + 1] - part[:, best : best + 1] - lead) ** 2)
        return int(np.flatnonzero(lead <= TIE * np.sqrt(squares / self.count))[0])

    def mean_of(self, rows: np.ndarray, f: Callable[[np.ndarray], np.ndarray] = lambda part: part) -> np.ndarray:
        """Weighted mean of f(rows) in float64, some rows at a time: they are many numbers."""
        step = max(1, CACHED_BYTES // (8 * rows.shape[1]))
        total: np.ndarray = np.zeros(())
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            total = total + self.chooser[part] @ f(rows[part].astype(np.float64, copy=False))
        return total / self.chooser.sum()
