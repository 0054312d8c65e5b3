"""Dask: the partitions do not matter, the scheduler does not matter. Workers that die: tests/torture/cluster.py."""

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.exceptions import UndefinedMetricWarning

from helpers import blobs, close, rounding, searched
from pilae import SHLN, PILAEClassifier, PILAERegressor, StackedPILAE

X, Y = blobs(900)
LABELS = np.array(["no", "yes", "other"])[Y]
NETWORK = {"width": [5], "head": SHLN(width=20)}
IN_MEMORY = PILAEClassifier(**NETWORK).fit(X, LABELS)
FRAME = pd.DataFrame(X, columns=[f"c{j}" for j in range(6)])
pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::ResourceWarning", "ignore::FutureWarning"
)


def same(out, expected, model=IN_MEMORY):
    close(out, expected, **rounding(model))


def unknown(x):
    """The same array with chunk sizes that nobody knows."""
    return x[da.from_array(np.ones(len(x), bool), chunks=x.chunks[0])]


@pytest.mark.parametrize(
    "chunks", [(900, 6), (100, 6), ((500, 1, 399), 6), (300, 2)], ids=["one", "even", "uneven", "column chunks"]
)
@pytest.mark.parametrize("scheduler", ["threads", "synchronous"])
def test_any_chunks_give_the_model_of_the_array(chunks, scheduler):
    A, b = da.from_array(X, chunks=chunks), da.from_array(LABELS, chunks=250)
    with dask.config.set(scheduler=scheduler):
        model = PILAEClassifier(**NETWORK).fit(A, b)
        same(model.decision_function(X), IN_MEMORY.decision_function(X))
        close(model.loo_score_, IN_MEMORY.loo_score_, terms=900)
        assert model.score(A, b) == IN_MEMORY.score(X, LABELS)
    assert model.n_features_in_ == 6


def test_what_needs_an_order_is_refused():
    A, b = da.from_array(X, chunks=(300, 6)), da.from_array(LABELS, chunks=300)
    model = IN_MEMORY.fork().partial_fit(X[:200], LABELS[:200], window=100)
    for how in ({"window": 50}, {}):
        with pytest.raises(ValueError, match="A window needs rows in the order they came"):
            model.partial_fit(A, b, **how)
    with pytest.raises(ValueError, match="A window needs rows in the order they came"):
        model.forget(A[:100], b[:100])
    with pytest.raises(ValueError, match="half_life needs rows in the order they came"):
        IN_MEMORY.fork().partial_fit(A, b, half_life=50)
    with pytest.raises(ValueError, match=r"test_first needs rows in the order they came.*call score\(X, y\)"):
        IN_MEMORY.fork().partial_fit(A, b, test_first=True)


def test_zarr_and_hdf5(tmp_path):
    da.from_array(X, chunks=(200, 6)).to_zarr(str(tmp_path / "X.zarr"))
    model = PILAEClassifier(**NETWORK).fit(da.from_zarr(str(tmp_path / "X.zarr")), da.from_array(LABELS, chunks=200))
    same(model.decision_function(X), IN_MEMORY.decision_function(X))
    with h5py.File(tmp_path / "X.h5", "w") as file:
        table = da.from_array(file.create_dataset("X", data=X), chunks=(200, 6))
        model = PILAEClassifier(**NETWORK).fit(table, da.from_array(LABELS, chunks=200))
    same(model.decision_function(X), IN_MEMORY.decision_function(X))


def test_predictions_stay_lazy():
    A = da.from_array(X, chunks=(200, 6))
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        lazy = getattr(IN_MEMORY, method)(A)
        assert isinstance(lazy, da.Array)
        expected = getattr(IN_MEMORY, method)(X)
        assert lazy.shape == expected.shape
        assert lazy.dtype == expected.dtype
        np.testing.assert_array_equal(lazy.compute(), expected)
    assert isinstance(IN_MEMORY.predict(unknown(A)), da.Array)


def test_unknown_sizes_empty_partitions_and_weights():
    A, b, w = (da.from_array(v, chunks=300) for v in (X, LABELS, 1.0 + Y))
    model = PILAEClassifier(**NETWORK).fit(unknown(A), unknown(b), sample_weight=unknown(w))
    expected = PILAEClassifier(**NETWORK).fit(X, LABELS, sample_weight=1.0 + Y)
    same(model.decision_function(X), expected.decision_function(X))
    there = np.arange(900) // 300 != 1
    keep = da.from_array(there, chunks=300)  # nothing is left of the second partition
    model = PILAEClassifier(**NETWORK).fit(A[keep], b[keep])
    expected = PILAEClassifier(**NETWORK).fit(X[there], LABELS[there])
    same(model.decision_function(X), expected.decision_function(X))
    assert len(model.predict(A[keep]).compute()) == 600
    balanced = PILAEClassifier(**NETWORK, class_weight="balanced").fit(A[:700], b[:700])
    same(
        balanced.decision_function(X),
        PILAEClassifier(**NETWORK, class_weight="balanced").fit(X[:700], LABELS[:700]).decision_function(X),
    )


