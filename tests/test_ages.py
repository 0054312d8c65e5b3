"""Rows that have lost weight with age are named again: to forget them, to recalibrate on them, to fit again."""

import copy

import numpy as np
import pytest

import pilae
from helpers import blobs, close, rounding
from pilae import SHLN, PILAEClassifier, PILAERegressor

X, Y = blobs(300)
Z = X[:, 0] + 0.5 * np.random.default_rng(0).standard_normal(300)
TEST, _ = blobs(50, seed=1)
NETWORK = {"width": [6], "ridge": 1e-3, "head": SHLN(width=30)}
LINEAR = {"depth": 0, "head": "ridge", "ridge": 1e-2, "input_scaling": "none"}
FITTED = PILAEClassifier(**NETWORK).fit(X[:120], Y[:120])


def left_out(weight, unit, scale, without):
    """What a ridge on X predicts for one row when that much of its weight is gone, by solving again."""
    w, lam = weight.copy(), 1e-2 * weight.sum()
    w[without] -= unit[without]
    mean, mean_z = w @ X / w.sum(), w @ Z / w.sum()
    A = (X - mean) / scale
    coef = np.linalg.solve(A.T @ (w[:, None] * A) + lam * np.eye(A.shape[1]), A.T @ (w * (Z - mean_z)))
    return (X[without] - mean) / scale @ coef + mean_z


@pytest.mark.parametrize("heavy", [1.0, 3.0])
def test_recalibrating_knows_what_rows_still_weigh(heavy):
    w = np.full(300, heavy)  # a weight of 3 is three rows, of which one leaves
    model = PILAERegressor(**LINEAR).fit(X[:200], Z[:200], w[:200]).partial_fit(X[200:], Z[200:], w[200:], half_life=30)
    age = np.r_[np.full(200, 100), np.arange(99, -1, -1)]
    share = 0.5 ** (age / 30)
    model.recalibrate(X, Z, w, age=age)
    found, scale = model.loo_predictions_, X[:200].std(axis=0)
    expected = [left_out(heavy * share, share, scale, k) for k in found.rows]
    close(np.ravel(found.predicted), expected, **rounding(model))
    assert not model.loo_is_stale_


def test_recalibrating_without_ages_is_refused():
    model = copy.deepcopy(FITTED).partial_fit(X[120:], Y[120:], half_life=50)
    before = model.fitted_
    with pytest.raises(
        ValueError, match="give recalibrate the 'age' of each, the number of rows that came with half_life"
    ):
        model.recalibrate(X, Y)
    with pytest.raises(ValueError, match="recalibrate as arrays"):
        model.recalibrate(pilae.scan_blocks(lambda: iter([(X, Y)])), age=0)
    with pytest.raises(ValueError, match="leave 'age' out"):
        FITTED.recalibrate(X[:120], Y[:120], age=0)
    with pytest.raises(ValueError, match="leave 'age' out"):
        FITTED.forget(X[:2], Y[:2], remaining=(X[2:120], Y[2:120]), age=0)
    assert model.fitted_ is before


@pytest.mark.parametrize("rows", [3, 60])
@pytest.mark.parametrize("plain", [{}, {"decay": 1.0}, {"half_life": float("inf")}, {"half_life": 1e300}])
def test_a_call_that_lets_none_fade_ends_what_ages_say(plain, rows):
    model = copy.deepcopy(FITTED).partial_fit(X[120:200], Y[120:200], half_life=50)
    model.partial_fit(X[200 : 200 + rows], Y[200 : 200 + rows], **plain)
    for method in (model.forget, model.recalibrate):
        with pytest.raises(ValueError, match="or not at all in some calls"):
            method(X[199:200], Y[199:200], age=rows)


