"""Array library, device and dtype: the only file that names torch or cupy.

Everything below this file is written against the array API standard. The handful of operations the standard
lacks (triangular solves, writing on a diagonal, reading the bits of a float) are here, one function each.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
import scipy.linalg
import scipy.special
from array_api_compat import numpy as numpy_namespace

Array = Any

ONE_POOL = 2000
"""Up to this size NumPy's own LAPACK is used. SciPy brings a second BLAS with a second pool of threads, and while the
threads of the first still wait for work the two get in each other's way."""


SENT_BYTES = 2**20
"""Arrays of at least so many bytes go to a CUDA device through pinned memory."""

SENT_PIECE = 2**25
"""Bytes of a pinned buffer."""

GPU_FACTOR = 16
"""How much larger pieces of work are on a GPU."""

GRAM_COLUMNS = 256
"""Columns of a symmetric product made at once where the library has no symmetric product."""

SQUARED_ROWS = 128
"""Rows whose squares are added in their own dtype before they join a float64 sum."""

PIECE = 2**16
"""Numbers worked on at once where several steps follow one another: they stay in the processor's cache."""


class Space(NamedTuple):
    """Where arrays live: an array namespace and a device."""

    xp: Any
    device: Any

    def asarray(self, x: Array, dtype: str | None = None) -> Array:
        """x here, as `dtype` ("float32", ...; None keeps it). Copies only when something must change."""
        xp = self.xp
        kind = None if dtype is None else getattr(xp, dtype)
        if not is_foreign(x):
            x = np.asarray(x)
            if xp is numpy_namespace:
                return x if kind is None else x.astype(kind, copy=False)
            if dtype is not None:
                x = x.astype(dtype, copy=False)
            if self.is_cuda and x.nbytes >= SENT_BYTES:
                sent, ready = sender(self.device)(x)
                ready()
                return sent
            # torch warns about read-only NumPy memory and cannot take negative strides
            x = np.require(x, requirements=["C", "W"])
            return xp.asarray(x, device=self.device)
        if space_of(x) != self:
            return self.asarray(to_numpy(x), dtype)
        return x if kind is None else xp.astype(x, kind, copy=False)

    def __reduce__(self):  # modules cannot be pickled, their names can
        return _space_by_name, (self.xp.__name__, self.device)

    @property
    def is_cuda(self) -> bool:
        """Whether this is a CUDA device through torch."""
        return self.library == "torch" and getattr(self.device, "type", "") == "cuda"

    def budget(self, bytes_here: int) -> int:
        """Memory to use for a purpose: so many bytes on a CPU, a multiple of that on a GPU, whose memory is all ours
        and which wants large pieces of work."""
        return bytes_here if "cpu" in str(self.device).lower() else GPU_FACTOR * bytes_here

    def product(self, dtype: str) -> str:
        """The dtype of products that may be made in `dtype`: float64 on cards that are as fast at that."""
        return "float64" if self.is_cuda and _fast_at_float64(self.device) else dtype

    def holds(self, size: int) -> bool:
        """Whether an array of so many bytes leaves enough room on the device for everything else."""
        if not self.is_cuda:
            return False
        import torch

        return size <= torch.cuda.mem_get_info(self.device)[0] // 4

    @property
    def library(self) -> str:
        return self.xp.__name__.removeprefix("array_api_compat.").split(".")[0]

    def describe(self) -> str:
        """Library and device in words, for error sentences."""
        return self.library if str(self.device) == "cpu" else f"{self.library} on {self.device}"

    def recipe(self) -> str:
        """The line that brings an array X here."""
        if self.library == "numpy":
            return "numpy.asarray(X.cpu())"
        return f"{self.library}.asarray(X, device={str(self.device)!r})"


@functools.cache
def _fast_at_float64(device: Any) -> bool:
    """Whether a CUDA device multiplies in float64 at the rate of float32: the cards made for data centres do."""
    import torch

    return torch.cuda.get_device_capability(device) in ((8, 0), (9, 0), (10, 0))


@functools.cache
def sender(device: Any) -> Sender:
    return Sender(device)


