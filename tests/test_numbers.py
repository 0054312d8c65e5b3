"""Numbers of absurd size and odd containers: the same model as in ordinary ones, or one sentence."""

import copy

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone

import pilae
from helpers import blobs, close, evaluation, interpolation, rounding
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    PILRegressor,
    StackedPILAE,
    scan_blocks,
)
from pilae._engine.scaling import Extent, gauge_for

X, Y = blobs(60)
T = X @ np.arange(6.0)
RIDGE = PILAEClassifier(depth=0, head="ridge", ridge=1e-2)
DEEP = PILAEClassifier(depth=1, width=3, ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=5))
POWERS = [-1000, -600, -300, 300, 600, 1000]


def far(power, X=X):
    return np.ldexp(X, power)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("model", [RIDGE, DEEP, clone(DEEP).set_params(input_scaling="none")])
def test_a_power_of_two_does_not_change_the_model(model, power):
    wanted = model.fit(X, Y).decision_function(X)
    found = model.fit(far(power), Y)
    close(found.decision_function(far(power)), wanted, **rounding(found))


@pytest.mark.parametrize("scaling", ["standard", "asinh"])
def test_columns_of_any_sizes_are_standardised(scaling):
    model = PILAERegressor(
        depth=1, input_scaling=scaling, ridge=1e-2, layer=PILAutoencoder(anchors="first"), head=SHLN(width=5)
    )
    wanted = model.fit(X, T).predict(X)
    wild = np.ldexp(X, [-1000, 1000, 0, 500, -500, 3])
    close(model.fit(wild, T).predict(wild), wanted, **rounding(model))


def test_a_tiny_column_is_not_taken_for_a_constant_one():
    rng = np.random.default_rng(0)
    signal = rng.choice([-1.0, 1.0], 100)  # of mean zero: neither sums nor squares show it
    signal[:50] = -signal[50:]
    tiny = np.c_[rng.standard_normal(100), 1e-200 * signal]
    assert RIDGE.fit(tiny, signal > 0).score(tiny, signal > 0) == 1.0
    zeros = np.c_[rng.standard_normal(100), np.zeros(100)]
    assert RIDGE.fit(zeros, signal > 0).network_.gauge is None


def test_without_scaling_columns_too_far_apart_are_refused():
    wild = np.ldexp(X, [-1000, 0, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="too far apart for float64 with input_scaling='none': use"):
        PILAEClassifier(input_scaling="none").fit(wild, Y)


def test_float32_gets_numbers_that_it_does_not_hold():
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-2, dtype="float32")
    wanted = model.fit(X, Y).decision_function(X)
    for power in (-300, -60, 60, 300):
        found = model.fit(far(power), Y)
        close(found.decision_function(far(power)), wanted, **rounding(found))
    one = np.ldexp(X, [-300, 0, 0, 0, 0, 0])  # float32 makes it a column of zeros
    close(model.fit(one, Y).decision_function(one), wanted, **rounding(model))


@pytest.mark.parametrize("power", [-900, 900])
def test_rows_under_a_gauge_from_anywhere(power, tmp_path):
    far_X = far(power)
    whole = RIDGE.fit(far_X, Y)
    wanted = whole.decision_function(far_X)
    source = scan_blocks(lambda: ((far_X[a : a + 20], Y[a : a + 20]) for a in range(0, 60, 20)))
    found = PILAEClassifier(depth=0, head="ridge", ridge=1e-2).fit(source)
    close(found.decision_function(far_X), wanted, **rounding(whole))
    close(found.decision_function(source), wanted, **rounding(whole))
    close(RIDGE.decision_function(scipy.sparse.csr_array(far_X)), wanted, **rounding(whole))
    whole.save(tmp_path / "model")
    np.testing.assert_array_equal(pilae.load(tmp_path / "model").decision_function(far_X), wanted)
    deep = DEEP.fit(source).decision_function(far_X)  # layers and anchors see the rows as the head does
    close(deep, DEEP.fit(far_X, Y).decision_function(far_X), **rounding(DEEP))


