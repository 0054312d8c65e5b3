"""Leave-one-out of the output layer against refitting without each row."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.metrics import r2_score

from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor
from pilae._engine.factors import EIGEN_WIDTH, RidgeFactors
from pilae._engine.loo import best_ridge, leave_one_out, ridge_grid
from pilae._engine.widths import best_width, width_errors
from pilae._network.neurons import LEAST_SPREAD


def problem(n=40, p=12, m=3, seed=0, weights=None):
    """Features that are standardised under the weights, targets, weights."""
    rng = np.random.default_rng(seed)
    w = np.ones(n) if weights is None else weights
    F, Z = rng.standard_normal((n, p)) @ rng.standard_normal((p, p)), rng.standard_normal((n, m)) + 2
    F -= w @ F / w.sum()
    return F / np.sqrt(w @ F**2 / w.sum()), Z, w


def factors(F, Z, w, eigen=True):
    zbar = w @ Z / w.sum()
    G, C = (F.T * w) @ F, (F.T * w) @ (Z - zbar)
    made = RidgeFactors(G, C, w.sum())
    if not eigen:
        made._eigen, made.route = None, "cholesky"
    return made, zbar


def refit(F, Z, w, i, unit, lam):
    """Output of row i when `unit` of its weight is taken out: means estimated anew, scales and lambda held."""
    v = w.copy()
    v[i] -= unit
    model = Ridge(alpha=lam).fit(F, Z, sample_weight=v)
    return model.predict(F[i : i + 1])[0]


def solved(F, w, ridge):
    """The rounding of what is solved from these features."""
    regularised = (F.T * w) @ F + ridge * w.sum() * np.eye(F.shape[1])
    return {"condition": np.linalg.cond(regularised), "terms": len(F)}


@pytest.mark.parametrize("eigen", [True, False])
@pytest.mark.parametrize("kind", ["plain", "repeated", "whole rows", "class weights"])
def test_equals_refitting(eigen, kind):
    rng = np.random.default_rng(1)
    n = 40
    w, unit = np.ones(n), np.ones(n)
    if kind == "repeated":  # a weight of 3 is three rows; one of them is left out
        w = rng.integers(1, 4, n).astype(float)
    if kind == "whole rows":
        w = unit = rng.uniform(0.1, 0.9, n)
    if kind == "class weights":
        w = unit = np.where(np.arange(n) < 8, 2.5, 0.625)
    F, Z, _ = problem(weights=w)
    made, zbar = factors(F, Z, w, eigen)
    ridges = [1e-3, 0.1, 1.0]
    for ridge, scored in zip(
        ridges, leave_one_out(made, ridges, zbar, lambda: iter([(F, Z, w, unit, w)])), strict=True
    ):
        expected = [refit(F, Z, w, i, unit[i], ridge * w.sum()) for i in range(n)]
        close(scored.outputs, expected, **solved(F, w, ridge))


def test_blocks_of_scored_rows_do_not_matter():
    F, Z, w = problem()
    made, zbar = factors(F, Z, w)
    whole = leave_one_out(made, [0.1], zbar, lambda: iter([(F, Z, w, w, w)]))[0]
    halves = leave_one_out(
        made, [0.1], zbar, lambda: iter([(F[s], Z[s], w[s], w[s], w[s]) for s in (slice(0, 7), slice(7, 40))])
    )
    close(halves[0].outputs, whole.outputs, terms=12)


def test_path_equals_ridge_and_ridge_cv():
    F, Z, w = problem(n=60, m=1)
    made, zbar = factors(F, Z, w)
    grid = ridge_grid(1e-8)
    scored = leave_one_out(made, grid, zbar, lambda: iter([(F, Z, w, w, w)]))
    for ridge in (1e-3, 0.1):
        model = Ridge(alpha=ridge * 60).fit(F, Z[:, 0])
        close(made.at(ridge).coefficients()[:, 0], model.coef_, **solved(F, w, ridge))
    cv = RidgeCV(alphas=np.array(grid) * 60, store_cv_results=True).fit(F, Z[:, 0])
    ours = np.stack([s.row_errors(np.ones(1)) for s in scored], axis=1)
    close(ours, cv.cv_results_, **solved(F, w, grid[0]))
    chosen, _, path = best_ridge(made, zbar, np.ones(1), lambda: iter([(F, Z, w, w, w)]), 1e-8)
    best = cv.alpha_ / 60
    assert chosen >= best * (1 - 1e-9)
    # a tie goes to the larger ridge, and ties are narrow
    assert path[chosen] <= path[min(path, key=lambda r: abs(r - best))] * 1.01


def test_the_walk_over_factorisations_finds_what_the_whole_grid_finds():
    F, Z, w = problem(n=120, p=30, m=2)
    narrow, zbar = factors(F, Z, w)
    wide, _ = factors(F, Z, w, eigen=False)
    batches = lambda: iter([(F, Z, w, w, w)])  # noqa: E731
    a, _, whole = best_ridge(narrow, zbar, np.ones(2), batches, 1e-8)
    b, _, walked = best_ridge(wide, zbar, np.ones(2), batches, 1e-8)
    assert walked[b] <= min(whole[r] for r in whole if r in walked) * 1.01
    assert abs(np.log10(a) - np.log10(b)) <= 1.0
    assert len(walked) < len(whole) / 2


@pytest.mark.parametrize("width", [EIGEN_WIDTH - 1, EIGEN_WIDTH + 1])
def test_not_positive_definite_falls_back_and_says_so(width):
    G = -1e-6 * np.eye(width)
    made = RidgeFactors(G, np.zeros((width, 1)), 1.0)
    made.at(1e-9)
    assert made.route == ("eigh" if width <= EIGEN_WIDTH else "eigh (not positive definite)")


def manual_loo(model, X, Z, w):
    """Leave-one-out outputs of a fitted model's last layer by refitting it on its own features."""
    F = model.head_.features(model.network_(X))
    mean = w @ F / w.sum()
    scale = np.sqrt(w @ (F - mean) ** 2 / w.sum())
    scale = np.where(scale > 0, np.maximum(scale, LEAST_SPREAD), 0)
    F = (F - mean) / np.where(scale > 0, scale, np.inf)
    return np.array([refit(F, Z, w, i, min(w[i], 1.0), model.ridge_ * w.sum()) for i in range(len(X))])


