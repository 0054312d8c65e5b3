"""`PILAERegressor`: the whole network, for numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import RegressorMixin, clone
from sklearn.metrics import r2_score

from .._arrays import Array, dtype_name, float_name, space_for, space_of, to_numpy
from .._base.progress import Progress, with_callbacks
from .._base.saveable import saveable
from .._base.scalars import is_number
from .._data.check import check_X
from .._data.dask import is_dask, lazy_on_dask, r2
from .._data.opening import is_streamed, rows_to_ask, stream_to_add, stream_to_fit
from .._data.rows import Rows, unit_of
from .._data.sources import Source
from .._data.targets import check_targets
from .._engine.loo import Scored
from .._network.calibration import residual_quantiles
from .._network.head import EstimatorHead, LinearHead
from . import parameters
from .base import BasePILAE, LeftOut
from .whole import at_one_moment, whole_fit, whole_update

ROBUST_ROUNDS = 6
"""Most fits that loss="robust" takes to find the weights of rows."""

HUBER_ROUNDS = 2

HUBER = 1.345
"""In the first rounds weights fall with the inverse of residuals of more than so many standard deviations."""

ROBUST_ROWS = 10
"""With fewer rows nobody can say which is wrong."""

BISQUARE = 4.685
"""Residuals of so many standard deviations, or more, count nothing: Tukey's choice, 95% efficient where none is."""

NORMAL_MEDIAN = 0.6745
"""The median of absolute normal errors over their standard deviation."""


