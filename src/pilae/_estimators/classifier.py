"""`PILAEClassifier`: the whole network, for classes and labels."""

from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from .._arrays import Array, namespace
from .._base.progress import with_callbacks
from .._base.saveable import saveable
from .._data.blocks import unit_of
from .._data.check import read_X, tamed_weight
from .._data.dask import is_dask
from .._data.groups import check_no_groups, give_groups, read_groups
from .._data.labels import all_classes
from .._data.opening import columns_of, is_streamed, stream_to_fit
from .._data.rows import times_factor
from .._data.targets import Classes, read_labels
from .._search.spec import Spec
from . import parameters
from .arrival import Arrival
from .balance import ClassWeights, weights_of_labels
from .base import BasePILAE, head_has
from .fitted import FittedModel, attribute
from .update import with_class_sums


@saveable
class PILAEClassifier(ClassifierMixin, ClassWeights, BasePILAE, onnx="classifier"):
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
        output layer; "rank" (or a number) is the paper's rule, which on many rows never fires, see `StackedPILAE`.
    layer : PILAutoencoder, optional
        How each autoencoder layer is built: encoder, anchors, activation, ridges and so on; None is
        `PILAutoencoder()`. Which rows become neurons (its `anchors`) holds for the head too.
    skip : bool or "auto", default="auto"
        Whether the head sees the input and the features of all layers, and not of the last one alone (a residual
        network). "auto" is found by the search, or without one False.
    branches : int from 1 to 4 or "auto", default="auto"
        Stacks of layers side by side, with other anchors and activations, all seen by the head. "auto" is one.
    head : {"shln", "ridge", "softmax"}, SHLN or estimator, default="shln"
        "shln": one more hidden layer of anchor neurons, then the output ridge; `SHLN(width=4000)` says how it is built.
        "ridge": the output ridge on the features. "softmax": LogisticRegression on whitened features. Any scikit-learn
        classifier is fitted on the features, which are then held whole.
    ridge : float, "auto" or "guo2003", default="auto"
        Output ridge per unit of weight on standardised features. "auto" has the lowest squared leave-one-out
        error; "guo2003" is eq (3).
    input_scaling : {"auto", "none", "standard", "asinh", "pieces"}, default="auto"
        "asinh" standardises and then tames the tails of the columns; "pieces" standardises and adds ramps between
        quantiles of every column, where there is room for them. "auto" is found by the search; without one it
        standardises unless the columns share one scale (see `StackedPILAE`).
    categorical_features : "from_dtype", array-like of int, bool or str, or None, default="from_dtype"
        Which columns hold categories. Columns of text and of categories in a DataFrame do; an array-like also names
        columns of codes: their numbers, a mask, or their names. None takes no DataFrame with such columns. See Notes.
    class_weight : dict, "balanced" or None, default=None
        Weight of each class, times sample_weight. "balanced" gives every class the same total.
    fit_rows : int, "auto" or None, default=None
        Rows the autoencoder layers are fitted on (None: all); the head always sees all. "auto" takes 10,000, or ten for
        each column, if layers fitted on half of those have the same leave-one-out error to within its standard error,
        and all rows otherwise.
    device : str or None, default=None
        Move blocks to this torch device ("cuda"); None computes where X lives.
    dtype : {None, "float32", "float64"}, default=None
        Dtype of the blocks. None is float32 for float32 and half floats, else float64. Sums are always float64.
    block_rows : int or "auto", default="auto"
        Rows read at a time; "auto" keeps a block within 128 MiB.
    keep_statistics : bool or "classes", default=True
        Keep the sums behind the output layer (`head_.output.moments`). With "classes" and class_weight="balanced" they
        are kept for each class, so that `partial_fit`, `forget` and `merge` balance exactly; up to 2 GB of them.
    random_state : int, RandomState instance or None, default=None
        Seed of the row hash and of the head's biases; None counts as 0.
    verbose : int, default=0
        1 shows progress on standard error.

    Attributes
    ----------
    classes_ : ndarray
    layers_ : list of Layer
        width, rank, reconstruction_error, route, seconds, passes, weights of each autoencoder. Where two networks are
        averaged, this, widths, ridge and paths are those of the first, which is the better one.
    head_width_ : int
        Hidden neurons of the SHLN; with head="ridge" the features.
    ridge_ : float
        The output ridge, per unit of weight.
    loo_score_ : float
        Leave-one-out accuracy of the output layer on at most 10,000 distinct rows (chosen by hash, each with the
        weight of its repeats; of 1,000 or more, rows that are neurons are left aside, and rows that shaped a metric
        always), less what a bootstrap says is the luck of being chosen by it. Heads of other libraries have none.
    feature_importances_ : ndarray of shape (n_features,)
        How much each column moves the outputs when it changes by its standard deviation: mean squares of the network's
        gradient, all together 1.
    loo_predictions_ : LeftOut
        `rows`: the row numbers that were scored (the first of equal rows); `predicted`: what the output layer fitted
        without that row says about it.
    ridge_path_ : dict
        Squared leave-one-out error of every ridge tried.
    width_path_ : WidthPath
        The same for every width (where a hidden layer finds its own): `width_path_.errors[ridge][k]` is
        that of `width_path_.first + k` columns, direct links included; `standard_errors` belong to the chosen `ridge`,
        others were looked at by fewer rows, or at half of a wide layer (NaN beyond).
    search_ : list of dict
        Every candidate of the search: the `round` it was tried in (1: every candidate, on a small sample; later ones,
        where they are held: the best few, wider and on more rows, and all rows where the trial could not be relied on;
        losses of different rounds come from different rows and are not to be compared), what it was, the leave-one-out
        loss it was compared by (`loss`: log-loss of classes, squared error of numbers) and its standard error, its
        squared leave-one-out error on rows that judge (`error`), the standard error of that, and the error on rows that
        are neurons, the output ridge it got and (up to 400 columns) the one eq (3) would have given, whether it is
        brittle (worse than the mean on rows that are neurons: never chosen), seconds, whether it was chosen and is one
        of two that are averaged. Of few rows a candidate that is behind on one half is not asked about the other: its
        losses are the best's, and how far it was behind. Last, without a loss, those a `time_budget` left no time for.
    stream_score_ : float
        Accuracy of predictions made before their rows were learnt (`partial_fit(test_first=True)`); `stream_` is a
        `RunningScore` with its curve, and what each row of the last call gave.
    rows_in_ : RowsIn
        How many `rows` are in, the sum of their `weight`, and `window`, `decay` or `half_life` where there is one.
    loo_is_stale_ : bool
        Whether rows have come or gone since leave-one-out results, probabilities and intervals were found
        (`recalibrate` brings them up to date).
    approximate_ : bool
        Whether `partial_fit(update="all")` has made the sums approximate.
    network_hash_ : str
        Equal for models of one network, which alone can be merged.
    n_passes_ : int
        Passes over the data.
    network_, multilabel_, n_features_in_, feature_names_in_
        The layers as a function of rows, whether rows have several labels, the columns that `fit` got.
    fit_stats_ : dict
        rows, passes, seconds, rows_per_second (over all passes), and peak_megabytes of the process so far.

    Notes
    -----
    With depth="auto" a small fixed set of candidates is compared on at most 4,000 rows with at most 400 neurons, and
    the best of them again on at most 15,000 rows with at most 2,000: input scaling, ridge inside the encoder (infinity
    means the anchor rows themselves), activation, neurons from rows, pairs of rows or distances to rows, a metric from
    labels, direct links from input to output, plain ridge, depth 0, 1, 2, ... The lowest leave-one-out loss wins and is
    fitted on all rows. What is given is not searched. Encoders of more than n/3 degrees of freedom are left out.

    X may have gaps (NaN): they are filled with the mean of the training rows, and where leave-one-out says that gaps of
    a column tell of the targets, a column of 0 and 1 says where they were. All are sums over rows, the same from any
    blocks. Infinity is an error.

    X may be a DataFrame of pandas or polars with other columns than numbers. Categories, and text of few different
    values, become columns of 0 and 1, one for each category (at most 64; rare ones share one, and two have one); truth
    values 0 and 1; dates, also written out, days since 1970 and those of year, month, day, weekday and hour that vary;
    durations seconds; other text the 30 directions in which its n-grams of letters vary most. A category that `fit` did
    not see is 0 in all columns, and a warning counts them. Importances are those of the columns as they came.

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
    _head_example = "sklearn.ensemble.RandomForestClassifier()"
    _rules: ClassVar[parameters.Rules] = {
        "class_weight": parameters.Rule(
            lambda v: v is None or isinstance(v, dict) or (isinstance(v, str) and v == "balanced"),
            "None, 'balanced' or a dict from class to weight",
        ),
        "keep_statistics": parameters.flag("classes"),
    }

    classes_ = attribute("targets.classes")
    multilabel_ = attribute("targets.multilabel")

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
        class_weight=None,
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
            It may have gaps (NaN) and, as a DataFrame, columns of categories, truth values, dates and text, see Notes.
            Sources are made by `scan_parquet`, `scan_csv` and `scan_blocks`.
        y : array-like of shape (n_samples,), or a 0/1 matrix (n_samples, n_labels) for multilabel targets
        sample_weight : array-like of shape (n_samples,), optional
            A weight of 3 counts as three equal rows, in leave-one-out too, where only one of them is left out: bring
            weights that say how much a row matters to a mean of 1 or less.
        groups : array-like of shape (n_samples,), optional
            Which rows belong together, by any label: those of one patient, speaker, day. They leave together wherever
            leave-one-out is said here, with all of their weight, so that the network is chosen, scored and calibrated
            for rows of groups that nobody has seen.
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
        if not is_streamed(X):
            return self._fit_arrays(spec, X, y, classes, sample_weight, fit_params, groups)
        check_no_groups(groups)
        tables = self.categorical_features is not None
        rows = stream_to_fit(running, X, y, sample_weight, Classes, on_gaps="report", tables=tables)
        targets = Classes(all_classes(running.name, rows.look.classes, classes))
        mass = np.zeros(targets.n_classes)
        mass[np.searchsorted(targets.classes, rows.look.classes)] = rows.look.mass
        factor = self._class_factor(targets.classes, mass)
        rows.weigh_classes(factor, mass)
        rows.read_as(targets)
        columns = columns_of(rows.source)
        categorical = columns.categorical(self.categorical_features)
        if categorical:
            rows.learn_intake(categorical)
        routed = self._head_fit_params(None, fit_params, given=False)
        fitted = self._fitted_to(spec, rows, columns, targets, None, routed)
        return with_class_sums(fitted, rows, factor) if self._by_class and factor is not None else fitted

    def _fit_arrays(
        self, spec: Spec, X: Any, y: Any, announced: Any, sample_weight: Any, fit_params: dict, groups: Any
    ) -> FittedModel:
        running = self._running()
        tables = self.categorical_features is not None
        X, columns, gaps, _ = read_X(X, running.name, min_rows=2, gaps=True, tables=tables)
        w, exponent = tamed_weight(sample_weight, X.shape[0])
        targets, encoding = read_labels(y, X.shape[0], w, running.name, announced)
        if targets.multilabel and spec.head.kind == "softmax":
            raise ValueError(
                "head='softmax' takes one label a row: for multilabel targets use 'shln', 'ridge' or a multilabel "
                "estimator such as sklearn.neighbors.KNeighborsClassifier."
            )
        given, unit, factor = w is not None, unit_of(w), None
        if self.class_weight is not None:
            if encoding.codes is None:
                raise weights_of_labels()
            mass = np.bincount(encoding.codes, weights=w, minlength=targets.n_classes)
            factor = self._class_factor(targets.classes, mass)
            w, unit = times_factor(factor, encoding.codes, w, unit)
        rows = running.rows(X, encoding, w, unit, columns.categorical(self.categorical_features), gaps=gaps)
        give_groups(rows, read_groups(groups, rows.n), spec.seed)
        routed = self._head_fit_params(w, fit_params, groups, given=given)
        fitted = self._fitted_to(spec, rows, columns, targets, encoding, routed)
        if not spec.head.linear and not targets.multilabel:  # those that had weight
            targets = Classes(fitted.head.classes_among(targets.classes))
        if self._by_class and factor is not None:
            fitted = with_class_sums(fitted, rows, factor)
        return replace(fitted, targets=targets, weight_exponent=exponent, grouped=groups is not None)

    def partial_fit(
        self,
        X,
        y=None,
        classes=None,
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
            As in `fit`. A class nobody announced is a new output, as if it had been there from the start.
        classes : array-like, optional
            Classes that later calls will bring.
        update : {"head", "all"}, default="head"
            "all" is the paper's incremental PILAE: the decoders of the layers follow by recursive least squares, and
            the tied encoders with them. It is approximate, because earlier rows were summed under earlier features;
            after it `forget` and `merge` are refused.
        decay : float above 0 and at most 1, optional
            Rows that are in lose weight: sums are multiplied by it, once in this call. Exactly a fit of the output
            layer with weights decay ** age; scales of features stay those of before the first such call, means follow.
        half_life : float, optional
            The same by row, in the order of the rows: a row counts half as much when so many others came after it.
        test_first : bool or float, default=False
            Predict the rows before they are learnt, and keep a running score (`stream_score_`); a row counts half after
            so many more (True: 1,000).
        current : bool, default=False
            Output weights follow each row at once (up to 32 in NumPy) and are not solved for: lambda is off by at most
            1%, or where rows fade each direction of them by 1.25%. Other updates, `head_`, `save` and copies are exact.
        window : int, optional
            Only the last so many rows stay in, from the first call, or a `fork`, on; later calls need not name it. They
            are kept in the model and in its files (`save(statistics=False)` leaves them out).

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from pilae import PILAEClassifier
        >>> X = np.random.default_rng(0).standard_normal((400, 3))
        >>> model = PILAEClassifier(depth=0, head="ridge").partial_fit(X[:200], X[:200, 0] > 0, half_life=20)
        >>> model = model.partial_fit(X[200:], X[200:, 0] < 0, half_life=20)  # the opposite is true now
        >>> bool(model.score(X, X[:, 0] < 0) > 0.9)
        True
        """
        return self._partial_fit(
            X, y, classes, sample_weight, Arrival.asked(update, decay, half_life, test_first, current, window)
        )

    @property
    def n_outputs(self) -> int | None:
        """Number of labels of a multilabel model; classes may differ between models that are merged."""
        return len(self.classes_) if self.multilabel_ else None

    def predict(self, X) -> Array:
        """Class of each row of X (a 0/1 matrix for multilabel targets).

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_labels), in X's library where the classes are numbers
        """
        return self._ask("predict", X)

    @available_if(head_has("decision_function"))
    def decision_function(self, X) -> Array:
        """Outputs of the last layer: (n_samples, n_classes), or (n_samples,) for two classes."""
        return self._ask("decision_function", X)

    @available_if(head_has("predict_proba"))
    def predict_proba(self, X) -> Array:
        """Probability of each class, (n_samples, n_classes); of each label being 1 for multilabel targets.

        Outputs are scaled by the temperature that gives the lowest log-loss on leave-one-out outputs, or go through a
        multinomial logistic map fitted on those where that has the lower log-loss on held-out rows.
        """
        return self._ask("predict_proba", X)

    @available_if(head_has("predict_proba"))
    def predict_log_proba(self, X) -> Array:
        """Natural logarithm of `predict_proba`, minus infinity where that is 0."""
        answer = self._ask("predict_proba", X, called="predict_log_proba")
        if is_dask(answer):  # it calls this method for every partition
            return answer
        with np.errstate(divide="ignore"):
            return namespace(answer).log(answer)

    def score(self, X, y=None, sample_weight=None) -> float:
        """Accuracy (of whole label sets for multilabel targets). A source brings its targets."""
        return self._score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
