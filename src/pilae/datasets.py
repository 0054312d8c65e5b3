"""The data sets of the paper, by name: from a folder, as `.npz` or as the official files, else from OpenML.

Nothing is scaled, centred or filled in: images keep their shape, missing values are NaN, labels are the same whichever
way a set came. Shapes and labels are checked, so that a part of a set never passes for the whole.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse


class Parts(NamedTuple):
    """The arrays of a data set."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None = None
    y_test: np.ndarray | None = None


@dataclass(frozen=True)
class Dataset:
    """A data set as it was found.

    Attributes
    ----------
    name, title : str
        Its name here, and what the paper calls it.
    X, y : arrays
        Rows and labels; the training part where there is an official split.
    X_test, y_test : arrays or None
        The official test part. None where there is none, or where the source does not tell it from the rest.
    source : str
        The files it was read from, or "OpenML 554".
    checksum : str
        SHA-256 of the arrays (dtype, shape, bytes): equal for equal arrays, wherever they came from.
    """

    name: str
    title: str
    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray | None
    y_test: np.ndarray | None
    source: str
    checksum: str


def load(name: str, folder: str | Path | None = None, *, openml: bool = True) -> Dataset:
    """A data set of the paper, checked.

    Looks for `<file>.npz` in the folder, then for the official files in the folder or in a folder `<name>` in it
    (compressed by gzip or not), then asks OpenML.

    Parameters
    ----------
    name : str
        One of `pilae.datasets.NAMES`.
    folder : path, optional
        Where the files are; by default the folder that the environment variable PILAE_DATA names.
    openml : bool, default=True
        Whether to download a set that is not in the folder. scikit-learn keeps what it downloads.

    Returns
    -------
    Dataset

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pilae import datasets
    >>> objects = np.zeros((1440, 32, 32), dtype=np.uint8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez_compressed(f"{folder}/coil20_32x32.npz", X=objects, y=np.arange(1440) % 20)
    ...     data = datasets.load("coil20_32x32", folder)
    >>> data.X.shape, data.X_test, data.source
    ((1440, 32, 32), None, 'coil20_32x32.npz')
    """
    if name not in NAMES:
        raise ValueError(f"There is no data set {name!r}; there are {', '.join(NAMES)}.")
    place = folder if folder is not None else os.environ.get("PILAE_DATA") or None
    root = None if place is None else Path(place).expanduser()
    found = None if root is None else _from_folder(name, root)
    if found is None:
        found = _from_openml(name, root, openml)
    parts, source = found
    _check(name, parts, source if root is None or source.startswith("OpenML") else f"{root}: {source}")
    return Dataset(name, EXPECTED[name].title, *parts, source, checksum(parts))


def _from_folder(name: str, root: Path) -> tuple[Parts, str] | None:
    """What a folder has of a set; whatever goes wrong names the folder."""
    try:
        return _from_npz(name, root) or _from_files(name, root)
    except (OSError, ValueError, TypeError, KeyError, EOFError) as error:
        if str(root) in str(error):  # the sentence names the file
            raise
        raise ValueError(
            f"The files of {name!r} in {root} cannot be read ({' '.join(str(error).split())}): they are damaged or of "
            "another format, get them anew."
        ) from error


