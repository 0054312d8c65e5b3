"""What commands read and write: models, rows and their scores, files that appear whole, words or JSON."""

import contextlib
import io
import json
import math
import os
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from sklearn.base import BaseEstimator

from .. import save
from .._base.files import whole_file
from .._tables.delimited import Format
from .._tables.file_columns import FileColumns
from .._tables.files import Part, TableFile


def csv_format(options: Namespace) -> Format:
    """How the options say that a CSV file is written."""
    if options.decimal is not None and len(options.decimal) != 1:
        raise ValueError(f"--decimal must be one character, not {options.decimal!r}.")
    separator = {"\\t": "\t", " ": r"\s+"}.get(options.separator, options.separator)
    if separator not in (None, r"\s+") and (len(separator) != 1 or not separator.isascii() or separator in '"\r\n\0'):
        raise ValueError(
            f"--separator must be one ASCII character, and no quote or line end, not {options.separator!r} (a space "
            "is any number of spaces and tabs)."
        )
    decimal = options.decimal or "."
    if decimal == separator or decimal.isalnum() or decimal in '+-" \t\r\n\0':
        raise ValueError(f"--decimal {options.decimal!r} cannot be told from a digit, a separator or a quote.")
    return Format(separator, options.encoding, options.decimal)


def opened(options: Namespace, **known: Any) -> TableFile:
    """The table that the options name."""
    return TableFile(options.table, csv_format(options), skip=bad_rows(options), **known)


def bad_rows(options: Namespace) -> int:
    """How many rows or images that cannot be read are left out."""
    if options.skip_bad_rows < 0:
        raise ValueError(f"--skip-bad-rows must be at least 0, not {options.skip_bad_rows}.")
    return options.skip_bad_rows


def search_seconds(options: Namespace) -> float:
    """Seconds after which a fit tries nothing further; its share of rows to hold out is checked too."""
    if not 0 <= options.holdout < 1:
        raise ValueError(f"--holdout must be at least 0 and below 1, not {options.holdout:g}.")
    seconds = math.inf if options.budget is None else options.budget
    if not seconds >= 0:
        raise ValueError(f"--budget must be at least 0 seconds, not {options.budget:g}.")
    return seconds


def names_of(text: str | None) -> list[str]:
    """Names of columns between commas."""
    return [name.strip() for name in text.split(",")] if text else []


def default_output(table: str) -> str:
    """A name for the model of a table, in the folder that one is in."""
    return f"{Path(table).name.split('.')[0] or 'model'}.pilae" if table != "-" else "model.pilae"


def loaded(path: str) -> tuple[BaseEstimator, FileColumns]:
    """The model of a file, and what the columns of its table are."""
    content = save.load_all(path)
    if "table" not in content:
        raise ValueError(
            f"{path!r} holds a model but not what a file's columns are, its target among them: use pilae.load in "
            "Python, or fit it with `pilae fit`."
        )
    return content["model"], content["table"]


def joined(parts: Iterable[Part], *, most_bytes: float = math.inf, enough_rows: float = math.inf) -> Part | None:
    """The parts as one, up to enough rows; None if they are more than so many bytes."""
    collected: list[Part] = []
    rows = size = 0
    for part in parts:
        collected.append(part)
        rows, size = rows + len(part.X), size + int(part.X.memory_usage(index=False).sum())
        if size > most_bytes:
            return None
        if rows >= enough_rows:
            break
    if not collected:
        raise ValueError("The table has no row with a target, those held out aside.")
    if len(collected) == 1:
        return collected[0]
    import pandas as pd

    frames, targets, numbers = zip(*collected, strict=True)
    return Part(pd.concat(frames, ignore_index=True), np.concatenate(targets), np.concatenate(numbers))


# ---------------------------------------------------------------------------------------------------- writing


def remark(sentences: Iterable[str]) -> None:
    """Say what people should know, on standard error, beside the result."""
    for sentence in sentences:
        print(f"pilae: {sentence}", file=sys.stderr)


def tell(options: Namespace, result: dict[str, Any], lines: list[str], output: str | None = None) -> None:
    """The result in words or JSON: on standard output, unless that is where the output itself went."""
    plain = {key: None if isinstance(value, float) and value != value else value for key, value in result.items()}
    print(json.dumps(plain) if options.json else "\n".join(lines), file=sys.stderr if output == "-" else sys.stdout)


def check_output(path: str, read: str | None = None) -> None:
    """Whether a file can be written there, and is not the one that is read."""
    if path == "-":
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(Path(path).parent)!r} to write {path!r} into.")
    if target.is_dir():
        raise IsADirectoryError(f"{path!r} is a folder: name a file in it.")
    if read not in (None, "-") and target == Path(os.path.realpath(str(read))):
        raise ValueError(f"{path!r} would take the place of the file that is read: choose another name.")
    if target.exists() and not target.is_file():
        return  # a device
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise type(error)(f"Cannot write {path!r}: {error.strerror or error}.") from error


@contextlib.contextmanager
def bytes_to(path: str) -> Iterator[str]:
    """A path to write bytes to; what is written to "-" goes to standard output."""
    if path != "-":
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        name = str(Path(folder) / "out")
        yield name
        with open(name, "rb") as file:
            shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def text_to(path: str) -> Iterator[TextIO]:
    """Standard output, or a file that appears when everything is in it."""
    if path == "-":
        yield sys.stdout
        return
    with whole_file(Path(path)) as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        try:
            yield text
        finally:
            text.detach()  # which writes what is left; the file is closed by who opened it
