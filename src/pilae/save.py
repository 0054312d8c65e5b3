"""Models in one file: arrays and a JSON header, no pickle, and no code of the file's is run when it is loaded.

A file is a ZIP archive of `header.json` and one `.npy` member for each array. The header is a tree of plain values, of
numbers of arrays, and of objects named by the classes that `saveable` has listed; nothing else can be in it. What a
scikit-learn estimator holds (a head, a table encoder) is a member written by skops, whose types are checked by name.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import math
import os
import platform
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._arrays import NUMPY, Space, is_foreign, to_numpy
from ._arrays.npy import claimed_array
from ._base.extras import extra
from ._base.saveable import KINDS
from ._base.whole import whole_file

FORMAT = 2
"""Goes up when a file of today could not be read by the code of yesterday. 2: the header has a checksum."""

TRUSTED = (
    "numpy.dtype",
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub._to_categorical.ToCategorical",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
    "skrub.selectors._selectors._cardinality_below",
)
"""Types inside estimators that are loaded beside those skops itself knows to be harmless."""

CRASHING = tuple(f'"{name}"'.encode() for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"))
"""Classes that can bring down the interpreter if their arrays were forged."""

HEADER_BYTES = 2**24
"""A header is not larger than this: a name for each of 100,000 columns is a third of it."""

UNPACKED_BYTES, UNPACKED_TIMES = 2**28, 100
"""An archive may unpack to so many bytes, or to so many times its size: beyond, it was made to fill memory."""

MOST_MENTIONS = 100
"""Times that a header may name one object: each is worked through."""

MOST_COLUMNS = 10**6
"""Of rows that a file may claim its model takes."""

PACKAGES = ("numpy", "scipy", "scikit-learn", "skops", "skrub")

_LATER = {"Encoder": "pilae._tables.encoder"}
"""Modules that are imported when a file holds one of their kinds: they need packages that predicting does not."""


class ModelFileError(ValueError):
    """A file is not a model that this version of pilae can load: damaged, forged, of another program or of a later one.

    The one error of `load`, beside those of files that are not there or not to be read (OSError) and of packages that
    are not installed (ImportError).

    Examples
    --------
    >>> import tempfile, pilae
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     pilae.load(file.name)
    Traceback (most recent call last):
    pilae.save.ModelFileError: ... is not a model that pilae has saved, or it is damaged.
    """


class SaveMixin:
    """`save` for estimators."""

    def _settle(self) -> None:
        """Finish what was put off, before the model is written."""

    def _check_loaded(self) -> None:
        """Raises anything if the parts of a model that was read do not fit together. One row of zeros goes through."""

    def save(self, path: str | os.PathLike, *, statistics: bool = True) -> None:
        """Write the fitted model to one file, which `pilae.load` reads. The file appears whole or not at all.

        Arrays are stored as NumPy's, wherever the model was fitted.

        Parameters
        ----------
        path : path-like
        statistics : bool, default=True
            Keep the sums that `partial_fit`, `forget` and `merge` need. They are most of the file where the head is
            wide, and a model that only predicts can do without.
        """
        save(self, path, statistics=statistics)


def save(model: Any, path: str | os.PathLike, *, statistics: bool = True, extra: dict[str, Any] | None = None) -> None:
    """Write a model to a file; `extra` are more things to keep beside it (see `load_all`)."""
    check_is_fitted(model)
    model._settle()
    writer = _Writer(() if statistics else ("moments", "statistics"))
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
        for name, write in writer.members.items():
            with archive.open(zipfile.ZipInfo(name), "w", force_zip64=True) as member:  # stored: weights are noise
                write(member)


def check_saveable(value: Any, place: str) -> None:
    """Raises what `save` would."""
    _Writer(()).encode(value, place)


def load(path: str | os.PathLike) -> Any:
    """Read a model that `save` wrote.

    No code in the file is run: it holds arrays, plain values and names of pilae's own classes; a scikit-learn
    estimator inside it is read by skops, and only if all of its types are known. Damage is noticed by checksums, and
    a file cannot claim much more memory than it has bytes. Whatever is wrong with it is a `ModelFileError`. Checksums
    do not say who wrote a file: its model predicts what its writer wanted.

    Returns
    -------
    estimator
        The model; or where `pilae fit` wrote the file, a scikit-learn pipeline of the table encoder and the model,
        which takes DataFrames with the columns it was fitted on (`pipeline["model"]` is the network alone).

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
    held = load_all(path)
    if "table" not in held:
        return held["model"]
    from sklearn.pipeline import Pipeline

    return Pipeline([("table", held["table"]), ("model", held["model"])])


