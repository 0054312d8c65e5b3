"""Rows that come and go: any order of adding, forgetting and merging gives the model of the rows that are in."""

import pickle
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import pilae
from helpers import blobs, close, rounding, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor

X, Y = blobs(240)
Z = np.stack([X[:, 0] * 3 + Y, np.sin(X[:, 1])], axis=1)
TEST, _ = blobs(50, seed=1)
NETWORK = {"width": [6], "ridge": 1e-3, "head": SHLN(width=30)}
FITTED = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])
REGRESSOR = PILAERegressor(**NETWORK).fit(X[:120], Z[:120])
POOLED = FITTED.fork().partial_fit(X, Y).decision_function(TEST)


def same(model, expected=POOLED):
    close(model.decision_function(TEST), expected, **rounding(model))


def parts(cuts):
    return np.split(np.arange(240), sorted(cuts))


@given(cuts=st.lists(st.integers(0, 240), max_size=5), seed=st.integers(0, 100))
def test_any_sequence_of_calls_is_one_call(cuts, seed):
    model, order = FITTED.fork(), np.random.default_rng(seed).permutation(240)
    for rows in parts(cuts):
        if len(rows):
            model.partial_fit(X[order[rows]], Y[order[rows]])
    same(model)


@given(cuts=st.lists(st.integers(0, 240), max_size=6), data=st.data())
def test_any_tree_of_merges_is_one_call(cuts, data):
    models = []
    for rows in parts(cuts):
        models.append(FITTED.fork())
        if len(rows):
            models[-1].partial_fit(X[rows], Y[rows])
    while len(models) > 1:
        count = data.draw(st.integers(2, len(models)))
        k = data.draw(st.integers(0, len(models) - count))
        merged = models[k].merge(*models[k + 1 : k + count])
        assert merged is models[k]
        models[k : k + count] = [merged]
    same(models[0])


@given(rows=st.lists(st.integers(0, 239), min_size=1, max_size=40, unique=True), weighted=st.booleans())
def test_added_then_forgotten_is_never_added(rows, weighted):
    w = np.random.default_rng(0).uniform(0.1, 3, 240) if weighted else np.ones(240)
    model = FITTED.fork().partial_fit(X, Y, sample_weight=w)
    model.forget(X[rows], Y[rows], sample_weight=w[rows])
    stay = np.setdiff1d(np.arange(240), rows)
    never = FITTED.fork().partial_fit(X[stay], Y[stay], sample_weight=w[stay])
    same(model, never.decision_function(TEST))


def test_it_continues_from_fit():
    model = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])
    same(model, FITTED.fork().partial_fit(X[:120], Y[:120]).decision_function(TEST))
    same(model.partial_fit(X[120:], Y[120:]))
    first = PILAEClassifier(**NETWORK).partial_fit(X[:120], Y[:120], classes=[0, 1, 2, 7])
    assert first.classes_.tolist() == [0, 1, 2, 7]
    assert np.abs(first.decision_function(TEST)[:, 3]).max() < tolerance(**rounding(first))
    assert (first.predict_proba(TEST) > 0).all()


def test_regression_too():
    expected = REGRESSOR.fork().partial_fit(X, Z).predict(TEST)
    model = PILAERegressor(**NETWORK).fit(X[:120], Z[:120]).partial_fit(X[120:], Z[120:])
    close(model.predict(TEST), expected, **rounding(model))
    never = REGRESSOR.fork().partial_fit(X[20:], Z[20:]).predict(TEST)
    close(model.forget(X[:20], Z[:20]).predict(TEST), never, **rounding(model))
    a, b = REGRESSOR.fork().partial_fit(X[:100], Z[:100]), REGRESSOR.fork().partial_fit(X[100:], Z[100:])
    close(a.merge(b).predict(TEST), expected, **rounding(model))
    with pytest.raises(ValueError, match="y has 1 columns, but the model was fitted on 2"):
        a.partial_fit(X, Z[:, 0])


