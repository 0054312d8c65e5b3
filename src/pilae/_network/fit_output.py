"""The output layer fitted in one pass: its width and ridge chosen, and it is judged, by leave-one-out."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from .._arrays import Array
from .._data.groups import choosing, numbered, spans, spread
from .._data.rows import Rows
from .._engine.factors import EIGEN_WIDTH, RidgeFactors
from .._engine.loo import Batches, best_ridge, leave_one_out, ridge_grid
from .._engine.moments import Moments, product_under
from .._engine.scaling import Scaling
from .._engine.scores import Batch, Scored, concatenated, pooled
from .._engine.widths import WidthPath, beside, best_width
from .head import LinearHead
from .layer import squares_left
from .network import FeatureCache
from .neurons import HiddenLayer
from .output import Output, add_features, features_of, one_scale, ridge_factors, solution

SMALLEST_RIDGE = {"float32": 1e-5, "float64": 1e-6}
"""Lowest ridge tried, by dtype of the products: below it a float32 Gram need not be positive definite."""

WALK_ROWS, WIDE = 500, 2500
"""Of those that choose the width so many find the ridge before; of a layer of more columns than the second all do, at
half of its width, as there it is the factors that take the time."""

FIRST_FIT_RIDGE = 1e-6
"""Of the fit whose residuals and weights eq (3) is evaluated with."""

CHOICE_ROWS, TRIAL_CHOICE_ROWS = 1500, 600
"""Of the scored rows, how many choose the width and the ridge; all of them judge what was chosen. The second is for
candidates, which need the ridge alone and to a factor of three or so."""

CACHED_NUMBERS = 4_000_000
"""Features of scored rows are kept between ridges up to this many numbers, beyond it made anew."""


@dataclass
class HeadInput:
    """What a head is built on: rows, those to score, and what it sees of them, so many columns."""

    rows: Rows
    scored: Rows
    cache: FeatureCache
    columns: int


class OutputSpec(NamedTuple):
    """How to solve an output layer."""

    ridge: float | str
    """A number, "auto" (lowest squared leave-one-out error) or "guo2003" (eq 3)."""
    scale: np.ndarray
    """What one unit of error is for each output."""
    nested: bool = False
    """Whether the width of hidden neurons is chosen too, from the whole width path."""
    keep: bool = False
    """Whether the sums stay with the layer."""
    near: float | None = None
    """A ridge to begin with."""
    raw_columns: int | None = None
    """The columns of the network's input: with them eq (3) is evaluated too."""
    strict: bool = False
    """Whether rows that shaped the features never choose, not even where no other row of their class is left."""
    choice_rows: int = CHOICE_ROWS
    """How many rows choose width and ridge."""
    one_scale: bool = False
    """Whether one scale is that of all features: of coordinates of a space whose axes say nothing."""


