"""The last rows of a stream: a window is a fork that was given the rows in it, and nothing else."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pilae
from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor, scan_blocks
from pilae._estimators.window import DRIFT

X, Y = blobs(240)
Z = np.stack([X[:, 0] * 3 + Y, np.sin(X[:, 1])], axis=1)
TEST, _ = blobs(50, seed=1)
NETWORK = {"width": [6], "ridge": 1e-3, "head": SHLN(width=30)}
FITTED = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])


def is_that_of(model, rows, targets=Y, data=X):
    fresh = model.fork().partial_fit(data[rows], targets[rows])
    close(model.decision_function(TEST), fresh.decision_function(TEST), **rounding(fresh))


@given(cuts=st.lists(st.integers(1, 239), max_size=8, unique=True), size=st.integers(40, 300))
def test_a_window_holds_the_last_rows(cuts, size):
    model = FITTED.fork()
    for rows in np.split(np.arange(240), sorted(cuts)):
        model.partial_fit(X[rows], Y[rows], window=size)
        last = np.arange(max(0, rows[-1] + 1 - size), rows[-1] + 1)
        assert model.fitted_.window.count == len(last) == model.head_.output.moments.count
        np.testing.assert_array_equal(np.concatenate([chunk.X for chunk in model.fitted_.window.chunks]), X[last])
        is_that_of(model, last)


def test_it_begins_with_the_first_call_and_goes_on_without_being_named():
    model = PILAEClassifier(**NETWORK).partial_fit(X[:120], Y[:120], window=100)
    is_that_of(model, np.arange(20, 120))
    for k in range(120, 240, 7):
        model.partial_fit(X[k : k + 7], Y[k : k + 7])
    is_that_of(model, np.arange(140, 240))
    model.partial_fit(X[:1], Y[:1], window=50)  # narrower
    is_that_of(model, np.r_[191:240, 0])
    model.partial_fit(X[1:100], Y[1:100], window=200)  # wider again: nothing comes back
    is_that_of(model, np.r_[191:240, 0:100])


def test_one_row_after_another_is_kept_in_few_chunks():
    model, many = FITTED.fork(), np.arange(700) % 240
    for k in many:
        model.partial_fit(X[k : k + 1], Y[k : k + 1], window=150)
    assert len(model.fitted_.window.chunks) < 12
    is_that_of(model, many[-150:])


def test_weights_numbers_labels_and_sources_slide():
    weight = np.random.default_rng(0).uniform(0.5, 2, 240)
    model = PILAERegressor(**NETWORK).partial_fit(X[:120], Z[:120], sample_weight=weight[:120], window=90)
    for k in range(120, 240, 24):
        rows = slice(k, k + 24)
        model.partial_fit(X[rows], Z[rows], sample_weight=weight[rows])
    fresh = model.fork().partial_fit(X[150:], Z[150:], sample_weight=weight[150:])
    close(model.predict(TEST), fresh.predict(TEST), **rounding(fresh))

    labels = np.stack([Y == 0, Y > 0], axis=1).astype(int)
    model = PILAEClassifier(**NETWORK).partial_fit(X[:120], labels[:120], window=90)
    is_that_of(model.partial_fit(X[120:150], labels[120:150]), np.arange(60, 150), labels)

    def blocks():
        for start in range(0, 240, 40):
            yield X[start : start + 40], Y[start : start + 40]

    is_that_of(FITTED.fork().partial_fit(scan_blocks(blocks), window=130), np.arange(110, 240))


def test_new_classes_slide_too():
    late = Y.copy()
    late[150:170], late[200:] = -1, 9
    model = FITTED.fork()
    for k in range(0, 240, 30):
        model.partial_fit(X[k : k + 30], late[k : k + 30], window=100)
    assert model.classes_.tolist() == [-1, 0, 1, 2, 9]
    fresh = FITTED.fork().partial_fit(X[:5], [-1, 0, 1, 2, 9]).forget(X[:5], [-1, 0, 1, 2, 9])
    fresh.partial_fit(X[140:], late[140:])
    close(model.decision_function(TEST), fresh.decision_function(TEST), **rounding(fresh))


def test_rows_are_forgotten_in_the_window_too():
    model = FITTED.fork().partial_fit(X[:200], Y[:200], window=150)
    with pytest.raises(ValueError, match="10 of them are not in the window"):
        model.forget(X[40:60], Y[40:60])
    model.forget(X[60:80], Y[60:80])
    left = np.concatenate([chunk.X for chunk in model.fitted_.window.chunks])
    assert not (left[:, None, :] == X[60:80]).all(axis=2).any()
    is_that_of(model, np.r_[50:60, 80:200])
    is_that_of(model.partial_fit(X[200:], Y[200:]), np.arange(90, 240))


def test_it_is_saved_and_goes_on(tmp_path):
    model = FITTED.fork().partial_fit(X[:150], Y[:150], window=100)
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae")
    outputs = [m.partial_fit(X[150:200], Y[150:200]).decision_function(TEST) for m in (model, again)]
    np.testing.assert_array_equal(*outputs)
    model.save(tmp_path / "lean.pilae", statistics=False)
    assert pilae.load(tmp_path / "lean.pilae").fitted_.window is None
    assert (tmp_path / "lean.pilae").read_bytes().count(X[149].tobytes()) == 0


def test_every_array_library_slides(library):
    model = PILAEClassifier(**NETWORK).partial_fit(library(X[:120]), Y[:120], window=100)
    for k in range(120, 240, 30):
        model.partial_fit(library(X[k : k + 30]), Y[k : k + 30])
    expected = PILAEClassifier(**NETWORK).partial_fit(X[:120], Y[:120], window=100).fork().partial_fit(X[140:], Y[140:])
    close(library.numpy(model.decision_function(library(TEST))), expected.decision_function(TEST), **rounding(expected))


def test_something_huge_that_leaves_takes_its_rounding_with_it():
    """Sums that held 1e16 times the rest have lost its digits: they are made anew."""
    regressor = PILAERegressor(depth=0, head="ridge", ridge=1e-6, input_scaling="none").fit(X, Z)
    model = regressor.fork().partial_fit(X[:100], Z[:100], window=100)
    model.partial_fit(X[:1] * 1e8, Z[:1])
    for k in range(100):
        model.partial_fit(X[100 + k : 101 + k], Z[100 + k : 101 + k])
    fresh = regressor.fork().partial_fit(X[100:200], Z[100:200])
    assert model.fitted_.window.count == 100
    close(model.predict(TEST), fresh.predict(TEST), **rounding(fresh))


def test_drift_is_bounded_over_many_steps():
    """40,000 steps stay within the bound that makes sums anew, and far within what a user could feel."""
    regressor = PILAERegressor(depth=0, head="ridge", ridge=1e-6, input_scaling="none").fit(X, Z)
    model = regressor.fork().partial_fit(X[:100], Z[:100], window=100)
    rng = np.random.default_rng(0)
    for _ in range(800):
        rows = rng.integers(0, 240, 50)
        model.partial_fit(X[rows] * rng.uniform(0.1, 10), Z[rows])
    last = np.concatenate([chunk.X for chunk in model.fitted_.window.chunks])
    moments = model.head_.output.moments
    G = (last - last.mean(axis=0)).T @ (last - last.mean(axis=0))
    assert np.abs(moments.gram(centred=True) - G).max() < DRIFT["float64"] * np.abs(G).max()


def test_refusals_are_sentences_and_change_nothing():
    model = FITTED.fork().partial_fit(X[:100], Y[:100], window=80)
    before = model.fitted_
    for wrong, words in (
        ({"window": 0}, "at least 1"),
        ({"window": 2.5}, "at least 1"),
        ({"window": 10, "decay": 0.9}, "goes without decay"),
        ({"half_life": 20}, "goes without decay"),
        ({"update": "all"}, "goes without decay"),
        ({"current": True}, "goes without decay"),
    ):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(X[100:110], Y[100:110], **wrong)
    with pytest.raises(ValueError, match="cannot be merged"):
        model.merge(FITTED)
    assert model.fitted_ is before
    with pytest.raises(ValueError, match="were not kept"):
        copy.deepcopy(FITTED).partial_fit(X, Y, window=10)
    assert model.fork().fitted_.window is None


@pytest.mark.parametrize("fading", [{}, {"decay": 0.9}, {"half_life": 20}])
@pytest.mark.parametrize("keep", [True, "classes"])
def test_a_window_of_balanced_classes_is_refused_in_whatever_order(fading, keep):
    balanced = {**NETWORK, "class_weight": "balanced", "keep_statistics": keep}
    words = "goes without|cannot be exact"
    with pytest.raises(ValueError, match=words):
        PILAEClassifier(**balanced).partial_fit(X, Y, window=50, **fading)
    model = PILAEClassifier(**balanced).fit(X, Y)
    before = model.decision_function(TEST)
    with pytest.raises(ValueError, match=words):
        model.fork().partial_fit(X, Y, window=50, **fading)
    if keep == "classes":
        filled = model.fork().partial_fit(X[:120], Y[:120], **fading)
        with pytest.raises(ValueError, match="goes without class_weight='balanced'"):
            filled.partial_fit(X[120:], Y[120:], window=50)
    np.testing.assert_array_equal(model.decision_function(TEST), before)


def test_what_fades_has_no_window():
    model = FITTED.fork().partial_fit(X[:100], Y[:100], decay=0.9)
    before = model.decision_function(TEST)
    with pytest.raises(ValueError, match="were not kept, so they cannot leave a window"):
        model.partial_fit(X[100:], Y[100:], window=50)
    np.testing.assert_array_equal(model.decision_function(TEST), before)


def test_a_window_is_tested_first():
    model = FITTED.fork().partial_fit(X[:100], Y[:100], window=80)
    expected = (model.predict(X[100:150]) == Y[100:150]).astype(float)
    np.testing.assert_array_equal(model.partial_fit(X[100:150], Y[100:150], test_first=True).stream_.last, expected)


def test_of_threads_that_add_at_once_no_row_is_lost():
    model = FITTED.fork().partial_fit(X[:60], Y[:60], window=230)

    def add(start):
        for k in range(start, start + 45):
            model.partial_fit(X[k : k + 1], Y[k : k + 1])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(60, 240, 45)))
    kept = np.concatenate([chunk.X for chunk in model.fitted_.window.chunks])
    assert len(kept) == 230
    rows = [int(np.flatnonzero((x == X).all(axis=1))[0]) for x in kept]
    assert sorted(rows) == list(range(10, 240))  # the oldest ten left, one by one
    is_that_of(model, rows)
