"""Streams: rows that lose weight with age, scores before learning, a row at a time."""

import copy
import pickle

import matplotlib.figure
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import r2_score

import pilae
from helpers import blobs, close, rounding, tolerance
from pilae import SHLN, PILAEClassifier, PILAERegressor, scan_blocks
from pilae._engine.running import RunningScore
from pilae._estimators import update
from pilae._network.output import standardised
from pilae.plot import StreamDisplay

X, Y = blobs(240)
Z = np.stack([X[:, 0] * 3 + Y, np.sin(X[:, 1])], axis=1)
TEST, _ = blobs(50, seed=1)
NETWORK = {"width": [6], "ridge": 1e-3, "head": SHLN(width=30)}
FITTED = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])


def features(model, rows):
    return model.head_.hidden(model.network_(rows))


def weighted_fit(model, rows, targets, weight, first):
    """What the definition says: min sum w (z - f v)^2 + ridge sum(w) |v|^2 on features that are centred by their
    weighted mean and divided by the spread they have in the `first` rows; for the rows of TEST."""
    F, w = features(model, rows), np.asarray(weight)[:, None]
    spread = np.maximum(features(model, first).std(axis=0), 0.1)
    mean, mean_z = (w * F).sum(axis=0) / w.sum(), (w * targets).sum(axis=0) / w.sum()
    A, B = (F - mean) / spread, targets - mean_z
    G = A.T @ (w * A) + model.ridge_ * w.sum() * np.eye(A.shape[1])
    return (features(model, TEST) - mean) / spread @ np.linalg.solve(G, A.T @ (w * B)) + mean_z


def fitted():
    return copy.deepcopy(FITTED)


@given(cuts=st.lists(st.integers(121, 239), max_size=4, unique=True), decay=st.floats(0.3, 1.0, exclude_max=True))
def test_decay_is_a_fit_with_weights_by_age(cuts, decay):
    model = fitted()
    starts = [0, 120, *sorted(cuts)]
    age = np.zeros(240)
    for start, stop in zip(starts[1:], [*starts[2:], 240], strict=True):
        model.partial_fit(X[start:stop], Y[start:stop], decay=decay)
        age[:start] += 1
    expected = weighted_fit(model, X, np.eye(3)[Y], decay**age, X[:120])
    close(model.decision_function(TEST), expected, **rounding(model))


@given(cuts=st.lists(st.integers(121, 239), max_size=4, unique=True), half_life=st.floats(5, 500))
def test_half_life_is_a_fit_with_weights_by_row(cuts, half_life):
    model = PILAERegressor(**NETWORK).fit(X[:120], Z[:120])
    for rows in np.split(np.arange(120, 240), np.sort(cuts).astype(int) - 120):
        model.partial_fit(X[rows], Z[rows], half_life=half_life)
    age = np.r_[np.full(120, 120), np.arange(119, -1, -1)]
    expected = weighted_fit(model, X, Z, 0.5 ** (age / half_life), X[:120])
    close(model.predict(TEST), expected, **rounding(model))


def test_a_first_call_with_half_life_and_weights_of_rows():
    weight = np.random.default_rng(0).uniform(0.5, 2, 240)
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-3)
    model.partial_fit(X[:90], Z[:90], sample_weight=weight[:90], half_life=40)
    for k in range(90, 240, 30):
        model.partial_fit(X[k : k + 30], Z[k : k + 30], sample_weight=weight[k : k + 30], half_life=40)
    w = weight * 0.5 ** (np.arange(239, -1, -1) / 40)
    first = w[:90] / w[:90].sum()
    spread = np.sqrt(first @ (model.network_(X[:90]) - first @ model.network_(X[:90])) ** 2)
    F = model.network_(X)
    mean, mean_z = w @ F / w.sum(), w @ Z / w.sum()
    A = (F - mean) / spread
    G = A.T @ (w[:, None] * A) + model.ridge_ * w.sum() * np.eye(A.shape[1])
    V = np.linalg.solve(G, A.T @ (w[:, None] * (Z - mean_z)))
    expected = (model.network_(TEST) - mean) / spread @ V + mean_z
    close(model.predict(TEST), expected, **rounding(model))


