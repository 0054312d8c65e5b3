"""Where arrays live: their library, device and dtype."""

import importlib
from types import ModuleType
from typing import Any, NamedTuple

import array_api_compat as compat
import numpy as np
from array_api_compat import numpy as numpy_namespace

from .._base.extras import extra
from .cuda import SENT_BYTES, fast_at_float64, sender

Array = Any

GPU_FACTOR = 16
"""How much larger pieces of work are on a GPU."""


class Space(NamedTuple):
    """Where arrays live: an array namespace and a device."""

    xp: ModuleType
    device: Any

    def asarray(self, x: Array, dtype: str | None = None) -> Array:
        """x here, as `dtype` ("float32", ...; None keeps it). Copies only when something must change."""
        if is_foreign(x) and space_of(x) == self:
            return x if dtype is None else self.xp.astype(x, getattr(self.xp, dtype), copy=False)
        x = to_numpy(x)
        if dtype is not None:
            x = x.astype(dtype, copy=False)
        if self.xp is numpy_namespace:
            return x
        if self.is_cuda and x.nbytes >= SENT_BYTES:
            sent, ready = sender(self.device)(x)
            ready()
            return sent
        # torch warns about read-only NumPy memory and cannot take negative strides
        return self.xp.asarray(np.require(x, requirements=["C", "W"]), device=self.device)

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
        return "float64" if self.is_cuda and fast_at_float64(self.device) else dtype

    def holds(self, size: int) -> bool:
        """Whether an array of so many bytes leaves enough room on the device for everything else."""
        if not self.is_cuda:
            return False
        import torch

        free, _ = torch.cuda.mem_get_info(self.device)
        unused = torch.cuda.memory_reserved(self.device) - torch.cuda.memory_allocated(self.device)
        return size <= (free + unused) // 4

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


def _space_by_name(name: str, device: object) -> Space:
    return Space(importlib.import_module(name), device)


NUMPY = Space(numpy_namespace, "cpu")


def is_foreign(x: object) -> bool:
    """True for an array of the array API standard that is not NumPy's (torch, CuPy, array-api-strict, ...)."""
    return not isinstance(x, (np.ndarray, np.generic)) and compat.is_array_api_obj(x)


def is_tensor(x: object) -> bool:
    """True for arrays of torch and CuPy, whose bits can be read where they are."""
    return bool(compat.is_torch_array(x) or compat.is_cupy_array(x))


def space_of(x: object) -> Space:
    """Namespace and device of x; lists, DataFrames and sparse matrices count as NumPy."""
    return Space(compat.array_namespace(x), compat.device(x)) if is_foreign(x) else NUMPY


def space_for(x: object, device: str | None) -> Space:
    """Where to compute: where x lives, unless `device` names another place (then through torch)."""
    here = space_of(x)
    if device is None or str(here.device) == device:
        return here
    torch = extra("torch", "torch", f"device={device!r}")
    from array_api_compat import torch as torch_namespace

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"device={device!r} cannot be used here ({str(error).splitlines()[0].rstrip('.')}): leave device=None to "
            "compute where X lives."
        ) from error
    return Space(torch_namespace, torch.device(device))


def namespace(x: Array) -> ModuleType:
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
