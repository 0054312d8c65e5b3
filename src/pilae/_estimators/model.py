"""The whole network: `PILAEClassifier` and `PILAERegressor`.

Thin on purpose: parameters in, functions of the other files called, attributes out.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import sklearn
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
)
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import has_fit_parameter

from .._arrays import Array, as_labels, dtype_name, float_name, space_for, space_of, to_numpy
from .._base.progress import CallbackSupportMixin, Progress, peak_megabytes, with_callbacks
from .._base.saveable import saveable
from .._base.scalars import is_number
from .._base.whole import at_one_moment, whole_fit, whole_update
from .._data.check import TAME, check_weight, check_X, scaled_weight, tamed_weight
from .._data.dask import accuracy, is_dask, lazy_on_dask, r2
from .._data.opening import is_streamed, rows_to_ask, stream_to_add, stream_to_fit
from .._data.rows import Rows, unit_of
from .._data.sources import Source
from .._data.targets import (
    all_classes,
    check_labels,
    check_new_labels,
    check_targets,
    class_numbers,
    plain_labels,
    weights_of_labels,
)
from .._engine.activations import ACTIVATIONS
from .._engine.loo import Scored
from .._network.head import EstimatorHead, LinearHead, residual_quantiles
from .._search.search import MOST_BRANCHES, fit_network
from ..export import OnnxMixin
from ..save import SaveMixin
from . import parameters
from .stack import layer_number
from .update import UpdateMixin, Wider

if TYPE_CHECKING:
    from ..report import Report


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


def _head_has(method: str):
    """For methods that a head estimator may lack; the built-in heads have them all."""

    def check(self) -> bool:
        if not isinstance(self.head, str):
            fitted = getattr(self, "head_", None)
            getattr(self.head if fitted is None else fitted.estimator, method)  # AttributeError: it has none
        return True

    return check


@saveable
class LeftOut(NamedTuple):
    """Rows of the training data, and what is predicted for each by an output layer that has not seen it."""

    rows: np.ndarray
    predicted: np.ndarray


class _BasePILAE(
    SaveMixin,
    OnnxMixin,
    UpdateMixin,
    CallbackSupportMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """What classifier and regressor share."""

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
        fit_rows=None,
        device=None,
        dtype=None,
        block_rows="auto",
        keep_statistics=True,
        random_state=None,
        verbose=0,
    ):
        self.depth = depth
        self.width = width
        self.max_depth = max_depth
        self.growth = growth
        self.encoder = encoder
        self.anchors = anchors
        self.encoder_ridge = encoder_ridge
        self.activation = activation
        self.gain = gain
        self.decoder_ridge = decoder_ridge
        self.decoder_l1 = decoder_l1
        self.tied = tied
        self.skip = skip
        self.branches = branches
        self.head = head
        self.head_width = head_width
        self.head_encoder_ridge = head_encoder_ridge
        self.head_anchors = head_anchors
        self.direct_links = direct_links
        self.head_activation = head_activation
        self.ridge = ridge
        self.input_scaling = input_scaling
        self.fit_rows = fit_rows
        self.device = device
        self.dtype = dtype
        self.block_rows = block_rows
        self.keep_statistics = keep_statistics
        self.random_state = random_state
        self.verbose = verbose

    # ------------------------------------------------------------------------------------------- fitting

    def _check_params(self) -> None:
        parameters.check_network(self)
        parameters.check_running(self)
        parameters.check_flag(self, "skip", ("auto",))
        parameters.check_count(self, "branches", ("auto",))
        if self.branches != "auto" and self.branches > MOST_BRANCHES:
            raise parameters.bad(self, "branches", f"'auto' or an integer from 1 to {MOST_BRANCHES}")
        parameters.check_count(self, "head_width", ("auto", "formula"))
        parameters.check_choice(self, "head_activation", ("auto", *ACTIVATIONS))
        parameters.check_number(self, "head_encoder_ridge", ("auto",), infinite=True)
        parameters.check_choice(self, "head_anchors", ("auto", "rows", "pairs"))
        parameters.check_flag(self, "direct_links", ("auto",))
        parameters.check_flag(self, "keep_statistics")
        parameters.check_number(self, "ridge", ("auto", "guo2003"))
        if isinstance(self.head, str):
            parameters.check_choice(self, "head", self._heads)
        elif not hasattr(self.head, "fit") or isinstance(self.head, type):
            raise parameters.bad(self, "head", f"one of {self._heads} or a scikit-learn estimator (an object with fit)")

    def _fit_weight(self, sample_weight: Any, n: int) -> np.ndarray | None:
        w, exponent = tamed_weight(sample_weight, n)
        if exponent:
            self.weight_exponent_ = exponent
        return w

    def _later_weight(self: Any, sample_weight: Any, n: int) -> np.ndarray | None:
        """Of rows that come or go after `fit`, in its units."""
        return scaled_weight(check_weight(sample_weight, n), n, self.weight_exponent_)

    def _fit_rows(self, rows: Rows, y: np.ndarray | None, fit_params: dict) -> None:
        """Grow the network on `rows`, fit the head, set the fitted attributes."""
        start = time.perf_counter()
        rows.progress.begin(self)
        try:
            result = fit_network(self, rows, y, fit_params)
        finally:
            rows.progress.close()
        seconds = time.perf_counter() - start
        self.fit_stats_ = {
            "rows": rows.n,
            "passes": rows.passes,
            "seconds": seconds,
            "rows_per_second": rows.n * rows.passes / seconds,
            "peak_megabytes": peak_megabytes(),
        }
        rows.progress.summary(self.fit_stats_)
        head = result.head
        self.network_, self.layers_, self.head_ = result.network, result.network.layers, head
        self.search_ = result.table
        self.approximate_ = self.loo_is_stale_ = False
        self.n_passes_ = rows.passes
        self._n_features_out = self.layers_[-1].width if self.layers_ else rows.d
        if isinstance(head, LinearHead):
            self.head_width_, self.ridge_ = head.width, head.output.ridge
            self.ridge_path_ = head.output.path
            if head.output.width_path is not None:
                self.width_path_ = head.output.width_path
        rows.progress.end()

    # ----------------------------------------------------------------------------------------- predicting

    def _settle(self) -> None:
        head = self.head_
        if isinstance(head, LinearHead) and head.output.moments is not None and head.output.moments.count:
            self._current_head()

    def _check_loaded(self) -> None:
        width = self.network_.check_shapes(self.n_features_in_)
        if isinstance(self.head_, LinearHead):
            self.head_.check_shapes(width)
        zeros = np.zeros((1, self.n_features_in_))
        rows = Rows(zeros, self.network_.space, block_rows=self.block_rows, dtype=self.network_.dtype)
        F, head = rows.map(self.network_, self._widest), self.head_
        if isinstance(head, LinearHead):
            outputs = head.scores(F)
            n_outputs = len(self.classes_) if hasattr(self, "classes_") else self.n_outputs
            moments = head.output.moments
            if head.output.solved and outputs.shape != (1, n_outputs):
                raise ValueError(f"{outputs.shape[1]} outputs for {n_outputs} targets")
            if moments is not None and moments.count and moments.ab.shape != (head.output.coef.shape[0], n_outputs):
                raise ValueError(f"sums of shape {moments.ab.shape} for {n_outputs} targets")
        elif not isinstance(head.estimator, BaseEstimator):
            raise TypeError(f"the head is a {type(head.estimator)}")
        else:
            head.features(F)

    @property
    def _widest(self) -> int:
        widths = [layer.width for layer in self.layers_]
        return max([self.n_features_in_, getattr(self, "head_width_", 0), *widths])

    def _scores(self, X: Any, method: str) -> Array:
        """Outputs of a linear head, one column per class or target."""
        rows, head = rows_to_ask(self, X, method), self._current_head()
        return rows.map(lambda block: head.scores(self.network_(block)), self._widest)

    def _ask_estimator(self, method: str, X: Any) -> Any:
        rows, head = rows_to_ask(self, X, method), self._current_head()
        ask = getattr(head, method, None) or getattr(head.estimator, method)
        return rows.map(lambda block: ask(head.features(self.network_(block))), self._widest)

    @lazy_on_dask
    @at_one_moment
    def transform(self, X: Any, layer: int | None = None) -> Array:
        """Features of the autoencoder layers (the head's input).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        layer : int, optional
            Stop after this many layers; by default the last.

        Returns
        -------
        array of shape (n_samples, width of that layer)
        """
        rows = rows_to_ask(self, X, "transform")
        depth = layer_number(self, layer)
        return rows.map(lambda block: self.network_(block, depth), self._widest)

    def report(
        self, X: Any = None, y: Any = None, *, title: str | None = None, image_shape: tuple[int, ...] | None = None
    ) -> Report:
        """What this model is, why, and how good on test rows: shown in a notebook, or saved as HTML, Markdown or JSON.

        Parameters
        ----------
        X, y : test rows and their targets, optional
        title : str, optional
        image_shape : tuple, optional
            How to draw a row; rows that look like square images are drawn anyway.

        Returns
        -------
        Report
            `save(path)` writes `.html`, `.md` or `.json`; `summary` is a dict of everything it says.
        """
        from ..report import make_report

        return make_report(self, X, y, title=title, image_shape=image_shape)

    def get_metadata_routing(self):
        """Metadata routing: `sample_weight` for this estimator, and what a head estimator asks for."""
        if isinstance(self.head, str):
            return super().get_metadata_routing()
        return (
            MetadataRouter(owner=self)
            .add_self_request(self)
            .add(head=self.head, method_mapping=MethodMapping().add(caller="fit", callee="fit"))
        )

    def _head_fit_params(self, sample_weight: np.ndarray | None, params: dict, *, given: bool) -> dict:
        """What the head's fit gets: by routing where it is on, otherwise the weights if the head takes them.

        `given`: the user passed sample_weight (and it is not from class_weight alone).
        """
        if isinstance(self.head, str):
            if params:
                raise TypeError(f"{type(self).__name__}.fit got unexpected arguments {sorted(params)}.")
            return {} if sample_weight is None else {"sample_weight": sample_weight}
        if sklearn.get_config()["enable_metadata_routing"]:
            # the network uses sample_weight itself, so the head is offered it too
            asked = get_routing_for_object(self.head).fit.requests.get("sample_weight") is True
            offered = (
                {"sample_weight": sample_weight, **params} if given or (asked and sample_weight is not None) else params
            )
            return dict(process_routing(self, "fit", **offered).head.fit)
        if sample_weight is not None and has_fit_parameter(self.head, "sample_weight"):
            return {"sample_weight": sample_weight, **params}
        return dict(params)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


@saveable
class PILAEClassifier(ClassifierMixin, _BasePILAE, onnx="classifier"):
    """A deep network trained by pseudoinverse learning, for classification.

    Autoencoder layers are fitted one on another in closed form (see `StackedPILAE`); on their features the head
    minimises sum_i w_i ||z_i - y_i W||^2 + lambda ||W||^2 (eq 12), with 0/1 targets z, one column per class. No
    gradient descent, no epochs; the same rows in any order and any blocks give the same network.

    Parameters
    ----------
    depth : int or "auto", default="auto"
        Number of autoencoder layers; 0 is the paper's single-hidden-layer network on the input. With "auto" (and
        growth="loo") the whole structure is searched, see Notes.
    width : "auto", "rank", "decay", ("rank", alpha), ("decay", beta), ("error", target), int or list of int, \
