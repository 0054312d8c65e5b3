"""The rows chosen do not depend on order, blocks, dtype or repetition."""

import numpy as np
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from helpers import cuts
from pilae.anchors import ScoredRows, Spread, row_keys


def spread(X, y, count, parts=(slice(None),), seed=0):
    keeper = Spread(count, int(y.max()) + 1)
    index = np.arange(len(X))
    for part in parts:
        keeper.add(row_keys(X[part], seed), y[part], index[part])
    return keeper.rows(count)


@given(seed=st.integers(0, 2**20), k=st.integers(0, 8), classes=st.integers(1, 5), count=st.integers(1, 120))
def test_any_order_and_any_blocks_choose_the_same_rows(seed, k, classes, count):
    rng = np.random.default_rng(seed)
    # few distinct values: rows repeat, also under different labels
    X = rng.integers(0, 3, size=(80, 3)).astype(float)
    y = rng.choice(classes, size=80, p=rng.dirichlet(np.ones(classes)))
    whole = X[spread(X, y, count)]
    order = rng.permutation(80)
    blocks = spread(X[order], y[order], count, cuts(80, k, rng))
    np.testing.assert_array_equal(X[order][blocks], whole)
    assert len(np.unique(whole, axis=0)) == len(whole) == min(count, len(np.unique(X, axis=0)))


def test_smaller_choices_are_the_beginning_of_larger_ones():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((300, 4)), rng.integers(0, 3, 300)
    np.testing.assert_array_equal(spread(X, y, 40)[:15], spread(X, y, 15))


def test_classes_take_turns():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000, 4))
    y = np.where(np.arange(1000) < 30, 1, 0)
    chosen = y[spread(X, y, 100)]
    np.testing.assert_array_equal(chosen[:60], np.tile([0, 1], 30))  # until the rare class has no more rows
    np.testing.assert_array_equal(chosen[60:], 0)


def test_float32_and_sparse_rows_have_the_key_of_their_dense_float64_rows(library):
    X = np.random.default_rng(0).integers(-3, 4, size=(50, 7)) / 4.0
    keys = row_keys(X, 3)
    np.testing.assert_array_equal(row_keys(library(X.astype(np.float32)), 3), keys)
    np.testing.assert_array_equal(row_keys(scipy.sparse.csr_array(X), 3), keys)
    np.testing.assert_array_equal(row_keys(np.where(X == 0, -0.0, X), 3), keys)
    assert not np.array_equal(row_keys(X, 4), keys)


def test_rows_that_differ_only_in_signs_have_different_keys():
    rng = np.random.default_rng(0)
    X = np.unique(rng.choice([-1.0, 1.0], size=(60_000, 40)), axis=0)
    assert len(np.unique(row_keys(X, 0))) == len(X)


def test_scored_rows_are_the_same_in_any_order_and_not_the_anchors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))

    def scored(X, parts):
        keeper = ScoredRows(500)
        for part in parts:
            keeper.add(row_keys(X[part], 0), np.arange(len(X))[part])
        return keeper.rows()

    whole = scored(X, [slice(None)])
    order = rng.permutation(5000)
    blocks = order[scored(X[order], cuts(5000, 7, rng))]
    assert len(whole) == 500
    assert set(whole) == set(blocks)
    anchors = set(spread(X, np.zeros(5000, int), 500))
    assert 20 < len(anchors & set(whole)) < 90  # a tenth by chance: the two choices are independent
    twice = scored(np.concatenate([X, X]), [slice(None)])
    assert set(twice % 5000) == set(whole)
    assert len(twice) == 1000
