"""Output layers: the single-hidden-layer network (SHLN), ridge, softmax, or any scikit-learn estimator."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.special
from scipy.optimize import brentq
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from .._arrays import (
    Array,
    cholesky,
    contiguous,
    dtype_name,
    expit,
    namespace,
    plus_diagonal,
    solve_triangular,
    space_of,
    to_numpy,
)
from .._base.saveable import check_shape, saveable
from .._data.rows import Block, Rows
from .._engine.activations import activate
from .._engine.linalg import Gram
from .._engine.loo import (
    EIGEN_WIDTH,
    Batches,
    RidgeFactors,
    Scored,
    WidthPath,
    best_ridge,
    best_width,
    leave_one_out,
    ridge_grid,
)
from .._engine.moments import Moments, product_under
from .._engine.scaling import Scaling
from .network import Seen
from .structure import Plan

SMALLEST_RIDGE = {"float32": 1e-5, "float64": 1e-6}
"""Lowest ridge tried, by dtype of the products: below it a float32 Gram need not be positive definite."""


LEAST_SPREAD = 0.1
"""A neuron's pre-activation has unit variance; if its output varies less than this, it fires on next to no rows."""

CHOICE_ROWS = 2500
"""Of the scored rows, how many choose the width and the ridge; all of them judge what was chosen."""

MAPPED_ROWS, MAPPED_CLASSES = 100, 30
"""Probabilities may come from a multinomial logistic map with at least so many scored rows for each class, and at most
so many classes."""

LARGEST_SCORE = 1e30
"""Outputs beyond it are cut to it before they become probabilities: these are 0 or 1, and no sum overflows."""

NARROW = 512
"""Up to so many features the output layer's product costs next to nothing in float64."""

LEFT_OVER = {"float64": 1e-4, "float32": 1.0}
"""Rounding that forgotten rows leave may move the output layer by so much of itself unsaid, by dtype of products."""

CACHED_NUMBERS = 4_000_000
"""Features of scored rows are kept between ridges up to this many numbers, beyond it made anew."""


@saveable
@dataclass
class Hidden:
    """The SHLN's hidden layer: f((x - mean) / scale W + b), each neuron centred and scaled on its own.

    Where `scaling` is None, that is part of W and b.
    Because nothing of a neuron depends on the others, the first p neurons of a wide layer are the layer of width p.
    With `direct` the scaled input stands before the neurons: direct links to the output.
    """

    scaling: Scaling | None
    weights: Array
    bias: Array
    activation: str
    direct: bool = False

    def __call__(self, X: Array) -> Array:
        if self.scaling is not None:
            X = self.scaling(X)
        H = activate(self.activation, X @ self.weights, self.bias)
        return namespace(H).concat([X, H], axis=1) if self.direct else H

    @property
    def links(self) -> int:
        """Columns that come before the neurons."""
        return int(self.weights.shape[0]) if self.direct else 0

    def leading(self, columns: int) -> Hidden:
        """The layer whose first `columns` outputs are this one's."""
        p = columns - self.links
        return Hidden(self.scaling, contiguous(self.weights[:, :p]), self.bias[:p] + 0.0, self.activation, self.direct)


