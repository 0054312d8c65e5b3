"""CSV files cell by cell: no row is filled up, cut or shifted."""

import contextlib
import csv
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import TextIO

from .errors import TableError, check_names, reason

LONGEST_LINE = 16 * 2**20
"""Characters of a line or a quoted cell."""


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
        with self._rows(iter(self._first_lines, "")) as rows:
            first = [*itertools.islice(rows, 2)]
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
        text = "".join(self._taken) or self._file.read(size)
        self._taken = []
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
        outside = self._outside("".join(self._line))
        self._line, tail = [text[cut:]], len(text) - cut
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

    def check(self, rows: int, again: Callable[[], AbstractContextManager[TextIO]]) -> None:
        """Raise if one of the rows that pandas has read was shorter than the header; it has refused longer ones.

        `again` opens the file once more, to say which row it is.
        """
        if self._separators == (len(self.names) - 1) * (rows + 1):
            return
        with again() as file, self._rows(file) as cells:
            for number, row in enumerate(cells):
                if len(row) != len(self.names):
                    raise self._uneven(f"row {number}", str(len(row)), len(self.names))
        raise self._uneven("a row", "fewer", len(self.names))

    def _uneven(self, where: str, count: str, columns: int) -> TableError:
        return TableError(
            f"{self._name}: {where} has {count} cells, but the header names {columns} columns: every row needs a cell "
            "for each, empty where nothing is known."
        )

    @contextlib.contextmanager
    def _rows(self, lines: Iterable[str]) -> Iterator[Iterator[list[str]]]:
        """The rows that are not blank, slowly."""
        before = csv.field_size_limit(LONGEST_LINE)  # 128 KiB otherwise; it is the whole process's, so it is set back
        try:
            if self._separator == r"\s+":
                yield filter(None, map(str.split, lines))
            else:
                rows = csv.reader(lines, delimiter=self._separator, skipinitialspace=True)
                yield (row for row in rows if row and row != [""])
        except csv.Error as error:
            raise TableError(f"{self._name} cannot be read as a table: {reason(error)}.") from error
        finally:
            csv.field_size_limit(before)

    def _too_long(self) -> TableError:
        return TableError(
            f"{self._name} has a line or quoted cell of more than {LONGEST_LINE:,} characters: is a quote never closed?"
        )