def load_all(path: str | os.PathLike) -> dict[str, Any]:
    """The model, and what was kept beside it."""
    with _opened(path) as archive:
        header = _header(archive, path)
        reader = _Reader(archive, header, path)
        with _damage(path):
            held = {name: reader.decode(value) for name, value in header["tree"].items()}
            model, table = held["model"], held.get("table")
            if not isinstance(model, SaveMixin) or not 0 < model.n_features_in_ <= MOST_COLUMNS:  # type: ignore[attr-defined]
                raise _damaged(path)
            if set(held) - {"model", "table"} or ("table" in held and not isinstance(table, KINDS["Encoder"])):
                raise _damaged(path)
            with np.errstate(all="ignore"):
                model._check_loaded()
                if table is not None:
                    table._check_loaded()
        return held


def read_header(path: str | os.PathLike) -> dict[str, Any]:
    """What a file says about itself, without reading its arrays."""
    with _opened(path) as archive:
        header = _header(archive, path)
        sizes = {info.filename: info.file_size for info in archive.infolist()}
    with _damage(path):
        if header["kind"] not in KINDS:  # it is shown to people
            raise _damaged(path)
        return {key: header[key] for key in ("kind", "format", "versions")} | {
            "bytes": os.path.getsize(path),
            "arrays": sum(name.endswith(".npy") for name in header["members"]),
            "array_bytes": sum(sizes[name] for name in header["members"] if name.endswith(".npy")),
        }


def versions() -> dict[str, str]:
    """Of Python, pilae and the packages a file was written with, those that are installed."""
    pilae = importlib.import_module(__package__)  # it may be run from a folder, without being installed
    found = {"python": platform.python_version(), "pilae": pilae.__version__}
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


@contextlib.contextmanager
def _opened(path: str | os.PathLike) -> Iterator[zipfile.ZipFile]:
    with open(path, "rb") as file:
        try:
            archive = zipfile.ZipFile(file)
            _check_archive(archive, os.fstat(file.fileno()).st_size)
        except Exception as error:  # zipfile raises many classes on archives that are none
            raise ModelFileError(
                f"{os.fspath(path)!r} is not a model that pilae has saved, or it is damaged."
            ) from error
        with archive:
            yield archive


def _check_archive(archive: zipfile.ZipFile, size: int) -> None:
    """Raises on archives that could unpack to much more than they are, and on ways of packing that we do not use."""
    infos = archive.infolist()
    if sum(info.file_size for info in infos) > max(UNPACKED_BYTES, UNPACKED_TIMES * size):
        raise ValueError("the archive claims to unpack to far more than it is")
    for info in infos:
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) or info.flag_bits & 1:
            raise ValueError(f"{info.filename} is packed or encrypted in a way that is never used")


def _bytes_of(archive: zipfile.ZipFile, name: str, most: int | None = None) -> bytes:
    """A member, and not a byte more than it claims to have: zipfile would unpack all there is first."""
    size = archive.getinfo(name).file_size
    if most is not None and size > most:
        raise ValueError(f"{name} has {size:,} bytes")
    with archive.open(name) as member:
        return member.read(size)


def _damaged(path: str | os.PathLike) -> ModelFileError:
    return ModelFileError(f"{os.fspath(path)!r} is damaged: what it says about itself makes no sense.")


@contextlib.contextmanager
def _damage(path: str | os.PathLike) -> Iterator[None]:
    """Whatever goes wrong while a header is followed means that it is not what was written."""
    try:
        yield
    except (ModelFileError, ImportError, MemoryError):
        raise
    except Exception as error:
        raise _damaged(path) from error


def _header(archive: zipfile.ZipFile, path: str | os.PathLike) -> dict[str, Any]:
    try:
        text = _bytes_of(archive, "header.json", HEADER_BYTES)
        header = json.loads(text)
        wrong = header["file"] != "pilae"
        written = int(header["format"])
        checked = written < 2 or _bytes_of(archive, "header.sha256", 64).decode() == hashlib.sha256(text).hexdigest()
    except Exception as error:  # as many classes as there are ways to be damaged
        raise ModelFileError(f"{os.fspath(path)!r} is not a model that pilae has saved, or it is damaged.") from error
    if wrong or written < 1:
        raise ModelFileError(f"{os.fspath(path)!r} is not a model that pilae has saved.")
    if written <= FORMAT and not checked:
        raise ModelFileError(f"{os.fspath(path)!r} is damaged: its header is not what was saved.")
    if written > FORMAT:
        raise ModelFileError(
            f"{os.fspath(path)!r} was written by a later pilae, in format {written}, "
            f"and this version reads formats up to {FORMAT}: update pilae to load it."
        )
    return header


