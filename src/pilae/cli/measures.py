"""How good a model is on rows with targets."""

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn import metrics
from sklearn.base import BaseEstimator

from .._data.strange import Strange
from .._tables.files import Part

SCORES = {"classification": "accuracy", "regression": "R2"}


def scored(model: BaseEstimator, task: str, parts: Iterable[Part]) -> dict[str, Any]:
    """How many rows there are, and the score on them; R2 compares with their mean, so one row has none."""
    answers = [(part.y, model.predict(part.X)) for part in parts]
    if not answers:
        return {"rows": 0, "score": None}
    y, predicted = map(np.concatenate, zip(*answers, strict=True))
    return {"rows": len(y), "score": _score(task, y, predicted)}


def beside_guessing(task: str, guess: float, result: dict[str, Any]) -> list[str]:
    """A sentence if the scores of a fit are not surely better than that of the most frequent class, or the mean: by
    more than two standard errors, of a share or of a correlation."""
    what = "the most frequent class" if task == "classification" else "the mean"
    by = {"by leave-one-out": ("leave_one_out", "rows"), "on the held-out rows": ("held_out", "held_out_rows")}
    poor = []
    for where, (score, rows) in by.items():
        count = max(result[rows], 1)
        chance = 2 * (guess * (1 - guess) / count) ** 0.5 if task == "classification" else 4 / count
        if result[score] is not None and not result[score] > guess + chance:
            poor.append(where)
    if not poor:
        return []
    worth = f"{result['score']} {guess:.4f}"
    return [f"The model is not surely better than guessing {what} ({worth}) {' and '.join(poor)}."]


def _score(task: str, y: np.ndarray, predicted: np.ndarray) -> float | None:
    if task == "classification":
        return float(metrics.accuracy_score(y, predicted))
    return float(metrics.r2_score(y, predicted)) if len(y) > 1 else None


def measured(model: BaseEstimator, task: str, parts: Iterable[Part], strange: Strange) -> dict[str, Any]:
    """How many rows there are, the score on them, and other measures by name; None where one has no meaning. What is
    strange about the rows is added up."""
    classes = task == "classification"
    answers = []
    for part in parts:
        X = model.fitted_.columns.coded_rows(part.X)
        strange.add(model.fitted_.columns.strange_in(X))
        answers.append((part.y, model.predict(X), model.predict_proba(X) if classes else part.y))
    if not answers:
        return {"rows": 0, "score": None, "measures": {}}
    y, predicted, chances = map(np.concatenate, zip(*answers, strict=True))
    measures = measures_of_classes(model.classes_, y, predicted, chances) if classes else _of_numbers(y, predicted)
    return {"rows": len(y), "score": _score(task, y, predicted), "measures": measures}


def measures_of_classes(
    classes: np.ndarray, y: np.ndarray, predicted: np.ndarray, chances: np.ndarray
) -> dict[str, float | None]:
    """Measures of predictions and of the probabilities of the classes, beside the accuracy."""
    met, known = np.unique(y), np.isin(y, classes)
    with warnings.catch_warnings():  # a class that is never predicted, or not in the table
        warnings.simplefilter("ignore")
        recalls = [float((predicted[y == label] == label).mean()) for label in met]
        found: dict[str, float | None] = {
            "balanced accuracy": float(np.mean(recalls)),
            "F1, mean of classes": float(metrics.f1_score(y, predicted, average="macro", labels=met)),
            "log loss": float(metrics.log_loss(y, chances, labels=classes)) if known.all() else None,
        }
    if len(classes) == 2:
        both = len(met) == 2 and known.all()
        found["ROC AUC"] = float(metrics.roc_auc_score(y == classes[1], chances[:, 1])) if both else None
    return found


def _of_numbers(y: np.ndarray, predicted: np.ndarray) -> dict[str, float | None]:
    error = np.abs(predicted - y)
    return {
        "root mean squared error": float(np.sqrt(np.mean(error**2))),
        "mean absolute error": float(error.mean()),
        "median absolute error": float(np.median(error)),
    }
