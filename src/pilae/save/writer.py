"""Objects as a JSON tree, arrays and bytes."""

from __future__ import annotations

import hashlib
import io
import math
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._arrays import Space, is_foreign, to_numpy
from .._base.saveable import KINDS
from .estimators import CRASHING, TRUSTED, need_skops


class Writer:
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
        skops = need_skops(f"saving {place}, a {type(estimator).__name__},")
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