def test_a_class_nobody_announced_is_as_if_it_had_always_been_there():
    late = np.where(Y == 2, 9, Y)  # 9 comes last, and -1 in the middle of nowhere
    late[:5] = -1
    announced = FITTED.fork().partial_fit(X, np.where(late == 9, 2, np.where(late == -1, 3, late)))
    assert announced.classes_.tolist() == [0, 1, 2, 3]
    model = FITTED.fork()
    order = np.argsort(late == 9, kind="stable")
    for rows in np.split(order, 4):
        model.partial_fit(X[rows], late[rows])
    assert model.classes_.tolist() == [-1, 0, 1, 2, 9]  # 2 was a class of the fit
    columns = [model.classes_.tolist().index(label) for label in (0, 1, 9, -1)]
    close(model.decision_function(TEST)[:, columns], announced.decision_function(TEST), **rounding(model))
    assert set(model.predict(X)) <= {-1, 0, 1, 9}


def test_merging_models_that_met_other_classes():
    a = FITTED.fork().partial_fit(X[:100], np.where(Y[:100] == 0, 5, Y[:100]))
    b = FITTED.fork().partial_fit(X[100:], np.where(Y[100:] == 0, 7, Y[100:]))
    both = FITTED.fork().partial_fit(X, np.where(Y == 0, np.where(np.arange(240) < 100, 5, 7), Y))
    same(a.merge(b), both.decision_function(TEST))
    assert a.classes_.tolist() == [0, 1, 2, 5, 7]


def test_what_cannot_have_been_in_is_refused_and_nothing_changes():
    model = FITTED.fork().partial_fit(X, Y)
    before = model.decision_function(TEST)
    far = X[:1] + 50.0
    cases = [
        (far, Y[:1], "squares exceed|never added"),
        (np.r_[X, X], np.r_[Y, Y], "only 240 rows"),
        (X[:1], [8], "never in"),
        (np.repeat(X[Y == 0][:1], 90, axis=0), np.zeros(90, int), "class 0|never added|squares exceed"),
    ]
    for A, b, words in cases:
        with pytest.raises(ValueError, match=words):
            model.forget(A, b)
        np.testing.assert_array_equal(model.decision_function(TEST), before)
    few = FITTED.fork().partial_fit(X[:31], Y[:31]).forget(X[:1], Y[:1])
    with pytest.raises(ValueError, match="never added"):  # the direction that only this row had is gone already
        few.forget(X[:1], Y[:1])


def test_forgetting_with_the_remaining_rows_fits_again():
    model = PILAEClassifier(**NETWORK).fit(X, Y)
    fresh = PILAEClassifier(**NETWORK).fit(X[40:], Y[40:])
    model.forget(X[:40], Y[:40], remaining=(X[40:], Y[40:]))
    np.testing.assert_array_equal(model.decision_function(TEST), fresh.decision_function(TEST))


def test_forgetting_everything_leaves_a_fork():
    model = FITTED.fork().partial_fit(X, Y).forget(X, Y)
    with pytest.raises(ValueError, match="has no rows in it"):
        model.predict(TEST)
    same(model.partial_fit(X, Y))


def test_no_model_is_merged_twice():
    model, part = FITTED.fork().partial_fit(X, Y), FITTED.fork().partial_fit(X, Y)
    before = model.fitted_
    for others in ([model], [part, part]):
        with pytest.raises(ValueError, match="its rows would count twice"):
            model.merge(*others)
    assert model.fitted_ is before


def test_only_one_network_can_be_merged():
    other = PILAEClassifier(**{**NETWORK, "head": SHLN(width=29)}).fit(X[:120], Y[:120])
    with pytest.raises(ValueError, match="another network"):
        FITTED.fork().merge(other)
    with pytest.raises(ValueError, match="not a fitted PILAEClassifier"):
        FITTED.fork().merge(REGRESSOR)
    assert FITTED.network_hash_ == FITTED.fork().network_hash_ == pickle.loads(pickle.dumps(FITTED)).network_hash_
    assert FITTED.network_hash_ != other.network_hash_


