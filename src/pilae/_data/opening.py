"""Whatever a user passes, as rows: arrays, sources, Dask collections."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from .._arrays import NUMPY, Array, Space, space_for
from .._arrays.threads import sharing
from .._base.progress import Progress
from .._base.sentences import listed
from .._base.warn import StrangeRows, warn
from .check import check_same_space, read_X
from .columns import Columns
from .dask import dask_rows, dask_table, is_dask, lazily
from .labels import need_y
from .rows import Rows
from .sources import Column, Source
from .stream import Stream, read_targets
from .tables import Table
from .targets import Encoding, Look, NoTargets, Reading

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
        self,
        X: Array,
        encoding: Encoding,
        weight: Column = None,
        unit: Column = None,
        categorical: tuple[int, ...] = (),
        *,
        gaps: bool = False,
    ) -> Rows:
        """Arrays to fit on; these columns are categories, and there may be gaps."""
        rows = Rows(X, space_for(X, self.device), *encoding, weight, unit, **self.settings)
        if categorical or gaps:
            rows.learn_intake(categorical)
        return rows

    @property
    def settings(self) -> dict[str, Any]:
        """Of rows, wherever they come from."""
        return {"block_rows": self.block_rows, "dtype": self.dtype or "", "progress": Progress(self.verbose)}


class Place(Protocol):
    """Where a fitted model lives: a network."""

    space: Space
    dtype: str
    gauge: np.ndarray | None

    @property
    def widest(self) -> int: ...


def is_streamed(X: object) -> bool:
    """Whether X is read in passes of its own: a source, or Dask collections."""
    return isinstance(X, Source) or is_dask(X)


def stream_to_fit(
    running: Running,
    X: Any,
    y: Any,
    sample_weight: Any,
    kind: type[Reading],
    place: Space | None = None,
    on_gaps: str = "refuse",
    *,
    tables: bool = False,
    table: Table | None = None,
) -> Stream:
    """The rows for `fit`, after a first reading of their targets; with `tables` they may be tables of mixed columns.
    `table` is what makes numbers of those of a cluster, where it is known."""
    space = space_for(np.empty(0), running.device) if place is None else place
    settings = running.settings | {"name": running.name, "on_gaps": on_gaps}
    if is_dask(X):
        if kind is not NoTargets:
            need_y(running.name, y)
        return dask_rows(X, y, sample_weight, space, kind, settings, dask_table(X) if tables else table)
    check_alone(y, sample_weight)
    if X.is_mixed and X.table is None and not tables:
        raise ValueError(
            f"The columns of the source are not all numbers, and {running.name} takes numbers only here: name the "
            "columns to use with columns=[...], or encode the others first."
        )
    look = read_targets(X, kind, running.name)
    X = X.learnt() if tables else X
    return Stream(X, space, kind=kind.after(look), look=look, passes=1, **settings)


def stream_to_add(
    running: Running, place: Place, columns: Columns, X: Any, y: Any, sample_weight: Any, kind: type[Reading]
) -> Stream:
    """The same for a fitted model, in its dtype and where it lives."""
    X = _as_in_fit(X, columns)
    rows = stream_to_fit(
        running._replace(dtype=place.dtype), X, y, sample_weight, kind, place.space, table=columns.table
    )
    rows.gauge = place.gauge
    check_columns(running.name, columns, rows.source)
    return _taken_in(rows, columns)


def _taken_in(rows: Stream, columns: Columns) -> Stream:
    """With gaps and categories as in `fit`."""
    if columns.intake is not None:
        rows.take_in(columns.intake)
        rows.on_gaps = "take"
    return rows


def _as_in_fit(X: Any, columns: Columns) -> Any:
    """A source of tables as the numbers that they were in `fit`."""
    if not isinstance(X, Source) or columns.table is None or X.columns is None or columns.names is None:
        return X
    return X.taken_by(columns.table) if X.columns == [str(name) for name in columns.names] else X


def columns_of(source: Source) -> Columns:
    names = None if source.columns is None else np.array(source.columns, dtype=object)
    return Columns(source.d if names is None else len(names), names, source.table)


class Asked(Protocol):
    """A fitted model."""

    def _running(self) -> Running: ...


class Question(NamedTuple):
    """What a fitted model is asked about rows: f of every block; `method` and `args` are how it was called."""

    f: Callable[[Array], Array]
    width: int
    """Of the widest array that comes after the network."""
    method: str
    args: tuple = ()
    at_once: bool = False
    """Whether several threads may ask at the same time, each about a block of its own."""


def is_few(X: Any, place: Place, columns: Columns) -> bool:
    """Whether X is a few rows of plain, finite numbers, where the model lives and as it takes them."""
    if not (
        type(X) is np.ndarray
        and 0 < X.size <= QUICK_NUMBERS
        and X.ndim == 2
        and X.shape[1] == columns.count
        and X.dtype == place.dtype
        and place.space == NUMPY
        and place.gauge is columns.names is None
        and columns.are_plain
    ):
        return False
    with np.errstate(over="ignore", invalid="ignore"):
        return math.isfinite(X.sum())


def answers(model: Asked, place: Place, columns: Columns, X: Any, question: Question) -> Array:
    """The answer for every row, in the library and on the device of X; of Dask collections a Dask array that computes
    nothing yet.

    A few rows of plain numbers, where the model lives, are one block as they are: looking at them closely would take
    longer than the answer. What is wrong with them is said on the usual way.
    """
    f, after, method, args, at_once = question
    width = max(columns.width, place.widest, after)
    if is_few(X, place, columns):
        with np.errstate(over="ignore", invalid="ignore"), sharing(X, work=X.size * width):
            part = f(X)
            if part.dtype.kind != "f" or math.isfinite(part.sum()):
                return part.copy() if np.may_share_memory(part, X) else part
    if is_dask(X):
        return lazily(model, method, X, args)
    return rows_to_ask(model._running(), place, columns, X, method).map(f, width, at_once=at_once)


def rows_to_ask(running: Running, place: Place, columns: Columns, X: Any, method: str) -> Rows:
    """The rows a fitted model is asked about (Dask collections are asked lazily, see `answers`)."""
    if isinstance(X, Source):
        X = _as_in_fit(X, columns)
        check_columns(running.name, columns, X)
        settings = running._replace(dtype=place.dtype).settings
        look = Look(X.count())
        stream = Stream(X, place.space, look=look, name=running.name, gauge=place.gauge, **settings)
        return _taken_in(stream, columns)
    X, _, gaps, unread = read_X(X, running.name, columns)
    if running.device is None:
        check_same_space(running.name, method, X, place.space)
    strange = columns.strange(X, unread, gaps=gaps).sentences()
    if strange:
        warn(" ".join(strange), StrangeRows)
    intake = None if columns.are_plain and not gaps else columns.intake
    return Rows(X, place.space, block_rows=running.block_rows, dtype=place.dtype, gauge=place.gauge, intake=intake)


def check_alone(y: object, sample_weight: object) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source brings its own targets and weights: call with the source alone, and name them where it is made "
            "(target=..., weight=..., or blocks of (X, y, sample_weight))."
        )


def check_columns(name: str, columns: Columns, source: Source) -> None:
    """The columns of a source against those of `fit`."""
    if source.columns is not None and columns.names is not None and list(columns.names) != list(source.columns):
        missing = [name for name in columns.names if name not in source.columns]
        what = f"it lacks {listed(missing)}" if missing else "they come in another order or there are others"
        raise ValueError(f"The columns of the source are not those of fit: {what}. Name them with columns=[...].")
    if columns.table is not source.table:
        raise ValueError(
            f"This {name} was fitted on a table whose columns are not all numbers, and this source brings numbers: "
            "give a source of DataFrames, or one of files."
        )
    if source.is_mixed and columns.table is None:
        raise ValueError(f"This {name} was fitted on numbers, and the columns of the source are not all numbers.")
    if source.d != columns.coded:
        raise ValueError(f"X has {source.d} features, but {name} is expecting {columns.count} features as input.")
