"""Rows and weights as users pass them: the array to compute with, or the sentence that says what is wrong."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from .. import _arrays
from .._arrays import Array, Space, is_foreign, space_of, to_numpy
from .._base.scalars import is_number
from .._base.sentences import shortened
from .columns import Columns
from .frames import check_numbers, check_own_names, is_frame
from .tables import Coded, Table, is_mixed

TAME = 64
"""Weights up to 2**64 and down to 2**-64 are taken as they come."""


class Read(NamedTuple):
    """X as a 2-D array of its own library, or CSR, its columns, whether it has gaps, and which columns of a table hold
    words that could not be read."""

    X: Any
    columns: Columns
    gaps: bool
    unread: Counter[Any]


def check_X(X: Any, name: str, columns: Columns | None = None, min_rows: int = 1) -> tuple[Array, Columns]:
    """`read_X` of rows that may have gaps if columns are given that know what to do with them."""
    return read_X(X, name, columns, min_rows)[:2]


def read_X(
    X: Any, name: str, columns: Columns | None = None, min_rows: int = 1, *, gaps: bool = False, tables: bool = False
) -> Read:
    """X, with columns that must be those of `fit` where they are given.

    Nothing is copied that is already in order; `name` is the estimator's, for error sentences. With `gaps` X may hold
    NaN, with `tables` it may be a DataFrame of mixed columns; so it may for columns that know what to do with them.
    """
    if isinstance(X, Coded) and columns is not None and X.table is columns.table:
        return Read(X.X, columns, check_finite(X.X, "X", name, gaps=columns.intake is not None), X.unread)
    check_table(X, name)
    X = unmasked(X, "X")
    if is_frame(X):
        check_own_names(X)
    estimator, unread = _estimator(name, columns), Counter[Any]()
    table = columns.table if columns is not None else Table.learnt(X) if tables and is_mixed(X) else None
    if table is not None:
        if not is_frame(X):
            raise ValueError(
                f"This {name} was fitted on a table whose columns are not all numbers: give a DataFrame of the same "
                "columns."
            )
        _check_sizes(X.shape, name, min_rows)
        validate_data(estimator, X, skip_check_array=True, reset=columns is None)
        _, X, unread = table.coded(X)
    elif is_foreign(X):
        X = _foreign(X, name, min_rows)
        validate_data(estimator, X, skip_check_array=True, reset=columns is None)
    else:
        X = _plain(X, estimator, min_rows, reset=columns is None)
    found = check_finite(X, "X", name, gaps=gaps if columns is None else columns.intake is not None)
    columns = columns or Columns(estimator.n_features_in_, getattr(estimator, "feature_names_in_", None), table)
    return Read(X, columns, found, unread)


@cache
def _named(name: str) -> type:
    return type(name, (BaseEstimator,), {})


def _estimator(name: str, columns: Columns | None) -> Any:
    """`validate_data` speaks to an estimator: one of this name that was fitted on these columns."""
    estimator = _named(name)()
    if columns is not None:
        estimator.n_features_in_ = columns.count
        if columns.names is not None:
            estimator.feature_names_in_ = columns.names
    return estimator


def _foreign(X: Array, name: str, min_rows: int) -> Array:
    """X of another library than NumPy."""
    X = _arrays.detached(X)
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead: reshape X to (rows, columns).")
    if not _arrays.is_numeric(X):
        raise ValueError(f"X must hold real numbers, but its dtype is {X.dtype}.")
    _check_sizes(X.shape, name, min_rows)
    return X


def _check_sizes(shape: tuple[int, ...], name: str, min_rows: int) -> None:
    if shape[0] < min_rows:
        rows = "1 sample (row)" if shape[0] == 1 else f"{shape[0]} samples (rows)"
        raise ValueError(f"X has {rows}, and {name} needs at least {min_rows}: give more of them.")
    if shape[1] < 1:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={tuple(shape)}) while a minimum of 1 is required by {name}: give it "
            "columns."
        )


def _plain(X: Array, estimator: BaseEstimator, min_rows: int, *, reset: bool) -> Array:
    """X as an array of NumPy, or CSR."""
    if isinstance(X, scipy.sparse.sparray | scipy.sparse.spmatrix):
        X = _sound_sparse(X)
    if is_frame(X):
        check_numbers(X, type(estimator).__name__)
    if len(getattr(X, "shape", ())) == 2:
        _check_sizes(X.shape, type(estimator).__name__, min_rows)
    form = {"accept_sparse": "csr", "ensure_all_finite": False, "ensure_min_samples": min_rows}
    X = read_array("X", partial(validate_data, estimator, _without_na(X), reset=reset, **form))
    if X.dtype == object:  # several columns of categories that are numbers
        X = read_array("X", partial(X.astype, np.float64))
    if X.dtype.kind not in "biuf":
        raise ValueError(
            f"X must hold real numbers, but its dtype is {X.dtype}: "
            + ("turn dates and times into numbers first." if X.dtype.kind in "mM" else "encode it first.")
        )
    return X


def _without_na(X: Any) -> Any:
    """X with NaN for pandas.NA among objects, which NumPy takes for no number."""
    if isinstance(X, np.ndarray) and X.dtype == object:
        gaps = np.frompyfunc(lambda value: type(value).__name__ == "NAType", 1, 1)(X).astype(bool)
        return np.where(gaps, np.nan, X) if gaps.any() else X
    if hasattr(X, "iloc") and any(isinstance(dtype, np.dtypes.ObjectDType) for dtype in X.dtypes):
        return X.where(X.notna(), np.nan)
    return X


def check_table(X: object, name: str) -> None:
    """What people pass where rows are wanted, and what to pass instead."""
    if isinstance(X, Iterator):
        raise read_once("X")
    if isinstance(X, str | bytes | PathLike):
        reader = "parquet" if str(X).endswith((".parquet", ".pq")) else "csv"
        raise ValueError(
            f"X is text ({shortened(str(X))}), and {name} takes rows: where it is the path of a file, pass "
            f"pilae.scan_{reader}({shortened(str(X))}, target=...), or what pandas.read_{reader} makes of it."
        )
    if isinstance(X, Sequence) or hasattr(X, "__array__") or hasattr(X, "shape"):
        return
    if hasattr(X, "batch_size"):  # torch's DataLoader, and what is like it
        raise ValueError(
            f"X is a {type(X).__name__}, which gives rows in blocks: pass pilae.scan_blocks(X), without a y where the "
            "blocks bring it."
        )
    raise ValueError(
        f"X is a {type(X).__name__}, and {name} takes rows: a 2D array, a DataFrame or a sparse matrix, or what "
        "gives blocks of rows as pilae.scan_blocks(X)."
    )


def _sound_sparse(X: Array) -> Array:
    """X as CSR, its indices within its shape: compiled code does not look, and would read and write elsewhere."""
    try:
        if X.format in ("csr", "csc", "bsr"):
            X.check_format(full_check=True)
        return X if X.format == "csr" else X.tocsr()
    except (ValueError, TypeError, IndexError) as error:
        raise ValueError(f"X is a sparse matrix whose parts do not fit together ({error}): build it again.") from None


def unmasked(x: Array, what: str) -> Array:
    """x without NumPy's mask, if nothing is masked."""
    if not isinstance(x, np.ma.MaskedArray):
        return x
    if np.ma.is_masked(x):
        raise ValueError(
            f"{what} is a masked array with masked entries, which would count as numbers: use {what}.filled(numpy.nan) "
            "and fill them, for example with sklearn.impute.SimpleImputer, or leave those rows out."
        )
    return x.data


