"""CSV files: cells as text through pyarrow's reader, then as numbers in columns that hold them."""

import contextlib
import csv
import io
import re
import sys
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TextIO

import numpy as np

from .._base.extras import extra
from .._base.sentences import shortened
from .._data.tables import SAMPLE_ROWS
from .._data.written import NumberFormat
from .cells import BLANKS, Cells
from .errors import Decompressed, TableError, reason
from .file_columns import FileColumns
from .frames import Frame
from .words import MISSING, UNKNOWN, Parsed, all_of_one_format, cleaned, holds_numbers, of_format, parsed

BLOCK_BYTES = 2**24
"""Read at once; a line must fit into it."""

KEPT_BYTES = 2**26
"""A file whose cells take no more than this is read once."""

START_BYTES = 2**16
"""Separator, encoding and decimal point are found from so many."""

FIRST_LOOK = 1000
"""Rows after which a column that is mostly words is text."""


class Format(NamedTuple):
    """How a CSV file is written; None is found from the file."""

    separator: str | None = None
    encoding: str | None = None
    decimal: str | None = None


class Dialect(NamedTuple):
    """How a CSV file is written, as given or found."""

    separator: str
    encoding: str
    decimal: str


class Columns(NamedTuple):
    """Which columns hold numbers, and which words count as gaps in them."""

    numeric: set[str]
    gap_words: dict[str, list[str]]
    target: NumberFormat | None = None
    """How the numbers of the target are written, where it is not as numbers are mostly."""


