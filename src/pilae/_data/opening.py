"""Whatever a user passes, as rows: arrays, sources, Dask collections."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._arrays import Space, space_for
from .._base.progress import Progress
from .check import check_same_space, check_X
from .dask import DaskRows, is_dask
from .rows import Rows
from .sources import Source
from .stream import FirstReading, Stream, read_targets
from .targets import need_y


def is_streamed(X: Any) -> bool:
    """Whether X is read in passes of its own: a source, or Dask collections."""
    return isinstance(X, Source) or is_dask(X)


def stream_to_fit(
    estimator: Any, X: Any, y: Any, sample_weight: Any, *, labels: bool | None
) -> tuple[Stream, FirstReading]:
    """The rows for `fit`, after a first reading of their targets: labels, real numbers, or (None) nothing but rows."""
    space = space_for(np.empty(0), estimator.device)
    rows, first = _stream(estimator, X, y, sample_weight, labels, space, estimator.dtype)
    remember_columns(estimator, rows.source.d, rows.source.columns)
    return rows, first


def stream_to_add(estimator: Any, X: Any, y: Any, sample_weight: Any, *, labels: bool) -> tuple[Stream, FirstReading]:
    """The same for a fitted model, in its dtype and where it lives."""
    network = estimator.network_
    if estimator.weight_exponent_:
        raise ValueError(
            "This model was fitted with weights beyond 1e19 or below 1e-19: add arrays, or use other units."
        )
    rows, first = _stream(estimator, X, y, sample_weight, labels, network.space, network.dtype)
    rows.gauge = network.gauge
    check_columns(estimator, rows.source.d, rows.source.columns)
    return rows, first


def _stream(
    estimator: Any, X: Any, y: Any, sample_weight: Any, labels: bool | None, space: Space, dtype: str | None
) -> tuple[Stream, FirstReading]:
    running = _running(estimator, dtype)
    if is_dask(X):
        if labels is not None:
            need_y(estimator, y)
        spread = DaskRows(X, y, sample_weight, space, labels=labels, **running)
        return spread, spread.reading
    check_alone(y, sample_weight)
    first = read_targets(X, labels=labels, name=running["name"])
    classes = first.classes if labels else None
    real = labels is False
    rows = Stream(X, space, n=first.n, classes=classes, real=real, total_weight=first.weight, **running)
    rows.passes = 1
    return rows, first


def rows_to_ask(estimator: Any, X: Any, method: str) -> Rows:
    """The rows a fitted model is asked about (Dask collections are asked lazily, see `_dask`)."""
    if not hasattr(estimator, "network_"):
        check_is_fitted(estimator)
    network = estimator.network_
    if isinstance(X, Source):
        check_columns(estimator, X.d, X.columns)
        return Stream(X, network.space, n=X.count(), gauge=network.gauge, **_running(estimator, network.dtype))
    X = check_X(estimator, X, reset=False)
    check_same_space(estimator, method, X, network.space)
    return Rows(X, network.space, block_rows=estimator.block_rows, dtype=network.dtype, gauge=network.gauge)


def _running(estimator: Any, dtype: str | None) -> dict[str, Any]:
    return {
        "block_rows": estimator.block_rows,
        "dtype": dtype,
        "progress": Progress(estimator.verbose),
        "name": type(estimator).__name__,
    }


def check_alone(y: Any, sample_weight: Any) -> None:
    if y is not None or sample_weight is not None:
        raise ValueError(
            "A source brings its own targets and weights: call with the source alone, and name them where it is made "
            "(target=..., weight=..., or blocks of (X, y, sample_weight))."
        )


def remember_columns(estimator: Any, d: int, columns: list[str] | None) -> None:
    estimator.n_features_in_ = d
    if columns is not None:
        estimator.feature_names_in_ = np.array(columns, dtype=object)


def check_columns(estimator: Any, d: int, columns: list[str] | None) -> None:
    """The columns of a source against those of `fit`."""
    known = getattr(estimator, "feature_names_in_", None)
    if columns is not None and known is not None and list(known) != list(columns):
        missing = [name for name in known if name not in columns]
        what = f"{missing[:5]} are missing" if missing else "they come in another order or there are others"
        raise ValueError(f"The columns of the source are not those of fit: {what}. Name them with columns=[...].")
    if d != estimator.n_features_in_:
        raise ValueError(
            f"X has {d} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features as "
            "input."
        )