default="auto"
        Neurons of the autoencoder layers, as in `StackedPILAE`. A list fixes the depth.
    max_depth : int, default=5
        The most layers that depth="auto" grows.
    growth : "loo", "rank" or float, default="loo"
        With depth="auto": "loo" adds layers until one more does not lower the leave-one-out loss of the
        output layer; "rank" (or a number) is the paper's rule, see `StackedPILAE`. With many more rows than neurons
        that rule never fires and grows `max_depth` layers, which can be too many.
    encoder : {"rows", "truncated"}, default="rows"
        Encoder of the autoencoder layers.
    anchors : {"spread", "first"}, default="spread"
        Which rows become neurons. "spread" takes them by a hash of the row, class after class in turn.
    encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        Ridge inside the pseudoinverse, in the layers and in the head; infinity leaves the anchor rows themselves.
        "auto": 1e-3 in the layers, in the head found by the search, or without one 1e-6 on the features of layers
        and 1 on the input itself.
    activation : str, default="sigmoid"
        Of the autoencoder layers: sigmoid, tanh, relu, relu2 (its square), sin, softplus, swish, gelu or linear.
    gain : (float, float) or None, default=(4, 1)
        Root-mean-square of the pre-activations of a layer before its decoder is solved, and after tying; None
        leaves them as they come (the paper to the letter: nearly linear on many rows).
    decoder_ridge : float, default=1e-3
        lambda_1 of (27), relative to the mean diagonal of H'H.
    decoder_l1 : float, default=0.0
        Sparse decoders, and with them tied encoders: a penalty on absolute weights, as in `StackedPILAE`.
    tied : bool, default=True
        Whether a layer's features come from the transposed decoder, W_e = W_d' (the paper), or from the pseudoinverse
        encoder itself, so that the decoder only says how much is lost.
    skip : bool or "auto", default="auto"
        Whether the head sees the input and the features of all layers, and not of the last one alone (a residual
        network). "auto" is found by the search, or without one False.
    branches : int from 1 to 4 or "auto", default="auto"
        Stacks of layers side by side, with other anchors and activations (tanh, relu, sin), all seen by the head.
        "auto" is found by the search (one or two), or without one 1. Depth 0 has none.
    head : {"shln", "ridge", "softmax"} or estimator, default="shln"
        "shln": one more hidden layer of anchor neurons, then the output ridge. "ridge": the output ridge on the
        features. "softmax": LogisticRegression on whitened features. Any scikit-learn classifier is fitted on
        the features, which are then held whole.
    head_width : int, "auto" or "formula", default="auto"
        Hidden neurons of the SHLN. "auto" takes the width of lowest squared leave-one-out error of all widths up to
        half the distinct rows (a third of few), 1,000 and one for every 15 rows, or 5,000, whichever is least.
        "formula" is eqs (30) and (31), refitted on the paper's data.
    head_encoder_ridge : "auto" or float from 0 to infinity, default="auto"
        The same for the head alone, where it is to be another than `encoder_ridge`.
    head_anchors : {"auto", "rows", "pairs"}, default="auto"
        What a hidden neuron of the SHLN is made from: an anchor row, or the difference of two, with its border midway
        between them. "auto" is found by the search, or without one "rows".
    direct_links : bool or "auto", default="auto"
        Whether the SHLN's input is linked to the output too, beside the hidden neurons. "auto" is found by the search,
        or without one False.
    head_activation : str, default="auto"
        Of the SHLN's hidden layer; "auto" is found by the search, or without one "relu".
    ridge : float, "auto" or "guo2003", default="auto"
        Output ridge per unit of weight on standardised features. "auto" has the lowest squared leave-one-out
        error; "guo2003" is eq (3).
    input_scaling : {"auto", "none", "standard", "asinh"}, default="auto"
        "asinh" standardises and then tames the tails of the columns. "auto" is found by the search; without one it
        standardises unless the columns share one scale (see `StackedPILAE`).
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, times sample_weight. "balanced" gives every class the same total.
    fit_rows : int, "auto" or None, default=None
        Rows the autoencoder layers are fitted on (None: all); the head always sees all. "auto" takes 10,000, or ten for
        each column, if layers fitted on half of those have the same leave-one-out error to within its standard error,
        and all rows otherwise.
    device : str or None, default=None
        Move blocks to this torch device ("cuda"); None computes where X lives.
    dtype : {None, "float32", "float64"}, default=None
        Dtype of the blocks. None keeps float32 and makes everything else float64. Sums are always float64.
    block_rows : int or "auto", default="auto"
        Rows read at a time; "auto" keeps a block within 128 MiB.
    keep_statistics : bool, default=True
        Keep the sums behind the output layer (`head_.output.moments`).
    random_state : int, RandomState instance or None, default=None
        Seed of the row hash and of the head's biases; None counts as 0.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    classes_ : ndarray
    layers_ : list of Layer
        width, rank, reconstruction_error, route, seconds, passes, weights of each autoencoder.
    head_width_ : int
        Hidden neurons of the SHLN; with head="ridge" the features.
    ridge_ : float
        The output ridge, per unit of weight.
    loo_score_ : float
        Leave-one-out accuracy of the output layer on at most 10,000 distinct rows (chosen by hash, each with the
        weight of its repeats; of 1,000 or more, rows that are neurons are left aside). Heads that are other
        estimators have none.
    loo_predictions_ : LeftOut
        `rows`: the row numbers that were scored (the first of equal rows); `predicted`: what the output layer fitted
        without that row says about it.
    ridge_path_ : dict
        Squared leave-one-out error of every ridge tried.
    width_path_ : WidthPath
        The same for every width (head_width="auto", unless plain ridge was chosen): `width_path_.errors[ridge][k]` is
        that of `width_path_.first + k` columns, direct links included; `standard_errors` belong to the chosen `ridge`.
    search_ : list of dict
        Every candidate of the search: the `round` it was tried in (1: every candidate, on a small sample; 2, where one
        is held: the best few, wider and on more rows; losses of different rounds come from different rows and are not
        to be compared), what it was, the leave-one-out loss it was compared by (`loss`) and its standard error, its
        squared leave-one-out error on rows that are not neurons (`error`) and on those that are, the output ridge it
        got and (up to 700 columns) the one eq (3) would have given, whether it is brittle (worse than the mean on rows
        that are neurons: never chosen), seconds, and whether it was chosen. Empty without search.
    loo_is_stale_ : bool
        Whether rows have come or gone since leave-one-out results, probabilities and intervals were found
        (`recalibrate` brings them up to date).
    approximate_ : bool
        Whether `partial_fit(update="all")` has made the sums approximate.
    network_hash_ : str
        Equal for models of one network, which alone can be merged.
    n_passes_ : int
        Passes over the data.
    fit_stats_ : dict
        rows, passes, seconds, rows_per_second (over all passes), and peak_megabytes of the process so far.

    Notes
    -----
    With depth="auto" a small fixed set of candidates is compared on at most 4,000 rows with at most 400 neurons, and
    the best of them again on at most 15,000 rows with at most 2,000:
    input scaling, ridge inside the encoder (infinity means the anchor rows themselves), activation, neurons from
    rows or from pairs of rows, direct links from input to output, plain ridge, and depth 0, 1, 2, ... The lowest
    squared leave-one-out error wins (for classes and fewer than 1,000 rows the lowest log-loss of calibrated
    leave-one-out probabilities). Then the winner is fitted once on all rows. Parameters that are given are not
    searched. Candidates whose encoder has more than a third of the rows as degrees of freedom are dropped: their
    anchors would fire on themselves alone.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.model_selection import train_test_split
    >>> from pilae import PILAEClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    >>> model = PILAEClassifier().fit(X_train, y_train)
    >>> bool(model.score(X_test, y_test) > 0.97)
    True
    """

    _heads = ("shln", "ridge", "softmax")

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
        class_weight=None,
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
        self.class_weight = class_weight

    @whole_fit
    @with_callbacks
    def fit(self, X, y=None, sample_weight=None, **fit_params):
        """Fit the network.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features), or a source that brings its targets
            Sources are made by `scan_parquet`, `scan_csv` and `scan_blocks`.
        y : array-like of shape (n_samples,), or a 0/1 matrix (n_samples, n_labels) for multilabel targets
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 3 counts as three equal rows, in leave-one-out too, where only one of them is left out: bring
            weights that say how much a row matters to a mean of 1 or less.
        **fit_params
            Passed to the `fit` of a head estimator.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, fit_params, None)

    def _first_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        self._fit(X, y, sample_weight, {}, classes)

    def _fit(self, X: Any, y: Any, sample_weight: Any, fit_params: dict, announced: Any) -> PILAEClassifier:
        self._check_params()
        rows: Rows
        labels: np.ndarray | None = None
        if is_streamed(X):
            rows, first = stream_to_fit(self, X, y, sample_weight, labels=True)
            multilabel, given = False, False
            classes = all_classes(self, first.classes, announced)
            mass = np.zeros(len(classes))
            mass[np.searchsorted(classes, first.classes)] = first.mass
            rows.weigh_classes(self._class_factor(classes, mass), mass)
            rows.classes, rows.n_classes = classes, len(classes)
        else:
            rows, classes, labels, given = self._array_rows(X, y, sample_weight, announced)
            multilabel = rows.codes is None
        self.classes_, self.multilabel_ = classes, multilabel
        self._fit_rows(rows, labels, self._head_fit_params(rows.weight, fit_params, given=given))
        if isinstance(self.head_, EstimatorHead) and not multilabel:
            self.classes_ = getattr(self.head_.estimator, "classes_", classes)  # those that had weight
        if isinstance(self.head_, LinearHead):
            self._set_loo(self.head_.output.loo)
        return self

    @whole_update
    def partial_fit(self, X, y=None, classes=None, sample_weight=None, update="head"):
        """Add rows. The first call fits the network; later ones, also after `fit`, add to the output layer exactly.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A class nobody announced is a new output, as if it had been there from the start.
        classes : array-like, optional
            Classes that later calls will bring.
        update : {"head", "all"}, default="head"
            "all" is the paper's incremental PILAE: the decoders of the layers follow by recursive least squares, and
            the tied encoders with them. It is approximate, because earlier rows were summed under earlier features;
            after it `forget` and `merge` are refused.

        Returns
        -------
        self
        """
        self._partial_fit(X, y, classes, sample_weight, update)
        return self

    @property
    def n_outputs(self: Any) -> int | None:
        """Number of labels of a multilabel model; classes may differ between models that are merged."""
        return len(self.classes_) if self.multilabel_ else None

    def _new_rows(
        self: Any, method: str, X: Any, y: Any, sample_weight: Any, classes: Any = None
    ) -> tuple[Rows, Wider | None]:
        """Rows for an update by `method`, and the classes they bring."""
        if is_streamed(X):
            if self.multilabel_:
                raise ValueError("A model of several labels a row takes arrays only: sources bring one label a row.")
            stream, first = stream_to_add(self, X, y, sample_weight, labels=True)
            wider = self._wider(first.classes if classes is None else np.concatenate([first.classes, classes]))
            stream.classes = self.classes_ if wider is None else wider.classes
            stream.n_classes = len(stream.classes)
            if isinstance(self.class_weight, dict):
                stream.factor = self._later_factor(stream.classes)
            return stream, wider
        rows = rows_to_ask(self, X, method)
        w = self._later_weight(sample_weight, rows.n)
        wider, codes = None, None
        if self.multilabel_:
            _, targets, multilabel = check_labels(self, y, rows.n, w)
            if not multilabel or targets.shape[1] != len(self.classes_):
                raise ValueError(f"y must be a 0/1 matrix of {len(self.classes_)} columns, one for each label.")
            rows.targets = targets
        else:
            labels = check_new_labels(self, y, rows.n)
            there = labels if w is None else labels[w > 0]
            wider = self._wider(there if classes is None else np.concatenate([there, np.asarray(classes)]))
            known = self.classes_ if wider is None else wider.classes
            codes = class_numbers(labels, known)
            rows.codes, rows.n_classes = codes, len(known)
        rows.weight, rows.unit = w, unit_of(w)
        if isinstance(self.class_weight, dict):
            if self.multilabel_:
                raise weights_of_labels()
            factor = self._later_factor(known)[codes]
            rows.weight, rows.unit = (factor if v is None else v * factor for v in (rows.weight, rows.unit))
        return rows, wider

    def _set_loo(self: Any, loo: Scored) -> None:
        self.head_.calibration = None  # found when it is needed
        decided = self._decide(loo.outputs)
        left_out = decided if self.multilabel_ else self.classes_[decided]
        self.loo_predictions_ = LeftOut(self.head_.output.scored_rows, left_out)
        hits = decided == self._decide(loo.targets)
        hits = hits.all(axis=1) if self.multilabel_ else hits
        self.loo_score_ = float(np.average(hits, weights=loo.judges))
        self.loo_is_stale_ = False

    def _array_rows(
        self, X: Any, y: Any, sample_weight: Any, announced: Any
    ) -> tuple[Rows, np.ndarray, np.ndarray | None, bool]:
        """(rows, classes, labels, whether weights were given) of arrays."""
        X = check_X(self, X, reset=True, min_rows=2)
        w = self._fit_weight(sample_weight, X.shape[0])
        classes, codes, multilabel = check_labels(self, y, X.shape[0], w, announced)
        if multilabel and self.head == "softmax":
            raise ValueError(
                "head='softmax' takes one label a row: for multilabel targets use 'shln', 'ridge' or a multilabel "
                "estimator such as sklearn.neighbors.KNeighborsClassifier."
            )
        given = w is not None
        w, unit = self._weights(classes, codes, multilabel, w)
        rows = Rows(
            X,
            space_for(X, self.device),
            codes=None if multilabel else codes,
            n_classes=0 if multilabel else len(classes),
            targets=codes if multilabel else None,
            weight=w,
            unit=unit,
            block_rows=self.block_rows,
            dtype=self.dtype,
            progress=Progress(self.verbose),
        )
        labels = None  # only a head that is an estimator of its own reads them
        if not isinstance(self.head, str) or self.head == "softmax":
            labels = codes if multilabel else classes[codes]
        return rows, classes, labels, given

    def _weights(self, classes, codes, multilabel, w):
        """Row weights with class weights, and the weight that leaving one row out takes away."""
        unit = unit_of(w)
        if self.class_weight is None:
            return w, unit
        if multilabel:
            raise weights_of_labels()
        factor = self._class_factor(classes, np.bincount(codes, weights=w, minlength=len(classes)))
        assert factor is not None
        c = factor[codes]
        return (c if w is None else w * c), (c if unit is None else unit * c)

    def _later_factor(self, classes: np.ndarray) -> np.ndarray:
        """The weight of each class of rows that come after `fit`; one that class_weight does not name weighs 1."""
        return np.array([self.class_weight.get(label, 1.0) for label in classes.tolist()])

    def _class_factor(self, classes: np.ndarray, mass: np.ndarray) -> np.ndarray | None:
        """The weight of each class, from class_weight and what the rows of each class weigh."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, str) and self.class_weight == "balanced":
            return mass.sum() / (len(classes) * np.where(mass > 0, mass, np.inf))
        if not isinstance(self.class_weight, dict):
            raise parameters.bad(self, "class_weight", "None, 'balanced' or a dict from class to weight")
        factor = compute_class_weight(self.class_weight, classes=classes, y=classes)
        if not np.all(np.isfinite(factor)) or np.any(factor < 0) or not np.any(factor > 0):
            raise parameters.bad(self, "class_weight", "a dict of finite weights of at least 0, not all of them 0")
        if np.any(np.abs(np.frexp(factor)[1]) >= TAME):
            raise parameters.bad(self, "class_weight", "a dict of weights between 1e-19 and 1e19, or 0")
        return factor

    def _decide(self, outputs: Array) -> Array:
        """Class number of each row, or 0/1 labels."""
        xp = space_of(outputs).xp
        return xp.astype(outputs > 0.5, xp.int64) if self.multilabel_ else xp.argmax(outputs, axis=1)

    @lazy_on_dask
    @at_one_moment
    def predict(self, X) -> Array:
        """Class of each row of X (a 0/1 matrix for multilabel targets).

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_labels), in X's library where the classes are numbers
        """
        if isinstance(self._current_head(), EstimatorHead):
            return self._ask_estimator("predict", X)
        numbers = self._decide(self._scores(X, "predict"))
        if self.multilabel_:
            return numbers
        return as_labels(self.classes_, numbers)

    @available_if(_head_has("decision_function"))
    @lazy_on_dask
    @at_one_moment
    def decision_function(self, X) -> Array:
        """Outputs of the last layer: (n_samples, n_classes), or (n_samples,) for two classes."""
        if isinstance(self._current_head(), EstimatorHead):
            return self._ask_estimator("decision_function", X)
        scores = self._scores(X, "decision_function")
        if len(self.classes_) == 2 and not self.multilabel_:
            return scores[:, 1] - scores[:, 0]
        return scores

    @available_if(_head_has("predict_proba"))
    @lazy_on_dask
    @at_one_moment
    def predict_proba(self, X) -> Array:
        """Probability of each class, (n_samples, n_classes); of each label being 1 for multilabel targets.

        Outputs are scaled by the temperature that gives the lowest log-loss on leave-one-out outputs, or go through a
        multinomial logistic map fitted on those where that has the lower log-loss on held-out rows.
        """
        if isinstance(self._current_head(), EstimatorHead):
            return self._ask_estimator("label_probabilities" if self.multilabel_ else "predict_proba", X)
        calibration = self._current_head().calibrated(self.multilabel_)
        return calibration(self._scores(X, "predict_proba"), self.multilabel_)

    def score(self, X, y=None, sample_weight=None) -> float:
        """Accuracy (of whole label sets for multilabel targets). A source brings its targets."""
        if is_dask(X):
            return accuracy(self, X, y, sample_weight)
        if isinstance(X, Source) and y is None:
            y, sample_weight = X.targets()
        return float(accuracy_score(plain_labels(y), to_numpy(self.predict(X)), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


@saveable
class PILAERegressor(RegressorMixin, _BasePILAE, onnx="regressor"):
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
