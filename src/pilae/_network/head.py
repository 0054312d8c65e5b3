"""Output layers: the single-hidden-layer network (SHLN) and ridge, or any scikit-learn estimator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression

from .._arrays import Array, cholesky, dtype_name, namespace, plus_diagonal, solve_triangular, space_of, to_numpy
from .._arrays.threads import lent, sharing
from .._base.saveable import check_shape, saveable
from .._data.check import check_answer
from .._data.rows import Rows
from .._data.targets import Targets
from .._engine.calibration import Calibration
from .._engine.intervals import SCALE_COLUMNS, Quantile, local_scale
from .._engine.moments import Moments
from .._engine.scaling import Scaling
from .._engine.scores import Scored
from .neurons import HiddenLayer
from .output import Output, features_of

WHITENING_RIDGE = 1e-6
"""Added to the unit diagonal of a correlation matrix before it is factorised."""


class Head(Protocol):
    """An output layer: from the features of rows to answers. What most heads would say is said here."""

    @property
    def width(self) -> int | None:
        """Columns that the output weights are for, or neurons; None where that says nothing."""
        return None

    @property
    def widest(self) -> int:
        """Columns of the widest array that it makes of rows; 0 where that says nothing."""
        return self.width or 0

    @property
    def is_plain(self) -> bool:
        """Whether its answers are products and what is done number by number: several threads may ask at once."""
        return False

    def predict(self, targets: Targets, F: Array) -> Array: ...

    def decision_function(self, targets: Targets, F: Array) -> Array: ...

    def predict_proba(self, targets: Targets, F: Array) -> Array: ...

    def check_shapes(self, columns: int, n_outputs: int) -> None:
        """An error where the parts do not fit together behind so many features."""

    def try_out(self, F: Array) -> None:
        """Send features through."""

    def offers(self, method: str) -> bool:
        """Whether there is such a method: estimators may lack some."""
        return True

    def classes_among(self, classes: np.ndarray) -> np.ndarray:
        """Those it can answer with."""
        return classes

    def linear(self, method: str) -> LinearHead:
        """This head, where `method` needs one that is a sum over rows."""
        raise ValueError(f"{method} needs an output layer that is a sum over rows: use head='shln' or head='ridge'.")

    def residuals(self) -> Scored:
        """Leave-one-out results, for intervals."""
        raise ValueError("predict_interval needs leave-one-out residuals: use head='shln' or head='ridge'.")

    def judged(self, targets: Targets) -> tuple[np.ndarray, np.ndarray, float] | None:
        """Rows scored by leave-one-out, what is predicted for them, and the score; None where none were."""
        return None

    def ready(self) -> None:
        """Finish what was put off."""

    def settle(self) -> None:
        """The same where it can be done: a network without rows has nothing to solve."""
        return

    def lean(self) -> Head:
        """What predicting needs, without the sums."""
        return self


@saveable
@dataclass
class LinearHead(Head):
    """Features, then an output layer: the heads "shln" (hidden layer first) and "ridge" (none).

    What is put off until somebody asks, the solution and the calibration, is written into it: the same to whoever finds
    it, in whichever thread.
    """

    hidden: HiddenLayer | None
    output: Output
    calibration: Calibration | None = None
    """From outputs to probabilities; None until somebody asks for them."""

    @property
    def width(self) -> int:
        """Hidden neurons, or features where there is no hidden layer."""
        return int(self.output.coef.shape[0]) if self.hidden is None else self.hidden.width

    @property
    def is_plain(self) -> bool:
        return True

    def features(self, F: Array) -> Array:
        """What the output layer sees."""
        return F if self.hidden is None else self.hidden(F)

    def outputs(self, F: Array) -> Array:
        return self.answers(self.features(F))

    def answers(self, features: Array) -> Array:
        """The outputs for what the output layer sees."""
        outputs = self.output(features)
        # a class made of them would not show it
        if not isinstance(outputs, np.ndarray) or not math.isfinite(outputs.sum()):
            check_answer(outputs)
        return outputs

    def intervals(self, F: Array, quantile: Quantile) -> tuple[Array, Array]:
        """Outputs, and half of their intervals; `quantile` says how many local scales lie between output and end."""
        F = self.features(F)
        centre, scale = self.answers(F), self.output.local_scale
        half = quantile(to_numpy(centre)) * (1.0 if scale is None else scale(F))
        return centre, space_of(centre).asarray(half, dtype_name(centre))

    def with_local_scale(self, network: Callable[[Array], Array], scored: Rows) -> LinearHead:
        """This head, and how large residuals are about a row; `scored` are the rows that its residuals are of."""
        loo, width, hidden = self.output.loo, int(self.output.coef.shape[0]), self.hidden
        if loo is None:
            return self
        width = min(width, SCALE_COLUMNS)
        if hidden is not None:
            hidden = hidden.leading(max(width, hidden.links + 1))
        features = features_of(network, hidden)
        F = [to_numpy(features(block.X)[:, :width]) for block in scored.blocks(width=width)]
        scale = local_scale(np.concatenate(F).astype(np.float64), loo)
        return replace(self, output=replace(self.output, local_scale=scale))

    def predict(self, targets: Targets, F: Array) -> Array:
        return targets.answer(self.outputs(F))

    def decision_function(self, targets: Targets, F: Array) -> Array:
        return targets.margin(self.outputs(F))

    def predict_proba(self, targets: Targets, F: Array) -> Array:
        calibration = self.calibrated(targets)
        assert calibration is not None
        return targets.probabilities(self.outputs(F), calibration)

    def calibrated(self, targets: Targets) -> Calibration | None:
        if self.calibration is None and self.output.loo is not None:
            with sharing():
                self.calibration = targets.calibrated(self.output.loo)
        return self.calibration

    def linear(self, method: str) -> LinearHead:
        return self

    def residuals(self) -> Scored:
        if self.output.loo is None:
            raise ValueError(
                "This model knows no residuals of its rows: call recalibrate(X, y) with some that are in it."
            )
        return self.output.loo

    def check_sums(self, method: str) -> None:
        """An error where `method` needs the sums of the output layer and they were not kept."""
        if self.output.moments is None:
            raise ValueError(
                f"{method} needs the sums of the output layer, which this model was fitted or saved without: use "
                "keep_statistics=True in fit, which keeps them of at most 10,000 columns, and statistics=True in save."
            )

    def statistics(self, method: str) -> Moments:
        """The sums of the output layer, where `method` needs them."""
        self.check_sums(method)
        moments = self.output.sums()
        assert moments is not None
        return moments

    def ready(self) -> None:
        output = self.output
        if not output.solved and output.following is None:
            moments = output.sums()
            if moments is None or not moments.count:
                raise ValueError(
                    "This model has no rows in it: add some by partial_fit, or merge a model that has some."
                )
            with sharing():
                output.solve(moments, self.hidden)

    def judged(self, targets: Targets) -> tuple[np.ndarray, np.ndarray, float] | None:
        loo, rows = self.output.loo, self.output.scored_rows
        return None if loo is None or rows is None else (rows, *targets.judged(loo))

    def settle(self) -> None:
        output = self.output
        if not output.solved or output.waiting is not None:
            with sharing():
                self.output = output.settled(self.hidden)

    def lean(self) -> LinearHead:
        output = self.output
        solved = output.solved or output.following is not None
        bare = replace(output, moments=None, by_class=None, waiting=None, following=None, solved=solved)
        return replace(self, output=bare)

    def check_shapes(self, columns: int, n_outputs: int) -> None:
        if self.hidden is not None:
            self.hidden.check_shapes(columns)
            columns = self.hidden.columns
        coef, moments = self.output.coef, self.output.moments
        outputs = n_outputs if self.output.solved else int(coef.shape[1])
        check_shape(coef, columns, outputs)
        check_shape(self.output.intercept, outputs)
        if self.output.held is not None:
            check_shape(self.output.held, columns)
        if moments is not None and moments.count:
            check_shape(moments.ab, columns, n_outputs)
        if self.output.local_scale is not None:
            self.output.local_scale.check_shapes(columns, len(self.residuals().weight), n_outputs)
        by_class = self.output.by_class
        if by_class is not None:
            check_shape(np.empty(len(by_class.parts)), n_outputs)
            for part in by_class.parts:
                if part.count:
                    check_shape(part.ab, columns, n_outputs)

    def try_out(self, F: Array) -> None:
        self.outputs(F)


@saveable
@dataclass
class EstimatorHead(Head):
    """Any fitted scikit-learn estimator on the whole features, whitened first for "softmax"."""

    estimator: BaseEstimator
    scaling: Scaling | None = None
    factor: Array | None = None
    """L of the features' correlation L L': L^-1 f has unit covariance."""

    def features(self, X: Array) -> np.ndarray:
        if self.scaling is not None:
            xp = namespace(X)
            X = solve_triangular(self.factor, self.scaling(xp.astype(X, xp.float64)).mT).mT
        return to_numpy(X)

    def _ask(self, method: str, F: Array) -> np.ndarray | list[np.ndarray]:
        features = self.features(F)
        with lent(features.size):
            return getattr(self.estimator, method)(features)

    def predict(self, targets: Targets, F: Array) -> Array:
        return self._ask("predict", F)

    def decision_function(self, targets: Targets, F: Array) -> Array:
        return self._ask("decision_function", F)

    def predict_proba(self, targets: Targets, F: Array) -> Array:
        """Of labels, where the estimator may give a list with one table per label, the probability of each being 1."""
        tables = self._ask("predict_proba", F)
        if not isinstance(tables, list):
            return tables
        ones = [
            table[:, list(classes).index(1)] if 1 in classes else np.zeros(len(table))
            for table, classes in zip(tables, self.estimator.classes_, strict=True)
        ]
        return np.stack(ones, axis=1)

    def ready(self) -> None:
        """Nothing was put off."""

    def offers(self, method: str) -> bool:
        return hasattr(self.estimator, method)

    def classes_among(self, classes: np.ndarray) -> np.ndarray:
        return getattr(self.estimator, "classes_", classes)

    def check_shapes(self, columns: int, n_outputs: int) -> None:
        if not isinstance(self.estimator, BaseEstimator):
            raise TypeError(f"the head is a {type(self.estimator)}")

    def try_out(self, F: Array) -> None:
        self.features(F)


def softmax_head(moments: Moments) -> EstimatorHead:
    """Multinomial logistic regression, not yet fitted, on features whitened to unit covariance by their moments: there
    it converges in few steps."""
    scaling = Scaling.standard(moments.mean_a, moments.variance_a())
    correlation = moments.gram(centred=True, scale=scaling.inverse) / moments.weight
    factor = cholesky(plus_diagonal(correlation, WHITENING_RIDGE))
    return EstimatorHead(LogisticRegression(max_iter=1000), scaling, factor)


def fit_estimator_head(
    head: EstimatorHead, rows: Rows, features: Callable[[Array], Array], y: np.ndarray | None, fit_params: dict
) -> EstimatorHead:
    """The head with its estimator fitted on the whole features of the rows that count (held at once)."""
    if y is None:
        raise ValueError(
            "A head that is an estimator of its own needs all features in memory, so it cannot be fitted from a "
            "source: use head='shln' or head='ridge', or give arrays."
        )
    counts = np.ones(rows.n, bool) if rows.weight is None else rows.weight > 0
    F = np.concatenate(
        [
            head.features(features(block.X))[counts[block.start : block.start + block.X.shape[0]]].astype(rows.dtype)
            for block in rows.blocks("head: features")
        ]
    )
    per_row = {name: np.asarray(v)[counts] for name, v in fit_params.items() if np.shape(v)[:1] == (rows.n,)}
    with lent(F.size):
        head.estimator = head.estimator.fit(F, y[counts], **{**fit_params, **per_row})
    return head
