"""Prediction intervals as wide as each row asks for, from leave-one-out residuals (the jackknife, locally weighted).

With r_i the leave-one-out residual of row i and f_i the first features that the output layer sees of it, a ridge models
how large residuals are,

    log(|r| + c) ~ a + f . b,    s(x) = exp(a + f . b),

and its own leave-one-out gives s_i, which has not seen r_i. Half an interval is s(x) q(prediction): q is the quantile
of |r_i| / s_i among rows that are predicted about as high, so that the rows of high and of low predictions are each
covered as often as was asked for.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._arrays import NUMPY, Array, namespace, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .calibration import weighted_quantile
from .factors import RidgeFactors
from .loo import best_ridge
from .moments import Moments
from .scaling import Scaling
from .scores import Scored, rows_stood_for

SCALE_COLUMNS = 300
"""Features that the size of residuals is modelled with, at most: the first, as neurons nest."""

SMALLEST_RIDGE = 1e-4

FLOOR = 0.1
"""What is added to residuals before the logarithm, in medians: none is too small to have one."""

BIN_ROWS, ROWS_BEYOND, MOST_BINS = 60, 6, 10
"""Quantiles are taken among at least so many rows, of which at least so many lie beyond; in at most so many bins."""


@saveable
@dataclass(frozen=True, eq=False)
class LocalScale:
    """How large residuals are about a row; an output whose residuals are no larger here than there has zeros."""

    coef: np.ndarray
    intercept: np.ndarray
    lowest: np.ndarray
    highest: np.ndarray
    """What it said of training rows: of others it says no more and no less."""
    left_out: np.ndarray
    """Logarithms for the scored rows, each by a model that has not seen its residual."""

    def __call__(self, F: Array) -> np.ndarray:
        """Of rows, by what the output layer sees of them: one column for each output."""
        xp, space = namespace(F), space_of(F)
        first = xp.astype(F[:, : len(self.coef)], xp.float64, copy=False)
        logs = to_numpy(first @ space.asarray(self.coef, "float64")) + self.intercept
        return np.exp(np.clip(logs, self.lowest, self.highest))

    def check_shapes(self, columns: int, rows: int, outputs: int) -> None:
        """An error where it does not belong to an output layer of so many columns, scored rows and outputs."""
        if len(self.coef) > columns:
            raise ValueError("a scale of features that are not there")
        check_shape(self.coef, len(self.coef), outputs)
        check_shape(self.left_out, rows, outputs)
        for part in (self.intercept, self.lowest, self.highest):
            check_shape(part, outputs)


def local_scale(F: np.ndarray, loo: Scored) -> LocalScale | None:
    """The scale for residuals of these scored rows, by leave-one-out; None with too few rows to model any."""
    if not loo.chooser.any():  # all rows are neurons
        loo = loo._replace(chooser=loo.weight)
    size = np.abs(loo.targets - loo.outputs)
    middle = np.array([weighted_quantile(column, loo.weight, 0.5) for column in size.T])
    alive = (middle > 0) & np.isfinite(size).all(axis=0)
    if rows_stood_for(loo.weight, loo.unit) < BIN_ROWS or not alive.any():
        return None
    logs = np.log(np.where(alive, size + FLOOR * middle, 1.0))
    moments = Moments(NUMPY)
    moments.add(F, logs, loo.weight)
    scaling = Scaling.standard(moments.mean_a, moments.variance_a())
    gram, cross = moments.gram(centred=True, scale=scaling.inverse), moments.cross(centred=True)
    factors = RidgeFactors(gram, cross * scaling.inverse[:, None], moments.weight)
    standard, spread = scaling(F), np.sqrt(moments.variance_b())
    ridge, left_out, _ = best_ridge(
        factors,
        moments.mean_b,
        np.where(spread > 0, spread, 1.0),
        lambda: iter([(standard, logs, loo.weight, loo.unit, loo.chooser, loo.group)]),
        SMALLEST_RIDGE,
    )
    helps = alive & [_fits_better(r, z, loo) for r, z in zip(size.T, left_out.outputs.T, strict=True)]
    coef = factors.at(ridge).coefficients() * scaling.inverse[:, None] * helps
    intercept = (moments.mean_b - moments.mean_a @ coef) * helps
    said = left_out.outputs * helps
    return LocalScale(coef, intercept, said.min(axis=0), said.max(axis=0), said)


def _fits_better(size: np.ndarray, logs: np.ndarray, loo: Scored) -> bool:
    """Whether residuals are likelier under Laplace's law with these scales than with one for all."""

    def unlikely(scale: np.ndarray) -> np.ndarray:
        scale = scale * np.average(size / scale, weights=loo.chooser)
        return np.log(scale) + size / scale

    return loo.lower(unlikely(np.exp(logs)), unlikely(np.ones(len(size))))


Quantile = Callable[[np.ndarray], np.ndarray]


def interval_quantiles(loo: Scored, scale: LocalScale | None, coverage: float, luck: float = 1.0) -> Quantile:
    """From predictions (a column for each output) to half of the interval in units of the local scale; without a scale,
    as in models of earlier versions, one number an output. Residuals of new rows are larger by `luck`."""
    size = luck * np.abs(loo.targets - loo.outputs)
    if scale is None:
        bins = 1
    else:
        least = max(BIN_ROWS, ROWS_BEYOND / (1.0 - coverage))
        bins = int(np.clip(rows_stood_for(loo.weight, loo.unit) / least, 1, MOST_BINS))
        size = size / np.exp(scale.left_out)
    curves = [
        _curve(predicted, column, loo, coverage, bins) for predicted, column in zip(loo.outputs.T, size.T, strict=True)
    ]
    return lambda outputs: np.stack(
        [np.interp(column, *curve) for column, curve in zip(outputs.T, curves, strict=True)], axis=1
    )


def _curve(
    predicted: np.ndarray, size: np.ndarray, loo: Scored, coverage: float, bins: int
) -> tuple[np.ndarray, np.ndarray]:
    """(middle prediction, quantile of the sizes) of bins of equal weight, by prediction; between them it is straight.

    Rows that are neurons count: the choice of the network has made the others' residuals a little too small. The level
    is raised by one row, as in conformal prediction: the new row is one more.
    """
    order = np.argsort(predicted, kind="stable")
    mass = np.cumsum(loo.weight[order])
    bin_of = np.minimum(bins * (mass - 0.5 * loo.weight[order]) / mass[-1], bins - 1).astype(int)
    middles, quantiles = [], []
    for k in range(bins):
        rows = order[bin_of == k]
        weight = loo.weight[rows]
        n = rows_stood_for(weight, loo.unit[rows])
        if n == 0:
            continue
        level = min(1.0, coverage * (n + 1) / n)
        middles.append(weighted_quantile(predicted[rows], weight, 0.5))
        quantiles.append(weighted_quantile(size[rows], weight, level))
    if (np.diff(middles) <= 0).any():  # many rows are predicted the same
        return _curve(predicted, size, loo, coverage, 1)
    return np.array(middles), np.array(quantiles)
