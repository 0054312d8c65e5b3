"""Arrays of `.npz` files as a table; memory is taken for what they hold, not for what they claim."""

import math
import os
import zipfile
from typing import Any

import numpy as np

from .._arrays.npy import claimed_array
from .._base.sentences import listed, shortened
from .errors import TableError, check_names, reason
from .frames import Frame

NPZ_KINDS = "biufSUM"
"""Kinds of NumPy arrays that are columns: truth values, numbers, text, dates."""


def read_npz(path: str) -> Frame:
    """Arrays X and y (or X_train and y_train), or one array for each column."""
    import pandas as pd

    arrays = _npz_arrays(path)
    if "X" not in arrays and "X_train" in arrays:
        arrays = {name.removesuffix("_train"): value for name, value in arrays.items() if name.endswith("_train")}
    if "X" in arrays:
        X = arrays.pop("X")
        if not X.ndim or not X.size:
            raise TableError(f"X of {path} has the shape {X.shape}: expected rows x columns, at least one of each.")
        X = X.reshape(len(X), -1)
        named = arrays.pop("feature_names", None)
        names = [f"x{k}" for k in range(X.shape[1])] if named is None else [str(name) for name in named.ravel()]
        if len(names) != X.shape[1]:
            raise TableError(f"{path} has {X.shape[1]} columns in X, but {len(names)} feature_names.")
        targets = {name: column for name, column in arrays.items() if column.shape == (len(X),)}
        check_names([*names, *targets], path)
        return pd.concat([_framed(path, X, columns=names), _framed(path, targets)], axis=1)
    if len({column.shape for column in arrays.values()}) != 1 or next(iter(arrays.values())).ndim != 1:
        raise TableError(
            f"{path} holds {listed(list(arrays)) or 'nothing'}: expected X (rows x columns) and targets, or one array "
            "for each column, all of one length."
        )
    check_names(list(arrays), path)
    return _framed(path, arrays)


def _framed(path: str, arrays: np.ndarray | dict[str, np.ndarray], columns: list[str] | None = None) -> Frame:
    import pandas as pd

    try:
        return pd.DataFrame(arrays, columns=columns)
    except (ValueError, TypeError) as error:  # dates without a unit, or that are out of range
        raise TableError(f"{path} cannot be read as a table: {reason(error)}.") from error


def _npz_arrays(path: str) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_names([member.filename.removesuffix(".npy") for member in members], "it")
            needed, memory = sum(member.file_size for member in members), _memory()
            if needed > memory:
                raise ValueError(
                    f"its arrays take {needed / 2**30:,.1f} GiB and are read at once, but this machine has "
                    f"{memory / 2**30:,.1f} GiB: write a table of this size as Parquet or CSV"
                )
            return {member.filename.removesuffix(".npy"): _npy(archive, member) for member in members}
    except MemoryError:
        raise
    except Exception as error:  # of zipfile, zlib, bz2, lzma, struct and tokenize, which have no class in common
        raise TableError(f"{path} cannot be read as an npz file: {reason(error)}.") from error


def _memory() -> float:
    """Bytes that this machine has; no limit where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, if it is as large as it says; memory is taken only then."""
    file: Any
    with archive.open(member) as file:
        try:
            shape, fortran, dtype = claimed_array(file, member.file_size)
        except Exception as error:  # NumPy's parser of headers raises many
            raise ValueError(f"{shortened(member.filename)}: {error}") from error
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in NPZ_KINDS or not dtype.itemsize:
            raise ValueError(f"{shortened(member.filename)} holds {dtype}, not numbers, text or dates")
        data, filled = np.empty(size, dtype=np.uint8), 0
        while filled < size:  # never more than that, whatever the archive would unpack
            count = file.readinto(data[filled : filled + 2**20].data)
            if not count:
                raise ValueError(f"{shortened(member.filename)} is not as long as its shape {shape} says")
            filled += count
    array = data.view(dtype).reshape(shape, order="F" if fortran else "C")
    return _native(array.astype(dtype.newbyteorder("="), copy=False), member.filename)


def _native(array: np.ndarray, name: str) -> np.ndarray:
    """The array as pandas takes it. Bits that are neither truth values nor characters are an error."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "S":
        return np.char.decode(array, "utf-8")
    if kind == "f" and size not in (4, 8):
        return array.astype(np.float32 if size < 4 else np.float64)
    if kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{shortened(name)} holds bytes that are no truth values")
    if kind == "U":
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError(f"{shortened(name)} holds characters that do not exist")
    return array