def read_array(what: str, read: Callable[[], Array]) -> Array:
    """An array that scikit-learn reads, in a dtype that computing goes on in, or one sentence with a way out."""
    try:
        return _in_float64(read())
    except (ValueError, TypeError, OverflowError) as error:
        raise _in_one_sentence(error, what) from None


def _in_float64(x: Array) -> Array:
    """x itself, but of longer floats only what float64 holds."""
    values = x.data if scipy.sparse.issparse(x) else x
    if values.dtype.kind != "f" or values.dtype.itemsize <= 8:
        return x
    with np.errstate(over="ignore"):
        short = x.astype(np.float64)
    lost = np.isfinite(values) & ~np.isfinite(short.data if scipy.sparse.issparse(x) else short)
    if lost.any():
        raise OverflowError
    return short


READ_ERRORS = {
    "NAType": "{what} contains pandas.NA, which is no number: fill missing values first, for example with "
    "sklearn.impute.SimpleImputer in a Pipeline, or leave those rows out.",
    "not compatible with arrays of bytes/strings": "{what} is an array of text: use {what}.astype(float) where it "
    "holds numbers written out, and encode words first, for example with sklearn.preprocessing.OneHotEncoder.",
    "inhomogeneous shape": "{what} has rows of different lengths: give each as many numbers.",
    "Expected 2D array": "{start} instead. Reshape your data: X.reshape(-1, 1) is one column of many rows, "
    "X.reshape(1, -1) one row.",
    "could not convert string to float": "{what} holds text ({end}), but only numbers can be learnt from: encode it "
    "first, for example with sklearn.preprocessing.OneHotEncoder or skrub.TableVectorizer.",
    "Complex data not supported": "Complex data not supported: give the real and imaginary parts as columns of their "
    "own.",
}
"""What to say instead of the error of scikit-learn that holds these words."""

TEXT_ERRORS = ("not compatible with arrays of bytes/strings", "could not convert string to float")


def text_targets() -> ValueError:
    return ValueError(
        "y holds text, and a regressor predicts numbers: use PILAEClassifier where these are classes, and "
        "numpy.asarray(y, dtype=float) where they are numbers written out."
    )


def _in_one_sentence(error: Exception, what: str) -> Exception:
    if isinstance(error, OverflowError):
        return ValueError(
            f"{what} holds numbers beyond the range of float64 (1.8e308), which computing goes on in: rescale it, for "
            "example by its logarithm."
        )
    text = str(error)
    if what == "y" and any(words in text for words in TEXT_ERRORS):
        return text_targets()
    for words, sentence in READ_ERRORS.items():
        if words in text:
            start, end = text.split(" instead")[0], text.split(":")[-1].strip()
            return ValueError(sentence.format(what=what, start=start, end=end))
    return error


