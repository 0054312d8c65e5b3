"""Memory of large arrays that is used again while a call of pilae lasts.

A block of rows is worked on in arrays as large as those of the block before. Given back and asked for again, such
memory comes in pages that the system has to clear first, and on a virtual machine in pages that the host has yet to
find.
"""

import math
import threading
from collections import deque

import numpy as np

LEAST = 2**22
"""Bytes from which it is worth it: smaller pieces the allocator keeps itself."""

KEPT = 2**28
"""Bytes that wait for their next use, at most."""

ROOMY = 1.5
"""Times the bytes asked for that a piece may have."""

_of_thread = threading.local()


class _Pool:
    """Pieces of memory that nobody uses now."""

    def __init__(self) -> None:
        self.free: deque[np.ndarray] = deque()
        self.open = True

    def take(self, size: int) -> np.ndarray:
        """One of at least so many bytes, the one that was given back last if it will do."""
        for _ in range(len(self.free)):
            try:
                piece = self.free.pop()
            except IndexError:
                break
            if size <= piece.nbytes <= ROOMY * size:
                return piece
            self.free.appendleft(piece)
        return np.empty(size, np.uint8)

    def give_back(self, piece: np.ndarray) -> None:
        if not self.open:
            return
        self.free.append(piece)
        while sum(each.nbytes for each in tuple(self.free)) > KEPT:
            self.free.popleft()


class _Lease:
    """What arrays on a piece of memory have as their base: when the last of them goes, the piece is free again."""

    def __init__(self, pool: _Pool, piece: np.ndarray, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.pool, self.piece = pool, piece
        self.__array_interface__ = {
            "shape": shape,
            "typestr": dtype.str,
            "data": (piece.ctypes.data, False),
            "version": 3,
        }

    def __del__(self) -> None:
        self.pool.give_back(self.piece)


def empty(shape: tuple[int, ...], dtype: object) -> np.ndarray:
    """`numpy.empty` of floating-point numbers, in memory that this call of pilae has used before if there is some."""
    kind: np.dtype = np.dtype(dtype)  # type: ignore[call-overload]
    size, pool = kind.itemsize * math.prod(shape), getattr(_of_thread, "pool", None)
    if pool is None or size < LEAST:
        return np.empty(shape, kind)
    return np.asarray(_Lease(pool, pool.take(size), shape, kind))


def open_pool() -> None:
    """A call of pilae begins in this thread."""
    close_pool()
    _of_thread.pool = _Pool()


def close_pool() -> None:
    """It is over: nothing is kept."""
    pool = getattr(_of_thread, "pool", None)
    if pool is not None:
        pool.open, _of_thread.pool = False, None
        pool.free.clear()
