"""The way back: a JSON tree, arrays and bytes as objects."""

import hashlib
import importlib
import io
import os
import zipfile
from collections import Counter
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._arrays import NUMPY
from .._arrays.npy import claimed_array
from .._base.saveable import KINDS
from .archive import ModelFileError, bytes_of, damaged, shortened, writer_of
from .estimators import estimator_of

MOST_MENTIONS = 100
"""Times that a header may name one object: each is worked through."""

_LATER = {"FileColumns": "pilae._tables.file_columns"}
"""Modules that are imported when a file holds one of their kinds: they need packages that predicting does not."""


def class_of(kind: str) -> Any:
    """The class that a file names, None if it is none of ours. Each is listed where its module is imported."""
    package = importlib.import_module(__package__.split(".")[0])
    if kind in _LATER:
        importlib.import_module(_LATER[kind])
    elif kind in package.__all__:
        getattr(package, kind)
    return KINDS.get(kind)


class Reader:
    """The way back."""

    def __init__(self, archive: zipfile.ZipFile, header: dict[str, Any], path: str | os.PathLike) -> None:
        self.archive, self.header, self.path = archive, header, os.fspath(path)
        self._made: dict[int, object] = {}
        self._read: set[str] = set()
        self._mentions: Counter[int] = Counter()
        self.estimators: set[str] = set()
        """Kinds of what skops has read."""

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
        self._mentions[content] += 1
        if content < 0 or self._mentions[content] > MOST_MENTIONS:
            raise IndexError(content)
        if content not in self._made:
            self._made[content] = self._object(self.header["objects"][content])
        return self._made[content]

    def _object(self, value: dict[str, Any]) -> Any:
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
            estimator = estimator_of(self._member(content), self.path)
            self.estimators.add(type(estimator).__name__)
            return estimator
        return self._restored(content, value["fields"])

    def _restored(self, kind: str, fields: dict[str, Any]) -> Any:
        cls = class_of(kind)
        if cls is None:
            raise ModelFileError(
                f"{self.path!r} was written by pilae {writer_of(self.header)} and holds a {shortened(kind)!r}, which "
                "this version does not know: load it with that version, or fit the model again with this one."
            )
        restored = {name: self.decode(item) for name, item in fields.items()}
        if hasattr(cls, "_fields"):
            return cls(**restored)
        # parameters that came after the file was written have their defaults
        made = cls() if issubclass(cls, BaseEstimator) else cls.__new__(cls)
        made.__dict__.update(restored)
        return made

    def _member(self, name: str) -> bytes:
        if name in self._read:  # once is all that is ever written; again and again would fill memory
            raise damaged(self.path)
        self._read.add(name)
        try:
            data = bytes_of(self.archive, name)
        except Exception as error:  # zipfile and zlib raise many classes on damaged members
            raise ModelFileError(f"{self.path!r} is damaged: {shortened(name)} cannot be read.") from error
        if hashlib.sha256(data).hexdigest() != self.header["members"].get(name):
            raise ModelFileError(f"{self.path!r} is damaged: {shortened(name)} is not what was saved.")
        return data


def _array_of(data: bytes) -> np.ndarray:
    """The array of a `.npy` member."""
    file = io.BytesIO(data)
    shape, fortran, dtype = claimed_array(file, len(data))
    if dtype.kind not in "biufUSmM":
        raise ValueError(f"an array has dtype {dtype}")
    return np.ndarray(shape, dtype, data, file.tell(), order="F" if fortran else "C").copy(order="K")
