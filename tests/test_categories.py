"""Tables of mixed columns, and codes in arrays: categories, truth values, dates, durations."""

import datetime
import warnings

import dask.array as da
import dask.dataframe as dd
import numpy as np
import onnxruntime
import pandas as pd
import polars as pl
import pytest
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import OneHotEncoder

import pilae
from helpers import close, cuts, evaluation, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor, scan_blocks, scan_parquet
from pilae._data.categories import MOST_CATEGORIES, CategorySums
from pilae._data.rows import Block
from pilae._data.tables import Table

N = 400
RNG = np.random.default_rng(0)
DAYS = np.datetime64("1990-01-01") + RNG.integers(0, 9000, N).astype("timedelta64[D]")
FRAME = pd.DataFrame(
    {
        "size": RNG.uniform(40, 200, N),
        "town": RNG.choice(["Ulm", "Aachen", "Wismar"], N),
        "floor": pd.Categorical(RNG.choice(["low", "high"], N), categories=["low", "middle", "high"], ordered=True),
        "new": RNG.random(N) < 0.3,
        "lift": pd.array(RNG.choice([True, False, None], N), dtype="boolean"),
        "built": pd.Series(DAYS),
        "sold": pd.Series(DAYS + np.timedelta64(8, "h") * RNG.integers(0, 3, N)).dt.tz_localize("UTC"),
        "wait": pd.to_timedelta(RNG.integers(0, 5000, N), unit="s"),
        "code": RNG.integers(0, 5, N),
    }
)
PRICE = (
    FRAME["size"]
    + 90 * (FRAME["town"] == "Ulm")
    + 40 * (FRAME["floor"] == "high")
    + 50 * (FRAME["code"] == 3)
    + FRAME["built"].dt.month * 5
    + RNG.normal(0, 5, N)
).to_numpy()
KIND = np.where(np.median(PRICE) < PRICE, "dear", "cheap")
RIDGE = {"depth": 0, "head": "ridge"}
SMALL = {"depth": 0, "head": SHLN(width=30)}


def test_a_table_goes_straight_in():
    model = PILAERegressor(random_state=0, categorical_features=["code"]).fit(FRAME[:300], PRICE[:300])
    assert model.score(FRAME[300:], PRICE[300:]) > 0.97
    assert model.n_features_in_ == 9
    assert model.feature_names_in_.tolist() == list(FRAME.columns)
    assert model.feature_importances_.shape == (9,)
    close(model.feature_importances_.sum(), 1.0, terms=9)
    assert model.get_feature_names_out()[0] == "pilaeregressor0"
    classifier = PILAEClassifier(random_state=0).fit(FRAME[:300], KIND[:300])
    assert classifier.score(FRAME[300:], KIND[300:]) > 0.8


def test_it_is_the_ridge_on_columns_made_by_hand():
    towns = [FRAME["town"] == town for town in ("Aachen", "Ulm", "Wismar")]
    by_hand = np.c_[FRAME["size"], np.eye(5)[FRAME["code"].to_numpy()], FRAME["new"], *towns]
    model = PILAERegressor(ridge=0.01, input_scaling="standard", categorical_features=["code"], **RIDGE)
    model.fit(FRAME[["size", "code", "new", "town"]], PRICE)
    twin = PILAERegressor(ridge=0.01, input_scaling="standard", **RIDGE).fit(by_hand.astype(float), PRICE)
    close(model.predict(FRAME[["size", "code", "new", "town"]]), twin.predict(by_hand.astype(float)), **rounding(twin))
    shares = twin.feature_importances_
    expected = [shares[0], shares[1:6].sum(), shares[6], shares[7:].sum()]
    close(model.feature_importances_, expected, **rounding(twin))


def test_dates_and_durations_are_numbers():
    table = Table.learnt(FRAME[["built", "sold", "wait"]])
    numbers = table(FRAME[["built", "sold", "wait"]])
    assert numbers.shape == (N, 5 + 6 + 1)
    built, sold = FRAME["built"].dt, FRAME["sold"].dt
    np.testing.assert_array_equal(numbers[:, 0], FRAME["built"].astype("datetime64[s]").astype(np.int64) / 86_400)
    np.testing.assert_array_equal(numbers[:, 1:5], np.c_[built.year, built.month, built.day, built.day_of_week])
    np.testing.assert_array_equal(numbers[:, 6:11], np.c_[sold.year, sold.month, sold.day, sold.day_of_week, sold.hour])
    np.testing.assert_array_equal(numbers[:, 11], FRAME["wait"].dt.total_seconds())
    early = pd.DataFrame({"built": [datetime.date(1899, 12, 31), datetime.date(1900, 1, 2), None]})
    expected = [[1899, 12, 31, 6], [1900, 1, 2, 1], [np.nan] * 4]
    np.testing.assert_array_equal(Table.learnt(early)(early)[:, 1:], expected)
    assert table.sources.tolist() == [0] * 5 + [1] * 6 + [2]