def all_finite(values: Array) -> bool:
    """Whether no number is NaN or infinite."""
    xp = space_of(values).xp
    if not xp.isdtype(values.dtype, "real floating"):
        return True
    with np.errstate(over="ignore", invalid="ignore"):
        # one reduction without a temporary; only a bad or overflowing sum earns the closer look
        return math.isfinite(float(xp.sum(values))) or bool(xp.all(xp.isfinite(values)))


def has_gaps(X: Array) -> bool:
    """Whether any number is NaN."""
    values = X.data if scipy.sparse.issparse(X) else X
    return not all_finite(values) and bool(space_of(values).xp.any(space_of(values).xp.isnan(values)))


def check_finite(X: Array, what: str, name: str, *, gaps: bool = False) -> bool:
    """Finite numbers, or gaps where these are taken; whether there are any."""
    values = X.data if scipy.sparse.issparse(X) else X
    if all_finite(values):
        return False
    xp = space_of(values).xp
    if gaps and not bool(xp.any(xp.isinf(values))):
        return True
    nan = not gaps and bool(xp.any(xp.isnan(values)))
    fill = "fill missing values first" if nan else "replace it by NaN and fill it"
    imputed = f"{fill}, for example with sklearn.impute.SimpleImputer in a Pipeline"
    imputed = "replace it by NaN where it stands for a missing value" if gaps else imputed
    cure = "leave those rows out" if what == "y" else imputed
    raise ValueError(f"{what} contains {'NaN' if nan else 'infinity'}, which {name} does not take: {cure}.")


def check_same_space(name: str, method: str, X: Array, fitted: Space) -> None:
    """A model without a `device` lives where it was fitted."""
    here = space_of(X)
    if here != fitted:
        raise ValueError(
            f"Inputs passed to {name}.{method}() must use the same namespace and the same device as "
            f"those passed to fit(): X lives in {here.describe()}, the model in {fitted.describe()}; pass "
            f"{fitted.recipe()}, or fit again on arrays of X's kind."
        )


def tamed_weight(sample_weight: ArrayLike | None, n: int) -> tuple[np.ndarray | None, int]:
    """Sample weights of a fit, where only ratios matter, except that a weight of 3 is three rows: ordinary ones are
    kept, absurdly large or small ones divided by a power of two, which is the second value."""
    w = check_weight(sample_weight, n)
    exponent = 0 if w is None else int(np.frexp(w.max())[1])
    return (w, 0) if abs(exponent) < TAME else (scaled_weight(w, n, exponent), exponent)


def scaled_weight(w: np.ndarray | None, n: int, exponent: int) -> np.ndarray | None:
    """Weights of rows that join those of a fit, divided by the same power of two."""
    return w if exponent == 0 else np.ldexp(np.ones(n) if w is None else w, -exponent)


def check_weight(sample_weight: ArrayLike | None, n: int) -> np.ndarray | None:
    """Sample weights as float64 in NumPy; None stays None (all ones)."""
    if sample_weight is None:
        return None
    if is_number(sample_weight):
        sample_weight = np.full(n, sample_weight, dtype=np.float64)
    odd = ValueError("'sample_weight' must hold finite numbers of at least 0, but it has others.")
    try:
        w = np.asarray(to_numpy(unmasked(sample_weight, "sample_weight")), dtype=np.float64)
    except (ValueError, TypeError, OverflowError) as error:
        raise odd from error
    if w.ndim != 1 or w.shape[0] != n:
        raise ValueError(f"'sample_weight' must be one number a row: expected shape ({n},), got {w.shape}.")
    if not np.all(np.isfinite(w)) or np.any(w < 0):
        raise odd
    if not np.any(w > 0):
        raise ValueError("'sample_weight' is zero on every row: at least one row must count.")
    return w


def read_once(what: str) -> ValueError:
    return ValueError(
        f"{what} is a generator or another iterator, which can be read only once, and fitting reads the rows several "
        "times: pass pilae.scan_blocks(f), where f is the function that makes a new one."
    )


PIXELS = {"float64": 1e60, "float32": 1e12}
"""Pixels may be so large, and in `fit` the largest as small as the inverse: squares of their sums are made of them."""


def check_pixels(X: Array, dtype: str, *, fit: bool = False) -> None:
    """Images whose largest number can be squared."""
    xp, high = space_of(X).xp, PIXELS[dtype]
    largest = max(abs(float(xp.min(X))), abs(float(xp.max(X))))
    if largest > high or (fit and 0 < largest < 1 / high):
        raise ValueError(
            f"The largest pixel is {largest:.0e}, and images are taken in {dtype} from {1 / high:.0e} to {high:.0e}: "
            "divide them by a unit, for example by numpy.abs(X).max()."
        )


def check_answer(part: Array) -> None:
    """Outputs that are numbers: rows far beyond those of `fit` can overflow on their way."""
    if not all_finite(part):
        raise ValueError(
            "X holds numbers so far beyond those of fit that what is made of them overflows: bring them to the units "
            "of the training rows, or leave those rows out."
        )