def checksum(parts: Parts) -> str:
    """SHA-256 over dtype, shape and bytes of the arrays, the same on every machine."""
    total = hashlib.sha256()
    for array in parts:
        if array is not None:
            plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
            total.update(f"{plain.dtype.str} {plain.shape};".encode())
            total.update(plain.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


# --- where a set may be ---


def _from_npz(name: str, root: Path) -> tuple[Parts, str] | None:
    for stem in NPZ.get(name, (name,)):
        path = root / f"{stem}.npz"
        if path.is_file():
            return read_npz(path), path.name
    return None


def _from_files(name: str, root: Path) -> tuple[Parts, str] | None:
    if name not in OFFICIAL:
        return None
    files, read, *_ = OFFICIAL[name]
    for place in _places(name):
        paths = [path for path in (_plain_or_gz(root / place / file) for file in files) if path is not None]
        if len(paths) == len(files):
            X, y, X_test, y_test = read(paths)
            label = LABELS.get(name, _integers)
            parts = Parts(X, label(y), X_test, None if y_test is None else label(y_test))
            return parts, ", ".join(path.relative_to(root).as_posix() for path in paths)
    return None


def _places(name: str) -> tuple[str, ...]:
    """Folders in which the official files are looked for, all in the same."""
    return OFFICIAL[name].places or (name, "")


def _plain_or_gz(path: Path) -> Path | None:
    return next((p for p in (path, path.with_name(f"{path.name}.gz")) if p.is_file()), None)


def _from_openml(name: str, root: Path | None, allowed: bool) -> tuple[Parts, str]:
    if name not in OPENML:
        raise FileNotFoundError(_missing(name, root, "OpenML does not have it in a form that can be checked"))
    source = f"OpenML {OPENML[name]}"
    if not allowed:
        raise FileNotFoundError(_missing(name, root, f"{source} was not asked (openml=False)"))
    try:
        return _fetch(name, source), source
    except OSError as error:  # URLError, a time-out, no room for the copy
        answer = f"{source} could not be read ({type(error).__name__}: {error})"
        raise FileNotFoundError(_missing(name, root, answer)) from error


def _missing(name: str, root: Path | None, openml: str) -> str:
    """The sentence for a set that is nowhere."""
    wanted, folders = " or ".join(f"{stem}.npz" for stem in NPZ.get(name, (name,))), [str(root)]
    if name in OFFICIAL:
        wanted += f", or {', '.join(OFFICIAL[name].files)}"
        folders += [str(root / place) for place in _places(name) if root is not None and place]
    if root is None:
        looked = f"no folder was given and PILAE_DATA is not set, where {wanted} would be looked for"
    else:
        looked = f"looked in {', '.join(folders)}{'' if root.is_dir() else ' (no such folder)'} for {wanted}"
    return (
        f"The data set {name!r} was not found: {looked}; {openml}; {ADDRESS[name]}, and name the folder by PILAE_DATA "
        "or folder=..."
    )


def _fetch(name: str, source: str) -> Parts:
    """A set from OpenML, in the shape and with the labels of the official files."""
    from sklearn.datasets import fetch_openml

    # this parser needs no pandas; nominal columns come as places in a list of their values
    target = TARGET.get(name, "default-target")
    bunch = fetch_openml(data_id=OPENML[name], target_column=target, as_frame=False, parser="liac-arff")
    X = np.asarray(bunch.data.toarray() if scipy.sparse.issparse(bunch.data) else bunch.data)
    for column, values in (bunch.categories or {}).items():
        j = list(bunch.feature_names).index(column)
        there = ~np.isnan(X[:, j])
        X[there, j] = np.array(values, dtype=np.float64)[X[there, j].astype(int)]
    y = LABELS.get(name, _integers)(bunch.target)
    (n, *one), n_test = EXPECTED[name].shape, EXPECTED[name].n_test
    _check_shape(name, "X", X, (n + n_test, math.prod(one)), source)
    X = X.astype(np.uint8 if len(one) > 1 else np.float32).reshape(-1, *one)
    return Parts(X[:n], y[:n], X[n:], y[n:]) if name in IN_ORDER else Parts(X, y)


# --- what a set must look like ---


class Expected(NamedTuple):
    """What a set is called, and what it must look like."""

    title: str
    shape: tuple[int, ...]
    n_test: int
    """Rows of the official test part, if there is one."""
    classes: Iterable


def _check(name: str, parts: Parts, where: str) -> None:
    """Shapes and labels must be those of the set; training and test part may have come as one."""
    X, y, X_test, y_test = parts
    title, (n, *one), n_test, classes = EXPECTED[name]
    if X_test is None or y_test is None:
        n += n_test
    else:
        _check_shape(name, "X_test", X_test, (n_test, *one), where)
        _check_shape(name, "y_test", y_test, (n_test,), where)
    _check_shape(name, "X", X, (n, *one), where)
    _check_shape(name, "y", y, (n,), where)
    found = np.unique(y if y_test is None else np.concatenate([y, y_test])).tolist()
    if found != list(classes):
        raise ValueError(f"{where}: found {_few(found)}, but {title} has {_few(list(classes))}; {ADDRESS[name]}.")


def _check_shape(name: str, what: str, array: np.ndarray, expected: tuple, where: str) -> None:
    if array.shape != expected:
        title = EXPECTED[name].title
        raise ValueError(f"{where}: {what} has shape {array.shape}, but {title} has {expected}; {ADDRESS[name]}.")


def _few(classes: list) -> str:
    return f"{len(classes)} classes ({', '.join(map(str, classes[:3]))}{', ...' if len(classes) > 3 else ''})"


# --- readers of the official formats ---


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


IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}
NORB_TYPES = {0x1E3D4C51: "<f4", 0x1E3D4C53: "<f8", 0x1E3D4C54: "<i4", 0x1E3D4C55: "<u1", 0x1E3D4C56: "<i2"}


