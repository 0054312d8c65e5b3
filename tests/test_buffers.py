"""Memory that is used again while a call lasts, and never while somebody still looks at it."""

import threading

import numpy as np
import pytest

from helpers import blobs
from pilae import SHLN, PILAEClassifier
from pilae._arrays import buffers
from pilae._arrays.buffers import KEPT, LEAST, close_pool, empty, open_pool
from pilae._arrays.threads import sharing

LARGE = (LEAST // 8, 1)


def place(array):
    return array.__array_interface__["data"][0]


@pytest.fixture
def pool():
    open_pool()
    yield
    close_pool()


def test_memory_comes_back_when_the_last_view_has_gone(pool):
    first = empty(LARGE, "float64")
    first[:] = 7.0
    at, part = place(first), first.T[:, 3:5]
    del first
    second = empty(LARGE, "float64")
    second[:] = 8.0
    assert place(second) != at
    assert part.tolist() == [[7.0, 7.0]]
    del part
    third = empty((LEAST // 4, 1), "float32")  # of as many bytes
    assert place(third) == at
    assert third.dtype == np.float32
    assert third.flags.c_contiguous
    assert third.flags.writeable


def test_other_sizes_are_not_given(pool):
    at = place(empty((LEAST, 2), "float64"))
    little = empty(LARGE, "float64")
    assert place(little) != at
    assert isinstance(empty((3,), "float64").base, type(None))


def test_no_more_is_kept_than_stated(pool):
    arrays = [empty((KEPT // 3 + k * KEPT // 4,), "uint8") for k in range(4)]
    del arrays
    free = buffers._of_thread.pool.free
    assert 0 < sum(piece.nbytes for piece in free) <= KEPT


def test_nothing_is_kept_without_a_call_or_after_it():
    assert empty(LARGE, "float64").base is None
    with sharing():
        held = empty(LARGE, "float64")
        assert held.base is not None
        with sharing():
            pass
        assert empty(LARGE, "float64").base is not None
    held[:] = 1.0  # whoever still has it, keeps it
    del held
    assert empty(LARGE, "float64").base is None


def test_threads_have_pools_of_their_own(pool):
    held, found = empty(LARGE, "float64"), []
    thread = threading.Thread(target=lambda: found.append(empty(LARGE, "float64").base))
    thread.start()
    thread.join()
    assert found == [None]
    assert held.base is not None


def test_fits_and_answers_hold_no_memory_of_a_pool():
    X, y = blobs(4000, d=60, seed=3)
    model = PILAEClassifier(depth=0, head=SHLN(300), ridge=1e-3, block_rows=4000).fit(X, y)
    before = [model.decision_function(X), model.predict_proba(X)]
    PILAEClassifier(depth=0, head=SHLN(280), ridge=1e-3, block_rows=4000).fit(-X[::-1], y)
    for one, again in zip(before, [model.decision_function(X), model.predict_proba(X)], strict=True):
        assert np.array_equal(one, again)
