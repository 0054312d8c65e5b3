"""Balanced classes where rows come and go: sums by class, weighted when they are needed."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilae
from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor, scan_blocks
from pilae._engine import class_sums

X, Y = blobs(240)
Y = np.where(np.arange(240) % 3, Y, 0)  # two thirds of one class
TEST, _ = blobs(50, seed=1)
NETWORK = {"width": [6], "ridge": 1e-3, "head": SHLN(width=30)}
BALANCED = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes").fit(X[:120], Y[:120])


def is_balanced_over(model, rows, labels=Y, weight=None):
    """As if a plain model of the same network had these rows with the weights that balance them."""
    plain = BALANCED.fork().set_params(class_weight=None)
    plain.fitted_ = copy.deepcopy(plain.fitted_)
    plain.fitted_.head.output.by_class = None
    w = np.ones(240) if weight is None else weight
    classes = model.classes_
    mass = np.array([w[rows][labels[rows] == c].sum() for c in classes])
    factor = mass.sum() / (len(classes) * np.where(mass > 0, mass, np.inf))
    at = np.searchsorted(classes, labels[rows])
    plain.partial_fit(X[rows], labels[rows], classes=classes, sample_weight=w[rows] * factor[at])
    close(model.decision_function(TEST), plain.decision_function(TEST), **rounding(plain))


def test_sums_by_class_are_those_of_the_fit():
    model = copy.deepcopy(BALANCED)
    before = model.decision_function(TEST)
    is_balanced_over(model, np.arange(120))
    moments = model.head_.output.by_class.balanced()
    close(moments.gram(centred=True), model.head_.output.moments.gram(centred=True), terms=120, condition=100)
    as_ever = PILAEClassifier(**NETWORK, class_weight="balanced").fit(X[:120], Y[:120])
    np.testing.assert_array_equal(as_ever.decision_function(TEST), before)


@given(cuts=st.lists(st.integers(121, 239), max_size=4, unique=True), data=st.data())
def test_rows_come_and_go_and_classes_stay_balanced(cuts, data):
    model = copy.deepcopy(BALANCED)
    for rows in np.split(np.arange(120, 240), np.sort(cuts).astype(int) - 120):
        model.partial_fit(X[rows], Y[rows])
    is_balanced_over(model, np.arange(240))
    gone = data.draw(st.lists(st.integers(0, 239), min_size=1, max_size=40, unique=True))
    model.forget(X[gone], Y[gone])
    is_balanced_over(model, np.setdiff1d(np.arange(240), gone))


def test_weights_new_classes_merges_and_sources():
    weight = np.random.default_rng(0).uniform(0.5, 2, 240)
    late = np.where(np.arange(240) >= 200, 9, np.where(np.arange(240) % 40 == 7, -1, Y))
    model = BALANCED.fork()
    for k in range(0, 240, 40):
        rows = slice(k, k + 40)
        model.partial_fit(X[rows], late[rows], sample_weight=weight[rows])
    assert model.classes_.tolist() == [-1, 0, 1, 2, 9]
    is_balanced_over(model, np.arange(240), late, weight)
    one, other = BALANCED.fork().partial_fit(X[:200], late[:200]), BALANCED.fork().partial_fit(X[200:], late[200:])
    is_balanced_over(one.merge(other), np.arange(240), late)

    def blocks():
        for k in range(0, 240, 50):
            yield X[k : k + 50], Y[k : k + 50]

    streamed = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes").fit(scan_blocks(blocks))
    arrays = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes").fit(X, Y)
    outputs = [m.partial_fit(X[:70], Y[:70]).decision_function(TEST) for m in (streamed, arrays)]
    close(*outputs, **rounding(arrays))


def test_balanced_rows_fade():
    model = copy.deepcopy(BALANCED).partial_fit(X[120:], Y[120:], decay=0.25)
    w = np.repeat([0.25, 1.0], 120)
    F = model.head_.hidden(model.network_(X))
    mass = np.bincount(Y, w)
    w = w * (mass.sum() / (3 * mass))[Y]
    mean, Z = w @ F / w.sum(), np.eye(3)[Y]
    inverse = model.head_.output.held
    A, B = (F - mean) * inverse, Z - w @ Z / w.sum()
    G = A.T @ (w[:, None] * A) + model.ridge_ * w.sum() * np.eye(A.shape[1])
    T = (model.head_.hidden(model.network_(TEST)) - mean) * inverse
    expected = T @ np.linalg.solve(G, A.T @ (w[:, None] * B)) + w @ Z / w.sum()
    close(model.decision_function(TEST), expected, **rounding(model))


def test_it_is_saved_and_goes_on(tmp_path):
    model = copy.deepcopy(BALANCED)
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae").partial_fit(X[120:], Y[120:])
    is_balanced_over(again, np.arange(240))
    model.save(tmp_path / "lean.pilae", statistics=False)
    assert pilae.load(tmp_path / "lean.pilae").head_.output.by_class is None


def test_every_array_library_balances(library):
    model = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes")
    model.fit(library(X[:120]), Y[:120]).partial_fit(library(X[120:]), Y[120:])
    expected = copy.deepcopy(BALANCED).partial_fit(X[120:], Y[120:])
    close(library.numpy(model.decision_function(library(TEST))), expected.decision_function(TEST), **rounding(expected))


def test_refusals_are_sentences(monkeypatch):
    plain = PILAEClassifier(**NETWORK, class_weight="balanced").fit(X, Y)
    for model in (plain, copy.deepcopy(plain).set_params(keep_statistics="classes")):
        with pytest.raises(ValueError, match=r"keep_statistics='classes'.*sample_weight"):
            model.partial_fit(X, Y)
    other = BALANCED.fork().partial_fit(X, Y).set_params(class_weight=None)
    other.fitted_.head.output.by_class = None
    with pytest.raises(ValueError, match="same keep_statistics"):
        BALANCED.fork().merge(other)
    with pytest.raises(ValueError, match="window goes without"):
        BALANCED.fork().partial_fit(X, Y, window=50)
    with pytest.raises(ValueError, match="keep_statistics"):
        PILAERegressor(keep_statistics="classes").fit(X, X[:, 0])
    monkeypatch.setattr(class_sums, "MOST_BYTES", 1000)
    with pytest.raises(ValueError, match=r"Sums by class of 3 classes and 30 features would take 0.0 GB"):
        PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes").fit(X, Y)


def test_sums_that_are_too_large_are_refused_before_anything_is_fitted(monkeypatch):
    monkeypatch.setattr(class_sums, "MOST_BYTES", 8 * 3 * 29**2)
    model = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes", verbose=1)
    monkeypatch.setattr(PILAEClassifier, "_fitted_to", lambda *_: pytest.fail("it was fitted"))
    with pytest.raises(ValueError, match="are kept: use a narrower head"):
        model.fit(X, Y)


def test_classes_that_come_later_need_room_too(monkeypatch):
    model = PILAEClassifier(**NETWORK, class_weight="balanced", keep_statistics="classes").fit(X, Y)
    other = model.fork().partial_fit(X[:5], np.full(5, 7))
    monkeypatch.setattr(class_sums, "MOST_BYTES", 8 * 3 * int(model.head_.output.coef.shape[0]) ** 2)
    before = model.fitted_
    with pytest.raises(ValueError, match=r"Sums by class of 4 classes .* are kept"):
        model.partial_fit(X[:5], np.full(5, 7))
    with pytest.raises(ValueError, match=r"Sums by class of 4 classes .* are kept"):
        model.merge(other)
    assert model.fitted_ is before
    assert model.partial_fit(X[:5], Y[:5]).rows_in_.rows == len(X) + 5