def fit_hidden(
    rows: Rows,
    scaling: Scaling | None,
    gram: Gram,
    anchors: Array,
    width: int,
    plan: Plan,
    seed: int,
) -> Hidden:
    """Neurons (G + eps I)^-1 a, scaled to unit variance.

    For neurons="rows" a is an anchor row and the bias is drawn from the seed; for "pairs" it is the difference of two
    anchors, and the neuron's border runs midway between them. `gram` is that of the scaled head input, which has mean
    zero, so every pre-activation is centred already.
    """
    space = rows.space
    xp = space.xp
    rng = np.random.default_rng([seed, 1])
    if plan.neurons == "pairs":
        second = space.asarray(rng.integers(0, np.arange(1, width + 1)))  # of the anchors before it: widths nest
        a, b = anchors[1 : width + 1, :], xp.take(anchors, second, axis=0)
        directions, midway = a - b, 0.5 * (a + b)
    else:
        directions = anchors[:width, :]
    W = gram.pinv_rows(directions, plan.encoder_ridge)
    variance = gram.quadratic(W) / gram.weight
    alive = variance > 0
    W = W * xp.where(alive, 1.0 / xp.sqrt(xp.where(alive, variance, xp.ones_like(variance))), xp.zeros_like(variance))
    bias = -xp.sum(midway.mT * W, axis=0) if plan.neurons == "pairs" else space.asarray(rng.standard_normal(width))
    if scaling is not None and not plan.direct and scaling.is_mild():  # one pass over the input fewer
        W = scaling.inverse[:, None] * W
        bias, scaling = bias - scaling.mean @ W, None
    return Hidden(scaling, space.asarray(W, rows.dtype), space.asarray(bias, rows.dtype), plan.activation, plan.direct)


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
    loo: Scored
    scored_rows: np.ndarray
    """Which training rows `loo` is about."""
    path: dict[float, float]
    """Squared leave-one-out error of every ridge tried (the lowest over widths)."""
    guo2003: float | None = None
    """What eq (3) would have taken, where it was asked for."""
    width_path: WidthPath | None = None
    moments: Moments | None = None
    solved: bool = True
    """Whether coef and intercept are those of `moments`: sums that change only mark them stale."""

    def __call__(self, F: Array) -> Array:
        """Narrow features are summed in float64: with a small ridge large terms of either sign cancel."""
        if F.shape[1] > NARROW:
            return F @ self.coef + self.intercept
        xp = namespace(F)
        F, coef, intercept = (xp.astype(part, xp.float64, copy=False) for part in (F, self.coef, self.intercept))
        return xp.astype(F @ coef + intercept, self.coef.dtype, copy=False)


@saveable
@dataclass
class LinearHead:
    """Features, then an output layer: the heads "shln" (hidden layer first) and "ridge" (none)."""

    hidden: Hidden | None
    output: Output
    calibration: Calibration | None = None
    """From outputs to probabilities; None until somebody asks for them."""

    def calibrated(self, multilabel: bool) -> Calibration:
        if self.calibration is None:
            self.calibration = fit_calibration(self.output.loo, multilabel)
        return self.calibration

    def check_shapes(self, columns: int) -> None:
        """An error where the parts do not fit together behind so many features."""
        features = columns
        if self.hidden is not None:
            p = int(self.hidden.bias.shape[0])
            check_shape(self.hidden.weights, columns, p)
            check_shape(self.hidden.bias, p)
            if self.hidden.scaling is not None:
                self.hidden.scaling.check_shapes(columns)
            features = p + self.hidden.links
        outputs = int(self.output.coef.shape[1])
        check_shape(self.output.coef, features, outputs)
        check_shape(self.output.intercept, outputs)

    @property
    def width(self) -> int:
        """Hidden neurons, or features where there is no hidden layer."""
        return int(self.output.coef.shape[0]) if self.hidden is None else int(self.hidden.bias.shape[0])

    def features(self, X: Array) -> Array:
        return X if self.hidden is None else self.hidden(X)

    def scores(self, X: Array) -> Array:
        return self.output(self.features(X))


@saveable
@dataclass
class EstimatorHead:
    """Any fitted scikit-learn estimator on the whole features, whitened first for "softmax"."""

    estimator: Any
    scaling: Scaling | None = None
    factor: Array | None = None
    """L of the features' correlation L L': L^-1 f has unit covariance."""

    def features(self, X: Array) -> np.ndarray:
        if self.scaling is not None:
            xp = namespace(X)
            X = solve_triangular(self.factor, self.scaling(xp.astype(X, xp.float64)).mT).mT
        return to_numpy(X)

    def label_probabilities(self, F: np.ndarray) -> np.ndarray:
        """Probability of each label being 1, where the estimator may give a list with one table per label."""
        proba = self.estimator.predict_proba(F)
        if not isinstance(proba, list):
            return proba
        ones = [
            p[:, list(c).index(1)] if 1 in c else np.zeros(len(p))
            for p, c in zip(proba, self.estimator.classes_, strict=True)
        ]
        return np.stack(ones, axis=1)


