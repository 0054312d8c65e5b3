"""Targets as users pass them: labels, several labels a row, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_array, column_or_1d

from .._arrays import is_foreign, to_numpy
from .._base.scalars import is_number
from .check import check_finite, in_float64, in_one_sentence, unmasked

MAX_CLASSES = 5_000
"""Each class is an output with a target column of its own, and about a megabyte while the fit lasts."""

TARGET_SIZES = {"float64": (1e-150, 1e150), "float32": (1e-15, 1e15)}
"""Targets as large as that can be squared and added up."""


def need_y(estimator: Any, y: Any) -> None:
    if y is None:
        raise ValueError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )


def _check_length(y: Any, n: int) -> None:
    if y.ndim == 0:
        raise ValueError(f"y is a single value, but X has {n} rows: give one target for each row.")
    if y.shape[0] != n:
        raise ValueError(f"X has {n} rows but y has {y.shape[0]}: give one target for each row.")


def plain_labels(y: Any) -> Any:
    """y without its container: from a device, a mask, a sparse matrix, or a pandas extension type."""
    y = unmasked(y, "y")
    if is_foreign(y):
        return to_numpy(y)
    if scipy.sparse.issparse(y):
        return y.toarray()
    plain = getattr(getattr(y, "dtype", None), "numpy_dtype", None)  # pandas' Int64, boolean, ...
    return y if plain is None or y.isna().any() else y.to_numpy(dtype=plain)


def _kind_of_labels(y: Any) -> str:
    """scikit-learn's word for the kind of these labels."""
    try:
        with np.errstate(invalid="ignore"):  # floats beyond the integers are no classes
            kind = type_of_target(y, input_name="y")
            check_classification_targets(y)
    except TypeError as error:
        if "not supported between instances" not in str(error):
            raise
        raise ValueError(
            "y holds labels of several kinds, which have no order: make all of them text or all of them numbers, and "
            "leave out rows without a label."
        ) from error
    return kind


def check_labels(
    estimator: Any, y: Any, n: int, w: np.ndarray | None, announced: Any = None
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Targets of a classifier: (classes, integer codes or 0/1 matrix, multilabel?)."""
    need_y(estimator, y)
    y = plain_labels(y)
    values = np.asarray(y)
    if values.ndim == 0:
        _check_length(values, n)
    if values.dtype.kind == "f":
        check_finite(values, "y", type(estimator).__name__)
    if values.dtype == object and any(label is None for label in values.ravel().tolist()):
        raise ValueError("y holds None, which is no label: leave those rows out, or give them a class of their own.")
    kind = _kind_of_labels(y)
    if kind == "multilabel-indicator":
        Y = check_array(y, dtype="numeric")
        _check_length(Y, n)
        return np.arange(Y.shape[1]), np.asarray(Y != 0, dtype=np.float64), True
    if kind == "multiclass-multioutput":
        raise ValueError(
            "y has several columns with more than two classes, which is not supported: fit one classifier per column, "
            "for example with sklearn.multioutput.MultiOutputClassifier."
        )
    y = column_or_1d(y, warn=True)
    _check_length(y, n)
    classes = all_classes(estimator, np.unique(y if w is None else y[w > 0]), announced)
    return classes, class_numbers(y, classes), False


def check_new_labels(estimator: Any, y: Any, n: int) -> np.ndarray:
    """Labels of rows that come after `fit`: one a row, of any classes."""
    need_y(estimator, y)
    values = np.asarray(plain_labels(y))
    if values.ndim == 0:
        _check_length(values, n)
    if values.dtype.kind == "f":
        check_finite(values, "y", type(estimator).__name__)
    _kind_of_labels(values)
    labels = column_or_1d(values, warn=True)
    _check_length(labels, n)
    return labels


def check_targets(estimator: Any, y: Any, n: int, dtype: str) -> tuple[np.ndarray, bool]:
    """Targets of a regressor that computes in `dtype`: (float64, n x m, in NumPy; whether y was one-dimensional)."""
    need_y(estimator, y)
    if is_number(y):
        _check_length(np.asarray(y), n)
    try:
        Y = check_array(
            to_numpy(y) if is_foreign(y) else unmasked(y, "y"),
            ensure_2d=False,
            dtype="numeric",
            ensure_all_finite=False,
            input_name="y",
        )
    except (ValueError, TypeError, OverflowError) as error:
        raise in_one_sentence(error, "y") from None
    Y = in_float64(Y, "y")
    _check_length(Y, n)
    check_finite(Y, "y", type(estimator).__name__)
    columns = np.asarray(Y, dtype=np.float64).reshape(n, -1)
    check_target_size(np.max(np.abs(columns), axis=0), dtype)
    return columns, Y.ndim == 1


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes, in as few bytes as hold it. Labels of rows without weight may be no
    class at all, and get any number."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(len(classes)))
    for start in range(0, len(y), 2**20):
        part = slice(start, start + 2**20)
        codes[part] = np.clip(np.searchsorted(classes, y[part]), 0, len(classes) - 1)
    return codes


def all_classes(estimator: Any, met: np.ndarray, announced: Any) -> np.ndarray:
    """The classes there are, and those announced for later."""
    classes = met if announced is None else one_kind(met, np.unique(np.asarray(plain_labels(announced))))
    if announced is not None and len(classes) > len(np.unique(np.asarray(plain_labels(announced)))):
        strange = np.setdiff1d(met, np.asarray(plain_labels(announced))).tolist()
        raise ValueError(f"y holds {strange[:5]}, which are not among the classes given: list all of them, or none.")
    check_classes(estimator, classes)
    return classes


def one_kind(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """All labels, sorted: numbers or text, not both."""
    if (labels.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        raise ValueError(
            f"Labels must be of one kind: there are {known.tolist()[:3]}..., and also {labels.tolist()[:3]}..."
        )
    return np.union1d(known, labels)


def check_classes(estimator: Any, classes: np.ndarray) -> None:
    if len(classes) < 2:
        raise ValueError(
            f"{type(estimator).__name__} needs at least two classes, but y holds one class only "
            f"({classes.tolist()[0]!r}): check the target column."
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y holds {len(classes)} classes, and each needs an output of its own; at most {MAX_CLASSES} are taken. If "
            "y counts or measures something use a regressor, otherwise group rare classes first."
        )


def check_target_size(sizes: np.ndarray, dtype: str) -> None:
    """Target columns, as large as `sizes`, whose squares neither overflow nor vanish in the dtype of the fit."""
    low, high = TARGET_SIZES[dtype]
    absurd = ~((sizes == 0) | ((sizes >= low) & (sizes <= high)))
    if absurd.any():
        raise ValueError(
            f"A column of targets is as large as {sizes[absurd][0]:.0e}, and {dtype} takes {low:.0e} to {high:.0e}, "
            "where squares neither overflow nor vanish: rescale y, for example with "
            "sklearn.compose.TransformedTargetRegressor."
        )


def weights_of_labels() -> ValueError:
    return ValueError("'class_weight' is for one label per row: with multilabel targets use sample_weight.")
