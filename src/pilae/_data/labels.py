"""Labels and other targets as users pass them: plain arrays, or the sentence that says what is wrong."""

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.multiclass import check_classification_targets, type_of_target

from .._arrays import is_foreign, to_numpy
from .check import check_finite, unmasked

MAX_CLASSES = 5_000
"""Each class is an output with a target column of its own, and about a megabyte while the fit lasts."""

TARGET_SIZES = {"float64": (1e-150, 1e150), "float32": (1e-15, 1e15)}
"""Targets as large as that can be squared and added up."""


def need_y(name: str, y: Any) -> None:
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")


def check_length(y: np.ndarray, n: int) -> None:
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


def check_label_values(values: np.ndarray, n: int, name: str) -> None:
    if values.ndim == 0:
        check_length(values, n)
    if values.dtype.kind == "f":
        check_finite(values, "y", name)


def kind_of_labels(y: Any) -> str:
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


def class_numbers(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """The place of each label among the classes, in as few bytes as hold it. Labels of rows without weight may be no
    class at all, and get any number."""
    codes = np.empty(len(y), dtype=np.min_scalar_type(len(classes)))
    for start in range(0, len(y), 2**20):
        part = slice(start, start + 2**20)
        codes[part] = np.clip(np.searchsorted(classes, y[part]), 0, len(classes) - 1)
    return codes


def all_classes(name: str, met: np.ndarray, announced: Any = None) -> np.ndarray:
    """The classes there are, and those announced for later."""
    classes = met
    if announced is not None:
        listed = np.unique(np.asarray(plain_labels(announced)))
        classes = one_kind(met, listed)
        if len(classes) > len(listed):
            strange = np.setdiff1d(met, listed).tolist()
            raise ValueError(
                f"y holds {strange[:5]}, which are not among the classes given: list all of them, or none."
            )
    if len(classes) < 2:
        raise ValueError(
            f"{name} needs at least two classes, but y holds one class only "
            f"({classes.tolist()[0]!r}): check the target column."
        )
    if len(classes) > MAX_CLASSES:
        raise ValueError(
            f"y holds {len(classes)} classes, and each needs an output of its own; at most {MAX_CLASSES} are taken. If "
            "y counts or measures something use a regressor, otherwise group rare classes first."
        )
    return classes


def one_kind(known: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """All labels, sorted: numbers or text, not both."""
    if (labels.dtype.kind in "OUS") != (known.dtype.kind in "OUS"):
        raise ValueError(
            f"Labels must be of one kind: there are {known.tolist()[:3]}..., and also {labels.tolist()[:3]}..."
        )
    return np.union1d(known, labels)


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
