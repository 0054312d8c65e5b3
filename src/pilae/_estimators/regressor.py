"""`PILAERegressor`: the whole network, for numbers."""

import warnings
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin, clone

from .._arrays import Array, dtype_name, float_name, namespace, space_of, to_numpy
from .._base.budget import active_budget
from .._base.progress import with_callbacks
from .._base.saveable import saveable
from .._base.scalars import is_number
from .._base.warn import warn
from .._data.blocks import unit_of
from .._data.check import read_X, tamed_weight
from .._data.groups import check_no_groups, give_groups, read_groups
from .._data.opening import Question, answers, columns_of, is_streamed, stream_to_fit
from .._data.rows import Rows
from .._data.sources import Column
from .._data.stream import on_scale_of
from .._data.targets import Numbers, Targets, read_numbers
from .._engine.curve import NORMAL_MEDIAN, curve_for, curve_is_better
from .._engine.intervals import interval_quantiles
from .._search.fit import Result, fit_network
from .._search.spec import Spec
from . import parameters
from .arrival import Arrival
from .base import BasePILAE
from .fitted import FittedModel, attribute

ROBUST_ROUNDS = 6
"""Most fits that loss="robust" takes to find the weights of rows."""

HUBER_ROUNDS = 2

HUBER = 1.345
"""In the first rounds weights fall with the inverse of residuals of more than so many standard deviations."""

SAME_ROWS = 100
"""Two scales of the targets are compared on at least so many rows, or on all; else the user's stays."""

ROBUST_ROWS = 10
"""With fewer rows nobody can say which is wrong."""

BISQUARE = 4.685
"""Residuals of so many standard deviations, or more, count nothing: Tukey's choice, 95% efficient where none is."""

STEADY = 0.05
"""Weights that change by less than this between two fits are found."""