def fit_output(
    rows: Rows,
    scored: Rows,
    network: Callable[[Array], Array],
    seen: Seen,
    hidden: Hidden | None,
    width: int,
    ridge: float | str,
    *,
    neurons: np.ndarray,
    scale: np.ndarray,
    nested: bool = False,
    keep: bool = False,
    near: float | None = None,
    raw_columns: int | None = None,
    label: str,
) -> LinearHead:
    """Solve the output layer in one pass, and score it by leave-one-out on `scored`.

    ridge is a number, "auto" (lowest squared leave-one-out error) or "guo2003" (eq 3). With `nested` the width is
    chosen too, up to `width`, from the whole width path. `scale` is what one unit of error is for each output;
    `neurons` says which scored rows became neurons; `near` is a ridge to begin with; with `raw_columns`, the columns of
    the network's input, eq (3) is evaluated too. `network` maps rows to the head's input, `seen` blocks of them.
    """

    features = features_of(network, hidden)
    product = product_under(SMALLEST_RIDGE[rows.dtype] if isinstance(ridge, str) else ridge, rows.space, rows.dtype)
    moments = rows.total(
        partial(Moments, rows.space, product=product),
        partial(add_features, seen, hidden),
        label,
        width,
    )
    seen.release()
    assert scored.numbers is not None
    smallest, width_path = SMALLEST_RIDGE[rows.dtype], None
    chooser, few = _chooser(scored, neurons), scored.first(CHOICE_ROWS)
    if nested:
        assert hidden is not None
        assert few.unit is not None
        assert few.weight is not None
        there = np.flatnonzero(chooser[: few.n] > 0)
        choosers = few.take(there, few.weight[there], few.unit[there])  # rows that are neurons choose no width
        scaling, G, C = _standardised(moments, hidden)
        width, found, width_path = best_width(
            RidgeFactors(G, C, moments.weight, nested=True),
            moments.mean_b,
            scale,
            _batches(choosers, features, scaling, width, chooser[there]),
            chooser[there],
            few.unit[there],
            ridge_grid(smallest)[:: 1 if width <= EIGEN_WIDTH else 2]
            if isinstance(ridge, str)
            else [max(float(ridge), smallest)],
            first=hidden.links + 1,
            near=near,
        )
        del G, C  # as large as the sums themselves
        moments, hidden = moments.leading(width), hidden.leading(width)
        features = features_of(network, hidden)
        ridge = found if ridge == "auto" else ridge
    scaling, G, C = _standardised(moments, hidden)
    factors = RidgeFactors(G, C, moments.weight, nested=nested)
    literal = None
    if raw_columns is not None and (ridge == "guo2003" or factors.route == "eigh"):  # else one more factor to look at
        literal = guo2003(copy.copy(factors), G, C, moments, raw_columns)
    path: dict[float, float] = {}
    if ridge == "auto":
        value, loo, path = best_ridge(
            factors, moments.mean_b, scale, _batches(few, features, scaling, width, chooser), smallest, near
        )
    else:
        value = float(ridge if literal is None or ridge != "guo2003" else literal)
    if ridge != "auto" or few is not scored:
        [loo] = leave_one_out(
            factors, [value], moments.mean_b, _batches(scored, features, scaling, width, chooser, once=True)
        )
    path = path or {value: loo.squared_error(scale)}
    if width_path is not None:
        path = {r: float(e.min()) for r, e in width_path.errors.items()} | {value: loo.squared_error(scale)}
    coef, intercept = _solution(factors, value, scaling, moments, rows.dtype)
    output = Output(
        coef=coef,
        intercept=intercept,
        ridge=value,
        route=factors.route,
        loo=loo,
        scored_rows=scored.numbers,
        guo2003=literal,
        path=path,
        width_path=width_path,
        moments=moments if keep else None,
    )
    return LinearHead(hidden, output)


def solve_output(head: LinearHead, dtype: str) -> None:
    """Solve the output layer anew from its sums, at the ridge it has; means and scales are those of the sums."""
    moments, output = head.output.moments, head.output
    assert moments is not None
    scaling, G, C = _standardised(moments, head.hidden)
    factors = RidgeFactors(G, C, moments.weight, nested=True)
    output.coef, output.intercept = _solution(factors, output.ridge, scaling, moments, dtype)
    output.route, output.solved = factors.route, True


