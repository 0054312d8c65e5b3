"""Rows on a cluster: block sums as Dask tasks, merged in a tree; predictions stay lazy.

One task per partition makes what a loop over its blocks would add up; only such sums, and the small samples chosen by
row hash, ever come to the client. Which rows those are does not depend on the partitions.
"""

import copy
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from .._arrays import NUMPY, Array, Space, float_name, to_numpy
from .._base.warn import StrangeRows
from .frames import check_numbers
from .labels import need_y, plain_labels
from .rows import BLOCK_BYTES, Add, Block, Choice, Make, Rows, Total
from .sources import Piece, Source
from .stream import Stream, all_wanted, joined, merged, read_targets
from .tables import Table, first_rows, is_mixed, more_categories
from .targets import Look, Numbers, Reading, Targets

FAN_IN = 8
"""Sums merged by one task."""

PART = 40
"""Row k of partition p has the number p * 2**PART + k."""

LOW = 2**PART - 1

WORKER_SETTINGS = ("kind", "factor", "block_rows", "dtype", "name", "checked", "gauge", "intake", "on_gaps")
"""What a worker must know to read its partition."""


def is_dask(x: object) -> bool:
    """Whether x is a Dask array, DataFrame or Series, without importing Dask."""
    return "dask" in sys.modules and hasattr(x, "__dask_graph__") and hasattr(x, "npartitions")


Part = tuple[Any, Any, Any]
"""X, targets and weights of one partition; delayed on the client."""


class _Partition(Source):
    """One partition, in the worker that has it."""

    slow = False

    def __init__(self, part: Part, number: int, columns: list[str] | None) -> None:
        X, y, w = part
        X = X.to_numpy() if hasattr(X, "to_numpy") else X
        y = None if y is None else np.asarray(plain_labels(y))
        w = None if w is None else np.asarray(w, dtype=np.float64)
        for what, side in (("y", y), ("sample_weight", w)):
            if side is not None and len(side) != len(X):
                raise ValueError(f"Partition {number} of X has {len(X)} rows, that of {what} has {len(side)}.")
        super().__init__(int(X.shape[1]), float_name(X), columns)
        self.piece = Piece(X, y, w, lambda row: f"partition {number}, row {row}")

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        if self.piece.n:
            yield self.piece


@dataclass(eq=False, kw_only=True)
class DaskRows(Stream):
    """The partitions of Dask collections as rows; `offsets` say where each begins and ends in the whole."""

    parts: list[Part]
    offsets: np.ndarray

    def total(self, make: Make[Total], add: Add[Total], label: str, width: int = 0) -> Total:
        """One task per partition, a tree of merges, and the whole sum comes to the client."""
        from dask import delayed

        self.passes += 1
        self.progress.update(label, 0, self.n)
        sums = self._tasks(partial(_part_total, make, add, width), range(len(self.parts)))
        while len(sums) > 1:
            sums = [delayed(_merged)(sums[k : k + FAN_IN]) for k in range(0, len(sums), FAN_IN)]
        total = sums[0].compute()
        self.checked = True  # every partition was read to its end
        self.progress.update(label, self.n, self.n)
        return total

    def samples(self, choices: list[Choice]) -> list[Rows]:
        """The rows of all samples, in one pass; only they come to the client."""
        from dask import compute

        self.passes += 1
        wanted = all_wanted(choices)
        parts = compute(*self._tasks(partial(_part_rows, wanted), np.unique(wanted >> PART).tolist()))
        samples = self._taken(choices, list(parts))
        for sample, (numbers, *_) in zip(samples, choices, strict=True):  # for people: the place in the whole
            sample.numbers = self.offsets[numbers >> PART] + (numbers & LOW)
        return samples

    def whole(self) -> Block:
        """All rows on the client, where `dual` says that they are few."""
        from dask import compute

        with_rows = np.flatnonzero(np.diff(self.offsets)).tolist()
        return joined(NUMPY, list(compute(*self._tasks(_part_whole, with_rows))))

    def blocks(self, label: str = "", width: int = 0, bytes_: int = BLOCK_BYTES) -> Iterator[Block]:
        raise TypeError("The rows of a cluster are not read one after another on the client.")

    def _tasks(self, f: Callable[[Stream, int], object], numbers: Iterable[int]) -> list:
        """f of the rows and the number of each of these partitions, to be made in a worker."""
        from dask import delayed

        settings = {name: getattr(self, name) for name in WORKER_SETTINGS}
        work = delayed((f, self.source.number_names, settings), traverse=False, pure=False)
        return [delayed(_in_worker)(work, self.parts[k], k) for k in numbers]