class OutputFit:
    """One output layer on its way: its sums, then its width, its ridge, its leave-one-out results."""

    def __init__(
        self, head_input: HeadInput, hidden: HiddenLayer | None, neurons: np.ndarray, spec: OutputSpec
    ) -> None:
        self.input, self.hidden, self.spec = head_input, hidden, spec
        # the first axes hold most of what varies, so small ridges matter
        self.smallest = SMALLEST_RIDGE["float64" if spec.one_scale else head_input.rows.dtype]
        self.moments: Moments = self._summed()
        self._turn()
        self.chooser = chooser_of(self.input.scored, neurons, strict=spec.strict)
        self.chosen: tuple[Scaling, RidgeFactors] | None = None
        """Of the width that was chosen, with the factor of the ridge that was."""
        self.few, self.few_choose = _few(self.input.scored, self.chooser, spec.choice_rows)

    def _turn(self) -> None:
        """Put scored rows where the solution is found, if that is elsewhere."""

    def _summed(self) -> Moments:
        """All that is needed of the rows."""
        rows, ridge = self.input.rows, self.spec.ridge
        lowest = self.smallest if isinstance(ridge, str) else ridge
        product = "float64" if self.spec.one_scale else product_under(lowest, rows.space, rows.dtype)
        return self._sums(partial(Moments, rows.space, product=product))

    def _sums(self, make: Callable[[], Moments]) -> Moments:
        width = self.input.columns if self.hidden is None else self.hidden.columns
        add = partial(add_features, self.input.cache, self.hidden)
        sums = self.input.rows.total(make, add, f"output layer, {width} columns", width)
        self.input.cache.release()
        return sums

    def head(self) -> LinearHead:
        spec, ridge, width_path = self.spec, None, None
        if spec.nested and self.hidden is not None:
            ridge, width_path = self._choose_width(self.hidden)
        scaling, factors = self.chosen or self._factors()
        literal = None  # where it would take one more factor it is evaluated for those who ask for it alone
        if spec.raw_columns is not None and (spec.ridge == "guo2003" or factors.route == "eigh"):
            literal = guo2003(copy.copy(factors), self.moments, spec.raw_columns)
        if spec.ridge != "auto":
            ridge = literal if isinstance(spec.ridge, str) else float(spec.ridge)
        ridge, loo, path = self._choose_ridge(factors, scaling, ridge)
        if width_path is not None:
            lowest = {tried: float(np.nanmin(errors)) for tried, errors in width_path.errors.items()}
            path = lowest | {ridge: loo.squared_error(spec.scale)}
        coef, intercept = self._solution(factors, ridge, scaling)
        output = Output(
            coef=coef,
            intercept=intercept,
            ridge=ridge,
            route=factors.route,
            loo=loo,
            scored_rows=self.input.scored.numbers,
            guo2003=literal,
            path=path,
            width_path=width_path,
            moments=self._kept_sums(),
        )
        return LinearHead(self.hidden, output)

    def _factors(self) -> tuple[Scaling, RidgeFactors]:
        held = one_scale(self.moments) if self.spec.one_scale else None
        return ridge_factors(self.moments, self.hidden, nested=False, held=held)

    def _solution(self, factors: RidgeFactors, ridge: float, scaling: Scaling) -> tuple[Array, Array]:
        return solution(factors, ridge, scaling, self.moments, self.input.rows.dtype)

    def _kept_sums(self) -> Moments | None:
        """Those that stay with the layer."""
        return self.moments if self.spec.keep else None

    def _choose_width(self, hidden: HiddenLayer) -> tuple[float, WidthPath]:
        """Cut the hidden layer to its best width. The best ridge, and the whole path.

        What takes time are factors, and rows that are whitened: so some of the rows find the ridge first, or all of
        them at half of a wide layer, as the whole one wants no smaller ridge.
        """
        ridge, moments, near = self.spec.ridge, self.moments, self.spec.near
        at = np.flatnonzero(spread(self.few_choose > 0, self.few.group))  # rows that are neurons choose no width
        walkers = at[:WALK_ROWS] if len(at) > 2 * WALK_ROWS and self.few.group is None else at
        ridges = ridge_grid(self.smallest)[:: 1 if hidden.columns <= EIGEN_WIDTH else 2]
        if not isinstance(ridge, str):
            ridges = [max(float(ridge), self.smallest)]
        scaling, factors = ridge_factors(moments, hidden)
        before: list[WidthPath] = []
        if len(ridges) > 1 and hidden.columns > WIDE:
            half = hidden.leading(hidden.links + hidden.width // 2)
            of_half = ridge_factors(moments.leading(half.columns), half)
            _, near, path = self._best_width(half, *of_half, at, ridges, near)
            del of_half
            ridges, before = [each for each in ridges if each >= near], [path]
        elif len(ridges) > 1 and walkers is not at:
            _, near, path = self._best_width(hidden, scaling, factors, walkers, ridges, near)
            ridges, before = [near], [path]
        width, best, path = self._best_width(hidden, scaling, factors, at, ridges, near)
        self.chosen = scaling.leading(width), factors.leading(width)
        if width < hidden.columns:
            self.moments, self.hidden = moments.leading(width), hidden.leading(width)
        return best, beside(path, *before)

    def _best_width(
        self,
        hidden: HiddenLayer,
        scaling: Scaling,
        factors: RidgeFactors,
        at: np.ndarray,
        ridges: list[float],
        near: float | None,
    ) -> tuple[int, float, WidthPath]:
        """Width and ridge of this layer by these of the few rows."""
        weight, unit = (column[at] for column in weights_and_units(self.few))
        choosers, chooser, mean = self.few.take(at, weight, unit), self.few_choose[at], self.moments.mean_b
        features = features_of(self.input.cache.network, hidden)
        batches = scored_batches(choosers, features, scaling, chooser)
        if choosers.group is not None:
            chooser, _ = pooled(numbered(choosers.group), chooser)
            unit = chooser  # a group is one opinion
        about = factors, mean, self.spec.scale, batches, chooser, unit, ridges
        return best_width(*about, first=hidden.links + 1, near=near)

    def _choose_ridge(
        self, factors: RidgeFactors, scaling: Scaling, ridge: float | None
    ) -> tuple[float, Scored, dict[float, float]]:
        """(ridge, the best one where None is given, leave-one-out results with it, squared error of all tried)."""
        mean, scale, scored = self.moments.mean_b, self.spec.scale, self.input.scored
        path: dict[float, float] = {}
        if ridge is None:
            few = self._batches(self.few, scaling, self.few_choose)
            ridge, loo, path = best_ridge(factors, mean, scale, few, self.smallest, self.spec.near)
            if self.few is scored:
                return ridge, loo, path
            if scored.group is None:  # those that have chosen are scored already
                at = np.arange(self.few.n, scored.n)
                rest = self._batches(scored.subset(at), scaling, self.chooser[at], once=True)
                [more] = leave_one_out(factors, [ridge], mean, rest)
                return ridge, Scored(*map(concatenated, zip(loo, more, strict=True))), path
        [loo] = leave_one_out(factors, [ridge], mean, self._batches(scored, scaling, self.chooser, once=True))
        return ridge, loo, path or {ridge: loo.squared_error(scale)}

    def _batches(self, scored: Rows, scaling: Scaling, chooser: np.ndarray, *, once: bool = False) -> Batches:
        return scored_batches(scored, features_of(self.input.cache.network, self.hidden), scaling, chooser, once=once)


def _few(scored: Rows, chooser: np.ndarray, count: int) -> tuple[Rows, np.ndarray]:
    """The rows that choose width and ridge, and their weights in it: the first ones, or whole groups."""
    if scored.group is None:
        few = scored.first(count)
        return few, chooser[: few.n]
    at = choosing(scored.group, chooser > 0, count)
    return (scored, chooser) if len(at) == scored.n else (scored.subset(at), chooser[at])


def score_output(head: LinearHead, features: Callable[[Array], Array], scored: Rows) -> Scored:
    """Leave-one-out of the output layer as it is now, on rows that are in its sums and are no neurons of it."""
    moments = head.statistics("recalibrate")
    scaling, factors = ridge_factors(moments, head.hidden, held=head.output.held)
    chooser = chooser_of(scored, np.zeros(scored.n, bool))
    batches = scored_batches(scored, features, scaling, chooser, once=True)
    [loo] = leave_one_out(factors, [head.output.ridge], moments.mean_b, batches)
    return loo


def chooser_of(scored: Rows, neurons: np.ndarray, *, strict: bool = False) -> np.ndarray:
    """Weights of the scored rows that are not neurons, raised so that every class keeps its weight.

    A class of which hardly any row is left (anchors take classes in turn, so rare ones are used up first) counts with
    all its rows. With `strict` no weight is raised, and no row that is a neuron counts, unless all are.
    """
    others, (weight, _) = ~neurons, weights_and_units(scored)
    codes = np.zeros(len(others), np.int64) if scored.codes is None else scored.codes
    chooser = np.where(others, weight, 0.0)
    if strict:
        return chooser if chooser.any() else weight
    for c in np.unique(codes):
        members = codes == c
        left = members & others
        if left.sum() >= max(3, 0.2 * members.sum()):
            chooser[left] *= weight[members].sum() / weight[left].sum()
        else:
            chooser[members] = weight[members]
    return chooser


def weights_and_units(scored: Rows) -> tuple[np.ndarray, np.ndarray]:
    """Of scored rows; 1 each where none are head_input."""
    ones = np.ones(scored.n)
    return ones if scored.weight is None else scored.weight, ones if scored.unit is None else scored.unit


def guo2003(factors: RidgeFactors, moments: Moments, d: int) -> float:
    """h_x of eq (3), the ridge per unit of weight, with residuals and weights of a first fit at FIRST_FIT_RIDGE.

    Taken literally it grows with d**4: on images it is far too large, and leave-one-out says so.
    """
    xp, total = moments.space.xp, moments.weight
    W = factors.at(FIRST_FIT_RIDGE).coefficients()
    residual = max(float(squares_left(xp.sum(moments.variance_b()) * total, factors.G, factors.C, W)), 0.0)
    squares = float(xp.sum(W**2))
    return d**2 * (1 + (d - 1) ** 2) * residual / (total * squares) if squares > 0 else 0.0


def scored_batches(
    scored: Rows, features: Callable[[Array], Array], scaling: Scaling, chooser: np.ndarray, *, once: bool = False
) -> Batches:
    """The scored rows as leave-one-out takes them; kept between calls where they are few, unless `once`."""
    width, xp = int(scaling.mean.shape[0]), scored.space.xp
    weight, unit = weights_and_units(scored)

    def batches() -> Iterator[Batch]:
        # held a few times over while they are whitened: smaller blocks than those of a pass
        for block in scored.blocks("leave-one-out", 4 * width):
            F = scaling(features(block.X))
            part = slice(block.start, block.start + int(F.shape[0]))
            yield Batch(F, xp.astype(block.Z, xp.float64, copy=False), weight[part], unit[part], chooser[part])

    def groups() -> Iterator[Batch]:
        assert numbers is not None
        step = scored.rows_per_block(4 * width)
        for start, stop in spans(numbers, step):
            parts = [(a, min(a + step, stop)) for a in range(start, stop, step)]
            Z = xp.concat([scored.block(*part).Z for part in parts], axis=0)
            pieces = partial(_pieces, scored, lambda X: scaling(features(X)), parts)
            w, u, choice, group = (column[start:stop] for column in (weight, unit, chooser, numbers))
            batch = Batch(None, xp.astype(Z, xp.float64, copy=False), w, u, choice, group, pieces)
            yield batch if len(parts) > 1 else batch._replace(F=next(pieces()), pieces=None)

    numbers = numbered(scored.group)
    read = batches if numbers is None else groups
    if once or scored.n * width > CACHED_NUMBERS:
        return read
    cached = list(read())  # several ridges will read them
    return lambda: iter(cached)


def _pieces(rows: Rows, features: Callable[[Array], Array], parts: list[tuple[int, int]]) -> Iterator[Array]:
    """The features of one part of the rows after another."""
    return (features(rows.block(*part).X) for part in parts)
