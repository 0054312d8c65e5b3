"""Rows on a cluster: block sums as Dask tasks, merged in a tree; predictions stay lazy.

One task per partition makes what a loop over its blocks would add up; only such sums, and the small samples chosen by
row hash, ever come to the client. Which rows those are does not depend on the partitions.
"""

import copy
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._arrays import NUMPY, Space, to_numpy
from .._base.progress import Progress
from .labels import need_y, plain_labels
from .pieces import Piece
from .rows import Block, Rows, Total
from .sources import Source
from .stream import FirstReading, Stream, gather, joined_weights, read_targets
from .targets import Numbers, Reading, Targets

FAN_IN = 8
"""Sums merged by one task."""

PART = 40
"""Row k of partition p has the number p * 2**PART + k."""


def is_dask(x: Any) -> bool:
    """Whether x is a Dask array, DataFrame or Series, without importing Dask."""
    return "dask" in sys.modules and hasattr(x, "__dask_graph__") and hasattr(x, "npartitions")


class _Partition(Source):
    """One partition, in the worker that has it."""

    slow = False

    def __init__(self, X: Any, y: Any, w: Any, number: int, columns: list[str] | None) -> None:
        self.columns = columns
        self.X = X.to_numpy() if hasattr(X, "to_numpy") else X
        self.y = None if y is None else np.asarray(plain_labels(y))
        self.w = None if w is None else np.asarray(w, dtype=np.float64)
        self.d, self.number = int(X.shape[1]), number
        for what, side in (("y", self.y), ("sample_weight", self.w)):
            if side is not None and len(side) != len(self.X):
                raise ValueError(f"Partition {number} of X has {len(self.X)} rows, that of {what} has {len(side)}.")
        self.dtype = "float32" if self.X.dtype == np.float32 else "float64"

    def read(self, *, targets_only: bool = False) -> Iterator[Piece]:
        if self.X.shape[0]:
            yield Piece(self.X, self.y, self.w, lambda row: f"partition {self.number}, row {row}")

    def count(self) -> int:
        return int(self.X.shape[0])


class DaskRows(Stream):
    """The partitions of Dask collections as rows.

    Parameters
    ----------
    X : Dask array or DataFrame
    y, w : Dask array or Series, or array, optional
    """

    def __init__(self, X: Any, y: Any, w: Any, space: Space, kind: type[Reading], **running: Any) -> None:
        from dask import compute, delayed

        if space != NUMPY:
            raise ValueError("Dask collections are computed on the workers' processors: use device=None.")
        self.parts, columns, d, dtype = _partitions(X, y, w)
        tasks = [delayed(_targets)(part, k, columns, kind, running["name"]) for k, part in enumerate(self.parts)]
        readings = compute(*tasks)
        self.reading = gather([reading[:3] for reading in readings if reading is not None], kind)
        super().__init__(
            _Shape(d, dtype, columns),
            space,
            n=self.reading.n,
            kind=self.reading.kind,
            total_weight=self.reading.weight,
            **running,
        )
        self.passes = 1
        self.offsets = np.cumsum([0, *(0 if reading is None else reading.n for reading in readings)])

    def total(
        self, make: Callable[[], Total], add: Callable[[Total, Block], None], label: str, width: int = 0
    ) -> Total:
        """One task per partition, a tree of merges, and the whole sum comes to the client."""
        from dask import delayed

        self.passes += 1
        self.progress.update(label, 0, self.n)
        work = delayed((make, add, self._reader(), width), traverse=False, pure=False)
        sums = [delayed(_part_total)(work, part, k) for k, part in enumerate(self.parts)]
        while len(sums) > 1:
            sums = [delayed(_merged)(sums[k : k + FAN_IN]) for k in range(0, len(sums), FAN_IN)]
        total = sums[0].compute()
        self.checked = True  # every partition was read to its end
        self.progress.update(label, self.n, self.n)
        return total

    def samples(self, chosen: list[tuple[np.ndarray, ...]]) -> list[Rows]:
        """The rows of all samples, in one pass; only they come to the client."""
        from dask import compute, delayed

        self.passes += 1
        wanted = np.unique(np.concatenate([which[0] for which in chosen]))
        of_part, inside = wanted >> PART, wanted & ((1 << PART) - 1)
        reader = delayed(self._reader(), traverse=False, pure=False)
        tasks = [
            delayed(_part_rows)(reader, part, k, inside[of_part == k])
            for k, part in enumerate(self.parts)
            if np.any(of_part == k)
        ]
        X, codes, targets = zip(*compute(*tasks), strict=True)
        samples = self._chosen(wanted, chosen, list(X), list(codes), list(targets))
        for sample in samples:  # for people: the place in the whole
            assert sample.numbers is not None
            sample.numbers = self.offsets[sample.numbers >> PART] + (sample.numbers & ((1 << PART) - 1))
        return samples

    def whole(self) -> Block:
        """All rows on the client, where `dual` says that they are few."""
        from dask import compute, delayed

        reader = delayed(self._reader(), traverse=False, pure=False)
        blocks = compute(*[delayed(_part_whole)(reader, part, k) for k, part in enumerate(self.parts)])
        blocks = [block for block in blocks if block is not None]
        return Block(np.concatenate([block.X for block in blocks]), None, joined_weights(NUMPY, blocks), 0)

    def blocks(self, label: str = "", width: int = 0) -> Iterator[Block]:
        raise TypeError("The rows of a cluster are not read one after another on the client.")

    def _reader(self) -> Callable[[Any, int], Stream]:
        """Makes, in a worker, the rows of one partition."""
        settings = {
            "kind": self.kind,
            "factor": self.factor,
            "block_rows": self.block_rows,
            "dtype": self.dtype,
            "name": self.name,
            "checked": self.checked,
            "gauge": self.gauge,
        }
        return _PartitionRows(self.source.columns, settings)


