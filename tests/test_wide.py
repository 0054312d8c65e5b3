"""More columns than rows: the output layer is solved where the rows are, and is the one of before."""

import dask.array
import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.linear_model import Ridge

from helpers import close, searched
from pilae import PILAEClassifier, PILAERegressor, load, scan_blocks
from pilae._network import solving
from pilae._network.fit_output import OutputFit

RNG = np.random.default_rng(0)
X = RNG.standard_normal((60, 200)) * RNG.uniform(0.5, 2.0, 200) + RNG.standard_normal(200)
SIGNAL = X[:, :5].sum(axis=1)
NUMBERS = SIGNAL + 0.3 * RNG.standard_normal(60)
CLASSES = np.digitize(SIGNAL, np.quantile(SIGNAL, [1 / 3, 2 / 3]))
NEW = RNG.standard_normal((20, 200))


def both_ways(monkeypatch, kind, y, **given):
    """The model solved among rows, and the same among columns."""
    fit = {name: given.pop(name) for name in ("sample_weight", "groups") if name in given}
    rows = kind(depth=0, head="ridge", **given).fit(X, y, **fit)
    monkeypatch.setattr(solving, "WideFit", OutputFit)
    return rows, kind(depth=0, head="ridge", **given).fit(X, y, **fit)


@pytest.mark.parametrize("scaling", ["none", "standard"])
@pytest.mark.parametrize("ridge", ["auto", 1e-3])
@pytest.mark.parametrize(
    "fit",
    [{}, {"sample_weight": RNG.integers(0, 4, 60).astype(float)}, {"groups": np.arange(60) // 3}],
    ids=["rows", "weights", "groups"],
)
def test_the_solution_is_the_same(monkeypatch, scaling, ridge, fit):
    rows, columns = both_ways(monkeypatch, PILAERegressor, NUMBERS, input_scaling=scaling, ridge=ridge, **fit)
    assert rows.head_.output.route == "eigh (rows x rows)"
    assert columns.head_.output.route != rows.head_.output.route
    condition = 200 / min(rows.ridge_, 1.0)  # of the standardised Gram of 200 columns, with the ridge
    close(rows.ridge_, columns.ridge_, condition=condition)
    for name in ("coef", "intercept"):
        parts = [getattr(model.head_.output, name) for model in (rows, columns)]
        close(*parts, condition=condition, terms=260)
    close(rows.loo_predictions_.predicted, columns.loo_predictions_.predicted, condition=condition, terms=260)
    close(rows.loo_score_, columns.loo_score_, condition=condition, terms=260)


def test_classes_and_probabilities(monkeypatch):
    rows, columns = both_ways(monkeypatch, PILAEClassifier, CLASSES)
    condition = 200 / min(rows.ridge_, 1.0)
    close(rows.decision_function(NEW), columns.decision_function(NEW), condition=condition, terms=260)
    assert rows.loo_score_ == columns.loo_score_


def test_it_is_a_ridge_of_scikit_learn():
    model = PILAERegressor(depth=0, head="ridge", input_scaling="standard", ridge=0.1).fit(X, NUMBERS)
    standard = (X - X.mean(0)) / X.std(0)
    ridge = Ridge(alpha=0.1 * 60).fit(standard, NUMBERS)
    close(model.predict(X), ridge.predict(standard), condition=2000, terms=260)


def test_rows_come_and_go(tmp_path):
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-2).fit(X, NUMBERS)
    later = model.fork().partial_fit(X[:30], NUMBERS[:30]).partial_fit(X[30:], NUMBERS[30:])
    close(later.predict(NEW), model.predict(NEW), condition=200 / 1e-2, terms=260)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict(NEW), model.predict(NEW))


@pytest.mark.parametrize("kind", ["float32", "sparse", "torch"])
def test_other_rows(kind):
    rows = {
        "float32": lambda: X.astype(np.float32),
        "sparse": lambda: scipy.sparse.csr_matrix(X),
        "torch": lambda: torch.asarray(X),
    }[kind]()
    y = torch.asarray(NUMBERS) if kind == "torch" else NUMBERS
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-2).fit(rows, y)
    exact = PILAERegressor(depth=0, head="ridge", ridge=1e-2).fit(X, NUMBERS)
    dtype = "float32" if kind == "float32" else "float64"
    close(np.asarray(model.predict(rows)), exact.predict(X), dtype=dtype, condition=200 / 1e-2, terms=260)


@pytest.mark.parametrize("kind", ["blocks", "dask"])
@pytest.mark.parametrize("weight", [None, RNG.integers(0, 4, 60).astype(float)], ids=["rows", "weights"])
def test_rows_in_parts_are_solved_among_rows_too(kind, weight):
    columns = (X, CLASSES) if weight is None else (X, CLASSES, weight)
    model, whole = (PILAEClassifier(head="ridge", random_state=0) for _ in range(2))
    if kind == "blocks":
        model.fit(scan_blocks(lambda: (tuple(c[a:b] for c in columns) for a, b in ((0, 7), (7, 40), (40, 60)))))
    else:
        X_parts, *others = (dask.array.from_array(c, chunks=(17, *c.shape[1:])) for c in columns)
        model.fit(X_parts, others[0], sample_weight=None if weight is None else others[1])
    whole.fit(X, CLASSES, sample_weight=weight)
    assert model.head_.output.route == "eigh (rows x rows)"
    assert model.search_ == whole.search_ == []
    close(model.decision_function(NEW), whole.decision_function(NEW), condition=200 / min(whole.ridge_, 1), terms=260)
    assert model.loo_score_ == whole.loo_score_


def test_tens_of_thousands_of_columns_need_no_square_of_them():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 30_000), np.float32)
    y = X[:, :20_000].sum(axis=1) > 0
    model = PILAEClassifier(head="ridge").fit(X, y)
    assert model.head_.output.coef.shape == (30_000, 2)
    assert model.head_.output.moments is None
    assert model.search_ == []
    standard = (X - X.mean(0, dtype=float)) / X.std(0, dtype=float)
    ridge = Ridge(alpha=model.ridge_ * 80).fit(standard, np.eye(2)[y.astype(int)])
    # products of 30,000 terms in float32, then a solution whose condition is that of the Gram with its ridge
    close(model.head_.outputs(X), ridge.predict(standard), dtype="float32", condition=30, terms=30_000)
    with pytest.raises(ValueError, match="10,000 columns"):
        model.partial_fit(X, y)


def test_many_columns_with_neurons_are_refused_in_one_sentence():
    X = np.zeros((500, 90_000), np.float32)
    X[:, 0] = np.arange(500)
    with pytest.raises(ValueError, match="head='ridge'"):
        PILAEClassifier().fit(X, X[:, 0] > 250)


def test_a_search_scores_other_rows_than_it_fits(monkeypatch):
    """The columns of both are taken some at a time, and these must be the same."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((300, 400))
    y = X[:, :30].sum(axis=1) > 0
    whole = PILAEClassifier(random_state=0).fit(X, y)
    assert any(row["head"] == "ridge" and row["depth"] == 0 for row in whole.search_)
    monkeypatch.setattr("pilae._network.wide_output.CHUNK", 30_000)  # 100 columns of 300 rows, more of the scored ones
    parts = PILAEClassifier(random_state=0).fit(X, y)
    close(*([row["loss"] for row in model.search_] for model in (parts, whole)), **searched(whole))
    assert parts.loo_score_ == whole.loo_score_
