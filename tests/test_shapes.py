"""Columns in pieces, neurons of a distance, metrics that labels shape, and that what they shape is judged by others."""

import dataclasses

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_friedman1

from helpers import blobs, close, rounding, searched, tolerance
from pilae import SHLN, ModelFileError, PILAEClassifier, PILAERegressor, StackedPILAE, load, scan_blocks
from pilae._arrays import NUMPY
from pilae._data.halves import FEW_ROWS, MIDDLE, halves_of
from pilae._data.keys import row_keys
from pilae._data.rows import Rows
from pilae._engine.activations import ACTIVATIONS, SLOPES
from pilae._engine.linalg import PrimalGram
from pilae._engine.moments import Moments
from pilae._engine.pieces import Pieces, pieces_for, quantiles
from pilae._network.gradients import DirectedGradients, RadialGradients, learn
from pilae._network.metric import metric_of
from pilae._network.neurons import fit_hidden
from pilae._network.radial import Radial
from pilae._network.structure import Plan
from pilae._search import promise

RNG = np.random.default_rng(0)
X, Y = blobs(200)
CENTRED = X - X.mean(0)


def hidden(width, **plan):
    gram = PrimalGram(CENTRED.T @ CENTRED, len(X))
    return fit_hidden(Rows(CENTRED, NUMPY), None, gram, CENTRED[:60], width, Plan(**plan), 0)


# ---------------------------------------------------------------------------------------------- columns in pieces


def pieces(X, weight=None):
    moments = Moments(NUMPY)
    moments.add(X, None, weight)
    return pieces_for(moments.mean_a, moments.variance_a(), X, weight)


def test_ramps_rise_from_0_to_1_between_quantiles():
    x = RNG.exponential(size=(500, 1))
    scaling = pieces(x)
    ramps = scaling(x)[:, 1:]
    knots = np.quantile(x, np.arange(13) / 12, method="inverted_cdf")
    close(ramps, np.clip((x - knots[:-1]) / np.diff(knots), 0, 1))
    close(scaling(x)[:, :1], (x - x.mean()) / x.std(), terms=500)


@pytest.mark.parametrize("seed", range(3))
def test_a_ridge_on_pieces_is_an_additive_model_of_any_shape(seed):
    """As good as lines between the knots can be, which depends on where the knots fall: 0.81 to 0.99 by the seed."""
    x = np.random.default_rng(seed).uniform(-3, 3, (600, 1))
    y = np.abs(np.sin(2 * x[:, 0]))
    knots = np.quantile(x, np.arange(13) / 12, method="inverted_cdf")
    lines = np.column_stack([np.interp(x[:, 0], knots, corner) for corner in np.eye(13)])
    residual = y - lines @ np.linalg.lstsq(lines, y)[0]
    best = 1 - residual @ residual / np.sum((y - y.mean()) ** 2)
    bent = PILAERegressor(depth=0, head="ridge", input_scaling="pieces").fit(x, y)
    straight = PILAERegressor(depth=0, head="ridge", input_scaling="standard").fit(x, y)
    assert best - 1e-3 < bent.score(x, y) < best + tolerance()  # leave-one-out lets the ridge cost next to nothing
    assert best > 0.8 > 0.2 > straight.score(x, y)


def test_columns_of_few_values_stay_as_they_are():
    x = np.column_stack([RNG.integers(0, 2, 300), RNG.integers(0, 6, 300), np.ones(300), RNG.normal(size=300)])
    scaling = pieces(x.astype(float))
    assert set(scaling.source.tolist()) == {3}
    assert pieces(x[:, :3].astype(float)) is None


def test_a_weight_of_three_is_three_rows():
    x, weight = RNG.normal(size=(120, 2)), RNG.integers(1, 4, 120)
    repeated = np.repeat(x, weight, axis=0)
    once = pieces(x, weight.astype(float))
    # room is found by the rows that are there, so as many as there are distinct ones
    twice = pieces_for(once.mean, 1 / once.inverse**2, repeated, None)
    close(once.start, twice.start)
    close(once.steepness, twice.steepness)


