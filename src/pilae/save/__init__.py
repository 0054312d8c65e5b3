"""Models in one file: arrays and a JSON header, no pickle, and no code of the file's is run when it is loaded.

A file is a ZIP archive of `header.json` and one `.npy` member for each array. The header is a tree of plain values, of
numbers of arrays, and of objects named by the classes that `saveable` has listed; nothing else can be in it. What a
scikit-learn estimator holds (a head) is a member written by skops, whose types are checked by name.
"""

import contextlib
import functools
import hashlib
import importlib
import json
import os
import platform
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.utils.validation import check_is_fitted

from .._base.files import whole_file
from .._base.saveable import KINDS
from .._base.warn import warn
from .archive import FORMAT, HEADER_BYTES, ModelFileError, damage, damaged, header_of, opened, shortened
from .reader import Reader, class_of
from .writer import Writer

__all__ = ["ModelFileError", "SaveMixin", "load", "load_all", "read_header", "save", "versions"]

ModelFileError.__module__ = __name__  # where people find it

MOST_COLUMNS = 10**6
"""Of rows that a file may claim its model takes."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "skrub")


class SaveMixin:
    """`save` for estimators."""

    def _check_loaded(self) -> None:
        """Raises anything if the parts of a model that was read do not fit together. One row of zeros goes through."""

    def save(self, path: str | os.PathLike, *, statistics: bool = True) -> None:
        """Write the fitted model to one file, which `pilae.load` reads. The file appears whole or not at all.

        Arrays are stored as NumPy's, wherever the model was fitted.

        Parameters
        ----------
        path : path-like
        statistics : bool, default=True
            Keep the sums that `partial_fit`, `forget` and `merge` need, and the rows of a window. They are most of the
            file where the head is wide, and a model that only predicts can do without.
        """
        save(self, path, statistics=statistics)


def save(model: Any, path: str | os.PathLike, *, statistics: bool = True, extra: dict | None = None) -> None:
    """Write a model to a file; `extra` are more things to keep beside it (see `load_all`)."""
    check_is_fitted(model)
    model = model._settled()
    writer = Writer(() if statistics else ("moments", "by_class", "statistics", "window"))
    tree = {name: writer.encode(value, name) for name, value in {"model": model, **(extra or {})}.items()}
    header = {
        "file": "pilae",
        "format": FORMAT,
        "kind": type(model).__name__,
        "versions": versions(),
        "members": writer.checksums,
        "objects": writer.objects,
        "tree": tree,
    }
    text = json.dumps(header, allow_nan=False).encode()
    if len(text) > HEADER_BYTES:
        raise ValueError(
            f"What is to be saved beside arrays takes {len(text):,} bytes, and at most {HEADER_BYTES:,} can be loaded: "
            "use shorter names for columns and classes, or numbers."
        )
    with whole_file(Path(path)) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("header.json", text, zipfile.ZIP_DEFLATED)
        archive.writestr("header.sha256", hashlib.sha256(text).hexdigest())
        for name, parts in writer.members.items():
            info = zipfile.ZipInfo(name)  # arrays are stored as they are: weights are noise; what skops writes is text
            info.compress_type = zipfile.ZIP_STORED if name.endswith(".npy") else zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                member.writelines(parts)


def load(path: str | os.PathLike) -> Any:
    """Read a model that `save` wrote.

    No code in the file is run: it holds arrays, plain values and names of pilae's own classes; a scikit-learn
    estimator inside it is read by skops, and only if all of its types are known. Damage is noticed by checksums, and
    a file cannot claim much more memory than it has bytes. Whatever is wrong with it is a `ModelFileError`. Checksums
    do not say who wrote a file: its model predicts what its writer wanted.

    Returns
    -------
    estimator
        The model; or where `pilae fit` wrote the file, a scikit-learn pipeline of what finds the columns in a DataFrame
        (`pipeline["table"]`) and the model (`pipeline["model"]`), which takes those columns.

    Examples
    --------
    >>> import tempfile, pilae
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = pilae.PILAEClassifier(random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/iris.pilae")
    ...     again = pilae.load(f"{folder}/iris.pilae")
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    parts = load_all(path)
    if "table" not in parts:
        return parts["model"]
    from sklearn.pipeline import Pipeline

    return Pipeline([("table", parts["table"]), ("model", parts["model"])])


def load_all(path: str | os.PathLike) -> dict[str, Any]:
    """The model, and what was kept beside it."""
    with opened(path) as archive:
        header = header_of(archive, path)
        reader = Reader(archive, header, path)
        with damage(path):
            parts = {name: reader.decode(value) for name, value in header["tree"].items()}
            kinds = {"model": SaveMixin, "table": KINDS.get("FileColumns", ())}
            if not all(isinstance(part, kinds[name]) for name, part in parts.items()):
                raise damaged(path)
            if not 0 < parts["model"].n_features_in_ <= MOST_COLUMNS:
                raise damaged(path)
            with np.errstate(all="ignore"):
                for part in parts.values():
                    part._check_loaded()
            their_version, our_version = shortened(str(header["versions"]["scikit-learn"])), sklearn.__version__
        if reader.estimators and their_version.split(".")[:2] != our_version.split(".")[:2]:
            warn(
                f"{os.fspath(path)!r} holds {' and '.join(sorted(reader.estimators))} of scikit-learn {their_version}, "
                f"and this is {our_version}: what another version wrote may fail or predict otherwise. Install "
                f"scikit-learn=={their_version}, or fit the model again."
            )
        return parts


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """What a file says about itself, without reading its arrays."""
    with opened(path) as archive:
        header = header_of(archive, path)
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    with damage(path):
        if class_of(header["kind"]) is None:  # it is shown to people
            raise damaged(path)
        return {key: header[key] for key in ("kind", "format", "versions")} | {
            "bytes": os.path.getsize(path),
            "arrays": sum(name.endswith(".npy") for name in header["members"]),
            "array_bytes": sum(sizes[name] for name in header["members"] if name.endswith(".npy")),
        }


def versions() -> dict[str, str]:
    """Of Python, pilae and the packages a file was written with, those that are installed."""
    pilae = importlib.import_module(__package__.split(".")[0])  # it may be run from a folder, without being installed
    return {"python": platform.python_version(), "pilae": pilae.__version__, **_installed()}


@functools.cache
def _installed() -> dict[str, str]:
    """Versions of packages: reading what is installed takes longer than writing a small model."""
    installed = {}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[package] = version(package)
    return installed