def dask_table(X: Any) -> Table | None:
    """What makes numbers of a DataFrame whose columns are not all numbers: what they are is learnt on the client from
    the first rows, their categories in the workers from all."""
    from dask import compute, delayed

    if hasattr(X, "chunks") or not is_mixed(X._meta_nonempty):
        return None
    parts = X.to_delayed()
    table = Table.learnt(first_rows(part.compute() for part in parts))
    known = delayed(table, traverse=False)
    met = compute(*(delayed(Table.categories)(known, part) for part in parts))
    return table.widened(reduce(more_categories, met))


def dask_rows(
    X: Any, y: Any, w: Any, space: Space, kind: type[Reading], settings: dict, table: Table | None = None
) -> DaskRows:
    """Dask collections as rows, after a first reading of their targets. X is an array or a DataFrame, y and w are
    arrays or Series, of Dask or in memory, or None."""
    from dask import compute, delayed

    if space != NUMPY:
        raise ValueError("Dask collections are computed on the workers' processors: use device=None.")
    if not hasattr(X, "chunks") and table is None:
        check_numbers(X._meta_nonempty, settings["name"] + " on a cluster")
    parts, _, shape = _partitions(X, y, w)
    if table is not None:
        known = delayed(table, traverse=False)
        parts, shape = [delayed(_coded)(known, part) for part in parts], shape.taken_by(table)
    unread = DaskRows(shape, space, look=Look(), parts=parts, offsets=np.zeros(len(parts), int), **settings)
    looks = compute(*unread._tasks(partial(_part_look, kind), range(len(parts))))
    look = merged([look for look in looks if look.n])
    offsets = np.cumsum([0, *(look.n for look in looks)])
    return replace(unread, look=look, kind=kind.after(look), offsets=offsets, passes=1)


def _coded(table: Table, part: Part) -> Part:
    X, y, w = part
    return table(X) if len(X) else np.zeros((0, len(table.sources))), y, w


def _in_worker(work: tuple, part: Part, number: int) -> object:
    f, columns, settings = work
    source = _Partition(part, number, columns)
    return f(Stream(source, NUMPY, look=Look(source.count()), **settings), number)


def _part_total(make: Make[Total], add: Add[Total], width: int, rows: Stream, number: int) -> Total:
    total = make()
    for block in rows.blocks(width=width):
        add(total, block._replace(start=block.start + (number << PART)))
    return total


def _merged(sums: list) -> Any:
    total = copy.deepcopy(sums[0])  # a task must not change what another made
    for other in sums[1:]:
        total.merge(other)
    return total


def _part_rows(wanted: np.ndarray, rows: Stream, number: int) -> tuple:
    [sample] = rows.samples([(wanted[wanted >> PART == number] & LOW,)])
    return to_numpy(sample.dense()), sample.codes, sample.targets


def _part_whole(rows: Stream, number: int) -> Block:
    return rows.whole()


def _part_look(kind: type[Reading], rows: Stream, number: int) -> Look:
    return read_targets(rows.source, kind, rows.name) if rows.n else Look()


def _row_parts(X: Any) -> tuple[list, tuple]:
    """The partitions of a collection, delayed, with all columns in each, and how many rows they have (nan: unknown)."""
    if not hasattr(X, "chunks"):
        return list(X.to_delayed()), (np.nan,) * X.npartitions
    if X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(X.to_delayed().ravel()), X.chunks[0]


def _partitions(X: Any, y: Any, w: Any) -> tuple[list[Part], tuple, Source]:
    """(X, y, w) of each partition, delayed, how many rows they have, and what is known of the whole."""
    from dask import delayed

    parts, sizes = _row_parts(X)
    if not hasattr(X, "chunks"):
        dtype = "float32" if all(kind in (np.float32, np.float16) for kind in X.dtypes) else "float64"
        shape = Source(len(X.columns), dtype, [str(name) for name in X.columns])
    elif X.ndim == 2:
        shape = Source(int(X.shape[1]), float_name(X), None)
    else:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, columns).")
    sides = [_aligned(side, sizes, what) for side, what in ((y, "y"), (w, "sample_weight"))]
    return [delayed(part) for part in zip(parts, *sides, strict=True)], sizes, shape


