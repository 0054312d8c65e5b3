"""Moments: any split, any order, any tree of merges; and back out again."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import close, cuts
from pilae._arrays import NUMPY, space_of
from pilae._engine.moments import Moments


def rows(seed, n=60, p=4, m=2, mean=5.0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) + mean, rng.standard_normal((n, m)) - mean, rng.integers(0, 4, n).astype(float)


SPREAD = {"condition": 1 + 5.0**2, "terms": 60}
"""Of sums over sixty rows with a mean of five standard deviations."""

FEW = SPREAD | {"condition": 30 * SPREAD["condition"]}
"""Where as few as two of the sixty are left."""


def reference(A, B, w):
    """(mean_a, mean_b, centred A'wA, centred A'wB, raw A'wA) in plain NumPy."""
    ma, mb = w @ A / w.sum(), w @ B / w.sum()
    Ac, Bc = A - ma, B - mb
    return ma, mb, (Ac.T * w) @ Ac, (Ac.T * w) @ Bc, (A.T * w) @ A


def check(moments, A, B, w, rounding=SPREAD):
    ma, mb, G, C, raw = reference(A, B, w)
    close(moments.mean_a, ma, **rounding)
    close(moments.mean_b, mb, **rounding)
    close(moments.gram(centred=True), G, **rounding)
    close(moments.cross(centred=True), C, **rounding)
    close(moments.gram(), raw, **rounding)
    close(moments.variance_a(), np.diag(G) / w.sum(), **rounding)
    assert moments.count == np.sum(w > 0)


@given(seed=st.integers(0, 2**20), k=st.integers(0, 6), shifted=st.booleans())
def test_any_split_any_order_any_merge(seed, k, shifted):
    A, B, w = rows(seed)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(A))
    A, B, w = A[order], B[order], w[order]
    parts = []
    for part in cuts(len(A), k, rng):
        moments = Moments(NUMPY, shifted=shifted)
        moments.add(A[part], B[part], w[part])
        parts.append(moments)
    while len(parts) > 1:  # a random tree
        i, j = sorted(rng.choice(len(parts), 2, replace=False))
        other = parts.pop(j)
        parts[i].merge(other)
    if shifted:
        check(parts[0], A, B, w)
    else:
        close(parts[0].gram(), reference(A, B, w)[4], terms=60)


@given(seed=st.integers(0, 2**20), cut=st.integers(2, 59))
def test_remove_undoes_add(seed, cut):
    A, B, w = rows(seed)
    w[:2] = 1.0  # at least two rows stay
    moments = Moments(NUMPY)
    moments.add(A, B, w)
    moments.remove(A[cut:], B[cut:], w[cut:])
    check(moments, A[:cut], B[:cut], w[:cut], FEW)


def test_removing_everything_leaves_nothing():
    A, B, w = rows(0)
    moments = Moments(NUMPY)
    moments.add(A, B, w)
    moments.remove(A, B, w)
    assert moments.count == 0
    assert moments.weight == 0.0
    moments.add(A, B, w)
    check(moments, A, B, w)


@pytest.mark.parametrize(
    ("part", "factor", "sentence"), [(slice(0, 60), 1.0, "only 30 rows"), (slice(0, 20), 100.0, "were never added")]
)
def test_removing_what_was_not_added_is_refused_and_changes_nothing(part, factor, sentence):
    A, B, _ = rows(0)
    moments = Moments(NUMPY)
    moments.add(A[:30], B[:30])
    before = moments.gram(centred=True).copy()
    with pytest.raises(ValueError, match=sentence):
        moments.remove(A[part] * factor, B[part])
    np.testing.assert_array_equal(moments.gram(centred=True), before)
    assert moments.count == 30


def test_weights_are_repeated_rows():
    A, B, w = rows(3)
    weighted, repeated = Moments(NUMPY), Moments(NUMPY)
    weighted.add(A, B, w)
    k = w.astype(int)
    repeated.add(A.repeat(k, axis=0), B.repeat(k, axis=0))
    close(weighted.gram(centred=True), repeated.gram(centred=True), **SPREAD)
    assert weighted.weight == repeated.weight


