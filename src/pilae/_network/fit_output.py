"""The output layer fitted in one pass: its width and ridge chosen, and it is judged, by leave-one-out."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .._arrays import Array, matmul, namespace
from .._data.rows import Rows
from .._engine.factors import EIGEN_WIDTH, RidgeFactors
from .._engine.linalg import Gram
from .._engine.loo import Batches, best_ridge, leave_one_out, ridge_grid
from .._engine.moments import Moments, product_under
from .._engine.scaling import Scaling
from .._engine.scores import Scored
from .._engine.widths import WidthPath, best_width
from .head import LinearHead
from .network import FeatureCache
from .neurons import Hidden
from .output import Output, add_features, features_of, solution, standardised

SMALLEST_RIDGE = {"float32": 1e-5, "float64": 1e-6}
"""Lowest ridge tried, by dtype of the products: below it a float32 Gram need not be positive definite."""

FIRST_FIT_RIDGE = 1e-6
"""Of the fit whose residuals and weights eq (3) is evaluated with."""

CHOICE_ROWS = 2500
"""Of the scored rows, how many choose the width and the ridge; all of them judge what was chosen."""

CACHED_NUMBERS = 4_000_000
"""Features of scored rows are kept between ridges up to this many numbers, beyond it made anew."""


@dataclass
class HeadInput:
    """What a head is built on: rows, those to score, and what it sees of them; scaling, spectrum and anchors of its
    neurons."""

    rows: Rows
    scored: Rows
    features: Callable[[Array], Array]
    cache: FeatureCache
    scaling: Scaling | None
    gram: Gram | None
    anchors: Array

    @property
    def columns(self) -> int:
        return int(self.anchors.shape[1])


class OutputSpec(NamedTuple):
    """How to solve an output layer."""

    ridge: float | str
    """A number, "auto" (lowest squared leave-one-out error) or "guo2003" (eq 3)."""
    scale: np.ndarray
    """What one unit of error is for each output."""
    nested: bool = False
    """Whether the width is chosen too, from the whole width path."""
    keep: bool = False
    """Whether the sums stay with the layer."""
    near: float | None = None
    """A ridge to begin with."""
    raw_columns: int | None = None
    """The columns of the network's input: with them eq (3) is evaluated too."""


def fit_output(given: HeadInput, hidden: Hidden | None, neurons: np.ndarray, spec: OutputSpec) -> LinearHead:
    """Solve the output layer in one pass, and score it by leave-one-out; `neurons` says which scored rows became
    neurons."""
    return _OutputFit(given, hidden, neurons, spec).head()


class _OutputFit:
    """One output layer on its way: its sums, then its width, its ridge, its leave-one-out results."""

    def __init__(self, given: HeadInput, hidden: Hidden | None, neurons: np.ndarray, spec: OutputSpec) -> None:
        self.given, self.hidden, self.spec = given, hidden, spec
        rows, ridge = given.rows, spec.ridge
        self.smallest = SMALLEST_RIDGE[rows.dtype]
        width = given.columns if hidden is None else hidden.columns
        self.moments: Moments = rows.total(
            partial(
                Moments,
                rows.space,
                product=product_under(self.smallest if isinstance(ridge, str) else ridge, rows.space, rows.dtype),
            ),
            partial(add_features, given.cache, hidden),
            f"output layer, {width} columns",
            width,
        )
        given.cache.release()
        self.chooser, self.few = chooser_of(given.scored, neurons), given.scored.first(CHOICE_ROWS)

    def head(self) -> LinearHead:
        spec, width_path = self.spec, None
        ridge = spec.ridge
        if spec.nested:
            best, width_path = self._choose_width()
            ridge = best if ridge == "auto" else ridge
        moments = self.moments
        scaling, G, C = standardised(moments, self._links)
        factors = RidgeFactors(G, C, moments.weight, nested=spec.nested)
        literal = None
        if spec.raw_columns is not None and (ridge == "guo2003" or factors.route == "eigh"):  # else one more factor
            literal = guo2003(copy.copy(factors), G, C, moments, spec.raw_columns)
        value, loo, path = self._choose_ridge(factors, scaling, literal if ridge == "guo2003" else ridge)
        if width_path is not None:
            path = {r: float(e.min()) for r, e in width_path.errors.items()} | {value: loo.squared_error(spec.scale)}
        coef, intercept = solution(factors, value, scaling, moments, self.given.rows.dtype)
        output = Output(
            coef=coef,
            intercept=intercept,
            ridge=value,
            route=factors.route,
            loo=loo,
            scored_rows=self.given.scored.numbers,
            guo2003=literal,
            path=path,
            width_path=width_path,
            moments=moments if spec.keep else None,
        )
        return LinearHead(self.hidden, output)

    @property
    def _links(self) -> int | None:
        return None if self.hidden is None else self.hidden.links

    def _choose_width(self) -> tuple[float, WidthPath]:
        """Cut the layer to its best width. The best ridge, and the whole path."""
        hidden, few, ridge = self.hidden, self.few, self.spec.ridge
        assert hidden is not None
        assert few.unit is not None
        assert few.weight is not None
        at = np.flatnonzero(self.chooser[: few.n] > 0)
        choosers = few.take(at, few.weight[at], few.unit[at])  # rows that are neurons choose no width
        scaling, G, C = standardised(self.moments, hidden.links)
        grid = ridge_grid(self.smallest)[:: 1 if hidden.columns <= EIGEN_WIDTH else 2]
        width, best, path = best_width(
            RidgeFactors(G, C, self.moments.weight, nested=True),
            self.moments.mean_b,
            self.spec.scale,
            self._batches(choosers, scaling, self.chooser[at]),
            self.chooser[at],
            few.unit[at],
            grid if isinstance(ridge, str) else [max(float(ridge), self.smallest)],
            first=hidden.links + 1,
            near=self.spec.near,
        )
        self.moments, self.hidden = self.moments.leading(width), hidden.leading(width)
        return best, path

    def _choose_ridge(
        self, factors: RidgeFactors, scaling: Scaling, ridge: float | str | None
    ) -> tuple[float, Scored, dict[float, float]]:
        """(ridge, leave-one-out results with it, squared error of every ridge tried)."""
        mean, scale, scored = self.moments.mean_b, self.spec.scale, self.given.scored
        path: dict[float, float] = {}
        if ridge == "auto":
            few = self._batches(self.few, scaling, self.chooser)
            value, loo, path = best_ridge(factors, mean, scale, few, self.smallest, self.spec.near)
        else:
            assert not isinstance(ridge, str)
            assert ridge is not None
            value = float(ridge)
        if ridge != "auto" or self.few is not scored:
            [loo] = leave_one_out(factors, [value], mean, self._batches(scored, scaling, self.chooser, once=True))
        return value, loo, path or {value: loo.squared_error(scale)}

    def _batches(self, scored: Rows, scaling: Scaling, chooser: np.ndarray, *, once: bool = False) -> Batches:
        return scored_batches(scored, features_of(self.given.features, self.hidden), scaling, chooser, once=once)


