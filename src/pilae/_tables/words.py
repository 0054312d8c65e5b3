"""Cells of text as gaps and numbers, where they are."""

import re
from typing import Any, NamedTuple

import numpy as np

from .._data.frames import Column, factorized
from .._data.written import NumberFormat, number_format

MISSING = ["", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>"]
MISSING += ["N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null"]
"""Words that mean a gap, in columns that are not the target."""

UNKNOWN = ["?"]
"""More of them; in a target of numbers they are worth a sentence."""

ODD_SHARE, LEAST_NUMBERS = 0.02, 10
"""At most this share of other words, or one, among at least so many numbers: the words are gaps."""

Words = Any
"""A pyarrow array of text, its gaps null."""


class Parsed(NamedTuple):
    """Numbers, NaN where there is none; and the rows whose words are no numbers."""

    numbers: np.ndarray
    odd: np.ndarray


def cleaned(cells: Words, gaps: list[str]) -> Words:
    """Cells without blanks around them, null where they hold one of these words."""
    import pyarrow as pa
    import pyarrow.compute as pc

    trimmed = pc.utf8_trim_whitespace(cells)
    return pc.if_else(pc.is_in(trimmed, value_set=pa.array(gaps, pa.string())), pa.scalar(None, pa.string()), trimmed)


def with_gaps(column: Column, *more: str) -> Column:
    """A column of a DataFrame that others have read, its words for nothing, and more of them, as the gaps they are in
    files."""
    if column.dtype.kind in "bMm":
        return column
    codes, values = factorized(column)
    nothing = np.isin(np.array(values, dtype=object), [*MISSING, *UNKNOWN, *more])
    return column.mask(np.append(nothing, False)[codes]) if nothing.any() else column


def parsed(words: Words, decimal: str) -> Parsed:
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = decimal == "." or not pc.any(pc.match_substring(words, ".")).as_py()
    if plain:
        try:
            pointed = words if decimal == "." else pc.replace_substring(words, decimal, ".")
            numbers = pointed.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
            return Parsed(numbers, np.zeros(0, dtype=np.int64))
        except pa.ArrowInvalid:
            pass  # some word is no number, or has a plus sign: each is looked at
    point = re.escape(decimal)
    number = re.compile(
        rf"[+-]?(?:(?:\d+(?:{point}\d*)?|{point}\d+)(?:e[+-]?\d+)?|inf(?:inity)?|nan)", re.IGNORECASE | re.ASCII
    )
    numbers = np.full(len(words), np.nan)
    odd = []
    for row, word in enumerate(words.to_pylist()):
        if word is not None and number.fullmatch(word):
            numbers[row] = float(word.replace(decimal, "."))
        elif word is not None:
            odd.append(row)
    return Parsed(numbers, np.array(odd, dtype=np.int64))


def all_of_one_format(words: list[str]) -> NumberFormat | None:
    """How different words are written if all are numbers."""
    form = number_format(words)
    return None if form is None or np.isnan([form.read(word) for word in words]).any() else form


def of_format(words: Words, form: NumberFormat) -> Parsed:
    """Words that are numbers of a format."""
    codes = words.dictionary_encode()
    places = codes.indices.to_numpy(zero_copy_only=False)
    there = ~np.isnan(places.astype(np.float64))
    read = np.array([*map(form.read, codes.dictionary.to_pylist()), np.nan])
    numbers = read[np.where(there, places, -1).astype(np.int64)]
    return Parsed(numbers, np.flatnonzero(there & np.isnan(numbers)))


def holds_numbers(found: Parsed) -> bool:
    """Whether the words among them are so few that the column is one of numbers."""
    there = int((~np.isnan(found.numbers)).sum())
    return not len(found.odd) or (there >= LEAST_NUMBERS and len(found.odd) <= max(1, ODD_SHARE * there))
