"""The whole network: blocks, orders, heads, weights, labels."""

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris, load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler

from helpers import blobs, close, evaluation, rounding, searched
from pilae import SHLN, ConvPILAE, PILAEClassifier, PILAERegressor, PILAutoencoder, PILRegressor, StackedPILAE
from pilae._arrays import threads
from pilae._search import fit

DIGITS, LABELS = load_digits(return_X_y=True)


@pytest.mark.parametrize(
    "params",
    [
        {"width": [50, 40], "head": SHLN(width=300)},
        {"depth": 0, "head": SHLN(width=200)},
        {"width": [50], "head": "ridge"},
        {"depth": 0, "head": "ridge"},
        {"width": [50, 40], "layer": PILAutoencoder(encoder="truncated"), "head": SHLN(width=300)},
        {
            "width": [50, 40],
            "layer": PILAutoencoder(anchors="first", encoder_ridge=0.01),
            "head": SHLN(width=300, encoder_ridge=0.01),
        },
        {"width": [50], "head": "softmax"},
        {"growth": "rank", "max_depth": 2, "width": "rank", "head": SHLN(width=300)},
        {"width": [40], "input_scaling": "standard", "fit_rows": 500, "head": SHLN(width=300)},
        {"depth": 1, "layer": PILAutoencoder(activation="tanh"), "head": SHLN(activation="sigmoid", width=200)},
    ],
    ids=str,
)
def test_digits(params):
    X, X_test, y, y_test = train_test_split(DIGITS, LABELS, random_state=0)
    model = PILAEClassifier(**params).fit(X, y)
    assert model.score(X_test, y_test) > (0.9 if params.get("head") == "ridge" else 0.95)  # ridge: no hidden layer
    proba = model.predict_proba(X_test)
    close(proba.sum(1), np.ones(len(proba)), terms=10)
    np.testing.assert_array_equal(model.classes_[proba.argmax(1)], model.predict(X_test))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(model.predict_log_proba(X_test), np.log(proba))
    if "loo_score_" in vars(model):
        assert abs(model.loo_score_ - model.score(X_test, y_test)) < 0.025


@given(
    seed=st.integers(0, 2**20),
    block=st.integers(1, 200),
    depth=st.integers(0, 2),
    ridge=st.sampled_from(["auto", 1e-3]),
    weighted=st.booleans(),
)
def test_any_blocks_and_any_order_give_the_same_model(seed, block, depth, ridge, weighted):
    X, y = blobs(150, seed=seed)
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, 150).astype(float) if weighted else None
    order = rng.permutation(150)
    model = PILAEClassifier(
        depth=depth, ridge=ridge, layer=PILAutoencoder(encoder_ridge=1e-2), head=SHLN(width=30, encoder_ridge=1e-2)
    )
    whole, known = model.fit(X, y, sample_weight=w).decision_function(X), rounding(model)
    model.set_params(block_rows=block)
    shuffled = model.fit(X[order], y[order], sample_weight=None if w is None else w[order]).decision_function(X)
    close(shuffled, whole, **known)


def test_weights_are_repeated_rows_and_zero_is_absent():
    X, y = blobs(120)
    k = np.random.default_rng(0).integers(0, 4, 120)
    weighted = PILAEClassifier(depth=1, head=SHLN(width=20)).fit(X, y, sample_weight=k)
    repeated = PILAEClassifier(depth=1, head=SHLN(width=20)).fit(X.repeat(k, axis=0), y.repeat(k))
    close(weighted.predict_proba(X), repeated.predict_proba(X), **rounding(repeated))
    close(weighted.loo_score_, repeated.loo_score_, terms=360)


def test_primal_equals_dual_in_a_whole_network():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 60)), np.arange(40) % 2
    X[y == 1, :5] += 1
    dual = PILAEClassifier(width=[20], ridge=0.1, head=SHLN(width=10)).fit(X, y)
    primal = PILAEClassifier(width=[20], ridge=0.1, block_rows=7, head=SHLN(width=10)).fit(X, y)
    assert dual.layers_[0].route == "dual"
    assert primal.layers_[0].route == "cholesky"
    close(dual.decision_function(X), primal.decision_function(X), **rounding(primal))


def test_sparse_equals_dense():
    X = np.where(DIGITS > 8, DIGITS, 0)
    model = PILAEClassifier(width=[30], head=SHLN(width=100))
    dense = model.fit(X, LABELS).decision_function(X)
    for kind in (scipy.sparse.csr_array, scipy.sparse.csr_matrix, scipy.sparse.coo_array):
        close(model.fit(kind(X), LABELS).decision_function(kind(X)), dense, **rounding(model))


def test_float32_stays_float32_and_scores_the_same():
    X, X_test, y, y_test = train_test_split(DIGITS, LABELS, random_state=0)
    model = PILAEClassifier(width=[50, 40], head=SHLN(width=300))
    double = model.fit(X, y).score(X_test, y_test)
    single = model.fit(X.astype(np.float32), y)
    assert single.decision_function(X_test.astype(np.float32)).dtype == np.float32
    assert single.layers_[0].weights.dtype == np.float32
    assert abs(single.score(X_test.astype(np.float32), y_test) - double) < 0.01
    assert PILAEClassifier(depth=0, dtype="float32").fit(X, y).predict_proba(X).dtype == np.float32