@saveable
class PILAERegressor(RegressorMixin, BasePILAE, onnx="regressor"):
    """A deep network trained by pseudoinverse learning, for regression with one or several outputs.

    Minimises sum_i w_i ||z_i - y_i W||^2 + lambda ||W||^2 over the output weights W, on features that are found
    first. With several outputs each one's error counts relative to its standard deviation.

    Parameters
    ----------
    depth, width, max_depth, growth
        How many autoencoder layers of how many neurons, as in `PILAEClassifier`.
    layer : PILAutoencoder, optional
        How a layer is built, as in `PILAEClassifier`; anchors are spread over the rows without regard to targets.
    head : {"shln", "ridge"}, SHLN or estimator, default="shln"
        "shln": one more hidden layer of anchor neurons, then the output ridge; `SHLN(width=4000)` says how it is built.
        "ridge": the output ridge on the features. Any scikit-learn regressor is fitted on the features, which are then
        held whole.
    skip, branches, ridge, input_scaling, categorical_features
        As in `PILAEClassifier`.
    loss : {"squared", "robust"}, default="squared"
        "robust": rows far from what the others say get less weight, or none (Tukey's bisquare of the length of their
        leave-one-out residual in the output where it is largest, over a few fits). For targets of which up to a fifth
        are grossly wrong; takes as many times as long. `loo_score_` and intervals are then about rows that count.
    target_scaling : {"auto", "none", "asinh"}, default="auto"
        The scale that targets are fitted on. "asinh" is linear in the middle and logarithmic in the tails, for targets
        of which single ones are many times as large as most; predictions are means in the units of `y` (smearing by
        leave-one-out residuals). "auto": where residuals have heavy tails both are tried, and the one with the lower
        squared leave-one-out error in the units of `y` stays.
    fit_rows, device, dtype, block_rows, keep_statistics, random_state, verbose
        As in `PILAEClassifier`.

    Attributes
    ----------
    loo_score_ : float
        Leave-one-out R2 (mean over outputs) on at most 10,000 rows, less the luck of having been chosen by it.
    layers_, head_, head_width_, ridge_, ridge_path_, width_path_, search_, feature_importances_, loo_predictions_,
    loo_is_stale_, stream_, stream_score_, rows_in_, approximate_, network_, network_hash_, n_passes_, fit_stats_,
    n_features_in_, feature_names_in_
        As in `PILAEClassifier`.
    target_scaling_ : {"none", "asinh"}
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
    _head_example = "sklearn.ensemble.RandomForestRegressor()"
    _rules: ClassVar[parameters.Rules] = {
        "loss": parameters.choice("squared", "robust"),
        "target_scaling": parameters.choice("auto", "none", "asinh"),
    }

    row_weights_ = attribute("row_weights")

    def __init__(
        self,
        depth="auto",
        width="auto",
        *,
        max_depth=5,
        growth="loo",
        layer=None,
        skip="auto",
        branches="auto",
        head="shln",
        ridge="auto",
        input_scaling="auto",
        categorical_features="from_dtype",
        loss="squared",
        target_scaling="auto",
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        keep_statistics=True,
        random_state=None,
        verbose=0,
    ):
        parameters.remember(self, locals())

    @with_callbacks
    def fit(self, X, y=None, sample_weight=None, *, groups=None, **fit_params):
        """Fit the network.

        Parameters
        ----------
        X : array-like, DataFrame or CSR matrix of shape (n_samples, n_features), or a source that brings its targets
            Gaps (NaN) and columns that are no numbers as in `PILAEClassifier`.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 3 counts as three equal rows, in leave-one-out too, where only one of them is left out: bring
            weights that say how much a row matters to a mean of 1 or less.
        groups : array-like of shape (n_samples,), optional
            Which rows belong together, as in `PILAEClassifier.fit`: they leave together wherever leave-one-out is said.
        **fit_params
            Passed to the `fit` of a head estimator.

        Returns
        -------
        self
        """
        make = partial(self._first_fit, X, y, None, sample_weight, fit_params, groups)
        return self._refitted(make, X, y, sample_weight)

    def _first_fit(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, fit_params: dict, groups: Any = None
    ) -> FittedModel:
        spec, running = self._spec(), self._running()
        tables = self.categorical_features is not None
        if is_streamed(X):
            check_no_groups(groups)
            if self.loss == "robust":
                raise ValueError("loss='robust' weighs rows one by one, and takes arrays: read the source into one.")
            stream = stream_to_fit(running, X, y, sample_weight, Numbers, on_gaps="report", tables=tables)
            routed = self._head_fit_params(None, fit_params, given=False)
            targets, columns = Numbers.after(stream.look), columns_of(stream.source)
            categorical = columns.categorical(self.categorical_features)
            if categorical:
                stream.learn_intake(categorical)
            return self._fitted_to(spec, stream, columns, targets, None, routed)
        X, columns, gaps, _ = read_X(X, running.name, min_rows=2, gaps=True, tables=tables)
        categorical = columns.categorical(self.categorical_features)
        w, exponent = tamed_weight(sample_weight, X.shape[0])
        targets, encoding = read_numbers(y, X.shape[0], self.dtype or float_name(X), running.name)
        row_weights = None
        assert encoding.targets is not None
        if (encoding.targets == encoding.targets[0]).all():
            warn(
                f"y is {encoding.targets[0, 0]:g} in every row: there is nothing to learn, and no score says anything."
            )
        if self.loss == "robust":
            row_weights = self._robust_weights(X, encoding.targets, w, {**fit_params, "groups": groups}, categorical)
            w = row_weights if w is None else w * row_weights
        rows = running.rows(X, encoding, w, unit_of(w), categorical, gaps=gaps)
        give_groups(rows, read_groups(groups, rows.n), spec.seed)
        routed = self._head_fit_params(w, fit_params, groups, given=w is not None)
        fitted = self._fitted_to(spec, rows, columns, targets, encoding, routed)
        return replace(fitted, weight_exponent=exponent, row_weights=row_weights, grouped=groups is not None)

    def _robust_weights(
        self, X: Any, Y: np.ndarray, w: np.ndarray | None, fit_params: dict, categorical: tuple[int, ...]
    ) -> np.ndarray:
        """One weight for each row from the length of its residual: of leave-one-out where a row was scored, so that a
        row cannot vouch for itself."""
        counts = np.ones(len(Y), bool) if w is None else w > 0
        weights = np.ones(len(Y))
        if counts.sum() < ROBUST_ROWS:
            return weights
        plain = clone(self).set_params(loss="squared", keep_statistics=False, verbose=0)
        plain.set_params(categorical_features=list(categorical) or "from_dtype")  # X is an array by now
        for round_ in range(ROBUST_ROUNDS):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the fit that stays says what there is to say
                plain.fit(X, Y, sample_weight=weights if w is None else w * weights, **fit_params)
                left_out = _left_out(plain, X, Y.shape)
            length = _residual_lengths(Y, left_out, counts)
            before = weights
            if round_ < HUBER_ROUNDS:  # large errors count less, none is thrown away yet: the first fit may be far off
                weights = np.minimum(1.0, HUBER / np.maximum(length, HUBER))
            else:
                weights = np.maximum(1.0 - (length / BISQUARE) ** 2, 0.0) ** 2
                if np.max(np.abs(weights - before)) < STEADY:
                    break
        return weights

    def _network_for(
        self, spec: Spec, rows: Rows, y: Column, fit_params: dict, targets: Targets
    ) -> tuple[Result, Targets]:
        """On the user's scale, and where tails are heavy on another one too: the better stays."""
        plain, asked = super()._network_for(spec, rows, y, fit_params, targets)[0], self.target_scaling
        # weights of a robust fit have dealt with the tails; what is given is not searched for
        leave = asked == "none" or (asked == "auto" and (self.loss == "robust" or not spec.searching))
        late = asked == "auto" and active_budget().used_up
        if leave or late or plain.judging is None:
            return plain, targets
        assert isinstance(targets, Numbers)
        curve = curve_for(plain.judging, plain.reach, always=asked == "asinh")
        if curve is None:
            return plain, targets
        curved = replace(targets, curve=curve)
        other = fit_network(spec, on_scale_of(curved, rows), y, fit_params, curved.merits)
        curved = curved.smeared(other.head.residuals())
        assert other.judging is not None
        scale = np.maximum(np.std(plain.judging.targets, axis=0), np.finfo(float).tiny)
        # rows are drawn by what they are with their targets: of many each scale has others, and always another order
        _, mine, theirs = np.intersect1d(plain.judges, other.judges, return_indices=True)
        users, enough = curved.of_users(other.judging).at(theirs), len(mine) >= min(SAME_ROWS, len(plain.judges))
        if asked == "asinh" or (enough and curve_is_better(plain.judging.at(mine), users, scale)):
            return other, curved
        return plain, targets

    @property
    def target_scaling_(self) -> str:
        """The scale that targets were fitted on."""
        targets = self._read().targets
        return "none" if not isinstance(targets, Numbers) or targets.curve is None else "asinh"

    def partial_fit(
        self,
        X,
        y=None,
        sample_weight=None,
        update="head",
        *,
        decay=None,
        half_life=None,
        test_first=False,
        current=False,
        window=None,
    ):
        """Add rows. The first call fits the network; later ones, also after `fit`, add to the output layer exactly.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        update, decay, half_life, test_first, current, window
            As in `PILAEClassifier.partial_fit`.

        Returns
        -------
        self
        """
        return self._partial_fit(
            X, y, None, sample_weight, Arrival.asked(update, decay, half_life, test_first, current, window)
        )

    @property
    def n_outputs(self) -> int:
        """Number of target columns."""
        return self._read().targets.n_outputs

    def _check_additive(self, method: str) -> None:
        if self.loss == "robust":
            raise ValueError(
                f"{method} cannot be exact with loss='robust', where weights depend on all rows: fit with "
                "loss='squared' and sample_weight=model.row_weights_ to go on."
            )

    def predict(self, X) -> Array:
        """Predicted targets: (n_samples,) or (n_samples, n_outputs), in X's library and on its device."""
        return self._ask("predict", X)

    def predict_interval(self, X, coverage: float = 0.9) -> Array:
        """Intervals that hold about `coverage` of new targets, wider where residuals are larger.

        Half an interval, on the scale that targets were fitted on (`target_scaling_`), is the quantile of leave-one-out
        residuals (the jackknife) of rows that are predicted about as high, each in units of the size that residuals
        have about its row: a ridge of their logarithm on what the output layer sees, where leave-one-out says that it
        helps. What made residuals small by the luck of the choice (`loo_score_`) is added. Those of rows that are far
        (`is_far`) hold at least this share of the targets of all rows. Coverage is approximate, for rows like the
        training rows, and not a promise for each row. With fewer than 60 rows all intervals are equally wide on that
        scale.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float between 0 and 1, default=0.9

        Returns
        -------
        array of shape (n_samples, 2) or (n_samples, n_outputs, 2): lower and upper ends
        """
        fitted = self._read()
        loo = fitted.head.residuals()
        if not is_number(coverage) or not 0 < coverage < 1:
            raise ValueError(f"'coverage' must be a number between 0 and 1. Got {coverage!r} instead.")
        fitted.ready()
        head, network, targets = fitted.head.linear("predict_interval"), fitted.network, fitted.targets
        assert isinstance(targets, Numbers)
        quantile = interval_quantiles(loo, head.output.local_scale, coverage, fitted.luck)
        bounds = fitted.bounds
        seen = targets.between(loo, coverage)

        def ends(rows: Array) -> Array:
            low, high = targets.ends(*head.intervals(fitted.features(rows), quantile))
            xp = namespace(low)
            if bounds is not None:  # of a row that is far from all others nothing is known but what targets are
                far = bounds.far(rows)
                far = far if low.ndim == 1 else far[:, None]
                least, most = (space_of(low).asarray(end, dtype_name(low)) for end in seen)
                low, high = xp.where(far, xp.minimum(low, least), low), xp.where(far, xp.maximum(high, most), high)
            return xp.stack([low, high], axis=-1)

        question = Question(ends, head.widest, "predict_interval", (coverage,), at_once=True)
        return answers(self, network, fitted.columns, X, question)

    def score(self, X, y=None, sample_weight=None) -> float:
        """R2, the mean over outputs. A source brings its targets."""
        return self._score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _left_out(model: PILAERegressor, X: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Predictions for the training rows, by leave-one-out where a row was scored."""
    outputs = to_numpy(model.predict(X)).reshape(shape).astype(float)
    left_out = getattr(model, "loo_predictions_", None)
    if left_out is not None:
        outputs[left_out.rows] = left_out.predicted.reshape(len(left_out.rows), -1)
    return outputs


def _residual_lengths(Y: np.ndarray, outputs: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Of each row the residual in the output where it is largest, in robust standard deviations."""
    residual = Y - outputs
    middle = np.median(residual[counts], axis=0)
    spread = np.median(np.abs(residual[counts] - middle), axis=0) / NORMAL_MEDIAN
    return np.max(np.abs(residual - middle) / np.where(spread > 0, spread, 1.0), axis=1)