class _Shape(Source):
    """What is known of the whole on the client."""

    def __init__(self, d: int, dtype: str, columns: list[str] | None) -> None:
        self.d, self.dtype, self.columns = d, dtype, columns


class _PartitionRows:
    """Makes, in a worker, the rows of one partition."""

    def __init__(self, columns: list[str] | None, settings: dict[str, Any]) -> None:
        self.columns, self.settings = columns, settings

    def __call__(self, part: tuple[Any, Any, Any], number: int) -> Stream:
        source = _Partition(*part, number, self.columns)
        return Stream(source, NUMPY, n=source.count(), progress=Progress(0), **self.settings)


def _part_total(work: tuple, part: tuple[Any, Any, Any], number: int) -> Any:
    make, add, reader, width = work
    total = make()
    for block in reader(part, number).blocks(width=width):
        add(total, block._replace(start=block.start + (number << PART)))
    return total


def _merged(sums: list) -> Any:
    total = copy.deepcopy(sums[0])  # a task must not change what another made
    for other in sums[1:]:
        total.merge(other)
    return total


def _part_rows(reader: _PartitionRows, part: tuple[Any, Any, Any], number: int, rows: np.ndarray) -> tuple:
    [sample] = reader(part, number).samples([(rows,)])
    return to_numpy(sample.dense()), sample.codes, sample.targets


def _part_whole(reader: _PartitionRows, part: tuple[Any, Any, Any], number: int) -> Block | None:
    rows = reader(part, number)
    return rows.whole() if rows.n else None


def _targets(
    part: tuple[Any, Any, Any], number: int, columns: list[str] | None, kind: type[Reading], name: str
) -> FirstReading | None:
    source = _Partition(*part, number, columns)
    return read_targets(source, kind, name) if source.count() else None


def _partitions(X: Any, y: Any, w: Any) -> tuple[list[tuple], list[str] | None, int, str]:
    """([(X, y, w) of each partition, delayed], column names, columns, dtype)."""
    from dask import delayed

    columns = None
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, columns).")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        d, sizes = int(X.shape[1]), X.chunks[0]
        dtype = "float32" if X.dtype == np.float32 else "float64"
        parts = list(X.to_delayed().ravel())
    else:
        columns = [str(name) for name in X.columns]
        d, sizes, parts = len(columns), (np.nan,) * X.npartitions, list(X.to_delayed())
        dtype = "float32" if all(kind == np.float32 for kind in X.dtypes) else "float64"
    sides = [_aligned(side, sizes, what) for side, what in ((y, "y"), (w, "sample_weight"))]
    return [delayed(_triple)(*triple) for triple in zip(parts, *sides, strict=True)], columns, d, dtype


def _triple(X: Any, y: Any, w: Any) -> tuple:
    return X, y, w


def _aligned(side: Any, sizes: tuple, what: str) -> list:
    """Targets or weights in the partitions of X."""
    if side is None:
        return [None] * len(sizes)
    if is_dask(side):
        known = not np.isnan(np.array(sizes, dtype=float)).any()
        if hasattr(side, "chunks"):
            if known and not np.isnan(np.array(side.chunks[0], dtype=float)).any() and side.chunks[0] != sizes:
                if sum(side.chunks[0]) != sum(sizes):
                    raise ValueError(f"X has {sum(sizes)} rows but {what} has {sum(side.chunks[0])}.")
                side = side.rechunk({0: sizes})
            if side.ndim == 2 and side.numblocks[1] > 1:
                side = side.rechunk({1: -1})
        parts = list(side.to_delayed().ravel() if hasattr(side, "chunks") else side.to_delayed())
        if len(parts) != len(sizes):
            raise ValueError(
                f"X has {len(sizes)} partitions of unknown size but {what} has {len(parts)}: make them from the same "
                "partitions."
            )
        return parts
    values = np.asarray(side)
    if np.isnan(np.array(sizes, dtype=float)).any() or sum(sizes) != len(values):
        raise ValueError(f"{what} is an array, and X has partitions of other or unknown sizes: give a Dask array.")
    return np.split(values, np.cumsum(sizes)[:-1])


