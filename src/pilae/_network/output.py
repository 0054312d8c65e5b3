"""The output layer: eq (12) solved from its sums, and what rounding leaves of rows that were taken out of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .._arrays import Array, cholesky, dtype_name, matmul, namespace, plus_diagonal, solve_triangular
from .._base.saveable import saveable
from .._data.rows import Block
from .._engine.class_sums import ClassSums
from .._engine.factors import RidgeFactors
from .._engine.following import Following
from .._engine.intervals import LocalScale
from .._engine.moments import Moments
from .._engine.scaling import Scaling, reciprocal
from .._engine.scores import Scored
from .._engine.waiting import Waiting
from .._engine.widths import WidthPath
from .network import FeatureCache
from .neurons import HiddenLayer

Sums = Moments | ClassSums
"""What rows are added to."""

NARROW = 512
"""Up to so many features the output layer's product costs next to nothing in float64."""

LEFT_OVER = {"float64": 1e-4, "float32": 1.0}
"""Rounding that forgotten rows leave may move the output layer by so much of itself unsaid, by dtype of products."""

INDEFINITE = {"float64": 1e-9, "float32": 1e-4}
"""Negative directions of a Gram matrix up to this share of the most it ever held are rounding, by dtype of products."""

LOST_DIGITS = 1e-13
"""What is left of a sum after all of it was taken out again, as a share of the most it held."""

GROWN = {"float64": 1e3, "float32": 10.0}
"""Times the spread that is held a feature may have, by dtype of products: squares beyond leave the others no digit."""

LATE = 10.0
"""Times the largest scale of the others is the most that is held for a feature which varies later."""

UNSEEN_VARIANCE = 1e-6
"""A column that seems constant may vary by this share of its mean square, or of 1, without anybody's loss."""


