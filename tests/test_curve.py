"""Targets on a scale that is logarithmic in the tails."""

import numpy as np
import onnxruntime
import pytest

from helpers import close, evaluation
from pilae import PILAERegressor, load, scan_blocks
from pilae._engine.curve import BEYOND, Curve, curve_for
from pilae._engine.scores import Scored


def prices(n, seed=0):
    """The logarithm is a smooth function of the columns, with noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 1000.0 * np.exp(X[:, 0] + 0.5 * np.sin(2 * X[:, 1]) + 0.3 * rng.normal(size=n))


@pytest.fixture(scope="module")
def heavy():
    X, y = prices(1500)
    return X[:1200], y[:1200], X[1200:], y[1200:]


@pytest.fixture(scope="module")
def model(heavy):
    return PILAERegressor(random_state=0, max_depth=0).fit(heavy[0], heavy[1])


def scored(targets, outputs, weight=None):
    w = np.ones(len(targets)) if weight is None else weight
    return Scored(outputs, targets, w, np.minimum(w, 1.0), w)


def test_a_curve_goes_there_and_back():
    y = np.array([[-1e6, 3.0], [0.0, 4.0], [5.0, 1e9]])
    curve = Curve(
        np.array([1.0, 3.0]), np.array([2.0, 0.5]), np.ones(2), np.zeros(2), np.full(2, -30.0), np.full(2, 30.0)
    )
    close(curve.back(curve.onto(y)), y, terms=100)
    close(curve.mean(curve.onto(y)), y, terms=100)


def test_smearing_gives_the_mean():
    rng = np.random.default_rng(0)
    t, e = np.full((20_000, 1), 0.7), 0.8 * rng.normal(size=(20_000, 1)) + 0.1
    wide = np.array([30.0])
    curve = Curve(np.array([10.0]), np.array([3.0]), np.ones(1), np.zeros(1), -wide, wide).smeared(scored(t + e, t))
    # of these very rows the answer is their mean, not only about
    close(curve.mean(t[:1]), curve.back(t + e).mean(axis=0, keepdims=True), terms=20_000)
    assert curve.mean(t[:1])[0, 0] > curve.back(t[:1] + 0.1)[0, 0] + 0.3  # the median is below the mean


def test_a_mean_is_not_beyond_all_targets():
    y = np.random.default_rng(0).normal(size=(500, 1)) ** 3
    curve = curve_for(scored(y, 0.0 * y))
    assert curve is not None
    ends, smeared = np.array([y.max(axis=0), y.min(axis=0)]), curve.smeared(scored(curve.onto(y), 0.0 * y))
    for each in (curve, smeared):
        close(each.mean(np.array([[50.0], [-50.0]])), ends, terms=100)


def test_all_targets_are_seen_and_not_only_those_that_judge(tmp_path):
    """Of a few large targets one half of the rows may have none."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(600, 3))
    y = np.exp(2 * X[:, 0] + 0.1 * rng.normal(size=600))
    tail = np.sort(y)[-2:]
    for seed in range(4):  # the halves of another seed are others
        kept = PILAERegressor(depth=0, target_scaling="asinh", random_state=seed).fit(X, y)
        curve = kept.fitted_.targets.curve
        close(curve.back(curve.high), tail[1:], terms=100)
        close(curve.onto(y[:, None]).min(axis=0), curve.low, terms=100)
    source = scan_blocks(lambda: ((X[k : k + 100], y[k : k + 100]) for k in range(0, 600, 100)))
    curve = PILAERegressor(depth=0, target_scaling="asinh", random_state=0).fit(source).fitted_.targets.curve
    close(curve.back(curve.high), tail[1:], terms=100)
    weight = (y < tail[1]).astype(float)  # the largest has no weight
    curve = PILAERegressor(depth=0, target_scaling="asinh").fit(X, y, sample_weight=weight).fitted_.targets.curve
    close(curve.back(curve.high), tail[:1], terms=100)


def test_an_interval_holds_the_mean_and_ends_near_the_targets_seen():
    curve = Curve(*np.array([[0.0], [1.0], [3.0], [0.5], [-5.0], [6.0]]))
    t, half = np.array([[-50.0], [-5.0], [0.0], [7.0]]), np.array([[1.0], [100.0], [1e-3], [0.1]])
    low, high = curve.ends(t, half)
    mean = curve.mean(t)
    assert (low <= mean).all()
    assert (mean <= high).all()
    assert (low >= min(np.sinh(-5.0 - BEYOND), mean.min())).all()
    assert (high <= max(np.sinh(6.0 + BEYOND), mean.max())).all()


def test_normal_residuals_need_no_curve():
    rng = np.random.default_rng(0)
    y = rng.normal(size=(500, 1))
    assert curve_for(scored(y, 0.0 * y)) is None
    assert curve_for(scored(y**3, 0.0 * y)) is not None
    assert curve_for(scored(np.ones((5, 1)), np.ones((5, 1))), always=True) is None  # no target varies


