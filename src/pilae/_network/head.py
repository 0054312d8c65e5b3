"""Output layers: the single-hidden-layer network (SHLN), ridge, softmax, or any scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from .._arrays import Array, cholesky, matmul, namespace, plus_diagonal, solve_triangular, to_numpy
from .._arrays.threads import lent, sharing
from .._base.saveable import check_shape, saveable
from .._data.rows import Rows
from .._engine.loo import Scored, WidthPath
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .calibration import Calibration, fit_calibration
from .neurons import Hidden

NARROW = 512
"""Up to so many features the output layer's product costs next to nothing in float64."""


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
            return matmul(F, self.coef) + self.intercept
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
            with sharing():
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
    with lent(F.size):
        fitted.estimator = fitted.estimator.fit(F, y[there], **{**fit_params, **per_row})
    return fitted


def _whitening(moments: Moments) -> tuple[Scaling, Array]:
    """Scaling and factor that give features unit covariance; LogisticRegression then converges in few steps."""
    scaling = Scaling.standard(moments.mean_a, moments.variance_a())
    correlation = moments.gram(centred=True, scale=scaling.inverse) / moments.weight
    return scaling, cholesky(plus_diagonal(correlation, 1e-6))