def test_written_dates_are_dates():
    written = FRAME.assign(built=FRAME["built"].astype(str))
    model = PILAERegressor(**SMALL).fit(written, PRICE)
    np.testing.assert_array_equal(model.predict(written), PILAERegressor(**SMALL).fit(FRAME, PRICE).predict(FRAME))
    np.testing.assert_array_equal(model.predict(FRAME), model.predict(written))
    unreadable, gap = written[:2].copy(), written[:2].copy()
    unreadable["built"], gap["built"] = ["soon", "2001-02-03"], [None, "2001-02-03"]
    with pytest.warns(
        UserWarning, match="1 value in column 'built' cannot be read as it was in fit: it counts as a gap"
    ):
        answer = model.predict(unreadable)
    with pytest.warns(UserWarning, match="Column 'built' had no gap in fit and is now missing in 1 of 2 rows"):
        np.testing.assert_array_equal(answer, model.predict(gap))


def test_few_dates_are_dates_and_numbers_are_no_years():
    frame = pd.DataFrame({"year": ["1975-01-01", "1976-01-01"] * 10, "zip": ["10001", "89231"] * 10, "a": range(20)})
    assert [column.kind for column in Table.learnt(frame).columns] == ["dates written out", "text", "numbers"]


def test_polars_gives_the_model_of_pandas():
    frame = pl.from_pandas(FRAME)
    assert frame["floor"].dtype in (pl.Categorical, pl.Enum)
    model, twin = PILAERegressor(**SMALL).fit(frame, PRICE), PILAERegressor(**SMALL).fit(FRAME, PRICE)
    np.testing.assert_array_equal(model.predict(frame), twin.predict(FRAME))
    np.testing.assert_array_equal(twin.predict(frame), twin.predict(FRAME))
    assert model.feature_names_in_.tolist() == list(FRAME.columns)


def test_rows_in_any_order_and_other_types_of_text():
    order = np.random.default_rng(1).permutation(N)
    expected = PILAERegressor(**SMALL).fit(FRAME, PRICE)
    model = PILAERegressor(**SMALL).fit(FRAME.iloc[order], PRICE[order])
    close(model.predict(FRAME), expected.predict(FRAME), **rounding(expected))
    for kind in ("category", "string", "object"):
        same = FRAME.assign(town=FRAME["town"].astype(kind))
        np.testing.assert_array_equal(PILAERegressor(**SMALL).fit(same, PRICE).predict(FRAME), expected.predict(FRAME))