def test_quantiles_do_not_depend_on_how_weights_round():
    values, weight = np.arange(40.0), np.full(40, 0.1)
    np.testing.assert_array_equal(quantiles(values, weight, 4), quantiles(values, np.ones(40), 4))


def test_there_are_no_more_pieces_than_room_for_them():
    wide = RNG.normal(size=(400, 200))
    assert pieces(wide) is None
    some = pieces(RNG.normal(size=(400, 50)))
    assert some is not None
    assert some.width <= 400


def test_pieces_are_undone_through_layers():
    model = StackedPILAE(depth=1, width=60, input_scaling="pieces", keep_decoders=True).fit(X)
    assert isinstance(model.network_.scaling, Pieces)
    assert model.inverse_transform(model.transform(X)).shape == X.shape
    ramps = model.transform(X, layer=0)
    close(model.network_.undo(ramps), X, terms=200)


def test_pieces_forged_to_read_other_columns_are_refused():
    scaling = pieces(X)
    scaling.source = scaling.source + 6
    with pytest.raises(ValueError, match="not there"):
        scaling.check_shapes(6)


# -------------------------------------------------------------------------------------------- neurons of a distance


@pytest.mark.parametrize("kernel", ["laplace", "gauss"])
@pytest.mark.parametrize("direct", [False, True])
def test_radial_neurons_are_functions_of_the_distance_and_nest(kernel, direct):
    plan = {"neurons": "radial", "activation": kernel, "length": 2.0, "direct": direct}
    wide, narrow = hidden(40, **plan), hidden(15, **plan)
    r = np.linalg.norm(CENTRED[:, None, :] - CENTRED[None, :40, :], axis=2)
    pairs = np.linalg.norm(CENTRED[:60, None, :] - CENTRED[None, :60, :], axis=2)[np.triu_indices(60, 1)]
    L = 2.0 * np.median(pairs**2) ** 0.5
    links = 6 if direct else 0
    # the squares of close distances are differences of large ones
    close(wide(CENTRED)[:, links:], np.exp(-r / L if kernel == "laplace" else -((r / L) ** 2)), condition=1e5)
    close(wide(CENTRED)[:, : 15 + links], narrow(CENTRED))
    close(wide.leading(15 + links)(CENTRED), narrow(CENTRED))


def test_a_row_that_is_an_anchor_answers_1_in_float32():
    rows = RNG.normal(size=(50, 784)).astype(np.float32)
    layer = Radial(None, None, rows.astype(np.float64), 20.0, "laplace")
    assert layer(rows).dtype == np.float32
    np.testing.assert_array_equal(np.diag(layer(rows)), 1.0)  # a distance of zero is zero


def test_radial_neurons_in_every_library(library):
    layer = hidden(30, neurons="radial", activation="laplace", length=1.0)
    there = Radial(None, library(np.eye(6)[:, :4]), library(layer.anchors[:, :4]), layer.length, "laplace")
    here = Radial(None, np.eye(6)[:, :4], layer.anchors[:, :4], layer.length, "laplace")
    close(library.numpy(there(library(CENTRED))), here(CENTRED), condition=1e5, terms=6)


# ------------------------------------------------------------------------------------------- metrics from the labels


@pytest.mark.parametrize("name", sorted(ACTIVATIONS))
def test_slopes_are_derivatives(name):
    x, step = np.linspace(-3, 3, 40) + 0.013, 1e-6
    ahead, behind = (ACTIVATIONS[name]((x + s)[:, None].copy())[:, 0] for s in (step, -step))
    np.testing.assert_allclose(SLOPES[name](x[:, None])[:, 0], (ahead - behind) / (2 * step), atol=1e-6)


STEP = 1e-5


def outer_products(layer, V, U, rows):
    """E[J J'] by differences."""
    d = rows.shape[1]
    J = np.empty((len(rows), d, V.shape[1]))
    for j in range(d):
        ahead, behind = (layer(rows + s * np.eye(d)[j]) for s in (STEP, -STEP))
        J[:, j] = (ahead - behind) @ np.concatenate([U, V]) / (2 * STEP)
    return np.einsum("idk,iek->de", J, J) / len(rows)