def test_dask_rows_under_a_gauge():
    da = pytest.importorskip("dask.array")
    far_X = far(900)
    whole = PILAEClassifier(depth=0, ridge=1e-2, head=SHLN(width=5)).fit(far_X, Y)
    rows = da.from_array(far_X, chunks=(20, 6))
    found = PILAEClassifier(depth=0, ridge=1e-2, head=SHLN(width=5)).fit(rows, da.from_array(Y, chunks=20))
    close(found.decision_function(rows).compute(), whole.decision_function(far_X), **rounding(whole))


def test_torch_rows_under_a_gauge():
    torch = pytest.importorskip("torch")
    far_X = torch.asarray(far(-1000))
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-2).fit(far_X, Y)
    wanted = RIDGE.fit(X, Y).decision_function(X)
    close(model.decision_function(far_X).numpy(), wanted, **rounding(RIDGE))


def test_rows_that_come_later_come_under_the_same_gauge():
    far_X = far(-900)
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-2).fit(far_X[:40], Y[:40])
    model.partial_fit(far_X[40:], Y[40:])
    close(model.decision_function(far_X), RIDGE.fit(far_X, Y).decision_function(far_X), **rounding(RIDGE))
    model.forget(far_X[40:], Y[40:])
    again = RIDGE.fit(far_X[:40], Y[:40]).decision_function(far_X)
    close(model.decision_function(far_X), again, **rounding(RIDGE))
    fork = model.fork().partial_fit(far_X[40:], Y[40:])
    assert np.isfinite(model.merge(fork).decision_function(far_X)).all()


def test_a_gauge_in_a_graph(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-2).fit(far(-60, X.astype(np.float32)), T)
    assert model.network_.gauge is not None
    model.to_onnx(tmp_path / "model.onnx")
    rows = far(-60, X.astype(np.float32))
    [said] = runtime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": rows})
    close(said[:, 0], model.predict(rows), **evaluation(model.predict, rows, "float32"))
    with pytest.raises(ValueError, match="numbers that float32 does not hold"):
        PILAERegressor(depth=0).fit(far(-900), T).to_onnx(tmp_path / "model.onnx")


@pytest.mark.parametrize("power", POWERS)
def test_stacks_give_back_what_they_were_given(power):
    stack = StackedPILAE(width=[6], input_scaling="none", layer=PILAutoencoder(anchors="first"))
    wanted = stack.fit(X).inverse_transform(stack.transform(X))
    back = stack.fit(far(power)).inverse_transform(stack.transform(far(power)))
    close(np.ldexp(back, -power), wanted, condition=6 / 1e-3, terms=60)  # six features, the ridge of the decoder
    assert np.isfinite(stack.score_samples(far(power))).all()


@pytest.mark.parametrize("power", POWERS)
def test_basic_learning_at_any_size(power):
    assert PILClassifier().fit(far(power), Y).score(far(power), Y) == 1.0
    known = interpolation(PILRegressor().fit(X, T), X)
    close(PILRegressor().fit(far(power), T).predict(far(power)), T, **known)


def test_a_gauge_needs_no_pass_where_sizes_are_ordinary():
    assert StackedPILAE(width=[3], keep_decoders=False).fit(X).n_passes_ == (
        StackedPILAE(width=[3], keep_decoders=False).fit(1000 * X).n_passes_
    )


def test_gauges():
    extent = Extent(3)
    extent.low, extent.high = np.array([-3.0, 0.0, 2.0**-500]), np.array([1.0, 0.0, 2.0**-499])
    np.testing.assert_array_equal(gauge_for(extent, "float64", "auto"), [-2, 0, 498])
    extent.low[2], extent.high[2] = 5.0, 8.0
    np.testing.assert_array_equal(gauge_for(extent, "float64", "none"), [-4, -4, -4])


# --------------------------------------------------------------------------------------------- rows from elsewhere


def test_rows_so_far_beyond_those_of_fit_that_nothing_is_left_are_refused():
    regressor = PILAERegressor(depth=0, head="ridge").fit(X, 1e100 * T)
    for method in (regressor.predict, regressor.predict_interval):  # which know the range that was seen
        assert np.isfinite(method(1e300 * X)).all()
    stack = StackedPILAE(width=[3], layer=PILAutoencoder(activation="relu2")).fit(X)
    for method in (stack.transform, stack.score_samples):
        with pytest.raises(ValueError, match="so far beyond those of fit"):
            method(1e300 * X)
    assert set(PILAEClassifier(depth=0, head="ridge").fit(X, Y).predict(1e300 * X)) <= {0, 1, 2}


