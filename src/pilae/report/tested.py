"""How good a model is on rows it has not seen, and where it is wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import confusion_matrix, mean_absolute_error, r2_score, roc_auc_score, roc_curve

from .._arrays import Array, to_numpy
from .._network.head import LinearHead
from ..plot import CalibrationDisplay
from .columns import spread_rows
from .verdict import accuracy_interval, r2_interval

MOST_CLASSES = 40
"""More are not drawn as a matrix."""

ROC_CLASSES, ROC_POINTS = 5, 200
"""More classes have no curve each; a curve has so many points."""

WORST = 10
COVERAGES = (0.5, 0.8, 0.9, 0.95)

FIFTHS, FIFTHS_COVERAGE = 5, 0.9
"""Parts of the predictions, from low to high, that coverage is looked at in."""

MOST_POINTS = 1500
"""Residuals that are drawn, spread over all of them."""


def tested(
    model: BaseEstimator, X: Array, y: np.ndarray, numbers: Array | None, whole: dict[str, Any] | None
) -> dict[str, Any]:
    """Of rows X with targets y. `whole` are rows and score of more test rows, of which these are the first."""
    if numbers is not None and len(numbers) != len(y):
        raise ValueError(f"There are {len(numbers)} row numbers for {len(y)} test rows.")
    found = {"rows": len(y), "shown_rows": len(y), "numbers_of_file": numbers is not None}
    numbers = np.arange(len(y)) if numbers is None else np.asarray(numbers)
    if not hasattr(model, "classes_"):
        found |= _tested_numbers(model, X, y, numbers)
    elif model.multilabel_:
        found |= {"score": model.score(X, y)}
    else:
        P = to_numpy(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
        predicted = to_numpy(model.predict(X)) if P is None else model.classes_[P.argmax(axis=1)]
        found |= tested_classes(model.classes_, y.reshape(-1), predicted, P, numbers)
    return found | (whole or {})


def _tested_numbers(model: BaseEstimator, X: Array, y: np.ndarray, numbers: np.ndarray) -> dict[str, Any]:
    predicted = to_numpy(model.predict(X))
    y = y.reshape(predicted.shape).astype(float)
    score = r2_score(y, predicted) if len(y) > 1 else None  # it compares with the mean of the rows
    if predicted.ndim > 1:
        return {"score": score}
    residual = y - predicted
    worst = np.argsort(-np.abs(residual), kind="stable")[:WORST]
    found = {
        "score": score,
        "r2": score,
        "interval": r2_interval(y, predicted),
        "guess": 0.0,
        "mean_absolute_error": mean_absolute_error(y, predicted),
        "guess_absolute_error": np.mean(np.abs(y - y.mean())),
        "heaviest": _heaviest(residual),
        "points": np.stack([predicted, residual], axis=1)[spread_rows(len(y), MOST_POINTS)],
        "worst": list(zip(numbers[worst], y[worst], predicted[worst], strict=True)),
        "worst_rows": worst,
    }
    if isinstance(model.head_, LinearHead) and model.head_.output.loo is not None:
        ends = {wanted: to_numpy(model.predict_interval(X, wanted)) for wanted in COVERAGES}
        inside = {wanted: (y >= low) & (y <= high) for wanted, (low, high) in ((c, e.T) for c, e in ends.items())}
        found["coverage"] = [[wanted, np.mean(hits)] for wanted, hits in inside.items()]
        if len(y) >= 2 * FIFTHS:
            found["fifths"] = _fifths(predicted, inside[FIFTHS_COVERAGE], ends[FIFTHS_COVERAGE])
    return found


def _heaviest(residual: np.ndarray) -> dict[str, Any]:
    """Of the hundredth of the rows with the largest errors: how many they are, and their share of the squares."""
    squares = np.sort(residual**2)[::-1]
    count, total = max(1, len(squares) // 100), float(squares.sum())
    return {"rows": count, "share": float(squares[:count].sum()) / total if total > 0 else 0.0}


def _fifths(predicted: np.ndarray, inside: np.ndarray, ends: np.ndarray) -> list[dict[str, Any]]:
    """Coverage and width of intervals in each fifth of the rows, by prediction."""
    parts = np.array_split(np.argsort(predicted, kind="stable"), FIFTHS)
    return [
        {
            "from": predicted[rows].min(),
            "to": predicted[rows].max(),
            "rows": len(rows),
            "coverage": np.mean(inside[rows]),
            "width": np.median(ends[rows, 1] - ends[rows, 0]),
        }
        for rows in parts
    ]


def tested_classes(
    classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, P: np.ndarray | None, numbers: np.ndarray
) -> dict[str, Any]:
    """Of rows with classes y what was predicted, with which probabilities; `numbers` are names of the rows."""
    known = np.isin(y, classes)
    matrix = np.zeros((len(classes), len(classes)), dtype=int)
    if known.any():
        matrix += confusion_matrix(y[known], predicted[known], labels=classes)
    rows, right = matrix.sum(axis=1), np.diag(matrix)
    with np.errstate(invalid="ignore"):  # a class that no row has, or that none is taken for
        precision, recall = right / matrix.sum(axis=0), right / rows
    names = [str(label) for label in classes.tolist()]
    of_class = zip(names, rows, precision, recall, strict=True)
    score, commonest = np.mean(predicted == y), int(rows.argmax())
    found = {
        "score": score,
        "interval": accuracy_interval(float(score), len(y)),
        "guess": rows[commonest] / len(y),
        "guess_class": names[commonest],
        "confusion": matrix if len(classes) <= MOST_CLASSES else None,
        "classes": [dict(zip(("name", "rows", "precision", "recall"), each, strict=True)) for each in of_class],
    }
    if P is None:
        return found
    number = {label: k for k, label in enumerate(classes.tolist())}
    own = np.array([P[k, number[label]] if label in number else 0.0 for k, label in enumerate(y.tolist())])
    bins = CalibrationDisplay.computed(y, P, classes)
    worst = np.argsort(own, kind="stable")[:WORST]
    return found | {
        "log_loss": 0.0 - np.mean(np.log(np.maximum(own, 1e-15))),  # minus nothing would be -0
        "calibration": {"confidence": bins.confidence, "accuracy": bins.accuracy, "error": bins.error},
        "worst": [[numbers[k], str(y[k]), str(predicted[k]), P[k].max(), own[k]] for k in worst],
        "worst_rows": worst,
        "roc": _roc(y, P, classes) if len(classes) <= ROC_CLASSES else [],
    }


def _roc(y: np.ndarray, P: np.ndarray, classes: np.ndarray) -> list[dict[str, Any]]:
    """Of each class against all others, and of two classes the second's: rows taken for it by mistake, rows found."""
    curves = []
    for k in range(1 if len(classes) == 2 else 0, len(classes)):
        own = y == classes[k]
        if 0 < own.sum() < len(y):
            wrongly, rightly, _ = roc_curve(own, P[:, k])
            at = spread_rows(len(wrongly), ROC_POINTS)
            area = roc_auc_score(own, P[:, k])
            curves.append({"name": str(classes[k]), "wrongly": wrongly[at], "rightly": rightly[at], "area": area})
    return curves