@pytest.mark.parametrize(
    "plan",
    [
        {"neurons": "rows", "activation": "sigmoid", "encoder_ridge": 1.0},
        {"neurons": "pairs", "activation": "relu2", "encoder_ridge": 1.0},
        {"neurons": "radial", "activation": "laplace", "length": 1.0},
        {"neurons": "radial", "activation": "gauss", "length": 1.0},
    ],
)
@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("direct", [False, True])
def test_the_metric_is_the_mean_outer_product_of_gradients(plan, direct, full):
    layer = hidden(20, direct=direct, **plan)
    V, U = RNG.normal(size=(20, 3)), RNG.normal(size=(6 if direct else 0, 3))
    rows = CENTRED[100:180]  # no anchors: there "laplace" has a kink
    make = RadialGradients if isinstance(layer, Radial) else DirectedGradients
    total, part = make(layer, V, NUMPY, full=full), make(layer, V, NUMPY, full=full)
    total.add(rows[:30])
    part.add(rows[30:])
    total.merge(part)
    M = outer_products(layer, V, U, rows)
    # a difference has as many roundings as its step fits into one
    close(total.outer(U), M if full else np.diag(M), condition=1 / STEP, terms=len(rows))


def test_weights_of_gradients_are_repeats():
    layer = hidden(20, neurons="radial", activation="gauss", length=1.0)
    V, weight = RNG.normal(size=(20, 3)), RNG.integers(1, 4, 50)
    weighted, repeated = RadialGradients(layer, V, NUMPY), RadialGradients(layer, V, NUMPY)
    weighted.add(CENTRED[:50], weight.astype(float))
    repeated.add(np.repeat(CENTRED[:50], weight, axis=0))
    close(weighted.outer(V[:0]), repeated.outer(V[:0]), terms=100)


def test_a_metric_finds_the_column_that_decides():
    x = RNG.normal(size=(600, 8))
    rows = Rows(x, NUMPY, targets=np.sin(2 * x[:, [2]]))
    gram = PrimalGram(x.T @ x, len(x))
    for plan in (Plan(), Plan(neurons="radial", activation="gauss", length=1.0)):
        M = learn(rows, fit_hidden(rows, None, gram, x[:100], 100, plan, 0), 1e-3, row_keys(x, 0), full=True)
        assert np.argmax(np.diag(M)) == 2
        assert np.diag(M)[2] > 0.3 * np.trace(M)


@pytest.mark.parametrize("power", [0.5, 1.0])
def test_a_root_of_the_metric_is_its_root(power):
    A = RNG.normal(size=(6, 6))
    full, diagonal = metric_of(A @ A.T, power), metric_of(np.diag(A @ A.T), power)
    close(full.root @ full.root.T, full.matrix, condition=10)
    close(np.diag(diagonal.root) @ np.diag(diagonal.root), np.diag(diagonal.matrix))
    values = np.linalg.eigvalsh(A @ A.T)
    close(np.linalg.eigvalsh(full.matrix), (values / values[-1]) ** power + 1e-4, condition=1e4)


# ------------------------------------------------------------------------------------------------- honest by halves


def rows_of(x, codes=None):
    return Rows(x, NUMPY, codes=codes, n_classes=0 if codes is None else int(codes.max()) + 1)


def test_equal_rows_are_in_one_half_whatever_their_targets():
    x = np.repeat(RNG.normal(size=(60, 3)), 2, axis=0)
    codes = np.tile([0, 1], 60)
    halves = halves_of(rows_of(x, codes), 60, 0)
    shapes = halves.shapes(x)
    assert np.array_equal(shapes[::2], shapes[1::2])
    assert 20 <= shapes[::2].sum() <= 40


def test_few_rows_are_split_class_by_class_and_rare_classes_shape_nothing():
    x, codes = RNG.normal(size=(103, 3)), np.r_[np.zeros(80, int), np.ones(20, int), np.full(3, 2)]
    halves = halves_of(rows_of(x, codes), 103, 0)
    shapes = halves.shapes(x)
    assert [int(shapes[codes == c].sum()) for c in range(3)] == [40, 10, 0]
    assert np.array_equal(halves.swapped().shapes(x), ~shapes)


