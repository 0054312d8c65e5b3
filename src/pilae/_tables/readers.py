"""The cells of a table's file, or a sentence: CSV, Parquet, ARFF and npz files that may be damaged or hostile.

Whatever is wrong with a file is a ValueError of one sentence. A row that is not as long as the header is an error and
never filled up, cut or shifted; nothing larger than the file's own bytes warrant is put into memory; no code in a file
is run.
"""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TextIO

import numpy as np

from .._arrays.npy import claimed_array
from .._base.extras import extra

MOST_COLUMNS = 100_000
LONGEST_LINE = 16 * 2**20
"""Characters of a line or a quoted cell."""

NPZ_KINDS = "biufSUM"
"""Kinds of NumPy arrays that are columns: truth values, numbers, text, dates."""


class TableError(ValueError):
    """What is wrong with a file, in one sentence."""


def listed(names: list[str]) -> str:
    """The first names, in an error sentence."""
    shown = ", ".join(shortened(name) for name in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")


def shortened(text: Any) -> str:
    """What a file says, in quotes, not longer than a sentence bears."""
    text = str(text)
    return repr(text if len(text) <= 60 else text[:57] + "...")


def check_names(names: list[str], where: str) -> None:
    """Columns are found by their names, so each needs one of its own."""
    if len(names) > MOST_COLUMNS:
        raise TableError(f"{where} has {len(names):,} columns: at most {MOST_COLUMNS:,} are read.")
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise TableError(f"{where} has two columns {shortened(name)}: give every column a name of its own.")
        seen.add(name)


def said(error: BaseException) -> str:
    """The first line of what a library says, as a part of a sentence."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"\b\w*(Exception|Error): | at 0x[0-9a-f]+", "", lines[0]).rstrip(".: ") if lines else "it is damaged"
    return text if len(text) <= 200 else text[:197] + "..."


# ----------------------------------------------------------------------------------------------------------- CSV


class Damage(io.RawIOBase):
    """Bytes of a compressed file: whatever its decompressor raises means that it is damaged."""

    def __init__(self, file: Any, name: str) -> None:
        self._file, self._name = file, name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._file.read(len(buffer))
        except Exception as error:  # of zlib, bz2, lzma, zipfile, tarfile or zstd, which have no class in common
            raise TableError(f"{self._name} cannot be decompressed: {said(error)}.") from error
        buffer[: len(data)] = data
        return len(data)


class Cells:
    """The text of a CSV file on its way to pandas, which would fill up short rows without a word: cells are counted.

    Parameters
    ----------
    file : text file, its line ends not translated
    separator : str
        One character; r"\\s+" is runs of spaces and tabs.
    name : str
        Of the file, for sentences.
    """

    def __init__(self, file: TextIO, separator: str, name: str) -> None:
        self._file, self._separator, self._name = file, separator, name
        marks = " \t" if separator == r"\s+" else re.escape(separator)
        blanks = "" if separator == r"\s+" else " *"  # where blanks separate, each of them could begin a cell
        start = rf'(?<![^{marks}\r\n]){blanks}"'
        # as pandas sees it: quotes count at the start of a cell; one that is still open at the end is closed later
        self._quoted = re.compile(rf'{start}[^"]*+(?:""[^"]*+)*+(?:"(?= *(?:[{marks}\r\n]|\Z))|\Z)')
        self._opening = re.compile(start)
        self._between = re.compile(r"(?<=\S)[ \t]+(?=\S)")
        self._line: list[str] = []
        self._start = self._length = self._separators = 0
        self._open = False
        self._taken: list[str] = []
        self.names = self._header()
        check_names(self.names, name)

    def _header(self) -> list[str]:
        """The first row; pandas gets to see it again.

        The second must be as long: were it longer, pandas would take its first cells for the label of the row, and let
        all other rows be as long as it.
        """
        with _long_cells():
            first = [*itertools.islice(self._rows(iter(self._first_lines, "")), 2)]
        if len(first) == 2 and len(first[0]) != len(first[1]):
            raise self._uneven("row 1", str(len(first[1])), len(first[0]))
        names = [name.strip() for name in first[0]] if first else []
        return [name or f"Unnamed: {k}" for k, name in enumerate(names)]

    def _first_lines(self) -> str:
        line = self._file.readline(LONGEST_LINE)
        if not self._taken:
            line = line.removeprefix("\ufeff")  # which some encodings leave there
        self._taken.append(line)
        self._start += len(line)
        if self._start >= LONGEST_LINE:
            raise self._too_long()
        return line

    def __iter__(self) -> Iterator[str]:
        """For pandas, which takes files to be what can be iterated over."""
        return iter(lambda: self.read(2**18), "")

    def read(self, size: int = -1) -> str:
        if self._taken:
            text, self._taken = "".join(self._taken), []
        else:
            text = self._file.read(size)
        self._add(text)
        return text

    def _add(self, text: str) -> None:
        if "\0" in text:
            raise TableError(
                f"{self._name} holds NUL characters, which text does not: if it is UTF-16, say so with "
                "--encoding utf-16, else it is damaged."
            )
        cut = max(text.rfind("\n"), text.rfind("\r")) + 1 if text else 0
        self._line.append(text[:cut] if cut else text)
        self._length += len(self._line[-1])
        if self._length > LONGEST_LINE and not cut:
            raise self._too_long()
        if text and not cut:
            return
        whole = "".join(self._line)
        self._line, tail = [text[cut:]], len(text) - cut
        outside = self._outside(whole)
        self._length = self._length + tail if self._open else tail
        if self._length > LONGEST_LINE and self._open:
            raise self._too_long()
        blanks = self._separator == r"\s+"
        self._separators += len(self._between.findall(outside)) if blanks else outside.count(self._separator)

    def _outside(self, text: str) -> str:
        """Whole lines without their quoted cells."""
        if '"' not in text and not self._open:
            return text
        text = '"' + text if self._open else text
        rest = self._quoted.sub("x", text)
        stray = self._opening.search(rest)
        if stray:
            near = rest[stray.start() : stray.start() + 30].strip()
            raise TableError(
                f"{self._name} has a quoted cell with text after its closing quote, near {near!r}: double the quotes "
                'inside quoted cells (""), and close every one.'
            )
        self._open = (text.count('"') - rest.count('"')) % 2 == 1
        return rest

    def check(self, rows: int, again: Callable[[], Any]) -> None:
        """Raise if one of the rows that pandas has read was shorter than the header; it has refused longer ones.

        `again` opens the file once more, to say which row it is.
        """
        if self._separators == (len(self.names) - 1) * (rows + 1):
            return
        where, count = "a row", "fewer"
        with again() as file, _long_cells():
            for number, row in enumerate(self._rows(file)):
                if len(row) != len(self.names):
                    where, count = f"row {number}", str(len(row))
                    break
        raise self._uneven(where, count, len(self.names))

    def _uneven(self, where: str, count: str, columns: int) -> TableError:
        return TableError(
            f"{self._name}: {where} has {count} cells, but the header names {columns} columns: every row needs a cell "
            "for each, empty where nothing is known."
        )

    def _rows(self, lines: Iterable[str]) -> Iterator[list[str]]:
        """The rows that are not blank, slowly."""
        if self._separator == r"\s+":
            yield from filter(None, map(str.split, lines))
            return
        try:
            for row in csv.reader(lines, delimiter=self._separator, skipinitialspace=True):
                if row and row != [""]:
                    yield row
        except csv.Error as error:
            raise TableError(f"{self._name} cannot be read as a table: {said(error)}.") from error

    def _too_long(self) -> TableError:
        return TableError(
            f"{self._name} has a line or quoted cell of more than {LONGEST_LINE:,} characters: is a quote never closed?"
        )


@contextlib.contextmanager
def _long_cells() -> Iterator[None]:
    """Python's csv takes cells of 128 KiB; this is set for the whole process, so it is set back."""
    before = csv.field_size_limit(LONGEST_LINE)
    try:
        yield
    finally:
        csv.field_size_limit(before)


# ------------------------------------------------------------------------------------------------------- Parquet


def parquet_frames(path: str, rows: int) -> Iterator[Any]:
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
            raise TableError(f"{path} cannot be read as Parquet: {said(error)}.") from error
        if count != most:
            raise TableError(f"{path} says that it has {most:,} rows, but {count:,} can be read: it is damaged.")


def parquet_file(path: str) -> Any:
    """The file, its metadata read."""
    parquet, pyarrow = (extra(name, "parquet", "Reading Parquet") for name in ("pyarrow.parquet", "pyarrow"))
    try:
        return parquet.ParquetFile(path, page_checksum_verification=True)
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, LookupError, OverflowError) as error:
        raise TableError(f"{path} cannot be read as Parquet: {said(error)}.") from error


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