class Sender:
    """Copies NumPy arrays to a CUDA device: through two pinned buffers in turn, on a stream of its own.

    While one buffer is on its way, the other is filled; and computing on the device goes on meanwhile.
    """

    def __init__(self, device: Any) -> None:
        import torch

        self.device, self.stream, self.lock = device, torch.cuda.Stream(device), threading.Lock()
        self.buffers = [torch.empty(SENT_PIECE, dtype=torch.uint8).pin_memory() for _ in range(2)]
        self.sent = [torch.cuda.Event() for _ in range(2)]

    def __call__(self, x: np.ndarray) -> tuple[Array, Callable[[], None]]:
        """(x on the device, what to call before it is used there)."""
        import torch

        x = np.ascontiguousarray(x)
        if not x.flags.writeable:  # torch warns about memory it could write to: nobody will
            interface = dict(x.__array_interface__, data=(x.__array_interface__["data"][0], False))
            x = np.asarray(type("Writable", (), {"__array_interface__": interface, "owner": x})())
        source = torch.from_numpy(x)
        flat = source.view(-1).view(torch.uint8)
        with self.lock, torch.cuda.stream(self.stream):
            there = torch.empty(source.shape, dtype=source.dtype, device=self.device)
            target = there.view(-1).view(torch.uint8)
            for k, start in enumerate(range(0, len(flat), SENT_PIECE)):
                part = flat[start : start + SENT_PIECE]
                buffer, sent = self.buffers[k % 2][: len(part)], self.sent[k % 2]
                sent.synchronize()
                buffer.copy_(part)
                target[start : start + len(part)].copy_(buffer, non_blocking=True)
                sent.record(self.stream)
            arrived = torch.cuda.Event()
            arrived.record(self.stream)

        def ready() -> None:
            now = torch.cuda.current_stream(self.device)
            now.wait_event(arrived)
            there.record_stream(now)

        return there, ready


def _space_by_name(name: str, device: Any) -> Space:
    return Space(importlib.import_module(name), device)


NUMPY = Space(numpy_namespace, "cpu")


def is_foreign(x: Any) -> bool:
    """True for an array of the array API standard that is not NumPy's (torch, CuPy, array-api-strict, ...)."""
    return compat.is_array_api_obj(x) and not isinstance(x, (np.ndarray, np.generic))


def is_tensor(x: Any) -> bool:
    """True for arrays of torch and CuPy, whose bits can be read where they are."""
    return bool(compat.is_torch_array(x) or compat.is_cupy_array(x))


def space_of(x: Any) -> Space:
    """Namespace and device of x; lists, DataFrames and sparse matrices count as NumPy."""
    return Space(compat.array_namespace(x), compat.device(x)) if is_foreign(x) else NUMPY


def space_for(x: Any, device: str | None) -> Space:
    """Where to compute: where x lives, unless `device` names another place (then through torch)."""
    here = space_of(x)
    if device is None or str(here.device) == device:
        return here
    try:
        import torch
        from array_api_compat import torch as torch_namespace
    except ImportError as error:
        raise ImportError(f"device={device!r} needs PyTorch; install it with: pip install 'pilae[torch]'") from error
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0].rstrip('.')}): leave device=None to "
            "compute where X lives."
        ) from error
    return Space(torch_namespace, torch.device(device))


def namespace(x: Array) -> Any:
    """The array API namespace of x (NumPy's for anything else)."""
    return space_of(x).xp


def to_numpy(x: Array) -> np.ndarray:
    """x as a NumPy array, copied from its device if need be."""
    if not is_foreign(x):
        return np.asarray(x)
    if compat.is_torch_array(x):
        return x.detach().cpu().numpy()
    if compat.is_cupy_array(x):
        return x.get()
    xp = compat.array_namespace(x)
    if compat.is_array_api_strict_namespace(xp):  # its devices are pretended, but must be left like real ones
        return np.asarray(x.to_device(xp.Device("CPU_DEVICE")))
    return np.asarray(x)


def dtype_name(x: Array) -> str:
    """ "float32", "int8", ... whatever the library and the order of bytes."""
    return getattr(x.dtype, "name", str(x.dtype)).split(".")[-1]