def score_output(head: LinearHead, features: Callable[[Array], Array], scored: Rows) -> Scored:
    """Leave-one-out of the output layer as it is now, on rows that are in its sums and are no neurons of it."""
    moments = head.output.moments
    assert moments is not None
    scaling, G, C = standardised(moments, head.links)
    factors = RidgeFactors(G, C, moments.weight, nested=True)
    chooser = chooser_of(scored, np.zeros(scored.n, bool))
    batches = scored_batches(scored, features, scaling, chooser, once=True)
    [loo] = leave_one_out(factors, [head.output.ridge], moments.mean_b, batches)
    return loo


def chooser_of(scored: Rows, neurons: np.ndarray) -> np.ndarray:
    """Weights of the scored rows that are not neurons, raised so that every class keeps its weight.

    A class of which hardly any row is left (anchors take classes in turn, so rare ones are used up first) counts with
    all its rows.
    """
    assert scored.weight is not None
    others = ~neurons
    codes = np.zeros(len(others), np.int64) if scored.codes is None else scored.codes
    chooser = np.where(others, scored.weight, 0.0)
    for c in np.unique(codes):
        members = codes == c
        left = members & others
        if left.sum() >= max(3, 0.2 * members.sum()):
            chooser[left] *= scored.weight[members].sum() / scored.weight[left].sum()
        else:
            chooser[members] = scored.weight[members]
    return chooser


def guo2003(factors: RidgeFactors, G: Array, C: Array, moments: Moments, d: int) -> float:
    """h_x of eq (3), the ridge per unit of weight, with residuals and weights of a first fit at FIRST_FIT_RIDGE.

    Taken literally it grows with d**4: on images it is far too large, and leave-one-out says so.
    """
    xp, total = namespace(G), moments.weight
    W = factors.at(FIRST_FIT_RIDGE).coefficients()
    targets = float(xp.sum(moments.variance_b())) * total
    residual = targets - 2 * float(xp.sum(W * C)) + float(xp.sum(W * matmul(G, W)))
    squares = float(xp.sum(W**2))
    if squares <= 0:
        return 0.0
    return d**2 * (1 + (d - 1) ** 2) * max(residual, 0.0) / (total * squares)


def scored_batches(
    scored: Rows, features: Callable[[Array], Array], scaling: Scaling, chooser: np.ndarray, *, once: bool = False
) -> Batches:
    """The scored rows as leave-one-out takes them; kept between calls where they are few, unless `once`."""
    width = int(scaling.mean.shape[0])

    def batches() -> Iterator[tuple[Array, Array, np.ndarray, np.ndarray, np.ndarray]]:
        xp = scored.space.xp
        assert scored.weight is not None
        assert scored.unit is not None
        # held a few times over while they are whitened: smaller blocks than those of a pass
        for block in scored.blocks("leave-one-out", 4 * width):
            F = scaling(features(block.X))
            n = int(F.shape[0])
            part = slice(block.start, block.start + n)
            Z = xp.astype(block.Z, xp.float64, copy=False)
            yield F, Z, scored.weight[part], scored.unit[part], chooser[part]

    if once or scored.n * width > CACHED_NUMBERS:
        return batches
    cached = list(batches())  # several ridges will read them
    return lambda: iter(cached)