# ---------------------------------------------------------------------------------------------------------- ARFF

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


# ----------------------------------------------------------------------------------------------------------- npz


def read_npz(path: str) -> Any:
    """Arrays X and y (or X_train and y_train), or one array for each column."""
    import pandas as pd

    arrays = _npz_arrays(path)
    if "X" not in arrays and "X_train" in arrays:
        arrays = {name.removesuffix("_train"): value for name, value in arrays.items() if name.endswith("_train")}
    if "X" in arrays:
        X = arrays.pop("X")
        if not X.ndim or not X.size:
            raise TableError(f"X of {path} has the shape {X.shape}: expected rows x columns, at least one of each.")
        X = X.reshape(len(X), -1)
        named = arrays.pop("feature_names", None)
        names = [f"x{k}" for k in range(X.shape[1])] if named is None else [str(name) for name in named.ravel()]
        if len(names) != X.shape[1]:
            raise TableError(f"{path} has {X.shape[1]} columns in X, but {len(names)} feature_names.")
        targets = {name: column for name, column in arrays.items() if column.shape == (len(X),)}
        check_names([*names, *targets], path)
        return pd.concat([_framed(path, X, columns=names), _framed(path, targets)], axis=1)
    if len({column.shape for column in arrays.values()}) != 1 or next(iter(arrays.values())).ndim != 1:
        raise TableError(
            f"{path} holds {listed(list(arrays)) or 'nothing'}: expected X (rows x columns) and targets, or one array "
            "for each column, all of one length."
        )
    check_names(list(arrays), path)
    return _framed(path, arrays)