@saveable
@dataclass
class Output:
    """A ridge solution on standardised features, eq (12), with its leave-one-out results.

    `ridge` is per unit of weight: lambda = ridge * sum(w).
    """

    coef: Array
    intercept: Array
    ridge: float
    route: str
    loo: Scored | None
    scored_rows: np.ndarray | None
    """Which training rows `loo` is about."""
    path: dict[float, float]
    """Squared leave-one-out error of every ridge tried (the lowest over widths)."""
    guo2003: float | None = None
    """What eq (3) would have taken, where it was asked for."""
    width_path: WidthPath | None = None
    moments: Moments | None = None
    local_scale: LocalScale | None = None
    """How large residuals are about a row, where targets are numbers."""
    solved: bool = True
    """Whether coef and intercept are those of `moments`: sums that change only mark them stale."""
    held: Array | None = None
    """1 / scale of each feature where rows fade (see `holding`); None where scales are those of the sums."""
    by_class: ClassSums | None = None
    """What `moments` are made of where classes are balanced."""
    waiting: Waiting | None = None
    """The sums and rows that are to join them, where some are."""
    following: Following | None = None
    """The solution that coef and intercept are, where they follow rows that `solved` knows nothing of."""

    def __getstate__(self) -> dict[str, Any]:
        """As it is kept: rows do not wait in files."""
        return vars(self) | {"moments": self.sums(), "waiting": None, "following": None}

    def sums(self) -> Moments | None:
        """Of all rows that are in."""
        return self.moments if self.waiting is None else self.waiting.total()

    def __call__(self, F: Array) -> Array:
        """Narrow features are summed in float64: with a small ridge large terms of either sign cancel."""
        if F.shape[1] > NARROW or (isinstance(F, np.ndarray) and F.dtype == np.float64):
            return matmul(F, self.coef) + self.intercept
        xp = namespace(F)
        F, coef, intercept = (xp.astype(part, xp.float64, copy=False) for part in (F, self.coef, self.intercept))
        return xp.astype(F @ coef + intercept, self.coef.dtype, copy=False)

    def settled(self, hidden: HiddenLayer | None) -> Output:
        """All rows in the sums, and solved exactly."""
        moments = self.sums()
        new = replace(self, moments=moments, waiting=None, following=None)
        if not new.solved and moments is not None and moments.count:
            new.solve(moments, hidden)
        return new

    def with_row_by_row(self, waiting: Waiting, hidden: HiddenLayer | None) -> Output:
        """With rows that have just begun to wait, and a solution that has followed them."""
        arrived, following = waiting.rows[-1], self.following
        level = self.waiting.level if self.waiting is not None else 0.0
        for f, z, w in zip(arrived.F, arrived.Z, arrived.w, strict=True):
            if following is not None:
                following = following.after(f.astype(float), z.astype(float), float(w), math.exp(arrived.level - level))
            level = arrived.level  # those of one call have weights by age already
        if following is not None:
            coef, intercept = (part.astype(self.coef.dtype) for part in following.solution())
            return replace(self, waiting=waiting, following=following, coef=coef, intercept=intercept, solved=False)
        moments = waiting.total()
        scaling, factors = ridge_factors(moments, hidden, held=self.held)
        factor = factors.at(self.ridge)
        coef, intercept = solution(factors, self.ridge, scaling, moments, dtype_name(self.coef))
        if factor.L is not None:
            means = moments.mean_a, moments.mean_b
            standard = factor.coefficients()
            weight = moments.weight
            following = Following(factor.L, scaling.inverse, *means, standard, weight, weight, self.ridge)
        solved = {"coef": coef, "intercept": intercept, "route": factors.route, "solved": True}
        return replace(self, moments=moments, waiting=None, following=following, **solved)

    def solve(self, moments: Moments, hidden: HiddenLayer | None) -> None:
        """Solve it anew from these sums, at the ridge it has; means and scales are those of the sums."""
        scaling, factors = ridge_factors(moments, hidden, held=self.held)
        self.coef, self.intercept = solution(factors, self.ridge, scaling, moments, dtype_name(self.coef))
        self.route, self.solved = factors.route, True

    def without_rows(self) -> Output:
        """Not solved, without what is known of single rows and what was solved with them."""
        coef, intercept = 0.0 * self.coef, 0.0 * self.intercept  # of their shapes
        unsolved = replace(self, coef=coef, intercept=intercept, solved=False)
        return replace(unsolved, loo=None, scored_rows=None, local_scale=None, following=None)

    def holding(self, moments: Moments, hidden: HiddenLayer | None) -> Output:
        """With the scales that its features have in these sums held from now on, but for those that have one already.

        Where rows fade, a feature that falls silent would keep its coefficient under a scale that shrinks with it, and
        blow up the first row that excites it again. Under a scale that is held, its coefficient fades with its rows.
        """
        inverse = scaling_of(moments, hidden).inverse
        if self.held is not None:
            xp, has_one = moments.space.xp, self.held > 0
            if bool(
                xp.any(has_one)
            ):  # the first row that excites a feature may be absurd: it fades, its scale would not
                least = xp.min(xp.where(has_one, self.held, xp.full_like(self.held, np.inf))) / LATE
                inverse = xp.where(inverse > 0, xp.maximum(inverse, least), inverse)
            inverse = xp.where(has_one, self.held, inverse)
        return replace(self, held=inverse)


def add_features(cache: FeatureCache, hidden: HiddenLayer | None, moments: Sums, block: Block) -> None:
    """Add what the output layer sees of a block."""
    X = cache(block)
    moments.add(X if hidden is None else hidden(X), block.Z, block.w, scratch=hidden is not None)


def features_of(network: Callable[[Array], Array], hidden: HiddenLayer | None) -> Callable[[Array], Array]:
    """From rows to what the output layer sees."""
    return network if hidden is None else lambda X: hidden(network(X))


def scaling_of(moments: Moments, hidden: HiddenLayer | None) -> Scaling:
    """That of the features: hidden neurons, and what comes before them.

    A neuron that hardly ever fires is not stretched to unit variance: what one training row gave it would be blown up,
    and leave-one-out could not see it.
    """
    least = None
    if hidden is not None:
        xp, device = moments.space
        size, spread = int(moments.sum_a.shape[0]), hidden.least_spread(moments.weight)
        least = spread * xp.astype(xp.arange(size, device=device) >= hidden.links, xp.float64)
    return Scaling.standard(moments.mean_a, moments.variance_a(), least)