def test_many_rows_are_split_by_their_keys():
    halves = halves_of(rows_of(X), FEW_ROWS, 3)
    np.testing.assert_array_equal(halves.shapes(X), row_keys(X, 3) < MIDDLE)


def test_a_handful_of_rows_has_no_halves():
    assert halves_of(rows_of(X[:12], Y[:12]), 12, 0) is None


LABELLED = PILAEClassifier(depth=0, head=SHLN(anchors="radial", metric="labels"), random_state=0)


def test_rows_that_shaped_the_network_are_never_scored():
    model = LABELLED.fit(X, Y)
    shapes = model.fitted_.halves.shapes(X)
    assert 0 < shapes.sum() < len(X)
    assert not shapes[model.loo_predictions_.rows].any()
    assert len(model.head_.residuals().weight) == (~shapes).sum()
    model.recalibrate(X, Y)
    assert not shapes[model.loo_predictions_.rows].any()
    with pytest.raises(ValueError, match="shaped the network"):
        model.recalibrate(X[shapes], Y[shapes])


def test_labels_of_rows_that_judge_have_no_part_in_a_metric(monkeypatch):
    from pilae._search import trial

    seen, original = [], trial.learn

    def learn(rows, *rest, **options):
        seen.append(rows)
        return original(rows, *rest, **options)

    monkeypatch.setattr(trial, "learn", learn)
    model = PILAEClassifier(depth=0, input_scaling="none", head=SHLN(metric="labels"), random_state=0).fit(X, Y)
    shapes = model.fitted_.halves.shapes(X)
    assert len(seen) > 0
    for rows in seen:  # few rows: both ways round, and never rows of both
        half = CENTRED[shapes] if len(rows.X) == shapes.sum() else CENTRED[~shapes]
        assert len(rows.X) == len(half)
        close(np.sort(rows.X[:, 0]), np.sort(half[:, 0]), terms=200)


def noise(seed, n=200, d=6):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)), rng.normal(size=n)


INGREDIENTS = {
    "pieces": {"depth": 0, "input_scaling": "pieces"},
    "radial": {"depth": 0, "head": SHLN(anchors="radial")},
    "metric": {"depth": 0, "head": SHLN(anchors="pairs", metric="labels")},
    "radial metric": {"depth": 0, "head": SHLN(anchors="radial", metric="labels")},
    "diagonal of pieces": {"depth": 0, "input_scaling": "pieces", "head": SHLN(metric="diagonal")},
    "search": {},
}


def ratios(name, seeds):
    """The squared leave-one-out error over that of the mean, on random targets."""
    fits = (PILAERegressor(random_state=seed, **INGREDIENTS[name]).fit(*noise(seed)) for seed in range(seeds))
    return np.array([1.0 - model.loo_score_ for model in fits])


@pytest.mark.parametrize("name", sorted(INGREDIENTS))
def test_random_targets_are_not_learnt(name):
    found = ratios(name, 6)
    assert found.mean() >= 1.0 - 3.0 * found.std(ddof=1) / 6**0.5


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(INGREDIENTS))
def test_random_targets_are_not_learnt_in_twenty_fits(name):
    found = ratios(name, 20)
    assert found.mean() >= 1.0 - 3.0 * found.std(ddof=1) / 20**0.5


@pytest.mark.slow
def test_four_rounds_on_random_targets(monkeypatch):
    """All four, whether or not they help: what labels shape four times over is still judged by others."""
    from pilae._search import choice

    def all_rounds(self, plan):
        for number in range(1, 5):
            self.loss(plan._replace(rounds=number))
        self.best = plan._replace(rounds=4), self.best[1]

    monkeypatch.setattr(choice.NetworkSearch, "_more_rounds", all_rounds)
    found = ratios("radial metric", 20)
    assert found.mean() >= 1.0 - 3.0 * found.std(ddof=1) / 20**0.5


