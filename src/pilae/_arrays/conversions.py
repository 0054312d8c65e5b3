"""What an array holds and what becomes of it, whatever its library."""

from functools import cache

import array_api_compat as compat
import numpy as np

from .space import Array, is_foreign, is_tensor, namespace, space_of, to_numpy


def dtype_name(x: Array) -> str:
    """ "float32", "int8", ... whatever the library and the order of bytes."""
    return _name(x.dtype) if isinstance(x.dtype, np.dtype) else str(x.dtype).split(".")[-1]


@cache
def _name(dtype: np.dtype) -> str:
    """Kept: NumPy takes microseconds to spell one."""
    return dtype.name


def float_name(x: Array) -> str:
    """ "float32" for float32 arrays and halves, which have three digits; "float64" for everything else: integers are
    computed in float64."""
    return "float32" if dtype_name(x) in ("float32", "float16", "bfloat16") else "float64"


def is_numeric(x: Array) -> bool:
    """True when the dtype is boolean, integer or real floating."""
    return namespace(x).isdtype(x.dtype, ("bool", "integral", "real floating"))


def take_rows(X: Array, rows: np.ndarray) -> Array:
    """X[rows] for integer row numbers held in NumPy."""
    if not is_foreign(X):
        return X[rows]
    space = space_of(X)
    return space.xp.take(X, space.asarray(rows), axis=0)


def contiguous(x: Array) -> Array:
    """x in C order (tied weights come as transposes)."""
    if compat.is_torch_array(x):
        return x.contiguous()
    return np.ascontiguousarray(x) if isinstance(x, np.ndarray) else x


def as_labels(classes: np.ndarray, numbers: Array) -> Array:
    """classes[numbers], in the library of `numbers` where the classes are numbers, else in NumPy."""
    labels = classes[to_numpy(numbers)]
    return space_of(numbers).asarray(labels) if labels.dtype.kind in "biuf" else labels


def detached(x: Array) -> Array:
    """x without torch's record of gradients."""
    return x.detach() if compat.is_torch_array(x) else x


def word_sums(X: Array, odd: list[np.ndarray]) -> tuple[Array, Array | None]:
    """For each row, sums modulo 2**64 of its entries' bytes times numbers: uint64 in NumPy; in torch and CuPy, where X
    is, the int64 of the same bits.

    The first sum is of the bytes of float32(X) times odd[0], the second of those of X times odd[1] where float32 does
    not hold it (None if it holds all). Byte order is reversed because sums modulo 2**64 only carry upwards: values that
    differ in their sign or exponent alone must differ in low bits.
    """
    if not is_tensor(X):
        X = to_numpy(X)
    xp = namespace(X)
    with np.errstate(over="ignore", under="ignore"):  # beyond float32's range is infinity or zero, still a key
        single = xp.astype(X, xp.float32) + 0.0  # -0.0 counts as 0.0
    high = _sums(single, odd[0])
    if X.dtype == xp.float32:
        return high, None
    x = xp.astype(X, xp.float64)
    different = single != x
    if not bool(xp.any(different)):
        return high, None
    return high, _sums(xp.where(different, x, xp.zeros_like(x)), odd[1])


def _sums(x: Array, odd: np.ndarray) -> Array:
    """For each row the sum of its entries' bits, bytes in reverse order, times these numbers."""
    if isinstance(x, np.ndarray):
        words: np.ndarray = x.view(np.uint32 if x.dtype == np.float32 else np.uint64)
        words = words.byteswap().astype(np.uint64, copy=False)
        return np.einsum("ij,j->i", words, odd)  # no BLAS has products of whole numbers, and this is the quicker loop
    xp, device = space_of(x)
    return xp.sum(_swapped(x) * xp.asarray(odd.view(np.int64), device=device), axis=1)


def _swapped(x: Array) -> Array:
    """The bits of a tensor's float32 or float64, bytes in reverse order, as int64."""
    xp = namespace(x)
    if x.dtype == xp.float32:
        words = x.view(xp.int32)
        words = ((words & 0x00FF00FF) << 8) | ((words >> 8) & 0x00FF00FF)  # neighbours first, then halves
        words = (words << 16) | ((words >> 16) & 0xFFFF)
        return xp.astype(words, xp.int64) & 0xFFFFFFFF
    octets = contiguous(x).view(xp.uint8).reshape((*x.shape, -1))
    return contiguous(xp.flip(octets, axis=-1)).reshape((x.shape[0], -1)).view(xp.int64)