def test_input_is_never_written_on():
    X, y = blobs()
    before = X.copy()
    X.flags.writeable = False
    PILAEClassifier(depth=1, input_scaling="standard").fit(X, y).predict(X)
    np.testing.assert_array_equal(X, before)


def test_integers_strings_and_booleans():
    X, y = load_iris(return_X_y=True)
    model = PILAEClassifier(depth=0).fit((X * 10).astype(np.uint8), np.array(["a", "b", "c"])[y])
    assert set(model.predict((X * 10).astype(np.uint8))) == {"a", "b", "c"}
    assert PILAEClassifier(depth=0).fit(X, y == 1).predict(X).dtype == bool


def test_two_classes_have_one_decision_column():
    X, y = blobs(classes=2)
    model = PILAEClassifier().fit(X, y)
    d = model.decision_function(X)
    assert d.shape == (200,)
    np.testing.assert_array_equal(model.predict(X), (d > 0).astype(int))
    np.testing.assert_array_equal(model.predict_proba(X)[:, 1] > 0.5, d > 0)


def test_multilabel():
    X, y = blobs(300)
    Y = np.stack([y == 0, X[:, 0] > X[:, 0].mean(), y != 1], axis=1).astype(int)
    model = PILAEClassifier(depth=1).fit(X, Y)
    assert model.predict(X).shape == (300, 3)
    assert model.score(X, Y) > 0.8
    assert model.predict_proba(X).shape == (300, 3)
    np.testing.assert_array_equal(model.predict_proba(X) > 0.5, model.predict(X) == 1)
    assert 0.7 < model.loo_score_ <= 1


def test_class_weight_moves_the_border():
    X, y = blobs(400, classes=2)
    X[y == 1] = 0.5 * X[y == 1] + 0.5 * X[y == 0]
    rare = np.r_[np.flatnonzero(y == 0), np.flatnonzero(y == 1)[:20]]
    X, y = X[rare], y[rare]
    recall = {
        weight: np.mean(PILAEClassifier(depth=0, class_weight=weight).fit(X, y).predict(X)[y == 1])
        for weight in (None, "balanced")
    }
    assert recall["balanced"] > recall[None]
    by_hand = {0: len(y) / (2 * 200), 1: len(y) / (2 * 20)}
    a = PILAEClassifier(depth=0, class_weight="balanced").fit(X, y)
    b = PILAEClassifier(depth=0, class_weight=by_hand).fit(X, y)
    close(a.decision_function(X), b.decision_function(X), **rounding(b))


def test_multi_output_regression_and_scale_of_targets():
    X, _ = blobs(300)
    Z = np.stack([1e6 * np.sin(X[:, 0]), 1e-6 * X[:, 1] ** 2], axis=1)
    model = PILAERegressor().fit(X, Z)
    assert model.predict(X).shape == (300, 2)
    assert model.score(X, Z) > 0.8
    assert PILAERegressor().fit(X, Z[:, 0]).predict(X).shape == (300,)


def test_ridge_head_on_the_input_is_ridge():
    X, y = load_diabetes(return_X_y=True)
    Xs = StandardScaler().fit_transform(X)
    model = PILAERegressor(depth=0, head="ridge", ridge=0.05).fit(X, y)
    close(model.predict(X), Ridge(alpha=0.05 * len(y)).fit(Xs, y).predict(Xs), **rounding(model))


def test_guo2003_is_equation_three():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(depth=0, head="ridge", ridge="guo2003").fit(X, y)
    Xs, n, d = StandardScaler().fit_transform(X), *X.shape
    first = Ridge(alpha=1e-6 * n).fit(Xs, y)
    residual = np.sum((y - first.predict(Xs)) ** 2)
    expected = d**2 * (1 + (d - 1) ** 2) * residual / (n * np.sum(first.coef_**2))
    close(model.ridge_, expected, condition=np.linalg.cond(Xs) ** 2, terms=n)


def test_other_heads():
    X, X_test, y, y_test = train_test_split(DIGITS, LABELS, random_state=0)
    model = PILAEClassifier(width=[50], head=KNeighborsClassifier(3)).fit(X, y)
    assert model.score(X_test, y_test) > 0.95
    np.testing.assert_array_equal(
        model.predict(X_test), KNeighborsClassifier(3).fit(model.transform(X), y).predict(model.transform(X_test))
    )
    assert not hasattr(model, "loo_score_")
    model.set_params(head__n_neighbors=1)
    assert model.fit(X, y).head_.estimator.n_neighbors == 1
    forest = PILAERegressor(width=[5], head=RandomForestRegressor(n_estimators=5, random_state=0))
    assert forest.fit(X[:, :10], X[:, 20]).predict(X_test[:, :10]).shape == (450,)
    string = PILAEClassifier(width=[50], head=LogisticRegression(max_iter=3000)).fit(X, np.array(list("abcdefghij"))[y])
    assert string.predict(X_test)[0] in "abcdefghij"