def test_a_score_is_corrected_for_having_been_chosen():
    model = PILAERegressor(random_state=0).fit(*noise(3))
    assert model.fitted_.optimism >= 0
    uncorrected = model.fitted_.head.judged(model.fitted_.targets)[2]
    assert model.loo_score_ == uncorrected - model.fitted_.optimism


@pytest.mark.parametrize("n", [700, 1400, 2300])
def test_a_stream_gives_the_search_of_the_array(n):
    rng = np.random.default_rng(n)
    x = rng.normal(size=(n, 5))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.1 * rng.normal(size=n)
    blocks = scan_blocks(lambda: ((x[k : k + 150], y[k : k + 150]) for k in range(0, n, 150)))
    whole, stream = (PILAERegressor(random_state=0, max_depth=0) for _ in range(2))
    whole.fit(x, y)
    stream.fit(blocks)
    columns = ("input_scaling", "neurons", "activation", "rounds", "round", "chosen")
    assert [[row[c] for c in columns] for row in whole.search_] == [[row[c] for c in columns] for row in stream.search_]
    close(stream.predict(x), whole.predict(x), **searched(whole))


def test_the_order_of_rows_does_not_change_a_metric_of_many_outputs():
    x, y = load_digits(return_X_y=True)
    x, y = x[:600], y[:600]
    order = np.random.default_rng(0).permutation(600)
    model = PILAEClassifier(depth=0, head=SHLN(100, anchors="radial", metric="labels"), random_state=0)
    first = model.fit(x, y).decision_function(x)
    second = model.fit(x[order], y[order]).decision_function(x)
    close(second, first, **rounding(model))


def test_too_few_rows_for_halves_get_a_sentence():
    with pytest.raises(ValueError, match="judged by the other"):
        PILAEClassifier(depth=0, head=SHLN(metric="labels")).fit(X[:12], Y[:12])
    assert PILAEClassifier(head=SHLN(2, anchors="radial")).fit(X[:12], Y[:12]).head_width_ == 2


def test_outputs_that_nothing_moves_have_no_metric():
    with pytest.warns(UserWarning, match="nothing to learn"):
        model = PILAERegressor(depth=0, head=SHLN(20, metric="labels")).fit(X, np.ones(len(X)))
    np.testing.assert_allclose(model.predict(X), 1.0)


@pytest.mark.parametrize(
    "change", [{"optimism": float("nan")}, {"optimism": "x"}, {"halves": 3}, {"importances": np.full(6, np.nan)}]
)
def test_forged_parts_are_refused(change, tmp_path):
    model = PILAEClassifier(depth=0, head=SHLN(20, metric="labels"), random_state=0).fit(X, Y)
    model.fitted_ = dataclasses.replace(model.fitted_, **change)
    model.save(tmp_path / "model.pilae")
    with pytest.raises(ModelFileError):
        load(tmp_path / "model.pilae")


# -------------------------------------------------------------------------------------------- what the labels said


@pytest.mark.parametrize(
    "parameters",
    [
        {"depth": 0, "input_scaling": "pieces", "head": "ridge", "ridge": 1e-3},
        {"depth": 0, "input_scaling": "asinh", "head": SHLN(50, anchors="radial", activation="gauss")},
        {"depth": 1, "branches": 2, "skip": True, "head": SHLN(50, activation="sigmoid", direct_links=True)},
    ],
)
def test_importances_are_mean_squares_of_the_gradient(parameters):
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 5)) * np.array([1.0, 10.0, 0.1, 3.0, 1.0])
    y = np.sin(x[:, 0]) + 0.1 * x[:, 1] * x[:, 4] + 2 * x[:, 2]
    model = PILAERegressor(random_state=0, **parameters).fit(x, y)
    step = 1e-4 * x.std(0)
    moved = [(model.predict(x + step * e) - model.predict(x - step * e)) / 2e-4 for e in np.eye(5)]
    truth = np.mean(np.square(moved), axis=1)
    np.testing.assert_allclose(model.feature_importances_, truth / truth.sum(), atol=0.01)