def test_refusals_are_sentences():
    with pytest.raises(ValueError, match=r"class_weight='balanced'.*sample_weight"):
        PILAEClassifier(**NETWORK, class_weight="balanced").fit(X, Y).partial_fit(X, Y)
    with pytest.raises(ValueError, match="keep_statistics=True"):
        PILAEClassifier(**NETWORK, keep_statistics=False).fit(X, Y).forget(X[:1], Y[:1])
    with pytest.raises(ValueError, match="head='shln' or head='ridge'"):
        PILAEClassifier(width=[5], head=LogisticRegression()).fit(X, Y).fork()
    with pytest.raises(ValueError, match="of one kind"):
        FITTED.fork().partial_fit(X, Y.astype(str))
    with pytest.raises(ValueError, match="'head' or 'all'"):
        FITTED.fork().partial_fit(X, Y, update="everything")


def test_class_weights_given_as_a_dict():
    weights = {0: 2.0, 1: 0.5}
    model = PILAEClassifier(**NETWORK, class_weight=weights).fit(X[:120], Y[:120])
    by_row = FITTED.fork().partial_fit(X, Y, sample_weight=np.array([2.0, 0.5, 1.0])[Y])
    fork = model.fork()
    head = replace(fork.head_, hidden=by_row.head_.hidden)  # anchors do not depend on weights
    fork.fitted_ = replace(fork.fitted_, head=head, network=by_row.network_)
    same(fork.partial_fit(X, Y), by_row.decision_function(TEST))


def test_leave_one_out_is_stale_until_recalibrated():
    model = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])
    score = model.loo_score_
    assert not model.loo_is_stale_
    model.partial_fit(X[120:], Y[120:])
    assert model.loo_is_stale_
    assert model.loo_score_ == score
    model.recalibrate(X, Y)
    assert not model.loo_is_stale_
    rows, predicted = model.loo_predictions_
    assert sorted(rows) == list(range(240))
    fits = []
    for i in rows[:10]:
        without = np.delete(np.arange(240), i)
        other = FITTED.fork().partial_fit(X[without], Y[without])
        fits.append(other.predict(X[i : i + 1])[0])
    assert np.mean(np.array(fits) == predicted[:10]) >= 0.9  # scales are held, so a row in doubt may differ


def test_update_all_follows_the_decoder_of_all_rows():
    model = PILAEClassifier(**NETWORK, keep_statistics=True).fit(X[:120], Y[:120])
    before = model.layers_[0].weights.copy()
    model.partial_fit(X[120:], Y[120:], update="all")
    layer = model.layers_[0]
    assert not np.allclose(layer.weights, before)
    # the decoder of the first layer is exactly that of all rows under the encoder it began with
    kept = layer.statistics
    H = 1 / (1 + np.exp(-model.network_(X, 0) @ kept.encoder))
    G = H.T @ H
    regularised = G + kept.decoder_ridge * np.trace(G) / len(G) * np.eye(len(G))
    W_d = np.linalg.solve(regularised, H.T @ model.network_(X, 0))
    close(layer.weights, kept.factor * W_d.T, condition=np.linalg.cond(regularised), terms=240)
    assert model.approximate_
    assert model.score(X, Y) > 0.8
    for method in (lambda: model.forget(X[:1], Y[:1]), lambda: model.merge(FITTED)):
        with pytest.raises(ValueError, match="update='all'"):
            method()


def test_solving_is_put_off():
    model = FITTED.fork()
    for rows in np.split(np.arange(240), 60):
        model.partial_fit(X[rows], Y[rows])
        assert not model.fitted_.head.output.solved
    model.predict(TEST)
    assert model.fitted_.head.output.solved


def test_every_array_library(library):
    model = PILAEClassifier(**NETWORK).fit(library(X[:120]), Y[:120]).partial_fit(library(X[120:]), Y[120:])
    model.forget(library(X[:10]), Y[:10])
    out = model.decision_function(library(TEST))
    assert library.owns(out)
    expected = FITTED.fork().partial_fit(X[10:], Y[10:]).decision_function(TEST)
    close(library.numpy(out), expected, **rounding(model))


