"""Readers of the formats that the official files come in."""

import gzip
import io
import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike


class Parts(NamedTuple):
    """The arrays of a data set."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None


IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}

NORB_TYPES = {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "<u1", 0x1E3D4C56: "<i2"}


def read_npz(path: Path) -> Parts:
    """X, y, or X_train, y_train, X_test, y_test, of an `.npz` file (x_train, ... too, as Keras has them)."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as data:
            arrays = {key.lower(): data[key] for key in data.files}
            for key in arrays:
                if key.startswith("y") and arrays[key].dtype.kind in "iu":
                    arrays[key] = arrays[key].astype(np.int64)
    except (ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as arrays without pickle: {error}") from None
    for keys in (("x_train", "y_train", "x_test", "y_test"), ("x", "y")):
        if all(key in arrays for key in keys):
            return Parts(*(arrays[key] for key in keys))
    raise ValueError(f"{path} has neither X, y nor X_train, y_train, X_test, y_test; it has {', '.join(arrays)}.")


def read_idx(path: Path) -> np.ndarray:
    """An array in the format of MNIST: two zeros, type, number of axes, the axes, the numbers; big-endian."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise ValueError(f"{path} is no idx file: it begins with the bytes {content[:4].hex(' ')}.")
    return _array(path, content, IDX_TYPES[content[2]], 4, content[3], content[3])


def read_norb(path: Path) -> np.ndarray:
    """An array in the format of small NORB: type, number of axes, at least three axes, the numbers; little-endian."""
    content = _content(path)
    magic, n_axes = struct.unpack("<Ii", content[:8]) if len(content) >= 8 else (0, 0)
    if magic not in NORB_TYPES or not 1 <= n_axes <= 32:
        raise ValueError(f"{path} is no binary matrix of NORB: it begins with the bytes {content[:8].hex(' ')}.")
    return _array(path, content, NORB_TYPES[magic], 8, n_axes, max(3, n_axes))


def _array(path: Path, content: bytes, dtype: str, start: int, n_axes: int, stored: int) -> np.ndarray:
    """The array behind a header whose axes begin at `start`; more axes may be stored than count."""
    begin = size = start + 4 * stored
    shape: tuple[int, ...] = ()
    if len(content) >= begin:
        shape = struct.unpack_from(f"{dtype[0]}{n_axes}I", content, start)
        size += math.prod(shape) * np.dtype(dtype).itemsize
    if len(content) != size:
        raise ValueError(
            f"{path} has {len(content)} bytes, but its header asks for {size}: it is cut off or damaged, get it again."
        )
    numbers = np.frombuffer(content, dtype=dtype, offset=begin).reshape(shape)
    return numbers.astype(numbers.dtype.newbyteorder("="))


def read_svhn(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Images, n x 32 x 32 x 3, and digits of a Matlab file of SVHN, where images lie along the last axis."""
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(io.BytesIO(_content(path)), variable_names=["X", "y"])
        X, y = content["X"], content["y"].reshape(-1)
    except (ValueError, TypeError, NotImplementedError, MatReadError, zlib.error) as error:
        raise ValueError(f"{path} cannot be read as a Matlab file: {error}") from None
    except KeyError as error:
        raise ValueError(f"{path} holds no variable {error}, but SVHN's files hold X and y.") from None
    return np.ascontiguousarray(X.transpose(3, 0, 1, 2)), integers(y) % 10  # they write 0 as 10


def read_text(
    path: Path, *, label: int | None = None, separator: str | None = None, headings: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of numbers, "?" for missing ones, and the labels in one of the columns (none: empty).

    Parameters
    ----------
    label : int, optional
        The column of labels.
    separator : str, optional
        By default blanks.
    headings : bool, default=False
        Whether lines that are not numbers may come before the rows.
    """
    rows: list[np.ndarray] = []
    labels: list[str] = []
    for number, line in enumerate(_content(path).decode("latin-1").splitlines(), start=1):
        if not line.strip():
            continue
        fields = [field.strip() for field in line.strip().split(separator)]
        name = "" if label is None else fields.pop(label)
        try:
            row = np.array([math.nan if field == "?" else float(field) for field in fields])
        except ValueError as error:
            if headings and not rows:
                continue
            raise ValueError(f"{path}, line {number}: {error}.") from None
        if headings and not rows and not fields:
            continue
        if rows and len(row) != len(rows[0]):
            raise ValueError(f"{path}, line {number}: {len(row)} numbers, but {len(rows[0])} in the lines before.")
        rows.append(row.astype(np.float32))
        labels.append(name)
    if not rows:
        raise ValueError(f"{path} holds no rows.")
    return np.stack(rows), np.array(labels if label is not None else [])


def _content(path: Path) -> bytes:
    """The bytes of a file, unpacked where it is packed by gzip, whatever its name."""
    content = path.read_bytes()
    if content[:2] != b"\x1f\x8b":
        return content
    try:
        return gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} cannot be unpacked ({error}): it is cut off or damaged, get it again.") from None


def integers(labels: ArrayLike) -> np.ndarray:
    return np.asarray(labels).astype(np.float64).astype(np.int64)