def definite(head: LinearHead, moments: Moments) -> bool:
    """Whether these sums can be those of rows: neither their Gram matrix nor what it leaves of the targets' squares has
    a negative direction, beyond what rounding has left of the most they ever held."""
    scaling, G, C = _standardised(moments, head.hidden)
    xp = moments.space.xp
    share = 1e-9 if moments.product == "float64" else 1e-4
    most = max(moments.heaviest, float(xp.max(moments.largest * scaling.inverse**2)))
    L = cholesky(plus_diagonal(G, share * most))
    if L is None:
        return False
    left = moments.variance_b() * moments.weight - xp.sum(solve_triangular(L, C) ** 2, axis=0)
    return bool(xp.all(left >= -share * xp.max(moments.largest_b)))


def blurred(head: LinearHead, moments: Moments) -> bool:
    """Whether the rounding of what these sums held once, and no longer do, may move the output layer by more than
    LEFT_OVER of itself: where something huge was taken out of them, they have lost the digits of what stays."""
    scaling, G, _ = _standardised(moments, head.hidden)
    xp, p = moments.space.xp, int(G.shape[0])
    variance = moments.variance_b()
    for dead, was, mean in (
        (scaling.inverse == 0, moments.largest, moments.mean_a),
        (variance == 0, moments.largest_b, moments.mean_b),
    ):
        if bool(xp.any(dead & (1e-13 * was > 1e-6 * moments.weight * (mean**2 + 1)))):
            return True  # it may well vary, by less than that rounding
    most = float(xp.max(moments.largest * scaling.inverse**2))
    beside = Scaling.standard(moments.mean_b, variance).inverse ** 2
    held = max(most, (most * float(xp.max(moments.largest_b * beside))) ** 0.5)
    noise = float(np.finfo(moments.product).eps) * p**0.5 * held / LEFT_OVER[moments.product]
    ridge = head.output.ridge * moments.weight
    return noise > ridge and cholesky(plus_diagonal(G, ridge - noise)) is None


def score_output(head: LinearHead, features: Callable[[Array], Array], scored: Rows, neurons: np.ndarray) -> Scored:
    """Leave-one-out of the output layer as it is now, on rows that are in its sums."""
    moments = head.output.moments
    assert moments is not None
    scaling, G, C = _standardised(moments, head.hidden)
    factors = RidgeFactors(G, C, moments.weight, nested=True)
    batches = _batches(scored, features, scaling, int(G.shape[0]), _chooser(scored, neurons), once=True)
    [loo] = leave_one_out(factors, [head.output.ridge], moments.mean_b, batches)
    return loo


def _solution(
    factors: RidgeFactors, ridge: float, scaling: Scaling, moments: Moments, dtype: str
) -> tuple[Array, Array]:
    """(coefficients, intercept) on features as they come, neither centred nor scaled."""
    coef = factors.at(ridge).coefficients() * scaling.inverse[:, None]
    asarray = moments.space.asarray
    return asarray(coef, dtype), asarray(moments.mean_b - moments.mean_a @ coef, dtype)


def add_features(seen: Seen, hidden: Hidden | None, moments: Moments, block: Block) -> None:
    """Add what the output layer sees of a block."""
    X = seen(block)
    moments.add(X if hidden is None else hidden(X), block.Z, block.w, scratch=hidden is not None)


def features_of(network: Callable[[Array], Array], hidden: Hidden | None) -> Callable[[Array], Array]:
    """From rows to what the output layer sees."""
    return network if hidden is None else lambda X: hidden(network(X))


def _standardised(moments: Moments, hidden: Hidden | None) -> tuple[Scaling, Array, Array]:
    """(scaling, G, C) of the standardised features.

    A neuron that hardly ever fires is not stretched to unit variance: what one training row gave it would be blown up,
    and leave-one-out could not see it.
    """
    least = None
    if hidden is not None:
        xp, device = moments.space
        size = int(moments.sum_a.shape[0])
        least = LEAST_SPREAD * xp.astype(xp.arange(size, device=device) >= hidden.links, xp.float64)
    scaling = Scaling.standard(moments.mean_a, moments.variance_a(), least)
    G = moments.gram(centred=True, scale=scaling.inverse)
    return scaling, G, moments.cross(centred=True) * scaling.inverse[:, None]