@pytest.mark.parametrize("weighted", [False, True])
def test_the_classifier_reports_it(weighted):
    X, y = blobs(90)
    w = np.random.default_rng(0).integers(1, 4, 90).astype(float) if weighted else np.ones(90)
    model = PILAEClassifier(width=[5], ridge=0.01, head=SHLN(width=15)).fit(X, y, sample_weight=w if weighted else None)
    Z = np.eye(3)[y]
    loo, rows = model.head_.output.loo, model.loo_predictions_.rows
    assert sorted(rows) == list(range(90))
    outputs = manual_loo(model, X, Z, w)[rows]
    close(loo.outputs, outputs, **rounding(model))
    np.testing.assert_array_equal(model.loo_predictions_.predicted, outputs.argmax(1))
    close(model.loo_score_, np.average(outputs.argmax(1) == y[rows], weights=loo.weight), terms=90)
    assert 60 <= np.sum(loo.chooser > 0) <= 75  # fifteen rows (and the next) are neurons


def test_the_regressor_reports_it():
    X, y = blobs(80)
    Z = np.stack([X[:, 0] * 100 + y, np.sin(X[:, 1])], axis=1)
    model = PILAERegressor(depth=0, ridge=0.01, head=SHLN(width=20)).fit(X, Z)
    rows, predicted = model.loo_predictions_
    Z, outputs = Z[rows], manual_loo(model, X, Z, np.ones(80))[rows]
    close(predicted, outputs, **rounding(model))
    other = model.head_.output.loo.chooser > 0
    Z, outputs = Z[other], outputs[other]
    r2 = 1 - np.sum((Z - outputs) ** 2, axis=0) / np.sum((Z - Z.mean(0)) ** 2, axis=0)
    close(model.loo_score_, r2.mean(), **rounding(model))


