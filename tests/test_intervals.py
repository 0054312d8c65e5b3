"""Prediction intervals: as wide as the row asks for, and covering as often as they say among rows of every kind."""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes

import pilae
from helpers import close, rounding
from pilae import SHLN, PILAERegressor
from pilae._engine.intervals import BIN_ROWS, local_scale
from pilae._engine.scores import Scored

ROWS, TRAINED = 3000, 2000


def noisy(kind, seed=0):
    """Rows, targets, and how large the noise is at each."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((ROWS, 4))
    signal = {"elsewhere": X[:, 0] + np.sin(2 * X[:, 1]), "growing": np.exp(0.7 * X[:, 0]), "even": X[:, 0]}[kind]
    size = {"elsewhere": np.abs(X[:, 2]) + 0.1, "growing": 0.3 * signal, "even": np.ones(ROWS)}[kind]
    return X, signal + size * rng.standard_normal(ROWS), size


def widths_of(model, X, coverage=0.9):
    ends = model.predict_interval(X, coverage)
    return ends[..., 1] - ends[..., 0]


def inside(model, X, y, coverage=0.9):
    low, high = model.predict_interval(X, coverage).T
    return (low <= y) & (y <= high)


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.95])
@pytest.mark.parametrize("kind", ["elsewhere", "growing", "even"])
def test_every_fifth_of_the_predictions_is_covered(kind, coverage):
    X, y, _ = noisy(kind)
    model = PILAERegressor(depth=0, random_state=0).fit(X[:TRAINED], y[:TRAINED])
    covered = inside(model, X[TRAINED:], y[TRAINED:], coverage)[np.argsort(model.predict(X[TRAINED:]))]
    fifths = covered.reshape(5, -1).mean(axis=1)
    # the quantile comes from a sample too, of the training rows of that fifth
    error = (coverage * (1 - coverage) * (1 / 200 + 5 / TRAINED)) ** 0.5
    assert np.all(np.abs(fifths - coverage) < 3 * error + 0.01)


def test_intervals_follow_noise_that_predictions_do_not_show():
    X, y, size = noisy("elsewhere")
    model = PILAERegressor(depth=0, random_state=0).fit(X[:TRAINED], y[:TRAINED])
    widths, quiet = widths_of(model, X[TRAINED:]), size[TRAINED:] < np.median(size)
    assert np.median(widths[~quiet]) > 1.5 * np.median(widths[quiet])
    covered = inside(model, X[TRAINED:], y[TRAINED:])
    assert covered[~quiet].mean() > 0.84  # one width for all covers 0.81


def test_even_noise_has_intervals_of_nearly_one_width():
    X, y, _ = noisy("even")
    model = PILAERegressor(depth=0, random_state=0).fit(X[:TRAINED], y[:TRAINED])
    low, high = np.quantile(widths_of(model, X[TRAINED:]), [0.05, 0.95])
    assert high < 1.35 * low


def test_every_output_has_its_own_widths():
    X, y, _ = noisy("elsewhere")
    even = 100 * np.random.default_rng(1).standard_normal(ROWS)
    model = PILAERegressor(depth=0, random_state=0).fit(X[:TRAINED], np.stack([y, even], axis=1)[:TRAINED])
    widths = widths_of(model, X[TRAINED:])
    ratio = np.quantile(widths, 0.9, axis=0) / np.quantile(widths, 0.1, axis=0)
    assert ratio[0] > 1.5 * ratio[1]
    assert 300 < np.median(widths[:, 1]) < 360  # 3.29 standard deviations


def test_few_rows_have_one_width():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, head=SHLN(width=5), random_state=0).fit(X[: BIN_ROWS - 1], y[: BIN_ROWS - 1])
    widths = widths_of(model, X)
    close(widths, np.full(len(X), widths[0]), condition=10)


def test_far_rows_have_no_width_that_no_training_row_had():
    X, y, _ = noisy("growing")
    model = PILAERegressor(depth=0, random_state=0).fit(X[:TRAINED], y[:TRAINED])
    seen = widths_of(model, X[:TRAINED])
    far = widths_of(model, 1e3 * X[:10])
    assert np.isfinite(far).all()
    assert np.all(far < 10 * seen.max())
    assert np.all(far > 0)


def test_a_scale_is_left_out_where_it_does_not_help():
    rng = np.random.default_rng(0)
    F, size = rng.standard_normal((500, 40)), np.abs(rng.standard_normal((500, 1)))
    ones = np.ones(500)
    scored = Scored(size, np.zeros_like(size), ones, ones, ones)
    assert np.ptp(local_scale(F, scored).left_out) < 0.5
    told = scored._replace(outputs=size * np.exp(F[:, :1]))
    assert np.corrcoef(local_scale(F, told).left_out[:, 0], F[:, 0])[0, 1] > 0.9


def test_perfect_fits_and_few_rows_have_no_scale():
    ones, zeros = np.ones(100), np.zeros((100, 1))
    F = np.random.default_rng(0).standard_normal((100, 3))
    assert local_scale(F, Scored(zeros, zeros, ones, ones, ones)) is None
    few = Scored(*(part[: BIN_ROWS - 1] for part in (zeros + 1, zeros, ones, ones, ones)))
    assert local_scale(F[: BIN_ROWS - 1], few) is None


@pytest.mark.parametrize("head", ["ridge", SHLN(width=30)], ids=["ridge", "shln"])
def test_intervals_are_saved_and_updated_with_the_residuals(head, tmp_path):
    X, y, _ = noisy("growing")
    model = PILAERegressor(depth=0, head=head, random_state=0).fit(X[:500], y[:500])
    before = widths_of(model, X)
    assert np.ptp(before) > 0.1 * before.max()
    model.save(tmp_path / "m.pilae", statistics=False)
    np.testing.assert_array_equal(widths_of(pilae.load(tmp_path / "m.pilae"), X), before)
    model.partial_fit(X[500:900], y[500:900])
    assert model.loo_is_stale_
    scale = model.fitted_.head.output.local_scale
    model.recalibrate(X[:900], y[:900])
    assert model.fitted_.head.output.local_scale is not scale
    assert len(model.fitted_.head.output.local_scale.left_out) == 900
    model.forget(X[:5], y[:5])
    assert model.fitted_.head.output.local_scale is None


def test_float32_rows_and_tensors_have_the_same_intervals():
    torch = pytest.importorskip("torch")
    X, y, _ = noisy("growing")
    model = PILAERegressor(depth=0, head=SHLN(width=30), random_state=0).fit(X[:1000], y[:1000])
    there = PILAERegressor(depth=0, head=SHLN(width=30), random_state=0)
    ends = there.fit(torch.asarray(X[:1000]), torch.asarray(y[:1000])).predict_interval(torch.asarray(X))
    assert isinstance(ends, torch.Tensor)
    close(ends.numpy(), model.predict_interval(X), **rounding(model))
    single = PILAERegressor(depth=0, head=SHLN(width=30), random_state=0, dtype="float32").fit(X[:1000], y[:1000])
    ends = single.predict_interval(X)
    assert ends.dtype == np.float32
    assert abs(np.median(widths_of(single, X)) / np.median(widths_of(model, X)) - 1) < 0.05