def float_name(x: Array) -> str:
    """ "float32" for float32 arrays, "float64" for everything else: integers are computed in float64."""
    return "float32" if dtype_name(x) == "float32" else "float64"


def is_numeric(x: Array) -> bool:
    """True when the dtype is boolean, integer or real floating."""
    return space_of(x).xp.isdtype(x.dtype, ("bool", "integral", "real floating"))


def plus_diagonal(G: Array, value: float) -> Array:
    """G + value * I as a new array."""
    if isinstance(G, np.ndarray):
        A = G.copy()
        A.flat[:: A.shape[0] + 1] += value
        return A
    if compat.is_torch_array(G):
        T = G.clone()
        T.diagonal().add_(value)
        return T
    xp, device = space_of(G)
    return G + value * xp.eye(G.shape[0], dtype=G.dtype, device=device)


def diagonal(G: Array) -> Array:
    """A copy of the diagonal of G."""
    return namespace(G).linalg.diagonal(G) + 0.0


def cholesky(A: Array) -> Array | None:
    """Lower factor L of A = L L', or None when A is not positive definite. A may be overwritten."""
    if isinstance(A, np.ndarray):
        try:
            if A.shape[0] <= ONE_POOL:
                return np.linalg.cholesky(A)
            # the transpose of a C-ordered symmetric matrix is Fortran-ordered: LAPACK works in place
            return scipy.linalg.cholesky(A.T, lower=False, overwrite_a=True, check_finite=False).T
        except np.linalg.LinAlgError:
            return None
    xp = namespace(A)
    if compat.is_torch_array(A):
        L, info = xp.linalg.cholesky_ex(A)
        return L if int(info) == 0 else None
    try:
        L = xp.linalg.cholesky(A)
    except np.linalg.LinAlgError:
        return None
    return L if bool(xp.all(xp.isfinite(diagonal(L)))) else None


def solve_triangular(L: Array, B: Array, *, transposed: bool = False) -> Array:
    """Solve L Y = B, or L' Y = B, for a lower triangular L."""
    if isinstance(L, np.ndarray):
        if L.shape[0] <= ONE_POOL:
            return _substitute(L, B, transposed)
        return scipy.linalg.solve_triangular(L, B, lower=True, trans=int(transposed), check_finite=False)
    xp = namespace(L)
    if compat.is_torch_array(L):
        A = L.mT if transposed else L
        return xp.linalg.solve_triangular(A, B, upper=transposed)
    if compat.is_cupy_array(L):
        from cupyx.scipy.linalg import solve_triangular as solve

        return solve(L, B, lower=True, trans=int(transposed), check_finite=False)
    return xp.linalg.solve(L.mT if transposed else L, B)


def _substitute(L: np.ndarray, B: np.ndarray, transposed: bool) -> np.ndarray:
    """Substitution by blocks of 64 columns: matrix products, and small inverses of the diagonal blocks."""
    p, step = L.shape[0], 64
    rows = np.array(B.T, order="C")  # y_i as rows, overwritten block by block
    starts = range(0, p, step)
    for a in reversed(starts) if transposed else starts:
        part, inverse = slice(a, min(a + step, p)), np.linalg.inv(L[a : a + step, a : a + step])
        if transposed:
            rows[:, part] = (rows[:, part] - rows[:, part.stop :] @ L[part.stop :, part]) @ inverse
        else:
            rows[:, part] = (rows[:, part] - rows[:, :a] @ L[part, :a].T) @ inverse.T
    return rows.T


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