def test_the_structure_found_can_be_given():
    X, y = DIGITS[:900], LABELS[:900]
    found = PILAEClassifier(head=SHLN(metric="inputs")).fit(X, y)
    [row] = [row for row in found.search_ if row["chosen"]]
    given = PILAEClassifier(
        depth=row["depth"],
        input_scaling=row["input_scaling"],
        ridge=found.ridge_,
        head=SHLN(
            encoder_ridge=row["encoder_ridge"],
            anchors=row["neurons"],
            activation=row["activation"],
            direct_links=row["direct"],
            length=row["length"] or "auto",
            width=found.head_width_,
        ),
    )
    close(given.fit(X, y).decision_function(X), found.decision_function(X), **rounding(found))


def test_the_search_says_what_it_tried_and_why():
    model = PILAEClassifier().fit(DIGITS, LABELS)
    table = model.search_
    assert len(table) > 10
    [chosen] = [row for row in table if row["chosen"]]
    # the lowest loss, or within a hundredth of a standard error of it
    beside = [row["loss"] for row in table if row["round"] == chosen["round"]]
    assert chosen["loss"] <= min(beside) + 0.05 * chosen["standard_error"]
    assert {row["input_scaling"] for row in table} == {"none", "standard", "asinh", "pieces"}
    assert {row["neurons"] for row in table if row["head"] == "shln"} == {"rows", "pairs", "radial"}
    assert {row["head"] for row in table} == {"shln", "ridge"}
    assert max(row["depth"] for row in table) > chosen["depth"]  # one more layer was tried and did not help
    assert all(row["seconds"] > 0 for row in table)


def test_classes_are_compared_by_log_loss():
    few = PILAEClassifier(max_depth=0).fit(*load_iris(return_X_y=True))
    [chosen] = [row for row in few.search_ if row["chosen"]]
    assert 0 < chosen["loss"] < np.log(3)  # that of saying nothing
    assert all(row["loss"] != row["error"] for row in few.search_)
    assert chosen["loss"] <= min(row["loss"] for row in few.search_) + 0.05 * chosen["standard_error"]
    table = PILAERegressor(max_depth=0).fit(DIGITS[:300], LABELS[:300]).search_
    close([row["loss"] for row in table], [row["error"] for row in table], terms=len(DIGITS))


def test_what_is_given_is_not_searched():
    params = {
        "input_scaling": "standard",
        "max_depth": 1,
        "layer": PILAutoencoder(encoder_ridge=0.5),
        "head": SHLN(activation="tanh", encoder_ridge=0.5),
    }
    model = PILAEClassifier(**params).fit(DIGITS[:400], LABELS[:400])
    shln = [row for row in model.search_ if row["head"] == "shln"]
    assert {(row["encoder_ridge"], row["activation"], row["input_scaling"]) for row in shln} == {
        (0.5, "tanh", "standard")
    }
    assert PILAEClassifier(depth=1).fit(DIGITS[:400], LABELS[:400]).search_ == []
    assert all(row["head"] == "ridge" for row in PILAEClassifier(head="ridge").fit(DIGITS, LABELS).search_)


def test_the_width_path_is_kept():
    model = PILAEClassifier().fit(DIGITS, LABELS)
    path = model.width_path_
    errors = path.errors[model.ridge_]
    assert len(errors) >= model.head_width_
    # wide enough to be worth it: the error falls along the path
    assert errors[model.head_width_ - path.first] < 0.5 * errors[20]
    fixed = PILAEClassifier(head=SHLN(width=50)).fit(DIGITS, LABELS)
    assert fixed.head_width_ == 50
    assert not hasattr(fixed, "width_path_")


def test_depth_zero_is_a_limit_too():
    assert len(PILAEClassifier(max_depth=0).fit(DIGITS, LABELS).layers_) == 0


def test_dead_neurons_and_bad_scales_and_duplicates():
    X, y = blobs(150)
    X = np.c_[X, np.zeros(150), np.full(150, 7.0), X[:, 0], X[:, 1] * 1e8, X[:, 2] * 1e-8]
    X = np.r_[X, X[:30]]
    y = np.r_[y, y[:30]]
    for depth in (0, 1, 2):
        for activation in ("relu", "sigmoid"):
            model = PILAEClassifier(
                depth=depth,
                layer=PILAutoencoder(activation=activation, encoder_ridge=0.0),
                head=SHLN(encoder_ridge=0.0),
            ).fit(X, y)
            assert np.isfinite(model.decision_function(X)).all()
            assert model.score(X, y) > 0.7


def test_input_scale_does_not_matter():
    X, y = blobs(200)
    # "first": the hash of a row depends on its scale, and other rows would become neurons
    model = PILAEClassifier(depth=1, ridge=1e-3, layer=PILAutoencoder(anchors="first"), head=SHLN(width=30))
    reference = model.fit(X, y).decision_function(X)
    for factor in (2.0**-40, 2.0**40):
        close(model.fit(X * factor, y).decision_function(X * factor), reference, **rounding(model))


