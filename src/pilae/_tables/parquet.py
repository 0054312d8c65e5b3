"""Parquet files piece by piece."""

import json
from collections.abc import Iterator
from typing import Any

from .._base.extras import extra
from .._base.sentences import shortened
from .errors import TableError, check_names, reason
from .frames import Frame


def parquet_frames(path: str, rows: int) -> Iterator[Frame]:
    """The rows of a Parquet file as DataFrames of at most so many."""
    import pyarrow

    with parquet_file(path) as file:
        count, most, schema = 0, file.metadata.num_rows, file.schema_arrow
        check_names(schema.names, path)
        labels = _index_columns(schema)
        names = [name for name in schema.names if name not in labels]
        try:
            for batch in file.iter_batches(batch_size=rows):
                count += batch.num_rows
                batch.validate(full=True)  # a damaged offset is found here, and not by a crash
                yield _plain(batch.select(names).replace_schema_metadata(None)).to_pandas()
        except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
            raise TableError(f"{path} cannot be read as Parquet: {reason(error)}.") from error
        if count != most:
            raise TableError(f"{path} says that it has {most:,} rows, but {count:,} can be read: it is damaged.")


def parquet_file(path: str) -> Any:
    """The file, its metadata read."""
    parquet, pyarrow = (extra(name, "parquet", "Reading Parquet") for name in ("pyarrow.parquet", "pyarrow"))
    try:
        return parquet.ParquetFile(path, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise TableError(f"{path} cannot be read as Parquet: {reason(error)}.") from error


def _index_columns(schema: Any) -> set[str]:
    """Columns that pandas wrote as the labels of rows. Nothing else that it may have noted is taken on trust."""
    try:
        noted = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        return {name for name in noted["index_columns"] if isinstance(name, str)}
    except (ValueError, TypeError, LookupError, RecursionError):
        return set()


def _plain(batch: Any) -> Any:
    """The batch with exact decimal numbers as floats and bytes as text: pandas would take them for objects."""
    import pyarrow

    for k, column in enumerate(batch.schema):
        if pyarrow.types.is_decimal(column.type):
            batch = batch.set_column(k, column.name, batch.column(k).cast(pyarrow.float64()))
        elif pyarrow.types.is_binary(column.type) or pyarrow.types.is_large_binary(column.type):
            batch = batch.set_column(k, column.name, batch.column(k).cast(pyarrow.large_string()))
        elif pyarrow.types.is_nested(column.type):
            raise TableError(f"column {shortened(column.name)} holds {column.type}, not one value in each row")
    return batch
