"""Objects as a JSON tree, arrays and bytes."""

import hashlib
import io
import math
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._arrays import Array, Space, is_foreign, to_numpy
from .._base.saveable import KINDS
from .estimators import estimator_bytes

Json = Any
"""What the header may hold: plain values, lists, dicts."""


class Writer:
    """Turns objects into a JSON tree, arrays and bytes. An object met twice is written once."""

    def __init__(self, dropped: tuple[str, ...]) -> None:
        self.dropped = dropped
        self.objects: list[Json] = []
        self.members: dict[str, list[bytes | memoryview]] = {}
        """What each is made of, in turn."""
        self.checksums: dict[str, str] = {}
        self._known: dict[int, int] = {}
        self._alive: list[object] = []  # so that no id is used again

    def encode(self, value: object, place: str) -> Json:
        if isinstance(value, np.generic):
            value = value.item()
        if value is None or isinstance(value, (bool, str, int)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, Space):
            return {"space": "numpy"}
        if isinstance(value, tuple) and not hasattr(value, "_fields"):
            return {"tuple": [self.encode(item, place) for item in value]}
        if id(value) not in self._known:  # it may be met again
            number = self._known[id(value)] = len(self.objects)
            self._alive.append(value)
            self.objects.append(None)
            self.objects[number] = self._object(value, place)
        return {"object": self._known[id(value)]}

    def _object(self, value: Array, place: str) -> Json:
        if isinstance(value, list):
            return {"list": [self.encode(item, f"{place}[{k}]") for k, item in enumerate(value)]}
        if isinstance(value, dict):
            return {"dict": [[self.encode(k, place), self.encode(v, f"{place}[{k!r}]")] for k, v in value.items()]}
        if is_foreign(value) or isinstance(value, np.ndarray):
            return self._array(to_numpy(value), place)
        if KINDS.get(type(value).__name__) is type(value):
            fields = {
                name: None if name in self.dropped else self.encode(item, f"{place}.{name}")
                for name, item in _fields(value).items()
            }
            return {"kind": type(value).__name__, "fields": fields}
        if isinstance(value, BaseEstimator):
            return {"skops": self._member("skops", [estimator_bytes(value, place)])}
        raise ValueError(
            f"{place} is a {type(value).__module__}.{type(value).__qualname__}, which cannot be saved without running "
            "code when it is loaded: use plain values, arrays and scikit-learn estimators, or pickle the model at your "
            "own risk."
        )

    def _array(self, array: np.ndarray, place: str) -> Json:
        if array.dtype == object:
            items = array.ravel().tolist()
            if not all(isinstance(item, (str, int, float, bool, type(None))) for item in items):
                raise ValueError(f"{place} holds objects of other types than numbers and text, which cannot be saved.")
            return {"items": [self.encode(item, place) for item in items], "shape": list(array.shape)}
        if not array.flags.f_contiguous:  # an order of its own is kept: the same products, bit by bit
            array = np.ascontiguousarray(array).reshape(array.shape)
        start = io.BytesIO()
        np.lib.format.write_array_header_1_0(start, np.lib.format.header_data_from_array_1_0(array))
        numbers = (array if array.flags.c_contiguous else array.T).reshape(-1)
        return {"array": self._member("npy", [start.getvalue(), numbers.view(np.uint8).data])}

    def _member(self, kind: str, parts: list[bytes | memoryview]) -> str:
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part)
        name = f"{len(self.members)}.{kind}"
        self.members[name], self.checksums[name] = parts, digest.hexdigest()
        return name


def _fields(value: Any) -> dict[str, object]:
    """What an object of a listed class is restored from."""
    if hasattr(value, "_fields"):
        return value._asdict()
    fields = value.__getstate__() if "__getstate__" in vars(type(value)) else vars(value)
    return {name: item for name, item in fields.items() if not name.startswith("_skl_")}  # callbacks
