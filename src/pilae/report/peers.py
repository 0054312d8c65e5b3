"""What a model is held against: a plain linear model of the same columns, and whether it is one itself."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score

from .._arrays import Array, to_numpy
from .._data.check import check_X
from .._data.rows import Rows
from .._data.targets import Classes, Numbers
from .._network.linear import is_linear
from .verdict import accuracy_interval, r2_interval


def peers(model: BaseEstimator) -> dict[str, Any]:
    """Whether this is a linear model, and what one reaches on the training rows by leave-one-out."""
    fitted = model.fitted_
    if not hasattr(fitted, "head"):
        return {}
    # of the rows of `fit`, as the leave-one-out score is
    peer = None if fitted.loo_score is None else fitted.linear
    linear = None if peer is None else {"score": peer.score, "gain": peer.gain, "standard_error": peer.standard_error}
    return {"is_linear": is_linear(fitted.network, fitted.head, fitted.targets), "linear": linear}


def tested_linear(model: BaseEstimator, X: Array, y: np.ndarray) -> dict[str, Any] | None:
    """How good the linear model is on test rows; None where there is none, or the model has other targets by now."""
    fitted = model.fitted_
    peer = getattr(fitted, "linear", None)
    if peer is None or peer.coef is None or peer.coef.shape[1] != fitted.targets.n_outputs:
        return None
    network, targets = fitted.network, fitted.targets
    X = check_X(X, type(model).__name__, fitted.columns)[0]
    rows = Rows(X, network.space, dtype=network.dtype, intake=fitted.columns.intake)

    def outputs(block: Array) -> Array:
        # far rows are brought near as they are for the network, and as they would be for a linear model of this kind
        return network.space.asarray(peer.outputs(block if fitted.bounds is None else fitted.bounds(block)), "float64")

    found = to_numpy(rows.map(outputs, fitted.columns.width))
    if isinstance(targets, Numbers):
        return _of_numbers(found[:, 0], y.reshape(-1).astype(float)) if targets.n_outputs == 1 else None
    if not isinstance(targets, Classes) or targets.multilabel:
        return None
    right = float(np.mean(targets.answer(found) == y.reshape(-1)))
    return {"score": right, "interval": accuracy_interval(right, len(y))}


def _of_numbers(predicted: np.ndarray, y: np.ndarray) -> dict[str, Any] | None:
    if len(y) < 2:  # R2 compares with the mean of the rows
        return None
    return {"score": r2_score(y, predicted), "interval": r2_interval(y, predicted)}
