"""From a fitted model and rows it has not seen to a plain dict: everything a report says, nothing of how it looks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, mean_absolute_error, r2_score
from sklearn.utils.validation import check_is_fitted

from .._arrays import to_numpy
from ..head import LinearHead
from ..linalg import ridge_solve
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


def summarise(
    model: Any, X: Any = None, y: Any = None, *, image_shape: tuple[int, ...] | None = None
) -> dict[str, Any]:
    """What is known about a model; with test rows X and targets y also how good it is.

    `image_shape` says how to draw a row; by default rows of at least 64 columns whose number is a square are drawn.
    """
    check_is_fitted(model)
    found = {
        "kind": type(model).__name__,
        "versions": versions(),
        "training": _training(model),
        "network": _network(model),
        "search": _search(model),
        "width_path": _width_path(model),
        "code": _code(model),
    }
    if X is None:
        return found
    rows = to_numpy(X) if not hasattr(X, "to_numpy") else X
    first = np.asarray(rows[:MOST_ROWS] if not hasattr(rows, "iloc") else rows.iloc[:MOST_ROWS], dtype=float)
    found["spectrum"] = _spectrum(first)
    found["reconstruction"] = _reconstruction(model, first, image_shape)
    if y is not None:
        found["test"] = _tested(model, rows, np.asarray(y))
    return found


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


def _search(model: Any) -> list[dict[str, Any]]:
    return [{key: _plain(value) for key, value in row.items()} for row in getattr(model, "search_", [])]


def _plain(value: Any) -> Any:
    """A value that JSON has: infinity as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


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


def _spectrum(X: np.ndarray) -> dict[str, Any]:
    found = SpectrumDisplay.computed(np.nan_to_num(X))
    return {"values": found.values.tolist(), "cutoff": found.cutoff, "rank": found.rank, "rows": len(X)}


def _reconstruction(model: Any, X: np.ndarray, image_shape: tuple[int, ...] | None) -> dict[str, Any] | None:
    """How much of the (scaled) input a linear map finds in the features of each layer: fitted on one half of the rows,
    judged on the other."""
    if not model.layers_ or len(X) < 20:
        return None
    shape = image_shape or _square(X.shape[1])
    target = to_numpy(model.transform(X, layer=0)) if hasattr(model, "transform") else X
    half = len(X) // 2
    mean = target[:half].mean(axis=0)
    total = float(np.sum((target[half:] - mean) ** 2))
    layers, pictures = [], []
    scaling = model.network_.scaling
    for k in range(1, len(model.layers_) + 1):
        H = to_numpy(model.transform(X, layer=k)).astype(float)
        centre = H[:half].mean(axis=0)
        F = H - centre
        G = F[:half].T @ F[:half]
        W, _ = ridge_solve(G, F[:half].T @ (target[:half] - mean), 1e-3 * float(np.trace(G)) / len(G))
        back = F[half:] @ W + mean
        layers.append({"layer": k, "error": float(np.sum((back - target[half:]) ** 2)) / total if total > 0 else 0.0})
        if shape is not None:
            shown = back[:PICTURES] if scaling is None else to_numpy(scaling.undo(back[:PICTURES]))
            pictures.append(shown.reshape(-1, *shape).tolist())
    originals = None if shape is None else X[half : half + PICTURES].reshape(-1, *shape).tolist()
    return {"layers": layers, "originals": originals, "pictures": pictures if shape is not None else None}


def _square(columns: int) -> tuple[int, int] | None:
    side = math.isqrt(columns)
    return (side, side) if side * side == columns and columns >= 64 else None


def _tested(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    if hasattr(model, "classes_") and not model.multilabel_:
        return _tested_classes(model, X, y)
    predicted = to_numpy(model.predict(X))
    found: dict[str, Any] = {"rows": len(y), "score": float(model.score(X, y))}
    if not hasattr(model, "classes_") and predicted.ndim == 1:
        residual = y - predicted
        worst = np.argsort(-np.abs(residual))[:WORST]
        found |= {
            "r2": float(r2_score(y, predicted)),
            "mean_absolute_error": float(mean_absolute_error(y, predicted)),
            "points": _points(predicted, residual),
            "worst": [[int(k), float(y[k]), float(predicted[k])] for k in worst],
        }
        if isinstance(model.head_, LinearHead):
            coverage = []
            for wanted in COVERAGES:
                ends = to_numpy(model.predict_interval(X, wanted))
                coverage.append([wanted, float(np.mean((y >= ends[:, 0]) & (y <= ends[:, 1])))])
            found["coverage"] = coverage
    return found


def _points(a: np.ndarray, b: np.ndarray, most: int = 1500) -> list[list[float]]:
    """Pairs to draw, spread over all of them."""
    at = np.linspace(0, len(a) - 1, min(len(a), most)).astype(int)
    return [[float(u), float(v)] for u, v in zip(a[at], b[at], strict=True)]


def _tested_classes(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    P = to_numpy(model.predict_proba(X))
    classes = model.classes_
    predicted = classes[P.argmax(axis=1)]
    number = {label: k for k, label in enumerate(classes.tolist())}
    truth = np.array([number.get(label, -1) for label in y.tolist()])
    known = truth >= 0
    own = np.where(known, P[np.arange(len(P)), np.maximum(truth, 0)], 0.0)
    worst = np.argsort(own)[:WORST]
    bins = CalibrationDisplay.computed(y, P, classes)
    matrix = confusion_matrix(y[known], predicted[known], labels=classes)
    recall = np.diag(matrix) / np.maximum(matrix.sum(axis=1), 1)
    precision = np.diag(matrix) / np.maximum(matrix.sum(axis=0), 1)
    return {
        "rows": len(y),
        "score": float(np.mean(predicted == y)),
        "log_loss": float(-np.mean(np.log(np.maximum(own, 1e-15)))),
        "confusion": matrix.tolist() if len(classes) <= MOST_CLASSES else None,
        "classes": [
            {"name": str(c), "rows": int(matrix[k].sum()), "precision": float(precision[k]), "recall": float(recall[k])}
            for k, c in enumerate(classes.tolist())
        ],
        "calibration": {
            "confidence": bins.confidence.tolist(),
            "accuracy": bins.accuracy.tolist(),
            "error": bins.error,
        },
        "worst": [[int(k), str(y[k]), str(predicted[k]), float(P[k].max()), float(own[k])] for k in worst],
    }


def _code(model: Any) -> str:
    """Python that builds the same estimator and fits it."""
    name = type(model).__name__
    changed = {}
    for key, default in type(model)().get_params(deep=False).items():
        value = getattr(model, key)
        if repr(value) != repr(default):
            changed[key] = value
    arguments = ", ".join(f"{key}={value!r}" for key, value in changed.items())
    target = "X" if not hasattr(model, "head_") else "X, y"
    return f"from pilae import {name}\n\nmodel = {name}({arguments}).fit({target})"