def test_a_curve_counts_weights_as_repeats():
    rng = np.random.default_rng(0)
    y, w = rng.normal(size=(301, 2)) ** 3, rng.integers(0, 4, 301)
    weighted = curve_for(scored(y, 0.0 * y, w.astype(float)))
    repeated = curve_for(scored(np.repeat(y, w, axis=0), np.zeros((w.sum(), 2))))
    for name in ("middle", "spread"):
        close(getattr(weighted, name), getattr(repeated, name))


def test_heavy_tails_are_found_and_help(heavy, model):
    X, y, *_ = heavy
    X_test, y_test = prices(20_000, seed=1)  # of few single rows decide
    assert model.target_scaling_ == "asinh"
    plain = PILAERegressor(random_state=0, max_depth=0, target_scaling="none").fit(X, y)
    assert plain.target_scaling_ == "none"
    errors = [(each.predict(X_test) - y_test) ** 2 for each in (model, plain)]
    most = np.quantile(errors, 0.99)  # scales are compared so: beyond, single rows decide
    error = np.minimum(errors[0], most).mean()
    assert error < np.minimum(errors[1], most).mean()
    left_out = (model.loo_predictions_.predicted - y[model.loo_predictions_.rows]) ** 2
    assert np.minimum(left_out, most).mean() == pytest.approx(error, rel=0.3)
    assert abs(model.predict(X_test).mean() / y_test.mean() - 1) < 0.1  # no bias: the mean, not the median


def test_intervals_follow_the_scale(heavy, model):
    _, _, X_test, y_test = heavy
    low, high = model.predict_interval(X_test, 0.9).T
    inside = (low <= y_test) & (y_test <= high)
    assert abs(inside.mean() - 0.9) < 3 * (0.9 * 0.1 / len(y_test)) ** 0.5
    order = np.argsort(model.predict(X_test))
    assert (high - low)[order[-30:]].mean() > 2 * (high - low)[order[:30]].mean()
    for fifth in np.array_split(order, 5):
        assert inside[fifth].mean() > 0.65  # one width for all rows has 0.48 in the last


def test_it_is_the_model_of_a_stream_of_a_file_and_of_merged_parts(heavy, model, tmp_path):
    X, y, X_test, _ = heavy
    blocks = scan_blocks(lambda: ((X[k : k + 200], y[k : k + 200]) for k in range(0, 1200, 200)))
    wanted = model.predict(X_test)
    streamed = PILAERegressor(random_state=0, max_depth=0).fit(blocks)
    assert streamed.target_scaling_ == "asinh"
    close(streamed.predict(X_test), wanted, condition=1e6, terms=1200)
    model.save(tmp_path / "m.pilae")
    close(load(tmp_path / "m.pilae").predict(X_test), wanted)
    parts = [model.fork().partial_fit(X[k::3], y[k::3]) for k in range(3)]
    close(parts[0].merge(*parts[1:]).predict(X_test), wanted, condition=1e6, terms=1200)


def test_rows_come_and_go(heavy, model):
    X, y, X_test, y_test = heavy
    changed = model.fork().partial_fit(X, y).partial_fit(X_test, y_test).forget(X_test, y_test)
    close(changed.predict(X_test), model.predict(X_test), condition=1e6, terms=1500)
    changed.recalibrate(X, y)
    assert abs(changed.loo_score_ - model.loo_score_) < 0.1


def test_models_on_other_scales_do_not_merge(heavy, model):
    X, y, _, _ = heavy
    other = PILAERegressor(random_state=0, max_depth=0).fit(X, 2.0 * y)
    assert other.target_scaling_ == "asinh"
    with pytest.raises(ValueError, match="has another network"):
        model.fork().merge(other)


def test_onnx_gives_the_same_means(heavy, model, tmp_path):
    X_test = heavy[2].astype(np.float32).astype(float)
    model.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    [found] = session.run(None, {session.get_inputs()[0].name: X_test.astype(np.float32)})
    close(found[:, 0], model.predict(X_test), **evaluation(model.predict, X_test, "float32"))


def test_robust_weights_deal_with_tails_themselves(heavy):
    X, y, _, _ = heavy
    model = PILAERegressor(random_state=0, max_depth=0, loss="robust", head="ridge").fit(X, y)
    assert model.target_scaling_ == "none"


def test_scales_of_more_rows_than_are_scored_are_compared_on_the_rows_that_both_have():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12_000, 3))
    y = np.exp(X @ [1.0, 0.7, 0.4] + 0.3 * rng.standard_normal(len(X)))
    model = PILAERegressor(max_depth=0, head="ridge").fit(X, y)  # of each scale another 10,000 are scored
    assert model.target_scaling_ == "asinh"
    plain = PILAERegressor(max_depth=0, head="ridge", target_scaling="none").fit(X, y)
    assert model.loo_score_ > plain.loo_score_
