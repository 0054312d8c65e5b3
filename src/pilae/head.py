"""Output layers: the single-hidden-layer network (SHLN), ridge, softmax, or any scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from ._arrays import Array, cholesky, expit, namespace, plus_diagonal, solve_triangular, to_numpy
from .activations import ACTIVATIONS
from .blocks import Rows
from .linalg import Gram, ridge_solve
from .loo import RidgeFactors, Scored, best_ridge, leave_one_out
from .moments import Moments
from .scaling import Scaling

SMALLEST_RIDGE = {"float32": 1e-5, "float64": 1e-8}
"""Lowest ridge tried, by dtype of the products: below it a float32 Gram need not be positive definite."""


@dataclass
class Hidden:
    """The SHLN's hidden layer: f((x - mean) / scale W + b), each neuron centred and scaled on its own.

    Because nothing of a neuron depends on the others, the first p neurons of a wide layer are the layer of width p.
    """

    scaling: Scaling | None
    weights: Array
    bias: Array
    activation: str

    def __call__(self, X: Array) -> Array:
        if self.scaling is not None:
            X = self.scaling(X)
        return ACTIVATIONS[self.activation](X @ self.weights + self.bias)


def fit_hidden(
    rows: Rows,
    scaling: Scaling | None,
    gram: Gram,
    anchors: Array,
    ridge: float,
    activation: str,
    seed: int,
) -> Hidden:
    """Neurons from anchor rows: (G + eps I)^-1 a, scaled to unit variance, plus a bias drawn from the seed.

    `gram` is that of the scaled head input, which has mean zero, so every pre-activation is centred already.
    """
    space = rows.space
    xp = space.xp
    W = gram.pinv_rows(anchors, ridge)
    variance = gram.quadratic(W) / gram.weight
    alive = variance > 0
    W = W * xp.where(alive, 1.0 / xp.sqrt(xp.where(alive, variance, xp.ones_like(variance))), xp.zeros_like(variance))
    bias = np.random.default_rng([seed, 1]).standard_normal(int(anchors.shape[0]))
    return Hidden(scaling, space.asarray(W, rows.dtype), space.asarray(bias, rows.dtype), activation)


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
    path: dict[float, float]
    """Squared leave-one-out error of every ridge tried."""
    guo2003: float | None = None
    moments: Moments | None = None

    def __call__(self, F: Array) -> Array:
        return F @ self.coef + self.intercept


@dataclass
class LinearHead:
    """Features, then an output layer: the heads "shln" (hidden layer first) and "ridge" (none)."""

    hidden: Hidden | None
    output: Output
    temperature: float = 1.0

    @property
    def width(self) -> int:
        return int(self.output.coef.shape[0])

    def features(self, X: Array) -> Array:
        return X if self.hidden is None else self.hidden(X)

    def scores(self, X: Array) -> Array:
        return self.output(self.features(X))


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
    features: Callable[[Array], Array],
    width: int,
    ridge: float | str,
    *,
    scale: np.ndarray,
    keep: bool,
    label: str,
) -> Output:
    """Solve the output layer in one pass, and score it by leave-one-out on `scored`.

    ridge is a number, "auto" (lowest squared leave-one-out error) or "guo2003" (eq 3). `scale` is
    what one unit of error is for each output, for targets in different units.
    """
    moments = Moments(rows.space, product=rows.dtype)
    for block in rows.blocks(label, width):
        moments.add(features(block.X), block.Z, block.w)
    scaling = Scaling.standard(moments.mean_a, moments.variance_a())
    G = scaling.gram(moments.gram(centred=True))
    C = moments.cross(centred=True) * scaling.inverse[:, None]
    zbar, total = moments.mean_b, moments.weight
    batches = _scored_batches(scored, features, scaling, width)

    factors = RidgeFactors(G, C, total)
    guo = None
    if ridge == "auto":
        value, loo, path = best_ridge(factors, zbar, scale, batches, SMALLEST_RIDGE[rows.dtype])
    else:
        if ridge == "guo2003":
            guo = guo2003(G, C, rows.d, total, float(namespace(G).sum(moments.variance_b())) * total)
        value = float(ridge) if guo is None else guo
        [loo] = leave_one_out(factors, [value], zbar, batches)
        path = {value: loo.squared_error(scale)}
    beta = factors.at(value).coefficients()
    coef = beta * scaling.inverse[:, None]
    intercept = zbar - moments.mean_a @ coef
    return Output(
        coef=rows.space.asarray(coef, rows.dtype),
        intercept=rows.space.asarray(intercept, rows.dtype),
        ridge=value,
        route=factors.route,
        loo=loo,
        path=path,
        guo2003=guo,
        moments=moments if keep else None,
    )


def guo2003(G: Array, C: Array, d: int, total: float, target_squares: float) -> float:
    """h_x of eq (3), the ridge per unit of weight, with residuals and weights of a first fit at ridge 1e-6.

    Taken literally it grows with d**4: on images it is far too large, and leave-one-out says so.
    """
    xp = namespace(G)
    W, _ = ridge_solve(G, C, 1e-6 * total)
    residual = target_squares - 2 * float(xp.sum(W * C)) + float(xp.sum(W * (G @ W)))
    squares = float(xp.sum(W**2))
    if squares <= 0:
        return 0.0
    return d**2 * (1 + (d - 1) ** 2) * max(residual, 0.0) / (total * squares)


def _scored_batches(scored: Rows, features: Callable[[Array], Array], scaling: Scaling, width: int):
    def batches() -> Iterator[tuple[Array, Array, np.ndarray, np.ndarray]]:
        xp = scored.space.xp
        assert scored.weight is not None
        assert scored.unit is not None
        for block in scored.blocks("leave-one-out", width):
            F = scaling(xp.astype(features(block.X), xp.float64, copy=False))
            n = int(F.shape[0])
            part = slice(block.start, block.start + n)
            w = scored.weight[part]
            unit = scored.unit[part]
            yield F, xp.astype(block.Z, xp.float64, copy=False), w, unit

    return batches


def fit_temperature(loo: Scored, multilabel: bool) -> float:
    """The factor on the outputs that gives the lowest log-loss on the leave-one-out outputs."""
    out, z, w = loo.outputs, loo.targets, loo.weight / loo.weight.sum()

    def loss(log_t: float) -> float:
        t = float(np.exp(log_t))
        if multilabel:
            margin = t * (2 * z - 1) * (2 * out - 1)
            return float(w @ np.sum(logsumexp(np.stack([np.zeros_like(margin), -margin]), axis=0), axis=1))
        return float(-w @ np.sum(z * log_softmax(t * out, axis=1), axis=1))

    return float(np.exp(minimize_scalar(loss, bounds=(-3.0, 6.0), method="bounded").x))


def probabilities(scores: Array, temperature: float, multilabel: bool) -> Array:
    """Probabilities from outputs: softmax over classes, or a sigmoid for each label."""
    xp = namespace(scores)
    if multilabel:
        return expit(temperature * (2 * scores - 1))
    t = temperature * scores
    e = xp.exp(t - xp.max(t, axis=1, keepdims=True))
    return e / xp.sum(e, axis=1, keepdims=True)


def fit_estimator_head(
    rows: Rows,
    features: Callable[[Array], Array],
    head: Any,
    y: np.ndarray,
    fit_params: dict,
    moments: Moments | None,
) -> EstimatorHead:
    """Fit "softmax" or a clone of `head` on the whole features of the rows that count (held at once)."""
    if isinstance(head, str):
        assert moments is not None
        fitted = EstimatorHead(LogisticRegression(max_iter=1000), *_whitening(moments))
    else:
        fitted = EstimatorHead(clone(head))
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
    correlation = scaling.gram(moments.gram(centred=True)) / moments.weight
    return scaling, cholesky(plus_diagonal(correlation, 1e-6))