def test_blocks_and_sources_fade_as_arrays_do():
    def blocks():
        for start in range(120, 240, 17):
            yield X[start : min(start + 17, 240)], Y[start : min(start + 17, 240)]

    expected = fitted().partial_fit(X[120:], Y[120:], half_life=30)
    streamed = fitted().partial_fit(scan_blocks(blocks), half_life=30)
    small = fitted().set_params(block_rows=11).partial_fit(X[120:], Y[120:], half_life=30)
    for model in (streamed, small):
        close(model.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))


def test_a_class_that_came_late_fades_too():
    model = fitted().partial_fit(X[120:180], np.full(60, 7), decay=0.5).partial_fit(X[180:], Y[180:], decay=0.5)
    labels = np.r_[Y[:120], np.full(60, 7), Y[180:]]
    indicators = (labels[:, None] == np.array([0, 1, 2, 7])).astype(float)
    weight = np.repeat([0.25, 0.5, 1.0], [120, 60, 60])
    expected = weighted_fit(model, X, indicators, weight, X[:120])
    close(model.decision_function(TEST), expected, **rounding(model))


def test_forgetting_rows_of_an_age():
    model = fitted().partial_fit(X[120:180], Y[120:180], decay=0.5).partial_fit(X[180:], Y[180:], decay=0.5)
    with pytest.raises(ValueError, match="give forget the 'age'"):
        model.forget(X[:10], Y[:10])
    with pytest.raises(ValueError, match="one number of at least 0 a row"):
        model.forget(X[:10], Y[:10], age=[1, 2])
    model.forget(X[:10], Y[:10], age=2)
    rows, age = np.r_[120:130, 180:190], np.repeat([1, 0], 10)
    model.forget(X[rows], Y[rows], age=age)
    stay = np.setdiff1d(np.arange(240), np.r_[0:10, rows])
    weight = np.repeat([0.25, 0.5, 1.0], [120, 60, 60])[stay]
    expected = weighted_fit(model, X[stay], np.eye(3)[Y[stay]], weight, X[:120])
    close(model.decision_function(TEST), expected, **rounding(model))
    with pytest.raises(ValueError, match="leave 'age' out"):
        fitted().forget(X[:10], Y[:10], age=0)
    model.partial_fit(X[:5], Y[:5], decay=0.9)
    with pytest.raises(ValueError, match="several rates"):
        model.forget(X[:5], Y[:5], age=0)


def test_merging_models_that_fade_is_refused_and_their_forks_do_not_fade():
    model = fitted().partial_fit(X[120:], Y[120:], decay=0.5)
    for one, other in ((model, FITTED), (fitted(), model)):
        with pytest.raises(ValueError, match="merge first, and let rows fade afterwards"):
            one.merge(other)
    plain = FITTED.fork().partial_fit(X, Y).decision_function(TEST)
    merged = model.fork().partial_fit(X[:100], Y[:100]).merge(model.fork().partial_fit(X[100:], Y[100:]))
    close(merged.decision_function(TEST), plain, **rounding(merged))


def test_refusals_are_sentences_and_change_nothing():
    model = fitted()
    before = model.fitted_
    for wrong, words in (
        ({"decay": 0.5, "half_life": 10}, "not both"),
        ({"decay": 0.0}, "above 0 and at most 1"),
        ({"decay": 1.5}, "above 0 and at most 1"),
        ({"decay": "fast"}, "above 0 and at most 1"),
        ({"half_life": -1}, "positive number of rows"),
        ({"half_life": np.nan}, "positive number of rows"),
        ({"decay": 0.9, "update": "all"}, "cannot fade"),
        ({"current": "x"}, "'current' must be True or False"),
    ):
        with pytest.raises(ValueError, match=words):
            model.partial_fit(X, Y, **wrong)
    assert model.fitted_ is before


def test_saved_and_loaded_it_goes_on_fading(tmp_path):
    model = fitted().partial_fit(X[120:180], Y[120:180], decay=0.5)
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae")
    outputs = [m.partial_fit(X[180:], Y[180:], decay=0.5).decision_function(TEST) for m in (model, again)]
    np.testing.assert_array_equal(*outputs)
    with pytest.raises(ValueError, match="give forget the 'age'"):
        again.forget(X[:5], Y[:5])


