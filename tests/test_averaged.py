"""Two networks whose outputs are averaged: whatever is done to them is done to each, and the search says when."""

import copy
import dataclasses

import numpy as np
import onnxruntime
import pytest
from sklearn.datasets import load_diabetes

from helpers import blobs, close, evaluation, rounding
from pilae import SHLN, ModelFileError, PILAEClassifier, PILAERegressor, load
from pilae._base.budget import Budget
from pilae._data.rows import Rows
from pilae._engine.waiting import Waiting
from pilae._estimators import stream
from pilae._estimators.members import joined, members
from pilae._estimators.window import Window
from pilae._network.averaged import AveragedHead, mean_of
from pilae._search import fit, promise

ROWS, CLASSES = blobs(300)
X, Y = ROWS[:240], CLASSES[:240]
NUMBERS = X[:, 0] ** 2 + X[:, 1] * X[:, 2]
NEW, NEW_Y = np.clip(ROWS[240:], X.min(0), X.max(0)), CLASSES[240:]  # answers to far rows are no mean


def two(kind):
    """A model of two networks, and each of them alone: a radial one on pieces, and one with a layer and a skip."""
    y = Y if kind is PILAEClassifier else NUMBERS
    first = kind(depth=0, head=SHLN(25, anchors="radial"), input_scaling="pieces", ridge=1e-3).fit(X, y)
    second = kind(width=[5], skip=True, branches=2, head=SHLN(20, encoder_ridge=1.0), ridge=1e-2).fit(X, y)
    both = copy.copy(first)
    both.fitted_ = joined([first.fitted_, second.fitted_])
    output = both.fitted_.head.output
    output.loo = mean_of([each.fitted_.head.output.loo for each in (first, second)])
    both.fitted_.head.calibration = None
    return both, first, second


def said(model, rows):
    return model.decision_function(rows) if isinstance(model, PILAEClassifier) else model.predict(rows)


def assert_mean(both, first, second, rows=NEW):
    close(said(both, rows), (said(first, rows) + said(second, rows)) / 2, **rounding(both))


@pytest.fixture(params=[PILAEClassifier, PILAERegressor])
def three(request):
    return two(request.param)


def targets(model, rows):
    if isinstance(model, PILAEClassifier):
        return NEW_Y[: len(rows)]
    return rows[:, 0] ** 2 + rows[:, 1] * rows[:, 2]


def test_outputs_are_the_mean(three):
    assert isinstance(three[0].head_, AveragedHead)
    assert_mean(*three)


def test_taken_apart_they_are_what_they_were(three):
    both, *alone = three
    for part, model in zip(members(both.fitted_), alone, strict=True):
        network, own = part.network, model.fitted_.network
        assert (len(network.others), network.skip, len(network.layers)) == (
            len(own.others),
            own.skip,
            len(own.layers),
        )
        assert part.head.output.ridge == model.ridge_


def test_blocks_are_small_enough_for_the_widest(monkeypatch):
    """Many rows asked about take no more memory where the second network is the wide one."""
    models = [PILAERegressor(depth=0, head=head, ridge=1e-2).fit(X, NUMBERS) for head in ("ridge", SHLN(200))]
    both, seen = copy.copy(models[0]), []
    both.fitted_ = joined([model.fitted_ for model in models])
    both.fitted_.head.output.loo = mean_of([model.fitted_.head.output.loo for model in models])
    nothing = np.zeros((4000, 2))
    monkeypatch.setattr(Rows, "map", lambda rows, f, width, at_once: seen.append(width) or nothing)
    many = np.zeros((4000, X.shape[1]))
    both.predict(many)
    both.predict_interval(many)
    assert seen == [200, 200] == [both.fitted_.widest] * 2


@pytest.mark.parametrize("how", [{}, {"decay": 0.9}, {"half_life": 30.0}])
def test_rows_are_added_to_each(three, how):
    for model in three:
        model.partial_fit(NEW, targets(model, NEW), **how)
    assert_mean(*three)


def test_single_rows_and_running_scores(three):
    both, *alone = three
    for k in range(6):
        for model in three:
            model.partial_fit(NEW[k : k + 1], targets(model, NEW)[k : k + 1], test_first=True, current=k % 2 == 0)
    assert_mean(*three)
    assert both.stream_.count == alone[0].stream_.count == 6


def test_a_window_slides_over_each(three):
    models = [model.fork() for model in three]
    for part in (slice(0, 40), slice(40, 60)):
        for model in models:
            model.partial_fit(NEW[part], targets(model, NEW)[part], window=30)
    assert models[0].rows_in_.rows == 30
    assert_mean(*models)


def test_sums_of_a_window_are_made_anew_for_all(three, monkeypatch):
    """They share the count of steps: where one begins anew often, the other would never be found to have drifted."""
    both = three[0].fork()
    first, made, anew = both.fitted_.head.hidden, [], stream._from_window

    def watched(fitted, targets, window):
        made.append(fitted.head.hidden is first)
        return anew(fitted, targets, window)

    monkeypatch.setattr(Window, "drifts", lambda window, sums, hidden: window.steps > (2 if hidden is first else 3))
    y = Y if isinstance(both, PILAEClassifier) else NUMBERS
    both.partial_fit(X[:100], y[:100], window=100)
    monkeypatch.setattr(stream, "_from_window", watched)
    for k in range(100, 120):
        both.partial_fit(X[k : k + 1], y[k : k + 1], window=100)
    assert sum(made) == len(made) / 2 > 3