def _aligned(side: Any, sizes: tuple, what: str) -> list:
    """Targets or weights in the partitions of X."""
    if side is None:
        return [None] * len(sizes)
    known = not np.isnan(sizes).any()
    if not is_dask(side):
        values = np.asarray(side)
        if not known or sum(sizes) != len(values):
            raise ValueError(f"{what} is an array, and X has partitions of other or unknown sizes: give a Dask array.")
        return np.split(values, np.cumsum(sizes)[:-1])
    if known and hasattr(side, "chunks") and not np.isnan(side.chunks[0]).any() and side.chunks[0] != sizes:
        if sum(side.chunks[0]) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows but {what} has {sum(side.chunks[0])}.")
        side = side.rechunk({0: sizes})
    parts, _ = _row_parts(side)
    if len(parts) != len(sizes):
        raise ValueError(
            f"X has {len(sizes)} partitions of unknown size but {what} has {len(parts)}: make them from the same "
            "partitions."
        )
    return parts


def lazily(model: Any, method: str, X: Any, args: tuple) -> Any:
    """model.method(X, *args) as a Dask array that computes nothing yet."""
    from dask import delayed

    model = _snapshot(model)
    parts, sizes = _row_parts(X)
    shared = delayed(model, traverse=False)
    answers = [delayed(_ask)(shared, method, part, args) for part in parts]
    return _stacked(answers, sizes, _answer_like(model, method, args))


def _stacked(parts: list, sizes: tuple, like: np.ndarray) -> Any:
    """Delayed arrays one below the other, whose rows are of the shape and dtype of those of `like`."""
    import dask.array as da

    arrays = [
        da.from_delayed(part, shape=(size, *like.shape[1:]), dtype=like.dtype, meta=like[:0])
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(arrays, axis=0, allow_unknown_chunksizes=True)


def _answer_like(model: Any, method: str, args: tuple) -> np.ndarray:
    """What the method gives for one row, for its shape and dtype."""
    row: Any = np.zeros((1, model.n_features_in_))
    names, columns = getattr(model, "feature_names_in_", None), model._read().columns
    if columns.table is not None:
        row = columns.table.like()
    elif names is not None:
        import pandas as pd

        row = pd.DataFrame(row, columns=names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StrangeRows)  # it has no value
        return getattr(model, method)(row, *args)


def _snapshot(model: Any) -> Any:
    """The model as it is now, solved once and not in every task, without what only training needs: later changes do
    not reach predictions made before."""
    new, fitted = copy.copy(model), model._read()
    fitted.ready()
    new.fitted_ = fitted.lean()
    return new


def _ask(model: Any, method: str, X: Array, args: tuple) -> np.ndarray:
    if not X.shape[0]:  # an empty partition has an empty answer
        return _answer_like(model, method, args)[:0]
    return getattr(model, method)(X, *args)


def dask_score(model: Any, targets: Targets, X: Any, y: Any, w: Any) -> float:
    """The share of rows, by weight, for which `predict` is right, or R2, the mean over outputs.

    As scikit-learn, whose own scores want all predictions in one place: these are summed where the rows are. A constant
    target scores 1 if it is met and 0 if not.
    """
    from dask import compute, delayed

    need_y(type(model).__name__, y)
    predicted = lazily(model, "predict", X, ())
    predicted = predicted[:, None] if predicted.ndim == 1 else predicted
    parts, sizes, _ = _partitions(X, y, w)
    outputs = int(predicted.shape[1])
    like = np.empty((0, outputs), predicted.dtype)
    y = _stacked([delayed(_targets_of)(part, outputs) for part in parts], sizes, like)
    w = _stacked([delayed(_weights_of)(part) for part in parts], sizes, np.empty((0, 1)))
    if not isinstance(targets, Numbers):
        right = (predicted == y).all(axis=1, keepdims=True)
        return float((w * right).sum() / w.sum())
    if sum(sizes) < 2:
        return targets.score(y.compute(), predicted.compute(), None)  # it says why there is none
    mean = (w * y).sum(axis=0) / w.sum()
    deviations, errors = compute((w * (y - mean) ** 2).sum(axis=0), (w * (y - predicted) ** 2).sum(axis=0))
    constant = deviations <= 0
    scores = np.where(constant, np.where(errors > 0, 0.0, 1.0), 1 - errors / np.where(constant, 1.0, deviations))
    return float(scores.mean())


def _targets_of(part: Part, outputs: int) -> np.ndarray:
    X, y, _ = part
    return np.asarray(plain_labels(y)).reshape(X.shape[0], outputs)


def _weights_of(part: Part) -> np.ndarray:
    X, _, w = part
    weights = np.ones(X.shape[0]) if w is None else np.asarray(w, dtype=np.float64)
    return weights.reshape(X.shape[0], 1)