def test_importances_find_the_columns_of_friedman():
    x, y = make_friedman1(500, random_state=0)
    for parameters in ({}, {"depth": 0}, {"depth": 1}, {"head": "ridge", "input_scaling": "pieces"}):
        found = PILAERegressor(random_state=0, **parameters).fit(x, y).feature_importances_
        assert found.shape == (10,)
        assert abs(found.sum() - 1) < tolerance(terms=10)
        assert found[:5].sum() > 0.7


def test_importances_do_not_depend_on_units():
    x, y = make_friedman1(300, random_state=1)
    units = 10.0 ** np.arange(-3, 7)
    parameters = {"depth": 0, "input_scaling": "standard", "head": SHLN(width=100), "random_state": 0}
    first, second = (PILAERegressor(**parameters).fit(each, y).feature_importances_ for each in (x, x * units))
    np.testing.assert_allclose(first, second, atol=0.15)  # other rows are anchors: keys are those of the numbers


def test_importances_of_a_linear_model_are_its_weights():
    x = RNG.normal(size=(500, 4))
    y = x @ np.array([3.0, 0.0, 1.0, 0.0])
    found = PILAERegressor(depth=0, head="ridge", ridge=0.0).fit(x, y).feature_importances_
    share = np.array([9.0, 0, 1, 0]) * x[:500].var(0)
    close(found, share / share.sum(), terms=len(x))


# --------------------------------------------------------------------------------------------- a choice that holds


def test_a_network_that_falls_apart_on_all_rows_is_replaced(monkeypatch):
    """The chosen one is made to fail on all rows: plain ridge, or another candidate, takes its place, and says so."""
    from pilae._search import builder

    x, y = make_friedman1(1200, random_state=0)
    whole = builder.Builder.head
    calls = []

    def spoilt(self, grower, plan, *rest):
        head = whole(self, grower, plan, *rest)
        if not calls:
            head.output.loo = head.output.loo._replace(outputs=head.output.loo.outputs + 100.0)
        calls.append(plan)
        return head

    monkeypatch.setattr(builder.Builder, "head", spoilt)
    with pytest.warns(UserWarning, match="instead of"):
        model = PILAERegressor(random_state=0).fit(x, y)
    assert len(calls) > 1
    assert model.loo_score_ > 0.5
    assert sum(row["chosen"] for row in model.search_) == 1


@pytest.mark.parametrize(
    ("head", "match"),
    [
        (SHLN(anchors="pairs", activation="gauss"), "functions of a distance"),
        (SHLN(anchors="radial", activation="relu"), "functions of a distance"),
        (SHLN(length=0), "a number above 0"),
        (SHLN(length=2, anchors="rows"), "that of radial neurons"),
        (SHLN(metric="full"), "'inputs', 'labels'"),
    ],
)
def test_sentences_of_the_head(head, match):
    with pytest.raises(ValueError, match=match):
        PILAEClassifier(head=head).fit(X, Y)


def test_a_network_with_a_metric_may_take_the_place_of_the_chosen_one(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1200, 4))
    y = X @ [1.0, 0.5, 2.0, -1.0] + rng.standard_normal(1200)  # a plain ridge is chosen
    monkeypatch.setattr(promise, "_broken", lambda *_: True)
    judged = promise._judged

    def metric_first(builder, choice, grower, head):
        return judged(builder, choice, grower, head)._replace(error=0.0 if choice.plan.rounds else 1.0)

    monkeypatch.setattr(promise, "_judged", metric_first)
    monkeypatch.setattr(promise, "_others", lambda table, _: [row for row in table if row["rounds"]][:1])
    with pytest.warns(UserWarning, match="single rows may decide"):
        model = PILAERegressor(random_state=0, max_depth=0).fit(X, y)
    chosen = next(row for row in model.search_ if row["chosen"])
    assert chosen["rounds"] > 0
    rows, predicted = model.loo_predictions_
    assert len(rows) == len(predicted) < 700  # the half that shaped the metric is not scored
    assert model.predict_interval(X[:5]).shape == (5, 2)
