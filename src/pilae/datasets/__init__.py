"""The data sets of the paper, by name: from a folder, as `.npz` or as the official files, else from OpenML. And folders
of images (`load_images`).

Nothing is scaled, centred or filled in: images keep their shape, missing values are NaN, labels are the same whichever
way a set came. Shapes and labels are checked, so that a part of a set never passes for the whole.
"""

import hashlib
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .._base.progress import Progress
from .._base.scalars import is_integer
from .._base.warn import warn
from .._pictures.folders import images_by_class
from .._pictures.reading import ImageReader, Pictures
from .formats import Parts, read_npz
from .sets import SETS, Known, OpenML

__all__ = ["NAMES", "Dataset", "Pictures", "load", "load_images"]

NAMES = tuple(SETS)
"""What `load` can load."""


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
    folder = folder if folder is not None else os.environ.get("PILAE_DATA") or None
    root = None if folder is None else Path(folder).expanduser()
    parts, source = (root and _from_folder(name, root)) or _from_openml(name, root, openml)
    _check(SETS[name], parts, source if root is None or source.startswith("OpenML") else f"{root}: {source}")
    return Dataset(name, SETS[name].title, *parts, source, checksum(parts))


def load_images(
    folder: str | Path,
    *,
    size: tuple[int, int] | None = None,
    like: Any = None,
    skip: int = 0,
    verbose: bool = False,
) -> Pictures:
    """The images of a folder that has one folder for each class, as one array of bytes.

    PNG, JPEG, GIF, BMP, TIFF and WebP, by Pillow (`pip install 'pilae[images]'`). All come in one size, the way up they
    were taken, on white where they are transparent; gray if all are gray, else with three channels. What was left out
    or brought to another size without being asked for is said in a warning.

    Parameters
    ----------
    folder : path
    size : (width, height), optional
        By default the size of nine in ten images, if there is one of at most 128 pixels a side; else the median width
        and height, reduced to at most 64 pixels a side. The whole image is kept: where its sides have another
        proportion it is stretched.
    like : fitted PILAEImageClassifier or ConvPILAE, optional
        Images as it takes them: of its size, gray or in colours as those it was fitted on.
    skip : int, default=0
        How many files that cannot be read are left out; more are an error, which names them.
    verbose : bool, default=False
        Progress on standard error.

    Returns
    -------
    (images, labels, files)
        Bytes of shape (n, height, width) or (n, height, width, 3), the names of the folders, and of the files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from PIL import Image
    >>> from pilae import datasets
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("black", "white"):
    ...         pathlib.Path(folder, name).mkdir()
    ...         Image.new("L", (8, 6), name).save(f"{folder}/{name}/1.png")
    ...     images, labels, files = datasets.load_images(folder)
    >>> images.shape, images.dtype.name, labels.tolist()
    ((2, 6, 8), 'uint8', ['black', 'white'])
    """
    if size is not None and not (len(size) == 2 and all(is_integer(side) and side > 0 for side in size)):
        raise ValueError(f"'size' must be (width, height) in pixels. Got {size!r} instead.")
    if not is_integer(skip) or skip < 0:
        raise ValueError(f"'skip' must be an integer of at least 0. Got {skip!r} instead.")
    channels = None
    if like is not None:
        shape = getattr(like, "image_shape_", None)
        if shape is None or shape[2] not in (1, 3) or size is not None:
            raise ValueError(
                "'like' must be a model fitted on images of one or three channels, and takes the place of 'size': give "
                "one of the two."
            )
        size, channels = (shape[1], shape[0]), shape[2]
    progress = Progress(verbose)
    reader, found = ImageReader(skip, progress), images_by_class(folder)
    pictures = reader.by_class(found, size, channels)
    progress.close()
    for sentence in (*found.remarks, *reader.remarks):
        warn(sentence)
    return pictures


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


def _from_npz(name: str, root: Path) -> tuple[Parts, str] | None:
    paths = (root / f"{stem}.npz" for stem in SETS[name].npz or (name,))
    return next(((read_npz(path), path.name) for path in paths if path.is_file()), None)