def test_targets_that_cannot_have_been_in_are_refused():
    model = REGRESSOR.fork().partial_fit(X, Z)
    before = model.predict(TEST)
    for wrong in (np.full((10, 2), 1e6), Z[:10] + 40):
        with pytest.raises(ValueError, match="never added"):
            model.forget(X[:10], wrong)
    for rows, targets in ((X, Z[::-1] * 3), (X * 0.1, Z)):  # as many as there are, but not these
        with pytest.raises(ValueError, match="never added"):
            model.forget(rows, targets)
    np.testing.assert_array_equal(model.predict(TEST), before)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_what_is_refused_does_not_depend_on_the_scale_of_the_targets(scale):
    model = PILAERegressor(**NETWORK).fit(X, Z * scale)
    with pytest.raises(ValueError, match="never added"):
        model.forget(X[:10], (Z[:10] + 40) * scale)
    never = model.fork().partial_fit(X[10:], Z[10:] * scale).predict(TEST)
    close(model.forget(X[:10], Z[:10] * scale).predict(TEST), never, **rounding(model))


def test_class_weights_of_labels_are_refused_in_a_sentence():
    model = PILAEClassifier(**NETWORK).fit(X, np.c_[Y > 0, Y > 1].astype(int)).set_params(class_weight={0: 2.0})
    with pytest.raises(ValueError, match="one label per row"):
        model.partial_fit(X, np.c_[Y > 0, Y > 1].astype(int))


def test_float32_rows_can_be_forgotten():
    A = X.astype(np.float32)
    model = PILAEClassifier(**NETWORK | {"ridge": 1.0}).fit(A, Y)  # a condition that float32 has digits for
    never = model.fork().partial_fit(A[160:], Y[160:]).decision_function(A)
    close(model.forget(A[:160], Y[:160]).decision_function(A), never, **rounding(model))


def test_weights_of_later_calls_weigh_what_they_say():
    model = FITTED.fork().partial_fit(X[:120], Y[:120])
    before = model.decision_function(TEST)
    model.partial_fit(X[120:], Y[120:], sample_weight=np.full(120, 1e-25))
    close(model.decision_function(TEST), before, **rounding(model))


def test_a_failed_first_call_leaves_nothing_behind():
    model = PILAEClassifier(**NETWORK)
    with pytest.raises(ValueError, match="of one kind"):
        model.partial_fit(X, Y, classes=["a", "b"])
    with pytest.raises(ValueError, match="not among the classes given"):
        model.partial_fit(X, Y, classes=[0, 1])
    assert not hasattr(model, "head_")


def test_a_first_block_of_one_class():
    model = PILAEClassifier(**NETWORK).partial_fit(X[Y == 0], Y[Y == 0], classes=[0, 1, 2])
    model.partial_fit(X[Y > 0], Y[Y > 0])
    assert model.score(X, Y) > 0.6
    with pytest.raises(ValueError, match="at least two classes"):
        PILAEClassifier(**NETWORK).partial_fit(X[Y == 0], Y[Y == 0])


def test_an_interrupted_call_changes_nothing(monkeypatch):
    model = FITTED.fork().partial_fit(X, Y)
    before = model.decision_function(TEST)

    def interrupted(self, part, sign):
        self.weight += part.weight
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pilae._engine.moments.Moments._accumulate", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[:50], Y[:50])
    model.head_.output.solved = False
    np.testing.assert_array_equal(model.decision_function(TEST), before)


def test_a_fork_knows_no_single_row():
    fork = REGRESSOR.fork()
    assert fork.head_.output.loo is None
    assert not hasattr(fork, "loo_predictions_")
    fork.partial_fit(X, Z)
    with pytest.raises(ValueError, match="recalibrate"):
        fork.predict_interval(TEST)
    assert fork.recalibrate(X, Z).predict_interval(TEST).shape == (50, 2, 2)


def test_merging_is_refused_where_it_cannot_be_exact():
    balanced = PILAEClassifier(**NETWORK, class_weight="balanced").fit(X, Y)
    with pytest.raises(ValueError, match="balanced"):
        balanced.merge(balanced)
    single = PILAERegressor(**NETWORK).fit(X, Z[:, 0])
    with pytest.raises(ValueError, match="has 1 outputs, this one 2"):
        REGRESSOR.fork().merge(single)


@pytest.mark.parametrize("size", [1e9, 1e12])
@pytest.mark.parametrize("params", [{"head": "ridge"}, {"head": SHLN(width=20, activation="relu")}])
def test_forgetting_something_huge_warns_and_is_not_refused(params, size):
    model = PILAERegressor(depth=0, ridge=1e-4, **params).fit(X, Z)
    before = model.predict(TEST)
    model.partial_fit(size * X[:1], Z[:1])
    with pytest.warns(UserWarning, match=r"few digits.*remaining="):
        model.forget(size * X[:1], Z[:1])
    again = model.fork().partial_fit(X, Z)
    close(again.predict(TEST), before, **rounding(again))