def test_random_state_changes_the_anchors_and_none_is_zero():
    X, y = blobs(200)
    a, b, c = (PILAEClassifier(depth=0, random_state=s).fit(X, y).decision_function(X) for s in (None, 0, 1))
    np.testing.assert_array_equal(a, b)
    assert not np.allclose(a, c)
    PILAEClassifier(random_state=np.random.RandomState(3)).fit(X, y)


def test_statistics_are_kept_or_dropped():
    X, y = blobs(100)
    assert PILAEClassifier(depth=0).fit(X, y).head_.output.moments.count == 100
    assert PILAEClassifier(depth=0, keep_statistics=False).fit(X, y).head_.output.moments is None


def test_progress_goes_to_standard_error_when_asked(capsys):
    X, y = blobs(100)
    PILAEClassifier(depth=1).fit(X, y)
    assert capsys.readouterr() == ("", "")
    PILAEClassifier(depth=1, verbose=1).fit(X, y)
    out, err = capsys.readouterr()
    assert out == ""
    assert "layer 1: decoder" in err


def test_progress_on_a_terminal_says_how_long_a_pass_will_take(monkeypatch):
    import io

    from pilae._base import progress as _progress

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    seconds = iter(range(100))
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: next(seconds))
    monkeypatch.setattr(_progress.sys, "stderr", Terminal())
    progress = _progress.Progress(1)
    for done in (0, 100, 200, 400):
        progress.update("output layer", done, 400)
    lines = _progress.sys.stderr.getvalue().split("\r\033[K")[1:]
    assert "left" not in lines[0]  # nothing is known yet
    assert lines[1].endswith("100 / 400 rows    2.0 s, 3 s left")
    assert lines[2].endswith("200 / 400 rows    3.0 s, 2 s left")
    assert "left" not in lines[3]


def test_random_labels_look_random_to_leave_one_out():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((1500, 5)), rng.integers(0, 2, 1500)
    model = PILAEClassifier().fit(X, y)
    # a coin over 1,500 rows, and the best of twenty candidates: a leak would be near 1
    assert abs(model.loo_score_ - 0.5) < 0.06


def test_the_widest_head_counts_distinct_rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))

    def widest(X):
        return PILAERegressor(depth=0, ridge=1e-3).fit(X, np.sin(X).sum(1)).width_path_.errors[1e-3].size

    assert widest(X) == widest(np.r_[X, X]) == 250
    assert abs(widest(rng.standard_normal((12_000, 3))) - 1800) < 60  # beyond 8,000 the count is an estimate


def test_a_new_fit_leaves_nothing_of_the_last_one():
    X, y = blobs(100)
    model = PILAEClassifier().fit(X, y)
    names = ("loo_score_", "ridge_", "head_width_", "ridge_path_", "width_path_")
    assert all(hasattr(model, name) for name in names)
    model.set_params(head=KNeighborsClassifier(), depth=1).fit(X, y)
    assert not any(hasattr(model, name) for name in names)


def test_scales_and_offsets_beyond_float32():
    X, y = load_iris(return_X_y=True)
    for table in (X * 1e-60, X * 1e60, X + 1e8):
        assert PILAEClassifier().fit(table, y).loo_score_ > 0.93
    seconds = 1.7e9 + np.arange(200.0)[:, None]
    model = PILAERegressor().fit(seconds, np.sin(seconds[:, 0] / 20))
    assert model.head_width_ > 20  # each second is a row of its own
    assert model.loo_score_ > 0.9


def test_multilabel_with_other_heads():
    X, y = blobs(150)
    Y = np.stack([y == 0, X[:, 0] > X[:, 0].mean(), np.zeros(150)], axis=1).astype(int)
    model = PILAEClassifier(width=[4], head=KNeighborsClassifier(), block_rows=40).fit(X, Y)
    proba = model.predict_proba(X)
    assert proba.shape == (150, 3)
    np.testing.assert_array_equal(proba > 0.5, model.predict(X) == 1)
    assert model.score(X, scipy.sparse.csr_array(Y)) == model.score(X, Y) > 0.6


def test_rows_without_weight_never_reach_a_head():
    X, y = load_iris(return_X_y=True)
    model = PILAEClassifier(width=[3], head=KNeighborsClassifier(1)).fit(X, y, sample_weight=(y != 0).astype(float))
    assert model.head_.estimator.n_samples_fit_ == 100
    assert set(model.predict(X)) == {1, 2}


def test_scored_rows_are_bounded_on_repeated_rows():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (20_000, 4)).astype(float)
    y = (X.sum(1) + rng.integers(0, 2, 20_000) > 2).astype(int)
    model = PILAEClassifier(depth=0).fit(X, y)
    assert len(model.head_.output.loo.weight) <= 32  # sixteen rows under two labels
    assert model.loo_score_ == pytest.approx(model.score(X, y), abs=0.05)