def test_data_frames_keep_their_names():
    frame = dd.from_pandas(FRAME.assign(label=LABELS), npartitions=4, sort=False)
    model = PILAEClassifier(**NETWORK).fit(frame[list(FRAME)], frame["label"])
    assert list(model.feature_names_in_) == list(FRAME)
    same(model.decision_function(FRAME), IN_MEMORY.decision_function(X))
    np.testing.assert_array_equal(model.predict(frame[list(FRAME)]).compute(), IN_MEMORY.predict(X))
    empty = frame[frame["c0"] > frame["c0"].max() - 1e-12]  # one row, the other partitions are empty
    assert len(model.predict(empty[list(FRAME)]).compute()) == 1


def test_regression_and_transformers():
    A = da.from_array(X, chunks=(250, 6))
    model, expected = PILAERegressor(**NETWORK).fit(A[:, :5], A[:, 5]), PILAERegressor(**NETWORK).fit(X[:, :5], X[:, 5])
    same(model.predict(X[:, :5]), expected.predict(X[:, :5]), expected)
    same(model.score(A[:, :5], A[:, 5]), expected.score(X[:, :5], X[:, 5]), expected)
    assert model.predict_interval(A[:, :5], coverage=0.8).shape == (900, 2)
    stack, other = StackedPILAE(width=[5, 4]).fit(A), StackedPILAE(width=[5, 4]).fit(X)
    layers = {"condition": 5 / 1e-3, "terms": 900}  # five features with a ridge of 1e-3 of their mean square
    close(stack.transform(A).compute(), other.transform(X), **layers)
    close(stack.reconstruction_error_, other.reconstruction_error_, **layers)


def test_the_automatic_search_does_not_see_the_partitions():
    expected = PILAEClassifier(max_depth=1).fit(X, Y)
    for chunks in (130, 450):
        model = PILAEClassifier(max_depth=1).fit(da.from_array(X, chunks=(chunks, 6)), da.from_array(Y, chunks=chunks))
        errors = [[row["error"] for row in one.search_] for one in (model, expected)]
        close(*errors, **searched(expected))
        same(model.decision_function(X), expected.decision_function(X), expected)


def test_partial_fit_and_forget_on_a_cluster():
    model = IN_MEMORY.fork().partial_fit(da.from_array(X, chunks=(200, 6)), da.from_array(LABELS, chunks=200))
    same(model.decision_function(X), IN_MEMORY.decision_function(X))
    model.forget(da.from_array(X[:300], chunks=(100, 6)), da.from_array(LABELS[:300], chunks=100))
    never = IN_MEMORY.fork().partial_fit(X[300:], LABELS[300:])
    same(model.decision_function(X), never.decision_function(X), never)


def test_a_lazy_prediction_is_of_the_model_it_was_asked_of():
    model = PILAEClassifier(**NETWORK).fit(X, LABELS)
    lazy = model.decision_function(da.from_array(X, chunks=(300, 6)))
    model.partial_fit(X[:100], np.full(100, "new"))
    assert lazy.compute().shape == lazy.shape == (900, 3)


def test_scores_as_scikit_learn_counts_them():
    A, w = da.from_array(X, chunks=(300, 6)), np.where(Y == 0, 5.0, 0.1)
    score = IN_MEMORY.score(A, da.from_array(LABELS, chunks=300), da.from_array(w, chunks=300))
    close(score, IN_MEMORY.score(X, LABELS, w), terms=900)
    with pytest.raises(ValueError, match="requires y"):
        IN_MEMORY.score(A)
    model = PILAERegressor(**NETWORK, keep_statistics=False).fit(X, X[:, 0] + 1e6)
    far = da.from_array(X[:, 0] + 1e6, chunks=300)
    close(model.score(A, far), model.score(X, X[:, 0] + 1e6), condition=1e6, terms=900)
    assert model.score(A, da.ones(900, chunks=300)) == 0.0
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(A[:1], far[:1]))


def test_a_window_wants_rows_in_order_when_it_is_fitted_again():
    model = PILAEClassifier(**NETWORK).partial_fit(X[:200], LABELS[:200], window=100)
    with pytest.raises(ValueError, match="order"):
        model.forget(X[:50], LABELS[:50], remaining=(da.from_array(X, chunks=(300, 6)), da.from_array(LABELS)))


def test_scored_rows_have_numbers_a_person_can_use():
    model = PILAEClassifier(**NETWORK).fit(da.from_array(X, chunks=(100, 6)), da.from_array(LABELS, chunks=100))
    assert sorted(model.loo_predictions_.rows) == list(range(900))


def test_errors_are_sentences():
    A = da.from_array(np.where(np.arange(900)[:, None] == 650, np.inf, X), chunks=(200, 6))
    with pytest.raises(ValueError, match="partition 3, row 50, column 0 is infinite"):
        PILAEClassifier(**NETWORK).fit(A, da.from_array(Y, chunks=200))
    with pytest.raises(ValueError, match="X has 900 rows but y has 800"):
        PILAEClassifier(**NETWORK).fit(A, da.from_array(Y[:800], chunks=200))
    with pytest.raises(ValueError, match="requires y to be passed"):
        PILAEClassifier(**NETWORK).fit(A)


@pytest.fixture
def client():
    """For one test alone: while it lives, Dask gives it every computation, also of tests that are not for clusters."""
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_two_worker_processes(client):
    A, b = da.from_array(X, chunks=(150, 6)), da.from_array(LABELS, chunks=150)
    model = PILAEClassifier(**NETWORK).fit(A, b)
    same(model.decision_function(X), IN_MEMORY.decision_function(X))
    assert model.score(A, b) == IN_MEMORY.score(X, LABELS)
