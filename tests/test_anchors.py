"""The rows chosen do not depend on order, blocks, dtype or repetition."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers import close, cuts
from pilae._data.keys import Sample, Spread, row_keys


def spread(X, y, count, parts=(slice(None),), seed=0):
    keeper = Spread(count, int(y.max()) + 1)
    index = np.arange(len(X))
    for part in parts:
        keeper.add(row_keys(X[part], seed), y[part], index[part])
    return keeper.rows()[:count]


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


def test_float32_rows_have_the_key_of_their_float64_rows(library):
    X = np.random.default_rng(0).integers(-3, 4, size=(50, 7)) / 4.0
    keys = row_keys(X, 3)
    np.testing.assert_array_equal(row_keys(library(X.astype(np.float32)), 3), keys)
    np.testing.assert_array_equal(row_keys(np.where(X == 0, -0.0, X), 3), keys)
    assert not np.array_equal(row_keys(X, 4), keys)


def test_rows_that_differ_only_in_signs_have_different_keys():
    rng = np.random.default_rng(0)
    X = np.unique(rng.choice([-1.0, 1.0], size=(60_000, 40)), axis=0)
    assert len(np.unique(row_keys(X, 0))) == len(X)


def test_rows_beyond_float32_are_different_rows_in_the_same_order():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 5))
    rounded = X.astype(np.float32)
    np.testing.assert_array_equal(np.argsort(row_keys(X, 0)), np.argsort(row_keys(rounded, 0)))
    both = [sample(table, [slice(None)], 100)[0] for table in (X, rounded)]
    np.testing.assert_array_equal(*both)  # samples too
    for table in (1.7e9 + np.arange(200.0)[:, None], X[:200] * 1e-60, X[:200] * 1e60):
        assert len(np.unique(row_keys(table, 0))) > 190  # sixteen bits are left to tell them apart


def sample(X, parts, capacity=500, weight=None):
    keeper = Sample(capacity)
    weight = np.ones(len(X)) if weight is None else weight
    for part in parts:
        keeper.add_salted(row_keys(X[part], 0), np.arange(len(X))[part], weight[part], np.ones(len(X))[part])
    return keeper.rows()[:2]


def test_samples_are_the_same_in_any_order_and_not_the_anchors():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))
    whole, _ = sample(X, [slice(None)])
    order = rng.permutation(5000)
    blocks, _ = sample(X[order], cuts(5000, 7, rng))
    assert len(whole) == 500
    assert set(whole) == set(order[blocks])
    anchors = set(spread(X, np.zeros(5000, int), 500))
    assert 20 < len(anchors & set(whole)) < 90  # a tenth by chance: the two choices are independent


def test_samples_carry_the_weight_of_repeats_and_stay_bounded():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((5000, 3))
    k = rng.integers(1, 4, 5000)
    whole, weight = sample(X, [slice(None)], weight=k.astype(float))
    repeated, counts = sample(X.repeat(k, axis=0), cuts(k.sum(), 5, rng))
    np.testing.assert_array_equal(np.arange(5000).repeat(k)[repeated], whole)
    np.testing.assert_array_equal(counts, weight)
    few, total = sample(rng.integers(0, 2, (200_000, 3)).astype(float), [slice(0, 100_000), slice(100_000, 200_000)])
    assert len(few) == 8
    assert total.sum() == 200_000


def test_a_sample_knows_whether_there_were_more():
    keys = np.arange(100, dtype=np.uint64) * np.uint64(2**50)
    for capacity, more in ((99, True), (100, False), (101, False)):
        sample = Sample(capacity)
        sample.add_salted(keys, np.arange(100), np.ones(100), np.ones(100))
        assert sample.met_more_than(min(capacity, 100)) is more
        assert sample.met_more_than(50)


def test_rows_passed_over_early_change_no_choice():
    rng = np.random.default_rng(0)
    keys = rng.integers(0, 2**63, 5000, dtype=np.uint64)[rng.integers(0, 5000, 20_000)]  # with repeats
    codes = np.where(rng.random(20_000) < 0.01, 2, np.arange(20_000) % 2)  # one rare class
    index, weight = np.arange(20_000), rng.random(20_000)

    def choose(step):
        spread, sample = Spread(300, 3), Sample(200)
        for start in range(0, 20_000, step):
            part = slice(start, start + step)
            spread.add(keys[part], codes[part], index[part])
            spread.settle()
            sample.add_salted(keys[part], index[part], weight[part], np.ones(step))
            sample.settle()
        return spread.rows(), *sample.rows(by_key=True)

    for small, whole in zip(choose(500), choose(20_000), strict=True):
        close(small, whole, terms=20_000)
    assert len(choose(500)[0]) == 300


@given(st.integers(0, 2**32 - 1))
def test_anchors_are_the_same_without_sorting_all_rows(seed):
    rng = np.random.default_rng(seed)
    n = 3000
    keys = rng.integers(0, 2**63, n, dtype=np.uint64)[rng.integers(0, n, n)]
    codes = rng.choice(4, n, p=[0.6, 0.3, 0.09, 0.01])
    keeper = Spread(int(rng.integers(5, 600)), 4)
    keeper.add(keys, codes, np.arange(n))
    quick = keeper.rows()
    keeper.settle()
    keeper._quickly = lambda: None
    np.testing.assert_array_equal(quick, keeper.rows())