def test_growth_by_rank_counts_distinct_rows_that_count():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 6)), np.arange(30) % 2
    model = PILAEClassifier(growth=0.2, width=25, max_depth=5, head="ridge")
    once = len(model.fit(X, y).layers_)
    assert once == 1
    assert len(model.fit(np.tile(X, (3, 1)), np.tile(y, 3)).layers_) == once
    extra = np.r_[X, rng.standard_normal((70, 6))]
    w = np.r_[np.ones(30), np.zeros(70)]
    assert len(model.fit(extra, np.r_[y, np.zeros(70, int)], sample_weight=w).layers_) == once


@pytest.mark.parametrize("factor", [1e-300, 1e-100, 1e30, 1e200])
def test_only_ratios_of_weights_matter(factor):
    X, y = blobs(100)
    w = np.random.default_rng(0).uniform(0.1, 0.9, 100)
    model = PILAEClassifier(depth=1, ridge=1e-3, head=SHLN(width=20))
    plain, known = model.fit(X, y, sample_weight=w).decision_function(X), rounding(model)
    close(model.fit(X, y, sample_weight=w * factor).decision_function(X), plain, **known)


def test_numbers_as_pandas_extension_types():
    import pandas as pd

    X, y = load_iris(return_X_y=True)
    model = PILAEClassifier(depth=0).fit(pd.DataFrame(X).astype("Float64"), pd.Series(y, dtype="Int64"))
    assert model.classes_.dtype.kind == "i"


def test_widths_as_an_array():
    X, y = blobs(100)
    assert [layer.width for layer in PILAEClassifier(width=np.array([4, 3])).fit(X, y).layers_] == [4, 3]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_digits_with_any_seed(seed):
    X, X_test, y, y_test = train_test_split(DIGITS, LABELS, random_state=seed)
    model = PILAEClassifier(depth=2, random_state=seed, head=SHLN(width=1000)).fit(X, y)
    assert model.score(X_test, y_test) > 0.96
    assert abs(model.loo_score_ - model.score(X_test, y_test)) < 0.025


def test_intervals_cover_what_they_say():
    X, y = load_diabetes(return_X_y=True)
    covered = []
    for seed in range(20):
        X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
        ends = PILAERegressor(random_state=0).fit(X_train, y_train).predict_interval(X_test, 0.9)
        assert ends.shape == (len(X_test), 2)
        covered.append(np.mean((ends[:, 0] <= y_test) & (y_test <= ends[:, 1])))
    assert 0.87 <= np.mean(covered) <= 0.93
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 4))
    Z = np.stack([np.sin(X[:, 0]) + 0.3 * rng.standard_normal(5000), X[:, 1] + 100 * rng.standard_normal(5000)], axis=1)
    ends = PILAERegressor(random_state=0).fit(X[:4000], Z[:4000]).predict_interval(X[4000:])
    assert ends.shape == (1000, 2, 2)
    inside = (ends[..., 0] <= Z[4000:]) & (Z[4000:] <= ends[..., 1])
    assert np.all((inside.mean(0) >= 0.87) & (inside.mean(0) <= 0.93))


def test_intervals_refuse_what_they_cannot_do():
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(ValueError, match="between 0 and 1"):
        PILAERegressor(depth=0).fit(X, y).predict_interval(X, 1.5)
    with pytest.raises(ValueError, match="leave-one-out residuals"):
        PILAERegressor(width=[4], head=Ridge()).fit(X, y).predict_interval(X)


def test_a_given_head_width_is_kept_whatever_would_win():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 4))
    y = X @ [1.0, 2.0, 3.0, 4.0]  # plain ridge is perfect here
    assert PILAERegressor().fit(X, y).head_.hidden is None
    for width in (1, 30, 120):
        model = PILAERegressor(head=SHLN(width=width)).fit(X, y)
        assert model.head_width_ == width
        assert model.head_.hidden is not None


def test_other_heads_are_judged_by_plain_ridge():
    model = PILAEClassifier(head="softmax").fit(DIGITS, LABELS)
    assert {row["head"] for row in model.search_} == {"ridge"}
    assert model.score(DIGITS, LABELS) > 0.97


def test_a_given_encoder_ridge_is_never_dropped():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 100)), np.arange(40) % 2
    assert (
        len(
            PILAEClassifier(layer=PILAutoencoder(encoder_ridge=0.0), head=SHLN(width=5, encoder_ridge=0.0))
            .fit(X, y)
            .search_
        )
        > 0
    )


def test_other_heads_get_columns_on_one_scale():
    X, y = load_wine(return_X_y=True)  # one column is a thousand times larger than the others
    model = PILAEClassifier(head=KNeighborsClassifier()).fit(X[::2], y[::2])
    assert model.network_.scaling is not None
    assert model.score(X[1::2], y[1::2]) > 0.85


