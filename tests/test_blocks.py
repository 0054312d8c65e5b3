"""Row blocks: sizes, sparse input, memory that does not depend on the number of rows."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from helpers import close, rounding
from pilae import SHLN, PILAEClassifier, StackedPILAE
from pilae._arrays import NUMPY
from pilae._data.rows import BLOCK_BYTES, BLOCK_ROWS, Rows


def test_blocks_cover_the_rows_and_can_be_read_again():
    X = np.arange(20.0).reshape(10, 2)
    rows = Rows(X, NUMPY, codes=np.arange(10) % 3, n_classes=3, weight=np.arange(10.0), block_rows=4)
    for _ in range(2):
        blocks = list(rows.blocks())
        assert [len(b.X) for b in blocks] == [4, 4, 2]
        np.testing.assert_array_equal(np.concatenate([b.X for b in blocks]), X)
        np.testing.assert_array_equal(np.concatenate([b.Z for b in blocks]), np.eye(3)[np.arange(10) % 3])
        np.testing.assert_array_equal(np.concatenate([b.w for b in blocks]), np.arange(10.0))
    assert rows.passes == 2
    assert all(np.shares_memory(b.X, X) for b in rows.blocks())  # views, not copies


@pytest.mark.parametrize(("dtype", "item"), [("float32", 4), ("float64", 8)])
def test_block_size_keeps_the_budget(dtype, item):
    rows = Rows(np.zeros((10, 100), dtype), NUMPY)
    for width in (100, 1000, 4000, 20_000):
        count = rows.rows_per_block(width)
        assert count * width * item <= BLOCK_BYTES
        assert count == BLOCK_ROWS or (count + 1) * width * item > BLOCK_BYTES / 4


def test_csr_becomes_dense_block_by_block():
    X = scipy.sparse.random_array((50, 8), density=0.2, format="csr", random_state=np.random.default_rng(0))
    blocks = [b.X for b in Rows(X, NUMPY, block_rows=7).blocks()]
    np.testing.assert_array_equal(np.concatenate(blocks), X.toarray())
    assert max(len(b) for b in blocks) == 7


def test_integers_become_float64_a_block_at_a_time():
    rows = Rows(np.ones((10, 2), np.uint8), NUMPY, block_rows=5)
    assert next(iter(rows.blocks())).X.dtype == np.float64
    assert next(iter(Rows(np.ones((10, 2), np.uint8), NUMPY, dtype="float32").blocks())).X.dtype == np.float32


def peak(n, fit):
    X = np.random.default_rng(0).standard_normal((n, 20)).astype(np.float32)
    y = (np.arange(n) % 2).astype(np.int64)
    tracemalloc.start()
    fit(X, y)
    top = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return top


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: PILAEClassifier(width=[15], ridge=1e-3, block_rows=1000, head=SHLN(width=50)).fit(X, y),
        lambda X, y: StackedPILAE(width=[15], block_rows=1000).fit(X),
    ],
    ids=["classifier", "stack"],
)
def test_peak_memory_does_not_grow_with_the_rows(fit):
    peak(20_000, fit)
    small, large = peak(20_000, fit), peak(80_000, fit)
    # labels cost a few bytes a row by nature; features would cost 60,000 * 50 * 4 = 12 MB more
    assert large - small < 3e6


def test_half_floats_are_widened_a_block_at_a_time(monkeypatch):
    """Memory does not grow with the rows by what a wider copy of them would take, and no call sees all of them."""
    rng, widened, dense = np.random.default_rng(0), [], Rows._dense

    def spy(self, X):
        widened.append(len(X))
        return dense(self, X)

    monkeypatch.setattr(Rows, "_dense", spy)
    X = rng.standard_normal((40_000, 64), np.float32).astype(np.float16)
    y, peaks = (X[:, 0] > 0).astype(int), []
    for n in (20_000, 40_000):
        part = X[:n]
        tracemalloc.start()
        model = PILAEClassifier(depth=0, head="ridge", block_rows=2000).fit(part, y[:n])
        model.partial_fit(part, y[:n]).predict(part)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(widened) < 13_000  # samples: rows to score, anchors (twice 6,001)
    assert peaks[1] - peaks[0] < 20_000 * 64 * 4 / 2  # of a float32 copy of the rows that came more
    half, single = (PILAEClassifier(depth=0, head="ridge").fit(rows, y) for rows in (X, X.astype(np.float32)))
    assert half.network_.dtype == "float32"  # three digits are not worth computing in sixteen
    close(half.decision_function(X[:50]), single.decision_function(X[:50]), **rounding(single))
