"""Bad input: one clear sentence, and an estimator as it was."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

from helpers import blobs
from pilae import (
    SHLN,
    ConvPILAE,
    PILAEClassifier,
    PILAERegressor,
    PILAutoencoder,
    PILClassifier,
    StackedPILAE,
    scan_blocks,
)
from pilae._data.check import check_finite

X, Y = blobs(60)

MIXED = pd.DataFrame(
    {
        "a": X[:, 0],
        "category": pd.Categorical.from_codes(Y, ["u", "v", "w"]),
        "date": pd.date_range("2020-01-01", periods=60),
        "text": [f"word {k}" for k in range(60)],
    }
)


def bad(value):
    B = X.copy()
    B[7, 2] = value
    return B


CASES = {
    "nan": (StackedPILAE(), bad(np.nan), Y, "X contains NaN.*SimpleImputer"),
    "inf": (PILAEClassifier(), bad(np.inf), Y, "X contains infinity.*replace it by NaN"),
    "infinity in layers": (StackedPILAE(), bad(np.inf), Y, "X contains infinity.*SimpleImputer"),
    "sparse nan": (StackedPILAE(), scipy.sparse.csr_array(bad(np.nan)), Y, "X contains NaN.*SimpleImputer"),
    "nan, basic": (PILClassifier(), bad(np.nan), Y, "X contains NaN"),
    "nan target": (PILAERegressor(), X, np.where(Y == 0, np.nan, 1.0), "y contains NaN.*leave those rows out"),
    "single target": (PILAERegressor(), X, 3.0, "one target for each row"),
    "single label": (PILAEClassifier(), X, "a", "one target for each row"),
    "complex": (PILAEClassifier(), X + 1j, Y, "Complex data not supported: give the real"),
    "one class": (PILAEClassifier(), X, np.zeros(60), "one class only .* give the first rows with the names of all"),
    "one class has weight": (PILAEClassifier(), X, Y, "two classes", {"sample_weight": (Y == 0).astype(float)}),
    "one row": (PILAEClassifier(), X[:1], Y[:1], r"X has 1 sample \(row\), and PILAEClassifier needs"),
    "equal rows": (PILAEClassifier(), np.ones((60, 3)), Y, "All rows of X are the same"),
    "all zero": (StackedPILAE(), np.zeros((60, 3)), None, "All rows of X are the same"),
    "too wide a layer": (PILAEClassifier(width=[70]), X, Y, "layer 1 asks for 70 neurons, but only 60 distinct rows"),
    "too wide a head": (PILAEClassifier(depth=0, head=SHLN(width=61)), X, Y, r"SHLN\(width=...\) asks for 61 neurons"),
    "negative ridge": (PILAEClassifier(ridge=-1), X, Y, "'ridge' parameter of PILAEClassifier must be .*Got -1"),
    "unknown ridge": (PILAEClassifier(ridge="big"), X, Y, "'auto', 'guo2003', or a number"),
    "unknown activation": (
        PILAEClassifier(layer=PILAutoencoder(activation="step")),
        X,
        Y,
        "one of 'sigmoid', 'tanh'.*Got 'step'",
    ),
    "unknown head": (PILAEClassifier(head="svm"), X, Y, "'shln', 'ridge', 'softmax'"),
    "head class": (PILAEClassifier(head=PILClassifier), X, Y, "a scikit-learn estimator"),
    "softmax regression": (PILAERegressor(head="softmax"), X, Y, "'head' parameter of PILAERegressor"),
    "unknown encoder": (PILAutoencoder(encoder="svd"), X, None, "'rows', 'truncated'"),
    "unknown anchors": (PILAutoencoder(anchors="best"), X, None, "'spread', 'first'"),
    "negative encoder ridge": (PILAutoencoder(encoder_ridge=-1e-3), X, None, "float\\('inf'\\) included"),
    "nan decoder ridge": (PILAutoencoder(decoder_ridge=np.nan), X, None, "'decoder_ridge' parameter"),
    "gain": (PILAutoencoder(gain=(4, 0)), X, None, "a pair of positive numbers"),
    "width zero": (StackedPILAE(width=0), X, None, "'width' parameter"),
    "width rule": (StackedPILAE(width=("rank", 2)), X, None, "a number from 0 to 1"),
    "several widths": (PILAutoencoder(width=[3, 2]), X, None, "one rule or one integer"),
    "depth against width": (StackedPILAE(width=[3, 2], depth=3), X, None, "a list fixes the depth"),
    "growth": (PILAEClassifier(growth="fast"), X, Y, "'growth' parameter"),
    "loo without output": (StackedPILAE(growth="loo"), X, None, "no output layer to leave rows out of"),
    "depth": (PILAEClassifier(depth=-1), X, Y, "'depth' parameter"),
    "bool as a number": (PILAEClassifier(head=SHLN(width=True)), X, Y, "an integer of at least 1"),
    "scaling": (PILAEClassifier(input_scaling="minmax"), X, Y, "'auto', 'none', 'standard'"),
    "dtype": (PILAEClassifier(dtype="float16"), X, Y, "'dtype' parameter"),
    "block rows": (PILAEClassifier(block_rows=0), X, Y, "'block_rows' parameter"),
    "random state": (PILAEClassifier(random_state=-1), X, Y, "'random_state' must be"),
    "negative class weight": (PILAEClassifier(class_weight={0: -1}), X, Y, "finite weights of at least 0"),
    "nan class weight": (PILAEClassifier(class_weight={0: np.nan}), X, Y, "finite weights of at least 0"),
    "no class weight": (PILAEClassifier(class_weight={0: 0, 1: 0, 2: 0}), X, Y, "not all of them 0"),
    "softmax with labels": (PILAEClassifier(head="softmax"), X, np.eye(3)[Y], "takes one label a row"),
    "no such device": (PILAEClassifier(device="cuda:99"), X, Y, "device='cuda:99' cannot be used here"),
    "statistics": (PILAEClassifier(keep_statistics="x"), X, Y, "True or False"),
    "statistics, softmax": (PILAEClassifier(keep_statistics="x", head="softmax"), X, Y, "True or False"),
    "a number for a flag": (PILAEClassifier(head=SHLN(direct_links=1)), X, Y, "must be 'auto', True or False. Got 1"),
    "another": (PILAEClassifier(skip=1), X, Y, "must be 'auto', True or False. Got 1"),
    "word for a flag": (ConvPILAE(both_signs="yes"), X, Y, "must be True or False. Got 'yes'"),
    "one row counts": (PILAERegressor(), X, X[:, 0], "nothing to learn", {"sample_weight": np.eye(60)[3]}),
    "class weight": (PILAEClassifier(class_weight="even"), X, Y, "None, 'balanced' or a dict"),
    "object array": (PILAEClassifier(), np.array([["a", "b"]] * 60, dtype=object), Y, "X holds text .*OneHotEncoder"),
    "text targets": (PILAERegressor(), X, np.array(list("abc"))[Y], "use PILAEClassifier where these are classes"),
    "text targets, pandas": (PILAERegressor(), X, pd.Series(list("abc" * 20), dtype="category"), "use PILAEClassifier"),
    "date targets": (PILAERegressor(), X, Y.astype("datetime64[D]"), "y holds dates or times"),
    "other head": (PILAERegressor(head="foo"), X, Y, r"estimator such as sklearn\.ensemble\.RandomForestRegressor"),
    "path": (PILAEClassifier(), "a.csv", None, r"pilae\.scan_csv\('a\.csv', target=\.\.\.\)"),
    "path of parquet": (PILAEClassifier(), Path("a.pq"), Y, r"pilae\.scan_parquet\('a\.pq'"),
    "data loader": (PILAEClassifier(), DataLoader(torch.asarray(X), 20), Y, r"pass pilae\.scan_blocks\(X\)"),
    "data set": (PILAEClassifier(), TensorDataset(torch.asarray(X)), Y, r"X is a TensorDataset.*takes rows"),
    "category column": (StackedPILAE(), MIXED[["a", "category"]], None, "Column 'category' of X holds categories"),
    "date column": (StackedPILAE(), MIXED[["date", "a"]], None, "Column 'date' of X holds dates"),
    "text column": (PILClassifier(), MIXED, Y, "Column 'category' of X holds categories, 'date', 'text' no numbers"),
    "short y": (PILAEClassifier(), X, Y[:-1], "X has 60 rows but y has 59"),
    "short y, regression": (PILAERegressor(), X, Y[:-1], "X has 60 rows but y has 59"),
    "no y": (PILAEClassifier(), X, None, "requires y to be passed"),
    "continuous labels": (PILAEClassifier(), X, X[:, 0], "Unknown label type"),
    "several class columns": (PILAEClassifier(), X, np.stack([Y, Y], 1), "MultiOutputClassifier"),
    "short weights": (PILAEClassifier(), X, Y, "one number a row", {"sample_weight": np.ones(5)}),
    "negative weights": (PILAEClassifier(), X, Y, "at least 0", {"sample_weight": -np.ones(60)}),
    "zero weights": (PILAEClassifier(), X, Y, "zero on every row", {"sample_weight": np.zeros(60)}),
    "many rows for PIL": (PILClassifier(), np.zeros((10_001, 1)), np.arange(10_001) % 2, "at most 10000"),
    "one-dimensional X": (PILAEClassifier(), X[:, 0], Y, "Expected 2D array"),
    "no columns": (PILAEClassifier(), X[:, :0], Y, "0 feature"),
}


@pytest.mark.parametrize("case", CASES)
def test_one_sentence_and_nothing_half_fitted(case):
    estimator, X, y, sentence, *rest = CASES[case]
    before = dict(vars(estimator))
    with pytest.raises(ValueError, match=sentence) as caught:
        estimator.fit(X, y, **(rest[0] if rest else {}))
    assert vars(estimator) == before
    # scikit-learn's own sentence about dimensions shows the array below it
    assert "\n" not in str(caught.value).split("Expected 2D array")[0]


def test_a_failed_fit_leaves_a_fitted_model_as_it_was():
    model = PILAEClassifier(depth=1).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(ValueError, match="infinity"):
        model.fit(bad(np.inf)[:, :3], Y)
    np.testing.assert_array_equal(model.predict_proba(X), before)
    assert model.n_features_in_ == 6


def test_flags_of_numpy_are_flags():
    true = np.True_
    StackedPILAE(width=[3], layer=PILAutoencoder(tied=true)).fit(X)
    PILAEClassifier(
        depth=1, skip=true, keep_statistics=true, layer=PILAutoencoder(tied=true), head=SHLN(width=5, direct_links=true)
    ).fit(X, Y)
    ConvPILAE(patch=2, pool=1, encoder_ridge=1, contrast=None, mirror=true, depth=1, tied=true, both_signs=true).fit(X)
    model = PILAEClassifier(depth=0, head="ridge", verbose=np.False_).fit(X, Y)
    assert model.partial_fit(X, Y, current=true, test_first=true).stream_.count == len(X)
    model.partial_fit(X, Y, test_first=np.False_)
    assert model.stream_.count == len(X)


@pytest.mark.parametrize("method", ["partial_fit", "forget", "recalibrate"])
def test_updates_speak_of_themselves(method):
    model = PILAERegressor(depth=0, head="ridge").fit(X, X[:, 0])
    with pytest.raises(ValueError, match=rf"Inputs passed to PILAERegressor\.{method}\(\) must use the same namespace"):
        getattr(model, method)(torch.asarray(X), X[:, 0])


def test_warnings_point_at_the_line_that_called():
    for model in (
        PILAEClassifier(depth=0, head=SHLN(width="formula")),
        make_pipeline(StandardScaler(), PILAEClassifier(depth=0, head=SHLN(width="formula"))),
        GridSearchCV(PILAEClassifier(depth=0, head=SHLN(width="formula")), {"ridge": [1e-3]}, cv=2),
    ):
        with pytest.warns(UserWarning, match=r"SHLN\(width='formula'\)") as caught:
            model.fit(X, Y)
        assert {one.filename for one in caught} == {__file__}
    with pytest.warns(DataConversionWarning, match="A column-vector y was passed") as caught:
        PILAEClassifier(depth=0, head="ridge").fit(X, Y[:, None])
    assert [one.filename for one in caught] == [__file__]
    with pytest.warns(ConvergenceWarning, match="The rank reached") as caught:
        PILClassifier(activation="linear").fit(X, Y)
    assert caught[0].filename == __file__


def test_interruption_leaves_the_estimator_as_it_was(monkeypatch):
    model = PILAEClassifier(depth=1)

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("pilae._search.builder.fit_output", interrupt)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert vars(model) == before


def test_predict_with_other_columns():
    model = PILAEClassifier().fit(pd.DataFrame(X, columns=list("abcdef")), Y)
    with pytest.raises(ValueError, match="X has 5 features, but PILAEClassifier is expecting 6"):
        PILAEClassifier().fit(X, Y).predict(X[:, :5])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(pd.DataFrame(X, columns=list("abcdeg")))
    with pytest.raises(ValueError, match="from 0 to"):
        StackedPILAE(width=[3]).fit(X).transform(X, layer=2)
    with pytest.raises(ValueError, match="expects features of shape"):
        StackedPILAE(width=[3]).fit(X).inverse_transform(X)


def test_targets_of_one_value_are_said():
    with pytest.warns(
        UserWarning, match=r"y is 1\.5 in every row: there is nothing to learn, and no score says anything"
    ):
        model = PILAERegressor(depth=0, head="ridge").fit(X, np.full(60, 1.5))
    np.testing.assert_allclose(model.predict(X), 1.5)


def test_constant_columns_are_fine():
    constant = np.c_[X, np.ones(60), np.zeros(60)]
    assert PILAEClassifier().fit(constant, Y).score(constant, Y) > 0.8
    assert StackedPILAE(width=[3]).fit(constant).transform(constant).shape == (60, 3)


def test_a_large_finite_sum_is_not_infinity():
    huge = np.full((100, 2), 1e307)
    with np.errstate(over="ignore"):
        assert np.isinf(huge.sum())
    check_finite(huge, "X", "")
    with pytest.raises(ValueError, match="infinity"):
        check_finite(np.r_[huge, [[np.inf, 0.0]]], "X", "")


def test_too_many_columns_names_the_way_out():
    wide = scipy.sparse.csr_array(([1.0, 1.0], ([0, 1], [0, 1])), shape=(30_000, 25_000))
    with pytest.raises(ValueError, match=r"25000 columns.*TruncatedSVD"):
        StackedPILAE(width=[2]).fit(wide)


def test_sparse_indices_beyond_the_shape_are_refused():
    for index in (10**6, -5):
        torn = scipy.sparse.csr_matrix(X)
        torn.indices[3] = index
        with pytest.raises(ValueError, match="parts do not fit together"):
            PILAEClassifier(depth=0).fit(torn, Y)


@pytest.mark.parametrize("wrong", [None, 3.0, {"a": 1}, "abc"])
def test_what_is_no_table_is_refused_in_one_line(wrong):
    with pytest.raises(ValueError, match=r"^[^\n]+$"):
        PILAEClassifier().fit(wrong, Y)


@pytest.mark.parametrize(("gap", "word"), [(np.nan, "NaN"), (pd.NA, "NaN"), (None, "None")])
def test_a_gap_among_labels_is_named(gap, word):
    with pytest.raises(ValueError, match=f"y holds {word}, which is no label: leave those rows out"):
        PILAEClassifier().fit(X, pd.Series(["a", gap, "b"] * 20, dtype=object))


@pytest.mark.parametrize("first", [None, "a"])
def test_a_missing_label_is_named(first):
    labels = np.array([first, None, "b"] * 20, dtype=object)
    with pytest.raises(ValueError, match="y holds None"):
        PILAEClassifier().fit(X, labels)


def test_all_columns_that_are_missing_are_named():
    model = PILAEClassifier(depth=0).fit(MIXED[["a"]].assign(b=X[:, 1]), Y)
    with pytest.raises(ValueError, match="it lacks 'a', 'b'"):
        model.predict(scan_blocks([pd.DataFrame({"c": X[:, 2]})]))
