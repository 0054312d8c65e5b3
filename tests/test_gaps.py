"""Gaps (NaN): filled with the mean, flagged where they say something, the same from any blocks of rows."""

import warnings
from functools import partial

import dask.array as da
import numpy as np
import onnxruntime
import pandas as pd
import pytest
import scipy.sparse
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

import pilae
from helpers import close, cuts, evaluation, rounding, searched
from pilae import SHLN, PILAEClassifier, PILAERegressor, PILClassifier, StackedPILAE, scan_blocks, scan_parquet
from pilae._base.warn import StrangeRows

N = 400


def table(seed=0):
    """Rows with gaps, and targets. Gaps of column 1 are at random, those of columns 2 and 3 tell of large targets and
    are in the same rows, column 4 has two."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, 5)) * [1, 2, 3, 4, 5] + [0, 10, 0, 0, 100]
    z = X[:, 0] + np.sin(X[:, 1]) + 0.3 * rng.standard_normal(N)
    X[rng.random(N) < 0.2, 1] = np.nan
    X[np.ix_(z > 1, [2, 3])] = np.nan
    X[5:7, 4] = np.nan
    return X, z


X, Z = table()
Y = (Z > 0).astype(int)
SMALL = {"depth": 0, "head": SHLN(width=30)}
RIDGE = partial(PILAERegressor, depth=0, head="ridge", input_scaling="standard", ridge=1e-2)


def gaps_of(model):
    return model.fitted_.columns.intake


def test_means_fill_and_only_telling_gaps_are_flagged():
    for model in (PILAEClassifier(**SMALL).fit(X, Y), PILAERegressor(**SMALL).fit(X, Z)):
        assert gaps_of(model).flagged.tolist() == [2]  # column 3 has its gaps in the same rows
        close(gaps_of(model).fill, np.nanmean(X, axis=0), condition=2.0**21)  # they have 30 bits of 52
        assert model.n_features_in_ == 5
        assert model.feature_importances_.shape == (5,)
        close(model.feature_importances_.sum(), 1.0, terms=5)


def test_it_is_the_network_on_filled_columns_and_flags():
    model = PILAERegressor(**SMALL).fit(X, Z)
    filled = SimpleImputer().fit_transform(X)
    by_hand = PILAERegressor(**SMALL).fit(gaps_of(model)(X), Z)
    close(gaps_of(model)(X)[:, :5], filled, condition=1e6)  # means are rounded to 30 bits
    np.testing.assert_array_equal(gaps_of(model)(X)[:, 5], np.isnan(X[:, 2]))
    np.testing.assert_array_equal(model.predict(X), by_hand.predict(gaps_of(model)(X)))
    assert model.loo_score_ == by_hand.loo_score_
    close(model.feature_importances_[2], by_hand.feature_importances_[[2, 5]].sum(), terms=5)


def test_a_flag_helps_where_gaps_tell():
    flagged, plain = (PILAERegressor(depth=0, head="ridge").fit(x, Z) for x in (X, SimpleImputer().fit_transform(X)))
    assert flagged.loo_score_ > plain.loo_score_ + 0.02


@pytest.mark.parametrize("weighted", [False, True])
def test_leaving_out_by_hand_agrees_with_the_sums(weighted):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 40))
    X[rng.random((60, 40)) < 0.2] = np.nan
    z = rng.standard_normal(60)
    w = rng.random(60) if weighted else np.ones(60)  # below 1 a row goes whole
    flagged = []
    for j in range(40):
        missing, errors = np.isnan(X[:, j]), np.zeros(2)
        for i in range(60):
            others = np.arange(60) != i
            alike = others & (missing == missing[i])
            for k, rows in enumerate((others, alike)):
                errors[k] += w[i] * (z[i] - np.average(z[rows], weights=w[rows])) ** 2
        flagged += [j] if errors[1] < errors[0] else []
    found = gaps_of(PILAERegressor(depth=0, head="ridge").fit(X, z, sample_weight=w)).flagged.tolist()
    assert 0 < len(flagged) < 20
    # one mean leverage stands for those of all rows of a group, which differ where weights do
    assert len({*found} ^ {*flagged}) <= (2 if weighted else 0)


def test_any_blocks_give_the_model_of_the_array(tmp_path):
    expected = PILAEClassifier(random_state=0).fit(X, Y)
    known = searched(expected)
    parts = cuts(N, 5, np.random.default_rng(0))
    frame = pd.DataFrame(X, columns=list("abcde")).assign(y=Y)
    frame.to_parquet(tmp_path / "rows.parquet")
    order = np.random.default_rng(1).permutation(N)
    models = {
        "blocks": PILAEClassifier(random_state=0).fit(scan_blocks([(X[part], Y[part]) for part in parts])),
        "another order": PILAEClassifier(random_state=0, block_rows=37).fit(X[order], Y[order]),
        "file": PILAEClassifier(random_state=0).fit(scan_parquet(tmp_path / "rows.parquet", "y")),
        "dask": PILAEClassifier(random_state=0).fit(da.from_array(X, chunks=(90, 5)), da.from_array(Y, chunks=90)),
        "sparse": PILAEClassifier(random_state=0).fit(scipy.sparse.csr_array(X), Y),
    }
    for model in models.values():
        np.testing.assert_array_equal(gaps_of(model).fill, gaps_of(expected).fill)
        np.testing.assert_array_equal(gaps_of(model).flagged, gaps_of(expected).flagged)
        rows = frame[list("abcde")] if model is models["file"] else X
        close(model.decision_function(rows), expected.decision_function(X), **known)
    lazy = expected.predict_proba(da.from_array(X, chunks=(90, 5)))
    close(lazy.compute(), expected.predict_proba(X), **rounding(expected))
    streamed = expected.predict_proba(scan_blocks([X[part] for part in parts]))
    close(streamed, expected.predict_proba(X), **rounding(expected))


def test_gaps_that_come_late_in_a_stream_are_learnt_from():
    order = np.argsort(np.isnan(X).any(axis=1), kind="stable")  # the first blocks have none
    blocks = [(X[part], Z[part]) for part in np.array_split(order, 8)]
    model = PILAERegressor(**SMALL).fit(scan_blocks(blocks))
    expected = PILAERegressor(**SMALL).fit(X, Z)
    close(model.predict(X), expected.predict(X), **rounding(expected))


def test_rows_come_and_go():
    model = PILAERegressor(**SMALL).fit(X[:300], Z[:300])
    whole = model.predict(X)
    model.partial_fit(X[300:], Z[300:])
    assert np.abs(model.predict(X) - whole).max() > 1e-3
    model.forget(X[300:], Z[300:])
    close(model.predict(X), whole, **rounding(model))
    fork = model.fork().partial_fit(scan_blocks([(X[300:], Z[300:])]))
    merged = model.merge(fork).predict(X)
    one = PILAERegressor(**SMALL).fit(X[:300], Z[:300]).partial_fit(X[300:], Z[300:])
    close(merged, one.predict(X), **rounding(one))


def test_models_whose_gaps_are_filled_otherwise_are_not_merged():
    other = X.copy()
    other[np.isnan(X[:, 2]), 2] = 0.0
    other[:, 3] = X[:, 3]
    a, b = (PILAERegressor(**SMALL).fit(rows, Z) for rows in (X, other))
    with pytest.raises(ValueError, match="another network"):
        a.merge(b)


@pytest.mark.parametrize("model", [PILAEClassifier(random_state=0), PILAERegressor(depth=1), PILAEClassifier(**SMALL)])
def test_files_and_graphs(model, tmp_path):
    regression = isinstance(model, PILAERegressor)
    model.fit(X, Z if regression else Y)
    ask = "predict" if regression else "predict_proba"
    model.save(tmp_path / "m.pilae")
    np.testing.assert_array_equal(getattr(pilae.load(tmp_path / "m.pilae"), ask)(X), getattr(model, ask)(X))
    model.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    rows = X.astype(np.float32)
    answer = session.run(None, {"X": rows})[-1].reshape(getattr(model, ask)(X).shape)
    close(answer, getattr(model, ask)(rows.astype(float)), **evaluation(getattr(model, ask), X, "float32"))


def test_columns_that_had_no_gaps_are_filled_with_their_mean_later(tmp_path):
    whole = SimpleImputer().fit_transform(X)
    model = PILAEClassifier(**SMALL).fit(whole, Y)
    assert gaps_of(model).is_plain
    np.testing.assert_allclose(gaps_of(model).fill, whole.mean(axis=0))
    later, filled = whole[:5].copy(), whole[:5].copy()
    later[0, 1], filled[0, 1] = np.nan, gaps_of(model).fill[1]
    with pytest.warns(StrangeRows, match="Column 1 had no gap in fit and is now missing in 1 of 5 rows: answers"):
        np.testing.assert_array_equal(model.decision_function(later), model.decision_function(filled))
    later_still = scipy.sparse.csr_array(np.where(np.isnan(later), np.nan, 0))
    with pytest.warns(StrangeRows, match="Column 1 had no gap in fit"):
        model.predict(later_still)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PILAEClassifier(**SMALL).fit(X, Y).predict(X[::-1])  # these columns had gaps
    streamed = model.decision_function(scan_blocks([later]))
    np.testing.assert_array_equal(streamed, model.decision_function(filled))
    model.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    np.testing.assert_array_equal(*(session.run(None, {"X": x.astype(np.float32)})[1] for x in (later, filled)))


def test_other_libraries(library):
    model = PILAEClassifier(**SMALL).fit(library(X), Y)
    out = model.decision_function(library(X))
    assert library.owns(out)
    expected = PILAEClassifier(**SMALL).fit(X, Y)
    np.testing.assert_array_equal(gaps_of(model).flagged, [2])
    close(library.numpy(out), expected.decision_function(X), **rounding(expected))


@pytest.mark.parametrize("exponent", [-900, 900])
def test_columns_of_absurd_size(exponent):
    sizes = np.where(np.arange(5) < 3, 2.0**exponent, 1.0)
    model, expected = (RIDGE().fit(rows, Z) for rows in (X * sizes, X))
    assert gaps_of(model).flagged.tolist() == [2]
    close(model.predict(X * sizes), expected.predict(X), **rounding(expected))


def test_a_column_without_a_value_says_nothing():
    rows = np.c_[X, np.full(N, np.nan)]
    model = PILAERegressor(**SMALL).fit(rows, Z)
    assert model.feature_importances_[5] == 0
    assert gaps_of(model).flagged.tolist() == [2]


def test_integers_of_pandas_have_gaps():
    frame = pd.DataFrame({"a": X[:, 0], "b": pd.array(np.where(np.arange(N) % 3, np.arange(N), 0), dtype="Int64")})
    frame.loc[::5, "b"] = pd.NA
    model = PILAEClassifier(**SMALL).fit(frame, Y)
    plain = frame.astype({"b": "float64"})
    expected = PILAEClassifier(**SMALL).fit(plain, Y)
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(plain))


def test_tags_say_what_is_taken():
    for estimator, taken in ((PILAEClassifier(), True), (PILAERegressor(), True), (StackedPILAE(), False)):
        tags = estimator.__sklearn_tags__().input_tags
        assert (tags.allow_nan, tags.categorical, tags.string) == (taken, taken, taken)


def test_infinity_is_no_gap_and_others_refuse_gaps():
    bad = X.copy()
    bad[7, 0] = np.inf
    for rows in (bad, scan_blocks([(bad, Y)])):
        with pytest.raises(ValueError, match="infinit"):
            PILAEClassifier().fit(rows, None if rows is not bad else Y)
    for model in (StackedPILAE(), PILClassifier()):
        with pytest.raises(ValueError, match="NaN"):
            model.fit(X, Y)
        assert not model.__sklearn_tags__().input_tags.allow_nan
    assert PILAEClassifier().__sklearn_tags__().input_tags.allow_nan


def test_gaps_under_a_robust_loss_and_a_report():
    z = Z.copy()
    z[::50] += 30
    model = PILAERegressor(loss="robust", **SMALL).fit(X, z)
    assert model.row_weights_[::50].max() < 0.1
    assert model.report(X, Z).summary["training"]["columns"] == 5


def test_scaled_by_a_pipeline_first():
    scaled = StandardScaler().fit_transform(X)
    assert gaps_of(PILAERegressor(**SMALL).fit(scaled, Z)).flagged.tolist() == [2]


@pytest.mark.parametrize("power", [-200, 200])
def test_numbers_that_float32_does_not_hold_fill_gaps_too(power):
    plain, far = (RIDGE(dtype="float32").fit(x, Z) for x in (X, np.ldexp(X, power)))
    np.testing.assert_array_equal(gaps_of(far).fill, np.ldexp(gaps_of(plain).fill, power))
    close(far.predict(np.ldexp(X, power)), plain.predict(X), **evaluation(plain.predict, X, "float32"))
