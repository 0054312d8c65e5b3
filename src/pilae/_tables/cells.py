"""The text of CSV files, checked for what pyarrow's reader takes without a word."""

import contextlib
import csv
import io
import re
from collections.abc import Iterable, Iterator
from typing import TextIO

from .errors import TableError, check_names, reason

LONGEST_LINE = 16 * 2**20
"""Characters of a line or a quoted cell."""

BLANKS = r"\s+"
"""The separator that is any number of spaces and tabs."""


class Cells(io.RawIOBase):
    """The lines below the header as UTF-8 bytes for pyarrow, which counts cells and says which row has too many or few.

    It does not see quotes that are never closed or have text behind them, takes NUL for a letter and blanks before a
    quote for the start of a cell: what lies between quotes would become separators. So quotes are looked at here.

    Parameters
    ----------
    file : text file, its line ends not translated
    separator : str
        One character; r"\\s+" is runs of spaces and tabs, which become one tab.
    name : str
        Of the file, for sentences.
    """

    def __init__(self, file: TextIO, separator: str, name: str) -> None:
        self._file, self._separator, self._name = file, separator, name
        marks = " \t" if separator == BLANKS else re.escape(separator)
        blanks = "" if separator == BLANKS else " *"  # where blanks separate, each of them could begin a cell
        start = rf'(?<![^{marks}\r\n]){blanks}"'
        # quotes count at the start of a cell; one that is still open at the end is closed later
        cell = rf'"[^"]*+(?:""[^"]*+)*+(?:"(?= *(?:[{marks}\r\n]|\Z))|\Z)'
        self._quoted = re.compile(rf"(?<![^{marks}\r\n]){blanks}({cell})")
        self._opening = re.compile(start)
        self._line: list[str] = []
        self._length = 0
        self._open = self._ended = False
        self._ready = memoryview(b"")
        self.names = self._header()
        check_names(self.names, name)

    @property
    def delimiter(self) -> str:
        """What stands between the cells of the lines that are given."""
        return "\t" if self._separator == BLANKS else self._separator

    def _header(self) -> list[str]:
        """The names in the first row that is not blank."""
        with self._rows(iter(self._first_line, "")) as rows:
            names = [name.strip() for name in next(rows, [])]
        if not names:
            raise TableError(f"{self._name} is empty.")
        self._length = 0
        return [name or f"Unnamed: {k}" for k, name in enumerate(names)]

    def _first_line(self) -> str:
        line = self._file.readline(LONGEST_LINE)
        if not self._length:
            line = line.removeprefix("\ufeff")  # which some encodings leave there
        self._length += len(line)
        if self._length >= LONGEST_LINE:
            raise self._too_long()
        return line

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._ended:
            text = self._file.read(2**18)
            self._ended = not text
            self._ready = memoryview(self._lines(text).encode())
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def _lines(self, text: str) -> str:
        """Whole lines up to the end of the text, as pyarrow is to see them; all that is left if the text is empty."""
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
            return ""
        lines = self._checked("".join(self._line))
        if not text and self._open:
            raise TableError(f"{self._name} ends inside a quoted cell (EOF inside string): close every quote.")
        self._line, tail = [text[cut:]], len(text) - cut
        self._length = self._length + tail if self._open else tail
        if self._length > LONGEST_LINE and self._open:
            raise self._too_long()
        return lines

    def _checked(self, text: str) -> str:
        """Lines without blanks around quoted cells, if their quotes are as they should be."""
        was_open = self._open
        if '"' in text or was_open:
            text = '"' + text if was_open else text
            rest = self._quoted.sub("x", text)
            stray = self._opening.search(rest)
            if stray:
                near = rest[stray.start() : stray.start() + 30].strip()
                raise TableError(
                    f"{self._name} has a quoted cell with text after its closing quote, near {near!r}: double the "
                    'quotes inside quoted cells (""), and close every one.'
                )
            self._open = (text.count('"') - rest.count('"')) % 2 == 1
            text = self._quoted.sub(r"\1", text)
        if self._separator == BLANKS:
            text = re.sub(r'("(?:[^"]|"")*(?:"|\Z))|[ \t]+', lambda found: found[1] or "\t", text)
            text = re.sub(r"(?m)^\t|\t(?=\r?$)", "", text)
        elif " " in text:
            text = re.sub(r"(?m)^ +(?=\r?$)", "", text)  # a line of blanks is a blank line
        return text[1:] if was_open else text

    @contextlib.contextmanager
    def _rows(self, lines: Iterable[str]) -> Iterator[Iterator[list[str]]]:
        """The rows that are not blank, slowly."""
        before = csv.field_size_limit(LONGEST_LINE)  # 128 KiB otherwise; it is the whole process's, so it is set back
        try:
            if self._separator == BLANKS:
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