def test_scores_before_learning_need_no_sums(three, monkeypatch):
    """Of rows that wait none are made, which would cost more than all the rest."""
    both = three[0].partial_fit(NEW[:1], targets(three[0], NEW[:1]), test_first=True, current=True)
    both.partial_fit(NEW[1:2], targets(both, NEW[1:2]), test_first=True, current=True)
    monkeypatch.setattr(Waiting, "total", lambda waiting: pytest.fail("sums were made"))
    both.partial_fit(NEW[2:3], targets(both, NEW[2:3]), test_first=True, current=True)
    assert both.stream_.count == 3


def test_rows_are_forgotten_by_each(three):
    for model in three:
        model.forget(X[:20], (Y if isinstance(model, PILAEClassifier) else NUMBERS)[:20])
    assert_mean(*three)


def test_forks_and_merges(three):
    both, *_ = three
    sites = [both.fork().partial_fit(NEW[part], targets(both, NEW)[part]) for part in (slice(0, 25), slice(25, 60))]
    whole = both.fork().partial_fit(NEW, targets(both, NEW))
    close(said(sites[0].merge(sites[1]), NEW), said(whole, NEW), **rounding(whole))
    assert both.network_hash_ == whole.network_hash_
    for single in three[1:]:
        assert single.network_hash_ != both.network_hash_
        with pytest.raises(ValueError, match="another network"):
            both.merge(single)
        with pytest.raises(ValueError, match="another network"):
            single.merge(both)


def test_balanced_sums_of_each():
    y = np.where(np.arange(len(X)) % 5 == 0, 1, 0)
    models = [
        PILAEClassifier(depth=0, head=head, class_weight="balanced", keep_statistics="classes", ridge=1e-2).fit(X, y)
        for head in (SHLN(15), "ridge")
    ]
    both = copy.copy(models[0])
    both.fitted_ = joined([model.fitted_ for model in models])
    for model in (both, *models):
        model.partial_fit(NEW, np.where(NEW_Y == 0, 1, 0))
    assert_mean(both, *models)


def test_recalibrating_scores_the_mean(three):
    both, *alone = three
    y = Y if isinstance(both, PILAEClassifier) else NUMBERS
    for model in three:
        model.recalibrate(X, y)
    loo = both.fitted_.head.residuals()
    means = np.mean([model.fitted_.head.residuals().outputs for model in alone], axis=0)
    close(loo.outputs, means, **rounding(both))
    assert both.loo_score_ == both.fitted_.targets.judged(loo)[1]


def test_saved_and_loaded(three, tmp_path):
    both = three[0]
    both.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(said(again, NEW), said(both, NEW))
    assert again.network_hash_ == both.network_hash_
    assert_mean(again.partial_fit(NEW, targets(both, NEW)), *(m.partial_fit(NEW, targets(m, NEW)) for m in three[1:]))
    both.save(tmp_path / "lean", statistics=False)
    lean = load(tmp_path / "lean")
    assert lean.head_.output.moments is None is lean.head_.others[0].output.moments
    assert all(layer.statistics is None for layer in lean.network_.others[0].layers)
    with pytest.raises(ValueError, match="keep_statistics=True"):
        lean.partial_fit(NEW, targets(both, NEW))


def test_workers_are_sent_no_sums(three):
    network = three[0].fitted_.lean().network
    assert any(each.layers for each in network.others)
    assert all(layer.statistics is None for each in (network, *network.others) for layer in each.layers)


@pytest.mark.parametrize(
    "wrong", [{"columns": (3, 4)}, {"others": ("no head",)}, {"others": ()}, {"columns": (1, 2, 3)}]
)
def test_a_forged_file_is_refused(three, tmp_path, wrong):
    both = copy.copy(three[0])
    both.fitted_ = dataclasses.replace(both.fitted_, head=dataclasses.replace(both.fitted_.head, **wrong))
    with pytest.raises((ModelFileError, ValueError, TypeError)):
        both.fitted_.check()


def test_onnx(three, tmp_path):
    both, rows = three[0], NEW.astype(np.float32)
    both.to_onnx(tmp_path / "model.onnx")
    found = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"X": rows})
    if isinstance(both, PILAEClassifier):
        np.testing.assert_array_equal(found[0], both.predict(rows))
        np.testing.assert_allclose(found[1], both.predict_proba(rows), atol=1e-6)  # promised by to_onnx
    else:
        close(found[0][:, 0], both.predict(rows), **evaluation(both.predict, rows, "float32"))


