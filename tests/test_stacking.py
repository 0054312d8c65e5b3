"""Networks on networks: out-of-fold outputs tell the next one nothing about the row's own label."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline

from pilae import SHLN, PILAEClassifier, PILAERegressor, StackedPILAE, stacked

FIRST = PILAEClassifier(depth=0, ridge=1e-3, random_state=0, head=SHLN(width=30, activation="relu"))
LAST = PILAEClassifier(depth=0, head="ridge", random_state=0)


def test_random_labels_are_predicted_by_chance():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 10)), rng.integers(0, 2, 400)
    scores = cross_val_score(stacked(FIRST, LAST), X, y, cv=4)
    assert 0.42 < scores.mean() < 0.58


def test_leave_one_out_outputs_would_give_labels_away():
    """Why the outputs are out-of-fold: a linear model reads random labels off leave-one-out outputs."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((400, 10)), rng.integers(0, 2, 400)
    first = FIRST.fit(X, y)
    outputs = np.empty((400, 2))
    loo = first.head_.output.loo
    outputs[first.loo_predictions_.rows] = loo.outputs
    leaky = cross_val_predict(LAST, np.hstack([X, outputs, first.decision_function(X)[:, None]]), y, cv=4)
    assert np.mean(leaky == y) > 0.7
    assert abs(np.mean(cross_val_predict(stacked(FIRST, LAST), X, y, cv=4) == y) - 0.5) < 0.08


def test_levels_pile_up():
    X, y = load_wine(return_X_y=True)
    model = stacked(FIRST, FIRST, LAST, cv=3).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9
    inner = model.final_estimator_
    assert inner.n_features_in_ == 13 + 3
    assert inner.final_estimator_.n_features_in_ == 13 + 3 + 3
    A, b = load_diabetes(return_X_y=True)
    regressor = PILAERegressor(depth=0, random_state=0, head=SHLN(width=20))
    assert stacked(regressor, regressor).fit(A[:300], b[:300]).score(A[300:], b[300:]) > 0.3


def test_what_cannot_be_stacked_is_said():
    with pytest.raises(ValueError, match="two estimators or more"):
        stacked(FIRST)
    with pytest.raises(ValueError, match="all classifiers or all regressors"):
        stacked(FIRST, PILAERegressor())
    with pytest.raises(ValueError, match="all classifiers or all regressors"):
        stacked(make_pipeline(StackedPILAE()), FIRST)
