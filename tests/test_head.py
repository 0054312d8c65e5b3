"""Hidden neurons of the head: rows, pairs, direct links; nested widths; probabilities."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits

from helpers import blobs, close, rounding, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor, PILAutoencoder, StackedPILAE
from pilae._arrays import NUMPY, to_numpy
from pilae._data.rows import Rows
from pilae._engine.calibration import Calibration, class_calibration, class_temperature, label_calibration
from pilae._engine.linalg import PrimalGram
from pilae._engine.scaling import Scaling, Squash
from pilae._engine.scores import Scored
from pilae._network.neurons import fit_hidden
from pilae._network.structure import Plan

X, Y = blobs(200)
CENTRED = X - X.mean(0)


def hidden(width, **plan):
    gram = PrimalGram(CENTRED.T @ CENTRED, len(X))
    return fit_hidden(Rows(X, NUMPY), Scaling.centring(X.mean(0)), gram, CENTRED[:60], width, Plan(**plan), 0)


@pytest.mark.parametrize("neurons", ["rows", "pairs"])
@pytest.mark.parametrize("direct", [False, True])
@pytest.mark.parametrize("ridge", [np.inf, 1.0, 1e-6])
def test_a_narrow_layer_is_the_beginning_of_a_wide_one(neurons, direct, ridge):
    plan = {"neurons": neurons, "direct": direct, "encoder_ridge": ridge}
    wide, narrow = hidden(40, **plan), hidden(15, **plan)
    links = 6 if direct else 0
    close(wide(X)[:, : 15 + links], narrow(X), condition=1e3)
    close(wide.leading(15 + links)(X), narrow(X), condition=1e3)


def test_every_neuron_has_unit_variance_before_its_bias():
    layer = hidden(30, encoder_ridge=0.1, activation="linear")
    T = layer(X) - np.random.default_rng([0, 1]).standard_normal(30)
    assert np.abs(T.mean(0)).max() < tolerance(terms=200)
    close(T.std(0), np.ones(30), terms=200)


def test_the_border_of_a_pair_runs_midway():
    layer = hidden(30, neurons="pairs", encoder_ridge=np.inf, activation="linear")
    second = np.random.default_rng([0, 1]).integers(0, np.arange(1, 31))
    midway = (X[1:31] + X[second]) / 2
    assert np.abs(np.diag(layer(midway))).max() < tolerance(terms=6) * np.abs(layer(X)).max()
    assert np.all(np.diag(layer(X[1:31])) > 0)  # its own anchor lies on the positive side


def test_direct_links_are_the_scaled_input():
    layer = hidden(10, direct=True)
    close(layer(X)[:, :6], CENTRED)
    assert layer.links == 6


def test_asinh_tames_tails_and_is_undone():
    heavy = np.exp(3 * CENTRED)
    squash = Squash.standard(heavy.mean(0), heavy.var(0))
    assert np.abs(squash(heavy)).max() < 0.5 * np.abs((heavy - heavy.mean(0)) / heavy.std(0)).max()
    close(squash.undo(squash(heavy)), heavy, condition=1e3)
    stack = StackedPILAE(width=[5], input_scaling="asinh").fit(heavy)
    assert stack.inverse_transform(stack.transform(heavy)).shape == heavy.shape
    model = PILAEClassifier(input_scaling="asinh").fit(heavy, Y)
    assert model.loo_score_ > PILAEClassifier(input_scaling="standard").fit(heavy, Y).loo_score_ - 0.02
    assert {row["input_scaling"] for row in model.search_} == {"asinh"}


def test_any_blocks_and_any_order_give_the_same_search():
    order = np.random.default_rng(0).permutation(200)
    whole = PILAEClassifier().fit(X, Y)
    parts = PILAEClassifier(block_rows=17).fit(X[order], Y[order])
    keys = ("input_scaling", "depth", "head", "neurons", "encoder_ridge", "activation", "direct", "chosen")
    assert [[row[k] for k in keys] for row in whole.search_] == [[row[k] for k in keys] for row in parts.search_]
    assert whole.head_width_ == parts.head_width_
    close(parts.decision_function(X), whole.decision_function(X), **rounding(whole))


def test_encoders_that_memorise_are_dropped():
    rng = np.random.default_rng(0)
    wide, y = rng.standard_normal((60, 200)), np.arange(60) % 2
    model = PILAEClassifier().fit(wide, y)
    rows = [row for row in model.search_ if row["head"] == "shln" and row["depth"] == 0]
    assert all(row["encoder_ridge"] > 1e-2 for row in rows if row["neurons"] != "radial" and not row["rounds"])


@pytest.mark.parametrize(
    "case", ["imbalanced", "many classes", "few rows", "one column", "wide", "constant and duplicate", "integers"]
)
def test_the_defaults_hold_up(case):
    rng = np.random.default_rng(0)
    if case == "imbalanced":
        A, y = blobs(600, classes=2)
        keep = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:12]]
        A, y = A[keep], y[keep]
    elif case == "many classes":
        centres = 4 * rng.standard_normal((100, 8))
        y = np.arange(1500) % 100
        A = centres[y] + rng.standard_normal((1500, 8))
    elif case == "few rows":
        A, y = blobs(30)
    elif case == "one column":
        A, y = np.sort(rng.standard_normal((200, 1)), axis=0), np.repeat([0, 1, 0, 1], 50)
    elif case == "wide":
        A, y = rng.standard_normal((60, 300)), np.arange(60) % 2
        A[y == 1, :40] += 1
    elif case == "constant and duplicate":
        A, y = blobs(150)
        A = np.c_[A, A, np.ones(150), np.zeros(150)]
    else:
        A, y = blobs(150)
        A = (A * 10).astype(np.int32)
    model = PILAEClassifier(random_state=0).fit(A, y)
    proba = model.predict_proba(A)
    assert np.isfinite(proba).all()
    assert model.score(A, y) > 0.8
    majority = np.bincount(y).max() / len(y)
    assert model.loo_score_ > min(0.75, majority - 0.02)


def regression(n, seed):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 6))
    return A, A[:, 0] * A[:, 1] + np.sin(2 * A[:, 2]) + 0.3 * rng.standard_normal(n)


def test_a_neuron_that_hardly_ever_fires_is_not_blown_up():
    for seed in (3, 8, 16):
        rng = np.random.default_rng(seed)
        A, B = rng.normal(size=(600, 6)), rng.normal(size=(3000, 6))
        f = lambda X: X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])  # noqa: E731
        model = PILAERegressor().fit(A, f(A) + 0.3 * rng.normal(size=600))
        assert abs(model.score(B, f(B) + 0.3 * rng.normal(size=3000)) - model.loo_score_) < 0.15


@pytest.mark.parametrize("ridge", [0, 1e-20])
def test_no_ridge_at_all(ridge):
    A, z = regression(200, 0)
    for params in ({}, {"depth": 0}, {"depth": 0, "head": "ridge"}):
        assert np.isfinite(PILAERegressor(ridge=ridge, **params).fit(np.c_[A, A], z).predict(np.c_[A, A])).all()


@pytest.mark.parametrize("kind", ["other targets", "fractional weights"])
def test_repeated_rows_in_any_order(kind):
    A, z = regression(150, 0)
    A, z, w = np.repeat(A, 2, axis=0), np.repeat(z, 2), None
    if kind == "other targets":
        z = z + np.random.default_rng(1).standard_normal(300)
    else:
        w = np.tile([0.1, 0.9], 150)
    order = np.random.default_rng(0).permutation(300)
    whole = PILAERegressor().fit(A, z, sample_weight=w)
    shuffled = PILAERegressor().fit(A[order], z[order], sample_weight=None if w is None else w[order])
    close(shuffled.loo_score_, whole.loo_score_, **rounding(whole))
    close(shuffled.predict(A), whole.predict(A), **rounding(whole))


def test_blocks_do_not_change_the_search_on_wide_data():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 90))
    z = (A[:, 0] + A[:, 1] > 0).astype(int)
    whole, parts = PILAEClassifier().fit(A, z), PILAEClassifier(block_rows=20).fit(A, z)
    close(parts.decision_function(A), whole.decision_function(A), **rounding(whole))


def test_numbers_too_large_for_one_scaling_leave_the_others():
    assert PILAEClassifier().fit((X * 1e20).astype(np.float32), Y).loo_score_ > 0.8


def test_a_class_without_weight_is_no_class_of_an_estimator():
    model = PILAEClassifier(head="softmax", class_weight={0: 0.0}).fit(X, Y)
    assert list(model.classes_) == [1, 2]
    assert model.predict_proba(X).shape == (200, 2)


def scored(outputs, codes, n_classes):
    ones = np.ones(len(codes))
    return Scored(outputs, np.eye(n_classes)[codes], ones, ones, ones)


def test_a_temperature_where_outputs_are_symmetric_a_map_where_classes_differ():
    rng = np.random.default_rng(0)
    n = 3000
    logits = rng.standard_normal((n, 3)) * 2
    codes = np.array([rng.choice(3, p=p) for p in softmax(logits, axis=1)])
    plain = class_calibration(scored(logits / 5, codes, 3))
    assert 4.5 < plain.temperature < 5.5
    skewed = logits * [1.0, 3.0, 0.3] + [0.0, 2.0, 0.0]  # each class on a scale of its own
    mapped = class_calibration(scored(skewed / 5, codes, 3))
    assert mapped.weights is not None
    P = mapped.of_classes(skewed / 5)
    close(P.sum(1), np.ones(n), terms=3)
    np.testing.assert_array_equal(P.argmax(1), skewed.argmax(1))  # predict and predict_proba agree
    truth = softmax(logits, axis=1)
    same = truth.argmax(1) == skewed.argmax(1)
    assert np.abs(P - truth)[same].mean() < 0.02
    assert np.abs(Calibration(mapped.temperature).of_classes(skewed / 5) - truth)[same].mean() > 0.05


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("n", [20, 2000])
def test_rows_without_an_error_are_no_proof_that_there_will_be_none(n, classes):
    codes = np.arange(n) % classes
    loo = scored(np.eye(classes)[codes], codes, classes)
    right, exact = (n + 1) / (n + 2), {"rtol": 1e-10}  # the root is found to 1e-12 of log t
    P = Calibration(class_temperature(loo)).of_classes(loo.outputs)
    np.testing.assert_allclose(P[loo.targets == 1], right, **exact)
    P = label_calibration(loo).of_labels(loo.outputs)
    np.testing.assert_allclose(np.where(loo.targets == 1, P, 1 - P), right, **exact)
    twice = scored(np.tile(loo.outputs, (2, 1)), np.tile(codes, 2), classes)
    weighed = loo._replace(weight=2 * loo.weight)  # of each row two
    np.testing.assert_allclose(class_temperature(weighed), class_temperature(twice), **exact)


def test_with_two_classes_probability_never_falls_as_the_output_grows():
    rng = np.random.default_rng(0)
    codes = (rng.uniform(size=4000) < 0.05).astype(int)
    margin = 0.3 * codes - 0.45 + 0.3 * rng.standard_normal(4000) + 0.4 * codes * rng.exponential(size=4000)
    outputs = np.stack([-margin, margin], axis=1) / 2
    mapped = class_calibration(scored(outputs, codes, 2))
    assert mapped.weights is not None
    P = mapped.of_classes(outputs[np.argsort(margin)])
    assert (np.diff(P[:, 1]) > -1e-4).all()
    np.testing.assert_array_equal(mapped.of_classes(outputs).argmax(1), outputs.argmax(1))


def test_the_scale_of_the_weights_does_not_change_probabilities():
    X, y = load_digits(return_X_y=True)
    plain = PILAEClassifier(depth=0, head=SHLN(width=100)).fit(X, y)
    assert plain.head_.calibrated(plain.fitted_.targets).weights is not None
    tenth = PILAEClassifier(depth=0, head=SHLN(width=100)).fit(X, y, sample_weight=np.full(len(y), 0.1))
    close(tenth.predict_proba(X), plain.predict_proba(X), **rounding(plain))


def test_pairs_are_pairs_at_any_width():
    for width in (5, 30, 150):
        rows, pairs = (PILAEClassifier(depth=0, head=SHLN(width=width, anchors=k)).fit(X, Y) for k in ("rows", "pairs"))
        assert not np.allclose(rows.head_.hidden.weights, pairs.head_.hidden.weights)
    with pytest.raises(ValueError, match="only 199 distinct rows"):
        PILAEClassifier(depth=0, head=SHLN(width=200, anchors="pairs")).fit(X, Y)


def test_probabilities_are_calibrated_and_agree_with_predictions(library):
    X, y = load_digits(return_X_y=True)
    model = PILAEClassifier(depth=0, random_state=0, head=SHLN(width=150)).fit(library(X[::2]), y[::2])
    P = to_numpy(model.predict_proba(library(X[1::2])))
    labels = to_numpy(model.predict(library(X[1::2])))
    np.testing.assert_array_equal(P.argmax(1), labels)
    confidence, right = P.max(1), labels == y[1::2]
    bins = np.minimum((15 * confidence).astype(int), 14)
    ece = sum(abs(right[bins == b].mean() - confidence[bins == b].mean()) * np.mean(bins == b) for b in set(bins))
    assert ece < 0.03


def test_small_spread_around_a_mean_keeps_its_digits_in_float32():
    rng = np.random.default_rng(0)
    k = rng.integers(-8, 9, size=(1000, 10)) / 2**14  # exact in float32 beside 2
    y = (k[:, 0] + k[:, 1] > 0).astype(int)
    params = {"depth": 0, "ridge": 1.0, "input_scaling": "none", "head": SHLN(width=100)}
    outputs = []
    for offset in (0.0, 2.0):
        X = (offset + k).astype(np.float32)
        outputs.append(PILAEClassifier(layer=PILAutoencoder(anchors="first"), **params).fit(X, y).decision_function(X))
    close(outputs[1], outputs[0], dtype="float32", condition=2 / k.std())  # of squares nothing would be left


@pytest.mark.parametrize("ridge", [0, 1e-9])
def test_a_small_ridge_gets_float64_products(ridge):
    """Rounding of float32 products is a thousand times such a ridge, and would decide about the weights."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    X = np.hstack([X, X @ rng.standard_normal((5, 5)) + 1e-3 * rng.standard_normal((2000, 5))]).astype(np.float32)
    y = X[:, 0] + 0.5 * X[:, 7] + 0.1 * rng.standard_normal(2000)
    single, double = (
        PILAERegressor(depth=0, head="ridge", ridge=ridge).fit(rows, y) for rows in (X, X.astype(np.float64))
    )
    # what float64 may lose in such a system is more than what float32, which keeps the weights, takes from them
    close(single.head_.output.coef, double.head_.output.coef, **rounding(double))