def test_an_interrupted_warning_leaves_the_model_as_it_was():
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-4).fit(X, Z).partial_fit(1e9 * X[:1], Z[:1])
    before = model.predict(TEST)
    with warnings.catch_warnings(action="error"), pytest.raises(UserWarning, match="few digits"):
        model.forget(1e9 * X[:1], Z[:1])
    np.testing.assert_array_equal(model.predict(TEST), before)


def test_forgetting_something_large_is_exact_and_quiet():
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-4).fit(X, Z)
    before = model.predict(TEST)
    model.partial_fit(1e4 * X[:1], 1e4 * Z[:1]).forget(1e4 * X[:1], 1e4 * Z[:1])
    held = 1e4**2 / len(X)  # what the sums held over what they hold now
    close(model.predict(TEST), before, **rounding(model) | {"condition": held * rounding(model)["condition"]})


def test_a_column_whose_varying_rows_are_gone_does_not_come_back_as_noise():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows, far = rng.standard_normal((1000, 3)), np.array([[0.0, 0.0, 1e3 * rng.standard_normal()]])
        rows[:, 2] = rng.standard_normal()
        model = PILAERegressor(depth=0, head="ridge", ridge=1e-6, input_scaling="none")
        model.fit(np.r_[rows, far], np.r_[rows[:, 0], 5.0]).forget(far, [5.0])
        never, asked = model.fork().partial_fit(rows, rows[:, 0]), np.r_[rows, far]
        held = 1e3**2 / len(rows)  # what the sums held over what they hold now
        close(model.predict(asked), never.predict(asked), condition=held, terms=1000)


def test_nothing_of_single_rows_is_left_after_forget(tmp_path):
    model = PILAERegressor(depth=0, head=SHLN(width=20)).fit(X, Z)
    coef = model.fitted_.head.output.coef.copy()
    model.forget(X[:5], Z[:5])
    assert not hasattr(model, "loo_predictions_")
    assert model.fitted_.head.output.loo is None
    assert not model.fitted_.head.output.coef.any()
    with pytest.raises(ValueError, match="recalibrate"):
        model.predict_interval(TEST)
    model.save(tmp_path / "m.pilae", statistics=False)
    again = pilae.load(tmp_path / "m.pilae")
    close(again.predict(TEST), model.predict(TEST), **rounding(model))
    assert not np.array_equal(again.head_.output.coef, coef)
    model.recalibrate(X[5:], Z[5:])
    assert model.predict_interval(TEST).shape == (len(TEST), 2, 2)


def test_probabilities_outlive_forgotten_rows():
    model = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(X, Y)
    temperature = model.head_.calibrated(model.fitted_.targets).temperature
    fresh = PILAEClassifier(depth=0, head=SHLN(width=20)).fit(X, Y).forget(X[:5], Y[:5])
    assert fresh.head_.calibrated(fresh.fitted_.targets).temperature == temperature
    assert fresh.predict_proba(TEST).shape == (len(TEST), 3)


@pytest.mark.parametrize("size", [1e12, 1e16, 1e20, 1e50])
def test_a_huge_target_of_fit_is_told_when_it_is_forgotten(size):
    far = Z.copy()
    far[0] = size
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-3).fit(X, far)
    with pytest.warns(UserWarning, match="few digits"):
        model.forget(X[:1], far[:1])


@pytest.mark.parametrize("weight", [1e-30, 1e-20, 1.0, 1e20, 1e30])
def test_later_rows_weigh_what_those_of_fit_do(weight):
    w, given = np.full(len(X), weight), {"depth": 0, "head": "ridge", "ridge": 1e-3}
    expected = PILAERegressor(**given).fit(X, Z)
    model = PILAERegressor(**given).fit(X, Z, sample_weight=w)
    model.forget(X[:9], Z[:9], sample_weight=w[:9])
    expected.forget(X[:9], Z[:9])
    close(model.predict(TEST), expected.predict(TEST), **rounding(expected))
    model.partial_fit(X[:9] + 1, Z[:9], sample_weight=w[:9])
    expected.partial_fit(X[:9] + 1, Z[:9])
    close(model.predict(TEST), expected.predict(TEST), **rounding(expected))