def test_blocks_are_as_short_as_the_wider_one_needs(monkeypatch):
    """The first has the better score, and may have two neurons where the second has thousands."""
    models = [PILAERegressor(depth=0, head=SHLN(width), ridge=1e-2).fit(X, NUMBERS) for width in (2, 100)]
    both, widths, blocks = copy.copy(models[0]), [], Rows.rows_per_block
    both.fitted_ = joined([model.fitted_ for model in models])

    def spy(rows, width=0, *rest):
        widths.append(width)
        return blocks(rows, width, *rest)

    monkeypatch.setattr(Rows, "rows_per_block", spy)
    many = np.repeat(NEW, 200, axis=0)
    both.predict(many)
    both.predict_interval(many)
    both.partial_fit(NEW, targets(both, NEW), test_first=True)
    assert min(widths[:2]) >= 100
    assert both.fitted_.widest == 100
    assert both.head_width_ == 2


def test_importances_are_those_of_the_mean():
    """Two networks that cancel each other in a column leave it without importance."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((300, 3))
    models = [
        PILAERegressor(depth=0, head="ridge", ridge=0).fit(rows, rows[:, 0] + sign * rows[:, 1]) for sign in (1, -1)
    ]
    both = joined([model.fitted_ for model in models])
    from pilae._network.importance import importances

    shares = importances(both.network, both.head, Rows(rows, both.network.space), np.ones(1), 0)
    close(shares, [1, 0, 0], **rounding(models[0]))


# ------------------------------------------------------------------------------------------------- in the search


def test_the_search_averages_where_leave_one_out_is_better():
    X, y = load_diabetes(return_X_y=True)
    both, alone = (PILAERegressor(random_state=0, head=SHLN(networks=networks)).fit(X, y) for networks in ("auto", 1))
    assert isinstance(both.head_, AveragedHead)
    assert not isinstance(alone.head_, AveragedHead)
    averaged = [row for row in both.search_ if row["averaged"]]
    assert len(averaged) == 2
    assert sum(row["chosen"] for row in averaged) == 1
    assert not any(row["averaged"] for row in alone.search_)
    left_out = [np.mean(model.fitted_.head.residuals().row_errors(np.ones(1))) for model in (both, alone)]
    assert left_out[0] < left_out[1]


def test_a_mean_that_does_not_keep_its_promise_is_left_alone(monkeypatch):
    X, y = load_diabetes(return_X_y=True)
    lower = promise.mean_of

    def worse(scores):
        mean = lower(scores)
        return mean._replace(outputs=mean.outputs + 1e3)

    monkeypatch.setattr(promise, "mean_of", worse)
    model = PILAERegressor(random_state=0).fit(X, y)
    assert not isinstance(model.head_, AveragedHead)
    assert not any(row["averaged"] for row in model.search_)
    alone = PILAERegressor(random_state=0, head=SHLN(networks=1)).fit(X, y)
    assert model.fitted_.optimism == alone.fitted_.optimism  # what pairs would have won elsewhere is no comfort


def test_no_second_is_fitted_when_the_time_is_used_up(monkeypatch):
    """A search that came to its end just in time was not cut short, and has found a second one."""
    X, y = load_diabetes(return_X_y=True)
    monkeypatch.setattr(fit, "active_budget", lambda: Budget(0))
    model = PILAERegressor(random_state=0).fit(X, y)
    assert not any(row["loss"] is None for row in model.search_)
    assert not isinstance(model.head_, AveragedHead)
    assert model.loo_score_ == PILAERegressor(random_state=0, head=SHLN(networks=1)).fit(X, y).loo_score_


def test_the_second_is_named_where_others_were_fitted_to_all_rows(monkeypatch):
    """The last round of the table is then one of a few candidates on all rows, and the second may not be among them."""
    monkeypatch.setattr(promise, "UNSURE", 0.0)
    monkeypatch.setattr(promise, "FEW_ROWS", 0)
    monkeypatch.setattr(promise, "MORE", 1)
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(random_state=0, target_scaling="none").fit(X, y)
    assert isinstance(model.head_, AveragedHead)
    averaged = [row for row in model.search_ if row["averaged"]]
    assert [row["chosen"] for row in averaged].count(True) == 1
    assert len(averaged) == 2


@pytest.mark.parametrize(
    "given",
    [{"head": SHLN(20)}, {"head": "ridge"}, {"head": SHLN(networks=1)}, {"head": SHLN(anchors="rows")}, {"depth": 0}],
)
def test_what_is_given_stays_one_network(given):
    model = PILAEClassifier(random_state=0, **given).fit(X, Y)
    assert not isinstance(model.head_, AveragedHead)


def test_rows_that_shaped_either_are_not_scored():
    X, y = load_diabetes(return_X_y=True)
    model = PILAERegressor(random_state=0).fit(X, y)
    assert any(row["rounds"] for row in model.search_ if row["averaged"])
    assert not model.fitted_.halves.shapes(X[model.loo_predictions_.rows], None).any()


def test_the_report_says_so():
    X, y = load_diabetes(return_X_y=True)
    summary = PILAERegressor(random_state=0).fit(X, y).report().summary
    assert len(summary["network"]["averaged_with"]) == 1
    assert "head" in summary["network"]["averaged_with"][0]
