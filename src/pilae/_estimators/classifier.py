"""`PILAEClassifier`: the whole network, for classes and labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.metaestimators import available_if

from .._arrays import Array, as_labels, space_for, space_of, to_numpy
from .._base.progress import Progress, with_callbacks
from .._base.saveable import saveable
from .._data.check import TAME, check_X
from .._data.dask import accuracy, is_dask, lazy_on_dask
from .._data.opening import is_streamed, rows_to_ask, stream_to_add, stream_to_fit
from .._data.rows import Rows, unit_of
from .._data.sources import Source
from .._data.targets import all_classes, check_labels, check_new_labels, class_numbers, plain_labels, weights_of_labels
from .._engine.loo import Scored
from .._network.head import EstimatorHead, LinearHead
from . import parameters
from .base import BasePILAE, LeftOut, head_has
from .update import Wider
from .whole import at_one_moment, whole_fit, whole_update


@saveable
class PILAEClassifier(ClassifierMixin, BasePILAE, onnx="classifier"):
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

    @available_if(head_has("decision_function"))
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

    @available_if(head_has("predict_proba"))
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
