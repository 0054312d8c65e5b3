"""The bits of rows as sums modulo 2**64, in every array library."""

from __future__ import annotations

import numpy as np

from .space import Array, contiguous, is_tensor, namespace, space_of, to_numpy


def word_sums(X: Array, odd: list[np.ndarray]) -> tuple[Array, Array | None]:
    """For each row, sums modulo 2**64 of its entries' bytes times numbers: uint64 in NumPy; in torch and CuPy, where X
    is, the int64 of the same bits.

    The first sum is of the bytes of float32(X) times odd[0], the second of those of X times odd[1] where float32 does
    not hold it (None if it holds all). Byte order is reversed because sums modulo 2**64 only carry upwards: values that
    differ in their sign or exponent alone must differ in low bits.
    """
    if not is_tensor(X):
        return _word_sums(to_numpy(X), odd)
    xp, device = space_of(X)
    factors = [xp.asarray(o.view(np.int64), device=device) for o in odd]
    single = xp.astype(X, xp.float32) + 0.0  # -0.0 counts as 0.0
    words = xp.astype(_swapped_words(single.view(xp.int32)), xp.int64) & 0xFFFFFFFF
    high = xp.sum(words * factors[0], axis=1)
    if X.dtype == xp.float32:
        return high, None
    x = xp.astype(X, xp.float64)
    different = single != x
    if not bool(xp.any(different)):
        return high, None
    words = xp.where(different, _swapped(x).view(xp.int64), xp.zeros_like(words))
    return high, xp.sum(words * factors[1], axis=1)


def _word_sums(x: np.ndarray, odd: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray | None]:
    with np.errstate(over="ignore", under="ignore"):  # beyond float32's range is infinity or zero, still a key
        single = x.astype(np.float32) + np.float32(0)  # -0.0 counts as 0.0
    high = single.view(np.uint32).byteswap().astype(np.uint64) @ odd[0]
    if x.dtype == np.float32:
        return high, None
    x = x.astype(np.float64)
    different = single != x
    if not different.any():
        return high, None
    return high, np.where(different, x.view(np.uint64).byteswap(), np.uint64(0)) @ odd[1]


def _swapped_words(words: Array) -> Array:
    """int32 numbers with their bytes in reverse order: neighbours first, then halves."""
    words = ((words & 0x00FF00FF) << 8) | ((words >> 8) & 0x00FF00FF)
    return (words << 16) | ((words >> 16) & 0xFFFF)


def _swapped(x: Array) -> Array:
    """The bytes of x, those of each number in reverse order."""
    xp = namespace(x)
    each = contiguous(x).view(xp.uint8).reshape((*x.shape, -1))
    return contiguous(xp.flip(each, axis=-1)).reshape((x.shape[0], -1))