def test_float32_data_with_a_large_mean_keeps_its_digits():
    rng = np.random.default_rng(0)
    A = (rng.standard_normal((5000, 3)) + 1000).astype(np.float32)
    moments = Moments(NUMPY, product="float32")
    for start in range(0, 5000, 500):
        moments.add(A[start : start + 500])
    exact = np.cov(A.astype(float).T, bias=True) * 5000
    close(moments.gram(centred=True), exact, dtype="float32", terms=500)
    # without a shift the same sums in float32 have no right digit
    naive = A.T @ A - 5000 * np.outer(A.mean(0), A.mean(0))
    assert np.abs(naive - exact).max() > 0.1 * np.abs(exact).max()


def test_diagonal_only():
    A, B, w = rows(1)
    moments = Moments(NUMPY, full=False)
    moments.add(A[:20], None, w[:20])
    other = Moments(NUMPY, full=False)
    other.add(A[20:], None, w[20:])
    moments.merge(other)
    close(moments.variance_a(), np.diag(reference(A, B, w)[2]) / w.sum(), **SPREAD)


def test_every_library(library):
    A, B, w = rows(2)
    moments = Moments(space_of(library(A)))
    moments.add(library(A[:25]), library(B[:25]), library(w[:25]))
    moments.add(library(A[25:]), library(B[25:]), library(w[25:]))
    G = moments.gram(centred=True)
    assert library.owns(G)
    close(library.numpy(G), reference(A, B, w)[2], **SPREAD)


def test_parts_of_rows_can_be_removed():
    A, B, _ = rows(0)
    moments = Moments(NUMPY)
    moments.add(A, B, np.full(60, 2.0))
    moments.remove(A, B, np.full(60, 1.0))
    assert moments.weight == 60
    close(moments.gram(centred=True), reference(A, B, np.ones(60))[2], **SPREAD)


def test_a_large_row_that_came_and_went_does_not_bar_the_others():
    A, B, _ = rows(0)
    moments = Moments(NUMPY)
    moments.add(A, B)
    big = np.full((1, 4), 1e8), np.full((1, 2), 1.0)
    moments.add(*big)
    moments.remove(*big)
    moments.remove(A[:50], B[:50])
    assert moments.count == 10


@pytest.mark.parametrize("constant", [7.7, 1e-9, 1e12, 0.1])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_constant_column_has_no_variance(constant, dtype):
    for seed in range(30):
        rng = np.random.default_rng(seed)
        A = np.c_[rng.standard_normal(500), np.full(500, constant)].astype(dtype)
        w = rng.uniform(0.1, 3, 500)
        moments = Moments(NUMPY)
        for part in cuts(500, 3, rng):
            moments.add(A[part], None, w[part])
        variance = moments.variance_a()
        assert variance[1] == 0
        assert variance[0] > 0.5


def test_rounding_of_rows_taken_out_is_not_variance():
    """A column that varies no more once the row that varied is gone: its variance is zero, not noise."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        A = np.full((3000, 1), rng.standard_normal())
        far = np.array([[1e3 * rng.standard_normal()]])
        moments = Moments(NUMPY)
        moments.add(np.r_[A, far])
        moments.remove(far)
        assert moments.variance_a()[0] == 0


def test_float32_rows_with_float64_products_lose_nothing():
    A = (np.random.default_rng(0).standard_normal((300, 2)) + 1000).astype(np.float32)
    moments = Moments(NUMPY)
    moments.add(A[:100])
    moments.add(A[100:])
    close(moments.mean_a, A.astype(float).mean(0), terms=300)
    expected = np.cov(A.astype(float).T, bias=True) * 300
    close(moments.gram(centred=True), expected, condition=1e3, terms=300)  # a mean of a thousand spreads
