"""ARFF files: attributes, then rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, TextIO

import numpy as np

from .cells import LONGEST_LINE
from .errors import TableError, check_names, listed, said, shortened

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s{}'"]\S*))\s*(\S.*)""", re.IGNORECASE | re.DOTALL
)

ITEM = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^'",\t][^,\t]*)?)\s*([,\t]|\Z)""", re.DOTALL)

JAVA_DATES = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def read_arff(path: str) -> Any:
    """An ARFF file, whole: numbers, nominal values, text and dates.

    Not scipy's reader, which drops the cells of rows that are too long, reads "1?2" as a gap, and builds patterns from
    names in the file.
    """
    import pandas as pd

    parts: list[list[Any]] = []
    with open(path, encoding="utf-8-sig") as file:
        try:
            lines = _numbered(file)
            attributes = _arff_header(lines)
            check_names([name for name, _ in attributes], "it")
            rows: list[list[str | None]] = []
            for number, line in lines:
                rows.append(_arff_row(line, len(attributes), number))
                if len(rows) == 10_000:
                    parts.append(_arff_columns(rows, attributes))
                    rows = []
            parts.append(_arff_columns(rows, attributes))
        except UnicodeDecodeError as error:
            raise TableError(f"{path} cannot be read as ARFF: it is not written in UTF-8.") from error
        except ValueError as error:
            raise TableError(f"{path} cannot be read as ARFF: {said(error)}.") from error
    return pd.DataFrame(
        {name: np.concatenate(column) for (name, _), column in zip(attributes, zip(*parts, strict=True), strict=True)}
    )


def _numbered(file: TextIO) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments, with their numbers."""
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE), ""), 1):
        if len(line) == LONGEST_LINE:
            raise ValueError(f"line {number} has more than {LONGEST_LINE:,} characters")
        if "\0" in line:
            raise ValueError(f"line {number} holds NUL characters")
        line = line.strip()
        if line and not line.startswith("%"):
            yield number, line


def _arff_header(lines: Iterator[tuple[int, str]]) -> list[tuple[str, Any]]:
    """Names, and what turns the words of a column into an array."""
    found: list[tuple[str, Any]] = []
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if not found:
                raise ValueError("it has no attributes")
            return found
        if word == "@relation":
            continue
        match = ATTRIBUTE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is {shortened(line)}, where @attribute NAME TYPE was expected")
        single, double, bare, kind = match.groups()
        name = bare if bare is not None else _unescaped(single if single is not None else double)
        found.append((name.strip(), _arff_kind(kind, number)))
    raise ValueError("it has no @data")


def _arff_kind(kind: str, number: int) -> Any:
    word, _, rest = kind.partition(" ")
    if word.lower() in ("numeric", "real", "integer"):
        return _arff_numbers
    if word.lower() == "string":
        return _arff_text
    if word.lower().split("\t")[0] == "date":
        return _arff_dates(rest.strip() or "yyyy-MM-dd'T'HH:mm:ss", number)
    if kind.startswith("{") and kind.endswith("}"):
        values = frozenset(word for word in _arff_words(kind[1:-1].strip(), number) if word is not None)
        return lambda words: _arff_nominal(words, values)
    raise ValueError(
        f"line {number} is of type {shortened(kind)}, and numeric, nominal, date and string attributes are read"
    )


def _arff_row(line: str, columns: int, number: int) -> list[str | None]:
    if line[0] == "{":
        raise ValueError(f"line {number} is sparse ({{index value, ...}}), which is not read")
    words = _arff_words(line, number)
    if len(words) != columns:
        raise ValueError(f"line {number} has {len(words)} values, but there are {columns} attributes")
    return words


def _arff_words(line: str, number: int) -> list[str | None]:
    """What stands between the commas (tabs, where there is none); None for a question mark."""
    if "'" not in line and '"' not in line:
        return [None if word == "?" else word for word in map(str.strip, line.split("," if "," in line else "\t"))]
    words: list[str | None] = []
    at, more = 0, True
    while more:
        match = ITEM.match(line, at)
        if match is None:
            raise ValueError(f"line {number} has an unclosed quote, or text beside one, near {shortened(line[at:])}")
        single, double, bare, end = match.groups()
        if single is None and double is None:
            word = (bare or "").strip()
            words.append(None if word == "?" else word)
        else:
            words.append(_unescaped(single if single is not None else double))
        at, more = match.end(), end != ""
    return words


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _arff_columns(rows: list[list[str | None]], attributes: list[tuple[str, Any]]) -> list[np.ndarray]:
    columns = zip(*rows, strict=True) if rows else [()] * len(attributes)
    arrays = []
    for (name, convert), words in zip(attributes, columns, strict=True):
        try:
            arrays.append(convert(words))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"attribute {shortened(name)}: {said(error)}") from error
    return arrays


def _arff_numbers(words: tuple[str | None, ...]) -> np.ndarray:
    for word in words:
        if word is not None and "_" in word:  # which Python's numbers may have
            raise ValueError(f"{shortened(word)} is no number")
    return np.array([math.nan if word is None else float(word) for word in words], dtype=np.float64)


def _arff_text(words: tuple[str | None, ...]) -> np.ndarray:
    found = np.empty(len(words), dtype=object)
    found[:] = words
    return found


def _arff_nominal(words: tuple[str | None, ...], values: frozenset[str]) -> np.ndarray:
    for word in words:
        if word is not None and word not in values:
            raise ValueError(f"{shortened(word)} is not among its values {listed(sorted(values))}")
    return _arff_text(words)


def _arff_dates(pattern: str, number: int) -> Any:
    import pandas as pd

    written = pattern.strip("\"'") if pattern[0] == pattern[-1] else pattern
    literal = re.sub("|".join(JAVA_DATES), lambda match: JAVA_DATES[match[0]], written.replace("%", "%%"))
    if re.search(r"(?<!%)[A-SU-Za-z]", literal) or "%" not in literal:  # T stands between days and hours
        raise ValueError(f"line {number} has the date format {shortened(written)}: use yyyy, MM, dd, HH, mm and ss")
    plain = literal.replace("'", "")
    return lambda words: pd.to_datetime(pd.Series(words, dtype=object), format=plain).to_numpy(dtype="M8[s]")