def test_light_rows_are_not_thrown_away_with_a_heavy_one():
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-3).fit(X, Z)
    model.partial_fit(X[:1], Z[:1], sample_weight=[1e12])
    before = model.predict(TEST)
    with pytest.raises(ValueError, match="no digit is left"):
        model.forget(X[:1], Z[:1], sample_weight=[1e12])
    np.testing.assert_array_equal(model.predict(TEST), before)


def test_rows_of_several_threads_all_arrive():
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-3).fit(X, Y)
    before = model.head_.output.moments.count

    def add(_):
        for _ in range(20):
            model.partial_fit(X[:2], Y[:2])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    assert model.head_.output.moments.count == before + 4 * 20 * 2


@pytest.mark.parametrize("parameters", [{"head": "softmax"}, {"head": "ridge", "keep_statistics": False}])
def test_all_attributes_of_a_model_can_be_listed(parameters):
    model = PILAEClassifier(depth=0, **parameters).fit(X[:60], Y[:60])
    assert "predict" in dir(model)
    assert not hasattr(model, "network_hash_")
    with pytest.raises(AttributeError, match="network_hash_ needs"):
        _ = model.network_hash_


def test_remaining_is_rows_and_targets():
    model = PILAERegressor(depth=0, head="ridge").fit(X, Z)
    with pytest.raises(ValueError, match=r"must be \(X, y\).*has 0 parts"):
        model.forget(X[:1], Z[:1], remaining=())
    expected = PILAERegressor(depth=0, head="ridge").fit(X[1:], Z[1:])
    model.forget(X[:1], Z[:1], remaining=[X[1:], Z[1:]])
    np.testing.assert_array_equal(model.predict(TEST), expected.predict(TEST))


def test_checking_parameters_draws_no_random_number():
    fitted, added = (PILAEClassifier(depth=0, head=SHLN(20), random_state=np.random.RandomState(7)) for _ in range(2))
    fitted.fit(X, Y)
    added.partial_fit(X, Y)
    np.testing.assert_array_equal(added.decision_function(TEST), fitted.decision_function(TEST))
    added.partial_fit(X[:5], Y[:5])
    assert added.random_state.randint(1000) == fitted.random_state.randint(1000)


def test_labels_are_not_merged_into_classes():
    labels = (X.mean(0) < X).astype(int)[:, :3]
    by_class, by_label = (PILAEClassifier(depth=0, head="ridge", ridge=0.1).fit(X, y) for y in (Y, labels))
    for one, other in ((by_class, by_label), (by_label, by_class)):
        before = one.decision_function(TEST)
        with pytest.raises(ValueError, match="Model 1 to merge has"):
            one.merge(other)
        np.testing.assert_array_equal(one.decision_function(TEST), before)


def test_the_head_that_people_look_at_is_solved():
    model = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120]).partial_fit(X[120:], Y[120:])
    coef = model.head_.output.coef.copy()
    model.predict(TEST)
    np.testing.assert_array_equal(model.head_.output.coef, coef)
    assert not model.fork().head_.output.solved  # nothing to solve


@pytest.mark.parametrize("calls", [1, 3])
def test_a_column_that_only_forgotten_rows_had_is_gone_in_float32_too(calls):
    """What float32 rounding leaves of its squares is no variance to be divided by."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2000, 4)).astype("float32")
    A[:, 3] = 0
    A[:37, 3] = rng.uniform(0.2, 1, 37)
    z = A[:, 0] + 0.1 * rng.standard_normal(2000)
    network = PILAERegressor(depth=0, head="ridge", ridge=1e-5, input_scaling="standard").fit(A, z)
    model = network.fork().partial_fit(A, z)
    for rows in np.array_split(np.arange(37), calls):
        model.forget(A[rows], z[rows])
    never = network.fork().partial_fit(A[37:], z[37:])
    close(model.predict(A), never.predict(A), dtype="float32", terms=len(A))  # of three columns that are independent