def test_a_row_that_alone_holds_a_direction_is_not_called_predicted():
    y = np.r_[np.zeros(20), 1.0]
    F = np.zeros((21, 1))
    F[20] = 1.0
    F -= F.mean()
    F /= np.sqrt((F**2).mean())
    made, zbar = factors(F, y[:, None], np.ones(21))
    [scored] = leave_one_out(
        made, [1e-12], zbar, lambda: iter([(F, y[:, None], np.ones(21), np.ones(21), np.ones(21))])
    )
    close(scored.outputs[20, 0], 1 / 21, terms=21)


@pytest.mark.parametrize(("few_outputs", "columns"), [(3, 64), (0, 64), (0, 5)])  # running sums, or products
@pytest.mark.parametrize("kind", ["plain", "repeated", "whole rows"])
def test_the_width_path_equals_refitting_every_width(kind, few_outputs, columns, monkeypatch):
    monkeypatch.setattr("pilae._engine.widths.FEW_OUTPUTS", few_outputs)
    monkeypatch.setattr("pilae._engine.widths.PATH_COLUMNS", columns)
    rng = np.random.default_rng(2)
    n, p = 40, 12
    w, unit = np.ones(n), np.ones(n)
    if kind == "repeated":
        w = rng.integers(1, 4, n).astype(float)
    if kind == "whole rows":
        w = unit = rng.uniform(0.1, 0.9, n)
    F, Z, _ = problem(n, p, weights=w)
    zbar = w @ Z / w.sum()
    made = RidgeFactors((F.T * w) @ F, (F.T * w) @ (Z - zbar), w.sum(), nested=True)
    scale = np.array([1.0, 2.0, 0.5])
    batches = lambda: iter([(F[s], Z[s], w[s], unit[s], w[s]) for s in (slice(0, 7), slice(7, n))])  # noqa: E731
    for ridge in (1e-3, 0.1):
        errors = width_errors(made.at(ridge), zbar, w.sum(), scale, batches, first=3)
        assert errors.shape == (n, p - 2)
        for width in range(3, p + 1):
            out = np.array([refit(F[:, :width], Z, w, i, unit[i], ridge * w.sum()) for i in range(n)])
            wanted = np.sum(((Z - out) / scale) ** 2, axis=1)
            close(errors[:, width - 3], wanted, **solved(F[:, :width], w, ridge))


def test_the_best_width_is_the_lowest_of_the_path_or_ties_with_it():
    rng = np.random.default_rng(0)
    F = rng.standard_normal((300, 40))
    F = (F - F.mean(0)) / F.std(0)
    Z = F[:, :5] @ rng.standard_normal((5, 1)) + 0.3 * rng.standard_normal((300, 1))
    w = np.ones(300)
    zbar = Z.mean(0)
    made = RidgeFactors(F.T @ F, F.T @ (Z - zbar), 300.0, nested=True)
    width, ridge, path = best_width(
        made, zbar, np.ones(1), lambda: iter([(F, Z, w, w, w)]), w, w, ridge_grid(1e-8)[::2], 1
    )
    assert 5 <= width <= 8  # five features carry the signal, the rest is noise
    lowest = min(e.min() for e in path.errors.values())
    assert path.errors[ridge].min() == lowest
    assert path.errors[ridge][width - 1] <= lowest * 1.01


def test_where_no_row_is_a_neuron_every_row_has_a_say():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 8))
    y = X @ rng.standard_normal(8) + rng.standard_normal(600)
    scores = []
    for seed in range(3):
        model = PILAERegressor(depth=0, head="ridge", ridge=1e-2, random_state=seed).fit(X, y)
        rows, predicted = model.loo_predictions_
        scores += [model.loo_score_, r2_score(y[rows], predicted)]
    close(scores, np.full(6, scores[0]), terms=600)