class Delimited:
    """A CSV file, as DataFrames of at most so many rows, as often as one likes.

    Parameters
    ----------
    path : str
        "-" is standard input.
    written : Format
    target : str, optional
        If it holds classes, words like "None" and "NA" are classes too.
    task : str, optional
        What the target is asked for.
    known : FileColumns, optional
        What the columns are is known from it: nothing has to be looked at first, and standard input is streamed.
    skip : int, default=0
        Rows with too many or too few cells that are left out, at most.
    """

    def __init__(
        self,
        path: str,
        written: Format,
        *,
        target: str | None = None,
        task: str | None = None,
        known: FileColumns | None = None,
        skip: int = 0,
    ) -> None:
        self.path, self.name = path, "standard input" if path == "-" else path
        self.written, self.target, self.task, self.known = written, target, task, known
        self.skip, self._skipped = skip, 0
        self._stdin: bytes | None = None
        self._kept: list[Any] | None = None
        self.remarks: list[str] = []
        """What people should know about how the file was read."""
        self._arrow, self._reader = (extra(name, "table", "Reading CSV files") for name in ("pyarrow", "pyarrow.csv"))

    def frames(self, rows: int) -> Iterator[Frame]:
        if self.path == "-" and self._stdin is None and self.known is None:
            self._stdin = sys.stdin.buffer.read()
        try:
            columns, start = self.columns, 0
            for batch in self._batches():
                for first in range(0, max(1, batch.num_rows), rows):
                    part = batch.slice(first, rows)
                    yield self._frame(part, columns, start)
                    start += part.num_rows
        except TableError:
            raise
        except UnicodeDecodeError as error:
            raise TableError(
                f"{self.name} is not written in {error.encoding}: name its encoding with --encoding, for example "
                "--encoding latin-1."
            ) from error
        except LookupError as error:
            raise TableError(f"{reason(error)}: use a name such as utf-8, utf-16 or latin-1.") from error
        except (ValueError, OverflowError, self._arrow.ArrowException) as error:
            raise self._explained(reason(error)) from error

    # ---------------------------------------------------------------------------------------------------- columns

    @cached_property
    def columns(self) -> Columns:
        """As they are known, else found from the first rows."""
        if self.known is not None:
            numeric = {*self.known.numeric, *([] if self.known.is_text_target else [self.known.target])}
            return Columns(numeric, self.known.gap_words, self.known.target_format)
        sample, count, ended = [], 0, True
        for batch in self._batches():
            sample.append(batch.slice(0, SAMPLE_ROWS - count))
            count += batch.num_rows
            if count > SAMPLE_ROWS:
                ended = False
                break
        if ended and sum(batch.nbytes for batch in sample) <= KEPT_BYTES:
            self._kept = sample
        table = self._arrow.Table.from_batches(sample).combine_chunks()
        found = Columns(set(), {})
        for name in table.column_names:
            words = cleaned(table[name].combine_chunks(), self._gaps(name))
            if name == self.target and self.task != "classification" and parsed(words, self.dialect.decimal).odd.size:
                found = found._replace(target=all_of_one_format(words.unique().drop_null().to_pylist()))
            if name == self.target and found.target is not None:
                found.numeric.add(name)
            else:
                self._look_at(name, words, found)
        return found

    def _gaps(self, name: str) -> list[str]:
        return MISSING if name == self.target else MISSING + UNKNOWN

    def _look_at(self, name: str, words: Any, columns: Columns) -> None:
        """Add a column to those of numbers, if it is one."""
        decimal = self.dialect.decimal
        if len(words) > FIRST_LOOK:
            first = parsed(words.slice(0, FIRST_LOOK), decimal)
            if len(first.odd) > FIRST_LOOK / 10:
                self._check_target(name, words, first, mixed=False)
                return
        found = parsed(words, decimal)
        numbers = holds_numbers(found)
        self._check_target(name, words, found, mixed=numbers)
        if numbers and not (len(found.odd) and name == self.target):
            columns.numeric.add(name)
            if len(found.odd):
                odd = sorted({words[int(row)].as_py() for row in found.odd})
                columns.gap_words[name] = odd
                self._say_gaps(name, words, found.odd, 0)

    def _say_gaps(self, name: str, words: Any, odd: np.ndarray, start: int) -> None:
        rows = "1 row" if len(odd) == 1 else f"{len(odd):,} rows"
        self.remarks.append(
            f"Column {shortened(name)} of {self.name} holds numbers, but row {start + odd[0] + 1:,} has "
            f"{shortened(words[int(odd[0])].as_py())}: such words, in {rows}, are taken as gaps."
        )

    def _check_target(self, name: str, words: Any, found: Parsed, *, mixed: bool) -> None:
        """Raises if a target of numbers holds words: whether they are classes is for people to say."""
        if name != self.target or not len(found.odd) or self.task == "classification":
            return
        here = f"row {found.odd[0] + 1:,} has {shortened(words[int(found.odd[0])].as_py())}"
        way_out = "mend it, or leave it empty to leave the row out"
        if self.task == "regression":
            raise TableError(f"--task regression needs numbers in the target {name!r}, but {here}: {way_out}.")
        if mixed:
            raise TableError(
                f"The target {name!r} of {self.name} holds numbers, but {here}: {way_out}; --task classification takes "
                "all of them as classes."
            )

    def _frame(self, batch: Any, columns: Columns, start: int) -> Frame:
        """Cells of text as a DataFrame of numbers and text."""
        import pandas as pd

        found = {}
        for name, cells in zip(batch.schema.names, batch.columns, strict=True):
            if name in columns.numeric:
                found[name] = self._numbers(name, cells, columns, start)
            else:
                found[name] = cleaned(cells, [""] if name == self.target else MISSING + UNKNOWN).to_pandas()
        return pd.DataFrame(found)

    def _numbers(self, name: str, cells: Any, columns: Columns, start: int) -> np.ndarray:
        words = cleaned(cells, self._gaps(name) + columns.gap_words.get(name, []))
        form = columns.target if name == self.target else None
        numbers, odd = parsed(words, self.dialect.decimal) if form is None else of_format(words, form)
        if len(odd) and self.known is not None and name != self.known.target and holds_numbers(Parsed(numbers, odd)):
            self._say_gaps(name, words, odd, start)
        elif len(odd):
            raise TableError(
                f"Column {shortened(name)} of {self.name} holds numbers, but row {start + odd[0] + 1} has "
                f"{shortened(words[int(odd[0])].as_py())}: mend it, or leave it empty."
            )
        return numbers

    # -------------------------------------------------------------------------------------------------- the file

    def _batches(self) -> Iterator[Any]:
        """The rows as text; one empty batch if there are none."""
        if self._kept is not None:
            yield from self._kept
            return
        with self._text() as text:
            cells = Cells(text, self.dialect.separator, self.name)
            types = dict.fromkeys(cells.names, self._arrow.string())
            schema = self._arrow.schema(list(types.items()))
            lines, self._skipped = io.BufferedReader(cells, 2**18), 0
            if not lines.peek(1):
                yield self._arrow.RecordBatch.from_pylist([], schema=schema)
                return
            reader = self._reader.open_csv(
                self._arrow.PythonFile(lines, "r"),
                self._reader.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, column_names=cells.names),
                self._reader.ParseOptions(
                    delimiter=cells.delimiter, newlines_in_values=True, invalid_row_handler=self._uneven
                ),
                self._reader.ConvertOptions(column_types=types, strings_can_be_null=False, check_utf8=False),
            )
            batch = None
            for batch in reader:
                yield batch
            if batch is None:
                yield self._arrow.RecordBatch.from_pylist([], schema=schema)
            self._say_skipped()

    def _uneven(self, row: Any) -> str:
        """What pyarrow is to do with a row that has too many or too few cells."""
        self._skipped += 1
        return "skip" if self._skipped <= self.skip else "error"

    def _say_skipped(self) -> None:
        sentence = f"{self._skipped:,} rows of {self.name} with too many or too few cells are left out."
        if self._skipped and sentence not in self.remarks:
            self.remarks.append(sentence)

    def _explained(self, words: str) -> TableError:
        """A sentence for what pyarrow could not read."""
        uneven = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", words)
        if uneven:
            row, columns, cells = uneven.groups()
            return TableError(
                f"{self.name}: row {row} has {cells} cells, but the header names {columns} columns: every row needs a "
                "cell for each, empty where nothing is known (--separator says what stands between cells, "
                "--skip-bad-rows how many such rows may be left out)."
            )
        if "straddling" in words:
            return TableError(f"{self.name} has a line of more than {BLOCK_BYTES:,} bytes: is a quote never closed?")
        return TableError(f"{self.name} cannot be read as a table: {words}.")

    @contextlib.contextmanager
    def _text(self) -> Iterator[TextIO]:
        """The characters of the file, its line ends as they are."""
        encoding = self.dialect.encoding
        with self._bytes() as file:
            text = io.TextIOWrapper(file, encoding=encoding, newline="")
            try:
                yield text
            finally:
                text.detach()  # the file is closed by who opened it, and standard input by nobody here

    @contextlib.contextmanager
    def _bytes(self) -> Iterator[BinaryIO]:
        if self.path == "-":
            yield sys.stdin.buffer if self._stdin is None else io.BytesIO(self._stdin)
            return
        from pandas.io.common import get_handle  # it knows the endings, and imports what they need

        try:
            opened = get_handle(self.path, "rb", compression="infer", is_text=False)
        except (ImportError, PermissionError, FileNotFoundError):
            raise
        except Exception as error:  # of gzip, lzma, zipfile, ..., which have no class in common
            raise TableError(f"{self.name} cannot be decompressed: {reason(error)}.") from error
        with opened:
            yield io.BufferedReader(Decompressed(opened.handle, self.name), 2**16)

    @cached_property
    def dialect(self) -> Dialect:
        """What was not said is found from the first bytes."""
        separator, encoding, decimal = self.written
        start = b"" if None not in self.written else self._start()
        encoding = encoding or ("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
        text = start.decode(encoding, errors="replace").lstrip("\ufeff").lstrip("\r\n")
        if separator is None:
            line = re.split("[\r\n]", text, maxsplit=1)[0]
            tabs = "\t" if ".tsv" in Path(self.path).suffixes else None
            separator = tabs or max(",;\t|", key=line.count)
        if separator == decimal:
            raise TableError(
                f"{self.name} has {separator!r} between its columns, so it cannot be its decimal point: say what "
                "stands between columns with --separator."
            )
        if decimal is None and decimal_of(text, separator) == ",":
            decimal = ","
            self.remarks.append(f"{self.name} is read with decimal commas (--decimal . says otherwise).")
        return Dialect(separator, encoding, decimal or ".")

    def _start(self) -> bytes:
        if self.path == "-" and self._stdin is None:
            return sys.stdin.buffer.peek(START_BYTES)  # type: ignore
        with self._bytes() as file:
            return file.read(START_BYTES)


def decimal_of(text: str, separator: str) -> str:
    """The decimal point in the lines of a CSV file: a comma if there are numbers with one, and none with a point."""
    if separator == ",":
        return "."
    lines = text.splitlines()[1:]
    cells = (cell for line in lines[: max(1, len(lines) - 1)] for cell in _split(line, separator))
    marks = [found[1] for cell in cells if (found := re.fullmatch(r"\s*[+-]?\d*([.,])\d+(?:[eE][+-]?\d+)?\s*", cell))]
    return "," if "," in marks and "." not in marks else "."


def _split(line: str, separator: str) -> list[str]:
    if separator == BLANKS:
        return line.split()
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:  # a line that nobody can read is refused when the file is read
        return []
