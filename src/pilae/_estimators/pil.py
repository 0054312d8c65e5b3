"""Basic pseudoinverse learning (section II.C of the paper): layers with the pseudoinverse as weights.

H_0 = [X, 1] on standardised columns; H_{l+1} = f(H_l H_l^+). H_l H_l^+ is the projector on the span of H_l's
columns, n x n, and the nonlinearity raises its rank layer by layer. When the rank is full,
||H^+ H - I||^2 = N - rank = 0, the output weights W = H^+ O reproduce every target.
n x n by nature: for small problems and for study.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import Array, as_labels, space_of, to_numpy
from .._base.saveable import saveable
from .._base.warn import warn
from .._data.check import check_same_space, check_X
from .._data.rows import Rows
from .._data.targets import check_labels, check_targets, plain_labels
from .._engine.activations import ACTIVATIONS, neurons
from .._engine.linalg import pseudoinverse
from .._engine.scaling import Scaling, own_gauge
from ..save import SaveMixin
from . import parameters
from .whole import whole_fit

MAX_ROWS = 10_000


class _BasePIL(SaveMixin, BaseEstimator):
    gauge_: np.ndarray | None = None  # of files that are older than it

    def __init__(self, activation="tanh", max_depth=20):
        self.activation = activation
        self.max_depth = max_depth

    def _check_fit(self, X: Any) -> Array:
        parameters.check_choice(self, "activation", tuple(ACTIVATIONS))
        parameters.check_count(self, "max_depth", low=0)
        X = check_X(self, X, reset=True, min_rows=2)
        if X.shape[0] > MAX_ROWS:
            raise ValueError(
                f"X has {X.shape[0]} rows, and basic pseudoinverse learning needs square matrices of that size; it "
                f"takes at most {MAX_ROWS}. Use PILAEClassifier or PILAERegressor, whose cost is linear in the rows."
            )
        return X

    def _fit_layers(self, X: Any, O: np.ndarray) -> None:
        """Grow layers on the distinct rows, then solve the output weights for O."""
        whole = Rows(X, space_of(X), dtype="float64", block_rows=X.shape[0])
        self.gauge_ = own_gauge(whole.extent())
        [block] = whole.with_gauge(self.gauge_, "float64").blocks()
        space = space_of(block.X)
        rows, O = _distinct(to_numpy(block.X), O)
        X, n = space.asarray(rows), len(rows)
        scaling = Scaling.standard(space.xp.mean(X, axis=0), space.xp.var(X, axis=0))
        H = _with_bias(scaling(X))
        weights: list[Array] = []
        ranks: list[int] = []
        while True:
            H_plus, rank = pseudoinverse(H)
            ranks.append(rank)
            if rank >= n or len(weights) >= self.max_depth:
                break
            weights.append(H_plus)
            H = neurons(self.activation, H, H_plus)
        if ranks[-1] < n:
            warn(
                f"The rank reached {ranks[-1]} of {n} distinct rows after {len(weights)} layers, so the targets are "
                "fitted but not reproduced. Causes: nearly equal rows, a linear activation, too small a max_depth.",
                ConvergenceWarning,
            )
        self.scaling_, self.weights_, self.ranks_, self.activation_ = scaling, weights, ranks, self.activation
        self.output_ = H_plus @ space.asarray(O)

    def _scores(self, X: Any, method: str) -> Array:
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        fitted = space_of(self.output_)
        check_same_space(self, method, X, fitted)
        return Rows(X, fitted, dtype="float64", gauge=self.gauge_).map(self._outputs, int(self.output_.shape[0]))

    def _outputs(self, X: Array) -> Array:
        H = _with_bias(self.scaling_(X))
        for W in self.weights_:
            H = neurons(self.activation_, H, W)
        return H @ self.output_

    def _check_loaded(self) -> None:
        self.scaling_.check_shapes(self.n_features_in_)
        outputs = self._outputs(np.zeros((1, self.n_features_in_)))
        if hasattr(self, "classes_") and outputs.shape[1] != len(self.classes_):
            raise ValueError(f"{outputs.shape[1]} outputs for {len(self.classes_)} classes")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.array_api_support = True
        return tags


@saveable
class PILClassifier(ClassifierMixin, _BasePIL):
    """Basic pseudoinverse learning for classification: exact on the training rows.

    Grows layers with the pseudoinverse of their input as weights until the hidden matrix has full rank, then
    solves min ||H W - O||^2, whose value is zero. Distinct rows are reproduced exactly; of equal rows with
    different labels the most frequent wins. Nothing is regularised: for data with noise use `PILAEClassifier`.

    Parameters
    ----------
    activation : str, default="tanh"
        Any of the library's activations.
    max_depth : int, default=20
        Give up growing after this many layers, with a warning.

    Attributes
    ----------
    classes_ : ndarray
    weights_ : list of arrays
        H_l^+, the weights between layers.
    output_ : array of shape (n_distinct_rows, n_classes)
    ranks_ : list of int
        Rank of every layer's input, the last one full.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from pilae import PILClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PILClassifier().fit(X, y)
    >>> model.score(X, y)
    1.0
    >>> model.ranks_
    [14, 178]
    """

    @whole_fit
    def fit(self, X, y):
        """Fit to X (n_samples, n_features) and labels y (n_samples,)."""
        X = self._check_fit(X)
        classes, codes, multilabel = check_labels(self, y, X.shape[0], None)
        if multilabel:
            raise ValueError("PILClassifier takes one label a row; for multilabel targets use PILAEClassifier.")
        self.classes_ = classes
        self._fit_layers(X, np.eye(len(classes))[codes])
        return self

    def decision_function(self, X) -> Array:
        """Outputs: (n_samples, n_classes), or (n_samples,) for two classes."""
        scores = self._scores(X, "decision_function")
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X) -> Array:
        """Class of each row."""
        scores = self._scores(X, "predict")
        return as_labels(self.classes_, space_of(scores).xp.argmax(scores, axis=1))

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy."""
        return float(accuracy_score(plain_labels(y), to_numpy(self.predict(X)), sample_weight=sample_weight))