class _Writer:
    """Turns objects into a JSON tree, arrays and bytes. An object met twice is written once."""

    def __init__(self, dropped: tuple[str, ...]) -> None:
        self.dropped = dropped
        self.objects: list[Any] = []
        self.members: dict[str, Callable[[Any], None]] = {}
        self.checksums: dict[str, str] = {}
        self._known: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no id is used again

    def encode(self, value: Any, place: str) -> Any:
        if value is None or isinstance(value, (bool, str)):
            return str(value) if isinstance(value, np.str_) else value
        if isinstance(value, np.generic):
            return self.encode(value.item(), place)
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Space):
            return {"space": "numpy"}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple": [self.encode(item, place) for item in value]}
        return {"object": self._object(value, place)}

    def _object(self, value: Any, place: str) -> int:
        """The number of something that may be met again."""
        if id(value) not in self._known:
            number = self._known[id(value)] = len(self.objects)
            self._alive.append(value)
            self.objects.append(None)
            self.objects[number] = self._encoded(value, place)
        return self._known[id(value)]

    def _encoded(self, value: Any, place: str) -> Any:
        if isinstance(value, list):
            return {"list": [self.encode(item, f"{place}[{k}]") for k, item in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k, place), self.encode(v, f"{place}[{k!r}]")] for k, v in value.items()]}
        if is_foreign(value) or isinstance(value, np.ndarray):
            return self._array(to_numpy(value), place)
        if KINDS.get(type(value).__name__) is type(value):
            return {"kind": type(value).__name__, "fields": self._fields(value, place)}
        if isinstance(value, BaseEstimator):
            return self._estimator(value, place)
        raise ValueError(
            f"{place} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be saved without running "
            "code when it is loaded: use plain values, arrays and scikit-learn estimators, or pickle the model at your "
            "own risk."
        )

    def _fields(self, value: Any, place: str) -> dict[str, Any]:
        if hasattr(value, "_fields"):
            fields = value._asdict()
        else:
            own = "__getstate__" in vars(type(value))
            fields = value.__getstate__() if own else vars(value)
            fields = {name: item for name, item in fields.items() if not name.startswith("_skl_")}  # callbacks
        return {
            name: None if name in self.dropped else self.encode(item, f"{place}.{name}")
            for name, item in fields.items()
        }

    def _array(self, array: np.ndarray, place: str) -> Any:
        if array.dtype == object:
            items = array.ravel().tolist()
            if not all(isinstance(item, (str, int, float, bool, type(None))) for item in items):
                raise ValueError(f"{place} holds objects of other types than numbers and text, which cannot be saved.")
            return {"items": [self.encode(item, place) for item in items], "shape": list(array.shape)}
        name = f"{len(self.members)}.npy"
        if not array.flags.f_contiguous:  # an order of its own is kept: the same products, bit by bit
            array = np.ascontiguousarray(array).reshape(array.shape)

        def write(file: Any) -> None:
            np.lib.format.write_array(file, array, allow_pickle=False)

        return {"array": self._member(name, write)}

    def _estimator(self, estimator: Any, place: str) -> Any:
        skops = _skops(f"saving {place}, a {type(estimator).__name__},")
        data = skops.dumps(estimator)
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            if any(word in archive.read("schema.json") for word in CRASHING):
                raise ValueError(
                    f"{place} is or holds a support vector machine of libsvm, whose compiled code trusts the file it "
                    "came from: use LinearSVC or LinearSVR, or pickle the model at your own risk."
                )
        unknown = sorted(set(skops.get_untrusted_types(data=data)) - set(TRUSTED))
        if unknown:
            raise ValueError(
                f"{place} holds a {unknown[0]}, which is not among the types that are safe to load: use an estimator "
                "of scikit-learn that is made of arrays alone (no trees), or pickle the model at your own risk."
            )
        return {"skops": self._member(f"{len(self.members)}.skops", lambda file: file.write(data) and None)}

    def _member(self, name: str, write: Callable[[Any], None]) -> str:
        digest = _Digest()
        write(digest)
        self.members[name], self.checksums[name] = write, digest.sum.hexdigest()
        return name


class _Digest(io.RawIOBase):
    """A file that only sums up what is written."""

    def __init__(self) -> None:
        self.sum = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sum.update(data)
        return len(data)


