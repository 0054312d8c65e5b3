"""From a fitted model and rows it has not seen to a plain dict: everything a report says, nothing of how it looks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.metrics import confusion_matrix, mean_absolute_error, r2_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import NUMPY, to_numpy
from .._data.check import check_X
from .._data.dask import is_dask
from .._data.rows import Rows
from .._data.targets import plain_labels
from .._engine.moments import Moments
from .._network import structure
from .._network.head import LinearHead
from .._network.layer import decoder_with_bias
from ..plot import CalibrationDisplay, SpectrumDisplay
from ..save import versions

MOST_ROWS = 2000
"""Rows that spectra and reconstructions are made of."""

MOST_CLASSES = 40
"""More are not drawn as a matrix."""

PICTURES = 8
"""Images shown beside their reconstructions."""

WORST = 10
COVERAGES = (0.5, 0.8, 0.9, 0.95)

LARGEST_PATH = 400
"""Points kept of a width path."""

ALIKE = 0.3
"""Mean correlation of neighbouring columns from which rows are taken for images."""

OF_RUNNING = ("verbose", "device", "block_rows")
"""Parameters that do not change the result."""


def summarise(
    model: Any,
    X: Any = None,
    y: Any = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    code: str | None = None,
    table: dict[str, Any] | None = None,
    numbers: Any = None,
) -> dict[str, Any]:
    """What is known about a model; with test rows X and targets y also how good it is.

    `image_shape` says how to draw a row; by default rows that look like square images are drawn. `code`, `table` and
    `numbers` are those of `make_report`.
    """
    check_is_fitted(model)
    found = {
        "kind": type(model).__name__,
        "versions": versions(),
        "training": _training(model),
        "network": _network(model),
        "search": getattr(model, "search_", []),
        "width_path": _width_path(model),
        "code": code_of(model) if code is None else code,
    }
    if table is not None:
        found["table"] = table
    if X is not None:
        X = X.compute() if is_dask(X) else X
        first = _first_rows(model, X)
        if image_shape is None and table is None:
            image_shape = _square(model, first)
        found["spectrum"] = _spectrum(_features(model, first, 0))
        found["reconstruction"] = _reconstruction(model, first, image_shape)
        if y is not None:
            found["test"] = _tested(model, X, np.asarray(plain_labels(y)), numbers)
    return plain(found)


def _first_rows(model: Any, X: Any) -> np.ndarray:
    """Enough of the rows, as numbers: of arrays of any library, DataFrames and sparse matrices."""
    first = check_X(model, X, reset=False)[:MOST_ROWS]
    return np.asarray(first.toarray() if scipy.sparse.issparse(first) else to_numpy(first), dtype=float)


def _features(model: Any, X: np.ndarray, depth: int) -> np.ndarray:
    """What the network makes of rows: the scaled input at depth 0."""
    network = model.network_
    rows = Rows(X, network.space, dtype=network.dtype, gauge=network.gauge)
    return to_numpy(network(rows.dense(), depth)).astype(float)


def _training(model: Any) -> dict[str, Any]:
    stats = getattr(model, "fit_stats_", {})
    found = {
        "rows": stats.get("rows"),
        "columns": int(model.n_features_in_),
        "passes": stats.get("passes"),
        "seconds": stats.get("seconds"),
        "peak_megabytes": stats.get("peak_megabytes"),
        "leave_one_out": getattr(model, "loo_score_", None),
        "stale": bool(getattr(model, "loo_is_stale_", False)),
    }
    if hasattr(model, "classes_"):
        found["classes"] = [str(label) for label in model.classes_.tolist()]
    if hasattr(model, "feature_names_in_"):
        found["names"] = [str(name) for name in model.feature_names_in_]
    return found


def _network(model: Any) -> dict[str, Any]:
    scaling = model.network_.scaling
    found: dict[str, Any] = {
        "input_scaling": "none" if scaling is None else {"Squash": "asinh"}.get(type(scaling).__name__, "standard"),
        "layers": [
            {
                "width": layer.width,
                "activation": layer.activation,
                "input_rank": layer.rank,
                "reconstruction_error": layer.reconstruction_error,
                "seconds": layer.seconds,
                "passes": layer.passes,
            }
            for layer in model.layers_
        ],
    }
    head = getattr(model, "head_", None)
    if isinstance(head, LinearHead):
        hidden = head.hidden
        found["head"] = {
            "kind": "ridge" if hidden is None else "SHLN",
            "width": head.width,
            "activation": None if hidden is None else hidden.activation,
            "direct_links": False if hidden is None else bool(hidden.direct),
            "ridge": head.output.ridge,
            "route": head.output.route,
        }
        found["ridge_path"] = [[float(r), float(e)] for r, e in sorted(head.output.path.items())]
    elif head is not None:
        found["head"] = {"kind": type(head.estimator).__name__, "width": None}
    return found


def plain(value: Any) -> Any:
    """Only what JSON has: no number is None, infinities are text."""
    if isinstance(value, dict):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def _width_path(model: Any) -> dict[str, Any] | None:
    path = getattr(model, "width_path_", None)
    if path is None or not np.isfinite(path.errors[path.ridge]).all():
        return None
    count = len(path.errors[path.ridge])
    at = np.unique(np.geomspace(1, count, min(count, LARGEST_PATH)).astype(int)) - 1
    return {
        "columns": (path.first + at).tolist(),
        "ridge": float(path.ridge),
        "errors": {f"{r:.1e}": e[at].tolist() for r, e in path.errors.items() if np.isfinite(e).all()},
        "standard_errors": None if path.standard_errors is None else path.standard_errors[at].tolist(),
        "chosen": int(model.head_.output.coef.shape[0]),
    }


def _spectrum(scaled: np.ndarray) -> dict[str, Any]:
    """Of scaled rows, standardised where the network does not: a column of large numbers would hide all others."""
    variance = scaled.var(axis=0)
    if structure.wants_standardising(variance):
        scaled = (scaled - scaled.mean(axis=0)) / np.sqrt(np.where(variance > 0, variance, 1.0))
    found = SpectrumDisplay.computed(scaled)
    return {"values": found.values.tolist(), "cutoff": found.cutoff, "rank": found.rank, "rows": len(scaled)}


def _reconstruction(model: Any, X: np.ndarray, shape: tuple[int, ...] | None) -> dict[str, Any] | None:
    """How much of the (scaled) input a linear map finds in the features of each layer: fitted on one half of the rows,
    judged on the other."""
    if shape is not None and math.prod(shape) != X.shape[1]:
        raise ValueError(
            f"image_shape {tuple(shape)} has {math.prod(shape)} pixels, and rows have {X.shape[1]} columns."
        )
    if not model.layers_ or len(X) < 20:
        return None
    target = _features(model, X, 0)
    half = len(X) // 2
    mean = target[:half].mean(axis=0)
    total = float(np.sum((target[half:] - mean) ** 2))
    layers, pictures = [], []
    network = model.network_
    for k in range(1, len(model.layers_) + 1):
        H = _features(model, X, k)
        moments = Moments(NUMPY)
        moments.add(H[:half], target[:half])
        W_d, b = decoder_with_bias(moments, 1e-3, "float64")
        back = H[half:] @ W_d + b
        layers.append({"layer": k, "error": float(np.sum((back - target[half:]) ** 2)) / total if total > 0 else 0.0})
        if shape is not None:
            shown = network.space.asarray(back[:PICTURES], network.dtype)
            shown = to_numpy(network.undo(shown))
            pictures.append(shown.reshape(-1, *shape).tolist())
    originals = None if shape is None else X[half : half + PICTURES].reshape(-1, *shape).tolist()
    return {"layers": layers, "originals": originals, "pictures": pictures if shape is not None else None}


def _square(model: Any, X: np.ndarray) -> tuple[int, int] | None:
    """The shape of rows that look like square images: unnamed columns, of which neighbours are alike."""
    side = math.isqrt(X.shape[1])
    if side * side != X.shape[1] or side < 8 or hasattr(model, "feature_names_in_"):
        return None
    deviation = X.std(axis=0)
    alive = (deviation > 0).reshape(side, side)
    Z = ((X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)).reshape(-1, side, side)
    beside = np.mean(Z[:, :, :-1] * Z[:, :, 1:], axis=0)[alive[:, :-1] & alive[:, 1:]]
    below = np.mean(Z[:, :-1] * Z[:, 1:], axis=0)[alive[:-1] & alive[1:]]
    pairs = np.concatenate([beside, below])
    return (side, side) if pairs.size and pairs.mean() > ALIKE else None


def _tested(model: Any, X: Any, y: np.ndarray, numbers: Any) -> dict[str, Any]:
    if numbers is not None and len(numbers) != len(y):
        raise ValueError(f"There are {len(numbers)} row numbers for {len(y)} test rows.")
    found: dict[str, Any] = {"rows": len(y), "numbers_of_file": numbers is not None}
    names = np.arange(len(y)) if numbers is None else np.asarray(numbers)
    if hasattr(model, "classes_"):
        if model.multilabel_:
            return found | {"score": float(model.score(X, y))}
        return found | _tested_classes(model, X, y.reshape(-1), names)
    predicted = to_numpy(model.predict(X))
    y = y.reshape(predicted.shape).astype(float)
    found["score"] = float(r2_score(y, predicted)) if len(y) > 1 else None  # it compares with the mean of the rows
    if predicted.ndim == 1:
        residual = y - predicted
        worst = np.argsort(-np.abs(residual))[:WORST]
        found |= {
            "r2": found["score"],
            "mean_absolute_error": float(mean_absolute_error(y, predicted)),
            "points": _points(predicted, residual),
            "worst": [[int(names[k]), float(y[k]), float(predicted[k])] for k in worst],
        }
        if isinstance(model.head_, LinearHead):
            coverage = []
            for wanted in COVERAGES:
                ends = to_numpy(model.predict_interval(X, wanted))
                coverage.append([wanted, float(np.mean((y >= ends[:, 0]) & (y <= ends[:, 1])))])
            found["coverage"] = coverage
    return found


def short_names(names: list[str], most: int) -> dict[str, str]:
    """Name to a name of at most `most` characters: cut in the middle, and numbered where different names would look the
    same."""
    plain = {name: " ".join(name.split()) for name in names}
    found = {name: name for name in names if plain[name] == name and len(name) <= most}
    taken = set(found)
    for name in names:
        if name in found:
            continue
        short, number = _cut(plain[name], most, ""), 1
        while short in taken:
            number += 1
            short = _cut(plain[name], most, f" ({number})")
        found[name] = short
        taken.add(short)
    return found


def _cut(name: str, most: int, ending: str) -> str:
    room = most - len(ending)
    if len(name) <= room:
        return name + ending
    tail = (room - 1) // 3
    return f"{name[: room - 1 - tail]}…{name[len(name) - tail :]}{ending}"


def _points(a: np.ndarray, b: np.ndarray, most: int = 1500) -> list[list[float]]:
    """Pairs to draw, spread over all of them."""
    at = np.linspace(0, len(a) - 1, min(len(a), most)).astype(int)
    return [[float(u), float(v)] for u, v in zip(a[at], b[at], strict=True)]


def _tested_classes(model: Any, X: Any, y: np.ndarray, names: np.ndarray) -> dict[str, Any]:
    classes = model.classes_
    P = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    predicted = to_numpy(model.predict(X)) if P is None else classes[P.argmax(axis=1)]
    known = np.isin(y, classes)
    matrix = np.zeros((len(classes), len(classes)), dtype=int)
    if known.any():
        matrix += confusion_matrix(y[known], predicted[known], labels=classes)
    found = {
        "score": float(np.mean(predicted == y)),
        "confusion": matrix.tolist() if len(classes) <= MOST_CLASSES else None,
        "classes": [
            {
                "name": str(label),
                "rows": int(matrix[k].sum()),
                "precision": _share(matrix[k, k], matrix[:, k].sum()),
                "recall": _share(matrix[k, k], matrix[k].sum()),
            }
            for k, label in enumerate(classes.tolist())
        ],
    }
    if P is None:
        return found
    number = {label: k for k, label in enumerate(classes.tolist())}
    own = np.array([P[k, number[label]] if label in number else 0.0 for k, label in enumerate(y.tolist())])
    bins = CalibrationDisplay.computed(y, P, classes)
    worst = np.argsort(own)[:WORST]
    return found | {
        "log_loss": float(-np.mean(np.log(np.maximum(own, 1e-15)))),
        "calibration": {"confidence": bins.confidence, "accuracy": bins.accuracy, "error": bins.error},
        "worst": [[int(names[k]), str(y[k]), str(predicted[k]), float(P[k].max()), float(own[k])] for k in worst],
    }


def _share(part: int, whole: int) -> float | None:
    return float(part / whole) if whole else None


def code_of(model: Any) -> str:
    """Python that builds the same estimator and fits it."""
    name = type(model).__name__
    changed = {}
    for key, default in type(model)().get_params(deep=False).items():
        value = getattr(model, key)
        if key not in OF_RUNNING and repr(value) != repr(default):
            changed[key] = value
    arguments = ", ".join(f"{key}={value!r}" for key, value in changed.items())
    target = "X, y" if hasattr(model, "head_") or getattr(model, "search_", []) else "X"
    return f"from pilae import {name}\n\nmodel = {name}({arguments}).fit({target})"
