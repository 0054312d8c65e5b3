"""The output layer solved from its sums, judged by leave-one-out, and checked after rows were taken out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from .._arrays import Array, cholesky, matmul, namespace, plus_diagonal, solve_triangular
from .._data.rows import Block, Rows
from .._engine.loo import EIGEN_WIDTH, Batches, RidgeFactors, Scored, best_ridge, best_width, leave_one_out, ridge_grid
from .._engine.moments import Moments, product_under
from .._engine.scaling import Scaling
from .head import LinearHead, Output
from .network import Seen
from .neurons import Hidden

SMALLEST_RIDGE = {"float32": 1e-5, "float64": 1e-6}
"""Lowest ridge tried, by dtype of the products: below it a float32 Gram need not be positive definite."""

LEAST_SPREAD = 0.1
"""A neuron's pre-activation has unit variance; if its output varies less than this, it fires on next to no rows."""

CHOICE_ROWS = 2500
"""Of the scored rows, how many choose the width and the ridge; all of them judge what was chosen."""

LEFT_OVER = {"float64": 1e-4, "float32": 1.0}
"""Rounding that forgotten rows leave may move the output layer by so much of itself unsaid, by dtype of products."""

CACHED_NUMBERS = 4_000_000
"""Features of scored rows are kept between ridges up to this many numbers, beyond it made anew."""


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
    residual = targets - 2 * float(xp.sum(W * C)) + float(xp.sum(W * matmul(G, W)))
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
