"""Basic pseudoinverse learning (section II.C of the paper): layers with the pseudoinverse as weights.

H_0 = [X, 1] on standardised columns; H_{l+1} = f(H_l H_l^+). H_l H_l^+ is the projector on the span of H_l's
columns, n x n, and the nonlinearity raises its rank layer by layer. When the rank is full,
||H^+ H - I||^2 = N - rank = 0, the output weights W = H^+ O reproduce every target.
n x n by nature: for small problems and for study.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning

from .._arrays import Array, space_of, to_numpy
from .._base.saveable import check_shape, saveable
from .._base.warn import warn
from .._data.check import check_answer, check_same_space, check_X
from .._data.columns import Columns
from .._data.rows import Rows
from .._data.targets import Classes, Numbers, Targets, read_labels, read_numbers
from .._engine.activations import neurons
from .._engine.linalg import pseudoinverse
from .._engine.scaling import Scaling, own_gauge
from ..save import SaveMixin
from . import parameters
from .fitted import Fitted, Fitting, attribute

MAX_ROWS = 10_000


@saveable
@dataclass(frozen=True, eq=False)
class FittedPIL(Fitted):
    """Layers of pseudoinverses, and the output weights."""

    targets: Targets
    gauge: np.ndarray | None
    scaling: Scaling
    activation: str
    weights: list[Array]
    output: Array
    ranks: list[int]

    def outputs(self, X: Array) -> Array:
        H = _with_bias(self.scaling(X))
        for W in self.weights:
            H = neurons(self.activation, H, W)
        outputs = H @ self.output
        check_answer(outputs)  # a class made of them would not show that they overflowed
        return outputs


class _BasePIL(SaveMixin, Fitting[FittedPIL]):
    weights_ = attribute("weights")
    output_ = attribute("output")
    ranks_ = attribute("ranks")

    def __init__(self, activation="tanh", max_depth=20):
        self.activation = activation
        self.max_depth = max_depth

    def _checked(self, X: Any) -> tuple[Array, Columns]:
        parameters.check(self, parameters.PIL)
        X, columns = check_X(X, type(self).__name__, min_rows=2)
        if X.shape[0] > MAX_ROWS:
            raise ValueError(
                f"X has {X.shape[0]} rows, and basic pseudoinverse learning needs square matrices of that size; it "
                f"takes at most {MAX_ROWS}. Use PILAEClassifier or PILAERegressor, whose cost is linear in the rows."
            )
        return X, columns

    def _fitted_to(self, X: Array, columns: Columns, targets: Targets, O: np.ndarray) -> FittedPIL:
        """Grow layers on the distinct rows, then solve the output weights for O."""
        whole = Rows(X, space_of(X), dtype="float64", block_rows=X.shape[0])
        gauge = own_gauge(whole.extent())
        [block] = whole.with_gauge(gauge, "float64").blocks()
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
        output = H_plus @ space.asarray(O)
        return FittedPIL(columns, targets, gauge, scaling, self.activation, weights, output, ranks)

    def _ask(self, X: Any, method: str, answer: Callable[[Targets, Array], Array]) -> Array:
        fitted = self._read()
        X, _ = check_X(X, type(self).__name__, fitted.columns)
        place = space_of(fitted.output)
        check_same_space(type(self).__name__, method, X, place)
        rows = Rows(X, place, dtype="float64", gauge=fitted.gauge)
        return rows.map(lambda block: answer(fitted.targets, fitted.outputs(block)), int(fitted.output.shape[0]))

    def predict(self, X) -> Array:
        """Class of each row, or predicted numbers."""
        return self._ask(X, "predict", lambda targets, outputs: targets.answer(outputs))

    def _check_loaded(self) -> None:
        fitted = self._read()
        fitted.scaling.check_shapes(fitted.columns.count)
        check_shape(fitted.outputs(np.zeros((1, fitted.columns.count))), 1, fitted.targets.n_outputs)


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
    n_features_in_, feature_names_in_
        The columns that `fit` got.

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

    classes_ = attribute("targets.classes")

    def fit(self, X, y):
        """Fit to X (n_samples, n_features) and labels y (n_samples,)."""
        X, columns = self._checked(X)
        targets, encoding = read_labels(y, X.shape[0], None, type(self).__name__)
        if encoding.codes is None:
            raise ValueError("PILClassifier takes one label a row; for multilabel targets use PILAEClassifier.")
        O = np.eye(targets.n_classes)[encoding.codes]
        return self._refitted(partial(self._fitted_to, X, columns, targets, O), X)

    def decision_function(self, X) -> Array:
        """Outputs: (n_samples, n_classes), or (n_samples,) for two classes."""
        return self._ask(X, "decision_function", lambda targets, outputs: targets.margin(outputs))

    def score(self, X, y, sample_weight=None) -> float:
        """Accuracy."""
        return Classes.score(y, self.predict(X), sample_weight)


@saveable
class PILRegressor(RegressorMixin, _BasePIL):
    """Basic pseudoinverse learning for regression: passes through every training target.

    As `PILClassifier`, with real targets (one or several columns); equal rows get their mean target.

    Parameters
    ----------
    activation, max_depth
        As in `PILClassifier`.

    Attributes
    ----------
    weights_, output_, ranks_, n_features_in_, feature_names_in_
        As in `PILClassifier`, with a column of `output_` for each target.

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

    def fit(self, X, y):
        """Fit to X (n_samples, n_features) and targets y (n_samples,) or (n_samples, n_outputs)."""
        X, columns = self._checked(X)
        targets, encoding = read_numbers(y, X.shape[0], "float64", type(self).__name__)
        assert encoding.targets is not None
        return self._refitted(partial(self._fitted_to, X, columns, targets, encoding.targets), X)

    def score(self, X, y, sample_weight=None) -> float:
        """R2, the mean over outputs."""
        return Numbers.score(y, self.predict(X), sample_weight)

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