def _chooser(scored: Rows, neurons: np.ndarray) -> np.ndarray:
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
    """h_x of eq (3), the ridge per unit of weight, with residuals and weights of a first fit at ridge 1e-6.

    Taken literally it grows with d**4: on images it is far too large, and leave-one-out says so.
    """
    xp, total = namespace(G), moments.weight
    W = factors.at(1e-6).coefficients()
    targets = float(xp.sum(moments.variance_b())) * total
    residual = targets - 2 * float(xp.sum(W * C)) + float(xp.sum(W * (G @ W)))
    squares = float(xp.sum(W**2))
    if squares <= 0:
        return 0.0
    return d**2 * (1 + (d - 1) ** 2) * max(residual, 0.0) / (total * squares)


def _batches(
    scored: Rows,
    features: Callable[[Array], Array],
    scaling: Scaling,
    width: int,
    chooser: np.ndarray,
    *,
    once: bool = False,
) -> Batches:
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


@saveable
@dataclass
class Calibration:
    """From outputs to probabilities: a factor t on the outputs, and for classes perhaps a multinomial logistic map.

    The probabilities of a row are softmax(t s), or softmax(t s A + b) with the map, where s are its outputs. The map
    never changes which class is the likeliest: where it would prefer another than the outputs do, just so much of
    softmax(t s) is mixed in that it does not, so that `predict` and `predict_proba` agree.
    """

    temperature: float
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None

    def __call__(self, scores: Array, multilabel: bool) -> Array:
        xp, space = namespace(scores), space_of(scores)
        size = xp.max(xp.abs(scores), axis=1, keepdims=True)
        if bool(xp.any(size > LARGEST_SCORE)):
            scores = xp.where(size > LARGEST_SCORE, scores / xp.clip(size, min=1.0) * LARGEST_SCORE, scores)
        if multilabel:
            return expit(self.temperature * (2 * scores - 1))
        logits = self.temperature * scores
        if self.weights is None:
            return _softmax(logits)
        kind = dtype_name(scores)
        P = _softmax(logits @ space.asarray(self.weights, kind) + space.asarray(self.bias, kind))
        plain = _softmax(logits)
        columns = xp.arange(P.shape[1], device=space.device)[None, :]
        wanted = columns == xp.argmax(scores, axis=1)[:, None]
        none = xp.zeros_like(P)
        over = P - xp.sum(xp.where(wanted, P, none), axis=1, keepdims=True)
        under = xp.sum(xp.where(wanted, plain, none), axis=1, keepdims=True) - plain
        share = xp.where(over > 0, over / (over + under + (over <= 0)), none)
        share = xp.max(share, axis=1, keepdims=True)
        share = xp.where(share > 0, xp.clip(1.00001 * share, max=1.0), share)  # a hair more than a tie
        return (1.0 - share) * P + share * plain


def fit_calibration(loo: Scored, multilabel: bool) -> Calibration:
    """A temperature, or a multinomial logistic map where that has the lower log-loss on held-out rows.

    Both are fitted on leave-one-out outputs. The map is tried where every class has rows enough; held out is one half
    of the rows after the other.
    """
    t = fit_temperature(loo, multilabel)
    if multilabel:
        return Calibration(t)
    there = loo.weight > 0
    codes = np.argmax(loo.targets, axis=1)
    counts = np.bincount(codes[there], minlength=loo.targets.shape[1])
    if counts.min() < MAPPED_ROWS or len(counts) > MAPPED_CLASSES:
        return Calibration(t)
    half = np.arange(len(codes)) % 2 == 0  # the scored rows come in the order of a hash
    gain = 0.0
    for part in (half, ~half):
        fitted = Scored(*(column[part] for column in loo))
        plain, mapped = Calibration(fit_temperature(fitted, False)), _fit_map(fitted, codes[part])
        rest, rows = loo.outputs[~part], np.arange(len(codes))[~part]
        ratio = np.log(_of_class(mapped(rest, False), codes[rows])) - np.log(_of_class(plain(rest, False), codes[rows]))
        gain += float(loo.weight[rows] @ ratio)
    return _fit_map(loo, codes) if gain > 0 else Calibration(t)


