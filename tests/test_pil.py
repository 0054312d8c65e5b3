"""Basic pseudoinverse learning: exact on distinct rows."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import ConvergenceWarning

from helpers import close, interpolation
from pilae import PILClassifier, PILRegressor


@pytest.mark.parametrize("activation", ["tanh", "sigmoid", "sin", "softplus"])
def test_reproduces_every_target(activation):
    rng = np.random.default_rng(0)
    X, Z = rng.standard_normal((120, 4)), rng.standard_normal((120, 2))
    model = PILRegressor(activation=activation).fit(X, Z)
    close(model.predict(X), Z, **interpolation(model, X))
    assert model.ranks_[0] == 5  # four columns and the bias
    assert model.ranks_[-1] == 120
    assert all(a < b for a, b in zip(model.ranks_[:-1], model.ranks_[1:], strict=True))


def test_classifies_every_training_row():
    for load in (load_iris, load_breast_cancer):
        X, y = load(return_X_y=True)
        assert PILClassifier().fit(X, y).score(X, y) == 1.0


def test_equal_rows_share_their_mean_target():
    X = np.array([[0.0], [1.0], [1.0], [2.0]])
    model = PILRegressor().fit(X, [0.0, 1.0, 3.0, 5.0])
    close(model.predict(X), [0, 2, 2, 5], **interpolation(model, X))
    assert list(PILClassifier().fit(np.r_[X, [[1.0]]], [0, 1, 0, 1, 0]).predict(X)) == [0, 0, 0, 1]


def test_says_so_when_the_rank_does_not_grow():
    X = np.random.default_rng(0).standard_normal((50, 3))
    with pytest.warns(ConvergenceWarning, match="rank reached 4 of 50"):
        PILRegressor(activation="linear").fit(X, X[:, 0])


def test_what_was_fitted_decides_not_what_was_set_since():
    X = np.random.default_rng(0).standard_normal((30, 3))
    model = PILRegressor().fit(X, X[:, 0])
    before = model.predict(X)
    np.testing.assert_array_equal(model.set_params(activation="sin").predict(X), before)


def test_rows_that_overflow_have_no_class():
    X, y = load_iris(return_X_y=True)
    model = PILClassifier().fit(X, y)
    for ask in (model.predict, model.decision_function):
        with pytest.raises(ValueError, match="so far beyond those of fit"):
            ask(np.full((2, X.shape[1]), 1.7e308))