def test_unknown_categories_are_zeros_and_counted():
    model = PILAERegressor(**RIDGE).fit(FRAME[["size", "town"]], PRICE)
    later = FRAME[["size", "town"]][:5].assign(town=["Bonn", "Ulm", "Bern", None, "Ulm"])
    with pytest.warns(UserWarning, match="2 values in column 'town' are categories that fit did not see") as caught:
        answer = model.predict(later)
    assert caught[0].filename == __file__
    rows = model.fitted_.columns.table(later)
    np.testing.assert_array_equal(model.fitted_.columns.intake(rows)[:, 1:].sum(axis=1), [0, 1, 0, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        close(model.predict(later.iloc[[1]]), answer[[1]], **rounding(model))


@pytest.mark.filterwarnings("ignore:Column:pilae._base.warn.StrangeRows")
def test_blanks_around_words_mean_nothing():
    padded = FRAME.assign(town=FRAME["town"].where(FRAME["new"], FRAME["town"] + " "), lift=None)
    plain = FRAME.assign(lift=None)
    expected = PILAERegressor(**SMALL).fit(plain, PRICE)
    for frame in (padded, padded.assign(town=padded["town"].astype("category")), pl.from_pandas(padded)):
        model = PILAERegressor(**SMALL).fit(frame, PRICE)
        np.testing.assert_array_equal(model.predict(frame), expected.predict(plain))
        assert model.fitted_.columns.table.columns[1].values.tolist() == ["Aachen", "Ulm", "Wismar"]
    blank = expected.predict(plain.assign(town="  "))
    np.testing.assert_array_equal(blank, expected.predict(plain.assign(town=None)))


def test_rare_categories_are_pooled():
    codes = np.repeat(np.arange(8.0), [50, 40, 2, 1, 1, 4, 1, 1])
    sums = CategorySums((0,))
    sums.add(Block(codes[:, None], None, None, 0))
    [found] = sums.found()
    assert found.numbers.tolist() == [0, 1, 3, 3, 3, 2, 3, 3]
    made = found(np.array([0.0, 3.0, 5.0, 99.0, np.nan]))
    np.testing.assert_array_equal(made.argmax(axis=1)[:3], [0, 3, 2])
    np.testing.assert_array_equal(made.sum(axis=1), [1, 1, 1, 0, 0])
    many = CategorySums((0,))
    many.add(Block(np.repeat(np.arange(200.0), 5)[:, None], None, None, 0))
    assert many.found()[0].width == MOST_CATEGORIES + 1


def test_intervals_are_categories(tmp_path):
    frame = FRAME[["size"]].assign(band=pd.cut(FRAME["size"], 4))
    model = PILAERegressor(**RIDGE).fit(frame, PRICE)
    model.save(tmp_path / "m.pilae")
    np.testing.assert_array_equal(pilae.load(tmp_path / "m.pilae").predict(frame), model.predict(frame))
    assert model.fitted_.columns.intake.width == 5


def test_gaps_in_categories_are_flagged_where_they_tell():
    frame = FRAME[["size", "town"]].copy()
    frame.loc[np.quantile(PRICE, 0.8) < PRICE, "town"] = None
    model = PILAERegressor(**RIDGE).fit(frame, PRICE)
    assert model.fitted_.columns.intake.flagged.tolist() == [1]


def test_codes_in_arrays_are_one_hot():
    X = FRAME[["size", "code"]].to_numpy(float)
    hot = np.c_[X[:, :1], OneHotEncoder(sparse_output=False).fit_transform(X[:, 1:])]
    settings = RIDGE | {"ridge": 0.01, "input_scaling": "standard"}
    twin = PILAERegressor(**settings).fit(hot, PRICE)
    for features in ([1], [False, True], np.array([1])):
        model = PILAERegressor(categorical_features=features, **settings).fit(X, PRICE)
        close(model.predict(X), twin.predict(hot), **rounding(twin))
    far = PRICE + 300 * (X[:, 1] == 1)
    search = GridSearchCV(PILAERegressor(**settings), {"categorical_features": [None, [1]]}, cv=3).fit(X, far)
    assert search.best_params_ == {"categorical_features": [1]}


def test_codes_from_any_source(tmp_path, library):
    X = FRAME[["size", "code"]].to_numpy(float)
    X[::9, 1] = np.nan
    settings = {"categorical_features": [1], **SMALL}
    expected = PILAERegressor(**settings).fit(X, PRICE)
    parts = cuts(N, 4, np.random.default_rng(0))
    pd.DataFrame(X, columns=["size", "code"]).assign(price=PRICE).to_parquet(tmp_path / "rows.parquet")
    by_name = PILAERegressor(**settings).set_params(categorical_features=["code"])
    streamed = by_name.fit(scan_parquet(tmp_path / "rows.parquet", "price"))
    models = [
        PILAERegressor(**settings).fit(scan_blocks([(X[part], PRICE[part]) for part in parts])),
        PILAERegressor(**settings).fit(da.from_array(X, chunks=(90, 2)), da.from_array(PRICE, chunks=90)),
    ]
    for model in models:
        close(model.predict(X), expected.predict(X), **rounding(expected))
    close(streamed.predict(scan_blocks([X])), expected.predict(X), **rounding(expected))
    model = PILAERegressor(**settings).fit(library(X), PRICE)
    close(library.numpy(model.predict(library(X))), expected.predict(X), **rounding(expected))


@pytest.mark.filterwarnings("ignore:Column:pilae._base.warn.StrangeRows")
def test_files_graphs_and_updates(tmp_path):
    model = PILAEClassifier(**SMALL).fit(FRAME, KIND)
    model.save(tmp_path / "m.pilae")
    again = pilae.load(tmp_path / "m.pilae")
    np.testing.assert_array_equal(again.predict_proba(FRAME), model.predict_proba(FRAME))
    before = model.decision_function(FRAME)
    model.partial_fit(FRAME[:50], KIND[:50]).forget(FRAME[:50], KIND[:50])
    close(model.decision_function(FRAME), before, **rounding(model))
    X = FRAME[["size", "code"]].to_numpy(np.float32)
    coded = PILAEClassifier(categorical_features=[1], **SMALL).fit(X.astype(float), KIND)
    coded.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "m.onnx"), providers=["CPUExecutionProvider"])
    rows = np.r_[X, [[100, np.nan]]].astype(np.float32)
    known = evaluation(lambda x: coded.predict_proba(np.c_[x[:, :1], rows[:, 1:]].astype(float)), rows, "float32")
    close(session.run(None, {"X": rows})[1], coded.predict_proba(rows.astype(float)), **known)