def lazily(model: Any, method: str, X: Any, args: tuple) -> Any:
    """model.method(X, *args) as a Dask array that computes nothing yet."""
    import dask.array as da
    from dask import delayed

    model = _snapshot(model)
    like = _answer_like(model, method, args)
    shared = delayed(model, traverse=False)
    if hasattr(X, "chunks"):
        X = X.rechunk({1: -1}) if X.numblocks[1] > 1 else X
        parts, sizes = list(X.to_delayed().ravel()), X.chunks[0]
    else:
        parts, sizes = list(X.to_delayed()), (np.nan,) * X.npartitions
    made = [
        da.from_delayed(
            delayed(_ask)(shared, method, part, args),
            shape=(size, *like.shape[1:]),
            dtype=like.dtype,
            meta=like[:0],
        )
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(made, axis=0, allow_unknown_chunksizes=True)


def _answer_like(model: Any, method: str, args: tuple) -> Any:
    """What the method gives for one row, for its shape and dtype."""
    row, names = np.zeros((1, model.n_features_in_)), getattr(model, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        row = pd.DataFrame(row, columns=names)
    return getattr(model, method)(row, *args)


def _snapshot(model: Any) -> Any:
    """The model as it is now, solved once and not in every task, without what only training needs: later changes do
    not reach predictions made before."""
    new, fitted = copy.copy(model), model._read()
    fitted.ready()
    new.fitted_ = fitted.lean()
    return new


def _ask(model: Any, method: str, X: Any, args: tuple) -> np.ndarray:
    ask = getattr(model, method)
    if X.shape[0]:
        return ask(X, *args)
    like = np.zeros((1, X.shape[1])) if isinstance(X, np.ndarray) else X.reindex([0]).fillna(0.0)
    return ask(like, *args)[:0]  # an empty partition has an empty answer


def dask_score(model: Any, targets: Targets, X: Any, y: Any, w: Any) -> float:
    """The share of rows, by weight, for which `predict` is right, or R2, the mean over outputs.

    As scikit-learn: a constant target scores 1 if it is met and 0 if not.
    """
    from dask import compute

    need_y(type(model).__name__, y)
    y, predicted, w = _answered(_snapshot(model), X, y, w)
    if not isinstance(targets, Numbers):
        right = (predicted == y).all(axis=1, keepdims=True)
        return float((w * right).sum() / w.sum())
    mean = (w * y).sum(axis=0) / w.sum()
    deviations, errors = compute((w * (y - mean) ** 2).sum(axis=0), (w * (y - predicted) ** 2).sum(axis=0))
    constant = deviations <= 0
    scores = np.where(constant, np.where(errors > 0, 0.0, 1.0), 1 - errors / np.where(constant, 1.0, deviations))
    return float(scores.mean())


def _answered(model: Any, X: Any, y: Any, w: Any) -> list[Any]:
    """Targets, predictions (one column for each output) and weights as Dask arrays, in the partitions of X."""
    import dask.array as da
    from dask import delayed

    parts, _, _, _ = _partitions(X, y, w)
    like = _answer_like(model, "predict", ())
    outputs = 1 if like.ndim == 1 else int(like.shape[1])
    shared = delayed(model, traverse=False)
    answers = [delayed(_answer, nout=3)(shared, part, outputs) for part in parts]
    return [
        da.concatenate(
            [da.from_delayed(answer[k], shape=(np.nan, width), dtype=dtype) for answer in answers],
            allow_unknown_chunksizes=True,
        )
        for k, (width, dtype) in enumerate(((outputs, like.dtype), (outputs, like.dtype), (1, np.float64)))
    ]


def _answer(model: Any, part: tuple[Any, Any, Any], outputs: int) -> tuple[np.ndarray, ...]:
    X, y, w = part
    n = X.shape[0]
    targets = np.asarray(plain_labels(y)).reshape(n, outputs)
    weight = np.ones(n) if w is None else np.asarray(w, dtype=np.float64)
    return targets, np.asarray(_ask(model, "predict", X, ())).reshape(n, outputs), weight.reshape(n, 1)