def pieces(x: np.ndarray) -> Iterator[slice]:
    """Slices of the rows of x small enough to stay in the processor's cache."""
    step = max(1, PIECE // max(1, x.shape[1]))
    return (slice(start, start + step) for start in range(0, x.shape[0], step))


def gram(a: Array) -> Array:
    """a'a. NumPy's product knows that it is symmetric; elsewhere it is made of column blocks, each as far as the
    diagonal, and mirrored: little more than half the work."""
    p = int(a.shape[1])
    if isinstance(a, np.ndarray) or p < 2 * GRAM_COLUMNS:
        return a.mT @ a
    xp, device = space_of(a)
    G = xp.empty((p, p), dtype=a.dtype, device=device)
    for start in range(0, p, GRAM_COLUMNS):
        part = slice(start, min(start + GRAM_COLUMNS, p))
        G[part, : part.stop] = a[:, part].mT @ a[:, : part.stop]
        G[:start, part] = G[part, :start].mT
    return G


@contextlib.contextmanager
def full_products(a: Array) -> Iterator[None]:
    """Products of float32 tensors on a CUDA device are made in float32, whatever the user allows: TF32 has ten bits."""
    if not compat.is_torch_array(a) or not a.is_cuda or a.dtype.itemsize != 4:
        yield
        return
    import torch

    matmul = torch.backends.cuda.matmul
    name, full = ("fp32_precision", "ieee") if hasattr(matmul, "fp32_precision") else ("allow_tf32", False)
    before = getattr(matmul, name)
    setattr(matmul, name, full)
    try:
        yield
    finally:
        setattr(matmul, name, before)


def column_sums(a: Array) -> Array:
    """Sums of the columns, as a product with ones: several times faster than a sum along the rows.

    In float32 only NumPy's product adds carefully enough.
    """
    xp, device = space_of(a)
    if isinstance(a, np.ndarray) or a.dtype == xp.float64:
        return xp.ones(a.shape[0], dtype=a.dtype, device=device) @ a
    return xp.sum(a, axis=0, dtype=xp.float64)


def column_squares(a: Array) -> Array:
    """Sums of squares of the columns, in float64."""
    if isinstance(a, np.ndarray):
        total = np.zeros(a.shape[1])
        for part in range(0, a.shape[0], SQUARED_ROWS):
            total += np.einsum("ij,ij->j", a[part : part + SQUARED_ROWS], a[part : part + SQUARED_ROWS])
        return total
    xp = namespace(a)
    return xp.sum(xp.astype(a, xp.float64, copy=False) ** 2, axis=0)


def expit(x: Array) -> Array:
    """Logistic function, stable for large |x|."""
    return overwritten_by_expit(x + 0.0)


def overwritten_by_expit(x: Array) -> Array:
    """Logistic function, in place where the library can: by tanh, which NumPy has in vector instructions."""
    if compat.is_torch_array(x):
        return x.sigmoid_()
    x *= 0.5
    x = overwritten_by_tanh(x)
    x += 1.0
    x *= 0.5
    return x


def overwritten_by_tanh(x: Array) -> Array:
    """Hyperbolic tangent, in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.tanh(x, out=x)
    return x.tanh_() if compat.is_torch_array(x) else namespace(x).tanh(x)


def overwritten_by_relu(x: Array) -> Array:
    """max(x, 0), in place where the library can."""
    if isinstance(x, np.ndarray):
        return np.maximum(x, 0, out=x)
    return x.clamp_(min=0) if compat.is_torch_array(x) else namespace(x).clip(x, min=0.0)


def erf(x: Array) -> Array:
    """Error function (not in the standard)."""
    if compat.is_torch_array(x):
        import torch

        return torch.erf(x)
    if compat.is_cupy_array(x):
        from cupyx.scipy.special import erf as cupy_erf

        return cupy_erf(x)
    result = scipy.special.erf(to_numpy(x))
    return result if isinstance(x, np.ndarray) else space_of(x).asarray(result)


def take_rows(X: Array, rows: np.ndarray) -> Array:
    """X[rows] for integer row numbers held in NumPy."""
    if not is_foreign(X):
        return X[rows]
    space = space_of(X)
    return space.xp.take(X, space.asarray(rows), axis=0)


def times_powers(X: Array, exponents: np.ndarray) -> Array:
    """X with every column multiplied by two to the power of its exponent: exact, in float64.

    By two factors, as a single one may be beyond the range of float64 where what it gives is not.
    """
    half = exponents // 2
    for part in (half, exponents - half):
        factor = np.ldexp(1.0, part)
        if is_foreign(X):
            space = space_of(X)
            X = space.xp.astype(X, space.xp.float64, copy=False) * space.asarray(factor)
        else:
            X = X * factor
    return X


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