def test_probabilities_of_absurd_outputs():
    model = PILAEClassifier(depth=0, head="ridge").fit(X, Y)
    proba = model.predict_proba(1e300 * X)
    close(proba.sum(axis=1), np.ones(60), terms=3)
    np.testing.assert_array_equal(proba.argmax(axis=1), model.predict(1e300 * X))


@pytest.mark.parametrize("update", ["head", "all"])
def test_later_rows_whose_sums_overflow_change_nothing(update):
    model = PILAERegressor(depth=1, width=3, head="ridge", layer=PILAutoencoder(activation="linear")).fit(X, T)
    before = model.predict(X)
    with pytest.raises(ValueError, match="their sums overflow"):
        model.partial_fit(1e300 * X, T, update=update)
    np.testing.assert_array_equal(model.predict(X), before)


@pytest.mark.parametrize("weight", [1e300, 1e306], ids=["squares", "weights"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_few_rows_whose_weights_overflow_change_nothing(dtype, weight):
    """Rows that wait for the sums are refused when they come, not when somebody asks."""
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-2, dtype=dtype).fit(X, T)
    before = model.predict(X)
    rows = (1e5 if weight < 1e306 else 1.0) * X[:8]
    with pytest.raises(ValueError, match="their sums overflow"):
        model.partial_fit(rows, T[:8], sample_weight=np.full(8, weight))
    np.testing.assert_array_equal(model.predict(X), before)


def answers_or_refuses(model, step):
    before = model.decision_function(X)
    try:
        step(model)
    except ValueError:
        with pytest.raises(ValueError, match="their sums overflow"):
            step(model)
        np.testing.assert_array_equal(model.decision_function(X), before)
        return False
    assert np.isfinite(model.decision_function(X)).all()
    return True


@pytest.mark.parametrize("count", [8, 60], ids=["few", "many"])
def test_what_is_made_of_sums_that_were_taken_does_not_overflow(count):
    """Traces are larger than the sums: these end before the numbers do."""
    model = clone(RIDGE).fit(X, Y)
    weights = [np.full(count, 10.0**power) for power in range(290, 309)]
    taken = [
        answers_or_refuses(model, lambda model, w=w: model.partial_fit(X[:count], Y[:count], sample_weight=w))
        for w in weights
    ]
    assert taken == sorted(taken, reverse=True)
    assert set(taken) == {True, False}
    others = [copy.deepcopy(model) for _ in range(100)]
    assert not answers_or_refuses(model, lambda model: model.merge(*others))


# -------------------------------------------------------------------------------------------------- odd containers


def missing():
    frame = pd.DataFrame(X).astype(object)
    frame.iloc[0, 0] = pd.NA
    return frame


REFUSED = {
    "masked": (np.ma.masked_greater(X, 1.0), Y, "masked entries.*filled"),
    "masked labels": (X, np.ma.masked_equal(Y, 0), "y is a masked array"),
    "long": (X.astype(np.longdouble) * np.longdouble("1e4000"), Y, "beyond the range of float64"),
    "huge integers": (np.where(X > 1, 10**400, X.astype(object)), Y, "beyond the range of float64"),
    "text": (X.astype(str), Y, r"X is an array of text: use X.astype\(float\)"),
    "classes": (np.zeros((12_000, 1)), np.arange(12_000) % 6000, "6000 classes.*at most 5000.*regressor"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_one_sentence(case):
    rows, y, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence) as caught:
        PILAEClassifier().fit(rows, y)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rows", [missing(), missing().to_numpy()], ids=["frame", "array"])
def test_na_among_objects_is_a_gap(rows):
    gaps = X.copy()
    gaps[0, 0] = np.nan
    model = clone(RIDGE).fit(rows, Y)
    close(model.decision_function(rows), clone(RIDGE).fit(gaps, Y).decision_function(gaps), **rounding(model))
    with pytest.raises(ValueError, match="X contains NaN, which StackedPILAE does not take"):
        StackedPILAE(width=[2]).fit(rows)


def test_categories_that_are_numbers_are_numbers_to_models_without_categories():
    whole = np.rint(X)
    frame = pd.DataFrame(whole).astype("category")
    model = PILRegressor().fit(frame, T)
    close(model.predict(frame), PILRegressor().fit(whole, T).predict(whole), **interpolation(model, whole))


def test_nothing_masked_is_an_array_as_any_other():
    masked = np.ma.masked_array(X, np.zeros(X.shape, bool))
    np.testing.assert_array_equal(RIDGE.fit(masked, Y).decision_function(masked), RIDGE.fit(X, Y).decision_function(X))


def test_polars():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(X, schema=list("abcdef"))
    model = PILAEClassifier(depth=0, head="ridge").fit(frame, pl.Series(Y))
    assert model.feature_names_in_.tolist() == list("abcdef")
    np.testing.assert_array_equal(model.predict(frame), RIDGE.set_params(ridge="auto").fit(X, Y).predict(X))
    RIDGE.set_params(ridge=1e-2)


def test_byte_order_does_not_change_the_dtype():
    assert PILAutoencoder().fit(X.astype(">f4")).network_.dtype == "float32"
    images = np.random.default_rng(0).random((20, 5, 5))
    plain = ConvPILAE(patch=2, filters=3, pool=1).fit(images)
    swapped = ConvPILAE(patch=2, filters=3, pool=1).fit(images.astype(">f8"))
    np.testing.assert_array_equal(swapped.transform(images), plain.transform(images))


def test_pixels_of_absurd_size_are_refused():
    images = np.random.default_rng(0).random((20, 5, 5))
    model = ConvPILAE(patch=2, filters=3, pool=1)
    for size in (1e100, 1e-100):
        with pytest.raises(ValueError, match="The largest pixel is"):
            model.fit(size * images)
    with pytest.raises(ValueError, match="The largest pixel is"):
        model.fit(images).transform(1e100 * images)


def test_targets_are_checked_column_by_column_and_in_the_dtype_of_the_fit():
    with pytest.raises(ValueError, match="rescale y"):
        PILAERegressor(depth=0).fit(X, np.c_[T, 1e-200 * T])
    with pytest.raises(ValueError, match="float32 takes"):
        PILAERegressor(depth=0).fit(X.astype(np.float32), 1e20 * T)
    source = scan_blocks(lambda: iter([(X, 1e200 * T)]))
    with pytest.raises(ValueError, match="rescale y"):
        PILAERegressor(depth=0).fit(source)


def test_class_weights_of_absurd_size_are_refused():
    with pytest.raises(ValueError, match="between 1e-19 and 1e19"):
        PILAEClassifier(class_weight={0: 1e300, 1: 1.0, 2: 1.0}).fit(X, Y)


@pytest.mark.parametrize(
    "model",
    [PILAEClassifier(depth=1, layer=PILAutoencoder(activation="relu")), PILAEClassifier(depth=0, dtype="float32")],
)
def test_rows_of_weight_zero_may_hold_anything(model):
    rows, weight = np.r_[X, np.full((1, 6), 1e300)], np.r_[np.ones(60), 0.0]
    wanted, known = model.fit(X, Y).decision_function(X), rounding(model)
    found = model.fit(rows, np.r_[Y, 0], sample_weight=weight).decision_function(X)
    close(found, wanted, **known)
    assert np.isfinite(StackedPILAE().fit(rows, sample_weight=weight).reconstruction_error_)


def test_labels_of_two_kinds_and_weights_that_are_none():
    with pytest.raises(ValueError, match="labels of several kinds"):
        PILAEClassifier().fit(X, np.array(["a", 3] * 30, dtype=object))
    for weight in (["a"] * 60, [10**400] * 60):
        with pytest.raises(ValueError, match="finite numbers of at least 0"):
            PILAEClassifier().fit(X, Y, sample_weight=weight)


def test_dates_and_ragged_lists_are_refused():
    dates = np.array(["2020-01-01", "NaT"] * 30, dtype="datetime64[D]")[:, None]
    with pytest.raises(ValueError, match="turn dates and times into numbers"):
        PILAEClassifier().fit(dates, Y)
    with pytest.raises(ValueError, match="rows of different lengths"):
        PILAEClassifier().fit([[1.0, 2.0], [3.0]], [0, 1])


def test_a_report_on_rows_under_a_gauge():
    model = PILAEClassifier(depth=1, head=SHLN(width=5)).fit(far(900), Y)
    assert model.report(far(900), Y).summary["test"] is not None
