"""JSON files and spreadsheets as tables, read at once."""

import json
import os
import zipfile
from typing import Any

from .._base.sentences import shortened
from ..save.archive import check_archive
from .errors import TableError, check_names, reason
from .frames import Frame


def read_json(path: str) -> Frame:
    """A list of objects, one for each row; or one object with a list, or an object of rows, for each column."""
    return _framed(path, _decoded(path, lines=False))


def read_json_lines(path: str) -> Frame:
    """An object on every line."""
    return _framed(path, _decoded(path, lines=True))


def read_excel(path: str) -> Frame:
    """The first sheet of a workbook, its first row the names of the columns."""
    import pandas as pd

    try:
        with zipfile.ZipFile(path) as archive:
            check_archive(archive, os.path.getsize(path))  # what is packed to fill memory is refused
        frame = pd.read_excel(path, engine="openpyxl")
    except ImportError:
        raise ImportError("Reading spreadsheets needs openpyxl: pip install openpyxl.") from None
    except (MemoryError, OSError):
        raise
    except Exception as error:  # of zipfile, of its XML or of openpyxl, which have no class in common
        raise TableError(f"{path} cannot be read as a spreadsheet: {reason(error)}.") from error
    return _checked(path, frame)


def _decoded(path: str, *, lines: bool) -> Any:
    try:
        with open(path, encoding="utf-8-sig") as file:
            return [json.loads(line) for line in file if line.strip()] if lines else json.load(file)
    except (ValueError, RecursionError) as error:  # a letter that is no UTF-8 is a ValueError too
        raise TableError(f"{path} cannot be read as JSON: {reason(error)}.") from error


def _framed(path: str, found: Any) -> Frame:
    import pandas as pd

    if isinstance(found, dict) and found and all(isinstance(column, dict) for column in found.values()):
        labels = [*dict.fromkeys(label for column in found.values() for label in column)]  # as DataFrame.to_json has it
        found = {name: [column.get(label) for label in labels] for name, column in found.items()}
    rows = isinstance(found, list) and all(isinstance(row, dict) for row in found)
    columns = isinstance(found, dict) and all(isinstance(column, list) for column in found.values())
    if not (rows or columns) or (columns and len({len(column) for column in found.values()}) > 1):
        raise TableError(
            f"{path} is no table: expected a list of objects, one for each row, or one object with a list for each "
            "column, all of one length."
        )
    try:
        return _checked(path, pd.DataFrame(found))
    except OverflowError as error:
        raise TableError(f"{path} cannot be read as a table: {reason(error)}.") from error


def _checked(path: str, frame: Frame) -> Frame:
    """With names and cells that a table can have."""
    frame.columns = [str(name).strip() for name in frame.columns]
    check_names(list(frame.columns), path)
    for name in (name for name in frame.columns if frame[name].dtype.kind == "O"):
        for row, value in enumerate(frame[name], 1):
            if isinstance(value, (list, dict)):
                raise TableError(
                    f"Column {shortened(name)} of {path} holds a {type(value).__name__} in row {row}, not one value in "
                    "each row."
                )
    return frame