class _Reader:
    """The way back."""

    def __init__(self, archive: zipfile.ZipFile, header: dict[str, Any], path: str | os.PathLike) -> None:
        self.archive, self.header, self.path = archive, header, os.fspath(path)
        self._made: dict[int, Any] = {}
        self._read: set[str] = set()
        self._asked: Counter[int] = Counter()

    def decode(self, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        [(key, content), *_] = value.items()
        if key == "float":
            return float(content)
        if key == "space":
            return NUMPY
        if key == "tuple":
            return tuple(self.decode(item) for item in content)
        return self._object(content)

    def _object(self, number: int) -> Any:
        self._asked[number] += 1
        if number < 0 or self._asked[number] > MOST_MENTIONS:
            raise IndexError(number)
        if number not in self._made:
            self._made[number] = self._decoded(self.header["objects"][number])
        return self._made[number]

    def _decoded(self, value: dict[str, Any]) -> Any:
        [(key, content), *_] = value.items()
        if key == "list":
            return [self.decode(item) for item in content]
        if key == "dict":
            keys = [self.decode(k) for k, _ in content]
            if not all(isinstance(key, (str, int, float, type(None))) for key in keys):
                raise TypeError("keys are plain values")  # the hash of others can take forever
            return {key: self.decode(v) for key, (_, v) in zip(keys, content, strict=True)}
        if key == "array":
            return _array_of(self._member(content))
        if key == "items":
            array = np.empty(len(content), dtype=object)
            array[:] = [self.decode(item) for item in content]
            return array.reshape(value["shape"])
        if key == "skops":
            return self._estimator(self._member(content))
        return self._restored(content, value["fields"])

    def _restored(self, kind: str, fields: dict[str, Any]) -> Any:
        if kind in _LATER:
            importlib.import_module(_LATER[kind])
        cls: Any = KINDS.get(kind)
        if cls is None:
            raise ModelFileError(
                f"{self.path!r} holds a {kind!r}, which this version of pilae does not know: update pilae."
            )
        found = {name: self.decode(item) for name, item in fields.items()}
        if hasattr(cls, "_fields"):
            return cls(**found)
        # parameters that came after the file was written have their defaults
        made = cls() if issubclass(cls, BaseEstimator) else cls.__new__(cls)
        made.__dict__.update(found)
        return made

    def _estimator(self, data: bytes) -> Any:
        skops = _skops(f"{self.path!r}")
        _check_estimator(data)
        unknown = set(skops.get_untrusted_types(data=data))
        if unknown - set(TRUSTED):
            raise ModelFileError(
                f"{self.path!r} holds a {sorted(unknown - set(TRUSTED))[0]}, which is not among the types that are "
                "safe to load: nothing was loaded."
            )
        return skops.loads(data, trusted=sorted(unknown))

    def _member(self, name: str) -> bytes:
        if name in self._read:  # once is all that is ever written; again and again would fill memory
            raise _damaged(self.path)
        self._read.add(name)
        try:
            data = _bytes_of(self.archive, name)
        except Exception as error:  # zipfile and zlib raise many classes on damaged members
            raise ModelFileError(f"{self.path!r} is damaged: {name} cannot be read.") from error
        if hashlib.sha256(data).hexdigest() != self.header["members"].get(name):
            raise ModelFileError(f"{self.path!r} is damaged: {name} is not what was saved.")
        return data


def _array_of(data: bytes) -> np.ndarray:
    """The array of a `.npy` member."""
    file = io.BytesIO(data)
    shape, fortran, dtype = claimed_array(file, len(data))
    if dtype.kind not in "biufUSmM":
        raise ValueError(f"an array has dtype {dtype}")
    order: Any = "F" if fortran else "C"
    return np.ndarray(shape, dtype, data, file.tell(), order=order).copy(order=order)


def _check_estimator(data: bytes) -> None:
    """Raises on what skops would unpack or allocate beyond all bounds, and on compiled code that trusts its arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        _check_archive(archive, len(data))
        for name in archive.namelist():
            if name == "schema.json" and any(word in _bytes_of(archive, name) for word in CRASHING):
                raise ValueError("support vector machines cannot be loaded safely")
            if name.endswith(".npy"):
                member = _bytes_of(archive, name)
                claimed_array(io.BytesIO(member), len(member))
            elif name.endswith(".npz"):
                _check_estimator(_bytes_of(archive, name))


def _skops(what: str) -> Any:
    return extra("skops.io", "save", what)
