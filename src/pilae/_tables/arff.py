"""ARFF files: attributes, then rows."""

import functools
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TextIO

import numpy as np

from .._base.sentences import listed, shortened
from .cells import LONGEST_LINE
from .errors import TableError, check_names, reason
from .frames import Frame

ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^\s{}'"]\S*))\s*(\S.*)""", re.IGNORECASE | re.DOTALL
)

ITEM = re.compile(r"""\s*(?:'((?:[^'\\]|\\.)*+)'|"((?:[^"\\]|\\.)*+)"|([^'",\t][^,\t]*)?)\s*([,\t]|\Z)""", re.DOTALL)

JAVA_DATES = {"yyyy": "%Y", "yy": "%y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}

BATCH_ROWS = 10_000

TEXT = functools.partial(np.array, dtype=object)

Words = Sequence[str | None]
"""Cells as they are written, None for a gap."""


Attribute = tuple[str, Callable[[Words], np.ndarray]]
"""A name, and what makes an array of the words of the column."""


def read_arff(path: str) -> Frame:
    """An ARFF file, whole: numbers, nominal values, text and dates.

    Not scipy's reader, which drops the cells of rows that are too long, reads "1?2" as a gap, and builds patterns from
    names in the file.
    """
    import pandas as pd

    with open(path, encoding="utf-8-sig") as file:
        try:
            lines = _numbered(file)
            attributes = _header(lines)
            names = [name for name, _ in attributes]
            check_names(names, "it")
            rows = (_row(line, len(attributes), number) for number, line in lines)
            batches = iter(lambda: list(itertools.islice(rows, BATCH_ROWS)), [])
            parts = [_arrays([], attributes), *(_arrays(batch, attributes) for batch in batches)]
        except UnicodeDecodeError as error:
            raise TableError(f"{path} cannot be read as ARFF: it is not written in UTF-8.") from error
        except ValueError as error:
            raise TableError(f"{path} cannot be read as ARFF: {reason(error)}.") from error
    return pd.DataFrame(dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True)))


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


def _header(lines: Iterator[tuple[int, str]]) -> list[Attribute]:
    attributes: list[Attribute] = []
    for number, line in lines:
        word = line.split(None, 1)[0].lower()
        if word == "@data":
            if not attributes:
                raise ValueError("it has no attributes")
            return attributes
        if word == "@relation":
            continue
        match = ATTRIBUTE.fullmatch(line)
        if match is None:
            raise ValueError(f"line {number} is {shortened(line)}, where @attribute NAME TYPE was expected")
        single, double, bare, kind = match.groups()
        name = bare or _unescaped(single or double or "")
        attributes.append((name.strip(), _array_maker(kind, number)))
    raise ValueError("it has no @data")


def _array_maker(kind: str, number: int) -> Callable[[Words], np.ndarray]:
    word, _, rest = kind.partition(" ")
    if word.lower() in ("numeric", "real", "integer"):
        return _numbers
    if word.lower() == "string":
        return TEXT
    if word.lower().split("\t")[0] == "date":
        return _dates(rest.strip() or "yyyy-MM-dd'T'HH:mm:ss", number)
    if kind.startswith("{") and kind.endswith("}"):
        values = frozenset(word for word in _words(kind[1:-1].strip(), number) if word is not None)
        return lambda words: _nominal(words, values)
    raise ValueError(
        f"line {number} is of type {shortened(kind)}, and numeric, nominal, date and string attributes are read"
    )


def _row(line: str, columns: int, number: int) -> Words:
    if line[0] == "{":
        raise ValueError(f"line {number} is sparse ({{index value, ...}}), which is not read")
    words = _words(line, number)
    if len(words) != columns:
        raise ValueError(f"line {number} has {len(words)} values, but there are {columns} attributes")
    return words


def _words(line: str, number: int) -> Words:
    """What stands between the commas (tabs, where there is none); None for a question mark."""
    if "'" not in line and '"' not in line:
        return [_bare(word) for word in line.split("," if "," in line else "\t")]
    words: list[str | None] = []
    at, end = 0, ","
    while end:
        match = ITEM.match(line, at)
        if match is None:
            raise ValueError(f"line {number} has an unclosed quote, or text beside one, near {shortened(line[at:])}")
        single, double, bare, end = match.groups()
        quoted = single if double is None else double
        words.append(_bare(bare or "") if quoted is None else _unescaped(quoted))
        at = match.end()
    return words


def _bare(word: str) -> str | None:
    word = word.strip()
    return None if word == "?" else word


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def _arrays(rows: list[Words], attributes: list[Attribute]) -> list[np.ndarray]:
    columns = zip(*rows, strict=True) if rows else [()] * len(attributes)
    arrays = []
    for (name, array), words in zip(attributes, columns, strict=True):
        try:
            arrays.append(array(words))
        except (ValueError, OverflowError) as error:
            raise ValueError(f"attribute {shortened(name)}: {reason(error)}") from error
    return arrays


def _numbers(words: Words) -> np.ndarray:
    for word in words:
        if word is not None and "_" in word:  # which Python's numbers may have
            raise ValueError(f"{shortened(word)} is no number")
    return np.array([math.nan if word is None else float(word) for word in words], dtype=np.float64)


def _nominal(words: Words, values: frozenset[str]) -> np.ndarray:
    for word in words:
        if word is not None and word not in values:
            raise ValueError(f"{shortened(word)} is not among its values {listed(sorted(values))}")
    return TEXT(words)


def _dates(pattern: str, number: int) -> Callable[[Words], np.ndarray]:
    import pandas as pd

    written = pattern.strip("\"'") if pattern[0] == pattern[-1] else pattern
    literal = re.sub("|".join(JAVA_DATES), lambda match: JAVA_DATES[match[0]], written.replace("%", "%%"))
    if re.search(r"(?<!%)[A-SU-Za-z]", literal) or "%" not in literal:  # T stands between days and hours
        raise ValueError(f"line {number} has the date format {shortened(written)}: use yyyy, MM, dd, HH, mm and ss")
    plain = literal.replace("'", "")
    return lambda words: pd.to_datetime(pd.Series(words, dtype=object), format=plain).to_numpy(dtype="M8[s]")