def test_every_array_library_fades(library):
    model = (
        PILAEClassifier(**NETWORK).fit(library(X[:120]), Y[:120]).partial_fit(library(X[120:]), Y[120:], half_life=50)
    )
    expected = fitted().partial_fit(X[120:], Y[120:], half_life=50)
    close(library.numpy(model.decision_function(library(TEST))), expected.decision_function(TEST), **rounding(expected))


def test_nothing_winds_up_over_a_million_rows():
    """Two of six columns fall silent after the first tenth: their coefficients fade, nothing overflows or blows up, and
    what is remembered of the largest sums fades too. The model stays the weighted fit of the rows that still weigh
    something; when the columns come back they are learnt anew."""
    rng = np.random.default_rng(0)
    size, half_life, true = 10_000, 500.0, np.array([1.0, -2.0, 0.5, 1.0, 3.0, -1.0])

    def rows(silent):
        A = rng.standard_normal((size, 6))
        A[:, 4:] *= not silent
        return A, A @ true + 0.1 * rng.standard_normal(size)

    A, b = rows(silent=False)
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-4, input_scaling="none").fit(A, b)
    last = A
    for k in range(99):
        A, b = rows(silent=k >= 9)
        last = np.r_[last[-2 * size :], A]
        model.partial_fit(A, b, half_life=half_life)
    moments = model.head_.output.moments
    coef = model.head_.output.coef[:, 0]
    np.testing.assert_allclose(coef[:4], true[:4], atol=0.02)
    assert np.abs(coef[4:]).max() < 1e-12  # long faded
    assert moments.weight < 2 * half_life  # of a million rows
    assert float(moments.largest.max()) < 3 * half_life
    assert float(np.abs(moments.aa[4:, :]).max()) < 1e-100
    w = 0.5 ** (np.arange(len(last) - 1, -1, -1) / half_life)  # those before weigh less than their rounding
    centred = last - w @ last / w.sum()
    G = centred.T @ (w[:, None] * centred)
    close(moments.gram(centred=True), G, terms=len(last))
    model.partial_fit(*rows(silent=False), half_life=half_life)
    np.testing.assert_allclose(model.head_.output.coef[:, 0], true, atol=0.02)


