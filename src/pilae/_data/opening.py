"""Whatever a user passes, as rows: arrays, sources, Dask collections."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._arrays import NUMPY, Array, Space, space_for
from .._arrays.threads import sharing
from .._base.progress import Progress
from .check import Columns, check_same_space, check_X
from .dask import DaskRows, is_dask, lazily
from .labels import need_y
from .rows import Rows
from .sources import Source
from .stream import FirstReading, Stream, read_targets
from .targets import Encoding, NoTargets, Reading

QUICK_NUMBERS = 2**14
"""Tables of so many numbers are small work."""


class Running(NamedTuple):
    """Where and how to compute, and the name of the estimator for whom."""

    name: str
    device: str | None = None
    dtype: str | None = None
    block_rows: int | str = "auto"
    verbose: float = 0

    def rows(
        self, X: Array, encoding: Encoding, weight: np.ndarray | None = None, unit: np.ndarray | None = None
    ) -> Rows:
        """Arrays to fit on."""
        return Rows(
            X,
            space_for(X, self.device),
            **encoding._asdict(),
            weight=weight,
            unit=unit,
            block_rows=self.block_rows,
            dtype=self.dtype,
            progress=Progress(self.verbose),
        )

    def settings(self, dtype: str | None) -> dict[str, Any]:
        """Of a stream."""
        return {
            "block_rows": self.block_rows,
            "dtype": dtype,
            "progress": Progress(self.verbose),
            "name": self.name,
        }


class Place(Protocol):
    """Where a fitted model lives: a network."""

    space: Space
    dtype: str
    gauge: np.ndarray | None


def is_streamed(X: Any) -> bool:
    """Whether X is read in passes of its own: a source, or Dask collections."""
    return isinstance(X, Source) or is_dask(X)


def stream_to_fit(
    running: Running, X: Any, y: Any, sample_weight: Any, kind: type[Reading]
) -> tuple[Stream, FirstReading]:
    """The rows for `fit`, after a first reading of their targets."""
    space = space_for(np.empty(0), running.device)
    return _stream(running.settings(running.dtype), space, X, y, sample_weight, kind)


def stream_to_add(
    running: Running, place: Place, columns: Columns, X: Any, y: Any, sample_weight: Any, kind: type[Reading]
) -> tuple[Stream, FirstReading]:
    """The same for a fitted model, in its dtype and where it lives."""
    rows, first = _stream(running.settings(place.dtype), place.space, X, y, sample_weight, kind)
    rows.gauge = place.gauge
    check_columns(running.name, columns, rows.source)
    return rows, first


def _stream(
    settings: dict[str, Any], space: Space, X: Any, y: Any, sample_weight: Any, kind: type[Reading]
) -> tuple[Stream, FirstReading]:
    if is_dask(X):
        if kind is not NoTargets:
            need_y(settings["name"], y)
        spread = DaskRows(X, y, sample_weight, space, kind, **settings)
        return spread, spread.reading
    check_alone(y, sample_weight)
    first = read_targets(X, kind, settings["name"])
    rows = Stream(X, space, n=first.n, kind=first.kind, total_weight=first.weight, **settings)
    rows.passes = 1
    return rows, first


def columns_of(source: Source) -> Columns:
    return Columns(source.d, None if source.columns is None else np.array(source.columns, dtype=object))


class Asked(Protocol):
    """A fitted model."""

    def _running(self) -> Running: ...


class Question(NamedTuple):
    """What a fitted model is asked about rows: f of every block; `method` and `args` are how it was called."""

    f: Callable[[Array], Array]
    width: int
    """Of the widest array on the way."""
    method: str
    args: tuple = ()


def answers(model: Asked, place: Place, columns: Columns, X: Any, question: Question) -> Array:
    """The answer for every row, in the library and on the device of X; of Dask collections a Dask array that computes
    nothing yet.

    A few rows of plain numbers, where the model lives, are one block as they are: looking at them closely would take
    longer than the answer. What is wrong with them is said on the usual way.
    """
    f, width, method, args = question
    if (
        type(X) is np.ndarray
        and X.size <= QUICK_NUMBERS
        and X.ndim == 2
        and X.shape[1] == columns.count
        and X.dtype.name == place.dtype
        and place.space == NUMPY
        and place.gauge is columns.names is None
        and math.isfinite(X.sum())
    ):
        with np.errstate(over="ignore", invalid="ignore"), sharing(X, work=X.size * width):
            part = f(X)
        if len(part) and (part.dtype.kind != "f" or math.isfinite(part.sum())):
            return part
    if is_dask(X):
        return lazily(model, method, X, args)
    return rows_to_ask(model._running(), place, columns, X, method).map(f, width)


def rows_to_ask(running: Running, place: Place, columns: Columns, X: Any, method: str) -> Rows:
    """The rows a fitted model is asked about (Dask collections are asked lazily, see `answers`)."""
    if isinstance(X, Source):
        check_columns(running.name, columns, X)
        return Stream(X, place.space, n=X.count(), gauge=place.gauge, **running.settings(place.dtype))
    X, _ = check_X(X, running.name, columns)
    if running.device is None:
        check_same_space(running.name, method, X, place.space)
    return Rows(X, place.space, block_rows=running.block_rows, dtype=place.dtype, gauge=place.gauge)


def check_alone(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source brings its own targets and weights: call with the source alone, and name them where it is made "
            "(target=..., weight=..., or blocks of (X, y, sample_weight))."
        )


def check_columns(name: str, columns: Columns, source: Source) -> None:
    """The columns of a source against those of `fit`."""
    known, given = columns.names, source.columns
    if given is not None and known is not None and list(known) != list(given):
        missing = [name for name in known if name not in given]
        what = f"{missing[:5]} are missing" if missing else "they come in another order or there are others"
        raise ValueError(f"The columns of the source are not those of fit: {what}. Name them with columns=[...].")
    if source.d != columns.count:
        raise ValueError(f"X has {source.d} features, but {name} is expecting {columns.count} features as input.")
