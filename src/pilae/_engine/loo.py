r"""Leave-one-out of the output layer, exactly and without refitting.

With weights w, W = sum(w), standardised features F and targets Z centred by their weighted means,

    G = F'wF,  C = F'wZ,  L L' = G + lambda I,  q_i = L^-1 f_i,  c = L^-1 C,

the fit of row i is zbar + q_i . c, the leverage of one unit of weight is h_i = |q_i|^2 + 1/W, and with u_i units
of row i taken out the residual becomes

    (z_i - zbar - q_i . c) / (1 - u_i h_i).

**All widths at once.** The leading p x p block of L is the factor for the first p features, so partial sums over j of
q_ij^2 and q_ij c_j give the leave-one-out residual of every width for the price of one.

Anchors, feature scales and lambda are held; means are re-estimated. u_i is one unit of weight where a row has at
least that (a weight of 3 means three equal rows, and one of them is left out) and the whole row where it has less. Rows
that belong together leave together: see `group_loo`.
"""

from itertools import starmap

import numpy as np

from .._arrays import Array, dtype_name, full_products, matmul, namespace, to_numpy
from .._arrays.threads import in_parts
from .factors import Factor, RidgeFactors
from .group_loo import left_out as groups_left_out
from .scores import LEAST_LEFT, Batch, Batches, Scored, concatenated, walk

FIRST_RIDGE = 1e-2
"""The search for a ridge of a wide layer begins near this one."""


def leave_one_out(factors: RidgeFactors, ridges: list[float], zbar: Array, batches: Batches) -> list[Scored]:
    """Leave-one-out outputs of the scored rows for each ridge, in one go over them."""
    outputs, columns = _outputs(factors, ridges, zbar, batches)
    return [Scored(outputs[:, k, :].copy(), *columns) for k in range(len(ridges))]  # one stays, not all


def _outputs(factors: RidgeFactors, ridges: list[float], zbar: Array, batches: Batches) -> tuple[np.ndarray, list]:
    """The outputs, rows x ridges x outputs, and the other columns of `Scored`."""
    chosen = factors.at_each(ridges)
    mean, blocks = to_numpy(zbar), []
    for batch in starmap(Batch, batches()):
        left_out = _rows_left_out if batch.group is None else groups_left_out
        outputs = left_out(chosen, batch, mean, factors.weight)
        blocks.append((outputs, to_numpy(batch.Z), batch.w, batch.unit, batch.chooser, batch.group))
    outputs, *columns = map(concatenated, zip(*blocks, strict=True))
    return outputs, columns


def _rows_left_out(chosen: list[Factor], batch: Batch, mean: np.ndarray, weight: float) -> np.ndarray:
    """What the output layer without it says of each row: rows x factors x outputs."""
    z, least = to_numpy(batch.Z), LEAST_LEFT[dtype_name(batch.F)]
    with full_products(batch.F):
        fits, leverages = _fits_and_leverages(chosen, batch.F)
    left = 1.0 - batch.unit[:, None] * (leverages + 1.0 / weight)
    known = (left > least)[:, :, None]
    residuals = (z - mean)[:, None, :] - fits
    return np.where(known, z[:, None, :] - residuals / np.where(known, left[:, :, None], 1.0), mean)


def _fits_and_leverages(chosen: list[Factor], F: Array) -> tuple[np.ndarray, np.ndarray]:
    """q_i . c and |q_i|^2 of a block of rows: rows x factors x outputs, rows x factors."""
    xp, n, m = namespace(F), int(F.shape[0]), int(chosen[0].c.shape[1])
    if chosen[0].V is None:
        whitened = [(factor, factor.whiten(F)) for factor in chosen]
        of_each = [(to_numpy(matmul(q, f.like(F)[1])), to_numpy(xp.sum(q**2, axis=1))) for f, q in whitened]
        fits, leverages = (np.stack(part, axis=1) for part in zip(*of_each, strict=True))
        return fits, leverages
    inverses = xp.stack([1.0 / factor.root**2 for factor in chosen], axis=1)
    slopes = xp.concat([factor.c / factor.root[:, None] for factor in chosen], axis=1)
    V, inverses, slopes = (xp.astype(x, F.dtype, copy=False) for x in (chosen[0].V, inverses, slopes))
    leverages, fits = (np.empty((n, int(x.shape[1])), dtype_name(F)) for x in (inverses, slopes))

    def rows(part: slice) -> None:
        R = F[part, :] @ V  # one rotation serves all ridges: q = R / root
        leverages[part], fits[part] = to_numpy(R**2 @ inverses), to_numpy(R @ slopes)

    columns = V.shape[1] + inverses.shape[1] + slopes.shape[1]
    in_parts(rows, n, 2.0 * n * F.shape[1] * columns * isinstance(F, np.ndarray))
    return fits.reshape(n, len(chosen), m), leverages


def ridge_grid(smallest: float) -> list[float]:
    """Half decades from `smallest` to 10, per unit of weight on standardised features."""
    low = round(2 * np.log10(smallest))
    return [float(10.0 ** (k / 2)) for k in range(low, 3)]


def best_ridge(
    factors: RidgeFactors, zbar: Array, scale: np.ndarray, batches: Batches, smallest: float, near: float | None = None
) -> tuple[float, Scored, dict[float, float]]:
    """The ridge of lowest squared leave-one-out error: (ridge, its scores, error of every ridge tried).

    Of ridges that tie the largest is taken. Narrow layers evaluate the whole grid; wide ones, where each ridge
    costs a factorisation, walk in decades from `near` (1e-2), up as long as it does not hurt and down as long as it
    helps.
    """
    grid = ridge_grid(smallest)
    if factors.route.startswith("eigh"):
        return _best_of_all(factors, grid, zbar, scale, batches)
    tried: dict[float, Scored] = {}
    errors: dict[float, np.ndarray] = {}

    def beats(k: int, other: int) -> bool:
        for ridge in (grid[k], grid[other]):
            if ridge not in tried:
                [tried[ridge]] = leave_one_out(factors, [ridge], zbar, batches)
                errors[ridge] = tried[ridge].row_errors(scale)
        return tried[grid[k]].lower(errors[grid[k]], errors[grid[other]])

    grid = grid[::2]
    chosen = grid[walk(grid, near or FIRST_RIDGE, beats)]
    weight = tried[chosen].chooser / tried[chosen].chooser.sum()
    return chosen, tried[chosen], {r: float(weight @ errors[r]) for r in sorted(tried)}


def _best_of_all(
    factors: RidgeFactors, grid: list[float], zbar: Array, scale: np.ndarray, batches: Batches
) -> tuple[float, Scored, dict[float, float]]:
    """`best_ridge` where one decomposition serves the whole grid: all ridges at once."""
    outputs, columns = _outputs(factors, grid, zbar, batches)
    errors = np.sum(((columns[0][:, None, :] - outputs) / scale) ** 2, axis=2)
    scores = Scored(outputs[:, 0, :], *columns)
    means = scores.chooser / scores.chooser.sum() @ errors
    best = errors[:, int(np.argmin(means))]
    k = int(np.flatnonzero(~scores.lower_than_each(best, errors))[-1])
    return grid[k], scores._replace(outputs=outputs[:, k, :].copy()), dict(zip(grid, means.tolist(), strict=True))