def test_tables_on_clusters_and_in_blocks():
    model = PILAEClassifier(**SMALL).fit(FRAME, KIND)
    lazy = dd.from_pandas(FRAME, npartitions=3)
    np.testing.assert_array_equal(model.predict(lazy).compute(), model.predict(FRAME))
    assert model.score(lazy, dd.from_pandas(pd.Series(KIND), npartitions=3)) == model.score(FRAME, KIND)
    kinds = dd.from_pandas(pd.Series(KIND), npartitions=3)
    there = PILAEClassifier(**SMALL).fit(lazy, kinds)
    close(there.decision_function(FRAME), model.decision_function(FRAME), **rounding(model))
    there.partial_fit(lazy, kinds).forget(FRAME, KIND)
    close(there.decision_function(FRAME), model.decision_function(FRAME), **rounding(model))
    with pytest.raises(ValueError, match=r"Column 'town' of X holds text.* on a cluster takes numbers only"):
        PILAEClassifier(categorical_features=None, **SMALL).fit(lazy, kinds)
    with pytest.raises(ValueError, match="it lacks 'town'"):
        model.predict(scan_blocks([FRAME[["size"]]]))


def test_models_of_other_categories_are_not_merged():
    other = FRAME.assign(town=FRAME["town"].replace("Ulm", "Uelzen"))
    a, b = PILAERegressor(**SMALL).fit(FRAME, PRICE), PILAERegressor(**SMALL).fit(other, PRICE)
    with pytest.raises(ValueError, match="another network"):
        a.merge(b)


def test_robust_loss_and_report():
    price = PRICE.copy()
    price[::40] += 5000
    model = PILAERegressor(loss="robust", **SMALL).fit(FRAME, price)
    assert model.row_weights_[::40].max() < 0.1
    assert model.report(FRAME, PRICE).summary["training"]["names"] == list(FRAME.columns)


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (FRAME.assign(o=[[1]] * N), "Column 'o' of X holds objects"),
        (FRAME.assign(size=np.inf), "X contains infinity"),
        (FRAME[:1], r"X has 1 sample \(row\), and PILAERegressor needs at least 2"),
        (FRAME.assign(o=pd.period_range("2020", periods=N, freq="D")), r"Column 'o' of X holds objects \(Period\)"),
        (FRAME[["size"]].assign(o=[[1]] * N), r"Column 'o' of X holds objects \(list\) that are neither numbers"),
        (pd.concat([FRAME[["size"]], FRAME], axis=1), "X has two columns 'size': give every column a name of its own"),
    ],
)
def test_what_cannot_be_read_is_said(frame, sentence):
    with pytest.raises(ValueError, match=sentence):
        PILAERegressor().fit(frame, PRICE[: len(frame)])


@pytest.mark.filterwarnings("ignore:Column:pilae._base.warn.StrangeRows")
def test_later_tables_must_be_alike():
    model = PILAERegressor(**RIDGE).fit(FRAME, PRICE)
    with pytest.raises(ValueError, match="Column 'size' of X held numbers in fit, and now holds text"):
        model.predict(FRAME.assign(size="large"))
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(FRAME.drop(columns="town"))
    with pytest.raises(ValueError, match="give a DataFrame of the same columns"):
        model.predict(FRAME.to_numpy())
    assert np.isfinite(model.predict(FRAME.assign(built=None, size=None))).all()


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        ("code", "must be None, 'from_dtype', or a list of columns"),
        ([9], "holds 9, but X has 9 columns"),
        (["kode"], "names 'kode', and X has no such column"),
        ([True], r"mask of shape \(1,\)"),
        (["built"], "names 'built', which holds dates and no categories"),
        (None, "Column 'town' of X holds text"),
    ],
)
def test_wrong_columns_of_categories(features, sentence):
    with pytest.raises(ValueError, match=sentence):
        PILAERegressor(categorical_features=features).fit(FRAME, PRICE)


def test_the_categories_of_a_column_weigh_as_much_as_one_column():
    model = PILAERegressor(**SMALL, input_scaling="standard").fit(FRAME[["size", "town"]], PRICE)
    scaling, town = model.network_.scaling, (FRAME["town"].to_numpy()[:, None] == ["Aachen", "Ulm", "Wismar"]) * 1.0
    expected = np.r_[1 / FRAME["size"].std(ddof=0), np.full(3, 1 / np.sqrt(town.var(axis=0).sum()))]
    close(scaling.inverse, expected, terms=N)


@pytest.mark.parametrize("times", ["datetime64[s]", "timedelta64[s]"])
def test_times_that_microseconds_do_not_hold_are_refused(times):
    """NumPy before 2.5 made other times of them, later ones end in an OverflowError."""
    far = pd.DataFrame({"when": np.array([2**52 - k for k in range(20)], dtype=times), "size": np.arange(20.0)})
    with pytest.raises(ValueError, match="more than 290,000 years away"):
        PILAERegressor().fit(far, np.arange(20.0))
    near = far.assign(when=np.array([2**31 + k * 86_400 for k in range(20)], dtype=times))
    assert np.isfinite(PILAERegressor().fit(near, np.arange(20.0)).predict(near)).all()