def _from_files(name: str, root: Path) -> tuple[Parts, str] | None:
    files, labels = SETS[name].files, SETS[name].labels
    if files is None:
        return None
    for folder in files.places(name):
        paths = [_plain_or_gz(root / folder / file) for file in files.names]
        if all(path.is_file() for path in paths):
            parts = files.read(paths)
            y_test = None if parts.y_test is None else labels(parts.y_test)
            source = ", ".join(path.relative_to(root).as_posix() for path in paths)
            return parts._replace(y=labels(parts.y), y_test=y_test), source
    return None


def _plain_or_gz(path: Path) -> Path:
    return path if path.is_file() else path.with_name(f"{path.name}.gz")


def _from_openml(name: str, root: Path | None, allowed: bool) -> tuple[Parts, str]:
    there = SETS[name].openml
    if there is None:
        raise FileNotFoundError(_missing(name, root, "OpenML does not have it in a form that can be checked"))
    source = f"OpenML {there.number}"
    if not allowed:
        raise FileNotFoundError(_missing(name, root, f"{source} was not asked (openml=False)"))
    try:
        return _fetch(SETS[name], there, source), source
    except OSError as error:  # URLError, a time-out, no room for the copy
        answer = f"{source} could not be read ({type(error).__name__}: {error})"
        raise FileNotFoundError(_missing(name, root, answer)) from error


def _missing(name: str, root: Path | None, openml: str) -> str:
    """The sentence for a set that is nowhere."""
    known = SETS[name]
    folders = () if known.files is None else known.files.places(name)
    wanted = " or ".join(f"{stem}.npz" for stem in known.npz or (name,))
    if known.files is not None:
        wanted += f", or {', '.join(known.files.names)}"
    if root is None:
        looked = f"no folder was given and PILAE_DATA is not set, where {wanted} would be looked for"
    else:
        places = ", ".join(str(path) for path in (root, *(root / folder for folder in folders if folder)))
        looked = f"looked in {places}{'' if root.is_dir() else ' (no such folder)'} for {wanted}"
    return (
        f"The data set {name!r} was not found: {looked}; {openml}; {known.address}, and name the folder by "
        "PILAE_DATA or folder=..."
    )


def _fetch(known: Known, openml: OpenML, source: str) -> Parts:
    """A set from OpenML, in the shape and with the labels of the official files."""
    from sklearn.datasets import fetch_openml

    # this parser needs no pandas; nominal columns come as places in a list of their values
    bunch = fetch_openml(data_id=openml.number, target_column=openml.target, as_frame=False, parser="liac-arff")
    X = np.asarray(bunch.data.toarray() if scipy.sparse.issparse(bunch.data) else bunch.data)
    for column, values in (bunch.categories or {}).items():
        j = list(bunch.feature_names).index(column)
        known_cells = ~np.isnan(X[:, j])
        X[known_cells, j] = np.array(values, dtype=np.float64)[X[known_cells, j].astype(int)]
    y = known.labels(bunch.target)
    (n, *one), n_test = known.shape, known.n_test
    _check_shape(known, "X", X, (n + n_test, math.prod(one)), source)
    X = X.astype(np.uint8 if len(one) > 1 else np.float32).reshape(-1, *one)
    return Parts(X[:n], y[:n], X[n:], y[n:]) if openml.in_order else Parts(X, y)


def _check(known: Known, parts: Parts, where: str) -> None:
    """Shapes and labels must be those of the set; training and test part may have come as one."""
    X, y, X_test, y_test = parts
    (n, *one), n_test, expected = known.shape, known.n_test, list(known.classes)
    if X_test is None or y_test is None:
        n += n_test
    else:
        _check_shape(known, "X_test", X_test, (n_test, *one), where)
        _check_shape(known, "y_test", y_test, (n_test,), where)
    _check_shape(known, "X", X, (n, *one), where)
    _check_shape(known, "y", y, (n,), where)
    classes = np.unique(y if y_test is None else np.concatenate([y, y_test])).tolist()
    if classes != expected:
        raise ValueError(f"{where}: found {_few(classes)}, but {known.title} has {_few(expected)}; {known.address}.")


def _check_shape(known: Known, what: str, array: np.ndarray, expected: tuple, where: str) -> None:
    if array.shape != expected:
        raise ValueError(f"{where}: {what} has shape {array.shape}, but {known.title} has {expected}; {known.address}.")


def _few(classes: list) -> str:
    return f"{len(classes)} classes ({', '.join(map(str, classes[:3]))}{', ...' if len(classes) > 3 else ''})"