def test_the_search_counts_weights_as_repeats_and_no_weight_as_no_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6000, 3))
    y = (np.sin(3 * X[:, 0]) + X[:, 1] ** 2 + 0.3 * rng.standard_normal(6000) > 0.5).astype(int)
    plain = PILAEClassifier(max_depth=1, head=SHLN(width=50)).fit(X, y)
    more = np.r_[X, rng.standard_normal((9000, 3))]
    padded = PILAEClassifier(max_depth=1, head=SHLN(width=50)).fit(
        more, np.r_[y, np.zeros(9000, int)], sample_weight=np.r_[np.ones(6000), np.zeros(9000)]
    )
    errors = [[row["error"] for row in model.search_] for model in (padded, plain)]
    close(*errors, **searched(plain))
    close(padded.decision_function(X), plain.decision_function(X), **rounding(plain))


def test_given_ridge_and_width_are_what_candidates_are_judged_with():
    X, y = DIGITS[:600], LABELS[:600]
    model = PILAEClassifier(ridge=0.5, max_depth=1, head=SHLN(width=7)).fit(X, y)
    assert {row["ridge"] for row in model.search_} == {0.5}
    rows = [row for row in model.search_ if row["input_scaling"] != "pieces"]
    assert {row["width"] - 7 for row in rows} <= {0, 64, 57, 57 + 64, 2 * 57}


def test_truncated_encoders_fit_the_rank():
    X = (
        DIGITS[:500]
        @ np.random.default_rng(0).standard_normal((64, 8))
        @ np.random.default_rng(1).standard_normal((8, 10))
    )
    assert (
        PILAEClassifier(depth=1, layer=PILAutoencoder(encoder="truncated")).fit(X, LABELS[:500]).layers_[0].width == 8
    )


def test_where_every_candidate_is_brittle_depth_stops_and_one_is_chosen():
    rng = np.random.default_rng(3)
    model = PILAEClassifier(head=SHLN(width=5)).fit(rng.standard_normal((24, 4)), np.arange(24) % 2)
    assert sum(row["chosen"] for row in model.search_) == 1
    assert max(row["depth"] for row in model.search_) <= 3


@pytest.mark.parametrize("scale", [1e160, 1e-200])
def test_targets_whose_squares_are_none_are_refused_in_a_sentence(scale):
    X, y = DIGITS[:100], LABELS[:100].astype(float)
    with pytest.raises(ValueError, match="rescale"):
        PILAERegressor(head=SHLN(width=5)).fit(X, y * scale)


def test_rare_classes_do_not_make_every_hidden_layer_brittle():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 5))
    far = np.abs(X[:, 0] + X[:, 1]) / 2**0.5
    y = (far + 0.3 * rng.standard_normal(3000) > 2.1).astype(
        int
    )  # five in a hundred; no sum of curves of single columns
    model = PILAEClassifier(max_depth=0).fit(X, y)
    assert not any(row["brittle"] for row in model.search_ if row["activation"] == "relu")
    [chosen] = [row for row in model.search_ if row["chosen"]]
    assert chosen["head"] == "shln"
    first, last = (next(row for row in model.search_ if row["round"] == k)["rows"] for k in (1, 2))
    assert (first, last) == (2000, 3000)  # the first round on fewer rows


def test_fit_rows_auto_takes_a_sample_where_that_is_enough(monkeypatch):
    monkeypatch.setattr(fit, "FITTED_ROWS", 1200)
    params = {"width": [40], "ridge": 1e-3, "fit_rows": "auto", "head": SHLN(width=200)}
    sampled = PILAEClassifier(**params).fit(DIGITS, LABELS)
    whole = PILAEClassifier(**params | {"fit_rows": None}).fit(DIGITS, LABELS)
    given = PILAEClassifier(**params | {"fit_rows": 1200}).fit(DIGITS, LABELS)
    close(sampled.decision_function(DIGITS), given.decision_function(DIGITS), **rounding(given))
    assert abs(sampled.loo_score_ - whole.loo_score_) < 0.02
    monkeypatch.setattr(fit, "FITTED_ROWS", 650)  # too few: all rows are taken
    every = PILAEClassifier(**params).fit(DIGITS, LABELS)
    close(every.decision_function(DIGITS), whole.decision_function(DIGITS), **rounding(whole))


def test_callbacks_of_scikit_learn_hear_of_the_stages():
    pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

    class Record:
        def __init__(self):
            self.events = []

        def setup(self, estimator, context):
            self.events.append("setup")

        def on_fit_task_begin(self, estimator, context):
            self.events.append(("begin", context.task_name))

        def on_fit_task_end(self, estimator, context):
            self.events.append(("end", context.task_name))

        def teardown(self, estimator, context):
            self.events.append("teardown")

    X, y = blobs(200)
    for model in (PILAEClassifier(random_state=0), StackedPILAE(width=[3])):
        record = Record()
        model.set_callbacks(record)
        model.fit(X, y)
        assert record.events[0] == "setup"
        assert record.events[-1] == "teardown"
        begun = [event[1] for event in record.events if event[0] == "begin"]
        ended = [event[1] for event in record.events if event[0] == "end"]
        assert begun[0] == ended[-1] == "fit"
        assert sorted(begun) == sorted(ended)
        assert "reading the rows" in begun
        clone(model).fit(X, y)