@pytest.mark.parametrize(("how", "oldest"), [({"half_life": 100}, 180), ({"decay": 0.9}, 2)])
def test_an_age_that_no_row_has_is_refused(how, oldest):
    model = copy.deepcopy(FITTED).partial_fit(X[120:200], Y[120:200], **how).partial_fit(X[200:], Y[200:], **how)
    with pytest.raises(ValueError, match=f"older than {oldest}, and 'age' says 299: .* are {oldest} old"):
        model.forget(X[:1], Y[:1], age=299)
    for age in ("a", [[0]], [0, 1], np.nan, -1):
        with pytest.raises(ValueError, match="one number of at least 0 a row"):
            model.forget(X[:1], Y[:1], age=age)
    model.forget(X[:1], Y[:1], age=oldest)


def test_the_first_row_of_a_first_call_is_the_oldest():
    model = PILAEClassifier(**NETWORK).partial_fit(X[:200], Y[:200], half_life=10)
    model.partial_fit(X[200:201], Y[200:201], half_life=10)
    copy.deepcopy(model).forget(X[:1], Y[:1], age=200)
    with pytest.raises(ValueError, match="older than 200"):
        model.forget(X[:1], Y[:1], age=201)


def test_what_does_not_fade_is_not_fading():
    model = copy.deepcopy(FITTED).partial_fit(X[120:], Y[120:], decay=1.0)
    plain = copy.deepcopy(FITTED).partial_fit(X[120:], Y[120:])
    np.testing.assert_array_equal(model.decision_function(TEST), plain.decision_function(TEST))
    model.merge(FITTED.fork().partial_fit(X[:9], Y[:9]))


def test_a_window_stays_when_it_is_fitted_again():
    model = PILAEClassifier(**NETWORK).partial_fit(X[:200], Y[:200], window=100)
    stay = np.r_[:150, 160:200]
    model.forget(X[150:160], Y[150:160], remaining=(X[stay], Y[stay]))
    assert (model.fitted_.window.size, model.fitted_.window.count) == (100, 100)
    model.partial_fit(X[200:250], Y[200:250])
    rows = np.r_[stay, 200:250][-100:]
    expected = model.fork().partial_fit(X[rows], Y[rows])
    close(model.decision_function(TEST), expected.decision_function(TEST), **rounding(expected))


@pytest.mark.parametrize("way", [{"window": 100}, {"half_life": 50}])
@pytest.mark.parametrize("change", [{"keep_statistics": False}, {"head": "softmax"}])
def test_what_fitting_again_lacks_is_said_of_forget(way, change):
    model = PILAEClassifier(**NETWORK).partial_fit(X[:200], Y[:200], **way).set_params(**change)
    age = {"age": 0} if "half_life" in way else {}
    with pytest.raises((ValueError, TypeError), match=r"^forget needs"):
        model.forget(X[:50], Y[:50], remaining=(X[50:200], Y[50:200]), **age)


def test_rows_that_fade_go_on_when_it_is_fitted_again():
    model = copy.deepcopy(FITTED).partial_fit(X[120:200], Y[120:200], half_life=50)
    stay = np.r_[10:200]
    age = np.r_[np.full(120, 80), np.arange(79, -1, -1)][stay]
    with pytest.raises(ValueError, match="give forget the 'age'"):
        model.forget(X[:10], Y[:10], remaining=(X[stay], Y[stay]))
    model.partial_fit(X[:1], Y[:1], decay=0.5)  # ages say nothing any more, but a fit takes them as they are given
    model.partial_fit(X[:1], Y[:1], half_life=50)
    model.forget(X[:10], Y[:10], remaining=(X[stay], Y[stay]), age=age)
    weighted = PILAEClassifier(**NETWORK).fit(X[stay], Y[stay], 0.5 ** (age / 50))
    close(model.decision_function(TEST), weighted.decision_function(TEST), **rounding(weighted))
    later = copy.deepcopy(model).partial_fit(X[200:], Y[200:], half_life=50)
    assert later.head_.output.moments.weight == pytest.approx(
        0.25 * weighted.head_.output.moments.weight + np.sum(0.5 ** (np.arange(100) / 50))
    )
    later.forget(X[stay], Y[stay], age=age + 100)
    expected = model.fork().partial_fit(X[200:], Y[200:], half_life=50)
    assert later.head_.output.moments.weight == pytest.approx(expected.head_.output.moments.weight)
