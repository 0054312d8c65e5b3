"""From a fitted model and rows it has not seen to a plain dict: everything a report says, nothing of how it looks."""

import itertools
import math
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from .._arrays import NUMPY, Array, to_numpy
from .._base.saveable import KINDS
from .._data.check import check_X
from .._data.dask import is_dask
from .._data.labels import plain_labels
from .._data.rows import Rows
from .._engine.moments import Moments
from .._network import structure
from .._network.averaged import taken_apart
from .._network.head import EstimatorHead, Head, LinearHead
from .._network.layer import decoder_with_bias
from .._network.network import Network
from ..plot import SpectrumDisplay
from ..save import versions
from .columns import CURVES, curves, own_columns, shuffled, table_columns
from .peers import peers, tested_linear
from .tested import tested
from .verdict import verdict

MOST_ROWS = 2000
"""Rows that spectra and reconstructions are made of."""

PICTURES = 8
"""Images shown beside their reconstructions."""

LARGEST_PATH = 400
"""Points kept of a width path."""

ALIKE = 0.3
"""Mean correlation of neighbouring columns from which rows are taken for images."""

OF_RUNNING = ("verbose", "device", "block_rows")
"""Parameters that do not change the result."""


def summarise(
    model: BaseEstimator,
    X: Array | None = None,
    y: Array | None = None,
    *,
    image_shape: tuple[int, ...] | None = None,
    code: str | None = None,
    table: dict[str, Any] | None = None,
    numbers: Array | None = None,
    whole: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """What is known about a model; with test rows X and targets y also how good it is.

    `image_shape` says how to draw a row; by default rows that look like square images are drawn. The others are those
    of `make_report`.
    """
    check_is_fitted(model)
    model = model._settled()
    summary: dict[str, Any] = {
        "kind": type(model).__name__,
        "versions": versions(),
        "training": _training(model) | peers(model),
        "network": _network(model),
        "search": getattr(model, "search_", []),
        "width_path": _width_path(model),
        "importances": _importances(model),
        "code": code_of(model) if code is None else code,
    }
    if table is not None:
        summary["table"] = table
    if X is not None:
        X = X.compute() if is_dask(X) else X
        columns, frame = model.fitted_.columns, None
        if columns.table is not None:
            frame = _plain_frame(X)
            X = columns.coded_rows(X)  # once
        first = check_X(X, type(model).__name__, columns)[0][:MOST_ROWS]
        first = np.asarray(first.toarray() if scipy.sparse.issparse(first) else to_numpy(first), dtype=float)
        if image_shape is None and table is None:
            image_shape = _square(model, first)
        summary["spectrum"] = _spectrum(_features(model, first, 0))
        summary["reconstruction"] = _reconstruction(model, first, image_shape)
        if y is not None:
            y = np.asarray(plain_labels(y))
            summary["test"] = tested(model, X, y, numbers, whole)
            summary["test"]["linear"] = tested_linear(model, X, y)
            pictures = (summary["reconstruction"] or {}).get("pictures")
            if image_shape is None and not pictures and first.shape[1] and len(y) > 1:  # pixels have no names
                summary |= _columns(model, first, y[:MOST_ROWS], frame)
                _show_worst(summary, model, X, frame)
    summary["verdict"] = verdict(plain(summary))
    return plain(summary)


def _plain_frame(X: Any) -> Any:
    """A table as one of pandas, without its NA, which is neither true nor false nor equal to itself."""
    frame = X if hasattr(X, "iloc") else X.to_pandas()
    odd = {name: column for name, column in frame.items() if hasattr(column.dtype, "na_value")}
    return frame.assign(**{k: v.astype(object).where(v.notna(), None) for k, v in odd.items() if v.hasnans})


def _columns(model: BaseEstimator, X: np.ndarray, y: np.ndarray, frame: Any) -> dict[str, Any]:
    """Which columns matter, and how; `frame` are the rows as they came, where these are a table of mixed columns."""
    if not hasattr(model, "head_") or getattr(model, "multilabel_", False):
        return {}
    own = model.fitted_.columns.table
    given = own_columns(model, X) if own is None else table_columns(frame.iloc[: len(X)], own)
    shares = getattr(model, "feature_importances_", None)
    if shares is not None and own is not None:  # of a column, in equal parts, what is made of it
        shares = (shares / np.maximum(np.bincount(own.sources, minlength=len(shares)), 1))[own.sources]
    found = shuffled(model, X, y, given, shares)
    drawn = curves(model, X, given, [each["column"] for each in found]) if _has_curves(model) else []
    return {"shuffled": found, "curves": drawn}


def _has_curves(model: BaseEstimator) -> bool:
    """Whether a row has one number, or probabilities."""
    return hasattr(model, "predict_proba") if hasattr(model, "classes_") else model.n_outputs == 1


def _show_worst(summary: dict[str, Any], model: BaseEstimator, X: Array, frame: Any) -> None:
    """The values of the worst rows in the columns that matter most."""
    rows, columns = summary["test"].get("worst_rows"), [each["column"] for each in summary.get("shuffled", [])[:CURVES]]
    if rows is None or not columns:
        return
    if frame is not None:
        values = [[frame[name].iloc[k] for name in columns] for k in rows]
    else:
        names = list(getattr(model, "feature_names_in_", [f"column {k}" for k in range(model.n_features_in_)]))
        at = [[str(name) for name in names].index(name) for name in columns]
        chosen = check_X(X, type(model).__name__, model.fitted_.columns)[0][rows]
        chosen = chosen.toarray() if scipy.sparse.issparse(chosen) else to_numpy(chosen)
        values = chosen[:, at].tolist()
    summary["test"]["worst_values"] = {"columns": columns, "rows": [[_cell(value) for value in row] for row in values]}


def _cell(value: Any) -> Any:
    """A value of a table as JSON has it."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is None or value != value:
        return None
    return value if isinstance(value, (bool, int, float)) else str(value)


def _features(model: BaseEstimator, X: np.ndarray, depth: int) -> np.ndarray:
    """What the network makes of rows: the scaled input at depth 0."""
    network = model.network_
    intake = model.fitted_.columns.intake
    rows = Rows(X, network.space, dtype=network.dtype, gauge=network.gauge, intake=intake)
    return to_numpy(network(rows.dense(), depth)).astype(float)


def _training(model: BaseEstimator) -> dict[str, Any]:
    stats = getattr(model, "fit_stats_", {})
    training = {"rows": stats.get("rows"), "columns": model.n_features_in_, "inputs": model.fitted_.columns.width}
    training |= {key: stats.get(key) for key in ("passes", "seconds", "peak_megabytes")}
    training |= {"leave_one_out": getattr(model, "loo_score_", None), "stale": getattr(model, "loo_is_stale_", False)}
    if hasattr(model.fitted_, "targets"):
        training["outputs"] = model.fitted_.targets.n_outputs
    if getattr(model.fitted_, "grouped", False):
        training["grouped"] = True
    if hasattr(model, "classes_"):
        training["classes"] = [str(label) for label in model.classes_.tolist()]
    if hasattr(model, "feature_names_in_"):
        training["names"] = [str(name) for name in model.feature_names_in_]
    return training


SCALINGS = {"Squash": "asinh", "Pieces": "pieces"}


def _network(model: BaseEstimator) -> dict[str, Any]:
    network, head = model.network_, getattr(model, "head_", None)
    if not isinstance(head, LinearHead):
        return _one_network(network, head)
    first, *others = (_one_network(*each) for each in taken_apart(network, head))
    return first | ({"averaged_with": others} if others else {})


def _one_network(layers: Network, head: Head | None) -> dict[str, Any]:
    scaling = layers.scaling
    network: dict[str, Any] = {
        "input_scaling": "none" if scaling is None else SCALINGS.get(type(scaling).__name__, "standard"),
        "layers": [
            {
                "width": layer.width,
                "activation": layer.activation,
                "input_rank": layer.rank,
                "reconstruction_error": layer.reconstruction_error,
                "seconds": layer.seconds,
                "passes": layer.passes,
            }
            for layer in layers.layers
        ],
    }
    if isinstance(head, LinearHead):
        hidden = head.hidden
        network["head"] = {
            "kind": "ridge" if hidden is None else "SHLN",
            "width": head.width,
            "columns": int(head.output.coef.shape[0]),
            "activation": None if hidden is None else hidden.activation,
            "direct_links": hidden is not None and hidden.direct,
            "ridge": head.output.ridge,
            "route": head.output.route,
        }
        network["ridge_path"] = sorted(head.output.path.items())
    elif head is not None:
        assert isinstance(head, EstimatorHead)
        network["head"] = {"kind": type(head.estimator).__name__, "width": None}
    return network


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


def _importances(model: BaseEstimator) -> list[dict[str, Any]] | None:
    """Columns and how much each moves the outputs, the largest first."""
    found = getattr(model, "feature_importances_", None)
    if found is None:
        return None
    names = getattr(model, "feature_names_in_", [f"column {k}" for k in range(len(found))])
    return [{"column": str(names[k]), "share": found[k]} for k in np.argsort(-found, kind="stable")]


def _width_path(model: BaseEstimator) -> dict[str, Any] | None:
    path = getattr(model, "width_path_", None)
    if path is None or not np.isfinite(path.errors[path.ridge]).all():
        return None
    count = len(path.errors[path.ridge])
    at = np.unique(np.geomspace(1, count, min(count, LARGEST_PATH)).astype(int)) - 1
    return {
        "columns": path.first + at,
        "ridge": float(path.ridge),
        "errors": {f"{r:.1e}": e[at] for r, e in path.errors.items() if np.isfinite(e).all()},
        "standard_errors": None if path.standard_errors is None else path.standard_errors[at],
        "chosen": model.head_.output.coef.shape[0],
    }


def _spectrum(scaled: np.ndarray) -> dict[str, Any]:
    """Of scaled rows, standardised where the network does not: a column of large numbers would hide all others."""
    variance = scaled.var(axis=0)
    if structure.wants_standardising(variance):
        scaled = (scaled - scaled.mean(axis=0)) / np.sqrt(np.where(variance > 0, variance, 1.0))
    return vars(SpectrumDisplay.computed(scaled)) | {"rows": len(scaled)}


def _reconstruction(model: BaseEstimator, X: np.ndarray, shape: tuple[int, ...] | None) -> dict[str, Any] | None:
    """How much of the (scaled) input a linear map finds in the features of each layer: fitted on one half of the rows,
    judged on the other."""
    n, d = X.shape
    if shape is not None and math.prod(shape) != d:
        raise ValueError(f"image_shape {tuple(shape)} has {math.prod(shape)} pixels, and rows have {d} columns.")
    if not model.layers_ or n < 20:
        return None
    network, target, half = model.network_, _features(model, X, 0), n // 2
    total = float(np.sum((target[half:] - target[:half].mean(axis=0)) ** 2))
    layers, pictures = [], []
    for k in range(1, len(model.layers_) + 1):
        H = _features(model, X, k)
        moments = Moments(NUMPY)
        moments.add(H[:half], target[:half])
        W_d, b = decoder_with_bias(moments, 1e-3, "float64")
        back = H[half:] @ W_d + b
        layers.append({"layer": k, "error": float(np.sum((back - target[half:]) ** 2)) / total if total > 0 else 0.0})
        if shape is not None:
            shown = network.undo(network.space.asarray(back[:PICTURES], network.dtype))
            pictures.append(to_numpy(shown).reshape(-1, *shape))
    if shape is None:
        return {"layers": layers, "originals": None, "pictures": None}
    return {"layers": layers, "originals": X[half : half + PICTURES].reshape(-1, *shape), "pictures": pictures}


def _square(model: BaseEstimator, X: np.ndarray) -> tuple[int, int] | None:
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


def short_names(names: list[str], most: int) -> dict[str, str]:
    """Name to a name of at most `most` characters: cut in the middle, and numbered where different names would look the
    same."""
    plain = {name: " ".join(name.split()) for name in names}
    short = {name: name for name in names if plain[name] == name and len(name) <= most}
    taken = set(short)
    for name in [name for name in plain if name not in short]:
        numbered = (_cut(plain[name], most, f" ({k})" if k > 1 else "") for k in itertools.count(1))
        short[name] = next(each for each in numbered if each not in taken)
        taken.add(short[name])
    return short


def _cut(name: str, most: int, ending: str) -> str:
    room = most - len(ending)
    if len(name) <= room:
        return name + ending
    tail = (room - 1) // 3
    return f"{name[: room - 1 - tail]}…{name[len(name) - tail :]}{ending}"


def code_of(model: BaseEstimator) -> str:
    """Python that builds the same estimator and fits it."""
    name, defaults = type(model).__name__, type(model)().get_params(deep=False)
    values = {key: getattr(model, key) for key in defaults if key not in OF_RUNNING}
    changed = [f"{key}={value!r}" for key, value in values.items() if repr(value) != repr(defaults[key])]
    labelled = any(hasattr(model, name) for name in ("head_", "classes_")) or getattr(model, "search_", [])
    target = "X, y" if labelled else "X"
    names = {name} | {type(value).__name__ for value in values.values() if type(value).__name__ in KINDS}
    return f"from pilae import {', '.join(sorted(names))}\n\nmodel = {name}({', '.join(changed)}).fit({target})"
