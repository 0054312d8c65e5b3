"""Targets on a scale that is linear in the middle and logarithmic in the tails.

Where single targets are many times as far from the middle as most, they decide alone what squared errors prefer. On the
scale t = asinh((y - m) / s), with m and s the median and the spread of most targets, they are a few times as far. A
network fitted there answers with means of t; the mean of y is found by smearing: with leave-one-out residuals e of t,

    E[y] = m + s E[sinh(t + e)] = m + s (sinh(t) E[cosh e] + cosh(t) E[sinh e]),

two numbers for each output. The scale is fixed when it is found, so that sums over rows stay sums over rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .._arrays import Array, namespace, space_of
from .._base.saveable import check_shape, saveable
from .calibration import weighted_quantile
from .scaling import Extent
from .scores import Scored, clearly_lower

HEAVY = 10.0
"""Residuals of this kurtosis (3 where they are normal) are those of single rows."""

MOST = 0.99
"""Errors larger than those of this share of the rows are cut to it before scales are compared."""

CERTAIN = 2.0
"""Standard errors of a difference that is no chance."""

NORMAL_MEDIAN = 0.6745
"""Median of |x| for a standard normal x."""

BEYOND = 1.0
"""Ends of intervals go no further than this beyond all targets seen, on the scale: about e times as far out."""

LARGEST = 80.0
"""Outputs beyond it, e^80 spreads from the middle, are cut to it: no number overflows in float32."""


@saveable
@dataclass(frozen=True, eq=False)
class Curve:
    """One scale for each output."""

    middle: np.ndarray
    spread: np.ndarray
    even: np.ndarray
    """E[cosh e]."""
    odd: np.ndarray
    """E[sinh e]."""
    low: np.ndarray
    """The lowest t that was seen, and the highest: a mean of targets is not beyond all of them, where a network on a
    logarithmic scale would go far in a step."""
    high: np.ndarray

    def onto(self, y: np.ndarray) -> np.ndarray:
        """t of targets, rows x outputs."""
        return np.arcsinh((y - self.middle) / self.spread)

    def back(self, t: Array) -> Array:
        """The y that has this t."""
        xp, (middle, spread) = namespace(t), self._like(t, "middle", "spread")
        return middle + spread * xp.sinh(xp.clip(t, min=-LARGEST, max=LARGEST))

    def mean(self, t: Array) -> Array:
        """The mean of the y around an output t."""
        xp, (middle, spread, even, odd) = namespace(t), self._like(t, "middle", "spread", "even", "odd")
        low, high = self._like(t, "low", "high")
        t = self._seen(t)
        mean = middle + spread * (even * xp.sinh(t) + odd * xp.cosh(t))
        return xp.minimum(xp.maximum(mean, self.back(low)), self.back(high))  # smearing goes beyond t

    def ends(self, t: Array, half: Array) -> tuple[Array, Array]:
        """The lower and the upper y of an interval around an output t; the mean is between them."""
        xp, mean, t = namespace(t), self.mean(t), self._seen(t)
        low, high = (self.back(self._seen(end, BEYOND)) for end in (t - half, t + half))
        return xp.minimum(low, mean), xp.maximum(high, mean)

    def _seen(self, t: Array, beyond: float = 0.0) -> Array:
        """t, and not beyond those that were seen by more than that."""
        xp, (low, high) = namespace(t), self._like(t, "low", "high")
        return xp.minimum(xp.maximum(t, low - beyond), high + beyond)

    def _like(self, t: Array, *names: str) -> list[Array]:
        space = space_of(t)
        return [space.xp.astype(space.asarray(getattr(self, name)), t.dtype) for name in names]

    def smeared(self, loo: Scored) -> Curve:
        """With what is known of residuals."""
        e, w = np.clip(loo.targets - loo.outputs, -LARGEST, LARGEST), loo.weight / loo.weight.sum()
        return replace(self, even=w @ np.cosh(e), odd=w @ np.sinh(e))

    def of_users(self, loo: Scored) -> Scored:
        """Leave-one-out results in the user's units."""
        return loo._replace(targets=self.back(loo.targets), outputs=self.mean(loo.outputs))

    def check_shapes(self, n_outputs: int) -> None:
        for part in vars(self).values():
            check_shape(part, n_outputs)


def curve_for(loo: Scored, reach: Extent | None = None, *, always: bool = False) -> Curve | None:
    """A scale for targets whose residuals have heavy tails; None where no output's have, or no target varies. `reach`
    is the range of all targets, of which single ones may be beyond those of the scored rows."""
    w = loo.weight / loo.weight.sum()
    e = loo.targets - loo.outputs
    largest = np.max(np.abs(e), axis=0)
    e = e / np.where(largest > 0, largest, 1.0)  # no fourth power overflows
    if not always and not (w @ e**4 > HEAVY * (w @ e**2) ** 2).any():
        return None
    middle = _medians(loo.targets, w)
    away = np.abs(loo.targets - middle)
    spread = _medians(away, w) / NORMAL_MEDIAN
    spread = np.where(spread > 0, spread, w @ away)  # more than half of the targets are one number
    if not (spread > 0).all():
        return None
    there, ones = loo.targets[w > 0], np.ones_like(middle)
    ends = (there.min(axis=0), there.max(axis=0)) if reach is None else (reach.low, reach.high)
    low, high = (np.arcsinh((end - middle) / spread) for end in ends)
    return Curve(middle, spread, ones, 0.0 * ones, low, high)


def _medians(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    return np.array([weighted_quantile(column, weight, 0.5) for column in values.T])


def curve_is_better(plain: Scored, curved: Scored, scale: np.ndarray) -> bool:
    """Whether a network fitted on the other scale has the lower squared error on the same rows, in the user's units.

    Of a mean that single rows decide nobody knows much: so the errors beyond most are cut first, and the whole ones
    must only not speak against it by more than they can be known.
    """
    errors, others = (each.row_errors(scale) for each in (curved, plain))
    if not np.isfinite(errors).all():
        return False
    w = plain.weight / plain.weight.sum()
    most = max(weighted_quantile(each, w, MOST) for each in (errors, others))
    if not clearly_lower(np.minimum(errors, most), np.minimum(others, most), w, plain.n_choosers):
        return False
    worse = errors - others
    mean = float(w @ worse)
    return mean <= CERTAIN * (float(w @ (worse - mean) ** 2) / max(plain.n_choosers, 1.0)) ** 0.5
