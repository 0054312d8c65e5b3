"""Names and values within a sentence."""

from collections.abc import Sequence

LONGEST = 60
MOST_NAMED = 12


def shortened(value: object) -> str:
    """In quotes if it is text, and not longer than a sentence bears."""
    if not isinstance(value, str):
        return repr(value)
    return repr(value if len(value) <= LONGEST else value[: LONGEST - 3] + "...")


def counted_as(count: int, what: str) -> str:
    """So many of something, in words."""
    return f"{count:,} {what if count == 1 else f'{what}s'}"


def as_written(value: object) -> str:
    """A value of a table; a number that is whole like one, as a column with gaps makes floats of it."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def listed(names: Sequence) -> str:
    """The first names of many."""
    shown = ", ".join(shortened(name) for name in names[:MOST_NAMED])
    return shown + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
