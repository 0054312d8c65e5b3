"""fit(X, y, groups=...): what is chosen, scored and calibrated where rows belong together."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import pilae
from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor, scan_blocks
from pilae._arrays import NUMPY
from pilae._data.groups import ALONE, choosing, give_groups, in_groups, numbered, read_groups, spans, spread
from pilae._data.halves import MIDDLE, halves_of
from pilae._data.keys import row_keys
from pilae._data.rows import Rows
from pilae._network.fit_output import HeadInput, OutputSpec
from pilae._network.network import FeatureCache, Network
from pilae._network.neurons import LEAST_SPREAD
from pilae._network.solving import fit_output
from pilae._network.survey import SurveySpec, rows_to_score, survey_rows


def patients(count=60, rows=8, d=6, seed=0):
    """Rows of patients: each is near his own place, and ill or not. One column says a little about that, and the place
    says nothing about another patient."""
    rng = np.random.default_rng(seed)
    group, ill = np.repeat(np.arange(count), rows), rng.integers(0, 2, count)
    X = (1.5 * rng.standard_normal((count, d)))[group] + 0.2 * rng.standard_normal((count * rows, d))
    X[:, 0] += 0.7 * ill[group]
    return X, ill[group], group


def without_each(model, X, Z, w, group):
    """Outputs for each row of an output layer solved without its group: means estimated anew, the rest held."""
    F = model.head_.features(model.network_(X))
    mean = w @ F / w.sum()
    scale = np.sqrt(w @ (F - mean) ** 2 / w.sum())
    scale = np.where(scale > 0, np.maximum(scale, LEAST_SPREAD * (model.head_.hidden is not None)), 0)
    F, outputs = (F - mean) / np.where(scale > 0, scale, np.inf), np.empty(Z.shape)
    for g in np.unique(group):
        gone = group == g
        ridge = Ridge(alpha=model.ridge_ * w.sum()).fit(F, Z, sample_weight=np.where(gone, 0.0, w))
        outputs[gone] = ridge.predict(F[gone]).reshape(-1, Z.shape[1])
    return outputs


# ---------------------------------------------------------------------------------------------- exactly


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("head", ["ridge", SHLN(width=15)])
def test_the_classifier_scores_whole_groups(head, weighted):
    X, y = blobs(90)
    group = np.random.default_rng(1).integers(0, 12, 90)
    w = np.random.default_rng(0).uniform(0.5, 3.0, 90) if weighted else np.ones(90)
    model = PILAEClassifier(width=[5], ridge=0.01, head=head).fit(X, y, w if weighted else None, groups=group)
    rows = model.loo_predictions_.rows
    assert sorted(rows) == list(range(90))
    close(model.head_.output.loo.outputs, without_each(model, X, np.eye(3)[y], w, group)[rows], **rounding(model))


def test_the_regressor_scores_whole_groups():
    X, y = blobs(80)
    group = np.arange(80) // 7
    Z = np.stack([X[:, 0] * 100 + y, np.sin(X[:, 1])], axis=1)
    model = PILAERegressor(depth=0, ridge=0.01, head=SHLN(width=20)).fit(X, Z, groups=group)
    rows, predicted = model.loo_predictions_
    outputs = without_each(model, X, Z, np.ones(80), group)
    close(predicted, outputs[rows], **rounding(model))
    chooser = model.head_.output.loo.chooser
    Z, outputs = Z[rows][chooser > 0], outputs[rows][chooser > 0]
    r2 = 1 - np.sum((Z - outputs) ** 2, axis=0) / np.sum((Z - Z.mean(0)) ** 2, axis=0)
    close(model.loo_score_, r2.mean(), **rounding(model))


def test_groups_larger_than_a_block_are_read_in_pieces():
    X, y = blobs(900)
    group = np.arange(900) % 3
    whole = PILAERegressor(depth=0, ridge=0.01, head=SHLN(width=30)).fit(X, y, groups=group)
    pieces = PILAERegressor(depth=0, ridge=0.01, head=SHLN(width=30), block_rows=64).fit(X, y, groups=group)
    np.testing.assert_array_equal(pieces.loo_predictions_.rows, whole.loo_predictions_.rows)
    close(pieces.loo_predictions_.predicted, whole.loo_predictions_.predicted, **rounding(whole))


def test_the_width_path_is_that_of_groups():
    X, y, group = patients(40)
    model = PILAERegressor(depth=0, head=SHLN()).fit(X, y, groups=group)
    by_row = PILAERegressor(depth=0, head=SHLN()).fit(X, y)
    lowest, lowest_by_row = (each.width_path_.errors[each.ridge_].min() for each in (model, by_row))
    assert lowest > 5 * lowest_by_row
    assert len(model.width_path_.errors[model.ridge_]) == len(by_row.width_path_.errors[by_row.ridge_])


@pytest.mark.parametrize("search", [False, True])
@pytest.mark.parametrize("n", [150, 1300])
def test_a_group_for_each_row_is_no_groups(n, search):
    X, y = blobs(n)
    how = {} if search else {"depth": 0}
    plain = PILAEClassifier(**how).fit(X, y)
    grouped = PILAEClassifier(**how).fit(X, y, groups=[f"patient {k}" for k in range(n)])
    assert grouped.network_hash_ == plain.network_hash_
    assert grouped.loo_score_ == plain.loo_score_
    np.testing.assert_array_equal(grouped.predict_proba(X), plain.predict_proba(X))


def test_repeated_rows_of_a_group_are_a_weight():
    X, y = blobs(90)
    group = np.arange(90) // 6
    times = np.random.default_rng(0).integers(1, 4, 90)
    weighted = PILAEClassifier(depth=0).fit(X, y, times.astype(float), groups=group)
    repeated = PILAEClassifier(depth=0).fit(
        *(np.repeat(each, times, axis=0) for each in (X, y)), groups=np.repeat(group, times)
    )
    assert weighted.head_width_ == repeated.head_width_
    close(weighted.loo_score_, repeated.loo_score_, **rounding(repeated))
    close(weighted.predict_proba(X), repeated.predict_proba(X), **rounding(repeated))


def test_labels_and_order_do_not_matter():
    X, y, group = patients(30)
    model = PILAEClassifier().fit(X, y, groups=group)
    order = np.random.default_rng(0).permutation(len(X))
    names = np.array([f"{(7 * g) % 31} Strasse" for g in group], dtype=object)
    other = PILAEClassifier().fit(X[order], y[order], groups=names[order])
    assert other.search_[-1]["chosen"] == model.search_[-1]["chosen"]
    assert other.head_width_ == model.head_width_
    close(other.loo_score_, model.loo_score_, terms=len(X))


# ---------------------------------------------------------------------------------------- what it is for


@pytest.mark.parametrize("count", [60, 400])
def test_the_score_is_that_of_new_groups(count):
    X, y, group = patients(count)
    X_new, y_new, _ = patients(500, seed=1)
    by_row, model = PILAEClassifier().fit(X, y), PILAEClassifier().fit(X, y, groups=group)
    test = model.score(X_new, y_new)
    assert by_row.loo_score_ > 0.95
    judging = count / 2  # groups that err together, of two classes
    assert abs(model.loo_score_ - test) < 2 * (0.25 / judging) ** 0.5
    assert test > by_row.score(X_new, y_new) - 2 * (2 * 0.25 / 500) ** 0.5


def test_probabilities_and_intervals_are_those_of_new_groups():
    X, y, group = patients(150)
    X_new, y_new, _ = patients(300, seed=1)
    model, by_row = PILAEClassifier().fit(X, y, groups=group), PILAEClassifier().fit(X, y)

    def log_loss(each):
        return -np.log(np.maximum(each.predict_proba(X_new)[np.arange(len(y_new)), y_new], 1e-15)).mean()

    assert log_loss(model) < 0.75 < log_loss(by_row)
    rng = np.random.default_rng(2)
    of_group = rng.standard_normal(150)[group] + X[:, 0]
    of_new = np.repeat(rng.standard_normal(300), 8) + X_new[:, 0]
    low, high = PILAERegressor().fit(X, of_group, groups=group).predict_interval(X_new).T
    assert 0.8 < np.mean((low <= of_new) & (of_new <= high)) < 0.97
    low, high = PILAERegressor().fit(X, of_group).predict_interval(X_new).T
    assert np.mean((low <= of_new) & (of_new <= high)) < 0.7


def test_copies_of_images_leave_with_their_image():
    """As a search for image features scores them: all rows, an image with its copies one after another."""
    rng = np.random.default_rng(0)
    F, image = rng.standard_normal((120, 5)), np.repeat(np.arange(40), 3)
    rows = Rows(F, NUMPY, image % 2, 2)
    give_groups(rows, image, 0)
    head_input = HeadInput(rows, rows, FeatureCache(Network(NUMPY, "float64")), 5)
    loo = fit_output(head_input, None, np.zeros(120, bool), OutputSpec(0.1, np.ones(2))).residuals()
    Z, expected = np.eye(2)[image % 2], np.empty((120, 2))
    G = (F - F.mean(axis=0)) / F.std(axis=0)
    for k in range(40):
        stay = image != k
        expected[~stay] = Ridge(alpha=0.1 * 120).fit(G[stay], Z[stay]).predict(G[~stay])
    close(loo.outputs, expected, condition=100, terms=120)
    np.testing.assert_array_equal(loo.group, image)
    rows.group = rows.group[rng.permutation(120)]
    with pytest.raises(ValueError, match="one after another"):
        fit_output(head_input, None, np.zeros(120, bool), OutputSpec(0.1, np.ones(2)))


# ------------------------------------------------------------------------------- groups, halves and samples


def test_halves_are_made_of_whole_groups():
    X, y, group = patients(100, rows=20)
    rows = Rows(X, NUMPY, y, 2)
    give_groups(rows, group, 0)
    halves = halves_of(rows, len(X), 0)
    shapes = halves.shapes(X, rows.group)
    for g in range(100):
        assert len(set(shapes[group == g])) == 1
    assert abs(shapes.mean() - 0.5) < 0.02
    assert abs(y[shapes].mean() - y[~shapes].mean()) < 0.05
    survey = survey_rows(rows, SurveySpec(0, "spread", 50, 500))
    assert halves.shapes(survey.anchors, survey.anchor_groups).all()


def test_a_sample_to_score_is_whole_groups():
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 60, 700)
    group = rng.permutation(np.repeat(np.arange(700), sizes))
    X = rng.standard_normal((len(group), 3))
    rows = Rows(X, NUMPY, targets=X[:, :1])
    give_groups(rows, group, 0)
    scored = rows_to_score(rows, 0)
    assert 9900 < scored.n <= 10_000
    chosen = group[scored.numbers]
    assert len(np.unique(numbered(scored.group))) == len(np.unique(chosen))
    assert np.isin(np.flatnonzero(np.isin(group, chosen)), scored.numbers).all()
    # groups are drawn, not rows: a large one is no likelier than a small one
    assert abs(sizes[np.unique(chosen)].mean() - sizes.mean()) < 3


def test_few_groups_are_scored_however_large_they_are():
    X = np.random.default_rng(0).standard_normal((12_000, 2))
    rows = Rows(X, NUMPY, targets=X[:, :1])
    give_groups(rows, np.arange(12_000) % 4, 0)
    assert rows_to_score(rows, 0).n == 12_000


def test_large_groups_of_a_wide_layer_choose():
    X, y, group = patients(24, rows=150)
    model = PILAERegressor(depth=0, head=SHLN(width=300)).fit(X, y, groups=group)
    loo = model.head_.output.loo
    assert loo.n_choosers >= 10
    assert np.isfinite(model.loo_score_)
    assert model.loo_score_ < 0.5


def test_no_group_of_a_neuron_chooses():
    X, y, group = patients(200, rows=4)
    model = PILAEClassifier(depth=0, head=SHLN(width=20, metric="inputs", anchors="rows")).fit(X, y, groups=group)
    loo, rows = model.head_.output.loo, model.loo_predictions_.rows
    aside = group[rows[loo.chooser == 0]]
    assert 18 <= len(np.unique(aside)) <= 21
    assert np.isin(group[rows], aside).sum() == (loo.chooser == 0).sum()


def test_a_key_is_that_of_the_rows():
    X = np.random.default_rng(0).standard_normal((8, 3))
    rows = Rows(X, NUMPY)
    give_groups(rows, np.array([0, 0, 1, 1, 2, 3, 3, 3]), 0)
    assert rows.group[4] == ALONE
    assert len(np.unique(rows.group)) == 4
    again = Rows(X[[7, 3, 5, 2, 6, 6]], NUMPY)
    give_groups(again, np.array([1, 0, 1, 0, 1, 1]), 0)
    both = ~MIDDLE
    assert again.group[0] & both == rows.group[5] & both
    assert again.group[1] & both == rows.group[2] & both
    twins = Rows(X[[0, 1, 0, 1]], NUMPY)
    give_groups(twins, np.array([0, 0, 1, 1]), 0)
    assert len(np.unique(twins.group)) == 2
    keys = row_keys(X, 0)
    assert in_groups(keys, rows.group)[4] == keys[4]
    np.testing.assert_array_equal(
        in_groups(keys, rows.group) < MIDDLE, np.where(rows.group == 0, keys, rows.group) < MIDDLE
    )


def test_runs_of_groups():
    group = np.array([5, 5, 0, 0, 9, 9, 9], np.uint64)
    np.testing.assert_array_equal(numbered(group), [0, 0, 1, 2, 3, 3, 3])
    assert [
        len(choosing(np.repeat(np.arange(1, 30, dtype=np.uint64), 10), np.arange(290) >= 100, k))
        for k in (1, 15, 25, 130, 900)
    ] == [20, 100, 100, 130, 190]
    np.testing.assert_array_equal(choosing(group, np.array([0, 0, 1, 0, 0, 1, 0]), 9), [2, 4, 5, 6])
    assert spans(numbered(group), 3) == [(0, 3), (3, 4), (4, 7)]
    assert spans(numbered(group), 100) == [(0, 7)]
    np.testing.assert_array_equal(spread(np.arange(7) == 5, group), [0, 0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(spread(np.arange(7) == 2, group), [0, 0, 1, 0, 0, 0, 0])
    with pytest.raises(ValueError, match="one after another"):
        numbered(np.array([5, 9, 5], np.uint64))


# ----------------------------------------------------------------------------------------- what users pass


@pytest.mark.parametrize(
    "labels",
    [
        ["b", "a", "b", "c"],
        np.array([3, -1, 3, 8]),
        np.array([0.5, 0.25, 0.5, 2.0]),
        np.array(["2026-01-02", "2026-01-01", "2026-01-02", "2026-01-05"], "datetime64[D]"),
        np.array(["x", 1, "x", (2, 3)], dtype=object),
        np.array([[1], [2], [1], [3]]),
    ],
)
def test_labels_of_any_kind(labels):
    numbers = read_groups(labels, 4)
    assert numbers[0] == numbers[2]
    assert len(np.unique(numbers)) == 3


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (np.arange(89), r"one label a row: expected shape \(90,\), got \(89,\)"),
        (np.ones((90, 2)), r"expected shape \(90,\), got \(90, 2\)"),
        ("all", r"got \(\)"),
        (np.r_[np.nan, np.ones(89)], "no label for 1 rows, the first of them row 0"),
        (np.array([None, "a"] * 45, dtype=object), "no label for 45 rows"),
        (np.array(["NaT"] + ["2026-01-01"] * 89, "datetime64[D]"), "a label of its own"),
        (np.zeros(90), "All rows belong to one group"),
    ],
)
def test_what_is_wrong_with_groups_is_said(groups, sentence):
    X, y = blobs(90)
    with pytest.raises(ValueError, match=sentence):
        PILAEClassifier(depth=0).fit(X, y, groups=groups)


def test_groups_of_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y = blobs(90)
    names = pandas.Series(pandas.Categorical(np.array(list("abcdefghi"))[np.arange(90) % 9]))
    frame = PILAEClassifier(depth=0, head="ridge").fit(pandas.DataFrame(X), y, groups=names)
    plain = PILAEClassifier(depth=0, head="ridge").fit(X, y, groups=np.arange(90) % 9)
    assert frame.loo_score_ == plain.loo_score_
    with pytest.raises(ValueError, match="no label for 1 rows"):
        PILAEClassifier(depth=0).fit(X, y, groups=pandas.Series(["a", pandas.NA] + ["b"] * 88))


def test_weightless_rows_belong_to_nobody():
    X, y = blobs(90)
    group, w = np.arange(90) // 5, np.ones(90)
    w[::7] = 0.0
    fitted = PILAEClassifier(depth=0).fit(X, y, w, groups=group)
    left = PILAEClassifier(depth=0).fit(X[w > 0], y[w > 0], groups=group[w > 0])
    assert fitted.head_width_ == left.head_width_
    close(fitted.loo_score_, left.loo_score_, terms=90)
    close(fitted.decision_function(X), left.decision_function(X), **rounding(left))


@pytest.mark.parametrize("kind", [PILAEClassifier, PILAERegressor])
def test_sources_have_no_groups(kind):
    X, y = blobs(90)
    with pytest.raises(ValueError, match="a source or a Dask collection brings them in blocks"):
        kind(depth=0).fit(scan_blocks([(X, y)]), groups=np.arange(90) % 9)


def test_robust_weights_and_class_weights():
    X, y, group = patients(30)
    model = PILAERegressor(depth=0, head="ridge", loss="robust").fit(X, X[:, 0], groups=group)
    assert model.row_weights_.shape == (240,)
    balanced = PILAEClassifier(depth=0, head="ridge", ridge=0.1, class_weight="balanced").fit(X, y, groups=group)
    w = (len(y) / 2 / np.bincount(y))[y]
    expected = without_each(balanced, X, np.eye(2)[y], w, group)[balanced.loo_predictions_.rows]
    close(balanced.head_.output.loo.outputs, expected, **rounding(balanced))


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_array_libraries(library):
    xp = pytest.importorskip(library)
    X, y, group = patients(30)
    model = PILAERegressor(depth=0).fit(X, X[:, 0] + y, groups=group)
    other = PILAERegressor(depth=0).fit(xp.asarray(X), xp.asarray(X[:, 0] + y), groups=xp.asarray(group))
    assert other.head_width_ == model.head_width_
    close(other.loo_score_, model.loo_score_, **rounding(model))


# ------------------------------------------------------------------------------------------------ later


def test_recalibrate_leaves_groups_out_again():
    X, y, group = patients(40)
    model = PILAEClassifier(depth=0, ridge=0.1, head=SHLN(width=20, metric="inputs")).fit(X, y, groups=group)
    more, more_y, more_group = patients(20, seed=5)
    model.partial_fit(more, more_y)
    assert model.loo_is_stale_
    with pytest.raises(ValueError, match=r"recalibrate\(X, y, groups=...\)"):
        model.recalibrate(X, y)
    X, y, group = np.concatenate([X, more]), np.r_[y, more_y], np.r_[group, 1000 + more_group]
    model.recalibrate(X, y, groups=group)
    expected = without_each(model, X, np.eye(2)[y], np.ones(len(y)), group)[model.loo_predictions_.rows]
    close(model.head_.output.loo.outputs, expected, **rounding(model))


@pytest.mark.parametrize("count", [60, 400])
def test_groups_that_shaped_a_network_are_never_scored(count):
    X, y, group = patients(count)
    model = PILAEClassifier(depth=0, head=SHLN(metric="labels")).fit(X, y, groups=group)
    shaped = set(range(count)) - set(group[model.loo_predictions_.rows])
    assert 0.4 * count < len(shaped) < 0.6 * count
    some = np.isin(np.arange(len(X)) % 8, [0, 1, 2])  # of each group
    model.recalibrate(X[some], y[some], groups=group[some])
    assert shaped.isdisjoint(group[some][model.loo_predictions_.rows])


def test_what_stays_needs_its_groups():
    X, y, group = patients(20)
    model = PILAEClassifier(depth=0).fit(X, y, groups=group)
    with pytest.raises(ValueError, match="fitted with groups, which 'remaining' does not bring"):
        model.forget(X[:8], y[:8], remaining=(X[8:], y[8:]))
    model.forget(X[:8], y[:8])
    rest = PILAEClassifier(depth=0).fit(X, y).forget(X[:8], y[:8])
    assert model.predict(X).shape == rest.predict(X).shape


def test_a_saved_model_knows_its_groups(tmp_path):
    X, y, group = patients(20)
    model = PILAEClassifier().fit(X, y, groups=group)
    model.save(tmp_path / "model.pilae")
    again = pilae.load(tmp_path / "model.pilae")
    np.testing.assert_array_equal(again.head_.output.loo.group, model.head_.output.loo.group)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="was fitted with groups"):
        again.recalibrate(X, y)


def test_a_report_says_that_groups_were_left_out():
    X, y, group = patients(20)
    text = PILAEClassifier(depth=0).fit(X, y, groups=group).report().to_markdown()
    assert "leave-group-out accuracy" in text
    assert "By leaving out groups of training rows its accuracy is" in text


# ---------------------------------------------------------------------------------------------- routing


def test_metadata_routing_knows_groups():
    X, y, group = patients(30)
    with sklearn.config_context(enable_metadata_routing=True):
        asking = PILAEClassifier(depth=0, head="ridge").set_fit_request(groups=True)
        pipeline = make_pipeline(StandardScaler(), asking).fit(X, y, groups=group)
        alone = PILAEClassifier(depth=0, head="ridge").fit(StandardScaler().fit_transform(X), y, groups=group)
        assert pipeline[-1].loo_score_ == alone.loo_score_
        assert pipeline[-1].fitted_.grouped
        found = cross_validate(
            make_pipeline(StandardScaler(), asking),
            X,
            y,
            cv=GroupKFold(3),
            params={"groups": group},
            return_estimator=True,
        )
        for model in found["estimator"]:
            assert model[-1].fitted_.grouped
        silent = PILAEClassifier(depth=0, head="ridge").set_fit_request(groups=False)
        found = cross_validate(silent, X, y, cv=GroupKFold(3), params={"groups": group}, return_estimator=True)
        assert not found["estimator"][0].fitted_.grouped


@pytest.mark.parametrize("routing", [False, True])
def test_a_head_that_takes_groups_gets_them(routing):
    X, y, group = patients(30)
    head = GridSearchCV(KNeighborsClassifier(), {"n_neighbors": [1, 5]}, cv=GroupKFold(3))
    with sklearn.config_context(enable_metadata_routing=routing):
        model = PILAEClassifier(width=[4], head=head).fit(X, y, groups=group)
        assert model.head_.estimator.n_splits_ == 3
        without = PILAEClassifier(width=[4], head=make_pipeline(StandardScaler(), KNeighborsClassifier()))
        assert without.fit(X, y, groups=group).predict(X).shape == (240,)


@pytest.mark.parametrize(("n", "values", "columns"), [(600, 4, 4), (2500, 12, 3)])  # few distinct rows, and more
@pytest.mark.parametrize("kind", [PILAEClassifier, PILAERegressor])
def test_equal_rows_may_be_in_many_groups(kind, n, values, columns):
    rng = np.random.default_rng(0)
    X = rng.integers(0, values, size=(2 * n, columns)).astype(float)
    y = X.sum(axis=1) + rng.normal(size=2 * n)
    if kind is PILAEClassifier:
        y = (y > np.median(y)).astype(int)
    model = kind(random_state=0).fit(X[:n], y[:n], groups=np.arange(n) // 5)
    assert abs(model.loo_score_ - model.score(X[n:], y[n:])) < 0.06  # of new rows, most of which equal old ones
    rows = Rows(X[:n], NUMPY)
    give_groups(rows, np.arange(n) // 5, 0)
    halves = halves_of(rows, len(np.unique(X[:n], axis=0)), 0)
    shapes = halves.shapes(X[:n], rows.group)
    assert 0.3 < shapes.mean() < 0.7
    if halves.both_ways:
        assert np.array_equal(halves.swapped().shapes(X[:n], rows.group), ~shapes)