def _of_class(P: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.maximum(P[np.arange(len(codes)), codes], 1e-300)


def _fit_map(loo: Scored, codes: np.ndarray) -> Calibration:
    t = fit_temperature(loo, False)
    weight = loo.weight / loo.weight.mean()  # only ratios matter
    model = LogisticRegression(max_iter=200, solver="newton-cholesky").fit(t * loo.outputs, codes, sample_weight=weight)
    A, b = model.coef_.T, model.intercept_
    if A.shape[1] == 1:  # two classes: the difference of their logits
        A, b = np.concatenate([-A, A], axis=1) / 2, np.concatenate([-b, b]) / 2
    return Calibration(t, A, b)


def _softmax(logits: Array) -> Array:
    xp = namespace(logits)
    e = xp.exp(logits - xp.max(logits, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def log_losses(loo: Scored) -> np.ndarray:
    """Of each scored row, the log-loss of its leave-one-out probabilities at the best temperature."""
    logits = fit_temperature(loo, False, tolerance=1e-4) * loo.outputs
    return logsumexp(logits, axis=1) - np.sum(logits * loo.targets, axis=1)


def fit_temperature(loo: Scored, multilabel: bool, tolerance: float = 1e-12) -> float:
    """The factor t on the outputs that gives the lowest log-loss on the leave-one-out outputs.

    The log-loss is convex in t, so t is where its derivative changes sign: found to full accuracy, unlike a minimum.
    """
    out, z, w = loo.outputs, loo.targets, loo.weight / loo.weight.sum()

    def slope(log_t: float) -> float:
        t = float(np.exp(log_t))
        if multilabel:
            margin = (2 * z - 1) * (2 * out - 1)
            return float(-w @ np.sum(margin * scipy.special.expit(-t * margin), axis=1))
        return float(w @ np.sum((softmax(t * out, axis=1) - z) * out, axis=1))

    low, high = -3.0, 6.0
    if slope(low) >= 0:
        return float(np.exp(low))
    if slope(high) <= 0:
        return float(np.exp(high))
    return float(np.exp(brentq(slope, low, high, xtol=tolerance)))


def residual_quantiles(loo: Scored, coverage: float) -> np.ndarray:
    """For each output the weighted quantile of |leave-one-out residual|, rows that are neurons included: the choice
    of the network has made the others' residuals a little too small.

    The level is raised by one row, as in conformal prediction: the new row is one more.
    """
    n = float(np.sum(loo.weight / np.where(loo.unit > 0, loo.unit, 1.0)))
    level = min(1.0, coverage * (n + 1) / n)
    size = np.abs(loo.targets - loo.outputs)
    return np.array([_weighted_quantile(column, loo.weight, level) for column in size.T])


def _weighted_quantile(values: np.ndarray, weight: np.ndarray, level: float) -> float:
    order = np.argsort(values)
    mass = np.cumsum(weight[order]) / weight.sum()
    return float(values[order][min(int(np.searchsorted(mass, level)), len(values) - 1)])


def fit_estimator_head(
    rows: Rows,
    features: Callable[[Array], Array],
    head: Any,
    y: np.ndarray | None,
    fit_params: dict,
    moments: Moments | None,
) -> EstimatorHead:
    """Fit "softmax" or a clone of `head` on the whole features of the rows that count (held at once)."""
    if isinstance(head, str):
        assert moments is not None
        fitted = EstimatorHead(LogisticRegression(max_iter=1000), *_whitening(moments))
    else:
        fitted = EstimatorHead(clone(head))
    if y is None:
        raise ValueError(
            "A head that is an estimator of its own needs all features in memory, so it cannot be fitted from a "
            "source: use head='shln' or head='ridge', or give arrays."
        )
    there = np.ones(rows.n, bool) if rows.weight is None else rows.weight > 0
    F = np.concatenate(
        [
            fitted.features(features(block.X))[there[block.start : block.start + block.X.shape[0]]].astype(rows.dtype)
            for block in rows.blocks("head: features")
        ]
    )
    per_row = {name: np.asarray(v)[there] for name, v in fit_params.items() if np.shape(v)[:1] == (rows.n,)}
    fitted.estimator = fitted.estimator.fit(F, y[there], **{**fit_params, **per_row})
    return fitted


def _whitening(moments: Moments) -> tuple[Scaling, Array]:
    """Scaling and factor that give features unit covariance; LogisticRegression then converges in few steps."""
    scaling = Scaling.standard(moments.mean_a, moments.variance_a())
    correlation = moments.gram(centred=True, scale=scaling.inverse) / moments.weight
    return scaling, cholesky(plus_diagonal(correlation, 1e-6))