@saveable
class PILRegressor(RegressorMixin, _BasePIL):
    """Basic pseudoinverse learning for regression: passes through every training target.

    As `PILClassifier`, with real targets (one or several columns); equal rows get their mean target.

    Examples
    --------
    >>> import numpy as np
    >>> from pilae import PILRegressor
    >>> X = np.linspace(-1, 1, 20)[:, None]
    >>> y = np.sin(3 * X[:, 0])
    >>> model = PILRegressor().fit(X, y)
    >>> bool(np.allclose(model.predict(X), y, atol=1e-6))
    True
    """

    @whole_fit
    def fit(self, X, y):
        """Fit to X (n_samples, n_features) and targets y (n_samples,) or (n_samples, n_outputs)."""
        X = self._check_fit(X)
        Y, self.flat_ = check_targets(self, y, X.shape[0], "float64")
        self._fit_layers(X, Y)
        return self

    def predict(self, X) -> Array:
        """Predicted targets."""
        scores = self._scores(X, "predict")
        return scores[:, 0] if self.flat_ else scores

    def score(self, X, y, sample_weight=None) -> float:
        """R2, the mean over outputs."""
        return float(r2_score(to_numpy(y), to_numpy(self.predict(X)), sample_weight=sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


def _distinct(X: np.ndarray, O: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows and the mean target of each."""
    rows, which, counts = np.unique(X, axis=0, return_inverse=True, return_counts=True)
    sums = np.zeros((len(rows), O.shape[1]))
    np.add.at(sums, which.reshape(-1), O)
    return rows, sums / counts[:, None]


def _with_bias(X: Array) -> Array:
    space = space_of(X)
    ones = space.xp.ones((X.shape[0], 1), dtype=X.dtype, device=space.device)
    return space.xp.concat([X, ones], axis=1)