def test_means_that_run_away_are_followed():
    """A column that counts upwards, far beyond its spread within a half-life, keeps its digits."""
    rng = np.random.default_rng(0)
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-6, input_scaling="none")
    A = np.zeros((100, 2))
    for k in range(400):
        step, before = rng.standard_normal(100), A
        A = np.stack([1e5 * k + step, rng.standard_normal(100)], axis=1)
        model.partial_fit(A, 2 * step + A[:, 1], decay=0.01)
    moments = model.head_.output.moments
    w = np.repeat([0.01, 1.0], 100)  # what came before the last two calls weighs a ten-thousandth
    last = np.r_[before, A]
    spread = w @ (last - w @ last / w.sum()) ** 2 / w.sum()
    np.testing.assert_allclose(moments.variance_a(), spread, rtol=0.1)
    np.testing.assert_allclose(moments.mean_a, moments.shift_a, atol=1e6)  # a thousandth of the way


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("current", [False, True])
def test_one_absurd_row_is_got_over(current, dtype):
    """The neurons that it excites are lost until it has faded; all others still answer."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((2400, 6)).astype(dtype)
    labels = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    network = {"depth": 0, "ridge": 1e-2, "random_state": 0}
    head = SHLN(width=100, activation="relu", anchors="pairs", direct_links=False)
    model = PILAEClassifier(**network, head=head, dtype=dtype).fit(rows[:1000], labels[:1000])
    model.partial_fit(rows[1000:1100], labels[1000:1100], half_life=200)
    before = model.score(rows[1400:], labels[1400:])
    absurd = 1e30 if dtype == "float64" else 1e12
    model.partial_fit(np.full((1, 6), absurd, dtype), [1], half_life=200, current=current)
    for k in range(1100, 1400, 10):
        model.partial_fit(rows[k : k + 10], labels[k : k + 10], half_life=200, current=current)
    assert model.score(rows[1400:], labels[1400:]) > before - 0.1 > 0.7


def test_a_scale_is_not_that_of_an_absurd_row():
    """A column that was constant until something absurd came counts again when that has faded."""
    rows, targets = np.random.default_rng(0).standard_normal((600, 3)), np.arange(600) % 2
    rows[:300, 2] = 0.0
    rows[300:, 2] += targets[300:] * 6
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-3, input_scaling="none")
    model.fit(rows[:200], targets[:200])
    model.partial_fit(np.array([[0.0, 0.0, 1e9]]), [0], half_life=2)
    model.partial_fit(rows[200:], targets[200:], half_life=2).partial_fit(rows[300:], targets[300:], half_life=100)
    assert model.score(rows[300:], targets[300:]) > 0.95


def test_one_scale_is_held_for_each_feature_also_for_one_that_varies_late():
    A = np.c_[X[:, :2], np.zeros(240)]
    late = A.copy()
    late[:, 2] = X[:, 2]
    target = late @ [1.0, 1.0, 5.0]
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-6, input_scaling="none").fit(A[:120], A[:120, 0])
    for _ in range(30):
        model.partial_fit(late, target, decay=0.5)
    assert np.abs(model.predict(late) - target).max() < 1e-2


# ------------------------------------------------------------------------------------------------- test, then train


def test_rows_are_predicted_before_they_are_learnt():
    model, reference = fitted(), fitted()
    hits = []
    for k in range(120, 240, 12):
        rows = slice(k, k + 12)
        hits += (reference.predict(X[rows]) == Y[rows]).tolist()
        reference.partial_fit(X[rows], Y[rows])
        model.partial_fit(X[rows], Y[rows], test_first=50)
        np.testing.assert_array_equal(model.stream_.last, hits[-12:])
        w = 0.5 ** (np.arange(len(hits) - 1, -1, -1) / 50)
        assert abs(model.stream_score_ - w @ hits / w.sum()) < tolerance(terms=len(hits))
    np.testing.assert_array_equal(model.decision_function(TEST), reference.decision_function(TEST))
    assert model.stream_.rows.tolist() == list(range(12, 121, 12))
    assert model.stream_.scores[-1] == model.stream_score_
    assert not hasattr(model.fork(), "stream_score_")


def test_a_class_nobody_knew_is_predicted_wrongly_once():
    model = fitted().partial_fit(X[120:140], np.full(20, 7), test_first=True)
    assert model.stream_score_ == 0.0
    expected = (fitted().partial_fit(X[120:140], np.full(20, 7)).predict(X[140:]) == Y[140:]).astype(float)
    np.testing.assert_array_equal(model.partial_fit(X[140:], Y[140:], test_first=True).stream_.last, expected)


def test_numbers_have_a_running_r2_and_weights_count():
    weight = np.random.default_rng(0).uniform(0.5, 2, 240)
    model = PILAERegressor(**NETWORK).fit(X[:120], Z[:120] + 1e6)
    reference, said = copy.deepcopy(model), []
    for k in range(120, 240, 30):
        rows = slice(k, k + 30)
        said.append(reference.predict(X[rows]))
        for each, more in ((reference, {}), (model, {"test_first": 40})):
            each.partial_fit(X[rows], Z[rows] + 1e6, sample_weight=weight[rows], half_life=100, **more)
    w = weight[120:] * 0.5 ** (np.arange(119, -1, -1) / 40)
    expected = r2_score(Z[120:] + 1e6, np.concatenate(said), sample_weight=w)
    close(model.stream_score_, expected, condition=1e6 / Z.std())
    assert model.stream_.last.shape == (30,)
    assert (model.stream_.last <= 0).all()


@pytest.mark.parametrize("rows", [1, 20, 60])
def test_far_rows_are_scored_as_they_are_predicted(rows):
    """Answers to far rows are none beyond the targets that were seen."""
    model, z = PILAERegressor(**NETWORK).fit(X[:120], Z[:120, 0]), Z[120 : 120 + rows, 0]
    far = X[120 : 120 + rows] * 30
    said = model.predict(far)
    model.partial_fit(far, z, test_first=True)
    close(np.ravel(model.stream_.last), -((said - z) ** 2))


def test_numbers_on_another_scale_are_scored_in_their_own_units():
    heavy = np.sinh(3 * X[:, 0] / X[:, 0].std())
    model = PILAERegressor(depth=0, head="ridge", target_scaling="asinh").fit(X[:120], heavy[:120])
    expected = r2_score(heavy[120:], model.predict(X[120:]), sample_weight=0.5 ** (np.arange(119, -1, -1) / 50))
    one_by_one = copy.deepcopy(model)
    model.partial_fit(X[120:], heavy[120:], test_first=50)
    close(model.stream_score_, expected, terms=120)
    for k in range(120, 240):
        one_by_one.partial_fit(X[k : k + 1], heavy[k : k + 1])
    close(one_by_one.predict(TEST), model.predict(TEST), **rounding(model))


def test_several_labels_are_right_together():
    labels = np.stack([Y == 0, Y > 0], axis=1).astype(int)
    model = PILAEClassifier(**NETWORK).fit(X[:120], labels[:120])
    expected = np.all(model.predict(X[120:]) == labels[120:], axis=1)
    np.testing.assert_array_equal(model.partial_fit(X[120:], labels[120:], test_first=True).stream_.last, expected)


def test_a_first_call_and_an_empty_fork_have_nothing_to_predict_with():
    for model in (PILAEClassifier(**NETWORK), FITTED.fork()):
        model.partial_fit(X[:120], Y[:120], test_first=True)
        assert np.isnan(model.stream_score_)
        with pytest.raises(ValueError, match="No row of this model was predicted"):
            StreamDisplay.from_estimator(model)
        assert model.partial_fit(X[120:], Y[120:], test_first=True).stream_.count == 120
    with pytest.raises(AttributeError, match=r"which partial_fit\(X, y, test_first=True\) does"):
        FITTED.stream_score_  # noqa: B018


def test_what_is_in_is_said():
    assert fitted().rows_in_ == (120, 120.0, None, None, None)
    assert FITTED.fork().rows_in_.rows == 0
    model = fitted().partial_fit(X[120:123], Y[120:123], decay=0.5)
    assert model.rows_in_ == (123, 63.0, None, 0.5, None)
    model = fitted().partial_fit(X[120:], Y[120:], half_life=300)
    assert model.rows_in_.half_life == 300
    assert FITTED.fork().partial_fit(X, Y, window=50).rows_in_[:3] == (50, 50.0, 50)
    with pytest.raises(AttributeError, match="it keeps no sums of rows"):
        PILAEClassifier(**NETWORK, keep_statistics=False).fit(X, Y).rows_in_  # noqa: B018


def test_the_curve_is_bounded_and_even():
    score = RunningScore(10.0)
    for k in range(5000):
        score = score.with_hits(np.array([k % 2 == 0]), None)
    assert 512 <= len(score.rows) <= 1024
    assert set(np.diff(score.rows)) == {8}
    display = StreamDisplay.computed(score)
    assert display.rows[-1] == score.count == 5000
    assert display.scores[-1] == score.score


def test_a_stream_is_drawn_saved_and_refused(tmp_path):
    model = fitted()
    with pytest.raises(ValueError, match="test_first=True"):
        StreamDisplay.from_estimator(model)
    with pytest.raises(ValueError, match="a bool or a half-life in rows"):
        model.partial_fit(X, Y, test_first=-3)
    for k in range(3):
        model.partial_fit(X[k::3], Y[k::3], test_first=True)
    display = StreamDisplay.from_estimator(model, ax=matplotlib.figure.Figure().subplots())
    assert len(display.ax_.lines[0].get_xdata()) == 3
    assert display.ax_.get_ylabel().startswith("accuracy before learning")
    numbers = PILAERegressor(**NETWORK).fit(X, Z).partial_fit(X, Z, test_first=True)
    StreamDisplay.from_estimator(numbers, ax=display.ax_, name="numbers", color="#c8553d")
    assert display.ax_.get_ylabel().startswith("R² before learning")
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == ["numbers"]
    assert display.ax_.lines[1].get_color() == "#c8553d"
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae")
    assert again.stream_score_ == model.stream_score_
    assert again.partial_fit(X, Y, test_first=True).stream_.count == 480


# ------------------------------------------------------------------------------------------------- a row at a time


def row_by_row(model, rows, **how):
    for k in rows:
        model.partial_fit(X[k : k + 1], Y[k : k + 1], **how)
    return model


@pytest.mark.parametrize("how", [{}, {"decay": 0.98}, {"half_life": 30.0}], ids=["kept", "decay", "half_life"])
def test_rows_that_wait_for_the_sums_are_in_them(how):
    start = fitted().partial_fit(X[:40], Y[:40], **how)
    model = row_by_row(copy.deepcopy(start), range(120, 240), **how)
    assert model.fitted_.head.output.waiting.count > 60
    at_once = copy.deepcopy(start)
    for k in range(120, 240):
        rows, targets = at_once._later_rows(at_once.fitted_, "partial_fit", X[k : k + 1], Y[k : k + 1], None)
        fading = None if not how else at_once.fitted_.fading
        at_once.fitted_ = update.added(at_once.fitted_, rows, targets, fading=fading)
    close(model.decision_function(TEST), at_once.decision_function(TEST), **rounding(at_once))
    assert model.head_.output.moments.count == at_once.head_.output.moments.count == 280
    assert model.fitted_.head.output.waiting is None


def test_more_rows_than_wait_are_folded_in():
    rows = np.arange(900) % 240
    model = row_by_row(fitted(), rows)
    assert 0 < model.fitted_.head.output.waiting.count < 256
    expected = fitted().partial_fit(X[rows], Y[rows])
    close(model.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))


def test_rows_that_wait_are_forgotten_merged_and_copied():
    model = row_by_row(fitted(), range(120, 140))
    other = row_by_row(FITTED.fork().partial_fit(X[140:180], Y[140:180]), range(180, 200))
    for each in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model):
        assert each.head_.output.moments.count == 140
        each.merge(other).forget(X[130:190], Y[130:190])
        stay = np.r_[0:130, 190:200]
        expected = FITTED.fork().partial_fit(X[stay], Y[stay])
        close(each.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))


def test_what_waits_is_not_the_callers_array():
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-3, input_scaling="none").fit(X[:120], Z[:120])
    expected = copy.deepcopy(model).partial_fit(X[120:240], Z[120:240]).predict(TEST)
    row, target, weight = X[:1].copy(), Z[:1].copy(), np.ones(1)
    for k in range(120, 240):
        row[:], target[:], weight[:] = X[k], Z[k], 1.0
        model.partial_fit(row, target, sample_weight=weight)
        weight[:] = 7.0
    row[:] = target[:] = 1e6
    close(model.predict(TEST), expected, **rounding(model))


def test_rows_too_large_to_wait_are_refused_when_they_come():
    model = PILAERegressor(depth=0, head="ridge", ridge=1e-3, input_scaling="none").fit(X[:120], Z[:120, 0])
    before = model.fitted_
    with pytest.raises(ValueError, match=r"too large|overflow|beyond"):
        model.partial_fit(np.full((1, X.shape[1]), 1e300), Z[:1, 0])
    assert model.fitted_ is before
    for wrong in (np.full((1, X.shape[1]), np.inf), X[:1, :2]):
        with pytest.raises(ValueError, match=r"infinity|features"):
            model.partial_fit(wrong, Z[:1, 0])
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(X[:1], np.array([np.nan]))
    with pytest.raises(ValueError, match="has 2 columns"):
        model.partial_fit(X[:1], Z[:1])


@pytest.mark.parametrize("how", [{}, {"half_life": 2000.0}], ids=["kept", "half_life"])
def test_a_solution_that_follows_its_rows(how):
    """Between whole solves it is the solution with lambda of the last one: within what 1% of lambda changes."""
    many = np.arange(3000) % 240
    model = fitted().partial_fit(X[many], Y[many], **how).partial_fit(X[:1], Y[:1], current=True, **how)
    stale = copy.deepcopy(model)
    for k in range(1, 20):
        rows = slice(k, k + 1)
        model.partial_fit(X[rows], Y[rows], current=True, **how)
        stale.partial_fit(X[rows], Y[rows], **how)
        output = model.fitted_.head.output
        assert len(output.following.vectors) == k
        assert not output.solved
        moments = output.sums()
        _, G, C = standardised(moments, model.fitted_.head.hidden, output.following.inverse)
        held = output.following.faded * output.following.first * model.ridge_
        A, wanted = G + held * np.eye(len(G)), model.ridge_ * moments.weight
        V = np.linalg.solve(A, C)
        if how:  # what has faded of lambda is put back
            V -= (1 - held / wanted) * held * np.linalg.solve(A, V)
        V *= output.following.inverse[:, None]
        F = features(copy.deepcopy(model), TEST)
        expected = (F - moments.mean_a) @ V + moments.mean_b
        close(model.decision_function(TEST), expected, **rounding(copy.deepcopy(model)))
    exact, near = stale.decision_function(TEST), model.decision_function(TEST)
    assert 0 < np.abs(near - exact).max() < 0.01 * np.abs(exact).max()
    close(model.head_.output(F), exact, **rounding(stale))  # whoever looks at it has it solved
    close(model.decision_function(TEST), exact, **rounding(stale))


def test_the_factor_is_made_again_when_the_weights_have_moved():
    model = fitted().partial_fit(X, Y)  # 360 rows
    lengths = []
    for k in range(20):
        model.partial_fit(X[k : k + 1], Y[k : k + 1], current=True, test_first=True)
        vectors = model.fitted_.head.output.following.vectors
        lengths.append(0 if vectors is None else len(vectors))
    assert max(lengths) == 3  # of 361 rows
    assert lengths.count(0) >= 4
    expected = fitted().partial_fit(X, Y).partial_fit(X[:20], Y[:20])
    close(
        model.partial_fit(X[20:60], Y[20:60]).decision_function(TEST),
        expected.partial_fit(X[20:60], Y[20:60]).decision_function(TEST),
        **rounding(expected),
    )


def test_rows_are_followed_although_others_fade():
    """With a half-life of 30 rows the sum of weights is soon that of 43: one row moves lambda by more than 1% of it."""
    model, followed = fitted().partial_fit(X[120:], Y[120:], half_life=30), []
    for row in np.random.default_rng(0).integers(0, 240, (120, 1)):
        model.partial_fit(X[row], Y[row], half_life=30, current=True)
        following = model.fitted_.head.output.following
        followed.append(0 if following.vectors is None else len(following.vectors))
        moments = model.fitted_.head.output.sums()
        _, G, C = standardised(moments, model.fitted_.head.hidden, following.inverse)
        values, directions = np.linalg.eigh(G)
        exact = directions.T @ C / (values + model.ridge_ * moments.weight)[:, None]
        alive = np.where(following.inverse > 0, following.inverse, 1.0)
        found = directions.T @ (following.solution()[0] / alive[:, None])
        rounded = tolerance(condition=1 / model.ridge_, terms=len(G)) * np.abs(exact).max()
        assert np.all(np.abs(found - exact) <= 0.0125 * np.abs(exact) + rounded)
    assert followed.count(0) <= 20
    assert max(followed) >= 9


def test_an_absurd_row_is_not_followed():
    model = PILAEClassifier(depth=0, head="ridge", ridge=1e-3).partial_fit(X, Y, half_life=200)
    for k in range(3):
        model.partial_fit(X[k : k + 1], Y[k : k + 1], half_life=200, current=True)
    assert len(model.fitted_.head.output.following.vectors) == 2
    model.partial_fit(np.full((1, X.shape[1]), 1e30), Y[:1], half_life=200, current=True)
    assert model.fitted_.head.output.following.vectors is None
    close(model.decision_function(TEST), copy.deepcopy(model).decision_function(TEST))


def test_a_solution_that_follows_is_saved_exactly(tmp_path):
    many = np.arange(3000) % 240
    model = fitted().partial_fit(X[many], Y[many])
    for k in range(9):
        model.partial_fit(X[k : k + 1], Y[k : k + 1], current=True)
    expected = fitted().partial_fit(X[many], Y[many]).partial_fit(X[:9], Y[:9])
    assert np.abs(model.decision_function(TEST) - expected.decision_function(TEST)).max() > 1e-8  # it follows them
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae")
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        close(copied.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))
    close(again.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))
    assert again.head_.output.moments.count == 3129