def standardised(
    moments: Moments, hidden: HiddenLayer | None, held: Array | None = None
) -> tuple[Scaling, Array, Array]:
    """(scaling, G, C) of the standardised features, or of those divided by scales that are held."""
    scaling = scaling_of(moments, hidden) if held is None else Scaling(moments.mean_a, _bounded(moments, held))
    G = moments.gram(centred=True, scale=scaling.inverse)
    return scaling, G, moments.cross(centred=True) * scaling.inverse[:, None]


def one_scale(moments: Moments) -> Array:
    """For each feature 1 / the root of their mean variance."""
    xp, variance = moments.space.xp, moments.variance_a()
    return xp.zeros_like(variance) + reciprocal(xp.sqrt(xp.mean(variance)))


def _bounded(moments: Moments, held: Array) -> Array:
    """Scales that are held, but for features that have grown out of all proportion: something absurd that fades would
    for long be all that a Gram matrix under the old scales knows of."""
    xp, spread = moments.space.xp, moments.variance_a() ** 0.5
    return xp.where(spread * held > GROWN[moments.product], GROWN[moments.product] * reciprocal(spread), held)


def ridge_factors(
    moments: Moments, hidden: HiddenLayer | None, *, nested: bool = True, held: Array | None = None
) -> tuple[Scaling, RidgeFactors]:
    """What a ridge solution on the standardised features is made from; `nested`: for every width up to all."""
    scaling, G, C = standardised(moments, hidden, held)
    return scaling, RidgeFactors(G, C, moments.weight, nested=nested)


def solution(
    factors: RidgeFactors, ridge: float, scaling: Scaling, moments: Moments, dtype: str
) -> tuple[Array, Array]:
    """(coefficients, intercept) on features as they come, neither centred nor scaled."""
    coef = factors.at(ridge).coefficients() * scaling.inverse[:, None]
    asarray = moments.space.asarray
    return asarray(coef, dtype), asarray(moments.mean_b - moments.mean_a @ coef, dtype)


def definite(moments: Moments, hidden: HiddenLayer | None, held: Array | None = None) -> bool:
    """Whether these sums can be those of rows: neither their Gram matrix nor what it leaves of the targets' squares has
    a negative direction, beyond what rounding has left of the most they ever held."""
    scaling, G, C = standardised(moments, hidden, held)
    xp, share = moments.space.xp, INDEFINITE[moments.product]
    most = max(moments.heaviest, float(xp.max(moments.largest * scaling.inverse**2)))
    L = cholesky(plus_diagonal(G, share * most))
    if L is None:
        return False
    left = moments.variance_b() * moments.weight - xp.sum(solve_triangular(L, C) ** 2, axis=0)
    return bool(xp.all(left >= -share * xp.max(moments.largest_b)))


def has_lost_columns(moments: Moments, scaling: Scaling) -> bool:
    """Whether a column that seems constant may well vary, by less than the rounding of what was taken out."""
    xp = moments.space.xp
    for dead, was, mean in (
        (scaling.inverse == 0, moments.largest, moments.mean_a),
        (moments.variance_b() == 0, moments.largest_b, moments.mean_b),
    ):
        if bool(xp.any(dead & (LOST_DIGITS * was > UNSEEN_VARIANCE * moments.weight * (mean**2 + 1)))):
            return True
    return False


def blurred(moments: Moments, hidden: HiddenLayer | None, ridge: float, held: Array | None = None) -> bool:
    """Whether the rounding of what these sums held once, and no longer do, may move the output layer by more than
    LEFT_OVER of itself: where something huge was taken out of them, they have lost the digits of what stays."""
    scaling, G, _ = standardised(moments, hidden, held)
    xp, p = moments.space.xp, int(G.shape[0])
    if has_lost_columns(moments, scaling):
        return True
    most = float(xp.max(moments.largest * scaling.inverse**2))
    beside = Scaling.standard(moments.mean_b, moments.variance_b()).inverse ** 2
    once = max(most, (most * float(xp.max(moments.largest_b * beside))) ** 0.5)
    noise = float(np.finfo(moments.product).eps) * p**0.5 * once / LEFT_OVER[moments.product]
    return noise > ridge * moments.weight and cholesky(plus_diagonal(G, ridge * moments.weight - noise)) is None