def read_idx(path: Path) -> np.ndarray:
    """An array in the format of MNIST: two zeros, type, number of axes, the axes, the numbers; big-endian."""
    content = _content(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in IDX_TYPES:
        raise ValueError(f"{path} is no idx file: it begins with the bytes {content[:4].hex(' ')}.")
    return _array(path, content, IDX_TYPES[content[2]], ">", 4, content[3], content[3])


def read_norb(path: Path) -> np.ndarray:
    """An array in the format of small NORB: type, number of axes, at least three axes, the numbers; little-endian."""
    content = _content(path)
    magic, n_axes = struct.unpack("<Ii", content[:8]) if len(content) >= 8 else (0, 0)
    if magic not in NORB_TYPES or not 1 <= n_axes <= 32:
        raise ValueError(f"{path} is no binary matrix of NORB: it begins with the bytes {content[:8].hex(' ')}.")
    return _array(path, content, NORB_TYPES[magic], "<", 8, n_axes, max(3, n_axes))


def _array(path: Path, content: bytes, dtype: str, order: str, start: int, n_axes: int, stored: int) -> np.ndarray:
    """The array behind a header whose axes begin at `start`; more axes may be stored than count."""
    begin = start + 4 * stored
    shape = struct.unpack_from(f"{order}{n_axes}I", content, start) if len(content) >= begin else None
    size = None if shape is None else begin + math.prod(shape) * np.dtype(dtype).itemsize
    if shape is None or size != len(content):
        raise ValueError(
            f"{path} has {len(content)} bytes, but its header asks for {begin if size is None else size}: "
            "it is cut off or damaged, get it again."
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
    return np.ascontiguousarray(X.transpose(3, 0, 1, 2)), _integers(y) % 10  # they write 0 as 10


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
        fields = [field.strip() for field in line.strip().split(separator)]
        if not line.strip():
            continue
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


# --- from files to a set ---


def _integers(labels: Any) -> np.ndarray:
    return np.asarray(labels).astype(np.float64).astype(np.int64)


def _from_zero(labels: Any) -> np.ndarray:
    return _integers(labels) - 1


def _words(labels: Any) -> np.ndarray:
    return np.array([str(label).strip(" .'\"").lower() for label in labels])


def _idx_set(paths: list[Path]) -> Parts:
    return Parts(*(read_idx(path) for path in paths))


def _norb_set(paths: list[Path]) -> Parts:
    return Parts(*(read_norb(path) for path in paths))


def _svhn_set(paths: list[Path]) -> Parts:
    return Parts(*read_svhn(paths[0]), *read_svhn(paths[1]))


def _tables(paths: list[Path], *, label: int, headings: bool = False, split: bool = False) -> Parts:
    """Files of rows with their labels, one after another, or the second as the test part."""
    tables = [read_text(path, label=label, separator=",", headings=headings) for path in paths]
    if split:
        return Parts(*tables[0], *tables[1])
    return Parts(np.concatenate([X for X, _ in tables]), np.concatenate([y for _, y in tables]))


def _pairs(paths: list[Path], *, split: bool = False) -> Parts:
    """Files of rows, each before the file of its labels, one after another, or the second pair as the test part."""
    tables = [read_text(path)[0] for path in paths]
    X, y = tables[::2], [labels[:, 0] for labels in tables[1::2]]
    return Parts(X[0], y[0], X[1], y[1]) if split else Parts(np.concatenate(X), np.concatenate(y))


def _mfeat(paths: list[Path]) -> Parts:
    """Six files of columns; the digits are in order, equally many of each."""
    X = [read_text(path)[0] for path in paths]
    if len({len(part) for part in X}) > 1:
        raise ValueError(f"{paths[0].parent}: the mfeat files have {', '.join(str(len(part)) for part in X)} rows.")
    return Parts(np.concatenate(X, axis=1), np.arange(len(X[0])) * 10 // len(X[0]))


# --- the sets ---


class Official(NamedTuple):
    """The official files of a set, what makes a set of them, and where they may be if not in the usual places."""

    files: tuple[str, ...]
    read: Callable[[list[Path]], Parts]
    places: tuple[str, ...] = ()


DIGITS, LETTERS, SIGNS, ACTIVITIES = range(10), range(26), (-1, 1), range(1, 7)
SURFACES = ("brickface", "cement", "foliage", "grass", "path", "sky", "window")

EXPECTED = {
    "bupa": Expected("Bupa", (345, 6), 0, (1, 2)),
    "segment": Expected("Segment", (2310, 19), 0, SURFACES),
    "mfeat": Expected("Mfeat", (2000, 649), 0, DIGITS),
    "prior": Expected("Prior", (3468, 784), 0, SIGNS),
    "har": Expected("Har", (7352, 561), 2947, ACTIVITIES),
    "advertisement": Expected("Advertisement", (3279, 1558), 0, ("ad", "nonad")),
    "gina_agnostic": Expected("Gina_agnostic", (3468, 970), 0, SIGNS),
    "spambase": Expected("Spambase", (4601, 57), 0, (0, 1)),
    "isolet": Expected("Isolet", (6238, 617), 1559, LETTERS),
    "sylva": Expected("Sylva", (14395, 216), 0, SIGNS),
    "mnist": Expected("MNIST", (60000, 28, 28), 10000, DIGITS),
    "fashion_mnist": Expected("Fashion-MNIST", (60000, 28, 28), 10000, DIGITS),
    "norb": Expected("NORB", (24300, 2, 96, 96), 24300, range(5)),
    "svhn": Expected("SVHN", (73257, 32, 32, 3), 26032, DIGITS),
    "sylva_agnostic_train": Expected("the training part of Sylva", (13086, 216), 0, SIGNS),
    "isolet_subset": Expected("the part of Isolet", (1560, 617), 1559, LETTERS),
    "har_subset735": Expected("the part of Har", (735, 561), 0, ACTIVITIES),
    "svhn_gray": Expected("the gray crop of SVHN", (73257, 32, 32), 26032, DIGITS),
    "coil20_32x32": Expected("COIL-20", (1440, 32, 32), 0, range(20)),
}
"""By name: the sets of the paper, then parts of them and stand-ins."""

NAMES = tuple(EXPECTED)
"""What `load` can load."""

NPZ = {
    "bupa": ("liver_bupa",),
    "prior": ("gina_prior",),
    "advertisement": ("internet_ads",),
    "sylva": ("sylva_agnostic",),
    "norb": ("norb", "smallnorb"),
}
"""Stems of `.npz` files that are not the name."""

IDX = tuple(f"{part}-{kind}-ubyte" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1"))
NORB = tuple(
    f"smallnorb-5x{part}-{kind}.mat"
    for part in ("46789x9x18x6x2x96x96-training", "01235x9x18x6x2x96x96-testing")
    for kind in ("dat", "cat")
)
GINA, SYLVA = (
    tuple(f"{stem}_{part}.{kind}" for part in ("train", "valid") for kind in ("data", "labels"))
    for stem in ("gina", "sylva")
)
MFEAT = tuple(f"mfeat-{part}" for part in ("fou", "fac", "kar", "pix", "zer", "mor"))
HAR = ("train/X_train.txt", "train/y_train.txt", "test/X_test.txt", "test/y_test.txt")
HAR_PLACES = ("UCI HAR Dataset", "har/UCI HAR Dataset", "har", "")
SYLVA_PLACES = ("sylva", "sylva_agnostic", "")

OFFICIAL = {
    "bupa": Official(("bupa.data",), partial(_tables, label=-1)),
    "segment": Official(("segmentation.data", "segmentation.test"), partial(_tables, label=0, headings=True)),
    "mfeat": Official(MFEAT, _mfeat),
    # the two gina sets share their file names, and so do MNIST and Fashion-MNIST: in folders of their own only
    "prior": Official(GINA, _pairs, ("prior", "gina_prior")),
    "har": Official(HAR, partial(_pairs, split=True), HAR_PLACES),
    "advertisement": Official(("ad.data",), partial(_tables, label=-1)),
    "gina_agnostic": Official(GINA, _pairs, ("gina_agnostic",)),
    "spambase": Official(("spambase.data",), partial(_tables, label=-1)),
    "isolet": Official(("isolet1+2+3+4.data", "isolet5.data"), partial(_tables, label=-1, split=True)),
    "sylva": Official(SYLVA, _pairs, SYLVA_PLACES),
    "mnist": Official(IDX, _idx_set, ("mnist", "MNIST/raw")),
    "fashion_mnist": Official(IDX, _idx_set, ("fashion_mnist", "FashionMNIST/raw")),
    "norb": Official(NORB, _norb_set, ("norb", "smallnorb", "")),
    "svhn": Official(("train_32x32.mat", "test_32x32.mat"), _svhn_set),
    "sylva_agnostic_train": Official(SYLVA[:2], _pairs, SYLVA_PLACES),
}

LABELS: dict[str, Callable[[Any], np.ndarray]] = {"segment": _words, "advertisement": _words, "isolet": _from_zero}
"""From labels as official files and OpenML have them; the others are whole numbers."""

OPENML = {
    "bupa": 8,
    "segment": 36,
    "prior": 1042,
    "har": 1478,
    "advertisement": 40978,
    "gina_agnostic": 1038,
    "spambase": 44,
    "isolet": 300,
    "sylva": 1036,
    "mnist": 554,
    "fashion_mnist": 40996,
}
"""Numbers at OpenML. It has SVHN (41081) too, but the order of the pixels in its flat rows is not written down."""

IN_ORDER = ("mnist", "fashion_mnist")
"""Sets whose rows at OpenML are known to be the training part, then the test part."""

TARGET = {"bupa": "selector"}
"""Where the class is not OpenML's own target (there, the number of drinks)."""

UCI = "get the files from https://archive.ics.uci.edu/dataset"
CHALLENGE = "get the files of the agnostic learning challenge from http://www.agnostic.inf.ethz.ch/datasets.php"
COIL = "https://www.cs.columbia.edu/CAVE/software/softlib/coil-20.php"

ADDRESS = {
    "bupa": f"{UCI}/60/liver+disorders",
    "segment": f"{UCI}/50/image+segmentation",
    "mfeat": f"{UCI}/72/multiple+features",
    "prior": CHALLENGE,
    "har": f"{UCI}/240/human+activity+recognition+using+smartphones",
    "advertisement": f"{UCI}/51/internet+advertisements",
    "gina_agnostic": CHALLENGE,
    "spambase": f"{UCI}/94/spambase",
    "isolet": f"{UCI}/54/isolet (unpack .Z by uncompress)",
    "sylva": CHALLENGE,
    "mnist": "get the files from https://ossci-datasets.s3.amazonaws.com/mnist/",
    "fashion_mnist": "get the files from https://github.com/zalandoresearch/fashion-mnist",
    "norb": "get the files from https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/",
    "svhn": "get the files from http://ufldl.stanford.edu/housenumbers/",
    "sylva_agnostic_train": CHALLENGE,
    "isolet_subset": "the part is in no public place, but the whole is load('isolet')",
    "har_subset735": "the part is in no public place, but the whole is load('har')",
    "svhn_gray": "the crop is in no public place, but the official set is load('svhn')",
    "coil20_32x32": f"get the images from {COIL} and bring them to 32 x 32",
}
