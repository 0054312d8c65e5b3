"""scikit-learn estimators inside a model file: written and read by skops, their types checked by name."""

from __future__ import annotations

import io
import zipfile
from typing import Any

from .._arrays.npy import claimed_array
from .._base.extras import extra
from .archive import bytes_of, check_archive

TRUSTED = (
    "numpy.dtype",
    "skrub._apply_to_each_col.ApplyToEachCol",
    "skrub._check_input.CheckInputDataFrame",
    "skrub._clean_categories.CleanCategories",
    "skrub._clean_null_strings.CleanNullStrings",
    "skrub._dataframe._common.is_any_date",
    "skrub._dataframe._common.is_categorical",
    "skrub._dataframe._common.is_numeric",
    "skrub._datetime_encoder.DatetimeEncoder",
    "skrub._drop_uninformative.DropUninformative",
    "skrub._duration_to_float.DurationToFloat",
    "skrub._string_encoder.StringEncoder",
    "skrub._table_vectorizer.PassThrough",
    "skrub._table_vectorizer.ShortReprDict",
    "skrub._table_vectorizer.TableVectorizer",
    "skrub._table_vectorizer._created_by_predicate",
    "skrub._to_categorical.ToCategorical",
    "skrub._to_datetime.ToDatetime",
    "skrub._to_float.ToFloat",
    "skrub._to_str.ToStr",
    "skrub.selectors._base.All",
    "skrub.selectors._base.And",
    "skrub.selectors._base.Cols",
    "skrub.selectors._base.Filter",
    "skrub.selectors._base.Sub",
    "skrub.selectors._selectors._cardinality_below",
)
"""Types inside estimators that are loaded beside those skops itself knows to be harmless."""

CRASHING = tuple(f'"{name}"'.encode() for name in ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM"))
"""Classes that can bring down the interpreter if their arrays were forged."""


def check_estimator(data: bytes) -> None:
    """Raises on what skops would unpack or allocate beyond all bounds, and on compiled code that trusts its arrays."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_archive(archive, len(data))
        for name in archive.namelist():
            if name == "schema.json" and any(word in bytes_of(archive, name) for word in CRASHING):
                raise ValueError("support vector machines cannot be loaded safely")
            if name.endswith(".npy"):
                member = bytes_of(archive, name)
                claimed_array(io.BytesIO(member), len(member))
            elif name.endswith(".npz"):
                check_estimator(bytes_of(archive, name))


def need_skops(what: str) -> Any:
    return extra("skops.io", "save", what)