# ------------------------------------------------------------------------------------------------- sparse and robust


def test_sparse_decoders_give_sparse_tied_encoders(library):
    X = load_digits().data[:600]
    dense = StackedPILAE(width=[40]).fit(library(X))
    sparse = StackedPILAE(width=[40], layer=PILAutoencoder(decoder_l1=0.1)).fit(library(X))
    assert dense.layers_[0].density > 0.9
    assert sparse.layers_[0].density < 0.5
    assert sparse.layers_[0].decoder_route == "lasso"
    assert sparse.layers_[0].reconstruction_error < 0.5
    with pytest.raises(ValueError, match="decoder_l1"):
        StackedPILAE(layer=PILAutoencoder(decoder_l1=-1.0)).fit(X)


def outliers(seed=0, n=800, share=0.05):
    """A curved surface, its targets, the same with gross errors, and which rows have them."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 4))
    y = 3 * np.sin(2 * X[:, 0]) + 2 * X[:, 1] ** 2 + X[:, 2] + 0.2 * rng.standard_normal(n)
    bad = rng.random(n) < share
    wrong = y + np.where(bad, rng.choice([-1, 1], n) * rng.uniform(20, 100, n), 0.0)
    return X, y, wrong, bad


@pytest.mark.parametrize("outputs", [1, 2])
def test_robust_regression_does_not_follow_gross_errors(outputs):
    X, y, wrong, bad = outliers()
    T, _, _, _ = outliers(1)
    truth = 3 * np.sin(2 * T[:, 0]) + 2 * T[:, 1] ** 2 + T[:, 2]
    if outputs == 2:
        y, wrong, truth = (np.column_stack([v, -2 * v]) for v in (y, wrong, truth))

    def error(targets, **options):
        model = PILAERegressor(depth=0, random_state=0, head=SHLN(width=60), **options).fit(X, targets)
        return float(np.sqrt(np.mean((model.predict(T) - truth) ** 2))), model

    clean, _ = error(y)
    plain, _ = error(wrong)
    robust, model = error(wrong, loss="robust")
    assert plain > 1.5 * clean
    assert robust < 1.1 * clean
    assert model.row_weights_.shape == (len(X),)
    assert model.row_weights_[bad].max() < 0.01
    assert np.median(model.row_weights_[~bad]) > 0.8


def test_robust_regression_is_not_additive():
    X, _, wrong, _ = outliers(n=200)
    model = PILAERegressor(depth=0, loss="robust", head=SHLN(width=20)).fit(X, wrong)
    with pytest.raises(ValueError, match="row_weights_"):
        model.partial_fit(X, wrong)
    with pytest.raises(ValueError, match="parameter of PILAERegressor must be one of"):
        PILAERegressor(loss="huber").fit(X, wrong)
    again = PILAERegressor(depth=0, head=SHLN(width=20)).fit(X, wrong, sample_weight=model.row_weights_)
    close(again.predict(X), model.predict(X), **rounding(again))


# ------------------------------------------------------------------------------------------------- residual networks


def test_with_skip_the_head_sees_all_layers():
    X, y = blobs(300)
    model = PILAEClassifier(width=[5, 4], head="ridge", skip=True, ridge=1e-3).fit(X, y)
    layers = [model.transform(X, layer=k) for k in (0, 1, 2)]
    assert [part.shape[1] for part in layers] == [6, 5, 4]
    assert model.transform(X).shape == (300, 4)
    F = np.hstack(layers)
    plain = PILAEClassifier(depth=0, head="ridge", ridge=1e-3, input_scaling="none").fit(F, y)
    close(model.decision_function(X), plain.decision_function(F), **rounding(plain))
    assert model.head_width_ == 15


def test_skip_is_among_the_candidates():
    X, y = load_wine(return_X_y=True)
    model = PILAEClassifier(random_state=0).fit(X, y)
    assert {row["skip"] for row in model.search_ if row["depth"] > 0} == {False, True}
    assert not any(row["skip"] for row in model.search_ if row["depth"] == 0)
    assert {row["branches"] for row in model.search_} == {1}
    given = PILAEClassifier(random_state=0, skip=False).fit(X, y)
    assert not any(row["skip"] for row in given.search_)


@pytest.mark.parametrize("options", [{"skip": True}, {"branches": 3}, {"skip": True, "branches": 2}])
def test_residual_networks_are_updated_saved_and_exported(options, tmp_path):
    import onnxruntime

    import pilae

    X, y = blobs(300)
    model = PILAEClassifier(width=[5, 4], ridge=1e-2, head=SHLN(width=20), **options).fit(X[:200], y[:200])
    whole = model.fork().partial_fit(X, y)
    close(model.partial_fit(X[200:], y[200:]).decision_function(X), whole.decision_function(X), **rounding(whole))
    model.save(tmp_path / "m.pilae")
    np.testing.assert_array_equal(pilae.load(tmp_path / "m.pilae").predict_proba(X), model.predict_proba(X))
    model.to_onnx(tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    rows = X.astype("float32")
    known = evaluation(model.predict_proba, rows.astype(float), "float32")
    close(session.run(None, {"X": rows})[1], model.predict_proba(rows.astype(float)), **known)


def test_branches_are_other_stacks_beside_the_first(library):
    X, y = blobs(300)
    model = PILAEClassifier(width=[5, 4], head="ridge", branches=3, ridge=1e-3).fit(library(X), y)
    others = model.network_.others
    assert [other.layers[0].activation for other in others] == ["tanh", "relu"]
    assert model.head_width_ == 12
    alone = PILAEClassifier(width=[5, 4], head="ridge", branches=1, ridge=1e-3).fit(library(X), y)
    close(library.numpy(model.transform(library(X))), library.numpy(alone.transform(library(X))), **rounding(alone))
    F = np.hstack([library.numpy(part) for part in (model.transform(library(X)), *(o(library(X)) for o in others))])
    plain = PILAEClassifier(depth=0, head="ridge", ridge=1e-3, input_scaling="none").fit(F, y)
    close(library.numpy(model.decision_function(library(X))), plain.decision_function(F), **rounding(plain))
    weights = [library.numpy(network.layers[0].weights) for network in (model.network_, *others)]
    assert not any(np.allclose(weights[0], other) for other in weights[1:])
    with pytest.raises(ValueError, match="'branches' parameter"):
        PILAEClassifier(branches=9).fit(X, y)
    with pytest.raises(ValueError, match="one stack of layers"):
        PILAEClassifier(width=[5], branches=2, head=SHLN(width=10)).fit(X, y).partial_fit(X, y, update="all")


ASKED = {
    "stack": (StackedPILAE(width=[5], block_rows=20), "transform"),
    "errors": (StackedPILAE(width=[5], block_rows=20), "score_samples"),
    "autoencoder": (PILAutoencoder(4, block_rows=20), "transform"),
    "images": (ConvPILAE(3, 4, pool=1, block_rows=20, image_shape=(2, 3)), "transform"),
    "classifier": (PILAEClassifier(width=[5], head=SHLN(width=10), block_rows=20), "predict_proba"),
    "regressor": (PILAERegressor(width=[5], head=SHLN(width=10), block_rows=20), "predict_interval"),
    "basic": (PILRegressor(), "predict"),
}


@pytest.mark.parametrize("name", ASKED)
def test_who_asks_during_a_refit_hears_one_model(name, monkeypatch):
    """A fit in another thread ends while the blocks are answered one by one."""
    model, method = ASKED[name]
    X, y = blobs(60)
    before, after = clone(model).fit(X, y), clone(model).fit(3 * blobs(60, seed=1)[0], y)
    asked = clone(model).fit(X, y)

    class Interrupted(threads.sharing):
        def __exit__(self, *error):
            asked.fitted_ = after.fitted_
            super().__exit__(*error)

    monkeypatch.setattr("pilae._data.opening.QUICK_NUMBERS", 0)
    monkeypatch.setattr("pilae._data.rows.sharing", Interrupted)
    monkeypatch.setattr("pilae._network.branches.sharing", Interrupted)
    answer = getattr(asked, method)(X)
    assert asked.fitted_ is after.fitted_
    np.testing.assert_array_equal(answer, getattr(before, method)(X))
    assert not np.array_equal(answer, getattr(after, method)(X))


@pytest.mark.parametrize("kind", [StackedPILAE, PILAEClassifier])
def test_features_are_never_the_callers_own_array(kind):
    X, y = blobs(60)
    model = kind(depth=0, input_scaling="none").fit(X, y)
    assert not np.shares_memory(model.transform(X), X)
    np.testing.assert_array_equal(model.transform(X), X)


def test_few_rows_are_refused_in_the_same_words_as_many(monkeypatch):
    X, y = blobs(60)
    model = PILAEClassifier(depth=0, head="softmax").fit(X, y)
    for rows in (X[:0], np.full((2, 6), np.inf), np.array([[np.inf, -np.inf, 0, 0, 0, 0]]), X[:2, :5]):
        with pytest.raises(ValueError, match="PILAEClassifier") as quick:
            model.predict(rows)
        with monkeypatch.context() as patch:
            patch.setattr("pilae._data.opening.QUICK_NUMBERS", -1)
            with pytest.raises(ValueError, match="PILAEClassifier") as usual:
                model.predict(rows)
        assert str(quick.value) == str(usual.value)


def test_an_attribute_that_is_not_there_says_why():
    X, y = blobs(60)
    with pytest.raises(AttributeError, match=r"This PILAEClassifier has no layers_: it is not fitted yet\."):
        _ = PILAEClassifier().layers_
    with pytest.raises(AttributeError, match=r"This PILAEClassifier has no ridge_: this model found none\."):
        _ = PILAEClassifier(depth=0, head="softmax").fit(X, y).ridge_