@saveable
class PILAERegressor(RegressorMixin, BasePILAE, onnx="regressor"):
    """A deep network trained by pseudoinverse learning, for regression with one or several outputs.

    Minimises sum_i w_i ||z_i - y_i W||^2 + lambda ||W||^2 over the output weights W, on features found without
    targets. With several outputs each one's error counts relative to its standard deviation.

    Parameters
    ----------
    depth, width, max_depth, growth
        How many autoencoder layers of how many neurons, as in `PILAEClassifier`.
    encoder, anchors, encoder_ridge, activation, gain, decoder_ridge, decoder_l1, tied
        How a layer is built, as in `PILAEClassifier`; anchors are spread over the rows without regard to targets.
    head : {"shln", "ridge"} or estimator, default="shln"
        "shln": one more hidden layer of anchor neurons, then the output ridge. "ridge": the output ridge on the
        features. Any scikit-learn regressor is fitted on the features, which are then held whole.
    skip, branches, head_width, head_encoder_ridge, head_anchors, direct_links, head_activation, ridge, input_scaling
        As in `PILAEClassifier`.
    loss : {"squared", "robust"}, default="squared"
        "robust": rows far from what the others say get less weight, or none (Tukey's bisquare of the length of their
        leave-one-out residual in the output where it is largest, over a few fits). For targets of which up to a fifth
        are grossly wrong; takes as many times as long. `loo_score_` and intervals are then about rows that count.
    fit_rows, device, dtype, block_rows, keep_statistics, random_state, verbose
        As in `PILAEClassifier`.

    Attributes
    ----------
    loo_score_ : float
        Leave-one-out R2 (mean over outputs) on at most 10,000 rows. The others are those of `PILAEClassifier`.
    row_weights_ : ndarray of shape (n_samples,)
        What loss="robust" gave each row, from 0 to 1.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from pilae import PILAERegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = PILAERegressor().fit(X, y)
    >>> bool(0.4 < model.loo_score_ < 0.6)
    True
    """

    _heads = ("shln", "ridge")

    def __init__(
        self,
        depth="auto",
        width="auto",
        max_depth=5,
        growth="loo",
        encoder="rows",
        anchors="spread",
        encoder_ridge="auto",
        activation="sigmoid",
        gain=(4, 1),
        decoder_ridge=1e-3,
        decoder_l1=0.0,
        tied=True,
        skip="auto",
        branches="auto",
        head="shln",
        head_width="auto",
        head_encoder_ridge="auto",
        head_anchors="auto",
        direct_links="auto",
        head_activation="auto",
        ridge="auto",
        input_scaling="auto",
        loss="squared",
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        keep_statistics=True,
        random_state=None,
        verbose=0,
    ):
        super().__init__(
            depth=depth,
            width=width,
            max_depth=max_depth,
            growth=growth,
            encoder=encoder,
            anchors=anchors,
            encoder_ridge=encoder_ridge,
            activation=activation,
            gain=gain,
            decoder_ridge=decoder_ridge,
            decoder_l1=decoder_l1,
            tied=tied,
            skip=skip,
            branches=branches,
            head=head,
            head_width=head_width,
            head_encoder_ridge=head_encoder_ridge,
            head_anchors=head_anchors,
            direct_links=direct_links,
            head_activation=head_activation,
            ridge=ridge,
            input_scaling=input_scaling,
            fit_rows=fit_rows,
            device=device,
            dtype=dtype,
            block_rows=block_rows,
            keep_statistics=keep_statistics,
            random_state=random_state,
            verbose=verbose,
        )
        self.loss = loss

    @whole_fit
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None, **fit_params):
        """Fit the network.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or a source that brings its targets
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 3 counts as three equal rows, in leave-one-out too, where only one of them is left out: bring
            weights that say how much a row matters to a mean of 1 or less.
        **fit_params
            Passed to the `fit` of a head estimator.

        Returns
        -------
        self
        """
        self._check_params()
        parameters.check_choice(self, "loss", ("squared", "robust"))
        if is_streamed(X):
            if self.loss == "robust":
                raise ValueError("loss='robust' weighs rows one by one, and takes arrays: read the source into one.")
            stream, first = stream_to_fit(self, X, y, sample_weight, labels=False)
            self.flat_ = first.n_outputs == 1
            self._fit_rows(stream, None, self._head_fit_params(None, fit_params, given=False))
        else:
            X = check_X(self, X, reset=True, min_rows=2)
            w = self._fit_weight(sample_weight, X.shape[0])
            Y, self.flat_ = check_targets(self, y, X.shape[0], self.dtype or float_name(X))
            if self.loss == "robust":
                self.row_weights_ = self._found_weights(X, Y, w, fit_params)
                w = self.row_weights_ if w is None else w * self.row_weights_
            rows = Rows(
                X,
                space_for(X, self.device),
                targets=Y,
                weight=w,
                unit=unit_of(w),
                block_rows=self.block_rows,
                dtype=self.dtype,
                progress=Progress(self.verbose),
            )
            routed = self._head_fit_params(w, fit_params, given=w is not None)
            self._fit_rows(rows, Y[:, 0] if self.flat_ else Y, routed)
        if isinstance(self.head_, LinearHead):
            self._set_loo(self.head_.output.loo)
        return self

    def _found_weights(self, X: Any, Y: np.ndarray, w: np.ndarray | None, fit_params: dict) -> np.ndarray:
        """One weight for each row from the length of its residual: of leave-one-out where a row was scored, so that a
        row cannot vouch for itself."""
        counts = np.ones(len(Y), bool) if w is None else w > 0
        found = np.ones(len(Y))
        if counts.sum() < ROBUST_ROWS:
            return found
        plain = clone(self).set_params(loss="squared", keep_statistics=False, verbose=0)
        for round_ in range(ROBUST_ROUNDS):
            plain.fit(X, Y, sample_weight=found if w is None else w * found, **fit_params)
            outputs = to_numpy(plain.predict(X)).reshape(Y.shape).astype(float)
            if isinstance(plain.head_, LinearHead):
                left_out = plain.loo_predictions_
                outputs[left_out.rows] = left_out.predicted.reshape(len(left_out.rows), -1)
            residual = Y - outputs
            middle = np.median(residual[counts], axis=0)
            spread = np.median(np.abs(residual[counts] - middle), axis=0) / NORMAL_MEDIAN
            length = np.max(np.abs(residual - middle) / np.where(spread > 0, spread, 1.0), axis=1)
            before = found
            if round_ < HUBER_ROUNDS:  # large errors count less, none is thrown away yet: the first fit may be far off
                found = np.minimum(1.0, HUBER / np.maximum(length, HUBER))
            else:
                found = np.maximum(1.0 - (length / BISQUARE) ** 2, 0.0) ** 2
                if np.max(np.abs(found - before)) < 0.05:
                    break
        return found

    @whole_update
    def partial_fit(self, X, y=None, sample_weight=None, update="head"):
        """Add rows. The first call fits the network; later ones, also after `fit`, add to the output layer exactly.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        update : {"head", "all"}, default="head"
            As in `PILAEClassifier.partial_fit`.

        Returns
        -------
        self
        """
        self._partial_fit(X, y, None, sample_weight, update)
        return self

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self.fit(X, y, sample_weight)

    @property
    def n_outputs(self: Any) -> int:
        """Number of target columns."""
        return int(self.head_.output.coef.shape[1])

    def _new_rows(self: Any, method: str, X: Any, y: Any, sample_weight: Any, classes: Any = None) -> tuple[Rows, None]:
        """Rows for an update by `method`."""
        if is_streamed(X):
            stream, first = stream_to_add(self, X, y, sample_weight, labels=False)
            if first.n_outputs != self.n_outputs:
                raise ValueError(f"y has {first.n_outputs} columns, but the model was fitted on {self.n_outputs}.")
            return stream, None
        rows = rows_to_ask(self, X, method)
        w = self._later_weight(sample_weight, rows.n)
        rows.weight, rows.unit = w, unit_of(w)
        rows.targets, _ = check_targets(self, y, rows.n, rows.dtype)
        if rows.targets.shape[1] != self.n_outputs:
            raise ValueError(f"y has {rows.targets.shape[1]} columns, but the model was fitted on {self.n_outputs}.")
        return rows, None

    def _set_loo(self: Any, loo: Scored) -> None:
        left_out = loo.outputs[:, 0] if self.flat_ else loo.outputs
        self.loo_predictions_ = LeftOut(self.head_.output.scored_rows, left_out)
        self.loo_score_ = float(r2_score(loo.targets, loo.outputs, sample_weight=loo.chooser))
        self.loo_is_stale_ = False

    @lazy_on_dask
    @at_one_moment
    def predict(self, X) -> Array:
        """Predicted targets: (n_samples,) or (n_samples, n_outputs), in X's library and on its device."""
        if isinstance(self._current_head(), EstimatorHead):
            return self._ask_estimator("predict", X)
        scores = self._scores(X, "predict")
        return scores[:, 0] if self.flat_ else scores

    @lazy_on_dask
    @at_one_moment
    def predict_interval(self, X, coverage: float = 0.9) -> Array:
        """Intervals that hold about `coverage` of new targets: prediction plus or minus one width for all rows.

        The width is the quantile of the absolute leave-one-out residuals (the jackknife). Coverage is approximate: it
        is an average over rows like the training rows, not a promise for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float between 0 and 1, default=0.9

        Returns
        -------
        array of shape (n_samples, 2) or (n_samples, n_outputs, 2): lower and upper ends
        """
        head = self._current_head()
        if isinstance(head, EstimatorHead):
            raise ValueError("predict_interval needs leave-one-out residuals: use head='shln' or head='ridge'.")
        if head.output.loo is None:
            raise ValueError("This fork knows no residuals yet: call recalibrate(X, y) with rows that are in it.")
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"'coverage' must be a number between 0 and 1. Got {coverage!r} instead.")
        centre = self._scores(X, "predict_interval")
        space = space_of(centre)
        half = space.asarray(residual_quantiles(head.output.loo, coverage), dtype_name(centre))
        ends = space.xp.stack([centre - half, centre + half], axis=-1)
        return ends[:, 0, :] if self.flat_ else ends

    def score(self, X, y=None, sample_weight=None) -> float:
        """R2, the mean over outputs. A source brings its targets."""
        if is_dask(X):
            return r2(self, X, y, sample_weight)
        if isinstance(X, Source) and y is None:
            y, sample_weight = X.targets()
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