def _framed(path: str, arrays: Any, columns: list[str] | None = None) -> Any:
    import pandas as pd

    try:
        return pd.DataFrame(arrays, columns=columns)
    except (ValueError, TypeError) as error:  # dates without a unit, or that are out of range
        raise TableError(f"{path} cannot be read as a table: {said(error)}.") from error


def _npz_arrays(path: str) -> dict[str, np.ndarray]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            check_names([member.filename.removesuffix(".npy") for member in members], "it")
            needed, there = sum(member.file_size for member in members), _memory()
            if needed > there:
                raise ValueError(
                    f"its arrays take {needed / 2**30:,.1f} GiB and are read at once, but this machine has "
                    f"{there / 2**30:,.1f} GiB: write a table of this size as Parquet or CSV"
                )
            return {member.filename.removesuffix(".npy"): _npy(archive, member) for member in members}
    except MemoryError:
        raise
    except Exception as error:  # of zipfile, zlib, bz2, lzma, struct and tokenize, which have no class in common
        raise TableError(f"{path} cannot be read as an npz file: {said(error)}.") from error


def _memory() -> float:
    """Bytes that this machine has; no limit where the system does not say (Windows)."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _npy(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> np.ndarray:
    """One array, if it is as large as it says; memory is taken only then."""
    file: Any
    with archive.open(member) as file:
        try:
            shape, fortran, dtype = claimed_array(file, member.file_size)
        except Exception as error:  # NumPy's parser of headers raises many
            raise ValueError(f"{shortened(member.filename)}: {error}") from error
        size = math.prod(shape) * dtype.itemsize
        if dtype.kind not in NPZ_KINDS or not dtype.itemsize:
            raise ValueError(f"{shortened(member.filename)} holds {dtype}, not numbers, text or dates")
        data, there = np.empty(size, dtype=np.uint8), 0
        while there < size:  # never more than that, whatever the archive would unpack
            count = file.readinto(data[there : there + 2**20].data)
            if not count:
                raise ValueError(f"{shortened(member.filename)} is not as long as its shape {shape} says")
            there += count
    found = data.view(dtype).reshape(shape, order="F" if fortran else "C")
    return _native(found.astype(dtype.newbyteorder("="), copy=False), member.filename)


def _native(array: np.ndarray, name: str) -> np.ndarray:
    """The array as pandas takes it. Bits that are neither truth values nor characters are an error."""
    kind, size = array.dtype.kind, array.dtype.itemsize
    if kind == "S":
        return np.char.decode(array, "utf-8")
    if kind == "f" and size not in (4, 8):
        return array.astype(np.float32 if size < 4 else np.float64)
    if kind == "b" and array.view(np.uint8).max(initial=0) > 1:
        raise ValueError(f"{shortened(name)} holds bytes that are no truth values")
    if kind == "U":
        codes = np.ascontiguousarray(array).reshape(-1).view(np.uint32)
        if ((codes > 0x10FFFF) | ((codes >= 0xD800) & (codes < 0xE000))).any():
            raise ValueError(f"{shortened(name)} holds characters that do not exist")
    return array
