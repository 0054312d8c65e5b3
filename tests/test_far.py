"""Rows far outside what was seen: known as such, and answered like rows at the end of the range."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import pilae
from helpers import close, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor
from pilae._engine.bounds import MARGIN, Bounds

X, Y = load_diabetes(return_X_y=True)
FIXED = {"depth": 0, "head": SHLN(width=30), "random_state": 0}
MODEL = PILAERegressor(**FIXED).fit(X, Y)


def moved(factor, column=2):
    rows = X[:20].copy()
    rows[:, column] = X[:, column].mean() + factor * np.ptp(X[:, column])
    return rows


def test_rows_that_were_seen_are_taken_as_they_come():
    bounds = MODEL.fitted_.bounds
    assert bounds(X) is X
    assert not MODEL.is_far(X).any()
    free = replace(MODEL.fitted_, bounds=None)
    assert (free.features(X) == MODEL.fitted_.features(X)).all()
    low, high = np.array([0.0]), np.array([2.0])
    near = np.array([[-1.0], [-0.5], [0.3], [3.0]])
    np.testing.assert_array_equal(Bounds.of(low, high)(np.r_[near, [[9.0]]])[:4], near)


def test_far_numbers_come_back_smoothly_and_in_order():
    bounds = Bounds.of(np.array([0.0]), np.array([2.0]))
    margin = MARGIN * 2
    far = np.array([[3.0 + 1e-6], [3.1], [10.0], [1e300]])
    found = bounds(far)[:, 0]
    assert found[0] - 3.0 == pytest.approx(1e-6, rel=1e-5)  # slope one at the border
    assert np.all(np.diff(found) > 0)
    assert np.all(found <= 3.0 + margin)
    np.testing.assert_allclose(bounds(2 - far)[:, 0], 2 - found, rtol=tolerance(), atol=tolerance())


def test_columns_without_a_range_are_no_matter():
    bounds = Bounds.of(np.array([1.0, 0.0]), np.array([1.0, 1.0]))
    rows = np.array([[1e9, 0.5], [1.0, 0.5]])
    assert bounds(rows) is rows
    assert not bounds.far(rows).any()


def test_where_a_few_numbers_lie_far_out_the_margin_is_that_of_most():
    rng = np.random.default_rng(0)
    A = rng.lognormal(0, 2, (2000, 1))
    bounds = PILAERegressor(**FIXED).fit(A, np.log(A[:, 0])).fitted_.bounds
    close(bounds.margin, 3 * A.std(axis=0), terms=2000)
    assert bounds.margin < MARGIN * np.ptp(A) / 3
    even = rng.random((2000, 1))
    close(PILAERegressor(**FIXED).fit(even, even[:, 0]).fitted_.bounds.margin, MARGIN * np.ptp(even, axis=0))
    joined = bounds.joined(np.array([-1.0]), np.array([1.0]), np.array([0.5]))
    np.testing.assert_array_equal(joined.spread, bounds.spread)  # of two the larger, in either order
    other = Bounds.of(np.array([-1.0]), np.array([1.0]), np.array([0.5]))
    np.testing.assert_array_equal(other.joined(bounds.low, bounds.high, bounds.spread).margin, joined.margin)


def test_intervals_of_far_rows_hold_what_targets_are():
    rows = np.r_[X[:5], moved(1e6)[:5]]
    ends, usual = MODEL.predict_interval(rows, 0.8), np.quantile(Y, [0.11, 0.89])  # quantiles are those of rows
    assert (ends[5:, 0] <= usual[0]).all()
    assert (ends[5:, 1] >= usual[1]).all()
    assert (np.diff(ends[:5], axis=1) < np.diff(usual)).any()
    two = PILAERegressor(**FIXED).fit(X, np.c_[Y, -Y])
    assert (two.predict_interval(rows, 0.8)[5:, 1, 1] >= -usual[0]).all()


@pytest.mark.parametrize("factor", [3.0, 1e3, 1e9])
def test_far_rows_are_known_and_answered_within_reason(factor):
    rows = moved(factor)
    assert MODEL.is_far(rows).all()
    assert MODEL.is_far(rows).dtype == bool
    assert np.all(np.abs(MODEL.predict(rows) - Y.mean()) < 5 * np.ptp(Y))
    ends = MODEL.predict_interval(rows)
    assert np.all(np.abs(ends - Y.mean()) < 8 * np.ptp(Y))
    assert not MODEL.is_far(moved(0.5)).any()


@pytest.mark.parametrize("targets", [Y, np.c_[Y, -Y]])
def test_no_answer_to_a_far_row_is_beyond_all_targets(targets):
    model = PILAERegressor(depth=0, head=SHLN(width=30, activation="relu2"), random_state=0).fit(X, targets)
    rows = np.r_[X, *(moved(factor, column) for factor in (-50.0, 50.0) for column in range(X.shape[1]))]
    far, free = model.is_far(rows), replace(model.fitted_, bounds=None)
    raw = model.head_.predict(free.targets, model.fitted_.features(rows))
    low, high = targets.min(axis=0), targets.max(axis=0)
    assert ((raw[far] > high) | (raw[far] < low)).any()
    close(model.predict(rows[far]), np.clip(raw[far], low, high), condition=1e3)
    close(model.predict(rows[~far]), raw[~far], condition=1e3)


def test_only_the_far_rows_of_a_block_are_moved():
    both = np.r_[X[:5], moved(1e6)[:5]]
    np.testing.assert_array_equal(MODEL.is_far(both), np.arange(10) >= 5)
    close(MODEL.predict(both)[:5], MODEL.predict(X[:5]), condition=1e3)


def test_classes_of_far_rows_have_probabilities():
    A, k = load_iris(return_X_y=True)
    model = PILAEClassifier(random_state=0).fit(A, k)
    far = 1e8 * A[:10]
    assert model.is_far(far).all()
    np.testing.assert_allclose(model.predict_proba(far).sum(axis=1), 1, rtol=tolerance(terms=3))


def test_ranges_are_saved_and_follow_later_rows(tmp_path):
    rows = moved(3.0)
    model = PILAERegressor(**FIXED).fit(X, Y)
    model.save(tmp_path / "m.pilae")
    again = pilae.load(tmp_path / "m.pilae")
    np.testing.assert_array_equal(again.is_far(rows), model.is_far(rows))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))
    fork = model.fork().partial_fit(rows, Y[:20])
    assert not fork.is_far(rows).any()
    assert not model.merge(fork).is_far(rows).any()
    assert not again.partial_fit(rows, Y[:20]).is_far(rows).any()
    model.fitted_ = replace(model.fitted_, bounds=None)
    with pytest.raises(ValueError, match="does not know the range of its rows"):
        model.is_far(X)


def test_rows_of_weight_zero_have_no_range():
    rows, weight = np.r_[X, moved(3.0)], np.r_[np.ones(len(X)), np.zeros(20)]
    model = PILAERegressor(**FIXED).fit(rows, np.r_[Y, Y[:20]], sample_weight=weight)
    assert model.is_far(moved(3.0)).all()


def test_streams_and_tensors_have_the_range_of_arrays():
    source = pilae.scan_blocks(lambda: ((X[k : k + 100], Y[k : k + 100]) for k in range(0, len(X), 100)))
    streamed = PILAERegressor(**FIXED).fit(source).fitted_.bounds
    np.testing.assert_array_equal([streamed.low, streamed.high], [X.min(axis=0), X.max(axis=0)])
    torch = pytest.importorskip("torch")
    model = PILAERegressor(**FIXED).fit(torch.asarray(X), torch.asarray(Y))
    rows = torch.asarray(moved(1e3))
    assert bool(model.is_far(rows).all())
    close(model.predict(rows).numpy(), MODEL.predict(moved(1e3)), condition=1e6)


def test_onnx_answers_far_rows_alike(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    MODEL.to_onnx(tmp_path / "m.onnx")
    session = runtime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rows = np.r_[X[:20], moved(1e3)].astype(np.float32)
    found = session.run(None, {"X": rows})[0][:, 0]
    close(found, MODEL.predict(rows.astype(float)), dtype="float32", condition=100)
